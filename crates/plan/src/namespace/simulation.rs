//! Clients that use a namespace while its servers are replaced, to test the waiting times of plans and the gates.
//!
//! Time passes in steps. A client asks one of several domain controllers, each of which learns a change at its own
//! time, keeps the list for the TTL of its waking time, keeps it longer while files are open, and fails if no server
//! of its list serves. Old clients renew the TTL on use. Everything follows from a seed.

use super::gate::{Evidence, judge};
use super::model::{CachedReferral, CachedTarget, ClientCache, Kind, Namespace, Target};
use super::stages::{LOWERED_TO_S, Move, MovePlan, StageId, plan};
use super::waits::Assumptions;

const STEP_S: i64 = 60;
/// The first day, in which caches fill.
const BEGIN_S: i64 = 2 * 86_400;
/// What is simulated after the removal.
const AFTER_S: i64 = 4 * 3_600;

/// Splitmix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `most`.
    fn up_to(&mut self, most: i64) -> i64 {
        (self.next() % (most.max(0) as u64 + 1)) as i64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// Which servers a list has, by the stage of the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Old,
    Both,
    New,
}

/// When the list changes, and when the old servers stop.
#[derive(Clone, Copy)]
struct Schedule {
    add_s: i64,
    disable_s: i64,
    remove_s: i64,
    /// TTL of lists before and after the first change.
    old_ttl_s: i64,
    ttl_s: i64,
    known_s: i64,
}

impl Schedule {
    /// The waits of a plan, made shorter by a factor of thousandths.
    fn from_plan(plan: &MovePlan, thousandths: i64) -> Schedule {
        let wait = |id| plan.stage(id).unwrap().wait.as_ref().unwrap();
        let scaled = |id| wait(id).total_s as i64 * thousandths / 1_000;
        let add_s = BEGIN_S;
        let disable_s = add_s + scaled(StageId::WaitNew);
        Schedule {
            add_s,
            disable_s,
            remove_s: disable_s + scaled(StageId::WaitOld),
            old_ttl_s: i64::from(wait(StageId::WaitNew).ttl_s),
            ttl_s: i64::from(wait(StageId::WaitNew).ttl_s),
            known_s: wait(StageId::WaitNew).known_s as i64,
        }
    }

    /// The wait in which a TTL is lowered: the change is that of the TTL, and no server leaves.
    fn of_ttl(plan: &MovePlan) -> Schedule {
        let wait = plan.stage(StageId::LowerTtl).unwrap().wait.as_ref().unwrap();
        let end_s = BEGIN_S + wait.total_s as i64;
        Schedule {
            add_s: BEGIN_S,
            disable_s: end_s + AFTER_S,
            remove_s: end_s + AFTER_S,
            old_ttl_s: i64::from(wait.ttl_s),
            ttl_s: i64::from(LOWERED_TO_S),
            known_s: wait.known_s as i64,
        }
    }

    fn ttl_of(&self, list: List) -> i64 {
        if list == List::Old { self.old_ttl_s } else { self.ttl_s }
    }

    /// What a domain controller with this delay answers.
    fn answer(&self, at: i64, delay: i64) -> List {
        match at {
            _ if at >= self.disable_s + delay => List::New,
            _ if at >= self.add_s + delay => List::Both,
            _ => List::Old,
        }
    }
}

/// How a client behaves.
struct Client {
    /// Periods in which files are open, or an old client uses the namespace without a pause.
    busy: Vec<(i64, i64)>,
    /// Periods of sleep.
    asleep: Vec<(i64, i64)>,
    /// Seconds between accesses outside these.
    every_s: i64,
    is_renewing: bool,
    random: Random,
}

/// What happened to a client.
struct Course {
    /// The list after each step; none if it holds none.
    lists: Vec<Option<List>>,
    /// Seconds for which the list is still valid.
    remaining: Vec<i64>,
    open: Vec<bool>,
    asleep: Vec<bool>,
    /// Accesses that no server of the list answered.
    failures: u64,
}

