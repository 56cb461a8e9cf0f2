//! Operations in their slots, with known answers.

use arrow::array::RecordBatch;
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::slice::Kind;

use super::*;

const S: i64 = 1_000_000_000;
const READ: u16 = 8;
const WRITE: u16 = 9;
const NOTIFY: u16 = 15;
/// Begun in the middle of a second, which therefore is not seen whole.
const BEGIN: i64 = 1_000 * S + S / 2;

/// An operation whose turnaround, in microseconds, ended at `at`.
fn operation(command: u16, at: i64, us: i64) -> Operation {
    let mut row = Operation::default();
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_status(0);
    row.set_transferred_bytes(100);
    row.set_request_start(at - us * 1_000 - 30);
    row.set_request_end(at - us * 1_000 - 20);
    row.set_response_start(at - 20);
    row.set_response_end(at);
    row.derive_durations();
    row
}

/// Rows with a path have a share, a user and a client too.
fn batch(rows: &[(Operation, &str)]) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for (row, name) in rows {
        let mut row = *row;
        if !name.is_empty() {
            row.set_share(builder.names.share.intern(r"\\s\homes"));
            row.set_path(builder.names.path.intern(name));
            row.set_user(builder.names.user.intern("alice"));
            row.set_client(builder.names.client.intern("192.0.2.1"));
        }
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn live(options: Options) -> Live {
    Live::new(options, BEGIN)
}

fn names(snapshot: &Snapshot) -> Vec<(Option<&str>, u64)> {
    let rows = snapshot.rows.iter().map(|row| (row.name.as_deref(), row.operations));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

#[test]
fn operations_are_grouped_by_every_key_at_once() {
    let mut live = live(Options::default());
    let at = 1_001 * S + 5;
    let mut smb1 = operation(READ, at, 10);
    smb1.set_protocol(1);
    smb1.set_command(code::command(1, 0x2e));
    smb1.set_pid(77);
    let mut sealed = operation(READ, at, 10);
    sealed.clear(smbscope_tables::operation::Column::command);
    sealed.set_encrypted(true);
    let rows = [
        (operation(READ, at, 10), r"a\b.txt"),
        (operation(WRITE, at, 10), "c"),
        (operation(READ, at, 10), ""),
        (smb1, "c"),
        (sealed, ""),
    ];
    live.operations(&batch(&rows)).unwrap();
    assert!(live.advance(1_002 * S));
    let of = |key| live.snapshot(key, Span::Slot);
    assert_eq!(
        names(&of(Key::Command)),
        [
            (Some("(encrypted)"), 1),
            (Some("Read"), 2),
            (Some("ReadAndX (SMB1)"), 1),
            (Some("Write"), 1)
        ]
    );
    assert_eq!(names(&of(Key::Share)), [(None, 2), (Some(r"\\s\homes"), 3)]);
    assert_eq!(
        names(&of(Key::File)),
        [(None, 2), (Some(r"\\s\homes\a\b.txt"), 1), (Some(r"\\s\homes\c"), 2)]
    );
    assert_eq!(names(&of(Key::User)), [(None, 2), (Some("alice"), 3)]);
    assert_eq!(names(&of(Key::Client)), [(None, 2), (Some("192.0.2.1"), 3)]);
    assert_eq!(names(&of(Key::Process)), [(None, 4), (Some("77"), 1)]);
    let total = of(Key::User).total;
    assert_eq!((total.operations, total.read_bytes, total.written_bytes), (5, 300, 100));
}

#[test]
fn percentiles_and_parts_leave_out_what_waits() {
    let mut live = live(Options::default());
    let at = |n: i64| 1_001 * S + n;
    let mut rows: Vec<_> = (1..=100).map(|n| (operation(READ, at(n), n), "")).collect();
    let mut wait = operation(NOTIFY, at(101), 900_000);
    wait.set_waits(true);
    let mut failed = operation(READ, at(102), 50);
    failed.set_status(0xc000_0022);
    let mut missing = operation(READ, at(103), 50);
    missing.set_status(0xc000_0034);
    rows.extend([(wait, ""), (failed, ""), (missing, "")]);
    live.operations(&batch(&rows)).unwrap();
    live.advance(1_002 * S);
    let row = live.snapshot(Key::Command, Span::Slot).total;
    let told = (row.operations, row.errors, row.not_found, row.waits);
    assert_eq!(told, (103, 1, 1, 1));
    let found = &row.turnaround;
    assert_eq!((found.n, found.max_ns), (102, Some(100_000)));
    for (value, us) in [(found.p50_ns, 50), (found.p95_ns, 95), (found.p99_ns, 99)] {
        assert!((value.unwrap() - us * 1_000).abs() <= us * 10, "{value:?}, {us}");
    }
    assert_eq!(row.part_ns(Part::Turnaround), found.sum_ns);
    assert_eq!(row.part_ns(Part::RequestTransfer), 1_020);
}

#[test]
fn the_time_is_split_as_far_as_it_is_known() {
    let mut live = live(Options::default());
    let at = 1_001 * S + 5;
    let mut inside = operation(READ, at, 10);
    inside.set_server_ns(10_000);
    inside.set_queue_ns(2_000);
    inside.set_io_ns(7_500);
    let mut member = operation(READ, at, 10);
    member.set_compound(1);
    member.set_queue_ns(1);
    let mut wire = operation(READ, at, 10);
    wire.set_server_ns(6_000);
    live.operations(&batch(&[(inside, ""), (member, ""), (wire, "")])).unwrap();
    live.advance(1_002 * S);
    let snapshot = live.snapshot(Key::Share, Span::Slot);
    assert!(snapshot.has_slices);
    let spent: Vec<_> = Part::all()
        .map(|part| (part, snapshot.total.part_ns(part)))
        .filter(|(_, ns)| *ns != 0)
        .collect();
    assert_eq!(
        spent,
        [
            (Part::RequestTransfer, 30),
            (Part::Slice(Kind::Queue), 2_001),
            (Part::Slice(Kind::Io), 7_500),
            (Part::Unexplained, 500),
            (Part::Server, 6_000),
            (Part::Network, 4_000),
            (Part::ResponseTransfer, 60),
        ]
    );
    let places: Vec<usize> = Part::all().map(Part::place).collect();
    assert_eq!(places, (0..data::PARTS).collect::<Vec<_>>());
}

#[test]
fn the_window_slides() {
    let mut live = live(Options { slots: 3, ..Options::default() });
    let add = |live: &mut Live, second: i64, name: &str| {
        live.operations(&batch(&[(operation(READ, second * S + 7, 5), name)])).unwrap();
    };
    let files = |live: &Live, span| {
        let snapshot = live.snapshot(Key::File, span);
        let rows = snapshot.rows.iter().filter_map(|row| row.name.as_deref());
        let mut rows: Vec<_> = rows.map(|name| name.rsplit('\\').next().unwrap()).collect();
        rows.sort_unstable();
        (rows.concat(), snapshot.span_ns / S)
    };
    add(&mut live, 1_000, "partial second");
    add(&mut live, 1_001, "a");
    assert_eq!(files(&live, Span::Slot), (String::new(), 0), "nothing is complete");
    assert!(!live.advance(1_001 * S + S / 2));
    assert_eq!(live.next_ns(), 1_002 * S);
    assert!(live.advance(1_002 * S));
    assert_eq!(files(&live, Span::Slot), ("a".into(), 1));
    // An operation of a second that is not over, and one of the second that is.
    add(&mut live, 1_002, "b");
    add(&mut live, 1_001, "c");
    assert_eq!(files(&live, Span::Slot), ("ac".into(), 1));
    assert_eq!(live.snapshot(Key::File, Span::Slot).late, 1);
    live.advance(1_003 * S);
    assert_eq!(files(&live, Span::Slot), ("b".into(), 1));
    assert_eq!(files(&live, Span::Window), ("abc".into(), 2));
    live.advance(1_005 * S);
    assert_eq!(files(&live, Span::Window), ("b".into(), 3));
    // Its slot is gone: it is news now.
    add(&mut live, 1_001, "d");
    live.advance(1_006 * S);
    assert_eq!(files(&live, Span::Slot), ("d".into(), 1));
    live.advance(2_000 * S);
    assert_eq!(files(&live, Span::Window), (String::new(), 3));
    // The clock is set back.
    assert!(live.advance(500 * S));
    add(&mut live, 500, "e");
    live.advance(501 * S);
    assert_eq!(files(&live, Span::Window), ("e".into(), 1));
}

#[test]
fn no_slot_is_left_out_when_time_is_told_late() {
    let mut live = live(Options { slots: 3, ..Options::default() });
    let seconds = [1_001, 1_002, 1_004, 1_009, 1_030];
    let rows = seconds.map(|second| (operation(READ, second * S, 5), "a"));
    live.operations(&batch(&rows)).unwrap();
    let mut found = Vec::new();
    while live.step(1_010 * S) {
        let snapshot = live.snapshot(Key::File, Span::Slot);
        found.push((snapshot.end_ns / S, snapshot.total.operations, snapshot.late));
    }
    // The last of them is too far ahead for its own slot.
    let told = [1, 1, 0, 1, 0, 0, 0, 0, 1].into_iter().zip(1_002..);
    assert_eq!(found, told.map(|(operations, end)| (end, operations, 1)).collect::<Vec<_>>());
    assert!(live.step(1_011 * S));
    assert_eq!(live.snapshot(Key::File, Span::Slot).total.operations, 1);
    // The machine slept: not every second of that is a line.
    let mut steps = 0;
    while live.step(90_000 * S) {
        steps += 1;
    }
    assert!(steps < 50, "{steps}");
    assert_eq!(live.snapshot(Key::File, Span::Slot).end_ns, 90_000 * S);
}

#[test]
fn an_operation_without_a_time_is_where_the_one_before_it_is() {
    let mut live = live(Options::default());
    let mut member = operation(READ, 0, 5);
    member.clear(smbscope_tables::operation::Column::response_end);
    let rows = [
        (member, "no one before"),
        (operation(READ, 1_002 * S, 5), "lead"),
        (member, "member"),
        (operation(READ, 1_003 * S, 5), "next"),
    ];
    live.operations(&batch(&rows)).unwrap();
    let mut found = Vec::new();
    for second in 1_002..=1_004 {
        live.advance(second * S);
        found.push(live.snapshot(Key::File, Span::Slot).total.operations);
    }
    assert_eq!(found, [1, 2, 1]);
}

#[test]
fn groups_are_bounded_and_forgotten_when_they_are_over() {
    let mut live = live(Options { groups_max: 3, slots: 2, ..Options::default() });
    let mut names = (0..).map(|number| format!("f{number}"));
    let mut rounds_named = 0;
    for second in 1_001..1_040 {
        for name in names.by_ref().take(5) {
            live.operations(&batch(&[(operation(READ, second * S + 1, 5), &name)])).unwrap();
        }
        live.advance((second + 1) * S);
        let snapshot = live.snapshot(Key::File, Span::Window);
        let others = snapshot.others.as_ref().map_or(0, |row| row.operations);
        assert!(snapshot.rows.len() <= 3, "{:?}", snapshot.rows);
        let named: u64 = snapshot.rows.iter().map(|row| row.operations).sum();
        assert_eq!(named + others, snapshot.total.operations);
        assert!(others > 0);
        rounds_named += u64::from(named > 0);
    }
    // There is room for new ones whenever the window has moved past the old.
    assert!(rounds_named > 20, "{rounds_named}");
}

#[test]
fn rows_are_ordered_by_a_column_and_then_by_name() {
    let row = |name: &str, operations, p99| Row {
        name: Some(name.into()),
        operations,
        turnaround: crate::stats::latency::Distribution { p99_ns: p99, ..Default::default() },
        ..Row::default()
    };
    let mut rows =
        [row("b", 2, None), row("c", 2, Some(5)), row("a", 2, Some(9)), row("d", 7, Some(1))];
    let mut ordered = |by, reverse| {
        sort(&mut rows, by, reverse);
        rows.iter().filter_map(|row| row.name.clone()).collect::<String>()
    };
    assert_eq!(ordered(Sort::Operations, false), "dabc");
    assert_eq!(ordered(Sort::Operations, true), "abcd");
    assert_eq!(ordered(Sort::P99, false), "acdb", "those without come last");
    assert_eq!(ordered(Sort::Name, false), "abcd");
    assert_eq!(ordered(Sort::Name, true), "dcba");
}

#[test]
fn what_ended_while_the_probes_were_attached_is_in_no_interval() {
    let mut live = live(Options::default());
    let before: Vec<_> = (1..=5).map(|n| (operation(READ, BEGIN - n * S, 10), "a")).collect();
    live.operations(&batch(&before)).unwrap();
    live.operations(&batch(&[(operation(READ, BEGIN + S, 10), "a")])).unwrap();
    assert!(live.advance(BEGIN + 2 * S));
    let first = live.snapshot(Key::Command, Span::Slot);
    assert_eq!(names(&first), [(Some("Read"), 1)]);
}
