//! What commands do to settings: a model of ethtool, `/proc`, `/sys` and `Set-NetAdapterRss`.
//!
//! `ethtool -L` resets all that a driver may reset with it, and the kernel's refusals are those of `ethtool_set_channels`
//! and `ethtool_set_rxfh` (`net/ethtool/ioctl.c`).

use std::collections::{BTreeMap, BTreeSet};

use crate::cores::layout::CpuId;
use crate::cores::toeplitz::{default_table, weight_table};
use crate::cores::topology::{Rss, System};
use crate::script::quote::is_powershell_quote;

/// The settings of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) adapters: BTreeMap<String, Simulated>,
    pub(super) has_irqbalance: bool,
    pub(super) is_stopped: bool,
    pub(super) has_ban: bool,
    pub(super) flow_entries: u32,
    /// CPUs that are online, and the control groups of processes.
    pub(super) online: BTreeSet<u32>,
    pub(super) cpusets: BTreeMap<u32, Vec<u32>>,
    /// CPUs of running processes, and services with a drop-in file.
    pub(super) processes: BTreeMap<u32, Vec<u32>>,
    pub(super) placed_services: BTreeMap<String, Vec<u32>>,
}

/// The settings of an adapter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Simulated {
    pub(super) queues: u32,
    queues_max: u32,
    /// Queues that the table can name.
    pub(super) table_max: Option<u32>,
    pub(super) table: Vec<u32>,
    is_table_set: bool,
    pub(super) affinity: Vec<Vec<u32>>,
    pub(super) first_irq: u32,
    pub(super) xps: Vec<Vec<u32>>,
    pub(super) rps: Vec<Vec<u32>>,
    pub(super) flow_counts: Vec<u32>,
    /// The key that was set.
    pub(super) key: String,
    all: Vec<u32>,
    pub(super) is_enabled: bool,
    pub(super) profile: String,
    pub(super) base: CpuId,
    pub(super) last: CpuId,
    pub(super) processors_max: u32,
    pub(super) node: Option<u32>,
}

