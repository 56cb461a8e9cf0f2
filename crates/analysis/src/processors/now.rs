//! What each CPU did in the last interval: shares, names, packets. For live displays.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use hashbrown::HashMap;

use super::{Class, is_kernel};

/// Most CPUs, and most names and devices of one.
const CPUS_MAX: usize = 16_384;
const NAMES_MAX: usize = 1024;

/// Adds up one interval.
#[derive(Debug, Default)]
pub struct Now {
    cpus: BTreeMap<u64, State>,
    /// Whether any sample was ever taken: the recorder has clocks, one on each CPU.
    has_clocks: bool,
}

#[derive(Debug, Default)]
struct State {
    interrupt_ns: i64,
    deferred_ns: i64,
    names: HashMap<String, i64>,
    devices: HashMap<String, (u64, u64)>,
    samples: [u64; 4],
    /// Time that samples outside of interrupts and deferred work represent: in programs, and in the kernel.
    user_ns: i64,
    kernel_ns: i64,
}

/// One CPU in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuNow {
    pub cpu: u64,
    /// Handlers of interrupts and deferred work, without what interrupted them.
    pub interrupt_ns: i64,
    pub deferred_ns: i64,
    /// Samples: all, in programs, in the kernel's threads and system calls, idle.
    pub samples: u64,
    pub user: u64,
    pub kernel: u64,
    pub idle: u64,
    /// Time in programs and in the kernel that samples represent, and the rest of the interval, in which a CPU is
    /// idle: clocks may not tick there. Null if there are no samples at all.
    pub user_ns: Option<i64>,
    pub kernel_ns: Option<i64>,
    pub idle_ns: Option<i64>,
    /// Exclusive time by name, longest first.
    pub names: Vec<(String, i64)>,
    /// Polls and packets by device, most packets first.
    pub polls: Vec<Polls>,
}

/// Polls of a network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polls {
    pub device: String,
    pub count: u64,
    pub packets: u64,
}

impl Now {
    fn cpu(&mut self, cpu: u64) -> Option<&mut State> {
        let is_known = self.cpus.len() < CPUS_MAX || self.cpus.contains_key(&cpu);
        is_known.then(|| self.cpus.entry(cpu).or_default())
    }

    /// Takes rows of the table `interrupts`.
    pub fn interrupts(&mut self, batch: &RecordBatch) {
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let text = |name| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let exclusives =
            batch.column_by_name("exclusive_ns").and_then(|c| c.as_primitive_opt::<Int64Type>());
        let (Some(cpus), Some(kinds), Some(names), Some(exclusives), Some(works)) =
            (number("cpu"), text("kind"), text("name"), exclusives, number("work"))
        else {
            return;
        };
        for row in 0..batch.num_rows() {
            let Some(state) = self.cpu(cpus.value(row)) else { continue };
            let (kind, name) = (kinds.value(row), names.value(row));
            if kind == "napi_poll" {
                let is_known = state.devices.len() < NAMES_MAX || state.devices.contains_key(name);
                if is_known {
                    let polls = state.devices.entry_ref(name).or_default();
                    polls.0 += 1;
                    polls.1 += if works.is_valid(row) { works.value(row) } else { 0 };
                }
            }
            if !exclusives.is_valid(row) {
                continue;
            }
            let exclusive = exclusives.value(row);
            match Class::from_kind(kind) {
                Class::Interrupt => state.interrupt_ns += exclusive,
                Class::Deferred => state.deferred_ns += exclusive,
            }
            if state.names.len() < NAMES_MAX || state.names.contains_key(name) {
                *state.names.entry_ref(name).or_default() += exclusive;
            }
        }
    }

    /// Takes rows of the table `samples`.
    pub fn samples(&mut self, batch: &RecordBatch) {
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let during = batch.column_by_name("during").and_then(|c| c.as_string_opt::<i32>());
        let (Some(cpus), Some(threads), Some(addresses), Some(during)) =
            (number("cpu"), number("thread"), number("address"), during)
        else {
            return;
        };
        let weights =
            batch.column_by_name("weight_ns").and_then(|c| c.as_primitive_opt::<Int64Type>());
        self.has_clocks |= batch.num_rows() > 0;
        for row in 0..batch.num_rows() {
            if !cpus.is_valid(row) {
                continue;
            }
            let Some(state) = self.cpu(cpus.value(row)) else { continue };
            let weight = weights.filter(|weights| weights.is_valid(row));
            let weight = weight.map_or(0, |weights| weights.value(row));
            state.samples[0] += 1;
            if during.is_valid(row) {
                continue;
            }
            let place = match () {
                () if threads.is_valid(row) && threads.value(row) == 0 => 3,
                () if addresses.is_valid(row) && is_kernel(addresses.value(row), None) => 2,
                () => 1,
            };
            if let Some(count) = state.samples.get_mut(place) {
                *count += 1;
            }
            match place {
                1 => state.user_ns = state.user_ns.saturating_add(weight),
                2 => state.kernel_ns = state.kernel_ns.saturating_add(weight),
                _ => {}
            }
        }
    }

