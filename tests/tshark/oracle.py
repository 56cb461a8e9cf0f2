"""What tshark sees in a capture: SMB messages, and the operations that they make.

Owns: running tshark, reading its PDML (which keeps the fields of each message of a frame apart),
and pairing messages into operations by MS-SMB2 3.2.5.1 and MS-CIFS 3.2.4.1.2, without help from
smbscope. tshark's own pairing (smb2.response_to, smb2.time) is kept as well. Does not own the
comparison (compare.py).
"""

import functools
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

PENDING = 0x103
# A reply that stands before its request in the file is no more than this before it, ns.
EARLY = 10_000_000
NOTIFICATION = 0xFFFF_FFFF_FFFF_FFFF
OPLOCK_BREAK = 0x12

# tshark puts late segments in order only when asked, but then loses all that follows a lost packet.
# Each file is read in both ways, and the one that shows more messages counts.
SETTINGS = {
    "default": ["-n"],
    "reordering": ["-n", "-o", "tcp.reassemble_out_of_order:TRUE"],
}

SMB2_COMMANDS = [
    "Negotiate", "SessionSetup", "Logoff", "TreeConnect", "TreeDisconnect", "Create", "Close",
    "Flush", "Read", "Write", "Lock", "Ioctl", "Cancel", "Echo", "QueryDirectory",
    "ChangeNotify", "QueryInfo", "SetInfo", "OplockBreak", "ServerToClientNotification",
]  # fmt: skip

# MS-CIFS 2.2.2.1, those that occur; others are written as numbers.
SMB1_COMMANDS = {
    0x00: "CreateDirectory", 0x01: "DeleteDirectory", 0x02: "Open", 0x03: "Create", 0x04: "Close",
    0x05: "Flush", 0x06: "Delete", 0x07: "Rename", 0x08: "QueryInformation",
    0x09: "SetInformation", 0x0A: "Read", 0x0B: "Write", 0x0C: "LockByteRange",
    0x0D: "UnlockByteRange", 0x0E: "CreateTemporary", 0x0F: "CreateNew", 0x10: "CheckDirectory",
    0x11: "ProcessExit", 0x12: "Seek", 0x13: "LockAndRead", 0x14: "WriteAndUnlock",
    0x1A: "ReadRaw", 0x1B: "ReadMpx", 0x1D: "WriteRaw", 0x1E: "WriteMpx", 0x20: "WriteComplete",
    0x22: "SetInformation2", 0x23: "QueryInformation2", 0x24: "LockingAndX", 0x25: "Transaction",
    0x26: "TransactionSecondary", 0x27: "Ioctl", 0x2B: "Echo", 0x2C: "WriteAndClose",
    0x2D: "OpenAndX", 0x2E: "ReadAndX", 0x2F: "WriteAndX", 0x32: "Transaction2",
    0x33: "Transaction2Secondary", 0x34: "FindClose2", 0x70: "TreeConnect",
    0x71: "TreeDisconnect", 0x72: "Negotiate", 0x73: "SessionSetupAndX", 0x74: "LogoffAndX",
    0x75: "TreeConnectAndX", 0x80: "QueryInformationDisk", 0x81: "Search", 0x82: "Find",
    0x83: "FindUnique", 0x84: "FindClose", 0xA0: "NtTransact", 0xA1: "NtTransactSecondary",
    0xA2: "NtCreateAndX", 0xA4: "NtCancel", 0xA5: "NtRename", 0xC0: "OpenPrintFile",
    0xC1: "WritePrintFile", 0xC2: "ClosePrintFile",
}  # fmt: skip

# A secondary request belongs to the operation of its primary one.
SECONDARY = {0x26: 0x25, 0x33: 0x32, 0xA1: 0xA0}
TRANSACTIONS = {0x25, 0x32, 0xA0}
# Echo, WriteRaw and WriteMpx may be answered by several messages.
SEVERAL_REPLIES = {0x2B, 0x1D, 0x1E}
# SMB1 requests without a reply; the cancelled request answers.
NEVER_ANSWERED = {0xA4}

