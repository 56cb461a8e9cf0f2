"""Cases after other public reports and everyday trouble, decided before smbscope saw them: what hangs and what fails.

Hosts, names, counts, times and sizes are made up. An owner or state of several words allows each of them. Slow work is
in reports_slow.py.
"""

import struct

import smb2
import wire
from cases import browse, case, edit
from services import SKEW, TICKET, as_request, ask, attempts, kerberos_error, look_up
from sim import CLIENT, SERVER, Connection, Session, blocks
from smb1 import Session1

FULL, QUOTA, TOO_MANY, CLOSED, REFUSED_MORE = 0xC000007F, 0xC0000044, 0xC000011F, 0xC0000128, 0xC00000D0
LOGON_FAILURE, LOCKED_OUT, PASSWORD_EXPIRED, BAD_SHARE = 0xC000006D, 0xC0000234, 0xC0000071, 0xC00000CC


@case("broken", "client", "a handle kept after its last use is given back 20 s after its break")
def other_late_close(scene):
    """A lease is broken; its client answers only when its deferred Close runs, and a program elsewhere waits."""
    a = Session(scene, "10.180.0.7", "10.180.0.2", rtt=0.0008)
    b = Session(scene, "10.180.0.8", "10.180.0.2", rtt=0.0006, user="jonas", t=0.1)
    for number in range(4):
        name, key = f"export\\report{number}.xml", bytes([number + 3]) * 16
        a.t = max(a.t, b.t) + 2
        fid = a.open(name, 9000, lease_state=7, key=key)
        a.read(fid, 0, 9000)
        b.t = a.t + 0.6
        asked = b.t
        other = b.open(name, 9000, access=0x12019F, pending=0.0005, service=20.4)
        a.unasked(asked + 0.0015, smb2.lease_break(key, 7, 3))
        a.t = asked + 20.39
        a.close(fid, 9000)
        b.write(other, 0, 9000)
        b.close(other, 9000)
    browse(b, 20)


@case("broken", "client or network", "three attempts fail; then none for 15 min though the network is back")
def other_domain_table(scene):
    """The network is away for three minutes; it comes back, names are resolved, and the client still does not try."""
    client, server = "10.181.5.30", "10.181.1.4"
    for turn in range(3):
        attempts(scene, client, server, [60 * turn + wait for wait in (0, 3, 9)])
    for turn in range(14):
        look_up(scene, 190 + 60 * turn, client, "10.181.1.4", f"news{turn}.lab.example", "10.181.9.9")
    c = Session(scene, client, server, t=1090)
    browse(c, 30)


@case("broken", "server", "mounts by the dozen: Tree Connect takes 10 to 60 s, one after the other")
def other_tree_storm(scene):
    """A node connects and disconnects many shares at once; the server answers late, though TCP is quick."""
    c = Session(scene, "10.182.3.30", "10.182.1.4", rtt=0.002, connect=False)
    for number in range(12):
        mid, left = c.request(c.t, smb2.TREE, smb2.tree(f"\\\\store\\pvc-{number:04d}"))
        c.tree = 5 * number + 6
        c.t = c.reply(left + c.rtt + scene.random.uniform(10, 60), mid, smb2.TREE, smb2.treed())
        browse(c, 3, low=0.01, high=0.1)
        c.call(smb2.UNTREE, smb2.plain(), smb2.plain())
        c.tree = 0


def free_space(c, fid, clusters):
    c.call(smb2.INFO, smb2.info(fid, 2, 3, 24), smb2.informed(struct.pack("<QQII", 5_000_000, clusters, 8, 512)))


@case("broken", "server", "Writes fail with DISK_FULL though 12 GB are free", snap=300)
def other_disk_full(scene):
    """The volume has space, the server says it has not: the failure of a layer below."""
    c = Session(scene, "10.183.3.30", "10.183.1.4", rtt=0.009, frame=29200)
    for number in range(5):
        fid = c.open(f"up\\part{number}.bin", 0, disposition=5, access=0x12019F)
        free_space(c, fid, 3_000_000)
        c.stream(fid, blocks(6 << 20, 1 << 20), 4, True)
        c.call(smb2.WRITE, smb2.write(fid, 6 << 20, 65536), None, FULL, up=65536)
        c.close(fid, 6 << 20)
        c.think(1, 3)


@case("broken", "server or client", "the user's quota is used up: writes of his fail")
def other_quota(scene):
    """One user cannot save; others can."""
    c = Session(scene, "10.184.3.30", "10.184.1.4", user="otto")
    b = Session(scene, "10.184.3.31", "10.184.1.4", user="pia", t=0.5)
    for number in range(8):
        fid = c.open(f"otto\\draft{number}.docx", 0, disposition=5, access=0x12019F)
        c.call(smb2.WRITE, smb2.write(fid, 0, 30000), None, QUOTA, up=30000)
        c.close(fid, 0)
        c.think(2, 9)
        edit(b, f"pia\\plan{number}.docx")


