//! Where and how urgently this program runs: `--cpus` and `--priority`.

#[cfg(feature = "probe")]
use std::collections::BTreeSet;

use super::args::{Listen, Priority};
#[cfg(target_os = "linux")]
use crate::exit::Failure;
use crate::options::Verbosity;

/// Niceness of this program, so that the server runs first.
const NICE: i32 = 5;
/// Niceness while it records CPUs, which may be overloaded.
const NICE_PROCESSORS: i32 = -10;

impl Listen {
    /// Chooses CPUs and priority. A server comes first; but where CPUs are recorded, this
    /// program must run although they are busy.
    pub fn schedule(&self, records_processors: bool, verbosity: Verbosity) -> anyhow::Result<()> {
        let default = if records_processors { NICE_PROCESSORS } else { NICE };
        match self.priority {
            // Without the permission it runs at normal priority.
            None => drop(set_priority(Priority::Nice(default))),
            Some(priority) => set_priority(priority)?,
        }
        #[cfg(target_os = "linux")]
        if !self.cpus.is_empty() {
            let asked = self.cpus.iter().flat_map(|cpus| cpus.0.clone());
            return pin(asked).map_err(|error| {
                Failure::usage(format!("--cpus: {error}: does this machine have these CPUs?"))
            });
        }
        #[cfg(feature = "probe")]
        if records_processors {
            leave_busy_processors(verbosity);
        }
        #[cfg(not(feature = "probe"))]
        let _ = verbosity;
        Ok(())
    }
}

/// Runs on CPUs that interrupts of devices leave alone.
#[cfg(feature = "probe")]
fn leave_busy_processors(verbosity: Verbosity) {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return };
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    let allowed: BTreeSet<u32> =
        all.filter(|&cpu| set.is_set(cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    let choice = smbscope_trace::record::quiet::choose(&allowed);
    if choice.cpus.is_empty() {
        return verbosity.say(&format!("smbscope runs on any CPU: {}", choice.reason));
    }
    match pin(choice.cpus.iter().map(|&cpu| cpu as usize)) {
        Ok(()) => {
            let cpus: Vec<String> = choice.cpus.iter().map(u32::to_string).collect();
            let cpus = cpus.join(",");
            verbosity.say(&format!("smbscope runs on CPU {cpus} only (--cpus): {}", choice.reason));
        }
        Err(error) => verbosity.say(&format!("smbscope runs on any CPU: {error}")),
    }
}

#[cfg(target_os = "linux")]
fn pin(cpus: impl Iterator<Item = usize>) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    cpus.take_while(|&cpu| cpu < rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Threads that are started later inherit it.
fn set_priority(priority: Priority) -> anyhow::Result<()> {
    match priority {
        #[cfg(unix)]
        Priority::Nice(nice) => rustix::process::setpriority_process(None, nice)
            .map_err(|error| anyhow::anyhow!("--priority {nice}: {error}: this needs root")),
        #[cfg(feature = "probe")]
        Priority::Fifo(fifo) => smbscope_trace::record::system::run_first(fifo)
            .map_err(|error| anyhow::anyhow!("--priority fifo:{fifo}: {error}: this needs root")),
        #[allow(unreachable_patterns)]
        _ => Err(crate::exit::Failure::usage("--priority: not in this build of smbscope")),
    }
}
