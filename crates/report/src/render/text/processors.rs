//! Charts of processors for a terminal.

use std::fmt::{self, Write};

use super::wrapped;
use crate::document::{Call, Calls, Cause, Strip};
use crate::value::format;
use crate::value::format::{harmless, shortened};

/// Processors that a short text shows, the busiest.
const ROWS: usize = 8;
/// From which share of samples on a call is a line, and the deepest.
const CALL_SHARE: f64 = 0.02;
const CALL_DEPTH: usize = 24;

/// A row of shades for each processor; if `brief` only those that are ever busy.
pub fn write_strip(out: &mut String, chart: &Strip, width: usize, brief: bool) -> fmt::Result {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let rows =
        chart.groups.iter().flat_map(|(group, rows)| rows.iter().map(move |row| (group, row)));
    let mut rows: Vec<_> = rows.collect();
    let all = rows.len();
    let most = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    if brief {
        rows.retain(|(_, row)| most(&row.shares) >= 0.25);
        rows.truncate(ROWS);
        if rows.is_empty() {
            return Ok(());
        }
    }
    match chart.whole_ns {
        ..=0 => writeln!(out, "{}", chart.caption)?,
        whole => writeln!(out, "{}, {}", chart.caption, format::duration(whole))?,
    }
    let label = rows.iter().map(|(_, row)| row.label.chars().count()).max().unwrap_or(0);
    let words = rows.iter().map(|(_, row)| row.words.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + words + 6).clamp(10, 72);
    let mut last = None;
    for (group, row) in &rows {
        if !brief && chart.groups.len() > 1 && last != Some(*group) {
            writeln!(out, "  {}", harmless(group))?;
            last = Some(*group);
        }
        let line: String = (0..room.min(row.shares.len().max(1)))
            .map(|place| {
                let cells = room.min(row.shares.len().max(1));
                let from = place * row.shares.len() / cells;
                let to = ((place + 1) * row.shares.len() / cells).max(from + 1);
                let part = row.shares.get(from..to.min(row.shares.len())).unwrap_or(&[]);
                let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
                let shade = (mean * 4.0).ceil().clamp(0.0, 4.0) as usize;
                SHADES.get(shade).copied().unwrap_or(' ')
            })
            .collect();
        writeln!(out, "  {:>label$}  {line}  {:>words$}", harmless(&row.label), row.words)?;
    }
    match all - rows.len() {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more"),
    }
}

/// The tree of calls, indented.
pub fn write_calls(out: &mut String, chart: &Calls, width: usize) -> fmt::Result {
    writeln!(out, "{} ({} samples)", chart.caption, format::count(chart.samples))?;
    chart.nodes.iter().try_for_each(|node| write_call(out, node, chart.samples, 0, width))
}

fn write_call(out: &mut String, node: &Call, all: u64, depth: usize, width: usize) -> fmt::Result {
    let share = node.samples as f64 / all.max(1) as f64;
    if share < CALL_SHARE || depth > CALL_DEPTH {
        return Ok(());
    }
    let role = if node.role.is_empty() { String::new() } else { format!(" ({})", node.role) };
    let own = node.own_samples as f64 / all.max(1) as f64;
    let own =
        if own >= CALL_SHARE { format!("  itself {}", format::share(own)) } else { String::new() };
    let line = format!(
        "  {:>7}  {}{}{role}{own}",
        format::share(share),
        "  ".repeat(depth),
        harmless(&node.name)
    );
    writeln!(out, "{}", shortened(&line, width))?;
    node.calls.iter().try_for_each(|call| write_call(out, call, all, depth + 1, width))
}

/// A cause; if `brief` without what it is based on.
pub fn write_cause(
    out: &mut String,
    cause: &Cause,
    number: usize,
    width: usize,
    brief: bool,
) -> fmt::Result {
    let cost = if cause.cost.is_empty() { String::new() } else { format!(" ({})", cause.cost) };
    wrapped(out, &format!("{number}. {}{cost}", cause.title), width)?;
    let indented = |out: &mut String, text: &str| -> fmt::Result {
        let mut lines = String::new();
        wrapped(&mut lines, &harmless(text), width.saturating_sub(3))?;
        lines.lines().try_for_each(|line| writeln!(out, "   {line}"))
    };
    indented(out, &format!("{}.", cause.what))?;
    for (title, lines) in &cause.rows {
        let shown = if brief { usize::from(*title == "Do") } else { lines.len() };
        for line in lines.iter().take(shown) {
            indented(out, &format!("{title}: {line}"))?;
        }
    }
    Ok(())
}
