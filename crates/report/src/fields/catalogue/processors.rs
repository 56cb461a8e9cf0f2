//! The fields of the report of a trace of processors, as `smbscope report TRACE --format json` prints it.

use crate::fields::Format::*;
use crate::fields::Presence::*;
use crate::fields::spec::Rows;

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("processors", "Where the time of processors goes.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope."),
        ("inputs", "Inputs", Texts, Always, "Names of the inputs."),
        ("start_ns", "Start", Time, Nullable, "First event, on the clock of the trace."),
        ("length_ns", "Length", Duration, Always, "Time that the traces cover."),
        ("possible_ns", "CPU time", Duration, Always, "The same for all processors together."),
        ("limits", "Limits", Object("limits"), Always, "Durations that interrupts and deferred work should not exceed."),
        ("processors", "Processors", List("processor"), Always, "The time of each processor."),
        ("interrupts", "Interrupts", List("interrupt_group"), Always, "Interrupts and deferred work by kind and name, the most time first."),
        ("devices", "Devices", List("device"), Always, "The work for each device, the most runs first."),
        ("traces", "Traces", List("trace"), Always, "What the traces contain, lost and do not show, one for each."),
        ("discarded", "Left out", Count, Always, "Rows left out because a list was full."),
    ]),
    ("limits", "Durations that interrupts and deferred work should not exceed.", &[], &[
        ("deferred_ns", "Deferred work", Duration, Always, "For DPCs and softirqs."),
        ("interrupt_ns", "Interrupts", Duration, Always, "For handlers of interrupts."),
    ]),
    ("processor", "The time of one processor; the times are disjoint.", &[], &[
        ("cpu", "CPU", Number, Always, "Number of the processor."),
        ("node", "Node", Number, Nullable, "Its NUMA node."),
        ("socket", "Socket", Number, Nullable, "Its socket."),
        ("core", "Core", Number, Nullable, "Its core."),
        ("thread", "Hyper-thread", Number, Nullable, "Number of the hyper-thread in the core."),
        ("interrupt_ns", "Interrupt time", Duration, Always, "Handlers of interrupts."),
        ("deferred_ns", "Deferred time", Duration, Always, "Deferred work: DPCs, softirqs."),
        ("thread_ns", "Thread time", Duration, Nullable, "Threads, without what interrupted them; null without context switches."),
        ("idle_ns", "Idle time", Duration, Nullable, "Idle, without what interrupted it; null without context switches."),
        ("interrupt_share", "Interrupts", Share, Nullable, "Handlers of interrupts, as a part of the length of the trace."),
        ("deferred_share", "Deferred", Share, Nullable, "Deferred work (DPCs, softirqs), as a part of the length of the trace."),
        ("thread_share", "Threads", Share, Nullable, "Threads, as a part of the length of the trace."),
        ("idle_share", "Idle", Share, Nullable, "Idle, as a part of the length of the trace."),
        ("interrupts", "Runs", Count, Always, "Runs of handlers and of deferred work."),
        ("samples", "Samples", Object("sample_counts"), Always, "Samples by what they hit."),
    ]),
    ("sample_counts", "Samples of a processor by what they hit.", &[], &[
        ("all", "Samples", Count, Always, "All samples."),
        ("interrupt", "In interrupts", Count, Always, "Samples in handlers of interrupts."),
        ("deferred", "In deferred work", Count, Always, "Samples in DPCs and softirqs."),
        ("kernel", "In the kernel", Count, Always, "Samples in threads that execute the kernel."),
        ("user", "In programs", Count, Always, "Samples in threads that execute a program."),
        ("idle", "Idle", Count, Always, "Samples while the processor was idle."),
    ]),
    ("interrupt_group", "Interrupts or deferred work of one kind and name.", &[], &[
        ("kind", "Kind", Code, Always, "What it is: dpc, timer_dpc, threaded_dpc, isr, isr_msi, softirq, irq, napi_poll, ipi."),
        ("name", "Name", Code, Nullable, "The module, the softirq, the handler, or the device; null where only an address is known."),
        ("count", "Count", Count, Always, "How often it ran."),
        ("exclusive_ns", "Time", Duration, Always, "Its time without what ran within it."),
        ("share", "Share", Share, Nullable, "The same as a part of the time of all processors."),
        ("duration", "Duration", Object("distribution"), Always, "Durations with what ran within."),
        ("limit_ns", "Limit", Duration, Always, "The duration that it should not exceed."),
        ("over_limit", "Over limit", Count, Always, "How often it took longer."),
        ("over_limit_ns", "Time over limit", Duration, Always, "The durations of these runs together."),
        ("delay", "Delay", Object("distribution"), Always, "From the request to the beginning."),
        ("work", "Packets", Count, Nullable, "Packets that polls handled."),
        ("cpus", "CPUs", Counts, Always, "The processors on which it ran, the most time first."),
    ]),
    ("device", "The work for one device.", &[], &[
        ("device", "Device", Code, Always, "Name of the device."),
        ("count", "Runs", Count, Always, "Handlers and polls that ran for it."),
        ("exclusive_ns", "Time", Duration, Always, "The time of those that have one."),
        ("work", "Packets", Count, Nullable, "Packets that its polls handled."),
        ("queues", "Queues", Count, Always, "Queues that the names of its handlers show."),
        ("busiest_share", "On the busiest CPU", Share, Always, "Part of the runs on the processor with the most."),
        ("cpus", "CPUs", List("device_cpu"), Always, "Its work on each processor, the most runs first."),
    ]),
    ("device_cpu", "The work for one device on one processor.", &[], &[
        ("cpu", "CPU", Number, Always, "Number of the processor."),
        ("count", "Runs", Count, Always, "Handlers and polls."),
        ("exclusive_ns", "Time", Duration, Always, "The time of those that have one."),
    ]),
];
