//! One execution, fully resolved: which scenario, which files, which paths and sizes, when.
//!
//! A pure function of (workload, seed, scale, user number, run number of that user). The steps stay in
//! the workload; a plan has what is specific to this execution, in buffers that the next one reuses. It
//! sends nothing and knows no clock: times count from the user's begin.

use std::sync::Arc;
use std::time::Duration;

use super::model::{Length, PathId, PickHow, Scenario, Transfer, Workload};
use super::schedule::Schedule;
use super::template::{Field, PickId, Values};
use crate::fileset::random::{Stream, mix};
use crate::fileset::{FileClass, FileRef, FileSet, Scale};

/// Plans the executions of all users. Cheap to clone and to send to threads.
#[derive(Clone, Debug)]
pub struct Planner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workload: Arc<Workload>,
    files: FileSet,
    schedule: Schedule,
    /// Where each scenario's share of [0, 1) ends.
    ends: Vec<f64>,
}

/// The executions of one user, in order.
#[derive(Clone, Debug)]
pub struct UserPlans {
    shared: Arc<Shared>,
    user: u64,
    home: String,
    key: u64,
    run: u64,
    due: Duration,
    stocks: Vec<Stock>,
}

/// A user's remaining files of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct Stock {
    /// Volatile files deleted so far; for new files, the first that still exists.
    first: u64,
    /// New files created so far.
    made: u64,
}

/// One execution.
#[derive(Clone, Debug)]
pub struct Plan {
    workload: Arc<Workload>,
    scenario: usize,
    user: u64,
    run: u64,
    due: Duration,
    files: Vec<FileRef>,
    /// Folder and name of each file.
    names: String,
    name_ends: Vec<[u32; 2]>,
    paths: String,
    path_ends: Vec<u32>,
}

/// The extent of a transfer in one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Where it begins in the file.
    pub offset_bytes: u64,
    /// Its length; 0 sends nothing.
    pub bytes: u64,
    /// Requests: `bytes / block_bytes`, rounded up.
    pub requests: u64,
}

// Purposes of keys; the numbers never change. Those of the file set are below 16.
const PURPOSE_RUN: u64 = 16;

impl Planner {
    /// A planner for a workload. Everything that it plans is the same for the same arguments.
    pub fn new(workload: Arc<Workload>, seed: u64, scale: Scale) -> Planner {
        let files = workload.file_set(seed, scale);
        let schedule = Schedule::new(workload.pacing, workload.mean_interval(), seed);
        let all = workload.runs_per_hour();
        let mut sum = 0.0;
        let ends = workload.scenarios.iter().map(|scenario| {
            sum += scenario.runs_per_hour;
            sum / all
        });
        let ends = ends.collect();
        Planner { shared: Arc::new(Shared { workload, files, schedule, ends }) }
    }

    /// The workload.
    pub fn workload(&self) -> &Arc<Workload> {
        &self.shared.workload
    }

    /// The files of the users.
    pub fn files(&self) -> &FileSet {
        &self.shared.files
    }

    /// When a run is due, counted from the user's begin.
    pub fn schedule(&self, user: u64, run: u64) -> Duration {
        self.shared.schedule.due(user, run)
    }

    /// The executions of a user, starting with the first. `home` is the user's folder below the share's
    /// root, with `\`; empty for the root itself.
    pub fn user(&self, user: u64, home: &str) -> UserPlans {
        let shared = Arc::clone(&self.shared);
        let key = mix(mix(shared.files.seed(), user), PURPOSE_RUN);
        let due = shared.schedule.due(user, 0);
        let stocks = vec![Stock::default(); shared.workload.pools.len()];
        UserPlans { shared, user, home: home.into(), key, run: 0, due, stocks }
    }
}

impl UserPlans {
    /// Number of the next execution.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// All users' files.
    pub fn files(&self) -> &FileSet {
        &self.shared.files
    }

    /// The user's folder, relative to the share's root.
    pub fn home(&self) -> &str {
        &self.home
    }

    /// The user's files are again as `prepare` left them: nothing is deleted, nothing is new.
    pub fn restored(&mut self) {
        self.stocks.fill(Stock::default());
    }

    /// When the next execution is due, counted from the user's begin.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// An empty plan for [`UserPlans::next_into`].
    pub fn buffer(&self) -> Plan {
        Plan {
            workload: Arc::clone(&self.shared.workload),
            scenario: 0,
            user: self.user,
            run: 0,
            due: Duration::ZERO,
            files: Vec::new(),
            names: String::new(),
            name_ends: Vec::new(),
            paths: String::new(),
            path_ends: Vec::new(),
        }
    }

