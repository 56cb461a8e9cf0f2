//! Signing: which side decides that messages are signed, and what it costs the server as far as that is
//! visible from outside.
//!
//! Messages are signed if one side requires it (SecurityMode in Negotiate and SessionSetup, MS-SMB2 sections
//! 2.2.3 to 2.2.5 and 3.2.5.3.1; MS-CIFS section 2.2.4.52.2); clients may also sign on their own. What counts
//! is the flag of real messages: logons are always signed at their end, TreeConnect is signed in 3.1.1, and
//! FSCTL_VALIDATE_NEGOTIATE_INFO in 3.0, whatever was decided.
//!
//! A server computes the signature of a reply before it sends the first byte, and verifies a request after
//! its last byte: both lie in the turnaround, which therefore grows with the bytes.

mod sizes;

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::Figure;

use super::attribution::Attribution;
use super::candidate::Candidate;
use super::connections::{ConnectionFacts, Connections, list_names};
use super::data::{About, Note};
use super::detector::{Context, Detector};
use super::findings::protection;
use super::operation::{Act, Operation};
use crate::stats::slope::Slope;
use sizes::SizeSample;

/// Most connections and servers that are followed.
const CONNECTIONS_MAX: usize = 65_536;
const SERVERS_MAX: usize = 256;
/// Fewest signed operations of a connection to call signing in use.
const SIGNED_MIN: u64 = 3;
/// A server that needs more for each byte signs slowly, ns: 50 MB/s.
const SLOW_NS_PER_BYTE: f64 = 20.0;
/// What a server needs for each byte that is not signed, ns.
const UNSIGNED_NS_PER_BYTE: f64 = 1.0;
/// Fewest long messages to know the rate of the network by.
const MESSAGES_MIN: u64 = 10;

const UNKNOWN_COST: &str = "what that costs the server is not visible from outside: record inside the server \
    (`smbscope record`), or predict it without (`smbscope predict INPUT --change encryption=off`)";

/// Messages of a connection that could be signed.
#[derive(Default)]
struct SignedCount {
    signed: u64,
    unsigned: u64,
}

/// Reads and writes of one server.
#[derive(Default)]
struct ServerSizes {
    /// The reads and the writes, first of unsigned, then of signed ones.
    samples: [[SizeSample; 2]; 2],
    /// Signed reads and writes: what they cost, bytes, turnaround.
    signed: [(Attribution, u64, i64); 2],
    /// Long replies and requests: number, bytes, time.
    long: [(u64, u64, i64); 2],
    /// A connection to it.
    connection: (u32, u64),
}

/// All connections.
#[derive(Default)]
pub(super) struct Signing {
    connections: HashMap<(u32, u64), SignedCount, foldhash::fast::RandomState>,
    servers: HashMap<(u32, u32), Box<ServerSizes>, foldhash::fast::RandomState>,
}

impl Detector for Signing {
    fn see(&mut self, op: &Operation) {
        let columns = op.columns;
        let validates = op.act == Act::Other
            && columns.detail.get(op.row) == Some("FSCTL_VALIDATE_NEGOTIATE_INFO");
        // Without a command, the message was encrypted and not decrypted.
        let is_readable = columns.command.key(op.row).is_some();
        let is_encrypted = columns.encrypted.is_set(op.row);
        if op.act == Act::Logon || validates || is_encrypted || !is_readable {
            return;
        }
        let key = (op.recording, op.connection);
        if self.connections.len() >= CONNECTIONS_MAX && !self.connections.contains_key(&key) {
            return;
        }
        let count = self.connections.entry(key).or_default();
        let is_signed = columns.signed.is_set(op.row);
        *(if is_signed { &mut count.signed } else { &mut count.unsigned }) += 1;
        let direction = match op.act {
            Act::Read => 0,
            Act::Write => 1,
            _ => return,
        };
        self.see_size(op, direction, is_signed);
    }

    /// What signing costs the servers, from outside.
    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let connections = context.connections;
        context.notes.extend(self.decisions(connections));
        let mut servers: Vec<_> = self.servers.into_iter().collect();
        servers.sort_unstable_by_key(|(key, _)| *key);
        let mut found = Growths::default();
        for (_, server) in servers {
            let facts = connections.get(server.connection);
            let ServerSizes { samples: [unsigned, signed], signed: costs, long, .. } = *server;
            let network = network_ns_per_byte(&long, facts);
            let both = unsigned.into_iter().zip(signed).zip(costs).zip(["reads", "writes"]);
            for (((unsigned, signed), cost), kind) in both {
                let Some(slope) = signed.slope() else { continue };
                let needed = if kind == "reads" { Some(0.0) } else { network };
                found.add(slope, unsigned.slope(), cost, kind, (needed, facts));
            }
        }
        // Slices of crypto are more exact.
        if context.has_crypto_slices {
            return Vec::new();
        }
        let bound = found.bound.take().map(|(_, what)| what);
        let candidate = found.candidate();
        if candidate.is_none() {
            context.protection_cost = Some(bound.unwrap_or_else(|| UNKNOWN_COST.to_owned()));
        }
        candidate.into_iter().collect()
    }
}

