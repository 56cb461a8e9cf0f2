//! Requests: events 1 to 21 of Microsoft-Windows-SMBServer to messages ([MS-SMB2] sections 2.2.3 to 2.2.39).

use smbscope_wire::smb2::Command;

use super::layout::Head;
use super::message::{Message, Writer};
use crate::windows::fields::Fields;
use crate::windows::provider::Guid;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    pub head: Head,
    pub message: Message,
    pub ids: Ids,
    /// The open that it works on.
    pub file_id: Option<u64>,
}

/// GUIDs by which events name what a message belongs to; nil where a message has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    pub connection: Guid,
    pub session: Guid,
    pub tree: Guid,
    pub file: Guid,
}

/// Numbers of the events, which are those of the commands plus one except for breaks.
mod event {
    pub const NEGOTIATE: u16 = 1;
    pub const SESSION_SETUP: u16 = 2;
    pub const LOGOFF: u16 = 3;
    pub const TREE_CONNECT: u16 = 4;
    pub const TREE_DISCONNECT: u16 = 5;
    pub const ECHO: u16 = 6;
    pub const CANCEL: u16 = 7;
    pub const CREATE: u16 = 8;
    pub const CLOSE: u16 = 9;
    pub const FLUSH: u16 = 10;
    pub const READ: u16 = 11;
    pub const WRITE: u16 = 12;
    pub const BREAK_OPLOCK: u16 = 13;
    pub const NOTIFY_BREAK_LEASE: u16 = 14;
    pub const ACKNOWLEDGE_BREAK_LEASE: u16 = 15;
    pub const LOCK: u16 = 16;
    pub const IOCTL: u16 = 17;
    pub const QUERY_DIRECTORY: u16 = 18;
    pub const CHANGE_NOTIFY: u16 = 19;
    pub const QUERY_INFO: u16 = 20;
    pub const SET_INFO: u16 = 21;
}

/// GUIDs that end each request.
fn ids_of(id: u16) -> usize {
    match id {
        event::NEGOTIATE | event::ECHO | event::CANCEL => 1,
        event::SESSION_SETUP | event::LOGOFF | event::TREE_CONNECT => 2,
        event::TREE_DISCONNECT | event::CREATE => 3,
        _ => 4,
    }
}

impl Ids {
    /// Reads the first `count` of them.
    pub fn parse(fields: &mut Fields<'_>, count: usize) -> Option<Ids> {
        let mut next = |place: usize| {
            if place < count { fields.guid() } else { Some(Guid::default()) }
        };
        Some(Ids { connection: next(0)?, session: next(1)?, tree: next(2)?, file: next(3)? })
    }
}

/// The connection of a request, for all but Lock, whose GUIDs do not end the event.
pub fn connection(payload: &[u8], id: u16) -> Option<Guid> {
    if id == event::LOCK {
        return parse(payload, id, None).map(|request| request.ids.connection);
    }
    let at = payload.len().checked_sub(16 * ids_of(id))?;
    payload.get(at..)?.first_chunk().map(|guid| Guid(*guid))
}

