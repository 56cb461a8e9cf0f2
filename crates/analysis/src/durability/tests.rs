//! Made operations with known answers.

use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Handle, Tree};

use super::*;

const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const FLUSH: u16 = 7;
const WRITE: u16 = 9;
const S: i64 = 1_000_000_000;
const KB: u64 = 1_000;

/// Command, open, end in seconds, and what else is set.
type Act = (u16, u64, f64, fn(&mut Operation));

const PLAIN: fn(&mut Operation) = |_| ();

fn batch(acts: &[Act], share: &str, path: &str) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for (command, handle, at, set) in acts {
        let mut row = Operation::default();
        row.set_protocol(2);
        row.set_command(code::command(2, *command));
        row.set_status(0);
        row.set_handle(*handle);
        row.set_session_id(7);
        row.set_tree_id(3);
        row.set_request_start((at * 1e9) as i64 - 1_000);
        row.set_response_end((at * 1e9) as i64);
        if *command == WRITE {
            row.set_transferred_bytes(100 * KB);
        }
        set(&mut row);
        let names = &mut builder.names;
        row.set_recording(names.recording.intern("run"));
        row.set_share(names.share.intern(share));
        row.set_client(names.client.intern("10.0.0.1"));
        row.set_path(names.path.intern(path));
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn found(acts: &[Act], path: &str) -> Durability {
    let mut tally = DurabilityTally::default();
    tally.operations(&batch(acts, "\\\\server\\share", path)).unwrap();
    tally.finish().unwrap()
}

fn way(acts: &[Act]) -> Way {
    let found = found(acts, "a.bin");
    assert_eq!(found.ways.len(), 1);
    found.ways[0].way
}

#[test]
fn each_way_is_recognised() {
    let through: fn(&mut Operation) = |row| {
        row.set_write_through(true);
        row.set_create_options(CreateOptions::WRITE_THROUGH.0);
    };
    let flag: fn(&mut Operation) = |row| row.set_write_through(true);
    let unbuffered: fn(&mut Operation) = |row| row.set_unbuffered(true);
    let direct: fn(&mut Operation) =
        |row| row.set_create_options(CreateOptions::NO_INTERMEDIATE_BUFFERING.0);
    for (acts, expected) in [
        (vec![(CREATE, 1, 1.0, through), (WRITE, 1, 2.0, PLAIN)], Way::WriteThroughOpen),
        (vec![(WRITE, 1, 2.0, flag), (WRITE, 1, 3.0, flag)], Way::WriteThroughFlag),
        (vec![(WRITE, 1, 2.0, PLAIN), (FLUSH, 1, 3.0, PLAIN)], Way::Flushed),
        (vec![(WRITE, 1, 2.0, PLAIN), (FLUSH, 1, 3.0, PLAIN), (WRITE, 1, 4.0, PLAIN)], Way::Partly),
        (vec![(WRITE, 1, 2.0, flag), (WRITE, 1, 3.0, PLAIN)], Way::Partly),
        (vec![(WRITE, 1, 2.0, unbuffered)], Way::Unbuffered),
        (vec![(CREATE, 1, 1.0, direct), (WRITE, 1, 2.0, PLAIN)], Way::Unbuffered),
        (vec![(CREATE, 1, 1.0, PLAIN), (WRITE, 1, 2.0, PLAIN)], Way::Nothing),
    ] {
        let closed = [&acts[..], &[(CLOSE, 1, 9.0, PLAIN)]].concat();
        assert_eq!((way(&acts), way(&closed)), (expected, expected), "{expected:?}");
    }
}

#[test]
fn data_is_at_risk_until_its_flush_or_for_the_window() {
    let acts = [
        (WRITE, 1, 1.0, PLAIN),
        (WRITE, 2, 1.5, PLAIN),
        (WRITE, 1, 2.0, PLAIN),
        (FLUSH, 1, 3.0, PLAIN),
        (FLUSH, 1, 3.1, PLAIN),
        (WRITE, 1, 4.0, PLAIN),
        (CLOSE, 1, 5.0, PLAIN),
        (WRITE, 3, 60.0, PLAIN),
    ];
    let found = found(&acts, "sql\\sales.mdf");
    assert_eq!((found.writes, found.written_bytes), (5, 500 * KB));
    assert_eq!((found.most_bytes, found.most_at_ns), (300 * KB, Some(2 * S)));
    assert_eq!((found.flushes, found.idle_flushes), (2, 1));
    // From the first write to the Flush.
    assert_eq!((found.until_flush.n, found.until_flush.max_ns), (1, Some(2 * S)));
    let kind = &found.applications[0];
    assert_eq!((kind.application, kind.tally.opens, kind.stable_opens), ("database", 3, 0));
    assert_eq!((kind.tally.acknowledged_bytes, kind.tally.unflushed_bytes), (500 * KB, 300 * KB));
    assert!(
        kind.verdict.as_ref().unwrap().starts_with("3 of 3 opens of databases ended with 293 KiB")
    );
    assert_eq!((found.files.len(), found.files[0].tally.unflushed_bytes), (1, 300 * KB));
    // Seconds 1 to 36, nothing, and second 60.
    let series = &found.series_bytes;
    assert_eq!((found.series_start_ns, found.series_bin_ns), (S, S));
    assert_eq!((series[0], series[1], series[2], series[3]), (200_000, 300_000, 300_000, 200_000));
    assert_eq!((series[45], series[59]), (0, 100_000));
}

/// Writes of 10 s, then one Flush of another open, then writes of 10 s: all are younger than the window.
#[test]
fn a_flush_of_another_open_takes_nothing_from_the_most_at_risk() {
    let mut acts: Vec<Act> = (0..10).map(|n| (WRITE, 1, 1.0 + n as f64 / 10.0, PLAIN)).collect();
    acts.push((WRITE, 2, 13.0, PLAIN));
    acts.push((FLUSH, 2, 13.1, PLAIN));
    acts.extend((0..10).map(|n| (WRITE, 3, 13.2 + n as f64 / 10.0, PLAIN)));
    let found = found(&acts, "a.bin");
    let last = (14.1 * 1e9) as i64;
    assert_eq!((found.most_bytes, found.most_at_ns), (2_000 * KB, Some(last)));
    assert_eq!((found.shares[0].most_bytes, found.clients[0].most_bytes), (2_000 * KB, 2_000 * KB));
    // The course does not fall before the data is written back.
    let levels = &found.series_bytes[..14];
    assert!(levels.is_sorted(), "{levels:?}");
}

#[test]
fn a_flush_covers_what_was_acknowledged_before_it_was_sent() {
    let sent: fn(&mut Operation) = |row| row.set_request_start(2 * S);
    let acts = [
        (WRITE, 1, 1.0, PLAIN),
        (WRITE, 1, 2.0, PLAIN),
        // These are acknowledged while the Flush is in flight.
        (WRITE, 1, 2.5, PLAIN),
        (WRITE, 1, 2.6, PLAIN),
        (FLUSH, 1, 3.0, sent),
        (CLOSE, 1, 4.0, PLAIN),
    ];
    let one = found(&acts, "a.vbk");
    assert_eq!((one.ways[0].way, one.ways[0].tally.unflushed_bytes), (Way::Partly, 200 * KB));
    assert_eq!((one.idle_flushes, one.until_flush.n), (0, 1));
    assert_eq!(one.files[0].tally.unflushed_bytes, 200 * KB);
    // The next Flush covers them.
    let next = [&acts[..5], &[(FLUSH, 1, 3.5, PLAIN), acts[5]]].concat();
    let one = found(&next, "a.vbk");
    assert_eq!((one.ways[0].way, one.flushes, one.idle_flushes), (Way::Flushed, 2, 0));
    // A Flush that covers nothing has nothing to do.
    let early: fn(&mut Operation) = |row| row.set_request_start(S / 2);
    let one = found(&[(WRITE, 1, 1.0, PLAIN), (FLUSH, 1, 3.0, early)], "a.vbk");
    assert_eq!((one.ways[0].way, one.idle_flushes), (Way::Nothing, 1));
}

#[test]
fn a_continuously_available_share_makes_all_writes_stable_whenever_it_is_known() {
    let acts = [(WRITE, 1, 1.0, PLAIN), (CLOSE, 1, 2.0, PLAIN)];
    let trees = [Tree {
        recording: "run".into(),
        session_id: 7,
        tree_id: 3,
        continuous_availability: Some(true),
        ..Tree::default()
    }];
    let handles = [Handle {
        recording: "run".into(),
        session_id: Some(7),
        tree_id: Some(3),
        persistent: Some(true),
        ..Handle::default()
    }];
    let rows = batch(&acts, "\\\\server\\share", "vm.vhdx");
    let other = batch(&[(WRITE, 9, 1.2, |row| row.set_tree_id(4))], "\\\\server\\other", "b.bin");
    for (before, after) in [(1, 0), (0, 1), (2, 0), (0, 2)] {
        let add = |tally: &mut DurabilityTally, what| match what {
            1 => tally.trees(&trees),
            2 => tally.handles(&handles),
            _ => {}
        };
        let mut tally = DurabilityTally::default();
        add(&mut tally, before);
        tally.operations(&rows).unwrap();
        add(&mut tally, after);
        let found = tally.finish().unwrap();
        assert_eq!(found.ways.iter().map(|row| row.way).collect::<Vec<_>>(), [Way::Available]);
        assert_eq!((found.most_bytes, found.most_at_ns, found.is_bound), (0, None, false));
        assert_eq!((found.applications[0].stable_opens, found.files.len()), (1, 0));

        // Next to a share that is not.
        let mut tally = DurabilityTally::default();
        add(&mut tally, before);
        tally.operations(&rows).unwrap();
        tally.operations(&other).unwrap();
        add(&mut tally, after);
        let found = tally.finish().unwrap();
        assert_eq!((found.most_bytes, found.is_bound), (100 * KB, after > 0));
        assert_eq!((found.shares[0].most_bytes, found.shares[1].most_bytes), (100 * KB, 0));
    }
}

/// As Samba 4.22 does that declares a continuously available share: no handle is persistent.
#[test]
fn opens_without_a_persistent_handle_are_only_promised_by_the_share() {
    let acts = [(WRITE, 1, 1.0, PLAIN), (CLOSE, 1, 2.0, PLAIN), (WRITE, 2, 3.0, PLAIN)];
    let rows = batch(&acts, "\\\\server\\share", "vm.vhdx");
    let tree = Tree {
        recording: "run".into(),
        session_id: 7,
        tree_id: 3,
        continuous_availability: Some(true),
        ..Tree::default()
    };
    let handle = |persistent, written_bytes, opened_at| Handle {
        recording: "run".into(),
        session_id: Some(7),
        tree_id: Some(3),
        path: Some("vm.vhdx".into()),
        persistent,
        written_bytes,
        opened_at,
        ..Handle::default()
    };
    let found = |handles: &[Handle]| {
        let mut tally = DurabilityTally::default();
        tally.operations(&rows).unwrap();
        tally.handles(handles);
        tally.trees(std::slice::from_ref(&tree));
        tally.finish().unwrap()
    };
    // Without data, or from before the recording, an open says nothing.
    let others = [handle(None, 0, Some(1)), handle(None, 5, None)];
    let none = found(&others);
    assert_eq!(
        (none.available_opens, none.not_persistent_opens, &none.not_persistent),
        (None, None, &None)
    );
    let refused = found(
        &[&others[..], &[handle(None, 5, Some(1)), handle(Some(false), 5, Some(2))]].concat(),
    );
    assert_eq!((refused.available_opens, refused.not_persistent_opens), (Some(2), Some(2)));
    // The way stays; the verdict says who promises it.
    assert_eq!((refused.ways[0].way, refused.applications[0].stable_opens), (Way::Available, 2));
    let verdict = refused.applications[0].verdict.clone().unwrap();
    for part in [
        "All 2 opens of virtual disks had their data stable",
        "2 of 2 opens with data on continuously available shares had no persistent handle",
        "smbscope durability proves it",
    ] {
        assert!(verdict.contains(part), "{part}: {verdict}");
    }
    assert!(verdict.ends_with(&refused.not_persistent.unwrap()));
    let granted = found(&[handle(Some(true), 5, Some(1)), handle(Some(true), 0, Some(1))]);
    assert_eq!((granted.available_opens, granted.not_persistent_opens), (Some(1), Some(0)));
    assert_eq!(granted.not_persistent, None);
}

#[test]
fn pipes_failed_and_empty_writes_do_not_count() {
    let failed: fn(&mut Operation) = |row| row.set_status(0xc000_0022);
    let empty: fn(&mut Operation) = |row| row.set_transferred_bytes(0);
    let acts = [(WRITE, 1, 1.0, failed), (WRITE, 1, 2.0, empty)];
    let mut tally = DurabilityTally::default();
    tally.operations(&batch(&acts, "\\\\server\\share", "a")).unwrap();
    tally.operations(&batch(&[(WRITE, 2, 3.0, PLAIN)], "\\\\server\\IPC$", "srvsvc")).unwrap();
    let pipe = |row: &mut Operation| row.set_tree_id(5);
    tally.operations(&batch(&[(WRITE, 3, 3.0, pipe)], "\\\\server\\ipc$", "srvsvc")).unwrap();
    assert_eq!(tally.finish(), None);
}

#[test]
fn the_number_of_opens_files_and_groups_is_bounded() {
    let mut tally = DurabilityTally::default();
    let acts: Vec<Act> = (0..OPENS_MAX as u64 + 10).map(|n| (WRITE, n, 1.0, PLAIN)).collect();
    tally.operations(&batch(&acts, "\\\\server\\share", "a.bak")).unwrap();
    assert!(tally.opens.len() <= OPENS_MAX);
    for file in 0..3 * FILES_MAX {
        let act = [
            (WRITE, 1 << 40 | file as u64, 2.0, PLAIN),
            (CLOSE, 1 << 40 | file as u64, 2.0, PLAIN),
        ];
        let share = format!("\\\\server\\{file}");
        tally.operations(&batch(&act, &share, &format!("{file}.bak"))).unwrap();
    }
    assert!(tally.files.len() < 2 * FILES_MAX && tally.shares.levels.len() <= LEVELS_MAX);
    let found = tally.finish().unwrap();
    assert_eq!(found.forgotten_opens, OPENS_MAX as u64);
    let opens: u64 = found.ways.iter().map(|row| row.tally.opens).sum();
    assert_eq!(opens, (OPENS_MAX + 10 + 3 * FILES_MAX) as u64);
    assert!(found.files.len() <= FILES_LISTED && found.beyond_limits > 0);
}

/// Any sequence of operations: no level is negative in the end, and nothing is counted twice.
#[test]
fn any_operations_add_up() {
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..50 {
        let mut at = 0.0;
        let acts: Vec<Act> = (0..200)
            .map(|_| {
                at += next(4_000) as f64 / 1_000.0;
                let command = [CREATE, WRITE, WRITE, WRITE, FLUSH, CLOSE][next(6) as usize];
                (command, next(5), at, PLAIN)
            })
            .collect();
        let mut tally = DurabilityTally::default();
        tally.operations(&batch(&acts, "\\\\server\\share", "a.bak")).unwrap();
        tally.total.finish();
        assert_eq!(tally.total.series().2.iter().filter(|bytes| **bytes > 20_000 * KB).count(), 0);
        let Some(found) = tally.finish() else { continue };
        let all = found.ways.iter().fold(OpenTally::default(), |mut sum, row| {
            sum.add(&row.tally);
            sum
        });
        assert_eq!((all.written_bytes, all.writes), (found.written_bytes, found.writes));
        assert!(
            all.unflushed_bytes <= all.acknowledged_bytes && found.most_bytes <= all.written_bytes
        );
    }
}
