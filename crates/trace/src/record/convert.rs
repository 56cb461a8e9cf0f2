//! Events of the kernel's side to events of a trace: names, stacks, time of day.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use crate::event::{self, Event, Frame, Interrupt, Kind, StackId};
use crate::names::Names;
use crate::symbols::KernelFunctions;

use super::devices::Devices;
use super::ring_event::{self, Name, RingEvent, Run, Sample, Switch, What};

/// The beginning of the names of the recorder's own programs.
pub const OWN: &str = "smbscope_";
/// Says that the kernel hides where its functions are.
pub const NO_NAMES: &str = "functions of the kernel have no names (kernel.kptr_restrict)";
/// Most different stacks.
const STACKS_MAX: usize = 1 << 18;
/// Most handlers and polled devices.
const HANDLERS_MAX: usize = 65_536;

/// Converts events.
#[derive(Debug)]
pub struct Convert {
    /// Time of day when the clock of the events was 0, ns.
    offset_ns: i64,
    /// Time between two ticks of the clock that takes samples.
    tick_ns: i64,
    devices: Devices,
    functions: KernelFunctions,
    names: Names,
    handlers: HashMap<(Kind, u32, u32), Handler>,
    /// Stacks that occurred, by two hashes of their addresses.
    stacks: HashMap<(u64, u64), StackId>,
    hashers: (RandomState, RandomState),
    /// Stacks left out, and names of handlers left out, because there were too many.
    pub stacks_discarded: u64,
    pub handlers_discarded: u64,
}

/// What a handler or a poll is called.
#[derive(Clone, Debug, Default)]
struct Handler {
    name: Option<Arc<str>>,
    device: Option<Arc<str>>,
    queue: Option<u32>,
}

impl Convert {
    /// Converts the events of a machine with these devices and functions.
    pub fn new(offset_ns: i64, hz: u32, devices: Devices, functions: KernelFunctions) -> Convert {
        Convert {
            offset_ns,
            tick_ns: 1_000_000_000 / i64::from(hz.max(1)),
            devices,
            functions,
            names: Names::default(),
            handlers: HashMap::new(),
            stacks: HashMap::new(),
            hashers: (RandomState::new(), RandomState::new()),
            stacks_discarded: 0,
            handlers_discarded: 0,
        }
    }

    /// A time as time of day, ns since 1970.
    pub fn time(&self, time: u64) -> i64 {
        super::time_of_day(time, self.offset_ns)
    }

    /// Names left out because there were too many.
    pub fn names_discarded(&self) -> u64 {
        self.names.discarded() + self.handlers_discarded
    }

    /// Whether functions of the kernel have names.
    pub fn knows_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Learns the name of a handler or of a polled device.
    pub fn learn(&mut self, name: &Name) {
        let handler = match name.kind {
            Kind::NapiPoll => {
                // The backlog of a CPU has no device.
                let device = Some(&*name.text).filter(|text| !text.is_empty());
                let shown = self.names.intern(device.unwrap_or("backlog"));
                Handler {
                    device: shown.clone().filter(|_| device.is_some()),
                    name: shown,
                    queue: None,
                }
            }
            _ => self.handler(name.irq, &name.text),
        };
        let key = (name.kind, name.irq, name.key);
        if self.handlers.len() < HANDLERS_MAX || self.handlers.contains_key(&key) {
            self.handlers.insert(key, handler);
        } else {
            self.handlers_discarded += 1;
        }
    }

    /// Converts one event; names become known and yield nothing.
    pub fn event(&mut self, event: RingEvent, sink: &mut impl FnMut(Event)) {
        match event {
            RingEvent::Run(run) => sink(Event::Interrupt(self.run(&run))),
            RingEvent::Sample(sample) => self.sample(sample, sink),
            RingEvent::Switch(switch) => sink(Event::Switch(self.switch(&switch))),
            RingEvent::Name(name) => self.learn(&name),
        }
    }

    fn handler(&mut self, irq: u32, name: &str) -> Handler {
        let (device, queue) = self.devices.place(irq, name);
        let device = device.and_then(|device| self.names.intern(device));
        Handler { name: self.names.intern(name), device, queue }
    }

    fn run(&mut self, run: &Run) -> Interrupt {
        let (vector, handler, work) = match run.what {
            What::Softirq(number) => {
                let name = ring_event::softirq(number).and_then(|name| self.names.intern(name));
                (Some(number), Handler { name, ..Handler::default() }, None)
            }
            What::Vector { vector, name } => {
                let name = self.names.intern(name);
                (Some(vector), Handler { name, ..Handler::default() }, None)
            }
            What::Irq { irq, key } => (Some(irq), self.of_irq(run.kind, irq, key), None),
            What::Poll { key, work, budget } => {
                let known = self.handlers.get(&(run.kind, 0, key)).cloned();
                (None, known.unwrap_or_default(), Some((work, budget)))
            }
        };
        let (work, budget) = work.unzip();
        Interrupt {
            cpu: run.cpu,
            kind: run.kind,
            vector,
            routine: None,
            name: handler.name,
            device: handler.device,
            thread: Some(run.thread),
            queue: handler.queue,
            start_ns: run.start.map(|start| self.time(start)),
            end_ns: self.time(run.end),
            raised_ns: run.raised.map(|raised| self.time(raised)),
            work,
            budget,
        }
    }

