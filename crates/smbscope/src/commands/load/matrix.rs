//! `smbscope load --matrix`: which direction, distance and block size is slow, at one glance.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use serde_json::json;
use smbscope_load::capacity::{Purpose, Step};
use smbscope_load::client::Host;
use smbscope_load::clock::Clock;
use smbscope_load::recorder::Recorder;
use smbscope_load::run::{Engine, Pace, Parts};
use smbscope_load::workload::Planner;
use smbscope_report::format;
use tokio::sync::watch;

use super::args::Run;
use super::place::Place;
use crate::exit::Failure;
use crate::format::{Align, Column, TextFormat, lines};
use crate::interrupt;
use crate::options::Talk;
use crate::output::Output;

/// One cell.
struct Cell {
    scenario: String,
    rtt: Duration,
    block_bytes: u64,
    bytes_per_s: f64,
    n: u64,
    error: Option<String>,
}

/// Measures all cells and prints the table.
pub fn run(args: &Run, talk: Talk) -> anyhow::Result<()> {
    let (workload, _) = args.what.load()?;
    if !workload
        .scenarios
        .iter()
        .any(|scenario| scenario.name == "Upload" || scenario.name == "Download")
    {
        return Err(Failure::usage("--matrix copies large files: give --workload bulk-copy"));
    }
    // Once for all cells: a password may be asked for.
    let place = args.place.resolve()?;
    let mut cells = Vec::new();
    for scenario in workload.scenarios.iter().map(|scenario| scenario.name.clone()) {
        for &rtt in &args.matrix.matrix_rtt {
            for &block_bytes in &args.matrix.matrix_block {
                interrupt::check()?;
                talk.say(&format!(
                    "{scenario}, round trip {} longer, blocks of {}",
                    format::duration(i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX)),
                    format::bytes(block_bytes)
                ));
                cells.push(cell(args, place.clone(), &scenario, rtt, block_bytes)?);
            }
        }
    }
    print(args, &cells)
}

fn cell(
    args: &Run,
    place: Place,
    scenario: &str,
    rtt: Duration,
    block_bytes: u64,
) -> anyhow::Result<Cell> {
    let Place { target, credentials, kerberos, .. } = place;
    let (workload, _) = args.what.with_block(Some(block_bytes))?;
    let workload = workload.only(&[scenario])?;
    let mut config = args.client.config(kerberos)?;
    config.delay += rtt;
    let planner = Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?);
    let (runtime, threads) = super::runtime(args.course.threads)?;
    let (sender, parts) = sync_channel(64);
    // Nobody keeps the rows.
    std::thread::spawn(move || parts.into_iter().for_each(drop));
    let (moved, error) = runtime.block_on(async {
        let host = Host::find(target, config, Clock::precise(), true).await?;
        let (_interrupt, interrupted) = watch::channel(false);
        let mut engine = Engine::new(Parts {
            run: "matrix".to_owned(),
            host: Arc::new(host),
            planner,
            recorder: Arc::new(Recorder::new("matrix", threads, sender)),
            credentials,
            cache: args.client.client_cache,
            shard: args.course.shard,
            pace: Pace {
                ramp_per_second: 1000.0,
                warm_up: Duration::ZERO,
                cool_down: Duration::ZERO,
                closed: true,
            },
            timeout: args.client.timeout.max(args.matrix.matrix_time * 4),
            threads,
            interrupted,
        });
        let step = Step {
            step: 1,
            users: 1,
            repeat: 1,
            purpose: Purpose::Confirm,
            duration_ns: i64::try_from(args.matrix.matrix_time.as_nanos()).unwrap_or(i64::MAX),
            may_end_early: false,
        };
        engine.step(step, false, |_| ()).await;
        let error = engine.unexpected().into_iter().next().map(|(what, _)| what);
        anyhow::Ok((engine.moved(), error))
    })?;
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
