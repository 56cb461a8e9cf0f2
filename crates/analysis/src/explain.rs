//! The diagnosis: what makes a share slow, most costly first.
//!
//! [`Explain`] takes operations while they stream by, in bounded memory. [`Explain::finish`] ranks
//! what it found by the time that would be saved without it: the sum of what each operation would
//! save, and for the first operations, which are kept, the result of replaying them without it. Time
//! is the busy time of connections, in which every moment is divided among the operations in flight;
//! so the shares of all findings refer to one total. Clients' pauses below a second are part of it
//! only if they are a finding.
//! Findings may overlap: a repeated lookup on a slow server is part of both.
//!
//! Each finding has a file in `findings/` with its title, its remedies and the literature or
//! specification behind it; [`findings`] lists them and their detectors. [`sequential_blocks`],
//! [`transfer_rates`], [`lookups`], [`server_time`], [`signing`] and [`breaks`] are observations that several findings
//! share; [`connections`] and [`durability`] give notes about what costs no time that could be measured.
//! `docs/adding.md` shows how to add a finding.

mod account;
mod attribution;
mod breaks;
mod candidate;
mod change;
mod channels;
mod connections;
mod counters;
mod data;
mod dependence;
mod detector;
mod durability;
mod durations;
mod findings;
mod in_a_row;
mod lookups;
mod measured;
mod network;
mod notes;
mod operation;
mod protocol_state;
mod remedies;
mod reply_silence;
mod savings;
mod sequential_blocks;
mod series;
mod server_time;
mod shared_link;
mod signing;
mod smb1_offer;
mod state;
mod transfer_rates;
mod unexplained;
mod waiting;
mod what_if;
pub mod why;
mod worth;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_findings::Weight;
use smbscope_tables::run::Counter;
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::{
    Channel, Connection, Coverage, Handle, Interface, NetRoundTrip, NetTest, ServerEvent, Step,
    Tree, Wait,
};

pub use data::*;
pub use operation::COLUMNS;

use crate::channels::Timeline;
use crate::durability::DurabilityTally;
use crate::logged::LoggedTally;
use crate::rows::busy_time::BusyTime;
use crate::rows::columns::Resolved;
use crate::stats::latency::{Grain, Latency, Sample};
use account::Accounts;
use candidate::Candidate;
use change::Change;
use channels::Channels;
use connections::Connections;
use counters::Counters;
use detector::Context;
use findings::Detectors;
use measured::Measured;
use network::Network;
use operation::{Act, Operation, Rows};
use protocol_state::ProtocolStates;
use reply_silence::ReplySilence;
use waiting::Waiting;
use what_if::ReplaySample;
use worth::{is_enough, judge_number, subtract_stragglers};

/// A diagnosis in progress.
#[derive(Default)]
pub struct Explain {
    recordings: HashMap<String, u32, foldhash::fast::RandomState>,
    /// Whether all recordings are events of Windows' server: remedies for Samba do not help there.
    is_windows: Option<bool>,
    servers: HashMap<String, u32, foldhash::fast::RandomState>,
    whole: Whole,
    span: Option<(i64, i64)>,
    /// The same for each recording.
    spans: HashMap<u32, (i64, i64), foldhash::fast::RandomState>,
    /// When any operation was in flight.
    active: BusyTime,
    elapsed: i128,
    smb1: u64,
    /// Operations that are signed or encrypted.
    protected: u64,
    /// Whether any operation has slices of crypto.
    has_crypto_slices: bool,
    reply_silence: ReplySilence,
    connections: Connections,
    channels: Channels,
    durability: DurabilityTally,
    sample: Option<ReplaySample>,
    logged: LoggedTally,
    timeline: Timeline,
    network: Network,
    detectors: Detectors,
    change: Change,
    counters: Counters,
    /// Times of operations.
    times: Option<Latency>,
    /// From which time in a row on users notice that they wait.
    noticed_ns: Option<i64>,
    accounts: Accounts,
    waiting: Waiting,
    protocol_states: ProtocolStates,
    /// Connections, and those of which one direction was recorded only.
    directions: (u64, u64),
    measured: Measured,
}

/// The columns of the operations table that a diagnosis with gains reads.
pub fn columns_with_gains() -> Vec<&'static str> {
    what_if::all_columns()
}

impl Explain {
    /// A diagnosis without operations, and without replays.
    pub fn new() -> Explain {
        Explain::default()
    }

    /// A diagnosis that replays the first operations, to compute what remedies would gain; it needs
    /// [`columns_with_gains`].
    pub fn with_gains() -> Explain {
        Explain { sample: Some(ReplaySample::default()), ..Explain::default() }
    }

