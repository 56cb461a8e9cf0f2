//! Table `coverage`: what was captured, lost and not decoded, one row per input.

use crate::row::table;

table! {
    /// What was seen, lost and not understood in one input. Every report shows it.
    Coverage, "coverage" {
        recording: String, None, Machine, "The recording that the input belongs to.";
        capture_file: Option<String>, None, Machine, "The capture file: a recording can consist of several that continue each other.";
        format: String, None, Public, "Format of the file.";
        vantage: Option<String>, None, Public, "Where the capture was taken: client, server, between, or mixed.";
        vantage_reason: String, None, Public, "How the vantage was determined.";
        resolution_ns: Option<u64>, Nanoseconds, Public, "Resolution of the time stamps.";
        start as "started_at": Option<i64>, Time, Public, "First packet.";
        end as "ended_at": Option<i64>, Time, Public, "Last packet.";
        frames: u64, Count, Public, "Packets read.";
        file_bytes: u64, Bytes, Public, "Bytes read from the file.";
        wire_bytes: u64, Bytes, Public, "Bytes of the packets on the wire.";
        frames_dropped: Option<u64>, Count, Public, "Packets that the recorder reports as dropped; null if it does not report them.";
        events_lost: Option<u64>, Count, Public, "Events that the recorder of a Windows log lost; null for other inputs.";
        buffers_lost: Option<u64>, Count, Public, "Buffers that the recorder of a Windows log lost, each with many events; null for other inputs.";
        records_damaged: u64, Count, Public, "Records and buffers of a Windows log that could not be read.";
        frames_cut: u64, Count, Public, "Packets that were only partly captured (snap length).";
        frames_not_tcp: u64, Count, Public, "Packets without TCP.";
        frames_tunnelled: u64, Count, Public, "Packets in a tunnel that stays closed: IPsec, encrypted wireless frames, compressed or unknown tunnels.";
        frames_link_unknown: u64, Count, Public, "Packets of an unsupported link type (for example USB).";
        frames_fragment: u64, Count, Public, "IP fragments whose packet could not be reassembled: fragments are missing or overlap. A live recording reassembles none.";
        frames_malformed: u64, Count, Public, "Packets with contradictory or cut headers.";
        frames_not_smb: u64, Count, Public, "TCP packets of connections without SMB.";
        frames_time_backwards: u64, Count, Public, "Packets with a time before that of the previous packet.";
        clock_steps: u64, Count, Public, "How often the recorder's clock stepped back: packets that came later by their bytes have earlier times. The times of everything behind a step are moved by its size.";
        clock_step_ns: Option<u64>, Nanoseconds, Public, "The largest of these steps.";
        clock_step_frame: Option<u64>, None, Public, "The first packet behind that step.";
        frames_repeated: u64, Count, Public, "Packets that were recorded twice, for example by a mirror port that shows both directions; they count once.";
        cut_off: Option<String>, None, Public, "Where and how the file is truncated.";
        connections: u64, Count, Public, "TCP connections with SMB.";
        connections_mid_stream: u64, Count, Public, "Connections that began before the capture.";
        connections_one_direction: u64, Count, Public, "Connections with packets from only one side.";
        connections_evicted: u64, Count, Public, "Connections evicted because their number reached the limit.";
        retransmissions: u64, Count, Public, "Retransmitted segments.";
        out_of_order: u64, Count, Public, "Segments that arrived before an earlier one.";
        gaps: u64, Count, Public, "Gaps in TCP streams.";
        gap_bytes: u64, Bytes, Public, "Bytes of the gaps.";
        segments_discarded: u64, Count, Public, "Segments discarded because too many were waiting for a gap to be filled.";
        resynchronised: u64, Count, Public, "How often the decoder had to search for the next message.";
        skipped_bytes: u64, Bytes, Public, "Bytes skipped in these searches.";
        messages: u64, Count, Public, "SMB messages.";
        messages_cut: u64, Count, Public, "Messages whose decoded part was not captured completely.";
        members_not_captured: u64, Count, Public, "Operations without a command: members of compounds beyond the captured bytes (snap length), counted by NextCommand and MessageIds.";
        messages_malformed: u64, Count, Public, "Messages with contradictory fields.";
        messages_unknown: u64, Count, Public, "Messages that are not SMB (without NetBIOS session requests and keep-alives).";
        messages_encrypted: u64, Count, Public, "Encrypted messages.";
        messages_decrypted: u64, Count, Public, "Encrypted messages that were decrypted.";
        decryption_failed: u64, Count, Public, "Messages that the given key does not decrypt.";
        messages_compressed: u64, Count, Public, "Compressed messages.";
        decompression_failed: u64, Count, Public, "Messages that could not be decompressed.";
        operations: u64, Count, Public, "Operations.";
        operations_unanswered: u64, Count, Public, "Requests without a response.";
        replies_unmatched: u64, Count, Public, "Responses whose request was not captured.";
        operations_discarded: u64, Count, Public, "Requests discarded because too many were waiting for a response.";
        commands_unknown: u64, Count, Public, "Operations with an unknown command code.";
        handles_forgotten: u64, Count, Public, "Opens forgotten before their Close: their number reached the limit, or another open got the same FileId.";
        paths_unknown: u64, Count, Public, "Operations on an open whose Create was not captured.";
        operations_unjoined: u64, Count, Public, "Operations that only one source recorded, when a probe and an interface are recorded together.";
        operations_without_slices: u64, Count, Public, "Operations of a probe without slices: in flight when it began, or their events were lost.";
        events_unexplained: u64, Count, Public, "Events of a probe that match no operation it knows.";
        flushes_ambiguous: u64, Count, Public, "Flushes that ended at the same time as others of the same process: their time counts as waiting for I/O.";
        state_discarded: u64, Count, Public, "Requests, threads and processes that a probe discarded because their number reached the limit.";
        notes: Option<String>, None, Public, "What the source says about itself: how the server's times are known, which events were not used.";
        unwrapped: Option<String>, None, Public, "Tags, tunnels and other wrappings that were removed, with the packets of each, for example `VXLAN 3320, QinQ 12`.";
        fragments_reassembled: u64, Count, Public, "IP fragments that were reassembled into packets.";
        datagrams_not_sessions: u64, Count, Public, "Datagrams of NetBIOS (UDP ports 137 and 138, IPX, NetBEUI): names and announcements, not SMB sessions.";
        quic_connections: u64, Count, Public, "Connections of SMB over QUIC; they are encrypted, so their operations are not visible.";
        quic_maybe_smb: u64, Count, Public, "QUIC connections to UDP port 443 whose protocol could not be read: they may be SMB.";
        frames_roce: u64, Count, Public, "RoCE packets; their invariant CRC is not checked.";
        frames_roce_other: u64, Count, Public, "RoCE packets of queue pairs that carry something other than SMB Direct, or of which no SMB Direct message was captured.";
        smb_direct_messages: u64, Count, Public, "SMB Direct messages: negotiation, data transfers and keep-alives.";
        smb_direct_unknown: u64, Count, Public, "RDMA Sends on connections with SMB Direct whose header is not SMB Direct's, or was not captured.";
        smb_direct_given_up: u64, Count, Public, "SMB messages whose fragments could not be put together: a fragment was lost, or its lengths contradict those before it.";
        sessions_unlocked: u64, Count, Public, "Sessions whose key was computed from a password, an NT hash or a keytab.";
        sessions_wrong_secret: u64, Count, Public, "Sessions for whose account or service a secret was given that does not match.";
        sessions_without_secret: u64, Count, Public, "Sessions for whose account or service no secret was given, when secrets were given.";
        sessions_without_logon: u64, Count, Public, "Encrypted sessions whose logon was not captured in full, so that a secret does not help.";
        sessions_forgotten: u64, Count, Public, "Sessions forgotten before their end, because their number or the size of their names reached the limit: later operations have no user.";
        trees_forgotten: u64, Count, Public, "Trees forgotten before their end, likewise: later operations have no share.";
        frames_netbeui: u64, Count, Public, "Frames of NetBEUI between two stations (LLC type 2): SMB sessions without TCP, whose stations are shown as link-local IPv6 addresses that contain their MAC addresses.";
        frames_ipx: u64, Count, Public, "Packets of SMB, or of NetBIOS sessions, in IPX, which are not read.";
    }
}
