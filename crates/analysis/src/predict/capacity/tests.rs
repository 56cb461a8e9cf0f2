//! What is foretold of loads that are known.

use super::super::queueing::waiting;
use super::*;

const SECOND: i64 = 1_000_000_000;

fn step(number: u64, users: u64, rate: f64) -> Step {
    let start = number as i64 * 100 * SECOND;
    Step {
        step: number,
        users,
        users_here: users,
        rate,
        start,
        end: start + 60 * SECOND,
        completed: (rate * 60.0) as u64,
        ..Step::default()
    }
}

fn busy(number: u64, percent: f64) -> Vec<Counter> {
    let sample = |second: i64, instance: Option<&str>| Counter {
        time: (number as i64 * 100 + second) * SECOND,
        source: "server".into(),
        name: "cpu_percent".into(),
        instance: instance.map(str::to_owned),
        value: percent,
        ..Counter::default()
    };
    (0..60)
        .flat_map(|second| {
            [sample(second, None), sample(second, Some("cpu0")), sample(second, Some("cpu1"))]
        })
        .collect()
}

#[test]
fn one_server_with_random_arrivals_meets_the_closed_form() {
    for utilization in [0.0, 0.1, 0.5, 0.9] {
        let wanted = 1.0 / (1.0 - utilization);
        assert!((1.0 + waiting(1, utilization) - wanted).abs() < 1e-12);
    }
    // M/M/2: 1 / (1 - rho^2).
    assert!((1.0 + waiting(2, 0.8) - 1.0 / (1.0 - 0.64)).abs() < 1e-12);
}

/// Of users, each of whom asks for a scenario in ten seconds, and how busy the CPUs were, in percent.
fn capacity(steps: &[(u64, f64)]) -> Capacity {
    let mut demand = Demand::default();
    for (number, &(users, percent)) in (1..).zip(steps) {
        demand.steps(&[step(number, users, users as f64 / 10.0)]);
        demand.counters(&busy(number, percent));
    }
    demand.finish().unwrap()
}

#[test]
fn half_busy_with_a_hundred_users_is_full_with_two_hundred() {
    let capacity = capacity(&[(100, 50.0)]);
    let limit = capacity.limit().unwrap();
    assert!((limit.users - 200.0).abs() < 1e-9, "{limit:?}");
    assert_eq!((limit.servers, limit.used.idle), (2, None));
    // Half of two CPUs for ten scenarios a second.
    assert!((limit.demand_s - 0.1).abs() < 1e-12);
    // M/M/2 waits rho^2 / (1 - rho^2) of 0.1 s; three quarters busy, 9/7 of a third.
    let wait = of_one(&capacity, 150.0).unwrap();
    assert!((wait.share * wait.mean_s - 0.1 * (9.0 / 7.0 - 1.0 / 3.0)).abs() < 1e-12);
    assert!((wait.share - 9.0 / 14.0).abs() < 1e-12, "{wait:?}");
    let load = &capacity.loads(&capacity, 150.0).unwrap()[0];
    assert_eq!((&*load.name, load.busy), (PROCESSORS, (0.5, 0.75)));
    let tenth_more_s = 0.11 * 0.825_f64.powi(2) / (1.0 - 0.825_f64.powi(2));
    assert!((load.tenth_more_s.unwrap() - tenth_more_s).abs() < 1e-12);
    assert_eq!(capacity.loads(&capacity, 190.0).unwrap()[0].tenth_more_s, None);
    assert_eq!(capacity.loads(&capacity, 200.0), None);
    assert_eq!(of_one(&capacity, 100.0).unwrap().mean_s, 0.0);
}

#[test]
fn two_steps_tell_what_the_machine_does_without_load() {
    let capacity = capacity(&[(50, 30.0), (100, 50.0)]);
    let limit = capacity.limit().unwrap();
    assert!((limit.used.idle.unwrap() - 0.1).abs() < 1e-9);
    // 40 % for a hundred users, of 90 % that are available.
    assert!((limit.users - 225.0).abs() < 1e-6, "{limit:?}");
}

