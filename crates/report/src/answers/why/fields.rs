//! The fields of the explanation of one operation, as `smbscope explain --why --format json` prints it.

use smbscope_analysis::explain::why::{Blocking, Reason, StepKind};

use crate::answers::diagnosis;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all, values_of};

/// The objects of the explanation of one operation.
pub static FIELDS: Fields = Fields::new("why", objects, closed);

fn objects() -> Vec<Object> {
    let selection = diagnosis::fields::OBJECTS.iter().filter(|(name, ..)| *name == "selection");
    all(OBJECTS.iter().chain(selection))
}

/// Fields whose values are a closed list.
fn closed() -> Vec<Closed> {
    vec![
        values_of("explanation", "reason", &Reason::ALL),
        values_of("step", "kind", &StepKind::ALL),
        values_of("neighbours", "blocking", &Blocking::ALL),
    ]
}

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("explanation", "Why one operation took as long as it did; at_ns counts from the first byte of its request.", &[], &[
        ("verdict", "Verdict", Text, Always, "The explanation in words."),
        ("found_by", "Found by", Code, Always, "How the operation was found: request, reply (the frame has its first byte), between (the frame lies between them) or number."),
        ("reason", "Reason", Code, Always, "What took most of its time, from a fixed list."),
        ("reason_share", "Share", Share, Nullable, "The part of its time that the reason explains; null without a time."),
        ("operation", "Operation", Object("subject"), Always, "The operation."),
        ("steps", "Steps", List("step"), Always, "Where its time went; steps that are not parts of another one add up to the elapsed time."),
        ("breaks", "Breaks", List("break"), Always, "Oplock and lease breaks of its file that were not answered before it began: those that it waited for longest, in the order of time."),
        ("breaks_count", "All breaks", Count, Always, "How many there are."),
        ("breaks_waited_ns", "Waited for breaks", Duration, Always, "Total wait for their answers."),
        ("waiters", "Waiters", List("brief"), Always, "For a break: the opens of its file that were in flight when the server sent it."),
        ("holders", "Holders", List("holder"), Always, "For a lock, and for an open that failed with a sharing violation: the locks or other opens that were held while it waited, the longest first."),
        ("holders_count", "All holders", Count, Always, "How many there are."),
        ("neighbours", "Neighbours", Object("neighbours"), Always, "Other requests on its connection."),
        ("open", "Open", Object("open"), Nullable, "The open that it uses."),
        ("likes", "Likes", Object("likes"), Always, "Operations of the same kind."),
        ("timer", "Timer", Object("timer"), Nullable, "A timer that may have determined its duration."),
        ("filter", "Filter", Code, Nullable, "A Wireshark display filter that shows it and its neighbours."),
        ("left_out", "Left out", Count, Always, "Breaks, opens, closes and locks of the file that were not compared because there were too many."),
        ("selection", "Selection", Object("selection"), Optional, "Which part of the inputs was read; absent if it is all."),
    ]),
    ("brief", "An operation in short.", &[], &[
        ("recording", "Recording", Text, Nullable, "Its recording."),
        ("capture_file", "File", Text, Nullable, "The capture file in which it ended."),
        ("operation", "Operation", Number, Nullable, "Its number in the table of operations."),
        ("connection", "Connection", Number, Nullable, "The number of its connection."),
        ("client", "Client", Text, Nullable, "The client's address."),
        ("command", "Command", Code, Nullable, "The command; null if it was encrypted and not decrypted."),
        ("detail", "Detail", Code, Nullable, "Details of the command."),
        ("path", "Path", Text, Nullable, "The path."),
        ("offset_bytes", "Offset", Bytes, Nullable, "Offset in the file."),
        ("bytes", "Bytes", Number, Nullable, "Bytes that were transferred, or requested if that is unknown."),
        ("status", "Status", Code, Nullable, "The status of the reply."),
        ("at_ns", "At", Duration, Nullable, "When its request began, or its reply if that is all that was recorded."),
        ("elapsed_ns", "Elapsed", Duration, Nullable, "How long it took."),
        ("waits", "Waits", Flag, Always, "Whether it waits by design (change notification, blocked lock)."),
        ("request_frame", "Request frame", Number, Nullable, "The frame of its request."),
        ("response_frame", "Reply frame", Number, Nullable, "The frame of its reply."),
    ]),
    ("subject", "The explained operation.", &["brief"], &[
        ("start_ns", "Start", Time, Nullable, "When it began."),
        ("client_port", "Client port", Number, Nullable, "The client's port."),
        ("server", "Server", Text, Nullable, "The server's address."),
        ("server_port", "Server port", Number, Nullable, "The server's port."),
        ("user", "User", Text, Nullable, "The user."),
        ("share", "Share", Text, Nullable, "The share."),
        ("encrypted", "Encrypted", Flag, Always, "Whether its messages were encrypted."),
        ("pending_at_ns", "Pending at", Duration, Nullable, "When the server answered that it is pending; null without such an answer."),
        ("compound_size", "Compound", Number, Nullable, "Operations of its compound; null if it is alone in its message."),
        ("compound_member", "Member", Number, Nullable, "The member of the compound that was named, if the first one is explained instead because it has the time."),
    ]),
    ("step", "A step of an operation.", &[], &[
        ("kind", "Step", Code, Always, "The kind of step, from a fixed list."),
        ("slice", "Slice", Code, Nullable, "For a slice of the server's time: its kind, as in the table slices."),
        ("is_part", "Part", Flag, Always, "Whether its time is part of the step before it and does not count again."),
        ("at_ns", "At", Duration, Nullable, "When it began, if that is known."),
        ("duration_ns", "Duration", Duration, Nullable, "How long it took; null for a moment, or if it is unknown."),
        ("error_ns", "±", Duration, Nullable, "The uncertainty of the duration, if it is an estimate."),
        ("frame", "Frame", Number, Nullable, "The frame in which it began, or of the last answer to an earlier request."),
    ]),
    ("break", "An oplock or lease break of the operation's file.", &[], &[
        ("is_lease", "Lease", Flag, Always, "Whether it breaks a lease; otherwise an oplock."),
        ("client", "Client", Text, Nullable, "The client that it was sent to."),
        ("client_port", "Client port", Number, Nullable, "The port of that client."),
        ("is_same_client", "Same client", Flag, Always, "Whether the operation's client got it."),
        ("is_same_connection", "Same connection", Flag, Always, "Whether it was sent on the operation's connection."),
        ("at_ns", "At", Duration, Always, "When it was sent."),
        ("frame", "Frame", Number, Nullable, "Its frame."),
        ("from", "From", Code, Nullable, "The level or state before it; null if that is unknown."),
        ("to", "To", Code, Nullable, "The level or state after it."),
        ("opened_frame", "Opened", Number, Nullable, "The frame of the request that opened the file with it."),
        ("needs_acknowledgement", "Needs answer", Flag, Nullable, "Whether the client has to acknowledge it; null if the level before is unknown."),
        ("answer", "Answer", Object("break_answer"), Nullable, "What the client did; null if the recording shows nothing."),
        ("waited_ns", "Waited", Duration, Always, "How long the operation waited from this break to its answer or its own reply."),
    ]),
    ("break_answer", "What a client did after a break.", &[], &[
        ("is_close", "Close", Flag, Always, "Whether it closed the file instead of acknowledging the break."),
        ("at_ns", "At", Duration, Always, "When its request began."),
        ("took_ns", "Took", Duration, Always, "Time from the break to it."),
        ("frame", "Frame", Number, Nullable, "Its frame."),
        ("status", "Status", Code, Nullable, "The status of the server's reply to it."),
    ]),
    ("holder", "A lock on the range, or an open of the file, that was held while the operation waited.", &["brief"], &[
        ("is_same_client", "Same client", Flag, Always, "Whether the operation's client held it."),
        ("from_ns", "From", Duration, Always, "When it was granted."),
        ("until_ns", "Until", Duration, Nullable, "When it was given up; null if the recording does not show that."),
        ("until_frame", "Until frame", Number, Nullable, "The frame of the Unlock or Close."),
    ]),
    ("neighbours", "Other requests on the connection.", &[], &[
        ("blocking", "Blocking", Code, Always, "Whether it waited for them or they for it: alone, only-this, behind, replies (those to other requests occupied the connection), others-waited or unknown."),
        ("in_flight", "In flight", Count, Always, "Requests that were in flight when it was sent."),
        ("in_flight_answered", "Answered meanwhile", Count, Always, "Those that were answered while it waited."),
        ("sent", "Sent", Count, Always, "Requests that were sent while it waited."),
        ("sent_answered", "Answered before it", Count, Always, "Those that were answered before it."),
        ("waiting", "Waiting", Count, Always, "Requests in flight that wait by design; they are in no other number."),
        ("released_by", "Released by", Object("brief"), Nullable, "The next request after a long silence of the connection, if the reply came just after it."),
        ("forwarded", "Forwarded", Object("brief"), Nullable, "The same request on a connection from this server to another one: the server is a proxy."),
        ("blocker", "Blocker", Object("brief"), Nullable, "If it waited for requests before it: the one that took longest."),
        ("shown", "Shown", List("brief"), Always, "Those that overlap it most, in the order of their requests."),
        ("left_out", "Left out", Count, Always, "Others."),
    ]),
    ("open", "The open that the operation uses.", &[], &[
        ("handle", "Handle", Number, Always, "Its number in the table of handles."),
        ("uses", "Uses", Count, Always, "All operations that use it."),
        ("shown", "Shown", List("brief"), Always, "The first use, those around the operation, and the close."),
    ]),
    ("likes", "Operations of the same command and detail, and for reads and writes of the same power of two of bytes.", &[], &[
        ("command", "Command", Code, Nullable, "The command."),
        ("detail", "Detail", Code, Nullable, "Details of the command."),
        ("from_bytes", "From", Bytes, Nullable, "At least this size; null if size does not count."),
        ("below_bytes", "Below", Bytes, Nullable, "Less than this size."),
        ("operations", "Operations", Count, Always, "Operations with a time, the explained one included."),
        ("p50_ns", "p50", Duration, Nullable, "Median; null below ten operations."),
        ("p95_ns", "p95", Duration, Nullable, "95th percentile; null below ten operations."),
        ("max_ns", "Most", Duration, Nullable, "Longest time."),
        ("slower", "Slower", Count, Always, "Operations that took longer."),
        ("times_median", "Times the median", Number, Nullable, "Its time divided by the median."),
        ("same_duration", "Same time", Count, Always, "Others whose time differs by at most 1 %."),
        ("same_duration_any", "Same time, all", Count, Always, "The same among operations of any command."),
    ]),
    ("timer", "A timer that may have determined the duration.", &[], &[
        ("constant_ns", "Constant", Duration, Always, "The constant: that of a known timer, or the duration itself."),
        ("name", "Timer", Text, Nullable, "The known timer that has this constant, if one fits."),
        ("operations", "Operations", Count, Always, "Other operations of any command with this duration."),
    ]),
];
