//! Charts with two axes: lines over time, and curves over a quantity. Shapes stretch with the page while
//! text stays HTML. The values are in `data-plot`, from which the page's script shows those under the
//! pointer; without scripts the drawing's `<title>` says what it shows.

use std::fmt::Write;

use serde_json::{Value, json};

use super::charts::{legend, open};
use super::escape;
use crate::document::{Curve, Lines, Point, joined};
use crate::value::{Clock, Format, format, show, ticks};

/// Coordinates of a drawing.
pub(super) const WIDTH: f64 = 1000.0;
pub(super) const HEIGHT: f64 = 100.0;
/// Bins of a line; more cannot be distinguished.
const BINS: usize = 180;
/// Width of a label's character in a narrow chart, per cent.
const CHARACTER: f64 = 1.9;
/// A gap of more than this many usual distances between samples is drawn as a gap.
const GAP: usize = 4;

/// The parts of a chart around its shapes.
pub(super) struct Frame<'a> {
    pub(super) class: &'a str,
    pub(super) format: Format,
    pub(super) per: &'a str,
    pub(super) most: f64,
    /// Places in per cent of the width, and labels.
    pub(super) across: Vec<(f64, String)>,
    pub(super) shapes: String,
    /// Labels within the drawing: place in per cent, words.
    pub(super) labels: Vec<(f64, String)>,
    pub(super) title: String,
    pub(super) data: Value,
}

impl Frame<'_> {
    pub(super) fn write(&self, out: &mut String) {
        let marks = ticks::values(self.most, self.format);
        let top = marks.last().copied().unwrap_or(1.0);
        let mut grid = String::new();
        let mut labels = String::new();
        for mark in &marks {
            let at = mark / top * 100.0;
            let _ = write!(grid, "M0 {:.1}H{WIDTH}", HEIGHT - at / 100.0 * HEIGHT);
            let label = ticks::label(self.format, *mark, self.per);
            let _ = write!(labels, "<i style=\"bottom:{at:.1}%\">{}</i>", escape(&label));
        }
        let _ = write!(
            out,
            "<div class=\"plot {}\" data-plot=\"{}\"><div class=\"area\"><div class=\"y\" aria-hidden=\"true\">{labels}</div>\
             <svg role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\"><title>{}</title>\
             <path class=\"grid\" d=\"{grid}\"/>{}</svg>",
            self.class,
            escape(&self.data.to_string()),
            escape(&self.title),
            self.shapes
        );
        for (at, words) in &self.labels {
            let _ = write!(out, "<em style=\"left:{at:.2}%\">{}</em>", escape(words));
        }
        out.push_str("</div><div class=\"x\" aria-hidden=\"true\">");
        let mut taken = f64::NEG_INFINITY;
        for (at, words) in &self.across {
            let width = words.chars().count() as f64 * CHARACTER;
            let (class, from, to) = match at {
                ..3.0 => (" class=\"begin\"", *at, at + width),
                94.0.. => (" class=\"end\"", at - width, *at),
                _ => ("", at - width / 2.0, at + width / 2.0),
            };
            // Where there is room for it.
            if from > taken {
                taken = to + CHARACTER;
                let _ = write!(out, "<i{class} style=\"left:{at:.2}%\">{}</i>", escape(words));
            }
        }
        out.push_str("</div></div>");
    }
}

/// The top of the vertical axis.
pub(super) fn top(most: f64, format: Format) -> f64 {
    ticks::values(most, format).last().copied().unwrap_or(1.0)
}

fn name(format: Format) -> &'static str {
    match format {
        Format::Duration => "duration",
        Format::Bytes => "bytes",
        Format::Share => "share",
        _ => "number",
    }
}

