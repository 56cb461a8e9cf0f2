//! `smbscope plan namespace`: a DFS namespace, read, checked, rewritten and moved in stages.
//!
//! Owns the check and what all parts show. [`rewrite`] writes a namespace in another form, [`moving`] plans a move, judges
//! its gates and keeps where it is, [`inputs`] reads files.

mod inputs;
mod moving;
mod rewrite;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use smbscope_plan::namespace::check::{Context, Cutover, check};
use smbscope_plan::namespace::difference::{difference, text};
use smbscope_plan::namespace::read::Reading;
use smbscope_plan::namespace::referral::ReferralRow;
use smbscope_report::namespace::NamespacePlan;

use crate::answer::{AnswerOptions, VERSION};
use crate::exit::Failure;
use crate::format::TextFormat;
use crate::options::{Reading as CaptureReading, Verbosity, duration, input_name};
use crate::output::Output;
use crate::pipeline::namespace as pipeline;

/// Check, rewrite and move a DFS namespace.
///
/// Reads exports of dfsutil (2003 and 2008), `dfsutil /view`, LDIF of the directory (both modes; the only lossless form),
/// Get-DfsnRoot, Get-DfsnFolder, Get-DfsnFolderTarget and Get-DfsnRootTarget (text, CSV, JSON), links of Samba (a folder with
/// msdfs links, `ls -l` of one, smb.conf), captures with referrals, clients' referral caches (`dfsutil cache referral`, `/pktinfo`), and which shares
/// exist (`net share`, robocopy). Formats are recognised by content. With inputs alone it checks them: what is wrong, where,
/// and the command that repairs it.
///
/// Nothing is executed. `rewrite`, `migrate --state` and `--html` write files.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  smbscope plan namespace public.xml                                   # what is wrong with it
  smbscope plan namespace public.xml --hosts dns.zone --cut-over 3d --html check.html
  smbscope plan namespace public.xml --capture monday.pcapng           # and what servers really answer
  smbscope plan namespace after.xml --compare rewritten.xml            # what differs
  smbscope plan namespace rewrite public.xml --suffix contoso.com --out rewritten.xml
  smbscope plan namespace migrate public.xml --servers dfs1,dfs2 --old old1,old2 --state move.json --html move.html
  smbscope plan namespace gate --print-script > collect.ps1
  smbscope plan namespace gate --state move.json --cache caches.txt
  smbscope plan namespace status --state move.json --done add"
)]
pub struct NamespaceArgs {
    #[command(subcommand)]
    pub action: Option<Action>,
    #[command(flatten)]
    pub check: CheckArgs,
}

/// What to do instead of a check.
#[derive(Debug, Subcommand)]
pub enum Action {
    Rewrite(Box<rewrite::RewriteArgs>),
    Migrate(Box<moving::MigrateArgs>),
    Gate(Box<moving::GateArgs>),
    Status(Box<moving::StatusArgs>),
}

/// The check.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Files and folders of one or several namespaces, caches of clients and lists of shares.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Compare with this namespace instead of checking: what differs. Exit code 1 if anything does.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["capture", "cut_over", "html"])]
    pub compare: Option<PathBuf>,
    /// Names that resolve: a hosts file or a zone file. Other names count as names that do not resolve.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Ask this machine's resolver for the names of servers. It sends the names to your DNS server.
    #[arg(long, conflicts_with = "hosts")]
    pub resolve: bool,
    /// A capture or run with referrals: what servers answer, who asks, and what it costs. Can be repeated.
    #[arg(long, value_name = "RECORDING")]
    pub capture: Vec<String>,
    /// Time until the servers are exchanged: lists that clients may keep longer are a finding.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub cut_over: Option<Duration>,
    /// Time for which old servers still answer after it.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub window: Duration,
    /// Servers that take over: clients that never get them are a finding.
    #[arg(long, value_name = "SERVER,...", value_delimiter = ',')]
    pub new_servers: Vec<String>,
    /// More names of domains that paths begin with, for example NetBIOS names.
    #[arg(long, value_name = "DOMAIN,...", value_delimiter = ',')]
    pub domain: Vec<String>,
    /// List up to 100 places of each finding, each with its repair.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub shown: Shown,
    /// How captures are read.
    #[command(flatten)]
    pub reading: CaptureReading,
}

