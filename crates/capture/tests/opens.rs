//! When an open begins and ends (MS-SMB2 sections 3.3.5.9 to 3.3.5.10), and which handles are not opens.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::decode::{decode, decoded, single};
use support::packets::{ACK, FIN, Packet, RST, Sending, pcap};
use support::smb2::{
    LOGOFF, MORE_PROCESSING, Pdu, READ, SAME, SESSION, SESSION_SETUP, SUCCESS, TREE_DISCONNECT,
    bare, close, closed, compound, create, create_of_snapshot, created, created_durably, data,
    error, negotiate, negotiated, read, session_ready, session_setup, tree_connect, tree_connected,
};
use support::talk::Talk;

const FILE_CLOSED: u32 = 0xc000_0128;

#[test]
fn a_handle_unknown_to_the_server_was_not_opened_before() {
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "a"), 1_000, created(4, 40));
    talk.exchange(close(5, 40), 1_000, closed(5));
    // Guessed, and closed a second time long after.
    talk.exchange(read(6, 7, 0, 1), 1_000, error(READ, 6, FILE_CLOSED));
    talk.exchange(read(16, 8, 0, 1), 1_000, error(READ, 16, 0xc000_0203));
    let before = decoded(&talk);
    assert_eq!((before.handles.len(), before.coverage[0].paths_unknown), (1, 0));
    assert!(!before.by_id()["16"].contains_key("handle"));
    // A handle that exists had been opened.
    talk.exchange(read(7, 9, 0, 1), 1_000, data(7, b"x"));
    let after = decoded(&talk);
    assert_eq!((after.handles.len(), after.coverage[0].paths_unknown), (2, 1));
    assert!(after.by_id()["17"].contains_key("handle"));
}

/// A conversation that opens at most the file 40, then does `more`; returns when the open ended and
/// with which message.
fn ending(flags: u8, more: impl Fn(&mut Talk)) -> Option<(bool, Option<String>)> {
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "a"), 1_000, created(4, 40));
    more(&mut talk);
    let mut packets = Sending::default().aligned(&talk);
    let last = packets.last().unwrap().clone();
    if flags != 0 {
        let after = Packet { time: last.time + 5_000, flags, payload: vec![], ..last.clone() };
        packets.push(after);
    }
    let decoded = decode(&pcap(&packets, usize::MAX, false), &single());
    let [open] = &decoded.handles[..] else { panic!("{:?}", decoded.handles) };
    let by = open.close_operation.map(|number| {
        let rows = decoded.rows();
        let row = rows.iter().find(|row| row["operation"] == number.to_string()).unwrap();
        row["command"].clone()
    });
    open.closed_at.map(|at| (at > last.time, by))
}

#[test]
fn opens_end_with_their_tree_session_and_connection() {
    let nothing = |_: &mut Talk| {};
    let bye = |command: u16| {
        move |talk: &mut Talk| {
            talk.exchange(bare(command, 5), 1_000, bare(command, 5).reply(SUCCESS));
        }
    };
    let by = |command: &str| Some((false, Some(command.to_owned())));
    assert_eq!(ending(0, nothing), None);
    assert_eq!(ending(0, bye(TREE_DISCONNECT)), by("TreeDisconnect"));
    assert_eq!(ending(FIN | ACK, bye(LOGOFF)), by("Logoff"));
    assert_eq!(ending(FIN | ACK, nothing), Some((true, None)));
    assert_eq!(ending(RST, nothing), Some((true, None)));
    // Failed requests ended nothing, and closed opens stay closed.
    let refused = |talk: &mut Talk| {
        talk.exchange(bare(LOGOFF, 5), 1_000, error(LOGOFF, 5, FILE_CLOSED));
    };
    assert_eq!(ending(0, refused), None);
    let closes = |talk: &mut Talk| {
        talk.exchange(close(5, 40), 1_000, closed(5));
        talk.exchange(bare(LOGOFF, 6), 1_000, bare(LOGOFF, 6).reply(SUCCESS));
    };
    assert_eq!(ending(RST, closes), by("Close"));
}

