//! The loop over one batch: what a row means for each part of the summary. Text is resolved once
//! per batch and dictionary entry, so that a row costs vector look-ups and no hashing of text.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_tables::command_class::CommandClass;

use super::chains::Member;
use super::commands::Commands;
use super::links::{Link, LinkTally};
use super::paths::{PathSums, directory, parent};
use super::tally::{Dimension, Facts, Parts};
use super::{Summary, chains, slowest};
use crate::rows::columns::{Columns, Resolved, Text};
use crate::rows::create_intent::CreateIntent;
use crate::rows::status_class::StatusClass;
use crate::stats::latency::Sample;

/// Adds a batch.
pub(crate) fn add(summary: &mut Summary, batch: &RecordBatch) -> Result<(), ArrowError> {
    let columns = Columns::from_batch(batch)?;
    let mut keys = Keys::new(&columns);
    let mut paths = BatchPaths::new(columns.path.keys());
    let has_slices = columns.has_slices();
    for row in 0..batch.num_rows() {
        if let Some(groups) = add_row(summary, &columns, &mut keys, &mut paths, row)
            && has_slices
        {
            let recording =
                group(&mut keys.recording, &columns.recording, row, &mut summary.recordings);
            let chain = chain(&columns, recording, row);
            let lead = chain.and_then(|chain| summary.chains_begun.get(chain));
            let commands = &summary.commands;
            summary.server.add(&columns, row, groups, lead, || commands.name(groups.0));
        }
    }
    paths.flush(summary, &columns.path);
    Ok(())
}

/// What the batch's dictionaries mean in the summary.
struct Keys {
    commands: [Resolved; 3],
    recording: Resolved,
    share: Resolved,
    client: Resolved,
    user: Resolved,
    extension: Resolved,
    dialect: Resolved,
}

impl Keys {
    fn new(columns: &Columns) -> Keys {
        let of = |text: &Text| Resolved::new(text.keys());
        Keys {
            commands: std::array::from_fn(|_| of(&columns.command)),
            recording: of(&columns.recording),
            share: of(&columns.share),
            client: of(&columns.client),
            user: of(&columns.user),
            extension: of(&columns.extension),
            dialect: of(&columns.dialect),
        }
    }
}

fn group(keys: &mut Resolved, text: &Text, row: usize, groups: &mut Dimension) -> u32 {
    match text.key(row) {
        Some(key) => keys.get(key, || groups.resolve(text.text(key))),
        None => Dimension::NONE,
    }
}

fn command(keys: &mut Keys, columns: &Columns, row: usize, commands: &mut Commands) -> u32 {
    let protocol = columns.protocol.get(row);
    let Some(key) = columns.command.key(row) else {
        let name = if columns.encrypted.is_set(row) { "(encrypted)" } else { "(unknown)" };
        return commands.resolve(name, None);
    };
    let mut resolve =
        || commands.resolve(columns.command.text(key).unwrap_or("(unknown)"), protocol);
    let known = match protocol {
        Some(1) => keys.commands.get_mut(1),
        Some(2) => keys.commands.get_mut(2),
        None => keys.commands.get_mut(0),
        Some(_) => None,
    };
    match known {
        Some(known) => known.get(key, resolve),
        None => resolve(),
    }
}

