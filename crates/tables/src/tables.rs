//! The tables beside the operations: connections, sessions, trees, handles and coverage.
//!
//! Columns that speak of a direction end in `to_server` or `to_client`; those that speak of one
//! side of the capture point begin with `server_` or `client_`.

use std::borrow::Cow;
use std::sync::Arc;

use crate::table::table;

table! {
    /// One TCP connection that carried SMB.
    Connection, "connections" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        connection: u64, None, Public, "Number of the connection in its recording.";
        client: String, None, Machine, "The client's address.";
        client_port: u64, None, Public, "The client's TCP port.";
        server: String, None, Machine, "The server's address.";
        server_port: u64, None, Public, "The server's TCP port.";
        dialect: Option<String>, None, Public, "Negotiated dialect.";
        start: i64, Time, Public, "First packet.";
        end: i64, Time, Public, "Last packet.";
        handshake_seen: bool, None, Public, "Whether the capture holds the TCP handshake; otherwise it began in mid-stream.";
        end_reason: String, None, Public, "How it ended: fin, reset, idle (evicted), reused, or end of the capture.";
        vantage: Option<String>, None, Public, "Where the capture was taken: client, server or between.";
        vantage_reason: String, None, Public, "How that is known.";
        server_rtt_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the server: the least that handshake and data show.";
        server_rtt_handshake_ns: Option<i64>, Nanoseconds, Public, "The same from SYN to SYN-ACK.";
        server_rtt_data_ns: Option<i64>, Nanoseconds, Public, "The same from data to its acknowledgement, the least of all samples.";
        server_rtt_samples: u64, Count, Public, "Samples of it.";
        client_rtt_ns: Option<i64>, Nanoseconds, Public, "Round trip between the capture point and the client: the least that handshake and data show.";
        client_rtt_handshake_ns: Option<i64>, Nanoseconds, Public, "The same from SYN-ACK to its acknowledgement.";
        client_rtt_data_ns: Option<i64>, Nanoseconds, Public, "The same from data to its acknowledgement, the least of all samples.";
        client_rtt_samples: u64, Count, Public, "Samples of it.";
        client_mss: Option<u64>, Bytes, Public, "Maximum segment size that the client announced.";
        server_mss: Option<u64>, Bytes, Public, "Maximum segment size that the server announced.";
        client_window_scale: Option<u64>, None, Public, "Window scale (a power of two) that the client announced.";
        server_window_scale: Option<u64>, None, Public, "Window scale that the server announced.";
        client_window_max: Option<u64>, Bytes, Public, "Largest receive window of the client; null where the scale is not known.";
        server_window_max: Option<u64>, Bytes, Public, "Largest receive window of the server; null where the scale is not known.";
        packets_to_server: u64, Count, Public, "Packets from the client.";
        packets_to_client: u64, Count, Public, "Packets from the server.";
        bytes_to_server: u64, Bytes, Public, "TCP payload from the client, retransmissions not counted.";
        bytes_to_client: u64, Bytes, Public, "TCP payload from the server, retransmissions not counted.";
        in_flight_max_to_server: u64, Bytes, Public, "Most unacknowledged bytes from the client.";
        in_flight_max_to_client: u64, Bytes, Public, "Most unacknowledged bytes from the server.";
        retransmissions_to_server: u64, Count, Public, "Segments from the client that were seen before.";
        retransmissions_to_client: u64, Count, Public, "Segments from the server that were seen before.";
        out_of_order_to_server: u64, Count, Public, "Segments from the client that came before an earlier one.";
        out_of_order_to_client: u64, Count, Public, "Segments from the server that came before an earlier one.";
        gaps_to_server: u64, Count, Public, "Holes in the client's stream that were never filled.";
        gaps_to_client: u64, Count, Public, "Holes in the server's stream that were never filled.";
        gap_bytes_to_server: u64, Bytes, Public, "Bytes of those holes.";
        gap_bytes_to_client: u64, Bytes, Public, "Bytes of those holes.";
        recovery_ns_to_server: u64, Nanoseconds, Public, "Time in which the client's stream stood still until lost segments were sent again.";
        recovery_ns_to_client: u64, Nanoseconds, Public, "Time in which the server's stream stood still until lost segments were sent again.";
        zero_windows_to_server: u64, Count, Public, "Times the client closed its receive window.";
        zero_windows_to_client: u64, Count, Public, "Times the server closed its receive window.";
        resets: u64, Count, Public, "RST segments.";
        operations: u64, Count, Public, "Operations.";
        unanswered: u64, Count, Public, "Requests without a reply.";
        outstanding_max: u64, Count, Public, "Most operations in flight.";
        signed: u64, Count, Public, "Signed operations.";
        encrypted: u64, Count, Public, "Encrypted operations.";
        compressed: u64, Count, Public, "Compressed operations.";
        compounds: u64, Count, Public, "Compound chains.";
        breaks: u64, Count, Public, "Oplock and lease breaks that the server sent.";
        credits_max: u64, Count, Public, "Most credits that the client held, as far as seen.";
        credits_min: Option<u64>, Count, Public, "Fewest credits that the client held after its first request; null in mid-stream.";
        max_transact_bytes: Option<u64>, Bytes, Public, "MaxTransactSize (SMB1: MaxBufferSize).";
        max_read_bytes: Option<u64>, Bytes, Public, "MaxReadSize.";
        max_write_bytes: Option<u64>, Bytes, Public, "MaxWriteSize.";
        signing_required: Option<bool>, None, Public, "Whether the server requires signing.";
        signing_algorithm: Option<String>, None, Public, "Signing algorithm.";
        cipher: Option<String>, None, Public, "Cipher that was negotiated.";
        compression: Option<String>, None, Public, "Compression algorithms that were negotiated.";
        server_capabilities: Option<u64>, None, Public, "Capabilities of the server's Negotiate reply.";
        client_capabilities: Option<u64>, None, Public, "Capabilities of the client's Negotiate request.";
        client_guid: Option<String>, None, Machine, "ClientGuid: equal on all channels of one client.";
    }
}

