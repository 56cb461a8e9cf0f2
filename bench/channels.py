#!/usr/bin/env python3
"""Measures bulk data over several paths: next to raw TCP, and next to `predict --change channels=N`.

    sudo bench/channels.py [--smbscope FILE] [--samba FOLDER] [--size MIB] [--repeats N] [--only sum|predict] > tables

Prints the tables of docs/measurements/channels.md. Each path joins the client's and the server's network namespace and
leads through `smbscope wan` with its own rate and round trip. Raw TCP is iperf3 over all paths at the same time. Needs
root, Samba and iperf3; everything that it creates is removed at the end, however it ends.
"""

import argparse
import atexit
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

NAME = "chbench%d" % os.getpid()
CLIENT, SERVER, LINE = NAME + "-client", NAME + "-server", NAME + "-line"
PORT = 4460
PASSWORD = "Channels-1"
started = []
folder = tempfile.mkdtemp(prefix="smbscope-channels")


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, **more)
    if result.returncode:
        raise SystemExit("%s: %s" % (" ".join(command), result.stderr.strip() or result.stdout.strip()))
    return result.stdout


def inside(name, *command):
    return ("ip", "netns", "exec", name) + command


def start(*command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    started.append(process)
    return process


def end(process):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                pass
    started.remove(process)


def down():
    for process in list(started):
        end(process)
    for name in (CLIENT, SERVER, LINE):
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@atexit.register
def clean():
    down()
    shutil.rmtree(folder, ignore_errors=True)


def address(path):
    return "10.77.%d.2" % path


def up(paths, window=None):
    """Makes paths of (Mbit/s, round trip in ms)."""
    for name in (CLIENT, SERVER, LINE):
        run("ip", "netns", "add", name)
        run(*inside(name, "ip", "link", "set", "lo", "up"))
    for path, (rate, trip) in enumerate(paths):
        for end_of, name, host in (("c", CLIENT, 1), ("s", SERVER, 2)):
            device = "%s%d" % (end_of, path)
            run("ip", "link", "add", device, "netns", name, "type", "veth", "peer", "name", device, "netns", LINE)
            run("ip", "-n", LINE, "link", "set", device, "addrgenmode", "none", "gso_max_segs", "1", "up")
            run("ip", "-n", name, "address", "add", "10.77.%d.%d/24" % (path, host), "dev", device)
            run("ip", "-n", name, "link", "set", device, "gso_max_segs", "1", "up")
        options = ["--rtt", "%gms" % trip] + (["--rate", "%dmbit" % rate] if rate else [])
        start(*inside(LINE, binary, "wan", "c%d" % path, "s%d" % path, *options))
    if window:
        for name in (CLIENT, SERVER):
            run(*inside(name, "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 %d %d" % (window, window)))
    for path in range(len(paths)):
        for _ in range(100):
            command = inside(CLIENT, "ping", "-c1", "-W1", address(path))
            if subprocess.run(command, capture_output=True).returncode == 0:
                break
            time.sleep(0.1)


def samba(paths):
    smbd = shutil.which("smbd", path=(arguments.samba + "/sbin:" + arguments.samba + "/bin") if arguments.samba
                        else "/usr/sbin")
    interfaces = " ".join('"%s;capability=RSS,speed=10000000000"' % address(path) for path in range(paths))
    share = os.path.join(folder, "share")
    os.makedirs(share, exist_ok=True)
    os.chmod(folder, 0o755)
    os.chmod(share, 0o777)
    state = {name: os.path.join(folder, name) for name in
             ("private", "state", "cache", "lock", "pid", "ncalrpc", "log")}
    for path in state.values():
        os.makedirs(path, exist_ok=True)
    conf = os.path.join(folder, "smb.conf")
    with open(conf, "w") as file:
        file.write("\n".join([
            "[global]", "server role = standalone", "smb ports = %d" % PORT, "interfaces = " + interfaces,
            "bind interfaces only = yes", "server multi channel support = yes", "map to guest = bad user",
            "guest account = root", "private dir = " + state["private"], "state directory = " + state["state"],
            "cache directory = " + state["cache"], "lock directory = " + state["lock"],
            "pid directory = " + state["pid"], "ncalrpc dir = " + state["ncalrpc"],
            "passdb backend = smbpasswd:" + os.path.join(folder, "passwd"), "disable spoolss = yes",
            "load printers = no", "log file = " + state["log"] + "/log", "strict sync = no",
            "[vm]", "path = " + share, "read only = no", ""]))
    pdbedit = shutil.which("smbpasswd", path=(arguments.samba + "/bin") if arguments.samba else None)
    subprocess.run([pdbedit or "smbpasswd", "-c", conf, "-s", "-a", "root"], input=PASSWORD + "\n" + PASSWORD + "\n",
                   text=True, capture_output=True, check=True)
    start(*inside(SERVER, smbd, "-F", "--no-process-group", "-s", conf))
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as file:
        file.write(PASSWORD + "\n")
    os.chmod(secret, 0o600)
    time.sleep(2)


def migrate(channels, *more):
    text = run(*inside(CLIENT, binary, "load", "//%s:%d/vm" % (address(0), PORT), "--user", "root",
                       "--password-file", os.path.join(folder, "secret"), "--workload", "migrate", "--channels",
                       channels, "--format", "json", "-q", *more))
    return json.loads(text)


def raw(paths, seconds):
    servers = [start(*inside(SERVER, "iperf3", "-s", "-1", "-B", address(path))) for path in range(paths)]
    time.sleep(0.5)
    clients = [subprocess.Popen(inside(CLIENT, "iperf3", "-c", address(path), "-J", "-t", str(seconds), "-O", "1"),
                                stdout=subprocess.PIPE, text=True) for path in range(paths)]
    results = [json.loads(client.communicate()[0]) for client in clients]
    for server in servers:
        end(server)
    return [result["end"]["sum_received"]["bits_per_second"] / 1e6 for result in results]


def cpu():
    """Whether the machine itself is the limit, as its busy share."""
    with open("/proc/stat") as file:
        values = [int(value) for value in file.readline().split()[1:9]]
    return sum(values) - values[3] - values[4], sum(values)


def sums():
    print("| paths | raw, sum of Mbit/s | SMB plateau | share | SMB whole run | share | by path, SMB of raw | machine busy |")
    print("|---|---|---|---|---|---|---|---|")
    cases = [
        [(200, 1), (200, 1)],
        [(200, 1), (20, 1)],
        [(200, 1), (100, 5)],
        [(150, 1), (100, 2), (50, 5), (25, 10)],
        [(100, 1), (100, 1), (100, 1), (100, 1)],
    ]
    for paths in cases:
        rows = []
        for _ in range(arguments.repeats):
            up(paths)
            samba(len(paths))
            alone = raw(len(paths), 6)
            before = cpu()
            size = "%dMiB" % arguments.size
            out = os.path.join(folder, "sum")
            shutil.rmtree(out, ignore_errors=True)
            found = migrate(",".join(address(path) for path in range(len(paths))), "--size", size, "--out", out)
            after = cpu()
            report = json.loads(run(binary, "report", out, "--format", "json", "-q"))
            [session] = [one for one in report["channels"]["sessions"] if len(one["channels"]) > 1]
            busy = (after[0] - before[0]) / max(1, after[1] - before[1])
            of_path = {one["server"]: one["plateau_bytes_per_second"] or 0 for one in session["channels"]}
            rates = [of_path.get(address(path), 0) * 8 / 1e6 for path in range(len(paths))]
            plateau = session["plateau_bytes_per_second"] or 0
            rows.append((sum(alone), plateau * 8 / 1e6, found["bytes"] * 8 / found["duration_ns"] * 1e3, alone, rates,
                         busy))
            down()
        rows.sort(key=lambda row: row[1] / row[0])
        row = rows[len(rows) // 2]
        name = ", ".join("%d Mbit/s %g ms" % path for path in paths)
        each = ", ".join("%.0f of %.0f" % (smb, alone) for smb, alone in zip(row[4], row[3]))
        print("| %s | %.0f | %.0f | %.1f %% | %.0f | %.1f %% | %s | %.0f %% |" % (
            name, row[0], row[1], 100 * row[1] / row[0], row[2], 100 * row[2] / row[0], each, 100 * row[5]),
            flush=True)


def predictions():
    """Receive windows limit one channel, so that additional channels carry more."""
    print("| recorded as | round trip | receive buffer | channels | predicted | made | error |")
    print("|---|---|---|---|---|---|---|")
    for direction, name, source in (("in", "Read", "capture"), ("out", "Migrate", "run")):
        for trip, window in ((5, 131072), (20, 262144), (50, 524288)):
            for count in (2, 4, 8):
                factors = []
                for _ in range(arguments.repeats):
                    up([(0, trip)], window)
                    samba(1)
                    factors.append(prediction(direction, name, source, count))
                    down()
                predicted, made = (statistics.median(column) for column in zip(*factors))
                print("| %s, %s | %g ms | %d KiB | %d | %.2f of the time | %.2f | %+.1f %% |" % (
                    source, name, trip, window // 1024, count, predicted, made, 100 * (predicted / made - 1)),
                    flush=True)


def prediction(direction, name, source, count):
    """What `predict` says of one channel, and what more channels take; 16 requests are in flight."""
    out, capture = os.path.join(folder, "one"), os.path.join(folder, "one.pcap")
    shutil.rmtree(out, ignore_errors=True)
    common = ["--direction", direction, "--size", "%dMiB" % (arguments.size // 4), "--keep"]
    migrate(address(0), "--depth", "16", *common)
    tcpdump = start(*inside(CLIENT, "tcpdump", "-i", "c0", "-B", "65536", "-w", capture))
    time.sleep(1)
    one = migrate(address(0), "--depth", "16", "--out", out, *common)
    time.sleep(1)
    end(tcpdump)
    text = run(binary, "predict", capture if source == "capture" else out, "--change", "channels=%d" % count,
               "--format", "json", "-q")
    more = migrate("%sx%d" % (address(0), count), "--depth", str(16 // count), *common)
    # For a capture: requests in flight stay the same, so the transfer's time changes as the time of its requests does.
    lines = [json.loads(line) for line in text.splitlines()]
    [row] = [line for line in lines if line["of"] in ("command", "scenario") and line["name"] == name]
    return row["after_seconds"] / row["before_seconds"], more["duration_ns"] / one["duration_ns"]


parser = argparse.ArgumentParser()
parser.add_argument("--smbscope", default=os.path.expanduser("~/.cache/smbscope/target/release/smbscope"))
parser.add_argument("--samba", help="folder of another Samba (with sbin/smbd), for example 4.22")
parser.add_argument("--size", type=int, default=128, help="MiB that are moved")
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--only", choices=("sum", "predict"))
arguments = parser.parse_args()
binary = arguments.smbscope
for program in ("ip", "iperf3", "tcpdump"):
    if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        raise SystemExit("%s is missing: apt-get install iproute2 iperf3 tcpdump" % program)
if os.geteuid():
    raise SystemExit("network namespaces need root")
if arguments.only != "predict":
    sums()
    print(flush=True)
if arguments.only != "sum":
    predictions()