/// Returns the row's command and share; none if the operation does not count.
#[inline(always)]
fn add_row(
    summary: &mut Summary,
    columns: &Columns,
    keys: &mut Keys,
    paths: &mut BatchPaths,
    row: usize,
) -> Option<(u32, u32)> {
    let number = command(keys, columns, row, &mut summary.commands);
    let class = class(summary.commands.class(number), columns, row);
    let (facts, parts) = facts(columns, row, class);
    let recording = group(&mut keys.recording, &columns.recording, row, &mut summary.recordings);
    if summary.load.is_load() && !counts(summary, columns, recording, number, &facts, row) {
        connection(&mut summary.links, columns, recording, class, &facts, row);
        return None;
    }
    summary.commands.add(number, &facts, &parts);
    summary.statuses.record(columns.status.get(row), number, || {
        columns.status_name.get(row).map(str::to_owned)
    });

    let share = group(&mut keys.share, &columns.share, row, &mut summary.shares);
    let client = group(&mut keys.client, &columns.client, row, &mut summary.clients);
    let user = group(&mut keys.user, &columns.user, row, &mut summary.users);
    let mut link = connection(&mut summary.links, columns, recording, class, &facts, row);
    let mut no_hint = 0;
    let hint = link.as_mut().map_or(&mut no_hint, |link| &mut link.cell);
    if !summary.cells.add([share, client, user], hint, &facts) {
        summary.shares.add(share, &facts);
        summary.clients.add(client, &facts);
        summary.users.add(user, &facts);
    }
    let extension = group(&mut keys.extension, &columns.extension, row, &mut summary.extensions);
    summary.extensions.add(extension, &facts);
    let dialect = group(&mut keys.dialect, &columns.dialect, row, &mut summary.dialects);
    summary.dialects.count(dialect);
    if let Some(key) = columns.path.key(row) {
        paths.add(share, key, columns, row, class, &facts);
    }

    let outstanding = over_time(summary, columns, recording, &facts, row);
    if let Some(outstanding) = outstanding {
        summary.outstanding_max = summary.outstanding_max.max(outstanding);
        summary.outstanding_sum += u64::from(outstanding);
        summary.outstanding_n += 1;
    }
    if let Some(gap) = columns.client_gap_ns.get(row) {
        summary.client_gap.record(&Sample::new(gap));
    }
    let encrypted = columns.encrypted.is_set(row);
    let protection = &mut summary.protection;
    protection.signed += u64::from(columns.signed.is_set(row));
    protection.encrypted += u64::from(encrypted);
    protection.encrypted_unread += u64::from(encrypted && columns.command.key(row).is_none());
    protection.compressed += u64::from(columns.compressed.is_set(row));
    if let Some(elapsed_ns) = facts.elapsed.map(|elapsed| elapsed.value) {
        summary.slowest.offer(elapsed_ns, || (number, slowest::slow(columns, row, elapsed_ns)));
    }

    if let Some(chain) = columns.compound.get(row) {
        summary.chains.record(&Member {
            chain: (recording, columns.connection.get(row).unwrap_or(u64::MAX), chain),
            index: columns.compound_index.get(row).unwrap_or(0),
            size: columns.compound_size.get(row),
            related: columns.related.is_set(row),
            command: number,
        });
    }
    match class {
        CommandClass::Read | CommandClass::Write => {
            let sizes = match class {
                CommandClass::Read => &mut summary.reads,
                _ => &mut summary.writes,
            };
            sizes.record(columns.requested_bytes.get(row), columns.transferred_bytes.get(row));
        }
        CommandClass::Break => lease_break(summary, columns, row),
        _ => {}
    }
    Some((number, share))
}

/// The class of a row's command; of SMB1's transactions the subcommands that open a file are known.
#[inline(always)]
fn class(command: CommandClass, columns: &Columns, row: usize) -> CommandClass {
    if command != CommandClass::Transaction {
        return command;
    }
    match columns.detail.get(row).map(CommandClass::of_subcommand) {
        Some(CommandClass::Open) => CommandClass::Open,
        _ => command,
    }
}

/// Adds a row to its connection and returns that.
#[inline(always)]
fn connection<'a>(
    links: &'a mut LinkTally,
    columns: &Columns,
    recording: u32,
    class: CommandClass,
    facts: &Facts,
    row: usize,
) -> Option<&'a mut Link> {
    let link = links.link((recording, columns.connection.get(row)?))?;
    let credits = [
        columns.credit_charge.get(row),
        columns.credits_requested.get(row),
        columns.credits_granted.get(row),
    ];
    link.add(facts, credits);
    if class == CommandClass::Open {
        if let Some(oplock) = columns.oplock_granted.get(row) {
            link.oplocks.add(oplock);
        }
        if let Some(lease) = columns.lease_granted.get(row) {
            link.leases.add(lease);
        }
    }
    Some(link)
}

