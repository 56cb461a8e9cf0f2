//! The report for a terminal: the verdict and what fits on a screen or two, or everything. Tables fit the
//! width, charts are rows of blocks, only the verdict has a colour.

mod cards;
mod charts;
mod table;

use std::fmt::{self, Write};

use crate::document::{Block, Chart, Curve, Document, Facts, Section, TextOptions, Verdict};
use crate::value::{
    Clock,
    format::{self, sanitized, shortened},
};
use cards::{write_card, write_findings};
use charts::{write_areas, write_bars, write_curve, write_lines, write_portions, write_timeline};
use table::write_table;

/// Narrower terminals are written to as if they were this wide.
const WIDTH_MIN: usize = 60;
/// What is left of a text cell at least when it is shortened.
const CELL_MIN: usize = 16;

/// Lines of a text that is not to be complete.
pub const LINES: usize = 60;
/// Lines that one section takes of them at most.
const SECTION_LINES: usize = 15;
/// Rows of a table in such a text, and of one that a complete text shows with at least [`MANY`] rows.
const ROWS: usize = 5;
const ROWS_MAX: usize = 8;
const MANY: usize = 40;
/// Findings of such a text.
pub const FINDINGS_SHOWN: usize = 3;
/// Notices of such a text.
const NOTICES: usize = 3;

/// Any document as text.
pub(crate) fn document_text(document: &Document, options: &TextOptions) -> String {
    let width = options.columns().max(WIDTH_MIN);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = if options.all {
        write(&mut out, document, width, options)
    } else {
        write_brief(&mut out, document, width, options)
    };
    out
}

fn write(
    out: &mut String,
    document: &Document,
    width: usize,
    options: &TextOptions,
) -> fmt::Result {
    write_head(out, document, width, options)?;
    writeln!(out)?;
    for section in &document.sections {
        write_title(out, section, width)?;
        writeln!(out)?;
        wrapped(out, section.help, width)?;
        writeln!(out)?;
        write_blocks(out, &section.blocks, document, width)?;
    }
    write_foot(out, document, width)
}

/// What fits: sections in their order, as long as they have room, and what was left out.
fn write_brief(
    out: &mut String,
    document: &Document,
    width: usize,
    options: &TextOptions,
) -> fmt::Result {
    write_head(out, document, width, options)?;
    let mut foot = String::new();
    write_foot(&mut foot, document, width)?;
    let head = out.lines().count() + foot.lines().count();
    let shown = document.sections.iter().filter(|section| !section.is_folded());
    let mut parts = Vec::new();
    for section in shown {
        let text = brief_section(section, document, width)?;
        // A title alone says nothing.
        if text.lines().count() > 2 {
            parts.push((section.title, text));
        }
    }
    // The last ones give way until there is room for what was left out, too.
    loop {
        let kept: Vec<_> = parts.iter().map(|(title, _)| *title).collect();
        let others = document.sections.iter().map(|section| section.title);
        let others: Vec<_> = others.filter(|title| !kept.contains(title)).collect();
        let what = if others.is_empty() {
            "Details are left out".to_owned()
        } else {
            format!("Left out: details, and {}", others.join("; "))
        };
        let mut more = String::from("\n");
        wrapped(&mut more, &format!("{what}. --all shows everything, --html FILE a page."), width)?;
        let lines = |text: &String| text.lines().count();
        let used = head + lines(&more) + parts.iter().map(|(_, text)| lines(text)).sum::<usize>();
        if used <= LINES || parts.is_empty() {
            parts.iter().for_each(|(_, text)| out.push_str(text));
            out.push_str(&more);
            out.push_str(&foot);
            return Ok(());
        }
        parts.pop();
    }
}

/// The blocks of a section that fit in [`SECTION_LINES`].
fn brief_section(
    section: &Section,
    document: &Document,
    width: usize,
) -> Result<String, fmt::Error> {
    let mut lines = String::from("\n");
    write_title(&mut lines, section, width)?;
    for (place, block) in section.blocks.iter().enumerate() {
        let mut one = String::new();
        write_briefly(&mut one, block, place, document, width)?;
        // The first one is what the section is about.
        if place == 0 || lines.lines().count() + one.lines().count() <= SECTION_LINES {
            lines.push_str(&one);
        }
    }
    Ok(lines)
}

