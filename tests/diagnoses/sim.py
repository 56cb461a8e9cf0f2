"""Simulated clients and servers: connections with sequence numbers and clocks, and SMB2 sessions on them.

Owns: when a frame passes the recorder, which sits next to the client; TCP's segments, acknowledgements and losses;
SMB2's message numbers, credits, sessions and usual sequences of requests. Not: layouts (wire.py, smb2.py), cases.

A case calls the operations of a session one after the other; `session.t` is the clock of its client in seconds. The
frames of all connections are put in order of time when the capture is written, and only then acknowledged.
"""

import random
from dataclasses import dataclass

import smb2
import wire

CLIENT, SERVER = 0, 1
START = 1_795_000_000


@dataclass
class Segment:
    time: float          # at the recorder
    side: int            # of the sender
    start: int           # offset in the stream of that side
    size: int
    head: bytes = b""    # the first bytes; the others are 0
    flags: int = wire.ACK
    is_lost: bool = False    # it does not reach the other side: behind the recorder, or before it
    ack: int = 0

    @property
    def end(self):
        return self.start + self.size


class Scene:
    """One capture.

    `place`: where the recorder is, from 0 (next to the clients) to 1 (next to the servers). `begin`: nothing before
    this time was recorded. `only`: the side whose frames were recorded, if not both. `missing`: the share of the frames
    that the recorder lost. `twice`: each frame is recorded again after this time.
    """

    def __init__(self, name, snap=262144):
        self.name, self.snap = name, snap
        self.place, self.begin, self.only = 0.0, None, None
        self.missing, self.twice = 0.0, None
        self.random = random.Random(name)
        self.connections, self.frames, self.ports = [], [], self.random.randrange(49200, 60000)

    def port(self):
        self.ports += self.random.randrange(1, 4)
        return self.ports

    def raw(self, time, frame):
        self.frames.append((time, frame, len(frame)))

    def write(self, path):
        frames = list(self.frames)
        for connection in self.connections:
            frames += connection.render()
        if self.twice:
            frames += [(time + self.twice, *rest) for time, *rest in frames]
        frames.sort(key=lambda frame: frame[0])
        if self.missing:
            frames = [frame for frame in frames if self.random.random() >= self.missing]
        if self.begin is not None:
            frames = [frame for frame in frames if frame[0] >= self.begin]
        wire.write_pcap(path, START + self.random.randrange(10**6), self.snap, frames)


