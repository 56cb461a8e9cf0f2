//! The inside of a server: slices of its time by command, by share, over time, and of the slowest
//! operations. Operations that wait by design are left out, as of every latency.

pub(crate) mod data;
mod slowest;
mod split;
mod spread;

use hashbrown::HashMap;
use smbscope_tables::slice::{Group, Kind, Slice};

use super::data::Series;
use super::slowest::Slowest;
use super::{rounded, share_of};
use crate::rows::bins::Bins;
use crate::rows::columns::Columns;
use crate::stats::latency::{Grain, Latency, Sample};
use data::{Server, ServerBin, ServerCommand, ServerShare, ServerSlice, ServerSlow, ServerSplit};
use split::Moment;
use spread::SpreadTally;

/// Most pairs of share and command.
const SHARES_MAX: usize = 512;

/// Number of kinds.
const KINDS: usize = Kind::ALL.len();

/// Slices so far.
pub(crate) struct ServerTally {
    operations: u64,
    waits: u64,
    seen: [bool; KINDS],
    split: ServerSplit,
    /// By the command's number.
    commands: Vec<Option<Box<CommandTally>>>,
    shares: Vec<((u32, u32), ShareTally)>,
    shares_index: HashMap<(u32, u32), u32, foldhash::fast::RandomState>,
    shares_others: u64,
    over_time: Bins<Moment>,
    slowest: Slowest<ServerSlow>,
}

/// One row's slices.
struct Row {
    slices: [Option<i64>; KINDS],
    turnaround: Option<i64>,
    /// Sum of the parts of the turnaround.
    sum: i64,
    residual: Option<i64>,
    split: ServerSplit,
}

struct CommandTally {
    operations: u64,
    turnaround: SpreadTally,
    sum: SpreadTally,
    residual: SpreadTally,
    groups: [SpreadTally; 3],
    slices: [Option<Box<SpreadTally>>; KINDS],
    split: ServerSplit,
}

struct ShareTally {
    sum: Latency,
    split: ServerSplit,
}

impl ServerTally {
    pub(crate) fn new(bins_max: usize, slowest: usize) -> ServerTally {
        ServerTally {
            operations: 0,
            waits: 0,
            seen: [false; KINDS],
            split: ServerSplit::default(),
            commands: Vec::new(),
            shares: Vec::new(),
            shares_index: HashMap::default(),
            shares_others: 0,
            over_time: Bins::new(bins_max),
            slowest: Slowest::new(slowest),
        }
    }

    /// Adds an operation of a batch that has slices ([`Columns::has_slices`]). `lead_at` is when
    /// the lead of its compound began: it may have no time of its own.
    pub(crate) fn add(
        &mut self,
        columns: &Columns,
        row: usize,
        (command, share): (u32, u32),
        lead_at: Option<i64>,
        name: impl FnOnce() -> String,
    ) {
        let Some(values) = Row::from_columns(columns, row) else { return };
        if columns.waits.is_set(row) {
            self.waits += 1;
            return;
        }
        self.operations += 1;
        self.split.absorb(&values.split);
        for (seen, value) in self.seen.iter_mut().zip(&values.slices) {
            *seen |= value.is_some();
        }
        let command_at = command as usize;
        if self.commands.len() <= command_at {
            self.commands.resize_with(command_at + 1, || None);
        }
        if let Some(tally) = self.commands.get_mut(command_at) {
            tally.get_or_insert_with(|| Box::new(CommandTally::new())).add(&values);
        }
        match self.share((share, command)) {
            Some(tally) => {
                tally.sum.record(&Sample::new(values.sum));
                tally.split.absorb(&values.split);
            }
            None => self.shares_others += 1,
        }
        let own = columns.request_start.get(row).or(columns.response_end.get(row));
        if let Some(at) = own.or(lead_at) {
            let moment = self.over_time.at(at);
            moment.operations += 1;
            moment.split.absorb(&values.split);
        }
        let server_ns = values.turnaround.unwrap_or(values.sum);
        self.slowest.offer(server_ns, || slowest::slow(columns, row, name(), &values, server_ns));
    }

    /// Adds slices with their starts; those of operations that came before them count.
    pub(crate) fn slices(&mut self, rows: &[Slice]) {
        slowest::place(self.slowest.rows_mut(), rows);
    }

    fn share(&mut self, key: (u32, u32)) -> Option<&mut ShareTally> {
        let next = self.shares.len();
        let place = match self.shares_index.get(&key) {
            Some(&place) => place as usize,
            None if next >= SHARES_MAX => return None,
            None => {
                self.shares_index.insert(key, next as u32);
                let sum = Latency::new(Grain::Coarse);
                self.shares.push((key, ShareTally { sum, split: ServerSplit::default() }));
                next
            }
        };
        self.shares.get_mut(place).map(|(_, tally)| tally)
    }

