#!/usr/bin/env python3
"""Provokes each finding of `smbscope explain`: `make verify-findings`.

    tests/findings/lab.py --smbscope PATH [--case small-reads ...] [--markdown] [--keep DIR] [--record-fixtures]

The cases are here, in waits.py and in hangs.py. Each is made twice on a private Samba: so that it shows the trouble, and so that it nearly does (`NAME-not`). What
`smbscope explain` says of the capture is compared with what was done: the trouble comes first, with 5 % of the time
or more, and no other that was not made has more than 10 %; the near miss does not show the trouble. Exit code 1 when
something is wrong. Needs root. Python's standard library only (slowfs.c needs libfuse 3).
"""

import argparse
import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import bench as benches
import client as smb
import hangs  # its cases
import waits  # its cases
from client import raw
from suite import CASES, FAR, HEADERS, case, in_order, together

LEAST, OTHERS = 0.05, 0.10
FIXTURES = os.path.join(benches.HERE, "../fixtures/findings")
TERMINATED = 143
USER_SESSION_DELETED = 0xC0000203


@case("healthy", nothing=True, misses=False)
def healthy(bench, _):
    """Files are opened and asked about in one message, read or written in one block or several at once, and closed."""
    with bench.lab(FAR) as lab:
        names = lab.names(25, 60_000)
        large = lab.file("large.bin", 1 << 20)
        with lab.capture():
            one = lab.client()
            one.chain(*smb.listing("")[0], statuses=smb.listing("")[1])
            for number, name in enumerate(names):
                ids = one.send(smb.create(name, smb.WRITE), raw.query_info(smb.SAME, 1, 18), related=True)
                fid = raw.file_id(one.wait(ids)[0])
                one.call(smb.write(fid, 0, bytes(20_000)) if number % 5 == 0 else raw.read(fid, 0, 60_000))
                one.close(fid)
            fid = one.open(large)
            one.pipeline(in_order(fid, 4, 1 << 18), 4)
            one.close(fid)


@case("small-reads")
def small_reads(bench, shows):
    """4 KiB, one at a time; or sixteen at once."""
    with bench.lab(FAR) as lab:
        lab.file("data.bin", 1 << 20)
        with lab.capture():
            one = lab.client()
            fid = one.open("data.bin")
            one.pipeline(in_order(fid, 100, 4096), 1 if shows else 16)
            one.close(fid)


@case("small-writes")
def small_writes(bench, shows):
    """4 KiB, one at a time; or as large as the server takes them."""
    with bench.lab(FAR, {} if shows else {"smb2 max write": "65536"}) as lab:
        with lab.capture():
            one = lab.client()
            fid = one.open("data.bin", smb.WRITE, smb.OVERWRITE_IF)
            block = 4096 if shows else 65536
            for number in range(100 if shows else 12):
                one.call(smb.write(fid, number * block, bytes(block)))
            one.call(smb.flush(fid))
            one.close(fid)


@case("loss")
def loss(bench, shows):
    """A line that loses packets; or one that only is idle, so that TCP sends its keep-alives."""
    with bench.lab(f"{FAR},loss=4%,seed=3" if shows else FAR) as lab:
        names = lab.names(60 if shows else 15, 16_000)
        with lab.capture():
            one = lab.client()
            for number, name in enumerate(names):
                one.chain(smb.create(name), raw.read(smb.SAME, 0, 16_000), raw.close(smb.SAME))
                if not shows and number == 7:
                    one.keep_alive(1)
                    time.sleep(4.5)


@case("slow-filesystem")
def slow_filesystem(bench, shows):
    """Calls of 5 ms, requests alone and together; or a quick one, far away."""
    with bench.lab(None if shows else FAR) as lab:
        names = lab.names(12, 1 << 20)
        if shows:
            lab.slow_down(0.005)
        with lab.capture():
            one = lab.client()
            for name in names:
                fid = one.open(name)
                for number in range(4):
                    one.call(raw.read(fid, (12 - 3 * number) << 14, 1 << 14))
                one.pipeline([raw.read(fid, number << 15, 1 << 14) for number in range(20, 24)], 4)
                one.close(fid)


