//! Judgements: what costs is named first, cheaper ways do not weaken, and nothing is claimed without a prediction.

use super::super::bisect::{Purpose, Speed, State, Step};
use super::super::catalogue::System;
use super::super::cost::tests::{conf, facts, hardened, numbers, reg, server, terms};
use super::super::cost::{CostOutcome, Facts};
use super::super::effective::{Input, Layer, effective};
use super::super::roles::MachineRole;
use super::super::setting::{Origin, Place, Setting, Value};
use super::findings::FindingKind;
use super::*;

fn side(terms: &Terms) -> Side<'_> {
    Side { terms, system: None, role: MachineRole::Both }
}

/// 234 settings, of which a dozen touch file serving: signing by dialect 2.1 among them.
fn baseline() -> Vec<Setting> {
    let key = r"SOFTWARE\Policies\Microsoft\Windows\Harmless";
    let harmless = (0..220).map(|number| reg(key, &format!("Setting{number}"), Value::Dword(1)));
    let mut all: Vec<_> = harmless.collect();
    all.extend([
        conf("server signing", "mandatory"),
        conf("server max protocol", "SMB2_10"),
        server("EnableSecuritySignature", 1),
        server("SizReqBuf", 65_535),
        server("AutoDisconnect", 30),
        server("RestrictNullSessAccess", 1),
        conf("deadtime", "15"),
        conf("strict locking", "yes"),
        hardened(r"\\*\SYSVOL", "RequireMutualAuthentication=1,RequireIntegrity=1"),
        hardened(r"\\*\NETLOGON", "RequireMutualAuthentication=1,RequireIntegrity=1"),
        conf("hide unreadable", "yes"),
        conf("lanman auth", "no"),
        conf("log level", "1"),
        conf("ntlm auth", "ntlmv2-only"),
    ]);
    all
}

fn answers(questions: &[Question]) -> Vec<Answer> {
    let of = |question: &Question| match (question.changes[0].as_str(), question.shares.len()) {
        ("signing=hmac-sha256", 0) => Ok(numbers(3e6)),
        ("signing=aes-gmac", 0) => Ok(numbers(3e5)),
        (_, 0) => Err("It was not calibrated.".to_owned()),
        _ => Ok(numbers(1e4)),
    };
    questions.iter().map(of).collect()
}

#[test]
fn signing_is_named_first_with_the_cheaper_way() {
    let (before, after) = (terms(&[]), terms(&baseline()));
    let facts = facts();
    let all = Assessment::new(side(&before), side(&after), Unset::Kept, Some(&facts));
    let judged = all.judge(&answers(all.questions()));
    assert_eq!((judged.after.settings, judged.after.others), (234, 220));
    let ids: Vec<_> = judged.costs[0].settings.iter().map(|key| key.id.as_str()).collect();
    assert_eq!(ids, ["server-signing", "server-dialect-most"]);
    let CostOutcome::Predicted(first) = &judged.costs[0].outcome else { panic!() };
    assert_eq!(first.question.changes, ["signing=hmac-sha256"]);
    let way = &judged.alternatives[0];
    assert!(way.what.starts_with("Sign with AES-GMAC") && way.price.is_none(), "{way:?}");
    let saved = way.saved_ns_per_mib.unwrap();
    assert!((saved.value - 2.7e6).abs() < 1.0 && saved.low < saved.value);
    let parameter = Place::Samba { share: None, parameter: "server max protocol".to_owned() };
    assert_eq!(way.settings[0].place, parameter);
    let costly = &judged.findings[0];
    assert_eq!(costly.kind, FindingKind::Costly);
    assert!(costly.details.price.as_ref().unwrap().contains("changed messages"));
}

