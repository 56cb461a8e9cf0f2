//! Activity that began before the recorder.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use smbscope_client::Config;

use crate::client::Client;
use crate::echo::Raw;
use crate::recorder::{Recorder, alone};
use smbscope_testing::samba::samba;

/// The connection, its session and an open exist already: operations on them are recorded all the same.
#[test]
fn a_connection_that_was_open_before_is_recorded() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let mut client = Client::connect(&lab, Config::default());
    let before = client.open("before");
    client.write(before, 0, &[7; 65536]);
    let Some(recorder) = Recorder::begin(&lab) else { return };
    for _ in 0..10 {
        client.read(before, 0, 65536);
        let file = client.open("then");
        client.close(file);
    }
    client.close(before);
    drop(client);
    let rows = recorder.end().rows();
    for (command, count) in [("Read", 10), ("Create", 10), ("Close", 11)] {
        let of: Vec<_> = rows.iter().filter(|row| row.command == command).collect();
        assert_eq!(of.len(), count, "{command}");
        for row in of {
            let turnaround = row.turnaround.unwrap();
            assert!((row.sum() - turnaround).abs() < 1_000, "{}", row.told());
        }
    }
}

/// A second passes between finding smbd's processes and seeing new ones begin: a run that began in it
/// was missing completely.
#[test]
fn clients_that_connect_while_the_recorder_starts_are_recorded() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let (port, has_begun) = (lab.port(), AtomicBool::new(false));
    let (recorder, connected) = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let mut connected = Vec::new();
            while !has_begun.load(Ordering::Relaxed) && connected.len() < 200 {
                let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                connected.push(Raw::over(stream, connected.len() as u8 + 1));
                std::thread::sleep(Duration::from_millis(20));
            }
            connected
        });
        let recorder = Recorder::begin(&lab);
        has_begun.store(true, Ordering::Relaxed);
        (recorder, connecting.join().unwrap())
    });
    let Some(recorder) = recorder else { return };
    let count = connected.len();
    for mut client in connected {
        client.ask();
    }
    let rows = recorder.end().rows();
    let echoes = rows.iter().filter(|row| row.command == "Echo").count();
    assert!(count > 2, "{count} connections");
    assert_eq!(echoes, count);
}
