//! How many users a server carries, predicted from a run with fewer.
//!
//! Users are paced: each starts a scenario at a fixed rate, however long one takes. So the load is
//! open, and the utilisation law holds (Denning and Buzen 1978): a resource is busy for throughput
//! times demand, and the demand of one scenario on it is its busy time divided by completions. A
//! slice of an operation is not demand: it is time spent there, waiting included. Users can no longer keep
//! their schedule when the busiest resource has no time left; that number of users is the capacity.
//!
//! Where steps with different throughputs were recorded, a straight line through them gives what the
//! resource does without load; that is limited to what the processes of server and clients do not need of
//! the CPUs. What keeps CPUs busy besides these processes, interrupts and a fifth of the
//! processes' time belongs to other programs: it is there without load too, unless a line through several steps
//! gives a better value. If the line is below zero without load, a scenario costs more when there are more of
//! them (caches cool down in between), and its cost is assumed to grow with the throughput.
//!
//! Response times grow because requests wait longer for the CPUs, and for the busiest resource where that
//! is another one. A request waits while others are served, so its wait is a multiple of what the mean request
//! needs, not of what it needs itself. The multiple is between M/M/c (one queue, and no request waits while
//! a CPU is free) and M/M/1 (each CPU has its own queue, as on Linux); how long tasks waited for
//! CPUs in the recording decides where. Without that it is M/M/c, the smallest. As many requests wait as find
//! all servers busy (Erlang 1917), and waits are exponential. The model fails where one thread is the limit before
//! the CPUs are, where requests wait for locks, where a request costs more or less among many, and above
//! the capacity, where queues grow for as long as the run lasts.

mod changed_demand;
mod windows;

#[cfg(test)]
mod tests;

use smbscope_tables::run::{Counter, Step};

use super::Z_95;
pub use super::queueing::{Load, Wait};
use super::queueing::{Queue, erlang_c};
pub use changed_demand::DemandChange;
use windows::{Split, StepParts, Window};

/// The name of the resource that everything on the server shares.
pub(super) const PROCESSORS: &str = "processors";
/// Work for the load outside of its processes (kernel threads, helpers of the server) is assumed to be up to this share
/// of what its processes do: on a quiet machine it was 18 % or less.
const HIDDEN_SHARE: f64 = 0.2;
/// The largest share that is considered possible.
const HIDDEN_SHARE_MAX: f64 = 1.0;
/// How much less of CPUs that never sleep a scenario takes than of CPUs that mostly do: 13 and 15 % were
/// measured from a fifth to a half busy (docs/measurements). A single load does not show it.
const SLEEP_COST: f64 = 0.15;
/// Utilization from which CPUs count as never sleeping.
const AWAKE: f64 = 0.5;
/// Other programs that take less than this share of the CPUs are not mentioned.
const OTHERS_MIN: f64 = 0.001;
/// The note for a recording without the server's own processes.
const NOT_ATTRIBUTED: &str = "The CPU time of the server's own processes was not recorded, so everything that its \
                              machine did counts as the users' demand. If anything else ran there, the server carries \
                              more users than shown.";

/// Steps and counters of load runs, as they come.
#[derive(Debug, Default)]
pub struct Demand(StepParts);

/// A resource of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// CPUs, or a disk's name.
    pub name: String,
    /// How many there are of it.
    pub servers: u64,
    /// Busy share in the step with the highest load, 0 to 1.
    pub utilization: f64,
    /// Busy time of one scenario in that step, s, without what is busy without load.
    pub demand_s: f64,
    /// How long one scenario waited for it in that step, s; none where that is not known.
    pub wait_s: Option<f64>,
    /// How busy it is at each throughput.
    pub used: Use,
    /// Number of users at which it has no time left.
    pub users: f64,
    /// Half of the 95 % interval of [`Resource::users`], from the scatter of the samples.
    pub users_error: f64,
}

/// How busy a resource is at throughput x in scenarios per second: idle + each x + more x², as a share of all
/// its servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// Without load; none where only one throughput was recorded and nothing else ran.
    pub idle: Option<f64>,
    /// For each scenario per second, s.
    pub each: f64,
    /// How much [`Use::each`] grows with each additional scenario per second, s².
    pub more: f64,
}

