"""The kinds of kinds.py with other parameters: distances, sizes, counts, dialects, places of the recorder, healthy
company, trouble in a part of the recording only, two causes at once. Decided before smbscope saw them.

Not: the recordings without trouble among them that are kinds of healthy work (healthy.py).
"""

import smb1
import smb2
import wire
from cases import bind, browse, case, edit
from kinds import office_data, storm
from services import attempts, look_up
from sim import CLIENT, SERVER, Session, blocks
from smb1 import Session1

NOT_SUPPORTED, TOO_MANY = 0xC00000BB, 0xC000011F


def company(scene, server, count=8, until=60.0, low=0.3, high=2.0, net="10.210.7"):
    """Clients that do ordinary work at a server until a time, without any trouble."""
    for number in range(count):
        c = Session(scene, f"{net}.{100 + number}", server, user=f"colleague{number}", t=0.2 * number)
        while c.t < until:
            browse(c, 4, f"dept{number}", low, high)
            if number % 2 and c.t < until:
                edit(c, f"dept{number}\\memo.docx")


@case("broken", "server", "oplock of a directory broken without lease, 40 s; recorded at the server, IPv6, 3.1.1")
def varied_dir_oplock(scene):
    """The same mistake over a distance of 20 ms."""
    scene.place = 1.0
    a = Session(scene, "2001:db8:4::21", "2001:db8:4::9", rtt=0.02)
    b = Session(scene, "2001:db8:4::33", "2001:db8:4::9", rtt=0.018, user="jonas", t=0.4)
    for folder in ("in", "out"):
        a.t = max(a.t, b.t) + 0.3
        held = a.open(folder, 0, True, oplock=smb2.LEVEL_II if folder == "in" else smb2.BATCH)
        b.t = a.t + 0.25
        asked = b.t
        fid = b.open(folder, 0, True, access=0x110080, pending=0.0006, service=40.1)
        a.unasked(asked + 0.02, smb2.oplock_break(held, smb2.NO_OPLOCK))
        a.t = asked + 2
        while a.t < b.t - 3:
            browse(a, 1, "other", 1, 3)
        a.t = max(a.t, b.t + 0.01)
        b.rename(fid, folder + "-old")
        b.close(fid)
        a.close(held)


@case("broken", "client", "all 10 of 10 requests are notifies when the break comes, snap length 128", snap=128)
def varied_mpx_limit(scene):
    """The server allows 10 requests only."""
    c = Session1(scene, "10.211.8.14", "10.211.8.2", max_mpx=10, rtt=0.012)
    own = c.open("\\prof\\app.ini", oplock=True)
    c.read(own, 0, 700)
    for number in range(9):
        c.watch(c.open(f"\\prof\\d{number}"))
        c.t += 0.02
    for _ in range(2):
        for number in range(12):
            c.path_info(f"\\prof\\d{number % 9}\\y.dat")
            c.t += 0.05
        ask, answer, fid = c.open_bodies("\\prof\\app.ini", False)
        mid, left = c.request(c.t, smb1.NT_CREATE, ask)
        c.oplock_break(left + c.rtt + 0.0003, own)
        c.t = c.reply(left + c.rtt + 35.1, mid, smb1.NT_CREATE, answer) + 0.001
        c.close(fid)


@case("broken", "server or client", "handles of directories are kept until TOO_MANY_OPENED_FILES at 150")
def varied_dirlease_limit(scene):
    """Another status, another number, 40 ms away."""
    c = Session(scene, "172.24.6.40", "172.24.6.3", rtt=0.04, share="\\\\store\\archive")
    for number in range(230):
        name = f"2021\\case{number:04d}"
        if number < 150:
            c.list(name, ["a.tif", "b.tif"], fid=c.open(name, 0, True, lease_state=3))
        else:
            c.open(name, is_folder=True, status=TOO_MANY, lease_state=3)
        c.think(0.001, 0.02)


@case("broken", "network", "no answer to SYNs, a new attempt each 10 s, no ICMP")
def varied_reconnect(scene):
    """The network is away without any sign; three clients try for two minutes."""
    for number in range(3):
        client = f"192.168.46.{17 + number}"
        c = Session(scene, client, "10.62.2.8", rtt=0.03, t=0.3 * number)
        browse(c, 30)
        count = len(c.segments)
        c.request(c.t, smb2.CREATE, smb2.create("docs\\last.txt"), lost=(0,))
        at = c.t
        for wait in (0.3, 0.6, 1.2, 2.4):
            at += wait
            c.resend(at, c.segments[count], True)
        c.reset(at + 3)
        for turn in range(12):
            attempts(scene, client, "10.62.2.8", (at + 4 + 10 * turn, at + 7 + 10 * turn))


