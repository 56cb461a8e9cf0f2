//! The description of a run in its folder: the request, and the machine that it ran on.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use smbscope_client::Host;
use smbscope_load::workload::Planner;
use smbscope_tables::description::{CLOSED, OPEN, RunDescription, Setting};

use super::args::Run;
use crate::clock_sync::synchronised;
use crate::pipeline::measure::counters::without_logon;

/// Everything that is known before the run.
pub fn describe(args: &Run, host: &Host, planner: &Planner, text: &str) -> RunDescription {
    let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let built_in =
        smbscope_load::workload::BUILT_IN.iter().any(|(name, _)| *name == args.what.workload);
    let setting = |name: &str, value: String| Setting { name: name.to_owned(), value };
    let mut settings = Vec::new();
    if host.config.durable {
        settings.push(setting("durable", "on".to_owned()));
    }
    if !host.config.leases {
        settings.push(setting("leases", "off".to_owned()));
    }
    if let Some(kerberos) = &host.config.kerberos {
        let secret = if kerberos.keytab.is_some() { "keytab" } else { "password" };
        settings.push(setting("auth", format!("kerberos, {secret}")));
    }
    let per_hour = planner.workload().runs_per_hour();
    let mut description = RunDescription {
        workload: planner.workload().name.clone(),
        workload_digest: digest,
        workload_text: (!built_in).then(|| text.to_owned()),
        seed: args.what.seed,
        scale: args.what.scale,
        user_names: args.place.logon.users_file.is_none().then(|| args.place.logon.user.clone()),
        shard: args.course.shard.index,
        shards: args.course.shard.count,
        server: host.target.host.clone(),
        server_port: u64::from(host.target.port),
        share: host.target.share.clone(),
        channels: u64::from(host.config.channels),
        client_cache: args.client.client_cache.name().to_owned(),
        settings,
        pacing: if args.course.closed { CLOSED } else { OPEN }.to_owned(),
        scenarios_per_user_hour: (!args.course.closed).then_some(per_hour),
        ramp_users_per_second: Some(args.course.ramp),
        warm_up_ns: nanoseconds(args.course.warm_up),
        measured_ns: nanoseconds(args.course.duration),
        cool_down_ns: match args.search.find_capacity {
            true => 0,
            false => nanoseconds(args.course.cool_down),
        },
        overload_limit_percent: Some(smbscope_load::capacity::Rule::new(1).limit_percent),
        start_at_ns: args.course.start_at,
        emulated_rtt_ns: (!host.config.delay.is_zero()).then(|| nanoseconds(host.config.delay)),
        smbscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: std::env::args().map(|word| without_logon(&word)).collect(),
        ..RunDescription::default()
    };
    machine(&mut description);
    description
}

/// The properties of this machine.
fn machine(description: &mut RunDescription) {
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
