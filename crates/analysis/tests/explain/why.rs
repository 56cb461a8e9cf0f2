//! The explanation of one operation: each cause where it is, and not where it only seems to be.

use smbscope_analysis::explain::why::{
    Blocking, Explanation, FoundBy, Miss, Reason, Search, StepKind, Why,
};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code::{self, Detail};
use smbscope_tables::operation::{Column, Operation};
use smbscope_tables::tables::Slice;

use super::support::{CLOSE, CREATE, LOCK, MS, NEGOTIATE, OPLOCK_BREAK, READ};

const ECHO: u16 = 13;
const IOCTL: u16 = 11;
const START: i64 = 1_000_000_000_000;
const FILE: [u8; 16] = [7; 16];

/// One operation to create, on connection 1, with 1 ms between capture point and server, times in ms.
#[derive(Clone)]
struct Act {
    command: u16,
    from_ms: i64,
    until_ms: i64,
    handle: u64,
    path: &'static str,
    /// The addresses of client and server, and the server's port.
    ends: (&'static str, &'static str, u16),
    set: fn(&mut Operation),
}

fn act(command: u16, from_ms: i64, until_ms: i64) -> Act {
    let ends = ("10.0.0.1", "10.0.0.2", 445);
    Act { command, from_ms, until_ms, handle: 1, path: "dir\\file.txt", ends, set: |_| () }
}

fn with(act: Act, set: fn(&mut Operation)) -> Act {
    Act { set, ..act }
}

/// Rows with the numbers and frames 10, 11 (request, reply), 20, 21, 30, 31 ...
fn rows(acts: &[Act]) -> OperationBuilder {
    let mut builder = OperationBuilder::new(None).unwrap();
    for (place, act) in acts.iter().enumerate() {
        let mut row = Operation::default();
        let number = 10 * (place as u64 + 1);
        row.set_operation(number);
        row.set_recording(builder.names.recording.intern("run"));
        row.set_capture_file(builder.names.capture_file.intern("run.pcap"));
        row.set_client(builder.names.client.intern(act.ends.0));
        row.set_client_port(50_000);
        row.set_server(builder.names.server.intern(act.ends.1));
        row.set_server_port(act.ends.2);
        row.set_share(builder.names.share.intern("\\\\server\\share"));
        row.set_path(builder.names.path.intern(act.path));
        row.set_connection(1);
        row.set_protocol(2);
        row.set_command(code::command(2, act.command));
        row.set_handle(act.handle);
        row.set_status(0);
        row.set_request_frame(number);
        row.set_response_frame(number + 1);
        let (from, until) = (START + act.from_ms * MS, START + act.until_ms * MS);
        row.set_request_start(from);
        row.set_request_end(from);
        row.set_response_start(until);
        row.set_response_end(until);
        row.derive_durations();
        row.set_server_ns(until - from - MS);
        row.set_server_error_ns(1000);
        (act.set)(&mut row);
        builder.append(&[row]);
    }
    builder
}

fn search(acts: &[Act], which: &str) -> Result<smbscope_analysis::explain::why::Found, Miss> {
    let mut search = Search::new(which.parse().unwrap());
    search.operations(&rows(acts).finish().unwrap()).unwrap();
    search.finish()
}

fn explain_with(acts: &[Act], which: &str, slices: &[Slice]) -> Explanation {
    let found = search(acts, which).unwrap();
    let batch = rows(acts).finish().unwrap();
    let found = match found.lead() {
        Some(mut lead) => {
            lead.operations(&batch).unwrap();
            found.or_lead(lead.finish())
        }
        None => found,
    };
    let mut why = Why::new(found);
    why.operations(&batch).unwrap();
    why.slices(slices);
    why.finish()
}

fn explain(acts: &[Act], which: &str) -> Explanation {
    explain_with(acts, which, &[])
}

/// The steps that are not parts of another one add up to the elapsed time.
fn check_sum(why: &Explanation) {
    let whole = why.steps.iter().filter(|step| !step.is_part);
    let sum: i64 = whole.filter_map(|step| step.duration_ns).sum();
    assert_eq!(Some(sum), why.operation.brief.elapsed_ns, "{:?}", why.steps);
}

fn duration(why: &Explanation, kind: StepKind) -> Option<i64> {
    why.steps.iter().find(|step| step.kind == kind)?.duration_ns
}

