#!/usr/bin/env python3
"""Records the fixtures of this folder and writes their truth: record.py [truth] (root; tracefs, perf, trace-cmd).

With `truth`, only the truth is written again.

loopback.ftrace.txt: `trace` of tracefs while a process sends UDP packets over loopback.
loopback.perf.txt: `perf script` of the same load, tracepoints and samples with call chains.
loopback.perf.data: `perf record` of the same load, without records and sections about other programs.
loopback.v6.dat, loopback.v7.dat: pages of the ring buffers of the same load, which `trace-cmd restore`
puts into a file, and `trace-cmd convert` into files of version 6, and of version 7 (zstd).
truth.json: counts and totals of them, by this script, which pairs lines by itself. The lines of
binary files are those of `perf script` and `trace-cmd report`.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
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
DATA_BYTES = 32_000
PAGES = 4


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


def with_events(events, read):
    """What `read` returns of an instance that recorded the load."""
    instance = TRACEFS / "instances" / "smbscope"
    instance.mkdir()
    try:
        for event in events:
            (instance / "events" / event / "enable").write_text("1")
        load(2)
        (instance / "tracing_on").write_text("0")
        return read(instance)
    finally:
        for event in events:
            (instance / "events" / event / "enable").write_text("0")
        instance.rmdir()


def ftrace():
    text = with_events(EVENTS, lambda instance: (instance / "trace").read_text())
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


def perf_record(data):
    events = [f"{event.replace('/', ':')}" for event in EVENTS if not event.startswith("sched")]
    command = ["perf", "record", "-q", "-a", "-o", data]
    for event in events:
        command += ["-e", event]
    command += ["-e", "cpu-clock/freq=199,call-graph=fp/k", "--", "sleep", "1"]
    sender = threading.Thread(target=load, args=(1.2,))
    sender.start()
    subprocess.run(command, check=True)
    sender.join()


def perf():
    data = "/dev/shm/smbscope-perf.data"
    perf_record(data)
    fields = "comm,pid,tid,cpu,time,period,event"
    command = ["perf", "script", "-i", data, "-F", f"trace:{fields},trace", "-F", f"sw:{fields},ip,sym,dso"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    os.remove(data)
    known = "swapper|ksoftirqd|kworker|rcu|python3|smb"
    text = re.sub(rf"^( *)(?!\s|{known})\S.*?( +\d+/\d+ +\[)", r"\1program\2", text, flags=re.M)
    text = text[: text.rfind("\n", 0, PERF_BYTES) + 1]
    (HERE / "loopback.perf.txt").write_text(text)


def perf_data():
    """Mappings of the kernel, samples and rounds; descriptions of tracepoints and processors."""
    name = "/dev/shm/smbscope-perf.data"
    perf_record(name)
    data = pathlib.Path(name).read_bytes()
    os.remove(name)
    attributes_at, attributes_size, at, size = struct.unpack_from("<4Q", data, 24)
    end, found = at + size, []
    while at < end:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        # A sample begins with the number of its event, address, process and thread, and time.
        time_ns = struct.unpack_from("<Q", data, at + 32)[0] if kind == 9 else 0
        if kind in (9, 68) or (kind in (1, 10) and misc & 7 == 1):
            found.append((time_ns, data[at:at + length]))
        at += length
    # Samples from the middle of the recording, in the order of the file.
    samples = sorted(one for one in found if one[0])
    samples = samples[len(samples) // 2:]
    window = set()
    for one in samples:
        if sum(len(record) for _, record in window) + len(one[1]) > DATA_BYTES:
            break
        window.add(one)
    records = b"".join(one[1] for one in found if not one[0] or one in window)
    bits = struct.unpack_from("<Q", data, 72)[0]
    sections, place = {}, end
    for feature in range(64):
        if bits >> feature & 1:
            sections[feature] = struct.unpack_from("<QQ", data, place)
            place += 16
    # Of the build ids, that of the kernel.
    kept = {feature: data[at:at + size] for feature, (at, size) in sections.items() if feature in (1, 7, 13, 14)}
    at, size = sections[2]
    while size:
        _, misc, length = struct.unpack_from("<IHH", data, at)
        if misc & 7 == 1:
            kept[2] = kept.get(2, b"") + data[at:at + length]
        at, size = at + length, size - length
    head = bytearray(data[:attributes_at + attributes_size])
    struct.pack_into("<QQ", head, 40, len(head), len(records))
    struct.pack_into("<4Q", head, 72, sum(1 << feature for feature in kept), 0, 0, 0)
    table, contents = b"", b""
    first = len(head) + len(records) + 16 * len(kept)
    for feature in sorted(kept):
        table += struct.pack("<QQ", first + len(contents), len(kept[feature]))
        contents += kept[feature]
    (HERE / "loopback.perf.data").write_bytes(bytes(head) + records + table + contents)


def trace_dat():
    """With the formats of the recorded events only, and without names of tasks and functions."""
    # Switches contain the names of programs.
    events = [event for event in EVENTS if not event.startswith("sched")]

    def pages(instance):
        found = []
        for cpu in range(os.cpu_count()):
            pipe = os.open(instance / f"per_cpu/cpu{cpu}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            found.append(b"")
            while len(found[cpu]) < PAGES * 4096:
                try:
                    page = os.read(pipe, 4096)
                except BlockingIOError:
                    break
                if len(page) < 4096:
                    break
                found[cpu] += page
            os.close(pipe)
        return found

    found = with_events(events, pages)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        folder = pathlib.Path(folder)
        for event in events + ["ftrace/function"]:
            (folder / "events" / event).mkdir(parents=True)
            shutil.copyfile(TRACEFS / "events" / event / "format", folder / "events" / event / "format")
        for file in ["events/header_page", "events/header_event", "trace_clock"]:
            shutil.copyfile(TRACEFS / file, folder / file)
        for file in ["printk_formats", "saved_cmdlines", "kallsyms"]:
            (folder / file).write_text("")
        files = []
        for cpu, raw in enumerate(found):
            files.append(folder / f"cpu{cpu}.raw")
            files[-1].write_bytes(raw)
        command = ["trace-cmd", "restore", "-c", "-t", folder, "-k", folder / "kallsyms", "-o", folder / "head.dat"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        command = ["trace-cmd", "restore", "-i", folder / "head.dat", "-o", folder / "trace.dat", *files]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for version, options in [("6", []), ("7", ["--compression", "zstd"])]:
            command = ["trace-cmd", "convert", "-i", folder / "trace.dat", "-o", HERE / f"loopback.v{version}.dat"]
            subprocess.run([*command, "--file-version", version, *options], check=True, stdout=subprocess.DEVNULL)


def text_of(path):
    """The lines of a trace."""
    if path.suffix == ".txt":
        return path.read_text()
    if path.suffix == ".dat":
        command = ["trace-cmd", "report", "-t", "-i", path]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    fields = "comm,pid,tid,cpu,time,period,event"
    command = ["perf", "script", "--ns", "--no-inline", "-i", path]
    command += ["-F", f"trace:{fields},trace", "-F", f"sw:{fields},ip,sym,dso"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def truth(path):
    """Counts and nanoseconds by name, for each softirq and irq; lines of other kinds."""
    stamp = re.compile(r"\[(\d+)\] .*?(\d+)\.(\d+): +(?:\d+ +)?(?:\w+:)?(\w[\w=,/-]*): ?(.*)")
    begun, names = {}, {}
    count, total, longest = (collections.Counter() for _ in range(3))
    polls, work, samples, frames, switches = 0, 0, 0, 0, 0
    for line in text_of(path).splitlines():
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
        perf_data()
        trace_dat()
    files = sorted(path for path in HERE.iterdir() if path.suffix in (".txt", ".data", ".dat"))
    (HERE / "truth.json").write_text(json.dumps({path.name: truth(path) for path in files}, indent=1) + "\n")


if __name__ == "__main__":
    main()
