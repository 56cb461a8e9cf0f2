//! Events to rows, without a kernel.

use std::net::SocketAddr;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use smbscope_wire::smb2::encode::{Echo, Frame, Head as Smb};
use smbscope_wire::smb2::header::Flags;

use super::*;
use crate::ring_event::{Ends, Message, Pieces, Work};

fn echo(flags: Flags) -> Vec<u8> {
    let mut frame = Frame::new();
    frame.clear();
    frame.member(&Smb { message_id: 3, flags, ..Smb::default() }, &Echo);
    frame.message().to_vec()
}

fn take(rows: &mut RowMaker, time: u64, event: Event<'_>) {
    rows.take(Head { time, process: 100, thread: 100, cpu: 0 }, event);
}

/// An Echo that arrived at 1,000 and was dispatched at 3,000 ns.
fn request(rows: &mut RowMaker, ends: Ends) {
    let bytes = echo(Flags::default());
    let lengths: Vec<u8> = [bytes.len() as u32; 2].iter().flat_map(|n| n.to_le_bytes()).collect();
    let message = Message {
        first_at: 1_000,
        arrived_at: 1_000,
        read_at: 2_000,
        length: bytes.len() as u32,
        sequence: 7,
        ends,
    };
    let event = Event::Dispatch {
        request: 1,
        crypto_in: 0,
        message: Some(message),
        encrypted: false,
        members: Pieces::new(&lengths, &bytes),
    };
    take(rows, 3_000, event);
    let work = Work { request: 1, ..Work::default() };
    take(rows, 5_000, Event::Done { work, in_dispatch: true });
}

fn reply(rows: &mut RowMaker, ends: Ends) {
    let bytes = [vec![0; 4], echo(Flags::SERVER_TO_REDIR)].concat();
    let pieces = [4, bytes.len() as u32 - 4];
    let lengths: Vec<u8> =
        pieces.iter().flat_map(|n| [n.to_le_bytes(), n.to_le_bytes()].concat()).collect();
    let event = Event::Sent {
        socket: ends.socket,
        total: bytes.len() as u32,
        left: 0,
        first_at: 6_000,
        last_at: 6_000,
        crypto_out: 0,
        arrived_at: 1_000,
        waits: None,
        pieces: Pieces::new(&lengths, &bytes),
    };
    take(rows, 7_000, event);
}

/// The clock is set by an hour between an operation's reply and its row, or between its request and its reply.
#[test]
fn a_step_of_the_clock_is_in_no_turnaround() {
    const HOUR: i64 = 3_600_000_000_000;
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let ends = Ends { socket: 1, client: address(50_000), server: address(445) };
    for step in [HOUR, -HOUR, 1_280_000] {
        for before_reply in [false, true] {
            let mut rows = RowMaker::new("r", 10 * HOUR, &Options::default()).unwrap();
            request(&mut rows, ends);
            if before_reply {
                rows.feed_until(4_000);
                rows.set_offset(10 * HOUR + step);
                rows.parts().unwrap();
                reply(&mut rows, ends);
                rows.feed_until(10_000);
            } else {
                reply(&mut rows, ends);
                rows.feed_until(10_000);
                rows.set_offset(10 * HOUR + step);
            }
            let parts = rows.parts().unwrap();
            let batch = parts.iter().find_map(|part| match part {
                Part::Operations(batch) => Some(batch),
                _ => None,
            });
            let column = batch.unwrap().column_by_name("turnaround_ns").unwrap();
            let turnarounds = column.as_primitive::<Int64Type>();
            assert_eq!(turnarounds.values(), &[5_000], "{step} {before_reply}");
            assert_eq!(rows.offset(), 10 * HOUR + step);
        }
    }
}