HOLDS = {"slow-client": "the holder keeps it for 30 ms with nothing in flight, and the others wait for that"}


@case("lock-contention", allowed=HOLDS)
def lock_contention(bench, shows):
    """Four clients write to the same record, each under its lock, for 30 ms; or each to its own."""
    with bench.lab() as lab:
        lab.file("data.mdb")
        with lab.capture():

            def work(number):
                one = lab.client()
                fid = one.open("data.mdb", smb.WRITE)
                at = 0 if shows else 1024 * number
                for _ in range(12):
                    one.call(raw.lock(fid, at, 512, 2))
                    if shows:
                        time.sleep(0.03)
                    one.call(smb.write(fid, at, bytes(512)))
                    one.call(raw.lock(fid, at, 512, 4))
                one.close(fid)

            together(*(lambda n=n: work(n) for n in range(4)))


@case("break-waits", allowed=HOLDS)
def break_waits(bench, shows):
    """Four clients want a file that one of them caches, and gives back 30 ms later; or each has its own."""
    with bench.lab() as lab:
        names = lab.names(4)
        with lab.capture():

            def work(name):
                one = lab.client()
                for _ in range(8):
                    fid = one.open(name, smb.WRITE, oplock=smb.BATCH)
                    one.call(raw.read(fid, 0, 4096))
                    time.sleep(0.03)
                    # Which answers the break, too.
                    one.close(fid)

            together(*(lambda n=n: work(names[0 if shows else n]) for n in range(4)))


@case("slow-client", allowed={"loss": "what overflows the small window is retransmitted"})
def slow_client(bench, shows):
    """A client that takes what it reads late, with a small window, and then computes; or one that pauses as long, with
    nothing to take: a player, a person."""
    with bench.lab() as lab:
        lab.file("data.bin", 8 << 20)
        with lab.capture():
            one = lab.client()
            if shows:
                one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            fid = one.open("data.bin")
            for block in range(30):
                ids = one.send(raw.read(fid, block << 18, 1 << 18))
                time.sleep(0.02 if shows else 0)
                one.wait(ids)
                time.sleep(0.08)
            one.close(fid)


@case("failing-lookups")
def failing_lookups(bench, shows):
    """desktop.ini is looked up in each of five folders, ten times; or in fifty, once."""
    with bench.lab(FAR) as lab:
        folders = 5 if shows else 50
        for number in range(folders):
            lab.file(f"folder {number}/data.txt")
        with lab.capture():
            one = lab.client()
            for number in range(50):
                name = f"folder {number % folders}\\desktop.ini"
                one.chain(*smb.look(name), statuses=[smb.NOT_FOUND] * 3)


@case("repeated-lookups")
def repeated_lookups(bench, shows):
    """The same five files are asked about, ten times; or read."""
    with bench.lab(FAR) as lab:
        names = lab.names(5)
        with lab.capture():
            one = lab.client()
            for _ in range(10):
                for name in names:
                    one.chain(*smb.look(name, *([] if shows else [raw.read(smb.SAME, 0, 512)])))


@case("repeated-listings")
def repeated_listings(bench, shows):
    """A folder of fifty files is listed thirty times; or thirty folders once."""
    with bench.lab(FAR) as lab:
        folders = ["folder"] if shows else [f"folder {number}" for number in range(30)]
        for folder in folders:
            lab.names(50 if shows else 5, folder=folder)
        with lab.capture():
            one = lab.client()
            for number in range(30):
                members, statuses = smb.listing(folders[number % len(folders)])
                one.chain(*members, statuses=statuses)


@case("share-conflicts")
def share_conflicts(bench, shows):
    """A file that another client has for itself is opened again and again; or one that it shares."""
    with bench.lab(FAR) as lab:
        lab.file("report.docx")
        with lab.capture():
            lab.client().call(smb.create("report.docx", smb.WRITE, share=0 if shows else 7))
            other = lab.client()
            for _ in range(30):
                request = smb.create("report.docx", smb.READ)
                if shows:
                    other.call(request, statuses=[smb.SHARING_VIOLATION])
                else:
                    other.chain(request, raw.read(smb.SAME, 0, 512), raw.close(smb.SAME))


