//! Text traces of Linux: `trace` and `trace_pipe` of tracefs, `trace-cmd report`, `perf script`.
//!
//! Owns what the events mean (include/trace/events/irq.h, napi.h, sched.h, ipi.h;
//! arch/x86/include/asm/trace/irq_vectors.h). [`line`](mod@line) reads a line, [`pairing`] pairs
//! beginnings and ends, [`stack`] reads chains of calls.

mod device;
mod line;
mod pairing;
mod stack;

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use crate::event::{Coverage, Cpu, Event, EventReader, Frame, Interrupt, Kind, Sample, Switch};
use crate::names::Names;

use line::Line;
use pairing::{Begin, Pairing};
use stack::Stacks;

/// Longer lines are damaged.
pub(crate) const LINE_BYTES_MAX: usize = 65_536;
/// Most processors that are listed.
const CPUS_MAX: usize = 8192;
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
        // Names of tasks can be anything.
        let text = String::from_utf8_lossy(&self.line);
        let text = Some(&*text).filter(|text| whole && !text.contains('\0'));
        self.state.line(text.map(|text| text.trim_end_matches(['\n', '\r'])), sink);
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
    coverage: Coverage,
    lines: u64,
    names: Names,
    pairing: Pairing,
    stacks: Stacks,
    cpus: HashMap<u32, ()>,
    /// A sample whose frames follow.
    sample: Option<(Sample, Vec<Frame>)>,
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

