//! Too few credits: whose fault it is.

use smbscope_analysis::explain::{Diagnosis, Finding, FindingKind};
use smbscope_findings::Confidence;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::support::*;

/// A connection whose client held from `least` to `most` credits.
fn held(least: u64, most: u64) -> Connection {
    Connection {
        credits_min: Some(least),
        credits_max: most,
        max_read_bytes: Some(64 << 10),
        max_write_bytes: Some(64 << 10),
        ..far_connection(20, 4 << 20)
    }
}

fn reads(set: fn(&mut Operation)) -> Vec<Act> {
    (0..40).map(|_| Act { rtt_ns: 20 * MS, set, ..act(READ, 1, "big.iso") }).collect()
}

fn set(row: &mut Operation, outstanding: u32, [charge, requested, granted]: [u16; 3]) {
    row.set_outstanding(outstanding);
    row.set_credit_charge(charge);
    row.set_credits_requested(requested);
    row.set_credits_granted(granted);
}

fn few(diagnosis: &Diagnosis) -> Option<&Finding> {
    found(diagnosis, FindingKind::CreditStarvation)
}

/// Where its remedies are.
fn remedies(finding: &Finding) -> Vec<&str> {
    finding.remedies.iter().map(|remedy| &*remedy.at).collect()
}

#[test]
fn a_server_grants_fewer_than_requested() {
    let reads = reads(|row| set(row, 3, [1, 32, 1]));
    let diagnosis = explain_on(&reads, held(0, 4));
    let starved = few(&diagnosis).unwrap();
    assert_eq!(
        (figure(starved, "credits_at_most"), figure(starved, "in_flight_at_most")),
        (4.0, 4.0)
    );
    assert_eq!(diagnosis.findings[0], *starved);
    assert!(starved.what.starts_with("The server 10.0.0.2 grants so few"), "{starved:?}");
    assert_eq!(remedies(starved), ["Samba", "Windows", "client"]);
    // Credits were left; or there were many.
    assert_eq!(few(&explain_on(&reads, held(2, 4))), None);
    assert_eq!(few(&explain_on(&reads, held(0, 512))), None);
}

#[test]
fn a_client_requests_fewer_than_it_spends() {
    // 1 MiB costs 16 credits; the client requests one, and the server returns what was spent.
    let reads_of = |set: fn(&mut Operation)| reads(set);
    let diagnosis = explain_on(&reads_of(|row| set(row, 0, [16, 1, 16])), held(1, 17));
    let starved = few(&diagnosis).unwrap();
    assert!(starved.what.starts_with("The client 10.0.0.1 requests fewer"), "{starved:?}");
    assert!(starved.what.contains("(1.0 for a charge of 16.0)"), "{starved:?}");
    assert_eq!(remedies(starved), ["client"]);
    assert!(starved.share() > 0.9, "{starved:?}");
    // One request at a time may be its choice; two are all that the credits pay for.
    let two = explain_on(&reads_of(|row| set(row, 1, [16, 1, 16])), held(1, 33));
    let confidence = [starved.confidence, few(&two).unwrap().confidence];
    assert_eq!(confidence, [Some(Confidence::Possible), Some(Confidence::Likely)]);
    // Small requests in between do not hide it.
    let mixed = |row: &mut Operation| {
        let charge = if row.operation().unwrap().is_multiple_of(2) { 16 } else { 1 };
        set(row, 0, [charge, 1, charge]);
    };
    assert!(few(&explain_on(&reads_of(mixed), held(1, 17))).is_some());
    // It requests what it spends; or it has enough; or it requests one credit where one is spent.
    assert_eq!(few(&explain_on(&reads_of(|row| set(row, 0, [16, 16, 16])), held(1, 17))), None);
    assert_eq!(few(&explain_on(&reads_of(|row| set(row, 0, [16, 1, 16])), held(1, 200))), None);
    assert_eq!(few(&explain_on(&reads_of(|row| set(row, 0, [16, 1, 16])), held(16, 33))), None);
    assert_eq!(few(&explain_on(&reads_of(|row| set(row, 3, [1, 1, 1])), held(0, 4))), None);
}

#[test]
fn credits_decline_and_never_come_back() {
    let decline = |row: &mut Operation| {
        let granted = u16::from(row.operation().unwrap() >= 31);
        set(row, 0, [1, 31, granted]);
    };
    let diagnosis = explain_on(&reads(decline), held(0, 31));
    let starved = few(&diagnosis).unwrap();
    assert!(starved.what.contains("never gives them back"), "{starved:?}");
    assert_eq!(remedies(starved), ["client", "Samba", "Windows"]);
    // They come back: the server was busy.
    let returning = |row: &mut Operation| {
        let granted = if row.operation().unwrap() % 10 == 9 { 10 } else { 0 };
        set(row, 0, [1, 31, granted]);
    };
    assert_eq!(few(&explain_on(&reads(returning), held(0, 31))), None);
}

#[test]
fn the_negotiated_size_takes_more_than_is_granted() {
    let reads = reads(|row| set(row, 0, [16, 64, 16]));
    let of_size = |bytes| Connection {
        max_read_bytes: Some(bytes),
        max_write_bytes: Some(bytes),
        ..held(0, 16)
    };
    let diagnosis = explain_on(&reads, of_size(8 << 20));
    let starved = few(&diagnosis).unwrap();
    assert!(
        starved.what.contains("take 128 credits, but never grants more than 16"),
        "{starved:?}"
    );
    // A size that the credits pay for.
    let diagnosis = explain_on(&reads, of_size(1 << 20));
    assert!(few(&diagnosis).unwrap().what.contains("grants so few"));
}
