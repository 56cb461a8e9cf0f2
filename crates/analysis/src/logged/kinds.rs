//! Kinds of events that report trouble, and what to do. What each one means and which setting it is about is in
//! Microsoft's list of SMB events and in their messages.

use smbscope_findings::{Actor, KindInfo, kinds};

/// A kind of event: the word in the table, what it says, the side that can change something, and how.
const fn logged(
    id: &'static str,
    title: &'static str,
    actor: Actor,
    remedy: &'static [(&'static str, &'static str)],
) -> KindInfo {
    KindInfo::new(id, title).with_actor(actor).with_remedies(remedy)
}

kinds! {
    /// What was logged, the most costly kinds first.
    pub(super) enum LoggedKind {
        SlowFileSystem = logged(
            "slow_file_system",
            "File-system operations took longer than the server tolerates",
            Actor::Server,
            &[("server", "look at the storage of these shares at these times: latency of the volume, filter drivers (fltmc), antivirus, backups, deduplication")],
        ),
        SlowNetwork = logged(
            "slow_network",
            "Sending or receiving took longer than the server tolerates",
            Actor::Network,
            &[("network", "look for losses and closed windows in a capture of these clients, and for network adapters whose receive work is on one CPU")],
        ),
        SlowCommand = logged(
            "slow_command",
            "Commands took longer than the server tolerates",
            Actor::Server,
            &[("server", "record the server's events (`smbscope record --print-windows-script --what smb --to 'S:\\temp'`): they say in which part the time goes")],
        ),
        SessionLost = logged(
            "session_lost",
            "The client lost its session with a server",
            Actor::Network,
            &[("network", "the server became unreachable, restarted, or the share moved in a cluster: compare the times with those of the server, of firewalls and of failovers")],
        ),
        ShareLost = logged(
            "share_lost",
            "The client lost its connection to a share",
            Actor::Network,
            &[("network", "the server became unreachable, restarted, or the share moved in a cluster: compare the times with those of the server, of firewalls and of failovers")],
        ),
        ConnectionHung = logged(
            "connection_hung",
            "The client gave up connections that did not answer",
            Actor::Server,
            &[("server", "requests ran into the timeout: look at the storage of the server and at the network at these times; the client continues over another connection if there is one")],
        ),
        Disconnected = logged(
            "disconnected",
            "Connections to a server were lost",
            Actor::Network,
            &[("network", "compare the times with those of the server, of firewalls and of failovers; a capture shows who sent the reset")],
        ),
        NameNotResolved = logged(
            "name_not_resolved",
            "The name of a server could not be resolved",
            Actor::Client,
            &[("client", "check that these servers exist and are in DNS (Resolve-DnsName), and which mapped drive, script or shortcut names them: each try makes its program wait")],
        ),
        ConnectFailed = logged(
            "connect_failed",
            "Connections to a server could not be made",
            Actor::Network,
            &[("network", "the name was resolved, but nothing accepted the connection: check that the server runs and that port 445 is open from this client (Test-NetConnection SERVER -Port 445)")],
        ),
        ChannelFailed = logged(
            "channel_failed",
            "More connections of SMB Multichannel could not be made",
            Actor::Network,
            &[("network", "the session works without them: check routes and port 445 between these addresses, or exclude the interface (New-SmbMultichannelConstraint)")],
        ),
        RequestExpired = logged(
            "request_expired",
            "Requests were given up because no response came",
            Actor::Server,
            &[("server", "look at what the server did at these times: these requests waited until the client's timeout")],
        ),
        SessionRefused = logged(
            "session_refused",
            "Sessions with a server could not be set up",
            Actor::Server,
            &[("server", "look for the status: an expired ticket, a changed password, or a server that refuses the logon")],
        ),
        ShareRefused = logged(
            "share_refused",
            "Shares could not be connected",
            Actor::Server,
            &[("server", "look for the status: the share is gone, or the user may not use it")],
        ),
        ReopenFailed = logged(
            "reopen_failed",
            "Durable or persistent handles could not be opened again",
            Actor::Server,
            &[("server", "programs lost their open files after a lost connection: look for the reason of the connection's end at the same time")],
        ),
        LogonFailed = logged(
            "logon_failed",
            "Logons failed",
            Actor::Client,
            &[("client", "look for the status and the client: old credentials in services and mapped drives try again and again")],
        ),
        UnencryptedRefused = logged(
            "unencrypted_refused",
            "Access without encryption was refused",
            Actor::Client,
            &[("client", "these clients need SMB 3, or the share's encryption is stricter than intended (Set-SmbShare -EncryptData, RejectUnencryptedAccess)")],
        ),
        CipherRefused = logged(
            "cipher_refused",
            "No common cipher for encryption was found",
            Actor::Client,
            &[("client", "compare the cipher orders (Get-SmbServerConfiguration EncryptionCiphers) with what these clients support")],
        ),
        SignatureWrong = logged(
            "signature_wrong",
            "Messages with a wrong signature were refused",
            Actor::Network,
            &[("network", "a device between client and server changes messages (WAN optimiser, proxy), or somebody tries to")],
        ),
        SigningFailed = logged(
            "signing_failed",
            "Responses with a wrong signature were refused",
            Actor::Network,
            &[("network", "a device between client and server changes messages (WAN optimiser, proxy), or somebody tries to")],
        ),
        NegotiateChanged = logged(
            "negotiate_changed",
            "The negotiation was changed on the way",
            Actor::Network,
            &[("network", "a device between client and server changes messages (WAN optimiser, proxy), or somebody tries to")],
        ),
        NoSigning = logged(
            "no_signing",
            "Clients that do not support signing connected",
            Actor::Client,
            &[("client", "update them before the server requires signing")],
        ),
        NoEncryption = logged(
            "no_encryption",
            "Clients that do not support encryption connected",
            Actor::Client,
            &[("client", "update them before the server or a share requires encryption")],
        ),
        Smb1Access = logged(
            "smb1_access",
            "Clients tried SMB1",
            Actor::Client,
            &[("client", "update or replace them: SMB1 has no protection, and Windows removes it")],
        ),
        GuestLogon = logged(
            "guest_logon",
            "Clients logged on as guest",
            Actor::Client,
            &[("client", "give them an account: a guest's messages cannot be signed")],
        ),
        RdmaFallback = logged(
            "rdma_fallback",
            "RDMA is available, but connections use TCP",
            Actor::Network,
            &[("network", "check RDMA on both sides (Get-NetAdapterRdma, Get-SmbMultichannelConnection) and, for RoCE, priority flow control on the switches")],
        ),
        RdmaWithSigning = logged(
            "rdma_with_signing",
            "Signing is required together with RDMA",
            Actor::Server,
            &[("server", "direct placement by RDMA is not used for signed messages by older versions: signing costs the benefit of RDMA")],
        ),
        RdmaWithEncryption = logged(
            "rdma_with_encryption",
            "Encryption is required together with RDMA",
            Actor::Server,
            &[("server", "direct placement by RDMA is not used for encrypted messages by older versions")],
        ),
        CreditsExhausted = logged(
            "credits_exhausted",
            "Requests waited for credits",
            Actor::Server,
            &[("server", "look at the number of credits that the server grants (Smb2CreditsMax), and at what makes its responses late")],
        ),
        NoMultichannel = logged(
            "no_multichannel",
            "The server does not support SMB Multichannel",
            Actor::Server,
            &[("server", "each session has one connection: turn it on (Set-SmbServerConfiguration -EnableMultiChannel, Samba: server multi channel support) if the network has several paths or adapters with RSS")],
        ),
        ProcessorLimited = logged(
            "processor_limited",
            "The firmware limited the speed of CPUs",
            Actor::Server,
            &[("server", "everything on this machine is slower while it lasts: look at temperature, power supplies and the power profile in the BIOS (event 37 of Kernel-Processor-Power, one for each CPU)")],
        ),
    }
}
