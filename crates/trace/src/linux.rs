//! What the events of Linux mean, whatever the format of the trace.
//!
//! A format gives each event as a [`Head`] and its [`Fields`]. [`action`] knows the events by their
//! names, [`pairing`] pairs beginnings and ends, [`power`] does so for idle states, [`stacks`] numbers
//! stacks. Events of one CPU
//! have to come in the order of their times.

pub mod action;
pub mod device;
pub mod format;
mod pairing;
mod power;
pub mod stacks;
pub mod tracing;

use std::borrow::Cow;
use std::collections::hash_map::Entry;

use foldhash::HashMap;

use crate::event::{
    Coverage, Cpu, Event, Frame, Interrupt, Kind, Power, PowerKind, Sample, Switch,
};
use crate::names::Names;
use crate::order::Order;
use action::{Action, Handler};
use pairing::{Begin, Pairing};
use power::Idle;
use stacks::Stacks;

/// Most CPUs that are listed.
const CPUS_MAX: usize = 8192;
/// After that time without an event of a CPU its next one is compared with the one after it.
const FAR_NS: i64 = 1_000_000_000;

/// Names of softirqs by their vectors (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// What every event has.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub cpu: u32,
    pub time_ns: i64,
    /// The thread that runs, or is interrupted.
    pub thread: Option<u32>,
}

/// Fields of an event, by the names that `events/*/format` gives them.
pub trait Fields {
    /// The value of a field that is a number.
    fn number(&self, name: &str) -> Option<u64>;

    /// The text of a field that is text, or a symbol.
    fn text(&self, name: &str) -> Option<Cow<'_, str>>;
}

/// A field is missing, or has an impossible value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFields;

/// What is known between two events.
#[derive(Debug, Default)]
pub struct State {
    /// What the format counts by itself.
    pub coverage: Coverage,
    pub names: Names,
    pairing: Pairing,
    idle: Idle,
    stacks: Stacks,
    /// The order of the events of each CPU.
    cpus: HashMap<u32, Order>,
}

impl State {
    /// What was read so far.
    pub fn coverage(&self) -> Coverage {
        Coverage {
            starts_unmatched: self.pairing.starts_unmatched,
            ends_unmatched: self.pairing.ends_unmatched,
            stacks_discarded: self.stacks.discarded,
            names_discarded: self.names.discarded(),
            limited: self.coverage.limited + self.pairing.limited,
            ..self.coverage.clone()
        }
    }

    /// Counts something that could not be read. `place` is kept for the first one only.
    pub fn damaged(&mut self, place: impl FnOnce() -> String) {
        self.coverage.damaged += 1;
        self.coverage.first_damaged.get_or_insert_with(place);
    }

    /// Events were lost: what is open on that CPU has no known end. Without a CPU that
    /// is true for all of them.
    pub fn lost(&mut self, cpu: Option<u32>, count: u64) {
        let lost = &mut self.coverage.events_lost;
        *lost = Some(lost.unwrap_or(0).saturating_add(count));
        self.idle.lost(cpu);
        match cpu {
            Some(cpu) => self.pairing.lost(cpu),
            None => self.pairing.finish(),
        }
    }

    /// The trace ends.
    pub fn finish(&mut self) {
        self.pairing.finish();
    }

    /// Counts an event. Each one comes here first, then to the function for its kind; false if its time cannot be.
    /// `next` finds the time of the next event of the CPU, where that is known; it is called for jumps only.
    pub fn count(
        &mut self,
        cpu: u32,
        time_ns: i64,
        next: impl FnOnce() -> Option<i64>,
        sink: &mut dyn FnMut(Event),
    ) -> bool {
        self.coverage.events += 1;
        let is_room = self.cpus.len() < CPUS_MAX;
        let is_possible = match self.cpus.entry(cpu) {
            Entry::Occupied(mut known) => {
                let order = known.get_mut();
                let next = order.is_suspect(time_ns, FAR_NS).then(next).flatten();
                order.check(time_ns, next)
            }
            Entry::Vacant(new) if is_room => {
                let mut order = Order::of_nanoseconds();
                let is_possible = order.check(time_ns, next());
                if is_possible {
                    new.insert(order);
                    sink(Event::Cpu(Cpu { cpu, ..Cpu::default() }));
                }
                is_possible
            }
            Entry::Vacant(_) => true,
        };
        if !is_possible {
            self.damaged(|| format!("the time of an event of CPU {cpu}: {time_ns} ns"));
            return false;
        }
        self.coverage.at(time_ns);
        true
    }

