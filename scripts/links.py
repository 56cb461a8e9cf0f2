#!/usr/bin/env python3
"""Checks that the files exist to which documents and code refer.

    scripts/links.py        exit code 1 when one is missing

It reads every tracked text file: relative links of Markdown files, each mention of a document (`docs/...md`,
`docs/...json`), and the paths in backticks of the documents at the top (`crates/...`, `tests/...` and so on). Each
document below `docs/` must be in the index, `docs/README.md`.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = {".md", ".rs", ".c", ".h", ".sql", ".py", ".sh", ".toml", ".yml", ".html", ".js"}
FOLDERS = r"(?:crates|tests|scripts|fuzz|bench|docs|\.github)"
LINK = re.compile(r"\]\(([^)#\s]+)[^)\s]*\)")
MENTION = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|json)\b")
PATH = re.compile(rf"`({FOLDERS}/[\w./-]*)`")


def targets(path, text):
    """Pairs of an offset and the file that is referred to there."""
    if path.suffix == ".md":
        for match in LINK.finditer(text):
            if not re.match(r"[a-z]+:", match[1]):
                yield match.start(1), path.parent / match[1]
        if path.parent == ROOT:
            for match in PATH.finditer(text):
                yield match.start(1), ROOT / match[1]
    if path.name != "links.py":
        for match in MENTION.finditer(text):
            yield match.start(), ROOT / match[0]


def main():
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\0")
    missing = 0
    for name in sorted(filter(None, listed)):
        path = ROOT / name
        if not (path.suffix in TEXT or path.name == "Makefile") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        wrong = set()
        for offset, target in targets(path, text):
            if not target.exists() and "NAME" not in target.parts:
                target = target.resolve()
                shown = target.relative_to(ROOT) if target.is_relative_to(ROOT) else target
                wrong.add((text.count("\n", 0, offset) + 1, str(shown)))
        for line, target in sorted(wrong):
            print(f"{name}:{line}: there is no {target}")
        missing += len(wrong)
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for name in listed:
        if name.startswith("docs/") and name.endswith(".md") and f"({name[5:]})" not in index + "(README.md)":
            print(f"docs/README.md: {name} is not in the index")
            missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
