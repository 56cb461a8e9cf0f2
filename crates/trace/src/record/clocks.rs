//! Samples without eBPF: a clock of each CPU that writes them into a ring of its own, `perf_event_open(2)`.
//!
//! As with eBPF the clock ticks in idle CPUs, too, and stacks are those of the kernel only.

use std::collections::{HashMap, VecDeque};
use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::{convert, system};
use crate::bytes::Order;
use crate::event::{Event, Frame, Sample};
use crate::linux::State;
use crate::perf::sample::{Layout, addresses};
use crate::symbols::KernelFunctions;

/// Bytes of the ring of one CPU: more than a second of the longest stacks.
const RING_BYTES: usize = 128 << 10;
/// Most frames of a stack, as of the programs of eBPF.
const FRAMES_MAX: usize = 127;
/// Records of linux/perf_event.h: a count of those that did not fit, and a sample.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// What a sample has.
const CONTENTS: SampleFlag =
    SampleFlag::IP.union(SampleFlag::TID).union(SampleFlag::TIME).union(SampleFlag::CALLCHAIN);

/// The clocks of the CPUs.
pub struct Clocks {
    samplers: Vec<(u32, Sampler)>,
    /// What was read and not yet taken, by CPU.
    taken: HashMap<u32, VecDeque<Taken>>,
    lost: HashMap<u32, u64>,
    functions: KernelFunctions,
    hz: u32,
    /// What a sample represents now, ns.
    period_ns: u64,
}

/// A sample.
struct Taken {
    /// On `CLOCK_MONOTONIC`.
    time: u64,
    process: u32,
    thread: u32,
    address: u64,
    /// What it represents, ns.
    period_ns: u64,
    stack: Vec<u64>,
}

impl Clocks {
    /// Starts clocks with `hz` ticks each second; what does not work is added to `missing`.
    pub fn start(cpus: &[u32], hz: u32, missing: &mut Vec<String>) -> Clocks {
        let mut clocks = Clocks {
            samplers: Vec::new(),
            taken: HashMap::new(),
            lost: HashMap::new(),
            functions: if hz == 0 { KernelFunctions::default() } else { super::functions() },
            hz,
            period_ns: 1_000_000_000 / u64::from(hz.max(1)),
        };
        if hz == 0 {
            return clocks;
        }
        for &cpu in cpus {
            match sampler(cpu, clocks.period_ns) {
                Ok(sampler) => clocks.samplers.push((cpu, sampler)),
                Err(error) => missing.push(format!("samples of CPU {cpu} ({error})")),
            }
        }
        clocks
    }

    /// Ticks each second; 0 without a clock.
    pub fn hz(&self) -> u32 {
        if self.samplers.is_empty() { 0 } else { self.hz }
    }

    /// Whether functions of the kernel have names.
    pub fn knows_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Bytes of all rings.
    pub fn ring_bytes(&self) -> u64 {
        (self.samplers.len() * RING_BYTES) as u64
    }

    /// Samples that did not fit into the ring of a CPU.
    pub fn lost(&self, cpu: u32) -> u64 {
        self.lost.get(&cpu).copied().unwrap_or(0)
    }

    /// Reads what is in the rings.
    pub fn read(&mut self) {
        for (cpu, sampler) in &mut self.samplers {
            let taken = self.taken.entry(*cpu).or_default();
            while let Some(record) = sampler.next_record() {
                let body = record.to_contiguous();
                match record.ty() {
                    SAMPLE => taken.extend(of(&body, self.period_ns)),
                    LOST => {
                        let lost = Order::NATIVE.u64(&body, size_of::<u64>()).unwrap_or(0);
                        let all = self.lost.entry(*cpu).or_default();
                        *all = all.saturating_add(lost);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Gives the samples of a CPU, or of all, up to a time to the sink.
    pub fn until(
        &mut self,
        cpu: Option<u32>,
        time: u64,
        offset_ns: i64,
        linux: &mut State,
        sink: &mut dyn FnMut(Event),
    ) {
        for (&of, taken) in &mut self.taken {
            if cpu.is_some_and(|cpu| cpu != of) {
                continue;
            }
            while let Some(one) = taken.pop_front_if(|one| one.time <= time) {
                let time_ns = super::time_of_day(one.time, offset_ns);
                let during = linux.sampled(of);
                let frames = one.stack.iter().enumerate().map(|(depth, &address)| {
                    convert::frame(&self.functions, &mut linux.names, depth, address)
                });
                let frames: Vec<Frame> = frames.collect();
                let sample = Sample {
                    time_ns,
                    cpu: Some(of),
                    process: Some(one.process),
                    thread: Some(one.thread),
                    address: Some(one.address),
                    during,
                    weight_ns: i64::try_from(one.period_ns).ok(),
                    ..Sample::default()
                };
                linux.count_live(time_ns);
                linux.sample(sample, frames, sink);
            }
        }
    }

    /// Ticks only every `every` ticks of those at the beginning.
    pub fn sample_every(&mut self, every: u32) {
        self.read();
        self.period_ns = 1_000_000_000 / u64::from(self.hz.max(1)) * u64::from(every);
        for (_, sampler) in &self.samplers {
            // A clock that refuses continues as before.
            let _ = system::set_period(sampler, self.period_ns);
        }
    }

    /// Stops the clocks; what was sampled until then can still be read.
    pub fn stop(&mut self) {
        for (_, sampler) in &mut self.samplers {
            // Its ring says how much there is, whether or not it stopped.
            let _ = sampler.disable();
        }
    }
}

/// The clock of a CPU, which runs.
fn sampler(cpu: u32, period_ns: u64) -> io::Result<Sampler> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .any_pid()
        .one_cpu(cpu as usize)
        .include_kernel()
        .exclude_callchain_user(true)
        .sample_period(period_ns)
        .clockid(Clock::MONOTONIC)
        .sample(CONTENTS)
        // The rings are read from time to time, without waiting.
        .wakeup_watermark(RING_BYTES);
    let mut sampler = builder.build()?.sampled(RING_BYTES)?;
    sampler.enable()?;
    Ok(sampler)
}

fn of(body: &[u8], period_ns: u64) -> Option<Taken> {
    let layout = Layout { contents: CONTENTS.bits(), ..Layout::default() };
    let sample = layout.sample(body, Order::NATIVE)?;
    Some(Taken {
        time: sample.time?,
        process: sample.process?,
        thread: sample.thread?,
        address: sample.address?,
        // The record's own period does not follow changes.
        period_ns,
        stack: addresses(sample.chain, Order::NATIVE)
            .map(|(address, _)| address)
            .take(FRAMES_MAX)
            .collect(),
    })
}
