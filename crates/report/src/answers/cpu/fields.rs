//! The fields of the report of a CPU trace, as `smbscope report TRACE --format json` prints it.

use smbscope_analysis::processors::ProcessorFindingKind;
use smbscope_tables::Table;
use smbscope_tables::tables::Trace;

use crate::answers::recording;
use crate::document::by_field;
use crate::value::Format::*;
use crate::value::Presence::*;
use crate::value::{Closed, Fields, Object, Rows, all, kinds_of, table};

/// The objects of the report of a CPU trace.
pub static FIELDS: Fields = Fields::new("processors", objects, closed);

by_field! { column distribution fact }

fn objects() -> Vec<Object> {
    let distribution = recording::fields::OBJECTS.iter();
    let distribution = distribution.filter(|(name, ..)| *name == "distribution");
    let mut objects = all(OBJECTS.iter().chain(distribution));
    objects.push(table(
        Table::Traces,
        "trace",
        "What was seen, lost and not understood in one trace.",
        Trace::specs(),
    ));
    objects
}

/// The objects of the explanation of a CPU trace.
pub static EXPLAIN_FIELDS: Fields = Fields::new("explain-processors", explain_objects, closed);

fn explain_objects() -> Vec<Object> {
    let reports =
        OBJECTS.iter().filter(|(name, ..)| *name == "recorded" || IN_DIAGNOSES.contains(name));
    all(EXPLANATION.iter().chain(reports))
}

/// Fields whose values are a closed list.
pub(crate) fn closed() -> Vec<Closed> {
    kinds_of::<ProcessorFindingKind>("processor_finding").to_vec()
}

