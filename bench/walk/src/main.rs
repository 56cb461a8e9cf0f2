//! The limit: a single-threaded walk over a mapped classic pcap (little-endian, Ethernet, IPv4).
//!
//! It parses headers, puts late segments in order, skips payload by the NetBIOS length and pairs
//! SMB2 requests with replies by MessageId. It has no names, no columns, no times, no SMB1, and no
//! defence against hostile input: what a decoder that does all that can at best approach.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, value: u64) {
        let wide = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
}

type Map<V> = HashMap<u64, V, BuildHasherDefault<Mix>>;

#[derive(Default)]
struct Half {
    next: Option<u32>,
    /// Bytes of the message at hand that are still to be skipped.
    skip: u64,
    /// Beginning of a message that does not lie in one segment.
    head: Vec<u8>,
    late: Vec<(u32, Vec<u8>)>,
}

#[derive(Default)]
struct Flow {
    halves: [Half; 2],
    waiting: Map<()>,
    found: Found,
}

#[derive(Clone, Copy, Default)]
struct Found {
    requests: u64,
    paired: u64,
}

fn u16_be(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_be(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u32_le(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn main() {
    let path = std::env::args_os().nth(1).expect("usage: walk FILE.pcap");
    let file = std::fs::File::open(path).expect("cannot open the file");
    // SAFETY: the benchmark's own file, which does not change meanwhile.
    let map = unsafe { memmap2::Mmap::map(&file) }.expect("cannot map the file");
    let _ = map.advise(memmap2::Advice::Sequential);
    let bytes = &map[..];
    assert!(matches!(u32_le(bytes, 0), 0xa1b2_c3d4 | 0xa1b2_3c4d), "not a little-endian pcap");
    let mut flows: Vec<Flow> = Vec::new();
    let mut table: Map<usize> = Map::default();
    let mut last = (0_u64, usize::MAX);
    let (mut packets, mut at) = (0_u64, 24);
    while at + 16 <= bytes.len() {
        let captured = u32_le(bytes, at + 8) as usize;
        let Some(frame) = bytes.get(at + 16..at + 16 + captured) else { break };
        at += 16 + captured;
        packets += 1;
        if frame.len() < 54 || u16_be(frame, 12) != 0x0800 || frame[23] != 6 {
            continue;
        }
        let ip = &frame[14..];
        let header = usize::from(ip[0] & 15) * 4;
        let total = usize::from(u16_be(ip, 2));
        let tcp = &ip[header..total.min(ip.len())];
        let payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
        let (source, destination) = (u32_be(ip, 12), u32_be(ip, 16));
        let (from, to) = (u16_be(tcp, 0), u16_be(tcp, 2));
        let forward = (source, from) < (destination, to);
        let (low, high) = if forward {
            ((source, from), (destination, to))
        } else {
            ((destination, to), (source, from))
        };
        let mut mix = Mix(u64::from(low.0) << 32 | u64::from(high.0));
        mix.write_u64(u64::from(low.1) << 16 | u64::from(high.1));
        let key = mix.finish();
        if last.0 != key || last.1 == usize::MAX {
            let place = *table.entry(key).or_insert_with(|| {
                flows.push(Flow::default());
                flows.len() - 1
            });
            last = (key, place);
        }
        let flow = &mut flows[last.1];
        let sequence = u32_be(tcp, 4);
        if tcp[13] & 2 != 0 {
            flow.halves[usize::from(forward)].next = Some(sequence.wrapping_add(1));
        }
        if !payload.is_empty() {
            segment(flow, usize::from(forward), sequence, payload);
        }
    }
    let (mut requests, mut paired) = (0, 0);
    for flow in &flows {
        requests += flow.found.requests;
        paired += flow.found.paired;
    }
    println!("{packets} packets, {} bytes, {requests} operations, {paired} paired", bytes.len());
}

fn segment(flow: &mut Flow, side: usize, sequence: u32, payload: &[u8]) {
    let half = &mut flow.halves[side];
    let next = half.next.unwrap_or(sequence);
    let ahead = sequence.wrapping_sub(next) as i32;
    if ahead > 0 {
        half.late.push((sequence, payload.to_vec()));
        return;
    }
    let seen = ahead.unsigned_abs() as usize;
    if seen >= payload.len() {
        return;
    }
    half.next = Some(sequence.wrapping_add(payload.len() as u32));
    stream(flow, side, &payload[seen..]);
    if !flow.halves[side].late.is_empty() {
        let next = flow.halves[side].next.unwrap_or(0);
        let ready =
            flow.halves[side].late.iter().position(|(s, _)| next.wrapping_sub(*s) as i32 >= 0);
        if let Some(ready) = ready {
            let (sequence, payload) = flow.halves[side].late.swap_remove(ready);
            segment(flow, side, sequence, &payload);
        }
    }
}

fn stream(flow: &mut Flow, side: usize, mut bytes: &[u8]) {
    loop {
        let half = &mut flow.halves[side];
        let skipped = half.skip.min(bytes.len() as u64) as usize;
        half.skip -= skipped as u64;
        bytes = &bytes[skipped..];
        if bytes.is_empty() {
            return;
        }
        if half.head.is_empty() {
            if let Some(length) = message(bytes, &mut flow.waiting, &mut flow.found) {
                flow.halves[side].skip = length;
                continue;
            }
            flow.halves[side].head.extend_from_slice(bytes);
            return;
        }
        // The beginning is in pieces: more of it, a little at a time.
        let before = half.head.len();
        let more = bytes.len().min(128);
        half.head.extend_from_slice(&bytes[..more]);
        let head = std::mem::take(&mut half.head);
        match message(&head, &mut flow.waiting, &mut flow.found) {
            Some(length) if length <= head.len() as u64 => {
                bytes = &bytes[(length as usize).saturating_sub(before)..];
            }
            Some(length) => {
                flow.halves[side].skip = length - head.len() as u64;
                bytes = &bytes[more..];
            }
            None => {
                flow.halves[side].head = head;
                bytes = &bytes[more..];
                if bytes.is_empty() {
                    return;
                }
            }
        }
    }
}

/// The message's length with its NetBIOS header, once all its SMB2 headers are there.
fn message(bytes: &[u8], waiting: &mut Map<()>, found: &mut Found) -> Option<u64> {
    if bytes.len() < 8 {
        return None;
    }
    let length = u64::from(u32_be(bytes, 0) & 0xff_ffff) + 4;
    if bytes[4] != 0xfe {
        return Some(length);
    }
    let mut at = 4;
    loop {
        let header = bytes.get(at..at + 64)?;
        let next = u32_le(header, 20) as usize;
        if next == 0 {
            break;
        }
        at += next;
    }
    at = 4;
    loop {
        let header = &bytes[at..at + 64];
        let id = u64::from_le_bytes(header[24..32].try_into().expect("eight bytes"));
        if header[16] & 1 == 0 {
            found.requests += 1;
            waiting.insert(id, ());
        } else if u32_le(header, 8) != 0x103 && waiting.remove(&id).is_some() {
            found.paired += 1;
        }
        let next = u32_le(header, 20) as usize;
        if next == 0 {
            return Some(length);
        }
        at += next;
    }
}
