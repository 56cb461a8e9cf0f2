//! The fields of a diagnosis, as `smbscope explain --format json` prints it.

use crate::fields::Format::*;
use crate::fields::Presence::*;
use crate::fields::spec::Rows;

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("diagnosis", "What makes a share slow, most costly first.", &[], &[
        ("findings", "Findings", List("finding"), Always, "What costs time, most first; findings can overlap."),
        ("notes", "Notes", List("note"), Always, "Worth knowing, though its time is not known."),
        ("whole", "Whole", Object("whole"), Always, "The recording as a whole."),
    ]),
    ("finding", "One thing that costs time.", &[], &[
        ("trouble", "Trouble", Code, Always, "Which one, of a closed list."),
        ("what", "What", Text, Always, "What it is, in a sentence."),
        ("saved_ns", "Saved", Duration, Always, "Time that would be saved without it, all connections together."),
        ("saved_error_ns", "±", Duration, Always, "Half of the 95 % interval of that, by the scatter of operations."),
        ("share", "Share", Share, Always, "Part of all time in which somebody waited, or was about to ask."),
        ("confidence", "Confidence", Code, Always, "How much evidence there is: low, medium or high."),
        ("because", "Because", Text, Always, "What the confidence rests on."),
        ("operations", "Operations", Count, Always, "Operations that it concerns."),
        ("figures", "Figures", List("figure"), Always, "Figures that prove it."),
        ("clients", "Clients", List("culprit"), Always, "Clients with most of it."),
        ("connections", "Connections", List("culprit"), Always, "Connections with most of it: address and port of client and server."),
        ("shares", "Shares", List("culprit"), Always, "Shares with most of it."),
        ("paths", "Files", List("culprit"), Always, "Files and folders with most of it."),
        ("examples", "Examples", List("example"), Always, "The operations that cost most by it."),
        ("remedies", "Remedies", List("remedy"), Always, "What to do, the most useful first."),
        ("gains", "Gains", List("gain"), Always, "What remedies would bring, where the recording could be replayed with them."),
        ("replayed", "Replayed", Count, Always, "Operations of it that were replayed without it, to tell what is saved; without any it is the sum of what each would save."),
    ]),
    ("figure", "A figure.", &[], &[
        ("name", "Name", Code, Always, "What it is."),
        ("value", "Value", Number, Always, "The value, in the unit."),
        ("error", "±", Number, Optional, "What may be added to it or taken away, if that is known (95 %)."),
        ("unit", "Unit", Code, Always, "ns, bytes, bits/s, share (a part of one), or nothing for a number."),
    ]),
    ("culprit", "Who or what is concerned.", &[], &[
        ("name", "Name", Text, Always, "Its name."),
        ("operations", "Operations", Count, Always, "Operations."),
        ("saved_ns", "Saved", Duration, Always, "Time that would be saved there."),
    ]),
    ("example", "An operation to look at.", &[], &[
        ("recording", "Recording", Text, Nullable, "Its recording."),
        ("operation", "Operation", Number, Nullable, "Its number in the table of operations."),
        ("command", "Command", Text, Always, "The command."),
        ("path", "Path", Text, Nullable, "The path."),
        ("elapsed_ns", "Elapsed", Duration, Nullable, "How long it took; null of a later member of a compound, whose time its lead has."),
        ("request_frame", "Request frame", Number, Nullable, "The frame of its request in the capture."),
        ("response_frame", "Reply frame", Number, Nullable, "The frame of its reply."),
    ]),
    ("remedy", "What to do, and where.", &[], &[
        ("at", "Where", Text, Always, "Samba, Windows, client, server, application or network."),
        ("action", "Action", Text, Always, "Exactly what."),
    ]),
    ("gain", "The recording once more, with a remedy.", &[], &[
        ("change", "Change", Code, Always, "The remedy, as smbscope predict --change takes it."),
        ("waiting_before_ns", "Waited today", Duration, Always, "Time in which clients' operations were under way."),
        ("waiting_after_ns", "Waited then", Duration, Always, "The same with the remedy."),
        ("error_ns", "±", Duration, Nullable, "Half of the 95 % interval of the difference, by the scatter of operations."),
        ("operations", "Operations", Count, Always, "Operations that were replayed."),
        ("is_part", "Part", Flag, Always, "Whether they are the first ones of more."),
    ]),
    ("note", "Something worth knowing.", &[], &[
        ("about", "About", Code, Always, "What it is about, of a closed list."),
        ("what", "What", Text, Always, "A sentence."),
    ]),
    ("whole", "The recording as a whole.", &[], &[
        ("operations", "Operations", Count, Always, "Operations."),
        ("timed", "Timed", Count, Always, "Of them those with a time."),
        ("busy_ns", "Busy", Duration, Always, "Time with something under way, over all connections."),
        ("transfer_ns", "Transfer", Duration, Always, "Of it, bytes under way."),
        ("server_ns", "Server", Duration, Always, "Of it, the server's, where that is known apart."),
        ("network_ns", "Distance", Duration, Always, "Of it, the distance, where that is known apart."),
        ("think_ns", "Pauses", Duration, Always, "Pauses of clients of less than a second."),
        ("elapsed_ns_mean", "Mean", Duration, Always, "Mean time of an operation."),
        ("active_ns", "Active", Duration, Always, "Time with something under way on any connection."),
        ("lasted_ns", "Lasted", Duration, Always, "From the first request to the last reply."),
    ]),
];
