#!/usr/bin/env python3
"""Compares smbscope with tshark, message by message, and writes docs/measurements/decoder.md.

    tests/tshark/compare.py [--smbscope PATH] [--captures DIR] [--markdown FILE] [FILE...]

Every difference is listed with its file, its frame and both values. One that no entry of
explain.py covers makes the exit code 1.
"""

import argparse
import concurrent.futures
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import claims
import cut
import document
import explain
import oracle
import readme
import rows as ours
from explain import ntstatus

ROOT = Path(__file__).resolve().parents[2]
MICROSECOND = 1_000
PORTS = {139, 445}


@dataclass
class Difference:
    """One thing on which the two do not agree; None is "has none"."""

    file: str
    kind: str
    frame: int | None
    what: str
    ours: object
    theirs: object
    row: object = None
    operation: object = None
    reason: str | None = None

    def __str__(self):
        return (
            f"{self.file} frame {self.frame}: {self.what}: {self.kind}: "
            f"smbscope {self.ours}, tshark {self.theirs}"
        )


@dataclass
class Result:
    """The comparison of one file."""

    file: str
    keys: bool
    settings: str
    ports: list
    packets: int = 0
    rows: list = field(default_factory=list)
    ours: Counter = field(default_factory=Counter)
    theirs: Counter = field(default_factory=Counter)
    checked: Counter = field(default_factory=Counter)
    differences: list = field(default_factory=list)
    cuts: dict = field(default_factory=dict)
    claims: Counter = field(default_factory=Counter)
    # Request messages as tshark shows them.
    requests: Counter = field(default_factory=Counter)
    # Calls by command of `-z smb2,srt`: uncut, and cut to 256 bytes.
    srt: dict = field(default_factory=dict)