LEAF = re.compile(rb'\s*<field name="([^"]*)"')
WANTED = {
    name.encode()
    for name in (
        "num timestamp ip.src ipv6.src tcp.stream tcp.srcport smb2.cmd smb2.msg_id smb2.flags "
        "smb2.nt_status smb2.tid smb2.sesid smb2.tree smb2.acct smb2.domain smb2.filename "
        "smb2.chain_offset smb2.response_to smb2.time smb.cmd smb.mid smb.pid smb.tid smb.nt_status "
        "smb.error_class smb.error_code smb.flags.response smb.path smb.file smb.response_to "
        "smb.time smb.wct smb.pc smb.dc smb.tpc smb.tdc ntlmssp.auth.username ntlmssp.auth.domain"
    ).split()
}
# tshark writes some characters that XML does not allow.
NOT_IN_XML = {code: None for code in (*range(32), 0xFFFE, 0xFFFF) if code not in (9, 10, 13)}

SMB1_MEMBER = re.compile(r" (Request|Response) \(0x([0-9a-f]{2})\)$")


def command_name(protocol, code):
    if code is None:
        return None
    if protocol == 1:
        return SMB1_COMMANDS.get(code, f"0x{code:02x}")
    return SMB2_COMMANDS[code] if code < len(SMB2_COMMANDS) else f"0x{code:04x}"


@dataclass(slots=True)
class Message:
    """One SMB2 message (a compound has several) or one command of an SMB1 AndX chain."""

    frame: int
    stream: int
    time: int
    protocol: int
    command: int | None
    message_id: int
    response: bool | None
    source: str
    status: object = None
    asynchronous: bool = False
    pid: int = 0
    index: int = 0
    response_to: int | None = None
    response_time: int | None = None
    path: str | None = None
    share: str | None = None
    user: str | None = None
    encrypted: bool = False
    dfs: bool = False
    malformed: bool = False
    # SMB1 transactions: bytes of parameters and data here, and in all messages together.
    words: int | None = None
    bytes_here: int = 0
    bytes_total: int = 0

    @property
    def interim(self):
        return self.protocol == 2 and self.response and self.asynchronous and self.status == PENDING


@dataclass(slots=True)
class Operation:
    """A request with its interim and final reply, as far as the capture has them."""

    protocol: int
    command: int | None
    stream: int
    message_id: int
    request: Message | None = None
    secondaries: list = field(default_factory=list)
    late: list = field(default_factory=list)
    interim: Message | None = None
    reply: Message | None = None
    more_replies: list = field(default_factory=list)

    @property
    def name(self):
        return command_name(self.protocol, self.command)

    @property
    def frame(self):
        return (self.request or self.reply or self.interim).frame

    @property
    def request_whole(self):
        parts = [self.request, *self.secondaries]
        return sum(p.bytes_here for p in parts) >= min(p.bytes_total for p in parts)

    @property
    def reply_whole(self):
        parts = [self.reply, *self.more_replies]
        return sum(p.bytes_here for p in parts) >= min(p.bytes_total for p in parts)

    @property
    def request_end(self):
        last = self.secondaries[-1] if self.secondaries else self.request
        return last and last.time

    @property
    def reply_end(self):
        last = self.more_replies[-1] if self.more_replies else self.reply
        return last and last.time


@dataclass
class Capture:
    """What tshark makes of a file."""

    settings: str
    packets: int
    frames: dict
    messages: list
    operations: list


def environment():
    """An environment without personal settings."""
    if not hasattr(environment, "folder"):
        environment.folder = tempfile.TemporaryDirectory(prefix="tshark-settings-")
    return os.environ | {
        "WIRESHARK_CONFIG_DIR": environment.folder.name,
        "XDG_CONFIG_HOME": environment.folder.name,
        "HOME": environment.folder.name,
    }


def version():
    done = subprocess.run(
        ["tshark", "--version"], capture_output=True, text=True, env=environment()
    )
    return done.stdout.splitlines()[0]


def run(arguments):
    """Standard output of tshark, as text."""
    done = subprocess.run(["tshark", *arguments], capture_output=True, env=environment())
    return done.stdout.decode("utf-8", "replace")


def read(path, keys=(), ports=()):
    """Everything tshark says of a capture; keys in the format of smb2_seskey_list."""
    options = []
    for port in ports:
        options += ["-d", f"tcp.port=={port},nbss"]
    for key in keys:
        options += ["-o", f"uat:smb2_seskey_list:{key}"]
    best, (frames, shown, troubled) = "default", listing(path, SETTINGS["default"] + options)
    if troubled:
        other = listing(path, SETTINGS["reordering"] + options)
        if other[1] > shown:
            best, frames = "reordering", other[0]
    messages = list(messages_of(path, SETTINGS[best] + options))
    return Capture(best, len(frames), frames, messages, operations_of(messages))


