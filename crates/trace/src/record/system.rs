//! The system calls that no library has in safe form: perf_event_open(2) and its ioctl, sched_setscheduler(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};

use libbpf_rs::libbpf_sys::perf_event_attr;

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_CPU_CLOCK`, `PERF_FLAG_FD_CLOEXEC`: linux/perf_event.h.
const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_PERIOD`.
const PERIOD: libc::Ioctl = 0x4008_2404u32 as libc::Ioctl;

/// A clock of one CPU that ticks `hz` times a second, also while it is idle.
#[allow(unsafe_code)]
pub fn clock(cpu: u32, hz: u32) -> io::Result<OwnedFd> {
    let mut attributes = perf_event_attr {
        type_: TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: CPU_CLOCK,
        ..perf_event_attr::default()
    };
    attributes.set_freq(1);
    attributes.__bindgen_anon_1.sample_freq = u64::from(hz);
    let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
    let (all_threads, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
    // SAFETY: the attributes live until the call returns and say their size.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(&attributes),
            all_threads,
            cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(opened) {
        // SAFETY: the kernel has just opened it for this caller alone.
        Ok(opened) if opened >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(opened) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives a clock that runs another period. It needs no rights.
#[allow(unsafe_code)]
pub fn set_period(clock: &impl AsRawFd, period_ns: u64) -> io::Result<()> {
    // SAFETY: the period lives until the call returns.
    let set = unsafe { libc::ioctl(clock.as_raw_fd(), PERIOD, &raw const period_ns) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes this thread, and those that it starts, run before all others that have no real-time priority
/// (`SCHED_FIFO`, sched(7)).
#[allow(unsafe_code)]
pub fn run_first(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: the parameters live until the call returns.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
