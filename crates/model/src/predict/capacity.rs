//! How many users a server carries, foretold from a run with fewer.
//!
//! Users are paced: each asks for a scenario so and so often, however long one takes. So the load is
//! open, and the utilisation law holds (Denning and Buzen 1978): a resource is busy for throughput
//! times demand, and the demand of one scenario on it is its busy time divided by completions. A
//! slice of an operation is no demand: it is time spent there, waiting included. Users cannot keep
//! their schedule any more when the busiest resource has no time left; that number of users is the
//! capacity. Where steps with other throughputs were recorded, a straight line through them tells
//! what the resource does without any load, which is no more than the processes that serve and ask do not need of
//! the processors; or, where it would be busy for less than nothing then, that a scenario costs
//! more when there are more of them (caches cool down in between), which is taken to grow with the throughput.
//!
//! Response times grow by what requests wait longer for the processors, and for the busiest resource where that is
//! another. Who waits does so while others are served: what it waits is a multiple of what the mean request
//! needs, not of what it needs itself. The multiple lies between M/M/c (one queue, and nobody waits while
//! a processor is free) and M/M/1 (each processor has a queue of its own, as Linux has); how long tasks waited for
//! processors when it was recorded says where. Without that it is M/M/c, the least. So many requests wait as find all
//! servers busy (Erlang 1917), the others less than is told, and waits are exponential. It fails where one thread is the
//! limit before the processors are, where locks are waited for, where a request costs more or less among many, and above
//! the capacity, where queues grow for as long as the run lasts.

use std::collections::BTreeMap;

use smbscope_event::run::{Counter, Step};

use super::Z_95;

/// The resource that operations share with all else.
const PROCESSORS: &str = "processors";
/// What is waited longer is nonsense that a damaged file holds; sums of this do not overflow.
const WAIT_MAX_NS: i64 = 1_000_000_000_000_000;
/// Resources and steps that are kept.
const KEPT_MAX: usize = 4096;

/// Steps and counters of load runs, as they come.
#[derive(Debug, Default)]
pub struct Demand {
    steps: Vec<Window>,
    processors: BTreeMap<String, u64>,
}

/// The measured window of a step.
#[derive(Clone, Debug)]
struct Window {
    start: i64,
    end: i64,
    users: f64,
    rate: f64,
    completed: f64,
    is_overloaded: bool,
    /// Tasks that waited for a processor, in percent of one: samples and their sum, of the machine, of the server's
    /// processes, of the client's.
    waiting: [(f64, f64); 3],
    /// Processor time of the server's processes and of the client's, likewise.
    used: [(f64, f64); 2],
    /// Busy share of a resource, by its name: samples, their sum, the sum of their squares.
    busy: BTreeMap<String, (f64, f64, f64)>,
}

/// A resource of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Processors, or a disk's name.
    pub name: String,
    /// How many there are of it.
    pub servers: u64,
    /// Share of it that was busy in the step of the highest load, 0 to 1.
    pub utilization: f64,
    /// Busy time of one scenario in that step, s, less what is busy without load.
    pub demand_s: f64,
    /// How long it was waited for, of one scenario in that step, s; none where that is not known.
    pub wait_s: Option<f64>,
    /// How busy it is by throughput.
    pub used: Use,
    /// Users that leave it no time.
    pub users: f64,
    /// Half of the 95 % interval of that, which the scatter of the samples allows.
    pub users_error: f64,
}

/// How busy a resource is by throughput x in scenarios a second: idle + each x + more x², as a share of all there is
/// of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// Without load; none where one throughput was recorded only.
    pub idle: Option<f64>,
    /// For each scenario a second, s.
    pub each: f64,
    /// What that grows by with each scenario a second more, s².
    pub more: f64,
}

/// What a server carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Users of the step of the highest load that was not overloaded.
    pub users_recorded: f64,
    /// When that was, ns since 1970.
    pub window: (i64, i64),
    /// Scenarios that a user asks for in a second.
    pub rate: f64,
    /// The resource that ends first comes first.
    pub resources: Vec<Resource>,
    /// Steps that were used.
    pub steps: u64,
}

/// Why there is no capacity: what to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCapacity {
    /// No load run.
    NoSteps,
    /// A load run without the server's counters.
    NoCounters,
    /// A load run whose users follow no schedule.
    NotPaced,
    /// A load run without a finished scenario in a step that was not overloaded.
    NoScenarios,
}