@case("healthy", "nobody", "Close deferred by 30 s under leases, 25 ms away")
def varied_deferred_close(scene):
    """Longer than usual, and no other client wants the files."""
    c = Session(scene, "10.212.0.7", "10.212.0.2", rtt=0.025, share="\\\\nas9\\etc")
    due = []
    for number in range(60):
        turn = 1.0 + 0.9 * number
        while due and due[0][0] < turn:
            c.t = max(c.t, due[0][0])
            c.close(due.pop(0)[1], 2300)
        c.t = max(c.t, turn)
        fid = c.open(f"host\\unit{number}.conf", 2300, lease_state=7)
        c.read(fid, 0, 2300)
        due.append((c.t + 30.0, fid))
    for time, fid in due:
        c.t = max(c.t, time)
        c.close(fid, 2300)


@case("slow", "client", "9 s of WebDAV on port 80 before the first packet to port 445, IPv6")
def varied_before_smb(scene):
    """Another provider alone, and a short delay."""
    client, server = "2001:db8:5::20", "2001:db8:5::4"
    attempts(scene, client, server, (0, 3.0), 80)
    browse(Session(scene, client, server, t=9.0), 20)


@case("slow", "application", "150 plug-ins searched in vain, 90 ms each; recorded at the server", snap=128)
def varied_library_search(scene):
    """Only headers were recorded, next to the server."""
    scene.place = 1.0
    c = Session(scene, "10.213.80.3", "10.213.1.9", rtt=0.09, share="\\\\homes\\h$")
    for number in range(150):
        c.open(f"maria\\ext\\plug{number:03d}.dll", status=smb2.NOT_FOUND)
        c.think(0.0008, 0.0025)


@case("slow", "network", "a channel by VPN address 10.8.0.x, MTU 1300, holds up two LAN channels", snap=256)
def varied_channel_tunnel(scene):
    """The tunnel has a private address and 9 ms; reads are dealt out evenly."""
    a = Session(scene, "172.25.5.30", "172.25.5.4", rtt=0.0003, frame=58400, down=280e6, up=280e6, window=512)
    fid = a.open("render\\scene.exr", 400 << 20)
    b = bind(a, "172.25.6.30", "172.25.6.4", rtt=0.0003, frame=58400, down=280e6)
    tunnel = bind(b, "10.8.0.30", "10.8.0.4", rtt=0.009, mss=1260, frame=12600, down=11e6, up=11e6)
    channels = (a, b, tunnel)
    for c in channels:
        c.t = tunnel.t + 0.05
    for number in range(60):
        for turn, c in enumerate(channels):
            c.read(fid, (3 * number + turn) << 20, 1 << 20)
        latest = max(c.t for c in channels)
        for c in channels:
            c.t = latest
    a.close(fid)


@case("slow", "server", "folders of 30 to 18000 entries: an open costs 2 us an entry, a missing name twice", snap=600)
def varied_case_search(scene):
    """Larger folders, a quicker search; two clients."""
    for n in range(2):
        c = Session(scene, f"10.214.3.{61 + n}", "10.214.3.5", rtt=0.004, user=("ina", "tom")[n], t=0.3 * n)
        for folder, count in (("few", 30), ("some", 2500), ("many", 18000)):
            c.list(folder, [f"rec{i:05d}.dat" for i in range(count)])
            for number in range(40):
                spread = scene.random.uniform(0.9, 1.1)
                fid = c.open(f"{folder}\\rec{number * count // 40:05d}.dat", 3000,
                             service=0.0004 + 2e-6 * count * spread)
                c.close(fid, 3000)
                c.open(f"{folder}\\rec{number:05d}.xmp", status=smb2.NOT_FOUND,
                       service=0.0005 + 4e-6 * count * spread)
                c.think(0.01, 0.03)


@case("slow", "server", "8 clients list a watched root at each change; a listing takes 0.4 s")
def varied_notify_storm(scene):
    """Fewer clients, slower listings."""
    storm(scene, 8, "10.215.0.3", (5.0, 21.0, 33.0, 60.0), 0.4)


