//! The commands, one file each.

pub mod compare;
mod completions;
mod dataset;
mod decode;
mod doctor;
pub mod explain;
pub mod export;
mod import;
#[cfg(target_os = "linux")]
pub mod lab;
mod live;
pub mod load;
mod man;
#[cfg(not(feature = "sql"))]
mod no_sql;
mod ops;
pub mod predict;
#[cfg(feature = "sql")]
mod query;
pub mod record;
mod report;
mod schema;
pub mod top;
pub mod wan;

#[cfg(not(feature = "sql"))]
use self::no_sql as query;
use crate::cli::{Cli, Command};

/// Runs the command.
pub fn run(cli: &Cli) -> anyhow::Result<()> {
    match &cli.command {
        Command::Ops(args) => ops::run(args, cli.talk),
        Command::Query(args) => query::run(args, cli.talk),
        Command::Import(args) => import::run(args, cli.talk),
        Command::Export(args) => export::run(args, cli.talk),
        Command::Report(args) => report::run(args, cli.talk),
        Command::Explain(args) => explain::run(args, cli.talk),
        Command::Compare(args) => compare::run(args, cli.talk),
        Command::Predict(args) => predict::run(args, cli.talk),
        Command::Record(args) => record::run(args, cli.talk),
        Command::Top(args) => top::run(args, cli.talk),
        Command::Load(args) => load::run(args, cli.talk),
        #[cfg(target_os = "linux")]
        Command::Lab(args) => lab::run(args, cli.talk),
        Command::Wan(args) => wan::run(args, cli.talk),
        Command::Schema(args) => schema::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Decode(args) => decode::run(args),
    }
}