@case("broken", "network or server or client", "SMB1: each signed request after the logon is denied")
def other_signature_smb1(scene):
    """Something between changes the messages; the server refuses each, the client begins again."""
    start = 0.0
    for attempt in range(6):
        c = Session1(scene, "10.185.2.9", "10.185.2.2", signed=True, rtt=0.004, t=start)
        for _ in range(3):
            c.path_info("\\plans", status=smb2.DENIED)
            c.t += 0.01
        c.reset(c.t + 0.001)
        start = c.t + scene.random.uniform(2, 3)


@case("broken", "client or server", "clocks differ: the KDC refuses tickets, logons fail, again and again")
def other_clock_skew(scene):
    """KRB_AP_ERR_SKEW from the KDC, then the attempt without Kerberos is refused as well."""
    client = "10.186.2.9"
    start = 0.0
    for attempt in range(7):
        ask(scene, start, client, "10.186.2.1", (51200 + attempt, TICKET), as_request(), kerberos_error(SKEW))
        c = Session(scene, client, "10.186.2.2", t=start + 0.004, logon=False)
        c.call(smb2.NEGOTIATE, smb2.negotiate(), smb2.negotiated())
        c.call(smb2.SETUP, smb2.setup(smb2.ntlm_negotiate()), smb2.set_up(smb2.ntlm_challenge("LAB")),
               smb2.MORE_PROCESSING)
        c.call(smb2.SETUP, smb2.setup(smb2.ntlm_authenticate("LAB", "maria", "PC-MARIA")), None, LOGON_FAILURE)
        c.finish(c.t)
        start = c.t + scene.random.uniform(4, 20)


def silent_request(c, command, body, waits=(0.3, 0.6, 1.2, 2.4, 4.8), answered=False):
    """A request of one segment that stays without any answer, with its repetitions by TCP."""
    count = len(c.segments)
    c.request(c.t, command, body, lost=(0,))
    for wait in waits:
        c.t += wait
        c.resend(c.t, c.segments[count], True)
    return c.segments[count]


@case("broken", "network", "a firewall forgets idle connections: requests after the pause vanish, 10 s each")
def other_firewall_silent(scene):
    """After 30 minutes without traffic nothing passes any more on the old connection; a new one works at once."""
    start = 0.0
    for turn in range(4):
        c = Session(scene, "10.187.2.9", "172.31.7.2", rtt=0.011, t=start)
        browse(c, 8)
        c.think(1800)
        silent_request(c, smb2.CREATE, smb2.create("docs\\next.docx"))
        c.reset(c.t + 0.9)
        start = c.t + 0.92
    browse(Session(scene, "10.187.2.9", "172.31.7.2", rtt=0.011, t=start), 8)


@case("broken", "network or server", "a request after 20 min idle is answered by a reset, each time")
def other_firewall_reset(scene):
    """The connection is refused when it is used again; the open request fails."""
    start = 0.0
    for turn in range(6):
        c = Session(scene, "10.188.2.9", "172.31.8.2", rtt=0.011, t=start)
        browse(c, 8)
        fid = c.open("db\\orders.mdb", 90000, access=0x12019F)
        c.think(1205)
        c.request(c.t, smb2.READ, smb2.read(fid, 4096, 4096))
        c.reset(c.t + c.rtt, SERVER)
        start = c.t + c.rtt + 0.4


@case("broken", "server", "the server is full: more logons are refused with REQUEST_NOT_ACCEPTED")
def other_server_full(scene):
    """As many users as its licence or edition allows are there; the next ones are turned away."""
    inside = [Session(scene, f"10.189.2.{9 + n}", "10.189.2.2", user=f"u{n}", t=0.1 * n) for n in range(5)]
    for turn in range(8):
        c = Session(scene, f"10.189.2.{40 + turn % 3}", "10.189.2.2", user="late", t=3 + 5.0 * turn, connect=False)
        c.call(smb2.TREE, smb2.tree("\\\\files\\team"), None, REFUSED_MORE)
        c.logoff()
    for one in inside:
        browse(one, 30, low=0.3, high=1.5)


@case("broken", "server or application or client", "opens that are never closed reach the limit: TOO_MANY_OPENED_FILES")
def other_too_many_files(scene):
    """A program leaks handles of data files until the server refuses more."""
    c = Session(scene, "10.190.2.9", "10.190.2.2", share="\\\\files\\render")
    for number in range(900):
        is_full = number >= 720
        fid = c.open(f"cache\\tile{number:04d}.dat", 4000, status=TOO_MANY if is_full else 0)
        if fid:
            c.read(fid, 0, 4000)
        c.think(0.002, 0.02)


