//! Events by tracefs: the kernel's own ring buffers of tracepoints, read in pages, where eBPF is not available.
//!
//! Documentation/trace/ftrace.rst: an instance of its own (`instances/smbscope-PID`), so that it disturbs no other
//! tracing, with buffers of fixed size that drop and count what does not fit; `per_cpu/cpuN/trace_pipe_raw` gives pages
//! in the form of `trace.dat`, so [`crate::trace_dat`] and [`crate::linux`] read them. Unlike eBPF an instance stays when
//! its program is killed: the next recorder removes it. Samples come from [`super::clocks`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use foldhash::HashMap;

use super::clocks::Clocks;
use super::{Options, convert};
use crate::bytes::Order;
use crate::event::{Coverage, Event};
use crate::linux::action::Action;
use crate::linux::format::{self, Format, Record};
use crate::linux::tracing::Known;
use crate::linux::{Fields as _, Head, State};
use crate::trace_dat::page::{Layout, Page};

/// Where tracefs is mounted, and where older kernels have it.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The beginning of the names of instances.
const INSTANCE: &str = "smbscope-";
/// Tracepoints; the first two are needed.
const EVENTS: [&str; 6] = [
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq/softirq_raise",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "napi/napi_poll",
];
const NEEDED: usize = 2;
/// Interrupts of the local APIC (x86) and between CPUs (others): each has an entry and an exit.
const VECTORS: [&str; 8] = [
    "irq_vectors/local_timer",
    "irq_vectors/reschedule",
    "irq_vectors/call_function",
    "irq_vectors/call_function_single",
    "irq_vectors/irq_work",
    "irq_vectors/thermal_apic",
    "irq_vectors/x86_platform_ipi",
    "ipi/ipi",
];
const SWITCH: &str = "sched/sched_switch";
/// Least and most KiB of the buffer of one CPU.
const BUFFER_KIB: (u64, u64) = (64, 64 << 10);
/// Pages that are read in one batch, and the largest page.
const PAGES_AT_ONCE: usize = 1024;
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Why tracefs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// It is not mounted.
    #[error(
        "tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing), or the kernel has none (CONFIG_FTRACE)"
    )]
    NotMounted,
    /// A file of it cannot be used.
    #[error("{0}: {1} (it needs root)")]
    File(PathBuf, io::Error),
    /// The kernel has no softirq tracepoints.
    #[error("this kernel has no tracepoint {0}")]
    Needed(&'static str),
}

/// An instance of tracing.
pub struct Tracefs {
    instance: PathBuf,
    /// CPUs and their pages.
    pipes: Vec<(u32, File)>,
    layout: Layout,
    page_bytes: usize,
    buffer_bytes: u64,
    events: HashMap<u16, Known>,
    linux: State,
    clocks: Clocks,
    offset_ns: i64,
    missing: Vec<String>,
}

impl Tracefs {
    /// Starts tracing on these CPUs. `offset_ns` is the time of day when `CLOCK_MONOTONIC` was 0.
    ///
    /// # Errors
    ///
    /// If tracefs cannot be used, or has no softirqs.
    pub fn start(cpus: &[u32], options: Options, offset_ns: i64) -> Result<Tracefs, TracefsError> {
        let Options { buffer_bytes, switches, hz, .. } = options;
        let root = mounted().ok_or(TracefsError::NotMounted)?;
        remove_old(&root);
        let instance = root.join("instances").join(format!("{INSTANCE}{}", std::process::id()));
        fs::create_dir(&instance).map_err(|error| TracefsError::File(instance.clone(), error))?;
        let header = fs::read_to_string(root.join("events/header_page")).unwrap_or_default();
        let fields = format::fields(&header);
        let data = fields.iter().find(|field| field.name == "data");
        let page_bytes = data.map_or(4096, |data| data.offset.saturating_add(data.size));
        let kib =
            (buffer_bytes / 1024 / (cpus.len().max(1) as u64)).clamp(BUFFER_KIB.0, BUFFER_KIB.1);
        let mut missing = Vec::new();
        let mut tracefs = Tracefs {
            instance,
            pipes: Vec::new(),
            layout: Layout::new(Order::NATIVE, &fields),
            page_bytes: page_bytes.clamp(512, PAGE_BYTES_MAX),
            buffer_bytes: kib * 1024 * cpus.len() as u64,
            events: HashMap::default(),
            linux: State::default(),
            clocks: Clocks::start(cpus, hz, &mut missing),
            offset_ns,
            missing,
        };
        // From here on the instance is removed when this is dropped.
        tracefs.set("tracing_on", "0")?;
        tracefs.set("trace_clock", "mono")?;
        tracefs.set("buffer_size_kb", &kib.to_string())?;
        tracefs.set("options/overwrite", "0")?;
        tracefs.enable(switches)?;
        for &cpu in cpus {
            let path = tracefs.instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            let file = opened.map_err(|error| TracefsError::File(path, error))?;
            tracefs.pipes.push((cpu, file));
        }
        tracefs.set("tracing_on", "1")?;
        Ok(tracefs)
    }

