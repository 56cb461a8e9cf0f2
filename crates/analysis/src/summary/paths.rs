//! Top lists of paths in bounded memory.
//!
//! Sums are kept for up to three times [`Sketch::keep`] paths. When there are more, those that are
//! in none of the three rankings (busy time, bytes, operations) among the first `keep` are
//! forgotten, and the most that a forgotten one can have had becomes the error of every path that
//! comes later: as in the space-saving algorithm (Metwally, Agrawal, El Abbadi 2005), but pruning
//! many at a time as in "A High-Performance Algorithm for Identifying Frequent Items in Data
//! Streams" (Anderson et al. 2017). While nothing was forgotten, all sums are exact.

use std::cmp::Reverse;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::data::{PathRow, Top};
use super::share_of;
use super::tally::Whole;

/// Longer paths are cut when they are kept; a hash of the whole path keeps them apart.
const PATH_BYTES_MAX: usize = 480;

/// Sums of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathSums {
    pub(crate) operations: u64,
    pub(crate) busy_ns: i64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) errors: u64,
    pub(crate) not_found: u64,
    /// Whether an operation said that the path is a directory.
    pub(crate) directory: bool,
}

impl PathSums {
    #[inline]
    pub(crate) fn add(&mut self, other: &PathSums) {
        self.operations += other.operations;
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.errors += other.errors;
        self.not_found += other.not_found;
        self.directory |= other.directory;
    }

    /// Without those of `part`, which are among them.
    pub(crate) fn less(&self, part: &PathSums) -> PathSums {
        PathSums {
            operations: self.operations.saturating_sub(part.operations),
            busy_ns: self.busy_ns.saturating_sub(part.busy_ns),
            read_bytes: self.read_bytes.saturating_sub(part.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(part.written_bytes),
            errors: self.errors.saturating_sub(part.errors),
            not_found: self.not_found.saturating_sub(part.not_found),
            directory: true,
        }
    }

    fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }

    /// Busy time, bytes, operations.
    fn measures(&self) -> [u64; 3] {
        [u64::try_from(self.busy_ns).unwrap_or(0), self.bytes(), self.operations]
    }
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    share: u32,
    path: Box<str>,
    sums: PathSums,
    /// What may have been forgotten of it before.
    missed: [u64; 3],
}

impl Entry {
    fn upper(&self) -> [u64; 3] {
        let [time, bytes, operations] = self.sums.measures();
        let [missed_time, missed_bytes, missed_operations] = self.missed;
        [
            time.saturating_add(missed_time),
            bytes.saturating_add(missed_bytes),
            operations.saturating_add(missed_operations),
        ]
    }
}

/// Sums of the paths that matter most.
pub(crate) struct Sketch {
    hasher: foldhash::fast::FixedState,
    index: HashTable<u32>,
    entries: Vec<Entry>,
    keep: usize,
    forgotten: u64,
    error: [u64; 3],
}

impl Sketch {
    /// A sketch that keeps the first `keep` paths of each ranking.
    pub(crate) fn new(keep: usize) -> Sketch {
        Sketch {
            hasher: foldhash::fast::FixedState::default(),
            index: HashTable::new(),
            entries: Vec::new(),
            keep: keep.max(1),
            forgotten: 0,
            error: [0; 3],
        }
    }

    /// Adds to a path of a share.
    pub(crate) fn add(&mut self, share: u32, path: &str, sums: &PathSums) {
        let hash = self.hasher.hash_one((share, path));
        let entries = &self.entries;
        let found = self.index.find(hash, |&number| {
            entries.get(number as usize).is_some_and(|entry| {
                entry.hash == hash && entry.share == share && is_kept_as(&entry.path, path, hash)
            })
        });
        if let Some(&number) = found {
            if let Some(entry) = self.entries.get_mut(number as usize) {
                entry.sums.add(sums);
            }
            return;
        }
        if self.entries.len() >= self.keep.saturating_mul(6) {
            self.prune();
        }
        let number = self.entries.len() as u32;
        self.entries.push(Entry {
            hash,
            share,
            path: kept(path, hash),
            sums: *sums,
            missed: self.error,
        });
        let entries = &self.entries;
        self.index.insert_unique(hash, number, |&number| {
            entries.get(number as usize).map_or(0, |entry| entry.hash)
        });
    }

