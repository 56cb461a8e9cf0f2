//! Histograms as inline SVG: by command, of a finding, and in the cells of tables.

use std::fmt::Write;

use super::{charts, escape};
use crate::document::{Histograms, Times};
use crate::value::format;

/// A time without decimals that say nothing.
fn short(ns: i64) -> String {
    format::duration(ns).replace(".00", "").replace(".0 ", " ")
}

/// How long a finding's operations took, on a logarithmic axis with marks.
pub(super) fn times(out: &mut String, chart: &Times) {
    charts::open(out, chart.caption, "operations", "");
    let first = chart.classes.first().map_or(0, |class| class.from_ns);
    let last = chart
        .classes
        .last()
        .map_or(0, |class| class.below_ns.unwrap_or(class.from_ns.saturating_mul(2)));
    let marks = chart.marks.iter().map(|(ns, _)| *ns);
    let least = marks.clone().fold(first, i64::min).max(500) as f64;
    let most = marks.fold(last, i64::max).max(1_000) as f64;
    let x = |ns: i64| {
        let place = ((ns as f64).max(least) / least).ln() / (most / least).ln().max(1e-9);
        (place * 100.0).clamp(0.0, 100.0)
    };
    let tallest = chart.classes.iter().map(|class| class.operations).max().unwrap_or(1).max(1);
    let mut shapes = String::new();
    let mut words = Vec::new();
    for class in &chart.classes {
        let height = (class.operations as f64 / tallest as f64 * 100.0).max(3.0);
        let (from, to) = (x(class.from_ns), class.below_ns.map_or(100.0, x));
        let upper = class.below_ns.map_or_else(|| "∞".to_owned(), short);
        let said =
            format!("{} to {upper}: {}", short(class.from_ns), format::count(class.operations));
        let _ = write!(
            shapes,
            "<rect class=\"k1\" x=\"{:.2}%\" y=\"{:.1}%\" width=\"{:.2}%\" height=\"{height:.1}%\"><title>{}</title></rect>",
            from + 0.15,
            100.0 - height,
            (to - from - 0.3).max(0.4),
            escape(&said)
        );
        words.push(said);
    }
    for (ns, _) in &chart.marks {
        let at = x(*ns);
        let _ = write!(shapes, "<line x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"100%\"/>");
    }
    let _ = write!(
        out,
        "<div class=\"times\"><svg role=\"img\"><title>{}</title>{shapes}</svg><div class=\"ticks\">",
        escape(&words.join("; "))
    );
    let mut free = -1.0;
    let bounds =
        chart.classes.iter().flat_map(|class| [Some(class.from_ns), class.below_ns]).flatten();
    for bound in bounds {
        let at = x(bound);
        if at >= free && at <= 96.0 {
            let _ = write!(out, "<i style=\"left:{at:.2}%\">{}</i>", short(bound));
            free = at + 17.0;
        }
    }
    out.push_str("</div>");
    let marks: Vec<_> = chart.marks.iter().map(|(_, words)| escape(words)).collect();
    if !marks.is_empty() {
        let _ = write!(out, "<p class=\"more\">Dashed: {}.</p>", marks.join("; "));
    }
    out.push_str("</div></figure>\n");
}

/// Histograms one below the other, with one axis.
pub(super) fn histograms(out: &mut String, chart: &Histograms) {
    charts::open(out, &chart.caption, &format!("{}, logarithmic", chart.unit), &chart.help);
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
            escape(&format!("{label}: {} {}", format::count(all), chart.unit)),
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
