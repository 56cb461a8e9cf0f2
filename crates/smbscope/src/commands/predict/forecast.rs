//! Predictions from recorded operations: reading, replaying, and whether the recording can answer.
//!
//! What is shown of one is another's ([`recorded`](super::recorded)).

use std::path::PathBuf;

use smbscope_analysis::predict::capacity::{Capacity, Demand, NoCapacity};
use smbscope_analysis::predict::changes::Change;
use smbscope_analysis::predict::combined_changes;
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{self, Lessons, Prediction, Replay};
use smbscope_analysis::predict::requirements::{lacks, lacks_sizes};
use smbscope_report::format;
use smbscope_store::source::{Request, Source};
use smbscope_store::{Part as Rows, Table};
use smbscope_tables::description::CLOSED;
use smbscope_tables::operation;
use smbscope_tables::run::Step;
use smbscope_tables::tables::{Connection, Tree};

use super::calibrate;
use super::waiting::{Asking, loaded, needs, refused, then};
use crate::exit::Failure;
use crate::interrupt;
use crate::options::Talk;
use crate::progress::Shown;

/// Share of blocks that were under way together without a warning.
const BESIDE: f64 = 0.1;

/// How many times as long as any recorded round trip a new one may be without a warning.
const FAR: f64 = 10.0;

/// Which changes, as they stand on a command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Asked {
    /// Show what this change would bring (smbscope predict --list has all); may be given several times.
    #[arg(
        long = "change",
        value_name = "CHANGE",
        help_heading = "Changes",
        value_parser = super::args::change
    )]
    pub changes: Vec<Change>,
    /// What signing and encryption cost the server: a file of `smbscope predict calibrate`.
    #[arg(long, value_name = "FILE", help_heading = "Changes")]
    pub calibration: Option<PathBuf>,
}

impl Asked {
    /// What they mean for a replay.
    fn plan(&self) -> anyhow::Result<Plan> {
        let calibration = self.calibration.as_deref().map(calibrate::read).transpose()?;
        let mut plan = Plan { calibration, ..Plan::default() };
        self.changes.iter().for_each(|change| change.plan(&mut plan));
        Ok(plan)
    }
}

/// What changes would bring, and how far that can be trusted.
pub struct Forecast {
    /// In the order in which they apply.
    pub changes: Vec<Change>,
    /// Before and after.
    pub prediction: Prediction,
    /// How long all users of a load run together were measured, s.
    pub users_s: Option<f64>,
    /// How many users the server carries today.
    pub capacity: Result<Capacity, NoCapacity>,
    /// The same with the changes, where they are known to change it.
    pub capacity_then: Option<Capacity>,
    /// What else comes of the changes, a sentence each.
    pub notes: Vec<String>,
    /// Where the prediction leaves what was measured, a sentence each.
    pub warnings: Vec<String>,
}