/// What a break does not have, because the server sends it without a request.
const REQUEST_COLUMNS: &[Column] = &[
    Column::request_start,
    Column::request_end,
    Column::request_frame,
    Column::request_transfer_ns,
    Column::turnaround_ns,
    Column::elapsed_ns,
    Column::server_ns,
    Column::server_error_ns,
    Column::handle,
    Column::path,
    Column::share,
];

/// An open with an oplock at frame 10, and a break of it at 101 ms while another open waits (frame 30).
fn broken(answer: Option<Act>, until_ms: i64, level: fn(&mut Operation)) -> Vec<Act> {
    let first = with(act(CREATE, 0, 2), level);
    let notification = with(act(OPLOCK_BREAK, 101, 101), |row| {
        for column in REQUEST_COLUMNS {
            row.clear(*column);
        }
        row.set_detail(code::detail(Detail::Break, 0));
        row.set_file_id(FILE);
        row.set_oplock_granted(code::oplock(1));
    });
    let mut waiting = act(CREATE, 100, until_ms);
    waiting.handle = 2;
    waiting.set = |row| {
        row.set_file_id([8; 16]);
        row.set_pending_at(START + 102 * MS);
        row.set_pending_frame(25);
    };
    let mut acts = vec![first, notification];
    acts.extend(answer.filter(|answer| answer.from_ms < until_ms));
    acts.push(waiting);
    acts
}

fn batch_oplock(row: &mut Operation) {
    row.set_file_id(FILE);
    row.set_oplock_granted(code::oplock(9));
}

fn level_two(row: &mut Operation) {
    row.set_file_id(FILE);
    row.set_oplock_granted(code::oplock(1));
}

fn acknowledgement(from_ms: i64) -> Act {
    with(act(OPLOCK_BREAK, from_ms, from_ms + 1), |row| {
        row.set_file_id(FILE);
        row.set_detail(code::detail(Detail::Break, 2));
    })
}

#[test]
fn a_break_without_an_acknowledgement_is_the_reason() {
    let acts = broken(None, 30_104, batch_oplock);
    let why = explain(&acts, "30");
    assert_eq!((why.found_by, why.reason), (FoundBy::Request, Reason::BreakNotAcknowledged));
    let one = &why.breaks[0];
    assert_eq!((one.frame, one.opened_frame, one.at_ns), (Some(21), Some(10), MS));
    assert_eq!((one.from.as_deref(), one.to.as_deref()), (Some("Batch"), Some("II")));
    assert_eq!((one.needs_acknowledgement, &one.answer), (Some(true), &None));
    assert_eq!(one.waited_ns, 30_003 * MS);
    assert!(one.is_same_client && one.is_same_connection);
    let interim = why.steps.iter().find(|step| step.kind == StepKind::Interim).unwrap();
    assert_eq!((interim.at_ns, interim.duration_ns, interim.frame), (Some(2 * MS), None, Some(25)));
    let timer = why.timer.unwrap();
    assert_eq!(timer.constant_ns, 30_000 * MS);
    assert!(timer.name.unwrap().contains("oplock breaks"));
    check_sum(&why);
    // The break is explained by the open that waited for it.
    let of_break = explain(&acts, "21");
    assert_eq!((of_break.reason, of_break.waiters.len()), (Reason::Break, 1));
    assert_eq!(of_break.waiters[0].request_frame, Some(30));
    assert_eq!(of_break.operation.brief.path.as_deref(), Some("dir\\file.txt"));
}

#[test]
fn an_acknowledgement_ends_the_wait() {
    let why = explain(&broken(Some(acknowledgement(160)), 162, batch_oplock), "40");
    assert_eq!(why.reason, Reason::BreakAcknowledged);
    let answer = why.breaks[0].answer.as_ref().unwrap();
    assert_eq!((answer.took_ns, answer.frame, answer.is_close), (59 * MS, Some(30), false));
    assert_eq!(why.breaks[0].waited_ns, 59 * MS);
    // Acknowledged at once, the rest is the server's.
    let why = explain(&broken(Some(acknowledgement(103)), 162, batch_oplock), "40");
    assert_eq!((why.reason, why.breaks.len()), (Reason::Server, 1));
    // So is a Close.
    let close = with(act(CLOSE, 160, 161), |row| row.set_file_id(FILE));
    let why = explain(&broken(Some(close), 163, batch_oplock), "40");
    assert!(why.breaks[0].answer.as_ref().unwrap().is_close);
    assert_eq!(why.reason, Reason::BreakAcknowledged);
}

