//! Slices of an operation, from its arrival to its departure.

use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::encode::{Close, Echo, Flush, LockRange, Locks};

use super::*;

#[test]
fn slices_follow_each_other_from_arrival_to_departure() {
    let mut world = World::default();
    world.dispatch(1, &request(1, &Echo), [1_000, 1_100, 1_150]);
    world.done(1, 30, 1_400);
    world.sent(&reply(&[1]), 1_450, 0, 0, 1_600);
    let slices = world.slices(FIRST, 0);
    let expected = [
        (Kind::Queue, 1_000, 100),
        (Kind::Parse, 1_100, 50),
        (Kind::Processing, 1_150, 220),
        (Kind::Filesystem, 1_370, 30),
        (Kind::Send, 1_400, 50),
    ];
    assert_eq!(slices, expected);
    let [there, back] = &*world.messages else { panic!("{:?}", world.messages) };
    assert_eq!((there.from_client, there.last), (true, 1_000));
    assert_eq!((back.from_client, back.first, back.last), (false, 1_450, 1_450));
}

#[test]
fn a_message_that_still_comes_while_it_is_read_has_no_queue() {
    let mut world = World::default();
    world.dispatch(1, &read_request(1), [2_000, 1_500, 2_100]);
    world.done(1, 0, 2_200);
    let slices = world.slices(FIRST, 0);
    assert_eq!((sum(&slices, Kind::Queue), sum(&slices, Kind::Parse)), (Some(0), Some(100)));
    assert_eq!((world.messages[0].first, world.messages[0].last), (1_500, 2_000));
}

#[test]
fn a_spliced_write_begins_when_its_last_byte_arrived() {
    let mut world = World::default();
    // The arrival of such a request is unknown at its dispatch.
    world.dispatch(1, &read_request(1), [0, 1_000, 1_100]);
    world.done(1, 0, 3_000);
    world.sent(&reply(&[1]), 3_100, 0, 2_500, 3_200);
    let slices = world.slices(FIRST, 0);
    assert_eq!(slices, [(Kind::Processing, 2_500, 500), (Kind::Send, 3_000, 100)]);
}

#[test]
fn a_read_by_another_thread_is_io_between_two_waits() {
    let mut world = World::default();
    world.dispatch(1, &read_request(1), [1_000, 1_000, 1_100]);
    world.hand_over(1, 0xb0, Io::Read, 1_200);
    world.park(1, 50, 1_300);
    world.io(0xb0, Io::Read, 1_500, 1_900);
    world.woken(1, 2_000, 2_100);
    let slices = world.slices(FIRST, 0);
    assert_eq!(sum(&slices, Kind::Processing), Some(100 + 100));
    assert_eq!((sum(&slices, Kind::IoWait), sum(&slices, Kind::Io)), (Some(400), Some(400)));
    assert!(world.assembler.async_io.is_empty());
}

#[test]
fn io_without_a_system_call_has_no_slice() {
    let mut world = World::default();
    world.dispatch(1, &read_request(1), [1_000, 1_000, 1_100]);
    world.hand_over(1, 0xb0, Io::Read, 1_200);
    world.woken(1, 2_000, 2_100);
    let slices = world.slices(FIRST, 0);
    assert_eq!((sum(&slices, Kind::IoWait), sum(&slices, Kind::Io)), (Some(800), None));
    // The next request with that buffer is another one.
    assert!(world.assembler.async_io.is_empty());
}

#[test]
fn a_lock_is_waited_for_and_a_logon_is_worked_on() {
    let range = LockRange { offset: 0, length: 1, flags: Default::default() };
    let lock = Locks { file_id: FILE, sequence: 0, ranges: &[range] };
    for (bytes, locks) in [(request(1, &lock), true), (request(1, &Echo), false)] {
        let mut world = World::default();
        world.dispatch(1, &bytes, [1_000, 1_000, 1_100]);
        world.park(1, 0, 1_200);
        world.woken(1, 9_000, 9_300);
        let slices = world.slices(FIRST, 0);
        let (waited, worked) = if locks { (Some(7_800), 400) } else { (None, 8_200) };
        assert_eq!(sum(&slices, Kind::LockWait), waited);
        assert_eq!(sum(&slices, Kind::Processing), Some(worked));
    }
}

