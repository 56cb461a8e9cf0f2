//! The summary of a recording: everything that a report shows, accumulated while operations
//! stream by, in memory that does not grow with the recording.
//!
//! [`Summary`] takes record batches of the operations table (from a capture, or read back from
//! Parquet) and rows of the other tables, in any order; [`Summary::finish`] gives the numbers.
//! It does not know how they are shown. Definitions:
//! - Latency is `elapsed_ns` of operations that do not wait by design (`waits`); operations whose
//!   times are not known (members of compounds, half-seen ones) count, but not as latency.
//! - A share of time is `busy_ns` over that of all operations, so that shares add up to one.
//! - Groups, paths, connections and bins have limits ([`Options`]); the result counts what is beyond them.

mod cells;
mod chains;
mod commands;
mod data;
mod links;
mod load;
mod paths;
mod rows;
mod series;
mod server;
mod sizes;
pub(crate) mod slowest;
mod status;
mod tally;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use smbscope_tables::description::RunDescription;
use smbscope_tables::run::{Counter, Scenario, Step};
use smbscope_tables::slice::Slice;
use smbscope_tables::tables::{
    Channel, Connection, Coverage, Handle, Interface, NetRoundTrip, NetTest, ServerEvent, Session,
    Tree,
};

pub use crate::logged::{Logged, LoggedOther};
pub use crate::net::{Net, PathProblem, SmbRatio};
pub use crate::stats::latency::{BOUNDS_NS, FEW};
pub use data::*;
pub use load::data::*;
pub use load::{Counted, FAILED_SHARE_MAX, LoadSoFar, LoadState, Outcomes, SCENARIOS_MIN};
pub use server::data::*;
pub use slowest::filter;

use crate::channels::Timeline;
use crate::durability::DurabilityTally;
use crate::logged::LoggedTally;
use crate::net::{Moved, NetTally};
use crate::stats::latency::{Grain, Latency};
use cells::Cells;
use chains::{Begins, ChainTally};
use commands::Commands;
use links::{HandleTally, LinkTally, Words};
use load::LoadTally;
use paths::Sketch;
use series::SeriesTally;
use server::ServerTally;
use sizes::SizeTally;
use slowest::Slowest;
use status::StatusTally;
use tally::{CommandTally, Dimension, Whole};

/// The columns of the operations table that a summary reads; others need not be decoded.
pub fn columns() -> Vec<&'static str> {
    let mut all: Vec<_> =
        crate::rows::columns::COLUMNS.iter().chain(crate::durability::COLUMNS).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Resolution of the distributions of commands.
const FINE: Grain = Grain::Fine;
/// Resolution for groups, connections and bins, of which there are many.
const MANY: Grain = Grain::Coarse;

/// Limits of a summary.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most shares, clients, users, extensions and connections, each.
    pub groups_max: usize,
    /// Paths that are kept for each ranking, of files and of directories.
    pub paths_max: usize,
    /// Bins over time.
    pub bins_max: usize,
    /// Paths listed in each ranking.
    pub paths_listed: usize,
    /// Slowest operations listed.
    pub slowest_listed: usize,
    /// Operations listed with their slices at the server.
    pub server_slowest_listed: usize,
    /// Which operations of load runs count.
    pub counted: Counted,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            groups_max: 1024,
            paths_max: 4096,
            bins_max: 600,
            paths_listed: 100,
            slowest_listed: 50,
            server_slowest_listed: 20,
            counted: Counted::default(),
        }
    }
}

/// A summary in progress.
pub struct Summary {
    options: Options,
    coverage: Vec<Coverage>,
    start: Option<i64>,
    end: Option<i64>,
    recordings: Dimension,
    commands: Commands,
    statuses: StatusTally,
    cells: Cells,
    shares: Dimension,
    clients: Dimension,
    users: Dimension,
    extensions: Dimension,
    files: Sketch,
    directories: Sketch,
    series: SeriesTally,
    chains_begun: Begins,
    reads: SizeTally,
    writes: SizeTally,
    chains: ChainTally,
    client_gap: Latency,
    outstanding_max: u32,
    outstanding_sum: u64,
    outstanding_n: u64,
    protection: Protection,
    dialects: Dimension,
    breaks: Breaks,
    changes: Words,
    sessions: Sessions,
    logged: LoggedTally,
    net: NetTally,
    durability: DurabilityTally,
    mechanisms: Words,
    trees: Trees,
    handles: HandleTally,
    links: LinkTally,
    /// With the numbers of their commands.
    slowest: Slowest<(u32, Slow)>,
    server: ServerTally,
    load: LoadTally,
    timeline: Timeline,
}

