//! Notes about channels: refused, offered and not used, without gain.

use smbscope_analysis::explain::{About, Diagnosis};
use smbscope_tables::code::{self, Detail};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::support::*;

const SESSION_SETUP: u16 = 1;
const MANY: u64 = 1 << 30;

fn notes(diagnosis: &Diagnosis, about: About) -> Vec<&str> {
    let notes = diagnosis.notes.iter().filter(|note| note.about == about);
    notes.map(|note| &*note.what).collect()
}

/// A session setup with that detail (1 binds a channel), status and connection.
fn setup(set: fn(&mut Operation)) -> Act {
    Act { set, ..act(SESSION_SETUP, NO_HANDLE, "") }
}

fn set_up(row: &mut Operation, connection: u64, is_binding: bool, status: u32) {
    row.set_connection(connection);
    row.set_session_id(7);
    row.set_detail(code::detail(Detail::SessionSetup, u32::from(is_binding)));
    row.set_status(status);
}

/// Connections 1, 2 ... of one client, each to that server and with that many bytes.
fn connections(ends: &[(&str, u64)], interfaces: Option<&str>) -> Vec<Connection> {
    let row = |(number, (server, bytes)): (usize, &(&str, u64))| Connection {
        connection: 1 + number as u64,
        server: (*server).to_owned(),
        bytes_to_client: *bytes,
        client_guid: Some("client".into()),
        server_interfaces: interfaces.filter(|_| number == 0).map(str::to_owned),
        ..far_connection(1, 1 << 20)
    };
    ends.iter().enumerate().map(row).collect()
}

#[test]
fn a_refused_channel_is_reported_with_its_status() {
    let two = || connections(&[("10.0.0.2", MANY), ("10.0.1.2", 9)], None);
    let acts = [
        setup(|row| set_up(row, 1, false, 0)),
        setup(|row| set_up(row, 2, true, 0xc000_0016)),
        setup(|row| set_up(row, 2, true, 0xc000_0022)),
        setup(|row| set_up(row, 2, true, 0xc000_0022)),
        setup(|row| set_up(row, 2, true, 0xc000_0203)),
    ];
    let diagnosis = explain_of(&acts, two());
    let [denied, deleted] = notes(&diagnosis, About::Channels)[..] else { panic!("{diagnosis:?}") };
    let begin =
        "the server refused 2 times to add a channel at 10.0.1.2 to a session of client 10.0.0.1";
    assert!(denied.starts_with(begin) && denied.contains("STATUS_ACCESS_DENIED"), "{denied}");
    assert!(deleted.contains("once") && deleted.contains("another node"), "{deleted}");
    // A logon that is refused is not a channel; and a channel that was added is not refused.
    let logon = setup(|row| set_up(row, 2, false, 0xc000_0022));
    let added = setup(|row| set_up(row, 2, true, 0));
    let diagnosis = explain_of(&[acts[0].clone(), acts[1].clone(), logon, added], two());
    assert!(notes(&diagnosis, About::Channels).iter().all(|what| !what.contains("refused")));
}

#[test]
fn interfaces_that_the_client_does_not_use() {
    let about = |ends: &[(&str, u64)], interfaces| {
        let diagnosis = explain_of(&[act(READ, 1, "a")], connections(ends, interfaces));
        notes(&diagnosis, About::Channels).join("; ")
    };
    let first = "10.0.0.2 on 4 at 10000000000 bits/s RSS, fe80::2 on 4 at 10000000000 bits/s RSS";
    let both = &*format!("{first}, 10.0.1.2 on 5 at 10000000000 bits/s RSS");
    let one = about(&[("10.0.0.2", MANY)], Some(both));
    assert!(one.contains("10.0.0.2 also offers 10.0.1.2 (10.0 Gbit/s, RSS)"), "{one}");
    // Nothing was offered; both are used; the other is slower; or there is little to transfer.
    assert_eq!(about(&[("10.0.0.2", MANY)], None), "");
    assert_eq!(about(&[("10.0.0.2", MANY), ("10.0.1.2", MANY)], Some(both)), "");
    let slower = &*format!("{first}, 10.0.1.2 on 5 at 1000000000 bits/s");
    assert_eq!(about(&[("10.0.0.2", MANY), ("10.0.0.2", 9)], Some(slower)), "");
    assert_eq!(about(&[("10.0.0.2", 1 << 20)], Some(both)), "");
    // One interface with RSS allows several channels; without RSS, it does not.
    let rss = about(&[("10.0.0.2", MANY)], Some(first));
    assert!(rss.contains("allows several channels, but client 10.0.0.1 uses one"), "{rss}");
    assert_eq!(about(&[("10.0.0.2", MANY)], Some("10.0.0.2 on 4 at 10000000000 bits/s")), "");
}

#[test]
fn channels_without_gain() {
    let about = |bytes: u64, is_bound: bool| {
        let acts = [
            setup(|row| set_up(row, 1, false, 0)),
            if is_bound {
                setup(|row| set_up(row, 2, true, 0))
            } else {
                setup(|row| set_up(row, 2, false, 0))
            },
        ];
        let ends = connections(&[("10.0.0.2", MANY), ("10.0.1.2", bytes)], None);
        let diagnosis = explain_of(&acts, ends);
        notes(&diagnosis, About::Channels).join("; ")
    };
    let one = about(4096, true);
    assert!(one.starts_with("one of 2 channels of a session of client 10.0.0.1"), "{one}");
    assert_eq!(about(MANY / 2, true), "");
    assert_eq!(about(4096, false), "");
}
