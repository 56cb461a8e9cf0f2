//! Hand-made streams through the framers of both directions, and helpers to make them.

mod captures;
mod chains;
mod cut;
mod files;
mod pairing;
mod raw;
mod transactions;

use smbscope_tables::busy::NOT_ON_CLOCK;
use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::nbss::Kind;
use smbscope_wire::read::u16_at;

use crate::limits::{Limits, WaitingBytes};
use crate::outcome::{Effect, Output};
use crate::smb::context::SmbContext;
use crate::smb::pairing::Pairing;
use crate::smb::smb1::Smb1;
use crate::stream::{Framer, Message, MessageSink, Piece};

/// A message of one command with a length in front.
#[derive(Clone)]
pub struct Smb {
    bytes: Vec<u8>,
}

impl Smb {
    /// PID 9, UID 5, TID 3; NTSTATUS, OEM strings.
    pub fn new(command: u8, mid: u16, words: &[u8], bytes: &[u8]) -> Smb {
        let mut out = b"\0\0\0\0\xffSMB".to_vec();
        out.resize(36, 0);
        out[8] = command;
        out[14..16].copy_from_slice(&0x4001_u16.to_le_bytes());
        for (at, value) in [(28, 3), (30, 9), (32, 5), (34, mid)] {
            out[at..at + 2].copy_from_slice(&u16::to_le_bytes(value));
        }
        Smb { bytes: out }.block(words, bytes)
    }

    /// The same as a reply.
    pub fn reply(command: u8, mid: u16, words: &[u8], bytes: &[u8]) -> Smb {
        let mut smb = Smb::new(command, mid, words, bytes);
        smb.bytes[13] = 0x80;
        smb
    }

    /// A reply that says that the command failed.
    pub fn failed(command: u8, mid: u16, status: u32) -> Smb {
        Smb::reply(command, mid, &[], &[]).status(status)
    }

    /// Appends words and bytes of a command.
    pub fn block(mut self, words: &[u8], bytes: &[u8]) -> Smb {
        self.bytes.push((words.len() / 2) as u8);
        self.bytes.extend(words);
        self.bytes.extend((bytes.len() as u16).to_le_bytes());
        self.bytes.extend(bytes);
        self
    }

    /// Appends a command and links the last AndX block, whose words lie at `at` of the message.
    pub fn chained(mut self, at: usize, command: u8, words: &[u8], bytes: &[u8]) -> Smb {
        let next = (self.bytes.len() - 4) as u16;
        self.bytes[4 + at] = command;
        self.bytes[6 + at..8 + at].copy_from_slice(&next.to_le_bytes());
        self.block(words, bytes)
    }

    pub fn status(mut self, status: u32) -> Smb {
        self.bytes[9..13].copy_from_slice(&status.to_le_bytes());
        self
    }

    pub fn flags2(mut self, flags2: u16) -> Smb {
        self.bytes[14..16].copy_from_slice(&flags2.to_le_bytes());
        self
    }

    pub fn tid(mut self, tid: u16) -> Smb {
        self.bytes[28..30].copy_from_slice(&tid.to_le_bytes());
        self
    }

    pub fn uid(mut self, uid: u16) -> Smb {
        self.bytes[32..34].copy_from_slice(&uid.to_le_bytes());
        self
    }

    pub fn framed(mut self) -> Vec<u8> {
        let length = (self.bytes.len() - 4) as u32;
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.bytes
    }
}

/// Zeroed words with integers put at byte offsets.
pub fn words(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut out = vec![0; length];
    for (at, bytes) in fields {
        out[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    out
}

/// Words of an AndX command without a successor.
pub fn last(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut out = words(length, fields);
    out[0] = 0xff;
    out
}

/// What came out: the row, its path, what it does.
#[derive(Debug)]
pub struct Row {
    pub row: Operation,
    pub path: Option<String>,
    pub effect: Effect,
    /// Share of a tree connect.
    pub share: Option<String>,
    /// User of a session setup.
    pub user: Option<String>,
}

impl Row {
    pub fn text(&self, column: Column) -> String {
        let code = match column {
            Column::command => self.row.command(),
            Column::detail => self.row.detail(),
            Column::status_name => self.row.status_name(),
            Column::oplock_granted => self.row.oplock_granted(),
            Column::oplock_requested => self.row.oplock_requested(),
            _ => None,
        };
        code.map(|code| code::text(column, code).into_owned()).unwrap_or_default()
    }

    pub fn command(&self) -> String {
        self.text(Column::command)
    }

    pub fn fid(&self) -> Option<u16> {
        u16_at(&self.row.file_id()?, 0)
    }
}

/// A connection; every message comes a microsecond after the one before.
pub struct Wire {
    pub smb1: Smb1,
    pub pairing: Pairing,
    pub out: Output,
    pub limits: Limits,
    pub time: i64,
    framers: [Framer; 2],
    taken: usize,
}

impl Default for Wire {
    fn default() -> Self {
        let limits = Limits::default();
        Wire {
            smb1: Smb1::default(),
            pairing: Pairing::default(),
            out: Output::default(),
            limits,
            time: 1_000_000,
            framers: [(), ()].map(|()| Framer::new(&limits, WaitingBytes::default())),
            taken: 0,
        }
    }
}

struct Sink<'a> {
    to_server: bool,
    smb1: &'a mut Smb1,
    cx: SmbContext<'a>,
}

impl MessageSink for Sink<'_> {
    fn begin(&mut self, time: i64) -> i64 {
        if self.to_server { self.cx.pairing.clock.begin(time) } else { NOT_ON_CLOCK }
    }

    fn unbegin(&mut self, time: i64, begun: i64) {
        self.cx.pairing.unbegin(time, begun);
    }

    fn expects_raw(&self) -> bool {
        self.smb1.expects_raw(self.to_server)
    }

    fn decrypts(&self) -> bool {
        false
    }

    fn message(&mut self, message: Message<'_>) {
        if message.kind != Kind::SESSION_MESSAGE {
            self.cx.pairing.unbegin(message.start, message.begun);
        } else if message.bytes.starts_with(b"\xffSMB") {
            self.smb1.message(&message, self.to_server, &mut self.cx);
        } else {
            self.smb1.raw(&message, self.to_server, &mut self.cx);
        }
    }
}

