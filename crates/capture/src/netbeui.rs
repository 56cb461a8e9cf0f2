//! Frames of NetBEUI: connections of IEEE 802.2 LLC type 2, and the sessions of NetBIOS in them.
//!
//! Owns the layouts; which frames are new is `shard`'s. IEEE 802.2 section 5.4 (LLC), IBM's LAN
//! Technical Reference (SC30-3587) chapter 5 (NetBIOS frames), as Wireshark shows them.

use smbscope_wire::read::{array_at, u8_at, u16_at};

/// The service access point of NetBIOS.
const SERVICE: u8 = 0xf0;
/// The lowest bit of the sender's access point: a response.
const RESPONSE: u8 = 0x01;
/// Bytes of LLC in front of information.
const LLC_BYTES: usize = 4;
/// Bytes of a frame's NetBIOS header with session numbers, and its mark.
const HEADER_BYTES: u16 = 14;
const MARK: [u8; 2] = [0xff, 0xef];

/// What LLC does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A numbered frame, with the number that the sender expects next.
    Information { number: u8, expects: u8 },
    /// An acknowledgement, or a refusal, with the number that the sender expects next.
    Supervisory { expects: u8 },
    /// The numbers begin at 0 in both directions (SABME).
    Connect,
    /// The connection ends (DISC).
    Disconnect,
    /// An answer to one of these, or a test.
    Other,
}

/// A frame, as far as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub control: Control,
    /// In a numbered frame.
    pub session: Option<SessionFrame<'a>>,
}

/// A command of NetBIOS (SC30-3587).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(u8);

impl Command {
    /// A part of a message that another one follows.
    pub const DATA_FIRST_MIDDLE: Command = Command(0x15);
    /// A whole message, or its last part.
    pub const DATA_ONLY_LAST: Command = Command(0x16);
    /// A session is accepted.
    pub const SESSION_CONFIRM: Command = Command(0x17);
    /// A session ends.
    pub const SESSION_END: Command = Command(0x18);
    /// A session begins; its caller sends it.
    pub const SESSION_INITIALIZE: Command = Command(0x19);
}

/// What a session carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFrame<'a> {
    pub command: Command,
    /// The receiver's number of the session.
    pub destination: u8,
    /// The sender's number of the session.
    pub source: u8,
    /// The data as captured.
    pub data: &'a [u8],
    /// The data's bytes on the wire.
    pub length: u32,
}

impl<'a> Frame<'a> {
    /// Reads a frame of `length` bytes on the wire, from its LLC header.
    pub fn parse(bytes: &'a [u8], length: u32) -> Option<Frame<'a>> {
        let [destination, source, first] = *array_at(bytes, 0)?;
        if destination != SERVICE || source & !RESPONSE != SERVICE {
            return None;
        }
        let second = || u8_at(bytes, 3).map(|second| second >> 1);
        let control = match first & 3 {
            // The bit of a poll does not matter.
            3 => match first & !0x10 {
                0x6f => Control::Connect,
                0x43 => Control::Disconnect,
                _ => Control::Other,
            },
            1 => Control::Supervisory { expects: second()? },
            _ => Control::Information { number: first >> 1, expects: second()? },
        };
        let session = match control {
            Control::Information { .. } => SessionFrame::parse(
                bytes.get(LLC_BYTES..)?,
                length.saturating_sub(LLC_BYTES as u32),
            ),
            _ => None,
        };
        Some(Frame { control, session })
    }
}

impl<'a> SessionFrame<'a> {
    fn parse(bytes: &'a [u8], length: u32) -> Option<SessionFrame<'a>> {
        let header: &[u8; HEADER_BYTES as usize] = array_at(bytes, 0)?;
        if u16_at(header, 0)? != HEADER_BYTES || array_at(header, 2)? != &MARK {
            return None;
        }
        Some(SessionFrame {
            command: Command(u8_at(header, 4)?),
            destination: u8_at(header, 12)?,
            source: u8_at(header, 13)?,
            data: bytes.get(header.len()..)?,
            length: length.saturating_sub(u32::from(HEADER_BYTES)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: &[u8]) -> Option<Frame<'_>> {
        Frame::parse(bytes, bytes.len() as u32)
    }

    #[test]
    fn reads_what_llc_does() {
        let control = |bytes: &[u8]| frame(bytes).map(|frame| frame.control);
        assert_eq!(control(&[0xf0, 0xf0, 0x7f]), Some(Control::Connect));
        assert_eq!(control(&[0xf0, 0xf0, 0x53]), Some(Control::Disconnect));
        assert_eq!(control(&[0xf0, 0xf1, 0x73]), Some(Control::Other), "UA");
        assert_eq!(control(&[0xf0, 0xf1, 1, 10]), Some(Control::Supervisory { expects: 5 }));
        let numbered = Some(Control::Information { number: 3, expects: 4 });
        assert_eq!(control(&[0xf0, 0xf0, 6, 9]), numbered);
        assert_eq!(control(&[0xf0, 0xf0, 6]), None, "cut");
        assert_eq!(control(&[0xaa, 0xaa, 3]), None);
    }

    #[test]
    fn reads_the_data_of_a_session() {
        let mut bytes = vec![0xf0, 0xf0, 0, 0, 14, 0, 0xff, 0xef, 0x16, 0, 0, 0, 1, 0, 0, 0, 7, 9];
        bytes.extend(b"\xffSMB");
        let session = frame(&bytes).unwrap().session.unwrap();
        assert_eq!(session.command, Command::DATA_ONLY_LAST);
        assert_eq!((session.destination, session.source), (7, 9));
        assert_eq!((session.data, session.length), (&b"\xffSMB"[..], 4));
        let cut = Frame::parse(&bytes[..20], 1_000).unwrap().session.unwrap();
        assert_eq!((cut.data.len(), cut.length), (2, 982));
        for length in 0..bytes.len() {
            let _ = frame(&bytes[..length]);
        }
        bytes[6] = 0;
        assert_eq!(frame(&bytes).unwrap().session, None, "no mark");
    }
}
