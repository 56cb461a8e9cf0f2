//! Counters and latencies of one group of operations, and groups by a property with their limit.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::data::{self, BusySplit, Distribution, Groups};
use super::share_of;
use crate::stats::latency::{Grain, Latency, Sample};

/// What one operation adds to every group that it belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) unanswered: bool,
    pub(crate) request_unseen: bool,
    pub(crate) error: bool,
    pub(crate) not_found: bool,
    pub(crate) waits: bool,
    pub(crate) waiting_ns: i64,
    pub(crate) busy_ns: i64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) wire_bytes: u64,
    /// Null for operations that wait by design.
    pub(crate) elapsed: Option<Sample>,
    /// Null for operations that wait by design.
    pub(crate) server: Option<Sample>,
}

/// One group's counters.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    pub(crate) unanswered: u64,
    pub(crate) request_unseen: u64,
    pub(crate) errors: u64,
    pub(crate) not_found: u64,
    pub(crate) waits: u64,
    pub(crate) waiting_ns: i64,
    pub(crate) busy_ns: i64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) elapsed: Latency,
    pub(crate) server: Latency,
}

impl Tally {
    pub(crate) fn new(grain: Grain) -> Tally {
        Tally {
            operations: 0,
            unanswered: 0,
            request_unseen: 0,
            errors: 0,
            not_found: 0,
            waits: 0,
            waiting_ns: 0,
            busy_ns: 0,
            read_bytes: 0,
            written_bytes: 0,
            wire_bytes: 0,
            elapsed: Latency::new(grain),
            server: Latency::new(grain),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, facts: &Facts) {
        self.operations += 1;
        self.unanswered += u64::from(facts.unanswered);
        self.request_unseen += u64::from(facts.request_unseen);
        self.errors += u64::from(facts.error);
        self.not_found += u64::from(facts.not_found);
        self.waits += u64::from(facts.waits);
        self.waiting_ns = self.waiting_ns.saturating_add(facts.waiting_ns);
        self.busy_ns = self.busy_ns.saturating_add(facts.busy_ns);
        self.read_bytes = self.read_bytes.saturating_add(facts.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(facts.written_bytes);
        self.wire_bytes = self.wire_bytes.saturating_add(facts.wire_bytes);
        if let Some(elapsed) = &facts.elapsed {
            self.elapsed.record(elapsed);
        }
        if let Some(server) = &facts.server {
            self.server.record(server);
        }
    }

    pub(crate) fn absorb(&mut self, other: &Tally) {
        self.operations += other.operations;
        self.unanswered += other.unanswered;
        self.request_unseen += other.request_unseen;
        self.errors += other.errors;
        self.not_found += other.not_found;
        self.waits += other.waits;
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.wire_bytes = self.wire_bytes.saturating_add(other.wire_bytes);
        self.elapsed.absorb(&other.elapsed);
        self.server.absorb(&other.server);
    }

    /// As data; shares are of all operations and of all busy time.
    pub(crate) fn finish(&self, total: &Whole, histogram: bool) -> data::Tally {
        data::Tally {
            operations: self.operations,
            operations_share: share_of(self.operations as i64, total.operations as i64),
            busy_ns: self.busy_ns,
            busy_share: share_of(self.busy_ns, total.busy_ns),
            unanswered: self.unanswered,
            request_unseen: self.request_unseen,
            errors: self.errors,
            not_found: self.not_found,
            waits: self.waits,
            waiting_ns: self.waiting_ns,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            wire_bytes: self.wire_bytes,
            elapsed: self.elapsed.distribution(histogram),
            server: self.server.distribution(histogram),
        }
    }
}

/// What shares are shares of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) operations: u64,
    pub(crate) busy_ns: i64,
}

/// The parts of an operation's time; those of an operation that waits by design are null.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) request_ns: Option<i64>,
    pub(crate) turnaround_ns: Option<i64>,
    pub(crate) response_ns: Option<i64>,
}

/// A command's counters: those of every group, and the parts of its time.
#[derive(Clone, Debug)]
pub(crate) struct CommandTally {
    pub(crate) tally: Tally,
    pub(crate) turnaround: Latency,
    pub(crate) request: Latency,
    pub(crate) response: Latency,
    pub(crate) split: BusySplit,
}