impl NoCapacity {
    /// A sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            NoCapacity::NoSteps => {
                "the capacity follows from a load run (smbscope load --out) only: of other recordings it \
                 is not known how often users ask for something"
            }
            NoCapacity::NoCounters => {
                "the capacity cannot be told: the run has no counters of the server, so that the time for \
                 which its processors and disks are busy is not known; run with --metrics URL \
                 (node_exporter on the server), or on the server itself"
            }
            NoCapacity::NotPaced => {
                "the capacity cannot be told: users of this run follow no schedule (--closed), so that it is \
                 not known how often one asks for something"
            }
            NoCapacity::NoScenarios => {
                "the capacity cannot be told: no scenario ended in a step that was not overloaded"
            }
        }
    }
}

impl Demand {
    /// Adds steps, before their counters.
    pub fn steps(&mut self, rows: &[Step]) {
        for row in rows.iter().take(KEPT_MAX.saturating_sub(self.steps.len())) {
            self.steps.push(Window {
                start: row.start,
                end: row.end,
                users: row.users_here as f64,
                rate: row.rate,
                completed: row.completed as f64,
                is_overloaded: row.overloaded,
                waiting: [(0.0, 0.0); 3],
                used: [(0.0, 0.0); 2],
                busy: BTreeMap::new(),
            });
        }
    }

    /// Adds samples.
    pub fn counters(&mut self, rows: &[Counter]) {
        for row in rows {
            let is_client = row.source == "client";
            let window = measured_then(&mut self.steps, row.time).filter(|_| row.value.is_finite());
            let sum = window.and_then(|window| match &*row.name {
                "cpu_waiting_percent" if !is_client => Some(&mut window.waiting[0]),
                "process_waiting_percent" => Some(&mut window.waiting[1 + usize::from(is_client)]),
                "process_cpu_percent" => Some(&mut window.used[usize::from(is_client)]),
                _ => None,
            });
            if let Some(sum) = sum {
                *sum = (sum.0 + 1.0, sum.1 + row.value);
            }
            if is_client {
                continue;
            }
            let (name, busy) = match (&*row.name, &row.instance) {
                ("cpu_percent", None) => (PROCESSORS.to_owned(), row.value / 100.0),
                ("cpu_percent", Some(cpu)) => {
                    if self.processors.len() < KEPT_MAX {
                        *self.processors.entry(cpu.clone()).or_default() += 1;
                    }
                    continue;
                }
                ("disk_busy_percent", Some(disk)) => (format!("disk {disk}"), row.value / 100.0),
                _ => continue,
            };
            let window = measured_then(&mut self.steps, row.time);
            let Some(window) = window.filter(|one| busy.is_finite() && one.busy.len() < KEPT_MAX)
            else {
                continue;
            };
            let sums = window.busy.entry(name).or_default();
            *sums = (sums.0 + 1.0, sums.1 + busy, sums.2 + busy * busy);
        }
    }

    /// The capacity, or what is missing.
    pub fn finish(self) -> Result<Capacity, NoCapacity> {
        if self.steps.is_empty() {
            return Err(NoCapacity::NoSteps);
        }
        if self.steps.iter().all(|step| step.busy.is_empty()) {
            return Err(NoCapacity::NoCounters);
        }
        if self.steps.iter().all(|step| step.rate <= 0.0) {
            return Err(NoCapacity::NotPaced);
        }
        let good: Vec<_> = self
            .steps
            .iter()
            .filter(|step| !step.is_overloaded && step.completed > 0.0 && step.users > 0.0)
            .filter(|step| step.rate > 0.0 && step.end > step.start)
            .collect();
        let top = good.iter().max_by(|one, other| one.users.total_cmp(&other.users));
        let Some(top) = top else { return Err(NoCapacity::NoScenarios) };
        let rate = top.rate / top.users;
        let mut resources: Vec<_> = top
            .busy
            .keys()
            .filter_map(|name| {
                let (servers, waiting) = match name == PROCESSORS {
                    true => (self.processors.len().max(1) as u64, top.waiting()),
                    false => (1, None),
                };
                // What the processes that serve and ask do is not there without load.
                let beside = good.iter().filter_map(|step| step.beside(name, servers));
                let idle_most = beside.fold(1.0, f64::min).max(0.0);
                let resource = resource(name, servers, &good, top, rate, idle_most)?;
                Some(Resource { wait_s: waiting.map(|tasks| tasks / top.throughput()), ..resource })
            })
            .collect();
        resources.sort_by(|one, other| one.users.total_cmp(&other.users));
        let (users_recorded, window) = (top.users, (top.start, top.end));
        Ok(Capacity { users_recorded, window, rate, resources, steps: good.len() as u64 })
    }
}