    fn prune(&mut self) {
        let mut keep = vec![false; self.entries.len()];
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        for measure in 0..3 {
            let upper = |&number: &u32| {
                let entry = self.entries.get(number as usize);
                // Older first among equals, so that the result follows from the rows alone.
                Reverse((entry.map_or(0, |entry| entry.upper()[measure]), Reverse(number)))
            };
            if order.len() > self.keep {
                order.select_nth_unstable_by_key(self.keep, upper);
            }
            for &number in order.iter().take(self.keep) {
                if let Some(keep) = keep.get_mut(number as usize) {
                    *keep = true;
                }
            }
        }
        let mut place = 0;
        let (error, forgotten) = (&mut self.error, &mut self.forgotten);
        self.entries.retain(|entry| {
            let stays = keep.get(place).copied().unwrap_or(false);
            place += 1;
            if !stays {
                *forgotten += 1;
                let upper = entry.upper();
                for (error, upper) in error.iter_mut().zip(upper) {
                    *error = upper.max(*error);
                }
            }
            stays
        });
        self.index.clear();
        let entries = &self.entries;
        for (number, entry) in entries.iter().enumerate() {
            self.index.insert_unique(entry.hash, number as u32, |&number| {
                entries.get(number as usize).map_or(0, |entry| entry.hash)
            });
        }
    }

    /// The first `rows` of each ranking; with `files_only` without known directories.
    pub(crate) fn finish(
        &self,
        rows: usize,
        files_only: bool,
        total: &Whole,
        share: impl Fn(u32) -> Option<String>,
    ) -> Top {
        let wanted = |entry: &&Entry| !(files_only && entry.sums.directory);
        let ranking = |measure: usize| -> Vec<PathRow> {
            let mut order: Vec<&Entry> = self
                .entries
                .iter()
                .filter(wanted)
                .filter(|entry| entry.sums.measures()[measure] > 0)
                .collect();
            order.sort_by(|a, b| {
                let sums = |entry: &Entry| entry.sums.measures();
                (sums(b)[measure].cmp(&sums(a)[measure]))
                    .then_with(|| sums(b).cmp(&sums(a)))
                    .then_with(|| (a.share, &a.path).cmp(&(b.share, &b.path)))
            });
            order.truncate(rows);
            let row = |entry: &&Entry| PathRow {
                share: share(entry.share),
                path: entry.path.to_string(),
                operations: entry.sums.operations,
                busy_ns: entry.sums.busy_ns,
                busy_share: share_of(entry.sums.busy_ns, total.busy_ns),
                read_bytes: entry.sums.read_bytes,
                written_bytes: entry.sums.written_bytes,
                errors: entry.sums.errors,
                not_found: entry.sums.not_found,
            };
            order.iter().map(row).collect()
        };
        let [error_busy_ns, error_bytes, error_operations] = self.error;
        Top {
            distinct: self.entries.iter().filter(wanted).count() as u64,
            approximate: self.forgotten > 0,
            error_busy_ns: i64::try_from(error_busy_ns).unwrap_or(i64::MAX),
            error_bytes,
            error_operations,
            by_time: ranking(0),
            by_bytes: ranking(1),
            by_operations: ranking(2),
        }
    }
}

/// The directory that a path is directly in; the empty path is the share's root.
pub(crate) fn parent(path: &str) -> &str {
    let path = directory(path);
    path.rfind(['\\', '/']).and_then(|end| path.get(..end)).unwrap_or("")
}

