//! `smbscope load --matrix`: a table of throughput by direction, round trip and block size.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use serde_json::json;
use smbscope_client::Host;
use smbscope_client::clock::Clock;
use smbscope_load::capacity::{Purpose, Step};
use smbscope_load::recorder::Recorder;
use smbscope_load::run::users::Shard;
use smbscope_load::run::{Engine, Pace, Parts};
use smbscope_load::workload::Planner;
use smbscope_report::format;
use tokio::sync::watch;

use super::args::Run;
use super::target::Destination;
use crate::exit::{Code, Failure};
use crate::format::{Align, Column, TextFormat, lines};
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::measure::preflight::check_first;
use crate::pipeline::measure::{runtime, unless_interrupted};

/// Round trips of a cell before its first block.
const BEFORE_THE_COPY: u32 = 20;

/// One cell.
struct Cell {
    scenario: String,
    rtt: Duration,
    block_bytes: u64,
    bytes_per_s: f64,
    n: u64,
    error: Option<String>,
}

/// Measures all cells and prints the table; if interrupted, prints the cells measured so far.
pub fn run(args: &Run, verbosity: Verbosity) -> anyhow::Result<()> {
    let (workload, _) = args.what.load()?;
    if !workload
        .scenarios
        .iter()
        .any(|scenario| scenario.name == "Upload" || scenario.name == "Download")
    {
        return Err(Failure::usage("--matrix copies large files: use --workload bulk-copy"));
    }
    // Once for all cells, because it may prompt for a password.
    let place = args.place.resolve()?;
    let scenarios: Vec<String> = workload.scenarios.iter().map(|it| it.name.clone()).collect();
    let (runtime, threads) = runtime(args.course.threads)?;
    let planner = Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?);
    let looking = async {
        let config = args.client.config(place.kerberos.clone())?;
        let host = Host::find(place.target.clone(), config, Clock::precise(), false).await?;
        check_first(args.client.timeout, host, &place.credentials, &planner).await
    };
    runtime.block_on(unless_interrupted(looking))?;
    let mut cells = Vec::new();
    for scenario in scenarios {
        for &rtt in &args.matrix.matrix_rtt {
            for &block_bytes in &args.matrix.matrix_block {
                verbosity.say(&format!(
                    "{scenario}, {} added to the round trip, blocks of {}",
                    format::duration(i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX)),
                    format::bytes(block_bytes)
                ));
                let measuring = cell(args, place.clone(), &scenario, rtt, block_bytes, threads);
                let measured = runtime.block_on(unless_interrupted(measuring));
                if interrupt::asked() {
                    print(args, &cells)?;
                    let message = "interrupted; the results so far are shown";
                    return Err(Failure::new(Code::Interrupted, message).into());
                }
                cells.push(measured?);
            }
        }
    }
    print(args, &cells)?;
    if cells.iter().all(|cell| cell.error.is_some()) {
        let message = "no cell could be measured; create the files to copy with `smbscope load prepare --workload bulk-copy`";
        return Err(Failure::new(Code::Runtime, message).into());
    }
    Ok(())
}

async fn cell(
    args: &Run,
    place: Destination,
    scenario: &str,
    rtt: Duration,
    block_bytes: u64,
    threads: usize,
) -> anyhow::Result<Cell> {
    let Destination { target, credentials, kerberos, .. } = place;
    let (workload, _) = args.what.with_block(Some(block_bytes))?;
    let workload = workload.only(&[scenario])?;
    let mut config = args.client.config(kerberos)?;
    config.delay += rtt;
    let planner = Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?);
    let (sender, parts) = sync_channel(64);
    // The rows are discarded.
    std::thread::spawn(move || parts.into_iter().for_each(drop));
    // Logon and open take about BEFORE_THE_COPY round trips before the copy starts.
    let time = args.matrix.matrix_time + config.delay * BEFORE_THE_COPY;
    let host = Host::find(target, config, Clock::precise(), true).await?;
    let (_interrupt, interrupted) = watch::channel(false);
    let mut engine = Engine::new(Parts {
        run: "matrix".to_owned(),
        host: Arc::new(host),
        planner,
        recorder: Arc::new(Recorder::new("matrix", threads, sender)),
        credentials,
        cache: args.client.client_cache,
        shard: Shard::ALL,
        pace: Pace {
            ramp_per_second: 1000.0,
            warm_up: Duration::ZERO,
            cool_down: Duration::ZERO,
            closed: true,
            // Blocks are measured, not files: a file may take longer than the cell.
            grace: Duration::ZERO,
        },
        timeout: args.client.timeout.max(time * 4),
        threads,
        interrupted,
    });
    let step = Step {
        step: 1,
        users: 1,
        repeat: 1,
        purpose: Purpose::Confirm,
        duration_ns: i64::try_from(time.as_nanos()).unwrap_or(i64::MAX),
        may_end_early: false,
    };
    engine.step(step, false, |_| ()).await;
    let moved = engine.moved();
    let mut error = engine.unexpected().into_iter().next().map(|(what, _)| what);
    if moved.bytes == 0 && error.is_none() {
        let time = format::duration(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        error = Some(format!("no block was transferred in {time}: use a longer --matrix-time"));
    }
    let took = moved.busy.as_secs_f64();
    Ok(Cell {
        scenario: scenario.to_owned(),
        rtt,
        block_bytes,
        bytes_per_s: if took > 0.0 { moved.bytes as f64 / took } else { 0.0 },
        n: moved.operations,
        error,
    })
}

fn print(args: &Run, cells: &[Cell]) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    if args.record.format == TextFormat::Json {
        let rows: Vec<_> = cells
            .iter()
            .map(|cell| {
                json!({
                    "scenario": cell.scenario,
                    "rtt_added_ns": cell.rtt.as_nanos() as u64,
                    "block_bytes": cell.block_bytes,
                    "bytes_per_second": cell.bytes_per_s,
                    "operations": cell.n,
                    "error": cell.error,
                })
            })
            .collect();
        output.text(&format!("{:#}\n", json!({ "matrix": rows })))?;
        return output.finish();
    }
    let mut columns = vec![
        Column { title: "direction".to_owned(), align: Align::Left },
        Column { title: "round trip added".to_owned(), align: Align::Right },
    ];
    for &block in &args.matrix.matrix_block {
        let title = format!("{} blocks", format::bytes(block));
        columns.push(Column { title, align: Align::Right });
    }
    let rows: Vec<Vec<String>> = cells
        .chunks(args.matrix.matrix_block.len().max(1))
        .filter_map(|row| {
            let first = row.first()?;
            let rtt = i64::try_from(first.rtt.as_nanos()).unwrap_or(i64::MAX);
            let mut texts = vec![first.scenario.clone(), format::duration(rtt)];
            texts.extend(row.iter().map(|cell| match &cell.error {
                Some(error) => error.clone(),
                None => format!("{}/s", format::bytes(cell.bytes_per_s as u64)),
            }));
            Some(texts)
        })
        .collect();
    let (bold, end) = output.bold();
    let text = lines(&columns, &rows, (&bold, end));
    output.text(&text)?;
    output.finish()
}
