"""Healthy recordings of many kinds of work, each at four distances: no client waits for anything but the distance.

A function makes one kind of work; `register` makes a case of it for every round trip. Not: pictures that look like one
of the problems (near.py).
"""

import smb2
from cases import Case, add, bind, browse, edit
from sim import Scene, Session, blocks
from smb1 import Session1

DISTANCES = (("200us", 0.0002), ("5ms", 0.005), ("20ms", 0.020), ("100ms", 0.100))
SERVERS = ("10.150.0.4", "172.16.9.2", "192.168.7.1", "10.8.200.30")
WORK = {}


def work(snap=262144):
    def keep(function):
        WORK[function.__name__] = (function, snap)
        return function
    return keep


def client(scene, number=0):
    server = SERVERS[scene.random.randrange(4)] if not scene.connections else scene.server
    scene.server = server
    return server.rsplit(".", 1)[0] + f".{60 + number + scene.random.randrange(20) * 9}", server


def session(scene, rtt, number=0, **more):
    own, server = client(scene, number)
    more.setdefault("user", ("ina", "pavel", "nora", "tom")[number % 4])
    return Session(scene, own, server, rtt=rtt, t=0.1 * number, **more)


@work(snap=700)
def office(scene, rtt):
    for number in range(2):
        c = session(scene, rtt, number)
        for turn in range(4):
            c.list(f"dept{turn % 2}", [f"memo {n}.docx" for n in range(30)])
            c.think(1, 5)
            edit(c, f"dept{turn % 2}\\memo {turn}.docx", scene.random.randrange(9000, 40000))
            c.think(1, 6)


@work(snap=256)
def video(scene, rtt):
    c = session(scene, rtt, frame=58400)
    fid = c.open("clips\\tour.mp4", 600 << 20)
    start, pace = c.t + 0.5, scene.random.uniform(0.15, 0.3)
    for number in range(120):
        c.t = max(c.t, start + pace * number)
        c.read(fid, number << 17, 1 << 17)
    c.close(fid)


@work(snap=256)
def backup_write(scene, rtt):
    c = session(scene, rtt, frame=64240, window=512)
    fid = c.open("backup\\full.vbk", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(80 << 20, 1 << 20), 16, True)
    c.flush(fid)
    c.close(fid)


@work(snap=256)
def copy_read(scene, rtt):
    c = session(scene, rtt, frame=58400, window=512)
    for number in range(3):
        c.get(f"iso\\image{number}.iso", 24 << 20, 14, 1 << 20)
        c.think(0.5, 2)


@work(snap=400)
def build(scene, rtt):
    c = session(scene, rtt, share="\\\\src\\tree")
    for number in range(60):
        if number % 20 == 0:
            c.list(f"src\\part{number}", [f"unit{n}.c" for n in range(20)])
        c.get(f"src\\part{number // 20}\\unit{number % 20}.c", scene.random.randrange(900, 9000), 1)
        c.think(0.05, 0.3)       # the compiler works
        c.put(f"obj\\unit{number}.o", scene.random.randrange(2000, 20000), 1)


@work()
def listing(scene, rtt):
    c = session(scene, rtt)
    for number in range(8):
        c.list(f"projects\\p{number}", [f"entry {n:04d}.pdf" for n in range(scene.random.randrange(10, 400))])
        c.think(1, 8)


@work()
def pipes(scene, rtt):
    c = session(scene, rtt, share="\\\\files\\IPC$")
    for turn in range(6):
        fid = c.open("srvsvc", 0)
        ask, answer = smb2.rpc_bind(), smb2.rpc_bound()
        c.call(smb2.WRITE, smb2.write(fid, 0, len(ask)) + ask, smb2.written(len(ask)))
        c.call(smb2.READ, smb2.read(fid, 0, 1024), smb2.read_reply(len(answer)) + answer)
        for number in range(3):
            c.call(smb2.IOCTL, smb2.ioctl(smb2.PIPE_TRANSCEIVE, fid, smb2.rpc_call(2 + number, 15, bytes(72))),
                   smb2.ioctled(smb2.PIPE_TRANSCEIVE, fid, smb2.rpc_result(2 + number, bytes(260))))
        c.close(fid, 0)
        c.think(2, 20)


@work()
def encrypted(scene, rtt):
    c = session(scene, rtt, connect=False)
    c.sealed(102, 80)
    for _ in range(90):
        c.sealed(scene.random.randrange(88, 300), scene.random.randrange(77, 1800))
        c.think(0.02, 1.5)


@work()
def logon_only(scene, rtt):
    c = session(scene, rtt)
    c.think(0.5, 3)
    c.logoff()
    c.finish(c.t)


@work()
def idle_echo(scene, rtt):
    c = session(scene, rtt)
    browse(c, 3)
    for _ in range(25):
        c.think(60)
        c.echo()