impl Summary {
    /// A summary of nothing yet.
    pub fn new(options: Options) -> Summary {
        let groups = || Dimension::new(options.groups_max, MANY);
        let names = || Dimension::folding(options.groups_max, MANY);
        Summary {
            coverage: Vec::new(),
            start: None,
            end: None,
            recordings: groups(),
            commands: Commands::new(FINE),
            statuses: StatusTally::default(),
            cells: Cells::new(MANY),
            shares: names(),
            clients: groups(),
            users: names(),
            extensions: groups(),
            files: Sketch::new(options.paths_max),
            directories: Sketch::new(options.paths_max),
            series: SeriesTally::new(options.bins_max, MANY),
            chains_begun: Begins::default(),
            reads: SizeTally::new(),
            writes: SizeTally::new(),
            chains: ChainTally::default(),
            client_gap: Latency::new(FINE),
            outstanding_max: 0,
            outstanding_sum: 0,
            outstanding_n: 0,
            protection: Protection::default(),
            dialects: Dimension::new(64, MANY),
            breaks: Breaks::default(),
            changes: Words::default(),
            sessions: Sessions::default(),
            logged: LoggedTally::default(),
            net: NetTally::default(),
            durability: DurabilityTally::default(),
            mechanisms: Words::default(),
            trees: Trees::default(),
            handles: HandleTally::new(FINE),
            links: LinkTally::new(options.groups_max, MANY),
            slowest: Slowest::new(options.slowest_listed),
            server: ServerTally::new(options.bins_max, options.server_slowest_listed),
            load: LoadTally::new(options.counted, options.bins_max),
            timeline: Timeline::default(),
            options,
        }
    }

