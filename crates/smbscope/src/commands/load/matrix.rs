//! `smbscope load --matrix`: a table of throughput by direction, round trip and block size.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use smbscope_client::Host;
use smbscope_client::clock::Clock;
use smbscope_load::workload::Planner;
use smbscope_report::format;

use super::args::Run;
use super::target::Destination;
use crate::exit::{Code, Failure};
use crate::format::{Align, Column, TextFormat, lines};
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::measure::matrix::{CellOutcome, CellPlan, cell};
use crate::pipeline::measure::preflight::check_first;
use crate::pipeline::measure::{runtime, unless_interrupted};

/// One cell.
struct Cell {
    scenario: String,
    rtt: Duration,
    block_bytes: u64,
    outcome: CellOutcome,
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
    let mut place = args.place.resolve()?;
    let config = args.client.config(place.kerberos.clone())?;
    place.follow_links(&config, args.client.timeout, verbosity)?;
    let scenarios: Vec<String> = workload.scenarios.iter().map(|it| it.name.clone()).collect();
    let (runtime, threads) = runtime(args.course.threads)?;
    let planner = Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?);
    let looking = async {
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
                let plan = plan(args, place.clone(), &scenario, rtt, block_bytes, threads)?;
                let measured = runtime.block_on(unless_interrupted(cell(plan)));
                if interrupt::asked() {
                    print(args, &cells)?;
                    let message = "interrupted; the results so far are shown";
                    return Err(Failure::new(Code::Interrupted, message).into());
                }
                let outcome = measured?;
                cells.push(Cell { scenario: scenario.clone(), rtt, block_bytes, outcome });
            }
        }
    }
    print(args, &cells)?;
    if cells.iter().all(|cell| cell.outcome.error.is_some()) {
        let message = "no cell could be measured; create the files to copy with `smbscope load prepare //SERVER/SHARE --workload bulk-copy`";
        return Err(Failure::new(Code::Runtime, message).into());
    }
    Ok(())
}

/// A cell's plan.
fn plan(
    args: &Run,
    place: Destination,
    scenario: &str,
    rtt: Duration,
    block_bytes: u64,
    threads: usize,
) -> anyhow::Result<CellPlan> {
    let (workload, _) = args.what.with_block(Some(block_bytes))?;
    let workload = workload.only(&[scenario])?;
    let mut config = args.client.config(place.kerberos)?;
    config.delay += rtt;
    Ok(CellPlan {
        target: place.target,
        credentials: place.credentials,
        config,
        planner: Planner::new(Arc::new(workload), args.what.seed, args.what.scale()?),
        cache: args.client.client_cache,
        timeout: args.client.timeout,
        time: args.matrix.matrix_time,
        threads,
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
                    "bytes_per_second": cell.outcome.bytes_per_s,
                    "operations": cell.outcome.n,
                    "error": cell.outcome.error,
                })
            })
            .collect();
        output.text(&smbscope_report::json_text(&json!({ "matrix": rows })))?;
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
            texts.extend(row.iter().map(|cell| match &cell.outcome.error {
                Some(error) => error.clone(),
                None => format!("{}/s", format::bytes(cell.outcome.bytes_per_s as u64)),
            }));
            Some(texts)
        })
        .collect();
    let (bold, end) = output.bold();
    let text = lines(&columns, &rows, (bold, end));
    output.text(&text)?;
    output.finish()
}
