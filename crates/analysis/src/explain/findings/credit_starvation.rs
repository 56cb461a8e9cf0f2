//! Clients have more to send than their credits allow (MS-SMB2 sections 3.2.4.1.2 and 3.3.1.2): credits
//! limit the requests in flight.
//!
//! A request takes as many credits as its CreditCharge says, one for each 64 KiB, and the reply grants some
//! of those that the client requests in CreditRequest. So the cause is the server if it grants less than is
//! requested, and the client if it requests less than it spends.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::{ConnectionFacts, list_names};
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const SAMBA: (&str, &str) = ("Samba", "smb2 max credits = 8192 (the default)");
/// Where a client had as many as servers grant by default.
pub(crate) const SAMBA_MORE: (&str, &str) =
    ("Samba", "smb2 max credits above the default of 8192, which the client reached");
pub(crate) const WINDOWS_MORE: (&str, &str) = (
    "Windows",
    "Set-SmbServerConfiguration -Smb2CreditsMax above the default of 8192, which the client reached",
);
pub(crate) const WINDOWS: (&str, &str) = (
    "Windows",
    "Set-SmbServerConfiguration -Smb2CreditsMin 512 -Smb2CreditsMax 8192 (the defaults)",
);
pub(crate) const CLIENT: (&str, &str) =
    ("client", "Linux: mount option max_credits; Windows: several connections by SMB Multichannel");
/// Where its session has several connections.
pub(crate) const CLIENT_CHANNELS: (&str, &str) = ("client", "Linux: mount option max_credits");
/// Where the client requests too little.
const CLIENT_REQUESTS: (&str, &str) = (
    "client",
    "a version that requests at least as many credits as it spends (Linux: a current kernel without max_credits; \
     libsmb2 and other libraries: update); until then smaller reads and writes, which cost fewer credits (rsize=, \
     wsize=)",
);
/// Where credits are lost.
const RECONNECT: (&str, &str) = (
    "client",
    "a new connection begins with new credits; report the frames to the server's vendor",
);
/// Where a negotiated size cannot be used.
const SMALLER_SIZE: (&str, &str) = (
    "Samba",
    "smb2 max read and smb2 max write of at most 64 KiB for each credit that clients get",
);

pub(crate) const KIND: KindInfo = KindInfo::new("credit-starvation", "too few credits")
    .with_actor(Actor::Server)
    .with_remedies(&[SAMBA, WINDOWS, CLIENT]);

/// A client with more credits than this can have eight requests of 1 MiB in flight.
const ENOUGH: u64 = 128;
/// Fewest operations of a connection to judge it by.
const OPERATIONS_MIN: u64 = 20;
/// Most connections that are followed.
const CONNECTIONS_MAX: usize = 16_384;
/// A client is short of credits if it requests this many times as many as it is granted.
const REQUESTED_MIN: f64 = 1.5;
/// A client that requests less than this share of what it spends requests too little.
const SPENT_MIN: f64 = 0.75;
/// Fewest replies that grant less than was spent to call it a decline.
const FALLS_MIN: u64 = 4;
/// Bytes for which a request takes one credit (MS-SMB2 section 3.1.5.2).
const CREDIT_BYTES: u64 = 65_536;

/// Whose fault it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The server grants fewer than requested.
    FewGranted,
    /// The same, and a read or write of the negotiated size takes more credits than that.
    SizeTooLarge,
    /// The server grants fewer than requests take, until none are left.
    Declining,
    /// The client requests fewer than its requests take.
    FewRequested,
}

/// Credits and requests of one connection.
#[derive(Default)]
struct Balance {
    operations: u64,
    charged: u64,
    requested: u64,
    granted: u64,
    outstanding_max: u32,
    /// Granted minus charged: now, and at most.
    net: i64,
    net_max: i64,
    /// Replies since then that granted less and more than was charged.
    falls: u64,
    rises: u64,
    /// Operations whose reply granted less than they requested.
    refused: Attribution,
    /// Operations that requested less than they took, and what they took.
    modest: Attribution,
    modest_charged: u64,
}

/// Connections with one cause.
#[derive(Default)]
struct Group {
    attribution: Attribution,
    connections: u64,
    held_max: u64,
    in_flight_max: u32,
    charged: u64,
    requested: u64,
    granted: u64,
    operations: u64,
    /// Credits for a read or write of the negotiated size.
    size_credits: u64,
    clients: BTreeSet<String>,
    servers: BTreeSet<String>,
}

