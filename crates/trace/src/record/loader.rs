//! Loads the BPF part, attaches it to the tracepoints that this kernel has, and reads its rings.
//!
//! Everything depends on this program's file descriptors: when it ends, in whatever way, the kernel
//! removes all programs.

use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, IntoRawFd as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libbpf_rs::skel::{OpenSkel as _, Skel as _, SkelBuilder as _};
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, MapType, OpenObject, PrintLevel, ProgramType,
    RingBuffer, RingBufferBuilder, libbpf_sys,
};

use super::convert::OWN;
use super::ring_event::RingEvent;
use super::system;

#[allow(missing_docs, unsafe_code, clippy::all, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/cpu.skel.rs"));
}

use skel::{CpuSkel, CpuSkelBuilder};

/// Where the kernel describes itself.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Events that are read in one batch.
const EVENTS_AT_ONCE: usize = 65_536;
/// Least and most bytes of one ring.
const RING_BYTES: (u64, u64) = (64 << 10, 64 << 20);
/// Programs without which there is nothing to record.
const NEEDED: [&str; 2] = ["softirq_entry", "softirq_exit"];
/// The program at a function instead of a tracepoint.
const AT_FUNCTION: (&str, &str) = ("poll_begin", "__napi_poll");
/// The program that needs no tracepoint.
const SAMPLE: &str = "sample";

/// Why CPUs cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel does not describe its types.
    #[error(
        "{TYPES}: {0}: CPUs are recorded on kernels with CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu, RHEL and SUSE have it) from Linux 5.12 on; with others, record with trace-cmd or perf (docs/guide/processors.md)"
    )]
    NoTypes(std::io::Error),
    /// This user may not.
    #[error(
        "CPUs are recorded by root only, or with CAP_BPF, CAP_PERFMON and CAP_SYSLOG (run the same command with sudo; in a container --privileged): {0}"
    )]
    Denied(libbpf_rs::Error),
    /// The kernel has no softirq tracepoints.
    #[error("this kernel has no tracepoint {0}: record with perf (docs/guide/processors.md)")]
    Needed(&'static str),
    /// The kernel refuses the BPF part.
    #[error("the kernel rejected the recorder ({what}): {error}{warning}")]
    Kernel {
        /// The step.
        what: String,
        /// The kernel's answer.
        error: libbpf_rs::Error,
        /// The first message of libbpf.
        warning: String,
    },
}

/// Counters of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounters {
    /// Events that did not fit into the ring.
    pub lost: u64,
    pub starts_unmatched: u64,
    pub ends_unmatched: u64,
    /// Time in the BPF programs, extrapolated from a part of them.
    pub cost_ns: u64,
}

/// The attached programs.
pub struct Programs {
    // The ring reads from maps, which own what they need.
    ring: RingBuffer<'static>,
    events: Arc<Mutex<Vec<RingEvent>>>,
    skel: CpuSkel<'static>,
    links: Vec<Link>,
    _rings: Vec<MapHandle>,
    /// Tracepoints and clocks that this kernel does not have.
    pub missing: Vec<String>,
    /// Bytes of the ring of one CPU.
    pub ring_bytes: u32,
}

/// What to record.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// Bytes of all rings together.
    pub buffer_bytes: u64,
    /// Samples each second on each CPU; 0 for none.
    pub hz: u32,
    /// Whether context switches are recorded.
    pub switches: bool,
}

