"""What is recorded: one `Fixture` per capture of tests/fixtures, as data.

Owns: the list of fixtures with server options and steps. Not: how they are
run (record.py), nor the server (lab.py).

A step is a command line in which {address}, {port}, {conf} (the private
smb.conf), {password}, {server} (its name), {kdc} (the private KDC's folder) and {here} (this
folder) are filled in. Steps run one after another while the recorder runs.
"""

from dataclasses import dataclass, field

# most of what smbclient can send: enumerate, write, read, query, set, rename, delete,
# server-side copy, second tree, echo, log off
SESSION = ("ls; mkdir dir; cd dir; put small.txt one.txt; put medium.bin two.bin; "
           "get two.bin got.bin; allinfo one.txt; rename one.txt renamed.txt; "
           "scopy two.bin copy.bin; setmode renamed.txt +r; setmode renamed.txt -r; "
           "utimes renamed.txt -1 -1 -1 2020:02:02-02:02:02; ls *; volume; echo 1 hello; "
           "del renamed.txt; del two.bin; del copy.bin; cd ..; rmdir dir; "
           "tcon target; ls; tdis; logoff")
# Samba's SMB1 has no server-side copy
SESSION_NT1 = SESSION.replace("scopy two.bin copy.bin; ", "").replace("del copy.bin; ", "")
SHORT = ("ls; put small.txt one.txt; put medium.bin two.bin; get two.bin got.bin; "
         "allinfo one.txt; rename one.txt renamed.txt; del renamed.txt; del two.bin")
NT1 = {"server min protocol": "NT1", "ntlm auth": "ntlmv1-permitted"}


@dataclass
class Fixture:
    """One capture; `file` is its name without ending, `format` the ending."""
    file: str
    why: str
    steps: list
    options: dict = field(default_factory=dict)
    shares: dict = field(default_factory=dict)
    format: str = "pcapng"
    address: str = "127.0.0.1"
    port: int = 445
    link: str = "lo"
    keys: bool = False
    kdc: bool = False  # a private KDC runs, and its port is recorded too
    # the encryption type of each service's key; with them, the keytab becomes NAME.keytab and the
    # KDC's port is not recorded
    services: dict = field(default_factory=dict)
    server: str = "private.lab.test"
    expect: tuple = ()
    malformed: int = 0  # what tshark calls malformed, and is not: `note` says why
    note: str = ""


def client(script, *more, dialect="SMB3_11", share="home", account="alice%{password}", fails=False):
    """smbclient with a script; `fails` when it is meant to end with an error."""
    command = ["smbclient", "//{address}/" + share, "-p", "{port}", "-s", "{conf}",
               "-m", dialect, "--option=client min protocol=" + dialect,
               "-U", account, *more, "-c", script]
    return (command, fails)


def kerberos(script, account, way, *more, server="{server}"):
    """smbclient that logs on by a ticket, which it fetches over `way`: udp or tcp."""
    command, fails = client(script, "-I", "{address}", "--use-kerberos=required", *more,
                            account=account + "@LAB.TEST%{password}")
    at = command.index("//{address}/home")
    command[at] = f"//{server}/home"
    return (["env", f"KRB5_CONFIG={{kdc}}/krb5-{way}.conf"] + command, fails)


def torture(test, *more, dialect=None, fails=False):
    """One smbtorture test against the share `home`; `fails` when this Samba does
    not pass it and only its traffic is wanted."""
    command = ["smbtorture", "//{address}/home", test, "-p", "{port}", "-s", "{conf}",
               "-U", "alice%{password}", "--extra-user=bob%{password}"]
    if dialect:
        command += ["-m", dialect, "--option=client min protocol=" + dialect]
    return (command + list(more), fails)


