//! What `smbscope plan` answers in a build without the feature `plan`.

use crate::exit::Failure;
use crate::options::Verbosity;

/// Plan a change as commands with their undo (not in this build).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Plan {
    #[arg(hide = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Fails: there are no planners in this build.
pub fn run(_args: &Plan, _verbosity: Verbosity) -> anyhow::Result<()> {
    Err(Failure::usage(super::left_out("smbscope plan: this build has no planners")))
}