@case("slow-flush")
def slow_flush(bench, shows):
    """Storage whose log takes 20 ms; or none at all, but far away."""
    with bench.lab(None if shows else FAR) as lab:
        if shows:
            lab.slow_down(0.0, log=0.02)
        with lab.capture():
            one = lab.client()
            fid = one.open("journal.log", smb.WRITE, smb.OVERWRITE_IF)
            for number in range(30):
                one.call(smb.write(fid, number * 8192, bytes(8192), through=number % 2))
                if not number % 2:
                    one.call(smb.flush(fid))
            one.close(fid)


@case("no-compounding")
def no_compounding(bench, shows):
    """An open, three questions and a close, each when the one before was answered; or all in one message."""
    with bench.lab(FAR) as lab:
        names = lab.names(15)
        with lab.capture():
            one = lab.client()
            for name in names:
                questions = lambda fid: [raw.query_info(fid, 1, kind) for kind in (4, 5, 18)]
                if not shows:
                    one.chain(*smb.look(name, *questions(smb.SAME)))
                    continue
                fid = one.open(name)
                for request in [*questions(fid), raw.close(fid)]:
                    one.call(request)


@case("open-close-churn")
def open_close_churn(bench, shows):
    """Fifty files are opened and closed; or read before that."""
    with bench.lab(FAR) as lab:
        names = lab.names(50)
        with lab.capture():
            one = lab.client()
            for name in names:
                one.chain(smb.create(name), *([] if shows else [raw.read(smb.SAME, 0, 512)]), raw.close(smb.SAME))


@case("credit-starvation")
def credit_starvation(bench, shows):
    """Four credits for a client that would have 32 reads in flight; or that sends one at a time."""
    with bench.lab(FAR, {"smb2 max credits": "4"}) as lab:
        lab.file("data.bin", 8 << 20)
        with lab.capture():
            one = lab.client(asks=64 if shows else 1)
            fid = one.open("data.bin")
            # Elsewhere each time, so that it is not small sequential blocks.
            places = [raw.read(fid, (number * 37 % 100) << 16, 16384) for number in range(120 if shows else 40)]
            one.pipeline(places, 32 if shows else 1)
            one.close(fid)


@case("credits-by-client", expects="credit-starvation", fixture=False)
def credits_by_client(bench, shows):
    """The client requests one credit for each read, which takes four; or as many as it wants to use."""
    with bench.lab(FAR) as lab:
        lab.file("data.bin", 16 << 20)
        with lab.capture(HEADERS):
            one = lab.client(asks=3 if shows else 64)
            fid = one.open("data.bin")
            one.asks = 1 if shows else 64
            # Elsewhere each time, so that it is not small sequential blocks.
            places = [raw.read(fid, (number * 37 % 50) << 18, 1 << 18) for number in range(60)]
            one.pipeline(places, 8)
            one.close(fid)


@case("bandwidth-limited")
def bandwidth_limited(bench, shows):
    """A line of 5 Mbit/s is full; or one of 45 mostly idle."""
    with bench.lab("rtt=5ms,rate=5mbit,queue=2s" if shows else f"{FAR},rate=45mbit") as lab:
        lab.file("data.bin", 8 << 20)
        with lab.capture():
            one = lab.client()
            fid = one.open("data.bin")
            if shows:
                one.pipeline(in_order(fid, 12, 1 << 17), 4)
            else:
                one.pipeline(in_order(fid, 60, 4096), 1)
            one.close(fid)


@case("bandwidth-shared", expects="bandwidth-limited", misses=False, fixture=False,
      allowed={"slow-client": "the first to log on waits for the others"})