#[test]
fn the_search_needs_two_steps() {
    let (before, after) = (terms(&[]), terms(&baseline()));
    let facts = facts();
    let all = Assessment::new(side(&before), side(&after), Unset::Kept, Some(&facts));
    let judged = all.judge(&answers(all.questions()));
    let suspects = all.suspects(&judged.costs);
    let ids: Vec<_> = suspects.candidates.iter().map(|one| one.id.as_str()).collect();
    // Without the harmless ones, those without effect, and what is off today as well.
    assert_eq!(ids[0], "server-signing, server-dialect-most");
    assert!(ids.len() < 10 && ids.contains(&"strict-locking"), "{ids:?}");
    assert!(suspects.harmless >= 224 && suspects.by_hand.is_empty(), "{}", suspects.harmless);
    let mut state = State::new(suspects).unwrap();
    let Step::Try(change, Purpose::AllBack) = state.step() else { panic!() };
    let values: Vec<_> = change.undo.iter().map(|one| one.value.clone()).collect();
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(values[..2], [text("mandatory"), text("SMB2_10")]);
    assert_eq!(change.apply[0].place, change.undo[0].place);
    state.result(Speed::Fast).unwrap();
    // Only signing is in force, or with few others: it is found early.
    let is_slow = |state: &State| match state.step() {
        Step::Try(change, _) => !change.without.contains(&0),
        _ => false,
    };
    while state.causes().is_empty() {
        let speed = if is_slow(&state) { Speed::Slow } else { Speed::Fast };
        state.result(speed).unwrap();
    }
    assert!(state.tries.len() <= 5, "{}", state.tries.len());
    assert_eq!(state.causes()[0].members, [0]);
}

#[test]
fn the_client_side_of_a_server_costs_its_clients_nothing() {
    let key = r"SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters";
    let after = terms(&[reg(key, "RequireSecuritySignature", Value::Dword(1))]);
    let (before, facts) = (terms(&[]), facts());
    let of = |role, system| {
        let side = |terms| Side { terms, system, role };
        let all = Assessment::new(side(&before), side(&after), Unset::Kept, Some(&facts));
        let judged = all.judge(&answers(all.questions()));
        let suspects = all.suspects(&judged.costs).candidates.len();
        (judged.costs[0].outcome.clone(), suspects, judged.alternatives.len())
    };
    let system = Some(System::Windows2022);
    let (outcome, suspects, ways) = of(MachineRole::FileServer, system);
    let CostOutcome::Nothing { because } = outcome else { panic!("{outcome:?}") };
    assert!(because.contains("that this machine makes itself"), "{because}");
    assert_eq!((suspects, ways), (0, 0));
    let (outcome, suspects, _) = of(MachineRole::Both, system);
    assert!(!matches!(outcome, CostOutcome::Nothing { .. }), "{outcome:?}");
    assert_eq!(suspects, 1);
}

/// AES-GMAC exists since Windows Server 2022, the limits of dialects since 2025.
#[test]
fn ways_exist_on_the_version() {
    let after = [server("RequireSecuritySignature", 1), server("MaxSmb2Dialect", 770)];
    let (before, after, facts) = (terms(&[]), terms(&after), facts());
    let ways = |system| {
        let side = |terms| Side { terms, system: Some(system), role: MachineRole::FileServer };
        let all = Assessment::new(side(&before), side(&after), Unset::Kept, Some(&facts));
        let answers: Vec<_> = all.questions().iter().map(|_| Ok(numbers(1e6))).collect();
        let mut answers = answers;
        if let Some(last) = answers.last_mut() {
            *last = Ok(numbers(1e5));
        }
        let found = all.judge(&answers).alternatives;
        found.into_iter().filter(|one| one.what.contains("GMAC")).collect::<Vec<_>>()
    };
    assert_eq!(ways(System::Windows2016).len(), 0);
    assert_eq!(ways(System::Windows2022)[0].settings.len(), 0);
    assert_eq!(ways(System::Windows2025)[0].settings.len(), 1);
}

#[test]
fn what_switches_file_serving_off_says_so_first() {
    let driver = reg(r"SYSTEM\CurrentControlSet\Services\mrxsmb20", "Start", Value::Dword(4));
    let (before, after) = (terms(&[]), terms(&[server("RequireSecuritySignature", 1), driver]));
    let found = Assessment::new(side(&before), side(&after), Unset::Kept, None).judge(&[]).findings;
    assert_eq!(found[0].kind, FindingKind::SwitchedOff);
    assert!(
        found[0].what.contains("mrxsmb20\\Start = 4: it reaches no share"),
        "{}",
        found[0].what
    );
}

#[test]
fn settings_without_effect_and_hidden_ones_are_named() {
    let (before, after) = (terms(&[]), terms(&baseline()));
    let facts = facts();
    let all = Assessment::new(side(&before), side(&after), Unset::Kept, Some(&facts));
    let found = all.judge(&[]).findings;
    let of = |kind| found.iter().filter(move |one| one.kind == kind).collect::<Vec<_>>();
    let none: Vec<_> =
        of(FindingKind::NoEffect).iter().map(|one| one.details.key.id.as_str()).collect();
    assert_eq!(none, ["request-buffer", "server-signing-if-agreed"]);
    let hidden = of(FindingKind::Hidden);
    assert_eq!(hidden.len(), 2);
    assert!(hidden[1].what.contains(r"\\fs1\sysvol match: 100 of 1000"), "{hidden:?}");
    assert!(hidden[0].what.contains("No share of the recording matches"));
}

