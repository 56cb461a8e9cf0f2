//! The fields of the report's part on the inside of a server.

use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::Rows;

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("server", "What a probe inside the server recorded, without operations that wait by design.", &[], &[
        ("operations", "With slices", Count, Always, "Operations whose time at the server is known slice by slice."),
        ("waits", "Left out", Count, Always, "Operations with slices that wait by design; they are not included in the other fields."),
        ("kinds", "Slices", Texts, Always, "Kinds of slices that occur, in the order in which an operation passes through them; disk and offcpu are within the others."),
        ("split", "Split", Object("server_split"), Always, "Where the time of all these operations was spent."),
        ("commands", "By command", List("server_command"), Always, "By command, those with the most server time first."),
        ("shares", "By share", List("server_share"), Always, "By share and command, those with the most server time first."),
        ("shares_others", "Other shares", Count, Always, "Operations with other shares and commands, beyond the limit."),
        ("bins", "Bins", List("server_bin"), Always, "Slices in the bins of series."),
        ("slowest", "Longest at the server", List("server_slow"), Always, "The operations with the longest time at the server, with their slices."),
    ]),
    ("spread", "The distribution of a duration, with its standard deviation.", &["distribution"], &[
        ("stddev_ns", "Std. dev.", Duration, Nullable, "Standard deviation (of the sample); null for fewer than two values."),
    ]),
    ("server_split", "Time by category. Without the transfers, the sums add up to the turnaround if that is known.", &[], &[
        ("request_transfer_ns", "Request transfer", Duration, Always, "First to last byte of the request."),
        ("queue_ns", "Queue", Duration, Always, "Arrival to start of processing."),
        ("processing_ns", "Processing", Duration, Always, "The server's own work: parsing and processing."),
        ("security_ns", "Security", Duration, Always, "Signing, verifying, encrypting and decrypting."),
        ("filesystem_ns", "File system", Duration, Always, "File-system calls, waiting for an I/O thread, I/O and flushing."),
        ("lock_wait_ns", "Locks", Duration, Always, "Waiting for locks, and for other clients to acknowledge breaks."),
        ("send_ns", "Send", Duration, Always, "Handing the reply to the network."),
        ("residual_ns", "Unexplained", Duration, Always, "Turnaround minus the sum of the slices, for operations with a turnaround of their own (in a compound only the first operation has one, for the whole chain)."),
        ("response_transfer_ns", "Reply transfer", Duration, Always, "First to last byte of the reply."),
    ]),
    ("server_command", "The slices of one command.", &[], &[
        ("command", "Command", Text, Always, "Its name."),
        ("operations", "Count", Count, Always, "Operations with slices."),
        ("time_share", "Server time", Share, Always, "Part of the server time (sum of slices) of all commands."),
        ("turnaround", "Turnaround", Object("spread"), Always, "Last byte of the request to first byte of the reply, for operations that are not in a compound."),
        ("slices_sum", "Server", Object("spread"), Always, "Sum of an operation's slices, disk and off-CPU time not counted because they lie within others."),
        ("residual", "Unexplained", Object("spread"), Always, "Turnaround minus that sum."),
        ("queue", "Queue", Object("spread"), Always, "Arrival to start of processing."),
        ("processing", "Processing", Object("spread"), Always, "The server's own work: parsing and processing."),
        ("filesystem", "File system", Object("spread"), Always, "File-system calls, waiting for an I/O thread, I/O and flushing."),
        ("split", "Split", Object("server_split"), Always, "Where the time was spent."),
        ("slices", "Slices", List("server_slice"), Always, "One for each kind that occurs."),
    ]),
    ("server_slice", "One kind of slice of one command.", &["spread", "distribution"], &[
        ("kind", "Slice", Text, Always, "Its kind, as in the table slices."),
    ]),
    ("server_share", "One command on one share.", &[], &[
        ("share", "Share", Text, Nullable, "The share; null for operations without one."),
        ("command", "Command", Text, Always, "The command."),
        ("operations", "Operations", Count, Always, "Operations with slices."),
        ("time_share", "Server time", Share, Always, "Part of the server time (sum of slices) of all operations."),
        ("slices_sum", "Server", Object("distribution"), Always, "Sum of an operation's slices."),
        ("split", "Split", Object("server_split"), Always, "Where the time was spent."),
    ]),
    ("server_bin", "Slices of one bin of series; an operation is counted in the bin in which its request began.", &[], &[
        ("start_ns", "Start", Time, Always, "Start of the bin."),
        ("operations", "Operations", Count, Always, "Operations with slices that began in it."),
        ("split", "Split", Object("server_split"), Always, "Where their time was spent."),
    ]),
    ("server_slow", "One of the operations with the longest time at the server.", &[], &[
        ("recording", "Recording", Code, Nullable, "The recording."),
        ("operation", "Operation", Number, Nullable, "Its number in the recording."),
        ("command", "Command", Text, Always, "The command."),
        ("detail", "Detail", Text, Nullable, "Information class, FSCTL, disposition or transaction."),
        ("client", "Client", Text, Nullable, "The client's address."),
        ("user", "User", Text, Nullable, "The user."),
        ("share", "Share", Text, Nullable, "The share."),
        ("path", "Path", Text, Nullable, "File or directory."),
        ("arrived_ns", "Arrived", Time, Nullable, "Last byte of the request."),
        ("server_ns", "Server", Duration, Always, "Turnaround; the sum of the slices in a compound and if the turnaround is unknown."),
        ("residual_ns", "Unexplained", Duration, Nullable, "Turnaround minus the sum of the slices."),
        ("placed", "Placed", Flag, Always, "Whether the starts of the slices were recorded; if not, the slices are placed one after the other."),
        ("slices", "Slices", List("placed_slice"), Always, "Its slices in the order of time."),
        ("slices_others", "Other slices", Count, Always, "Other slices, beyond the limit."),
    ]),
    ("placed_slice", "A slice, relative to its operation.", &[], &[
        ("kind", "Slice", Text, Always, "Its kind, as in the table slices."),
        ("offset_ns", "From", Duration, Always, "From the arrival of the operation to the start of the slice."),
        ("duration_ns", "Duration", Duration, Always, "How long it lasted."),
        ("depth", "Depth", Number, Always, "The number of other slices of the operation that contain it."),
    ]),
];
