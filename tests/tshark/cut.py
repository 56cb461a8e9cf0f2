"""Captures cut to headers: whether smbscope finds every operation whose header is still there.

The headers are looked up in the bytes of the uncut frames, so that an operation which cannot be
seen any more (a later member of a compound, a message that begins at the end of a long segment) is
not called lost, and one that can be seen is not excused. Of SMB1 there are three special cases:

- a ReadRaw is answered by a block without header: it is there when its NetBIOS length is;
- a transaction's secondary request proves a transaction whose first message is missing, if it
  is answered;
- Samba's interim replies and oplock breaks lack the reply flag: what the server sends is not
  a request.
"""

import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass

import claims
import oracle
import rows as ours

SNAP_LENGTHS = (256, 128)
# Of SMB1.
TRANSACTIONS = {oracle.command_name(1, code) for code in oracle.SECONDARY.values()}


@dataclass(frozen=True)
class Header:
    """A message's header, and where in its frame it ends (through the session id, or the
    MID; a related member of a compound through the MessageId)."""

    frame: int
    end: int
    port: int
    response: bool = False
    status: int = 0
    command: int | None = None

    def is_reply_to(self, row):
        """Whether the row's server sent it."""
        return self.response or self.port == row.server_port != row.client_port


@dataclass
class Cut:
    """One file cut to one snap length."""

    operations: int
    expected: int
    missing: list
    unexpected: list
    # Rows whose times or sizes are no longer those of the whole file.
    changed: list
    theirs: int

    def wrong(self):
        named = {"missing": self.missing, "unexpected": self.unexpected, "changed": self.changed}
        return {name: rows for name, rows in named.items() if rows}


def headers_in(path):
    """All headers in a capture, by stream, protocol and number; and what the frames begin with, as
    blocks by stream, "block" and length."""
    found = defaultdict(list)
    fields = [
        "frame.number", "tcp.stream", "tcp.srcport", "frame.cap_len", "tcp.len", "tcp.payload",
    ]  # fmt: skip
    arguments = [word for name in fields for word in ("-e", name)]
    lines = oracle.run(["-n", "-r", str(path), "-Y", "tcp.len > 0", "-T", "fields", *arguments])
    for line in lines.splitlines():
        number, stream, port, captured, length, payload = line.split("\t")
        if not payload:
            continue
        payload = bytes.fromhex(payload)
        # Padding behind a short packet is not counted twice: TCP's length says where it begins.
        begin = int(captured) - max(int(length), len(payload))
        place = int(stream), int(number), int(port)
        if payload[0] == 0 and len(payload) >= 4:
            block = Header(int(number), begin + 4, int(port))
            found[int(stream), "block", 4 + int.from_bytes(payload[1:4], "big")].append(block)
        for magic, protocol in ((b"\xfeSMB", 2), (b"\xffSMB", 1), (b"\xfdSMB", 3)):
            at = payload.find(magic)
            while at >= 0:
                header = payload[at : at + 64]
                begins = at >= 4 and payload[at - 4] == 0 and payload[at - 3 : at] >= b"\0\0\x40"
                add(found, header, protocol, *place, begin + at, not begins)
                at = payload.find(magic, at + 4)
    return found


def add(found, header, protocol, stream, frame, port, offset, member):
    value = lambda start, end: int.from_bytes(header[start:end], "little")  # noqa: E731
    if protocol == 2 and len(header) >= 48:
        # A related member of a compound has tree and session of the one before it, unless it has an
        # AsyncId instead.
        size = 32 if member and header[16] & 6 == 4 else 48
        at = Header(frame, offset + size, port, bool(header[16] & 1), value(8, 12), value(12, 14))
        found[stream, 2, value(24, 32)].append(at)
    elif protocol == 1 and len(header) >= 32:
        at = Header(frame, offset + 32, port, bool(header[9] & 0x80), value(5, 9), header[4])
        found[stream, 1, value(30, 32)].append(at)
    elif protocol == 3:
        found[stream, 3, None].append(Header(frame, offset + 52, port))


def expect(row, headers, snap):
    """What can be known of a row in the cut capture; None when nothing can."""
    if row.command is None:
        return identity(row, row.request_start is not None, row.response_end is not None)
    numbered = headers[row.stream, row.protocol, row.message_id]
    if row.protocol == 1 and row.command == "Negotiate":
        numbered = numbered + [h for h in headers[row.stream, 2, 0] if h.response]
    replies = [h for h in numbered if h.is_reply_to(row)]
    if row.sent is None and row.status is None:
        # Sent by the server unasked.
        told = any(h.frame == row.response_frame and h.end <= snap for h in replies)
        return identity(row, False, False) if told else None
    replies = [h for h in replies if h.status == row.status]
    if row.command == "ReadRaw" and row.status == 0:
        replies = [
            block
            for block in headers[row.stream, "block", row.response_wire_bytes]
            if block.is_reply_to(row) and block.frame == row.response_frame
        ]
    requests = [h for h in numbered if not h.response]
    answered = row.status is not None and reachable(replies, row.response_frame, snap)
    sent = row.sent is not None and (
        reachable(requests, row.request_frame, snap)
        or answered and any(is_part(h, row) and h.end <= snap for h in requests)
    )
    return identity(row, sent, answered) if sent or answered else None


