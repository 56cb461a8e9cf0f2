//! Translates metrics of exporters to our counters: the names of node_exporter and windows_exporter
//! become ours, so that a server shows the same counters from every source; metrics about SMB from
//! Samba's own exporter (`smb_prometheus_endpoint`, Samba 4.22,
//! source3/utils/smb_prometheus_endpoint.c) and others keep their names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::rate::{Kind, Reading};

use super::devices::{DEVICES_MAX, Devices, entry};
use super::text::{Sample, Type};

/// Prefixes of metrics that are kept under their own names by default.
pub const SMB_PREFIXES: [&str; 4] = ["smb_", "samba_", "windows_smb", "ctdb_"];

/// (metric, our name, unit, factor, whether it is a total, label of the instance)
type Simple = (&'static str, &'static str, &'static str, f64, bool, Option<&'static str>);

const SIMPLE: [Simple; 29] = [
    ("node_load1", "load_1", "", 1.0, false, None),
    ("node_procs_running", "run_queue", "", 1.0, false, None),
    ("node_procs_blocked", "blocked", "", 1.0, false, None),
    ("node_context_switches_total", "context_switches_per_second", "1/s", 1.0, true, None),
    ("node_filefd_allocated", "open_files", "", 1.0, false, None),
    ("node_netstat_Tcp_CurrEstab", "tcp_connections", "", 1.0, false, None),
    ("node_netstat_Tcp_RetransSegs", "tcp_retransmissions_per_second", "1/s", 1.0, true, None),
    (
        "node_pressure_cpu_waiting_seconds_total",
        "pressure_cpu_percent",
        "percent",
        100.0,
        true,
        None,
    ),
    ("node_pressure_io_waiting_seconds_total", "pressure_io_percent", "percent", 100.0, true, None),
    (
        "node_pressure_memory_waiting_seconds_total",
        "pressure_memory_percent",
        "percent",
        100.0,
        true,
        None,
    ),
    ("node_memory_MemAvailable_bytes", "memory_available_bytes", "bytes", 1.0, false, None),
    ("node_memory_Cached_bytes", "memory_cached_bytes", "bytes", 1.0, false, None),
    ("node_memory_Dirty_bytes", "memory_dirty_bytes", "bytes", 1.0, false, None),
    ("node_memory_Writeback_bytes", "memory_writeback_bytes", "bytes", 1.0, false, None),
    ("windows_system_processor_queue_length", "run_queue", "", 1.0, false, None),
    (
        "windows_system_context_switches_total",
        "context_switches_per_second",
        "1/s",
        1.0,
        true,
        None,
    ),
    ("windows_memory_available_bytes", "memory_available_bytes", "bytes", 1.0, false, None),
    ("windows_memory_cache_bytes", "memory_cached_bytes", "bytes", 1.0, false, None),
    ("windows_tcp_connections_established", "tcp_connections", "", 1.0, false, Some("af")),
    (
        "windows_tcp_segments_retransmitted_total",
        "tcp_retransmissions_per_second",
        "1/s",
        1.0,
        true,
        Some("af"),
    ),
    ("windows_physical_disk_requests_queued", "disk_queue", "", 1.0, false, Some("disk")),
    ("node_network_receive_bytes_total", NET_IN, "bytes/s", 1.0, true, Some("device")),
    ("node_network_transmit_bytes_total", NET_OUT, "bytes/s", 1.0, true, Some("device")),
    ("node_network_receive_packets_total", NET_IN_PACKETS, "1/s", 1.0, true, Some("device")),
    ("node_network_transmit_packets_total", NET_OUT_PACKETS, "1/s", 1.0, true, Some("device")),
    ("windows_net_bytes_received_total", NET_IN, "bytes/s", 1.0, true, Some("nic")),
    ("windows_net_bytes_sent_total", NET_OUT, "bytes/s", 1.0, true, Some("nic")),
    ("windows_net_packets_received_total", NET_IN_PACKETS, "1/s", 1.0, true, Some("nic")),
    ("windows_net_packets_sent_total", NET_OUT_PACKETS, "1/s", 1.0, true, Some("nic")),
];
const NET_IN: &str = "network_receive_bytes_per_second";
const NET_OUT: &str = "network_transmit_bytes_per_second";
const NET_IN_PACKETS: &str = "network_receive_packets_per_second";
const NET_OUT_PACKETS: &str = "network_transmit_packets_per_second";

