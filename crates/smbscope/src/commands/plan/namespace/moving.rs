//! `smbscope plan namespace migrate`, `gate` and `status`: a move in stages.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use smbscope_plan::namespace::check::{Context as CheckContext, check, serious};
use smbscope_plan::namespace::gate::collected::{self, SCRIPT};
use smbscope_plan::namespace::gate::{Evidence, judge};
use smbscope_plan::namespace::model::{ClientCache, Kind};
use smbscope_plan::namespace::progress::{FILE_BYTES_MAX, Progress};
use smbscope_plan::namespace::read::{self, Reading as NamespaceReading};
use smbscope_plan::namespace::stages::{Move, StageId, plan};
use smbscope_report::namespace::NamespacePlan;

use super::super::{new_file, replace_file};
use super::{Shown, bad, inputs, now_ns, pipeline, plan_of, recorded, show};
use crate::exit::Failure;
use crate::options::{Reading, Verbosity, duration};
use crate::output::Output;

/// Plan the move of a namespace in stages, with commands, waits, gates and undo.
///
/// For a domain-based namespace: to the 2008 mode, to new servers, to FQDNs. Waits follow from TTLs, the hourly poll of the PDC
/// emulator, and files that clients have open.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan namespace migrate public.xml --servers dfs1,dfs2 --old old1,old2
  smbscope plan namespace migrate public.xml --servers dfs1,dfs2 --clients clients.txt --state move.json --html move.html
  smbscope plan namespace migrate public.xml --servers old1 --to v2            # the mode only: servers stay")]
pub struct MigrateArgs {
    /// Files of the namespace: an export, or LDIF, which loses nothing.
    #[arg(value_name = "EXPORT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Mode after the move: v2 (Windows Server 2008 mode) or v1.
    #[arg(long, value_name = "MODE", default_value = "v2", value_parser = kind)]
    pub to: Kind,
    /// Mode of today, where the input does not say it: as Get-DfsnRoot shows it.
    #[arg(long, value_name = "MODE", value_parser = kind)]
    pub from: Option<Kind>,
    /// Namespace servers after the move.
    #[arg(long, value_name = "NEW,...", value_delimiter = ',', required = true)]
    pub servers: Vec<String>,
    /// Namespace servers that leave [default: those that are not among the new ones].
    #[arg(long, value_name = "OLD,...", value_delimiter = ',')]
    pub old: Vec<String>,
    /// Domain of short names [default: that of the namespace].
    #[arg(long, value_name = "DOMAIN")]
    pub suffix: Option<String>,
    /// More names of domains that paths begin with: NetBIOS names, or domains of other namespaces.
    #[arg(long, value_name = "DOMAIN,...", value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Names that resolve, for the check before the plan: a hosts file or a zone file.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Likewise by this machine's resolver.
    #[arg(long, conflicts_with = "hosts")]
    pub resolve: bool,
    /// Plan although the check has serious findings: they become preconditions of the first stage.
    #[arg(long)]
    pub anyway: bool,
    /// The PDC emulator.
    #[arg(long, value_name = "SERVER")]
    pub pdc: Option<String>,
    /// Local folder of the roots on the servers.
    #[arg(long, value_name = "FOLDER", default_value = r"C:\DFSRoots")]
    pub root_folder: String,
    /// Folder for files of the move on the administrator's machine.
    #[arg(long, value_name = "FOLDER", default_value = r"C:\temp")]
    pub work_folder: String,
    /// Clients whose caches the gates expect: a file with one name on each line.
    #[arg(long, value_name = "FILE")]
    pub clients: Option<PathBuf>,
    /// Longest time for which a client has files open without a break.
    #[arg(long, value_name = "DURATION", default_value = "12h", value_parser = duration, help_heading = "Assumptions")]
    pub open_at_most: Duration,
    /// Interval at which namespace servers read the PDC emulator.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration, help_heading = "Assumptions")]
    pub sync_interval: Duration,
    /// How long the directory takes to replicate to all sites.
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration, help_heading = "Assumptions")]
    pub replication_at_most: Duration,
    /// Longest time for which a client is asleep; 0s leaves sleeping clients to the gates.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration, help_heading = "Assumptions")]
    pub asleep_at_most: Duration,
    /// There are clients that renew a referral on use (before Windows XP SP2 and Server 2003 SP1).
    #[arg(long, help_heading = "Assumptions")]
    pub renewing_clients: bool,
    /// Begin the move: write where it is to this file, for `gate` and `status`. A file that exists is not replaced.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub shown: Shown,
    /// How captures are read.
    #[command(flatten)]
    pub reading: Reading,
}

fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "v2" => Ok(Kind::DomainV2),
        "v1" => Ok(Kind::DomainV1),
        _ => Err("expected v2 or v1".to_owned()),
    }
}

fn seconds(time: Duration) -> anyhow::Result<u32> {
    u32::try_from(time.as_secs()).map_err(|_| bad("a time", "is too long"))
}

