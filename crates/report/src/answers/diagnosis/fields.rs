//! The fields of a diagnosis, as `smbscope explain --format json` prints it.

use smbscope_analysis::channels::ChannelFindingKind;
use smbscope_analysis::explain::{About, Effect, FindingKind, State};

use crate::answers::cpu;
use crate::answers::recording::fields as summary;
use crate::answers::recording::fields::channels;
use crate::document::by_field;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all, kinds_of, values_of};

/// The objects of a diagnosis.
pub static FIELDS: Fields = Fields::new("explain", objects, closed);

by_field! { column }

fn objects() -> Vec<Object> {
    let traces = cpu::fields::OBJECTS.iter();
    let traces = traces.filter(|(name, ..)| cpu::fields::IN_DIAGNOSES.contains(name));
    let network = summary::OBJECTS.iter().filter(|(name, ..)| *name == "net_ratio");
    let beside = cpu::fields::BESIDE.iter().chain(channels::FINDINGS).chain(network);
    all(OBJECTS.iter().chain(beside).chain(traces))
}

/// Fields whose values are a closed list.
fn closed() -> Vec<Closed> {
    let mut closed = cpu::fields::closed();
    closed.extend([
        values_of("note", "about", &About::ALL),
        values_of("diagnosis", "state", &State::ALL),
        values_of("finding", "effect", &[Effect::Time, Effect::Broken]),
    ]);
    closed.extend(kinds_of::<FindingKind>("finding"));
    closed.extend(kinds_of::<ChannelFindingKind>("channel_finding"));
    closed
}

/// In a report and in a diagnosis.
#[rustfmt::skip]
pub(crate) const LOGGED: Rows =
    ("logged", "Events of one kind that the Windows SMB server or client logged on its own.", &[], &[
        ("kind", "Kind", Code, Always, "The kind, as in the table server_events."),
        ("title", "What happened", Text, Always, "The kind in words."),
        ("count", "Events", Count, Always, "Events."),
        ("first_ns", "First", Time, Always, "The first one."),
        ("last_ns", "Last", Time, Always, "The last one."),
        ("longest_ns", "Longest", Duration, Nullable, "The longest duration, or time until what was lost came back; null if the events have none."),
        ("not_restored", "Not restored", Count, Always, "Servers or shares that were lost and did not come back within the log."),
        ("threshold_ns", "Threshold", Duration, Nullable, "From which duration on Windows writes such an event."),
        ("commands", "Commands", Texts, Always, "The most frequent commands, at most three."),
        ("clients", "Clients", Texts, Always, "The most frequent clients."),
        ("users", "Users", Texts, Always, "The most frequent users."),
        ("servers", "Servers", Texts, Always, "The most frequent servers, in events of a client."),
        ("shares", "Shares", Texts, Always, "The most frequent shares."),
        ("paths", "Paths", Texts, Always, "The most frequent files and directories."),
        ("statuses", "Statuses", Texts, Always, "The most frequent NTSTATUS."),
        ("side", "Side", Code, Always, "The side that can change something: client, server or network."),
        ("remedy", "What to do", Text, Always, "What to do."),
    ]);