@case("broken", "client", "1,024 bytes of two files are never written; SMB 2.1, 64 KiB", snap=300)
def varied_missing_range(scene):
    """Two of five files have a hole."""
    c = Session(scene, "10.216.1.90", "10.216.1.12", rtt=0.006, dialect=0x210)
    for number in range(5):
        fid = c.open(f"db\\part{number}.img", 0, disposition=5, access=0x12019F)
        pieces = blocks(20 * 65536, 65536)
        if number % 2:
            pieces[7] = (pieces[7][0], 65536 - 1024)
        c.stream(fid, pieces, 4, True)
        c.close(fid, 20 * 65536)
        c.think(0.5, 2)


@case("broken", "network", "large replies never arrive, small ones do: MTU hole towards the client", snap=300)
def varied_mtu_hole_down(scene):
    """Recorded at the server: it repeats the full segments of a Read reply until the client gives up."""
    scene.place = 1.0
    start = 0.0
    for attempt in range(3):
        c = Session(scene, "10.217.12.6", "172.30.1.15", rtt=0.03, t=start)
        browse(c, 6)
        fid = c.open("offer.docx", 60000)
        mid, left = c.request(c.t, smb2.READ, smb2.read(fid, 0, 30000))
        count = len(c.segments)
        c.reply(left + c.rtt + 0.001, mid, smb2.READ, smb2.read_reply(30000), zeros=30000)
        for segment in c.segments[count:]:
            segment.is_lost = segment.size == 1460
        at, wait = left + c.rtt, 0.35
        for _ in range(6):
            at += wait
            c.resend(at, c.segments[count], True)
            wait *= 2
        c.reset(at + 5)
        start = at + 5.3


@case("slow", "client", "SMB1: 4 path queries for each of 45 entries, 120 ms each", snap=128)
def varied_smb1_browse(scene):
    """Further away, and cut to headers."""
    c = Session1(scene, "10.218.4.70", "10.218.5.6", rtt=0.12)
    names = [f"Offer {n:03d}.doc" for n in range(45)]
    c.find("\\offers\\*", names)
    for name in names:
        for level in (smb1.BASIC, smb1.STANDARD, smb1.EA, smb1.ALL):
            c.path_info("\\offers\\" + name, level)
            c.t += 0.0008


@case("slow", "name service", "DNS answers after 3.1 s, for two servers")
def varied_dns_late(scene):
    """The only resolver is slow, not silent."""
    client = "10.219.7.31"
    start = 0.0
    for number, name in enumerate(("nas1", "nas2")):
        address = f"10.219.7.{4 + number}"
        look_up(scene, start, client, "10.219.7.10", f"{name}.lab.example", address, 3.1, 0, 50000 + number)
        c = Session(scene, client, address, t=start + 3.105, share=f"\\\\{name}\\team")
        browse(c, 15)
        start = c.t + 20


@case("broken", "storage", "data of 8 clients stands still for 25 s, metadata continues; recorded at the server", snap=300)
def varied_storage_stall(scene):
    """Longer, with more clients."""
    scene.place = 1.0
    office_data(scene, (5.0, 30.0), count=8)


@case("slow", "server", "the server grants 2 credits only: reads of a quick path go two at a time", snap=256)
def varied_few_credits(scene):
    """The client would read ahead, 40 ms away."""
    c = Session(scene, "10.220.12.50", "10.220.12.7", rtt=0.04, window=64, logon=False)
    c.grants = lambda charge: 2 - c.balance
    c.logon()
    c.connect("\\\\files\\team")
    fid = c.open("vm\\image.iso", 1 << 30)
    c.stream(fid, blocks(24 << 20, 65536), 2)
    c.close(fid)


@case("slow", "client", "SMB 2.1: one Write of 64 KiB at a time over 30 ms", snap=256)
def varied_write_depth(scene):
    """The link of 110 MB/s carries 2 MB/s."""
    c = Session(scene, "10.221.30.8", "10.221.30.2", rtt=0.03, dialect=0x210, frame=29200)
    fid = c.open("dump.bak", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(40 << 20, 65536), 1, True)
    c.close(fid)


@case("slow", "client", "4 KiB reads in order, one at a time, 10 ms; recorded mid-stream", snap=256)
def varied_small_reads(scene):
    """Without the beginning of the connection."""
    scene.begin = 1.0
    c = Session(scene, "10.222.7.44", "10.222.7.3", rtt=0.01)
    fid = c.open("export.csv", 3000 * 4096)
    c.stream(fid, blocks(3000 * 4096, 4096), 1, service=lambda n: c.service(0.00012))
    c.close(fid)


