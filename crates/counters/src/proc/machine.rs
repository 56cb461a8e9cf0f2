//! Parsers for the files of `/proc` about the whole machine. They take text and skip unknown parts: the
//! kernel adds fields.

use crate::rate::Reading;

/// Processors whose own share is shown; the sum counts all.
const CPUS_MAX: usize = 1_024;

/// `/proc/stat`: processors, run queue, context switches.
pub fn stat(text: &str, out: &mut Vec<Reading>) {
    let mut cpus = 0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(word) = words.next() else { continue };
        if let Some(cpu) = word.strip_prefix("cpu") {
            let ticks: Vec<f64> = words.map_while(number).take(8).collect();
            if ticks.len() < 4 {
                continue;
            }
            cpus += usize::from(!cpu.is_empty());
            if cpus <= CPUS_MAX {
                processor(cpu, &ticks, out);
            }
            continue;
        }
        let Some(value) = words.next().and_then(number) else { continue };
        match word {
            "ctxt" => out.push(Reading::rate("context_switches_per_second", "1/s", value)),
            "procs_running" => out.push(Reading::level("run_queue", "", value)),
            "procs_blocked" => out.push(Reading::level("blocked", "", value)),
            _ => {}
        }
    }
}

/// `/proc/schedstat`: time in which tasks were ready and waited for a processor, in ns, on kernels with
/// CONFIG_SCHEDSTATS. A processor's line ends with the time that tasks ran, the time that they waited,
/// and the number of times that one began to run.
pub fn schedstat(text: &str, out: &mut Vec<Reading>) {
    let lines = text.lines().filter(|line| line.starts_with("cpu"));
    let waited =
        lines.filter_map(|line| line.split_ascii_whitespace().rev().nth(1).and_then(number));
    if let Some(ns) = waited.reduce(|sum, ns| sum + ns) {
        let unit = "percent of one processor";
        out.push(Reading::rate("cpu_waiting_percent", unit, ns / 1e9 * 100.0));
    }
}

/// user, nice, system, idle, iowait, irq, softirq, steal; guests' time is part of user.
fn processor(cpu: &str, ticks: &[f64], out: &mut Vec<Reading>) {
    let tick = |at: usize| ticks.get(at).copied().unwrap_or(0.0);
    let total: f64 = ticks.iter().sum();
    let mut push = |name, value: f64| {
        let reading = Reading::mean(name, "percent", 100.0 * value, total);
        out.push(if cpu.is_empty() { reading } else { reading.of_instance(&format!("cpu{cpu}")) });
    };
    push("cpu_percent", total - tick(3) - tick(4));
    push("cpu_softirq_percent", tick(6));
    if cpu.is_empty() {
        push("cpu_user_percent", tick(0) + tick(1));
        push("cpu_system_percent", tick(2));
        push("cpu_iowait_percent", tick(4));
        push("cpu_irq_percent", tick(5));
        push("cpu_steal_percent", tick(7));
    }
}

/// `/proc/loadavg`: the mean of the last minute.
pub fn loadavg(text: &str, out: &mut Vec<Reading>) {
    if let Some(value) = text.split_ascii_whitespace().next().and_then(number) {
        out.push(Reading::level("load_1", "", value));
    }
}

/// `/proc/diskstats` of the devices that `is_disk` accepts and that were ever used.
pub fn diskstats(text: &str, is_disk: impl Fn(&str) -> bool, out: &mut Vec<Reading>) {
    const SECTOR_BYTES: f64 = 512.0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        let fields: Vec<f64> = words.map_while(number).take(11).collect();
        let &[reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, _, busy, queue] =
            fields.as_slice()
        else {
            continue;
        };
        if reads + writes == 0.0 || !is_disk(name) {
            continue;
        }
        Disk {
            name,
            reads,
            writes,
            read_bytes: read_sectors * SECTOR_BYTES,
            write_bytes: write_sectors * SECTOR_BYTES,
            read_seconds: read_ms / 1e3,
            write_seconds: write_ms / 1e3,
            busy_seconds: busy / 1e3,
            queue_seconds: queue / 1e3,
        }
        .readings(out);
    }
}

