"""Bodies of SMB2 and SMB3 messages, and the header before them.

Owns: the layout of requests and replies ([MS-SMB2] 2.2). Not: message numbers, credits and times (sim.py).
"""

import struct

NEGOTIATE, SETUP, LOGOFF, TREE, UNTREE, CREATE, CLOSE, FLUSH, READ, WRITE, LOCK, IOCTL, CANCEL, ECHO = range(14)
DIRECTORY, NOTIFY, INFO, SET, BREAK = range(14, 19)
OK, PENDING, MORE_PROCESSING, NO_MORE_FILES = 0, 0x103, 0xC0000016, 0x80000006
NOT_FOUND, SHARING, NO_RESOURCES, EXPIRED, CANCELLED = 0xC0000034, 0xC0000043, 0xC000009A, 0xC0000203, 0xC0000120
FILE_DELETED, END_OF_FILE, DENIED = 0xC0000123, 0xC0000011, 0xC0000022
REPLY, ASYNC, RELATED, SIGNED = 1, 2, 4, 8
NO_OPLOCK, LEVEL_II, EXCLUSIVE, BATCH, LEASE = 0, 1, 8, 9, 0xFF
DIRECTORY_ATTRIBUTE, FILE_ATTRIBUTE = 0x10, 0x20
DATE = 134_000_000_000_000_000  # of every file, in FILETIME


def wide(text):
    return text.encode("utf-16-le")


def header(command, mid, session=0, tree=0, status=0, flags=0, credits=1, charge=1, follow=0, async_id=0, key=b""):
    place = struct.pack("<Q", async_id) if flags & ASYNC else struct.pack("<II", 0xFEFF, tree)
    return (b"\xfeSMB" + struct.pack("<HHIHHIIQ", 64, charge, status, command, credits, flags, follow, mid) + place
            + struct.pack("<Q", session) + (key or bytes(16)))


def padded(data, size=8):
    return data + bytes(-len(data) % size)


def error():
    return struct.pack("<HBBIB", 9, 0, 0, 0, 0)


def negotiate(dialects=(0x202, 0x210, 0x300, 0x302, 0x311), guid=bytes(16)):
    fixed = struct.pack("<HHHHI", 36, len(dialects), 1, 0, 0x7F if dialects[-1] >= 0x300 else 0) + guid
    listed = struct.pack(f"<{len(dialects)}H", *dialects)
    if dialects[-1] < 0x311:
        return fixed + bytes(8) + listed
    start = 64 + 36 + len(listed)
    offset = start + -start % 8
    return fixed + struct.pack("<IHH", offset, 1, 0) + listed + bytes(offset - start) + preauth()


def preauth():
    return struct.pack("<HHI", 1, 38, 0) + struct.pack("<HHH", 1, 32, 1) + bytes(range(32))


def negotiated(dialect=0x311, size=1 << 20, capabilities=7, security=1):
    context = padded(preauth()) if dialect == 0x311 else b""
    return struct.pack("<HHHH", 65, security, dialect, 1 if context else 0) + b"server-guid-0001" + struct.pack(
        "<IIIIQQHHI", capabilities, size, size, size, DATE, DATE, 128, 0, 128 if context else 0) + context


VERSION = bytes([10, 0, 0x63, 0x45, 0, 0, 0, 15])


def ntlm_negotiate():
    return b"NTLMSSP\0" + struct.pack("<II", 1, 0xE2088297) + bytes(16) + VERSION


def ntlm_challenge(domain):
    name = wide(domain)
    info = struct.pack("<HH", 2, len(name)) + name + struct.pack("<HHQ", 7, 8, DATE) + bytes(4)
    return (b"NTLMSSP\0" + struct.pack("<IHHII", 2, len(name), len(name), 56, 0xE2898215) + b"\x11" * 8 + bytes(8)
            + struct.pack("<HHI", len(info), len(info), 56 + len(name)) + VERSION + name + info)


def ntlm_authenticate(domain, user, host):
    blob = b"\x22" * 16 + struct.pack("<BBHIQ", 1, 1, 0, 0, DATE) + b"\x33" * 8 + bytes(4) + bytes(4) + bytes(4)
    parts = [bytes(24), blob, wide(domain), wide(user), wide(host), b"\x44" * 16]
    fields, at = b"", 88
    for part in parts:
        fields += struct.pack("<HHI", len(part), len(part), at)
        at += len(part)
    return (b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", 0xE2888215) + VERSION + bytes(16)
            + b"".join(parts))


def setup(token, flags=0):
    return struct.pack("<HBBIIHHQ", 25, flags, 1, 1, 0, 88, len(token), 0) + token