/// The path of a directory that was listed; SMB1 has a separator at the end or before the root.
pub(crate) fn directory(path: &str) -> &str {
    path.trim_end_matches(['\\', '/'])
}

fn cut(path: &str) -> &str {
    let mut end = PATH_BYTES_MAX.min(path.len());
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    path.get(..end).unwrap_or("")
}

fn kept(path: &str, hash: u64) -> Box<str> {
    if path.len() <= PATH_BYTES_MAX {
        return path.into();
    }
    format!("{}…#{hash:016x}", cut(path)).into()
}

fn is_kept_as(kept: &str, path: &str, hash: u64) -> bool {
    if path.len() <= PATH_BYTES_MAX {
        return kept == path;
    }
    kept.strip_prefix(cut(path))
        .and_then(|rest| rest.strip_prefix("…#"))
        .is_some_and(|rest| rest == format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(operations: u64, busy_ns: i64, read_bytes: u64) -> PathSums {
        PathSums { operations, busy_ns, read_bytes, ..PathSums::default() }
    }

    const WHOLE: Whole = Whole { operations: 100, busy_ns: 1_000 };

    #[test]
    fn below_the_limit_sums_are_exact_and_ranked_three_ways() {
        let mut sketch = Sketch::new(4);
        sketch.add(2, "slow", &sums(1, 700, 0));
        sketch.add(2, "big", &sums(1, 100, 9_000));
        sketch.add(2, "often", &sums(5, 50, 10));
        sketch.add(2, "often", &sums(5, 50, 10));
        let top = sketch.finish(2, false, &WHOLE, |number| Some(format!("s{number}")));
        assert!(!top.approximate);
        assert_eq!((top.distinct, top.error_operations), (3, 0));
        assert_eq!((top.by_time[0].path.as_str(), top.by_time[0].busy_share), ("slow", 0.7));
        assert_eq!((top.by_bytes[0].path.as_str(), top.by_bytes.len()), ("big", 2));
        assert_eq!(
            (top.by_operations[0].path.as_str(), top.by_operations[0].operations),
            ("often", 10)
        );
        assert_eq!(top.by_time[0].share.as_deref(), Some("s2"));
    }

    #[test]
    fn a_heavy_path_survives_any_number_of_light_ones_within_the_error() {
        let mut sketch = Sketch::new(16);
        for n in 0..20_000u64 {
            sketch.add(2, &format!("light{n}"), &sums(1, 1, 1));
            if n % 20 == 0 {
                sketch.add(2, "heavy", &sums(1, 5, 1));
            }
        }
        let top = sketch.finish(3, false, &WHOLE, |_| None);
        assert!(top.approximate && sketch.entries.len() <= 96);
        let heavy = &top.by_operations[0];
        assert_eq!(heavy.path, "heavy");
        assert!(heavy.operations <= 1_000 && heavy.operations + top.error_operations >= 1_000);
        assert!(top.error_operations < 21_000 / 16, "{}", top.error_operations);
    }

    #[test]
    fn long_paths_are_cut_but_stay_apart() {
        let mut sketch = Sketch::new(4);
        let long = "ä".repeat(40_000);
        for path in [long.clone(), format!("{long}x"), long] {
            sketch.add(2, &path, &sums(1, 1, 0));
        }
        let top = sketch.finish(9, false, &WHOLE, |_| None);
        assert_eq!(top.by_operations[0].operations, 2);
        assert_eq!(top.by_operations[1].operations, 1);
        assert!(top.by_operations.iter().all(|row| row.path.len() < 510));
    }

    #[test]
    fn parents_end_at_the_share() {
        assert_eq!(parent("a\\b\\c.txt"), "a\\b");
        assert_eq!(parent("a\\b\\"), "a");
        assert_eq!(parent("a"), "");
        assert_eq!(parent(""), "");
        // However its root is named.
        assert_eq!((parent("\\"), directory("\\"), directory("")), ("", "", ""));
        assert_eq!(directory("a\\b\\"), "a\\b");
    }
}
