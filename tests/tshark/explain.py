"""Explained differences: which program is right, and why.

Each entry covers no more than its reason does: it runs tshark again, or computes what tshark must
show if the reason is true. A difference that no entry covers is a failure.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Callable

import oracle

MICROSECOND = 1_000


@dataclass(frozen=True)
class Explanation:
    """A reason, and exactly which differences it covers."""

    name: str
    right: str
    text: str
    covers: Callable


def reason(difference, comparison):
    for explanation in EXPLANATIONS:
        if explanation.covers(difference, comparison):
            return explanation.name
    return None


def ntstatus(status):
    """A status as NTSTATUS: an SMB1 error class and code is one too (MS-CIFS 2.2.2.4)."""
    if isinstance(status, tuple):
        _, group, code = status
        return code << 16 | group
    return status


def path(name):
    """A path without its form: case, slashes at the ends, tshark's way to write control characters."""
    name = re.sub(r"[\0-\x1f]", lambda found: f"\\x{ord(found[0]):x}", name or "")
    return name.replace("/", "\\").strip("\\").lower()


def answered_by_smb2(difference, comparison):
    """The SMB2 reply that tshark shows, and smbscope's one row for both messages."""
    operation, row = difference.operation, difference.row
    if operation is None or operation.name != "Negotiate" or operation.message_id != 0:
        return False
    answers = [
        other
        for other in comparison.capture.operations
        if other.stream == operation.stream
        and other.name == "Negotiate"
        and other.protocol == 2
        and other.request is None
    ]
    if len(answers) != 1:
        return False
    if difference.kind == "operation":
        rows = [
            r for r in comparison.rows if r.stream == operation.stream and r.command == "Negotiate"
        ]
        return operation is answers[0] and any(
            r.protocol == 1 and r.response_end == answers[0].reply_end for r in rows
        )
    return (
        difference.kind == "reply"
        and operation.protocol == 1
        and operation.reply is None
        and row.response_end == answers[0].reply_end
        and row.status == answers[0].reply.status
    )


def datagram(difference, comparison):
    return difference.kind == "datagram"


def cancel_taken_for_request(difference, comparison):
    if difference.kind != "response time" or difference.theirs is None:
        return False
    reply = difference.operation.reply
    return any(
        message.command == 0x0C
        and message.stream == reply.stream
        and message.message_id == reply.message_id
        and message.frame == reply.response_to
        and reply.time - message.time == difference.theirs
        for message in comparison.capture.messages
    )


def late_member(difference, comparison):
    row = difference.row
    return (
        difference.kind == "reply time"
        and difference.ours is None
        and row.lead is not None
        and row.response_frame == difference.operation.reply.frame
        and row.lead.response_frame != row.response_frame
    )


def dfs_path(difference, comparison):
    if difference.kind != "path" or not difference.operation.request.dfs:
        return False
    share = difference.operation.request.share or ""
    mine = difference.row.path
    return path(difference.operation.request.path) == path(f"{share}\\{mine or ''}")


def sealed_interim(difference, comparison):
    if difference.kind != "encrypted" or not comparison.all_keys:
        return False
    interim = Counter(
        f"messages on stream {message.stream} from {message.source}"
        for message in comparison.with_keys().messages
        if message.interim
    )
    return difference.theirs - difference.ours == interim[difference.what]


def header_before_gap(difference, comparison):
    """smbscope has a message whose end was not captured; its header is in that frame."""
    row, operation = difference.row, difference.operation
    if row is None or difference.ours is None or difference.theirs is not None:
        return False
    if difference.kind == "reply" and operation is not None:
        frame, response = row.response_frame, True
    elif difference.kind == "operation" and operation is None:
        frame, response = row.frame, row.request_frame is None
    else:
        return False
    return oracle.loses_segments(comparison.path, row.stream) and comparison.has_header(
        row, frame, response
    )


def session_number_again(difference, comparison):
    """smbscope shows the user whom the request names; tshark the user of a session with this number before."""
    row = difference.row
    if difference.kind != "user" or row is None or row.command != "SessionSetup":
        return False
    return oracle.user_in(comparison.path, difference.frame).lower() == difference.ours


def broken_framing(difference, comparison):
    """smbscope has a message where tshark no longer finds the beginning of one."""
    row = difference.row
    if difference.kind != "operation" or difference.theirs is not None:
        return False
    shown = {message.frame for message in comparison.capture.messages}
    return row.frame not in shown and comparison.has_header(
        row, row.frame, row.request_frame is None
    )


def clock_goes_back(difference, comparison):
    """The latest time so far, where the file's own times go back."""
    if difference.kind not in ("request time", "reply time") or difference.theirs is None:
        return False
    frames = comparison.capture.frames
    operation = difference.operation
    message = operation.request if difference.kind == "request time" else operation.reply
    so_far = max(time for number, (_, time) in frames.items() if number <= message.frame)
    return difference.ours == so_far > difference.theirs


