//! The report for a terminal: tables that fit its width, charts as rows of blocks, no colour.

mod charts;
mod table;

use std::fmt::{self, Write};

use crate::document::{Block, Curve, Facts, Histograms, Section};
use crate::format::{harmless, shortened};
use crate::{Meta, Report, sections};
use charts::{write_bars, write_curve, write_lines, write_timeline, write_waterfall};
use table::write_table;

/// Narrower terminals are written to as if they were this wide.
const WIDTH_MIN: usize = 60;
/// What is left of a text cell at least when it is shortened.
const CELL_MIN: usize = 16;

/// The report as text of at most `width` columns, as far as that is possible.
pub fn text(report: &Report, meta: &Meta, width: usize) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, report, meta, width.max(WIDTH_MIN));
    out
}

fn write(out: &mut String, report: &Report, meta: &Meta, width: usize) -> fmt::Result {
    for section in sections::sections(report, meta) {
        write_section(out, &section, width)?;
    }
    writeln!(out, "{}", "─".repeat(width))?;
    writeln!(
        out,
        "smbscope {}, schema {}, of {}",
        meta.version,
        report.schema_version,
        harmless(&meta.inputs.join(", "))
    )
}

fn write_section(out: &mut String, section: &Section, width: usize) -> fmt::Result {
    let title = section.title.to_uppercase();
    let line = width.saturating_sub(title.chars().count() + 4);
    writeln!(out, "── {title} {}\n", "─".repeat(line))?;
    wrapped(out, section.help, width)?;
    writeln!(out)?;
    for block in &section.blocks {
        match block {
            Block::Table(table) => write_table(out, table, width)?,
            Block::Facts(facts) => write_facts(out, facts, width)?,
            Block::Stacked(bars) => write_bars(out, bars, width)?,
            Block::Timeline(timeline) => write_timeline(out, timeline, width)?,
            Block::Lines(lines) => write_lines(out, lines, width)?,
            // The table of commands has them.
            Block::Histograms(Histograms { .. }) | Block::Curve(Curve { in_text: false, .. }) => {
                continue;
            }
            Block::Curve(curve) => write_curve(out, curve, width)?,
            Block::Waterfall(waterfall) => write_waterfall(out, waterfall, width)?,
            Block::Note(note) => wrapped(out, &harmless(note), width)?,
            Block::Warn(note) => wrapped(out, &format!("! {}", harmless(note)), width)?,
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Text in lines of at most `width`.
fn wrapped(out: &mut String, text: &str, width: usize) -> fmt::Result {
    let mut used = 0;
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            writeln!(out)?;
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    writeln!(out)
}

fn write_facts(out: &mut String, facts: &Facts, width: usize) -> fmt::Result {
    let caption = harmless(&facts.caption);
    writeln!(out, "{}", shortened(&caption, width))?;
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let title = longest(&mut facts.rows.iter().map(|fact| fact.title.chars().count()));
    let rest = width.saturating_sub(title + 4);
    let value = longest(
        &mut facts
            .rows
            .iter()
            .filter(|fact| !fact.note.is_empty())
            .map(|fact| fact.value.show().chars().count())
            // Longer values have a line of their own, and their notes below.
            .filter(|length| *length <= rest / 2),
    );
    for fact in &facts.rows {
        let shown = fact.value.show();
        write!(out, "  {:title$}  ", fact.title)?;
        if fact.note.is_empty() {
            long(out, &shown, rest, title + 4)?;
            continue;
        }
        let note = harmless(&fact.note);
        let indent = title + 4 + value + 2;
        let below = shown.chars().count() > value;
        match below {
            true => long(out, &shown, rest, title + 4)?,
            false => write!(out, "{shown:value$}  ")?,
        }
        let mut lines = String::new();
        wrapped(&mut lines, &note, width.saturating_sub(indent).max(CELL_MIN))?;
        for (number, line) in lines.lines().enumerate() {
            match number {
                0 if !below => writeln!(out, "{line}")?,
                _ => writeln!(out, "{:indent$}{line}", "")?,
            }
        }
    }
    Ok(())
}

/// Lines that text of one fact takes at most.
const LINES_MAX: usize = 8;

/// A fact's text, in several lines where it has spaces to break at.
fn long(out: &mut String, text: &str, width: usize, indent: usize) -> fmt::Result {
    let words = text.split(' ').map(|word| shortened(word, width)).collect::<Vec<_>>();
    let text = shortened(&words.join(" "), width * LINES_MAX);
    let mut lines = String::new();
    wrapped(&mut lines, &text, width)?;
    if lines.trim().is_empty() {
        return writeln!(out);
    }
    for (number, line) in lines.lines().enumerate() {
        match number {
            0 => writeln!(out, "{line}")?,
            _ => writeln!(out, "{:indent$}{line}", "")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_wrapped_between_words() {
        let mut out = String::new();
        wrapped(&mut out, "one two three", 8).unwrap();
        assert_eq!(out, "one two\nthree\n");
    }
}