    /// A handler whose name did not arrive has that of /proc/interrupts.
    fn of_irq(&mut self, kind: Kind, irq: u32, key: u32) -> Handler {
        if let Some(known) = self.handlers.get(&(kind, irq, key)) {
            return known.clone();
        }
        match self.devices.handler(irq).map(str::to_owned) {
            Some(name) => self.handler(irq, &name),
            None => Handler::default(),
        }
    }

    fn sample(&mut self, sample: Sample, sink: &mut impl FnMut(Event)) {
        let stack = if sample.stack.is_empty() { None } else { self.stack(&sample.stack, sink) };
        sink(Event::Sample(event::Sample {
            time_ns: self.time(sample.time),
            cpu: Some(sample.cpu),
            process: Some(sample.process),
            thread: Some(sample.thread),
            address: Some(sample.address),
            stack,
            during: sample.during,
            weight_ns: Some(self.tick_ns.saturating_mul(i64::from(sample.ticks))),
            ..event::Sample::default()
        }));
    }

    fn stack(&mut self, addresses: &[u64], sink: &mut impl FnMut(Event)) -> Option<StackId> {
        let key = (self.hashers.0.hash_one(addresses), self.hashers.1.hash_one(addresses));
        if let Some(known) = self.stacks.get(&key) {
            return Some(*known);
        }
        if self.stacks.len() >= STACKS_MAX {
            self.stacks_discarded += 1;
            return None;
        }
        let id = self.stacks.len() as StackId;
        self.stacks.insert(key, id);
        let frames = addresses.iter().enumerate();
        let named = |(depth, &address)| frame(&self.functions, &mut self.names, depth, address);
        let frames = frames.map(named).collect();
        sink(Event::Stack { id, frames });
        Some(id)
    }

    fn switch(&mut self, switch: &Switch) -> event::Switch {
        let state = state(switch.state, switch.preempted);
        event::Switch {
            time_ns: self.time(switch.time),
            cpu: switch.cpu,
            old_thread: switch.old_thread,
            old_name: self.names.intern(&switch.old_name),
            old_state: self.names.intern(state),
            new_thread: switch.new_thread,
            new_name: self.names.intern(&switch.new_name),
        }
    }
}

/// A frame at an address. Above the innermost one addresses are those to return to: the call is before them.
pub fn frame(functions: &KernelFunctions, names: &mut Names, depth: usize, address: u64) -> Frame {
    let inside = if depth == 0 { address } else { address.saturating_sub(1) };
    let Some((name, module)) = functions.find(inside) else {
        return Frame { address, ..Frame::default() };
    };
    // bpf_prog_6deef7357e7b4530_smbscope_softirq_exit
    let own = name.find(OWN).filter(|_| module == "[bpf]");
    let name = own.and_then(|at| name.get(at..)).unwrap_or(name);
    Frame { address, function: names.intern(name), module: names.intern(module) }
}

