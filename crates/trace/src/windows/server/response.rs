//! Responses: events 101 to 122 of Microsoft-Windows-SMBServer to messages ([MS-SMB2] sections 2.2.4 to 2.2.40)
//! and the server's work.

use smbscope_wire::smb2::Command;

use super::layout::{Head, Layout, Work, outcome};
use super::message::{self, Message, Writer};
use super::request::{Ids, LEASE_CONTEXT_BYTES, OPLOCK_LEVEL_LEASE, lease_context};
use crate::windows::fields::Fields;

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    pub head: Head,
    pub work: Work,
    pub message: Message,
    pub ids: Ids,
    /// The open that it names.
    pub file_id: Option<u64>,
}

/// Numbers of the events: those of the requests plus 100, and one for errors.
mod event {
    pub const NEGOTIATE: u16 = 101;
    pub const SESSION_SETUP: u16 = 102;
    pub const LOGOFF: u16 = 103;
    pub const TREE_CONNECT: u16 = 104;
    pub const TREE_DISCONNECT: u16 = 105;
    pub const ECHO: u16 = 106;
    pub const CREATE: u16 = 108;
    pub const CLOSE: u16 = 109;
    pub const FLUSH: u16 = 110;
    pub const READ: u16 = 111;
    pub const WRITE: u16 = 112;
    pub const BREAK_OPLOCK: u16 = 113;
    pub const ACKNOWLEDGE_BREAK_LEASE: u16 = 115;
    pub const LOCK: u16 = 116;
    pub const IOCTL: u16 = 117;
    pub const QUERY_DIRECTORY: u16 = 118;
    pub const CHANGE_NOTIFY: u16 = 119;
    pub const QUERY_INFO: u16 = 120;
    pub const SET_INFO: u16 = 121;
    pub const ERROR: u16 = 122;
}

/// The response of an event, if its fields are those of the layout.
pub fn parse(payload: &[u8], id: u16, layout: Layout) -> Option<Response> {
    let mut fields = Fields::new(payload);
    let mut head = Head::parse(&mut fields)?;
    if let Some(command) = command(id) {
        head.command = command;
    }
    let is_io = matches!(id, event::READ | event::WRITE);
    let (status, work) = outcome(&mut fields, layout, is_io)?;
    let f = &mut fields;
    let mut w = Writer::response(&head, status);
    let mut missing = 0;
    let mut ids = 4;
    match id {
        event::NEGOTIATE => {
            let (mode, dialect, capabilities) = (f.u16()?, f.u16()?, f.u32()?);
            let (transact, read, write, time) = (f.u32()?, f.u32()?, f.u32()?, f.u64()?);
            w.u16(65).u16(mode).u16(dialect).u16(0).zeros(16).u32(capabilities);
            w.u32(transact).u32(read).u32(write).u64(time).u64(0).u16(128).u16(0).u32(0).u8(0);
            ids = 1;
        }
        event::SESSION_SETUP => {
            let flags = f.u16()?;
            w.u16(9).u16(flags).u16(72).u16(0).u8(0);
            ids = 2;
        }
        event::LOGOFF => {
            w.u16(4).u16(0);
            ids = 2;
        }
        event::TREE_CONNECT => {
            let (kind, flags, capabilities, access) = (f.u8()?, f.u32()?, f.u32()?, f.u32()?);
            w.u16(16).u8(kind).u8(0).u32(flags).u32(capabilities).u32(access);
            ids = 3;
        }
        event::TREE_DISCONNECT => {
            w.u16(4).u16(0);
            ids = 3;
        }
        event::ECHO => {
            w.u16(4).u16(0);
            ids = 1;
        }
        event::FLUSH | event::LOCK => {
            w.u16(4).u16(0);
        }
        event::SET_INFO => {
            w.u16(2);
        }
        event::CREATE => create(f, &mut w)?,
        event::CLOSE => {
            let flags = f.u16()?;
            // Four times, two sizes and the attributes, as in the message.
            let rest = f.bytes(52)?;
            w.u16(60).u16(flags).u32(0).put(rest);
        }
        event::READ => {
            let length = f.u32()?;
            let at = (w.position() + 16) as u8;
            w.u16(17).u8(at).u8(0).u32(length).u64(0);
            missing = length as usize;
        }
        event::WRITE => {
            let (count, remaining) = (f.u32()?, f.u32()?);
            f.bytes(4)?;
            w.u16(17).u16(0).u32(count).u32(remaining).u32(0).u8(0);
        }
        event::BREAK_OPLOCK => {
            let (level, file) = (f.u8()?, f.u64()?);
            w.u16(24).u8(level).u8(0).u32(0).file_id(file);
        }
        event::ACKNOWLEDGE_BREAK_LEASE => {
            let (flags, state, duration, key) = (f.u32()?, f.u32()?, f.u64()?, f.guid()?);
            w.u16(36).u16(0).u32(flags).guid(key).u32(state).u64(duration);
        }
        event::IOCTL => {
            let (code, flags, file) = (f.u32()?, f.u32()?, f.u64()?);
            w.u16(49).u16(0).u32(code).file_id(file).zeros(16).u32(flags).u32(0).u8(0);
        }
        event::QUERY_DIRECTORY | event::CHANGE_NOTIFY => {
            w.u16(9).u16(72).u32(0).u8(0);
        }
        event::QUERY_INFO => {
            let length = f.u32()?;
            let buffer = f.bytes(length as usize)?;
            let at = (w.position() + 8) as u16;
            w.u16(9).u16(at).u32(length).put(buffer);
        }
        event::ERROR => {}
        _ => return None,
    }
    let ids = Ids::parse(f, ids)?;
    if is_io && layout == Layout::Times {
        // The FileId, once more.
        f.u64()?;
    }
    if f.left() != 0 {
        return None;
    }
    let file_id = w.file;
    let message = if id == event::ERROR || message::is_error(head.command, status) {
        message::error(&head, status)
    } else {
        w.finish(missing)
    };
    Some(Response { head, work, message, ids, file_id })
}

