//! The time of an open grows with the number of entries in its folder: the server reads the whole folder to find a
//! name in another case (Samba: case sensitive = auto on a case-sensitive file system searches it for each name that
//! does not exist in the given case; smb.conf(5)).

use hashbrown::{HashMap, HashSet};
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId, text_id};
use crate::rows::status_class::StatusClass;
use crate::stats::mean::Mean;

pub(crate) const KIND: KindInfo = KindInfo::new("folder-search", "opens search the whole folder")
    .with_actor(Actor::Server)
    .with_remedies(&[
    (
        "Samba",
        "a file system that ignores case (ZFS casesensitivity=insensitive, ext4 and XFS with casefold), or for shares whose names \
         all have one case: case sensitive = yes, default case = lower, preserve case = no, short preserve case = no",
    ),
    ("application", "distribute the files over more folders, so that each has a few thousand entries"),
]);

/// Bytes of an entry in a listing, about: 104 bytes and a name (MS-FSCC section 2.4.17).
const ENTRY_BYTES: f64 = 130.0;
/// Fewest opens of a folder to know its time, and fewest folders to compare.
const OPENS_MIN: u64 = 10;
const FOLDERS_MIN: usize = 2;
/// The largest folder has this many times as many entries as the smallest ...
const ENTRIES_TIMES: f64 = 4.0;
/// ... and its opens take this many times as long.
const TIMES_MIN: f64 = 3.0;
/// The share of the variation between folders that the number of entries explains.
const EXPLAINED_MIN: f64 = 0.8;
/// Opens below this are not slow, ns.
const SLOW_NS: f64 = 5_000_000.0;
/// Most folders that are followed.
const FOLDERS_MAX: usize = 4_096;

/// One folder: its opens, and the bytes of its last listing.
struct Folder {
    present: Mean,
    missing: Mean,
    listed_bytes: u64,
    listing_bytes: u64,
    listing: Option<(u32, u64)>,
    attribution: Attribution,
    numbers: HashSet<u32>,
}

/// Opens by folder.
#[derive(Default)]
pub(crate) struct FolderSearch(HashMap<TextId, Folder, foldhash::fast::RandomState>);

impl FolderSearch {
    fn folder(&mut self, op: &Operation, folder: Option<TextId>) -> Option<&mut Folder> {
        let key = text_id((op.recording, op.share, folder));
        if self.0.len() >= FOLDERS_MAX && !self.0.contains_key(&key) {
            return None;
        }
        Some(self.0.entry(key).or_insert_with(|| Folder {
            present: Mean::default(),
            missing: Mean::default(),
            listed_bytes: 0,
            listing_bytes: 0,
            listing: None,
            attribution: Attribution::with_few_names(),
            numbers: HashSet::new(),
        }))
    }
}