/// Adds a row to the series over time; returns the operations that were in flight.
#[inline(always)]
fn over_time(
    summary: &mut Summary,
    columns: &Columns,
    recording: u32,
    facts: &Facts,
    row: usize,
) -> Option<u32> {
    let (start, end) = (columns.request_start.get(row), columns.response_end.get(row));
    let outstanding = columns.outstanding.get(row).filter(|_| !facts.waits);
    let own = start.or(end);
    let at = match chain(columns, recording, row) {
        // A member of a compound has no time of its own: it belongs where its lead is.
        Some(chain) => {
            let begins = &mut summary.chains_begun;
            begins.see(chain, own, columns.compound_size.get(row));
            own.or_else(|| begins.get(chain))
        }
        None => own,
    };
    summary.series.record(at, facts, outstanding);
    summary.seen(start);
    summary.seen(end);
    outstanding
}

/// The compound that an operation is a member of.
#[inline]
fn chain(columns: &Columns, recording: u32, row: usize) -> Option<chains::Key> {
    Some((recording, columns.connection.get(row), columns.compound.get(row)?))
}

/// Whether an operation of a load run counts. One that does not count is still in the series over time and
/// in its connection, and its status is counted separately.
fn counts(
    summary: &mut Summary,
    columns: &Columns,
    recording: u32,
    command: u32,
    facts: &Facts,
    row: usize,
) -> bool {
    let (phase, counts) = summary.load.belongs(recording, columns.scenario_run.get(row));
    summary.load.operation(phase, counts, facts);
    if !counts {
        over_time(summary, columns, recording, facts, row);
        let name = || columns.status_name.get(row).map(str::to_owned);
        summary.load.status(columns.status.get(row), command, name);
    }
    counts
}

/// What a row adds to its groups.
#[inline(always)]
fn facts(columns: &Columns, row: usize, command: CommandClass) -> (Facts, Parts) {
    let waits = columns.waits.is_set(row);
    let elapsed = columns.elapsed_ns.get(row);
    let status = columns.status.get(row);
    let replied = status.is_some()
        || columns.response_end.get(row).is_some()
        || columns.response_frame.get(row).is_some();
    let requested = columns.request_start.get(row).is_some()
        || columns.request_frame.get(row).is_some()
        || columns.compound_index.get(row).is_some_and(|index| index > 0);
    let transferred = columns.transferred_bytes.get(row).unwrap_or(0);
    let wire = columns.request_wire_bytes.get(row).unwrap_or(0);
    let class = match status {
        None | Some(0) => StatusClass::Usual,
        Some(status) => StatusClass::from_status(status),
    };
    let timed = |value: Option<i64>| if waits { None } else { value };
    let facts = Facts {
        unanswered: !replied && command != CommandClass::Cancel,
        request_unseen: !requested && command != CommandClass::Break,
        error: class == StatusClass::Error,
        not_found: class == StatusClass::NotFound,
        waits,
        waiting_ns: if waits { elapsed.unwrap_or(0) } else { 0 },
        busy_ns: columns.busy_ns.get(row).unwrap_or(0),
        read_bytes: if command == CommandClass::Read { transferred } else { 0 },
        written_bytes: if command == CommandClass::Write { transferred } else { 0 },
        wire_bytes: wire.saturating_add(columns.response_wire_bytes.get(row).unwrap_or(0)),
        elapsed: timed(elapsed).map(Sample::new),
        server: timed(columns.server_ns.get(row)).map(Sample::new),
    };
    let parts = Parts {
        request_ns: timed(columns.request_transfer_ns.get(row)),
        turnaround_ns: timed(columns.turnaround_ns.get(row)),
        response_ns: timed(columns.response_transfer_ns.get(row)),
    };
    (facts, parts)
}