def set_up(token=b"", flags=0):
    return struct.pack("<HHHH", 9, flags, 72, len(token)) + token


def tree(path):
    name = wide(path)
    return struct.pack("<HHHH", 9, 0, 72, len(name)) + name


def treed(kind=1, flags=0x30, capabilities=0):
    return struct.pack("<HBBIII", 16, kind, 0, flags, capabilities, 0x1F01FF)


def lease(key, state, epoch=0, version=2):
    """The create context RqLs."""
    data = struct.pack("<16sIIQ", key, state, 0, 0)
    if version == 2:
        data += bytes(16) + struct.pack("<HH", epoch, 0)
    return struct.pack("<IHHHHI", 0, 16, 4, 0, 24, len(data)) + b"RqLs" + bytes(4) + data


def create(name, access=0x120089, options=0x40, disposition=1, oplock=NO_OPLOCK, share=7, context=b""):
    raw = wide(name)
    where = 120 + len(padded(raw)) if context else 0
    fixed = struct.pack("<HBBIQQIIIIIHHII", 57, 0, LEASE if context else oplock, 2, 0, 0, access, 0x80, share,
                        disposition, options, 120, len(raw), where, len(context))
    return fixed + (padded(raw) + context if context else raw or b"\0")


def created(fid, size=0, is_folder=False, oplock=NO_OPLOCK, action=1, context=b""):
    attributes = DIRECTORY_ATTRIBUTE if is_folder else FILE_ATTRIBUTE
    return struct.pack("<HBBIQQQQQQII", 89, LEASE if context else oplock, 0, action, DATE, DATE, DATE, DATE,
                       size + -size % 4096, size, attributes, 0) + fid + struct.pack(
                           "<II", 152 if context else 0, len(context)) + context


def close(fid, flags=1):
    return struct.pack("<HHI", 24, flags, 0) + fid


def closed(size=0):
    return struct.pack("<HHIQQQQQQI", 60, 1, 0, DATE, DATE, DATE, DATE, size + -size % 4096, size, FILE_ATTRIBUTE)


def flush(fid):
    return struct.pack("<HHI", 24, 0, 0) + fid


def plain():
    """The body of Echo, Logoff, Tree Disconnect, Cancel, and the replies to these, Flush and Lock."""
    return struct.pack("<HH", 4, 0)


def read(fid, offset, size):
    return struct.pack("<HBBIQ", 49, 80, 0, size, offset) + fid + struct.pack("<IIIHHB", 1, 0, 0, 0, 0, 0)


def read_reply(size):
    """Without the data: `size` bytes have to follow."""
    return struct.pack("<HBBIII", 17, 80, 0, size, 0, 0)


def write(fid, offset, size):
    """Without the data: `size` bytes have to follow."""
    return struct.pack("<HHIQ", 49, 112, size, offset) + fid + struct.pack("<IIHHI", 0, 0, 0, 0, 0)


def written(size):
    return struct.pack("<HHIIHH", 17, 0, size, 0, 0, 0)


def info(fid, kind=1, level=18, size=1024):
    return struct.pack("<HBBIHHIII", 41, kind, level, size, 104, 0, 0, 0, 0) + fid + b"\0"


def basic(is_folder=False):
    return struct.pack("<QQQQII", DATE, DATE, DATE, DATE, DIRECTORY_ATTRIBUTE if is_folder else FILE_ATTRIBUTE, 0)


def standard(size=0, is_folder=False):
    return struct.pack("<QQIBBH", size + -size % 4096, size, 1, 0, is_folder, 0)


def all_info(name, size=0, is_folder=False):
    raw = wide("\\" + name)
    return basic(is_folder) + standard(size, is_folder) + struct.pack("<QIIQII", 7, 0, 0x120089, 0, 0, 0) + struct.pack(
        "<I", len(raw)) + raw


def informed(data):
    return struct.pack("<HHI", 9, 72, len(data)) + data


def set_info(fid, level, data):
    return struct.pack("<HBBIHHI", 33, 1, level, len(data), 96, 0, 0) + fid + data


def set_reply():
    return struct.pack("<H", 2)


def rename(name):
    raw = wide(name)
    return struct.pack("<B7xQI", 0, 0, len(raw)) + raw


def directory(fid, pattern="*", size=65536):
    raw = wide(pattern)
    return struct.pack("<HBBI", 33, 37, 0, 0) + fid + struct.pack("<HHI", 96, len(raw), size) + raw


