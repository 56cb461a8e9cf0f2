#!/usr/bin/env python3
"""What a recorder costs smbd: CPU for each request and wall time, with and without, in turns.

    bench/probe.py --smbscope PATH [--pairs 16] [--seconds 4] [--case metadata|homefolder]

A private Samba (`smbscope lab`) serves one user in a closed loop; its processes' CPU time is read before
and after. Recorders: `smbscope record`; `calls` and `joined`, the same with --no-functions and with
--interface lo; the bpftrace prototype (when ../shared and bpftrace are there); `strace -f -c`. Each pair is a run without and a run with a recorder, in changing order; the interval is
Student's over the pairs. Python's standard library only; needs root.
"""

import argparse
import json
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

# Student's t for 95 %, by degrees of freedom.
T = {3: 3.18, 5: 2.57, 7: 2.36, 9: 2.26, 11: 2.20, 15: 2.13, 19: 2.09, 23: 2.07, 31: 2.04}


OURS = {"smbscope": [], "calls": ["--no-functions"], "joined": ["--interface", "lo"]}


def student(freedom):
    return T[max(key for key in T if key <= max(freedom, 3))]


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
    """User and system time of a process and of those it waited for."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15]))


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

        def end():
            process.send_signal(signal.SIGINT)
            process.wait()
            with open(os.path.join(out, "manifest.json")) as file:
                manifest = json.load(file)
            rows = sum(part["rows"] for part in manifest["tables"].get("operations", []))
            dropped = sum(coverage.get("frames_dropped") or 0 for coverage in manifest["coverage"])
            return {"rows": rows, "dropped": dropped}
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

    def stop():
        if process.poll() is not None:
            sys.exit(f"bench: {name} ended by itself")
        process.send_signal(signal.SIGINT)
        process.wait()
        return {}
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
    told["lost"] = operations - told["rows"] if "rows" in told else 0
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
        print("| recorder | smbd CPU us a request: without | with | more (95 %) | requests/s: without | with | less | lost | dropped |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in names:
            pairs = []
            for turn in range(args.pairs):
                order = ["none", name] if turn % 2 == 0 else [name, "none"]
                results = {one: run(one, args, lab, folder) for one in order}
                pairs.append((results["none"], results[name]))
            more = [after[0] - before[0] for before, after in pairs]
            half = student(len(more) - 1) * statistics.stdev(more) / len(more) ** 0.5
            less = [1 - after[1] / before[1] for before, after in pairs]
            half_less = student(len(less) - 1) * statistics.stdev(less) / len(less) ** 0.5
            mean = lambda values: statistics.mean(values)
            lost = sum(after[2].get("lost", 0) for _, after in pairs) if name in OURS else ""
            dropped = sum(after[2].get("dropped", 0) for _, after in pairs) if name in OURS else ""
            print(f"| {name} | {mean([b[0] for b, _ in pairs]):.1f} | {mean([a[0] for _, a in pairs]):.1f} | "
                  f"{mean(more):+.1f} ± {half:.1f} | {mean([b[1] for b, _ in pairs]):,.0f} | "
                  f"{mean([a[1] for _, a in pairs]):,.0f} | {100 * mean(less):.1f} ± {100 * half_less:.1f} % | "
                  f"{lost} | {dropped} |", flush=True)
    finally:
        lab.down()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
