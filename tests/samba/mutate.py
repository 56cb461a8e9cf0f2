#!/usr/bin/env python3
"""Makes variants of a capture by program, the same ones for the same seed.

    tests/samba/mutate.py --list
    tests/samba/mutate.py CAPTURE... --out DIR [--seed N] [--only NAME...]

Writes DIR/STEM.NAME.ENDING for each variant, and DIR/variants.tsv with one line
per file: file, original, variant, what must come out of it, packets.

What must come out, against the original's operations (rows):
  same      the same rows with the same times (to the nanosecond)
  same_us   the same rows, times cut to microseconds
  near      the same rows, each timestamp at most 2 ns earlier
  headers   the same rows, names and lengths inside the cut part may be null
  less      some rows, none of them invented; what is missing is counted as a gap or a cut
  none      no rows, no error

Owns: the variants. Not: files and headers (packets.py). Standard library only,
and `zstd` for the one variant that needs it (left out without it).
"""

import argparse
import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
from dataclasses import replace

sys.dont_write_bytecode = True
import packets as p

VARIANTS = {}


def variant(expect, ending="pcap"):
    """Registers a function (packets, random) -> packets or bytes."""
    def register(function):
        VARIANTS[function.__name__.strip("_").replace("_", "-")] = (function, expect, ending)
        return function
    return register


# --- TCP ---------------------------------------------------------------------

def each_segment(packets, change):
    """Replaces every TCP packet by the packets that `change` makes of it."""
    out = []
    for packet in packets:
        segment = p.take_apart(packet)
        out += [packet] if segment is None else change(packet, segment)
    return out


def framed(packet, data):
    return replace(packet, data=data, wire=len(data))


SMALL_MTU = (100, 216, 536, 1460)
ANYWHERE = (1, 3, 4, 63, 64, 68, 100, 536, 1460)


def split(packets, rnd, sizes=SMALL_MTU):
    """Cuts payloads into segments of random size; all keep the packet's time."""
    def change(packet, segment):
        if len(segment.payload) < 2:
            return [packet]
        out, at = [], 0
        while at < len(segment.payload):
            size = rnd.choice(sizes)
            tcp = bytearray(segment.tcp)
            struct.pack_into(">I", tcp, 4, (segment.sequence + at) % 2**32)
            out.append(framed(packet, segment.build(tcp=bytes(tcp),
                                                    payload=segment.payload[at:at + size])))
            at += size
        return out
    return each_segment(packets, change)


@variant("same", "pcapng")
def segmented(packets, rnd):
    """Payloads cut to what a small MTU leaves."""
    return split(packets, rnd, SMALL_MTU)


@variant("same", "pcapng")
def segmented_finely(packets, rnd):
    """Payloads cut anywhere, also within the NetBIOS length (tshark loses such messages)."""
    return split(packets, rnd, ANYWHERE)


def shuffled(packets, rnd):
    """Shuffles what one sender sent at one time, as split() left it."""
    out, run, last = [], [], None
    for packet in packets:
        segment = p.take_apart(packet)
        # SYN and FIN stay where they are
        this = (packet.time_ns, segment.flow) if segment and segment.payload else None
        if this is None or this != last:
            rnd.shuffle(run)
            out += run
            run = []
        last = this
        run.append(packet)
    rnd.shuffle(run)
    return out + run


@variant("same", "pcapng")
def reordered(packets, rnd):
    """Segments of one message in any order."""
    return shuffled(split(packets, rnd), rnd)


@variant("same", "pcapng")
def reordered_finely(packets, rnd):
    return shuffled(split(packets, rnd, ANYWHERE), rnd)


@variant("same", "pcapng")
def duplicated(packets, rnd):
    """Every third packet twice, as mirror ports do."""
    return [copy for packet in split(packets, rnd)
            for copy in [packet] * (2 if rnd.random() < 0.33 else 1)]


@variant("same", "pcapng")
def retransmitted(packets, rnd):
    """Old data again, with other borders than at first and new data behind it."""
    out, sent = [], {}
    for packet in split(packets, rnd):
        out.append(packet)
        segment = p.take_apart(packet)
        if segment is None or not segment.payload:
            continue
        before = sent.get(segment.flow)
        if before and rnd.random() < 0.3:
            start, data = before
            if (start + len(data)) % 2**32 == segment.sequence:
                tcp = bytearray(segment.tcp)
                struct.pack_into(">I", tcp, 4, start)
                out.append(framed(packet, segment.build(tcp=bytes(tcp),
                                                        payload=data + segment.payload)))
        sent[segment.flow] = (segment.sequence, segment.payload)
    return out


