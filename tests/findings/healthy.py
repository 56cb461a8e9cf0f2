#!/usr/bin/env python3
"""A healthy day: home-directory users on a healthy private Samba, recorded and captured, near and far.

    tests/findings/healthy.py --smbscope PATH [--minutes 10] [--users 10] [--rtt 20ms ...] [--keep DIR]

For each round trip (200us, 20ms, 100ms) simulated users work on a lab behind such a line; the load generator records the
run, and tcpdump captures it at the client. `smbscope explain` must find nothing in either, and note the distance where
half of the waiting is the network. Exit code 1 when something is wrong. Needs root.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROUND_TRIPS = ["200us", "20ms", "100ms"]
# A capture file of users who move small files: headers say all.
SNAP = "300"
NETNS = "healthy"


def run(*words, **more):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, **more).stdout


def reported(diagnosis):
    return [(found["trouble"], f"{100 * found['share']:.0f} %", f"{found['saved_ns'] / 1e9:.1f} s")
            for found in diagnosis["findings"]
            if found["share"] >= 0.05 or found["is_of_events"] and found["saved_ns"] >= 1e9]


def day(args, folder, rtt):
    """The diagnoses of the recording and the capture of one day."""
    lab, out = os.path.join(folder, "lab"), os.path.join(folder, f"run-{rtt}")
    capture = os.path.join(folder, f"day-{rtt}.pcap")
    run(args.smbscope, "lab", "up", "--dir", lab, "--users", args.users, "--wan", f"rtt={rtt}",
        "--netns", NETNS)
    try:
        run(args.smbscope, "load", "prepare", "--lab", lab, "--users", args.users, "--scale", "0.1")
        enter = ["ip", "netns", "exec", f"{NETNS}-client"]
        dump = subprocess.Popen(
            [*enter, "tcpdump", "-i", "any", "-s", SNAP, "-Z", "root", "-B", "65536", "-w", capture, "tcp port 445"],
            stderr=subprocess.DEVNULL)
        time.sleep(2)
        try:
            run(args.smbscope, "load", "--lab", lab, "--users", args.users, "--scale", "0.1", "--warm-up", "10s",
                "--duration", f"{int(60 * args.minutes)}s", "--cool-down", "1s", "--out", out, "--force")
        finally:
            time.sleep(1)
            dump.send_signal(signal.SIGINT)
            dump.wait()
    finally:
        run(args.smbscope, "lab", "down", "--dir", lab)
    return {name: json.loads(run(args.smbscope, "explain", path, "--format", "json"))
            for name, path in (("recording", out), ("capture", capture))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smbscope", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--rtt", action="append", help="only this one; can be repeated")
    parser.add_argument("--keep", help="keep recordings and captures in this folder")
    args = parser.parse_args()
    folder = os.path.abspath(args.keep or tempfile.mkdtemp(prefix="smbscope-healthy-"))
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    failed = False
    try:
        for rtt in args.rtt or ROUND_TRIPS:
            for name, diagnosis in day(args, folder, rtt).items():
                found, whole = reported(diagnosis), diagnosis["whole"]
                notes = [note["about"] for note in diagnosis["notes"]]
                is_far = whole["network_ns"] > whole["busy_ns"] / 2
                wrong = bool(found) or is_far != ("distance" in notes) or whole["operations"] == 0
                failed |= wrong
                print(f"{rtt} {name}: {whole['operations']} operations, {whole['busy_ns'] / 1e9:.1f} s of waiting: "
                      f"{found or 'nothing wrong'}; notes {notes}; {'WRONG' if wrong else 'right'}", flush=True)
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