fn create(f: &mut Fields<'_>, w: &mut Writer) -> Option<()> {
    let (oplock, action) = (f.u8()?, f.u32()?);
    // Four times and two sizes, as in the message.
    let times_and_sizes = f.bytes(48)?;
    let (attributes, file) = (f.u32()?, f.u64()?);
    // The number of contexts.
    f.u32()?;
    let (key, level) = (f.guid()?, f.u32()?);
    w.u16(89).u8(oplock).u8(0).u32(action).put(times_and_sizes).u32(attributes).u32(0);
    w.file_id(file);
    if oplock == OPLOCK_LEVEL_LEASE {
        let at = w.position() as u32 + 8;
        w.u32(at).u32(LEASE_CONTEXT_BYTES);
        lease_context(w, key, level);
    } else {
        w.u64(0).u8(0);
    }
    Some(())
}

fn command(id: u16) -> Option<Command> {
    Some(match id {
        event::NEGOTIATE => Command::NEGOTIATE,
        event::SESSION_SETUP => Command::SESSION_SETUP,
        event::LOGOFF => Command::LOGOFF,
        event::TREE_CONNECT => Command::TREE_CONNECT,
        event::TREE_DISCONNECT => Command::TREE_DISCONNECT,
        event::ECHO => Command::ECHO,
        event::CREATE => Command::CREATE,
        event::CLOSE => Command::CLOSE,
        event::FLUSH => Command::FLUSH,
        event::READ => Command::READ,
        event::WRITE => Command::WRITE,
        event::BREAK_OPLOCK | event::ACKNOWLEDGE_BREAK_LEASE => Command::OPLOCK_BREAK,
        event::LOCK => Command::LOCK,
        event::IOCTL => Command::IOCTL,
        event::QUERY_DIRECTORY => Command::QUERY_DIRECTORY,
        event::CHANGE_NOTIFY => Command::CHANGE_NOTIFY,
        event::QUERY_INFO => Command::QUERY_INFO,
        event::SET_INFO => Command::SET_INFO,
        // An error names its command.
        _ => return None,
    })
}