    /// The next execution.
    pub fn next_plan(&mut self) -> Plan {
        let mut plan = self.buffer();
        self.next_into(&mut plan);
        plan
    }

    /// The next execution, into a plan of the same planner (whose buffers it reuses).
    pub fn next_into(&mut self, plan: &mut Plan) {
        self.choose(plan);
        plan.resolve(&self.shared.files, &self.home);
    }

    /// The next execution as one that does not start: it deletes and creates no files.
    pub fn pass_into(&mut self, plan: &mut Plan) {
        let stocks = self.stocks.clone();
        self.choose(plan);
        self.stocks = stocks;
        plan.resolve(&self.shared.files, &self.home);
    }

    /// One execution of the given scenario, as the next run of the user. For tests and for runs of one
    /// scenario; `None` if it would delete a file and none is left.
    pub fn next_of(&mut self, scenario: usize) -> Option<Plan> {
        let mut plan = self.buffer();
        let mut stream = Stream::new(mix(self.key, self.run));
        stream.bits();
        if !self.pick(scenario, &mut stream, &mut plan.files) {
            return None;
        }
        self.advance(scenario, &mut plan);
        plan.resolve(&self.shared.files, &self.home);
        Some(plan)
    }

    /// Skips to a run without fully planning the earlier ones; runs only go forward.
    pub fn skip_to(&mut self, run: u64) {
        let mut plan = self.buffer();
        while self.run < run {
            self.choose(&mut plan);
        }
    }

    /// Chooses the scenario and the files of the next execution.
    fn choose(&mut self, plan: &mut Plan) {
        let mut stream = Stream::new(mix(self.key, self.run));
        // If a scenario that deletes a file has none left, another one is drawn; that is rare in a
        // workload whose users create more files than they delete. It ends, because a workload has at
        // least one scenario that deletes nothing.
        let mut scenario = 0;
        for attempt in 0.. {
            let unit = stream.unit();
            scenario = self
                .shared
                .ends
                .iter()
                .position(|&end| unit < end)
                .unwrap_or(self.shared.ends.len() - 1);
            if attempt > 100 {
                let takes = |scenario: &Scenario| {
                    scenario.picks.iter().any(|pick| matches!(pick.how, PickHow::Take { .. }))
                };
                scenario = self
                    .shared
                    .workload
                    .scenarios
                    .iter()
                    .position(|scenario| !takes(scenario))
                    .unwrap_or(0);
            }
            if self.pick(scenario, &mut stream, &mut plan.files) || attempt > 100 {
                break;
            }
        }
        self.advance(scenario, plan);
    }

    fn advance(&mut self, scenario: usize, plan: &mut Plan) {
        plan.scenario = scenario;
        plan.user = self.user;
        plan.run = self.run;
        plan.due = self.due;
        self.run += 1;
        self.due = self.shared.schedule.next(self.user, self.run, self.due);
    }

    /// Picks the files of an execution; false, with nothing changed, if one is not available.
    fn pick(&mut self, scenario: usize, stream: &mut Stream, files: &mut Vec<FileRef>) -> bool {
        files.clear();
        let Some(scenario) = self.shared.workload.scenarios.get(scenario) else { return false };
        let set = &self.shared.files;
        let mut stocks = Vec::new();
        for pick in &scenario.picks {
            let file = match &pick.how {
                PickHow::Any { pool } => {
                    let files = set.pools().get(*pool).map_or(0, |pool| pool.files());
                    Some(set.file(self.user, *pool, stream.below(u64::from(files)) as u32))
                }
                PickHow::Make { pool } => {
                    let keep = set.pools().get(*pool).map_or(1, |pool| u64::from(pool.keep));
                    self.stocks.get_mut(*pool).map(|stock| {
                        stocks.push((*pool, *stock));
                        let made = stock.made;
                        stock.made += 1;
                        // One more than the limit overwrites the oldest.
                        stock.first = stock.first.max(stock.made.saturating_sub(keep));
                        set.new_file(self.user, *pool, made)
                    })
                }
                PickHow::Take { pools } => pools.iter().find_map(|&pool| {
                    let of = set.pools().get(pool)?;
                    let stock = self.stocks.get_mut(pool)?;
                    let was = *stock;
                    let first = stock.first;
                    let is_new = of.class == FileClass::New;
                    if first >= if is_new { stock.made } else { u64::from(of.files()) } {
                        return None;
                    }
                    stock.first += 1;
                    stocks.push((pool, was));
                    Some(if is_new {
                        set.new_file(self.user, pool, first)
                    } else {
                        set.file(self.user, pool, first as u32)
                    })
                }),
            };
            match file {
                Some(file) => files.push(file),
                None => {
                    for (pool, was) in stocks.into_iter().rev() {
                        self.stocks[pool] = was;
                    }
                    files.clear();
                    return false;
                }
            }
        }
        true
    }
}

