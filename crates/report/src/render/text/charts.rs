//! Charts of the report as rows of block characters.

use std::fmt::{self, Write};

use super::wrapped;
use crate::document::{Areas, Curve, Join, Lines, Portions, Stacked, Timeline, joined};
use crate::value::{
    Format,
    format::{self, sanitized, shortened, sparkline},
    show,
};

pub fn write_bars(out: &mut String, bars: &Stacked, width: usize) -> fmt::Result {
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
            let end = if most > 0.0 { (before / most * room).round() as usize } else { 0 };
            let fill = if several { fill(bars.place(place)) } else { '█' };
            bar.extend(std::iter::repeat_n(fill, end.saturating_sub(drawn)));
            drawn = drawn.max(end);
        }
        writeln!(out, "  {:label$}  {total:>words$}  {bar}", sanitized(name))?;
    }
    if several { write_legend(out, &bars.parts, label + words + 6, width) } else { Ok(()) }
}

/// One bar, and its parts in a line below.
pub fn write_portions(out: &mut String, chart: &Portions, width: usize) -> fmt::Result {
    writeln!(out, "{} ({} in total)", chart.caption, chart.whole)?;
    let room = width.saturating_sub(4).min(100) as f64;
    let (mut before, mut drawn) = (0.0, 0);
    let mut bar = String::new();
    for (number, (_, _, share, _)) in chart.parts.iter().enumerate() {
        before += share;
        let end = (before * room).round() as usize;
        bar.extend(std::iter::repeat_n(fill_of_portion(number), end.saturating_sub(drawn)));
        drawn = drawn.max(end);
    }
    writeln!(out, "  {bar}")?;
    let parts = chart.parts.iter().enumerate().map(|(number, (_, name, share, _))| {
        let words = format!("{} {name} {}", fill_of_portion(number), format::share(*share));
        sanitized(&words).replace(' ', "\u{a0}")
    });
    let mut lines = String::new();
    wrapped(&mut lines, &parts.collect::<Vec<_>>().join("  "), width.saturating_sub(2))?;
    lines.lines().try_for_each(|line| writeln!(out, "  {line}"))
}

/// Neighbours in a bar differ.
fn fill_of_portion(number: usize) -> char {
    const FILLS: [char; 7] = ['█', '░', '▓', '▒', '=', ':', '·'];
    FILLS.get(number).copied().unwrap_or('·')
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

/// A bar for each time; for nested pieces only the outer ones.
pub fn write_timeline(out: &mut String, chart: &Timeline, width: usize) -> fmt::Result {
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
        writeln!(out, "  {:label$}  {}", sanitized(&row.label), bar.trim_end())?;
        let note = shortened(&sanitized(&row.note), width.saturating_sub(label + 4));
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

pub fn write_lines(out: &mut String, chart: &Lines, width: usize) -> fmt::Result {
    writeln!(out, "{}", chart.caption)?;
    let label = chart.lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + 24).max(10);
    for (name, values) in &chart.lines {
        let joined = joined(values, room, chart.join);
        let most = values.iter().copied().filter(|value| !value.is_nan()).fold(f64::NAN, f64::max);
        let most = if most.is_nan() {
            "–".to_owned()
        } else {
            format!("most {}{}", show(chart.format, most), chart.per)
        };
        writeln!(out, "  {name:label$}  {:room$}  {most}", sparkline(&joined))?;
    }
    Ok(())
}

/// A line for each layer, with its moments below.
pub fn write_areas(out: &mut String, chart: &Areas, width: usize) -> fmt::Result {
    writeln!(out, "{}", chart.caption)?;
    let label = chart.layers.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label + 24).max(10);
    for (layer, (name, values)) in chart.layers.iter().enumerate() {
        let joined = joined(values, room, Join::Mean);
        let most = show(Format::Bytes, values.iter().copied().fold(0.0, f64::max));
        writeln!(out, "  {name:label$}  {:room$}  most {most}/s", sparkline(&joined))?;
        let mut line = vec![' '; room];
        let size = values.len().div_ceil(room).max(1) as i64;
        for mark in chart.marks.iter().filter(|mark| mark.layer == layer) {
            let bin = mark.at_ns.saturating_sub(chart.start_ns) / chart.bin_ns.max(1) / size;
            let letter = mark.words.split(' ').next_back().and_then(|word| word.chars().next());
            let letter =
                if mark.is_data && letter != Some('%') { 'f' } else { letter.unwrap_or('|') };
            if let Some(place) = line.get_mut(usize::try_from(bin).unwrap_or(0)) {
                *place = letter;
            }
        }
        let line: String = line.into_iter().collect();
        if !line.trim().is_empty() {
            writeln!(out, "  {:label$}  {}", "", line.trim_end())?;
        }
    }
    writeln!(out, "  o opened, b bound, f first byte, % 90 % of the plateau")
}

/// A bar for each point of the first line; the table next to it has the others.
pub fn write_curve(out: &mut String, curve: &Curve, width: usize) -> fmt::Result {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Join;

    #[test]
    fn neighbours_join_where_there_is_no_room() {
        let values = [1.0, 3.0, f64::NAN, 5.0, f64::NAN, f64::NAN];
        assert_eq!(joined(&values, 3, Join::Most)[..2], [3.0, 5.0]);
        assert_eq!(joined(&values, 3, Join::Mean)[..2], [2.0, 5.0]);
        assert!(joined(&values, 3, Join::Mean)[2].is_nan());
    }
}
