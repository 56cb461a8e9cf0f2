#!/usr/bin/env python3
"""Sends SMB2 messages that no client at hand sends: smb2_raw.py ADDRESS PORT SHARE

Owns: a guest session in 3.1.1 with compounds of every kind, Create contexts
(also unknown ones), reads in flight together, a waiting lock and a waiting
notification, each cancelled.
Not: a client for anything else. Messages after MS-SMB2 2.2. Standard library only.
"""

import socket
import struct
import sys

NEGOTIATE, SESSION_SETUP, LOGOFF, TREE_CONNECT, TREE_DISCONNECT, CREATE, CLOSE, FLUSH, READ, \
    WRITE, LOCK, IOCTL, CANCEL, ECHO, QUERY_DIRECTORY, CHANGE_NOTIFY, QUERY_INFO = range(17)
PENDING, MORE_PROCESSING = 0x103, 0xC0000016
RESPONSE, ASYNC, RELATED = 1, 2, 4
SAME = b"\xff" * 16  # the file id of the chain's previous member


class Session:
    def __init__(self, address, port, source=""):
        self.socket = socket.create_connection((address, port), source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.session = self.tree = self.message = 0

    def header(self, command, flags=0, next_command=0, charge=1, async_id=None, message=None):
        if message is None:
            message = self.message
            self.message += charge
        last = struct.pack("<Q", async_id) if async_id else struct.pack("<II", 0xFEFF, self.tree)
        return struct.pack("<4sHHIHHIIQ", b"\xfeSMB", 64, charge, 0, command, 64,
                           flags | (ASYNC if async_id else 0), next_command, message) + last + \
            struct.pack("<Q16x", self.session)

    def send(self, *members, related=False):
        """Sends (command, body[, charge]) as one message; returns its message ids."""
        out, ids = b"", []
        for n, (command, body, *charge) in enumerate(members):
            ids.append(self.message)
            padded = body + bytes(-len(body) % 8)
            last = n == len(members) - 1
            out += self.header(command, RELATED if related and n else 0,
                               0 if last else 64 + len(padded), *charge)
            out += body if last else padded
        self.send_block(out)
        return ids

    def send_block(self, block):
        self.socket.sendall(struct.pack(">I", len(block)) + block)

    def receive(self):
        """One message's members as (message id, status, async id or None, body)."""
        def exactly(n):
            data = b""
            while len(data) < n:
                more = self.socket.recv(n - len(data))
                if not more:
                    sys.exit("the server closed the connection")
                data += more
            return data
        block = exactly(struct.unpack(">I", exactly(4))[0])
        members = []
        while True:
            status, _, _, flags, following, message = struct.unpack_from("<IHHIIQ", block, 8)
            async_id = struct.unpack_from("<Q", block, 32)[0] if flags & ASYNC else None
            self.session = struct.unpack_from("<Q", block, 40)[0] or self.session
            if not flags & ASYNC:
                self.last_tree = struct.unpack_from("<I", block, 36)[0]
            members.append((message, status, async_id, block[64:following or len(block)]))
            if not following:
                return members
            block = block[following:]

    def call(self, *members, related=False, statuses=None):
        """Sends and waits for the final reply of every member; returns their bodies."""
        ids = self.send(*members, related=related)
        return self.wait(ids, statuses)

    def wait(self, ids, statuses=None):
        final = {}
        while len(final) < len(ids):
            for message, status, _, body in self.receive():
                if status != PENDING:
                    final[message] = (status, body)
        got = [final[i][0] for i in ids]
        if got != (statuses or [0] * len(ids)):
            sys.exit(f"statuses {[hex(s) for s in got]}")
        return [final[i][1] for i in ids]


def negotiate_context(kind, data):
    return struct.pack("<HHI", kind, len(data), 0) + data + bytes(-len(data) % 8)


def negotiate(s):
    dialects = struct.pack("<5H", 0x0202, 0x0210, 0x0300, 0x0302, 0x0311)
    contexts = negotiate_context(1, struct.pack("<HHH", 1, 32, 1) + bytes(range(32))) + \
        negotiate_context(3, struct.pack("<HHIHH", 2, 0, 0, 2, 3)) + \
        negotiate_context(5, "server".encode("utf-16-le")) + \
        negotiate_context(0x7777, b"nobody knows me")
    offset = 64 + 36 + len(dialects) + -(36 + len(dialects)) % 8
    body = struct.pack("<HHHHI16sIHH", 36, 5, 1, 0, 0x7F, bytes(range(16)), offset, 4, 0) + dialects
    s.call((NEGOTIATE, body + bytes(offset - 64 - len(body)) + contexts))


def session_setup(token, binding=False):
    return (SESSION_SETUP, struct.pack("<HBBIIHHQ", 25, 1 if binding else 0, 1, 0, 0, 88, len(token), 0) + token)


def log_on(s, share):
    negotiate(s)
    flags = 0x00000205  # Unicode, request target, NTLM: nothing that needs a key
    first = b"NTLMSSP\0" + struct.pack("<II", 1, flags) + bytes(16)
    user, domain = "stranger".encode("utf-16-le"), "LAB".encode("utf-16-le")
    reply = bytes(24)
    at = 64
    fields = b""
    for data in (reply, reply, domain, user, b"", b""):
        fields += struct.pack("<HHI", len(data), len(data), at)
        at += len(data)
    third = b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", flags) + \
        reply + reply + domain + user
    for token, status in ((first, MORE_PROCESSING), (third, 0)):
        s.call(session_setup(token), statuses=[status])
    path = f"\\\\server\\{share}".encode("utf-16-le")
    s.call((TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(path)) + path))
    s.tree = s.last_tree