def orphan_secondary(difference, comparison):
    operation = difference.operation
    return (
        difference.kind == "operation"
        and difference.ours is None
        and operation.protocol == 1
        and operation.request is not None
        and operation.request.command in oracle.SECONDARY
        and operation.reply is None
    )


def secondary_alone(difference, comparison):
    operation = difference.operation
    return (
        difference.kind == "response time"
        and difference.theirs is None
        and operation.protocol == 1
        and operation.request is not None
        and operation.request.command in oracle.SECONDARY
        and operation.reply.response_to is None
    )


def raw_block(difference, comparison):
    """A message without SMB header belongs to the ReadRaw or WriteRaw before it."""
    row, operation = difference.row, difference.operation
    if difference.kind == "operation":
        return operation is not None and any(
            (r.command == "WriteRaw" and r.request_end == operation.request.time)
            or (r.command == "ReadRaw" and r.response_end == operation.request.time)
            for r in comparison.rows
            if r.stream == operation.stream
        )
    if row is None:
        return False
    if row.command == "ReadRaw" and difference.kind == "reply":
        return difference.theirs is None and row.answered == comparison.time_of(row.response_frame)
    if row.command == "WriteRaw" and difference.kind == "request time":
        blocks = {
            time
            for number, (stream, time) in comparison.capture.frames.items()
            if stream == row.stream and number > operation.request.frame
        }
        return difference.ours > difference.theirs and difference.ours in blocks
    if row.command == "WriteRaw" and difference.kind == "response time":
        return difference.theirs == operation.reply.time - operation.interim.time
    return False


def several_replies(difference, comparison):
    operation = difference.operation
    return (
        difference.kind == "response time"
        and operation.command in oracle.SEVERAL_REPLIES
        and operation.protocol == 1
        and bool(operation.more_replies)
        and difference.theirs is None
    )


def number_zero(difference, comparison):
    return (
        difference.kind == "response time"
        and difference.theirs is None
        and difference.operation.protocol == 1
        and difference.operation.message_id == 0
        and difference.operation.reply.response_to is None
    )


def from_primary(difference, comparison):
    operation = difference.operation
    return (
        difference.kind == "response time"
        and operation.protocol == 1
        and bool(operation.secondaries)
        and difference.theirs is not None
        and abs(operation.reply_end - operation.request.time - difference.theirs) <= MICROSECOND
    )


def reply_without_bit(difference, comparison):
    """A server's message without the reply flag that answers the request of its number."""
    row, operation = difference.row, difference.operation
    frame = operation.frame if difference.kind == "operation" else row and row.response_frame
    return difference.kind in ("operation", "reply") and any(
        other.response_frame == frame == message.frame
        and other.message_id == message.message_id
        and message.response is False
        and message.source == f"{other.server}:{other.server_port}"
        for other in comparison.rows
        for message in comparison.capture.messages
    )


def chain_that_ends_early(difference, comparison):
    """A later member of an AndX chain in whose request tshark stops before it, as malformed."""
    operation, row = difference.operation, difference.row
    return (
        difference.kind == "request"
        and difference.theirs is None
        and operation.protocol == 1
        and operation.reply is not None
        and operation.reply.index > 0
        and any(
            message.frame == row.request_frame
            and message.message_id == row.message_id
            and message.malformed
            for message in comparison.capture.messages
        )
    )


def other_transaction(difference, comparison):
    """Secondary requests of another kind than the first message, which tshark takes for theirs."""
    operation = difference.operation
    if difference.kind != "response time" or difference.theirs is None or not operation.request:
        return False
    return operation.request.command in oracle.SECONDARY and any(
        message.frame == operation.reply.response_to
        and oracle.SECONDARY.get(message.command, message.command) != operation.command
        for message in comparison.capture.messages
    )


def split_header(difference, comparison):
    """A header in several segments, which tshark does not reassemble."""
    row = difference.row
    if difference.theirs is not None or row is None or row.sent is None:
        return False
    shown = {m.frame for m in comparison.capture.messages if m.stream == row.stream}
    return (
        difference.kind in ("request", "response time")
        and row.request_frame not in shown
        and oracle.request_in_stream(comparison.path, row)
    )


def tunnel(difference, comparison):
    return difference.kind == "operation" and difference.ours is None and oracle.is_in_tunnel(
        comparison.path, difference.frame
    )