    /// Adds operations. Columns are found by name; those that are absent read as null. Fails only
    /// on a column of a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.durability.operations(batch)?;
        rows::add(self, batch)
    }

    /// Adds connections.
    pub fn connections(&mut self, rows: &[Connection]) {
        self.links.connections(rows);
        self.net.connections(rows);
    }

    /// Adds what channels carried.
    pub fn channels(&mut self, rows: &[Channel]) {
        self.timeline.channels(rows);
        self.net.channels(rows);
    }

    /// Adds interfaces that servers offered.
    pub fn interfaces(&mut self, rows: &[Interface]) {
        self.timeline.interfaces(rows);
    }

    /// Adds opens.
    pub fn handles(&mut self, rows: &[Handle]) {
        self.durability.handles(rows);
        self.handles.handles(&mut self.series, rows);
    }

    /// Adds events that a server or client logged on its own.
    pub fn logged(&mut self, rows: &[ServerEvent]) {
        self.logged.add(rows);
    }

    /// Adds phases of a test of the network without SMB.
    pub fn net_tests(&mut self, rows: &[NetTest]) {
        self.net.tests(rows);
    }

    /// Adds round trips of a test of the network.
    pub fn net_round_trips(&mut self, rows: &[NetRoundTrip]) {
        self.net.round_trips(rows);
    }

    /// Adds sessions.
    pub fn sessions(&mut self, rows: &[Session]) {
        links::sessions(&mut self.sessions, &mut self.mechanisms, rows);
    }

    /// Adds slices of operations that were added before.
    pub fn slices(&mut self, rows: &[Slice]) {
        self.server.slices(rows);
    }

    /// Adds connected shares.
    pub fn trees(&mut self, rows: &[Tree]) {
        self.durability.trees(rows);
        links::trees(&mut self.trees, rows);
    }

    /// Adds the coverage of one recording.
    pub fn coverage(&mut self, row: &Coverage) {
        self.coverage.push(row.clone());
        self.seen(row.start);
        self.seen(row.end);
    }

    /// Adds the description of one machine's part of a load run, before any of its rows.
    pub fn run(&mut self, run: &RunDescription, complete: bool) {
        self.load.run(run, complete);
    }

    /// Adds steps of a load run, before its scenarios and counters.
    pub fn steps(&mut self, rows: &[Step]) {
        self.load.steps(rows);
    }

    /// Adds scenarios of a load run, before its operations: they say which of those count.
    pub fn scenarios(&mut self, rows: &[Scenario]) {
        for row in rows {
            let times = [Some(row.scheduled_at), row.ended_at];
            times.into_iter().flatten().for_each(|at| self.series.reach(at));
        }
        let recordings = &mut self.recordings;
        self.load.scenarios(rows, |name| recordings.resolve(Some(name)));
    }

    /// Adds samples of counters.
    pub fn counters(&mut self, rows: &[Counter]) {
        rows.iter().for_each(|row| self.series.reach(row.time));
        self.load.counters(rows);
        self.timeline.counters(rows);
        self.net.counters(rows);
    }

    fn seen(&mut self, at: Option<i64>) {
        if let Some(at) = at {
            self.start = Some(self.start.map_or(at, |start| start.min(at)));
            self.end = Some(self.end.map_or(at, |end| end.max(at)));
        }
    }

    /// The numbers.
    pub fn finish(mut self) -> Report {
        self.cells.finish([&mut self.shares, &mut self.clients, &mut self.users]);
        let mut all = CommandTally::new(FINE);
        self.commands.all().for_each(|command| all.absorb(command));
        let whole = Whole { operations: all.tally.operations, busy_ns: all.tally.busy_ns };
        let [turnaround, request_transfer, response_transfer] = all.parts();
        let totals = Totals {
            tally: all.tally.finish(&whole, true),
            busy_split: all.split,
            turnaround,
            request_transfer,
            response_transfer,
            client_gap: self.client_gap.distribution(true),
            outstanding_max: (self.outstanding_n > 0).then_some(self.outstanding_max),
            outstanding_mean: (self.outstanding_n > 0)
                .then(|| rounded(self.outstanding_sum as f64 / self.outstanding_n as f64)),
            outstanding_n: self.outstanding_n,
        };
        self.commands.disambiguate();
        let commands = &self.commands;
        let name = |number: u32| commands.name(number);
        let shares = &self.shares;
        let share = |number: u32| shares.name(number).map(str::to_owned);
        let listed = self.options.paths_listed;
        let series = self.series.finish();
        let moved = series
            .bins
            .iter()
            .map(|bin| Moved { read_bytes: bin.read_bytes, written_bytes: bin.written_bytes });
        let net = self.net.finish(series.bin_ns, &moved.collect::<Vec<_>>());
        // Connections have the operations of a load run that do not count, too.
        let of_all = whole.busy_ns.saturating_add(self.load.left_out_busy_ns);
        let of_all = Whole { busy_ns: of_all, ..whole };
        let load = self.load.finish(&series, name);
        let server = self.server.finish(&series, name, share);
        let (logged, logged_other) = self.logged.finish();
        Report {
            schema_version: smbscope_tables::SCHEMA_VERSION,
            start_ns: self.start,
            end_ns: self.end,
            coverage: self.coverage,
            totals,
            latency_bounds_ns: BOUNDS_NS.to_vec(),
            commands: commands.finish(&whole),
            statuses: self.statuses.finish(whole.operations, name),
            shares: self.shares.finish(&whole),
            clients: self.clients.finish(&whole),
            users: self.users.finish(&whole),
            extensions: self.extensions.finish(&whole),
            files: self.files.finish(listed, true, &whole, share),
            directories: self.directories.finish(listed, false, &whole, share),
            series,
            reads: self.reads.finish(),
            writes: self.writes.finish(),
            compounds: self.chains.finish(whole.operations, name),
            protection: Protection {
                dialects: words(self.dialects.finish(&whole)),
                ..self.protection
            },
            channels: self.timeline.finish(),
            logged,
            logged_other,
            both_sides: None,
            net,
            durability: self.durability.finish(),
            sessions: Sessions { mechanisms: self.mechanisms.finish(), ..self.sessions },
            trees: self.trees,
            handles: self.handles.finish(),
            breaks: Breaks { changes: self.changes.finish(), ..self.breaks },
            connections: self.links.finish(&of_all, &mut self.recordings),
            slowest: (self.slowest.finish().into_iter())
                .map(|(number, row)| Slow { command: name(number), ..row })
                .collect(),
            load,
            server,
        }
    }
}

/// The groups as words with their operations.
fn words(groups: Groups) -> Vec<Count> {
    let named = groups.rows.into_iter().map(|row| Count {
        name: row.name.unwrap_or_else(|| "(unknown)".to_owned()),
        count: row.tally.operations,
    });
    let others =
        groups.others.map(|tally| Count { name: "(others)".to_owned(), count: tally.operations });
    let mut words: Vec<_> = named.chain(others).collect();
    words.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    words
}

/// A part of a whole as a number from 0 to 1; 0 of nothing.
fn share_of(part: i64, whole: i64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

/// Rounded to six decimals, so that text stays short; 0 if it is not a number, which JSON does not have.
fn rounded(value: f64) -> f64 {
    match value.is_finite() {
        // Too large to have decimals.
        true if value.abs() > 1e15 => value,
        true => (value * 1e6).round() / 1e6,
        false => 0.0,
    }
}
