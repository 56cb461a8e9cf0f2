"""Captures that are small and expand: each function writes one to a file. `BOMBS` has them with what they must cost at most.

All are Ethernet, IPv4, TCP and SMB2 as a decoder expects it (pcap, often gzip); only the numbers and lengths are hostile.
"""

import gzip
import struct

MEGA = 1 << 20


class Capture:
    def __init__(self, path):
        self.out = gzip.open(path, "wb", compresslevel=1) if path.endswith(".gz") else open(path, "wb", 1 << 20)
        self.out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        self.tick, self.next = 0, {}

    def packet(self, is_client, payload, connection=0):
        client = bytes([10, connection >> 16 & 255, connection >> 8 & 255, connection & 255])
        server = bytes([10, 255, 0, 1])
        numbers = self.next.setdefault(connection, [1, 1])
        own = 0 if is_client else 1
        ends = [(client, 40000), (server, 445)]
        (source, from_port), (target, to_port) = ends if is_client else ends[::-1]
        sequence, acknowledged = numbers[own], numbers[1 - own]
        numbers[own] = (sequence + len(payload)) & 0xFFFFFFFF
        tcp = struct.pack(">HHIIBBHHH", from_port, to_port, sequence, acknowledged, 0x50, 0x18, 65535, 0, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0x4000, 64, 6, 0, source, target)
        frame = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + tcp + payload
        self.tick += 50
        seconds, micros = divmod(self.tick, 1_000_000)
        self.out.write(struct.pack("<IIII", 1_700_000_000 + seconds, micros, len(frame), len(frame)) + frame)

    def send(self, is_client, message, connection=0):
        stream = struct.pack(">I", len(message)) + message
        for at in range(0, len(stream), 60000):
            self.packet(is_client, stream[at : at + 60000], connection)

    def exchange(self, request, reply, connection=0):
        self.send(True, request, connection)
        self.send(False, reply, connection)

    def negotiate(self, connection=0):
        asks = struct.pack("<HHHHI16sIHHH", 36, 1, 1, 0, 0x7F, bytes(16), 0, 0, 0, 0x302)
        says = struct.pack("<HHHH16sIIIIQQHHI", 65, 1, 0x302, 0, bytes(16), 0x7F, MEGA, MEGA, MEGA, 0, 0, 128, 0, 0)
        self.exchange(header(0, 0, session=0) + asks, header(0, 0, 1, session=0) + says, connection)

    def logon(self, number, session, user="u", connection=0):
        fields, at, texts = b"", 64, [bytes(24), bytes(24), "LAB".encode("utf-16-le"), user.encode("utf-16-le"), b"", b""]
        for text in texts:
            fields += struct.pack("<HHI", len(text), len(text), at + 24)
            at += len(text)
        token = b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", 0x205) + bytes(24) + b"".join(texts)
        asks = struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, len(token), 0) + token
        says = struct.pack("<HHHH", 9, 0, 72, 0)
        self.exchange(header(1, number, session=session) + asks, header(1, number, 1, session=session) + says, connection)

    def tree(self, number, tree, path="\\\\s\\home", connection=0):
        text = path.encode("utf-16-le")
        asks = struct.pack("<HHHH", 9, 0, 72, len(text)) + text
        says = struct.pack("<HBBIII", 16, 1, 0, 0, 0, 0x1F01FF)
        self.exchange(header(3, number, tree=0) + asks, header(3, number, 1, tree=tree) + says, connection)

    def create(self, number, name, file, tree=1, connection=0):
        self.send(True, header(5, number, tree=tree) + create_body(name), connection)
        says = struct.pack("<HBBI4QQQII", 89, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x20, 0) + struct.pack("<QQII", file, file, 0, 0)
        self.send(False, header(5, number, 1, tree=tree) + says, connection)

    def begin(self, connection=0):
        self.negotiate(connection)
        self.logon(1, 1, connection=connection)
        self.tree(2, 1, connection=connection)
        return self


def header(command, number, flags=0, status=0, tree=1, session=1, following=0, credits=1):
    ids = struct.pack("<QIIQ", number, 0xFEFF, tree, session)
    return struct.pack("<4sHHIHHII", b"\xfeSMB", 64, 1, status, command, credits, flags, following) + ids + bytes(16)


def create_body(name):
    text = name.encode("utf-16-le")
    return struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, 0x12019F, 0, 7, 3, 0, 120, len(text), 0, 0) + text


READ = struct.pack("<HBBIQ16sIIIHH", 49, 0x50, 0, 4096, 0, bytes(16), 0, 0, 0, 0, 0) + b"\0"
ECHO = b"\4\0\0\0"


def sessions(path, count):
    capture = Capture(path)
    capture.negotiate()
    for each in range(1, count + 1):
        capture.logon(each, each, f"user{each:07}")


def opens(path, count):
    capture = Capture(path).begin()
    for each in range(count):
        capture.create(3 + each, f"f{each}", each + 1)


def long_names(path, count):
    capture, name = Capture(path).begin(), "\u4e2d" * 27992
    for each in range(count):
        capture.create(3 + each, f"{each:08}" + name, each + 1)


