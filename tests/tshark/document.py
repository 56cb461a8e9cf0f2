"""docs/measurements/decoder.md: the comparison's results as Markdown."""

from collections import Counter, defaultdict

import claims
import explain
import oracle

HEADER = """\
# The decoder, compared with tshark

Made by `tests/tshark/compare.py --markdown docs/measurements/decoder.md` with {version}; do not edit it by hand.
`cargo test -p smbscope --test tshark` runs the same comparison and fails when a difference has no
explanation.

## How it is made

For every capture the script runs tshark and `smbscope ops FILE --format csv`, and compares them
operation by operation. tshark's PDML keeps the fields of each message of a frame apart; the script
pairs those messages to operations itself (by MessageId or MID, not with tshark's own pairing), so
that three parties have to agree: tshark's dissection, the script's pairing and smbscope. tshark
runs with `-n`, without anybody's settings, and in two ways: as it is, and with
`tcp.reassemble_out_of_order`; the one that shows more messages counts. Where smbscope finds SMB on
a port other than 139 and 445, tshark is told so with `-d` (without that it shows nothing there).
Encrypted captures are compared twice, without keys and with them.

What must be equal, for every operation:

- **command and number**: TCP stream, protocol, command, MessageId or MID, as multisets;
- **request, reply**: whether the capture has them; the status of the final reply (STATUS_PENDING
  is an interim reply, not an operation of its own);
- **times**: `request_end`, `pending_at` and `response_end`, to the nanosecond, with the time of the
  frame in which tshark shows the message (the one in which it ends);
- **response time**: `response_end - request_end`, which is tshark's `smb2.time` and `smb.time`,
  within 1 us; members of a compound with their lead's times, as tshark gives them;
- **names** where both know one: a Create's path, the share, the user;
- **encrypted messages** without keys: how many in each direction of each connection.

## Files

`ops` are the operations found (tshark: requests, and replies without a request). `numbers`,
`statuses`, `times`, `response times` and `names` say how many of those were compared; what differed
is in the last two columns, and below.

"""

COLUMNS = (
    "file", "packets", "ops", "tshark", "numbers", "statuses", "times", "response times", "names",
    "explained", "unexplained",
)  # fmt: skip


def table(head, rows):
    right = [all(isinstance(row[i], int) for row in rows) for i in range(len(head))]
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---:' if number else '---' for number in right)}|"
    for row in rows:
        yield f"| {' | '.join(str(cell) for cell in row)} |"


def title(result):
    return result.file + (" (keys)" if result.keys else "")


def render(results, third):
    text = [HEADER.format(version=oracle.version())]
    text += table(COLUMNS, [summary(result) for result in results])
    total = [summary(result) for result in results]
    sums = ["all"] + [sum(row[i] for row in total) for i in range(1, len(COLUMNS))]
    text[-1:] = [text[-1], f"| {' | '.join(str(cell) for cell in sums)} |"]
    text += ["", *settings(results), *explanations(results), *unexplained(results)]
    text += [*commands(results), *cuts(results), *claims.section(results), *third_section(third)]
    return "\n".join(text) + "\n"


def summary(result):
    checked = result.checked
    explained = sum(d.reason is not None for d in result.differences)
    return (
        title(result),
        result.packets,
        result.ours.total(),
        result.theirs.total(),
        checked["ids"],
        checked["status"],
        checked["request time"] + checked["interim time"] + checked["reply time"],
        checked["response time"],
        checked["path"] + checked["share"] + checked["user"],
        explained,
        len(result.differences) - explained,
    )


def settings(results):
    reordered = [f"`{r.file}`" for r in results if r.settings != "default" and not r.keys]
    ported = [f"`{r.file}` ({', '.join(map(str, r.ports))})" for r in results if r.ports]
    if reordered:
        yield f"Read with `tcp.reassemble_out_of_order`: {', '.join(reordered)}."
    if ported:
        yield f"Read with `-d tcp.port==PORT,nbss`: {', '.join(ported)}."
    yield ""


