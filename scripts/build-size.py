#!/usr/bin/env python3
"""How much the first build (`make demo`) compiles, against the recorded figures (build-size.txt).

  scripts/build-size.py crates   the number of crates; takes a second
  scripts/build-size.py lines    also the lines of LLVM code of each of our crates; compiles them (minutes)

`--record` writes the figures instead: do that when more is worth its time, and say why in the commit. Lines are those
that the compiler hands to LLVM, before any optimisation: most of the time of a build is spent on them, and they are the
same on every machine.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
RECORDED = HERE.with_suffix(".txt")
DEMO = ["-p", "smbscope", "--no-default-features", "--locked"]
# A crate may grow by this much before somebody has to look at it.
TOLERANCE = 1.05
FOLDER = "SMBSCOPE_BUILD_SIZE"


def main() -> int:
    if FOLDER in os.environ:
        return compile_one(sys.argv[1:], Path(os.environ[FOLDER]))
    arguments = set(sys.argv[1:])
    if not arguments or arguments - {"crates", "lines", "--record"}:
        print(__doc__, file=sys.stderr)
        return 2
    found = {"crates": crates()}
    if "lines" in arguments:
        found |= lines()
    recorded = read()
    if "--record" in arguments:
        write(recorded | found if "lines" not in arguments else found)
        return 0
    return compare(found, recorded)


def crates() -> int:
    """Crates of the demo, those of build scripts and macros among them."""
    tree = ["cargo", "tree", *DEMO, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]
    shown = subprocess.run(tree, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True).stdout
    return len({" ".join(line.split()[:2]) for line in shown.splitlines() if line})


def lines() -> dict[str, int]:
    """Builds the demo with this script in front of the compiler of our own crates."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")) / "build-size"
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"RUSTC_WORKSPACE_WRAPPER": str(HERE), FOLDER: str(folder)}
    subprocess.run(["cargo", "build", "--profile", "demo", *DEMO], cwd=HERE.parent, check=True, env=environment)
    return {path.stem: int(path.read_text()) for path in folder.glob("*.lines")}


def compile_one(command: list[str], folder: Path) -> int:
    """Compiles one of our crates as it was asked to, and counts its lines."""
    name = command[command.index("--crate-name") + 1] if "--crate-name" in command else "___"
    if name in ("___", "build_script_build"):
        return subprocess.run(command, close_fds=False).returncode
    code = folder / f"{name}.ll"
    extra = [f"--emit=llvm-ir={code}", "-Ccodegen-units=1", "-Cno-prepopulate-passes"]
    result = subprocess.run([*command, *extra], close_fds=False).returncode
    if result == 0:
        with code.open("rb") as file:
            code.with_suffix(".lines").write_text(str(sum(1 for _ in file)))
        code.unlink()
    return result


def compare(found: dict[str, int], recorded: dict[str, int]) -> int:
    grown = []
    for name, value in sorted(found.items()):
        before = recorded.get(name, 0)
        limit = before if name == "crates" else int(before * TOLERANCE)
        print(f"{name}: {value:,} (recorded: {before:,})")
        if value > limit:
            grown.append(f"{name} grew from {before:,} to {value:,}")
    if len(found) > 1:
        grown += [f"{name} is recorded, but was not compiled" for name in sorted(recorded.keys() - found.keys())]
    for what in grown:
        print(f"build-size: {what}: scripts/build-size.py explains what to do", file=sys.stderr)
    return 1 if grown else 0


def read() -> dict[str, int]:
    pairs = [line.split() for line in RECORDED.read_text().splitlines() if line and line[0] != "#"]
    return {name: int(value) for name, value in pairs}


def write(figures: dict[str, int]) -> None:
    head = "# What make demo compiles: crates, and lines of LLVM code of ours. scripts/build-size.py writes this file.\n"
    RECORDED.write_text(head + "".join(f"{name} {value}\n" for name, value in sorted(figures.items())))


if __name__ == "__main__":
    sys.exit(main())