    /// The numbers; none without an operation that has slices. `name` and `share` say what the
    /// numbers of commands and shares mean.
    pub(crate) fn finish(
        self,
        series: &Series,
        name: impl Fn(u32) -> String,
        share: impl Fn(u32) -> Option<String>,
    ) -> Option<Server> {
        if self.operations + self.waits == 0 {
            return None;
        }
        let whole: i64 = self.commands.iter().flatten().map(|tally| tally.sum.sum()).sum();
        let numbered = (0u32..).zip(&self.commands);
        let mut commands: Vec<_> = numbered
            .filter_map(|(number, tally)| Some(tally.as_ref()?.finish(name(number), whole)))
            .collect();
        commands.sort_by(|a, b| {
            let order = |row: &ServerCommand| row.slices_sum.distribution.sum_ns;
            order(b).cmp(&order(a)).then_with(|| a.command.cmp(&b.command))
        });
        let mut shares: Vec<_> = self
            .shares
            .iter()
            .map(|((of, command), tally)| {
                let slices_sum = tally.sum.distribution(false);
                ServerShare {
                    share: share(*of),
                    command: name(*command),
                    operations: slices_sum.n,
                    time_share: rounded(share_of(slices_sum.sum_ns, whole)),
                    slices_sum,
                    split: tally.split.clone(),
                }
            })
            .collect();
        shares.sort_by(|a, b| {
            let key = |row: &ServerShare| (row.share.clone(), row.command.clone());
            let order = |row: &ServerShare| row.slices_sum.sum_ns;
            order(b).cmp(&order(a)).then_with(|| key(a).cmp(&key(b)))
        });
        let start = series.bins.first().map_or(0, |bin| bin.start_ns);
        let moments = self.over_time.onto(start, series.bin_ns, series.bins.len());
        let bins = series.bins.iter().zip(moments).map(|(bin, moment)| ServerBin {
            start_ns: bin.start_ns,
            operations: moment.operations,
            split: moment.split,
        });
        let kinds = Kind::ALL.iter().zip(self.seen).filter(|(_, seen)| *seen);
        Some(Server {
            operations: self.operations,
            waits: self.waits,
            kinds: kinds.map(|(kind, _)| kind.name()).collect(),
            split: self.split,
            commands,
            shares,
            shares_others: self.shares_others,
            bins: bins.collect(),
            slowest: slowest::finish(self.slowest),
        })
    }
}

impl Row {
    /// None without any slice.
    fn from_columns(columns: &Columns, row: usize) -> Option<Row> {
        let slices = columns.slices().map(|column| column.get(row));
        if slices.iter().all(Option::is_none) {
            return None;
        }
        let mut split = ServerSplit {
            request_transfer_ns: columns.request_transfer_ns.get(row).unwrap_or(0),
            response_transfer_ns: columns.response_transfer_ns.get(row).unwrap_or(0),
            ..ServerSplit::default()
        };
        let mut sum = 0i64;
        for (&kind, value) in Kind::ALL.iter().zip(&slices) {
            if let (Some(group), Some(value)) = (kind.group(), value) {
                split.add(group, *value);
                sum = sum.saturating_add(*value);
            }
        }
        // The lead of a compound has the turnaround of the whole chain, and its own slices.
        let alone = columns.compound.get(row).is_none();
        let turnaround = columns.turnaround_ns.get(row).filter(|_| alone);
        let residual = turnaround.map(|turnaround| turnaround.saturating_sub(sum));
        split.residual_ns = residual.unwrap_or(0);
        Some(Row { slices, turnaround, sum, residual, split })
    }

    /// The time in the slices of a group; `None` if the operation has no such slice.
    fn in_group(&self, wanted: Group) -> Option<i64> {
        let slices = Kind::ALL.iter().zip(&self.slices);
        let known = slices.filter(|&(&kind, _)| kind.group() == Some(wanted));
        known.filter_map(|(_, value)| *value).reduce(i64::saturating_add)
    }
}

impl CommandTally {
    /// The groups with a distribution of their own; the others have one kind each.
    const GROUPS: [Group; 3] = [Group::Queue, Group::Processing, Group::Filesystem];

    fn new() -> CommandTally {
        CommandTally {
            operations: 0,
            turnaround: SpreadTally::new(),
            sum: SpreadTally::new(),
            residual: SpreadTally::new(),
            groups: std::array::from_fn(|_| SpreadTally::new()),
            slices: std::array::from_fn(|_| None),
            split: ServerSplit::default(),
        }
    }

    fn add(&mut self, row: &Row) {
        self.operations += 1;
        self.sum.record(row.sum);
        if let Some(turnaround) = row.turnaround {
            self.turnaround.record(turnaround);
        }
        if let Some(residual) = row.residual {
            self.residual.record(residual);
        }
        for (tally, group) in self.groups.iter_mut().zip(Self::GROUPS) {
            if let Some(value) = row.in_group(group) {
                tally.record(value);
            }
        }
        for (tally, value) in self.slices.iter_mut().zip(&row.slices) {
            if let Some(value) = value {
                tally.get_or_insert_with(|| Box::new(SpreadTally::new())).record(*value);
            }
        }
        self.split.absorb(&row.split);
    }

    fn finish(&self, command: String, whole: i64) -> ServerCommand {
        let [queue, processing, filesystem] = &self.groups;
        let slices = Kind::ALL.iter().zip(&self.slices);
        let slices = slices.filter_map(|(kind, tally)| {
            Some(ServerSlice { kind: kind.name(), spread: tally.as_ref()?.finish() })
        });
        ServerCommand {
            command,
            operations: self.operations,
            time_share: rounded(share_of(self.sum.sum(), whole)),
            turnaround: self.turnaround.finish(),
            slices_sum: self.sum.finish(),
            residual: self.residual.finish(),
            queue: queue.finish(),
            processing: processing.finish(),
            filesystem: filesystem.finish(),
            split: self.split.clone(),
            slices: slices.collect(),
        }
    }
}
