//! One of the two recordings while it streams by: which operations count, to which group and to
//! which connection or user each belongs.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::{HashMap, HashSet};
use smbscope_tables::command_class::CommandClass;
use smbscope_tables::description::RunDescription;
use smbscope_tables::run::{DONE, MEASURED, Scenario};
use smbscope_tables::tables::Coverage;

use super::data::About;
use super::executions::{Execution, Executions};
use super::group::{Fact, Groups};
use super::{By, Options};
use crate::rows::columns::{Columns, Resolved, Text};
use crate::rows::status_class::StatusClass;
use crate::stats::clusters::{CLUSTERS_MAX, Clock, Unit};
use crate::stats::latency::{Grain, Sample};

/// Most commands with counters of their own; fewer than 100 have a name.
const COMMANDS_MAX: usize = 160;
/// Most dialects that are counted.
const DIALECTS_MAX: usize = 64;
/// Most recordings, and descriptions of runs, that are kept.
const RECORDINGS_MAX: usize = 1024;
/// Most connections and users that are followed.
const MEMBERS_MAX: usize = 1 << 20;
/// Suffix of SMB1's commands: some have the same names as SMB2's.
pub(super) const SMB1: &str = " (SMB1)";

/// One recording while it is read.
pub struct Side {
    options: Options,
    pub(super) about: About,
    pub(super) commands: Groups,
    /// Groups by a property other than the command.
    pub(super) others: Groups,
    /// Response times of scenarios.
    pub(super) scenarios: Groups,
    pub(super) clock: Clock,
    /// The clock of scenarios, which begin and end at other times than operations.
    pub(super) scenario_clock: Clock,
    executions: Executions,
    /// Recordings with an execution that was measured.
    measured: HashSet<u32, foldhash::fast::RandomState>,
    recordings: HashMap<String, u32, foldhash::fast::RandomState>,
    /// Cluster of each connection.
    links: HashMap<(u32, u64), u16, foldhash::fast::RandomState>,
    users: HashSet<u64, foldhash::fast::RandomState>,
    dialects: BTreeMap<String, u64>,
    signed: u64,
    encrypted: u64,
}

impl Side {
    /// A recording before anything was read.
    pub fn new(options: &Options) -> Side {
        Side {
            options: options.clone(),
            about: About::default(),
            commands: Groups::new(COMMANDS_MAX, Grain::Fine),
            others: Groups::new(options.groups_max, Grain::Coarse),
            scenarios: Groups::new(options.groups_max, Grain::Fine),
            clock: Clock::default(),
            scenario_clock: Clock::default(),
            executions: Executions::default(),
            measured: HashSet::default(),
            recordings: HashMap::default(),
            links: HashMap::default(),
            users: HashSet::default(),
            dialects: BTreeMap::new(),
            signed: 0,
            encrypted: 0,
        }
    }

    /// Adds the description of one machine's part of a load run, before any of its rows.
    pub fn run(&mut self, run: &RunDescription, complete: bool) {
        self.about.incomplete |= !complete;
        // Blocks of time count from the start of the run, which its machines share.
        let origin = if self.about.runs.is_empty() {
            run.start_ns
        } else {
            run.start_ns.min(self.clock.origin)
        };
        (self.clock.origin, self.scenario_clock.origin) = (origin, origin);
        if self.about.runs.len() < RECORDINGS_MAX {
            self.about.runs.push(run.clone());
        }
    }

    /// Adds the vantage point of the recording.
    pub fn coverage(&mut self, row: &Coverage) {
        let vantages = &mut self.about.vantages;
        if let Some(vantage) = &row.vantage
            && !vantages.contains(vantage)
        {
            vantages.push(vantage.clone());
        }
    }