    /// Likewise, but computes only the gain of one remedy for each of the first `findings`, with as many replays less.
    pub fn with_first_gains(findings: usize) -> Explain {
        Explain { sample: Some(ReplaySample::with_first_gains(findings)), ..Explain::default() }
    }

    /// Sets from which time in a row on users notice that they wait, ns; [`NOTICED_NS`] without it.
    pub fn noticing(mut self, ns: i64) -> Explain {
        self.noticed_ns = Some(ns);
        self
    }

    /// Adds connections, before or after their operations.
    pub fn connections(&mut self, rows: &[Connection]) {
        self.network.connections(rows);
        for row in rows {
            let recording = self.recording(&row.recording);
            self.connections.add(recording, row);
            self.channels.connection(recording, row);
            if let Some(sample) = &mut self.sample {
                sample.connection(row);
            }
        }
    }

    /// Adds tests of the network without SMB.
    pub fn net_tests(&mut self, rows: &[NetTest]) {
        self.network.tests(rows);
    }

    /// Adds round trips of the network without SMB.
    pub fn net_round_trips(&mut self, rows: &[NetRoundTrip]) {
        self.network.round_trips(rows);
    }

    /// Adds trees, before or after their operations: what is continuously available.
    pub fn trees(&mut self, rows: &[Tree]) {
        self.waiting.trees(rows);
        self.durability.trees(rows);
        for row in rows {
            let recording = self.recording(&row.recording);
            self.protocol_states.tree(recording, row);
        }
    }

    /// Adds opens, before or after their operations: which handles are persistent.
    pub fn handles(&mut self, rows: &[Handle]) {
        self.durability.handles(rows);
    }

    /// Adds coverage: what the recording contains, and what it lacks.
    pub fn coverage(&mut self, rows: &[Coverage]) {
        rows.iter().for_each(|row| self.connections.add_coverage(row));
        for row in rows {
            self.directions.0 += row.connections;
            self.directions.1 += row.connections_one_direction;
        }
        for row in rows.iter().filter(|row| row.operations > 0) {
            // The names of the events are in the format's.
            let is_windows = row.format.contains("SMBServer");
            self.is_windows = Some(self.is_windows.unwrap_or(true) && is_windows);
        }
    }

    /// Adds what clients waited for outside of operations.
    pub fn waits(&mut self, rows: &[Wait]) {
        for row in rows {
            let recording = self.recording(&row.recording);
            self.waiting.add(recording, std::slice::from_ref(row));
        }
    }

    /// Adds steps of load runs, before their operations: the measured windows.
    pub fn steps(&mut self, rows: &[Step]) {
        for row in rows {
            let recording = self.recording(&row.recording);
            self.measured.add(recording, row);
        }
    }

    /// Adds counters of the server.
    pub fn counters(&mut self, rows: &[Counter]) {
        rows.iter().for_each(|row| self.counters.add(row));
        self.timeline.counters(rows);
        self.network.counters(rows);
    }

    /// Adds what channels carried.
    pub fn timeline(&mut self, rows: &[Channel]) {
        self.timeline.channels(rows);
        self.network.channels(rows);
    }

    /// Adds interfaces that servers offered.
    pub fn interfaces(&mut self, rows: &[Interface]) {
        self.timeline.interfaces(rows);
    }

