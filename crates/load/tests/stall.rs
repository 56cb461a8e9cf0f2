//! Users on a server in memory, on a virtual clock: the effect of a stall on the response times, down
//! to the last execution; and the behaviour of users when answers break.
//!
//! Nothing here waits for real time, and the schedule determines everything.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[path = "support/engine.rs"]
mod engine;
#[path = "support/fake.rs"]
mod fake;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::Asked;
use fake::{Fake, Fault};
use smbscope_load::run::Pace;
use smbscope_load::run::users::Credentials;
use smbscope_load::workload::Planner;
use smbscope_tables::run::{
    DONE, FAILED, MEASURED, NOT_STARTED, Scenario, WARM_UP as WARM_UP_PHASE,
};
use smbscope_wire::smb2::Command;
use tokio::time::Instant;

const USERS: u64 = 10;
/// The exact time between two executions of a user.
const INTERVAL: Duration = Duration::from_millis(100);
const SERVICE: Duration = Duration::from_millis(5);
/// An open, a read, a query, a close.
const REQUESTS: u32 = 4;
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(12);
/// Users log on one after another during this time.
const RAMP: Duration = Duration::from_millis(200);
const STALL: Duration = Duration::from_secs(2);
/// Timers of tokio count milliseconds, and round up.
const TIMER: Duration = Duration::from_millis(1);

const WORKLOAD: &str = r#"
description = "A small file read by an open, a read, a query and a close"

[pacing]
spacing = "slotted"
jitter = 0.0

[files.small]
class = "static"
folders = ["Small"]
name = "{word}-{n}.bin"
bytes = ["4 KiB"]
repeat = 8

[scenarios.Look]
description = "a file looked at"
runs_per_hour = 36000
files = { file = "small" }
steps = [
  { action = "open", create = "{file}", handle = "file", access = "read" },
  { action = "read", read = "file", file = "file" },
  { action = "ask", query_info = "file", class = "FileStandardInformation" },
  { action = "close", close = "file" },
]
"#;

fn planner() -> Planner {
    smbscope_testing::run::planner(WORKLOAD, 3)
}

/// The result of a run.
struct Shown {
    run: engine::Shown,
    /// The run's clock at its begin.
    start_ns: i64,
    /// Number of connections to the server.
    dialled: u64,
}

impl std::ops::Deref for Shown {
    type Target = engine::Shown;

    fn deref(&self) -> &engine::Shown {
        &self.run
    }
}

/// Runs the given number of users on a server that `change` may break, with times from the run's begin.
async fn run(users: u64, closed: bool, change: impl FnOnce(&mut Fake, Instant)) -> Shown {
    run_until(users, closed, None, change).await
}

/// Likewise, interrupted after some time.
async fn run_until(
    users: u64,
    closed: bool,
    end: Option<Duration>,
    change: impl FnOnce(&mut Fake, Instant),
) -> Shown {
    run_with_grace(users, closed, end, Pace::GRACE, change).await
}

/// Likewise with the given grace at the end.
async fn run_with_grace(
    users: u64,
    closed: bool,
    end: Option<Duration>,
    grace: Duration,
    change: impl FnOnce(&mut Fake, Instant),
) -> Shown {
    let start = Instant::now();
    let mut server = Fake::new(SERVICE, 4096);
    change(&mut server, start);
    let server = Arc::new(server);
    let host = server.host();
    let start_ns = host.clock.ns_at(start);
    let credentials = Credentials::pattern("user{:05}", "secret").unwrap();
    let timeout = Duration::from_secs(5);
    let asked = Asked::new(host, planner(), credentials, users, WINDOW);
    let settings = Asked { ramp: RAMP, warm_up: WARM_UP, closed, grace, timeout, ..asked };
    let run = engine::run_until(settings, end, |_| ()).await;
    Shown { run, start_ns, dialled: server.connections.load(Ordering::Relaxed) }
}