#[test]
fn a_lease_ends_with_the_close_of_its_last_open() {
    let leased = |row: &mut Operation| {
        row.set_lease_key(FILE);
        row.set_lease_granted(code::lease(7));
        row.set_oplock_granted(code::oplock(0xff));
    };
    let closes = |second_ms| {
        let mut acts = broken(None, 20_000, leased);
        acts[1].set = |row| {
            REQUEST_COLUMNS.iter().for_each(|column| row.clear(*column));
            row.set_detail(code::detail(Detail::Break, 1));
            row.set_lease_key(FILE);
            row.set_lease_requested(code::lease(7));
            row.set_lease_granted(code::lease(1));
        };
        acts.insert(1, Act { handle: 3, ..with(act(CREATE, 10, 11), leased) });
        acts.push(Act { handle: 3, ..act(CLOSE, 150, 151) });
        acts.push(act(CLOSE, second_ms, second_ms + 1));
        acts
    };
    let why = explain(&closes(19_000), "40");
    let one = &why.breaks[0];
    assert_eq!((one.from.as_deref(), one.needs_acknowledgement), (Some("RHW"), Some(true)));
    let answer = one.answer.as_ref().unwrap();
    assert_eq!((answer.is_close, answer.took_ns, answer.frame), (true, 18_899 * MS, Some(60)));
    assert_eq!(why.reason, Reason::BreakAcknowledged);
    // A break of read caching alone is not waited for.
    let mut acts = closes(19_000);
    acts[2].set = |row| {
        REQUEST_COLUMNS.iter().for_each(|column| row.clear(*column));
        row.set_detail(code::detail(Detail::Break, 1));
        row.set_lease_key(FILE);
        row.set_lease_requested(code::lease(1));
        row.set_lease_granted(code::lease(0));
    };
    let why = explain(&acts, "40");
    assert_eq!((why.reason, why.breaks[0].waited_ns), (Reason::Server, 0));
}

#[test]
fn breaks_that_nothing_waited_for_are_not_the_reason() {
    // Level II needs no acknowledgement.
    let why = explain(&broken(None, 30_104, level_two), "30");
    assert_eq!((why.reason, why.breaks[0].needs_acknowledgement), (Reason::Server, Some(false)));
    // Another file.
    let mut acts = broken(None, 30_104, batch_oplock);
    acts[2].path = "dir\\other.txt";
    let why = explain(&acts, "30");
    assert_eq!((why.reason, why.breaks.len()), (Reason::Server, 0));
    // Over before the operation: the open that caused the break had been answered.
    let mut acts = broken(None, 30_104, batch_oplock);
    acts.push(act(CREATE, 30_200, 30_300));
    let why = explain(&acts, "40");
    assert_eq!((why.reason, why.breaks.len(), why.timer), (Reason::Server, 0, None));
}

#[test]
fn requests_before_it_are_the_reason_only_if_answered_just_before() {
    let waited = [act(IOCTL, 0, 1000), act(READ, 5, 1001)];
    let why = explain(&waited, "20");
    assert_eq!((why.reason, why.neighbours.blocking), (Reason::EarlierRequests, Blocking::Behind));
    assert_eq!(why.neighbours.blocker.as_ref().unwrap().request_frame, Some(10));
    assert_eq!(duration(&why, StepKind::EarlierRequests), Some(995 * MS));
    check_sum(&why);
    // Answered long before it.
    let why = explain(&[act(IOCTL, 0, 100), act(READ, 5, 1001)], "20");
    assert_eq!((why.reason, why.neighbours.blocking), (Reason::Server, Blocking::Unknown));
    // A request after it was answered meanwhile: the connection was not blocked.
    let free = [act(IOCTL, 0, 1000), act(READ, 5, 1001), act(READ, 10, 20)];
    let why = explain(&free, "20");
    assert_eq!((why.reason, why.neighbours.blocking), (Reason::Server, Blocking::OnlyThis));
    // Requests after it waited, too.
    let why = explain(&[act(IOCTL, 0, 1000), act(READ, 5, 1001)], "10");
    assert_eq!(why.neighbours.blocking, Blocking::OthersWaited);
    assert_eq!((why.neighbours.in_flight, why.neighbours.sent), (0, 1));
}

