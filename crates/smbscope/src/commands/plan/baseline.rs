//! `smbscope plan baseline`: which settings of a security baseline touch file serving, and what they cost here.
//!
//! Owns the options, and where the judgement goes. Inputs are read in [`inputs`], the search for the setting to blame
//! is [`search`], files to apply are made in [`files`].

mod files;
mod inputs;
mod search;

use std::collections::BTreeSet;
use std::path::PathBuf;

use smbscope_plan::baseline::catalogue::System;
use smbscope_plan::baseline::difference::{Side, Unset};
use smbscope_plan::baseline::effective::EffectiveValue;
use smbscope_plan::baseline::judgement::{Assessment, Judgement};
use smbscope_plan::baseline::roles::MachineRole;
use smbscope_plan::baseline::setting::Setting;
use smbscope_plan::baseline::terms::Terms;
use smbscope_plan::baseline::write::FormerState;
use smbscope_plan::script::Step;
use smbscope_report::baseline::BaselinePlan;

use self::inputs::Read;
use self::search::Found;
use crate::answer::{AnswerOptions, VERSION, names};
use crate::commands::predict::files::read_calibration;
use crate::exit::Failure;
use crate::options::{Reading, Verbosity};
use crate::pipeline::baseline as pipeline;

/// Judge a security baseline: which settings touch file serving, and what they cost.
///
/// Reads security templates (GptTmpl.inf), registry.pol, backups of group policies (folders, .zip, .cab), Policy Analyzer's
/// .PolicyRules, LGPO text, audit.csv, HardeningKitty's lists, ADMX with ADML, exported registry files, what
/// Get-SmbServerConfiguration, Get-SmbClientConfiguration and Get-SmbShare print (text and JSON), smb.conf, `testparm -s` and
/// `net conf list`, MOF of PowerShell DSC, Ansible (win_regedit), Wazuh, Intune (settings catalogue), the Negotiate of servers in a capture, and that of a live server (//host, without a logon). Formats are
/// recognised by content. Several inputs apply one after the other: local settings first, then policies.
///
/// Shows what changes for file serving against another baseline or a version's defaults, what it costs on a recording with
/// a calibration of signing and encryption, cheaper ways to the same protection, and settings without effect. With --search,
/// finds the setting that makes a server slow in few tries: a state file, and after each try --result slow or fast.
///
/// Nothing is changed anywhere. Only --write and --search write files.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("html", |arg| arg.conflicts_with("list")),
    mut_arg("format", |arg| arg.help(
        "Output format; `smbscope schema baseline` describes json [default: text; with --html no output]"
    ))
)]
#[command(after_help = "\
Examples:
  smbscope plan baseline MSFT-WS2022.PolicyRules --against current.zip
  smbscope plan baseline MSFT-WS2022.PolicyRules --recording monday --calibration crypto.json
  smbscope plan baseline new/ --against old.cab --all --html baseline.html
  smbscope plan baseline smb.conf --against //fs.example           # what is configured, and what the server shows
  smbscope plan baseline all.PolicyRules --role domain-controller   # one of several roles in a file
  smbscope plan baseline GptTmpl.inf --list                        # everything that was read
  smbscope plan baseline new.PolicyRules --recording monday --calibration crypto.json --search slow.json
  smbscope plan baseline --search slow.json --result fast
  smbscope plan baseline --search slow.json --write step.ps1       # the commands of this step
  smbscope plan baseline new.PolicyRules --against old.PolicyRules --write smb.ps1")]
pub struct BaselineArgs {
    /// Files, folders, captures or //HOST of the proposed baseline, in the order in which they apply.
    #[arg(value_name = "BASELINE", required_unless_present = "search")]
    pub inputs: Vec<String>,
    /// Current settings, in any of these formats; can be repeated [default: the defaults of --system].
    #[arg(long, value_name = "OTHER")]
    pub against: Vec<String>,
    /// Version whose defaults apply where the baseline sets nothing: 2012r2, 2016, 2019, 2022, 2025, windows-10,
    /// windows-11-24h2, samba-4.17, samba-4.22.
    #[arg(long, value_name = "VERSION", value_parser = System::of_name)]
    pub system: Option<System>,
    /// Version of --against [default: that of --system].
    #[arg(long, value_name = "VERSION", value_parser = System::of_name)]
    pub against_system: Option<System>,
    /// What the machine is: file-server, domain-controller, client, or both (a baseline for servers and their clients).
    /// Policies that name another role are left out, and settings of the other side of a connection cost nothing
    /// [default: client for Windows 10 and 11, else file-server].
    #[arg(long, value_name = "ROLE", value_parser = MachineRole::of_name)]
    pub role: Option<MachineRole>,
    /// Only the policies of an input with this text in their name; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub policy: Vec<String>,
    /// What a setting is that one side does not have: `kept` as the other side has it (the baseline is applied to it), or the
    /// version's `default` [default: kept if --against has settings of a machine and BASELINE policies only].
    #[arg(long, value_name = "WHAT", value_parser = unset)]
    pub unset: Option<Unset>,
    /// Recordings (captures, datasets, run folders) on which the cost is predicted.
    #[arg(long, value_name = "RUN", help_heading = "Cost")]
    pub recording: Vec<String>,
    /// What signing and encryption cost the server: a file written by `smbscope predict calibrate`.
    #[arg(long, value_name = "FILE", help_heading = "Cost", requires = "recording")]
    pub calibration: Option<PathBuf>,
    /// Look for the setting that makes the server slow: the state of the search is stored in this file. A new file
    /// begins one, an existing one continues it.
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub search: Option<PathBuf>,
    /// What the last try of the search showed.
    #[arg(long, value_name = "SPEED", value_enum, help_heading = "Search", requires = "search")]
    pub result: Option<search::SpeedChoice>,
    /// Write the settings that touch file serving to this file, and their undo to one next to it (NAME.undo.EXTENSION).
    /// The extension is the form: .pol registry.pol of the computer, .txt LGPO text, .inf security template, .gpo
    /// folder with a backup of a group policy for Import-GPO, .ps1 PowerShell, .conf fragment of smb.conf. Can be repeated. Files that exist are not replaced. When a search
    /// continues, the settings of its step are written.
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub write: Vec<PathBuf>,
    /// With --write, write the cheaper ways to the same protection instead of the baseline.
    #[arg(long, requires = "write", help_heading = "Files")]
    pub cheaper: bool,
    /// List every setting that was read, and every line that is not a setting, instead of a judgement.
    #[arg(long, conflicts_with_all = ["against", "recording", "search", "write", "html"])]
    pub list: bool,
    /// Language of the texts of ADMX templates, for --list, --all and pages.
    #[arg(long, value_name = "TAG", default_value = "en-US")]
    pub language: String,
    /// Show everything, not only what fits on a screen.
    #[arg(long)]
    pub all: bool,
    /// Where the judgement goes.
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// How captures are read.
    #[command(flatten)]
    pub reading: Reading,
}