/// The schedule alone: when each execution is due, from the step's begin.
fn dues(users: u64) -> Vec<Duration> {
    let planner = planner();
    let end = RAMP + WARM_UP + WINDOW;
    let of = |user: u64| {
        let begin = RAMP.mul_f64((user - 1) as f64 / users as f64);
        let planner = &planner;
        (0..).map(move |run| begin + planner.schedule(user, run)).take_while(move |due| *due < end)
    };
    (1..=users).flat_map(of).collect()
}

fn ns(duration: Duration) -> i64 {
    duration.as_nanos() as i64
}

/// Start of the stall, from the run's begin.
fn stall_from() -> Duration {
    RAMP + WARM_UP + Duration::from_secs(6)
}

fn stalls(server: &mut Fake, start: Instant) {
    let begin = start + stall_from();
    server.stall = Some((begin, begin + STALL));
}

/// The quantile `q` of sorted values, as HdrHistogram counts it.
fn quantile(values: &mut [i64], q: f64) -> i64 {
    values.sort_unstable();
    let place = (values.len() as f64 * q).ceil() as usize;
    values[place.clamp(1, values.len()) - 1]
}

#[tokio::test(start_paused = true)]
async fn a_stall_shows_in_every_execution_that_was_due_in_it() {
    let shown = run(USERS, false, stalls).await;
    assert_eq!(shown.unexpected, []);
    let (stall, end) = (stall_from(), stall_from() + STALL);
    let due = dues(USERS).into_iter().filter(|due| (stall..end).contains(due)).count();
    assert_eq!(due as u64, USERS * 20, "one in 100 ms for each user");

    // Each of them has waited at least for the rest of the stall.
    let at = |time: Duration| shown.start_ns + ns(time);
    let of_stall = |row: &&Scenario| (at(stall)..at(end)).contains(&row.scheduled_at);
    let waited = |row: &&Scenario| row.response_ns.unwrap() >= at(end) - row.scheduled_at;
    assert_eq!(shown.scenarios.iter().filter(of_stall).filter(waited).count(), due);
    // Counted from the begin, as in a closed loop, only one per user is slow: the one in flight during
    // the stall's start.
    let slow =
        |row: &&Scenario| row.ended_at.unwrap() - row.started_at.unwrap() >= ns(STALL - INTERVAL);
    assert_eq!(shown.scenarios.iter().filter(slow).count() as u64, USERS);

    // Nothing was left out: the rows equal the schedule, to the nanosecond.
    let mut scheduled: Vec<i64> = shown.scenarios.iter().map(|row| row.scheduled_at).collect();
    let mut expected: Vec<i64> = dues(USERS).into_iter().map(at).collect();
    for times in [&mut scheduled, &mut expected] {
        // An execution due in the last timer's tick may find that the step is over.
        times.retain(|time| *time < at(RAMP + WARM_UP + WINDOW - TIMER));
        times.sort_unstable();
    }
    assert_eq!(scheduled, expected);
    assert!(shown.scenarios.iter().all(|row| row.outcome == DONE));

    // The run's own percentiles are those of the rows, and those of the server model.
    let measured = shown.scenarios.iter().filter(|row| row.phase == MEASURED);
    let mut rows: Vec<i64> = measured.map(|row| row.response_ns.unwrap()).collect();
    let response = shown.result.row.response.unwrap();
    let near = |one: i64, other: i64, by: Duration| (one - other).abs() <= ns(by);
    let service = SERVICE * REQUESTS;
    assert!(near(response.p50_ns, ns(service), TIMER), "{response:?}");
    let p99 = quantile(&mut rows, 0.99);
    // Three digits, and executions scheduled in the window need not have ended in it.
    assert!(near(response.p99_ns, p99, Duration::from_millis(20)), "{response:?}, rows {p99}");
    // 200 of 1,200 were due in the stall, evenly: 1 % of all waited at least 1.88 s.
    assert!(near(p99, ns(STALL.mul_f64(0.94)), Duration::from_millis(60)), "{p99}");
    assert!(response.max_ns >= ns(STALL - INTERVAL), "{response:?}");
    // The backlog is worked off in order: a user who was due later in the stall began later.
    let late = shown.scenarios.iter().filter_map(|row| row.late_ns).max().unwrap();
    assert!(late >= ns(STALL - INTERVAL - service), "{late}");
}

