//! The report for a terminal: tables that fit its width, charts as rows of blocks, no colour.

use std::fmt::{self, Write};

use comfy_table::{
    Cell as TableCell, CellAlignment, ContentArrangement, Table as TextTable, presets,
};

use crate::document::{
    Block, Cell, Curve, Facts, Histograms, Join, Lines, Section, Stacked, Table, Timeline, show,
};
use crate::fields::Format;
use crate::format::{harmless, shortened, sparkline};
use crate::waterfall::{self, Waterfall};
use crate::{Meta, Report, format, sections};

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

fn write_table(out: &mut String, table: &Table, width: usize) -> fmt::Result {
    writeln!(out, "{}", table.caption)?;
    if table.rows.is_empty() {
        return writeln!(out, "  none");
    }
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .take(table.in_text)
        .map(|row| row.iter().map(Cell::show).collect())
        .collect();
    // A column without any value says nothing.
    let filled = |place: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(place));
        cells.any(|cell| *cell != Cell::Empty)
    };
    let mut shown: Vec<usize> = (0..table.headings.len()).filter(|&place| filled(place)).collect();
    let length = |place: usize, shown: &[usize]| {
        let heading = heading(table, shown, place);
        let cells = rows.iter().filter_map(|row| row.get(place)).map(String::as_str);
        let lines = cells.chain(heading.lines());
        lines.map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let numeric = |place: usize| table.headings.get(place).is_some_and(|heading| heading.numeric);
    let is_code = |place: usize| {
        let first = table.rows.first().and_then(|row| row.get(place));
        matches!(first, Some(Cell::Code(_) | Cell::Histogram(_)))
    };
    let is_fixed = |place: usize| numeric(place) || is_code(place);
    // Text may be shortened; numbers may not.
    let least = |place: usize, shown: &[usize]| match is_fixed(place) {
        true => length(place, shown),
        false => length(place, shown).min(CELL_MIN + 8),
    };
    let needed = |shown: &[usize]| -> usize {
        shown.iter().map(|&place| least(place, shown) + 2).sum::<usize>() + 1
    };
    // What tells the rows apart is worth more than columns that can be left out, as long as it
    // leaves half of the width: connections differ in the middle, which shortening takes.
    let whole = length(0, &shown);
    let apart = if whole <= width / 2 { whole.saturating_sub(least(0, &shown)) } else { 0 };
    while needed(&shown) + apart > width {
        let rank = |place: &usize| table.headings.get(*place).map_or(0, |heading| heading.rank);
        let Some(highest) = shown.iter().map(rank).max().filter(|&rank| rank > 0) else {
            break;
        };
        let Some(last) = shown.iter().rposition(|place| rank(place) == highest) else {
            break;
        };
        shown.remove(last);
    }
    let mut spare = width.saturating_sub(needed(&shown));
    let mut limits = vec![usize::MAX; table.headings.len()];
    for &place in shown.iter().filter(|&&place| !is_fixed(place)) {
        let least = least(place, &shown);
        let more = length(place, &shown).saturating_sub(least).min(spare);
        spare -= more;
        if let Some(limit) = limits.get_mut(place) {
            *limit = least + more;
        }
    }
    let mut text = TextTable::new();
    text.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let align = |place: usize| match numeric(place) {
        true => CellAlignment::Right,
        false => CellAlignment::Left,
    };
    text.set_header(
        shown.iter().map(|&place| {
            TableCell::new(heading(table, &shown, place)).set_alignment(align(place))
        }),
    );
    for row in &rows {
        text.add_row(shown.iter().map(|&place| {
            let cell = row.get(place).map_or("", String::as_str);
            let limit = limits.get(place).copied().unwrap_or(usize::MAX);
            TableCell::new(shortened(cell, limit)).set_alignment(align(place))
        }));
    }
    for line in text.lines() {
        writeln!(out, " {}", line.trim_end())?;
    }
    let more = table.total.saturating_sub(rows.len() as u64);
    if more > 0 {
        let more = crate::format::count(more);
        match &table.sql {
            Some(sql) => {
                writeln!(out, "  … and {more} more:")?;
                writeln!(out, "    smbscope query INPUT \"{sql}\"")?;
            }
            None => writeln!(out, "  … and {more} more")?,
        }
    }
    Ok(())
}

/// The heading, with that of its group where it is the group's first column shown.
fn heading(table: &Table, shown: &[usize], place: usize) -> String {
    let Some(heading) = table.headings.get(place) else {
        return String::new();
    };
    let Some(group) = heading.group else {
        let grouped = shown.iter().filter_map(|&place| table.headings.get(place));
        return match grouped.into_iter().any(|heading| heading.group.is_some()) {
            true => format!("\n{}", heading.title),
            false => heading.title.clone(),
        };
    };
    let first = shown
        .iter()
        .find(|&&place| table.headings.get(place).and_then(|heading| heading.group) == Some(group));
    match first == Some(&place) {
        true => format!("{group}\n{}", heading.title),
        false => format!("\n{}", heading.title),
    }
}

