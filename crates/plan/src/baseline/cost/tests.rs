//! Questions and costs of changed settings.

use super::predicted::*;
use super::questions::{Inquiry, questions, weight};
use super::*;
use crate::baseline::catalogue::System;
use crate::baseline::difference::{Side, Unset, difference};
use crate::baseline::effective::{Input, Layer, effective};
use crate::baseline::protection::View;
use crate::baseline::roles::MachineRole;
use crate::baseline::setting::{Origin, Place, Scope, Setting, SmbObject, Value};
use crate::baseline::terms::Terms;

pub(crate) fn server(name: &str, value: u32) -> Setting {
    reg(r"SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters", name, Value::Dword(value))
}

pub(crate) fn reg(key: &str, name: &str, value: Value) -> Setting {
    let place =
        Place::Registry { scope: Scope::Computer, key: key.to_owned(), name: name.to_owned() };
    Setting { place, value, origin: Origin::default() }
}

pub(crate) fn conf(parameter: &str, value: &str) -> Setting {
    let place = Place::Samba { share: None, parameter: parameter.to_owned() };
    Setting { place, value: Value::Text(value.to_owned()), origin: Origin::default() }
}

pub(crate) fn smb(object: SmbObject, property: &str, value: &str) -> Setting {
    let place = Place::Smb { object, property: property.to_owned() };
    Setting { place, value: Value::Text(value.to_owned()), origin: Origin::default() }
}

pub(crate) fn hardened(pattern: &str, demands: &str) -> Setting {
    let key = r"Software\Policies\Microsoft\Windows\NetworkProvider\HardenedPaths";
    reg(key, pattern, Value::Text(demands.to_owned()))
}

pub(crate) fn terms(settings: &[Setting]) -> Terms {
    Terms::from_effective(effective(&[Input { name: "in", layer: Layer::Policy, settings }]))
}

/// A recording of unsigned operations of SMB 3.1.1 on two shares.
pub(crate) fn facts() -> Facts {
    let share = |unc: &str, operations, moved_bytes| ShareFacts {
        unc: unc.to_owned(),
        operations,
        moved_bytes,
    };
    Facts {
        operations: 1000,
        dialect: Some(785),
        signing_algorithm: Some("aes-gmac".to_owned()),
        cipher: Some("aes-128-gcm".to_owned()),
        shares: vec![share(r"\\fs1\home", 900, 900 << 20), share(r"\\fs1\sysvol", 100, 1 << 20)],
        outstanding_most: Some(64),
        read_most_bytes: Some(1 << 20),
        write_most_bytes: Some(1 << 20),
        ..Facts::default()
    }
}

/// 100 Reads of a MiB take 2 ms and then this much more, 10 of Close stay.
pub(crate) fn numbers(more_ns: f64) -> Numbers {
    let command = |name: &str, n, before_ns, after_ns| CommandNumbers {
        name: name.to_owned(),
        n,
        before_ns,
        after_ns,
        change_error_ns: Some(0.0),
    };
    Numbers {
        commands: vec![command("Close", 10, 1e5, 1e5), command("Read", 100, 2e6, 2e6 + more_ns)],
        moved_bytes: 100 << 20,
        server_cpu_ns: Some(100.0 * more_ns),
        users_before: Some((100.0, 15.0)),
        users_after: Some((82.0, 12.0)),
        ..Numbers::default()
    }
}

fn inquiry(before: &[Setting], after: &[Setting], facts: Option<&Facts>) -> Inquiry {
    let (before, after) = (terms(before), terms(after));
    let side = |terms| Side { terms, system: Some(System::Windows2022), role: MachineRole::Both };
    let (before, after) = (side(&before), side(&after));
    let all = difference(before, after, Unset::Kept);
    questions(&all, View::both(before, after, Unset::Kept), facts)
}

fn asked(before: &[Setting], after: &[Setting]) -> Vec<(Vec<String>, usize)> {
    let all = inquiry(before, after, Some(&facts()));
    all.questions.into_iter().map(|one| (one.changes, one.shares.len())).collect()
}

fn because(before: &[Setting], after: &[Setting], facts: &Facts) -> String {
    let all = inquiry(before, after, Some(facts));
    assert_eq!(all.questions, []);
    match &all.costs(&[])[0].outcome {
        CostOutcome::Nothing { because } | CostOutcome::Unknown { because, .. } => because.clone(),
        CostOutcome::Predicted(one) => panic!("{one:?}"),
    }
}

#[test]
fn signing_by_dialect_is_one_question() {
    let on = [server("RequireSecuritySignature", 1)];
    let signing = |name: &str| vec![(vec![format!("signing={name}")], 0)];
    assert_eq!(asked(&[], &on), signing("aes-gmac"));
    for (dialect, name) in [("SMB2_10", "hmac-sha256"), ("SMB3_02", "aes-cmac")] {
        let both = [conf("server signing", "mandatory"), conf("server max protocol", dialect)];
        assert_eq!(asked(&[], &both), signing(name), "{dialect}");
    }
    // The client's requirement is enough, and both are one cost.
    let key = r"SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters";
    let both = [
        server("RequireSecuritySignature", 1),
        reg(key, "RequireSecuritySignature", Value::Dword(1)),
    ];
    let all = inquiry(&[], &both, Some(&facts()));
    assert_eq!(all.questions.len(), 1);
    assert_eq!(all.costs(&[Ok(numbers(1.0))])[0].settings.len(), 2);
    // Taken back.
    let signed = Facts { signed: 1000, ..facts() };
    let all = inquiry(&on, &[server("RequireSecuritySignature", 0)], Some(&signed));
    assert_eq!(all.questions[0].changes, ["signing=off"]);
}

