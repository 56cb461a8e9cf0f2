//! Loads the BPF part, attaches it, and reads its events.
//!
//! Everything depends on this program's file descriptors: when it ends, in whatever way, the kernel
//! removes all probes.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{
    ErrorKind, Link, MapCore as _, MapFlags, OpenObject, PrintLevel, ProgramAttachType, ProgramMut,
    RingBuffer, RingBufferBuilder, UprobeMultiOpts, UprobeOpts,
};

use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};

use crate::check;
use crate::find::{Found, Library, born_since};
use crate::ring_event::Counted;
use crate::symbols::{Function, SymbolError, Symbols};
use crate::syscalls::CLASSES;

#[allow(missing_docs, unsafe_code, clippy::all, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/probe.skel.rs"));
}

use skel::{ProbeSkel, ProbeSkelBuilder};

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel refuses the BPF part.
    #[error("the kernel rejected the probe ({what}): {error}{}", in_parentheses(.warning))]
    Kernel {
        /// The step.
        what: &'static str,
        /// The kernel's answer.
        error: libbpf_rs::Error,
        /// The first message of libbpf.
        warning: String,
    },
    /// A library cannot be read.
    #[error(transparent)]
    Symbols(#[from] SymbolError),
}

/// Kinds of recorded processes: bpf/state.h.
const OF_SERVICE: u8 = 1;
const SERVICE: u8 = 2;
/// A step that the kernel may refuse although it permits everything else.
const FUNCTION_PROBE: &str = "function probe";
/// Events that are read in one batch.
const EVENTS_AT_ONCE: usize = 8192;

/// Options of the probe.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Bytes of the ring buffer: a power of two.
    pub ring_bytes: u32,
    /// Whether system calls are timed: without it there are no slices of files and waits.
    pub system_calls: bool,
    /// Whether Samba's functions are probed, if they are found: without them requests begin when they
    /// were read and end when their reply is sent, and encrypted ones stay closed.
    pub functions: bool,
    /// Whether time off the CPU is measured.
    pub off_cpu: bool,
    /// Whether time of block devices is measured; Linux 6.5.
    pub disk: bool,
    /// Whether every smbd that is started later is recorded too.
    pub follow_new: bool,
    /// Whether sockets are observed at tracepoints, where the kernel has them (Linux 6.3), and not at
    /// its functions.
    pub tracepoints: bool,
    /// Whether Samba's functions are probed with links (`uprobe_multi`), where the kernel has them
    /// (Linux 6.6), and not with perf events, which cost some 0.1 us more each time.
    pub links: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            ring_bytes: 16 << 20,
            system_calls: true,
            functions: true,
            off_cpu: false,
            disk: false,
            follow_new: false,
            tracepoints: true,
            links: true,
        }
    }
}

/// The attached probe.
pub struct Probe {
    // The ring reads from the skeleton's maps, which own what they need.
    ring: RingBuffer<'static>,
    /// Events, each preceded by its length.
    events: Arc<Mutex<Vec<u8>>>,
    skel: ProbeSkel<'static>,
    links: Vec<Link>,
    /// Functions at which a probe is expensive.
    pub expensive: Vec<String>,
    /// Why Samba's functions are not probed; `None` if they are.
    pub without_functions: Option<String>,
}

