//! SMB2 messages in the frames of a capture: a small reader for captures without damage, apart from the one that
//! is tested.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};

use super::Frame;

/// One message of a compound, or a message alone.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Time of the last byte of a request, or of the first byte of a response.
    pub time_ns: i64,
    pub client: SocketAddrV4,
    pub is_response: bool,
    /// From the SMB2 header on.
    pub bytes: Vec<u8>,
    /// The message that its compound begins with.
    pub master: u64,
    /// The whole message, at its first member.
    pub whole: Vec<u8>,
}

/// The next sequence number of a stream, and its segments that came early.
#[derive(Default)]
struct Stream {
    next: Option<u32>,
    early: BTreeMap<u32, (i64, Vec<u8>)>,
    /// Bytes not yet read, and the time of each piece of them.
    bytes: Vec<u8>,
    times: Vec<(usize, i64)>,
}

/// The messages between clients and servers on port 445, in the order of time.
pub fn conversation(frames: &[Frame]) -> Vec<Exchange> {
    let mut streams: HashMap<(SocketAddrV4, bool), Stream> = HashMap::new();
    let mut out = Vec::new();
    for frame in frames {
        let Some((client, is_response, sequence, flags, payload)) = segment(&frame.bytes) else {
            continue;
        };
        let stream = streams.entry((client, is_response)).or_default();
        if flags & 2 != 0 {
            *stream = Stream { next: Some(sequence.wrapping_add(1)), ..Stream::default() };
            continue;
        }
        if payload.is_empty() {
            continue;
        }
        let next = *stream.next.get_or_insert(sequence);
        if (sequence.wrapping_sub(next) as i32) < 0 {
            continue;
        }
        stream.early.entry(sequence).or_insert((frame.time_ns, payload.to_vec()));
        while let Some((time_ns, bytes)) = stream.next.and_then(|next| stream.early.remove(&next)) {
            stream.times.push((stream.bytes.len(), time_ns));
            stream.next = stream.next.map(|next| next.wrapping_add(bytes.len() as u32));
            stream.bytes.extend(bytes);
            messages(stream, client, is_response, &mut out);
        }
    }
    out.sort_by_key(|exchange| exchange.time_ns);
    out
}

/// Client, direction, sequence number, flags and payload of a frame with TCP in IPv4.
fn segment(frame: &[u8]) -> Option<(SocketAddrV4, bool, u32, u8, &[u8])> {
    if frame.get(12..14)? != [8, 0] || *frame.get(23)? != 6 {
        return None;
    }
    let be16 = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let ip_end = 14 + usize::from(be16(16)?);
    let tcp = 14 + usize::from(frame[14] & 15) * 4;
    let (source_port, destination_port) = (be16(tcp)?, be16(tcp + 2)?);
    let address = |at: usize| {
        let four: [u8; 4] = frame[at..at + 4].try_into().unwrap();
        Ipv4Addr::from(four)
    };
    let is_response = match (source_port, destination_port) {
        (445, _) => true,
        (_, 445) => false,
        _ => return None,
    };
    let client = if is_response {
        SocketAddrV4::new(address(30), destination_port)
    } else {
        SocketAddrV4::new(address(26), source_port)
    };
    let sequence = u32::from_be_bytes(frame.get(tcp + 4..tcp + 8)?.try_into().ok()?);
    let start = tcp + usize::from(frame.get(tcp + 12)? >> 4) * 4;
    let payload = frame.get(start..ip_end.min(frame.len()))?;
    Some((client, is_response, sequence, frame[tcp + 13], payload))
}

/// Takes whole messages from the bytes of a stream.
fn messages(stream: &mut Stream, client: SocketAddrV4, is_response: bool, out: &mut Vec<Exchange>) {
    while stream.bytes.len() >= 4 {
        let length = u32::from_be_bytes(stream.bytes[..4].try_into().unwrap()) & 0xff_ffff;
        let end = 4 + length as usize;
        if stream.bytes.len() < end {
            return;
        }
        let time_at = |at: usize| {
            stream.times.iter().rev().find(|(from, _)| *from <= at).map_or(0, |(_, time)| *time)
        };
        let time_ns = if is_response { time_at(0) } else { time_at(end - 1) };
        let message: Vec<u8> = stream.bytes.drain(..end).skip(4).collect();
        let times = std::mem::take(&mut stream.times);
        let (mut before, mut after) = (None, Vec::new());
        for (from, time) in times {
            match from.checked_sub(end) {
                Some(from) => after.push((from, time)),
                None => before = Some((0, time)),
            }
        }
        stream.times = before.into_iter().chain(after).collect();
        let mut rest = &message[..];
        let master = number(rest, 24, 8);
        while rest.len() >= 64 && rest.starts_with(b"\xfeSMB") {
            let next = number(rest, 20, 4) as usize;
            let (member, following) = match next {
                64.. if next < rest.len() => rest.split_at(next),
                _ => (rest, &[][..]),
            };
            let whole = if rest.len() == message.len() { message.clone() } else { Vec::new() };
            let bytes = member.to_vec();
            out.push(Exchange { time_ns, client, is_response, bytes, master, whole });
            rest = following;
        }
    }
}

/// A little-endian number, 0 where the message is shorter.
pub fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let mut eight = [0; 8];
    if let Some(bytes) = bytes.get(at..at + length) {
        eight[..length].copy_from_slice(bytes);
    }
    u64::from_le_bytes(eight)
}
