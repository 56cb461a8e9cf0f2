//! For some seconds operations of one kind stand still at a server, for several clients, and then end together, while
//! others continue: what serves that kind stood still. Data and metadata are distinguished, because storage that
//! stands still stops reads and writes first: metadata is in memory.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::account::HANG_NS;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const KIND: KindInfo = KindInfo::new("stall", "operations stood still together")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "server",
        "look at what its storage did at that time: iostat -x, dmesg, the array's event log (failover of a controller or path, a \
         full cache, a snapshot, garbage collection)",
    ),
    (
        "measurement",
        "record inside the server while it happens (Samba: smbscope record; Windows: smbscope record --print-windows-script \
         --what smb --to 'S:\\temp')",
    ),
]);

/// An operation that waits this long may stand still, ns.
const LONG_NS: i64 = 1_000_000_000;
/// Operations that stood still end within this time of each other, ns.
const TOGETHER_NS: i64 = 500_000_000;
/// Fewest of them, and for those of one client the least spread of their times: operations that only take long begin and end
/// at any time.
const OPERATIONS_MIN: usize = 3;
const SPREAD_NS: i64 = 100_000_000;
/// As many operations of the kind end in the second before and in the second after: then work flowed, stood still and flowed again.
const FLOW_MIN: u32 = 10;
/// Most long operations that are kept.
const LONG_MAX: usize = 16_384;
/// Most seconds of servers that are counted.
const SECONDS_MAX: usize = 262_144;
const SECOND_NS: i64 = 1_000_000_000;

/// An operation that took long.
struct Long {
    server: (u32, u32),
    is_data: bool,
    start: i64,
    end: i64,
    client: String,
    number: Option<u32>,
    attribution: Attribution,
}

/// Findings that do not explain why operations stood still.
const WORK: [FindingKind; 9] = [
    FindingKind::SlowFilesystem,
    FindingKind::ServerQueueing,
    FindingKind::Stragglers,
    FindingKind::SlowLogon,
    FindingKind::SlowFlush,
    FindingKind::FixedTimer,
    FindingKind::OneAtATime,
    FindingKind::SmallReads,
    FindingKind::SmallWrites,
];

/// Operations that ended in one second: data and metadata.
type Ended = [u32; 2];

#[derive(Default)]
pub(crate) struct Stall {
    long: Vec<Long>,
    ended: HashMap<((u32, u32), i64), Ended, foldhash::fast::RandomState>,
}

impl Detector for Stall {
    fn see(&mut self, op: &Operation) {
        let is_data = matches!(op.act, Act::Read | Act::Write | Act::Flush);
        let is_other = matches!(op.act, Act::Logon | Act::Lock | Act::Break | Act::Other)
            || op.is_crowded();
        let (Some(start), true) = (op.start, op.is_timed && !is_other) else { return };
        let server = (op.recording, op.server);
        let end = start.saturating_add(op.elapsed_ns);
        if op.elapsed_ns < LONG_NS || op.explained.is_some() || op.waits_for_others() {
            let key = (server, end.div_euclid(SECOND_NS));
            if self.ended.len() < SECONDS_MAX || self.ended.contains_key(&key) {
                self.ended.entry(key).or_default()[usize::from(!is_data)] += 1;
            }
        } else if self.long.len() < LONG_MAX {
            let mut attribution = Attribution::with_few_names();
            attribution.add(op, op.busy_ns);
            self.long.push(Long {
                server,
                is_data,
                start,
                end,
                client: op.client_name().unwrap_or_default().to_owned(),
                number: op.number,
                attribution,
            });
        }
    }

    fn finish(mut self, _: &mut Context) -> Vec<Candidate> {
        self.long.sort_by_key(|one| (one.server, one.end, one.start));
        let mut groups: Vec<Vec<Long>> = Vec::new();
        for one in std::mem::take(&mut self.long) {
            match groups.last_mut() {
                Some(group)
                    if group.last().is_some_and(|last| {
                        last.server == one.server && one.end - last.end <= TOGETHER_NS
                    }) =>
                {
                    group.push(one);
                }
                _ => groups.push(vec![one]),
            }
        }
        let found: Vec<_> = groups.into_iter().filter_map(|group| self.judge(group)).collect();
        Standing::together(found).map(candidate).into_iter().collect()
    }
}

/// A time in which operations stood still.
struct Standing {
    from: i64,
    until: i64,
    operations: usize,
    clients: BTreeSet<String>,
    /// Operations of the other kind that continued meanwhile.
    others: u64,
    is_data: bool,
    /// Whether no request of the other kind stood still.
    is_all: bool,
    attribution: Attribution,
    numbers: HashSet<u32>,
    /// Times in which operations stood still.
    times: u64,
}