/// The contrast: users who wait for their answer before they begin the next execution, and count from
/// there, hide the stall. If this test failed, the one above would prove nothing.
#[tokio::test(start_paused = true)]
async fn a_closed_loop_hides_the_stall() {
    let shown = run(USERS, true, stalls).await;
    assert_eq!(shown.unexpected, []);
    let slow = shown.scenarios.iter().filter(|row| row.response_ns.unwrap() >= ns(STALL / 2));
    assert_eq!(slow.count() as u64, USERS, "one of each user");
    let response = shown.result.row.response.unwrap();
    assert!(response.p99_ns < ns(SERVICE * REQUESTS + 5 * TIMER), "{response:?}");
    assert!(response.max_ns >= ns(STALL / 2), "{response:?}");
}

/// The same run again has the same result.
#[tokio::test(start_paused = true)]
async fn the_same_stall_gives_the_same_times() {
    let mut times = Vec::new();
    for _ in 0..2 {
        let shown = run(3, false, stalls).await;
        let mut rows: Vec<_> = shown
            .scenarios
            .iter()
            .map(|row| (row.scenario_run, row.late_ns, row.response_ns, row.operations))
            .collect();
        rows.sort_unstable();
        assert!(rows.len() > 370 && shown.operations() > 4 * 370, "{}", rows.len());
        times.push(rows);
    }
    assert_eq!(times[0], times[1]);
}

/// A server that goes away for good: nothing begins any more, and all users fall behind.
#[tokio::test(start_paused = true)]
async fn users_of_a_server_that_is_gone_are_behind() {
    let gone = RAMP + WARM_UP + Duration::from_secs(4);
    let shown = run(USERS, false, |server, start| {
        server.away = Some((start + gone, start + Duration::from_secs(3600)));
    })
    .await;
    let at = shown.start_ns + ns(gone);
    let begun_later =
        shown.scenarios.iter().filter(|row| row.started_at.is_some_and(|start| start > at));
    // Operations in flight failed; a user between two requests notices with the next one.
    assert!(begun_later.count() as u64 <= USERS, "{:?}", shown.scenarios);
    assert_eq!(shown.result.judgement.users_behind, USERS, "{:?}", shown.result);
    let step = &shown.steps[0];
    let on_schedule = (4_000_000_000 / INTERVAL.as_nanos() as u64) * USERS;
    assert!(step.started <= on_schedule + USERS && step.on_time <= step.started, "{step:?}");
    assert!(step.started >= on_schedule - USERS, "{step:?}");
    // Five seconds after the first connection failed the step ends: the server is gone, not overloaded.
    assert!(shown.result.server_gone() && step.server_gone == Some(true), "{step:?}");
    assert!(step.ended_early && !step.overloaded, "{step:?}");
    let gone_since = shown.result.gone_since.unwrap();
    assert!((at..at + 1_000_000_000).contains(&gone_since), "{gone_since} {at}");
    assert!((5_000_000_000..7_000_000_000).contains(&(step.end - at)), "{step:?}");
}