fn write_bars(out: &mut String, bars: &Stacked, width: usize) -> fmt::Result {
    writeln!(out, "{}", bars.caption)?;
    let several = bars.parts.len() > 1;
    let label = bars.rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let sum = |parts: &[f64]| parts.iter().sum::<f64>();
    let most = bars.rows.iter().map(|(_, parts)| sum(parts)).fold(0.0, f64::max);
    let beside = bars.beside.as_deref().unwrap_or(&[]);
    let words = beside.iter().map(|words| words.chars().count()).max().unwrap_or(8);
    let room = width.saturating_sub(label + words + 6).max(10) as f64;
    for (number, (name, parts)) in bars.rows.iter().enumerate() {
        let (total, most) = match beside.get(number) {
            Some(words) => (words.clone(), sum(parts)),
            None => (show(bars.format, sum(parts)), most),
        };
        let mut bar = String::new();
        let (mut before, mut drawn) = (0.0, 0);
        for (place, part) in parts.iter().enumerate() {
            before += part;
            let end = match most > 0.0 {
                true => (before / most * room).round() as usize,
                false => 0,
            };
            let fill = match several {
                true => fill(bars.place(place)),
                false => '█',
            };
            bar.extend(std::iter::repeat_n(fill, end.saturating_sub(drawn)));
            drawn = drawn.max(end);
        }
        writeln!(out, "  {:label$}  {total:>words$}  {bar}", harmless(name))?;
    }
    match several {
        true => write_legend(out, &bars.parts, label + words + 6, width),
        false => Ok(()),
    }
}

/// What a part of a bar is drawn with, by the place of its colour.
fn fill(place: usize) -> char {
    const FILLS: [char; 14] =
        ['░', '█', '▓', '·', '▒', '×', ':', '▚', '-', '▞', '!', '+', '=', 'o'];
    FILLS.get(place).copied().unwrap_or('█')
}