@case("broken", "client or server or network", "client resets 3 connections after the first Write reply; signed, SMB 2.1")
def varied_signature_reset(scene):
    """Fewer attempts, another command."""
    start = 0.0
    for attempt in range(3):
        c = Session(scene, "10.223.20.9", "10.223.20.2", rtt=0.012, signed=True, dialect=0x210, t=start)
        browse(c, 4, low=0.02, high=0.05)
        fid = c.open("setup.log", 0, disposition=5, access=0x12019F)
        c.write(fid, 0, 4096)
        c.reset(c.t + 0.0002)
        start = c.t + scene.random.uniform(4, 6)


@case("slow", "client", "attributes of 40 files asked again every 2 s, 150 ms away, IPv6")
def varied_attribute_cache(scene):
    """Each pass takes six seconds."""
    c = Session(scene, "2001:db8:58::12", "2001:db8:99::4", rtt=0.15, share="\\\\src\\work")
    names = [f"lib\\unit{n:03d}.py" for n in range(40)]
    for _ in range(6):
        for name in names:
            c.stat(name, 900)
            c.think(0.0002, 0.0006)
        c.think(2)


@case("slow", "server", "1 sufferer among 9: his project folder opens in 2 s, all else is quick")
def varied_one_sufferer(scene):
    """A folder of one user is slow at the server; the others do not notice."""
    c = Session(scene, "10.210.7.50", "10.210.7.2", user="maria", t=0.5)
    for turn in range(14):
        c.list(f"cad\\project{turn % 4}", [f"part{n}.dwg" for n in range(30)],
               open_service=scene.random.uniform(1.6, 2.6))
        c.think(1, 3)
        edit(c, f"cad\\project{turn % 4}\\part{turn}.dwg")
    company(scene, "10.210.7.2", until=c.t)


@case("broken", "network", "1 client among 9 loses its path for 20 s, twice")
def varied_one_path(scene):
    """The server is fine: the others are served in the same seconds."""
    c = Session(scene, "10.224.7.50", "10.224.7.2", user="maria", t=0.5)
    for turn in range(2):
        browse(c, 25)
        count = len(c.segments)
        mid, at = c.request(c.t, smb2.INFO, smb2.info(b"\x05" * 16), lost=(0,))
        wait = 0.3
        for _ in range(6):
            at += wait
            c.resend(at, c.segments[count], wait < 9)
            wait *= 2
        c.t = c.reply(at + c.rtt + 0.001, mid, smb2.INFO, smb2.informed(smb2.all_info("f")))
    browse(c, 25)
    company(scene, "10.224.7.2", until=c.t, net="10.224.7")


@case("broken", "storage", "5 min healthy, then data of all clients stands still for 20 s", snap=300)
def varied_late_stall(scene):
    """Trouble in a twentieth of the recording only."""
    company(scene, "10.64.1.6", 4, 296.0, net="10.64.1")
    for number in range(4):
        c = Session(scene, f"10.64.1.{70 + number}", "10.64.1.6", user=f"clerk{number}", t=0.05 * number)
        fid = c.open(f"data{number}.accdb", 3_000_000)
        while c.t < 345:
            late = 300 < c.t + c.rtt + 0.002 < 320
            c.read(fid, scene.random.randrange(700) * 4096, 4096,
                   service=320 - c.t - c.rtt + scene.random.uniform(0.001, 0.09) if late else c.service(0.002))
            c.think(0.2, 0.9)


@case("slow", "client", "two causes: 60 s of serial writes (larger), 8 s of a silent DNS server", snap=256)
def varied_two_causes(scene):
    """The larger cause comes first."""
    client = "10.225.7.31"
    for time, target in ((0, 10), (1, 10), (3, 10), (8.02, 11)):
        scene.raw(time, wire.udp(client, f"10.225.7.{target}", (49833, 53), wire.dns(0x4C1, "nas.lab.example")))
    scene.raw(8.0217, wire.udp("10.225.7.11", client, (53, 49833), wire.dns(0x4C1, "nas.lab.example", "10.225.9.4")))
    c = Session(scene, client, "10.225.9.4", t=8.03, rtt=0.025, frame=29200)
    fid = c.open("dump.bak", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(2400 << 16, 65536), 1, True)
    c.close(fid)


