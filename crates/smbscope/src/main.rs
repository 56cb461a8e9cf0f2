//! smbscope: where time is spent on an SMB file share.
//!
//! The frame of the program: parses the command line, runs a command, and turns its error into one line on standard
//! error and an exit code. [`commands`] turn arguments into calls of the [`pipeline`] and print results.

// The comments of arguments are help texts, where brackets are not links.
#![allow(rustdoc::broken_intra_doc_links)]
// Without planners some of what they share with other commands has one user less, or none.
#![cfg_attr(not(feature = "plan"), allow(dead_code))]

mod answer;
#[cfg(target_os = "linux")]
mod capabilities;
mod choices;
mod cli;
mod clock_sync;
mod commands;
mod exit;
mod fail_on;
mod filter_options;
mod format;
mod interrupt;
mod local_time;
mod options;
mod output;
mod pipeline;
mod progress;
#[cfg(test)]
mod recommended;
mod secret_files;
mod settings;
mod subprocess;
mod terminal;
mod trace_options;
mod windows;

use std::process::ExitCode;

use clap::Parser as _;

use crate::exit::{Code, code_of};

/// Rows have 600 bytes, are short-lived, and are often freed by another thread than the one that allocated them. The C
/// library's allocator is slow in this case (docs/measurements/benchmarks.md).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // The shells of Windows leave wildcards to programs.
    let arguments = commands::record::windows::arguments(wild::args_os());
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output. If its reader has left, the error is ignored.
            let _ = error.print();
            let code = if error.use_stderr() { Code::Usage } else { Code::Ok };
            return code.into();
        }
    };
    cli.verbosity.color.apply();
    output::set_force(cli.verbosity.force);
    output::set_quiet(cli.verbosity.quiet);
    interrupt::install();
    match commands::run(&cli) {
        Ok(()) => Code::Ok.into(),
        Err(error) => {
            let code = code_of(&error);
            if code != Code::Ok {
                anstream::eprintln!("smbscope: {}", one_line(&error));
            }
            code.into()
        }
    }
}

/// The error and its causes in one line. A cause that the text before it already contains is omitted; one that points
/// at a place in a file keeps its lines.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        let parts = cause.split('\n').filter(|part| !part.trim().is_empty());
        let cause = if parts
            .clone()
            .any(|part| part.trim_start_matches([' ', '|']).starts_with('^'))
        {
            parts.map(smbscope_report::format::sanitized).collect::<Vec<_>>().join("\n")
        } else {
            smbscope_report::format::sanitized(&parts.map(str::trim).collect::<Vec<_>>().join("; "))
        };
        if line.contains(&cause) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&cause);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_its_causes() {
        let error = anyhow::anyhow!("disk full").context("x: cannot be written\n  really");
        assert_eq!(one_line(&error), "x: cannot be written; really: disk full");
        let error = anyhow::anyhow!("b").context("a: b");
        assert_eq!(one_line(&error), "a: b");
        let error = anyhow::anyhow!("x.toml:1:3: no\n 1 | a\u{1b}\n   |   ^^\n help: b");
        assert!(one_line(&error).ends_with("\n   |   ^^\n help: b"), "{}", one_line(&error));
        assert!(!one_line(&error).contains('\u{1b}'));
    }
}
