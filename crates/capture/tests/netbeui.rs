//! SMB1 in NetBEUI: frames of IEEE 802.2 LLC without IP and TCP.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use smbscope_capture::Options;
use support::Dice;
use support::decode::{Decoded, decode, single};

const CLIENT: [u8; 6] = [0x00, 0x0c, 0x29, 0xd4, 0x79, 0xb2];
const SERVER: [u8; 6] = [0x00, 0x50, 0x56, 0x33, 0x78, 0x9e];
const ONLY_LAST: u8 = 0x16;
const FIRST_MIDDLE: u8 = 0x15;

/// Frames with their times in microseconds.
#[derive(Clone, Default)]
struct Link {
    frames: Vec<(u32, Vec<u8>)>,
    now_us: u32,
    /// Numbers of the next frame of client and server.
    next: [u8; 2],
}

impl Link {
    /// A frame with its LLC header, padded as Ethernet does.
    fn llc(&mut self, from: usize, control: &[u8], information: &[u8]) {
        let [to, by] = if from == 0 { [SERVER, CLIENT] } else { [CLIENT, SERVER] };
        let length = (2 + control.len() + information.len()) as u16;
        let mut frame = [&to[..], &by, &length.to_be_bytes(), &[0xf0, 0xf0]].concat();
        frame.extend(control);
        frame.extend(information);
        frame.resize(frame.len().max(60), 0);
        self.frames.push((self.now_us, frame));
    }

    /// A numbered frame of the session 7 (client) and 9 (server).
    fn numbered(&mut self, from: usize, command: u8, data: &[u8]) {
        let own = self.next[from];
        self.next[from] = (own + 1) & 0x7f;
        let numbers = if from == 0 { [9, 7] } else { [7, 9] };
        let header = [14, 0, 0xff, 0xef, command, 0, 0, 0, 0, 0, 0, 0, numbers[0], numbers[1]];
        self.llc(from, &[own << 1, self.next[1 - from] << 1], &[&header[..], data].concat());
    }

    fn connect(&mut self) {
        self.llc(0, &[0x7f], &[]);
        self.llc(1, &[0x73], &[]);
        self.numbered(0, 0x19, &[]);
        self.numbered(1, 0x17, &[]);
    }

    /// A request, its acknowledgement after 75 us, and a reply after 2 ms.
    fn exchange(&mut self, request: &[u8], reply: &[u8]) {
        self.numbered(0, ONLY_LAST, request);
        self.now_us += 75;
        self.llc(1, &[1, self.next[0] << 1], &[]);
        self.now_us += 1_925;
        self.numbered(1, ONLY_LAST, reply);
        self.now_us += 5_000;
    }

    fn pcap(&self) -> Vec<u8> {
        let mut out = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        out.extend([0, 0, 1, 0, 1, 0, 0, 0]);
        for (time_us, frame) in &self.frames {
            for word in [1_600_000_000, *time_us, frame.len() as u32, frame.len() as u32] {
                out.extend(word.to_le_bytes());
            }
            out.extend(frame);
        }
        out
    }

    fn decoded(&self) -> Decoded {
        let decoded = decode(&self.pcap(), &single());
        let sharded = decode(&self.pcap(), &Options { threads: 3, ..Options::default() });
        assert_eq!(decoded.rows(), sharded.rows());
        decoded
    }
}

/// An SMB1 message.
fn smb(command: u8, mid: u16, is_reply: bool, words: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut out = b"\xffSMB".to_vec();
    out.resize(32, 0);
    (out[4], out[9]) = (command, u8::from(is_reply) << 7);
    out[24..26].copy_from_slice(&3_u16.to_le_bytes());
    out[28..30].copy_from_slice(&5_u16.to_le_bytes());
    out[30..32].copy_from_slice(&mid.to_le_bytes());
    out.push((words.len() / 2) as u8);
    out.extend(words);
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
    out
}

fn echo(mid: u16, is_reply: bool) -> Vec<u8> {
    smb(0x2b, mid, is_reply, &[1, 0], b"hello")
}

/// Writes that many bytes at 0 of file 6.
fn write(mid: u16, count: u16) -> Vec<u8> {
    let [low, high] = count.to_le_bytes();
    let bytes = [&[1, low, high][..], &vec![0x20; count.into()]].concat();
    smb(0x0b, mid, false, &[6, 0, low, high, 0, 0, 0, 0, 0, 0], &bytes)
}