class Connection:
    """TCP between a client and a server's port 445."""

    def __init__(self, scene, client, server, t=0.0, rtt=0.0006, mss=1460, frame=None, up=110e6, down=110e6,
                 client_delay=0.04, server_delay=0.04, target=445):
        self.scene, self.random = scene, scene.random
        self.client, self.server = wire.address(client), wire.address(server)
        self.ports = (scene.port(), target)
        self.rtt, self.mss, self.frame = rtt, mss, frame or mss
        self.rate, self.delay = [up, down], [client_delay, server_delay]
        self.segments, self.length, self.free, self.ended = [], [0, 0], [0.0, 0.0], None
        self.scale, self.windows = wire.SCALE, [[], []]   # windows: (from when, bytes) that a side announces
        self.flight = None                                # most bytes on the way to the client
        self.first = [self.random.randrange(1 << 32), self.random.randrange(1 << 32)]
        scene.connections.append(self)
        self.control(t, CLIENT, wire.SYN, 1)
        self.control(t + rtt, SERVER, wire.SYN | wire.ACK, 1)
        self.t = t + rtt + 0.00003

    def control(self, time, side, flags, size=0):
        self.segments.append(Segment(time, side, self.length[side], size, flags=flags))
        self.length[side] += size

    def send(self, time, side, message, zeros=0, lost=()):
        """Sends a message with its length before it, and returns when its last segment has passed the recorder.

        `lost`: numbers of those segments of it that get lost on the way.
        """
        total = len(message) + zeros
        message = bytes([0]) + total.to_bytes(3, "big") + message
        total += 4
        time = start = max(time, self.free[side])
        for number, at in enumerate(range(0, total, self.frame)):
            size = min(self.frame, total - at)
            is_lost = number in lost
            self.segments.append(Segment(time, side, self.length[side], size, message[at:at + size],
                                         wire.ACK | wire.PSH, is_lost))
            self.length[side] += size
            end, time = time, time + (size + 54) / self.rate[side]
            if self.flight and side == SERVER and (at + size) % self.flight < size:
                time = max(time, start + self.rtt)    # the next bytes wait for the acknowledgement of these
                start = time
        self.free[side] = time
        return end

    def resend(self, time, segment, is_lost=False):
        self.segments.append(Segment(time, segment.side, segment.start, segment.size, segment.head, segment.flags,
                                     is_lost))

    def reset(self, time, side=CLIENT):
        self.control(time, side, wire.RST | wire.ACK)
        self.ended = time

    def finish(self, time):
        """An orderly end by the client."""
        self.control(time, CLIENT, wire.FIN | wire.ACK, 1)
        self.control(time + self.rtt, SERVER, wire.FIN | wire.ACK, 1)

    def acknowledge(self, side):
        """The bare acknowledgements of this side; those of its segments with data are put into them."""
        shift = self.rtt if side == SERVER else 0.00001
        steps = [(s.time + shift, 0, s) for s in self.segments if s.side != side and not s.is_lost]
        steps += [(s.time, 1, s) for s in self.segments if s.side == side]
        steps.sort(key=lambda step: step[:2])
        received, waiting, deadline, ahead, bare = 0, 0, None, [], []
        for time, is_own, segment in steps + [(float("inf"), 1, None)]:
            if deadline is not None and deadline < time:
                bare.append((deadline, received))
                waiting, deadline = 0, None
            if segment is None or self.ended is not None and time > self.ended:
                continue
            if is_own:
                segment.ack = received
                if segment.flags & wire.ACK:
                    waiting, deadline = 0, None
                continue
            if segment.size == 0:
                continue
            is_in_order = segment.start <= received
            ahead.append((segment.start, segment.end))
            before = received
            for start, end in sorted(ahead):
                if start <= received:
                    received = max(received, end)
            ahead = [piece for piece in ahead if piece[1] > received]
            waiting += received - before
            if not is_in_order or ahead or received == before or waiting >= 2 * self.mss or \
                    segment.flags & (wire.FIN | wire.SYN) and side == CLIENT:
                bare.append((time, received))
                waiting, deadline = 0, None
            elif not segment.flags & wire.SYN:
                deadline = time + self.delay[side] if deadline is None else deadline
        return [(time, ack) for time, ack in bare if self.ended is None or time <= self.ended]

    def announced(self, side, time):
        """The window in a segment of a side, as the field has it."""
        sizes = [size for start, size in self.windows[side] if start <= time]
        return min(65535, (sizes[-1] if sizes else wire.WINDOW << (self.scale or 0)) >> (self.scale or 0))

    def render(self):
        """(time, frame, length on the wire) of everything on this connection."""
        marks = [(s.time, s) for s in self.segments]
        for side in (CLIENT, SERVER):
            marks += [(time, Segment(time, side, -1, 0, ack=ack)) for time, ack in self.acknowledge(side)]
        shift = self.scene.place * self.rtt / 2
        marks = [(time + (shift if s.side == CLIENT else -shift), s) for time, s in marks]
        marks.sort(key=lambda mark: mark[0])
        sent, frames, numbers = [0, 0], [], [0, 0]
        ends = ((self.client, self.server), (self.server, self.client))
        for time, s in marks:
            start = sent[s.side] if s.start < 0 else s.start
            sent[s.side] = max(sent[s.side], s.end)
            is_seen = not s.is_lost or (s.side == CLIENT) == (self.scene.place < 1)
            if not is_seen or self.scene.only not in (None, s.side):
                continue
            head = s.head[:s.size]
            zeros = max(0, s.size - len(head)) if s.flags & wire.PSH else 0
            numbers[s.side] += 1
            frame = wire.tcp(*ends[s.side], self.ports if s.side == CLIENT else self.ports[::-1],
                             self.first[s.side] + start, self.first[1 - s.side] + s.ack, s.flags, head, zeros,
                             self.mss, numbers[s.side], self.announced(s.side, time), self.scale)
            if zeros and self.scene.snap > len(frame):
                frames.append((time, frame + bytes(min(zeros, self.scene.snap - len(frame))), len(frame) + zeros))
            else:
                frames.append((time, frame, len(frame) + zeros))
        return frames


