//! The diagnosis: what makes a share slow, most costly first.
//!
//! [`Explain`] takes operations while they stream by, in bounded memory, and [`Explain::finish`] ranks what it
//! found by the time that would be saved without it: each operation's own, and where the first operations are
//! kept, by replaying them without it. Time is the busy time of connections, in which every
//! moment is divided among the operations under way, and the clients' pauses below a second: so shares of
//! different findings are of one whole. Findings may overlap: a repeated lookup on a slow server is both.
//!
//! What is found stands in a file each, with the literature or specification behind it: [`blocks`],
//! [`lines`], [`credits`], [`lookups`], [`server`], [`stragglers`], [`conflicts`], [`apart`], [`pauses`]; what has no time in
//! [`connections`] and [`durability`].

mod attribution;
mod blocks;
mod conflicts;
mod connections;
mod credits;
mod data;
mod durability;
mod lines;
mod lookups;
mod no_compounding;
mod operation;
mod pauses;
mod savings;
mod server;
mod shared_link;
mod stragglers;
mod what_if;
mod words;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::{Connection, Coverage};

pub use data::*;
pub use operation::COLUMNS;

use crate::rows::busy_time::BusyTime;
use crate::rows::columns::Resolved;
use attribution::Gathered;
use blocks::Blocks;
use conflicts::Conflicts;
use connections::Connections;
use credits::Credits;
use durability::Durability;
use lines::Lines;
use lookups::Lookups;
use no_compounding::Apart;
use operation::{Act, Rows, Seen};
use pauses::{Pauses, Replies};
use savings::Spared;
use server::Server;
use stragglers::Stragglers;
use what_if::Sample;

/// Findings below this share of the time are none.
pub const LEAST_SHARE: f64 = 0.05;

/// A diagnosis that is being made.
#[derive(Default)]
pub struct Explain {
    recordings: HashMap<String, u32, foldhash::fast::RandomState>,
    servers: HashMap<String, u32, foldhash::fast::RandomState>,
    whole: Whole,
    span: Option<(i64, i64)>,
    /// When anything was under way.
    active: BusyTime,
    elapsed: i128,
    smb1: u64,
    /// Operations that are signed or encrypted, and whether what that costs was seen.
    protected: (u64, bool),
    pauses: Pauses,
    replies: Replies,
    connections: Connections,
    blocks: Blocks,
    lines: Lines,
    credits: Credits,
    stragglers: Stragglers,
    durability: Durability,
    sample: Option<Sample>,
    lookups: Lookups,
    server: Server,
    conflicts: Conflicts,
    apart: Apart,
}

/// The columns of the operations table that a diagnosis with gains reads.
pub fn columns_with_gains() -> Vec<&'static str> {
    what_if::all_columns()
}

impl Explain {
    /// Nothing yet.
    pub fn new() -> Explain {
        Explain::default()
    }

    /// One that replays the first operations with remedies, to tell what these would bring; it needs
    /// [`columns_with_gains`].
    pub fn with_gains() -> Explain {
        Explain { sample: Some(Sample::default()), ..Explain::default() }
    }

    /// Adds connections, before their operations or after them.
    pub fn connections(&mut self, rows: &[Connection]) {
        for row in rows {
            let recording = self.recording(&row.recording);
            self.connections.add(recording, row);
            if let Some(sample) = &mut self.sample {
                sample.connection(row);
            }
        }
    }

    /// Adds what was seen, and what was not.
    pub fn coverage(&mut self, rows: &[Coverage]) {
        rows.iter().for_each(|row| self.connections.add_coverage(row));
    }

