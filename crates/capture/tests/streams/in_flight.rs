//! What is in flight at a time: compounds, notifications, locks, and the shares of the busy time.

use crate::support::decode::{decode, single};
use crate::support::packets::pcap;
use crate::support::smb2::{
    self, PENDING, READ, SAME, close, closed, compound, create, created, data, error, information,
    query_info, read,
};
use crate::support::talk::{EVERYTHING, Talk, everything, noise};
use crate::{ALL, sent};

#[test]
fn everything_is_decoded_as_it_was_said() {
    let decoded = decode(&pcap(&sent(&everything(noise())), ALL, false), &single());
    assert_eq!(decoded.operations(), EVERYTHING);
    let coverage = &decoded.coverage[0];
    assert_eq!((coverage.gaps, coverage.resynchronised, coverage.replies_unmatched), (0, 0, 0));
    // The Cancel has no reply by design.
    assert_eq!((coverage.operations_unanswered, coverage.messages_malformed), (0, 0));
    let rows = decoded.by_id();
    let value = |id: &str, column: &str| rows[&format!("1{id}")].get(column).map(String::as_str);
    assert_eq!(value("7", "transferred_bytes"), Some("65536"));
    assert_eq!(value("7", "path"), Some(r"docs\big.bin"));
    assert_eq!(value("7", "share"), Some(r"\\files\home"));
    assert_eq!(value("7", "user"), Some("ada"));
    assert_eq!(value("7", "elapsed_ns"), Some("2000000"));
    assert_eq!(value("10", "elapsed_ns"), Some("127000"));
    assert_eq!(value("17", "waits"), Some("true"));
    assert_eq!(value("17", "status_name"), Some("STATUS_CANCELLED"));
    assert_eq!(value("18", "async_id"), Some("78"));
    assert_eq!(value("18", "elapsed_ns"), Some("4600000"));
    assert_eq!(value("19", "share"), Some(r"\\files\home"));
    assert_eq!(value("20", "status_name"), Some("STATUS_OBJECT_NAME_NOT_FOUND"));
    assert_eq!(value("16", "path"), Some("two"));
    assert_eq!(decoded.handles.len(), 5);
    // Also where a later member of a compound, which has no times of its own, opens or closes.
    let (start, end) = (coverage.start.unwrap(), coverage.end.unwrap());
    for handle in &decoded.handles {
        let (opened, closed) = (handle.opened_at.unwrap(), handle.closed_at.unwrap());
        assert!(start < opened && opened <= closed && closed <= end, "{handle:?}");
    }
    for (begun, ended) in (decoded.sessions.iter().map(|row| (row.start, row.end)))
        .chain(decoded.trees.iter().map(|row| (row.start, row.end)))
    {
        assert!(start < begun && begun < ended && ended <= end);
    }
}

#[test]
fn a_compounds_times_stand_on_its_lead() {
    let decoded = decode(&pcap(&sent(&everything(noise())), ALL, false), &single());
    for row in decoded.rows() {
        let Some(index) = row.get("compound_index") else { continue };
        // Or on a member that is answered in a message of its own.
        let is_timed = index == "0" || row["message_id"] == "16";
        for column in ["elapsed_ns", "turnaround_ns", "request_start", "busy_ns", "server_ns"] {
            assert_eq!(row.contains_key(column), is_timed, "{column} of member {index}");
        }
        let first = ["12", "13", "14"].contains(&row["message_id"].as_str());
        assert_eq!(row["compound_size"], if first { "3" } else { "2" });
    }
}

#[test]
fn a_member_that_is_answered_later_has_its_own_time() {
    const MS: i64 = 1_000_000;
    let mut talk = Talk::new();
    talk.connect();
    // The Read is pending; the other Read has no interim reply, and its Close comes with it.
    talk.ask(compound(vec![create(4, "a"), read(5, SAME, 0, 100).related()]));
    talk.pass(MS);
    let pending = error(READ, 5, PENDING).asynchronous(9).related();
    talk.answer(compound(vec![created(4, 40), pending]));
    talk.pass(500 * MS);
    talk.answer(data(5, &[1; 100]).asynchronous(9).framed());
    talk.pass(MS);
    talk.ask(compound(vec![
        create(6, "b"),
        read(7, SAME, 0, 100).related(),
        close(8, SAME).related(),
    ]));
    talk.pass(2 * MS);
    talk.answer(created(6, 60).framed());
    talk.pass(20 * MS);
    talk.answer(compound(vec![data(7, &[1; 100]), closed(8).related()]));
    let decoded = decode(&pcap(&sent(&talk), ALL, false), &single());
    let rows = decoded.by_id();
    let of = |id: u64, column: &str| {
        rows[&format!("1{id}")].get(column).map(|value| value.parse::<i64>().unwrap())
    };
    for (id, elapsed, busy) in [(4, 1, 1), (5, 501, 500), (6, 2, 2), (7, 22, 20)] {
        assert_eq!(of(id, "elapsed_ns"), Some(elapsed * MS), "{id}");
        assert_eq!(of(id, "turnaround_ns"), Some(elapsed * MS), "{id}");
        assert_eq!(of(id, "busy_ns"), Some(busy * MS), "{id}");
        assert!(of(id, "server_ns").is_some_and(|server| server > (elapsed - 1) * MS), "{id}");
        let start = &rows[&format!("1{}", id & !1)]["request_start"];
        assert_eq!(&rows[&format!("1{id}")]["request_start"], start);
    }
    assert_eq!(rows["15"]["path"], "a");
    // Answered in the same message as the Read, so it has no time of its own.
    assert_eq!((of(8, "elapsed_ns"), of(8, "busy_ns")), (None, None));
    let bytes = |id: u64| of(id, "request_wire_bytes");
    assert!(bytes(4).is_some() && bytes(5).is_none());
}

