"""A guest in QEMU with ksmbd or Samba: start, commands, captures of its network, stop.

Owns: the QEMU process, its two serial ports (messages of the kernel; a shell) and its monitor. Does not own what the
guest is made of (scripts/test-servers.sh) or what is checked (ksmbd.py).
"""

import ctypes
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

# The address of the host as the guest sees it, by QEMU's user networking.
HOST = "10.0.2.2"
GUEST = "10.0.2.15"


class Failure(Exception):
    """What a check found, for a person."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def die_with_parent():
    """QEMU ends with its starter, however that ends (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Guest:
    """The guest runs from `start` to `stop`; every wait has a limit."""

    def __init__(self, work, kernel, initrd, options=""):
        """`options` for the guest, on the kernel's command line (guest.sh)."""
        self.work, self.kernel, self.initrd, self.options = work, kernel, initrd, options
        self.port = free_port()
        self.process = None
        self.captures = self.commands = 0

    def start(self, limit=120, is_new=True):
        """Starts with an empty disk, or with the one that it had."""
        image = self.work / "share.img"
        if is_new:
            image.unlink(missing_ok=True)
            with open(image, "wb") as file:
                file.truncate(1 << 30)
            subprocess.run([shutil.which("mkfs.ext4") or "/usr/sbin/mkfs.ext4", "-q", "-F", image], check=True)
        console, shell, monitor = (self.work / name for name in ("console", "shell", "monitor"))
        for path in (console, shell, monitor):
            path.unlink(missing_ok=True)
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
        command += ["-smp", "1", "-m", "768", "-nodefaults", "-display", "none", "-no-reboot"]
        command += ["-kernel", self.kernel, "-initrd", self.initrd]
        command += ["-append", f"console=ttyS0 quiet panic=-1 mitigations=off {self.options}"]
        command += ["-drive", f"file={image},if=virtio,format=raw,cache=unsafe"]
        command += ["-netdev", f"user,id=net0,hostfwd=tcp:127.0.0.1:{self.port}-:445"]
        command += ["-device", "virtio-net-pci,netdev=net0,romfile=", "-device", "virtio-rng-pci"]
        command += ["-serial", f"file:{console}", "-serial", f"unix:{shell},server=on,wait=off"]
        command += ["-monitor", f"unix:{monitor},server=on,wait=off"]
        with open(self.work / "qemu.log", "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        end = time.monotonic() + limit
        while "guest: ready" not in self.console():
            if self.process.poll() is not None:
                raise Failure(f"QEMU ended: {(self.work / 'qemu.log').read_text()}{self.console()[-2000:]}")
            if time.monotonic() > end:
                raise Failure(f"the guest is not ready after {limit} s:\n{self.console()[-2000:]}")
            time.sleep(0.2)
        self.shell, self.monitor = (self.connect(path) for path in (shell, monitor))
        self.until(self.monitor, rb"\(qemu\) ", 10, "the monitor")
        if ":445 " not in self.console():
            raise Failure(f"the server does not listen:\n{self.console()[-2000:]}")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
        (self.work / "share.img").unlink(missing_ok=True)

    def lose_power(self):
        """Ends without any warning: what the guest had not written to its disk is gone."""
        self.process.kill()
        self.process.wait(10)

    def console(self):
        path = self.work / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def run(self, command, limit=60):
        """A command in the guest: its output; a failure if its exit code is not 0."""
        # Numbered, so that the late end of a command that took too long is not taken for the end of the next one.
        self.commands += 1
        number = self.commands
        self.shell.sendall(f"({command}) 2>&1; echo en''d {number} $?\n".encode())
        end = rf"end {number} (\d+)\r?\n"
        output = self.until(self.shell, end.encode(), limit, f"`{command}` in the guest")
        text, code = re.search(rf"(?s)(.*){end}", output).groups()
        if code != "0":
            raise Failure(f"`{command}` in the guest: exit code {code}: {text.strip()}")
        return text

    @contextmanager
    def capture(self, path):
        """What passes the guest's network interface meanwhile goes to `path` (pcap)."""
        path.unlink(missing_ok=True)
        self.captures += 1
        name = f"capture{self.captures}"
        self.ask(f"object_add filter-dump,id={name},netdev=net0,file={path}")
        try:
            yield
        finally:
            self.ask(f"object_del {name}")

    def ask(self, command):
        self.monitor.sendall(command.encode() + b"\n")
        answer = self.until(self.monitor, rb"\n\(qemu\) ", 20, f"`{command}`")
        if "Error" in answer:
            raise Failure(f"QEMU: {command}: {answer}")

    @staticmethod
    def connect(path):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(5)
        connection.connect(str(path))
        return connection

    @staticmethod
    def until(connection, pattern, limit, what):
        data, end = b"", time.monotonic() + limit
        while not re.search(pattern, data):
            left = end - time.monotonic()
            if left <= 0:
                raise Failure(f"{what}: no answer after {limit} s: {data.decode(errors='replace')[-1000:]}")
            connection.settimeout(left)
            try:
                more = connection.recv(65536)
            except TimeoutError:
                continue
            if not more:
                raise Failure(f"{what}: the guest is gone: {data.decode(errors='replace')[-1000:]}")
            data += more
        return data.decode(errors="replace")
