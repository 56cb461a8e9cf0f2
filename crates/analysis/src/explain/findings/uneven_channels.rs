//! One channel of a session is far slower than the others, and what is spread over all waits for it (MS-SMB2 section
//! 3.2.4.1.7: a client chooses among its channels): a path through a VPN, Wi-Fi or a slower interface next to a fast one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};
use crate::stats::mean::Mean;

pub(crate) const KIND: KindInfo = KindInfo::new("uneven-channels", "one channel holds up the others")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "Windows client",
        "allow the fast interfaces only: New-SmbMultichannelConstraint -ServerName SERVER -InterfaceAlias NAME",
    ),
    (
        "server",
        "do not offer the address of the slow path: Samba interfaces = and bind interfaces only = yes; Windows: \
         Set-SmbServerConfiguration -EnableMultiChannel, or remove the interface from the list of the server",
    ),
]);

/// The slow channel takes this many times as long as the quickest one, and carries at least this share of the data.
const TIMES: f64 = 4.0;
const SHARE_MIN: f64 = 0.1;
/// Fewest reads and writes of a channel.
const OPERATIONS_MIN: u64 = 20;
/// Most channels that are followed.
const CHANNELS_MAX: usize = 16_384;

#[derive(Default)]
struct OnChannel {
    /// Time for each byte, ns, and all bytes.
    pace: Mean,
    elapsed: Mean,
    bytes: u64,
    attribution: Attribution,
    numbers: HashSet<u32>,
}

/// Reads and writes by session and connection.
#[derive(Default)]
pub(crate) struct UnevenChannels(
    HashMap<(u32, u64), BTreeMap<u64, OnChannel>, foldhash::fast::RandomState>,
);

impl Detector for UnevenChannels {
    fn see(&mut self, op: &Operation) {
        let is_data = matches!(op.act, Act::Read | Act::Write) && op.bytes >= 4_096;
        let session = op.columns.session_id.get(op.row).filter(|id| *id != 0);
        let (Some(session), true) = (session, is_data && op.is_timed) else { return };
        let key = (op.recording, session);
        if self.0.len() >= CHANNELS_MAX && !self.0.contains_key(&key) {
            return;
        }
        let channels = self.0.entry(key).or_default();
        let has_others = channels.len() > 1;
        let channel = channels.entry(op.connection).or_insert_with(|| OnChannel {
            attribution: Attribution::with_few_names(),
            ..OnChannel::default()
        });
        channel.pace.add(op.elapsed_ns as f64 / op.bytes as f64);
        channel.elapsed.add(op.elapsed_ns as f64);
        channel.bytes = channel.bytes.saturating_add(op.bytes);
        // Most sessions have one channel, which is not compared.
        if has_others {
            channel.attribution.add(op, op.busy_ns);
            channel.numbers.extend(op.number);
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let mut sessions: Vec<_> =
            self.0.into_iter().filter(|(_, channels)| channels.len() > 1).collect();
        sessions.sort_unstable_by_key(|one| one.0);
        let mut attribution = Attribution::with_few_names();
        let (mut names, mut numbers) = (Vec::new(), HashSet::new());
        let mut worst: Option<(f64, f64)> = None;
        let mut is_tunnel = false;
        for ((recording, _), channels) in sessions {
            let known = || channels.values().filter(|one| one.pace.n >= OPERATIONS_MIN);
            let quickest = known().map(|one| one.pace.mean()).fold(f64::INFINITY, f64::min);
            let quick_ns = known()
                .filter(|one| one.pace.mean() <= quickest)
                .map(|one| one.elapsed.mean())
                .fold(f64::INFINITY, f64::min);
            let bytes: u64 = channels.values().map(|one| one.bytes).sum();
            for (connection, channel) in channels {
                let pace = channel.pace.mean();
                let is_slow = channel.pace.n >= OPERATIONS_MIN
                    && pace >= TIMES * quickest
                    && channel.bytes as f64 >= SHARE_MIN * bytes as f64;
                if !is_slow {
                    continue;
                }
                let Some(facts) = context.connections.get((recording, connection)) else { continue };
                is_tunnel |= [&facts.client, &facts.server].into_iter().any(|end| is_shared(end));
                names.push(format!("{} - {}", facts.client, facts.server));
                let times = (quick_ns, channel.elapsed.mean());
                if worst.is_none_or(|worst| times.1 > worst.1) {
                    worst = Some(times);
                }
                let mut part = channel.attribution;
                part.scale(1.0 - quickest / pace);
                attribution.merge(part);
                numbers.extend(channel.numbers);
            }
        }
        let Some((quick_ns, slow_ns)) = worst else { return Vec::new() };
        names.truncate(3);
        let tunnel = if is_tunnel { ", which goes through an address of a tunnel (100.64.0.0/10)" } else { "" };
        let what = format!(
            "One channel of a session is far slower than the others: {}{tunnel}; what is spread over all channels waits for it",
            names.join(", ")
        );
        let mut candidate = Candidate::new(
            FindingKind::UnevenChannels,
            what,
            attribution,
            Confidence::Likely,
            "reads and writes of one session take several times as long for each byte on this connection as on another",
        )
        .with_owner(Actor::Network, names)
        .with_figures([
            ("time_quick", quick_ns, "ns", "{} on the quickest channel"),
            ("time_slow", slow_ns, "ns", "{} on the slow one"),
        ]);
        candidate.explains = (&[FindingKind::BandwidthLimited], numbers);
        vec![candidate]
    }
}

/// Whether an address is of the shared space that VPNs use (RFC 6598).
fn is_shared(address: &str) -> bool {
    match address.parse() {
        Ok(IpAddr::V4(ip)) => {
            let [first, second, ..] = ip.octets();
            first == 100 && second & 0xc0 == 64
        }
        _ => false,
    }
}
