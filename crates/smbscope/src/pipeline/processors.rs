//! Where the time of processors goes: a pass over the tables of traces.

use smbscope_analysis::processors::{Limits, Processors, Report};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};

use super::pass::{Analysis, Monitor, pass};

/// Adds up the traces of the inputs.
pub fn processors(
    source: &Source,
    limits: Limits,
    monitor: &dyn Monitor,
) -> anyhow::Result<Report> {
    let mut processors = Processors::new(limits);
    pass(source, &mut [&mut processors], monitor)?;
    Ok(processors.finish())
}

impl Analysis for Processors {
    fn tables(&self) -> Vec<Table> {
        vec![
            Table::Interrupts,
            Table::Samples,
            Table::Stacks,
            Table::Switches,
            Table::Cpus,
            Table::Images,
            Table::Traces,
        ]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Interrupts(batch) => self.interrupts(batch),
            Part::Samples(batch) => self.samples(batch),
            Part::Stacks(batch) => self.stacks(batch),
            Part::Switches(batch) => self.switches(batch),
            Part::Cpus(rows) => self.cpus(rows),
            Part::Images(rows) => self.images(rows),
            Part::Traces(rows) => self.traces(rows),
            _ => {}
        }
        Ok(())
    }
}