/// Outages that fit the run: it continues to its end, and knows how long no answer came.
#[tokio::test(start_paused = true)]
async fn a_run_survives_an_outage_that_fits_its_duration() {
    for outage in [12, 60].map(Duration::from_secs) {
        let begin = Instant::now() + Duration::from_secs(4);
        let server = Fake { away: Some((begin, begin + outage)), ..Fake::new(SERVICE, 4096) };
        let credentials = Credentials::pattern("user{:05}", "secret").unwrap();
        let host = Arc::new(server).host();
        let away_ns = host.clock.ns_at(begin);
        let asked = Asked::new(host, planner(), credentials, USERS, WINDOW + outage);
        let shown = engine::run(Asked { outage: Duration::MAX, ..asked }, |_| ()).await;
        let [one] = shown.outages[..] else { panic!("{:?}", shown.outages) };
        // Users try again after five seconds at the latest.
        assert!((away_ns - ns(INTERVAL)..=away_ns).contains(&one.start_ns), "{one:?} {away_ns}");
        let late = one.end_ns - away_ns - ns(outage);
        assert!((0..=5_100_000_000).contains(&late), "{late}");
        assert!(!shown.result.server_gone() && !shown.steps[0].ended_early);
        let after = shown.scenarios.iter().filter(|row| row.started_at >= Some(one.end_ns));
        assert!(after.filter(|row| row.outcome == DONE).count() as u64 > 10 * USERS);
    }
}

/// Every scheduled execution has one row, and the step counts those of its window.
fn assert_whole(shown: &Shown, users: u64) {
    let mut scheduled: Vec<i64> = shown.scenarios.iter().map(|row| row.scheduled_at).collect();
    scheduled.sort_unstable();
    let mut expected: Vec<i64> =
        dues(users).into_iter().map(|due| shown.start_ns + ns(due)).collect();
    expected.sort_unstable();
    // Timers tick in milliseconds: the window may end, and an execution be cut off, one tick later.
    assert!((expected.len()..expected.len() + users as usize).contains(&scheduled.len()));
    assert_eq!(scheduled[..expected.len()], expected);
    let measured = shown.scenarios.iter().filter(|row| row.phase == MEASURED);
    assert_eq!(shown.steps[0].scheduled, measured.clone().count() as u64);
    let not_started = measured.filter(|row| row.outcome == NOT_STARTED).count() as u64;
    let step = &shown.steps[0];
    assert!(step.scheduled >= not_started, "{step:?}, {not_started} not started");
    let runs: BTreeSet<u64> = shown.scenarios.iter().map(|row| row.scenario_run).collect();
    assert_eq!(runs.len(), shown.scenarios.len(), "each has a number of its own");
}

/// A server that cannot keep up: a scenario that never began also has its row.
#[tokio::test(start_paused = true)]
async fn executions_due_but_not_begun_have_rows() {
    let shown = run(USERS, false, |server, _| server.service = Duration::from_millis(50)).await;
    assert_whole(&shown, USERS);
    let undone = shown.scenarios.iter().filter(|row| row.outcome == NOT_STARTED);
    // An execution takes twice the interval.
    let share = undone.count() as f64 / shown.scenarios.len() as f64;
    assert!((0.45..0.65).contains(&share), "{share}");
    assert!(shown.result.judgement.overloaded);
}

/// An execution that gets no answer before the step ends also has its row.
#[tokio::test(start_paused = true)]
async fn an_execution_that_never_ends_has_its_row() {
    let shown = run(1, false, |server, start| {
        let at = start + RAMP + WARM_UP + WINDOW - Duration::from_secs(1);
        server.stall = Some((at, at + Duration::from_secs(3600)));
    })
    .await;
    assert_whole(&shown, 1);
    let failed: Vec<_> = shown.scenarios.iter().filter(|row| row.outcome == FAILED).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
}

/// One user, whose server breaks once in the measured window; returns how the affected execution ended.
async fn broken(on: Command, fault: Fault) -> (Shown, Scenario) {
    let shown = run(1, false, |server, start| {
        let at = start + RAMP + WARM_UP + Duration::from_secs(3);
        server.faults.lock().unwrap().push_back((at, on, fault));
    })
    .await;
    let failed: Vec<&Scenario> = shown.scenarios.iter().filter(|row| row.outcome != DONE).collect();
    assert_eq!(failed.len(), 1, "one execution saw it: {failed:?}");
    let failed = failed[0].clone();
    assert_eq!((failed.outcome.as_str(), shown.result.failed), (FAILED, 1));
    assert!(failed.errors >= 1);
    // The next one is done, over any connection, and none is left out.
    let after = shown.scenarios.iter().filter(|row| row.scheduled_at > failed.scheduled_at);
    assert!(after.clone().count() > 40 && after.clone().all(|row| row.outcome == DONE));
    assert_eq!(shown.scenarios.len(), dues(1).len());
    (shown, failed)
}

