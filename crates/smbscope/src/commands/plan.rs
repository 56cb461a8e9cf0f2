//! `smbscope plan`: what one would do about it, as commands with their undo, or as checks. Nothing is executed.

mod cores;
mod replication;

use clap::Subcommand;

use crate::options::Verbosity;

/// Plan a change as commands with their undo.
///
/// Nothing is executed: the commands are printed, or written to files.
#[derive(Debug, clap::Args)]
pub struct Plan {
    #[command(subcommand)]
    pub what: What,
}

/// What is planned.
#[derive(Debug, Subcommand)]
pub enum What {
    Cores(Box<cores::Cores>),
    Replication(Box<replication::ReplicationArgs>),
}

/// Runs `smbscope plan`.
pub fn run(args: &Plan, verbosity: Verbosity) -> anyhow::Result<()> {
    match &args.what {
        What::Cores(args) => cores::run(args, verbosity),
        What::Replication(args) => replication::run(args, verbosity),
    }
}
