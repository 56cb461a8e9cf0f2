//! Options of `smbscope compare`.

use smbscope_analysis::compare::By;

use crate::answer::AnswerOptions;
use crate::choices::one_of;
use crate::cli::PhaseCounted;
use crate::filter_options::FilterOptions;
use crate::format::RowFormat;
use crate::options::{Anonymize, Reading};
use crate::trace_options::TraceOptions;

/// Compare two recordings, or two or more CPU traces.
///
/// Shows for each command (or share, client, user or scenario) and in total: the elapsed time in A
/// and in B, the change of its mean in percent with a 95 % confidence interval, the effect size and
/// the p-value. The effect size is Cliff's delta: the probability that an operation of B takes
/// longer than one of A, minus the probability of the reverse, with its usual names (negligible,
/// small, medium, large). p is corrected for the number of groups. A star marks significant
/// changes.
///
/// Operations of one connection are not independent of each other. Therefore the statistics use
/// connections, the users of load runs, or blocks of time as samples; each row says which. Load
/// runs with the same workload, seed and scale are compared user by user. Warnings about recordings
/// that are not comparable come first: another mix of commands, another capture point, other users.
/// docs/method/compare.md describes the statistics and their limits.
///
/// Of CPU traces it shows the CPU time of each driver, interrupt and softirq before and after, whether the
/// change is larger than the variation within the traces, and from which name to which one time moved.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", |arg| arg.help(
    "Output format; json has times in seconds [default: text; with --html no output]"
)))]
#[command(after_help = "\
Examples:
  smbscope compare before.pcapng after.pcapng
  smbscope compare run-signed/ run-unsigned/
  smbscope compare monday/ tuesday/ --by share
  smbscope compare before/ after/ --share projects --from 5m --to 10m
  smbscope compare before/ after/ --html change.html
  smbscope compare flood.etl after.etl
  smbscope compare before/ after/ --format json | jq 'select(.significant)'")]
pub struct Compare {
    /// Recording before the change: a capture, a dataset or run folder, or `-` for standard input.
    #[arg(value_name = "A")]
    pub a: String,
    /// Recording after the change.
    #[arg(value_name = "B")]
    pub b: String,
    /// More CPU traces, each compared with A.
    #[arg(value_name = "C")]
    pub more: Vec<String>,
    /// How to group operations [default: command].
    #[arg(long, value_name = "KEY", value_parser = one_of(&By::ALL, By::name, help))]
    pub by: Option<By>,
    /// Operations of load runs to include [default: measured].
    #[arg(long, value_enum, value_name = "PHASE")]
    pub phase: Option<PhaseCounted>,
    /// Write all sections, tables and charts as text, not only the most important ones.
    #[arg(long)]
    pub all: bool,
    /// Where the comparison goes.
    #[command(flatten)]
    pub answer: AnswerOptions<RowFormat>,
    /// Which operations of both recordings are compared.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// How CPU traces are judged.
    #[command(flatten)]
    pub trace: TraceOptions,
    /// How the inputs are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Replacement of names by tokens.
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// How `--help` describes a grouping.
fn help(by: By) -> &'static str {
    match by {
        By::Command => "SMB command; for load runs also scenario",
        By::Scenario => "Scenario of a load run: how long its users waited",
        By::Share => "Share",
        By::Client => "Address of the client",
        By::User => "User",
    }
}
