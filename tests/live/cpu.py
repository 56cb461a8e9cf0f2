#!/usr/bin/env python3
"""Records the processors of this machine under a flood, and compares with the kernel's counters: `make verify-cpu`.

    tests/live/cpu.py --smbscope PATH [--seconds 10] [--keep DIR]

Small UDP packets flood one CPU (a veth pair, or loopback where there are none) while a program keeps another one busy.
Meanwhile `smbscope record --cpu` runs, and within its time /proc/softirqs is read twice and bpftrace adds up the
durations of NET_RX. The number of NET_RX softirqs and their time must agree within 2 %, no event may be lost without a
counter, memory and own CPU are printed, and `smbscope report` must name the flooded CPU. Exit code 1 when something is
wrong. Needs root, bpftrace, and Python with duckdb.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

WITHIN = 0.02
MEMORY_MAX = 256 << 20
FLOODED = 0
GROUP, PORT, RECEIVERS = "239.18.0.1", 9009, 400
NAMESPACE, OUTSIDE, INSIDE = "smbscope-cpu", "smbscope-cpu0", "smbscope-cpu1"

BPFTRACE = """
BEGIN { @begin = nsecs; }
tracepoint:irq:softirq_entry /args->vec == 3/ { @start[cpu] = nsecs; }
tracepoint:irq:softirq_exit /args->vec == 3 && @start[cpu]/ {
    @count = count(); @time = sum(nsecs - @start[cpu]); delete(@start[cpu]);
}
interval:s:%d { @end = nsecs; exit(); }
END { clear(@start); }
"""


def flood(inside):
    """Sends small packets from one CPU until it is killed. Each goes to all receivers, so that a softirq takes a
    while: what a probe itself takes would else be a large part of it."""
    if inside:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/var/run/netns/{NAMESPACE}") as namespace:
            if libc.setns(namespace.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")
    os.sched_setaffinity(0, {FLOODED})
    os.nice(-10)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(inside or "127.0.0.1"))
    sender.connect((GROUP, PORT))
    while True:
        try:
            sender.send(b"x" * 18)
        except OSError:
            pass


def receivers(address):
    """Sockets that are never read."""
    sockets = []
    for _ in range(RECEIVERS):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        receiver.bind((GROUP, PORT))
        membership = socket.inet_aton(GROUP) + socket.inet_aton(address)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        sockets.append(receiver)
    return sockets


def hog():
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    while True:
        pass


def fork(function, *arguments):
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
        finally:
            os._exit(1)
    return child


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


def network():
    """Where receivers are, where the sender is: at both ends of a veth pair, or on loopback."""
    ip("netns", "del", NAMESPACE)
    made = (
        ip("netns", "add", NAMESPACE)
        and ip("link", "add", OUTSIDE, "type", "veth", "peer", "name", INSIDE, "netns", NAMESPACE)
        and ip("addr", "add", "198.18.0.1/30", "dev", OUTSIDE)
        and ip("link", "set", OUTSIDE, "up")
        and ip("-n", NAMESPACE, "addr", "add", "198.18.0.2/30", "dev", INSIDE)
        and ip("-n", NAMESPACE, "link", "set", INSIDE, "up")
    )
    if made:
        return "198.18.0.1", "198.18.0.2", "a veth pair"
    ip("netns", "del", NAMESPACE)
    return "127.0.0.1", None, "loopback"


def net_rx():
    with open("/proc/softirqs") as file:
        line = next(line for line in file if line.split(":")[0].strip() == "NET_RX")
    return sum(int(count) for count in line.split(":")[1].split())


def net_rx_now():
    """The counter, and when it had that value: this program may be interrupted in between."""
    for _ in range(1000):
        before = time.time_ns()
        count = net_rx()
        after = time.time_ns()
        if after - before < 1_000_000:
            break
    return (before + after) // 2, count


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return {line.split(":")[0]: int(line.split()[1]) << 10 for line in file if line.startswith(("VmHWM", "RssAnon"))}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bpftrace_map(text, name):
    found = re.search(rf"@{name}: (\d+)", text)
    if not found:
        sys.exit(f"bpftrace printed no @{name}:\n{text}")
    return int(found.group(1))


def record(arguments, folder):
    """Records, and measures the same with other tools within that time."""
    command = [arguments.smbscope, "record", "--cpu", "--no-probe", "--out", folder, *arguments.option]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    seen, said = {"anon": 0}, []
    try:
        while not said or not said[-1].startswith("recording"):
            said.append(recorder.stderr.readline())
            if not said[-1]:
                sys.exit(f"smbscope record ended:\n{''.join(said)}")
        time.sleep(1)
        own = cpu_seconds(recorder.pid), time.monotonic()
        tracer = subprocess.Popen(
            ["bpftrace", "-e", BPFTRACE % arguments.seconds], stdout=subprocess.PIPE, text=True
        )
        time.sleep(1)
        seen["counter"] = net_rx_now()
        for _ in range(max(1, 2 * (arguments.seconds - 2))):
            time.sleep(0.5)
            seen["anon"] = max(seen["anon"], resident(recorder.pid)["RssAnon"])
        seen["counter_end"] = net_rx_now()
        seen["bpftrace"] = tracer.communicate(timeout=60)[0]
        now = cpu_seconds(recorder.pid), time.monotonic()
        seen["own"] = (now[0] - own[0]) / (now[1] - own[1])
        seen["peak"] = resident(recorder.pid)["VmHWM"]
    finally:
        recorder.send_signal(signal.SIGINT)
        seen["said"] = "".join(said) + recorder.communicate(timeout=60)[1]
    if recorder.returncode != 0:
        sys.exit(f"smbscope record ended with {recorder.returncode}:\n{seen['said']}")
    # Rows have the time of day, bpftrace the monotonic clock.
    seen["offset"] = time.time_ns() - time.monotonic_ns()
    return seen


def apart(ours, theirs):
    return abs(ours - theirs) / theirs if theirs else float("inf")


def compare(arguments, folder, seen):
    import duckdb

    wrong = []

    def check(is_right, text):
        print(("ok     " if is_right else "WRONG  ") + text)
        if not is_right:
            wrong.append(text)

    rows = f"'{folder}/interrupts/*.parquet'"
    select = f"select count(*), sum(duration_ns) from {rows} where kind = 'softirq' and name = 'NET_RX'"

    def between(column, begin, end):
        return duckdb.sql(f"{select} and epoch_ns({column}) between {begin} and {end}").fetchall()[0]

    (begin, before), (end, after) = seen["counter"], seen["counter_end"]
    ours, theirs = between("start", begin, end)[0], after - before
    difference = apart(ours, theirs)
    check(difference <= WITHIN, f"NET_RX softirqs: {ours:,} rows, /proc/softirqs {theirs:,} ({difference:.2%} apart)")

    begin, end = [bpftrace_map(seen["bpftrace"], name) + seen["offset"] for name in ("begin", "end")]
    count, duration = between("start", begin, end)
    theirs = bpftrace_map(seen["bpftrace"], "time")
    print(f"       bpftrace: {bpftrace_map(seen['bpftrace'], 'count'):,} NET_RX, {count:,} rows in its time")
    difference = apart(duration, theirs)
    check(
        difference <= WITHIN,
        f"NET_RX time: {duration / 1e9:.4f} s in rows, bpftrace {theirs / 1e9:.4f} s ({difference:.2%} apart)",
    )
    columns = "events, events_lost, samples, starts_unmatched, ends_unmatched, notes"
    trace = duckdb.sql(f"select {columns} from '{folder}/traces/*.parquet' where ended_at is not null").fetchall()[0]
    events, lost, samples, starts, ends, notes = trace
    by_cpu = duckdb.sql(f"select cpu, events, events_lost from '{folder}/cpus/*.parquet' order by cpu").fetchall()
    print(f"       {events:,} events, {samples:,} samples; {starts} and {ends} without end or beginning")
    print(f"       lost {lost:,}; CPU, events, lost: {by_cpu}")
    check(lost == sum(row[2] for row in by_cpu), "lost events are counted for each CPU")
    print(f"       {notes}")
    check(seen["anon"] <= MEMORY_MAX, f"memory: {seen['anon'] >> 20} MiB of its own, peak {seen['peak'] >> 20} MiB in total")
    print(f"       own CPU without BPF programs: {seen['own']:.2%} of a CPU")
    report = subprocess.run(
        [arguments.smbscope, "report", folder, "--format", "json"], capture_output=True, text=True, check=True
    )
    cpus = json.loads(report.stdout)["processors"]
    busiest = max(cpus, key=lambda cpu: cpu["deferred_ns"] + cpu["interrupt_ns"])
    check(busiest["cpu"] == FLOODED, f"the report's busiest CPU is {busiest['cpu']}")
    text = subprocess.run([arguments.smbscope, "report", folder], capture_output=True, text=True, check=True).stdout
    verdict = "\n".join(text.splitlines()[:6])
    check(re.search(rf"CPUs? {FLOODED}\b", verdict) is not None, "the report names it")
    print("\n" + verdict)
    return wrong


def killed(arguments, folder):
    """A recorder that is killed leaves a recording that lacks its last seconds."""
    command = [arguments.smbscope, "record", "--cpu", "--no-probe", "--quiet", "--out", folder]
    recorder = subprocess.Popen(command)
    time.sleep(14)
    recorder.kill()
    recorder.wait()
    report = subprocess.run(
        [arguments.smbscope, "report", folder, "--format", "json"], capture_output=True, text=True, check=True
    )
    length = json.loads(report.stdout)["length_ns"] / 1e9
    is_right = 3 < length < 14
    print(("ok     " if is_right else "WRONG  ") + f"killed after 14 s, it has {length:.1f} s")
    return [] if is_right else ["killed"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--smbscope", required=True)
    options.add_argument("--seconds", type=int, default=10)
    options.add_argument("--keep", help="keep the recording here")
    options.add_argument("--option", action="append", default=[], help="one more option of smbscope record")
    arguments = options.parse_args()
    if os.geteuid() != 0 or not shutil.which("bpftrace"):
        print("skipped 1 test: it needs root and bpftrace")
        return 0
    scratch = tempfile.mkdtemp(prefix="smbscope-cpu-")
    folder = arguments.keep or os.path.join(scratch, "run")
    outside, inside, what = network()
    print(f"flooding CPU {FLOODED} through {what}, hog on CPU {os.cpu_count() - 1}, for {arguments.seconds} s")
    kept = receivers(outside)
    children = [fork(flood, inside), fork(hog)]
    try:
        seen = record(arguments, folder)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for receiver in kept:
            receiver.close()
        ip("netns", "del", NAMESPACE)
    print(seen["said"])
    wrong = compare(arguments, folder, seen) + killed(arguments, os.path.join(scratch, "killed"))
    shutil.rmtree(scratch, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
