//! One file, client or moment that is out of line with the rest: operations that take many times what their
//! like takes, most of them in one place (J. Dean and L. A. Barroso, The Tail at Scale, 2013).

use hashbrown::HashMap;

use super::attribution::Gathered;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen, Word, word};
use super::{Found, finding};
use crate::stats::mean::Mean;

/// Out of line is what takes so many times the usual ...
const TIMES: f64 = 10.0;
/// ... and at least this, ns.
const LEAST_NS: i64 = 2_000_000;
/// Operations of a kind after which the usual is known.
const KNOWN: u64 = 50;
/// Sizes in steps of four times.
const SIZES: usize = 16;
/// Files, clients and moments that are told apart.
const PLACES_MAX: usize = 65_536;
/// A moment, ns.
const MOMENT_NS: i64 = 1_000_000_000;
/// So much of the excess in one place makes it the place ...
const MOST: f64 = 0.6;
/// ... where it has at most so much of the operations.
const FEW: f64 = 0.2;
/// Operations out of line without which it is chance.
const LEAST: u64 = 3;

/// One place: its operations, those out of line, and what these cost beyond the usual.
#[derive(Default)]
struct Place {
    operations: u64,
    late: u64,
    excess_ns: i64,
    gathered: Option<Box<Gathered>>,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// All of it.
#[derive(Default)]
pub(super) struct Stragglers {
    usual: [[Mean; SIZES]; Act::ALL.len()],
    operations: u64,
    excess_ns: i64,
    files: Map<Word, Place>,
    folders: Map<Word, Place>,
    clients: Map<Option<Word>, Place>,
    moments: Map<i64, Place>,
}

impl Stragglers {
    pub(super) fn see(&mut self, seen: &Seen) {
        let is_other = matches!(seen.act, Act::Logon | Act::Lock | Act::Break | Act::Other);
        let waits = seen.columns.pending_at.get(seen.row).is_some();
        let (Some((server, _)), Some(start), false) = (seen.split(), seen.start, is_other || waits)
        else {
            return;
        };
        self.operations += 1;
        let alone = server.min(seen.silent_ns).max(1);
        let size = ((u64::BITS - seen.bytes.leading_zeros()) / 2) as usize;
        let usual = &mut self.usual[seen.act as usize][size.min(SIZES - 1)];
        let logarithm = (alone as f64).ln();
        let is_late =
            usual.n >= KNOWN && alone > LEAST_NS && logarithm > TIMES.ln() + usual.mean().max(0.0);
        let mut excess_ns = 0;
        if is_late {
            excess_ns = alone - usual.mean().exp() as i64;
            self.excess_ns = self.excess_ns.saturating_add(excess_ns);
        } else {
            usual.add(logarithm);
        }
        let late = is_late.then_some((alone, excess_ns));
        if let Some(path) = seen.path {
            place(&mut self.files, word((seen.share, path)), seen, late);
        }
        if let Some(folder) = seen.folder {
            place(&mut self.folders, word((seen.share, folder)), seen, late);
        }
        place(&mut self.clients, seen.client, seen, late);
        place(&mut self.moments, start.div_euclid(MOMENT_NS), seen, late);
    }

    pub(super) fn finish(self) -> Vec<Found> {
        let all = self.operations as f64;
        let excess = self.excess_ns as f64;
        let (clients, moments) = (self.clients.len(), self.moments.len());
        let stands_out = |place: &Place| {
            place.late >= LEAST
                && place.excess_ns as f64 >= MOST * excess
                && place.operations as f64 <= FEW * all
        };
        let file = self.files.into_values().find(stands_out).map(|place| ("file", place));
        let folder = || {
            let mut folders = self.folders.into_values();
            folders.find(stands_out).map(|place| ("folder", place))
        };
        // Of few clients or seconds one always has most.
        let client = || {
            let few = clients < 3;
            let mut found = self.clients.into_values().filter(|_| !few);
            found.find(stands_out).map(|place| ("client", place))
        };
        let moment = || {
            let few = moments < 5;
            let mut found = self.moments.into_values().filter(|_| !few);
            found.find(stands_out).map(|place| ("moment", place))
        };
        let Some((kind, place)) = file.or_else(folder).or_else(client).or_else(moment) else {
            return Vec::new();
        };
        let what = match kind {
            "file" => "One file is far slower than the rest",
            "folder" => "One folder is far slower than the rest",
            "client" => "One client is far slower than the rest",
            _ => "Within one second operations took far longer than ever else",
        };
        let gathered = place.gathered.map(|gathered| *gathered).unwrap_or_default();
        let mut found = finding(
            Trouble::Stragglers,
            what.to_owned(),
            gathered,
            Confidence::Medium,
            "its operations take more than ten times what others of their kind and size take, and most of what \
             is out of line lies there",
        );
        found.finding.figures = [
            ("share_of_what_is_out_of_line", place.excess_ns as f64 / excess.max(1.0)),
            ("share_of_operations", place.operations as f64 / all.max(1.0)),
        ]
        .map(|(name, value)| Figure { name, value, error: None, unit: "share" })
        .to_vec();
        vec![found]
    }
}

/// Counts an operation in a place; `late` is how long the connection waited for it, and how much of that is
/// beyond the usual.
fn place<K: Eq + std::hash::Hash>(
    map: &mut Map<K, Place>,
    key: K,
    seen: &Seen,
    late: Option<(i64, i64)>,
) {
    if map.len() >= PLACES_MAX && !map.contains_key(&key) {
        return;
    }
    let place = map.entry(key).or_default();
    place.operations += 1;
    if let Some((alone, excess_ns)) = late {
        place.late += 1;
        place.excess_ns = place.excess_ns.saturating_add(excess_ns);
        let gathered = place.gathered.get_or_insert_with(|| Box::new(Gathered::few()));
        gathered.add_stop(seen, 0, seen.silent_from(alone), (alone, excess_ns));
    }
}
