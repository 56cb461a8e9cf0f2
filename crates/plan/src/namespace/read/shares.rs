//! Which shares servers have: `net share`, `net view`, logs of robocopy.
//!
//! `net share` does not print the server: it is the file's name. A log of robocopy shows only that its source and its
//! destination could be reached, or not.

use serde::Serialize;

use super::super::form::{folded, split_unc};
use super::fragments::after;
use super::{Context, Place};
use crate::input::lines::Lines;

/// Shares of one list.
const SHARES_MAX: usize = 100_000;

/// What printed a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareSource {
    /// All shares of a server.
    NetShare,
    /// All shares of a server that are not hidden (`name$`).
    NetView,
    /// Some paths that were reached.
    Robocopy,
}

/// Shares of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShareList {
    pub server: String,
    pub source: ShareSource,
    pub shares: Vec<String>,
    /// Shares that could not be reached, with the message.
    pub failures: Vec<(String, String)>,
    pub place: Place,
}

impl ShareList {
    /// Whether the server has the share; none if the list does not say.
    pub fn has(&self, share: &str) -> Option<bool> {
        let share = folded(share);
        if self.shares.iter().any(|name| folded(name) == share) {
            return Some(true);
        }
        if self.failures.iter().any(|(name, _)| folded(name) == share) {
            return Some(false);
        }
        match self.source {
            ShareSource::NetShare => Some(false),
            ShareSource::NetView => (!share.ends_with('$')).then_some(false),
            ShareSource::Robocopy => None,
        }
    }
}

fn is_rule(line: &str) -> bool {
    line.len() >= 20 && line.bytes().all(|byte| byte == b'-')
}

/// The rule below a heading of `net`: within three lines.
fn rule_ahead(lines: &Lines<'_>) -> Option<usize> {
    (1..6).find(|ahead| lines.ahead(*ahead).is_some_and(|line| is_rule(line.trim())))
}

pub(super) fn starts(lines: &Lines<'_>) -> bool {
    let line = lines.peek().unwrap_or_default().trim();
    after(line, "Shared resources at ").is_some()
        || (after(line, "Share name").is_some() && rule_ahead(lines).is_some())
        || (is_rule(line) && lines.ahead(1).is_some_and(|next| next.contains("ROBOCOPY")))
        || line.contains("ROBOCOPY     ::")
}

pub(super) fn read(lines: &mut Lines<'_>, context: &mut Context<'_>) {
    let place = context.place(lines.number());
    let line = lines.peek().unwrap_or_default().trim();
    if is_rule(line) || line.contains("ROBOCOPY") {
        robocopy(lines, context, place);
        return;
    }
    let (server, source) = match after(line, "Shared resources at ") {
        Some(server) => (server.trim().trim_start_matches('\\').to_owned(), ShareSource::NetView),
        None => (context.stem().to_owned(), ShareSource::NetShare),
    };
    lines.skip(rule_ahead(lines).unwrap_or(0) + 1);
    let mut shares = Vec::new();
    while let Some(line) = lines.peek() {
        let text = line.trim_end();
        if text.is_empty() || after(text, "The command completed").is_some() {
            break;
        }
        lines.skip(1);
        // A long name is alone in its line; what follows it is indented.
        if text.starts_with(' ') || shares.len() >= SHARES_MAX {
            continue;
        }
        let name = text.split("  ").next().unwrap_or(text).trim();
        // Names that fill their column are followed by one space and a drive.
        let name = match name.find(":\\") {
            Some(at) if at >= 2 => name.get(..at - 1).unwrap_or(name).trim(),
            _ => name,
        };
        shares.push(name.to_owned());
    }
    let list = ShareList { server, source, shares, failures: Vec::new(), place };
    context.reading.shares.push(list);
}

/// A log up to the next one.
fn robocopy(lines: &mut Lines<'_>, context: &mut Context<'_>, place: Place) {
    let mut paths: Vec<String> = Vec::new();
    let mut failures: Vec<(String, String)> = Vec::new();
    let mut has_heading = false;
    while let Some(line) = lines.peek() {
        let text = line.trim();
        if text.contains("ROBOCOPY") {
            if has_heading {
                break;
            }
            has_heading = true;
        } else if is_rule(text)
            && has_heading
            && lines.ahead(1).is_some_and(|next| next.contains("ROBOCOPY"))
        {
            break;
        } else if let Some((_, path)) = ["Source", "Dest"]
            .iter()
            .find_map(|word| after(text, word)?.split_once(':'))
            .filter(|(between, _)| between.trim().is_empty())
        {
            if path.trim().starts_with("\\\\") && paths.len() < SHARES_MAX {
                paths.push(path.trim().to_owned());
            }
        } else if let Some((_, error)) = text.split_once("ERROR ") {
            let path = error.find("\\\\").and_then(|at| error.get(at..)).unwrap_or_default();
            let code = error.split_whitespace().next().unwrap_or_default();
            // 2, 3: no such file or path, 5: no access, 53: no such server, 67: no such share.
            let is_missing = matches!(code, "2" | "3" | "53" | "67");
            if is_missing && !path.is_empty() && failures.len() < SHARES_MAX {
                let number = error.split(')').next().unwrap_or(error);
                failures.push((path.trim().to_owned(), format!("ERROR {number})")));
            }
        }
        lines.skip(1);
    }
    for path in &paths {
        let Some((server, share, _)) = split_unc(path) else { continue };
        let failed = failures.iter().find(|(failed, _)| {
            split_unc(failed).is_some_and(|(other, name, below)| {
                folded(other) == folded(server) && folded(name) == folded(share) && below.is_empty()
            })
        });
        let failed: Vec<_> =
            failed.map(|(_, message)| (share.to_owned(), message.clone())).into_iter().collect();
        context.reading.shares.push(ShareList {
            server: server.to_owned(),
            source: ShareSource::Robocopy,
            shares: if failed.is_empty() { vec![share.to_owned()] } else { Vec::new() },
            failures: failed,
            place,
        });
    }
}
