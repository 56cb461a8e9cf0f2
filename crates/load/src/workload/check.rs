//! Checks the steps of a scenario: handles and notifications followed from step to step, compounds that
//! a server can answer, marks that a client can follow.
//!
//! Done while the steps are read, when their positions in the text are known.

use std::ops::Range;

use smbscope_wire::status::Status;

use super::error::{Source, WorkloadError, nearest};
use super::model::{Expect, NotifySlot, Op, PathId, Request, Slot};
use super::table::{At, quoted};

type Read<T> = Result<T, WorkloadError>;

/// When a Create may be left out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub collapse: bool,
    pub lease: Option<PathId>,
    /// Whether the lease's directory itself is opened, so that the client keeps a handle to it.
    kept: bool,
}

#[derive(Debug)]
struct Handle {
    name: String,
    /// Where it was opened, while it is open.
    open: Option<Range<usize>>,
    mark: Mark,
}

#[derive(Debug)]
struct Notification {
    name: String,
    slot: Slot,
    expect: Expect,
    /// Whether a lease makes it unnecessary: then it is not sent on a handle that is kept.
    leased: bool,
    /// Where it was sent, while it waits.
    waiting: Option<Range<usize>>,
}

/// Handles and notifications at the current step.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    handles: Vec<Handle>,
    notifications: Vec<Notification>,
}

impl Tracker {
    /// Tracks a successful Create.
    pub fn open(
        &mut self,
        source: Source<'_>,
        name: &At<&str>,
        collapse: bool,
        lease: Option<PathId>,
        path: PathId,
    ) -> Read<Slot> {
        let mark = Mark { collapse, lease, kept: lease == Some(path) };
        if let Some(index) = self.handles.iter().position(|handle| handle.name == name.value) {
            let handle = &mut self.handles[index];
            if handle.open.is_some() {
                let error = source
                    .error(name.span.clone(), format!("handle `{}` is open already", name.value));
                return Err(error.help("close it first, or give this one another name"));
            }
            handle.open = Some(name.span.clone());
            handle.mark = mark;
            return Ok(Slot(index as u8));
        }
        if self.handles.len() >= 250 {
            return Err(source.error(name.span.clone(), "a scenario has at most 250 handles"));
        }
        self.handles.push(Handle { name: name.value.into(), open: Some(name.span.clone()), mark });
        Ok(Slot((self.handles.len() - 1) as u8))
    }

    /// The handle of a request.
    pub fn used(&self, source: Source<'_>, name: &At<&str>) -> Read<Slot> {
        let index = self.handles.iter().position(|handle| handle.name == name.value);
        match index {
            Some(index) if self.handles[index].open.is_some() => Ok(Slot(index as u8)),
            Some(_) => {
                let text = format!("handle `{}` is not open any more", name.value);
                Err(source.error(name.span.clone(), text))
            }
            None => {
                let known: Vec<&str> =
                    self.handles.iter().map(|handle| handle.name.as_str()).collect();
                let error = source
                    .error(name.span.clone(), format!("no handle `{}` is open here", name.value));
                Err(match nearest(name.value, known.iter().copied()) {
                    Some(meant) => error.help(format!("did you mean `{meant}`?")),
                    None => error.help(format!("so far there is {}", quoted(&known))),
                })
            }
        }
    }

    /// The mark of a handle's Create.
    pub fn mark(&self, slot: Slot) -> Mark {
        self.handles.get(usize::from(slot.0)).map_or(Mark::default(), |handle| handle.mark)
    }

    /// Checks a request that client caches never leave out: it needs a handle to be sent on.
    pub fn sent_anyway(&self, source: Source<'_>, name: &At<&str>, kind: &str) -> Read<()> {
        let Some(handle) = self.handles.iter().find(|handle| handle.name == name.value) else {
            return Ok(());
        };
        if handle.mark.collapse {
            let text = format!("`{kind}` on `{}`, whose Create is marked `collapse`", name.value);
            let error = source.error(name.span.clone(), text);
            return Err(error.help("such an open only reaches the client's own cache: nothing but its close may follow"));
        }
        if handle.mark.lease.is_some() && !handle.mark.kept {
            let text = format!(
                "`{kind}` on `{}`, which is not open when a lease answers its Create",
                name.value
            );
            let error = source.error(name.span.clone(), text);
            return Err(error.help("only a directory opened under its own lease stays open: leave out `dirlease` there"));
        }
        Ok(())
    }

    /// Tracks a Close.
    pub fn close(&mut self, source: Source<'_>, name: &At<&str>) -> Read<(Slot, Mark)> {
        let slot = self.used(source, name)?;
        for notification in self.notifications.iter_mut().filter(|waiting| waiting.slot == slot) {
            let Some(span) = notification.waiting.take() else { continue };
            if notification.expect.holds(Status::NOTIFY_CLEANUP) {
                if self.handles[usize::from(slot.0)].mark.lease.is_none() || notification.leased {
                    continue;
                }
                let text = format!(
                    "notification `{}` would wait for ever under a lease",
                    notification.name
                );
                let help = "a kept handle is not closed: cancel it, or mark it with `dirlease = true` as well";
                return Err(source.error(span, text).help(help));
            }
            let text = format!(
                "notification `{}` still waits when its handle is closed",
                notification.name
            );
            let help = "expect STATUS_NOTIFY_CLEANUP, cancel it before, or `wait` for it where a change fires it";
            return Err(source.error(span, text).help(help));
        }
        let handle = &mut self.handles[usize::from(slot.0)];
        handle.open = None;
        Ok((slot, handle.mark))
    }

