//! Findings about names: repeated and failing lookups, listings, unused opens, compounding.

use smbscope_analysis::explain::{About, FindingKind};
use smbscope_findings::Confidence;
use smbscope_tables::code;
use smbscope_tables::operation::{self, Operation};

use crate::support::*;

#[test]
fn finds_repeated_lookups() {
    let again: Vec<_> = (0..20).flat_map(|handle| query_file(handle, "a.txt")).collect();
    let diagnosis = explain(&again);
    let repeated = found(&diagnosis, FindingKind::RepeatedLookups).unwrap();
    // All but the first.
    assert_eq!(
        (repeated.details.operations, repeated.confidence),
        (57, Some(Confidence::Measured))
    );
    assert_eq!(repeated.details.paths[0].name, "a.txt");
    // Much later, other files, and files that are read: none of these is a repetition.
    let mut late = again.clone();
    late.iter_mut().for_each(|act| act.gap_ns = 11_000 * MS);
    assert_eq!(found(&explain(&late), FindingKind::RepeatedLookups), None);
    let names = ["a", "b", "c", "d", "e", "f"];
    let others: Vec<_> = (0..6).flat_map(|one| query_file(one, names[one as usize])).collect();
    assert_eq!(found(&explain(&others), FindingKind::RepeatedLookups), None);
    let read: Vec<_> = (0..20)
        .flat_map(|handle| {
            let [open, _, close] = query_file(handle, "a.txt");
            [open, act(READ, handle, "a.txt"), close]
        })
        .collect();
    assert_eq!(found(&explain(&read), FindingKind::RepeatedLookups), None);
}

#[test]
fn lookups_after_a_change_by_another_client_do_not_count() {
    let changed_by = |client: &'static str| {
        let acts: Vec<_> = (0..10)
            .flat_map(|round| {
                let change = Act { client, ..act(SET_INFO, 100, "a.txt") };
                query_file(round, "a.txt").into_iter().chain([change])
            })
            .collect();
        found(&explain(&acts), FindingKind::RepeatedLookups).map(|found| found.details.operations)
    };
    assert_eq!(changed_by("10.0.0.2"), None);
    assert_eq!(changed_by("10.0.0.1"), Some(27));
    // A folder's listing changes when something in it is created, written or deleted.
    let deletes = |row: &mut Operation| {
        row.set_desired_access(0x1_0000);
        row.set_create_options(0x1040);
    };
    let listed: Vec<_> = (0..10)
        .flat_map(|round| {
            let open = Act {
                client: "10.0.0.2",
                set: deletes,
                ..act(CREATE, 100 + round, "folder\\gone.txt")
            };
            list_folder(round).into_iter().chain([open])
        })
        .collect();
    assert_eq!(found(&explain(&listed), FindingKind::RepeatedListings), None);
}

#[test]
fn opens_that_create_or_delete_are_a_use() {
    for set in [
        (|row: &mut Operation| {
            row.set_desired_access(0x1_0000);
            row.set_create_options(0x1040);
        }) as fn(&mut Operation),
        // FILE_CREATE.
        |row| row.set_detail(code::detail(code::Detail::Disposition, 2)),
    ] {
        let pairs: Vec<_> = (0..20)
            .flat_map(|one| [Act { set, ..act(CREATE, one, "a.txt") }, act(CLOSE, one, "a.txt")])
            .collect();
        let diagnosis = explain(&pairs);
        assert_eq!(found(&diagnosis, FindingKind::OpenCloseChurn), None);
        assert_eq!(found(&diagnosis, FindingKind::RepeatedLookups), None);
    }
}

#[test]
fn finds_lookups_of_missing_files() {
    let missing = |path| Act { set: |row| row.set_status(NOT_FOUND), ..act(CREATE, 0, path) };
    let diagnosis = explain(&vec![missing("desktop.ini"); 20]);
    let failing = found(&diagnosis, FindingKind::FailingLookups).unwrap();
    assert_eq!((failing.details.operations, figure(failing, "failed_lookups")), (19, 20.0));
    let once: Vec<_> = ["a", "b", "c", "d"].map(missing).to_vec();
    assert_eq!(found(&explain(&once), FindingKind::FailingLookups), None);
}

