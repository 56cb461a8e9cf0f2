#!/usr/bin/env python3
"""Bulk data on the loopback interface: SMB next to the network without SMB, and next to other programs.

    bench/bulk.py [--smbscope FILE] [--samba FOLDER] [--size MIB] [--pairs N] [--only WORD] [--reno] > tables

Prints the tables of docs/measurements/bulk.md. `smbscope net` and iperf3 move TCP data; `smbscope load --workload migrate`
and smbclient move the same amount to and from a private Samba whose share is in memory (/dev/shm). The order of the
programs alternates. Processor time is that of both sides for each GB (10^9 bytes). Needs Samba, smbclient and iperf3; with
--reno root, for a network namespace with that congestion control: BBR, which many systems have, paces the loopback, too.
"""

import argparse
import atexit
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

if "--reno" in sys.argv:
    space = "smbscope-bulk-%d" % os.getpid()
    inside = ["ip", "netns", "exec", space]
    subprocess.run(["ip", "netns", "add", space], check=True)
    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"], check=True)
        words = [word for word in sys.argv if word != "--reno"]
        sys.exit(subprocess.run([*inside, sys.executable, *words], check=False).returncode)
    finally:
        subprocess.run(["ip", "netns", "delete", space], check=False)
folder = tempfile.mkdtemp(prefix="smbscope-bulk", dir="/dev/shm")
lab = os.path.join(folder, "lab")
GIGA = 1e9


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, **more)
    if result.returncode:
        raise SystemExit("%s: %s" % (" ".join(command), result.stderr.strip() or result.stdout.strip()))
    return result.stdout


