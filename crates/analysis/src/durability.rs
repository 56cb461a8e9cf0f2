//! Which acknowledged writes were stable, as the wire shows it: for each open whether its writes are write-through,
//! unbuffered, followed by a Flush before the Close, covered by a continuously available share or a persistent handle,
//! or none of these; and how many acknowledged bytes were not stable at any moment.
//!
//! Sources: MS-SMB2 sections 2.2.13 (FILE_WRITE_THROUGH, FILE_NO_INTERMEDIATE_BUFFERING), 2.2.21 (flags of a Write),
//! 2.2.17 and 3.3.5.11 (Flush), 2.2.10 (SMB2_SHARE_CAP_CONTINUOUS_AVAILABILITY), 3.3.5.9.10 (persistent handles exist on
//! such shares only, and their writes are stable before the reply). Whether a server keeps these promises is not visible
//! on the wire.
//!
//! A Flush counts for the data of its own open that was acknowledged before the Flush was sent: the server may have
//! taken a later Write after it. Data without one counts as at risk for [`WINDOW_NS`]: no client sees when a server
//! writes it back.

mod at_risk;
mod data;
mod dirty;
mod finish;
mod verdict;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::{HashMap, HashSet};
use smbscope_tables::command_class::CommandClass;
use smbscope_tables::tables::{Handle, Tree};
use smbscope_wire::smb2::create::CreateOptions;

use crate::rows::application::Application;
use crate::rows::columns::Resolved;
use crate::rows::has_pipes;
use crate::stats::latency::{Grain, Latency, Sample};
use at_risk::AtRisk;
pub use data::*;
use dirty::Dirty;
pub use verdict::settings;

/// How long data that is never flushed counts as at risk: Linux writes a page back after 30 s (vm.dirty_expire_centisecs),
/// and looks every 5 s (vm.dirty_writeback_centisecs). Windows writes back sooner.
pub const WINDOW_NS: i64 = 35_000_000_000;
/// Most opens that are followed at a time; when there are more, all end as they are.
const OPENS_MAX: usize = 65_536;
/// Most shares with clients (trees), shares, and clients.
const GROUPS_MAX: usize = 8_192;
const LEVELS_MAX: usize = 128;
/// Files that are kept until there are twice as many, and those that are listed.
const FILES_MAX: usize = 2_048;
const FILES_LISTED: usize = 50;

const KINDS: usize = Application::ALL.len();
const WAYS: usize = Way::ALL.len();