impl Wire {
    /// Bytes of one direction in one segment.
    pub fn segment(&mut self, to_server: bool, bytes: &[u8]) -> i64 {
        self.cut_segment(to_server, bytes, bytes.len())
    }

    /// The same, of which the first `captured` bytes were captured.
    pub fn cut_segment(&mut self, to_server: bool, bytes: &[u8], captured: usize) -> i64 {
        self.time += 1_000;
        self.out.order += 1;
        let piece = Piece {
            bytes: &bytes[..captured.min(bytes.len())],
            length: bytes.len() as u32,
            time: self.time,
            frame: self.out.order,
            sequence: 0,
            lost: false,
        };
        let mut sink = Sink {
            to_server,
            smb1: &mut self.smb1,
            cx: SmbContext { pairing: &mut self.pairing, out: &mut self.out, limits: &self.limits },
        };
        self.framers[usize::from(to_server)].feed(piece, &mut sink);
        self.time
    }

    pub fn client(&mut self, smb: Smb) -> i64 {
        self.segment(true, &smb.framed())
    }

    pub fn server(&mut self, smb: Smb) -> i64 {
        self.segment(false, &smb.framed())
    }

    /// Request and reply.
    pub fn call(&mut self, request: Smb, reply: Smb) -> Row {
        self.client(request);
        self.server(reply);
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    /// Rows since the last call.
    pub fn rows(&mut self) -> Vec<Row> {
        let out = &self.out;
        let rows = out.done.iter().zip(&out.rows).skip(self.taken).map(|(done, row)| Row {
            row: *row,
            path: done.path.map(|path| out.details.text(path).to_owned()),
            effect: done.effect,
            share: match done.effect {
                Effect::Tree(at) => out.details.trees[at as usize]
                    .share
                    .map(|share| out.details.text(share).to_owned()),
                _ => None,
            },
            user: match done.effect {
                Effect::Session(at) => out.details.sessions[at as usize].user.clone(),
                _ => None,
            },
        });
        let rows = rows.collect();
        self.taken = out.done.len();
        rows
    }

    /// The pairing of SMB1, and the context that it works with.
    pub fn parts(&mut self) -> (&mut Smb1, SmbContext<'_>) {
        let Wire { smb1, pairing, out, limits, .. } = self;
        (smb1, SmbContext { pairing, out, limits })
    }

    /// The connection ends.
    pub fn end(&mut self) -> Vec<Row> {
        let time = self.time;
        let (smb1, mut cx) = self.parts();
        smb1.end(time, &mut cx);
        assert_eq!(self.pairing.in_flight, 0);
        self.rows()
    }
}

/// Status of an operation that went well.
pub const OK: Option<u32> = Some(0);

/// A ReadAndX of 4096 bytes at 8192 from file 7.
pub fn read_and_x(mid: u16) -> Smb {
    Smb::new(0x2e, mid, &last(24, &[(4, &[7, 0, 0, 0x20]), (10, &[0, 0x10])]), &[])
}

/// Its reply.
pub fn read_and_x_reply(mid: u16) -> Smb {
    let fixed = last(24, &[(10, &[0, 0x10, 59])]);
    Smb::reply(0x2e, mid, &fixed, &[1; 4096])
}

/// A Close of file 7, and its reply.
pub fn close(mid: u16) -> (Smb, Smb) {
    (Smb::new(0x04, mid, &[7, 0, 0, 0, 0, 0], &[]), Smb::reply(0x04, mid, &[], &[]))
}
