//! Operations take the same long time, whatever they do: a timer expires somewhere. Work takes a
//! time that depends on size and load; a timeout does not.

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::durations::Durations;
use super::super::operation::{Act, Operation};
use super::super::series::{Law, Series, series};
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
/// A series of at least this many times is not work.
const SERIES_MIN: usize = 3;
/// Timers that are reported.
const TIMERS: usize = 2;
/// Each class of durations is longer than the one before it by this factor.
const CLASS: f64 = 1.01;

/// Known single timers, ns, and what waits for them.
const KNOWN: [(i64, &str); 8] = [
    (
        200_000_000,
        "200 ms is the time by which Windows delays acknowledgements and pauses between retries, and the shortest \
         retransmission timeout of Linux",
    ),
    (1_000_000_000, "1 s is the first timeout of a TCP connection and of many retries"),
    (3_000_000_000, "3 s is the first timeout of a TCP connection in older systems"),
    (4_500_000_000, "4.5 s are the three NetBIOS name queries, 1.5 s each, that nothing answers"),
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

/// Known series: the law, the first time, ns, and what waits for it.
const KNOWN_SERIES: [(Law, i64, &str); 7] = [
    (
        Law::Sums,
        1_000_000_000,
        "so TCP tries to connect to something that does not answer: it repeats the SYN after 1 s, then after twice the time (RFC 6298)",
    ),
    (
        Law::Sums,
        3_000_000_000,
        "so older systems try to connect by TCP to something that does not answer: they repeat the SYN after 3 s, then after twice the time",
    ),
    (
        Law::Doubling,
        1_000_000_000,
        "after 1, 2, 4 and 8 s Windows asks its name servers again, and TCP repeats what is not acknowledged",
    ),
    (Law::Doubling, 200_000_000, "so TCP repeats what is not acknowledged on Linux: first after 200 ms (RFC 6298)"),
    (
        Law::Multiples,
        1_500_000_000,
        "1.5 s is the time between the three NetBIOS name queries",
    ),
    (
        Law::Multiples,
        3_000_000_000,
        "3 s is the time after which the Linux client tries to connect again",
    ),
    (
        Law::Multiples,
        5_000_000_000,
        "5 s is the timeout of a query to a name server (resolv.conf), once for each server and attempt",
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

impl Class {
    fn merge(&mut self, other: Class) {
        self.attribution.merge(other.attribution);
        self.bytes = (self.bytes.0.min(other.bytes.0), self.bytes.1.max(other.bytes.1));
        self.commands.extend(other.commands);
        self.numbers.extend(other.numbers);
        self.acts |= other.acts;
    }
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
        let (constants, sorted) = self.durations.constants_among(least);
        let candidates = series(constants, &sorted).into_iter().filter_map(|series| {
            let (first, last) = series.members.first()?.range_ns;
            let mut all: Option<Class> = None;
            let is_series = series.members.len() > 1;
            // At the second or third tick, operations end that missed the ones before.
            let ticks = if first < LONG_NS && !is_series { TICKS } else { 1 };
            let ranges = series.members.iter().map(|one| one.range_ns);
            let ranges = ranges.chain((2..=ticks).map(|n| (n * first, n * last)));
            for number in ranges.flat_map(|(first, last)| class(first)..=class(last)) {
                let Some(one) = classes.remove(&number) else { continue };
                match &mut all {
                    None => all = Some(one),
                    Some(sum) => sum.merge(one),
                }
            }
            let all = all?;
            let (fewest, most) = all.bytes;
            // Transfers of one size take the same time because they are of one size.
            let is_of_any_size = most == 0 || most > fewest.saturating_mul(2);
            let is_of_all_kinds = first >= OF_ALL_NS && all.acts.count_ones() >= KINDS_MIN;
            let is_of_all = is_mixed(all.acts) && is_of_any_size || is_of_all_kinds;
            // Work does not take a time, twice and four times that time.
            if first < LONG_NS && !is_of_all && series.members.len() < SERIES_MIN {
                return None;
            }
            explained.extend(&all.numbers);
            Some(candidate(&series, all))
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

/// What the recording shows of a series, and what is known about it.
fn words(series: &Series, commands: &str) -> (String, String) {
    let [base, .., longest] = series.members.as_slice() else {
        let one = series.members.first();
        let ns = one.map_or(0.0, |one| one.mean_ns);
        let spread = one.map_or(0, |one| one.range_ns.1 - one.range_ns.0) as f64;
        let known = KNOWN.iter().find(|(known, _)| is_about(ns as i64, *known));
        let hint = known.map_or(String::new(), |(_, words)| format!("; {words}"));
        let what = "Operations take the same long time, whatever they do: a timer expires at the server or behind it";
        let because = format!(
            "the durations agree within {:.1} %, whatever the operations do ({commands}), and the network takes less than a \
             tenth{hint}",
            100.0 * spread / ns.max(1.0),
        );
        return (what.to_owned(), because);
    };
    let times: Vec<_> = series.members.iter().map(|one| format!("{:.1}", one.mean_ns / 1e9)).collect();
    let law = match series.law {
        Law::Multiples => "a time or a multiple of it",
        Law::Doubling => "a time or that time doubled once or more",
        Law::Sums => "a time, or it and one or more waits of twice the length of the one before",
    };
    let what = format!(
        "Operations take {law} ({} s), whatever they do: a timer expires again and again at the server or behind it",
        times.join(", ")
    );
    let known = KNOWN_SERIES.iter().find(|(law, known, _)| *law == series.law && is_about(base.mean_ns as i64, *known));
    let hint = known.map_or(String::new(), |(.., words)| format!("; {words}"));
    let because = format!(
        "the durations are {} different times from {:.2} to {:.2} s that follow from the first, whatever the operations do ({commands}), \
         and the network takes less than a tenth{hint}",
        times.len(),
        base.mean_ns / 1e9,
        longest.mean_ns / 1e9,
    );
    (what, because)
}

/// Whether a time is that of a known timer: it never expires early, and work comes on top.
fn is_about(ns: i64, known: i64) -> bool {
    (-known / 200..known / 20).contains(&(ns - known))
}

fn candidate(series: &Series, mut class: Class) -> Candidate {
    class.commands.sort();
    class.commands.dedup();
    let (what, because) = words(series, &class.commands.join(", "));
    let (first, last) = (series.members.first(), series.members.last());
    let ns = first.map_or(0.0, |one| one.mean_ns);
    let confidence = match ns as i64 {
        LONG_NS.. => Confidence::Measured,
        _ => Confidence::Likely,
    };
    // The first wait, and how many times as long the second one is.
    let factor = (series.members.len() > 1).then(|| ("factor", series.law.times(2), "", "the second time is {} times the first"));
    Candidate::new(FindingKind::FixedTimer, what, class.attribution, confidence, because)
        .of_events()
        .with_figures([
            ("timer", ns, "ns", "a timer of {}"),
            ("shortest", first.map_or(0, |one| one.range_ns.0) as f64, "ns", "shortest {}"),
            ("longest", last.map_or(0, |one| one.range_ns.1) as f64, "ns", "longest {}"),
            ("of_this_length", series.n() as f64, "", "operations of this length: {}"),
            ("fewest_bytes", class.bytes.0 as f64, "bytes", "smallest transfer {}"),
            ("most_bytes", class.bytes.1 as f64, "bytes", "largest transfer {}"),
        ])
        .with_figures(factor)
}
