"""Captures cut to headers: whether smbscope finds every operation whose header is still there.

The headers are looked up in the bytes of the uncut frames, so that an operation which nobody can
see any more (a later member of a compound, a message that begins at the end of a long segment) is
not called lost, and one that can be seen is not excused.
"""

import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass

import claims
import oracle
import rows as ours

SNAP_LENGTHS = (256, 128)


@dataclass(frozen=True)
class Header:
    """A message's header, and where in its frame it ends (through the session id, or the MID)."""

    frame: int
    end: int
    response: bool
    status: int


@dataclass
class Cut:
    """One file cut to one snap length."""

    operations: int
    expected: int
    missing: list
    unexpected: list
    retimed: int
    theirs: int


def headers_in(path):
    """All headers in a capture, by stream, protocol and number."""
    found = defaultdict(list)
    fields = ["frame.number", "tcp.stream", "frame.cap_len", "tcp.len", "tcp.payload"]
    arguments = [word for name in fields for word in ("-e", name)]
    lines = oracle.run(["-n", "-r", str(path), "-Y", "tcp.len > 0", "-T", "fields", *arguments])
    for line in lines.splitlines():
        number, stream, captured, length, payload = line.split("\t")
        if not payload:
            continue
        payload = bytes.fromhex(payload)
        # Padding behind a short packet is not counted twice: TCP's length says where it begins.
        begin = int(captured) - max(int(length), len(payload))
        for magic, protocol in ((b"\xfeSMB", 2), (b"\xffSMB", 1), (b"\xfdSMB", 3)):
            at = payload.find(magic)
            while at >= 0:
                header = payload[at : at + 64]
                add(found, header, protocol, int(stream), int(number), begin + at)
                at = payload.find(magic, at + 4)
    return found


def add(found, header, protocol, stream, frame, offset):
    value = lambda start, end: int.from_bytes(header[start:end], "little")  # noqa: E731
    if protocol == 2 and len(header) >= 48:
        at = Header(frame, offset + 48, bool(header[16] & 1), value(8, 12))
        found[stream, 2, value(24, 32)].append(at)
    elif protocol == 1 and len(header) >= 32:
        at = Header(frame, offset + 32, bool(header[9] & 0x80), value(5, 9))
        found[stream, 1, value(30, 32)].append(at)
    elif protocol == 3:
        found[stream, 3, None].append(Header(frame, offset + 52, False, 0))


def expect(row, headers, snap):
    """What can be known of a row in the cut capture; None when nothing can."""
    if row.command is None:
        return identity(row, row.request_start is not None, row.response_end is not None)
    numbered = headers[row.stream, row.protocol, row.message_id]
    if row.protocol == 1 and row.command == "Negotiate":
        numbered = numbered + [h for h in headers[row.stream, 2, 0] if h.response]
    requests = [h for h in numbered if not h.response]
    replies = [h for h in numbered if h.response and h.status == row.status]
    sent = row.sent is not None and reachable(requests, row.request_frame, snap)
    answered = row.status is not None and reachable(replies, row.response_frame, snap)
    return identity(row, sent, answered) if sent or answered else None


def reachable(headers, frame, snap):
    """Numbers are used again: a header in the row's own frame is the row's."""
    own = [header for header in headers if header.frame == frame]
    return any(header.end <= snap for header in own or headers)


def identity(row, sent, answered):
    return (
        row.stream, row.protocol, row.command, row.message_id, sent,
        row.status if answered else None,
    )  # fmt: skip


def compare(program, comparison, folder):
    headers = headers_in(comparison.path)
    cuts, srt = {}, {}
    for snap in SNAP_LENGTHS:
        path = folder / f"{snap}-{comparison.path.name.removesuffix('.gz')}"
        subprocess.run(
            ["editcap", "-s", str(snap), str(comparison.path), str(path)],
            check=True,
            capture_output=True,
        )
        rows = ours.read(program, path)
        for row in rows:
            row.stream = comparison.capture.frames.get(row.frame, (None, None))[0]
        expected = Counter(expect(row, headers, snap) for row in comparison.rows)
        expected.pop(None, None)
        got = Counter(identity(r, r.sent is not None, r.status is not None) for r in rows)
        times = Counter((r.message_id, r.times()) for r in comparison.rows)
        retimed = sum(
            1
            for r in rows
            if r.request_end is not None
            and r.response_end is not None
            and not times[r.message_id, r.times()]
        )
        cuts[snap] = Cut(
            operations=len(rows),
            expected=expected.total(),
            missing=list((expected - got).elements()),
            unexpected=list((got - expected).elements()),
            retimed=retimed,
            theirs=len(oracle.read(path).operations),
        )
        if snap == 256:
            fewer = claims.srt_rows(path)
            srt = {n: (c, fewer.get(n, 0)) for n, c in claims.srt_rows(comparison.path).items()}
        path.unlink()
    return cuts, srt
