//! `smbscope load` without a subcommand: arguments to a plan, and the output of the run.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use smbscope_analysis::summary::LoadState;
use smbscope_load::run::{Pace, Progress};
use smbscope_load::workload::Planner;
use smbscope_report::format;
use smbscope_report::load::capacity::{failure_lines, scenario_lines, step_line, steps_header};
use smbscope_report::load::state::load_sentence;

use super::args::Run;
use super::display::Display;
use super::target::Destination;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::measure::describe::About;
use crate::pipeline::measure::run as pipeline;
use crate::pipeline::measure::run::{
    Observer, RunOutcome, RunPlan, SearchPlan, StepDone, server_gone,
};
use crate::{settings, terminal};

/// Most kinds of unexpected replies that are printed at the end.
const UNEXPECTED_SHOWN: usize = 10;
/// Most users with the same problem who are named at the end.
const REFUSED_SHOWN: usize = 20;

/// Runs users and prints the results.
pub fn run(args: &Run, verbosity: Verbosity) -> anyhow::Result<()> {
    let plan = plan(args, verbosity)?;
    let out = plan.out.clone();
    let name = plan.planner.workload().name.clone();
    let mut screen = Screen {
        args,
        verbosity,
        display: None,
        output: Output::stdout(),
        failed: None,
        has_header: false,
    };
    if args.record.format == TextFormat::Text {
        screen.preface(args)?;
    }
    let outcome = pipeline::run(plan, &mut screen)?;
    screen.end(&outcome, &name)?;
    for (what, count) in outcome.unexpected.iter().take(UNEXPECTED_SHOWN) {
        let times = if *count == 1 { "time" } else { "times" };
        verbosity.say(&format!("{count} {times}: {what}"));
    }
    for line in refused(&outcome.refused) {
        verbosity.say(&line);
    }
    let assessed = assess(&outcome, args.record.fail_above);
    outcome.written?;
    if let Some(out) = &out {
        let out = out.display();
        verbosity.say(&format!("recorded in {out}: smbscope report {out} --html report.html"));
    }
    if interrupt::asked() {
        let message = "interrupted; the results so far are shown and recorded";
        return Err(Failure::new(Code::Interrupted, message).into());
    }
    if outcome.server_gone_ns.is_some() {
        return Err(server_gone().into());
    }
    assessed
}

/// Fails if users could not log on, or if more than `limit` percent of the answer's scenarios failed.
fn assess(outcome: &RunOutcome, limit: f64) -> anyhow::Result<()> {
    let failed = outcome.load.outcomes().failed_share();
    let why = if failed * 100.0 > limit {
        format!("{} of the scenarios failed (--fail-above {limit})", format::share(failed))
    } else if !outcome.refused.is_empty() {
        let users = format::count(outcome.refused.len() as u64);
        format!("users that the server refused to log on: {users}")
    } else {
        return Ok(());
    };
    Err(Failure::new(Code::LoadFailed, why).into())
}

/// Users whom the server refused, by reason.
fn refused(users: &[(String, String)]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, reason) in users {
        reasons.entry(reason).or_default().push(name);
    }
    let line = |(reason, names): (&str, Vec<&str>)| {
        let listed = names.iter().take(REFUSED_SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(REFUSED_SHOWN) {
            0 => String::new(),
            more => format!(" and {} more", format::count(more as u64)),
        };
        format!("the server refused to log on {listed}{more}: {reason}")
    };
    reasons.into_iter().map(line).collect()
}

/// What the arguments ask for.
fn plan(args: &Run, verbosity: Verbosity) -> anyhow::Result<RunPlan> {
    let searches = args.search.find_capacity || !args.search.steps.is_empty();
    if searches && args.course.shard.count > 1 {
        return Err(Failure::usage(
            "--find-capacity and --steps work on one machine only: machines that share a run (--shard) do not know each other's steps",
        ));
    }
    if !args.search.max_response.is_empty() && !searches {
        return Err(Failure::usage("--max-response needs --find-capacity or --steps"));
    }
    let mut place = args.place.resolve()?;
    let (workload, workload_text) = args.what.load()?;
    let config = args.client.config(place.kerberos.clone())?;
    place.follow_links(&config, args.client.timeout, verbosity)?;
    let Destination { target, credentials, line, smbd, logons, .. } = place;
    let planner = Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?);
    let site = settings::get();
    // They belong to the site's own server only.
    let is_own = args.place.lab.is_none() && args.place.target.is_none();
    let metrics = match args.record.metrics.as_slice() {
        [] if is_own => site.metrics.clone(),
        given => given.to_vec(),
    };
    let limits = match args.search.max_response.as_slice() {
        [] if searches => site.limits()?,
        given => given.to_vec(),
    };
    let search = searches.then_some(SearchPlan {
        points: args.search.steps.clone(),
        start_users: args.search.start_users,
        max_users: args.search.steps.iter().copied().max().or(args.search.max_users),
        resolution_percent: args.search.resolution,
        repeats: args.search.repeats,
        // A load point is compared with others.
        full_steps: args.search.full_steps || !args.search.steps.is_empty(),
    });
    Ok(RunPlan {
        target,
        credentials,
        config,
        compounds: args.client.compounds.choice(),
        planner,
        about: About {
            workload: args.what.workload.clone(),
            workload_text,
            seed: args.what.seed,
            scale: args.what.scale,
            user_names: (args.place.logon.users_file().is_none())
                .then(|| args.place.logon.user().to_owned()),
            line,
        },
        cache: args.client.client_cache,
        timeout: args.client.timeout,
        users: args.course.users,
        limits,
        shard: args.course.shard,
        pace: Pace {
            ramp_per_second: args.course.ramp,
            warm_up: args.course.warm_up,
            cool_down: match search {
                Some(_) => Duration::ZERO,
                None => args.course.cool_down,
            },
            closed: args.course.closed,
            grace: Pace::GRACE,
            outage: args.course.outage.unwrap_or(match search {
                Some(_) => Pace::OUTAGE,
                None => Duration::MAX,
            }),
        },
        search,
        duration: args.course.duration,
        start_at: args.course.start_at,
        threads: args.course.threads,
        smbd,
        // A recorder then has the names of its sessions; the run works without.
        logons: logons
            .and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok()),
        metrics,
        out: args.record.out.clone(),
        force: args.record.force,
    })
}

