//! The connections of a recording: a pass that keeps their rows.

use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::tables::Connection;

use super::pass::{Analysis, Monitor, pass};

/// Connections that are kept; more say nothing more about a hash.
const CONNECTIONS_MAX: usize = 1 << 20;

#[derive(Default)]
struct Connections {
    rows: Vec<Connection>,
    beyond_limit: u64,
}

/// The connections of the inputs, and how many more there are than are kept.
pub fn connections(
    source: &Source,
    monitor: &dyn Monitor,
) -> anyhow::Result<(Vec<Connection>, u64)> {
    let mut connections = Connections::default();
    pass(source, &mut [&mut connections], monitor)?;
    Ok((connections.rows, connections.beyond_limit))
}

impl Analysis for Connections {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Connections]
    }

    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        if let Part::Connections(rows) = part {
            let room = CONNECTIONS_MAX.saturating_sub(self.rows.len());
            self.rows.extend(rows.iter().take(room).cloned());
            self.beyond_limit += rows.len().saturating_sub(room) as u64;
        }
        Ok(())
    }
}
