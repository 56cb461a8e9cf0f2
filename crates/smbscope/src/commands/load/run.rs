//! A run of simulated users, with a given number or in search of the capacity.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use anyhow::Context as _;
use smbscope_client::Host;
use smbscope_client::clock::Clock;
use smbscope_counters::{Metrics, Proc, Processes, Sampler, Source};
use smbscope_load::capacity::interval::CONFIDENCE;
use smbscope_load::capacity::{Purpose, Step, StepResult, Table};
use smbscope_load::capacity::{Search, Settings};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::{Engine, Pace, Parts};
use smbscope_load::workload::Planner;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_tables::description::{Capacity, RunDescription};
use smbscope_tables::manifest::Kind;
use smbscope_tables::part::Part;
use smbscope_tables::run::LOAD_FORMAT;
use smbscope_tables::tables::Coverage;
use tokio::sync::watch;

use super::args::Run;
use super::describe::{describe, without_logon};
use super::display::Display;
use super::preflight::scout;
use super::target::Destination;
use super::unless_interrupted;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::interrupt;
use crate::options::Talk;
use crate::output::Output;

/// Parts that may wait for the disk.
const PARTS_WAITING: usize = 64;
/// Between two samples of the counters.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Batches of counters that may wait.
const SAMPLES_WAITING: usize = 256;
/// Unexpected answers that are told at the end.
const UNEXPECTED_SHOWN: usize = 10;

