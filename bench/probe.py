#!/usr/bin/env python3
"""What a recorder costs smbd: CPU for each request and wall time, with and without, in turns.

    bench/probe.py --smbscope PATH [--pairs 16] [--seconds 4] [--case metadata|homefolder]

A private Samba (`smbscope lab`) serves one user in a closed loop; its processes' CPU time is read before
and after, and the recorder's own from when it records until it has written everything. Recorders:
`smbscope record`; `calls` and `joined`, the same with --no-functions and with --interface lo; the bpftrace
prototype (when ../shared and bpftrace are there); `strace -f -c`. Each pair is a run without and a run with
a recorder, in changing order; figures are medians over the pairs, with an interval for 95 %. A pair during
which another guest of the host had more than 10 % of the processors' time is run again.
Python's standard library only; needs root.
"""

import argparse
import json
import math
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

OURS = {"smbscope": [], "calls": ["--no-functions"], "joined": ["--interface", "lo"]}


def median(values):
    """Median and an interval that holds it with 95 %, whatever the distribution: the machine's owner gives
    its processors to others for seconds at a time, which no mean bears."""
    values = sorted(values)
    count, outside, rank = len(values), 0.0, 0
    while rank < count // 2 and outside + math.comb(count, rank) / 2**count <= 0.025:
        outside += math.comb(count, rank) / 2**count
        rank += 1
    return statistics.median(values), values[max(rank - 1, 0)], values[count - max(rank, 1)]


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(entry))
            except (OSError, IndexError):
                pass
    return found


def ticks(pid):
    """User and system time of a process and of those it waited for; 0 of one that has just ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11:15]))


def ended(process, before):
    """Waits for a recorder: its CPU in seconds since `before` ticks."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime - before / os.sysconf("SC_CLK_TCK")


def stolen():
    """Ticks that the host gave to others, and all ticks."""
    with open("/proc/stat") as file:
        fields = list(map(int, file.readline().split()[1:9]))
    return fields[7], sum(fields)


class Lab:
    def __init__(self, smbscope, folder):
        self.smbscope, self.dir = smbscope, os.path.join(folder, "lab")
        out = subprocess.run([smbscope, "lab", "up", "--dir", self.dir, "--users", "8"],
                             capture_output=True, text=True, check=True)
        text = out.stdout + out.stderr
        self.port, self.pid = map(int, re.search(r"port (\d+) \(process (\d+)\)", text).groups())

    def down(self):
        subprocess.run([self.smbscope, "lab", "down", "--dir", self.dir], capture_output=True, check=False)

    def cpu(self):
        """Seconds; the processes of ended connections have been waited for by their parent."""
        total = ticks(self.pid) + sum(ticks(child) for child in children(self.pid))
        return total / os.sysconf("SC_CLK_TCK")


