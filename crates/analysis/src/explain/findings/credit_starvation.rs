//! Clients have more to send than their credits allow (MS-SMB2 sections 3.2.4.1.2 and 3.3.1.2): the
//! server's grants limit the requests in flight.

use hashbrown::HashMap;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::Connections;
use super::super::data::{Actor, Confidence, Remedy, Trouble};
use super::super::operation::{Act, Operation};
use super::remedy;

pub(in super::super) const TITLE: &str = "too few credits";

pub(in super::super) const ACTOR: Actor = Actor::Server;

pub(in super::super) const REMEDIES: &[Remedy] = &[
    remedy("Samba", "smb2 max credits = 8192 (the default)"),
    remedy(
        "Windows",
        "Set-SmbServerConfiguration -Smb2CreditsMin 512 -Smb2CreditsMax 8192 (the defaults)",
    ),
    remedy(
        "client",
        "Linux: mount option max_credits; Windows: several connections by SMB Multichannel",
    ),
];

/// A client with more credits than this can have eight requests of 1 MiB in flight.
const ENOUGH: u64 = 128;
/// Fewest operations of a connection to judge it by.
const OPERATIONS_LEAST: u64 = 20;
/// Most connections that are followed.
const CONNECTIONS_MAX: usize = 16_384;
/// A client is short of credits if it requests this many times as many as it is granted.
const REQUESTED_LEAST: f64 = 1.5;

/// Credits and requests of one connection.
#[derive(Default)]
struct Balance {
    operations: u64,
    charged: u64,
    requested: u64,
    granted: u64,
    outstanding_max: u32,
    attribution: Attribution,
}

/// The balances of all connections.
#[derive(Default)]
pub(in super::super) struct CreditStarvation(
    HashMap<(u32, u64), Balance, foldhash::fast::RandomState>,
);

impl CreditStarvation {
    pub(in super::super) fn see(&mut self, op: &Operation) {
        let columns = op.columns;
        let numbers = [&columns.credits_requested, &columns.credits_granted];
        let [Some(requested), Some(granted)] = numbers.map(|column| column.get(op.row)) else {
            return;
        };
        // Before a client has logged on, servers grant little on purpose.
        if op.act == Act::Logon || !op.is_timed {
            return;
        }
        let key = (op.recording, op.connection);
        if self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&key) {
            return;
        }
        let balance = self.0.entry(key).or_insert_with(|| Balance {
            attribution: Attribution::with_few_names(),
            ..Balance::default()
        });
        balance.operations += 1;
        balance.charged += u64::from(columns.credit_charge.get(op.row).unwrap_or(1).max(1));
        balance.requested += u64::from(requested);
        balance.granted += u64::from(granted);
        let outstanding = columns.outstanding.get(op.row).unwrap_or(0);
        balance.outstanding_max = balance.outstanding_max.max(outstanding);
        if requested > granted
            && let Some((_, network_ns)) = op.split()
        {
            balance.attribution.add(op, op.of_busy(network_ns));
        }
    }

    pub(in super::super) fn finish(self, connections: &Connections) -> Candidate {
        let mut attribution = Attribution::default();
        let (mut starved, mut held_max, mut in_flight_max) = (0_u64, 0, 0);
        let mut balances: Vec<_> = self.0.into_iter().collect();
        balances.sort_unstable_by_key(|one| one.0);
        for (key, balance) in balances {
            let Some((fewest, most)) = connections.get(key).and_then(|known| known.credits) else {
                continue;
            };
            let charge = balance.charged as f64 / balance.operations.max(1) as f64;
            let wants_more = balance.requested as f64 > REQUESTED_LEAST * balance.granted as f64;
            // As many requests were in flight as the credits pay for.
            let is_full = f64::from(balance.outstanding_max + 2) * charge > most as f64;
            let is_short = (fewest as f64) < charge.max(1.0) && most <= ENOUGH;
            if balance.operations >= OPERATIONS_LEAST && wants_more && is_short && is_full {
                starved += 1;
                held_max = held_max.max(most);
                in_flight_max = in_flight_max.max(balance.outstanding_max + 1);
                attribution.merge(balance.attribution);
            }
        }
        Candidate::new(
            Trouble::CreditStarvation,
            "The server grants so few credits that clients cannot send all they have: requests wait for the replies \
             to earlier ones",
            attribution,
            Confidence::Medium,
            "clients used all their credits, requested more than they were granted, and had as many requests in \
             flight as their credits allow",
        )
        .with_figures([
            ("credits_at_most", held_max as f64, ""),
            ("in_flight_at_most", f64::from(in_flight_max), ""),
            ("connections", starved as f64, ""),
        ])
    }
}
