//! The judgement of a baseline from hand-made settings and a replayed recording: 234 settings, signing by dialect 2.1 among
//! them.

use smbscope_analysis::predict::capacity::{Capacity, NoCapacity, Resource, Use};
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::crypto::{Calibration, Cost, Costs, Side as CostSide};
use smbscope_analysis::predict::forecast::RecordedForecast;
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{Baseline, Replay};
use smbscope_plan::baseline::bisect::{Purpose, State, Step};
use smbscope_plan::baseline::catalogue::System;
use smbscope_plan::baseline::cost::{Answer, Facts, Question, ShareFacts};
use smbscope_plan::baseline::difference::{Side, Unset};
use smbscope_plan::baseline::effective::{Input, Layer, effective};
use smbscope_plan::baseline::judgement::Assessment;
use smbscope_plan::baseline::roles::MachineRole;
use smbscope_plan::baseline::setting::{Origin, Place, Scope, Setting, Value};
use smbscope_plan::baseline::terms::Terms;
use smbscope_plan::script;
use smbscope_report::baseline::{BaselinePlan, SearchPlan, baseline_numbers};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use super::{HOSTILE, START};

const MS: i64 = 1_000_000;
const MIB: u64 = 1 << 20;
/// Reads of the recording, and Closes.
const READS: u64 = 400;

fn origin() -> Origin {
    Origin {
        file: "MSFT-WS2022.PolicyRules".to_owned(),
        position: 1,
        policy: Some("MSFT Windows Server 2022 - Member Server".to_owned()),
    }
}

fn reg(key: &str, name: &str, value: Value) -> Setting {
    let place =
        Place::Registry { scope: Scope::Computer, key: key.to_owned(), name: name.to_owned() };
    Setting { place, value, origin: origin() }
}

fn server(name: &str, value: u32) -> Setting {
    reg(r"SYSTEM\CurrentControlSet\Services\LanmanServer\Parameters", name, Value::Dword(value))
}

fn client(name: &str, value: u32) -> Setting {
    reg(
        r"SYSTEM\CurrentControlSet\Services\LanmanWorkstation\Parameters",
        name,
        Value::Dword(value),
    )
}

/// Settings of which eleven touch file serving.
pub fn settings() -> Vec<Setting> {
    let key = r"SOFTWARE\Policies\Microsoft\Windows\Harmless";
    let harmless = (0..217).map(|number| reg(key, &format!("Setting{number}"), Value::Dword(1)));
    let mut all: Vec<_> = harmless.collect();
    let paths = r"SOFTWARE\Policies\Microsoft\Windows\NetworkProvider\HardenedPaths";
    let demands = || Value::Text("RequireMutualAuthentication=1,RequireIntegrity=1".to_owned());
    all.extend([
        server("RequireSecuritySignature", 1),
        server("MaxSmb2Dialect", 528),
        server("EnableSecuritySignature", 1),
        server("SizReqBuf", 65_535),
        server("AutoDisconnect", 15),
        server("SMB1", 0),
        server("RestrictNullSessAccess", 1),
        client("RequireSecuritySignature", 1),
        client("EnableSecuritySignature", 1),
        client("EnablePlainTextPassword", 0),
        reg(paths, r"\\*\SYSVOL", demands()),
        reg(paths, r"\\*\NETLOGON", demands()),
        reg(r"SYSTEM\CurrentControlSet\Services\MrxSmb10", "Start", Value::Dword(4)),
        reg(
            r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters",
            "KeepAliveTime",
            Value::Dword(300_000),
        ),
        Setting {
            place: Place::Audit { subcategory: "Detailed File Share".to_owned() },
            value: Value::Text("Failure".to_owned()),
            origin: origin(),
        },
        reg(paths, HOSTILE, Value::Text("RequirePrivacy=1".to_owned())),
        reg(key, HOSTILE, Value::Text(HOSTILE.to_owned())),
    ]);
    all
}

fn terms(settings: &[Setting]) -> Terms {
    Terms::from_effective(effective(&[Input { name: "baseline", layer: Layer::Policy, settings }]))
}

/// What the recording shows.
pub fn facts() -> Facts {
    let share = |unc: &str, operations, moved_bytes| ShareFacts {
        unc: unc.to_owned(),
        operations,
        moved_bytes,
    };
    Facts {
        operations: READS + 40,
        dialect: Some(785),
        signing_algorithm: Some("aes-gmac".to_owned()),
        cipher: Some("aes-128-gcm".to_owned()),
        shares: vec![
            share(r"\\fs1.example.org\home", READS, READS * MIB),
            share(r"\\fs1.example.org\sysvol", 40, 0),
        ],
        ntlm_logons: Some(120),
        rtt_ns: Some(500_000),
        ..Facts::default()
    }
}

/// Costs of a machine: 0.9 ms for each MiB with HMAC-SHA256, and a tenth of it with AES-GMAC.
fn calibration() -> Calibration {
    let costs = |protection: &str, byte_ns: f64| {
        let cost = || Cost { message_ns: 2_000.0, byte_ns, longer: Vec::new() };
        let side = || CostSide { inbound: cost(), outbound: cost() };
        Costs { protection: protection.to_owned(), server: side(), client: side() }
    };
    Calibration {
        costs: vec![
            costs("hmac-sha256", 0.86),
            costs("aes-gmac", 0.086),
            costs("aes-128-gcm", 0.3),
        ],
        ..Calibration::default()
    }
}