fn written(mid: u16, count: u16) -> Vec<u8> {
    smb(0x0b, mid, true, &count.to_le_bytes(), &[])
}

fn commands(decoded: &Decoded) -> Vec<String> {
    decoded.rows().iter().map(|row| row["command"].clone()).collect()
}

#[test]
fn a_session_has_operations_with_times() {
    let mut link = Link::default();
    link.connect();
    (1..4).for_each(|mid| link.exchange(&echo(mid, false), &echo(mid, true)));
    let decoded = link.decoded();
    let rows = decoded.rows();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let of = |name: &str| row.get(name).map(String::as_str);
        assert_eq!((of("command"), of("elapsed_ns")), (Some("Echo"), Some("2000000")));
        assert_eq!(of("client"), Some("fe80::20c:29ff:fed4:79b2"));
        assert_eq!((of("client_port"), of("server_port")), (Some("7"), Some("9")));
        assert_eq!((of("tcp_sequence"), of("server_ns")), (None, Some("1925000")));
    }
    let [connection] = &decoded.connections[..] else { panic!("{:?}", decoded.connections) };
    assert_eq!(connection.transport.as_deref(), Some("netbeui"));
    assert!(connection.handshake_seen);
    assert_eq!((connection.packets_to_server, connection.packets_to_client), (3, 3));
    let coverage = &decoded.coverage[0];
    assert_eq!(coverage.frames_netbeui, link.frames.len() as u64);
    assert_eq!((coverage.datagrams_not_sessions, coverage.messages), (0, 6));
}

#[test]
fn without_its_beginning_the_client_is_who_requests() {
    let mut link = Link::default();
    link.numbered(1, ONLY_LAST, &echo(1, true));
    link.exchange(&echo(2, false), &echo(2, true));
    let decoded = link.decoded();
    let rows = decoded.rows();
    let timed = rows.iter().find(|row| row.contains_key("elapsed_ns")).unwrap();
    assert_eq!(timed["client"], "fe80::20c:29ff:fed4:79b2");
    assert_eq!(timed["elapsed_ns"], "2000000");
    assert!(!decoded.connections[0].handshake_seen);
}

#[test]
fn a_message_in_parts_is_one() {
    let mut link = Link::default();
    link.connect();
    let request = write(1, 3_000);
    let (first, rest) = request.split_at(1_400);
    let (middle, last) = rest.split_at(1_400);
    link.numbered(0, FIRST_MIDDLE, first);
    link.now_us += 300;
    link.numbered(0, FIRST_MIDDLE, middle);
    link.now_us += 300;
    link.exchange(last, &written(1, 3_000));
    let decoded = link.decoded();
    let rows = decoded.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["transferred_bytes"], "3000");
    assert_eq!((&*rows[0]["request_transfer_ns"], &*rows[0]["elapsed_ns"]), ("600000", "2600000"));
}

#[test]
fn what_is_retransmitted_is_no_second_operation() {
    let mut link = Link::default();
    link.connect();
    link.exchange(&echo(1, false), &echo(1, true));
    let first = link.frames.clone();
    link.exchange(&echo(2, false), &echo(2, true));
    // The timer of the client expires: the request again, 4 ms later.
    let mut again = link.clone();
    let (time_us, frame) = again.frames[first.len()].clone();
    again.frames.push((time_us + 4_000, frame));
    let decoded = again.decoded();
    assert_eq!(commands(&decoded), ["Echo", "Echo"]);
    assert_eq!(decoded.connections[0].retransmissions_to_server, 1);
    // A mirror port shows each frame twice.
    let mut twice = link.clone();
    twice.frames = link.frames.iter().flat_map(|one| [one.clone(), one.clone()]).collect();
    let decoded = twice.decoded();
    assert_eq!(commands(&decoded), ["Echo", "Echo"]);
    assert!(decoded.coverage[0].frames_repeated > 0);
}

