#!/usr/bin/env python3
"""Runs every test that depends on processes, time, FUSE or the network many times while the CPUs are busy.

    flaky.py [--rounds 50] [--busy N] [--package NAME ...] [--only TEXT] [--out FOLDER] [-- CARGO OPTIONS]

Builds once, runs the test programs directly, round after round, and prints a table (Markdown) of the failures by test.
`--busy` is the number of endless loops that run meanwhile (default: one for each CPU; 0: none). `--only` selects test
programs or tests whose name contains the text. The output of each failed program is kept in a file of `--out`.
Nothing is run again to hide a failure: one failure in all rounds makes the exit status 1.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Packages whose tests start servers and programs, mount file systems, open sockets or wait.
PACKAGES = ["client", "counters", "lab", "load", "samba", "trace", ""]
# A test program that takes longer hangs.
LIMIT_SECONDS = 1200
RESULT = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
BEGUN = re.compile(r"^test (\S+) (?:has been running for|\.\.\. $)", re.MULTILINE)
REASON = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:)", re.MULTILINE | re.DOTALL)


def build(packages, options):
    """Builds the tests; returns the test programs as (name, program, folder to run it in)."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json"]
    for package in packages:
        command += ["-p", f"smbscope-{package}" if package else "smbscope"]
    built = subprocess.run([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message.get("profile", {}).get("test"):
            folder = pathlib.Path(message["manifest_path"]).parent
            programs.append((f"{folder.name} {message['target']['name']}", message["executable"], folder))
    return sorted(programs)


def spin():
    """Keeps one CPU busy until the parent ends."""
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass


def run(program, folder, only):
    """Runs a test program: the outcome of each test, and its output."""
    process = subprocess.Popen(
        [program, *only], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env={**os.environ, "CARGO_MANIFEST_DIR": str(folder)})
    try:
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    outcomes = dict(RESULT.findall(output))
    if process.returncode and "FAILED" not in outcomes.values():
        # It hung or crashed: those that were running have no result.
        running = [name for name in BEGUN.findall(output) if name not in outcomes] or ["(the program)"]
        outcomes.update(dict.fromkeys(running, "FAILED"))
    return outcomes, output


def reason(output, test):
    """The first lines of what a failed test said."""
    said = dict(REASON.findall(output)).get(test, "no result: it hung or crashed")
    said = said.split("stack backtrace:")[0]
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("thread '")]
    return " ".join(lines)[:160].replace("|", "\\|")


def main():
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--busy", type=int, default=os.cpu_count())
    parser.add_argument("--package", action="append", choices=[name or "smbscope" for name in PACKAGES])
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "smbscope-flaky")
    options = parser.parse_args(arguments[:cut])
    packages = [name.replace("smbscope", "") for name in options.package or PACKAGES]
    programs = build(packages, arguments[cut + 1:])
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in programs if options.only in one[0]]
    # The text may also be of tests: each program then runs those that have it in their name.
    only = [] if chosen else [options.only]
    chosen = chosen or programs

    for _ in range(options.busy):
        multiprocessing.Process(target=spin, daemon=True).start()
    runs, failures = collections.Counter(), collections.defaultdict(list)
    began = time.monotonic()
    for number in range(1, options.rounds + 1):
        for name, program, folder in chosen:
            outcomes, output = run(program, folder, only)
            for test, outcome in outcomes.items():
                runs[name, test] += outcome != "ignored"
                if outcome == "FAILED":
                    failures[name, test].append(reason(output, test))
            if "FAILED" in outcomes.values():
                (options.out / f"{name.replace(' ', '-')}-{number}.txt").write_text(output)
        failed = sum(map(len, failures.values()))
        print(f"round {number} of {options.rounds}: {time.monotonic() - began:.0f} s, {failed} failures", file=sys.stderr)

    print(f"\n{len(runs)} tests, {sum(runs.values())} runs in {options.rounds} rounds with {options.busy} busy loops:")
    print(f"{len(failures)} tests failed at least once.")
    if failures:
        print(f"\nThe outputs are in {options.out}.\n\n| program | test | failed | first reason |\n|---|---|---|---|")
        for (name, test), reasons in sorted(failures.items(), key=lambda one: -len(one[1])):
            print(f"| {name} | {test} | {len(reasons)} of {runs[name, test]} | {reasons[0]} |")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
