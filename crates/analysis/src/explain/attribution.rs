//! Who and what a finding concerns: sums by name within a limit, and the dearest operations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

use super::data::{Culprit, Example};
use super::operation::{Seen, Word};
use super::savings::Spared;

/// Names that are told apart for each finding, by kind.
const NAMES_MAX: usize = 4096;
/// Names that are told.
const NAMES_TOLD: usize = 5;
/// Operations that are told.
const EXAMPLES: usize = 5;

/// The same of findings that are kept for each connection or place until it is known whether they are any.
const NAMES_FEW: usize = 64;

/// Sums by name.
struct Names {
    sums: HashMap<Word, Sums, foldhash::fast::RandomState>,
    most: usize,
}

/// Those of one name.
struct Sums {
    name: Box<str>,
    operations: u64,
    saved_ns: i64,
}

impl Default for Names {
    fn default() -> Names {
        Names { sums: HashMap::default(), most: NAMES_MAX }
    }
}

impl Names {
    fn few() -> Names {
        Names { most: NAMES_FEW, ..Names::default() }
    }

    fn add(&mut self, word: Word, operations: u64, saved_ns: i64, name: impl FnOnce() -> Box<str>) {
        let has_room = self.sums.len() < self.most;
        let sums = match self.sums.get_mut(&word) {
            Some(sums) => sums,
            None if has_room => {
                self.sums.entry(word).or_insert(Sums { name: name(), operations: 0, saved_ns: 0 })
            }
            // Those that come first stand for all: what costs much comes early and often.
            None => return,
        };
        sums.operations += operations;
        sums.saved_ns = sums.saved_ns.saturating_add(saved_ns);
    }

    fn merge(&mut self, other: Names) {
        for (word, Sums { name, operations, saved_ns }) in other.sums {
            self.add(word, operations, saved_ns, || name);
        }
    }

    fn finish(self) -> Vec<Culprit> {
        let rows = self.sums.into_iter();
        let mut rows: Vec<_> = rows
            .map(|(_, Sums { name, operations, saved_ns })| Culprit {
                name: name.into(),
                operations,
                saved_ns,
            })
            .collect();
        rows.sort_by(|one, other| {
            (other.saved_ns, other.operations, &one.name).cmp(&(
                one.saved_ns,
                one.operations,
                &other.name,
            ))
        });
        rows.truncate(NAMES_TOLD);
        rows
    }
}

fn name(name: Option<&str>) -> Box<str> {
    name.unwrap_or_default().into()
}

/// An example and what it costs; the least dear is on top.
#[derive(PartialEq, Eq)]
struct Dear(i64, Example);

impl Ord for Dear {
    fn cmp(&self, other: &Dear) -> std::cmp::Ordering {
        other.0.cmp(&self.0).then_with(|| self.1.operation.cmp(&other.1.operation))
    }
}

impl PartialOrd for Dear {
    fn partial_cmp(&self, other: &Dear) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What a finding has gathered.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) operations: u64,
    pub(super) saved_ns: i64,
    squares: f64,
    clients: Names,
    connections: HashMap<(u32, u64), (u64, i64), foldhash::fast::RandomState>,
    shares: Names,
    paths: Names,
    dearest: BinaryHeap<Dear>,
    spared: Spared,
}

/// The same, told.
pub(super) struct Told {
    pub(super) spared: Spared,
    pub(super) clients: Vec<Culprit>,
    pub(super) connections: Vec<((u32, u64), u64, i64)>,
    pub(super) shares: Vec<Culprit>,
    pub(super) paths: Vec<Culprit>,
    pub(super) examples: Vec<Example>,
}

impl Gathered {
    /// One of many, with fewer names.
    pub(super) fn few() -> Gathered {
        let [clients, shares, paths] = std::array::from_fn(|_| Names::few());
        Gathered { clients, shares, paths, ..Gathered::default() }
    }

    /// Adds what another one has gathered.
    pub(super) fn merge(&mut self, other: Gathered) {
        self.operations += other.operations;
        self.saved_ns = self.saved_ns.saturating_add(other.saved_ns);
        self.squares += other.squares;
        self.clients.merge(other.clients);
        for (key, (operations, saved_ns)) in other.connections {
            self.add_connection(key, operations, saved_ns);
        }
        self.shares.merge(other.shares);
        self.paths.merge(other.paths);
        self.spared.merge(other.spared);
        self.dearest.extend(other.dearest);
        while self.dearest.len() > EXAMPLES {
            self.dearest.pop();
        }
    }

    /// Only this share of what it costs would be saved.
    pub(super) fn scale(&mut self, share: f64) {
        let scaled = |ns: i64| (ns as f64 * share) as i64;
        self.saved_ns = scaled(self.saved_ns);
        self.squares *= share * share;
        self.spared.scale(share);
        self.sums().for_each(|(_, ns)| *ns = scaled(*ns));
    }