impl Programs {
    /// Loads and attaches everything for these CPUs, and starts. Kernels can forbid programs at
    /// functions, which only give the beginning of polls.
    pub fn attach(cpus: &[u32], what: What) -> Result<Programs, LoadError> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        let types = fs::read(TYPES).map_err(LoadError::NoTypes)?;
        let has = |name: &str| contains(&types, format!("\0{name}\0").as_bytes());
        if let Some(needed) = NEEDED.iter().find(|name| !has(&format!("btf_trace_{name}"))) {
            return Err(LoadError::Needed(needed));
        }
        Programs::attach_to(cpus, what, has)
            .or_else(|_| Programs::attach_to(cpus, what, |name| name != AT_FUNCTION.1 && has(name)))
    }

    fn attach_to(
        cpus: &[u32],
        what: What,
        has: impl Fn(&str) -> bool,
    ) -> Result<Programs, LoadError> {
        first_warning().clear();
        // Lives as long as the program: there is one recorder in it.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = CpuSkelBuilder::default().open(object).map_err(kernel("open"))?;
        let mut missing = Vec::new();
        for mut program in open.open_object_mut().progs_mut() {
            let name = name(program.name());
            let (is_there, what) = match &*name {
                SAMPLE => continue,
                name if name == AT_FUNCTION.0 => {
                    (has(AT_FUNCTION.1), format!("program at function {}", AT_FUNCTION.1))
                }
                "sched_switch" if !what.switches => (false, String::new()),
                name => (has(&format!("btf_trace_{name}")), format!("tracepoint {name}")),
            };
            program.set_autoload(is_there);
            if !is_there && !what.is_empty() {
                missing.push(what);
            }
        }
        let highest = cpus.iter().max().copied().unwrap_or(0);
        open.maps.rings.set_max_entries(highest + 1).map_err(kernel("rings"))?;
        let skel = open.load().map_err(|error| denied("load", error))?;
        let ring_bytes = ring_bytes(what.buffer_bytes, cpus.len());
        let mut rings = Vec::new();
        for cpu in cpus {
            let ring = ring(ring_bytes).map_err(kernel("rings"))?;
            let place = ring.as_fd().as_raw_fd().to_ne_bytes();
            let updated = skel.maps.rings.update(&cpu.to_ne_bytes(), &place, MapFlags::ANY);
            updated.map_err(kernel("rings"))?;
            rings.push(ring);
        }
        let events: Arc<Mutex<Vec<RingEvent>>> = Arc::default();
        let ring = reader(&rings, &events).map_err(kernel("rings"))?;
        let mut programs =
            Programs { ring, events, skel, links: Vec::new(), _rings: rings, missing, ring_bytes };
        programs.attach_tracepoints()?;
        if what.hz > 0 {
            programs.attach_clocks(cpus, what.hz)?;
        }
        programs.set(|variables| {
            variables.switches = what.switches;
            variables.started = true;
        });
        Ok(programs)
    }

    fn attach_tracepoints(&mut self) -> Result<(), LoadError> {
        let mut links = Vec::new();
        for program in self.skel.object().progs_mut() {
            if !program.autoload() || program.prog_type() == ProgramType::PerfEvent {
                continue;
            }
            let name = name(program.name());
            match program.attach() {
                Ok(link) => links.push(link),
                Err(error) if NEEDED.contains(&&*name) => return Err(denied(&name, error)),
                Err(error) => self.missing.push(format!("{name} ({error})")),
            }
        }
        self.links = links;
        Ok(())
    }

    fn attach_clocks(&mut self, cpus: &[u32], hz: u32) -> Result<(), LoadError> {
        for &cpu in cpus {
            let clock = match system::clock(cpu, hz) {
                Ok(clock) => clock,
                Err(error) => {
                    self.missing.push(format!("samples of CPU {cpu} ({error})"));
                    continue;
                }
            };
            let link = self.skel.progs.smbscope_sample.attach_perf_event(clock.as_raw_fd());
            self.links.push(link.map_err(kernel("samples"))?);
            // The link closes it.
            let _ = clock.into_raw_fd();
        }
        Ok(())
    }

    fn set(&mut self, change: impl FnOnce(&mut skel::types::bss)) {
        if let Some(variables) = self.skel.maps.bss_data.as_deref_mut() {
            change(variables);
        }
    }

    /// Takes a sample only every `every` ticks.
    pub fn sample_every(&mut self, every: u32) {
        if let Some(variables) = self.skel.maps.data_data.as_deref_mut() {
            variables.sample_every = every;
        }
    }

    /// Records no more context switches.
    pub fn no_switches(&mut self) {
        self.set(|variables| variables.switches = false);
    }

    /// Removes all programs; the events until then can still be read.
    pub fn detach(&mut self) {
        self.set(|variables| variables.started = false);
        // Each waits until no CPU runs its program: these waits run in parallel.
        std::thread::scope(|scope| {
            for link in self.links.drain(..) {
                // If no thread can be started, it is done here.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || drop(link));
            }
        });
    }

    /// Appends the events since the last call, in bounded batches; returns whether there may be more.
    pub fn read(&mut self, into: &mut Vec<RingEvent>) -> Result<bool, LoadError> {
        let read = self.ring.consume_raw_n(EVENTS_AT_ONCE);
        if read < 0 {
            return Err(kernel("ring")(libbpf_rs::Error::from_raw_os_error(-read)));
        }
        into.append(&mut lock(&self.events));
        Ok(read as usize >= EVENTS_AT_ONCE)
    }

    /// Counters of a CPU.
    pub fn counters(&self, cpu: u32) -> CpuCounters {
        let variables = self.skel.maps.bss_data.as_deref();
        let found = variables.and_then(|variables| variables.cpus.get(cpu as usize));
        let Some(cpu) = found else { return CpuCounters::default() };
        CpuCounters {
            lost: cpu.lost,
            starts_unmatched: cpu.starts_unmatched,
            ends_unmatched: cpu.ends_unmatched,
            cost_ns: cpu.cost_ns * COST_EVERY + cpu.samples_ns,
        }
    }

    /// Events of CPUs that there is no memory for.
    pub fn beyond(&self) -> u64 {
        self.skel.maps.bss_data.as_deref().map_or(0, |variables| variables.beyond)
    }
}

