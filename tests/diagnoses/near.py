"""Captures that look like those of kinds.py although the cause is another one, or nothing is wrong.

Each function says what is different from the kind of the same name.
"""

import smb1
import smb2
import wire
from cases import bind, browse, case, edit
from kinds import FOLDERS, browse1, office_data, storm
from sim import CLIENT, SERVER, Session, blocks
from smb1 import Session1


@case("broken", "client", "client never acknowledges the break of a directory lease that it asked for")
def near_dir_oplock(scene):
    """The same wait, but the folder was opened with a v2 lease: the break can be answered, and is not."""
    a = Session(scene, "10.78.4.21", "10.78.4.9", rtt=0.0013)
    b = Session(scene, "10.78.4.33", "10.78.4.9", rtt=0.0011, user="jonas", t=0.4)
    for number, folder in enumerate(("tracks", "mixes", "takes")):
        a.t = max(a.t, b.t) + 0.3
        a.list(folder, [f"{folder}{n:02d}.wav" for n in range(30)])
        key = bytes([number + 1]) * 16
        held = a.open(folder, 0, True, lease_state=3, key=key)
        b.t = a.t + 0.25
        asked = b.t
        fid = b.open(folder, 0, True, access=0x110080, pending=0.0006, service=33.7)
        a.unasked(asked + 0.0014, smb2.lease_break(key, 3, 1))
        a.t = asked + 1
        while a.t < b.t - 3:
            browse(a, 1, "other", 2, 5)
        a.t = max(a.t, b.t + 0.01)
        b.rename(fid, folder + "-old")
        b.close(fid)
        a.close(held)
    browse(b, 15)


@case("broken", "client", "break not acknowledged although 10 of 50 requests were outstanding")
def near_mpx_limit(scene):
    """The same silence after a break, but the client had plenty of requests left."""
    c = Session1(scene, "10.79.8.14", "10.79.8.2", max_mpx=50, rtt=0.0009)
    own = c.open("\\roam\\k3\\user.ini", oplock=True)
    c.read(own, 0, 700)
    for number in range(9):
        fid = c.open(f"\\roam\\k{number}")
        c.watch(fid)
        c.t += 0.02
    for _ in range(2):
        browse1(c, 25)
        ask, answer, fid = c.open_bodies("\\roam\\k3\\user.ini", False)
        mid, left = c.request(c.t, smb1.NT_CREATE, ask)
        c.oplock_break(left + c.rtt + 0.0003, own)
        c.t = c.reply(left + c.rtt + 35.0, mid, smb1.NT_CREATE, answer) + 0.001
        c.close(fid)
    browse1(c, 10)


@case("healthy", "nobody", "22 notifies and an open of 24 requests outstanding; each break is answered")
def near_mpx_answered(scene):
    """As many notifies as in the kind, but the client still answers the break, and the open continues."""
    c = Session1(scene, "10.79.9.14", "10.79.9.2", max_mpx=24, rtt=0.0009)
    own = c.open("\\roam\\k3\\user.ini", oplock=True)
    for number in range(22):
        fid = c.open(f"\\roam\\k{number}")
        c.watch(fid)
        c.t += 0.02
    for _ in range(3):
        browse1(c, 25)
        ask, answer, fid = c.open_bodies("\\roam\\k3\\user.ini", False)
        mid, left = c.request(c.t, smb1.NT_CREATE, ask)
        told = c.oplock_break(left + c.rtt + 0.0003, own)
        c.break_answer(told + 0.0004, own)
        c.t = c.reply(told + 0.0004 + c.rtt + 0.0003, mid, smb1.NT_CREATE, answer) + 0.001
        c.close(fid)


@case("healthy", "nobody", "folders under leases are closed again; at most 64 are held")
def near_dirlease_limit(scene):
    """The same walk over more folders than the limit, but the oldest handles are given back."""
    c = Session(scene, "172.23.6.40", "172.23.6.3", rtt=0.0021, share="\\\\store\\archive")
    held = []
    for number in range(500):
        name = f"2020\\{number % 17:02d}\\case{number:04d}"
        fid = c.open(name, 0, True, lease_state=3)
        c.list(name, ["a.tif", "b.tif"], fid=fid)
        held.append(fid)
        if len(held) > 64:
            c.close(held.pop(0), 0)
        c.think(0.002, 0.02)