/// Reads of a MiB that take 4 ms, and Closes.
fn batch() -> arrow::array::RecordBatch {
    let mut builder = OperationBuilder::new(None).unwrap();
    for number in 0..READS + 40 {
        let names = &mut builder.names;
        let at = START + number as i64 * 10 * MS;
        let mut row = Operation::default();
        row.set_recording(names.recording.intern("run"));
        row.set_operation(number);
        row.set_connection(1);
        row.set_session_id(7);
        row.set_protocol(2);
        row.set_status(0);
        row.set_handle(number / 11);
        let is_read = number % 11 != 10;
        row.set_command(code::command(2, if is_read { 8 } else { 6 }));
        if is_read {
            row.set_transferred_bytes(MIB);
            row.set_response_wire_bytes(MIB + 84);
        }
        row.set_request_wire_bytes(120);
        row.set_signed(false);
        row.set_encrypted(false);
        row.set_request_start(at);
        row.set_request_end(at);
        row.set_response_start(at + 4 * MS);
        row.set_response_end(at + 4 * MS);
        row.derive_durations();
        builder.append(&[row]);
    }
    builder.finish().unwrap()
}

fn capacity(users: f64) -> Capacity {
    let used = Use { idle: None, each: 0.01, more: 0.0 };
    let resource = Resource {
        name: "processors".to_owned(),
        servers: 4,
        utilization: 0.5,
        demand_s: 0.04,
        wait_s: None,
        used,
        users,
        users_error: 0.1 * users,
    };
    Capacity {
        users_recorded: 50.0,
        window: (0, 1),
        rate: 1.0,
        resources: vec![resource],
        steps: 1,
        clients_beside: false,
        notes: Vec::new(),
    }
}

/// A replay with the changes, as `pipeline::forecast` makes it.
pub fn answer(question: &Question) -> Answer {
    let changes: Result<Vec<Change>, _> = question.changes.iter().map(|one| one.parse()).collect();
    let changes = changes?;
    let mut plan = Plan { calibration: Some(calibration()), ..Plan::default() };
    changes.iter().for_each(|change| change.plan(&mut plan));
    let mut replay = Replay::new(plan, Baseline::default());
    replay.connections(&[Connection {
        recording: "run".into(),
        connection: 1,
        vantage: Some("client".into()),
        server_rtt_ns: Some(MS / 5),
        ..Connection::default()
    }]);
    replay.operations(&batch()).unwrap();
    let is_all = question.shares.is_empty();
    let users = |of: f64| if is_all { Ok(capacity(of)) } else { Err(NoCapacity::NoSteps) };
    let after = if question.changes[0] == "signing=aes-gmac" { 98.0 } else { 82.0 };
    let forecast = RecordedForecast {
        changes,
        prediction: replay.finish(),
        users_s: None,
        capacity: users(100.0),
        changed_capacity: users(after).ok(),
        notes: Vec::new(),
        warnings: Vec::new(),
    };
    Ok(baseline_numbers(&forecast, facts().moved_bytes(question)))
}

/// The judgement; always the same. With the search if it is slow already.
pub fn plan(is_slow: bool) -> BaselinePlan {
    let current = [server("SMB1", 1), server("AutoDisconnect", 15)];
    let (before, proposed) = (terms(&current), terms(&settings()));
    let facts = facts();
    let side = |terms| Side { terms, system: Some(System::Windows2022), role: MachineRole::Both };
    let assessment = Assessment::new(side(&before), side(&proposed), Unset::Kept, Some(&facts));
    let answers: Vec<_> = assessment.questions().iter().map(answer).collect();
    let judgement = assessment.judge(&answers);
    let state = State::new(assessment.suspects(&judgement.costs)).unwrap();
    let (tries_most, tries_expected) = state.tries_left();
    assert!(matches!(state.step(), Step::Try(_, Purpose::AllBack)));
    BaselinePlan {
        version: "0.0.0".to_owned(),
        inputs: vec!["MSFT-WS2022.PolicyRules".to_owned()],
        against: vec!["current.zip".to_owned()],
        recording: Some("monday".to_owned()),
        calibration: Some("crypto.json".to_owned()),
        judgement,
        unread: vec![format!("MSFT-WS2022.PolicyRules, line 9: {HOSTILE} is not a setting")],
        commands: vec![script::Step {
            does: "Let both sides negotiate SMB 3.1.1".to_owned(),
            apply: vec![
                "Set-SmbServerConfiguration -Smb2DialectMax SMB311 -Confirm:$false".to_owned(),
            ],
            undo: vec![
                "Set-SmbServerConfiguration -Smb2DialectMax SMB210 -Confirm:$false".to_owned(),
            ],
            ..script::Step::default()
        }],
        search: is_slow.then(|| SearchPlan {
            sentences: vec![
                "Measure the network without SMB: smbscope net listen and smbscope net send."
                    .to_owned(),
            ],
            tries_most: tries_most as u64,
            tries_expected,
            ..SearchPlan::default()
        }),
        ..BaselinePlan::default()
    }
}
