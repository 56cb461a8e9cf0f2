#!/usr/bin/env python3
"""Writes tests/quic/quic.pcap: QUIC connections with and without SMB. Needs the package
`cryptography`. Usage: make_fixture.py OUTPUT

The ClientHellos are OpenSSL's; packets are protected as RFC 9001 and RFC 9369 say, apart from the
decoder's code. `tshark -r OUTPUT -T fields -e tls.handshake.extensions_alpn_str` reads them back."""
import hashlib
import hmac
import ssl
import struct
import sys

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SALTS = {
    1: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    0x6B3343CF: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}


def client_hello(protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    out = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="fs1.lab.test")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()[5:]  # without the record's header


def expand(secret, label, length):
    label = b"tls13 " + label
    info = struct.pack(">HB", length, len(label)) + label + b"\0\1"
    return hmac.new(secret, info, hashlib.sha256).digest()[:length]


def initial(version, connection_id, number, frames, size):
    secret = hmac.new(SALTS[version], connection_id, hashlib.sha256).digest()
    secret = expand(secret, b"client in", 32)
    prefix = b"quic " if version == 1 else b"quicv2 "
    key, iv, hp = (expand(secret, prefix + name, n) for name, n in ((b"key", 16), (b"iv", 12), (b"hp", 16)))
    first = 0xC0 | (0 if version == 1 else 0x10) | 3
    head = bytes([first]) + struct.pack(">IB", version, len(connection_id)) + connection_id + b"\4\1\2\3\4\0"
    # Number of four bytes, tag of sixteen, a length of two bytes.
    frames += b"\0" * (size - len(head) - 2 - 4 - 16 - len(frames))
    head += struct.pack(">H", 0x4000 | 4 + len(frames) + 16) + struct.pack(">I", number)
    nonce = bytes(a ^ b for a, b in zip(iv, bytes(8) + struct.pack(">I", number)))
    sealed = AESGCM(key).encrypt(nonce, frames, head)
    mask = Cipher(algorithms.AES(hp), modes.ECB()).encryptor().update(sealed[:16])
    at = len(head) - 4
    head = bytes([head[0] ^ mask[0] & 15]) + head[1:at] + bytes(a ^ b for a, b in zip(head[at:], mask[1:5]))
    return head + sealed


def crypto(offset, data):
    return b"\6" + struct.pack(">HH", 0x4000 | offset, 0x4000 | len(data)) + data


packets = []


def send(time_us, from_client, port, server_port, payload):
    ends = [(b"\x0a\0\0\1", port), (b"\x0a\0\0\2", server_port)]
    (source, source_port), (destination, destination_port) = ends if from_client else ends[::-1]
    udp = struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, source, destination)
    packets.append((time_us, b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + ip + udp))


def connection(start_us, port, server_port, version, protocols, split, rounds):
    hello = client_hello(protocols)
    connection_id = bytes([port & 255]) * 8
    pieces = [crypto(0, hello)]
    if split:
        # The second half comes first.
        half = len(hello) // 2
        pieces = [crypto(half, hello[half:]), crypto(0, hello[:half])]
    for number, piece in enumerate(pieces):
        send(start_us + number, True, port, server_port, initial(version, connection_id, number, piece, 1200))
    kind = 0xC3 if version == 1 else 0xD3
    reply = bytes([kind]) + struct.pack(">I", version) + b"\4\1\2\3\4\4\5\6\7\x08\0\x40\x64" + bytes(range(100))
    send(start_us + 3000, False, port, server_port, reply)
    # The client inverts the bit once in a round trip of 10 ms: 3 ms to the server and back.
    for number in range(rounds):
        at = start_us + 10_000 + number * 10_000
        bit = 0x20 * (number % 2)
        send(at, True, port, server_port, bytes([0x40 | bit | number & 7]) + b"\5\6\7\x08" + b"c" * 80)
        send(at + 3000, False, port, server_port, bytes([0x40 | bit | 9]) + b"\1\2\3\4" + b"s" * 160)


connection(0, 50001, 443, 1, ["smb"], True, 20)
connection(500, 50002, 443, 1, ["h3"], False, 3)
connection(900, 50003, 8443, 0x6B3343CF, ["smb"], False, 0)
# A version that is not known, and a connection that began before.
send(1200, True, 50004, 443, b"\xc0\xff\0\0\x1d\x08" + b"i" * 8 + b"\0" + b"x" * 1190)
send(1300, True, 50005, 443, b"\x41" + b"y" * 60)
packets.sort(key=lambda packet: packet[0])
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
    for time_us, frame in packets:
        seconds, us = divmod(time_us, 1_000_000)
        out.write(struct.pack("<IIII", 1_700_000_000 + seconds, us, len(frame), len(frame)) + frame)
