//! Differences of two baselines by meaning.

use super::*;
use crate::baseline::effective::{Input, Layer, effective};
use crate::baseline::setting::{Origin, Scope, Setting, SmbObject, Value};

fn reg(key: &str, name: &str, value: u32) -> Setting {
    let place =
        Place::Registry { scope: Scope::Computer, key: key.to_owned(), name: name.to_owned() };
    Setting { place, value: Value::Dword(value), origin: Origin::default() }
}

fn server(name: &str, value: u32) -> Setting {
    reg(r"System\CurrentControlSet\Services\LanManServer\Parameters", name, value)
}

fn conf(share: Option<&str>, parameter: &str, value: &str) -> Setting {
    let place = Place::Samba { share: share.map(str::to_owned), parameter: parameter.to_owned() };
    Setting { place, value: Value::Text(value.to_owned()), origin: Origin::default() }
}

fn smb(object: SmbObject, property: &str, value: &str) -> Setting {
    let place = Place::Smb { object, property: property.to_owned() };
    Setting { place, value: Value::Text(value.to_owned()), origin: Origin::default() }
}

fn terms(settings: &[Setting]) -> Terms {
    Terms::from_effective(effective(&[Input { name: "in", layer: Layer::Policy, settings }]))
}

fn compare(before: &[Setting], after: &[Setting], unset: Unset) -> Vec<(String, String, String)> {
    let (before, after) = (terms(before), terms(after));
    let side = |terms| Side { terms, system: None, role: MachineRole::Both };
    rows(difference(side(&before), side(&after), unset))
}

fn rows(difference: Difference) -> Vec<(String, String, String)> {
    let text = |shown: &Option<Shown>| shown.as_ref().map_or("?".into(), |one| one.value.clone());
    let of = |key: &SettingKey| match &key.of {
        Some(of) => format!("{}[{of}]", key.id),
        None => key.id.clone(),
    };
    difference
        .changes
        .iter()
        .map(|change| (of(&change.key), text(&change.from), text(&change.to)))
        .collect()
}

fn row(id: &str, from: &str, to: &str) -> (String, String, String) {
    (id.to_owned(), from.to_owned(), to.to_owned())
}

#[test]
fn windows_and_samba_are_compared_by_meaning() {
    let windows = [
        server("RequireSecuritySignature", 1),
        smb(SmbObject::Server, "EncryptionCiphers", "AES_128_GCM, AES_128_CCM"),
        smb(SmbObject::Server, "Smb2DialectMin", "SMB300"),
        smb(SmbObject::Share("Home".into()), "EncryptData", "True"),
    ];
    let samba = [
        conf(None, "server signing", "mandatory"),
        conf(None, "server smb3 encryption algorithms", "AES-128-GCM, AES-128-CCM"),
        conf(None, "server min protocol", "SMB3_00"),
        conf(Some("home"), "server smb encrypt", "required"),
    ];
    assert_eq!(compare(&windows, &samba, Unset::Default), []);
    let off = [conf(None, "server signing", "auto"), conf(None, "server min protocol", "SMB2")];
    assert_eq!(
        compare(&windows, &off, Unset::Kept),
        [row("server-signing", "1", "0"), row("server-dialect-least", "768", "528")]
    );
}

#[test]
fn inverted_places_mean_the_opposite() {
    let client = r"SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters";
    let off = [reg(client, "DisableLargeMtu", 1)];
    let on = [smb(SmbObject::Client, "EnableLargeMtu", "True")];
    assert_eq!(compare(&off, &on, Unset::Default), [row("client-large-mtu", "0", "1")]);
}

#[test]
fn defaults_of_the_versions_count_where_nothing_is_set() {
    let nothing = Terms::default();
    let of = |one, other| {
        let side = |system| Side { terms: &nothing, system: Some(system), role: MachineRole::Both };
        rows(difference(side(one), side(other), Unset::Default))
    };
    // Clients of Windows Server 2025 require signing.
    let changes = of(System::Windows2022, System::Windows2025);
    assert!(changes.contains(&row("client-signing", "0", "1")), "{changes:?}");
    let changes = of(System::Samba417, System::Samba422);
    assert!(changes.contains(&row("server-directory-leases", "?", "1")), "{changes:?}");
    assert!(of(System::Windows2019, System::Windows2019).is_empty());
    // The same setting by its default and by hand.
    let set = terms(&[server("RequireSecuritySignature", 0)]);
    let before = Side { terms: &set, system: None, role: MachineRole::Both };
    let after =
        Side { terms: &nothing, system: Some(System::Windows2019), role: MachineRole::Both };
    assert_eq!(rows(difference(before, after, Unset::Default)), []);
}

#[test]
fn what_a_policy_does_not_set_stays() {
    let before = [server("RequireSecuritySignature", 1), server("SMB1", 1)];
    let after = [server("SMB1", 0)];
    assert_eq!(
        compare(&before, &after, Unset::Default),
        [row("server-signing", "1", "?"), row("smb1-server", "1", "0")]
    );
    assert_eq!(compare(&before, &after, Unset::Kept), [row("smb1-server", "1", "0")]);
}

#[test]
fn security_of_a_change_is_named() {
    let (before, after) = (
        terms(&[server("SMB1", 1), server("RequireSecuritySignature", 1)]),
        terms(&[server("SMB1", 0), server("RequireSecuritySignature", 0)]),
    );
    let side = |terms| Side { terms, system: None, role: MachineRole::Both };
    let all = difference(side(&before), side(&after), Unset::Default);
    let of = |id: &str| all.changes.iter().find(|one| one.key.id == id).unwrap().security;
    assert_eq!(of("smb1-server"), Security::Stricter);
    assert_eq!(of("server-signing"), Security::Weaker);
}

#[test]
fn everything_else_is_counted() {
    let key = r"SOFTWARE\Policies\Microsoft\Other";
    let before = terms(&[reg(key, "a", 1), reg(key, "b", 1), reg(key, "c", 1)]);
    let after = terms(&[reg(key, "A", 1), reg(key, "b", 2), reg(key, "d", 1)]);
    let side = |terms| Side { terms, system: None, role: MachineRole::Both };
    let others = difference(side(&before), side(&after), Unset::Default).others;
    assert_eq!(others, Others { same: 1, changed: 1, only_before: 1, only_after: 1 });
}