/// Four digits are more than a chart shows.
pub(super) fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let digits = 3 - value.abs().max(1e-9).log10().floor() as i32;
    let factor = 10f64.powi(digits.clamp(-15, 9));
    let value = (value * factor).round() / factor;
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Lines over time, all charts of a page with the same axis.
pub(super) fn lines(out: &mut String, chart: &Lines, clock: &Clock) {
    open(out, &chart.caption, &chart.unit, &chart.help);
    out.push_str("<div class=\"lines\">");
    let names = chart.lines.iter().enumerate();
    let names: Vec<_> = names.map(|(place, (name, _))| (place, name.as_str())).collect();
    legend(out, &names);
    let all = chart.lines.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(1);
    let whole_ns = chart.bin_ns.saturating_mul(all as i64).max(1);
    let room = room(whole_ns).min(fitting_events(chart));
    let lines: Vec<_> =
        chart.lines.iter().map(|(_, values)| joined(values, room, chart.join)).collect();
    let bins = lines.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let known = lines.iter().flatten().copied().filter(|value| !value.is_nan());
    let most = known.fold(0.0, f64::max);
    let top = top(most, chart.format);
    let end_ns = chart.start_ns.saturating_add(whole_ns);
    let place = |ns: i64| ns.saturating_sub(chart.start_ns) as f64 / whole_ns as f64;
    // The last bin may be narrower than the others.
    let size = all.div_ceil(room).max(1);
    let width = all.div_ceil(size) as f64;
    let wide = (size as f64 * width) / all as f64;
    let x = |bin: usize| (bin as f64 + 0.5) / width * wide * WIDTH;
    let mut shapes = String::new();
    let mut labels = Vec::new();
    for band in &chart.bands {
        let (from, to) = (place(band.from_ns).clamp(0.0, 1.0), place(band.to_ns).clamp(0.0, 1.0));
        if to <= from {
            continue;
        }
        let _ = write!(
            shapes,
            "<rect class=\"{}\" x=\"{:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"/>",
            if band.is_measured { "measured" } else { "warming" },
            from * WIDTH,
            (to - from) * WIDTH
        );
        if to - from > 0.11 {
            labels.push((from * 100.0, band.label.clone()));
        }
    }
    for (number, values) in lines.iter().enumerate() {
        let pieces = pieces(values, chart.is_sampled);
        let y = |value: f64| HEIGHT - value / top * HEIGHT;
        if lines.len() == 1 {
            let _ = write!(shapes, "<path class=\"a{number}\" d=\"{}\"/>", area(&pieces, x, y));
        }
        let _ = write!(shapes, "<path class=\"l{number}\" d=\"{}\"/>", path(&pieces, x, y));
    }
    let per_bin = size as f64 * chart.bin_ns as f64 / 1e6;
    let values: Vec<Vec<Value>> =
        lines.iter().map(|values| values.iter().map(|value| rounded(*value)).collect()).collect();
    let highest = format!("{}{}", show(chart.format, most), chart.per);
    let frame = Frame {
        class: "",
        format: chart.format,
        per: &chart.per,
        most,
        across: ticks::times(chart.start_ns, end_ns, clock)
            .into_iter()
            .map(|(ns, label)| (place(ns) * 100.0, label))
            .collect(),
        shapes,
        labels,
        title: format!("{}: at most {highest}. {}", chart.caption, chart.help),
        data: json!({
            "f": name(chart.format),
            "p": chart.per,
            "t": [rounded_ms(chart.start_ns), per_bin],
            "w": wide / width,
            "n": chart.lines.iter().map(|(name, _)| format::sanitized(name)).collect::<Vec<_>>(),
            "v": values,
            "b": bins,
        }),
    };
    frame.write(out);
    out.push_str("</div></figure>\n");
}

/// Bins of a line over this time: in a recording that takes long enough for others, none is shorter
/// than a second, in which rates are noise.
fn room(whole_ns: i64) -> usize {
    const SECOND_NS: i64 = 1_000_000_000;
    match whole_ns / SECOND_NS {
        0..30 => BINS,
        seconds => BINS.min(usize::try_from(seconds).unwrap_or(BINS)),
    }
}

/// Events of a rate that a bin has at least, on average.
const EVENTS: f64 = 5.0;
/// Bins of the shortest rate.
const BINS_MIN: usize = 12;

/// Bins of a rate: with fewer events than that in each, a steady rate looks like a comb.
fn fitting_events(chart: &Lines) -> usize {
    if chart.per != "/s" || chart.is_sampled {
        return usize::MAX;
    }
    let seconds = chart.bin_ns as f64 / 1e9;
    let events = |values: &[f64]| {
        let known = values.iter().filter(|value| **value > 0.0);
        match chart.format {
            Format::Count => known.sum::<f64>() * seconds,
            // The series has no number of reads and writes: bins with any.
            _ => known.count() as f64 * EVENTS / 2.0,
        }
    };
    let most = chart.lines.iter().map(|(_, values)| events(values)).fold(0.0, f64::max);
    ((most / EVENTS) as usize).max(BINS_MIN)
}