impl CommandTally {
    pub(crate) fn new(grain: Grain) -> CommandTally {
        CommandTally {
            tally: Tally::new(grain),
            turnaround: Latency::new(grain),
            request: Latency::new(grain),
            response: Latency::new(grain),
            split: BusySplit::default(),
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, facts: &Facts, parts: &Parts) {
        self.tally.add(facts);
        if let Some(turnaround) = parts.turnaround_ns {
            self.turnaround.record(&Sample::new(turnaround));
        }
        if let Some(request) = parts.request_ns {
            self.request.record(&Sample::new(request));
        }
        if let Some(response) = parts.response_ns {
            self.response.record(&Sample::new(response));
        }
        if facts.busy_ns != 0 {
            self.divide(facts, parts);
        }
    }

    /// Divides the operation's busy time in the proportion of the parts of its elapsed time, so
    /// that the parts of all operations add up to the busy time.
    #[inline]
    fn divide(&mut self, facts: &Facts, parts: &Parts) {
        let busy = facts.busy_ns;
        let elapsed = facts.elapsed.map_or(0, |elapsed| elapsed.value);
        if elapsed <= 0 {
            self.split.unsplit_ns = self.split.unsplit_ns.saturating_add(busy);
            return;
        }
        let factor = busy as f64 / elapsed as f64;
        let part = |ns: Option<i64>| (ns.unwrap_or(0) as f64 * factor).round() as i64;
        let (request, response) = (part(parts.request_ns), part(parts.response_ns));
        let split = &mut self.split;
        split.request_transfer_ns = split.request_transfer_ns.saturating_add(request);
        split.response_transfer_ns = split.response_transfer_ns.saturating_add(response);
        let middle = busy.saturating_sub(request).saturating_sub(response);
        match &facts.server {
            Some(server) => {
                let server = part(Some(server.value));
                split.server_ns = split.server_ns.saturating_add(server);
                let network = middle.saturating_sub(server);
                split.network_ns = split.network_ns.saturating_add(network);
            }
            None => split.unsplit_ns = split.unsplit_ns.saturating_add(middle),
        }
    }

    pub(crate) fn absorb(&mut self, other: &CommandTally) {
        self.tally.absorb(&other.tally);
        self.turnaround.absorb(&other.turnaround);
        self.request.absorb(&other.request);
        self.response.absorb(&other.response);
        let (split, more) = (&mut self.split, &other.split);
        for (sum, add) in [
            (&mut split.request_transfer_ns, more.request_transfer_ns),
            (&mut split.server_ns, more.server_ns),
            (&mut split.network_ns, more.network_ns),
            (&mut split.unsplit_ns, more.unsplit_ns),
            (&mut split.response_transfer_ns, more.response_transfer_ns),
        ] {
            *sum = sum.saturating_add(add);
        }
    }

    pub(crate) fn parts(&self) -> [Distribution; 3] {
        [&self.turnaround, &self.request, &self.response].map(|part| part.distribution(true))
    }
}

/// Groups by one property. The first is of operations without it, the second of operations whose
/// group came after the limit was reached.
pub(crate) struct Dimension {
    groups: Vec<(String, Tally)>,
    index: HashMap<String, u32, foldhash::fast::RandomState>,
    limit: usize,
    grain: Grain,
    /// Whether names that differ in case alone are one group's.
    folds: bool,
}

impl Dimension {
    /// The group of operations without the property.
    pub(crate) const NONE: u32 = 0;
    const OTHERS: u32 = 1;

    pub(crate) fn new(limit: usize, grain: Grain) -> Dimension {
        Dimension {
            groups: vec![(String::new(), Tally::new(grain)); 2],
            index: HashMap::default(),
            limit,
            grain,
            folds: false,
        }
    }

    /// Groups by names for which servers take any case (shares, users); each has the name by which
    /// it was seen first.
    pub(crate) fn folding(limit: usize, grain: Grain) -> Dimension {
        Dimension { folds: true, ..Dimension::new(limit, grain) }
    }

    fn key<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.folds && name.chars().any(char::is_uppercase) {
            name.to_lowercase().into()
        } else {
            name.into()
        }
    }

    /// The number of a group.
    pub(crate) fn resolve(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else {
            return Self::NONE;
        };
        let key = self.key(name);
        if let Some(&number) = self.index.get(&*key) {
            return number;
        }
        if self.index.len() >= self.limit {
            return Self::OTHERS;
        }
        let number = self.groups.len() as u32;
        self.groups.push((name.to_owned(), Tally::new(self.grain)));
        self.index.insert(key.into_owned(), number);
        number
    }

