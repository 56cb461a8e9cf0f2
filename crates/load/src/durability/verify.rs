//! Reads everything back and compares it with the journal.

use std::collections::BTreeMap;

use smbscope_client::error::status_text;
use smbscope_client::{ClientError, Open, Session};
use smbscope_wire::smb2::create::CreateOptions;
use smbscope_wire::status::Status;

use super::block::{Label, SECTOR_BYTES, Sector, read as read_sector};
use super::files;
use super::judge::{Spot, judge};
use super::ledger::{FileLedger, LaneLedger, Ledger, Write};
use super::plan::{Lane, Pattern, Plan};
use super::result::{Collector, RoundResult};

/// Most versions of a renamed file whose new file is looked for.
const VERSIONS_MAX: usize = 64;

/// Reads a round's files back; `progress` gets the number of bytes read.
///
/// # Errors
/// The connection is lost, or the server refuses to open a file that exists.
pub async fn verify(
    session: &mut Session,
    plan: &Plan,
    ledger: &Ledger,
    mut progress: impl FnMut(u64),
) -> Result<RoundResult, ClientError> {
    let mut check = Check {
        session,
        plan,
        round: ledger.round,
        run: plan.run_bytes().unwrap_or_default(),
        collector: Collector::new(plan, ledger),
        progress: &mut progress,
    };
    let mut has_folder = ledger.lanes.iter().all(|lane| lane.files.is_empty());
    for (number, (lane, of)) in plan.lanes.iter().zip(&ledger.lanes).enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        has_folder |= match lane.pattern {
            Pattern::Rename => check.renamed(number, lane, of).await?,
            Pattern::Append | Pattern::Overwrite => check.rewritten(number, lane, of).await?,
        };
    }
    check.collector.has_folder(has_folder);
    Ok(check.collector.finish())
}

/// Removes the files of a round, and its folders if nothing else is in them.
///
/// # Errors
/// The connection is lost.
pub async fn clean(session: &mut Session, plan: &Plan, ledger: &Ledger) -> Result<(), ClientError> {
    let file = CreateOptions::NON_DIRECTORY_FILE;
    for (number, (lane, of)) in plan.lanes.iter().zip(&ledger.lanes).enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let mut paths: Vec<u32> = of.files.keys().copied().collect();
        match lane.pattern {
            Pattern::Rename => {
                files::remove(session, &plan.renamed(ledger.round, number), file).await?;
                // The newest version may not have been renamed, nor recorded.
                let newest = paths.last().copied().unwrap_or(0);
                paths.retain(|version| {
                    version.saturating_add(2) > newest || !of.renames.contains_key(version)
                });
                paths.push(newest.saturating_add(1));
            }
            Pattern::Append | Pattern::Overwrite => {
                paths = (0..lane.files).collect();
            }
        }
        for path in paths {
            files::remove(session, &plan.file(ledger.round, number, path), file).await?;
        }
    }
    let folder = CreateOptions::DIRECTORY_FILE;
    files::remove(session, &plan.round_folder(ledger.round), folder).await?;
    files::remove(session, &plan.folder, folder).await?;
    match plan.folder_of_runs() {
        Some(parent) => files::remove(session, parent, folder).await,
        None => Ok(()),
    }
}

struct Check<'a> {
    session: &'a mut Session,
    plan: &'a Plan,
    round: u32,
    run: [u8; 16],
    collector: Collector<'a>,
    progress: &'a mut dyn FnMut(u64),
}

