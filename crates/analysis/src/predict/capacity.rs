//! How many users a server carries, foretold from a run with fewer.
//!
//! Users are paced: each asks for a scenario so and so often, however long one takes. So the load is
//! open, and the utilisation law holds (Denning and Buzen 1978): a resource is busy for throughput
//! times demand, and the demand of one scenario on it is its busy time divided by completions. A
//! slice of an operation is no demand: it is time spent there, waiting included. Users cannot keep
//! their schedule any more when the busiest resource has no time left; that number of users is the
//! capacity. Where steps with other throughputs were recorded, a straight line through them tells
//! what the resource does without any load, which is no more than the processes that serve and ask do not need of
//! the processors. What keeps processors busy beyond these processes, interrupts and a fifth of the processes' time is
//! others' work: it is there without load too, unless a line through several steps says better. Or, where it would be busy for less than nothing then, that a scenario costs
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

mod changed_demand;
mod windows;

#[cfg(test)]
mod tests;

use smbscope_tables::run::{Counter, Step};

use super::Z_95;
pub use super::queueing::{Load, Wait};
use super::queueing::{Queue, erlang_c};
pub use changed_demand::Then;
use windows::{Parts, Split, Window};

/// The resource that operations share with all else.
pub(super) const PROCESSORS: &str = "processors";
/// What others (threads of the kernel, helpers of the server) do for the load is taken to be up to this share of what
/// its processes do: on a quiet machine they were seen to do 18 % as much, or less.
const HIDDEN: f64 = 0.2;
/// The most that is thought possible.
const HIDDEN_MOST: f64 = 1.0;
/// A scenario was seen to take so much less of processors that do not sleep in between than of such that mostly do
/// (docs/predictions.md: from a fifth to a half busy 13 and 15 %). One load alone does not show it.
const SLEEPING: f64 = 0.15;
/// Who sleeps less than that.
const AWAKE: f64 = 0.5;
/// From this share of the processors on others are told.
const OTHERS_LEAST: f64 = 0.001;
/// What is said where it is not known whose the load is.
const NOT_PARTED: &str = "What the server's own processes need of its processors was not recorded: all that its machine \
                          did meanwhile is counted as the users' demand. If anything else ran there, the server carries \
                          more users than that.";

/// Steps and counters of load runs, as they come.
#[derive(Debug, Default)]
pub struct Demand(Parts);

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
    /// Without load; none where one throughput was recorded only, and nothing else ran.
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
    /// Whether clients are on the server's machine, and share its processors.
    pub clients_beside: bool,
    /// What it rests on beside what was measured, a sentence each.
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
            NoCapacity::NeverBusy => {
                "the capacity cannot be told: neither processors nor disks of the server were busy in the steps \
                 with most users; load it more, or longer"
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
        let mut notes: Vec<_> = good.iter().find_map(|step| lacking(step)).into_iter().collect();
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

/// What is said of a step of which only some of the machines' recordings are there.
fn lacking(step: &Window) -> Option<String> {
    (step.users_seen < step.users).then(|| {
        format!(
            "The inputs hold {} of the {} users of a step: other machines (load --shard) had the others, who are \
             taken to have done as much each; give the runs of all shards to count what they did.",
            step.users_seen, step.users
        )
    })
}

/// A resource by the steps, and what is said of others that use it.
fn resource(
    name: &str,
    servers: u64,
    good: &[&Window],
    top: &Window,
    rate: f64,
) -> Option<(Resource, Vec<String>)> {
    // Of each step how wrong it may be that it was so busy.
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
    let parted = Parted { points: &points, splits: &splits, place };
    let fits = parted.line_fits();
    let hidden_most = parted.hidden_most();
    let others = |step: usize, hidden: f64| match splits[step] {
        Some(split) if !fits => split.others(hidden.min(hidden_most)),
        _ => 0.0,
    };
    let foretold = |hidden: f64, nudges: &[f64], more: f64| {
        let others: Vec<_> = (0..points.len()).map(|step| others(step, hidden)).collect();
        parted.with(&others, nudges, more)
    };
    let none = vec![0.0; points.len()];
    // Nothing to tell from: it is never the limit.
    let used = foretold(HIDDEN, &none, 0.0)?;
    let users = used.full() / rate;
    // The number of scenarios in the window scatters too.
    let mut squares = (Z_95 / top.completed.sqrt() * users).powi(2);
    let mut differs = |other: Option<Use>| {
        let other = other.map_or(users, |used| used.full() / rate);
        squares += (other - users).powi(2);
        (other - users).abs()
    };
    for (step, error) in errors.iter().enumerate() {
        let mut nudges = none.clone();
        nudges[step] = match splits[step].filter(|_| others(step, HIDDEN) > 0.0) {
            Some(Split { processes, interrupts, .. }) => {
                ((1.0 + HIDDEN) * processes.1).hypot(interrupts.1)
            }
            None => *error,
        };
        differs(foretold(HIDDEN, &nudges, 0.0));
    }
    let beside = others(place, HIDDEN);
    if beside > 0.0 {
        differs(foretold(HIDDEN, &none, errors[place]));
    }
    // How much others did for the load is not seen: the worse of all and nothing.
    let extremes = [0.0, HIDDEN_MOST].map(|hidden| foretold(hidden, &none, 0.0));
    let far = |used: &Option<Use>| used.map_or(0.0, |used| (used.full() / rate - users).abs());
    let [none_did, all_did] = extremes;
    differs(if far(&none_did) > far(&all_did) { none_did } else { all_did });
    let (throughput, utilization) = points[place];
    let sleeps = name == PROCESSORS && idle(&points).is_none();
    if sleeps {
        squares += (SLEEPING * (1.0 - utilization) * users).powi(2);
    }
    let beside_note = match splits[place] {
        _ if name != PROCESSORS => None,
        None => Some(NOT_PARTED.to_owned()),
        Some(split) => {
            let others = if fits { used.idle.unwrap_or(0.0) } else { beside };
            beside_load(others, utilization, split)
        }
    };
    let waiting = match name == PROCESSORS {
        true => top.waiting(beside > 0.0),
        false => None,
    };
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

/// What is said of one load that is far from the capacity.
fn one_load(utilization: f64) -> String {
    format!(
        "One load was recorded, with the processors busy by {:.0} %: a scenario takes up to {:.0} % less of them where they seldom \
         sleep, so that it is rather more users than fewer. A run with twice as many users beside it says so.",
        100.0 * utilization,
        100.0 * SLEEPING * (1.0 - utilization)
    )
}

/// What is said of others that keep the processors busy; nothing of a thousandth.
fn beside_load(others: f64, busy: f64, split: Split) -> Option<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut note = format!(
        "{} of the server's processors went to others than the server's and the client's processes, which took {}: \
         that is taken to stay as it is with more users.",
        percent(others),
        percent(split.processes.0)
    );
    if others > busy - others {
        note.push_str(
            " Most of what was busy is not this load: the capacity rests on the little that is. Record again with \
             nothing else on that machine.",
        );
    }
    (others >= OTHERS_LEAST).then_some(note)
}

/// Steps as throughput and busy share, and what kept the processors busy then.
struct Parted<'a> {
    points: &'a [(f64, f64)],
    splits: &'a [Option<Split>],
    /// The step of the highest load.
    place: usize,
}

