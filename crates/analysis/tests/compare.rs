//! Two recordings side by side: one with itself, exchanged, other mixes, load runs.

// A test may panic.
#![allow(clippy::unwrap_used)]

use arrow::array::RecordBatch;
use proptest::prelude::*;
use smbscope_analysis::compare::{
    By, COLUMNS, Comparison, Effect, Options, Row, RowKind, Side, Unit, WarningKind, compare,
};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::description::RunDescription;
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{DONE, MEASURED, NOT_STARTED, Scenario, WARM_UP};
use smbscope_tables::tables::Coverage;

const CREATE: u16 = 5;
const CLOSE: u16 = 6;
const READ: u16 = 8;

/// Connection, command, duration.
type Made = (u64, u16, i64);

fn batch(rows: &[Made], change: impl Fn(usize, &mut Operation)) -> RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    let recording = builder.names.recording.intern("made");
    for (place, &(connection, command, ns)) in rows.iter().enumerate() {
        let mut row = Operation::default();
        let start = place as i64 * 1_000_000;
        row.set_recording(recording);
        row.set_connection(connection);
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        row.set_status(0);
        row.set_request_start(start);
        row.set_response_end(start + ns);
        row.set_elapsed_ns(ns);
        change(place, &mut row);
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn side(rows: &[Made]) -> Side {
    let mut side = Side::new(&Options::default());
    side.operations(&batch(rows, |_, _| {})).unwrap();
    side
}

fn compared(a: &[Made], b: &[Made]) -> Comparison {
    compare(side(a), side(b), &Options::default())
}

fn row<'a>(found: &'a Comparison, kind: RowKind, name: Option<&str>) -> &'a Row {
    let mut rows = found.rows.iter();
    rows.find(|row| row.kind == kind && row.name.as_deref() == name).unwrap()
}

fn percent(found: &Comparison, kind: RowKind, name: Option<&str>) -> f64 {
    row(found, kind, name).change.as_ref().unwrap().percent
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{found} is not {wanted}");
}

/// Twelve connections, each with its own speed, with a Create of `create` and a Read of `read` times that.
fn twelve(create: i64, read: i64) -> Vec<Made> {
    let of = |round: u64| {
        (0..12).flat_map(move |connection| {
            let pace = 1000 + 10 * connection as i64 + (round as i64 * 37) % 11;
            [(connection, CREATE, create * pace), (connection, READ, read * pace)]
        })
    };
    (0..50).flat_map(of).collect()
}

#[test]
fn a_change_of_one_command_is_found_there_and_not_elsewhere() {
    let found = compared(&twelve(5, 2), &twelve(5, 3));
    close(percent(&found, RowKind::Command, Some("Read")), 50.0);
    close(percent(&found, RowKind::Command, Some("Create")), 0.0);
    close(percent(&found, RowKind::Total, None), 100.0 / 7.0);
    let read = row(&found, RowKind::Command, Some("Read"));
    let change = read.change.as_ref().unwrap();
    assert!(change.significant && change.p_holm.unwrap() < 1e-6, "{change:?}");
    assert!(change.low_percent.unwrap() < 50.0 && 50.0 < change.high_percent.unwrap());
    assert_eq!((change.cliffs_delta, change.effect), (Some(1.0), Some(Effect::Large)));
    assert_eq!((read.a.unit, read.a.clusters), (Some(Unit::Connection), Some(12)));
    let create = row(&found, RowKind::Command, Some("Create")).change.as_ref().unwrap();
    assert_eq!((create.p, create.significant, create.cliffs_delta), (Some(1.0), false, Some(0.0)));
    assert_eq!((found.warnings.len(), found.paired), (0, false), "{:?}", found.warnings);
}

#[test]
fn another_mix_of_the_same_commands_changes_the_total_but_not_at_the_mix_of_a() {
    let a = twelve(5, 2);
    let mut b = a.clone();
    b.extend(a.iter().filter(|row| row.1 == READ));
    b.extend((0..12).map(|connection| (connection, CLOSE, 1000)));
    let found = compared(&a, &b);
    assert!(percent(&found, RowKind::Total, None) < -10.0);
    close(percent(&found, RowKind::TotalAtMixOfA, None), 0.0);
    let close_row = row(&found, RowKind::Command, Some("Close"));
    assert_eq!((close_row.a.operations, close_row.b.operations), (0, 12));
    assert!(close_row.change.is_none());
    let kinds: Vec<_> = found.warnings.iter().map(|warning| warning.kind).collect();
    assert_eq!(kinds, [WarningKind::Mix]);
    // The same by hand where B's times differ too: as many of each at 3 and 4 are as long as at 5
    // and 2, however many there are.
    let mut slower = twelve(3, 4);
    slower.extend(twelve(3, 4).iter().filter(|row| row.1 == READ));
    close(percent(&compared(&a, &slower), RowKind::TotalAtMixOfA, None), 0.0);
}

