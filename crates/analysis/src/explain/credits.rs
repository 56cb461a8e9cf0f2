//! Clients that would send more and have no credits (MS-SMB2 sections 3.2.4.1.2 and 3.3.1.2): the server's
//! grants bound what is in flight.

use hashbrown::HashMap;

use super::attribution::Gathered;
use super::connections::Connections;
use super::data::{Confidence, Figure, Trouble};
use super::operation::{Act, Seen};
use super::{Found, finding};

/// Who holds more than this at a time has enough for eight requests of 1 MiB.
const FEW: u64 = 128;
/// Operations of a connection without which nothing is said of it.
const LEAST: u64 = 20;
/// Connections that are followed.
const CONNECTIONS_MAX: usize = 16_384;
/// How many times as much as it gets a client asks for that is short of credits.
const MORE: f64 = 1.5;

/// One connection.
#[derive(Default)]
struct Balance {
    operations: u64,
    charged: u64,
    asked: u64,
    granted: u64,
    most: u32,
    full: Gathered,
}

/// All.
#[derive(Default)]
pub(super) struct Credits(HashMap<(u32, u64), Balance, foldhash::fast::RandomState>);

impl Credits {
    pub(super) fn see(&mut self, seen: &Seen) {
        let columns = seen.columns;
        let numbers = [&columns.credits_requested, &columns.credits_granted];
        let [Some(asked), Some(granted)] = numbers.map(|column| column.get(seen.row)) else {
            return;
        };
        // Until a client is logged on, servers grant little on purpose.
        if seen.act == Act::Logon || !seen.is_timed {
            return;
        }
        let key = (seen.recording, seen.connection);
        if self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&key) {
            return;
        }
        let one = self
            .0
            .entry(key)
            .or_insert_with(|| Balance { full: Gathered::few(), ..Balance::default() });
        one.operations += 1;
        one.charged += u64::from(columns.credit_charge.get(seen.row).unwrap_or(1).max(1));
        one.asked += u64::from(asked);
        one.granted += u64::from(granted);
        let outstanding = columns.outstanding.get(seen.row).unwrap_or(0);
        one.most = one.most.max(outstanding);
        if asked > granted
            && let Some((_, distance)) = seen.split()
        {
            one.full.add(seen, seen.of_busy(distance));
        }
    }

    pub(super) fn finish(self, connections: &Connections) -> Vec<Found> {
        let mut full = Gathered::default();
        let (mut starved, mut held, mut most) = (0_u64, 0, 0);
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|one| one.0);
        for (key, one) in all {
            let Some((least, held_most)) = connections.get(key).and_then(|known| known.credits)
            else {
                continue;
            };
            let charge = one.charged as f64 / one.operations.max(1) as f64;
            let wants = one.asked as f64 > MORE * one.granted as f64;
            // In flight were as many as the credits pay for.
            let is_full = f64::from(one.most + 2) * charge > held_most as f64;
            let is_short = (least as f64) < charge.max(1.0) && held_most <= FEW;
            if one.operations >= LEAST && wants && is_short && is_full {
                starved += 1;
                held = held.max(held_most);
                most = most.max(one.most + 1);
                full.merge(one.full);
            }
        }
        let mut found = finding(
            Trouble::CreditStarvation,
            "The server grants so few credits that clients cannot send what they have: requests wait for the \
             replies before them"
                .to_owned(),
            full,
            Confidence::Medium,
            "clients had used all credits that they held, asked for more than they got, and had as many requests \
             in flight as those paid for",
        );
        found.finding.figures = [
            ("credits_at_most", held as f64),
            ("in_flight_at_most", f64::from(most)),
            ("connections", starved as f64),
        ]
        .map(|(name, value)| Figure { name, value, error: None, unit: "" })
        .to_vec();
        vec![found]
    }
}
