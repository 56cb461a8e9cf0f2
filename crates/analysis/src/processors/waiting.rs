//! Which SMB operations waited while interrupt work held CPUs.
//!
//! Operations and a trace can be put next to each other if their clocks are the same: those of Windows' traces, of
//! captures and of recordings count from 1970. An operation waited if some of its time is within a held period. How
//! much longer operations took that began then is the geometric mean over commands that occur inside and outside of held
//! periods, so that another mix of commands does not look like a slower server ([`effect`]).

mod effect;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use serde::Serialize;
use smbscope_tables::named_columns::{Flags, Numbers, Text};

use effect::ByBin;

use super::data::Report;
use super::held::HELD_SHARE;
use crate::stats::mean::Mean;

/// Columns of operations that are read.
pub const COLUMNS: [&str; 5] = ["command", "path", "request_start", "response_end", "waits"];
/// Examples that are kept.
const EXAMPLES: usize = 5;
/// Most commands.
const COMMANDS_MAX: usize = 256;

/// Operations while CPUs were held.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waiting {
    /// Time that both the trace and the operations cover, ns.
    pub common_ns: i64,
    /// Part of it in which a CPU was held, ns.
    pub held_ns: i64,
    /// Operations with a time, those that were in flight while a CPU was held, and how long within these periods.
    pub operations: u64,
    pub waited: u64,
    pub waited_ns: i64,
    /// How many times as long operations took that began while a CPU was held; null with too few to compare.
    pub times: Option<f64>,
    /// The 95 % interval of it.
    pub times_low: Option<f64>,
    pub times_high: Option<f64>,
    /// By command, most waiting first.
    pub commands: Vec<WaitingCommand>,
    /// The operations that were in flight the longest while a CPU was held.
    pub examples: Vec<WaitingExample>,
}

/// Operations of one command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WaitingCommand {
    pub command: String,
    /// Operations in flight while a CPU was held, their mean time, and how long they were in flight then.
    pub held: u64,
    pub held_mean_ns: Option<i64>,
    pub waited_ns: i64,
    /// Operations at other times within the trace, and their mean time.
    pub other: u64,
    pub other_mean_ns: Option<i64>,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitingExample {
    pub command: String,
    pub path: Option<String>,
    pub start_ns: i64,
    pub elapsed_ns: i64,
    /// How much of it a CPU was held.
    pub waited_ns: i64,
}

#[derive(Debug, Default)]
struct Command {
    held: Mean,
    other: Mean,
    waited_ns: i64,
}

/// Adds up operations next to a trace.
#[derive(Debug)]
pub struct Operations {
    /// The trace.
    extent: (i64, i64),
    /// When a CPU was held: disjoint, in order.
    held: Vec<(i64, i64)>,
    bins: Bins,
    by_bin: ByBin,
    seen: Option<(i64, i64)>,
    commands: BTreeMap<String, Command>,
    result: Waiting,
}

impl Operations {
    /// Operations next to this trace.
    pub fn new(report: &Report) -> Operations {
        let start = report.start_ns.unwrap_or(0);
        let bins = Bins::from_report(report);
        Operations {
            extent: report.extent_ns().unwrap_or((start, start.saturating_add(report.length_ns))),
            held: bins.periods(),
            bins,
            by_bin: ByBin::default(),
            seen: None,
            commands: BTreeMap::new(),
            result: Waiting::default(),
        }
    }

