//! A pcap file without file contents: headers and the bytes of a message that decoding needs
//! (`wanted_bytes`) are kept, all other payload is zeroed.
//!
//! Decoding keeps a compound up to its last header, including written data in between; here each
//! member is handled by itself. Payload that cannot be assigned to a message, because packets were
//! lost, retransmitted or out of order, is zeroed as well.
//! <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html>

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use smbscope_wire::nbss::{self, Kind};
use smbscope_wire::smb1;
use smbscope_wire::smb2::{self, Header};

use super::{Error, Packet};
use crate::file::LinkType;
use crate::frame::{FlowKey, TcpFlags, TcpSegment};
use crate::stream::framer::is_plausible;

/// First bytes of a pcap file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const SNAP_BYTES: u32 = 262_144;
/// Bytes of a message that are kept at most.
const HEAD_MAX: usize = 64 << 10;
/// Directions that are followed; beyond that all are found again at their next message.
const HALVES_MAX: usize = 1 << 15;
/// Fixed parts of what is encrypted and compressed (MS-SMB2 sections 2.2.41 and 2.2.42).
const TRANSFORM_BYTES: usize = 52;
const COMPRESSION_BYTES: usize = 16;
/// SMB1's header and the number of parameter words.
const SMB1_BYTES: usize = smb1::HEADER_BYTES + 1;

/// A file of packets.
pub struct RedactedPcap {
    path: PathBuf,
    file: BufWriter<File>,
    halves: HashMap<(FlowKey, bool), Half>,
    bytes: Vec<u8>,
}

impl RedactedPcap {
    /// Begins a file that its owner alone can read.
    pub fn create(path: &Path, overwrite: bool) -> Result<RedactedPcap, Error> {
        let failed = |error| Error::Pcap { path: path.to_owned(), error };
        let mut options = OpenOptions::new();
        options.write(true);
        if overwrite {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(failed)?;
        let mut file = BufWriter::with_capacity(1 << 16, file);
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC.to_le_bytes());
        header.extend([2, 0, 4, 0]);
        header.extend([0; 8]);
        header.extend(SNAP_BYTES.to_le_bytes());
        header.extend(u32::from(LinkType::RAW.0).to_le_bytes());
        file.write_all(&header).map_err(failed)?;
        Ok(RedactedPcap { path: path.to_owned(), file, halves: HashMap::new(), bytes: Vec::new() })
    }