/// Processor and number of `CPU:2 [LOST 17 EVENTS]` and `CPU:2 [17 EVENTS DROPPED]`.
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
    /// Reads one line; `None` if it was longer than [`LINE_BYTES_MAX`] or not text.
    fn line(&mut self, text: Option<&str>, sink: &mut dyn FnMut(Event)) {
        self.lines += 1;
        let Some(text) = text else { return self.damaged("") };
        let trimmed = text.trim();
        if let Some((_, frames)) = &mut self.sample {
            if let Some(frame) = stack::frame(text, &mut self.names)
                && Line::parse(text).is_none()
            {
                match frames.len() < stack::FRAMES_MAX {
                    true => frames.push(frame),
                    false => self.coverage.limited += 1,
                }
                return;
            }
            self.end_sample(sink);
        }
        if trimmed.is_empty() || is_heading(text) {
            return self.heading(trimmed);
        }
        if let Some((cpu, count)) = lost(text) {
            let lost = &mut self.coverage.events_lost;
            *lost = Some(lost.unwrap_or(0).saturating_add(count));
            return self.pairing.lost(cpu);
        }
        match Line::parse(text) {
            Some(line) => self.event(&line, sink),
            None => self.damaged(trimmed),
        }
    }

    /// The trace ends.
    fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        self.end_sample(sink);
        self.pairing.finish();
    }

    /// What was read so far.
    fn coverage(&self) -> Coverage {
        Coverage {
            starts_unmatched: self.pairing.starts_unmatched,
            ends_unmatched: self.pairing.ends_unmatched,
            stacks_discarded: self.stacks.discarded,
            names_discarded: self.names.discarded(),
            limited: self.coverage.limited + self.pairing.limited,
            ..self.coverage.clone()
        }
    }

    fn heading(&mut self, text: &str) {
        if text.starts_with("cpus=") {
            "trace-cmd report".clone_into(&mut self.coverage.format);
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
        let lost = &mut self.coverage.events_lost;
        *lost = Some(lost.unwrap_or(0).saturating_add(written.saturating_sub(kept)));
    }

    fn damaged(&mut self, text: &str) {
        self.coverage.damaged += 1;
        if self.coverage.first_damaged.is_none() {
            let start: String = text.chars().take(80).filter(|c| !c.is_control()).collect();
            let what = if start.is_empty() { "too long, or not text" } else { &start };
            self.coverage.first_damaged = Some(format!("line {}: {what}", self.lines));
        }
    }

    fn event(&mut self, line: &Line<'_>, sink: &mut dyn FnMut(Event)) {
        let coverage = &mut self.coverage;
        coverage.events += 1;
        coverage.start_ns =
            Some(coverage.start_ns.map_or(line.time_ns, |start| start.min(line.time_ns)));
        coverage.end_ns = Some(coverage.end_ns.map_or(line.time_ns, |end| end.max(line.time_ns)));
        if coverage.format.is_empty() {
            let format = if line.is_perf { "perf script" } else { "ftrace" };
            format.clone_into(&mut coverage.format);
        }
        if !line.is_perf {
            // Lines between the events say which were lost; perf script prints none.
            coverage.events_lost.get_or_insert(0);
        }
        if self.cpus.len() < CPUS_MAX && self.cpus.insert(line.cpu, ()).is_none() {
            sink(Event::Cpu(Cpu { cpu: line.cpu, ..Cpu::default() }));
        }
        if self.interrupt(line, sink) {
            return;
        }
        match line.event {
            "napi_poll" => self.poll(line, sink),
            "sched_switch" => self.switch(line, sink),
            event if line.is_perf && is_sampled(event) => self.begin_sample(line),
            _ => self.coverage.events_other += 1,
        }
    }

    /// Beginnings and ends of handlers; false for other events.
    fn interrupt(&mut self, line: &Line<'_>, sink: &mut dyn FnMut(Event)) -> bool {
        let (kind, is_begin, vector) = match line.event {
            "softirq_raise" => {
                match line.number("vec") {
                    Some(vector) => self.pairing.raise(line.cpu, vector, line.time_ns),
                    None => self.damaged(line.fields),
                }
                return true;
            }
            "softirq_entry" => (Kind::Softirq, true, line.number("vec")),
            "softirq_exit" => (Kind::Softirq, false, line.number("vec")),
            "irq_handler_entry" => (Kind::Irq, true, line.number("irq")),
            "irq_handler_exit" => (Kind::Irq, false, line.number("irq")),
            "ipi_entry" => (Kind::Ipi, true, Some(0)),
            "ipi_exit" => (Kind::Ipi, false, Some(0)),
            event => match vector_event(event) {
                Some((kind, is_begin)) => (kind, is_begin, line.number("vector")),
                None => return false,
            },
        };
        if vector.is_none() {
            self.damaged(line.fields);
            return true;
        }
        if is_begin {
            let name = match line.event {
                "softirq_entry" => line.text("action", "]"),
                "irq_handler_entry" => line.text("name", "\n").map(without_frame),
                "ipi_entry" => Some(line.fields.trim_matches(['(', ')'])),
                event => event.strip_suffix("_entry"),
            };
            let (device, queue) = match line.event {
                "irq_handler_entry" => device::of_handler(name.unwrap_or_default()),
                _ => (None, None),
            };
            let name = name.and_then(|name| self.names.intern(name));
            let device = device.and_then(|device| self.names.intern(device));
            let (thread, start_ns) = (line.thread, line.time_ns);
            self.pairing
                .begin(line.cpu, Begin { kind, vector, name, device, queue, thread, start_ns });
        } else if let Some(interrupt) = self.pairing.end(line.cpu, kind, vector, line.time_ns) {
            sink(Event::Interrupt(interrupt));
        }
        true
    }

    /// `napi poll on napi struct POINTER for device NAME work N budget N`, at the poll's end.
    fn poll(&mut self, line: &Line<'_>, sink: &mut dyn FnMut(Event)) {
        let after = |word: &str| {
            let mut words = line.fields.split_ascii_whitespace();
            words.find(|found| *found == word).and_then(|_| words.next())
        };
        let Some(device) = after("device") else { return self.damaged(line.fields) };
        let number = |word| after(word).and_then(|number| number.parse().ok());
        // The backlog of a processor has no device.
        let name = if device == "(no_device)" { "backlog" } else { device };
        let name = self.names.intern(name);
        sink(Event::Interrupt(Interrupt {
            cpu: line.cpu,
            kind: Kind::NapiPoll,
            vector: None,
            routine: None,
            device: name.clone().filter(|_| device != "(no_device)"),
            name,
            queue: None,
            thread: line.thread,
            start_ns: None,
            end_ns: line.time_ns,
            raised_ns: None,
            work: number("work"),
            budget: number("budget"),
        }));
    }

    /// `prev_comm=A prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=B next_pid=2 next_prio=120`,
    /// or of trace-cmd `A:1 [120] S ==> B:2 [120]`.
    fn switch(&mut self, line: &Line<'_>, sink: &mut dyn FnMut(Event)) {
        let fields = match line.number("next_pid") {
            Some(new) => line.number("prev_pid").map(|old| {
                let state = line.field("prev_state");
                let names =
                    [line.text("prev_comm", " prev_pid="), line.text("next_comm", " next_pid=")];
                (old, names[0], state, new, names[1])
            }),
            None => short_switch(line.fields),
        };
        let Some((old_thread, old_name, state, new_thread, new_name)) = fields else {
            return self.damaged(line.fields);
        };
        let mut intern = |name: Option<&str>| name.and_then(|name| self.names.intern(name));
        sink(Event::Switch(Switch {
            time_ns: line.time_ns,
            cpu: line.cpu,
            old_thread,
            old_name: intern(old_name),
            old_state: intern(state),
            new_thread,
            new_name: intern(new_name),
        }));
    }

    fn begin_sample(&mut self, line: &Line<'_>) {
        // The clocks count nanoseconds.
        let is_clock = line.event.starts_with("cpu-clock") || line.event.starts_with("task-clock");
        let weight = line.period.filter(|_| is_clock).and_then(|period| i64::try_from(period).ok());
        let sample = Sample {
            time_ns: line.time_ns,
            cpu: line.cpu,
            process: line.process,
            thread: line.thread,
            address: None,
            stack: None,
            during: self.pairing.sampled(line.cpu),
            weight_ns: weight,
        };
        // Without call chains the frame is on the same line.
        let frames = stack::frame(line.fields, &mut self.names).into_iter().collect();
        self.sample = Some((sample, frames));
    }

    fn end_sample(&mut self, sink: &mut dyn FnMut(Event)) {
        let Some((mut sample, frames)) = self.sample.take() else { return };
        sample.address = frames.first().map(|frame| frame.address);
        sample.during = sample.during.or_else(|| stack::during(&frames));
        if !frames.is_empty()
            && let Some((id, is_new)) = self.stacks.number(&frames)
        {
            sample.stack = Some(id);
            if is_new {
                sink(Event::Stack { id, frames });
            }
        }
        sink(Event::Sample(sample));
    }
}