/// Collects the samples of one answer.
#[derive(Debug, Default)]
pub struct Map {
    devices: Devices,
    network: BTreeMap<String, [f64; 2]>,
    means: BTreeMap<(String, Option<String>), [Option<f64>; 2]>,
    memory: [Option<f64>; 2],
    out: Vec<Reading>,
}

impl Map {
    /// Takes a sample; metrics with one of the `prefixes` keep their names.
    pub fn sample(&mut self, sample: &Sample<'_>, prefixes: &[String]) {
        if !sample.value.is_finite() {
            return;
        }
        if prefixes.iter().any(|prefix| sample.name.starts_with(prefix.as_str())) {
            self.own(sample);
        } else if sample.name.starts_with("node_") || sample.name.starts_with("windows_") {
            self.known(sample);
        }
    }

    fn known(&mut self, sample: &Sample<'_>) {
        let value = sample.value;
        match sample.name {
            "node_cpu_seconds_total" => return self.devices.cpu(sample, "cpu"),
            "windows_cpu_time_total" => return self.devices.cpu(sample, "core"),
            "node_schedstat_waiting_seconds_total" => return self.devices.waited(value),
            "node_memory_MemTotal_bytes" => self.memory[0] = Some(value),
            "node_memory_MemAvailable_bytes" => self.memory[1] = Some(value),
            _ => {}
        }
        if let Some(field) = sample.name.strip_prefix("node_disk_") {
            return self.devices.disk(sample, field, "device");
        }
        if let Some(field) = sample.name.strip_prefix("windows_physical_disk_")
            && field != "requests_queued"
        {
            return self.devices.disk(sample, field, "disk");
        }
        if let Some(field) = sample.name.strip_prefix("node_network_") {
            let at = match field {
                "receive_errs_total" | "transmit_errs_total" => Some(0),
                "receive_drop_total" | "transmit_drop_total" => Some(1),
                _ => None,
            };
            if let (Some(at), Some(device)) = (at, sample.label("device"))
                && let Some(totals) = entry(&mut self.network, device)
            {
                totals[at] += value;
                return;
            }
        }
        let Some(&(_, name, unit, factor, total, label)) =
            SIMPLE.iter().find(|simple| simple.0 == sample.name)
        else {
            return;
        };
        let value = value * factor;
        let reading = if total {
            Reading::rate(name, unit, value)
        } else {
            Reading::level(name, unit, value)
        };
        let instance = label.and_then(|label| sample.label(label));
        self.out.push(match instance {
            // Interfaces and disks that were never used are noise.
            Some(instance) => Reading { sparse: total, ..reading }.of_instance(instance),
            None => reading,
        });
    }

    /// A metric under its own name.
    fn own(&mut self, sample: &Sample<'_>) {
        let instance = instance(sample);
        match sample.kind {
            Type::Histogram | Type::Summary => {
                let (family, at) = match sample.name {
                    name if name.ends_with("_sum") => (name.strip_suffix("_sum"), 0),
                    name if name.ends_with("_count") => (name.strip_suffix("_count"), 1),
                    // Buckets and quantiles: operations have finer ones.
                    _ => return,
                };
                let Some(family) = family else { return };
                if self.means.len() < 4 * DEVICES_MAX {
                    let pair = self.means.entry((family.to_owned(), instance)).or_default();
                    pair[at] = Some(sample.value);
                }
            }
            Type::Counter => {
                let name = sample.name.strip_suffix("_total").unwrap_or(sample.name);
                let unit = if name.contains("bytes") { "bytes/s" } else { "1/s" };
                self.push(format!("{name}_per_second"), instance, unit, sample.value, Kind::Rate);
            }
            Type::Gauge | Type::Untyped => {
                let unit = if sample.name.ends_with("bytes") { "bytes" } else { "" };
                self.push(sample.name.to_owned(), instance, unit, sample.value, Kind::Level);
            }
        }
    }

    fn push(
        &mut self,
        name: String,
        instance: Option<String>,
        unit: &'static str,
        value: f64,
        kind: Kind,
    ) {
        let sparse = kind != Kind::Level;
        self.out.push(Reading { name: Cow::Owned(name), instance, unit, value, kind, sparse });
    }

