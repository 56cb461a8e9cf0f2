//! Which part of SMB's data went over which path: bytes over time by the server's address, from the table
//! `channels`.
//!
//! A path is an address of a server. Clients share the server's end of it, so that all of them count.

use smbscope_tables::run::MEASURED;
use smbscope_tables::tables::Channel;

use super::Moved;
use crate::rows::bins::{Bin, Bins};

/// Addresses that are followed.
const PATHS_MAX: usize = 64;
/// Windows of all of them.
const BINS_MAX: usize = 4_096;
/// A path with a smaller part of the bytes does not count.
const SHARE_MIN: f64 = 0.01;

/// Bytes of each path.
#[derive(Clone, Debug, Default)]
struct Shares(Vec<Moved>);

impl Shares {
    fn of(&mut self, place: usize) -> Option<&mut Moved> {
        if self.0.len() <= place {
            self.0.resize(place + 1, Moved::default());
        }
        self.0.get_mut(place)
    }
}

impl Bin for Shares {
    fn empty() -> Shares {
        Shares::default()
    }

    fn absorb(&mut self, other: &Shares) {
        for (place, moved) in other.0.iter().enumerate() {
            if let Some(own) = self.of(place) {
                own.absorb(moved);
            }
        }
    }
}

/// Collects the rows.
#[derive(Clone, Debug)]
pub(super) struct SmbPaths {
    servers: Vec<String>,
    totals: Vec<Moved>,
    bins: Bins<Shares>,
}

impl Default for SmbPaths {
    fn default() -> SmbPaths {
        SmbPaths { servers: Vec::new(), totals: Vec::new(), bins: Bins::new(BINS_MAX) }
    }
}

impl SmbPaths {
    /// Adds rows; what a load run prepares or verifies is not what it measures.
    pub(super) fn add(&mut self, rows: &[Channel]) {
        for row in rows {
            let is_measured = row.phase.as_deref().is_none_or(|phase| phase == MEASURED);
            if !is_measured || (row.bytes_read == 0 && row.bytes_written == 0) {
                continue;
            }
            let known = self.servers.iter().position(|server| **server == *row.server);
            let place = match known {
                Some(place) => place,
                None if self.servers.len() == PATHS_MAX => continue,
                None => {
                    self.servers.push(row.server.to_string());
                    self.totals.push(Moved::default());
                    self.servers.len() - 1
                }
            };
            let whole = Moved { read_bytes: row.bytes_read, written_bytes: row.bytes_written };
            if let Some(total) = self.totals.get_mut(place) {
                total.absorb(&whole);
            }
            // Half at either end, so that the interval has its length in narrower windows.
            let half =
                Moved { read_bytes: whole.read_bytes / 2, written_bytes: whole.written_bytes / 2 };
            let rest = Moved {
                read_bytes: whole.read_bytes - half.read_bytes,
                written_bytes: whole.written_bytes - half.written_bytes,
            };
            let length = i64::try_from(row.interval_ns).unwrap_or(i64::MAX).max(1);
            let end = row.interval_start.saturating_add(length - 1);
            for (at, moved) in [(row.interval_start, rest), (end, half)] {
                if let Some(own) = self.bins.at(at).of(place) {
                    own.absorb(&moved);
                }
            }
        }
    }

    /// Addresses of servers with payload of one kind.
    pub(super) fn used(&self, of: fn(&Moved) -> u64) -> Vec<String> {
        let all: f64 = self.totals.iter().map(|total| of(total) as f64).sum();
        let both = self.servers.iter().zip(&self.totals);
        let used = both.filter(|(_, total)| {
            let bytes = of(total) as f64;
            bytes > 0.0 && bytes >= SHARE_MIN * all
        });
        used.map(|(server, _)| server.clone()).collect()
    }

    /// The width of windows, and the bytes of some paths together in each.
    pub(super) fn of(&self, servers: &[&str]) -> (i64, Vec<Moved>) {
        let is_meant: Vec<bool> =
            self.servers.iter().map(|server| servers.contains(&server.as_str())).collect();
        let (width_ns, bins) = self.bins.clone().into_bins();
        let sum = |bin: &Shares| {
            let mut sum = Moved::empty();
            let meant = bin.0.iter().zip(&is_meant).filter(|(_, is_meant)| **is_meant);
            meant.for_each(|(moved, _)| sum.absorb(moved));
            sum
        };
        (width_ns, bins.iter().map(sum).collect())
    }
}
