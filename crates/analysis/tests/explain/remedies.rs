//! No remedy that the recording has already.

use smbscope_analysis::explain::{About, Diagnosis, FindingKind};
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Connection, Tree};

use crate::support::*;

/// What the remedies of a finding say.
fn actions(diagnosis: &Diagnosis, kind: FindingKind) -> Vec<String> {
    let found = found(diagnosis, kind).unwrap_or_else(|| panic!("{kind:?}: {diagnosis:?}"));
    found.remedies.iter().map(|remedy| remedy.action.to_string()).collect()
}

/// Whether a remedy says this, without and with the state.
fn says(kind: FindingKind, words: &str, without: &Diagnosis, with: &Diagnosis) -> [bool; 2] {
    [without, with].map(|one| actions(one, kind).iter().any(|action| action.contains(words)))
}

const DROPPED: [bool; 2] = [true, false];
const NEW: [bool; 2] = [false, true];

fn grant_lease(row: &mut Operation) {
    row.set_oplock_granted(code::oplock(0xff));
}

/// Folders that are opened and queried again and again; `set` changes the opens.
fn lookups(set: fn(&mut Operation)) -> Vec<Act> {
    let acts = (0..20).flat_map(|handle| query_file(handle, "folder"));
    acts.map(|act| if act.command == CREATE { Act { set, ..act } } else { act }).collect()
}

#[test]
fn leases_that_are_granted_are_not_asked_for() {
    let ask = |row: &mut Operation| {
        row.set_create_options(1);
        row.set_lease_requested(code::lease(1));
    };
    let grant = |row: &mut Operation| {
        row.set_create_options(1);
        row.set_lease_requested(code::lease(1));
        grant_lease(row);
    };
    let of_files = |row: &mut Operation| {
        row.set_lease_requested(code::lease(1));
        grant_lease(row);
    };
    let [without, with, files] =
        [ask, grant, of_files].map(|set: fn(&mut Operation)| explain(&lookups(set)));
    let kind = FindingKind::RepeatedLookups;
    assert_eq!(says(kind, "grant leases on directories", &without, &with), DROPPED);
    assert_eq!(says(kind, "smb3 directory leases = yes", &without, &with), DROPPED);
    assert_eq!(says(kind, "asks again all the same", &without, &with), NEW);
    assert_eq!(says(kind, "grant leases on directories", &without, &files), [true, true]);
    // Likewise if a few are granted only.
    let mut few = lookups(ask);
    few[0].set = grant;
    assert_eq!(says(kind, "grant leases on directories", &without, &explain(&few)), [true, true]);
    // And where the client requests none for the opens that it repeats.
    let silent = |row: &mut Operation| row.set_create_options(1);
    let silent_grant = |row: &mut Operation| {
        row.set_create_options(1);
        grant_lease(row);
    };
    let [without, with] =
        [silent, silent_grant].map(|set: fn(&mut Operation)| explain(&lookups(set)));
    assert_eq!(says(kind, "let clients keep what they know", &without, &with), DROPPED);
}

#[test]
fn a_replay_with_leases_that_are_granted_says_nothing() {
    let far = |set: fn(&mut Operation)| {
        let acts = (0..40).flat_map(list_folder).map(|act| Act { rtt_ns: 20 * MS, ..act });
        let acts: Vec<_> =
            acts.map(|act| if act.command == CREATE { Act { set, ..act } } else { act }).collect();
        let diagnosis = explain_on(&acts, far_connection(20, 4 << 20));
        found(&diagnosis, FindingKind::RepeatedListings).unwrap().details.gains.len()
    };
    assert_eq!(far(|row| row.set_create_options(1)), 1);
    assert_eq!(
        far(|row| {
            row.set_create_options(1);
            grant_lease(row);
        }),
        0
    );
}