/// What a server carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Users of the step with the highest load that was not overloaded.
    pub users_recorded: f64,
    /// When that was, ns since 1970.
    pub window: (i64, i64),
    /// Scenarios that a user starts per second.
    pub rate: f64,
    /// The resource that is exhausted first comes first.
    pub resources: Vec<Resource>,
    /// Steps that were used.
    pub steps: u64,
    /// Whether clients are on the server's machine, and share its CPUs.
    pub clients_beside: bool,
    /// Assumptions besides what was measured, a sentence each.
    pub notes: Vec<String>,
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
    /// A load run too light to be seen.
    NeverBusy,
}

impl NoCapacity {
    /// A sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            NoCapacity::NoSteps => {
                "only a load run (smbscope load --out) has a capacity: other recordings do not show how often users \
                 start something"
            }
            NoCapacity::NoCounters => {
                "the capacity is not known: the run has no counters of the server that show how long its CPUs \
                 and disks are busy; run with --metrics URL (node_exporter on the server), or on the server itself"
            }
            NoCapacity::NotPaced => {
                "the capacity is not known: users of this run follow no schedule (--closed), so there is no rate at \
                 which they start something"
            }
            NoCapacity::NoScenarios => {
                "the capacity is not known: no scenario ended in a step that was not overloaded"
            }
            NoCapacity::NeverBusy => {
                "the capacity is not known: neither CPUs nor disks of the server were busy in the steps with the \
                 most users; load the server more, or longer"
            }
        }
    }
}

impl Demand {
    /// Adds steps, before their counters.
    pub fn steps(&mut self, rows: &[Step]) {
        self.0.steps(rows);
    }

    /// Adds samples.
    pub fn counters(&mut self, rows: &[Counter]) {
        self.0.counters(rows);
    }

    /// The capacity, or what is missing.
    pub fn finish(self) -> Result<Capacity, NoCapacity> {
        let processors = self.0.processors();
        let windows = self.0.windows();
        if windows.is_empty() {
            return Err(NoCapacity::NoSteps);
        }
        if windows.iter().all(|step| step.busy.is_empty()) {
            return Err(NoCapacity::NoCounters);
        }
        if windows.iter().all(|step| step.rate <= 0.0) {
            return Err(NoCapacity::NotPaced);
        }
        let mut good: Vec<_> = windows
            .iter()
            .filter(|step| !step.is_overloaded && step.throughput > 0.0 && step.users > 0.0)
            .filter(|step| step.rate > 0.0)
            .collect();
        if good.is_empty() {
            return Err(NoCapacity::NoScenarios);
        }
        good.retain(|step| !step.busy.is_empty());
        let top = good.iter().max_by(|one, other| one.users.total_cmp(&other.users));
        let Some(top) = top else { return Err(NoCapacity::NoCounters) };
        let rate = top.rate / top.users;
        let mut notes: Vec<_> =
            good.iter().find_map(|step| missing_shards(step)).into_iter().collect();
        let mut resources: Vec<_> = top
            .busy
            .keys()
            .filter_map(|name| {
                let servers = if name == PROCESSORS { processors } else { 1 };
                let (resource, note) = resource(name, servers, &good, top, rate)?;
                notes.extend(note);
                Some(resource)
            })
            .collect();
        if resources.is_empty() {
            return Err(NoCapacity::NeverBusy);
        }
        resources.sort_by(|one, other| one.users.total_cmp(&other.users));
        let (users_recorded, window) = (top.users, (top.start, top.end));
        let (steps, clients_beside) = (good.len() as u64, top.has_clients_beside());
        Ok(Capacity { users_recorded, window, rate, resources, steps, clients_beside, notes })
    }
}

/// The note for a step of which the recordings of some machines are missing.
fn missing_shards(step: &Window) -> Option<String> {
    (step.users_seen < step.users).then(|| {
        format!(
            "The inputs contain {} of the {} users of a step. The others ran on other machines (load --shard) and are \
             assumed to have done as much each; give the runs of all shards to count what they did.",
            step.users_seen, step.users
        )
    })
}