impl Signing {
    fn see_size(&mut self, op: &Operation, direction: usize, is_signed: bool) {
        let columns = op.columns;
        let (Some(turnaround_ns), 1.., false, Some(0), true) =
            (op.turnaround_ns(), op.bytes, op.is_pipe, op.status, op.is_timed)
        else {
            return;
        };
        let key = (op.recording, op.server);
        if self.servers.len() >= SERVERS_MAX && !self.servers.contains_key(&key) {
            return;
        }
        let server = self.servers.entry(key).or_insert_with(|| {
            let with_few_names = || (Attribution::with_few_names(), 0, 0);
            Box::new(ServerSizes {
                connection: (op.recording, op.connection),
                signed: [with_few_names(), with_few_names()],
                ..ServerSizes::default()
            })
        });
        for (sum, message) in server.long.iter_mut().zip(op.long_messages()) {
            if let Some((bytes, ns)) = message {
                *sum = (sum.0 + 1, sum.1.saturating_add(bytes), sum.2.saturating_add(ns));
            }
        }
        if is_signed {
            let (attribution, bytes, ns) = &mut server.signed[direction];
            attribution.add(op, op.of_busy(turnaround_ns));
            *bytes = bytes.saturating_add(op.bytes);
            *ns = ns.saturating_add(turnaround_ns);
        }
        // A compound, an interim reply or a loss would add their own time.
        let is_plain = columns.compound.get(op.row).is_none()
            && columns.pending_at.get(op.row).is_none()
            && op.recovery_ns() == 0;
        let is_alone = columns.outstanding.get(op.row) == Some(0);
        let ns = match (op.split(), is_alone) {
            (Some((server_ns, _)), true) => Some(server_ns),
            // While other replies arrive, the server may already work on this one: at least this long.
            (Some((server_ns, _)), false) => Some(server_ns.min(op.silent_ns)),
            (None, true) => Some(turnaround_ns),
            (None, false) => None,
        };
        if let Some(ns) = ns.filter(|_| is_plain) {
            server.samples[usize::from(is_signed)][direction].add(op.bytes, ns);
        }
    }

    /// A note for each side that decides, if messages are signed.
    fn decisions(&self, connections: &Connections) -> Vec<Note> {
        let mut all: Vec<_> =
            self.connections.iter().filter(|(_, count)| count.is_used()).collect();
        all.sort_unstable_by_key(|(key, _)| **key);
        let mut groups: [Group; Decider::ALL.len()] = Default::default();
        for (key, count) in all {
            let facts = connections.get(*key);
            let group = &mut groups[Decider::from_facts(facts) as usize];
            group.connections += 1;
            group.signed += count.signed;
            group.all += count.signed + count.unsigned;
            if let Some(facts) = facts {
                group.one_sided += u64::from(facts.signing_required.contains(&None));
                group.clients.insert(facts.client.to_string());
                group.servers.insert(facts.server.to_string());
            }
        }
        let used = Decider::ALL.into_iter().zip(&groups).filter(|(_, group)| group.connections > 0);
        used.map(|(decider, group)| Note { about: About::Signing, what: decider.sentence(group) })
            .collect()
    }
}

impl SignedCount {
    fn is_used(&self) -> bool {
        self.signed >= SIGNED_MIN && self.signed > self.unsigned
    }
}

/// The side that decides that messages are signed.
#[derive(Clone, Copy)]
enum Decider {
    Server,
    Client,
    Both,
    Neither,
    Unknown,
}

/// Connections with one decider.
#[derive(Default)]
struct Group {
    connections: u64,
    signed: u64,
    all: u64,
    /// Connections of which only one side is known.
    one_sided: u64,
    clients: BTreeSet<String>,
    servers: BTreeSet<String>,
}

const IS_A_DECISION: &str = "signing protects against changed messages and relayed logons, so this is a decision, \
    not an error";
const AT_THE_SERVER: &str = "Samba: server signing (default, mandatory on domain controllers); Windows: \
    Set-SmbServerConfiguration -RequireSecuritySignature";
const AT_THE_CLIENT: &str = "Windows client: Set-SmbClientConfiguration -RequireSecuritySignature (on by default since \
    Windows 11 24H2); Samba client: client signing; Linux: the mount option sign, or sec=ntlmsspi instead of ntlmssp \
    (krb5i instead of krb5); macOS: signing_required in nsmb.conf";

impl Decider {
    const ALL: [Decider; 5] =
        [Decider::Server, Decider::Client, Decider::Both, Decider::Neither, Decider::Unknown];

    fn from_facts(facts: Option<&ConnectionFacts>) -> Decider {
        match facts.map(|facts| facts.signing_required) {
            Some([Some(true), Some(true)]) => Decider::Both,
            Some([_, Some(true)]) => Decider::Server,
            Some([Some(true), _]) => Decider::Client,
            Some([Some(false), Some(false)]) => Decider::Neither,
            _ => Decider::Unknown,
        }
    }

