#!/usr/bin/env python3
"""Removes each condition of the rules of `explain` in turn, and says which of them no test needs: mutate.py [FILE...]

Copies the sources, lets `mutate/` wrap each condition of the files of the rules, and builds the program and the tests of
`explain` once: the variable SMBSCOPE_MUTANT then removes one condition at run time. First each test and each capture of
`make.py` runs alone, to learn which conditions decide something in it; then each mutant runs with those only. It is killed
if a test fails, or if a capture's state, first finding or its owner changes. FILE restricts the mutants to files whose
path contains it. With --table it writes docs/measurements/rules.md. Exits with 1 if a condition survives that
`mutate/reasons.tsv` does not have.
"""

import argparse
import collections
import csv
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
import check  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "rules"
TREE = WORK / "tree"
EXPLAIN = "crates/analysis/src/explain/"
# The rules: the findings, the observations that several of them share, and what decides about the verdict.
SHARED_FILES = """account breaks durations in_a_row lookups measured protocol_state remedies sequential_blocks series server_time
shared_link signing signing/sizes state transfer_rates waiting worth""".split()
HANGS_AFTER_S = 120
HEADER = """# What the tests of the rules need

`make verify-rules` (`tests/diagnoses/mutate.py`) removes each condition of the rules of `explain` in turn: an operand of `&&` or a
filter counts as true, an operand of `||` or the condition of an early return as false, an `if` with `else` as either. The
tests of `explain` and the verdicts over the captures of `tests/diagnoses` run with each of these mutants as far as it can
change anything. A mutant is killed if a test fails, or if a capture's state, first finding or its owner changes. {today}.

`not reached`: in no test and no capture would the removal decide anything. `survived`: it decides something, but nothing that is
compared. `limits` bound memory (`len() < .._MAX`) and are not counted. Choices between two texts are not mutated."""


def run(command, **more):
    return subprocess.run(command, check=True, **more)


def copy_if_different(source, target):
    text = source.read_bytes()
    if not target.exists() or target.read_bytes() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
        target.chmod(source.stat().st_mode)


def rules():
    files = sorted((ROOT / EXPLAIN / "findings").glob("*.rs"))
    files += [ROOT / EXPLAIN / (name + ".rs") for name in SHARED_FILES]
    return [str(path.relative_to(ROOT)) for path in files]


