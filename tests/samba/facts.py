#!/usr/bin/env python3
"""Says with tshark what each fixture holds, and writes tests/fixtures/README.md.

    tests/samba/facts.py            # writes the README; exit code 1 if a fixture is wrong

Owns: counts per command, statuses, malformed packets, the README's text.
Needs: tshark, nothing else (no root).
"""

import collections
import functools
import os
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True

SMB2 = ["Negotiate", "SessionSetup", "Logoff", "TreeConnect", "TreeDisconnect", "Create", "Close",
        "Flush", "Read", "Write", "Lock", "Ioctl", "Cancel", "Echo", "QueryDirectory",
        "ChangeNotify", "QueryInfo", "SetInfo", "OplockBreak"]
FIELDS = ["smb.cmd", "smb.flags.response", "smb2.cmd", "smb2.flags.response", "smb2.nt_status",
          "smb.nt_status", "smb2.header.transform.msg_size", "tcp.stream"]


def tshark(path, *arguments, port=445, keys=None):
    command = ["tshark", "-r", path, "-o", "tcp.desegment_tcp_streams:TRUE",
               "-o", "tcp.reassemble_out_of_order:TRUE", "-n"]
    if port not in (139, 445):
        command += ["-d", f"tcp.port=={port},nbss"]
    for line in keys or []:
        command += ["-o", "uat:smb2_seskey_list:" + line]
    done = subprocess.run(command + list(arguments), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    return done.stdout


class Facts:
    """What tshark counts in one capture."""

    def __init__(self, path, port=445, keys=None):
        self.requests, self.responses = collections.Counter(), collections.Counter()
        self.status = collections.Counter()
        self.packets = self.encrypted = 0
        streams = set()
        arguments = ["-T", "fields"]
        for name in FIELDS:
            arguments += ["-e", name]
        names = names_of("smb.cmd")
        for line in tshark(path, *arguments, port=port, keys=keys).splitlines():
            values = [v.split(",") if v else [] for v in line.split("\t")]
            smb1, smb1_response, smb2, smb2_response, status2, status1, encrypted, stream = values
            self.packets += 1
            streams.update(stream)
            self.encrypted += len(encrypted)
            for n, command in enumerate(smb1):
                # an AndX member has no flags of its own: it goes where its message goes
                response = smb1_response[min(n, len(smb1_response) - 1)] if smb1_response else "0"
                code = int(command, 0)
                if code != 0xff:
                    self._count(names.get(code, hex(code)), response)
            for command, response in zip(smb2, smb2_response):
                code = int(command, 0)
                self._count(SMB2[code] if code < len(SMB2) else hex(code), response)
            for value in status1 + status2:
                self.status[int(value, 0)] += 1
        self.connections = len(streams)
        self.malformed = len(tshark(path, "-Y", "_ws.malformed", port=port, keys=keys)
                             .splitlines())

    def _count(self, name, response):
        (self.responses if response in ("1", "True") else self.requests)[name] += 1


@functools.cache
def names_of(field):
    """Wireshark's names of the values of one field."""
    names = {}
    for line in subprocess.run(["tshark", "-G", "values"], capture_output=True,
                               text=True).stdout.splitlines():
        parts = line.split("\t")
        if len(parts) > 3 and parts[0] == "V" and parts[1] == field:
            names[int(parts[2], 0)] = parts[3]
    return names


INTRODUCTION = """# Fixtures

Recorded by `tests/samba/record.py` from a private Samba (never the machine's own), one server
start per file. This file is written by `tests/samba/facts.py`; do not edit it by hand.

- `sudo tests/samba/record.py` records all of them again, `--only NAME` one; `--list` lists them.
- `tests/samba/facts.py` counts messages with tshark and fails if a fixture is malformed, lacks a
  command that it is meant to contain, or does not decrypt with its keys.
- `*.keys` are in the format of Wireshark's `smb2_seskey_list`: session id, session key,
  server-to-client key, client-to-server key. `X.keys` has the session key alone,
  `X.direction.keys` the two direction keys alone. `X.keytab` has the
  keys of the private KDC's services. The accounts and keys exist only here.
- Recorded on `lo` (segments up to 64 KiB, checksums not filled in) unless the row says veth:
  then a pair of interfaces at MTU 1500 with all offloads off.
- Variants (loss, reordering, snap lengths, VLAN, other link types and file formats ...) are
  not kept: `tests/samba/mutate.py` makes them at test time from a seed; see its `--list`.
- `findings/NAME.pcap.gz` shows the finding NAME of `smbscope explain`, `NAME-not.pcap.gz` is a near miss.
  `sudo tests/findings/lab.py --smbscope PATH --record-fixtures [--case NAME]` records them, each from a
  Samba of its own. The function of each case describes it.

`a/b` counts requests/responses as tshark shows them (an interim STATUS_PENDING is a response of
its own, a break notification is a response without a request); in an AndX chain every member
counts. Counts of encrypted fixtures are with their keys.
"""


def write_readme(folder):
    """Writes README.md; returns the names of fixtures that are not as they must be."""
    from fixtures import FIXTURES
    from record import command_line
    wrong, rows, recipes = [], [], []
    statuses = names_of("smb2.nt_status")
    for fixture in FIXTURES:
        name = f"{fixture.file}.{fixture.format}"
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            wrong.append(name)
            continue
        keys = None
        if fixture.keys:
            counts = []
            # tshark takes session keys of 16 bytes only; a ticket's key can be longer.
            for ending in (".direction.keys", ".keys")[:1 if fixture.services else 2]:
                keys = open(os.path.join(folder, fixture.file + ending)).read().split()
                facts = Facts(path, fixture.port, keys)
                counts.append((facts.requests, facts.responses))
            if counts[0] != counts[-1]:
                print(f"{name}: the two key files decrypt differently", file=sys.stderr)
                wrong.append(name)
        else:
            facts = Facts(path, fixture.port)
        lacking = [c for c in fixture.expect if not facts.requests[c] + facts.responses[c]]
        if facts.malformed != fixture.malformed or lacking or not facts.requests:
            print(f"{name}: malformed {facts.malformed}, lacking {lacking}", file=sys.stderr)
            wrong.append(name)
        commands = sorted(set(facts.requests) | set(facts.responses))
        counted = ", ".join(f"{c} {facts.requests[c]}/{facts.responses[c]}" for c in commands)
        bad = ", ".join(f"{statuses.get(s, hex(s))} {n}" for s, n in facts.status.most_common()
                        if s and not s < 0x10000)
        rows.append(f"### {name}\n\n{fixture.why}. {os.path.getsize(path)} bytes, "
                    f"{facts.packets} packets, {facts.connections} connections"
                    + (f", {facts.encrypted} encrypted messages" if facts.encrypted else "")
                    + (f", link {fixture.link}" if fixture.link != "lo" else "")
                    + (f", port {fixture.port}" if fixture.port != 445 else "")
                    + f".\n\n- {counted}\n" + (f"- {fixture.note}\n" if fixture.note else "") + (f"- statuses: {bad}\n" if bad else "")
                    + ("- server: " + "; ".join(f"`{k} = {v}`" for k, v in fixture.options.items())
                       + "\n" if fixture.options else "")
                    + "".join(f"- share {s}: " + "; ".join(f"`{k} = {v}`" for k, v in o.items())
                              + "\n" for s, o in fixture.shares.items())
                    + "".join(f"- `{shlex.join(command_line(words, fixture))}`\n"
                              for words, _ in fixture.steps))
    version = lambda *c: subprocess.run(c, capture_output=True, text=True).stdout.splitlines()[0]
    with open(os.path.join(folder, "README.md"), "w") as f:
        f.write(INTRODUCTION)
        f.write(f"\nRecorded with smbd {version('smbd', '--version')}, counted with "
                f"{version('tshark', '--version').rstrip('.')}.\n\n" + "\n".join(rows))
    return wrong


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    problems = write_readme(os.path.join(os.path.dirname(here), "fixtures"))
    sys.exit("wrong: " + ", ".join(problems) if problems else 0)