    /// All readings of the answer.
    pub fn readings(mut self) -> Vec<Reading> {
        self.devices.readings(&mut self.out);
        for (name, &[errors, drops]) in &self.network {
            let rates = [
                Reading::rate("network_errors_per_second", "1/s", errors),
                Reading::rate("network_drops_per_second", "1/s", drops),
            ];
            let sparse = |rate: Reading| Reading { sparse: true, ..rate }.of_instance(name);
            self.out.extend(rates.map(sparse));
        }
        if let [Some(total), Some(available)] = self.memory {
            self.out.push(Reading::level("memory_used_bytes", "bytes", total - available));
        }
        for ((family, instance), [sum, count]) in std::mem::take(&mut self.means) {
            let Some(count) = count else { continue };
            self.push(
                format!("{family}_count_per_second"),
                instance.clone(),
                "1/s",
                count,
                Kind::Rate,
            );
            let Some(sum) = sum else { continue };
            let (base, unit, factor) = duration(&family);
            let kind = Kind::Mean { per: count };
            self.push(format!("{base}_mean{unit}"), instance, unit_name(unit), sum * factor, kind);
        }
        self.out
    }
}

/// Durations are in nanoseconds, whatever the family's unit.
fn duration(family: &str) -> (&str, &'static str, f64) {
    for (suffix, factor) in
        [("_microseconds", 1e3), ("_milliseconds", 1e6), ("_nanoseconds", 1.0), ("_seconds", 1e9)]
    {
        if let Some(base) = family.strip_suffix(suffix) {
            return (base, "_ns", factor);
        }
    }
    (family, "", 1.0)
}

fn unit_name(suffix: &str) -> &'static str {
    if suffix == "_ns" { "ns" } else { "" }
}

