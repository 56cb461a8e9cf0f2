//! Where the time of CPUs goes: a pass over the tables of traces.

use arrow::array::RecordBatch;
use smbscope_analysis::processors::waiting::{COLUMNS, Operations, Waiting};
use smbscope_analysis::processors::{Context, Limits, Processors, Report};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::filter::Filter;

use super::pass::{Analysis, Monitor, OfOperations, pass};
use crate::exit::{Code, Failure};

/// Adds up the traces of the inputs.
///
/// # Errors
///
/// Those of the pass, and a period in which the traces have nothing.
pub fn processors(
    source: &mut Source,
    limits: Limits,
    monitor: &dyn Monitor,
) -> anyhow::Result<Report> {
    let report = add_up(source, limits, monitor)?;
    match source.filter() {
        Some(_) if report.length_ns > 0 && report.is_of_sums() && report.totals.is_none() => {
            Err(Failure::usage(
                "--from, --to: an input has sums of its whole length, which cannot be cut to this period, and no interval of the input is within it: choose a period that contains whole intervals (the tables `Usage From ...` of the input), or the whole input",
            ))
        }
        Some(filter) if report.length_ns == 0 => {
            let period = filter.words(false, 0);
            let message = format!("the trace has nothing in this period ({period})");
            Err(Failure::new(Code::NoMatch, message).into())
        }
        _ => Ok(report),
    }
}

fn add_up(source: &mut Source, limits: Limits, monitor: &dyn Monitor) -> anyhow::Result<Report> {
    let mut processors = Processors::new(limits);
    if let Some(filter) = source.filter().cloned()
        && (filter.from.is_some() || filter.to.is_some())
    {
        processors.context(context(source, &filter, monitor)?);
    }
    pass(source, &mut [&mut processors], monitor)?;
    Ok(processors.finish())
}

/// What the whole traces say that a period of them does not: what ran when it begins, and what was recorded.
fn context(source: &mut Source, filter: &Filter, monitor: &dyn Monitor) -> anyhow::Result<Context> {
    source.spool()?;
    source.set_filter(Filter::default());
    let mut context = Context::new(filter.from);
    let read = pass(source, &mut [&mut context], monitor);
    source.set_filter(filter.clone());
    read?;
    Ok(context)
}

impl Analysis for Context {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Interrupts, Table::Switches]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Interrupts(batch) => self.interrupts(batch),
            Part::Switches(batch) => self.switches(batch),
            _ => {}
        }
        Ok(())
    }
}

/// A trace next to operations of the same time: what holds the CPUs, and which operations waited meanwhile.
pub fn cpu_report_for_operations(
    source: &mut Source,
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
