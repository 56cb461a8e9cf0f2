#!/usr/bin/env python3
"""Records the fixtures of this folder and writes their truth: record.py [truth] (root; tracefs, perf).

With `truth`, only the truth is written again.

loopback.ftrace.txt: `trace` of tracefs while a process sends UDP packets over loopback.
loopback.perf.txt: `perf script` of the same load, tracepoints and samples with call chains.
truth.json: counts and totals of both, by this script, which pairs lines by itself.
"""

import collections
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).parent
TRACEFS = pathlib.Path(os.environ.get("TRACEFS", "/sys/kernel/tracing"))
EVENTS = [
    "irq/softirq_raise", "irq/softirq_entry", "irq/softirq_exit", "irq/irq_handler_entry",
    "irq/irq_handler_exit", "napi/napi_poll", "sched/sched_switch",
    "irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry", "irq_vectors/reschedule_exit",
]
FTRACE_LINES = 420
PERF_BYTES = 48_000


def load(seconds):
    """Packets over loopback, in bursts."""
    to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(4):
            sender.sendto(b"x" * 100, to.getsockname())
        time.sleep(0.02)


def anonymous(text):
    """Without the names of other programs on the machine."""
    text = re.sub(r"(comm=)(?!swapper|ksoftirqd|kworker|rcu|python3|perf)(.+?)(?= (prev|next)_pid)", r"\1program", text)
    return text


def ftrace():
    instance = TRACEFS / "instances" / "smbscope"
    instance.mkdir()
    try:
        for event in EVENTS:
            (instance / "events" / event / "enable").write_text("1")
        load(2)
        (instance / "tracing_on").write_text("0")
        text = (instance / "trace").read_text()
    finally:
        for event in EVENTS:
            (instance / "events" / event / "enable").write_text("0")
        instance.rmdir()
    head = [line for line in text.splitlines() if line.startswith("#")]
    # The count of written entries would say that the rest was lost.
    head = [line for line in head if "entries-in-buffer" not in line]
    body = [line for line in text.splitlines() if not line.startswith("#")]
    task = re.compile(r"^ *(.+)-(\d+) +\[")
    lines = []
    for line in body[200:200 + FTRACE_LINES]:
        comm, pid = task.match(line).groups()
        if not re.match(r"<idle>|swapper|ksoftirqd|kworker|rcu|python3", comm):
            line = task.sub(f"{'program':>16}-{pid} [", line, count=1)
        lines.append(anonymous(line))
    (HERE / "loopback.ftrace.txt").write_text("\n".join(head + lines) + "\n")


def perf():
    data = "/dev/shm/smbscope-perf.data"
    events = [f"{event.replace('/', ':')}" for event in EVENTS if not event.startswith("sched")]
    command = ["perf", "record", "-q", "-a", "-o", data]
    for event in events:
        command += ["-e", event]
    command += ["-e", "cpu-clock/freq=199,call-graph=fp/k", "--", "sleep", "1"]
    sender = threading.Thread(target=load, args=(1.2,))
    sender.start()
    subprocess.run(command, check=True)
    sender.join()
    fields = "comm,pid,tid,cpu,time,period,event"
    command = ["perf", "script", "-i", data, "-F", f"trace:{fields},trace", "-F", f"sw:{fields},ip,sym,dso"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    os.remove(data)
    known = "swapper|ksoftirqd|kworker|rcu|python3|smb"
    text = re.sub(rf"^( *)(?!\s|{known})\S.*?( +\d+/\d+ +\[)", r"\1program\2", text, flags=re.M)
    text = text[: text.rfind("\n", 0, PERF_BYTES) + 1]
    (HERE / "loopback.perf.txt").write_text(text)


def truth(path):
    """Counts and nanoseconds by name, for each softirq and irq; lines of other kinds."""
    stamp = re.compile(r"\[(\d+)\] .*?(\d+)\.(\d+): +(?:\d+ +)?(?:\w+:)?(\w[\w=,/-]*): ?(.*)")
    begun, names = {}, {}
    count, total, longest = (collections.Counter() for _ in range(3))
    polls, work, samples, frames, switches = 0, 0, 0, 0, 0
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        if re.match(r"\s+[0-9a-f]+ \S", line) and not stamp.search(line):
            frames += 1
            continue
        found = stamp.search(line)
        if not found:
            continue
        cpu, seconds, fraction, event, rest = found.groups()
        ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
        vector = re.search(r"(?:vec|irq|vector)=(\d+)", rest)
        key = (cpu, event.rsplit("_", 1)[0], vector and vector[1])
        if event.endswith("_entry"):
            begun[key] = ns
            name = re.search(r"action=(\w+)|name=(\S+)", rest)
            names[key] = name[name.lastindex] if name else key[1]
        elif event.endswith("_exit"):
            if key in begun:
                took = ns - begun.pop(key)
                count[names[key]] += 1
                total[names[key]] += took
                longest[names[key]] = max(longest[names[key]], took)
        elif event == "napi_poll":
            polls += 1
            work += int(re.search(r"work (\d+)", rest)[1])
        elif event.startswith("cpu-clock"):
            samples += 1
        elif event == "sched_switch":
            switches += 1
    by_name = {name: [count[name], total[name], longest[name]] for name in sorted(count)}
    return dict(by_name=by_name, polls=polls, work=work, samples=samples, frames=frames, switches=switches)


def main():
    if sys.argv[1:] != ["truth"]:
        ftrace()
        perf()
    files = sorted(HERE.glob("*.txt"))
    (HERE / "truth.json").write_text(json.dumps({path.name: truth(path) for path in files}, indent=1) + "\n")


if __name__ == "__main__":
    main()