    /// The CPUs of an interval of this length, in the order of their numbers; the next interval begins.
    pub fn take(&mut self, length_ns: i64) -> Vec<CpuNow> {
        let has_clocks = self.has_clocks;
        // A CPU that does nothing in the next interval is idle, not gone.
        let known = self.cpus.keys().map(|cpu| (*cpu, State::default())).collect();
        let cpus = std::mem::replace(&mut self.cpus, known).into_iter();
        cpus.map(|(cpu, state)| {
            let mut names: Vec<_> = state.names.into_iter().collect();
            names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let mut polls: Vec<_> = state
                .devices
                .into_iter()
                .map(|(device, (count, packets))| Polls { device, count, packets })
                .collect();
            polls.sort_by(|a, b| b.packets.cmp(&a.packets).then_with(|| a.device.cmp(&b.device)));
            let [samples, user, kernel, idle] = state.samples;
            let timed = state.interrupt_ns.saturating_add(state.deferred_ns);
            // Samples are few: their times together can be longer than what interrupts leave.
            let left = length_ns.saturating_sub(timed).max(0);
            let sampled = state.user_ns.saturating_add(state.kernel_ns);
            let known = |ns: i64| Some(ns).filter(|_| has_clocks);
            let fit = |ns: i64| {
                if sampled > left { (ns as f64 / sampled as f64 * left as f64) as i64 } else { ns }
            };
            CpuNow {
                cpu,
                interrupt_ns: state.interrupt_ns,
                deferred_ns: state.deferred_ns,
                samples,
                user,
                kernel,
                idle,
                user_ns: known(fit(state.user_ns)),
                kernel_ns: known(fit(state.kernel_ns)),
                idle_ns: known(left.saturating_sub(sampled).max(0)),
                names,
                polls,
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use smbscope_tables::tables::{Interrupt, Sample};

    use super::*;

    #[test]
    fn an_interval_has_shares_names_and_packets() {
        let one = |kind: &'static str, name: &str, exclusive, work| Interrupt {
            cpu: 3,
            kind: Cow::Borrowed(kind),
            name: Some(name.into()),
            exclusive_ns: exclusive,
            work,
            ..Interrupt::default()
        };
        let rows = [
            one("softirq", "NET_RX", Some(500), None),
            one("softirq", "NET_RX", Some(100), None),
            one("irq", "eth0-rx-0", Some(700), None),
            one("napi_poll", "eth0", None, Some(64)),
            one("napi_poll", "eth0", None, Some(3)),
        ];
        let sample = |thread, address, during: Option<&'static str>| Sample {
            cpu: Some(3),
            thread: Some(thread),
            address: Some(address),
            during: during.map(Cow::Borrowed),
            weight_ns: Some(1_000),
            ..Sample::default()
        };
        let samples = [
            sample(0, u64::MAX, None),
            sample(7, u64::MAX, None),
            sample(7, 0x1000, None),
            // In a softirq it is neither idle nor a thread.
            sample(0, u64::MAX, Some("softirq")),
        ];
        let mut now = Now::default();
        // Without samples nothing is known but the time of interrupts.
        now.interrupts(&Interrupt::to_batch(&rows[..1]).unwrap());
        assert_eq!(now.take(10_000)[0].idle_ns, None);
        now.interrupts(&Interrupt::to_batch(&rows).unwrap());
        now.samples(&Sample::to_batch(&samples).unwrap());
        let cpus = now.take(10_000);
        let [cpu] = &cpus[..] else { panic!("{cpus:?}") };
        assert_eq!((cpu.cpu, cpu.interrupt_ns, cpu.deferred_ns), (3, 700, 600));
        assert_eq!((cpu.samples, cpu.user, cpu.kernel, cpu.idle), (4, 1, 1, 1));
        // A clock that does not tick on an idle CPU leaves a gap: 10 µs without 1.3 of interrupts and 2 of samples.
        let times = (cpu.user_ns, cpu.kernel_ns, cpu.idle_ns);
        assert_eq!(times, (Some(1_000), Some(1_000), Some(6_700)));
        assert_eq!(cpu.names, [("eth0-rx-0".to_owned(), 700), ("NET_RX".to_owned(), 600)]);
        assert_eq!(cpu.polls, [Polls { device: "eth0".into(), count: 2, packets: 67 }]);
        // Samples of more time than there is.
        now.samples(&Sample::to_batch(&samples).unwrap());
        let cpu = now.take(1_000).remove(0);
        let times = (cpu.user_ns, cpu.kernel_ns, cpu.idle_ns);
        assert_eq!(times, (Some(500), Some(500), Some(0)));
        let idle = CpuNow { cpu: 3, user_ns: Some(0), kernel_ns: Some(0), ..CpuNow::default() };
        assert_eq!(now.take(7), [CpuNow { idle_ns: Some(7), ..idle }]);
    }
}
