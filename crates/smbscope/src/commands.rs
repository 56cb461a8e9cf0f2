//! The commands, one file each.

pub mod compare;
mod completions;
mod dataset;
mod decode;
mod doctor;
pub mod durability;
pub mod explain;
pub mod export;
mod import;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod live;
pub mod load;
mod man;
pub mod net;
#[cfg(not(feature = "plan"))]
pub mod no_plan;
#[cfg(not(feature = "serve"))]
mod no_serve;
#[cfg(not(feature = "sql"))]
mod no_sql;
mod ops;
#[cfg(feature = "plan")]
pub mod plan;
pub mod predict;
#[cfg(feature = "sql")]
mod query;
pub mod record;
mod report;
mod schema;
#[cfg(feature = "serve")]
mod serve;
pub mod top;
pub mod wan;

#[cfg(not(feature = "plan"))]
pub use self::no_plan as plan;
#[cfg(not(feature = "serve"))]
use self::no_serve as serve;
#[cfg(not(feature = "sql"))]
use self::no_sql as query;
use crate::cli::{Cli, Command};
use crate::settings;

/// Runs the command.
pub fn run(cli: &Cli) -> anyhow::Result<()> {
    // Without settings that can be read, these still help.
    let needs_none = matches!(
        cli.command,
        Command::Doctor(_) | Command::Schema(_) | Command::Completions(_) | Command::Man(_)
    );
    if !needs_none {
        settings::load()?;
    }
    match &cli.command {
        Command::Ops(args) => ops::run(args, cli.verbosity),
        Command::Query(args) => query::run(args, cli.verbosity),
        Command::Import(args) => import::run(args, cli.verbosity),
        Command::Serve(args) => serve::run(args, cli.verbosity),
        Command::Export(args) => export::run(args, cli.verbosity),
        Command::Report(args) => report::run(args, cli.verbosity),
        Command::Explain(args) => explain::run(args, cli.verbosity),
        Command::Compare(args) => compare::run(args, cli.verbosity),
        Command::Predict(args) => predict::run(args, cli.verbosity),
        Command::Plan(args) => plan::run(args, cli.verbosity),
        Command::Record(args) => record::run(args, cli.verbosity),
        Command::Top(args) => top::run(args, cli.verbosity),
        Command::Load(args) => load::run(args, cli.verbosity),
        Command::Durability(args) => durability::run(args, cli.verbosity),
        #[cfg(target_os = "linux")]
        Command::Lab(args) => lab::run(args, cli.verbosity),
        Command::Wan(args) => wan::run(args, cli.verbosity),
        Command::Net(args) => net::run(args, cli.verbosity),
        Command::Schema(args) => schema::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Decode(args) => decode::run(args),
    }
}

/// What a command says that needs a feature which `make demo` leaves out.
#[cfg(not(all(feature = "kerberos", feature = "plan", feature = "serve", feature = "sql")))]
fn left_out(what: &str) -> String {
    format!("{what}: build with default features (cargo build --release -p smbscope)")
}