/// Counts a break that the server sent (it has no request), or its acknowledgement.
fn lease_break(summary: &mut Summary, columns: &Columns, row: usize) {
    let breaks = &mut summary.breaks;
    let detail = columns.detail.get(row).unwrap_or("");
    let requested =
        columns.request_start.get(row).is_some() || columns.request_frame.get(row).is_some();
    if requested || detail.ends_with("acknowledgement") {
        breaks.acknowledgements += 1;
        return;
    }
    breaks.breaks += 1;
    let word = |text: &Text| text.get(row).unwrap_or("?").to_owned();
    let change = if detail.starts_with("Lease") {
        let old = word(&columns.lease_requested);
        format!("Lease {old} → {}", word(&columns.lease_granted))
    } else {
        format!("Oplock → {}", word(&columns.oplock_granted))
    };
    summary.changes.add(&change);
}

/// Sums by path in one batch, so that each path is hashed once per batch.
struct BatchPaths {
    /// By the dictionary's key: the share first seen with it, and the place of its sums.
    first: Vec<(u32, u32)>,
    /// The same for other shares.
    more: HashMap<(u32, usize), u32, foldhash::fast::RandomState>,
    sums: Vec<PathInBatch>,
}

struct PathInBatch {
    share: u32,
    key: usize,
    all: PathSums,
    /// Those that list the path as a directory.
    listing: PathSums,
}

impl BatchPaths {
    const NONE: u32 = u32::MAX;

    fn new(keys: usize) -> BatchPaths {
        BatchPaths {
            first: vec![(0, Self::NONE); keys],
            more: HashMap::default(),
            sums: Vec::new(),
        }
    }

    #[inline]
    fn add(
        &mut self,
        share: u32,
        key: usize,
        columns: &Columns,
        row: usize,
        class: CommandClass,
        facts: &Facts,
    ) {
        let next = self.sums.len() as u32;
        let place = match self.first.get_mut(key) {
            Some((of, place)) if *place == Self::NONE => {
                (*of, *place) = (share, next);
                next
            }
            Some((of, place)) if *of == share => *place,
            Some(_) => *self.more.entry((share, key)).or_insert(next),
            None => return,
        };
        if place == next {
            self.sums.push(PathInBatch {
                share,
                key,
                all: PathSums::default(),
                listing: PathSums::default(),
            });
        }
        let Some(path) = self.sums.get_mut(place as usize) else {
            return;
        };
        let lists = matches!(class, CommandClass::List | CommandClass::Notify);
        let opens_directory = || {
            let intent = CreateIntent::new(None, columns.create_options.get(row));
            class == CommandClass::Open && intent.is_of_directory()
        };
        let sums = PathSums {
            operations: 1,
            busy_ns: facts.busy_ns,
            read_bytes: facts.read_bytes,
            written_bytes: facts.written_bytes,
            errors: facts.error.into(),
            not_found: facts.not_found.into(),
            directory: lists || opens_directory(),
        };
        path.all.add(&sums);
        if lists {
            path.listing.add(&sums);
        }
    }

    /// Work on a path counts for the directory that it is in; listing a directory for itself.
    fn flush(self, summary: &mut Summary, text: &Text) {
        for path in &self.sums {
            let Some(name) = text.text(path.key) else {
                continue;
            };
            // The root is a directory even if no operation shows it.
            let is_root = directory(name).is_empty();
            let all = PathSums { directory: path.all.directory || is_root, ..path.all };
            summary.files.add(path.share, name, &all);
            if path.listing.operations > 0 {
                summary.directories.add(path.share, directory(name), &path.listing);
            }
            let inside = path.all.less(&path.listing);
            if inside.operations > 0 {
                summary.directories.add(path.share, parent(name), &inside);
            }
        }
    }
}
