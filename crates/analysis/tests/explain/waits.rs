//! What lies outside of operations: names, connections, retransmitted data; and the state.

use smbscope_analysis::explain::{Diagnosis, Explain, FindingKind, State};
use smbscope_findings::{Actor, Confidence};
use smbscope_tables::tables::{Connection, Tree, Wait};

use crate::support::*;

/// Before the operations, which begin at 1,000 s.
const BEGIN: i64 = 980_000 * MS;

/// A wait of the client of the operations from a time on, ms; the answer comes after `ms`.
fn wait(
    kind: &str,
    protocol: &str,
    server: &str,
    port: u64,
    from_ms: i64,
    ms: Option<i64>,
) -> Wait {
    let start = BEGIN + from_ms * MS;
    Wait {
        recording: "run".into(),
        client: "10.0.0.1".into(),
        server: server.into(),
        port,
        kind: kind.into(),
        protocol: protocol.into(),
        start,
        end: ms.map(|ms| start + ms * MS),
        last_attempt: start,
        attempts: 1,
        outcome: if ms.is_some() { "answered" } else { "none" }.into(),
        ..Wait::default()
    }
}

fn lookup(protocol: &str, name: &str, from_ms: i64, ms: Option<i64>) -> Wait {
    let row = wait("name_lookup", protocol, "10.0.0.53", 53, from_ms, ms);
    Wait { subject: Some(name.into()), answered_by: ms.map(|_| "10.0.0.54".into()), ..row }
}

fn connect(port: u64, from_ms: i64, ms: Option<i64>) -> Wait {
    wait("connect", "TCP", "10.0.0.2", port, from_ms, ms)
}

/// The diagnosis of these waits, and of quick operations after them.
fn diagnose(waits: &[Wait]) -> Diagnosis {
    let mut explain = Explain::with_gains();
    let share = Some("\\\\files\\data".to_owned());
    explain.trees(&[Tree { recording: "run".into(), share, ..Tree::default() }]);
    explain.waits(waits);
    explain_with(explain, &vec![act(READ, 1, "a"); 20], vec![far_connection(5, 1 << 20)])
}

fn kinds(diagnosis: &Diagnosis) -> Vec<FindingKind> {
    diagnosis.findings.iter().map(|found| found.kind).collect()
}

#[test]
fn a_name_that_is_found_late_is_a_finding_about_the_name_service() {
    let late =
        diagnose(&[lookup("DNS", "files.corp", 0, Some(8_000)), connect(445, 8_010, Some(1))]);
    let found = found(&late, FindingKind::LateLookup).unwrap();
    assert_eq!((owner(found).actor, late.state), (Actor::NameService, State::Slow));
    assert_eq!(owner(found).names, ["10.0.0.53"], "the server that did not answer");
    assert_eq!(figure(found, "longest_lookup"), 8e9);
    assert_eq!(late.account.before_smb_ns, 8_000 * MS);
    // A quick answer; the name of another machine; a lookup long before.
    for near in [
        [lookup("DNS", "files.corp", 0, Some(20)), connect(445, 30, Some(1))],
        [lookup("DNS", "mail", 0, Some(8_000)), connect(445, 9_000, Some(1))],
        [lookup("DNS", "files", 0, Some(20)), connect(445, 18_000, Some(1))],
    ] {
        let diagnosis = diagnose(&near);
        assert_eq!((kinds(&diagnosis), diagnosis.state), (vec![], State::Healthy), "{near:?}");
    }
}

/// The diagnosis of these waits, and of a logon that takes `ms` at the server with quick operations after it.
fn diagnose_logon(waits: &[Wait], ms: i64) -> Diagnosis {
    let mut explain = Explain::with_gains();
    explain.waits(waits);
    let mut acts = vec![act(READ, 1, "a"); 20];
    acts.insert(0, Act { server_ns: ms * MS, ..act(SESSION_SETUP, NO_HANDLE, "") });
    explain_with(explain, &acts, vec![far_connection(5, 1 << 20)])
}