    /// Tracks a ChangeNotify.
    pub fn notify(
        &mut self,
        source: Source<'_>,
        name: &At<&str>,
        slot: Slot,
        expect: Expect,
        leased: bool,
    ) -> Read<NotifySlot> {
        let waiting = Some(name.span.clone());
        if let Some(index) = self.notifications.iter().position(|known| known.name == name.value) {
            let known = &mut self.notifications[index];
            if known.waiting.is_some() {
                let error = source.error(
                    name.span.clone(),
                    format!("notification `{}` waits already", name.value),
                );
                return Err(error.help("give this one another name"));
            }
            *known = Notification { name: name.value.into(), slot, expect, leased, waiting };
            return Ok(NotifySlot(index as u8));
        }
        if self.notifications.len() >= 250 {
            return Err(source.error(name.span.clone(), "a scenario has at most 250 notifications"));
        }
        self.notifications.push(Notification {
            name: name.value.into(),
            slot,
            expect,
            leased,
            waiting,
        });
        Ok(NotifySlot((self.notifications.len() - 1) as u8))
    }

    /// Checks a step that begins after a change has fired the notification.
    pub fn wait(&mut self, source: Source<'_>, name: &At<&str>) -> Read<NotifySlot> {
        let (slot, expect) = self.end_of(source, name)?;
        if expect.holds(Status::SUCCESS) || expect.holds(Status::NOTIFY_ENUM_DIR) {
            return Ok(slot);
        }
        let text = format!("`{}` is waited for, so that a change must fire it", name.value);
        Err(source.error(name.span.clone(), text).help("give it `expect = \"STATUS_SUCCESS\"`"))
    }

    /// Tracks a Cancel.
    pub fn cancel(&mut self, source: Source<'_>, name: &At<&str>) -> Read<NotifySlot> {
        let (slot, expect) = self.end_of(source, name)?;
        if expect.holds(Status::CANCELLED) {
            return Ok(slot);
        }
        let text = format!("`{}` is cancelled, but expects another end", name.value);
        Err(source.error(name.span.clone(), text).help("give it `expect = \"STATUS_CANCELLED\"`"))
    }

    fn end_of(&mut self, source: Source<'_>, name: &At<&str>) -> Read<(NotifySlot, Expect)> {
        let index = self.notifications.iter().position(|known| known.name == name.value);
        if let Some(index) = index {
            let known = &mut self.notifications[index];
            if known.waiting.take().is_some() {
                return Ok((NotifySlot(index as u8), known.expect));
            }
        }
        let waiting: Vec<&str> = self
            .notifications
            .iter()
            .filter(|known| known.waiting.is_some())
            .map(|known| known.name.as_str())
            .collect();
        let error =
            source.error(name.span.clone(), format!("no notification `{}` waits here", name.value));
        Err(error.help(format!("waiting: {}", quoted(&waiting))))
    }

    /// The scenario's end: no handle may be left open.
    pub fn end(&self, source: Source<'_>) -> Read<()> {
        for handle in &self.handles {
            if let Some(span) = &handle.open {
                let text = format!("handle `{}` is never closed", handle.name);
                return Err(source
                    .error(span.clone(), text)
                    .help("the scenario's end must leave nothing open"));
            }
        }
        Ok(())
    }

    /// The names, by their numbers.
    pub fn names(self) -> (Vec<String>, Vec<String>) {
        let handles = self.handles.into_iter().map(|handle| handle.name).collect();
        (handles, self.notifications.into_iter().map(|notification| notification.name).collect())
    }
}

/// Checks whether the last of `requests` is allowed at its place in a compound of `count`.
///
/// Related requests use the handle of the request before them (MS-SMB2 section 3.3.5.2.7.2), and only
/// the last may wait: Samba answers an earlier one with an error.
pub(super) fn member(
    source: Source<'_>,
    span: Range<usize>,
    requests: &[Request],
    count: usize,
) -> Read<()> {
    let [before @ .., last] = requests else { return Ok(()) };
    let is_last = requests.len() == count;
    let problem = match &last.op {
        Op::Create(_) if !before.is_empty() => "a Create can only begin a compound",
        Op::Create(_) if last.slot.is_none() => {
            "a Create that fails leaves nothing for the rest of the compound"
        }
        Op::Read(_) | Op::Write(_) => {
            "a read or write is as many requests as it has blocks, and so in no compound"
        }
        Op::Cancel { .. } => "a Cancel must be the only request of its step",
        Op::ChangeNotify(_) if !is_last => "a ChangeNotify waits, so it can only end a compound",
        Op::Lock(_) if !is_last => "a Lock may wait, so it can only end a compound",
        Op::Close { .. } if !is_last => "a Close can only end a compound",
        _ if before.first().is_some_and(|first| first.slot != last.slot) => {
            "all requests of a compound work on one handle"
        }
        _ => return Ok(()),
    };
    Err(source.error(span, problem))
}
