"""Cases of lab.py in which something does not answer, or answers nothing useful: names, tickets, paths, storage, programs.

Owns: what is done in each. Not: how a case is judged (lab.py), the bench (bench.py). RFC 1035 4, RFC 4120 5.9 and 7.2.
"""

import os
import signal
import socket
import struct
import subprocess
import threading
import time

import bench as benches
import client as smb
from client import raw
from suite import FAR, HEADERS, case, in_order, together

NAME = "files.lab.test"
ALL_PACKETS = "udp or icmp or icmp6 or tcp"


class Answerer:
    """A service on UDP in the server's namespace; `answer` makes a reply of a request, or None."""

    def __init__(self, lab, address, port, answer):
        self.answer = answer
        with smb.inside(lab.namespace.replace("client", "server")):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, port))
        threading.Thread(target=self.serve, daemon=True).start()
        lab.open.callback(self.socket.close)

    def serve(self):
        while True:
            try:
                request, sender = self.socket.recvfrom(4096)
                reply = self.answer(request)
                if reply:
                    self.socket.sendto(reply, sender)
            except OSError:
                return


def resolved(request, address="10.45.0.2"):
    """The reply of a name server: one address for questions of type A, none for others."""
    is_a = request[-4:-2] == b"\0\1"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address) if is_a else b""
    return request[:2] + b"\x85\x80\0\1" + struct.pack(">H", is_a) + bytes(4) + request[12:] + answer


def on_server(lab, *words):
    return benches.run(*lab.enters("server"), *words)


def on_client(lab, files, *words, env=None):
    """Runs a command in the client's namespace with files of its own in /etc."""
    binds = []
    for name, text in files.items():
        path = lab.bench.path(name)
        with open(path, "w") as file:
            file.write(text)
        binds.append(f"mount --bind {path} /etc/{name}")
    script = " && ".join([*binds, 'exec "$@"'])
    return subprocess.run([*lab.enters("client"), "unshare", "--mount", "sh", "-c", script, "sh", *words],
                          capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=120)


def smbclient(lab, files, script, *more, env=None):
    words = ["smbclient", f"//{NAME}/home", "-s", lab.conf, "-R", "host", *more, "-c", script]
    return on_client(lab, files, *words, env=env)


@case("late-lookup", state="slow", fixture=False)
def late_lookup(bench, shows):
    """The first name server does not answer, and the second is asked after five seconds; or it answers."""
    with bench.lab(FAR) as lab:
        on_server(lab, "ip", "address", "add", "10.45.0.3/24", "dev", "eth0")
        Answerer(lab, "10.45.0.2", 53, (lambda _: None) if shows else resolved)
        Answerer(lab, "10.45.0.3", 53, resolved)
        lab.names(3)
        files = {"resolv.conf": "nameserver 10.45.0.2\nnameserver 10.45.0.3\n", "hosts": "127.0.0.1 localhost\n"}
        with lab.capture(more=ALL_PACKETS):
            for _ in range(2):
                done = smbclient(lab, files, 'get "file 000.txt" /dev/null', "-U", f"alice%{benches.samba.PASSWORD}")
                assert done.returncode == 0, done.stdout + done.stderr


@case("late-ticket", state="slow", fixture=False)
def late_ticket(bench, shows):
    """The domain controller does not answer the request for a ticket, and the client continues with NTLM; or says no at once."""
    with bench.lab(FAR) as lab:
        # KRB-ERROR of KDC_ERR_S_PRINCIPAL_UNKNOWN (7), RFC 4120 5.9.1.
        field = lambda tag, body: bytes([tag, len(body)]) + body
        text = lambda words: field(0x1B, words)
        name = field(0x30, field(0xA0, b"\2\1\2") + field(0xA1, field(0x30, text(b"krbtgt") + text(b"LAB.TEST"))))
        now = time.strftime("%Y%m%d%H%M%SZ", time.gmtime()).encode()
        error = field(0xA0, b"\2\1\5") + field(0xA1, b"\2\1\x1e") + field(0xA4, field(0x18, now)) + field(0xA5, b"\2\1\0")
        error += field(0xA6, b"\2\1\6") + field(0xA9, text(b"LAB.TEST")) + field(0xAA, name)
        Answerer(lab, "10.45.0.2", 88, lambda _: None if shows else field(0x7E, field(0x30, error)))
        lab.names(3)
        realm = "[libdefaults]\n default_realm = LAB.TEST\n dns_lookup_kdc = false\n" \
                "[realms]\n LAB.TEST = {\n  kdc = udp/10.45.0.2\n }\n"
        files = {"hosts": f"10.45.0.2 {NAME}\n127.0.0.1 localhost\n"}
        config = bench.path("krb5.conf")
        with open(config, "w") as file:
            file.write(realm)
        with lab.capture(more=ALL_PACKETS):
            done = smbclient(lab, files, 'get "file 000.txt" /dev/null', "--use-kerberos=desired",
                             "-U", f"alice@LAB.TEST%{benches.samba.PASSWORD}", env={"KRB5_CONFIG": config})
            bench.say(done.stdout + done.stderr)


