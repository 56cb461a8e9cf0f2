//! The requests of a migration, each of which can be repeated on another channel.
//!
//! Writes go to absolute places with content that follows from the place, so that a repetition changes nothing.

use std::sync::Arc;

use smbscope_client::multichannel::Request;
use smbscope_client::{Ask, Channel, Reply, Want};
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::encode;
use smbscope_wire::smb2::read::{ReadFlags, ReadResponse};
use smbscope_wire::smb2::write::WriteFlags;

use crate::fileset::{FileRef, content};

/// A file that is open, and how rows name it.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub file_id: FileId,
    pub number: u64,
    pub path: Arc<str>,
}

impl Opened {
    pub fn ask(&self) -> Ask {
        Ask { path: Some(self.path.clone()), handle: Some(self.number), ..Ask::default() }
    }
}

/// What happens to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Its content is generated and written.
    Write,
    /// It is read, and its content is not looked at.
    Read,
    /// It is read and compared with the content that it should have.
    Check,
}

/// One block of a stream.
pub(super) struct Block {
    pub opened: Arc<Opened>,
    pub file: FileRef,
    pub offset: u64,
    pub length: u32,
    pub act: Act,
}

impl Request for Block {
    fn payload_bytes(&self) -> u32 {
        self.length
    }

    fn is_marked(&self) -> bool {
        self.act == Act::Write
    }

    fn add(
        &self,
        channel: &mut Channel,
        (session_id, tree_id): (u64, u32),
        scratch: &mut Vec<u8>,
        replay: bool,
    ) -> u64 {
        let Block { offset, length, act, .. } = *self;
        let file_id = self.opened.file_id;
        let want = if act == Act::Check { Want::Message } else { Want::Result };
        let ask = Ask { payload_bytes: length, want, replay, ..self.opened.ask() };
        if act == Act::Write {
            scratch.resize(length as usize, 0);
            content(&self.file, offset, scratch);
            let body = encode::Write { file_id, offset, flags: WriteFlags(0), data: scratch };
            channel.add(session_id, tree_id, false, &body, ask)
        } else {
            let body = encode::Read { file_id, offset, length, flags: ReadFlags(0) };
            channel.add(session_id, tree_id, false, &body, ask)
        }
    }

    fn is_intact(&self, reply: &Reply, scratch: &mut Vec<u8>) -> bool {
        if self.act != Act::Check {
            return true;
        }
        let view = ReadResponse(&reply.message);
        let place = view.data_offset().map(usize::from).zip(view.data_length());
        let data =
            place.and_then(|(start, length)| reply.message.get(start..)?.get(..length as usize));
        scratch.resize(self.length as usize, 0);
        content(&self.file, self.offset, scratch);
        data == Some(scratch.as_slice())
    }
}

/// Adds a request to a channel's frame.
type Add = Box<dyn Fn(&mut Channel, (u64, u32), Ask) -> u64 + Send + Sync>;

/// A request of another kind.
pub(super) struct Control {
    add: Add,
    ask: Ask,
    is_marked: bool,
}

impl Control {
    /// A request with this body, which is built each time it is sent.
    pub fn new(
        ask: Ask,
        is_marked: bool,
        add: impl Fn(&mut Channel, (u64, u32), Ask) -> u64 + Send + Sync + 'static,
    ) -> Arc<Control> {
        Arc::new(Control { add: Box::new(add), ask, is_marked })
    }

    /// A request about an open file.
    pub fn on_open<B: encode::Body + Send + Sync + 'static>(
        opened: &Opened,
        is_marked: bool,
        body: B,
    ) -> Arc<Control> {
        Control::new(opened.ask(), is_marked, move |channel, (session_id, tree_id), ask| {
            channel.add(session_id, tree_id, false, &body, ask)
        })
    }
}

impl Request for Control {
    fn payload_bytes(&self) -> u32 {
        self.ask.payload_bytes
    }

    /// What it carries is not data of a file.
    fn data_bytes(&self) -> u32 {
        0
    }

    fn is_marked(&self) -> bool {
        self.is_marked
    }

    fn add(
        &self,
        channel: &mut Channel,
        ids: (u64, u32),
        _scratch: &mut Vec<u8>,
        replay: bool,
    ) -> u64 {
        (self.add)(channel, ids, Ask { replay, ..self.ask.clone() })
    }

    fn keeps_message(&self) -> bool {
        self.ask.want == Want::Message
    }
}
