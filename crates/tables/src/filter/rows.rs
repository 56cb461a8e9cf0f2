//! The filter applied to rows of all tables as a source yields them.
//!
//! Operations are tested themselves. Rows of other tables stay if an operation that stays refers to
//! them: connections, channels, interfaces, sessions, trees, handles, slices. In captures they can come before the last
//! operation that refers to them, so they are held until the input ends ([`RowFilter::release`]), in
//! bounded number. Without operations, what the rows themselves say decides. Counters, steps and
//! scenarios of a load run are those of the period; the other conditions do not apply to them.
//! Referrals and coverage describe the whole input and always stay. Tables of CPUs know the period only
//! (`traces`).

use std::hash::Hash;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use hashbrown::{HashMap, HashSet};

use super::{Endpoint, Filter, traces};
use crate::named_columns::{Numbers, Text};
use crate::registry::{Part, Table};
use crate::tables::{Channel, Connection, Handle, Interface, Scenario, Session, Tree};

/// Most rows of other tables that are held; more are judged by what is known by then.
const HELD_MAX: usize = 1 << 18;
/// Most numbers of one kind and recording that are remembered; rows with later ones stay.
const NUMBERS_MAX: u64 = 1 << 33;
/// Most sessions or trees of a recording that are remembered; once there are more, all rows stay.
const IDS_MAX: usize = 1 << 20;

/// A filter at work on one pass over a source.
pub struct RowFilter {
    filter: Filter,
    /// Whether the pass has the table of operations.
    has_operations: bool,
    recordings: HashMap<String, Kept>,
    held: Vec<Part>,
    held_rows: usize,
    /// Whether the latest operation with a time is in the period.
    in_period: bool,
    kept: u64,
    all: u64,
}

/// What operations that stay refer to, of one recording.
#[derive(Default)]
struct Kept {
    operations: Numbered,
    connections: Numbered,
    handles: Numbered,
    sessions: Ids<u64>,
    trees: Ids<(u64, u64)>,
}

impl RowFilter {
    /// A filter for a pass that yields these tables.
    pub fn new(filter: Filter, tables: &[Table]) -> RowFilter {
        RowFilter {
            filter,
            has_operations: tables.contains(&Table::Operations),
            recordings: HashMap::new(),
            held: Vec::new(),
            held_rows: 0,
            in_period: true,
            kept: 0,
            all: 0,
        }
    }

