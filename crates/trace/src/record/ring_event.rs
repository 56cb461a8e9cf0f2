//! Events of the kernel's side: the layouts of `bpf/event.h`, as values.

use crate::event::Kind;

/// Marks vectors of the local APIC, which are not irqs.
const OF_VECTOR: u32 = 0x8000_0000;
/// Interrupts of the local APIC, by the place that `bpf/cpu.bpf.c` sends; 0 is not one.
const VECTORS: [&str; 8] = [
    "",
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "thermal_apic",
    "x86_platform_ipi",
];
/// Softirqs by their number: include/linux/interrupt.h.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// An event. Times are those of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingEvent {
    Run(Run),
    Sample(Sample),
    Switch(Switch),
    Name(Name),
}

/// A handler or deferred work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub cpu: u32,
    pub kind: Kind,
    /// The thread that it interrupted.
    pub thread: u32,
    pub start: Option<u64>,
    pub end: u64,
    pub raised: Option<u64>,
    pub what: What,
}

/// What ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A softirq, by its number.
    Softirq(u32),
    /// A handler of an irq; the key is that of its name.
    Irq { irq: u32, key: u32 },
    /// An interrupt of the local APIC.
    Vector { vector: u32, name: &'static str },
    /// A poll; the key is that of its device's name.
    Poll { key: u32, work: u32, budget: u32 },
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub cpu: u32,
    pub process: u32,
    pub thread: u32,
    pub time: u64,
    pub address: u64,
    /// Ticks of the clock that it represents.
    pub ticks: u32,
    pub during: Option<Kind>,
    /// Addresses in the kernel, the innermost first; empty in a program.
    pub stack: Box<[u64]>,
}

/// A context switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    pub cpu: u32,
    pub time: u64,
    pub preempted: bool,
    pub old_thread: u32,
    pub new_thread: u32,
    /// State of the old thread: include/linux/sched.h.
    pub state: u32,
    pub old_name: String,
    pub new_name: String,
}

/// The name of a handler or of a polled device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub kind: Kind,
    pub irq: u32,
    pub key: u32,
    pub text: String,
}

/// The name of a softirq.
pub fn softirq(number: u32) -> Option<&'static str> {
    SOFTIRQS.get(number as usize).copied()
}

impl RingEvent {
    /// Reads an event; `None` if it is not one.
    pub fn parse(bytes: &[u8]) -> Option<RingEvent> {
        let cpu = u32::from(u16_at(bytes, 2)?);
        let thread = u32_at(bytes, 4)?;
        let kind = kind(*bytes.get(1)?);
        match *bytes.first()? {
            1 => run(bytes, cpu, kind?, thread).map(RingEvent::Run),
            2 => Some(RingEvent::Sample(Sample {
                cpu,
                thread,
                time: u64_at(bytes, 8)?,
                address: u64_at(bytes, 16)?,
                process: u32_at(bytes, 24)?,
                ticks: u32_at(bytes, 28)?,
                during: kind,
                stack: bytes.get(32..)?.chunks_exact(8).filter_map(|at| u64_at(at, 0)).collect(),
            })),
            3 => Some(RingEvent::Switch(Switch {
                cpu,
                time: u64_at(bytes, 8)?,
                preempted: *bytes.get(1)? != 0,
                old_thread: thread,
                new_thread: u32_at(bytes, 16)?,
                state: u32_at(bytes, 20)?,
                old_name: text(bytes.get(24..40)?),
                new_name: text(bytes.get(40..56)?),
            })),
            4 => Some(RingEvent::Name(Name {
                kind: kind?,
                irq: u32_at(bytes, 8)?,
                key: u32_at(bytes, 12)?,
                text: text(bytes.get(16..80)?),
            })),
            _ => None,
        }
    }

    /// When it was sent; names have no time.
    pub fn time(&self) -> u64 {
        match self {
            RingEvent::Run(run) => run.end,
            RingEvent::Sample(sample) => sample.time,
            RingEvent::Switch(switch) => switch.time,
            RingEvent::Name(_) => 0,
        }
    }
}

fn kind(number: u8) -> Option<Kind> {
    Some(match number {
        1 => Kind::Softirq,
        2 => Kind::Irq,
        3 => Kind::Ipi,
        4 => Kind::NapiPoll,
        _ => return None,
    })
}

