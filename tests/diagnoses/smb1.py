"""SMB1: bodies of the messages that the cases need, and a session that sends them.

Owns: the layout ([MS-CIFS] 2.2.4) of these few commands. Not: TCP and times (sim.py).
"""

import struct

from sim import CLIENT, SERVER, Connection
from smb2 import DATE, wide

CLOSE, LOCKING, READ, WRITE, TRANS2, NEGOTIATE, SETUP, TREE, NT_TRANS, NT_CREATE = \
    0x04, 0x24, 0x2E, 0x2F, 0x32, 0x72, 0x73, 0x75, 0xA0, 0xA2
NOT_FOUND = 0xC0000034
ANDX = struct.pack("<BBH", 0xFF, 0, 0)
BASIC, STANDARD, EA, ALL = 0x101, 0x102, 0x103, 0x107


def body(words, data=b""):
    assert len(words) % 2 == 0
    return bytes([len(words) // 2]) + words + struct.pack("<H", len(data)) + data


def text(name):
    return wide(name) + b"\0\0"


def information(level):
    basic = struct.pack("<QQQQII", DATE, DATE, DATE, DATE, 0x20, 0)
    standard = struct.pack("<QQIBBH", 8192, 6000, 1, 0, 0, 0)
    ea = struct.pack("<I", 0)
    return {BASIC: basic, STANDARD: standard, EA: ea, ALL: basic + standard + ea + struct.pack("<I", 0)}[level]


class Session1(Connection):
    """SMB1 on a connection."""

    def __init__(self, scene, client, server, share="\\\\FILES\\TEAM", max_mpx=50, signed=False, user="maria", **more):
        super().__init__(scene, client, server, **more)
        self.mid, self.fids, self.uid, self.tid, self.signed = 0, 0x2000, 0, 0, signed
        self.call(NEGOTIATE, body(b"", b"\x02NT LM 0.12\0"), body(
            struct.pack("<HBHHIIIIQHB", 0, 0x0F if signed else 0x03, max_mpx, 1, 16644, 65536, 0, 0xE3FD, DATE, 0, 8),
            b"\x55" * 8 + text("LAB") + text("FILES")))
        self.uid = 0x801
        names = b"\x66" * 24 + b"\x66" * 24 + b"\0" + text(user) + text("LAB") + text("Windows") + text("Windows")
        self.call(SETUP, body(ANDX + struct.pack("<HHHIHHII", 16644, max_mpx, 1, 0, 24, 24, 0, 0x54), names),
                  body(ANDX + struct.pack("<H", 0), b"\0" + text("Unix") + text("Samba") + text("LAB")), service=0.003)
        self.tid = 3
        self.call(TREE, body(ANDX + struct.pack("<HH", 0, 1), b"\0" + text(share) + b"?????\0"),
                  body(ANDX + struct.pack("<H", 1), b"A:\0" + text("NTFS")))

    def head(self, command, mid, status=0, is_reply=False):
        flags = 0xC801 | (4 if self.signed else 0)
        signature = self.random.randbytes(8) if self.signed and self.tid else bytes(8)
        return b"\xffSMB" + struct.pack("<BIBHH8sHHHHH", command, status, 0x98 if is_reply else 0x18, flags, 0,
                                        signature, 0, self.tid, 0xFEFF, self.uid, mid)

    def request(self, time, command, data, zeros=0):
        self.mid += 1
        return self.mid, self.send(time, CLIENT, self.head(command, self.mid) + data, zeros)

    def reply(self, time, mid, command, data, status=0, zeros=0):
        return self.send(time, SERVER, self.head(command, mid, status, True) + (data or body(b"")), zeros)

    def call(self, command, data, answer, status=0, service=None, up=0, down=0):
        mid, left = self.request(self.t, command, data, up)
        service = 0.0003 * (0.7 + self.random.expovariate(2.5)) if service is None else service
        self.t = self.reply(left + self.rtt + service, mid, command, answer, status, down) + 0.00002

    def open_bodies(self, path, oplock):
        self.fids += 1
        raw = text(path)
        ask = body(ANDX + struct.pack("<BHIIIQIIIIIB", 0, len(raw) - 2, 6 if oplock else 0, 0, 0x2019F, 0, 0x80, 7, 3,
                                      0x40, 2, 0), b"\0" + raw)
        answer = body(ANDX + struct.pack("<BHIQQQQIQQHHB", 2 if oplock else 0, self.fids, 1, DATE, DATE, DATE, DATE,
                                         0x20, 8192, 6000, 0, 7, 0))
        return ask, answer, self.fids

    def open(self, path, oplock=False, service=None):
        ask, answer, fid = self.open_bodies(path, oplock)
        self.call(NT_CREATE, ask, answer, service=service)
        return fid

    def close(self, fid):
        self.call(CLOSE, body(struct.pack("<HI", fid, 0xFFFFFFFF)), body(b""))

    def read(self, fid, offset, size):
        words = ANDX + struct.pack("<HIHHIHI", fid, offset, size, size, 0, 0, 0)
        answer = struct.pack("<HHHHH10x", 0xFFFF, 0, 0, size, 32 + 1 + 24 + 2 + 1)
        data = bytes([12]) + ANDX + answer + struct.pack("<H", size + 1) + b"\0"
        self.call(READ, body(words), data, down=size)

    def write(self, fid, offset, size):
        words = ANDX + struct.pack("<HIIHHHHHI", fid, offset, 0, 0, 0, 0, size, 32 + 1 + 28 + 2 + 1, 0)
        ask = bytes([14]) + words + struct.pack("<H", size + 1) + b"\0"
        self.call(WRITE, ask, body(ANDX + struct.pack("<HHHH", size, 0, 0, 0)), up=size)

    def transaction2(self, function, params, result=None, data=b"", status=0, service=None):
        where = 32 + 1 + 30 + 2 + 3
        ask = body(struct.pack("<HHHHBBHIHHHHHBBH", len(params), 0, 10, 16644, 0, 0, 0, 0, 0, len(params), where, 0,
                               where + len(params), 1, 0, function), bytes(3) + params)
        if status:
            answer = None
        else:
            where = 32 + 1 + 20 + 2 + 1
            result = result + bytes(-len(result) % 4)
            answer = body(struct.pack("<HHHHHHHHHBB", len(result), len(data), 0, len(result), where, 0, len(data),
                                      where + len(result), 0, 0, 0), b"\0" + result + data)
        self.call(TRANS2, ask, answer, status, service)

    def path_info(self, path, level=ALL, status=0):
        self.transaction2(5, struct.pack("<HI", level, 0) + text(path), struct.pack("<H", 0), information(level),
                          status)

    def find(self, pattern, names):
        """FIND_FIRST2 with everything in one answer."""
        data = b""
        for number, name in enumerate(names):
            raw = wide(name)
            one = struct.pack("<IQQQQQQIIIBB24s", 0, DATE, DATE, DATE, DATE, 6000, 8192, 0x20, len(raw), 0, 0, 0,
                              bytes(24)) + raw
            is_last = number == len(names) - 1
            size = 4 + len(one)
            data += struct.pack("<I", 0 if is_last else size + -size % 8) + one + (b"" if is_last else bytes(-size % 8))
        self.transaction2(1, struct.pack("<HHHHI", 0x16, 1366, 6, 0x104, 0) + text(pattern),
                          struct.pack("<HHHHH", 0x1001, len(names), 1, 0, 0), data)

    def watch(self, fid):
        """NT NOTIFY: pending without any interim reply."""
        words = struct.pack("<B2xIIIIIIIIBHIHBB", 0, 0, 0, 4096, 0, 0, 76, 0, 76, 4, 4, 0x17, fid, 0, 0)
        return self.request(self.t, NT_TRANS, body(words))

    def changed(self, time, mid, name):
        raw = wide(name)
        params = struct.pack("<III", 0, 1, len(raw)) + raw
        where = 32 + 1 + 36 + 2 + 1
        words = struct.pack("<3xIIIIIIIIB", len(params), 0, len(params), where, 0, 0, where + len(params), 0, 0)
        return self.reply(time, mid, NT_TRANS, body(words, b"\0" + params))

    def oplock_break(self, time, fid):
        words = ANDX + struct.pack("<HBBIHH", fid, 2, 0, 0, 0, 0)
        head = b"\xffSMB" + struct.pack("<BIBHH8sHHHHH", LOCKING, 0, 0, 0xC801, 0, bytes(8), 0, self.tid, 0, self.uid,
                                        0xFFFF)
        return self.send(time, SERVER, head + body(words))

    def break_answer(self, time, fid):
        words = ANDX + struct.pack("<HBBIHH", fid, 2, 0, 0, 0, 0)
        self.send(time, CLIENT, self.head(LOCKING, 0xFFFF) + body(words))
