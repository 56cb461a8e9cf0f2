"""One capture for each of 24 kinds of problems (and of 3 that look like one): the packets when it is the cause.

The patterns are those of public reports; hosts, names, counts, times and sizes are made up here. Not: captures that
only look alike (near.py).
"""

import smb1
import smb2
import wire
from cases import bind, browse, case, edit
from sim import Session, blocks
from smb1 import Session1


@case("broken", "server", "server breaks oplock of a directory opened without lease; its 31 s run out")
def kind_dir_oplock(scene):
    """A plain oplock is granted on a folder; when another client renames it, the break cannot be answered."""
    a = Session(scene, "10.77.4.21", "10.77.4.9", rtt=0.0013, dialect=0x302)
    b = Session(scene, "10.77.4.33", "10.77.4.9", rtt=0.0011, dialect=0x302, user="jonas", t=0.4)
    for folder in ("albums", "scans", "plans"):
        a.t = max(a.t, b.t) + 0.3
        a.list(folder, [f"{folder}{n:02d}.png" for n in range(40)])
        held = a.open(folder, 0, True, oplock=smb2.EXCLUSIVE)
        b.t = a.t + 0.25
        asked = b.t
        fid = b.open(folder, 0, True, access=0x110080, pending=0.0006, service=31.2)
        a.unasked(asked + 0.0014, smb2.oplock_break(held, smb2.NO_OPLOCK))
        a.t = asked + 1
        while a.t < b.t - 3:      # the holder of the oplock is alive and gets answers
            browse(a, 1, "other", 2, 5)
        a.t = max(a.t, b.t + 0.01)
        b.rename(fid, folder + "-2025")
        b.close(fid)
        a.close(held)
    browse(b, 15)


@case("broken", "client", "MaxMpxCount 24 used up by notifies: break cannot be answered")
def kind_mpx_limit(scene):
    """SMB1: as many requests are outstanding as the server allows when a break comes; it is not answered."""
    c = Session1(scene, "10.77.8.14", "10.77.8.2", max_mpx=24, rtt=0.0009)
    own = c.open("\\roam\\k3\\user.ini", oplock=True)
    c.read(own, 0, 700)
    for number in range(23):
        fid = c.open(f"\\roam\\k{number}")
        c.t += 0.001
        c.watch(fid)
        c.t += 0.02
    for path in range(3):
        for number in range(25):
            c.path_info(f"\\roam\\k{number}\\y.dat")
            c.t += 0.03
        ask, answer, fid = c.open_bodies("\\roam\\k3\\user.ini", False)
        mid, left = c.request(c.t, smb1.NT_CREATE, ask)
        c.oplock_break(left + c.rtt + 0.0003, own)
        c.t = c.reply(left + c.rtt + 30.4, mid, smb1.NT_CREATE, answer) + 0.001
        c.close(fid)
    browse1(c, 10)


def browse1(c, count):
    for number in range(count):
        c.path_info(f"\\roam\\z{number}.dat")
        c.t += 0.2


@case("broken", "server", "directory handles held by leases reach the server's limit of 410 open files")
def kind_dirlease_limit(scene):
    """A recursive walk keeps every folder open for its lease; from handle 411 on all opens fail."""
    c = Session(scene, "172.22.6.40", "172.22.6.3", rtt=0.0021, share="\\\\store\\archive")
    for number in range(640):
        name = f"2019\\{number % 17:02d}\\case{number:04d}"
        if number < 410:
            c.list(name, ["a.tif", "b.tif"], fid=c.open(name, 0, True, lease_state=3))
        else:
            c.open(name, is_folder=True, status=smb2.NO_RESOURCES, lease_state=3)
        c.think(0.0003, 0.0009)


@case("broken", "network", "server unreachable (ICMP); client tries a new connection every 5.0 s")
def kind_reconnect_timer(scene):
    """The machine has left the network; every access waits for the next attempt of a constant timer."""
    c = Session(scene, "192.168.44.17", "10.60.2.8", rtt=0.014)
    browse(c, 25)
    c.think(1.2)
    mid, _ = c.request(c.t, smb2.CREATE, smb2.create("docs\\last.txt"))
    segment = c.segments[-1]
    segment.is_lost = True
    wait = 0.25
    at = c.t
    for _ in range(5):
        at += wait
        c.resend(at, segment, True)
        wait *= 2
    c.reset(at + 3)
    for number in range(31):
        time = at + 4 + 5.0 * number + scene.random.uniform(0, 0.0008)
        source, target = wire.address("192.168.44.17"), wire.address("10.60.2.8")
        syn = wire.tcp(source, target, (51000 + number, 445), scene.random.randrange(1 << 32), 0, wire.SYN, mss=1460)
        scene.raw(time, syn)
        scene.raw(time + 0.0021, wire.icmp_unreachable("192.168.44.1", "192.168.44.17", syn, 0))