    /// Adds operations in the order in which they ended. Columns are found by name; those that are absent
    /// read as null. Fails only on a column of a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let numbers = match &mut self.sample {
            Some(sample) => sample.add(batch)?,
            None => 0..0,
        };
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
            let mut seen = rows.seen(row, recording);
            seen.pause_ns = self.pauses.before(&seen);
            seen.server = server;
            seen.number =
                Some(numbers.start + row as u32).filter(|number| numbers.contains(number));
            seen.silent_ns = self.replies.silent_ns(&seen);
            self.see(&seen);
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

    fn see(&mut self, seen: &Seen) {
        self.whole.operations += 1;
        if let (Some(sample), Some(_)) = (&mut self.sample, seen.number) {
            sample.see(seen);
        }
        // A client that knows both begins with SMB1's Negotiate.
        let is_smb1 = seen.columns.protocol.get(seen.row) == Some(1);
        self.smb1 += u64::from(is_smb1 && seen.act != Act::Logon);
        let columns = seen.columns;
        let is_protected = columns.signed.is_set(seen.row) || columns.encrypted.is_set(seen.row);
        self.protected.0 += u64::from(is_protected);
        self.protected.1 |= seen.slice(Kind::CryptoIn).or(seen.slice(Kind::CryptoOut)).is_some();
        if seen.is_timed {
            let whole = &mut self.whole;
            whole.timed += 1;
            let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
            add(&mut whole.busy_ns, seen.busy_ns);
            add(&mut whole.transfer_ns, seen.of_busy(seen.transfer_ns()));
            if let Some((server, network)) = seen.split() {
                add(&mut whole.server_ns, seen.of_busy(server));
                add(&mut whole.network_ns, seen.of_busy(network));
            }
            self.elapsed += i128::from(seen.elapsed_ns);
            if let Some(start) = seen.start {
                let end = start.saturating_add(seen.elapsed_ns);
                let (first, last) = self.span.unwrap_or((start, end));
                self.span = Some((first.min(start), last.max(end)));
                self.active.add(start, end);
            }
        }
        self.whole.think_ns = self.whole.think_ns.saturating_add(seen.pause_ns);
        self.blocks.see(seen);
        self.lines.see(seen);
        self.credits.see(seen);
        self.stragglers.see(seen);
        self.durability.see(seen);
        self.lookups.see(seen);
        self.server.see(seen);
        self.conflicts.see(seen);
        self.apart.see(seen);
        self.pauses.see(seen);
    }

    /// What was found. Fails as [`Explain::operations`] does.
    pub fn finish(mut self) -> Result<Diagnosis, ArrowError> {
        let notes = self.notes();
        let mut whole = self.whole;
        if whole.timed > 0 {
            whole.elapsed_ns_mean = (self.elapsed / i128::from(whole.timed)) as i64;
        }
        whole.lasted_ns = self.span.map_or(0, |(first, last)| last.saturating_sub(first));
        whole.active_ns = self.active.ns();
        let blocked = self.conflicts.blocked_ns;
        let all = [whole.busy_ns, whole.think_ns, blocked].map(|ns| ns as f64).iter().sum::<f64>();
        let mut found = self.blocks.finish(&self.connections);
        found.extend(self.lines.finish(&self.connections));
        found.extend(self.credits.finish(&self.connections));
        found.extend(self.stragglers.finish());
        found.extend(self.lookups.finish());
        found.extend(self.server.finish());
        found.extend(self.conflicts.finish());
        found.push(self.apart.finish());
        found.push(self.pauses.finish(&whole));
        found.iter_mut().for_each(|found| found.name(&self.connections));
        let least_ns = (LEAST_SHARE * all) as i64;
        if let Some(sample) = &mut self.sample {
            for found in found.iter_mut().filter(|found| found.finding.saved_ns > least_ns) {
                sample.replay_without(found)?;
            }
        }
        let mut findings: Vec<_> = found.into_iter().map(|found| found.finding).collect();
        out_of_line(&mut findings);
        findings.retain(|found| found.saved_ns > 0 && all > 0.0);
        for found in &mut findings {
            found.share = (found.saved_ns as f64 / all).min(1.0);
            // A few operations among many, or even one, may be chance.
            if found.saved_error_ns >= found.saved_ns {
                found.confidence = Confidence::Low;
                found.because.push_str("; so few make it up that it may be chance");
            }
        }
        findings.sort_by_key(|found| (std::cmp::Reverse(found.saved_ns), found.trouble));
        if let Some(sample) = &mut self.sample {
            sample.judge(&mut findings)?;
        }
        Ok(Diagnosis { findings, notes, whole })
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut note = |is_worth: bool, about: About, what: String| {
            if is_worth {
                notes.push(Note { about, what });
            }
        };
        note(
            self.smb1 > 0,
            About::Smb1,
            format!(
                "{} of {} operations use SMB1: no encryption, no pipelining worth the name, one round trip for \
                 each block; Samba and Windows have it off by default",
                self.smb1, self.whole.operations
            ),
        );
        let Whole { busy_ns, network_ns, .. } = self.whole;
        note(
            network_ns > busy_ns / 2 && network_ns > 0,
            About::Distance,
            format!(
                "{:.0} % of the waiting is distance, not the server: only fewer round trips help, or a shorter way",
                100.0 * network_ns as f64 / busy_ns.max(1) as f64
            ),
        );
        let (protected, is_seen) = self.protected;
        note(
            protected > self.whole.operations / 2 && !is_seen,
            About::Protection,
            format!(
                "{protected} of {} operations are signed or encrypted; what that costs the server cannot be seen from \
                 outside: record inside it (smbscope record), or compare with a run without (smbscope predict --change \
                 encryption=off)",
                self.whole.operations
            ),
        );
        self.durability.notes(&mut note);
        self.connections.notes(self.smb1 > 0, &mut note);
        notes
    }
}

