//! Many requests are in flight, and each takes as long as those before it in the queue: the number in flight divided
//! by the rate is the response time (J. D. C. Little 1961). What limits the rate is the path if bytes arrive all the
//! time, and the server if the connection is silent between replies.

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::account::NOTICED_NS;
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};
use crate::rows::busy_time::BusyTime;

pub(crate) const KIND: KindInfo = KindInfo::new("deep-queue", "requests wait in a queue of their own")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "network",
        "measure what the path carries without SMB (smbscope net), and look for what limits it: a link, a VPN, a shaper, Wi-Fi",
    ),
    (
        "client",
        "fewer requests in flight answer sooner at the same rate: smaller read-ahead, fewer copy threads (robocopy /MT, fio iodepth)",
    ),
]);

/// Fewest operations of a connection.
const OPERATIONS_MIN: u64 = 50;
/// The connection is silent for less of the time if the path is the limit.
const SILENT_SHARE: f64 = 0.3;
/// One disk completes a random request in a few milliseconds, and several at once if there are more disks, ns.
const DISK_NS: i64 = 2_000_000;
/// Requests that wait this long for those before them wait in a queue, ns: many times the service of a disk.
const QUEUED_NS: i64 = 50_000_000;
/// Most connections that are followed.
const CONNECTIONS_MAX: usize = 16_384;

#[derive(Default)]
struct Queue {
    n: u64,
    bytes: u64,
    elapsed: i128,
    silent_ns: i64,
    in_flight: u64,
    busy: BusyTime,
    attribution: Attribution,
}

/// Reads and writes with many others in flight, by connection.
#[derive(Default)]
pub(crate) struct DeepQueue(HashMap<(u32, u64), Queue, foldhash::fast::RandomState>);

impl Detector for DeepQueue {
    fn see(&mut self, op: &Operation) {
        let in_flight = op.columns.outstanding.get(op.row).unwrap_or(0);
        let is_data = matches!(op.act, Act::Read | Act::Write);
        let (Some(start), true) = (op.start, is_data && op.is_timed) else { return };
        let key = (op.recording, op.connection);
        if !op.is_crowded()
            || self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&key)
        {
            return;
        }
        let queue = self.0.entry(key).or_insert_with(|| Queue {
            attribution: Attribution::with_few_names(),
            ..Queue::default()
        });
        queue.n += 1;
        queue.bytes = queue.bytes.saturating_add(op.bytes);
        queue.elapsed += i128::from(op.elapsed_ns);
        queue.silent_ns = queue.silent_ns.saturating_add(op.silent_ns);
        queue.in_flight += u64::from(in_flight) + 1;
        queue.busy.add(start, start.saturating_add(op.elapsed_ns));
        queue.attribution.add(op, op.busy_ns);
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let mut paths = Vec::new();
        let mut servers = Vec::new();
        for (key, queue) in self.0 {
            let mean_ns = queue.elapsed / i128::from(queue.n.max(1));
            let silent = queue.silent_ns as f64 / queue.busy.ns().max(1) as f64;
            // Small requests of which the server completes few in a second meet a limit of its storage.
            let each_ns = queue.busy.ns() / i64::try_from(queue.n.max(1)).unwrap_or(i64::MAX);
            let is_limited = silent >= 2.0 * SILENT_SHARE && each_ns >= DISK_NS;
            let least_ns = if is_limited { QUEUED_NS } else { NOTICED_NS };
            if queue.n < OPERATIONS_MIN || mean_ns < i128::from(least_ns) {
                continue;
            }
            if silent < SILENT_SHARE { paths.push((key, queue)) } else { servers.push((key, queue)) }
        }
        [(Actor::Network, paths), (Actor::Server, servers)]
            .into_iter()
            .filter(|(_, queues)| !queues.is_empty())
            .map(|(actor, queues)| candidate(actor, queues))
            .collect()
    }
}

fn candidate(actor: Actor, mut queues: Vec<((u32, u64), Queue)>) -> Candidate {
    queues.sort_unstable_by_key(|one| one.0);
    let (mut n, mut bytes, mut elapsed, mut in_flight, mut busy_ns) = (0, 0, 0, 0, 0_i64);
    let mut attribution = Attribution::with_few_names();
    for (_, queue) in queues {
        n += queue.n;
        bytes += queue.bytes;
        elapsed += queue.elapsed;
        in_flight += queue.in_flight;
        busy_ns = busy_ns.saturating_add(queue.busy.ns());
        attribution.merge(queue.attribution);
    }
    let mean_ns = elapsed as f64 / n.max(1) as f64;
    let (what, because) = if actor == Actor::Network {
        (
            "Requests wait in a queue of their own: with that many in flight, each waits for the bytes of those before it, and the path \
             carries no more",
            "the response time is the number in flight divided by the rate, and bytes arrive nearly all the time; the server is not the \
             limit",
        )
    } else {
        (
            "Requests wait in a queue of their own: with that many in flight, each waits for those before it, and the server completes \
             no more",
            "the response time is the number in flight divided by the rate, and between replies the connection is silent: the limit is \
             the server or its storage (IOPS, bytes per second)",
        )
    };
    let kind = FindingKind::DeepQueue;
    Candidate::new(kind, what, attribution, Confidence::Likely, because)
        .with_owner(actor, Vec::new())
        .with_figures([
            ("in_flight", in_flight as f64 / n.max(1) as f64, "", "{} in flight on average"),
            ("mean_time", mean_ns, "ns", "each takes {} on average"),
            ("rate", 8e9 * bytes as f64 / busy_ns.max(1) as f64, "bits/s", "at {}"),
        ])
}
