//! `smbscope plan replication`: what a second server that holds the same data would cost and need.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use smbscope_analysis::replication::Link;
use smbscope_analysis::replication::forecast::{LinkForecast, Questions};
use smbscope_analysis::replication::goal::Goal;
use smbscope_plan::replication::checks::{Check, Facts, checks};
use smbscope_plan::replication::html::{HtmlTables, tables};
use smbscope_plan::replication::topology_test::{TopologyTest, topology_test};
use smbscope_report::replication::ReplicationPlan;
use smbscope_tables::quantity::{parse_distance, parse_rate};

use crate::answer::{AnswerOptions, VERSION, names};
use crate::exit::Failure;
use crate::filter_options::FilterOptions;
use crate::options::{Anonymize, Reading, Verbosity, duration, size};
use crate::pipeline::replication::{Request, plan};

/// Links in one plan: each is replayed three times.
const LINES_MAX: usize = 12;
/// The longest report of Test-SRTopology that is read.
const REPORT_BYTES_MAX: u64 = 64 << 20;
/// Light travels this far in fibre in a second, m.
const FIBRE_M_S: f64 = 200_000_000.0;

/// Plan a second server that holds the same data: its cost, its log, and what is at risk.
///
/// From recordings (captures, datasets, run folders) of the server as it is. The recorded operations are replayed with a
/// second server behind each given link: what must be stable (a Flush, a write-through write, a continuously available share)
/// waits for a synchronous copy; an asynchronous one lacks the last data instead. Shows the added time by command,
/// share, application and scenario as percentiles, the busiest seconds against the link, the log while the link is down, the
/// first copy with the load competing, data at risk with the recovery point, and the longest round trip that a goal allows.
///
/// The same arithmetic holds for Windows' Storage Replica (synchronous and asynchronous), DRBD (protocols C, B and A) and
/// snapshots that a file system sends (--interval). The checks of Test-SRTopology are made where a recording and the link
/// decide them, and listed with their command where not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan replication run/ --rtt 1ms --bandwidth 1gbit
  smbscope plan replication monday.pcapng --distance 30km --bandwidth 10gbit --goal 'Write p99 < 10ms'
  smbscope plan replication week/ --rtt 0.2ms --rtt 5ms --rtt 20ms --bandwidth 1gbit --html replica.html
  smbscope plan replication week/ --rtt 5ms --bandwidth 200mbit --outage 1h --log-size 8GiB --data-size 4TiB
  smbscope plan replication week/ --rtt 5ms --bandwidth 200mbit --interval 15m
  smbscope plan replication week/ --rtt 5ms --bandwidth 1gbit --test-report TestSrTopologyReport.html
  smbscope plan replication week/ --link net/                   # a folder of `smbscope net send REPLICA --out net`
  smbscope plan replication run/ --rtt 5ms --format json | jq '.lines[0].at_risk'")]
