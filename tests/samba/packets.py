"""Capture files and TCP packets for mutate.py: read, take apart, put together.

Owns: pcap and pcapng in and out (enough for what record.py makes), Ethernet,
IPv4/IPv6 and TCP headers with their checksums.
Not: what is changed (mutate.py). Standard library only.
"""

import gzip
import struct
from dataclasses import dataclass, replace

ETHERNET, NULL, LOOP, RAW, SLL, SLL2 = 1, 0, 108, 101, 113, 276


@dataclass
class Packet:
    """One captured packet; `wire` is its length on the wire, `data` what was kept."""
    time_ns: int
    data: bytes
    wire: int
    link: int = ETHERNET


@dataclass
class Segment:
    """An Ethernet frame with TCP, taken apart."""
    head: bytes      # Ethernet
    ip: bytes        # IP header
    tcp: bytes       # TCP header with options
    payload: bytes

    @property
    def sequence(self):
        return struct.unpack_from(">I", self.tcp, 4)[0]

    @property
    def flow(self):
        """(source, destination) with ports: one direction of a connection."""
        addresses = self.ip[12:20] if self.ip[0] >> 4 == 4 else self.ip[8:40]
        half = len(addresses) // 2
        return (addresses[:half] + self.tcp[:2], addresses[half:] + self.tcp[2:4])

    @property
    def flags(self):
        return self.tcp[13]

    def build(self, **changes):
        """The frame, with lengths and checksums put right."""
        s = replace(self, **changes)
        tcp = bytearray(s.tcp)
        tcp[16:18] = b"\0\0"
        body = bytes(tcp) + s.payload
        if s.ip[0] >> 4 == 4:
            ip = bytearray(s.ip)
            struct.pack_into(">H", ip, 2, len(ip) + len(body))
            ip[10:12] = b"\0\0"
            struct.pack_into(">H", ip, 10, checksum(bytes(ip)))
            pseudo = bytes(ip[12:20]) + struct.pack(">BBH", 0, 6, len(body))
        else:
            ip = bytearray(s.ip)
            struct.pack_into(">H", ip, 4, len(body))
            pseudo = bytes(ip[8:40]) + struct.pack(">II", len(body), 6)
        struct.pack_into(">H", tcp, 16, checksum(pseudo + body))
        return s.head + bytes(ip) + bytes(tcp) + s.payload


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def take_apart(packet):
    """The packet's Segment, or None if it is not a whole TCP segment over Ethernet."""
    data = packet.data
    kind = data[12:14]
    if packet.link != ETHERNET or kind not in (b"\x08\x00", b"\x86\xdd"):
        return None
    if kind == b"\x08\x00":
        ip_length, total, protocol = (data[14] & 15) * 4, int.from_bytes(data[16:18], "big"), data[23]
    else:
        ip_length, total, protocol = 40, 40 + int.from_bytes(data[18:20], "big"), data[20]
    at = 14 + ip_length
    if protocol != 6 or len(data) < 14 + total:
        return None
    end = at + (data[at + 12] >> 4) * 4
    return Segment(data[:14], data[14:at], data[at:end], data[end:14 + total])


def read(path):
    """All packets of a pcap or pcapng file, plain or gzip."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return list(read_pcapng(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else read_pcap(data))


def read_pcap(data):
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    magic, link = struct.unpack(order + "I", data[:4])[0], struct.unpack_from(order + "I", data, 20)[0]
    unit = 1 if magic == 0xA1B23C4D else 1000
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, kept, wire = struct.unpack_from(order + "IIII", data, at)
        at += 16 + kept
        yield Packet(seconds * 10**9 + fraction * unit, data[at - kept:at], wire, link)


def read_pcapng(data):
    at, links, units = 0, [], []
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + length - 4]
        at += length
        if kind == 0x0A0D0D0A:
            links, units = [], []
        elif kind == 1:
            links.append(struct.unpack_from("<H", body)[0])
            resolution = options_of(body[8:]).get(9, b"\x06")[0]
            units.append(10 ** (9 - resolution))
        elif kind == 6:
            interface, high, low, kept, wire = struct.unpack_from("<IIIII", body)
            yield Packet((high << 32 | low) * units[interface], body[20:20 + kept], wire,
                         links[interface])


def options_of(data):
    found, at = {}, 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, at)
        if code == 0:
            break
        found[code] = data[at + 4:at + 4 + length]
        at += 4 + length + -length % 4
    return found


def pcap(packets, order="<", nanoseconds=False):
    link = packets[0].link if packets else ETHERNET
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0,
                       262144, link)]
    for p in packets:
        seconds, rest = divmod(p.time_ns, 10**9)
        out.append(struct.pack(order + "IIII", seconds, rest if nanoseconds else rest // 1000,
                               len(p.data), p.wire) + p.data)
    return b"".join(out)


def block(kind, body, order="<"):
    body += b"\0" * (-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link, resolution=9, offset_s=0, order="<", snaplen=262144):
    options = option(9, bytes([resolution]), order)
    if offset_s:
        options += option(14, struct.pack(order + "q", offset_s), order)
    return block(1, struct.pack(order + "HHI", link, 0, snaplen) + options +
                 struct.pack(order + "HH", 0, 0), order)


def enhanced(packet, number=0, resolution=9, offset_s=0, order="<", options=b""):
    """An Enhanced Packet Block; a resolution above 127 is a power of two."""
    time = packet.time_ns - offset_s * 10**9
    per_second = 2 ** (resolution & 127) if resolution & 128 else 10 ** resolution
    ticks = time * per_second // 10**9
    data = packet.data + b"\0" * (-len(packet.data) % 4)
    return block(6, struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF,
                                len(packet.data), packet.wire) + data + options, order)


def pcapng(packets, resolution=9, order="<"):
    link = packets[0].link if packets else ETHERNET
    return section(order) + interface(link, resolution, order=order) + \
        b"".join(enhanced(p, 0, resolution, order=order) for p in packets)