def create(name, access=0x0012019F, disposition=3, options=0, oplock=0, contexts=()):
    """A Create body; `contexts` are (name, data)."""
    name = name.encode("utf-16-le")
    padded = name + bytes(-len(name) % 8) if name else bytes(8)
    blob = create_contexts(contexts)
    return struct.pack("<HBBIQQIIIIIHHII", 57, 0, oplock, 2, 0, 0, access, 0, 7, disposition,
                       options, 120, len(name), 120 + len(padded) if blob else 0, len(blob)) + \
        padded + blob


def create_contexts(contexts):
    blob = b""
    for n, (tag, data) in enumerate(contexts):
        one = struct.pack("<HHHHI", 16, len(tag), 0, 24 if data else 0, len(data)) + \
            tag + bytes(8 - len(tag)) + data
        more = n < len(contexts) - 1
        padding = bytes(-(4 + len(one)) % 8) if more else b""
        blob += struct.pack("<I", 4 + len(one) + len(padding) if more else 0) + one + padding
    return blob


def lease(key, state, parent=None):
    """SMB2_CREATE_REQUEST_LEASE_V2"""
    return (b"RqLs", struct.pack("<16sIIQ16sHH", key, state, 4 if parent else 0, 0,
                                 parent or bytes(16), 0, 0))


def close(fid):
    return (CLOSE, struct.pack("<HHI", 24, 1, 0) + fid)


