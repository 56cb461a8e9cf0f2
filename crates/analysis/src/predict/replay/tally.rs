//! Recorded and predicted times of operations and scenarios, by group.

use smbscope_tables::slice::Kind;

use super::Map;
use super::client::ScenarioTimes;
use super::data::{Part, PartRow, Prediction, Row, Sent, Times};
use super::request::OperationTime;
use super::role::Role;
use crate::predict::Z_95;
use crate::stats::latency::{Grain, Latency, Sample};

/// Delay after the schedule that counts as late, ns.
const LATE_NS: i64 = 1_000_000_000;

/// All groups.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) names: Names,
    commands: Vec<Command>,
    scenarios: Vec<Group>,
    waiting_ns: (i64, i64),
    late: (u64, u64),
    without_rtt: u64,
    /// Operations of load runs outside of measured scenarios.
    pub(super) left_out: u64,
    /// Reads, and writes, with bytes, an open and an offset.
    pub(super) moves: [u64; 2],
    /// Connections of sessions in addition to the first.
    pub(super) further_channels: u64,
    slices: [u64; Kind::PARTS],
    /// By scenario and command: operations, and those that are still sent.
    sent: Map<(Option<u32>, u32), (u64, u64)>,
}

struct Command {
    role: Role,
    group: Group,
}

/// One group.
struct Group {
    count: u64,
    /// Additional requests compared with the recording.
    more: i64,
    before: Side,
    after: Side,
    /// Sum of the squares of the operations' changes, ns².
    squares: f64,
    parts: Sums,
}

/// Sums of the parts of many operations. Each part is at most [`super::request::DURATION_MAX_NS`], so that
/// [`Sums::FEW`] of them fit into 64 bits.
#[derive(Clone)]
struct Sums {
    few: [(i64, i64); Part::ALL.len()],
    n: u32,
    all: [(i128, i128); Part::ALL.len()],
}

impl Sums {
    const FEW: u32 = 1024;

    fn new() -> Sums {
        Sums { few: [(0, 0); Part::ALL.len()], n: 0, all: [(0, 0); Part::ALL.len()] }
    }