#[test]
fn a_cache_that_a_client_has_is_not_proposed() {
    // Asked again after 7.5 s: the client keeps attributes for longer than a second.
    let after = |gap_ms: i64, rtt_ms: i64| {
        let pause = |act: Act| match act.command {
            CREATE => Act { gap_ns: gap_ms * MS, ..act },
            _ => act,
        };
        let acts = lookups(|_| ()).into_iter().map(pause);
        explain(&acts.map(|act| Act { rtt_ns: rtt_ms * MS, ..act }).collect::<Vec<_>>())
    };
    let kind = FindingKind::RepeatedLookups;
    let (short, long) = (after(0, 5), after(3_000, 1_500));
    assert_eq!(says(kind, "instead of 1 s", &short, &long), DROPPED);
    assert_eq!(says(kind, "keeps attributes for some seconds already", &short, &long), NEW);
    let again = found(&long, kind).unwrap();
    assert!((7.5e9..7.6e9).contains(&figure(again, "asked_again_after")), "{again:?}");
    // The same for missing names, with other work in between, so that it is not polling.
    let missing = |rtt_ms: i64, other_ms: i64| {
        let set = |row: &mut Operation| row.set_status(NOT_FOUND);
        let one = Act { rtt_ns: rtt_ms * MS, set, ..act(CREATE, NO_HANDLE, "desktop.ini") };
        let other = Act { rtt_ns: other_ms * MS, ..act(READ, 7, "other") };
        let acts = (0..20).flat_map(|_| std::iter::repeat_n(&other, 20).chain([&one]).cloned());
        explain(&acts.collect::<Vec<_>>())
    };
    let kind = FindingKind::FailingLookups;
    let (short, long) = (missing(20, 1), missing(3_000, 100));
    assert_eq!(says(kind, "FileNotFoundCacheLifetime 5 or more", &short, &long), DROPPED);
    assert_eq!(says(kind, "for 5 s already", &short, &long), NEW);
}

#[test]
fn handles_that_a_client_may_keep_are_not_proposed() {
    let churn = |set: fn(&mut Operation)| {
        let acts = (0..40).flat_map(|handle| {
            let path: &str = format!("{handle}.txt").leak();
            [Act { set, ..act(CREATE, handle, path) }, act(CLOSE, handle, path)]
        });
        explain(&acts.collect::<Vec<_>>())
    };
    let (without, with) = (churn(|_| ()), churn(grant_lease));
    let kind = FindingKind::OpenCloseChurn;
    assert_eq!(says(kind, "smb2 leases = yes", &without, &with), DROPPED);
    assert_eq!(says(kind, "closes them all the same", &without, &with), NEW);
}

#[test]
fn a_client_that_compounds_need_not_be_replaced() {
    let acts: Vec<_> = (0..40).flat_map(|handle| query_file(handle, "a.txt")).collect();
    let on = |compounds| explain_on(&acts, Connection { compounds, ..far_connection(20, 4 << 20) });
    let (without, with) = (on(0), on(7));
    let kind = FindingKind::NoCompounding;
    assert_eq!(says(kind, "Linux from 5.9", &without, &with), DROPPED);
    assert_eq!(says(kind, "separate calls of a program", &without, &with), NEW);
}

#[test]
fn sizes_and_dialects_that_are_negotiated_are_not_proposed() {
    let acts = far_reads(|row| set_sequential(row, 8192));
    let on = |dialect: Option<&str>, most: u64| {
        let connection = Connection {
            dialect: dialect.map(str::to_owned),
            max_read_bytes: Some(most),
            max_write_bytes: Some(most),
            ..far_connection(20, 4 << 20)
        };
        explain_on(&acts, connection)
    };
    let kind = FindingKind::SmallReads;
    let (unknown, small, large) =
        (on(None, 64 << 10), on(Some("2.1"), 64 << 10), on(Some("3.1.1"), 8 << 20));
    assert_eq!(says(kind, "min protocol SMB2", &unknown, &small), DROPPED);
    assert_eq!(says(kind, "EnableSMB1Protocol", &unknown, &small), DROPPED);
    assert_eq!(says(kind, "smb2 max read", &small, &large), DROPPED);
    assert_eq!(says(kind, "EnableLargeMtu", &small, &large), DROPPED);
    assert_eq!(says(kind, "vers=3.1.1", &small, &large), DROPPED);
    // Large in one direction only.
    let one_way = Connection {
        dialect: Some("3.1.1".into()),
        max_read_bytes: Some(64 << 10),
        max_write_bytes: Some(8 << 20),
        ..far_connection(20, 4 << 20)
    };
    assert_eq!(says(kind, "smb2 max read", &explain_on(&acts, one_way), &large), DROPPED);
    // An SMB1 connection keeps the advice to leave SMB1.
    assert_eq!(says(kind, "min protocol SMB2", &on(Some("NT LM 0.12"), 64 << 10), &small), DROPPED);
    // The note about small sizes knows the dialect, too.
    let note = |diagnosis: &Diagnosis| {
        let note = diagnosis.notes.iter().find(|note| note.about == About::SmallMaximum);
        note.map(|note| note.what.contains("needs dialect 2.1"))
    };
    let notes = [on(Some("2.0.2"), 64 << 10), on(Some("3.1.1"), 64 << 10), large];
    assert_eq!(notes.map(|one| note(&one)), [Some(true), Some(false), None]);
}