/// The mean of percents of one processor, in processors.
fn of_one((n, sum): (f64, f64)) -> Option<f64> {
    (n > 0.0).then(|| sum / n / 100.0)
}

/// Of the server's processes and the client's, on the server's machine: they are looked at only where that is the
/// client's too.
fn here(server: Option<f64>, client: Option<f64>) -> Option<f64> {
    Some(server? + client.unwrap_or(0.0))
}

/// The step that was measured then.
fn measured_then(steps: &mut [Window], time: i64) -> Option<&mut Window> {
    steps.iter_mut().find(|one| (one.start..one.end).contains(&time))
}

impl Window {
    /// Tasks that waited for a processor of the server, on average.
    fn waiting(&self) -> Option<f64> {
        let [machine, server, client] = self.waiting.map(of_one);
        machine.or_else(|| here(server, client))
    }

    /// Busy share of the processors beside the processes of server and client.
    fn beside(&self, name: &str, servers: u64) -> Option<f64> {
        let (n, sum, _) = self.busy.get(name).filter(|_| name == PROCESSORS)?;
        let [server, client] = self.used.map(of_one);
        Some(sum / n - here(server, client)? / servers as f64)
    }

    fn throughput(&self) -> f64 {
        self.completed / ((self.end - self.start) as f64 / 1e9)
    }
}

fn resource(
    name: &str,
    servers: u64,
    good: &[&Window],
    top: &Window,
    rate: f64,
    idle_most: f64,
) -> Option<Resource> {
    // Of each step how wrong it may be that it was so busy.
    let (mut points, mut errors, mut place) = (Vec::new(), Vec::new(), 0);
    for step in good {
        let Some((n, sum, squares)) = step.busy.get(name).copied() else { continue };
        if std::ptr::eq(*step, top) {
            place = points.len();
        }
        let busy = sum / n;
        let variance = (squares / n - busy * busy).max(0.0);
        points.push((step.throughput(), busy));
        errors.push(if n > 1.0 { Z_95 * (variance / (n - 1.0)).sqrt() } else { busy });
    }
    // Nothing to tell from: it is never the limit.
    let used = Use::of(&points, place, idle_most)?;
    let users = used.full() / rate;
    // The number of scenarios in the window scatters too.
    let mut squares = (Z_95 / top.completed.sqrt() * users).powi(2);
    for (step, error) in errors.into_iter().enumerate() {
        let mut points = points.clone();
        points[step].1 += error;
        let other = Use::of(&points, place, idle_most).map_or(users, |used| used.full() / rate);
        squares += (other - users).powi(2);
    }
    let (throughput, utilization) = points[place];
    Some(Resource {
        name: name.to_owned(),
        servers,
        utilization,
        demand_s: used.demand_s(throughput, servers),
        wait_s: None,
        used,
        users,
        users_error: squares.sqrt(),
    })
}

impl Use {
    /// Through one of the steps, with so much without load at most; none where it is no busier than without load.
    fn of(points: &[(f64, f64)], through: usize, idle_most: f64) -> Option<Use> {
        let (throughput, busy) = *points.get(through)?;
        let idle = idle(points);
        // For less than nothing: it has nothing to do without load, and more for each when there are many.
        let more = match idle {
            Some(idle) if idle < 0.0 => {
                let each = |&(x, busy): &(f64, f64)| (x, busy / x);
                slope(&points.iter().map(each).collect::<Vec<_>>()).1
            }
            _ => 0.0,
        };
        let idle = idle.map(|idle| idle.clamp(0.0, idle_most));
        let of_one = (busy - idle.unwrap_or(0.0)) / throughput;
        let more = more.clamp(0.0, (of_one / throughput).max(0.0));
        (of_one > 0.0).then_some(Use { idle, each: of_one - more * throughput, more })
    }

