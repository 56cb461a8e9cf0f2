#!/usr/bin/env python3
"""Checks the English of documents, comments and messages against a list of constructions (scripts/prose.txt).

    scripts/prose.py                     the whole repository; what scripts/prose-allow.txt permits is not an error
    scripts/prose.py PATH...             every finding below these files or folders, permitted or not
    scripts/prose.py --summary [PATH...] the number of findings for each construction and each folder
    scripts/prose.py --update            lowers the counts of scripts/prose-allow.txt to what is left
    scripts/prose.py --hash PATH...      prints with each finding the entry that permits its line
    scripts/prose.py --self-test         tests this script

It reads the Markdown files, and the comments and string literals of Rust, C, SQL, Python, shell, TOML, YAML and
Make files that git tracks. Code blocks, `inline code`, link targets, URLs and {placeholders} are not prose.
Exit code: 0 without findings, 1 with findings, 2 when the command line or a list is wrong.
"""

import argparse
import hashlib
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ROOT / "scripts/prose.txt"
ALLOWED = ROOT / "scripts/prose-allow.txt"
# They contain the constructions as data.
SKIPPED = {"scripts/prose.py", "scripts/prose.txt", "scripts/prose-allow.txt"}
# What separates two pieces of prose, and what replaces inline code. Neither is a word character or white space.
BREAK, CODE = "\x00", "\x01"


class Mask:
    """A copy of a text in which only prose is left; the rest is BREAK, so that offsets stay those of the file."""

    def __init__(self, text):
        self.text = text
        self.chars = [BREAK] * len(text)

    def show(self, begin, end):
        self.chars[begin:end] = self.text[begin:end]

    def put(self, begin, end, char):
        self.chars[begin:end] = [char] * (end - begin)

    def inline(self, begin, end):
        """Hides what is not prose within prose: `code`, URLs, {placeholders}."""
        body = "".join(self.chars[begin:end])
        for pattern in (r"``[^`]+``|`[^`\x00]*`", r"\b(?:https?|ftp|file)://[^\s)>\]\"]+", r"\{[^{}\n]{0,60}\}"):
            for match in re.finditer(pattern, body):
                self.put(begin + match.start(), begin + match.end(), CODE)


def markdown(text):
    mask = Mask(text)
    fence, code, was_blank, in_list = None, False, True, False
    offset = 0
    for line in text.splitlines(keepends=True):
        begin, end = offset, offset + len(line)
        offset = end
        bare = line.strip()
        opened = re.match(r"\s*(?:>\s*)*(```+|~~~+)", line)
        if fence:
            if opened and opened[1].startswith(fence) and bare.strip(">` ~") == "":
                fence = None
            continue
        if opened:
            fence = opened[1]
            continue
        if not bare:
            was_blank = True
            continue
        indented = line.startswith(("    ", "\t"))
        code = indented and not in_list and (was_blank or code)
        was_blank = False
        if code:
            continue
        if not indented and not line.startswith(" "):
            in_list = bool(re.match(r"(?:[-*+]|\d+[.)])\s", line))
        mask.show(begin, end)
        heading = re.match(r"#+\s|\|", bare)
        if heading:
            mask.put(end - 1, end, BREAK)
        if bare.startswith("|"):
            for match in re.finditer(r"\|", line):
                mask.put(begin + match.start(), begin + match.end(), BREAK)
    for match in re.finditer(r"\]\([^)\s]*\)", text):
        mask.put(match.start() + 1, match.end(), CODE)
    mask.inline(0, len(text))
    return mask


