//! Bars as inline SVG. Shapes stretch with the page while text stays HTML, so that both are
//! legible on a phone and on paper; every drawing has a `<title>` that says what it shows.

use std::fmt::Write;

use super::escape;
use crate::document::{Changes, Piece, Portions, Stacked, Timeline};
use crate::value::{format, show};

pub(crate) fn open(out: &mut String, caption: &str, unit: &str, help: &str) {
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

pub(crate) fn legend(out: &mut String, names: &[(usize, &str)]) {
    if names.len() < 2 {
        return;
    }
    out.push_str("<ul class=\"legend\">");
    for (place, name) in names {
        let _ = write!(out, "<li><i class=\"k{place}\"></i>{}</li>", escape(name));
    }
    out.push_str("</ul>\n");
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
            "<div class=\"row\"><span title=\"{0}\">{0}</span><svg role=\"img\"><title>{1}</title>{shapes}</svg><b>{2}</b></div>",
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

/// One bar with all parts of a whole; names and shares stand below it.
pub(super) fn portions(out: &mut String, chart: &Portions) {
    open(out, &chart.caption, &format!("{} in total", chart.whole), &chart.help);
    let mut shapes = String::new();
    let mut words = Vec::new();
    let mut items = String::new();
    let mut before = 0.0;
    for (place, name, share, size) in &chart.parts {
        let said = format!("{name}: {} ({size})", format::share(*share));
        let _ = write!(
            shapes,
            "<rect class=\"k{place}\" x=\"{:.2}%\" width=\"{:.2}%\" height=\"100%\"><title>{}</title></rect>",
            before * 100.0,
            share * 100.0,
            escape(&said)
        );
        let _ = write!(
            items,
            "<li title=\"{}\"><i class=\"k{place}\"></i>{} <b>{}</b></li>",
            escape(size),
            escape(name),
            format::share(*share)
        );
        before += share;
        words.push(said);
    }
    let _ = writeln!(
        out,
        "<div class=\"portions\"><svg role=\"img\"><title>{}</title>{shapes}</svg><ul class=\"legend\">{items}</ul></div></figure>",
        escape(&words.join(", "))
    );
}

/// Changes with their intervals around a line at zero; longer than the axis is cut.
pub(super) fn changes(out: &mut String, chart: &Changes) {
    open(out, &chart.caption, "%", &chart.help);
    let ends = chart.rows.iter().flat_map(|row| {
        let (low, high) = row.interval.unwrap_or((row.percent, row.percent));
        [row.percent, low.clamp(-100.0, 400.0), high.clamp(-100.0, 400.0)]
    });
    let most = ends.clone().fold(10.0, f64::max).min(1e4) * 1.05;
    let least = ends.fold(-10.0, f64::min).max(-100.0) * 1.05;
    let x = |percent: f64| ((percent - least) / (most - least) * 100.0).clamp(0.0, 100.0);
    out.push_str("<div class=\"bars changes\">\n");
    for row in &chart.rows {
        let class = match (row.significant, row.percent > 0.0) {
            (false, _) => "same",
            (true, true) => "up",
            (true, false) => "down",
        };
        let interval = row.interval.map_or_else(String::new, |(low, high)| {
            let (from, to) = (x(low), x(high));
            format!(
                "<rect class=\"{class} range\" x=\"{from:.2}%\" width=\"{:.2}%\" y=\"42%\" height=\"16%\"/>",
                (to - from).max(0.2)
            )
        });
        let (zero, at) = (x(0.0), x(row.percent));
        let _ = writeln!(
            out,
            "<div class=\"row\"><span title=\"{0}\">{0}</span><svg role=\"img\"><title>{1}</title>             <line x1=\"{zero:.2}%\" x2=\"{zero:.2}%\" y1=\"-20%\" y2=\"120%\"/>{interval}             <circle class=\"{class}\" cx=\"{at:.2}%\" cy=\"50%\" r=\"5\"/></svg><b>{2}</b></div>",
            escape(&row.label),
            escape(&format!("{}: {}", row.label, row.words)),
            escape(&row.words)
        );
    }
    let _ = writeln!(
        out,
        "<div class=\"row axis\"><span></span><div class=\"ticks\"><i style=\"left:{:.2}%\">0 %</i></div><b></b></div>\n</div></figure>",
        x(0.0)
    );
}