@case("healthy", "nobody", "Close is deferred by 5.0 s on purpose; no user waits for it")
def kind_deferred_close(scene):
    """The client keeps handles for 5.0 s after the last use, under leases."""
    c = Session(scene, "10.91.0.7", "10.91.0.2", rtt=0.0007, share="\\\\nas9\\etc")
    due = []
    for number in range(48):
        turn = 1.0 + 0.21 * number
        while due and due[0][0] < turn:
            c.t = max(c.t, due[0][0])
            c.close(due.pop(0)[1], 2300)
        c.t = max(c.t, turn)
        fid = c.open(f"host\\unit{number}.conf", 2300, lease_state=7)
        c.read(fid, 0, 2300)
        due.append((c.t + 5.0, fid))
    for time, fid in due:
        c.t = max(c.t, time)
        c.close(fid, 2300)


@case("slow", "client", "client waits for server's delayed ACK of each notify, 160 ms, 75 times")
def kind_delayed_ack_notify(scene):
    """Signed SMB1: the request after a pending notify leaves only when TCP has acknowledged the notify."""
    c = Session1(scene, "10.33.9.80", "10.33.9.1", signed=True, rtt=0.0006, server_delay=0.16)
    fid = c.open("\\drop")
    mid, left = c.watch(fid)
    c.t = left + c.rtt + 0.16 + 0.0005
    for number in range(75):
        one = c.open(f"\\drop\\scan{number:03d}.tif")
        c.t += 0.0003
        c.write(one, 0, 4800)
        c.close(one)
        end = c.changed(c.t + 0.0002, mid, f"scan{number:03d}.tif")
        c.t = end + 0.0003
        mid, left = c.watch(fid)
        c.t = left + c.rtt + 0.16 + scene.random.uniform(0.0004, 0.0009)


def queue_rate(number, low, high, count):
    """Bytes a second of a path that is quick, then carries little, then is quick again."""
    return high if number < count // 3 or number > count - count // 8 else low


@case("slow", "network", "96 reads outstanding on a path of 1.9-7 MB/s: response time is queue by rate", snap=256)
def kind_reads_queue(scene):
    """The response times of seconds are the queue before a narrow path: segments come at an even, low rate."""
    c = Session(scene, "10.120.3.5", "10.9.0.20", rtt=0.034, window=256, size=65536)
    fid = c.open("vm\\disk7.vhd", 500_000_000)
    c.stream(fid, blocks(330 * 65536, 65536), 96, rate=lambda n: queue_rate(n, 1.9e6, 7e6, 330))
    c.rate[1] = 7e6
    c.close(fid)


@case("slow", "client", "21 s of other network providers (WebDAV, NetBIOS) before the first packet to port 445")
def kind_before_smb(scene):
    """The name is resolved at once; then the client tries WebDAV on two ports, unanswered, and SMB last."""
    client, server = "10.5.66.20", "10.5.66.4"
    scene.raw(0.0, wire.udp(client, "10.5.66.2", (53211, 53), wire.dns(0x91, "files.lab.example")))
    scene.raw(0.0011, wire.udp("10.5.66.2", client, (53, 53211), wire.dns(0x91, "files.lab.example", server)))
    for time in (0.004, 0.764, 1.524):
        scene.raw(time, wire.udp(client, "10.5.66.255", (137, 137), wire.nbns(0x8001, "FILES")))
    ends = wire.address(client), wire.address(server)
    for start, port, target in ((2.4, 50771, 443), (11.6, 50772, 80)):
        seq = scene.random.randrange(1 << 32)
        for time in (0, 3.0, 6.0) if target == 443 else (0, 3.0):
            scene.raw(start + time, wire.tcp(*ends, (port, target), seq, 0, wire.SYN, mss=1460))
    c = Session(scene, client, server, t=21.3)
    browse(c, 20)