    /// Takes operations.
    ///
    /// # Errors
    ///
    /// Arrow's, for a column of another type.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let start = Numbers::<Int64Type>::from_batch(batch, "request_start")?;
        let end = Numbers::<Int64Type>::from_batch(batch, "response_end")?;
        let waits = Flags::from_batch(batch, "waits")?;
        let (command, path) =
            (Text::from_batch(batch, "command")?, Text::from_batch(batch, "path")?);
        for row in 0..batch.num_rows() {
            let (Some(from), Some(to)) = (start.get(row), end.get(row)) else { continue };
            if waits.get(row) || to < from {
                continue;
            }
            let (first, last) = self.seen.unwrap_or((from, to));
            self.seen = Some((first.min(from), last.max(to)));
            self.result.operations += 1;
            if to < self.extent.0 || from > self.extent.1 {
                continue;
            }
            self.add(command.get(row).unwrap_or("encrypted"), path.get(row), (from, to));
        }
        Ok(())
    }

    fn add(&mut self, name: &str, path: Option<&str>, (from, to): (i64, i64)) {
        if self.commands.len() >= COMMANDS_MAX && !self.commands.contains_key(name) {
            return;
        }
        let elapsed = to - from;
        let waited = within(&self.held, from, to);
        let command = match self.commands.get_mut(name) {
            Some(command) => command,
            None => self.commands.entry(name.to_owned()).or_default(),
        };
        if let Some(bin) = self.bins.of_time(from) {
            self.by_bin.add(name, bin, self.bins.held.len(), elapsed);
        }
        if waited == 0 && !(elapsed == 0 && is_within(&self.held, from)) {
            command.other.add(elapsed as f64);
            return;
        }
        command.held.add(elapsed as f64);
        command.waited_ns = command.waited_ns.saturating_add(waited);
        self.result.waited += 1;
        self.result.waited_ns = self.result.waited_ns.saturating_add(waited);
        let examples = &mut self.result.examples;
        let place = examples.partition_point(|one| one.waited_ns >= waited);
        if place < EXAMPLES {
            examples.insert(
                place,
                WaitingExample {
                    command: name.to_owned(),
                    path: path.map(str::to_owned),
                    start_ns: from,
                    elapsed_ns: elapsed,
                    waited_ns: waited,
                },
            );
            examples.truncate(EXAMPLES);
        }
    }

    /// The result; `None` if the trace and the operations have no time in common.
    pub fn finish(mut self) -> Option<Waiting> {
        let (first, last) = self.seen?;
        let (from, to) = (first.max(self.extent.0), last.min(self.extent.1));
        if from >= to {
            return None;
        }
        self.result.common_ns = to - from;
        self.result.held_ns = within(&self.held, from, to);
        if let Some(found) = self.by_bin.times(&self.bins.held) {
            self.result.times = Some(found.times);
            self.result.times_low = Some(found.low);
            self.result.times_high = Some(found.high);
        }
        let mean = |mean: &Mean| (mean.n > 0).then(|| mean.mean() as i64);
        let commands = self.commands.into_iter().map(|(name, command)| WaitingCommand {
            command: name,
            held: command.held.n,
            held_mean_ns: mean(&command.held),
            waited_ns: command.waited_ns,
            other: command.other.n,
            other_mean_ns: mean(&command.other),
        });
        self.result.commands = commands.collect();
        self.result.commands.sort_by_key(|one| std::cmp::Reverse(one.waited_ns));
        Some(self.result)
    }
}

/// In which bins of the timeline a CPU was held: more than half of a CPU's time.
#[derive(Debug, Default)]
struct Bins {
    start_ns: i64,
    bin_ns: i64,
    held: Vec<bool>,
}

impl Bins {
    fn from_report(report: &Report) -> Bins {
        let Some(timeline) = &report.timeline else { return Bins::default() };
        let is_held = |bin: usize| {
            timeline.cpus.iter().any(|cpu| {
                let at = |bins: &[i64]| bins.get(bin).copied().unwrap_or(0);
                let busy = at(&cpu.deferred_ns).saturating_add(at(&cpu.interrupt_ns));
                busy as f64 >= HELD_SHARE * timeline.bin_ns as f64
            })
        };
        let held = (0..timeline.bins as usize).map(is_held).collect();
        Bins { start_ns: timeline.start_ns, bin_ns: timeline.bin_ns, held }
    }

    fn of_time(&self, time: i64) -> Option<usize> {
        let bin = time.checked_sub(self.start_ns)?.checked_div_euclid(self.bin_ns)?;
        usize::try_from(bin).ok().filter(|bin| *bin < self.held.len())
    }