@case("path-mtu", state="broken", fixture=False)
def path_mtu(bench, shows):
    """A device in the path drops packets above 1,300 bytes and says nothing; or it lets them pass."""
    with bench.lab(FAR) as lab:
        for end in ("client", "server"):
            benches.run(*lab.enters(end), "sh", "-c", "ethtool -K eth0 tso off gso off gro off || true")
        with lab.capture(more="icmp"):
            one = lab.client()
            one.socket.settimeout(12)
            fid = one.open("draft.bin", smb.WRITE, smb.OVERWRITE_IF)
            one.call(smb.write(fid, 0, bytes(700)))
            if shows:
                on_server(lab, "nft", "add table ip path; add chain ip path large { type filter hook input priority 0; }; "
                          "add rule ip path large meta length > 1300 drop")
            try:
                one.call(smb.write(fid, 4096, bytes(30_000)))
            except TimeoutError:
                assert shows


@case("server-unreachable", state="broken", fixture=False)
def server_unreachable(bench, shows):
    """Nothing comes back from the server, and the client tries to connect again and again; or it connects."""
    with bench.lab(FAR) as lab:
        names = lab.names(2)
        if shows:
            on_server(lab, "ip", "route", "add", "blackhole", "10.45.0.1/32")
        with lab.capture(more="icmp"):
            for _ in range(4):
                try:
                    with smb.inside(lab.namespace):
                        socket.create_connection((lab.address, 445), timeout=3).close()
                except TimeoutError:
                    assert shows
                time.sleep(1)
            if not shows:
                one = lab.client()
                for name in names:
                    one.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))


@case("path-outage", state="broken", fixture=False)
def path_outage(bench, shows):
    """The line is cut for eight seconds while clients work; or it stays."""
    with bench.lab(FAR) as lab:
        names = lab.names(40)

        def work():
            one = lab.client()
            one.socket.settimeout(60)
            for name in names:
                one.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))

        def cut():
            time.sleep(0.5)
            if shows:
                on_server(lab, "ip", "link", "set", "eth0", "down")
                time.sleep(8)
                on_server(lab, "ip", "link", "set", "eth0", "up")

        with lab.capture():
            together(work, work, cut)


@case("no-reply", state="broken", allowed={"stall": "the same silence, of the process that serves the connection"}, fixture=False)
def no_reply(bench, shows):
    """The process that serves a client is frozen, and nothing comes until the client gives up; or it works."""
    with bench.lab(FAR) as lab:
        names = lab.names(10)
        with lab.capture():
            one = lab.client()
            one.socket.settimeout(14)
            for name in names:
                one.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))
            newest = subprocess.run(["pgrep", "--newest", "-f", f"smbd.*{lab.conf}"], capture_output=True, text=True)
            served_by = int(newest.stdout)
            if shows:
                os.kill(served_by, signal.SIGSTOP)
            try:
                one.chain(smb.create(names[0]), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))
            except TimeoutError:
                assert shows
            # It gives up.
            one.socket.close()
        if shows:
            os.kill(served_by, signal.SIGCONT)


@case("stall", state="broken", near="slow", fixture=False,
      allowed={"slow-filesystem": "each call passes through FUSE", "one-at-a-time": "so it does"})
def stall(bench, shows):
    """All calls of the file system stand still for six seconds while four clients read; or they do not."""
    with bench.lab() as lab:
        lab.names(200, 1 << 18)
        lab.slow_down(0.0002)
        slow = subprocess.run(["pgrep", "--newest", "-f", "slowfs"], capture_output=True, text=True).stdout.split()

        def work(number):
            one = lab.client()
            one.socket.settimeout(30)
            for each in [*range(number, 200, 4)] * 4:
                fid = one.open(f"file {each:03}.txt")
                for block in range(4):
                    one.call(raw.read(fid, block << 16, 1 << 16))
                one.close(fid)

        def stop():
            time.sleep(0.7)
            if shows:
                os.kill(int(slow[0]), signal.SIGSTOP)
                time.sleep(6)
                os.kill(int(slow[0]), signal.SIGCONT)

        with lab.capture(HEADERS):
            together(*(lambda n=n: work(n) for n in range(4)), stop)


@case("folder-search", state="slow", allowed={"slow-filesystem": "the search is the server's time", "failing-lookups": "names are missing"},
      fixture=False)
