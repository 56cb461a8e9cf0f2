"""An SMB2 server that logs on a client correctly (NTLM, signing, encryption) and then lies in one way.

`Server(mode, dialect)` listens on a free port of 127.0.0.1; `seen` counts the requests by command. Needs pycryptodomex.
MS-SMB2 sections 2.2 and 3.1.4, MS-NLMP section 3.3.2.
"""

import collections
import hashlib
import hmac
import os
import socket
import struct
import threading
import time

from Cryptodome.Cipher import AES, ARC4
from Cryptodome.Hash import CMAC, MD4

USER, PASSWORD = "LAB\\u", "Secret-Pass-77"
NEGOTIATE, SETUP, LOGOFF, TREE, CREATE, CLOSE, FLUSH, READ, WRITE = 0, 1, 2, 3, 5, 6, 7, 8, 9
LOCK, IOCTL, CANCEL, ECHO, LIST, NOTIFY, QUERY, SET = range(10, 18)
MORE, PENDING, NO_MORE_FILES, NOT_SUPPORTED = 0xC0000016, 0x103, 0x80000006, 0xC00000BB
SESSION, GUID, CHALLENGE = 0x77, b"G" * 16, b"12345678"

# Lies about protection: whatever the server does, the client must not continue. Mode: dialect, options of the client.
REFUSED = {
    "guest": (0x311, ["--signing", "required"]),
    "guest-sealed": (0x311, ["--encryption", "required"]),
    "null": (0x302, ["--signing", "required"]),
    "plain": (0x311, ["--encryption", "required"]),
    "unsigned": (0x311, ["--signing", "required"]),
    "unsigned-error": (0x302, ["--signing", "required"]),
    "wrong-signature": (0x302, ["--signing", "required"]),
    "as-setup": (0x302, ["--signing", "required"]),
    "as-break": (0x311, ["--signing", "required"]),
    "last-unsigned": (0x311, []),
    "last-unsigned-old": (0x302, ["--signing", "required"]),
    "downgrade-210": (0x210, ["--signing", "required"]),
    "downgrade-202": (0x202, ["--signing", "required"]),
    "downgrade-302": (0x302, ["--signing", "required"]),
    "other-cipher": (0x311, ["--encryption", "aes-256-gcm"]),
    "other-signing": (0x311, ["--signing", "aes-cmac"]),
}

# Lies of the Negotiate reply: the client may find out when it validates the negotiation.
AT_NEGOTIATION = ["downgrade-210", "downgrade-202", "downgrade-302", "other-cipher", "other-signing"]

# Servers that do not end, or send what is not a reply: the client ends with an error in time.
ENDLESS = [
    "silent", "garbage", "netbios-4g", "netbios-16m", "keep-alives", "empty-frames", "drip", "pending", "wrong-ids",
    "setup-loop", "ntlm-offsets", "tree-pending", "tree-drip", "breaks", "lease-breaks", "overlap", "no-credits", "listing",
    "create-short", "create-huge", "read-huge", "write-huge",
]  # fmt: skip
# What the fast form tries.
FAST = ["guest", "plain", "as-setup", "downgrade-210", "other-cipher", "unsigned", "garbage", "netbios-16m", "breaks", "overlap",
        "pending", "setup-loop"]  # fmt: skip


def derive(key, label, context):
    text = b"\0\0\0\1" + label + b"\0" + context + b"\0\0\0\x80"
    return hmac.new(key, text, hashlib.sha256).digest()[:16]


class Gone(Exception):
    """The client has left."""