def c_like(text, line_comment, nested, strings):
    """Comments and string literals of Rust, C and SQL."""
    mask = Mask(text)
    length = len(text)
    at = 0
    comment_end = None  # where the last line comment ended, so that the next line continues it
    # What can begin a comment or a literal; everything before it is code.
    start = re.compile("|".join(["/\\*", "'", *([re.escape(line_comment)] if line_comment else []),
                                 *(['\"', '[bc]?r#*\"'] if strings else [])]))
    while at < length:
        found = start.search(text, at)
        if found is None:
            break
        at = found.start()
        if line_comment and text.startswith(line_comment, at):
            end = text.find("\n", at)
            end = length if end < 0 else end
            marker = re.match(r"//[/!]?|--|//", text[at:end])
            begin = at + marker.end()
            mask.show(begin, end)
            if comment_end is not None and text[comment_end:at].strip() == "" and text[comment_end:at].count("\n") == 1:
                mask.put(comment_end, begin, " ")
            if text[begin:end].strip() == "":
                mask.put(begin, end, BREAK)
            comment_end = end
            at = end
        elif text.startswith("/*", at):
            depth, end = 1, at + 2
            while end < length and depth:
                if nested and text.startswith("/*", end):
                    depth, end = depth + 1, end + 2
                elif text.startswith("*/", end):
                    depth, end = depth - 1, end + 2
                else:
                    end += 1
            mask.show(at + 2, max(at + 2, end - 2))
            for star in re.finditer(r"(?m)^[ \t]*\*(?!/)", text[at + 2 : end - 2]):
                mask.put(at + 2 + star.start(), at + 2 + star.end(), " ")
            at = end
        elif strings and (raw := re.compile(r"(?<![A-Za-z0-9_])(?:b|c)?r(#*)\"").match(text, at)):
            end = text.find('"' + raw[1], raw.end())
            end = length if end < 0 else end
            literal(mask, raw.end(), end, escapes=False)
            at = end + 1 + len(raw[1])
        elif strings and text[at] == '"':
            end = at + 1
            while end < length and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            literal(mask, at + 1, min(end, length), escapes=True)
            at = end + 1
        elif strings and (char := re.compile(r"'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'").match(text, at)):
            at = char.end()
        elif not strings and text[at] == "'":
            end = text.find("'", at + 1)
            at = length if end < 0 else end + 1
        else:
            at += 1
    fences(mask)
    mask.inline(0, length)
    return mask


def literal(mask, begin, end, escapes):
    body = mask.text[begin:end]
    if " " not in body.strip():
        return  # a name, not a sentence
    mask.show(begin, end)
    if escapes:
        for match in re.finditer(r"\\(\n\s*|u\{[^}]*\}|x..|.)", body):
            continues = match[1].startswith("\n") or match[1] in "\"'"
            mask.put(begin + match.start(), begin + match.end(), " " if continues else BREAK)


def fences(mask):
    """Hides fenced code in doc comments."""
    inside = False
    offset = 0
    for line in mask.text.splitlines(keepends=True):
        comment = re.match(r"\s*//[/!]\s*", line)
        if comment and line[comment.end() :].startswith("```"):
            mask.put(offset, offset + len(line), BREAK)
            inside = not inside
        elif inside and comment:
            mask.put(offset, offset + len(line), BREAK)
        else:
            inside = False
        offset += len(line)


def python(text):
    mask = Mask(text)
    starts = line_starts(text)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return hashes(text)
    middle = getattr(tokenize, "FSTRING_MIDDLE", None)
    last = None
    for token in tokens:
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.COMMENT:
            mask.show(begin + 1, end)
            if last is not None and text[last:begin].strip() == "" and text[last:begin].count("\n") == 1:
                mask.put(last, begin + 1, " ")
            last = end
        elif token.type == tokenize.STRING or (middle is not None and token.type == middle):
            quote = re.match(r"[A-Za-z]*(?:\"\"\"|'''|\"|')", text[begin:end])
            size = len(quote[0]) if quote and token.type == tokenize.STRING else 0
            literal(mask, begin + size, end - (len(quote[0].lstrip("rRbBfFuU")) if size else 0), escapes=True)
    mask.inline(0, len(text))
    return mask


