//! The tables other than the operations.

use smbscope_analysis::summary::{Options, Summary};
use smbscope_tables::tables::{Coverage, Handle, Session, Tree};

#[test]
fn nothing_gives_an_empty_report() {
    let found = Summary::new(Options::default()).finish();
    assert_eq!(found.totals.tally.operations, 0);
    assert!(found.commands.is_empty() && found.series.bins.is_empty());
    assert_eq!((found.start_ns, found.totals.outstanding_max), (None, None));
}

#[test]
fn the_other_tables() {
    let mut summary = Summary::new(Options::default());
    summary.coverage(&Coverage { start: Some(5), end: Some(9), ..Coverage::default() });
    summary.sessions(&[Session {
        guest: Some(true),
        mechanism: Some("NTLMSSP".into()),
        channels: 2,
        ..Session::default()
    }]);
    summary.trees(&[Tree { continuous_availability: Some(true), ..Tree::default() }]);
    let handle = |opened_at, closed_at, operations| Handle {
        opened_at,
        closed_at,
        operations,
        lease: Some("RH".into()),
        ..Handle::default()
    };
    let closed = |handle| Handle { close_operation: Some(9), ..handle };
    summary.handles(&[
        closed(handle(Some(0), Some(7), 2)),
        closed(handle(None, Some(3), 9)),
        handle(Some(1), None, 2),
    ]);
    let found = summary.finish();
    assert_eq!((found.start_ns, found.end_ns), (Some(5), Some(9)));
    assert_eq!((found.sessions.guests, found.sessions.multichannel), (1, 1));
    assert_eq!(found.trees.continuously_available, 1);
    let handles = &found.handles;
    assert_eq!((handles.handles, handles.opened_before), (3, 1));
    assert_eq!((handles.still_open, handles.never_used), (1, 1));
    assert_eq!((handles.open.n, handles.open.p50_ns), (1, Some(7)));
    assert_eq!(handles.leases[0].count, 3);
}

#[test]
fn an_open_that_ended_without_a_close_may_have_been_used() {
    let mut summary = Summary::new(Options::default());
    let handle = |close_operation, operations, reads| Handle {
        opened_at: Some(0),
        closed_at: Some(7),
        close_operation,
        operations,
        reads,
        ..Handle::default()
    };
    // Nothing in between; with the connection, a query; with it, nothing; with the tree, a read.
    summary.handles(&[
        handle(Some(9), 2, 0),
        handle(None, 2, 0),
        handle(None, 1, 0),
        handle(Some(9), 2, 1),
    ]);
    assert_eq!(summary.finish().handles.never_used, 2);
}
