#!/usr/bin/env python3
"""Checks smbscope against ksmbd, Samba on a virtual disk, and the kernel's SMB client, in a guest (scripts/test-servers.sh).

    tests/servers/ksmbd.py --smbscope PROGRAM --kernel FILE --initrd FILE --samba FILE --work DIR [CHECK...]

Each check prints what it compared. The exit code is 1 if one failed; the others run nevertheless.
"""

import argparse
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path

from qemu import GUEST, HOST, Failure, Guest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tshark"))
import oracle  # noqa: E402

USERS = 4
FILES = ["--scale", "0.01"]
# What must agree for an operation between a run's own recording and a capture of it.
COLUMNS = [
    "status_name", "path", "offset_bytes", "requested_bytes", "transferred_bytes", "request_wire_bytes",
    "response_wire_bytes", "credit_charge", "credits_granted", "compound_index", "related",
]  # fmt: skip
PROTECTIONS = [
    ["--dialect", "2.1", "--signing", "required"],
    ["--dialect", "3.0.2", "--signing", "required"],
    ["--dialect", "3.1.1", "--signing", "required"],
    ["--dialect", "3.0", "--encryption", "required"],
    ["--dialect", "3.1.1", "--encryption", "aes-128-gcm"],
    ["--dialect", "3.1.1", "--encryption", "aes-256-gcm"],
    ["--dialect", "3.1.1", "--encryption", "aes-128-ccm"],
    ["--no-leases"],
    ["--durable"],
]
# The work of the kernel's client in its mount /mnt. `sync` before the end: what is dirty is written by then.
WORK = """
set -e; cd /mnt; mkdir -p work/deep/er; cp /bin/busybox work/program; cmp /bin/busybox work/program
dd if=/dev/zero of=work/zeros bs=65536 count=40 2>/dev/null; dd if=work/zeros of=/dev/null bs=4096 2>/dev/null
for n in 1 2 3 4 5 6 7 8; do echo "line $n" >work/deep/file$n; done
cat work/deep/file* | wc -l; ls -lR . >/dev/null; stat work/deep/file3 >/dev/null; df . >/dev/null
echo more >>work/deep/file1; mv work/deep/file2 work/deep/er/moved; chmod 600 work/deep/file3; touch work/deep/file4
truncate -s 100 work/zeros; ! cat work/absent 2>/dev/null; sync
rm -r work; ls -a . >/dev/null; cd /
"""