#[test]
fn what_the_recording_has_already_costs_nothing() {
    let on = [server("RequireSecuritySignature", 1)];
    let signed = Facts { signed: 1000, ..facts() };
    assert_eq!(
        because(&[], &on, &signed),
        "The recorded messages are already signed with aes-gmac."
    );
    let encrypted = Facts { encrypted: 1000, ..facts() };
    assert_eq!(because(&[], &on, &encrypted), "Encrypted messages are not signed as well.");
    let limit = [conf("smb2 max credits", "128")];
    assert_eq!(because(&[], &limit, &facts()), "At most 64 are in use on a recorded connection.");
    let least = [conf("server min protocol", "SMB3_00")];
    assert_eq!(because(&[], &least, &facts()), "Recorded connections keep their dialect.");
    let none = [server("EnableSecuritySignature", 1)];
    assert!(because(&[], &none, &facts()).starts_with("It has no effect: SMB 2 and later ignore"));
}

#[test]
fn encryption_of_one_share_and_hardened_paths_are_about_their_operations() {
    let share = [smb(SmbObject::Share("Home".into()), "EncryptData", "True")];
    assert_eq!(asked(&[], &share), [(vec!["encryption=aes-128-gcm".to_owned()], 1)]);
    let path = [hardened(r"\\*\Home", "RequireMutualAuthentication=1,RequireIntegrity=1")];
    let all = inquiry(&[], &path, Some(&facts()));
    assert_eq!(all.questions[0].changes, ["signing=aes-gmac"]);
    assert_eq!(all.questions[0].shares, [r"\\fs1\home"]);
    let private = [hardened(r"\\fs1", "RequirePrivacy=1")];
    let all = inquiry(&[], &private, Some(&facts()));
    assert_eq!(
        (&*all.questions[0].changes[0], all.questions[0].shares.len()),
        ("encryption=aes-128-gcm", 2)
    );
    assert_eq!(facts().moved_bytes(&all.questions[0]), 901 << 20);
    let elsewhere = [hardened(r"\\*\Other", "RequireIntegrity=1")];
    let words = because(&[], &elsewhere, &facts());
    assert_eq!(words, r"No share of the recording matches \\*\other.");
}

#[test]
fn other_changes_have_their_own_questions_or_an_experiment() {
    let client = r"SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters";
    let mtu = [reg(client, "DisableLargeMtu", Value::Dword(1))];
    let changes = vec!["max-read=65536B".to_owned(), "max-write=65536B".to_owned()];
    assert_eq!(asked(&[], &mtu), [(changes, 0)]);
    assert_eq!(
        asked(&[], &[conf("sync always", "yes")]),
        [(vec!["write-through=on".to_owned()], 0)]
    );
    assert_eq!(
        asked(&[], &[conf("smb2 max read", "65536")]),
        [(vec!["max-read=65536B".to_owned()], 0)]
    );
    let cache = [reg(client, "DirectoryCacheLifetime", Value::Dword(0))];
    let all = inquiry(&[], &cache, Some(&facts())).costs(&[]);
    let CostOutcome::Unknown { because, experiment } = &all[0].outcome else { panic!() };
    assert!(because.contains("caches saved") && experiment.contains("smbscope load"));
}

#[test]
fn without_a_recording_the_reason_is_named() {
    let all = inquiry(&[], &[server("RequireSecuritySignature", 1)], None);
    assert_eq!(all.questions.len(), 1);
    let CostOutcome::Unknown { because, experiment } = &all.costs(&[])[0].outcome else { panic!() };
    assert!(because.contains("--recording") && experiment.contains("calibrate"));
}

#[test]
fn numbers_have_intervals() {
    let question = Question { changes: vec!["signing=hmac-sha256".to_owned()], shares: vec![] };
    let one = Predicted::from_question(question, &numbers(9e5));
    let near = |one: f64, other: f64| (one - other).abs() < 1e-6 * other.abs();
    let mib = one.ns_per_mib.unwrap();
    assert!(near(mib.value, 9e5) && near(mib.low, 8.1e5) && near(mib.high, 9.9e5), "{mib:?}");
    assert_eq!(one.commands[0].name, "Read");
    assert!(near(one.percent.value, 100.0 * 9e7 / 2.01e8));
    let cpu = one.cpu_s_per_gb.unwrap();
    assert!(near(cpu.value, 0.09 / 0.1048576) && near(cpu.high, 1.1 * cpu.value));
    let users = one.users.unwrap();
    assert!(near(users.percent.value, -18.0), "{users:?}");
    // 0.82 x 0.18 of the errors of both, 15 % and 10 %.
    let error = 100.0 * 0.82 * 0.18 * 0.15_f64.hypot(0.1);
    assert!(near(users.percent.high - users.percent.value, error), "{users:?}");
}

#[test]
fn costs_are_ranked_and_weigh_the_search() {
    let after = [
        server("EnableSecuritySignature", 1),
        conf("strict locking", "yes"),
        server("RequireSecuritySignature", 1),
        server("EncryptData", 0),
    ];
    let all = inquiry(&[], &after, Some(&facts()));
    let costs = all.costs(&[Ok(numbers(9e5))]);
    assert!(costs[0].costs() && !costs[1].costs(), "{costs:?}");
    assert!(matches!(costs[1].outcome, CostOutcome::Unknown { .. }));
    let weights: Vec<_> = costs.iter().map(|cost| weight(cost, 9e7)).collect();
    assert!(weights[0] > 10.0 * weights[1] && weights[1] > 10.0 * weights[2], "{weights:?}");
}