#[test]
fn replies_to_others_can_occupy_the_connection() {
    // The reply of the second read takes 700 ms.
    let long = |row: &mut Operation| {
        row.set_response_start(row.response_end().unwrap() - 700 * MS);
        row.derive_durations();
    };
    let why = explain(&[act(READ, 0, 900), with(act(READ, 1, 850), long)], "10");
    assert_eq!((why.reason, why.neighbours.blocking), (Reason::OtherReplies, Blocking::Replies));
    assert_eq!(duration(&why, StepKind::OtherReplies), Some(700 * MS));
    check_sum(&why);
}

#[test]
fn a_request_after_silence_may_have_released_the_reply() {
    let why = explain(&[act(IOCTL, 0, 10_003), act(ECHO, 10_002, 10_004)], "10");
    assert_eq!(why.neighbours.released_by.as_ref().unwrap().request_frame, Some(20));
    // Not silent.
    let acts = [act(IOCTL, 0, 10_003), act(READ, 5000, 10_005), act(ECHO, 10_002, 10_004)];
    assert_eq!(explain(&acts, "10").neighbours.released_by, None);
    // The request came long before the reply.
    let acts = [act(IOCTL, 0, 10_003), act(ECHO, 9_000, 10_004)];
    assert_eq!(explain(&acts, "10").neighbours.released_by, None);
}

#[test]
fn a_proxy_forwards_the_same_request() {
    let on = |ends| Act { ends, ..with(act(READ, 1, 3), |row| row.set_connection(2)) };
    let forwarded = |other: Act| explain(&[act(READ, 0, 900), other], "10").neighbours.forwarded;
    let found = forwarded(on(("10.0.0.2", "10.0.0.3", 445))).unwrap();
    assert_eq!((found.request_frame, found.elapsed_ns), (Some(20), Some(2 * MS)));
    // On one machine, the ports differ.
    let local = |port| Act { ends: ("10.0.0.1", "10.0.0.1", port), ..act(READ, 0, 900) };
    let other = |port| Act { ends: ("10.0.0.1", "10.0.0.1", port), ..on(("", "", 0)) };
    assert!(explain(&[local(445), other(446)], "10").neighbours.forwarded.is_some());
    // Two clients that read the same file.
    assert_eq!(explain(&[local(445), other(445)], "10").neighbours.forwarded, None);
    assert_eq!(forwarded(on(("10.0.0.9", "10.0.0.2", 445))), None);
    assert_eq!(forwarded(Act { path: "other", ..on(("10.0.0.2", "10.0.0.3", 445)) }), None);
}

#[test]
fn a_lock_waits_for_the_locks_of_others() {
    let lock = |from_ms, until_ms, handle, kind: u32| {
        let set: fn(&mut Operation) = match kind {
            0 => |row| {
                row.set_offset_bytes(0);
                row.set_requested_bytes(100);
                row.set_detail(code::detail(Detail::Lock, 0));
            },
            1 => |row| {
                row.set_offset_bytes(0);
                row.set_requested_bytes(100);
                row.set_detail(code::detail(Detail::Lock, 1));
            },
            _ => |row| {
                row.set_offset_bytes(500);
                row.set_requested_bytes(100);
                row.set_detail(code::detail(Detail::Lock, 0));
            },
        };
        Act { handle, ..with(act(LOCK, from_ms, until_ms), set) }
    };
    let acts = [lock(0, 1, 2, 0), lock(300, 301, 2, 1), lock(10, 302, 1, 0)];
    let why = explain(&acts, "30");
    assert_eq!((why.reason, why.holders_count), (Reason::Holder, 1));
    let one = &why.holders[0];
    assert_eq!((one.brief.request_frame, one.until_frame), (Some(10), Some(20)));
    assert_eq!((one.from_ns, one.until_ns), (-9 * MS, Some(290 * MS)));
    // Another range.
    let acts = [lock(0, 1, 2, 2), lock(300, 301, 2, 1), lock(10, 302, 1, 0)];
    assert_eq!(
        (explain(&acts, "30").reason, explain(&acts, "30").holders_count),
        (Reason::Server, 0)
    );
    // Given up before.
    let acts = [lock(0, 1, 2, 0), lock(5, 6, 2, 1), lock(10, 302, 1, 0)];
    assert_eq!(explain(&acts, "30").holders_count, 0);
}