#[test]
fn compression_in_use_is_not_proposed() {
    let on = |compressed| {
        let connection = Connection { compressed, ..far_connection(20, 64 << 20) };
        explain_on(&long_reads(|_| 40), connection)
    };
    let (without, with) = (on(0), on(9));
    assert_eq!(says(FindingKind::BandwidthLimited, "robocopy /COMPRESS", &without, &with), DROPPED);
}

#[test]
fn window_scales_in_use_are_not_proposed() {
    let on = |client, server| {
        let connection = Connection {
            client_window_scale: client,
            server_window_scale: server,
            ..far_connection(20, 64 << 10)
        };
        explain_on(&long_reads(|_| 340), connection)
    };
    let (without, with) = (on(Some(0), Some(7)), on(Some(8), Some(7)));
    let kind = FindingKind::WindowLimited;
    assert_eq!(says(kind, "tcp_window_scaling", &without, &with), DROPPED);
    assert_eq!(says(kind, "window scale option", &without, &with), DROPPED);
    assert_eq!(says(kind, "tcp_rmem", &without, &with), [true, true]);
    assert_eq!(says(kind, "window scale option", &on(Some(8), None), &with), DROPPED);
}

#[test]
fn quick_protection_is_not_proposed_again() {
    let slow = |row: &mut Operation| {
        row.set_signed(true);
        row.set_crypto_in_ns(4 * MS);
    };
    let acts: Vec<_> =
        (0..40).map(|_| Act { server_ns: 5 * MS, set: slow, ..act(READ, 1, "a") }).collect();
    let on = |signing: &str, cipher: &str| {
        let connection = Connection {
            signed: 40,
            encrypted: 1,
            signing_algorithm: Some(signing.into()),
            cipher: Some(cipher.into()),
            ..far_connection(5, 4 << 20)
        };
        explain_on(&acts, connection)
    };
    let kind = FindingKind::Protection;
    let with = on("AES-GMAC", "AES-128-GCM");
    for without in [on("AES-CMAC", "AES-128-GCM"), on("AES-GMAC", "AES-256-CCM")] {
        for words in ["both with AES-NI", "server smb3 signing algorithms", "EncryptionCiphers"] {
            assert_eq!(says(kind, words, &without, &with), DROPPED, "{words}");
        }
    }
    assert_eq!(actions(&with, kind).len(), 1);
}

#[test]
fn credits_and_channels_in_use_are_not_proposed() {
    let set = |row: &mut Operation| {
        row.set_outstanding(3);
        row.set_credit_charge(1);
        row.set_credits_requested(32);
        row.set_credits_granted(1);
    };
    let acts: Vec<_> = (0..40).map(|_| Act { rtt_ns: 20 * MS, set, ..act(READ, 1, "b") }).collect();
    let on = |acts: &[Act]| {
        let connection =
            Connection { credits_min: Some(0), credits_max: 4, ..far_connection(20, 4 << 20) };
        explain_on(acts, connection)
    };
    // Both connections log on to one session, the second one as a channel.
    let logon = |connection: u64| Act {
        set: if connection == 1 {
            |row| row.set_session_id(9)
        } else {
            |row| {
                row.set_session_id(9);
                row.set_connection(2);
                row.set_detail(code::detail(code::Detail::SessionSetup, 1));
            }
        },
        ..act(1, NO_HANDLE, "")
    };
    let channels: Vec<_> = [logon(1), logon(2)].into_iter().chain(acts.clone()).collect();
    let alone: Vec<_> = [logon(1)].into_iter().chain(acts).collect();
    let kind = FindingKind::CreditStarvation;
    assert_eq!(says(kind, "SMB Multichannel", &on(&alone), &on(&channels)), DROPPED);
}

#[test]
fn shares_that_are_not_continuously_available_need_not_stop_being_so() {
    let acts: Vec<_> = (0..40)
        .map(|_| Act {
            set: |row| row.set_flush_ns(90 * MS),
            server_ns: 100 * MS,
            ..act(FLUSH, 1, "a")
        })
        .collect();
    let with = |continuous_availability: Option<bool>| {
        let mut explain = smbscope_analysis::explain::Explain::new();
        explain.trees(&[Tree {
            recording: "run".into(),
            connection: 1,
            continuous_availability,
            ..Tree::default()
        }]);
        explain_with(explain, &acts, Vec::new())
    };
    let words = "continuously available";
    let kind = FindingKind::SlowFlush;
    assert_eq!(says(kind, words, &with(Some(true)), &with(Some(false))), DROPPED);
    assert_eq!(says(kind, words, &with(None), &with(Some(false))), DROPPED);
}
