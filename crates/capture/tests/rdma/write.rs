//! Writes SMB Direct: messages to fragments, fragments to RoCE packets or iWARP streams. Made from
//! the specifications' layouts, apart from the decoder.

use std::ops::Range;

use crate::support::talk::{Said, Talk};

/// A message in fragments of at most `most` bytes of data (MS-SMBD section 2.2.3).
pub fn fragments(message: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut left = message.len();
    let parts = message.chunks(most).map(|data| {
        left -= data.len();
        let mut bytes = vec![0xff, 0, 1, 0, 0, 0, 0, 0];
        for field in [left as u32, 24, data.len() as u32, 0] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend_from_slice(data);
        bytes
    });
    parts.collect()
}

/// Negotiate request and response (MS-SMBD sections 2.2.1 and 2.2.2).
pub fn negotiation() -> [Vec<u8>; 2] {
    let sizes =
        |sizes: &[u32]| -> Vec<u8> { sizes.iter().flat_map(|size| size.to_le_bytes()).collect() };
    let request = [&[0, 1, 0, 1, 0, 0, 255, 0][..], &sizes(&[1_364, 8_192, 1 << 20])].concat();
    let head = [0, 1, 0, 1, 0, 1, 0, 0, 255, 0, 255, 0, 0, 0, 0, 0];
    let response = [&head[..], &sizes(&[1 << 20, 1_364, 8_192, 1 << 20])].concat();
    [request, response]
}

/// A credit message without data.
pub fn credits() -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 9, 0, 1, 0, 0, 0];
    bytes.resize(20, 0);
    bytes
}

/// A packet of RoCE.
#[derive(Clone, Debug)]
pub struct Packet {
    pub time: i64,
    pub to_server: bool,
    pub opcode: u8,
    pub psn: u32,
    pub queue_pair: u32,
    /// What follows the Base Transport Header, without ICRC.
    pub rest: Vec<u8>,
}

pub const SEND: [u8; 4] = [0, 1, 2, 4];
pub const ACK: u8 = 0x11;

/// How a conversation is sent by RoCE.
#[derive(Clone)]
pub struct Roce {
    /// The queue pairs of client and server, and the numbers of their first packets.
    pub queue_pairs: [u32; 2],
    pub psns: [u32; 2],
    pub mtu: usize,
    /// Data of a fragment, at most.
    pub fragment: usize,
    /// The connection manager's messages, the negotiation and a credit message.
    pub begins: bool,
    pub client_port: u16,
}

impl Default for Roce {
    fn default() -> Roce {
        Roce {
            queue_pairs: [0x11, 0x22a3],
            psns: [0xff_fff0, 7_000],
            mtu: 1_024,
            fragment: 1_340,
            begins: true,
            client_port: 50_000,
        }
    }
}

/// The state of a sender: numbers of its next packets.
pub struct Sender<'a> {
    roce: &'a Roce,
    next: [u32; 2],
    pub packets: Vec<Packet>,
}

impl Roce {
    pub fn sender(&self) -> Sender<'_> {
        Sender { roce: self, next: self.psns, packets: Vec::new() }
    }

    pub fn send(&self, talk: &Talk) -> Vec<Packet> {
        let mut sender = self.sender();
        let begin = talk.said.first().map_or(0, |said| said.time) - 1_000_000;
        if self.begins {
            sender.connect(begin);
        }
        for said in &talk.said {
            sender.message(said);
        }
        sender.packets
    }
}

