//! Commands for Linux, in sh.
//!
//! Owns the queues, the indirection table, and the CPUs of interrupts, XPS, RPS and RFS with their undo, and the
//! ban list of irqbalance. Does not own the layout.
//!
//! ethtool(8) (`-L`, `-X`), `Documentation/core-api/irq/irq-affinity.rst`, `Documentation/networking/scaling.rst`,
//! irqbalance(1) (`--banirq`), systemd.unit(5) (drop-in files).

use super::super::layout::AdapterLayout;
use super::super::toeplitz::{default_table, weight_table};
use super::super::topology::{Adapter, Machine};
use super::{Commands, Details, Interruption, Kind, Reason, Refusal, Request, Step};
use crate::script::{Check, names, quote};

mod irqbalance;
mod masks;
mod server;

use masks::{list, mask};

/// Entries of the table of flows for RFS: the value for a server of medium load in `scaling.rst`.
const FLOW_ENTRIES: u32 = 32_768;

/// The most queues whose weights are computed; no adapter has as many.
const QUEUES_MAX: u32 = 4_096;

/// The functions that lines of the steps call.
const FUNCTIONS: &str = r#"set -eu

# Waits until the link of adapter $1 is in state $2 again.
wait_link() {
    second=0
    until [ "$(cat "/sys/class/net/$1/operstate" 2>/dev/null)" = "$2" ]; do
        second=$((second + 1))
        if [ "$second" -gt 60 ]; then
            echo "the link of $1 is not $2 after 60 seconds; the script stops here" >&2
            exit 1
        fi
        sleep 1
    done
}

# Prints the numbers of all interrupts of adapter $1.
card_irqs() {
    for folder in "/sys/class/net/$1/device/msi_irqs" "/sys/class/net/$1/device/../msi_irqs"; do
        if [ -d "$folder" ]; then ls "$folder"; return; fi
    done
}

# Prints the number of the interrupt of receive queue $2 of adapter $1, by its name in /proc/interrupts.
queue_irq() {
    for irq in $(card_irqs "$1" | sort -n); do
        awk -v irq="$irq:" -v queue="$2" '
            $1 == irq && $NF !~ /[-.][Tt]x-[0-9]+$/ && $NF ~ "(-|input\\.|comp)" queue "(@.*)?$" { print irq + 0 }
        ' /proc/interrupts
    done | head -n 1
}

# Lets the interrupt of receive queue $2 of adapter $1 go to the processors $3.
set_queue_affinity() {
    irq=$(queue_irq "$1" "$2")
    if [ -z "$irq" ]; then
        echo "no interrupt of queue $2 of $1 was found; set its smp_affinity_list to $3 by hand" >&2
        return
    fi
    echo "$3" > "/proc/irq/$irq/smp_affinity_list"
}

# Lets irqbalance, with its options $1, leave alone the interrupts $2 (numbers) and those of the adapters that follow.
ban_interrupts() {
    arguments=$1
    for irq in $2; do arguments="$arguments --banirq=$irq"; done
    shift 2
    for card in "$@"; do
        for irq in $(card_irqs "$card"); do arguments="$arguments --banirq=$irq"; done
    done
    mkdir -p /etc/systemd/system/irqbalance.service.d
    printf '[Service]\nExecStart=\nExecStart=%s --foreground %s\n' \
        "$(command -v irqbalance)" "$arguments" > /etc/systemd/system/irqbalance.service.d/smbscope.conf
    systemctl daemon-reload
}

# Lets the service $1 start on the processors $2, with memory of node $3 first.
place_service() {
    mkdir -p "/etc/systemd/system/$1.d"
    printf '[Service]\nCPUAffinity=\nCPUAffinity=%s\nNUMAPolicy=preferred\nNUMAMask=%s\n' "$2" "$3" \
        > "/etc/systemd/system/$1.d/smbscope-cores.conf"
    systemctl daemon-reload
}

# Lets all threads of process $1, if it still is one of the program $2, run on the processors $3.
place_process() {
    case "$(cat "/proc/$1/comm" 2>/dev/null)" in
        "$2"*) taskset -acp "$3" "$1" ;;
        *) echo "process $1 is no longer one of $2; it is left out" >&2 ;;
    esac
}"#;