def folder_search(bench, shows):
    """Missing names in folders of 50 to 100,000 entries, which Samba searches for another case; or `case sensitive = yes`."""
    with bench.lab(options={"case sensitive": "no" if shows else "yes"}) as lab:
        sizes = (50, 1_000, 20_000, 100_000)
        for size in sizes:
            folder = os.path.join(lab.share, f"of {size}")
            os.makedirs(folder)
            os.chmod(folder, 0o777)
            for number in range(size):
                os.close(os.open(os.path.join(folder, f"scan {number:06}.tif"), os.O_CREAT, 0o666))
        with lab.capture():
            one = lab.client()
            for size in sizes:
                listing_of(one, f"of {size}")
                for number in range(120):
                    one.call(smb.create(f"of {size}\\other {number}.tif"), statuses=[smb.NOT_FOUND])


def listing_of(one, folder):
    """Lists a folder to its end."""
    fid = one.open(folder, smb.LIST, smb.OPEN, smb.DIRECTORY)
    while one.status(raw.query_directory(fid)) != smb.NO_MORE_FILES:
        pass
    one.close(fid)


@case("failing-operations", state="broken", fixture=False)
def failing_operations(bench, shows):
    """Documents are saved on a volume without room; or with room."""
    with bench.lab(FAR) as lab:
        benches.run("mount", "-t", "tmpfs", "-o", f"size={'64k' if shows else '64m'},mode=777", "none", lab.share)
        lab.open.callback(benches.run, "umount", "-l", lab.share)
        with lab.capture():
            one = lab.client()
            for number in range(12):
                fid = one.open(f"letter {number}.docx", smb.WRITE, smb.OVERWRITE_IF)
                one.call(smb.write(fid, 0, bytes(30_000)), statuses=[None])
                one.close(fid)


@case("one-at-a-time", state="slow", fixture=False, allowed={"small-reads": "larger blocks would need fewer round trips, too"})
def one_at_a_time(bench, shows):
    """Large blocks one after the other over a long line; or eight at once."""
    with bench.lab("rtt=40ms") as lab:
        lab.file("data.bin", 24 << 20)
        with lab.capture(HEADERS):
            one = lab.client()
            fid = one.open("data.bin")
            one.pipeline(in_order(fid, 96, 1 << 18), 1 if shows else 8)
            one.close(fid)


@case("deep-queue", state="slow", expects="bandwidth-limited", fixture=False)
def deep_queue(bench, shows):
    """64 reads outstanding on a line of 50 Mbit/s, each of which takes seconds; or two, on a quick line."""
    with bench.lab("rtt=20ms,rate=50mbit" if shows else FAR) as lab:
        lab.file("data.bin", 80 << 20)
        with lab.capture():
            one = lab.client(asks=512)
            fid = one.open("data.bin")
            one.pipeline(in_order(fid, 1_000, 1 << 16), 64 if shows else 2)
            one.close(fid)


@case("unwritten-range", state="broken", fixture=False)
def unwritten_range(bench, shows):
    """A client leaves 3,072 bytes out of a file that it writes from the beginning to the end; or it writes them later."""
    with bench.lab(FAR) as lab:
        with lab.capture():
            one = lab.client()
            fid = one.open("archive.zip", smb.WRITE, smb.OVERWRITE_IF)
            blocks = [(number << 16, 1 << 16) for number in range(16)]
            blocks[7] = (7 << 16, (1 << 16) - 3072)
            one.pipeline([smb.write(fid, at, bytes([at >> 16 & 255]) * size) for at, size in blocks], 4)
            if not shows:
                one.call(smb.write(fid, (8 << 16) - 3072, b"x" * 3072))
            one.close(fid)


@case("notify-storm", state="slow", fixture=False, allowed={"server-queueing": "25 listings at once wait for each other"})
def notify_storm(bench, shows):
    """25 clients watch a folder, and list it whenever it changes; or one of them does."""
    with bench.lab() as lab:
        lab.names(4_000, 10, folder="links")
        with lab.capture(HEADERS):
            watchers = [lab.client(source=f"127.0.1.{number}") for number in range(1, 26 if shows else 2)]
            other = lab.client()
            handles = [one.open("links", smb.LIST, smb.OPEN, smb.DIRECTORY) for one in watchers]
            for change in range(5):
                asked = [one.send((raw.CHANGE_NOTIFY, struct.pack("<HHI16sII", 32, 0, 4096, fid, 0x17, 0)))
                         for one, fid in zip(watchers, handles)]
                time.sleep(0.2)
                other.close(other.open(f"links\\new {change}.lnk", smb.WRITE, smb.OVERWRITE_IF))
                for one, ids in zip(watchers, asked):
                    one.wait(ids)
                together(*(lambda one=one: listing_of(one, "links") for one in watchers))
                time.sleep(0.5)
