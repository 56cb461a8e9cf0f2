//! What a trace says outside of the period that a report covers: what each processor did when the period begins, and
//! which events were recorded at all.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use hashbrown::HashMap;

use super::Class;
use super::work::family;

/// Most processors of all traces, and most families of events.
const CPUS_MAX: usize = 1 << 16;
const FAMILIES_MAX: usize = 64;

/// Takes rows of whole traces, in the order of time on each processor.
#[derive(Clone, Debug, Default)]
pub struct Context {
    from: Option<i64>,
    /// By recording and processor: whether it is idle when the period begins.
    idle: HashMap<String, HashMap<u64, bool>>,
    families: BTreeSet<String>,
    classes: (bool, bool),
}

impl Context {
    /// Of a period that begins at this time of the trace, ns; `None` for the beginning of the trace.
    pub fn new(from: Option<i64>) -> Context {
        Context { from, ..Context::default() }
    }

    /// Takes rows of the table `switches`.
    pub fn switches(&mut self, batch: &RecordBatch) {
        let number =
            |name| batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let recording = batch.column_by_name("recording").and_then(|c| c.as_string_opt::<i32>());
        let times = batch.column_by_name("time").and_then(|c| c.as_primitive_opt::<Int64Type>());
        let (Some(cpus), Some(old), Some(new), Some(times), Some(recording)) =
            (number("cpu"), number("old_thread"), number("new_thread"), times, recording)
        else {
            return;
        };
        for row in 0..batch.num_rows() {
            let name = recording.value(row);
            if !self.idle.contains_key(name) {
                if self.idle.len() >= CPUS_MAX {
                    continue;
                }
                self.idle.insert(name.to_owned(), HashMap::new());
            }
            let Some(cpus_of) = self.idle.get_mut(name) else { continue };
            let cpu = cpus.value(row);
            let is_before = self.from.is_some_and(|from| times.value(row) < from);
            if cpus_of.len() >= CPUS_MAX && !cpus_of.contains_key(&cpu) {
                continue;
            }
            match is_before {
                true => drop(cpus_of.insert(cpu, new.value(row) == 0)),
                // The first one after the beginning says what ran until then.
                false => drop(cpus_of.entry(cpu).or_insert(old.value(row) == 0)),
            }
        }
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
        match Class::of(kind) {
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

    /// Which processors of a recording are idle when the period begins.
    pub(super) fn of(&self, recording: &str) -> Vec<(u64, bool)> {
        let cpus = self.idle.get(recording);
        cpus.map_or_else(Vec::new, |cpus| cpus.iter().map(|(cpu, idle)| (*cpu, *idle)).collect())
    }
}
