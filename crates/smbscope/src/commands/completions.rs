//! `smbscope completions`: a script that completes commands, options, and values of options in a shell.

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::{Command, CommandFactory as _};

use crate::cli::{Cli, Completions};
use crate::output::Output;

/// Writes the script.
pub fn run(args: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "smbscope", &mut script);
    let mut output = Output::stdout();
    output.text(&String::from_utf8_lossy(&script))?;
    output.finish()
}

/// The command line with the values of options that take any text, but mostly one of a list. Only the scripts have them:
/// as values of the parser they would be the only ones.
fn command() -> Command {
    let command = Cli::command();
    let command = with_values(command, &["predict"], "changes", changes());
    let command = with_values(command, &["report"], "changes", changes());
    let command = with_values(command, &["load"], "workload", workloads());
    let command = with_values(command, &["load", "prepare"], "workload", workloads());
    #[cfg(feature = "sql")]
    let command = with_values(command, &["query"], "question", questions());
    command
}

fn with_values(
    command: Command,
    path: &[&str],
    argument: &'static str,
    values: Vec<Value>,
) -> Command {
    match path {
        [] => command.mut_arg(argument, |arg| {
            let values = values
                .into_iter()
                .map(|(name, help)| clap::builder::PossibleValue::new(name).help(help));
            arg.value_parser(PossibleValuesParser::new(values))
        }),
        [first, rest @ ..] => {
            command.mut_subcommand(*first, |sub| with_values(sub, rest, argument, values))
        }
    }
}

/// A value and what it is.
type Value = (&'static str, StyledStr);

fn changes() -> Vec<Value> {
    let entries = smbscope_analysis::predict::changes::REGISTRY.iter();
    entries.map(|entry| (entry.spec.example, entry.spec.meaning.into())).collect()
}

fn workloads() -> Vec<Value> {
    use smbscope_load::workload::{BUILT_IN, MIGRATIONS};
    let names = BUILT_IN.iter().chain(MIGRATIONS.iter()).map(|(name, _)| *name);
    names.map(|name| (name, "built in".into())).collect()
}

#[cfg(feature = "sql")]
fn questions() -> Vec<Value> {
    let all = smbscope_store::questions::list().iter();
    all.map(|question| (question.name, question.title().into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_have_the_values_of_every_list() {
        for shell in
            [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish]
        {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "smbscope", &mut script);
            let script = String::from_utf8(script).unwrap();
            for (value, _) in changes().into_iter().chain(workloads()) {
                // Shells differ in what they escape: up to the first `=`.
                let name = value.split('=').next().unwrap_or_default();
                assert!(script.contains(name), "{shell}: {value}");
            }
        }
    }
}