#[test]
fn a_sharing_violation_names_the_open_that_causes_it() {
    let refused = |row: &mut Operation| {
        row.set_status(0xc000_0043);
        row.clear(Column::handle);
    };
    let acts = [act(CREATE, 0, 1), with(act(CREATE, 10, 1012), refused), act(CLOSE, 2000, 2001)];
    let why = explain(&acts, "20");
    assert_eq!((why.reason, why.holders_count), (Reason::Server, 1));
    assert_eq!(why.holders[0].until_ns, Some(1990 * MS));
    assert!(why.timer.unwrap().name.unwrap().contains("sharing violation"));
    let closed = [act(CREATE, 0, 1), act(CLOSE, 5, 6), with(act(CREATE, 10, 1012), refused)];
    assert_eq!(explain(&closed, "30").holders_count, 0);
}

#[test]
fn likes_have_a_rank_and_constants_are_timers() {
    let mut acts: Vec<_> = (0..20).map(|n| act(READ, 100 * n, 100 * n + 2)).collect();
    acts.push(act(READ, 5000, 5200));
    let why = explain(&acts, "210");
    let likes = &why.likes;
    assert_eq!((likes.operations, likes.slower, likes.p50_ns), (21, 0, Some(2 * MS)));
    assert_eq!((likes.max_ns, likes.times_median), (Some(200 * MS), Some(100.0)));
    assert_eq!((likes.same_duration_any, why.timer), (0, None));
    acts.extend([act(READ, 6000, 6200), act(ECHO, 7000, 7201)]);
    let why = explain(&acts, "210");
    assert_eq!((why.likes.same_duration, why.likes.same_duration_any), (1, 2));
    let timer = why.timer.unwrap();
    assert_eq!((timer.constant_ns, timer.operations, timer.name), (200 * MS, 2, None));
    // Distance is not a timer.
    let far = |row: &mut Operation| row.set_server_ns(MS);
    let acts: Vec<_> = (0..5).map(|n| with(act(READ, 1000 * n, 1000 * n + 200), far)).collect();
    let why = explain(&acts, "20");
    assert_eq!((why.reason, why.timer, why.likes.p50_ns), (Reason::Network, None, None));
}

#[test]
fn sizes_and_details_are_different_kinds() {
    let small = |row: &mut Operation| row.set_requested_bytes(4096);
    let large = |row: &mut Operation| row.set_requested_bytes(65_536);
    let acts = [
        with(act(READ, 0, 2), small),
        with(act(READ, 10, 12), large),
        with(act(READ, 20, 22), small),
    ];
    let likes = explain(&acts, "10").likes;
    assert_eq!(
        (likes.operations, likes.from_bytes, likes.below_bytes),
        (2, Some(4096), Some(8192))
    );
}

#[test]
fn a_delayed_acknowledgement_is_between_the_segments_of_a_small_message() {
    let parts = |row: &mut Operation| {
        row.set_request_end(row.request_start().unwrap() + 201 * MS);
        row.derive_durations();
        row.set_server_ns(MS);
        row.set_requested_bytes(4096);
    };
    let why = explain(&[with(act(READ, 0, 204), parts)], "10");
    assert_eq!(why.reason, Reason::RequestTransfer);
    let timer = why.timer.unwrap();
    assert_eq!((timer.constant_ns, timer.operations), (200 * MS, 0));
    assert!(timer.name.unwrap().contains("delayed acknowledgement"));
    let large = |row: &mut Operation| {
        row.set_request_end(row.request_start().unwrap() + 201 * MS);
        row.derive_durations();
        row.set_requested_bytes(1 << 20);
    };
    assert_eq!(explain(&[with(act(READ, 0, 204), large)], "10").timer, None);
}

#[test]
fn a_name_service_explains_a_slow_logon_only() {
    let why = explain(&[act(NEGOTIATE, 0, 10_027)], "10");
    assert!(why.timer.unwrap().name.unwrap().contains("name service"));
    assert_eq!(explain(&[act(READ, 0, 10_027)], "10").timer, None);
    assert_eq!(explain(&[act(NEGOTIATE, 0, 9_000)], "10").timer, None);
}

