//! Counters of this machine from `/sys`: idle states and frequencies of processors (kernel
//! Documentation/admin-guide/pm/cpuidle.rst, cpufreq.rst, intel_pstate.rst), and ports of RDMA adapters
//! (Documentation/ABI/stable/sysfs-class-infiniband).
//!
//! Bytes that RDMA moves do not pass through the network interface's counters, so these are the only
//! place where they are seen.

use std::fs;
use std::path::{Path, PathBuf};

use crate::proc::text;
use crate::rate::Reading;

/// Processors that are read; of a machine with more, evenly spread ones.
const CPUS_MAX: usize = 64;
/// Idle states of a processor.
const STATES_MAX: usize = 16;
/// Exit latency from which on an idle state is deep, µs: waking up takes longer than a network round
/// trip in the same room.
const DEEP_US: u64 = 30;
/// RDMA adapters, their ports, and counters of a port that are read.
const DEVICES_MAX: usize = 32;
const PORTS_MAX: usize = 8;
const HARDWARE_MAX: usize = 64;
/// Bytes of a name that becomes one of ours.
const NAME_MAX: usize = 48;

/// One idle state of all processors.
struct State {
    /// `state3`.
    folder: String,
    name: String,
    is_deep: bool,
}

/// What is read of `/sys`, found once.
pub(crate) struct Sys {
    cpus: Vec<PathBuf>,
    states: Vec<State>,
    pstate: PathBuf,
    ports: Vec<(String, PathBuf)>,
}

impl Sys {
    /// Looks for processors and ports below a folder like `/sys`.
    pub(crate) fn find(root: &Path) -> Sys {
        let cpus = cpus(&root.join("devices/system/cpu"));
        let states = cpus.first().map_or_else(Vec::new, |cpu| states(&cpu.join("cpuidle")));
        Sys {
            states,
            cpus,
            pstate: root.join("devices/system/cpu/intel_pstate"),
            ports: ports(&root.join("class/infiniband")),
        }
    }

    /// Adds the readings that the machine has.
    pub(crate) fn read(&self, out: &mut Vec<Reading>) {
        self.idle(out);
        self.frequency(out);
        for (instance, port) in &self.ports {
            rdma(port, instance, out);
        }
    }

    fn idle(&self, out: &mut Vec<Reading>) {
        let mut deep_us = None;
        for state in &self.states {
            let sum = |file: &str| -> Option<(f64, usize)> {
                let of =
                    |cpu: &PathBuf| number(&cpu.join("cpuidle").join(&state.folder).join(file));
                let values: Vec<f64> = self.cpus.iter().filter_map(of).collect();
                (!values.is_empty()).then(|| (values.iter().sum(), values.len()))
            };
            let Some((us, cpus)) = sum("time") else { continue };
            // Of one processor, as per cent of the time.
            let percent = us / cpus as f64 / 1e4;
            out.push(
                Reading::rate("cpu_idle_state_percent", "percent", percent)
                    .of_instance(&state.name),
            );
            if let Some((entries, cpus)) = sum("usage") {
                let all = entries * self.cpus.len() as f64 / cpus as f64;
                out.push(
                    Reading::rate("cpu_idle_entries_per_second", "1/s", all)
                        .of_instance(&state.name),
                );
            }
            if state.is_deep {
                *deep_us.get_or_insert(0.0) += percent;
            }
        }
        if let Some(percent) = deep_us {
            out.push(Reading::rate("cpu_idle_deep_percent", "percent", percent));
        } else if !self.states.is_empty() {
            out.push(Reading::level("cpu_idle_deep_percent", "percent", 0.0));
        }
    }

    fn frequency(&self, out: &mut Vec<Reading>) {
        let of = |cpu: &PathBuf| number(&cpu.join("cpufreq/scaling_cur_freq"));
        let khz: Vec<f64> = self.cpus.iter().filter_map(of).collect();
        if !khz.is_empty() {
            let hertz = khz.iter().sum::<f64>() / khz.len() as f64 * 1e3;
            out.push(Reading::level("cpu_frequency_hertz", "Hz", hertz));
        }
        let governor = self.cpus.first().map(|cpu| cpu.join("cpufreq/scaling_governor"));
        let words =
            [("cpu_governor", governor), ("cpu_pstate_status", Some(self.pstate.join("status")))];
        for (name, path) in words {
            if let Some(word) = path.and_then(|path| word(&path)) {
                out.push(Reading::level(name, "", 1.0).of_instance(&word));
            }
        }
        if let Some(off) = number(&self.pstate.join("no_turbo")) {
            out.push(Reading::level("cpu_turbo_off", "", off));
        }
    }
}