@case("slow", "application", "program searches 264 libraries in the home share in vain, 28 ms each")
def kind_library_search(scene):
    """The search path of a program contains the home share; it looks for every library there first."""
    c = Session(scene, "10.14.80.3", "10.200.1.9", rtt=0.028, share="\\\\homes\\h$")
    stems = ["libssl", "qt5core", "icu", "boost", "vcrun", "gdi", "mfc", "atl", "winsp", "netapi", "wtsapi"]
    for stem in stems:
        for number in range(24):
            c.open(f"maria\\tool\\{stem}{number:02d}.{'dll' if number % 6 else 'exe'}", status=smb2.NOT_FOUND)
            c.think(0.0008, 0.0025)


@case("slow", "network", "a channel goes through the VPN tunnel 100.72.3.x and holds up the other", snap=256)
def kind_channel_tunnel(scene):
    """Reads are dealt out evenly over a LAN channel and a tunnel; each round waits for the tunnel."""
    a = Session(scene, "172.20.5.30", "172.20.5.4", rtt=0.0003, frame=58400, down=280e6, up=280e6, window=512)
    fid = a.open("render\\scene.exr", 400 << 20)
    b = bind(a, "100.72.3.30", "100.72.3.4", rtt=0.0024, mss=1240, frame=12400, down=24e6, up=24e6)
    a.t = b.t = max(a.t, b.t) + 0.05
    for number in range(90):
        for turn, c in enumerate((a, b)):
            c.read(fid, (2 * number + turn) << 20, 1 << 20)
        a.t = b.t = max(a.t, b.t)
    a.close(fid)


FOLDERS = (("few", 45), ("some", 900), ("many", 5200))


@case("slow", "server", "Create time grows with the folder's entries, missing names most: case-insensitive search")
def kind_case_search(scene):
    """The server searches the folder for the name in another case: 4 us an entry, twice for a missing name."""
    c = Session(scene, "10.3.3.61", "10.3.3.5", rtt=0.0005)
    for folder, count in FOLDERS:
        c.list(folder, [f"rec{n:05d}.dat" for n in range(count)])
        for number in range(45):
            spread = scene.random.uniform(0.9, 1.1)
            fid = c.open(f"{folder}\\rec{number * count // 45:05d}.dat", 3000,
                         service=0.0003 + 4e-6 * count * spread)
            c.read(fid, 0, 3000)
            c.close(fid, 3000)
            c.open(f"{folder}\\rec{number:05d}.idx", status=smb2.NOT_FOUND, service=0.0004 + 9e-6 * count * spread)
            c.think(0.01, 0.03)


def storm(scene, clients, server, times, listing, spread=0.02, think=0.0, chatter=0):
    """Clients watch a root; at each time it changes, all are notified, and all list it again.

    `listing`: seconds of one listing at the server, which does one after the other.
    """
    names = [f"link{n:03d}" for n in range(70)]
    watching = []
    for number in range(clients):
        c = Session(scene, f"10.41.{2 + number // 20}.{10 + number % 20}", server, user=f"w{number}",
                    share="\\\\lab\\root", t=0.03 * number)
        fid = c.open("", 0, True)
        watching.append([c, fid, c.watch(fid)])
    for time in times:
        asked = []
        for row in watching:
            c = row[0]
            row[2], old = None, row[2]
            c.changed(time + scene.random.uniform(0, 0.0004), old, "link007")
            c.t = time + 0.0009
            row[2] = c.watch(row[1])
            c.t += scene.random.uniform(0.001, spread) + think * scene.random.random()
            asked.append((c.t, row))
        free = 0.0
        for at, (c, _, _) in sorted(asked, key=lambda one: one[0]):
            opened = c.open("", 0, True)
            start = max(free, c.t + c.rtt)
            free = start + listing
            c.call(smb2.DIRECTORY, smb2.directory(opened), smb2.informed(smb2.entries(names)),
                   service=free - c.t - c.rtt)
            c.call(smb2.DIRECTORY, smb2.directory(opened), None, smb2.NO_MORE_FILES)
            c.close(opened)
    return watching


@case("slow", "server", "5 bursts: 34 notify replies, then 34 listings that queue at the server")
def kind_notify_storm(scene):
    """Each change of a watched root makes all clients list it at once; the filtered listing is slow."""
    storm(scene, 34, "10.41.0.3", (6.0, 17.5, 41.0, 49.5, 88.0), 0.066)