impl Forecast {
    /// Goes through the recording as it would have gone with the changes.
    pub fn read(
        source: &mut Source,
        asked: &Asked,
        in_detail: bool,
        talk: Talk,
    ) -> anyhow::Result<Forecast> {
        let changes = &asked.changes;
        if let Some(why) = combined_changes::apart(changes) {
            return Err(Failure::usage(why));
        }
        let mut plan = asked.plan()?;
        // The round trips must be known before the first operation.
        source.spool()?;
        let Context { connections, trees, unpaced, demand, users_s } = Context::read(source, talk)?;
        let capacity = demand.finish();
        let mut today = None;
        if plan.users.is_some() {
            let capacity = capacity.as_ref().map_err(|missing| refused(missing.sentence()))?;
            // What other steps waited is not today's.
            plan.window = Some(capacity.window);
            today = (capacity.steps > 1).then(|| {
                format!(
                    "Today is the step of {:.0} users: of those that were recorded the one with the most who kept \
                     their schedule.",
                    capacity.users_recorded
                )
            });
        }
        let told = |mut replay: Replay| {
            replay.connections(&connections);
            replay.trees(&trees);
            unpaced.iter().for_each(|recording| replay.unpaced(recording));
            replay
        };
        let mut lessons = Lessons::default();
        if plan.learns() {
            let replay = told(Replay::new(Plan::default(), lessons));
            lessons = through(source, &Plan::default(), replay, talk)?.lessons;
            if let Some(lacking) = lacks_sizes(changes, lessons.sizes) {
                return Err(Failure::usage(format!(
                    "--change {}: the inputs have not what that needs: {}; record with a second block size \
                     (load --block) and give both recordings",
                    lacking.change, lacking.what
                )));
            }
        }
        let replayed = |plan: &Plan| {
            let mut replay = told(Replay::new(plan.clone(), lessons.clone()));
            if in_detail {
                replay = replay.in_detail();
            }
            let prediction = through(source, plan, replay, talk)?;
            check(changes, plan, &prediction)?;
            anyhow::Ok(prediction)
        };
        let mut prediction = replayed(&plan)?;
        let then = then(&plan, &prediction);
        let capacity_then = match &capacity {
            Ok(capacity) if then.is_other() => Some(capacity.then(then)),
            _ => None,
        };
        let mut loads = Ok(Vec::new());
        if let Ok(capacity) = &capacity
            && let Some((asking, users)) = Asking::of(&plan, then, capacity)
        {
            let then = capacity_then.as_ref().unwrap_or(capacity);
            loads = asking.loads(capacity, then, users, &prediction)?;
        }
        let (loads, no_loads) = loads.map_or_else(|why| (Vec::new(), Some(why)), |of| (of, None));
        if let (false, Some((requests, _))) = (loads.is_empty(), prediction.of_execution()) {
            plan.waits = loads.iter().map(|load| load.wait(requests, plan.processors)).collect();
            prediction = replayed(&plan)?;
        }
        let has_load = plan.users.is_some() || capacity_then.is_some();
        let mut warnings = combined_changes::warnings(changes, has_load);
        warnings.extend(self::warnings(&plan, &prediction));
        warnings.extend(beside(&plan, &prediction));
        warnings.extend(no_loads);
        warnings.extend(changes.iter().filter_map(|change| beyond(change, &prediction)));
        let mut notes = notes(&plan, &prediction);
        notes.extend(today);
        notes.extend(capacity.as_ref().ok().and_then(|capacity| needs(then, capacity)));
        notes.extend(loads.iter().map(loaded));
        let changes = changes.to_vec();
        Ok(Forecast { changes, prediction, users_s, capacity, capacity_then, notes, warnings })
    }
}

/// What must be known before the first operation.
#[derive(Default)]
struct Context {
    connections: Vec<Connection>,
    /// Of continuously available shares.
    trees: Vec<Tree>,
    /// Recordings of load runs whose users follow no schedule.
    unpaced: Vec<String>,
    demand: Demand,
    users_s: Option<f64>,
}

impl Context {
    fn read(source: &Source, talk: Talk) -> anyhow::Result<Context> {
        let mut context = Context::default();
        let runs = source.runs();
        let unpaced = runs.into_iter().filter(|(run, _)| run.pacing == CLOSED);
        context.unpaced = unpaced.map(|(run, _)| run.recording).collect();
        let tables = vec![Table::Steps, Table::Counters, Table::Connections, Table::Trees];
        let parts = source.parts(&Request { tables, projection: Some(Vec::new()) })?;
        let _shown = Shown::begin(talk, parts.progress());
        for part in parts {
            match part? {
                Rows::Steps(rows) => {
                    let here =
                        |step: &Step| step.users_here as f64 * (step.end - step.start) as f64;
                    let users_s = rows.iter().map(here).sum::<f64>() / 1e9;
                    context.users_s = Some(context.users_s.unwrap_or(0.0) + users_s);
                    context.demand.steps(&rows);
                }
                Rows::Counters(rows) => context.demand.counters(&rows),
                Rows::Connections(rows) => context.connections.extend(rows),
                Rows::Trees(rows) => context.trees.extend(
                    rows.into_iter().filter(|row| row.continuous_availability == Some(true)),
                ),
                _ => {}
            }
            interrupt::check()?;
        }
        Ok(context)
    }
}

