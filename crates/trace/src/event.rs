//! Events: what every reader of a trace yields, whatever the format and the operating system.
//!
//! A reader converts times to nanoseconds on one clock for the whole trace, and pairs the beginning
//! of an interrupt with its end. It yields the interrupts of a CPU in the order of their
//! ends, an image and a device before the events with addresses in its driver, and a stack before the sample that names
//! it. Everything else may come in any order.

use std::io;
use std::sync::Arc;

use smbscope_tables::Part;

/// Reads a trace piece by piece.
pub trait EventReader {
    /// Reads the next piece (a line, a buffer) and gives its events to `sink`; false at the end.
    ///
    /// # Errors
    ///
    /// Those of the operating system. What is damaged is not an error: it is counted in the coverage.
    fn step(&mut self, sink: &mut dyn FnMut(Event)) -> io::Result<bool>;

    /// What was read so far.
    fn coverage(&self) -> Coverage;

    /// Bytes of the file that were read so far.
    fn read_bytes(&self) -> u64;

    /// Rows that the reader made itself since the last call: operations and what belongs to them.
    fn take_parts(&mut self) -> Vec<Part> {
        Vec::new()
    }
}

/// What ran instead of the thread of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Deferred procedure call (Windows).
    Dpc,
    /// Deferred procedure call of an expired timer (Windows).
    TimerDpc,
    /// Deferred procedure call in a thread (Windows).
    ThreadedDpc,
    /// Interrupt service routine of a line interrupt (Windows).
    Isr,
    /// Interrupt service routine of a message-signalled interrupt (Windows).
    IsrMsi,
    /// Softirq (Linux).
    Softirq,
    /// Handler of a hardware interrupt, and the timer of the CPU (Linux).
    Irq,
    /// Poll of a network device within the softirq `NET_RX` (Linux).
    NapiPoll,
    /// Interrupt that another CPU sent (Linux).
    Ipi,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 9] = [
        Kind::Dpc,
        Kind::TimerDpc,
        Kind::ThreadedDpc,
        Kind::Isr,
        Kind::IsrMsi,
        Kind::Softirq,
        Kind::Irq,
        Kind::NapiPoll,
        Kind::Ipi,
    ];

    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Dpc => "dpc",
            Kind::TimerDpc => "timer_dpc",
            Kind::ThreadedDpc => "threaded_dpc",
            Kind::Isr => "isr",
            Kind::IsrMsi => "isr_msi",
            Kind::Softirq => "softirq",
            Kind::Irq => "irq",
            Kind::NapiPoll => "napi_poll",
            Kind::Ipi => "ipi",
        }
    }
}

/// One run of an interrupt's handler or of deferred work.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    pub cpu: u32,
    pub kind: Kind,
    /// Interrupt vector (Windows), IRQ number or softirq number (Linux).
    pub vector: Option<u32>,
    /// Address of the routine.
    pub routine: Option<u64>,
    /// Name that the trace has: of a softirq, a handler, a device. `None` if there is only an address.
    pub name: Option<Arc<str>>,
    /// The device that it worked for.
    pub device: Option<Arc<str>>,
    /// The thread that it interrupted; thread 0 of each CPU is idle.
    pub thread: Option<u32>,
    /// Queue of the device.
    pub queue: Option<u32>,
    /// When it began; `None` if the trace has only the end (NAPI polls of ftrace).
    pub start_ns: Option<i64>,
    pub end_ns: i64,
    /// When it was requested.
    pub raised_ns: Option<i64>,
    /// Packets of a poll, and how many it was allowed to handle.
    pub work: Option<u32>,
    pub budget: Option<u32>,
}

/// Number of a stack, unique in the trace.
pub type StackId = u64;

/// What a CPU executed, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Kernel,
    User,
    Hypervisor,
    GuestKernel,
    GuestUser,
}

impl Mode {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Kernel => "kernel",
            Mode::User => "user",
            Mode::Hypervisor => "hypervisor",
            Mode::GuestKernel => "guest_kernel",
            Mode::GuestUser => "guest_user",
        }
    }
}

/// A periodic sample of what a CPU executed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub time_ns: i64,
    /// `None` if the trace does not say it.
    pub cpu: Option<u32>,
    pub process: Option<u32>,
    pub thread: Option<u32>,
    /// Name of the thread.
    pub task: Option<Arc<str>>,
    pub mode: Option<Mode>,
    pub address: Option<u64>,
    /// Module of the address, where the trace has it; otherwise it is in the images, or in the stack.
    pub module: Option<Arc<str>>,
    pub stack: Option<StackId>,
    /// The interrupt or deferred work that it hit; `None` for a thread.
    pub during: Option<Kind>,
    /// Time that the sample represents.
    pub weight_ns: Option<i64>,
}