#[test]
fn an_open_lives_as_long_as_one_channel_of_its_session() {
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "a"), 1_000, created(4, 40));
    let mut further = Talk { now: talk.now, ..Talk::new() };
    further.exchange(read(8, 40, 0, 1), 1_000, data(8, b"x"));
    let first = Sending::default().aligned(&talk);
    let second = Sending { client_port: 50_001, ..Sending::default() }.aligned(&further);
    let end_of = |packets: &[Packet]| {
        let last = packets.last().unwrap();
        Packet { time: last.time + 5_000, flags: RST, payload: vec![], ..last.clone() }
    };
    let ended = |ends: &[Packet]| {
        let packets = [&first[..], &second[..], ends].concat();
        let decoded = decode(&pcap(&packets, usize::MAX, false), &single());
        assert_eq!(decoded.handles.len(), 1);
        decoded.handles[0].closed_at
    };
    assert_eq!(ended(&[end_of(&first)]), None);
    let both = [end_of(&first), end_of(&second)];
    assert_eq!(ended(&both), Some(both[1].time));
}

#[test]
fn a_durable_open_that_is_taken_up_again_is_the_same() {
    const AGAIN: u64 = SESSION + 9;
    // Offsets of the FileId in a Create's reply and in a Close.
    const REPLY: usize = 64 + 64;
    const CLOSE: usize = 64 + 8;
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "a"), 1_000, created_durably(4, 40));
    let mut again = Talk { now: talk.now + 1_000_000, ..Talk::new() };
    let in_it = |again: &mut Talk, request: Pdu, reply: Pdu| {
        again.exchange(request.session(AGAIN), 1_000, reply.session(AGAIN));
    };
    again.exchange(negotiate(0), 1_000, negotiated(0));
    in_it(&mut again, session_setup(1, Some("ada")), session_ready(1, SUCCESS));
    in_it(&mut again, tree_connect(2, r"\\files\home"), tree_connected(2));
    let reply = created(3, 40).volatile(REPLY, 77);
    in_it(&mut again, create(3, "a"), reply);
    in_it(&mut again, read(4, 40, 0, 1).volatile(64 + 16, 77), data(4, b"x"));
    let first = Sending::default().aligned(&talk);
    let last = first.last().unwrap();
    let reset = Packet { time: last.time + 5_000, flags: RST, payload: vec![], ..last.clone() };
    let handles = |again: &Talk| {
        let second = Sending { client_port: 50_001, ..Sending::default() }.aligned(again);
        let packets = [&first[..], std::slice::from_ref(&reset), &second].concat();
        let decoded = decode(&pcap(&packets, usize::MAX, false), &single());
        assert_eq!(decoded.coverage[0].paths_unknown, 0);
        decoded.handles
    };
    let [open] = &handles(&again)[..] else { panic!() };
    assert_eq!((open.durable, open.closed_at, open.session_id), (Some(true), None, Some(SESSION)));
    assert_eq!((open.operations, open.reads, open.file_id[8]), (3, 1, 0));
    in_it(&mut again, close(5, 40).volatile(CLOSE, 77), closed(5));
    let closed_once = handles(&again);
    assert_eq!((closed_once.len(), closed_once[0].operations), (1, 4));
    assert!(closed_once[0].closed_at.is_some());
    // Its number is free again.
    in_it(&mut again, create(6, "a"), created(6, 40));
    assert_eq!(handles(&again).len(), 2);
    // Another file is another open, whatever its number.
    let mut other = Talk { said: again.said[..6].to_vec(), now: again.now };
    in_it(&mut other, create(3, "b"), created(3, 40));
    assert_eq!(handles(&other).len(), 2);
}

