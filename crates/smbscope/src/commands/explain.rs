//! `smbscope explain`: what makes a share slow, the most costly cause first.
//!
//! Owns the command and its exit code. `smbscope_analysis::explain` finds the causes,
//! `smbscope_report::explain` renders them.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueEnum;
use smbscope_analysis::explain::{Confidence, LEAST_SHARE};
use smbscope_report::Look;

use crate::exit::{Code, Failure};
use crate::filter_options::{FilterOptions, recorded, refuse_nothing, selection, with_selection};
use crate::format::TextFormat;
use crate::options::{Anonymize, Decode, Verbosity, input_name};
use crate::output::Output;
use crate::pipeline::diagnose::diagnose;
use crate::terminal;

/// Columns and lines of a diagnosis that does not go to a terminal.
const WIDTH: usize = 100;
const HEIGHT: usize = 40;

/// Explain what makes a share slow, the most costly cause first.
///
/// Each finding shows the share of the time that it explains (waiting, and pauses of clients
/// shorter than a second), the time that would be saved without it, the clients, users and files
/// concerned, example operations, the reasons for its confidence, and remedies on server and
/// client. If a remedy can be predicted, its gain is shown, computed by replaying the first 100,000
/// operations. Findings can overlap.
///
/// By default the first three findings that explain 5 % or more are shown, shortened to fit the
/// screen. If there are none, the output says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope explain capture.pcapng
  smbscope explain run/ --all
  smbscope explain run/ --from 'last 5m' --user alice
  smbscope explain ring*.pcap --format json | jq '.findings[0]'
  smbscope explain - --fail-on high < capture.pcap || mail -s 'share is slow' admin")]
pub struct Args {
    /// Show all findings, including those that explain less than 5 %, with all remedies.
    #[arg(long)]
    pub all: bool,
    /// Exit with code 7 if a finding of at least this confidence explains 5 % of the time or more.
    #[arg(long, value_enum, value_name = "CONFIDENCE")]
    pub fail_on: Option<Sure>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Confidence of a finding, as `--fail-on` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sure {
    /// There may be another cause.
    Low,
    /// The figures agree, but some of them are estimates.
    Medium,
    /// The cause was measured.
    High,
}

impl From<Sure> for Confidence {
    fn from(sure: Sure) -> Confidence {
        match sure {
            Sure::Low => Confidence::Low,
            Sure::Medium => Confidence::Medium,
            Sure::High => Confidence::High,
        }
    }
}

/// Explains.
pub fn run(args: &Args, verbosity: Verbosity) -> anyhow::Result<()> {
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer.clone())?;
    args.filter.apply(&mut source, &verbosity)?;
    let diagnosis = diagnose(&source, &verbosity)?;
    refuse_nothing(&source)?;
    let mut output = Output::open(args.out.as_ref())?;
    match args.format {
        TextFormat::Text => {
            let names: Vec<_> = args
                .decode
                .inputs
                .iter()
                .map(|input| input_name(input, tokenizer.as_ref()))
                .collect();
            let (bold, end) = output.bold();
            let look = Look {
                width: terminal::width().unwrap_or(WIDTH),
                // One remains for the prompt.
                height: terminal::height().map_or(HEIGHT, |lines| lines.saturating_sub(1)),
                bold: (&bold, end),
                all: args.all,
            };
            let names = with_selection(&names.join(", "), &source);
            output.text(&smbscope_report::explain_text(&diagnosis, &names, look))?;
        }
        TextFormat::Json => {
            let mut value = serde_json::to_value(&diagnosis).context("diagnosis to JSON")?;
            if let Some(object) = value.as_object_mut() {
                let selections =
                    [("selection", selection(&source)), ("recorded", recorded(&source))];
                for (name, selection) in selections {
                    object.extend(selection.map(|one| (name.to_owned(), one.json())));
                }
            }
            let text = serde_json::to_string_pretty(&value).context("diagnosis to JSON")?;
            output.text(&format!("{text}\n"))?;
        }
    }
    output.finish()?;
    let least = args.fail_on.map(Confidence::from);
    let found = diagnosis.findings.iter().find(|found| {
        found.share >= LEAST_SHARE && least.is_some_and(|least| found.confidence >= least)
    });
    match found {
        Some(found) => {
            Err(Failure::new(Code::Found, format!("found: {}", found.trouble.title())).into())
        }
        None => Ok(()),
    }
}