/// A resource from the steps, and the notes about it.
fn resource(
    name: &str,
    servers: u64,
    good: &[&Window],
    top: &Window,
    rate: f64,
) -> Option<(Resource, Vec<String>)> {
    // By step: throughput and busy share, the error of the busy share, and what kept it busy.
    let (mut points, mut errors, mut splits, mut place) = (vec![], vec![], vec![], 0);
    for step in good {
        let Some(samples) = step.busy.get(name) else { continue };
        let Some(busy) = samples.mean() else { continue };
        if std::ptr::eq(*step, top) {
            place = points.len();
        }
        points.push((step.throughput, busy));
        errors.push(samples.error());
        splits.push(if name == PROCESSORS { step.split(servers) } else { None });
    }
    let steps = LoadSteps { points: &points, splits: &splits, place };
    let fits = steps.line_fits();
    let hidden_most = steps.hidden_most();
    let others = |step: usize, hidden: f64| match splits[step] {
        Some(split) if !fits => split.others(hidden.min(hidden_most)),
        _ => 0.0,
    };
    let predicted = |hidden: f64, nudges: &[f64], more: f64| {
        let others: Vec<_> = (0..points.len()).map(|step| others(step, hidden)).collect();
        steps.with(&others, nudges, more)
    };
    let none = vec![0.0; points.len()];
    // Without any use it is never the limit.
    let used = predicted(HIDDEN_SHARE, &none, 0.0)?;
    let users = used.full() / rate;
    // The number of scenarios in the window scatters as well.
    let mut squares = (Z_95 / top.completed.sqrt() * users).powi(2);
    let mut differs = |other: Option<Use>| {
        let other = other.map_or(users, |used| used.full() / rate);
        squares += (other - users).powi(2);
        (other - users).abs()
    };
    for (step, error) in errors.iter().enumerate() {
        let mut nudges = none.clone();
        nudges[step] = match splits[step].filter(|_| others(step, HIDDEN_SHARE) > 0.0) {
            Some(Split { processes, interrupts, .. }) => {
                ((1.0 + HIDDEN_SHARE) * processes.1).hypot(interrupts.1)
            }
            None => *error,
        };
        differs(predicted(HIDDEN_SHARE, &nudges, 0.0));
    }
    let beside = others(place, HIDDEN_SHARE);
    if beside > 0.0 {
        differs(predicted(HIDDEN_SHARE, &none, errors[place]));
    }
    // How much of the other work was done for the load is not visible: take the worse of none and all.
    let extremes = [0.0, HIDDEN_SHARE_MAX].map(|hidden| predicted(hidden, &none, 0.0));
    let far = |used: &Option<Use>| used.map_or(0.0, |used| (used.full() / rate - users).abs());
    let [none_did, all_did] = extremes;
    differs(if far(&none_did) > far(&all_did) { none_did } else { all_did });
    let (throughput, utilization) = points[place];
    let sleeps = name == PROCESSORS && idle(&points).is_none();
    if sleeps {
        squares += (SLEEP_COST * (1.0 - utilization) * users).powi(2);
    }
    let beside_note = match splits[place] {
        _ if name != PROCESSORS => None,
        None => Some(NOT_ATTRIBUTED.to_owned()),
        Some(split) => {
            let others = if fits { used.idle.unwrap_or(0.0) } else { beside };
            other_load(others, utilization, split)
        }
    };
    let waiting = if name == PROCESSORS { top.waiting(beside > 0.0) } else { None };
    let resource = Resource {
        name: name.to_owned(),
        servers,
        utilization,
        demand_s: used.demand_s(throughput, servers),
        wait_s: waiting.map(|tasks| tasks / throughput),
        used,
        users,
        users_error: squares.sqrt(),
    };
    let alone = (sleeps && utilization < AWAKE).then(|| one_load(utilization));
    Some((resource, beside_note.into_iter().chain(alone).collect()))
}

/// The note for a single load that is far from the capacity.
fn one_load(utilization: f64) -> String {
    format!(
        "One load was recorded, with the CPUs busy for {:.0} % of the time. A scenario takes up to {:.0} % less of \
         CPUs that seldom sleep, so the capacity is more likely higher than lower. A second run with twice as many \
         users shows it.",
        100.0 * utilization,
        100.0 * SLEEP_COST * (1.0 - utilization)
    )
}

/// The note about other programs that keep the CPUs busy.
fn other_load(others: f64, busy: f64, split: Split) -> Option<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut note = format!(
        "Other programs than the server and the client took {} of the server's CPUs (those took {}); this is \
         assumed not to grow with the number of users.",
        percent(others),
        percent(split.processes.0)
    );
    if others > busy - others {
        note.push_str(
            " Most of the CPU time was not spent on this load, so the capacity follows from a small remainder. \
             Record again with nothing else running on that machine.",
        );
    }
    (others >= OTHERS_MIN).then_some(note)
}

/// Steps as throughput and busy share, and what kept the CPUs busy.
struct LoadSteps<'a> {
    points: &'a [(f64, f64)],
    splits: &'a [Option<Split>],
    /// The step with the highest load.
    place: usize,
}