impl Simulated {
    /// Some settings that a machine with these CPUs may have.
    pub(super) fn new(
        seed: u64,
        system: System,
        online: &[CpuId],
        queues_max: Option<u32>,
    ) -> Self {
        let mut state = seed;
        let mut random = move |below: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below.max(1)
        };
        let queues_max = queues_max.unwrap_or(64).max(1);
        let queues = 1 + random(queues_max);
        let table_max = (system == System::Linux && random(3) == 0).then(|| 1 + random(queues_max));
        let nameable = queues.min(table_max.unwrap_or(queues));
        let all: Vec<u32> = online.iter().map(|cpu| cpu.1).collect();
        let entries = [64, 128, 100][random(3) as usize];
        let (table, is_table_set) = match random(4) {
            0 => (default_table(entries, nameable), false),
            1 => (default_table(entries, 1 + random(nameable)), true),
            2 => {
                let weights: Vec<u32> = (0..nameable.min(entries))
                    .map(|queue| u32::from(queue == 0) + random(2))
                    .collect();
                weight_table(entries, &weights)
                    .map_or((default_table(entries, nameable), false), |table| (table, true))
            }
            // A table that ethtool cannot make.
            _ => ((0..entries).map(|_| random(nameable)).collect(), true),
        };
        // `ethtool -x` does not show whether a table that is as the driver's was set.
        let is_table_set = is_table_set && table != default_table(entries, nameable);
        let mut some = |count: u32| -> Vec<Vec<u32>> {
            (0..count)
                .map(|_| {
                    all.iter()
                        .copied()
                        .filter(|_| random(3) == 0)
                        .collect::<std::collections::BTreeSet<_>>()
                })
                .map(|set| set.into_iter().collect())
                .collect()
        };
        let mut affinity = some(queues);
        for cpus in &mut affinity {
            if cpus.is_empty() {
                cpus.clone_from(&all.iter().take(1).copied().collect());
            }
            if cpus.is_empty() {
                cpus.push(0);
            }
        }
        let (xps, rps) = (some(queues), some(queues));
        let mut ends = [(); 2].map(|()| {
            online.get(random(online.len() as u32) as usize).copied().unwrap_or_default()
        });
        ends.sort_unstable();
        let [base, last] = ends;
        let profiles =
            ["Closest", "ClosestStatic", "NUMA", "NUMAStatic", "Conservative", "Balanced"];
        let profile = profiles[random(6) as usize].to_string();
        let flow_counts =
            if random(2) == 0 { vec![0; queues as usize] } else { vec![512; queues as usize] };
        Self {
            queues,
            queues_max,
            table_max,
            table,
            is_table_set,
            affinity: if system == System::Linux { affinity } else { Vec::new() },
            first_irq: 0,
            xps,
            rps,
            flow_counts,
            key: String::new(),
            all,
            is_enabled: random(4) > 0,
            profile,
            base,
            last,
            processors_max: 1 + random(16),
            node: (random(2) == 0).then(|| random(4)),
        }
    }

    /// As a reader shows it.
    pub(super) fn rss(&self, system: System) -> Rss {
        let common =
            Rss { is_enabled: Some(self.is_enabled), queues: Some(self.queues), ..Rss::default() };
        match system {
            System::Linux => Rss {
                queue_table: self.table.clone(),
                interrupts: (self.first_irq..).zip(self.affinity.iter().cloned()).collect(),
                xps: self.xps.clone(),
                rps: self.rps.clone(),
                ..common
            },
            System::Windows => Rss {
                profile: Some(self.profile.clone()),
                base: Some(self.base),
                last: Some(self.last),
                processors_max: Some(self.processors_max),
                node: self.node,
                ..common
            },
        }
    }

    fn set_queues(&mut self, queues: u32) -> Result<(), String> {
        let used = self.table.iter().max().copied().unwrap_or(0);
        if queues == 0 || queues > self.queues_max || (self.is_table_set && used >= queues) {
            return Err(format!("{queues} queues of {}, table up to {used}", self.queues_max));
        }
        let (count, known) = (queues as usize, self.affinity.len());
        self.queues = queues;
        self.affinity = vec![self.all.clone(); if known == 0 { 0 } else { count }];
        self.xps = vec![Vec::new(); count];
        self.rps = vec![Vec::new(); count];
        self.flow_counts.resize(count, 0);
        if !self.is_table_set {
            self.table = default_table(self.table.len() as u32, self.nameable());
        }
        Ok(())
    }

    /// The queues that a table may name.
    fn nameable(&self) -> u32 {
        self.queues.min(self.table_max.unwrap_or(self.queues))
    }

    fn set_table(&mut self, words: &[String]) -> Result<(), String> {
        let entries = self.table.len() as u32;
        if let [hkey, key] = words
            && hkey == "hkey"
        {
            self.key.clone_from(key);
            return Ok(());
        }
        let (first, words) = match words {
            [start, first, rest @ ..] if start == "start" => (number(first)?, rest),
            words => (0, words),
        };
        let numbers: Vec<u32> =
            words.iter().skip(1).map(|word| number(word)).collect::<Result<_, _>>()?;
        (self.table, self.is_table_set) =
            match (words.first().map(String::as_str), numbers.as_slice()) {
                (Some("default"), []) => (default_table(entries, self.nameable()), false),
                (Some("equal"), &[queues]) if queues > 0 && first + queues <= self.nameable() => {
                    (default_table(entries, queues), true)
                }
                (Some("weight"), weights) if first + weights.len() as u32 <= self.nameable() => {
                    (weight_table(entries, weights).ok_or("weights")?, true)
                }
                _ => return Err(format!("ethtool -X {words:?}")),
            };
        self.table.iter_mut().for_each(|queue| *queue += first);
        Ok(())
    }

    fn set_rss(&mut self, words: &[String]) -> Result<(), String> {
        let range = |words: &[String]| {
            words.iter().any(|word| word.contains("Processor") && word != "-MaxProcessors")
        };
        let profile =
            words.iter().position(|word| word == "-Profile").and_then(|at| words.get(at + 1));
        if range(words) && profile.unwrap_or(&self.profile) == "Balanced" {
            return Err("a range with the profile Balanced".into());
        }
        for pair in words.chunks(2) {
            let [parameter, value] = pair else { return Err(format!("{pair:?}")) };
            match parameter.as_str() {
                "-Profile" => self.profile.clone_from(value),
                "-BaseProcessorGroup" => self.base.0 = number(value)?,
                "-BaseProcessorNumber" => self.base.1 = number(value)?,
                "-MaxProcessorGroup" => self.last.0 = number(value)?,
                "-MaxProcessorNumber" => self.last.1 = number(value)?,
                "-MaxProcessors" => self.processors_max = number(value)?,
                "-NumberOfReceiveQueues" => self.queues = number(value)?,
                "-NumaNode" => self.node = Some(number(value)?).filter(|&node| node != 65_535),
                _ => return Err(format!("unknown parameter {parameter}")),
            }
        }
        if self.base > self.last || self.queues > self.queues_max {
            return Err(format!(
                "range {:?} to {:?}, {} queues",
                self.base, self.last, self.queues
            ));
        }
        Ok(())
    }
}