#[test]
fn losses_and_transfers_are_steps() {
    let lost = |row: &mut Operation| {
        row.set_response_start(row.response_end().unwrap() - 50 * MS);
        row.derive_durations();
        row.set_server_ns(249 * MS);
        row.set_recovery_ns(210 * MS);
    };
    let why = explain(&[with(act(READ, 0, 300), lost)], "10");
    assert_eq!(why.reason, Reason::Loss);
    assert_eq!(duration(&why, StepKind::Loss), Some(210 * MS));
    assert_eq!(duration(&why, StepKind::Server), Some(89 * MS));
    check_sum(&why);
    let long = |row: &mut Operation| {
        row.set_response_start(row.request_end().unwrap() + 2 * MS);
        row.derive_durations();
        row.set_server_ns(MS);
    };
    let why = explain(&[with(act(READ, 0, 300), long)], "10");
    assert_eq!(why.reason, Reason::ResponseTransfer);
    check_sum(&why);
}

#[test]
fn an_estimate_that_is_too_uncertain_does_not_separate_server_and_network() {
    let unsure = |row: &mut Operation| row.set_server_error_ns(90 * MS);
    assert_eq!(explain(&[with(act(READ, 0, 100), unsure)], "10").reason, Reason::ServerOrNetwork);
    let unknown = |row: &mut Operation| row.clear(Column::server_ns);
    let why = explain(&[with(act(READ, 0, 100), unknown)], "10");
    assert_eq!(why.reason, Reason::ServerOrNetwork);
    check_sum(&why);
}

#[test]
fn slices_are_parts_of_the_server() {
    let slice = |kind: &'static str, start_ms: i64, ms: i64| Slice {
        recording: "run".into(),
        operation: 10,
        kind: kind.into(),
        start: START + start_ms * MS,
        duration_ns: ms * MS,
        cpu_ns: None,
        cycles: None,
        hits: None,
    };
    let other = Slice { operation: 20, ..slice("io", 1, 5) };
    let slices = [slice("queue", 1, 10), slice("io", 11, 70), slice("io", 90, 3), other];
    let why = explain_with(&[act(READ, 0, 101)], "10", &slices);
    let parts: Vec<_> = why.steps.iter().filter(|step| step.is_part).collect();
    let of = |place: usize| (parts[place].slice, parts[place].at_ns, parts[place].duration_ns);
    assert_eq!(of(0), (Some("queue"), Some(MS), Some(10 * MS)));
    assert_eq!(of(1), (Some("io"), Some(11 * MS), Some(73 * MS)));
    assert_eq!(of(2), (None, None, Some(17 * MS)));
    check_sum(&why);
    // Without the table, the sums of the row.
    let sums = |row: &mut Operation| row.set_filesystem_ns(50 * MS);
    let why = explain(&[with(act(READ, 0, 101), sums)], "10");
    let part = why.steps.iter().find(|step| step.slice == Some("filesystem")).unwrap();
    assert_eq!((part.at_ns, part.duration_ns), (None, Some(50 * MS)));
}

#[test]
fn the_history_of_the_open_has_first_near_and_last() {
    let mut acts = vec![act(CREATE, 0, 1)];
    acts.extend((1..12).map(|n| act(READ, 10 * n, 10 * n + 1)));
    acts.push(Act { handle: 2, ..act(READ, 500, 501) });
    acts.push(act(CLOSE, 900, 901));
    let open = explain(&acts, "60").open.unwrap();
    assert_eq!((open.handle, open.uses), (1, 13));
    let frames: Vec<_> = open.shown.iter().filter_map(|one| one.request_frame).collect();
    assert_eq!(frames, [10, 30, 40, 50, 60, 70, 80, 140]);
}

#[test]
fn neighbours_are_few_and_the_rest_is_counted() {
    let mut acts = vec![act(READ, 0, 500)];
    acts.extend((1..40).map(|n| act(READ, 10 * n, 10 * n + 5)));
    acts.push(with(act(15, -100, 1000), |row| row.set_waits(true)));
    acts.push(with(act(READ, 20, 30), |row| row.set_connection(2)));
    let why = explain(&acts, "10");
    let found = &why.neighbours;
    assert_eq!((found.sent, found.sent_answered, found.in_flight, found.waiting), (39, 39, 0, 1));
    assert_eq!((found.shown.len(), found.left_out), (8, 31));
    assert_eq!(
        why.filter.unwrap(),
        "ip.addr == 10.0.0.1 && tcp.port == 50000 && frame.number >= 10 && frame.number <= 91"
    );
}

