"""Cases written after the rules were changed for those of reports.py and varied.py, and decided before the next run: other
trouble, flaws of recorders, and healthy work that looks like what the new rules look for.
"""

import smb2
import wire
from cases import bind, browse, case, edit
from kinds import storm
from reports import silent_request
from reports_slow import pipe_call
from services import attempts, look_up
from sim import CLIENT, SERVER, Session, blocks
from smb1 import Session1
from varied import company

NO_LOGON_SERVERS, REFUSED, WRONG_LOCK = 0xC000005E, 0xC0000022, 0xC0000055


@case("slow", "server", "1 of 9 waits for the spooler, 4 s a call")
def fresh_spooler_company(scene):
    """The file work of the other clients is quick."""
    c = Session(scene, "10.1.7.50", "10.1.7.2", user="maria", share="\\\\print\\IPC$")
    for turn in range(5):
        fid = c.open("spoolss", 0)
        for number in range(2):
            pipe_call(c, fid, 2 + number, scene.random.uniform(3.5, 4.5))
        c.close(fid, 0)
        c.think(4, 9)
    company(scene, "10.1.7.2", until=c.t, net="10.1.7")


@case("slow", "server", "everything stands still for 3 s every 30 s: snapshots")
def fresh_periodic_stall(scene):
    """All clients wait for the same moments."""
    for number in range(5):
        c = Session(scene, f"10.2.7.{50 + number}", "10.2.7.2", user=f"u{number}", t=0.1 * number)
        fid = c.open(f"data{number}.mdb", 3_000_000, access=0x12019F)
        while c.t < 130:
            into = c.t % 30
            wait = 3.0 - into + scene.random.uniform(0.001, 0.05) if 0.1 < into < 3.0 else None
            if scene.random.random() < 0.5:
                c.read(fid, scene.random.randrange(700) * 4096, 4096, service=wait)
            else:
                c.info(fid, service=wait)
            c.think(0.05, 0.4)


@case("slow", "network", "bulk read over 40 ms with 1 % loss: 1 MB/s on a quick link", snap=256)
def fresh_wan_loss(scene):
    """Each loss stops the stream for a round trip and more."""
    c = Session(scene, "10.3.7.50", "10.3.7.2", rtt=0.04, window=256)
    fid = c.open("iso\\image.iso", 1 << 30)
    for number in range(200):
        mid, left = c.request(c.t, smb2.READ, smb2.read(fid, number << 16, 65536))
        count = len(c.segments)
        lost = (scene.random.randrange(3, 40),) if number % 2 else ()
        end = c.reply(left + c.rtt + 0.0005, mid, smb2.READ, smb2.read_reply(65536), zeros=65536, lost=lost)
        for one in lost:
            end += 0.25
            c.resend(end, c.segments[count + one])
        c.t = end + 0.00002
    c.close(fid)


@case("broken", "server or name service", "logons refused: the server finds no domain controller")
def fresh_no_logon_servers(scene):
    """The clients try every 8 s; one that is logged on continues."""
    browse(Session(scene, "10.4.7.40", "10.4.7.2", user="ina"), 60, low=0.5, high=1.5)
    for attempt in range(8):
        c = Session(scene, "10.4.7.50", "10.4.7.2", user="tom", t=8.0 * attempt, logon=False)
        c.logon(NO_LOGON_SERVERS)
        c.finish(c.t)


@case("slow or broken", "server", "a referral is answered after 12 s, three times")
def fresh_referral_late(scene):
    """The namespace server waits for its directory."""
    c = Session(scene, "10.5.7.50", "10.5.7.2", share="\\\\lab\\IPC$")
    for number in range(3):
        path = f"\\lab\\root\\team{number}"
        c.call(smb2.IOCTL, smb2.ioctl(smb2.DFS_REFERRAL, smb2.NO_FILE, smb2.referral_request(path)),
               smb2.ioctled(smb2.DFS_REFERRAL, smb2.NO_FILE, smb2.referral(path, ["\\nas1\\team"])), service=12.0)
        other = Session(scene, "10.5.7.50", "10.5.7.9", t=c.t + 0.01, share="\\\\nas1\\team")
        browse(other, 10)
        c.t = other.t + 5


@case("slow", "server", "SMB1: every tenth open takes 2 s at the server")
def fresh_smb1_slow_opens(scene):
    """An old client, an old server."""
    c = Session1(scene, "10.6.7.50", "10.6.7.2", rtt=0.001)
    for number in range(90):
        fid = c.open(f"\\forms\\f{number}.doc", service=scene.random.uniform(1.5, 2.6) if number % 10 == 3 else None)
        c.read(fid, 0, 6000)
        c.close(fid)
        c.t += scene.random.uniform(0.5, 2)


