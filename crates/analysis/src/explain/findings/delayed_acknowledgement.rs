//! Part of a message waits for the acknowledgement of the part before it: the sender holds small
//! segments back (J. Nagle, RFC 896), the receiver delays its acknowledgement (RFC 1122 section
//! 4.2.3.2), by 40 ms in Linux and by up to 200 ms in Windows and elsewhere.

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::{Accounts, NOTICED_NS};
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::Operation;
use super::super::waiting::{Until, attribution, union_ns};

pub(crate) const KIND: KindInfo = KindInfo::new("delayed-acknowledgement", "Nagle and delayed acknowledgement")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "sender",
        "send each message with one call, and set TCP_NODELAY: Samba socket options = TCP_NODELAY (the default), \
         Windows TcpNoDelay = 1 for the interface",
    ),
    (
        "receiver",
        "acknowledge at once: Linux ip route change ... quickack 1, Windows TcpAckFrequency = 1 for the interface",
    ),
]);

/// Delays of acknowledgements, ns: the least and the most of each.
const DELAYS_NS: [(i64, i64); 2] = [(38_000_000, 48_000_000), (190_000_000, 215_000_000)];
/// Longer messages fill segments, so that the sender does not hold them back.
const MESSAGE_MAX: u64 = 64 << 10;
/// Fewest messages; fewer may be chance.
const MESSAGES_MIN: u64 = 3;
/// Messages of several segments of the same direction that arrive at once, for each that does not: with
/// more, the network is slow and no side waits.
const QUICK_NS: i64 = 10_000_000;
/// A message of at least this size has several segments, bytes.
const SEGMENTS_BYTES: u64 = 64;

/// Messages of one direction: requests or replies.
#[derive(Default)]
struct Messages {
    attribution: Attribution,
    /// Messages that took long, but not as long as an acknowledgement is delayed.
    others: u64,
    sum_ns: i64,
}

/// Both directions: requests, replies.
#[derive(Default)]
pub(crate) struct DelayedAcknowledgement([Messages; 2]);

impl Detector for DelayedAcknowledgement {
    fn claim(&mut self, op: &Operation) -> Option<FindingKind> {
        if !op.is_timed || op.transfer_ns() < QUICK_NS || op.recovery_ns() > 0 {
            return None;
        }
        let columns = op.columns;
        let messages = [
            (columns.request_wire_bytes.get(op.row), columns.request_transfer_ns.get(op.row)),
            (columns.response_wire_bytes.get(op.row), columns.response_transfer_ns.get(op.row)),
        ];
        let mut waited_ns = 0;
        for (direction, (bytes, ns)) in self.0.iter_mut().zip(messages) {
            let (Some(bytes), Some(ns)) = (bytes, ns) else { continue };
            if ns < QUICK_NS || !(SEGMENTS_BYTES..MESSAGE_MAX).contains(&bytes) {
                continue;
            }
            if DELAYS_NS.iter().any(|(least, most)| (*least..*most).contains(&ns)) {
                direction.attribution.add(op, op.of_busy(ns));
                direction.sum_ns = direction.sum_ns.saturating_add(ns);
                waited_ns += ns;
            } else {
                direction.others += 1;
            }
        }
        (waited_ns > op.elapsed_ns / 2).then_some(FindingKind::DelayedAcknowledgement)
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let finish = |(place, messages): (usize, Messages)| {
            let n = messages.attribution.operations;
            // On a slow link messages take any time.
            if n < MESSAGES_MIN || messages.others > n / 4 {
                return None;
            }
            let mean_ns = messages.sum_ns as f64 / n as f64;
            let (what, actor) = match place {
                0 => (
                    "Requests arrive in two parts: the client holds the second part back until the server \
                     acknowledges the first, and the server delays that",
                    Actor::Client,
                ),
                _ => (
                    "Replies arrive in two parts: the server holds the second part back until the client \
                     acknowledges the first, and the client delays that",
                    Actor::Server,
                ),
            };
            let candidate = Candidate::new(
                FindingKind::DelayedAcknowledgement,
                what,
                messages.attribution,
                Confidence::Measured,
                "no segment was lost, and between the first and the last byte of these short messages passes the time \
                 by which TCP delays acknowledgements, whatever their size",
            );
            let figures = [
                ("messages", n as f64, "", "messages in two parts: {}"),
                ("mean_time_between_the_parts", mean_ns, "ns", "{} between the parts on average"),
            ];
            Some(candidate.of_events().with_owner(actor, Vec::new()).with_figures(figures))
        };
        self.0.into_iter().enumerate().filter_map(finish).collect()
    }
}

/// Fewest waits for a late acknowledgement in front of a next message: fewer may be chance.
const LATE_MIN: usize = 5;

/// The client sends its next request only when its own late acknowledgement, or that of the server, has gone.
pub(crate) fn before_messages(
    late: &[&(u32, Wait)],
    accounts: &mut Accounts,
) -> Option<Candidate> {
    let mut waits: Vec<_> = late
        .iter()
        .filter_map(|(recording, row)| Some(Until { row, recording: *recording, until: row.end? }))
        .collect();
    waits.sort_by_key(|wait| wait.row.start);
    let waited_ns = union_ns(&waits);
    if waits.len() < LATE_MIN || waited_ns < NOTICED_NS {
        return None;
    }
    waits.iter().for_each(|wait| accounts.wait(wait.recording, wait.row, wait.until));
    let of_client = waits.iter().filter(|wait| wait.row.sent_by_client == Some(true)).count();
    let (sender, receiver, actor) = if of_client * 2 >= waits.len() {
        ("client", "server", Actor::Client)
    } else {
        ("server", "client", Actor::Server)
    };
    let mean_ns = waits.iter().map(Until::ns).sum::<i64>() as f64 / waits.len() as f64;
    let what = format!(
        "The {sender} holds its next message back until the {receiver} acknowledges the last one, and the {receiver} delays that"
    );
    let candidate = Candidate::new(
        FindingKind::DelayedAcknowledgement,
        what,
        attribution(&waits),
        Confidence::Measured,
        "an acknowledgement without data comes late, again and again, and the next message of the other side follows it at once; nothing \
         was lost",
    );
    Some(
        candidate.of_events().beyond_busy(waited_ns).with_owner(actor, Vec::new()).with_figures([
            ("waits", waits.len() as f64, "", "late acknowledgements: {}"),
            ("mean_delay", mean_ns, "ns", "{} each on average"),
        ]),
    )
}
