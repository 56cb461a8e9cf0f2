#!/usr/bin/env python3
"""Predictions against the truth: `make verify-predictions`.

    tests/predictions/verify.py --smbscope PATH [--case distance,...] [--users 20] [--seconds 90]
                                [--keep FOLDER]

For each case: a baseline is recorded on a private Samba (`smbscope lab`); the predictions are written to a
file, from that recording alone; then each change is really made, in a way that the model never reads, the
same schedule of users (same seed) runs once more, and both are compared. Standard output gets the table
in Markdown. Needs root (network namespaces, FUSE). Python's standard library only.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import replica
import slowfs

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Bench:
    """Where runs, predictions and labs lie, and how smbscope is called."""

    def __init__(self, args, folder):
        self.smbscope, self.args, self.folder = args.smbscope, args, folder
        self.rows, self.notes, self.spinning = [], [], []

    def wake(self):
        """Keeps the processors from halting, which nothing that has work to do ever waits for: a virtual machine
        takes 50 us and more to wake up, and on an idle machine each packet would wait for that."""
        spin = ["chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]
        self.spinning = [subprocess.Popen(spin) for _ in range(os.cpu_count())]

    def sleep(self):
        for process in self.spinning:
            process.kill()
            process.wait()
        self.spinning = []

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def call(self, *words, namespace=None, cpu=None):
        front = ["ip", "netns", "exec", namespace] if namespace else []
        front += ["taskset", "--cpu-list", str(cpu)] if cpu is not None else []
        done = subprocess.run([*front, self.smbscope, *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"smbscope {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def objects(self, *words):
        return [json.loads(line) for line in self.call(*words, "--format", "json").splitlines()]

    def predict(self, name, run, changes, *more):
        """Writes what is predicted before anything is changed."""
        predicted = {}
        for change in changes:
            words = [word for part in change.split() for word in ("--change", part)]
            predicted[change] = self.objects("predict", run, *words, *more)
        with open(self.path(f"{name}-predicted.json"), "w") as file:
            json.dump(predicted, file, indent=1)
        with open(self.path(f"{name}-predicted.json")) as file:
            return json.load(file)

    def measured(self, run):
        return self.objects("predict", run)

    AT = {"": "", "_p50": ", median", "_p95": ", 95th percentile"}

    def compare(self, name, what, change, predicted, measured, groups=("scenarios", "operations"), at="", same=True):
        """A line of the table for each group: what was, what was predicted, what came; means, or percentiles. It must be
        as many as before, unless they are not the same.
        Others take this machine for tens of milliseconds at times: of emulated devices the medians are compared, of which
        that takes nothing. For several commands together, it is the mean of
        theirs, by how many there are."""
        def find(records, of):
            names = of if isinstance(of, tuple) else [of]
            found = [next((one for one in records if name in (one["of"], one["name"])), None) for name in names]
            if None in found:
                return None
            count = sum(one["count"] for one in found)
            times = [key for key in found[0] if key.endswith("_seconds")]
            mean = lambda key: sum(one["count"] * (one.get(key) or 0) for one in found) / count
            return {"count": count, **{key: mean(key) for key in times}}

        for of in groups:
            before, after = find(predicted, of), find(measured, of)
            # Of other requests, the means are not those of the same thing.
            if not before or not after or same and abs(before["count"] - after["count"]) > 0.05 * after["count"]:
                continue
            of = " and ".join(of) if isinstance(of, tuple) else of
            row = {
                "case": name, "change": change, "what": what, "of": f"{of}{self.AT[at]}",
                "n": before["count"], "n_measured": after["count"],
                "baseline_s": before[f"before{at}_seconds"],
                "predicted_s": before[f"after{at}_seconds"],
                "measured_s": after[f"before{at}_seconds"],
                "measured_error_s": None if at else after["before_error_seconds"],
            }
            row["error_percent"] = 100 * (row["predicted_s"] / row["measured_s"] - 1)
            self.rows.append(row)
            self.say("{case}: {change}: {of}: {baseline_s:.6f} s, predicted {predicted_s:.6f}, measured "
                     "{measured_s:.6f}: {error_percent:+.1f} %".format(**row))

    def compare_turns(self, name, what, change, turns, groups=("scenarios", "operations"), at="", same=True):
        """Likewise for several turns, each of which compares what was done within a minute or two: of each group the
        turn whose error is the median, and the errors of all. How the machine's speed changed between turns is not
        prediction's business."""
        first = len(self.rows)
        for predicted, measured in turns:
            self.compare(name, what, change, predicted, measured, groups, at, same)
        rows, self.rows = self.rows[first:], self.rows[:first]
        for of in dict.fromkeys(row["of"] for row in rows):
            found = sorted((row for row in rows if row["of"] == of), key=lambda row: row["error_percent"])
            row = found[len(found) // 2]
            row["turns"] = [round(one["error_percent"], 1) for one in found]
            self.rows.append(row)

    def carried(self, what, limits, found):
        """Says how many users are carried: as foretold, in the middle of several, and as found."""
        limits = sorted(limits, key=lambda limit: limit["users"])
        limit, all = limits[len(limits) // 2], ", ".join(f"{limit['users']:.0f}" for limit in limits)
        low, high = ("?" if end is None else round(end) for end in (found["interval"][end] for end in ("low", "high")))
        line = (f"Capacity, {what}: {limit['users']:.0f} ± {limit['users_error']:.0f} ({limit['name']}; of {all}); the "
                f"search found {found['users']} ({low} to {high}, {found['reason']}): "
                f"{100 * (limit['users'] / found['users'] - 1):+.0f} %.")
        self.say(line)
        self.notes.append(line)

    def table(self):
        ms = lambda seconds: f"{1000 * seconds:,.3f}"
        lines = ["| change made | of | n | baseline, ms | predicted | measured (95 %) | error |",
                 "|---|---|---|---|---|---|---|"]
        for row in self.rows:
            of = row["of"].replace("scenarios", "scenario").replace("operations", "operation")
            error = f" ± {ms(row['measured_error_s'])}" if row["measured_error_s"] else ""
            turns = ", ".join(f"{error:+.1f}" for error in row.get("turns", []))
            turns = f" ({turns})" if turns else ""
            lines.append(
                f"| {row['change']} ({row['what']}) | {of} | {row['n_measured']:,} | {ms(row['baseline_s'])} | "
                f"{ms(row['predicted_s'])} | {ms(row['measured_s'])}{error} | "
                f"{row['error_percent']:+.1f} %{turns} |")
        return "\n".join(lines)


# Median round trip of ICMP echoes to an address, in microseconds.
PING = """
import socket, statistics, struct, sys, time
icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
icmp.settimeout(2)
trips = []
for number in range(40):
    echo = lambda sum: struct.pack("!BBHHH", 8, 0, sum, 7, number)
    words = sum(struct.unpack("!4H", echo(0)))
    begin = time.perf_counter()
    icmp.sendto(echo(~(words + (words >> 16)) & 0xffff), (sys.argv[1], 0))
    icmp.recv(100)
    trips.append(time.perf_counter() - begin)
    time.sleep(0.005)
print(1e6 * statistics.median(trips))
"""


class Lab:
    """A private Samba, behind a line or not, with the users' files in place. `apart` gives server and client a
    processor each, as if they were two machines."""

    def __init__(self, bench, wan=None, settings=(), load=(), lab=(), apart=False, folder=None):
        self.bench, self.wan, self.slow = bench, wan, None
        self.cpus = (0, 1) if apart else (None, None)
        self.dir = tempfile.mkdtemp(prefix="lab-", dir=folder or bench.folder)
        os.chmod(self.dir, 0o755)
        words = ["lab", "up", "--dir", self.dir, "--users", bench.args.users, *lab]
        if wan:
            words += ["--wan", wan, "--netns", "sspredict"]
        for setting in settings:
            words += ["--set", setting]
        self.port = json.loads(bench.call(*words, "--format", "json", cpu=self.cpus[0]))["port"]
        try:
            self.prepare(wan, load)
        except BaseException:
            self.down()
            raise

    def prepare(self, wan, load):
        bench = self.bench
        server = "sspredict-server" if wan else None
        self.client = "sspredict-client" if wan else None
        for namespace in [self.client, server] if wan else []:
            # What Linux and Windows bring along; this machine's own default may be another one.
            ip = ["ip", "netns", "exec", namespace, "ip", "route"]
            route = subprocess.run([*ip, "show", "10.45.0.0/24"], check=True, capture_output=True, text=True)
            subprocess.run([*ip, "replace", *route.stdout.split(), "congctl", "cubic"], check=True)
        self.files = ["--users", bench.args.users, "--scale", bench.args.scale, *load]
        bench.call("load", "prepare", f"--lab={self.dir}", *self.files, "--quiet", namespace=server)
        # Writing back what was just prepared takes processors and disks, which the following requests did not cause.
        os.sync()

    def slow_down(self, seconds, namespace=None, **options):
        """From now on each call of the share's file system takes this long; options are slowfs.py's, and what it
        sends is sent in that network namespace."""
        share = os.path.join(self.dir, "share")
        self.files_dir = os.path.join(self.dir, "files")
        if not os.path.isdir(self.files_dir):
            st = os.stat(share)
            os.rename(share, self.files_dir)
            os.mkdir(share, 0o700)
            os.chown(share, st.st_uid, st.st_gid)
        inside = [f"--net=/run/netns/{namespace}"] if namespace else []
        self.slow = subprocess.Popen(
            [*(["nsenter", *inside] if inside else []), slowfs.program(), self.files_dir, share, str(seconds),
             *(f"{name}={value}" for name, value in options.items())], stderr=subprocess.DEVNULL)
        while not os.path.ismount(share):
            if self.slow.poll() is not None:
                raise SystemExit("slowfs ended: is libfuse 3 there (scripts/setup.sh predictions)?")
            time.sleep(0.05)
        taken = []
        for _ in range(300):
            begin = time.perf_counter()
            os.stat(share)
            taken.append(time.perf_counter() - begin)
        return statistics.median(taken)

    def speed_up(self):
        if self.slow:
            subprocess.run(["fusermount3", "-u", "-z", os.path.join(self.dir, "share")], check=False)
            self.slow.wait()
            self.slow = None

    def record(self, run, *words):
        """Runs the users while the recorder looks into Samba; gives the folders of both."""
        inside = self.bench.path(f"{run}-inside")
        recorder = subprocess.Popen(
            [self.bench.smbscope, "record", "--port", str(self.port), "--out", inside, "--quiet"])
        try:
            time.sleep(3)
            run = self.load(run, *words)
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
        return run, inside

    def trip_us(self):
        """The line's round trip, as a ping sees it."""
        words = ["ip", "netns", "exec", self.client, sys.executable, "-c", PING, "10.45.0.2"]
        return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    def limit_windows(self, buffer):
        """From now on sockets of both ends have that receive buffer; gives the window that they announce."""
        for end in ("client", "server"):
            words = ["ip", "netns", "exec", f"sspredict-{end}", "sysctl", "-qw"]
            subprocess.run([*words, f"net.ipv4.tcp_rmem=4096 {buffer} {buffer}"], check=True)
        seen = self.bench.path("windows")
        words = [self.bench.smbscope, "record", "--interface", "eth0", "--no-probe", "--out", seen, "--force", "--quiet"]
        recorder = subprocess.Popen(["ip", "netns", "exec", self.client, *words])
        try:
            time.sleep(2)
            self.load("windows-run", "--block", "256KiB")
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
        question = "select max(client_window_max) client, max(server_window_max) server from connections"
        windows = self.bench.objects("query", seen, question)[0]
        if windows["client"] != windows["server"]:
            # smbd's listening socket was there before: its buffer is as large as it was, and only does not grow.
            raise SystemExit(f"windows differ, with a buffer of {buffer} bytes: {windows}")
        return windows["client"]

    def load(self, run, *words, around=("10s", "15s")):
        """Runs the users, with these times before and after the measured one; gives the run's folder."""
        out = self.bench.path(run)
        args = self.bench.args
        self.bench.call(
            "load", f"--lab={self.dir}", *self.files, "--warm-up", around[0], "--duration", f"{args.seconds}s",
            "--cool-down", around[1], "--out", out, "--force", *words, namespace=self.client, cpu=self.cpus[1])
        return out

    def search(self, *words):
        """Finds how many users the server carries."""
        return json.loads(self.bench.call(
            "load", f"--lab={self.dir}", *self.files, "--find-capacity", "--start-users", 60, "--warm-up", "5s",
            "--cool-down", "1s", "--repeats", 1, "--ramp", 50, "--format", "json", *words))

    def down(self):
        self.speed_up()
        self.bench.call("lab", "down", "--dir", self.dir)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()


@case
def distance(bench):
    """Packets are delayed; the baseline has 0.2 ms. A link delays a little more than requested, for its
    program has to wake up: the requested delay is reduced so that a ping takes what the change says."""
    with Lab(bench, wan="rtt=0.2ms") as lab:
        more_us = lab.trip_us() - 200
        bench.say(f"distance: the line is {more_us:.0f} us longer than asked")
        run = lab.load("distance-baseline")
    trips = {"2ms": 2_000, "20ms": 20_000, "200ms": 200_000}
    predicted = bench.predict("distance", run, [f"rtt={trip}" for trip in trips])
    for trip, us in trips.items():
        with Lab(bench, wan=f"rtt={us - more_us:.0f}us") as lab:
            bench.say(f"distance: rtt={trip}: {lab.trip_us():.0f} us")
            measured = bench.measured(lab.load(f"distance-{trip}"))
        bench.compare("distance", "homefolder", f"rtt={trip}", predicted[f"rtt={trip}"], measured)


@case
def storage(bench):
    """Calls of the file system take 1 ms, then twice and four times as long: a FUSE mount under the share, adjusted so
    that a stat takes exactly that. As the recorder inside Samba sees it."""
    changes = {"filesystem=0.5x": 2, "filesystem=0.25x": 4}
    with Lab(bench) as lab:
        # What the first run makes is in all listings from then on, and each entry is a call.
        lab.load("storage-settles")
        taken = lab.slow_down(0.001)
        bench.say(f"storage: a stat takes {1e6 * taken:.0f} us")
        _, inside = lab.record("storage-baseline")
        predicted = bench.predict("storage", inside, changes)
        for change, times in changes.items():
            lab.speed_up()
            slower = lab.slow_down(times * taken - (taken - 0.001))
            bench.say(f"storage: {change}: a stat takes {slower / taken:.2f} times as long")
            _, inside = lab.record(f"storage-{times}")
            bench.compare("storage", "homefolder, inside Samba", change, predicted[change], bench.measured(inside))


@case
def blocks(bench):
    """The same files in blocks of another size."""
    with Lab(bench, wan="rtt=2ms") as lab:
        run = lab.load("blocks-64KiB")
    sizes = ["4KiB", "16KiB", "1MiB"]
    predicted = bench.predict("blocks", run, [f"block={size}" for size in sizes])
    for size in sizes:
        with Lab(bench, wan="rtt=2ms") as lab:
            measured = bench.measured(lab.load(f"blocks-{size}", "--block", size))
        bench.compare("blocks", "homefolder, round trip 2 ms", f"block={size}", predicted[f"block={size}"], measured)


@case
def leases(bench):
    """What clients keep of directories: the load client's own caches, which the model never reads."""
    if not os.path.exists(os.path.join(bench.args.samba, "bin/smbd")):
        return bench.say(f"leases: skipped, there is no Samba 4.22 in {bench.args.samba} (scripts/samba-4.22.sh)")
    samba = ["--samba", bench.args.samba, "--directory-leases", "on"]
    with Lab(bench, wan="rtt=2ms", lab=samba) as lab:
        run = lab.load("leases-baseline")
    changes = {"dircache=collapse": "collapse", "dirlease": "dirlease"}
    predicted = bench.predict("leases", run, changes)
    for change, cache in changes.items():
        with Lab(bench, wan="rtt=2ms", lab=samba) as lab:
            measured = bench.measured(lab.load(f"leases-{cache}", "--client-cache", cache))
        bench.compare("leases", "homefolder, round trip 2 ms", change, predicted[change], measured)
        sent = [one for one in predicted[change] if one["of"] == "sent"]
        operations = next(one for one in measured if one["of"] == "operations")
        before, after = (sum(one[of] for one in sent) for of in ("count", "count_after"))
        bench.notes.append(
            f"{change}: of {before:,} operations {before - after:,} are predicted not to be sent; the clients sent "
            f"{before - operations['count']:,} less.")


SAVES = """
description = "Files that are written and flushed"
[pacing]
spacing = "slotted"
jitter = 0.5
[files.saved]
class = "volatile"
folders = ["Saved"]
name = "{{word}}-{{n}}.bin"
bytes = ["64 KiB", "96 KiB", "128 KiB", "160 KiB", "192 KiB", "224 KiB", "256 KiB"]
[scenarios.Save]
description = "a file is written from its beginning, and made stable"
runs_per_hour = 3600
files = {{ file = "saved" }}
steps = [
    {{ action = "opens", create = "{{file}}", handle = "file", access = "read_write", options = ["non_directory_file"] }},
    {{ action = "looks", query_info = "file", class = "FileStandardInformation" }},
    {{ action = "writes", write = "file", file = "file"{through} }},
    {{ action = "flushes", flush = "file" }},
    {{ action = "closes", close = "file" }},
]
"""


MOVES = """
description = "Files that are read and written in large blocks"
block = "1 MiB"
[pacing]
spacing = "slotted"
jitter = 0.5
[files.moved]
class = "volatile"
folders = ["Moved"]
name = "{word}-{n}.bin"
bytes = ["4 MiB"]
repeat = 2
[scenarios.Move]
description = "a file is read and written once more"
runs_per_hour = 1800
files = { file = "moved" }
steps = [
    { action = "opens", create = "{file}", handle = "file", access = "read_write", options = ["non_directory_file"] },
    { action = "looks", query_info = "file", class = "FileStandardInformation" },
    { action = "reads", read = "file", file = "file" },
    { action = "writes", write = "file", file = "file" },
    { action = "closes", close = "file" },
]
"""


LOOKS = """
description = "Folders are listed and files looked at"
[pacing]
spacing = "slotted"
jitter = 0.5
[files.seen]
class = "static"
folders = ["Seen"]
name = "{{word}}-{{n}}.bin"
bytes = ["4 KiB"]
repeat = 40
[scenarios.Look]
description = "the folder is listed, then a file is looked at"
runs_per_hour = 3600
files = {{ file = "seen" }}
steps = [
    {begin}
    {{ {lists}create = "{{file.dir}}", handle = "folder", access = "list", options = ["directory_file"] }},
    {{ {lists}query_directory = "folder", pattern = "*" }},
    {{ {lists}query_directory = "folder", pattern = "*", expect = "STATUS_NO_MORE_FILES" }},
    {{ {lists}close = "folder" }},
    {next}
    {{ {looks}create = "{{file}}", handle = "file", access = "read", options = ["non_directory_file"] }},
    {{ {looks}query_info = "file", class = "FileStandardInformation" }},
    {{ {looks}query_info = "file", class = "FileBasicInformation" }},
    {{ {looks}close = "file" }},
    {end}
]
"""


@case
def depth(bench):
    """Files of 1 MiB in blocks of 64 KiB, one request after the other, then several at once, and over several channels."""
    workload = bench.path("moves.toml")
    with open(workload, "w") as file:
        # So seldom that one ends before the next is due.
        file.write(MOVES.replace("4 MiB", "1 MiB").replace("runs_per_hour = 1800", "runs_per_hour = 600"))
    scale, bench.args.scale = bench.args.scale, "1"
    few, bench.args.users = bench.args.users, min(bench.args.users, 4)
    what = "files of 1 MiB, blocks of 64 KiB, round trip 20 ms"
    with Lab(bench, wan="rtt=20ms", load=["--workload", workload]) as lab:
        block = ["--block", "64KiB", "--depth"]
        one, eight = lab.load("depth-1", *block, 1), lab.load("depth-8", *block, 8)
        predicted = bench.predict("depth", one, ["depth=4", "depth=8"])
        again = bench.predict("depth-8", eight, ["depth=1", "channels=4"])
        whole = ["scenarios"], "_p50"
        bench.compare("depth", what, "depth=8", predicted["depth=8"], bench.measured(eight), *whole)
        bench.compare("depth", f"{what}, from 8", "depth=1", again["depth=1"], bench.measured(one), *whole)
        four = bench.measured(lab.load("depth-4", *block, 4))
        bench.compare("depth", what, "depth=4", predicted["depth=4"], four, *whole)
        channels = bench.measured(lab.load("depth-8-channels", *block, 8, "--channels", 4))
        bench.compare("depth", f"{what}, depth 8", "channels=4", again["channels=4"], channels, *whole)
    bench.args.scale, bench.args.users = scale, few


@case
def line(bench):
    """Files of 1 MiB over another line: slower, with losses, and between machines with small receive windows."""
    workload = bench.path("moves.toml")
    with open(workload, "w") as file:
        file.write(MOVES.replace("4 MiB", "1 MiB").replace("runs_per_hour = 1800", "runs_per_hour = 600"))
    scale, bench.args.scale = bench.args.scale, "1"
    few, bench.args.users = bench.args.users, min(bench.args.users, 4)
    what = "files of 1 MiB, blocks of 256 KiB, round trip 20 ms, 100 Mbit/s"
    block = ["--block", "256KiB"]

    def made(name, wan, window=None):
        with Lab(bench, wan=wan, load=["--workload", workload]) as lab:
            return (lab.limit_windows(window) if window else None), lab.load(f"line-{name}", *block)

    _, run = made("baseline", "rtt=20ms,rate=100mbit")
    changes = {"bandwidth=20mbit": "rtt=20ms,rate=20mbit", "loss=0.5%": "rtt=20ms,rate=100mbit,loss=0.5%"}
    predicted = bench.predict("line", run, changes)
    for change, wan in changes.items():
        _, changed = made(change, wan)
        bench.compare("line", what, change, predicted[change], bench.measured(changed), ["scenarios", "Read", "Write"])
    # What a socket announces of its buffer is the kernel's choice: it is looked up, and then predicted for.
    window, changed = made("window", "rtt=20ms,rate=100mbit", 128 << 10)
    change = f"window={window}"
    predicted = bench.predict("line-window", run, [change])
    bench.compare("line", what, change, predicted[change], bench.measured(changed), ["scenarios", "Read", "Write"])
    bench.args.scale, bench.args.users = scale, few


@case
def compounds(bench):
    """A listing and a look at a file, request by request and as compounds."""
    single = {"lists": 'action = "lists", ', "looks": 'action = "looks", ', "begin": "", "next": "", "end": ""}
    whole = {"lists": "", "looks": "", "begin": '{ action = "lists", compound = [',
             "next": ']}, { action = "looks", compound = [', "end": "]}"}
    runs = {}
    for name, words in (("single", single), ("compounds", whole)):
        workload = bench.path(f"{name}.toml")
        with open(workload, "w") as file:
            file.write(LOOKS.format(**words))
        with Lab(bench, wan="rtt=20ms", load=["--workload", workload]) as lab:
            runs[name] = lab.load(f"looks-{name}")
    for change, begin, end in (("compound=on", "single", "compounds"), ("compound=off", "compounds", "single")):
        predicted = bench.predict(f"looks-{begin}", runs[begin], [change])
        bench.compare("compounds", "listings and looks, round trip 20 ms", change, predicted[change],
                      bench.measured(runs[end]), ["scenarios"])


@case
def durable(bench):
    """Writes are flushed to a log that takes 3 ms; then they are write-through; then the log waits for a second one at a
    distance of 5 ms. As the recorder inside Samba sees it: a client cannot tell the flush from a write-through write."""
    workloads, scale = {}, bench.args.scale
    bench.args.scale = "1"
    for name, through in (("plain", ""), ("through", ", write_through = true")):
        workloads[name] = bench.path(f"{name}.toml")
        with open(workloads[name], "w") as file:
            file.write(SAVES.format(through=through))

    def run(name, workload, **flush):
        with Lab(bench, load=["--workload", workloads[workload]]) as lab:
            lab.slow_down(0.0, **flush)
            return lab.record(f"durable-{name}")[1]

    def compare(what, change, predicted, measured):
        measured = bench.measured(measured)
        groups = ["Write", "Flush", ("Write", "Flush")]
        bench.compare("durable", what, change, predicted[change], measured, groups, "_p50")

    plain, through = run("plain", "plain", log=0.003), run("through", "through", log=0.003)
    sync = "replication=sync,rtt=5ms"
    predicted = bench.predict("durable", plain, ["write-through=on", sync])
    off = "write-through=off"
    again = bench.predict("durable-through", through, [off, sync])
    what = "writes and Flushes, a log of 3 ms, inside Samba"
    compare(what, "write-through=on", predicted, through)
    compare(what, off, again, plain)
    compare(what, sync, predicted, run("far", "plain", log=0.003, distance=0.005))
    compare(what + ", write-through", sync, again, run("through-far", "through", log=0.003, distance=0.005))
    bench.args.scale = scale


@case
def behind(bench):
    """What is written is sent to a second server later, over a line of a program of its own."""
    rtt, rate, space = "20ms", "40mbit", "ssbehind"
    change = f"replication=async,rtt={rtt},bandwidth={rate}"
    workload = bench.path("saves.toml")
    with open(workload, "w") as file:
        file.write(SAVES.format(through=""))
    scale, bench.args.scale = bench.args.scale, "1"
    sent, had = bench.path("behind-sent"), bench.path("behind-had")
    with Lab(bench, load=["--workload", workload]) as lab:
        def made(name):
            end, _, place, _ = second_server(bench, rtt, rate, space, had)
            try:
                lab.slow_down(0.0, f"{space}-client", copy=place, sent_log=sent)
                return lab.load(name)
            finally:
                lab.speed_up()
                end()
        # The baseline's copies delay nothing, but take processors.
        predicted = bench.predict("behind", made("behind-baseline"), [change])[change]
        run = made("behind")
    bench.args.scale = scale
    what = "files of 64 to 256 KiB are written"
    bench.compare("behind", what, change, predicted, bench.measured(run))
    window = bench.objects("query", run, 'select started_at begin, ended_at "end" from steps')[0]
    truth = replica.lacks(sent, had, window["begin"], window["end"])
    told = next(one for one in predicted if one.get("at_risk_bytes"))
    told = [told[name] for name in ("at_risk_bytes", "at_risk_most_bytes", "at_risk_most_seconds")]
    for name, unit, one, real in zip(("on average", "at most", "behind"), ("kB", "kB", "s"), told, truth):
        scale = 1e3 if unit == "kB" else 1
        bench.notes.append(f"The second server lacks {name}: predicted {one / scale:,.3g} {unit}, measured {real / scale:,.3g} "
                           f"({100 * (one / real - 1):+.1f} %).")


def second_server(bench, rtt, rate, space, had):
    """A line of its own network namespaces with a second server behind it; gives what ends both, and a word for
    slowfs.py."""
    place = "10.46.0.2", 4460
    line = subprocess.Popen(
        [bench.smbscope, "wan", "--netns", space, "--subnet", "10.46.0.0/24", "--rtt", rtt, "--rate", rate],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    second = None

    def end():
        line.send_signal(signal.SIGINT)
        line.wait()
        if second:
            second.kill()
            second.wait()

    enter = lambda end: ["nsenter", f"--net=/run/netns/{space}-{end}"]
    try:
        ping = [*enter("client"), sys.executable, "-c", PING, place[0]]
        until = time.time() + 20
        while (pinged := subprocess.run(ping, capture_output=True, text=True, check=False)).returncode:
            if line.poll() is not None or time.time() > until:
                raise SystemExit("the line to the second server does not come up: smbscope wan --netns")
            time.sleep(0.2)
        for side in ("client", "server"):
            # Replication keeps its connection warm. BBR slows down now and then to measure the round trip (PROBE_RTT), which
            # the plan does not know.
            kept = ["net.ipv4.tcp_slow_start_after_idle=0", "net.ipv4.tcp_congestion_control=reno"]
            subprocess.run([*enter(side), "sysctl", "-qw", *kept], check=True)
        second = subprocess.Popen([*enter("server"), slowfs.program(), "replica", *map(str, place), had])
        time.sleep(0.5)
    except BaseException:
        end()
        raise
    return end, second, f"{place[0]}:{place[1]}", float(pinged.stdout) / 1e6


@case
def replicas(bench):
    """The same writes and Flushes with a second server behind lines of several round trips: synchronous (each Flush waits
    for the bytes and the second log, over the line), then asynchronous (with one outage of 4 s). Predicted by `plan
    replication` from a run recorded just before each, whose copies go over the same line and which waits for nothing, so that
    it includes the processor time of the emulated second server and link."""
    rate, space, outage, log = "100mbit", "ssreplica", 4, 0.003
    trips = ["0.2ms", "1ms", "2ms", "5ms", "10ms", "20ms"]
    workload = bench.path("saves.toml")
    with open(workload, "w") as file:
        file.write(SAVES.format(through=""))
    scale, bench.args.scale = bench.args.scale, "1"
    few, bench.args.users = bench.args.users, min(bench.args.users, 8)
    seconds = bench.args.seconds
    short = {"around": ("3s", "3s")}
    lines, points = [], []
    # After the warm-up, before the outage.
    quiet_s = 3 + seconds - outage - 1

    try:
        with Lab(bench, load=["--workload", workload], folder="/dev/shm") as lab:
            def made(name, trip, pause=True, **options):
                """A run with a second server, which stops for a while; gives the run, the logs, when it stopped, and the
                line's round trip."""
                sent, had = bench.path(f"{name}-sent"), bench.path(f"{name}-had")
                end, second, place, ping_s = second_server(bench, trip, rate, space, had)
                try:
                    lab.slow_down(0.0, f"{space}-client", log=log, copy=place, sent_log=sent, **options)
                    stopped = []
                    if pause:
                        def stop():
                            time.sleep(quiet_s)
                            stopped.append(time.time_ns())
                            second.send_signal(signal.SIGSTOP)
                            time.sleep(outage)
                            stopped.append(time.time_ns())
                            second.send_signal(signal.SIGCONT)
                        thread = threading.Thread(target=stop)
                        thread.start()
                    run = lab.load(name, **short)
                    if pause:
                        thread.join()
                        time.sleep(1)
                finally:
                    lab.speed_up()
                    end()
                return run, sent, had, stopped, ping_s

            for trip in trips:
                run, *_ = made(f"replicas-{trip}-baseline", trip, pause=False)
                sync_run, *_, sync_ping_s = made(f"replicas-{trip}-sync", trip, pause=False, sync=1)
                async_run, sent, had, stopped, ping_s = made(f"replicas-{trip}-async", trip)
                # A link delays a little more than requested: what a ping takes is what is given.
                given = f"{1e6 * sync_ping_s:.0f}us"
                words = ["plan", "replication", run, "--rtt", given, "--bandwidth", rate, "--format", "json"]
                plan = json.loads(bench.call(*words))["lines"][0]
                measured = bench.measured(sync_run)
                for group, of in (("commands", "Write"), ("commands", "Flush"), ("scenarios", "Save")):
                    row = next(one for one in plan["sync"][group] if one["name"] == of)
                    real = next(one for one in measured if of in (one["of"], one["name"]))
                    for figure in ("p50", "p95"):
                        predicted_s, real_s = row["after"][f"{figure}_ns"] / 1e9, real[f"before_{figure}_seconds"]
                        points.append((trip, f"sync, {of} {figure}", row["before"][f"{figure}_ns"] / 1e9, predicted_s, real_s, "ms", 1e3))
                quiet = stopped[0]
                begin = quiet - int((quiet_s - 3) * 1e9)
                link = ["--rtt", f"{1e6 * ping_s:.0f}us", "--bandwidth", rate, "--outage", f"{outage}s", "--format", "json"]
                period = ["--from", "3s", "--to", f"{quiet_s}s"]
                plan = json.loads(bench.call("plan", "replication", run, *link, *period))["lines"][0]
                found, risk = replica.risk(sent, had, begin, quiet), plan["at_risk"]
                for name, key, unit, factor in (("mean", "mean_bytes", "kB", 1e-3), ("p99", "p99_bytes", "kB", 1e-3),
                                                ("max", "max_bytes", "kB", 1e-3), ("behind", "max_ns", "ms", 1e3)):
                    value = risk[key] / 1e9 if name == "behind" else risk[key]
                    what = "recovery point, worst" if name == "behind" else f"at risk, {name}"
                    points.append((trip, f"async, {what}", None, value, found[name], unit, factor))
                # The worst moment of the made run; and what was really missing at the end of the outage.
                needed = replica.windows(sent, begin, quiet, outage)
                points.append((trip, f"log for {outage} s, worst", None, plan["outage"]["log_bytes"], needed, "kB", 1e-3))
                missing = replica.risk(sent, had, stopped[0], stopped[1])["max"]
                written = replica.windows(sent, stopped[0], stopped[1], (stopped[1] - stopped[0]) / 1e9)
                lines.append(f"| {trip} | {1e3 * ping_s:.2f} ms | {written / 1e3:,.0f} kB | {missing / 1e3:,.0f} kB |")
                bench.say(lines[-1])
                for point in points[-11:]:
                    bench.say("replicas: {} {}: predicted {:.3f}, measured {:.3f}: {:+.1f} %".format(
                        point[0], point[1], point[3] * point[6], point[4] * point[6], 100 * (point[3] / point[4] - 1)))
    finally:
        bench.args.scale, bench.args.users = scale, few
    table = ["", "| round trip | what | today | predicted | measured | error |", "|---|---|---|---|---|---|"]
    for trip, what, before, predicted, real, unit, factor in points:
        show = lambda value: "" if value is None else f"{value * factor:,.2f} {unit}"
        table.append(f"| {trip} | {what} | {show(before)} | {show(predicted)} | {show(real)} | {100 * (predicted / real - 1):+.1f} % |")
    bench.notes.append("\n".join(table))
    bench.notes.append("\n".join(["", "| round trip | ping | written in the outage | missing at its end |", "|---|---|---|---|", *lines]))


TURNS = 3
# Another guest of the host at work: a step with more is recorded again, so often at most.
STOLEN = "select avg(value) as stolen from counters where name = 'cpu_steal_percent'"
STOLEN_MOST = 0.5
TRIES = 3


@case
def protection(bench):
    """Files of 4 MiB are read and written by half of the users plain, by the others signed or encrypted at the same time:
    from one minute to the next this machine moves a MiB over loopback in 0.24 or 0.57 ms, which no prediction can know.
    What protection costs is calibrated just before, by `smbscope predict calibrate` on the same machine."""
    changes = {"signing=hmac-sha256": ["--signing", "hmac-sha256"], "signing=aes-cmac": ["--signing", "aes-cmac"],
               "signing=aes-gmac": ["--signing", "aes-gmac"], "encryption=aes-128-gcm": ["--encryption", "aes-128-gcm"],
               "encryption=aes-256-ccm": ["--encryption", "aes-256-ccm"]}
    workload = bench.path("moves.toml")
    with open(workload, "w") as file:
        file.write(MOVES)
    scale, bench.args.scale = bench.args.scale, "1"
    what = "reads and writes of 1 MiB, loopback"
    # Both need the processor most with the same request: on shared ones each would wait for the other's turn.
    with Lab(bench, load=["--workload", workload], lab=["--encrypt", "desired"], apart=True) as lab:
        plain = ["--signing", "off", "--encryption", "off"]
        # The first run after that is slower all the same.
        lab.load("protection-settles", *plain)
        for change, words in changes.items():
            kind, way = change.split("=")
            off = f"{kind}=off"
            # What is encrypted is not signed.
            other = ["--encryption", "off"] if "--signing" in words else []
            turns, back = [], []
            for turn in range(TURNS):
                name = f"{change}-{turn}"
                costs = bench.path(f"crypto-{name}.json")
                # What keeps the processors awake gets a turn of its own now and then, in the middle of an operation.
                bench.sleep()
                bench.call("predict", "calibrate", "--out", costs, "--quiet")
                bench.wake()
                with concurrent.futures.ThreadPoolExecutor() as both:
                    half = lambda number, run, *more: both.submit(lab.load, run, "--shard", f"{number}/2", *more)
                    runs = [half(1, f"protection-plain-{name}", *plain), half(2, f"protection-{name}", *words, *other)]
                    run, changed = [run.result() for run in runs]
                predicted = bench.predict(f"protection-{name}", run, [change], "--calibration", costs)
                turns.append((predicted[change], bench.measured(changed)))
                predicted = bench.predict(f"protection-{off}-{way}-{turn}", changed, [off], "--calibration", costs)
                back.append((predicted[off], bench.measured(run)))
            bench.compare_turns("protection", what, change, turns, ["Read", "Write"], "_p50")
            bench.compare_turns("protection", f"{what}, from {way}", off, back, ["Read", "Write"], "_p50")
    bench.args.scale = scale


@case
def hits(bench):
    """Half of all reads take 8 ms, then a tenth, then four fifths. As the recorder inside Samba sees it."""
    with Lab(bench) as lab:
        lab.slow_down(0.0, disk=0.008, misses=0.5)
        _, inside = lab.record("hits-baseline")
        changes = {"cache-hit=90%": 0.1, "cache-hit=20%": 0.8}
        predicted = bench.predict("hits", inside, changes)
        for change, misses in changes.items():
            lab.speed_up()
            lab.slow_down(0.0, disk=0.008, misses=misses)
            _, inside = lab.record(f"hits-{misses}")
            # A slow device of one thread is in the way of all other calls.
            measured = bench.measured(inside)
            bench.compare("hits", "homefolder, inside Samba", change, predicted[change], measured, ["Read"])


@case
def capacity(bench):
    """The users that the server carries, foretold from 60 of them, and from 60 and 120, against the search for them; and
    how long 120 and 180 wait, foretold from 60, and 180 from 60 and 120."""
    workload = bench.path("fast.toml")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/load/workloads/metadata.toml")
    with open(source) as file:
        text = re.sub(r"runs_per_hour = (\d+)", lambda found: f"runs_per_hour = {15 * int(found[1])}", file.read())
    with open(workload, "w") as file:
        file.write(text.replace("repeat = 400", "repeat = 80"))
    few, most = bench.args.users, 400
    bench.args.users = most
    try:
        # Processors that never sleep would look busy.
        bench.sleep()
        with Lab(bench, load=["--workload", workload]) as lab:
            same = ["--scale", bench.args.scale, "--workload", workload]
            def recorded(turn, users):
                lab.files = ["--users", str(users), *same]
                for _ in range(TRIES):
                    run = lab.load(f"capacity-{turn}-{users}", "--ramp", "50")
                    stolen = bench.objects("query", run, STOLEN)[0]["stolen"]
                    if stolen < STOLEN_MOST:
                        break
                    bench.say(f"{users} users: the host gave {stolen:.1f} % of the processors' time to others")
                return run

            limits, waits = {}, {}
            def foretold(turn, name, changes, *runs):
                today = bench.predict(f"{turn}, capacity from {name}", runs[0], [""], *runs[1:])
                limits.setdefault(name, []).append(next(one for one in today[""] if one["of"] == "capacity"))
                try:
                    return bench.predict(f"{turn}, users from {name}", runs[0], changes, *runs[1:])
                except SystemExit as refused:
                    # On a shared machine that number is too high.
                    bench.say(f"users: {refused}")
                    return {}

            recorded("settles", 60)
            # This machine's speed changes by a quarter from one minute to the next.
            for turn in range(1, TURNS + 1):
                first = recorded(turn, 60)
                changes = {"60": foretold(turn, "60", ["users=120", "users=180"], first)}
                second = recorded(turn, 120)
                changes["60 and 120"] = foretold(turn, "60 and 120", ["users=180"], first, second)
                measured = {"users=120": bench.measured(second), "users=180": bench.measured(recorded(turn, 180))}
                for name, predicted in changes.items():
                    for change, then in predicted.items():
                        waits.setdefault((name, change), []).append((then, measured[change]))
            for (name, change), turns in waits.items():
                for at in bench.AT:
                    what = f"metadata at 15 scenarios/s a user, from {name} users"
                    bench.compare_turns("capacity", what, change, turns, at=at, same=False)
            lab.files = ["--users", str(most), *same]
            found = lab.search("--max-users", most, "--duration", "30s")
    finally:
        bench.args.users = few
        bench.wake()
    with open(bench.path("capacity-found.json"), "w") as file:
        json.dump(found, file, indent=1)
    for name, turns in limits.items():
        bench.carried(f"metadata at 15 scenarios/s a user, foretold from {name} users", turns, found["answer"])


@case
def secured(bench):
    """The users that a server carries once it signs or encrypts, foretold from plain ones, against the search for
    them, and how long 60 of them wait then. Files of 4 MiB in memory: storage is not what runs out."""
    few, bench.args.users = bench.args.users, 240
    scale, bench.args.scale = bench.args.scale, "1"
    seconds, bench.args.seconds = bench.args.seconds, 25
    workload = bench.path("moves.toml")
    with open(workload, "w") as file:
        file.write(MOVES)
    try:
        # Processors that never sleep would look busy.
        bench.sleep()
        with Lab(bench, load=["--workload", workload], lab=["--encrypt", "desired"], folder="/dev/shm") as lab:
            files, plain = lab.files, ["--signing", "off", "--encryption", "off"]
            def recorded(name, users, *words):
                lab.files = ["--users", str(users), *files[2:]]
                return lab.load(f"secured-{name}", *words)

            recorded("settles", 60, *plain)
            run, costs = recorded("plain", 80, *plain), bench.path("secured-crypto.json")
            bench.call("predict", "calibrate", "--out", costs, "--quiet")
            ways = {"signing=aes-cmac": ["--signing", "aes-cmac", "--encryption", "off"],
                    "encryption=aes-256-ccm": ["--signing", "off", "--encryption", "aes-256-ccm"]}
            among = {change: f"{change} users=60" for change in ways}
            predicted = bench.predict("secured", run, [*ways, *among.values()], "--calibration", costs)
            for change, words in ways.items():
                measured = bench.measured(recorded(change, 60, *words))
                for at in bench.AT:
                    bench.compare("secured", "reads and writes of 1 MiB, from 80 plain users", among[change],
                                  predicted[among[change]], measured, ["scenarios"], at, same=False)
                lab.files = files
                found = lab.search("--max-users", 240, "--duration", "20s", *words)
                limit = next(one for one in predicted[change] if one["of"] == "capacity_then")
                bench.carried(f"reads and writes of 1 MiB, {change}, foretold from 80 plain users", [limit],
                              found["answer"])
    finally:
        bench.args.users, bench.args.scale, bench.args.seconds = few, scale, seconds
        bench.wake()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--case", default=",".join(CASES), help="which cases, with commas")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--scale", default="0.05")
    parser.add_argument("--samba", default=os.path.expanduser("~/.cache/smbscope/samba-4.22"),
                        help="a Samba with directory leases (scripts/samba-4.22.sh)")
    parser.add_argument("--keep", help="keep runs and predictions in this folder")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    unknown = [name for name in args.case.split(",") if name not in CASES]
    if unknown:
        raise SystemExit(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    if os.geteuid():
        raise SystemExit("root is needed, for network namespaces")
    folder = args.keep or tempfile.mkdtemp(prefix="smbscope-predict-")
    os.makedirs(folder, exist_ok=True)
    # Samba uses it as the user `nobody`.
    os.chmod(folder, 0o755)
    bench = Bench(args, folder)
    bench.wake()
    try:
        for name in args.case.split(","):
            CASES[name](bench)
    finally:
        bench.sleep()
        with open(bench.path("measured.json"), "w") as file:
            json.dump(bench.rows, file, indent=1)
        print(f"{args.users} users, scale {args.scale}, {args.seconds} s, Linux {platform.release()}\n")
        print("\n".join([bench.table(), *bench.notes]))
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