@case("healthy", "nobody", "server ends idle connections; the client comes back when it has work")
def near_reconnect_timer(scene):
    """Many new connections too, but at random times after long idle, and each is answered."""
    time = 0.0
    for _ in range(14):
        c = Session(scene, "192.168.45.17", "10.61.2.8", rtt=0.014, t=time)
        browse(c, scene.random.randrange(3, 9))
        idle = c.t + 900
        c.control(idle, SERVER, wire.FIN | wire.ACK, 1)
        c.control(idle + 0.0001, CLIENT, wire.FIN | wire.ACK, 1)
        time = idle + scene.random.uniform(20, 2500)


@case("broken", "client", "another client's opens are refused until Close, deferred by 30 s, arrives")
def near_deferred_close(scene):
    """Close is late as well, but without a handle lease that could be broken: others get sharing violations."""
    a = Session(scene, "10.92.0.7", "10.92.0.2", rtt=0.0007)
    b = Session(scene, "10.92.0.8", "10.92.0.2", rtt=0.0006, user="jonas", t=0.1)
    for number in range(5):
        name = f"queue\\job{number}.xml"
        a.t = max(a.t, b.t) + 1
        fid = a.open(name, 2000, access=0x12019F)
        a.read(fid, 0, 2000)
        end = a.t + 30.0
        b.t = a.t + 0.4
        while b.t < end:
            b.open(name, status=smb2.SHARING)
            b.think(2.0)
        a.t = end
        a.close(fid)
        b.t = max(b.t, a.t + 0.1)
        b.get(name, 2000)


@case("healthy", "nobody", "delayed ACK of a notify; the next request comes when the person acts")
def near_delayed_ack_notify(scene):
    """The same delayed acknowledgements, but the next request has nothing to do with them."""
    c = Session1(scene, "10.34.9.80", "10.34.9.1", signed=True, rtt=0.0006, server_delay=0.16)
    fid = c.open("\\drop")
    mid, left = c.watch(fid)
    for number in range(30):
        c.t = left + scene.random.uniform(0.3, 4)
        one = c.open(f"\\drop\\scan{number:03d}.tif")
        c.write(one, 0, 4800)
        c.close(one)
        c.t = c.changed(c.t + 0.0002, mid, f"scan{number:03d}.tif") + 0.0003
        mid, left = c.watch(fid)


@case("healthy", "nobody", "64 reads outstanding on a full link: response time level, 110 MB/s", snap=256)
def near_reads_queue(scene):
    """The response time is the queue as well, but the rate is the link's and the level never changes."""
    c = Session(scene, "10.121.3.5", "10.9.1.20", rtt=0.0006, frame=29200, window=1100)
    fid = c.open("vm\\disk8.vhd", 500_000_000)
    c.stream(fid, blocks(900 << 18, 1 << 18), 64)
    c.close(fid)


@case("slow", "server", "96 reads outstanding; segments of a reply come quickly, replies 29 ms apart", snap=256)
def near_reads_queue_server(scene):
    """The same response times of seconds at a rate of 2 MB/s, but the path is quick: the server is the narrow place."""
    c = Session(scene, "10.122.3.5", "10.9.2.20", rtt=0.0008, window=256, size=65536, frame=5840)
    fid = c.open("vm\\disk9.vhd", 500_000_000)
    ready = [c.t]

    def service(number):
        ready[0] = max(ready[0] + scene.random.uniform(0.024, 0.034), c.asked + c.rtt)
        return ready[0] - c.asked - c.rtt
    c.stream(fid, blocks(330 * 65536, 65536), 96, service=service)
    c.close(fid)


