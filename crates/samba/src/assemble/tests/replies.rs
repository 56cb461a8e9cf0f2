//! Replies: sent in parts, in the kernel, encrypted; and operations without one.

use smbscope_wire::smb2::encode::{Cancel, Echo, Flush};

use super::*;

#[test]
fn a_reply_that_is_sent_in_parts_ends_with_the_last() {
    let mut world = World::default();
    world.dispatch(1, &request(1, &Echo), [1_000, 1_000, 1_100]);
    world.done(1, 0, 1_200);
    world.sent(&reply(&[1]), 1_300, 40, 0, 1_350);
    assert_eq!(world.messages.len(), 1);
    for (at, left) in [(1_400, 20), (1_500, 0)] {
        let more = Event::SentMore { socket: SOCKET, first_at: at, last_at: at, left, waits: None };
        world.event(at + 10, more);
    }
    assert_eq!((world.messages[1].first, world.messages[1].last), (1_300, 1_500));
    assert_eq!(sum(&world.slices(FIRST, 0), Kind::Send), Some(100));
}

#[test]
fn a_head_that_waits_for_its_data_departs_with_it() {
    let mut world = World::default();
    world.dispatch(1, &request(1, &Echo), [1_000, 1_000, 1_100]);
    world.done(1, 0, 1_200);
    world.sent(&reply(&[1]), 0, 40, 0, 1_250);
    let more =
        Event::SentMore { socket: SOCKET, first_at: 1_700, last_at: 1_800, left: 0, waits: None };
    world.event(1_900, more);
    assert_eq!((world.messages[1].first, world.messages[1].last), (1_700, 1_800));
    assert_eq!(sum(&world.slices(FIRST, 0), Kind::Send), Some(500));
}

#[test]
fn a_reply_that_waits_in_the_kernel_ends_when_it_is_gone() {
    let mut world = World::default();
    for number in 1..=3 {
        world.dispatch(number, &request(number, &Echo), [1_000, 1_000, 1_100]);
        world.done(number, 0, 1_200);
        let copied = Bytes::from_pieces(&[&[0; 4], &reply(&[number])]);
        let event = Event::Sent {
            socket: SOCKET,
            total: reply(&[number]).len() as u32 + 4,
            left: 0,
            first_at: 1_300,
            last_at: 1_310,
            crypto_out: 0,
            arrived_at: 0,
            // The last one goes with those before it.
            waits: [Some(u32::MAX), Some(9), None][number as usize - 1],
            pieces: copied.pieces(),
        };
        world.event(1_400, event);
    }
    let replies = |world: &World| {
        let replies = world.messages.iter().filter(|message| !message.from_client);
        replies.map(|message| (message.first, message.last)).collect::<Vec<_>>()
    };
    assert_eq!(replies(&world), []);
    world.event(5_000, Event::Left { socket: SOCKET, until: u32::MAX });
    assert_eq!(replies(&world), [(1_300, 5_000)]);
    world.event(6_000, Event::Left { socket: SOCKET, until: 9 });
    assert_eq!(replies(&world), [(1_300, 5_000), (1_300, 6_000), (1_300, 6_000)]);
    assert_eq!(sum(&world.slices(FIRST, 0), Kind::Send), Some(100));
}