class Comparison:
    """One capture, with its keys or without."""

    def __init__(self, program, path, keys=()):
        self.path, self.keys = path, keys
        self.all_keys = keys_of(path)
        self.rows = ours.read(program, path, keys)
        ports = sorted({row.server_port for row in self.rows} - PORTS - {None})
        self.capture = oracle.read(path, keys, ports)
        self.result = Result(path.name, bool(keys), self.capture.settings, ports)
        self.result.packets = self.capture.packets
        self.result.rows = self.rows
        for row in self.rows:
            row.stream = self.capture.frames.get(row.frame, (None, None))[0]

    def with_keys(self):
        """What tshark sees with the capture's keys, for explanations."""
        if not hasattr(self, "unlocked"):
            self.unlocked = oracle.read(self.path, self.all_keys)
        return self.unlocked

    def has_header(self, row, frame, response):
        """Whether the header of the row's message is in the frame's bytes."""
        if not hasattr(self, "headers"):
            self.headers = cut.headers_in(self.path)
        found = self.headers[row.stream, row.protocol, row.message_id]
        return any(header.frame == frame and header.response == response for header in found)

    def time_of(self, frame):
        return self.capture.frames[frame][1]

    def differ(self, kind, what, mine, theirs, row=None, operation=None, frame=None):
        frame = operation.frame if operation else row.frame if row else frame
        difference = Difference(
            self.path.name, kind, frame, what, mine, theirs, row, operation
        )
        difference.reason = explain.reason(difference, self)
        self.result.differences.append(difference)

    def run(self):
        clear = [row for row in self.rows if row.command is not None]
        self.result.ours = Counter((row.protocol, row.command) for row in clear)
        operations = self.capture.operations
        self.result.theirs = Counter((o.protocol, o.name) for o in operations)
        groups = defaultdict(lambda: ([], []))
        for row in clear:
            key = (row.stream, row.protocol, row.message_id, row.command)
            groups[key][0].append(row)
        for operation in operations:
            key = (operation.stream, operation.protocol, operation.message_id, operation.name)
            groups[key][1].append(operation)
        for key, (mine, theirs) in groups.items():
            self.group(key, mine, theirs)
        for message in self.capture.messages:
            if message.stream is None:
                name = oracle.command_name(message.protocol, message.command)
                self.differ("datagram", f"{name} in UDP", None, message.frame, frame=message.frame)
        self.sealed()
        self.result.requests = Counter(
            f"SMB{message.protocol} {oracle.command_name(message.protocol, message.command)}"
            for message in self.capture.messages
            if message.response is False and message.stream is not None
        )
        self.result.claims = claims.measure(self.capture)
        self.result.differences.sort(key=lambda d: (d.frame or 0, d.kind))
        return self.result

    def group(self, key, mine, theirs):
        """Operations of one number: those at the same time belong together, then by order."""
        self.result.checked["ids"] += min(len(mine), len(theirs))
        pairs, rest = [], list(mine)
        lonely = []
        for operation in theirs:
            same = next((row for row in rest if self.same_time(row, operation)), None)
            if same is None:
                lonely.append(operation)
            else:
                rest.remove(same)
                pairs.append((same, operation))
        while rest and lonely:
            pairs.append((rest.pop(0), lonely.pop(0)))
        what = f"{key[3]} {key[2]:#x}"
        for row in rest:
            self.differ("operation", what, row.frame, None, row=row)
        for operation in lonely:
            self.differ("operation", what, None, operation.frame, operation=operation)
        for row, operation in pairs:
            self.pair(what, row, operation)

    @staticmethod
    def same_time(row, operation):
        if operation.request is not None:
            return row.sent == operation.request_end
        return row.sent is None and row.answered == operation.reply_end

    def pair(self, what, row, operation):
        context = {"row": row, "operation": operation}
        reply = operation.reply
        if (row.sent is None) != (operation.request is None):
            self.differ("request", what, row.sent, operation.request_end, **context)
        elif operation.request is not None:
            self.equal("request time", what, row.sent, operation.request_end, context)
        # Members of an AndX chain that were not carried out have no status.
        answered = row.status is not None or row.response_end is not None
        if answered != (reply is not None):
            self.differ("reply", what, row.status, reply and ntstatus(reply.status), **context)
        if not answered or reply is None:
            return
        if reply.response:
            self.equal("status", what, row.status, ntstatus(reply.status), context)
        self.names(what, row, operation, context)
        if operation.interim is not None and operation.protocol == 2:
            self.equal("interim time", what, row.pending_at, operation.interim.time, context)
        self.equal("reply time", what, row.answered, operation.reply_end, context)
        if row.sent is None or row.answered is None:
            return
        last = operation.more_replies[-1] if operation.more_replies else reply
        elapsed = row.answered - row.sent
        if last.response_time is None:
            self.differ("response time", what, elapsed, None, **context)
            return
        self.result.checked["response time"] += 1
        if abs(elapsed - last.response_time) > MICROSECOND:
            self.differ("response time", what, elapsed, last.response_time, **context)

    def equal(self, kind, what, mine, theirs, context):
        self.result.checked[kind] += 1
        if mine != theirs:
            self.differ(kind, what, mine, theirs, **context)

    def names(self, what, row, operation, context):
        """Names are compared if both have one."""
        request = operation.request
        if request is not None and request.path is not None:
            wanted = explain.path(request.path)
            self.equal("path", what, explain.path(row.path), wanted, context)
        share = (request and request.share) or operation.reply.share
        if share is not None and row.share is not None:
            self.equal("share", what, row.share.lower(), share.lower(), context)
        user = request and request.user
        if user is not None and row.user is not None:
            self.equal("user", what, row.user.lower(), user.lower(), context)

    def sealed(self):
        """Messages that stay encrypted: how many in each direction of each connection."""
        theirs, mine = Counter(), Counter()
        for message in self.capture.messages:
            if message.encrypted:
                theirs[message.stream, message.source] += 1
        for row in self.rows:
            if row.command is None:
                if row.request_start is not None:
                    mine[row.stream, f"{row.client}:{row.client_port}"] += 1
                if row.response_end is not None:
                    mine[row.stream, f"{row.server}:{row.server_port}"] += 1
        for key in sorted(theirs | mine):
            self.equal("encrypted", f"messages on stream {key[0]} from {key[1]}", mine[key], theirs[key], {})