/// The balances of all connections.
#[derive(Default)]
pub(crate) struct CreditStarvation(HashMap<(u32, u64), Balance, foldhash::fast::RandomState>);

impl Detector for CreditStarvation {
    fn see(&mut self, op: &Operation) {
        let columns = op.columns;
        let numbers = [&columns.credits_requested, &columns.credits_granted];
        let [Some(requested), Some(granted)] = numbers.map(|column| column.get(op.row)) else {
            return;
        };
        // Before a client has logged on, servers grant little on purpose.
        if op.act == Act::Logon {
            return;
        }
        let key = (op.recording, op.connection);
        if self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&key) {
            return;
        }
        let balance = self.0.entry(key).or_insert_with(|| Balance {
            refused: Attribution::with_few_names(),
            modest: Attribution::with_few_names(),
            ..Balance::default()
        });
        let charge = columns.credit_charge.get(op.row).unwrap_or(1).max(1);
        let outstanding = columns.outstanding.get(op.row).unwrap_or(0);
        balance.add([charge, requested, granted], outstanding);
        // Servers grant the credits of a compound in its last reply.
        let is_alone = op.is_timed && columns.compound.get(op.row).is_none();
        if let Some((_, network_ns)) = op.split().filter(|_| is_alone) {
            if requested > granted {
                balance.refused.add(op, op.of_busy(network_ns));
            } else if requested < charge {
                balance.modest.add(op, op.of_busy(network_ns));
                balance.modest_charged += u64::from(charge);
            }
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let mut groups: [Group; Cause::ALL.len()] = Default::default();
        let mut balances: Vec<_> = self.0.into_iter().collect();
        balances.sort_unstable_by_key(|one| one.0);
        for (key, balance) in balances {
            let Some(facts) = context.connections.get(key) else { continue };
            let Some((fewest, most)) = facts.credits else { continue };
            if let Some(cause) = balance.cause((fewest, most), size_credits(facts)) {
                groups[cause as usize].add(balance, cause, most, facts);
            }
        }
        let found = Cause::ALL.into_iter().zip(groups).filter(|(_, group)| group.connections > 0);
        found.map(|(cause, group)| cause.candidate(group)).collect()
    }
}

impl Balance {
    fn add(&mut self, [charge, requested, granted]: [u16; 3], outstanding: u32) {
        self.operations += 1;
        self.charged += u64::from(charge);
        self.requested += u64::from(requested);
        self.granted += u64::from(granted);
        self.outstanding_max = self.outstanding_max.max(outstanding);
        self.net = self.net.saturating_add(i64::from(granted) - i64::from(charge));
        self.falls += u64::from(granted < charge);
        self.rises += u64::from(granted > charge);
        if self.net >= self.net_max {
            (self.net_max, self.falls, self.rises) = (self.net, 0, 0);
        }
    }

    /// Why it has too few credits, if it has; the client held from `fewest` to `most`, and a request of the
    /// negotiated size takes `size_credits`.
    fn cause(&self, (fewest, most): (u64, u64), size_credits: Option<u64>) -> Option<Cause> {
        if self.operations < OPERATIONS_MIN {
            return None;
        }
        let wants_more = self.requested as f64 > REQUESTED_MIN * self.granted as f64;
        let lost = self.net_max.saturating_sub(self.net);
        let declines =
            self.falls >= FALLS_MIN && self.rises == 0 && lost as f64 >= most as f64 / 2.0;
        let mean = |charged: u64, operations: u64| charged as f64 / operations.max(1) as f64;
        let charge = mean(self.charged, self.operations).max(1.0);
        let is_short = |charge: f64| (fewest as f64) < charge;
        if declines && wants_more && self.requested >= self.charged && is_short(charge) {
            return Some(Cause::Declining);
        }
        // As many requests were in flight as the credits pay for.
        let is_full = |charge: f64| {
            let in_flight = f64::from(self.outstanding_max + 2);
            most <= ENOUGH && is_short(charge) && in_flight * charge > most as f64
        };
        if wants_more && is_full(charge) {
            let is_too_large = size_credits.is_some_and(|credits| credits > most);
            return Some(if is_too_large { Cause::SizeTooLarge } else { Cause::FewGranted });
        }
        // The mean of the requests that take more credits than they request; small ones in between take one.
        let modest = mean(self.modest_charged, self.modest.operations);
        let spends_more = (self.requested as f64) < SPENT_MIN * self.charged as f64;
        let is_modest = self.modest.operations >= OPERATIONS_MIN
            && spends_more
            && self.granted >= self.requested;
        (is_modest && is_full(modest)).then_some(Cause::FewRequested)
    }
}

