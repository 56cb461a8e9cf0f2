"""A private Samba behind a line or not, on slow storage or not, and what is captured of it.

Owns: namespaces, mounts, processes and their end. Not: what is done on it (lab.py), the client (client.py), smb.conf
(tests/samba/lab.py). All runs in network and mount namespaces of this program's own, on a tmpfs.
"""

import contextlib
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../samba"))
sys.path.insert(0, os.path.join(HERE, "../predictions"))
import lab as samba
import slowfs
from client import Client

ENTERED = "SMBSCOPE_FINDINGS"
NETNS = "findings"
# Processes end with the one that started them, however that ends.
WITH_ME = ["setpriv", "--pdeathsig", "KILL"]


def enter():
    """Runs this program again in namespaces of its own."""
    samba.require("smbd", "pdbedit", "smbclient", "tcpdump", "ip", "unshare", "nsenter")
    if os.geteuid():
        sys.exit("root is needed: network namespaces, packet capture, FUSE")
    if not os.environ.get(ENTERED):
        os.environ[ENTERED] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
    run("ip", "link", "set", "lo", "up")
    # The names of namespaces are private too.
    os.makedirs("/run/netns", exist_ok=True)
    run("mount", "-t", "tmpfs", "none", "/run/netns")


def run(*words, **more):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, **more).stdout


