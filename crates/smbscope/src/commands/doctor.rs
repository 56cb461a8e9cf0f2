//! `smbscope doctor`: what this machine has for smbscope's commands, and what to do about the rest.
//!
//! How the list looks and what it means for the exit code; the checks themselves are in
//! [`checks`].

mod checks;
mod sample;

use anstyle::AnsiColor;
use serde_json::json;

use crate::cli::Doctor;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::output::Output;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Ok,
    /// smbscope works without it, but something is missing or slower.
    Warn,
    /// smbscope does not work without it.
    Missing,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Missing => "missing",
        }
    }
}

/// One line of the list.
#[derive(Debug)]
struct Check {
    /// What was looked at.
    name: &'static str,
    state: State,
    /// What was found.
    found: String,
    /// What to do, in one sentence, unless all is well.
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, state: State::Ok, found: found.into(), remedy: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name, state: State::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn missing(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name, state: State::Missing, found: found.into(), remedy: Some(remedy.into()) }
    }
}

/// Makes all checks and shows them.
pub fn run(args: &Doctor) -> anyhow::Result<()> {
    if let Some(trace) = &args.sample {
        return sample::run(trace, args.format);
    }
    let checks = checks::all();
    let mut output = Output::stdout();
    let text = match args.format {
        TextFormat::Text => list(&checks, &output),
        TextFormat::Json => {
            let checks = checks.iter().map(|check| {
                json!({
                    "name": check.name,
                    "state": check.state.name(),
                    "found": check.found,
                    "remedy": check.remedy,
                })
            });
            format!("{:#}\n", json!({ "checks": checks.collect::<Vec<_>>() }))
        }
    };
    output.text(&text)?;
    output.finish()?;
    let missing: Vec<_> = checks
        .iter()
        .filter(|check| check.state == State::Missing)
        .map(|check| check.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "doctor: smbscope does not work as long as this is missing: {}",
        missing.join(", ")
    );
    Err(Failure::new(Code::Runtime, message).into())
}

fn list(checks: &[Check], output: &Output) -> String {
    let mut text = String::new();
    for check in checks {
        let colour = match check.state {
            State::Ok => AnsiColor::Green,
            State::Warn => AnsiColor::Yellow,
            State::Missing => AnsiColor::Red,
        };
        let (begin, end) = output.style(colour.on_default());
        let state = check.state.name();
        text.push_str(&format!("{begin}{state:<7}{end}  {:<14}  {}\n", check.name, check.found));
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("{:27}{remedy}\n", ""));
        }
    }
    text
}