    /// Keeps a packet.
    pub fn packet(&mut self, packet: &Packet<'_>, segment: &TcpSegment<'_>) -> Result<(), Error> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend_from_slice(packet.bytes);
        // Headers, payload, padding; the padding may be old memory of the sender.
        let behind = |part: &[u8]| part.as_ptr() as usize - packet.bytes.as_ptr() as usize;
        let start = match segment.payload {
            [] => bytes.len(),
            payload => behind(payload),
        };
        let end = start + segment.payload.len();
        if let Some(padding) = bytes.get_mut(end..) {
            padding.fill(0);
        }
        if let Some(payload) = bytes.get_mut(start..end) {
            self.half(segment).mask(payload, segment);
        }
        let written = self.write(&bytes, packet);
        self.bytes = bytes;
        written.map_err(|error| self.failed(error))
    }

    /// Writes what is held.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(|error| self.failed(error))
    }

    fn half(&mut self, segment: &TcpSegment<'_>) -> &mut Half {
        if self.halves.len() >= HALVES_MAX {
            self.halves.clear();
        }
        self.halves.entry(FlowKey::from_segment(segment)).or_default()
    }

    fn write(&mut self, bytes: &[u8], packet: &Packet<'_>) -> io::Result<()> {
        let time = packet.time.max(0) as u64;
        let words = [time / 1_000_000_000, time % 1_000_000_000, bytes.len() as u64];
        for word in words.map(|word| word as u32).into_iter().chain([packet.original]) {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file.write_all(bytes)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Pcap { path: self.path.clone(), error }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// In the NetBIOS header.
    #[default]
    Framing,
    /// In what is kept of a message, or of a member of a compound.
    Kept,
    /// In what is not.
    Skipped,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Half {
    /// The next sequence number; none while the position in the stream is unknown.
    next: Option<u32>,
    phase: Phase,
    /// What is kept of the present member, as far as it was seen.
    head: Vec<u8>,
    want: usize,
    /// Bytes of the member that were not seen yet.
    member_left: usize,
    /// Bytes of the message behind the member.
    message_left: usize,
}

impl Half {
    fn mask(&mut self, payload: &mut [u8], segment: &TcpSegment<'_>) {
        let is_syn = segment.flags.has(TcpFlags::SYN);
        let sequence = segment.sequence.wrapping_add(u32::from(is_syn));
        let length = segment.payload_len as usize;
        if is_syn {
            *self = Half { next: Some(sequence), ..Half::default() };
        }
        if length == 0 {
            return;
        }
        if self.next != Some(sequence) {
            if self.next.is_some_and(|next| (sequence.wrapping_sub(next) as i32) < 0) {
                // A retransmission: it was kept the first time.
                return payload.fill(0);
            }
            *self = Half::default();
            if !is_plausible(payload) {
                return payload.fill(0);
            }
        }
        self.next = Some(sequence.wrapping_add(segment.payload_len));
        let mut at = 0;
        while at < length {
            let Some(taken) = self.step(payload, at, length) else {
                *self = Half::default();
                if let Some(rest) = payload.get_mut(at..) {
                    rest.fill(0);
                }
                return;
            };
            at += taken;
        }
    }

    /// Continues at `at`. Returns the number of bytes handled, or none if the position in the
    /// stream is unknown.
    fn step(&mut self, payload: &mut [u8], at: usize, length: usize) -> Option<usize> {
        let captured = payload.get(at..).unwrap_or_default();
        match self.phase {
            Phase::Framing => {
                let taken = captured.len().min(nbss::HEADER_BYTES - self.head.len());
                self.head.extend_from_slice(captured.get(..taken)?);
                if self.head.len() < nbss::HEADER_BYTES {
                    // The packet's end, or what was not captured.
                    return (at + taken == length).then_some(taken);
                }
                let header = nbss::Header::parse(&self.head)?;
                self.head.clear();
                self.message_left = header.length as usize;
                if !header.kind.is_known() {
                    return None;
                }
                self.begin_member();
                if header.kind != Kind::SESSION_MESSAGE && header.length > 0 {
                    self.phase = Phase::Skipped;
                }
                Some(taken)
            }
            Phase::Kept => {
                let room = (self.want - self.head.len()).min(self.member_left);
                let taken = captured.len().min(room);
                self.head.extend_from_slice(captured.get(..taken)?);
                self.member_left -= taken;
                if taken < room {
                    if at + taken < length {
                        self.phase = Phase::Skipped;
                    }
                    return Some(taken);
                }
                let left = self.head.len() + self.member_left;
                let (want, total) = kept(&self.head, left)?;
                self.message_left += left - total;
                self.member_left = total - self.head.len();
                self.want = want.min(HEAD_MAX);
                if self.want <= self.head.len() || self.member_left == 0 {
                    self.skip();
                }
                Some(taken)
            }
            Phase::Skipped => {
                let taken = self.member_left.min(length - at);
                let zero = taken.min(captured.len());
                payload.get_mut(at..at + zero)?.fill(0);
                self.member_left -= taken;
                self.skip();
                Some(taken)
            }
        }
    }

    fn skip(&mut self) {
        self.phase = Phase::Skipped;
        if self.member_left == 0 {
            self.begin_member();
        }
    }

    fn begin_member(&mut self) {
        self.head.clear();
        self.want = 4;
        self.member_left = std::mem::take(&mut self.message_left);
        self.phase = if self.member_left == 0 { Phase::Framing } else { Phase::Kept };
    }
}

/// For a member (or whole message) of at most `left` bytes that begins with `head`: the bytes to
/// keep, as far as `head` shows, and its length. None if it is not a message.
fn kept(head: &[u8], left: usize) -> Option<(usize, usize)> {
    let keep = match *head {
        [0xfe, b'S', b'M', b'B', ..] => {
            let Some(header) = Header::parse(head) else {
                return Some((smb2::HEADER_BYTES, left)).filter(|_| left > head.len());
            };
            let next = header.next_command as usize;
            let total = if (smb2::HEADER_BYTES..left).contains(&next) { next } else { left };
            if total < head.len() {
                return None;
            }
            let own = smb2::need(header.command, !header.is_response());
            let own = if own <= head.len() { smb2::need_more(head) } else { own };
            return Some((own.min(total), total));
        }
        [0xff, b'S', b'M', b'B', ..] => smb1_kept(head, left),
        [0xfd, b'S', b'M', b'B', ..] => TRANSFORM_BYTES,
        [0xfc, b'S', b'M', b'B', ..] => COMPRESSION_BYTES,
        _ => return None,
    };
    Some((keep.min(left), left))
}

/// A chain's later commands may carry data, so of a chain only the first one's words are kept.
fn smb1_kept(head: &[u8], length: usize) -> usize {
    let Some(&words) = head.get(SMB1_BYTES - 1) else { return SMB1_BYTES };
    let words = SMB1_BYTES + 2 * usize::from(words);
    if head.len() < words.min(length) {
        return words;
    }
    let is_reply = head.get(9).is_some_and(|flags| flags & 0x80 != 0);
    let first = smb1::Message::new(head, length).and_then(|message| message.blocks().next());
    match first {
        Some(block) if block.and_x().is_none() => smb1::need(head, !is_reply, length),
        _ => words,
    }
}

#[cfg(test)]
mod tests;