@case("broken", "application or client", "a program retries the open of a file in use elsewhere every 0.4 s")
def other_sharing_loop(scene):
    """A workbook is open in a spreadsheet program; an export elsewhere needs it alone and tries again and again."""
    a = Session(scene, "10.191.0.7", "10.191.0.2", rtt=0.0008)
    b = Session(scene, "10.191.0.8", "10.191.0.2", rtt=0.0006, user="export", t=0.1)
    fid = a.open("sales\\2026.xlsx", 80000, access=0x12019F)
    a.read(fid, 0, 65536)
    b.t = a.t + 5
    for _ in range(160):
        b.open("sales\\2026.xlsx", status=smb2.SHARING, access=0x12019F)
        b.think(0.4)
    a.t = b.t
    a.close(fid, 80000)


@case("broken", "client or network", "the holder of an oplock is switched off: others wait 35 s for its break")
def other_holder_off(scene):
    """Recorded at the server: the break is repeated by TCP, and nothing comes back from that client any more."""
    scene.place = 1.0
    a = Session(scene, "10.192.0.7", "10.192.0.2", rtt=0.0008, dialect=0x210)
    b = Session(scene, "10.192.0.8", "10.192.0.2", rtt=0.0006, user="jonas", t=0.1, dialect=0x210)
    held = a.open("plans\\site.dwg", 900000, oplock=smb2.BATCH, access=0x12019F)
    a.read(held, 0, 65536)
    b.t = a.t + 60
    asked = b.t
    fid = b.open("plans\\site.dwg", 900000, pending=0.0005, service=35.2)
    count = len(a.segments)
    a.send(asked + 0.0008, SERVER, smb2.header(smb2.BREAK, (1 << 64) - 1, flags=smb2.REPLY, credits=0, charge=0)
           + smb2.oplock_break(held, smb2.LEVEL_II), lost=(0,))
    at = asked
    for wait in (0.3, 0.6, 1.2, 2.4, 4.8, 9.6):
        at += wait
        a.resend(at, a.segments[count], True)
    b.read(fid, 0, 65536)
    b.close(fid)
    browse(b, 10)


@case("broken", "client or server", "a service retries with an old password until the account is locked")
def other_locked_account(scene):
    """LOGON_FAILURE five times, then ACCOUNT_LOCKED_OUT, every 3 s."""
    for attempt in range(26):
        c = Session(scene, "10.193.0.7", "10.193.0.2", user="svc-backup", t=3.1 * attempt, logon=False)
        c.logon(LOGON_FAILURE if attempt < 5 else LOCKED_OUT)
        c.finish(c.t)


@case("broken", "client or server", "the user's password has expired: each logon is refused")
def other_password_expired(scene):
    """Another user of the same machine works."""
    b = Session(scene, "10.194.0.7", "10.194.0.2", user="ina")
    for attempt in range(9):
        c = Session(scene, "10.194.0.7", "10.194.0.2", user="tom", t=6.0 * attempt, logon=False)
        c.logon(PASSWORD_EXPIRED)
        c.finish(c.t)
        browse(b, 6)


@case("broken", "network or server", "connection reset while files are open; none can be opened again: handles are lost")
def other_durable_lost(scene):
    """After each reset the client opens its files again by their durable handles, in vain, and starts over."""
    start = 0.0
    for turn in range(3):
        c = Session(scene, "10.195.0.7", "10.195.0.2", rtt=0.003, t=start)
        if turn:
            for number in range(12):
                c.open(f"case\\doc{number}.docx", status=smb2.NOT_FOUND)
        fids = [c.open(f"case\\doc{number}.docx", 50000, lease_state=7, access=0x12019F) for number in range(12)]
        for fid in fids:
            c.read(fid, 0, 50000)
            c.think(0.2, 1)
        c.request(c.t, smb2.WRITE, smb2.write(fids[3], 0, 40000), 40000)
        c.reset(c.t + 0.004, SERVER)
        start = c.t + 1.5


@case("broken", "server or network", "the server resets each connection at Negotiate: no common dialect")
def other_no_dialect(scene):
    """The client no longer offers SMB1, the old server knows nothing else."""
    start = 0.0
    for attempt in range(8):
        c = Session(scene, "10.196.0.7", "10.196.0.2", rtt=0.003, t=start, logon=False)
        c.request(c.t, smb2.NEGOTIATE, smb2.negotiate())
        c.reset(c.t + c.rtt + 0.0004, SERVER)
        start = c.t + (1.0 if attempt % 2 else 12)


