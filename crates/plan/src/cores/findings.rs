//! What is wrong with a machine's receive-side scaling, interrupts and CPUs.
//!
//! Owns the closed list of kinds. Each rule file below has its kinds with their severity, sentence and numbers: `placement`
//! about CPUs, `paths` about SMB Multichannel, `settings` about settings and counters, `hardware` about the bus, rings and power,
//! `servers` about processes, `received` about a trace. It proposes nothing: a layout does.
//!
//! Rules: Windows driver documentation ("Introduction to Receive Side Scaling", "Standardized INF Keywords for RSS",
//! `NDIS_RECEIVE_SCALE_PARAMETERS`); Linux `Documentation/networking/scaling.rst`, `core-api/irq/irq-affinity.rst`.

use serde::Serialize;
use serde_json::{Map, Value as Json};
use smbscope_findings::{Weight, kinds};

pub use smbscope_findings::Severity;

use super::topology::{Adapter, Machine};

mod hardware;
mod paths;
mod placement;
mod received;
pub(super) mod servers;
mod settings;
#[cfg(test)]
pub(super) mod tests;

/// Findings of one machine that are kept.
const FINDINGS_MAX: usize = 10_000;

kinds! {
    /// What can be wrong with a machine's receive work.
    pub enum FindingKind {
        OneProcessor = placement::ONE_PROCESSOR,
        FewQueuesInTable = placement::FEW_QUEUES_IN_TABLE,
        SiblingThreads = placement::SIBLING_THREADS,
        ForeignNode = placement::FOREIGN_NODE,
        SharedCores = placement::SHARED_CORES,
        FirstProcessor = placement::FIRST_PROCESSOR,
        TunnelPath = paths::TUNNEL_PATH,
        PathWithoutRss = paths::PATH_WITHOUT_RSS,
        RssOff = settings::RSS_OFF,
        ProfileIgnores = settings::PROFILE_IGNORES,
        UnevenTable = placement::UNEVEN_TABLE,
        MoreProcessorsThanQueues = placement::MORE_PROCESSORS_THAN_QUEUES,
        IrqbalanceActive = settings::IRQBALANCE_ACTIVE,
        InterruptsFloat = settings::INTERRUPTS_FLOAT,
        RpsOnRss = settings::RPS_ON_RSS,
        XpsMissing = settings::XPS_MISSING,
        Teamed = settings::TEAMED,
        ModerationOff = settings::MODERATION_OFF,
        ModerationHigh = settings::MODERATION_HIGH,
        RingLosses = settings::RING_LOSSES,
        Squeezed = settings::SQUEEZED,
        FlowFilters = settings::FLOW_FILTERS,
        PowerSaving = settings::POWER_SAVING,
        PciDegraded = hardware::PCI_DEGRADED,
        PciSlower = hardware::PCI_SLOWER,
        PciReadRequest = hardware::PCI_READ_REQUEST,
        RingShort = hardware::RING_SHORT,
        DeepIdle = hardware::DEEP_IDLE,
        PowerPlan = hardware::POWER_PLAN,
        ReceivedOnFew = received::RECEIVED_ON_FEW,
        QueuesBeyondTable = settings::QUEUES_BEYOND_TABLE,
        ServerConfined = servers::SERVER_CONFINED,
        ServerSpread = servers::SERVER_SPREAD,
        ServerMemory = servers::SERVER_MEMORY,
        ServerOfSeveralNodes = servers::SERVER_OF_SEVERAL_NODES,
        ServerInSystem = servers::SERVER_IN_SYSTEM,
        VirtualFunction = settings::VIRTUAL_FUNCTION,
        VirtualAdapter = settings::VIRTUAL_ADAPTER,
    }
}

/// A finding about one adapter, or about the machine.
pub type Finding = smbscope_findings::Finding<FindingKind, Details>;

/// What these findings have besides a sentence and a severity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Details {
    /// Name of the adapter; `None` for the machine.
    pub card: Option<String>,
    /// Its numbers; their names are those of the kind.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub evidence: Map<String, Json>,
}

/// A CPU as (group, number); the group is 0 except on Windows with more than 64 CPUs.
pub type Processor = (u32, u32);

/// Finds everything. The most severe are first; otherwise adapters in their order.
pub fn find(machine: &Machine) -> Vec<Finding> {
    let mut findings = Findings { found: Vec::new() };
    placement::find(machine, &mut findings);
    paths::find(machine, &mut findings);
    received::find(machine, &mut findings);
    settings::find(machine, &mut findings);
    hardware::find(machine, &mut findings);
    servers::find(machine, &mut findings);
    findings.found.sort_by_key(Finding::severity);
    findings.found
}

/// The findings so far.
struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    /// Adds a finding. Numbers that are not known are left out.
    fn add(
        &mut self,
        card: Option<&Adapter>,
        kind: FindingKind,
        severity: Severity,
        sentence: String,
        evidence: Json,
    ) {
        if self.found.len() >= FINDINGS_MAX {
            return;
        }
        let mut evidence = match evidence {
            Json::Object(evidence) => evidence,
            _ => Map::new(),
        };
        evidence.retain(|_, value| !value.is_null());
        self.found.push(
            smbscope_findings::Finding::new(kind, sentence)
                .with_weight(Weight::Severity { severity })
                .with_details(Details { card: card.map(|card| card.name.clone()), evidence }),
        );
    }
}

/// Adapters that may carry receive work: those whose link is not known to be down.
fn cards(machine: &Machine) -> impl Iterator<Item = &Adapter> {
    machine.cards.iter().filter(|card| card.is_up != Some(false))
}

fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A CPU in evidence.
fn cpu((group, number): Processor) -> Json {
    serde_json::json!({ "group": group, "number": number })
}

fn name((group, number): Processor) -> String {
    if group == 0 { number.to_string() } else { format!("{group}:{number}") }
}
