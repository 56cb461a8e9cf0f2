//! Table `server_events`: what a server or a client of SMB wrote to its event log on its own.

use crate::row::table;

table! {
    /// One event that the Windows SMB server or client logged on its own: slow operations, refused and lost connections, and what reports no trouble (`other`).
    ServerEvent, "server_events" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        time: i64, Time, Public, "When it was written.";
        provider: String, None, Public, "Provider: SMBServer, SMBClient or Kernel-Processor-Power.";
        event: u64, None, Public, "Number of the event.";
        kind: String, None, Public, "What happened: slow_file_system, slow_network, slow_command, unencrypted_refused, cipher_refused, signature_wrong, negotiate_changed, logon_failed, reopen_failed, no_signing, no_encryption, guest_logon, smb1_access, name_not_resolved, connect_failed, channel_failed, disconnected, connection_hung, session_lost, session_restored, session_refused, share_lost, share_restored, share_refused, request_expired, signing_failed, no_multichannel, rdma_fallback, rdma_with_signing, rdma_with_encryption, credits_exhausted, processor_limited, other.";
        command: Option<String>, None, Public, "SMB2 command.";
        user: Option<String>, None, Person, "User.";
        client: Option<String>, None, Machine, "Name or address of the client.";
        server: Option<String>, None, Machine, "Name of the server, in events of a client.";
        share: Option<String>, None, Path, "Share.";
        path: Option<String>, None, Path, "File or directory.";
        duration_ns: Option<i64>, Nanoseconds, Public, "How long it took.";
        threshold_ns: Option<i64>, Nanoseconds, Public, "From which duration on Windows writes such an event.";
        status: Option<u64>, None, Public, "NTSTATUS.";
    }
}
