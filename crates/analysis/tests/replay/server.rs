//! What the server does differently: stable writes, a second server, directory leases; and what is not known of it.

use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::plan::{Plan, Replication};
use smbscope_analysis::predict::replay::{Baseline, Cached, Prediction, Replay};
use smbscope_tables::builder::OperationBuilder;
use smbscope_tables::code;
use smbscope_tables::operation::Operation;
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::Tree;

use crate::{
    CLOSE, CREATE, FLUSH, MS, QUERY_DIRECTORY, QUERY_INFO, WRITE, act, batch, chain, connection,
    execution, learnt, mean, operations, predict, replication,
};

#[test]
fn missing_data_is_counted() {
    let rows = operations(&vec![act(MS, 200); 3], None);
    let mut plan = Plan::default();
    Change::Rtt(0.02).plan(&mut plan);
    let mut replay = Replay::new(plan, Default::default());
    replay.operations(&batch(&rows)).unwrap();
    let prediction = replay.finish();
    assert_eq!((prediction.timed, prediction.without_rtt), (3, 3));
    assert_eq!(mean(&prediction.operations), prediction.operations.before.mean_ns().unwrap());
    let slices: u64 = prediction.slices.iter().map(|(_, n)| n).sum();
    assert_eq!(slices, 6, "{:?}", prediction.slices);
    assert!(prediction.slices.contains(&(Kind::Filesystem.name(), 3)));
}

#[test]
fn server_time_of_a_later_member_is_in_the_compounds_time() {
    let mut lead = operations(&[act(MS, 200)], None)[0];
    lead.set_compound(1);
    lead.set_compound_index(0);
    lead.set_compound_size(2);
    // The reply waited for the member: 3 ms of its file system, and 0.1 of its own sending.
    let longer = 3 * MS + 100_000;
    lead.set_response_start(lead.response_start().unwrap() + longer);
    lead.set_response_end(lead.response_end().unwrap() + longer);
    lead.derive_durations();
    lead.set_send_ns(longer);
    let mut member = Operation::default();
    member.set_operation(1);
    member.set_connection(1);
    member.set_session_id(7);
    member.set_compound(1);
    member.set_compound_index(1);
    member.set_filesystem_ns(3 * MS);
    let prediction = predict(&[lead, member], &[], &[Change::Filesystem(0.5)]);
    let operations = &prediction.operations;
    let wanted = (3 * MS + 60_000) as f64;
    assert_eq!(mean(operations) - operations.before.mean_ns().unwrap(), wanted);
    let send = operations.parts.iter().find(|part| part.part == "send").unwrap();
    assert_eq!(send.before_ns, 100_000.0);
}

/// Two slow queries are not how long a small request takes, nor does their absence matter.
#[test]
fn what_a_flush_costs_does_not_vanish_behind_a_few_slow_queries() {
    let cost = |queries: usize, plain_ns: i64| {
        let mut commands = vec![CREATE];
        commands.extend(vec![QUERY_INFO; queries]);
        commands.extend([WRITE, FLUSH].repeat(12));
        commands.push(CLOSE);
        let mut rows = chain(&commands);
        let mut later = 0;
        for (row, command) in rows.iter_mut().zip(&commands) {
            let longer = match *command {
                FLUSH => 5 * MS,
                QUERY_INFO => 6 * MS,
                WRITE => plain_ns,
                _ => 0,
            };
            row.set_transferred_bytes(4096);
            row.set_request_start(row.request_start().unwrap() + later);
            later += longer;
            row.set_response_start(row.response_start().unwrap() + later);
            row.set_response_end(row.response_end().unwrap() + later);
            row.derive_durations();
        }
        predict(&rows, &[], &[]).baseline.stable
    };
    let few = cost(2, 0);
    assert_eq!(few.n, 12);
    assert_eq!(few.median_ns, cost(0, 0).median_ns);
    let near = |ns: f64, wanted: i64| (ns - wanted as f64).abs() < 0.01 * wanted as f64;
    assert!(near(few.median_ns, 5 * MS), "{few:?}");
    // The quicker of writes and queries.
    assert!(near(cost(20, 0).median_ns, 5 * MS) && near(cost(20, MS).median_ns, 4 * MS));
}