def signed(name, dialect, algorithm=None):
    options = {"server signing": "mandatory"}
    more = ["--client-protection=sign"]
    if algorithm:
        options["server smb3 signing algorithms"] = algorithm
        more.append("--option=client smb3 signing algorithms=" + algorithm)
    if dialect == "NT1":
        options.update(NT1)
    return Fixture(name, f"signed with {algorithm or 'the only algorithm'}, {dialect}",
                   [client(SHORT, *more, dialect=dialect)], options)


def encrypted(name, dialect, cipher, **more):
    return Fixture(name, f"encrypted with {cipher}, {dialect}",
                   [client(SHORT, "--client-protection=encrypt",
                           "--option=client smb3 encryption algorithms=" + cipher,
                           dialect=dialect)],
                   {"server smb encrypt": "required", "server smb3 encryption algorithms": cipher},
                   keys=True, expect=("Create", "Read", "Write"), **more)


# one service of the private KDC for each encryption type that smbscope decrypts
SERVICES = {"aes128-sha1.lab.test": "aes128-cts-hmac-sha1-96",
            "aes256-sha1.lab.test": "aes256-cts-hmac-sha1-96",
            "aes128-sha2.lab.test": "aes128-cts-hmac-sha256-128",
            "aes256-sha2.lab.test": "aes256-cts-hmac-sha384-192",
            "rc4.lab.test": "arcfour-hmac"}


def kerberos_encrypted(name, cipher, services):
    return Fixture(name, f"logons by Kerberos with keys of {', '.join(services.values())}, then {cipher}",
                   [kerberos("ls", "alice", "udp", "--client-protection=encrypt",
                             "--option=client smb3 encryption algorithms=" + cipher, server=service)
                    for service in services],
                   {"server smb encrypt": "required", "server smb3 encryption algorithms": cipher},
                   keys=True, kdc=True, services=services, format="pcapng.gz")


