//! Converts a conversation to TCP segments, and segments to a pcap file.

use std::ops::Range;

use super::Dice;
use super::talk::Talk;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

/// One segment.
#[derive(Clone, Debug)]
pub struct Packet {
    pub time: i64,
    pub to_server: bool,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub payload: Vec<u8>,
    /// Indices in the conversation of the messages whose bytes it carries.
    pub carries: Range<usize>,
    pub client_port: u16,
    pub server_port: u16,
}

/// How a conversation is sent.
#[derive(Clone)]
pub struct Sending {
    /// Initial sequence numbers of client and server.
    pub initial: [u32; 2],
    pub handshake: bool,
    pub client_port: u16,
    pub server_port: u16,
}

impl Default for Sending {
    fn default() -> Self {
        Sending { initial: [1_000, 9_000], handshake: true, client_port: 50_000, server_port: 445 }
    }
}

impl Sending {
    /// Segments of the size that `cut` returns for a position in a message; one side's messages of one
    /// time are one run of bytes, whose segments do not end with its messages.
    pub fn send(&self, talk: &Talk, mut cut: impl FnMut(usize) -> usize) -> Vec<Packet> {
        let mut next = [self.initial[0].wrapping_add(1), self.initial[1].wrapping_add(1)];
        let mut out = Vec::new();
        let packet = |time, to_server, next: &[u32; 2], flags, payload: Vec<u8>, carries| Packet {
            time,
            to_server,
            sequence: next[usize::from(!to_server)],
            acknowledgement: next[usize::from(to_server)],
            flags,
            payload,
            carries,
            client_port: self.client_port,
            server_port: self.server_port,
        };
        let begin = talk.said.first().map_or(0, |said| said.time);
        if self.handshake {
            let time = begin - 1_000_000;
            let before = [self.initial[0], self.initial[1]];
            out.push(packet(time, true, &before, SYN, vec![], 0..0));
            let half = [next[0], self.initial[1]];
            out.push(packet(time + 200_000, false, &half, SYN | ACK, vec![], 0..0));
            out.push(packet(time + 400_000, true, &next, ACK, vec![], 0..0));
        }
        let mut at = 0;
        while let Some(first) = talk.said.get(at) {
            let run = talk.said[at..]
                .iter()
                .take_while(|said| (said.time, said.to_server) == (first.time, first.to_server))
                .count();
            let mut bytes = Vec::new();
            let mut starts = Vec::new();
            for said in &talk.said[at..at + run] {
                starts.push(bytes.len());
                bytes.extend_from_slice(&said.bytes);
            }
            let holder = |place: usize| starts.iter().rposition(|&start| start <= place).unwrap();
            let mut place = 0;
            while place < bytes.len() {
                let into = place - starts[holder(place)];
                let length = cut(into).clamp(1, bytes.len() - place);
                let carries = at + holder(place)..at + holder(place + length - 1) + 1;
                let payload = bytes[place..place + length].to_vec();
                out.push(packet(first.time, first.to_server, &next, ACK, payload, carries));
                let own = &mut next[usize::from(!first.to_server)];
                *own = own.wrapping_add(length as u32);
                place += length;
            }
            at += run;
        }
        out
    }

    /// Every message begins a segment, of 1,460 bytes at most.
    pub fn aligned(&self, talk: &Talk) -> Vec<Packet> {
        let lengths: Vec<usize> = talk.said.iter().map(|said| said.bytes.len()).collect();
        let mut message = 0;
        let mut place = 0;
        self.send(talk, |_| {
            let length = 1_460.min(lengths[message] - place);
            place += length;
            if place == lengths[message] {
                message += 1;
                place = 0;
            }
            length
        })
    }
}

/// Segments of any size up to `most`; within data they are large enough that there are not too many.
pub fn any_size(dice: &mut Dice, most: usize) -> impl FnMut(usize) -> usize {
    move |into| {
        let size = 1 + dice.below(most);
        if into > 300 { size.max(700) } else { size }
    }
}

