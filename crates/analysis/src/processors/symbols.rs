//! Which PDB files are missing: modules whose code has no names of functions.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{Int64Type, UInt64Type};
use hashbrown::HashMap;
use smbscope_tables::tables::Image;

use super::data::MissingSymbols;

/// Most modules.
const MODULES_MAX: usize = 16_384;

#[derive(Debug, Default)]
struct Module {
    exclusive_ns: i64,
    sampled_ns: i64,
    frames: u64,
    is_named: bool,
}

/// All modules of the kernel.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    by_module: HashMap<String, Module>,
    /// PDB files as `NAME/GUIDAGE`.
    files: HashMap<String, BTreeSet<String>>,
    discarded: u64,
}

impl Symbols {
    pub(super) fn images(&mut self, rows: &[Image]) {
        for row in rows.iter().filter(|row| row.process == 0) {
            // A build id of Linux is not the name of a file.
            let Some(file) = row.symbols.as_ref().filter(|file| file.contains('/')) else {
                continue;
            };
            if self.files.len() >= MODULES_MAX && !self.files.contains_key(&row.name) {
                self.discarded += 1;
                continue;
            }
            self.files.entry_ref(&row.name).or_default().insert(file.clone());
        }
    }

    pub(super) fn interrupts(&mut self, batch: &RecordBatch) {
        let signed = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        let offsets = batch.column_by_name("routine_offset");
        let Some(offsets) = offsets.and_then(|c| c.as_primitive_opt::<UInt64Type>()) else {
            return;
        };
        let times = signed("exclusive_ns");
        self.rows(
            batch,
            "name",
            |row| offsets.is_valid(row),
            |module, row| {
                let time =
                    times.filter(|times| times.is_valid(row)).map_or(0, |times| times.value(row));
                module.exclusive_ns = module.exclusive_ns.saturating_add(time);
            },
        );
    }

    pub(super) fn samples(&mut self, batch: &RecordBatch) {
        let weights = batch.column_by_name("weight_ns");
        let weights = weights.and_then(|c| c.as_primitive_opt::<Int64Type>());
        self.rows(
            batch,
            "module",
            |_| true,
            |module, row| {
                let weights = weights.filter(|weights| weights.is_valid(row));
                let weight = weights.map_or(0, |weights| weights.value(row));
                module.sampled_ns = module.sampled_ns.saturating_add(weight);
            },
        );
    }

    pub(super) fn stacks(&mut self, batch: &RecordBatch) {
        self.rows(batch, "module", |_| true, |module, _| module.frames += 1);
    }

    fn rows(
        &mut self,
        batch: &RecordBatch,
        column: &str,
        is_wanted: impl Fn(usize) -> bool,
        mut add: impl FnMut(&mut Module, usize),
    ) {
        let text = |name: &str| -> Option<&StringArray> {
            batch.column_by_name(name)?.as_string_opt::<i32>()
        };
        let (Some(modules), functions) = (text(column), text("function")) else { return };
        for row in (0..batch.num_rows()).filter(|&row| modules.is_valid(row) && is_wanted(row)) {
            let name = modules.value(row);
            if self.by_module.len() >= MODULES_MAX && !self.by_module.contains_key(name) {
                self.discarded += 1;
                continue;
            }
            let module = self.by_module.entry_ref(name).or_default();
            module.is_named |= functions.is_some_and(|functions| functions.is_valid(row));
            add(module, row);
        }
    }

    /// The missing files, those of the modules with the most time first, and how many rows were left
    /// out.
    pub(super) fn finish(self) -> (Vec<MissingSymbols>, u64) {
        let mut missing = Vec::new();
        for (name, module) in self.by_module.iter().filter(|(_, module)| !module.is_named) {
            for file in self.files.get(name).into_iter().flatten() {
                let pdb = file.split('/').next().unwrap_or_default();
                missing.push(MissingSymbols {
                    module: name.clone(),
                    file: format!("{file}/{pdb}"),
                    exclusive_ns: module.exclusive_ns,
                    sampled_ns: module.sampled_ns,
                    frames: module.frames,
                });
            }
        }
        missing.sort_by(|a, b| {
            let key =
                |one: &MissingSymbols| Reverse((one.exclusive_ns.max(one.sampled_ns), one.frames));
            key(a).cmp(&key(b)).then_with(|| a.file.cmp(&b.file))
        });
        (missing, self.discarded)
    }
}
