//! Table `switches`: CPUs that continue with another thread.

use std::sync::Arc;

use crate::row::table;

table! {
    /// One context switch.
    Switch, "switches" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        time: i64, Time, Public, "When, on the clock of the trace.";
        cpu: u64, None, Public, "Number of the CPU.";
        old_thread: u64, None, Public, "The thread that ran; 0 is idle.";
        old_name: Option<Arc<str>>, None, Public, "Its name.";
        old_state: Option<Arc<str>>, None, Public, "Its state, in the words of the operating system.";
        new_thread: u64, None, Public, "The thread that runs now; 0 is idle.";
        new_name: Option<Arc<str>>, None, Public, "Its name.";
    }
}
