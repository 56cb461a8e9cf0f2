#!/usr/bin/env python3
"""Compares `smbscope net` with iperf3, sockperf and ping in network namespaces, in alternated pairs.

    sudo bench/net.py [--smbscope FILE] [--pairs N] [--seconds N] [--only WORD] > table

Prints the tables of docs/measurements/net.md. Paths: two namespaces joined by a veth pair without a
limit, with a rate by the kernel (tbf), and by `smbscope wan` with a rate, a round trip and losses. Needs root, iperf3, sockperf and
ping. Everything that it creates is removed at the end, however it ends.
"""

import argparse
import atexit
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

NAME = "netbench%d" % os.getpid()
CLIENT, SERVER = NAME + "-client", NAME + "-server"
ADDRESS = "10.45.0.2"
started = []


def run(*command, check=True, **more):
    result = subprocess.run(command, capture_output=True, text=True, **more)
    if check and result.returncode:
        raise SystemExit("%s: %s" % (" ".join(command), result.stderr.strip() or result.stdout.strip()))
    return result.stdout


def start(*command, **more):
    process = subprocess.Popen(command, text=True, **more)
    started.append(process)
    return process


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    started.remove(process)


@atexit.register
def clean():
    for process in list(started):
        end(process)
    for name in (CLIENT, SERVER):
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def inside(name, *command):
    return ("ip", "netns", "exec", name) + command


def veth():
    for name in (CLIENT, SERVER):
        run("ip", "netns", "add", name)
        run(*inside(name, "ip", "link", "set", "lo", "up"))
    run("ip", "link", "add", "eth0", "netns", CLIENT, "type", "veth", "peer", "eth0", "netns", SERVER)
    for name, last in ((CLIENT, 1), (SERVER, 2)):
        run(*inside(name, "ip", "address", "add", "10.45.0.%d/24" % last, "dev", "eth0"))
        run(*inside(name, "ip", "link", "set", "eth0", "up"))
    time.sleep(0.5)
    return clean