    /// The columns of operations that the filter reads in a pass that yields these tables.
    pub fn columns(filter: &Filter, tables: &[Table]) -> Vec<&'static str> {
        let mut columns = Vec::new();
        if filter.from.is_some() || filter.to.is_some() {
            columns.extend(["request_start", "response_end"]);
        }
        let with_port = |all: &[Endpoint]| all.iter().any(|one| one.port().is_some());
        let conditions = [
            (!filter.clients.is_empty(), "client"),
            (with_port(&filter.clients), "client_port"),
            (!filter.servers.is_empty(), "server"),
            (with_port(&filter.servers), "server_port"),
            (!filter.shares.is_empty(), "share"),
            (!filter.users.is_empty(), "user"),
            (!filter.paths.is_empty(), "path"),
            (!filter.commands.is_empty(), "command"),
            (!filter.commands.is_empty(), "detail"),
            (filter.slower_ns.is_some(), "elapsed_ns"),
        ];
        columns.extend(conditions.iter().filter(|(is_used, _)| *is_used).map(|(_, name)| *name));
        let references: [(Table, &[&str]); 7] = [
            (Table::Connections, &["recording", "connection"]),
            (Table::Channels, &["recording", "connection"]),
            (Table::Interfaces, &["recording", "connection"]),
            (Table::Handles, &["recording", "handle"]),
            (Table::Sessions, &["recording", "session_id"]),
            (Table::Trees, &["recording", "session_id", "tree_id"]),
            (Table::Slices, &["recording", "operation"]),
        ];
        let wanted = references.iter().filter(|(table, _)| tables.contains(table));
        columns.extend(wanted.flat_map(|(_, names)| names.iter().copied()));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Operations that met the filter, and all operations, so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.kept, self.all)
    }

    /// Takes the next part of the source and returns what stays of it, unless it is held.
    ///
    /// # Errors
    ///
    /// Arrow's, for a column whose type contradicts the schema.
    pub fn part(&mut self, part: Part) -> Result<Option<Part>, ArrowError> {
        Ok(match part {
            Part::Operations(batch) => Some(Part::Operations(self.operations(&batch)?)),
            Part::Slices(batch) if self.has_operations => Some(Part::Slices(self.slices(&batch)?)),
            Part::Connections(ref rows) => self.hold(rows.len(), part),
            Part::Sessions(ref rows) => self.hold(rows.len(), part),
            Part::Trees(ref rows) => self.hold(rows.len(), part),
            Part::Handles(ref rows) => self.hold(rows.len(), part),
            Part::Channels(ref rows) => self.hold(rows.len(), part),
            Part::Interfaces(ref rows) => self.hold(rows.len(), part),
            Part::Counters(mut rows) => {
                rows.retain(|row| self.filter.has_time(row.time));
                Some(Part::Counters(rows))
            }
            Part::Steps(mut rows) => {
                rows.retain(|row| self.filter.overlaps(row.start, row.end));
                Some(Part::Steps(rows))
            }
            Part::Scenarios(mut rows) => {
                rows.retain(|row| self.has_scenario(row));
                Some(Part::Scenarios(rows))
            }
            Part::Interrupts(batch) => Some(Part::Interrupts(self.trace_rows(&batch, "start")?)),
            Part::Samples(batch) => Some(Part::Samples(self.trace_rows(&batch, "time")?)),
            Part::Switches(batch) => Some(Part::Switches(self.trace_rows(&batch, "time")?)),
            Part::Power(batch) => Some(Part::Power(self.trace_rows(&batch, "time")?)),
            Part::InterruptTotals(mut rows) => {
                // A sum cannot be divided: it stays if all of it is in the period.
                rows.retain(|row| self.filter.includes(row.start, row.end));
                Some(Part::InterruptTotals(rows))
            }
            Part::Traces(mut rows) => {
                rows.iter_mut().for_each(|row| traces::cut(&self.filter, row));
                Some(Part::Traces(rows))
            }
            part => Some(part),
        })
    }

    /// What the period leaves of a table of CPUs.
    fn trace_rows(&self, batch: &RecordBatch, column: &str) -> Result<RecordBatch, ArrowError> {
        traces::rows(&self.filter, batch, column)
    }

    /// Returns what stays of the rows that were held: at the end of the source, or earlier if all
    /// operations so far have arrived.
    pub fn release(&mut self) -> Vec<Part> {
        self.held_rows = 0;
        let mut held = std::mem::take(&mut self.held);
        for part in &mut held {
            match part {
                Part::Connections(rows) => rows.retain(|row| self.has_connection(row)),
                Part::Sessions(rows) => rows.retain(|row| self.has_session(row)),
                Part::Trees(rows) => rows.retain(|row| self.has_tree(row)),
                Part::Handles(rows) => rows.retain(|row| self.has_handle(row)),
                Part::Channels(rows) => rows.retain(|row| self.has_channel(row)),
                Part::Interfaces(rows) => rows.retain(|row| self.has_interface(row)),
                _ => {}
            }
        }
        held
    }

    /// Whether the limit of held rows is reached, so that [`RowFilter::release`] should be called.
    pub fn is_full(&self) -> bool {
        self.held_rows > HELD_MAX
    }

    fn hold(&mut self, rows: usize, part: Part) -> Option<Part> {
        self.held_rows += rows;
        self.held.push(part);
        None
    }

    fn operations(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let stays = self.test(batch)?;
        let kept = filter_record_batch(batch, &stays)?;
        self.all += batch.num_rows() as u64;
        self.kept += kept.num_rows() as u64;
        self.remember(&kept)?;
        Ok(kept)
    }

    /// Which operations meet the filter.
    fn test(&mut self, batch: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let mut stays = vec![true; batch.num_rows()];
        let filter = &self.filter;
        if filter.from.is_some() || filter.to.is_some() {
            let start = Numbers::<Int64Type>::from_batch(batch, "request_start")?;
            let end = Numbers::<Int64Type>::from_batch(batch, "response_end")?;
            for (row, stays) in stays.iter_mut().enumerate() {
                // A member of a compound has no times of its own; its lead is the row before it.
                if let Some(time) = start.get(row).or_else(|| end.get(row)) {
                    self.in_period = filter.has_time(time);
                }
                *stays &= self.in_period;
            }
        }
        let endpoints = [
            (&filter.clients, "client", "client_port"),
            (&filter.servers, "server", "server_port"),
        ];
        for (all, host, port) in endpoints.iter().filter(|(all, ..)| !all.is_empty()) {
            let hosts = Tested::from_batch(batch, host, |text| {
                all.iter().map(|one| one.has_host(text)).collect::<Vec<bool>>()
            })?;
            let ports = Numbers::<UInt16Type>::from_batch(batch, port)?;
            retain(&mut stays, |row| {
                let port = ports.get(row);
                hosts.get(row).is_some_and(|has| {
                    let mut both = all.iter().zip(has);
                    both.any(|(one, has)| *has && (one.port().is_none() || one.port() == port))
                })
            });
        }
        if let Some(least) = filter.slower_ns {
            let elapsed = Numbers::<Int64Type>::from_batch(batch, "elapsed_ns")?;
            retain(&mut stays, |row| elapsed.get(row).is_some_and(|ns| ns >= least));
        }
        if !filter.shares.is_empty() {
            keep_names(batch, "share", &mut stays, |text| {
                filter.shares.iter().any(|share| share.matches(text))
            })?;
        }
        if !filter.users.is_empty() {
            keep_names(batch, "user", &mut stays, |text| {
                filter.users.iter().any(|user| user.matches(text))
            })?;
        }
        if !filter.paths.is_empty() {
            keep_names(batch, "path", &mut stays, |text| {
                filter.paths.iter().any(|path| path.matches(text))
            })?;
        }
        if !filter.commands.is_empty() {
            let commands = Text::from_batch(batch, "command")?;
            let details = Text::from_batch(batch, "detail")?;
            let chosen = &filter.commands;
            let tested = Tested::from_batch(batch, "command", |command| {
                let is_clear = !chosen.iter().any(|one| one.needs_detail(command));
                is_clear.then(|| chosen.iter().any(|one| one.matches(command, None)))
            })?;
            retain(&mut stays, |row| match tested.get(row) {
                None => false,
                Some(Some(answer)) => *answer,
                Some(None) => commands.get(row).is_some_and(|command| {
                    chosen.iter().any(|one| one.matches(command, details.get(row)))
                }),
            });
        }
        Ok(stays.into())
    }

    /// Remembers what the operations of a batch refer to.
    fn remember(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let names = Text::from_batch(batch, "recording")?;
        let operation = Numbers::<UInt64Type>::from_batch(batch, "operation")?;
        let connection = Numbers::<UInt64Type>::from_batch(batch, "connection")?;
        let handle = Numbers::<UInt64Type>::from_batch(batch, "handle")?;
        let session = Numbers::<UInt64Type>::from_batch(batch, "session_id")?;
        let tree = Numbers::<UInt32Type>::from_batch(batch, "tree_id")?;
        for row in 0..batch.num_rows() {
            let name = names.get(row).unwrap_or_default();
            let kept = match self.recordings.get_mut(name) {
                Some(kept) => kept,
                None => self.recordings.entry(name.to_owned()).or_default(),
            };
            operation.get(row).into_iter().for_each(|number| kept.operations.add(number));
            connection.get(row).into_iter().for_each(|number| kept.connections.add(number));
            handle.get(row).into_iter().for_each(|number| kept.handles.add(number));
            if let Some(session) = session.get(row) {
                kept.sessions.add(session);
                if let Some(tree) = tree.get(row) {
                    kept.trees.add((session, tree.into()));
                }
            }
        }
        Ok(())
    }

    fn slices(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let names = Text::from_batch(batch, "recording")?;
        let operation = Numbers::<UInt64Type>::from_batch(batch, "operation")?;
        let stays: Vec<bool> = (0..batch.num_rows())
            .map(|row| {
                let kept = self.recordings.get(names.get(row).unwrap_or_default());
                let number = operation.get(row);
                number.is_some_and(|number| kept.is_some_and(|kept| kept.operations.has(number)))
            })
            .collect();
        filter_record_batch(batch, &stays.into())
    }

    fn has_connection(&self, row: &Connection) -> bool {
        if self.has_operations {
            let kept = self.recordings.get(&row.recording);
            return kept.is_some_and(|kept| kept.connections.has(row.connection));
        }
        self.filter.overlaps(row.start, row.end)
            && is_endpoint(&self.filter.clients, &row.client, row.client_port)
            && is_endpoint(&self.filter.servers, &row.server, row.server_port)
    }

    fn has_session(&self, row: &Session) -> bool {
        if self.has_operations {
            let kept = self.recordings.get(&row.recording);
            return kept.is_some_and(|kept| kept.sessions.has(row.session_id));
        }
        self.filter.overlaps(row.start, row.end)
    }

    fn has_tree(&self, row: &Tree) -> bool {
        if self.has_operations {
            let kept = self.recordings.get(&row.recording);
            return kept.is_some_and(|kept| kept.trees.has((row.session_id, row.tree_id)));
        }
        self.filter.overlaps(row.start, row.end)
    }

    fn has_handle(&self, row: &Handle) -> bool {
        if self.has_operations {
            let kept = self.recordings.get(&*row.recording);
            return kept.is_some_and(|kept| kept.handles.has(row.handle));
        }
        self.filter.overlaps(row.opened_at.unwrap_or(i64::MIN), row.closed_at.unwrap_or(i64::MAX))
    }

    /// Channels stay with their connection; of their intervals, those of the period.
    fn has_channel(&self, row: &Channel) -> bool {
        let end = row.interval_start.saturating_add_unsigned(row.interval_ns);
        let is_within = self.filter.overlaps(row.interval_start, end);
        if self.has_operations {
            let kept = self.recordings.get(&*row.recording);
            return is_within && kept.is_some_and(|kept| kept.connections.has(row.connection));
        }
        is_within
            && is_endpoint(&self.filter.clients, &row.client, row.client_port)
            && is_endpoint(&self.filter.servers, &row.server, row.server_port)
    }

    fn has_interface(&self, row: &Interface) -> bool {
        if self.has_operations {
            let kept = self.recordings.get(&row.recording);
            return kept.is_some_and(|kept| kept.connections.has(row.connection));
        }
        is_host(&self.filter.clients, &row.client) && is_host(&self.filter.servers, &row.server)
    }

    /// A scenario stays if some of it is in the period, so that its operations know their phase.
    fn has_scenario(&self, row: &Scenario) -> bool {
        let end = row.ended_at.or(row.started_at).unwrap_or(row.scheduled_at);
        self.filter.overlaps(row.scheduled_at, end)
    }
}