@case("healthy", "nobody", "NetBIOS queries stay unanswered, but DNS answers and the SYN follows at once")
def near_before_smb(scene):
    """The same name queries by broadcast in parallel with it, without any wait."""
    client, server = "10.6.66.20", "10.6.66.4"
    scene.raw(0.0, wire.udp(client, "10.6.66.2", (53211, 53), wire.dns(0x92, "files.lab.example")))
    scene.raw(0.0012, wire.udp("10.6.66.2", client, (53, 53211), wire.dns(0x92, "files.lab.example", server)))
    for time in (0.0, 0.75, 1.5):
        scene.raw(time, wire.udp(client, "10.6.66.255", (137, 137), wire.nbns(0x8002, "FILES")))
    browse(Session(scene, client, server, t=0.004), 20)


@case("healthy", "nobody", "264 libraries are found and read as they are needed; distance 28 ms", snap=300)
def near_library_search(scene):
    """As many names at the same distance, but they are there, and the pauses are the person's."""
    c = Session(scene, "10.15.80.3", "10.201.1.9", rtt=0.028, share="\\\\apps\\cad")
    for number in range(264):
        c.get(f"bin\\part{number:03d}.dll", 9000, 1)
        c.think(0.1, 1.2)


@case("healthy", "nobody", "a tunnel channel is there but idle; two LAN channels carry everything", snap=256)
def near_channel_tunnel(scene):
    """The tunnel is known to the session, but no reads go through it."""
    a = Session(scene, "172.21.5.30", "172.21.5.4", rtt=0.0003, frame=58400, down=280e6, window=512)
    fid = a.open("render\\scene.exr", 400 << 20)
    b = bind(a, "172.21.6.30", "172.21.6.4", rtt=0.0003, frame=58400, down=280e6)
    tunnel = bind(b, "100.73.3.30", "100.73.3.4", rtt=0.0024, mss=1240)
    a.t = b.t = max(a.t, tunnel.t) + 0.05
    for number in range(90):
        for turn, c in enumerate((a, b)):
            c.read(fid, (2 * number + turn) << 20, 1 << 20)
        a.t = b.t = max(a.t, b.t)
    tunnel.t = a.t
    tunnel.echo()
    a.close(fid)


def folders(scene, c, found, missing):
    for folder, count in FOLDERS:
        c.list(folder, [f"rec{n:05d}.dat" for n in range(count)])
        for number in range(45):
            fid = c.open(f"{folder}\\rec{number * count // 45:05d}.dat", 3000, service=c.service(found))
            c.read(fid, 0, 3000)
            c.close(fid, 3000)
            c.open(f"{folder}\\rec{number:05d}.idx", status=smb2.NOT_FOUND, service=c.service(missing))
            c.think(0.01, 0.03)


@case("healthy", "nobody", "Create takes the same time in folders of all sizes, 0.8 ms")
def near_case_search(scene):
    """The same folders and names, but the time of an open does not depend on the entries."""
    folders(scene, Session(scene, "10.4.3.61", "10.4.3.5", rtt=0.0005), 0.0008, 0.0007)


@case("slow", "server", "opening an existing file takes 40 ms whatever the folder, missing names 0.6 ms: scanner")
def near_open_scan(scene):
    """Opens are as slow, but only those of files that exist, and not by size of the folder."""
    folders(scene, Session(scene, "10.4.4.61", "10.4.4.5", rtt=0.0005), 0.040, 0.0006)


@case("healthy", "nobody", "notifies and listings come together, but the server answers each within 1 ms")
def near_notify_storm(scene):
    """The same bursts without a queue."""
    storm(scene, 34, "10.42.0.3", (6.0, 17.5, 41.0), 0.0001, 0.6)


@case("healthy", "nobody", "the hole lies behind the last Write, in a file extended by SetInfo", snap=256)
def near_missing_range(scene):
    """Not all bytes below the end are written either, but on purpose: they are behind the last Write."""
    c = Session(scene, "10.72.1.90", "10.72.1.12", rtt=0.0004, frame=58400, up=1.1e9)
    fid = c.open("db\\base.img", 0, disposition=5, access=0x12019F, lease_state=7)
    c.set_end(fid, 64 << 20)
    c.stream(fid, blocks(18 * 524288 - 2560, 524288), 6, True)
    c.flush(fid)
    c.close(fid, 64 << 20)