class Session(Connection):
    """SMB2 on a connection; the client is one user at one machine."""

    def __init__(self, scene, client, server, user="maria", share="\\\\files\\team", dialect=0x311, signed=False,
                 window=128, size=1 << 20, domain="LAB", logon=True, number=None, connect=True, **more):
        super().__init__(scene, client, server, **more)
        self.mid, self.balance, self.window = 0, 1, window
        self.session, self.tree, self.trees = 0, 0, 0
        self.user, self.domain, self.signed, self.is_signing = user, domain, signed, False
        self.dialect, self.max_size = dialect, size
        self.handles, self.numbers, self.names = 0, number or scene.random.randrange(1, 1 << 30), {}
        self.base = 0.0003
        self.grants = None     # another policy of granting: a function of the charge
        if logon:
            self.logon()
            if connect:
                self.connect(share)

    # one message

    def service(self, base=None):
        base = base or self.base
        return base * (0.7 + self.random.expovariate(2.5))

    def head(self, command, mid, flags=0, **more):
        if self.is_signing:
            flags |= smb2.SIGNED
            more["key"] = self.random.randbytes(16)
        return smb2.header(command, mid, self.session, self.tree, flags=flags, **more)

    def request(self, time, command, body, zeros=0, charge=1, lost=()):
        """Sends a request at a time; its number and when it has left."""
        mid, asked = self.mid, max(charge, 1)
        if command == smb2.CANCEL:
            raise ValueError("a cancel has the number of another request")
        self.mid += charge
        self.balance -= charge
        assert self.balance >= 0, f"{self.scene.name}: no credits"
        if self.balance < self.window:
            asked = charge + self.window // 4
        return mid, self.send(time, CLIENT, self.head(command, mid, credits=asked, charge=charge) + body, zeros, lost)

    def granted(self, charge):
        if self.grants:
            grant = self.grants(charge)
        else:
            grant = max(0, min(charge + self.window // 4, self.window - self.balance))
        self.balance += grant
        return grant

    def reply(self, time, mid, command, body, status=0, zeros=0, charge=1, async_id=0, grant=None, lost=()):
        flags = smb2.REPLY | (smb2.ASYNC if async_id else 0)
        if grant is None:
            grant = self.granted(charge)
        else:
            self.balance += grant
        head = self.head(command, mid, flags, status=status, credits=grant, charge=charge, async_id=async_id)
        return self.send(time, SERVER, head + (body or smb2.error()), zeros, lost)

    def call(self, command, body, answer=None, status=0, service=None, up=0, down=0, charge=1, pending=None):
        """A request and its reply; the clock goes to the end of the reply. `pending`: when an interim reply comes."""
        mid, left = self.request(self.t, command, body, up, charge)
        service = self.service() if service is None else service
        number = 0
        if pending is not None:
            number = mid + 1000
            self.reply(left + self.rtt + pending, mid, command, None, smb2.PENDING, async_id=number, charge=charge)
        self.t = self.reply(left + self.rtt + service, mid, command, answer, status, down, charge, number,
                            0 if number else None)
        self.t += 0.00002
        return mid

    def chain(self, parts, service=None):
        """A compound of related requests: (command, body, answer, status) each, the answers in one message too."""
        first = self.mid
        self.mid += len(parts)
        self.balance -= len(parts)
        assert self.balance >= 0
        sides = []
        for is_reply in (False, True):
            out = b""
            for number, (command, body, answer, status) in enumerate(parts):
                body = (answer or smb2.error()) if is_reply else body
                flags = (smb2.RELATED if number else 0) | (smb2.REPLY if is_reply else 0)
                is_last = number == len(parts) - 1
                size = 64 + len(body)
                follow = 0 if is_last else size + -size % 8
                head = self.head(command, first + number, flags, status=status if is_reply else 0, follow=follow,
                                 credits=self.granted(1) if is_reply else 1)
                out += head + body + (b"" if is_last else bytes(-size % 8))
            sides.append(out)
        left = self.send(self.t, CLIENT, sides[0])
        service = self.service() if service is None else service
        self.t = self.send(left + self.rtt + service, SERVER, sides[1]) + 0.00002

    def think(self, low, high=None):
        self.t += low if high is None else self.random.uniform(low, high)

    # the session

    def logon(self, status=0):
        s = self
        dialects = [d for d in (0x202, 0x210, 0x300, 0x302, 0x311) if d <= self.dialect]
        s.call(smb2.NEGOTIATE, smb2.negotiate(dialects), smb2.negotiated(
            self.dialect, self.max_size, 7 if self.dialect >= 0x210 else 1))
        s.session, s.tree = self.numbers << 8 | 0x400000000001, 0
        s.call(smb2.SETUP, smb2.setup(smb2.ntlm_negotiate()), smb2.set_up(smb2.ntlm_challenge(s.domain)),
               smb2.MORE_PROCESSING)
        s.t += 0.0005
        s.call(smb2.SETUP, smb2.setup(smb2.ntlm_authenticate(s.domain, s.user, "PC-" + s.user.upper())),
               smb2.set_up() if not status else None, status, service=0.002 + s.service())
        self.is_signing = self.signed

    def connect(self, share, kind=1, flags=0x30):
        self.trees += 1
        self.tree = 0
        mid, left = self.request(self.t, smb2.TREE, smb2.tree(share))
        self.tree = self.trees * 5 + 1
        self.t = self.reply(left + self.rtt + self.service(0.0005), mid, smb2.TREE, smb2.treed(kind, flags)) + 0.0002
        return self.tree

    def logoff(self):
        self.call(smb2.UNTREE, smb2.plain(), smb2.plain())
        self.call(smb2.LOGOFF, smb2.plain(), smb2.plain())

    # files

    def handle(self):
        self.handles += 1
        return self.handles.to_bytes(8, "little") + (self.handles * 7 + self.numbers).to_bytes(8, "little")

    def open(self, name, size=4000, is_folder=False, service=None, status=0, oplock=0, lease_state=None, key=None,
             pending=None, granted=None, access=None, disposition=1, version=2, t=None):
        """Opens a file or folder: its handle, or None where it fails."""
        fid = self.handle()
        context = answer = b""
        if lease_state is not None:
            key = key or self.random.randbytes(16)
            context = smb2.lease(key, lease_state, 0, version)
            answer = smb2.lease(key, lease_state if granted is None else granted, 1, version)
        access = access or (0x100081 if is_folder else 0x120089)
        if t is not None:
            self.t = t
        self.call(smb2.CREATE, smb2.create(name, access, 1 if is_folder else 0x40, disposition, oplock, 7, context),
                  None if status else smb2.created(fid, size, is_folder, oplock if granted is None else granted,
                                                   1 if disposition == 1 else 2, answer),
                  status, service, pending=pending)
        return None if status else fid

    def close(self, fid, size=4000):
        self.call(smb2.CLOSE, smb2.close(fid), smb2.closed(size), service=self.service(0.0002))

    def read(self, fid, offset, size, service=None, status=0):
        charge = max(1, -(-size // 65536))
        if status:
            self.call(smb2.READ, smb2.read(fid, offset, size), None, status, service, charge=charge)
        else:
            self.call(smb2.READ, smb2.read(fid, offset, size), smb2.read_reply(size), 0, service, down=size,
                      charge=charge)

    def write(self, fid, offset, size, service=None):
        self.call(smb2.WRITE, smb2.write(fid, offset, size), smb2.written(size), 0, service, up=size,
                  charge=max(1, -(-size // 65536)))

    def flush(self, fid, service=None):
        self.call(smb2.FLUSH, smb2.flush(fid), smb2.plain(), 0, service or self.service(0.004))

    def stream(self, fid, blocks, depth, is_write=False, service=None, rate=None):
        """Reads or writes blocks (offset, size), `depth` at once.

        `service(number)` is the server's time for one (asked at `self.asked`), `rate(number)` the path's rate.
        """
        ends, side = [], CLIENT if is_write else SERVER
        for number, (offset, size) in enumerate(blocks):
            start = self.t if number < depth else max(self.t, ends[number - depth] + 0.00002)
            charge = max(1, -(-size // 65536))
            if rate:
                self.rate[side] = rate(number)
            if is_write:
                mid, left = self.request(start, smb2.WRITE, smb2.write(fid, offset, size), size, charge)
                rest = (mid, smb2.WRITE, smb2.written(size), 0, charge)
            else:
                mid, left = self.request(start, smb2.READ, smb2.read(fid, offset, size), 0, charge)
                rest = (mid, smb2.READ, smb2.read_reply(size), size, charge)
            self.asked = left
            ends.append((left + self.rtt + (service(number) if service else self.service()), *rest))
            if number + 1 >= depth:
                self.answer(ends, number + 1 - depth)
        for number in range(max(0, len(blocks) - depth + 1), len(blocks)):
            self.answer(ends, number)
        self.t = max(self.t, ends[-1]) + 0.00002

    def answer(self, ends, number):
        time, mid, command, body, zeros, charge = ends[number]
        ends[number] = self.reply(time, mid, command, body, zeros=zeros, charge=charge)

    def stat(self, name, size=4000, is_folder=False, status=0, service=None):
        """Create, GetInfo and Close in one compound."""
        fid = self.handle()
        self.chain([
            (smb2.CREATE, smb2.create(name, 0x80, 1 if is_folder else 0), None if status else
             smb2.created(fid, size, is_folder), status),
            (smb2.INFO, smb2.info(smb2.NO_FILE), None if status else
             smb2.informed(smb2.all_info(name, size, is_folder)), status),
            (smb2.CLOSE, smb2.close(smb2.NO_FILE), None if status else smb2.closed(size), status)], service)

    def info(self, fid, name="f", size=4000, service=None, is_folder=False):
        self.call(smb2.INFO, smb2.info(fid), smb2.informed(smb2.all_info(name, size, is_folder)), 0, service)

    def set_end(self, fid, size):
        self.call(smb2.SET, smb2.set_info(fid, 20, size.to_bytes(8, "little")), smb2.set_reply())

    def rename(self, fid, name, service=None):
        self.call(smb2.SET, smb2.set_info(fid, 10, smb2.rename(name)), smb2.set_reply(), 0, service)

    def list(self, name, names, folders=(), service=None, open_service=None, fid=None, is_kept=False):
        """Lists a folder: opens it, asks until there are no more, closes it unless it is kept."""
        own = fid is None
        fid = fid or self.open(name, 0, True, open_service)
        names = [".", ".."] + list(names)
        while names:
            part, names = names[:380], names[380:]
            self.call(smb2.DIRECTORY, smb2.directory(fid), smb2.informed(smb2.entries(part, folders)), 0, service)
        self.call(smb2.DIRECTORY, smb2.directory(fid), None, smb2.NO_MORE_FILES)
        if own and not is_kept:
            self.close(fid, 0)
        return fid

    def get(self, name, size, depth=4, block=65536, think=0.0):
        """Opens, reads and closes a whole file."""
        fid = self.open(name, size)
        self.t += think
        self.stream(fid, blocks(size, block), depth)
        self.close(fid, size)

    def put(self, name, size, depth=4, block=65536):
        """Creates, writes and closes a whole file."""
        fid = self.open(name, 0, disposition=5, access=0x12019F)
        self.stream(fid, blocks(size, block), depth, True)
        self.close(fid, size)

    def watch(self, fid):
        """Asks for changes of a folder; the interim reply comes, the final one is `changed`."""
        mid, left = self.request(self.t, smb2.NOTIFY, smb2.notify(fid))
        self.t = self.reply(left + self.rtt + self.service(), mid, smb2.NOTIFY, None, smb2.PENDING,
                            async_id=mid + 1000) + 0.00002
        return mid

    def changed(self, time, mid, name, status=0):
        return self.reply(time, mid, smb2.NOTIFY, None if status else smb2.changed(name), status, async_id=mid + 1000,
                          grant=0)

    def echo(self):
        self.call(smb2.ECHO, smb2.plain(), smb2.plain(), service=self.service(0.0001))

    def unasked(self, time, body):
        """A break, sent by the server of its own accord."""
        head = smb2.header(smb2.BREAK, (1 << 64) - 1, flags=smb2.REPLY, credits=0, charge=0)
        return self.send(time, SERVER, head + body)

    def sealed(self, up, down, service=None):
        """A request and a reply, encrypted: nothing but the sizes can be seen."""
        def message(size):
            return smb2.transform(self.session, size, self.random.randbytes(11) + bytes(5), self.random.randbytes(16)) \
                + bytes([self.random.randrange(128)]) + self.random.randbytes(size - 1)  # no first byte of a protocol
        left = self.send(self.t, CLIENT, message(up))
        service = self.service() if service is None else service
        self.t = self.send(left + self.rtt + service, SERVER, message(down)) + 0.00002


def blocks(size, block, start=0):
    return [(at, min(block, start + size - at)) for at in range(start, start + size, block)]
