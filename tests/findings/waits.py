"""Cases of lab.py about events that do not happen, timers, and decisions of one side.

Owns: what is done in each. Not: how a case is judged (lab.py), the bench (bench.py). MS-SMB2 2.2.
"""

import socket
import struct
import threading
import time

import client as smb
from client import raw
from suite import FAR, case

ACKNOWLEDGE = 18
RELAY = 4445


def acknowledge(fid):
    """Gives the oplock up: OPLOCK_LEVEL_NONE."""
    return (ACKNOWLEDGE, struct.pack("<HBBI16s", 24, 0, 0, 0, fid))


@case("break-not-acknowledged")
def break_not_acknowledged(bench, shows):
    """A client that caches a file does not acknowledge the break of its oplock, and another one waits until the server
    gives up; or it acknowledges 30 ms later."""
    with bench.lab() as lab:
        name = lab.file("report.docx")
        with lab.capture():
            holder, other = lab.client(), lab.client()
            other.socket.settimeout(60)
            fid = holder.open(name, smb.WRITE, oplock=smb.BATCH)
            waiting = other.send(smb.create(name, smb.WRITE))
            if not shows:
                holder.receive()
                time.sleep(0.03)
                holder.call(acknowledge(fid))
            other.wait(waiting)


@case("fixed-timer")
def fixed_timer(bench, shows):
    """Five of fifty reads take a second each, because a call of the file system does; or they take 30 ms."""
    with bench.lab() as lab:
        name, = lab.names(1)
        slow, = lab.names(1, folder="archive")
        lab.slow_down(0.0, folder="archive", disk=1.0 if shows else 0.03, misses=1)
        with lab.capture():
            one = lab.client()
            quick_fid, slow_fid = one.open(name), one.open(slow)
            for number in range(50):
                one.call(raw.read(slow_fid if number % 10 == 9 else quick_fid, number, 1 + number))


class Relay:
    """Forwards connections, and holds each reply for some time: a VPN, a WAN accelerator, an inspection."""

    def __init__(self, address, seconds):
        self.address, self.seconds = address, seconds
        self.listener = socket.create_server((address, RELAY))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection((self.address, 445))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for way in ((client, server, 0), (server, client, self.seconds)):
                threading.Thread(target=self.forward, args=way, daemon=True).start()

    def forward(self, source, target, seconds):
        while True:
            try:
                data = source.recv(1 << 16)
                time.sleep(seconds)
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Which ends a call that waits in it, too.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@case("proxy-delay")
def proxy_delay(bench, shows):
    """A relay in between holds each reply for 0.2 s; or forwards it at once."""
    with bench.lab() as lab:
        names = lab.names(10)
        with Relay(lab.address, 0.2 if shows else 0), lab.capture(more=f"tcp port {RELAY}"):
            one = lab.client(port=RELAY)
            for name in names:
                one.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))


class Halves(smb.Client):
    """Sends each message with two calls."""

    def send_block(self, block):
        half = len(block) // 2
        self.socket.sendall(struct.pack(">I", len(block)) + block[:half])
        self.socket.sendall(block[half:])


@case("delayed-acknowledgement")
def delayed_acknowledgement(bench, shows):
    """Requests are sent in two parts, the second of which waits for the acknowledgement of the first (Nagle); or not."""
    with bench.lab() as lab:
        name = lab.file("notes.txt")
        with lab.capture():
            one = lab.client(kind=Halves)
            one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if shows else 1)
            fid = one.open(name, smb.WRITE)
            for number in range(60):
                one.call(smb.write(fid, number, bytes(1000)))
            one.close(fid)


@case("per-entry-requests")
def per_entry_requests(bench, shows):
    """A folder of 40 files is listed, and then each is asked about; or read."""
    with bench.lab(FAR) as lab:
        names = lab.names(40, folder="photos")
        with lab.capture():
            one = lab.client()
            members, statuses = smb.listing("photos")
            one.chain(*members, statuses=statuses)
            for name in names:
                one.chain(*smb.look(name, *([] if shows else [raw.read(smb.SAME, 0, 512)])))


@case("polling")
def polling(bench, shows):
    """A client looks for a missing file each half second; or at all kinds of times."""
    with bench.lab(FAR) as lab:
        lab.file("data.txt")
        with lab.capture():
            one = lab.client()
            for number in range(12):
                one.call(smb.create("ready.flag"), statuses=[smb.NOT_FOUND])
                time.sleep(0.5 if shows else 0.04 * (1 + number * number % 13))


@case("held-pipe-read", nothing=True, misses=False, fixture=False)
def held_pipe_read(bench, _):
    """A program waits for three seconds for what a service says through a pipe, and works meanwhile."""
    with bench.lab(FAR) as lab:
        names = lab.names(5)
        with lab.capture():
            pipes, files = lab.client(share="IPC$"), lab.client()
            fid = raw.file_id(pipes.call(smb.create("srvsvc", smb.WRITE, options=0))[0])
            held = pipes.send(raw.read(fid, 0, 1024))
            for name in names:
                files.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))
                time.sleep(0.6)
            cancel = pipes.header(raw.CANCEL, message=held[0]) + struct.pack("<HH", 4, 0)
            pipes.send_block(cancel)
            pipes.wait(held, statuses=[None])