fn unset(text: &str) -> Result<Unset, String> {
    match text {
        "default" => Ok(Unset::Default),
        "kept" => Ok(Unset::Kept),
        _ => Err("expected default or kept".to_owned()),
    }
}

/// Judges, lists or searches.
pub fn run(args: &BaselineArgs, verbosity: Verbosity) -> anyhow::Result<()> {
    // A search has its candidates: nothing needs to be predicted again.
    if let Some(file) = args.search.as_ref().filter(|file| args.inputs.is_empty() || file.exists())
    {
        return search::resume(args, file);
    }
    let mut after = Read::all(&args.inputs, args, &verbosity)?;
    if args.list {
        return inputs::list(&after, args);
    }
    let mut before = Read::all(&args.against, args, &verbosity)?;
    let destination = args.answer.open()?;
    let system = args.system.or_else(|| after.system(&verbosity));
    let against_system = args.against_system.or_else(|| before.system(&verbosity)).or(system);
    let role = args.role.unwrap_or(MachineRole::of_system(system));
    after.choose(role, &args.policy)?;
    before.choose(role, &args.policy)?;
    let (after_terms, before_terms) = (after.terms(), before.terms());
    let side = |terms, system| Side { terms, system, role };
    let is_applied = before.is_local() && !after.is_local();
    let unset = args.unset.unwrap_or(if is_applied { Unset::Kept } else { Unset::Default });
    let facts = if args.recording.is_empty() {
        None
    } else {
        let source = args.reading.open(&args.recording, None)?;
        Some(pipeline::facts(&source, &verbosity)?)
    };
    let assessment = Assessment::new(
        side(&before_terms, against_system),
        side(&after_terms, system),
        unset,
        facts.as_ref(),
    );
    let answers = match &facts {
        Some(facts) => {
            let open = || args.reading.open(&args.recording, None);
            let calibration = args.calibration.as_deref().map(read_calibration).transpose()?;
            let recording = pipeline::Recording { open: &open, calibration };
            pipeline::answers(assessment.questions(), facts, &recording, &verbosity)?
        }
        None => Vec::new(),
    };
    let mut judgement = assessment.judge(&answers);
    judgement.difference.explain(|place| {
        after.text(place, &args.language).or_else(|| before.text(place, &args.language))
    });
    let former = before.former();
    let search = match &args.search {
        Some(file) => {
            Some(search::begin(assessment.suspects(&judgement.costs), file, args.result)?)
        }
        None => None,
    };
    let settings = if args.cheaper {
        judgement.alternatives.iter().flat_map(|one| one.settings.clone()).collect()
    } else {
        touching(&after, &after_terms)
    };
    for path in &args.write {
        files::write(path, &settings, &former)?;
    }
    let commands = commands(&judgement, &former);
    let unread = before.unread().into_iter().chain(after.unread());
    let plan = BaselinePlan {
        version: VERSION.to_owned(),
        inputs: names(&args.inputs, None),
        against: names(&args.against, None),
        recording: (!args.recording.is_empty()).then(|| names(&args.recording, None).join(", ")),
        calibration: args.calibration.as_ref().map(|path| path.display().to_string()),
        unread: unread.collect(),
        commands,
        search: search.map(Found::into_plan),
        clock: crate::local_time::clock(false, None),
        judgement,
    };
    destination.show(&plan, args.all)
}

/// The settings of a baseline that the catalogue knows, as they were read.
fn touching(read: &Read, terms: &Terms) -> Vec<Setting> {
    let places: BTreeSet<_> = terms.known.values().map(|term| term.place.key()).collect();
    let effective = read.effective();
    let known = effective.values.values().filter(|value| places.contains(&value.place.key()));
    let of = |value: &EffectiveValue| Setting {
        place: value.place.clone(),
        value: value.claim.value.clone(),
        origin: value.claim.origin.clone(),
    };
    known.map(of).collect()
}

/// The commands of the cheaper ways.
fn commands(judgement: &Judgement, former: &FormerState) -> Vec<Step> {
    let with_settings = judgement.alternatives.iter().filter(|one| !one.settings.is_empty());
    with_settings.flat_map(|one| files::blocks(&one.what, &one.settings, former)).collect()
}

/// A usage error about an input.
fn bad(input: &str, why: impl std::fmt::Display) -> anyhow::Error {
    Failure::usage(format!("{input}: {why}"))
}
