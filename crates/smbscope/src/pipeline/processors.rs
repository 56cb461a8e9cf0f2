//! Where the time of processors goes: a pass over the tables of traces.

use arrow::array::RecordBatch;
use smbscope_analysis::processors::waiting::{COLUMNS, Operations, Waiting};
use smbscope_analysis::processors::{Limits, Processors, Report};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};

use super::pass::{Analysis, Monitor, OfOperations, pass};
use crate::exit::{Code, Failure};

/// Adds up the traces of the inputs.
///
/// # Errors
///
/// Those of the pass, and a period in which the traces have nothing.
pub fn processors(
    source: &Source,
    limits: Limits,
    monitor: &dyn Monitor,
) -> anyhow::Result<Report> {
    let report = add_up(source, limits, monitor)?;
    match source.filter() {
        Some(filter) if report.length_ns == 0 => {
            let period = filter.words(false);
            let message = format!("the trace has nothing in this period ({period})");
            Err(Failure::new(Code::NoMatch, message).into())
        }
        _ => Ok(report),
    }
}

fn add_up(source: &Source, limits: Limits, monitor: &dyn Monitor) -> anyhow::Result<Report> {
    let mut processors = Processors::new(limits);
    pass(source, &mut [&mut processors], monitor)?;
    Ok(processors.finish())
}

/// A trace next to operations of the same time: what holds the processors, and which operations waited meanwhile.
pub fn beside_operations(
    source: &Source,
    limits: Limits,
    monitor: &dyn Monitor,
) -> anyhow::Result<(Report, Option<Waiting>)> {
    let report = add_up(source, limits, monitor)?;
    let mut operations = Operations::new(&report);
    pass(source, &mut [&mut operations], monitor)?;
    let waiting = operations.finish();
    Ok((report, waiting))
}

impl OfOperations for Operations {
    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.operations(batch)?)
    }
}

impl Analysis for Processors {
    fn tables(&self) -> Vec<Table> {
        vec![
            Table::Interrupts,
            Table::InterruptTotals,
            Table::Samples,
            Table::Stacks,
            Table::Switches,
            Table::Power,
            Table::Cpus,
            Table::Devices,
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
            Part::InterruptTotals(rows) => self.totals(rows),
            Part::Samples(batch) => self.samples(batch),
            Part::Stacks(batch) => self.stacks(batch),
            Part::Power(batch) => self.power(batch),
            Part::Switches(batch) => self.switches(batch),
            Part::Cpus(rows) => self.cpus(rows),
            Part::Devices(rows) => self.devices(rows),
            Part::Images(rows) => self.images(rows),
            Part::Traces(rows) => self.traces(rows),
            _ => {}
        }
        Ok(())
    }
}
