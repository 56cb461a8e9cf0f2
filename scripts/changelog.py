#!/usr/bin/env python3
"""Checks the files of changelog.d and makes a section of CHANGELOG.md of them.

    scripts/changelog.py                       checks the files and prints the next section
    scripts/changelog.py --check               checks the files only
    scripts/changelog.py --release VERSION DATE  moves them into CHANGELOG.md as a section above the older ones

Exit code: 0 if all files have the right form, 1 otherwise.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER, CHANGELOG = ROOT / "changelog.d", ROOT / "CHANGELOG.md"
KINDS = ["added", "changed", "fixed", "removed"]
LENGTH_MAX = 600  # characters: about three sentences
RELEASES = "https://github.com/smbscope/smbscope/releases/tag"


def files():
    return sorted(path for path in FOLDER.iterdir() if path.name != "README.md")


def complaint(path):
    """What is wrong with a file, or None."""
    named = re.fullmatch(r"[a-z0-9-]+\.([a-z]+)\.md", path.name)
    if not named or named[1] not in KINDS:
        return f"expected NAME.KIND.md with a KIND of {', '.join(KINDS)}"
    text = path.read_text(encoding="utf-8").strip()
    if not text.endswith("."):
        return "expected sentences that end with a full stop"
    if text.startswith(("-", "*", "#")) or "\n\n" in text:
        return "expected one paragraph without list marker or heading"
    if len(text) > LENGTH_MAX:
        return f"{len(text)} characters; at most {LENGTH_MAX} (the manual belongs in docs/)"
    return None


def section():
    parts = []
    for kind in KINDS:
        texts = [path.read_text(encoding="utf-8").strip() for path in files() if path.name.endswith(f".{kind}.md")]
        if texts:
            parts.append(f"### {kind.capitalize()}\n\n" + "".join("- " + text.replace("\n", "\n  ") + "\n" for text in texts))
    return "\n".join(parts)


def release(version, date):
    text = CHANGELOG.read_text(encoding="utf-8")
    head, older = text.split("\n## ", 1)
    new = f"{head}\n## [{version}] - {date}\n\n{section()}\n## {older.rstrip()}\n[{version}]: {RELEASES}/v{version}\n"
    CHANGELOG.write_text(new, encoding="utf-8")
    for path in files():
        path.unlink()


def main(arguments):
    wrong = [f"changelog: {path.relative_to(ROOT)}: {why}" for path in files() if (why := complaint(path))]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    if wrong:
        return 1
    match arguments:
        case []:
            print(section(), end="")
        case ["--check"]:
            pass
        case ["--release", version, date]:
            release(version, date)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