/// One frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    pub address: u64,
    /// Name of the function, where the trace has it.
    pub function: Option<Arc<str>>,
    /// Name of the module or of its file, where the trace has it.
    pub module: Option<Arc<str>>,
}

/// A CPU continues with another thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    pub time_ns: i64,
    pub cpu: u32,
    /// Thread 0 of each CPU is idle.
    pub old_thread: u32,
    pub old_name: Option<Arc<str>>,
    pub old_state: Option<Arc<str>>,
    pub new_thread: u32,
    pub new_name: Option<Arc<str>>,
}

/// Code of the kernel, a driver or a program in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub time_ns: Option<i64>,
    pub base: u64,
    pub size_bytes: u64,
    pub name: Arc<str>,
    /// Process 0 is the kernel.
    pub process: u32,
    /// Which PDB file or ELF file has its symbols: GUID and age, or a build id.
    pub symbols: Option<Arc<str>>,
}

/// Where a CPU is in the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    pub cpu: u32,
    pub node: Option<u32>,
    pub socket: Option<u32>,
    pub core: Option<u32>,
    /// Number of the hyper-thread in its core.
    pub thread: Option<u32>,
    /// Whether its core has several hyper-threads, where that is known but not which CPUs share a core.
    pub is_hyper_threaded: Option<bool>,
    /// Windows: its processor group, and its number in the group.
    pub group: Option<(u16, u8)>,
    pub mhz: Option<u32>,
    /// Events of this CPU that the recorder lost, where it counts them for each.
    pub events_lost: Option<u64>,
}

/// A device that interrupts, or a network adapter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    pub name: Option<Arc<str>>,
    /// Which device of the machine it is: bus, vendor, model and place.
    pub instance: Arc<str>,
    pub class: Option<Arc<str>>,
    /// The service whose driver serves it.
    pub driver: Option<Arc<str>>,
    /// Other drivers above and below that driver.
    pub filters: Option<Arc<str>>,
    /// Negative for message-signalled interrupts.
    pub irq: Option<i32>,
    pub affinity: Option<u64>,
    /// NUMA node of its bus.
    pub node: Option<u32>,
}

/// What the table `power` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerKind {
    /// The number of an idle state.
    CState,
    /// kHz.
    Frequency,
}

impl PowerKind {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            PowerKind::CState => "c_state",
            PowerKind::Frequency => "frequency",
        }
    }
}

/// A stay of a CPU in an idle state, or a change of its frequency.
#[derive(Clone, Debug, PartialEq)]
pub struct Power {
    pub time_ns: i64,
    pub cpu: u32,
    pub kind: PowerKind,
    pub value: u64,
    pub duration_ns: Option<i64>,
}

/// A sum of interrupts or deferred work, from a trace that has no single ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    pub kind: Kind,
    /// The module; `None` for all together.
    pub name: Option<Arc<str>>,
    /// `None` for all together.
    pub cpu: Option<u32>,
    /// The time that it is about.
    pub start_ns: i64,
    pub end_ns: i64,
    /// Bounds of the durations that are counted.
    pub above_ns: Option<i64>,
    pub up_to_ns: Option<i64>,
    pub count: Option<u64>,
    pub duration_ns: Option<i64>,
}

/// What a reader yields.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Interrupt(Interrupt),
    Sample(Sample),
    /// A stack, from the innermost frame outwards.
    Stack {
        id: StackId,
        frames: Vec<Frame>,
    },
    Switch(Switch),
    Image(Image),
    Cpu(Cpu),
    Device(Device),
    Power(Power),
    Total(Total),
}

/// What was read, lost and not understood. A counter that the format does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Name of the format.
    pub format: String,
    /// Name of the clock, as the trace says it.
    pub clock: Option<String>,
    /// First and last event.
    pub start_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub read_bytes: u64,
    /// Events, and those of other kinds than [`Event`] has.
    pub events: u64,
    pub events_other: u64,
    /// Events and buffers that the recorder lost.
    pub events_lost: Option<u64>,
    pub buffers_lost: Option<u64>,
    /// Lines or records that could not be read, and where and what the first one is.
    pub damaged: u64,
    pub first_damaged: Option<String>,
    /// Interrupts whose end or beginning is not in the trace.
    pub starts_unmatched: u64,
    pub ends_unmatched: u64,
    /// Stacks and names left out because their number reached the limit.
    pub stacks_discarded: u64,
    pub names_discarded: u64,
    /// Other events left out because a limit was reached.
    pub limited: u64,
    /// What the recorder says about itself.
    pub notes: Option<String>,
}

impl Coverage {
    /// The trace has something of that time.
    pub fn at(&mut self, time_ns: i64) {
        self.start_ns = Some(self.start_ns.map_or(time_ns, |start| start.min(time_ns)));
        self.end_ns = Some(self.end_ns.map_or(time_ns, |end| end.max(time_ns)));
    }
}
