#!/usr/bin/env python3
"""Records the fixtures of tests/fixtures from a private Samba.

    sudo tests/samba/record.py [--only NAME ...] [--keep] [--list]

Owns: running each fixture's steps, keys of encrypted captures, size limits.
Not: the list (fixtures.py), the server (lab.py), the README (facts.py, which
this program calls at the end).
"""

import argparse
import contextlib
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import facts
import lab
from fixtures import FIXTURES

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(HERE), "fixtures")
LIMIT_BYTES, LIMIT_TOTAL_BYTES = 150_000, 1_500_000
STEP_TIMEOUT_S = 120


def main():
    ask = argparse.ArgumentParser(description="record tests/fixtures from a private Samba")
    ask.add_argument("--only", nargs="+", metavar="NAME", help="record only these")
    ask.add_argument("--list", action="store_true", help="list the fixtures and end")
    ask.add_argument("--keep", action="store_true", help="keep the server's folders and logs")
    args = ask.parse_args()
    if args.list:
        for f in FIXTURES:
            print(f"{f.file}.{f.format}\t{f.why}")
        return
    lab.require(*lab.PACKAGES)
    lab.enter_namespaces()
    os.makedirs(OUT, exist_ok=True)
    failed = []
    for fixture in FIXTURES:
        if args.only and fixture.file not in args.only:
            continue
        folder = tempfile.mkdtemp(prefix="smbscope-lab-")
        try:
            problem = record(fixture, folder)
        finally:
            if args.keep:
                print(f"kept: {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
        print(f"{fixture.file}.{fixture.format}: {problem or 'ok'}", flush=True)
        if problem:
            failed.append(fixture.file)
    failed += facts.write_readme(OUT)
    total = sum(os.path.getsize(p) for p in glob.glob(OUT + "/*"))
    print(f"total: {total} bytes")
    if total > LIMIT_TOTAL_BYTES:
        failed.append("total size")
    if failed:
        sys.exit("failed: " + ", ".join(sorted(set(failed))))


def record(fixture, folder):
    """Records one fixture; returns what went wrong, or None."""
    interface, interfaces, server_end, holder = "lo", "lo", None, None
    if fixture.link == "veth":
        server_end, _, holder = lab.veth_pair()
        interface, interfaces = "vclient", "10.45.0.1/24 10.45.0.3/24"
    zipped = fixture.format.endswith(".gz")
    capture = os.path.join(folder, "capture." + fixture.format.removesuffix(".gz"))
    work = local_files(folder)
    try:
        with contextlib.ExitStack() as running:
            options = dict(fixture.options)
            if fixture.kdc:
                kdc = running.enter_context(lab.Kdc(folder, fixture.services or {
                    fixture.server: "aes256-cts-hmac-sha1-96"}))
                options.update({"realm": kdc.REALM, "kerberos method": "dedicated keytab",
                                "dedicated keytab file": "FILE:" + kdc.path("server.keytab")})
                server_end = ["env", "KRB5_CONFIG=" + kdc.path("krb5-udp.conf")]
            samba = running.enter_context(lab.Samba(folder, options, fixture.port, interfaces,
                                                    fixture.shares, server_end))
            os.symlink(f"msdfs:{fixture.address}\\target", samba.path("dfs", "link"))
            more = "port 88" if fixture.kdc and not fixture.services else None
            with lab.Recorder(capture, fixture.port, interface, more=more):
                problem = run_steps(fixture, samba, work)
            text = open(samba.log, errors="replace").read()
    finally:
        if holder:
            holder.kill()
            holder.wait()
    if fixture.keys:
        write_keys(fixture, text)
    if fixture.services:
        keytab = os.path.join(OUT, fixture.file + ".keytab")
        shutil.copyfile(kdc.path("server.keytab"), keytab)
        os.chmod(keytab, 0o644)
    target = os.path.join(OUT, f"{fixture.file}.{fixture.format}")
    if zipped:
        with open(capture, "rb") as f, open(target, "wb") as out:
            with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as z:
                z.write(f.read())
    else:
        shutil.copyfile(capture, target)
    size = os.path.getsize(target)
    return problem or (f"{size} bytes, too large" if size > LIMIT_BYTES else None)


def command_line(words, fixture, conf="smb.conf", here="tests/samba"):
    """The words of a step with its blanks filled in."""
    blanks = {"address": fixture.address, "port": fixture.port, "conf": conf, "here": here,
              "password": lab.PASSWORD, "server": fixture.server,
              "kdc": os.path.join(os.path.dirname(conf), "kdc")}
    return [re.sub(r"\{(\w+)\}", lambda m: str(blanks[m[1]]), w) for w in words]


def run_steps(fixture, samba, work):
    for words, fails in fixture.steps:
        command = command_line(words, fixture, samba.conf, HERE)
        try:
            done = subprocess.run(command, cwd=work, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=STEP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"{command} took more than {STEP_TIMEOUT_S} s"
        said = done.stdout + done.stderr
        if not fails and (done.returncode != 0 or re.search(r"^(failure|error|skip):", said, re.M)
                          or "NT_STATUS_" in said and words[0] == "smbclient"):
            return f"{' '.join(command)}\n{said[-700:]}"
    return None


def local_files(folder):
    """Files for smbclient to send: zeros where the size matters, else countable."""
    work = os.path.join(folder, "work")
    os.makedirs(work)
    lines = b"".join(b"line %06d\n" % n for n in range(2000))
    for name, data in (("small.txt", b"a small file\n"), ("medium.bin", lines[:2000]),
                       ("quarter.bin", lines[:16384]), ("large.bin", bytes(256 * 1024))):
        with open(os.path.join(work, name), "wb") as f:
            f.write(data)
    return work


def write_keys(fixture, log):
    """Wireshark's smb2_seskey_list, once with session keys, once with direction keys.

    smbd prints them (`debug encryption = yes`); its ServerIn key is the
    client-to-server key, ServerOut the server-to-client key."""
    found = {}
    for block in log.split("dumping generated session keys")[1:]:
        key = {}
        for name in ("Session Id", "Session Key", "ServerIn Key", "ServerOut Key"):
            lines = re.search(name + r"\s+(\[0000\].*(?:\n\s*\[00[1-9a-f]0\].*)*)", block)
            if lines:
                key[name] = "".join(
                    "".join(re.findall(r"\b[0-9A-F]{2}\b", line.split("]", 1)[1][:52]))
                    for line in lines[1].splitlines()).lower()
        if "ServerIn Key" in key:
            found[key["Session Id"]] = key
    base = os.path.join(OUT, fixture.file)
    with open(base + ".keys", "w") as f:
        f.writelines(f'{i},{k["Session Key"]},"",""\n' for i, k in found.items())
    with open(base + ".direction.keys", "w") as f:
        f.writelines(f'{i},"",{k["ServerOut Key"]},{k["ServerIn Key"]}\n'
                     for i, k in found.items())


if __name__ == "__main__":
    main()