#[test]
fn opens_end_when_their_client_begins_a_session_in_place_of_theirs() {
    const AGAIN: u64 = SESSION + 9;
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "a"), 1_000, created(4, 40));
    talk.exchange(create(5, "b"), 1_000, created_durably(5, 50));
    // Its connection is silent from here on.
    let first = Sending::default().aligned(&talk);
    let ends = |previous, status| {
        let mut again = Talk { now: talk.now + 1_000_000, ..Talk::new() };
        let request = session_setup(0, Some("ada")).replaces(previous);
        let reply = session_ready(0, status).session(AGAIN);
        again.exchange(request.session(AGAIN), 1_000, reply);
        let second = Sending { client_port: 50_001, ..Sending::default() }.aligned(&again);
        let packets = [&first[..], &second].concat();
        let decoded = decode(&pcap(&packets, usize::MAX, false), &single());
        let ended = second.last().unwrap().time;
        let of = |path: &str| {
            let open = decoded.handles.iter().find(|open| open.path.as_deref() == Some(path));
            open.unwrap().closed_at.map(|at| at == ended)
        };
        (of("a"), of("b"))
    };
    assert_eq!(ends(SESSION, SUCCESS), (Some(true), None));
    assert_eq!(ends(SESSION, MORE_PROCESSING), (None, None));
    assert_eq!(ends(0, SUCCESS), (None, None));
    assert_eq!(ends(SESSION + 1, SUCCESS), (None, None));
}

#[test]
fn the_file_of_a_snapshot_is_another_file() {
    // 2026-11-24 18:01:08 UTC, and half a second.
    const TIME: u64 = 134_400_168_685_000_000;
    let mut talk = Talk::new();
    talk.connect();
    for (id, pdu) in [
        create(4, "dir\\a"),
        create_of_snapshot(5, "dir\\a", TIME),
        create_of_snapshot(6, "", TIME),
        create_of_snapshot(7, "a", 0),
        create_of_snapshot(8, "a", u64::MAX),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as u64 + 4;
        talk.exchange(pdu, 1_000, created(id, 40 + id));
    }
    let decoded = decoded(&talk);
    let paths: Vec<_> = decoded.handles.iter().map(|open| open.path.as_deref().unwrap()).collect();
    let expected = [
        "dir\\a",
        "@GMT-2026.11.24-18.01.08\\dir\\a",
        "@GMT-2026.11.24-18.01.08",
        "@GMT-1601.01.01-00.00.00\\a",
        "@GMT-60056.05.28-05.36.10\\a",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn members_that_are_related_to_a_tree_connect_work_in_its_tree() {
    let mut talk = Talk::new();
    talk.connect();
    let (new, none) = (9, u32::MAX);
    talk.ask(compound(vec![
        tree_connect(4, r"\\files\two"),
        create(5, "x").tree(none).related(),
        close(6, SAME).tree(none).related(),
    ]));
    talk.pass(1_000);
    talk.answer(compound(vec![
        tree_connected(4).tree(new),
        created(5, 50).tree(new).related(),
        closed(6).tree(new).related(),
    ]));
    talk.exchange(create(7, "y"), 1_000, created(7, 70));
    let decoded = decoded(&talk);
    let rows = decoded.by_id();
    for id in 4..=6 {
        assert_eq!(rows[&format!("1{id}")]["share"], r"\\files\two");
    }
    assert_eq!(rows["16"]["path"], "x");
    assert_eq!(rows["17"]["share"], r"\\files\home");
    assert_eq!(decoded.trees.len(), 2);
}

#[test]
fn a_logon_that_is_refused_without_a_session_names_its_user() {
    const ACCESS_DENIED: u32 = 0xc000_0022;
    let mut talk = Talk::new();
    talk.exchange(negotiate(0), 1_000, negotiated(0));
    talk.exchange(session_setup(1, None), 1_000, session_ready(1, MORE_PROCESSING).session(0));
    let refused = error(SESSION_SETUP, 2, ACCESS_DENIED).session(0);
    talk.exchange(session_setup(2, Some("eve")).session(0), 1_000, refused);
    let decoded = decoded(&talk);
    let rows = decoded.by_id();
    assert_eq!(rows["12"]["user"], "eve");
    assert!(!rows["11"].contains_key("user"));
    assert!(decoded.sessions.is_empty());
}