def entries(names, folders=()):
    """FileIdBothDirectoryInformation of the names."""
    out = []
    for number, name in enumerate(names):
        raw = wide(name)
        is_folder = name in folders or name in (".", "..")
        one = struct.pack("<QQQQQQIIIBx24sHQ", DATE, DATE, DATE, DATE, 0 if is_folder else 4000, 4096,
                          DIRECTORY_ATTRIBUTE if is_folder else FILE_ATTRIBUTE, len(raw), 0, 0, bytes(24), 0,
                          number + 64) + raw
        is_last = number == len(names) - 1
        next_one = 0 if is_last else 8 + len(one) + -len(one) % 8
        out.append(struct.pack("<II", next_one, 0) + one + (b"" if is_last else bytes(-len(one) % 8)))
    return b"".join(out)


def notify(fid, filters=0x17, tree_too=0):
    return struct.pack("<HHI", 32, tree_too, 4096) + fid + struct.pack("<II", filters, 0)


def changed(name, action=3):
    raw = wide(name)
    return informed(struct.pack("<III", 0, action, len(raw)) + raw)


def ioctl(code, fid, data, room=4280):
    sizes = struct.pack("<IIIIIIII", 120, len(data), 0, 120, 0, room, 1, 0)
    return struct.pack("<HHI", 57, 0, code) + fid + sizes + data


def ioctled(code, fid, data):
    return struct.pack("<HHI", 49, 0, code) + fid + struct.pack("<IIIIII", 112, 0, 112, len(data), 0, 0) + data


def lock(fid, offset, size, flags=0x12):
    return struct.pack("<HHI", 48, 1, 0) + fid + struct.pack("<QQII", offset, size, flags, 0)


def oplock_break(fid, level):
    return struct.pack("<HBBI", 24, level, 0, 0) + fid


def lease_break(key, old, new, epoch=2, must_answer=True):
    return struct.pack("<HHI16sIIIII", 44, epoch, 1 if must_answer else 0, key, old, new, 0, 0, 0)


def lease_answer(key, state):
    return struct.pack("<HHI16sIQ", 36, 0, 0, key, state, 0)


DFS_REFERRAL, PIPE_TRANSCEIVE = 0x60194, 0x11C017
NO_FILE = b"\xff" * 16


def referral_request(path):
    return struct.pack("<H", 4) + wide(path) + b"\0\0"


def referral(path, targets):
    """An answer of version 4 with the targets of a link."""
    count, strings, heads = len(targets), b"", b""
    text = wide(path) + b"\0\0"
    for number, target in enumerate(targets):
        own = 34 * number
        at = 34 * count - own + len(strings)
        raw = wide(target) + b"\0\0"
        heads += struct.pack("<HHHHIHHH16s", 4, 34, 0, 4 if number == 0 else 0, 1800, at, at + len(text),
                             at + 2 * len(text), bytes(16))
        strings += text + text + raw
    return struct.pack("<HHI", len(wide(path)), count, 2) + heads + strings


def rpc_bind(call=1):
    interface = b"\x10\x32\x54\x76\x98\xba\xdc\xfe\x01\x02\x03\x04\x05\x06\x07\x08" + struct.pack("<I", 3)
    transfer = bytes.fromhex("045d888aeb1cc9119fe808002b104860") + struct.pack("<I", 2)
    body = struct.pack("<HHIB3xHBx", 4280, 4280, 0, 1, 0, 1) + interface + transfer
    return struct.pack("<BBBBIHHI", 5, 0, 11, 3, 0x10, 16 + len(body), 0, call) + body


def rpc_bound(call=1):
    transfer = bytes.fromhex("045d888aeb1cc9119fe808002b104860") + struct.pack("<I", 2)
    pipe = struct.pack("<H", 13) + b"\\PIPE\\srvsvc\0\0"
    body = struct.pack("<HHI", 4280, 4280, 0x53F0) + pipe + struct.pack("<B3xHH", 1, 0, 0) + transfer
    return struct.pack("<BBBBIHHI", 5, 0, 12, 3, 0x10, 16 + len(body), 0, call) + body


def rpc_call(call, operation, data):
    return struct.pack("<BBBBIHHIIHH", 5, 0, 0, 3, 0x10, 24 + len(data), 0, call, len(data), 0, operation) + data


def rpc_result(call, data):
    return struct.pack("<BBBBIHHIIHBB", 5, 0, 2, 3, 0x10, 24 + len(data), 0, call, len(data), 0, 0, 0) + data


def transform(session, size, nonce, signature):
    """The header of an encrypted message of `size` bytes."""
    return b"\xfdSMB" + signature + nonce + struct.pack("<IHHQ", size, 0, 1, session)