/// Where the answer goes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(
    mut_arg("html", |arg| arg.help(
        "Write a self-contained HTML page to this file instead of text to standard output: the namespace as a \
         drawing, the plan as a checklist"
    )),
    mut_arg("format", |arg| arg.help(
        "Output format; `smbscope schema namespace` describes json [default: text; with --html no output]"
    ))
)]
pub struct Shown {
    #[command(flatten)]
    pub answer: AnswerOptions,
}

/// Runs `smbscope plan namespace`.
pub fn run(args: &NamespaceArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    match &args.action {
        None => check_or_compare(&args.check, verbosity),
        Some(Action::Rewrite(args)) => rewrite::run(args, verbosity),
        Some(Action::Migrate(args)) => moving::migrate(args, verbosity),
        Some(Action::Gate(args)) => moving::gate(args, verbosity),
        Some(Action::Status(args)) => moving::status(args, verbosity),
    }
}

fn check_or_compare(args: &CheckArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    let reading = inputs::read(&args.inputs, &args.reading, &verbosity)?;
    if let Some(other) = &args.compare {
        return compare(args, &reading, other, &verbosity);
    }
    let referrals = recorded(&args.capture, &args.reading, &verbosity)?;
    let resolution = inputs::resolution(args.hosts.as_deref(), args.resolve, &reading)?;
    let seconds = |time: Duration| time.as_secs();
    let context = Context {
        resolution: resolution.as_ref(),
        cutover: args
            .cut_over
            .map(|left| Cutover { left_s: seconds(left), window_s: seconds(args.window) }),
        referrals: &referrals,
        new_servers: &args.new_servers,
        domains: &args.domain,
    };
    let plan = NamespacePlan {
        namespace: reading.namespaces.first().map(|one| one.namespace.clone()),
        checked: check(&reading, &context),
        all_places: args.all || args.shown.answer.html.is_some(),
        ..plan_of(&args.inputs)
    };
    show(&plan, &args.shown)
}

/// Referrals of recordings.
fn recorded(
    captures: &[String],
    reading: &CaptureReading,
    verbosity: &Verbosity,
) -> anyhow::Result<Vec<ReferralRow>> {
    if captures.is_empty() {
        Ok(Vec::new())
    } else {
        pipeline::referrals(&reading.open(captures, None)?, verbosity)
    }
}

fn compare(
    args: &CheckArgs,
    reading: &Reading,
    other: &PathBuf,
    verbosity: &Verbosity,
) -> anyhow::Result<()> {
    let other = inputs::read(std::slice::from_ref(other), &args.reading, verbosity)?;
    let (before, after) = (inputs::only(&other)?, inputs::only(reading)?);
    let changes = difference(before, after);
    let mut output = Output::open(args.shown.answer.out.as_ref())?;
    output.text(&match args.shown.answer.format {
        Some(TextFormat::Json) => smbscope_report::json_text(&serde_json::to_value(&changes)?),
        _ if changes.is_empty() => "no difference\n".to_owned(),
        _ => text(&changes),
    })?;
    output.finish()?;
    match changes.len() {
        0 => Ok(()),
        count => Err(anyhow::anyhow!("{count} differences")),
    }
}

/// What every part of the command shows.
fn plan_of(inputs: &[PathBuf]) -> NamespacePlan {
    let names = inputs.iter().map(|path| input_name(&path.display().to_string(), None));
    NamespacePlan {
        inputs: names.collect(),
        version: VERSION.to_owned(),
        clock: crate::local_time::clock(false, Some(now_ns())),
        ..NamespacePlan::default()
    }
}

fn now_ns() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn show(plan: &NamespacePlan, shown: &Shown) -> anyhow::Result<()> {
    shown.answer.open()?.show(plan, true)
}

/// A usage error about an input.
fn bad(input: impl std::fmt::Display, why: impl std::fmt::Display) -> anyhow::Error {
    Failure::usage(format!("{input}: {why}"))
}
