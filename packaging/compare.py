#!/usr/bin/env python3
"""Compares smbscope.exe under Wine with smbscope on Linux: what `make test-windows` calls.

    packaging/compare.py --linux PROGRAM --windows SMBSCOPE.EXE [--all]

Each command reads fixtures of this repository on both systems and must give the same bytes and exit code. Then what only
Windows has: devices as names, wildcards, long paths, what needs rights or Linux, and `load` against a
private Samba of this machine. Prints a table in Markdown. Exits with 1 if anything differs.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
SECONDS = 300


class Programs:
    def __init__(self, linux, windows):
        self.linux = [str(linux.resolve())]
        self.windows = [str(HERE / "wine.sh"), str(windows.resolve())]
        # One time zone, one width, no terminal.
        self.environment = os.environ | {"TZ": "UTC", "NO_COLOR": "1", "COLUMNS": "100", "WINEDEBUG": "-all"}

    def run(self, program, arguments, cwd=ROOT, **environment):
        return subprocess.run([*program, *map(str, arguments)], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=SECONDS, env=self.environment | environment)

    def both(self, arguments):
        return self.run(self.linux, arguments), self.run(self.windows, arguments)


def fixtures(every):
    found = [path.relative_to(ROOT) for pattern in ("tests/fixtures/*.pcap*", "tests/fixtures/*/*.pcap*", "tests/fixtures/made/*/*.pcap*")
             for path in sorted(ROOT.glob(pattern))]
    return found if every else found[::6]


def commands(every):
    """Command lines whose output must be the same, without the program."""
    for path in fixtures(every):
        keys = ROOT / f"{str(path).split('.')[0]}.keys"
        options = ["--keys", keys.relative_to(ROOT)] if keys.exists() else []
        yield ["report", path, *options, "--format", "text"]
        yield ["report", path, *options, "--format", "json"]
        yield ["explain", path, *options]
        yield ["ops", path, *options]
    first = fixtures(True)[0]
    slow = "tests/fixtures/findings/small-reads.pcap.gz"
    yield ["predict", slow, "--change", "rtt=1ms"]
    yield ["compare", slow, first]
    yield ["report", "tests/traces/flood.etl"]
    yield ["report", "tests/traces/flood.etl", "--format", "json"]
    yield ["plan", "cores", "tests/traces/flood.etl"]
    yield ["report", "tests/fixtures/dataset-v1", "--format", "json"]
    yield ["query", slow, "select command, count(*) n, sum(elapsed_ns) ns from operations group by 1 order by 1"]
    yield ["schema", "explain"]
    yield ["load", "workloads"]
    for path in sorted((ROOT / "tests/policies").glob("*")) if every else []:
        yield ["plan", "baseline", path.relative_to(ROOT), "--list"]


def differs(linux, windows):
    """What is different, or none. Line ends and separators of paths are compared as they are."""
    if linux.returncode != windows.returncode:
        return f"exit codes {linux.returncode} and {windows.returncode}: {windows.stderr.decode(errors='replace')[-300:]}"
    if linux.stdout != windows.stdout:
        theirs = windows.stdout.splitlines()
        for number, line in enumerate(linux.stdout.splitlines()):
            if number >= len(theirs) or theirs[number] != line:
                other = theirs[number] if number < len(theirs) else b""
                return f"line {number + 1}: {line[:120]!r} and {other[:120]!r}"
        return "lengths"
    return None


def equal_outputs(programs, every):
    problems, count = [], 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lines = list(commands(every))
        for line, (linux, windows) in zip(lines, pool.map(programs.both, lines)):
            count += 1
            if problem := differs(linux, windows):
                problems.append(f"{' '.join(map(str, line))}: {problem}")
    return count, problems


def equal_page(programs, folder):
    pages = []
    for name, program in (("linux", programs.linux), ("windows", programs.windows)):
        page = folder / f"{name}.html"
        inside = page if name == "linux" else f"Z:{page}"
        programs.run(program, ["report", "tests/traces/flood.etl", "--html", inside])
        pages.append(page.read_bytes() if page.exists() else b"")
    return 1, [] if pages[0] and pages[0] == pages[1] else [f"pages of {len(pages[0])} and {len(pages[1])} bytes differ"]


def own_behaviour(programs, folder):
    """What only Windows has. Returns how many things were tried and what was wrong."""
    problems = []

    def expect(what, arguments, code, *texts, **environment):
        done = programs.run(programs.windows, arguments, **environment)
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode != code or any(text not in said for text in texts):
            problems.append(f"{what}: exit code {done.returncode}: {said[-300:]}")

    expect("a device as input", ["report", "nul"], 2, "NUL is a device of Windows")
    expect("a device as output", ["report", "tests/fixtures/errors.pcapng", "--html", "con.html"], 2, "CON is a device")
    expect("wildcards", ["report", r"tests\fixtures\findings\small-r*.pcap.gz"], 0, "reads go one at a time")
    deep = folder.joinpath(*["a" * 60] * 5)
    deep.mkdir(parents=True)
    (deep / "x.pcap.gz").write_bytes((ROOT / "tests/fixtures/findings/small-reads.pcap.gz").read_bytes())
    expect("a path of 300 characters", ["report", f"Z:{deep}/x.pcap.gz".replace("/", "\\")], 0, "reads go one at a time")
    expect("a missing drive", ["report", r"Q:\x.pcap"], 4, r"Q:\x.pcap")
    expect("only on Linux", ["record", "--interface", "eth0", "--out", r"C:\x"], 2, "Linux")
    expect("rights to record", ["record", "--windows", "--what", "smb", "--out", r"C:\recording", "--duration", "1s"], 1,
           "without a recording")
    return 7, problems


def load(programs, folder):
    """`load` under Wine against a private Samba, by the program of Linux."""
    # The lab's user has to pass its folder.
    folder.chmod(0o711)
    state = folder / "lab"
    up = programs.run(programs.linux, ["lab", "up", "--dir", state, "--users", "2"])
    if up.returncode != 0:
        return 0, [f"lab up: {up.stderr.decode(errors='replace')[-300:]}"]
    try:
        status = programs.run(programs.linux, ["lab", "status", "--dir", state, "--format", "json"])
        lab = json.loads(status.stdout)["labs"][0]
        password = (state / "password").read_text().strip()
        users = folder / "users"
        users.write_text("".join(f"user{number:05}:{password}\n" for number in (1, 2)))
        common = [lab["location"], "--users-file", f"Z:{users}", "--scale", "0.1"]
        prepared = programs.run(programs.windows, ["load", "prepare", *common, "--users", "2"])
        done = programs.run(programs.windows, ["load", *common, "--users", "2", "--duration", "5s", "--out", f"Z:{folder}/run"])
        if prepared.returncode or done.returncode:
            return 1, [f"load: {(prepared.stderr + done.stderr).decode(errors='replace')[-400:]}"]
        report = programs.run(programs.linux, ["report", folder / "run"])
        return 1, [] if report.returncode == 0 and b"Operations" in report.stdout else ["the run cannot be read on Linux"]
    finally:
        programs.run(programs.linux, ["lab", "down", "--dir", state])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linux", type=pathlib.Path, required=True)
    parser.add_argument("--windows", type=pathlib.Path, required=True)
    parser.add_argument("--all", action="store_true", help="every fixture, not every sixth")
    given = parser.parse_args()
    programs = Programs(given.linux, given.windows)
    # The first start makes the prefix, which must not happen twice at once.
    programs.run(programs.windows, ["--version"])
    bad = []
    print("| under Wine against Linux | tried | different or wrong |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for title, (count, problems) in (
            ("outputs (text, JSON, lines), exit codes", equal_outputs(programs, given.all)),
            ("page of a CPU trace", equal_page(programs, folder)),
            ("names, paths, errors of Windows", own_behaviour(programs, folder)),
            ("`load` against Samba 4.17", load(programs, folder)),
        ):
            print(f"| {title} | {count} | {len(problems)} |", flush=True)
            bad += problems
    for problem in bad:
        print(f"\n- {problem}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