#[rustfmt::skip]
pub(crate) const OBJECTS: &[Rows] = &[
    ("processors", "Where the time of CPUs goes.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope."),
        ("inputs", "Inputs", Texts, Always, "Names of the inputs."),
        ("period", "Period", Text, Optional, "The period that the report covers; absent if it covers all."),
        ("start_ns", "Start", Time, Nullable, "First event, on the clock of the trace."),
        ("length_ns", "Length", Duration, Always, "Time that the traces cover."),
        ("possible_ns", "CPU time", Duration, Always, "The same for all CPUs together."),
        ("limits", "Limits", Object("limits"), Always, "Durations that interrupts and deferred work should not exceed."),
        ("recorded", "Recorded", Object("recorded"), Always, "What the traces say about interrupts and deferred work."),
        ("processors", "CPUs", List("processor"), Always, "The time of each CPU."),
        ("interrupts", "Interrupts", List("interrupt_group"), Always, "Interrupts and deferred work by kind and name, the most time first."),
        ("findings", "Findings", List("processor_finding"), Always, "What is wrong, the most costly first."),
        ("timeline", "Over time", Object("timeline"), Nullable, "What each CPU did over time; null without durations."),
        ("in_samples", "Samples inside", Object("in_samples"), Nullable, "What samples hit in interrupts and deferred work; null without samples."),
        ("tasks", "What samples hit", Object("task_samples"), Nullable, "What samples hit, by process and by symbol; null without samples."),
        ("power", "Power saving", Object("power"), Nullable, "Idle states and frequencies; null without such events."),
        ("devices", "Devices", List("device"), Always, "The work for each device, the most runs first."),
        ("totals", "Sums", Object("totals"), Nullable, "Sums of an input that has no single interrupts; null for traces."),
        ("symbols_missing", "Missing PDB files", List("symbols_missing"), Always, "PDB files that would name functions (--symbols), those of the modules with the most time first."),
        ("traces", "Traces", List("trace"), Always, "What the traces contain, lost and do not show, one for each."),
        ("discarded", "Left out", Count, Always, "Rows left out because a list was full."),
    ]),
    ("task_samples", "What samples hit, as `perf report` shows it.", &[], &[
        ("samples", "Samples", Count, Always, "All samples."),
        ("has_cpus", "With CPUs", Flag, Always, "Whether any sample says on which CPU it was taken."),
        ("processes", "By process", List("sampled_process"), Always, "By process, the most samples first; at most 200."),
        ("symbols", "By symbol", List("sampled_symbol"), Always, "By name of the thread, module and function, the most samples first; at most 200."),
    ]),
    ("sampled_process", "Samples of one process.", &[], &[
        ("process", "Process", Number, Nullable, "Its number; null if the trace does not say it."),
        ("name", "Name", Text, Nullable, "Name of its first thread, or of its program; null if it is not known."),
        ("threads", "Threads", Count, Always, "Threads that samples hit."),
        ("samples", "Samples", Count, Always, "Samples in it."),
        ("share", "Share", Share, Always, "Part of all samples."),
        ("kernel", "In the kernel", Count, Always, "Samples in the kernel, with interrupts and deferred work."),
        ("user", "In the program", Count, Always, "Samples in the program."),
        ("time_ns", "Time", Duration, Nullable, "Time that the samples represent; null if the trace does not say it."),
    ]),
    ("sampled_symbol", "Samples of one function, or of one module without names of functions.", &[], &[
        ("task", "Thread", Text, Nullable, "Name of the threads; null if the trace does not say it."),
        ("module", "Module", Code, Nullable, "Module of the innermost frame; null if it is not known."),
        ("function", "Function", Code, Nullable, "Innermost function; null if it is not known."),
        ("samples", "Samples", Count, Always, "Samples that hit it."),
        ("share", "Share", Share, Always, "Part of all samples."),
    ]),
    ("recorded", "What the traces say about interrupts and deferred work.", &[], &[
        ("interrupts", "Interrupts", Flag, Always, "Whether handlers of interrupts were recorded, as single runs or as sums."),
        ("deferred", "Deferred work", Flag, Always, "Whether deferred work was recorded."),
        ("families", "Events", Texts, Always, "What occurs, by what a tracer can record alone: softirq, irq, napi_poll, dpc, isr, and each vector of the local APIC."),
        ("runs", "Runs", Count, Always, "Runs of the whole traces; more than the report has if it covers a period."),
    ]),
    ("limits", "Durations that interrupts and deferred work should not exceed.", &[], &[
        ("deferred_ns", "Deferred work", Duration, Always, "For DPCs and softirqs."),
        ("interrupt_ns", "Interrupts", Duration, Always, "For handlers of interrupts."),
    ]),
    ("processor", "The time of one CPU; the times are disjoint.", &[], &[
        ("cpu", "CPU", Number, Always, "Number of the CPU."),
        ("node", "Node", Number, Nullable, "Its NUMA node."),
        ("socket", "Socket", Number, Nullable, "Its socket."),
        ("core", "Core", Number, Nullable, "Its core."),
        ("thread", "Hyper-thread", Number, Nullable, "Number of the hyper-thread in the core."),
        ("interrupt_ns", "Interrupt time", Duration, Nullable, "Handlers of interrupts; null if they were not recorded."),
        ("deferred_ns", "Deferred time", Duration, Nullable, "Deferred work: DPCs, softirqs; null if it was not recorded."),
        ("thread_ns", "Thread time", Duration, Nullable, "Threads, without what interrupted them; null without context switches."),
        ("idle_ns", "Idle time", Duration, Nullable, "Idle, without what interrupted it; null without context switches."),
        ("interrupt_share", "Interrupts", Share, Nullable, "Handlers of interrupts, as a part of the length of the trace."),
        ("deferred_share", "Deferred", Share, Nullable, "Deferred work (DPCs, softirqs), as a part of the length of the trace."),
        ("thread_share", "Threads", Share, Nullable, "Threads, as a part of the length of the trace."),
        ("idle_share", "Idle", Share, Nullable, "Idle, as a part of the length of the trace."),
        ("interrupts", "Runs", Count, Nullable, "Runs of handlers and of deferred work; null if there are sums only, or nothing was recorded."),
        ("samples", "Samples", Object("sample_counts"), Always, "Samples by what they hit."),
        ("sampled", "By samples", Object("sampled_shares"), Nullable, "Shares by samples; null without samples."),
    ]),
    ("sampled_shares", "What a CPU did, by samples; the shares add up to 1.", &[], &[
        ("of_time", "Share of time", Flag, Always, "Whether these are parts of the time; otherwise of the samples, and a CPU that is not sampled while it is idle looks busier than it is."),
        ("interrupt", "Interrupts", Share, Nullable, "Handlers of interrupts; null if they were not recorded and no sample of any CPU hit one: many clocks do not tick there."),
        ("deferred", "Deferred", Share, Nullable, "DPCs and softirqs; null if they were not recorded and no sample of any CPU hit one."),
        ("kernel", "In the kernel", Share, Always, "Threads that execute the kernel."),
        ("user", "In programs", Share, Always, "Threads that execute a program."),
        ("idle", "Idle", Share, Always, "Idle, with the time in which an idle CPU is not sampled where that is known."),
        ("unknown", "Not known", Share, Always, "Samples of which it is not known what they hit."),
    ]),
    ("sample_counts", "Samples of a CPU by what they hit.", &[], &[
        ("all", "Samples", Count, Always, "All samples."),
        ("interrupt", "In interrupts", Count, Always, "Samples in handlers of interrupts."),
        ("deferred", "In deferred work", Count, Always, "Samples in DPCs and softirqs."),
        ("kernel", "In the kernel", Count, Always, "Samples in threads that execute the kernel."),
        ("user", "In programs", Count, Always, "Samples in threads that execute a program."),
        ("idle", "Idle", Count, Always, "Samples while the CPU was idle."),
    ]),
    ("interrupt_group", "Interrupts or deferred work of one kind and name.", &[], &[
        ("kind", "Kind", Code, Always, "What it is: dpc, timer_dpc, threaded_dpc, isr, isr_msi, softirq, irq, napi_poll, ipi."),
        ("name", "Name", Code, Nullable, "The module, the softirq, the handler, or the device; null where only an address is known."),
        ("count", "Count", Count, Always, "How often it ran."),
        ("exclusive_ns", "Time", Duration, Always, "Its time without what ran within it."),
        ("share", "Share", Share, Nullable, "The same as a part of the time of all CPUs."),
        ("duration", "Duration", Object("distribution"), Always, "Durations with what ran within."),
        ("limit_ns", "Limit", Duration, Always, "The duration that it should not exceed."),
        ("over_limit", "Over limit", Count, Always, "How often it took longer."),
        ("over_limit_ns", "Time over limit", Duration, Always, "The durations of these runs together."),
        ("delay", "Delay", Object("distribution"), Always, "From the request to the beginning."),
        ("work", "Packets", Count, Nullable, "Packets that polls handled."),
        ("cpus", "CPUs", List("device_cpu"), Always, "The CPUs on which it ran, the most time first."),
        ("longest", "Durations in order", List("ranked"), Always, "Durations in order of size, the longest first."),
        ("interval_ns", "Interval", Duration, Always, "Length of the intervals."),
        ("intervals", "Intervals", Counts, Always, "Its time in intervals of equal length, ns."),
    ]),
    ("power", "Idle states and frequencies of CPUs.", &[], &[
        ("states", "Idle states", List("idle_state"), Always, "By number of the state, the lightest first."),
        ("lowest_khz", "Lowest frequency", Number, Nullable, "Lowest frequency to which a CPU changed, kHz."),
        ("highest_khz", "Highest frequency", Number, Nullable, "Highest frequency to which a CPU changed, kHz."),
        ("delay_when_idle", "Delay when idle", Object("distribution"), Always, "From the request to the beginning, of work on CPUs that were idle."),
        ("delay_when_busy", "Delay when busy", Object("distribution"), Always, "The same on CPUs that ran a thread."),
    ]),
    ("idle_state", "One idle state, on all CPUs together.", &[], &[
        ("state", "State", Number, Always, "Number of the state; 0 is the lightest."),
        ("count", "Times", Count, Always, "How often a CPU was in it."),
        ("duration_ns", "Time", Duration, Always, "Time of all CPUs in it."),
        ("longest_ns", "Longest", Duration, Always, "The longest stay."),
        ("cpus", "CPUs", Count, Always, "CPUs that were in it."),
    ]),
    ("ranked", "A place in the order of durations.", &[], &[
        ("count", "Count", Count, Always, "Number of durations that are at least as long."),
        ("duration_ns", "Duration", Duration, Always, "The duration."),
    ]),
    ("timeline", "Time of interrupts and deferred work in bins of equal width.", &[], &[
        ("start_ns", "Start", Time, Always, "Beginning of the first bin."),
        ("bin_ns", "Bin", Duration, Always, "Width of a bin."),
        ("bins", "Bins", Count, Always, "Number of bins."),
        ("cpus", "CPUs", List("timeline_cpu"), Always, "The bins of each CPU."),
    ]),
    ("timeline_cpu", "The bins of one CPU.", &[], &[
        ("cpu", "CPU", Number, Always, "Number of the CPU."),
        ("deferred_ns", "Deferred work", Counts, Always, "Deferred work, ns."),
        ("interrupt_ns", "Interrupts", Counts, Always, "Handlers of interrupts, ns."),
    ]),
    ("processor_finding", "One thing that takes CPUs' time.", &[], &[
        ("trouble", "Trouble", Code, Always, "What it is, from a closed list."),
        ("what", "What", Text, Always, "A sentence."),
        ("cost_ns", "Cost", Duration, Nullable, "Time of CPUs that it takes; null where it is not known."),
        ("cpus", "CPUs", Counts, Always, "The CPUs concerned."),
        ("confidence", "Confidence", Code, Always, "How sure it is: possible, likely or measured."),
        ("because", "Because", Text, Always, "What the confidence is based on."),
        ("first_ns", "First", Time, Nullable, "When it began; null if it was there from the start or is not known."),
        ("last_ns", "Last", Time, Nullable, "When it ended; null if it was there to the end or is not known."),
        ("figures", "Figures", List("processor_figure"), Optional, "Numbers that prove it; absent if there are none."),
        ("remedies", "Remedies", List("processor_remedy"), Always, "What to do."),
    ]),
    ("processor_figure", "A number that supports a finding.", &[], &[
        ("name", "Name", Code, Always, "Its name."),
        ("value", "Value", Number, Always, "The value, in the unit."),
        ("unit", "Unit", Code, Always, "ns, share (from 0 to 1), or empty for a plain number."),
    ]),
    ("processor_remedy", "What to do, and where.", &[], &[
        ("at", "Where", Text, Always, "Where: Windows, Linux."),
        ("action", "Action", Text, Always, "What to do."),
    ]),
    ("in_samples", "What samples hit in interrupts and deferred work.", &[], &[
        ("interrupt", "In interrupts", Count, Always, "Samples in handlers of interrupts."),
        ("deferred", "In deferred work", Count, Always, "Samples in deferred work."),
        ("groups", "By function", List("sampled_group"), Always, "By module and function of the innermost frame, most samples first."),
        ("calls", "Calls", List("call_node"), Always, "The tree of calls; empty without stacks."),
        ("receive", "Receive path", List("path_part"), Always, "Drivers and layers in the stacks of received packets, from the adapter to TCP."),
        ("all", "Samples", Count, Always, "All samples."),
        ("crypto", "Signing and encryption", List("sampled_crypto"), Always, "Samples in code that signs or encrypts, the most first."),
        ("tracing_share", "Tracing", Share, Nullable, "Share of all samples in functions that record the trace; null without names of functions."),
    ]),
    ("sampled_crypto", "Samples in code that signs or encrypts.", &[], &[
        ("module", "Module", Code, Always, "The module, or the code of the kernel."),
        ("samples", "Samples", Count, Always, "Samples that hit it."),
    ]),
    ("sampled_group", "Samples of one module and function.", &[], &[
        ("module", "Module", Code, Nullable, "The module."),
        ("function", "Function", Code, Nullable, "The function."),
        ("interrupt", "In interrupts", Count, Always, "Samples in handlers of interrupts."),
        ("deferred", "In deferred work", Count, Always, "Samples in deferred work."),
    ]),
    ("call_node", "A function or module in the tree of calls.", &[], &[
        ("name", "Name", Code, Always, "Module and function."),
        ("samples", "Samples", Count, Always, "Samples in it and in what it calls."),
        ("own_samples", "Own samples", Count, Always, "Samples in itself."),
        ("calls", "Calls", List("call_node"), Always, "What it calls, most samples first."),
    ]),
    ("path_part", "A driver or layer in the receive path of the network.", &[], &[
        ("name", "Name", Code, Always, "The module, or what functions belong to."),
        ("role", "Role", Code, Always, "system, adapter, team, switch, filter, protocol, receiver, tracing."),
        ("samples", "Samples", Count, Always, "Samples of received packets with it in their stacks."),
        ("share", "In stacks", Share, Always, "Their share of all samples of received packets."),
        ("own_share", "Itself", Share, Always, "Share of the samples that hit it itself."),
    ]),
    ("device", "The work for one device.", &[], &[
        ("device", "Device", Code, Always, "Name of the device."),
        ("count", "Runs", Count, Always, "Handlers and polls that ran for it."),
        ("exclusive_ns", "Time", Duration, Always, "The time of those that have one."),
        ("work", "Packets", Count, Nullable, "Packets that its polls handled."),
        ("queues", "Queues", Count, Always, "Queues that the names of its handlers show."),
        ("busiest_share", "On the busiest CPU", Share, Always, "Part of the runs on the CPU with the most."),
        ("nodes", "NUMA nodes", Counts, Always, "NUMA nodes of its CPUs, where they are known."),
        ("own_node", "Its node", Count, Nullable, "NUMA node of its bus; null where the trace does not say it."),
        ("remote_ns", "On other nodes", Duration, Always, "Time of its work on CPUs of other nodes than its own."),
        ("cpus", "CPUs", List("device_cpu"), Always, "Its work on each CPU, the most runs first."),
    ]),
    ("totals", "Sums of an input that has no single interrupts.", &[], &[
        ("covered_ns", "Covered", Duration, Always, "Time that the sums of CPUs are about."),
        ("of_intervals", "Of intervals", Flag, Always, "Whether they come from the intervals of the input, because it was cut to a period; there are no modules then."),
        ("cpus", "CPUs", List("total_cpu"), Always, "The time of each CPU."),
        ("modules", "Modules", List("total_module"), Always, "Interrupts and deferred work by kind and module, the most time first."),
    ]),
    ("total_cpu", "The time of one CPU, by sums.", &[], &[
        ("cpu", "CPU", Number, Always, "Number of the CPU."),
        ("deferred_ns", "Deferred time", Duration, Nullable, "Deferred work (DPCs); null if the input does not have it."),
        ("interrupt_ns", "Interrupt time", Duration, Nullable, "Handlers of interrupts (ISRs); null if the input does not have them."),
        ("deferred_share", "Deferred", Share, Nullable, "Deferred work as a part of the covered time."),
        ("interrupt_share", "Interrupts", Share, Nullable, "Handlers of interrupts as a part of the covered time."),
        ("highest_share", "Highest", Share, Nullable, "The highest share of both in one interval; null without intervals."),
        ("highest_start_ns", "Highest after", Duration, Nullable, "When that interval begins, since the start of the trace."),
    ]),
    ("total_module", "Interrupts or deferred work of one module, by sums.", &[], &[
        ("kind", "Kind", Code, Always, "What it is: dpc, isr."),
        ("name", "Name", Text, Always, "Name of the module."),
        ("duration_ns", "Time", Duration, Always, "Its time, with what ran within it."),
        ("share", "Share", Share, Nullable, "The same as a part of the time of all CPUs."),
        ("count", "Count", Count, Nullable, "How often it ran; null if the input does not say."),
        ("mean_ns", "Mean", Duration, Nullable, "Mean duration."),
        ("limit_ns", "Limit", Duration, Always, "The duration that it should not exceed."),
        ("over_limit_least", "Over limit, at least", Count, Nullable, "The least possible number of runs above the limit."),
        ("over_limit_most", "Over limit, at most", Count, Nullable, "The greatest possible number of them."),
        ("longest_above_ns", "Longest above", Duration, Nullable, "The longest took longer than this."),
        ("cpus", "CPUs", Counts, Always, "The CPUs on which it ran, the most time first."),
        ("cpus_ns", "Time on CPUs", Counts, Always, "Its time on each of these, ns."),
        ("histogram", "Durations", List("total_bucket"), Always, "Runs by their duration."),
    ]),
    ("total_bucket", "Runs whose duration is between two bounds.", &[], &[
        ("above_ns", "Above", Duration, Always, "They took longer than this."),
        ("up_to_ns", "Up to", Duration, Nullable, "They took at most this; null for the last one."),
        ("count", "Count", Count, Always, "How many."),
    ]),
    ("symbols_missing", "A PDB file that is missing: no function of its module has a name.", &[], &[
        ("module", "Module", Code, Always, "Name of the module."),
        ("file", "PDB file", Code, Always, "Where a symbol server has it: name, GUID and age, name."),
        ("exclusive_ns", "Time", Duration, Always, "Time of its interrupts and deferred work."),
        ("sampled_ns", "Sampled", Duration, Always, "Time that the samples in it represent."),
        ("frames", "Frames", Count, Always, "Frames of stacks in it."),
    ]),
    ("device_cpu", "The work for one device on one CPU.", &[], &[
        ("cpu", "CPU", Number, Always, "Number of the CPU."),
        ("count", "Runs", Count, Always, "Handlers and polls."),
        ("exclusive_ns", "Time", Duration, Always, "The time of those that have one."),
    ]),
];

