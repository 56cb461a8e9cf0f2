//! What began before the recorder did.

use smbscope_load::client::Config;

use crate::client::Client;
use crate::recorder::{Recorder, alone};
use crate::support::samba;

/// The connection, its session and an open were there: what is done with them is seen all the same.
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