#[test]
fn a_logon_that_waits_for_its_ticket_is_a_finding_about_the_domain_controller() {
    let kdc = |from_ms, ms| Wait {
        subject: Some("krbtgt/CORP".into()),
        attempts: 3,
        last_attempt: BEGIN + (from_ms + 8_000) * MS,
        ..wait("ticket", "Kerberos", "10.0.0.88", 88, from_ms, ms)
    };
    // The connection is there, and the client asks for a ticket in vain.
    let late = diagnose_logon(&[connect(445, 1_000, Some(1)), kdc(1_010, None)], 1);
    let found_one = found(&late, FindingKind::LateTicket).unwrap();
    assert_eq!((owner(found_one).actor, late.state), (Actor::NameService, State::Slow));
    assert_eq!(owner(found_one).names, ["10.0.0.88"]);
    assert!(found_one.what.contains("does not answer when asked for krbtgt/CORP"));
    assert_eq!(figure(found_one, "longest"), 18_990e6, "up to the logon");
    // A quick answer; a ticket for something else long before; a lookup of another program.
    for near in
        [kdc(1_010, Some(20)), kdc(-30_000, None), lookup("DNS", "mail", 1_010, Some(9_000))]
    {
        let diagnosis = diagnose_logon(&[connect(445, 1_000, Some(1)), near.clone()], 1);
        assert_eq!((kinds(&diagnosis), diagnosis.state), (vec![], State::Healthy), "{near:?}");
    }
}

#[test]
fn a_logon_of_another_user_does_not_end_what_a_connection_waits_for() {
    // The logon is at 20 s, in the middle of the lookup.
    let late = diagnose_logon(
        &[lookup("DNS", "files", 15_000, Some(8_000)), connect(445, 23_010, Some(1))],
        1,
    );
    assert_eq!(kinds(&late), [FindingKind::LateLookup]);
    // What the logon waited for is not counted again for a later connection.
    let kdc = wait("ticket", "Kerberos", "10.0.0.88", 88, 12_000, Some(7_900));
    let once = diagnose_logon(&[kdc, connect(445, 23_010, Some(1))], 1);
    assert_eq!(kinds(&once), [FindingKind::LateTicket]);
    assert_eq!(figure(found(&once, FindingKind::LateTicket).unwrap(), "times"), 1.0);
}

#[test]
fn a_server_that_waits_for_its_domain_controller_is_not_a_slow_server() {
    // The logon begins at 20 s and takes 6 s, of which the server waits 5.
    let asks = |from_ms| Wait {
        client: "10.0.0.2".into(),
        ..wait("directory", "LDAP", "10.0.0.88", 389, from_ms, Some(5_000))
    };
    let late = diagnose_logon(&[asks(20_100)], 6_000);
    assert_eq!(kinds(&late)[..1], [FindingKind::LateTicket]);
    assert!(!kinds(&late).contains(&FindingKind::SlowLogon));
    // It asked long before.
    let own = diagnose_logon(&[asks(2_000)], 6_000);
    assert_eq!(kinds(&own)[..1], [FindingKind::SlowLogon]);
}

#[test]
fn what_a_client_tries_before_smb_is_its_own() {
    let dns = lookup("DNS", "files", 0, Some(1));
    let web = |from| connect(80, from, None);
    let tried = diagnose(&[
        lookup("NetBIOS", "FILES<20>", 0, None),
        dns.clone(),
        web(1_000),
        web(10_000),
        connect(445, 18_000, Some(1)),
    ]);
    let found = found(&tried, FindingKind::ProvidersFirst).unwrap();
    assert_eq!(owner(found).actor, Actor::Client);
    assert!(
        found.what.contains("WebDAV (port 80)") && found.what.contains("NetBIOS"),
        "{}",
        found.what
    );
    assert_eq!(figure(found, "longest_before_smb"), 18e9);
    // An answer in parallel ends the search by broadcast.
    let quick = diagnose(&[lookup("NetBIOS", "FILES<20>", 0, None), dns, connect(445, 5, Some(1))]);
    assert_eq!((kinds(&quick), quick.state), (vec![], State::Healthy));
}

