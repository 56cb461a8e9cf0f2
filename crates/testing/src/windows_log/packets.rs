//! Logs of `netsh trace start capture=yes` and of `pktmon start --capture`, with foreign events between the
//! packets.

use super::{Frame, Log, guid};
use crate::etl::Manifest;

const NDIS: u128 = 0x2ed6006e_4729_4609_b423_3ee7bcd678ef;
const PKTMON: u128 = 0x4d4f80d9_c8bd_4d73_bb5b_19c90402c5ac;
/// A provider that has nothing to do with packets (Microsoft-Windows-TCPIP).
const FOREIGN: u128 = 0x2f07e2ee_15db_40f1_90ef_9d7ba282188a;
const START: u64 = 0x4000_0000;
const END: u64 = 0x8000_0000;

/// How packets are logged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers {
    /// Largest piece of a packet in one event; 0 for as much as an event can have.
    pub piece_bytes: usize,
    /// Layers of filters that show each packet once more.
    pub filters: u32,
    /// The adapter is a mobile one, whose packets begin with IP.
    pub is_mobile: bool,
    /// The packets pass a virtual switch.
    pub is_switch: bool,
}

/// A log of NDIS.
pub fn netsh(frames: &[Frame], layers: Layers) -> Vec<u8> {
    let mut log = Log::new(frames.first().map_or(0, |frame| frame.time_ns), 19_045);
    for (number, frame) in frames.iter().enumerate() {
        foreign(&mut log, number, frame.time_ns);
        let bytes = if layers.is_mobile && frame.bytes.len() > 14 {
            &frame.bytes[14..]
        } else {
            &frame.bytes[..]
        };
        for filter in 0..=layers.filters {
            // The adapter has number 7; filters above it have others.
            let mut head = 7_u32.to_le_bytes().to_vec();
            head.extend((7 + filter).to_le_bytes());
            if layers.is_switch {
                head.extend(3_u32.to_le_bytes());
                for name in ["port", "adapter", "type"] {
                    head.extend(name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
                }
                head.extend(2_u32.to_le_bytes());
                head.extend([0x55; 16]);
            }
            let most = if layers.piece_bytes == 0 { 65_000 } else { layers.piece_bytes };
            let pieces: Vec<_> =
                if bytes.is_empty() { vec![bytes] } else { bytes.chunks(most).collect() };
            for (place, piece) in pieces.iter().enumerate() {
                let mut keyword = 0x1_0000_0000 | if layers.is_mobile { 0x200 } else { 0 };
                if place == 0 {
                    keyword |= START;
                }
                if place + 1 == pieces.len() {
                    keyword |= END;
                }
                let mut fields = head.clone();
                fields.extend((piece.len() as u32).to_le_bytes());
                fields.extend_from_slice(piece);
                // What offload says, or nothing of it.
                fields.extend([0; 16]);
                let event = Manifest {
                    guid: guid(NDIS),
                    id: if layers.is_switch { 1_003 } else { 1_001 },
                    thread: 40 + (number % 3) as u32,
                    keyword,
                    ..Manifest::default()
                };
                log.event(&event, frame.time_ns, &fields);
            }
        }
    }
    log.finish()
}

/// A log of the packet monitor: each packet appears at several components, and every tenth is reported as dropped
/// at one of them.
pub fn pktmon(frames: &[Frame], appearances: u16) -> Vec<u8> {
    let mut log = Log::new(frames.first().map_or(0, |frame| frame.time_ns), 22_631);
    for (number, frame) in frames.iter().enumerate() {
        foreign(&mut log, number, frame.time_ns);
        for appearance in 1..=appearances {
            let mut packet = |id, drop_reason: u32| {
                let mut fields = (0x2_0000_0000_0000_u64 + number as u64).to_le_bytes().to_vec();
                for field in [1, appearance, 1, 1, 70 + appearance, 1, 0] {
                    fields.extend(u16::to_le_bytes(field));
                }
                fields.extend(drop_reason.to_le_bytes());
                fields.extend(0_u32.to_le_bytes());
                fields.extend((frame.bytes.len() as u16).to_le_bytes());
                fields.extend((frame.bytes.len() as u16).to_le_bytes());
                fields.extend_from_slice(&frame.bytes);
                let event = Manifest { guid: guid(PKTMON), id, ..Manifest::default() };
                log.event(&event, frame.time_ns, &fields);
            };
            packet(160, 0);
            if number % 10 == 0 && appearance == appearances {
                packet(170, 5);
            }
        }
    }
    log.finish()
}

/// Events of other providers, with and without extended data.
fn foreign(log: &mut Log, number: usize, time_ns: i64) {
    if !number.is_multiple_of(4) {
        return;
    }
    let stack = [0x11; 24];
    let extended: &[(u16, &[u8])] = match number % 8 {
        0 => &[(1, &[1, 2, 3]), (6, &stack)],
        _ => &[],
    };
    let event = Manifest { guid: guid(FOREIGN), id: 1_001, extended, ..Manifest::default() };
    log.event(&event, time_ns, &[7; 33]);
}
