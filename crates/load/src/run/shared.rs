//! What all users of a run share: the server, the counters, and the step that is running.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use smbscope_tables::operation::Operation;
use smbscope_tables::run::{COOL_DOWN, MEASURED, WARM_UP};

use super::outage::Answers;
use super::user;
use super::users::Credentials;
use crate::capacity::ScheduleLog;
use crate::execute::FailedRequest;
use crate::recorder::Recorder;
use crate::stats::{Failure, Failures, OperationEnd, Tally};
use crate::workload::ClientCache;
use smbscope_client::clock::Clock;
use smbscope_client::row::Row;
use smbscope_client::{ClientError, Host};

/// Number of different unexpected answers that are remembered for the summary.
const UNEXPECTED_MAX: usize = 32;
/// Collects all others.
const UNEXPECTED_OTHERS: &str = "other errors (too many kinds to list)";

/// What users share.
pub struct Shared {
    /// Where the server is.
    pub host: Arc<Host>,
    /// The run's clock.
    pub clock: Clock,
    /// Receives the rows.
    pub recorder: Arc<Recorder>,
    /// How users log on.
    pub credentials: Credentials,
    /// How the client caches directories.
    pub cache: ClientCache,
    /// Whether executions follow each other at once.
    pub closed: bool,
    /// An execution that takes longer has failed.
    pub timeout: Duration,
    pub(super) sessions: AtomicU64,
    pub(super) step: RwLock<Arc<Running>>,
    pub(super) tallies: Vec<Mutex<Tally>>,
    pub(super) trouble: Mutex<Failures>,
    pub(super) unexpected: Mutex<BTreeMap<String, u64>>,
    pub(super) moved: Mutex<Moved>,
    pub(super) opens_resumed: AtomicU64,
    pub(super) answers: Mutex<Answers>,
    /// Users whom the server refused to log on since they last had a session: name and reason.
    pub(super) refused: Mutex<BTreeMap<u64, (String, String)>>,
    /// Gets a line for each logon.
    pub(super) logons: Option<Mutex<File>>,
}

/// File data that all users read and wrote, and how long their reads and writes took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Reads and writes.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
    /// Time with at least one in flight, on any connection, added up over the users.
    pub busy: Duration,
}

/// The step that is running.
#[derive(Debug)]
pub struct Running {
    /// Its number.
    pub number: u64,
    /// Every user's schedule.
    pub log: ScheduleLog,
    /// Begin of the measured window.
    window: i64,
    /// Its end: earlier than planned if the step ends early.
    window_end: AtomicI64,
    /// When users were asked to stop.
    stopped: AtomicI64,
    /// Scenarios scheduled in the window that have their row.
    measured: AtomicU64,
}

impl Running {
    pub(super) fn new(number: u64, log: ScheduleLog, window: (i64, i64)) -> Running {
        let (window_end, stopped) = (AtomicI64::new(window.1), AtomicI64::new(i64::MAX));
        Running { number, log, window: window.0, window_end, stopped, measured: AtomicU64::new(0) }
    }

    /// The measured window ends now, if it has not ended before.
    pub(super) fn end_window(&self, time: i64) {
        self.window_end.fetch_min(time, Ordering::Relaxed);
    }

    /// Users are about to be stopped: they no longer start what is due later.
    pub(super) fn stop(&self, time: i64) {
        self.stopped.store(time, Ordering::Relaxed);
    }

    /// When the step ended; later than any time while it continues.
    pub fn stopped(&self) -> i64 {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Counts a scenario's row.
    pub(super) fn recorded(&self, phase: &str) {
        if phase == MEASURED {
            self.measured.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Scenarios scheduled in the measured window that have their row.
    pub(super) fn measured(&self) -> u64 {
        self.measured.load(Ordering::Relaxed)
    }

    /// The phase in which something was scheduled.
    pub fn phase(&self, time: i64) -> &'static str {
        match time {
            time if time < self.window => WARM_UP,
            time if time < self.window_end.load(Ordering::Relaxed) => MEASURED,
            _ => COOL_DOWN,
        }
    }
}

impl Shared {
    /// The step that is running.
    pub fn step(&self) -> Arc<Running> {
        self.guard().clone()
    }

    fn guard(&self) -> RwLockReadGuard<'_, Arc<Running>> {
        self.step.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a user's next session.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts trouble of a connection.
    pub fn trouble(&self, error: &ClientError) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.add(user::failure_of(error), 1);
        drop(trouble);
        self.remember(error.to_string());
    }

    /// Counts a user's failed attempt to connect, which began at `began`.
    pub(super) fn not_connected(&self, user: u64, began: i64, error: &ClientError) {
        let failure = user::failure_of(error);
        // A server that refuses a logon answers.
        if !matches!(failure, Failure::Other(_)) {
            let name = self.credentials.of_user(user).name();
            self.refused_users().insert(user, (name, error.to_string()));
            return;
        }
        self.answers().failed(began, failure);
    }

    /// Users whom the server refused to log on since they last had a session, by number: name and reason.
    pub fn refused_users(&self) -> MutexGuard<'_, BTreeMap<u64, (String, String)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user has a session.
    pub(super) fn logged_on(&self, user: u64, session_id: u64) {
        self.refused_users().remove(&user);
        if let Some(logons) = &self.logons {
            let name = self.credentials.of_user(user).name();
            let mut logons = logons.lock().unwrap_or_else(PoisonError::into_inner);
            // The run does not depend on it.
            let _ = writeln!(logons, "{session_id:x} {name}");
        }
    }

    /// When the server answered, and when it did not.
    pub fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trouble of connections that was counted so far.
    pub(super) fn troubles(&self) -> u64 {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).total()
    }