    #[inline]
    fn add(&mut self, timed: &OperationTime) {
        let few = if timed.has_slices { Part::ALL.len() } else { Part::FIRST_SLICE };
        for (sum, part) in self.few.iter_mut().zip(&timed.parts).take(few) {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
        self.n += 1;
        if self.n == Self::FEW {
            self.spill();
        }
    }

    #[cold]
    fn spill(&mut self) {
        for (all, few) in self.all.iter_mut().zip(&mut self.few) {
            *all = (all.0 + i128::from(few.0), all.1 + i128::from(few.1));
            *few = (0, 0);
        }
        self.n = 0;
    }

    fn absorb(&mut self, other: &Sums) {
        for (sum, part) in self.all.iter_mut().zip(other.finish()) {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
    }

    fn finish(&self) -> [(i128, i128); Part::ALL.len()] {
        let mut whole = self.clone();
        whole.spill();
        whole.all
    }
}

/// The times of a group, recorded or predicted.
pub(super) struct Side {
    times: Latency,
    squares: f64,
}

impl Side {
    fn new() -> Side {
        Side { times: Latency::new(Grain::Fine), squares: 0.0 }
    }

    /// With coarser percentiles, for many groups.
    pub(super) fn coarse() -> Side {
        Side { times: Latency::new(Grain::Coarse), squares: 0.0 }
    }

    #[inline]
    pub(super) fn record(&mut self, ns: i64) {
        self.times.record(&Sample::new(ns));
        self.squares += ns as f64 * ns as f64;
    }

    pub(super) fn absorb(&mut self, other: &Side) {
        self.times.absorb(&other.times);
        self.squares += other.squares;
    }

    pub(super) fn finish(&self) -> Times {
        let distribution = self.times.distribution(false);
        let n = distribution.n as f64;
        let error_ns = error_ns(n, distribution.sum_ns as f64 / n, self.squares);
        Times { distribution, error_ns }
    }
}

/// Half of the 95 % interval of the mean of `n` values with this sum of squares.
pub(super) fn error_ns(n: f64, mean: f64, squares: f64) -> Option<f64> {
    let variance = (squares / n - mean * mean).max(0.0) * n / (n - 1.0);
    (n > 1.0).then(|| Z_95 * (variance / n).sqrt())
}

impl Group {
    fn new() -> Group {
        let (before, after) = (Side::new(), Side::new());
        Group { count: 0, more: 0, before, after, squares: 0.0, parts: Sums::new() }
    }

    #[inline]
    fn record(&mut self, before_ns: i64, after_ns: i64) {
        self.before.record(before_ns);
        self.after.record(after_ns);
        self.squares += (after_ns as f64 - before_ns as f64).powi(2);
    }

    fn absorb(&mut self, other: &Group) {
        self.count += other.count;
        self.more += other.more;
        self.before.absorb(&other.before);
        self.after.absorb(&other.after);
        self.squares += other.squares;
        self.parts.absorb(&other.parts);
    }

    /// Means of its parts; `others` names a part for what is left of the whole.
    fn finish(&self, name: &str, others: Option<&'static str>) -> Row {
        let (before, after) = (self.before.finish(), self.after.finish());
        let n = before.distribution.n.max(1) as f64;
        let change = after.distribution.sum_ns as f64 - before.distribution.sum_ns as f64;
        let change_error_ns = error_ns(n, change / n, self.squares);
        let mut parts: Vec<_> = Part::ALL
            .iter()
            .zip(self.parts.finish())
            .filter(|(_, sums)| *sums != (0, 0))
            .map(|(part, sums)| PartRow {
                part: part.name(),
                before_ns: sums.0 as f64 / n,
                after_ns: sums.1 as f64 / n,
            })
            .collect();
        if let Some(part) = others {
            let left = |side: &Times, of: fn(&PartRow) -> f64| {
                side.distribution.sum_ns as f64 / n - parts.iter().map(of).sum::<f64>()
            };
            let before_ns = left(&before, |part| part.before_ns);
            let after_ns = left(&after, |part| part.after_ns);
            parts.push(PartRow { part, before_ns, after_ns });
        }
        let count_after = self.count.saturating_add_signed(self.more);
        Row {
            name: name.to_owned(),
            count: self.count,
            count_after,
            before,
            after,
            change_error_ns,
            parts,
        }
    }
}

impl Tally {
    /// The number of a command.
    pub(super) fn command(&mut self, name: &str) -> u32 {
        let number = self.names.number(name);
        if self.commands.len() <= number as usize {
            self.commands.push(Command { role: Role::from_command(name), group: Group::new() });
        }
        number
    }

    /// The role of a command.
    #[inline]
    pub(super) fn role(&self, command: u32) -> Role {
        self.commands.get(command as usize).map_or(Role::Alone, |command| command.role)
    }

    /// Counts whether a client's cache answers an operation.
    pub(super) fn cached(&mut self, scenario: Option<u32>, command: u32, is_answered: bool) {
        let (all, sent) = self.sent.entry((scenario, command)).or_default();
        *all += 1;
        *sent += u64::from(!is_answered);
    }

    /// Adds requests to a command, or removes them.
    pub(super) fn more(&mut self, command: u32, requests: i64) {
        if let Some(command) = self.commands.get_mut(command as usize) {
            command.group.more += requests;
        }
    }

    /// Counts an operation.
    #[inline]
    pub(super) fn operation(&mut self, command: u32) {
        if let Some(command) = self.commands.get_mut(command as usize) {
            command.group.count += 1;
        }
    }

    /// Adds an operation's time, to its command and its scenario.
    pub(super) fn timed(
        &mut self,
        command: u32,
        scenario: Option<u32>,
        timed: &OperationTime,
        has_rtt: bool,
    ) {
        self.without_rtt += u64::from(!has_rtt);
        if timed.has_slices {
            let slices = timed.parts.iter().skip(Part::FIRST_SLICE);
            for (count, (before, _)) in self.slices.iter_mut().zip(slices) {
                *count += u64::from(*before != 0);
            }
        }
        if let Some(Command { group, .. }) = self.commands.get_mut(command as usize) {
            group.record(timed.before_ns, timed.after_ns);
            group.more += timed.requests - 1;
            group.parts.add(timed);
        }
        if let Some(scenario) = scenario {
            self.scenario_group(scenario).parts.add(timed);
        }
    }

    /// Adds an execution of a scenario.
    pub(super) fn scenario(&mut self, scenario: u32, ended: &ScenarioTimes) {
        self.late.0 += u64::from(ended.late_ns.0 > LATE_NS);
        self.late.1 += u64::from(ended.late_ns.1 > LATE_NS);
        let group = self.scenario_group(scenario);
        group.count += 1;
        group.record(ended.response_ns.0, ended.response_ns.1);
    }

    fn scenario_group(&mut self, scenario: u32) -> &mut Group {
        let place = scenario as usize;
        if self.scenarios.len() <= place {
            self.scenarios.resize_with(place + 1, Group::new);
        }
        &mut self.scenarios[place]
    }

    /// Adds the time that a client waited.
    pub(super) fn waited(&mut self, ns: (i64, i64)) {
        let (before, after) = &mut self.waiting_ns;
        *before = before.saturating_add(ns.0);
        *after = after.saturating_add(ns.1);
    }

    /// The result.
    pub(super) fn finish(
        self,
        scenario_names: &[String],
        rtt_ns: Option<[(i64, i64); 3]>,
        executions_left_out: u64,
    ) -> Prediction {
        let name = |names: &[String], number: u32| names.get(number as usize).cloned();
        let mut sent: Vec<_> = self
            .sent
            .iter()
            .map(|(&(scenario, command), &(before, after))| Sent {
                scenario: scenario.and_then(|one| name(scenario_names, one)).unwrap_or_default(),
                command: name(&self.names.0, command).unwrap_or_default(),
                before,
                after,
            })
            .collect();
        sent.sort_by(|one, other| {
            (&one.scenario, &one.command).cmp(&(&other.scenario, &other.command))
        });
        let mut operations = Group::new();
        self.commands.iter().for_each(|command| operations.absorb(&command.group));
        let mut commands: Vec<_> = self
            .commands
            .iter()
            .zip(&self.names.0)
            .filter(|(command, _)| command.group.count > 0)
            .map(|(command, name)| command.group.finish(name, None))
            .collect();
        commands.sort_by(|one, other| {
            let sum = |row: &Row| row.before.distribution.sum_ns;
            sum(other).cmp(&sum(one)).then_with(|| one.name.cmp(&other.name))
        });
        let mut all = Group::new();
        let mut scenarios = Vec::new();
        for (group, name) in self.scenarios.iter().zip(scenario_names) {
            if group.count > 0 {
                all.absorb(group);
                scenarios.push(group.finish(name, Some(BETWEEN)));
            }
        }
        scenarios.sort_by(|one, other| one.name.cmp(&other.name));
        let operations = operations.finish("", None);
        Prediction {
            commands,
            all_scenarios: (!scenarios.is_empty()).then(|| all.finish("", Some(BETWEEN))),
            scenarios,
            waiting_ns: self.waiting_ns,
            late: self.late,
            rtt_ns,
            timed: operations.before.distribution.n,
            operations,
            without_rtt: self.without_rtt,
            left_out: self.left_out,
            moves: self.moves,
            further_channels: self.further_channels,
            slices: Kind::ALL.iter().map(|kind| kind.name()).zip(self.slices).collect(),
            executions_left_out,
            sent,
            ..Prediction::default()
        }
    }
}

/// The part of a scenario between its operations.
const BETWEEN: &str = "between";

/// Names and their numbers.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<String>, Map<String, u32>);

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.1.get(name) {
            return number;
        }
        let number = self.0.len() as u32;
        self.0.push(name.to_owned());
        self.1.insert(name.to_owned(), number);
        number
    }
}