@case("healthy", "nobody", "a large segment is lost now and then and repaired within a round trip", snap=700)
def near_mtu_hole(scene):
    """Large segments are lost as well, but only some, once, and the repeated one arrives."""
    c = Session(scene, "10.89.12.6", "172.31.0.15", rtt=0.042)
    for number in range(14):
        fid = c.open(f"offer{number}.docx", 0, disposition=5, access=0x12019F)
        count, lost = len(c.segments), {2: 7, 7: 3, 11: 9}.get(number)
        mid, left = c.request(c.t, smb2.WRITE, smb2.write(fid, 0, 22000), 22000, lost=() if lost is None else (lost,))
        if lost is not None:
            left += c.rtt + 0.0005
            c.resend(left, c.segments[count + lost])
        c.t = c.reply(left + c.rtt + c.service(), mid, smb2.WRITE, smb2.written(22000)) + 0.00002
        c.close(fid, 22000)
        c.think(0.5, 3)


@case("healthy", "nobody", "SMB1, but the listing is enough; documents are opened at the person's pace", snap=700)
def near_smb1_browse(scene):
    """The same old protocol at the same distance, without queries for each entry."""
    c = Session1(scene, "10.20.4.70", "10.211.5.6", rtt=0.052)
    for turn in range(6):
        c.path_info("\\bills")
        c.find("\\bills\\*", [f"Invoice {n:03d}.xls" for n in range(85)])
        c.t += scene.random.uniform(2, 7)
        fid = c.open(f"\\bills\\Invoice {turn:03d}.xls")
        c.read(fid, 0, 6000)
        c.close(fid)
        c.t += scene.random.uniform(3, 15)


@case("healthy", "nobody", "first DNS server answers after 20 ms")
def near_dns_silent(scene):
    """The name is looked up before the connection as well, and answered."""
    client = "10.53.7.31"
    scene.raw(0, wire.udp(client, "10.53.7.10", (49833, 53), wire.dns(0x4C2, "nas.lab.example")))
    scene.raw(0.0203, wire.udp("10.53.7.10", client, (53, 49833), wire.dns(0x4C2, "nas.lab.example", "10.53.7.4")))
    browse(Session(scene, client, "10.53.7.4", t=0.021), 20)


@case("broken", "network", "nothing is answered nor acknowledged from 12.3 to 19.1 s: path", snap=300)
def near_storage_stall(scene):
    """All clients stop for the same time, but requests of every kind are repeated by TCP without any answer."""
    stop, go = 12.3, 19.1
    for number in range(5):
        c = Session(scene, f"10.65.1.{70 + number}", "10.65.1.6", user=f"clerk{number}", t=0.05 * number)
        fid = c.open(f"data{number}.accdb", 3_000_000)
        while c.t < 32:
            if stop < c.t < go:
                count = len(c.segments)
                if number % 2:
                    mid, at = c.request(c.t, smb2.INFO, smb2.info(fid), lost=(0,))
                    rest = (smb2.INFO, smb2.informed(smb2.all_info("f", 3_000_000)))
                else:
                    mid, at = c.request(c.t, smb2.READ, smb2.read(fid, 0, 4096), lost=(0,))
                    rest = (smb2.READ, smb2.read_reply(4096) + bytes(4096))
                wait = scene.random.uniform(0.25, 0.35)
                while at <= go:
                    at += wait
                    c.resend(at, c.segments[count], at <= go)
                    wait *= 2
                c.t = c.reply(at + c.rtt + c.service(), mid, *rest)
            elif scene.random.random() < 0.5:
                c.read(fid, scene.random.randrange(700) * 4096, 4096, service=c.service(0.002))
            else:
                c.info(fid, f"data{number}.accdb")
            c.think(0.02, 0.22)


@case("broken", "server", "requests of every kind stay unanswered 12.3-19.1 s, but are acknowledged by TCP", snap=300)
def near_storage_stall_server(scene):
    """All clients stop, metadata too, while the server's TCP continues: the whole server, not its disks."""
    office_data(scene, (12.3, 19.1), metadata=False)


