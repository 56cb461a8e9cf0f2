//! Connections begin and end, as those of a capture do.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use smbscope_capture::Part;
use smbscope_event::tables::{Connection, Coverage};

use crate::echo::Raw;
use crate::recorder::{Recorded, Recorder, alone};
use crate::run::runtime;
use crate::support::samba;

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

/// From a port of the client's own choice; 0 for any.
fn connect(from: u16, port: u16) -> TcpStream {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    runtime().block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address(from)).unwrap();
        // Its end is a reset, so that the port is free at once.
        socket.set_zero_linger().unwrap();
        let stream = socket.connect(address(port)).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream
    })
}

#[test]
fn a_port_that_a_client_uses_again_is_another_connection() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some(recorder) = Recorder::begin(&lab) else { return };
    let mut from = 0;
    for (number, echos) in [(1, 5), (2, 7)] {
        let stream = connect(from, lab.port());
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
