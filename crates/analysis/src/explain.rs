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
//! Each trouble has a file in `findings/` with its title, its remedies and the literature or
//! specification behind it. [`sequential_blocks`], [`transfer_rates`], [`lookups`] and
//! [`server_time`] are observations that several troubles share; [`connections`] and [`durability`]
//! give notes about what costs no time that could be measured. `docs/adding.md` shows how to add a
//! finding.

mod attribution;
mod breaks;
mod candidate;
mod change;
mod channels;
mod connections;
mod counters;
mod data;
mod durability;
mod durations;
mod findings;
mod lookups;
mod network;
mod notes;
mod operation;
mod reply_silence;
mod savings;
mod sequential_blocks;
mod server_time;
mod shared_link;
mod signing;
mod smb1_offer;
mod transfer_rates;
mod unexplained;
mod what_if;
pub mod why;
mod worth;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_tables::run::Counter;
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::{
    Channel, Connection, Coverage, Handle, Interface, NetRoundTrip, NetTest, ServerEvent, Step,
    Tree,
};

pub use data::*;
pub use operation::COLUMNS;

use crate::channels::Timeline;
use crate::durability::DurabilityTally;
use crate::logged::LoggedTally;
use crate::rows::busy_time::BusyTime;
use crate::rows::columns::Resolved;
use breaks::Breaks;
use candidate::Candidate;
use change::Change;
use channels::Channels;
use connections::Connections;
use counters::Counters;
use findings::credit_starvation::CreditStarvation;
use findings::delayed_acknowledgement::DelayedAcknowledgement;
use findings::fixed_timer::FixedTimer;
use findings::head_of_line_blocking::HeadOfLineBlocking;
use findings::lock_contention::LockContention;
use findings::no_compounding::NoCompounding;
use findings::per_entry_requests::PerEntryRequests;
use findings::polling::Polling;
use findings::proxy_delay::ProxyDelay;
use findings::share_conflicts::ShareConflicts;
use findings::slow_client::SlowClient;
use findings::stragglers::Stragglers;
use lookups::Lookups;
use network::Network;
use operation::{Act, Operation, Rows};
use reply_silence::ReplySilence;
use sequential_blocks::SequentialBlocks;
use server_time::ServerTime;
use signing::Signing;
use transfer_rates::TransferRates;
use what_if::ReplaySample;
use worth::{is_enough, is_of_unknown_cause, judge_number, subtract_stragglers};