#[test]
fn a_lost_frame_comes_again_and_the_one_behind_it_waits() {
    let mut link = Link::default();
    link.connect();
    let before = link.frames.len();
    link.numbered(0, FIRST_MIDDLE, &write(1, 3_000)[..1_000]);
    link.numbered(0, ONLY_LAST, &write(1, 3_000)[1_000..]);
    // The first of them was lost before the recorder; the server refuses the second.
    let mut parts = link.frames.split_off(before);
    link.frames.push(parts[1].clone());
    link.now_us += 100;
    link.llc(1, &[9, 1 << 1], &[]);
    link.now_us += 100;
    parts.iter_mut().for_each(|(time, _)| *time = link.now_us);
    link.frames.extend(parts);
    link.now_us += 1_000;
    link.numbered(1, ONLY_LAST, &written(1, 3_000));
    let rows = link.decoded().rows();
    assert_eq!(rows.len(), 1);
    assert_eq!((&*rows[0]["command"], &*rows[0]["transferred_bytes"]), ("Write", "3000"));
}

#[test]
fn what_only_the_recorder_missed_costs_its_own_operation() {
    let mut link = Link::default();
    link.connect();
    let before = link.frames.len();
    (1..5).for_each(|mid| link.exchange(&echo(mid, false), &echo(mid, true)));
    link.frames.remove(before + 3);
    let decoded = link.decoded();
    let times: Vec<_> = decoded.rows().iter().map(|row| row.get("elapsed_ns").cloned()).collect();
    let whole = times.iter().flatten().filter(|time| *time == "2000000").count();
    assert_eq!((times.len(), whole), (4, 3), "{times:?}");
    assert_eq!(decoded.connections[0].gaps_to_server, 1);
}

#[test]
fn frames_may_be_cut() {
    let mut link = Link::default();
    link.connect();
    link.exchange(&write(1, 1_200), &written(1, 1_200));
    let mut file = link.pcap();
    // The Write is cut to 100 bytes.
    let place = file.windows(5).position(|bytes| bytes == b"\xffSMB\x0b").unwrap() - 18 - 14;
    let length = u32::from_le_bytes(file[place - 4..place].try_into().unwrap()) as usize;
    file.drain(place + 100..place + length);
    file[place - 8..place - 4].copy_from_slice(&100_u32.to_le_bytes());
    let rows = decode(&file, &single()).rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&*rows[0]["requested_bytes"], &*rows[0]["elapsed_ns"]), ("1200", "2000000"));
}

#[test]
fn smb_in_ipx_is_named() {
    let mut link = Link::default();
    for (socket, kind) in [(0x0550_u16, 0), (0x0455, 6), (0x0455, 9), (0x0551, 0)] {
        let mut ipx = vec![0xff; 2];
        ipx.resize(32, 0);
        ipx[16..18].copy_from_slice(&socket.to_be_bytes());
        ipx[31] = kind;
        link.frames.push((0, [&CLIENT[..], &SERVER, &[0x81, 0x37], &ipx].concat()));
    }
    let decoded = link.decoded();
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.frames_ipx, coverage.datagrams_not_sessions), (2, 2));
    assert_eq!(decoded.operations(), 0);
}

#[test]
fn no_damage_harms_or_makes_operations() {
    let mut link = Link::default();
    link.connect();
    for mid in 1..20 {
        link.exchange(&echo(mid, false), &echo(mid, true));
        link.numbered(0, FIRST_MIDDLE, &write(mid + 100, 1_200)[..600]);
        link.exchange(&write(mid + 100, 1_200)[600..], &written(mid + 100, 1_200));
    }
    link.numbered(0, 0x18, &[]);
    assert_eq!(link.decoded().operations(), 38);
    for seed in 1..120 {
        let mut dice = Dice::new(seed);
        let mut damaged = link.clone();
        for _ in 0..1 + dice.below(12) {
            let place = dice.below(damaged.frames.len());
            match dice.below(5) {
                0 => drop(damaged.frames.remove(place)),
                1 => damaged.frames.insert(place, damaged.frames[place].clone()),
                2 => damaged.frames.swap(place, dice.below(link.frames.len() / 2)),
                3 => damaged.frames[place].1.truncate(dice.below(70)),
                _ => {
                    let byte = dice.below(damaged.frames[place].1.len().clamp(1, 40));
                    let frame = &mut damaged.frames[place].1;
                    frame.get_mut(byte).into_iter().for_each(|byte| *byte ^= 1 << (seed % 8));
                }
            }
        }
        // Equal with one thread and with several; a damaged number may make a request of a reply.
        assert!(damaged.decoded().operations() <= 38 + 12, "seed {seed}");
    }
}