fn rounded_ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Neighbouring values: bin and value. A sample is the neighbour of the next one, unless the gap between
/// them is much longer than usual.
fn pieces(values: &[f64], is_sampled: bool) -> Vec<Vec<(usize, f64)>> {
    let known: Vec<(usize, f64)> =
        values.iter().copied().enumerate().filter(|(_, value)| !value.is_nan()).collect();
    let mut gaps: Vec<usize> = known.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(1);
    let most = if is_sampled { usual.saturating_mul(GAP) } else { 1 };
    known.chunk_by(|a, b| b.0 - a.0 <= most).map(<[_]>::to_vec).collect()
}

/// Lines through the middles of the bins.
fn path(pieces: &[Vec<(usize, f64)>], x: impl Fn(usize) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for piece in pieces {
        for (number, (bin, value)) in piece.iter().enumerate() {
            let (x, y) = (x(*bin), y(*value));
            // The short stroke shows a value without neighbours.
            let _ = match number {
                0 => write!(path, "M{x:.1} {y:.1}h.01"),
                _ => write!(path, "L{x:.1} {y:.1}"),
            };
        }
    }
    path
}

/// Likewise, down to the axis.
fn area(pieces: &[Vec<(usize, f64)>], x: impl Fn(usize) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for piece in pieces {
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
        let _ = write!(path, "M{:.1} {HEIGHT}", x(first.0));
        for (bin, value) in piece {
            let _ = write!(path, "L{:.1} {:.1}", x(*bin), y(*value));
        }
        let _ = write!(path, "L{:.1} {HEIGHT}Z", x(last.0));
    }
    path
}

/// A curve with more points is drawn without dots.
const DOTS: usize = 30;

