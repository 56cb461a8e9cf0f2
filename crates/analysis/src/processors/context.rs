//! What a trace says outside of the period that a report covers: what each CPU did when the period begins, and
//! which events were recorded at all.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use hashbrown::HashMap;

use super::work::family;
use super::{Class, each_switch};

/// Most CPUs of all traces, and most families of events.
const CPUS_MAX: usize = 1 << 16;
const FAMILIES_MAX: usize = 64;

/// Takes rows of whole traces, in the order of time on each CPU.
#[derive(Clone, Debug, Default)]
pub struct Context {
    from: Option<i64>,
    /// By recording and CPU: whether it is idle when the period begins.
    idle: HashMap<String, HashMap<u64, bool>>,
    families: BTreeSet<String>,
    classes: (bool, bool),
}

impl Context {
    /// The context of a period that begins at this time of the trace, ns; `None` for the beginning of the trace.
    pub fn new(from: Option<i64>) -> Context {
        Context { from, ..Context::default() }
    }

    /// Takes rows of the table `switches`.
    pub fn switches(&mut self, batch: &RecordBatch) {
        each_switch(batch, |place, time, old, new| {
            if !self.idle.contains_key(place.recording) {
                if self.idle.len() >= CPUS_MAX {
                    return;
                }
                self.idle.insert(place.recording.to_owned(), HashMap::new());
            }
            let Some(cpus) = self.idle.get_mut(place.recording) else { return };
            if cpus.len() >= CPUS_MAX && !cpus.contains_key(&place.cpu) {
                return;
            }
            if self.from.is_some_and(|from| time < from) {
                cpus.insert(place.cpu, new == 0);
            } else {
                // The first one after the beginning says what ran until then.
                cpus.entry(place.cpu).or_insert(old == 0);
            }
        });
    }

    /// Takes rows of the table `interrupts`.
    pub fn interrupts(&mut self, batch: &RecordBatch) {
        let text = |name| batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let (Some(kinds), names) = (text("kind"), text("name")) else { return };
        let times =
            batch.column_by_name("exclusive_ns").and_then(|c| c.as_primitive_opt::<Int64Type>());
        for row in 0..batch.num_rows() {
            let name = names.filter(|names| names.is_valid(row)).map(|names| names.value(row));
            let has_time = times.is_some_and(|times| times.is_valid(row));
            self.interrupt(kinds.value(row), name, has_time);
        }
    }

    /// Notes an interrupt or deferred work.
    pub(super) fn interrupt(&mut self, kind: &str, name: Option<&str>, has_time: bool) {
        let family = family(kind, name);
        if !self.families.contains(family) && self.families.len() < FAMILIES_MAX {
            self.families.insert(family.to_owned());
        }
        match Class::from_kind(kind) {
            Class::Interrupt => self.classes.0 |= has_time,
            Class::Deferred => self.classes.1 |= has_time,
        }
    }

    /// Whether handlers of interrupts, and deferred work, occur with times.
    pub(super) fn classes(&self) -> (bool, bool) {
        self.classes
    }

    pub(super) fn families(&self) -> impl Iterator<Item = &String> {
        self.families.iter()
    }

    /// Which CPUs of a recording are idle when the period begins.
    pub(super) fn of(&self, recording: &str) -> Vec<(u64, bool)> {
        let cpus = self.idle.get(recording);
        cpus.map_or_else(Vec::new, |cpus| cpus.iter().map(|(cpu, idle)| (*cpu, *idle)).collect())
    }
}