pub(super) fn commands(
    machine: &Machine,
    cards: &[(&AdapterLayout, &Adapter)],
    request: &Request,
    commands: &mut Commands,
) {
    let (mut steps, mut planned) = (Vec::new(), Vec::new());
    for (layout, card) in cards {
        if names::is_interface_name(&card.name) {
            let mut writer =
                Writer { machine, layout, card, steps: Vec::new(), refused: Vec::new() };
            writer.card(request);
            // Queues, table and interrupts belong together: a part of them is another plan.
            if writer.refused.is_empty() {
                steps.extend(writer.steps);
                planned.push(*layout);
            }
            let refusal = |reason| Refusal { card: card.name.clone(), reason };
            commands.refused.extend(writer.refused.into_iter().map(refusal));
        } else {
            commands.refused.push(Refusal { card: card.name.clone(), reason: Reason::Name });
        }
    }
    let mut pinned: Vec<&String> = steps
        .iter()
        .filter(|step| step.details.kind == Kind::Interrupts)
        .filter_map(|step| step.details.card.as_ref())
        .collect();
    pinned.dedup();
    if machine.irqbalance == Some(true) && !pinned.is_empty() {
        commands.steps.push(irqbalance::stop());
        let ban = irqbalance::ban(machine, &pinned);
        commands.steps.extend(steps);
        commands.steps.push(ban);
    } else {
        commands.steps.extend(steps);
    }
    commands.steps.extend(server::steps(machine, &planned));
}

/// The steps that remain where no adapter changes: those for the server's processes.
pub(super) fn without_adapters(machine: &Machine) -> Vec<Step> {
    server::steps(machine, &[])
}

/// The start of a script.
pub(super) fn preamble(what: &str) -> Vec<String> {
    let text = format!("#!/bin/sh\n# smbscope plan cores: {what}. Run it as root.\n{FUNCTIONS}");
    text.lines().map(String::from).collect()
}

/// Keeps the state of an adapter's link.
pub(super) fn remember(card: &str) -> String {
    format!("state=$(cat {})", quote::sh(&format!("/sys/class/net/{card}/operstate")))
}

/// Waits for it.
pub(super) fn wait(card: &str) -> String {
    format!("wait_link {} \"$state\"", quote::sh(card))
}

/// Makes the steps of one adapter.
struct Writer<'a> {
    machine: &'a Machine,
    layout: &'a AdapterLayout,
    card: &'a Adapter,
    steps: Vec<Step>,
    refused: Vec<Reason>,
}

/// The queues of an adapter before and after.
#[derive(Clone, Copy)]
struct Queues {
    found: usize,
    /// Queues of which the first `serving` have entries of the table, if it was set.
    planned: usize,
    serving: usize,
}

impl Queues {
    fn is_changed(self) -> bool {
        self.found != self.planned
    }
}

