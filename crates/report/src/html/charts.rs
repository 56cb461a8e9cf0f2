//! Charts as inline SVG. Shapes stretch with the page while text stays HTML, so that both are
//! legible on a phone and on paper; every drawing has a `<title>` that says what it shows.

use std::fmt::Write;

use super::escape;
use crate::document::{Curve, Histograms, Lines, Piece, Point, Stacked, Timeline, show};
use crate::fields::Format;
use crate::format;
use crate::waterfall::{self, Waterfall};

/// Height of a line chart's own coordinates; its width is the number of bins.
const HEIGHT: f64 = 100.0;

fn open(out: &mut String, caption: &str, unit: &str, help: &str) {
    let unit = match unit {
        "" => String::new(),
        unit => format!(" <span class=\"unit\">{}</span>", escape(unit)),
    };
    let _ = writeln!(
        out,
        "<figure><figcaption><b>{}</b>{unit} <span class=\"help\">{}</span></figcaption>",
        escape(caption),
        escape(help)
    );
}

fn legend(out: &mut String, names: &[(usize, &str)]) {
    if names.len() < 2 {
        return;
    }
    out.push_str("<ul class=\"legend\">");
    for (place, name) in names {
        let _ = write!(out, "<li><i class=\"k{place}\"></i>{}</li>", escape(name));
    }
    out.push_str("</ul>\n");
}

/// Classes of a waterfall's bars, and what they mean.
const KINDS: [(&str, &str); 3] = [("whole", "in all"), ("up", "longer"), ("down", "shorter")];

fn kind(bar: &waterfall::Bar) -> &'static str {
    match (bar.is_whole, bar.difference_ns() < 0) {
        (true, _) => "whole",
        (false, false) => "up",
        (false, true) => "down",
    }
}

/// A bar for today, a step for each part that differs, a bar for what is predicted; one unit.
pub(super) fn waterfall(out: &mut String, chart: &Waterfall) {
    open(out, &chart.caption, &chart.unit, &chart.help);
    out.push_str("<ul class=\"legend\">");
    for (class, words) in KINDS {
        if chart.bars.iter().any(|bar| kind(bar) == class) {
            let _ = write!(out, "<li><i class=\"{class}\"></i>{words}</li>");
        }
    }
    out.push_str("</ul>\n<div class=\"bars waterfall\">\n");
    let range = waterfall::range(&chart.bars);
    for (number, bar) in chart.bars.iter().enumerate() {
        let (x, width) = waterfall::extent(range, bar);
        let class = kind(bar);
        let value = match bar.is_whole {
            true => format::ms(bar.to_ns),
            false => format::signed_ms(bar.difference_ns()),
        };
        // From where the bar above ends.
        let link = match number {
            0 => String::new(),
            _ => {
                let at =
                    waterfall::place(range, if bar.is_whole { bar.to_ns } else { bar.from_ns });
                format!("<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"-45%\" y2=\"100%\"/>")
            }
        };
        let from_to = format!("from {} to {}", format::ms(bar.from_ns), format::ms(bar.to_ns));
        let _ = writeln!(
            out,
            "<div class=\"row\"><span title=\"{0}\">{0}</span><svg role=\"img\"><title>{1}</title><desc>{2}</desc>{link}\
             <rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\"/></svg><b>{3}</b></div>",
            escape(&bar.title),
            escape(&format!("{}: {value}", bar.title)),
            escape(&from_to),
            escape(&value)
        );
    }
    out.push_str("<div class=\"row axis\"><span></span><div class=\"ticks\">");
    for tick in waterfall::ticks(range) {
        let at = waterfall::place(range, tick);
        // Text stays within the chart.
        let class = match at {
            0.0..3.0 => " class=\"begin\"",
            95.0.. => " class=\"end\"",
            _ => "",
        };
        let words = escape(&format::milli(tick));
        let _ = write!(out, "<i{class} style=\"left:{at:.2}%\">{words}</i>");
    }
    out.push_str("</div><b></b></div>\n</div></figure>\n");
}

