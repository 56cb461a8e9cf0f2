//! The fields of the report's part on what a change would bring, object by object, as
//! [`summary`](super::summary) has the others. It is data.

use crate::fields::Format::*;
use crate::fields::Presence::*;
use crate::fields::spec::Rows;

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("forecast", "What changes would bring: the recorded operations once more, as they would have gone with them. Times are those of the client.", &[], &[
        ("changes", "Changes", List("forecast_change"), Always, "The changes, in the order in which they apply."),
        ("timed", "Operations with a time", Count, Always, "Recorded operations with a time of their own."),
        ("rtt_before_ns", "Round trip today", Duration, Nullable, "Median round trip of the connections, client to server and back; null where none is known."),
        ("rtt_after_ns", "Round trip predicted", Duration, Nullable, "The same with the changes."),
        ("waiting_before_ns", "Waited today", Duration, Always, "Time in which a client's operation was under way, all clients together."),
        ("waiting_after_ns", "Waited predicted", Duration, Always, "The same with the changes."),
        ("operations", "Operations", Object("forecast_row"), Always, "All operations together."),
        ("commands", "Commands", List("forecast_row"), Always, "By command, those with the most time first."),
        ("all_scenarios", "All scenarios", Object("forecast_row"), Nullable, "All scenarios of load runs together; null without a load run."),
        ("scenarios", "Scenarios", List("forecast_row"), Always, "Response times by scenario, from the time for which it was scheduled to its end."),
        ("assumptions", "Taken for granted", Texts, Always, "What is taken for granted, a sentence each."),
        ("notes", "Notes", Texts, Always, "What else comes of the changes, a sentence each."),
        ("warnings", "Warnings", Texts, Always, "Where the prediction leaves what was measured, a sentence each."),
    ]),
    ("forecast_change", "A change.", &[], &[
        ("change", "Change", Code, Always, "Its name, as of smbscope predict --list."),
        ("sentence", "Meaning", Text, Always, "What is changed, in words."),
    ]),
    ("forecast_row", "Means before and after the changes; errors are half of the 95 % interval that the scatter of what was recorded allows.", &[], &[
        ("name", "Name", Text, Always, "Command or scenario, or All."),
        ("count", "n", Count, Always, "How many there are, with a time of their own or not."),
        ("count_after", "n then", Count, Always, "How many there would be: other blocks are more requests, or fewer."),
        ("before_ns", "Mean", Duration, Nullable, "Mean today; null where none has a time."),
        ("before_error_ns", "±", Duration, Nullable, "Half of the 95 % interval of today's mean; null of a single one."),
        ("after_ns", "Mean", Duration, Nullable, "Mean predicted."),
        ("after_error_ns", "±", Duration, Nullable, "Half of the 95 % interval of the predicted mean."),
        ("change_percent", "of the mean", Number, Nullable, "Change of the mean, in per cent of today's."),
        ("change_error_percent", "±", Number, Nullable, "Half of the 95 % interval of that change, in per cent of today's."),
        ("parts", "Parts", List("forecast_part"), Always, "What the means are made of; they add up to them."),
    ]),
    ("forecast_part", "A part of a mean before and after the changes.", &[], &[
        ("part", "Part", Code, Always, "network (one round trip), windows (further ones of TCP, and the line's rate), server (what is in no slice), a slice, rest (the client, and sending the bytes), or of a scenario between (what lies between its operations)."),
        ("before_ns", "Today", Duration, Always, "Today."),
        ("after_ns", "Predicted", Duration, Always, "With the changes."),
    ]),
];
