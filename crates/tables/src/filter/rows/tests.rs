//! Tests of the filter on rows of all tables.

use super::*;
use crate::builder::OperationBuilder;
use crate::operation::Operation;
use crate::operation::code;
use crate::tables::Counter;

const ALL: [Table; Table::ALL.len()] = Table::ALL;

/// Four operations: two of alice on docs, two of bob on home; the second is a member of the first's
/// compound and has no times.
fn batch() -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    let rows = [
        (5, "alice", "docs", "a\\plan.docx", "10.0.0.1", Some(100)),
        (6, "alice", "docs", "a\\plan.docx", "10.0.0.1", None),
        (8, "bob", "home", "b\\x.bin", "10.0.0.2", Some(200)),
        (9, "bob", "home", "b\\y.bin", "10.0.0.2", Some(300)),
    ];
    for (place, (command, user, share, path, client, time)) in (1u64..).zip(rows) {
        let mut row = Operation::default();
        row.set_recording(builder.names.recording.intern("r"));
        row.set_operation(place);
        row.set_connection(if user == "alice" { 1 } else { 2 });
        row.set_handle(place * 10);
        row.set_session_id(if user == "alice" { 77 } else { 88 });
        row.set_tree_id(3);
        row.set_command(code::command(2, command));
        row.set_user(builder.names.user.intern(&format!("CORP\\{user}")));
        row.set_share(builder.names.share.intern(&format!("\\\\server\\{share}")));
        row.set_path(builder.names.path.intern(path));
        row.set_client(builder.names.client.intern(client));
        row.set_client_port(50_000 + place as u16);
        time.into_iter().for_each(|time| row.set_request_start(time));
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn kept(filter: Filter) -> Vec<u64> {
    let mut filter = RowFilter::new(filter, &ALL);
    let Some(Part::Operations(batch)) = filter.part(Part::Operations(batch())).unwrap() else {
        panic!("operations are never held")
    };
    assert_eq!(filter.counts(), (batch.num_rows() as u64, 4));
    let numbers = Numbers::<UInt64Type>::from_batch(&batch, "operation").unwrap();
    (0..batch.num_rows()).filter_map(|row| numbers.get(row)).collect()
}

#[test]
fn each_condition_keeps_the_operations_that_meet_it() {
    let none = Filter::default;
    assert_eq!(kept(none()), [1, 2, 3, 4]);
    assert_eq!(kept(Filter { users: vec!["ALICE".parse().unwrap()], ..none() }), [1, 2]);
    assert_eq!(kept(Filter { shares: vec!["home".parse().unwrap()], ..none() }), [3, 4]);
    assert_eq!(kept(Filter { paths: vec!["b/*.bin".parse().unwrap()], ..none() }), [3, 4]);
    assert_eq!(kept(Filter { clients: vec!["10.0.0.2".parse().unwrap()], ..none() }), [3, 4]);
    assert_eq!(kept(Filter { clients: vec!["10.0.0.2:50004".parse().unwrap()], ..none() }), [4]);
    assert_eq!(kept(Filter { servers: vec!["10.0.0.9".parse().unwrap()], ..none() }), [0u64; 0]);
    let commands = vec!["read".parse().unwrap(), "create".parse().unwrap()];
    assert_eq!(kept(Filter { commands, ..none() }), [1, 3], "one or the other");
    let both = Filter {
        users: vec!["bob".parse().unwrap()],
        commands: vec!["write".parse().unwrap()],
        ..none()
    };
    assert_eq!(kept(both), [4], "all kinds of conditions");
}

#[test]
fn a_member_of_a_compound_is_where_its_lead_is() {
    let none = Filter::default;
    assert_eq!(kept(Filter { to: Some(200), ..none() }), [1, 2]);
    assert_eq!(kept(Filter { from: Some(200), to: Some(300), ..none() }), [3]);
    assert_eq!(kept(Filter { from: Some(101), ..none() }), [3, 4]);
}

#[test]
fn other_rows_stay_if_an_operation_that_stays_refers_to_them() {
    let filter = Filter { users: vec!["alice".parse().unwrap()], ..Filter::default() };
    let mut filter = RowFilter::new(filter, &ALL);
    let connection =
        |connection| Connection { recording: "r".into(), connection, ..Connection::default() };
    let handle = |handle| Handle { recording: "r".into(), handle, ..Handle::default() };
    let session = |session_id| Session { recording: "r".into(), session_id, ..Session::default() };
    let tree =
        |session_id| Tree { recording: "r".into(), session_id, tree_id: 3, ..Tree::default() };
    // Before the operations, as a capture can yield them.
    for part in [
        Part::Handles([10, 20, 30].map(handle).to_vec()),
        Part::Connections([1, 2].map(connection).to_vec()),
        Part::Sessions([77, 88].map(session).to_vec()),
        Part::Trees([77, 88].map(tree).to_vec()),
    ] {
        assert!(filter.part(part).unwrap().is_none());
    }
    assert!(filter.part(Part::Operations(batch())).unwrap().is_some());
    let slices: Vec<_> = [1, 2, 3]
        .map(|operation| crate::tables::Slice {
            recording: "r".into(),
            operation,
            ..Default::default()
        })
        .to_vec();
    let slices = Part::Slices(crate::tables::Slice::to_batch(&slices).unwrap());
    let Some(Part::Slices(slices)) = filter.part(slices).unwrap() else { panic!() };
    assert_eq!(slices.num_rows(), 2);
    let coverage = Part::Coverage(Box::default());
    assert!(matches!(filter.part(coverage).unwrap(), Some(Part::Coverage(_))));
    let numbers: Vec<Vec<u64>> = filter
        .release()
        .iter()
        .map(|part| match part {
            Part::Handles(rows) => rows.iter().map(|row| row.handle).collect(),
            Part::Connections(rows) => rows.iter().map(|row| row.connection).collect(),
            Part::Sessions(rows) => rows.iter().map(|row| row.session_id).collect(),
            Part::Trees(rows) => rows.iter().map(|row| row.session_id).collect(),
            _ => Vec::new(),
        })
        .collect();
    assert_eq!(numbers, [vec![10, 20], vec![1], vec![77], vec![77]]);
}

#[test]
fn without_operations_the_rows_themselves_decide() {
    let filter =
        Filter { from: Some(100), clients: vec!["10.0.0.1".parse().unwrap()], ..Filter::default() };
    let mut filter = RowFilter::new(filter, &[Table::Connections, Table::Counters]);
    let row =
        |client: &str, end| Connection { client: client.into(), end, ..Connection::default() };
    let rows = vec![row("10.0.0.1", 99), row("10.0.0.1", 100), row("10.0.0.2", 100)];
    assert!(filter.part(Part::Connections(rows)).unwrap().is_none());
    let counters = [99, 100].map(|time| Counter { time, ..Counter::default() }).to_vec();
    let Some(Part::Counters(counters)) = filter.part(Part::Counters(counters)).unwrap() else {
        panic!()
    };
    assert_eq!(counters.len(), 1);
    let Some(Part::Connections(rows)) = filter.release().pop() else { panic!() };
    assert_eq!(rows.len(), 1);
}

#[test]
fn the_columns_are_those_that_conditions_and_tables_need() {
    let filter = Filter {
        clients: vec!["10.0.0.1:445".parse().unwrap()],
        from: Some(1),
        ..Filter::default()
    };
    assert_eq!(
        RowFilter::columns(&filter, &[Table::Operations]),
        ["client", "client_port", "request_start", "response_end"]
    );
    let schema = crate::operation::schema();
    for name in RowFilter::columns(&filter, &ALL) {
        assert!(schema.index_of(name).is_ok(), "{name}");
    }
}