/// All of the recording through a replay.
fn through(
    source: &Source,
    plan: &Plan,
    mut replay: Replay,
    talk: Talk,
) -> anyhow::Result<Prediction> {
    let schema = operation::schema();
    let names = replay::columns(plan);
    let places = names.map(|name| schema.index_of(name)).collect::<Result<_, _>>()?;
    let tables = vec![Table::Scenarios, Table::Operations];
    let parts = source.parts(&Request { tables, projection: Some(places) })?;
    let _shown = Shown::begin(talk, parts.progress());
    for part in parts {
        match part? {
            Rows::Scenarios(rows) => replay.scenarios(&rows),
            Rows::Operations(batch) => replay.operations(&batch)?,
            _ => {}
        }
        interrupt::check()?;
    }
    Ok(replay.finish())
}

/// Whether the recording has what the changes need.
fn check(changes: &[Change], plan: &Plan, prediction: &Prediction) -> anyhow::Result<()> {
    if prediction.timed == 0 && prediction.left_out > 0 {
        return Err(Failure::usage(format!(
            "none of the {} operations of the inputs belongs to a scenario that was measured: nothing can be \
             predicted from them; let the load run go on to the end of a measured window",
            format::count(prediction.left_out)
        )));
    }
    if prediction.timed == 0 {
        return Err(Failure::usage(
            "the inputs hold no operation with a time of its own: nothing can be predicted from them",
        ));
    }
    if let Some(lacking) = lacks(changes, prediction) {
        return Err(Failure::usage(format!(
            "--change {}: the inputs have not what that needs: {}",
            lacking.change, lacking.what
        )));
    }
    if plan.is_other_line() && prediction.without_rtt == prediction.timed {
        return Err(Failure::usage(
            "no connection of the inputs has a round trip on both sides of where it was recorded, so \
             another line cannot be put in its place: record the TCP handshakes, or data in both \
             directions (a load run and `smbscope record --interface` have them)",
        ));
    }
    Ok(())
}

/// What changes do beside the times of operations.
fn notes(plan: &Plan, prediction: &Prediction) -> Vec<String> {
    let mut notes = Vec::new();
    let cached = prediction.cached;
    if plan.cache.is_some() {
        let all: u64 = prediction.sent.iter().map(|one| one.before).sum();
        notes.push(format!(
            "The clients' caches answer {} of {} operations; changes by others take away what they keep of \
             a directory {} times.",
            format::count(cached.answered),
            format::count(all),
            format::count(cached.breaks)
        ));
    }
    let is_other = |row: &replay::Row| row.count != row.count_after;
    if prediction.commands.iter().any(is_other) {
        notes.push(
            "Times are of today's operations: one that is not sent takes nothing then, and one that becomes several \
             requests takes what those take together."
                .to_owned(),
        );
    }
    if let Some(depth) = plan.depth {
        notes.push(format!(
            "{} of {} reads and writes continue another: of those up to {depth} are under way at once.",
            format::count(prediction.turned),
            format::count(prediction.moves.iter().sum())
        ));
    }
    match plan.compound {
        Some(true) => notes.push(format!(
            "{} requests go along with the one before.",
            format::count(prediction.chained)
        )),
        Some(false) => notes.push(format!(
            "{} members of compounds become messages of their own.",
            format::count(prediction.chained)
        )),
        None => {}
    }
    let learnt = prediction.lessons.stable;
    if (plan.write_through.is_some() || plan.replication.is_some()) && learnt.n > 0 {
        notes.push(format!(
            "{} operations had to be stable when they were answered: the server took {} for that (median).",
            format::count(prediction.stable),
            format::duration(learnt.median_ns as i64)
        ));
    }
    if plan.signing.is_some() || plan.encryption.is_some() {
        notes.push(format!(
            "{} operations are signed or encrypted in another way than today.",
            format::count(prediction.protected.changed)
        ));
    }
    if let (Some(_), Some(hits)) = (plan.cache_hit, prediction.lessons.hits) {
        let (hit, miss) = hits.medians_ns;
        notes.push(format!(
            "{:.1} % of the reads were in the server's memory: {} then, {} else (medians).",
            100.0 * hits.share,
            format::duration(hit as i64),
            format::duration(miss as i64)
        ));
    }
    if let Some(risk) = prediction.at_risk {
        // While it is written, not until it has arrived: a slow line makes nobody write less.
        let seconds = risk.writing_ns as f64 / 1e9;
        let rate = match seconds > 0.0 {
            true => {
                format!(" ({} in a second)", format::bytes((risk.written as f64 / seconds) as u64))
            }
            false => String::new(),
        };
        notes.push(format!(
            "{} are written{rate}: the second server lacks {} on average and {} at most, and is up to \
             {} behind. So much is lost if the first one is.",
            format::bytes(risk.written),
            format::bytes(risk.mean as u64),
            format::bytes(risk.most),
            format::duration(risk.longest_ns)
        ));
    }
    notes
}

