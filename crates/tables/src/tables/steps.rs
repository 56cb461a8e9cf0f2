//! Table `steps`: the parts of a load run with a constant number of users.

use crate::row::table;

table! {
    /// A part of a run with a constant number of users.
    Step, "steps" {
        recording: String, None, Machine, "The recording: one machine's part of the run.";
        run: String, None, Machine, "Name of the whole run: the same on all machines that share it.";
        step: u64, None, Public, "Number of the step, counted from 1.";
        users: u64, Count, Public, "Users of the whole run in this step, on all machines.";
        users_here: u64, Count, Public, "Users of this machine.";
        rate: f64, None, Public, "Scenarios per second that the schedule requires of all users of this machine; 0 without a schedule.";
        start as "started_at": i64, Time, Public, "Start of its measured window.";
        end as "ended_at": i64, Time, Public, "End of its measured window.";
        scheduled: u64, Count, Public, "Scenarios scheduled in the window.";
        started: u64, Count, Public, "Scheduled scenarios that started.";
        on_time: u64, Count, Public, "Scheduled scenarios that started before the user's next one was due.";
        completed: u64, Count, Public, "Scenarios that ended in the window.";
        failed: u64, Count, Public, "Scenarios of the window that failed.";
        users_overloaded: u64, Count, Public, "Users that fell behind their schedule (docs/method/overload.md defines this).";
        overload_percent: f64, None, Public, "Overload: the larger of the share of users that fell behind and the share of scenarios that were not completed.";
        client_cpu_percent: Option<f64>, None, Public, "CPU time of the load generator, in percent of what it may use.";
        client_late_ns: Option<i64>, Nanoseconds, Public, "Delay of the load generator's own timers, 99th percentile.";
        limited_by_client: bool, None, Public, "Whether the load generator, not the server, was the limit.";
        overloaded: bool, None, Public, "Whether the step counts as overloaded.";
        operations: Option<u64>, Count, Public, "Operations that ended in the window. Null in recordings of smbscope before this column existed.";
        transferred_bytes: Option<u64>, Bytes, Public, "File data that these operations read and wrote.";
        operation_mean_ns: Option<i64>, Nanoseconds, Public, "Their mean latency, without operations that wait by design.";
        reply_wait_mean_ns: Option<i64>, Nanoseconds, Public, "How long replies waited in the load generator before it read them, mean. Not part of the times of operations. Null where the kernel has no receive time stamps.";
        reply_wait_p99_ns: Option<i64>, Nanoseconds, Public, "99th percentile of that.";
        server_gone: Option<bool>, None, Public, "Whether the server stopped answering in this step.";
        ended_early: bool, None, Public, "Whether the step was cut short: the result was certain, or the run was interrupted.";
    }
}