#[test]
fn notifications_and_blocked_locks_are_not_outstanding() {
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(smb2::create(4, "a"), 100_000, smb2::created(4, 1));
    talk.ask(smb2::notify(5, 1).framed());
    talk.pass(1_000);
    talk.ask(smb2::lock(6, 1).framed());
    talk.pass(100_000);
    talk.answer(smb2::error(smb2::LOCK, 6, smb2::PENDING).asynchronous(6).framed());
    talk.pass(1_000);
    talk.ask(smb2::read(7, 1, 0, 9).framed());
    talk.ask(smb2::read(8, 1, 0, 9).framed());
    talk.pass(50_000);
    talk.answer(smb2::data(7, b"123456789").framed());
    talk.answer(smb2::data(8, b"123456789").framed());
    let rows = decode(&pcap(&sent(&talk), ALL, false), &single()).by_id();
    let outstanding = |id: &str| rows[&format!("1{id}")]["outstanding"].clone();
    assert_eq!([outstanding("6"), outstanding("7"), outstanding("8")], ["0", "0", "1"]);
    assert_eq!(rows["16"]["waits"], "true");
    assert!(!rows["17"].contains_key("waits"));
}

#[test]
fn operations_that_end_after_the_logoff_belong_to_the_user() {
    let mut talk = Talk::new();
    talk.connect();
    // Never answered, so its row comes at the end.
    talk.ask(query_info(4, 1).framed());
    talk.pass(1_000);
    talk.exchange(smb2::bare(2, 5), 100_000, smb2::bare(2, 5).reply(smb2::SUCCESS));
    // Another user on the same connection gets the number.
    let setup = |id, user, status| (smb2::session_setup(id, user), smb2::session_ready(id, status));
    for (request, reply) in
        [setup(6, None, smb2::MORE_PROCESSING), setup(7, Some("bob"), smb2::SUCCESS)]
    {
        talk.exchange(request, 100_000, reply);
    }
    talk.exchange(query_info(8, 1), 50_000, information(8, &[7; 10]));
    let decoded = decode(&pcap(&sent(&talk), ALL, false), &single());
    let users: Vec<_> = decoded.sessions.iter().map(|session| session.user.as_deref()).collect();
    assert_eq!(users, [Some("ada"), Some("bob")]);
    let first = Talk { said: talk.said[..talk.said.len() - 6].to_vec(), ..Talk::new() };
    let decoded = decode(&pcap(&sent(&first), ALL, false), &single());
    assert_eq!(decoded.by_id()["14"]["user"], "ada");
    assert_eq!(decoded.sessions.len(), 1);
}

#[test]
fn busy_shares_add_up_to_the_busy_time() {
    // A blocked lock does not count, and removes its share of busy time; so this test runs without
    // one.
    let talk = everything(noise());
    let decoded = decode(&pcap(&sent(&talk), ALL, false), &single());
    let (starts, ends) = (decoded.numbers("request_start"), decoded.numbers("response_end"));
    let waits = decoded.rows();
    let mut busy: Vec<(i64, i64)> = starts
        .iter()
        .zip(&ends)
        .zip(&waits)
        .filter(|(_, row)| !row.contains_key("waits"))
        .filter_map(|((start, end), _)| Some(((*start)?, (*end)?)))
        .collect();
    busy.sort_unstable();
    let (mut total, mut until) = (0, i64::MIN);
    for (start, end) in busy {
        total += end - start.max(until).min(end);
        until = until.max(end);
    }
    let shares: i64 = decoded.numbers("busy_ns").into_iter().flatten().sum();
    assert!((total - shares).abs() <= EVERYTHING as i64, "{shares} of {total}");
    for row in decoded.rows() {
        let number = |column: &str| row.get(column).map(|value| value.parse::<i64>().unwrap());
        if let Some(elapsed) = number("elapsed_ns") {
            let parts = ["request_transfer_ns", "turnaround_ns", "response_transfer_ns"];
            assert_eq!(elapsed, parts.iter().map(|part| number(part).unwrap()).sum::<i64>());
        }
    }
}