def explanations(results):
    yield "## Differences that are explained"
    yield ""
    yield (
        "Each entry of `explain.py` has a test as narrow as its reason: it computes what tshark "
        "must show if the reason is true, or asks tshark once more."
    )
    yield ""
    where = defaultdict(Counter)
    for result in results:
        for difference in result.differences:
            where[difference.reason][title(result)] += 1
    for explanation in explain.EXPLANATIONS:
        files = where[explanation.name]
        if files:
            yield f"### {explanation.name}: {files.total()}"
            yield ""
            yield f"Right: {explanation.right}. {explanation.text}"
            yield ""
            examples = {}
            for result in results:
                for d in result.differences:
                    if d.reason == explanation.name:
                        examples.setdefault(title(result), d)
            rows = [
                (f, n, examples[f].frame or "", examples[f].what, examples[f].kind,
                 shown(examples[f].ours), shown(examples[f].theirs))
                for f, n in sorted(files.items())
            ]  # fmt: skip
            head = ("file", "differences", "first in frame", "of", "what", "smbscope", "tshark")
            yield from table(head, rows)
            yield ""


def shown(value):
    return "-" if value is None else str(value).replace("|", "\\|")


def unexplained(results):
    rest = [d for result in results for d in result.differences if d.reason is None]
    yield "## Differences that are not explained"
    yield ""
    if not rest:
        yield "None."
    for difference in rest:
        yield f"- {difference}"
    yield ""


def commands(results):
    yield "## Operations by command"
    yield ""
    yield "One number where both agree, otherwise smbscope/tshark. SMB1's commands stand in italics."
    yield ""
    rows = []
    for result in results:
        parts = []
        for key in sorted(result.ours | result.theirs, key=lambda k: (k[0], k[1])):
            mine, theirs = result.ours[key], result.theirs[key]
            name = f"*{key[1]}*" if key[0] == 1 else key[1]
            parts.append(f"{name} {mine}" if mine == theirs else f"{name} {mine}/{theirs}")
        rows.append((title(result), ", ".join(parts)))
    yield from table(("file", "commands"), rows)
    yield ""


def cuts(results):
    yield "## Captures cut to headers"
    yield ""
    yield (
        "Copies cut with `editcap -s`. `whole` is what smbscope finds in the uncut file, `there` the "
        "operations of which a header is still in the cut one through the session id (SMB1: the "
        "MID; related members of a compound: the MessageId), looked up in the frames' bytes, and "
        "the members of compounds behind the cut that NextCommand (of a request or a reply) and the "
        "requests' MessageIds tell of (those have no command unless a reply tells it); `found` must be the same ones, "
        "with the same statuses, and their times, `server_ns` and sizes must not change. An "
        "operation is not there when the capture holds nothing that tells of it: a break that begins "
        "late in a long segment, or the third member of a compound behind which no request comes. "
        "tshark counts any message from its "
        "command and MessageId on, so it may show a few more."
    )
    yield ""
    yield (
        "Of SMB1: the answer of a ReadRaw has no header, and is there when its NetBIOS length is. A "
        "transaction of which only a secondary request is there is a row if it is answered; its "
        "request has an end, but no beginning. What the server sends without the bit that says "
        "reply (oplock breaks, Samba's interim replies) is no request."
    )
    yield ""
    rows = []
    for result in results:
        for snap, cut in result.cuts.items():
            wrong = len(cut.missing) + len(cut.unexpected)
            rows.append(
                (result.file, snap, len(result.rows), cut.expected, cut.operations, wrong,
                 len(cut.changed), cut.theirs)
            )  # fmt: skip
    head = ("file", "bytes", "whole", "there", "found", "wrong", "changed", "tshark")
    yield from table(head, rows)
    yield ""


def third_section(third):
    yield "## A third opinion"
    yield ""
    yield (
        "`../shared/captures/README.md` counts by command, connections and write sizes with a tool "
        "of its own. Where it and smbscope differ:"
    )
    yield ""
    yield from table(("file", "what", "README", "smbscope", "why"), third)
    yield ""