impl Connection {
    /// Whether the connection itself ended, not only the capture of it.
    pub fn has_ended(&self) -> bool {
        matches!(&*self.end_reason, "reset" | "fin" | "reused")
    }
}

table! {
    /// One SMB session.
    Session, "sessions" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        session_id: u64, None, Public, "SMB2 SessionId, or SMB1 UID.";
        connection: u64, None, Public, "Connection on which it was seen first.";
        client: String, None, Machine, "The client's address.";
        server: String, None, Machine, "The server's address.";
        user: Option<String>, None, Person, "User: DOMAIN\\name, or name@REALM by Kerberos, where the capture shows a KDC (port 88) give the ticket.";
        workstation: Option<String>, None, Machine, "The client's own name, as NTLM says it.";
        mechanism: Option<String>, None, Public, "How the user proved who they are: NTLMSSP or Kerberos.";
        guest: Option<bool>, None, Public, "Whether the server let the user in as a guest, or without a name.";
        encrypt_data: Option<bool>, None, Public, "Whether the server demands encryption in the session.";
        channels: u64, Count, Public, "Connections that carried it.";
        start: i64, Time, Public, "First request.";
        end: i64, Time, Public, "Last reply.";
        operations: u64, Count, Public, "Operations.";
    }
}

table! {
    /// One connected share of one session.
    Tree, "trees" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        session_id: u64, None, Public, "The session.";
        tree_id: u64, None, Public, "TreeId (SMB1: TID).";
        connection: u64, None, Public, "Connection on which it was seen first.";
        share: Option<String>, None, Path, "The share, as \\\\server\\share.";
        share_type: Option<String>, None, Public, "Disk, pipe or printer.";
        share_flags: Option<u64>, None, Public, "ShareFlags of the reply.";
        capabilities: Option<u64>, None, Public, "Capabilities of the reply.";
        continuous_availability: Option<bool>, None, Public, "Whether handles persist over a failover, so that writes must be stable.";
        encrypt_data: Option<bool>, None, Public, "Whether the share demands encryption.";
        start: i64, Time, Public, "First request.";
        end: i64, Time, Public, "Last reply.";
        operations: u64, Count, Public, "Operations.";
    }
}

