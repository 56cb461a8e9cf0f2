//! The drawing of a machine's CPUs and adapters, today and as planned.

pub(crate) mod build;
pub(crate) mod svg;
pub(crate) mod text;

use smbscope_plan::cores::current::Queue;
use smbscope_plan::cores::layout::CpuId;

use crate::document::Drawing;

/// A machine's CPUs and adapters, before and after a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopologyDrawing {
    pub(crate) cards: Vec<AdapterBox>,
    pub(crate) sockets: Vec<Socket>,
    /// CPUs that there was no room for.
    pub(crate) undrawn: usize,
    /// Whether it is known how busy the CPUs are, today and as planned.
    pub(crate) has_busy: [bool; 2],
}

/// A network adapter.
#[derive(Clone, Debug)]
pub(crate) struct AdapterBox {
    /// Its place in the machine's list.
    pub(crate) index: usize,
    /// Its mark on the CPUs.
    pub(crate) letter: char,
    pub(crate) name: String,
    /// Link speed and driver, as far as they are known.
    pub(crate) about: String,
    /// Its NUMA node, if it is known.
    pub(crate) node: Option<u32>,
    /// The node at which it is drawn.
    pub(crate) drawn_at: Option<u32>,
    /// Its queues in use, today and as planned.
    pub(crate) queues: [Vec<Queue>; 2],
}

/// A socket.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) number: u32,
    pub(crate) nodes: Vec<Node>,
}

/// A NUMA node, or the part of it in one socket.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) number: u32,
    /// Whether its adapters are drawn here: a node can be in several sockets.
    pub(crate) is_first: bool,
    pub(crate) cores: Vec<Core>,
}

/// A core with its hardware threads.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    /// Its number, if the input has it.
    pub(crate) number: Option<u32>,
    pub(crate) threads: Vec<Thread>,
}

/// A logical processor.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) cpu: CpuId,
    pub(crate) is_online: bool,
    /// What it does, today and as planned.
    pub(crate) work: [Work; 2],
}

/// What a CPU does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub(crate) cards: Vec<Served>,
    /// The share of the time in which it is busy, 0 to 1.
    pub(crate) busy: Option<f64>,
}

/// An adapter that a CPU receives for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// Index in [`TopologyDrawing::cards`].
    pub(crate) card: usize,
    /// Numbers of the queues; none if packets come by RPS only.
    pub(crate) queues: Vec<u32>,
}

/// The text of a plan draws the machine between its own lines.
impl Drawing for TopologyDrawing {
    fn svg(&self, out: &mut String) {
        svg::write(out, self);
    }

    fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }
}