/// Whether a change leaves the sizes that were recorded.
fn beyond(change: &Change, prediction: &Prediction) -> Option<String> {
    let [read, write] = prediction.lessons.sizes;
    let (block, of) = match *change {
        Change::Block(block) => (block, vec![read, write]),
        Change::ReadBlock(block) => (block, vec![read]),
        Change::WriteBlock(block) => (block, vec![write]),
        Change::Channels(channels) if prediction.further_channels > 0 => {
            return Some(format!(
                "Sessions of the inputs have {} connections beside their first: they stay, and each connection \
                 becomes {channels}.",
                format::count(prediction.further_channels)
            ));
        }
        _ => return None,
    };
    let of = of.iter().filter(|one| one.most_bytes > 0);
    let least = of.clone().map(|one| one.least_bytes).min()?;
    let most = of.map(|one| one.most_bytes).max()?;
    (!(least..=most).contains(&block)).then(|| {
        format!(
            "Reads and writes were recorded with {} to {}: a block of {} lies outside of what was \
             measured.",
            format::bytes(least),
            format::bytes(most),
            format::bytes(block)
        )
    })
}

/// Whether blocks were under way together, which other blocks are not in a replay.
fn beside(plan: &Plan, prediction: &Prediction) -> Option<String> {
    let learnt = prediction.lessons.sizes;
    let blocks = [plan.read_block, plan.write_block].into_iter().zip(learnt);
    let of =
        blocks.filter(|(block, _)| block.is_some()).map(|(_, one)| (one.continued, one.beside));
    let (all, beside) = of.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (beside as f64 > BESIDE * all as f64).then(|| {
        format!(
            "{} of {} reads and writes that continue another were under way together with it. Other blocks are \
             predicted one after the other, and take longer so than side by side.",
            format::count(beside),
            format::count(all)
        )
    })
}

/// Where the prediction leaves what was measured.
fn warnings(plan: &Plan, prediction: &Prediction) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some([_, _, largest]) = prediction.rtt_ns
        && largest.1 as f64 > FAR * largest.0 as f64
        && largest.0 != largest.1
    {
        warnings.push(format!(
            "The longest round trip that was recorded is {}: {} lies far outside of what was measured.",
            format::duration(largest.0),
            format::duration(largest.1)
        ));
    }
    let is_other_rtt = prediction.rtt_ns.is_some_and(|[_, one, _]| one.0 != one.1);
    let hangs_on_rtt = plan.window_bytes.is_some() || plan.loss > 0.0;
    if prediction.without_rtt > 0 && (is_other_rtt || hangs_on_rtt) {
        warnings.push(format!(
            "{} of {} operations belong to connections whose round trip is not known: {}.",
            format::count(prediction.without_rtt),
            format::count(prediction.timed),
            match is_other_rtt {
                true => "they keep the one that they have",
                false => "what would take further round trips is not in their time",
            }
        ));
    }
    let (before, after) = prediction.late;
    if after > before {
        let n = prediction.all_scenarios.as_ref().map_or(0, |row| row.count);
        warnings.push(format!(
            "{} of {} scenarios begin more than a second late (today {}): users cannot keep their \
             schedule, and response times grow with the length of the run.",
            format::count(after),
            format::count(n),
            format::count(before)
        ));
    }
    if prediction.executions_left_out > 0 {
        warnings.push(format!(
            "{} executions of scenarios were not followed: there are too many.",
            format::count(prediction.executions_left_out)
        ));
    }
    warnings
}