#[test]
fn the_data_of_an_error_is_not_missing() {
    let mut world = World::default();
    world.dispatch(1, &read_request(1), [1_000, 1_000, 1_100]);
    world.done(1, 0, 1_200);
    let body = [&reply(&[1])[..64], &[9, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut copied = Bytes::from_pieces(&[&[0; 4], &body]);
    // One more byte, which is not copied.
    copied.lengths.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    world.send(&copied, 4 + 73, 1_300, 0, 0, 1_300);
    let reply = world.messages.last().unwrap();
    assert_eq!((reply.bytes.len(), reply.length), (73, 73));
}

/// A header before or after encryption, which clears the part of the nonce that the cipher does not use.
fn transform(nonce: u8, rest: u8) -> Vec<u8> {
    [b"\xfdSMB".as_slice(), &[0; 16], &[nonce; 12], &[rest; 4], &[0; 16]].concat()
}

#[test]
fn an_encrypted_reply_is_delivered_in_plaintext() {
    let mut world = World::default();
    let total = 4 + 52 + reply(&[1]).len() as u32;
    // The event that the second one was sent is missing, and the fourth one leaves before the third.
    for number in 1..=4_u8 {
        let id = u64::from(number);
        world.dispatch(id, &request(id, &Echo), [1_000, 1_000, 1_100]);
        world.done(id, 0, 1_200);
        let copied = Bytes::from_pieces(&[&transform(number, 9), &reply(&[id])]);
        world.event(1_250, Event::Clear { pieces: copied.pieces() });
    }
    for (number, at) in [(1, 1_300), (4, 1_400), (3, 1_500)] {
        world.send(&Bytes::from_pieces(&[&[0; 4], &transform(number, 0)]), total, at, 0, 0, at);
        assert_eq!(world.messages.last().unwrap().bytes, reply(&[u64::from(number)]));
    }
    assert_eq!(world.assembler.losses, Losses::default());
}

#[test]
fn encrypted_replies_are_delivered_in_plaintext_and_in_order() {
    let mut world = World::default();
    let length = request(1, &Echo).len() as u32 + 4;
    for number in [1, 2] {
        world.dispatch(number, &request(number, &Echo), [1_000, 1_000, 1_100]);
        world.done(number, 0, 1_200);
    }
    for number in [1, 2] {
        let copied = Bytes::from_pieces(&[&reply(&[number])]);
        world.event(1_250, Event::Clear { pieces: copied.pieces() });
    }
    let transform = [b"\xfdSMB".as_slice(), &[0; 48]].concat();
    let total = 4 + 52 + reply(&[1]).len() as u32;
    for at in [1_300, 1_400, 1_500] {
        world.send(&Bytes::from_pieces(&[&[0; 4], &transform]), total, at, 0, 0, at);
    }
    for (place, number) in [(2, 1), (3, 2)] {
        assert_eq!(world.messages[place].bytes, reply(&[number]));
        assert_eq!(u64::from(world.messages[place].length), reply(&[number]).len() as u64);
        let slices = world.slices(FIRST + length * (number as u32 - 1), 0);
        assert_eq!(sum(&slices, Kind::Send), Some(100 * number));
    }
    assert_eq!(world.assembler.losses.without_clear, 1, "there was no third in plaintext");
}

#[test]
fn a_cancel_is_never_done() {
    let mut world = World::default();
    world.dispatch(1, &request(1, &Cancel), [1_000, 1_100, 1_200]);
    assert!(world.assembler.served.is_empty());
    assert_eq!(world.slices(FIRST, 0), [(Kind::Queue, 1_000, 100), (Kind::Parse, 1_100, 100)]);
}

#[test]
fn a_process_that_ends_leaves_nothing() {
    let mut world = World::default();
    world.dispatch(1, &read_request(1), [1_000, 1_000, 1_100]);
    world.hand_over(1, 0xb0, Io::Read, 1_200);
    world.dispatch(2, &request(2, &Flush { file_id: FILE }), [1_000, 1_000, 1_300]);
    world.hand_over(2, 0, Io::Flush, 1_400);
    let copied = Bytes::from_pieces(&[&reply(&[1])]);
    world.event(1_500, Event::Clear { pieces: copied.pieces() });
    world.event(2_000, Event::Exit);
    world.event(2_001, Event::Closed { socket: SOCKET });
    let Assembler { connections, served, async_io, flushes, clear, .. } = &world.assembler;
    assert!(connections.is_empty() && served.is_empty() && async_io.is_empty());
    assert!(flushes.is_empty() && clear.is_empty());
    assert!(world.messages.last().unwrap().ends);
    // Late events belong to no request.
    world.io(0xb0, Io::Read, 1_500, 2_100);
    world.again(1, 2_200);
    assert_eq!(world.assembler.losses.without_message, 1);
}
