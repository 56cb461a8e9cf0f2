//! A synthetic capacity search of two machines, for tests and for viewing: a server that supports some
//! 120 users, stalls once for two seconds, and gets slower the more users there are.

use smbscope_analysis::summary::{Options, Report, Summary};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::description::{Capacity, RunDescription, Setting};
use smbscope_tables::operation::Operation;
use smbscope_tables::run::{
    COOL_DOWN, Counter, DONE, FAILED, LOAD_FORMAT, MEASURED, NOT_STARTED, Scenario, Step, WARM_UP,
};
use smbscope_tables::tables::Coverage;

use super::{HOSTILE, Random, START};

const SECOND: i64 = 1_000_000_000;
/// Number of users, and whether the step is overloaded.
const STEPS: [u64; 6] = [50, 100, 200, 150, 125, 125];
const NAMES: [(&str, u64); 6] = [
    ("ExplorerNavigate", 30),
    ("ExplorerSelect", 40),
    ("WordFileOpen", 12),
    ("WordEditAndSave", 9),
    ("CmdLineFileUpload", 6),
    ("ExplorerFileDelete", 3),
];
const SHARDS: u64 = 2;

/// Seconds of a step with its warm-up and cool-down.
const STEP_SECONDS: i64 = 60;
const WARM_UP_SECONDS: i64 = 10;
const COOL_DOWN_SECONDS: i64 = 3;

/// One machine's description of its part.
pub fn description(shard: u64) -> RunDescription {
    let mut run = RunDescription {
        recording: format!("load-{shard}of{SHARDS}"),
        workload: "homefolder".into(),
        workload_digest: "5f1a".repeat(16),
        seed: 1,
        scale: 0.05,
        users_from: shard,
        users_to: 198 + shard,
        users_every: SHARDS,
        users_total: 200,
        user_names: Some("user{:05}".into()),
        shard,
        shards: SHARDS,
        server: "fs1.example.com".into(),
        server_port: 445,
        share: "homes".into(),
        dialect: Some("3.1.1".into()),
        signing: Some("AES-128-GMAC".into()),
        encryption: Some("off".into()),
        channels: 1,
        client_cache: "published".into(),
        settings: vec![Setting { name: "durable handles".into(), value: "on".into() }],
        pacing: "open".into(),
        scenarios_per_user_hour: Some(331.0),
        ramp_users_per_second: Some(10.0),
        warm_up_ns: WARM_UP_SECONDS * SECOND,
        measured_ns: (STEP_SECONDS - WARM_UP_SECONDS - COOL_DOWN_SECONDS) * SECOND,
        cool_down_ns: COOL_DOWN_SECONDS * SECOND,
        overload_limit_percent: Some(2.0),
        start_at_ns: Some(START),
        start_ns: START + shard as i64 * 40_000_000,
        end_ns: Some(START + STEPS.len() as i64 * STEP_SECONDS * SECOND),
        emulated_rtt_ns: Some(4_000_000),
        counter_sources: vec!["/proc".into(), "http://fs1.example.com:9100/metrics".into()],
        counters_missed: shard - 1,
        capacity: Some(Capacity {
            users: Some(125),
            low: Some(118),
            high: Some(141),
            confidence: Some(0.95),
            reason: "The server carries 125 users without overload; 150 users are too many.".into(),
        }),
        hostname: format!("client{shard}"),
        kernel: "Linux 6.1.0".into(),
        cpus: 8,
        cpu_model: Some("Example 3000".into()),
        memory_bytes: Some(16 << 30),
        smbscope_version: "0.0.0".into(),
        command_line: ["smbscope", "load", "//fs1.example.com/homes", "--find-capacity"]
            .map(String::from)
            .to_vec(),
        clock_synchronised: Some(true),
        clock_error_ns: Some(2_000_000),
        server_clock_ahead_ns: Some(shard as i64 * 1_300_000_000),
        server_clock_error_ns: Some(15_000_000),
        ..RunDescription::default()
    };
    run.identify();
    run
}

/// The summary of the complete search; always the same.
pub fn report(options: Options) -> Report {
    let mut summary = Summary::new(options);
    (1..=SHARDS).for_each(|shard| summary.run(&description(shard), true));
    let mut random = Random(11);
    for shard in 1..=SHARDS {
        let machine = Machine { run: description(shard), shard };
        machine.add(&mut summary, &mut random);
    }
    summary.finish()
}

/// A report of one machine that ran one load.
pub fn single() -> Report {
    let mut summary = Summary::new(Options::default());
    let run = RunDescription {
        shards: 1,
        capacity: None,
        scale: 1.0,
        emulated_rtt_ns: None,
        line: Some("20 ms, 45 Mbit/s, 0.1 % loss (smbscope wan)".into()),
        ..description(1)
    };
    summary.run(&run, false);
    let machine = Machine { run, shard: 1 };
    let mut random = Random(5);
    machine.step(&mut summary, &mut random, 1, &mut 0);
    summary.finish()
}

struct Machine {
    run: RunDescription,
    shard: u64,
}

