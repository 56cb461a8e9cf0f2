//! Table `coverage`: what was captured, lost and not decoded, one row per input.

use crate::row::table;

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