@work()
def notify_only(scene, rtt):
    c = session(scene, rtt)
    fid = c.open("inbox", 0, True)
    for number in range(9):
        mid = c.watch(fid)
        c.t = c.changed(c.t + scene.random.uniform(20, 400), mid, f"mail{number}.msg") + 0.0005
    c.watch(fid)


@work()
def two_clients(scene, rtt):
    a, b = session(scene, rtt, 0), session(scene, rtt, 1)
    for number in range(12):
        a.put(f"swap\\part{number}.csv", 6000)
        a.think(0.5, 3)
        b.t = max(a.t, b.t)
        b.get(f"swap\\part{number}.csv", 6000)
        b.think(0.5, 3)


@work()
def several_shares(scene, rtt):
    c = session(scene, rtt)
    for share in ("apps", "home", "public", "media"):
        c.connect("\\\\files\\" + share)
        browse(c, 6, share)
        c.get(f"{share}\\start.cfg", 5000)
        c.think(1, 4)


@work()
def deferred_close(scene, rtt):
    c = session(scene, rtt)
    due, wait = [], scene.random.choice((1.0, 2.0, 10.0))
    for number in range(30):
        turn = c.t + scene.random.uniform(0.2, 0.5)
        while due and due[0][0] < turn:
            c.t = max(c.t, due[0][0])
            c.close(due.pop(0)[1], 1800)
        c.t = max(c.t, turn)
        fid = c.open(f"etc\\svc{number}.ini", 1800, lease_state=7)
        c.read(fid, 0, 1800)
        due.append((c.t + wait, fid))
    for time, fid in due:
        c.t = max(c.t, time)
        c.close(fid, 1800)


@work(snap=400)
def printing(scene, rtt):
    c = session(scene, rtt, connect=False)
    c.connect("\\\\print\\office2", 3, 0)
    for number in range(4):
        fid = c.open(f"job{number}.prn", 0, disposition=2, access=0x12019F)
        c.stream(fid, blocks(scene.random.randrange(60_000, 200_000), 65536), 3, True)
        c.close(fid)
        c.think(5, 60)


@work()
def dfs(scene, rtt):
    c = session(scene, rtt, share="\\\\lab\\IPC$")
    for number in range(4):
        path = f"\\lab\\root\\team{number}"
        server = f"nas{number}"
        targets = smb2.referral(path, [f"\\{server}\\data", "\\nas9\\data"])
        c.call(smb2.IOCTL, smb2.ioctl(smb2.DFS_REFERRAL, smb2.NO_FILE, smb2.referral_request(path)),
               smb2.ioctled(smb2.DFS_REFERRAL, smb2.NO_FILE, targets))
        own = ".".join(str(byte) for byte in c.client)
        target = Session(scene, own, f"10.150.9.{10 + number}", rtt=rtt, t=c.t + 0.001, user=c.user,
                         share=f"\\\\{server}\\data")
        browse(target, 6)
        edit(target, f"plan{number}.docx")
        c.t = target.t + scene.random.uniform(1, 9)


@work()
def probing(scene, rtt):
    """Programs try desktop.ini and the like; some are missing, as everywhere."""
    c = session(scene, rtt)
    for turn in range(10):
        c.list(f"photos{turn}", [f"img{n:03d}.jpg" for n in range(15)])
        for name in ("desktop.ini", "Thumbs.db", "folder.jpg"):
            c.open(f"photos{turn}\\{name}", status=smb2.NOT_FOUND)
        browse(c, 4, f"photos{turn}")
        c.think(2, 9)


@work(snap=500)
def database(scene, rtt):
    c = session(scene, rtt)
    fid = c.open("crm.accdb", 50_000_000, access=0x12019F)
    for number in range(40):
        offset = scene.random.randrange(9000) * 4096
        c.call(smb2.LOCK, smb2.lock(fid, 0x10000000 + number, 1), smb2.plain())
        c.read(fid, offset, 4096)
        c.write(fid, offset, 4096)
        c.call(smb2.LOCK, smb2.lock(fid, 0x10000000 + number, 1, 4), smb2.plain())
        c.think(0.3, 3)


@work(snap=256)
def photos(scene, rtt):
    c = session(scene, rtt, window=256, frame=5840)
    for number in range(16):
        c.get(f"album\\dsc{number:04d}.jpg", scene.random.randrange(500_000, 1_500_000), 8, 131072)
        c.think(2, 9)


@work(snap=400)
def old_scanner(scene, rtt):
    """SMB1, a device that leaves a file from time to time."""
    own, server = client(scene)
    c = Session1(scene, own, server, rtt=rtt)
    for number in range(6):
        fid = c.open(f"\\scans\\page{number}.tif")
        for part in range(6):
            c.write(fid, 16000 * part, 16000)
        c.close(fid)
        c.t += scene.random.uniform(10, 50)


