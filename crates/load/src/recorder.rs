//! Converts the rows of all users to parts of tables.
//!
//! Users hand over their rows when a scenario ends. Rows are collected in a few shards, so that users
//! do not wait for each other, and become a batch when there are enough of them or a second has passed.
//! The writer takes the parts from a bounded channel: when the disk cannot keep up, the generator slows
//! down, which it notices itself (`self_check`), instead of losing rows.

mod opens;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use opens::Opens;
use smbscope_tables::Part;
use smbscope_tables::builder::{OperationBuilder, extension_of};
use smbscope_tables::run::Scenario;
use smbscope_tables::tables::{Connection, Session, Tree};

use smbscope_client::Ended;
use smbscope_client::row::Row;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Takes rows from all users of a run.
pub struct Recorder {
    recording: Arc<str>,
    shards: Vec<Mutex<Shard>>,
    next_operation: AtomicU64,
    ended_connections: AtomicU64,
    parts: SyncSender<Part>,
}

#[derive(Default)]
struct Shard {
    #[expect(clippy::vec_box, reason = "a row is 600 bytes and goes through several lists")]
    rows: Vec<Box<Row>>,
    scenarios: Vec<Scenario>,
    connections: Vec<Connection>,
    sessions: Vec<Session>,
    trees: Vec<Tree>,
    opens: Opens,
    /// Connections whose opens end with the waiting rows, and when they ended.
    ended: Vec<(u64, i64)>,
    builder: Option<OperationBuilder>,
}

impl Recorder {
    /// A recorder of the run `recording`, whose parts go to `parts`.
    pub fn new(recording: &str, shards: usize, parts: SyncSender<Part>) -> Recorder {
        Recorder {
            recording: recording.into(),
            shards: (0..shards.max(1)).map(|_| Mutex::default()).collect(),
            next_operation: AtomicU64::new(0),
            ended_connections: AtomicU64::new(0),
            parts,
        }
    }

    /// The run's name.
    pub fn recording(&self) -> &str {
        &self.recording
    }

    /// Operations that were handed over.
    pub fn operations(&self) -> u64 {
        self.next_operation.load(Ordering::Relaxed)
    }

    /// Number of connections that ended.
    pub fn ended_connections(&self) -> u64 {
        self.ended_connections.load(Ordering::Relaxed)
    }

    /// Opens that ended with their connection, after [`Recorder::finish`].
    pub fn opens_lost(&self) -> u64 {
        let lost =
            |shard: &Mutex<Shard>| shard.lock().unwrap_or_else(PoisonError::into_inner).opens.lost;
        self.shards.iter().map(lost).fold(0, u64::saturating_add)
    }

    /// Takes rows of a user.
    pub fn rows(&self, user: u64, rows: Vec<Box<Row>>) {
        self.with_shard(user, |shard| shard.rows.extend(rows));
    }

    /// Takes a scenario that a user ended, with its rows.
    pub fn scenario(&self, mut scenario: Scenario, rows: Vec<Box<Row>>) {
        scenario.recording = self.recording.to_string();
        self.with_shard(scenario.user_number, |shard| {
            shard.rows.extend(rows);
            shard.scenarios.push(scenario);
        });
    }

    /// Takes what is left of a session that ended. Its opens have ended as well, unless they continue
    /// in the user's next session.
    pub fn ended(&self, user: u64, mut left: Ended, opens_live_on: bool) {
        self.ended_connections.fetch_add(left.connections.len() as u64, Ordering::Relaxed);
        for connection in &mut left.connections {
            connection.recording = self.recording.to_string();
        }
        if let Some(session) = &mut left.session {
            session.recording = self.recording.to_string();
        }
        if let Some(tree) = &mut left.tree {
            tree.recording = self.recording.to_string();
        }
        self.with_shard(user, |shard| {
            shard.rows.extend(left.rows);
            if !opens_live_on {
                shard.ended.extend(left.connections.iter().map(|link| (link.connection, link.end)));
            }
            shard.connections.extend(left.connections);
            shard.sessions.extend(left.session);
            shard.trees.extend(left.tree);
        });
    }

    /// Takes a part of another table.
    pub fn part(&self, part: Part) {
        // The writer is gone only after an error, which it has reported already.
        let _ = self.parts.send(part);
    }