    /// Counts an event of an unknown CPU: only a whole trace can show that its time cannot be.
    pub fn count_without_cpu(&mut self, time_ns: i64) {
        self.coverage.events += 1;
        self.coverage.at(time_ns);
    }

    /// Counts an event that this machine has just written: its time is right.
    #[cfg(all(feature = "record", target_os = "linux"))]
    pub fn count_live(&mut self, time_ns: i64) {
        self.coverage.events += 1;
        self.coverage.at(time_ns);
    }

    /// An event of a kind that has no meaning here.
    pub fn other(&mut self) {
        self.coverage.events_other += 1;
    }

    /// An event with a meaning.
    ///
    /// # Errors
    ///
    /// If it lacks a field.
    pub fn event(
        &mut self,
        head: Head,
        action: Action,
        fields: &impl Fields,
        sink: &mut dyn FnMut(Event),
    ) -> Result<(), BadFields> {
        match action {
            Action::Raise => {
                let vector = vector(Handler::Softirq, fields).ok_or(BadFields)?;
                self.pairing.raise(head.cpu, vector, head.time_ns);
            }
            Action::Begin(handler) => self.begin(head, handler, fields).ok_or(BadFields)?,
            Action::End(handler) => {
                let vector = vector(handler, fields).ok_or(BadFields)?;
                let (kind, cpu) = (handler.kind(), head.cpu);
                let ended = self.pairing.end(cpu, kind, Some(vector), head.time_ns);
                if let Some(interrupt) = ended {
                    sink(Event::Interrupt(interrupt));
                }
            }
            Action::Poll => {
                let poll = self.poll(head, fields).ok_or(BadFields)?;
                sink(Event::Interrupt(poll));
            }
            Action::Switch => {
                let switch = self.switch(head, fields).ok_or(BadFields)?;
                sink(Event::Switch(switch));
            }
            Action::Idle => {
                let state = fields.number("state").ok_or(BadFields)?;
                let stay = self.idle.change(head.cpu, head.time_ns, state);
                stay.into_iter().for_each(|stay| sink(Event::Power(stay)));
            }
            Action::Frequency => {
                let number = |name| fields.number(name).ok_or(BadFields);
                // The event can come on another CPU than the one that it is about.
                let cpu = u32::try_from(number("cpu_id")?).map_err(|_| BadFields)?;
                let (time_ns, value) = (head.time_ns, number("state")?);
                let kind = PowerKind::Frequency;
                sink(Event::Power(Power { time_ns, cpu, kind, value, duration_ns: None }));
            }
        }
        Ok(())
    }

    /// What a sample of a CPU hits now.
    pub fn sampled(&self, cpu: u32) -> Option<Kind> {
        self.pairing.sampled(cpu)
    }

