//! What can be wrong with processors, and a finding as plain data.

use serde::Serialize;

use crate::evidence::{Confidence, Figure, Remedy};

/// What can be wrong with processors. A closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorTrouble {
    /// Processors spend most of their time in interrupts and deferred work.
    LockedProcessors,
    /// Deferred work or handlers of one name run longer than the limit.
    LongRuns,
    /// A filter or inspection driver is in the receive path.
    FilterInReceivePath,
    /// A team or bond of adapters is in the receive path.
    TeamInReceivePath,
    /// The receive work of the network runs on few processors.
    ReceiveOnFewProcessors,
    /// The work for a network adapter runs on another NUMA node than the adapter is on.
    RemoteNode,
    /// Recording the trace takes a large part of the time.
    TracingIsTheLoad,
    /// Deep idle states or low frequencies, and work that begins late on processors that were idle.
    PowerSaving,
}

impl ProcessorTrouble {
    /// All troubles.
    pub const ALL: [ProcessorTrouble; 8] = [
        ProcessorTrouble::LockedProcessors,
        ProcessorTrouble::LongRuns,
        ProcessorTrouble::FilterInReceivePath,
        ProcessorTrouble::TeamInReceivePath,
        ProcessorTrouble::ReceiveOnFewProcessors,
        ProcessorTrouble::RemoteNode,
        ProcessorTrouble::TracingIsTheLoad,
        ProcessorTrouble::PowerSaving,
    ];

    /// What a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            ProcessorTrouble::LockedProcessors => "Interrupt work holds processors",
            ProcessorTrouble::LongRuns => "Deferred work or handlers run too long",
            ProcessorTrouble::FilterInReceivePath => {
                "A filter or inspection driver is in the receive path"
            }
            ProcessorTrouble::TeamInReceivePath => {
                "A team of network adapters is in the receive path"
            }
            ProcessorTrouble::ReceiveOnFewProcessors => {
                "Few processors do the receive work of the network"
            }
            ProcessorTrouble::RemoteNode => "The work for an adapter runs on another NUMA node",
            ProcessorTrouble::TracingIsTheLoad => "Recording the trace is part of the load",
            ProcessorTrouble::PowerSaving => "Power saving delays work on idle processors",
        }
    }
}

/// One thing that takes processors' time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub trouble: ProcessorTrouble,
    /// A sentence.
    pub what: String,
    /// Time of processors that it takes, ns; null where only samples or places are known.
    pub cost_ns: Option<i64>,
    /// The processors concerned, in the order of their numbers.
    pub cpus: Vec<u64>,
    pub confidence: Confidence,
    /// What the confidence is based on.
    pub because: String,
    /// When it began, on the clock of the trace; null if it was there from the start or is not known.
    pub since_ns: Option<i64>,
    /// When it ended, on the clock of the trace; null if it was there to the end or is not known.
    pub until_ns: Option<i64>,
    pub figures: Vec<Figure>,
    pub remedies: Vec<Remedy>,
}
