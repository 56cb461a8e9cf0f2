//! A request on one line, in the words of the language ([`words`]), for people who read a workload.

use std::fmt::{self, Display};

use smbscope_wire::smb2::access::{AccessMask, ShareAccess};
use smbscope_wire::smb2::info_class::info_class_name;

use super::model::{
    Create, Length, LockKind, Op, PathId, Request, Scenario, SetInfo, Slot, Times, Transfer,
};
use super::words::{self, Words, format_bytes};

impl Scenario {
    /// One of its requests on one line: `Read doc: file from 64 KiB, blocks of 64 KiB`.
    pub fn notation(&self, request: &Request) -> String {
        Notation { scenario: self, request }.to_string()
    }
}

/// A request and the names that it uses.
struct Notation<'a> {
    scenario: &'a Scenario,
    request: &'a Request,
}

impl Notation<'_> {
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

impl Display for Notation<'_> {
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
