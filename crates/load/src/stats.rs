//! The measurements of a step of a load run, added up: response times and lateness per scenario,
//! operations and their latency per command, errors by status.
//!
//! Owns the tallies and how those of several worker threads are merged. It does not own the rows
//! (`smbscope_tables::run`): a tally is what the live display, the early end of a step and the capacity
//! table need at once; the rows have the details. Histograms are those of HdrHistogram (three
//! significant digits, G. Tene), so that tallies merge without loss.

use serde::{Deserialize, Serialize};
use smbscope_wire::status::Status;

mod latencies;

pub use latencies::{Latencies, Summary};

/// Commands of SMB2 (MS-SMB2 section 2.2.1.2 numbers them from 0 to 18), and one for others.
const COMMANDS: usize = 20;
/// Number of different failures that are distinguished; others count as `other_errors`.
pub const FAILURES_MAX: usize = 64;

/// A failure that is not a status from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The TCP connection was refused.
    Refused,
    /// The server's machine or network cannot be reached.
    Unreachable,
    /// The connection was reset.
    Reset,
    /// The server closed the connection.
    Closed,
    /// No reply in time.
    Timeout,
    /// A reply that breaks the protocol, or whose signature is wrong.
    Protocol,
    /// Fewer bytes were read or written than requested.
    Short,
    /// Anything else on the client's side.
    Client,
}

impl FailureKind {
    /// As text, in the form of a status name.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Refused => "connection refused",
            FailureKind::Unreachable => "unreachable",
            FailureKind::Reset => "connection reset",
            FailureKind::Closed => "connection closed",
            FailureKind::Timeout => "timeout",
            FailureKind::Protocol => "protocol error",
            FailureKind::Short => "short transfer",
            FailureKind::Client => "client error",
        }
    }
}

/// Why an operation or a scenario ended with an unexpected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The server's status (MS-ERREF section 2.3).
    Status(u32),
    /// Anything else.
    Other(FailureKind),
}

impl Failure {
    /// `STATUS_...`, its number where it has no name, or the text of the kind.
    pub fn name(self) -> String {
        match self {
            Failure::Status(code) => match Status(code).name() {
                Some(name) => name.to_owned(),
                None => format!("{code:#010x}"),
            },
            Failure::Other(kind) => kind.name().to_owned(),
        }
    }
}

/// Errors by kind: at most [`FAILURES_MAX`] kinds, the others counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    kinds: Vec<(Failure, u64)>,
    other: u64,
}

impl Failures {
    /// Adds a number of errors.
    pub fn add(&mut self, failure: Failure, count: u64) {
        match self.kinds.iter().position(|kind| kind.0 == failure) {
            Some(at) => self.kinds[at].1 += count,
            None if self.kinds.len() < FAILURES_MAX => self.kinds.push((failure, count)),
            None => self.other += count,
        }
    }

    /// Number of all errors.
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.1).sum::<u64>() + self.other
    }

    /// Number of errors beyond the kinds that are distinguished.
    pub fn other(&self) -> u64 {
        self.other
    }

    /// Kinds with their counts, most frequent first.
    pub fn ranked(&self) -> Vec<(Failure, u64)> {
        let mut kinds = self.kinds.clone();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        kinds
    }

    fn merge(&mut self, other: &Failures) {
        for &(failure, count) in &other.kinds {
            self.add(failure, count);
        }
        self.other += other.other;
    }
}

/// One completed operation.
#[derive(Clone, Copy, Debug)]
pub struct OperationEnd {
    /// SMB2 command.
    pub command: u16,
    /// From the request's first byte to the reply's last; `None` without a reply.
    pub latency_ns: Option<i64>,
    /// Bytes of file data, in either direction.
    pub bytes: u64,
    /// Why its result was unexpected.
    pub failure: Option<Failure>,
}

/// One completed scenario.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioEnd {
    /// Its index, in the workload's order.
    pub scenario: usize,
    /// From its scheduled time to its start.
    pub late_ns: i64,
    /// From its scheduled time to its last reply.
    pub response_ns: i64,
    /// Operations that were sent.
    pub operations: u64,
    /// Operations that the client's directory cache made unnecessary.
    pub saved: u64,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// The operations of one command.
#[derive(Clone, Debug, Default)]
pub struct CommandTally {
    /// Operations that ended.
    pub operations: u64,
    /// Number of them with an unexpected result.
    pub errors: u64,
    /// Bytes of file data.
    pub bytes: u64,
    /// Latency of those with a reply.
    pub latency: Latencies,
}