#[test]
fn finds_repeated_listings() {
    let again: Vec<_> = (0..20).flat_map(list_folder).collect();
    let diagnosis = explain(&again);
    // All but the first, with their opens and closes.
    assert_eq!(found(&diagnosis, FindingKind::RepeatedListings).unwrap().details.operations, 76);
    assert_eq!(found(&explain(&list_folder(1)), FindingKind::RepeatedListings), None);
    // In a compound, all of the time is counted for the open.
    let set: fn(&mut Operation) = |row| match row.operation().unwrap() % 4 {
        0 => row.set_compound(1),
        _ => {
            row.set_compound(1);
            row.clear(operation::Column::request_start);
            row.clear(operation::Column::elapsed_ns);
            row.clear(operation::Column::busy_ns);
        }
    };
    let together: Vec<_> = again.into_iter().map(|act| Act { set, ..act }).collect();
    let diagnosis = explain(&together);
    assert_eq!(diagnosis.findings[0].kind, FindingKind::RepeatedListings);
    assert_eq!(found(&diagnosis, FindingKind::RepeatedLookups), None);
}

#[test]
fn finds_opens_without_use() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let pairs: Vec<_> = (0..6)
        .flat_map(|one| {
            let path = names[one as usize];
            [act(CREATE, one, path), act(CLOSE, one, path)]
        })
        .collect();
    assert_eq!(
        found(&explain(&pairs), FindingKind::OpenCloseChurn).unwrap().details.operations,
        12
    );
    let used: Vec<_> = (0..6).flat_map(|one| query_file(one, names[one as usize])).collect();
    assert_eq!(found(&explain(&used), FindingKind::OpenCloseChurn), None);
}

#[test]
fn finds_missing_compounding() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let far = |act: Act| Act { rtt_ns: 20 * MS, ..act };
    let apart: Vec<_> =
        (0..6).flat_map(|one| query_file(one, names[one as usize])).map(far).collect();
    let diagnosis = explain(&apart);
    let single = found(&diagnosis, FindingKind::NoCompounding).unwrap();
    // Two of three could be in the compound.
    assert_eq!(single.details.operations, 12);
    assert!((single.share() - 2.0 / 3.0).abs() < 0.01, "{}", single.share());
    assert!(diagnosis.notes.iter().any(|note| note.about == About::Distance));
    let together = |act: Act| Act { set: |row| row.set_compound(1), ..act };
    let whole: Vec<_> = apart.iter().cloned().map(together).collect();
    assert_eq!(found(&explain(&whole), FindingKind::NoCompounding), None);
    let looked: Vec<_> = apart.into_iter().map(|act| Act { gap_ns: 5 * MS, ..act }).collect();
    assert_eq!(found(&explain(&looked), FindingKind::NoCompounding), None);
}

#[test]
fn finds_repeated_queries_of_smb1_without_an_open() {
    const TRANSACTION2: u16 = 0x32;
    const QUERY_PATH_ALL: u32 = 0x5_0107;
    const FIND_FIRST_BOTH: u32 = 0x1_0104;
    fn smb1(row: &mut Operation, detail: u32, status: u32) {
        row.set_protocol(1);
        row.set_command(code::command(1, TRANSACTION2));
        row.set_detail(code::detail(code::Detail::Transaction2, detail));
        row.set_status(status);
    }
    let asks = |number: u64| {
        let set: fn(&mut Operation) = match number % 3 {
            0 => |row| smb1(row, QUERY_PATH_ALL, 0),
            1 => |row| smb1(row, FIND_FIRST_BOTH, 0),
            _ => |row| smb1(row, QUERY_PATH_ALL, NOT_FOUND),
        };
        Act { set, rtt_ns: 20 * MS, ..act(0, NO_HANDLE, "a\\b") }
    };
    let diagnosis = explain(&(0..60).map(asks).collect::<Vec<_>>());
    for trouble in
        [FindingKind::RepeatedLookups, FindingKind::RepeatedListings, FindingKind::FailingLookups]
    {
        let share = found(&diagnosis, trouble).map(|found| found.share());
        assert!(share.is_some_and(|share| (0.3..0.34).contains(&share)), "{trouble:?} {share:?}");
    }
}
