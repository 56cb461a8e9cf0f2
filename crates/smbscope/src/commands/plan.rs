//! `smbscope plan`: what one would do about it, as commands with their undo, or as checks. Nothing is executed.

mod baseline;
mod cores;
mod namespace;
mod replication;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;

use crate::exit::Failure;
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
    Baseline(Box<baseline::BaselineArgs>),
    Namespace(Box<namespace::NamespaceArgs>),
    Replication(Box<replication::ReplicationArgs>),
}

/// Runs `smbscope plan`.
pub fn run(args: &Plan, verbosity: Verbosity) -> anyhow::Result<()> {
    match &args.what {
        What::Cores(args) => cores::run(args, verbosity),
        What::Baseline(args) => baseline::run(args, verbosity),
        What::Namespace(args) => namespace::run(args, verbosity),
        What::Replication(args) => replication::run(args, verbosity),
    }
}

/// `apply.ps1` to `apply.undo.ps1`.
pub(super) fn undo_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.undo.{}", extension.to_string_lossy()),
        None => format!("{stem}.undo"),
    };
    path.with_file_name(name)
}

pub(super) fn new_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let name = path.display();
    let mut file = std::fs::File::create_new(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{name} exists already: remove it, or give another name"))
        }
        _ => Failure::usage(format!("cannot write {name}: {error}")),
    })?;
    file.write_all(bytes).with_context(|| format!("cannot write {name}"))
}

/// Replaces a state file as a whole, so that a write that is cut off loses nothing.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let next = path.with_extension("next");
    // Left by a write that was cut off.
    let _ = std::fs::remove_file(&next);
    new_file(&next, bytes)?;
    std::fs::rename(&next, path).with_context(|| format!("cannot write {}", path.display()))
}