impl Standing {
    /// The longest, with what stood still at the other times.
    fn together(mut found: Vec<Standing>) -> Option<Standing> {
        let longest = (0..found.len()).max_by_key(|at| found.get(*at).map(|one| one.until - one.from))?;
        let mut all = found.swap_remove(longest);
        for one in found {
            all.times += 1;
            all.operations += one.operations;
            all.others += one.others;
            all.clients.extend(one.clients);
            all.numbers.extend(one.numbers);
            all.attribution.merge(one.attribution);
        }
        Some(all)
    }
}

impl Stall {
    fn judge(&self, group: Vec<Long>) -> Option<Standing> {
        let server = group.first()?.server;
        // Reads, writes and metadata of one moment, of which the data may be all.
        let data = group.iter().filter(|one| one.is_data).count();
        let is_data = data >= OPERATIONS_MIN && data * 2 >= group.len();
        let is_all = data == group.len();
        let group: Vec<_> = group.into_iter().filter(|one| !is_data || one.is_data).collect();
        let times = group.iter().map(|one| one.end - one.start);
        let spread = times.clone().max()? - times.min()?;
        let mut clients: Vec<_> = group.iter().map(|one| one.client.as_str()).collect();
        clients.sort_unstable();
        clients.dedup();
        // The stall began after the last operation of the kind that ended normally.
        let until = group.iter().map(|one| one.end).min()?;
        let from = group.iter().map(|one| one.start).min()?;
        let ended = |second| {
            let both = self.ended.get(&(server, second)).copied().unwrap_or_default();
            if is_data { both[0] } else { both[1] }
        };
        let flows = |at: i64, next: i64| {
            let second = at.div_euclid(SECOND_NS);
            ended(second) + ended(second + next) >= FLOW_MIN
        };
        // Operations of several clients do not end together by chance.
        let is_together = clients.len() > 1
            || spread >= SPREAD_NS
            || flows(from, -1) && flows(group.iter().map(|one| one.end).max()?, 1);
        if group.len() < OPERATIONS_MIN || !is_together {
            return None;
        }
        let seconds = from.div_euclid(SECOND_NS) + 1..until.div_euclid(SECOND_NS);
        let mut during: Ended = [0; 2];
        for second in seconds {
            let Some(ended) = self.ended.get(&(server, second)) else { continue };
            during.iter_mut().zip(ended).for_each(|(sum, more)| *sum += more);
        }
        // Where the kind continues, only some operations took long.
        let same = if is_data { during[0] } else { during[1] };
        if same as usize * 4 > group.len() {
            return None;
        }
        let mut standing = Standing {
            from,
            until,
            operations: group.len(),
            clients: BTreeSet::new(),
            others: u64::from(if is_data { during[1] } else { during[0] }),
            is_data,
            is_all,
            attribution: Attribution::with_few_names(),
            numbers: HashSet::new(),
            times: 1,
        };
        for one in group {
            standing.clients.insert(one.client);
            standing.numbers.extend(one.number);
            standing.attribution.merge(one.attribution);
        }
        Some(standing)
    }
}

fn candidate(stall: Standing) -> Candidate {
    let ns = stall.until - stall.from;
    let number = stall.clients.len();
    let clients = list_names(&stall.clients);
    let kind = if stall.is_data { "reads and writes" } else { "requests" };
    let (rest, because) = match (stall.is_data, stall.others > 0, stall.is_all) {
        (true, true, _) => (
            "metadata continues meanwhile: the storage behind the server stood still",
            "the operations began at different times and ended together, and operations that need no storage were answered meanwhile",
        ),
        (true, false, true) => (
            "no other requests came meanwhile: the storage behind the server, or the server, stood still",
            "the operations began at different times and ended together, and TCP retransmitted nothing, so that the path worked",
        ),
        _ => (
            "no other request was answered meanwhile: the whole server stood still",
            "the operations began at different times and ended together, and TCP retransmitted nothing, so that the path worked; a \
             recording at the server would confirm it",
        ),
    };
    let confidence = match (stall.is_data, stall.others > 0) {
        (true, true) => Confidence::Measured,
        _ => Confidence::Likely,
    };
    let what = format!("All {kind} of {clients} stand still and end together; {rest}");
    let mut candidate =
        Candidate::new(FindingKind::Stall, what, stall.attribution, confidence, because)
            .of_events()
            .with_owner(Actor::Server, Vec::new())
            .with_figures([
                ("stood_still", ns as f64, "ns", "stood still for {}"),
                ("times", stall.times as f64, "", "times: {}"),
                ("operations", stall.operations as f64, "", "operations that stood still: {}"),
                ("clients", number as f64, "", "clients: {}"),
                ("others_meanwhile", stall.others as f64, "", "other operations answered meanwhile: {}"),
            ]);
    candidate.explains = (&WORK, stall.numbers);
    if ns >= HANG_NS { candidate.broken() } else { candidate }
}