def bandwidth_shared(bench, _):
    """Four clients fill a line of 10 Mbit/s together, each with blocks of other sizes."""
    with bench.lab("rtt=5ms,rate=10mbit,queue=2s") as lab:
        lab.file("data.bin", 8 << 20)
        clients = []
        with lab.capture():
            for number in range(4):
                one = lab.client()
                clients.append((one, one.open("data.bin"), 1 << (15 + number)))
            together(*(lambda one=one, fid=fid, block=block: one.pipeline(in_order(fid, (1 << 20) // block, block), 2)
                       for one, fid, block in clients))
            for one, fid, _ in clients:
                one.close(fid)


@case("window-limited")
def window_limited(bench, shows):
    """A client that takes 16 KiB in 20 ms; or a window of 64 KiB, always full, on a line that carries no more."""
    line, window = (FAR, 16384) if shows else (f"{FAR},rate=5mbit,queue=2s", 131072)
    with bench.lab(line, client_window=window) as lab:
        lab.file("data.bin", 8 << 20)
        with lab.capture():
            one = lab.client()
            fid = one.open("data.bin")
            one.pipeline(in_order(fid, 12, 1 << 17), 4)
            one.close(fid)


@case("server-queueing")
def server_queueing(bench, shows):
    """One smbd, whose file system takes 2 ms, has sixteen requests at once to serve; or one after the other."""
    with bench.lab() as lab:
        names = lab.names(105)
        lab.slow_down(0.002)
        with lab.capture():
            one = lab.client()
            for name in names[:25]:
                one.chain(*smb.look(name))
            if shows:
                one.chains([smb.look(name) for name in names[25:]], 16)


CROWD = {"slow-logon": "eleven log on at once, and wait for the processor, too"}


def crowd(lab, seen):
    """Twelve clients list folders of a server that has one processor; the first of them alone."""
    folders = [f"folder {number}" for number in range(12 * 12)]
    for folder in folders:
        lab.names(100, folder=folder)
    with seen():

        def work(number):
            one = lab.client()
            for folder in folders[12 * number:12 * number + 12]:
                members, statuses = smb.listing(folder)
                one.chain(*members, statuses=statuses)

        work(0)
        together(*(lambda n=n: work(n) for n in range(1, 12)))


@case("server-queueing-users", expects="slow-filesystem", misses=False, fixture=False, allowed=CROWD)
def server_queueing_users(bench, _):
    """A crowd, each on a connection of its own. From outside the queue cannot be recognised, as requests are never
    alone, and the output says so (confidence low); the recorder can, in the next case."""
    with bench.lab(before=["taskset", "-c", "1"]) as lab:
        crowd(lab, lab.capture)


@case("server-queueing-inside", expects="server-queueing", misses=False, fixture=False, allowed=CROWD)
def server_queueing_inside(bench, _):
    """The same, as the recorder inside Samba sees it."""
    with bench.lab(before=["taskset", "-c", "1"]) as lab:
        crowd(lab, lab.record)


@case("slow-logon")
def slow_logon(bench, shows):
    """Names of users are looked up by a script that takes 0.3 s; or at once, but far away."""
    options = {}
    if shows:
        script = bench.path("map-name.sh")
        with open(script, "w") as file:
            file.write("#!/bin/sh\ncase $1 in *stranger) sleep 0.3 ;; esac\nprintf '%s\\n' \"${1##*\\\\}\"\n")
        os.chmod(script, 0o755)
        options = {"username map script": script}
    with bench.lab(None if shows else FAR, options) as lab:
        names = lab.names(5)
        with lab.capture():
            for _ in range(4):
                one = lab.client()
                for name in names:
                    one.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))


@case("protection", allowed={"server-queueing": "reads in flight wait while the core encrypts the reply before theirs"})
def protection(bench, shows):
    """AES-128-CCM on one core, as the recorder inside Samba sees it; or the same without."""
    ciphers = {"server smb encrypt": "required" if shows else "off", "server smb3 encryption algorithms": "AES-128-CCM"}
    with bench.lab(options=ciphers, before=["taskset", "-c", "1"]) as lab:
        lab.file("large.bin", 64 << 20)
        with lab.record():
            lab.smbclient("get large.bin /dev/null", f"--client-protection={'encrypt' if shows else 'off'}")


@case("protection-signing", expects="protection", fixture=False,
      allowed={"server-queueing": "reads in flight wait while the core signs the reply before theirs"})
