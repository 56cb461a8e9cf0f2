#!/usr/bin/env python3
"""Ways of writing to a private Samba, captured: what `report` finds against the workload, and against tshark's fields.

    tests/live/durability.py --smbscope PATH [--seconds 10] [--keep DIR]

One user writes backup files in each way that an application has: plain, a Flush before the Close, a write-through open, the
write-through flag, unbuffered. `smbscope report` must find each way with as many opens as the workload ran, tshark must count
the same Flushes, write-through writes and opens, and `smbscope explain` must name what is not stable. Exit code 1 when something
is wrong. Needs Samba, tcpdump, tshark and root.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

WAYS = {
    "nothing": ("", "", ""),
    "flushed": ("", "", '{ action = "flushes", flush = "file" },'),
    "write-through-open": (', "write_through"', "", ""),
    "write-through-flag": ("", ", write_through = true", ""),
    "unbuffered": ("", ", unbuffered = true", ""),
}
FILES = """
[files.{name}]
class = "volatile"
folders = ["{title}"]
name = "{{word}}-{{n}}.vbk"
bytes = ["256 KiB"]
repeat = 2
"""
SCENARIO = """
[scenarios.{title}]
description = "a backup is written: {way}"
runs_per_hour = {rate}
files = {{ file = "{name}" }}
steps = [
    {{ action = "opens", create = "{{file}}", handle = "file", access = "read_write", options = ["non_directory_file"{option}] }},
    {{ action = "writes", write = "file", file = "file"{flag} }},
    {flush}
    {{ action = "closes", close = "file" }},
]
"""
RATE = 3600


def workload():
    text = 'description = "Backups, written in each way"\nblock = "64 KiB"\n[pacing]\nspacing = "slotted"\njitter = 0.5\n'
    for kind in (FILES, SCENARIO):
        for way, (option, flag, flush) in WAYS.items():
            name = way.replace("-", "")
            text += kind.format(name=name, title=name.capitalize(), way=way, rate=RATE, option=option, flag=flag, flush=flush)
    return text


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def tshark(file, port, condition, *fields):
    words = [word for field in fields for word in ("-e", field)]
    out = call("tshark", "-r", file, "-d", f"tcp.port=={port},nbss", "-Y", condition, "-T", "fields", "-E", "occurrence=a",
               "-E", "aggregator=,", *words)
    return [line.split("\t") for line in out.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--keep", help="keep the capture in this folder")
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix="smbscope-durability-")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    path = lambda name: os.path.join(folder, name)
    with open(path("ways.toml"), "w") as file:
        file.write(workload())
    capture, lab = path("ways.pcap"), path("lab")
    files = ["--users", 1, "--scale", 1, "--workload", path("ways.toml")]
    port = json.loads(call(args.smbscope, "lab", "up", "--dir", lab, "--users", 1, "--format", "json"))["port"]
    try:
        call(args.smbscope, "load", "prepare", f"--lab={lab}", *files, "--quiet")
        tcpdump = subprocess.Popen(["tcpdump", "-i", "lo", "-s", "0", "-B", "65536", "-U", "-w", capture, "tcp", "port", str(port)],
                                   stderr=subprocess.DEVNULL)
        time.sleep(2)
        call(args.smbscope, "load", f"--lab={lab}", *files, "--warm-up", "0s", "--duration", f"{args.seconds}s", "--cool-down", "2s",
             "--signing", "off", "--encryption", "off", "--out", path("run"), "--force", "--quiet")
        time.sleep(1)
        tcpdump.terminate()
        tcpdump.wait()
    finally:
        call(args.smbscope, "lab", "down", "--dir", lab)
    wrong = []

    def same(what, found, expected):
        print(f"{what}: {found}" if found == expected else f"{what}: {found}, expected {expected}")
        if found != expected:
            wrong.append(what)

    found = json.loads(call(args.smbscope, "report", capture, "--format", "json"))["durability"]
    ways = {row["way"]: row for row in found["ways"]}
    same("ways", sorted(ways), sorted(WAYS))
    # What the workload ran, from tshark: creates of each folder that succeeded.
    names = collections.Counter()
    for (name,) in tshark(capture, port, "smb2.cmd==5 && smb2.flags.response==0", "smb2.filename"):
        names.update(part.split("\\")[-2].lower() for part in name.split(",") if part.endswith(".vbk"))
    for way in WAYS:
        same(f"opens, {way}", ways.get(way, {}).get("opens"), names[way.replace("-", "")])
    count = lambda condition, field: sum(
        value in ("1", "True") for (values,) in tshark(capture, port, condition, field) for value in values.split(","))
    request = "smb2.flags.response==0"
    same("write-through writes", found["write_through_writes"],
         count(f"smb2.cmd==9 && {request}", "smb2.write.flags.write_through"))
    flushes = sum(commands.split(",").count("7") for (commands,) in tshark(capture, port, f"smb2.cmd==7 && {request}", "smb2.cmd"))
    same("Flushes", found["flushes"], flushes)
    through = count(f"smb2.cmd==5 && {request}", "smb.nt.create_options.write_through")
    same("write-through opens", ways.get("write-through-open", {}).get("opens"), through)
    stable = {way for way, row in ways.items() if row["unflushed_bytes"] == 0}
    same("stable", sorted(stable), ["flushed", "write-through-flag", "write-through-open"])
    notes = [note["what"] for note in json.loads(call(args.smbscope, "explain", capture, "--format", "json"))["notes"]
             if note["about"] == "not-stable"]
    same("explain names them", any("backup files" in note for note in notes), True)
    print("\n".join(notes))
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
