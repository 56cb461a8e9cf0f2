//! Table `traces`: what CPU traces contain, lost and do not show, one row per trace.

use crate::row::table;

table! {
    /// What was seen, lost and not understood in one trace. Every report shows it.
    Trace, "traces" {
        recording: String, None, Machine, "The recording that the trace belongs to.";
        format: String, None, Public, "Format of the file.";
        clock: Option<String>, None, Public, "Clock of the time stamps, as the trace names it.";
        started_at: Option<i64>, Time, Public, "First event, on the clock of the trace.";
        ended_at: Option<i64>, Time, Public, "Last event.";
        file_bytes: u64, Bytes, Public, "Bytes read from the file.";
        cpus: u64, Count, Public, "Processors with events.";
        events: u64, Count, Public, "Events read.";
        events_other: u64, Count, Public, "Events of kinds that no table has.";
        events_lost: Option<u64>, Count, Public, "Events that the recorder lost; null if the format does not say.";
        buffers_lost: Option<u64>, Count, Public, "Buffers that the recorder lost; null if the format does not say.";
        damaged: u64, Count, Public, "Lines or records that could not be read.";
        first_damaged: Option<String>, None, Path, "The first of them.";
        interrupts: u64, Count, Public, "Rows of the table interrupts.";
        starts_unmatched: u64, Count, Public, "Interrupts whose end is not in the trace; they have no row.";
        ends_unmatched: u64, Count, Public, "Interrupts whose beginning is not in the trace; they have no row.";
        samples: u64, Count, Public, "Rows of the table samples.";
        switches: u64, Count, Public, "Rows of the table switches.";
        stacks_discarded: u64, Count, Public, "Stacks left out because their number or depth reached the limit.";
        names_discarded: u64, Count, Public, "Names left out because their number reached the limit.";
        limited: u64, Count, Public, "Other events left out because a limit was reached.";
        symbol_files: u64, Count, Public, "Files with symbols that were used (--symbols).";
        symbol_files_damaged: u64, Count, Public, "Files with symbols that could not be read.";
        first_symbol_file_damaged: Option<String>, None, Path, "The first of them.";
        notes: Option<String>, None, Public, "What the recorder says about itself: its cost, what it left out.";
    }
}
