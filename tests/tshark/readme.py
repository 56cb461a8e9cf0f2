"""The captures' README as a third opinion: its counts against smbscope's rows."""

import re
from collections import Counter

NAMES = {
    1: {
        "SessSetupX": "SessionSetupAndX", "TreeConnX": "TreeConnectAndX",
        "NTCreateX": "NtCreateAndX", "Trans": "Transaction", "TreeDisc": "TreeDisconnect",
        "Trans2": "Transaction2", "QueryInfo": "QueryInformation", "NTTrans": "NtTransact",
        "TransSec": "TransactionSecondary", "NTTransSec": "NtTransactSecondary",
        "LogoffX": "LogoffAndX", "OpenAndX": "OpenAndX",
    },
    2: {
        "SessSetup": "SessionSetup", "TreeConn": "TreeConnect", "TreeDisc": "TreeDisconnect",
        "QueryDir": "QueryDirectory",
    },
}  # fmt: skip

REQUESTS = "the README counts requests; a break's notification is an operation without one"
PORTS = "the README counts ports 445 and 139; the same traffic passes a proxy on port {}"
DATAGRAM = "the README counts datagrams (UDP), smbscope TCP only"
MESSAGES = "the README counts requests as tshark shows them; see the explanations above"
READS = "a mistake of the README: there are no writes, these are the sizes of the reads"

# Looked into one by one: (file, what, README, smbscope).
KNOWN = {
    ("smb1-4k-writeandx.pcap", "writes of 48 bytes", 8, 0): "a mistake of the README: tshark's "
    "DataLength has no 48 either; the 8 writes are of 52 (1), 104 (2), 192 (2), 512, 712 and 1024",
    ("smb1-port139-out-of-order.pcap", "writes of 4096 bytes", 5, 0): READS,
    ("smb1-port139-out-of-order.pcap", "writes of 8192 bytes", 1, 0): READS,
    ("smb1-smbclient.pcap", "writes of 15 bytes", 1, 0): READS,
    ("smb1-osx.pcap", "SMB1 Negotiate", 2, 3): "the third one (frame 9) arrives late; tshark too "
    "shows it when it puts segments in order",
}


def compare(path, results):
    """Rows of the third opinion's table."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 10 or not cells[4].isdigit():
            continue
        one = next((r for r in reversed(results) if r.file == cells[1]), None)  # with keys, if any
        if one is None:
            continue
        theirs, mine = of_readme(cells), of_rows(one.rows)
        for what in sorted(theirs):
            if theirs[what] != mine[what]:
                key = (one.file, what, theirs[what], mine[what])
                why = KNOWN.get(key) or reason(*key[1:], one) or "**not explained**"
                found.append((one.file, what, theirs[what], mine[what], why))
    return found


def reason(what, theirs, mine, result):
    """Why the two differ: what they would agree on."""
    requests = [row for row in result.rows if row.sent is not None]
    usual = [row for row in requests if row.server_port in (139, 445)]
    datagrams = sum(d.kind == "datagram" for d in result.differences)
    if datagrams and theirs == mine + (1 if what == "connections" else datagrams):
        return DATAGRAM
    if what.startswith("SMB2") and of_rows(requests)[what] == theirs:
        return REQUESTS
    if result.ports and of_rows(usual)[what] == theirs:
        return PORTS.format(", ".join(map(str, result.ports)))
    if what.startswith("SMB") and theirs == result.requests[what]:
        return MESSAGES
    return None


def of_readme(cells):
    counts = {"connections": int(cells[6])}
    protocol = None
    for word in cells[8].replace(";", " ").split():
        name, _, number = word.partition(":")
        if word in ("SMB1:", "SMB2:"):
            protocol = int(name[3])
        elif protocol and number.isdigit():
            counts[f"SMB{protocol} {NAMES[protocol].get(name, name)}"] = int(number)
    sizes = re.search(r"write_sizes=(\S+)", cells[8])
    if sizes:
        for part in sizes.group(1).strip(";").split("/"):
            size, count = part.split("x")
            counts[f"writes of {size} bytes"] = int(count)
    return counts


def of_rows(rows):
    counts = Counter(f"SMB{row.protocol} {row.command}" for row in rows if row.command)
    counts["connections"] = len({row.connection for row in rows})
    for row in rows:
        if row.command in ("Write", "WriteAndX") and row.requested_bytes is not None:
            counts[f"writes of {row.requested_bytes} bytes"] += 1
    return counts
