#!/usr/bin/env python3
"""Records the fixtures of this folder and writes their truth: record.py [truth] (root; tracefs, perf, trace-cmd, babeltrace2).

With `truth`, only the truth is written again.

loopback.ftrace.txt: `trace` of tracefs while a process sends UDP packets over loopback.
loopback.perf.txt: `perf script` of the same load, tracepoints and samples with call chains.
loopback.perf.data: `perf record` of the same load, without records and sections about other programs.
loopback.v6.dat, loopback.v7.dat: pages of the ring buffers of the same load, which `trace-cmd restore`
puts into a file, and `trace-cmd convert` into files of version 6, and of version 7 (zstd).
loopback.ctf: the events of loopback.ftrace.txt as LTTng 2.13 would write them, by this script.
loopback.ctf2.metadata: metadata of the same streams as LTTng 2.16 writes it (CTF 2), by this script.
truth.json: counts and totals of them, by this script, which pairs lines by itself. The lines of
binary files are those of `perf script`, `trace-cmd report` and `babeltrace2`.
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
    # Only the build id of the kernel.
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


# Numbers of events, those of 31 and more with the long header, and their fields.
CTF_EVENTS = {
    "irq_softirq_raise": (1, "I:vec"), "irq_softirq_entry": (2, "I:vec"), "irq_softirq_exit": (3, "I:vec"),
    "irq_handler_entry": (4, "i:irq s:name"), "irq_handler_exit": (5, "i:irq i:ret"),
    "napi_poll": (6, "Q:napi s:dev_name i:work i:budget"),
    "x86_irq_vectors_local_timer_entry": (40, "i:vector"), "x86_irq_vectors_local_timer_exit": (41, "i:vector"),
    "x86_irq_vectors_reschedule_entry": (42, "i:vector"), "x86_irq_vectors_reschedule_exit": (43, "i:vector"),
    "sched_switch": (44, "c:prev_comm i:prev_tid i:prev_prio q:prev_state c:next_comm i:next_tid i:next_prio"),
}
CTF_TYPES = {
    "I": "integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } _%s;",
    "i": "integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _%s;",
    "Q": "integer { size = 64; align = 8; signed = 0; encoding = none; base = 16; } _%s;",
    "q": "integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; } _%s;",
    "s": "string _%s;",
    "c": "integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; } _%s[16];",
}
CTF_METADATA = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { domain = "kernel"; kernel_release = "6.18.0"; tracer_name = "lttng-modules"; };
clock { name = "monotonic"; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_t;
struct packet_context {
	uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end;
	uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num;
	unsigned long events_discarded; uint32_t cpu_id;
};
struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct { uint27_clock_t timestamp; } compact;
		struct { uint32_t id; uint64_clock_t timestamp; } extended;
	} v;
} align(8);
stream { id = 0; event.header := struct event_header_compact; packet.context := struct packet_context; };
"""
CTF_PACKET_BYTES = 4096


def ctf2_integer(bits, role=None, alignment=8, signed=False, base=10, **more):
    """An integer as LTTng 2.16 describes it."""
    one = {"alignment": alignment, "byte-order": "little-endian", "length": bits, "preferred-display-base": base, **more}
    if role:
        one["roles"] = [role]
    return one | {"type": f"fixed-length-{'signed' if signed else 'unsigned'}-integer"}


def ctf2_structure(**members):
    classes = [{"field-class": member, "name": name} for name, member in members.items()]
    return {"member-classes": classes, "type": "structure"}


CTF2_TYPES = {
    "I": ctf2_integer(32), "i": ctf2_integer(32, signed=True), "Q": ctf2_integer(64, base=16),
    "q": ctf2_integer(64, signed=True), "s": {"type": "null-terminated-string"},
    "c": {"length": 16, "type": "static-length-string"},
}
CTF2_TIME = "default-clock-timestamp"
CTF2_FRAGMENTS = [
    {"type": "preamble", "version": 2},
    {
        "environment": {"domain": "kernel", "kernel_release": "6.18.0", "tracer_name": "lttng-modules"},
        "namespace": "lttng.org,2009",
        "packet-header-field-class": ctf2_structure(
            magic=ctf2_integer(32, "packet-magic-number", base=16), stream_id=ctf2_integer(32, "data-stream-class-id"),
        ),
        "type": "trace-class",
    },
    {
        "frequency": 10**9, "id": "monotonic", "name": "monotonic",
        "offset-from-origin": {"cycles": 0, "seconds": 1_700_000_000}, "origin": "unix-epoch", "type": "clock-class",
    },
    {
        "default-clock-class-id": "monotonic", "id": 0,
        "event-record-header-field-class": ctf2_structure(
            id=ctf2_integer(5, "event-record-class-id", 1, mappings={"compact": [[0, 30]], "extended": [[31, 31]]}),
            v={
                "options": [
                    {
                        "field-class": ctf2_structure(timestamp=ctf2_integer(27, CTF2_TIME, 1)),
                        "name": "compact", "selector-field-ranges": [[0, 30]],
                    },
                    {
                        "field-class": ctf2_structure(
                            id=ctf2_integer(32, "event-record-class-id"), timestamp=ctf2_integer(64, CTF2_TIME),
                        ),
                        "name": "extended", "selector-field-ranges": [[31, 31]],
                    },
                ],
                "selector-field-location": {"origin": "event-record-header", "path": ["id"]}, "type": "variant",
            },
        ) | {"minimum-alignment": 8},
        "packet-context-field-class": ctf2_structure(
            timestamp_begin=ctf2_integer(64, CTF2_TIME),
            timestamp_end=ctf2_integer(64, "packet-end-default-clock-timestamp"),
            content_size=ctf2_integer(64, "packet-content-length"),
            packet_size=ctf2_integer(64, "packet-total-length"),
            packet_seq_num=ctf2_integer(64, "packet-sequence-number"),
            events_discarded=ctf2_integer(64, "discarded-event-record-counter-snapshot"),
            cpu_id=ctf2_integer(32),
        ),
        "type": "data-stream-class",
    },
]