/// The verdict, why, and the numbers.
fn write_head(
    out: &mut String,
    document: &Document,
    width: usize,
    options: &TextOptions,
) -> fmt::Result {
    let about = format!("{} · {}", sanitized(&document.title), document.span);
    writeln!(out, "{}\n", shortened(&about, width))?;
    write_verdict(out, &document.verdict, width, options)?;
    if !document.tiles.is_empty() {
        writeln!(out)?;
    }
    let tiles = document.tiles.iter().map(|tile| {
        let note = if tile.note.is_empty() { String::new() } else { format!(" ({})", tile.note) };
        // Spaces that do not break.
        sanitized(&format!("{}: {}{note}", tile.title, tile.value)).replace(' ', "\u{a0}")
    });
    let tiles: Vec<_> = tiles.collect();
    if !tiles.is_empty() {
        wrapped(out, &tiles.join(" · "), width)?;
    }
    let notices = if options.all { usize::MAX } else { NOTICES };
    for notice in document.notices.iter().take(notices) {
        write_block(out, notice, document, width)?;
    }
    Ok(())
}

/// The verdict, in the colour of its tone where there are colours, and why.
pub(crate) fn write_verdict(
    out: &mut String,
    verdict: &Verdict,
    width: usize,
    options: &TextOptions,
) -> fmt::Result {
    let mut sentence = String::new();
    wrapped(&mut sentence, &format!("{}.", sanitized(&verdict.sentence)), width)?;
    let (start, end) = options.toned(verdict.tone);
    writeln!(out, "{start}{}{end}", sentence.trim_end())?;
    verdict.reasons.iter().try_for_each(|reason| wrapped(out, &sanitized(reason), width))
}

fn write_foot(out: &mut String, document: &Document, width: usize) -> fmt::Result {
    writeln!(out, "{}", "─".repeat(width))?;
    writeln!(
        out,
        "smbscope {}, schema {}, of {}",
        document.version,
        document.schema,
        sanitized(&document.inputs.join(", "))
    )
}

fn write_title(out: &mut String, section: &Section, width: usize) -> fmt::Result {
    let title = section.title.to_uppercase();
    let line = width.saturating_sub(title.chars().count() + 4);
    writeln!(out, "── {title} {}", "─".repeat(line))
}

fn write_blocks(
    out: &mut String,
    blocks: &[Block],
    document: &Document,
    width: usize,
) -> fmt::Result {
    let mut number = 0;
    for block in blocks {
        let before = out.len();
        match block {
            Block::Fold(fold) => write_blocks(out, &fold.blocks, document, width)?,
            Block::Finding(card) => {
                number += 1;
                write_card(out, card, number, width, false)?;
            }
            block => write_block(out, block, document, width)?,
        }
        if out.len() > before && !matches!(block, Block::Fold(_)) {
            writeln!(out)?;
        }
    }
    Ok(())
}

/// A block in few lines; nothing of what only a complete text has.
fn write_briefly(
    out: &mut String,
    block: &Block,
    place: usize,
    document: &Document,
    width: usize,
) -> fmt::Result {
    match block {
        Block::Table(table) => {
            let mut table = table.clone();
            table.in_text = if table.in_text >= MANY { ROWS_MAX } else { ROWS };
            table.sql = None;
            write_block(out, &Block::Table(table), document, width)
        }
        Block::Finding(_) if place >= FINDINGS_SHOWN => Ok(()),
        Block::Finding(card) => write_card(out, card, place + 1, width, true),
        Block::Drawing(drawing) => drawing.text(out, &TextOptions::new(width, false)),
        // The table of steps has its values.
        Block::Chart(Chart::Curve(_)) => Ok(()),
        Block::Facts(_) if document.sections.len() == 1 => write_block(out, block, document, width),
        Block::Chart(Chart::Portions(_)) | Block::Warn(_) => {
            write_block(out, block, document, width)
        }
        // The highest line, and of percentiles the second.
        Block::Chart(Chart::Lines(lines)) => {
            let mut lines = lines.clone();
            let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
            let highest = (0..lines.lines.len())
                .max_by(|a, b| most(&lines.lines[*a].1).total_cmp(&most(&lines.lines[*b].1)));
            let p95 = lines.lines.iter().position(|(name, _)| name == "p95");
            let one = p95.or(highest).unwrap_or(0);
            lines.lines = lines.lines.into_iter().skip(one).take(1).collect();
            lines.lines.iter_mut().for_each(|(name, _)| {
                *name = if *name == lines.caption {
                    name.clone()
                } else {
                    format!("{}, {name}", lines.caption)
                };
            });
            let mut text = String::new();
            write_lines(&mut text, &lines, width)?;
            text.lines().skip(1).try_for_each(|line| writeln!(out, "{line}"))
        }
        _ => Ok(()),
    }
}