/// A disk's totals, from any source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk<'a> {
    /// The device.
    pub name: &'a str,
    /// Completed reads.
    pub reads: f64,
    /// Completed writes.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub write_bytes: f64,
    /// Time of all reads.
    pub read_seconds: f64,
    /// Time of all writes.
    pub write_seconds: f64,
    /// Time in which anything was in flight.
    pub busy_seconds: f64,
    /// Time of all requests: its growth per second is the mean queue.
    pub queue_seconds: f64,
}

impl Disk<'_> {
    /// As readings.
    pub fn readings(&self, out: &mut Vec<Reading>) {
        let rate = Reading::rate;
        let readings = [
            rate("disk_reads_per_second", "1/s", self.reads),
            rate("disk_writes_per_second", "1/s", self.writes),
            rate("disk_read_bytes_per_second", "bytes/s", self.read_bytes),
            rate("disk_write_bytes_per_second", "bytes/s", self.write_bytes),
            Reading::mean("disk_read_ns", "ns", self.read_seconds * 1e9, self.reads),
            Reading::mean("disk_write_ns", "ns", self.write_seconds * 1e9, self.writes),
            rate("disk_busy_percent", "percent", self.busy_seconds * 100.0),
            rate("disk_queue", "", self.queue_seconds),
        ];
        out.extend(readings.map(|reading| reading.of_instance(self.name)));
    }
}

/// `/proc/net/dev` of the interfaces that were ever used.
pub fn net_dev(text: &str, out: &mut Vec<Reading>) {
    for line in text.lines() {
        let Some((name, fields)) = line.split_once(':') else { continue };
        let fields: Vec<f64> = fields.split_ascii_whitespace().map_while(number).collect();
        let [
            received,
            packets,
            errors,
            drops,
            _,
            _,
            _,
            _,
            sent,
            sent_packets,
            sent_errors,
            sent_drops,
            ..,
        ] = fields.as_slice()
        else {
            continue;
        };
        if received + sent == 0.0 {
            continue;
        }
        let rate = Reading::rate;
        let readings = [
            rate("network_receive_bytes_per_second", "bytes/s", *received),
            rate("network_transmit_bytes_per_second", "bytes/s", *sent),
            rate("network_receive_packets_per_second", "1/s", *packets),
            rate("network_transmit_packets_per_second", "1/s", *sent_packets),
            rate("network_errors_per_second", "1/s", errors + sent_errors),
            rate("network_drops_per_second", "1/s", drops + sent_drops),
        ];
        out.extend(readings.map(|reading| reading.of_instance(name.trim())));
    }
}

/// `/proc/net/snmp`: two lines per protocol, names and values.
pub fn net_snmp(text: &str, out: &mut Vec<Reading>) {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return };
    for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
        let Some(value) = number(value) else { continue };
        match name {
            "CurrEstab" => out.push(Reading::level("tcp_connections", "", value)),
            "RetransSegs" => {
                out.push(Reading::rate("tcp_retransmissions_per_second", "1/s", value));
            }
            _ => {}
        }
    }
}

/// `/proc/meminfo`, in kB.
pub fn meminfo(text: &str, out: &mut Vec<Reading>) {
    let mut total = None;
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let Some(kilobytes) = rest.split_ascii_whitespace().next().and_then(number) else {
            continue;
        };
        let bytes = kilobytes * 1_024.0;
        let mut level = |name, bytes| out.push(Reading::level(name, "bytes", bytes));
        match (name, total) {
            ("MemTotal", _) => total = Some(bytes),
            ("MemAvailable", Some(total)) => {
                level("memory_used_bytes", total - bytes);
                level("memory_available_bytes", bytes);
            }
            ("Cached", _) => level("memory_cached_bytes", bytes),
            ("Dirty", _) => level("memory_dirty_bytes", bytes),
            ("Writeback", _) => level("memory_writeback_bytes", bytes),
            _ => {}
        }
    }
}

