//! Passes messages of one direction to SMB1 or SMB2, after decryption and decompression.

use smbscope_tables::busy::NOT_ON_CLOCK;
use smbscope_wire::compression;
use smbscope_wire::crypto::Cipher;
use smbscope_wire::nbss::Kind;
use smbscope_wire::read::{u8_at, u16_at};
use smbscope_wire::smb2::negotiate::NegotiateResponse;
use smbscope_wire::smb2::negotiate_context::NegotiateContextData;
use smbscope_wire::smb2::transform::Transform;
use smbscope_wire::smb2::{Command, Header};

use super::Context;
use crate::smb::context::SmbContext;
use crate::smb::pending::ReplyTimes;
use crate::smb::secrets::Secrets;
use crate::smb::smb1::Smb1;
use crate::smb::smb2::{Smb2, Wrapping};
use crate::stream::{Message, MessageSink};

/// Passes the messages of one direction to the protocol they belong to.
pub(super) struct Sink<'a> {
    pub(super) to_server: bool,
    pub(super) cx: SmbContext<'a>,
    pub(super) smb1: &'a mut Smb1,
    pub(super) smb2: &'a mut Smb2,
    pub(super) secrets: &'a mut Secrets,
    pub(super) opened: &'a mut Vec<u8>,
    pub(super) context: &'a Context,
}

impl MessageSink for Sink<'_> {
    #[inline]
    fn begin(&mut self, time: i64) -> i64 {
        if self.to_server { self.cx.pairing.clock.begin(time) } else { NOT_ON_CLOCK }
    }

    fn unbegin(&mut self, time: i64, begun: i64) {
        self.cx.pairing.unbegin(time, begun);
    }

    fn expects_raw(&self) -> bool {
        self.smb1.expects_raw(self.to_server)
    }

    #[inline]
    fn decrypts(&self) -> bool {
        !self.context.keys.is_empty()
    }

    #[inline]
    fn message(&mut self, message: Message<'_>) {
        if message.kind != Kind::SESSION_MESSAGE {
            self.cx.pairing.unbegin(message.start, message.begun);
            return;
        }
        self.cx.out.coverage.messages += 1;
        self.cx.out.coverage.messages_cut += u64::from(message.cut);
        if u8_at(message.bytes, 0) == Some(0xfe) {
            self.plain(&message, Wrapping::default());
        } else {
            self.other(message);
        }
    }
}

impl Sink<'_> {
    #[inline]
    fn plain(&mut self, message: &Message<'_>, wrapping: Wrapping) {
        let mut decryption = None;
        if !self.context.keys.is_empty() {
            decryption = self.observe(message.bytes, message.cut);
        }
        if self.smb1.expects_negotiate() && self.answers_smb1(message) {
            return;
        }
        let known = self.cx.out.details.sessions.len();
        self.smb2.message(message, wrapping, &mut self.cx);
        if decryption.is_some()
            && let Some(session) = self.cx.out.details.sessions.get_mut(known)
        {
            session.decryption = decryption;
        }
    }

    /// An SMB1 Negotiate that offers SMB2 is answered by SMB2 (MS-SMB2 section 3.3.5.3.1).
    fn answers_smb1(&mut self, message: &Message<'_>) -> bool {
        let Some(header) = Header::parse(message.bytes) else { return false };
        if header.command != Command::NEGOTIATE || !header.is_response() || header.message_id != 0 {
            return false;
        }
        crate::smb::smb2::negotiated(message.bytes, self.cx.pairing);
        let status = header.status_or_channel_sequence;
        self.smb2.grant(i64::from(header.credits) - 1, self.cx.pairing);
        self.smb1.answered_by_smb2(&ReplyTimes::from_message(message), status, &mut self.cx)
    }

    /// If a session was set up: how its key is known.
    #[cold]
    fn observe(&mut self, bytes: &[u8], is_cut: bool) -> Option<&'static str> {
        let view = NegotiateResponse(bytes);
        let is_reply = Header::parse(bytes)
            .is_some_and(|header| header.is_response() && header.command == Command::NEGOTIATE);
        let mut cipher = None;
        if is_reply {
            for context in view.contexts() {
                if let NegotiateContextData::Encryption(mut ciphers) = context.decode() {
                    cipher = ciphers.next().map(Cipher);
                }
            }
        }
        let dialect = view.dialect().filter(|_| is_reply);
        let keys = &self.context.keys;
        self.secrets.observe(bytes, is_cut, (dialect, cipher), keys, self.cx.out)
    }

    #[cold]
    fn other(&mut self, message: Message<'_>) {
        match u8_at(message.bytes, 0).filter(|_| u16_at(message.bytes, 1) == Some(0x4d53)) {
            Some(0xff) => {
                self.smb1.message(&message, self.to_server, &mut self.cx);
            }
            Some(0xfd) => self.encrypted(&message),
            Some(0xfc) => self.compressed(&message, false),
            _ if self.smb1.expects_raw(self.to_server) => {
                self.smb1.raw(&message, self.to_server, &mut self.cx);
            }
            _ => {
                self.cx.pairing.unbegin(message.start, message.begun);
                self.cx.out.coverage.messages_unknown += u64::from(message.length > 0);
            }
        }
    }

    fn encrypted(&mut self, message: &Message<'_>) {
        self.cx.out.coverage.messages_encrypted += 1;
        let session_id = Transform(message.bytes).session_id();
        let mut opened = std::mem::take(self.opened);
        let result = session_id.and_then(|id| {
            let keys = &self.context.keys;
            let out = &mut *self.cx.out;
            self.secrets.open(keys, id, self.to_server, message.bytes, &mut opened, out)
        });
        if result == Some(true) {
            self.cx.out.coverage.messages_decrypted += 1;
            let inner = Message { bytes: &opened, ..*message };
            match u8_at(&opened, 0) {
                Some(0xfc) => self.compressed(&inner, true),
                _ => self.plain(&inner, Wrapping { encrypted: true, compressed: false }),
            }
        } else {
            self.cx.out.coverage.decryption_failed += u64::from(result == Some(false));
            let to_server = self.to_server;
            self.smb2.sealed(message, session_id, to_server, &mut self.cx);
        }
        *self.opened = opened;
    }

    fn compressed(&mut self, message: &Message<'_>, encrypted: bool) {
        self.cx.out.coverage.messages_compressed += 1;
        let mut plain = Vec::new();
        let limit = 16 << 20;
        let result = compression::decompress(message.bytes, limit, &mut plain);
        self.cx.out.coverage.decompression_failed += u64::from(result.is_err());
        let inner = Message { bytes: &plain, cut: result.is_err(), ..*message };
        if u8_at(&plain, 0) == Some(0xfe) {
            self.plain(&inner, Wrapping { encrypted, compressed: true });
        } else {
            self.cx.pairing.unbegin(message.start, message.begun);
            self.cx.out.coverage.messages_unknown += 1;
        }
    }
}
