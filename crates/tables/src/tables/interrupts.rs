//! Table `interrupts`: handlers of interrupts and deferred work of CPUs.
//!
//! `exclusive_ns` is defined in docs/method/processors.md.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One run of an interrupt's handler or of deferred work.
    Interrupt, "interrupts" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        cpu: u64, None, Public, "Number of the CPU.";
        kind: Cow<'static, str>, None, Public, "What it was: dpc, timer_dpc, threaded_dpc, isr, isr_msi (Windows); softirq, irq, napi_poll, ipi (Linux).";
        name: Option<Arc<str>>, None, Public, "What ran: the module of the routine (Windows); the softirq, the handler of the irq, or the device of the poll (Linux).";
        routine: Option<u64>, None, Public, "Address of the routine.";
        routine_offset: Option<u64>, Bytes, Public, "Offset of the routine in its module.";
        vector: Option<u64>, None, Public, "Interrupt vector, IRQ number, or number of the softirq.";
        device: Option<Arc<str>>, None, Public, "The device that it worked for.";
        queue: Option<u64>, None, Public, "Queue of the device, from the name of the handler.";
        thread: Option<u64>, None, Public, "The thread that it interrupted; 0 is idle.";
        start: i64, Time, Public, "When it began, on the clock of the trace; when it ended, if only that is known (polls of ftrace).";
        duration_ns: Option<i64>, Nanoseconds, Public, "Duration, with everything that interrupted it.";
        exclusive_ns: Option<i64>, Nanoseconds, Public, "Duration without the interrupts and deferred work that ran within it on the same CPU.";
        delay_ns: Option<i64>, Nanoseconds, Public, "From the request to the beginning.";
        work: Option<u64>, Count, Public, "Packets that a poll handled.";
        budget: Option<u64>, Count, Public, "Packets that a poll was allowed to handle.";
        function: Option<Arc<str>>, None, Public, "Function of the routine, from the trace or from symbols.";
    }
}
