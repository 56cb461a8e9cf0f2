//! Operations for other programs: one pass that writes as it reads.

mod slices;

use std::io::Write;

use arrow::array::RecordBatch;
use smbscope_report::export::perfetto::{self, PerfettoTrace};
use smbscope_report::export::prometheus::{self, Metrics};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};

use super::pass::{Analysis, Monitor, OfOperations, pass};
use slices::SliceFeed;

/// Writes all operations to a trace. Returns the number of slices whose operation was not found.
pub fn to_perfetto<W: Write>(
    source: &Source,
    trace: &mut PerfettoTrace<W>,
    monitor: &dyn Monitor,
) -> anyhow::Result<u64> {
    let mut export = Export { trace, slices: SliceFeed::new(source)? };
    pass(source, &mut [&mut export], monitor)?;
    Ok(export.slices.orphans()?)
}

/// Writes the interrupts of CPU traces. Returns the number of sums, which have no times to show.
pub fn processors_to_perfetto<W: Write>(
    source: &Source,
    trace: &mut PerfettoTrace<W>,
    monitor: &dyn Monitor,
) -> anyhow::Result<usize> {
    let mut interrupts = Interrupts { trace, sums: 0 };
    pass(source, &mut [&mut interrupts], monitor)?;
    Ok(interrupts.sums)
}

/// Counts all operations for Prometheus.
pub fn metrics(source: &Source, monitor: &dyn Monitor) -> anyhow::Result<Metrics> {
    let mut metrics = Metrics::default();
    pass(source, &mut [&mut metrics], monitor)?;
    Ok(metrics)
}

impl OfOperations for Metrics {
    fn columns(&self) -> Vec<&'static str> {
        prometheus::columns()
    }

    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.operations(batch)?)
    }
}

struct Interrupts<'a, W> {
    trace: &'a mut PerfettoTrace<W>,
    sums: usize,
}

impl<W: Write> Analysis for Interrupts<'_, W> {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Interrupts, Table::InterruptTotals]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Interrupts(batch) => self.trace.interrupts(batch)?,
            Part::InterruptTotals(rows) => self.sums += rows.len(),
            _ => {}
        }
        Ok(())
    }
}

struct Export<'a, W> {
    trace: &'a mut PerfettoTrace<W>,
    slices: SliceFeed,
}

impl<W: Write> Analysis for Export<'_, W> {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Operations]
    }

    fn columns(&self) -> Vec<&'static str> {
        perfetto::COLUMNS.to_vec()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        let Part::Operations(batch) = part else { return Ok(()) };
        let rows = perfetto::rows(batch)?;
        for row in 0..rows.count {
            let slices = match rows.operation.get(row) {
                Some(number) => {
                    let recording = rows.recording.get(row).unwrap_or_default();
                    self.slices.read_to(recording, number)?;
                    self.slices.take(recording, number)
                }
                None => Vec::new(),
            };
            self.trace.operation(&rows, row, &slices)?;
        }
        Ok(())
    }
}
