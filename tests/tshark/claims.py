"""Where tshark is wrong: each claim of the captures' README, measured on the captures at hand."""

from collections import Counter

import oracle


def measure(capture):
    """What one capture adds to the claims."""
    seen = Counter()
    lead = None
    for message in capture.messages:
        if message.protocol != 2 or not message.response or message.command is None:
            continue
        if message.interim:
            seen["interim"] += 1
            seen["interim timed"] += message.response_time is not None
        if message.index == 0:
            lead = message
        elif message.response_time is not None:
            seen["member"] += 1
            seen["member like lead"] += message.response_time == lead.response_time
            seen["counted again ns"] += message.response_time
    requests = any(o.request for o in capture.operations if o.protocol == 2)
    replies = any(o.reply for o in capture.operations if o.protocol == 2)
    if requests != replies:
        seen["one direction"] += sum(o.protocol == 2 for o in capture.operations)
    return seen


def worth_srt(result):
    """Whether `-z smb2,srt` has something to show that a claim speaks of."""
    return bool(result.claims["one direction"]) or result.ours[2, "Write"] > 20


def srt_rows(path):
    """Calls by command of `-q -z smb2,srt`."""
    rows = {}
    for line in oracle.run(["-q", "-z", "smb2,srt", "-r", str(path)]).splitlines():
        words = line.split()
        if len(words) > 6 and words[0].isdigit():
            rows[" ".join(words[1:-5])] = int(words[-5])
    return rows


def section(results):
    total = Counter()
    for result in results:
        total += result.claims
    times = sum(r.checked["response time"] for r in results)
    yield "## Where tshark misleads"
    yield ""
    yield (
        f"- Its response time runs from the last byte of the request to the last byte of the reply: "
        f"this definition, computed from smbscope's four times, gives its numbers for all "
        f"{times} comparisons except those explained above. The time of a large read is then mostly "
        f"transfer; `server_ns` and `response_transfer_ns` separate the two."
    )
    yield (
        f"- Every member of a compound gets the time of the whole message: {total['member like lead']}"
        f" of {total['member']} members that were answered together with their lead repeat its "
        f"time, {total['counted again ns'] / 1e9:.3f} s that the Sum column of `-z smb2,srt` counts "
        f"again."
    )
    yield (
        f"- `smb2.time` is set on interim replies too: {total['interim timed']} of "
        f"{total['interim']}."
    )
    for result in results:
        for name, (whole, cut) in result.srt.items():
            if name == "Write" and cut < whole:
                yield (
                    f"- `-z smb2,srt` on `{result.file}` cut to 256 bytes counts {cut} of {whole} "
                    f"Writes; smbscope has a row for each of them, from its reply if the "
                    f"request's header is missing."
                )
    for result in results:
        if result.claims["one direction"] and not result.srt:
            yield (
                f"- `-z smb2,srt` prints no row for `{result.file}`, a capture of one direction with "
                f"{result.claims['one direction']} operations."
            )
    yield ""