impl Settings {
    /// Runs a script: what follows the functions.
    pub(super) fn run(&mut self, script: &str) -> Result<(), String> {
        let system = if script.contains("#!/bin/sh") { System::Linux } else { System::Windows };
        let lines =
            script.lines().skip_while(|line| *line != "}" && !line.starts_with("# smbscope"));
        let mut depth = 0;
        for line in lines {
            let is_start = line.ends_with("() {") || line.starts_with("function ");
            if is_start || depth > 0 {
                depth = if line == "}" { 0 } else { 1 };
                continue;
            }
            if line.is_empty()
                || line.starts_with('#')
                || line == "set -eu"
                || line.starts_with('$')
            {
                continue;
            }
            self.line(line, system).map_err(|why| format!("{line}: {why}\n{script}"))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str, system: System) -> Result<(), String> {
        let words = words(line, system)?;
        let all: Vec<&str> = words.iter().map(String::as_str).collect();
        match all.as_slice() {
            [first, ..] if first.starts_with("state=") => {}
            ["wait_link" | "Wait-Link", name, _] => _ = self.adapter(name)?,
            ["ethtool", "-L", name, "combined", queues] => {
                let queues = number(queues)?;
                self.adapter(name)?.set_queues(queues)?;
            }
            ["ethtool", "-X", name, ..] => self.adapter(name)?.set_table(&words[3..])?,
            ["set_queue_affinity", name, queue, cpus] => {
                let (queue, cpus) = (number(queue)? as usize, self.online_of(list(cpus)?)?);
                *self.adapter(name)?.affinity.get_mut(queue).ok_or("no such queue")? = cpus;
            }
            ["echo", value, ">", path] => self.write(value, path)?,
            ["systemctl", "stop", "irqbalance"] => self.is_stopped = true,
            ["systemctl", "start" | "restart", "irqbalance"] => self.is_stopped = false,
            ["systemctl", "daemon-reload"] => {}
            ["ban_interrupts", _, _, names @ ..] => {
                for name in names {
                    self.adapter(name)?;
                }
                self.has_ban = true;
            }
            ["rm", "-f", "/etc/systemd/system/irqbalance.service.d/smbscope.conf"] => {
                self.has_ban = false
            }
            ["place_service", unit, cpus, node] => {
                number(node)?;
                self.placed_services.insert((*unit).to_owned(), list(cpus)?);
            }
            ["rm", "-f", path] => {
                let unit = path
                    .strip_prefix("/etc/systemd/system/")
                    .and_then(|path| path.strip_suffix(".d/smbscope-cores.conf"));
                self.placed_services.remove(unit.ok_or("unknown file")?).ok_or("no drop-in")?;
            }
            ["place_process", id, "smbd", cpus] => {
                let (id, cpus) = (number(id)?, self.online_of(list(cpus)?)?);
                let group = self.cpusets.get(&id);
                if group.is_some_and(|group| cpus.iter().all(|cpu| !group.contains(cpu))) {
                    return Err("EINVAL: no CPU of the control group".into());
                }
                *self.processes.get_mut(&id).ok_or("no such process")? = cpus;
            }
            ["Enable-NetAdapterRss", "-Name", name] => self.adapter(name)?.is_enabled = true,
            ["Disable-NetAdapterRss", "-Name", name] => self.adapter(name)?.is_enabled = false,
            ["Set-NetAdapterRss", "-Name", name, ..] => self.adapter(name)?.set_rss(&words[3..])?,
            _ => return Err("unknown command".into()),
        }
        Ok(())
    }

    fn adapter(&mut self, name: &str) -> Result<&mut Simulated, String> {
        self.adapters.get_mut(name).ok_or_else(|| format!("no adapter {name:?}"))
    }

    /// The kernel refuses CPUs of which none is online.
    fn online_of(&self, cpus: Vec<u32>) -> Result<Vec<u32>, String> {
        let has_online = cpus.iter().any(|cpu| self.online.contains(cpu));
        if has_online { Ok(cpus) } else { Err(format!("EINVAL: {cpus:?} are offline")) }
    }

    fn write(&mut self, value: &str, path: &str) -> Result<(), String> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match parts.as_slice() {
            ["proc", "sys", "net", "core", "rps_sock_flow_entries"] => {
                self.flow_entries = number(value)?
            }
            ["proc", "irq", irq, "smp_affinity_list"] => {
                let (irq, cpus) = (number(irq)?, self.online_of(list(value)?)?);
                let slot = self.adapters.values_mut().find_map(|adapter| {
                    adapter.affinity.get_mut(irq.checked_sub(adapter.first_irq)? as usize)
                });
                *slot.ok_or("no such interrupt")? = cpus;
            }
            ["sys", "class", "net", name, "queues", queue, file] => {
                let adapter = self.adapter(name)?;
                let (direction, queue) = queue.split_once('-').ok_or("queue")?;
                let queue = number(queue)? as usize;
                match (direction, *file) {
                    ("tx", "xps_cpus") => {
                        *adapter.xps.get_mut(queue).ok_or("no such queue")? = mask(value)?
                    }
                    ("rx", "rps_cpus") => {
                        *adapter.rps.get_mut(queue).ok_or("no such queue")? = mask(value)?
                    }
                    ("rx", "rps_flow_cnt") => {
                        *adapter.flow_counts.get_mut(queue).ok_or("no such queue")? =
                            number(value)?;
                    }
                    _ => return Err("unknown file".into()),
                }
            }
            _ => return Err("unknown path".into()),
        }
        Ok(())
    }
}

