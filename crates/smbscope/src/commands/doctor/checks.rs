//! The checks. Each looks at one thing, changes nothing, and takes no longer than a moment.

use std::time::{SystemTime, UNIX_EPOCH};

use smbscope_report::format::bytes;
use smbscope_tables::SCHEMA_VERSION;

use super::Check;
use crate::clock_sync::synchronised;
use crate::settings;
use crate::subprocess::{answer_of, program};
use crate::terminal;

/// A query may hold 96 MiB, decoding about as much.
const MEMORY_NEEDED: u64 = 256 << 20;
/// A dataset takes about a tenth of the capture; this is that of a capture of 10 GB.
const TEMPORARY_WANTED: u64 = 1 << 30;
/// 2024-01-01: earlier than every release of smbscope.
const CLOCK_MIN_S: u64 = 1_704_067_200;
/// Bit of CAP_NET_RAW (linux/capability.h).
const CAP_NET_RAW: u64 = 1 << 13;

/// All checks in the order in which they are shown.
pub(super) fn all() -> Vec<Check> {
    let mut all = vec![
        version(),
        settings(),
        terminal(),
        threads(),
        memory(),
        temporary(),
        clock(),
        clock_source(),
        tshark(),
        recorder(),
        rights(),
    ];
    all.extend(probe());
    all
}

/// What `smbscope record` needs to look into Samba.
#[cfg(feature = "probe")]
fn probe() -> Vec<Check> {
    let check = |fact: smbscope_samba::check::Fact| match fact.remedy {
        Some(remedy) => Check::warn(fact.what, fact.found, remedy),
        None => Check::ok(fact.what, fact.found),
    };
    smbscope_samba::check::facts().into_iter().map(check).collect()
}

#[cfg(not(feature = "probe"))]
fn probe() -> Vec<Check> {
    let remedy = "Build it with clang and libelf: cargo build --release --features smbscope/probe.";
    vec![Check::warn("probe", "not in this build", remedy)]
}

fn version() -> Check {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let found = format!("{}, schema {SCHEMA_VERSION}, {os} {arch}", env!("CARGO_PKG_VERSION"));
    match os {
        "linux" => Check::ok("version", found),
        _ => Check::warn(
            "version",
            found,
            "smbscope is tested on Linux: please report what differs here.",
        ),
    }
}

/// What smbscope.toml says.
fn settings() -> Check {
    const REMEDY: &str =
        "Correct the file (docs/guide/settings.md); other commands end with this error.";
    if let Err(error) = settings::load() {
        let error = format!("{error:#}");
        let lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
        return Check::warn("settings", lines.collect::<Vec<_>>().join("; "), REMEDY);
    }
    let settings = settings::get();
    if let Some(refused) = settings.refused.first() {
        return Check::warn(
            "settings",
            format!("not read: {refused}"),
            "Let only its owner write it (chmod go-w).",
        );
    }
    let files: Vec<_> = settings.files.iter().map(|path| path.display().to_string()).collect();
    match files.as_slice() {
        [] => Check::ok("settings", "no smbscope.toml"),
        files => Check::ok("settings", format!("{}: {}", files.join(", "), settings.summary())),
    }
}

fn terminal() -> Check {
    let found = match terminal::width() {
        Some(width) => format!("{width} columns"),
        None => "output goes to a file or a pipe: no colour, no width".to_owned(),
    };
    let progress = if terminal::stderr_is_terminal() { "progress is shown" } else { "no progress" };
    Check::ok("terminal", format!("{found}; {progress}"))
}

fn threads() -> Check {
    match std::thread::available_parallelism() {
        Ok(threads) => Check::ok("threads", format!("{threads} for decoding (--threads)")),
        Err(error) => Check::warn("threads", error.to_string(), "Say how many with --threads."),
    }
}

fn memory() -> Check {
    let Some(available) = meminfo("MemAvailable:") else {
        return Check::ok("memory", "not known on this system");
    };
    let found = format!("{} available", bytes(available));
    if available < MEMORY_NEEDED {
        let remedy = format!("Free some: smbscope may need {}.", bytes(MEMORY_NEEDED));
        return Check::warn("memory", found, remedy);
    }
    Check::ok("memory", found)
}