/// Plans a move.
pub(super) fn migrate(args: &MigrateArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    let reading = inputs::read(&args.inputs, &args.reading, &verbosity)?;
    let namespace = inputs::only(&reading)?;
    let clients = match &args.clients {
        Some(path) => {
            let text = String::from_utf8_lossy(&inputs::bytes(path)?).into_owned();
            let names = text.lines().map(|line| line.trim().trim_start_matches('\u{feff}'));
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        None => Vec::new(),
    };
    let mut wanted = Move {
        to: args.to,
        from: args.from,
        domains: args.domain.clone(),
        accepted: accepted(args, &reading)?,
        new_servers: args.servers.clone(),
        old_servers: args.old.clone(),
        suffix: args.suffix.clone(),
        pdc: args.pdc.clone(),
        root_folder: args.root_folder.clone(),
        work_folder: args.work_folder.clone(),
        clients,
        ..Move::default()
    };
    wanted.assumed.open_s = seconds(args.open_at_most)?;
    wanted.assumed.sync_s = seconds(args.sync_interval)?;
    wanted.assumed.replication_s = seconds(args.replication_at_most)?;
    wanted.assumed.asleep_s = seconds(args.asleep_at_most)?;
    wanted.assumed.has_renewing_clients = args.renewing_clients;
    let moved = plan(namespace, &wanted).map_err(|error| Failure::usage(error.to_string()))?;
    let progress = Progress::new(moved.clone());
    if let Some(path) = &args.state {
        new_file(path, progress.to_json().context("state to JSON")?.as_bytes())?;
    }
    let plan = NamespacePlan {
        namespace: Some(namespace.clone()),
        plan: Some(moved),
        progress: args.state.is_some().then_some(progress),
        ..plan_of(&args.inputs)
    };
    show(&plan, &args.shown)
}

/// What is seriously wrong with the namespace and accepted.
fn accepted(args: &MigrateArgs, reading: &NamespaceReading) -> anyhow::Result<Vec<String>> {
    let resolution = inputs::resolution(args.hosts.as_deref(), args.resolve, reading)?;
    let domains: Vec<String> = args.domain.iter().chain(&args.suffix).cloned().collect();
    let context = CheckContext {
        resolution: resolution.as_ref(),
        domains: &domains,
        ..CheckContext::default()
    };
    let serious = serious(&check(reading, &context), args.to);
    if serious.is_empty() || args.anyway {
        return Ok(serious);
    }
    Err(Failure::usage(format!(
        "{} serious findings, which a move keeps or loses: repair them first (`smbscope plan namespace {} --all` has their \
         places), or plan --anyway:\n  {}",
        serious.len(),
        args.inputs.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" "),
        serious.join("\n  ")
    )))
}

/// Judge a gate of the move: are the clients ready?
///
/// From the referral caches of clients, collected by a script that this command prints, and from captures. Says which clients
/// hold up the next stage, why, and until when. Exit code 1 for no-go.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan namespace gate --print-script > collect.ps1
  smbscope plan namespace gate --state move.json --cache caches.txt
  smbscope plan namespace gate wait-old --state move.json --cache pc1.txt pc2.txt --capture evening.pcapng --html gate.html")]
pub struct GateArgs {
    /// The stage [default: the next one of the move that has a gate].
    #[arg(value_name = "STAGE", value_parser = stage)]
    pub stage: Option<StageId>,
    /// Where the move is.
    #[arg(long, value_name = "FILE", required_unless_present = "print_script")]
    pub state: Option<PathBuf>,
    /// Print the PowerShell script that collects caches from clients. It changes nothing.
    #[arg(long, exclusive = true)]
    pub print_script: bool,
    /// Files of the script, or outputs of `dfsutil cache referral`, named like their client.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub cache: Vec<PathBuf>,
    /// More names of the namespace's domain, as clients write it.
    #[arg(long, value_name = "DOMAIN,...", value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Hosts whose share of the same name is not this namespace: their entries do not count.
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub other_host: Vec<String>,
    /// Captures or runs with referrals.
    #[arg(long, value_name = "RECORDING")]
    pub capture: Vec<String>,
    /// Judge only: do not store the verdict in --state.
    #[arg(long)]
    pub dry_run: bool,
    /// Show all clients and the whole plan, not only the answer.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub shown: Shown,
    /// How captures are read.
    #[command(flatten)]
    pub reading: Reading,
}

fn stage(text: &str) -> Result<StageId, String> {
    StageId::from_name(text)
        .ok_or_else(|| format!("expected one of {}", StageId::ALL.map(StageId::name).join(", ")))
}