    /// Remembers an unexpected answer for the summary.
    pub fn unexpected(&self, scenario: &str, failed: &FailedRequest) {
        let FailedRequest { failure, action, .. } = failed;
        self.remember(format!("{scenario}, {action}: {}", failure.name()));
    }

    /// Remembers an unexpected answer after which the scenario continued.
    pub fn ignored(&self, scenario: &str, failed: &FailedRequest) {
        let FailedRequest { failure, action, .. } = failed;
        self.remember(format!(
            "{scenario}, {action}: {}, which is not what the workload expects; the scenario continued, as clients do",
            failure.name()
        ));
    }

    /// Remembers opens that outlived their connection.
    pub fn resumed(&self, opens: u64) {
        if opens > 0 {
            self.opens_resumed.fetch_add(opens, Ordering::Relaxed);
            self.remember_all("a durable open was reconnected".to_owned(), opens);
        }
    }

    pub(super) fn remember(&self, what: String) {
        self.remember_all(what, 1);
    }

    fn remember_all(&self, what: String, times: u64) {
        let mut known = self.unexpected.lock().unwrap_or_else(PoisonError::into_inner);
        let room = known.len() < UNEXPECTED_MAX || known.contains_key(&what);
        let what = if room { what } else { UNEXPECTED_OTHERS.to_owned() };
        *known.entry(what).or_default() += times;
    }

    /// Opens that outlived their connection, so far.
    pub fn opens_resumed(&self) -> u64 {
        self.opens_resumed.load(Ordering::Relaxed)
    }

    /// Counts an execution's rows, and the file data that they moved.
    pub(super) fn count(&self, user: u64, rows: &[Box<Row>]) {
        let mut sum = Moved::default();
        let mut in_flight = Vec::new();
        self.tally(user, |tally| {
            for row in rows {
                if let Some(ns) = row.read_late_ns {
                    tally.reply_waits.record(ns);
                }
                let row = &row.operation;
                let end = operation_end(row);
                tally.operation(&end);
                if matches!(end.command, 8 | 9) {
                    sum.operations += 1;
                    sum.bytes += end.bytes;
                    in_flight.extend(row.request_start().zip(row.response_end()));
                }
            }
        });
        if let Some(last) = rows.iter().filter_map(|row| row.operation.response_end()).max() {
            self.answers().answered(last);
        }
        // Several connections are busy at the same time, so that their busy times do not add up.
        sum.busy = covered(in_flight);
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.operations += sum.operations;
        moved.bytes += sum.bytes;
        moved.busy += sum.busy;
    }

    /// Counts in the tally of the user's group.
    pub(super) fn tally(&self, user: u64, count: impl FnOnce(&mut Tally)) {
        let place = (user % self.tallies.len().max(1) as u64) as usize;
        if let Some(tally) = self.tallies.get(place) {
            count(&mut tally.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(super) fn take_tally(&self) -> Tally {
        let mut sum = Tally::new(0);
        for (place, tally) in self.tallies.iter().enumerate() {
            let taken = tally.lock().unwrap_or_else(PoisonError::into_inner).take();
            match place {
                0 => sum = taken,
                _ => sum.merge(&taken),
            }
        }
        sum
    }

    pub(super) fn peek_tally(&self) -> Tally {
        let mut sum: Option<Tally> = None;
        for tally in &self.tallies {
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut sum {
                None => sum = Some(tally.clone()),
                Some(sum) => sum.merge(&tally),
            }
        }
        sum.unwrap_or_else(|| Tally::new(0))
    }
}

/// Length of the union of these intervals (begin, end).
fn covered(mut intervals: Vec<(i64, i64)>) -> Duration {
    intervals.sort_unstable();
    let (mut sum, mut until) = (0, i64::MIN);
    for (begin, end) in intervals {
        sum += (end - begin.max(until)).max(0);
        until = until.max(end);
    }
    Duration::from_nanos(sum as u64)
}

/// An operation's row as tallies count it. Only the scenario knows whether it was expected.
pub fn operation_end(row: &Operation) -> OperationEnd {
    // The command's code has the protocol above its 16 bits.
    let command = row.command().map_or(u16::MAX, |code| code as u16);
    let moved = matches!(command, 8 | 9);
    OperationEnd {
        command,
        latency_ns: row.elapsed_ns().filter(|_| row.waits() != Some(true)),
        bytes: if moved { row.transferred_bytes().unwrap_or(0) } else { 0 },
        failure: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_several_cover_counts_once() {
        let covered = |intervals: &[_]| covered(intervals.to_vec()).as_nanos();
        assert_eq!(covered(&[]), 0);
        assert_eq!(covered(&[(10, 20), (15, 25), (12, 13), (40, 41)]), 16);
        assert_eq!(covered(&[(40, 41), (10, 20), (20, 30)]), 21);
        assert_eq!(covered(&[(5, 3)]), 0);
    }
}