    /// Adds executions of scenarios, before the operations: they decide which operations count.
    pub fn scenarios(&mut self, rows: &[Scenario]) {
        for row in rows {
            let recording = self.recording(&row.recording);
            let cluster = (row.user_number % CLUSTERS_MAX as u64) as u16;
            let measured = row.phase == MEASURED;
            if measured {
                self.measured.insert(recording);
            }
            self.executions.set(recording, row.scenario_run, Execution { cluster, measured });
            if let Some(connection) = row.connection
                && self.links.len() < MEMBERS_MAX
            {
                self.links.insert((recording, connection), cluster);
            }
            // Also those who finished nothing in the window.
            if self.users.len() < MEMBERS_MAX {
                self.users.insert(row.user_number);
            }
            if !measured && !self.options.all_phases {
                continue;
            }
            self.scenario_clock.see(row.scheduled_at);
            let number = self.scenarios.resolve(Some(&row.scenario));
            let fact = Fact {
                at: Some(row.scheduled_at),
                elapsed: row.response_ns.map(Sample::new),
                error: row.outcome != DONE,
                cluster,
                ..Fact::default()
            };
            self.scenarios.add(number, &fact, &self.scenario_clock);
        }
    }

    /// Adds operations. Columns are found by name; those that are absent read as null. Fails only
    /// on a column of a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        let resolved = |text: &Text| Resolved::new(text.keys());
        let mut commands = [resolved(&columns.command), resolved(&columns.command)];
        let classes = columns.command.command_classes();
        let mut recordings = resolved(&columns.recording);
        let by = match self.options.by {
            By::Command | By::Scenario => None,
            By::Share => Some(&columns.share),
            By::Client => Some(&columns.client),
            By::User => Some(&columns.user),
        };
        let mut groups = by.map(|text| (text, resolved(text)));
        for row in 0..batch.num_rows() {
            let recording = match columns.recording.key(row) {
                Some(key) => recordings
                    .get(key, || self.recording(columns.recording.text(key).unwrap_or_default())),
                None => self.recording(""),
            };
            let Some(cluster) = self.member(&columns, recording, row) else {
                self.about.left_out += 1;
                continue;
            };
            let fact = self.fact(&columns, &classes, row, cluster);
            let number = self.command(&columns, &mut commands, row);
            self.commands.add(number, &fact, &self.clock);
            if let Some((text, keys)) = &mut groups {
                let number = match text.key(row) {
                    Some(key) => keys.get(key, || self.others.resolve(text.text(key))),
                    None => self.others.resolve(None),
                };
                self.others.add(number, &fact, &self.clock);
            }
        }
        Ok(())
    }

    /// The number of a recording; later ones share the last.
    fn recording(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.recordings.get(name) {
            return number;
        }
        let number = self.recordings.len() as u32;
        if self.recordings.len() < RECORDINGS_MAX {
            self.recordings.insert(name.to_owned(), number);
        }
        number
    }

    /// The cluster of the operation's user or connection; none if the operation does not count.
    #[inline]
    fn member(&mut self, columns: &Columns, recording: u32, row: usize) -> Option<u16> {
        let execution =
            columns.scenario_run.get(row).and_then(|run| self.executions.get(recording, run));
        let by_phase = !self.options.all_phases && self.measured.contains(&recording);
        if by_phase && !execution.is_some_and(|execution| execution.measured) {
            return None;
        }
        if let Some(execution) = execution {
            return Some(execution.cluster);
        }
        let Some(connection) = columns.connection.get(row) else { return Some(0) };
        let next = (self.links.len() % CLUSTERS_MAX) as u16;
        let room = self.links.len() < MEMBERS_MAX;
        let link = (recording, connection);
        Some(match self.links.get(&link) {
            Some(&cluster) => cluster,
            None if room => *self.links.entry(link).or_insert(next),
            None => (connection % CLUSTERS_MAX as u64) as u16,
        })
    }

    #[inline]
    fn fact(
        &mut self,
        columns: &Columns,
        classes: &[CommandClass],
        row: usize,
        cluster: u16,
    ) -> Fact {
        let waits = columns.waits.is_set(row);
        let (start, end) = (columns.request_start.get(row), columns.response_end.get(row));
        let about = &mut self.about;
        about.operations += 1;
        if let Some(first) = start.or(end) {
            about.start_ns = Some(about.start_ns.map_or(first, |known| known.min(first)));
        }
        if let Some(last) = end.or(start) {
            about.end_ns = Some(about.end_ns.map_or(last, |known| known.max(last)));
        }
        // By its start, which the schedule of a load run sets, not by its end.
        let at = start.or(end);
        if let Some(at) = at {
            self.clock.see(at);
        }
        self.signed += u64::from(columns.signed.is_set(row));
        self.encrypted += u64::from(columns.encrypted.is_set(row));
        if let Some(dialect) = columns.dialect.get(row) {
            let room = self.dialects.len() < DIALECTS_MAX;
            match self.dialects.get_mut(dialect) {
                Some(n) => *n += 1,
                None if room => {
                    self.dialects.insert(dialect.to_owned(), 1);
                }
                None => {}
            }
        }
        let error = match columns.status.get(row) {
            None | Some(0) => false,
            Some(status) => StatusClass::from_status(status) == StatusClass::Error,
        };
        let moves = columns.command.key(row).and_then(|key| classes.get(key));
        let moves = matches!(moves, Some(CommandClass::Read | CommandClass::Write));
        let timed = |value: Option<i64>| if waits { None } else { value };
        Fact {
            at,
            elapsed: timed(columns.elapsed_ns.get(row)).map(Sample::new),
            server_ns: timed(columns.server_ns.get(row)),
            bytes: if moves { columns.transferred_bytes.get(row).unwrap_or(0) } else { 0 },
            error,
            cluster,
        }
    }

    #[inline]
    fn command(&mut self, columns: &Columns, keys: &mut [Resolved; 2], row: usize) -> u32 {
        let Some(key) = columns.command.key(row) else {
            let encrypted = columns.encrypted.is_set(row);
            return self.commands.resolve(Some(if encrypted {
                "(encrypted)"
            } else {
                "(unknown)"
            }));
        };
        let [smb1, smb2] = keys;
        let name = columns.command.text(key).unwrap_or("(unknown)");
        match columns.protocol.get(row) {
            Some(1) => smb1.get(key, || self.commands.resolve(Some(&format!("{name}{SMB1}")))),
            _ => smb2.get(key, || self.commands.resolve(Some(name))),
        }
    }

    /// Completes the facts about the recording after everything was read.
    pub(super) fn finish(&mut self) {
        self.commands.finish(&self.clock);
        self.others.finish(&self.clock);
        self.scenarios.finish(&self.scenario_clock);
        let about = &mut self.about;
        about.timed = self.commands.groups.iter().map(|(_, group)| group.timed()).sum();
        about.connections = self.links.len() as u64;
        about.users = (!self.users.is_empty())
            .then(|| users_of(&about.runs).unwrap_or(self.users.len() as u64));
        about.executions_forgotten = self.executions.forgotten;
        about.operations_of_others = self.others.others();
        about.vantages.sort_unstable();
        let mut dialects: Vec<_> = std::mem::take(&mut self.dialects).into_iter().collect();
        dialects.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        about.dialects = dialects.into_iter().map(|(name, _)| name).collect();
        let part =
            |n: u64| if about.operations > 0 { n as f64 / about.operations as f64 } else { 0.0 };
        (about.signed, about.encrypted) = (part(self.signed), part(self.encrypted));
    }

    /// Whether it has simulated users with a scenario that counts.
    pub(super) fn has_users(&self) -> bool {
        !self.users.is_empty()
    }

    pub(super) fn member_unit(&self) -> Unit {
        if self.executions.is_empty() { Unit::Connection } else { Unit::User }
    }
}
/// Users of runs with a given number of users, all machines together: of the largest run. A search has other
/// users in each step. None without a description.
fn users_of(runs: &[RunDescription]) -> Option<u64> {
    if runs.iter().any(|run| run.capacity.is_some() || run.users_to == 0) {
        return None;
    }
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs {
        let users = run.users_to.saturating_sub(run.users_from) / run.users_every.max(1) + 1;
        let sum = sums.entry(&run.run).or_default();
        *sum = sum.saturating_add(users);
    }
    sums.into_values().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_a_run_are_those_of_all_its_machines() {
        let part = |run: &str, from, to| RunDescription {
            run: run.into(),
            users_from: from,
            users_to: to,
            users_every: 2,
            ..RunDescription::default()
        };
        assert_eq!(users_of(&[]), None);
        assert_eq!(users_of(&[part("a", 1, 19), part("a", 2, 20)]), Some(20));
        // The same users again.
        assert_eq!(users_of(&[part("a", 1, 19), part("b", 1, 9)]), Some(10));
        let search = RunDescription { capacity: Some(Default::default()), ..part("a", 1, 19) };
        assert_eq!(users_of(&[search]), None);
    }
}