/// Folders of processors.
fn cpus(root: &Path) -> Vec<PathBuf> {
    let mut numbers: Vec<u32> =
        names(root).filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    numbers.sort_unstable();
    let step = numbers.len().div_ceil(CPUS_MAX).max(1);
    numbers.into_iter().step_by(step).map(|number| root.join(format!("cpu{number}"))).collect()
}

fn states(root: &Path) -> Vec<State> {
    let mut folders: Vec<_> =
        names(root).filter(|name| name.starts_with("state")).take(STATES_MAX).collect();
    folders.sort();
    let state = |folder: String| {
        let at = root.join(&folder);
        let latency = number(&at.join("latency")).unwrap_or(0.0);
        let name = word(&at.join("name")).unwrap_or_else(|| folder.clone());
        State { folder, name, is_deep: latency >= DEEP_US as f64 }
    };
    folders.into_iter().map(state).collect()
}

/// Ports with their names: `mlx5_0/1`.
fn ports(root: &Path) -> Vec<(String, PathBuf)> {
    let mut devices: Vec<_> = names(root).take(DEVICES_MAX).collect();
    devices.sort();
    let mut ports = Vec::new();
    for device in devices {
        let at = root.join(&device).join("ports");
        let mut numbers: Vec<_> = names(&at).take(PORTS_MAX).collect();
        numbers.sort();
        ports.extend(numbers.into_iter().map(|port| (format!("{device}/{port}"), at.join(port))));
    }
    ports
}