/// What `smbscope explain TRACE --format json` prints; with [`IN_DIAGNOSES`].
#[rustfmt::skip]
pub(crate) const EXPLANATION: &[Rows] = &[
    ("processors_explanation", "What holds the CPUs of a trace.", &[], &[
        ("version", "Version", Text, Always, "Version of smbscope."),
        ("inputs", "Inputs", Texts, Always, "Names of the inputs."),
        ("period", "Period", Text, Optional, "The period that is explained; absent if it is all."),
        ("length_ns", "Length", Duration, Always, "Time that the traces cover."),
        ("possible_ns", "CPU time", Duration, Always, "The same for all CPUs together."),
        ("recorded", "Recorded", Object("recorded"), Always, "What the traces say about interrupts and deferred work."),
        ("findings", "Findings", List("processor_finding"), Always, "What is wrong, the most costly first."),
    ]),
];

/// What a diagnosis says about a CPU trace of the same time; with [`IN_DIAGNOSES`].
#[rustfmt::skip]
pub(crate) const BESIDE: &[Rows] = &[
    ("processors_beside", "A CPU trace next to operations of the same time.", &[], &[
        ("findings", "Findings", List("processor_finding"), Always, "What is wrong with the CPUs, the most costly first."),
        ("waiting", "Waiting", Object("waiting"), Nullable, "Operations while CPUs were held; null if trace and operations have no time in common."),
    ]),
    ("waiting", "Operations while interrupt work held CPUs.", &[], &[
        ("common_ns", "Common time", Duration, Always, "Time that both the trace and the operations cover."),
        ("held_ns", "Held time", Duration, Always, "Part of it in which a CPU was held."),
        ("operations", "Operations", Count, Always, "Operations with a time."),
        ("waited", "Waited", Count, Always, "Operations in flight while a CPU was held."),
        ("waited_ns", "Waiting", Duration, Always, "How long they were in flight in these periods."),
        ("times", "Times as long", Number, Nullable, "How many times as long operations took that began while a CPU was held; null with too few to compare."),
        ("times_low", "At least", Number, Nullable, "Lower end of its 95 % interval."),
        ("times_high", "At most", Number, Nullable, "Upper end of its 95 % interval."),
        ("commands", "Commands", List("waiting_command"), Always, "By command, most waiting first."),
        ("examples", "Examples", List("waiting_example"), Always, "The operations that were in flight the longest meanwhile."),
    ]),
    ("waiting_command", "Operations of one command, while CPUs were held and at other times.", &[], &[
        ("command", "Command", Code, Always, "The command."),
        ("held", "While held", Count, Always, "Operations in flight while a CPU was held."),
        ("held_mean_ns", "Mean while held", Duration, Nullable, "Their mean time."),
        ("waited_ns", "Waiting", Duration, Always, "How long they were in flight then."),
        ("other", "At other times", Count, Always, "Operations at other times within the trace."),
        ("other_mean_ns", "Mean at other times", Duration, Nullable, "Their mean time."),
    ]),
    ("waiting_example", "An operation that was in flight while a CPU was held.", &[], &[
        ("command", "Command", Code, Always, "The command."),
        ("path", "Path", Text, Nullable, "The path."),
        ("start_ns", "Start", Time, Always, "When it began."),
        ("elapsed_ns", "Elapsed", Duration, Always, "How long it took."),
        ("waited_ns", "Waiting", Duration, Always, "How much of it a CPU was held."),
    ]),
];

/// Objects of traces that diagnoses contain, too.
pub(crate) const IN_DIAGNOSES: [&str; 3] =
    ["processor_finding", "processor_figure", "processor_remedy"];