fn write_legend(
    out: &mut String,
    parts: &[(usize, &str)],
    indent: usize,
    width: usize,
) -> fmt::Result {
    // A space that does not break.
    let part = |(place, name): &(usize, &str)| {
        format!("{}\u{a0}{}", fill(*place), name.replace(' ', "\u{a0}"))
    };
    let legend: Vec<_> = parts.iter().map(part).collect();
    let mut lines = String::new();
    wrapped(&mut lines, &legend.join(" "), width.saturating_sub(indent).max(10))?;
    for line in lines.lines() {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// Rows that a terminal shows of a timeline.
const TIMELINE_ROWS: usize = 8;

/// A bar for each time; of pieces that lie in others only the outer ones.
fn write_timeline(out: &mut String, chart: &Timeline, width: usize) -> fmt::Result {
    writeln!(out, "{}", chart.caption)?;
    let rows = || chart.rows.iter().take(TIMELINE_ROWS);
    let label = rows().map(|row| row.label.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + 4).max(10);
    for row in rows() {
        let begin = row.pieces.iter().map(|piece| piece.start_ns).fold(0, i64::min);
        let whole = row.whole_ns.saturating_sub(begin).max(1) as f64;
        let column = |ns: i64| {
            let place = ns.saturating_sub(begin) as f64 / whole * room as f64;
            (place.round().max(0.0) as usize).min(room)
        };
        let mut bar = vec![' '; room];
        for piece in row.pieces.iter().filter(|piece| piece.depth == 0) {
            let end = column(piece.start_ns.saturating_add(piece.duration_ns));
            let place = chart.parts.get(piece.part).map_or(1, |(place, _)| *place);
            if let Some(drawn) = bar.get_mut(column(piece.start_ns)..end) {
                drawn.fill(fill(place));
            }
        }
        let bar: String = bar.into_iter().collect();
        writeln!(out, "  {:label$}  {}", harmless(&row.label), bar.trim_end())?;
        let note = shortened(&harmless(&row.note), width.saturating_sub(label + 4));
        writeln!(out, "{}", format!("  {:label$}  {note}", "").trim_end())?;
    }
    let drawn = |part: usize| {
        let mut pieces = rows().flat_map(|row| &row.pieces);
        pieces.any(|piece| piece.depth == 0 && piece.part == part)
    };
    let parts = chart.parts.iter().enumerate().filter(|(part, _)| drawn(*part));
    let parts: Vec<_> = parts.map(|(_, part)| *part).collect();
    write_legend(out, &parts, label + 4, width)
}

fn write_lines(out: &mut String, chart: &Lines, width: usize) -> fmt::Result {
    writeln!(out, "{}", chart.caption)?;
    let label = chart.lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + 24).max(10);
    for (name, values) in &chart.lines {
        let joined = joined(values, room, chart.join);
        let most = values.iter().copied().filter(|value| !value.is_nan()).fold(f64::NAN, f64::max);
        let most = match most.is_nan() {
            true => "–".to_owned(),
            false => format!("most {}{}", show(chart.format, most), chart.per),
        };
        writeln!(out, "  {name:label$}  {:room$}  {most}", sparkline(&joined))?;
    }
    Ok(())
}

/// A bar for each point of the first line; the table beside it has the others.
fn write_curve(out: &mut String, curve: &Curve, width: usize) -> fmt::Result {
    let Some((name, points)) = curve.lines.first() else { return Ok(()) };
    let name = if *name == curve.caption { String::new() } else { format!("{name}, ") };
    writeln!(out, "{} ({name}over {})", curve.caption, curve.over)?;
    let mut points = points.clone();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let shown: Vec<_> = points
        .iter()
        .map(|(over, value, _)| (show(Format::Count, *over), show(curve.format, *value)))
        .collect();
    let longest = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let (over, value) = (
        longest(&mut shown.iter().map(|pair| &pair.0)),
        longest(&mut shown.iter().map(|pair| &pair.1)),
    );
    let room = width.saturating_sub(over + value + 8).max(10) as f64;
    for ((place, text), (_, size, stands_out)) in shown.iter().zip(&points) {
        let length = if most > 0.0 { (size / most * room).round() as usize } else { 0 };
        let fill = if *stands_out { "█" } else { "░" };
        let bar = fill.repeat(length);
        writeln!(out, "{}", format!("  {place:>over$}  {text:>value$}  {bar}").trim_end())?;
    }
    let notes = [
        points.iter().any(|point| point.2).then(|| "█ overloaded".to_owned()),
        curve.limit.map(|(limit, what)| format!("{what}: {}", show(curve.format, limit))),
    ];
    let notes: Vec<_> = notes.into_iter().flatten().collect();
    if !notes.is_empty() {
        writeln!(out, "  {}", notes.join("; "))?;
    }
    Ok(())
}

/// A bar for each whole and each step, at its place.
fn write_waterfall(out: &mut String, chart: &Waterfall, width: usize) -> fmt::Result {
    writeln!(out, "{}, {}", chart.caption, chart.unit)?;
    wrapped(out, &chart.help, width)?;
    let value = |bar: &waterfall::Bar| match bar.is_whole {
        true => format::ms(bar.to_ns),
        false => format::signed_ms(bar.difference_ns()),
    };
    let longest = |of: &dyn Fn(&waterfall::Bar) -> usize| chart.bars.iter().map(of).max();
    let label = longest(&|bar| bar.title.chars().count()).unwrap_or(0);
    let number = longest(&|bar| value(bar).chars().count()).unwrap_or(0);
    let room = width.saturating_sub(label + number + 6).max(10);
    let range = waterfall::range(&chart.bars);
    for bar in &chart.bars {
        let (x, wide) = waterfall::extent(range, bar);
        let column = |percent: f64| (percent / 100.0 * room as f64).round() as usize;
        let start = column(x).min(room - 1);
        let end = column(x + wide).clamp(start + 1, room);
        let (fill, _) = drawn_with(bar);
        let drawn = format!("{}{}", " ".repeat(start), fill.repeat(end - start));
        writeln!(out, "  {:label$}  {:>number$}  {drawn}", bar.title, value(bar))?;
    }
    let mut legend: Vec<_> = Vec::new();
    for (fill, words) in chart.bars.iter().map(drawn_with) {
        let words = format!("{fill} {words}");
        if !legend.contains(&words) {
            legend.push(words);
        }
    }
    writeln!(out, "  {}", legend.join("  "))
}

/// What a waterfall's bar is drawn with, and what it means.
fn drawn_with(bar: &waterfall::Bar) -> (&'static str, &'static str) {
    match (bar.is_whole, bar.difference_ns() < 0) {
        (true, _) => ("█", "in all"),
        (false, false) => ("▒", "longer"),
        (false, true) => ("░", "shorter"),
    }
}

/// As many values as there is room for.
fn joined(values: &[f64], room: usize, join: Join) -> Vec<f64> {
    let size = values.len().div_ceil(room).max(1);
    let join = |values: &[f64]| {
        let known = values.iter().copied().filter(|value| !value.is_nan());
        let n = known.clone().count();
        match (n, join) {
            (0, _) => f64::NAN,
            (_, Join::Mean) => known.sum::<f64>() / n as f64,
            (_, Join::Most) => known.fold(f64::MIN, f64::max),
        }
    };
    values.chunks(size).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_where_there_is_no_room() {
        let values = [1.0, 3.0, f64::NAN, 5.0, f64::NAN, f64::NAN];
        assert_eq!(joined(&values, 3, Join::Most)[..2], [3.0, 5.0]);
        assert_eq!(joined(&values, 3, Join::Mean)[..2], [2.0, 5.0]);
        assert!(joined(&values, 3, Join::Mean)[2].is_nan());
    }

    #[test]
    fn long_text_is_wrapped_between_words() {
        let mut out = String::new();
        wrapped(&mut out, "one two three", 8).unwrap();
        assert_eq!(out, "one two\nthree\n");
    }
}
