//! A run of simulated users, with a given number or in search of the capacity.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_client::Host;
use smbscope_client::clock::Clock;
use smbscope_counters::Sampler;
use smbscope_load::capacity::interval::CONFIDENCE;
use smbscope_load::capacity::{Purpose, Step, StepResult, Table};
use smbscope_load::capacity::{Search, Settings};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::{Engine, Pace, Parts};
use smbscope_load::workload::Planner;
use smbscope_tables::Part;
use smbscope_tables::description::Capacity;
use tokio::sync::watch;

use super::args::Run;
use super::describe::describe;
use super::display::Display;
use super::target::Destination;
use super::unless_interrupted;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::measure::counters;
use crate::pipeline::measure::preflight::{Needed, check_users};
use crate::pipeline::measure::writer::{Writer, coverage};

/// Most parts that wait for the disk.
const PARTS_WAITING: usize = 64;
/// Most kinds of unexpected replies that are printed at the end.
const UNEXPECTED_SHOWN: usize = 10;

/// Runs users and prints the results.
pub fn run(args: &Run, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.search.find_capacity && args.course.shard.count > 1 {
        return Err(Failure::usage(
            "--find-capacity works on one machine only: machines that share a run (--shard) do not know each other's steps",
        ));
    }
    let Destination { target, credentials, kerberos, line, smbd } = args.place.resolve()?;
    let (workload, text) = args.what.load()?;
    let config = args.client.config(kerberos)?;
    let planner = Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?);
    let (runtime, threads) = super::runtime(args.course.threads)?;
    let clock = runtime.block_on(async { Clock::precise() });
    let finding = async { Ok(Host::find(target, config, clock.clone(), true).await?) };
    let host = Arc::new(runtime.block_on(unless_interrupted(finding))?);

    let mut description = describe(args, &host, &planner, &text);
    description.line = line;
    let needed = match (args.search.find_capacity, args.search.max_users) {
        (false, _) => Needed::Users(args.course.users),
        (true, Some(most)) => Needed::Users(most),
        (true, None) => Needed::AllPrepared,
    };
    let needed = (args.client.timeout, args.course.shard, needed);
    let checking = check_users(needed, &host, &credentials, &planner, &mut description);
    let most = runtime.block_on(unless_interrupted(checking))?;
    let here: Vec<u64> = args.course.shard.users(most).collect();
    description.users_from = here.first().copied().unwrap_or(0);
    description.users_to = here.last().copied().unwrap_or(0);
    description.users_every = args.course.shard.count;
    description.users_total = most;
    // A run starts at the agreed time, not when its machines are started.
    description.start_ns = clock.now().max(args.course.start_at.unwrap_or(i64::MIN));
    description.identify();
    description.recording = match description.shards {
        0 | 1 => description.run.clone(),
        _ => format!("{}-{}", description.run, description.shard),
    };
    let recording = description.recording.clone();
    let counters = match &args.record.out {
        Some(_) => counters::sources(&args.record.metrics, &host, smbd, &mut description)?,
        None => Vec::new(),
    };
    let (sender, parts) = sync_channel(PARTS_WAITING);
    let writer = Writer::begin(args.record.out.clone(), args.record.force, &description, parts)?;
    let recorder = Arc::new(Recorder::new(&recording, threads, sender));

    if let Some(start_at) = args.course.start_at {
        wait_until(start_at, &clock, verbosity)?;
    }
    let sampler = counters::sample(counters, clock.clone(), &recorder)?;
    let (interrupt, interrupted) = watch::channel(false);
    let engine = Engine::new(Parts {
        run: description.run.clone(),
        host: host.clone(),
        planner: planner.clone(),
        recorder: recorder.clone(),
        credentials,
        cache: args.client.client_cache,
        shard: args.course.shard,
        pace: Pace {
            ramp_per_second: args.course.ramp,
            warm_up: args.course.warm_up,
            cool_down: if args.search.find_capacity {
                Duration::ZERO
            } else {
                args.course.cool_down
            },
            closed: args.course.closed,
            grace: Pace::GRACE,
        },
        timeout: args.client.timeout,
        threads,
        interrupted,
    });
    let rate = 1.0 / planner.workload().mean_interval().as_secs_f64();
    let mut display = Display::begin(verbosity, rate);
    let cannot_write = writer.failed.clone();
    let (table, engine) = runtime.block_on(async {
        tokio::spawn(async move {
            // If the recording cannot be written any more, the run ends with what was measured.
            while !interrupt::asked() && !cannot_write.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            interrupt.send_replace(true);
        });
        course(args, most, engine, &mut display).await
    });
    display.end();

    description.end_ns = Some(clock.now());
    let limited = table.rows.iter().find(|row| row.limited_by_client);
    description.limited_by_client = limited.is_some();
    description.limited_reason = limited.and_then(|row| row.limited_reason.clone());
    if let Some(answer) = &table.answer {
        description.capacity = Some(Capacity {
            users: (answer.users > 0).then_some(answer.users),
            low: answer.interval.low.map(|low| low.floor() as u64),
            high: answer.interval.high.map(|high| high.ceil() as u64),
            confidence: Some(CONFIDENCE),
            reason: answer.sentence(),
        });
    }
    for report in sampler.map(Sampler::stop).unwrap_or_default() {
        description.counters_missed += report.failures;
        if let Some(warning) = report.warning() {
            verbosity.say(&warning);
        }
    }
    let unexpected = engine.unexpected();
    recorder.finish();
    recorder.part(Part::Coverage(Box::new(coverage(&description, &recorder))));
    // The engine's users have ended, so these are the last owners of the other end of the channel.
    drop(engine);
    drop(recorder);
    let written = writer.end(description.clone(), !interrupt::asked());

    print(args, &table, planner.workload().as_ref())?;
    for (what, count) in unexpected.iter().take(UNEXPECTED_SHOWN) {
        let times = if *count == 1 { "time" } else { "times" };
        verbosity.say(&format!("{count} {times}: {what}"));
    }
    written?;
    if let Some(out) = &args.record.out {
        let out = out.display();
        verbosity.say(&format!("recorded in {out}: smbscope report {out} --html report.html"));
    }
    if interrupt::asked() {
        let message = "interrupted; the results so far are shown and recorded";
        return Err(Failure::new(Code::Interrupted, message).into());
    }
    Ok(())
}