/// In a report and in a diagnosis.
#[rustfmt::skip]
pub(crate) const LOGGED_OTHER: Rows =
    ("logged_other", "Events of one number that report no trouble.", &[], &[
        ("provider", "Provider", Code, Always, "SMBServer or SMBClient."),
        ("event", "Event", Count, Always, "The number of the event."),
        ("title", "What it says", Text, Nullable, "What the event says; null if smbscope does not know it."),
        ("count", "Events", Count, Always, "Events."),
        ("first_ns", "First", Time, Always, "The first one."),
        ("last_ns", "Last", Time, Always, "The last one."),
    ]);

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("diagnosis", "What makes a share slow, most costly first.", &[], &[
        ("state", "State", Code, Always, "How users fare: healthy, unknown (the recording does not decide it), slow (people notice that they wait) or broken (requests hang, are refused or fail, or data are at risk)."),
        ("p95_ns", "95 %", Duration, Nullable, "95 of 100 operations take at most this; null without operations that have a time."),
        ("round_trip_ns", "Round trip", Duration, Nullable, "The round trip between client and server on the connection with most packets; null if it is not known."),
        ("account", "Account", Object("account"), Always, "What the time of all clients consists of."),
        ("waits", "Waits", List("wait_group"), Always, "What clients waited for outside of operations, the longest sum first."),
        ("slowest", "Slowest", Object("waits_in_a_row"), Nullable, "The waits in a row in which the server needed longest; null if that is less than a second."),
        ("findings", "Findings", List("finding"), Always, "Causes of lost time, most costly first; findings can overlap."),
        ("pauses", "Pauses", Object("pauses"), Nullable, "Pauses of clients: context, not a cause. Null if there were none."),
        ("unexplained", "Unexplained", Object("unexplained"), Nullable, "Waiting that no finding explains; null if it is less than 5 %."),
        ("change", "Change", Object("change"), Nullable, "A moment after which operations take longer, or shorter, than before; null if there is no sharp one."),
        ("notes", "Notes", List("note"), Always, "Observations whose cost in time is unknown."),
        ("logged", "Logged by Windows", List("logged"), Always, "What the Windows SMB server and client logged on their own, the most costly kinds first."),
        ("logged_other", "Other events", List("logged_other"), Always, "Their events that report no trouble, by number."),
        ("channels", "Channels", List("channel_finding"), Always, "What is wrong with channels of sessions over several connections."),
        ("network", "The network", List("net_ratio"), Always, "The network without SMB next to SMB, by direction; empty without a test of the path (smbscope net)."),
        ("whole", "Whole", Object("whole"), Always, "The recording as a whole."),
        ("selection", "Selection", Object("selection"), Optional, "Which part of the inputs was diagnosed; absent if it is all."),
        ("recorded", "Recorded", Object("selection"), Optional, "Which part of what was seen is in the inputs, because they were recorded with a filter; absent if they are whole."),
        ("processors", "CPUs", Object("processors_beside"), Optional, "What a CPU trace of the same time shows; absent without one."),
    ]),
    ("selection", "The part of the inputs that met the filter options.", &[], &[
        ("filter", "Filter", Text, Always, "The filter in words."),
        ("operations", "Operations", Count, Always, "Operations that met the filter."),
        ("operations_all", "Of", Count, Nullable, "Operations of the inputs, or seen when they were recorded; null if a recording was not completed."),
    ]),
    ("finding", "One thing that costs time.", &[], &[
        ("trouble", "Trouble", Code, Always, "The identifier of the problem, from a fixed list."),
        ("what", "What", Text, Always, "What happens, in one sentence."),
        ("saved_ns", "Saved", Duration, Always, "Time that would be saved without it, all connections together."),
        ("saved_error_ns", "±", Duration, Nullable, "Half of the 95 % interval of that, from the variation between operations; null for fewer than ten operations."),
        ("share", "Share", Share, Always, "Share of all waiting time (waited_ns)."),
        ("confidence", "Confidence", Code, Always, "How sure it is: possible, likely or measured."),
        ("because", "Because", Text, Always, "Why the confidence is what it is."),
        ("owner", "Responsible", Object("owner"), Always, "The side that can change something about it."),
        ("operations", "Operations", Count, Always, "Operations that are affected."),
        ("first_ns", "First", Time, Nullable, "When the first of them began; null without times."),
        ("last_ns", "Last", Time, Nullable, "When the last of them ended."),
        ("times", "Times", List("time_class"), Always, "How long these operations took, or how long the client paused before them; classes without operations are omitted."),
        ("figures", "Figures", List("figure"), Optional, "Figures that support the finding; absent if there are none."),
        ("clients", "Clients", List("culprit"), Always, "Most affected clients."),
        ("connections", "Connections", List("culprit"), Always, "Most affected connections: address and port of client and server."),
        ("servers", "Servers", List("culprit"), Always, "Most affected servers."),
        ("shares", "Shares", List("culprit"), Always, "Most affected shares."),
        ("paths", "Files", List("culprit"), Always, "Most affected files and folders."),
        ("examples", "Examples", List("example"), Always, "The operations that lost most time."),
        ("remedies", "Remedies", List("remedy"), Always, "What to do, the most useful first."),
        ("gains", "Gains", List("gain"), Always, "The predicted effect of remedies, if the recording could be replayed with them."),
        ("replayed", "Replayed", Count, Always, "Affected operations that were replayed without the problem to compute the saved time; if there are none, the saved time is the sum over the operations."),
        ("is_of_events", "Events", Flag, Always, "Whether each operation is evidence by itself (a timeout, a refusal), so that the finding is shown however small its share is."),
        ("effect", "Effect", Code, Always, "What it means for users: time (what it costs decides) or broken (something hangs, fails or is at risk)."),
        ("burst_ns", "Longest burst", Duration, Always, "The most time that would be saved in one burst of a connection: from a second on a person notices it."),
        ("is_noticed", "Noticed", Flag, Always, "Whether users notice it, so that it decides the state."),
    ]),
    ("account", "What the time of all clients consists of: from the first to the last thing that each of them did.", &[], &[
        ("clients", "Clients", Count, Always, "Clients."),
        ("active_ns", "Active", Duration, Always, "From the first to the last thing that each of them did, summed."),
        ("waited_ns", "Outstanding", Duration, Always, "Part of it: something was outstanding."),
        ("distance_ns", "Distance", Duration, Always, "Part of waited_ns: network round trips, where they are known."),
        ("before_smb_ns", "Before SMB", Duration, Always, "Part of waited_ns: names, connections, tickets and acknowledgements, with no operation in flight."),
        ("paused_ns", "Pauses", Duration, Always, "Part of active_ns: pauses of less than a second."),
        ("unanswered", "Without a reply", Count, Always, "Requests without a reply."),
        ("requests", "Requests", Count, Always, "Opens, reads, writes, changes and logons."),
        ("failed", "Failed", Count, Always, "How many of them failed for another reason than a missing name."),
        ("failed_most", "Most of them", Text, Nullable, "The most frequent status of those; null if none failed."),
        ("longest", "Longest", Object("waits_in_a_row"), Nullable, "The longest waits in a row; null without any."),
        ("first", "Clients", List("client_account"), Always, "The clients that waited longest."),
    ]),
    ("waits_in_a_row", "Waits of one client with no more pauses between them than they took: one wait for its user.", &[], &[
        ("client", "Client", Text, Always, "The client's address."),
        ("first_ns", "Begin", Time, Always, "Begin."),
        ("last_ns", "End", Time, Always, "End."),
        ("waited_ns", "Waited", Duration, Always, "Waiting in it."),
        ("distance_ns", "Distance", Duration, Always, "Part of waited_ns: network round trips."),
        ("server_ns", "Server", Duration, Always, "Part of waited_ns: operations for which the server needed far longer than for cached data."),
        ("operations", "Operations", Count, Always, "Operations in it."),
    ]),
    ("wait_group", "Waits of one kind for one server, outside of operations.", &[], &[
        ("kind", "Kind", Code, Always, "What clients wait for, as in the table waits."),
        ("protocol", "Protocol", Text, Always, "The protocol."),
        ("server", "For", Text, Always, "The server that they wait for."),
        ("subjects", "Names", Texts, Always, "The names or services that they request, at most three."),
        ("n", "Waits", Count, Always, "Waits."),
        ("unanswered", "Unsuccessful", Count, Always, "Waits that ended without success."),
        ("attempts", "Packets", Count, Always, "Packets with which clients asked."),
        ("sum_ns", "In total", Duration, Always, "Their sum, up to the answer or the last attempt."),
        ("longest_ns", "Longest", Duration, Always, "The longest of them."),
        ("clients", "Clients", Texts, Always, "The clients, at most three."),
    ]),
    ("client_account", "What the time of one client consists of.", &[], &[
        ("client", "Client", Text, Always, "Its address."),
        ("active_ns", "Active", Duration, Always, "From the first to the last thing that it did."),
        ("waited_ns", "Outstanding", Duration, Always, "Something was outstanding."),
        ("paused_ns", "Pauses", Duration, Always, "Pauses of less than a second."),
    ]),
    ("owner", "The side that can change something.", &[], &[
        ("actor", "Side", Code, Always, "client, server, network, application, proxy or name-service."),
        ("names", "Names", Texts, Always, "Addresses, most time first; at most three."),
    ]),
    ("pauses", "How long clients had nothing in flight before a request, where that was less than a second.", &[], &[
        ("pauses", "Pauses", Count, Always, "Pauses."),
        ("sum_ns", "Sum", Duration, Always, "Their sum."),
        ("clients", "Clients", List("culprit"), Always, "Clients, the longest sum first."),
    ]),
    ("unexplained", "Waiting that no finding explains, without round trips in the network, of the first 100,000 operations.", &[], &[
        ("ns", "Time", Duration, Always, "Its sum."),
        ("share", "Share", Share, Always, "Share of the waiting time of these operations."),
        ("kinds", "Kinds", List("unexplained_kind"), Always, "The commands with most of it."),
    ]),
    ("change", "A moment at which the time of operations changes.", &[], &[
        ("at_ns", "When", Time, Always, "The moment."),
        ("resolution_ns", "Resolution", Duration, Always, "How exactly it is known."),
        ("times", "Times", Number, Always, "How many times as long operations of the same kind take afterwards (geometric mean)."),
        ("operations_before", "Before", Count, Always, "Operations before it."),
        ("operations_after", "After", Count, Always, "Operations after it."),
    ]),
    ("unexplained_kind", "Operations of one command and detail.", &[], &[
        ("command", "Command", Text, Always, "The command."),
        ("detail", "Detail", Text, Nullable, "Its detail: information class, FSCTL, create disposition."),
        ("path", "Path", Text, Nullable, "The path with most of its time."),
        ("operations", "Operations", Count, Always, "Operations that no finding explains in full."),
        ("ns", "Time", Duration, Always, "Their time that no finding explains."),
    ]),
    ("figure", "A figure.", &[], &[
        ("name", "Name", Code, Always, "What it is."),
        ("value", "Value", Number, Always, "The value, in the unit."),
        ("error", "±", Number, Optional, "Error of the value (95 %), if it is known."),
        ("unit", "Unit", Code, Always, "ns, bytes, bits/s, share (a part of one), or nothing for a number."),
    ]),
    ("time_class", "Operations that took a certain time.", &[], &[
        ("from_ns", "From", Duration, Always, "They took at least this."),
        ("below_ns", "Below", Duration, Nullable, "They took less than this; null for the last class."),
        ("operations", "Operations", Count, Always, "Operations."),
    ]),
    ("culprit", "A client, connection, share or path that is affected.", &[], &[
        ("name", "Name", Text, Always, "Its name."),
        ("operations", "Operations", Count, Always, "Operations."),
        ("saved_ns", "Saved", Duration, Always, "Time that would be saved there."),
    ]),
    ("example", "An operation to look at.", &[], &[
        ("recording", "Recording", Text, Nullable, "Its recording."),
        ("operation", "Operation", Number, Nullable, "Its number in the table of operations."),
        ("command", "Command", Text, Always, "The command."),
        ("path", "Path", Text, Nullable, "The path."),
        ("elapsed_ns", "Elapsed", Duration, Nullable, "How long it took; null for later members of a compound, whose time is recorded with the first one."),
        ("pending_ns", "Pending", Duration, Nullable, "When the server answered that the operation is pending, counted from the request; null without such an answer."),
        ("request_frame", "Request frame", Number, Nullable, "The frame of its request in the capture."),
        ("response_frame", "Reply frame", Number, Nullable, "The frame of its reply."),
    ]),
    ("remedy", "What to do, and where.", &[], &[
        ("at", "Where", Text, Always, "Samba, Windows, client, server, application or network."),
        ("action", "Action", Text, Always, "The action, with commands and settings."),
    ]),
    ("gain", "The recording, replayed with a remedy.", &[], &[
        ("change", "Change", Code, Always, "The remedy, as `--change` of `smbscope predict` takes it."),
        ("waiting_before_ns", "Waited today", Duration, Always, "Time in which operations were in flight."),
        ("waiting_after_ns", "Waited then", Duration, Always, "The same time, with the remedy."),
        ("error_ns", "±", Duration, Nullable, "Half of the 95 % interval of the difference, from the variation between operations."),
        ("operations", "Operations", Count, Always, "Operations that were replayed."),
        ("is_part", "Part", Flag, Always, "Whether these are only the first of more operations."),
    ]),
    LOGGED,
    LOGGED_OTHER,
    ("note", "An observation.", &[], &[
        ("about", "About", Code, Always, "The topic, from a fixed list."),
        ("what", "What", Text, Always, "A sentence."),
    ]),
    ("whole", "The recording as a whole.", &[], &[
        ("operations", "Operations", Count, Always, "Operations."),
        ("timed", "Timed", Count, Always, "Those with a time."),
        ("busy_ns", "Busy", Duration, Always, "Time with operations in flight, summed over all connections."),
        ("transfer_ns", "Transfer", Duration, Always, "Of it, transfer of bytes."),
        ("server_ns", "Server", Duration, Always, "Of it, time at the server, if it is known separately."),
        ("network_ns", "Distance", Duration, Always, "Of it, network round trips, if they are known separately."),
        ("think_ns", "Pauses", Duration, Always, "Pauses of clients of less than a second."),
        ("waited_ns", "Waited", Duration, Always, "What the shares of findings refer to: the busy time, locks that waited, and the pauses of a slow client."),
        ("elapsed_ns_mean", "Mean", Duration, Always, "Mean time of an operation."),
        ("active_ns", "Active", Duration, Always, "Time with operations in flight on any connection."),
        ("lasted_ns", "Lasted", Duration, Always, "From the first request to the last reply."),
    ]),
];