/// Bars of parts, the longest as wide as there is room.
pub(super) fn stacked(out: &mut String, chart: &Stacked) {
    open(out, &chart.caption, chart.unit, &chart.help);
    legend(out, &chart.parts);
    let sum = |parts: &[f64]| parts.iter().sum::<f64>();
    let most = chart.rows.iter().map(|(_, parts)| sum(parts)).fold(0.0, f64::max).max(1e-12);
    let (class, beside) = match &chart.beside {
        Some(beside) => ("bars wide", beside.as_slice()),
        None => ("bars", &[][..]),
    };
    let _ = writeln!(out, "<div class=\"{class}\">");
    for (number, (label, parts)) in chart.rows.iter().enumerate() {
        let (total, most) = match beside.get(number) {
            Some(words) => (words.clone(), sum(parts).max(1e-12)),
            None => (show(chart.format, sum(parts)), most),
        };
        let mut words = Vec::new();
        let mut shapes = String::new();
        let mut before = 0.0;
        for (&part, (place, name)) in parts.iter().zip(&chart.parts) {
            let (x, width) = (before / most * 100.0, part / most * 100.0);
            before += part;
            if part > 0.0 {
                words.push(format!("{name} {}", show(chart.format, part)));
                let _ = write!(
                    shapes,
                    "<rect class=\"k{place}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\"/>"
                );
            }
        }
        let title = format!("{label}: {total} ({})", words.join(", "));
        let _ = writeln!(
            out,
            "<div class=\"row\"><span>{}</span><svg role=\"img\"><title>{}</title>{shapes}</svg><b>{}</b></div>",
            escape(label),
            escape(&title),
            escape(&total)
        );
    }
    out.push_str("</div></figure>\n");
}

/// One bar for each time, with pieces where something happened; what lies in another piece is drawn
/// in its lower part.
pub(super) fn timeline(out: &mut String, chart: &Timeline) {
    open(out, &chart.caption, "", &chart.help);
    legend(out, &chart.parts);
    out.push_str("<div class=\"bars wide\">\n");
    for row in &chart.rows {
        let begin = row.pieces.iter().map(|piece| piece.start_ns).fold(0, i64::min);
        let end = |piece: &Piece| piece.start_ns.saturating_add(piece.duration_ns);
        let whole = row.pieces.iter().map(end).fold(row.whole_ns, i64::max).saturating_sub(begin);
        let percent = |ns: i64| ns as f64 / whole.max(1) as f64 * 100.0;
        let mut shapes = String::new();
        let mut words = Vec::new();
        for piece in &row.pieces {
            let (place, name) = chart.parts.get(piece.part).copied().unwrap_or((0, ""));
            let top = f64::from(piece.depth.min(3)) * 25.0;
            let what = format!(
                "{name}: {} from {} on",
                format::duration(piece.duration_ns),
                format::duration(piece.start_ns)
            );
            let _ = write!(
                shapes,
                "<rect class=\"k{place}\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{top}%\" height=\"{}%\"><title>{}</title></rect>",
                percent(piece.start_ns.saturating_sub(begin)),
                percent(piece.duration_ns).max(0.05),
                100.0 - top,
                escape(&what)
            );
            words.push(what);
        }
        let _ = writeln!(
            out,
            "<div class=\"row\"><span title=\"{1}\">{0}</span><svg role=\"img\"><title>{2}</title>{shapes}</svg><b title=\"{1}\">{1}</b></div>",
            escape(&row.label),
            escape(&row.note),
            escape(&format!("{}: {}", row.label, words.join(", ")))
        );
    }
    out.push_str("</div></figure>\n");
}

/// Lines over time, all charts with the same axis.
pub(super) fn lines(out: &mut String, chart: &Lines) {
    open(out, &chart.caption, &chart.unit, &chart.help);
    out.push_str("<div class=\"lines\">");
    let names = chart.lines.iter().enumerate();
    let names: Vec<_> = names.map(|(place, (name, _))| (place, name.as_str())).collect();
    legend(out, &names);
    let known = chart.lines.iter().flat_map(|(_, values)| values).copied();
    let most = known.filter(|value| !value.is_nan()).fold(0.0, f64::max);
    let bins = chart.lines.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(1);
    let scale = |value: f64| HEIGHT - value / most.max(1e-12) * HEIGHT;
    let highest = format!("{}{}", show(chart.format, most), chart.per);
    let _ = write!(
        out,
        "<div class=\"plot\"><div class=\"y\"><span>{}</span><span>0</span></div>\
         <svg role=\"img\" viewBox=\"0 0 {bins} {HEIGHT}\" preserveAspectRatio=\"none\"><title>{}</title>\
         <path class=\"grid\" d=\"M0 0H{bins}M0 50H{bins}M0 100H{bins}\"/>",
        escape(&highest),
        escape(&format!("{}: at most {highest}. {}", chart.caption, chart.help))
    );
    for (place, (_, values)) in chart.lines.iter().enumerate() {
        if chart.lines.len() == 1 {
            let _ = write!(out, "<path class=\"a{place}\" d=\"{}\"/>", area(values, scale));
        }
        let _ = write!(out, "<path class=\"l{place}\" d=\"{}\"/>", path(values, scale));
    }
    let whole = chart.bin_ns.saturating_mul(bins as i64);
    let _ = writeln!(
        out,
        "</svg></div><div class=\"x\"><span>{}</span><span>+{}</span><span>+{}</span></div></div></figure>",
        escape(&clock(chart.start_ns)),
        format::duration(whole / 2),
        format::duration(whole)
    );
}

