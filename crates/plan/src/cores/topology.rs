//! CPUs and network adapters of a machine, as far as a layout needs them.

use serde::Serialize;

use super::json;
use super::load::Received;
use super::processes::Processes;
use super::read::{
    IdleState, MultichannelConnection, NetworkInterface, PciLink, PowerPlan, RssProcessor,
    SoftnetRow,
};

/// The operating system, which decides commands and limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    #[default]
    Linux,
    Windows,
}

/// A logical processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Its number, as the operating system counts; on Windows within its group.
    pub number: u32,
    /// Processor group (Windows, groups of at most 64); 0 elsewhere.
    pub group: u32,
    pub socket: u32,
    pub node: u32,
    /// Number of the core, unique in the machine.
    pub core: u32,
    /// Which hardware thread of its core it is, 0 for the first.
    pub thread: u32,
    pub is_online: bool,
}

/// How an adapter reaches the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A card.
    #[default]
    Physical,
    /// A virtual function of a card (SR-IOV).
    VirtualFunction,
    /// vmbus, virtio, vmxnet3 and the like.
    Virtual,
}

/// A network adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Adapter {
    pub name: String,
    pub driver: Option<String>,
    pub kind: Kind,
    /// NUMA node; unknown on machines with one, and of many virtual adapters.
    pub node: Option<u32>,
    /// Link speed.
    pub bits_per_second: Option<u64>,
    /// Receive queues that the hardware has.
    pub queues_max: Option<u32>,
    /// Numbers of queues that the driver accepts, where it lists them.
    #[serde(skip)]
    pub queue_counts: Vec<u32>,
    /// Receive queues that the indirection table can name, where it is fewer than the hardware has.
    pub rss_queue_limit: Option<u32>,
    /// Linux: whether the driver passes on the adapter's hash (`ethtool -k`: receive-hashing). Without it RPS uses the
    /// kernel's own, whose key is secret.
    pub has_receive_hash: Option<bool>,
    /// The setting that is there.
    pub rss: Rss,
    /// Windows: what the adapter is, as its driver says.
    pub description: Option<String>,
    /// Address on the bus, `segment:bus:device.function`.
    pub bus: Option<String>,
    /// Its link to the bus.
    #[serde(skip)]
    pub pci: PciLink,
    /// Whether its link is up; unknown if no output says it.
    pub is_up: Option<bool>,
    /// The team, bond or bridge that it belongs to.
    pub master: Option<String>,
    /// Descriptors of each receive ring, as set and at most.
    pub ring: Option<u32>,
    pub ring_max: Option<u32>,
    pub moderation: Moderation,
    /// Frames that receive rings lost, by the name of the counter, since the driver was loaded; and received ones.
    #[serde(serialize_with = "json::losses")]
    pub losses: Vec<(String, u64)>,
    pub received: Option<u64>,
    /// Linux: whether filters of the user, or of the driver for each flow (Intel's ATR), place flows in addition to RSS.
    pub has_ntuple_filters: Option<bool>,
    pub has_flow_director: Option<bool>,
}

/// Interrupt moderation of the receive side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moderation {
    /// Windows: `*InterruptModeration`.
    pub is_on: Option<bool>,
    /// Linux: whether it follows the load.
    pub is_adaptive: Option<bool>,
    /// Longest delay after a frame, in microseconds.
    pub delay_usecs: Option<u32>,
    /// Frames after which the interrupt comes at the latest; 0 if there is no such limit.
    pub frames: Option<u32>,
}

/// Receive-side scaling of an adapter, as it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rss {
    /// Unknown where the system does not say it.
    pub is_enabled: Option<bool>,
    /// Queues in use.
    pub queues: Option<u32>,
    /// Windows: `Closest`, `ClosestStatic`, `NUMA`, `NUMAStatic`, `Conservative`.
    pub profile: Option<String>,
    /// Windows: first and last CPU (group, number), and how many are used at most.
    #[serde(serialize_with = "json::optional_cpu")]
    pub base: Option<(u32, u32)>,
    #[serde(serialize_with = "json::optional_cpu")]
    pub last: Option<(u32, u32)>,
    pub processors_max: Option<u32>,
    /// Windows: the node that is set; `None` if none is.
    pub node: Option<u32>,
    /// The indirection table: on Linux the queue of each entry.
    pub queue_table: Vec<u32>,
    /// Receive rings that the driver has; they may be more than RSS can use.
    pub rings: Option<u32>,
    /// Windows: CPUs that may be used, with their distance to the adapter, in order of preference.
    pub processors: Vec<RssProcessor>,
    /// On Windows the CPU (group, number) of each entry.
    #[serde(serialize_with = "json::cpus")]
    pub processor_table: Vec<(u32, u32)>,
    /// The key of the hash.
    #[serde(serialize_with = "json::hex")]
    pub key: Vec<u8>,
    /// Linux: number of each receive interrupt, with the CPUs that it may go to.
    #[serde(serialize_with = "json::interrupts")]
    pub interrupts: Vec<(u32, Vec<u32>)>,
    /// Linux: how often each receive interrupt came to each CPU, as (CPU, count) where the count is above zero, in the
    /// order of `interrupts`.
    #[serde(serialize_with = "json::interrupt_counts")]
    pub interrupt_counts: Vec<Vec<(u32, u64)>>,
    /// Linux: flows that RFS keeps for each receive queue (`rps_flow_cnt`).
    pub flows: Vec<u32>,
    /// Linux: CPUs of XPS by transmit queue, and of RPS by receive queue, as masks in lists of numbers.
    #[serde(serialize_with = "json::queue_cpus")]
    pub xps: Vec<Vec<u32>>,
    #[serde(serialize_with = "json::queue_cpus")]
    pub rps: Vec<Vec<u32>>,
}