def protection_signing(bench, shows):
    """HMAC-SHA256 on one core (dialect 2.1), as the recorder inside Samba sees it; or the same without."""
    with bench.lab(options={"server signing": "required" if shows else "auto"}, before=["taskset", "-c", "1"]) as lab:
        lab.file("large.bin", 256 << 20)
        with lab.record():
            protection = "sign" if shows else "off"
            lab.smbclient("get large.bin /dev/null", "-m", "SMB2_10", f"--client-protection={protection}")


@case("stragglers", allowed={"slow-filesystem": "that is what makes it slow"})
def stragglers(bench, shows):
    """One file lies on storage whose calls take 30 ms; or it is as quick as the rest."""
    with bench.lab(FAR) as lab:
        names = lab.names(70)
        slow, = lab.names(1, folder="archive")
        if shows:
            lab.slow_down(0.03, folder="archive")
        with lab.capture():
            one = lab.client()
            for number, name in enumerate(names):
                for each in [name, slow] if number > 55 and number % 4 == 0 else [name]:
                    one.chain(smb.create(each), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))


@case("stragglers-moment", expects="stragglers", misses=False, fixture=False,
      allowed={"slow-filesystem": "from outside a server that stands still looks like that"})
def stragglers_moment(bench, _):
    """The server stands still for most of a second, while four clients ask."""
    with bench.lab(FAR) as lab:
        names = lab.names(200)
        with lab.capture():

            def work(number):
                one = lab.client()
                until = time.time() + 6
                for name in names[50 * number:50 * number + 50] * 10:
                    if time.time() > until:
                        break
                    one.chain(smb.create(name), raw.read(smb.SAME, 0, 4096), raw.close(smb.SAME))

            def stand_still():
                time.sleep(3.2)
                os.killpg(lab.server.process.pid, signal.SIGSTOP)
                time.sleep(0.7)
                os.killpg(lab.server.process.pid, signal.SIGCONT)

            together(stand_still, *(lambda n=n: work(n) for n in range(4)))


def large_reads(one):
    """70 MiB, eight blocks in flight."""
    fid = one.open("data.bin")
    one.pipeline(in_order(fid, 70, 1 << 20), 8)
    one.close(fid)


@case("channels", note=True)
def channels(bench, shows):
    """A second connection asks for a session that the server does not know; or logs on by itself."""
    with bench.lab() as lab:
        with lab.capture():
            one = lab.client()
            one.call(raw.query_info(one.open("", smb.LIST, smb.OPEN, smb.DIRECTORY), 1, 18))
            if shows:
                with smb.inside(lab.namespace):
                    other = raw.Session(lab.address, 445)
                raw.negotiate(other)
                other.session = one.session ^ 0x5555
                token = b"NTLMSSP\0" + struct.pack("<II", 1, 0x205) + bytes(16)
                other.call(raw.session_setup(token, binding=True), statuses=[USER_SESSION_DELETED])
                other.socket.close()
            else:
                lab.client()


@case("signing", note=True)
def signing(bench, shows):
    """The server requires signing; or neither side does, although both negotiate an algorithm."""
    with bench.lab(options={"server signing": "mandatory" if shows else "default"}) as lab:
        names = lab.names(20)
        with lab.capture():
            lab.smbclient("; ".join(f'get "{name}" /dev/null' for name in names))


@case("one-connection", note=True)
def one_connection(bench, shows):
    """Four clients are logged on, and one of them moves all; or each moves the same amount."""
    with bench.lab() as lab:
        lab.file("data.bin", 70 << 20)
        with lab.capture(HEADERS):
            clients = [lab.client() for _ in range(4)]
            for one in clients[3:] if shows else clients:
                large_reads(one)


@case("not-stable", note=True)
def not_stable(bench, shows):
    """A backup is written, without stable storage; or with it at the end."""
    with bench.lab(FAR) as lab:
        with lab.capture():
            one = lab.client()
            fid = one.open("monday.vbk", smb.WRITE, smb.OVERWRITE_IF)
            one.pipeline([smb.write(fid, number << 16, bytes(1 << 16)) for number in range(24)], 8)
            if not shows:
                one.call(smb.flush(fid))
            one.close(fid)