/// Judges a gate.
pub(super) fn gate(args: &GateArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    let Some(path) = args.state.as_ref().filter(|_| !args.print_script) else {
        let mut output = Output::stdout();
        output.text(SCRIPT)?;
        return output.finish();
    };
    let mut progress = read_state(path)?;
    let next = || {
        let current = progress.current().map(|stage| stage.id);
        let from = progress.plan.stages.iter().skip_while(|stage| Some(stage.id) != current);
        from.into_iter().find(|stage| stage.gate.is_some()).map(|stage| stage.id)
    };
    let Some(id) = args.stage.or_else(next) else {
        return Err(bad(path.display(), "no stage that is left has a gate"));
    };
    let (mut caches, mut uncollected, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    let mut aliases = std::collections::BTreeMap::new();
    for file in &args.cache {
        let bytes = inputs::bytes(file)?;
        let name = file.display().to_string();
        let text = smbscope_plan::input::text::decode(&bytes).text;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let found = collected::read(&text, &stem, |text| cache(&name, text));
        caches.extend(found.caches);
        uncollected.extend(found.uncollected);
        unread.extend(found.unread);
        aliases.extend(found.aliases);
    }
    let referrals = recorded(&args.capture, &args.reading, &verbosity)?;
    let captured = pipeline::captured(&referrals);
    let evidence = Evidence {
        caches: &caches,
        uncollected: &uncollected,
        captured: &captured,
        unread: &unread,
        domains: &args.domain,
        other_hosts: &args.other_host,
        aliases,
        changed_at_s: progress.changed_at_s(id),
        now_s: now_ns().div_euclid(1_000_000_000),
    };
    let verdict = judge(id, &progress.plan, &evidence);
    progress.judged(&verdict).map_err(|error| bad(path.display(), error))?;
    if !args.dry_run {
        write_state(path, &progress)?;
    }
    let is_go = verdict.is_go;
    let plan = NamespacePlan {
        progress: Some(progress),
        verdicts: vec![verdict],
        is_brief: !args.all,
        ..plan_of(&args.cache)
    };
    show(&plan, &args.shown)?;
    if is_go { Ok(()) } else { Err(anyhow::anyhow!("no-go: stage {} must wait", id.name())) }
}

/// One client's cache.
fn cache(name: &str, text: &str) -> Result<ClientCache, String> {
    let reading = read::read(&[(name.to_owned(), text.as_bytes().to_vec())])
        // Which other forms there are does not help here.
        .map_err(|error| error.message.split(';').next().unwrap_or_default().to_owned())?;
    reading.caches.into_iter().next().ok_or_else(|| "no referral cache".to_owned())
}

/// Show where the move is, and note what was done.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope plan namespace status --state move.json
  smbscope plan namespace status --state move.json --begin add
  smbscope plan namespace status --state move.json --done add
  smbscope plan namespace status --state move.json --done wait-old --anyway 'laptop of a colleague on leave'
  smbscope plan namespace status --state move.json --undo add --reason 'wrong server'")]
pub struct StatusArgs {
    /// Where the move is.
    #[arg(long, value_name = "FILE")]
    pub state: PathBuf,
    /// This stage begins now.
    #[arg(long, value_name = "STAGE", value_parser = stage, conflicts_with_all = ["done", "undo"])]
    pub begin: Option<StageId>,
    /// This stage is done.
    #[arg(long, value_name = "STAGE", value_parser = stage, conflicts_with = "undo")]
    pub done: Option<StageId>,
    /// With --done, although its gate does not say go: why. It is kept.
    #[arg(long, value_name = "REASON", requires = "done")]
    pub anyway: Option<String>,
    /// This stage was taken back.
    #[arg(long, value_name = "STAGE", value_parser = stage, requires = "reason")]
    pub undo: Option<StageId>,
    /// With --undo: why.
    #[arg(long, value_name = "REASON", requires = "undo")]
    pub reason: Option<String>,
    /// Show the whole plan, not only the next stage.
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub shown: Shown,
}

/// Shows where the move is.
pub(super) fn status(args: &StatusArgs, _verbosity: Verbosity) -> anyhow::Result<()> {
    let mut progress = read_state(&args.state)?;
    let now_s = now_ns().div_euclid(1_000_000_000);
    let changed = match (args.begin, args.done, args.undo) {
        (Some(id), ..) => Some(progress.begin(id, now_s)),
        (_, Some(id), _) => Some(progress.done(id, now_s, args.anyway.as_deref())),
        (.., Some(id)) => Some(progress.undo(id, args.reason.as_deref().unwrap_or_default())),
        _ => None,
    };
    if let Some(result) = changed {
        result.map_err(|refusal| Failure::usage(refusal.to_string()))?;
        write_state(&args.state, &progress)?;
    }
    let plan = NamespacePlan { progress: Some(progress), is_brief: !args.all, ..plan_of(&[]) };
    show(&plan, &args.shown)
}

fn read_state(path: &Path) -> anyhow::Result<Progress> {
    let name = path.display();
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| {
            bad(&name, format!("{error}; begin with `plan namespace migrate --state`"))
        })?;
    Progress::from_json(&text).map_err(|error| bad(&name, error))
}

fn write_state(path: &Path, progress: &Progress) -> anyhow::Result<()> {
    replace_file(path, progress.to_json().context("state to JSON")?.as_bytes())
}
