#!/usr/bin/env python3
"""Checks `smbscope plan baseline` against what a setting really costs: the case of the 234 settings.

    tests/baseline/verify.py [--smbscope FILE] [--samba PATH] [--rounds N] [--size MIB]

A private Samba speaks SMB 2.1, where signing is HMAC-SHA256. Its baseline has signing among dozens of harmless settings.
From a recording without signing, a calibration of this machine and both smb.conf, the tool must name signing first,
predict the factor of the copies within 10 per cent of what is measured afterwards, and find signing in at most two steps
of the search, the test of the network included. Prints a table; exit code 1 if one of that fails.
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
    """Runs the copies; gives the mean seconds of all scenarios, from their scheduled start."""
    lab = os.path.join(folder, "lab")
    samba = ["--samba", arguments.samba] if arguments.samba else []
    run(binary, "-q", "lab", "up", "--dir", lab, "--users", "2", "--max-dialect", "2.1", "--signing", signing, *samba)
    try:
        common = ["--workload", "bulk-copy", "--users", "1", "--lab", lab, "--size", "%dMiB" % arguments.size]
        run(binary, "-q", "load", "prepare", *common)
        run(binary, "-q", "load", *common, "--duration", "%ds" % arguments.seconds, "--out", out)
        rows = json.loads("[" + ",".join(run(
            binary, "-q", "query", out, "--format", "json",
            "select avg(response_ns) / 1e9 as s, count(*) as n from scenarios where phase = 'measured' and outcome = 'done'").splitlines()) + "]")
        return rows[0]["s"], rows[0]["n"]
    finally:
        run(binary, "-q", "lab", "down", "--dir", lab, check=False)


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
    plain, signed, n = [], [], 0
    # The recording is the one in the middle; pairs alternate, because the machine is shared.
    for number in range(arguments.rounds):
        order = [("auto", plain), ("required", signed)]
        for signing, times in order if number % 2 == 0 else order[::-1]:
            out = os.path.join(folder, "%s-%d" % (signing, number))
            seconds, count = copies(signing, out)
            times.append(seconds)
            n += count
    recording = os.path.join(folder, "auto-%d" % plain.index(sorted(plain)[len(plain) // 2]))
    common = [binary, "-q", "plan", "baseline", after, "--against", before, "--recording", recording, "--calibration",
              crypto, "--system", "samba-4.17"]
    judged = json.loads(run(*common, "--format", "json"))
    first = json.dumps(judged["costs"][0]) if judged["costs"] else ""
    if "sign" not in first.lower():
        faults.append("the first cost is not signing: " + first[:300])
    scenarios = (judged["costs"][0]["predicted"] or {}).get("scenarios") or {}
    predicted = scenarios["after_ns"] / scenarios["before_ns"] if scenarios else None
    made = statistics.median(signed) / statistics.median(plain)
    if predicted is None or abs(predicted / made - 1) > 0.10:
        faults.append("the factor is not within 10 %")
    # The search: what is slow is known, because signing is.
    state = os.path.join(folder, "slow.json")
    run(*common, "--search", state)
    steps, shown = 0, {"is_done": False}
    result = "fast"
    while not shown["is_done"] and steps < 20:
        shown = json.loads(run(binary, "-q", "plan", "baseline", "--search", state, "--result", result, "--format", "json"))
        steps += 1
        taken = " ".join(shown["sentences"]).lower()
        result = "fast" if "sign" in taken else "slow"
        if shown["is_done"]:
            break
    if steps > 3 or "sign" not in " ".join(shown["found"]).lower():
        faults.append("the search needed %d steps and found %s" % (steps, shown["found"]))
    print("| settings | copies | without | signed (HMAC-SHA256) | made | predicted | error | steps of the search |")
    print("|---|---|---|---|---|---|---|---|")
    print("| %d | %d | %.3f s | %.3f s | %.2f | %s | %s | %d |" % (
        judged["after"]["settings"], n, statistics.median(plain), statistics.median(signed), made,
        "%.2f" % predicted if predicted else "-",
        "%+.1f %%" % (100 * (predicted / made - 1)) if predicted else "-", steps))
for fault in faults:
    print("fault: " + fault, file=sys.stderr)
sys.exit(1 if faults else 0)
