//! Table `cpus`: the CPUs of a trace, and where they are in the machine.

use crate::row::table;

table! {
    /// One logical processor.
    Cpu, "cpus" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        cpu: u64, None, Public, "Number of the CPU.";
        node: Option<u64>, None, Public, "Its NUMA node.";
        socket: Option<u64>, None, Public, "Its socket.";
        core: Option<u64>, None, Public, "Its core.";
        thread: Option<u64>, None, Public, "Number of the hyper-thread in the core.";
        hyper_threading: Option<bool>, None, Public, "Whether its core has several hyper-threads; null if core and thread say it, or nothing does.";
        processor_group: Option<u64>, None, Public, "Its processor group (Windows).";
        processor_number: Option<u64>, None, Public, "Its number in the processor group.";
        mhz: Option<u64>, None, Public, "Nominal frequency, MHz.";
        events: u64, Count, Public, "Events of the trace on this CPU.";
        events_lost: Option<u64>, Count, Public, "Events of this CPU that the recorder lost; null if it does not count them for each.";
    }
}
