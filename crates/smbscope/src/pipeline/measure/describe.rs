//! The description of a run in its folder: the request, and the machine that it ran on.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use smbscope_client::{Compounds, Host};
use smbscope_load::workload::BUILT_IN;
use smbscope_tables::description::{CLOSED, OPEN, RunDescription, Setting};

use super::counters::without_logon;
use super::run::RunPlan;
use crate::clock_sync::synchronised;

/// What the manifest says of the request and what nothing else needs.
pub struct About {
    /// The workload as it was given: the name of a built-in one, or a file.
    pub workload: String,
    /// Its text.
    pub workload_text: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Factor for the size of the file set.
    pub scale: f64,
    /// Pattern of the users' names, if there is one.
    pub user_names: Option<String>,
    /// The emulated link of a lab.
    pub line: Option<String>,
}

/// Everything that is known before the run.
pub fn describe(plan: &RunPlan, host: &Host) -> RunDescription {
    let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let About { workload, workload_text, seed, scale, user_names, line } = &plan.about;
    let digest = digest(workload_text);
    let built_in = BUILT_IN.iter().any(|(name, _)| name == workload);
    let setting = |name: &str, value: String| Setting { name: name.to_owned(), value };
    let mut settings = Vec::new();
    if host.config.durable {
        settings.push(setting("durable", "on".to_owned()));
    }
    if !host.config.leases {
        settings.push(setting("leases", "off".to_owned()));
    }
    match host.config.compounds {
        Compounds::All => {}
        Compounds::Opening => settings.push(setting("compounds", "create".to_owned())),
        Compounds::Off => settings.push(setting("compounds", "off".to_owned())),
    }
    if let Some(kerberos) = &host.config.kerberos {
        let secret = if kerberos.keytab.is_some() { "keytab" } else { "password" };
        settings.push(setting("auth", format!("kerberos, {secret}")));
    }
    let closed = plan.pace.closed;
    let per_hour = plan.planner.workload().runs_per_hour();
    let mut description = RunDescription {
        workload: plan.planner.workload().name.clone(),
        workload_digest: digest,
        workload_text: (!built_in).then(|| workload_text.clone()),
        seed: *seed,
        scale: *scale,
        user_names: user_names.clone(),
        line: line.clone(),
        shard: plan.shard.index,
        shards: plan.shard.count,
        server: host.target.host.clone(),
        server_port: u64::from(host.target.port),
        share: host.target.share.clone(),
        channels: u64::from(host.config.channels),
        client_cache: plan.cache.name().to_owned(),
        settings,
        pacing: if closed { CLOSED } else { OPEN }.to_owned(),
        scenarios_per_user_hour: (!closed).then_some(per_hour),
        ramp_users_per_second: Some(plan.pace.ramp_per_second),
        warm_up_ns: nanoseconds(plan.pace.warm_up),
        measured_ns: nanoseconds(plan.duration),
        cool_down_ns: nanoseconds(plan.pace.cool_down),
        overload_limit_percent: Some(smbscope_load::capacity::Rule::new(1).limit_percent),
        max_response: plan.limits.iter().map(ToString::to_string).collect(),
        start_at_ns: plan.start_at,
        emulated_rtt_ns: (!host.config.delay.is_zero()).then(|| nanoseconds(host.config.delay)),
        smbscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: std::env::args().map(|word| without_logon(&word)).collect(),
        ..RunDescription::default()
    };
    machine(&mut description);
    description
}

/// SHA-256 of a workload's text.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The properties of this machine.
pub fn machine(description: &mut RunDescription) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    description.hostname = read("/proc/sys/kernel/hostname").trim().to_owned();
    description.kernel =
        format!("{} {}", std::env::consts::OS, read("/proc/sys/kernel/osrelease").trim());
    description.cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    description.cpu_model = field(&read("/proc/cpuinfo"), "model name");
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kib = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    description.memory_bytes = kib.map(|kib| kib * 1024);
    let synchronised = synchronised();
    description.clock_synchronised = synchronised.map(|state| state.synchronised);
    description.clock_error_ns = synchronised.and_then(|state| state.error_ns);
}