/// The message of an event, if its fields are those of the manifest. `user` is the token that a SessionSetup
/// carries.
pub fn parse(payload: &[u8], id: u16, user: Option<&[u8]>) -> Option<Request> {
    let mut fields = Fields::new(payload);
    let mut head = Head::parse(&mut fields)?;
    head.command = command(id)?;
    let f = &mut fields;
    let mut w = Writer::request(&head);
    let mut missing = 0;
    let after = 16 * ids_of(id);
    let mut ids = None;
    match id {
        event::NEGOTIATE => {
            let (mode, capabilities, count) = (f.u16()?, f.u32()?, f.u16()?);
            let dialects = f.bytes(2 * usize::from(count))?;
            let client = f.guid()?;
            w.u16(36).u16(count).u16(mode).u16(0).u32(capabilities).guid(client).u64(0);
            w.put(dialects);
        }
        event::SESSION_SETUP => {
            let (number, mode, capabilities) = (f.u8()?, f.u8()?, f.u32()?);
            let (channel, previous) = (f.u32()?, f.u64()?);
            let token = user.unwrap_or_default();
            let at = (w.position() + 24) as u16;
            w.u16(25).u8(number).u8(mode).u32(capabilities).u32(channel);
            w.u16(at).u16(token.len() as u16).u64(previous).put(token);
        }
        event::LOGOFF | event::TREE_DISCONNECT | event::ECHO | event::CANCEL => {
            w.u16(4).u16(0);
        }
        event::TREE_CONNECT => {
            let length = usize::from(f.u16()?);
            let path = f.utf16(length, after)?;
            let at = (w.position() + 8) as u16;
            w.u16(9).u16(0).u16(at).u16(path.len() as u16).put(path);
        }
        event::CREATE => create(f, &mut w, after)?,
        event::CLOSE => {
            let (flags, file) = (f.u16()?, f.u64()?);
            w.u16(24).u16(flags).u32(0).file_id(file);
        }
        event::FLUSH => {
            let file = f.u64()?;
            w.u16(24).u16(0).u32(0).file_id(file);
        }
        event::READ => {
            let (length, offset, file) = (f.u32()?, f.u64()?, f.u64()?);
            let (minimum, channel, remaining) = (f.u32()?, f.u32()?, f.u32()?);
            // Position and length of the channel's description, which the event does not have.
            f.bytes(4)?;
            w.u16(49).u16(0).u32(length).u64(offset).file_id(file);
            w.u32(minimum).u32(channel).u32(remaining).u32(0).u8(0);
        }
        event::WRITE => {
            let (length, offset, file) = (f.u32()?, f.u64()?, f.u64()?);
            let (channel, remaining) = (f.u32()?, f.u32()?);
            f.bytes(4)?;
            let flags = f.u32()?;
            let at = (w.position() + 48) as u16;
            w.u16(49).u16(at).u32(length).u64(offset).file_id(file);
            w.u32(channel).u32(remaining).u32(0).u32(flags);
            missing = length as usize;
        }
        event::BREAK_OPLOCK => {
            let (level, file) = (f.u8()?, f.u64()?);
            w.u16(24).u8(level).u8(0).u32(0).file_id(file);
        }
        event::ACKNOWLEDGE_BREAK_LEASE => {
            let (flags, state, duration, key) = (f.u32()?, f.u32()?, f.u64()?, f.guid()?);
            w.u16(36).u16(0).u32(flags).guid(key).u32(state).u64(duration);
        }
        event::LOCK => {
            let file = f.u64()?;
            ids = Some(Ids::parse(f, 4)?);
            let count = f.u16()?;
            w.u16(48).u16(count).u32(0).file_id(file);
            // Offset and length of each lock; its flags are not in the event.
            for lock in f.bytes(16 * usize::from(count))?.as_chunks::<16>().0 {
                w.put(lock).u64(0);
            }
        }
        event::IOCTL => {
            let (file, code, flags) = (f.u64()?, f.u32()?, f.u32()?);
            w.u16(57).u16(0).u32(code).file_id(file).zeros(24).u32(flags).u32(0);
        }
        event::QUERY_DIRECTORY => {
            let (class, flags, index, file) = (f.u8()?, f.u8()?, f.u32()?, f.u64()?);
            let (most, length) = (f.u32()?, usize::from(f.u16()?));
            let name = f.utf16(length, after)?;
            let at = (w.position() + 32) as u16;
            w.u16(33).u8(class).u8(flags).u32(index).file_id(file);
            w.u16(at).u16(name.len() as u16).u32(most).put(name);
        }
        event::CHANGE_NOTIFY => {
            let (flags, file, most, filter) = (f.u16()?, f.u64()?, f.u32()?, f.u32()?);
            w.u16(32).u16(flags).u32(most).file_id(file).u32(filter).u32(0);
        }
        event::QUERY_INFO => {
            let (kind, class, most) = (f.u8()?, f.u8()?, f.u32()?);
            let (security, flags, file) = (f.u32()?, f.u32()?, f.u64()?);
            w.u16(41).u8(kind).u8(class).u32(most).u16(0).u16(0).u32(0);
            w.u32(security).u32(flags).file_id(file);
        }
        event::SET_INFO => {
            let (kind, class, security, file) = (f.u8()?, f.u8()?, f.u32()?, f.u64()?);
            let length = f.u32()?;
            let buffer = f.bytes(length as usize)?;
            let at = (w.position() + 32) as u16;
            w.u16(33).u8(kind).u8(class).u32(length).u16(at).u16(0).u32(security).file_id(file);
            w.put(buffer);
        }
        _ => return None,
    }
    let ids = match ids {
        Some(ids) => ids,
        None => Ids::parse(f, ids_of(id))?,
    };
    // An event that is longer has other fields than these.
    let file_id = w.file;
    (f.left() == 0).then(|| Request { head, message: w.finish(missing), ids, file_id })
}

