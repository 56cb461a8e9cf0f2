//! The fields of the plan of a second server. It is data.

use crate::document::by_field;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all};

/// The objects of the plan of a second server.
pub static FIELDS: Fields = Fields::new("replication", objects, closed);

by_field! { column fact field }

fn objects() -> Vec<Object> {
    all(OBJECTS)
}

/// Fields whose values are a closed list.
fn closed() -> Vec<Closed> {
    Vec::new()
}

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("replication", "What a second server that holds the same data would cost and need.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope that made the plan."),
        ("inputs", "Inputs", Texts, Always, "The files or folders that were read."),
        ("start_ns", "Start", Time, Nullable, "Begin of the first second with a write; null without one."),
        ("lasted_ns", "Lasted", Duration, Always, "From the first to the last second with a write."),
        ("writes", "Writes", Count, Always, "Acknowledged writes."),
        ("written_bytes", "Written", Bytes, Always, "Bytes of these."),
        ("stable_operations", "Stable operations", Count, Always, "Flushes and write-through writes: what waits for a synchronous second server."),
        ("left_out", "Left out", Count, Always, "Writes that were not counted because they are too far away from the others in time."),
        ("busiest", "Busiest seconds", List("busy_second"), Always, "The seconds with the most bytes."),
        ("series_bin_ns", "Width of the bins", Duration, Always, "Width of the bins over time."),
        ("series_bytes", "Written in a second", Counts, Always, "Bytes of the busiest second in each bin."),
        ("hold", "The log", Object("log_hold"), Nullable, "How long the log of --log-size holds while the link is down."),
        ("lines", "Links", List("line"), Always, "Each link with what follows from it."),
        ("goals", "Goal", List("goal"), Always, "Which round trip the goal allows, for each rate of the links; empty without a goal, or without a write."),
        ("checks", "Checks", List("line_checks"), Always, "Checks of each link."),
        ("test_command", "Command", Code, Always, "The command that makes the checks which cannot be made from a recording."),
        ("test_report", "Report of Test-SRTopology", Object("html_tables"), Nullable, "Tables and texts of the given report; what it measured and decided is in the checks."),
    ]),
    ("busy_second", "A second with its writes.", &[], &[
        ("at_ns", "At", Time, Always, "Its begin."),
        ("written_bytes", "Written", Bytes, Always, "Bytes written in it."),
    ]),
    ("log_hold", "A log while the link is down.", &[], &[
        ("log_bytes", "Log", Bytes, Always, "Its size."),
        ("worst_ns", "Holds at least", Duration, Always, "How long it takes all writes from the worst moment on: a lower bound, to 1 ms for recordings of up to 17 minutes, to 128 ms for a day."),
        ("p50_ns", "Holds for half of all moments", Duration, Always, "How long it takes all writes from half of all moments on."),
        ("is_repeated", "Repeated", Flag, Always, "Whether the recording is shorter, and was taken to repeat."),
    ]),
    ("percentiles", "Percentiles of a duration (nearest rank).", &[], &[
        ("n", "n", Count, Always, "Number of values."),
        ("p50_ns", "p50", Duration, Nullable, "Half took at most this long."),
        ("p95_ns", "p95", Duration, Nullable, "95 of 100 took at most this long."),
        ("p99_ns", "p99", Duration, Nullable, "99 of 100 took at most this long."),
        ("max_ns", "max", Duration, Nullable, "The longest."),
    ]),
    ("wait", "Writes and Flushes of one command, share or application, or executions of a scenario.", &[], &[
        ("name", "Name", Text, Always, "Command, share, application or scenario."),
        ("waiting", "Waiting", Count, Nullable, "How many of them wait for the second server; null for scenarios."),
        ("added", "Added", Object("percentiles"), Nullable, "How long they wait for it, those that do not wait included; null for scenarios."),
        ("before", "Today", Object("percentiles"), Always, "Their time today."),
        ("after", "Predicted", Object("percentiles"), Always, "Their time with the second server."),
    ]),
    ("waits", "What waits for the second server.", &[], &[
        ("commands", "Commands", List("wait"), Always, "By command, the longest sum first."),
        ("shares", "Shares", List("wait"), Always, "By share."),
        ("applications", "Applications", List("wait"), Always, "By kind of application."),
        ("scenarios", "Scenarios", List("wait"), Always, "Response times of a load run."),
    ]),
    ("at_risk", "Data that an asynchronous second server lacks, over the time from the first write to the last arrival.", &[], &[
        ("mean_bytes", "Mean", Bytes, Always, "On average."),
        ("p50_bytes", "p50", Bytes, Always, "During half of the time at most."),
        ("p99_bytes", "p99", Bytes, Always, "During 99 % of the time at most."),
        ("max_bytes", "Worst", Bytes, Always, "At the worst moment."),
        ("p50_ns", "Recovery point p50", Duration, Always, "How old the oldest missing data is during half of the time at most."),
        ("p99_ns", "Recovery point p99", Duration, Always, "At most this during 99 % of the time."),
        ("max_ns", "Recovery point, worst", Duration, Always, "The same at the worst moment."),
    ]),
    ("link_load", "The writes against a link, second by second.", &[], &[
        ("mean_bits", "Mean", Number, Always, "Mean rate of writes, bit/s."),
        ("p50_bits", "p50", Number, Always, "Rate that is not exceeded in half of the seconds, bit/s."),
        ("p95_bits", "p95", Number, Always, "The same for 95 of 100 seconds."),
        ("p99_bits", "p99", Number, Always, "The same for 99 of 100 seconds."),
        ("max_bits", "Busiest second", Number, Always, "Rate of the busiest second, bit/s."),
        ("minute_bits", "Busiest minute", Number, Nullable, "Rate of the busiest minute, bit/s; null for a shorter recording."),
        ("saturated_share", "Seconds with too much", Share, Nullable, "Share of seconds with more data than the link carries; null without a limit."),
        ("queue_s", "Longest wait, s", Number, Nullable, "Longest time that data waits for the link, s; null without a limit."),
        ("queue_bytes", "Most waiting", Bytes, Nullable, "Most data that waits for the link; null without a limit."),
        ("times_mean", "Times the mean", Number, Nullable, "How many times the mean load the link carries; null without a limit."),
        ("times_busiest", "Times the busiest", Number, Nullable, "How many times the load of the busiest minute (or second) it carries; null without a limit."),
    ]),
    ("outage", "The link is down for a while.", &[], &[
        ("outage_ns", "Outage", Duration, Always, "How long."),
        ("log_bytes", "Log", Bytes, Always, "Log that it needs if it begins at the worst moment: what waits for the link then, and what is written meanwhile."),
        ("worst_at_ns", "Worst moment", Time, Always, "The worst moment."),
        ("log_bytes_p50", "Log, half of all moments", Bytes, Always, "Log for half of all moments."),
        ("catch_up_ns", "Catches up in", Duration, Nullable, "How long the second server then needs to catch up, with the load continuing; null if it never does, or without a limit on the rate."),
        ("is_repeated", "Repeated", Flag, Always, "Whether the recording is shorter than the outage, and was taken to repeat."),
    ]),
    ("initial_copy", "All data is copied for the first time.", &[], &[
        ("data_bytes", "Data", Bytes, Always, "How much."),
        ("idle_ns", "On an idle link", Duration, Always, "Time on an idle link."),
        ("loaded_ns", "With the load", Duration, Nullable, "Time with the recorded load, which goes first; null if it leaves no room."),
    ]),
    ("snapshots", "A file system that sends a snapshot at each interval.", &[], &[
        ("interval_ns", "Interval", Duration, Always, "The interval."),
        ("snapshot_bytes", "Largest snapshot", Bytes, Always, "Most data of one snapshot."),
        ("recovery_ns", "Recovery point, worst", Duration, Nullable, "How old the last complete copy is at most; null if a snapshot takes longer than the interval."),
        ("at_risk_bytes", "At risk, worst", Bytes, Always, "Most data at risk."),
    ]),
    ("line", "A link with all that follows from it.", &[], &[
        ("rtt_ns", "Round trip", Duration, Always, "Round trip between the servers."),
        ("bandwidth_bits", "Rate", Number, Nullable, "Rate of the link, bit/s; null without a limit."),
        ("sync", "Synchronous", Object("waits"), Always, "A reply waits until both logs have the data (Storage Replica synchronous, DRBD protocol C)."),
        ("received", "On receipt", Object("waits"), Always, "A reply waits until the second server has received the data (DRBD protocol B)."),
        ("at_risk", "Asynchronous", Object("at_risk"), Nullable, "No reply waits (Storage Replica asynchronous, DRBD protocol A); null without a write."),
        ("load", "Load", Object("link_load"), Always, "The writes against the link."),
        ("outage", "Outage", Object("outage"), Nullable, "The link is down for --outage."),
        ("initial_copy", "Initial copy", Object("initial_copy"), Nullable, "The first copy of --data-size; null without a rate."),
        ("snapshots", "Snapshots", Object("snapshots"), Nullable, "Snapshots at each --interval."),
    ]),
    ("goal", "Which round trip a goal allows, with synchronous copies.", &[], &[
        ("goal", "Goal", Text, Always, "The goal."),
        ("bandwidth_bits", "Rate", Number, Nullable, "Rate of the link that it holds for, bit/s; null without a limit."),
        ("today_ns", "Today", Duration, Always, "The time that it is about, today."),
        ("limit_ns", "Limit", Duration, Always, "The longest time allowed."),
        ("rtt_ns", "Round trip", Duration, Nullable, "Longest round trip that keeps it; null if none does, or each that was tried (is_always)."),
        ("is_always", "Any", Flag, Always, "Whether no round trip that was tried misses it."),
        ("distance_km", "Distance, km", Number, Nullable, "Fibre of this round trip if only light took time; null where rtt_ns is."),
        ("tried", "Tried", List("goal_point"), Always, "Round trips that were replayed."),
    ]),
    ("goal_point", "A replay with a round trip.", &[], &[
        ("rtt_ns", "Round trip", Duration, Always, "Round trip."),
        ("time_ns", "Time", Duration, Always, "The time that the goal is about."),
    ]),
    ("line_checks", "Checks of one link.", &[], &[
        ("rtt_ns", "Round trip", Duration, Always, "Its round trip."),
        ("bandwidth_bits", "Rate", Number, Nullable, "Its rate, bit/s."),
        ("checks", "Checks", List("check"), Always, "The checks."),
    ]),
    ("check", "One check.", &[], &[
        ("trouble", "Kind", Code, Always, "What is checked, from a fixed list."),
        ("what", "Check", Text, Always, "What is required."),
        ("outcome", "Outcome", Code, Always, "passed, failed, or to-be-made where it cannot be made from here."),
        ("because", "Found", Text, Always, "What was found, or how to find out."),
        ("first_ns", "First", Number, Nullable, "Always null: a check has no time."),
        ("last_ns", "Last", Number, Nullable, "Always null: a check has no time."),
        ("remedies", "Remedies", List("check_remedy"), Always, "What to do."),
    ]),
    ("check_remedy", "What to do, and where.", &[], &[
        ("at", "Where", Text, Always, "Where to do it."),
        ("action", "Action", Text, Always, "What to do."),
    ]),
    ("html_tables", "The tables and texts of an HTML page.", &[], &[
        ("tables", "Tables", List("html_table"), Always, "The tables."),
        ("texts", "Texts", List("html_text"), Always, "Texts outside the tables."),
        ("is_cut", "Cut", Flag, Always, "Whether rows were left out because there are too many."),
        ("is_incomplete", "Incomplete", Flag, Always, "Whether the page ends in the middle, so that rows may be missing."),
    ]),
    ("html_text", "A paragraph of an HTML page.", &[], &[
        ("heading", "Heading", Text, Always, "The heading above it."),
        ("text", "Text", Text, Always, "The text."),
    ]),
    ("html_table", "A table of an HTML page.", &[], &[
        ("heading", "Heading", Text, Always, "The heading above it."),
        ("rows", "Rows", List("html_row"), Always, "Its rows."),
    ]),
    ("html_row", "A row of such a table.", &[], &[
        ("cells", "Cells", Texts, Always, "Texts of its cells."),
    ]),
];