def judge(name, told, notes, state, shows):
    """What is wrong, as words; nothing if nothing is."""
    one = CASES[name]
    due = one["state"] if shows else one["near"]
    if one["state"] and state != due:
        return [f"the state is {state}"]
    expected = one["expects"]
    shares = lambda found: [f"{trouble} {100 * share:.0f} % is reported" for trouble, share in found]
    if one["nothing"]:
        return shares(told)
    if not shows:
        told_all = shares(each for each in told if each[0] == expected)
        return told_all + [f"note {note}" for note in notes if one["note"] and note == expected]
    if one["note"]:
        return [] if expected in notes else ["no such note"]
    first = [] if told and told[0][0] == expected else [f"{expected} does not come first"]
    return first + shares((trouble, share) for trouble, share in told
                          if share > OTHERS and trouble != expected and trouble not in one["allowed"])


def is_reported(found):
    is_broken = found["effect"] == "broken"
    return is_broken or found["share"] >= LEAST or found["is_of_events"] and found["saved_ns"] >= 1e9


def told_by(diagnosis):
    """Each finding that is one, once, most costly first."""
    told = {}
    for found in diagnosis["findings"]:
        if is_reported(found) and found["trouble"] not in told:
            told[found["trouble"]] = found["share"]
    return list(told.items())


def table(rows):
    lines = ["| made | state | reported, share of the time | |", "|---|---|---|---|"]
    for name, state, told, wrong in rows:
        words = [trouble if share is None else f"{trouble} {100 * share:.0f} %" for trouble, share in told]
        words[:1] = [f"**{word}**" for word in words[:1]]
        lines.append(f"| {name} | {state} | {', '.join(words) or 'nothing'} | {'; '.join(wrong) or 'right'} |")
    return "\n".join(lines)


def make(bench, name, shows):
    """Makes a case; returns what was reported, and what of that is wrong."""
    bench.name = name if shows else f"{name}-not"
    try:
        begin = time.time()
        CASES[name]["make"](bench, shows)
        bench.say(f"{bench.name}: {time.time() - begin:.1f} s")
        if bench.args.record_fixtures and CASES[name]["fixture"]:
            os.makedirs(FIXTURES, exist_ok=True)
            bench.say(benches.keep(bench.recorded, os.path.join(FIXTURES, bench.name)))
        diagnosis = bench.explain(bench.recorded)
        with open(bench.path(f"{bench.name}.json"), "w") as file:
            json.dump(diagnosis, file, indent=1)
        told, notes = told_by(diagnosis), [note["about"] for note in diagnosis["notes"]]
        wrong = judge(name, told, notes, diagnosis["state"], shows)
        told += [(f"note {note}", None) for note in notes if CASES[name]["note"]]
        return bench.name, diagnosis["state"], told, wrong
    except (Exception, SystemExit) as error:
        if getattr(error, "code", None) == TERMINATED:
            raise
        bench.say(f"{bench.name}: {getattr(error, 'stderr', '') or ''}{traceback.format_exc()}")
        return bench.name, "", [], [f"not made: {error}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--case", action="append", choices=CASES, help="only this one; can be repeated")
    parser.add_argument("--keep", help="keep captures and diagnoses in this folder")
    parser.add_argument("--markdown", action="store_true", help="print the confusion matrix as a table in Markdown")
    parser.add_argument("--record-fixtures", action="store_true", help="write captures to tests/fixtures/findings")
    args = parser.parse_args()
    benches.enter()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    # Clients that wait for a processor look like slow ones.
    os.nice(-15)
    folder = args.keep or tempfile.mkdtemp(prefix="smbscope-findings-")
    os.makedirs(folder, exist_ok=True)
    # Samba uses it as the user `nobody`.
    os.chmod(folder, 0o755)
    bench = benches.Bench(args, os.path.abspath(folder))
    rows = []
    try:
        for name in args.case or CASES:
            for shows in (True, False) if CASES[name]["misses"] else (True,):
                rows.append(make(bench, name, shows))
                name_made, state, told, wrong = rows[-1]
                bench.say(f"{name_made}: {state}: {dict(told)}: {'; '.join(wrong) or 'right'}")
    finally:
        if args.markdown:
            print(table(rows))
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(any(wrong for *_, wrong in rows))


if __name__ == "__main__":
    main()
