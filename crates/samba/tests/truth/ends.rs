//! Connections begin and end as in a capture.

use std::net::SocketAddr;
use std::time::Duration;

use smbscope_capture::Part;
use smbscope_tables::tables::{Connection, Coverage};

use crate::client::connect;
use crate::echo::Raw;
use crate::recorder::{Recorded, Recorder, alone};
use smbscope_testing::samba::samba;

fn connections(recorded: &Recorded) -> Vec<Connection> {
    let rows = recorded.parts.iter().filter_map(|part| match part {
        Part::Connections(rows) => Some(rows.clone()),
        _ => None,
    });
    rows.flatten().collect()
}

fn coverage(recorded: &Recorded) -> &Coverage {
    let found = recorded.parts.iter().find_map(|part| match part {
        Part::Coverage(coverage) => Some(coverage),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_port_that_a_client_uses_again_is_another_connection() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::begin(&lab) else { return };
    // A port chosen by the client, then the same port again.
    let mut from = 0;
    for (number, echos) in [(1, 5), (2, 7)] {
        let stream = connect(lab.port(), |socket| {
            socket.set_reuseaddr(true).unwrap();
            socket.bind(SocketAddr::from(([127, 0, 0, 1], from))).unwrap();
            // It ends with a reset, so that the port is free at once.
            socket.set_zero_linger().unwrap();
        });
        from = stream.local_addr().unwrap().port();
        let mut raw = Raw::over(stream, number);
        (0..echos).for_each(|_| raw.ask());
        drop(raw);
        std::thread::sleep(Duration::from_millis(300));
    }
    let recorded = recorder.end();
    let rows = connections(&recorded);
    let operations: Vec<u64> = rows.iter().map(|row| row.operations).collect();
    assert_eq!(operations, [6, 8], "{rows:?}");
    let coverage = coverage(&recorded);
    assert_eq!((coverage.operations, coverage.operations_unanswered), (14, 0), "{coverage:?}");
    for row in &rows {
        assert!(row.handshake_seen && row.credits_max >= 1, "{row:?}");
        assert_ne!(row.end_reason, "end of the capture");
        assert_eq!((row.packets_to_server, row.packets_to_client), (0, 0), "there are none");
    }
    assert_eq!(coverage.connections_mid_stream, 0);
    assert_eq!((coverage.frames, coverage.frames_time_backwards), (0, 0));
}