    fn sentence(self, group: &Group) -> String {
        let (clients, servers) = (list_names(&group.clients), list_names(&group.servers));
        let other = |side: &str| match group.one_sided {
            0 => format!(" and the {side} does not"),
            _ => String::new(),
        };
        let (reason, choice) = match self {
            Decider::Server => (
                format!(
                    " because the server {servers} requires it (SIGNING_REQUIRED in its Negotiate response){}",
                    other("client")
                ),
                format!(": set at the server ({AT_THE_SERVER})"),
            ),
            Decider::Client => (
                format!(
                    " because the client {clients} requires it (SIGNING_REQUIRED in its Negotiate or SessionSetup \
                     request){}",
                    other("server")
                ),
                format!(": set at the client ({AT_THE_CLIENT})"),
            ),
            Decider::Both => (
                format!(" because client {clients} and server {servers} both require it"),
                format!(": set on both sides ({AT_THE_SERVER}; {AT_THE_CLIENT})"),
            ),
            Decider::Neither => (
                format!(
                    " although neither client {clients} nor server {servers} requires it in its SecurityMode: the \
                     client signs by its own settings"
                ),
                " (Samba: client signing = desired; Windows: UNC hardening with RequireIntegrity=1; macOS up to \
                 10.13.3 by default)"
                    .to_owned(),
            ),
            Decider::Unknown => (
                ", but the recording does not show which side requires it (no complete Negotiate)".to_owned(),
                String::new(),
            ),
        };
        format!(
            "{} of {} operations on {} {} are signed{reason}; {IS_A_DECISION}{choice}",
            group.signed,
            group.all,
            group.connections,
            if group.connections == 1 { "connection" } else { "connections" }
        )
    }
}

/// What the network needs for each byte of a request within the turnaround, ns: nothing unless the capture was
/// taken at the client, where a request's last byte is seen before it is on the link. None if unknown.
fn network_ns_per_byte(
    long: &[(u64, u64, i64); 2],
    facts: Option<&ConnectionFacts>,
) -> Option<f64> {
    if facts.is_some_and(|facts| facts.is_at_server) {
        return Some(0.0);
    }
    let [(n, bytes, ns), _] = long;
    (*n >= MESSAGES_MIN).then(|| *ns as f64 / (*bytes).max(1) as f64)
}

/// The growths of the turnaround with signed bytes: those that are slow, and the largest of the others.
#[derive(Default)]
struct Growths {
    slow: Attribution,
    steepest: Option<Slope>,
    unsigned: Option<Slope>,
    bound: Option<(Slope, String)>,
    is_uncompared: bool,
}

impl Growths {
    fn add(
        &mut self,
        slope: Slope,
        unsigned: Option<Slope>,
        (mut attribution, bytes, ns): (Attribution, u64, i64),
        kind: &str,
        (needed, facts): (Option<f64>, Option<&ConnectionFacts>),
    ) {
        let base = unsigned.map_or(UNSIGNED_NS_PER_BYTE, |one| one.value.max(UNSIGNED_NS_PER_BYTE));
        let without = needed.map(|needed| base.max(needed));
        let grows_more = unsigned.is_none_or(|one| one.high < slope.low);
        match without {
            Some(without) if grows_more && slope.low - without > SLOW_NS_PER_BYTE => {
                let share = (slope.value - without) * bytes as f64 / ns.max(1) as f64;
                attribution.scale(share.min(1.0));
                self.slow.merge(attribution);
                self.is_uncompared |= unsigned.is_none();
                if self.steepest.is_none_or(|known| known.value < slope.value) {
                    (self.steepest, self.unsigned) = (Some(slope), unsigned);
                }
            }
            _ if self.bound.as_ref().is_none_or(|(known, _)| known.value < slope.value) => {
                let server = facts.map_or("the server", |facts| &*facts.server);
                let what = format!(
                    "the time of {server} grows by {:.1} ns (95 % interval {:.1} to {:.1} ns, n = {}) with each \
                     byte of signed {kind}, storage included: signing costs the server at most that",
                    slope.value, slope.low, slope.high, slope.n
                );
                self.bound = Some((slope, what));
            }
            _ => {}
        }
    }

    fn candidate(self) -> Option<Candidate> {
        let slope = self.steepest?;
        let half = |slope: Slope| Some((slope.high - slope.low) / 2.0);
        let mut candidate = protection::from_outside(self.slow, !self.is_uncompared);
        let rate = 8e9 / slope.value;
        let figures = [
            Figure::new("server_time_per_byte", slope.value, "ns", "{} for each byte")
                .with_error(half(slope)),
            Figure::new("rate_that_this_allows", rate, "bits/s", "at most {} at that rate"),
            Figure::new("operations_compared", slope.n as f64, "", "operations compared: {}"),
        ];
        let unsigned = self.unsigned.map(|one| {
            let phrase = "{} for each unsigned byte";
            Figure::new("server_time_per_unsigned_byte", one.value, "ns", phrase)
                .with_error(half(one))
        });
        candidate.finding = candidate.finding.with_figures(figures.into_iter().chain(unsigned));
        Some(candidate)
    }
}