pub struct ReplicationArgs {
    /// Capture files, datasets or run folders, or `-` for a capture on standard input.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<String>,
    /// Round trip between the servers; can be repeated.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Link")]
    pub rtt: Vec<Duration>,
    /// Fibre between the servers instead (200,000 km/s, both directions): 30km; can be repeated.
    #[arg(long, value_name = "DISTANCE", value_parser = distance, help_heading = "Link")]
    pub distance: Vec<Duration>,
    /// Rate of the link between the servers: 1gbit [default: no limit]; can be repeated, each for every
    /// round trip.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Link")]
    pub bandwidth: Vec<u64>,
    /// A test of the link between the servers (a folder of `smbscope net send`): its round trip and rate; can be
    /// repeated.
    #[arg(long, alias = "line", value_name = "RUN", help_heading = "Link")]
    pub link: Vec<String>,
    /// How long the link is down: the log that this needs, and how long catching up takes.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Questions")]
    pub outage: Option<Duration>,
    /// Size of the log: how long it holds while the link is down.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Questions")]
    pub log_size: Option<u64>,
    /// Size of all data: how long the first copy takes.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Questions")]
    pub data_size: Option<u64>,
    /// Interval of snapshots that a file system sends.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Questions")]
    pub interval: Option<Duration>,
    /// A command's or scenario's time that synchronous copies must keep: the longest round trip is searched for.
    #[arg(long, value_name = "GOAL", help_heading = "Questions")]
    pub goal: Option<Goal>,
    /// A report of Test-SRTopology (HTML): its measured round trip and its results count in the checks. Without another
    /// link, its round trip is the link.
    #[arg(long, value_name = "FILE")]
    pub test_report: Option<PathBuf>,
    /// Where the plan goes.
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Which operations of the recordings count.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// How inputs are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Replacement of names by tokens.
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Makes the plan.
pub fn run(args: &ReplicationArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    let test_report = args.test_report.as_deref().map(read_report).transpose()?;
    let test = test_report.as_ref().map(topology_test);
    let lines = lines(args, test.as_ref(), &verbosity)?;
    // The measured ones are the last ones.
    let given = (args.rtt.len() + args.distance.len()) * args.bandwidth.len().max(1);
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.reading.open(&args.inputs, tokenizer.clone())?;
    args.filter.apply(&mut source, &verbosity)?;
    let questions = Questions {
        outage_ns: args.outage.map(ns).transpose()?,
        log_bytes: args.log_size,
        data_bytes: args.data_size,
        interval_ns: args.interval.map(ns).transpose()?,
    };
    let request = Request { lines, questions, goal: args.goal.clone() };
    let destination = args.answer.open()?;
    let forecast = plan(&mut source, &request, &verbosity);
    // That the filter leaves nothing explains most errors.
    args.filter.refuse_nothing(&source)?;
    let forecast = forecast?;
    let plan = ReplicationPlan {
        inputs: names(&args.inputs, tokenizer.as_ref()),
        version: VERSION.to_owned(),
        clock: args.filter.clock(forecast.start_ns),
        checks: forecast
            .lines
            .iter()
            .enumerate()
            .map(|(place, line)| checks_of(line, place >= given, &questions, test.as_ref()))
            .collect(),
        forecast,
        test_report,
    };
    destination.show(&plan, true)
}

/// Each round trip with each rate, and the measured links.
fn lines(
    args: &ReplicationArgs,
    test: Option<&TopologyTest>,
    verbosity: &Verbosity,
) -> anyhow::Result<Vec<Link>> {
    let rates = match &args.bandwidth[..] {
        [] => vec![None],
        rates => rates.iter().map(|bits| Some(*bits as f64)).collect(),
    };
    let mut lines = Vec::new();
    for round_trip in args.rtt.iter().chain(&args.distance) {
        let rtt_ns = ns(*round_trip)?;
        lines.extend(rates.iter().map(|&bandwidth_bits| Link { rtt_ns, bandwidth_bits }));
    }
    for run in &args.link {
        lines.push(measured(run, args, verbosity)?);
    }
    if let (true, Some(rtt_ns)) = (lines.is_empty(), test.and_then(|test| test.rtt_ns)) {
        lines.extend(rates.iter().map(|&bandwidth_bits| Link { rtt_ns, bandwidth_bits }));
    }
    match lines.len() {
        0 => Err(Failure::usage(
            "how far is the second server? Give --rtt TIME, --distance DISTANCE, --link RUN (a test by `smbscope net send`), \
             or --test-report FILE with a measured round trip",
        )),
        1..=LINES_MAX => Ok(lines),
        count => Err(Failure::usage(format!(
            "{count} links (round trips times rates): at most {LINES_MAX} in one plan"
        ))),
    }
}

/// The link that a test of the network measured.
fn measured(run: &str, args: &ReplicationArgs, verbosity: &Verbosity) -> anyhow::Result<Link> {
    let source = args.reading.open(&[run.to_owned()], None)?;
    let net = crate::pipeline::net::with_smb(&source, verbosity)?;
    net.as_ref().and_then(Link::measured).ok_or_else(|| {
        Failure::usage(format!(
            "--link {run}: has no test of the network with a round trip; record one on the first server: smbscope net \
             send SECOND-SERVER --token TOKEN --out {run}"
        ))
    })
}

fn ns(time: Duration) -> anyhow::Result<i64> {
    i64::try_from(time.as_nanos()).map_err(|_| Failure::usage("a time is too long"))
}

fn checks_of(
    line: &LinkForecast,
    is_measured: bool,
    questions: &Questions,
    test: Option<&TopologyTest>,
) -> Vec<Check> {
    let load = &line.load;
    let facts = Facts {
        rtt_ns: line.rtt_ns,
        bandwidth_bits: line.bandwidth_bits,
        mean_bits: load.mean_bits,
        busiest_bits: load.minute_bits.unwrap_or(load.max_bits),
        is_minute: load.minute_bits.is_some(),
        is_measured,
        log_bytes: questions.log_bytes,
        needed_log_bytes: line.outage.map(|outage| outage.log_bytes),
        data_bytes: questions.data_bytes,
    };
    checks(&facts, test)
}

fn distance(text: &str) -> Result<Duration, String> {
    let metres = parse_distance(text).map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(2.0 * metres as f64 / FIBRE_M_S).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<u64, String> {
    parse_rate(text).map_err(|error| error.to_string())
}

fn read_report(path: &Path) -> anyhow::Result<HtmlTables> {
    let name = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut bytes = Vec::new();
    file.take(REPORT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > REPORT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{name}: longer than 64 MiB, not a report of Test-SRTopology"
        )));
    }
    let found = tables(&bytes);
    if found.tables.is_empty() {
        return Err(Failure::usage(format!(
            "{name}: has no table; expected the HTML report that Test-SRTopology writes to its -ResultPath"
        )));
    }
    Ok(found)
}
