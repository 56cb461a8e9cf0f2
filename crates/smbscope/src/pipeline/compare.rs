//! How two recordings differ: one pass over each.

use smbscope_analysis::compare::{self, COLUMNS, Comparison, Options, Side};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::description::RunDescription;

use super::pass::{Analysis, Monitor, pass};

/// Compares the recording before (`a`) with the one after (`b`).
pub fn compare(
    a: &Source,
    b: &Source,
    options: &Options,
    monitor: &dyn Monitor,
) -> anyhow::Result<Comparison> {
    let side = |source| {
        let mut side = Side::new(options);
        pass(source, &mut [&mut side], monitor)?;
        anyhow::Ok(side)
    };
    Ok(compare::compare(side(a)?, side(b)?, options))
}

impl Analysis for Side {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Scenarios, Table::Operations, Table::Coverage]
    }

    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn run(&mut self, run: &RunDescription, is_complete: bool) {
        Side::run(self, run, is_complete);
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Operations(batch) => self.operations(batch)?,
            Part::Scenarios(rows) => self.scenarios(rows),
            Part::Coverage(row) => self.coverage(row),
            _ => {}
        }
        Ok(())
    }
}