impl Sender<'_> {
    fn push(&mut self, time: i64, to_server: bool, opcode: u8, psn: u32, rest: Vec<u8>) {
        let queue_pair = self.roce.queue_pairs[usize::from(to_server)];
        let psn = psn & 0xff_ffff;
        self.packets.push(Packet { time, to_server, opcode, psn, queue_pair, rest });
    }

    /// A request packet, with the next number.
    pub fn request(&mut self, time: i64, to_server: bool, opcode: u8, rest: Vec<u8>) -> u32 {
        let next = &mut self.next[usize::from(!to_server)];
        let psn = *next;
        *next += 1;
        self.push(time, to_server, opcode, psn, rest);
        psn
    }

    /// An answer with the number of what it answers.
    pub fn respond(&mut self, time: i64, to_server: bool, opcode: u8, psn: u32, rest: Vec<u8>) {
        self.push(time, to_server, opcode, psn, rest);
    }

    /// The next request has a number that much higher.
    pub fn skip(&mut self, to_server: bool, numbers: u32) {
        self.next[usize::from(!to_server)] += numbers;
    }

    /// The receiver acknowledges what goes in that direction: a syndrome.
    pub fn acknowledge(&mut self, time: i64, to_server: bool, psn: u32, syndrome: u8) {
        self.push(time, !to_server, ACK, psn, vec![syndrome, 0, 0, 1]);
    }

    /// ConnectRequest, ConnectReply, negotiation and credits.
    fn connect(&mut self, time: i64) {
        let management = |attribute: u8, fields: &[(usize, &[u8])]| -> Vec<u8> {
            let mut bytes = vec![0; 8 + 256];
            bytes[..8].copy_from_slice(&[0x80, 1, 0, 0, 0, 0, 0, 1]);
            bytes[8..12].copy_from_slice(&[1, 7, 2, 3]);
            bytes[8 + 17] = attribute;
            for (at, value) in fields {
                bytes[8 + 24 + at..8 + 24 + at + value.len()].copy_from_slice(value);
            }
            bytes
        };
        let queue_pairs = self.roce.queue_pairs.map(|number| number << 8).map(u32::to_be_bytes);
        let port = self.roce.client_port.to_be_bytes();
        // The identifiers differ from connection to connection.
        let id = [&queue_pairs[0][..2], &port[..]].concat();
        let service = [0, 0, 0, 0, 1, 6, 1, 0xbd];
        let mtu = [((self.roce.mtu / 128).trailing_zeros() as u8) << 4];
        let request = management(
            0x10,
            &[(0, &id), (8, &service), (32, &queue_pairs[0][..3]), (50, &mtu), (142, &port)],
        );
        let reply = management(0x13, &[(0, &[9; 4]), (4, &id), (12, &queue_pairs[1][..3])]);
        for (to_server, rest) in [(true, request), (false, reply)] {
            let packet = Packet { time, to_server, opcode: 0x64, psn: 0, queue_pair: 1, rest };
            self.packets.push(packet);
        }
        let [request, response] = negotiation();
        for (to_server, message) in [(true, request), (false, response), (true, credits())] {
            self.fragment(time, to_server, &message);
        }
    }

    fn message(&mut self, said: &Said) {
        for fragment in fragments(&said.bytes[4..], self.roce.fragment) {
            self.fragment(said.time, said.to_server, &fragment);
        }
    }

    /// One Send, acknowledged.
    pub fn fragment(&mut self, time: i64, to_server: bool, bytes: &[u8]) {
        let count = bytes.len().div_ceil(self.roce.mtu);
        let mut last = 0;
        for (index, part) in bytes.chunks(self.roce.mtu).enumerate() {
            let place = match (index == 0, index + 1 == count) {
                (true, true) => 3,
                (true, false) => 0,
                (false, false) => 1,
                (false, true) => 2,
            };
            last = self.request(time, to_server, SEND[place], part.to_vec());
        }
        self.acknowledge(time, to_server, last, 0x1f);
    }
}

/// A pcap file of packets in Ethernet, IPv4 and UDP, cut to `snap` bytes each.
pub fn pcap(packets: &[Packet], snap: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for packet in packets {
        let frame = frame(packet);
        let captured = frame.len().min(snap);
        let (seconds, rest) = (packet.time / 1_000_000_000, packet.time % 1_000_000_000);
        for word in [seconds as u32, rest as u32, captured as u32, frame.len() as u32] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&frame[..captured]);
    }
    out
}

