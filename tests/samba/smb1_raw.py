#!/usr/bin/env python3
"""Sends the SMB1 commands that no client at hand sends: smb1_raw.py ADDRESS PORT SHARE

Owns: a guest session of AndX chains, Open AndX, Write Raw and Read Raw, core
Read and Write, Transaction2 with secondaries, Seek, Flush, Process Exit.
Not: a client for anything else. Messages after MS-CIFS 2.2.4. Standard library only.
"""

import socket
import struct
import sys

STATUS32, LONG_NAMES = 0x4000, 0x0001
COMMANDS = {"write raw": 0x1D, "read raw": 0x1A, "read": 0x0A, "lock and read": 0x13, "write and unlock": 0x14,
             "write": 0x0B, "open andx": 0x2D,
            "seek": 0x12, "flush": 0x05, "close": 0x04, "process exit": 0x11, "echo": 0x2B,
            "delete": 0x06, "trans2": 0x32, "trans2 secondary": 0x33, "negotiate": 0x72,
            "session setup": 0x73, "tree connect": 0x75, "read andx": 0x2E, "close tree": 0x71}


class Session:
    def __init__(self, address, port):
        self.socket = socket.create_connection((address, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.uid = self.tid = self.mid = 0

    def header(self, command, mid=None):
        self.mid += mid is None
        return struct.pack("<4sBIBHH8xHHHHH", b"\xffSMB", COMMANDS[command], 0, 0x08,
                           STATUS32 | LONG_NAMES, 0, 0, self.tid, 4242, self.uid,
                           self.mid if mid is None else mid)

    def send(self, command, words, data=b"", mid=None):
        message = self.header(command, mid) + bytes([len(words) // 2]) + words + \
            struct.pack("<H", len(data)) + data
        self.send_block(message)

    def send_block(self, block):
        self.socket.sendall(struct.pack(">I", len(block)) + block)

    def receive(self, fine=True):
        """One message: its header's status is checked, its words and data returned."""
        block = self.receive_block()
        status, = struct.unpack_from("<I", block, 5)
        if fine and status:
            sys.exit(f"command {block[4]:#x}: status {status:#010x}")
        self.tid, _, self.uid = struct.unpack_from("<HHH", block, 24)
        words = block[33:33 + 2 * block[32]]
        return words, block[35 + len(words):]

    def receive_block(self):
        def exactly(n):
            data = b""
            while len(data) < n:
                more = self.socket.recv(n - len(data))
                if not more:
                    sys.exit("the server closed the connection")
                data += more
            return data
        while True:
            head, = struct.unpack(">I", exactly(4))
            if head >> 24 == 0:
                return exactly(head & 0x1FFFF)
            # Samba sends a NetBIOS keep-alive (0x85) after a raw block written behind

    def call(self, command, words, data=b"", fine=True):
        self.send(command, words, data)
        return self.receive(fine)


def log_on(s, share):
    s.call("negotiate", b"", b"\x02NT LM 0.12\x00")
    # SessionSetupAndX and TreeConnectAndX in one message, an account that is not known
    account = b"stranger\x00LAB\x00Unix\x00smb1_raw\x00"
    password = bytes(24)
    data = password + account
    setup = struct.pack("<BBHHHHIHHII", COMMANDS["tree connect"], 0, 0, 65535, 50, 0, 0,
                        len(password), 0, 0, 0)
    next_offset = 32 + 1 + len(setup) + 2 + len(data)
    setup = setup[:2] + struct.pack("<H", next_offset) + setup[4:]
    tree_data = b"\x00" + share + b"\x00" + b"?????\x00"
    tree = struct.pack("<BBHHH", 0xFF, 0, 0, 0, 1)
    s.send_block(s.header("session setup") + bytes([len(setup) // 2]) + setup +
                 struct.pack("<H", len(data)) + data + bytes([len(tree) // 2]) + tree +
                 struct.pack("<H", len(tree_data)) + tree_data)
    s.receive()


def open_file(s, name):
    words = struct.pack("<BBHHHHHIHIII", 0xFF, 0, 0, 0, 0x0042, 0x16, 0, 0, 0x12, 0, 0, 0)
    words, _ = s.call("open andx", words, name + b"\x00")
    return struct.unpack_from("<H", words, 4)[0]


def write_raw(s, fid, offset, first, rest, through):
    """Data partly in the request and partly in a block without an SMB header.

    Write-through is answered at the end (Write Complete), write-behind is not."""
    total = len(first) + len(rest)
    words = struct.pack("<HHHIIHIHH", fid, total, 0, offset, 0, int(through), 0, len(first),
                        32 + 1 + 24 + 2)
    s.send("write raw", words, first)
    s.receive()
    s.send_block(rest)
    if through:
        s.receive()


def read_raw(s, fid, offset, count):
    """Answered by a block without an SMB header, empty at the end or on an error."""
    s.send("read raw", struct.pack("<HIHHIH", fid, offset, count, 0, 0, 0))
    return s.receive_block()


def set_path_information(s, name, pieces):
    """TRANS2_SET_PATH_INFORMATION (SMB_INFO_STANDARD), its parameters and data in `pieces`."""
    parameters = struct.pack("<HI", 1, 0) + name + b"\x00"
    data = struct.pack("<HHHHHHIIH", 0, 0, 0, 0, 0x5021, 0x0C43, 0, 0, 0) + bytes(4)
    at = len(data) // pieces + 1
    head = 32 + 1 + 30 + 2 + 1
    words = struct.pack("<HHHHBBHIHHHHHBBH", len(parameters), len(data), 10, 0, 0, 0, 0, 0, 0,
                        len(parameters), head, 0, head, 1, 0, 6)
    s.send("trans2", words, b"\x00" + parameters)
    s.receive()  # the interim reply asks for the rest
    mid = s.mid
    for start in range(0, len(data), at):
        part = data[start:start + at]
        words = struct.pack("<HHHHHHHHH", len(parameters), len(data), 0, 0, 0, len(part),
                            32 + 1 + 18 + 2, start, 0xFFFF)
        s.send("trans2 secondary", words, part, mid=mid)
    s.receive()


def main():
    address, port, share = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
    s = Session(address, port)
    log_on(s, share)
    fid = open_file(s, b"\\raw.bin")
    pattern = b"".join(b"%07d\n" % n for n in range(1500))
    write_raw(s, fid, 0, pattern[:3000], pattern[3000:9000], through=True)
    write_raw(s, fid, 9000, b"", pattern[9000:], through=True)
    # write-behind has no second reply; the next command's reply shows that it is done
    write_raw(s, fid, 12000, b"", pattern[:500], through=False)
    # a raw block that itself looks like an SMB message must not be taken for one
    decoy = struct.pack("<4sBI", b"\xffSMB", 0x2B, 0) + bytes(23) + b"\x01" + bytes(200)
    write_raw(s, fid, 20000, b"", decoy, through=True)
    s.call("flush", struct.pack("<H", fid))
    if read_raw(s, fid, 0, 12000) != pattern[:12000]:
        sys.exit("raw data came back changed")
    if read_raw(s, fid, 20000, len(decoy)) != decoy:
        sys.exit("the decoy came back changed")
    if read_raw(s, fid, 1 << 20, 1000):
        sys.exit("data behind the end of the file")
    if read_raw(s, 0x7777, 0, 1000):
        sys.exit("data of a file that is not open")
    s.call("write", struct.pack("<HHIH", fid, 700, 100, 0), b"\x01" + struct.pack("<H", 700) +
           pattern[:700])
    s.call("read", struct.pack("<HHIH", fid, 900, 100, 0))
    s.call("lock and read", struct.pack("<HHIH", fid, 50, 100, 0))
    s.call("write and unlock", struct.pack("<HHIH", fid, 50, 100, 0), b"\x01" +
           struct.pack("<H", 50) + pattern[:50])
    s.call("read", struct.pack("<HHIH", 0x7777, 900, 100, 0), fine=False)
    s.call("seek", struct.pack("<HHi", fid, 0, 5000))
    s.send("echo", struct.pack("<H", 3), b"three times")
    for _ in range(3):
        s.receive()
    s.call("close", struct.pack("<HI", fid, 0))
    set_path_information(s, b"\\raw.bin", 3)
    s.call("process exit", b"")
    s.call("delete", struct.pack("<H", 0x16), b"\x04\\raw.bin\x00")
    s.call("close tree", b"")


if __name__ == "__main__":
    main()