@case("slow", "server", "deleting takes 1.5 to 3 s a file, all else milliseconds")
def fresh_slow_delete(scene):
    """The server keeps deleted files, or frees them slowly."""
    c = Session(scene, "10.7.7.50", "10.7.7.2")
    for number in range(25):
        c.stat(f"old\\video{number}.mov", 1 << 30)
        fid = c.open(f"old\\video{number}.mov", 1 << 30, access=0x110080)
        c.call(smb2.SET, smb2.set_info(fid, 13, b"\1"), smb2.set_reply(), service=scene.random.uniform(1.5, 3))
        c.close(fid)
        c.think(0.1, 0.5)


@case("slow", "server", "Close after writing takes 2 to 4 s: the server scans what was written")
def fresh_slow_close(scene):
    """Opens and writes are quick."""
    c = Session(scene, "10.8.7.50", "10.8.7.2")
    for number in range(20):
        fid = c.open(f"up\\doc{number}.pdf", 0, disposition=5, access=0x12019F)
        c.stream(fid, blocks(900_000, 65536), 4, True)
        c.call(smb2.CLOSE, smb2.close(fid), smb2.closed(900_000), service=scene.random.uniform(2, 4))
        c.think(0.5, 3)


@case("slow", "server", "each question for free space takes 3 s: quotas are counted")
def fresh_slow_free_space(scene):
    """Explorer asks for it when a folder is opened."""
    c = Session(scene, "10.9.7.50", "10.9.7.2")
    for number in range(15):
        fid = c.open(f"dept{number}", 0, True)
        c.call(smb2.INFO, smb2.info(fid, 2, 3, 24), smb2.informed(bytes(24)), service=scene.random.uniform(2.5, 3.5))
        c.list(f"dept{number}", [f"n{n}" for n in range(20)], fid=fid)
        c.close(fid, 0)
        c.think(2, 6)


@case("slow", "network", "8 clients share an uplink of 1 MB/s: each saves at 125 KB/s", snap=256)
def fresh_shared_uplink(scene):
    """Everybody saves at the same time."""
    for number in range(8):
        c = Session(scene, f"10.11.7.{50 + number}", "10.12.7.2", user=f"u{number}", rtt=0.03, up=125e3, t=0.1 * number)
        c.put(f"save{number}.dwg", 4_000_000, 8, 65536)
        browse(c, 5)


@case("broken", "server or network", "failover: nothing answers 45 s, for all clients, then work continues")
def fresh_failover(scene):
    """Requests are repeated, then SYNs; the address is served again by the other node."""
    for number in range(4):
        client = f"10.13.7.{50 + number}"
        c = Session(scene, client, "10.13.7.2", user=f"u{number}", t=0.1 * number)
        while c.t < 20:
            browse(c, 1)
        silent_request(c, smb2.CREATE, smb2.create("docs\\x.docx"), (0.3, 0.6, 1.2, 2.4))
        c.reset(c.t + 5)
        attempts(scene, client, "10.13.7.2", [c.t + 5.2, c.t + 8.2, c.t + 14.2])
        attempts(scene, client, "10.13.7.2", [c.t + 26.5, c.t + 29.5])
        browse(Session(scene, client, "10.13.7.2", user=f"u{number}", t=c.t + 41), 20)


@case("broken", "server", "server resets the connection after each Write reply to one file, six times")
def fresh_server_crash(scene):
    """The process that serves the client dies."""
    start = 0.0
    for attempt in range(6):
        c = Session(scene, "10.14.7.50", "10.14.7.2", t=start)
        browse(c, 5)
        fid = c.open("bad\\stream.ads", 0, disposition=5, access=0x12019F)
        c.write(fid, 0, 4096)
        c.reset(c.t + 0.003, SERVER)
        start = c.t + scene.random.uniform(1, 2)


@case("broken", "network", "the second channel is dead: its requests are repeated for 20 s, then sent on the first", snap=256)
def fresh_dead_channel(scene):
    """A cable is pulled; the other channel works."""
    a = Session(scene, "172.26.5.30", "172.26.5.4", frame=58400, window=512)
    fid = a.open("vm\\disk.vhdx", 1 << 30)
    b = bind(a, "172.26.6.30", "172.26.6.4", frame=58400)
    a.t = b.t
    for number in range(40):
        for turn, c in enumerate((a, b)):
            c.read(fid, (2 * number + turn) << 20, 1 << 20)
    silent_request(b, smb2.READ, smb2.read(fid, 99 << 20, 65536), (0.3, 0.6, 1.2, 2.4, 4.8, 9.6))
    b.reset(b.t + 1)
    a.t = b.t + 1.01
    for number in range(40):
        a.read(fid, (100 + number) << 20, 1 << 20)
    a.close(fid)