    /// Enables the tracepoints that this kernel has, and learns their layouts.
    fn enable(&mut self, switches: bool) -> Result<(), TracefsError> {
        let vectors =
            VECTORS.iter().flat_map(|name| ["entry", "exit"].map(|end| format!("{name}_{end}")));
        let all = EVENTS.iter().map(|&name| name.to_owned()).chain(vectors);
        let all = all.chain(switches.then(|| SWITCH.to_owned()));
        for (place, name) in all.enumerate() {
            let folder = self.instance.join("events").join(&name);
            let known = fs::read_to_string(folder.join("format")).ok();
            let known = known.as_deref().and_then(Format::parse).and_then(|format| {
                let action = Action::from_event(&format.name)?;
                Some(Known { format, action })
            });
            let enabled = known.filter(|_| fs::write(folder.join("enable"), "1").is_ok());
            match enabled {
                Some(known) => {
                    self.events.insert(known.format.id, known);
                }
                None if place < NEEDED => {
                    return Err(TracefsError::Needed(
                        EVENTS.get(place).copied().unwrap_or_default(),
                    ));
                }
                // A kernel has one of the two kinds of interrupts between CPUs.
                None if place < EVENTS.len() || name == SWITCH => self.missing.push(name),
                None => {}
            }
        }
        Ok(())
    }

    fn set(&self, file: &str, value: &str) -> Result<(), TracefsError> {
        let path = self.instance.join(file);
        fs::write(&path, value).map_err(|error| TracefsError::File(path, error))
    }

