//! The commands that set a layout, and those that take it back.
//!
//! Owns steps with what they do, what they interrupt, their undo and their check, the order of adapters, and scripts.
//! Does not own the layout ([`super::layout`]). Nothing is executed here.
//!
//! A step exists only if the settings found are known and differ: its undo sets what was found. An adapter's plan is whole
//! or absent: if one of its steps cannot be made or undone, it has none, and the reason is named. One adapter is changed
//! at a time, the one that carries the management address last, and the scripts wait for its link before they continue.

use std::collections::BTreeMap;

use serde::Serialize;

use super::layout::{AdapterLayout, Layout, Unplaced};
use super::topology::{Adapter, Machine, System};

mod linux;
#[cfg(test)]
mod tests;
mod windows;

/// What else decides the commands.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Name of the adapter that carries the management address.
    pub management: Option<String>,
    /// Linux: `rps_sock_flow_entries` as found, and `rps_flow_cnt` by receive queue of each adapter by name. Without
    /// them there is no step for receive flow steering.
    pub flow_entries: Option<u32>,
    pub flow_counts: BTreeMap<String, Vec<u32>>,
}

/// Commands for a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Commands {
    pub system: System,
    /// In the order in which they are applied.
    pub steps: Vec<Step>,
    pub refused: Vec<Refusal>,
    /// Windows: what the names of adapters are.
    pub names_are: Selector,
}

/// By what Windows' commands find an adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selector {
    /// The alias of the interface: `Ethernet 4`.
    #[default]
    Name,
    /// The description of the interface, which is all that a trace has.
    Description,
}

impl Selector {
    fn parameter(self) -> &'static str {
        match self {
            Self::Name => "Name",
            Self::Description => "InterfaceDescription",
        }
    }
}

/// A step about an adapter, or about the machine.
pub type Step = crate::script::Step<Details>;

/// What these steps have besides their commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Details {
    /// Name of the adapter; `None` for the machine.
    pub card: Option<String>,
    pub kind: Kind,
    pub interrupts: Interruption,
}

/// What a step sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Windows: the settings found are written to a file.
    Save,
    /// Windows: RSS on.
    Enable,
    /// Windows: CPUs, profile and queues of an adapter.
    Processors,
    /// Linux: irqbalance is stopped while interrupts are set.
    IrqbalanceStop,
    /// Linux: irqbalance leaves the adapters' interrupts alone.
    IrqbalanceBan,
    /// Linux: number of queues.
    Queues,
    /// Linux: indirection table.
    Table,
    /// Linux: CPU of each queue's interrupt.
    Interrupts,
    /// Linux: transmit queue of each CPU (XPS).
    Transmit,
    /// Linux: receive packet steering (RPS).
    Steering,
    /// Linux: receive flow steering (RFS).
    FlowSteering,
    /// Linux: CPUs and memory of the server's service, from its next start.
    ServerUnit,
    /// Linux: CPUs of the server's processes that run.
    ServerProcesses,
}

/// What a step interrupts, in apply and undo alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interruption {
    /// Nothing.
    None,
    /// The adapter restarts: its link is down for some seconds, TCP connections continue after retransmissions.
    AdapterRestart,
    /// The driver stops and starts its queues: packets are lost for up to some seconds with most drivers.
    QueueRestart,
    /// A service of the system restarts, without effect on traffic.
    Service,
}

/// What is left as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub card: String,
    pub reason: Reason,
}

/// Why there is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The adapter's name has characters that a command must not contain.
    Name,
    /// The range of CPUs found is unknown.
    RangeUnknown,
    /// The number of queues found is unknown.
    QueuesUnknown,
    /// The interrupt of each queue, or where it goes, is unknown.
    InterruptsUnknown,
    /// `ethtool -X` cannot make the table that was found, so that it could not be restored.
    TableNotRestorable,
    /// The settings found for RPS are unknown.
    SteeringUnknown,
    /// RSS is on or off, and which is unknown.
    StateUnknown,
    /// Its queues are on several nodes, and its own node is unknown.
    NodeUnknown,
    /// It is slow, next to faster adapters: one CPU receives for it.
    Minor,
    /// A team or bond: its members are set.
    Team,
    /// The recording or the trace shows that it gains nothing.
    NoGain,
}