fn write_block(out: &mut String, block: &Block, document: &Document, width: usize) -> fmt::Result {
    match block {
        Block::Table(table) => write_table(out, table, document, width),
        Block::Facts(facts) => write_facts(out, facts, &document.clock, width),
        Block::Chart(chart) => write_chart(out, chart, width),
        Block::Drawing(drawing) => drawing.text(out, &TextOptions::new(width, true)),
        Block::Findings(lines) => write_findings(out, lines, width),
        // The text of such a plan has its steps.
        Block::Steps(_) => Ok(()),
        Block::Note(note) => wrapped(out, &sanitized(note), width),
        Block::Warn(note) => wrapped(out, &format!("! {}", sanitized(note)), width),
        Block::Finding(_) | Block::Fold(_) => {
            write_blocks(out, std::slice::from_ref(block), document, width)
        }
    }
}

fn write_chart(out: &mut String, chart: &Chart, width: usize) -> fmt::Result {
    match chart {
        Chart::Areas(chart) => write_areas(out, chart, width),
        Chart::Curve(Curve { in_text: false, .. }) => Ok(()),
        Chart::Curve(curve) => write_curve(out, curve, width),
        Chart::Lines(lines) => write_lines(out, lines, width),
        Chart::Portions(portions) => write_portions(out, portions, width),
        Chart::Stacked(bars) => write_bars(out, bars, width),
        Chart::Timeline(timeline) => write_timeline(out, timeline, width),
        // Tables have them.
        Chart::Changes(_) | Chart::Histograms(_) | Chart::Times(_) => Ok(()),
    }
}

/// Text in lines of at most `width`.
pub(crate) fn wrapped(out: &mut String, text: &str, width: usize) -> fmt::Result {
    let mut used = 0;
    for word in format::words(text) {
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

/// Words after a title, in lines below each other.
pub(crate) fn indented(
    out: &mut String,
    indent: usize,
    title: &str,
    words: &str,
    width: usize,
) -> fmt::Result {
    let mut lines = String::new();
    wrapped(
        &mut lines,
        &format!("{title}{}", sanitized(words)),
        width.saturating_sub(indent).max(20),
    )?;
    lines.lines().try_for_each(|line| writeln!(out, "{:indent$}{line}", ""))
}

/// Wraps words to the width and indents all lines but the first one.
pub(crate) fn folded(text: &mut String, indent: usize, words: &str, width: usize) {
    let width = width.max(indent + 20);
    let mut column = 0;
    for word in format::words(words) {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            column = 0;
        }
        let front = match column {
            0 if text.is_empty() || text.ends_with('\n') => indent,
            _ => 1,
        };
        text.push_str(&" ".repeat(front));
        text.push_str(word);
        column += front + length;
    }
    text.push('\n');
}

fn write_facts(out: &mut String, facts: &Facts, clock: &Clock, width: usize) -> fmt::Result {
    let caption = sanitized(&facts.caption);
    writeln!(out, "{}", shortened(&caption, width))?;
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let title = longest(&mut facts.rows.iter().map(|fact| fact.title.chars().count()));
    let rest = width.saturating_sub(title + 4);
    let value = longest(
        &mut facts
            .rows
            .iter()
            .filter(|fact| !fact.note.is_empty())
            .map(|fact| fact.value.show(clock).chars().count())
            // Longer values have a line of their own, and their notes below.
            .filter(|length| *length <= rest / 2),
    );
    for fact in &facts.rows {
        let shown = fact.value.show(clock);
        write!(out, "  {:title$}  ", fact.title)?;
        if fact.note.is_empty() {
            long(out, &shown, rest, title + 4)?;
            continue;
        }
        let note = sanitized(&fact.note);
        let indent = title + 4 + value + 2;
        let below = shown.chars().count() > value;
        if below {
            long(out, &shown, rest, title + 4)?
        } else {
            write!(out, "{shown:value$}  ")?
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