/// Points over a quantity that starts at 0, with lines between their means.
pub(super) fn curve(out: &mut String, chart: &Curve) {
    open(out, &chart.caption, &format!("over {}", chart.over), &chart.help);
    out.push_str("<div class=\"lines curve\">");
    let names = chart.lines.iter().enumerate();
    legend(out, &names.map(|(place, (name, _))| (place, *name)).collect::<Vec<_>>());
    let points = || chart.lines.iter().flat_map(|(_, points)| points);
    let most = |of: fn(&Point) -> f64| points().map(of).fold(0.0, f64::max);
    let limit = chart.limit.map_or(0.0, |(limit, _)| limit * 1.25);
    let high = most(|point| point.1).max(limit).max(1e-12);
    let top = top(high, chart.format);
    let marks = ticks::values(most(|point| point.0).max(1e-12) * 1.03, Format::Count);
    let wide = marks.last().copied().unwrap_or(1.0);
    let x = |value: f64| (value / wide * WIDTH).clamp(0.0, WIDTH);
    let y = |value: f64| HEIGHT - value / top * HEIGHT;
    let mut shapes = String::new();
    if let Some((from, to, _)) = chart.mark {
        let (from, to) = (x(from), x(to));
        let _ = write!(
            shapes,
            "<rect class=\"mark\" x=\"{from:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"/>",
            (to - from).max(1.5)
        );
    }
    if let Some((limit, _)) = chart.limit {
        let _ = write!(shapes, "<path class=\"limit\" d=\"M0 {:.2}H{WIDTH}\"/>", y(limit));
    }
    let means: Vec<_> = chart.lines.iter().map(|(_, points)| means(points)).collect();
    for (place, (_, points)) in chart.lines.iter().enumerate() {
        let _ = write!(shapes, "<path class=\"l{place}\" d=\"");
        for (number, (over, value)) in means.get(place).into_iter().flatten().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let _ = write!(shapes, "{letter}{:.1} {:.2}", x(*over), y(*value));
        }
        shapes.push_str("\"/>");
        for (over, value, stands_out) in points.iter().filter(|_| points.len() <= DOTS) {
            // A stroke without length and with round ends is a round dot, however stretched.
            let class = if *stands_out { "dot out" } else { "dot" };
            let _ = write!(
                shapes,
                "<path class=\"l{place} {class}\" d=\"M{:.1} {:.2}h.01\"/>",
                x(*over),
                y(*value)
            );
        }
    }
    let mut said: Vec<_> = Vec::new();
    for ((name, _), means) in
        chart.lines.iter().zip(&means).filter(|(_, means)| means.len() <= DOTS)
    {
        said.extend(means.iter().map(|(place, value)| {
            format!("{name} {} at {} {}", show(chart.format, *value), place, chart.over)
        }));
    }
    let mut places: Vec<f64> = means.iter().flatten().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let value = |means: &[(f64, f64)], place: f64| {
        let found = means.iter().find(|point| point.0 == place);
        found.map_or(Value::Null, |point| rounded(point.1))
    };
    let values: Vec<Vec<Value>> = means
        .iter()
        .map(|means| places.iter().map(|place| value(means, *place)).collect())
        .collect();
    let label = |place: f64| format!("{} {}", show(Format::Count, place), chart.over);
    let frame = Frame {
        class: "tall",
        format: chart.format,
        per: "",
        most: high,
        across: marks
            .iter()
            .map(|mark| (x(*mark) / WIDTH * 100.0, ticks::label(Format::Count, *mark, "")))
            .collect(),
        shapes,
        labels: Vec::new(),
        title: said.join("; "),
        data: json!({
            "f": name(chart.format),
            "p": "",
            "x": places.iter().map(|place| rounded(x(*place) / WIDTH)).collect::<Vec<_>>(),
            "l": places.iter().map(|place| label(*place)).collect::<Vec<_>>(),
            "n": chart.lines.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "v": values,
        }),
    };
    frame.write(out);
    let notes = [
        chart.limit.map(|(limit, what)| format!("Dashed: {what} ({}).", show(chart.format, limit))),
        chart.mark.map(|(_, _, what)| format!("Shaded: {what}.")),
        (chart.over == "users" && points().any(|point| point.2))
            .then(|| "Large dots: overloaded.".to_owned()),
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
        let pieces = pieces(&[1.0, 2.0, f64::NAN, 0.0], false);
        let drawn = path(&pieces, |bin| bin as f64, |value| 100.0 - value * 50.0);
        assert_eq!(drawn, "M0.0 50.0h.01L1.0 0.0M3.0 100.0h.01");
    }

    /// A counter of each second in bins of 250 ms, with one long gap, was dots and combs.
    #[test]
    fn samples_are_joined_over_bins_without_one() {
        let mut values = vec![f64::NAN; 80];
        (0..80).step_by(4).filter(|bin| !(30..60).contains(bin)).for_each(|bin| values[bin] = 1.0);
        let pieces = pieces(&values, true);
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [8, 5]);
        assert_eq!(area(&pieces, |bin| bin as f64, |_| 0.0).matches('M').count(), 2);
    }

    /// 154 operations at a steady rate in bins of 2 ms were a comb.
    #[test]
    fn a_rate_has_some_events_in_each_bin() {
        let values: Vec<_> = (0..610).map(|bin| if bin % 4 == 0 { 500.0 } else { 0.0 }).collect();
        let chart = Lines {
            caption: String::new(),
            help: String::new(),
            format: Format::Count,
            unit: String::new(),
            per: "/s".to_owned(),
            join: crate::document::Join::Mean,
            start_ns: 0,
            bin_ns: 2_000_000,
            lines: vec![(String::new(), values.clone())],
            is_sampled: false,
            bands: Vec::new(),
        };
        let room = fitting_events(&chart);
        assert_eq!(room, 30);
        let joined = joined(&values, room, chart.join);
        assert!(joined.iter().take(29).all(|rate| (100.0..150.0).contains(rate)), "{joined:?}");
    }

    #[test]
    fn values_for_the_pointer_are_short() {
        assert_eq!(rounded(1_234_567.0), json!(1_235_000));
        assert_eq!(rounded(0.012_345_6), json!(0.012_35));
        assert_eq!(rounded(f64::NAN), Value::Null);
        assert_eq!(rounded(0.0), json!(0));
    }
}
