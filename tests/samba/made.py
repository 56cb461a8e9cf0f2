#!/usr/bin/env python3
"""Makes the fixtures that no server of today records: tests/fixtures/made.

stop-and-wait.pcap.gz: a client writes by SMB1 Write AndX, 4,292 bytes every 62.5 ms on a line of 45 Mbit/s, and
reads by Read Raw, 60 KiB in a round of 62.5 ms and the 10.9 ms that they need on the line. The clock of the machine
that recorded it ticks every 15.625 ms, as that of Windows did. Taken at the client.

smb1-large-offered.pcap.gz, smb1-small-buffer.pcap.gz: 40 such writes after a Negotiate. In the first, the server offers
CAP_LARGE_WRITEX and a MaxBufferSize of 16,644 bytes; in the second neither, and the block is the largest that fits.
"""

import gzip
import os
import struct
import sys

CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
TICK = 0.015625
MSS = 1460
LINE = 45e6
ROUND = 0.0625
START = 1_000_000_000.0
NT_CREATE, WRITE, READ_RAW, NEGOTIATE = 0xA2, 0x2F, 0x1A, 0x72
LARGE_READX, LARGE_WRITEX, NT_STATUS = 0x4000, 0x8000, 0x40


class Trace:
    def __init__(self):
        self.frames, self.sequence, self.number = [], {True: 1000, False: 5000}, 1

    def segment(self, time, up, payload, flags=0x18):
        """One segment; its time is that of the last tick."""
        source, target = (CLIENT, SERVER) if up else (SERVER, CLIENT)
        ports = (1025, 445) if up else (445, 1025)
        tcp = struct.pack("!HHIIBBHHH", *ports, self.sequence[up], self.sequence[not up], 0x50, flags, 64240, 0, 0)
        self.sequence[up] += len(payload) + (1 if flags & 0x02 else 0)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), self.number, 0, 64, 6, 0, source, target)
        self.number = (self.number + 1) & 0xFFFF
        frame = bytes(12) + b"\x08\x00" + ip + tcp + payload
        ticked = int(time / TICK) * TICK
        self.frames.append(struct.pack("<IIII", int(ticked), round((ticked % 1) * 1e6), len(frame), len(frame)) + frame)

    def send(self, time, up, message):
        """A message; gives when its last segment is through the line."""
        whole = struct.pack("!I", len(message)) + message
        for at in range(0, len(whole), MSS):
            part = whole[at : at + MSS]
            time += 8 * (len(part) + 54) / LINE
            self.segment(time, up, part)
        return time


def smb(command, reply, mid, words, data=b""):
    """A message of [MS-CIFS] section 2.2.3."""
    header = b"\xffSMB" + struct.pack("<BIBHH8sHHHHH", command, 0, 0x80 if reply else 0, 0xC803, 0, bytes(8), 0, 7, 8, 9, mid)
    return header + bytes([len(words) // 2]) + words + struct.pack("<H", len(data) & 0xFFFF) + data


def connect(trace, time):
    """The TCP handshake."""
    trace.segment(time, True, b"", 0x02)
    trace.segment(time + ROUND, False, b"", 0x12)
    trace.segment(time + ROUND, True, b"", 0x10)
    return time + ROUND


def negotiate(trace, time, capabilities, buffer):
    """MS-CIFS section 2.2.4.52."""
    trace.send(time, True, smb(NEGOTIATE, False, 0, b"", b"\x02NT LM 0.12\0"))
    words = struct.pack("<HBHHIIIIQhB", 0, 3, 50, 1, buffer, 65536, 0, capabilities, 0, 0, 8)
    trace.send(time + ROUND, False, smb(NEGOTIATE, True, 0, words, bytes(8)))
    return time + ROUND


def create(trace, time):
    name = "big.iso".encode("utf-16le")
    words = struct.pack("<BBHBHIIIQIIIIIB", 0xFF, 0, 0, 0, len(name), 0, 0, 0x12019F, 0, 0, 0, 1, 0x40, 2, 0)
    trace.send(time, True, smb(NT_CREATE, False, 1, words, b"\0" + name))
    words = struct.pack("<BBHBHI32xIQQHHB", 0xFF, 0, 0, 0, 5, 1, 0x20, 0, 10 << 20, 0, 0, 0)
    trace.send(time + ROUND, False, smb(NT_CREATE, True, 1, words))
    return time + ROUND


def writes(trace, time, count):
    for number in range(count):
        mid, data = 2 + number, bytes(4292)
        words = struct.pack("<BBHHIIHHHHHI", 0xFF, 0, 0, 5, number * len(data), 0, 0, 0, 0, len(data), 64, 0)
        trace.send(time, True, smb(WRITE, False, mid, words, b"\0" + data))
        trace.send(time + ROUND, False, smb(WRITE, True, mid, struct.pack("<BBHHHI", 0xFF, 0, 0, len(data), 0xFFFF, 0)))
        time += ROUND
    return time


def keep(trace, name):
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"../fixtures/made/{name}.pcap.gz")
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(trace.frames))
    print(f"{out}: {len(trace.frames)} frames", file=sys.stderr)


def stop_and_wait():
    trace = Trace()
    time = create(trace, connect(trace, START))
    time = writes(trace, time, 200)
    for number in range(100):
        mid, size = 202 + number, 60 << 10
        trace.send(time, True, smb(READ_RAW, False, mid, struct.pack("<HIHHIH", 5, number * size, size, 0, 0, 0)))
        time = trace.send(time + ROUND, False, bytes(size)) + 0.0001
    keep(trace, "stop-and-wait")


def small_writes(name, capabilities, buffer):
    trace = Trace()
    time = negotiate(trace, connect(trace, START), NT_STATUS | capabilities, buffer)
    writes(trace, create(trace, time), 40)
    keep(trace, name)


def main():
    stop_and_wait()
    small_writes("smb1-large-offered", LARGE_READX | LARGE_WRITEX, 16644)
    small_writes("smb1-small-buffer", 0, 4356)


if __name__ == "__main__":
    main()
