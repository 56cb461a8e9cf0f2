//! Where the time goes: a pass that ends in the summary that a report shows.

use arrow::array::RecordBatch;
use smbscope_analysis::both_sides::{BothSidesTally, COLUMNS};
use smbscope_analysis::explain::{Diagnosis, Explain};
use smbscope_analysis::summary::{Options, Report, Summary, columns};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::description::RunDescription;
use smbscope_tables::slice::Slice;

use super::pass::{Analysis, Monitor, OfOperations, pass};

/// Sums up the inputs; in the same pass makes a diagnosis, if one is begun.
pub fn summarize(
    source: &Source,
    options: Options,
    mut explain: Option<Explain>,
    monitor: &dyn Monitor,
) -> anyhow::Result<(Report, Option<Diagnosis>)> {
    let mut summary = Summary::new(options);
    let mut analyses: Vec<&mut dyn Analysis> = vec![&mut summary];
    if let Some(explain) = &mut explain {
        analyses.push(explain);
    }
    // Only logs of events need it: other rows have numbers of messages.
    let mut both_sides = source.has_event_logs().then(BothSidesTally::default);
    if let Some(both_sides) = &mut both_sides {
        analyses.push(both_sides);
    }
    pass(source, &mut analyses, monitor)?;
    let diagnosis = explain.map(Explain::finish).transpose()?;
    let mut report = summary.finish();
    report.both_sides = both_sides.and_then(BothSidesTally::finish);
    Ok((report, diagnosis))
}

impl OfOperations for BothSidesTally {
    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.operations(batch)?)
    }
}

impl Analysis for Summary {
    fn tables(&self) -> Vec<Table> {
        vec![
            Table::Steps,
            Table::Scenarios,
            Table::Counters,
            Table::Operations,
            Table::Slices,
            Table::Connections,
            Table::Channels,
            Table::Interfaces,
            Table::Sessions,
            Table::Trees,
            Table::Handles,
            Table::ServerEvents,
            Table::NetTests,
            Table::NetRoundTrips,
            Table::Coverage,
        ]
    }

    fn columns(&self) -> Vec<&'static str> {
        columns()
    }

    fn run(&mut self, run: &RunDescription, is_complete: bool) {
        Summary::run(self, run, is_complete);
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Operations(batch) => self.operations(batch)?,
            Part::Connections(rows) => self.connections(rows),
            Part::Channels(rows) => self.channels(rows),
            Part::Interfaces(rows) => self.interfaces(rows),
            Part::Sessions(rows) => self.sessions(rows),
            Part::Trees(rows) => self.trees(rows),
            Part::Handles(rows) => self.handles(rows),
            Part::Coverage(row) => self.coverage(row),
            Part::ServerEvents(rows) => self.logged(rows),
            Part::NetTests(rows) => self.net_tests(rows),
            Part::NetRoundTrips(rows) => self.net_round_trips(rows),
            Part::Steps(rows) => self.steps(rows),
            Part::Scenarios(rows) => self.scenarios(rows),
            Part::Counters(rows) => self.counters(rows),
            Part::Slices(batch) => self.slices(&Slice::from_batch(batch)),
            _ => {}
        }
        Ok(())
    }
}
