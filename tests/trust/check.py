#!/usr/bin/env python3
"""Tries what SECURITY.md promises: a hostile server, captures and datasets that expand, recorders that are killed.

    tests/trust/check.py --smbscope PATH [--fast] [--only KIND] [--table FILE]

Each case has a limit of time, memory and CPU time, and an outcome: refused with an error, or a report that says what is missing.
A panic, a signal or a limit that is exceeded is a failure. Exit code 1 when one case fails. `--fast` takes some seconds and is in
`make test`. Needs pyarrow and pycryptodomex; recorders need root and Samba.
"""

import argparse
import datetime
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bombs
import datasets
import recorders
import server

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURE = f"{HERE}/../fixtures/smb311.pcapng"
# Addresses, so that a runaway cannot take the machine with it.
ADDRESSES = 16 << 30


def resident(pid):
    """Peak of resident memory in MB. What the system says at the end of a process includes the program that started it."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return max((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:")), default=0)
    except OSError:
        return 0


class Ran:
    """A process that ended: exit code, seconds, CPU seconds, peak RSS in MB, output."""

    def __init__(self, words, limit, folder):
        out, began = tempfile.TemporaryFile(dir=folder), time.monotonic()
        bound = lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))  # noqa: E731
        process = subprocess.Popen([str(word) for word in words], stdout=out, stderr=out, stdin=subprocess.DEVNULL, preexec_fn=bound)
        self.is_late, self.megabytes = False, 0
        while True:
            self.megabytes = max(self.megabytes, resident(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - began > limit and not self.is_late:
                self.is_late = True
                os.kill(process.pid, signal.SIGKILL)
            time.sleep(0.005)
        process.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.seconds, self.cpu = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        out.seek(0)
        self.text = out.read().decode("utf-8", "replace")

    def wrong(self, megabytes, cpu):
        """What no case may do."""
        if self.is_late:
            return f"not over after {self.seconds:.0f} s"
        if self.code < 0 or self.code == 101 or "panicked" in self.text:
            return f"exit code {self.code}: {self.text[-200:]!r}"
        if self.megabytes > megabytes:
            return f"{self.megabytes:.0f} MB"
        return f"{self.cpu:.1f} s of CPU time" if self.cpu > cpu else ""


class Row:
    def __init__(self, kind, name, limits, ran, outcome, wrong):
        self.kind, self.name, self.limits, self.ran, self.outcome, self.wrong = kind, name, limits, ran, outcome, wrong

    def markdown(self):
        megabytes, cpu, seconds = self.limits
        measured = f"{self.ran.megabytes:.0f} of {megabytes} | {self.ran.cpu:.1f} of {cpu} | {self.ran.seconds:.1f} of {seconds}"
        return f"| {self.kind} | {self.name} | {measured} | {self.outcome if not self.wrong else '**' + self.wrong + '**'} |"


def first_line(text):
    lines = [line for line in text.splitlines() if line.startswith("smbscope:")]
    return (lines or text.splitlines() or [""])[0].removeprefix("smbscope:").strip()


def of_server(smbscope, folder, names):
    password = f"{folder}/password"
    with open(os.open(password, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write(server.PASSWORD)
    for name in names:
        dialect, options = server.REFUSED.get(name, (0x302, []))
        # Without a clock of its own each request takes --timeout at most; a run has several of them.
        limits = (100, 10, 30)
        hostile = server.Server(name, dialect)
        words = [smbscope, "load", f"//127.0.0.1:{hostile.port}/home", "--user", server.USER, "--password-file", password, "--users", 1,
                 "--scale", 0.01, "--warm-up", "0s", "--duration", "2s", "--cool-down", "0s", "--no-progress", "--timeout", "2s"]  # fmt: skip
        ran = Ran(words + options, limits[2], folder)
        hostile.close()
        wrong = ran.wrong(*limits[:2])
        if not wrong and name in server.REFUSED and (ran.code == 0 or hostile.accepted):
            wrong = f"the lie was accepted ({hostile.accepted} requests, exit code {ran.code})"
        yield Row("server", name, limits, ran, f"exit code {ran.code}", wrong)


def of_bombs(smbscope, folder, names, is_fast):
    for name in names:
        write, count, ending, megabytes, cpu, said, fast = bombs.BOMBS[name]
        path = f"{folder}/{name}{ending}"
        write(path, fast if is_fast else count)
        size = os.path.getsize(path) >> 10
        limits = (megabytes, cpu, 10 * cpu)
        ran = Ran([smbscope, "report", path, "--no-progress"], limits[2], folder)
        os.unlink(path)
        wrong = ran.wrong(*limits[:2])
        if not wrong and said not in ran.text and not is_fast:
            wrong = f"the report does not say `{said}`"
        yield Row("bomb", f"{name} ({size:,} KiB)", limits, ran, f"exit code {ran.code}", wrong)


def of_datasets(smbscope, folder, names):
    base, changed = f"{folder}/base", f"{folder}/changed"
    subprocess.run([smbscope, "import", FIXTURE, "--out", base, "-q"], check=True)
    readers = {"report": ["report", changed], "query": ["query", changed, "select path, sum(elapsed_ns) from operations group by path"]}
    has_query = subprocess.run([smbscope, "query", base, "select 1"], capture_output=True).returncode == 0
    for name in names:
        is_refused = datasets.make(name, base, changed)
        for reader, words in readers.items():
            # A query of operations does not see what is wrong with other tables' types, and casts numbers.
            if reader == "query" and (not has_query or name == "numbers-as-nan"):
                continue
            limits = (640, 15, 90)
            ran = Ran([smbscope, *words], limits[2], folder)
            wrong = ran.wrong(*limits[:2])
            if not wrong and is_refused is not None and (ran.code != 0) != is_refused:
                wrong = f"exit code {ran.code}: {first_line(ran.text)}"
            yield Row("dataset", f"{name}, {reader}", limits, ran, f"exit code {ran.code}", wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--fast", action="store_true", help="only what takes some seconds")
    parser.add_argument("--only", choices=["server", "bomb", "dataset", "recorder"])
    parser.add_argument("--case", help="only the cases whose name contains this")
    parser.add_argument("--table", help="write the table to this file")
    args = parser.parse_args()
    smbscope, folder = os.path.abspath(args.smbscope), tempfile.mkdtemp(prefix="smbscope-trust-")
    chosen = lambda names: [name for name in names if not args.case or args.case in name]  # noqa: E731
    kinds = {
        "server": lambda: of_server(smbscope, folder, chosen(server.FAST if args.fast else [*server.REFUSED, *server.ENDLESS])),
        "bomb": lambda: of_bombs(smbscope, folder, chosen([name for name in bombs.BOMBS if not args.fast or bombs.BOMBS[name][6]]), args.fast),
        "dataset": lambda: of_datasets(smbscope, folder, chosen(datasets.FAST if args.fast else datasets.CASES)),
        "recorder": lambda: recorders.cases(smbscope, folder, chosen([] if args.fast else recorders.CASES), Ran, Row),
    }
    rows = []
    try:
        for kind, cases in kinds.items():
            for row in cases() if args.only in (None, kind) else []:
                rows.append(row)
                print(row.markdown(), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if args.table:
        write_table(args.table, rows)
    failed = sum(bool(row.wrong) for row in rows)
    print(f"trust: {len(rows)} cases, {failed} failed", file=sys.stderr)
    sys.exit(1 if failed else 0)


def write_table(path, rows):
    with open(path) as file:
        head = file.read().split("\n| kind |")[0]
    lines = ["| kind | case | memory, MB | CPU, s | time, s | outcome |", "|---|---|---|---|---|---|"]
    lines += [row.markdown() for row in rows]
    stamp = datetime.date.today().isoformat()
    head = "\n".join(line if not line.startswith("Measured on ") else f"Measured on {stamp}." for line in head.splitlines())
    with open(path, "w") as file:
        file.write(head.rstrip() + "\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
