//! What the server's time depends on: the size of the transfer, the order of its offset, the depth of the path, what an
//! open is for, whether the file was used before, whether the name exists, the connection, the hour.
//!
//! For the kind of operation that costs most, the logarithms of the server's time are grouped by each of these. A factor is
//! clear if it explains half of their variance (R. A. Fisher 1925: the correlation ratio) and its slowest group takes
//! several times as long as its quickest. If more than one is clear, the one with the largest share is named.

use hashbrown::{HashMap, HashSet};
use smbscope_findings::Figure;
use smbscope_tables::readable::duration;

use super::candidate::Candidate;
use super::operation::{Act, Operation, TextId, text_id};
use crate::rows::status_class::StatusClass;
use crate::stats::mean::Mean;

/// Groups of one factor; larger sizes and deeper paths are counted with the last, more connections are left out.
const GROUPS: usize = 24;
/// Most operations that are grouped.
const OPERATIONS_MAX: u64 = 50_000;
/// Fewest operations of a kind, and of a group, that say something.
const OPERATIONS_MIN: u64 = 40;
const GROUP_MIN: u64 = 10;
/// A factor is clear if it explains this share of the variance ...
const EXPLAINED_MIN: f64 = 0.5;
/// ... and its slowest group takes this many times as long as its quickest.
const TIMES_MIN: f64 = 3.0;
/// Blocks of file systems and disks, bytes.
const BLOCK_BYTES: u64 = 4_096;
const HOUR_NS: i64 = 3_600_000_000_000;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What the time may depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    Name,
    Intent,
    Use,
    Order,
    Size,
    Depth,
    Connection,
    Hour,
}

impl Factor {
    const ALL: [Factor; 8] = [
        Factor::Name,
        Factor::Intent,
        Factor::Use,
        Factor::Order,
        Factor::Size,
        Factor::Depth,
        Factor::Connection,
        Factor::Hour,
    ];

    /// Its name in a list.
    fn word(self) -> &'static str {
        match self {
            Factor::Name => "missing names",
            Factor::Intent => "what the open is for",
            Factor::Use => "first or repeated use",
            Factor::Order => "order of offsets",
            Factor::Size => "size",
            Factor::Depth => "depth of the path",
            Factor::Connection => "connection",
            Factor::Hour => "hour",
        }
    }

    /// What the operations of a group have in common, as the end of "takes ...".
    fn group(self, group: usize) -> String {
        let named = |names: &[&str]| names.get(group).copied().unwrap_or("otherwise").to_owned();
        match self {
            Factor::Name => named(&["for names that exist", "for names that do not exist"]),
            Factor::Intent => {
                named(&["for attributes only", "for data or changes", "for deleting the file"])
            }
            Factor::Use => named(&["on files used before", "on files used for the first time"]),
            Factor::Order => named(&[
                "one block after the other",
                "at offsets elsewhere",
                "at offsets that 4 KiB does not divide",
            ]),
            Factor::Size => format!("for {} or more", size_words(group)),
            Factor::Depth => format!("with {group} folders in the path"),
            Factor::Connection => format!("on the {} connection of the recording", ordinal(group)),
            Factor::Hour => format!("between {group}:00 and {}:00 UTC", group + 1),
        }
    }

    /// What usually causes it, and what to do, by the slowest group.
    fn cause(self, slowest: usize) -> (&'static str, (&'static str, &'static str)) {
        match (self, slowest) {
            (Factor::Name, 1) => (
                "the server searches folders for the name in any case",
                (
                    "Samba",
                    "case sensitive = yes where clients agree on names, or a file system that ignores case (ZFS casesensitivity, ext4 \
                     casefold)",
                ),
            ),
            (Factor::Name, _) => (
                "opening an existing file is slow: its access list, a scanner, or storage that has to fetch it",
                (
                    "server",
                    "compare with scanners and file-system filters switched off (Windows fltmc, Samba vfs objects)",
                ),
            ),
            (Factor::Intent, 1) => (
                "something looks into files when they are opened for data: a virus scanner, or storage that recalls them",
                (
                    "server",
                    "exclude the folder from the scanner for a test (Windows fltmc, Samba vfs objects = virusfilter), and look for tiered \
                     or archived files",
                ),
            ),
            (Factor::Intent, _) => (
                "this kind of open is slow on the server",
                (
                    "server",
                    "a recording inside the server shows which call it is (Samba: smbscope record)",
                ),
            ),
            (Factor::Use, 1) => (
                "data have to be fetched: tiered or archived storage, disks that had stopped, a scanner that remembers its verdict, or a cold \
                 cache",
                (
                    "server",
                    "look for tiering or recall, power saving of disks and scanners; compare a second run with the first",
                ),
            ),
            (Factor::Order, 1) => (
                "rotating disks, or a cache that only reads ahead",
                (
                    "server",
                    "put this data on SSD, or give the server more memory for its cache; check the disks' IOPS",
                ),
            ),
            (Factor::Order, 2) => (
                "parts of blocks are written: the storage reads each block first",
                (
                    "application",
                    "write multiples of 4 KiB at multiples of 4 KiB; check the block size of the volume",
                ),
            ),
            (Factor::Size, _) => (
                "the time is that of the bytes: storage or CPU carries no more",
                (
                    "server",
                    "check the throughput of the storage, and the CPU for signing and encryption",
                ),
            ),
            (Factor::Depth, _) => (
                "each folder of the path costs time: access checks, or a search in each folder",
                (
                    "server",
                    "shorter paths; check case sensitivity, symbolic links (Samba wide links) and access lists of the folders",
                ),
            ),
            (Factor::Connection, _) => (
                "one connection is slower than the others: its server process or thread has no CPU left, or its user's checks are slow",
                (
                    "server",
                    "compare the CPU of the connection's process (Samba: smbstatus, top), and what differs for this client",
                ),
            ),
            (Factor::Hour, _) => (
                "something else uses the server at that hour",
                ("server", "look for backups, snapshots, scrubs and scans that run then"),
            ),
            _ => (
                "this kind of access is slow on the server",
                (
                    "server",
                    "a recording inside the server shows which call it is (Samba: smbscope record)",
                ),
            ),
        }
    }
}