/// A line of /proc/meminfo (proc(5)) in bytes.
fn meminfo(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

fn temporary() -> Check {
    let dir = std::env::temp_dir();
    let remedy = "Set TMPDIR to a folder that can be written; streams and large queries need it.";
    if let Err(error) = tempfile::tempfile_in(&dir) {
        return Check::missing("temporary", format!("{}: {error}", dir.display()), remedy);
    }
    match free_bytes(&dir) {
        Some(free) if free < TEMPORARY_WANTED => {
            let found = format!("{}: {} free", dir.display(), bytes(free));
            let remedy =
                format!("Set TMPDIR to a folder with more than {}.", bytes(TEMPORARY_WANTED));
            Check::warn("temporary", found, remedy)
        }
        Some(free) => Check::ok("temporary", format!("{}: {} free", dir.display(), bytes(free))),
        None => Check::ok("temporary", dir.display().to_string()),
    }
}

#[cfg(unix)]
fn free_bytes(dir: &std::path::Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_dir: &std::path::Path) -> Option<u64> {
    None
}

fn clock() -> Check {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let now = smbscope_report::format::time(
        i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000),
    );
    if seconds < CLOCK_MIN_S {
        return Check::warn("clock", now, "Set the clock: captures taken here get its time.");
    }
    match synchronised().map(|state| state.synchronised) {
        Some(false) => Check::warn(
            "clock",
            format!("{now}, not synchronized"),
            "Run an NTP client (chrony, systemd-timesyncd), so that captures of two machines can be compared.",
        ),
        Some(true) => Check::ok("clock", format!("{now}, synchronized")),
        None => Check::ok("clock", now),
    }
}

fn clock_source() -> Check {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Ok(source) = std::fs::read_to_string(path) else {
        return Check::ok("clock source", "not known on this system");
    };
    let source = source.trim().to_owned();
    match source.as_str() {
        "hpet" | "acpi_pm" | "jiffies" => Check::warn(
            "clock source",
            source,
            "Captures taken here have coarse or slow time stamps: see why the kernel gave up the tsc (dmesg).",
        ),
        _ => Check::ok("clock source", source),
    }
}

fn tshark() -> Check {
    match answer_of("tshark", &["--version"]) {
        Some(text) => Check::ok("tshark", text.lines().next().unwrap_or_default().to_owned()),
        None => Check::warn(
            "tshark",
            "not found",
            "Only the comparison with Wireshark needs it: install the package tshark.",
        ),
    }
}

fn recorder() -> Check {
    let found: Vec<_> = ["dumpcap", "tcpdump"].into_iter().filter_map(program).collect();
    if found.is_empty() {
        let remedy = "To take captures here, install tcpdump or wireshark-common (dumpcap).";
        return Check::warn("recorder", "neither dumpcap nor tcpdump found", remedy);
    }
    let found: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
    Check::ok("recorder", found.join(", "))
}

/// Whether this user can take a capture, or record.
fn rights() -> Check {
    if capabilities().is_some_and(|set| set & CAP_NET_RAW != 0) {
        return Check::ok("capture rights", "CAP_NET_RAW: `smbscope record` can listen");
    }
    // dumpcap can have the right of its own; it lists interfaces only when it may open them.
    if answer_of("dumpcap", &["-D"]).is_some_and(|list| !list.trim().is_empty()) {
        return Check::warn(
            "capture rights",
            "through dumpcap only",
            "For `smbscope record`, run it as root or give it CAP_NET_RAW (setcap cap_net_raw+ep FILE).",
        );
    }
    Check::warn(
        "capture rights",
        "none",
        "Record as root or give smbscope CAP_NET_RAW (setcap cap_net_raw+ep FILE); for dumpcap, join the group wireshark.",
    )
}

/// The effective capabilities of this process (proc(5)).
fn capabilities() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let set = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_not_ok_has_a_remedy() {
        for check in all() {
            assert_eq!(check.remedy.is_some(), check.state != super::super::State::Ok, "{check:?}");
            assert!(!check.found.contains('\n'));
        }
    }
}