#[test]
fn what_processes_need_is_not_there_without_load() {
    let capacity = |server: f64, client: f64| {
        let mut demand = Demand::default();
        for (number, users, percent) in [(1, 50, 30.0), (2, 100, 50.0)] {
            demand.steps(&[step(number, users, users as f64 / 10.0)]);
            demand.counters(&busy(number, percent));
            for (source, share) in [("server", server), ("client", client)] {
                demand.counters(&[Counter {
                    time: (number as i64 * 100 + 10) * SECOND,
                    source: source.into(),
                    name: "process_cpu_percent".into(),
                    // Two CPUs have twice the per cent of one.
                    value: 2.0 * percent * share,
                    ..Counter::default()
                }]);
            }
        }
        demand.finish().unwrap()
    };
    // Through the steps 10 % are busy without load; a tenth of 30 % belongs to no process.
    let used = capacity(0.6, 0.3).limit().unwrap().used;
    assert!((used.idle.unwrap() - 0.03).abs() < 1e-9, "{used:?}");
    assert!((used.each - 0.047).abs() < 1e-9);
    let used = capacity(0.3, 0.1).limit().unwrap().used;
    assert!((used.idle.unwrap() - 0.1).abs() < 1e-9, "{used:?}");
}

#[test]
fn a_scenario_that_costs_more_among_many_fills_the_server_sooner() {
    // Busy for 0.02 x + 0.001 x².
    let capacity = capacity(&[(50, 12.5), (100, 30.0)]);
    let limit = capacity.limit().unwrap();
    assert_eq!(limit.used.idle, Some(0.0));
    assert!((limit.demand_s - 0.06).abs() < 1e-9 && (limit.used.more - 0.001).abs() < 1e-9);
    let full = 10.0 * (1100_f64.sqrt() - 10.0);
    assert!((limit.users - full).abs() < 1e-6, "{limit:?}");
    assert!(capacity.loads(&capacity, full - 0.01).is_some());
    assert_eq!(capacity.loads(&capacity, full + 0.01), None);
    assert_eq!(of_one(&capacity, 100.0).unwrap().mean_s, 0.0);
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(Demand::default().finish(), Err(NoCapacity::NoSteps));
    let mut demand = Demand::default();
    demand.steps(&[step(1, 100, 10.0)]);
    let mut client = busy(1, 50.0);
    client.iter_mut().for_each(|row| row.source = "client".into());
    demand.counters(&client);
    assert_eq!(demand.finish(), Err(NoCapacity::NoCounters));
    let mut demand = Demand::default();
    demand.steps(&[Step { overloaded: true, ..step(1, 100, 10.0) }]);
    demand.counters(&busy(1, 100.0));
    assert_eq!(demand.finish(), Err(NoCapacity::NoScenarios));
    let mut demand = Demand::default();
    demand.steps(&[step(1, 100, 0.0)]);
    demand.counters(&busy(1, 50.0));
    assert_eq!(demand.finish(), Err(NoCapacity::NotPaced));
    assert!(NoCapacity::NoCounters.sentence().contains("--metrics"));
}

/// What one scenario waits more for the only resource.
fn of_one(capacity: &Capacity, users: f64) -> Option<Wait> {
    let loads = capacity.loads(capacity, users)?;
    assert_eq!(loads.len(), 1);
    Some(loads[0].wait(1.0, 1.0))
}

/// A hundred users that keep two CPUs half busy, with the given number of waiting tasks.
fn waited(server: f64, client: f64) -> Capacity {
    let mut demand = Demand::default();
    demand.steps(&[step(1, 100, 10.0)]);
    let mut rows = busy(1, 50.0);
    for (source, tasks) in [("server", server), ("client", client)] {
        rows.push(Counter {
            time: 110 * SECOND,
            source: source.into(),
            name: "process_waiting_percent".into(),
            instance: Some(source.into()),
            value: 100.0 * tasks,
            ..Counter::default()
        });
    }
    demand.counters(&rows);
    demand.finish().unwrap()
}

