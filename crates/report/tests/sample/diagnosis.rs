//! A diagnosis with names that try to break out of whatever shows them.

use smbscope_analysis::explain::{
    About, Account, ChangeInTime, ClientAccount, Contributor, Diagnosis, Example, Explained,
    FindingKind, Gain, Logged, LoggedOther, Note, Pauses, Row, State, TimeClass, Unexplained,
    UnexplainedKind, WaitGroup, Whole,
};
use smbscope_analysis::net::SmbRatio;
use smbscope_findings::{Actor, Confidence, Figure, Finding, Owner, Weight};

/// Two findings, one of them with an impossible name.
pub fn diagnosis() -> Diagnosis {
    let name = "<script>alert('1')\u{1b}[2J\u{202e}".to_owned();
    let contributor = Contributor { name: name.clone(), operations: 40, saved_ns: 800_000_000 };
    let weight =
        |share| Weight::Saved { saved_ns: 800_000_000, saved_error_ns: Some(4_000_000), share };
    let mut found = Finding::new(FindingKind::SmallReads, "Reads go one at a time")
        .with_weight(weight(0.83))
        .with_confidence(Confidence::Measured, "it was measured")
        .with_figures([
            Figure::new("block", 4096.0, "bytes", "blocks of {}"),
            Figure::new("round", 20e6, "ns", "{} in the network for each").with_error(Some(15.6e6)),
        ])
        .with_details(Explained {
            operations: 40,
            times: vec![
                TimeClass { from_ns: 10_000_000, below_ns: Some(20_000_000), operations: 10 },
                TimeClass { from_ns: 20_000_000, below_ns: None, operations: 30 },
            ],
            clients: vec![contributor.clone()],
            connections: vec![contributor.clone()],
            paths: vec![contributor],
            examples: vec![Example {
                recording: Some(name.clone()),
                command: "Read".into(),
                elapsed_ns: Some(21_000_000),
                pending_ns: Some(1_000_000),
                request_frame: Some(17),
                ..Example::default()
            }],
            gains: vec![Gain {
                change: "max-read=1MiB".into(),
                waiting_before_ns: 800_000_000,
                waiting_after_ns: 40_000_000,
                error_ns: Some(1_000_000),
                operations: 100_000,
                is_part: true,
            }],
            replayed: 40,
            burst_ns: 800_000_000,
            is_noticed: true,
            ..Explained::default()
        });
    found.owner = Some(Owner { actor: Actor::Client, names: vec![name.clone()] });
    let mut little = found.clone().with_weight(weight(0.01));
    little.details.gains.clear();
    let note = Note { about: About::Smb1, what: "<b>\u{1b}[2J".into() };
    let whole = Whole { operations: 40, timed: 40, ..Whole::default() };
    let pauses = Pauses { pauses: 7, sum_ns: 219_000_000, clients: found.details.clients.clone() };
    let kind = UnexplainedKind {
        command: "Ioctl".into(),
        detail: Some("FSCTL_PIPE_TRANSCEIVE".into()),
        path: found.details.paths.first().map(|one| one.name.clone()),
        operations: 3,
        ns: 90_000_000,
    };
    let unexplained = Unexplained { ns: 90_000_000, share: 0.11, kinds: vec![kind] };
    let row = Row {
        client: name.clone(),
        first_ns: 1_700_000_000_000_000_000,
        last_ns: 1_700_000_002_000_000_000,
        waited_ns: 1_500_000_000,
        distance_ns: 100_000_000,
        server_ns: 1_200_000_000,
        operations: 9,
    };
    Diagnosis {
        state: State::Slow,
        p95_ns: Some(21_000_000),
        round_trip_ns: Some(300_000),
        account: Account {
            clients: 1,
            active_ns: 9_000_000_000,
            waited_ns: 4_000_000_000,
            distance_ns: 100_000_000,
            before_smb_ns: 2_000_000_000,
            paused_ns: 1_000_000_000,
            unanswered: 1,
            requests: 40,
            failed: 1,
            failed_most: Some("STATUS_ACCESS_DENIED".into()),
            longest: Some(row.clone()),
            first: vec![ClientAccount {
                client: name.clone(),
                active_ns: 9_000_000_000,
                waited_ns: 4_000_000_000,
                paused_ns: 1_000_000_000,
            }],
        },
        slowest: Some(row),
        waits: vec![WaitGroup {
            kind: "name_lookup".into(),
            protocol: "DNS".into(),
            server: "10.0.0.2".into(),
            subjects: vec![name.clone()],
            n: 2,
            unanswered: 1,
            attempts: 8,
            sum_ns: 11_000_000_000,
            longest_ns: 11_000_000_000,
            clients: vec![name.clone()],
        }],
        findings: vec![found, little],
        pauses: Some(pauses),
        unexplained: Some(unexplained),
        change: Some(ChangeInTime {
            at_ns: 1_700_000_000_000_000_000,
            resolution_ns: 1_000_000_000,
            times: 3.25,
            operations_before: 20,
            operations_after: 20,
        }),
        notes: vec![note],
        logged: vec![Logged {
            kind: "slow_file_system",
            title: "File-system operations took longer than the server tolerates",
            count: 2,
            first_ns: 1_700_000_000_000_000_000,
            last_ns: 1_700_000_060_000_000_000,
            longest_ns: Some(31_000_000_000),
            threshold_ns: Some(15_000_000_000),
            clients: vec![name.clone()],
            side: "server",
            remedy: "look at the storage",
            ..Logged::default()
        }],
        logged_other: vec![LoggedOther {
            provider: "SMBServer".to_owned(),
            event: 1_010,
            title: Some("an endpoint was added"),
            count: 3,
            first_ns: 1_700_000_000_000_000_000,
            last_ns: 1_700_000_060_000_000_000,
        }],
        channels: super::channels::channels().findings,
        network: vec![SmbRatio {
            operation: "read".into(),
            smb_bits_per_second: 4e9,
            smb_windows: 3,
            smb_window_ns: 1_000_000_000,
            raw_bits_per_second: 10e9,
            ratio: 0.4,
            limit: "smb".into(),
            raw_limit: "network".into(),
            paths: Some(1),
            paths_tested: Some(1),
        }],
        whole,
    }
}