FIXTURES = [
    # dialects
    Fixture("nt1", "SMB1", [client(SESSION_NT1, dialect="NT1")], NT1, format="pcap"),
    Fixture("smb202", "SMB 2.0.2", [client(SESSION, dialect="SMB2_02")],
            format="pcapng.gz"),
    Fixture("smb210", "SMB 2.1", [client(SESSION, dialect="SMB2_10")], format="pcap"),
    Fixture("smb300", "SMB 3.0", [client(SESSION, dialect="SMB3_00")],
            format="pcapng.gz"),
    Fixture("smb302", "SMB 3.0.2", [client(SESSION, dialect="SMB3_02")], format="pcap"),
    Fixture("smb311", "SMB 3.1.1", [client(SESSION)]),
    Fixture("smb1-to-smb2-negotiate", "SMB1 Negotiate answered by SMB2 (2.FF), then 3.1.1",
            [client("ls", "--option=client min protocol=NT1")]),
    # signing
    signed("signed-nt1", "NT1"),
    signed("signed-hmac-sha256-210", "SMB2_10"),
    signed("signed-aes-128-cmac-300", "SMB3_00"),
    signed("signed-hmac-sha256-311", "SMB3_11", "HMAC-SHA256"),
    signed("signed-aes-128-cmac-311", "SMB3_11", "AES-128-CMAC"),
    signed("signed-aes-128-gmac-311", "SMB3_11", "AES-128-GMAC"),
    # encryption
    encrypted("encrypted-aes-128-ccm-300", "SMB3_00", "AES-128-CCM"),
    encrypted("encrypted-aes-128-ccm-311", "SMB3_11", "AES-128-CCM"),
    encrypted("encrypted-aes-128-gcm-311", "SMB3_11", "AES-128-GCM"),
    encrypted("encrypted-aes-256-ccm-311", "SMB3_11", "AES-256-CCM"),
    encrypted("encrypted-aes-256-gcm-311", "SMB3_11", "AES-256-GCM"),
    Fixture("encrypted-share", "only the trees of one share are encrypted, AES-128-GCM",
            [client("ls; put small.txt a; get a b; del a"),
             client("ls; get behind-the-link.txt b", share="target")],
            {"server smb encrypt": "desired", "server smb3 encryption algorithms": "AES-128-GCM"},
            {"target": {"server smb encrypt": "required"}}, keys=True),
    Fixture("encrypted-bind", "encrypted: a session bound to a second connection; reauthentication",
            [torture("smb2.session.bind1"), torture("smb2.session.reauth1")],
            {"server smb encrypt": "desired", "server multi channel support": "yes"},
            {"home": {"server smb encrypt": "required"}}, keys=True, format="pcapng.gz"),
    kerberos_encrypted("encrypted-kerberos-128", "AES-128-GCM", SERVICES),
    kerberos_encrypted("encrypted-kerberos-256", "AES-256-GCM",
                       {name: SERVICES[name] for name in ("aes256-sha1.lab.test", "rc4.lab.test")}),
    # leases, oplocks, durable handles
    Fixture("lease-break", "lease v1 broken by a second open, acknowledged",
            [torture("smb2.lease.breaking1"), torture("smb2.lease.breaking3")],
            expect=("OplockBreak",)),
    Fixture("lease-v2-break", "lease v2 with epoch",
            [torture("smb2.lease.v2_breaking3"), torture("smb2.lease.v2_epoch2")],
            expect=("OplockBreak",),
            format="pcapng.gz"),
    Fixture("lease-requests", "lease requests in all combinations",
            [torture("smb2.lease.request", fails=True)]),
    Fixture("oplock-break", "oplock broken by a second client, acknowledged",
            [torture("smb2.oplock.batch1"), torture("smb2.oplock.exclusive1")],
            expect=("OplockBreak",),
            format="pcapng.gz"),
    Fixture("compound-break", "break notification for a handle opened in a compound",
            [torture("smb2.compound.compound-break")], expect=("OplockBreak",)),
    Fixture("durable-v1", "durable handle, connection lost, reconnected",
            [torture("smb2.durable-open.reopen1"), torture("smb2.durable-open.reopen2")]),
    Fixture("durable-v2", "durable handle v2, connection lost, reconnected",
            [torture("smb2.durable-v2-open.reopen1"),
             torture("smb2.durable-v2-open.reopen2-lease-v2")],
            format="pcapng.gz"),
    # waiting
    Fixture("notify-cancel", "ChangeNotify: pending, answered, cancelled, ended by close",
            [torture("smb2.notify.dir", fails=True), torture("smb2.notify.close"),
             torture("smb2.notify.double")], expect=("ChangeNotify", "Cancel"),
            format="pcapng.gz"),
    Fixture("lock-blocked", "byte-range lock: pending, granted on unlock, cancelled",
            [torture("smb2.lock.async"), torture("smb2.lock.cancel")],
            expect=("Lock", "Cancel")),
    Fixture("lock-contend", "contending and multiple locks",
            [torture("smb2.lock.contend"), torture("smb2.lock.multiple-unlock")],
            format="pcapng.gz"),
    # compounds
    Fixture("compound-related", "related compounds, also failing in the lead",
            [torture("smb2.compound.related%d" % n) for n in (1, 2, 3, 5, 6, 9)]
            + [torture("smb2.compound.related%d" % n, fails=True) for n in (4, 7)],
            format="pcapng.gz"),
    Fixture("compound-unrelated", "unrelated compounds, invalid chains",
            [torture("smb2.compound.unrelated1"),
             torture("smb2.compound.invalid2"), torture("smb2.compound.invalid4"),
             torture("smb2.compound.create-write-close")]),
    Fixture("compound-interim", "compounds with a member that goes pending",
            [torture("smb2.compound.interim1"),
             torture("smb2.compound.interim2", fails=True),
             torture("smb2.compound_async.flush_close"),
             torture("smb2.compound_async.flush_flush")], expect=("Flush",),
            format="pcapng.gz"),
    Fixture("compound-chains", "own client: chains of every kind, Create contexts, eight reads in "
            "flight, waiting lock and notification cancelled and granted, guest, unsigned",
            [(["python3", "{here}/smb2_raw.py", "{address}", "{port}", "home"], False)],
            {"map to guest": "Bad User"}, {"home": {"guest ok": "yes"}},
            expect=("Cancel", "Lock", "ChangeNotify", "Flush", "Logoff")),
    # sessions and connections
    Fixture("multichannel", "one session on several connections, binding",
            [torture("smb2.multichannel.generic.interface_info"),
             torture("smb2.multichannel.generic.num_channels")],
            {"server multi channel support": "yes"}, link="veth", address="10.45.0.1",
            format="pcapng.gz"),
    Fixture("session-bind", "session bound to a second connection and used on both",
            [torture("smb2.session.bind1")], {"server multi channel support": "yes"}),
    Fixture("session-again", "reauthentication, reconnection with the previous session id",
            [torture("smb2.session.reauth1"), torture("smb2.session.reconnect1")]),
    Fixture("replay", "replay flag and channel sequence numbers",
            [torture("smb2.replay.replay-commands", fails=True)],
            {"server multi channel support": "yes"}),
    Fixture("credits", "skipped message ids and credits",
            [torture("smb2.credits.session_setup_credits_granted"),
             torture("smb2.credits.single_req_credits_granted")]),
    Fixture("multi-credit", "reads and writes of 256 KiB with a credit charge above 1",
            [client("put large.bin large; get large got.bin; del large")],
            format="pcapng.gz", expect=("Read", "Write")),
    Fixture("pipe", "share list through a named pipe",
            [client("", "-L", "{address}")], expect=("Ioctl",)),
    Fixture("dfs", "DFS: referrals requested and a link followed",
            [client("ls; cd link; ls; get behind-the-link.txt got.txt", share="dfs")],
            expect=("Ioctl",)),
    Fixture("ioctl", "resume keys, copychunk, zero data, network interfaces",
            [torture("smb2.ioctl.req_resume_key"), torture("smb2.ioctl.copy_chunk_simple"),
             torture("smb2.ioctl.network_interface_info"), torture("smb2.ioctl.sparse_file_flag")],
            {"server multi channel support": "yes"},
            format="pcapng.gz"),
    Fixture("errors", "wrong password, anonymous, unknown share, forbidden share and file, "
            "no such file",
            [client("ls", account="alice%wrong", fails=True),
             client("ls", "-N", account="%", fails=True),
             client("ls", share="nowhere", fails=True),
             client("ls", share="forbidden", fails=True),
             client("get unreadable.txt got.txt; get missing.txt got.txt; cd no/where; "
                    "rmdir missing; mkdir home/a/b", fails=True)]),
    Fixture("guest", "unknown user accepted as guest",
            [client("ls", account="stranger%secret")],
            {"map to guest": "Bad User"}, {"home": {"guest ok": "yes"}}),
    Fixture("kerberos", "logons by Kerberos with the KDC's traffic, over UDP and over TCP",
            [kerberos("ls", "alice", "udp"), kerberos("ls", "bob", "tcp")], kdc=True),
    # addresses and links
    Fixture("ipv6", "IPv6 loopback", [client(SESSION)], address="::1"),
    Fixture("port-4450", "a port that is unusual for SMB",
            [client("ls; put small.txt a; get a b; del a")], port=4450,
            malformed=1, note="tshark misreads the token of the Negotiate response when called with "
            "`-d tcp.port==4450,nbss`; the bytes are those of port 445."),
    Fixture("port-139", "NetBIOS session request first",
            [client("ls; put small.txt a; get a b; del a", dialect="NT1")],
            NT1, port=139, format="pcap"),
    Fixture("mtu-1500", "veth pair at MTU 1500 without offloads",
            [client("put medium.bin a; get a b; put quarter.bin c; get c b; del a; del c")],
            link="veth", address="10.45.0.1", format="pcap"),
    encrypted("mtu-1500-encrypted", "SMB3_11", "AES-128-GCM",
              link="veth", address="10.45.0.1", format="pcap"),
    Fixture("mtu-1500-nt1", "SMB1 over a veth pair at MTU 1500 without offloads",
            [client("put medium.bin a; get a b; del a", dialect="NT1")],
            NT1, link="veth", address="10.45.0.1", format="pcap"),
    # SMB1 beyond smbclient
    Fixture("nt1-raw-mode", "Read Raw and Write Raw, core Read and Write, AndX chains, "
            "Transaction2 with secondaries",
            [(["python3", "{here}/smb1_raw.py", "{address}", "{port}", "home"], False)],
            dict(NT1, **{"map to guest": "Bad User", "server signing": "disabled"}),
            {"home": {"guest ok": "yes"}}, format="pcap",
            expect=("Read Raw", "Write Raw", "Trans2 Secondary", "Lock And Read"),
            malformed=4,
            note="Samba sends the interim reply of Write Raw without the reply flag, so tshark "
            "takes it for a malformed request: the direction must come from TCP. A raw block is "
            "a NetBIOS message without SMB header; one here looks like an SMB Echo and tshark "
            "counts it as two. After a write-behind block Samba sends a keep-alive (0x85) and no "
            "reply. The final reply has the command of the request (0x1D), not 0x20."),
    Fixture("nt1-write", "core Write, Write and Unlock, Write and Close",
            [torture("raw.write.write", dialect="NT1"),
             torture("raw.write.write unlock", dialect="NT1"),
             torture("raw.write.write close", dialect="NT1")], NT1, format="pcap.gz"),
    Fixture("nt1-open", "Open, Open AndX, NT Create AndX, NT Transact Create, Create, Create New",
            [torture("raw.open." + name, dialect="NT1")
             for name in ("open", "openx", "chained-openx", "chained-ntcreatex",
                          "nttrans-create", "mknew", "ctemp")], NT1, format="pcap.gz"),
    Fixture("nt1-lock", "Locking AndX: granted, refused, waiting, cancelled",
            [torture("raw.lock.lockx", dialect="NT1"), torture("raw.lock.async", dialect="NT1")],
            NT1, format="pcap.gz"),
    Fixture("nt1-search", "core Search and Find First/Next",
            [torture("raw.search.one file search", dialect="NT1", fails=True)], NT1, format="pcap"),
    Fixture("nt1-notify", "NT Transact Notify Change and NT Cancel",
            [torture("raw.notify.dir", dialect="NT1", fails=True)],
            NT1, format="pcap"),
    Fixture("nt1-oplock", "oplock break by Locking AndX from the server",
            [torture("raw.oplock.batch1", dialect="NT1")], NT1, format="pcap"),
    Fixture("nt1-core", "commands of the core protocol: Check Path, Seek, Process Exit, "
            "Delete, Rename",
            [torture("raw.chkpath", dialect="NT1", fails=True), torture("raw.seek", dialect="NT1"),
             torture("raw.rename.mv", dialect="NT1", fails=True),
             torture("raw.unlink.unlink", dialect="NT1")], NT1, format="pcap.gz"),
    Fixture("nt1-pipe", "share list over SMB1: Transaction on a named pipe",
            [client("", "-L", "{address}", dialect="NT1", fails=True)], NT1, format="pcap"),
    Fixture("lanman1", "dialect LANMAN1: no Unicode, no NT status",
            [client("ls; put small.txt a; get a b; rename a c; del c", dialect="LANMAN1")],
            {"server min protocol": "CORE", "lanman auth": "yes", "ntlm auth": "ntlmv1-permitted",
             "client lanman auth": "yes", "client NTLMv2 auth": "no"}, format="pcap"),
]