#[test]
fn a_stable_write_takes_as_long_as_a_flush() {
    let mut rows = chain(&[CREATE, WRITE, WRITE, FLUSH, CLOSE]);
    for row in &mut rows {
        row.set_transferred_bytes(4096);
    }
    // Everything after the Flush is later by the same time.
    for row in &mut rows[3..] {
        row.set_response_end(row.response_end().unwrap() + 3 * MS);
    }
    rows[3].set_flush_ns(3 * MS);
    rows[3].derive_durations();
    let later = rows[4].request_start().unwrap() + 3 * MS;
    rows[4].set_request_start(later);
    rows[4].derive_durations();
    let difference = |prediction: &Prediction| {
        let [before, after] = [prediction.waiting_ns.0, prediction.waiting_ns.1];
        after - before
    };
    let through = learnt(&rows, Change::WriteThrough(true));
    // Two writes are stable, and the Flush has nothing to do.
    assert_eq!(difference(&through), 2 * 3 * MS - 3 * MS);
    assert_eq!(difference(&learnt(&rows, Change::WriteThrough(false))), 0);
    // A thread also does the flush: each write waits for it again; a Flush without work waits only for it.
    const WAIT_NS: i64 = MS / 20;
    let mut threads = rows.clone();
    for row in &mut threads[1..3] {
        row.set_io_wait_ns(WAIT_NS);
    }
    let through = learnt(&threads, Change::WriteThrough(true));
    assert_eq!(difference(&through), 2 * (3 * MS + WAIT_NS) - (3 * MS - WAIT_NS));
    let mut slow = threads.clone();
    let both = 3 * MS + WAIT_NS;
    for (place, row) in slow.iter_mut().enumerate() {
        let writes = place.clamp(1, 3) as i64 - 1;
        let is_write = (1..3).contains(&place);
        let flush_ns = if place == 3 { 3 * MS - WAIT_NS } else { 0 };
        row.set_request_start(row.request_start().unwrap() + writes * both);
        let ends = (writes + i64::from(is_write)) * both - flush_ns;
        row.set_response_end(row.response_end().unwrap() + ends);
        if is_write {
            row.set_write_through(true);
            row.set_flush_ns(3 * MS);
            row.set_io_wait_ns(2 * WAIT_NS);
        }
        if place == 3 {
            row.set_flush_ns(WAIT_NS);
        }
        row.derive_durations();
    }
    // What was added is removed again; then the Flush has to make both writes stable.
    let buffered = learnt(&slow, Change::WriteThrough(false));
    assert_eq!(difference(&buffered), -2 * both + 3 * MS - WAIT_NS);
    // The Flush waits for the second server: 5 ms, and for the rest of 8 KiB at 1 MB/s.
    let sync = learnt(&rows, Change::Replication(replication(true)));
    let waits = difference(&sync);
    assert!((5 * MS..14 * MS).contains(&waits), "{waits}");
    let replica = sync.operations.parts.iter().find(|part| part.part == "replica").unwrap();
    assert_eq!((replica.after_ns * 5.0) as i64, waits);
    let later = learnt(&rows, Change::Replication(replication(false)));
    assert_eq!(difference(&later), 0);
    let risk = later.at_risk.unwrap();
    assert_eq!((risk.written, risk.most), (8192, 8192));
    // The link's 8 ms do not belong to the writes.
    assert!((0..MS).contains(&risk.writing_ns) && risk.lasted_ns > 8 * MS, "{risk:?}");
    // Half a round trip, and both at the link's rate.
    assert!((6 * MS..11 * MS).contains(&risk.longest_ns), "{risk:?}");
}

/// The threads of a load run write down their operations a second's at once.
#[test]
fn the_order_in_which_threads_write_down_their_operations_changes_nothing() {
    // Three users, each of whom writes and flushes 8 kB every 30 ms; a link of 1 MB/s needs 8 ms for that.
    let mut users = Vec::new();
    let mut scenarios = Vec::new();
    for user in 0..3 {
        let mut rows = Vec::new();
        for turn in 0..10 {
            let mut save = chain(&[CREATE, WRITE, FLUSH, CLOSE]);
            let (number, later) = (3 * turn + user, 30 * MS * turn as i64 + 7 * MS * user as i64);
            for row in &mut save {
                row.set_operation(10 * number + row.operation().unwrap());
                row.set_connection(1 + user);
                row.set_session_id(7 + user);
                row.set_handle(number);
                row.set_scenario_run(number);
                row.set_transferred_bytes(8_000);
                for (at, set) in [
                    (row.request_start(), Operation::set_request_start as fn(&mut Operation, i64)),
                    (row.request_end(), Operation::set_request_end),
                    (row.response_start(), Operation::set_response_start),
                    (row.response_end(), Operation::set_response_end),
                ] {
                    set(row, at.unwrap() + later);
                }
            }
            scenarios.push(execution(&save, number));
            rows.extend(save);
        }
        users.push(rows);
    }
    let by_thread = users.concat();
    let mut by_time = by_thread.clone();
    by_time.sort_by_key(Operation::response_end);
    for is_sync in [true, false] {
        let change = [Change::Replication(replication(is_sync))];
        let [one, other] = [&by_thread, &by_time].map(|rows| predict(rows, &scenarios, &change));
        assert_eq!(one.at_risk, other.at_risk);
        assert_eq!(one.operations.after, other.operations.after);
        let waits = other.operations.after.mean_ns() > other.operations.before.mean_ns();
        assert_eq!(waits, is_sync);
        if let Some(risk) = other.at_risk {
            // Three writes one after the other, 7 ms apart, and half a round trip.
            let longest = 3 * 8_600_000 - 14 * MS + 5 * MS / 2;
            assert!((risk.longest_ns - longest).abs() < MS, "{risk:?}");
        }
    }
}