crate::rows::columns::columns! {
    recording: text,
    session_id: u64,
    tree_id: u32,
    client: text,
    share: text,
    command: text,
    status: u32,
    handle: u64,
    path: text,
    create_options: u32,
    transferred_bytes: u64,
    request_start: i64,
    write_through: bool,
    unbuffered: bool,
    response_end: i64,
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A tree: recording, session and number.
type TreeKey = (u32, u64, u64);

/// Writes of one tree.
#[derive(Debug)]
struct Group {
    key: TreeKey,
    share: u32,
    client: u32,
    tallies: Box<[[OpenTally; WAYS]; KINDS]>,
    /// Whether its data counted as at risk before the share was known to be continuously available.
    was_counted: bool,
}

/// One open with its writes.
#[derive(Debug, Default)]
struct Open {
    group: u32,
    /// Whether its Create requests write-through, or to bypass the cache.
    is_through: bool,
    is_unbuffered: bool,
    application: u8,
    is_available: bool,
    path: String,
    tally: OpenTally,
    through_writes: u64,
    unbuffered_writes: u64,
    /// Data that may be at risk.
    dirty: Dirty,
}

/// A file, by share and path.
#[derive(Clone, Debug, Default)]
struct FileTally {
    application: u8,
    way: Option<Way>,
    tally: OpenTally,
}

/// Shares or clients by name, each with its level.
#[derive(Debug, Default)]
struct Levels {
    numbers: Map<String, u32>,
    names: Vec<Option<String>>,
    levels: Vec<AtRisk>,
    beyond: u64,
}

impl Levels {
    /// The number of a name; beyond the limit that of all others together.
    fn number(&mut self, name: Option<&str>) -> u32 {
        let key = name.unwrap_or_default();
        if let Some(&number) = self.numbers.get(key) {
            return number;
        }
        if self.names.len() >= LEVELS_MAX {
            self.beyond += 1;
            return LEVELS_MAX as u32 - 1;
        }
        let is_last = self.names.len() == LEVELS_MAX - 1;
        let number = self.names.len() as u32;
        self.names.push(if is_last {
            Some("(others)".to_owned())
        } else {
            name.map(str::to_owned)
        });
        self.levels.push(AtRisk::default());
        self.numbers.insert(key.to_owned(), number);
        number
    }
}

/// Which acknowledged writes were stable; in progress.
#[derive(Debug)]
pub struct DurabilityTally {
    recordings: Map<String, u32>,
    groups: Vec<Group>,
    group_of: Map<TreeKey, u32>,
    /// Trees of continuously available shares, or with persistent handles; and trees for pipes and printers.
    available: HashSet<TreeKey, foldhash::fast::RandomState>,
    no_files: HashSet<TreeKey, foldhash::fast::RandomState>,
    /// By tree and kind of application: opens with data, and those of them without a persistent handle.
    handle_opens: Map<TreeKey, [(u64, u64); KINDS]>,
    shares: Levels,
    clients: Levels,
    total: AtRisk,
    opens: Map<(u32, u64), Open>,
    files: Map<(u32, String), FileTally>,
    until_flush: Latency,
    /// The last time of a reply: members of compounds have none.
    now: i64,
    sums: Durability,
}

impl Default for DurabilityTally {
    fn default() -> DurabilityTally {
        DurabilityTally {
            recordings: Map::default(),
            groups: Vec::new(),
            group_of: Map::default(),
            available: HashSet::default(),
            no_files: HashSet::default(),
            handle_opens: Map::default(),
            shares: Levels::default(),
            clients: Levels::default(),
            total: AtRisk::in_bins(),
            opens: Map::default(),
            files: Map::default(),
            until_flush: Latency::new(Grain::Fine),
            now: 0,
            sums: Durability::default(),
        }
    }
}

impl DurabilityTally {
    /// Adds trees, before or after their operations. If before, nothing of a continuously available share counts as at
    /// risk; otherwise the most at risk is a bound.
    pub fn trees(&mut self, rows: &[Tree]) {
        for row in rows {
            let key = (self.recording(&row.recording), row.session_id, row.tree_id);
            if row.continuous_availability == Some(true) && self.available.len() < GROUPS_MAX {
                self.available.insert(key);
            }
            if row.share_type.as_deref().is_some_and(|kind| !kind.eq_ignore_ascii_case("disk"))
                && self.no_files.len() < GROUPS_MAX
            {
                self.no_files.insert(key);
            }
        }
    }

    /// Adds opens, before or after their operations: a persistent handle shows that its share is continuously available,
    /// and an open without one on such a share that only the share promises it.
    pub fn handles(&mut self, rows: &[Handle]) {
        for row in rows {
            let is_persistent = row.persistent == Some(true);
            // What was granted to an open from before the recording is not known, and one with write-through needs no
            // promise of the share.
            let is_known = row.opened_at.is_some() && row.write_through != Some(true);
            let has_data = row.written_bytes > 0 && (is_known || is_persistent);
            if !is_persistent && !has_data {
                continue;
            }
            let key = (
                self.recording(&row.recording),
                row.session_id.unwrap_or(0),
                row.tree_id.unwrap_or(0),
            );
            if is_persistent && self.available.len() < GROUPS_MAX {
                self.available.insert(key);
            }
            if has_data
                && (self.handle_opens.len() < GROUPS_MAX || self.handle_opens.contains_key(&key))
            {
                let kind = Application::of_path(row.path.as_deref().unwrap_or_default());
                let kinds = self.handle_opens.entry(key).or_insert([(0, 0); KINDS]);
                if let Some((all, without)) = kinds.get_mut(kind as usize) {
                    *all += 1;
                    *without += u64::from(!is_persistent);
                }
            }
        }
    }

    fn recording(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.recordings.get(name) {
            return number;
        }
        let number = self.recordings.len() as u32;
        self.recordings.insert(name.to_owned(), number);
        number
    }

    /// Adds operations, roughly in the order in which they ended. Columns are found by name; those that are absent read
    /// as null. Fails only on a column of a type that cannot be cast to the schema's.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        let classes = columns.command.command_classes();
        let is_wanted = |class: &CommandClass| {
            matches!(class, CommandClass::Write | CommandClass::Flush | CommandClass::Open)
        };
        if !classes.iter().any(is_wanted) && self.opens.is_empty() {
            return Ok(());
        }
        let mut recordings = Resolved::new(columns.recording.keys());
        for row in 0..batch.num_rows() {
            if let Some(at) = columns.response_end.get(row) {
                self.now = at;
            }
            let Some(class) = columns.command.key(row).and_then(|key| classes.get(key)) else {
                continue;
            };
            if !is_wanted(class) && *class != CommandClass::Close {
                continue;
            }
            let is_done = columns.status.get(row).is_none_or(|status| status == 0);
            let Some(handle) = columns.handle.get(row) else { continue };
            let recording = match columns.recording.key(row) {
                Some(key) => recordings
                    .get(key, || self.recording(columns.recording.text(key).unwrap_or_default())),
                None => self.recording(""),
            };
            let handle = (recording, handle);
            match class {
                CommandClass::Open if is_done => self.open(&columns, row, handle),
                CommandClass::Write if is_done => self.write(&columns, row, handle),
                CommandClass::Flush if is_done => {
                    self.flush(handle, columns.request_start.get(row).unwrap_or(self.now));
                }
                CommandClass::Close => {
                    if let Some(open) = self.opens.remove(&handle) {
                        self.end(open);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Remembers what an open requests. Most opens are never written to.
    fn open(&mut self, columns: &Columns, row: usize, handle: (u32, u64)) {
        let options = CreateOptions(columns.create_options.get(row).unwrap_or(0));
        let is_through =
            columns.write_through.is_set(row) || options.contains(CreateOptions::WRITE_THROUGH);
        let is_unbuffered = options.contains(CreateOptions::NO_INTERMEDIATE_BUFFERING);
        if is_through || is_unbuffered {
            let open = self.opened(columns, row, handle);
            (open.is_through, open.is_unbuffered) = (is_through, is_unbuffered);
        }
    }

    /// The open, which begins here if it is not known.
    fn opened(&mut self, columns: &Columns, row: usize, handle: (u32, u64)) -> &mut Open {
        if !self.opens.contains_key(&handle) {
            if self.opens.len() >= OPENS_MAX {
                self.sums.forgotten_opens += self.opens.len() as u64;
                let opens: Vec<_> = self.opens.drain().map(|(_, open)| open).collect();
                opens.into_iter().for_each(|open| self.end(open));
            }
            let group = self.group(columns, row, handle.0);
            let path = columns.path.get(row).unwrap_or_default();
            let key = self.groups.get(group as usize).map(|group| group.key);
            let open = Open {
                group,
                application: Application::of_path(path) as u8,
                is_available: key.is_some_and(|key| self.available.contains(&key)),
                path: path.to_owned(),
                ..Open::default()
            };
            self.opens.insert(handle, open);
        }
        self.opens.entry(handle).or_default()
    }

    fn group(&mut self, columns: &Columns, row: usize, recording: u32) -> u32 {
        let session = columns.session_id.get(row).unwrap_or(0);
        let key = (recording, session, columns.tree_id.get(row).map_or(0, u64::from));
        if let Some(&number) = self.group_of.get(&key) {
            return number;
        }
        if self.groups.len() >= GROUPS_MAX {
            self.sums.beyond_limits += 1;
            return GROUPS_MAX as u32 - 1;
        }
        let number = self.groups.len() as u32;
        let share = columns.share.get(row);
        if share.is_some_and(has_pipes) && self.no_files.len() < GROUPS_MAX {
            self.no_files.insert(key);
        }
        self.groups.push(Group {
            key,
            share: self.shares.number(share),
            client: self.clients.number(columns.client.get(row)),
            tallies: Box::new([[OpenTally::default(); WAYS]; KINDS]),
            was_counted: false,
        });
        self.group_of.insert(key, number);
        number
    }

    fn write(&mut self, columns: &Columns, row: usize, handle: (u32, u64)) {
        let bytes = columns.transferred_bytes.get(row).unwrap_or(0);
        if bytes == 0 {
            return;
        }
        let (flag, is_unbuffered) =
            (columns.write_through.is_set(row), columns.unbuffered.is_set(row));
        let now = self.now;
        let open = self.opened(columns, row, handle);
        open.tally.writes += 1;
        open.tally.written_bytes = open.tally.written_bytes.saturating_add(bytes);
        let is_unbuffered = is_unbuffered || open.is_unbuffered;
        open.unbuffered_writes += u64::from(is_unbuffered);
        open.through_writes += u64::from(flag);
        let (is_through, group) = (open.is_through, open.group);
        let is_stable = is_through || flag || open.is_available;
        if !is_stable {
            let tally = &mut open.tally;
            tally.acknowledged_bytes = tally.acknowledged_bytes.saturating_add(bytes);
            tally.unflushed_bytes = tally.unflushed_bytes.saturating_add(bytes);
        }
        let is_file =
            self.groups.get(group as usize).is_some_and(|one| !self.no_files.contains(&one.key));
        if !is_file {
            return;
        }
        let sums = &mut self.sums;
        sums.writes += 1;
        sums.written_bytes = sums.written_bytes.saturating_add(bytes);
        sums.write_through_writes += u64::from(flag);
        sums.write_through_open_writes += u64::from(is_through);
        sums.unbuffered_writes += u64::from(is_unbuffered);
        if is_stable {
            return;
        }
        let Some(open) = self.opens.get_mut(&handle) else { return };
        let over_ns = open.dirty.add(now, bytes);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.change(group, now, bytes);
        self.change(group, over_ns, -bytes);
    }

    /// Changes how much is at risk: in total, of the share, and of the client.
    fn change(&mut self, group: u32, at_ns: i64, bytes: i64) {
        let now = self.now;
        let Some(group) = self.groups.get_mut(group as usize) else { return };
        group.was_counted = true;
        let of = |levels: &mut Levels, number: u32| {
            if let Some(level) = levels.levels.get_mut(number as usize) {
                level.change(now, at_ns, bytes);
            }
        };
        of(&mut self.shares, group.share);
        of(&mut self.clients, group.client);
        self.total.change(now, at_ns, bytes);
    }

    /// A Flush that was sent at a time, and succeeded.
    fn flush(&mut self, handle: (u32, u64), sent_ns: i64) {
        let now = self.now;
        self.sums.flushes += 1;
        let Some(open) = self.opens.get_mut(&handle) else {
            self.sums.idle_flushes += 1;
            return;
        };
        let (group, covered) = (open.group, open.dirty.flush(sent_ns));
        let left = open.dirty.bytes().min(open.tally.unflushed_bytes);
        self.sums.idle_flushes += u64::from(open.tally.unflushed_bytes == left);
        open.tally.unflushed_bytes = left;
        if let Some(first) = covered.first() {
            let took = now.saturating_sub(first.first_ns).max(0);
            self.until_flush.record(&Sample::new(took));
        }
        for part in covered.iter().filter(|part| part.over_ns() > now) {
            let bytes = i64::try_from(part.bytes).unwrap_or(i64::MAX);
            self.change(group, now, -bytes);
            self.change(group, part.over_ns(), bytes);
        }
    }

    /// Counts an open that ends.
    fn end(&mut self, open: Open) {
        if open.tally.writes == 0 {
            return;
        }
        let way = open.way();
        let Some(group) = self.groups.get_mut(open.group as usize) else { return };
        let tally = OpenTally { opens: 1, ..open.tally };
        let kinds = group.tallies.get_mut(usize::from(open.application));
        if let Some(sum) = kinds.and_then(|ways| ways.get_mut(way as usize)) {
            sum.add(&tally);
        }
        if tally.unflushed_bytes == 0 || open.path.is_empty() {
            return;
        }
        let file = self.files.entry((open.group, open.path)).or_default();
        file.application = open.application;
        // The least sure of its opens.
        file.way = file.way.max(Some(way));
        file.tally.add(&tally);
        if self.files.len() >= 2 * FILES_MAX {
            self.prune();
        }
    }

    /// Keeps the files with the most data at risk.
    fn prune(&mut self) {
        let mut sizes: Vec<_> =
            self.files.values().map(|file| file.tally.unflushed_bytes).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let least = sizes.get(FILES_MAX).copied().unwrap_or(0);
        let before = self.files.len();
        self.files.retain(|_, file| file.tally.unflushed_bytes > least);
        self.sums.beyond_limits += (before - self.files.len()) as u64;
    }
}

impl Open {
    fn way(&self) -> Way {
        let all = self.tally.writes;
        match () {
            () if self.is_through => Way::WriteThroughOpen,
            () if self.through_writes == all => Way::WriteThroughFlag,
            () if self.is_available => Way::Available,
            () if self.tally.unflushed_bytes == 0 => Way::Flushed,
            () if self.tally.unflushed_bytes < self.tally.written_bytes => Way::Partly,
            () if self.unbuffered_writes == all => Way::Unbuffered,
            () => Way::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