def recorder(name, args, lab, folder):
    """Starts a recorder; a function that ends it and gives what it counted."""
    if name == "none":
        return lambda: {}
    if name in OURS:
        out = os.path.join(folder, "recording")
        process = subprocess.Popen([args.smbscope, "record", "--port", str(lab.port), "--out", out, "--force", "--quiet",
                                    *OURS[name]], stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        begun = ticks(process.pid)

        def end():
            process.send_signal(signal.SIGINT)
            cpu = ended(process, begun)
            with open(os.path.join(out, "manifest.json")) as file:
                manifest = json.load(file)
            rows = sum(part["rows"] for part in manifest["tables"].get("operations", []))
            dropped = sum(coverage.get("frames_dropped") or 0 for coverage in manifest["coverage"])
            return {"rows": rows, "dropped": dropped, "cpu": cpu}
        return end
    if name == "bpftrace":
        with open(os.path.join(args.shared, "probe-prototype/smb2_rows_min.bt")) as file:
            text = file.read().replace("14451", str(lab.port))
        path = os.path.join(folder, "prototype.bt")
        with open(path, "w") as file:
            file.write(text)
        process = subprocess.Popen(["bpftrace", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "BPFTRACE_MAX_PROBES": "4000"})
        time.sleep(8)
    else:
        process = subprocess.Popen(["strace", "-f", "-c", "-o", "/dev/null", "-p", str(lab.pid)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
    begun = ticks(process.pid)

    def stop():
        if process.poll() is not None:
            sys.exit(f"bench: {name} ended by itself")
        process.send_signal(signal.SIGINT)
        return {"cpu": ended(process, begun)}
    return stop


def run(name, args, lab, folder):
    """One run with a recorder (or none): smbd's CPU in us for a request, requests a second, what it counted."""
    end = recorder(name, args, lab, folder)
    out = os.path.join(folder, "run")
    before, begin = lab.cpu(), time.monotonic()
    command = [args.smbscope, "load", "--lab", lab.dir, "--closed", "--warm-up", "0s", "--duration", f"{args.seconds}s",
               "--cool-down", "0s", "--out", out, "--force", "--quiet"]
    if args.case == "homefolder":
        command += ["--users", "8", "--scale", "0.05"]
    else:
        command += ["--users", "1", "--scale", "0.05", "--workload", args.case]
    subprocess.run(command, check=True, capture_output=True)
    wall = time.monotonic() - begin
    time.sleep(0.3)
    cpu = lab.cpu() - before
    told = end()
    with open(os.path.join(out, "manifest.json")) as file:
        manifest = json.load(file)
    operations = sum(part["rows"] for part in manifest["tables"]["operations"])
    # The recorder sees connections without users too (load finds out what the server can).
    told["own"] = told.get("cpu", 0) / operations * 1e6
    told["lost"] = max(operations - told.get("rows", operations), 0)
    return cpu / operations * 1e6, operations / wall, told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--case", default="metadata")
    parser.add_argument("--recorders", default="smbscope,calls,joined,bpftrace,strace")
    parser.add_argument("--shared", default=os.path.join(os.path.dirname(__file__), "../../shared"))
    args = parser.parse_args()
    # In the background of a shell it would be ignored, by the recorders too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = [name for name in args.recorders.split(",") if name in OURS or shutil.which(name)]
    folder = tempfile.mkdtemp(prefix="smbscope-bench-")
    os.chmod(folder, 0o755)
    lab = Lab(args.smbscope, folder)
    try:
        prepare = [args.smbscope, "load", "prepare", "--lab", lab.dir, "--users", "8", "--scale", "0.05", "--quiet"]
        workload = [] if args.case == "homefolder" else ["--workload", args.case]
        subprocess.run(prepare + workload, check=True, capture_output=True)
        run("none", args, lab, folder)
        print(f"{args.case}, {args.pairs} pairs of {args.seconds} s, Linux {platform.release()}\n")
        print("| recorder | smbd CPU us a request: without | with | more (95 %) | its own | requests/s: without | with | less | lost | dropped |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name in names:
            pairs = []
            again = 0
            while len(pairs) < args.pairs:
                order = ["none", name] if len(pairs) % 2 == 0 else [name, "none"]
                stolen_before, all_before = stolen()
                results = {one: run(one, args, lab, folder) for one in order}
                stolen_after, all_after = stolen()
                if stolen_after - stolen_before > 0.1 * (all_after - all_before):
                    again += 1
                    if again > 3 * args.pairs:
                        sys.exit(f"bench: the host is too busy: {again} pairs were disturbed")
                    continue
                pairs.append((results["none"], results[name]))
            more, *more_within = median([after[0] - before[0] for before, after in pairs])
            less, *less_within = median([100 - 100 * after[1] / before[1] for before, after in pairs])
            middle = lambda place, field: statistics.median(pair[place][field] for pair in pairs)
            own = statistics.median(after[2]["own"] for _, after in pairs)
            lost = sum(after[2].get("lost", 0) for _, after in pairs) if name in OURS else ""
            dropped = sum(after[2].get("dropped", 0) for _, after in pairs) if name in OURS else ""
            print(f"| {name} | {middle(0, 0):.1f} | {middle(1, 0):.1f} | "
                  f"{more:+.1f} ({more_within[0]:+.1f} to {more_within[1]:+.1f}) | {own:.1f} | {middle(0, 1):,.0f} | "
                  f"{middle(1, 1):,.0f} | {less:.1f} % ({less_within[0]:.1f} to {less_within[1]:.1f}) | "
                  f"{lost} | {dropped} |", flush=True)
    finally:
        lab.down()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
