//! Table `scenarios`: what simulated users did in a load run, one row per scenario.
//!
//! Every figure of a run (overload, throughput, response times) is derived from these rows.

use crate::row::table;

table! {
    /// One scenario of one simulated user: an application's action and its operations.
    Scenario, "scenarios" {
        recording: String, None, Machine, "The recording: one machine's part of the run.";
        scenario_run: u64, None, Public, "Number of the execution, unique in its recording; operations refer to it.";
        step: u64, None, Public, "The step of the run in which it was scheduled (table steps).";
        user_number: u64, None, Public, "The simulated user, counted from 1 across all machines.";
        user: Option<String>, None, Person, "The user name of the logon.";
        connection: Option<u64>, None, Public, "The user's first connection.";
        scenario: String, None, Public, "Name of the scenario in the workload.";
        phase: String, None, Public, "When it was scheduled: warm-up, measured or cool-down.";
        scheduled_at: i64, Time, Public, "When it was scheduled to start.";
        started_at: Option<i64>, Time, Public, "When it started; null if it never started.";
        ended_at: Option<i64>, Time, Public, "When its last response arrived.";
        late_ns: Option<i64>, Nanoseconds, Public, "Delay of the start behind the schedule.";
        response_ns: Option<i64>, Nanoseconds, Public, "From the scheduled time to the end: the time that the user waited.";
        operations: u64, Count, Public, "Operations sent.";
        saved: u64, Count, Public, "Operations that the client's directory cache saved.";
        errors: u64, Count, Public, "Operations with a result that the workload does not expect.";
        outcome: String, None, Public, "done, failed (an operation had an unexpected result), or not started.";
        status_name: Option<String>, None, Public, "The status or connection error that made it fail.";
    }
}
