//! The fields of the summary: what every report has.

pub(crate) mod channels;
pub(crate) mod server;

use serde_json::Value;
use smbscope_analysis::summary::Bottleneck;
use smbscope_tables::Table;
use smbscope_tables::tables::{Connection, Coverage, NetRoundTrip, NetTest};

use crate::answers::{load, prediction};
use crate::document::by_field;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all, table, values_of};

/// The objects of a report.
pub static FIELDS: Fields = Fields::new("report", objects, closed);

by_field! { column distribution fact field }

fn objects() -> Vec<Object> {
    let rows = OBJECTS
        .iter()
        .chain(load::fields::OBJECTS)
        .chain(server::OBJECTS)
        .chain(channels::OBJECTS)
        .chain(channels::FINDINGS)
        .chain(prediction::fields::OBJECTS);
    let mut objects = all(rows);
    objects.push(table(
        Table::Coverage,
        "coverage",
        "What was seen, lost and not understood in one input.",
        Coverage::specs(),
    ));
    objects.push(table(
        Table::Coverage,
        "connection",
        "One TCP connection that carried SMB.",
        Connection::specs(),
    ));
    objects.push(table(
        Table::NetTests,
        "net_test",
        "One direction of one phase of a test of the network.",
        NetTest::specs(),
    ));
    objects.push(table(
        Table::NetRoundTrips,
        "net_round_trip",
        "Round trips of one kind and size.",
        NetRoundTrip::specs(),
    ));
    objects
}

