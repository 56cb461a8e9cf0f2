//! Text traces of Linux: `trace` and `trace_pipe` of tracefs, `trace-cmd report`, `perf script`.
//!
//! [`line`](mod@line) reads a line, [`stack`] reads chains of calls; what the events mean is in
//! [`linux`].

mod line;
mod stack;

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use crate::event::{Coverage, Event, EventReader, Frame, Sample};
use crate::linux::action::Action;
use crate::linux::stacks::FRAMES_MAX;
use crate::linux::{self, Fields, Head, is_clock, is_sampled};

use line::Line;

/// Longer lines are damaged.
pub(crate) const LINE_BYTES_MAX: usize = 65_536;
/// Lines after an event in which the next one of its CPU is looked for.
const LINES_AHEAD: usize = 500;
/// Lines of a head that are looked at, to recognise a trace.
const LINES_LOOKED_AT: usize = 100;

/// Reads a text trace.
pub struct Text<R> {
    input: R,
    line: Vec<u8>,
    read_bytes: u64,
    state: State,
}

impl<R: BufRead> Text<R> {
    /// Reads text from anything.
    pub fn new(input: R) -> Text<R> {
        Text { input, line: Vec::new(), read_bytes: 0, state: State::default() }
    }
}

impl<R: BufRead> EventReader for Text<R> {
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool> {
        self.line.clear();
        let most = LINE_BYTES_MAX as u64;
        let mut limited = Read::by_ref(&mut self.input).take(most);
        let mut read = limited.read_until(b'\n', &mut self.line)? as u64;
        if read == 0 {
            self.state.finish(sink);
            return Ok(false);
        }
        let whole = self.line.last() == Some(&b'\n') || read < most;
        if !whole {
            read += self.input.skip_until(b'\n')? as u64;
        }
        self.read_bytes += read;
        // Looked at only where the time of the line is far from the one before.
        let ahead = match self.input.fill_buf() {
            Ok(ahead) => ahead,
            // The next reading reports it.
            Err(_) => &[],
        };
        // Names of tasks can be anything.
        let text = String::from_utf8_lossy(&self.line);
        let text = Some(&*text).filter(|text| whole && !text.contains('\0'));
        self.state.line(text.map(|text| text.trim_end_matches(['\n', '\r'])), ahead, sink);
        Ok(true)
    }

    fn coverage(&self) -> Coverage {
        Coverage { read_bytes: self.read_bytes, ..self.state.coverage() }
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}

/// What is known between two lines.
#[derive(Debug, Default)]
struct State {
    linux: linux::State,
    lines: u64,
    /// A sample whose frames follow; without the sample they are left out.
    sample: Option<(Option<Sample>, Vec<Frame>)>,
}

/// Whether this is the beginning of a text trace.
pub(crate) fn is_trace(head: &str) -> bool {
    let lines = head.lines().take(LINES_LOOKED_AT);
    let mut lines = lines.filter(|line| !line.trim().is_empty());
    lines.clone().any(|line| line.starts_with("# tracer:"))
        || lines
            .find(|line| !is_heading(line) && lost(line).is_none())
            .is_some_and(|line| Line::parse(line).is_some_and(|line| line.thread.is_some()))
}

/// Lines around the events: comments, and what `trace-cmd report` prints first.
fn is_heading(line: &str) -> bool {
    line.starts_with('#')
        || ["cpus=", "version = "].iter().any(|word| line.starts_with(word))
        || line.trim_end().ends_with(" is empty")
}

/// CPU and number of `CPU:2 [LOST 17 EVENTS]` and `CPU:2 [17 EVENTS DROPPED]`.
fn lost(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.trim().strip_prefix("CPU:")?.split_once(" [")?;
    let words = rest.strip_suffix(']')?;
    let count = match words.strip_prefix("LOST ") {
        Some(count) => count.strip_suffix(" EVENTS")?.parse().ok()?,
        // trace-cmd does not always know how many.
        None if words == "EVENTS DROPPED" => 1,
        None => words.strip_suffix(" EVENTS DROPPED")?.parse().ok()?,
    };
    Some((cpu.parse().ok()?, count))
}

impl State {
    /// Reads one line; `None` if it was longer than [`LINE_BYTES_MAX`] or not text. `ahead` are bytes after it.
    fn line(&mut self, text: Option<&str>, ahead: &[u8], sink: &mut dyn FnMut(Event)) {
        self.lines += 1;
        let Some(text) = text else { return self.damaged("") };
        let trimmed = text.trim();
        if let Some((_, frames)) = &mut self.sample {
            if let Some(frame) = stack::frame(text, &mut self.linux.names)
                && Line::parse(text).is_none()
            {
                if frames.len() < FRAMES_MAX {
                    frames.push(frame)
                } else {
                    self.linux.coverage.limited += 1
                }
                return;
            }
            self.end_sample(sink);
        }
        if trimmed.is_empty() || is_heading(text) {
            return self.heading(trimmed);
        }
        if let Some((cpu, count)) = lost(text) {
            return self.linux.lost(Some(cpu), count);
        }
        match Line::parse(text) {
            Some(line) => self.event(&line, ahead, sink),
            None => self.damaged(trimmed),
        }
    }

