#!/usr/bin/env python3
"""Records the benchmarks' captures from a private Samba: captures.py FOLDER

Owns: the two workloads, their rate, what must be in the captures. Not: server,
link and recorder (tests/samba/lab.py). Started by captures.sh.

The link is a veth pair at MTU 1500 with all offloads off, each direction
limited by a token bucket, so that the recorder keeps up; a capture from which
the recorder lost a packet is thrown away and the program fails. A
capture with retransmissions is recorded again, a few times: after a loss on the
way tshark with its default settings counts fewer operations than there were.
"""

import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "samba"))
import lab

ADDRESS = "10.45.0.1"
RATE = "300mbit"
# of the namespaces, not of the machine: windows that no queue of the link overflows from, and
# no tail loss probes, which a delayed acknowledgement on so short a link always sets off
SETTINGS = {"tcp_rmem": "4096 65536 131072", "tcp_early_retrans": "0"}
ATTEMPTS = 3
BUFFER_KIB = 256 * 1024
MIN_BYTES = {"bulk": 1_000_000_000, "metadata": 300_000_000}
MIN_OPERATIONS = {"bulk": 1, "metadata": 500_000}
BULK_CLIENTS, BULK_FILE_MIB = 4, 125
METADATA_CLIENTS, METADATA_ROUNDS = 8, 2000
CONTENTION_CONNECTIONS, CONTENTION_S = 4, 16
DIRECTORIES, FILES = 8, 40  # of each client


def main():
    folder = os.path.abspath(sys.argv[1])
    lab.require("smbd", "pdbedit", "smbclient", "smbtorture", "tshark", "tcpdump", "ip", "ethtool",
                "tc", "unshare", "nsenter")
    lab.enter_namespaces()
    server_end, _, holder = lab.veth_pair()
    for prefix, name in ((server_end, "vserver"), ([], "vclient")):
        subprocess.run(prefix + ["tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", RATE,
                                 "burst", "64kb", "limit", "16mb"], check=True)
        for setting, value in SETTINGS.items():
            subprocess.run(prefix + ["tee", "/proc/sys/net/ipv4/" + setting], input=value,
                           text=True, stdout=subprocess.DEVNULL, check=True)
    facts = []
    for name, workload, options in (("bulk", bulk, {"smb2 max read": "65536",
                                                    "smb2 max write": "65536"}),
                                    ("metadata", metadata, {})):
        for attempt in range(ATTEMPTS):
            work = tempfile.mkdtemp(prefix="smbscope-bench-")
            try:
                retransmissions, recorder, seconds = record(folder, work, name, workload, options,
                                                            server_end)
            finally:
                shutil.rmtree(work, ignore_errors=True)
            if not retransmissions:
                break
            print(f"{name}: {retransmissions} segments sent twice, attempt {attempt + 1}")
        facts.append(accept(folder, name, retransmissions, recorder, seconds))
    holder.kill()
    holder.wait()
    with open(os.path.join(folder, "captures.txt"), "w") as f:
        f.write("\n".join(facts))
    print("\n".join(facts))


def record(folder, work, name, workload, options, server_end):
    """Records one capture to its partial name."""
    options = dict(options, **{"log level": "0", "debug encryption": "no"})
    before = retransmitted(server_end)
    with lab.Samba(work, options, interfaces=ADDRESS + "/24", enter=server_end) as samba:
        with lab.Recorder(partial(folder, name), samba.port, "vserver", enter=server_end,
                          buffer_kib=BUFFER_KIB) as recorder:
            started = time.time()
            workload(samba, work)
            seconds = time.time() - started
    return retransmitted(server_end) - before, recorder, seconds


def accept(folder, name, retransmissions, recorder, seconds):
    """Gives a large enough capture its final name and returns what is in it."""
    capture = partial(folder, name)
    count = operations(capture)
    size, total = os.path.getsize(capture), sum(count.values())
    if size < MIN_BYTES[name] or total < MIN_OPERATIONS[name]:
        os.unlink(capture)
        sys.exit(f"{name}: too small, {size} bytes, {total} operations")
    os.chmod(capture, 0o644)
    os.rename(capture, os.path.join(folder, name + ".pcap"))
    lines = [f"{name}.pcap", f"  bytes\t{size}", f"  packets\t{recorder.packets}",
             "  lost by the recorder\t0", f"  segments retransmitted\t{retransmissions}",
             f"  recorded in\t{seconds:.0f} s at {RATE}/s",
             f"  operations answered (tshark -z smb2,srt)\t{total}"]
    lines += [f"    {command}\t{n}" for command, n in count.most_common()]
    return "\n".join(lines) + "\n"