#[test]
fn groups_follow_the_requested_columns() {
    let made = twelve(5, 2);
    let options = Options { by: By::User, ..Options::default() };
    let of = |second: &str| {
        let mut builder = OperationBuilder::new(None).unwrap();
        let names = ["alice", second].map(|name| builder.names.user.intern(name));
        for (place, &(connection, command, ns)) in made.iter().enumerate() {
            let mut row = Operation::default();
            row.set_user(names[place % 2]);
            row.set_connection(connection);
            row.set_command(code::command(2, command));
            row.set_elapsed_ns(ns);
            builder.append(&[row]);
        }
        let mut side = Side::new(&options);
        side.operations(&builder.finish().unwrap()).unwrap();
        side
    };
    let found = compare(of("bob"), of("carol"), &options);
    let names: Vec<_> = found.rows.iter().map(|row| (row.kind, row.name.as_deref())).collect();
    assert_eq!(
        names,
        [
            (RowKind::Total, None),
            (RowKind::TotalAtMixOfA, None),
            (RowKind::User, Some("alice")),
            (RowKind::User, Some("bob")),
            (RowKind::User, Some("carol")),
        ]
    );
    // Without times there are no blocks; connections are used instead.
    assert_eq!(found.rows[0].a.unit, Some(Unit::Connection));
    assert_eq!(found.rows[0].a.operations_per_second, None);
}

#[test]
fn waits_by_design_count_without_latency_and_errors_count() {
    let mut side = Side::new(&Options::default());
    let change = |place: usize, row: &mut Operation| {
        row.set_waits(place == 0);
        row.set_server_ns(10);
        row.set_transferred_bytes(600);
        if place == 1 {
            row.set_status(0xc000_0022);
        }
    };
    side.operations(&batch(&[(1, READ, 500), (1, READ, 100), (1, CLOSE, 300)], change)).unwrap();
    let mut other = Side::new(&Options::default());
    other.operations(&batch(&[], |_, _| {})).unwrap();
    let found = compare(side, other, &Options::default());
    let total = &row(&found, RowKind::Total, None).a;
    assert_eq!((total.operations, total.timed, total.mean_s), (3, 2, Some(200e-9)));
    assert_eq!((total.server_mean_s, total.bytes_per_operation), (Some(10e-9), Some(400.0)));
    close(total.errors_per_operation.unwrap(), 1.0 / 3.0);
    close(total.operations_per_second.unwrap(), 3.0 / 2_000_300e-9);
    assert_eq!((found.a.timed, found.b.timed), (2, 0));
    assert!(found.rows.iter().all(|row| row.change.is_none()));
}

#[test]
fn unlike_vantages_and_protections_are_said() {
    let make = |vantage: &str, signed: bool| {
        let mut side = Side::new(&Options::default());
        side.coverage(&Coverage { vantage: Some(vantage.into()), ..Coverage::default() });
        side.operations(&batch(&twelve(5, 2), |_, row| row.set_signed(signed))).unwrap();
        side
    };
    let found = compare(make("client", true), make("server", false), &Options::default());
    let said: Vec<_> =
        found.warnings.iter().map(|it| (it.kind, it.a.as_str(), it.b.as_str())).collect();
    assert_eq!(
        said,
        [(WarningKind::Vantage, "client", "server"), (WarningKind::Signing, "100 %", "0 %")]
    );
}

#[test]
fn every_column_that_is_read_exists() {
    let schema = smbscope_tables::operation::schema();
    assert!(COLUMNS.iter().all(|name| schema.index_of(name).is_ok()));
}

/// Ten users, with four scenarios each of which the first is warm-up; each has one operation.
fn load(seed: u64, slower: f64) -> Side {
    let mut side = Side::new(&Options::default());
    let run = RunDescription {
        recording: "made".into(),
        workload: "homefolder".into(),
        seed,
        scale: 1.0,
        ..RunDescription::default()
    };
    side.run(&run, true);
    let mut rows = Vec::new();
    let mut operations = Vec::new();
    for user in 1..=10u64 {
        for run in 0..4u64 {
            // Users differ by ten, executions by some per cent.
            let ns = (user * user) as f64 * 1e6 * (1.0 + 0.01 * (user * run % 5) as f64);
            let ns = if run == 2 { ns * (1.0 + (slower - 1.0) * 1.1) } else { ns * slower };
            rows.push(Scenario {
                recording: "made".into(),
                scenario_run: user * 4 + run,
                user_number: user,
                connection: Some(user),
                scenario: ["FileOpen", "FileSave"][(run % 2) as usize].into(),
                phase: if run == 0 { WARM_UP } else { MEASURED }.into(),
                response_ns: (user != 3 || run != 3).then_some(ns as i64),
                outcome: if user == 3 && run == 3 { NOT_STARTED } else { DONE }.into(),
                ..Scenario::default()
            });
            operations.push((user, READ, ns as i64));
        }
    }
    side.scenarios(&rows);
    let number = |place: usize| 4 + place as u64;
    side.operations(&batch(&operations, |place, row| row.set_scenario_run(number(place)))).unwrap();
    side
}