/// Link speed up to which an adapter needs no place next to faster ones.
const MINOR_BITS_PER_SECOND: u64 = 1_000_000_000;

impl Adapter {
    /// The device on the bus that it is a function of: `0000:c3:00` of `0000:c3:00.1`.
    pub(crate) fn device(&self) -> Option<&str> {
        self.bus.as_deref()?.rsplit_once('.').map(|(device, _)| device)
    }

    /// Whether it is a team or bond itself, which has no queues of its own.
    pub(crate) fn is_team(&self) -> bool {
        self.master.as_ref() == Some(&self.name)
    }
}

impl Machine {
    /// Whether an adapter is so slow, compared with others, that one CPU receives for it: management ports.
    pub(crate) fn is_minor(&self, card: &Adapter) -> bool {
        let is_slow = |card: &Adapter| {
            card.bits_per_second.is_some_and(|speed| speed <= MINOR_BITS_PER_SECOND)
        };
        let is_fast = |card: &Adapter| {
            card.bits_per_second.is_some_and(|speed| speed > MINOR_BITS_PER_SECOND)
        };
        is_slow(card) && self.cards.iter().any(is_fast)
    }

    /// Whether a CPU is online and free for receive work.
    pub(crate) fn is_usable(&self, cpu: &Cpu) -> bool {
        cpu.is_online && !(self.system == System::Linux && self.isolated.contains(&cpu.number))
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    pub system: System,
    pub cpus: Vec<Cpu>,
    pub cards: Vec<Adapter>,
    /// Whether the numbers of the nodes and sockets are not those of the system: what shares one is known, not which.
    pub are_nodes_assumed: bool,
    /// Linux: whether irqbalance runs, the interrupts that it leaves alone, and its other options.
    pub irqbalance: Option<bool>,
    pub irqbalance_banned: Vec<u32>,
    #[serde(skip)]
    pub irqbalance_options: Vec<String>,
    /// Linux: CPUs that are kept free of other work (`isolcpus`, `nohz_full`).
    pub isolated: Vec<u32>,
    /// Linux: frames, drops and squeezes of each CPU.
    pub softnet: Vec<SoftnetRow>,
    /// Linux: how often receive work (`NET_RX`) ran on each CPU.
    #[serde(serialize_with = "json::cpu_counts")]
    pub receive_softirqs: Vec<(u32, u64)>,
    /// Linux: flows that RFS keeps for all queues (`rps_sock_flow_entries`).
    pub flow_entries: Option<u32>,
    /// Linux: names of the governors of the CPUs' frequency, each once.
    pub governors: Vec<String>,
    /// Linux: states that an idle CPU may enter. Windows: the active power plan.
    #[serde(skip)]
    pub idle: Vec<IdleState>,
    #[serde(skip)]
    pub power_plan: Option<PowerPlan>,
    /// Windows: the team of adapters that exists, if its members are not known.
    pub team: Option<String>,
    /// What the CPUs did while a trace was recorded.
    pub received: Option<Received>,
    /// Windows: paths of SMB clients, and interfaces of the SMB server.
    pub multichannel: Vec<MultichannelConnection>,
    pub interfaces: Vec<NetworkInterface>,
    /// Linux: whether Samba's configuration says that multichannel is on or off.
    pub samba_multichannel: Option<bool>,
    /// Processes of the file server.
    #[serde(serialize_with = "json::processes")]
    pub processes: Processes,
    /// Questions that a program could not answer, in its words.
    pub failures: Vec<String>,
    /// What the input did not say and was assumed, one sentence each.
    pub assumptions: Vec<String>,
}
