//! The profile of a recording: costs by size, needs of scenarios, and waits; and what more users cost each other.

use smbscope_analysis::predict::capacity::Wait;
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::Replay;
use smbscope_analysis::predict::{averages, reduce};
use smbscope_tables::profile::{Cost, Profile};
use smbscope_tables::run::{MEASURED, Scenario};
use smbscope_tables::slice::Kind;

use crate::{MS, RTT_NS, act, batch, connection, execution, mean, operations, predict};

#[test]
fn more_users_make_each_request_wait_for_the_others() {
    let rows = operations(&vec![act(MS, 200); 1000], Some(5));
    let scenario = execution(&rows, 5);
    let today = predict(&rows, std::slice::from_ref(&scenario), &[]);
    assert_eq!(today.of_execution(), Some((1000.0, (0.0, 0.0))));
    let with = |plan: Plan| {
        let mut replay = Replay::new(plan, Default::default());
        replay.connections(&[connection()]);
        replay.scenarios(std::slice::from_ref(&scenario));
        replay.operations(&batch(&rows)).unwrap();
        replay.finish()
    };
    let waits =
        |share, mean_s| with(Plan { waits: vec![Wait { share, mean_s }], ..Plan::default() });
    let (before, more) = (waits(0.5, 0.0), waits(0.5, 0.004));
    let [today, then] = [&before, &more].map(|one| mean(&one.operations));
    assert_eq!(Some(today), before.operations.before.mean_ns());
    // Half of them 4 ms; a thousand draws are within a tenth of that.
    assert!(((then - today) / 2e6 - 1.0).abs() < 0.1, "{today} {then}");
    let scenarios = more.all_scenarios.unwrap();
    let longer = mean(&scenarios) - scenarios.before.mean_ns().unwrap();
    assert!((longer / (1000.0 * (then - today)) - 1.0).abs() < 1e-9, "{longer}");
    let queue = more.operations.parts.iter().find(|part| part.part == "queue").unwrap();
    assert!((queue.after_ns - queue.before_ns - (then - today)).abs() < 1.0);
    // With fewer users a request waits less, as far as it waited.
    assert_eq!(mean(&waits(1.0, -0.004).operations), today);

    // Only the step that the users are compared with counts.
    let due = scenario.scheduled_at;
    let counted = |window| with(Plan { window: Some(window), ..Plan::default() }).operations.count;
    assert_eq!((counted((due, due + 1)), counted((due - MS, due))), (1000, 0));
}

#[test]
fn a_profile_has_costs_by_size_and_the_needs_of_scenarios() {
    // Ten operations one after the other, a millisecond between them; a second later the same ten again.
    let mut acts = vec![act(MS, 200); 20];
    acts[10].gap_ns += 1_000 * MS;
    let mut rows = operations(&acts, Some(1));
    let ends: Vec<_> = rows.iter().map(|row| row.response_end().unwrap()).collect();
    for (number, row) in rows.iter_mut().enumerate() {
        row.set_scenario_run(number as u64 / 10);
        row.set_transferred_bytes(if number % 2 == 0 { 4_096 } else { 65_536 });
        // One of the larger reads waits for a flush as well.
        if number == 19 {
            row.set_filesystem_ns(30_000);
            row.set_flush_ns(30_000);
        }
    }
    let scenario = |run: u64, begin: i64, end: i64| Scenario {
        recording: "run".into(),
        scenario_run: run,
        scenario: "Open".into(),
        phase: MEASURED.into(),
        scheduled_at: begin,
        started_at: Some(begin),
        ended_at: Some(end),
        ..Scenario::default()
    };
    let begin = 1_000_000_000;
    let scenarios = [scenario(0, begin, ends[9]), scenario(1, ends[9] + 1_000 * MS, ends[19])];
    let prediction = predict(&rows, &scenarios, &[]);
    // Half an hour of one user.
    let profile = reduce::profile(&prediction, Some(1800.0), "test", "a test").unwrap();
    assert_eq!(profile.wrong(), None);
    assert!((profile.rtt_s - RTT_NS as f64 / 1e9).abs() < 1e-12);
    let read = profile.commands.iter().find(|command| command.command == "Read").unwrap();
    let sizes: Vec<_> = read.sizes.iter().map(|one| (one.least_bytes, one.cost.count)).collect();
    assert_eq!(sizes, [(4_096, 6), (65_536, 7)]);
    let flush = |cost: &Cost| {
        let part = cost.parts.iter().find(|part| part.part == Some(Kind::Flush));
        part.map(|part| part.mean_s)
    };
    assert_eq!(flush(&read.sizes[0].cost), None);
    assert!((flush(&read.sizes[1].cost).unwrap() - 3e-5 / 7.0).abs() < 1e-12, "{read:?}");
    let open = &profile.scenarios[0];
    assert_eq!((&*open.scenario, open.runs_per_hour), ("Open", 4.0));
    let needs = &open.variants[0];
    assert_eq!(needs.round_trips, 10.0);
    assert!((needs.between_s - 0.01).abs() < 1e-9, "{needs:?}");
    // The sum is the measured time, and on a longer link the time of the replay.
    let seconds = |profile: &Profile| averages::table(profile)[0].seconds();
    let measured = prediction.scenarios[0].before.mean_ns().unwrap() / 1e9;
    assert!((seconds(&profile) / 4.0 - measured).abs() < 1e-9);
    let mut farther = profile.clone();
    Change::Rtt(0.02).apply(&mut farther).unwrap();
    let replayed = predict(&rows, &scenarios, &[Change::Rtt(0.02)]);
    assert!((seconds(&farther) / 4.0 - mean(&replayed.scenarios[0]) / 1e9).abs() < 1e-9);
    // A profile read from a file equals the original.
    let text = serde_json::to_string(&profile).unwrap();
    let read: Profile = serde_json::from_str(&text).unwrap();
    assert_eq!((read.wrong(), read.commands.len()), (None, profile.commands.len()));
    assert!((seconds(&read) / seconds(&profile) - 1.0).abs() < 1e-12);
    assert!(serde_json::from_str::<Profile>(&text.replace("filesystem", "magic")).is_err());
    let mut broken = profile.clone();
    broken.scenarios[0].variants[0].operations.pop();
    assert!(broken.wrong().unwrap().contains("commands whose cost"));
    broken = profile;
    broken.commands[0].cost.parts[0].mean_s = -1.0;
    assert!(broken.wrong().unwrap().contains("impossible time"));
}

#[test]
fn a_profile_of_a_capture_has_the_clients_waits_per_hour() {
    let mut acts = vec![act(10_000, 200); 10];
    acts.iter_mut().skip(1).for_each(|act| act.waits = false);
    let prediction = predict(&operations(&acts, None), &[], &[]);
    let profile = reduce::profile(&prediction, None, "test", "a test").unwrap();
    let (waited, lasted) =
        (prediction.waiting_ns.0 as f64, prediction.detail.unwrap().lasted_ns as f64);
    let cell = &averages::table(&profile)[0];
    assert_eq!(cell.scenario, reduce::ALL);
    assert!((cell.seconds() - 3600.0 * waited / lasted).abs() < 1e-3, "{cell:?}");
    // They were parallel: one round trip in total.
    let round_trips = profile.scenarios[0].variants[0].round_trips;
    assert!((round_trips * lasted / 3600e9 - 1.0).abs() < 1e-9, "{round_trips}");
    assert_eq!(reduce::profile(&predict(&[], &[], &[]), None, "", ""), None);
}
