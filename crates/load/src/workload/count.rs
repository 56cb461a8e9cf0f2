//! What an execution sends: operations by command, and members of compounds.
//!
//! Computed from the plan alone, for each way in which a client caches directories. A packet carries at
//! least one request: it is an operation other than a later member of a compound. Counts exclude logon,
//! reconnects, breaks and the requests with which the client cache gets a lease: in `dirlease` every
//! lease is assumed to be held.

use std::fmt;
use std::str::FromStr;

use smbscope_wire::smb2::Command;

use super::model::{Op, PickHow, Request, Scenario, Transfer};
use super::plan::{Amount, Plan};
use crate::fileset::{BLOCK_BYTES, FileSet, Sizes};

/// How the client caches directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientCache {
    /// Everything is sent, as published (with Windows 7's own ten-second cache in the counts).
    #[default]
    Published,
    /// Opens that only reach that cache are not sent, nor are their closes.
    Collapse,
    /// Requests that a held directory lease answers are not sent.
    DirLease,
}

impl ClientCache {
    /// All variants.
    pub const ALL: [ClientCache; 3] =
        [ClientCache::Published, ClientCache::Collapse, ClientCache::DirLease];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ClientCache::Published => "published",
            ClientCache::Collapse => "collapse",
            ClientCache::DirLease => "dirlease",
        }
    }

    /// Whether the request is left out; in `dirlease`, provided that its lease is held.
    pub fn leaves_out(self, request: &Request) -> bool {
        match self {
            ClientCache::Published => false,
            ClientCache::Collapse => request.collapse,
            ClientCache::DirLease => request.lease.is_some(),
        }
    }
}

impl fmt::Display for ClientCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ClientCache {
    type Err = String;

    fn from_str(text: &str) -> Result<ClientCache, String> {
        let known = ClientCache::ALL.into_iter().find(|cache| cache.name() == text);
        known.ok_or_else(|| {
            format!("no client cache `{text}`: there is published, collapse and dirlease")
        })
    }
}

/// Numbers by command; whole in one execution, averages otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    operations: [f64; COMMANDS],
    members: [f64; COMMANDS],
}

const COMMANDS: usize = 20;

impl Counts {
    /// Operations of a command.
    pub fn operations(&self, command: Command) -> f64 {
        self.operations.get(usize::from(command.0)).copied().unwrap_or(0.0)
    }

    /// Number of them that are members of a compound other than its first.
    pub fn members(&self, command: Command) -> f64 {
        self.members.get(usize::from(command.0)).copied().unwrap_or(0.0)
    }

    /// All operations.
    pub fn total(&self) -> f64 {
        self.operations.iter().sum()
    }

    /// All packets with requests, including Cancels.
    pub fn packets(&self) -> f64 {
        self.total() - self.members.iter().sum::<f64>()
    }

    /// Commands that occur, with their operations and members.
    pub fn iter(&self) -> impl Iterator<Item = (Command, f64, f64)> + '_ {
        let pairs = self.operations.iter().zip(&self.members).enumerate();
        pairs
            .filter(|(_, (operations, _))| **operations > 0.0)
            .map(|(code, (&operations, &members))| (Command(code as u16), operations, members))
    }

    /// Adds another's numbers, multiplied by `factor`.
    pub fn add(&mut self, other: &Counts, factor: f64) {
        for (sum, number) in self.operations.iter_mut().zip(other.operations) {
            *sum += number * factor;
        }
        for (sum, number) in self.members.iter_mut().zip(other.members) {
            *sum += number * factor;
        }
    }

    /// The numbers of a scenario, given the number of requests of each transfer.
    pub fn of_scenario(
        scenario: &Scenario,
        cache: ClientCache,
        transfer: impl Fn(&Transfer) -> f64,
    ) -> Counts {
        let mut counts = Counts::default();
        for step in &scenario.steps {
            let sent = step.requests.iter().filter(|request| !cache.leaves_out(request));
            for (place, request) in sent.enumerate() {
                let number = match &request.op {
                    Op::Read(of) | Op::Write(of) => transfer(of),
                    _ => 1.0,
                };
                let code = usize::from(request.op.command().0);
                if let Some(sum) = counts.operations.get_mut(code) {
                    *sum += number;
                }
                if let Some(sum) = counts.members.get_mut(code).filter(|_| place > 0) {
                    *sum += number;
                }
            }
        }
        counts
    }
}

/// What this execution sends.
pub fn counts(plan: &Plan, cache: ClientCache) -> Counts {
    Counts::of_scenario(plan.scenario(), cache, |transfer| plan.amount(transfer).requests as f64)
}

/// What executions of a scenario send on average over the file set.
#[derive(Clone, Copy, Debug)]
pub struct Expectation<'a> {
    files: &'a FileSet,
}

impl<'a> Expectation<'a> {
    /// Averages over this file set, at its scale.
    pub fn new(files: &'a FileSet) -> Expectation<'a> {
        Expectation { files }
    }

    /// The average numbers of a scenario. For a scenario that deletes files, the average over the first
    /// pool that it deletes from.
    pub fn counts(&self, scenario: &Scenario, cache: ClientCache) -> Counts {
        Counts::of_scenario(scenario, cache, |transfer| self.requests(scenario, transfer))
    }

    /// Average number of requests of a transfer.
    fn requests(&self, scenario: &Scenario, transfer: &Transfer) -> f64 {
        let pick = scenario.picks.get(usize::from(transfer.file.0));
        let pool = pick.and_then(|pick| match &pick.how {
            PickHow::Any { pool } | PickHow::Make { pool } => Some(*pool),
            PickHow::Take { pools } => pools.first().copied(),
        });
        let Some(pool) = pool.and_then(|pool| self.files.pools().get(pool)) else { return 0.0 };
        let requests = |bytes| Amount::of_file(transfer, bytes).requests as f64;
        let sum: f64 = match &pool.sizes {
            Sizes::Bytes(list) => list.iter().map(|&bytes| requests(bytes)).sum(),
            Sizes::Blocks(list) => list.iter().map(|&blocks| Self::filled(blocks, requests)).sum(),
        };
        sum / pool.sizes.len().max(1) as f64
    }

    /// The average over the fill of the last block.
    fn filled(blocks: u32, requests: impl Fn(u64) -> f64) -> f64 {
        const PARTS: u64 = 64;
        let Some(whole) = blocks.checked_sub(1) else { return requests(0) };
        let parts = (0..PARTS).map(|part| (2 * part + 1) * BLOCK_BYTES / (2 * PARTS));
        parts.map(|part| requests(u64::from(whole) * BLOCK_BYTES + part)).sum::<f64>()
            / PARTS as f64
    }

    /// The average numbers of one user's hour.
    pub fn hour(&self, workload: &super::Workload, cache: ClientCache) -> Counts {
        let mut sum = Counts::default();
        for scenario in &workload.scenarios {
            sum.add(&self.counts(scenario, cache), scenario.runs_per_hour);
        }
        sum
    }
}