impl Course {
    fn at(&self, at_s: i64) -> usize {
        (at_s / STEP_S) as usize
    }
}

fn within(periods: &[(i64, i64)], at: i64) -> bool {
    periods.iter().any(|(begin, end)| (*begin..*end).contains(&at))
}

/// A client of the assumptions.
fn client(seed: u64, assumed: &Assumptions, ttl_s: i64, end_s: i64) -> Client {
    let mut random = Random(seed);
    let is_renewing = assumed.has_renewing_clients && random.chance(30);
    let open_s = i64::from(assumed.open_s);
    let mut busy = Vec::new();
    let mut at = random.up_to(ttl_s);
    while at < end_s && open_s > 0 {
        // Most are short; some last as long as is assumed.
        let length = if random.chance(25) { open_s } else { random.up_to(open_s / 4) };
        // An old client's list ends with a pause of the TTL; another one's, as soon as no file is open.
        let pause = if is_renewing { ttl_s + STEP_S } else { STEP_S };
        let from = at - at % STEP_S;
        busy.push((from, from + (length - length % STEP_S)));
        at = from + length + pause + random.up_to(4 * 3_600);
    }
    let mut asleep = Vec::new();
    let mut left = i64::from(assumed.asleep_s);
    while left > STEP_S && random.chance(50) {
        let length = STEP_S + random.up_to(left - STEP_S);
        let begin = BEGIN_S + random.up_to(end_s - BEGIN_S);
        asleep.push((begin, begin + length));
        left -= length;
    }
    let every_s = if is_renewing { i64::MAX } else { STEP_S * (1 + random.up_to(10)) };
    Client { busy, asleep, every_s, is_renewing, random }
}

fn run(mut client: Client, schedule: &Schedule, end_s: i64) -> Course {
    let mut course = Course {
        lists: Vec::new(),
        remaining: Vec::new(),
        open: Vec::new(),
        asleep: Vec::new(),
        failures: 0,
    };
    let mut held: Option<(List, i64)> = None;
    for at in (0..end_s).step_by(STEP_S as usize) {
        let is_asleep = within(&client.asleep, at);
        let is_busy = within(&client.busy, at);
        if !is_asleep {
            held = held.map(|(list, remaining)| (list, remaining - STEP_S));
            let is_open = is_busy && !client.is_renewing;
            held = held.filter(|(_, remaining)| *remaining > 0 || is_open);
            let is_access = is_busy || (client.every_s < i64::MAX && at % client.every_s < STEP_S);
            if is_access {
                let fetched = || {
                    let delay = client.random.up_to(schedule.known_s);
                    let list = schedule.answer(at, delay);
                    (list, schedule.ttl_of(list))
                };
                let (list, mut remaining) = held.unwrap_or_else(fetched);
                if client.is_renewing {
                    remaining = schedule.ttl_of(list);
                }
                let is_served = match list {
                    List::Old => at < schedule.remove_s,
                    // The next server of the list answers.
                    List::Both | List::New => at >= schedule.add_s,
                };
                course.failures += u64::from(!is_served);
                held = Some((list, remaining));
            }
        }
        course.lists.push(held.map(|(list, _)| list));
        course.remaining.push(held.map_or(0, |(_, remaining)| remaining.max(0)));
        course.open.push(is_busy && !client.is_renewing);
        course.asleep.push(is_asleep);
    }
    course
}

fn planned(ttl_s: u32, assumed: Assumptions, clients: usize) -> MovePlan {
    let target = |server: &str| Target {
        server: server.to_owned(),
        share: "Public".to_owned(),
        ..Target::default()
    };
    let namespace = Namespace {
        host: "contoso.com".to_owned(),
        name: "Public".to_owned(),
        kind: Some(Kind::DomainV1),
        ttl_s: Some(ttl_s),
        targets: vec![target("OLD1")],
        ..Namespace::default()
    };
    let clients = (0..clients).map(|number| format!("PC{number}")).collect();
    let wanted = Move { new_servers: vec!["NEW1".to_owned()], assumed, clients, ..Move::default() };
    plan(&namespace, &wanted).unwrap()
}