@case("unknown", "nobody", "only frames of the clients were recorded")
def fresh_one_direction(scene):
    """The other half of the mirror is missing."""
    scene.only = CLIENT
    company(scene, "10.15.7.2", 4, 40, net="10.15.7")


@case("slow or unknown", "server", "cut to 96 bytes, within the header of SMB2: opens take 1 s")
def fresh_cut_slow(scene):
    """Names and most bodies are not there; times are."""
    scene.snap = 96
    c = Session(scene, "10.16.7.50", "10.16.7.2")
    for number in range(40):
        fid = c.open(f"cad\\part{number}.dwg", service=scene.random.uniform(0.8, 1.4))
        c.read(fid, 0, 4000)
        c.close(fid)
        c.think(0.2, 1)


@case("slow", "client or network or application", "a folder of 60,000 entries is listed over 80 ms: 160 round trips")
def fresh_long_listing(scene):
    """The listing takes 13 s, all of it distance."""
    c = Session(scene, "10.17.7.50", "10.17.7.2", rtt=0.08)
    c.list("archive", [f"entry{n:06d}.eml" for n in range(60000)])
    browse(c, 5)


@case("broken", "server or client", "the share's root may not be opened: Tree Connect denied, each time")
def fresh_denied_share(scene):
    """A user without rights on the share; a script tries for a minute."""
    c = Session(scene, "10.18.7.50", "10.18.7.2", connect=False)
    for _ in range(20):
        c.call(smb2.TREE, smb2.tree("\\\\files\\boss"), None, REFUSED)
        c.think(3)


@case("slow", "server", "the server is overloaded: with 20 clients all answers take 1 to 2 s, alone 5 ms")
def fresh_overload(scene):
    """Everything waits for the CPU; it grows with the number of clients."""
    for number in range(20):
        c = Session(scene, f"10.19.7.{50 + number}", "10.19.7.2", user=f"u{number}", t=2.0 * number)
        for turn in range(25):
            load = min(c.t / 40, 1.0)
            c.stat(f"d{number}\\f{turn}", service=0.005 + scene.random.uniform(0.8, 1.6) * load ** 2)
            c.think(0.2, 1)


@case("slow", "name service", "the server's name is looked up 4 s by IPv6, then by IPv4")
def fresh_dns_quad(scene):
    """The name server ignores questions for IPv6 addresses, three times; the answer for IPv4 comes at once."""
    for number, time in enumerate((0, 1, 2.5)):
        query = wire.dns(900 + number, "nas.lab.example")
        scene.raw(time, wire.udp("10.21.7.50", "10.21.7.1", (50100, 53), query[:-4] + b"\0\x1c\0\x01"))
    look_up(scene, 4.0, "10.21.7.50", "10.21.7.1", "nas.lab.example", "10.21.7.2")
    browse(Session(scene, "10.21.7.50", "10.21.7.2", t=4.002, share="\\\\nas\\team"), 25)


@case("slow", "client", "program writes 300 bytes at a time over 25 ms: 2400 in a row")
def fresh_tiny_writes(scene):
    """Without caching each is a round trip."""
    c = Session(scene, "10.22.7.50", "10.22.7.2", rtt=0.025)
    fid = c.open("log\\export.csv", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(300 * 2400, 300), 1, True)
    c.close(fid)


# Healthy work that looks like trouble.

@case("healthy", "nobody", "clients reset idle connections at the end of the day and do not come back")
def fresh_healthy_resets(scene):
    """No request is in flight."""
    for number in range(6):
        c = Session(scene, f"10.31.7.{50 + number}", "10.31.7.2", user=f"u{number}", t=number)
        browse(c, 20)
        c.think(300)
        c.reset(c.t, CLIENT if number % 2 else SERVER)


@case("healthy", "nobody", "a database's locks are refused now and then and granted 50 ms later")
def fresh_healthy_locks(scene):
    """Two clients, short transactions."""
    for number in range(2):
        c = Session(scene, f"10.32.7.{50 + number}", "10.32.7.2", user=f"u{number}")
        fid = c.open("db\\orders.mdb", 9 << 20, access=0x12019F)
        for turn in range(60):
            if turn % 9 == 4:
                c.call(smb2.LOCK, smb2.lock(fid, 4096 * turn, 1), None, WRONG_LOCK)
                c.think(0.05)
            c.call(smb2.LOCK, smb2.lock(fid, 4096 * turn, 1), smb2.plain())
            c.write(fid, 4096 * turn, 4096)
            c.call(smb2.LOCK, smb2.lock(fid, 4096 * turn, 1, 4), smb2.plain())
            c.think(0.2, 1)