def ctf2():
    fragments = list(CTF2_FRAGMENTS)
    for name, (number, fields) in CTF_EVENTS.items():
        members = {field: CTF2_TYPES[kind] for kind, field in (one.split(":") for one in fields.split())}
        fragments.append({
            "data-stream-class-id": 0, "id": number, "name": name,
            "payload-field-class": ctf2_structure(**members), "type": "event-record-class",
        })
    text = "".join("\x1e" + json.dumps(fragment, indent=1) + "\n" for fragment in fragments)
    (HERE / "loopback.ctf2.metadata").write_text(text)


SOFTIRQS = "HI TIMER NET_TX NET_RX BLOCK IRQ_POLL TASKLET SCHED HRTIMER RCU".split()
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "P": 64, "I": 128, "R+": 256}


def ctf():
    metadata, streams = CTF_METADATA, {}
    for name, (number, fields) in CTF_EVENTS.items():
        lines = "".join("\t\t" + CTF_TYPES[kind] % field + "\n" for kind, field in (one.split(":") for one in fields.split()))
        metadata += f'event {{\n\tname = "{name}"; id = {number}; stream_id = 0;\n\tfields := struct {{\n{lines}\t}};\n}};\n'
    for line in (HERE / "loopback.ftrace.txt").read_text().splitlines():
        found = re.search(r"\[(\d+)\] \S+ +(\d+)\.(\d+): (\w+): (.*)", line)
        if line.startswith("#") or not found:
            continue
        cpu, seconds, fraction, event, rest = found.groups()
        time_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
        prefix = "irq_" if event.startswith("softirq") else "x86_irq_vectors_"
        event = event if event in CTF_EVENTS else prefix + event
        values = dict(re.findall(r"(\w+)=(.*?)(?= \w+=| ==>|$)", rest))
        values = {key.replace("_pid", "_tid"): value.split(" [")[0] for key, value in values.items()}
        values |= dict(zip(["dev_name", "work", "budget"], re.findall(r"(?:device|work|budget) (\S+)", rest)))
        number, fields = CTF_EVENTS[event]
        body = b""
        for kind, field in (one.split(":") for one in fields.split()):
            value = values.get(field, "0")
            if kind in "sc":
                body += value.encode()[:15].ljust(16, b"\0") if kind == "c" else value.encode() + b"\0"
            else:
                body += struct.pack("<" + kind, STATES.get(value) if field == "prev_state" else int(value) if value.isdigit() else 1)
        if number < 31:
            head = struct.pack("<I", number | (time_ns & 0x7ffffff) << 5)
        else:
            head = struct.pack("<BIQ", 31, number, time_ns)
        packets = streams.setdefault(int(cpu), [])
        if not packets or len(packets[-1][1]) + len(head + body) > CTF_PACKET_BYTES - 64 or time_ns - packets[-1][2] >= 1 << 27:
            packets.append([time_ns, b"", time_ns])
        packets[-1][1] += head + body
        packets[-1][2] = time_ns
    folder = HERE / "loopback.ctf"
    folder.mkdir(exist_ok=True)
    (folder / "metadata").write_text(metadata)
    for cpu, packets in streams.items():
        written = b""
        for number, (begin, body, end) in enumerate(packets):
            size = 8 + 48 + 4 + len(body)
            packet = struct.pack("<II6QI", 0xC1FC1FC1, 0, begin, end, 8 * size, 8 * CTF_PACKET_BYTES, number, 0, cpu)
            written += (packet + body).ljust(CTF_PACKET_BYTES, b"\0")
        (folder / f"channel0_{cpu}").write_bytes(written)


def ctf_lines(text):
    """Lines of babeltrace2 in the form of tracefs."""
    for line in text.splitlines():
        found = re.search(r"timestamp = (\d+)\.(\d+), .*?name = (\w+), .*?cpu_id = (\d+).*?event.fields = \{(.*)\}", line)
        seconds, fraction, event, cpu, fields = found.groups()
        event = event.removeprefix("x86_irq_vectors_").replace("irq_softirq", "softirq")
        fields = re.sub(r'(\w+) = "?([^",]*)"?,?', r"\1=\2", fields).strip()
        fields = re.sub(r"vec=(\d+)", lambda vec: f"{vec[0]} [action={SOFTIRQS[int(vec[1])]}]", fields)
        fields = fields.replace("work=", "work ")
        yield f"x-0 [{cpu}] d... {seconds}.{fraction}: {event}: {fields}"


def text_of(path):
    """The lines of a trace."""
    if path.is_dir():
        command = ["babeltrace2", "--names=all", "--no-delta", "--clock-seconds", path]
        return "\n".join(ctf_lines(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
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
        ctf()
        ctf2()
    files = sorted(path for path in HERE.iterdir() if path.suffix in (".txt", ".data", ".dat", ".ctf"))
    (HERE / "truth.json").write_text(json.dumps({path.name: truth(path) for path in files}, indent=1) + "\n")


if __name__ == "__main__":
    main()