/// Runs users and prints what they showed.
pub fn run(args: &Run, talk: Talk) -> anyhow::Result<()> {
    if args.search.find_capacity && args.course.shard.count > 1 {
        return Err(Failure::usage(
            "--find-capacity is one machine's: machines that share a run (--shard) do not know each other's steps",
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
    let scouting = scout(args, &host, &credentials, &planner, &mut description);
    let most = runtime.block_on(unless_interrupted(scouting))?;
    let here: Vec<u64> = args.course.shard.users(most).collect();
    description.users_from = here.first().copied().unwrap_or(0);
    description.users_to = here.last().copied().unwrap_or(0);
    description.users_every = args.course.shard.count;
    description.users_total = most;
    // A run begins when it was agreed to, not when its machines were told.
    description.start_ns = clock.now().max(args.course.start_at.unwrap_or(i64::MIN));
    description.identify();
    description.recording = match description.shards {
        0 | 1 => description.run.clone(),
        _ => format!("{}-{}", description.run, description.shard),
    };
    let recording = description.recording.clone();
    let counters = sources(args, &host, smbd, &mut description)?;
    let (sender, parts) = sync_channel(PARTS_WAITING);
    let writer = Writing::begin(args, &description, parts)?;
    let recorder = Arc::new(Recorder::new(&recording, threads, sender));

    if let Some(start_at) = args.course.start_at {
        wait_until(start_at, &clock, talk)?;
    }
    let sampler = sample(counters, clock.clone(), &recorder)?;
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
    let mut display = Display::begin(talk, rate);
    let cannot_write = writer.failed.clone();
    let (table, engine) = runtime.block_on(async {
        tokio::spawn(async move {
            // A run that was to be recorded and no longer can be ends with what was measured.
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
            talk.say(&warning);
        }
    }
    let unexpected = engine.unexpected();
    recorder.finish();
    recorder.part(Part::Coverage(Box::new(coverage(&description, &recorder))));
    // The engine's users are gone, so that these are the last that hold the channel's other end.
    drop(engine);
    drop(recorder);
    let written = writer.end(description.clone());

    print(args, &table, planner.workload().as_ref())?;
    for (what, count) in unexpected.iter().take(UNEXPECTED_SHOWN) {
        let times = if *count == 1 { "time" } else { "times" };
        talk.say(&format!("{count} {times}: {what}"));
    }
    written?;
    if let Some(out) = &args.record.out {
        let out = out.display();
        talk.say(&format!("recorded in {out}: smbscope report {out} --html report.html"));
    }
    if interrupt::asked() {
        let message = "interrupted; what was measured until then is shown and recorded";
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
        let result = engine.step(step, false, |progress| display.tell(progress)).await;
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
        let result: StepResult = engine.step(step, cut, |progress| display.tell(progress)).await;
        let is_interrupted = engine.interrupted();
        if is_interrupted {
            search.interrupt();
        } else {
            search.report(&result);
        }
        // An interrupted step is shown as far as it came, and decides nothing.
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
                    "Replies were delayed in the client (--rtt, --distance): convenient, but no line.\n\n",
                )?;
            }
            if table.answer.is_none() && table.rows.iter().all(|row| row.duration_ns == 0) {
                output.text(
                    "It was interrupted before the measured window: nothing was measured.\n",
                )?;
                return output.finish();
            }
            output.text(&format!("{table}\n"))?;
            // With an answer the table has the response times at it already.
            if let (None, Some(row)) = (&table.answer, table.rows.last()) {
                let (name, users) = (&workload.name, row.users);
                output.text(&format!("{name} with {users} users, from the scheduled time:\n"))?;
                output.text(&table.scenarios(users))?;
            }
        }
    }
    output.finish()
}

/// Where the counters of client and server are read; nowhere when nothing is recorded.
fn sources(
    args: &Run,
    host: &Host,
    smbd: Option<u32>,
    description: &mut RunDescription,
) -> anyhow::Result<Vec<Box<dyn Source>>> {
    if args.record.out.is_none() {
        return Ok(Vec::new());
    }
    let local = host.addresses.iter().any(|address| is_local(address.ip()));
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(Proc::client(!local))];
    description.counter_sources.push("/proc of the client".to_owned());
    if local {
        let name = "smbd".to_owned();
        let server = match smbd {
            Some(pid) => Processes::Tree(pid, name),
            None => Processes::Named(name),
        };
        sources.push(Box::new(Proc::server(vec![server])));
        description.counter_sources.push("/proc of the server (this machine)".to_owned());
    }
    let several = args.record.metrics.len() > 1;
    for url in &args.record.metrics {
        let shown = without_logon(url);
        let source = Metrics::new(url, &[], several)
            .map_err(|error| Failure::usage(format!("--metrics: {error}")))?;
        sources.push(Box::new(source));
        description.counter_sources.push(shown);
    }
    Ok(sources)
}

/// Starts to sample them.
fn sample(
    sources: Vec<Box<dyn Source>>,
    clock: Clock,
    recorder: &Arc<Recorder>,
) -> anyhow::Result<Option<Sampler>> {
    if sources.is_empty() {
        return Ok(None);
    }
    let (sender, rows) = sync_channel(SAMPLES_WAITING);
    let sampler = Sampler::start(
        recorder.recording(),
        SAMPLE_EVERY,
        Arc::new(move || clock.now()),
        sources,
        &sender,
    )?;
    let recorder = Arc::downgrade(recorder);
    std::thread::Builder::new().name("counters".into()).spawn(move || {
        for rows in rows {
            match recorder.upgrade() {
                Some(recorder) => recorder.part(Part::Counters(rows)),
                None => break,
            }
        }
    })?;
    Ok(Some(sampler))
}

/// Whether an address is one of this machine's: nothing else can be bound to.
fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn wait_until(start_at: i64, clock: &Clock, talk: Talk) -> anyhow::Result<()> {
    let mut left = start_at - clock.now();
    if left < 0 {
        return Err(Failure::usage(format!(
            "--start-at lies {} s back: the machines of a run begin together",
            -left / 1_000_000_000
        )));
    }
    talk.say(&format!("beginning in {} s", left / 1_000_000_000));
    while left > 0 {
        interrupt::check()?;
        std::thread::sleep(Duration::from_nanos(left.min(50_000_000) as u64));
        left = start_at - clock.now();
    }
    Ok(())
}

/// The thread that takes parts: to a run folder, or nowhere.
struct Writing {
    thread: std::thread::JoinHandle<anyhow::Result<Option<DatasetWriter>>>,
    out: Option<std::path::PathBuf>,
    /// Nothing more can be written.
    failed: Arc<AtomicBool>,
}

impl Writing {
    fn begin(
        args: &Run,
        description: &RunDescription,
        parts: Receiver<Part>,
    ) -> anyhow::Result<Writing> {
        let out = args.record.out.clone();
        let mut writer = match &out {
            None => None,
            Some(out) => {
                let mut seed = ManifestSeed::now(Kind::Load, Vec::new());
                seed.runs.push(description.clone());
                let options =
                    WriteOptions { overwrite: args.record.force, ..WriteOptions::default() };
                let writer =
                    DatasetWriter::create(out, seed, options).with_context(|| cannot(out))?;
                Some(writer)
            }
        };
        let folder = out.clone();
        let failed = Arc::new(AtomicBool::new(false));
        let fails = failed.clone();
        let thread = std::thread::Builder::new().name("parts".into()).spawn(move || {
            for part in parts {
                if let (Some(writer), Some(out)) = (writer.as_mut(), folder.as_deref())
                    && let Err(error) = writer.part(part)
                {
                    fails.store(true, Ordering::Relaxed);
                    return Err(anyhow::Error::from(error).context(cannot_any_more(out)));
                }
            }
            Ok(writer)
        })?;
        Ok(Writing { thread, out, failed })
    }

    /// Waits for the last part and completes the folder.
    fn end(self, description: RunDescription) -> anyhow::Result<()> {
        let writer = match self.thread.join() {
            Ok(writer) => writer?,
            Err(_) => return Err(anyhow::anyhow!("the thread that writes the run stopped")),
        };
        if let (Some(mut writer), Some(out)) = (writer, self.out) {
            writer.describe(description).with_context(|| cannot(&out))?;
            writer.finish(!interrupt::asked()).with_context(|| cannot(&out))?;
        }
        Ok(())
    }
}

fn cannot(out: &Path) -> Failure {
    Failure::new(Code::Output, format!("{}: the run cannot be written", out.display()))
}

fn cannot_any_more(out: &Path) -> Failure {
    let message = format!(
        "{}: the run was ended, because it could not be written any more; what was measured until then is shown",
        out.display()
    );
    Failure::new(Code::Output, message)
}

/// The one coverage record of the run.
fn coverage(description: &RunDescription, recorder: &Recorder) -> Coverage {
    Coverage {
        recording: description.recording.clone(),
        format: LOAD_FORMAT.to_owned(),
        vantage: Some("client".to_owned()),
        vantage_reason: "the load generator is the client".to_owned(),
        resolution_ns: Some(1),
        start: Some(description.start_ns),
        end: description.end_ns,
        operations: recorder.operations(),
        connections: recorder.ended_connections(),
        ..Coverage::default()
    }
}
