"""Cases after other public reports and everyday trouble, decided before smbscope saw them: what is slow, or only looks so.

Hosts, names, counts, times and sizes are made up. An owner or state of several words allows each of them. What hangs
and what fails is in reports.py.
"""

import struct

import smb1
import smb2
import wire
from cases import browse, case, edit
from services import DIRECTORY, LLMNR, TICKET, as_request, ask, attempts, llmnr, look_up, netlogon_search
from sim import CLIENT, SERVER, Segment, Session, blocks
from smb1 import Session1

NOT_GRANTED = 0xC0000055


@case("slow", "server", "40 clients log on within seconds of each other; each logon takes 3 to 8 s")
def other_logon_storm(scene):
    """In the morning all drives are mapped at once; the server (or the controller behind it) is slow to authenticate."""
    for number in range(40):
        c = Session(scene, f"10.140.{number // 20}.{10 + number % 20}", "10.140.9.2", user=f"w{number}",
                    t=scene.random.uniform(0, 4), logon=False)
        c.call(smb2.NEGOTIATE, smb2.negotiate(), smb2.negotiated())
        c.session = c.numbers << 8 | 0x400000000001
        c.call(smb2.SETUP, smb2.setup(smb2.ntlm_negotiate()), smb2.set_up(smb2.ntlm_challenge("LAB")),
               smb2.MORE_PROCESSING)
        c.call(smb2.SETUP, smb2.setup(smb2.ntlm_authenticate("LAB", c.user, "PC")), smb2.set_up(),
               service=scene.random.uniform(3, 8))
        c.connect("\\\\files\\team")
        browse(c, 8)


@case("slow", "server or name service", "the file server's controller is away: the logon takes 9 s, then all is quick")
def other_logon_controller(scene):
    """The server waits for its domain controller at each Session Setup."""
    for number in range(3):
        c = Session(scene, f"10.141.0.{7 + number}", "10.141.9.2", user=f"w{number}", t=20.0 * number, logon=False)
        c.call(smb2.NEGOTIATE, smb2.negotiate(), smb2.negotiated())
        c.session = c.numbers << 8 | 0x400000000001
        c.call(smb2.SETUP, smb2.setup(smb2.ntlm_negotiate()), smb2.set_up(smb2.ntlm_challenge("LAB")),
               smb2.MORE_PROCESSING)
        c.call(smb2.SETUP, smb2.setup(smb2.ntlm_authenticate("LAB", c.user, "PC")), smb2.set_up(), service=9.1)
        c.connect("\\\\files\\team")
        browse(c, 25)


@case("slow", "name service or network or server", "KDC and directory do not answer: 24 s before SMB, then NTLM")
def other_kdc_silent(scene):
    """Tickets are requested by UDP and TCP, another controller is looked up in the directory; nothing answers."""
    client, kdc = "10.142.0.7", "10.142.0.1"
    look_up(scene, 0, client, "10.142.0.3", "files.lab.example", "10.142.0.2")
    for number, time in enumerate((0.01, 1.01, 3.01)):
        ask(scene, time, client, kdc, (51300, TICKET), as_request())
    attempts(scene, client, kdc, (5.0, 8.0, 14.0), TICKET)
    for time in (21.0, 22.0):
        ask(scene, time, client, kdc, (51301, DIRECTORY), netlogon_search())
    browse(Session(scene, client, "10.142.0.2", t=24.0), 20)


@case("slow", "name service", "name by NetBIOS: WINS silent 3 x 1.5 s, broadcast 3 x 0.75 s, then DNS")
def other_wins_silent(scene):
    """Six accesses to different servers each wait for the silent WINS server first."""
    client, start = "10.143.0.7", 0.0
    for turn in range(6):
        name = f"DEPT{turn}"
        for time in (0, 1.5, 3.0):
            scene.raw(start + time, wire.udp(client, "10.143.0.4", (137, 137), wire.nbns(0x8100 + turn, name)))
        for time in (4.5, 5.25, 6.0):
            scene.raw(start + time, wire.udp(client, "10.143.0.255", (137, 137), wire.nbns(0x8200 + turn, name)))
        look_up(scene, start + 6.75, client, "10.143.0.3", f"dept{turn}.lab.example", f"10.143.0.{20 + turn}")
        c = Session(scene, client, f"10.143.0.{20 + turn}", t=start + 6.753)
        browse(c, 12)
        start = c.t + 5