    fn at(&self, throughput: f64) -> f64 {
        self.idle.unwrap_or(0.0) + (self.each + self.more * throughput) * throughput
    }

    /// Busy time of one scenario among so many, of all servers.
    fn demand_s(&self, throughput: f64, servers: u64) -> f64 {
        (self.each + self.more * throughput) * servers as f64
    }

    /// The throughput that leaves it no time.
    fn full(&self) -> f64 {
        let free = 1.0 - self.idle.unwrap_or(0.0);
        // The root of the square, in the form that also holds without one.
        2.0 * free / (self.each + (self.each.powi(2) + 4.0 * self.more * free).sqrt())
    }
}

/// A straight line: its mean point and its slope.
fn slope(points: &[(f64, f64)]) -> ((f64, f64), f64) {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let xx: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let xy: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    ((x, y), xy / xx)
}

/// Where a straight line through throughput and utilisation meets no load, also below 0; none where
/// throughputs are less than a quarter apart.
fn idle(points: &[(f64, f64)]) -> Option<f64> {
    let least = points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    if points.len() < 2 || least > 0.75 * most {
        return None;
    }
    let ((x, y), slope) = slope(points);
    Some(y - slope * x)
}

impl Capacity {
    /// The resource that ends first.
    pub fn limit(&self) -> Option<&Resource> {
        self.resources.first()
    }

    /// The resource that ends first, and the processors, with so many users; none at or above the capacity.
    pub fn loads(&self, users: f64) -> Option<Vec<Load>> {
        let first = self.resources.first()?;
        let processors = self.resources.iter().find(|one| one.name == PROCESSORS);
        let processors = processors.filter(|one| one.name != first.name);
        [first].into_iter().chain(processors).map(|one| self.load(one, users)).collect()
    }

    fn load(&self, resource: &Resource, users: f64) -> Option<Load> {
        let throughput = (self.users_recorded * self.rate, users * self.rate);
        let at = |throughput| resource.used.at(throughput);
        let busy = (at(throughput.0), at(throughput.1));
        if [busy.0, busy.1].iter().any(|busy| !(0.0..1.0).contains(busy)) {
            return None;
        }
        let queue = Queue::of(resource, busy.0);
        let wait_s = |throughput, factor: f64| {
            let demand_s = factor * resource.used.demand_s(throughput, resource.servers);
            let busy = factor * at(throughput);
            (busy < 1.0).then(|| demand_s * queue.waiting(busy))
        };
        Some(Load {
            name: resource.name.clone(),
            busy,
            share: erlang_c(resource.servers, busy.0.max(busy.1)),
            wait_s: (wait_s(throughput.0, 1.0)?, wait_s(throughput.1, 1.0)?),
            tenth_more_s: wait_s(throughput.1, 1.1),
        })
    }
}

/// How a resource is loaded, today and with other users.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Share of it that is busy.
    pub busy: (f64, f64),
    /// Share of the requests that wait for it.
    pub share: f64,
    /// What one scenario waits for it, s.
    pub wait_s: (f64, f64),
    /// The same with the other users where all need a tenth more of it than was seen; none where it has no time then.
    pub tenth_more_s: Option<f64>,
}

impl Load {
    /// What requests wait more, where a scenario has so many.
    pub fn wait(&self, requests: f64) -> Wait {
        let more_s = (self.wait_s.1 - self.wait_s.0) / requests;
        match self.share > 0.0 {
            true => Wait { share: self.share, mean_s: more_s / self.share },
            false => Wait::default(),
        }
    }
}

/// What is waited more than today: so many wait, so long on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Share of those that wait.
    pub share: f64,
    /// Of those, s; below zero where they wait less.
    pub mean_s: f64,
}

