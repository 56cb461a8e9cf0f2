//! A test of the path without SMB next to SMB: which of the two is the limit.

use smbscope_analysis::explain::{About, Diagnosis, Explain};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::NetTest;

use crate::support::*;

/// Far reads of 1 MiB at 20.1 ms next to a path that carries that rate times `factor`.
fn next_to(factor: f64, set: fn(&mut Operation)) -> Diagnosis {
    let reads = far_reads(set);
    let alone = explain(&reads);
    assert!(
        alone.network.is_empty() && alone.notes.iter().all(|note| note.about != About::Network)
    );
    let mut explain = Explain::with_gains();
    let smb = 8e9 * f64::from(1 << 20) / 20.1e6;
    explain.net_tests(&[NetTest {
        direction: "receive".into(),
        sender: "10.0.0.2".into(),
        receiver: "10.0.0.1".into(),
        bits_per_second: smb * factor,
        limit: "network".into(),
        ..NetTest::default()
    }]);
    explain_with(explain, &reads, vec![far_connection(20, 1 << 20)])
}

fn note(diagnosis: &Diagnosis) -> &str {
    let notes: Vec<_> =
        diagnosis.notes.iter().filter(|note| note.about == About::Network).collect();
    let [note] = notes[..] else { panic!("{:?}", diagnosis.notes) };
    &note.what
}

#[test]
fn the_slower_one_of_network_and_smb_is_named() {
    let large = |row: &mut Operation| set_sequential(row, 1 << 20);
    let network = next_to(1.05, large);
    assert!(note(&network).starts_with("the network, not SMB: SMB reads 0.4"), "{network:?}");
    let [row] = &network.network[..] else { panic!("{network:?}") };
    assert_eq!((row.operation.as_str(), row.limit.as_str()), ("read", "network"));
    assert!(row.ratio > 0.85 && row.ratio < 1.05, "{row:?}");
    let smb = next_to(4.0, large);
    assert!(note(&smb).starts_with("SMB, not the network: "), "{smb:?}");
    assert!(!note(&smb).contains("signing"), "{smb:?}");
    let signed = next_to(4.0, |row| {
        set_sequential(row, 1 << 20);
        row.set_signed(true);
    });
    assert!(note(&signed).contains("predict INPUT --change signing=off"), "{signed:?}");
}

#[test]
fn a_finding_that_blames_the_path_quotes_the_test() {
    let small = |row: &mut Operation| set_sequential(row, 1 << 20);
    for (factor, words) in [(1.05, "of what TCP alone moves"), (4.0, "TCP alone moves more")] {
        let diagnosis = next_to(factor, small);
        for finding in &diagnosis.findings {
            let blames_path = finding.figures.iter().any(|one| one.name == "share_of_raw");
            assert_eq!(blames_path, finding.because.contains(words), "{finding:?}");
        }
    }
}