#[test]
fn what_was_waited_tells_what_will_be() {
    let rise = |capacity: &Capacity, users| {
        let wait = of_one(capacity, users).unwrap();
        (wait.share * wait.mean_s, wait.share)
    };
    // Ten scenarios a second of 0.1 s: a queue for each CPU has one task waiting on average.
    let (mean_s, share) = rise(&waited(0.7, 0.3), 150.0);
    assert!((mean_s - 0.1 * (3.0 - 1.0)).abs() < 1e-9 && (share - 9.0 / 14.0).abs() < 1e-9);
    // More have another cause.
    assert_eq!(rise(&waited(1.5, 0.5), 150.0), (mean_s, share));
    // Half way to M/M/2.
    let (mean_s, _) = rise(&waited(2.0 / 3.0, 0.0), 150.0);
    assert!((mean_s - 0.05 * (3.0 - 1.0 + 9.0 / 7.0 - 1.0 / 3.0)).abs() < 1e-9);
    // As few as in M/M/2.
    let (mean_s, share) = rise(&waited(1.0 / 3.0, 0.0), 150.0);
    assert!((mean_s - 0.1 * (9.0 / 7.0 - 1.0 / 3.0)).abs() < 1e-9);
    assert!((share - 9.0 / 14.0).abs() < 1e-9);
    assert_eq!(rise(&waited(0.0, 0.0), 150.0), (mean_s, share));
}

#[test]
fn waits_are_drawn_as_they_are_spread() {
    let wait = Wait { share: 0.6, mean_s: 1e-3 };
    let drawn: Vec<_> = (0..100_000).map(|number| wait.draw_ns(number << 20)).collect();
    let waiting = drawn.iter().filter(|ns| **ns > 0).count() as f64 / 1e5;
    let mean_s = drawn.iter().sum::<i64>() as f64 / 1e14;
    assert!((waiting - 0.6).abs() < 0.01, "{waiting}");
    assert!((mean_s / 0.6e-3 - 1.0).abs() < 0.02, "{mean_s}");
    let late = drawn.iter().filter(|ns| **ns > 3_000_000).count() as f64 / 1e5;
    assert!((late / (0.6 * (-3.0_f64).exp()) - 1.0).abs() < 0.05, "{late}");
    assert_eq!(Wait { mean_s: 0.0, ..wait }.draw_ns(7), 0);
}

#[test]
fn more_users_never_make_a_server_faster() {
    for capacity in [capacity(&[(100, 20.0)]), waited(0.8, 0.6), waited(0.4, 0.1)] {
        let limit = capacity.limit().unwrap().users as u32;
        let mut last = vec![i64::MIN; 50];
        for users in 1..limit {
            let wait = of_one(&capacity, f64::from(users)).unwrap();
            for (number, last) in (0..).zip(&mut last) {
                let ns = wait.draw_ns(number << 7);
                assert!(ns >= *last, "{users} users: {ns} after {last}");
                *last = ns;
            }
        }
    }
}

/// One of several machines: its own users, each with one request per second, and the same CPUs as all of them.
fn shard(demand: &mut Demand, number: u64, users_here: u64, percent: f64) {
    let recording = format!("run-{number}");
    // Not to the nanosecond at once.
    let late = number as i64 * 1_000_000;
    let one = step(1, 15, users_here as f64);
    demand.steps(&[Step {
        recording: recording.clone(),
        run: "run".into(),
        users_here,
        start: one.start + late,
        end: one.end + late,
        ..one
    }]);
    let mut rows = busy(1, percent);
    rows.iter_mut().for_each(|row| row.recording.clone_from(&recording));
    demand.counters(&rows);
}

#[test]
fn shards_of_a_step_are_one_step_in_any_order() {
    let whole = {
        let mut demand = Demand::default();
        demand.steps(&[step(1, 15, 15.0)]);
        demand.counters(&busy(1, 30.0));
        demand.finish().unwrap()
    };
    for order in [[(1, 8), (2, 7)], [(2, 7), (1, 8)]] {
        let mut demand = Demand::default();
        order.iter().for_each(|&(number, users)| shard(&mut demand, number, users, 30.0));
        let capacity = demand.finish().unwrap();
        assert_eq!((capacity.users_recorded, capacity.steps), (15.0, 1), "{order:?}");
        assert!((capacity.rate - whole.rate).abs() < 1e-9);
        let (limit, wanted) = (capacity.limit().unwrap(), whole.limit().unwrap());
        assert!((limit.users - wanted.users).abs() < 0.01, "{limit:?} {wanted:?}");
        assert!((limit.demand_s - wanted.demand_s).abs() < 1e-5);
        assert!((limit.users_error - wanted.users_error).abs() < 0.01);
        assert_eq!(capacity.notes, [NOT_ATTRIBUTED.to_owned(), one_load(0.3)]);
        assert!(capacity.loads(&capacity, 30.0).is_some());
    }
}

