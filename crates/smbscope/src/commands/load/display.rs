//! Progress while users run: a live block on a terminal, otherwise a line every ten seconds.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use smbscope_load::run::Progress;
use smbscope_report::format;
use smbscope_tables::run::WARM_UP;

use crate::options::Verbosity;
use crate::terminal;

/// Time between two lines if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Most kinds of errors in the live block.
const ERRORS_SHOWN: usize = 3;

/// Shows the progress of a run.
pub struct Display {
    bar: Option<ProgressBar>,
    verbosity: Verbosity,
    line: Instant,
    operations: u64,
    last: Instant,
    /// Scheduled executions per second and user.
    rate_per_user: f64,
}

impl Display {
    /// Starts. `rate_per_user` is the number of scheduled executions per second and user.
    pub fn begin(verbosity: Verbosity, rate_per_user: f64) -> Display {
        let live = !verbosity.quiet && !verbosity.no_progress && terminal::stderr_is_terminal();
        let bar = live.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        let now = Instant::now();
        Display { bar, verbosity, line: now, operations: 0, last: now, rate_per_user }
    }

    /// Prints a separate line.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.verbosity.say(text)),
            None => self.verbosity.say(text),
        }
    }

    /// Does something while the block is hidden.
    pub fn suspend(&self, work: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    /// Shows the progress of a step, and when the search probably ends: `steps_left` steps (the running
    /// one included) with this warm-up and `ramp` logons per second.
    pub fn progress(
        &mut self,
        progress: &Progress,
        steps_left: Option<u64>,
        warm_up: Duration,
        ramp: f64,
    ) {
        let now = Instant::now();
        let operations = progress.tally.operations();
        let seconds = (now - self.last).as_secs_f64().max(1e-3);
        // A phase starts with an empty tally.
        let rate = operations.saturating_sub(self.operations) as f64 / seconds;
        let shown = match &self.bar {
            Some(bar) => {
                let end = search_end(progress, steps_left, warm_up, ramp);
                bar.set_message(block(progress, rate, self.rate_per_user) + &end);
                true
            }
            None if now - self.line >= LINE_EVERY => {
                self.line = now;
                let end = search_end(progress, steps_left, warm_up, ramp);
                self.verbosity.say(&(line(progress, rate, self.rate_per_user) + &end));
                true
            }
            None => false,
        };
        if shown {
            (self.operations, self.last) = (operations, now);
        } else if operations < self.operations {
            self.operations = 0;
        }
    }

    /// Clears the block.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The expected end of a search, as text that follows the progress; nothing without a search.
fn search_end(
    progress: &Progress,
    steps_left: Option<u64>,
    warm_up: Duration,
    ramp: f64,
) -> String {
    let Some(steps) = steps_left else { return String::new() };
    let ramp = Duration::from_secs_f64(progress.step.users as f64 / ramp.max(0.01));
    let whole = ramp + warm_up + Duration::from_nanos(progress.step.duration_ns.max(0) as u64);
    let passed = match progress.phase {
        WARM_UP => progress.elapsed,
        _ => ramp + warm_up + progress.elapsed,
    };
    let left =
        whole.saturating_sub(passed) + whole * u32::try_from(steps.saturating_sub(1)).unwrap_or(0);
    let left = format::duration(i64::try_from(left.as_nanos()).unwrap_or(i64::MAX));
    let steps =
        if steps == 1 { "the last step".to_owned() } else { format!("about {steps} steps") };
    format!("; search: {steps} and {left} left")
}

fn times(progress: &Progress) -> String {
    let response = progress.tally.response();
    let time = |share| response.quantile_ns(share).map_or("-".to_owned(), format::duration);
    format!("p50 {}, p95 {}, p99 {}", time(0.5), time(0.95), time(0.99))
}

/// Scenarios per second, averaged over the phase: the last second alone would fluctuate.
fn scenarios(progress: &Progress) -> f64 {
    progress.tally.ended() as f64 / progress.elapsed.as_secs_f64().max(1e-3)
}

fn errors(progress: &Progress) -> String {
    let failures = &progress.tally.scenario_failures;
    if failures.total() == 0 {
        return "no errors".to_owned();
    }
    let ranked = failures.ranked();
    let named: Vec<String> = ranked
        .iter()
        .take(ERRORS_SHOWN)
        .map(|(failure, count)| format!("{} {}", format::count(*count), failure.name()))
        .collect();
    let more = if ranked.len() > ERRORS_SHOWN { ", ..." } else { "" };
    format!("errors: {}{more}", named.join(", "))
}

fn cpu(progress: &Progress) -> String {
    let late = progress.client.late_ns.map_or("-".to_owned(), format::duration);
    match progress.client.cpu_percent {
        Some(percent) => format!("client CPU {percent:.0} %, timers {late} late"),
        None => format!("timers {late} late"),
    }
}

fn block(progress: &Progress, operations: f64, rate_per_user: f64) -> String {
    let Progress { step, phase, elapsed, length, users, now, .. } = progress;
    let warning = if progress.client.limited() { "  THE CLIENT IS THE BOTTLENECK" } else { "" };
    format!(
        "step {}, {phase}: {:.0} of {:.0} s\n\
         users      {users} of {} started, {} behind schedule\n\
         scenarios  {:.1}/s (schedule {:.1}/s), {} open\n\
         response   {}\n\
         operations {operations:.0}/s; {}\n\
         {}{warning}",
        step.step,
        elapsed.as_secs_f64(),
        length.as_secs_f64(),
        now.users,
        now.users_behind,
        scenarios(progress),
        *users as f64 * rate_per_user,
        now.open(),
        times(progress),
        errors(progress),
        cpu(progress),
    )
}

fn line(progress: &Progress, operations: f64, rate_per_user: f64) -> String {
    let Progress { step, phase, elapsed, length, users, now, .. } = progress;
    format!(
        "step {} {phase} {:.0}/{:.0} s: {users} users, {} behind; {:.1} scenarios/s (schedule {:.1}); {}; {operations:.0} operations/s; {}; {}",
        step.step,
        elapsed.as_secs_f64(),
        length.as_secs_f64(),
        now.users_behind,
        scenarios(progress),
        *users as f64 * rate_per_user,
        times(progress),
        errors(progress),
        cpu(progress),
    )
}