def hashes(text):
    """Comments of shell, TOML, YAML and Make files."""
    mask = Mask(text)
    offset, last = 0, None
    for line in text.splitlines(keepends=True):
        match = re.match(r"(?:[^#'\"]|\"[^\"]*\"|'[^']*')*?(?:^|\s)(#+(?!!))", line)
        if match:
            begin, end = offset + match.end(1), offset + len(line.rstrip("\n"))
            mask.show(begin, end)
            if last is not None and text[last : offset + match.start(1)].strip() == "":
                mask.put(last, begin, " ")
            last = end
        else:
            last = None
        offset += len(line)
    mask.inline(0, len(text))
    return mask


READERS = {
    ".md": markdown,
    ".rs": lambda text: c_like(text, "//", nested=True, strings=True),
    ".c": lambda text: c_like(text, "//", nested=False, strings=True),
    ".h": lambda text: c_like(text, "//", nested=False, strings=True),
    ".sql": lambda text: c_like(text, "--", nested=False, strings=False),
    ".py": python,
    ".sh": hashes,
    ".toml": hashes,
    ".yml": hashes,
    ".yaml": hashes,
}


def reader(path):
    return hashes if Path(path).name == "Makefile" else READERS.get(Path(path).suffix)


def line_starts(text):
    starts = [0]
    for match in re.finditer("\n", text):
        starts.append(match.end())
    return starts


def flatten(mask):
    """White space and breaks as one character each, with the offset in the file of every character that is left."""
    flat, offsets = [], []
    for match in re.finditer(r"[\s\x00]+|[^\s\x00]+", "".join(mask.chars)):
        piece = match[0]
        if piece[0] == BREAK or piece[0].isspace():
            is_break = BREAK in piece or re.search(r"\n[ \t]*\n", piece)
            flat.append(BREAK if is_break else " ")
            offsets.append(match.start())
        else:
            flat.append(piece)
            offsets.extend(range(match.start(), match.end()))
    return "".join(flat), offsets


def patterns():
    found = []
    for number, line in enumerate(WORDS.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, tab, suggestion = line.partition("\t")
        if not tab:
            stop(f"{WORDS}:{number}: expected REGEX<TAB>SUGGESTION")
        try:
            found.append((re.compile(pattern, re.IGNORECASE if "(?-i)" not in pattern else 0), suggestion.strip()))
        except re.error as error:
            stop(f"{WORDS}:{number}: invalid regular expression: {error}")
    return found


def stop(message):
    print(f"prose: {message}", file=sys.stderr)
    sys.exit(2)


class Finding:
    def __init__(self, path, line, column, phrase, suggestion, source):
        self.path, self.line, self.column = path, line, column
        self.phrase, self.suggestion = phrase, suggestion
        self.hash = hashlib.sha256(source.strip().encode()).hexdigest()[:10]

    def __str__(self):
        return f"{self.path}:{self.line}:{self.column}: `{self.phrase}`: {self.suggestion}"


def check_text(path, text, words):
    flat, offsets = flatten(reader(path)(text))
    starts, lines = line_starts(text), text.split("\n")
    found = []
    for pattern, suggestion in words:
        for match in pattern.finditer(flat):
            begin = match.start()
            while begin < match.end() and not flat[begin].isalnum():
                begin += 1
            if begin == match.end():
                continue
            offset = offsets[begin]
            line = next_line(starts, offset)
            phrase = flat[begin : match.end()].strip(BREAK + CODE + " ")
            found.append(Finding(path, line + 1, offset - starts[line] + 1, phrase, suggestion, lines[line]))
    found.sort(key=lambda f: (f.line, f.column))
    return found


def next_line(starts, offset):
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts[middle] <= offset else (low, middle)
    return low


def tracked(paths):
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths],
        check=True, capture_output=True, text=True,
    ).stdout
    return sorted(p for p in listed.split("\0") if p and p not in SKIPPED and reader(p) and (ROOT / p).is_file())