#[test]
fn the_same_shard_twice_is_one() {
    let mut demand = Demand::default();
    (0..2).for_each(|_| shard(&mut demand, 1, 8, 30.0));
    let capacity = demand.finish().unwrap();
    assert_eq!((capacity.users_recorded, capacity.steps), (15.0, 1));
}

#[test]
fn one_shard_alone_stands_for_the_others_and_says_so() {
    let mut demand = Demand::default();
    shard(&mut demand, 2, 5, 30.0);
    let capacity = demand.finish().unwrap();
    let limit = capacity.limit().unwrap();
    assert!((limit.users - 50.0).abs() < 1e-9, "{limit:?}");
    // 15 scenarios a second take 30 % of two CPUs.
    assert!((limit.demand_s - 0.04).abs() < 1e-9, "{limit:?}");
    assert!((capacity.users_recorded - 15.0).abs() < 1e-9);
    assert!(capacity.notes[0].contains("5 of the 15 users"), "{:?}", capacity.notes);
}

#[test]
fn shards_that_ran_one_after_the_other_are_no_step_together() {
    let mut demand = Demand::default();
    shard(&mut demand, 1, 8, 30.0);
    let later =
        Step { recording: "run-2".into(), run: "run".into(), users_here: 7, ..step(2, 15, 7.0) };
    demand.steps(&[Step { step: 1, ..later }]);
    let capacity = demand.finish().unwrap();
    assert_eq!((capacity.users_recorded, capacity.steps), (15.0, 1));
    assert!(capacity.notes[0].contains("8 of the 15 users"), "{:?}", capacity.notes);
}

#[test]
fn counters_belong_to_the_run_that_read_them() {
    // Two runs at the same time, of different servers.
    let mut demand = Demand::default();
    for (name, users, percent) in [("a", 100, 50.0), ("b", 50, 10.0)] {
        demand.steps(&[Step {
            recording: name.into(),
            run: name.into(),
            ..step(1, users, users as f64 / 10.0)
        }]);
        let mut rows = busy(1, percent);
        rows.iter_mut().for_each(|row| row.recording = name.into());
        demand.counters(&rows);
    }
    assert!((demand.finish().unwrap().limit().unwrap().utilization - 0.5).abs() < 1e-9);
}

#[test]
fn a_server_that_nothing_was_seen_of_has_no_capacity() {
    let mut demand = Demand::default();
    demand.steps(&[step(1, 100, 10.0)]);
    demand.counters(&busy(1, 0.0));
    assert_eq!(demand.finish(), Err(NoCapacity::NeverBusy));
    // The counters are of the overloaded step only.
    let mut demand = Demand::default();
    demand.steps(&[step(1, 100, 10.0), Step { overloaded: true, ..step(2, 200, 20.0) }]);
    demand.counters(&busy(2, 100.0));
    assert_eq!(demand.finish(), Err(NoCapacity::NoCounters));
}

/// Busy CPUs, softirq, in percent; the server's processes and the client's, in percent of one CPU.
fn shared(demand: &mut Demand, number: u64, users: u64, percent: [f64; 4]) {
    let [all, softirq, server, client] = percent;
    demand.steps(&[step(number, users, users as f64)]);
    demand.counters(&busy(number, all));
    for (source, name, value) in [
        ("server", "cpu_softirq_percent", softirq),
        ("server", "process_cpu_percent", server),
        ("client", "process_cpu_percent", client),
    ] {
        let row = |second: i64| Counter {
            time: (number as i64 * 100 + second) * SECOND,
            source: source.into(),
            name: name.into(),
            value,
            ..Counter::default()
        };
        demand.counters(&(0..60).map(row).collect::<Vec<_>>());
    }
}