/// Credits that a read or write of the negotiated size takes.
fn size_credits(facts: &ConnectionFacts) -> Option<u64> {
    let most = facts.blocks_max.into_iter().flatten().max()?;
    Some(most.div_ceil(CREDIT_BYTES))
}

impl Group {
    fn add(&mut self, balance: Balance, cause: Cause, most: u64, facts: &ConnectionFacts) {
        self.connections += 1;
        self.held_max = self.held_max.max(most);
        self.in_flight_max = self.in_flight_max.max(balance.outstanding_max + 1);
        self.charged += balance.charged;
        self.requested += balance.requested;
        self.granted += balance.granted;
        self.operations += balance.operations;
        self.size_credits = self.size_credits.max(size_credits(facts).unwrap_or(0));
        self.clients.insert(facts.client.to_string());
        self.servers.insert(facts.server.to_string());
        self.attribution.merge(match cause {
            Cause::FewRequested => balance.modest,
            _ => balance.refused,
        });
    }
}

impl Cause {
    const ALL: [Cause; 4] =
        [Cause::FewGranted, Cause::SizeTooLarge, Cause::Declining, Cause::FewRequested];

    fn candidate(self, group: Group) -> Candidate {
        let (clients, servers) = (list_names(&group.clients), list_names(&group.servers));
        let mean = |sum: u64| sum as f64 / group.operations.max(1) as f64;
        let (what, because, remedies): (_, _, &[_]) = match self {
            Cause::FewGranted => (
                format!(
                    "The server {servers} grants so few credits that clients cannot send all they have: requests \
                     wait for the replies to earlier ones"
                ),
                "clients used all their credits, requested more than they were granted, and had as many requests in \
                 flight as their credits allow",
                &[SAMBA, WINDOWS, CLIENT],
            ),
            Cause::SizeTooLarge => (
                format!(
                    "The server {servers} offers reads and writes that take {} credits, but never grants more than \
                     {}: clients cannot use the size that was negotiated, and requests wait for the replies to \
                     earlier ones",
                    group.size_credits, group.held_max
                ),
                "a request takes one credit for each 64 KiB, clients used all their credits, and requested more than \
                 they were granted",
                &[SAMBA, WINDOWS, SMALLER_SIZE],
            ),
            Cause::Declining => (
                format!(
                    "The server {servers} grants fewer credits than requests take, until clients have too few to \
                     send what they have; it never gives them back"
                ),
                "the credits fell from reply to reply and never rose again, although clients requested at least as \
                 many as they spent",
                &[RECONNECT, SAMBA, WINDOWS],
            ),
            Cause::FewRequested => (
                format!(
                    "The client {clients} requests fewer credits than it spends ({:.1} for a charge of {:.1}), so it \
                     never holds more than {}: requests wait for the replies to earlier ones",
                    mean(group.requested),
                    mean(group.charged),
                    group.held_max
                ),
                match group.in_flight_max {
                    1 => {
                        "the client used its credits, and the server granted everything that it requested; a client \
                         that sends one request at a time by choice looks the same"
                    }
                    _ => {
                        "the client used all its credits, had as many requests in flight as they allow, and the \
                         server granted everything that it requested"
                    }
                },
                &[CLIENT_REQUESTS],
            ),
        };
        let confidence = match (self, group.in_flight_max) {
            (Cause::FewRequested, 1) => Confidence::Possible,
            _ => Confidence::Likely,
        };
        let actor = match self {
            Cause::FewRequested => Actor::Client,
            _ => Actor::Server,
        };
        let kind = FindingKind::CreditStarvation;
        let candidate = Candidate::new(kind, what, group.attribution, confidence, because);
        // A connection without credits is dead.
        let is_dead = matches!(self, Cause::Declining);
        let candidate = if is_dead { candidate.broken() } else { candidate };
        candidate
            .with_owner(actor, Vec::new())
            .with_figures([
                ("credits_at_most", group.held_max as f64, "", "at most {} credits"),
                ("in_flight_at_most", f64::from(group.in_flight_max), "", "at most {} in flight"),
                ("connections", group.connections as f64, "", "connections: {}"),
                ("charge", mean(group.charged), "", "a request takes {} credits on average"),
                ("requested", mean(group.requested), "", "{} are requested"),
                ("granted", mean(group.granted), "", "{} are granted"),
            ])
            .with_remedies(remedies)
    }
}
