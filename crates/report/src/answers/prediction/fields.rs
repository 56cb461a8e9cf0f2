//! The fields of the report's part on what a change would bring, object by object, as
//! [`summary`](crate::answers::recording::fields) has the others. It is data.

use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::Rows;

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("forecast", "What the changes would bring: the recorded operations, replayed with the changes. Times are those of the client.", &[], &[
        ("changes", "Changes", List("forecast_change"), Always, "The changes, in the order in which they apply."),
        ("timed", "Operations with a time", Count, Always, "Recorded operations with a time of their own."),
        ("rtt_before_ns", "Round trip today", Duration, Nullable, "Median round trip of the connections, client to server and back; null if none is known."),
        ("rtt_after_ns", "Round trip predicted", Duration, Nullable, "The median round trip with the changes."),
        ("waiting_before_ns", "Waited today", Duration, Always, "Time during which an operation of a client was in flight, summed over all clients."),
        ("waiting_after_ns", "Waited predicted", Duration, Always, "This time with the changes."),
        ("operations", "Operations", Object("forecast_row"), Always, "All operations together."),
        ("commands", "Commands", List("forecast_row"), Always, "By command, those with the most time first."),
        ("all_scenarios", "All scenarios", Object("forecast_row"), Nullable, "All scenarios of load runs together; null without a load run."),
        ("scenarios", "Scenarios", List("forecast_row"), Always, "Response times by scenario, from the scheduled start to the end."),
        ("assumptions", "Assumptions", Texts, Always, "Assumptions of the prediction, a sentence each."),
        ("notes", "Notes", Texts, Always, "Other effects of the changes, a sentence each."),
        ("warnings", "Warnings", Texts, Always, "Where the prediction goes beyond what was measured, a sentence each."),
    ]),
    ("forecast_change", "A change.", &[], &[
        ("change", "Change", Code, Always, "Its name, as in smbscope predict --list."),
        ("sentence", "Meaning", Text, Always, "What changes, in words."),
    ]),
    ("forecast_row", "Means before and after the changes; errors are half of the 95 % interval, from the scatter of the recorded values.", &[], &[
        ("name", "Name", Text, Always, "Command or scenario, or All."),
        ("count", "n", Count, Always, "Number of operations, with or without a time of their own."),
        ("count_after", "n predicted", Count, Always, "Number with the changes: other block sizes mean more requests, or fewer."),
        ("before_ns", "Mean", Duration, Nullable, "Mean today; null if none has a time."),
        ("before_error_ns", "±", Duration, Nullable, "Half of the 95 % interval of today's mean; null for a single value."),
        ("after_ns", "Mean", Duration, Nullable, "Mean predicted."),
        ("after_error_ns", "±", Duration, Nullable, "Half of the 95 % interval of the predicted mean."),
        ("change_percent", "of the mean", Number, Nullable, "Change of the mean, in percent of today's."),
        ("change_error_percent", "±", Number, Nullable, "Half of the 95 % interval of that change, in percent of today's."),
        ("parts", "Parts", List("forecast_part"), Always, "The parts of the means; they add up to them."),
    ]),
    ("forecast_part", "A part of a mean before and after the changes.", &[], &[
        ("part", "Part", Code, Always, "network (one round trip), windows (additional round trips of TCP, and the link's rate), server (time in no slice), a slice, rest (the client, and sending the bytes), or for a scenario between (the time between its operations)."),
        ("before_ns", "Today", Duration, Always, "Today."),
        ("after_ns", "Predicted", Duration, Always, "With the changes."),
    ]),
];
