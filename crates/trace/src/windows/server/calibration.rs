//! What the numbers in responses mean: which layout they have, and which time a unit is.
//!
//! The layout follows the build in the log's header and is checked by the length of the events. Cycles become
//! time by the frequency in the header. The unit of times is that of which the totals agree best with the
//! timestamps of the events: what lies between a request and its response.

use foldhash::HashMap;

use super::layout::{Head, Layout};
use super::{is_request, response};
use crate::etl::clock::Clock;
use crate::etl::record::Record;
use crate::windows::fields::Fields;
use crate::windows::provider::Guid;

/// Requests whose response is awaited.
const WAITING_MAX: usize = 1 << 16;
/// Responses by which the unit is found.
const RESPONSES_MAX: usize = 20_000;
/// Shorter operations say nothing about the unit: the timestamps have a resolution.
const SHORTEST_NS: i64 = 20_000;
/// Fewer operations are too few.
const FEWEST: usize = 8;
/// A unit is sure if totals are this near to the time between the events, and those of all others are not.
const NEAR: f64 = 1.5;

/// What the log's header says.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub build: u32,
    pub cpu_mhz: u32,
    /// Frequency of the performance counter.
    pub ticks_per_second: i64,
}

/// How the numbers in responses are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    pub layout: Layout,
    /// Nanoseconds of one unit.
    pub unit_ns: f64,
    /// How this is known, for people.
    pub reason: String,
    /// Whether it was checked with the times of the events.
    pub is_checked: bool,
}

/// Collects what is needed, in the first reading of a log.
#[derive(Debug, Default)]
pub struct Survey {
    /// Responses that have the length of a layout.
    fits: [u64; 2],
    /// Responses that have the length of neither.
    unknown: u64,
    waiting: HashMap<(Guid, u64), i64>,
    /// Units and nanoseconds of operations, in the layout with totals; sums and nanoseconds in the other one.
    pairs: [Vec<(u64, i64)>; 2],
}

impl Survey {
    /// Takes an event of the provider.
    pub fn event(&mut self, record: &Record<'_>, id: u16, clock: &Clock) {
        if is_request(id) {
            let mut fields = Fields::new(record.payload);
            if let Some(head) = Head::parse(&mut fields)
                && let Some(connection) = super::request::connection(record.payload, id)
                && self.waiting.len() < WAITING_MAX
            {
                self.waiting.insert((connection, head.message_id), record.ticks);
            }
            return;
        }
        let mut is_known = false;
        for (place, layout) in Layout::ALL.into_iter().enumerate() {
            let Some(response) = response::parse(record.payload, id, layout) else { continue };
            is_known = true;
            if let Some(fits) = self.fits.get_mut(place) {
                *fits += 1;
            }
            let key = (response.ids.connection, response.head.message_id);
            let Some(pairs) = self.pairs.get_mut(place) else { continue };
            if let Some(since) = self.waiting.get(&key)
                && pairs.len() < RESPONSES_MAX
            {
                let now_ns = clock.time_ns(record.ticks);
                let elapsed_ns = now_ns.saturating_sub(clock.time_ns(*since));
                let units = response.work.total.unwrap_or(response.work.sum());
                pairs.push((units, elapsed_ns));
            }
        }
        self.unknown += u64::from(!is_known && super::is_response(id));
        if let Some(response) = response::parse(record.payload, id, Layout::Cycles)
            .or_else(|| response::parse(record.payload, id, Layout::Times))
        {
            self.waiting.remove(&(response.ids.connection, response.head.message_id));
        }
    }

    /// The calibration; `None` if the log has no responses that are known.
    pub fn finish(&self, machine: Machine) -> Option<Calibration> {
        let [cycles, times] = self.fits;
        if cycles + times == 0 {
            return None;
        }
        let by_build = Layout::of_build(machine.build);
        let by_length = if times > cycles { Layout::Times } else { Layout::Cycles };
        let build = machine.build;
        let mut reason = if by_build == by_length {
            format!("build {build} and the length of the events agree on the layout")
        } else {
            format!(
                "the events have the length of another layout than those of build {build}: their length counts"
            )
        };
        let pairs = self.pairs.get(by_length as usize)?;
        let (unit_ns, how, is_checked) = match by_length {
            Layout::Cycles => cycles_unit(machine, pairs),
            Layout::Times => times_unit(machine, pairs),
        };
        reason.push_str("; ");
        reason.push_str(&how);
        if self.unknown > 0 {
            reason.push_str(&format!("; {} responses have an unknown layout", self.unknown));
        }
        Some(Calibration { layout: by_length, unit_ns, reason, is_checked })
    }
}