/// As it was measured: 15 users of the metadata workload on a quiet machine, and next to a shell's endless loop.
#[test]
fn what_else_runs_there_is_no_demand_of_the_users() {
    let of = |percent| {
        let mut demand = Demand::default();
        shared(&mut demand, 1, 15, percent);
        demand.finish().unwrap()
    };
    let quiet = of([1.609, 0.100, 1.100, 1.450]);
    let limit = quiet.limit().unwrap().clone();
    assert!((limit.users - 15.0 / 0.01609).abs() < 1e-6, "{limit:?}");
    assert_eq!((limit.used.idle, &quiet.notes), (None, &vec![one_load(0.01609)]));
    let hogged = of([52.065, 0.100, 0.900, 1.300]);
    let other = hogged.limit().unwrap();
    // Half of the CPUs are left.
    assert!((other.users / limit.users - 0.5).abs() < 0.1, "{other:?}");
    assert!(other.users_error > 0.3 * other.users, "{other:?}");
    assert!((other.used.idle.unwrap() - 0.506).abs() < 0.002, "{other:?}");
    assert!((other.utilization - 0.52065).abs() < 1e-9);
    assert!(hogged.loads(&hogged, 60.0).is_some());
    let [note] = &hogged.notes[..] else { panic!("{:?}", hogged.notes) };
    assert!(note.contains("took 50.6 %") && note.contains("Most of the CPU time"), "{note}");
}

#[test]
fn what_the_kernel_does_for_the_processes_is_their_demand() {
    let mut demand = Demand::default();
    shared(&mut demand, 1, 60, [24.0, 1.5, 22.0, 20.0]);
    let capacity = demand.finish().unwrap();
    // All of it, as on a machine that does nothing else.
    assert!((capacity.limit().unwrap().users - 250.0).abs() < 1e-6);
    assert_eq!(capacity.notes, [one_load(0.24)]);
}

/// As it was measured: a search found 360 users.
#[test]
fn one_light_load_does_not_claim_to_know_the_capacity() {
    let mut demand = Demand::default();
    shared(&mut demand, 1, 60, [19.2, 1.0, 17.0, 16.0]);
    let alone = demand.finish().unwrap();
    let limit = alone.limit().unwrap();
    assert!((limit.users - 312.5).abs() < 1e-6);
    assert!((37.0..50.0).contains(&limit.users_error), "{limit:?}");
    let mut demand = Demand::default();
    shared(&mut demand, 1, 60, [19.2, 1.0, 17.0, 16.0]);
    shared(&mut demand, 2, 120, [34.0, 2.0, 31.0, 29.0]);
    let both = demand.finish().unwrap();
    assert!(both.limit().unwrap().users_error < 30.0, "{both:?}");
    assert_eq!(both.notes, Vec::<String>::new());
    // No task sleeps much here.
    let mut demand = Demand::default();
    shared(&mut demand, 1, 180, [60.0, 4.0, 54.0, 50.0]);
    assert_eq!(demand.finish().unwrap().notes, Vec::<String>::new());
}

#[test]
fn where_processes_are_not_known_all_is_counted_and_that_is_said() {
    // Another program than smbd serves; and a server that is looked at from afar.
    let mut other = Demand::default();
    shared(&mut other, 1, 50, [50.0, 0.0, 0.0, 20.0]);
    let mut afar = Demand::default();
    afar.steps(&[step(1, 50, 50.0)]);
    afar.counters(&busy(1, 50.0));
    for demand in [other, afar] {
        let capacity = demand.finish().unwrap();
        assert!((capacity.limit().unwrap().users - 100.0).abs() < 1e-9);
        assert_eq!(capacity.notes, [NOT_ATTRIBUTED]);
    }
}

#[test]
fn what_ran_in_one_of_two_steps_is_not_the_users() {
    let of = |more: [f64; 2]| {
        let mut demand = Demand::default();
        shared(&mut demand, 1, 100, [10.0 + more[0], 0.5, 10.0, 8.0]);
        shared(&mut demand, 2, 200, [20.0 + more[1], 1.0, 20.0, 16.0]);
        demand.finish().unwrap().limit().unwrap().users
    };
    let alone = of([0.0, 0.0]);
    assert!((alone - 1000.0).abs() < 1e-6, "{alone}");
    let before = of([40.0, 0.0]);
    assert!((before / alone - 1.0).abs() < 0.1, "{before}");
    // Takes two fifths of the CPUs.
    for more in [[0.0, 40.0], [40.0, 40.0], [20.0, 40.0]] {
        let users = of(more);
        assert!((users / alone - 0.6).abs() < 0.06, "{more:?}: {users}");
    }
}