#[test]
fn a_client_that_reaches_none_of_many_servers_is_one_finding() {
    let fails = |servers: u8| {
        let servers: Vec<_> = (0..servers).map(|number| format!("10.0.9.{number}")).collect();
        let waits = servers.iter().map(|server| Wait {
            attempts: 3,
            last_attempt: BEGIN + 3_000 * MS,
            ..wait("connect", "TCP", server, 445, 0, None)
        });
        let diagnosis = diagnose(&waits.collect::<Vec<_>>());
        let of_kind =
            diagnosis.findings.iter().filter(|one| one.kind == FindingKind::ServerUnreachable);
        of_kind.map(|one| one.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fails(3).len(), 3);
    let one = fails(90);
    assert!(one.len() == 1 && one[0].contains("cannot reach all of 90 servers"), "{one:?}");
}

#[test]
fn a_server_that_cannot_be_reached_is_broken() {
    let fails = |outcome: &str| {
        let waits: Vec<_> = (0..6)
            .map(|number| Wait {
                outcome: outcome.into(),
                answered_by: Some("10.0.0.254".into()),
                result: Some("host unreachable".into()),
                ..connect(445, number * 3_000, Some(1))
            })
            .collect();
        diagnose(&waits)
    };
    let unreachable = fails("unreachable");
    let found_one = found(&unreachable, FindingKind::ServerUnreachable).unwrap();
    assert_eq!(unreachable.state, State::Broken);
    assert_eq!(
        (owner(found_one).actor, &owner(found_one).names[..]),
        (Actor::Network, &["10.0.0.254".into()][..])
    );
    assert_eq!(figure(found_one, "interval"), 3e9);
    let refused = fails("refused");
    let found_one = found(&refused, FindingKind::ServerUnreachable).unwrap();
    assert_eq!(owner(found_one).actor, Actor::Server);
    // A client that tries both ports at once drops one; a single refusal is that of a restart.
    for near in [
        vec![connect(139, 0, None), connect(445, 0, Some(1))],
        vec![Wait { outcome: "refused".into(), ..connect(445, 0, Some(1)) }],
    ] {
        assert_eq!(diagnose(&near).state, State::Healthy, "{near:?}");
    }
}

#[test]
fn large_segments_that_never_pass_are_no_outage() {
    let resent = |bytes, attempts, ms| {
        let row = wait("retransmission", "TCP", "10.0.0.2", 445, 0, None);
        Wait {
            connection: Some(1),
            size_bytes: Some(bytes),
            attempts,
            last_attempt: row.start + ms * MS,
            sent_by_client: Some(true),
            ..row
        }
    };
    let hole = |waits: &[Wait]| {
        let mut explain = Explain::with_gains();
        explain.waits(waits);
        let facts = Connection { connection: 1, bytes_to_client: 9, ..far_connection(5, 1 << 20) };
        explain_with(explain, &vec![act(READ, 1, "a"); 20], vec![facts])
    };
    assert_eq!(kinds(&hole(&[resent(1_460, 6, 9_000)])), [FindingKind::PathMtu]);
    assert_eq!(
        kinds(&hole(&[resent(1_460, 6, 9_000), resent(90, 5, 8_000)])),
        [FindingKind::PathOutage]
    );
    // Repaired at once.
    let repaired =
        Wait { end: Some(BEGIN + 200 * MS), outcome: "answered".into(), ..resent(1_460, 2, 200) };
    assert_eq!(kinds(&hole(&[repaired])), []);
}

#[test]
fn a_request_without_a_reply_is_a_hang_if_it_lasts() {
    let silent = Act {
        set: |row| {
            use smbscope_tables::operation::Column;
            for column in
                [Column::status, Column::elapsed_ns, Column::response_start, Column::response_end]
            {
                row.clear(column);
            }
        },
        ..act(READ, 1, "a")
    };
    let hang = |seconds: i64, gaps_to_client| {
        let mut rows = vec![act(READ, 1, "a"); 20];
        rows.push(silent.clone());
        let end = 1_000_000 * MS + seconds * 1_000 * MS;
        let facts = Connection {
            end,
            gaps_to_client,
            packets_to_client: 9,
            packets_to_server: 9,
            ..far_connection(5, 1 << 20)
        };
        explain_on(&rows, facts)
    };
    let diagnosis = hang(30, 0);
    let found_one = found(&diagnosis, FindingKind::NoReply).unwrap();
    assert_eq!((diagnosis.state, found_one.confidence), (State::Broken, Some(Confidence::Likely)));
    assert_eq!(diagnosis.account.unanswered, 1);
    assert_eq!(kinds(&hang(3, 0)), [], "the recording ends");
    assert_eq!(kinds(&hang(30, 1)), [], "the reply may be missing from the recording");
}