impl Plan {
    /// The workload.
    pub fn workload(&self) -> &Arc<Workload> {
        &self.workload
    }

    /// The scenario, with its steps.
    pub fn scenario(&self) -> &Scenario {
        &self.workload.scenarios[self.scenario]
    }

    /// Its number in the workload.
    pub fn scenario_index(&self) -> usize {
        self.scenario
    }

    /// The user's number.
    pub fn user(&self) -> u64 {
        self.user
    }

    /// The run's number, counted by user from 0.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// When it is due, counted from the user's begin.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// A path below the share's root with `\`, or a search pattern.
    pub fn path(&self, id: PathId) -> &str {
        let index = usize::from(id.0);
        let start = index
            .checked_sub(1)
            .and_then(|before| self.path_ends.get(before))
            .copied()
            .unwrap_or(0);
        let end = self.path_ends.get(index).copied().unwrap_or(start);
        self.paths.get(start as usize..end as usize).unwrap_or_default()
    }

    /// A file that the execution uses.
    pub fn file(&self, pick: PickId) -> &FileRef {
        &self.files[usize::from(pick.0)]
    }

    /// All files that the execution uses.
    pub fn files(&self) -> &[FileRef] {
        &self.files
    }

    /// A length in bytes.
    pub fn length(&self, length: Length) -> u64 {
        match length {
            Length::Of(pick) => self.file(pick).bytes,
            Length::Bytes(bytes) => bytes,
        }
    }

    /// Where a transfer is in the file and how many requests it takes.
    pub fn amount(&self, transfer: &Transfer) -> Amount {
        Amount::of_file(transfer, self.file(transfer.file).bytes)
    }

    fn resolve(&mut self, set: &FileSet, home: &str) {
        self.names.clear();
        self.name_ends.clear();
        for file in &self.files {
            set.push_folder(&mut self.names, file);
            let folder = self.names.len() as u32;
            set.push_name(&mut self.names, self.user, file);
            self.name_ends.push([folder, self.names.len() as u32]);
        }
        let mut paths = std::mem::take(&mut self.paths);
        let mut ends = std::mem::take(&mut self.path_ends);
        paths.clear();
        ends.clear();
        for template in &self.scenario().paths {
            template.render(&mut paths, home, self);
            ends.push(paths.len() as u32);
        }
        self.paths = paths;
        self.path_ends = ends;
    }
}

impl Amount {
    /// A transfer of a file of the given size.
    pub fn of_file(transfer: &Transfer, file_bytes: u64) -> Amount {
        let rest = file_bytes.saturating_sub(transfer.offset_bytes);
        let bytes = rest.min(transfer.limit_bytes.unwrap_or(u64::MAX));
        let requests = bytes.div_ceil(u64::from(transfer.block_bytes.max(1)));
        Amount { offset_bytes: transfer.offset_bytes, bytes, requests }
    }

    /// Offset and length of each request.
    pub fn blocks(self, block_bytes: u32) -> impl Iterator<Item = (u64, u32)> {
        let block = u64::from(block_bytes.max(1));
        (0..self.requests).map(move |number| {
            let done = number * block;
            (self.offset_bytes + done, (self.bytes - done).min(block) as u32)
        })
    }
}

impl Values for Plan {
    fn push(&self, out: &mut String, pick: PickId, field: Field) {
        let index = usize::from(pick.0);
        let start = index
            .checked_sub(1)
            .and_then(|before| self.name_ends.get(before))
            .map_or(0, |ends| ends[1]);
        let [folder, end] = self.name_ends.get(index).copied().unwrap_or([start, start]);
        let text =
            |from: u32, to: u32| self.names.get(from as usize..to as usize).unwrap_or_default();
        let (folder, name) = (text(start, folder), text(folder, end));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        match field {
            Field::Path => {
                out.push_str(folder);
                if !folder.is_empty() {
                    out.push('\\');
                }
                out.push_str(name);
            }
            Field::Dir => out.push_str(folder),
            Field::Name => out.push_str(name),
            Field::Stem => out.push_str(stem),
            Field::Extension => out.push_str(extension),
        }
    }

    fn run(&self) -> u64 {
        self.run
    }
}