@case("healthy", "nobody", "few credits, several replies grant 0, but they are refilled in time")
def near_credits_end(scene):
    """Grants of 0 as well, but at the last credit 16 come at once."""
    c = Session(scene, "10.13.12.50", "10.13.12.7", rtt=0.0012, window=24)
    browse(c, 40, low=0.01, high=0.05)
    fid = c.open("meter\\log.csv", 0, disposition=5, access=0x12019F)
    c.grants = lambda charge: 16 if c.balance < 2 else 0
    for number in range(260):
        c.write(fid, 700 * number, 700)
        c.think(0.004, 0.012)
    c.close(fid)


@case("healthy", "nobody", "one Write at a time, but the gigabit link is full all the same", snap=256)
def near_write_depth(scene):
    """One block outstanding as well, but its transfer takes nearly all of the time."""
    c = Session(scene, "10.31.30.8", "10.31.30.2", rtt=0.0002, frame=64240, up=117e6, down=117e6)
    fid = c.open("dump.bak", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(150 << 20, 1 << 20), 1, True)
    c.close(fid)


@case("healthy", "nobody", "8 KiB reads at random places of a database, 0.5 ms each", snap=300)
def near_small_reads(scene):
    """Small and one at a time as well, but nothing could be read ahead."""
    c = Session(scene, "10.26.7.44", "10.26.7.3", rtt=0.0003)
    fid = c.open("stock.accdb", 1 << 30, access=0x12019F)
    for _ in range(400):
        c.read(fid, scene.random.randrange(100_000) * 8192, 8192)
        c.think(0.001, 0.05)
    c.close(fid)


@case("healthy", "nobody", "the client logs off, then resets the connection as some systems do")
def near_signature_reset(scene):
    """Signed connections that end with a reset too, but after everything is done and logged off."""
    time = 0.0
    for number in range(6):
        c = Session(scene, "10.67.20.9", "10.67.20.2", rtt=0.0008, signed=True, t=time)
        browse(c, 4, low=0.02, high=0.05)
        c.get(f"setup{number}.msi", 100_000)
        c.logoff()
        c.reset(c.t + 0.0002)
        time = c.t + scene.random.uniform(5, 60)


@case("healthy", "nobody", "attributes of 400 different files, each once, at the person's pace")
def near_attribute_cache(scene):
    """As many queries of attributes, but none is asked twice."""
    c = Session(scene, "10.59.2.12", "10.99.5.4", rtt=0.012, share="\\\\src\\work")
    for number in range(400):
        c.stat(f"lib\\m{number % 15:02d}\\unit{number:03d}.py", 900)
        c.think(0.05, 0.6)


@case("slow", "server", "office work in which every sixth Create takes 1.4 to 2.6 s")
def near_office(scene):
    """The same work, but the server is slow at some opens."""
    for number in range(3):
        c = Session(scene, f"10.46.2.{20 + number}", "10.46.2.3", user=f"emp{number}", t=0.3 * number)
        for turn in range(18):
            is_slow = turn % 6 == number
            c.list(f"dept{turn % 3}", [f"note {n}.docx" for n in range(25)],
                   open_service=scene.random.uniform(1.4, 2.6) if is_slow else None)
            c.think(0.5, 2)
            if turn % 3 == 0:
                edit(c, f"dept{turn % 3}\\note {turn}.docx", 20000)
            c.think(0.5, 2)


@case("slow", "network", "playback needs 0.8 MB/s, the path carries 0.55 MB/s: reads come late", snap=256)
def near_player(scene):
    """Reads of the same size in order, but each takes longer than it plays: the film stops and starts."""
    c = Session(scene, "10.46.9.77", "10.46.9.3", rtt=0.018, down=0.55e6, frame=5840)
    fid = c.open("films\\summer.mp4", 900 << 20)
    for number in range(160):
        c.read(fid, number << 17, 1 << 17)
        c.think(0.0001, 0.0004)