#[test]
fn what_a_scenario_needs_more_is_room_for_fewer_users() {
    // A hundred users ask ten times a second and keep two CPUs busy by half.
    let today = capacity(&[(100, 50.0)]);
    let [limit] = &today.resources[..] else { panic!("{today:?}") };
    assert!((limit.demand_s - 0.1).abs() < 1e-9 && (limit.users - 200.0).abs() < 1e-6);
    let with = |left, more_s| today.with_demand(DemandChange { left, more_s: (more_s, 5.0) });
    assert_eq!(with(1.0, 0.0), Capacity { resources: with(1.0, 0.0).resources, ..today.clone() });
    for (left, more_s, demand_s) in
        [(1.0, 0.0, 0.1), (1.0, 0.06, 0.16), (0.5, 0.0, 0.05), (1.0, -0.05, 0.05)]
    {
        let then = with(left, more_s);
        let limit = then.limit().unwrap();
        assert!((limit.demand_s - demand_s).abs() < 1e-9, "{limit:?}");
        assert!((limit.users * demand_s - 200.0 * 0.1).abs() < 1e-6, "{limit:?}");
        assert!((limit.utilization - 5.0 * demand_s).abs() < 1e-9, "{limit:?}");
        // A tenth of the added demand is uncertain, and as much of today's demand as before.
        let today_s = left * 0.1 * today.resources[0].users_error / 200.0;
        let error_s = limit.users_error / limit.users * demand_s;
        assert!(
            (today_s..today_s + 0.12 * more_s.abs() + 1e-9).contains(&(error_s + 1e-12)),
            "{limit:?}"
        );
    }
    // More than there is cannot be taken away, and all the time there is can be asked for.
    assert!(with(1.0, -1.0).limit().unwrap().users.is_finite());
    let full = with(1.0, 0.2);
    assert!((full.limit().unwrap().utilization - 1.0).abs() < 1e-9);
    assert_eq!(today.loads(&full, 100.0), None);
    // Users wait for what all of them need.
    let load = &today.loads(&with(1.0, 0.05), 100.0).unwrap()[0];
    assert!((load.busy.0 - 0.5).abs() < 1e-9 && (load.busy.1 - 0.75).abs() < 1e-9, "{load:?}");
    assert_eq!(load.wait_s.0, today.loads(&today, 100.0).unwrap()[0].wait_s.0);
    let waiting = |demand_s: f64, busy: f64| demand_s * busy * busy / (1.0 - busy * busy);
    assert!((load.wait_s.1 - waiting(0.15, 0.75)).abs() < 1e-9, "{load:?}");
    // What was waited for slower CPUs is in the slices that they shorten.
    let faster = &today.loads(&with(0.5, 0.0), 100.0).unwrap()[0];
    let wait = faster.wait(1.0, 0.5);
    let more_s = waiting(0.05, 0.25) - 0.5 * waiting(0.1, 0.5);
    assert!((wait.share * wait.mean_s - more_s).abs() < 1e-9, "{wait:?}");
}

#[test]
fn a_client_on_the_servers_machine_needs_its_processors_too() {
    let with = |is_beside: bool| {
        let mut demand = Demand::default();
        shared(&mut demand, 1, 60, [24.0, 1.5, 22.0, 20.0]);
        let mut capacity = demand.finish().unwrap();
        assert!(capacity.clients_beside);
        capacity.clients_beside = is_beside;
        let more = DemandChange { left: 1.0, more_s: (0.001, 0.003) };
        capacity.with_demand(more).limit().unwrap().demand_s - capacity.limit().unwrap().demand_s
    };
    assert!((with(false) - 0.001).abs() < 1e-9 && (with(true) - 0.004).abs() < 1e-9);
}
