//! A workload as text for people: `smbscope load workloads show NAME`.

use std::fmt::{self, Display, Write};

use smbscope_wire::smb2::access::{AccessMask, ShareAccess};
use smbscope_wire::smb2::info_class::info_class_name;

use super::count::{ClientCache, Counts, Expectation};
use super::model::{
    Create, Length, LockKind, Op, Pacing, PathId, PickHow, Request, Scenario, SetInfo, Slot, Times,
    Transfer, Workload,
};
use super::words::{self, Words, format_bytes};
use crate::fileset::{FileClass, FileSet, Scale, Sizes};

/// The whole workload: files, and every scenario with its counts and steps.
pub fn show(workload: &Workload, scale: Scale) -> String {
    Show { workload, scale }.to_string()
}

/// One line per scenario: frequency and counts.
pub fn summary(counts: &Counts) -> String {
    let mut out = String::new();
    for (command, operations, members) in counts.iter() {
        let comma = if out.is_empty() { "" } else { ", " };
        let name = command.name().unwrap_or("?");
        let _ = write!(out, "{comma}{name} {}", Number(operations));
        if members > 0.0 {
            let _ = write!(out, " ({})", Number(members));
        }
    }
    out
}

/// A number with two decimals if it has any.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (self.0 - self.0.round()).abs() < 1e-9 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.2}", self.0)
        }
    }
}

struct Show<'a> {
    workload: &'a Workload,
    scale: Scale,
}

impl Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workload = self.workload;
        let files = workload.file_set(0, self.scale);
        writeln!(f, "{}: {}\n", workload.name, workload.description)?;
        let count = workload.scenarios.len();
        let scenarios = if count == 1 { "scenario" } else { "scenarios" };
        writeln!(
            f,
            "{count} {scenarios}, {} executions per user and hour: on average one every {:.2} s, {}",
            Number(workload.runs_per_hour()),
            workload.mean_interval().as_secs_f64(),
            match workload.pacing {
                Pacing::Slotted { jitter } =>
                    format!("begun in the first {:.0} % of each such interval", jitter * 100.0),
                Pacing::Exponential => "at exponential distances".into(),
            }
        )?;
        self.files(f, &files)?;
        writeln!(
            f,
            "\nOperations of one execution; in brackets those behind the first of a compound."
        )?;
        let expectation = Expectation::new(&files);
        for scenario in &workload.scenarios {
            one(f, scenario, &expectation)?;
        }
        Ok(())
    }
}

impl Show<'_> {
    fn files(&self, f: &mut fmt::Formatter<'_>, files: &FileSet) -> fmt::Result {
        write!(
            f,
            "\nFiles of one user: {}, {:.1} MB",
            files.user_files(),
            files.user_bytes(0) as f64 / 1e6
        )?;
        if files.user_growth_bytes() > 0 {
            write!(f, "; runs add at most {:.1} MB", files.user_growth_bytes() as f64 / 1e6)?;
        }
        if self.scale != Scale::FULL {
            write!(f, " (at a scale of {})", self.scale.factor())?;
        }
        writeln!(f)?;
        for pool in files.pools() {
            let count = if pool.class == FileClass::New { pool.keep } else { pool.files() };
            let up_to = if pool.class == FileClass::New { "up to " } else { "" };
            let size = match &pool.sizes {
                Sizes::Blocks(list) => {
                    let sum: u64 = list.iter().map(|&blocks| u64::from(blocks)).sum();
                    format!(
                        "{:.2} blocks of 64 KiB on average",
                        sum as f64 / list.len().max(1) as f64
                    )
                }
                Sizes::Bytes(list) => {
                    let sum: u64 = list.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes));
                    format!("{} on average", format_bytes(sum / list.len().max(1) as u64))
                }
            };
            let folders: Vec<&str> = pool
                .folders
                .iter()
                .map(|folder| if folder.is_empty() { "the home" } else { folder })
                .collect();
            let noun = if count == 1 { "file" } else { "files" };
            writeln!(
                f,
                "  {:<12} {:<8} {up_to}{count} {noun} in {}, {size}",
                pool.name,
                pool.class.name(),
                folders.join(", ")
            )?;
        }
        Ok(())
    }
}