/// Runs of packets of one side at one time: only within them may the order change without changing the
/// meaning.
pub fn runs(packets: &[Packet]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        let same = out.last().is_some_and(|run| {
            let first = &packets[run.start];
            (first.time, first.to_server) == (packet.time, packet.to_server)
                && !packet.payload.is_empty()
        });
        match out.last_mut() {
            Some(run) if same => run.end = index + 1,
            _ => out.push(index..index + 1),
        }
    }
    out
}

/// Changes the order within runs by at most `window` packets, and sends some again: alone, or with
/// bytes of their neighbours.
pub fn disturb(packets: &[Packet], dice: &mut Dice, window: usize, again: usize) -> Vec<Packet> {
    let mut out = Vec::new();
    for run in runs(packets) {
        let mut sent: Vec<Packet> = Vec::new();
        for index in run.clone() {
            let packet = &packets[index];
            sent.push(packet.clone());
            if packet.payload.is_empty() || dice.below(100) >= again {
                continue;
            }
            let mut copy = packet.clone();
            if index > run.start && dice.below(2) == 0 {
                let before = &packets[index - 1].payload;
                let more = dice.below(before.len() + 1);
                copy.payload.splice(0..0, before[before.len() - more..].iter().copied());
                copy.sequence = copy.sequence.wrapping_sub(more as u32);
            }
            if index + 1 < run.end && dice.below(2) == 0 {
                let after = &packets[index + 1].payload;
                let more = dice.below(after.len() + 1);
                copy.payload.extend_from_slice(&after[..more]);
            }
            if dice.below(2) == 0 {
                let less = dice.below(copy.payload.len());
                copy.payload.truncate(copy.payload.len() - less);
            }
            sent.push(copy);
        }
        out.extend(shuffled(sent, dice, window));
    }
    out
}

/// In another order: at most `window` others overtake each packet.
pub fn shuffled(packets: Vec<Packet>, dice: &mut Dice, window: usize) -> Vec<Packet> {
    let mut placed: Vec<(usize, Packet)> = packets
        .into_iter()
        .enumerate()
        .map(|(index, packet)| (index + dice.below(window + 1), packet))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, packet)| packet).collect()
}

/// Packets of several connections in the order of time.
pub fn mixed(connections: Vec<Vec<Packet>>) -> Vec<Packet> {
    let mut out: Vec<Packet> = connections.into_iter().flatten().collect();
    out.sort_by_key(|packet| packet.time);
    out
}

/// A pcap file with nanoseconds, Ethernet and IPv4, frames cut to `snap` bytes; TCP timestamps
/// take twelve bytes more.
pub fn pcap(packets: &[Packet], snap: usize, timestamps: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for packet in packets {
        let frame = frame(packet, timestamps);
        let captured = frame.len().min(snap);
        let (seconds, rest) = (packet.time / 1_000_000_000, packet.time % 1_000_000_000);
        for word in [seconds as u32, rest as u32, captured as u32, frame.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&frame[..captured]);
    }
    out
}

fn frame(packet: &Packet, timestamps: bool) -> Vec<u8> {
    let options: &[u8] = if packet.flags & SYN != 0 {
        &[2, 4, 5, 0xb4, 3, 3, 7, 1]
    } else if timestamps {
        &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]
    } else {
        &[]
    };
    let length = (40 + options.len() + packet.payload.len()) as u16;
    let mut out = vec![2; 12];
    out.extend_from_slice(&[8, 0, 0x45, 0]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 0, 64, 6, 0, 0]);
    let (client, server) = ([192, 0, 2, 1], [192, 0, 2, 9]);
    let ports = [packet.client_port.to_be_bytes(), packet.server_port.to_be_bytes()];
    let (addresses, ports) = if packet.to_server {
        ([client, server], ports)
    } else {
        ([server, client], [ports[1], ports[0]])
    };
    out.extend_from_slice(addresses.as_flattened());
    out.extend_from_slice(ports.as_flattened());
    out.extend_from_slice(&packet.sequence.to_be_bytes());
    out.extend_from_slice(&packet.acknowledgement.to_be_bytes());
    out.push(((5 + options.len() / 4) << 4) as u8);
    out.push(packet.flags);
    out.extend_from_slice(&[1, 0, 0, 0, 0, 0]);
    out.extend_from_slice(options);
    out.extend_from_slice(&packet.payload);
    out
}