class Peer:
    def __init__(self, server, stream):
        self.server, self.stream, self.dialect, self.mode = server, stream, server.dialect, server.mode
        self.preauth, self.key, self.seals = bytes(64), None, None
        # The client has been lied to: whatever it sends on this connection now, it has accepted.
        self.is_lied_to = False

    def exactly(self, count):
        parts = b""
        while len(parts) < count:
            part = self.stream.recv(count - len(parts))
            if not part:
                raise Gone
            parts += part
        return parts

    def frame(self, message):
        self.stream.sendall(struct.pack(">I", len(message)) + message)

    def forever(self, bytes_, pause=0.0):
        while True:
            self.stream.sendall(bytes_)
            time.sleep(pause)

    def drip(self, message, pause):
        for byte in struct.pack(">I", len(message)) + message:
            self.stream.sendall(bytes([byte]))
            time.sleep(pause)

    def header(self, command, number, status=0, credits=64, flags=1, session=SESSION, following=0, tree=1):
        ids = struct.pack("<QIIQ", number, 0xFEFF, tree, session)
        return struct.pack("<4sHHIHHII", b"\xfeSMB", 64, 1, status, command, credits, flags, following) + ids + bytes(16)

    def signed(self, message):
        message = bytearray(message)
        message[16] |= 8
        message[48:64] = bytes(16)
        if self.dialect >= 0x300:
            signature = CMAC.new(self.key, bytes(message), AES).digest()
        else:
            signature = hmac.new(self.key, bytes(message), hashlib.sha256).digest()[:16]
        message[48:64] = signature
        return bytes(message)

    def sealed(self, message):
        nonce = os.urandom(12)
        head = nonce + bytes(4) + struct.pack("<IHHQ", len(message), 0, 1, SESSION)
        cipher = AES.new(self.seals[1], AES.MODE_GCM, nonce=nonce)
        cipher.update(head)
        text, tag = cipher.encrypt_and_digest(message)
        return b"\xfdSMB" + tag + head + text

    def opened(self, message):
        cipher = AES.new(self.seals[0], AES.MODE_GCM, nonce=message[20:32])
        cipher.update(message[20:52])
        return cipher.decrypt_and_verify(message[52:], message[4:20])

    def serve(self):
        while True:
            message = self.exactly(struct.unpack(">I", self.exactly(4))[0])
            is_sealed = message[:4] == b"\xfdSMB"
            if is_sealed:
                message = self.opened(message)
            while message:
                following = struct.unpack_from("<I", message, 20)[0]
                self.request(message[:following] if following else message, is_sealed)
                message = message[following:] if following else b""

    def request(self, message, is_sealed):
        command, number = struct.unpack_from("<H", message, 12)[0], struct.unpack_from("<Q", message, 24)[0]
        self.server.seen[command] += 1
        is_signed = struct.unpack_from("<I", message, 16)[0] & 8
        lied = self.is_lied_to and command != LOGOFF
        lied |= self.mode in AT_NEGOTIATION and command in (CREATE, LIST, QUERY, READ, WRITE)
        self.server.accepted += bool(lied)
        if command in (NEGOTIATE, SETUP):
            self.preauth = hashlib.sha512(self.preauth + message).digest()
        if command == NEGOTIATE:
            return self.negotiate(number)
        if command == SETUP:
            return self.setup(number, message)
        if command == CANCEL:
            return None
        status, body = self.body(command, message)
        if command == TREE and self.lies_at_tree(number, body):
            self.is_lied_to = True
            return None
        if self.mode == "forged-write" and command == WRITE and self.server.seen[WRITE] > self.server.honest_writes:
            # Somebody on the path answers before the server, without its keys.
            self.server.forged += 1
            return self.frame(self.header(command, number) + body)
        self.server.acknowledged += command == WRITE
        reply = self.header(command, number, status, credits=0 if self.mode == "no-credits" else 64) + body
        if is_sealed:
            return self.frame(self.sealed(reply))
        return self.frame(self.signed(reply) if self.key and is_signed else reply)

    def lies_at_tree(self, number, body):
        reply = self.header(TREE, number) + body
        interim = lambda of: struct.pack("<HHI", 9, 0, 0) + b"\0"  # noqa: E731
        if self.mode in ("plain", "unsigned"):
            self.frame(reply)
        elif self.mode == "unsigned-error":
            self.frame(self.header(TREE, number, 0xC0000022) + interim(0))
        elif self.mode == "wrong-signature":
            wrong = bytearray(self.signed(reply))
            wrong[50] ^= 1
            self.frame(bytes(wrong))
        elif self.mode == "as-setup":
            self.frame(self.header(SETUP, number) + body)
        elif self.mode == "as-break":
            self.frame(self.header(18, number) + body)
        elif self.mode == "tree-pending":
            one = self.header(TREE, number, PENDING, 65535, flags=3) + interim(0)
            self.forever(struct.pack(">I", len(one)) + one)
        elif self.mode == "tree-drip":
            self.drip(self.signed(reply), 1)
        elif self.mode == "overlap":
            members = self.header(ECHO, 999, following=8) * 1000
            self.forever(struct.pack(">I", len(members)) + members)
        elif self.mode in ("breaks", "lease-breaks"):
            body = struct.pack("<HBBI16s", 24, 1, 0, 0, bytes(16))
            if self.mode == "lease-breaks":
                body = struct.pack("<HHI16sIIIII", 44, 1, 1, bytes(16), 7, 0, 0, 0, 0)
            one = self.header(18, 2**64 - 1) + body
            self.forever(struct.pack(">I", len(one)) + one)
        else:
            return False
        return True

    def negotiate(self, number):
        endless = {
            "silent": lambda: time.sleep(600),
            "garbage": lambda: (self.stream.sendall(os.urandom(4096)), time.sleep(600)),
            "netbios-4g": lambda: (self.stream.sendall(b"\xff" * 4 + os.urandom(100)), time.sleep(600)),
            "netbios-16m": lambda: (self.stream.sendall(b"\0\xff\xff\xff\xfeSMB"), self.forever(b"A" * 65536, 0.01)),
            "keep-alives": lambda: self.forever(b"\x85\0\0\0" * 100),
            "empty-frames": lambda: self.forever(bytes(4000)),
            "drip": lambda: self.drip(b"\xfeSMB" + bytes(196), 1),
            "wrong-ids": lambda: self.forever(struct.pack(">I", 129) + self.header(0, 12345, session=0) + bytes(65)),
        }
        if self.mode in endless:
            endless[self.mode]()
        if self.mode == "pending":
            one = self.header(0, number, PENDING, 65535, flags=3, session=0) + struct.pack("<HHI", 9, 0, 0) + b"\0"
            self.forever(struct.pack(">I", len(one)) + one)
        contexts = b""
        if self.dialect == 0x311:
            cipher, signing = (1 if self.mode == "other-cipher" else 2), (0 if self.mode == "other-signing" else 1)
            contexts = struct.pack("<HHIHHH", 1, 38, 0, 1, 32, 1) + bytes(32) + bytes(2)
            contexts += struct.pack("<HHIHH", 2, 4, 0, 1, cipher) + bytes(4) + struct.pack("<HHIHH", 8, 4, 0, 1, signing)
        body = struct.pack("<HHHH", 65, 1, self.dialect, 3 if contexts else 0) + GUID + struct.pack("<IIII", 0x7F, *[1 << 20] * 3)
        body += bytes(16) + struct.pack("<HHI", 128, 0, 128 if contexts else 0) + contexts
        reply = self.header(0, number, session=0, tree=0) + body
        self.preauth = hashlib.sha512(self.preauth + reply).digest()
        self.frame(reply)

    def setup(self, number, message):
        offset, length = struct.unpack_from("<HH", message, 76)
        token = message[offset : offset + length]
        if self.mode == "setup-loop" or struct.unpack_from("<I", token, 8)[0] == 1:
            challenge = b"NTLMSSP\0" + struct.pack("<IHHII", 2, 0, 0, 56, 0xE28A8215) + CHALLENGE + bytes(8)
            fields = (65535, 65535, 0xFFFFFFF0) if self.mode == "ntlm-offsets" else (4, 4, 56)
            challenge += struct.pack("<HHI", *fields) + b"\x0a\0\x7c\x4f\0\0\0\x0f" + bytes(4)
            reply = self.header(SETUP, number, MORE, tree=0) + struct.pack("<HHHH", 9, 0, 72, len(challenge)) + challenge
            self.preauth = hashlib.sha512(self.preauth + reply).digest()
            return self.frame(reply)
        self.derive_keys(token)
        flags = {"guest": 1, "guest-sealed": 1, "null": 2}.get(self.mode, 0)
        reply = self.header(SETUP, number, tree=0) + struct.pack("<HHHH", 9, flags, 72, 0)
        is_open = flags or self.mode.startswith("last-unsigned")
        self.is_lied_to = bool(is_open)
        return self.frame(reply if is_open else self.signed(reply))

    def derive_keys(self, token):
        field = lambda at: token[slice(*(lambda n, _, o: (o, o + n))(*struct.unpack_from("<HHI", token, at)))]  # noqa: E731
        answer, domain, user, sealed_key = field(20), field(28), field(36), field(52)
        nt_hash = MD4.new(PASSWORD.encode("utf-16-le")).digest()
        name = (user.decode("utf-16-le").upper() + domain.decode("utf-16-le")).encode("utf-16-le")
        owf = hmac.new(nt_hash, name, "md5").digest()
        assert hmac.new(owf, CHALLENGE + answer[16:], "md5").digest() == answer[:16], "another password"
        key = hmac.new(owf, answer[:16], "md5").digest()
        if sealed_key:
            key = ARC4.new(key).decrypt(sealed_key)
        if self.dialect == 0x311:
            self.key = derive(key, b"SMBSigningKey\0", self.preauth)
            labels = (b"SMBC2SCipherKey\0", b"SMBS2CCipherKey\0")
            self.seals = [derive(key, label, self.preauth) for label in labels]
        elif self.dialect >= 0x300:
            self.key = derive(key, b"SMB2AESCMAC\0", b"SmbSign\0")
        else:
            self.key = key

    def body(self, command, message):
        error = struct.pack("<HHI", 9, 0, 0) + b"\0"
        if command == TREE:
            return 0, struct.pack("<HBBIII", 16, 1, 0, 0, 0, 0x1F01FF)
        if command == IOCTL:
            return self.validated(message, error)
        if command == CREATE:
            return self.created(message)
        if command == CLOSE:
            return 0, struct.pack("<HHI", 60, 0, 0) + bytes(52)
        if command == READ:
            length = 0xFFFFFFFF if self.mode == "read-huge" else 16
            return 0, struct.pack("<HBBIII", 17, 80, 0, length, length, 0) + b"x" * 16
        if command == WRITE:
            length = 0xFFFFFFFF if self.mode == "write-huge" else struct.unpack_from("<I", message, 68)[0]
            return 0, struct.pack("<HHIIHH", 17, 0, length, 0, 0, 0) + b"\0"
        if command == LIST and self.mode == "listing":
            entry = struct.pack("<II6QII", 0, 0, 0, 0, 0, 0, 4096, 4096, 0x20, 2) + "x".encode("utf-16-le")
            return 0, struct.pack("<HHI", 9, 72, len(entry)) + entry
        if command == LIST:
            return NO_MORE_FILES, error
        if command == QUERY:
            return 0, struct.pack("<HHI", 9, 72, 64) + bytes(64)
        if command == SET:
            return 0, struct.pack("<H", 2)
        return (0, struct.pack("<HH", 4, 0)) if command in (2, 4, FLUSH, LOCK, ECHO) else (NOT_SUPPORTED, error)

    def validated(self, message, error):
        if struct.unpack_from("<I", message, 68)[0] != 0x140204:
            return NOT_SUPPORTED, error
        # What an honest server negotiated with the client that offered 3.1.1 is not what the client got.
        dialect = 0x311 if self.mode.startswith("downgrade") else self.dialect
        out = struct.pack("<I16sHH", 0x7F, GUID, 1, dialect)
        return 0, struct.pack("<HHI16sIIIIII", 49, 0, 0x140204, b"\xff" * 16, 112, 0, 112, len(out), 0, 0) + out

    def created(self, message):
        if self.mode == "create-short":
            return 0, struct.pack("<H", 89)
        options = struct.unpack_from("<I", message, 64 + 40)[0]
        size, attributes = (2**64 - 1, 0x20) if self.mode == "create-huge" else (4096, 0x10 if options & 1 else 0x20)
        contexts = (0xFFFFFFF0, 0xFFFFFFFF) if self.mode == "create-huge" else (0, 0)
        times = struct.pack("<QQQQ", 0, 0, 0, 0)
        return 0, struct.pack("<HBBI", 89, 0, 0, 1) + times + struct.pack("<QQII", size, size, attributes, 0) + b"F" * 16 + struct.pack("<II", *contexts)


class Server:
    def __init__(self, mode, dialect=0x302, honest_writes=0):
        self.mode, self.dialect, self.honest_writes = mode, dialect, honest_writes
        self.seen = collections.Counter()
        self.accepted, self.forged, self.acknowledged = 0, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(stream,), daemon=True).start()

    def serve(self, stream):
        try:
            Peer(self, stream).serve()
        except (Gone, OSError):
            pass
        finally:
            stream.close()

    def close(self):
        self.listener.close()