fn one(
    f: &mut fmt::Formatter<'_>,
    scenario: &Scenario,
    expectation: &Expectation<'_>,
) -> fmt::Result {
    writeln!(f, "\n{}: {}", scenario.name, scenario.description)?;
    let all = expectation.of(scenario, ClientCache::Published);
    writeln!(f, "  {} per user and hour; {}", Number(scenario.runs_per_hour), summary(&all))?;
    writeln!(f, "  {} operations in {} packets", Number(all.total()), Number(all.packets()))?;
    for cache in [ClientCache::Collapse, ClientCache::DirLease] {
        let left = expectation.of(scenario, cache);
        let (operations, packets) = (all.total() - left.total(), all.packets() - left.packets());
        if operations > 0.0 {
            writeln!(
                f,
                "  {cache} saves {} operations, {} packets",
                Number(operations),
                Number(packets)
            )?;
        }
    }
    for (number, step) in scenario.steps.iter().enumerate() {
        writeln!(f, "  {:>3}. {}", number + 1, step.action)?;
        if !step.wait.is_empty() {
            let names: Vec<&str> = step
                .wait
                .iter()
                .filter_map(|wait| scenario.notifications.get(usize::from(wait.0)))
                .map(String::as_str)
                .collect();
            writeln!(f, "       after {}", names.join(", "))?;
        }
        for (place, request) in step.requests.iter().enumerate() {
            let behind = if place > 0 { "+ " } else { "" };
            writeln!(f, "       {behind}{}", Line { scenario, request })?;
        }
    }
    Ok(())
}

/// One request on one line.
struct Line<'a> {
    scenario: &'a Scenario,
    request: &'a Request,
}