def with_reno():
    """BBR paces each stream by what it carried before, and stays with it: without a limit, that alone makes a factor of
    two from run to run, of both programs."""
    remove = veth()
    for name in (CLIENT, SERVER):
        run(*inside(name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"))
    return remove


def limited(rate):
    remove = veth()
    for name in (CLIENT, SERVER):
        run(*inside(name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst",
                    "256kb", "latency", "20ms"))
    return remove


def wan(options):
    line = start(binary, "wan", "--netns", NAME, *options, stdout=subprocess.DEVNULL,
                 stderr=subprocess.PIPE)
    for _ in range(100):
        if subprocess.run(inside(CLIENT, "ping", "-c1", "-W1", ADDRESS), capture_output=True).returncode == 0:
            return lambda: end(line)
        time.sleep(0.1)
    raise SystemExit("the link of `smbscope wan` does not come up")


def iperf3(streams, reverse, seconds):
    command = ["iperf3", "-c", ADDRESS, "-J", "-t", str(seconds), "-P", str(streams)]
    for _ in range(20):
        text = run(*inside(CLIENT, *command, *(["-R"] if reverse else [])), check=False)
        result = json.loads(text)
        if "error" not in result:
            break
        time.sleep(0.3)
    else:
        raise SystemExit("iperf3: " + result["error"])
    received, cpu = result["end"]["sum_received"], result["end"]["cpu_utilization_percent"]
    gigabytes = received["bytes"] / 1e9
    both = (cpu["host_total"] + cpu["remote_total"]) / 100 * seconds
    return received["bits_per_second"], both / gigabytes


def net(streams, reverse, seconds, *more):
    listener = start(*inside(SERVER, binary, "net", "listen", ADDRESS), stdout=subprocess.PIPE,
                     stderr=subprocess.DEVNULL)
    token = listener.stdout.readline().split()[1]
    direction = "receive" if reverse else "send"
    text = run(*inside(CLIENT, binary, "net", "send", ADDRESS, "--token", token, "--streams",
                       str(streams), "--direction", direction, "--duration", "%ds" % seconds,
                       "--format", "json", *more))
    end(listener)
    result = json.loads(text)
    test = result["tests"][0]
    both = (test["sender_cpu_ns"] + test["receiver_cpu_ns"]) / 1e9
    return test["bits_per_second"], both / (test["bytes"] / 1e9), test["limit"], result


def rates(title, streams, reverse, pairs, seconds):
    ours, theirs, limits = [], [], []
    for pair in range(pairs):
        order = [lambda: theirs.append(iperf3(streams, reverse, seconds)),
                 lambda: ours.append(net(streams, reverse, seconds, "--round-trips", "0"))]
        for one in order if pair % 2 == 0 else order[::-1]:
            one()
    ratios = [a[0] / b[0] for a, b in zip(ours, theirs)]
    mean = lambda values: statistics.mean(values)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    limits = ", ".join(sorted({one[2] for one in ours}))
    print("| %s | %d | %s | %.0f | %.0f | %.3f ± %.3f | %.3f | %.3f | %s |" % (
        title, streams, "receive" if reverse else "send", mean([b[0] for b in theirs]) / 1e6,
        mean([a[0] for a in ours]) / 1e6, mean(ratios), error, mean([b[1] for b in theirs]),
        mean([a[1] for a in ours]), limits), flush=True)


def sockperf(seconds):
    server = start(*inside(SERVER, "sockperf", "server", "--tcp", "-i", ADDRESS, "-p", "11111"),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    text = run(*inside(CLIENT, "sockperf", "ping-pong", "--tcp", "--full-rtt", "-i", ADDRESS, "-p",
                       "11111", "-m", "64", "-t", str(seconds)))
    end(server)
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return float(re.search(r"percentile 50.000 =\s*([\d.]+)", text).group(1))


def ping():
    text = run(*inside(CLIENT, "ping", "-i", "0.02", "-c", "100", "-q", ADDRESS))
    return float(re.search(r"= [\d.]+/([\d.]+)/", text).group(1)) * 1000


def round_trips(title, pairs):
    values = {"net": [], "sockperf": [], "ping": []}
    for pair in range(pairs):
        order = [lambda: values["sockperf"].append(sockperf(2)),
                 lambda: values["net"].append(echo()), lambda: values["ping"].append(ping())]
        for one in order if pair % 2 == 0 else order[::-1]:
            one()
    ours, theirs, pinged = (statistics.mean(values[name]) for name in ("net", "sockperf", "ping"))
    print("| %s | %.1f | %.1f | %.3f | %.1f | %.3f |" % (
        title, ours, theirs, ours / theirs, pinged, ours / pinged), flush=True)


def echo():
    result = net(1, False, 1, "--round-trips", "2000")[3]
    row = [row for row in result["round_trips"] if row["kind"] == "echo"][0]
    return row["p50_ns"] / 1000


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smbscope", default="target/release/smbscope")
parser.add_argument("--pairs", type=int, default=5)
parser.add_argument("--seconds", type=int, default=5)
parser.add_argument("--only", default="")
arguments = parser.parse_args()
binary = os.path.abspath(arguments.smbscope)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

PATHS = [
    ("veth", veth),
    ("veth, Reno", with_reno),
    ("veth, 1 Gbit/s by tbf", lambda: limited("1gbit")),
    ("wan 500 Mbit/s, 2 ms", lambda: wan(["--rate", "500mbit", "--rtt", "2ms"])),
    ("wan 100 Mbit/s, 20 ms", lambda: wan(["--rate", "100mbit", "--rtt", "20ms"])),
    ("wan 100 Mbit/s, 20 ms, 0.1 % lost", lambda: wan(["--rate", "100mbit", "--rtt", "20ms", "--loss", "0.1%"])),
]
print("| path | streams | direction | iperf3, Mbit/s | net, Mbit/s | net / iperf3 | iperf3, CPU s/GB | net, CPU s/GB | limit |")
print("|---|---|---|---|---|---|---|---|---|", flush=True)
later = []
for title, make in PATHS:
    if arguments.only not in title:
        continue
    remove = make()
    server = start(*inside(SERVER, "iperf3", "-s"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    for streams in (1, 4):
        for reverse in (False, True):
            rates(title, streams, reverse, arguments.pairs, arguments.seconds)
    end(server)
    remove()
    later.append((title, make))
print("\n| path | net echo p50, us | sockperf p50, us | net / sockperf | ping, us | net / ping |")
print("|---|---|---|---|---|---|", flush=True)
for title, make in later:
    if "lost" in title:
        continue
    remove = make()
    round_trips(title, arguments.pairs)
    remove()