@case("broken", "client", "2,560 bytes before a page border are never written, though below the end", snap=256)
def kind_missing_range(scene):
    """Write-back of a file loses a part of a page: the next Write begins behind it."""
    c = Session(scene, "10.71.1.90", "10.71.1.12", rtt=0.0004, frame=58400, up=1.1e9)
    fid = c.open("db\\base.img", 0, disposition=5, access=0x12019F, lease_state=7)
    pieces = blocks(18 * 524288, 524288)
    pieces[11] = (pieces[11][0], 524288 - 2560)
    c.stream(fid, pieces, 6, True)
    c.flush(fid)
    c.set_end(fid, 18 * 524288)
    c.close(fid, 18 * 524288)


@case("broken", "network", "only large segments are lost, again and again; small ones pass: MTU hole", snap=700)
def kind_mtu_hole(scene):
    """Requests fit in small segments and are answered; a Write of 22,000 bytes never gets through."""
    start = 0.0
    for attempt in range(4):
        c = Session(scene, "10.88.12.6", "172.30.0.15", rtt=0.042, t=start)
        browse(c, 6)
        fid = c.open("offer.docx", 0, disposition=5, access=0x12019F)
        count = len(c.segments)
        c.request(c.t, smb2.WRITE, smb2.write(fid, 0, 22000), 22000)
        for segment in c.segments[count:]:
            segment.is_lost = segment.size == 1460
        first, at, wait = c.segments[count], c.t, 0.35
        for _ in range(5):
            at += wait
            c.resend(at, first, True)
            wait *= 2
        c.reset(at + 6.5)
        start = at + 6.7


@case("slow", "client", "SMB1: 3 path queries for each of 85 entries, one after the other", snap=700)
def kind_smb1_browse(scene):
    """After a listing that held everything, each entry is requested again three times over 52 ms."""
    c = Session1(scene, "10.19.4.70", "10.210.5.6", rtt=0.052)
    names = [f"Invoice {n:03d}.xls" for n in range(85)]
    c.path_info("\\bills")
    c.find("\\bills\\*", names)
    for name in names:
        for level in (smb1.BASIC, smb1.STANDARD, smb1.EA):
            c.path_info("\\bills\\" + name, level)
            c.t += 0.0008


@case("slow", "name service", "first DNS server is silent: 8 s before the SYN")
def kind_dns_silent(scene):
    """Queries to the first server stay unanswered; the second is asked only after 8 s."""
    client = "10.52.7.31"
    for time, target in ((0, 10), (1, 10), (3, 10), (8.02, 11)):
        scene.raw(time, wire.udp(client, f"10.52.7.{target}", (49833, 53), wire.dns(0x4C1, "nas.lab.example")))
    scene.raw(8.0217, wire.udp("10.52.7.11", client, (53, 49833), wire.dns(0x4C1, "nas.lab.example", "10.52.7.4")))
    c = Session(scene, client, "10.52.7.4", t=8.03)
    browse(c, 20)


def office_data(scene, stall, metadata=True, count=5):
    """Clients read and write at random; `stall` (from, to): data is not served in it, metadata is unless the case says otherwise."""
    out = []
    for number in range(count):
        c = Session(scene, f"10.64.1.{70 + number}", "10.64.1.6", user=f"clerk{number}", t=0.05 * number)
        fid = c.open(f"data{number}.accdb", 3_000_000)
        folder = c.open(f"in{number}", 0, True)
        while c.t < 32:
            kind, base = scene.random.random(), c.service(0.002)
            late = c.t + c.rtt + base
            wait = base
            if stall and stall[0] < late < stall[1]:
                wait = stall[1] - c.t - c.rtt + scene.random.uniform(0.001, 0.09)
            offset = scene.random.randrange(700) * 4096
            if kind < 0.3 and not (number >= 3 and stall and stall[0] - 1 < c.t < stall[1]):
                c.read(fid, offset, 4096, service=wait)
            elif kind < 0.55 and not (number >= 3 and stall and stall[0] - 1 < c.t < stall[1]):
                c.write(fid, offset, 4096, service=wait)
            elif kind < 0.8:
                c.info(fid, f"data{number}.accdb", service=None if metadata else wait)
            else:
                c.call(smb2.DIRECTORY, smb2.directory(folder), None, smb2.NO_MORE_FILES,
                       service=None if metadata else wait)
            c.think(0.02, 0.22)
        c.close(fid)
        out.append(c)
    return out


