//! Text that `xperf -a dpcisr` prints: sums of DPCs and ISRs, no single ones ("dpcisr action",
//! learn.microsoft.com/windows-hardware/test/wpt/dpcisr).
//!
//! For DPCs and then for ISRs it has the usage by module on each CPU, a histogram of durations
//! for all modules and for each, and the usage of each CPU in intervals. The last part of the
//! text, a distribution of intervals, repeats these.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use crate::event::{Coverage, Cpu, Event, EventReader, Kind, Total};
use crate::names::Names;

/// Longer lines are damaged; 2,048 CPUs need 40 kB.
const LINE_BYTES_MAX: usize = 1 << 17;
/// Most CPUs; Windows has at most 2048.
const CPUS_MAX: usize = 2_048;
/// Title of the first part of the text.
const TITLE: &str = "CPU Usage Summing By Module For the Whole Trace";
const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// Whether this is the beginning of such a text.
pub(crate) fn is_text(head: &str) -> bool {
    head.lines().any(|line| line.trim() == TITLE)
}

/// Reads such a text.
#[derive(Debug)]
pub struct Text<R> {
    source: R,
    line: Vec<u8>,
    read_bytes: u64,
    state: State,
}

impl<R: BufRead> Text<R> {
    /// A reader of a text.
    pub fn new(source: R) -> Text<R> {
        Text { source, line: Vec::new(), read_bytes: 0, state: State::default() }
    }
}

impl<R: BufRead> EventReader for Text<R> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        self.line.clear();
        let mut limited = self.source.by_ref().take(LINE_BYTES_MAX as u64);
        let read = limited.read_until(b'\n', &mut self.line)?;
        self.read_bytes += read as u64;
        if read == 0 {
            self.state.end_histogram();
            return Ok(false);
        }
        self.state.lines += 1;
        let line = String::from_utf8_lossy(&self.line);
        if self.state.line(line.trim(), sink).is_none() {
            self.state.damaged(&line);
        }
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        Coverage {
            read_bytes: self.read_bytes,
            names_discarded: self.state.names.discarded(),
            ..self.state.coverage.clone()
        }
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}

#[derive(Debug, Default)]
struct State {
    coverage: Coverage,
    names: Names,
    lines: u64,
    kind: Option<Kind>,
    part: Part,
    /// CPUs in the order of the columns.
    cpus: Vec<u32>,
    /// The trace, in nanoseconds since its start.
    whole: (i64, i64),
}

/// What the next lines are.
#[derive(Debug, Default)]
enum Part {
    #[default]
    Other,
    /// Rows of modules.
    Modules,
    /// Durations of a module; `None` for all together.
    Histogram {
        name: Option<Arc<str>>,
        /// Number of runs by its first line, and by the lines so far.
        count: u64,
        sum: u64,
    },
    Intervals,
}

impl State {
    /// Reads one line; `None` if it does not fit.
    fn line(&mut self, line: &str, sink: &mut dyn FnMut(Event)) -> Option<()> {
        match line {
            "" => return Some(()),
            "DPC Info" => self.kind = Some(Kind::Dpc),
            "Interrupt Info" => self.kind = Some(Kind::Isr),
            TITLE => {}
            _ if line.starts_with("----") || line.starts_with("All Module =") => {
                self.end_histogram();
                self.part = Part::Other;
            }
            _ if line.starts_with("CPU Usage from ") => {
                let mut numbers = line.split_ascii_whitespace().filter_map(|it| it.parse().ok());
                let (from, to): (i64, i64) = (numbers.next()?, numbers.next()?);
                self.whole = (from.checked_mul(US)?, to.checked_mul(US)?);
                self.coverage.start_ns = Some(self.whole.0);
                self.coverage.end_ns = Some(self.whole.1);
            }
            _ if line.starts_with("CPU ") && line.contains(" Usage") => {
                self.processors(line, sink)?;
            }
            _ if line.starts_with("usec ") && line.ends_with("Module") => {
                self.part = Part::Modules;
            }
            _ if line.starts_with("Total = ") => self.begin_histogram(line)?,
            _ if line.starts_with("Total") => {}
            _ if line.starts_with("Elapsed Time,") => self.bucket(line, sink)?,
            _ if line.starts_with("Usage From ") => self.part = Part::Intervals,
            _ => match self.part {
                Part::Modules => self.module(line, sink)?,
                Part::Intervals => self.interval(line, sink)?,
                Part::Histogram { .. } | Part::Other => {}
            },
        }
        Some(())
    }

    /// `CPU 0 Usage, CPU 1 Usage, ...`, also with a comma first.
    fn processors(&mut self, line: &str, sink: &mut dyn FnMut(Event)) -> Option<()> {
        let titles = line.split(',').map(str::trim).filter(|title| !title.is_empty());
        let numbers = titles.map(|title| {
            title.strip_prefix("CPU ")?.strip_suffix(" Usage")?.trim().parse::<u32>().ok()
        });
        let cpus: Vec<u32> = numbers.take(CPUS_MAX).collect::<Option<_>>()?;
        for &cpu in cpus.iter().filter(|cpu| !self.cpus.contains(cpu)) {
            sink(Event::Cpu(Cpu { cpu, ..Cpu::default() }));
        }
        self.cpus = cpus;
        Some(())
    }