/// `/proc/sys/fs/file-nr`: allocated handles, free ones, the limit.
pub fn file_nr(text: &str, out: &mut Vec<Reading>) {
    if let Some(value) = text.split_ascii_whitespace().next().and_then(number) {
        out.push(Reading::level("open_files", "", value));
    }
}

/// `/proc/pressure/*` (PSI): time in which some task waited for a resource, in microseconds.
pub fn pressure(resource: &str, text: &str, out: &mut Vec<Reading>) {
    let name = match resource {
        "cpu" => "pressure_cpu_percent",
        "io" => "pressure_io_percent",
        "memory" => "pressure_memory_percent",
        _ => return,
    };
    let total = text
        .lines()
        .find(|line| line.starts_with("some "))
        .and_then(|line| line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total=")))
        .and_then(number);
    if let Some(micros) = total {
        out.push(Reading::rate(name, "percent", micros / 1e6 * 100.0));
    }
}

fn number(word: &str) -> Option<f64> {
    // Accepts only what the kernel writes: digits, a sign, a point.
    let plain = word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    // More digits than a number of the kernel has would be infinite.
    if plain && word.len() <= 40 { word.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rates;
    use proptest::prelude::*;

    /// Rows for two texts, one second apart.
    fn rows(read: impl Fn(&str, &mut Vec<Reading>), texts: [&str; 2]) -> Vec<String> {
        let mut rates = Rates::default();
        let mut rows = Vec::new();
        for (second, text) in texts.iter().enumerate() {
            let mut readings = Vec::new();
            read(text, &mut readings);
            rows = rates.rows("run", "server", second as i64 * 1_000_000_000, readings);
        }
        rows.iter()
            .map(|row| {
                let instance = row.instance.as_deref().map(|i| format!(" [{i}]"));
                let space = if row.unit.is_empty() { "" } else { " " };
                format!(
                    "{}{} {}{space}{}",
                    row.name,
                    instance.unwrap_or_default(),
                    row.value,
                    row.unit
                )
            })
            .collect()
    }

    #[test]
    fn processors() {
        let before = "cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 100 10 50 800 40 0 0 0 0 0\nintr 5 0 0\nctxt 1000\nbtime 1\nprocs_running 2\nprocs_blocked 0\nsoftirq 1 2\n";
        let after = "cpu  160 20 70 890 50 2 3 5 0 0\ncpu0 160 20 70 890 50 2 3 5 0 0\nintr 5 0 0\nctxt 3500\nbtime 1\nprocs_running 7\nprocs_blocked 1\nsoftirq 1 2\n";
        assert_eq!(
            rows(stat, [before, after]),
            [
                "cpu_percent 50 percent",
                "cpu_softirq_percent 1.5 percent",
                "cpu_user_percent 35 percent",
                "cpu_system_percent 10 percent",
                "cpu_iowait_percent 5 percent",
                "cpu_irq_percent 1 percent",
                "cpu_steal_percent 2.5 percent",
                "cpu_percent [cpu0] 50 percent",
                "cpu_softirq_percent [cpu0] 1.5 percent",
                "context_switches_per_second 2500 1/s",
                "run_queue 7",
                "blocked 1",
            ]
        );
    }

    #[test]
    fn who_waits_for_a_processor() {
        let text = |ns: u64| {
            format!(
                "version 15\ntimestamp 4294895\ncpu0 0 0 0 0 0 0 9000 {ns} 70\ndomain0 3 0 0 0 5\ncpu1 0 0 0 0 0 0 8000 500000000 60\n"
            )
        };
        let rows = rows(schedstat, [&text(0), &text(250_000_000)]);
        assert_eq!(rows, ["cpu_waiting_percent 25 percent of one processor"]);
    }

    #[test]
    fn disks() {
        let before = " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 254 0 vda 1000 10 8000 500 2000 20 16000 4000 0 3000 4500 0 0 0 0 0 0\n 254 1 vda1 900 10 7000 400 2000 20 16000 4000 0 3000 4500 0 0 0 0 0 0\n";
        let after = " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 254 0 vda 1100 10 10000 700 2000 20 16000 4000 3 3500 6500 0 0 0 0 0 0\n";
        let read = |text: &str, out: &mut Vec<Reading>| diskstats(text, |n| n != "vda1", out);
        assert_eq!(
            rows(read, [before, after]),
            [
                "disk_reads_per_second [vda] 100 1/s",
                "disk_writes_per_second [vda] 0 1/s",
                "disk_read_bytes_per_second [vda] 1024000 bytes/s",
                "disk_write_bytes_per_second [vda] 0 bytes/s",
                "disk_read_ns [vda] 2000000 ns",
                "disk_busy_percent [vda] 50 percent",
                "disk_queue [vda] 2",
            ]
        );
    }

    #[test]
    fn network() {
        let header = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n";
        let before = format!(
            "{header}    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n"
        );
        let after = format!(
            "{header}    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  eth0: 5000 15 1 2 0 0 0 0 9000 30 1 1 0 0 0 0\n"
        );
        assert_eq!(
            rows(net_dev, [&before, &after]),
            [
                "network_receive_bytes_per_second [eth0] 4000 bytes/s",
                "network_transmit_bytes_per_second [eth0] 7000 bytes/s",
                "network_receive_packets_per_second [eth0] 5 1/s",
                "network_transmit_packets_per_second [eth0] 10 1/s",
                "network_errors_per_second [eth0] 2 1/s",
                "network_drops_per_second [eth0] 3 1/s",
            ]
        );
        let snmp = |n| {
            format!(
                "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm MaxConn CurrEstab RetransSegs\nTcp: 1 -1 42 {n}\n"
            )
        };
        assert_eq!(
            rows(net_snmp, [&snmp(5), &snmp(9)]),
            ["tcp_connections 42", "tcp_retransmissions_per_second 4 1/s"]
        );
    }

    #[test]
    fn memory_files_and_pressure() {
        let text = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\nCached: 300 kB\nDirty: 8 kB\nWriteback: 2 kB\n";
        assert_eq!(
            rows(meminfo, [text, text]),
            [
                "memory_used_bytes 409600 bytes",
                "memory_available_bytes 614400 bytes",
                "memory_cached_bytes 307200 bytes",
                "memory_dirty_bytes 8192 bytes",
                "memory_writeback_bytes 2048 bytes",
            ]
        );
        assert_eq!(rows(file_nr, ["", "1537\t0\t2466170\n"]), ["open_files 1537"]);
        assert_eq!(rows(loadavg, ["", "2.16 2.14 1.76 3/106 22650\n"]), ["load_1 2.16"]);
        let psi = |n| {
            format!(
                "some avg10=95.42 avg60=97.53 avg300=72.25 total={n}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            )
        };
        let read = |text: &str, out: &mut Vec<Reading>| pressure("io", text, out);
        assert_eq!(
            rows(read, [&psi(1_000_000), &psi(1_250_000)]),
            ["pressure_io_percent 25 percent"]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", words in "((cpu|cpu0|sda|eth0:|Tcp:|some|total=|MemTotal:|-?[0-9]{1,30})[ \n]){0,60}") {
            for text in [text, words] {
                let mut out = Vec::new();
                stat(&text, &mut out);
                schedstat(&text, &mut out);
                loadavg(&text, &mut out);
                diskstats(&text, |_| true, &mut out);
                net_dev(&text, &mut out);
                net_snmp(&text, &mut out);
                meminfo(&text, &mut out);
                file_nr(&text, &mut out);
                pressure("io", &text, &mut out);
                Rates::default().rows("run", "server", 0, out);
            }
        }
    }
}
