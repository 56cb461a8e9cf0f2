//! IEEE 802.11 data frames, and what recorders put in front of them.
//!
//! Owns where the LLC header of a data frame is. Frames that are encrypted stay closed, unless the
//! recorder decrypted them and left the bit set. IEEE 802.11-2020 section 9.3.2, radiotap.org.

use std::ops::Range;

use super::layers::{Layer, Layers};
use super::{Next, NotTcp, Step, be16, byte, host32};

/// Bits of the second byte of a frame.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// What an LLC header begins with that carries IP.
const SNAP: [u8; 3] = [0xaa, 0xaa, 3];
/// Bytes between the header and an encrypted payload: WEP, then TKIP and CCMP.
const KEY_BYTES: [usize; 2] = [4, 8];
/// Addresses and the length of a frame that is aggregated with others (A-MSDU).
const SUBFRAME_BYTES: usize = 14;

/// Frames that are sent as one (A-MSDU).
const SUBFRAMES_MAX: usize = 64;

/// Where the payload of a data frame is.
struct Payload {
    start: usize,
    /// It consists of several frames with addresses and a length each.
    is_aggregated: bool,
}

/// A data frame; of several in one the first.
pub(super) fn data(bytes: &[u8], at: usize, layers: &mut Layers) -> Step {
    let payload = payload(bytes, at)?;
    layers.add(Layer::Wireless);
    let inside = if payload.is_aggregated { SUBFRAME_BYTES } else { 0 };
    Ok((Next::Llc, payload.start + inside))
}

/// The frames that are sent as one, each of which begins like an Ethernet frame with a length. Empty
/// for any other frame.
pub(super) fn subframes(bytes: &[u8], at: usize) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let Ok(Payload { mut start, is_aggregated: true }) = payload(bytes, at) else { return frames };
    while frames.len() < SUBFRAMES_MAX
        && let Ok(length) = be16(bytes, start + SUBFRAME_BYTES - 2)
    {
        // Shorter than LLC: the end, or not what it seems to be.
        if length < 8 {
            break;
        }
        let end = start + SUBFRAME_BYTES + usize::from(length);
        frames.push(start..end);
        // They are aligned to each other.
        start += (SUBFRAME_BYTES + usize::from(length)).next_multiple_of(4);
    }
    frames
}

fn payload(bytes: &[u8], at: usize) -> Result<Payload, NotTcp> {
    let (kind, flags) = (byte(bytes, at)?, byte(bytes, at + 1)?);
    // Version 0; a data frame; not one of the subtypes without data.
    if kind & 0x0f != 0x08 || kind & 0x40 != 0 {
        return Err(NotTcp::OtherProtocol);
    }
    let has_qos = kind & 0x80 != 0;
    let mut length = 24;
    if flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS {
        length += 6;
    }
    let mut is_aggregated = false;
    if has_qos {
        is_aggregated = byte(bytes, at + length)? & 0x80 != 0;
        length += if flags & ORDER != 0 { 6 } else { 2 };
    }
    // A later fragment has no header; frames are not put together here.
    if byte(bytes, at + 22)? & 0x0f != 0 {
        return Err(NotTcp::Tunnel);
    }
    let start = at + length;
    let inside = if is_aggregated { SUBFRAME_BYTES } else { 0 };
    let is_llc = |start: usize| bytes.get(start + inside..).is_some_and(|b| b.starts_with(&SNAP));
    // Some adapters pad the header to four bytes.
    let padded = at + length.next_multiple_of(4);
    let start = match flags & PROTECTED {
        _ if is_llc(start) => start,
        0 if is_llc(padded) => padded,
        0 => start,
        _ => {
            let decrypted = KEY_BYTES.map(|bytes| start + bytes).into_iter().find(|s| is_llc(*s));
            decrypted.ok_or(NotTcp::Tunnel)?
        }
    };
    Ok(Payload { start, is_aggregated })
}

/// The length of a radiotap header. A frame whose check sum is wrong, as it says, is not read: it
/// is retransmitted.
pub(super) fn radiotap(bytes: &[u8]) -> Result<usize, NotTcp> {
    const WORDS_MAX: usize = 16;
    const BAD_CHECK_SUM: u8 = 0x40;
    let length = bytes.get(2..).and_then(<[u8]>::first_chunk);
    let length = usize::from(u16::from_le_bytes(*length.ok_or(NotTcp::Truncated)?));
    if byte(bytes, 0)? != 0 || length < 8 {
        return Err(NotTcp::Malformed);
    }
    let header = bytes.get(..length).ok_or(NotTcp::Truncated)?;
    let word = |at: usize| header.get(at..).and_then(<[u8]>::first_chunk::<4>);
    let words = (0..WORDS_MAX).take_while(|n| word(4 + 4 * n).is_some_and(|w| w[3] & 0x80 != 0));
    let mut at = 8 + 4 * words.count();
    let present = word(4).map_or(0, |word| word[0]);
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & 2 != 0 { header.get(at).copied().unwrap_or(0) } else { 0 };
    match flags & BAD_CHECK_SUM {
        0 => Ok(length),
        _ => Err(NotTcp::Malformed),
    }
}

/// The length of a Prism header, or of an AVS header where Prism's is expected.
pub(super) fn prism(bytes: &[u8]) -> Result<usize, NotTcp> {
    const AVS_MAGIC: [u8; 3] = [0x80, 0x21, 0x10];
    let length = host32(bytes, 4)?;
    match bytes.starts_with(&AVS_MAGIC) {
        true => Ok(length as usize),
        false if length == 144 => Ok(144),
        false => Err(NotTcp::Malformed),
    }
}