@case("slow", "server", "two causes: opens of 1.5 s (45 s), small reads over 4 ms (6 s)", snap=300)
def varied_two_causes_server(scene):
    """The server's slow opens are most of the waiting."""
    c = Session(scene, "10.226.7.31", "10.226.9.4", rtt=0.004)
    for number in range(30):
        fid = c.open(f"model\\part{number}.stp", 400_000, service=scene.random.uniform(1.2, 1.8))
        c.stream(fid, blocks(400_000, 8192), 1)
        c.close(fid)
        c.think(0.5, 2)


@case("slow", "client", "waits for a delayed ACK of each notify, 40 ms, 220 times; 3 ms away")
def varied_delayed_ack(scene):
    """A server with Linux's delay."""
    c = Session1(scene, "10.227.9.80", "10.227.9.1", signed=True, rtt=0.003, server_delay=0.04)
    fid = c.open("\\drop")
    mid, left = c.watch(fid)
    c.t = left + c.rtt + 0.04 + 0.0005
    for number in range(220):
        one = c.open(f"\\drop\\scan{number:03d}.tif")
        c.write(one, 0, 4800)
        c.close(one)
        end = c.changed(c.t + 0.0002, mid, f"scan{number:03d}.tif")
        c.t = end + 0.0003
        mid, left = c.watch(fid)
        c.t = left + c.rtt + 0.04 + scene.random.uniform(0.0004, 0.0009)


@case("slow", "network", "48 writes outstanding on an uplink of 1.5 MB/s", snap=256)
def varied_writes_queue(scene):
    """Response times of two seconds are the queue before the narrow uplink."""
    c = Session(scene, "10.228.3.5", "10.228.0.20", rtt=0.05, window=256, up=1.5e6)
    fid = c.open("vm\\disk7.vhd", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(400 * 65536, 65536), 48, True)
    c.close(fid)


@case("slow", "server", "player: reads of 128 KiB take 250 ms at the server, the film needs one each 160 ms", snap=256)
def varied_player_server(scene):
    """Segments come quickly once the server has the data."""
    c = Session(scene, "10.229.9.77", "10.229.9.3", rtt=0.0007, frame=58400)
    fid = c.open("films\\summer.mp4", 900 << 20)
    for number in range(160):
        c.read(fid, number << 17, 1 << 17, service=scene.random.uniform(0.2, 0.3))
        c.think(0.0001, 0.0004)


@case("slow", "server", "recorded in the middle of 30 ms: every sixth folder opens in 1.4 to 2.6 s")
def varied_office_middle(scene):
    """The distance lies on both sides of the recorder."""
    scene.place = 0.5
    for number in range(3):
        c = Session(scene, f"10.230.2.{20 + number}", "10.230.2.3", user=f"emp{number}", t=0.3 * number, rtt=0.03)
        for turn in range(18):
            is_slow = turn % 6 == number
            c.list(f"dept{turn % 3}", [f"note {n}.docx" for n in range(25)],
                   open_service=scene.random.uniform(1.4, 2.6) if is_slow else None)
            c.think(1, 4)


def healthy_company(scene, server, **more):
    for name, value in more.items():
        setattr(scene, name, value)
    company(scene, server, 9, 90.0, net=server.rsplit(".", 1)[0])


@case("healthy", "nobody", "nine people at work, recorded at the server")
def varied_healthy_server_side(scene):
    """Nothing is wrong."""
    healthy_company(scene, "10.231.7.2", place=1.0)


@case("healthy", "nobody", "nine people at work, recorded mid-stream")
def varied_healthy_midstream(scene):
    """Nothing is wrong; no handshake was seen."""
    healthy_company(scene, "10.232.7.2", begin=15.0)


@case("healthy", "nobody", "nine people at work, cut to 128 bytes", snap=128)
def varied_healthy_cut(scene):
    """Nothing is wrong; names are cut."""
    healthy_company(scene, "10.233.7.2")


@case("healthy", "nobody", "office work over IPv6, SMB 2.1, 35 ms, recorded in the middle")
def varied_healthy_ipv6(scene):
    """Nothing is wrong."""
    scene.place = 0.5
    for number in range(3):
        c = Session(scene, f"2001:db8:7::{number + 5}", "2001:db8:7::2", user=f"emp{number}", t=0.3 * number,
                    rtt=0.035, dialect=0x210)
        for turn in range(6):
            c.list(f"dept{turn % 3}", [f"note {n}.docx" for n in range(25)])
            edit(c, f"dept{turn % 3}\\note {turn}.docx")
            c.think(1, 4)
