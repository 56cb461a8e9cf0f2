//! Table `samples`: what CPUs executed at regular intervals.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One sample of what a CPU executed.
    Sample, "samples" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        time: i64, Time, Public, "When it was taken, on the clock of the trace.";
        cpu: Option<u64>, None, Public, "Number of the CPU; null if the trace does not say it (perf record of one program).";
        process: Option<u64>, None, Public, "Number of the process.";
        thread: Option<u64>, None, Public, "Number of the thread; 0 is idle.";
        task: Option<Arc<str>>, None, Public, "Name of the thread.";
        mode: Option<Cow<'static, str>>, None, Public, "Mode of the CPU: kernel, user, hypervisor, guest_kernel or guest_user; null if the trace does not say it.";
        during: Option<Cow<'static, str>>, None, Public, "The interrupt or deferred work that it hit, a kind of the table interrupts; null for a thread.";
        address: Option<u64>, None, Public, "Address of the instruction.";
        function: Option<Arc<str>>, None, Public, "Innermost function.";
        module: Option<Arc<str>>, None, Public, "Module of the address.";
        stack: Option<u64>, None, Public, "Number of its stack in the table stacks.";
        weight_ns: Option<i64>, Nanoseconds, Public, "Time that the sample represents.";
    }
}