@case("broken", "storage", "data operations of all clients stand still 12.3-19.1 s, metadata continues", snap=300)
def kind_storage_stall(scene):
    """Everything that needs the disks waits; folders and attributes are answered in the same seconds."""
    office_data(scene, (12.3, 19.1))


@case("broken", "server", "server grants no credits from a certain reply on; silent after the last one")
def kind_credits_end(scene):
    """Replies grant 0 although 1 or more are requested, until the client may not send anything more."""
    c = Session(scene, "10.12.12.50", "10.12.12.7", rtt=0.0012, window=200)
    browse(c, 40, low=0.01, high=0.05)
    fid = c.open("meter\\log.csv", 0, disposition=5, access=0x12019F)
    c.grants = lambda charge: 0
    number = 0
    while c.balance:
        c.write(fid, 700 * number, 700)
        c.think(0.004, 0.012)
        number += 1
    c.reset(c.t + 47.3)


@case("slow", "client", "one Write of 512 KiB at a time; the quick path is idle between", snap=256)
def kind_write_depth(scene):
    """Segments of a block leave at 1.1 GB/s, but the next block waits for the reply: 14 ms each."""
    c = Session(scene, "10.30.30.8", "10.30.30.2", rtt=0.006, frame=64240, up=1.1e9, down=1.1e9)
    fid = c.open("dump.bak", 0, disposition=5, access=0x12019F)
    c.stream(fid, blocks(260 << 19, 1 << 19), 1, True, service=lambda n: c.service(0.007))
    c.close(fid)


@case("slow", "client", "8 KiB reads in order, one at a time, 1 MiB allowed", snap=256)
def kind_small_reads(scene):
    """A file is read in order in small blocks without reading ahead: each costs a round trip of 1.6 ms."""
    c = Session(scene, "10.25.7.44", "10.25.7.3", rtt=0.0016, frame=58400)
    fid = c.open("export.csv", 3600 * 8192)
    c.stream(fid, blocks(3600 * 8192, 8192), 1, service=lambda n: c.service(0.00012))
    c.close(fid)


@case("broken", "unknown", "client resets 7 connections after the first signed Read reply; keys are needed")
def kind_signature_reset(scene):
    """Everything is signed; each time the first reply with data is followed by a reset at once."""
    start = 0.0
    for attempt in range(7):
        c = Session(scene, "10.66.20.9", "10.66.20.2", rtt=0.0008, signed=True, t=start)
        browse(c, 4, low=0.02, high=0.05)
        fid = c.open("setup.msi", 9_000_000)
        c.read(fid, 0, 32768)
        c.reset(c.t + 0.0002)
        start = c.t + scene.random.uniform(0.9, 1.1)


@case("slow", "client", "attributes of the same 90 files asked again after 1 s, 9 times")
def kind_attribute_cache(scene):
    """The client keeps attributes for 1 s only, so each pass over the tree asks for all of them again."""
    c = Session(scene, "10.58.2.12", "10.99.4.4", rtt=0.012, share="\\\\src\\work")
    names = [f"lib\\m{n % 15:02d}\\unit{n:03d}.py" for n in range(90)]
    for name in names:
        c.get(name, 900, 1)
    for _ in range(9):
        for number, name in enumerate(names):
            if number % 30 == 0:
                c.stat("lib", is_folder=True)
            c.stat(name, 900)
            c.think(0.0002, 0.0006)


@case("healthy", "nobody", "office work of 4 people, every answer within milliseconds", snap=500)
def kind_office(scene):
    """The control: mixed work with pauses of people."""
    for number in range(4):
        c = Session(scene, f"10.45.2.{20 + number}", "10.45.2.3", user=f"emp{number}", t=0.3 * number)
        for turn in range(9):
            c.list(f"dept{turn % 3}", [f"note {n}.docx" for n in range(35)])
            c.think(0.5, 4)
            edit(c, f"dept{turn % 3}\\note {turn}.docx", scene.random.randrange(9000, 60000))
            c.think(1, 6)


@case("healthy", "nobody", "a player reads as fast as it plays", snap=256)
def kind_player(scene):
    """The control: 128 KiB every 160 ms, answered in 2 ms; the pauses are the player's."""
    c = Session(scene, "10.45.9.77", "10.45.9.3", rtt=0.0007, frame=58400)
    fid = c.open("films\\summer.mp4", 900 << 20)
    start = c.t + 0.7
    for number in range(260):
        c.t = start + 0.16 * number
        c.read(fid, number << 17, 1 << 17)