class Allowed:
    """scripts/prose-allow.txt: PATH-PREFIX COUNT REASON, and line:HASH PATH REASON."""

    def __init__(self):
        self.counts, self.lines, self.comments = {}, {}, []
        if not ALLOWED.exists():
            return
        for number, line in enumerate(ALLOWED.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                self.comments.append(line)
                continue
            words = line.split(None, 2)
            if len(words) < 3:
                stop(f"{ALLOWED}:{number}: expected PATH COUNT REASON or line:HASH PATH REASON")
            if words[0].startswith("line:"):
                self.lines[(words[0][5:], words[1])] = words[2]
            elif words[1].isdigit():
                self.counts[words[0]] = (int(words[1]), words[2])
            else:
                stop(f"{ALLOWED}:{number}: `{words[1]}` is not a count")

    def entry(self, path):
        """The longest prefix of a path that has a count."""
        fits = [p for p in self.counts if path == p or path.startswith(p.rstrip("/") + "/")]
        return max(fits, key=len) if fits else None

    def write(self):
        lines = list(self.comments)
        lines += [f"{path} {count} {reason}" for path, (count, reason) in sorted(self.counts.items())]
        lines += [f"line:{key} {path} {reason}" for (key, path), reason in sorted(self.lines.items(), key=str)]
        ALLOWED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def relative(path):
    try:
        return str(Path(path).resolve().relative_to(ROOT))
    except ValueError:
        stop(f"{path} is outside of the repository")


def main():
    parser = argparse.ArgumentParser(description="Checks the English of documents, comments and messages.")
    parser.add_argument("paths", nargs="*", help="files or folders; all findings below them are listed")
    parser.add_argument("--summary", action="store_true", help="count findings by construction and folder")
    parser.add_argument("--update", action="store_true", help="lower the counts of scripts/prose-allow.txt")
    parser.add_argument("--hash", action="store_true", help="print with each finding the entry that permits its line")
    parser.add_argument("--self-test", action="store_true", help="test this script")
    args = parser.parse_args()
    words = patterns()
    if args.self_test:
        return self_test(words)
    allowed = Allowed()
    files = tracked([relative(p) for p in args.paths])
    if args.paths and not files:
        stop(f"no file to check below {' '.join(args.paths)}")
    found, unused = [], set(allowed.lines)
    for path in files:
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        for finding in check_text(path, text, words):
            key = (finding.hash, path)
            if key in allowed.lines:
                unused.discard(key)
            else:
                found.append(finding)
    if args.summary:
        return summary(found)
    if args.paths:
        for finding in found:
            print(finding, f"  [line:{finding.hash} {finding.path} REASON]" if args.hash else "")
        print(f"prose: {len(found)} findings in {len(files)} files", file=sys.stderr)
        return 1 if found else 0
    for key in sorted(unused):
        print(f"prose: line:{key[0]} {key[1]} permits nothing any more: remove it (scripts/prose.py --update)", file=sys.stderr)
        if args.update:
            del allowed.lines[key]
    return ratchet(found, allowed, args.update)


def summary(found):
    for title, key in (("construction", lambda f: f.suggestion), ("folder", lambda f: "/".join(f.path.split("/")[:3]))):
        print(f"by {title}:")
        for name, count in Counter(map(key, found)).most_common():
            print(f"{count:7}  {name}")
    print(f"{len(found):7}  in total")
    return 0


def ratchet(found, allowed, update):
    """Findings without an entry are errors; so are more findings than an entry's count."""
    by_entry = {}
    for finding in found:
        by_entry.setdefault(allowed.entry(finding.path), []).append(finding)
    failed = False
    for finding in by_entry.pop(None, []):
        print(finding)
        failed = True
    for path, (count, reason) in list(allowed.counts.items()):
        left = by_entry.get(path, [])
        if len(left) > count:
            for finding in left:
                print(finding)
            print(f"prose: {path}: {len(left)} findings, {count} are permitted (scripts/prose-allow.txt)", file=sys.stderr)
            failed = True
        elif len(left) < count and update:
            if left:
                allowed.counts[path] = (len(left), reason)
            else:
                del allowed.counts[path]
        elif len(left) < count:
            print(f"prose: {path}: {len(left)} findings are left of {count}: lower it with scripts/prose.py --update", file=sys.stderr)
    if update:
        allowed.write()
    if failed:
        print("prose: see the table in CONTRIBUTING.md for plain wordings", file=sys.stderr)
    return 1 if failed else 0


# File name, text, and the phrases that must be found in it.
TESTS = [
    ("a.md", "What is told.\n", ["told"]),
    ("a.md", "It stands\nin the table.\n", ["stands in"]),
    ("a.md", "```\nnobody is told\n```\nFine.\n", []),
    ("a.md", "Run:\n\n    nobody told\n\nThere is no file. It is no file.\n", ["is no"]),
    ("a.md", "Use `told` or [this](beside/nobody.md).\n", []),
    ("a.md", "- a point\n\n    that goes on here\n", ["goes on"]),
    ("a.md", "There are no files; there\nis none. These are no files.\n", ["are no"]),
    ("a.md", "It is no longer there, and is not told.\n", ["told"]),
    ("a.md", "| a | told |\n|---|---|\n| is | no file |\n", ["told"]),
    ("a.rs", "/// What stands\n/// in a row.\nfn told() {}\n", ["stands in"]),
    ("a.rs", "//! A `told` b.\n//!\n//! ```\n//! nobody\n//! ```\n", []),
    ("a.rs", 'let a = "beside"; let b = "it is \\\n    no file";', ["is no"]),
    ("a.rs", "let c = '\"'; // anew\nlet d: &'a str = \"under way now\";", ["anew", "under way"]),
    ("a.rs", 'let a = r#"say "nobody" here"#; /* so many /* nested */ mended */', ["nobody", "so many", "mended"]),
    ("a.rs", 'let a = "is {} no file";', []),
    ("a.rs", 'let a = "this is"; let b = "no file at all";', []),
    ("a.sql", "-- Files that nobody\n-- opens.\nselect 'told' as beside\n", ["nobody"]),
    ("a.py", "# is told\nx = 'told'\ny = 'told off here'\n", ["told", "told"]),
    ("a.sh", "#!/bin/sh\necho told # goes on\n", ["goes on"]),
    ("Makefile", "# What is\n# none.\nnone:\n", ["is none"]),
    ("a.md", "Unless the file is open, no less the size.\n", ["less the"]),
    ("a.md", "A size from which on it waits, 3 from 1 s on. From now on, from a to b on Monday.\n", ["from which on", "from 1 s on"]),
    ("a.md", "It has 3 in all. In all cases, in all of them.\n", ["in all"]),
    ("a.md", "A.\n\nOf a trace, it shows names. One of a trace. Of course it does.\n", ["Of a"]),
    ("a.rs", "/// Of the path.\n/// Those of it.\nfn f() {}\n/// Those of it.\nfn g() {}\n", ["Of the", "Those of"]),
    ("a.md", "A further path goes further than that, with own files, and is to be sent again.\n",
     ["further path", "with own", "is to be", "sent again"]),
]


def self_test(words):
    failed = 0
    for path, text, expected in TESTS:
        found = [f.phrase for f in check_text(path, text, words)]
        if found != expected:
            failed += 1
            print(f"prose: self test: {path}: {text!r}: found {found}, expected {expected}", file=sys.stderr)
    position = check_text("a.rs", "\n\nlet a = 1; // x told\n", words)[0]
    if (position.line, position.column) != (3, 17):
        failed += 1
        print(f"prose: self test: position {position.line}:{position.column}, expected 3:17", file=sys.stderr)
    print(f"prose: self test: {len(TESTS) + 1 - failed} passed, {failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