/// The executions of one scenario.
#[derive(Clone, Debug, Default)]
pub struct ScenarioTally {
    /// Executions that ended, failed ones included.
    pub ended: u64,
    /// Number of them that failed.
    pub failed: u64,
    /// Operations that were sent.
    pub operations: u64,
    /// Operations that the client's directory cache made unnecessary.
    pub saved: u64,
    /// Response times, from the scheduled time, of executions that did not fail: immediate failures
    /// must not make a server look fast.
    pub response: Latencies,
    /// How much later than scheduled executions started.
    pub late: Latencies,
}

/// The measurements of one worker thread (or, merged, of a whole step).
#[derive(Clone, Debug)]
pub struct Tally {
    scenarios: Vec<ScenarioTally>,
    commands: [Option<Box<CommandTally>>; COMMANDS],
    /// How long replies waited in this machine before they were read.
    pub reply_waits: Latencies,
    /// Operations by the reason for their unexpected result.
    pub operation_failures: Failures,
    /// Scenarios by why they failed.
    pub scenario_failures: Failures,
}

impl Tally {
    /// A tally for a workload with the given number of scenarios.
    pub fn new(scenarios: usize) -> Tally {
        Tally {
            scenarios: (0..scenarios).map(|_| ScenarioTally::default()).collect(),
            commands: Default::default(),
            reply_waits: Latencies::default(),
            operation_failures: Failures::default(),
            scenario_failures: Failures::default(),
        }
    }

    /// Counts an operation.
    #[inline]
    pub fn operation(&mut self, end: &OperationEnd) {
        let index = usize::from(end.command).min(COMMANDS - 1);
        let tally = self.commands[index].get_or_insert_default();
        tally.operations += 1;
        tally.bytes += end.bytes;
        if let Some(latency_ns) = end.latency_ns {
            tally.latency.record(latency_ns);
        }
        if let Some(failure) = end.failure {
            tally.errors += 1;
            self.operation_failures.add(failure, 1);
        }
    }

    /// Counts a scenario. One that the workload does not have is ignored.
    pub fn scenario(&mut self, end: &ScenarioEnd) {
        let Some(tally) = self.scenarios.get_mut(end.scenario) else { return };
        tally.ended += 1;
        tally.operations += end.operations;
        tally.saved += end.saved;
        tally.late.record(end.late_ns);
        match end.failure {
            Some(failure) => {
                tally.failed += 1;
                self.scenario_failures.add(failure, 1);
            }
            None => tally.response.record(end.response_ns),
        }
    }