@case("broken", "server or client", "the share was removed: Tree Connect of its clients fails every few seconds")
def other_share_gone(scene):
    """Mapped drives of three clients point to a share that is not there; other shares work."""
    for number in range(3):
        c = Session(scene, f"10.197.0.{7 + number}", "10.197.0.2", user=f"u{number}", t=0.2 * number)
        for _ in range(15):
            c.call(smb2.TREE, smb2.tree("\\\\files\\projects-old"), None, BAD_SHARE)
            c.think(3, 4)
            browse(c, 1)


@case("broken", "server or client", "a user may no longer write: every save is denied")
def other_denied_saves(scene):
    """Reading works; opens for writing fail with ACCESS_DENIED."""
    c = Session(scene, "10.198.0.7", "10.198.0.2")
    for number in range(10):
        c.get(f"forms\\f{number}.docx", 30000)
        c.think(4, 9)
        for _ in range(4):
            c.open(f"forms\\f{number}.docx", status=smb2.DENIED, access=0x12019F, disposition=5)
            c.think(0.3, 2)


@case("broken", "server", "the last request has no reply for 50 s, though TCP acknowledged it")
def other_hang_at_end(scene):
    """The recording ends while the client waits; another client is still served."""
    c = Session(scene, "10.199.0.7", "10.199.0.2")
    browse(c, 20)
    c.request(c.t, smb2.CREATE, smb2.create("scan\\big.tif"))
    b = Session(scene, "10.199.0.8", "10.199.0.2", user="ina", t=c.t + 1)
    while b.t < c.t + 50:
        browse(b, 1)


@case("broken", "server", "the server restarts: connections reset, then refused for 40 s")
def other_restart(scene):
    """All clients lose their connections in the same second; attempts are refused until the service is back."""
    for number in range(4):
        client = f"10.200.0.{7 + number}"
        c = Session(scene, client, "10.200.0.2", user=f"u{number}", t=0.1 * number)
        while c.t < 24.9:
            browse(c, 1, low=0.02, high=0.08)
        down = 25.0 + 0.01 * number
        c.reset(down, SERVER)
        for turn in range(13):
            attempts(scene, client, "10.200.0.2", [down + 0.1 + 3 * turn], reset=True)
        browse(Session(scene, client, "10.200.0.2", user=f"u{number}", t=down + 40), 20)


@case("slow or broken", "network or server", "first target of the referral is dead: 21 s until the second is tried")
def other_dead_target(scene):
    """A DFS link has two targets; the first does not answer the SYN."""
    client = "10.201.0.7"
    c = Session(scene, client, "10.201.0.2", share="\\\\lab\\IPC$")
    path = "\\lab\\root\\team"
    ask_body = smb2.referral_request(path)
    c.call(smb2.IOCTL, smb2.ioctl(smb2.DFS_REFERRAL, smb2.NO_FILE, ask_body), smb2.ioctled(
        smb2.DFS_REFERRAL, smb2.NO_FILE, smb2.referral(path, ["\\nas1\\team", "\\nas2\\team"])))
    look_up(scene, c.t + 0.001, client, "10.201.0.1", "nas1.lab.example", "10.201.0.21")
    attempts(scene, client, "10.201.0.21", [c.t + 0.003, c.t + 3.003, c.t + 9.003])
    look_up(scene, c.t + 21.0, client, "10.201.0.1", "nas2.lab.example", "10.201.0.22")
    browse(Session(scene, client, "10.201.0.22", share="\\\\nas2\\team", t=c.t + 21.003), 25)


@case("unknown", "nobody", "only frames of the server were recorded")
def other_one_direction(scene):
    """A mirror port with one direction: nothing can be said about waiting."""
    scene.only = SERVER
    for number in range(3):
        c = Session(scene, f"10.202.0.{7 + number}", "10.202.0.2", user=f"u{number}", t=0.1 * number)
        for turn in range(10):
            edit(c, f"docs\\note{turn}.docx")
            c.think(1, 4)


@case("broken", "server", "port 445 answers, but Negotiate never: 60 s, again and again")
def other_negotiate_silent(scene):
    """TCP of the server works while its SMB service hangs."""
    start = 0.0
    for attempt in range(3):
        c = Connection(scene, "10.203.0.7", "10.203.0.2", t=start)
        head = smb2.header(smb2.NEGOTIATE, 0)
        c.send(c.t, CLIENT, head + smb2.negotiate())
        c.control(c.t + 60, CLIENT, wire.RST | wire.ACK)
        c.ended = c.t + 60
        start = c.t + 61
