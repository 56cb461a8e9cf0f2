//! The tables of a load run: what simulated users did, at which load, and what the machines
//! showed meanwhile.
//!
//! Scenarios are recorded one by one, so that every figure of a run (overload, throughput,
//! response times) is derived from rows. A run is cut into steps of a constant number of users.
//! What was run on what stands in the manifest ([`crate::description`]).

use crate::table::table;

/// `format` of a load run's coverage: what it counts are operations, not packets.
pub const LOAD_FORMAT: &str = "load run";

/// [`Scenario::phase`] of scenarios scheduled before the measured window.
pub const WARM_UP: &str = "warm-up";
/// [`Scenario::phase`] of scenarios scheduled in the measured window.
pub const MEASURED: &str = "measured";
/// [`Scenario::phase`] of scenarios scheduled after the measured window.
pub const COOL_DOWN: &str = "cool-down";

/// [`Scenario::outcome`] of scenarios that went as the workload says.
pub const DONE: &str = "done";
/// [`Scenario::outcome`] of scenarios of which an operation ended otherwise than expected.
pub const FAILED: &str = "failed";
/// [`Scenario::outcome`] of scenarios that never began.
pub const NOT_STARTED: &str = "not started";

table! {
    /// One scenario of one simulated user: an application's action and its operations.
    Scenario, "scenarios" {
        recording: String, None, Machine, "The run: one machine's part of it.";
        scenario_run: u64, None, Public, "Number of the scenario's execution, unique in its recording; operations carry it.";
        step: u64, None, Public, "The step of the run in which it was scheduled (table steps).";
        user_number: u64, None, Public, "The simulated user, counted from 1 over all machines.";
        user: Option<String>, None, Person, "The name under which the user logged on.";
        connection: Option<u64>, None, Public, "The user's first connection.";
        scenario: String, None, Public, "Name of the scenario in the workload.";
        phase: String, None, Public, "When it was scheduled: warm-up, measured or cool-down.";
        scheduled_at: i64, Time, Public, "When the user was to begin it.";
        started_at: Option<i64>, Time, Public, "When the user began it; null when it never began.";
        ended_at: Option<i64>, Time, Public, "When its last reply came.";
        late_ns: Option<i64>, Nanoseconds, Public, "Begin later than scheduled.";
        response_ns: Option<i64>, Nanoseconds, Public, "From the time it was scheduled to its end: what the user waited.";
        operations: u64, Count, Public, "Operations sent.";
        saved: u64, Count, Public, "Operations that the client's directory cache made needless.";
        errors: u64, Count, Public, "Operations that ended otherwise than the workload expects.";
        outcome: String, None, Public, "done, failed (an operation ended otherwise than expected), or not started.";
        status_name: Option<String>, None, Public, "Status, or trouble of the connection, that made it fail.";
    }
}

table! {
    /// A part of a run with a constant number of users.
    Step, "steps" {
        recording: String, None, Machine, "The run: one machine's part of it.";
        run: String, None, Machine, "Name of the whole run: the same on all machines that share it.";
        step: u64, None, Public, "Number of the step, from 1.";
        users: u64, Count, Public, "Users of the whole run in this step, all machines together.";
        users_here: u64, Count, Public, "Of them, those of this machine.";
        rate: f64, None, Public, "Scenarios that the schedule asks of all users of this machine in a second; 0 where they follow none.";
        start: i64, Time, Public, "Begin of its measured window.";
        end: i64, Time, Public, "End of its measured window.";
        scheduled: u64, Count, Public, "Scenarios scheduled in the window.";
        started: u64, Count, Public, "Of them, those that began.";
        on_time: u64, Count, Public, "Of them, those that began before the user's next one was due.";
        completed: u64, Count, Public, "Scenarios that ended in the window.";
        failed: u64, Count, Public, "Scenarios of the window that failed.";
        users_overloaded: u64, Count, Public, "Users that fell behind their schedule (docs/load.md has the exact sentence).";
        overload_percent: f64, None, Public, "Overload: the larger of the share of users that fell behind and the share of scenarios that remained undone.";
        client_cpu_percent: Option<f64>, None, Public, "Processor time of the load generator, of what it may use.";
        client_late_ns: Option<i64>, Nanoseconds, Public, "How late the generator's own timers were, 99th percentile.";
        limited_by_client: bool, None, Public, "Whether the generator, not the server, was the limit.";
        overloaded: bool, None, Public, "Whether the step counts as overloaded.";
        ended_early: bool, None, Public, "Whether the step was cut short, because the answer was certain or by an interruption.";
    }
}

table! {
    /// One sample of one counter.
    Counter, "counters" {
        recording: String, None, Machine, "The run: one machine's part of it.";
        time: i64, Time, Public, "When, on the run's clock.";
        source: String, None, Public, "Where it was read: client, server, or metrics (an endpoint).";
        name: String, None, Public, "What: cpu_percent, disk_queue, network_receive_bytes_per_second ...";
        instance: Option<String>, None, Machine, "Of which one, where there are several: a processor, a disk, an interface.";
        unit: String, None, Public, "Its unit.";
        value: f64, None, Public, "The value; of a rate the mean since the sample before.";
    }
}
