//! What makes a share slow: a pass that ends in a diagnosis.

use smbscope_analysis::explain::{Diagnosis, Explain, columns_with_gains};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};

use super::pass::{Analysis, Monitor, pass};

/// Diagnoses the inputs, with the gain of each remedy where it can be replayed. Users notice waits of `noticed_ns` in a row.
pub fn diagnose(
    source: &Source,
    noticed_ns: i64,
    monitor: &dyn Monitor,
) -> anyhow::Result<Diagnosis> {
    let mut explain = Explain::with_gains().noticing(noticed_ns);
    pass(source, &mut [&mut explain], monitor)?;
    Ok(explain.finish()?)
}

impl Analysis for Explain {
    fn tables(&self) -> Vec<Table> {
        vec![
            Table::Connections,
            Table::Coverage,
            Table::Counters,
            Table::Channels,
            Table::Interfaces,
            Table::Waits,
            Table::NetTests,
            Table::NetRoundTrips,
            Table::Steps,
            Table::Operations,
            Table::Trees,
            Table::Handles,
            Table::ServerEvents,
        ]
    }

    fn columns(&self) -> Vec<&'static str> {
        columns_with_gains()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Operations(batch) => self.operations(batch)?,
            Part::Connections(rows) => self.connections(rows),
            Part::Trees(rows) => self.trees(rows),
            Part::Handles(rows) => self.handles(rows),
            Part::ServerEvents(rows) => self.logged(rows),
            Part::Steps(rows) => self.steps(rows),
            Part::Channels(rows) => self.timeline(rows),
            Part::Interfaces(rows) => self.interfaces(rows),
            Part::Waits(rows) => self.waits(rows),
            Part::NetTests(rows) => self.net_tests(rows),
            Part::NetRoundTrips(rows) => self.net_round_trips(rows),
            Part::Counters(rows) => self.counters(rows),
            Part::Coverage(row) => self.coverage(std::slice::from_ref(row)),
            _ => {}
        }
        Ok(())
    }
}
