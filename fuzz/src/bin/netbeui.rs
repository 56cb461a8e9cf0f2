//! Any bytes as frames of NetBEUI between two stations: lost, repeated, cut, in both directions, in parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::segments::{Record, records};
use smbscope_fuzz::{decode, small_limits};

/// Commands of a session: data in parts and whole, its confirmation, end and beginning.
const COMMANDS: [u8; 5] = [0x15, 0x16, 0x17, 0x18, 0x19];
/// SABME, DISC, UA.
const UNNUMBERED: [u8; 3] = [0x7f, 0x53, 0x73];
const HEADER: [u8; 24] =
    [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, input)) = bytes.split_first() else { return };
    let capture = capture(input);
    let limits = if choice & 1 == 0 { Default::default() } else { small_limits() };
    let one = decode(&capture, limits, 1).expect("a capture");
    if choice & 2 != 0 {
        let three = decode(&capture, limits, 3).expect("a capture");
        assert_eq!(one.batches, three.batches, "the number of threads changes nothing");
    }
});

/// Bits of a record's `what`: 0 the direction, 1-2 the kind, 3 a number is skipped, 4 the same number
/// again, 5 another session, 6 cut by the snap length, 7 time passes. The kinds are a session's frame
/// with a command that `shift` chooses, an SMB1 message of that command, an acknowledgement or the
/// beginning or end of the link, and any bytes behind LLC.
fn capture(input: &[u8]) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    let (mut next, mut time_us) = ([0_u8; 2], 0_u32);
    for Record { what, shift, payload } in records(input) {
        let own = usize::from(what & 1);
        let flag = |bit: u8| what >> bit & 1;
        time_us += 700 * u32::from(flag(7));
        let number = next[own].wrapping_add(flag(3)) & 0x7f;
        let payload = payload.get(..1_400).unwrap_or(payload);
        let session = 7 + 2 * flag(5);
        let numbers = if own == 0 { [9, session] } else { [session, 9] };
        let header =
            |command: u8| [14, 0, 0xff, 0xef, command, 0, 0, 0, 0, 0, 0, 0, numbers[0], numbers[1]];
        let mut llc = vec![0xf0, 0xf0];
        let is_numbered = what >> 1 & 3 != 2;
        if is_numbered {
            llc.extend([number << 1, next[1 - own] << 1]);
        }
        match what >> 1 & 3 {
            0 => {
                llc.extend(header(COMMANDS[usize::from(shift) % COMMANDS.len()]));
                llc.extend(payload);
            }
            1 => {
                llc.extend(header(0x16));
                llc.extend([0xff, b'S', b'M', b'B', shift, 0, 0, 0, 0, (what & 1) << 7]);
                llc.extend(payload);
            }
            2 if shift < 200 => llc.extend([1, shift << 1]),
            2 => llc.push(UNNUMBERED[usize::from(shift) % UNNUMBERED.len()]),
            _ => llc.extend(payload),
        }
        if is_numbered && flag(4) == 0 {
            next[own] = (number + 1) & 0x7f;
        }
        let stations = [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 6]];
        let mut frame = [stations[1 - own], stations[own]].concat();
        frame.extend((llc.len() as u16).to_be_bytes());
        frame.extend(llc);
        let captured = if flag(6) == 1 { frame.len() / 2 } else { frame.len() };
        for word in [1_000, time_us, captured as u32, frame.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&frame[..captured]);
    }
    out
}
