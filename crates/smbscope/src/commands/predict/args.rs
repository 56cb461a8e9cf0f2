//! The arguments of `smbscope predict`, and what they request of the pipeline.

use std::ffi::OsString;
use std::path::PathBuf;

use smbscope_analysis::predict::changes::Change;

use super::files;
use crate::answer::AnswerOptions;
use crate::filter_options::FilterOptions;
use crate::format::{RowFormat, TextFormat};
use crate::options::{Anonymize, Reading};
use crate::pipeline::forecast::Request;

/// Predict what a change would bring.
///
/// From recordings (captures, datasets, run folders): the recorded operations are replayed as they
/// would have gone with the change. A client sends its next request because of the last reply that it
/// received. An operation takes its recorded time, minus the cost of the network and of the changed
/// server slices, plus their cost with the change. Results are shown before and after the change by
/// command, by scenario of a load run, and in total. Without a change, the output shows what the
/// recorded times consist of.
///
/// From a profile, by means alone: either a profile of your own recordings (--save-profile), or
/// `published`, the model for home directories by Lovinger and Kruse (SDC 2010). It has the means of a
/// reference server under 2,250 users with SMB 2.1, with collapsed directory opens, and with directory
/// leases. The output is the published table, the time that a user spends on each scenario in one
/// hour, for that server or for any other network or server.
///
/// Changes apply one after the other, in the given order.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    subcommand_help_heading = "Instead of a prediction",
    disable_help_subcommand = true,
    mut_arg("html", |arg| arg.conflicts_with_all(["detail", "list"])),
    mut_arg("format", |arg| arg.help(
        "Output format; json is one object per line: what it describes, seconds before and after, and \
         their parts [default: text; with --html no output]"
    ))
)]
#[command(after_help = "\
Examples:
  smbscope predict run/ --change rtt=20ms
  smbscope predict capture.pcapng --change distance=2795km --change bandwidth=45mbit
  smbscope predict recording/ --change filesystem=4x --format json
  smbscope predict run/ --change rtt=20ms --html far.html
  smbscope predict recording/ --detail
  smbscope predict recording/ --share projects --change rtt=20ms
  smbscope predict run/ --save-profile server.json
  smbscope predict --profile server.json --change rtt=20ms
  smbscope predict --profile published --change rtt=20ms
  smbscope predict --profile published --change dirlease
  smbscope predict calibrate --out crypto.json
  smbscope predict run/ --change signing=aes-gmac --calibration crypto.json
  smbscope predict --list")]
pub struct Predict {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Capture files, datasets or run folders to predict from, or `-` for a capture on standard input.
    #[arg(value_name = "INPUT", required_unless_present_any = ["profile", "list"])]
    pub inputs: Vec<String>,
    /// Predict from this profile instead: published, published-means (the published means alone, within
    /// 4.3 % of the published results), or a file written by --save-profile.
    #[arg(long, value_name = "PROFILE", conflicts_with = "inputs")]
    pub profile: Option<ProfileName>,
    #[command(flatten)]
    pub prediction: PredictionArgs,
    /// Show the distribution of each part of the time, by command and size.
    #[arg(long, conflicts_with_all = ["profile", "changes", "list"])]
    pub detail: bool,
    /// Reduce the recording to a profile and write it to this file: the cost of an operation by command
    /// and size, and what scenarios need. It contains no names of files, users or machines.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "changes", "list"])]
    pub save_profile: Option<PathBuf>,
    /// List the changes that can be predicted.
    #[arg(long, conflicts_with_all = ["inputs", "profile", "changes"])]
    pub list: bool,
    /// Where the prediction goes.
    #[command(flatten)]
    pub answer: AnswerOptions<RowFormat>,
    /// Which operations of the recordings are replayed.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// How inputs are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Replacement of names by tokens.
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// The changes to predict.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PredictionArgs {
    /// Predict this change (`smbscope predict --list` shows all changes); can be repeated.
    #[arg(long = "change", value_name = "CHANGE", help_heading = "Changes")]
    pub changes: Vec<Change>,
    /// What signing and encryption cost the server: a file written by `smbscope predict calibrate`.
    #[arg(long, value_name = "FILE", help_heading = "Changes")]
    pub calibration: Option<PathBuf>,
}

impl PredictionArgs {
    /// What the pipeline is to predict.
    pub fn request(&self, in_detail: bool) -> anyhow::Result<Request> {
        let calibration = self.calibration.as_deref().map(files::read_calibration).transpose()?;
        Ok(Request { changes: self.changes.clone(), calibration, in_detail })
    }
}

/// What to do instead of a prediction.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    Calibrate(Calibrate),
}

/// Measure what signing and encryption cost on this machine.
///
/// Run it on the server: it starts a private instance of the installed Samba, which uses its own
/// crypto library. A client on the same machine sends small requests, reads and writes with each kind
/// of signing and encryption in turn. The output is the additional time of operations compared with
/// plain messages, per message and per byte, at the server and at the client.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope predict calibrate --out crypto.json
  smbscope predict run/ --change encryption=aes-128-gcm --calibration crypto.json")]
pub struct Calibrate {
    /// smbd, or a folder that contains bin/smbd or sbin/smbd (default: the installed smbd).
    #[arg(long, value_name = "PATH")]
    pub samba: Option<PathBuf>,
    /// How long to measure, s; each kind of protection is measured at least three times.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Write the result to this file, for --calibration.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of standard output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Where a profile comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileName {
    /// The published model, with one constant for each command that is fitted to its results.
    Published,
    /// The published means alone.
    PublishedMeans,
    /// A file.
    File(PathBuf),
}

impl From<OsString> for ProfileName {
    fn from(text: OsString) -> ProfileName {
        match text.to_str() {
            Some("published") => ProfileName::Published,
            Some("published-means") => ProfileName::PublishedMeans,
            _ => ProfileName::File(text.into()),
        }
    }
}