    /// Adds operations in the order in which they ended. Columns are found by name; those that are absent
    /// read as null. Fails only if a column has a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let numbers = match &mut self.sample {
            Some(sample) => sample.add(batch)?,
            None => 0..0,
        };
        self.durability.operations(batch)?;
        let mut rows = Rows::from_batch(batch)?;
        let mut recordings = Resolved::new(rows.columns.recording.keys());
        let mut servers = Resolved::new(rows.columns.server.keys());
        for row in 0..batch.num_rows() {
            let recording = match rows.columns.recording.key(row) {
                Some(key) => recordings.get(key, || {
                    self.recording(rows.columns.recording.text(key).unwrap_or_default())
                }),
                None => self.recording(""),
            };
            let server = rows.columns.server.key(row).map_or(0, |key| {
                servers.get(key, || {
                    let name = rows.columns.server.text(key).unwrap_or_default();
                    let number = 1 + self.servers.len() as u32;
                    *self.servers.entry_ref(name).or_insert(number)
                })
            });
            let mut op = rows.operation(row, recording);
            op.server = server;
            op.number = Some(numbers.start + row as u32).filter(|number| numbers.contains(number));
            op.silent_ns = self.reply_silence.before(&op);
            if self.measured.is_outside(recording, op.start) {
                continue;
            }
            self.detectors.see(&mut op);
            self.see(&op);
        }
        Ok(())
    }

    fn recording(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.recordings.get(name) {
            return number;
        }
        let number = self.recordings.len() as u32;
        self.recordings.insert(name.to_owned(), number);
        number
    }

    fn see(&mut self, op: &Operation) {
        self.whole.operations += 1;
        if let (Some(sample), Some(_)) = (&mut self.sample, op.number) {
            sample.see(op);
        }
        // Clients that support both begin with SMB1's Negotiate.
        let is_smb1 = op.columns.protocol.get(op.row) == Some(1);
        self.smb1 += u64::from(is_smb1 && op.act != Act::Logon);
        let columns = op.columns;
        let is_protected = columns.signed.is_set(op.row) || columns.encrypted.is_set(op.row);
        self.protected += u64::from(is_protected);
        self.has_crypto_slices |= op.slice(Kind::CryptoIn).or(op.slice(Kind::CryptoOut)).is_some();
        if op.is_timed {
            let whole = &mut self.whole;
            whole.timed += 1;
            let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
            add(&mut whole.busy_ns, op.busy_ns);
            add(&mut whole.transfer_ns, op.of_busy(op.transfer_ns()));
            if let Some((server, network)) = op.split() {
                add(&mut whole.server_ns, op.of_busy(server));
                add(&mut whole.network_ns, op.of_busy(network));
            }
            self.elapsed += i128::from(op.elapsed_ns);
            let times = self.times.get_or_insert_with(|| Latency::new(Grain::Coarse));
            times.record(&Sample::new(op.elapsed_ns));
            if let Some(start) = op.start {
                let end = start.saturating_add(op.elapsed_ns);
                let (first, last) = self.span.unwrap_or((start, end));
                self.span = Some((first.min(start), last.max(end)));
                let span = self.spans.entry(op.recording).or_insert((start, end));
                *span = (span.0.min(start), span.1.max(end));
                self.active.add(start, end);
            }
        }
        self.accounts.see(op);
        self.channels.see(op);
        self.protocol_states.see(op);
        self.network.see(op);
        self.change.see(op);
    }

    /// The findings and notes. Fails as [`Explain::operations`] does.
    pub fn finish(mut self) -> Result<Diagnosis, ArrowError> {
        let timeline = std::mem::take(&mut self.timeline);
        let channels = timeline.finish().map_or_else(Vec::new, |all| all.findings);
        let network = std::mem::take(&mut self.network).finish();
        let mut whole = self.whole;
        if whole.timed > 0 {
            whole.elapsed_ns_mean = (self.elapsed / i128::from(whole.timed)) as i64;
        }
        whole.lasted_ns = self.span.map_or(0, |(first, last)| last.saturating_sub(first));
        whole.active_ns = self.active.ns();
        let mut context = Context {
            connections: &self.connections,
            whole,
            has_crypto_slices: self.has_crypto_slices,
            notes: Vec::new(),
            pauses: None,
            protection_cost: None,
        };
        let mut candidates = std::mem::take(&mut self.detectors).finish(&mut context);
        let Context { notes: more, pauses, protection_cost, .. } = context;
        let waits = self.waiting.groups();
        candidates.extend(self.outside_of_operations());
        worth::drop_stalls_of_paths(&mut candidates);
        for one in &mut candidates {
            let keys = one.connection_keys();
            let channels = |key| self.channels.of(key);
            let state = self.protocol_states.of(&keys, &self.connections, channels);
            remedies::adapt(one, state);
        }
        let mut notes = self.notes(protection_cost, &channels, &network)?;
        notes.extend(more);
        whole.think_ns = pauses.as_ref().map_or(0, |pauses| pauses.sum_ns);
        whole.waited_ns = candidates
            .iter()
            .fold(whole.busy_ns, |sum, one| sum.saturating_add(one.beyond_busy_ns));
        self.weigh(&mut candidates, &whole)?;
        for Candidate { finding, .. } in &mut candidates {
            judge_number(finding);
            self.counters.judge(finding);
            network::judge(finding, &network);
        }
        if candidates.iter().any(|one| one.finding.kind == FindingKind::Polling) {
            notes.retain(|note| note.about != About::Polling);
        }
        let mut unexplained = None;
        if let Some(sample) = &mut self.sample {
            let reported = candidates.iter().filter(|one| is_reported(&one.finding));
            unexplained = unexplained::unexplained(sample, reported.map(|one| &one.savings))?;
            sample.judge(&mut candidates)?;
        }
        let mut findings: Vec<_> = candidates.into_iter().map(|one| one.finding).collect();
        if self.is_windows == Some(true) {
            for finding in &mut findings {
                if finding.remedies.iter().any(|remedy| remedy.at != "Samba") {
                    finding.remedies.retain(|remedy| remedy.at != "Samba");
                }
            }
        }
        let noticed_ns = self.noticed_ns.unwrap_or(NOTICED_NS);
        let (account, slowest) = std::mem::take(&mut self.accounts).finish();
        let known = state::Known {
            whole: &whole,
            account: &account,
            slowest: slowest.as_ref(),
            noticed_ns,
            connections: self.directions.0,
            one_direction: self.directions.1,
        };
        for finding in &mut findings {
            finding.details.is_noticed = state::is_noticed(finding, noticed_ns);
        }
        let state = state::state(&findings, &known);
        let slowest = slowest.filter(|row| row.server_ns >= noticed_ns);
        let change = self.change.finish();
        let (logged, logged_other) = self.logged.finish();
        let times = self.times.as_ref().map(|times| times.distribution(false));
        let largest = self
            .connections
            .all()
            .into_iter()
            .max_by_key(|(_, facts)| facts.packets.iter().sum::<u64>());
        Ok(Diagnosis {
            state,
            p95_ns: times.and_then(|times| times.p95_ns),
            round_trip_ns: largest.and_then(|(_, facts)| facts.rtt_ns),
            account,
            slowest,
            waits,
            findings,
            pauses,
            unexplained,
            change,
            notes,
            logged,
            logged_other,
            channels,
            network,
            whole,
        })
    }

    /// What waits, connections and requests without a reply show.
    fn outside_of_operations(&mut self) -> Vec<Candidate> {
        let (connections, accounts) = (&self.connections, &mut self.accounts);
        let waiting = std::mem::take(&mut self.waiting);
        let stuck = waiting.stuck();
        let mut found = waiting.finish(connections, accounts);
        found.extend(findings::no_reply::find(accounts, connections, &stuck));
        found.extend(findings::connection_reset::find(accounts, connections));
        found
    }

    /// Computes what each candidate costs, without what others explain, and keeps those that cost enough, the
    /// most costly first.
    fn weigh(&mut self, candidates: &mut Vec<Candidate>, whole: &Whole) -> Result<(), ArrowError> {
        let explained: Vec<_> =
            candidates.iter_mut().map(|one| std::mem::take(&mut one.explains)).collect();
        for (kinds, numbers) in explained.iter().filter(|(_, numbers)| !numbers.is_empty()) {
            for one in candidates.iter_mut().filter(|one| kinds.contains(&one.finding.kind)) {
                one.without(numbers);
            }
        }
        candidates.iter_mut().for_each(|one| one.name_connections(&self.connections));
        let all = whole.waited_ns as f64;
        let least_ns = (MIN_SHARE * all) as i64;
        if let Some(sample) = &mut self.sample {
            for one in candidates.iter_mut().filter(|one| one.finding.saved_ns() > least_ns) {
                sample.replay_without(one)?;
            }
        }
        subtract_stragglers(candidates);
        let lengths = self.spans.values().map(|(first, last)| last.saturating_sub(*first));
        let length_ns = lengths.fold(0, i64::saturating_add).min(whole.lasted_ns);
        candidates.retain(|one| all > 0.0 && is_enough(one, length_ns));
        worth::drop_explained_rounds(candidates);
        candidates.iter_mut().for_each(Candidate::note_burst);
        for Candidate { finding, .. } in candidates.iter_mut() {
            if let Weight::Saved { saved_ns, share, .. } = &mut finding.weight {
                *share = (*saved_ns as f64 / all).min(1.0);
            }
        }
        candidates.sort_by_key(|Candidate { finding, .. }| {
            let is_broken = finding.details.effect == Effect::Broken;
            (!is_broken, std::cmp::Reverse(finding.saved_ns()), finding.kind)
        });
        Ok(())
    }

    /// Adds events that a server or client logged on its own.
    pub fn logged(&mut self, rows: &[ServerEvent]) {
        self.logged.add(rows);
    }
}

/// Bits per second; none without bytes or time.
fn rate(bytes: u64, ns: i64) -> Option<f64> {
    (bytes > 0 && ns > 0).then(|| 8e9 * bytes as f64 / ns as f64)
}