@work()
def tidy_up(scene, rtt):
    """A person deletes and renames."""
    c = session(scene, rtt)
    for number in range(15):
        fid = c.open(f"old\\draft{number}.doc", access=0x110080)
        if number % 3:
            c.call(smb2.SET, smb2.set_info(fid, 13, b"\1"), smb2.set_reply())
        else:
            c.rename(fid, f"old\\final{number}.doc")
        c.close(fid)
        c.think(0.6, 4)


@work()
def signed_log(scene, rtt):
    """A program appends to its log and flushes, over a signed session."""
    c = session(scene, rtt, signed=True)
    fid = c.open("logs\\app.log", 0, disposition=3, access=0x12019F)
    for number in range(60):
        c.write(fid, 300 * number, 300)
        if number % 10 == 9:
            c.flush(fid)
        c.think(0.4, 2)
    c.close(fid)


@work(snap=300)
def dialect_21(scene, rtt):
    c = session(scene, rtt, dialect=0x210, size=65536)
    for number in range(5):
        c.list("common", [f"tool{n}.exe" for n in range(22)])
        c.get(f"common\\tool{number}.exe", 180_000, 4)
        c.think(2, 9)


@work()
def breaks_answered(scene, rtt):
    """Two people share files; each break of a lease is answered at once."""
    a, b = session(scene, rtt, 0), session(scene, rtt, 1)
    for number in range(8):
        key = bytes([number + 1]) * 16
        a.t = max(a.t, b.t) + scene.random.uniform(1, 4)
        held = a.open(f"shared\\list{number}.xlsx", lease_state=7, key=key)
        a.read(held, 0, 4000)
        b.t = a.t + scene.random.uniform(1, 3)
        told = b.t + b.rtt / 2 + 0.0004 + a.rtt / 2
        fid = b.open(f"shared\\list{number}.xlsx", lease_state=3, pending=0.0003, service=rtt + 0.0012)
        a.unasked(told, smb2.lease_break(key, 7, 3))
        a.t = told + 0.0003
        a.call(smb2.BREAK, smb2.lease_answer(key, 3), smb2.lease_answer(key, 3))
        b.read(fid, 0, 4000)
        b.close(fid)
        a.t = max(a.t, b.t)
        a.close(held)


@work(snap=256)
def multichannel(scene, rtt):
    a = session(scene, rtt, frame=58400, window=512)
    own, server = (".".join(str(byte) for byte in address) for address in (a.client, a.server))
    fid = a.open("vm\\disk.vhdx", 1 << 30)
    b = bind(a, own.rsplit(".", 1)[0] + ".250", server.rsplit(".", 1)[0] + ".251", rtt=rtt, frame=58400, window=512)
    a.t = b.t
    for number, c in enumerate((a, b)):
        c.stream(fid, blocks(24 << 20, 1 << 20, (24 << 20) * number), 14)
    a.t = max(a.t, b.t)
    a.close(fid)


@work(snap=256)
def save_large(scene, rtt):
    """A drawing of some megabytes is opened and saved."""
    c = session(scene, rtt, window=256, frame=14600)
    for turn in range(2):
        c.get(f"cad\\hall{turn}.dwg", 3_000_000, 8, 262144)
        c.think(5, 20)
        c.put(f"cad\\hall{turn}.dwg", 3_200_000, 8, 262144)
        c.think(5, 20)


@work(snap=256)
def rare_loss(scene, rtt):
    """One segment in thousands gets lost and is repaired at once."""
    c = session(scene, rtt, window=256)
    fid = c.open("upload.bin", 0, disposition=5, access=0x12019F)
    for number in range(24):
        count, lost = len(c.segments), {5: 11, 17: 30}.get(number)
        mid, left = c.request(c.t, smb2.WRITE, smb2.write(fid, number << 16, 65536), 65536,
                              lost=() if lost is None else (lost,))
        if lost is not None:
            left = max(left, c.t + c.rtt + 0.0008)
            c.resend(left, c.segments[count + lost])
        c.t = c.reply(left + c.rtt + c.service(), mid, smb2.WRITE, smb2.written(65536)) + 0.00002
        c.think(0.2, 1.5)
    c.close(fid)


def register():
    for name, (function, snap) in WORK.items():
        for label, rtt in DISTANCES:
            full = f"healthy_{name}_{label}"

            def make(function=function, snap=snap, rtt=rtt, full=full):
                scene = Scene(full, snap)
                function(scene, rtt * scene.random.uniform(0.93, 1.07))
                return scene
            cause = "nothing" if rtt < 0.02 else f"nothing but the distance, {label} round trip"
            add(Case(full, "healthy", "healthy", "nobody", cause, make))


register()