    /// The time alone: its operations count elsewhere.
    pub(super) fn uncounted(mut self) -> Gathered {
        self.operations = 0;
        self.sums().for_each(|(operations, _)| *operations = 0);
        self
    }

    /// Without what an operation costs, so much would be saved.
    pub(super) fn add(&mut self, seen: &Seen, saved_ns: i64) {
        let saved_ns = saved_ns.max(0);
        self.spared.add(seen, saved_ns);
        self.add_place(seen, saved_ns, 1);
    }

    /// The same of a time in which its connection stood still, so that whatever was in flight waited.
    /// `way` is 0 where it waited for what comes from the server; the time is the whole of it, and what would be
    /// saved of that, ns.
    pub(super) fn add_stop(&mut self, seen: &Seen, way: usize, begin: i64, time: (i64, i64)) {
        let (ns, saved_ns) = (time.0, time.1.max(0));
        self.spared.add_stop(seen, way, begin, (ns, saved_ns));
        self.add_place(seen, saved_ns, 1);
    }

    /// The same of so many operations, the last of which is seen, and what each takes less.
    pub(super) fn add_many(&mut self, seen: &Seen, saved_ns: i64, operations: u64, spared: Spared) {
        self.spared.merge(spared);
        self.add_place(seen, saved_ns.max(0), operations);
    }

    /// The same of a client's pause before an operation, which has nothing to do with the file.
    pub(super) fn add_pause(&mut self, seen: &Seen, saved_ns: i64) {
        self.add_of_client(seen, saved_ns, 1);
    }

    fn add_place(&mut self, seen: &Seen, saved_ns: i64, operations: u64) {
        if let Some(share) = seen.share {
            self.shares.add(share, operations, saved_ns, || name(seen.share_name()));
        }
        if let Some(path) = seen.path {
            self.paths.add(path, operations, saved_ns, || name(seen.path_name()));
        }
        self.add_of_client(seen, saved_ns, operations);
    }

    fn add_of_client(&mut self, seen: &Seen, saved_ns: i64, operations: u64) {
        self.operations += operations;
        self.saved_ns = self.saved_ns.saturating_add(saved_ns);
        self.squares += (saved_ns as f64).powi(2);
        if let Some(client) = seen.client {
            self.clients.add(client, operations, saved_ns, || name(seen.client_name()));
        }
        self.add_connection((seen.recording, seen.connection), operations, saved_ns);
        let is_full = self.dearest.len() >= EXAMPLES;
        if saved_ns > 0 && !(is_full && self.dearest.peek().is_some_and(|one| one.0 >= saved_ns)) {
            if is_full {
                self.dearest.pop();
            }
            self.dearest.push(Dear(saved_ns, seen.example()));
        }
    }

    /// Operations and time by name.
    fn sums(&mut self) -> impl Iterator<Item = (&mut u64, &mut i64)> {
        let names = [&mut self.clients, &mut self.shares, &mut self.paths];
        let names = names.into_iter().flat_map(|names| names.sums.values_mut());
        let names = names.map(|sums| (&mut sums.operations, &mut sums.saved_ns));
        names.chain(self.connections.values_mut().map(|(operations, ns)| (operations, ns)))
    }

    fn add_connection(&mut self, key: (u32, u64), operations: u64, saved_ns: i64) {
        let has_room = self.connections.len() < self.clients.most;
        let sums = match self.connections.get_mut(&key) {
            Some(sums) => sums,
            None if has_room => self.connections.entry(key).or_default(),
            None => return,
        };
        *sums = (sums.0 + operations, sums.1.saturating_add(saved_ns));
    }

    /// Half of the 95 % interval of the sum, as if the operations were a sample of many such.
    pub(super) fn error_ns(&self) -> i64 {
        let n = self.operations as f64;
        if self.operations < 2 {
            return self.saved_ns;
        }
        let mean = self.saved_ns as f64 / n;
        let variance = (self.squares / n - mean * mean).max(0.0) * n / (n - 1.0);
        (crate::predict::Z_95 * (n * variance).sqrt()) as i64
    }

    pub(super) fn finish(self) -> Told {
        let mut dearest = self.dearest.into_vec();
        dearest.sort_unstable();
        let connections = self.connections.into_iter();
        let mut connections: Vec<_> =
            connections.map(|(key, (operations, ns))| (key, operations, ns)).collect();
        connections.sort_unstable_by_key(|(key, operations, ns)| {
            Reverse((*ns, *operations, Reverse(*key)))
        });
        connections.truncate(NAMES_TOLD);
        Told {
            spared: self.spared,
            clients: self.clients.finish(),
            connections,
            shares: self.shares.finish(),
            paths: self.paths.finish(),
            examples: dearest.into_iter().map(|one| one.1).collect(),
        }
    }
}