/// One run: the courses of all clients.
fn courses(plan: &MovePlan, schedule: &Schedule, seed: u64) -> Vec<Course> {
    let end_s = schedule.remove_s + AFTER_S;
    let clients = (0..plan.clients.len() as u64).map(|number| {
        let of_client = client(
            seed.wrapping_mul(1_000).wrapping_add(number),
            &plan.assumed,
            schedule.old_ttl_s,
            end_s,
        );
        run(of_client, schedule, end_s)
    });
    clients.collect()
}

/// The last time at which a client's list is one of these, and the client is awake.
fn last(courses: &[Course], is_bad: impl Fn(List) -> bool) -> i64 {
    let of_one = |course: &Course| {
        let bad = |list: &Option<List>| list.is_some_and(&is_bad);
        course.lists.iter().rposition(bad).map_or(0, |place| (place as i64 + 1) * STEP_S)
    };
    courses.iter().map(of_one).max().unwrap_or(0)
}

/// The caches at a time, of clients that are awake.
fn caches(courses: &[Course], at_s: i64) -> Vec<ClientCache> {
    let of_one = |(number, course): (usize, &Course)| {
        let place = course.at(at_s);
        if course.asleep[place] {
            return None;
        }
        let target =
            |server: &str| CachedTarget { server: server.to_owned(), ..CachedTarget::default() };
        let servers: &[&str] = match course.lists[place] {
            None => &[],
            Some(List::Old) => &["OLD1"],
            Some(List::Both) => &["NEW1.contoso.com", "OLD1"],
            Some(List::New) => &["NEW1.contoso.com"],
        };
        let referral = CachedReferral {
            entry: "contoso.com\\Public".to_owned(),
            expires_s: Some(course.remaining[place] as u64),
            use_count: Some(1),
            targets: servers.iter().map(|server| target(server)).collect(),
            ..CachedReferral::default()
        };
        Some(ClientCache {
            client: format!("PC{number}"),
            read_at_s: Some(at_s),
            referrals: if servers.is_empty() { Vec::new() } else { vec![referral] },
            open_files: if course.open[place] { vec!["a.docx".to_owned()] } else { Vec::new() },
            ..ClientCache::default()
        })
    };
    courses.iter().enumerate().filter_map(of_one).collect()
}

/// Kinds of populations: TTL, poll, replication, open files, old clients, sleep.
fn populations() -> Vec<(u32, Assumptions)> {
    let usual = Assumptions::default();
    vec![
        (300, usual.clone()),
        (1_800, Assumptions { open_s: 0, ..usual.clone() }),
        (3_600, Assumptions { sync_s: 900, replication_s: 300, ..usual.clone() }),
        (300, Assumptions { has_renewing_clients: true, ..usual.clone() }),
        (3_600, Assumptions { has_renewing_clients: true, open_s: 36_000, ..usual.clone() }),
        (900, Assumptions { asleep_s: 28_800, open_s: 14_400, ..usual }),
    ]
}