#[test]
fn inputs_that_disagree_are_listed_with_their_origins() {
    let with = |setting: Setting, file: &str, policy: Option<&str>| Setting {
        origin: Origin { file: file.to_owned(), position: 1, policy: policy.map(str::to_owned) },
        ..setting
    };
    let name = "RequireSecuritySignature";
    let first = [with(server(name, 0), "a/registry.pol", Some("Servers"))];
    let second = [with(server(name, 1), "b/GptTmpl.inf", Some("Hardening"))];
    let wire = Place::Wire { share: None, property: "SigningRequired".to_owned() };
    let seen = [Setting {
        place: wire,
        value: Value::Text("false".to_owned()),
        origin: Origin { file: "host".to_owned(), ..Origin::default() },
    }];
    let input = |name, settings| Input { name, layer: Layer::Policy, settings };
    let all = effective(&[input("one", &first), input("two", &second), input("host", &seen)]);
    let (nothing, after) = (terms(&[]), Terms::from_effective(all));
    let judged = Assessment::new(side(&nothing), side(&after), Unset::Kept, None).judge(&[]);
    let not_on = judged.findings.iter().find(|one| one.kind == FindingKind::NotOn).unwrap();
    assert!(not_on.what.ends_with("and the server shows 0."), "{}", not_on.what);
    assert_eq!(not_on.details.origins, ["Hardening (b/GptTmpl.inf)", "host"]);
    // What is really on counts.
    assert_eq!(judged.difference.changes[0].to.as_ref().unwrap().value, "0");
    let without = effective(&[input("one", &first), input("two", &second)]);
    let after = Terms::from_effective(without);
    let judged = Assessment::new(side(&nothing), side(&after), Unset::Kept, None).judge(&[]);
    let conflict = &judged.findings[0];
    assert_eq!(conflict.kind, FindingKind::Conflict);
    assert!(conflict.what.contains("Hardening sets 1"), "{}", conflict.what);
    assert_eq!(conflict.details.origins[0], "Servers (a/registry.pol)");
}

#[test]
fn weaker_settings_have_their_price() {
    let (before, after) = (terms(&[server("SMB1", 0)]), terms(&[server("SMB1", 1)]));
    let judged = Assessment::new(side(&before), side(&after), Unset::Kept, None).judge(&[]);
    assert_eq!(judged.findings[0].kind, FindingKind::Weaker);
    assert_eq!(judged.findings[0].details.price.as_deref(), Some("SMB 1 cannot be protected well"));
}

#[test]
fn encryption_of_the_server_has_cheaper_ways() {
    let (before, after) = (
        terms(&[]),
        terms(&[
            conf("server smb encrypt", "required"),
            conf("server smb3 encryption algorithms", "AES-256-CCM"),
        ]),
    );
    let facts = Facts { ntlm_logons: Some(50), rtt_ns: Some(2_000_000), ..facts() };
    let all = Assessment::new(side(&before), side(&after), Unset::Kept, Some(&facts));
    let changes: Vec<_> = all.questions().iter().map(|one| one.changes[0].clone()).collect();
    assert_eq!(
        changes,
        [
            "encryption=aes-256-ccm",
            "encryption=aes-256-gcm",
            "encryption=aes-128-gcm",
            "encryption=aes-256-ccm"
        ]
    );
    let numbers = [3e6, 1e6, 8e5, 2e4].map(|ns| Ok(numbers(ns)));
    let judged = all.judge(&numbers);
    let ways: Vec<_> =
        judged.alternatives.iter().map(|one| (one.what.as_str(), one.price.is_some())).collect();
    assert_eq!(ways.len(), 4, "{ways:?}");
    assert_eq!(ways[0], ("Encrypt the shares that need it instead of the whole server", true));
    assert_eq!(ways[1], ("Encrypt with aes-128-gcm", true));
    assert_eq!(ways[2], ("Encrypt with aes-256-gcm", false));
    assert!(ways[3].0.starts_with("Kerberos instead of NTLM: 50 recorded"));
    assert_eq!(judged.alternatives[3].saved_ns.unwrap().value, 1e8);
}