#[test]
fn members_of_a_compound_lead_to_the_first() {
    let lead = |row: &mut Operation| {
        row.set_compound(5);
        row.set_compound_index(0);
        row.set_compound_size(2);
    };
    let member = |row: &mut Operation| {
        let kept = (row.recording(), row.connection(), row.command(), row.operation());
        *row = Operation::default();
        row.set_recording(kept.0.unwrap());
        row.set_connection(kept.1.unwrap());
        row.set_command(kept.2.unwrap());
        row.set_operation(kept.3.unwrap());
        row.set_request_frame(10);
        row.set_response_frame(11);
        row.set_compound(5);
        row.set_compound_index(1);
        row.set_compound_size(2);
    };
    let acts = [with(act(CREATE, 0, 50), lead), with(act(CLOSE, 0, 50), member)];
    for which in ["10", "op:20"] {
        let why = explain(&acts, which);
        assert_eq!(why.operation.brief.operation, Some(10), "{which}");
        assert_eq!(why.operation.compound_member.is_some(), which == "op:20");
        assert_eq!(why.operation.compound_size, Some(2));
    }
}

#[test]
fn frames_find_requests_replies_and_what_is_between() {
    let acts = [act(READ, 0, 2), act(READ, 10, 12), act(READ, 20, 22)];
    let found_by = |which| explain(&acts, which).found_by;
    assert_eq!((found_by("20"), found_by("21")), (FoundBy::Request, FoundBy::Reply));
    assert_eq!((found_by("op:20"), found_by("run.pcap:20")), (FoundBy::Number, FoundBy::Request));
    match search(&acts, "25").unwrap_err() {
        Miss::Missing { nearest, operations: 3, has_frames: true } => {
            let frames: Vec<_> = nearest.iter().filter_map(|one| one.request_frame).collect();
            assert_eq!(frames, [10, 20, 30]);
        }
        miss => panic!("{miss:?}"),
    }
    assert!(matches!(search(&acts, "other.pcap:20"), Err(Miss::Missing { .. })));
    assert!(matches!(search(&acts, "op:7"), Err(Miss::Missing { .. })));
    // Between request and reply of one operation, and of two.
    let wide = |row: &mut Operation| row.set_response_frame(19);
    let acts = [with(act(READ, 0, 2), wide), act(READ, 10, 12)];
    assert_eq!(explain(&acts, "15").found_by, FoundBy::Between);
    let same = |row: &mut Operation| {
        row.set_request_frame(10);
        row.set_response_frame(19);
    };
    let acts = [with(act(READ, 0, 2), wide), with(act(READ, 0, 2), same)];
    for which in ["10", "15", "19"] {
        match search(&acts, which).unwrap_err() {
            Miss::Ambiguous { candidates, count: 2 } => assert_eq!(candidates.len(), 2),
            miss => panic!("{which}: {miss:?}"),
        }
    }
}

#[test]
fn what_has_no_reply_or_waits_by_design_is_reported_as_such() {
    let unanswered = |row: &mut Operation| {
        for column in [Column::response_start, Column::response_end, Column::elapsed_ns] {
            row.clear(column);
        }
        row.clear(Column::response_frame);
        row.clear(Column::status);
    };
    let why = explain(&[with(act(READ, 0, 2), unanswered), act(READ, 5, 6)], "10");
    assert_eq!((why.reason, why.reason_share), (Reason::NoReply, None));
    assert_eq!(why.neighbours.sent, 1);
    let waiting = |row: &mut Operation| row.set_waits(true);
    let why = explain(&[with(act(15, 0, 60_000), waiting), act(READ, 5, 6)], "10");
    assert_eq!((why.reason, why.timer, why.likes.operations), (Reason::WaitsByDesign, None, 1));
}

#[test]
fn nonsense_in_rows_is_no_panic() {
    let wild = |row: &mut Operation| {
        row.set_request_start(i64::MIN);
        row.set_response_end(i64::MAX);
        row.set_elapsed_ns(i64::MIN);
        row.set_server_ns(i64::MAX);
        row.set_recovery_ns(i64::MAX);
        row.set_pending_at(i64::MAX);
        row.set_requested_bytes(0);
        row.set_offset_bytes(u64::MAX);
    };
    let acts = [with(act(READ, 0, 2), wild), with(act(LOCK, 0, 2), wild), act(READ, 0, 2)];
    for which in ["10", "20", "30"] {
        explain(&acts, which);
    }
}