impl Machine {
    fn add(&self, summary: &mut Summary, random: &mut Random) {
        let mut scenario_run = 0;
        for number in 1..=STEPS.len() {
            self.step(summary, random, number, &mut scenario_run);
        }
        summary.coverage(&Coverage {
            recording: self.run.recording.clone(),
            format: LOAD_FORMAT.into(),
            start: Some(START),
            end: self.run.end_ns,
            connections: 100,
            operations: scenario_run * 4,
            ..Coverage::default()
        });
    }

    fn step(
        &self,
        summary: &mut Summary,
        random: &mut Random,
        number: usize,
        scenario_run: &mut u64,
    ) {
        let users = STEPS[number - 1];
        let here = users.div_ceil(SHARDS);
        let begin = START + (number as i64 - 1) * STEP_SECONDS * SECOND;
        let window =
            (begin + WARM_UP_SECONDS * SECOND, begin + (STEP_SECONDS - COOL_DOWN_SECONDS) * SECOND);
        let mut rows = Vec::new();
        let mut builder = OperationBuilder::new(None).unwrap();
        for turn in 0..here * STEP_SECONDS as u64 * 331 / 3600 {
            *scenario_run += 1;
            let at = begin + random.below(STEP_SECONDS as u64 * 1000) as i64 * 1_000_000;
            let user = turn % here + 1;
            let row = self.scenario(random, *scenario_run, number, user, at, window);
            self.operations(random, &mut builder, &row);
            rows.push(row);
        }
        self.logons(&mut builder, begin, here);
        summary.steps(&[self.totals(number, users, here, window, &rows)]);
        summary.scenarios(&rows);
        summary.counters(&self.counters(random, number, begin));
        summary.operations(&builder.finish().unwrap()).unwrap();
    }

    fn scenario(
        &self,
        random: &mut Random,
        scenario_run: u64,
        step: usize,
        user: u64,
        at: i64,
        window: (i64, i64),
    ) -> Scenario {
        let users = STEPS[step - 1];
        let mut pick = random.below(100);
        let mut name = NAMES[0].0;
        for (of, weight) in NAMES {
            name = of;
            if pick < weight {
                break;
            }
            pick -= weight;
        }
        let busy = 1.0 / (1.0 - (users as f64 / 160.0).min(0.95));
        let spent = (20.0 + random.below(120) as f64) * busy * 1e6 * name.len() as f64 / 14.0;
        let over = (users as f64 - 130.0).max(0.0) / 130.0;
        let stall = (40..42).contains(&((at - START) / SECOND));
        let late = (at - (window.0 - 10 * SECOND)) as f64 * over
            + if stall { 1.5e9 } else { 0.0 }
            + random.below(3_000_000) as f64;
        let failed = random.below(400) == 0 || users == 200 && random.below(60) == 0;
        let dropped = users == 200 && random.below(90) == 0;
        let started = (!dropped).then_some(at + late as i64);
        Scenario {
            recording: self.run.recording.clone(),
            scenario_run,
            step: step as u64,
            user_number: self.shard * 100 - 100 + user,
            user: Some(format!("user{user:05}")),
            connection: Some(user),
            scenario: name.into(),
            phase: match at {
                at if at < window.0 => WARM_UP,
                at if at < window.1 => MEASURED,
                _ => COOL_DOWN,
            }
            .into(),
            scheduled_at: at,
            started_at: started,
            ended_at: started.map(|at| at + spent as i64),
            late_ns: started.map(|_| late as i64),
            response_ns: started.map(|_| (late + spent) as i64),
            operations: if dropped { 0 } else { 4 },
            saved: u64::from(name.starts_with("Word")),
            errors: failed.into(),
            outcome: match (dropped, failed) {
                (true, _) => NOT_STARTED,
                (_, true) => FAILED,
                _ => DONE,
            }
            .into(),
            status_name: (failed && !dropped).then(|| match scenario_run % 3 {
                0 => "STATUS_SHARING_VIOLATION".into(),
                1 => "connection reset".into(),
                _ => HOSTILE.into(),
            }),
        }
    }

    fn operations(&self, random: &mut Random, builder: &mut OperationBuilder, of: &Scenario) {
        let (Some(started), Some(ended)) = (of.started_at, of.ended_at) else { return };
        for (place, command) in [5u16, 16, 8, 6].into_iter().enumerate() {
            let slot = (ended - started) / 4;
            let at = started + slot * place as i64;
            let spent = slot / 2 + random.below(slot as u64 / 3 + 1) as i64;
            let mut row = self.row(builder, at, spent, command, of.connection.unwrap_or(0));
            row.set_operation(of.scenario_run * 4 + place as u64);
            row.set_scenario_run(of.scenario_run);
            row.set_share(builder.names.share.intern("\\\\fs1\\homes"));
            row.set_path(builder.names.path.intern(&format!("{}\\notes.docx", of.user_number)));
            let status = if of.errors > 0 && place == 0 { 0xc000_0043 } else { 0 };
            row.set_status(status);
            row.set_status_name(code::status_name(status));
            if command == 8 {
                row.set_requested_bytes(65_536);
                row.set_transferred_bytes(65_536);
            }
            builder.append(&[row]);
        }
    }

