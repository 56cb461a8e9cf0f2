#!/usr/bin/env python3
"""Checks `smbscope plan baseline` against what a setting really costs: the case of the 234 settings.

    tests/baseline/verify.py [--smbscope FILE] [--samba PATH] [--rounds N] [--size MIB]

A private Samba speaks SMB 2.1, where signing is HMAC-SHA256. Its baseline has signing among dozens of harmless settings.
From a recording without signing, a calibration of this machine and both smb.conf, the tool must name signing first,
predict the factor of the copies within 10 per cent of what is measured afterwards, and find signing in at most eight steps
of the search. Copies follow each other without a pause, so that a run has dozens; their
times are compared by direction, because the runs do not have the same number of each. The other way round, from a
recording with signing, is shown as well. Prints tables; exit code 1 if one of the above fails.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# Settings that do nothing to copies of large files, as hardening guides list them.
HARMLESS = {
    "restrict anonymous": "2", "lanman auth": "no", "client lanman auth": "no", "client plaintext auth": "no",
    "ntlm auth": "ntlmv2-only", "raw NTLMv2 auth": "no", "client min protocol": "SMB2_10", "client ipc min protocol": "SMB2_10", "deadtime": "15", "keepalive": "300",
    "max log size": "10000", "server string": "File server", "load printers": "no", "disable spoolss": "yes",
    "show add printer wizard": "no", "usershare max shares": "0", "usershare allow guests": "no", "map to guest": "never",
    "null passwords": "no", "obey pam restrictions": "yes", "smb2 disable lock sequence checking": "no",
    "name resolve order": "host", "disable netbios": "yes", "unix extensions": "no", "allow insecure wide links": "no",
    "wide links": "no", "follow symlinks": "yes", "hide unreadable": "no", "hide special files": "yes",
    "dos filemode": "no", "nt acl support": "yes", "ea support": "yes", "server services": "s3fs",
    "winbind enum users": "no", "winbind enum groups": "no", "winbind offline logon": "no", "template shell": "/bin/false",
    "idmap cache time": "604800", "lock directory": "/var/lib/samba/lock", "debug hires timestamp": "yes",
    "logging": "file", "log level": "1", "panic action": "", "enable core files": "no", "dns proxy": "no",
    "local master": "no", "preferred master": "no", "domain master": "no", "wins support": "no", "lm announce": "no",
    "host msdfs": "no", "time server": "no",
}


def run(*command, check=True):
    result = subprocess.run(command, capture_output=True, text=True)
    if check and result.returncode:
        raise SystemExit("%s: %s" % (" ".join(command), (result.stderr or result.stdout).strip()))
    return result.stdout


def conf(name, signing):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write("[global]\nserver max protocol = SMB2_10\nserver signing = %s\n" % signing)
        if signing == "mandatory":
            file.writelines("%s = %s\n" % setting for setting in sorted(HARMLESS.items()))
        file.write("[home]\npath = /srv/home\nread only = no\n")
    return path


def copies(signing, out):
    """Runs the copies; gives the mean seconds and the number by scenario."""
    lab = os.path.join(folder, "lab")
    samba = ["--samba", arguments.samba] if arguments.samba else []
    run(binary, "-q", "lab", "up", "--dir", lab, "--users", "2", "--max-dialect", "2.1", "--signing", signing, *samba)
    try:
        common = ["--workload", "bulk-copy", "--users", "1", "--lab", lab, "--size", "%dMiB" % arguments.size]
        run(binary, "-q", "load", "prepare", *common)
        run(binary, "-q", "load", *common, "--closed", "--duration", "%ds" % arguments.seconds, "--out", out)
        return scenarios(out)
    finally:
        run(binary, "-q", "lab", "down", "--dir", lab, check=False)


def scenarios(recording):
    lines = run(
        binary, "-q", "query", recording, "--format", "json",
        "select scenario, avg(response_ns) / 1e9 as s, count(*) as n from scenarios "
        "where phase = 'measured' and outcome = 'done' group by scenario").splitlines()
    return {row["scenario"]: (row["s"], row["n"]) for row in map(json.loads, lines)}


def forecast(recording, *changes):
    """The mean seconds by scenario with the changes."""
    options = [option for change in changes for option in ("--change", change)]
    lines = run(
        binary, "-q", "predict", recording, *options, "--calibration", crypto, "--format", "json").splitlines()
    rows = map(json.loads, lines)
    return {row["name"]: row["after_seconds"] for row in rows if row["of"] == "scenario"}


def median(runs, name):
    return statistics.median(one[name][0] for one in runs)


parser = argparse.ArgumentParser()
parser.add_argument("--smbscope", default=os.path.expanduser("~/.cache/smbscope/target/release/smbscope"))
parser.add_argument("--samba", help="another smbd, or a folder with sbin/smbd")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seconds", type=int, default=20)
parser.add_argument("--size", type=int, default=256, help="MiB of each file")
arguments = parser.parse_args()
binary = arguments.smbscope
faults = []
with tempfile.TemporaryDirectory(prefix="smbscope-baseline") as folder:
    os.chmod(folder, 0o755)
    before, after = conf("before.conf", "auto"), conf("after.conf", "mandatory")
    crypto = os.path.join(folder, "crypto.json")
    samba = ["--samba", arguments.samba] if arguments.samba else []
    run(binary, "-q", "predict", "calibrate", "--seconds", "20", "--out", crypto, *samba)
    plain, signed = [], []
    # The recording is the one in the middle; pairs alternate, because the machine is shared.
    for number in range(arguments.rounds):
        order = [("auto", plain), ("required", signed)]
        for signing, runs in order if number % 2 == 0 else order[::-1]:
            out = os.path.join(folder, "%s-%d" % (signing, number))
            runs.append(copies(signing, out))
    middle = [sum(seconds for seconds, _ in one.values()) for one in plain]
    middle = middle.index(sorted(middle)[len(middle) // 2])
    recording = os.path.join(folder, "auto-%d" % middle)
    common = [binary, "-q", "plan", "baseline", after, "--against", before, "--recording", recording, "--calibration",
              crypto, "--system", "samba-4.17"]
    judged = json.loads(run(*common, "--format", "json"))
    first = json.dumps(judged["costs"][0]) if judged["costs"] else ""
    if "sign" not in first.lower():
        faults.append("the first cost is not signing: " + first[:300])
    forward = forecast(recording, "signing=hmac-sha256")
    back = forecast(os.path.join(folder, "required-%d" % middle), "signing=off")
    print("| copies | n | without | signed (HMAC-SHA256) | made | predicted | error | from the signed recording, without: predicted | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    today = {name: plain[middle][name][0] for name in forward}
    for name in sorted(forward):
        made = median(signed, name) / median(plain, name)
        factor = forward[name] / today[name]
        if abs(factor / made - 1) > 0.10:
            faults.append("%s: the factor is not within 10 %%" % name)
        print("| %s | %d | %.3f s | %.3f s | %.2f | %.2f | %+.1f %% | %.3f s | %+.1f %% |" % (
            name, sum(one[name][1] for one in plain + signed), median(plain, name), median(signed, name), made, factor,
            100 * (factor / made - 1), back[name], 100 * (back[name] / median(plain, name) - 1)))
    # What the plan says is the mean of all copies of the recording.
    told = (judged["costs"][0]["predicted"] or {}).get("scenarios") or {} if judged["costs"] else {}
    counts = {name: plain[middle][name][1] for name in forward}
    made = (sum(counts[name] * median(signed, name) for name in counts)
            / sum(counts[name] * median(plain, name) for name in counts))
    factor = told["after_ns"] / told["before_ns"] if told else None
    if factor is None or abs(factor / made - 1) > 0.10:
        faults.append("the factor of the plan is not within 10 %")
    # The search with an honest user: it is slow while the printed commands leave signing in force.
    state = os.path.join(folder, "slow.json")
    shown = json.loads(run(*common, "--search", state, "--format", "json"))["search"]
    steps, is_signed = 0, True
    while not shown["is_done"] and steps < 20:
        for line in (line for block in shown["commands"] for line in block["apply"]):
            if "server signing =" in line:
                is_signed = any(word in line for word in ("mandatory", "required"))
        result = "slow" if is_signed else "fast"
        shown = json.loads(run(binary, "-q", "plan", "baseline", "--search", state, "--result", result, "--format", "json"))
        steps += 1
    if steps > 8 or "sign" not in " ".join(shown["found"]).lower():
        faults.append("the search needed %d steps and found %s" % (steps, shown["found"]))
    print("\n| settings | made, all copies | said by the plan | error | steps of the search |")
    print("|---|---|---|---|---|")
    print("| %d | %.2f | %s | %s | %d |" % (
        judged["after"]["settings"], made, "%.2f" % factor if factor else "-",
        "%+.1f %%" % (100 * (factor / made - 1)) if factor else "-", steps))
for fault in faults:
    print("fault: " + fault, file=sys.stderr)
sys.exit(1 if faults else 0)
