//! Table `scenarios`: what simulated users did in a load run, one row per scenario.
//!
//! Every figure of a run (overload, throughput, response times) is derived from these rows.

use crate::row::table;

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
