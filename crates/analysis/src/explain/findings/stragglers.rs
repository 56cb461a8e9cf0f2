//! One file, folder, client or second is far slower than the rest: operations that take many times
//! as long as similar ones, most of them in one place (J. Dean and L. A. Barroso, The Tail at Scale,
//! 2013).

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId};
use crate::stats::mean::Mean;

pub(crate) const KIND: KindInfo = KindInfo::new("stragglers", "stragglers")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "look for what is special there: where the file is stored, its size and fragmentation, its access list, what \
         else runs at that time (backup, snapshot, scrub)",
    ),
    (
        "server",
        "a recording inside the server shows which part of its time it is (Samba: smbscope record; Windows: smbscope record \
         --print-windows-script --what smb --to 'S:\\temp')",
    ),
]);

/// A straggler takes this many times as long as usual ...
const TIMES: f64 = 10.0;
/// ... and at least this, ns.
const MIN_NS: i64 = 2_000_000;
/// Operations of a kind and size after which the usual time is known.
const KNOWN_MIN: u64 = 50;
/// Classes of size, each four times as large as the one before.
const SIZES: usize = 16;
/// Most files, folders, clients and seconds that are counted, each.
const PLACES_MAX: usize = 65_536;
/// Length of the time slots, ns.
const SLOT_NS: i64 = 1_000_000_000;
/// A place stands out if it has this share of the excess time ...
const EXCESS_MIN: f64 = 0.6;
/// ... with at most this share of the operations ...
const OPERATIONS_MAX: f64 = 0.2;
/// ... and at least this many stragglers; fewer may be chance.
const STRAGGLERS_MIN: u64 = 3;

/// Counts of operations by place; places share one if their keys have the same remainder.
const COUNTS: usize = 4_096;

/// One file, folder, client or second with stragglers, and their excess time.
#[derive(Default)]
struct Place {
    stragglers: u64,
    excess_ns: i64,
    attribution: Option<Box<Attribution>>,
}

/// Files, folders, clients or seconds.
struct Places {
    /// Operations of each place, or more: places whose keys have the same remainder share a count.
    counts: Box<[u32; COUNTS]>,
    slow: HashMap<u64, Place, foldhash::fast::RandomState>,
}

impl Default for Places {
    fn default() -> Places {
        Places { counts: Box::new([0; COUNTS]), slow: HashMap::default() }
    }
}

impl Places {
    /// Counts an operation. For a straggler, also adds how long the connection waited for it, and how much of
    /// that exceeds the usual time.
    fn count(&mut self, key: u64, op: &Operation, straggler: Option<(i64, i64)>) {
        let count = &mut self.counts[key as usize % COUNTS];
        *count = count.saturating_add(1);
        let Some((alone_ns, excess_ns)) = straggler else { return };
        if self.slow.len() >= PLACES_MAX && !self.slow.contains_key(&key) {
            return;
        }
        let place = self.slow.entry(key).or_default();
        place.stragglers += 1;
        place.excess_ns = place.excess_ns.saturating_add(excess_ns);
        let attribution =
            place.attribution.get_or_insert_with(|| Box::new(Attribution::with_few_names()));
        attribution.add_stall(op, 0, op.silent_from(alone_ns), (alone_ns, excess_ns));
    }

    /// The place that has most of the excess time, with its operations, if there are `least` places or more.
    fn standing_out(self, least: usize, all: f64, excess: f64) -> Option<(Place, u64)> {
        if self.counts.iter().filter(|count| **count > 0).count() < least {
            return None;
        }
        let places = self.slow.into_iter();
        let mut places =
            places.map(|(key, place)| (place, u64::from(self.counts[key as usize % COUNTS])));
        places.find(|(place, operations)| {
            place.stragglers >= STRAGGLERS_MIN
                && place.excess_ns as f64 >= EXCESS_MIN * excess
                && *operations as f64 <= OPERATIONS_MAX * all
        })
    }
}

/// Usual times, and operations by place.
#[derive(Default)]
pub(crate) struct Stragglers {
    /// Logarithms of the server's time, by act and size.
    usual: [[Mean; SIZES]; Act::ALL.len()],
    operations: u64,
    excess_ns: i64,
    files: Places,
    folders: Places,
    clients: Places,
    seconds: Places,
}

impl Detector for Stragglers {
    fn see(&mut self, op: &Operation) {
        let is_other = matches!(op.act, Act::Logon | Act::Lock | Act::Break | Act::Other);
        let waits = op.waits_for_others() || op.explained.is_some();
        let (Some((server_ns, _)), Some(start), false) = (op.split(), op.start, is_other || waits)
        else {
            return;
        };
        self.operations += 1;
        let alone_ns = server_ns.min(op.silent_ns).max(1);
        let size = ((u64::BITS - op.bytes.leading_zeros()) / 2) as usize;
        let usual = &mut self.usual[op.act as usize][size.min(SIZES - 1)];
        let logarithm = (alone_ns as f64).ln();
        let is_straggler = usual.n >= KNOWN_MIN
            && alone_ns > MIN_NS
            && logarithm > TIMES.ln() + usual.mean().max(0.0);
        let mut excess_ns = 0;
        if is_straggler {
            excess_ns = alone_ns - usual.mean().exp() as i64;
            self.excess_ns = self.excess_ns.saturating_add(excess_ns);
        } else {
            usual.add(logarithm);
        }
        let straggler = is_straggler.then_some((alone_ns, excess_ns));
        let place = |name: TextId| name.get() ^ op.share.map_or(0, TextId::get).rotate_left(1);
        if let Some(path) = op.path {
            self.files.count(place(path), op, straggler);
        }
        if let Some(folder) = op.folder {
            self.folders.count(place(folder), op, straggler);
        }
        self.clients.count(op.client.map_or(0, TextId::get), op, straggler);
        self.seconds.count(start.div_euclid(SLOT_NS) as u64, op, straggler);
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        self.candidate().into_iter().collect()
    }
}

impl Stragglers {
    fn candidate(self) -> Option<Candidate> {
        let all = self.operations as f64;
        let excess = self.excess_ns as f64;
        let file = self.files.standing_out(1, all, excess);
        let file = file.map(|place| ("One file is far slower than the rest", place));
        let folder = || {
            let folder = self.folders.standing_out(1, all, excess)?;
            Some(("One folder is far slower than the rest", folder))
        };
        // Of few clients or seconds, one always has most of the time.
        let client = || {
            let client = self.clients.standing_out(3, all, excess)?;
            Some(("One client is far slower than the rest", client))
        };
        let second = || {
            Some((
                "Within one second operations took far longer than at any other time",
                self.seconds.standing_out(5, all, excess)?,
            ))
        };
        let (what, (place, operations)) = file.or_else(folder).or_else(client).or_else(second)?;
        let attribution = place.attribution.map(|attribution| *attribution).unwrap_or_default();
        let candidate = Candidate::new(
            FindingKind::Stragglers,
            what,
            attribution,
            Confidence::Likely,
            "its operations take more than ten times as long as others of their kind and size, and it has most of all \
             such operations' excess time",
        );
        Some(candidate.with_figures([
            (
                "share_of_what_is_out_of_line",
                place.excess_ns as f64 / excess.max(1.0),
                "share",
                "{} of the excess time",
            ),
            (
                "share_of_operations",
                operations as f64 / all.max(1.0),
                "share",
                "{} of the operations",
            ),
        ]))
    }
}