/// Every n-th run of a program is measured: the same in `bpf/cpu.bpf.c`.
const COST_EVERY: u64 = 16;

impl Drop for Programs {
    fn drop(&mut self) {
        self.detach();
    }
}

/// The tracepoint of a program.
fn name(program: &OsStr) -> String {
    let name = program.to_string_lossy();
    name.strip_prefix(OWN).unwrap_or(&name).to_owned()
}

/// Bytes of the ring of each of `cpus` CPUs: the largest power of two that fits into `all`.
fn ring_bytes(all: u64, cpus: usize) -> u32 {
    let each = (all / (cpus.max(1) as u64)).clamp(RING_BYTES.0, RING_BYTES.1);
    let bytes = 1_u64 << each.ilog2();
    u32::try_from(bytes).unwrap_or(1 << 20)
}

fn ring(bytes: u32) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    MapHandle::create(MapType::RingBuf, Some("ring"), 0, 0, bytes, &options)
}

fn reader(
    rings: &[MapHandle],
    events: &Arc<Mutex<Vec<RingEvent>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    for ring in rings {
        let events = events.clone();
        builder.add(ring, move |bytes: &[u8]| {
            lock(&events).extend(RingEvent::parse(bytes));
            0
        })?;
    }
    builder.build()
}

fn lock(events: &Mutex<Vec<RingEvent>>) -> MutexGuard<'_, Vec<RingEvent>> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kernel(what: &str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
    let what = what.to_owned();
    move |error| {
        let warning = std::mem::take(&mut *first_warning());
        let warning = if warning.is_empty() { warning } else { format!(" ({warning})") };
        LoadError::Kernel { what, error, warning }
    }
}

fn denied(what: &str, error: libbpf_rs::Error) -> LoadError {
    // EACCES is the verifier's answer to a program; EPERM is that to a user.
    let is_rejected = first_warning().contains("EACCES");
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied if !is_rejected => LoadError::Denied(error),
        _ => kernel(what)(error),
    }
}

/// The first warning of libbpf, which would print it otherwise.
fn first_warning() -> MutexGuard<'static, String> {
    static WARNING: Mutex<String> = Mutex::new(String::new());
    WARNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(_: PrintLevel, line: String) {
    let mut warning = first_warning();
    if warning.is_empty() {
        line.trim().clone_into(&mut warning);
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_share_the_buffer() {
        assert_eq!(ring_bytes(16 << 20, 2), 8 << 20);
        assert_eq!(ring_bytes(16 << 20, 24), 512 << 10);
        assert_eq!(ring_bytes(0, 0), 64 << 10);
        assert_eq!(ring_bytes(u64::MAX, 1), 64 << 20);
    }

    #[test]
    fn names_of_types_are_whole_words() {
        assert!(contains(b"x\0btf_trace_napi_poll\0y", b"\0btf_trace_napi_poll\0"));
        assert!(!contains(b"x\0btf_trace_napi_polls\0y", b"\0btf_trace_napi_poll\0"));
    }
}
