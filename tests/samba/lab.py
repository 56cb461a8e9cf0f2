#!/usr/bin/env python3
"""A private Samba server and a packet recorder, both gone when the program ends.

Owns: namespaces, smb.conf, accounts, start and stop of smbd, the recorder.
Not: what is recorded (fixtures.py) and what was recorded (facts.py).

Nothing here touches a Samba, a network or an account of the machine: the
program runs again inside network, process and mount namespaces of its own
(`enter_namespaces`), every path of smb.conf lies below one temporary folder,
and the accounts are a passdb of its own whose names are mapped to system users
that every Linux has.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

ENTERED = "SMBSCOPE_SAMBA_LAB"
PASSWORD = "Pass-w0rd"
# name in the session setup -> system user whose rights it gets
ACCOUNTS = {"alice": "daemon", "bob": "bin"}
PACKAGES = {
    "smbd": "samba", "pdbedit": "samba-common-bin", "smbclient": "smbclient",
    "smbtorture": "samba-testsuite", "tshark": "tshark", "dumpcap": "wireshark-common",
    "tcpdump": "tcpdump", "ip": "iproute2", "ethtool": "ethtool",
    "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
    "krb5kdc": "krb5-kdc", "kdb5_util": "krb5-kdc", "kadmin.local": "krb5-admin-server",
}


def require(*tools):
    """Ends with the list of Debian packages to install if a tool is missing."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = sorted({PACKAGES[t] for t in tools if shutil.which(t) is None})
    if missing:
        sys.exit("missing tools; on Debian: apt-get install " + " ".join(missing))


def enter_namespaces():
    """Runs this program again in namespaces of its own; every process it starts
    ends with it, however it ends."""
    if os.environ.get(ENTERED):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    if os.geteuid() != 0:
        sys.exit("needs root: packet capture and namespaces")
    os.environ[ENTERED] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                          "--mount-proc", sys.executable] + sys.argv)