/// A state as ftrace writes it: include/trace/events/sched.h, include/linux/sched.h.
fn state(state: u32, preempted: bool) -> &'static str {
    /// `TASK_IDLE`: uninterruptible, without load.
    const IDLE: u32 = 0x402;
    if preempted {
        return "R+";
    }
    match state {
        IDLE => "I",
        _ => match state & 0xff {
            0 => "R",
            bits if bits & 1 != 0 => "S",
            bits if bits & 2 != 0 => "D",
            bits if bits & 4 != 0 => "T",
            bits if bits & 8 != 0 => "t",
            bits if bits & 0x10 != 0 => "X",
            bits if bits & 0x20 != 0 => "Z",
            bits if bits & 0x40 != 0 => "P",
            _ => "I",
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn convert() -> Convert {
        let functions = "ffffffff81000000 T net_rx_action
ffffffff82000000 T idle
ffffffffc0000000 t bpf_prog_6deef7357e7b4530_smbscope_softirq_exit\t[bpf]
ffffffffc0001000 t bpf_prog_0123456789abcdef_xdp\t[bpf]
";
        let functions = KernelFunctions::read(functions.as_bytes()).unwrap();
        let interrupts = " CPU0\n 41: 5 PCI-MSIX 1-edge eth0-rx-3\n";
        Convert::new(1000, 100, Devices::read(interrupts, Path::new("/nowhere")), functions)
    }

    fn run(kind: Kind, what: What) -> Run {
        Run { cpu: 1, kind, thread: 7, start: Some(10), end: 30, raised: Some(5), what }
    }

    fn events(convert: &mut Convert, event: RingEvent) -> Vec<Event> {
        let mut events = Vec::new();
        convert.event(event, &mut |event| events.push(event));
        events
    }

    fn interrupt(convert: &mut Convert, run: Run) -> Interrupt {
        match events(convert, RingEvent::Run(run)).pop() {
            Some(Event::Interrupt(interrupt)) => interrupt,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn runs_get_names_devices_and_the_time_of_day() {
        let mut convert = convert();
        let softirq = interrupt(&mut convert, run(Kind::Softirq, What::Softirq(3)));
        assert_eq!((softirq.name.as_deref(), softirq.vector), (Some("NET_RX"), Some(3)));
        assert_eq!((softirq.start_ns, softirq.end_ns), (Some(1010), 1030));
        assert_eq!((softirq.raised_ns, softirq.thread), (Some(1005), Some(7)));
        let strange = interrupt(&mut convert, run(Kind::Softirq, What::Softirq(12)));
        assert_eq!((strange.name, strange.vector), (None, Some(12)));
        let what = What::Vector { vector: 0xec, name: "local_timer" };
        let timer = interrupt(&mut convert, run(Kind::Irq, what));
        assert_eq!(timer.name.as_deref(), Some("local_timer"));
    }

    #[test]
    fn a_handler_without_a_name_has_that_of_proc_interrupts() {
        let mut convert = convert();
        let what = What::Irq { irq: 41, key: 9 };
        let irq = interrupt(&mut convert, run(Kind::Irq, what));
        assert_eq!((irq.device.as_deref(), irq.queue), (Some("eth0"), Some(3)));
        let name = Name { kind: Kind::Irq, irq: 41, key: 9, text: "eth1-rx-4".into() };
        assert!(events(&mut convert, RingEvent::Name(name)).is_empty());
        let irq = interrupt(&mut convert, run(Kind::Irq, what));
        assert_eq!((irq.name.as_deref(), irq.queue), (Some("eth1-rx-4"), Some(4)));
        let unknown = What::Irq { irq: 42, key: 9 };
        assert_eq!(interrupt(&mut convert, run(Kind::Irq, unknown)).name, None);
    }

    #[test]
    fn a_poll_without_a_device_is_the_backlog() {
        let mut convert = convert();
        for (key, text) in [(1, ""), (2, "eth0")] {
            let name = Name { kind: Kind::NapiPoll, irq: 0, key, text: text.into() };
            convert.learn(&name);
        }
        let mut poll = |key| {
            interrupt(&mut convert, run(Kind::NapiPoll, What::Poll { key, work: 4, budget: 64 }))
        };
        let backlog = poll(1);
        assert_eq!((backlog.name.as_deref(), backlog.device), (Some("backlog"), None));
        assert_eq!((backlog.work, backlog.budget, backlog.vector), (Some(4), Some(64), None));
        assert_eq!(poll(2).device.as_deref(), Some("eth0"));
        assert_eq!(poll(3).name, None);
    }

    #[test]
    fn equal_stacks_are_sent_once() {
        let mut convert = convert();
        let sample = |stack: &[u64]| {
            RingEvent::Sample(Sample {
                cpu: 0,
                process: 4,
                thread: 5,
                time: 50,
                address: 0xffff_ffff_8100_0010,
                ticks: 2,
                during: Some(Kind::Softirq),
                stack: stack.into(),
            })
        };
        let stack = [0xffff_ffff_8100_0010, 0xffff_ffff_8200_0001];
        let first = events(&mut convert, sample(&stack));
        let [Event::Stack { id: 0, frames }, Event::Sample(one)] = &first[..] else { panic!() };
        let names: Vec<_> = frames.iter().map(|frame| frame.function.as_deref()).collect();
        assert_eq!(names, [Some("net_rx_action"), Some("idle")]);
        assert_eq!((one.stack, one.weight_ns), (Some(0), Some(20_000_000)));
        assert!(matches!(&events(&mut convert, sample(&stack))[..], [Event::Sample(_)]));
        let other = events(&mut convert, sample(&stack[1..]));
        assert!(matches!(&other[..], [Event::Stack { id: 1, .. }, Event::Sample(_)]));
        // A program's stack is not recorded.
        let user = events(&mut convert, sample(&[]));
        assert!(matches!(&user[..], [Event::Sample(one)] if one.stack.is_none()));
    }

    #[test]
    fn calls_are_before_the_address_to_return_to_and_own_programs_are_known() {
        let Convert { functions, mut names, .. } = convert();
        let mut of = |depth, address| super::frame(&functions, &mut names, depth, address);
        let frame = of(1, 0xffff_ffff_8200_0000);
        assert_eq!(frame.function.as_deref(), Some("net_rx_action"));
        assert_eq!(frame.module.as_deref(), Some("[kernel.kallsyms]"));
        let own = of(0, 0xffff_ffff_c000_0000);
        assert_eq!(own.function.as_deref(), Some("smbscope_softirq_exit"));
        let other = of(0, 0xffff_ffff_c000_1001);
        assert_eq!(other.function.as_deref(), Some("bpf_prog_0123456789abcdef_xdp"));
        assert_eq!(other.module.as_deref(), Some("[bpf]"));
        assert_eq!(of(0, 5).function, None);
    }

    #[test]
    fn states_are_those_of_ftrace() {
        let shown = [0, 1, 2, 0x402, 0x10, 0x80].map(|bits| state(bits, false));
        assert_eq!(shown, ["R", "S", "D", "I", "X", "I"]);
        assert_eq!(state(1, true), "R+");
    }
}