table! {
    /// One open, from Create to Close.
    Handle, "handles" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        handle: u64, None, Public, "Number of the open in its recording.";
        connection: u64, None, Public, "Connection on which it was opened or first seen.";
        session_id: Option<u64>, None, Public, "The session.";
        tree_id: Option<u64>, None, Public, "The tree.";
        client: Arc<str>, None, Machine, "The client's address.";
        user: Option<Arc<str>>, None, Person, "User.";
        share: Option<Arc<str>>, None, Path, "Share.";
        path: Option<Arc<str>>, None, Path, "File or directory; null when it was opened before the capture began.";
        file_id: [u8; 16], None, Public, "FileId (persistent and volatile, as on the wire; SMB1: FID in the first two bytes).";
        directory: Option<bool>, None, Public, "Whether it is a directory.";
        opened_at: Option<i64>, Time, Public, "End of the Create reply; null when it was opened before the capture began.";
        closed_at: Option<i64>, Time, Public, "End of the reply to the Close, or to the TreeDisconnect or Logoff that ended it, or of its connection; null when it stayed open.";
        create_operation: Option<u64>, None, Public, "Number of the Create.";
        close_operation: Option<u64>, None, Public, "Number of the operation that ended it: a Close, TreeDisconnect or Logoff.";
        desired_access: Option<u64>, None, Public, "DesiredAccess.";
        share_access: Option<u64>, None, Public, "ShareAccess.";
        create_options: Option<u64>, None, Public, "CreateOptions.";
        write_through: Option<bool>, None, Public, "Whether it was opened write-through.";
        oplock: Option<Cow<'static, str>>, None, Public, "Oplock level granted.";
        lease: Option<Cow<'static, str>>, None, Public, "Lease state granted.";
        durable: Option<bool>, None, Public, "Whether the server made the handle durable.";
        persistent: Option<bool>, None, Public, "Whether the server made the handle persistent.";
        disk_file_id: Option<u64>, None, Public, "The file's own number on disk (query on disk id).";
        operations: u64, Count, Public, "Operations on it, Create and Close included.";
        reads: u64, Count, Public, "Reads.";
        writes: u64, Count, Public, "Writes.";
        read_bytes: u64, Bytes, Public, "Bytes read.";
        written_bytes: u64, Bytes, Public, "Bytes written.";
        size_bytes: Option<u64>, Bytes, Public, "The file's size, as the last reply that tells it says.";
    }
}

table! {
    /// One target that a DFS referral answered (MS-DFSC section 2.2.5).
    Referral, "referrals" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        operation: u64, None, Public, "Number of the operation that asked.";
        path: Option<String>, None, Path, "The path that was asked for.";
        dfs_path: Option<String>, None, Path, "The part of it that the answer is about.";
        target: Option<String>, None, Path, "Where it really is.";
        version: Option<u64>, None, Public, "Version of the referral entry.";
        root: Option<bool>, None, Public, "Whether the target is a namespace's root, not a link's target.";
        time_to_live_s: Option<u64>, None, Public, "Seconds that the client may remember it.";
    }
}