def mutated():
    """Copies the sources into TREE with the conditions wrapped; returns the mutants."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True).stdout
    listed = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    of_rules, tool = rules(), WORK / "tool"
    run(["cargo", "build", "--quiet", "--locked", "--manifest-path", HERE / "mutate/Cargo.toml", "--target-dir", tool])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in of_rules:
            copy_if_different(ROOT / name, folder / name)
        mutants = run([tool / "debug/smbscope-mutate", *of_rules], cwd=folder, capture_output=True, text=True).stdout
        for name in of_rules:
            copy_if_different(folder / name, TREE / name)
        explain = EXPLAIN[:-1] + ".rs"
        text = (ROOT / explain).read_text(encoding="utf-8").replace("mod account;", "mod account;\nmod mutant;", 1)
        manifests = {name: ROOT / name for name in listed if re.fullmatch(r"crates/\w+/Cargo\.toml", name)}
        (folder / "edited").mkdir()
        (folder / "edited/explain.rs").write_text(text, encoding="utf-8")
        copy_if_different(folder / "edited/explain.rs", TREE / explain)
        copy_if_different(HERE / "mutate/mutant.rs", TREE / EXPLAIN / "mutant.rs")
        # Only the unit tests of one crate are wanted, with the features that the whole workspace has.
        for name, path in manifests.items():
            text = path.read_text(encoding="utf-8")
            if not name.startswith("crates/analysis/"):
                text += "" if "[lib]" in text or not (path.parent / "src/lib.rs").exists() else "\n[lib]\ntest = false\ndoctest = false\n"
            (folder / "edited/Cargo.toml").write_text(text, encoding="utf-8")
            copy_if_different(folder / "edited/Cargo.toml", TREE / name)
    for name in listed:
        if name not in of_rules and name != explain and name not in manifests:
            copy_if_different(ROOT / name, TREE / name)
    kept = {*listed, EXPLAIN + "mutant.rs"}
    for path in TREE.glob("crates/analysis/**/*.rs"):
        if str(path.relative_to(TREE)) not in kept:
            path.unlink()
    fields = ("id", "file", "line", "forced", "limit", "text")
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in mutants.splitlines()]


def built():
    """Builds the program and the tests of `explain`; returns their paths."""
    features = run([ROOT / "scripts/features.sh"], capture_output=True, text=True).stdout.split()
    # A test of the program's crate makes cargo build the program, with the same features as the other tests.
    command = ["cargo", "test", "--no-run", "--quiet", "--locked", "--workspace", *features, "--message-format", "json-render-diagnostics",
               "--lib", "--test", "explain", "--test", "architecture"]
    environment = {**os.environ, "CARGO_INCREMENTAL": "0", "CARGO_TARGET_DIR": str(TARGET)}
    made = run(command, cwd=TREE, env=environment, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in made.splitlines():
        one = json.loads(line)
        if one.get("executable"):
            found[one["target"]["name"], one["profile"]["test"]] = one["executable"]
    return found["smbscope", False], [found["smbscope_analysis", True], found["explain", True]]


class Runs:
    """The tests and captures, and what decides something in each of them."""

    def __init__(self, smbscope, binaries, at_most=None):
        self.smbscope, self.reached, self.verdicts, self.at_most = smbscope, {}, {}, at_most
        self.tests, self.captures = [], []
        for binary in binaries:
            names = run([binary, "--list", "--format", "terse"], capture_output=True, text=True).stdout.splitlines()
            names = [name.removesuffix(": test") for name in names if name.endswith(": test")]
            if "explain" not in pathlib.Path(binary).name:
                names = [name for name in names if name.startswith("explain::")]
            # Random input decides at random.
            self.tests += [(binary, name) for name in names if not name.startswith("any_input::")]
        folder = WORK / "captures"
        run([sys.executable, HERE / "make.py", folder], stdout=subprocess.DEVNULL)
        with open(HERE / "expected.tsv", newline="", encoding="utf-8") as table:
            self.captures = [folder / (row["name"] + ".pcap") for row in csv.DictReader(table, delimiter="\t")]

    def environment(self, mutant=None, reached=None):
        more = {"SMBSCOPE_MUTANT": mutant, "SMBSCOPE_MUTANTS_REACHED": reached, "RUST_TEST_THREADS": "1", "RUST_BACKTRACE": "0"}
        return {**os.environ, **{name: str(value) for name, value in more.items() if value is not None}}

    def passes(self, tests, **more):
        """Whether all these tests pass."""
        for binary in {binary for binary, _ in tests}:
            names = [name for of, name in tests if of == binary]
            try:
                subprocess.run([binary, "--exact", *names], env=self.environment(**more), check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=HANGS_AFTER_S)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                return False
        return True

    def verdict(self, capture, **more):
        try:
            state, finding, _ = check.verdict(self.smbscope, capture, env=self.environment(**more), timeout=HANGS_AFTER_S)
        except subprocess.TimeoutExpired:
            return ("hangs",)
        return (state, finding and finding["trouble"], finding and finding["owner"]["actor"])

    def learn(self, one):
        """Runs a test or capture without a mutant, and keeps which mutants would change something."""
        with tempfile.TemporaryDirectory() as folder:
            reached = pathlib.Path(folder) / "reached"
            if isinstance(one, tuple):
                if not self.passes([one], reached=reached):
                    raise SystemExit(f"{one[1]} fails without a mutant")
            else:
                self.verdicts[one] = self.verdict(one, reached=reached)
            self.reached[one] = set(reached.read_text().split()) if reached.exists() else set()

    def outcome(self, mutant):
        """What kills a mutant; otherwise "survived" or "not reached"."""
        # Those in which few conditions decide something are about this one.
        here = sorted((one for one in self.reached if mutant in self.reached[one]), key=lambda one: len(self.reached[one]))
        tests = [one for one in here if isinstance(one, tuple)]
        for some in (tests[:4], tests[4:16], tests[16:]):
            if some and not self.passes(some, mutant=mutant):
                return "test"
        for capture in [one for one in here if not isinstance(one, tuple)][:self.at_most]:
            if self.verdict(capture, mutant=mutant) != self.verdicts[capture]:
                return f"capture {capture.stem}"
        return "survived" if here else "not reached"


def reasons():
    with open(HERE / "mutate/reasons.tsv", newline="", encoding="utf-8") as table:
        rows = csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(row["file"], row["value"], row["condition"]): row["reason"] for row in rows}


def short(name):
    return name.removeprefix(EXPLAIN)


def write_table(path, mutants, outcomes, known):
    counts = collections.defaultdict(collections.Counter)
    for one in mutants:
        outcome = outcomes[one["id"]]
        mark = "limits" if one["limit"] == "true" else outcome.split()[0] if outcome != "not reached" else outcome
        counts[short(one["file"])][mark] += 1
    lines = [*HEADER.format(today=datetime.date.today().isoformat()).splitlines(), ""]
    lines += ["| file | mutants | killed by a test | by a capture | survived | not reached | limits |", "|---|---|---|---|---|---|---|"]
    sums = collections.Counter()
    for name in sorted(counts):
        sums.update(counts[name])
    for name, marks in [*sorted(counts.items()), ("**all**", sums)]:
        of = sum(marks.values()) - marks["limits"]
        cells = [marks[mark] for mark in ("test", "capture", "survived", "not reached", "limits")]
        lines.append(f"| {name} | {of} | " + " | ".join(map(str, cells)) + " |")
    killed, of = sums["test"] + sums["capture"], sum(sums.values()) - sums["limits"]
    lines += ["", f"Killed: {killed} of {of} ({100 * killed / of:.0f} %). The others:", "", "| where | condition | as | outcome | reason |",
              "|---|---|---|---|---|"]
    for one in survivors(mutants, outcomes):
        text = one["text"] if len(one["text"]) <= 90 else one["text"][:87] + "..."
        text = text.replace("|", "\\|")
        reason = known.get((short(one["file"]), one["forced"], one["text"]), "")
        lines.append(f"| {short(one['file'])}:{one['line']} | `{text}` | {one['forced']} | {outcomes[one['id']]} | {reason} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def survivors(mutants, outcomes):
    return [one for one in mutants if one["limit"] == "false" and outcomes[one["id"]] in ("survived", "not reached")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--at-most", type=int, help="captures for each mutant, for a quick look: the most specific ones")
    args = parser.parse_args()
    mutants = mutated()
    if args.files:
        mutants = [one for one in mutants if any(name in one["file"] for name in args.files)]
    runs = Runs(*built(), args.at_most)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(runs.learn, [*runs.tests, *runs.captures]))
        counted = [one["id"] for one in mutants if one["limit"] == "false"]
        outcomes = {one["id"]: "limit" for one in mutants}
        outcomes.update(zip(counted, pool.map(runs.outcome, counted), strict=True))
    known = reasons()
    unexpected = 0
    for one in survivors(mutants, outcomes):
        is_known = (short(one["file"]), one["forced"], one["text"]) in known
        unexpected += not is_known
        print(f"{outcomes[one['id']]}{' (known)' if is_known else ''}: {short(one['file'])}:{one['line']}: {one['text']} as {one['forced']}")
    lost = len(survivors(mutants, outcomes))
    print(f"killed: {len(counted) - lost} of {len(counted)}; {len(mutants) - len(counted)} limits")
    if args.table:
        write_table(args.table, mutants, outcomes, known)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