@case("slow", "name service", "DNS answers SERVFAIL after 5 s; LLMNR fails too; NetBIOS finds the name")
def other_llmnr(scene):
    """Each of 4 accesses takes 5.9 s until the name is known."""
    client, start = "10.144.0.7", 0.0
    for turn in range(4):
        look_up(scene, start, client, "10.144.0.3", "nas.lab.example", None, 5.0, 2, 53200 + turn)
        for time in (5.01, 5.42):
            ask(scene, start + time, client, "224.0.0.252", (53300 + turn, LLMNR), llmnr(turn + 1, "nas"))
        scene.raw(start + 5.9, wire.udp(client, "10.144.0.255", (137, 137), wire.nbns(0x8300 + turn, "NAS")))
        c = Session(scene, client, "10.144.0.20", t=start + 5.92, share="\\\\nas\\team")
        browse(c, 12)
        c.logoff()
        c.finish(c.t)
        start = c.t + 400


@case("slow or broken", "network", "port 445 is filtered: 21 s until the client tries port 139")
def other_filtered_445(scene):
    """The SYN to 445 is dropped, three times; NetBIOS over TCP works at once."""
    attempts(scene, "10.145.0.7", "10.145.9.2", (0, 3, 9))
    c = Session(scene, "10.145.0.7", "10.145.9.2", t=21.0, target=139, logon=False)
    name = b"\x20" + b"CA" * 16 + b"\0"
    for side, body, kind in ((CLIENT, name + name, 0x81), (SERVER, b"", 0x82)):
        head = bytes([kind, 0]) + struct.pack(">H", len(body)) + body
        start = c.send(c.t, side, head[4:])
        c.segments[-1].head = head
        c.t = start + c.rtt
    c.logon()
    c.connect("\\\\files\\team")
    browse(c, 25)


@case("slow", "network or name service or server", "the server's IPv6 address does not answer: 21 s until IPv4 is tried")
def other_ipv6_first(scene):
    """DNS has an address that is not reachable; each new connection tries it first."""
    attempts(scene, "2001:db8:7::20", "2001:db8:9::2", (0, 3, 9))
    c = Session(scene, "10.146.0.7", "10.146.9.2", t=21.0)
    browse(c, 25)


@case("slow", "server", "time of an open grows with the file's size: scanner reads it first")
def other_scan_size(scene):
    """1 KB opens in 2 ms, 40 MB in 1.6 s, whether read or not."""
    c = Session(scene, "10.147.0.7", "10.147.9.2")
    for number in range(60):
        size = 1000 * 4 ** (number % 8 + 1)
        fid = c.open(f"media\\clip{number}.mov", size, service=(0.002 + size / 25e6) * scene.random.uniform(0.75, 1.3))
        c.read(fid, 0, 1000)
        c.close(fid, size)
        c.think(1, 4)


@case("slow", "storage", "the disk sleeps: the first access after a pause takes 8 s")
def other_spun_down(scene):
    """Each time the share was idle for half an hour the first listing takes 8 s; what follows is quick."""
    c = Session(scene, "10.148.0.7", "10.148.9.2")
    for turn in range(4):
        c.list("photos", [f"img{n:04d}.jpg" for n in range(60)], open_service=0.001,
               service=None if not turn else 8.2)
        for number in range(6):
            c.get(f"photos\\img{number:04d}.jpg", 90000)
            c.think(0.5, 3)
        c.think(1900)