def read(fid, offset, length):
    return (READ, struct.pack("<HBBIQ16sIIIHH", 49, 0x50, 0, length, offset, fid, 0, 0, 0, 0, 0) +
            b"\0", (length + 65535) // 65536)


def write(fid, offset, data):
    return (WRITE, struct.pack("<HHIQ16sIIHHI", 49, 112, len(data), offset, fid, 0, 0, 0, 0, 0) +
            data)


def query_info(fid, kind, information):
    return (QUERY_INFO, struct.pack("<HBBIHHIII", 41, kind, information, 4096, 104, 0, 0, 0, 0) +
            fid + b"\0")


def query_directory(fid, pattern="*", flags=0):
    pattern = pattern.encode("utf-16-le")
    return (QUERY_DIRECTORY, struct.pack("<HBBI16sHHI", 33, 37, flags, 0, fid, 96, len(pattern),
                                         16384) + pattern)


def lock(fid, offset, length, flags):
    return (LOCK, struct.pack("<HHI16sQQII", 48, 1, 0, fid, offset, length, flags, 0))


def file_id(body):
    return body[64:80]


def main():
    address, port, share = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    s = Session(address, port)
    log_on(s, share)
    echo = (ECHO, struct.pack("<HH", 4, 0))
    flush = (FLUSH, struct.pack("<HHI", 24, 0, 0) + SAME)
    pattern = b"".join(b"%07d\n" % n for n in range(500))
    contexts = [(b"MxAc", b""), (b"QFid", b""), lease(b"lease key no. 01", 7, b"parent lease key"),
                (b"ZZzz", b"nobody knows me"), (b"AlSi", struct.pack("<Q", 65536))]
    # related: create, write, flush, close; then create, query, close; then create, read, close
    s.call((CREATE, create("compound.txt", disposition=5, oplock=0xFF, contexts=contexts)),
           write(SAME, 0, pattern), flush, close(SAME), related=True)
    s.call((CREATE, create("compound.txt", disposition=1, contexts=contexts[:2])),
           query_info(SAME, 1, 18), query_info(SAME, 2, 3), close(SAME), related=True)
    s.call((CREATE, create("compound.txt", disposition=1)), read(SAME, 0, 1000), close(SAME),
           related=True)
    # a chain whose lead fails: every member answers with the lead's status
    s.call((CREATE, create("not there.txt", disposition=1)), query_info(SAME, 1, 18), close(SAME),
           related=True, statuses=[0xC0000034] * 3)
    # a directory read to its end in two chains
    body, *_ = s.call((CREATE, create("", 0x00100081, 1, 1)), query_directory(SAME),
                      query_directory(SAME), related=True, statuses=[0, 0, 0x80000006])
    directory = file_id(body)
    s.call(query_info(directory, 1, 4), close(directory))
    # unrelated members, among them an error in the middle
    s.call(echo, (CREATE, create("nowhere\\x", disposition=1)), echo,
           statuses=[0, 0xC000003A, 0])
    one, two = (file_id(b) for b in s.call((CREATE, create("compound.txt", disposition=1)),
                                           (CREATE, create("second \u00fc\u4e2d.txt", disposition=5))))
    # eight reads in flight together
    ids = []
    for n in range(8):
        ids += s.send(read(one, n * 100, 100))
    s.wait(ids)
    s.call(read(one, 1 << 20, 100), statuses=[0xC0000011])
    # a lock that waits, and is cancelled by its async id
    s.call(lock(one, 0, 100, 2))
    third = file_id(s.call((CREATE, create("compound.txt", disposition=1)))[0])
    s.call(lock(third, 0, 100, 2 | 0x10), statuses=[0xC0000055])
    waiting, = s.send(lock(third, 0, 100, 2))
    async_id = s.receive()[0][2]
    s.call(echo)
    s.send_block(s.header(CANCEL, async_id=async_id, message=waiting) + struct.pack("<HH", 4, 0))
    s.wait([waiting], [0xC0000120])
    # a lock that waits, and is granted
    waiting, = s.send(lock(third, 0, 100, 2))
    s.receive()
    unlock, = s.send(lock(one, 0, 100, 4))
    s.wait([waiting, unlock])
    # a notification that waits, answered; another, cancelled
    directory = file_id(s.call((CREATE, create("", 0x00100081, 1, 1)))[0])
    notify = (CHANGE_NOTIFY, struct.pack("<HHI16sII", 32, 0, 4096, directory, 0xFFF, 0))
    waiting, = s.send(notify)
    s.receive()
    fresh, = s.send((CREATE, create("fresh.txt", 0x0013019F, 2, 0x1000)))
    fresh, _ = s.wait([fresh, waiting])
    s.call(close(file_id(fresh)))
    while True:  # changes that are waiting already are answered at once
        waiting, = s.send(notify)
        if s.receive()[0][1] == PENDING:
            break
    s.send_block(s.header(CANCEL, message=waiting) + struct.pack("<HH", 4, 0))
    s.wait([waiting], [0xC0000120])
    s.call(close(one), close(two), close(third), close(directory))
    s.call((TREE_DISCONNECT, struct.pack("<HH", 4, 0)))
    s.call((LOGOFF, struct.pack("<HH", 4, 0)))


if __name__ == "__main__":
    main()