/// `share=a,operation=create`: the informative labels.
fn instance(sample: &Sample<'_>) -> Option<String> {
    let labels: Vec<String> = sample
        .labels
        .iter()
        .filter(|(name, value)| !value.is_empty() && *name != "le" && *name != "quantile")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::text::parse;
    use crate::rate::Rates;

    /// Rows for two answers, one second apart.
    fn rows(answers: [&str; 2]) -> Vec<String> {
        let prefixes: Vec<String> = SMB_PREFIXES.map(str::to_owned).to_vec();
        let mut rates = Rates::default();
        let mut rows = Vec::new();
        for (second, answer) in answers.iter().enumerate() {
            let mut map = Map::default();
            parse(answer, |sample| map.sample(&sample, &prefixes));
            let time_ns = second as i64 * 1_000_000_000;
            rows = rates.rows("run", "metrics", time_ns, map.readings());
        }
        let mut rows: Vec<String> = rows
            .iter()
            .map(|row| {
                let instance = row.instance.as_deref().map(|i| format!(" [{i}]"));
                format!("{}{} {} {}", row.name, instance.unwrap_or_default(), row.value, row.unit)
                    .trim_end()
                    .to_owned()
            })
            .collect();
        rows.sort();
        rows
    }

    #[test]
    fn node_exporter_speaks_as_proc_does() {
        let answer = |n: f64| {
            format!(
                "# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {}
node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {}
node_cpu_seconds_total{{cpu=\"0\",mode=\"softirq\"}} {}
node_disk_reads_completed_total{{device=\"sda\"}} {}
node_disk_read_time_seconds_total{{device=\"sda\"}} {}
node_disk_io_time_seconds_total{{device=\"sda\"}} {}
node_disk_io_time_weighted_seconds_total{{device=\"sda\"}} {}
node_disk_writes_completed_total{{device=\"sda\"}} 7
node_disk_reads_completed_total{{device=\"never\"}} 0
node_network_receive_bytes_total{{device=\"eth0\"}} {}
node_network_receive_bytes_total{{device=\"idle\"}} 5
node_network_receive_drop_total{{device=\"eth0\"}} {}
node_network_transmit_drop_total{{device=\"eth0\"}} {}
node_memory_MemTotal_bytes 1000
node_memory_MemAvailable_bytes 400
node_filefd_allocated 77
node_pressure_io_waiting_seconds_total {}
node_schedstat_waiting_seconds_total{{cpu=\"0\"}} {n}
node_schedstat_waiting_seconds_total{{cpu=\"1\"}} {n}
node_something_else 1
go_goroutines 8
",
                10.0 + n * 0.5,
                3.0 + n * 0.4,
                n * 0.1,
                100.0 + n * 50.0,
                1.0 + n * 0.2,
                2.0 + n * 0.25,
                4.0 + n * 1.5,
                1e6 * n,
                2.0 * n,
                3.0 * n,
                0.5 * n
            )
        };
        assert_eq!(
            rows([&answer(0.0), &answer(1.0)]),
            [
                "cpu_percent 50 percent",
                "cpu_percent [cpu0] 50 percent",
                "cpu_softirq_percent 10 percent",
                "cpu_softirq_percent [cpu0] 10 percent",
                "cpu_user_percent 40 percent",
                "cpu_waiting_percent 200 percent of one processor",
                "disk_busy_percent [sda] 25 percent",
                "disk_queue [sda] 1.5",
                "disk_read_ns [sda] 4000000 ns",
                "disk_reads_per_second [sda] 50 1/s",
                "disk_writes_per_second [sda] 0 1/s",
                "memory_available_bytes 400 bytes",
                "memory_used_bytes 600 bytes",
                "network_drops_per_second [eth0] 5 1/s",
                "network_receive_bytes_per_second [eth0] 1000000 bytes/s",
                "open_files 77",
                "pressure_io_percent 50 percent",
            ]
        );
    }

    #[test]
    fn samba_keeps_its_names() {
        let answer = |n: u64| {
            format!(
                "# TYPE smb_worker_smbd_num gauge
smb_worker_smbd_num 3
# TYPE smb_num_open_files gauge
smb_num_open_files {}
# TYPE smb_smb2_request_inbytes counter
smb_smb2_request_inbytes {{ share=\"\",operation=\"create\" }} {}
smb_smb2_request_inbytes {{ share=\"home\",operation=\"create\" }} {}
smb_smb2_request_inbytes {{ share=\"\",operation=\"cancel\" }} 5
# TYPE smb_smb2_request_duration_microseconds histogram
smb_smb2_request_duration_microseconds_bucket {{share=\"\",operation=\"create\",le=\"1000\"}} {n}
smb_smb2_request_duration_microseconds_sum {{share=\"\",operation=\"create\"}} {}
smb_smb2_request_duration_microseconds_count {{share=\"\",operation=\"create\"}} {}
# TYPE smb_cpu_seconds_total counter
smb_cpu_seconds_total {{ share=\"\",mode=\"user\" }} {n}
",
                10 + n,
                100 * n,
                50 * n,
                300 * n,
                2 * n
            )
        };
        assert_eq!(
            rows([&answer(0), &answer(1)]),
            [
                "smb_cpu_seconds_per_second [mode=user] 1 1/s",
                "smb_num_open_files 11",
                "smb_smb2_request_duration_mean_ns [operation=create] 150000 ns",
                "smb_smb2_request_duration_microseconds_count_per_second [operation=create] 2 1/s",
                "smb_smb2_request_inbytes_per_second [operation=create] 100 bytes/s",
                "smb_smb2_request_inbytes_per_second [share=home,operation=create] 50 bytes/s",
                "smb_worker_smbd_num 3",
            ]
        );
    }

    #[test]
    fn windows_file_servers_too() {
        let answer = |n: f64| {
            format!(
                "# TYPE windows_cpu_time_total counter
windows_cpu_time_total{{core=\"0,0\",mode=\"idle\"}} {}
windows_cpu_time_total{{core=\"0,0\",mode=\"privileged\"}} {}
windows_cpu_time_total{{core=\"0,0\",mode=\"dpc\"}} {}
# TYPE windows_physical_disk_reads_total counter
windows_physical_disk_reads_total{{disk=\"0 C:\"}} {}
windows_physical_disk_writes_total{{disk=\"0 C:\"}} 3
windows_physical_disk_read_latency_seconds_total{{disk=\"0 C:\"}} {}
windows_physical_disk_requests_queued{{disk=\"0 C:\"}} 2
# TYPE windows_smb_server_shares_current_open_file_count gauge
windows_smb_server_shares_current_open_file_count{{share=\"home\"}} 12
",
                0.75 * n,
                0.25 * n,
                0.125 * n,
                20.0 * n,
                0.25 * n
            )
        };
        let rows = rows([&answer(0.0), &answer(1.0)]);
        for row in [
            "cpu_percent 25 percent",
            "cpu_softirq_percent 12.5 percent",
            "disk_reads_per_second [0 C:] 20 1/s",
            "disk_read_ns [0 C:] 12500000 ns",
            "disk_queue [0 C:] 2",
            "windows_smb_server_shares_current_open_file_count [share=home] 12",
        ] {
            assert!(rows.iter().any(|found| found == row), "{row}: {rows:?}");
        }
        // Values that Windows does not report are unknown, not zero.
        assert!(!rows.iter().any(|row| row.contains("iowait") || row.contains("busy")));
    }

    #[test]
    fn devices_are_bounded() {
        let mut map = Map::default();
        let answer: String = (0..3_000)
            .map(|i| format!("node_disk_reads_completed_total{{device=\"d{i}\"}} 1\n"))
            .collect();
        parse(&answer, |sample| map.sample(&sample, &[]));
        assert!(map.devices.disks() == DEVICES_MAX);
    }
}
