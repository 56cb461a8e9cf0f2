"""A client that does what a case needs: several requests in flight, within its credits, oplock breaks heard.

Owns: one guest session on one connection. Not: messages (tests/samba/smb2_raw.py). MS-SMB2 2.2.
"""

import contextlib
import ctypes
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../samba"))
import smb2_raw as raw

CLONE_NEWNET = 0x40000000
PATIENCE_S = 15
UNASKED = 0xFFFFFFFFFFFFFFFF
READ, WRITE, ALL, LIST = 0x00120089, 0x0012019F, 0x001F01FF, 0x00100081
OPEN, CREATE, OPEN_IF, OVERWRITE_IF = 1, 2, 3, 5
DIRECTORY, FILE = 1, 0x40
BATCH = 9
NOT_FOUND, SHARING_VIOLATION, NO_MORE_FILES, NOT_GRANTED = 0xC0000034, 0xC0000043, 0x80000006, 0xC0000055
SAME = raw.SAME


@contextlib.contextmanager
def inside(namespace):
    """Sockets that are made meanwhile belong to the network namespace of that name."""
    if not namespace:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    mine, theirs = (os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", f"/run/netns/{namespace}"))
    try:
        if libc.setns(theirs, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
        yield
    finally:
        libc.setns(mine, CLONE_NEWNET)
        os.close(mine)
        os.close(theirs)


class Client(raw.Session):
    """Logged on and connected to the share; knows its credits."""

    def __init__(self, address, namespace=None, share="home", asks=64, port=445, source=""):
        self.credits, self.asks = 1, asks
        self.replies, self.breaks = {}, []
        with inside(namespace):
            super().__init__(address, port, source)
        self.socket.settimeout(PATIENCE_S)
        raw.log_on(self, share)

    def keep_alive(self, seconds):
        for option, value in ((socket.TCP_KEEPIDLE, seconds), (socket.TCP_KEEPINTVL, seconds)):
            self.socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def header(self, command, *args, **more):
        made = super().header(command, *args, **more)
        return made[:14] + struct.pack("<H", self.asks) + made[16:]

    def send(self, *members, related=False):
        self.credits -= sum(charge(member) for member in members)
        return super().send(*members, related=related)

    def exactly(self, n):
        data = bytearray()
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise ConnectionError("the server closed the connection")
            data += more
        return bytes(data)

    def receive(self):
        """Takes one message: replies, or a break."""
        block = self.exactly(struct.unpack(">I", self.exactly(4))[0])
        while block:
            status, _, credits, flags, following, message = struct.unpack_from("<IHHIIQ", block, 8)
            self.credits += credits
            self.session = struct.unpack_from("<Q", block, 40)[0] or self.session
            if not flags & raw.ASYNC:
                self.last_tree = struct.unpack_from("<I", block, 36)[0]
            body = block[64:following or len(block)]
            if message == UNASKED:
                self.breaks.append(body)
            elif status != raw.PENDING:
                self.replies[message] = (status, body)
            block = block[following:] if following else b""

    def wait(self, ids, statuses=None):
        """The bodies of the replies; with statuses, those they must have (None: any)."""
        while not all(one in self.replies for one in ids):
            self.receive()
        got = [self.replies.pop(one) for one in ids]
        for (status, _), expected in zip(got, statuses or [0] * len(ids)):
            if expected is not None and status != expected:
                raise AssertionError(f"statuses {[hex(status) for status, _ in got]}")
        return [body for _, body in got]

    def chain(self, *members, statuses=None):
        """One related compound."""
        return self.call(*members, related=True, statuses=statuses)

    def pipeline(self, requests, depth):
        """As many in flight as `depth` and the credits allow."""
        ids = []
        under_way = lambda: sum(one not in self.replies for one in ids)
        for request in requests:
            while under_way() >= depth or self.credits < charge(request):
                self.receive()
            ids += self.send(request)
        return self.wait(ids)

    def chains(self, chains, depth):
        """The same with compounds."""
        under_way = []
        for members in chains:
            if len(under_way) == depth:
                self.wait(under_way.pop(0))
            under_way.append(self.send(*members, related=True))
        for ids in under_way:
            self.wait(ids)

    def open(self, name, access=READ, disposition=OPEN, options=FILE, **more):
        return raw.file_id(self.call(create(name, access, disposition, options, **more))[0])

    def close(self, fid):
        self.call(raw.close(fid))

    def status(self, request):
        """Of whatever comes."""
        one, = self.send(request)
        while one not in self.replies:
            self.receive()
        return self.replies.pop(one)[0]


def charge(request):
    return request[2] if len(request) > 2 else 1


def create(name, access=READ, disposition=OPEN, options=FILE, share=7, oplock=0):
    body = raw.create(name, access, disposition, options, oplock)
    return (raw.CREATE, body[:32] + struct.pack("<I", share) + body[36:])


def write(fid, offset, data, through=False):
    command, body = raw.write(fid, offset, data)
    return (command, body[:44] + struct.pack("<I", int(through)) + body[48:], -(-len(data) // 65536))


def flush(fid):
    return (raw.FLUSH, struct.pack("<HHI", 24, 0, 0) + fid)


def look(name, *between):
    """Members of a compound that asks about a file."""
    return [create(name), *(between or [raw.query_info(SAME, 1, 18)]), raw.close(SAME)]


def listing(folder):
    """Members of a compound that lists a folder to its end, and their statuses."""
    return [create(folder, LIST, OPEN, DIRECTORY), raw.query_directory(SAME), raw.query_directory(SAME),
            raw.close(SAME)], [0, 0, NO_MORE_FILES, 0]


def interfaces():
    """FSCTL_QUERY_NETWORK_INTERFACE_INFO: which other ways to the server there are."""
    return (raw.IOCTL, struct.pack("<HHI16sIIIIIIII", 57, 0, 0x001401FC, SAME, 120, 0, 0, 120, 0, 65536, 1, 0) + b"\0")