class Checks:
    def __init__(self, options, guest):
        self.smbscope, self.work, self.guest, self.samba = options.smbscope, options.work, guest, options.samba
        self.target = f"//127.0.0.1:{guest.port}/home"
        self.run_capture = self.work / "load.pcap"

    def command(self, *arguments, limit=120, fails=False):
        """Standard output and error of smbscope."""
        environment = {**os.environ, "SMBSCOPE_PASSWORD": "secret"}
        words = [str(word) for word in (self.smbscope, *arguments)]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=limit, env=environment, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"`{' '.join(words)}` did not end within {limit} s") from error
        if (done.returncode != 0) != fails:
            raise Failure(f"`{' '.join(words)}`: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout, done.stderr

    def operations(self, source):
        columns = ["command", "server", "client_port", "message_id", *COLUMNS]
        text, _ = self.command("ops", source, "--format", "csv", "--columns", ",".join(columns))
        return list(csv.DictReader(text.splitlines()))

    # The checks, in this order.

    def prepare(self):
        """`load prepare` writes the users' files, and finds all of them there the second time."""
        for again in (False, True):
            _, told = self.command("load", "prepare", self.target, "--users", USERS, *FILES)
            print(f"  {told.strip().splitlines()[-1]}")
            if again and "0 files created" not in told:
                raise Failure(f"a second `prepare` creates files again: {told}")

    def load(self):
        """Every scenario of the home-directory workload that ran ended well."""
        out = self.work / "load"
        arguments = ["--closed", "--warm-up", "0s", "--cool-down", "0s", "--duration", "8s", "--force", "--out", out]
        with self.guest.capture(self.run_capture):
            text, told = self.command(
                "load", self.target, "--users", 2, *FILES, *arguments, "--format", "json"
            )
        row = json.loads(text)["rows"][0]
        done = {one["scenario"]: one["response"]["count"] for one in row["scenarios"] if one["response"]}
        print(f"  {row['operations_per_second']:.0f} operations/s; scenarios that ended well:")
        print("   ", ", ".join(f"{name} {count}" for name, count in sorted(done.items())))
        for line in told.splitlines():
            if "compound" in line or "continued" in line:
                print(f"  {line}")
        if row["failures"]:
            raise Failure(f"failed scenarios: {json.dumps(row['failures'])}\n{told}")
        # How many run depends on the machine.
        if len(done) < 6:
            raise Failure(f"only {len(done)} of 12 scenarios ran in 8 s")

    def truth(self):
        """The run's own recording and a capture in front of the server agree on every operation."""
        run, captured = self.operations(self.work / "load"), self.operations(self.run_capture)
        ports = {row["client_port"] for row in run}
        # The checks before a run have connections of their own, which are not recorded.
        same = [row for row in captured if row["client_port"] in ports]
        theirs = requests_by_command(self.run_capture)
        table("recording", by_command(run), "capture", by_command(same))
        equal("bytes by command", moved(run), "recording", moved(same), "capture")
        print(f"  bytes of Read and Write: {moved(run)['Read']:,} and {moved(run)['Write']:,} in both")
        difference = differences(run, same)
        if difference:
            raise Failure(f"{len(difference)} differences, the first: {'; '.join(difference[:5])}")
        print(f"  {len(run)} operations agree in {len(COLUMNS)} columns")
        equal("operations by command", by_command(captured), "smbscope", theirs, "tshark")
        self.against_tshark(self.run_capture)

    def protection(self):
        """Short runs with older dialects, signing and encryption end well."""
        for options in PROTECTIONS:
            times = ["--closed", "--warm-up", "0s", "--cool-down", "0s", "--duration", "2s"]
            only = ["--scenario", "CmdLineFileDownload", "--scenario", "CmdLineFileUpload"]
            text, told = self.command(
                "load", self.target, "--users", 1, *FILES, *only, *times, *options, "--format", "json"
            )
            (row,) = json.loads(text)["rows"]
            done = sum(one["response"]["count"] for one in row["scenarios"] if one["response"])
            print(f"  {' '.join(options)}: {done} scenarios, {row['operations_per_second']:.0f} operations/s")
            if row["failures"] or not done:
                raise Failure(f"{' '.join(options)}: {row['failures']}\n{told}")

    def capacity(self):
        """A search for the number of users ends with an answer."""
        # Thirty times as many scenarios per user, so that four users are much.
        source, _ = self.command("load", "workloads", "show", "homefolder", "--toml")
        hurried = re.sub(r"(?m)^runs_per_hour = (\d+)", lambda found: f"runs_per_hour = {int(found[1]) * 30}", source)
        if hurried == source:
            raise Failure("the workload has no line `runs_per_hour = N`")
        workload = self.work / "hurried.toml"
        workload.write_text(hurried)
        steps = ["--start-users", 1, "--max-users", USERS, "--repeats", 1, "--resolution", 50]
        times = ["--warm-up", "1s", "--cool-down", "0s", "--duration", "4s"]
        text, _ = self.command(
            "load", self.target, "--workload", workload, *FILES, "--find-capacity", *steps, *times, "--format", "json"
        )
        found = json.loads(text)
        answer = found["answer"]
        for row in found["rows"]:
            print(
                f"  step {row['step']}: {row['users']} users, {row['scenarios_per_second']:.1f} scenarios/s of "
                f"{row['scheduled_per_second']:.1f}, overload {row['overload_percent']:.0f} %, {row['errors']} errors"
            )
        print(f"  answer: {answer['users']} users ({answer['reason']}), too many: {answer['too_many']}")
        failures = [row["failures"] for row in found["rows"] if row["failures"]]
        if failures or found["server_gone_ns"]:
            raise Failure(f"scenarios failed ({failures}) or the server was gone ({found['server_gone_ns']})")
        # A machine that is busy with something else may not carry a single user; that is an answer too.
        if answer["reason"] not in ("resolved", "most_users", "least_users"):
            raise Failure(f"no answer: {answer}")

    def client_of_ksmbd(self):
        """The kernel's client works on ksmbd, seen on both of its ways through the host."""
        # From the guest to the host, and by the forwarded port back into the guest.
        for dialect in ("2.1", "3.0.2", "3.1.1"):
            capture = self.work / f"client-{dialect}.pcap"
            with self.guest.capture(capture):
                self.mounted(self.guest.port, "home", "secret", dialect)
            move_to_445(capture, self.guest.port)
            rows = self.operations(capture)
            inner = [row for row in rows if row["server"] == GUEST]
            outer = [row for row in rows if row["server"] == HOST]
            print(f"  dialect {dialect}:")
            table("client's side", by_command(outer), "server's side", by_command(inner))
            difference = differences(outer, inner, ports=False)
            if difference:
                raise Failure(f"{len(difference)} differences, the first: {'; '.join(difference[:5])}")
            theirs = requests_by_command(capture)
            equal("operations by command", by_command(rows), "smbscope", theirs, "tshark")
            self.against_tshark(capture)

    def client_of_samba(self):
        """The kernel's client works on a Samba of this machine."""
        if shutil.which("smbd") is None:
            print("  skipped: smbd is not installed (scripts/setup.sh test)")
            return
        # The lab's system user must be able to reach its folder, which the home directory of root prevents.
        lab = Path(tempfile.gettempdir()) / f"smbscope-test-servers-{os.getpid()}"
        capture = self.work / "client-samba.pcap"
        text, _ = self.command("lab", "up", "--dir", lab, "--users", 1, "--format", "json")
        try:
            about = json.loads(text)
            port = int(about["port"])
            password = Path(about["password_file"]).read_text().splitlines()[0]
            with self.guest.capture(capture):
                self.mounted(port, "home", password, "3.1.1")
        finally:
            self.command("lab", "down", "--dir", lab)
        move_to_445(capture, port)
        rows, theirs = self.operations(capture), requests_by_command(capture)
        table("smbscope", by_command(rows), "tshark", theirs)
        self.against_tshark(capture)

    # What they share.

    def mounted(self, port, share, password, dialect):
        """Works in a mount of the kernel's client."""
        options = f"ip={HOST},port={port},username=user00001,password={password},vers={dialect}"
        self.guest.run(f"mount -t cifs -o {options} //{HOST}/{share} /mnt")
        try:
            self.guest.run("; ".join(WORK.strip().splitlines()), limit=90)
        finally:
            self.guest.run("cd /; umount /mnt")

    def against_tshark(self, capture):
        """Message by message, with the comparison of `cargo test --test tshark`."""
        command = [sys.executable, str(ROOT / "tests/tshark/compare.py"), "--smbscope", str(self.smbscope)]
        # No captures but this one.
        command += ["--captures", str(self.work), "--all", str(capture)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        for line in done.stdout.splitlines():
            print(f"  {line[:200]}")
        if done.returncode != 0:
            raise Failure(f"{capture.name}: smbscope and tshark differ: {done.stdout[-2000:]}{done.stderr[-2000:]}")


    def durability(self):
        """A guest that loses its power (ext4 on a virtual disk): Flush keeps its promise, and the report says what each way does."""
        self.lose_power(self.guest, "ksmbd")

    def durability_samba(self):
        """Likewise with Samba: with `strict sync = yes` every promise is kept, and `strict sync = no` is found."""
        if not self.samba.exists():
            raise Failure(f"{self.samba} does not exist: no smbd when the guest was made (scripts/setup.sh servers)")
        for strict in ("yes", "no"):
            work = self.work / f"samba-{strict}"
            work.mkdir(exist_ok=True)
            guest = Guest(work, self.guest.kernel, self.samba, f"server=samba strict_sync={strict}")
            try:
                guest.start()
                print(f"  Samba, strict sync = {strict}:")
                broken = self.lose_power(guest, f"samba-{strict}")
            finally:
                guest.stop()
            promising = ("flush-each", "flush-close", "open-through", "write-through")
            kept = [way for way in promising if not broken[way]]
            if strict == "yes" and len(kept) < len(promising):
                raise Failure(f"broken with strict sync = yes: {set(promising) - set(kept)}")
            if strict == "no" and kept:
                raise Failure(f"with strict sync = no nothing is reported for {kept}")

    def lose_power(self, guest, name):
        """Writes, kills the guest, starts it with the same disk, verifies: the number of broken promises of each way."""
        target = f"//127.0.0.1:{guest.port}/home"
        journal = self.work / f"{name}.journal"
        journal.unlink(missing_ok=True)
        # The plug is pulled here; the command of --pull only says when.
        now, pulled = self.work / "pull", self.work / "pulled"
        for path in (now, pulled):
            path.unlink(missing_ok=True)
        pull = f"touch {now}; until [ -e {pulled} ]; do sleep 0.1; done"
        words = [self.smbscope, "durability", target, "--journal", journal, "--format", "json", "--silence", "60s"]
        words += ["--block", "4KiB,64KiB", "--file-size", "1MiB", "--rate", "20", "--after", "45s", "--timeout", "120s"]
        words += ["--pull", pull, "--wait", "10m"]
        environment = {**os.environ, "SMBSCOPE_PASSWORD": "secret"}
        with subprocess.Popen(
            [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as test:
            end = time.monotonic() + 240
            while not now.exists():
                if test.poll() is not None or time.monotonic() > end:
                    test.kill()
                    raise Failure(f"the test does not come to its plug: {test.communicate()[1]}")
                time.sleep(0.1)
            guest.lose_power()
            pulled.touch()
            guest.start(is_new=False)
            text, told = test.communicate(timeout=600)
        if test.returncode not in (0, 10):
            raise Failure(f"exit code {test.returncode}: {told}")
        found = json.loads(text)
        print(f"  {found['sentence']}")
        for way in found["ways"]:
            oldest = f", the oldest {way['lost_age_ns_max'] / 1e9:.1f} s" if way["lost"] else ""
            print(
                f"  {way['way']:<14} {way['writes']:>6} written, {way['checked']:>5} checked, {way['broken']:>4} broken "
                f"{dict(way['broken_by'])}; {way['lost']} lost without a promise{oldest}; {way['renames_lost']} of "
                f"{way['renames']} renames undone, {way['renames_before_data']} before their data"
            )
        for note in found["notes"]:
            print(f"  {note}")
        broken = Counter({way["way"]: way["broken"] for way in found["ways"]})
        if name != "samba-no" and (broken["flush-each"] or broken["flush-close"]):
            raise Failure(f"a Flush does not keep its promise: {found['losses'][:5]}")
        return broken


def move_to_445(capture, port):
    """Replaces a port by 445 in a capture: elsewhere tshark reads lengths of NetBIOS messages with 17 bits only
    (RFC 1002) and loses its place after a message of 128 KiB or more."""
    data = bytearray(capture.read_bytes())
    order, at = ("<" if data[:4] == b"\xd4\xc3\xb2\xa1" else ">"), 24
    while at + 16 <= len(data):
        (length,) = struct.unpack_from(order + "I", data, at + 8)
        frame = at + 16
        # Ethernet, IPv4 without fragments, TCP.
        if data[frame + 12 : frame + 14] == b"\x08\x00" and data[frame + 23] == 6:
            ports = frame + 14 + (data[frame + 14] & 15) * 4
            for place in (ports, ports + 2):
                if data[place : place + 2] == port.to_bytes(2, "big"):
                    data[place : place + 2] = (445).to_bytes(2, "big")
        at = frame + length
    capture.write_bytes(data)


def by_command(rows):
    return Counter(row["command"] for row in rows)


def moved(rows):
    """Bytes of data by command."""
    count = Counter()
    for row in rows:
        count[row["command"]] += int(row["transferred_bytes"] or 0)
    return count


def requests_by_command(capture):
    """tshark's number of requests by command, and of breaks."""
    fields = ["smb2.cmd", "smb2.flags.response", "smb2.msg_id"]
    words = [word for field in fields for word in ("-e", field)]
    options = ["-n", "-r", str(capture), "-Y", "smb2", "-T", "fields", *words]
    count = Counter()
    for line in oracle.run(options).splitlines():
        for command, response, number in zip(*(part.split(",") for part in line.split("\t")), strict=True):
            name = oracle.SMB2_COMMANDS[int(command)]
            is_request = response.lower() in ("0", "false")
            if is_request or int(number, 0) == 0xFFFF_FFFF_FFFF_FFFF:
                count[name] += 1
    return count


def differences(some, others, ports=True):
    """What two lists of the same operations differ in; without `ports`, connections are taken in their order."""
    def keyed(rows):
        order = {}
        found = defaultdict(list)
        for row in rows:
            port = row["client_port"]
            connection = port if ports else order.setdefault(port, len(order))
            found[connection, row["message_id"], row["command"]].append(row)
        return found

    ones, others = keyed(some), keyed(others)
    wrong = [f"{key} is only in one of the two" for key in ones.keys() ^ others.keys()]
    for key in ones.keys() & others.keys():
        for one, other in zip(ones[key], others[key], strict=False):
            wrong += [f"{key} {name}: {one[name]}, {other[name]}" for name in COLUMNS if one[name] != other[name]]
        if len(ones[key]) != len(others[key]):
            wrong.append(f"{key}: {len(ones[key])} times, {len(others[key])} times")
    return wrong


def table(name, some, other_name, others):
    """Prints both counts by command; a failure if they differ."""
    print(f"  {'command':<16}{name:>14}{other_name:>14}")
    for command in sorted(some.keys() | others.keys()):
        print(f"  {command:<16}{some[command]:>14}{others[command]:>14}")
    print(f"  {'all':<16}{some.total():>14}{others.total():>14}", flush=True)
    equal("operations by command", some, name, others, other_name)


def equal(what, some, name, others, other_name):
    wrong = [key for key in some.keys() | others.keys() if some[key] != others[key]]
    if wrong:
        shown = ", ".join(f"{key}: {name} {some[key]}, {other_name} {others[key]}" for key in sorted(wrong))
        raise Failure(f"{what} differ: {shown}")


ORDER = ["prepare", "load", "truth", "protection", "capacity", "client_of_ksmbd", "client_of_samba", "durability", "durability_samba"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smbscope", required=True, type=Path)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--initrd", required=True)
    parser.add_argument("--samba", required=True, type=Path, help="initial RAM disk that has Samba, too")
    parser.add_argument("--tools", default="?", help="version of ksmbd-tools, to be printed")
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    options = parser.parse_args()
    if unknown := set(options.checks) - set(ORDER):
        parser.error(f"no such check: {', '.join(unknown)}; there are {', '.join(ORDER)}")
    options.work.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    guest = Guest(options.work, options.kernel, options.initrd)
    failed = []
    try:
        guest.start()
        release = guest.run("uname -r").strip()
        print(f"ksmbd of kernel {release}, ksmbd-tools {options.tools}, ready after {time.monotonic() - begun:.0f} s")
        checks = Checks(options, guest)
        for name in options.checks or ORDER:
            check, since = getattr(checks, name), time.monotonic()
            print(f"\n{name}: {check.__doc__}", flush=True)
            try:
                check()
            except Exception as error:
                if not isinstance(error, Failure):
                    traceback.print_exc()
                failed.append(name)
                print(f"  FAILED: {error}")
            print(f"  ({time.monotonic() - since:.0f} s)", flush=True)
        crashed = re.findall(r"(?m)^.*(?:BUG:|Oops|Call Trace:|WARNING:).*$", guest.console())
        if crashed:
            print(f"\nThe guest's kernel complains (not counted as a failure): {crashed[:3]}")
    except Failure as error:
        print(f"FAILED: {error}")
        failed.append("the guest")
    finally:
        guest.stop()
    seconds = f"{time.monotonic() - begun:.0f} s"
    if failed:
        print(f"\nFailed: {', '.join(failed)} ({seconds}); captures and the guest's messages are in {options.work}")
        return 1
    for path in options.work.glob("*.pcap"):
        path.unlink()
    shutil.rmtree(options.work / "load", ignore_errors=True)
    print(f"\nAll passed ({seconds})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