impl Line<'_> {
    fn path(&self, id: PathId) -> &str {
        match self.scenario.template(id).map_or("", |path| path.source.as_str()) {
            "" => "the home",
            path => path,
        }
    }

    fn handle(&self, slot: Option<Slot>) -> &str {
        slot.and_then(|slot| self.scenario.handles.get(usize::from(slot.0)))
            .map_or("", String::as_str)
    }

    fn pick(&self, index: u8) -> &str {
        self.scenario.picks.get(usize::from(index)).map_or("", |pick| pick.name.as_str())
    }

    fn length(&self, length: Length) -> String {
        match length {
            Length::Of(pick) => format!("that of {}", self.pick(pick.0)),
            Length::Bytes(bytes) => format_bytes(bytes),
        }
    }

    fn create(&self, f: &mut fmt::Formatter<'_>, create: &Create) -> fmt::Result {
        write!(f, " {}", self.path(create.path))?;
        if self.request.slot.is_some() {
            write!(f, " as {}", self.handle(self.request.slot))?;
        }
        write!(f, ", {}", access(create.access))?;
        if create.disposition.0 != 1 {
            write!(f, ", {}", words_of(words::DISPOSITIONS, create.disposition.0, true))?;
        }
        if create.options.0 != 0 {
            write!(f, ", {}", words_of(words::OPTIONS, create.options.0, false))?;
        }
        if create.share != ShareAccess(7) {
            write!(
                f,
                ", shared for {}",
                words_of(words::SHARE, create.share.0, create.share.0 == 0)
            )?;
        }
        if create.lease.0 != 0 {
            write!(f, ", lease {}", create.lease.name())?;
        } else if create.oplock.0 != 0 {
            write!(f, ", oplock {}", create.oplock.name().unwrap_or("?"))?;
        }
        Ok(())
    }

    fn transfer(&self, f: &mut fmt::Formatter<'_>, transfer: &Transfer) -> fmt::Result {
        write!(f, " {}: {}", self.handle(self.request.slot), self.pick(transfer.file.0))?;
        if transfer.offset_bytes > 0 {
            write!(f, " from {}", format_bytes(transfer.offset_bytes))?;
        }
        if let Some(limit) = transfer.limit_bytes {
            write!(f, ", at most {}", format_bytes(limit))?;
        }
        write!(f, ", blocks of {}", format_bytes(transfer.block_bytes.into()))?;
        if transfer.depth > 1 {
            write!(f, ", {} in flight", transfer.depth)?;
        }
        f.write_str(if transfer.write_through { ", write-through" } else { "" })?;
        f.write_str(if transfer.unbuffered { ", unbuffered" } else { "" })
    }

    fn set_info(&self, f: &mut fmt::Formatter<'_>, info: &SetInfo) -> fmt::Result {
        match info {
            SetInfo::Disposition { delete: true } => {
                write!(f, " FileDispositionInformation: delete")
            }
            SetInfo::Disposition { delete: false } => {
                write!(f, " FileDispositionInformation: keep")
            }
            SetInfo::Rename { to, replace } => {
                let replace = if *replace { ", replacing" } else { "" };
                write!(f, " FileRenameInformation: to {}{replace}", self.path(*to))
            }
            SetInfo::Basic { times, attributes } => {
                let times = match times {
                    Times::Keep => "times left".into(),
                    Times::Freeze => "times frozen".into(),
                    Times::Of(pick) => format!("times of {}", self.pick(pick.0)),
                };
                write!(f, " FileBasicInformation: {times}")?;
                match attributes.0 {
                    0 => Ok(()),
                    bits => write!(f, ", {}", words_of(words::ATTRIBUTES, bits, false)),
                }
            }
            SetInfo::EndOfFile(length) => {
                write!(f, " FileEndOfFileInformation: {}", self.length(*length))
            }
            SetInfo::Allocation(length) => {
                write!(f, " FileAllocationInformation: {}", self.length(*length))
            }
        }
    }
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = self.request;
        write!(f, "{}", request.op.command().name().unwrap_or("?"))?;
        let handle = self.handle(request.slot);
        match &request.op {
            Op::Create(create) => self.create(f, create)?,
            Op::Close { .. } | Op::Flush => write!(f, " {handle}")?,
            Op::Read(transfer) | Op::Write(transfer) => self.transfer(f, transfer)?,
            Op::Lock(lock) => {
                let kind = match lock.kind {
                    LockKind::Shared => "shared",
                    LockKind::Exclusive => "exclusive",
                    LockKind::Unlock => "unlock",
                };
                let length = format_bytes(lock.length_bytes);
                write!(f, " {handle}: {kind}, {length} from {}", format_bytes(lock.offset_bytes))?;
            }
            Op::Ioctl(ioctl) => write!(f, " {handle}: {}", ioctl.code.name().unwrap_or("?"))?,
            Op::QueryDirectory(query) => write!(f, " {handle}: {}", self.path(query.pattern))?,
            Op::QueryInfo(query) => {
                write!(
                    f,
                    " {handle}: {}",
                    info_class_name(query.info_type, query.class).unwrap_or("?")
                )?;
                if query.security.0 != 0 {
                    write!(f, " {}", words_of(words::SECURITY, query.security.0, false))?;
                }
            }
            Op::SetInfo(info) => {
                write!(f, " {handle}:")?;
                self.set_info(f, info)?;
            }
            Op::ChangeNotify(notify) => {
                let name = self
                    .scenario
                    .notifications
                    .get(usize::from(notify.notification.0))
                    .map_or("", String::as_str);
                let tree = if notify.tree { " and below" } else { "" };
                write!(
                    f,
                    " {handle}{tree} as {name}: {}",
                    words_of(words::FILTERS, notify.filter.0, false)
                )?;
            }
            Op::Cancel { notification } => {
                let name = self.scenario.notifications.get(usize::from(notification.0));
                write!(f, " {}", name.map_or("", String::as_str))?;
            }
        }
        let names = request.expect.statuses().iter().map(|status| status.name().unwrap_or("?"));
        let names: Vec<&str> = names.collect();
        if names != ["STATUS_SUCCESS"] {
            write!(f, " -> {}", names.join(" or "))?;
        }
        f.write_str(if request.collapse { " [collapse]" } else { "" })?;
        match request.lease {
            Some(lease) => write!(f, " [dirlease of {}]", self.path(lease)),
            None => Ok(()),
        }
    }
}

/// A mask as the name of its set, or as its single rights.
fn access(mask: AccessMask) -> String {
    words_of(words::ACCESS, mask.0, words::ACCESS.iter().any(|&(_, value)| value == mask.0))
}

/// The words of a code (`exact`) or of a set of bits.
fn words_of(words: Words, bits: u32, exact: bool) -> String {
    if exact {
        let word = words.iter().find(|&&(_, value)| value == bits);
        return word.map_or(format!("{bits:#x}"), |&(word, _)| word.into());
    }
    let single = words.iter().filter(|(_, value)| value.is_power_of_two() && bits & value != 0);
    let words: Vec<&str> = single.map(|&(word, _)| word).collect();
    words.join("+")
}

impl Scenario {
    /// The pools that its files come from.
    pub(super) fn pools(&self) -> impl Iterator<Item = usize> + '_ {
        self.picks.iter().flat_map(|pick| match &pick.how {
            PickHow::Any { pool } | PickHow::Make { pool } => vec![*pool],
            PickHow::Take { pools } => pools.clone(),
        })
    }
}