    /// The trace ends.
    fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        self.end_sample(sink);
        self.linux.finish();
    }

    /// What was read so far.
    fn coverage(&self) -> Coverage {
        self.linux.coverage()
    }

    fn heading(&mut self, text: &str) {
        if text.starts_with("cpus=") {
            "trace-cmd report".clone_into(&mut self.linux.coverage.format);
        }
        // # entries-in-buffer/entries-written: 2000/2150   #P:4
        let Some(counts) = text.strip_prefix("# entries-in-buffer/entries-written:") else {
            return;
        };
        let Some((kept, written)) = counts.split_whitespace().next().and_then(|counts| {
            let (kept, written) = counts.split_once('/')?;
            Some((kept.parse::<u64>().ok()?, written.parse::<u64>().ok()?))
        }) else {
            return;
        };
        let lost = &mut self.linux.coverage.events_lost;
        *lost = Some(lost.unwrap_or(0).saturating_add(written.saturating_sub(kept)));
    }

    fn damaged(&mut self, text: &str) {
        let lines = self.lines;
        self.linux.damaged(|| {
            let start: String = text.chars().take(80).filter(|c| !c.is_control()).collect();
            let what = if start.is_empty() { "too long, or not text" } else { &start };
            format!("line {lines}: {what}")
        });
    }

    fn event(&mut self, line: &Line<'_>, ahead: &[u8], sink: &mut dyn FnMut(Event)) {
        let next = || next_time(ahead, line.cpu);
        if !self.linux.count(line.cpu, line.time_ns, next, sink) {
            self.sample = line.is_perf.then(|| (None, Vec::new()));
            return;
        }
        let coverage = &mut self.linux.coverage;
        if coverage.format.is_empty() {
            let format = if line.is_perf { "perf script" } else { "ftrace" };
            format.clone_into(&mut coverage.format);
        }
        if !line.is_perf {
            // Lines between the events say which were lost; perf script prints none.
            coverage.events_lost.get_or_insert(0);
        }
        if let Some(action) = Action::from_event(line.event) {
            let head = Head { cpu: line.cpu, time_ns: line.time_ns, thread: line.thread };
            let fields = Printed { line, action };
            if self.linux.event(head, action, &fields, sink).is_err() {
                self.damaged(line.fields);
            }
        } else if line.is_perf && is_sampled(line.event) {
            self.begin_sample(line);
        } else {
            self.linux.other();
        }
    }

