//! `smbscope load`: simulated users on a server, by `smbscope_load`.
//!
//! Owns the options, the display of progress, and where rows go. It does not own users, steps, the search or the
//! definition of overload.

pub mod args;
mod display;
mod files;
mod matrix;
mod migrate;
mod run;
pub mod target;

use smbscope_load::workload::{BUILT_IN, MIGRATIONS, Migration};
use smbscope_report::format;
use smbscope_report::load::workload::workload_text;

use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::workload::outline;

use args::{Load, LoadCommand, ShowWorkload, WorkloadsCommand};

/// Runs users, makes or removes their files, or lists workloads.
pub fn run(args: &Load, verbosity: Verbosity) -> anyhow::Result<()> {
    if args.command.is_none()
        && let Some((migration, text)) = args::migrate::migration(&args.run)?
    {
        return migrate::run(&args.run, migration, text, verbosity);
    }
    match &args.command {
        None if args.run.matrix.matrix => matrix::run(&args.run, verbosity),
        None => run::run(&args.run, verbosity),
        Some(LoadCommand::Prepare(args)) => files::prepare(args, verbosity),
        Some(LoadCommand::Clean(args)) => files::clean(args, verbosity),
        Some(LoadCommand::Workloads(args)) => match &args.command {
            None => list(),
            Some(WorkloadsCommand::Show(args)) => show(args),
        },
    }
}

fn list() -> anyhow::Result<()> {
    let mut output = Output::stdout();
    for (name, _) in BUILT_IN {
        let (workload, _) = args::workload(name)?;
        let first = workload.description.split(". ").next().unwrap_or_default();
        output.text(&format!(
            "{name:<12} {} scenarios, {} an hour and user: {first}\n",
            workload.scenarios.len(),
            format::number(workload.runs_per_hour()),
        ))?;
    }
    for (name, text) in MIGRATIONS {
        if let Some(migration) = Migration::parse(name, name, text)? {
            output.text(&format!("{name:<12} bulk data: {}\n", migration.description))?;
        }
    }
    output.finish()
}

fn show(args: &ShowWorkload) -> anyhow::Result<()> {
    if let Some((_, text)) = MIGRATIONS.iter().find(|(name, _)| *name == args.workload) {
        // Its text says everything: there are no scenarios to count.
        let mut output = Output::stdout();
        output.text(text)?;
        return output.finish();
    }
    let (workload, text) = args::workload(&args.workload)?;
    let mut output = Output::stdout();
    if args.toml {
        output.text(&text)?;
    } else {
        output.text(&workload_text(&outline(&workload)))?;
    }
    output.finish()
}