@case("slow", "storage", "first read of files on the slow tier takes 4 to 9 s, others milliseconds")
def other_recall(scene):
    """Files are recalled from the archive when they are read; opens and attributes are quick."""
    c = Session(scene, "10.149.0.7", "10.149.9.2")
    for number in range(24):
        fid = c.open(f"archive\\scan{number}.pdf", 400000)
        c.info(fid, f"scan{number}.pdf", 400000)
        c.read(fid, 0, 65536, service=scene.random.uniform(4, 9) if number % 4 == 2 else None)
        for at, size in blocks(334464, 65536, 65536):
            c.read(fid, at, size)
        c.close(fid, 400000)
        c.think(2, 9)


@case("slow", "network", "Wi-Fi: round trips of 4 to 400 ms, losses repaired after 0.3 to 1 s")
def other_wifi(scene):
    """Requests and replies are late in both directions, and TCP repeats many of them."""
    c = Session(scene, "10.151.0.7", "10.151.9.2", rtt=0.004)
    for number in range(220):
        c.rtt = scene.random.choice((0.004, 0.006, 0.05, 0.15, 0.4))
        if number % 9 == 4:
            count = len(c.segments)
            mid, left = c.request(c.t, smb2.INFO, smb2.info(b"\x07" * 16), lost=(0,))
            left += scene.random.uniform(0.3, 1.0)
            c.resend(left, c.segments[count])
            c.t = c.reply(left + c.rtt + 0.0003, mid, smb2.INFO, smb2.informed(smb2.all_info("page.txt")))
        else:
            c.stat(f"docs\\page{number:03d}.txt")
        c.think(0.01, 0.1)


@case("slow", "network", "LAN with 3 % loss in bulk writes, each repaired after 0.25 s: duplex mismatch", snap=300)
def other_duplex(scene):
    """Small exchanges pass; a long stream loses segments and waits for TCP's timer each time."""
    c = Session(scene, "10.152.0.7", "10.152.9.2", rtt=0.0005, up=11e6, down=11e6)
    fid = c.open("image.vhd", 0, disposition=5, access=0x12019F)
    for number in range(120):
        count = len(c.segments)
        lost = sorted({scene.random.randrange(45) for _ in range(2)}) if number % 2 else ()
        mid, left = c.request(c.t, smb2.WRITE, smb2.write(fid, number << 16, 65536), 65536, lost=lost)
        for one in lost:
            left += 0.25
            c.resend(left, c.segments[count + one])
        c.t = c.reply(left + c.rtt + c.service(), mid, smb2.WRITE, smb2.written(65536)) + 0.00002
    c.close(fid)


@case("slow", "server", "recorded mid-stream: opens take 0.8 s, though TCP acknowledges them in 1 ms")
def other_midstream(scene):
    """Without handshake; acknowledgements of the server show the distance, replies the service."""
    scene.begin = 8.0
    c = Session(scene, "10.153.0.7", "10.153.9.2", rtt=0.001, server_delay=0.0001)
    for number in range(80):
        fid = c.open(f"cad\\part{number}.dwg", 40000, service=scene.random.uniform(0.5, 1.1))
        c.read(fid, 0, 40000)
        c.close(fid)
        c.think(0.1, 0.8)


@case("slow or unknown", "server", "encrypted: each reply comes 2.5 s after its request, which TCP acknowledges at once")
def other_encrypted_slow(scene):
    """The requests cannot be read; the time that the server takes can."""
    c = Session(scene, "10.154.0.7", "10.154.9.2", connect=False)
    for _ in range(40):
        c.sealed(scene.random.randrange(150, 300), scene.random.randrange(77, 900),
                 service=scene.random.uniform(2.0, 3.0))
        c.think(0.01, 0.1)


@case("healthy", "nobody", "SMB1 raw mode: replies to READ_RAW are data without a header", snap=300)
def other_raw_mode(scene):
    """An old client reads 60 KB at a time; nothing is missing, nothing is late."""
    c = Session1(scene, "10.155.0.7", "10.155.9.2", rtt=0.0005)
    fid = c.open("\\old\\dump.dat")
    for number in range(60):
        words = struct.pack("<HIHHIH", fid, number * 60000, 60000, 60000, 0, 0) + bytes(4)
        _, left = c.request(c.t, 0x1A, smb1.body(words))
        c.t = c.send(left + c.rtt + 0.0004, SERVER, bytes(32), 60000 - 32) + 0.0004
    c.close(fid)