/// The padding is in the packet (InfiniBand volume 1 section 9.2.5), the ICRC is zero.
pub fn frame(packet: &Packet) -> Vec<u8> {
    let pad = (4 - packet.rest.len() % 4) % 4;
    let length = 12 + packet.rest.len() + pad + 4;
    let mut out = vec![2; 12];
    out.extend_from_slice(&[8, 0, 0x45, 0]);
    out.extend_from_slice(&((28 + length) as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    let (client, server) = ([192, 0, 2, 1], [192, 0, 2, 9]);
    let addresses = if packet.to_server { [client, server] } else { [server, client] };
    out.extend_from_slice(addresses.as_flattened());
    // The source port varies with the queue pair, for the network's hashes.
    out.extend_from_slice(&(0xc000 | packet.queue_pair as u16 & 0x3fff).to_be_bytes());
    out.extend_from_slice(&4_791_u16.to_be_bytes());
    out.extend_from_slice(&((8 + length) as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0, packet.opcode, (pad as u8) << 4, 0xff, 0xff, 0]);
    out.extend_from_slice(&packet.queue_pair.to_be_bytes()[1..]);
    out.push(0x80);
    out.extend_from_slice(&packet.psn.to_be_bytes()[1..]);
    out.extend_from_slice(&packet.rest);
    out.resize(out.len() + pad + 4, 0);
    out
}

/// The packets as RoCE v1 has them: a Global Route Header instead of IP and UDP.
pub fn as_version_1(capture: &[u8]) -> Vec<u8> {
    let mut out = capture[..24].to_vec();
    let mut at = 24;
    while at < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        let frame = &capture[at + 16..at + 16 + length];
        let packet = &frame[42..];
        let mapped = |address: &[u8]| [&[0; 10][..], &[0xff; 2], address].concat();
        let mut v1 = frame[..12].to_vec();
        v1.extend([0x89, 0x15, 0x60, 0, 0, 0]);
        v1.extend((packet.len() as u16).to_be_bytes());
        v1.extend([0x1b, 64]);
        v1.extend(mapped(&frame[26..30]));
        v1.extend(mapped(&frame[30..34]));
        v1.extend_from_slice(packet);
        out.extend_from_slice(&capture[at..at + 8]);
        out.extend((v1.len() as u32).to_le_bytes().repeat(2));
        out.extend(v1);
        at += 16 + length;
    }
    out
}

/// Runs of packets of one direction and time: retransmission within them changes no time.
pub fn runs(packets: &[Packet]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        match out.last_mut() {
            Some(run)
                if packets[run.start].time == packet.time
                    && packets[run.start].to_server == packet.to_server
                    && packet.opcode <= 4
                    && packets[run.start].opcode <= 4 =>
            {
                run.end = index + 1;
            }
            _ => out.push(index..index + 1),
        }
    }
    out
}

/// The conversation as the two streams of iWARP: its messages are frames. `markers` are in the
/// server's stream only, because the client wants them.
pub fn iwarp(talk: &Talk, fragment: usize, segment: usize, markers: bool) -> Talk {
    let mut out = Talk { said: Vec::new(), now: talk.now };
    let mut positions = [0_usize; 2];
    let begin = talk.said.first().map_or(0, |said| said.time) - 500_000;
    let flags = if markers { 0x80 } else { 0 };
    let [request, response] = negotiation();
    for (to_server, key, flags) in
        [(true, b"MPA ID Req Frame", flags), (false, b"MPA ID Rep Frame", 0)]
    {
        let bytes = [&key[..], &[flags, 1, 0, 0]].concat();
        out.said.push(Said { to_server, time: begin, bytes });
    }
    let mut numbers = [0_u32; 2];
    let mut say = |time, to_server: bool, send: &[u8]| {
        let number = &mut numbers[usize::from(to_server)];
        *number += 1;
        let mut bytes = Vec::new();
        let count = send.len().div_ceil(segment);
        for (index, part) in send.chunks(segment).enumerate() {
            let is_last = index + 1 == count;
            let mut content = vec![if is_last { 0x41 } else { 0x01 }, 0x43, 0, 0, 0, 0, 0, 0, 0, 0];
            content.extend(number.to_be_bytes());
            content.extend(((index * segment) as u32).to_be_bytes());
            content.extend_from_slice(part);
            bytes.extend((content.len() as u16).to_be_bytes());
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(4) + 4, 0);
        }
        if markers && !to_server {
            let position = &mut positions[0];
            let mut with = Vec::new();
            for byte in bytes {
                if *position % 512 == 0 {
                    with.extend([0xaa; 4]);
                    *position += 4;
                }
                with.push(byte);
                *position += 1;
            }
            bytes = with;
        }
        out.said.push(Said { to_server, time, bytes });
    };
    say(begin, true, &request);
    say(begin, false, &response);
    say(begin, true, &credits());
    for said in &talk.said {
        for part in fragments(&said.bytes[4..], fragment) {
            say(said.time, said.to_server, &part);
        }
    }
    out
}