/// Fields whose values are a closed list.
fn closed() -> Vec<Closed> {
    let mut bottlenecks = values_of("load_step", "bottleneck", &Bottleneck::ALL);
    bottlenecks.2.push(Value::Null);
    vec![bottlenecks]
}

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("report", "Where the time of an SMB file share goes.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope that made the report."),
        ("inputs", "Inputs", List("input"), Always, "The files or folders that were read."),
        ("selection", "Selection", Object("selection"), Optional, "Which part of the inputs the report covers; absent if it covers all."),
        ("recorded", "Recorded", Object("selection"), Optional, "Which part of what was seen is in the inputs, because they were recorded with a filter; absent if they are whole."),
        ("schema_version", "Schema version", Number, Always, "Version of the tables' schemas."),
        ("start_ns", "Start", Time, Nullable, "First packet or operation."),
        ("end_ns", "End", Time, Nullable, "Last packet or operation."),
        ("coverage", "Coverage", List("coverage"), Always, "What was recorded, lost and not decoded, one for each input."),
        ("totals", "Totals", Object("totals"), Always, "All operations together."),
        ("latency_bounds_ns", "Bounds", Counts, Always, "Bounds of every histogram, in ns: the first count is for values below the first bound, the last count for values at or above the last bound."),
        ("commands", "Commands", List("command"), Always, "Operations by command, those with the most busy time first."),
        ("statuses", "Statuses", Object("statuses"), Always, "Replies by NTSTATUS."),
        ("shares", "Shares", Object("groups"), Always, "Operations by share."),
        ("clients", "Clients", Object("groups"), Always, "Operations by client address."),
        ("users", "Users", Object("groups"), Always, "Operations by user."),
        ("extensions", "Extensions", Object("groups"), Always, "Operations by the end of the file's name."),
        ("files", "Files", Object("top"), Always, "The files with the most time, bytes and operations."),
        ("directories", "Directories", Object("top"), Always, "The directories with the most time, bytes and operations: operations on their direct entries, and listings of the directory itself."),
        ("series", "Over time", Object("series"), Always, "The recording in bins of equal width."),
        ("reads", "Reads", Object("sizes"), Always, "Sizes of reads."),
        ("writes", "Writes", Object("sizes"), Always, "Sizes of writes."),
        ("compounds", "Compounds", Object("compounds"), Always, "Messages that carry several operations."),
        ("protection", "Protection", Object("protection"), Always, "Signing, encryption, compression and dialects."),
        ("sessions", "Sessions", Object("sessions"), Always, "Logons."),
        ("trees", "Trees", Object("trees"), Always, "Connected shares."),
        ("handles", "Handles", Object("handles"), Always, "Opens."),
        ("breaks", "Breaks", Object("breaks"), Always, "Oplock and lease breaks."),
        ("connections", "Connections", Object("connections"), Always, "TCP connections."),
        ("slowest", "Slowest operations", List("slow"), Always, "The operations with the longest elapsed time, without those that wait by design."),
        ("load", "Load", Object("load"), Nullable, "What simulated users did; null without a load run."),
        ("server", "Server", Object("server"), Nullable, "Slices of the server's time; null if no operation has any."),
        ("channels", "Channels", Object("channels"), Nullable, "Timelines of sessions over several connections; null if there are none and no interfaces were offered."),
        ("logged", "Logged by Windows", List("logged"), Always, "What the Windows SMB server and client logged on their own, the most costly kinds first."),
        ("logged_other", "Other events", List("logged_other"), Always, "Their events that report no trouble, by number."),
        ("both_sides", "Client and server", Object("both_sides"), Nullable, "Requests of a client's log of events and of its server, joined; null without both."),
        ("net", "The network without SMB", Object("net"), Nullable, "What the path carries by TCP alone; null without a test (smbscope net send)."),
        ("forecast", "What a change would bring", Object("forecast"), Optional, "The predicted effect of the requested changes."),
        ("durability", "Durability", Object("durability"), Nullable, "Which acknowledged writes were stable; null without a write to a file."),
    ]),
    ("both_sides", "Requests of a client and of its server from one time, joined by command, bytes, file and time.", &[], &[
        ("server_clock_ahead_ns", "Server's clock ahead", Duration, Always, "By how much the server's clock is ahead of the client's; negative if it is behind."),
        ("client_requests", "Client", Count, Always, "Requests of the client."),
        ("server_requests", "Server", Count, Always, "Requests of the server."),
        ("joined", "Joined", Count, Always, "Requests that both sides have."),
        ("limited", "Left out", Count, Always, "Requests beyond the limit of this analysis."),
        ("commands", "Commands", List("sides_of_command"), Always, "By command, the most costly ones first."),
    ]),
    ("sides_of_command", "The joined requests of one command; times are means.", &[], &[
        ("command", "Command", Text, Always, "Command."),
        ("client_requests", "Requests", Count, Always, "Requests of the client."),
        ("joined", "Joined", Count, Always, "How many of them the server has, too; times are those of these."),
        ("total_ns", "Client", Duration, Always, "The client's whole time."),
        ("before_ns", "Before", Duration, Always, "Until the client handed it to the transport: waiting for credits, building."),
        ("server_ns", "Server", Duration, Always, "The server's own time, as the server has it."),
        ("between_ns", "Between", Duration, Always, "What the client waited beyond that: transport and network."),
        ("between_p95_ns", "Between p95", Duration, Always, "95th percentile of that."),
        ("after_ns", "After", Duration, Always, "The client's work on the reply."),
    ]),
    ("durability", "Which acknowledged writes were stable, as the wire shows it. Whether the server keeps its promises is not visible.", &[], &[
        ("writes", "Writes", Count, Always, "Acknowledged writes to files."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of these."),
        ("write_through_writes", "Write-through writes", Count, Always, "Writes that request stable storage by their own flag."),
        ("write_through_open_writes", "Writes on write-through opens", Count, Always, "Writes on opens that request it for all."),
        ("unbuffered_writes", "Unbuffered writes", Count, Always, "Writes that bypass the server's cache, by flag or by open; that alone makes no disk's own cache stable."),
        ("flushes", "Flushes", Count, Always, "Flushes that succeeded."),
        ("idle_flushes", "Flushes with nothing to do", Count, Always, "Those without an unflushed write on their open."),
        ("until_flush", "Until the Flush", Object("distribution"), Always, "From the acknowledgement of the oldest write to that of the Flush that made it stable."),
        ("window_ns", "Window", Duration, Always, "Data without a Flush counts as at risk for this long: no client sees when a server writes it back."),
        ("most_bytes", "Most at risk", Bytes, Always, "Most acknowledged bytes that were not stable at any moment, over all files."),
        ("most_at_ns", "At", Time, Nullable, "When that was."),
        ("is_bound", "Upper bound", Flag, Always, "Whether it may have been less, because shares were known to be continuously available only afterwards."),
        ("available_opens", "Opens on continuously available shares", Count, Nullable, "Opens with data and without write-through on continuously available shares, or with a persistent handle; null where no such open and its handle is known."),
        ("not_persistent_opens", "Opens without a persistent handle", Count, Nullable, "Opens to which the server granted no persistent handle."),
        ("not_persistent", "Not persistent", Text, Nullable, "What follows from these, in one sentence; null if all have persistent handles."),
        ("ways", "How writes become stable", List("durability_way"), Always, "Opens with writes, the surest way first."),
        ("applications", "Applications", List("durability_kind"), Always, "By kind of application, those that must survive a power failure first."),
        ("shares", "Shares", List("durability_group"), Always, "By share, the most at risk first."),
        ("clients", "Clients", List("durability_group"), Always, "By client, the most at risk first."),
        ("files", "Files", List("durability_file"), Always, "The files with the most bytes that nothing made stable."),
        ("series_start_ns", "Begin of the series", Time, Always, "Begin of the bins over time; 0 without any."),
        ("series_bin_ns", "Width of the bins", Duration, Always, "Width of the bins over time."),
        ("series_bytes", "At risk over time", Counts, Always, "Most bytes at risk in each bin."),
        ("forgotten_opens", "Forgotten opens", Count, Always, "Opens that were forgotten because there were too many; they count as they were then."),
        ("beyond_limits", "Beyond limits", Count, Always, "Shares, clients and files beyond the limits on their numbers."),
    ]),
    ("durability_opens", "Opens with at least one acknowledged write.", &[], &[
        ("opens", "Opens", Count, Always, "Opens with at least one acknowledged write."),
        ("writes", "Writes", Count, Always, "Their acknowledged writes."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of these."),
        ("acknowledged_bytes", "Not stable when acknowledged", Bytes, Always, "Bytes that were acknowledged before they were stable, for however short a time."),
        ("unflushed_bytes", "Never made stable", Bytes, Always, "Bytes that nothing had made stable when the open or the recording ended."),
    ]),
    ("durability_way", "Opens whose writes become stable in one way.", &["durability_opens"], &[
        ("way", "Way", Code, Always, "write-through-open, write-through-flag, available (a continuously available share or a persistent handle), flushed (before the Close), partly, unbuffered or nothing."),
    ]),
    ("durability_kind", "Files of one kind of application.", &["durability_opens"], &[
        ("application", "Application", Code, Always, "The kind, by the end of the file's name."),
        ("stable_opens", "Stable", Count, Always, "Opens whose data was stable before the Close was answered."),
        ("verdict", "Verdict", Text, Nullable, "One sentence; null for files that need not survive a power failure."),
    ]),
    ("durability_group", "A share or a client.", &["durability_opens"], &[
        ("name", "Name", Text, Nullable, "Its name; null if it is not known."),
        ("most_bytes", "Most at risk", Bytes, Always, "Most acknowledged bytes that were not stable at any moment."),
        ("most_at_ns", "At", Time, Nullable, "When that was."),
        ("is_bound", "Upper bound", Flag, Always, "Whether it may have been less."),
    ]),
    ("durability_file", "A file with bytes that nothing made stable.", &["durability_opens"], &[
        ("share", "Share", Text, Nullable, "The share."),
        ("path", "Path", Text, Always, "The path."),
        ("application", "Application", Code, Always, "The kind, by the end of the file's name."),
        ("way", "Way", Code, Nullable, "How its writes became stable, at the least sure of its opens."),
    ]),
    ("selection", "The part of the inputs that met the filter options.", &[], &[
        ("filter", "Filter", Text, Always, "The filter in words."),
        ("operations", "Operations", Count, Always, "Operations that met the filter."),
        ("operations_all", "Of", Count, Nullable, "Operations of the inputs, or seen when they were recorded; null if a recording was not completed."),
    ]),
    crate::answers::diagnosis::fields::LOGGED,
    crate::answers::diagnosis::fields::LOGGED_OTHER,
    ("net", "A test of the network without SMB, alone and next to SMB.", &[], &[
        ("tests", "Tests", List("net_test"), Always, "Phases and directions."),
        ("round_trips", "Round trips", List("net_round_trip"), Always, "Round trips of messages as large as SMB's."),
        ("left_out", "Left out", Count, Always, "Rows past the limit on their number."),
        ("ratios", "SMB and the network", List("net_ratio"), Always, "SMB next to the network, by direction; empty without SMB."),
        ("smb_client_cpu_per_gb_ns", "SMB client's CPU per GB", Duration, Nullable, "CPU time of the SMB client's machine for each GB (10^9 bytes) of file data; null without its counters."),
        ("smb_server_cpu_per_gb_ns", "SMB server's CPU per GB", Duration, Nullable, "CPU time of the SMB server's machine for each GB of file data; null without its counters."),
        ("problems", "Packet sizes", List("net_problem"), Always, "MTU and segments that do not fit."),
    ]),
    ("net_ratio", "One direction of SMB and of the network.", &[], &[
        ("operation", "Direction", Text, Always, "read or write."),
        ("smb_bits_per_second", "SMB", Number, Always, "Mean rate of the windows in which SMB moved at least half as much as in its busiest one, bits per second."),
        ("smb_windows", "n", Count, Always, "These windows."),
        ("smb_window_ns", "Window", Duration, Always, "Length of a window."),
        ("raw_bits_per_second", "TCP alone", Number, Always, "Rate of the test in the same direction, bits per second; of several paths the sum."),
        ("ratio", "SMB's part", Share, Always, "SMB's rate as a part of the rate without SMB."),
        ("limit", "Limit", Text, Always, "network (or the sending or receiving machine): SMB carries at least 85 % of what TCP alone does; smb: less; unknown: the test was paced."),
        ("raw_limit", "Limit of TCP alone", Text, Always, "What limited the test: network, sender, receiver, pace or unknown."),
        ("paths", "Paths", Count, Nullable, "Addresses of servers that the data went to or came from; null if the recording does not say."),
        ("paths_tested", "With a test", Count, Nullable, "Those with a test; all numbers are about these paths together. Null if the recording does not say."),
    ]),
    ("net_problem", "Packet sizes that do not fit each other.", &[], &[
        ("kind", "Problem", Text, Always, "mtu_differs, segments_differ or segment_too_small."),
        ("first_bytes", "First", Bytes, Always, "The larger MTU or segment; of segment_too_small the MTU."),
        ("second_bytes", "Second", Bytes, Always, "The smaller MTU or segment; of segment_too_small the segment."),
    ]),
    ("input", "One file or folder that was read.", &[], &[
        ("name", "Input", Code, Always, "Name of the file or folder."),
    ]),
    ("distribution", "The distribution of a duration; percentiles use the nearest rank.", &[], &[
        ("n", "n", Count, Always, "Operations with a known value."),
        ("negative", "Negative", Count, Always, "Those below zero: the estimated round trip was longer than the turnaround."),
        ("sum_ns", "Sum", Duration, Always, "Sum of all values."),
        ("mean_ns", "Mean", Duration, Nullable, "Arithmetic mean."),
        ("min_ns", "Min", Duration, Nullable, "Smallest value."),
        ("p50_ns", "p50", Duration, Nullable, "Half of the operations took at most this long."),
        ("p95_ns", "p95", Duration, Nullable, "95 of 100 operations took at most this long."),
        ("p99_ns", "p99", Duration, Nullable, "99 of 100 operations took at most this long."),
        ("max_ns", "Max", Duration, Nullable, "Largest value."),
        ("exact", "Exact", Flag, Always, "Whether percentiles are exact; otherwise they are within 0.1 % (commands and totals) or 1 % (everything else)."),
        ("histogram", "Distribution", Counts, Optional, "Operations between the bounds of latency_bounds_ns."),
    ]),
    ("tally", "Counters and latency of a group of operations.", &[], &[
        ("operations", "Operations", Count, Always, "Operations; every member of a compound is one."),
        ("operations_share", "of all", Share, Always, "Part of all operations."),
        ("busy_ns", "Busy", Duration, Always, "Busy time: time on a connection is divided among the operations in flight, so that shares add up."),
        ("busy_share", "Time", Share, Always, "Part of the busy time of all operations."),
        ("unanswered", "Unanswered", Count, Always, "Requests without a reply (Cancel never has one and is not counted)."),
        ("request_unseen", "Request missing", Count, Always, "Replies whose request was not recorded."),
        ("errors", "Errors", Count, Always, "Replies with an error status; names that do not exist and expected statuses are not counted."),
        ("not_found", "Not found", Count, Always, "Replies that say that the requested name does not exist."),
        ("waits", "Waits", Count, Always, "Change notifications and blocked locks, which wait by design; they are not counted as latency."),
        ("waiting_ns", "Waiting", Duration, Always, "Time that those waited."),
        ("read_bytes", "Read", Bytes, Always, "Bytes of file data read."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of file data written."),
        ("wire_bytes", "On the wire", Bytes, Always, "Bytes of requests and replies with their headers."),
        ("elapsed", "Elapsed", Object("distribution"), Always, "First byte of the request to last byte of the reply."),
        ("server", "Server", Object("distribution"), Always, "Last byte of the request to first byte of the reply, minus the round trip between capture point and server, if that is known."),
    ]),
    ("busy_split", "Busy time, divided in proportion to the parts of each operation's elapsed time; the five parts add up to busy_ns.", &[], &[
        ("request_transfer_ns", "Request transfer", Duration, Always, "First to last byte of the request."),
        ("server_ns", "Server", Duration, Always, "Time at the server, if the round trip is known."),
        ("network_ns", "Network", Duration, Always, "Round trip between capture point and server, if it is known."),
        ("unsplit_ns", "Server and network", Duration, Always, "Turnaround of operations whose round trip is unknown."),
        ("response_transfer_ns", "Reply transfer", Duration, Always, "First to last byte of the reply."),
    ]),
    ("totals", "All operations together.", &["tally"], &[
        ("busy_split", "Split", Object("busy_split"), Always, "Busy time, divided into the parts of an operation."),
        ("turnaround", "Turnaround", Object("distribution"), Always, "Last byte of the request to first byte of the reply, as seen at the capture point."),
        ("request_transfer", "Request transfer", Object("distribution"), Always, "First to last byte of the request."),
        ("response_transfer", "Reply transfer", Object("distribution"), Always, "First to last byte of the reply."),
        ("client_gap", "Client gap", Object("distribution"), Always, "Think time: the time between a reply and the next request while nothing was in flight on the connection."),
        ("outstanding_max", "Most in flight", Count, Nullable, "Most operations already in flight on its connection when one was sent."),
        ("outstanding_mean", "Mean in flight", Number, Nullable, "Mean of the operations already in flight on the connection when one was sent."),
        ("outstanding_n", "n in flight", Count, Always, "Operations for which this is known."),
    ]),
    ("command", "One command.", &["tally"], &[
        ("command", "Command", Text, Always, "The command; (encrypted) if the message could not be decrypted."),
        ("protocol", "Protocol", Number, Nullable, "1 for SMB1, 2 for SMB2 and SMB3."),
        ("busy_split", "Split", Object("busy_split"), Always, "Busy time, divided into the parts of an operation."),
        ("turnaround", "Turnaround", Object("distribution"), Always, "Last byte of the request to first byte of the reply, as seen at the capture point."),
        ("request_transfer", "Request transfer", Object("distribution"), Always, "First to last byte of the request."),
        ("response_transfer", "Reply transfer", Object("distribution"), Always, "First to last byte of the reply."),
    ]),
    ("statuses", "Replies by NTSTATUS.", &[], &[
        ("success", "Success", Count, Always, "Replies with STATUS_SUCCESS."),
        ("unknown", "Unknown", Count, Always, "Operations without a status: not answered, or not decrypted."),
        ("rows", "Statuses", List("status"), Always, "All other statuses, the most frequent first."),
        ("others", "Others", Count, Always, "Replies with other statuses, beyond the limit."),
    ]),
    ("status", "One NTSTATUS.", &[], &[
        ("status", "Code", Number, Always, "The NTSTATUS."),
        ("name", "Status", Text, Always, "Its name (MS-ERREF section 2.3)."),
        ("class", "Reads as", Text, Always, "usual (part of normal operation), not_found (the name does not exist) or error."),
        ("operations", "Replies", Count, Always, "Replies with it."),
        ("operations_share", "of all", Share, Always, "Part of all operations."),
        ("commands", "Commands", List("count"), Always, "The commands that got it."),
    ]),
    ("count", "A word and how often it occurs.", &[], &[
        ("name", "Name", Text, Always, "The word."),
        ("count", "Count", Count, Always, "How often it occurs."),
    ]),
    ("groups", "Operations by one property.", &[], &[
        ("distinct", "Distinct", Count, Always, "Distinct values, up to the limit."),
        ("limit", "Limit", Count, Always, "Most values that are distinguished."),
        ("rows", "Groups", List("group"), Always, "One for each value, those with the most busy time first."),
        ("others", "Others", Object("tally"), Nullable, "Operations with other values, beyond the limit."),
    ]),
    ("group", "Operations with one value of a property.", &["tally"], &[
        ("name", "Name", Text, Nullable, "The value; null for operations without one."),
    ]),
    ("top", "The paths with the most time, bytes and operations.", &[], &[
        ("distinct", "Distinct", Count, Always, "Paths that are kept."),
        ("approximate", "Approximate", Flag, Always, "Whether paths were discarded because there were too many; numbers may then be too low, at most by the given errors."),
        ("error_busy_ns", "Error of time", Duration, Always, "Most busy time that may be missing from a path."),
        ("error_bytes", "Error of bytes", Bytes, Always, "Most bytes that may be missing from a path."),
        ("error_operations", "Error of operations", Count, Always, "Most operations that may be missing from a path."),
        ("by_time", "By time", List("path"), Always, "Those with the most busy time."),
        ("by_bytes", "By bytes", List("path"), Always, "Those with the most file data read and written."),
        ("by_operations", "By operations", List("path"), Always, "Those with the most operations."),
    ]),
    ("path", "One file or directory.", &[], &[
        ("share", "Share", Text, Nullable, "The share."),
        ("path", "Path", Text, Always, "The path in the share; empty for its root. Very long paths are cut and end in a hash."),
        ("operations", "Operations", Count, Always, "Operations on it."),
        ("busy_ns", "Busy", Duration, Always, "Busy time of those operations."),
        ("busy_share", "Time", Share, Always, "Part of the busy time of all operations."),
        ("read_bytes", "Read", Bytes, Always, "Bytes of file data read."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of file data written."),
        ("errors", "Errors", Count, Always, "Replies with an error status."),
        ("not_found", "Not found", Count, Always, "Replies that say that the name does not exist."),
    ]),
    ("series", "The recording in bins of equal width.", &[], &[
        ("bin_ns", "Width", Duration, Always, "Width of a bin."),
        ("bins", "Bins", List("bin"), Always, "The bins, in order of time."),
        ("without_time", "Without time", Count, Always, "Operations without any time; members of a compound are counted with its first operation."),
    ]),
    ("bin", "One bin; an operation is counted in the bin in which its request began.", &[], &[
        ("start_ns", "Start", Time, Always, "Start of the bin."),
        ("operations", "Operations", Count, Always, "Operations that began in it."),
        ("errors", "Errors", Count, Always, "Those that failed."),
        ("read_bytes", "Read", Bytes, Always, "Bytes of file data read."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of file data written."),
        ("wire_bytes", "On the wire", Bytes, Always, "Bytes of requests and replies with their headers."),
        ("busy_ns", "Busy", Duration, Always, "Busy time of its operations."),
        ("elapsed", "Elapsed", Object("distribution"), Always, "First byte of the request to last byte of the reply."),
        ("outstanding_max", "Most in flight", Count, Nullable, "Most operations already in flight on its connection when one was sent."),
        ("outstanding_mean", "Mean in flight", Number, Nullable, "Mean of the operations already in flight on the connection when one was sent."),
        ("open_handles", "Open handles", Count, Always, "Opens at the end of the bin, including those from before the recording."),
    ]),
    ("sizes", "Sizes of reads or writes.", &[], &[
        ("operations", "Operations", Count, Always, "Reads or writes."),
        ("size_unknown", "Size unknown", Count, Always, "Those whose size was not captured."),
        ("requested_bytes", "Requested", Bytes, Always, "Sum of the requested sizes."),
        ("transferred_bytes", "Transferred", Bytes, Always, "Bytes of file data that were actually transferred."),
        ("powers", "By power of two", List("size_class"), Always, "Operations by size between powers of two."),
        ("sizes", "Most common", List("size"), Always, "The most common exact sizes."),
        ("distinct_sizes", "Distinct sizes", Count, Always, "Distinct sizes, up to a limit."),
        ("others", "Others", Count, Always, "Operations with other sizes, beyond the limit."),
    ]),
    ("size_class", "Sizes between two powers of two.", &[], &[
        ("from_bytes", "From", Bytes, Always, "Smallest size."),
        ("below_bytes", "Below", Bytes, Nullable, "All sizes are less than this."),
        ("operations", "Operations", Count, Always, "Operations of such a size: the requested size, or the transferred size if that is unknown."),
    ]),
    ("size", "One exact size.", &[], &[
        ("size_bytes", "Size", Bytes, Always, "The size."),
        ("operations", "Operations", Count, Always, "Operations of exactly this size."),
    ]),
    ("compounds", "Messages that carry several operations.", &[], &[
        ("chains", "Chains", Count, Always, "Compounds of which every member was recorded."),
        ("members", "Members", Count, Always, "Operations in chains."),
        ("members_share", "of all", Share, Always, "Part of all operations."),
        ("related", "Related", Count, Always, "Members that use session, tree and file of the previous one."),
        ("largest", "Largest", Count, Always, "Most recorded members of a chain."),
        ("patterns", "Patterns", List("count"), Always, "The commands that chains consist of, the most frequent first."),
        ("others", "Others", Count, Always, "Chains with other patterns, beyond the limit."),
        ("incomplete", "Incomplete", Count, Always, "Chains of which some members were not recorded."),
    ]),
    ("protection", "Signing, encryption, compression and dialects.", &[], &[
        ("signed", "Signed", Count, Always, "Operations whose request was signed."),
        ("encrypted", "Encrypted", Count, Always, "Operations whose request was encrypted."),
        ("encrypted_unread", "Not decrypted", Count, Always, "Those that could not be decrypted."),
        ("compressed", "Compressed", Count, Always, "Operations whose request or reply was compressed."),
        ("dialects", "Dialects", List("count"), Always, "Operations by negotiated dialect."),
    ]),
    ("sessions", "Logons.", &[], &[
        ("sessions", "Sessions", Count, Always, "Sessions seen."),
        ("guests", "Guests", Count, Always, "Guest and anonymous sessions."),
        ("encrypted", "Encrypted", Count, Always, "Those in which the server requires encryption."),
        ("multichannel", "Multichannel", Count, Always, "Carried by several connections."),
        ("channels_max", "Most channels", Count, Always, "Most connections of one session."),
        ("mechanisms", "Mechanisms", List("count"), Always, "Authentication mechanisms."),
    ]),
    ("trees", "Connected shares.", &[], &[
        ("trees", "Trees", Count, Always, "Tree connects: connected shares, counted once for each session."),
        ("continuously_available", "Continuously available", Count, Always, "Those whose handles persist over a failover, so that writes must be stable."),
        ("encrypted", "Encrypted", Count, Always, "Those that require encryption."),
    ]),
    ("handles", "Opens.", &[], &[
        ("handles", "Opens", Count, Always, "Opens seen."),
        ("opened_before", "Opened before", Count, Always, "Opened before the capture began."),
        ("still_open", "Still open", Count, Always, "Not closed when the capture ended."),
        ("never_used", "Never used", Count, Always, "Opened and closed without any request in between."),
        ("directories", "Directories", Count, Always, "Opens of directories."),
        ("durable", "Durable", Count, Always, "Opens that the server made durable."),
        ("persistent", "Persistent", Count, Always, "Opens that the server made persistent."),
        ("write_through", "Write-through", Count, Always, "Opens that request write-through."),
        ("open", "Time open", Object("distribution"), Always, "From the reply to the Create to the reply to the Close."),
        ("oplocks", "Oplocks", List("count"), Always, "Oplock levels granted."),
        ("leases", "Leases", List("count"), Always, "Lease states granted: R read, H handle, W write."),
    ]),
    ("breaks", "Oplock and lease breaks.", &[], &[
        ("breaks", "Breaks", Count, Always, "Breaks that the server sent."),
        ("acknowledgements", "Acknowledgements", Count, Always, "Acknowledgements that clients sent."),
        ("changes", "Changes", List("count"), Always, "The oplock or lease states that were revoked."),
    ]),
    ("connections", "TCP connections: sums over all, and those with the most operations.", &[], &[
        ("connections", "Connections", Count, Always, "TCP connections that carried SMB."),
        ("packets", "Packets", Count, Always, "Packets of both sides."),
        ("bytes_to_server", "Bytes to server", Bytes, Always, "TCP payload from clients."),
        ("bytes_to_client", "Bytes to client", Bytes, Always, "TCP payload from servers."),
        ("retransmissions", "Retransmissions", Count, Always, "Segments that were seen before."),
        ("out_of_order", "Out of order", Count, Always, "Segments that arrived before an earlier one."),
        ("gaps", "Gaps", Count, Always, "Holes in the streams that were never filled."),
        ("gap_bytes", "Gap bytes", Bytes, Always, "Bytes of those holes."),
        ("zero_windows", "Zero windows", Count, Always, "How often a receiver closed its window."),
        ("resets", "Resets", Count, Always, "RST segments."),
        ("others", "Others", Count, Always, "Other connections, beyond the limit: the times of their operations are unknown."),
        ("rows", "Connections", List("connection_row"), Always, "The connections with the most operations."),
    ]),
    ("connection_row", "One connection with sums over its operations, in a load run those of all phases.", &["connection"], &[
        ("busy_ns", "Busy", Duration, Always, "Busy time of its operations."),
        ("busy_share", "Time", Share, Always, "Part of the busy time of all operations, in a load run those of all phases."),
        ("credit_charge", "Credits charged", Count, Always, "Sum of the CreditCharge of its requests."),
        ("credits_requested", "Credits requested", Count, Always, "Sum of the credits that the client requested."),
        ("credits_granted", "Credits granted", Count, Always, "Sum of the credits that the server granted."),
        ("read_bytes", "Read", Bytes, Always, "Bytes of file data read."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of file data written."),
        ("elapsed", "Elapsed", Object("distribution"), Always, "First byte of the request to last byte of the reply."),
        ("window_bound_bits_per_second", "Bound by window", Number, Nullable, "Most bytes in flight over the round trip, bits/s, in the direction with more payload: TCP did not move more in any round trip. Null without the whole round trip."),
        ("loss_bound_bits_per_second", "Bound by loss", Number, Nullable, "What TCP with Reno's congestion control carries with this loss and round trip (Mathis and others 1997), bits/s. Null with fewer than 3 retransmissions or 1,000 packets."),
        ("oplocks", "Oplocks", List("count"), Always, "Oplock levels granted."),
        ("leases", "Leases", List("count"), Always, "Lease states granted: R read, H handle, W write."),
    ]),
    ("slow", "One of the slowest operations.", &[], &[
        ("recording", "Recording", Code, Nullable, "The recording that contains it."),
        ("operation", "Operation", Number, Nullable, "Its number in the table operations."),
        ("command", "Command", Text, Always, "The command."),
        ("detail", "Detail", Text, Nullable, "Information class, FSCTL, disposition or transaction."),
        ("status", "Status", Text, Nullable, "NTSTATUS of the reply."),
        ("client", "Client", Text, Nullable, "The client's address."),
        ("client_port", "Port", Number, Nullable, "The client's TCP port."),
        ("server", "Server", Text, Nullable, "The server's address."),
        ("user", "User", Text, Nullable, "The user."),
        ("share", "Share", Text, Nullable, "The share."),
        ("path", "Path", Text, Nullable, "The file or directory."),
        ("requested_bytes", "Requested", Bytes, Nullable, "Bytes that the client requested."),
        ("transferred_bytes", "Transferred", Bytes, Nullable, "Bytes that were actually transferred."),
        ("outstanding", "In flight", Count, Nullable, "Operations already in flight on the connection when this one was sent."),
        ("request_start_ns", "Began", Time, Nullable, "First byte of the request."),
        ("elapsed_ns", "Elapsed", Duration, Always, "First byte of the request to last byte of the reply."),
        ("request_transfer_ns", "Request transfer", Duration, Nullable, "First to last byte of the request."),
        ("turnaround_ns", "Turnaround", Duration, Nullable, "Last byte of the request to first byte of the reply."),
        ("server_ns", "At server", Duration, Nullable, "Turnaround minus the round trip between capture point and server."),
        ("response_transfer_ns", "Reply transfer", Duration, Nullable, "First to last byte of the reply."),
        ("request_frame", "Request frame", Number, Nullable, "Frame of the request's first byte."),
        ("response_frame", "Reply frame", Number, Nullable, "Frame of the reply's first byte."),
        ("capture_file", "File", Code, Nullable, "The capture file in which it ended; frame numbers refer to this file."),
        ("filter", "Wireshark filter", Code, Nullable, "A display filter that shows the operation's messages."),
    ]),
];