@case("slow", "client or application", "file browser asks for ._name and .DS_Store of 260 entries, 35 ms each, in vain")
def other_apple_double(scene):
    """Each entry of a folder costs two failed opens over the distance before the window is complete."""
    c = Session(scene, "10.156.0.7", "10.156.9.2", rtt=0.035)
    names = [f"Shot {n:03d}.tiff" for n in range(260)]
    c.list("shoot", names)
    for name in names:
        c.open(f"shoot\\._{name}", status=smb2.NOT_FOUND)
        c.open("shoot\\.DS_Store", status=smb2.NOT_FOUND)
        c.think(0.0003, 0.001)


@case("slow", "server", "listings of a folder of 9000 entries take 3 s a reply: entries are filtered by rights")
def other_abe_listing(scene):
    """Small folders are quick; each part of the large one takes seconds."""
    c = Session(scene, "10.157.0.7", "10.157.9.2")
    for turn in range(2):
        c.list("small", [f"n{n}" for n in range(20)])
        c.think(1, 3)
        c.list("people", [f"person{n:05d}" for n in range(3000)], service=3.1)
        c.think(2, 6)


@case("slow", "storage", "a limit of 300 reads a second: 24 outstanding take 80 ms each", snap=300)
def other_iops_limit(scene):
    """Random reads of 4 KiB; response time is the queue by the rate, which is level."""
    c = Session(scene, "10.158.0.7", "10.158.9.2", window=256)
    fid = c.open("vm\\data.vhdx", 1 << 34, access=0x12019F)
    ready = [c.t]

    def service(_):
        ready[0] = max(ready[0] + 0.00333, c.asked + c.rtt + 0.0002)
        return ready[0] - c.asked - c.rtt
    c.stream(fid, [(scene.random.randrange(1 << 20) << 12, 4096) for _ in range(2500)], 24, service=service)
    c.close(fid)


@case("slow", "client or network", "280 small files copied one by one over 60 ms: six round trips each", snap=400)
def other_copy_wan(scene):
    """The copy takes two minutes; the link and the server are idle most of the time."""
    c = Session(scene, "10.159.0.7", "10.159.9.2", rtt=0.06)
    for number in range(280):
        name = f"site\\asset{number:03d}.json"
        c.open(name, status=smb2.NOT_FOUND)
        fid = c.open(name, 0, disposition=2, access=0x12019F)
        c.info(fid, name, 0)
        c.write(fid, 0, 6000)
        c.set_end(fid, 6000)
        c.close(fid, 6000)


@case("slow", "client or network or server", "no window scaling: 64 KiB each 80 ms, 0.8 MB/s", snap=256)
def other_window_64k(scene):
    """Neither side scales its window, so the path of 80 ms is mostly empty."""
    c = Session(scene, "10.160.0.7", "10.160.9.2", rtt=0.08, window=256)
    c.scale, c.flight = None, 64240
    fid = c.open("setup\\suite.iso", 60 << 20)
    c.stream(fid, blocks(24 << 20, 1 << 20), 4)
    c.close(fid)


@case("slow", "server", "the server's TCP window is 0 for seconds while a client writes", snap=256)
def other_server_window(scene):
    """The server does not take the data from its socket; the client's segments wait."""
    c = Session(scene, "10.161.0.7", "10.161.9.2", window=256, frame=29200)
    fid = c.open("bak\\full.vbk", 0, disposition=5, access=0x12019F)
    for number in range(24):
        if number % 4 < 3:
            c.write(fid, number << 20, 1 << 20, service=0.002)
            continue
        mid, left = c.request(c.t, smb2.WRITE, smb2.write(fid, number << 20, 32768), 0)
        c.segments[-1].head += b"\0"
        c.segments[-1].head = b"\0" + (112 + 32768).to_bytes(3, "big") + c.segments[-1].head[4:]
        first, opened = left + c.rtt, left + scene.random.uniform(2, 4)
        c.windows[SERVER] += [(first, 0), (opened, 16776960)]
        for probe in (0.5, 1.0, 1.9):
            c.control(left + probe, CLIENT, wire.ACK)
        c.control(opened, SERVER, wire.ACK)
        c.segments.append(Segment(opened + c.rtt, CLIENT, c.length[CLIENT], 32768, b"\0", wire.ACK | wire.PSH))
        c.length[CLIENT] += 32768
        c.t = c.reply(opened + 3 * c.rtt, mid, smb2.WRITE, smb2.written(32768))
    c.close(fid)