    /// Time of a module on each CPU: `usec % , usec % , module`.
    fn module(&mut self, line: &str, sink: &mut dyn FnMut(Event)) -> Option<()> {
        let mut columns = line.splitn(self.cpus.len() + 1, ',');
        let times = columns.by_ref().take(self.cpus.len()).map(time_us);
        let times: Vec<i64> = times.collect::<Option<_>>()?;
        let name = self.name(columns.next()?);
        let kind = self.kind?;
        for (time, place) in times.into_iter().zip(0..).filter(|(time, _)| *time > 0) {
            let cpu = self.cpus.get::<usize>(place).copied();
            self.total(sink, Total { kind, cpu, name: name.clone(), ..self.all(time) });
        }
        Some(())
    }

    /// `Total = 3261`, or `Total = 3000 for module ndis.sys`.
    fn begin_histogram(&mut self, line: &str) -> Option<()> {
        self.end_histogram();
        let rest = line.strip_prefix("Total = ")?;
        let (count, name) = match rest.split_once(" for module ") {
            Some((count, name)) => (count, self.name(name)),
            None => (rest, None),
        };
        self.part = Part::Histogram { name, count: count.trim().parse().ok()?, sum: 0 };
        Some(())
    }

    /// The numbers of a histogram add up to the one before them, or lines are missing.
    fn end_histogram(&mut self) {
        if let Part::Histogram { name, count, sum } = &self.part
            && count != sum
        {
            let name = name.as_deref().unwrap_or("all modules");
            let what = format!("durations of {name}: {sum} instead of {count}");
            self.damaged(&what);
        }
        self.part = Part::Other;
    }

    /// `Elapsed Time, > 4 usecs AND <= 8 usecs, 238, or 7.30%`; the last one has no second bound.
    fn bucket(&mut self, line: &str, sink: &mut dyn FnMut(Event)) -> Option<()> {
        let mut columns = line.split(',').skip(1);
        let bounds = columns.next()?;
        let found: u64 = columns.next()?.trim().parse().ok()?;
        let bound = |sign: &str| {
            let rest = bounds.split_once(sign)?.1.trim_start();
            rest.split_once(' ')?.0.parse::<i64>().ok()?.checked_mul(US)
        };
        let (above, up_to) = (bound("> "), bound("<= "));
        above?;
        let Part::Histogram { name, sum, .. } = &mut self.part else { return None };
        *sum = sum.saturating_add(found);
        let name = name.clone();
        let total = Total {
            kind: self.kind?,
            name,
            above_ns: above,
            up_to_ns: up_to,
            count: Some(found),
            duration_ns: None,
            ..self.all(0)
        };
        self.total(sink, total);
        Some(())
    }

    /// Time of each CPU in an interval: `0-1000 :, usec %, usec %`.
    fn interval(&mut self, line: &str, sink: &mut dyn FnMut(Event)) -> Option<()> {
        if line.starts_with("Start (ms)") || line.starts_with(',') {
            // The titles; those of the CPUs are the ones that are known.
            return Some(());
        }
        let (interval, rest) = line.split_once(':')?;
        let (start, end) = interval.trim().split_once('-')?;
        let start_ns = start.trim().parse::<i64>().ok()?.checked_mul(MS)?;
        let end_ns = end.trim().parse::<i64>().ok()?.checked_mul(MS)?;
        let kind = self.kind?;
        let columns = rest.trim_start().strip_prefix(',')?.split(',');
        let times: Vec<i64> = columns.map(time_us).collect::<Option<_>>()?;
        for (cpu, time) in self.cpus.clone().into_iter().zip(times).filter(|(_, time)| *time > 0) {
            let total = Total { kind, cpu: Some(cpu), start_ns, end_ns, ..self.all(time) };
            self.total(sink, total);
        }
        Some(())
    }

    fn name(&mut self, text: &str) -> Option<Arc<str>> {
        self.names.intern(text.trim().trim_matches('"'))
    }

    /// A sum over the whole trace.
    fn all(&self, time_us: i64) -> Total {
        Total {
            kind: Kind::Dpc,
            name: None,
            cpu: None,
            start_ns: self.whole.0,
            end_ns: self.whole.1,
            above_ns: None,
            up_to_ns: None,
            count: None,
            duration_ns: Some(time_us.saturating_mul(US)),
        }
    }

    fn total(&mut self, sink: &mut dyn FnMut(Event), total: Total) {
        self.coverage.events += 1;
        "xperf -a dpcisr".clone_into(&mut self.coverage.format);
        sink(Event::Total(total));
    }

    fn damaged(&mut self, text: &str) {
        self.coverage.damaged += 1;
        if self.coverage.first_damaged.is_none() {
            let start: String = text.trim().chars().take(80).filter(|c| !c.is_control()).collect();
            self.coverage.first_damaged = Some(format!("line {}: {start}", self.lines));
        }
    }
}

/// Microseconds of `usec %`.
fn time_us(column: &str) -> Option<i64> {
    let mut words = column.split_ascii_whitespace();
    let time = words.next()?.parse::<i64>().ok().filter(|time| *time >= 0)?;
    words.next()?.parse::<f64>().ok()?;
    words.next().is_none().then_some(time)
}

#[cfg(test)]
mod tests;