#[test]
fn a_request_that_waited_is_dispatched_again() {
    let mut world = World::default();
    let range = LockRange { offset: 0, length: 1, flags: Default::default() };
    let lock = Locks { file_id: FILE, sequence: 0, ranges: &[range] };
    world.dispatch(1, &request(1, &lock), [1_000, 1_000, 1_100]);
    world.park(1, 0, 1_200);
    world.again(1, 5_000);
    world.done(1, 0, 5_100);
    let slices = world.slices(FIRST, 0);
    assert_eq!(sum(&slices, Kind::LockWait), Some(3_800));
    assert_eq!(sum(&slices, Kind::Processing), Some(200));
}

#[test]
fn a_flush_after_a_write_on_another_thread_belongs_to_the_write() {
    let mut world = World::default();
    let length = read_request(1).len() as u32 + 4;
    world.dispatch(1, &read_request(1), [1_000, 1_000, 1_100]);
    world.hand_over(1, 7, Io::Write, 1_200);
    world.io(7, Io::Write, 1_300, 1_500);
    world.io(0, Io::Flush, 1_600, 4_600);
    world.woken(1, 4_700, 4_800);
    let slices = world.slices(FIRST, 0);
    assert_eq!((sum(&slices, Kind::Io), sum(&slices, Kind::Flush)), (Some(200), Some(3_000)));
    assert_eq!(sum(&slices, Kind::IoWait), Some(4_700 - 1_200 - 3_200));
    // If two requests could have caused it, neither gets it.
    for number in [2, 3] {
        world.dispatch(number, &read_request(number), [5_000, 5_000, 5_000 + number]);
        world.hand_over(number, number, Io::Write, 5_100 + number);
        world.io(number, Io::Write, 5_200, 5_300);
    }
    world.io(0, Io::Flush, 5_400, 5_500);
    assert_eq!(world.assembler.losses.ambiguous_flushes, 1);
    world.woken(2, 5_600, 5_700);
    assert_eq!(sum(&world.slices(FIRST + length, 0), Kind::Flush), None);
}

#[test]
fn two_flushes_at_once_are_ambiguous_and_the_next_one_is_not() {
    let mut world = World::default();
    let flush = |id| request(id, &Flush { file_id: FILE });
    let length = flush(1).len() as u32 + 4;
    for number in [1, 2] {
        world.dispatch(number, &flush(number), [1_000, 1_000, 1_000 + number]);
        world.hand_over(number, 0, Io::Flush, 1_100 + number);
    }
    world.io(0, Io::Flush, 1_200, 1_500);
    world.io(0, Io::Flush, 1_200, 1_600);
    assert_eq!(world.assembler.losses.ambiguous_flushes, 2);
    for number in [1, 2] {
        world.woken(number, 1_700, 1_800 + number);
        let slices = world.slices(FIRST + length * (number as u32 - 1), 0);
        assert_eq!(sum(&slices, Kind::Flush), None);
        assert_eq!(sum(&slices, Kind::IoWait), Some(1_700 - 1_100 - number));
    }
    world.dispatch(3, &flush(3), [3_000, 3_000, 3_100]);
    world.hand_over(3, 0, Io::Flush, 3_200);
    world.io(0, Io::Flush, 3_300, 3_700);
    world.woken(3, 3_800, 3_900);
    let slices = world.slices(FIRST + length * 2, 0);
    assert_eq!((sum(&slices, Kind::Flush), sum(&slices, Kind::IoWait)), (Some(400), Some(200)));
    assert_eq!(world.assembler.losses.ambiguous_flushes, 2);
}

#[test]
fn shared_times_of_a_compound_are_on_its_lead() {
    let mut world = World::default();
    let bytes = message(|frame| {
        frame.member(&Smb { message_id: 1, ..Smb::default() }, &Echo);
        let close = Close { file_id: FILE, flags: CloseFlags(0) };
        frame.member(&Smb { message_id: 2, ..Smb::default() }, &close);
    });
    world.dispatch(1, &bytes, [1_000, 1_100, 1_200]);
    world.done(1, 0, 1_300);
    world.again(1, 1_350);
    world.done(1, 20, 1_500);
    world.sent(&reply(&[1, 2]), 1_600, 0, 0, 1_700);
    let lead = world.slices(FIRST, 0);
    let expected = [
        (Kind::Queue, 1_000, 100),
        (Kind::Parse, 1_100, 100),
        (Kind::Processing, 1_200, 100),
        (Kind::Send, 1_300, 300),
    ];
    assert_eq!(lead, expected);
    let second = world.slices(FIRST, 1);
    assert_eq!(second, [(Kind::Processing, 1_350, 130), (Kind::Filesystem, 1_480, 20)]);
    assert!(world.assembler.served.is_empty());
}