@case("slow", "client", "the client's TCP window is 0 for a second at a time while it reads", snap=256)
def other_client_window(scene):
    """A program (or its disk) does not take the data; the server has to wait with the rest of each reply."""
    c = Session(scene, "10.162.0.7", "10.162.9.2", window=256, frame=29200)
    fid = c.open("bak\full.vbk", 1 << 30)
    for number in range(40):
        if number % 3:
            c.read(fid, number << 20, 1 << 20)
            continue
        mid, left = c.request(c.t, smb2.READ, smb2.read(fid, number << 20, 1 << 20), charge=16)
        full = left + c.rtt + 0.001
        half = 29200 - 84
        count = c.length[SERVER]
        c.granted(16)
        head = c.head(smb2.READ, mid, smb2.REPLY, credits=16, charge=16) + smb2.read_reply(1 << 20)
        c.segments.append(Segment(full, SERVER, count, half + 84, b"\0" + (80 + (1 << 20)).to_bytes(3, "big") + head,
                                  wire.ACK | wire.PSH))
        c.length[SERVER] += half + 84
        again = full + scene.random.uniform(0.8, 1.6)
        c.windows[CLIENT] += [(full, 0), (again, 16776960)]
        c.control(again, CLIENT, wire.ACK)
        c.free[SERVER] = again + c.rtt
        left = (1 << 20) + 84 - half - 84
        while left:
            size = min(29200, left)
            c.segments.append(Segment(c.free[SERVER], SERVER, c.length[SERVER], size, b"\0", wire.ACK | wire.PSH))
            c.length[SERVER] += size
            left -= size
            c.free[SERVER] += size / 110e6
        c.t = c.free[SERVER] + 0.00002
    c.close(fid)


def pipe_call(c, fid, number, service=None):
    c.call(smb2.IOCTL, smb2.ioctl(smb2.PIPE_TRANSCEIVE, fid, smb2.rpc_call(number, 15, bytes(72))),
           smb2.ioctled(smb2.PIPE_TRANSCEIVE, fid, smb2.rpc_result(number, bytes(260))), service=service)


@case("healthy", "nobody", "programs enumerate shares by RPC all the time, 1 ms each")
def other_pipe_scan(scene):
    """An inventory program opens the pipe again and again; no person waits."""
    c = Session(scene, "10.163.0.7", "10.163.9.2", share="\\files\IPC$")
    for turn in range(120):
        fid = c.open("srvsvc", 0)
        ask_body, answer = smb2.rpc_bind(), smb2.rpc_bound()
        c.call(smb2.WRITE, smb2.write(fid, 0, len(ask_body)) + ask_body, smb2.written(len(ask_body)))
        c.call(smb2.READ, smb2.read(fid, 0, 1024), smb2.read_reply(len(answer)) + answer)
        pipe_call(c, fid, 2)
        c.close(fid, 0)
        c.think(0.2, 0.5)


@case("slow", "server", "print queue: each call of the spooler takes 5 to 7 s")
def other_spooler_slow(scene):
    """The print server asks a printer that is off before it answers; the person's dialog waits."""
    c = Session(scene, "10.164.0.7", "10.164.9.2", share="\\print\IPC$")
    for turn in range(4):
        fid = c.open("spoolss", 0)
        for number in range(3):
            pipe_call(c, fid, 2 + number, scene.random.uniform(5, 7))
        c.close(fid, 0)
        c.think(5, 20)