fn is_endpoint(all: &[Endpoint], host: &str, port: u64) -> bool {
    let has_port = |one: &Endpoint| one.port().is_none_or(|wanted| u64::from(wanted) == port);
    all.is_empty() || all.iter().any(|one| one.has_host(host) && has_port(one))
}

fn is_host(all: &[Endpoint], host: &str) -> bool {
    all.is_empty() || all.iter().any(|one| one.has_host(host))
}

fn retain(stays: &mut [bool], meets: impl Fn(usize) -> bool) {
    for (row, stays) in stays.iter_mut().enumerate() {
        *stays = *stays && meets(row);
    }
}

fn keep_names(
    batch: &RecordBatch,
    column: &str,
    stays: &mut [bool],
    meets: impl Fn(&str) -> bool,
) -> Result<(), ArrowError> {
    let tested = Tested::from_batch(batch, column, meets)?;
    retain(stays, |row| tested.get(row) == Some(&true));
    Ok(())
}

/// Answers for the texts of a column, each text tested once.
struct Tested<A> {
    /// The place of each row's answer.
    places: Vec<Option<usize>>,
    answers: Vec<A>,
}

impl<A> Tested<A> {
    fn from_batch(
        batch: &RecordBatch,
        column: &str,
        test: impl Fn(&str) -> A,
    ) -> Result<Tested<A>, ArrowError> {
        let texts = Text::from_batch(batch, column)?;
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut answers = Vec::new();
        let places = (0..batch.num_rows())
            .map(|row| {
                let text = texts.get(row)?;
                Some(*known.entry(text).or_insert_with(|| {
                    answers.push(test(text));
                    answers.len() - 1
                }))
            })
            .collect();
        Ok(Tested { places, answers })
    }

    fn get(&self, row: usize) -> Option<&A> {
        self.answers.get((*self.places.get(row)?)?)
    }
}

/// Numbers of rows that count from a small value, a bit each.
#[derive(Default)]
struct Numbered {
    words: Vec<u64>,
}

impl Numbered {
    fn add(&mut self, number: u64) {
        if number >= NUMBERS_MAX {
            return;
        }
        let word = (number / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (number % 64);
        }
    }

    fn has(&self, number: u64) -> bool {
        let word = self.words.get((number / 64) as usize);
        number >= NUMBERS_MAX || word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// Identifiers that can have any value.
struct Ids<T> {
    ids: HashSet<T>,
    is_over: bool,
}

impl<T> Default for Ids<T> {
    fn default() -> Ids<T> {
        Ids { ids: HashSet::new(), is_over: false }
    }
}

impl<T: Copy + Eq + Hash> Ids<T> {
    fn add(&mut self, id: T) {
        if self.ids.len() >= IDS_MAX {
            self.is_over = true;
        } else {
            self.ids.insert(id);
        }
    }

    fn has(&self, id: T) -> bool {
        self.is_over || self.ids.contains(&id)
    }
}

#[cfg(test)]
mod tests;