fn run(bytes: &[u8], cpu: u32, kind: Kind, thread: u32) -> Option<Run> {
    let known = |time: u64| Some(time).filter(|&time| time != 0);
    let [vector, key, budget] = [u32_at(bytes, 32)?, u32_at(bytes, 36)?, u32_at(bytes, 40)?];
    let what = match kind {
        Kind::Softirq => What::Softirq(vector),
        Kind::NapiPoll => What::Poll { key, work: vector, budget },
        _ if vector & OF_VECTOR != 0 => {
            What::Vector { vector: vector & !OF_VECTOR, name: VECTORS.get(key as usize)? }
        }
        _ => What::Irq { irq: vector, key },
    };
    let (start, end) = (known(u64_at(bytes, 8)?), u64_at(bytes, 16)?);
    Some(Run {
        cpu,
        kind,
        thread,
        start: start.filter(|&start| start <= end),
        end,
        raised: known(u64_at(bytes, 24)?).filter(|&raised| start.is_some_and(|at| raised <= at)),
        what,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An event: what, kind, CPU and thread, and the rest as words of 64 bits.
    pub fn event(what: u8, kind: u8, cpu: u16, thread: u32, rest: &[u64]) -> Vec<u8> {
        let mut bytes = vec![what, kind];
        bytes.extend(cpu.to_ne_bytes());
        bytes.extend(thread.to_ne_bytes());
        bytes.extend(rest.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    /// Two halves of a word, as they follow each other in memory.
    pub fn pair(first: u32, second: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        bytes[4..].copy_from_slice(&second.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn runs_have_the_times_that_are_known() {
        let bytes = event(1, 1, 3, 17, &[100, 150, 90, pair(3, 0), 0]);
        let Some(RingEvent::Run(run)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!((run.cpu, run.thread, run.what), (3, 17, What::Softirq(3)));
        assert_eq!((run.start, run.end, run.raised), (Some(100), 150, Some(90)));
        let bytes = event(1, 4, 0, 0, &[0, 150, 0, pair(17, 9), pair(64, 0)]);
        let Some(RingEvent::Run(run)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!(run.what, What::Poll { key: 9, work: 17, budget: 64 });
        assert_eq!((run.start, run.raised), (None, None));
        // A start after the end is not one; a request after the start belongs to another run.
        let bytes = event(1, 2, 0, 0, &[200, 150, 300, pair(24, 9), 0]);
        let Some(RingEvent::Run(run)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!((run.start, run.raised), (None, None));
        assert_eq!(run.what, What::Irq { irq: 24, key: 9 });
        let bytes = event(1, 2, 0, 0, &[1, 2, 0, pair(0x8000_00ec, 1), 0]);
        let Some(RingEvent::Run(run)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!(run.what, What::Vector { vector: 0xec, name: "local_timer" });
        let bytes = event(1, 2, 0, 0, &[1, 2, 0, pair(0x8000_00ec, 99), 0]);
        assert_eq!(RingEvent::parse(&bytes), None);
    }

    #[test]
    fn every_cut_is_no_event_or_a_shorter_stack() {
        let bytes = event(2, 1, 1, 5, &[77, 0xffff_ffff_8100_0000, pair(4, 2), 1, 2]);
        let Some(RingEvent::Sample(sample)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!((sample.process, sample.thread, sample.ticks), (4, 5, 2));
        assert_eq!((&*sample.stack, sample.during), (&[1, 2][..], Some(Kind::Softirq)));
        for length in 0..bytes.len() {
            let parsed = RingEvent::parse(&bytes[..length]);
            assert_eq!(parsed.is_some(), length >= 32, "{length}");
        }
        for what in 0..=255 {
            let _ = RingEvent::parse(&[what; 7]);
        }
    }

    #[test]
    fn names_end_at_their_zero() {
        let mut bytes = event(4, 2, 0, 0, &[pair(24, 7)]);
        bytes.extend(b"eth0-rx-1\0rubbish");
        bytes.resize(80, 0);
        let Some(RingEvent::Name(name)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!((name.irq, name.key, &*name.text), (24, 7, "eth0-rx-1"));
        let mut bytes = event(3, 1, 0, 8, &[5, pair(9, 0)]);
        bytes.extend(b"ksoftirqd/0\0\0\0\0\0smbd\0\0\0\0\0\0\0\0\0\0\0\0");
        let Some(RingEvent::Switch(switch)) = RingEvent::parse(&bytes) else { panic!() };
        assert_eq!((switch.old_thread, switch.new_thread, switch.preempted), (8, 9, true));
        assert_eq!((&*switch.old_name, &*switch.new_name), ("ksoftirqd/0", "smbd"));
    }
}