    /// Logons, some of them refused, belong to no scenario.
    fn logons(&self, builder: &mut OperationBuilder, begin: i64, here: u64) {
        for user in 0..here {
            let mut row = self.row(builder, begin + user as i64 * 50_000_000, 9_000_000, 1, user);
            row.set_operation((1 << 40) + user);
            let status = if user % 40 == 7 { 0xc000_006d } else { 0 };
            row.set_status(status);
            row.set_status_name(code::status_name(status));
            builder.append(&[row]);
        }
    }

    fn row(
        &self,
        builder: &mut OperationBuilder,
        at: i64,
        spent: i64,
        command: u16,
        connection: u64,
    ) -> Operation {
        let mut row = Operation::default();
        row.set_recording(builder.names.recording.intern(&self.run.recording));
        row.set_connection(connection);
        row.set_client(builder.names.client.intern(&format!("10.0.1.{}", self.shard)));
        row.set_server(builder.names.server.intern("10.0.0.1"));
        row.set_user(builder.names.user.intern(&format!("user{:05}", connection + 1)));
        row.set_dialect(0x311);
        row.set_protocol(2);
        row.set_command(code::command(2, command));
        row.set_message_id(at as u64 % 1000);
        row.set_request_wire_bytes(180);
        row.set_response_wire_bytes(260);
        row.set_outstanding(0);
        row.set_request_start(at);
        row.set_request_end(at + 1_000);
        row.set_response_start(at + spent - 1_000);
        row.set_response_end(at + spent);
        row.derive_durations();
        row.set_busy_ns(spent);
        row.set_waits(false);
        row
    }

    fn totals(
        &self,
        number: usize,
        users: u64,
        here: u64,
        window: (i64, i64),
        rows: &[Scenario],
    ) -> Step {
        let count = |of: &dyn Fn(&Scenario) -> bool| {
            rows.iter().filter(|row| row.phase == MEASURED && of(row)).count() as u64
        };
        let ended = rows
            .iter()
            .filter(|row| row.ended_at.is_some_and(|at| at < window.1 && at >= window.0));
        let behind = if users > 130 { here * (users - 130) / 130 } else { 0 };
        let percent = 100.0 * behind as f64 / here as f64;
        Step {
            recording: self.run.recording.clone(),
            run: self.run.run.clone(),
            step: number as u64,
            users,
            users_here: here,
            rate: here as f64 * 331.0 / 3600.0,
            start: window.0 + self.shard as i64 * 40_000_000,
            end: window.1,
            scheduled: count(&|_| true),
            started: count(&|row| row.started_at.is_some()),
            on_time: count(&|row| row.late_ns.is_some_and(|late| late < 10 * SECOND)),
            completed: ended.count() as u64,
            failed: count(&|row| row.outcome == FAILED),
            users_overloaded: behind,
            overload_percent: percent,
            client_cpu_percent: Some(users as f64 / 8.0),
            client_late_ns: Some(300_000 * number as i64),
            overloaded: percent > 2.0,
            ended_early: users == 200,
            ..Step::default()
        }
    }

    fn counters(&self, random: &mut Random, number: usize, begin: i64) -> Vec<Counter> {
        let users = STEPS[number - 1] as f64;
        let mut rows = Vec::new();
        for second in 0..STEP_SECONDS {
            let mut add = |source: &str, name: &str, instance: Option<&str>, unit: &str, value| {
                rows.push(Counter {
                    recording: self.run.recording.clone(),
                    time: begin + second * SECOND,
                    source: source.into(),
                    name: name.into(),
                    instance: instance.map(String::from),
                    unit: unit.into(),
                    value,
                });
            };
            let noise = random.below(100) as f64 / 20.0;
            add("client", "cpu_percent", None, "%", users / 8.0 + noise);
            // Only the first machine reads the server's; the endpoint fails for a while.
            if self.shard > 1 || (100..110).contains(&(second + number as i64 * 50)) {
                continue;
            }
            add("server", "cpu_percent", None, "%", (users / 1.7 + noise).min(99.0));
            add("server", "cpu_percent", Some("cpu0"), "%", (users / 1.5 + noise).min(99.0));
            add("server", "cpu_user_percent", None, "%", (users / 4.0 + noise).min(99.0));
            for (place, disk) in ["sda", "sdb", "sdc", "sdd", "sde", "sdf"].iter().enumerate() {
                let part = (users / 3.0 / (place + 1) as f64 + noise).min(100.0);
                add("server", "disk_busy_percent", Some(disk), "%", part);
            }
            add("server", "network_receive_bytes_per_second", Some("eth0"), "bytes/s", users * 9e4);
            add(
                "server",
                "network_transmit_bytes_per_second",
                Some("eth0"),
                "bytes/s",
                users * 4e5,
            );
            add("server", "disk_read_ns", Some("sda"), "ns", 1e6 * (1.0 + noise));
            add("metrics", "smb_wait", Some("lock"), "s", 0.001 * (1.0 + noise));
            add("metrics", "smb_open_files", None, "files", (users * 3.0).round());
        }
        rows
    }
}
