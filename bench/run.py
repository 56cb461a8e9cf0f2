#!/usr/bin/env python3
"""Runs every program on both benchmark captures and prints a Markdown table.

CPU seconds are user and system time of the program and its threads; memory is its peak resident set, mapped pages
included. Operations that a program reports are compared: all must find the same. Python's standard library only.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile


def run(command):
    """Runs a command; its output, CPU seconds and peak memory in bytes."""
    with open(os.devnull, "wb") if command[0] == "cat" else tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"bench: {' '.join(command)} ended with {process.returncode}")
        if not out.readable():
            return "", usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        out.seek(0)
        return out.read().decode(errors="replace"), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def operations(text):
    """Operations in a program's output: 'N operations', a report's fact, or tshark's table of counts."""
    found = re.search(r"\b(\d[\d,]*) operations\b|^  Operations +(\d[\d,]*)", text, re.M)
    if found:
        return int((found[1] or found[2]).replace(",", ""))
    rows = re.findall(r"^.*\S\s+(\d+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s*$", text, re.M)
    return sum(map(int, rows)) if rows else None


def packets(path):
    """Packets in a classic pcap, by its record headers."""
    count, at = 0, 24
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at + 16 <= size:
            file.seek(at + 8)
            at += 16 + int.from_bytes(file.read(4), "little")
            count += 1
    return count


def version(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[0]


def processor():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()


def main():
    parser = argparse.ArgumentParser()
    for name in ("captures", "walk", "smbscope"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    print(f"Machine: {processor()}, Linux {platform.release()}, {version([args.smbscope, '--version'])}, "
          f"{version(['tshark', '--version'])}; least CPU time of {args.repeat} runs (tshark: 1)\n")
    scratch = tempfile.mkdtemp(prefix="smbscope-bench-")
    try:
        few = table(args, os.path.join(args.captures, "bulk.pcap"), scratch)
        many = table(args, os.path.join(args.captures, "metadata.pcap"), scratch)
        # A program's start is in both: what an operation costs is what more of them cost more.
        each = (many[1] - few[1]) / (many[0] - few[0])
        print(f"A prediction of ten million such operations: {few[1] + (1e7 - few[0]) * each:.2f} CPU s (from {few[0]:,} and "
              f"{many[0]:,} operations), {many[2] / 1e6:.0f} MB.\n")
    finally:
        shutil.rmtree(scratch)


PREDICT = "`smbscope predict`, of the dataset"


def table(args, path, scratch):
    """Prints a capture's table; operations, CPU seconds and memory of the prediction."""
    size, count = os.path.getsize(path), packets(path)
    dataset = os.path.join(scratch, "dataset")
    programs = [
        ("`cat`", ["cat", path]),
        ("bare walk (mapped, no names, no columns)", [args.walk, path]),
        ("`tshark -q -z smb2,srt`", ["tshark", "-n", "-q", "-o", "tcp.reassemble_out_of_order:TRUE",
                                     "-z", "smb2,srt", "-r", path]),
        ("smbscope, full rows in memory", [args.smbscope, "decode", path]),
        ("`smbscope report`", [args.smbscope, "report", "--quiet", path]),
        ("`smbscope explain`", [args.smbscope, "explain", "--quiet", "--format", "json", path]),
        ("`smbscope import`", [args.smbscope, "import", "--quiet", "--force", path, "--out", dataset]),
        (PREDICT, [args.smbscope, "predict", dataset, "--quiet", "--change", "rtt=20ms", "--format", "json"]),
    ]
    print(f"### {os.path.basename(path)}: {size:,} bytes, {count:,} packets\n")
    print("| program | CPU s | MB/CPU s | packets/CPU s | operations/CPU s | of the walk | peak MB | operations |")
    print("|---|---|---|---|---|---|---|---|")
    # In rounds, so that a busy minute of a shared machine does not fall on one program alone.
    best = {}
    for turn in range(args.repeat):
        for title, command in programs:
            if command[0] == "tshark" and turn > 0:
                continue
            result = run(command)
            if title not in best or result[1] < best[title][1]:
                best[title] = result
    walk, counts = None, {}
    for title, command in programs:
        output, cpu, memory = best[title]
        if title in ("`smbscope import`", PREDICT):
            sql = "select count(*) from operations"
            output = run([args.smbscope, "query", dataset, "--format", "csv", sql])[0].split()[-1] + " operations"
        found = None if command[0] == "cat" else operations(output)
        if found is not None:
            counts[title] = found
        if title.startswith("bare walk"):
            walk = cpu
        share = f"{100 * walk / cpu:.0f} %" if walk and cpu else ""
        print(f"| {title} | {cpu:.2f} | {size / cpu / 1e6:,.0f} | {count / cpu:,.0f} | "
              f"{found / cpu if found else 0:,.0f} | {share} | {memory / 1e6:,.0f} | {found if found else ''} |",
              flush=True)
    print()
    _, cpu, memory = best[PREDICT]
    report, explain = (best[f"`smbscope {what}`"][1] for what in ("report", "explain"))
    print(f"`explain` takes {explain / report:.2f} times as long as `report`.\n")
    if len(set(counts.values())) > 1:
        print(f"The programs do not find the same number of operations: {counts}\n")
    return counts[PREDICT], cpu, memory


if __name__ == "__main__":
    main()