impl Detector for FolderSearch {
    fn see(&mut self, op: &Operation) {
        match op.act {
            Act::List => {
                let (handle, bytes) = (op.handle, op.bytes);
                let Some(folder) = self.folder(op, op.listed_folder()) else { return };
                if folder.listing != handle {
                    folder.listing = handle;
                    folder.listing_bytes = 0;
                }
                folder.listing_bytes = folder.listing_bytes.saturating_add(bytes);
                folder.listed_bytes = folder.listed_bytes.max(folder.listing_bytes);
            }
            Act::Open if op.explained.is_none() && !op.waits_for_others() => {
                let Some((server_ns, _)) = op.split() else { return };
                let status = op.status.map(StatusClass::from_status);
                let Some(folder) = self.folder(op, op.folder) else { return };
                match (op.status, status) {
                    (Some(0), _) => folder.present.add(server_ns as f64),
                    (_, Some(StatusClass::NotFound)) => folder.missing.add(server_ns as f64),
                    _ => return,
                }
                folder.attribution.add(op, op.of_busy(server_ns));
                folder.numbers.extend(op.number);
            }
            _ => {}
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        self.candidate().into_iter().collect()
    }
}

/// Entries, the mean time of opens, and the folder.
type Point = (f64, f64, Folder);

impl FolderSearch {
    fn candidate(self) -> Option<Candidate> {
        let mut folders: Vec<Point> = self
            .0
            .into_values()
            .filter(|one| one.listed_bytes > 0 && one.present.n + one.missing.n >= OPENS_MIN)
            .map(|one| {
                let n = (one.present.n + one.missing.n) as f64;
                let sum = one.present.mean() * one.present.n as f64
                    + one.missing.mean() * one.missing.n as f64;
                (one.listed_bytes as f64 / ENTRY_BYTES, sum / n, one)
            })
            .collect();
        folders.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (few, quick) = folders.first().map(|one| (one.0, one.1))?;
        let (many, slow) = folders.last().map(|one| (one.0, one.1))?;
        let grows = folders.len() >= FOLDERS_MIN
            && many >= ENTRIES_TIMES * few
            && slow >= TIMES_MIN * quick
            && slow >= SLOW_NS
            && explained(&folders) >= EXPLAINED_MIN;
        if !grows {
            return None;
        }
        let number = folders.len();
        let mut attribution = Attribution::with_few_names();
        let mut numbers = HashSet::new();
        let (mut missing, mut present) = (Mean::default(), Mean::default());
        for (_, mean, folder) in folders {
            if mean < 2.0 * quick {
                continue;
            }
            if folder.missing.n > 0 {
                missing.add(folder.missing.mean());
            }
            if folder.present.n > 0 {
                present.add(folder.present.mean());
            }
            let mut part = folder.attribution;
            part.scale(1.0 - quick / mean.max(1.0));
            attribution.merge(part);
            numbers.extend(folder.numbers);
        }
        let both = missing.n > 0 && present.n > 0;
        let rest = if both && missing.mean() > 1.2 * present.mean() {
            ", and names that do not exist take longest"
        } else {
            ""
        };
        let what = format!(
            "The time of an open grows with the number of entries in its folder{rest}: the server searches the folder for the name in \
             any case"
        );
        let mut candidate = Candidate::new(
            FindingKind::FolderSearch,
            what,
            attribution,
            Confidence::Likely,
            "the folders' mean times follow the sizes of their listings; what else grows with a folder (a file system without an \
             index) is rarer",
        )
        .with_figures([
            ("folders", number as f64, "", "folders compared: {}"),
            ("entries_fewest", few, "", "about {} entries in the smallest"),
            ("time_there", quick, "ns", "where an open takes {}"),
            ("entries_most", many, "", "about {} entries in the largest"),
            ("time_in_the_largest", slow, "ns", "where it takes {}"),
        ]);
        candidate.explains = (&WORK, numbers);
        Some(candidate)
    }
}

/// Findings that do not explain the time of a search.
const WORK: [FindingKind; 5] = [
    FindingKind::SlowFilesystem,
    // For a missing name the server reads the whole folder: without it, it would cost as little as elsewhere.
    FindingKind::FailingLookups,
    FindingKind::ServerQueueing,
    FindingKind::Stragglers,
    FindingKind::FixedTimer,
];

/// The share of the variance of the times that a line through the entries explains.
fn explained(folders: &[Point]) -> f64 {
    let n = folders.len() as f64;
    let mean = |of: fn(&Point) -> f64| folders.iter().map(of).sum::<f64>() / n;
    let (entries, times) = (mean(|one| one.0), mean(|one| one.1));
    let mut sums = [0.0; 3];
    for (x, y, _) in folders {
        let (x, y) = (x - entries, y - times);
        sums.iter_mut().zip([x * y, x * x, y * y]).for_each(|(sum, more)| *sum += more);
    }
    let [both, of_entries, of_times] = sums;
    if of_entries <= 0.0 || of_times <= 0.0 { 0.0 } else { both * both / (of_entries * of_times) }
}
