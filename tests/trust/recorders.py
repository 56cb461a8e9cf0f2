"""Recorders that are killed, stopped, cut off from their disk or their terminal, while simulated users work on a private Samba.

Each case is a function of a `Bench`; it returns what went wrong, or "" (see `CASES`). Needs root and Samba.
"""

import contextlib
import fcntl
import json
import os
import pty
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time


class Bench:
    """A lab with users that work, and recorders of it."""

    def __init__(self, smbscope, folder):
        self.smbscope, self.folder, self.usage = smbscope, folder, None
        self.lab = f"{folder}/lab"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.up()
        self.call("load", "prepare", "--lab", self.lab, "--users", 4, "--scale", 0.05)
        self.has_probe = "without" not in self.call("doctor", check=False)

    def up(self):
        self.call("lab", "up", "--users", 4, "--dir", self.lab, "--port", self.port)

    def down(self):
        self.call("lab", "down", "--dir", self.lab, check=False)

    def call(self, *words, check=True):
        done = subprocess.run([self.smbscope, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if check and done.returncode:
            raise SystemExit(f"smbscope {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def users(self, seconds):
        words = ["load", "--lab", self.lab, "--users", "4", "--scale", "0.05", "--closed", "--warm-up", "0s", "--duration", f"{seconds}s",
                 "--cool-down", "0s", "-q"]  # fmt: skip
        process = subprocess.Popen([self.smbscope, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def record(self, out, *words, inside=False):
        source = ["--port", str(self.port)] if inside else ["--interface", "lo", "--no-probe", "--port", str(self.port)]
        shutil.rmtree(out, ignore_errors=True)
        return Recorder([self.smbscope, "record", *source, "--out", out, *words])

    def operations(self, out):
        """Operations of a recording, when the last one ended, and what its report says before its figures."""
        report = json.loads(self.call("report", out, "--format", "json", "--no-progress", "-q"))
        return report["totals"]["operations"], report["end_ns"], self.call("report", out, "--no-progress")


class Recorder:
    def __init__(self, words):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self.errors, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while b"recording " not in self.text() and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.05)

    def text(self):
        return os.pread(self.errors.fileno(), 1 << 20, 0)

    def signal(self, *signals):
        for one in signals:
            self.process.send_signal(one)
            time.sleep(0.02)

    def end(self, seconds=30):
        """Its exit code and what it said; a recorder that does not end is killed."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none"
        return code, self.text().decode("utf-8", "replace")


def is_complete(out):
    with open(f"{out}/manifest.json") as file:
        return json.load(file)["complete"]


def killed(bench, inside=False):
    """A killed recording has all but the last second or two, and says that it is not finished."""
    out = f"{bench.folder}/killed"
    with bench.users(30):
        recorder = bench.record(out, inside=inside)
        time.sleep(6)
        at = time.time_ns()
        recorder.signal(signal.SIGKILL)
        recorder.end()
    count, end, said = bench.operations(out)
    lost = (at - end) / 1e9
    if is_complete(out) or "not finished" not in said or "holds nothing" in said:
        return "it does not say that it is not finished"
    return "" if count > 50 and lost < 2.5 else f"{count} operations, the last {lost:.1f} s are lost"


def killed_inside(bench):
    return killed(bench, True) if bench.has_probe else "skipped: no probe"


def two_signals(bench):
    """SIGTERM twice in a burst ends it once, cleanly; so does SIGHUP."""
    for signals in [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGHUP,)]:
        out = f"{bench.folder}/signals"
        with bench.users(10):
            recorder = bench.record(out)
            time.sleep(2)
            recorder.signal(*signals)
            code, said = recorder.end()
        if code != 0 or not is_complete(out):
            return f"{signals}: exit code {code}: {said[-200:]}"
    return ""


def two_writers(bench):
    """A second recorder of one folder is refused, and the first one's data stays."""
    out = f"{bench.folder}/two"
    with bench.users(10):
        first = bench.record(out)
        time.sleep(2)
        words = [bench.smbscope, "record", "--interface", "lo", "--no-probe", "--out", out, "--force"]
        second = Recorder(words)
        code, said = second.end(10)
        first.signal(signal.SIGINT)
        ended, _ = first.end()
    if code in (0, "none") or "another smbscope is writing" not in said:
        return f"the second one: exit code {code}: {said[-200:]}"
    return "" if ended == 0 and is_complete(out) else f"the first one: exit code {ended}"


def full_disk(bench):
    """On a full disk it ends with an error, and what was complete can be read."""
    disk = f"{bench.folder}/disk"
    os.makedirs(disk, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=True)
    try:
        with open(f"{disk}/fill", "wb") as fill:
            fill.write(bytes(700 << 10))
        with bench.users(60):
            code, said = bench.record(f"{disk}/run", "--duration", "40s").end(60)
        if code != 5 or "No space left" not in said:
            return f"exit code {code}: {said[-200:]}"
        return "" if "not finished" in bench.call("report", f"{disk}/run", check=False) else "the rest says nothing"
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def removed_folder(bench):
    """Without its folder it ends with an error."""
    out = f"{bench.folder}/removed"
    with bench.users(30):
        recorder = bench.record(out, "--duration", "20s")
        time.sleep(4)
        shutil.rmtree(out)
        code, said = recorder.end(40)
    return "" if code == 5 else f"exit code {code}: {said[-200:]}"


def stopped(bench):
    """SIGSTOP for some seconds loses nothing that a buffer holds."""
    out = f"{bench.folder}/stopped"
    with bench.users(20):
        recorder = bench.record(out, "--buffer", "256MiB", "--memory", "1GiB")
        time.sleep(2)
        recorder.signal(signal.SIGSTOP)
        time.sleep(5)
        recorder.signal(signal.SIGCONT)
        time.sleep(2)
        recorder.signal(signal.SIGINT)
        code, said = recorder.end()
    return "" if code == 0 and " 0 dropped" in said else f"exit code {code}: {said[-300:]}"


def terminal_gone(bench):
    """`top` ends when its terminal does."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(bench.smbscope, [bench.smbscope, "top", "--interface", "lo", "--no-probe", "--port", str(bench.port)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    time.sleep(3)
    # Its output must be read, or it would wait for room.
    os.set_blocking(terminal, False)
    with contextlib.suppress(BlockingIOError):
        while os.read(terminal, 65536):
            pass
    os.close(terminal)
    for _ in range(100):
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if ended:
            return ""
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "it continues for 10 s"


def restarted(bench):
    """A Samba that is started again is followed, also if its process was named."""
    if not bench.has_probe:
        return "skipped: no probe"
    found = subprocess.run(["ss", "-Hltnp", f"sport = :{bench.port}"], capture_output=True, text=True).stdout
    process = found.split("pid=")[1].split(",")[0]
    for words in ([], ["--pid", process]):
        out = f"{bench.folder}/restarted"
        shutil.rmtree(out, ignore_errors=True)
        recorder = Recorder([bench.smbscope, "record", "--out", out, *words])
        with bench.users(3) as users:
            users.wait()
        bench.down()
        bench.up()
        between = time.time_ns()
        with bench.users(4) as users:
            users.wait()
        recorder.signal(signal.SIGINT)
        code, said = recorder.end()
        if code != 0:
            return f"{words}: exit code {code}: {said[-200:]}"
        _, end, _ = bench.operations(out)
        if end < between:
            return f"{words}: exit code {code}, nothing after the restart: {said[-200:]}"
        found = subprocess.run(["ss", "-Hltnp", f"sport = :{bench.port}"], capture_output=True, text=True).stdout
        process = found.split("pid=")[1].split(",")[0]
    return ""


CASES = {
    "killed": killed,
    "killed, inside Samba": killed_inside,
    "two signals": two_signals,
    "two writers": two_writers,
    "full disk": full_disk,
    "folder removed": removed_folder,
    "stopped": stopped,
    "terminal gone": terminal_gone,
    "Samba restarted": restarted,
}


def cases(smbscope, folder, names, ran, row):
    """Runs the cases; `ran` and `row` are those of check.py."""
    if not names:
        return
    if os.geteuid() != 0:
        print("skipped: recorders need root")
        return
    folder = os.path.join(folder, "recorders")
    # Users of the lab are other users of the machine.
    os.makedirs(folder, mode=0o755)
    os.chmod(os.path.dirname(folder), 0o755)
    bench = Bench(smbscope, folder)
    try:
        for name in names:
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            wrong = CASES[name](bench)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            # All programs of the case together.
            done = object.__new__(ran)
            done.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            done.megabytes, done.seconds = after.ru_maxrss / 1024, time.monotonic() - began
            is_skipped = wrong.startswith("skipped")
            yield row("recorder", name, (400, 60, 120), done, wrong if is_skipped else "held", "" if is_skipped else wrong)
    finally:
        bench.down()