    #[inline]
    pub(crate) fn add(&mut self, number: u32, facts: &Facts) {
        if let Some((_, tally)) = self.groups.get_mut(number as usize) {
            tally.add(facts);
        }
    }

    /// Adds counts from elsewhere.
    pub(crate) fn absorb(&mut self, number: u32, other: &Tally) {
        if let Some((_, tally)) = self.groups.get_mut(number as usize) {
            tally.absorb(other);
        }
    }

    /// Counts an operation without its facts.
    #[inline]
    pub(crate) fn count(&mut self, number: u32) {
        if let Some((_, tally)) = self.groups.get_mut(number as usize) {
            tally.operations += 1;
        }
    }

    /// The name of a group; none for those without the property.
    pub(crate) fn name(&self, number: u32) -> Option<&str> {
        match number {
            Self::NONE => None,
            Self::OTHERS => Some("(others)"),
            _ => self.groups.get(number as usize).map(|(name, _)| name.as_str()),
        }
    }

    /// The groups with the most busy time first.
    pub(crate) fn finish(&self, total: &Whole) -> Groups {
        let mut rows: Vec<_> = self
            .groups
            .iter()
            .enumerate()
            .filter(|&(number, (_, tally))| tally.operations > 0 && number != Self::OTHERS as usize)
            .map(|(number, (_, tally))| data::Group {
                name: self.name(number as u32).map(str::to_owned),
                tally: tally.finish(total, false),
            })
            .collect();
        rows.sort_by(|a, b| {
            let order = |row: &data::Group| (row.tally.busy_ns, row.tally.operations);
            order(b).cmp(&order(a)).then_with(|| a.name.cmp(&b.name))
        });
        let others = self.groups.get(Self::OTHERS as usize);
        Groups {
            distinct: self.index.len() as u64,
            limit: self.limit as u64,
            rows,
            others: others
                .filter(|(_, tally)| tally.operations > 0)
                .map(|(_, tally)| tally.finish(total, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_past_the_limit_are_counted_together() {
        let mut dimension = Dimension::new(2, Grain::Coarse);
        for name in [Some("a"), Some("b"), None, Some("c"), Some("d"), Some("a")] {
            let number = dimension.resolve(name);
            dimension.add(number, &Facts::default());
        }
        let found = dimension.finish(&Whole { operations: 6, busy_ns: 0 });
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.name.as_deref(), row.tally.operations)).collect();
        assert_eq!(rows, [(Some("a"), 2), (None, 1), (Some("b"), 1)]);
        assert_eq!((found.distinct, found.others.unwrap().operations), (2, 2));
    }

    #[test]
    fn one_share_is_one_group_however_it_is_written() {
        let mut dimension = Dimension::folding(9, Grain::Coarse);
        for name in [r"\\nas\Büro", r"\\NAS\BÜRO", r"\\nas\other", r"\\nas\büro"] {
            let number = dimension.resolve(Some(name));
            dimension.add(number, &Facts::default());
        }
        let found = dimension.finish(&Whole { operations: 4, busy_ns: 0 });
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.name.as_deref(), row.tally.operations)).collect();
        assert_eq!(rows, [(Some(r"\\nas\Büro"), 3), (Some(r"\\nas\other"), 1)]);
    }

    #[test]
    fn the_parts_of_busy_time_add_up_to_it() {
        let mut command = CommandTally::new(Grain::Fine);
        let facts = Facts {
            busy_ns: 1_001,
            elapsed: Some(Sample::new(3_000)),
            server: Some(Sample::new(900)),
            ..Facts::default()
        };
        let parts =
            Parts { request_ns: Some(333), turnaround_ns: Some(1_334), response_ns: Some(1_333) };
        command.add(&facts, &parts);
        command.add(&Facts { server: None, ..facts }, &parts);
        let s = &command.split;
        let sum = s.request_transfer_ns
            + s.server_ns
            + s.network_ns
            + s.unsplit_ns
            + s.response_transfer_ns;
        assert_eq!(sum, 2_002);
        assert_eq!((s.server_ns, s.request_transfer_ns), (300, 222));
    }
}
