//! Processors and disks in an exporter's answer, whose counters combine several metrics.

use std::collections::BTreeMap;

use crate::proc::machine::Disk;
use crate::rate::Reading;

use super::text::Sample;

/// Most processors, disks and interfaces of one answer.
pub const DEVICES_MAX: usize = 1_024;

/// Seconds of one processor by activity; `None` if the exporter does not report it.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    total: f64,
    idle: f64,
    user: f64,
    system: f64,
    iowait: f64,
    irq: f64,
    softirq: f64,
    steal: f64,
}

impl Default for Cpu {
    fn default() -> Cpu {
        let unknown = f64::NAN;
        Cpu {
            total: 0.0,
            idle: 0.0,
            user: unknown,
            system: unknown,
            iowait: unknown,
            irq: unknown,
            softirq: unknown,
            steal: unknown,
        }
    }
}

impl Cpu {
    fn busy(&self) -> f64 {
        self.total - self.idle - if self.iowait.is_nan() { 0.0 } else { self.iowait }
    }
}

/// Adds a known value to one that may be unknown.
fn add(sum: &mut f64, part: f64) {
    if !part.is_nan() {
        *sum = if sum.is_nan() { part } else { *sum + part };
    }
}

/// A disk's totals; `None` if the exporter does not report it.
#[derive(Clone, Copy, Debug)]
struct Totals([f64; 8]);

impl Default for Totals {
    fn default() -> Totals {
        Totals([f64::NAN; 8])
    }
}

/// Collects the processors and disks of one answer.
#[derive(Debug, Default)]
pub struct Devices {
    cpus: BTreeMap<String, Cpu>,
    /// Seconds in which tasks waited for a processor.
    waited: Option<f64>,
    disks: BTreeMap<String, Totals>,
}

impl Devices {
    /// Takes `..._cpu_..._total`, whose label `label` names the processor.
    pub fn cpu(&mut self, sample: &Sample<'_>, label: &str) {
        let (Some(cpu), Some(mode)) = (sample.label(label), sample.label("mode")) else { return };
        let Some(cpu) = entry(&mut self.cpus, cpu) else { return };
        let seconds = sample.value;
        match mode {
            "idle" => add(&mut cpu.idle, seconds),
            "iowait" => add(&mut cpu.iowait, seconds),
            "user" | "nice" => add(&mut cpu.user, seconds),
            "system" | "privileged" => add(&mut cpu.system, seconds),
            "irq" => add(&mut cpu.irq, seconds),
            "softirq" => add(&mut cpu.softirq, seconds),
            "steal" => add(&mut cpu.steal, seconds),
            // On Windows these are parts of privileged time.
            "interrupt" => {
                add(&mut cpu.irq, seconds);
                return;
            }
            "dpc" => {
                add(&mut cpu.softirq, seconds);
                return;
            }
            _ => return,
        }
        cpu.total += seconds;
    }

    /// Takes the seconds in which tasks waited for one of the processors.
    pub fn waited(&mut self, seconds: f64) {
        self.waited = Some(self.waited.unwrap_or(0.0) + seconds);
    }

    /// Takes a disk's total: the name after the exporter's prefix, and the label that names the disk.
    pub fn disk(&mut self, sample: &Sample<'_>, field: &str, label: &str) {
        // The name after the exporter's prefix: node_exporter's names, then windows_exporter's.
        let at = match field {
            "reads_completed_total" | "reads_total" => 0,
            "writes_completed_total" | "writes_total" => 1,
            "read_bytes_total" => 2,
            "written_bytes_total" | "write_bytes_total" => 3,
            "read_time_seconds_total" | "read_latency_seconds_total" => 4,
            "write_time_seconds_total" | "write_latency_seconds_total" => 5,
            "io_time_seconds_total" => 6,
            "io_time_weighted_seconds_total" => 7,
            _ => return,
        };
        if let Some(device) = sample.label(label)
            && let Some(totals) = entry(&mut self.disks, device)
        {
            totals.0[at] = sample.value;
        }
    }

    /// Number of disks.
    pub fn disks(&self) -> usize {
        self.disks.len()
    }

    /// All readings.
    pub fn readings(&self, out: &mut Vec<Reading>) {
        let mut all = Cpu::default();
        for cpu in self.cpus.values() {
            for (sum, part) in [
                (&mut all.total, cpu.total),
                (&mut all.idle, cpu.idle),
                (&mut all.user, cpu.user),
                (&mut all.system, cpu.system),
                (&mut all.iowait, cpu.iowait),
                (&mut all.irq, cpu.irq),
                (&mut all.softirq, cpu.softirq),
                (&mut all.steal, cpu.steal),
            ] {
                add(sum, part);
            }
        }
        let percent =
            |name, part: f64, of: &Cpu| Reading::mean(name, "percent", 100.0 * part, of.total);
        if !self.cpus.is_empty() {
            out.extend([
                percent("cpu_percent", all.busy(), &all),
                percent("cpu_softirq_percent", all.softirq, &all),
                percent("cpu_user_percent", all.user, &all),
                percent("cpu_system_percent", all.system, &all),
                percent("cpu_iowait_percent", all.iowait, &all),
                percent("cpu_irq_percent", all.irq, &all),
                percent("cpu_steal_percent", all.steal, &all),
            ]);
        }
        if let Some(seconds) = self.waited {
            let unit = "percent of one processor";
            out.push(Reading::rate("cpu_waiting_percent", unit, 100.0 * seconds));
        }
        for (name, cpu) in &self.cpus {
            let label = format!("cpu{name}");
            let busy = percent("cpu_percent", cpu.busy(), cpu);
            out.push(busy.of_instance(&label));
            out.push(percent("cpu_softirq_percent", cpu.softirq, cpu).of_instance(&label));
        }
        for (name, totals) in &self.disks {
            let [reads, writes, read_bytes, write_bytes, read_seconds, write_seconds, busy, queue] =
                totals.0;
            if reads + writes > 0.0 {
                Disk {
                    name,
                    reads,
                    writes,
                    read_bytes,
                    write_bytes,
                    read_seconds,
                    write_seconds,
                    busy_seconds: busy,
                    queue_seconds: queue,
                }
                .readings(out);
            }
        }
    }
}

/// A device's entry, unless there are too many.
pub fn entry<'a, T: Default>(map: &'a mut BTreeMap<String, T>, name: &str) -> Option<&'a mut T> {
    if !map.contains_key(name) {
        if map.len() >= DEVICES_MAX {
            return None;
        }
        map.insert(name.to_owned(), T::default());
    }
    map.get_mut(name)
}