fn rdma(port: &Path, instance: &str, out: &mut Vec<Reading>) {
    // Data counters are in words of four bytes.
    let known = [
        ("port_rcv_data", "rdma_receive_bytes_per_second", "bytes/s", 4.0),
        ("port_xmit_data", "rdma_transmit_bytes_per_second", "bytes/s", 4.0),
        ("port_rcv_packets", "rdma_receive_packets_per_second", "1/s", 1.0),
        ("port_xmit_packets", "rdma_transmit_packets_per_second", "1/s", 1.0),
        ("port_xmit_wait", "rdma_transmit_waits_per_second", "1/s", 1.0),
        ("port_rcv_errors", "rdma_receive_errors_per_second", "1/s", 1.0),
        ("port_xmit_discards", "rdma_transmit_discards_per_second", "1/s", 1.0),
    ];
    for (file, name, unit, times) in known {
        if let Some(value) = number(&port.join("counters").join(file)) {
            out.push(Reading::rate(name, unit, value * times).of_instance(instance));
        }
    }
    let folder = port.join("hw_counters");
    let mut files: Vec<_> = names(&folder).filter(|name| is_name(name)).collect();
    files.sort();
    for file in files.into_iter().take(HARDWARE_MAX) {
        // Not a total.
        if file == "lifespan" {
            continue;
        }
        if let Some(value) = number(&folder.join(&file)) {
            let name = format!("rdma_hw_{}_per_second", file.to_ascii_lowercase());
            let reading = Reading::rate("", "1/s", value).of_instance(instance);
            out.push(Reading { name: name.into(), sparse: true, ..reading });
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

fn names(root: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn number(path: &Path) -> Option<f64> {
    text(path)?.trim().parse::<u64>().ok().map(|value| value as f64)
}

/// A short word of a file.
fn word(path: &Path) -> Option<String> {
    let text = text(path)?;
    let word = text.trim();
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let is_word = (1..=NAME_MAX).contains(&word.len()) && word.chars().all(is_plain);
    is_word.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rates;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_folder_like_sys() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let cpu = "devices/system/cpu";
        let idle = |cpu_number: u32, deep_us: &str| {
            let at = format!("{cpu}/cpu{cpu_number}/cpuidle");
            for (state, name, latency, time, usage) in [
                ("state0", "POLL\n", "0\n", "1000\n", "5\n"),
                ("state1", "C6\n", "133\n", deep_us, "10\n"),
            ] {
                write(
                    root,
                    &[
                        (&format!("{at}/{state}/name"), name),
                        (&format!("{at}/{state}/latency"), latency),
                        (&format!("{at}/{state}/time"), time),
                        (&format!("{at}/{state}/usage"), usage),
                    ],
                );
            }
        };
        idle(0, "0\n");
        idle(1, "0\n");
        let port = "class/infiniband/mlx5_0/ports/1";
        write(
            root,
            &[
                (&format!("{cpu}/cpu0/cpufreq/scaling_cur_freq"), "1200000\n"),
                (&format!("{cpu}/cpu1/cpufreq/scaling_cur_freq"), "3600000\n"),
                (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave\n"),
                (&format!("{cpu}/intel_pstate/no_turbo"), "1\n"),
                (&format!("{cpu}/intel_pstate/status"), "active\n"),
                (&format!("{cpu}/cpuidle/current_driver"), "intel_idle\n"),
                (&format!("{port}/counters/port_rcv_data"), "0\n"),
                (&format!("{port}/counters/port_xmit_data"), "1000\n"),
                (&format!("{port}/hw_counters/out_of_sequence"), "0\n"),
                (&format!("{port}/hw_counters/lifespan"), "10\n"),
                (&format!("{port}/hw_counters/odd name"), "10\n"),
                (&format!("{port}/hw_counters/np_cnp_sent"), "not a number\n"),
            ],
        );
        let sys = Sys::find(root);
        let mut rates = Rates::default();
        let mut rows = |second: i64| {
            let mut out = Vec::new();
            sys.read(&mut out);
            rates.rows("run", "client", second * 1_000_000_000, out)
        };
        rows(0);
        // One of two processors was in C6 for a second.
        idle(0, "1000000\n");
        write(
            root,
            &[
                (&format!("{port}/counters/port_rcv_data"), "25000000\n"),
                (&format!("{port}/hw_counters/out_of_sequence"), "7\n"),
            ],
        );
        let rows = rows(1);
        let value = |name: &str, instance: Option<&str>| {
            let is = |row: &&smbscope_tables::run::Counter| {
                row.name == name && row.instance.as_deref() == instance
            };
            rows.iter().find(is).map(|row| row.value)
        };
        assert_eq!(value("cpu_idle_deep_percent", None), Some(50.0));
        assert_eq!(value("cpu_idle_state_percent", Some("C6")), Some(50.0));
        assert_eq!(value("cpu_idle_state_percent", Some("POLL")), Some(0.0));
        assert_eq!(value("cpu_idle_entries_per_second", Some("C6")), Some(0.0));
        assert_eq!(value("cpu_frequency_hertz", None), Some(2.4e9));
        assert_eq!(value("cpu_governor", Some("powersave")), Some(1.0));
        assert_eq!(value("cpu_pstate_status", Some("active")), Some(1.0));
        assert_eq!(value("cpu_turbo_off", None), Some(1.0));
        assert_eq!(value("rdma_receive_bytes_per_second", Some("mlx5_0/1")), Some(1e8));
        assert_eq!(value("rdma_transmit_bytes_per_second", Some("mlx5_0/1")), Some(0.0));
        assert_eq!(value("rdma_hw_out_of_sequence_per_second", Some("mlx5_0/1")), Some(7.0));
        assert_eq!(rows.iter().filter(|row| row.name.starts_with("rdma_hw")).count(), 1);
    }

    #[test]
    fn a_machine_without_them_has_no_rows() {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        Sys::find(folder.path()).read(&mut out);
        assert_eq!(out, []);
    }

    #[test]
    fn many_processors_are_spread() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("devices/system/cpu");
        for number in 0..200 {
            fs::create_dir_all(root.join(format!("cpu{number}"))).unwrap();
        }
        fs::create_dir_all(root.join("cpufreq")).unwrap();
        let cpus = Sys::find(folder.path()).cpus;
        assert_eq!(cpus.len(), 50);
        assert!(cpus.last().unwrap().ends_with("cpu196"));
    }
}