/// The commands of a layout.
pub fn commands(machine: &Machine, layout: &Layout, request: &Request) -> Commands {
    let mut commands = Commands { system: machine.system, ..Commands::default() };
    let mut cards: Vec<(&AdapterLayout, &Adapter)> = layout
        .cards
        .iter()
        .filter_map(|layout| Some((layout, machine.cards.get(layout.card)?)))
        .collect();
    cards.sort_by_key(|(layout, card)| {
        (request.management.as_ref() == Some(&card.name), layout.card)
    });
    match machine.system {
        System::Windows => windows::commands(&cards, &mut commands),
        System::Linux => linux::commands(machine, &cards, request, &mut commands),
    }
    let unplaced = layout.unplaced.iter().filter_map(|(index, why)| {
        let reason = match why {
            Unplaced::NodeUnknown => Reason::NodeUnknown,
            Unplaced::Minor => Reason::Minor,
            Unplaced::Team => Reason::Team,
        };
        Some(Refusal { card: machine.cards.get(*index)?.name.clone(), reason })
    });
    commands.refused.extend(unplaced);
    commands
}

impl Layout {
    /// Leaves what the commands make: adapters without commands stay as they are.
    pub fn as_commanded(mut self, commands: &Commands) -> Layout {
        self.keep(|card| commands.refused.iter().all(|refusal| refusal.card != card.name));
        self
    }
}

impl Commands {
    /// Takes the adapters' steps back, because they gain nothing. The server's processes are placed nevertheless if all
    /// adapters receive on their own node today.
    pub fn drop_without_gain(&mut self, machine: &Machine, layout: &Layout) {
        let is_new =
            |card: &&AdapterLayout| self.refused.iter().all(|refusal| refusal.card != card.name);
        let refusal =
            |card: &AdapterLayout| Refusal { card: card.name.clone(), reason: Reason::NoGain };
        let refused: Vec<_> = layout.cards.iter().filter(is_new).map(refusal).collect();
        self.refused.extend(refused);
        self.steps = match self.system {
            System::Windows => Vec::new(),
            System::Linux => linux::without_adapters(machine),
        };
    }

    /// The steps in the order in which they are taken back: adapters in the same order, so that the management address
    /// is last again; of an adapter first table and queues, in reverse, because the driver may reset all else with
    /// them; the steps of the machine at the end.
    pub fn undo_order(&self) -> Vec<&Step> {
        let mut order = Vec::new();
        for card in self
            .steps
            .chunk_by(|a, b| a.details.card == b.details.card)
            .filter(|steps| steps.iter().any(|s| s.details.card.is_some()))
        {
            order.extend(card.iter().rev().filter(|step| step.details.kind.restarts()));
            order.extend(card.iter().filter(|step| !step.details.kind.restarts()));
        }
        order.extend(self.steps.iter().rev().filter(|step| step.details.card.is_none()));
        order
    }

    /// The script that applies the layout. PowerShell needs the byte order mark that is there if a name is not ASCII.
    pub fn apply_script(&self) -> String {
        self.script("apply", self.steps.iter().map(|step| (step, &step.apply)))
    }

    /// The script that restores the settings found.
    pub fn undo_script(&self) -> String {
        self.script("undo", self.undo_order().into_iter().map(|step| (step, &step.undo)))
    }

    fn script<'a>(
        &'a self,
        what: &str,
        steps: impl Iterator<Item = (&'a Step, &'a Vec<String>)>,
    ) -> String {
        let mut lines = match self.system {
            System::Windows => windows::preamble(what),
            System::Linux => linux::preamble(what),
        };
        let mut current = None;
        for (step, commands) in steps {
            if current != Some(&step.details.card) {
                lines.extend(current.and_then(Option::as_ref).map(|card| self.wait(card)));
                lines.push(String::new());
                lines.extend(step.details.card.as_ref().map(|card| self.remember(card)));
                current = Some(&step.details.card);
            }
            lines.push(format!("# {}", step.does));
            lines.extend(commands.iter().cloned());
        }
        lines.extend(current.and_then(Option::as_ref).map(|card| self.wait(card)));
        let mut text = lines.join("\n") + "\n";
        if self.system == System::Windows && !text.is_ascii() {
            text.insert(0, '\u{feff}');
        }
        text
    }

    fn remember(&self, card: &str) -> String {
        match self.system {
            System::Windows => windows::remember(card, self.names_are),
            System::Linux => linux::remember(card),
        }
    }

    fn wait(&self, card: &str) -> String {
        match self.system {
            System::Windows => windows::wait(card, self.names_are),
            System::Linux => linux::wait(card),
        }
    }
}

impl Kind {
    /// Whether the driver may reset other settings of the adapter with it.
    fn restarts(self) -> bool {
        matches!(self, Self::Enable | Self::Processors | Self::Queues | Self::Table)
    }
}