impl Parted<'_> {
    /// Whether the straight line through the steps tells what is busy without load: no more than what is no process's,
    /// and no step is busier for the load than its processes explain. Else others came and went.
    fn line_fits(&self) -> bool {
        let Some(idle) = idle(self.points) else { return false };
        let known = self.points.iter().zip(self.splits);
        let mut known = known.filter_map(|(point, split)| Some((point.1, (*split)?)));
        idle >= 0.0
            && known.all(|(busy, split)| {
                let most = (1.0 + HIDDEN_MOST) * split.processes.0 + split.interrupts.0;
                idle <= split.beside() && busy - idle <= most
            })
    }

    /// How much others may have done for the load, in times of what its processes did: what they did for it in one step
    /// they did in all. No limit where nothing but such work was seen.
    fn hidden_most(&self) -> f64 {
        let known = || self.splits.iter().flatten();
        match known().any(|split| split.others(HIDDEN) > 0.0) {
            true => {
                known().map(|split| split.rest / split.processes.0).fold(f64::INFINITY, f64::min)
            }
            false => f64::INFINITY,
        }
    }

    /// With so much that is others' in each step, so much more of the load, and so much more that is others'.
    fn with(&self, others: &[f64], nudges: &[f64], more: f64) -> Option<Use> {
        let of_load = |step: usize| {
            let (throughput, busy) = self.points[step];
            (throughput, busy - others[step] + nudges[step])
        };
        let points: Vec<_> = (0..self.points.len()).map(of_load).collect();
        // What the processes that serve and ask do is not there without load.
        let beside = self.splits.iter().zip(others);
        let beside = beside.filter_map(|(split, others)| Some((*split)?.beside() - others));
        let used = Use::of(&points, self.place, beside.fold(1.0, f64::min).max(0.0))?;
        let others = others[self.place] + more;
        match others > 0.0 {
            true => Some(Use { idle: Some(used.idle.unwrap_or(0.0) + others), ..used }),
            false => Some(used),
        }
    }
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
        let free = (1.0 - self.idle.unwrap_or(0.0)).max(0.0);
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

    /// The resource that ends first then ([`Capacity::then`]), and the processors, today and then with so many users;
    /// none at or above the capacity.
    pub fn loads(&self, then: &Capacity, users: f64) -> Option<Vec<Load>> {
        let first = then.resources.first()?;
        let processors = then.resources.iter().find(|one| one.name == PROCESSORS);
        let processors = processors.filter(|one| one.name != first.name);
        let today = |then: &Resource| self.resources.iter().find(|one| one.name == then.name);
        let pairs = [first].into_iter().chain(processors);
        pairs.map(|then| self.load(today(then)?, then, users)).collect()
    }

    fn load(&self, today: &Resource, then: &Resource, users: f64) -> Option<Load> {
        let throughput = (self.users_recorded * self.rate, users * self.rate);
        let busy = (today.used.at(throughput.0), then.used.at(throughput.1));
        if [busy.0, busy.1].iter().any(|busy| !(0.0..1.0).contains(busy)) {
            return None;
        }
        let queue = Queue::of(today, busy.0);
        let wait_s = |resource: &Resource, throughput, factor: f64| {
            let demand_s = factor * resource.used.demand_s(throughput, resource.servers);
            let busy = factor * resource.used.at(throughput);
            (busy < 1.0).then(|| demand_s * queue.waiting(busy))
        };
        Some(Load {
            name: then.name.clone(),
            busy,
            share: erlang_c(then.servers, busy.0.max(busy.1)),
            wait_s: (wait_s(today, throughput.0, 1.0)?, wait_s(then, throughput.1, 1.0)?),
            tenth_more_s: wait_s(then, throughput.1, 1.1),
        })
    }
}