/// Whether `perf` samples processors by this event: a clock, or cycles. Terms can follow
/// (`cpu-clock/freq=99/`), or it can belong to one kind of cores (`cpu_core/cycles/`).
fn is_sampled(event: &str) -> bool {
    let event =
        event.strip_prefix("cpu_core/").or(event.strip_prefix("cpu_atom/")).unwrap_or(event);
    let name = event.split('/').next().unwrap_or(event);
    matches!(name, "cpu-clock" | "task-clock" | "cycles" | "cpu-cycles")
}

/// `perf script` can print the address, function and module of a tracepoint after its fields.
fn without_frame(text: &str) -> &str {
    let is_address = |word: &str| word.len() == 16 && u64::from_str_radix(word, 16).is_ok();
    match text.split_once(' ') {
        Some((name, rest)) if rest.split(' ').next().is_some_and(is_address) => name,
        _ => text,
    }
}

/// Interrupts of the local APIC (x86): a kind, and whether it is the beginning.
fn vector_event(event: &str) -> Option<(Kind, bool)> {
    let (name, is_begin) = match event.strip_suffix("_entry") {
        Some(name) => (name, true),
        None => (event.strip_suffix("_exit")?, false),
    };
    let kind = match name {
        "reschedule" | "call_function" | "call_function_single" | "irq_work" => Kind::Ipi,
        "local_timer"
        | "spurious_apic"
        | "error_apic"
        | "x86_platform_ipi"
        | "thermal_apic"
        | "threshold_apic"
        | "deferred_error_apic" => Kind::Irq,
        _ => return None,
    };
    Some((kind, is_begin))
}

type Fields<'a> = (u32, Option<&'a str>, Option<&'a str>, u32, Option<&'a str>);

fn short_switch(fields: &str) -> Option<Fields<'_>> {
    let (old, new) = fields.split_once(" ==> ")?;
    let side = |text| -> Option<(&str, u32, &str)> {
        let (task, rest) = str::rsplit_once(text, " [")?;
        let (name, pid) = task.rsplit_once(':')?;
        let state = rest.split_once(']').map_or("", |(_, state)| state.trim());
        Some((name.trim(), pid.parse().ok()?, state))
    };
    let (old_name, old, state) = side(old)?;
    let (new_name, new, _) = side(new)?;
    Some((old, Some(old_name), Some(state), new, Some(new_name)))
}

#[cfg(test)]
mod tests;