def behind(row, headers, snap):
    """What may be known of a later member of a compound whose request lies behind the cut: that it is
    there, by the lead (its request, or its reply where that lies behind the cut too) and the numbers,
    and what it is by any reply, also one that says to wait. None when not even the lead is there."""
    if not row.compound_index or row.lead is None:
        return None
    own, lead = (
        [h for h in headers[row.stream, 2, one.message_id] if not h.response]
        for one in (row, row.lead)
    )
    replies = [h for h in headers[row.stream, 2, row.lead.message_id] if h.response]
    if reachable(own, row.request_frame, snap) or not (
        reachable(lead, row.request_frame, snap)
        or reachable(replies, row.lead.response_frame, snap)
    ):
        return None
    answers = [(row.command, row.status), (row.command, None), (None, None)]
    return [
        (row.stream, 2, command, row.message_id, sent, status)
        for command, status in answers
        for sent in (True, False)
    ]


def find(rows, headers, snap, found):
    """The operations that are expected of a cut capture, as far as they are missing, and those that it
    shows and should not. The next request's number, if it is there, shows how many members of a compound lie behind the
    cut: only the first of them, which the header before it proves, must be found."""
    expected, tolerated, told = Counter(), [], set()
    for row in rows:
        known = behind(row, headers, snap)
        if known is None:
            expected[expect(row, headers, snap)] += 1
        else:
            # Rows come in the order of their ends: the first behind the cut has the least place.
            tolerated.append((row.connection, row.compound, row.compound_index, known))
    expected.pop(None, None)
    left, missing = found - expected, expected - found
    count = expected.total()
    for connection, compound, _, known in sorted(tolerated, key=lambda one: one[:3]):
        one = next((one for one in known if left[one] > 0), None)
        if one is not None:
            left[one] -= 1
        is_first = (connection, compound) not in told
        told.add((connection, compound))
        count += one is not None or is_first
        if one is None and is_first:
            missing[known[-2]] += 1
    return count, list(missing.elements()), list((+left).elements())


def is_part(header, row):
    """Whether it is a secondary request of the row's transaction."""
    return (
        row.protocol == 1
        and header.command in oracle.SECONDARY
        and oracle.command_name(1, oracle.SECONDARY[header.command]) == row.command
        and row.request_frame <= header.frame <= row.response_frame
    )


def reachable(headers, frame, snap):
    """Numbers are used again: a header in the row's own frame is the row's."""
    own = [header for header in headers if header.frame == frame]
    return any(header.end <= snap for header in own or headers)


def identity(row, sent, answered):
    return (
        row.stream, row.protocol, row.command, row.message_id, sent,
        row.status if answered else None,
    )  # fmt: skip


def agrees(row, whole):
    """A side that is not there has no times; a transaction of which only a secondary request is
    there has that one's end alone, and an interim reply has bytes, but no times. All else is as in
    the whole file."""
    requests = [(None,) * 3, whole.request()]
    if row.command in TRANSACTIONS:
        requests.append((None, whole.request_end, None))
    interim = row.pending_at and row.response_wire_bytes
    replies = [whole.response(), (None, None, interim)]
    if whole.pending_at and row.request_end is None:
        # An interim reply to a request that is not there is not kept.
        replies.append((*whole.response()[:2], row.response_wire_bytes))
    both = row.request_end is not None and row.response_end is not None
    return (
        row.request() in requests
        and row.response() in replies
        and row.pending_at in (None, whole.pending_at)
        and (row.server_ns == whole.server_ns or row.server_ns is None and not both)
    )


def stands(row, whole):
    """A member that was not captured is where the whole file has it."""
    return row.request_frame in (None, whole.request_frame) and row.response_frame in (
        None,
        whole.response_frame,
    )


def changed(rows, before):
    numbered = defaultdict(list)
    for row in before:
        for command in {row.command, None}:
            numbered[row.stream, row.protocol, command, row.message_id].append(row)
    for row in rows:
        whole = numbered[row.stream, row.protocol, row.command, row.message_id]
        # Of what was not captured the frames alone are known.
        is_captured = row.command is not None or row.message_id is None
        agree = agrees if is_captured else stands
        if not any(agree(row, other) for other in whole):
            yield (
                f"{row.command} {row.message_id} frames {row.request_frame}, {row.response_frame}: "
                f"{row.request()}, {row.response()}, {row.pending_at}, {row.server_ns}"
            )


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
        got = Counter(identity(r, r.sent is not None, r.status is not None) for r in rows)
        expected, missing, unexpected = find(comparison.rows, headers, snap, got)
        cuts[snap] = Cut(
            operations=len(rows),
            expected=expected,
            missing=missing,
            unexpected=unexpected,
            changed=list(changed(rows, comparison.rows)),
            theirs=oracle.operations_in(path),
        )
        if snap == 256 and claims.worth_srt(comparison.result):
            fewer = claims.srt_rows(path)
            srt = {n: (c, fewer.get(n, 0)) for n, c in claims.srt_rows(comparison.path).items()}
        path.unlink()
    return cuts, srt