    /// Adds another thread's tally of the same workload.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, theirs) in self.scenarios.iter_mut().zip(&other.scenarios) {
            mine.ended += theirs.ended;
            mine.failed += theirs.failed;
            mine.operations += theirs.operations;
            mine.saved += theirs.saved;
            mine.response.merge(&theirs.response);
            mine.late.merge(&theirs.late);
        }
        for (mine, theirs) in self.commands.iter_mut().zip(&other.commands) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_default();
            mine.operations += theirs.operations;
            mine.errors += theirs.errors;
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
        }
        self.reply_waits.merge(&other.reply_waits);
        self.operation_failures.merge(&other.operation_failures);
        self.scenario_failures.merge(&other.scenario_failures);
    }

    /// What was counted until now; counting restarts from zero.
    pub fn take(&mut self) -> Tally {
        let empty = Tally::new(self.scenarios.len());
        std::mem::replace(self, empty)
    }

    /// Scenarios, in the workload's order.
    pub fn scenarios(&self) -> &[ScenarioTally] {
        &self.scenarios
    }

    /// Commands that occurred, by number; numbers beyond SMB2's are one.
    pub fn commands(&self) -> impl Iterator<Item = (u16, &CommandTally)> {
        self.commands
            .iter()
            .enumerate()
            .filter_map(|(command, tally)| tally.as_deref().map(|tally| (command as u16, tally)))
    }

    /// Operations that ended.
    pub fn operations(&self) -> u64 {
        self.commands().map(|(_, tally)| tally.operations).sum()
    }

    /// Bytes of file data that were read and written.
    pub fn bytes(&self) -> u64 {
        self.commands().map(|(_, tally)| tally.bytes).sum()
    }

    /// Latency of all operations together.
    pub fn latency(&self) -> Latencies {
        let mut all = Latencies::new();
        self.commands().for_each(|(_, tally)| all.merge(&tally.latency));
        all
    }

    /// Scenarios that ended, failed ones included.
    pub fn ended(&self) -> u64 {
        self.scenarios.iter().map(|tally| tally.ended).sum()
    }

    /// Scenarios that failed.
    pub fn failed(&self) -> u64 {
        self.scenarios.iter().map(|tally| tally.failed).sum()
    }

    /// Response times of all scenarios together.
    pub fn response(&self) -> Latencies {
        let mut all = Latencies::new();
        self.scenarios.iter().for_each(|tally| all.merge(&tally.response));
        all
    }

    /// Lateness of all scenarios together.
    pub fn late(&self) -> Latencies {
        let mut all = Latencies::new();
        self.scenarios.iter().for_each(|tally| all.merge(&tally.late));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(command: u16, latency_ns: i64) -> OperationEnd {
        OperationEnd { command, latency_ns: Some(latency_ns), bytes: 10, failure: None }
    }

    #[test]
    fn merged_threads_equal_one() {
        let (mut one, mut a, mut b) = (Tally::new(2), Tally::new(2), Tally::new(2));
        for i in 0..1_000_i64 {
            let end = OperationEnd {
                failure: (i % 100 == 0).then_some(Failure::Status(0xc000_0022)),
                ..operation((i % 25) as u16, i * 1_000_000)
            };
            let scenario = ScenarioEnd {
                scenario: (i % 2) as usize,
                late_ns: i * 1_000,
                response_ns: i * 100_000,
                operations: 27,
                saved: 1,
                failure: (i % 10 == 0).then_some(Failure::Other(FailureKind::Reset)),
            };
            let part = if i % 3 == 0 { &mut a } else { &mut b };
            for tally in [&mut one, part] {
                tally.operation(&end);
                tally.scenario(&scenario);
            }
        }
        let mut merged = a.take();
        assert_eq!(a.operations() + a.ended(), 0);
        merged.merge(&b);
        assert_eq!(merged.operations(), 1_000);
        assert_eq!(merged.ended(), 1_000);
        assert_eq!(merged.failed(), 100);
        assert_eq!(merged.response().summary(), one.response().summary());
        assert_eq!(merged.late().summary(), one.late().summary());
        assert_eq!(merged.operation_failures.ranked(), vec![(Failure::Status(0xc000_0022), 10)]);
        assert_eq!(merged.scenario_failures, one.scenario_failures);
        // 0 to 18 are commands, the six numbers beyond count together.
        assert_eq!(merged.commands().map(|(_, tally)| tally.operations).last(), Some(240));
        let latencies =
            |tally: &Tally| tally.commands().map(|c| c.1.latency.summary()).collect::<Vec<_>>();
        assert_eq!(latencies(&merged), latencies(&one));
    }

    #[test]
    fn failed_scenarios_have_no_response_time() {
        let mut tally = Tally::new(1);
        let end = ScenarioEnd {
            scenario: 0,
            late_ns: 0,
            response_ns: 7,
            operations: 1,
            saved: 0,
            failure: Some(Failure::Other(FailureKind::Timeout)),
        };
        tally.scenario(&end);
        tally.scenario(&ScenarioEnd { scenario: 1, ..end });
        assert_eq!((tally.ended(), tally.failed(), tally.response().count()), (1, 1, 0));
    }

    #[test]
    fn kinds_of_failures_are_bounded() {
        let mut failures = Failures::default();
        for code in 0..1_000 {
            failures.add(Failure::Status(code), 1);
            failures.add(Failure::Status(3), 1);
        }
        assert_eq!(failures.total(), 2_000);
        assert_eq!(failures.other(), 1_000 - FAILURES_MAX as u64);
        assert_eq!(failures.ranked()[0], (Failure::Status(3), 1_001));
        assert_eq!(failures.ranked().len(), FAILURES_MAX);
        assert_eq!(Failure::Status(0xc000_0022).name(), "STATUS_ACCESS_DENIED");
        assert_eq!(Failure::Status(0xdead_beef).name(), "0xdeadbeef");
    }

    /// `cargo test -p smbscope-load --release --lib -- --ignored --nocapture cost`
    #[test]
    #[ignore = "a measurement: prints the cost of counting an operation"]
    fn cost_of_an_operation() {
        let mut tally = Tally::new(12);
        let count = 10_000_000_u64;
        let begin = std::time::Instant::now();
        let mut random = 1_u64;
        for _ in 0..count {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let latency_ns = 20_000 + (random >> 40) as i64 * 4;
            tally.operation(&operation((random >> 60) as u16, latency_ns));
        }
        let each = begin.elapsed().as_nanos() as f64 / count as f64;
        println!("{each:.1} ns an operation, {} counted", tally.operations());
    }
}
