//! Durations in order of size against their number. A table has the same for a terminal.

use std::fmt::Write;

use crate::document::Drawing;
use crate::render::html::{escape, legend, open};
use crate::value::{Format, format, ticks};

/// Durations in order of size against their number, both on logarithmic axes.
#[derive(Clone, Debug)]
pub(crate) struct DurationRanks {
    pub(crate) caption: String,
    pub(crate) help: String,
    /// Number of durations that are at least as long, and that duration.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
    pub(crate) limits: Vec<(String, f64)>,
}

impl Drawing for DurationRanks {
    fn svg(&self, out: &mut String) {
        write_svg(out, self);
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Durations in order of size: a long run is far left, what is usual is far right.
fn write_svg(out: &mut String, chart: &DurationRanks) {
    open(out, &chart.caption, "logarithmic axes", &chart.help);
    let points = || chart.lines.iter().flat_map(|(_, points)| points);
    let limits = chart.limits.iter().map(|(_, limit)| *limit);
    let most = points().map(|point| point.0).fold(10.0, f64::max);
    let longest = points().map(|point| point.1).chain(limits.clone()).fold(1.0, f64::max);
    let shortest = points().map(|point| point.1.max(1.0)).chain(limits).fold(longest, f64::min);
    let decade = |value: f64, up: bool| {
        let power = value.max(1.0).log10();
        if up { power.ceil() } else { power.floor() }
    };
    let (low, high) =
        (decade(shortest, false), decade(longest, true).max(decade(shortest, false) + 1.0));
    let wide = decade(most, true).max(1.0);
    let x = |count: f64| count.max(1.0).log10() / wide * 1000.0;
    let y = |ns: f64| 100.0 - (ns.max(1.0).log10() - low) / (high - low) * 100.0;
    out.push_str("<div class=\"lines\">");
    let names = chart.lines.iter().enumerate().map(|(place, (name, _))| (place, name.as_str()));
    legend(out, &names.collect::<Vec<_>>());
    out.push_str(
        "<div class=\"plot tall\"><div class=\"area\"><div class=\"y\" aria-hidden=\"true\">",
    );
    let mut shapes = String::new();
    for power in low as i32..=high as i32 {
        let at = y(10f64.powi(power));
        let _ = write!(shapes, "<path class=\"grid\" d=\"M0 {at:.1}H1000\"/>");
        let label = ticks::label(Format::Duration, 10f64.powi(power), "");
        let _ = write!(out, "<i style=\"bottom:{:.1}%\">{label}</i>", 100.0 - at);
    }
    for (name, limit) in &chart.limits {
        let at = y(*limit);
        let _ = write!(
            shapes,
            "<path class=\"limit\" d=\"M0 {at:.1}H1000\"><title>{}</title></path>",
            escape(name)
        );
    }
    for (number, (_, points)) in chart.lines.iter().enumerate() {
        let mut path = String::new();
        for (place, (count, ns)) in points.iter().enumerate() {
            let _ = write!(
                path,
                "{}{:.1} {:.2}",
                if place == 0 { 'M' } else { 'L' },
                x(*count),
                y(*ns)
            );
        }
        // The short stroke shows a duration that all runs have.
        if points.len() == 1 {
            path.push_str("h.01");
        }
        let _ = write!(shapes, "<path class=\"l{number}\" d=\"{path}\"/>");
    }
    let limits = chart.limits.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let _ = write!(
        out,
        "</div><svg role=\"img\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\"><title>{}</title>{shapes}</svg></div><div class=\"x\" aria-hidden=\"true\">",
        escape(&format!("{}. Dashed: {limits}", chart.caption))
    );
    for power in 0..=wide as i32 {
        let place = f64::from(power) / wide * 100.0;
        let class = match place {
            0.0..3.0 => " class=\"begin\"",
            95.0.. => " class=\"end\"",
            _ => "",
        };
        let _ = write!(
            out,
            "<i{class} style=\"left:{place:.2}%\">{}</i>",
            format::count(10u64.pow(power as u32))
        );
    }
    let _ = writeln!(
        out,
        "</div></div></div><p class=\"more\">Dashed: {}.</p></figure>",
        escape(&limits)
    );
}
