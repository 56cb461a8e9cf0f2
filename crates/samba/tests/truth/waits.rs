//! Operations that wait for another client's lock or cache have that wait in their slices.

use std::time::{Duration, Instant};

use smbscope_client::{Ask, Config};
use smbscope_samba::recording::Progress;
use smbscope_tables::slice::Kind;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::create::OplockLevel;
use smbscope_wire::smb2::encode::{LockRange, Locks};
use smbscope_wire::smb2::lease::LeaseState;
use smbscope_wire::smb2::lock::LockFlags;
use smbscope_wire::status::Status;

use crate::client::{Client, create};
use crate::recorder::{Recorder, Row, alone};
use smbscope_testing::samba::samba;

/// Checks that the row's time is the wait for a lock, and that its length is right.
fn waited(rows: &[Row], command: &str, held: Duration) {
    let of = rows.iter().filter(|row| row.command == command);
    let row = of.max_by_key(|row| row.turnaround).unwrap();
    let turnaround = row.turnaround.unwrap();
    eprintln!("{command}: {turnaround} ns, held {} ns: {:?}", held.as_nanos(), row.told());
    assert!(turnaround as u128 >= held.as_nanos() * 9 / 10, "it did not wait: {turnaround} ns");
    assert!(row.ns(Kind::LockWait) as f64 >= 0.9 * turnaround as f64, "{:?}", row.told());
    // The wire's time includes the time around the slices, too.
    assert!((row.sum() - turnaround).abs() < 100_000, "{:?}", row.told());
}

fn lock(file_id: FileId, ranges: &[LockRange]) -> Locks<'_> {
    Locks { file_id, sequence: 0, ranges }
}

#[test]
fn a_lock_that_another_client_holds_is_waited_for() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::begin(&lab) else { return };
    let (mut holder, mut other) =
        (Client::connect(&lab, Config::default()), Client::connect(&lab, Config::default()));
    let mine = holder.open("locked");
    let theirs = other.open("locked");
    let range = |flags| [LockRange { offset: 0, length: 10, flags }];
    let exclusive = range(LockFlags::EXCLUSIVE_LOCK);
    assert_eq!(holder.call(&lock(mine, &exclusive), Ask::default()).status, Status::SUCCESS);
    let held = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let ask = Ask { waits: true, ..Ask::default() };
            other.call(&lock(theirs, &exclusive), ask).status
        });
        // It arrives in far less time.
        std::thread::sleep(Duration::from_millis(100));
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(300));
        let unlock = range(LockFlags::UNLOCK);
        assert_eq!(holder.call(&lock(mine, &unlock), Ask::default()).status, Status::SUCCESS);
        assert_eq!(waiting.join().unwrap(), Status::SUCCESS);
        begin.elapsed()
    });
    holder.end();
    other.end();
    waited(&recorder.end().rows(), "Lock", held);
}

#[test]
fn an_open_waits_until_an_oplock_is_given_back() {
    breaks(false);
}

#[test]
fn an_open_waits_until_a_lease_is_given_back() {
    breaks(true);
}

fn breaks(lease: bool) {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::begin_joined(&lab) else { return };
    let (mut holder, mut other) =
        (Client::connect(&lab, Config::default()), Client::connect(&lab, Config::default()));
    if lease {
        let guid = *holder.session.client_guid();
        let wish = holder.session.leases.wish(&guid, "cached", LeaseState(7), true);
        let mut body = create("cached", OplockLevel::LEASE);
        body.wish.lease = Some(wish);
        let open = holder.call(&body, Ask::default()).open.unwrap();
        assert_eq!(open.lease.unwrap().state, LeaseState(7));
    } else {
        assert_eq!(holder.create("cached", OplockLevel::BATCH).oplock, OplockLevel::BATCH);
    }
    let held = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.create("cached", OplockLevel::NONE));
        holder.with(async |session| {
            while !session.channel().has_breaks() {
                session.receive().await.unwrap();
            }
        });
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(200));
        holder.with(async |session| session.answer_breaks().await.unwrap());
        let held = begin.elapsed();
        waiting.join().unwrap();
        held
    });
    holder.end();
    other.end();
    let recorded = recorder.end();
    waited(&recorded.rows(), "Create", held);
    // Unsolicited messages of the server are not losses.
    let Progress { without_slices, wire_only, .. } = recorded.progress;
    assert_eq!((without_slices, wire_only), (0, 0));
}
