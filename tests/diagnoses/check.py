#!/usr/bin/env python3
"""Compares verdicts with what is true: check.py SMBSCOPE [--table FILE] [NAME...].

Makes the captures of `make.py`, runs `smbscope explain` on each (and on the captures after public reports in
../shared/diagnoses, where they are), and prints what differs from expected.tsv. Exits with 1 if a healthy recording is
not called healthy, or if a verdict is wrong that misses.txt does not list. With --table it writes the table of
docs/measurements/verdicts.md.
"""

import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
SHARED = HERE.parent.parent.parent / "shared" / "diagnoses"
# Owners of the list and of findings; storage is a part of the server.
SAME_OWNER = {"storage": {"server"}, "name service": {"name-service"}}
# Owners and states of the captures after public reports: expected.tsv there has words only.
SHARED_EXPECTED = {
    "n01_dir_oplock_by_server": ("broken", "server", {"break-not-acknowledged"}),
    "n02_mpx_limit_break": ("broken", "client", {"break-not-acknowledged"}),
    "n05_dirlease_insufficient": ("broken", "server", {"failing-operations"}),
    "n08_reconnect_sleep": ("broken", "network", {"server-unreachable"}),
    "n09_deferred_close": ("healthy", "nobody", set()),
    "n11_delack_notify_signing": ("slow", "client", {"delayed-acknowledgement"}),
    "n12_reads_queue_of_128": ("slow", "network", {"deep-queue", "bandwidth-limited"}),
    "n14_mup_before_smb": ("slow", "client", {"providers-first"}),
    "n15_dll_search_home": ("slow", "application", {"failing-lookups"}),
    "n17_multichannel_tunnel": ("slow", "network", {"uneven-channels"}),
    "n27_case_search": ("slow", "server", {"folder-search"}),
    "n28_abe_notify_storm": ("slow", "server", {"notify-storm"}),
    "n32_missing_write_range": ("broken", "client", {"unwritten-range"}),
    "g01_pmtu_hole_up": ("broken", "network", {"path-mtu"}),
    "g05_smb1_browse": ("slow", "client", {"per-entry-requests"}),
    "g06_dns_delay": ("slow", "name service", {"late-lookup"}),
    "g08_storage_stall": ("broken", "storage", {"stall"}),
    "g09_credits_end": ("broken", "server", {"credit-starvation", "no-reply"}),
    "h14_write_depth": ("slow", "client", {"one-at-a-time", "small-writes"}),
    "h16_16k_reads": ("slow", "client", {"small-reads"}),
    "h28_invalid_signature": ("broken", "unknown", {"connection-reset"}),
    "h41_tiny_files_attr_cache": ("slow", "client", {"repeated-lookups"}),
    "c01_office_healthy": ("healthy", "nobody", set()),
    "c03_player": ("healthy", "nobody", set()),
}

# The findings that are the cause of the kinds made here; for near misses the owner decides.
FINDINGS = {
    "kind_attribute_cache": {"repeated-lookups"},
    "kind_before_smb": {"providers-first"},
    "kind_case_search": {"folder-search"},
    "kind_channel_tunnel": {"uneven-channels"},
    "kind_credits_end": {"credit-starvation", "no-reply"},
    "kind_delayed_ack_notify": {"delayed-acknowledgement"},
    "kind_dir_oplock": {"break-not-acknowledged"},
    "kind_dirlease_limit": {"failing-operations"},
    "kind_dns_silent": {"late-lookup"},
    "kind_library_search": {"failing-lookups"},
    "kind_missing_range": {"unwritten-range"},
    "kind_mpx_limit": {"break-not-acknowledged"},
    "kind_mtu_hole": {"path-mtu"},
    "kind_notify_storm": {"notify-storm"},
    "kind_reads_queue": {"deep-queue", "bandwidth-limited"},
    "kind_reconnect_timer": {"server-unreachable"},
    "kind_signature_reset": {"connection-reset"},
    "kind_small_reads": {"small-reads"},
    "kind_smb1_browse": {"per-entry-requests"},
    "kind_storage_stall": {"stall"},
    "kind_write_depth": {"one-at-a-time", "small-writes"},
    "near_reads_queue_server": {"deep-queue"},
    "near_storage_stall_server": {"stall"},
}