def trees(path, count):
    capture = Capture(path)
    capture.negotiate()
    capture.logon(1, 1)
    for each in range(count):
        capture.tree(2 + each, each + 1, f"\\\\server\\share{each:07}")
    capture.create(2 + count, "late.txt", 7)


def unanswered(path, count):
    capture = Capture(path).begin()
    for each in range(count):
        capture.send(True, header(8, 3 + each) + READ)


def unanswered_names(path, count):
    """Requests that wait, each with a long name, on many connections."""
    name = "\u4e2d" * 27992
    capture = Capture(path)
    for each in range(count):
        connection = each % 64
        capture.send(True, header(5, 3 + each) + create_body(f"{each:08}" + name), connection)


def interim(path, count):
    capture = Capture(path).begin()
    for each in range(3, 3 + count):
        capture.send(True, header(15, each) + struct.pack("<HHI16sII", 32, 0, 4096, bytes(16), 0xFFF, 0))
        ids = struct.pack("<QQQ", each, each, 1)
        reply = struct.pack("<4sHHIHHII", b"\xfeSMB", 64, 1, 0x103, 15, 1, 3, 0) + ids + bytes(16)
        capture.send(False, reply + struct.pack("<HHI", 9, 0, 0) + b"\0")


def compounds(path, count):
    capture, members = Capture(path).begin(), 14_500
    for each in range(count):
        for is_reply in (0, 1):
            parts = []
            for member in range(members):
                flags = is_reply | (4 if member else 0)
                number = 3 + each * members + member
                parts.append(header(13, number, flags, following=72 if member < members - 1 else 0) + ECHO + bytes(4))
            capture.send(not is_reply, b"".join(parts))


def overlapping(path, count):
    capture = Capture(path).begin()
    for each in range(count):
        members = header(13, 3 + each, following=8) * 1000
        capture.exchange(members, members)


def connections(path, count):
    capture = Capture(path)
    for each in range(count):
        capture.negotiate(each)
        capture.logon(1, 1, f"user{each}", each)


def promises(path, count):
    """Messages of 16 MiB of which the first kilobyte comes, on a connection each."""
    capture = Capture(path)
    for each in range(count):
        capture.packet(True, struct.pack(">I", 0xFFFFFF) + header(9, each) + b"x" * 1000, each)
        capture.packet(False, struct.pack(">I", 0xFFFFFF) + header(8, each, 1) + b"x" * 1000, each)


def partial(path, count):
    """Messages of which all but the end comes, on a connection each."""
    capture = Capture(path)
    for each in range(count):
        body = header(13, each, following=72) + ECHO + bytes(4)
        stream = struct.pack(">I", 0xFFFFF) + body * 14000
        for at in range(0, len(stream), 60000):
            capture.packet(True, stream[at : at + 60000], each)


def gaps(path, count):
    capture = Capture(path).begin()
    for _ in range(count):
        capture.next[0][0] = (capture.next[0][0] + 100_000) & 0xFFFFFFFF
        capture.packet(True, b"A" * 1400)


def zeros(path, count):
    with gzip.open(path, "wb", compresslevel=1) as out:
        for _ in range(count):
            out.write(bytes(1 << 20))


def interfaces(path, count):
    """A pcapng of interfaces, sections and names alone."""
    block = lambda kind, body: struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)  # noqa: E731
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 262144))
    record = struct.pack("<HH", 1, 205) + bytes([10, 0, 0, 1]) + b"h" * 200 + b"\0" + bytes(3)
    with open(path, "wb") as out:
        out.write(section + interface * count + block(4, record * 500) * (count // 500) + (section + interface) * count)
        out.write(struct.pack("<II", 6, 0xFFFFFFF0) + b"x" * 1000)


# Name: writer, count, file's ending, RSS in MB at most, CPU in s at most, what the report must say, fast form's count.
BOMBS = {
    "sessions": (sessions, 300_000, ".pcap", 400, 30, "sessions, whose later operations", 0),
    "opens": (opens, 300_000, ".pcap", 400, 30, "opens, whose later operations", 0),
    "long-names": (long_names, 8_000, ".pcap.gz", 640, 30, "opens, whose later operations", 0),
    "trees": (trees, 100_000, ".pcap", 300, 30, "trees, whose later operations", 0),
    "unanswered": (unanswered, 300_000, ".pcap", 200, 20, "", 0),
    "unanswered-names": (unanswered_names, 20_000, ".pcap.gz", 640, 40, "", 0),
    "interim-replies": (interim, 200_000, ".pcap", 200, 20, "", 0),
    "compounds": (compounds, 6, ".pcap.gz", 300, 10, "", 2),
    "overlapping-members": (overlapping, 2_000, ".pcap", 200, 10, "", 200),
    "connections": (connections, 60_000, ".pcap", 640, 30, "", 0),
    "promised-bytes": (promises, 60_000, ".pcap", 640, 30, "", 0),
    "partial-messages": (partial, 2_000, ".pcap.gz", 640, 60, "", 0),
    "gaps": (gaps, 100_000, ".pcap", 200, 20, "", 0),
    "zeros-in-gzip": (zeros, 2_000, ".gz", 100, 5, "", 200),
    "blocks-of-pcapng": (interfaces, 200_000, ".pcapng", 100, 10, "", 20_000),
}
