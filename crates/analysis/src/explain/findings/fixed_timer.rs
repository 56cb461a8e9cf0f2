//! Operations take the same long time, whatever they do: a timer expires somewhere. Work takes a
//! time that depends on size and load; a timeout does not.

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::durations::{Constant, Durations};
use super::super::operation::{Act, Operation};
use super::super::worth::OF_UNKNOWN_CAUSE;

pub(crate) const KIND: KindInfo = KindInfo::new("fixed-timer", "fixed timer")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "find the timeout of this length: name service (resolv.conf, WINS), directory service (LDAP, domain \
         controller), the service behind a pipe, a backend that is offline",
    ),
    (
        "Samba",
        "log level = 3 and smbstatus show what the process waits for; strace -f -T -p PID shows it exactly",
    ),
    ("Windows", "Event Viewer: Microsoft-Windows-SMBServer/Operational at that time"),
]);

/// Shorter times are those of disks and networks, ns.
const MIN_NS: i64 = 20_000_000;
/// Three equal times of at least this length are a timer, ns.
const LONG_NS: i64 = 1_000_000_000;
const LONG_MIN: u64 = 3;
/// Fewest of the same length for shorter timers.
const SHORT_MIN: u64 = 8;
/// A timer takes at least this many times as long as the network.
const TIMES_AWAY: i64 = 10;
/// A shorter timer shows in at most this share of the operations of the same kinds ...
const SLOW_SHARE: f64 = 0.5;
/// ... or in operations of this many kinds, if it lasts at least this long, ns: distant storage delays
/// all kinds by a constant too, but a shorter one.
const KINDS_MIN: u32 = 3;
const OF_ALL_NS: i64 = 100_000_000;
/// Most connections that are followed; when there are more, all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;
/// Most operations of a class whose numbers are kept.
const NUMBERS_MAX: usize = 4_096;
/// Ticks of a timer after which operations may end.
const TICKS: i64 = 3;
/// Timers that are reported.
const TIMERS: usize = 2;
/// Each class of durations is longer than the one before it by this factor.
const CLASS: f64 = 1.01;

/// Known timers, ns, and what waits for them.
const KNOWN: [(i64, &str); 7] = [
    (
        200_000_000,
        "200 ms is the time by which Windows delays acknowledgements and pauses between retries, and the shortest \
         retransmission timeout of Linux",
    ),
    (1_000_000_000, "1 s is the first timeout of a TCP connection and of many retries"),
    (3_000_000_000, "3 s is the first timeout of a TCP connection in older systems"),
    (5_000_000_000, "5 s is the timeout of a query to a name server (resolv.conf)"),
    (15_000_000_000, "15 s is the time after which name services and logon servers are given up"),
    (
        30_000_000_000,
        "30 s is the time for which Samba waits for the acknowledgement of an oplock break",
    ),
    (
        35_000_000_000,
        "35 s is the time for which Windows waits for the acknowledgement of an oplock break",
    ),
];

/// Operations of about the same duration.
struct Class {
    attribution: Attribution,
    /// Numbers of those that are kept for replaying.
    numbers: Vec<u32>,
    bytes: (u64, u64),
    commands: Vec<Box<str>>,
    /// A bit for each of [`Act::ALL`].
    acts: u32,
}

/// Two operations that wait for one timer end as far apart as they began; in a queue the distance of the ends is the
/// time of service. It may differ by this share of the duration.
const APART_SHARE: f64 = 0.05;
/// Most servers whose last long operation is known.
const SERVERS_MAX: usize = 4_096;

/// Long operations by their duration.
#[derive(Default)]
pub(crate) struct FixedTimer {
    /// Begin and end of the last long operation of each server.
    last: HashMap<(u32, u32), (i64, i64), foldhash::fast::RandomState>,
    quickest: HashMap<(u32, u64), i64, foldhash::fast::RandomState>,
    classes: HashMap<i32, Class, foldhash::fast::RandomState>,
    durations: Durations,
    /// Operations by what they do: all, and the long ones.
    acts: [(u64, u64); Act::ALL.len()],
}

fn class(ns: i64) -> i32 {
    ((ns.max(1) as f64).ln() / CLASS.ln()) as i32
}