@atexit.register
def clean():
    subprocess.run([binary, "lab", "down", "--dir", lab], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def server_cpu():
    """Seconds that the private smbd and its children have used."""
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid) as file:
                if lab not in file.read():
                    continue
            with open("/proc/%s/stat" % pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        # With waited-for children only for the parent, so that a child counts once.
        ticks += sum(int(value) for value in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def net(streams, reverse):
    listener = subprocess.Popen([binary, "net", "listen", "127.0.0.1"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
    token = listener.stdout.readline().split()[1]
    text = run(binary, "net", "send", "127.0.0.1", "--token", token, "--streams", str(streams), "--direction",
               "receive" if reverse else "send", "--duration", "3s", "--round-trips", "0", "--format", "json")
    listener.wait()
    test = json.loads(text)["tests"][0]
    client, server = test["sender_cpu_ns"], test["receiver_cpu_ns"]
    if reverse:
        client, server = server, client
    size = test["bytes"]
    return test["bits_per_second"] / 8 / 1e6, client / size, server / size


def iperf3(streams, reverse):
    server = subprocess.Popen(["iperf3", "-s", "-1", "-B", "127.0.0.1"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    text = run("iperf3", "-c", "127.0.0.1", "-J", "-t", "3", "-P", str(streams), *(["-R"] if reverse else []))
    server.wait()
    end = json.loads(text)["end"]
    received, cpu = end["sum_received"], end["cpu_utilization_percent"]
    gigabytes = received["bytes"] / GIGA
    return (received["bits_per_second"] / 8 / 1e6, cpu["host_total"] / 100 * 3 / gigabytes,
            cpu["remote_total"] / 100 * 3 / gigabytes)


def migrate(channels, reverse, *more):
    before = server_cpu()
    text = run(binary, "load", "//127.0.0.1:%s/home" % port, "--user", "user00001", "--password-file",
               os.path.join(lab, "password"), "--workload", "migrate", "--channels", "127.0.0.1x%d" % channels,
               "--size", "%dMiB" % arguments.size, "--direction", "in" if reverse else "out", "--format", "json", "-q",
               *more)
    found = json.loads(text)
    time.sleep(0.3)
    size = found["bytes"]
    client = (found["client_cpu_user_ns"] + found["client_cpu_kernel_ns"]) / size
    carried = [one for one in found["channels"] if one["moved_bytes"]]
    if len(carried) != channels:
        # A short transfer can end before the last channel is bound.
        return migrate(channels, reverse, *more)
    # The file of a read is written first, outside the measured time, so the server's time is not that of the read.
    server = None if reverse else (server_cpu() - before) * GIGA / size
    return found["bytes_per_second"] / 1e6, client, server


def nothing(reverse, channels=1, signed=False):
    """The client against a server that has no work but to verify and to sign, if that is wanted."""
    password = os.path.join(lab, "password")
    server = subprocess.Popen([arguments.sink, *([password] if signed else [])], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    number = server.stdout.readline().split()[1]
    several = "127.0.0.1x%d" % channels if channels > 1 else "1"
    text = run(binary, "load", "//127.0.0.1:%s/sink" % number, "--user", "user00001", "--password-file",
               password, "--workload", "migrate", "--channels", several, "--size",
               "%dMiB" % (4 * arguments.size), "--direction", "in" if reverse else "out", "--format", "json", "-q",
               *(["--signing", "aes-gmac"] if signed else []))
    found = json.loads(text)
    carried = [one for one in found["channels"] if one["moved_bytes"]]
    if len(carried) != channels:
        raise SystemExit("%d of %d channels carried data" % (len(carried), channels))
    with open("/proc/%d/stat" % server.pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    cpu = sum(int(value) for value in fields[11:13]) / os.sysconf("SC_CLK_TCK")
    server.stdin.close()
    server.wait()
    size = found["bytes"]
    # The file of a read is written first.
    server_cpu = None if reverse else cpu * GIGA / size
    return (found["bytes_per_second"] / 1e6, (found["client_cpu_user_ns"] + found["client_cpu_kernel_ns"]) / size,
            server_cpu)


def smbclient(reverse, *more):
    big = os.path.join(folder, "big")
    if not os.path.exists(big):
        with open(big, "wb") as file:
            for _ in range(arguments.size):
                file.write(os.urandom(1 << 20))
    command = "get big /dev/null" if reverse else "put %s big" % big
    before, mine = server_cpu(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    run("smbclient", "-s", "/dev/null", "-p", port, "-A", os.path.join(lab, "credentials"), *more,
        "//127.0.0.1/home", "-c", command)
    seconds = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    time.sleep(0.3)
    size = arguments.size << 20
    client = (after.ru_utime + after.ru_stime - mine.ru_utime - mine.ru_stime) * GIGA / size
    return size / seconds / 1e6, client, (server_cpu() - before) * GIGA / size


def main():
    cases = {
        "net, 1 stream": lambda reverse: net(1, reverse),
        "net, 4 streams": lambda reverse: net(4, reverse),
        "iperf3, 1 stream": lambda reverse: iperf3(1, reverse),
        "iperf3, 4 streams": lambda reverse: iperf3(4, reverse),
        "migrate, 1 channel": lambda reverse: migrate(1, reverse, "--signing", "off"),
        "migrate, 4 channels": lambda reverse: migrate(4, reverse, "--signing", "off"),
        "migrate, 1 channel, AES-GMAC": lambda reverse: migrate(1, reverse, "--signing", "aes-gmac"),
        "migrate, 4 channels, AES-GMAC": lambda reverse: migrate(4, reverse, "--signing", "aes-gmac"),
        "migrate, 1 channel, to a server without work": nothing,
        "migrate, 1 channel, AES-GMAC, to a server without other work": lambda reverse: nothing(reverse, 1, True),
        "migrate, 4 channels, AES-GMAC, to a server without other work": lambda reverse: nothing(reverse, 4, True),
        "smbclient": lambda reverse: smbclient(reverse, "--client-protection=off"),
        "smbclient, signed": lambda reverse: smbclient(reverse, "--client-protection=sign"),
    }
    cases = {name: case for name, case in cases.items() if arguments.only in name or name.startswith("net")}
    for reverse in (False, True):
        print("Data to the %s:\n" % ("client" if reverse else "server"))
        print("| program | MB/s | of net with the same streams | CPU of client, s/GB | CPU of server, s/GB |")
        print("|---|---|---|---|---|")
        rows = {name: [] for name in cases}
        for pair in range(arguments.pairs):
            for name, case in list(cases.items())[::1 if pair % 2 == 0 else -1]:
                rows[name].append(case(reverse))
        for name, found in rows.items():
            raw = rows["net, 4 streams" if "4 " in name else "net, 1 stream"]
            share = statistics.median(one[0] / other[0] for one, other in zip(found, raw))
            cpu = ["" if one is None else "%.2f" % one for one in
                   (None if column[0] is None else statistics.median(column) for column in list(zip(*found))[1:])]
            print("| %s | %.0f | %.0f %% | %s | %s |" % (
                name, statistics.median(one[0] for one in found), 100 * share, *cpu), flush=True)
        print(flush=True)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--smbscope", default=os.path.expanduser("~/.cache/smbscope/target/release/smbscope"))
parser.add_argument("--sink", default=os.path.expanduser("~/.cache/smbscope/target/release/examples/bulk_sink"),
                    help="a server without work (crates/load/examples/bulk_sink.rs)")
parser.add_argument("--samba", help="folder of another Samba (with sbin/smbd), for example 4.22")
parser.add_argument("--size", type=int, default=2048, help="MiB that are moved")
parser.add_argument("--pairs", type=int, default=5)
parser.add_argument("--only", default="", metavar="WORD", help="programs whose name has this word, and net")
parser.add_argument("--reno", action="store_true", help="in a network namespace with Reno")
arguments = parser.parse_args()
binary = arguments.smbscope
os.chmod(folder, 0o755)
listener = __import__("socket").create_server(("127.0.0.1", 0))
port = str(listener.getsockname()[1])
listener.close()
run(binary, "lab", "up", "--dir", lab, "--port", port, "--users", "1", "--set", "strict sync = no", "--set",
    "server multi channel support = yes", *(["--samba", arguments.samba] if arguments.samba else []))
main()
