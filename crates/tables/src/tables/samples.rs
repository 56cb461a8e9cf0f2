//! Table `samples`: what CPUs executed at regular intervals.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One sample of one CPU.
    Sample, "samples" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        time: i64, Time, Public, "When it was taken, on the clock of the trace.";
        cpu: u64, None, Public, "Number of the CPU.";
        process: Option<u64>, None, Public, "Number of the process.";
        thread: Option<u64>, None, Public, "Number of the thread; 0 is idle.";
        during: Option<Cow<'static, str>>, None, Public, "The interrupt or deferred work that it hit, a kind of the table interrupts; null for a thread.";
        address: Option<u64>, None, Public, "Address of the instruction.";
        function: Option<Arc<str>>, None, Public, "Innermost function.";
        module: Option<Arc<str>>, None, Public, "Module of the address.";
        stack: Option<u64>, None, Public, "Number of its stack in the table stacks.";
        weight_ns: Option<i64>, Nanoseconds, Public, "Time that the sample represents.";
    }
}
