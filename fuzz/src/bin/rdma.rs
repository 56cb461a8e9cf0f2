//! Any bytes as packets of RoCE and streams of iWARP: lost, repeated, cut, in both directions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_capture::Limits;
use smbscope_fuzz::segments::{Record, Segment, Writer, records};
use smbscope_fuzz::{decode, small_limits};

/// The ports of RoCE v2 and of SMB Direct over iWARP.
const ROCE: u16 = 4_791;
const IWARP: u16 = 5_445;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, input)) = bytes.split_first() else { return };
    let capture = capture(input);
    let limits = if choice & 1 == 0 { Limits::default() } else { small_limits() };
    let one = decode(&capture, limits, 1).expect("a capture");
    if choice & 2 != 0 {
        let three = decode(&capture, limits, 3).expect("a capture");
        assert_eq!(one.batches, three.batches, "the number of threads changes nothing");
    }
});

/// Bits of a record's `what`: 0 the direction, 1-2 the kind, 3 a number is skipped, 4 the same
/// number again, 5 the queue pair, 6 cut by the snap length, 7 time passes. The kinds are a packet of
/// RoCE whose opcode is `shift`, the same for the connection manager, any datagram to RoCE's port,
/// and bytes of an iWARP stream.
fn capture(input: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    let (mut psns, mut sequences, mut time_us) = ([0x00ff_fff0_u32, 7], [1_u32, 1], 0);
    for Record { what, shift, payload } in records(input) {
        let from = what & 1;
        let own = usize::from(from);
        let flag = |bit: u8| u32::from(what >> bit & 1);
        time_us += 700 * flag(7);
        let captured = if flag(6) == 1 { payload.len() / 2 + 12 } else { usize::MAX };
        match what >> 1 & 3 {
            kind @ (0 | 1) => {
                let psn = psns[own] + flag(3);
                // Acknowledgements and responses have the numbers of the other side.
                let shown = if (0x0d..=0x12).contains(&shift) { psns[1 - own] - 1 } else { psn };
                let [_, high, middle, low] = shown.to_be_bytes();
                let queue_pair = if kind == 1 { 1 } else { 2 + 2 * flag(5) as u8 + from };
                let head = [shift, 0, 0xff, 0xff, 0, 0, 0, queue_pair, 0, high, middle, low];
                let packet = [&head[..], payload, &[0; 4]].concat();
                writer.datagram(from, ROCE, &packet, captured, time_us);
                if flag(4) == 0 && !(0x0d..=0x12).contains(&shift) {
                    psns[own] = (psn + 1) & 0x00ff_ffff;
                    psns[own] = psns[own].max(1);
                }
            }
            2 => writer.datagram(from, ROCE, payload, captured, time_us),
            _ => {
                let sequence = sequences[own].wrapping_add(9 * flag(3));
                writer.packet(&Segment {
                    from,
                    port: IWARP,
                    flags: 0x10,
                    sequence,
                    acknowledgement: sequences[1 - own],
                    payload,
                    captured,
                    time_us,
                });
                if flag(4) == 0 {
                    sequences[own] = sequence.wrapping_add(payload.len() as u32);
                }
            }
        }
    }
    writer.bytes
}