/// Most measured windows of load runs that are known.
const WINDOWS_MAX: usize = 4_096;
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
    sequential_blocks: SequentialBlocks,
    transfer_rates: TransferRates,
    credit_starvation: CreditStarvation,
    stragglers: Stragglers,
    durability: DurabilityTally,
    sample: Option<ReplaySample>,
    lookups: Lookups,
    server_time: ServerTime,
    signing: Signing,
    share_conflicts: ShareConflicts,
    lock_contention: LockContention,
    breaks: Breaks,
    fixed_timer: FixedTimer,
    proxy_delay: ProxyDelay,
    delayed_acknowledgement: DelayedAcknowledgement,
    head_of_line_blocking: HeadOfLineBlocking,
    per_entry_requests: PerEntryRequests,
    polling: Polling,
    no_compounding: NoCompounding,
    logged: LoggedTally,
    timeline: Timeline,
    network: Network,
    slow_client: SlowClient,
    change: Change,
    counters: Counters,
    /// Measured windows of load runs: recording, begin and end.
    windows: Vec<(u32, i64, i64)>,
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
        self.durability.trees(rows);
    }

    /// Adds opens, before or after their operations: which handles are persistent.
    pub fn handles(&mut self, rows: &[Handle]) {
        self.durability.handles(rows);
    }

    /// Adds coverage: what the recording contains, and what it lacks.
    pub fn coverage(&mut self, rows: &[Coverage]) {
        rows.iter().for_each(|row| self.connections.add_coverage(row));
        for row in rows.iter().filter(|row| row.operations > 0) {
            // The names of the events are in the format's.
            let is_windows = row.format.contains("SMBServer");
            self.is_windows = Some(self.is_windows.unwrap_or(true) && is_windows);
        }
    }

    /// Adds steps of load runs, before their operations: the measured windows.
    pub fn steps(&mut self, rows: &[Step]) {
        for row in rows {
            let recording = self.recording(&row.recording);
            if self.windows.len() < WINDOWS_MAX {
                self.windows.push((recording, row.start, row.end));
            }
        }
    }

    /// Whether an operation began in a measured window, or its recording has none.
    fn is_measured(&self, op: &Operation) -> bool {
        let mut windows = self.windows.iter().filter(|(recording, ..)| *recording == op.recording);
        let Some(first) = windows.next() else { return true };
        let start = op.start.unwrap_or(i64::MIN);
        std::iter::once(first).chain(windows).any(|(_, begin, end)| (*begin..*end).contains(&start))
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
        let mut rows = Rows::of(batch)?;
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
            op.pause_ns = self.slow_client.pause_before(&op);
            op.server = server;
            op.number = Some(numbers.start + row as u32).filter(|number| numbers.contains(number));
            op.silent_ns = self.reply_silence.before(&op);
            op.is_measured = op.act != Act::Logon || self.is_measured(&op);
            op.explained = self.explained(&op);
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

    /// The trouble that explains an operation's time by itself.
    fn explained(&mut self, op: &Operation) -> Option<Trouble> {
        let of = |is: bool, trouble: Trouble| is.then_some(trouble);
        let proxy = of(self.proxy_delay.see(op), Trouble::ProxyDelay);
        let refused = of(self.share_conflicts.see(op), Trouble::ShareConflicts);
        let parts = self.delayed_acknowledgement.see(op);
        let broken = of(self.breaks.explains(op), Trouble::BreakWaits);
        let parts = of(parts, Trouble::DelayedAcknowledgement);
        let known = proxy.or(refused).or(broken).or(parts);
        // Behind a proxy, the order of replies is the proxy's.
        known.or_else(|| of(self.head_of_line_blocking.see(op), Trouble::HeadOfLineBlocking))
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
            if let Some(start) = op.start {
                let end = start.saturating_add(op.elapsed_ns);
                let (first, last) = self.span.unwrap_or((start, end));
                self.span = Some((first.min(start), last.max(end)));
                let span = self.spans.entry(op.recording).or_insert((start, end));
                *span = (span.0.min(start), span.1.max(end));
                self.active.add(start, end);
            }
        }
        self.whole.think_ns = self.whole.think_ns.saturating_add(op.pause_ns);
        self.sequential_blocks.see(op);
        self.transfer_rates.see(op);
        self.credit_starvation.see(op);
        self.stragglers.see(op);
        self.lookups.see(op);
        self.server_time.see(op);
        self.signing.see(op);
        self.channels.see(op);
        self.lock_contention.see(op);
        self.breaks.see(op);
        self.fixed_timer.see(op);
        self.per_entry_requests.see(op);
        self.polling.see(op);
        self.network.see(op);
        self.change.see(op);
        self.no_compounding.see(op);
    }

    /// The findings and notes. Fails as [`Explain::operations`] does.
    pub fn finish(mut self) -> Result<Diagnosis, ArrowError> {
        let decisions = self.signing.notes(&self.connections);
        let signing_cost = std::mem::take(&mut self.signing).finish(&self.connections);
        let timeline = std::mem::take(&mut self.timeline);
        let channels = timeline.finish().map_or_else(Vec::new, |all| all.findings);
        let ratios = std::mem::take(&mut self.network).finish();
        let mut notes = self.notes(&signing_cost, &channels, &ratios)?;
        notes.extend(decisions);
        let mut whole = self.whole;
        if whole.timed > 0 {
            whole.elapsed_ns_mean = (self.elapsed / i128::from(whole.timed)) as i64;
        }
        whole.lasted_ns = self.span.map_or(0, |(first, last)| last.saturating_sub(first));
        whole.active_ns = self.active.ns();
        let blocked_ns = self.lock_contention.blocked_ns;
        let (pauses, slow_client) = self.slow_client.finish(&whole);
        // Pauses count where they are a finding.
        let paused_ns = slow_client.as_ref().map_or(0, |one| one.finding.saved_ns);
        whole.waited_ns = whole.busy_ns.saturating_add(blocked_ns).saturating_add(paused_ns);
        let all = whole.waited_ns as f64;
        let mut candidates = self.sequential_blocks.finish(&self.connections);
        candidates.extend(self.transfer_rates.finish(&self.connections));
        candidates.extend(self.credit_starvation.finish(&self.connections));
        candidates.extend(self.stragglers.finish());
        candidates.extend(self.lookups.finish());
        candidates.extend(self.server_time.finish());
        // Slices of crypto are more exact.
        candidates.extend(signing_cost.candidates.into_iter().filter(|_| !self.has_crypto_slices));
        candidates.push(self.share_conflicts.finish());
        candidates.push(self.lock_contention.finish());
        candidates.extend(self.breaks.finish());
        candidates.extend(self.proxy_delay.finish());
        candidates.extend(self.delayed_acknowledgement.finish());
        candidates.extend(self.head_of_line_blocking.finish());
        candidates.push(self.per_entry_requests.finish());
        let mut polling = Vec::new();
        let polled = self.polling.finish(&mut polling);
        let numbers = polled.savings.numbers();
        for one in
            candidates.iter_mut().filter(|one| one.finding.trouble == Trouble::FailingLookups)
        {
            one.without(&numbers);
        }
        candidates.push(polled);
        candidates.push(self.no_compounding.finish());
        let (timers, timed_out) = self.fixed_timer.finish();
        for one in candidates.iter_mut().filter(|one| is_of_unknown_cause(one.finding.trouble)) {
            one.without(&timed_out);
        }
        candidates.extend(timers);
        candidates.extend(slow_client);
        candidates.iter_mut().for_each(|one| one.name_connections(&self.connections));
        let least_ns = (LEAST_SHARE * all) as i64;
        if let Some(sample) = &mut self.sample {
            for one in candidates.iter_mut().filter(|one| one.finding.saved_ns > least_ns) {
                sample.replay_without(one)?;
            }
        }
        subtract_stragglers(&mut candidates);
        let length_ns = self
            .spans
            .values()
            .fold(0, |sum: i64, (first, last)| sum.saturating_add(last.saturating_sub(*first)));
        let length_ns = length_ns.min(whole.lasted_ns);
        candidates.retain(|one| all > 0.0 && is_enough(one, length_ns));
        for Candidate { finding, .. } in &mut candidates {
            finding.share = (finding.saved_ns as f64 / all).min(1.0);
            judge_number(finding);
            self.counters.judge(finding);
            network::judge(finding, &ratios);
        }
        if !candidates.iter().any(|one| one.finding.trouble == Trouble::Polling) {
            notes.extend(polling);
        }
        let unexplained = match &self.sample {
            Some(sample) => {
                let reported = candidates.iter().filter(|one| one.finding.is_reported());
                unexplained::unexplained(sample, reported.map(|one| &one.savings))?
            }
            None => None,
        };
        let mut findings: Vec<_> = candidates.into_iter().map(|one| one.finding).collect();
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.saved_ns), finding.trouble));
        if let Some(sample) = &mut self.sample {
            sample.judge(&mut findings)?;
        }
        let is_windows = self.is_windows == Some(true);
        for finding in findings.iter_mut().filter(|_| is_windows) {
            if finding.remedies.iter().any(|remedy| remedy.at != "Samba") {
                finding.remedies.retain(|remedy| remedy.at != "Samba");
            }
        }
        let change = self.change.finish();
        let logged = self.logged.finish();
        Ok(Diagnosis {
            findings,
            pauses,
            unexplained,
            change,
            notes,
            logged,
            channels,
            network: ratios,
            whole,
        })
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
