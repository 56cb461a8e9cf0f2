//! Table `power`: idle states and frequencies of CPUs.

use std::borrow::Cow;
use std::sync::Arc;

use crate::row::table;

table! {
    /// One stay in an idle state, or one change of the frequency.
    Power, "power" {
        recording: Arc<str>, None, Machine, "The recording that the row belongs to.";
        time: i64, Time, Public, "When it began, on the clock of the trace.";
        cpu: u64, None, Public, "Number of the CPU.";
        kind: Cow<'static, str>, None, Public, "What value is: c_state or frequency.";
        value: u64, None, Public, "c_state: number of the idle state, 0 is the lightest; on Windows the last one of the time in the idle thread. frequency: kHz from then on.";
        duration_ns: Option<i64>, Nanoseconds, Public, "c_state: how long the CPU was in it (Windows: in the idle thread).";
    }
}