    fn begin_sample(&mut self, line: &Line<'_>) {
        let weight = line.period.filter(|_| is_clock(line.event));
        let sample = Sample {
            time_ns: line.time_ns,
            cpu: Some(line.cpu),
            process: line.process,
            thread: line.thread,
            task: self.linux.names.intern(line.task),
            during: self.linux.sampled(line.cpu),
            weight_ns: weight.and_then(|period| i64::try_from(period).ok()),
            ..Sample::default()
        };
        // Without call chains the frame is on the same line.
        let frames = stack::frame(line.fields, &mut self.linux.names).into_iter().collect();
        self.sample = Some((Some(sample), frames));
    }

    fn end_sample(&mut self, sink: &mut dyn FnMut(Event)) {
        if let Some((Some(sample), frames)) = self.sample.take() {
            self.linux.sample(sample, frames, sink);
        }
    }
}

/// Time of the next event of a CPU in the lines that follow, if one is near.
fn next_time(ahead: &[u8], cpu: u32) -> Option<i64> {
    // The last line may be cut.
    let whole = ahead.rsplitn(2, |&byte| byte == b'\n').nth(1)?;
    let lines = whole.split(|&byte| byte == b'\n').take(LINES_AHEAD);
    let mut texts = lines.filter_map(|line| std::str::from_utf8(line).ok());
    texts.find_map(|text| Line::parse(text).filter(|line| line.cpu == cpu)).map(|line| line.time_ns)
}

/// Fields as the kernel prints them (`print fmt` of `events/*/format`).
struct Printed<'a> {
    line: &'a Line<'a>,
    action: Action,
}

impl Printed<'_> {
    /// `napi poll on napi struct POINTER for device NAME work N budget N`
    fn after(&self, word: &str) -> Option<&str> {
        let mut words = self.line.fields.split_ascii_whitespace();
        words.find(|found| *found == word).and_then(|_| words.next())
    }

    /// `prev_comm=A prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=B next_pid=2 next_prio=120`,
    /// or of trace-cmd `A:1 [120] S ==> B:2 [120]`.
    fn of_switch(&self, name: &str) -> Option<&str> {
        if self.line.number("next_pid").is_some() {
            return match name {
                "prev_comm" => self.line.text(name, " prev_pid="),
                "next_comm" => self.line.text(name, " next_pid="),
                _ => self.line.field(name),
            };
        }
        let (old, new) = self.line.fields.split_once(" ==> ")?;
        let side = if name.starts_with("prev_") { old } else { new };
        let (task, rest) = side.rsplit_once(" [")?;
        let (comm, pid) = task.rsplit_once(':')?;
        match name {
            "prev_comm" | "next_comm" => Some(comm.trim()),
            "prev_pid" | "next_pid" => Some(pid),
            _ => Some(rest.split_once(']').map_or("", |(_, state)| state.trim())),
        }
    }
}

impl Fields for Printed<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        match self.action {
            Action::Switch => line::number(self.of_switch(name)?).map(u64::from),
            Action::Poll => self.after(name)?.parse().ok(),
            _ => self.line.number(name).map(u64::from),
        }
    }

    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let text = match (self.action, name) {
            (Action::Switch, _) => self.of_switch(name),
            (Action::Poll, "dev_name") => self.after("device"),
            (_, "action") => self.line.text(name, "]"),
            (_, "name") => self.line.text(name, "\n").map(without_frame),
            (_, "reason") => Some(self.line.fields.trim_matches(['(', ')'])),
            _ => None,
        };
        text.map(Cow::Borrowed)
    }
}

/// `perf script` can print the address, function and module of a tracepoint after its fields.
fn without_frame(text: &str) -> &str {
    let is_address = |word: &str| word.len() == 16 && u64::from_str_radix(word, 16).is_ok();
    match text.split_once(' ') {
        Some((name, rest)) if rest.split(' ').next().is_some_and(is_address) => name,
        _ => text,
    }
}

#[cfg(test)]
mod tests;