    /// Held periods: disjoint, in order.
    fn periods(&self) -> Vec<(i64, i64)> {
        let mut held: Vec<(i64, i64)> = Vec::new();
        for (bin, _) in self.held.iter().enumerate().filter(|(_, is_held)| **is_held) {
            let from = self.start_ns.saturating_add(self.bin_ns.saturating_mul(bin as i64));
            let to = from.saturating_add(self.bin_ns);
            match held.last_mut() {
                Some((_, end)) if *end == from => *end = to,
                _ => held.push((from, to)),
            }
        }
        held
    }
}

/// How much of a time is in held periods.
fn within(held: &[(i64, i64)], from: i64, to: i64) -> i64 {
    let first = held.partition_point(|(_, end)| *end <= from);
    let periods = held.iter().skip(first).take_while(|(start, _)| *start < to);
    periods.map(|(start, end)| (*end).min(to) - (*start).max(from)).sum()
}

fn is_within(held: &[(i64, i64)], time: i64) -> bool {
    let first = held.partition_point(|(_, end)| *end <= time);
    held.get(first).is_some_and(|(start, _)| *start <= time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processors::{Timeline, TimelineCpu};
    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::code;
    use smbscope_tables::operation::Operation;

    const SECOND: i64 = 1_000_000_000;

    /// Ten seconds, of which the third and the fourth are held.
    fn report() -> Report {
        let busy = [0, 0, 9, 9, 0, 0, 0, 0, 0, 1].map(|tenths| tenths * SECOND / 10);
        let cpus = vec![TimelineCpu {
            cpu: 3,
            deferred_ns: busy.to_vec(),
            interrupt_ns: vec![0; busy.len()],
        }];
        Report {
            start_ns: Some(100 * SECOND),
            length_ns: 10 * SECOND,
            timeline: Some(Timeline { start_ns: 100 * SECOND, bin_ns: SECOND, bins: 10, cpus }),
            ..Report::default()
        }
    }

    fn operations(all: &[(i64, i64)]) -> RecordBatch {
        let mut builder = OperationBuilder::new(None).unwrap();
        for (number, (start, elapsed)) in all.iter().enumerate() {
            let mut row = Operation::default();
            row.set_operation(number as u64);
            row.set_protocol(2);
            row.set_command(code::command(2, 8));
            row.set_request_start(*start);
            row.set_response_end(start + elapsed);
            row.derive_durations();
            builder.append(&[row]);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn operations_in_held_periods_are_compared_with_others() {
        // One each 50 ms: 1 ms, and 10 ms while the CPU is held; some scatter.
        let rows: Vec<_> = (0..200)
            .map(|n| {
                let start = 100 * SECOND + n * SECOND / 20;
                let is_held = (102 * SECOND..104 * SECOND).contains(&start);
                (start, if is_held { 10_000_000 } else { 1_000_000 } + n % 7 * 10_000)
            })
            .collect();
        let mut waiting = Operations::new(&report());
        waiting.operations(&operations(&rows)).unwrap();
        let found = waiting.finish().unwrap();
        assert_eq!((found.operations, found.waited), (200, 40));
        assert_eq!(found.held_ns, 2 * SECOND);
        let times = found.times.unwrap();
        assert!((9.5..10.1).contains(&times), "{times}");
        assert!(found.times_low.unwrap() < times && times < found.times_high.unwrap());
        assert_eq!((found.commands[0].command.as_str(), found.commands[0].other), ("Read", 160));
        assert_eq!(found.examples.len(), EXAMPLES);
        assert!(found.examples[0].waited_ns >= 10_000_000);
    }

    #[test]
    fn without_common_time_there_is_nothing_to_say() {
        let mut waiting = Operations::new(&report());
        waiting.operations(&operations(&[(5, 10), (20, 10)])).unwrap();
        assert_eq!(waiting.finish(), None);
        assert_eq!(Operations::new(&Report::default()).finish(), None);
    }
}