impl Writer<'_> {
    fn card(&mut self, request: &Request) {
        let Some(found) = self.card.rss.queues.filter(|&queues| queues > 0) else {
            self.refused.push(Reason::QueuesUnknown);
            return;
        };
        let found = found as usize;
        let interrupts = &self.card.rss.interrupts;
        let is_known =
            interrupts.len() >= found && interrupts.iter().all(|(_, cpus)| !cpus.is_empty());
        if !is_known {
            self.refused.push(Reason::InterruptsUnknown);
        }
        let queues = self.queues_and_table(found, is_known);
        if is_known {
            self.interrupts(queues);
        }
        self.transmit(queues);
        self.steering(queues);
        self.flows(queues, request);
    }

    fn step(
        &mut self,
        kind: Kind,
        does: String,
        commands: (Vec<String>, Vec<String>),
        checks: Vec<Check>,
    ) {
        let (apply, undo) = commands;
        let interrupts =
            if kind == Kind::Queues { Interruption::QueueRestart } else { Interruption::None };
        self.steps.push(Step {
            does,
            apply,
            undo,
            checks,
            details: Details { card: Some(self.card.name.clone()), kind, interrupts },
        });
    }

    fn queues_and_table(&mut self, found: usize, is_known: bool) -> Queues {
        let wanted = self.layout.queues.len();
        let unchanged = Queues { found, planned: found, serving: wanted.min(found) };
        let table = &self.card.rss.queue_table;
        let (entries, name) = (count(table.len()), quote::sh(&self.card.name));
        // With more queues than the table can name, the driver's own table has those that it can.
        let nameable = count(found).min(self.card.rss_queue_limit.unwrap_or(u32::MAX));
        let undo = restore(table, nameable);
        if !table.is_empty() && undo.is_none() {
            self.refused.push(Reason::TableNotRestorable);
            return unchanged;
        }
        // Fewer queues need no restart where the table decides which are used.
        let restart = (wanted > found || (wanted < found && table.is_empty())) && is_known;
        let planned = if restart { wanted } else { found };
        if restart {
            self.step(
                Kind::Queues,
                format!("Use {wanted} queues"),
                (
                    vec![format!("ethtool -L {name} combined {wanted}")],
                    vec![format!("ethtool -L {name} combined {found}")],
                ),
                vec![Check {
                    command: format!("ethtool -l {name}"),
                    expected: format!("Combined: {wanted} under \"Current hardware settings\""),
                }],
            );
        }
        let serving = wanted.min(planned);
        if let Some(undo) = undo.filter(|_| *table != default_table(entries, count(serving))) {
            self.step(
                Kind::Table,
                format!(
                    "Give the entries of the indirection table to queues 0 to {} in turn",
                    serving.saturating_sub(1)
                ),
                (
                    vec![format!("ethtool -X {name} equal {serving}")],
                    vec![format!("ethtool -X {name} {undo}")],
                ),
                vec![Check {
                    command: format!("ethtool -x {name}"),
                    expected: format!(
                        "only the queues 0 to {} in the table",
                        serving.saturating_sub(1)
                    ),
                }],
            );
        }
        Queues { found, planned, serving: if table.is_empty() { planned } else { serving } }
    }

    /// Each queue's interrupt on its CPU; queues without entries of the table share them.
    fn interrupts(&mut self, queues: Queues) {
        let name = quote::sh(&self.card.name);
        let set = |queue: usize, cpus: &str| match self.card.rss.interrupts.get(queue) {
            Some((irq, _)) if !queues.is_changed() => {
                format!("echo {cpus} > /proc/irq/{irq}/smp_affinity_list")
            }
            _ => format!("set_queue_affinity {name} {queue} {cpus}"),
        };
        let apply: Vec<String> = (0..queues.planned)
            .zip(self.layout.queues.iter().cycle())
            .map(|(queue, cpu)| set(queue, &cpu.1.to_string()))
            .collect();
        let undo: Vec<String> = self
            .card
            .rss
            .interrupts
            .iter()
            .take(queues.found)
            .enumerate()
            .map(|(queue, (_, cpus))| set(queue, &list(cpus)))
            .collect();
        if apply == undo {
            return;
        }
        let processors = list(&self.layout.queues.iter().map(|cpu| cpu.1).collect::<Vec<_>>());
        let check = Check {
            command: format!(
                "for irq in $(ls {}); do cat /proc/irq/$irq/effective_affinity_list; done",
                quote::sh(&format!("/sys/class/net/{}/device/msi_irqs", self.card.name))
            ),
            expected: format!("CPU {processors}, and their counts in /proc/interrupts grow"),
        };
        let does = format!("Send the interrupts of the queues to CPU {processors}");
        self.step(Kind::Interrupts, does, (apply, undo), vec![check]);
    }

    /// The threads of a queue's core transmit on that queue.
    fn transmit(&mut self, queues: Queues) {
        let found = &self.card.rss.xps;
        if found.is_empty() {
            return;
        }
        let planned = if queues.is_changed() { queues.planned } else { found.len() };
        let apply: Vec<String> = (0..planned)
            .map(|queue| {
                let cpu = self.layout.queues.get(queue).filter(|_| queue < queues.serving);
                self.queue_file(
                    "tx",
                    queue,
                    "xps_cpus",
                    &mask(&cpu.map(|cpu| self.threads(*cpu)).unwrap_or_default()),
                )
            })
            .collect();
        let undo: Vec<String> = found
            .iter()
            .enumerate()
            .map(|(queue, cpus)| self.queue_file("tx", queue, "xps_cpus", &mask(cpus)))
            .collect();
        if apply != undo {
            let check = self.queue_check("tx", "xps_cpus", "the masks that were set");
            let does = "Transmit on the queue whose interrupts the same core serves (XPS)".into();
            self.step(Kind::Transmit, does, (apply, undo), vec![check]);
        }
    }

    /// RPS where the hardware has few queues; off where it has enough.
    fn steering(&mut self, queues: Queues) {
        let found = &self.card.rss.rps;
        if found.is_empty() {
            if !self.layout.rps.is_empty() {
                self.refused.push(Reason::SteeringUnknown);
            }
            return;
        }
        let planned = if queues.is_changed() { queues.planned } else { found.len() };
        let cpus: Vec<u32> = self.layout.rps.iter().map(|cpu| cpu.1).collect();
        let apply: Vec<String> = (0..planned)
            .map(|queue| self.queue_file("rx", queue, "rps_cpus", &mask(&cpus)))
            .collect();
        let undo: Vec<String> = found
            .iter()
            .enumerate()
            .map(|(queue, cpus)| self.queue_file("rx", queue, "rps_cpus", &mask(cpus)))
            .collect();
        if apply == undo {
            return;
        }
        let does = if cpus.is_empty() {
            "Switch receive packet steering (RPS) off: there are enough queues".into()
        } else {
            format!(
                "Steer received packets to the CPUs {} (RPS): there are few queues",
                list(&cpus)
            )
        };
        let check = self.queue_check("rx", "rps_cpus", &mask(&cpus));
        self.step(Kind::Steering, does, (apply, undo), vec![check]);
    }

    /// RFS with RPS: a packet goes to the CPU where its socket is read.
    fn flows(&mut self, queues: Queues, request: &Request) {
        let counts = request.flow_counts.get(&self.card.name);
        let (Some(entries), Some(counts)) = (request.flow_entries, counts) else { return };
        if self.layout.rps.is_empty()
            || counts.is_empty()
            || counts.len() != self.card.rss.rps.len()
        {
            return;
        }
        let planned = if queues.is_changed() { queues.planned } else { counts.len() };
        let each = (FLOW_ENTRIES / count(planned).max(1)).to_string();
        let global =
            |entries: u32| format!("echo {entries} > /proc/sys/net/core/rps_sock_flow_entries");
        let mut apply = vec![global(entries.max(FLOW_ENTRIES))];
        apply.extend((0..planned).map(|queue| self.queue_file("rx", queue, "rps_flow_cnt", &each)));
        let mut undo = vec![global(entries)];
        undo.extend(counts.iter().enumerate().map(|(queue, count)| {
            self.queue_file("rx", queue, "rps_flow_cnt", &count.to_string())
        }));
        if apply != undo {
            let does = "Steer packets to the CPU where their socket is read (RFS)".into();
            let check = self.queue_check("rx", "rps_flow_cnt", &each);
            self.step(Kind::FlowSteering, does, (apply, undo), vec![check]);
        }
    }

    fn queue_file(&self, direction: &str, queue: usize, file: &str, value: &str) -> String {
        let path = format!("/sys/class/net/{}/queues/{direction}-{queue}/{file}", self.card.name);
        format!("echo {value} > {}", quote::sh(&path))
    }

    fn queue_check(&self, direction: &str, file: &str, expected: &str) -> Check {
        let folder = quote::sh(&format!("/sys/class/net/{}/queues", self.card.name));
        Check {
            command: format!("grep . {folder}/{direction}-*/{file}"),
            expected: expected.into(),
        }
    }

    /// The threads of a CPU's core that are online.
    fn threads(&self, cpu: (u32, u32)) -> Vec<u32> {
        let cpus = &self.machine.cpus;
        let core = cpus.iter().find(|other| (other.group, other.number) == cpu).map(|cpu| cpu.core);
        cpus.iter()
            .filter(|cpu| cpu.is_online && Some(cpu.core) == core)
            .map(|cpu| cpu.number)
            .collect()
    }
}

/// The arguments of `ethtool -X` that make the table which was found with `queues` queues, if there are any. Whether a
/// table that is as the driver makes it was set is not known: it becomes the driver's again.
fn restore(table: &[u32], queues: u32) -> Option<String> {
    let entries = count(table.len());
    if table.is_empty() {
        return None;
    }
    if *table == default_table(entries, queues) {
        return Some("default".into());
    }
    let last = *table.iter().max()?;
    let used = last.checked_add(1).filter(|&used| used <= queues.min(QUEUES_MAX))?;
    // From the first queue that is used: `start`, which ethtool has since 4.14.
    let first = *table.iter().min()?;
    let start = if first == 0 { String::new() } else { format!("start {first} ") };
    let from_first: Vec<u32> = table.iter().map(|queue| queue - first).collect();
    let used = used - first;
    if from_first == default_table(entries, used) {
        return Some(format!("{start}equal {used}"));
    }
    let mut weights = vec![0_u32; used as usize];
    for &queue in &from_first {
        *weights.get_mut(queue as usize)? += 1;
    }
    (weight_table(entries, &weights).as_deref() == Some(&from_first)).then(|| {
        let weights = weights.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        format!("{start}weight {weights}")
    })
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