def operations_in(path):
    """How many operations tshark shows, as it is."""
    return len(operations_of(messages_of(path, SETTINGS["default"])))


def listing(path, options):
    """Stream and time of every frame, how many messages there are, whether TCP had trouble."""
    names = ["frame.number", "tcp.stream", "frame.time_epoch"]
    names += ["smb2.cmd", "smb.cmd", "tcp.analysis.flags"]
    fields = [word for name in names for word in ("-e", name)]
    frames, messages, troubled = {}, 0, False
    for line in run([*options, "-r", str(path), "-T", "fields", *fields]).splitlines():
        index, stream, time, smb2_commands, smb1_commands, flags = line.split("\t")
        troubled = troubled or bool(flags)
        stream = stream.split(",")[-1]
        frames[int(index)] = (int(stream) if stream else None, nanoseconds(time))
        messages += len([c for c in f"{smb2_commands},{smb1_commands}".split(",") if c])
    return frames, messages, troubled


def nanoseconds(text):
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1_000_000_000 + int((fraction + "000000000")[:9])


@functools.cache
def loses_segments(path, stream):
    """Whether tshark misses a segment of the connection."""
    wanted = f"tcp.stream == {stream} && tcp.analysis.lost_segment"
    return bool(run(["-n", "-r", str(path), "-Y", wanted, "-T", "fields", "-e", "frame.number"]))


def is_in_tunnel(path, frame):
    """Whether a frame's SMB lies in a tunnel."""
    fields = ["-T", "fields", "-e", "frame.protocols"]
    layers = run(["-n", "-r", str(path), "-Y", f"frame.number == {frame}", *fields]).split(":")
    return bool({"gre", "vxlan", "teredo"} & set(layers)) or layers.count("ip") > 1


def user_in(path, frame):
    """The user whom a frame's NTLM message names."""
    fields = ["-T", "fields", "-e", "ntlmssp.auth.domain", "-e", "ntlmssp.auth.username"]
    names = run(["-n", "-r", str(path), "-Y", f"frame.number == {frame}", *fields]).rstrip("\n")
    domain, _, name = names.partition("\t")
    return f"{domain}\\{name}" if domain and domain != "NULL" else name


def request_in_stream(path, row):
    """Whether a row's SMB1 request is in its stream, whatever the segments."""
    lines = run(["-n", "-r", str(path), "-q", "-z", f"follow,tcp,raw,{row.stream}"]).splitlines()
    # The first direction's bytes begin at the margin, the other direction's after a tab.
    sent = bytes.fromhex("".join(line for line in lines if re.fullmatch("([0-9a-f]{2})+", line)))
    numbers = set()
    at = sent.find(b"\xffSMB")
    while at >= 0:
        numbers.add((command_name(1, sent[at + 4]), int.from_bytes(sent[at + 30 : at + 32], "little")))
        at = sent.find(b"\xffSMB", at + 4)
    return (row.command, row.message_id) in numbers