/// Height of a curve in the page, in the units of its drawing; its width is [`CURVE_WIDTH`].
const CURVE_HEIGHT: f64 = 200.0;
const CURVE_WIDTH: f64 = 1000.0;

/// Points over a quantity from 0 on, with lines between their means.
pub(super) fn curve(out: &mut String, chart: &Curve) {
    open(out, &chart.caption, &format!("over {}", chart.over), &chart.help);
    out.push_str("<div class=\"lines curve\">");
    let names = chart.lines.iter().enumerate();
    legend(out, &names.map(|(place, (name, _))| (place, *name)).collect::<Vec<_>>());
    let points = || chart.lines.iter().flat_map(|(_, points)| points);
    let most = |of: fn(&Point) -> f64| points().map(of).fold(0.0, f64::max);
    let limit = chart.limit.map_or(0.0, |(limit, _)| limit * 1.25);
    let high = most(|point| point.1).max(limit).max(1e-12);
    let wide = most(|point| point.0).max(1e-12) * 1.02;
    let x = |value: f64| (value / wide * CURVE_WIDTH).clamp(0.0, CURVE_WIDTH);
    let y = |value: f64| CURVE_HEIGHT - value / high * CURVE_HEIGHT;
    let highest = show(chart.format, high);
    let mut said: Vec<_> = Vec::new();
    for (name, points) in &chart.lines {
        said.extend(points.iter().map(|(place, value, _)| {
            format!("{name} {} at {} {}", show(chart.format, *value), place, chart.over)
        }));
    }
    let _ = write!(
        out,
        "<div class=\"plot\"><div class=\"y\"><span>{}</span><span>0</span></div>\
         <svg role=\"img\" viewBox=\"0 0 {CURVE_WIDTH} {CURVE_HEIGHT}\" preserveAspectRatio=\"none\"><title>{}</title>",
        escape(&highest),
        escape(&said.join("; "))
    );
    if let Some((from, to, _)) = chart.mark {
        let (from, to) = (x(from), x(to));
        let _ = write!(
            out,
            "<rect class=\"mark\" x=\"{from:.1}\" width=\"{:.1}\" height=\"{CURVE_HEIGHT}\"/>",
            (to - from).max(1.5)
        );
    }
    let _ = write!(
        out,
        "<path class=\"grid\" d=\"M0 0H{CURVE_WIDTH}M0 100H{CURVE_WIDTH}M0 200H{CURVE_WIDTH}\"/>"
    );
    if let Some((limit, _)) = chart.limit {
        let _ = write!(out, "<path class=\"limit\" d=\"M0 {:.2}H{CURVE_WIDTH}\"/>", y(limit));
    }
    for (place, (_, points)) in chart.lines.iter().enumerate() {
        let _ = write!(out, "<path class=\"l{place}\" d=\"");
        for (number, (over, value)) in means(points).into_iter().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let _ = write!(out, "{letter}{:.1} {:.2}", x(over), y(value));
        }
        out.push_str("\"/>");
        for (over, value, stands_out) in points {
            // A stroke without length and with round ends is a round dot, however stretched.
            let class = if *stands_out { "dot out" } else { "dot" };
            let _ = write!(
                out,
                "<path class=\"l{place} {class}\" d=\"M{:.1} {:.2}h.01\"/>",
                x(*over),
                y(*value)
            );
        }
    }
    out.push_str("</svg></div>");
    let _ = write!(out, "<div class=\"ticks over\">");
    let mut last = f64::NEG_INFINITY;
    let mut places: Vec<_> = points().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    for place in places {
        // Where there is room for the number.
        if x(place) - last >= CURVE_WIDTH / 12.0 {
            last = x(place);
            let _ = write!(
                out,
                "<i style=\"left:{:.2}%\">{}</i>",
                x(place) / CURVE_WIDTH * 100.0,
                escape(&show(Format::Count, place))
            );
        }
    }
    out.push_str("</div>");
    let notes = [
        chart.limit.map(|(limit, what)| format!("Dashed: {what} ({}).", show(chart.format, limit))),
        chart.mark.map(|(_, _, what)| format!("Shaded: {what}.")),
        points().any(|point| point.2).then(|| "Large dots: overloaded.".to_owned()),
    ];
    let notes: Vec<_> = notes.into_iter().flatten().collect();
    let _ = writeln!(out, "<p class=\"more\">{}</p></div></figure>", escape(&notes.join(" ")));
}