impl LoadSteps<'_> {
    /// Whether the straight line through the steps shows what is busy without load: at most what no process used, and no
    /// step is busier for the load than its processes explain. Otherwise other programs came and went.
    fn line_fits(&self) -> bool {
        let Some(idle) = idle(self.points) else { return false };
        let known = self.points.iter().zip(self.splits);
        let mut known = known.filter_map(|(point, split)| Some((point.1, (*split)?)));
        idle >= 0.0
            && known.all(|(busy, split)| {
                let most = (1.0 + HIDDEN_SHARE_MAX) * split.processes.0 + split.interrupts.0;
                idle <= split.outside() && busy - idle <= most
            })
    }

    /// How much work may have been done for the load outside of its processes, as a multiple of what these did: work done
    /// for it in one step was done in every step. No limit where there was only such work.
    fn hidden_most(&self) -> f64 {
        let known = || self.splits.iter().flatten();
        if known().any(|split| split.others(HIDDEN_SHARE) > 0.0) {
            known().map(|split| split.rest / split.processes.0).fold(f64::INFINITY, f64::min)
        } else {
            f64::INFINITY
        }
    }

    /// The use with this share of other programs in each step, these changes of the load's share, and `more` of other programs.
    fn with(&self, others: &[f64], nudges: &[f64], more: f64) -> Option<Use> {
        let of_load = |step: usize| {
            let (throughput, busy) = self.points[step];
            (throughput, busy - others[step] + nudges[step])
        };
        let points: Vec<_> = (0..self.points.len()).map(of_load).collect();
        // The processes of server and client do nothing without load.
        let beside = self.splits.iter().zip(others);
        let beside = beside.filter_map(|(split, others)| Some((*split)?.outside() - others));
        let used = Use::from_points(&points, self.place, beside.fold(1.0, f64::min).max(0.0))?;
        let others = others[self.place] + more;
        if others > 0.0 {
            Some(Use { idle: Some(used.idle.unwrap_or(0.0) + others), ..used })
        } else {
            Some(used)
        }
    }
}

impl Use {
    /// Through one of the steps, with at most `idle_most` without load; `None` if it is not busier than without load.
    fn from_points(points: &[(f64, f64)], through: usize, idle_most: f64) -> Option<Use> {
        let (throughput, busy) = *points.get(through)?;
        let idle = idle(points);
        // Below zero: nothing to do without load, and more for each scenario when there are many.
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

    /// Busy time of one scenario at this throughput, of all servers.
    fn demand_s(&self, throughput: f64, servers: u64) -> f64 {
        (self.each + self.more * throughput) * servers as f64
    }

    /// The throughput at which it has no time left.
    fn full(&self) -> f64 {
        let free = (1.0 - self.idle.unwrap_or(0.0)).max(0.0);
        // The root of the quadratic equation, in the form that also holds for `more` = 0.
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
    /// The resource that is exhausted first.
    pub fn limit(&self) -> Option<&Resource> {
        self.resources.first()
    }

    /// The load with this many users on the resource that is exhausted first with the changes ([`Capacity::with_demand`])
    /// and on the CPUs; none at or above the capacity.
    pub fn loads(&self, changed: &Capacity, users: f64) -> Option<Vec<Load>> {
        let first = changed.resources.first()?;
        let processors = changed.resources.iter().find(|one| one.name == PROCESSORS);
        let processors = processors.filter(|one| one.name != first.name);
        let today = |one: &Resource| self.resources.iter().find(|today| today.name == one.name);
        let pairs = [first].into_iter().chain(processors);
        pairs.map(|one| self.load(today(one)?, one, users)).collect()
    }

    fn load(&self, today: &Resource, changed: &Resource, users: f64) -> Option<Load> {
        let throughput = (self.users_recorded * self.rate, users * self.rate);
        let busy = (today.used.at(throughput.0), changed.used.at(throughput.1));
        if [busy.0, busy.1].iter().any(|busy| !(0.0..1.0).contains(busy)) {
            return None;
        }
        let queue = Queue::from_resource(today, busy.0);
        let wait_s = |resource: &Resource, throughput, factor: f64| {
            let demand_s = factor * resource.used.demand_s(throughput, resource.servers);
            let busy = factor * resource.used.at(throughput);
            (busy < 1.0).then(|| demand_s * queue.waiting(busy))
        };
        Some(Load {
            name: changed.name.clone(),
            busy,
            share: erlang_c(changed.servers, busy.0.max(busy.1)),
            wait_s: (wait_s(today, throughput.0, 1.0)?, wait_s(changed, throughput.1, 1.0)?),
            tenth_more_s: wait_s(changed, throughput.1, 1.1),
        })
    }
}