/// Shows a run: progress on standard error, a line for each step on standard output.
struct Screen<'a> {
    args: &'a Run,
    verbosity: Verbosity,
    display: Option<Display>,
    output: Output,
    /// The first error of the output; the run continues.
    failed: Option<anyhow::Error>,
    has_header: bool,
}

impl Screen<'_> {
    fn preface(&mut self, args: &Run) -> anyhow::Result<()> {
        if args.what.scale != 1.0 {
            let scale = args.what.scale;
            self.output.text(&format!("The file set is scaled by {scale}.\n\n"))?;
        }
        if args.client.rtt.is_some() || args.client.distance.is_some() {
            self.output.text(
                "Replies are delayed in the client (--rtt, --distance): convenient, but not a real link.\n\n",
            )?;
        }
        Ok(())
    }

    /// Prints lines while the display is hidden.
    fn print(&mut self, text: &str) {
        let output = &mut self.output;
        let mut written = Ok(());
        let write = || {
            written = output.text(text).and_then(|()| Ok(output.flush()?));
        };
        match &self.display {
            Some(display) => display.suspend(write),
            None => {
                let mut write = write;
                write();
            }
        }
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    /// Prints the result.
    fn end(mut self, outcome: &RunOutcome, workload: &str) -> anyhow::Result<()> {
        if let Some(display) = self.display.take() {
            display.end();
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let table = &outcome.table;
        if self.args.record.format == TextFormat::Json {
            let mut value = serde_json::to_value(table)?;
            value["overall_response_ns"] = outcome.overall_response_ns.into();
            value["server_gone_ns"] = outcome.server_gone_ns.into();
            self.output.text(&smbscope_report::json_text(&value))?;
            return self.output.finish();
        }
        if table.answer.is_none() && table.rows.is_empty() {
            self.output
                .text("The run ended before the measured window: nothing was measured.\n")?;
            return self.output.finish();
        }
        if table.answer.is_none() {
            self.output.text(&format!("\n{}\n", load_sentence(&outcome.load)))?;
        }
        if let Some(answer) = &table.answer {
            // Too few scenarios, or too many that failed, are not an answer.
            let sentence = match outcome.load.state() {
                LoadState::TooFew | LoadState::Failing | LoadState::Refused => {
                    load_sentence(&outcome.load)
                }
                _ => answer.sentence(),
            };
            self.output.text(&format!("\n{sentence}\n"))?;
            if let Some(overall) = outcome.overall_response_ns {
                let overall = format::duration(overall);
                self.output.text(&format!(
                    "Overall response time of operations up to there (as SPECstorage defines it): {overall}\n"
                ))?;
            }
        }
        let style = self.output.bold();
        if let Some(users) = outcome.users.filter(|_| !outcome.scenarios.is_empty()) {
            let from = if self.args.course.closed { "their begin" } else { "the scheduled time" };
            let word = if users == 1 { "user" } else { "users" };
            self.output.text(&format!(
                "\n{workload} with {users} {word}, response times from {from}:\n"
            ))?;
            self.output.text(&scenario_lines(&outcome.scenarios, style))?;
        }
        let failures = failure_lines(&outcome.failures, style, terminal::width());
        if !failures.is_empty() {
            self.output.text(&format!("\nScenarios that failed, in all phases:\n{failures}"))?;
        }
        self.output.finish()
    }
}

impl Observer for Screen<'_> {
    fn say(&mut self, text: &str) {
        match &self.display {
            Some(display) => display.say(text),
            None => self.verbosity.say(text),
        }
    }

    fn begin(&mut self, scenarios_per_user_second: f64) {
        self.display = Some(Display::begin(self.verbosity, scenarios_per_user_second));
    }

    fn progress(&mut self, progress: &Progress, steps_left: Option<u64>) {
        let course = &self.args.course;
        if let Some(display) = &mut self.display {
            display.progress(progress, steps_left, course.warm_up, course.ramp);
        }
    }

    fn step(&mut self, step: &StepDone<'_>) {
        let header = if std::mem::replace(&mut self.has_header, true) {
            String::new()
        } else {
            steps_header() + "\n"
        };
        let line = step_line(step.row, &step.limits);
        match self.args.record.format {
            TextFormat::Text => self.print(&format!("{header}{line}\n")),
            // Standard output has the JSON alone.
            TextFormat::Json => self.say(&format!("{header}{line}")),
        }
    }
}