impl Detector for FixedTimer {
    fn see(&mut self, op: &Operation) {
        let (true, Some(turnaround)) = (op.is_timed, op.turnaround_ns()) else { return };
        if self.quickest.len() >= CONNECTIONS_MAX {
            self.quickest.clear();
        }
        let key = (op.recording, op.connection);
        let quickest = self.quickest.entry(key).or_insert(turnaround);
        *quickest = turnaround.min(*quickest);
        let act = &mut self.acts[op.act as usize];
        act.0 += 1;
        // Without a round trip of its own, the quickest reply shows how far the server is at most.
        let (server_ns, away_ns) = op.split().unwrap_or((turnaround, *quickest));
        let is_other = op.explained.is_some()
            || op.recovery_ns() > 0
            || op.waits_for_others()
            || op.is_crowded();
        if server_ns < MIN_NS || server_ns < TIMES_AWAY.saturating_mul(away_ns) || is_other {
            return;
        }
        act.1 += 1;
        if self.is_queued(op) {
            return;
        }
        self.durations.add(server_ns);
        let bytes = op.bytes;
        let class = self.classes.entry(class(server_ns)).or_insert_with(|| Class {
            attribution: Attribution::with_few_names(),
            numbers: Vec::new(),
            bytes: (bytes, bytes),
            commands: Vec::new(),
            acts: 0,
        });
        class.acts |= 1 << op.act as u32;
        class.attribution.add(op, op.of_busy(server_ns));
        class.bytes = (class.bytes.0.min(bytes), class.bytes.1.max(bytes));
        if class.numbers.len() < NUMBERS_MAX {
            class.numbers.extend(op.number);
        }
        let command = op.columns.detail.get(op.row).or(op.columns.command.get(op.row));
        if let Some(command) = command
            && class.commands.len() < 4
            && !class.commands.iter().any(|known| **known == *command)
        {
            class.commands.push(command.into());
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let acts = self.acts;
        // Storage with a constant delay makes all operations of a kind slow.
        let is_mixed = |bits: u32| {
            let kinds = acts.iter().enumerate().filter(|(place, _)| bits & (1 << place) != 0);
            let (all, slow) = kinds.fold((0, 0), |sum, (_, act)| (sum.0 + act.0, sum.1 + act.1));
            (slow as f64) < SLOW_SHARE * all as f64
        };
        let least = |ns: i64| if ns >= LONG_NS { LONG_MIN } else { SHORT_MIN };
        let mut classes = self.classes;
        let mut explained = HashSet::new();
        let constants = self.durations.constants(least).into_iter();
        let candidates = constants.filter_map(|constant| {
            let (first, last) = constant.range_ns;
            let mut all: Option<Class> = None;
            // At the second or third tick, operations end that missed the ones before.
            let ticks = if first < LONG_NS { TICKS } else { 1 };
            for number in (1..=ticks).flat_map(|n| class(n * first)..=class(n * last)) {
                let Some(one) = classes.remove(&number) else { continue };
                match &mut all {
                    None => all = Some(one),
                    Some(sum) => {
                        sum.attribution.merge(one.attribution);
                        sum.bytes = (sum.bytes.0.min(one.bytes.0), sum.bytes.1.max(one.bytes.1));
                        sum.commands.extend(one.commands);
                        sum.numbers.extend(one.numbers);
                        sum.acts |= one.acts;
                    }
                }
            }
            let all = all?;
            let (fewest, most) = all.bytes;
            // Transfers of one size take the same time because they are of one size.
            let is_of_any_size = most == 0 || most > fewest.saturating_mul(2);
            let is_of_all_kinds = first >= OF_ALL_NS && all.acts.count_ones() >= KINDS_MIN;
            let is_of_all = is_mixed(all.acts) && is_of_any_size || is_of_all_kinds;
            if first < LONG_NS && !is_of_all {
                return None;
            }
            explained.extend(&all.numbers);
            Some(candidate(constant, all))
        });
        let mut candidates: Vec<_> = candidates.take(TIMERS).collect();
        if let Some(first) = candidates.first_mut() {
            first.explains = (&OF_UNKNOWN_CAUSE, explained);
        }
        candidates
    }
}

impl FixedTimer {
    /// Whether an operation waited for the one before it at the server: multiples of the time of service look like
    /// timers.
    fn is_queued(&mut self, op: &Operation) -> bool {
        let Some(start) = op.start else { return false };
        let key = (op.recording, op.server);
        if self.last.len() >= SERVERS_MAX && !self.last.contains_key(&key) {
            return false;
        }
        let end = start.saturating_add(op.elapsed_ns);
        let Some((begun, ended)) = self.last.insert(key, (start, end)) else { return false };
        let moved = end.saturating_sub(ended).abs_diff(start.saturating_sub(begun));
        start < ended && moved as f64 > APART_SHARE * op.elapsed_ns as f64
    }
}

fn candidate(constant: Constant, mut class: Class) -> Candidate {
    let ns = constant.mean_ns as i64;
    class.commands.sort();
    class.commands.dedup();
    let known = KNOWN.iter().find(|(known, _)| (-known / 200..known / 20).contains(&(ns - known)));
    let hint = known.map_or(String::new(), |(_, words)| format!("; {words}"));
    let because = format!(
        "the durations agree within {:.1} %, whatever the operations do ({}), and the network takes less than a \
         tenth{hint}",
        100.0 * (constant.range_ns.1 - constant.range_ns.0) as f64 / constant.mean_ns.max(1.0),
        class.commands.join(", "),
    );
    let confidence = match ns {
        LONG_NS.. => Confidence::Measured,
        _ => Confidence::Likely,
    };
    Candidate::new(
        FindingKind::FixedTimer,
        "Operations take the same long time, whatever they do: a timer expires at the server or behind it",
        class.attribution,
        confidence,
        because,
    )
    .of_events()
    .with_figures([
        ("timer", constant.mean_ns, "ns", "a timer of {}"),
        ("shortest", constant.range_ns.0 as f64, "ns", "shortest {}"),
        ("longest", constant.range_ns.1 as f64, "ns", "longest {}"),
        ("of_this_length", constant.n as f64, "", "operations of this length: {}"),
        ("fewest_bytes", class.bytes.0 as f64, "bytes", "smallest transfer {}"),
        ("most_bytes", class.bytes.1 as f64, "bytes", "largest transfer {}"),
    ])
}
