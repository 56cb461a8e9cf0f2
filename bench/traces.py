#!/usr/bin/env python3
"""How fast traces of processors become rows, as a Markdown table.

    bench/traces.py --rows PATH --maker PATH [--dir DIR] [--repeat 5]

Makes an event trace log of 20 million events (DPCs, ISRs, samples with stacks, context switches) once, plain and
compressed with XPRESS, and reads each with the example `rows_speed` of crates/trace: all rows of all tables are made, and
dropped. `cat` of the same file in the same run is the lower limit. Where `perf` is installed, a perf.data file is
recorded under load and read by `perf script` and by us. The least CPU time of the repetitions counts, because the machine
is shared; the most memory is that of the reader.

A second table: packets of the benchmark's capture `metadata.pcap` in a synthetic log of `netsh trace`, of `pktmon`, and
as events of the SMB server, next to the pcap itself, decoded by the example `speed` of crates/capture.
"""

import argparse
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

EVENTS = re.compile(r"(\d+) events, (\d+) rows, .* VmHWM:\s*(\d+) kB")


def cpu_seconds(command):
    """CPU time of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"bench: {' '.join(command[:3])}: {done.stderr.strip()[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def least(command, repeat):
    runs = [cpu_seconds(command) for _ in range(repeat)]
    return min(runs, key=lambda run: run[0])


def logs(maker, folder):
    """The two logs, made if they are not there."""
    for compression in ("plain", "xpress"):
        path = os.path.join(folder, f"traces-{compression}.etl")
        if not os.path.exists(path):
            made = os.path.join(folder, "making")
            os.makedirs(made, exist_ok=True)
            print(f"bench: making {path}", file=sys.stderr)
            subprocess.run([maker, made, "--long", compression], check=True, stdout=sys.stderr)
            os.replace(os.path.join(made, "long.etl"), path)
            shutil.rmtree(made)
        yield compression, path


def flood(stop):
    """Small packets on the loopback."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while not stop.is_set():
        for _ in range(100):
            sender.sendto(b"x" * 64, receiver.getsockname())
        time.sleep(0.001)


def perf_data(folder):
    """A recording of ten seconds under load; None where perf cannot record."""
    path = os.path.join(folder, "traces-perf.data")
    if os.path.exists(path):
        return path
    if not shutil.which("perf"):
        return None
    stop = threading.Event()
    thread = threading.Thread(target=flood, args=(stop,))
    thread.start()
    events = ["irq:softirq_raise", "irq:softirq_entry", "irq:softirq_exit", "napi:napi_poll", "sched:sched_switch"]
    command = ["perf", "record", "-q", "-a", "-m", "4M", "-o", path]
    for event in events:
        command += ["-e", event]
    command += ["-e", "cpu-clock/freq=99,call-graph=fp/", "--", "sleep", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    stop.set()
    thread.join()
    return path if done.returncode == 0 else None


def windows(args):
    """Logs of Windows next to the capture they were made from."""
    pcap = os.path.join(args.dir, "metadata.pcap")
    if not os.path.exists(pcap):
        print(f"bench: {pcap} is absent (bench/captures.sh makes it)", file=sys.stderr)
        return
    logs = {}
    for name in ("netsh", "pktmon-nics", "pktmon", "smbserver-26100"):
        logs[name] = os.path.join(args.dir, f"{name}-synthetic.etl")
        if not os.path.exists(logs[name]):
            print(f"bench: making {logs[name]}", file=sys.stderr)
            subprocess.run([args.windows_logs, pcap, args.dir, name], check=True, stdout=sys.stderr)
    best = {}
    # One after the other in each round, so that all have the same neighbours.
    for _ in range(args.repeat):
        for name, command in [("pcap", [args.pcap, pcap])] + [
            (name, [args.rows, path, "operations"]) for name, path in logs.items()
        ]:
            run = cpu_seconds(command)
            if name not in best or run[0] < best[name][0]:
                best[name] = run
    print()
    print("| input | size | packets or messages | operations | CPU s | million / CPU s | rate of the pcap |")
    print("|---|---|---|---|---|---|---|")
    whole, said = best["pcap"]
    operations = int(said.split()[0])
    packets = int(EVENTS.search(best["netsh"][1]).group(1))
    size = os.path.getsize(pcap) / 1e6
    print(f"| metadata.pcap | {size:,.0f} MB | {packets:,} | {operations:,} | {whole:.2f} "
          f"| {packets / whole / 1e6:.2f} | 1 |")
    for name, path in logs.items():
        seconds, said = best[name]
        events, rows, _ = map(int, EVENTS.search(said).groups())
        rate = f"{whole / seconds:.2f}" if name != "smbserver-26100" else "–"
        print(f"| {name}-synthetic.etl | {os.path.getsize(path) / 1e6:,.0f} MB | {events:,} | {rows:,} "
              f"| {seconds:.2f} | {events / seconds / 1e6:.2f} | {rate} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="the example rows_speed, built for release")
    parser.add_argument("--maker", required=True, help="flooded_server of crates/testing, built for release")
    parser.add_argument("--pcap", help="the example speed of crates/capture, built for release")
    parser.add_argument("--windows-logs", help="windows_logs of crates/testing, built for release")
    parser.add_argument("--dir", default=os.path.expanduser("~/.cache/smbscope/bench"))
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    print("| trace | size | events | rows | CPU s | million events / CPU s | memory | `cat`, CPU s | peer, CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")

    def line(name, path, peer):
        cat, _ = least(["sh", "-c", 'cat "$1" > /dev/null', "sh", path], args.repeat)
        ours, said = least([args.rows, path], args.repeat)
        found = EVENTS.search(said)
        if not found:
            sys.exit(f"bench: rows_speed printed {said!r}")
        events, rows, memory = map(int, found.groups())
        other = "–"
        if peer:
            theirs, _ = least(["sh", "-c", '"$@" > /dev/null 2>&1', "sh", *peer], max(1, args.repeat // 2))
            other = f"{peer[0]} {peer[1]} {theirs:.2f} ({ours / theirs:.2f} of it)"
        size = os.path.getsize(path) / 1e6
        print(f"| {name} | {size:,.0f} MB | {events:,} | {rows:,} | {ours:.2f} | {events / ours / 1e6:.2f} "
              f"| {memory / 1024:.0f} MiB | {cat:.2f} | {other} |")

    for compression, path in logs(args.maker, args.dir):
        line(f".etl, {compression}", path, None)
    recorded = perf_data(args.dir)
    if recorded:
        line("perf.data", recorded, ["perf", "script", "-i", recorded])
    if args.pcap and args.windows_logs:
        windows(args)


if __name__ == "__main__":
    main()
