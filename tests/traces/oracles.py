#!/usr/bin/env python3
"""Compares smbscope with independent readers on traces and event logs of other people.

    tests/traces/oracles.py SMBSCOPE [--perf FOLDER] [--evtx FOLDER]

--perf: files perf.data*, with `perf script` as the oracle: samples of a clock, or of cycles where there is none, by mode
(kernel, program), with those of idle threads apart, and lost records. Material: github.com/google/perf_data_converter
(src/quipper/testdata), github.com/KDAB/hotspot (tests/integrationtests).
--evtx: event logs, with the Python package `evtx` as the oracle: records, and first and last TimeCreated. Material:
github.com/Yamato-Security/hayabusa-sample-evtx.

Prints one line for each difference, and a table in Markdown. Ends with 1 if there is a difference.
"""

import argparse
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys

CLOCKS = ("cpu-clock", "task-clock")
CYCLES = ("cycles", "cpu-cycles")
DERIVED = (".pb_", ".out.", ".buildids", ".textproto")


def report(smbscope, path):
    """The report of an input; None with a reason if it is refused."""
    ran = subprocess.run([smbscope, "report", path, "--format", "json"], capture_output=True, text=True)
    return (json.loads(ran.stdout), "") if ran.returncode == 0 else (None, ran.stderr.strip()[:160])


def base(event):
    return re.sub(r"^cpu_(core|atom)/", "", event).split("/")[0].split(":")[0]


def perf_counts(path):
    """Samples by event and mode (K, U, or idle), as `perf script` prints them; None if it cannot read the file."""
    fields = ["perf", "script", "-f", "-F", "comm,pid,event,misc", "-i", path]
    ran = subprocess.run(fields, capture_output=True, text=True, errors="replace")
    if not ran.stdout:
        return None
    counts = collections.defaultdict(collections.Counter)
    for line in ran.stdout.splitlines():
        found = re.match(r"\s*(.*?)\s+(-?\d+)\s+([KUHGg]?)\s+(\S+?):\s*$", line)
        if found:
            _, pid, misc, event = found.groups()
            counts[base(event)]["idle" if pid == "0" else misc or "?"] += 1
    return counts


def compare_perf(smbscope, path):
    theirs, (ours, why) = perf_counts(path), report(smbscope, path)
    if theirs is None:
        return None, "perf reads nothing"
    if ours is None:
        return False, f"refused: {why}"
    known = [name for name in theirs if name in CLOCKS] or [name for name in theirs if name in CYCLES]
    expected = sum((theirs[name] for name in known), collections.Counter())
    tasks = ours.get("tasks") or {"samples": 0, "processes": []}
    kernel = sum(row["kernel"] for row in tasks["processes"] if row["process"] != 0)
    user = sum(row["user"] for row in tasks["processes"] if row["process"] != 0)
    idle = sum(row["samples"] for row in tasks["processes"] if row["process"] == 0)
    found = (tasks["samples"], kernel, user, idle)
    right = (sum(expected.values()), expected["K"] + expected["H"], expected["U"], expected["idle"])
    damaged = sum(trace["damaged"] for trace in ours.get("traces", []))
    if not known and found == (0, 0, 0, 0):
        return None, "no clock and no cycles"
    return found == right, f"samples, kernel, program, idle {found}, perf {right}, damaged {damaged}"


def nanoseconds(text):
    text = text.replace(" UTC", "").rstrip("Z").replace("T", " ")
    whole, _, fraction = text.partition(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9] or 0)


def compare_evtx(smbscope, path):
    from evtx import PyEvtxParser

    times = []
    try:
        for record in PyEvtxParser(str(path)).records_json():
            system = json.loads(record["data"])["Event"]["System"]
            times.append(nanoseconds(system["TimeCreated"]["#attributes"]["SystemTime"]))
    except (RuntimeError, OSError) as error:
        return None, f"evtx: {error}"
    ours, why = report(smbscope, path)
    if ours is None:
        return False, f"refused: {why}"
    if not times:
        return None, "no records"
    coverage = ours["coverage"][0]
    count = int(re.match(r"(\d+)", coverage["notes"] or "0").group(1))
    found, right = (count, coverage["start"], coverage["end"]), (len(times), min(times), max(times))
    return found == right, f"records, first, last {found}, evtx {right}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("smbscope")
    arguments.add_argument("--perf", type=pathlib.Path)
    arguments.add_argument("--evtx", type=pathlib.Path)
    given = arguments.parse_args()
    rows, is_wrong = [], False
    for what, folder, pattern, compare in [
        ("perf.data", given.perf, "perf.data*", compare_perf),
        ("event logs", given.evtx, "*.evtx", compare_evtx),
    ]:
        if not folder:
            continue
        equal = different = skipped = 0
        for path in sorted(folder.rglob(pattern)):
            if any(part in path.name for part in DERIVED):
                continue
            is_equal, words = compare(given.smbscope, path)
            equal += is_equal is True
            different += is_equal is False
            skipped += is_equal is None
            if is_equal is not True:
                print(f"{'different' if is_equal is False else 'skipped'}: {path.name}: {words}")
        rows.append((what, equal + different + skipped, equal, different, skipped))
        is_wrong |= different > 0
    print("\n| material | files | equal | different | nothing to compare |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
