//! Table `interrupt_totals`: sums of interrupts and deferred work, from inputs that have no single ones.

use crate::row::table;

table! {
    /// One sum: of a module on a CPU, of its durations between two bounds, or of a CPU in an interval.
    InterruptTotal, "interrupt_totals" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        kind: String, None, Public, "What it was, a kind of the table interrupts: dpc, with timer and threaded DPCs; isr, with message-signalled ones.";
        name: Option<String>, None, Public, "The module; null for all together.";
        cpu: Option<u64>, None, Public, "Number of the CPU; null for all together.";
        start: i64, Time, Public, "When the time begins that the row is about, counted from the start of the trace.";
        end: i64, Time, Public, "When it ends.";
        above_ns: Option<i64>, Nanoseconds, Public, "Runs that took longer than this; null if the row is about all runs.";
        up_to_ns: Option<i64>, Nanoseconds, Public, "Runs that took at most this; null if there is no bound.";
        count: Option<u64>, Count, Public, "Number of runs.";
        duration_ns: Option<i64>, Nanoseconds, Public, "Their time.";
    }
}