#[test]
fn an_answer_on_receipt_hides_the_local_log() {
    // Two writes and a Flush that took 3 ms.
    let mut rows = chain(&[CREATE, WRITE, WRITE, FLUSH, CLOSE]);
    for row in &mut rows {
        row.set_transferred_bytes(4096);
        row.set_flush_ns(3 * MS);
    }
    let waits = |rtt_ns: i64, is_on_arrival: bool| {
        let line = Replication { is_on_arrival, rtt_ns, bandwidth_bits: None, ..replication(true) };
        let replicas = predict(&rows, &[], &[Change::Replication(line)]).replicas.unwrap();
        assert_eq!(replicas.shares.len(), 1);
        let flush = replicas.commands.iter().find(|row| row.name == "Flush").unwrap();
        (flush.waiting, flush.added.max_ns)
    };
    assert_eq!(waits(5 * MS, false), (1, Some(5 * MS)));
    assert_eq!(waits(5 * MS, true), (1, Some(2 * MS)));
    assert_eq!(waits(2 * MS, true), (0, Some(0)));
}

#[test]
fn writes_to_a_continuously_available_share_wait_for_the_second_server() {
    let mut rows = chain(&[CREATE, WRITE, WRITE, CLOSE]);
    for row in &mut rows {
        row.set_transferred_bytes(4096);
        row.set_tree_id(5);
    }
    let replay = |trees: &[Tree]| {
        let mut plan = Plan::default();
        Change::Replication(replication(true)).plan(&mut plan);
        let mut replay = Replay::new(plan, Default::default());
        replay.connections(&[connection()]);
        replay.trees(trees);
        replay.operations(&batch(&rows)).unwrap();
        replay.finish()
    };
    let tree = |tree_id: u64, is_available: bool| Tree {
        recording: "run".into(),
        session_id: 7,
        tree_id,
        continuous_availability: Some(is_available),
        ..Tree::default()
    };
    let others = replay(&[tree(5, false), tree(6, true)]);
    assert_eq!((others.stable, others.waiting_ns.1 - others.waiting_ns.0), (0, 0));
    let waits = replay(&[tree(5, true)]);
    assert_eq!(waits.stable, 2);
    assert!(waits.waiting_ns.1 - waits.waiting_ns.0 >= 2 * 5 * MS, "{:?}", waits.waiting_ns);
}

#[test]
fn a_directory_lease_answers_repeated_lookups() {
    const FILE_OPEN: u32 = 1;
    const NO_MORE_FILES: u32 = 0x8000_0006;
    let rows = chain(&[CREATE, QUERY_DIRECTORY, CLOSE].repeat(3));
    let mut builder = OperationBuilder::new(None).unwrap();
    for (place, row) in rows.iter().enumerate() {
        let mut row = *row;
        row.set_recording(builder.names.recording.intern("run"));
        row.set_path(builder.names.path.intern("Folder"));
        row.set_handle(place as u64 / 3);
        row.set_status(if place % 3 == 1 { NO_MORE_FILES } else { 0 });
        row.set_desired_access(0x81);
        row.set_create_options(1);
        row.set_detail(code::detail(code::Detail::Disposition, FILE_OPEN));
        builder.append(&[row]);
    }
    let batch = builder.finish().unwrap();
    let replay = |plan: Plan, baseline| {
        let mut replay = Replay::new(plan, baseline);
        replay.connections(&[connection()]);
        replay.operations(&batch).unwrap();
        replay.finish()
    };
    let baseline = replay(Plan::default(), Baseline::default()).baseline;
    let mut plan = Plan::default();
    Change::DirLease(()).plan(&mut plan);
    let prediction = replay(plan, baseline);
    // The first open, which is still sent, and the first listing.
    assert_eq!((prediction.operations.count, prediction.operations.count_after), (9, 2));
    assert_eq!(prediction.cached, Cached { answered: 7, breaks: 0, creates: 3 });
    let close = prediction.sent.iter().find(|one| one.command == "Close").unwrap();
    assert_eq!((close.before, close.after), (3, 0));
    let (before, after) = prediction.waiting_ns;
    assert!(after < before / 4, "{before} {after}");
}