/// The words of a line; an error if anything but quoted text has a meaning of its own.
pub(super) fn words(line: &str, system: System) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let is_quote = c == '\'' || (system == System::Windows && is_powershell_quote(c));
        if is_quote {
            let word = word.get_or_insert_default();
            loop {
                let inside = characters.next().ok_or("a quote without an end")?;
                if system == System::Windows && is_powershell_quote(inside) {
                    match characters.next_if(|&next| is_powershell_quote(next)) {
                        Some(second) => word.push(second),
                        None => break,
                    }
                } else if system == System::Linux && inside == '\'' {
                    break;
                } else {
                    word.push(inside);
                }
            }
        } else if c == '\\' && system == System::Linux {
            word.get_or_insert_default().push(characters.next().ok_or("a backslash at the end")?);
        } else if c == ' ' {
            words.extend(word.take());
        } else if c.is_ascii_alphanumeric() || "-_=/.,:>$\"()".contains(c) {
            word.get_or_insert_default().push(c);
        } else {
            return Err(format!("{c:?} is not quoted"));
        }
    }
    words.extend(word);
    Ok(words)
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn list(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(number(first)?..=number(last)?);
    }
    Ok(cpus)
}

fn mask(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for (group, digits) in text.rsplit(',').enumerate() {
        let bits = u32::from_str_radix(digits, 16).map_err(|_| "mask")?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group as u32 * 32 + bit));
    }
    Ok(cpus)
}