@case("slow", "client or application", "two editors break each other's lease for every access: 0.6 s each")
def other_lease_pingpong(scene):
    """Each open by one breaks the other's lease, which flushes and answers after 0.4 to 0.8 s."""
    both = [Session(scene, f"10.165.0.{7 + n}", "10.165.9.2", user=("ina", "tom")[n], t=0.1 * n) for n in range(2)]
    key = [bytes([9 + n]) * 16 for n in range(2)]
    held = both[0].open("plan\board.vsdx", 60000, lease_state=7, key=key[0], access=0x12019F)
    for turn in range(30):
        holder, other = both[turn % 2], both[1 - turn % 2]
        other.t = max(holder.t, other.t) + scene.random.uniform(0.1, 0.5)
        asked, wait = other.t, scene.random.uniform(0.4, 0.8)
        fid = other.open("plan\board.vsdx", 60000, lease_state=7, key=key[1 - turn % 2], access=0x12019F,
                         pending=0.0004, service=wait + 0.002)
        holder.unasked(asked + 0.0012, smb2.lease_break(key[turn % 2], 7, 3))
        holder.t = asked + wait - 0.1
        holder.write(held, 0, 30000)
        holder.t = asked + wait - 0.002
        holder.call(smb2.BREAK, smb2.lease_answer(key[turn % 2], 3), smb2.lease_answer(key[turn % 2], 3))
        holder.t = max(holder.t, other.t)
        holder.close(held)
        other.t = holder.t
        held = fid


@case("slow", "application or client", "a database locks ranges that others hold: refused and tried again for seconds")
def other_database_locks(scene):
    """Three clients want the same record; locks are refused, each tries again every 50 ms."""
    a = Session(scene, "10.166.0.6", "10.166.9.2", user="batch")
    others = [Session(scene, f"10.166.0.{7 + n}", "10.166.9.2", user=f"u{n}", t=0.1 * n) for n in range(3)]
    fids = [c.open("db\orders.mdb", 9 << 20, access=0x12019F) for c in others]
    own = a.open("db\orders.mdb", 9 << 20, access=0x12019F)
    for turn in range(6):
        a.t = max(a.t, *(c.t for c in others)) + 1
        a.call(smb2.LOCK, smb2.lock(own, 0x10000000, 1), smb2.plain())
        until = a.t + scene.random.uniform(2, 5)
        for c, fid in zip(others, fids):
            c.t = a.t + scene.random.uniform(0.01, 0.1)
            while c.t < until:
                c.call(smb2.LOCK, smb2.lock(fid, 0x10000000, 1), None, NOT_GRANTED)
                c.think(0.05)
        a.t = until
        a.write(own, 40960, 4096)
        a.call(smb2.LOCK, smb2.lock(own, 0x10000000, 1, 4), smb2.plain())
        for c, fid in zip(others, fids):
            c.t = max(c.t, a.t)
            c.call(smb2.LOCK, smb2.lock(fid, 0x10000000, 1), smb2.plain())
            c.read(fid, 40960, 4096)
            c.call(smb2.LOCK, smb2.lock(fid, 0x10000000, 1, 4), smb2.plain())


@case("slow", "network", "private access at 90 KB/s: a file of 12 MB takes two minutes", snap=256)
def other_private_access(scene):
    """The tunnel carries little; its distance is 45 ms, the server answers at once."""
    c = Session(scene, "10.167.0.7", "10.167.9.2", rtt=0.045, down=90e3, up=90e3, mss=1240, window=256)
    c.get("docs\manual.pdf", 12 << 20, 8, 65536)
    for number in range(4):
        c.get(f"docs\note{number}.docx", 60000)
        c.think(1, 3)


@case("slow", "storage or application", "each Write of 4 KiB is followed by a Flush of 70 ms")
def other_flush_each(scene):
    """A program wants every record on disk; the storage needs 70 ms for it."""
    c = Session(scene, "10.168.0.7", "10.168.9.2")
    fid = c.open("ledger\book.dat", 0, disposition=5, access=0x12019F)
    for number in range(400):
        c.write(fid, number << 12, 4096)
        c.flush(fid, scene.random.uniform(0.05, 0.09))
    c.close(fid)