EXPLANATIONS = [
    Explanation(
        "smb2-answers-smb1",
        "smbscope",
        "An SMB1 Negotiate that offers SMB2 is answered by an SMB2 message (MS-SMB2 3.3.5.3.1). "
        "It is one operation; tshark shows a request without reply and a reply without request, "
        "and gives it no time.",
        answered_by_smb2,
    ),
    Explanation(
        "datagram",
        "by design",
        "SMB1 in a UDP datagram (a mailslot of the browser protocol) is not an operation on a share; "
        "smbscope reads TCP only.",
        datagram,
    ),
    Explanation(
        "cancel-taken-for-request",
        "smbscope",
        "A Cancel carries the number of the request that it cancels. tshark takes the Cancel for "
        "the request and measures from there; smbscope measures from the request itself.",
        cancel_taken_for_request,
    ),
    Explanation(
        "late-member",
        "by design",
        "A member of a compound that was answered after the others, in a message of its own. "
        "A compound's times are in the row of its first member; the late member's row has its own "
        "interim time, status and frame.",
        late_member,
    ),
    Explanation(
        "dfs-path",
        "by design",
        "With the DFS flag a Create's name begins with server and share; the column `path` is "
        "relative to the share.",
        dfs_path,
    ),
    Explanation(
        "interim-replies-under-encryption",
        "by design",
        "Without keys an interim reply (STATUS_PENDING) cannot be distinguished from a final one. As "
        "many replies as there are interim ones (counted with the keys) remain without a request; "
        "smbscope counts them in `coverage.replies_unmatched`.",
        sealed_interim,
    ),
    Explanation(
        "header-before-a-gap",
        "smbscope",
        "A segment of the message was not captured, but its header was: tshark shows nothing, "
        "smbscope has the operation. Checked in the frame's bytes.",
        header_before_gap,
    ),
    Explanation(
        "smb1-number-zero",
        "smbscope",
        "tshark does not pair SMB1 messages whose MID is 0, and gives them no time.",
        number_zero,
    ),
    Explanation(
        "orphan-secondary",
        "by design",
        "A secondary request of a transaction that is already complete, or whose first message is "
        "missing, without an answer: it is not an operation of its own.",
        orphan_secondary,
    ),
    Explanation(
        "secondary-without-first",
        "smbscope",
        "A transaction that is answered although its first message is missing: tshark does not pair "
        "the reply with the secondary requests.",
        secondary_alone,
    ),
    Explanation(
        "broken-framing",
        "smbscope",
        "Wrong NetBIOS lengths (a fuzzed capture): smbscope continues at the next header in the "
        "bytes, tshark waits for the end of a message that never comes. Checked in the frame's "
        "bytes.",
        broken_framing,
    ),
    Explanation(
        "clock-goes-back",
        "by design",
        "Times in the file go back from one frame to the next; smbscope keeps the latest time "
        "instead.",
        clock_goes_back,
    ),
    Explanation(
        "raw-block",
        "smbscope",
        "ReadRaw and WriteRaw move data in a message without SMB header. It belongs to the request; "
        "tshark ignores it, or reads its bytes as a message of its own, and reads the server's "
        "permission to send it as another request.",
        raw_block,
    ),
    Explanation(
        "several-replies",
        "by definition",
        "An Echo requests several replies: the operation ends with the last one, to which tshark "
        "gives no time.",
        several_replies,
    ),
    Explanation(
        "secondary-requests",
        "by definition",
        "A transaction whose request comes in several messages: tshark measures from the first "
        "one, smbscope's request ends with the last one.",
        from_primary,
    ),
    Explanation(
        "reply-without-bit",
        "smbscope",
        "A message of the server with the number and the command of a waiting request, but without "
        "the reply flag: smbscope treats it as the reply, tshark as a request.",
        reply_without_bit,
    ),
    Explanation(
        "andx-behind-malformed",
        "smbscope",
        "In an AndX chain tshark stops at a block that it calls malformed (data after the next "
        "block), and shows the rest of the chain in the reply only.",
        chain_that_ends_early,
    ),
    Explanation(
        "other-transaction",
        "smbscope",
        "Secondary requests of one kind after a first message of another, as an exploit sends "
        "them: tshark measures from that first message, to which the reply does not belong.",
        other_transaction,
    ),
    Explanation(
        "split-header",
        "smbscope",
        "Requests whose NetBIOS header is sent in several segments, which tshark does not show. "
        "Checked in the stream's bytes.",
        split_header,
    ),
    Explanation(
        "tunnel",
        "by design",
        "SMB in a tunnel (GRE) is not read; coverage counts such packets.",
        tunnel,
    ),
    Explanation(
        "session-number-again",
        "smbscope",
        "A server (ksmbd) that gives the SessionId of a session that ended to a new one: in the request "
        "that logs on, tshark shows the user of the earlier session. Checked with the name in the request.",
        session_number_again,
    ),
]
