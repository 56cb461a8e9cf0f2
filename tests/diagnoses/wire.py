"""Frames and capture files: Ethernet, IPv4, IPv6, TCP, UDP, ICMP with their checksums, and pcap with nanoseconds.

Owns: bytes of one frame, the file format. Not: when a frame is sent (sim.py), what it carries (smb2.py, smb1.py).
"""

import ipaddress
import struct

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
WINDOW, SCALE = 65535, 8


def address(text):
    return ipaddress.ip_address(text).packed


def fold(data):
    """The ones' complement checksum of data; bytes that are 0 at the end change nothing."""
    total = int.from_bytes(data + b"\0" * (len(data) % 2), "big")
    return 65535 - (total % 65535 or (65535 if total else 0))


def mac(ip):
    return b"\x02\x00" + ip[-4:]


def ip4(source, target, protocol, payload, zeros=0, number=0, ttl=64):
    """An Ethernet frame; `zeros` bytes of 0 follow the payload and are not stored here."""
    size = 20 + len(payload) + zeros
    head = struct.pack(">BBHHHBBH", 0x45, 0, size, number & 0xFFFF, 0x4000, ttl, protocol, 0) + source + target
    head = head[:10] + struct.pack(">H", fold(head)) + head[12:]
    return mac(target) + mac(source) + b"\x08\x00" + head + payload


def ip(source, target, protocol, payload, zeros=0, number=0):
    """A frame of the version of its addresses."""
    if len(source) == 4:
        return ip4(source, target, protocol, payload, zeros, number)
    head = struct.pack(">IHBB", 6 << 28, len(payload) + zeros, protocol, 64) + source + target
    return mac(target) + mac(source) + b"\x86\xdd" + head + payload


def pseudo_header(source, target, protocol, size):
    """What the checksums of TCP and UDP cover of the header before them."""
    rest = struct.pack(">BBH", 0, protocol, size) if len(source) == 4 else struct.pack(">II", size, protocol)
    return source + target + rest


def tcp(source, target, ports, seq, ack, flags, payload=b"", zeros=0, mss=None, number=0, window=WINDOW, scale=SCALE):
    """A segment; a SYN has the option for scaling only with a `scale`."""
    options = b""
    if flags & SYN:
        options = struct.pack(">BBH", 2, 4, mss)
        options += b"" if scale is None else struct.pack(">BBBB", 1, 3, 3, scale)
        options += struct.pack(">BBBB", 1, 1, 4, 2)
    head = struct.pack(">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF if flags & ACK else 0,
                       (20 + len(options)) << 2, flags, window, 0, 0) + options
    check = fold(pseudo_header(source, target, 6, len(head) + len(payload) + zeros) + head + payload)
    return ip(source, target, 6, head[:16] + struct.pack(">H", check) + head[18:] + payload, zeros, number)


def udp(source, target, ports, payload):
    source, target = address(source), address(target)
    size = 8 + len(payload)
    head = struct.pack(">HHHH", *ports, size, 0)
    check = fold(pseudo_header(source, target, 17, size) + head + payload) or 0xFFFF
    return ip(source, target, 17, head[:6] + struct.pack(">H", check) + payload)


def icmp_unreachable(source, target, frame, code=1):
    """The router's answer to `frame`: host (1) or network (0) unreachable."""
    body = struct.pack(">BBHI", 3, code, 0, 0) + frame[14:14 + 28]
    return ip4(address(source), address(target), 1, body[:2] + struct.pack(">H", fold(body)) + body[4:])


def dns_name(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def dns(number, name, answer=None, code=0):
    """A query for an A record, or the answer with one address, or with an error code."""
    if answer is None and not code:
        head = struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0)
    else:
        head = struct.pack(">HHHHHH", number, 0x8180 | code, 1, 1 if answer else 0, 0, 0)
    body = head + dns_name(name) + struct.pack(">HH", 1, 1)
    if answer:
        body += struct.pack(">HHHIH", 0xC00C, 1, 1, 300, 4) + address(answer)
    return body


def nbns(number, name):
    """A name query of NetBIOS by broadcast."""
    padded = name.upper().ljust(15).encode() + b"\0"
    coded = bytes(65 + half for byte in padded for half in (byte >> 4, byte & 15))
    return struct.pack(">HHHHHH", number, 0x0110, 1, 0, 0, 0) + b"\x20" + coded + b"\0" + struct.pack(">HH", 32, 1)


def write_pcap(path, start, snap, frames):
    """frames: (seconds since start, stored bytes, length on the wire), in order of time."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, 1)]
    for time, data, wire in frames:
        kept = data[:snap] + b"\0" * (min(snap, wire) - min(snap, len(data)))
        nanoseconds = round(time * 1e9)
        out.append(struct.pack("<IIII", start + nanoseconds // 10**9, nanoseconds % 10**9, len(kept), wire) + kept)
    with open(path, "wb") as file:
        file.write(b"".join(out))