def end(process, how=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.name, self.recorded = args, folder, None, None

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def lab(self, *words, **more):
        return Lab(self, *words, **more)

    def explain(self, path):
        return json.loads(run(self.args.smbscope, "explain", path, "--format", "json"))


class Lab:
    """`line`: as for `smbscope lab --wan`; `options` go to smb.conf; `before` stands before smbd in the command."""

    def __init__(self, bench, line=None, options=None, share=None, before=(), client_window=None):
        self.bench, self.line, self.slow_one = bench, line, None
        self.dir = bench.path(f"{bench.name}-lab")
        self.open = contextlib.ExitStack()
        self.address, self.namespace, self.interface = "127.0.0.1", None, "lo"
        try:
            self.start(options or {}, share or {}, list(before), client_window)
        except BaseException:
            self.down()
            raise

    def start(self, options, share, before, client_window):
        os.makedirs(self.dir)
        # Storage that costs nothing, unless it is made slow.
        run("mount", "-t", "tmpfs", "-o", "mode=755", "none", self.dir)
        self.open.callback(self.unmount, self.dir)
        interfaces, enter_server = "lo", []
        if self.line:
            self.lay_line(client_window)
            interfaces, enter_server = "10.45.0.2/24", self.enters("server")
        options = {"map to guest": "Bad User", "log level": "0", "debug encryption": "no", **options}
        server = samba.Samba(
            self.dir, options, 445, interfaces,
            {"home": {"guest ok": "yes", **share}}, [*WITH_ME, *enter_server, *before])
        self.open.enter_context(server)
        self.conf, self.server, self.share = server.conf, server, server.path("home")
        self.files = self.share

    def enters(self, end):
        return ["nsenter", f"--net=/run/netns/{NETNS}-{end}"]

    def lay_line(self, client_window):
        words = [f"--{pair}" for pair in self.line.split(",")]
        line = subprocess.Popen(
            [*WITH_ME, self.bench.args.smbscope, "wan", "--netns", NETNS, *words, "--quiet"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.open.callback(line.stderr.close)
        self.open.callback(end, line)
        self.address, self.namespace, self.interface = "10.45.0.2", f"{NETNS}-client", "eth0"
        ping = [*self.enters("client"), "ip", "route", "get", self.address]
        for _ in range(200):
            if line.poll() is not None:
                raise SystemExit(f"smbscope wan ended: {line.stderr.read()}")
            there = subprocess.run(ping, capture_output=True, text=True)
            if there.returncode == 0 and "eth0" in there.stdout:
                break
            time.sleep(0.05)
        time.sleep(0.2)
        for end_name in ("client", "server"):
            # What Linux and Windows bring along; this machine's own default may be another one.
            ip = [*self.enters(end_name), "ip", "route"]
            route = run(*ip, "show", "10.45.0.0/24").split()
            run(*ip, "replace", *route, "congctl", "cubic")
        if client_window:
            sizes = f"4096 {client_window} {client_window}"
            run(*self.enters("client"), "sh", "-c", f"echo {sizes} > /proc/sys/net/ipv4/tcp_rmem")

    def unmount(self, path):
        for _ in range(50):
            if not os.path.ismount(path) or subprocess.run(["umount", path], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        subprocess.run(["umount", "-l", path], check=False)

    def file(self, name, size=4096):
        path = os.path.join(self.files, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.chmod(os.path.dirname(path), 0o777)
        with open(path, "wb") as file:
            file.truncate(size)
        os.chmod(path, 0o666)
        return name

    def names(self, n, size=4096, folder=""):
        names = [os.path.join(folder, f"file {number:03}.txt") for number in range(n)]
        return [self.file(name, size).replace("/", "\\") for name in names]

    def slow_down(self, seconds, folder=None, **options):
        """From now on each call on the share's files, or on those of a folder, takes this long; options of slowfs.py."""
        # No device takes the same time again and again, as a timer does.
        options.setdefault("jitter", 0.3)
        share = os.path.join(self.share, folder) if folder else self.share
        behind = os.path.join(self.dir, "behind")
        os.makedirs(share, exist_ok=True)
        os.rename(share, behind)
        os.mkdir(share)
        os.chmod(share, 0o777)
        os.chmod(behind, 0o777)
        if not folder:
            self.files = behind
        slow = subprocess.Popen(
            [*WITH_ME, slowfs.program(), behind, share, str(seconds),
             *(f"{name}={value}" for name, value in options.items())], stderr=subprocess.DEVNULL)
        self.open.callback(end, slow)
        self.open.callback(subprocess.run, ["umount", "-l", share], check=False)
        while not os.path.ismount(share):
            if slow.poll() is not None:
                raise SystemExit("slowfs ended: is libfuse 3 there (scripts/setup.sh predictions)?")
            time.sleep(0.05)

    def client(self, kind=Client, **more):
        one = kind(self.address, self.namespace, **more)
        self.open.callback(one.socket.close)
        return one

    def smbclient(self, script, *more):
        enters = self.enters("client") if self.line else []
        account = ["-U", f"alice%{samba.PASSWORD}"]
        return run(*enters, "smbclient", f"//{self.address}/home", "-s", self.conf, *account, *more, "-c", script)

    @contextlib.contextmanager
    def capture(self, snaplen=262144, more=None):
        """What passes the client's interface; the given number of bytes of each packet. `more`: what else than port
        445."""
        path = self.bench.path(f"{self.bench.name}.pcap")
        enters = self.enters("client") if self.line else []
        with samba.Recorder(path, 445, self.interface, snaplen, enter=[*WITH_ME, *enters], more=more):
            yield
        self.bench.recorded = path

    @contextlib.contextmanager
    def record(self):
        """What the recorder inside Samba sees."""
        path = self.bench.path(f"{self.bench.name}-inside")
        words = [*WITH_ME, self.bench.args.smbscope, "record", "--port", "445", "--out", path, "--force", "--quiet"]
        enters = self.enters("server") if self.line else []
        recorder = subprocess.Popen([*enters, *words], stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(4)
            if recorder.poll() is not None:
                raise SystemExit(f"smbscope record ended: {recorder.stderr.read()}")
            yield
            time.sleep(0.5)
        finally:
            end(recorder, signal.SIGINT)
            recorder.stderr.close()
        self.bench.recorded = path

    def down(self):
        self.open.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()


def keep(recorded, fixture):
    """A capture as a fixture, packed, nothing else; or an unchanged dataset. Returns its path."""
    if os.path.isdir(recorded):
        shutil.rmtree(fixture, ignore_errors=True)
        return shutil.copytree(recorded, fixture)
    fixture += ".pcap.gz"
    with open(recorded, "rb") as file, open(fixture, "wb") as out:
        with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as packed:
            shutil.copyfileobj(file, packed)
    return fixture