def messages_of(path, options):
    parser = ElementTree.XMLPullParser(["end"])
    command = ["tshark", *options, "-r", str(path), "-T", "pdml", "-Y", "smb || smb2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        for line in process.stdout:
            # Most lines are leaves that are not needed; parsing them would take most of the time.
            leaf = line.rstrip().endswith(b"/>") and LEAF.match(line)
            if leaf and leaf.group(1) not in WANTED:
                continue
            parser.feed(line.decode("utf-8", "replace").translate(NOT_IN_XML))
            if line.startswith(b"</packet>"):
                for _, element in parser.read_events():
                    if element.tag == "packet":
                        yield from packet(element)
                        element.clear()


def packet(element):
    frame = time = stream = source = None
    malformed = any(proto.get("name") == "_ws.malformed" for proto in element.iter("proto"))
    index, more = 0, False
    for proto in element.iter("proto"):
        name = proto.get("name")
        if name == "geninfo":
            values = {item.get("name"): item for item in proto}
            frame = int(values["num"].get("show"))
            time = nanoseconds(values["timestamp"].get("value"))
        elif name in ("ip", "ipv6"):
            source = next(i.get("show") for i in proto.iter() if i.get("name") == name + ".src")
        elif name == "tcp":
            values = {item.get("name"): item.get("show") for item in proto}
            stream = int(values["tcp.stream"])
            source = f"{source}:{values['tcp.srcport']}"
            index, more = 0, False
        elif name in ("smb", "smb2"):
            common = {"frame": frame, "stream": stream, "time": time, "source": source}
            common["malformed"] = malformed
            if name == "smb":
                yield from smb1(proto, common)
                continue
            message, chained = smb2(proto, common)
            if message is not None:
                message.index = index = index + 1 if more else 0
                more = chained
                yield message


def part(proto, show):
    return next((f for f in proto if f.tag == "field" and f.get("show") == show), None)


def number(item):
    """A little-endian field's value from its bytes."""
    return int.from_bytes(bytes.fromhex(item.get("value")), "little")


def inside(item, name):
    found = next((f for f in item.iter("field") if f.get("name") == name), None)
    return found.get("show") if found is not None else None


def smb2(proto, common):
    header = part(proto, "SMB2 Header")
    if header is None:
        if any(inner.get("name") == "smb2" and inner is not proto for inner in proto.iter("proto")):
            return None, False  # decrypted or decompressed: what is inside counts
        transform = part(proto, "SMB2 Transform Header")
        if transform is None:
            return None, False
        return (
            Message(
                protocol=2, command=None, message_id=0, response=None, encrypted=True, **common
            ),
            False,
        )
    values = {item.get("name"): item for item in header if item.tag == "field"}
    if "smb2.msg_id" not in values:
        return None, False
    flags = number(values["smb2.flags"])
    message = Message(
        protocol=2,
        command=number(values["smb2.cmd"]),
        message_id=number(values["smb2.msg_id"]),
        response=bool(flags & 1),
        asynchronous=bool(flags & 2),
        dfs=bool(flags & 0x1000_0000),
        **common,
    )
    if "smb2.nt_status" in values:
        message.status = number(values["smb2.nt_status"])
    replies(message, values, "smb2")
    if "smb2.tid" in values:
        message.share = inside(values["smb2.tid"], "smb2.tree")
    if "smb2.sesid" in values:
        account = inside(values["smb2.sesid"], "smb2.acct")
        if account:
            domain = inside(values["smb2.sesid"], "smb2.domain")
            message.user = f"{domain}\\{account}" if domain else account
    for body in proto:
        if body.tag != "field" or not (body.get("show") or "").endswith(")"):
            continue
        if body.get("show").startswith("Create Request"):
            direct = [f for f in body if f.get("name") == "smb2.filename"]
            message.path = direct[0].get("show") if direct else None
        elif body.get("show").startswith("Tree Connect Request"):
            message.share = inside(body, "smb2.tree")
    return message, number(values["smb2.chain_offset"]) != 0


def replies(message, values, name):
    if name + ".response_to" in values:
        message.response_to = int(values[name + ".response_to"].get("show"))
    if name + ".time" in values:
        message.response_time = nanoseconds(values[name + ".time"].get("show"))


def smb1(proto, common):
    header = part(proto, "SMB Header")
    if header is None:
        return
    values = {item.get("name"): item for item in header if item.tag == "field"}
    if "smb.mid" not in values:
        return
    flags = {i.get("name"): i.get("show") for i in header.iter("field")}
    response = flags.get("smb.flags.response") == "1"
    status = None
    if response and "smb.nt_status" in values:
        status = number(values["smb.nt_status"])
    elif response and "smb.error_class" in values:
        status = ("DOS", number(values["smb.error_class"]), number(values["smb.error_code"]))
    bodies = []
    for body in proto:
        found = SMB1_MEMBER.search(body.get("show") or "") if body.tag == "field" else None
        if found:
            bodies.append((int(found.group(2), 16), body))
    if not bodies:
        bodies = [(number(values["smb.cmd"]), None)]
    for index, (code, body) in enumerate(bodies):
        message = Message(
            protocol=1,
            command=code,
            message_id=number(values["smb.mid"]),
            pid=number(values["smb.pid"]),
            response=response,
            status=status,
            index=index,
            **common,
        )
        replies(message, values, "smb")
        if "smb.tid" in values:
            message.share = inside(values["smb.tid"], "smb.path")
        if body is not None:
            counts = {i.get("name"): i for i in body if i.tag == "field"}
            value = lambda name: number(counts[name]) if name in counts else 0  # noqa: E731
            message.words = value("smb.wct")
            message.bytes_here = value("smb.pc") + value("smb.dc")
            message.bytes_total = value("smb.tpc") + value("smb.tdc")
        if body is not None and not response:
            smb1_names(message, code, body)
        yield message


def smb1_names(message, code, body):
    if code in (0xA2, 0x2D, 0x02):
        direct = [f for f in body if f.get("name") == "smb.file"]
        message.path = direct[0].get("show") if direct else None
    elif code == 0x75:
        message.share = inside(body, "smb.path")
    elif code == 0x73:
        name = inside(body, "ntlmssp.auth.username")
        domain = inside(body, "ntlmssp.auth.domain")
        if name and name != "NULL":
            message.user = f"{domain}\\{name}" if domain and domain != "NULL" else name


def operations_of(messages):
    """Pairs messages; a reply may stand before its request in the file."""
    messages = list(messages)
    pairing = Pairing({message.response_to for message in messages})
    for message in messages:
        if message.command is None or message.stream is None:
            continue  # encrypted, or a datagram (mailslots over UDP)
        if message.response:
            pairing.reply(message)
        else:
            pairing.request(message)
    return pairing.operations


class Pairing:
    """Requests that wait, by connection and number (SMB1: and process and command)."""

    def __init__(self, answered_frames):
        self.operations = []
        # Frames whose requests tshark shows an answer to.
        self.answered_frames = answered_frames
        self.waiting, self.answered, self.alone = {}, {}, {}
        self.clients = {}

    @staticmethod
    def key(message):
        key = (message.stream, message.protocol, message.message_id)
        if message.protocol == 1:
            key += (message.pid, SECONDARY.get(message.command, message.command))
        return key

    def start(self, message, **parts):
        command = message.command
        if message.protocol == 1:
            command = SECONDARY.get(command, command)
        operation = Operation(
            message.protocol, command, message.stream, message.message_id, **parts
        )
        self.operations.append(operation)
        return operation

    def request(self, message):
        key = self.key(message)
        before = self.waiting.get(key)
        if self.clients.setdefault(message.stream, message.source) != message.source:
            self.from_server(message, before)
            return
        if message.protocol == 1 and message.command in SECONDARY:
            if before is not None:
                # One that comes after the first part of the reply no longer changes the request.
                (before.secondaries if before.reply is None else before.late).append(message)
                return
        operation = self.start(message, request=message)
        if message.protocol == 2 and message.command == 0x0C:
            return  # Cancel shares the number of what it cancels, and has no reply
        if message.protocol == 1 and message.command in NEVER_ANSWERED:
            return
        early = self.alone.pop(key, None)
        if early is not None and message.protocol == 1:
            # Numbers are used again: it answers a request that was lost, if this one has another.
            late = message.time - early.reply.time > EARLY
            early = None if late or message.frame in self.answered_frames else early
        if early is not None and early.command == operation.command:
            self.operations.remove(early)
            operation.reply, operation.more_replies = early.reply, early.more_replies
            return
        self.waiting[key] = operation

    def from_server(self, message, before):
        """What a server sends without the reply flag."""
        if message.protocol == 1 and message.command == 0x24:
            # An oplock break (MS-CIFS 3.3.4.2) is a notification, like SMB2's.
            self.start(message, reply=message)
        elif message.protocol == 1 and message.command == 0x1D and before is not None:
            # Samba's permission to send the raw block.
            before.interim = message
        else:
            self.start(message, request=message)

    def reply(self, message):
        key = self.key(message)
        notification = message.message_id == NOTIFICATION and message.command == OPLOCK_BREAK
        if notification and message.protocol == 2:
            self.start(message, reply=message)
            return
        operation = self.waiting.get(key)
        if operation is None:
            before = self.answered.get(key)
            if before and message.protocol == 1 and message.command in SEVERAL_REPLIES:
                before.more_replies.append(message)
            elif not message.interim:
                self.alone[key] = self.start(message, reply=message)
            return
        if message.interim or self.asks_for_more(operation, message):
            operation.interim = message
            return
        if operation.reply is None:
            operation.reply = message
        else:
            operation.more_replies.append(message)
        if operation.command not in TRANSACTIONS or message.protocol == 2 or operation.reply_whole:
            self.answered[key] = self.waiting.pop(key)

    @staticmethod
    def asks_for_more(operation, message):
        """The empty reply that lets the client send the rest of a transaction (MS-CIFS 3.3.5.2.3)."""
        return (
            message.protocol == 1
            and message.command in TRANSACTIONS
            and message.words == 0
            and message.status in (0, ("DOS", 0, 0))
            and operation.interim is None
            and not operation.request_whole
        )
