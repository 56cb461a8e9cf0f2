//! `smbscope completions`: a script that completes commands and options in a shell.

use clap::CommandFactory as _;

use crate::cli::{Cli, Completions};
use crate::output::Output;

/// Writes the script.
pub fn run(args: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "smbscope", &mut script);
    let mut output = Output::stdout();
    output.text(&String::from_utf8_lossy(&script))?;
    output.finish()
}