/// In every run no access fails, no list is wrong after its wait, and no wait is a day too long.
#[test]
fn waiting_times_suffice_and_are_not_a_day_too_long() {
    let mut shortest_margin = i64::MAX;
    for (ttl_s, assumed) in populations() {
        let plan = planned(ttl_s, assumed, 25);
        let schedule = Schedule::from_plan(&plan, 1_000);
        for seed in 0..24 {
            let courses = courses(&plan, &schedule, seed);
            let what = format!("TTL {ttl_s}, {:?}, seed {seed}", plan.assumed);
            let failures: u64 = courses.iter().map(|course| course.failures).sum();
            assert_eq!(failures, 0, "{what}");
            let lacks_new = last(&courses, |list| list == List::Old);
            let holds_old = last(&courses, |list| list != List::New);
            assert!(lacks_new <= schedule.disable_s, "{what}: {lacks_new}");
            assert!(holds_old <= schedule.remove_s, "{what}: {holds_old}");
            let margins = [schedule.disable_s - lacks_new, schedule.remove_s - holds_old];
            assert!(margins.iter().all(|margin| *margin <= 86_400), "{what}: {margins:?}");
            shortest_margin = shortest_margin.min(margins[0]).min(margins[1]);
        }
    }
    // The bound is reached: it cannot be much shorter.
    assert!(shortest_margin <= 4 * 3_600, "{shortest_margin}");
}

/// A TTL of a day: one long wait lowers it, and is not a day too long either.
#[test]
fn the_wait_for_a_lower_ttl_suffices() {
    for (ttl_s, has_renewing_clients) in [(86_400, false), (43_200, false), (14_400, true)] {
        let assumed = Assumptions { has_renewing_clients, ..Assumptions::default() };
        let plan = planned(ttl_s, assumed, 40);
        let schedule = Schedule::of_ttl(&plan);
        let end_s = schedule.disable_s - AFTER_S;
        for seed in 200..212 {
            let long = last(&courses(&plan, &schedule, seed), |list| list == List::Old);
            assert!(
                long <= end_s && end_s - long <= 86_400,
                "TTL {ttl_s}, seed {seed}: {long} of {end_s}"
            );
        }
    }
}

/// The simulation sees waits that are too short.
#[test]
fn shorter_waits_fail() {
    let plan = planned(300, Assumptions::default(), 25);
    let schedule = Schedule::from_plan(&plan, 100);
    let failed = (0..8)
        .filter(|seed| courses(&plan, &schedule, *seed).iter().any(|course| course.failures > 0));
    assert!(failed.count() >= 4);
}

/// Whenever the gate says go, no client gets or holds a wrong list from then on.
#[test]
fn a_go_of_the_gate_is_final() {
    let (mut gone, mut stopped) = (0, 0);
    for (ttl_s, assumed) in populations() {
        // The renewed TTL of old clients is not in their caches as open files are: they are in the test of waits.
        if assumed.has_renewing_clients {
            continue;
        }
        let plan = planned(ttl_s, assumed, 25);
        let schedule = Schedule::from_plan(&plan, 1_000);
        for seed in 100..112 {
            let courses = courses(&plan, &schedule, seed);
            let mut random = Random(seed);
            for (stage, changed, until) in [
                (StageId::WaitNew, schedule.add_s, schedule.disable_s),
                (StageId::WaitOld, schedule.disable_s, schedule.remove_s),
            ] {
                let wrong = match stage {
                    StageId::WaitNew => last(&courses, |list| list == List::Old),
                    _ => last(&courses, |list| list != List::New),
                };
                let mut times: Vec<_> =
                    (0..6).map(|_| changed + random.up_to(until - changed - STEP_S)).collect();
                times.push(until);
                for now_s in times {
                    let now_s = now_s - now_s % STEP_S;
                    let caches = caches(&courses, now_s);
                    let evidence = Evidence {
                        caches: &caches,
                        changed_at_s: Some(changed),
                        now_s,
                        ..Evidence::default()
                    };
                    let verdict = judge(stage, &plan, &evidence);
                    if verdict.is_go {
                        gone += 1;
                        assert!(wrong <= now_s, "{stage:?} at {now_s} in seed {seed}: {wrong}");
                    } else {
                        stopped += 1;
                        // Sleeping clients are named.
                        let asleep = courses.iter().filter(|one| one.asleep[one.at(now_s)]).count();
                        assert_eq!(verdict.missing.len(), asleep);
                    }
                }
            }
        }
    }
    assert!(gone > 50 && stopped > 50, "{gone} go, {stopped} no-go");
}