def verdict(smbscope, capture):
    """State, deciding finding and the JSON of a diagnosis."""
    run = subprocess.run([smbscope, "explain", capture, "--format", "json"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return "error", None, {"error": run.stderr.strip()}
    found = json.loads(run.stdout)
    all_noticed = [one for one in found["findings"] if one["is_noticed"]]
    broken = [one for one in all_noticed if one["effect"] == "broken"]
    sure = [one for one in all_noticed if one["confidence"] != "possible"]
    deciding = (broken or sure or all_noticed or [None])[0]
    return found["state"], deciding if found["state"] in ("slow", "broken") else None, found


def judge(expected, state, finding):
    """right, partly (one of state, owner and cause differs) or wrong."""
    want_state, want_owner, kinds = expected
    owner = finding["owner"]["actor"] if finding else "nobody"
    owner_right = want_owner == "unknown" or owner in SAME_OWNER.get(want_owner, {want_owner})
    cause_right = not kinds or (finding is not None and finding["trouble"] in kinds)
    rights = [state == want_state, owner_right, cause_right]
    return "right" if all(rights) else "partly" if sum(rights) == 2 and state != "healthy" else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smbscope")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--table", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "make.py", folder, *args.names], check=True, stdout=subprocess.DEVNULL)
        cases = []
        with open(HERE / "expected.tsv", newline="", encoding="utf-8") as table:
            for row in csv.DictReader(table, delimiter="\t"):
                path = pathlib.Path(folder) / (row["name"] + ".pcap")
                if path.exists():
                    kinds = FINDINGS.get(row["name"], set())
                    cases.append((row["name"], row["set"], (row["state"], row["owner"], kinds), path))
        if SHARED.is_dir():
            for name, expected in SHARED_EXPECTED.items():
                if not args.names or any(name.startswith(one) for one in args.names):
                    cases.append((name, "report", expected, SHARED / (name + ".pcap.gz")))
        with ThreadPoolExecutor(2) as pool:
            verdicts = list(pool.map(lambda case: verdict(args.smbscope, case[3]), cases))
    known = set((HERE / "misses.txt").read_text(encoding="utf-8").split())
    return report(args, cases, verdicts, known)


def report(args, cases, verdicts, known):
    counts = collections.defaultdict(collections.Counter)
    confidences = collections.defaultdict(collections.Counter)
    rows, failed = [], False
    for (name, kind, expected, _), (state, finding, _) in zip(cases, verdicts):
        mark = judge(expected, state, finding)
        counts[kind][mark] += 1
        said = f"{finding['trouble']}, {finding['owner']['actor']}, {finding['confidence']}" if finding else "nothing"
        if finding:
            confidences[finding["confidence"]][mark] += 1
        rows.append((kind, name, expected[0], expected[1], state, said, mark))
        if mark != "right":
            listed = " (known)" if name in known else ""
            print(f"{mark:6} {name}: {expected[0]}, {expected[1]}; said {state}, {said}{listed}")
            failed |= name not in known or kind == "healthy"
    for kind, marks in counts.items():
        print(f"{kind}: " + ", ".join(f"{mark} {marks[mark]}" for mark in ("right", "partly", "wrong")))
    for word, marks in sorted(confidences.items()):
        print(f"called {word}: {marks['right']} of {sum(marks.values())} right")
    if args.table:
        write_table(args.table, rows, counts, confidences)
    return 1 if failed else 0


def write_table(path, rows, counts, confidences):
    lines = ["| set | right | partly | wrong |", "|---|---|---|---|"]
    for kind, marks in counts.items():
        lines.append(f"| {kind} | {marks['right']} | {marks['partly']} | {marks['wrong']} |")
    lines += ["", "| called | right | of |", "|---|---|---|"]
    for word, marks in sorted(confidences.items()):
        lines.append(f"| {word} | {marks['right']} | {sum(marks.values())} |")
    lines += ["", "| set | recording | true | owner | said | finding, owner, confidence | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if row[0] != "healthy" or row[-1] != "right":
            lines.append("| " + " | ".join(row) + " |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