@variant("same", "pcapng")
def sequence_wrap(packets, rnd):
    """Sequence numbers that pass 2^32 in the middle of each direction."""
    middle, seen = {}, {}
    for packet in packets:
        segment = p.take_apart(packet)
        if segment and segment.payload:
            seen.setdefault(segment.flow, []).append(segment.sequence)
    for flow, sequences in seen.items():
        middle[flow] = -sequences[len(sequences) // 2] - 1

    def change(packet, segment):
        tcp = bytearray(segment.tcp)
        there, back = segment.flow, segment.flow[::-1]
        acknowledged, = struct.unpack_from(">I", tcp, 8)
        struct.pack_into(">I", tcp, 4, (segment.sequence + middle.get(there, 0)) % 2**32)
        if segment.flags & 0x10:
            struct.pack_into(">I", tcp, 8, (acknowledged + middle.get(back, 0)) % 2**32)
        return [framed(packet, segment.build(tcp=bytes(tcp)))]
    return each_segment(packets, change)


def with_payload(packets):
    return [n for n, packet in enumerate(packets)
            if (s := p.take_apart(packet)) and s.payload]


@variant("less")
def loss_one(packets, rnd):
    gone = rnd.choice(with_payload(packets))
    return packets[:gone] + packets[gone + 1:]


@variant("less")
def loss_5_percent(packets, rnd):
    return [packet for packet in split(packets, rnd) if rnd.random() > 0.05]


@variant("less")
def loss_run(packets, rnd):
    """A tenth of the capture in one piece, as a full buffer loses it."""
    start = rnd.randrange(len(packets) // 4, len(packets) * 3 // 4)
    return packets[:start] + packets[start + len(packets) // 10 + 1:]


@variant("less")
def mid_stream(packets, rnd):
    return packets[len(packets) // 3:]


@variant("less")
def mid_message(packets, rnd):
    """Starts in the middle of a message."""
    cut = split(packets, rnd)
    return cut[len(cut) // 3 + 1:]


def one_direction(packets, from_client):
    opened = {s.flow for q in packets if (s := p.take_apart(q)) and s.flags & 0x12 == 0x02}
    return [q for q in packets if (s := p.take_apart(q)) and (s.flow in opened) == from_client]


@variant("less")
def requests_only(packets, rnd):
    return one_direction(packets, True)


@variant("less")
def responses_only(packets, rnd):
    return one_direction(packets, False)


@variant("same", "pcapng")
def connections_interleaved(packets, rnd):
    """The capture and a copy of it from another client port, packet by packet: every row twice."""
    def other(packet, segment):
        tcp, flow = bytearray(segment.tcp), segment.flow
        client = flow in opened
        at = 0 if client else 2
        struct.pack_into(">H", tcp, at, struct.unpack_from(">H", tcp, at)[0] ^ 0x1000)
        return [framed(packet, segment.build(tcp=bytes(tcp)))]
    opened = {s.flow for q in packets if (s := p.take_apart(q)) and s.flags & 0x12 == 0x02}
    return [q for packet in packets for q in [packet] + each_segment([packet], other)]


# --- frames ------------------------------------------------------------------

def snap(length):
    def cut(packets, rnd):
        return [replace(packet, data=packet.data[:length]) for packet in packets]
    cut.__name__ = f"snap_{length}"
    return cut


for _length, _expect in ((64, "less"), (96, "less"), (128, "less"), (256, "headers")):
    variant(_expect)(snap(_length))


def relinked(packets, link, head):
    """Another link layer: `head` makes it from (frame, EtherType)."""
    return [replace(packet, link=link, wire=packet.wire - 14 + len(h := head(packet.data[:14])),
                    data=h + packet.data[14:]) for packet in packets]


@variant("same", "pcapng")
def vlan(packets, rnd):
    return relinked(packets, p.ETHERNET, lambda e: e[:12] + b"\x81\x00\x20\x07" + e[12:14])


@variant("same", "pcapng")
def qinq(packets, rnd):
    return relinked(packets, p.ETHERNET,
                    lambda e: e[:12] + b"\x88\xa8\x00\x05\x81\x00\x20\x07" + e[12:14])


@variant("same", "pcapng")
def sll(packets, rnd):
    return relinked(packets, p.SLL, lambda e: struct.pack(">HHH8s", 0, 1, 6, e[6:12] + b"\0\0") +
                    e[12:14])


@variant("same", "pcapng")
def sll2(packets, rnd):
    return relinked(packets, p.SLL2, lambda e: e[12:14] + struct.pack(">HIHBB8s", 0, 1, 1, 0, 6,
                                                                      e[6:12] + b"\0\0"))


@variant("same", "pcapng")
def raw_ip(packets, rnd):
    return relinked(packets, p.RAW, lambda e: b"")


def family(ethernet):
    return 2 if ethernet[12:14] == b"\x08\x00" else 30


@variant("same", "pcapng")
def null(packets, rnd):
    return relinked(packets, p.NULL, lambda e: struct.pack("<I", family(e)))


@variant("same", "pcapng")
def null_big_endian(packets, rnd):
    return relinked(packets, p.NULL, lambda e: struct.pack(">I", family(e)))


@variant("same", "pcapng")
def loop(packets, rnd):
    return relinked(packets, p.LOOP, lambda e: struct.pack(">I", family(e)))


@variant("same", "pcapng")
def trailer(packets, rnd):
    """Bytes behind the IP packet (Ethernet padding, FCS) that are not payload."""
    return [framed(packet, packet.data + b"\xfeSMB@\0" + bytes(rnd.randrange(1, 20)))
            for packet in packets]


@variant("same", "pcapng")
def ip_options(packets, rnd):
    """IPv4 options; IPv6 a hop-by-hop header."""
    def change(packet, segment):
        if segment.ip[0] >> 4 == 4:
            return [framed(packet, segment.build(ip=bytes([segment.ip[0] + 1]) + segment.ip[1:] +
                                                 b"\x01\x01\x01\x00"))]
        whole = segment.build()
        ip = bytearray(whole[14:54])
        ip[6] = 0
        struct.pack_into(">H", ip, 4, len(whole) - 54 + 8)
        return [framed(packet, whole[:14] + bytes(ip) + b"\x06\x00\x01\x04\0\0\0\0" + whole[54:])]
    return each_segment(packets, change)


@variant("same", "pcapng")
def other_traffic(packets, rnd):
    """ARP, UDP, an unknown EtherType, a runt and a foreign TCP stream in between."""
    mac = bytes(12)
    udp = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + 20, 1, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1") \
        + struct.pack(">HHHH", 53, 53, 28, 0) + b"\xfeSMB" + bytes(16)
    tcp = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + 30, 1, 0, 64, 6, 0, b"\x0a\0\0\7", b"\x0a\0\0\x08") \
        + struct.pack(">HHIIBBHHH", 33333, 80, 1, 1, 0x50, 0x18, 100, 0, 0) + b"GET / HTTP/1.1\r\n" + bytes(14)
    foreign = (mac + b"\x08\x06" + bytes(28), mac + b"\x08\x00" + udp, mac + b"\x12\x34" + bytes(46),
               mac[:7], mac + b"\x08\x00" + tcp, b"")
    return [q for packet in packets
            for q in [packet] + ([framed(packet, rnd.choice(foreign))] if rnd.random() < 0.3 else [])]


# --- files -------------------------------------------------------------------

@variant("same_us")
def little_endian(packets, rnd):
    return p.pcap(packets)


@variant("same_us")
def big_endian(packets, rnd):
    return p.pcap(packets, ">")


@variant("same")
def nanoseconds(packets, rnd):
    return p.pcap(packets, nanoseconds=True)


@variant("same")
def nanoseconds_big_endian(packets, rnd):
    return p.pcap(packets, ">", nanoseconds=True)


@variant("same", "pcapng")
def ng_big_endian(packets, rnd):
    return p.pcapng(packets, order=">")


@variant("same_us", "pcapng")
def ng_default_resolution(packets, rnd):
    """No if_tsresol: microseconds."""
    return p.section() + p.block(1, struct.pack("<HHI", packets[0].link, 0, 0)) + \
        b"".join(p.enhanced(packet, 0, 6) for packet in packets)


@variant("near", "pcapng")
def ng_binary_resolution(packets, rnd):
    """Times in 2^-30 s since an offset."""
    offset = packets[0].time_ns // 10**9 - 5
    return p.section() + p.interface(packets[0].link, 0x80 | 30, offset) + \
        b"".join(p.enhanced(packet, 0, 0x80 | 30, offset) for packet in packets)


@variant("same", "pcapng")
def ng_sections(packets, rnd):
    """Three sections, each with its interfaces, the middle one in the other byte order."""
    third = len(packets) // 3 + 1
    return b"".join(p.pcapng(packets[n * third:(n + 1) * third], order="<><"[n]) for n in range(3)
                    if packets[n * third:])


@variant("same", "pcapng")
def ng_interfaces(packets, rnd):
    """Three interfaces with different link types, resolutions and offsets, in turn.

    tshark 4.0 shows wrong times for the one with 10^-12 s: its multiplication overflows."""
    base = packets[0].time_ns // 10**9
    kinds = [(packets, 9, 0), (sll(packets, rnd), 9, 1000), (raw_ip(packets, rnd), 12, base - 1)]
    out = p.section()
    for made, resolution, offset in kinds:
        out += p.interface(made[0].link, resolution, offset)
    for n in range(len(packets)):
        which = rnd.randrange(3)
        made, resolution, offset = kinds[which]
        out += p.enhanced(made[n], which, resolution, offset)
    return out


@variant("same", "pcapng")
def ng_oddities(packets, rnd):
    """Blocks and options that a reader must skip, obsolete packet blocks, statistics
    that say that the interface dropped 7 packets."""
    out = p.section() + p.interface(packets[0].link)
    out += p.block(4, struct.pack("<HH", 0, 0))                         # name resolution
    out += p.block(0x0BAD, struct.pack("<I", 32473) + b"custom data")   # custom
    out += p.block(0x7FFF1234, b"nobody knows me!")
    for packet in packets:
        if rnd.random() < 0.3:
            data = packet.data + b"\0" * (-len(packet.data) % 4)
            out += p.block(2, struct.pack("<HHIIII", 0, 0xFFFF, packet.time_ns >> 32,
                                          packet.time_ns & 0xFFFFFFFF, len(packet.data),
                                          packet.wire) + data)
        else:
            comment = p.option(1, b"a comment") + struct.pack("<HH", 0, 0)
            out += p.enhanced(packet, options=comment)
    statistics = p.option(4, struct.pack("<Q", len(packets))) + p.option(5, struct.pack("<Q", 7))
    out += p.block(5, struct.pack("<III", 0, packets[-1].time_ns >> 32,
                                  packets[-1].time_ns & 0xFFFFFFFF) + statistics +
                   struct.pack("<HH", 0, 0))
    return out


@variant("same", "pcapng.gz")
def gzip_(packets, rnd):
    return gzip.compress(p.pcapng(packets), mtime=0)


@variant("same", "pcapng.gz")
def gzip_members(packets, rnd):
    """Two gzip files one behind the other."""
    data = p.pcapng(packets)
    middle = rnd.randrange(1, len(data))
    return gzip.compress(data[:middle], mtime=0) + gzip.compress(data[middle:], mtime=0)


@variant("same", "pcapng.zst")
def zstd_(packets, rnd):
    if not shutil.which("zstd"):
        return None
    return subprocess.run(["zstd", "-q", "-c"], input=p.pcapng(packets), capture_output=True,
                          check=True).stdout


@variant("less")
def cut(packets, rnd):
    """Ends in the middle of a packet."""
    data = p.pcap(packets)
    return data[:len(data) * 6 // 10]


@variant("less", "pcapng")
def ng_cut(packets, rnd):
    data = p.pcapng(packets)
    return data[:len(data) * 6 // 10]


@variant("less", "pcapng.gz")
def gzip_cut(packets, rnd):
    data = gzip.compress(p.pcapng(packets), mtime=0)
    return data[:len(data) * 6 // 10]


@variant("none")
def empty(packets, rnd):
    return p.pcap([])


# --- main --------------------------------------------------------------------

def make(path, name, seed):
    """The bytes of one variant of a capture, or None where it cannot be made here."""
    function, _, ending = VARIANTS[name]
    rnd = random.Random(f"{seed}:{name}:{os.path.basename(path)}")
    made = function(p.read(path), rnd)
    if isinstance(made, list):
        made = p.pcapng(made) if ending == "pcapng" else p.pcap(made)
    return made


def main():
    ask = argparse.ArgumentParser(description="make variants of captures")
    ask.add_argument("capture", nargs="*")
    ask.add_argument("--out", default=".")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(VARIANTS))
    ask.add_argument("--list", action="store_true")
    args = ask.parse_args()
    if args.list:
        for name, (function, expect, ending) in VARIANTS.items():
            first = (function.__doc__ or "").strip().split("\n")[0]
            print(f"{name}\t{expect}\t{ending}\t{first}")
        return
    if not args.capture:
        ask.error("no capture")
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "variants.tsv"), "w") as listing:
        listing.write("file\toriginal\tvariant\texpect\n")
        for path in args.capture:
            stem = os.path.basename(path).split(".")[0]
            for name, (_, expect, ending) in VARIANTS.items():
                if args.only and name not in args.only:
                    continue
                data = make(path, name, args.seed)
                if data is None:
                    print(f"left out: {name} (needs zstd)", file=sys.stderr)
                    continue
                file = f"{stem}.{name}.{ending}"
                with open(os.path.join(args.out, file), "wb") as f:
                    f.write(data)
                listing.write(f"{file}\t{path}\t{name}\t{expect}\n")


if __name__ == "__main__":
    main()