#[test]
fn users_of_the_same_schedule_are_pairs_and_only_measured_scenarios_count() {
    let found = compare(load(1, 1.0), load(1, 1.2), &Options::default());
    assert!(found.paired);
    let all = row(&found, RowKind::Scenarios, None);
    assert_eq!((all.a.operations, all.a.timed), (30, 29));
    close(all.a.errors_per_operation.unwrap(), 1.0 / 30.0);
    assert_eq!((all.a.unit, all.a.clusters), (Some(Unit::UserPair), Some(10)));
    let change = all.change.as_ref().unwrap();
    assert!((change.percent - 20.6).abs() < 0.5 && change.significant, "{change:?}");
    assert!(change.high_percent.unwrap() - change.low_percent.unwrap() < 2.0, "{change:?}");
    let read = row(&found, RowKind::Command, Some("Read"));
    assert_eq!((read.a.operations, found.a.left_out, found.a.users), (30, 10, Some(10)));
    assert!(matches!(read.a.unit, Some(Unit::UserPair | Unit::TimeBlockPair)), "{read:?}");

    let other = compare(load(1, 1.0), load(2, 1.2), &Options::default());
    assert!(!other.paired);
    let kinds: Vec<_> = other.warnings.iter().map(|warning| warning.kind).collect();
    assert_eq!(kinds, [WarningKind::Seed]);
    let change = row(&other, RowKind::Scenarios, None).change.as_ref().unwrap();
    assert!(!change.significant, "{change:?}");
    let options = Options { by: By::Scenario, ..Options::default() };
    let only = compare(load(1, 1.0), load(1, 1.0), &options);
    let kinds: Vec<_> = only.rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [RowKind::Scenarios, RowKind::Scenario, RowKind::Scenario]);
}

#[test]
fn a_comparison_goes_through_json() {
    let found = compared(&twelve(5, 2), &twelve(5, 3));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["rows"][0]["kind"], "total");
    assert_eq!(json["rows"][0]["a"]["unit"], "connection");
}

fn made() -> impl Strategy<Value = Vec<Made>> {
    let commands = prop::sample::select(vec![CREATE, CLOSE, READ]);
    prop::collection::vec((0u64..20, commands, 1i64..50_000_000), 1..300)
}

proptest! {
    #[test]
    fn with_itself_nothing_changed(rows in made()) {
        for row in compared(&rows, &rows).rows {
            let change = row.change.unwrap();
            prop_assert!(change.percent.abs() < 1e-9, "{change:?}");
            prop_assert!(change.cliffs_delta.is_none_or(|delta| delta == 0.0));
            prop_assert!(change.p.is_none_or(|p| p > 1.0 - 1e-9), "{change:?}");
            prop_assert!(!change.significant);
        }
    }

    #[test]
    fn exchanging_the_sides_mirrors(a in made(), b in made()) {
        let (there, back) = (compared(&a, &b), compared(&b, &a));
        for one in there.rows.iter().filter(|row| row.kind != RowKind::TotalAtMixOfA) {
            let other = row(&back, one.kind, one.name.as_deref());
            prop_assert_eq!((&one.a, &one.b), (&other.b, &other.a));
            let (Some(one), Some(other)) = (&one.change, &other.change) else {
                prop_assert_eq!(one.change.is_some(), other.change.is_some());
                continue;
            };
            let mirrored = |x: f64, y: f64| ((1.0 + x / 100.0) * (1.0 + y / 100.0) - 1.0).abs() < 1e-6;
            prop_assert!(mirrored(one.percent, other.percent), "{one:?} {other:?}");
            if let (Some(low), Some(high)) = (one.low_percent, other.high_percent) {
                prop_assert!(mirrored(low, high), "{one:?} {other:?}");
                prop_assert!(low <= one.percent + 1e-9);
            }
            prop_assert_eq!(one.cliffs_delta.map(|delta| -delta), other.cliffs_delta);
            prop_assert_eq!(one.effect, other.effect);
            for (p, q) in [(one.p, other.p), (one.p_holm, other.p_holm)] {
                prop_assert_eq!(p.is_some(), q.is_some());
                prop_assert!((p.unwrap_or(1.0) - q.unwrap_or(1.0)).abs() < 1e-9, "{one:?} {other:?}");
            }
            prop_assert!(one.p_holm.unwrap_or(2.0) >= one.p.unwrap_or(0.0) - 1e-12);
        }
    }
}