/// Takes what is out of line off what is said of the whole server.
fn out_of_line(findings: &mut [Finding]) {
    let late = findings.iter().find(|found| found.trouble == Trouble::Stragglers);
    let Some(late_ns) = late.map(|found| found.saved_ns) else { return };
    for found in findings {
        if [Trouble::SlowFilesystem, Trouble::ServerQueueing].contains(&found.trouble) {
            // With it goes what is said of clients, shares and files.
            found.saved(0.0, late_ns);
        }
    }
}

/// A finding, and what its operations would take less without it.
struct Found {
    finding: Finding,
    /// Connections, their operations, and time saved there, ns.
    connections: Vec<((u32, u64), u64, i64)>,
    spared: Spared,
}

impl Found {
    /// Gives its connections their names.
    fn name(&mut self, connections: &Connections) {
        let named = self.connections.drain(..).map(|(key, operations, saved_ns)| Culprit {
            name: connections.name(key),
            operations,
            saved_ns,
        });
        self.finding.connections = named.collect();
    }
}

impl Finding {
    /// So many times as much is saved of that part of it, ns.
    fn saved(&mut self, times: f64, part_ns: i64) {
        let whole_ns = self.saved_ns.max(1) as f64;
        let share = (whole_ns - part_ns as f64 * (1.0 - times)).max(0.0) / whole_ns;
        let culprits =
            [&mut self.clients, &mut self.connections, &mut self.shares, &mut self.paths];
        let culprits = culprits.into_iter().flatten().map(|one| &mut one.saved_ns);
        for ns in culprits.chain([&mut self.saved_ns, &mut self.saved_error_ns]) {
            *ns = (*ns as f64 * share) as i64;
        }
    }
}

/// A finding without figures.
fn finding(
    trouble: Trouble,
    what: String,
    gathered: Gathered,
    confidence: Confidence,
    because: &str,
) -> Found {
    let (saved_ns, saved_error_ns) = (gathered.saved_ns, gathered.error_ns());
    let operations = gathered.operations;
    let told = gathered.finish();
    let finding = Finding {
        trouble,
        what,
        saved_ns,
        saved_error_ns,
        share: 0.0,
        confidence,
        because: because.to_owned(),
        operations,
        figures: Vec::new(),
        clients: told.clients,
        connections: Vec::new(),
        shares: told.shares,
        paths: told.paths,
        examples: told.examples,
        remedies: trouble.remedies().to_vec(),
        gains: Vec::new(),
        replayed: 0,
    };
    Found { finding, connections: told.connections, spared: told.spared }
}

/// Bits in a second; none where no time was seen.
fn rate(bytes: u64, ns: i64) -> Option<f64> {
    (bytes > 0 && ns > 0).then(|| 8e9 * bytes as f64 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_line_is_taken_off_the_places_too() {
        let one = |trouble, saved_ns| {
            let mut found =
                finding(trouble, String::new(), Gathered::default(), Confidence::Low, "");
            found.finding.saved_ns = saved_ns;
            found.finding.clients = vec![Culprit { name: "c".into(), operations: 9, saved_ns }];
            found.finding
        };
        let mut findings = [one(Trouble::SlowFilesystem, 1_000), one(Trouble::Stragglers, 900)];
        out_of_line(&mut findings);
        let told = findings.each_ref().map(|found| (found.saved_ns, found.clients[0].saved_ns));
        assert_eq!(told, [(100, 100), (900, 900)]);
    }
}