table! {
    /// What was seen, lost and not understood in one input. Every report shows it.
    Coverage, "coverage" {
        recording: String, None, Machine, "The recording that the input belongs to.";
        capture_file: Option<String>, None, Machine, "The capture file: a recording can consist of several that continue each other.";
        format: String, None, Public, "Format of the file.";
        vantage: Option<String>, None, Public, "Where the capture was taken: client, server, between, or mixed.";
        vantage_reason: String, None, Public, "How that is known.";
        resolution_ns: Option<u64>, Nanoseconds, Public, "Resolution of the time stamps.";
        start: Option<i64>, Time, Public, "First packet.";
        end: Option<i64>, Time, Public, "Last packet.";
        frames: u64, Count, Public, "Packets read.";
        file_bytes: u64, Bytes, Public, "Bytes read from the file.";
        wire_bytes: u64, Bytes, Public, "Bytes of the packets on the wire.";
        frames_dropped: Option<u64>, Count, Public, "Packets that the recorder says it dropped; null when it does not say.";
        frames_cut: u64, Count, Public, "Packets that were captured in part only (snap length).";
        frames_not_tcp: u64, Count, Public, "Packets that carry no TCP.";
        frames_tunnelled: u64, Count, Public, "Packets in a tunnel (GRE, IP in IP, IPsec, VXLAN, Geneve, Teredo, GTP); what it carries is not read.";
        frames_link_unknown: u64, Count, Public, "Packets of a link type that is not read (wireless, for one).";
        frames_fragment: u64, Count, Public, "IP fragments; they are not put together.";
        frames_malformed: u64, Count, Public, "Packets with contradicting or cut headers.";
        frames_not_smb: u64, Count, Public, "TCP packets of connections that carry no SMB.";
        frames_time_backwards: u64, Count, Public, "Packets whose time is before their predecessor's.";
        frames_repeated: u64, Count, Public, "Packets that were recorded twice, as by a mirror port that shows both ways; they count once.";
        cut_off: Option<String>, None, Public, "Where and how the file ends too early.";
        connections: u64, Count, Public, "TCP connections with SMB.";
        connections_mid_stream: u64, Count, Public, "Of them, begun before the capture.";
        connections_one_direction: u64, Count, Public, "Of them, with packets of one side only.";
        connections_evicted: u64, Count, Public, "Connections that were forgotten for the limit on their number.";
        retransmissions: u64, Count, Public, "Segments seen before.";
        out_of_order: u64, Count, Public, "Segments that came before an earlier one.";
        gaps: u64, Count, Public, "Holes in TCP streams.";
        gap_bytes: u64, Bytes, Public, "Bytes of those holes.";
        segments_discarded: u64, Count, Public, "Segments discarded for the limit on what waits for a hole to be filled.";
        resynchronised: u64, Count, Public, "Times the next message had to be searched for.";
        skipped_bytes: u64, Bytes, Public, "Bytes passed over in that search.";
        messages: u64, Count, Public, "SMB messages.";
        messages_cut: u64, Count, Public, "Messages whose interesting part was not captured whole.";
        members_not_captured: u64, Count, Public, "Operations without a command: members of compounds that lie behind what was captured (snap length), counted by NextCommand and MessageIds.";
        messages_malformed: u64, Count, Public, "Messages that contradict themselves.";
        messages_unknown: u64, Count, Public, "Messages that are not SMB (NetBIOS session set-up and keep-alives not counted).";
        messages_encrypted: u64, Count, Public, "Encrypted messages.";
        messages_decrypted: u64, Count, Public, "Of them, decrypted.";
        decryption_failed: u64, Count, Public, "Messages that the given key does not open.";
        messages_compressed: u64, Count, Public, "Compressed messages.";
        decompression_failed: u64, Count, Public, "Messages that could not be decompressed.";
        operations: u64, Count, Public, "Operations.";
        operations_unanswered: u64, Count, Public, "Requests without a reply.";
        replies_unmatched: u64, Count, Public, "Replies whose request was not seen.";
        operations_discarded: u64, Count, Public, "Requests forgotten for the limit on how many may wait for a reply.";
        commands_unknown: u64, Count, Public, "Operations with a command that has no name.";
        handles_forgotten: u64, Count, Public, "Opens forgotten for the limit on their number.";
        paths_unknown: u64, Count, Public, "Operations on an open whose Create was not seen.";
        operations_unjoined: u64, Count, Public, "Operations that one of the two did not see, where a probe and an interface are recorded together.";
        operations_without_slices: u64, Count, Public, "Operations of a probe without slices: under way when it began, or its events were lost.";
        events_unexplained: u64, Count, Public, "Events of a probe that belong to nothing it saw begin.";
        flushes_ambiguous: u64, Count, Public, "Flushes that ended beside others of the same process: their time counts as waiting for I/O.";
        state_discarded: u64, Count, Public, "Requests, threads and processes that a probe forgot for the limit on their number.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_the_way_through_arrow() {
        let row = Handle {
            handle: 3,
            path: Some("a\\b".into()),
            closed_at: None,
            opened_at: Some(-5),
            durable: Some(false),
            ..Handle::default()
        };
        let batch = Handle::to_batch(&[row.clone(), Handle::default()]).unwrap();
        assert_eq!(Handle::from_batch(&batch), [row, Handle::default()]);
    }

    #[test]
    fn a_column_that_is_missing_reads_as_absent() {
        let batch = Tree::to_batch(&[Tree { tree_id: 4, ..Tree::default() }]).unwrap();
        let rows = Session::from_batch(&batch.project(&[2]).unwrap());
        assert_eq!(rows, [Session::default()]);
    }
}