/// The message with which the server breaks a lease: event 14 ([MS-SMB2] section 2.2.23.2).
pub fn lease_break(payload: &[u8], id: u16) -> Option<(Guid, Message)> {
    (id == event::NOTIFY_BREAK_LEASE).then_some(())?;
    let mut fields = Fields::new(payload);
    let f = &mut fields;
    let mut head = Head::parse(f)?;
    // The server's own messages have no number, session or tree.
    head =
        Head { message_id: u64::MAX, command: Command::OPLOCK_BREAK, flags: 0, credits: 0, ..head };
    (head.session_id, head.tree_id) = (0, 0);
    let (flags, current, new) = (f.u32()?, f.u32()?, f.u32()?);
    let (reason, access, share) = (f.u32()?, f.u32()?, f.u32()?);
    let key = f.guid()?;
    let ids = Ids::parse(f, 4)?;
    let mut w = Writer::response(&head, 0);
    w.u16(44).u16(0).u32(flags).guid(key).u32(current).u32(new).u32(reason).u32(access).u32(share);
    (f.left() == 0).then(|| (ids.connection, w.finish(0)))
}

fn create(f: &mut Fields<'_>, w: &mut Writer, after: usize) -> Option<()> {
    let (security, oplock, impersonation) = (f.u8()?, f.u8()?, f.u32()?);
    let (flags, _root) = (f.u64()?, f.u64()?);
    let (access, attributes, share) = (f.u32()?, f.u32()?, f.u32()?);
    let (disposition, options, length) = (f.u32()?, f.u32()?, usize::from(f.u16()?));
    // The number of contexts, the lease's key and its level follow the name.
    let name = f.utf16(length, 24 + after)?;
    f.u32()?;
    let (key, level) = (f.guid()?, f.u32()?);
    let name_at = w.position() + 56;
    let contexts_at = (name_at + name.len()).next_multiple_of(8);
    let has_lease = oplock == OPLOCK_LEVEL_LEASE;
    w.u16(57).u8(security).u8(oplock).u32(impersonation).u64(flags).u64(0);
    w.u32(access).u32(attributes).u32(share).u32(disposition).u32(options);
    w.u16(name_at as u16).u16(name.len() as u16);
    if has_lease {
        w.u32(contexts_at as u32).u32(LEASE_CONTEXT_BYTES)
    } else {
        w.u64(0)
    };
    w.put(name);
    if has_lease {
        w.zeros(contexts_at - w.position());
        lease_context(w, key, level);
    }
    Some(())
}

/// The oplock level that says that a lease is used.
pub const OPLOCK_LEVEL_LEASE: u8 = 0xff;
/// Length of the context that [`lease_context`] writes.
pub const LEASE_CONTEXT_BYTES: u32 = 56;

/// A create context with a lease, as requests and responses have it.
pub fn lease_context(w: &mut Writer, key: Guid, state: u32) {
    w.u32(0).u16(16).u16(4).u16(0).u16(24).u32(32).put(b"RqLs").u32(0);
    w.guid(key).u32(state).u32(0).u64(0);
}

fn command(id: u16) -> Option<Command> {
    Some(match id {
        event::BREAK_OPLOCK | event::ACKNOWLEDGE_BREAK_LEASE => Command::OPLOCK_BREAK,
        event::LOCK => Command::LOCK,
        event::IOCTL => Command::IOCTL,
        event::CANCEL => Command::CANCEL,
        event::ECHO => Command::ECHO,
        event::QUERY_DIRECTORY => Command::QUERY_DIRECTORY,
        event::CHANGE_NOTIFY => Command::CHANGE_NOTIFY,
        event::QUERY_INFO => Command::QUERY_INFO,
        event::SET_INFO => Command::SET_INFO,
        event::NEGOTIATE => Command::NEGOTIATE,
        event::SESSION_SETUP => Command::SESSION_SETUP,
        event::LOGOFF => Command::LOGOFF,
        event::TREE_CONNECT => Command::TREE_CONNECT,
        event::TREE_DISCONNECT => Command::TREE_DISCONNECT,
        event::CREATE => Command::CREATE,
        event::CLOSE => Command::CLOSE,
        event::FLUSH => Command::FLUSH,
        event::READ => Command::READ,
        event::WRITE => Command::WRITE,
        _ => return None,
    })
}