@case("healthy", "nobody", "a person mistypes the password twice, then works")
def fresh_healthy_password(scene):
    """Two refusals."""
    for attempt in range(2):
        c = Session(scene, "10.33.7.50", "10.33.7.2", t=6.0 * attempt, logon=False)
        c.logon(0xC000006D)
        c.finish(c.t)
    browse(Session(scene, "10.33.7.50", "10.33.7.2", t=15), 60)


@case("healthy", "nobody", "a program waits at a pipe for events, minutes each")
def fresh_healthy_pipe_events(scene):
    """Other work continues."""
    c = Session(scene, "10.34.7.50", "10.34.7.2", share="\\\\files\\IPC$")
    fid = c.open("svcctl", 0)
    for number in range(5):
        pipe_call(c, fid, 2 + number, scene.random.uniform(90, 400))
    browse(Session(scene, "10.34.7.50", "10.34.7.2", user="maria2", t=1), 60)


@case("healthy", "nobody", "a script walks a tree over 20 ms for 6 s, once")
def fresh_healthy_walk(scene):
    """300 round trips without a pause."""
    c = Session(scene, "10.35.7.50", "10.35.7.2", rtt=0.02)
    for number in range(100):
        c.stat(f"tree\\d{number % 10}\\f{number}")
    for number in range(40):
        c.list(f"tree\\d{number}", [f"f{n}" for n in range(9)])
        c.think(0.5, 2)


@case("healthy", "nobody", "the recorder lost 3 % of the frames", snap=400)
def fresh_healthy_gaps(scene):
    """Work of nine people; what is missing was not recorded."""
    scene.missing = 0.03
    company(scene, "10.36.7.2", 9, 60, net="10.36.7")


@case("healthy", "nobody", "a mirror port recorded every frame twice", snap=400)
def fresh_healthy_twice(scene):
    """Duplicates within 30 us are not retransmissions."""
    scene.twice = 0.00003
    company(scene, "10.37.7.2", 6, 60, net="10.37.7")


@case("healthy", "nobody", "notifications and a blocking lock are outstanding when the recording ends")
def fresh_healthy_pending(scene):
    """Both wait by design; other clients work for another minute."""
    c = Session(scene, "10.38.7.50", "10.38.7.2")
    browse(c, 20)
    for number in range(6):
        c.watch(c.open(f"in{number}", 0, True))
    fid = c.open("db\\x.mdb", 9000, access=0x12019F)
    mid, left = c.request(c.t, smb2.LOCK, smb2.lock(fid, 0, 1, 2))
    c.reply(left + c.rtt + 0.0004, mid, smb2.LOCK, None, smb2.PENDING, async_id=mid + 1000)
    company(scene, "10.38.7.2", 3, c.t + 60, net="10.38.7")


@case("healthy", "nobody", "the file manager probes for rights: a third of some opens is denied, quickly")
def fresh_healthy_probes(scene):
    """It asks for more rights first, and for fewer when it is denied."""
    c = Session(scene, "10.39.7.50", "10.39.7.2")
    for number in range(40):
        if number % 2:
            c.open(f"pub\\page{number}.pdf", status=smb2.DENIED, access=0x130197)
        c.get(f"pub\\page{number}.pdf", 30000)
        c.think(1, 4)


@case("healthy", "nobody", "a client's window closes for 30 ms now and then while it reads at 60 MB/s", snap=256)
def fresh_healthy_window(scene):
    """It keeps up on the whole."""
    c = Session(scene, "10.40.7.50", "10.40.7.2", window=256, frame=29200, down=60e6)
    fid = c.open("iso\\big.iso", 1 << 30)
    for number in range(120):
        if number % 20 == 9:
            c.windows[CLIENT] += [(c.t + 0.005, 0), (c.t + 0.035, 16776960)]
        c.read(fid, number << 20, 1 << 20)
    c.close(fid)


@case("healthy", "nobody", "satellite, 600 ms: a person lists and opens, each answer at the distance")
def fresh_healthy_satellite(scene):
    """Nothing but the distance; the person has pauses."""
    c = Session(scene, "10.41.7.50", "10.42.7.2", rtt=0.6)
    for number in range(15):
        c.stat(f"docs\\page{number}.txt")
        c.think(3, 15)


@case("healthy", "nobody", "six clients list a folder after each change, 2 ms each")
def fresh_healthy_notify(scene):
    """A small storm that costs no time."""
    storm(scene, 6, "10.43.0.3", (5.0, 14.0, 33.0, 41.0), 0.002, 0.3)


@case("healthy", "nobody", "an encrypted session: requests wait for events, others are answered at once")
def fresh_healthy_sealed(scene):
    """A notify is outstanding; it looks like any other request, but the work continues."""
    c = Session(scene, "10.44.7.50", "10.44.7.2", connect=False)
    for _ in range(80):
        c.sealed(scene.random.randrange(150, 300), scene.random.randrange(77, 900))
        c.think(0.2, 2)