/// Afterwards the user is on a second connection, and the first one's row says how it ended.
fn assert_reconnected(shown: &Shown, failed: &Scenario) {
    assert_eq!((shown.dialled, shown.connections.len()), (2, 2));
    let first = shown.connections.iter().min_by_key(|row| row.connection).unwrap();
    assert_eq!(first.end_reason, "reset");
    assert_eq!(failed.connection, Some(first.connection));
    let last = shown.scenarios.iter().max_by_key(|row| row.scheduled_at).unwrap();
    assert_ne!(last.connection, failed.connection);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_a_timeout() {
    let (shown, failed) = broken(Command::CREATE, Fault::Silence).await;
    assert_eq!(failed.status_name.as_deref(), Some("TIMEOUT"));
    // Given up after the limit, and counted from its due time.
    let limit = ns(Duration::from_secs(5));
    assert!((limit..limit + ns(INTERVAL)).contains(&failed.response_ns.unwrap()), "{failed:?}");
    assert_eq!(shown.unexpected, [("no reply within 5s".to_owned(), 1)]);
    assert_reconnected(&shown, &failed);
    let first = shown.connections.iter().min_by_key(|row| row.connection).unwrap();
    assert_eq!((first.unanswered, failed.operations), (1, 1), "the open was sent");
    // Executions due in the five seconds had to wait, as in a stall.
    let waited = |row: &&Scenario| row.response_ns.unwrap() >= ns(Duration::from_secs(1));
    assert!(shown.scenarios.iter().filter(waited).count() > 40);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_in_a_message_is_lost() {
    let (shown, failed) = broken(Command::READ, Fault::Half).await;
    assert_eq!(failed.status_name.as_deref(), Some("CONNECTION_LOST"));
    assert_eq!(shown.unexpected.len(), 1, "{:?}", shown.unexpected);
    assert!(shown.unexpected[0].0.contains("the server closed the connection"));
    assert_reconnected(&shown, &failed);
    assert!(failed.response_ns.unwrap() < ns(INTERVAL), "reported at once");
    assert_eq!(failed.operations, 2, "the open and the read");
}

#[tokio::test(start_paused = true)]
async fn garbage_is_a_counted_error() {
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let mut no_smb = vec![0, 0, 0, 64];
    no_smb.extend([0xff; 64]);
    let encrypted = [&[0, 0, 0, 60][..], b"\xfdSMB", &[7; 56]].concat();
    let header_only = [&[0, 0, 0, 4][..], b"\xfeSMB"].concat();
    for (bytes, status) in [
        (http, "PROTOCOL_ERROR"),
        (no_smb, "PROTOCOL_ERROR"),
        (header_only, "PROTOCOL_ERROR"),
        (encrypted, "NOT_VERIFIED"),
    ] {
        let (shown, failed) = broken(Command::QUERY_INFO, Fault::Bytes(bytes)).await;
        assert_eq!(failed.status_name.as_deref(), Some(status));
        assert_reconnected(&shown, &failed);
        assert_eq!(shown.unexpected.len(), 1, "{:?}", shown.unexpected);
    }
}

/// A read whose reply announces more bytes than it contains.
#[tokio::test(start_paused = true)]
async fn a_read_without_its_payload_is_a_counted_error() {
    let (shown, failed) = broken(Command::READ, Fault::Short(16)).await;
    assert_eq!(failed.status_name.as_deref(), Some("short transfer"), "{failed:?}");
    assert_eq!(shown.told("Look, read: short transfer"), 1, "{:?}", shown.unexpected);
    assert_eq!(shown.dialled, 1, "the connection is as good as before");
}

/// An open that succeeds without naming the file: the answer violates the protocol.
#[tokio::test(start_paused = true)]
async fn an_answer_without_its_body_is_a_counted_error() {
    for body in [0, 8, 60] {
        let (shown, failed) = broken(Command::CREATE, Fault::Short(body)).await;
        assert_eq!(failed.status_name.as_deref(), Some("PROTOCOL_ERROR"), "{failed:?}");
        assert!(
            shown.unexpected[0].0.contains("Create reply is cut off"),
            "{:?}",
            shown.unexpected
        );
        assert_reconnected(&shown, &failed);
    }
}

/// Executions that ended in the warm-up were once divided by a duration of zero: 5,000,000,000 scenarios/s.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_interrupted_in_its_warm_up_has_measured_nothing() {
    for closed in [false, true] {
        // The run waits for operations in flight, until long after the window would have begun.
        let end = RAMP + WARM_UP / 2;
        let stall = |server: &mut Fake, start: Instant| {
            server.stall = Some((start + end, start + end + 2 * STALL));
        };
        let shown = run_until(USERS, closed, Some(end), stall).await;
        let row = &shown.result.row;
        assert!(!shown.scenarios.is_empty());
        assert_eq!((row.duration_ns, row.scenarios_per_second), (0, 0.0));
        assert!(row.response.is_none() && row.scenarios.is_empty() && !row.overloaded);
        assert!(shown.scenarios.iter().all(|scenario| scenario.phase == WARM_UP_PHASE));
        assert_eq!(shown.steps, [], "a step without a window says nothing of its users");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_interrupted_in_its_window_has_measured_until_then() {
    let shown = run_until(USERS, false, Some(RAMP + WARM_UP + WINDOW / 4), |_, _| ()).await;
    let row = &shown.result.row;
    assert_eq!(row.duration_ns, ns(WINDOW / 4));
    assert!((row.scenarios_per_second - 100.0).abs() < 2.0, "{row:?}");
    assert_eq!(shown.steps.len(), 1);
    assert!(!row.overloaded && row.ended_early && shown.steps[0].ended_early);
}

/// Ctrl-C while the server hangs took as long as the limit for the end of a step.
#[tokio::test(start_paused = true)]
async fn who_interrupts_a_run_does_not_wait_for_a_server_that_hangs() {
    let end = RAMP + WARM_UP + WINDOW;
    // In the window, and when users already wait for the last replies.
    for interrupted in [RAMP + WARM_UP + WINDOW / 4, end + Duration::from_secs(1)] {
        let begin = Instant::now();
        let stall = |server: &mut Fake, start: Instant| {
            let from = interrupted.min(end) - 5 * INTERVAL;
            server.stall = Some((start + from, start + end + 20 * STALL));
        };
        let shown = run_until(USERS, true, Some(interrupted), stall).await;
        let took = begin.elapsed() - interrupted;
        assert!(took < Duration::from_secs(3), "{took:?}");
        let broken_off = shown.scenarios.iter().filter(|row| row.outcome == FAILED).count();
        assert_eq!(broken_off as u64, USERS);
        assert_eq!(shown.steps[0].ended_early, interrupted < end);
    }
}

/// A cell of a matrix ended with "no reply within 20s" if its file took longer.
#[tokio::test(start_paused = true)]
async fn without_grace_an_execution_in_flight_at_the_end_does_not_fail() {
    let begin = Instant::now();
    let end = RAMP + WARM_UP + WINDOW;
    let stall = |server: &mut Fake, start: Instant| {
        server.stall = Some((start + end - INTERVAL, start + end + 20 * STALL));
    };
    let shown = run_with_grace(USERS, true, None, Duration::ZERO, stall).await;
    assert!(begin.elapsed() < end + Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(shown.unexpected, []);
    let broken_off = shown.scenarios.iter().filter(|row| row.outcome == FAILED).count();
    assert_eq!(broken_off as u64, USERS);
    assert_eq!(shown.steps[0].rate, 0.0, "the workload's pace, which a closed run does not keep");
}
