//! Notes: findings without a measurable cost in time.

use smbscope_analysis::explain::{About, Explain, Note};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Connection, Coverage};

use crate::support::*;

#[test]
fn the_cost_of_protection_is_not_visible_from_outside() {
    let is_told = |set: fn(&mut Operation)| {
        let diagnosis = explain(&vec![Act { set, ..act(READ, 1, "a") }; 30]);
        diagnosis.notes.iter().any(|note| note.about == About::Protection)
    };
    assert!(is_told(|row| row.set_signed(true)) && is_told(|row| row.set_encrypted(true)));
    assert!(!is_told(|_| ()));
    assert!(!is_told(|row| {
        row.set_signed(true);
        row.set_crypto_in_ns(MS / 100);
    }));
}

#[test]
fn connections_and_coverage_make_notes() {
    let mut explain = Explain::new();
    explain.connections(&[Connection {
        recording: "run".into(),
        packets_to_client: 1000,
        retransmissions_to_client: 20,
        zero_windows_to_server: 3,
        gaps_to_client: 1,
        max_read_bytes: Some(65_536),
        max_write_bytes: Some(65_536),
        ..Connection::default()
    }]);
    explain.coverage(&[Coverage {
        messages_encrypted: 9,
        messages_decrypted: 4,
        ..Coverage::default()
    }]);
    let diagnosis = explain.finish().unwrap();
    assert!(diagnosis.findings.is_empty());
    let about: Vec<_> = diagnosis.notes.iter().map(|note| note.about).collect();
    use About::{Loss, SmallMaximum, Unseen, ZeroWindows};
    assert_eq!(about, [Loss, ZeroWindows, SmallMaximum, Unseen, Unseen]);
    assert!(diagnosis.notes[4].what.starts_with("5 messages"));
}

#[test]
fn notes_backups_that_were_not_flushed() {
    let large = |row: &mut Operation| row.set_transferred_bytes(2 << 20);
    let copy = |path, with: &[Act]| {
        let write = Act { set: large, ..act(WRITE, 1, path) };
        let acts = [&[act(CREATE, 1, path), write], with, &[act(CLOSE, 1, path)]].concat();
        let is_told = |note: &Note| note.about == About::NotStable;
        explain(&acts).notes.iter().any(is_told)
    };
    assert!(copy("backup\\full.VBK", &[]));
    assert!(!copy("backup\\full.vbk", &[act(FLUSH, 1, "backup\\full.vbk")]));
    assert!(!copy("letter.docx", &[]));
}

#[test]
fn the_note_has_the_cost_of_write_through_where_it_can_be_computed() {
    let large = |row: &mut Operation| row.set_transferred_bytes(2 << 20);
    let slow_flush = Act { server_ns: 30 * MS, ..act(FLUSH, 2, "other.bin") };
    let mut acts = vec![act(CREATE, 1, "vm.vhdx")];
    for _ in 0..20 {
        acts.push(Act { set: large, ..act(WRITE, 1, "vm.vhdx") });
        acts.push(Act { set: |row| row.set_transferred_bytes(4096), ..act(WRITE, 2, "other.bin") });
        acts.push(slow_flush.clone());
    }
    let words = |acts: &[Act]| {
        let notes = explain(acts).notes;
        let stable = notes.into_iter().filter(|note| note.about == About::NotStable);
        stable.map(|note| note.what).collect::<Vec<_>>().join("\n")
    };
    let with = words(&acts);
    assert!(with.contains("1 of 1 open of virtual disks ended with"), "{with}");
    assert!(with.contains("smbscope predict INPUT --change write-through=on"), "{with}");
    assert!(with.contains("clients would wait"), "{with}");
    for setting in
        ["-UseWriteThrough", "/writethrough", "strict sync", "sync always", "O_SYNC", "cache="]
    {
        assert!(with.contains(setting), "{setting}: {with}");
    }
    acts.retain(|act| act.command != FLUSH);
    assert!(words(&acts).contains("is not known"));
}
