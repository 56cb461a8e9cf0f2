//! Idle states and frequencies of CPUs, and how late work begins on a CPU that was idle.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use serde::Serialize;

use super::Row;
use crate::stats::latency::{Distribution, Grain, Latency, Sample};

/// Most different idle states; CPUs have at most ten or so.
const STATES_MAX: usize = 64;

/// Power saving in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PowerReport {
    /// By number of the idle state, the lightest first.
    pub states: Vec<IdleState>,
    /// Lowest and highest frequency to which a CPU changed, kHz.
    pub lowest_khz: Option<u64>,
    pub highest_khz: Option<u64>,
    /// From the request to the beginning, of work on CPUs that were idle, and on those that were not.
    pub delay_when_idle: Distribution,
    pub delay_when_busy: Distribution,
}

/// One idle state, on all CPUs together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleState {
    pub state: u64,
    pub count: u64,
    pub duration_ns: i64,
    pub longest_ns: i64,
    pub cpus: u64,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    duration_ns: i64,
    longest_ns: i64,
    cpus: std::collections::BTreeSet<u64>,
}

/// Adds up rows of the tables `power` and `interrupts`.
#[derive(Debug)]
pub(super) struct Power {
    states: BTreeMap<u64, State>,
    khz: Option<(u64, u64)>,
    when_idle: Latency,
    when_busy: Latency,
}

impl Default for Power {
    fn default() -> Power {
        Power {
            states: BTreeMap::new(),
            khz: None,
            when_idle: Latency::new(Grain::Coarse),
            when_busy: Latency::new(Grain::Coarse),
        }
    }
}

impl Power {
    pub(super) fn interrupt(&mut self, row: &Row<'_>) {
        let (Some(delay), Some(thread)) = (row.delay_ns, row.thread) else { return };
        let delays = if thread == 0 { &mut self.when_idle } else { &mut self.when_busy };
        delays.record(&Sample::new(delay));
    }

    pub(super) fn rows(&mut self, batch: &RecordBatch) {
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let kinds = batch.column_by_name("kind").and_then(|c| c.as_string_opt::<i32>());
        let durations =
            batch.column_by_name("duration_ns").and_then(|c| c.as_primitive_opt::<Int64Type>());
        let (Some(cpus), Some(values), Some(kinds)) = (number("cpu"), number("value"), kinds)
        else {
            return;
        };
        for row in 0..batch.num_rows() {
            let value = values.value(row);
            match kinds.value(row) {
                "frequency" => {
                    let (low, high) = self.khz.unwrap_or((value, value));
                    self.khz = Some((low.min(value), high.max(value)));
                }
                "c_state" if self.states.len() < STATES_MAX || self.states.contains_key(&value) => {
                    let state = self.states.entry(value).or_default();
                    let known = durations.filter(|column| column.is_valid(row));
                    let duration = known.map_or(0, |column| column.value(row));
                    state.count += 1;
                    state.duration_ns = state.duration_ns.saturating_add(duration);
                    state.longest_ns = state.longest_ns.max(duration);
                    state.cpus.insert(cpus.value(row));
                }
                _ => {}
            }
        }
    }

    /// The result; `None` without such rows.
    pub(super) fn finish(self) -> Option<PowerReport> {
        if self.states.is_empty() && self.khz.is_none() {
            return None;
        }
        let states = self.states.into_iter().map(|(state, sum)| IdleState {
            state,
            count: sum.count,
            duration_ns: sum.duration_ns,
            longest_ns: sum.longest_ns,
            cpus: sum.cpus.len() as u64,
        });
        Some(PowerReport {
            states: states.collect(),
            lowest_khz: self.khz.map(|(low, _)| low),
            highest_khz: self.khz.map(|(_, high)| high),
            delay_when_idle: self.when_idle.distribution(false),
            delay_when_busy: self.when_busy.distribution(false),
        })
    }
}