/// The steps of the run, one after another.
async fn course(
    args: &Run,
    most: u64,
    mut engine: Engine,
    display: &mut Display,
) -> (Table, Engine) {
    let duration_ns = i64::try_from(args.course.duration.as_nanos()).unwrap_or(i64::MAX);
    let mut table = Table::default();
    if !args.search.find_capacity {
        let step = Step {
            step: 1,
            users: args.course.users,
            repeat: 1,
            purpose: Purpose::Confirm,
            duration_ns,
            may_end_early: false,
        };
        let result = engine.step(step, false, |progress| display.progress(progress)).await;
        table.rows.push(result.row);
        return (table, engine);
    }
    let mut search = Search::new(Settings {
        resolution_percent: args.search.resolution,
        repeats: args.search.repeats,
        ..Settings::new(args.search.start_users, most, duration_ns)
    });
    display.say(&Table::header());
    while let Some(step) = search.next() {
        let cut = !args.search.full_steps;
        let result: StepResult =
            engine.step(step, cut, |progress| display.progress(progress)).await;
        let is_interrupted = engine.interrupted();
        if is_interrupted {
            search.interrupt();
        } else {
            search.report(&result);
        }
        // An interrupted step is shown, but does not influence the search.
        if result.row.duration_ns > 0 {
            display.say(&result.row.to_string());
            table.rows.push(result.row);
        }
        if is_interrupted {
            break;
        }
    }
    table.answer = Some(search.answer());
    (table, engine)
}

fn print(
    args: &Run,
    table: &Table,
    workload: &smbscope_load::workload::Workload,
) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    match args.record.format {
        TextFormat::Json => {
            let value = serde_json::to_value(table)?;
            output.text(&format!("{value:#}\n"))?;
        }
        TextFormat::Text => {
            if args.what.scale != 1.0 {
                let scale = args.what.scale;
                output.text(&format!("The file set is scaled by {scale}.\n\n"))?;
            }
            if args.client.rtt.is_some() || args.client.distance.is_some() {
                output.text(
                    "Replies were delayed in the client (--rtt, --distance): convenient, but not a real link.\n\n",
                )?;
            }
            if table.answer.is_none() && table.rows.iter().all(|row| row.duration_ns == 0) {
                output.text(
                    "The run was interrupted before the measured window: nothing was measured.\n",
                )?;
                return output.finish();
            }
            output.text(&format!("{table}\n"))?;
            // With an answer, the table already contains the response times at that load.
            if let (None, Some(row)) = (&table.answer, table.rows.last()) {
                let (name, users) = (&workload.name, row.users);
                output.text(&format!("{name} with {users} users, from the scheduled time:\n"))?;
                output.text(&table.scenarios(users))?;
            }
        }
    }
    output.finish()
}

fn wait_until(start_at: i64, clock: &Clock, verbosity: Verbosity) -> anyhow::Result<()> {
    let mut left = start_at - clock.now();
    if left < 0 {
        return Err(Failure::usage(format!(
            "--start-at is {} s in the past: all machines of a run must start together",
            -left / 1_000_000_000
        )));
    }
    verbosity.say(&format!("starting in {} s", left / 1_000_000_000));
    while left > 0 {
        interrupt::check()?;
        std::thread::sleep(Duration::from_nanos(left.min(50_000_000) as u64));
        left = start_at - clock.now();
    }
    Ok(())
}