fn kernel(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
    move |error| LoadError::Kernel { what, error, warning: std::mem::take(&mut *first_warning()) }
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

fn in_parentheses(warning: &str) -> String {
    if warning.is_empty() { String::new() } else { format!(" ({warning})") }
}

impl Probe {
    /// Loads it and attaches it to what was found. If the kernel does not permit probing functions,
    /// only the kernel's own side is recorded.
    pub fn attach(found: &Found, options: LoadOptions) -> Result<Probe, LoadError> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        first_warning().clear();
        let error = match Probe::attach_as_asked(found, options) {
            Err(LoadError::Kernel { what: FUNCTION_PROBE, error, .. })
                if error.kind() == ErrorKind::PermissionDenied =>
            {
                error
            }
            attached => return attached,
        };
        let options = LoadOptions { functions: false, ..options };
        let mut probe = Probe::attach_as_asked(found, options)?;
        let why = "the kernel allows function probes only with CAP_SYS_ADMIN";
        probe.without_functions = Some(format!("{why}: {error}"));
        Ok(probe)
    }

    fn attach_as_asked(found: &Found, options: LoadOptions) -> Result<Probe, LoadError> {
        // Lives as long as the program: there is one probe in it.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = ProbeSkelBuilder::default().open(object).map_err(kernel("open"))?;
        let without_functions =
            if options.functions { missing(found)? } else { Some("not requested".to_owned()) };
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.tai_offset_ns = tai_offset_ns();
            constants.functions = without_functions.is_none();
            constants.disk = options.disk;
            constants.follow_new = options.follow_new;
            constants.follow_restart = !found.services.is_empty();
            for (number, class) in CLASSES {
                constants.classes[usize::from(*number)] = *class;
            }
        }
        open.maps.events.set_max_entries(options.ring_bytes).map_err(kernel("ring buffer"))?;
        open.progs.call_enter.set_autoload(options.system_calls);
        open.progs.call_exit.set_autoload(options.system_calls);
        let sockets = check::sockets();
        let at_tracepoints = options.tracepoints && sockets.tracepoints;
        open.progs.data_ready.set_autoload(at_tracepoints);
        open.progs.received.set_autoload(at_tracepoints);
        open.progs.sent.set_autoload(at_tracepoints);
        open.progs.data_ready_function.set_autoload(!at_tracepoints);
        open.progs.received_function.set_autoload(!at_tracepoints);
        open.progs.sent_function.set_autoload(!at_tracepoints);
        open.progs.sent_page.set_autoload(sockets.sendpage);
        open.progs.switched.set_autoload(options.off_cpu);
        open.progs.block_began.set_autoload(options.disk);
        open.progs.block_ended.set_autoload(options.disk);
        open.progs.block_merged.set_autoload(options.disk);
        if options.links && check::links_functions() {
            for program in [
                &mut open.progs.dispatch,
                &mut open.progs.done,
                &mut open.progs.crypto_in,
                &mut open.progs.sign,
                &mut open.progs.encrypt,
                &mut open.progs.crypto_left,
                &mut open.progs.pread_send,
                &mut open.progs.pwrite_send,
                &mut open.progs.fsync_send,
            ] {
                program.set_attach_type(ProgramAttachType::TraceUprobeMulti);
            }
        }
        let skel = open.load().map_err(kernel("load"))?;
        for port in &found.ports {
            let key = u32::from(*port).to_le_bytes();
            skel.maps.ports.update(&key, &[1], MapFlags::ANY).map_err(kernel("ports"))?;
        }
        let events: Arc<Mutex<Vec<u8>>> = Arc::default();
        let read = events.clone();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&skel.maps.events, move |event: &[u8]| {
                let mut events = read.lock().unwrap_or_else(PoisonError::into_inner);
                events.extend_from_slice(&(event.len() as u32).to_le_bytes());
                events.extend_from_slice(event);
                0
            })
            .map_err(kernel("ring buffer"))?;
        let ring = builder.build().map_err(kernel("ring buffer"))?;
        let mut probe = Probe {
            ring,
            events,
            skel,
            links: Vec::new(),
            expensive: Vec::new(),
            without_functions,
        };
        if probe.without_functions.is_none() {
            probe.attach_functions(found)?;
        }
        let sockets = check::Sockets { tracepoints: at_tracepoints, ..sockets };
        probe.follow(found.processes.iter().copied(), OF_SERVICE)?;
        if let Some(variables) = probe.skel.maps.bss_data.as_deref_mut() {
            variables.services = found.services.len() as u32;
        }
        probe.follow(found.services.iter().copied(), SERVICE)?;
        probe.attach_tracepoints(options, sockets)?;
        // Loading takes a second: the process of a client that connects in the meantime was neither
        // found nor seen to start.
        if let Ok(born) = born_since(found) {
            probe.follow(born, OF_SERVICE)?;
        }
        probe.start(true);
        Ok(probe)
    }

    fn follow(&self, processes: impl IntoIterator<Item = u32>, kind: u8) -> Result<(), LoadError> {
        for process in processes {
            let map = &self.skel.maps.processes;
            let updated = map.update(&process.to_le_bytes(), &[kind], MapFlags::ANY);
            updated.map_err(kernel("processes"))?;
        }
        Ok(())
    }

    fn attach_functions(&mut self, found: &Found) -> Result<(), LoadError> {
        let mut links = Vec::new();
        let programs = &self.skel.progs;
        for library in &found.cryptos {
            let names = [
                "smb2_signing_check_pdu",
                "smb2_signing_decrypt_pdu",
                "smb2_signing_sign_pdu",
                "smb2_signing_encrypt_pdu",
            ];
            let entries =
                [&programs.crypto_in, &programs.crypto_in, &programs.sign, &programs.encrypt];
            let functions = functions(library, &names, &mut self.expensive)?;
            for (function, entry) in functions.into_iter().zip(entries) {
                let Some(function) = function else { continue };
                links.push(uprobe(entry, library, function, false)?);
                links.push(uprobe(&programs.crypto_left, library, function, true)?);
            }
        }
        for library in &found.servers {
            let names = [
                "smbd_smb2_request_dispatch",
                "smbd_smb2_request_done_ex",
                "smb_vfs_call_pread_send",
                "smb_vfs_call_pwrite_send",
                "smb_vfs_call_fsync_send",
            ];
            let entries = [
                &programs.dispatch,
                &programs.done,
                &programs.pread_send,
                &programs.pwrite_send,
                &programs.fsync_send,
            ];
            let functions = functions(library, &names, &mut self.expensive)?;
            for (function, entry) in functions.into_iter().zip(entries) {
                let Some(function) = function else { continue };
                links.push(uprobe(entry, library, function, false)?);
            }
        }
        self.links = links;
        Ok(())
    }

    fn attach_tracepoints(
        &mut self,
        options: LoadOptions,
        sockets: check::Sockets,
    ) -> Result<(), LoadError> {
        let programs = &self.skel.progs;
        let mut kernel_side = if sockets.tracepoints {
            vec![&programs.data_ready, &programs.received, &programs.sent]
        } else {
            vec![
                &programs.data_ready_function,
                &programs.received_function,
                &programs.sent_function,
            ]
        };
        if sockets.sendpage {
            kernel_side.push(&programs.sent_page);
        }
        kernel_side.extend([
            &programs.departed,
            &programs.closed,
            &programs.forked,
            &programs.executed,
            &programs.ended,
        ]);
        if options.system_calls {
            kernel_side.extend([&programs.call_enter, &programs.call_exit]);
        }
        if options.off_cpu {
            kernel_side.push(&programs.switched);
        }
        if options.disk {
            kernel_side.extend([
                &programs.block_began,
                &programs.block_ended,
                &programs.block_merged,
            ]);
        }
        for program in kernel_side {
            self.links.push(program.attach().map_err(kernel("tracepoint"))?);
        }
        Ok(())
    }

    fn start(&mut self, started: bool) {
        if let Some(variables) = self.skel.maps.bss_data.as_deref_mut() {
            variables.started = started;
        }
    }

    /// Whether no process is left that is recorded.
    pub fn is_alone(&self) -> bool {
        self.skel.maps.processes.keys().next().is_none()
    }

    /// Removes all probes; the events until then can still be read.
    pub fn detach(&mut self) {
        // They are removed one by one: the last ones would see only half of the events.
        self.start(false);
        // For each function the kernel waits until no thread is in its probe: these waits run in parallel.
        std::thread::scope(|scope| {
            for link in self.links.drain(..) {
                // If no thread can be started, it is done here.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || drop(link));
            }
        });
    }

    /// Takes the events since the last call, in bounded batches; returns how
    /// many events.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) -> Result<usize, LoadError> {
        let read = self.ring.consume_raw_n(EVENTS_AT_ONCE);
        if read < 0 {
            let error = libbpf_rs::Error::from_raw_os_error(-read);
            return Err(kernel("ring buffer")(error));
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = events.as_slice();
        while let Some((length, after)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((event, after)) = after.split_at_checked(length) else { break };
            take(event);
            rest = after;
        }
        events.clear();
        Ok(read as usize)
    }

    /// The BPF part's counters.
    pub fn counted(&self) -> Counted {
        let key = 0_u32.to_le_bytes();
        let found = self.skel.maps.counted.lookup_percpu(&key, MapFlags::ANY);
        let values = found.ok().flatten().unwrap_or_default();
        let sum = |place: usize| -> u64 {
            let of_cpu =
                |bytes: &Vec<u8>| Some(u64::from_le_bytes(*bytes.get(place * 8..)?.first_chunk()?));
            values.iter().filter_map(of_cpu).sum()
        };
        Counted { dropped: sum(0), threads: sum(1), processes: sum(2), strange_sends: sum(3) }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Why Samba's functions cannot be probed; `None` if they can.
fn missing(found: &Found) -> Result<Option<String>, LoadError> {
    if found.servers.is_empty() {
        return Ok(Some("smbd is linked in a way that smbscope does not know".to_owned()));
    }
    let names = ["smbd_smb2_request_dispatch", "smbd_smb2_request_done_ex"];
    for library in &found.servers {
        let functions = Symbols::read(&library.path)?.find(&names)?;
        if let Some((_, name)) = functions.iter().zip(names).find(|(found, _)| found.is_none()) {
            return Ok(Some(format!("{} has no function {name}", library.path.display())));
        }
    }
    Ok(None)
}

/// TAI minus UTC in whole seconds, 0 if the kernel does not know it.
fn tai_offset_ns() -> u64 {
    let utc = clock_gettime(ClockId::Realtime);
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or(utc);
    let apart = (tai.tv_sec - utc.tv_sec) * 1_000_000_000 + (tai.tv_nsec - utc.tv_nsec);
    (apart + 500_000_000).max(0) as u64 / 1_000_000_000 * 1_000_000_000
}

fn functions(
    library: &Library,
    names: &[&str],
    expensive: &mut Vec<String>,
) -> Result<Vec<Option<Function>>, LoadError> {
    let found = Symbols::read(&library.path)?.find(names)?;
    for (function, name) in found.iter().zip(names) {
        if function.is_some_and(|function| !function.is_cheap()) {
            expensive.push((*name).to_owned());
        }
    }
    Ok(found)
}

fn uprobe(
    program: &ProgramMut<'_>,
    library: &Library,
    function: Function,
    retprobe: bool,
) -> Result<Link, LoadError> {
    let offset = function.offset as usize;
    // In all processes that map it; the BPF part selects the recorded ones.
    let attached = if matches!(program.attach_type(), ProgramAttachType::TraceUprobeMulti) {
        let options =
            UprobeMultiOpts { offsets: vec![offset], retprobe, ..UprobeMultiOpts::default() };
        program.attach_uprobe_multi_with_opts(-1, &library.path, "", options)
    } else {
        let options = UprobeOpts { retprobe, ..UprobeOpts::default() };
        program.attach_uprobe_with_opts(-1, &library.path, offset, options)
    };
    attached.map_err(kernel(FUNCTION_PROBE))
}