/// Cycles by the frequency in the header; how much of the time between the events they explain.
fn cycles_unit(machine: Machine, pairs: &[(u64, i64)]) -> (f64, String, bool) {
    let mhz = machine.cpu_mhz;
    if mhz == 0 {
        return (0.0, "the header has no frequency: cycles are not times".to_owned(), false);
    }
    let unit_ns = 1_000.0 / f64::from(mhz);
    let mut how = format!("cycles become time by the {mhz} MHz of the header");
    let mut shares = ratios(pairs, unit_ns);
    let Some(share) = median(&mut shares) else {
        how.push_str(", not checked: too few requests with their response");
        return (unit_ns, how, false);
    };
    let count = shares.len();
    how.push_str(&format!(
        ", and are {:.0} % of the time from request to response (median of {count} operations)",
        100.0 * share
    ));
    let is_right = (0.05..=NEAR).contains(&share);
    if !is_right {
        how.push_str(": this does not fit, the CPU may run at another frequency");
    }
    (unit_ns, how, is_right)
}

/// The unit by which totals agree best with the times of the events.
pub fn times_unit(machine: Machine, pairs: &[(u64, i64)]) -> (f64, String, bool) {
    let mut candidates = vec![(100.0, "100 ns".to_owned()), (1.0, "1 ns".to_owned())];
    candidates.push((1_000.0, "1 µs".to_owned()));
    if machine.ticks_per_second > 0 && machine.ticks_per_second != 10_000_000 {
        let tick_ns = 1e9 / machine.ticks_per_second as f64;
        candidates.push((tick_ns, "a tick of the performance counter".to_owned()));
    }
    if machine.cpu_mhz > 0 {
        candidates.push((1_000.0 / f64::from(machine.cpu_mhz), "a CPU cycle".to_owned()));
    }
    let mut judged: Vec<_> = candidates
        .into_iter()
        .filter_map(|(unit_ns, name)| {
            let share = median(&mut ratios(pairs, unit_ns)).filter(|share| *share > 0.0)?;
            Some((share.ln().abs(), share, unit_ns, name))
        })
        .collect();
    judged.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((distance, share, unit_ns, name)) = judged.first().cloned() else {
        let how =
            "times are taken as units of 100 ns, not checked: too few requests with their response";
        return (100.0, how.to_owned(), false);
    };
    let count = ratios(pairs, unit_ns).len();
    let is_near = distance <= NEAR.ln();
    let is_alone = judged.get(1).is_none_or(|(second, ..)| *second > NEAR.ln());
    let how = format!(
        "a unit of time is {name}: totals are {:.0} % of the time from request to response (median of {count} operations){}",
        100.0 * share,
        match (is_near, is_alone) {
            (true, true) => "",
            (true, false) => ", but another unit fits as well",
            (false, _) => ", which does not fit: these times are doubtful",
        }
    );
    (unit_ns, how, is_near && is_alone)
}

/// Shares of the times between the events that the numbers are.
fn ratios(pairs: &[(u64, i64)], unit_ns: f64) -> Vec<f64> {
    let long = pairs.iter().filter(|(_, elapsed_ns)| *elapsed_ns >= SHORTEST_NS);
    let shares: Vec<f64> =
        long.map(|(units, elapsed_ns)| *units as f64 * unit_ns / *elapsed_ns as f64).collect();
    if shares.len() < FEWEST { Vec::new() } else { shares }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine =
        Machine { build: 26_100, cpu_mhz: 2_600, ticks_per_second: 10_000_000 };

    fn pairs(unit_ns: f64) -> Vec<(u64, i64)> {
        (1..100).map(|n| ((n as f64 * 50_000.0 / unit_ns) as u64, n * 50_000 + 900)).collect()
    }

    #[test]
    fn the_unit_of_times_is_that_of_the_timestamps() {
        for (unit_ns, name) in [(100.0, "100 ns"), (1.0, "1 ns"), (1_000.0, "1 µs")] {
            let (found, how, is_checked) = times_unit(MACHINE, &pairs(unit_ns));
            assert_eq!(found, unit_ns);
            assert!(how.contains(name) && how.contains("100 %") && is_checked, "{how}");
        }
        let machine = Machine { ticks_per_second: 3_579_545, ..MACHINE };
        let (found, how, is_checked) = times_unit(machine, &pairs(1e9 / 3_579_545.0));
        assert!((found - 279.36).abs() < 0.1 && is_checked && how.contains("performance"), "{how}");
        let (_, how, is_checked) = times_unit(MACHINE, &pairs(20.0));
        assert!(!is_checked && how.contains("does not fit"), "{how}");
        let (unit, how, is_checked) = times_unit(MACHINE, &[]);
        assert!(unit == 100.0 && !is_checked && how.contains("not checked"), "{how}");
    }

    #[test]
    fn cycles_are_checked_too() {
        let (unit_ns, how, is_checked) = cycles_unit(MACHINE, &pairs(1_000.0 / 2_600.0));
        assert!((unit_ns - 0.3846).abs() < 0.001 && is_checked, "{how}");
        let (_, how, is_checked) = cycles_unit(MACHINE, &pairs(0.01));
        assert!(!is_checked && how.contains("does not fit"), "{how}");
        let (unit_ns, _, is_checked) = cycles_unit(Machine { cpu_mhz: 0, ..MACHINE }, &[]);
        assert!(unit_ns == 0.0 && !is_checked);
    }
}