/// One value for each place, the mean of those that it has, in order.
fn means(points: &[Point]) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let groups = sorted.chunk_by(|a, b| a.0 == b.0);
    groups
        .filter_map(|group| {
            let sum: f64 = group.iter().map(|point| point.1).sum();
            group.first().map(|first| (first.0, sum / group.len() as f64))
        })
        .collect()
}

/// "09:00:00" of "2026-01-05 09:00:00.000 UTC".
fn clock(ns: i64) -> String {
    let time = format::time(ns);
    let clock = time.split(' ').nth(1).and_then(|clock| clock.split('.').next());
    format!("{} UTC", clock.unwrap_or(""))
}

/// A line through the middles of the bins, broken where there is no value.
fn path(values: &[f64], scale: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for (place, &value) in values.iter().enumerate() {
        if value.is_nan() {
            drawing = false;
            continue;
        }
        let (x, y) = (place as f64 + 0.5, scale(value));
        // The short stroke shows a value without neighbours.
        let _ = match drawing {
            true => write!(path, "L{x} {y:.2}"),
            false => write!(path, "M{x} {y:.2}h.01"),
        };
        drawing = true;
    }
    path
}

fn area(values: &[f64], scale: impl Fn(f64) -> f64) -> String {
    let mut path = format!("M.5 {HEIGHT}");
    for (place, &value) in values.iter().enumerate() {
        let value = if value.is_nan() { 0.0 } else { value };
        let _ = write!(path, "L{} {:.2}", place as f64 + 0.5, scale(value));
    }
    let _ = write!(path, "V{HEIGHT}Z");
    path
}

/// Histograms one below the other, with one axis.
pub(super) fn histograms(out: &mut String, chart: &Histograms) {
    open(out, &chart.caption, "operations by elapsed time, logarithmic", &chart.help);
    out.push_str("<div class=\"histograms\">\n");
    let bars = chart.bounds.len().saturating_sub(1).max(1);
    let name = |place: usize| match chart.bounds.get(place).copied().flatten() {
        Some(bound) => format::duration(bound).replace(".00", "").replace(".0 ", " "),
        None if place == 0 => "0".to_owned(),
        None => "∞".to_owned(),
    };
    for (label, counts) in &chart.rows {
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let all: u64 = counts.iter().sum();
        let mut shapes = String::new();
        for (place, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = (count as f64 / most * 100.0).max(3.0);
            let _ = write!(
                shapes,
                "<rect class=\"k1\" x=\"{:.2}%\" y=\"{:.1}%\" width=\"{:.2}%\" height=\"{height:.1}%\"><title>{} to {}: {}</title></rect>",
                place as f64 / bars as f64 * 100.0 + 0.2,
                100.0 - height,
                100.0 / bars as f64 - 0.4,
                name(place),
                name(place + 1),
                format::count(count)
            );
        }
        let _ = writeln!(
            out,
            "<div class=\"row\"><span>{}</span><svg role=\"img\"><title>{}</title>{shapes}</svg><b>n {}</b></div>",
            escape(label),
            escape(&format!("{label}: {} operations by elapsed time", format::count(all))),
            format::count(all)
        );
    }
    out.push_str("<div class=\"row axis\"><span></span><div class=\"ticks\">");
    for place in (0..=bars).filter(|place| place % bars.div_ceil(6) == 0) {
        let _ = write!(
            out,
            "<i style=\"left:{:.2}%\">{}</i>",
            place as f64 / bars as f64 * 100.0,
            name(place)
        );
    }
    out.push_str("</div><b></b></div>\n</div></figure>\n");
}

/// A histogram in a table's cell.
pub(super) fn small(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let width = counts.len().max(1) * 8;
    let mut out = format!(
        "<svg class=\"small\" role=\"img\" viewBox=\"0 0 {width} 24\" width=\"{width}\" height=\"24\"><title>{}</title>",
        escape(&format!(
            "Counts: {}",
            counts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
        ))
    );
    for (place, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (count as f64 / most as f64 * 24.0).max(1.5);
        let _ = write!(
            out,
            "<rect class=\"k1\" x=\"{}\" y=\"{:.1}\" width=\"7\" height=\"{height:.1}\"/>",
            place * 8,
            24.0 - height
        );
    }
    out.push_str("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_points_meet_in_their_mean() {
        let points = [(2.0, 5.0, false), (1.0, 1.0, false), (2.0, 7.0, true)];
        assert_eq!(means(&points), [(1.0, 1.0), (2.0, 6.0)]);
    }

    #[test]
    fn lines_break_where_nothing_is_known() {
        let drawn = path(&[1.0, 2.0, f64::NAN, 0.0], |value| 100.0 - value * 50.0);
        assert_eq!(drawn, "M0.5 50.00h.01L1.5 0.00M3.5 100.00h.01");
    }
}