fn size_words(group: usize) -> String {
    // Groups are powers of four.
    match 1_u64 << (2 * group.min(31)) {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

fn ordinal(group: usize) -> String {
    match group + 1 {
        1 => "1st".to_owned(),
        2 => "2nd".to_owned(),
        3 => "3rd".to_owned(),
        n => format!("{n}th"),
    }
}

/// Operations of one kind by each factor.
#[derive(Default)]
struct OfAct {
    all: Mean,
    /// Time beyond that of cached data, ns.
    excess_ns: i64,
    factors: [[Mean; GROUPS]; Factor::ALL.len()],
}

/// The first operations that the server worked on.
#[derive(Default)]
pub(super) struct Dependence {
    operations: u64,
    acts: [Option<Box<OfAct>>; Act::ALL.len()],
    used: HashSet<TextId, foldhash::fast::RandomState>,
    /// Where the last read or write of a handle ended.
    ends: Map<(u32, u64), u64>,
    connections: Map<(u32, u64), usize>,
}

impl Dependence {
    /// Adds an operation; `excess_ns` is what it takes beyond cached data.
    pub(super) fn add(&mut self, op: &Operation, server_ns: i64, excess_ns: i64) {
        if self.operations >= OPERATIONS_MAX {
            return;
        }
        self.operations += 1;
        let groups = Factor::ALL.map(|factor| self.group(factor, op));
        let of_act = self.acts[op.act as usize].get_or_insert_default();
        let logarithm = (server_ns.max(1) as f64).ln();
        of_act.all.add(logarithm);
        of_act.excess_ns = of_act.excess_ns.saturating_add(excess_ns.max(0));
        for (means, group) in of_act.factors.iter_mut().zip(groups) {
            if let Some(mean) = group.and_then(|group| means.get_mut(group.min(GROUPS - 1))) {
                mean.add(logarithm);
            }
        }
    }

    /// The operation's group by a factor; none if the factor means nothing for it.
    fn group(&mut self, factor: Factor, op: &Operation) -> Option<usize> {
        let is_data = matches!(op.act, Act::Read | Act::Write);
        match factor {
            Factor::Name if matches!(op.act, Act::Open | Act::Query) => {
                match (op.status?, StatusClass::from_status(op.status?)) {
                    (0, _) => Some(0),
                    (_, StatusClass::NotFound) => Some(1),
                    _ => None,
                }
            }
            Factor::Intent if op.act == Act::Open && op.status == Some(0) => {
                Some(match (op.intent.deletes(), op.intent.only_asks()) {
                    (true, _) => 2,
                    (_, true) => 0,
                    _ => 1,
                })
            }
            Factor::Use if is_data || op.act == Act::Open && op.status == Some(0) => {
                let file = text_id((op.recording, op.server, op.share, op.path?));
                Some(usize::from(self.used.insert(text_id((file, op.act as u8)))))
            }
            Factor::Order if is_data => {
                let offset = op.columns.offset_bytes.get(op.row)?;
                let before = self.ends.insert(op.handle?, offset.saturating_add(op.bytes));
                Some(match (before, offset % BLOCK_BYTES) {
                    (Some(end), _) if end == offset => 0,
                    (None, _) if offset == 0 => 0,
                    (_, 0) => 1,
                    _ => 2,
                })
            }
            Factor::Size if is_data || op.act == Act::List => {
                let bits = u64::BITS - op.bytes.leading_zeros();
                Some((bits.saturating_sub(1) / 2) as usize)
            }
            Factor::Depth => Some(op.path_name()?.matches('\\').count()),
            Factor::Connection => {
                let next = self.connections.len();
                let number = *self.connections.entry((op.recording, op.connection)).or_insert(next);
                (number < GROUPS).then_some(number)
            }
            Factor::Hour => Some(op.start?.div_euclid(HOUR_NS).rem_euclid(24) as usize),
            _ => None,
        }
    }

    /// Adds to a finding about a slow server what its time depends on.
    pub(super) fn judge(self, mut candidate: Candidate) -> Candidate {
        let all = Act::ALL.into_iter().zip(self.acts);
        let known = all.filter_map(|(act, of_act)| Some((act, of_act?)));
        let Some((act, of_act)) = known.max_by_key(|(_, of_act)| of_act.excess_ns) else {
            return candidate;
        };
        if of_act.all.n < OPERATIONS_MIN {
            return candidate;
        }
        let clear = Factor::ALL.into_iter().zip(&of_act.factors);
        let clear = clear.filter_map(|(factor, means)| Some((factor, Clear::from_groups(means)?)));
        let most = clear.max_by(|one, other| one.1.explained.total_cmp(&other.1.explained));
        let verb = verb(act);
        let finding = &mut candidate.finding;
        let Some((factor, clear)) = most else {
            let compared = Factor::ALL.into_iter().zip(&of_act.factors);
            let compared = compared.filter(|(_, means)| groups(means).count() > 1);
            let words: Vec<_> = compared.map(|(factor, _)| factor.word()).collect();
            if !words.is_empty() {
                finding.because.push_str(&format!(
                    "; the time of {verb} does not clearly depend on {}: a recording inside the server shows what it is",
                    words.join(", ")
                ));
            }
            return candidate;
        };
        let (cause, remedy) = factor.cause(clear.slowest.0);
        finding.what.push_str(&format!(
            "; {verb} takes {} {} and {} {}: {cause}",
            duration(clear.slowest.1),
            factor.group(clear.slowest.0),
            duration(clear.quickest.1),
            factor.group(clear.quickest.0),
        ));
        finding.remedies.insert(0, remedy.into());
        finding.figures.push(Figure::new(
            "variance_explained",
            clear.explained,
            "share",
            "that explains {} of the variance of the time",
        ));
        candidate
    }
}

fn verb(act: Act) -> &'static str {
    match act {
        Act::Read => "a read",
        Act::Write => "a write",
        Act::Open => "an open",
        Act::Close => "a close",
        Act::List => "a listing",
        Act::Query => "a query",
        Act::Change => "a change of attributes",
        _ => "an operation",
    }
}

/// Groups with enough operations.
fn groups(means: &[Mean; GROUPS]) -> impl Iterator<Item = (usize, &Mean)> {
    means.iter().enumerate().filter(|(_, mean)| mean.n >= GROUP_MIN)
}

/// A factor on which the time clearly depends.
struct Clear {
    explained: f64,
    /// Groups, and their usual times, ns.
    slowest: (usize, i64),
    quickest: (usize, i64),
}

impl Clear {
    fn from_groups(means: &[Mean; GROUPS]) -> Option<Clear> {
        let mut all = Mean::default();
        let mut within = 0.0;
        for (_, mean) in groups(means) {
            all.merge(mean);
            within += mean.deviation().powi(2) * (mean.n - 1) as f64;
        }
        let total = all.deviation().powi(2) * all.n.saturating_sub(1) as f64;
        let explained = if total > 0.0 { 1.0 - within / total } else { 0.0 };
        let by_mean =
            |one: &(usize, &Mean), other: &(usize, &Mean)| one.1.mean().total_cmp(&other.1.mean());
        let usual = |(group, mean): (usize, &Mean)| (group, mean.mean().exp() as i64);
        let slowest = usual(groups(means).max_by(by_mean)?);
        let quickest = usual(groups(means).min_by(by_mean)?);
        let is_clear =
            explained >= EXPLAINED_MIN && slowest.1 as f64 >= TIMES_MIN * quickest.1.max(1) as f64;
        is_clear.then_some(Clear { explained, slowest, quickest })
    }
}