class Samba:
    """One smbd in the foreground, with `options` added to [global]."""

    def __init__(self, folder, options=None, port=445, interfaces="lo", shares=None, enter=None):
        self.folder = folder
        self.port = port
        self.log = os.path.join(folder, "log.smbd")
        self.conf = os.path.join(folder, "smb.conf")
        self.enter = enter or []
        self.process = None
        self._folders()
        self._configure(options or {}, interfaces, shares or {})
        self._accounts()

    def __enter__(self):
        out = open(os.path.join(self.folder, "smbd.out"), "w")
        self.process = subprocess.Popen(
            self.enter + ["smbd", "--foreground", "--no-process-group", f"--configfile={self.conf}",
                          f"--port={self.port}"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        deadline = time.time() + 10
        while not self._listening():
            if time.time() > deadline or self.process.poll() is not None:
                self.__exit__()
                sys.exit("smbd did not start, see " + out.name + "\n" + open(out.name).read())
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def path(self, *parts):
        return os.path.join(self.folder, "shares", *parts)

    def _listening(self):
        found = subprocess.run(self.enter + ["cat", "/proc/self/net/tcp", "/proc/self/net/tcp6"],
                               capture_output=True, text=True).stdout
        return any(re.search(r":%04X [0-9A-F]+:0000 0A" % self.port, line)
                   for line in found.splitlines())

    def _folders(self):
        for name in ("private", "lock", "state", "cache", "pid", "ncalrpc", "shares"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        # smbd walks down as the mapped user, so every folder above must let it pass
        os.chmod(self.folder, 0o755)
        for name in ("home", "target", "forbidden", "dfs"):
            os.makedirs(self.path(name), exist_ok=True)
            os.chmod(self.path(name), 0o777)
        with open(self.path("home", "unreadable.txt"), "w") as f:
            f.write("nobody but root\n")
        os.chmod(self.path("home", "unreadable.txt"), 0)
        with open(self.path("target", "behind-the-link.txt"), "w") as f:
            f.write("found through the namespace\n")

    def _configure(self, options, interfaces, shares):
        users = os.path.join(self.folder, "users.map")
        with open(users, "w") as f:
            f.writelines(f"{system} = {name} LAB\\{name}\n"
                         for name, system in ACCOUNTS.items())
        settings = {
            "workgroup": "LAB", "netbios name": "PRIVATE", "server role": "standalone server",
            "security": "user", "passdb backend": f"smbpasswd:{self.folder}/private/smbpasswd",
            "username map": users, "map to guest": "never", "guest account": "nobody",
            "private dir": f"{self.folder}/private", "lock directory": f"{self.folder}/lock",
            "state directory": f"{self.folder}/state", "cache directory": f"{self.folder}/cache",
            "pid directory": f"{self.folder}/pid", "ncalrpc dir": f"{self.folder}/ncalrpc",
            "log file": self.log, "max log size": "0", "log level": "1",
            "interfaces": interfaces, "bind interfaces only": "yes", "disable netbios": "no",
            "load printers": "no", "printing": "bsd", "disable spoolss": "yes",
            "server multi channel support": "no", "smb ports": str(self.port),
            "host msdfs": "yes", "server min protocol": "SMB2_02", "debug encryption": "yes",
            "nt acl support": "yes", "store dos attributes": "yes", "smb2 leases": "yes",
            "kernel oplocks": "no", "durable handles": "yes", "strict locking": "yes",
        }
        settings.update(options)
        sections = {
            "home": {"path": self.path("home"), "read only": "no"},
            "target": {"path": self.path("target"), "read only": "no"},
            "dfs": {"path": self.path("dfs"), "msdfs root": "yes", "read only": "no"},
            "forbidden": {"path": self.path("forbidden"), "valid users": "root"},
        }
        for name, more in shares.items():
            sections[name].update(more)
        with open(self.conf, "w") as f:
            f.write("[global]\n" + "".join(f"  {k} = {v}\n" for k, v in settings.items()))
            for name, section in sections.items():
                f.write(f"[{name}]\n" + "".join(f"  {k} = {v}\n" for k, v in section.items()))

    def _accounts(self):
        for system in ACCOUNTS.values():
            subprocess.run(["pdbedit", f"--configfile={self.conf}", "-a", "-t", "-u", system],
                           input=f"{PASSWORD}\n{PASSWORD}\n", text=True, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Kdc:
    """A private MIT KDC on port 88 of this namespace, for the accounts and one file server.

    `krb5-udp.conf` and `krb5-tcp.conf` in its folder lead Samba's client to it;
    `server.keytab` is the file server's."""

    REALM = "LAB.TEST"

    def __init__(self, folder, services):
        """`services` are the names of file servers, with the encryption type of their keys."""
        self.folder = os.path.join(folder, "kdc")
        self.process = None
        os.makedirs(self.folder)
        for way in ("udp", "tcp"):
            self._write(f"krb5-{way}.conf",
                        f"[libdefaults]\n  default_realm = {self.REALM}\n  dns_lookup_kdc = false\n"
                        "  dns_lookup_realm = false\n  rdns = false\n"
                        "  allow_weak_crypto = true\n  allow_rc4 = true\n"
                        f"[realms]\n  {self.REALM} = {{\n    kdc = {way}/127.0.0.1\n  }}\n"
                        f"[domain_realm]\n  .lab.test = {self.REALM}\n")
        self._write("kdc.conf",
                    "[kdcdefaults]\n  kdc_listen = 127.0.0.1:88\n  kdc_tcp_listen = 127.0.0.1:88\n"
                    f"[realms]\n  {self.REALM} = {{\n    database_name = {self.folder}/principal\n"
                    f"    key_stash_file = {self.folder}/stash\n    acl_file = {self.folder}/acl\n"
                    "    supported_enctypes = aes256-cts-hmac-sha1-96:normal\n"
                    "    default_principal_flags = +preauth\n  }\n"
                    f"[logging]\n  kdc = FILE:{self.folder}/kdc.log\n")
        self.environment = dict(os.environ, KRB5_CONFIG=self.path("krb5-udp.conf"),
                                KRB5_KDC_PROFILE=self.path("kdc.conf"))
        self._run("kdb5_util", "create", "-r", self.REALM, "-s", "-P", "master")
        for name in ACCOUNTS:
            self._run("kadmin.local", "addprinc", "-pw", PASSWORD, name)
        # A Samba on its own takes tickets without a PAC only, since no KDC that it trusts signs one.
        for server, encryption in services.items():
            self._run("kadmin.local", "addprinc", "-randkey", "-e", encryption + ":normal",
                      "+no_auth_data_required", f"cifs/{server}")
            # The client and this server share a key of the same type.
            self._run("kadmin.local", "setstr", f"cifs/{server}", "session_enctypes",
                      encryption)
            self._run("kadmin.local", "ktadd", "-norandkey", "-k", self.path("server.keytab"),
                      f"cifs/{server}")

    def __enter__(self):
        self.process = subprocess.Popen(["krb5kdc", "-n"], env=self.environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 10
        while ":0058 00000000:0000 0A" not in open("/proc/self/net/tcp").read():
            if time.time() > deadline or self.process.poll() is not None:
                self.__exit__()
                sys.exit("krb5kdc did not start, see " + self.path("kdc.log"))
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def path(self, name):
        return os.path.join(self.folder, name)

    def _write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def _run(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}")


class Recorder:
    """tcpdump (pcap) or dumpcap (pcapng) on one interface, by the file's ending."""

    def __init__(self, path, port, interface="lo", snaplen=262144, enter=None,
                 buffer_kib=None, more=None):
        """`buffer_kib`: a large kernel buffer for a long recording, else each packet at once.
        `more`: what is recorded in addition to the port, as a filter."""
        self.path = path
        self.long = bool(buffer_kib)
        self.packets = None  # known when the recording is over
        flt = f"tcp port {port}" + (f" or {more}" if more else "")
        if path.endswith(".pcapng"):
            self.command = ["dumpcap", "-q", "-i", interface, "-s", str(snaplen), "-B", "32",
                            "-f", flt, "-w", path]
            self.ready = "File:"
        else:
            self.command = ["tcpdump", "-i", interface, "-s", str(snaplen), "-Z", "root", "-w", path,
                            "-B", str(buffer_kib or 32768)]
            self.command += ([] if buffer_kib else ["-U", "--immediate-mode"]) + [flt]
            self.ready = "listening on"
        self.enter = enter or []

    def __enter__(self):
        self.messages = open(self.path + ".log", "w+")
        self.process = subprocess.Popen(self.enter + self.command, stderr=self.messages,
                                        stdout=self.messages)
        deadline = time.time() + 10
        while self.ready not in self._said():
            if time.time() > deadline or self.process.poll() is not None:
                self.process.kill()
                sys.exit(f"{self.command[0]} did not start: {self._said()}")
            time.sleep(0.05)
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        time.sleep(1.5 if self.long else 0.4)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        said = self._said()
        self.messages.close()
        os.unlink(self.path + ".log")
        # "0 packets dropped by kernel", "dropped on interface 'lo': 7/0 (pcap:0/..."
        lost = re.findall(r"(\d+) packets dropped by (?:kernel|interface)", said) or \
            re.findall(r"dropped on interface '.*': \d+/(\d+)", said)
        if not lost or any(int(n) for n in lost):
            sys.exit(f"the recorder lost packets or did not say: {said}")
        seen = re.search(r"(\d+) packets captured|Packets captured: (\d+)", said)
        self.packets = int(seen[1] or seen[2])

    def _said(self):
        with open(self.path + ".log") as f:
            return f.read()


def veth_pair(server=("10.45.0.1", "10.45.0.3"), client=("10.45.0.2",), mtu=1500):
    """A link as between two machines: MTU-sized segments with right checksums.

    Returns the prefixes that run a command at the server's and the client's
    end. The client's end is this process's own network namespace, the server's
    that of a sleeping child."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    inside = ["nsenter", "-t", str(holder.pid), "-n"]
    mine = os.readlink("/proc/self/ns/net")
    while os.readlink(f"/proc/{holder.pid}/ns/net") == mine:
        time.sleep(0.02)
    run = lambda *c: subprocess.run(c, check=True, stdout=subprocess.DEVNULL)
    run("ip", "link", "add", "vclient", "mtu", str(mtu), "type", "veth",
        "peer", "name", "vserver", "mtu", str(mtu), "netns", str(holder.pid))
    run(*inside, "ip", "link", "set", "lo", "up")
    for prefix, name, addresses in ((inside, "vserver", server), ([], "vclient", client)):
        run(*prefix, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off",
            "tx", "off", "rx", "off", "sg", "off")
        for address in addresses:
            run(*prefix, "ip", "address", "add", address + "/24", "dev", name)
        run(*prefix, "ip", "link", "set", name, "up")
    return inside, [], holder