    /// Gives what happened to the sink: how many events, and whether there may be more. Never waits.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn read(&mut self, sink: &mut dyn FnMut(Event)) -> Result<(u64, bool), TracefsError> {
        let before = self.linux.coverage.events;
        // Events before that time are in the pages.
        let begin = super::now();
        self.clocks.read();
        let mut pages: Vec<(u64, u32, Vec<u8>)> = Vec::new();
        let each = (PAGES_AT_ONCE / self.pipes.len().max(1)).max(1);
        let mut more = false;
        for (cpu, pipe) in &mut self.pipes {
            for number in 0..each {
                let mut bytes = vec![0; self.page_bytes];
                let length = match pipe.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        let path = self.instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
                        return Err(TracefsError::File(path, error));
                    }
                };
                bytes.truncate(length);
                let begin = self.layout.order.u64(&bytes, 0).unwrap_or(0);
                pages.push((begin, *cpu, bytes));
                more |= number + 1 == each;
            }
        }
        pages.sort_by_key(|(begin, ..)| *begin);
        for (_, cpu, bytes) in &pages {
            self.page(*cpu, bytes, sink);
        }
        if !more {
            self.clocks.until(None, begin, self.offset_ns, &mut self.linux, sink);
        }
        Ok((self.linux.coverage.events - before, more))
    }

    fn page(&mut self, cpu: u32, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        let Some(mut page) = Page::new(bytes, self.layout) else {
            return self.linux.damaged(|| format!("a page of CPU {cpu}"));
        };
        if page.lost.is_some() {
            // How many is in the statistics of the CPU.
            self.linux.lost(Some(cpu), 0);
        }
        for (time, record) in page.by_ref() {
            self.record(cpu, time, record, sink);
        }
        if page.is_damaged {
            self.linux.damaged(|| format!("a record of CPU {cpu}"));
        }
    }

    fn record(&mut self, cpu: u32, time: u64, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        self.clocks.until(Some(cpu), time, self.offset_ns, &mut self.linux, sink);
        let time_ns = super::time_of_day(time, self.offset_ns);
        // Where the CPUs are is known: the recorder lists them.
        self.linux.count_live(time_ns);
        let id = self.layout.order.u16(bytes, 0);
        let Some(known) = id.and_then(|id| self.events.get(&id)) else { return self.linux.other() };
        let fields = Record { format: &known.format, bytes, order: self.layout.order };
        let thread = fields.number("common_pid").and_then(|thread| u32::try_from(thread).ok());
        let head = Head { cpu, time_ns, thread };
        if self.linux.event(head, known.action, &fields, sink).is_err() {
            self.linux.damaged(|| format!("{} at {time_ns} ns", known.format.name));
        }
    }

    /// Tracepoints that this kernel does not have.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Bytes of the buffers together.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes + self.clocks.ring_bytes()
    }

    /// Events that did not fit into the buffers of a CPU.
    pub fn lost(&self, cpu: u32) -> u64 {
        let path = self.instance.join(format!("per_cpu/cpu{cpu}/stats"));
        let events = fs::read_to_string(path).map_or(0, |text| lost(&text));
        events.saturating_add(self.clocks.lost(cpu))
    }

    /// Samples each second on each CPU; 0 if this kernel gives none.
    pub fn hz(&self) -> u32 {
        self.clocks.hz()
    }

    /// Takes a sample only every `every` ticks.
    pub fn sample_every(&mut self, every: u32) {
        self.clocks.sample_every(every);
    }

    /// Records no more context switches.
    pub fn no_switches(&mut self) {
        // If it fails, the recorder continues with them.
        let _ = self.set(&format!("events/{SWITCH}/enable"), "0");
    }

    /// Stops tracing; the events until then can still be read.
    pub fn stop(&mut self) {
        let _ = self.set("tracing_on", "0");
        self.clocks.stop();
    }

    /// What could not be read or paired.
    pub fn coverage(&self) -> Coverage {
        let has_no_names = self.clocks.hz() > 0 && !self.clocks.knows_functions();
        let notes = has_no_names.then(|| convert::NO_NAMES.to_owned());
        Coverage { events_lost: None, notes, ..self.linux.coverage() }
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        self.pipes.clear();
        remove(&self.instance);
    }
}

/// Removes an instance. What it enabled ends with it.
fn remove(instance: &Path) {
    let _ = fs::write(instance.join("tracing_on"), "0");
    let _ = fs::write(instance.join("events/enable"), "0");
    let _ = fs::remove_dir(instance);
}

/// Removes instances of recorders that were killed.
fn remove_old(root: &Path) {
    for entry in fs::read_dir(root.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(INSTANCE));
        let process =
            process.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&entry.path());
        }
    }
}

/// The folder of tracefs, which is mounted if it is not yet.
fn mounted() -> Option<PathBuf> {
    let find = || MOUNTS.iter().map(PathBuf::from).find(|path| path.join("instances").is_dir());
    find().or_else(|| {
        let target = MOUNTS.first()?;
        let mount = Command::new("mount").args(["-t", "tracefs", "nodev", target]).output().ok()?;
        find().filter(|_| mount.status.success())
    })
}

/// Lost events of `per_cpu/cpuN/stats`: overwritten ones, and ones that did not fit.
fn lost(stats: &str) -> u64 {
    let of = |line: &str| {
        let (name, number) = line.split_once(':')?;
        let counts = matches!(name.trim(), "overrun" | "commit overrun" | "dropped events");
        number.trim().parse::<u64>().ok().filter(|_| counts)
    };
    stats.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_those_of_the_statistics() {
        let stats = "entries: 7\noverrun: 1\ncommit overrun: 2\nbytes: 112\nnow ts:  1238.796953\ndropped events: 4\nread events: 144\n";
        assert_eq!(lost(stats), 7);
        assert_eq!(lost("dropped events: many\n:"), 0);
    }
}
