//! A receiver does not take its data: its TCP window closes in the middle of reads or writes (RFC 9293 section 3.8.6),
//! and the rest of the message waits until it opens again.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const KIND: KindInfo = KindInfo::new("closed-window", "receiver does not take its data")
    .with_actor(Actor::Server)
    .with_remedies(&[
        (
            "receiver",
            "find out why its program does not read from the socket: CPU, memory, a disk that does not keep up, a virus scanner; \
             Linux ss -tmi shows the receive queue, Windows netstat -n and perfmon",
        ),
        (
            "measurement",
            "record there, too: with the window open and data on the way it would be the path",
        ),
    ]);

/// The transfer of a message stands still if it takes this long, ns: longer than a window that is closed in passing.
const STILL_NS: i64 = 200_000_000;
/// At least this share of these transfers must have closed the window.
const CLOSED_SHARE: f64 = 0.5;
/// Fewest transfers: a receiver may be late once or twice.
const TRANSFERS_MIN: u64 = 3;
/// Most connections that are followed.
const CONNECTIONS_MAX: usize = 16_384;

/// Transfers that stood still.
#[derive(Default)]
struct Still {
    n: u64,
    attribution: Attribution,
}

/// Long transfers by connection: to the client, to the server.
#[derive(Default)]
pub(crate) struct ClosedWindow(HashMap<(u32, u64), [Still; 2], foldhash::fast::RandomState>);

impl Detector for ClosedWindow {
    fn see(&mut self, op: &Operation) {
        let direction = match op.act {
            Act::Read => 0,
            Act::Write => 1,
            _ => return,
        };
        let ns = op.transfer_ns();
        let key = (op.recording, op.connection);
        if !op.is_timed
            || ns < STILL_NS
            || op.recovery_ns() > 0
            || self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&key)
        {
            return;
        }
        let few = || Still { attribution: Attribution::with_few_names(), ..Still::default() };
        let directions = self.0.entry(key).or_insert_with(|| [few(), few()]);
        if let Some(still) = directions.get_mut(direction) {
            still.n += 1;
            still.attribution.add(op, op.of_busy(ns));
        }
    }

    fn finish(self, context: &mut Context) -> Vec<Candidate> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|one| one.0);
        let few = || (Attribution::with_few_names(), BTreeSet::new(), 0);
        let mut sums = [few(), few()];
        for (key, directions) in all {
            let Some(facts) = context.connections.get(key) else { continue };
            let closed = [facts.client_windows_closed, facts.server_windows_closed];
            let names = [&facts.client, &facts.server];
            let sides = directions.into_iter().zip(closed).zip(names);
            for (((still, closed), name), (attribution, receivers, sum)) in sides.zip(&mut sums) {
                if still.n >= TRANSFERS_MIN && closed as f64 >= CLOSED_SHARE * still.n as f64 {
                    receivers.insert(name.to_string());
                    *sum += closed;
                    attribution.merge(still.attribution);
                }
            }
        }
        let actors = [(Actor::Client, "client", "reads"), (Actor::Server, "server", "writes")];
        let found = actors.into_iter().zip(sums).filter(|(_, (_, receivers, _))| !receivers.is_empty());
        found
            .map(|((actor, side, kind), (attribution, receivers, closed))| {
                let what = format!(
                    "The {side} {} does not take the data of {kind}: it closes its TCP window, and the rest of each waits until it \
                     opens again",
                    list_names(&receivers)
                );
                let because = "long pauses within messages, without retransmissions, on connections whose receiver announced a window \
                               of 0";
                Candidate::new(FindingKind::ClosedWindow, what, attribution, Confidence::Likely, because)
                    .of_events()
                    .with_owner(actor, receivers.into_iter().take(3).collect())
                    .with_figures([("windows_closed", closed as f64, "", "windows closed: {}")])
            })
            .collect()
    }
}