    /// Hands over the waiting rows. Call it each second.
    pub fn flush(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            self.empty(&mut shard);
        }
    }

    /// Hands over everything, including opens that were never closed. Call it at the end.
    pub fn finish(&self) {
        self.flush();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.opens.end_all(&self.recording);
            self.empty(&mut shard);
        }
    }

    fn with_shard(&self, user: u64, take: impl FnOnce(&mut Shard)) {
        let place = (user % self.shards.len() as u64) as usize;
        let Some(shard) = self.shards.get(place) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        take(&mut shard);
        if shard.rows.len() >= BATCH_ROWS {
            self.empty(&mut shard);
        }
    }

    fn empty(&self, shard: &mut Shard) {
        if !shard.scenarios.is_empty() {
            self.part(Part::Scenarios(std::mem::take(&mut shard.scenarios)));
        }
        if !shard.connections.is_empty() {
            self.part(Part::Connections(std::mem::take(&mut shard.connections)));
        }
        if !shard.sessions.is_empty() {
            self.part(Part::Sessions(std::mem::take(&mut shard.sessions)));
        }
        if !shard.trees.is_empty() {
            self.part(Part::Trees(std::mem::take(&mut shard.trees)));
        }
        self.operations_of(shard);
        for (connection, time) in shard.ended.drain(..) {
            shard.opens.end(&self.recording, connection, time);
        }
        let closed = shard.opens.take(&self.recording);
        if !closed.is_empty() {
            self.part(Part::Handles(closed));
        }
    }

    fn operations_of(&self, shard: &mut Shard) {
        if shard.rows.is_empty() {
            return;
        }
        // Later members of a compound end with its lead, which precedes them.
        let mut lead = 0;
        let ended = |row: Box<Row>| {
            let end = row.operation.response_end().or(row.operation.request_end());
            lead = end.unwrap_or(lead);
            (lead, row)
        };
        let mut rows: Vec<_> = std::mem::take(&mut shard.rows).into_iter().map(ended).collect();
        rows.sort_by_key(|row| row.0);
        // A schema that Arrow rejects would have failed every test.
        if shard.builder.is_none() {
            shard.builder = OperationBuilder::new(None).ok();
        }
        let Some(builder) = &mut shard.builder else { return };
        let first = self.next_operation.fetch_add(rows.len() as u64, Ordering::Relaxed);
        for (number, (end, row)) in rows.iter_mut().enumerate() {
            name(builder, &self.recording, row);
            row.operation.set_operation(first + number as u64);
            shard.opens.count(row, *end);
        }
        let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
        builder.append(&rows);
        if let Ok(batch) = builder.finish() {
            self.part(Part::Operations(batch));
        }
    }
}

/// Gives the row the numbers of its texts in the builder's pools.
fn name(builder: &mut OperationBuilder, recording: &str, row: &mut Row) {
    let (names, link, operation) = (&mut builder.names, &row.link, &mut row.operation);
    operation.set_recording(names.recording.intern(recording));
    operation.set_client(names.client.intern(&link.client));
    operation.set_server(names.server.intern(&link.server));
    if !link.user.is_empty() {
        operation.set_user(names.user.intern(&link.user));
    }
    if !link.share.is_empty() {
        operation.set_share(names.share.intern(&link.share));
    }
    if let Some(path) = &row.path {
        operation.set_path(names.path.intern(path));
        if let Some(extension) = extension_of(path) {
            operation.set_extension(names.extension.intern(&extension.to_lowercase()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use arrow::array::AsArray;
    use arrow::datatypes::{Int64Type, UInt64Type};
    use smbscope_tables::operation::Operation;

    use super::*;
    use smbscope_client::row::LinkNames;

    fn row(end: i64, path: &str) -> Box<Row> {
        let mut operation = Operation::default();
        operation.set_response_end(end);
        let link = LinkNames { user: "u".into(), ..LinkNames::default() };
        let link = Arc::new(link);
        Box::new(Row { operation, path: Some(path.into()), link, told: None, read_late_ns: None })
    }

    #[test]
    fn rows_are_numbered_in_the_order_in_which_they_ended() {
        let (sender, parts) = sync_channel(9);
        let recorder = Recorder::new("run", 1, sender);
        recorder.rows(1, vec![row(30, "a\\b.TXT"), row(10, "c")]);
        let scenario = Scenario { user_number: 2, ..Scenario::default() };
        recorder.scenario(scenario, vec![row(20, "a\\b.TXT")]);
        recorder.flush();
        let Part::Scenarios(scenarios) = parts.recv().unwrap() else { panic!() };
        assert_eq!(scenarios[0].recording, "run");
        let Part::Operations(batch) = parts.recv().unwrap() else { panic!() };
        let ends = batch["response_end"].as_primitive::<Int64Type>().values().to_vec();
        let numbers = batch["operation"].as_primitive::<UInt64Type>().values().to_vec();
        assert_eq!((ends, numbers), (vec![10, 20, 30], vec![0, 1, 2]));
        assert!(batch["share"].is_null(0) && batch["extension"].is_null(0));
        recorder.flush();
        assert!(parts.try_recv().is_err());
    }
}