impl Wait {
    /// What one of many waits more, ns; exponential, and always the same for the same number.
    pub(crate) fn draw_ns(&self, number: u64) -> i64 {
        // SplitMix64 (Steele, Lea, Flood 2014): each bit of the number changes all of the result.
        let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = (((bits ^ (bits >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        if drawn >= self.share {
            return 0;
        }
        let ns = (-1e9 * self.mean_s * (drawn / self.share).ln()) as i64;
        ns.clamp(-WAIT_MAX_NS, WAIT_MAX_NS)
    }
}

/// How long is waited for a resource, in times of what is needed of it.
struct Queue {
    servers: u64,
    /// From one queue for all servers to one for each, 0 to 1.
    apart: f64,
}

impl Queue {
    /// As it was seen when the resource was so busy.
    fn of(resource: &Resource, busy: f64) -> Queue {
        let all = Queue { servers: resource.servers, apart: 0.0 };
        let [least, most] = [0.0, 1.0].map(|apart| Queue { apart, ..all }.waiting(busy));
        match resource.wait_s {
            // More is not due to the load: a processor that sleeps takes time to wake up.
            Some(wait_s) if most > least => {
                let apart = (wait_s / resource.demand_s - least) / (most - least);
                Queue { apart: apart.clamp(0.0, 1.0), ..all }
            }
            _ => all,
        }
    }

    fn waiting(&self, busy: f64) -> f64 {
        let [all, each] = [self.servers, 1].map(|servers| waiting(servers, busy));
        all + self.apart * (each - all)
    }
}

/// What M/M/c waits in service times.
fn waiting(servers: u64, busy: f64) -> f64 {
    erlang_c(servers, busy) / (servers as f64 * (1.0 - busy))
}

/// Probability that an arrival has to wait (Erlang 1917), by the recursion of Erlang's B.
fn erlang_c(servers: u64, utilization: f64) -> f64 {
    let servers = servers.max(1);
    let load = servers as f64 * utilization;
    let mut blocked = 1.0;
    for place in 1..=servers {
        blocked = load * blocked / (place as f64 + load * blocked);
    }
    blocked / (1.0 - utilization * (1.0 - blocked))
}

#[cfg(test)]
mod tests {
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

    /// Of users, each of whom asks for a scenario in ten seconds, and how busy the processors were, in percent.
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
        // Half of two processors for ten scenarios a second.
        assert!((limit.demand_s - 0.1).abs() < 1e-12);
        // M/M/2 waits rho^2 / (1 - rho^2) of 0.1 s; three quarters busy, 9/7 of a third.
        let wait = of_one(&capacity, 150.0).unwrap();
        assert!((wait.share * wait.mean_s - 0.1 * (9.0 / 7.0 - 1.0 / 3.0)).abs() < 1e-12);
        assert!((wait.share - 9.0 / 14.0).abs() < 1e-12, "{wait:?}");
        let load = &capacity.loads(150.0).unwrap()[0];
        assert_eq!((&*load.name, load.busy), (PROCESSORS, (0.5, 0.75)));
        let tenth_more_s = 0.11 * 0.825_f64.powi(2) / (1.0 - 0.825_f64.powi(2));
        assert!((load.tenth_more_s.unwrap() - tenth_more_s).abs() < 1e-12);
        assert_eq!(capacity.loads(190.0).unwrap()[0].tenth_more_s, None);
        assert_eq!(capacity.loads(200.0), None);
        assert_eq!(of_one(&capacity, 100.0).unwrap().mean_s, 0.0);
    }

    #[test]
    fn two_steps_tell_what_the_machine_does_without_load() {
        let capacity = capacity(&[(50, 30.0), (100, 50.0)]);
        let limit = capacity.limit().unwrap();
        assert!((limit.used.idle.unwrap() - 0.1).abs() < 1e-9);
        // 40 % for a hundred users, of 90 % that are to be had.
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
                        // Of two processors.
                        value: 2.0 * percent * share,
                        ..Counter::default()
                    }]);
                }
            }
            demand.finish().unwrap()
        };
        // Through the steps 10 % are busy without load; of 30 % a tenth is no process's.
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
        assert!(capacity.loads(full - 0.01).is_some());
        assert_eq!(capacity.loads(full + 0.01), None);
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
        let loads = capacity.loads(users)?;
        assert_eq!(loads.len(), 1);
        Some(loads[0].wait(1.0))
    }

    /// A hundred users that keep two processors busy by half, for which so many tasks wait.
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
        // Ten scenarios a second of 0.1 s: a queue for each processor has one task waiting on average.
        let (mean_s, share) = rise(&waited(0.7, 0.3), 150.0);
        assert!((mean_s - 0.1 * (3.0 - 1.0)).abs() < 1e-9 && (share - 9.0 / 14.0).abs() < 1e-9);
        // More come of something else.
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
}