    /// A sample and its frames, the innermost first.
    pub fn sample(&mut self, mut sample: Sample, frames: Vec<Frame>, sink: &mut dyn FnMut(Event)) {
        sample.address = sample.address.or(frames.first().map(|frame| frame.address));
        sample.during = sample.during.or_else(|| stacks::during(&frames));
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

    fn begin(&mut self, head: Head, handler: Handler, fields: &impl Fields) -> Option<()> {
        let vector = vector(handler, fields)?;
        let name = match handler {
            Handler::Softirq => fields.text("action").or_else(|| {
                let known = SOFTIRQS.get(vector as usize)?;
                Some(Cow::Borrowed(*known))
            }),
            Handler::Irq => fields.text("name"),
            Handler::Ipi => fields.text("reason"),
            Handler::Vector(_, name) => Some(Cow::Borrowed(name)),
        };
        let (device, queue) = match handler {
            Handler::Irq => device::of_handler(name.as_deref().unwrap_or_default()),
            _ => (None, None),
        };
        let device = device.and_then(|device| self.names.intern(device));
        let name = name.as_deref().and_then(|name| self.names.intern(name));
        let (kind, thread, start_ns) = (handler.kind(), head.thread, head.time_ns);
        let vector = Some(vector);
        let begin = Begin { kind, vector, name, device, queue, thread, start_ns };
        self.pairing.begin(head.cpu, begin);
        Some(())
    }

    fn poll(&mut self, head: Head, fields: &impl Fields) -> Option<Interrupt> {
        let device = fields.text("dev_name")?;
        let has_device = &*device != "(no_device)";
        // The backlog of a CPU has no device.
        let name = self.names.intern(if has_device { &device } else { "backlog" });
        let number = |name| u32::try_from(fields.number(name)?).ok();
        Some(Interrupt {
            cpu: head.cpu,
            kind: Kind::NapiPoll,
            vector: None,
            routine: None,
            device: name.clone().filter(|_| has_device),
            name,
            queue: None,
            thread: head.thread,
            start_ns: None,
            end_ns: head.time_ns,
            raised_ns: None,
            work: number("work"),
            budget: number("budget"),
        })
    }

    fn switch(&mut self, head: Head, fields: &impl Fields) -> Option<Switch> {
        // LTTng calls them `tid`.
        let thread = |name, of_lttng| {
            let thread = fields.number(name).or_else(|| fields.number(of_lttng))?;
            u32::try_from(thread).ok()
        };
        let (old_thread, new_thread) =
            (thread("prev_pid", "prev_tid")?, thread("next_pid", "next_tid")?);
        let state = fields.text("prev_state").or_else(|| {
            let bits = fields.number("prev_state")?;
            Some(Cow::Owned(task_state(bits, &TASK_STATES)))
        });
        let mut intern =
            |name: Option<Cow<'_, str>>| name.and_then(|name| self.names.intern(&name));
        Some(Switch {
            time_ns: head.time_ns,
            cpu: head.cpu,
            old_thread,
            old_name: intern(fields.text("prev_comm")),
            old_state: intern(state),
            new_thread,
            new_name: intern(fields.text("next_comm")),
        })
    }
}

/// The number that a beginning and its end have in common.
fn vector(handler: Handler, fields: &impl Fields) -> Option<u32> {
    let name = match handler {
        Handler::Softirq => "vec",
        Handler::Irq => "irq",
        Handler::Vector(..) => "vector",
        Handler::Ipi => return Some(0),
    };
    u32::try_from(fields.number(name)?).ok()
}

/// Whether `perf` samples CPUs by this event: a clock, or cycles. Terms can follow
/// (`cpu-clock/freq=99/`), or it can belong to one kind of cores (`cpu_core/cycles/`).
pub fn is_sampled(event: &str) -> bool {
    let event =
        event.strip_prefix("cpu_core/").or(event.strip_prefix("cpu_atom/")).unwrap_or(event);
    let name = event.split(['/', ':']).next().unwrap_or(event);
    matches!(name, "cpu-clock" | "task-clock" | "cycles" | "cpu-cycles")
}

/// Whether the period of a sampled event is in nanoseconds.
pub fn is_clock(event: &str) -> bool {
    event.starts_with("cpu-clock") || event.starts_with("task-clock")
}

/// States of a task since Linux 4.14 (include/trace/events/sched.h).
const TASK_STATES: [(u64, &str); 8] = [
    (0x01, "S"),
    (0x02, "D"),
    (0x04, "T"),
    (0x08, "t"),
    (0x10, "X"),
    (0x20, "Z"),
    (0x40, "P"),
    (0x80, "I"),
];

/// The same before that (include/linux/sched.h).
pub const TASK_STATES_BEFORE_4_14: [(u64, &str); 11] = [
    (0x001, "S"),
    (0x002, "D"),
    (0x004, "T"),
    (0x008, "t"),
    (0x010, "X"),
    (0x020, "Z"),
    (0x040, "x"),
    (0x080, "K"),
    (0x100, "W"),
    (0x200, "P"),
    (0x400, "N"),
];

/// The state as the kernel prints it: its flags, or `R`; `+` if the task was preempted, which is the
/// bit above all flags.
pub fn task_state(bits: u64, flags: &[(u64, impl AsRef<str>)]) -> String {
    let named = flags.iter().filter(|(bit, _)| *bit != 0 && bits & bit == *bit);
    let mut text = named.map(|(_, name)| name.as_ref()).collect::<Vec<_>>().join("|");
    if text.is_empty() {
        text.push('R');
    }
    let above = flags.iter().map(|(bit, _)| bit << 1).max().unwrap_or(0);
    if bits & above != 0 {
        text.push('+');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_tasks_are_written_like_the_kernel_does() {
        let states = [0, 1, 2, 0x82, 0x100, 0x101].map(|bits| task_state(bits, &TASK_STATES));
        assert_eq!(states, ["R", "S", "D", "D|I", "R+", "S+"]);
        assert_eq!(task_state(3, &[] as &[(u64, &str)]), "R");
    }
}
