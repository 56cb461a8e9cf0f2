#!/usr/bin/env python3
"""Prints the SMB messages of a capture of SMB Direct over iWARP, apart from smbscope's decoder.

    tests/rdma/iwarp.py CAPTURE

Reads each TCP stream as a whole (the decoder reads it piece by piece) and checks what the decoder
takes for granted: every byte belongs to a frame, message sequence numbers count by one, offsets
continue, fragments add up to the length that the first one names, and no side sends without
credits. A contradiction ends the program with an error. Layouts: RFC 5044 section 4.1, RFC 5041
section 4, RFC 5040 section 4, MS-SMBD section 2.2, MS-SMB2 section 2.2.1.

Output, with tabs: `smb2 PORT COMMAND MESSAGE_ID IS_REPLY STATUS BYTES` for each SMB message or
member of a compound, and `rdma PORT READS READ_BYTES WRITES WRITE_BYTES TERMINATES FRAGMENTS` for
each connection; PORT is the client's.
"""

import gzip
import struct
import sys
from collections import defaultdict

SERVER_PORT = 5445


def packets(data):
    """The Ethernet frames of a pcapng file in this machine's byte order."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            captured = struct.unpack_from("<I", data, at + 20)[0]
            yield data[at + 28:at + 28 + captured]
        at += length


def streams(frames):
    """Bytes by (client port, from client): segments in the order of their numbers."""
    found = defaultdict(dict)
    first = {}
    for frame in frames:
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ip = frame[14:14 + struct.unpack_from(">H", frame, 16)[0]]
        tcp = ip[(ip[0] & 15) * 4:]
        source, target, number = struct.unpack_from(">HHI", tcp)
        flags, payload = tcp[13], tcp[(tcp[12] >> 4) * 4:]
        key = (source, True) if target == SERVER_PORT else (target, False)
        if flags & 2:
            first[key] = number + 1
        elif payload:
            found[key][(number - first[key]) & 0xFFFFFFFF] = payload
    out = {}
    for key, segments in found.items():
        stream = b""
        for offset, payload in sorted(segments.items()):
            assert offset <= len(stream), f"{key}: a hole at {len(stream)}"
            stream += payload[len(stream) - offset:]
        out[key] = stream
    return out


def frames_of(stream):
    """DDP segments (RFC 5044): the last one may be cut off."""
    assert stream[:4] == b"MPA " and stream[16] & 0x80 == 0, "markers are not expected"
    at = 20 + struct.unpack_from(">H", stream, 18)[0]
    while at < len(stream):
        length = struct.unpack_from(">H", stream, at)[0]
        end = at + (2 + length + 3) // 4 * 4 + 4
        assert end <= len(stream), "cut off"
        yield stream[at + 2:at + 2 + length]
        at = end


class Direction:
    """Messages and counters of one stream."""

    def __init__(self, stream):
        self.sends = []
        self.reads = self.read_bytes = self.writes = self.write_bytes = self.terminates = 0
        self.read_lengths = []
        numbers = defaultdict(lambda: 1)
        pending = defaultdict(bytes)
        tagged = {}
        for segment in frames_of(stream):
            ddp, rdmap = segment[0], segment[1]
            assert ddp & 3 == 1 and rdmap >> 6 == 1, (hex(ddp), hex(rdmap))
            opcode, last = rdmap & 15, bool(ddp & 0x40)
            if ddp & 0x80:
                tag, offset = struct.unpack_from(">IQ", segment, 2)
                assert tagged.get(tag, offset) == offset, "a gap in what RDMA placed"
                tagged[tag] = offset + len(segment) - 14
                if last:
                    tagged.pop(tag)
                if opcode == 2:
                    self.read_bytes += len(segment) - 14
                else:
                    assert opcode == 0
                    self.writes += last
                    self.write_bytes += len(segment) - 14
                continue
            queue, number, offset = struct.unpack_from(">III", segment, 6)
            assert number == numbers[queue], (queue, number, numbers[queue])
            assert offset == len(pending[queue]), (offset, len(pending[queue]))
            pending[queue] += segment[18:]
            if not last:
                continue
            numbers[queue] += 1
            message = pending.pop(queue)
            if queue == 0:
                assert opcode in (3, 4, 5, 6)
                self.sends.append(message)
            elif queue == 1:
                assert opcode == 1
                self.reads += 1
                self.read_lengths.append(struct.unpack_from(">I", message, 12)[0])
            else:
                assert (queue, opcode) == (2, 7)
                self.terminates += 1


def smb_messages(sends, is_client):
    """SMB Direct to SMB messages; also the number of Sends and the credits that they grant."""
    head, out, message, expected = sends[0], [], b"", 0
    low, high = struct.unpack_from("<HH", head)
    assert (low, high, len(head)) == (0x100, 0x100, 20 if is_client else 32)
    if is_client:
        granted = [0]
    else:
        negotiated, _, _, granted_now, status = struct.unpack_from("<HHHHI", head, 4)
        assert (negotiated, status) == (0x100, 0)
        granted = [granted_now]
    for send in sends[1:]:
        _, credits, flags, reserved, remaining, offset, length = struct.unpack_from("<4H3I", send)
        assert flags & ~1 == 0 and reserved == 0
        granted.append(credits)
        assert length == 0 or (offset == 24 and offset + length == len(send)), (offset, length)
        if not length:
            assert len(send) == 20 and remaining == 0
            continue
        if not message:
            expected = remaining + length
        message += send[offset:offset + length]
        assert len(message) + remaining == expected, "fragments do not add up"
        if not remaining:
            out.append(message)
            message = b""
    assert not message
    return out, granted


def main():
    with gzip.open(sys.argv[1]) as file:
        found = streams(packets(file.read()))
    for port in sorted({port for port, _ in found}):
        sides = [Direction(found[(port, is_client)]) for is_client in (True, False)]
        sums = [0, 0]
        for side, is_client in zip(sides, (True, False)):
            messages, granted = smb_messages(side.sends, is_client)
            sums[0 if is_client else 1] = (len(side.sends), sum(granted))
            for message in messages:
                at = 0
                while True:
                    member = message[at:]
                    assert member[:4] == b"\xfeSMB", member[:4]
                    status, command, _, flags, following, number = struct.unpack_from(
                        "<IHHIIQ", member, 8
                    )
                    size = following or len(member)
                    print("smb2", port, command, number, flags & 1, status if flags & 1 else 0,
                          size, sep="\t")
                    if not following:
                        break
                    at += following
        # Each Send but the negotiation spends a credit that the other side granted.
        for own, other in ((0, 1), (1, 0)):
            assert sums[own][0] - 1 <= sums[other][1], "sent without credits"
        client, server = sides
        read_bytes = client.read_bytes + server.read_bytes
        for lengths, response in ((server.read_lengths, client), (client.read_lengths, server)):
            assert response.read_bytes in (0, sum(lengths))
        print("rdma", port, client.reads + server.reads, read_bytes,
              client.writes + server.writes, client.write_bytes + server.write_bytes,
              client.terminates + server.terminates,
              len(client.sends) + len(server.sends), sep="\t")


if __name__ == "__main__":
    main()