def keys_of(path):
    """Keys of a capture: in a file next to it, or in its folder's README."""
    beside = path.with_name(path.name.split(".")[0] + ".keys")
    if beside.exists():
        lines = [line.strip() for line in beside.read_text().splitlines() if line.strip()]
        if all(len(line.split(",")[1]) <= 32 for line in lines):
            return lines
        # tshark takes session keys of 16 bytes only, and a Kerberos ticket's can be longer.
        directions = beside.with_suffix(".direction.keys").read_text().splitlines()
        return [line.strip() for line in directions if line.strip()]
    readme = path.with_name("README.md")
    row = re.compile(rf"^\| {re.escape(path.name)} \| ([0-9a-f]{{16}}) \| ([0-9a-f]{{32}}) \|")
    if readme.exists():
        found = [row.match(line) for line in readme.read_text().splitlines()]
        return [f'{m.group(1)},{m.group(2)},"",""' for m in found if m]
    return []


def captures_in(folder):
    names = ("*.pcap", "*.pcapng", "*.pcap.gz", "*.pcapng.gz", "*.pcap.zst", "*.pcapng.zst")
    # SMB Direct has no TCP stream in tshark; crates/capture/tests/rdma/captures.rs compares it.
    found = (path for name in names for path in folder.glob(name))
    return sorted(path for path in found if not path.name.startswith("smbdirect-"))


def program_in(root):
    for build in ("release", "debug"):
        if (program := root / "target" / build / "smbscope").exists():
            return str(program)
    return "smbscope"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smbscope", default=program_in(ROOT), help="the program to compare")
    parser.add_argument("--captures", type=Path, default=ROOT / "../shared/captures")
    parser.add_argument("--markdown", type=Path, help="write the result to this file")
    parser.add_argument("--all", action="store_true", help="list explained differences too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at a time")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    return parser.parse_args()


def one_file(path, program):
    """Everything about one capture: without keys, and with them if there are any."""
    results = []
    keys = keys_of(path)
    for some in [(), keys] if keys else [()]:
        comparison = Comparison(program, path, some)
        result = comparison.run()
        if not some:
            with tempfile.TemporaryDirectory(prefix="smbscope-tshark-") as folder:
                result.cuts, result.srt = cut.compare(program, comparison, Path(folder))
        # Only the document's needs travel between processes.
        for difference in result.differences:
            difference.row = difference.operation = None
        results.append(result)
    return results


def main():
    options = arguments()
    files = options.files or [
        *captures_in(options.captures.resolve()),
        *captures_in(ROOT / "tests/fixtures"),
    ]
    results = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        todo = [pool.submit(one_file, path, options.smbscope) for path in files]
        for done in todo:
            for result in done.result():
                results.append(result)
                report(result, options.all)
    third = readme.compare(options.captures / "README.md", results)
    for row in third:
        print(f"  {row[0]}: {row[1]}: README {row[2]}, smbscope {row[3]}: {row[4]}")
    if options.markdown:
        options.markdown.write_text(document.render(results, third))
    unexplained = [d for r in results for d in r.differences if d.reason is None]
    lost = [c for r in results for c in r.cuts.values() if c.wrong()]
    print(
        f"{len(results)} comparisons, {len(unexplained)} unexplained differences, "
        f"{len(lost)} cut captures wrong"
    )
    return 1 if unexplained or lost else 0


def report(result, everything):
    explained = sum(d.reason is not None for d in result.differences)
    print(
        f"{result.file}{' with keys' if result.keys else ''}: {result.ours.total()} operations, "
        f"tshark {result.theirs.total()}, {explained} differences explained, "
        f"{len(result.differences) - explained} not"
    )
    for difference in result.differences:
        if difference.reason is None or everything:
            print(f"  {difference.reason or 'UNEXPLAINED'}: {difference}")
    for snap, done in result.cuts.items():
        for name, rows in done.wrong().items():
            for row in rows:
                print(f"  UNEXPLAINED: cut to {snap} bytes: {name}: {row}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