def partial(folder, name):
    return os.path.join(folder, f".{name}.partial.pcap")


def retransmitted(server_end):
    """Segments that either end of the link has retransmitted so far."""
    total = 0
    for prefix in (server_end, []):
        lines = subprocess.run(prefix + ["cat", "/proc/self/net/snmp"], capture_output=True,
                               text=True, check=True).stdout.splitlines()
        names, values = [line.split() for line in lines if line.startswith("Tcp:")]
        total += int(values[names.index("RetransSegs")])
    return total


def smbclient(samba, work, commands):
    """Starts an smbclient that reads its commands from a file."""
    script = tempfile.NamedTemporaryFile("w+", dir=work)
    script.writelines(line + "\n" for line in commands)
    script.seek(0)
    return subprocess.Popen(
        ["smbclient", f"//{ADDRESS}/home", "-s", samba.conf, "-U", "alice%" + lab.PASSWORD],
        stdin=script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=work)


def bulk(samba, work):
    """Each client writes a file and reads it again, 64 KiB a request."""
    block = random.Random(1).randbytes(1 << 20)
    with open(os.path.join(work, "large.bin"), "wb") as f:
        for _ in range(BULK_FILE_MIB):
            f.write(block)
    clients = [smbclient(samba, work, (f"put large.bin large{n}.bin",
                                       f"get large{n}.bin /dev/null", f"del large{n}.bin"))
               for n in range(BULK_CLIENTS)]
    for one in clients:
        one.wait()


def metadata(samba, work):
    """People that look around and change little things, and opens in contention."""
    with open(os.path.join(work, "small.txt"), "w") as f:
        f.write("a small file\n" * 40)
    clients = [smbclient(samba, work, person(n)) for n in range(METADATA_CLIENTS)]
    subprocess.run(["smbtorture", f"//{ADDRESS}/home", "smb2.bench.path-contention-shared",
                    "-s", samba.conf, "-U", "alice%" + lab.PASSWORD,
                    f"--option=torture:timelimit={CONTENTION_S}",
                    f"--option=torture:nprocs={CONTENTION_CONNECTIONS}",
                    "--option=torture:qdepth=2"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for one in clients:
        one.wait()


def person(n):
    """The commands of one smbclient, the same at every run."""
    rnd = random.Random(n)
    yield from (f"mkdir home{n}", f"cd home{n}")
    for d in range(DIRECTORIES):
        yield f"mkdir d{d}"
        for k in range(FILES):
            yield f"put small.txt d{d}/file{k}.txt"
    for r in range(METADATA_ROUNDS):
        d, k = rnd.randrange(DIRECTORIES), rnd.randrange(FILES)
        yield f"ls d{d}/*"
        yield f"allinfo d{d}/file{k}.txt"
        yield f"get d{d}/file{k}.txt /dev/null"
        yield f"put small.txt d{d}/new.txt"
        yield f"rename d{d}/new.txt d{d}/renamed.txt"
        yield f"del d{d}/renamed.txt"
        if r % 4 == 0:
            yield f"get d{d}/missing.txt /dev/null"
            yield f"mkdir d{d}/sub"
            yield f"rmdir d{d}/sub"
            yield "ls *"


def operations(capture):
    """Answered operations by command, from tshark's service response time table.

    The recorder may see two segments in the other order (two CPUs handle them);
    with its default setting tshark then misses messages."""
    said = subprocess.run(["tshark", "-n", "-q", "-o", "tcp.reassemble_out_of_order:TRUE",
                           "-r", capture, "-z", "smb2,srt"],
                          capture_output=True, text=True).stdout
    count = collections.Counter()
    for line in said.splitlines():
        row = re.match(r"\s*\d+\s+(\S.*?)\s+(\d+)\s+\d+\.\d+\s", line)
        if row:
            count[row[1]] += int(row[2])
    return count


if __name__ == "__main__":
    main()