impl Check<'_> {
    /// Files that are written again and again; whether one of them was there.
    async fn rewritten(
        &mut self,
        number: u16,
        lane: &Lane,
        of: &LaneLedger,
    ) -> Result<bool, ClientError> {
        let mut any = false;
        for (file, ledger) in &of.files {
            let path = self.plan.file(self.round, number, *file);
            let open = self.open(&path).await?;
            any |= open.is_some();
            self.file((number, lane, *file), open, ledger).await?;
        }
        Ok(any)
    }

    /// A file that was renamed again and again: which version has the name, and where the newer ones are.
    async fn renamed(
        &mut self,
        number: u16,
        lane: &Lane,
        of: &LaneLedger,
    ) -> Result<bool, ClientError> {
        if of.files.is_empty() {
            return Ok(false);
        }
        let target = self.open(&self.plan.renamed(self.round, number)).await?;
        let mut any = target.is_some();
        let version = match &target {
            None => 0,
            Some(open) => match self.version(number, lane, open).await? {
                Some(version) => version,
                // It has the name but no data: it is the newest version that may have been renamed and does not have its own
                // name. That may have been lost instead, with its data; the version before it then counts as replaced.
                None => self.version_by_name(number, of.newest_rename(lane)).await?,
            },
        };
        // The first version whose data is checked, and the newest rename that is not undone.
        let (first, kept) = match &target {
            Some(_) => (version, version),
            None => self.without_name(number, lane, of).await?,
        };
        let last_ns = self.collector.last_ns();
        for (of_version, rename) in &of.renames {
            if *of_version > kept {
                let tally = self.collector.tally(number);
                tally.renames_lost += 1;
                tally.rename_ages_ns.push(last_ns.saturating_sub(rename.acked_ns));
            }
        }
        let mut target = target;
        for (of_version, ledger) in of.files.range(first..) {
            let open = if *of_version == version {
                target.take()
            } else {
                let path = self.plan.file(self.round, number, *of_version);
                self.open(&path).await?
            };
            any |= open.is_some();
            let lost = self.file((number, lane, *of_version), open, ledger).await?;
            if *of_version == version && lost {
                self.collector.tally(number).renames_before_data += 1;
            }
        }
        if let Some(open) = target {
            files::close(self.session, open.file_id).await?;
        }
        Ok(any)
    }

    /// The name does not exist: the first version whose data must be there, and the newest rename that cannot be missed.
    /// The versions before the newest acknowledged rename were replaced by the application. It may also have been replaced
    /// by a rename in flight; then both versions are gone, and only one of them is lost.
    async fn without_name(
        &mut self,
        number: u16,
        lane: &Lane,
        of: &LaneLedger,
    ) -> Result<(u32, u32), ClientError> {
        let Some(renamed) = of.renames.keys().next_back().copied() else { return Ok((0, 0)) };
        let kept = renamed.saturating_sub(1);
        let next = of.newest_rename(lane);
        if next == renamed {
            return Ok((renamed, kept));
        }
        for version in [renamed, next] {
            let path = self.plan.file(self.round, number, version);
            if let Some(open) = self.open(&path).await? {
                files::close(self.session, open.file_id).await?;
                return Ok((renamed, kept));
            }
        }
        Ok((next, kept))
    }

    /// The version in the file that has the name.
    async fn version(
        &mut self,
        number: u16,
        lane: &Lane,
        open: &Open,
    ) -> Result<Option<u32>, ClientError> {
        let bytes = u64::from(lane.block_bytes) * u64::from(lane.blocks);
        let mut at = 0;
        while at < bytes.min(open.size_bytes) {
            let length = lane.block_bytes;
            let read = files::read(self.session, open.file_id, at, length).await?;
            for sector in read.unwrap_or_default().chunks(SECTOR_BYTES) {
                if let Sector::Of(label, ..) = read_sector(sector)
                    && label.run == self.run
                    && (label.round, label.lane) == (self.round, number)
                {
                    return Ok(Some(label.file));
                }
            }
            at += u64::from(length);
        }
        Ok(None)
    }

    /// The newest version whose own name does not exist.
    async fn version_by_name(&mut self, number: u16, newest: u32) -> Result<u32, ClientError> {
        for version in (1..=newest).rev().take(VERSIONS_MAX) {
            let path = self.plan.file(self.round, number, version);
            match self.open(&path).await? {
                Some(open) => files::close(self.session, open.file_id).await?,
                None => return Ok(version),
            }
        }
        Ok(newest)
    }

    /// Opens a file; `None` if it does not exist.
    async fn open(&mut self, path: &str) -> Result<Option<Open>, ClientError> {
        match files::open_to_read(self.session, path).await? {
            Ok(open) => Ok(Some(open)),
            Err(status) if status.is_absent() => Ok(None),
            Err(status) => Err(ClientError::Protocol(format!(
                "{path}: cannot be opened to verify it: {}",
                status_text(status)
            ))),
        }
    }

    /// Compares a file, and closes it; whether a Write of it is lost.
    async fn file(
        &mut self,
        (number, lane, file): (u16, &Lane, u32),
        open: Option<Open>,
        ledger: &FileLedger,
    ) -> Result<bool, ClientError> {
        let mut any_lost = false;
        let blocks = ledger.by_block();
        let per_window =
            (u64::from(files::read_bytes(self.session)) / u64::from(lane.block_bytes)).max(1);
        let mut windows: BTreeMap<u64, Vec<(u32, Vec<Write>)>> = BTreeMap::new();
        for (block, writes) in blocks {
            windows.entry(u64::from(block) / per_window).or_default().push((block, writes));
        }
        for (window, blocks) in windows {
            let first = window * per_window;
            let begin = first * u64::from(lane.block_bytes);
            let length = (per_window * u64::from(lane.block_bytes)) as u32;
            let bytes = match &open {
                None => Some(Vec::new()),
                Some(open) if open.size_bytes <= begin => Some(Vec::new()),
                Some(open) => {
                    let read = files::read(self.session, open.file_id, begin, length).await?;
                    self.note_error(number, &read);
                    read.ok()
                }
            };
            (self.progress)(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
            for (block, writes) in blocks {
                let at = (u64::from(block) - first) as usize * lane.block_bytes as usize;
                let spots = self.spots((number, lane, file), block, bytes.as_deref(), at);
                let outcome = judge(&writes, &spots);
                any_lost |= !outcome.lost.is_empty();
                self.collector.block(number, file, &writes, &outcome);
            }
        }
        if let Some(open) = open {
            files::close(self.session, open.file_id).await?;
        }
        Ok(any_lost)
    }

    fn note_error(&mut self, number: u16, read: &Result<Vec<u8>, Status>) {
        self.collector.tally(number).read_errors += u64::from(read.is_err());
    }

    /// The sectors of a block that is at `at` in what was read; all are damaged if nothing could be read.
    fn spots(
        &self,
        (number, lane, file): (u16, &Lane, u32),
        block: u32,
        bytes: Option<&[u8]>,
        at: usize,
    ) -> Vec<Spot> {
        let sectors = lane.block_bytes / SECTOR_BYTES as u32;
        let spot = |index: u32| {
            let Some(bytes) = bytes else { return Spot::Damaged };
            let begin = at + index as usize * SECTOR_BYTES;
            let rest = bytes.get(begin..).unwrap_or_default();
            let sector = rest.get(..SECTOR_BYTES.min(rest.len())).unwrap_or_default();
            if sector.is_empty() {
                return Spot::Beyond;
            }
            match read_sector(sector) {
                Sector::Zeros => Spot::Zeros,
                Sector::Damaged => Spot::Damaged,
                Sector::Of(label, of, count) => {
                    let here = Label {
                        run: self.run,
                        round: self.round,
                        lane: number,
                        way: lane.way.number(),
                        file,
                        block,
                        sequence: label.sequence,
                        generation: label.generation,
                    };
                    if label == here && (of, count) == (index, sectors) && label.sequence > 0 {
                        Spot::Write(label.sequence)
                    } else {
                        Spot::Damaged
                    }
                }
            }
        };
        (0..sectors).map(spot).collect()
    }
}
