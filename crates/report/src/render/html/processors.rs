//! Charts of processors in HTML: strips over time, flame graphs, durations in order of size, causes.

use std::fmt::Write;

use super::charts::{legend, open};
use super::escape;
use crate::document::{Call, Calls, Cause, Ranks, Strip};
use crate::value::fields::Format;
use crate::value::{format, ticks};

/// Steps of a strip's shade.
const SHADES: f64 = 10.0;

/// A cause with its evidence and remedies.
pub(super) fn cause(out: &mut String, cause: &Cause) {
    let _ = write!(
        out,
        "<details class=\"finding\"{}><summary><b>{}</b> <span class=\"cost\">{}</span></summary>\n<div class=\"evidence\"><div>\n<p>{}.</p>\n<dl>",
        if cause.is_open { " open" } else { "" },
        escape(cause.title),
        escape(&cause.cost),
        escape(&cause.what),
    );
    for (title, lines) in cause.rows.iter().filter(|(_, lines)| !lines.is_empty()) {
        let _ = write!(out, "<dt>{title}</dt><dd>");
        for line in lines {
            let _ = write!(out, "<span>{}</span>", escape(line));
        }
        out.push_str("</dd>");
    }
    out.push_str("</dl></div></div></details>\n");
}

/// A row for each processor, darker where interrupts and deferred work take more of its time.
pub(super) fn strip(out: &mut String, chart: &Strip) {
    open(out, &chart.caption, "share of the time", &chart.help);
    let rows = || chart.groups.iter().flat_map(|(_, rows)| rows);
    let bins = rows().map(|row| row.shares.len()).max().unwrap_or(0).max(1);
    // On the axis; bins can begin before it and end behind it.
    let before = chart.before_ns as f64;
    let at =
        |bin: usize| (chart.bin_ns as f64 * bin as f64 - before).clamp(0.0, chart.whole_ns as f64);
    let many = if rows().count() > 48 { " many" } else { "" };
    let _ = writeln!(out, "<div class=\"strip{many}\">");
    for (name, rows) in &chart.groups {
        if chart.groups.len() > 1 {
            let _ = writeln!(out, "<p>{}</p>", escape(name));
        }
        for row in rows {
            let mut shapes = String::new();
            let level = |share: f64| (share.clamp(0.0, 1.0) * SHADES).round() as u32;
            let mut begin = 0;
            for run in row.shares.chunk_by(|a, b| level(*a) == level(*b)) {
                let end = begin + run.len();
                let shade = run.first().map_or(0, |share| level(*share));
                if shade > 0 {
                    let mean = run.iter().sum::<f64>() / run.len() as f64;
                    let when = match chart.bin_ns {
                        0 => String::new(),
                        _ => format!("{} to {}: ", show_time(at(begin)), show_time(at(end))),
                    };
                    let _ = write!(
                        shapes,
                        "<rect x=\"{:.2}%\" width=\"{:.2}%\" height=\"100%\" opacity=\"{:.1}\"><title>{when}{}</title></rect>",
                        begin as f64 / bins as f64 * 100.0,
                        run.len() as f64 / bins as f64 * 100.0 + 0.02,
                        f64::from(shade) / SHADES,
                        format::share(mean)
                    );
                }
                begin = end;
            }
            let _ = writeln!(
                out,
                "<div class=\"row\"><span>{}</span><svg role=\"img\"><title>{}</title>{shapes}</svg><b>{}</b></div>",
                escape(&row.label),
                escape(&format!("{}: {}", row.label, row.words)),
                escape(&row.words)
            );
        }
    }
    let (whole, wide) = (chart.whole_ns as f64, chart.bin_ns as f64 * bins as f64);
    if whole <= 0.0 || wide <= 0.0 {
        out.push_str("</div></figure>\n");
        return;
    }
    out.push_str("<div class=\"row axis\"><span></span><div class=\"ticks\">");
    for tick in ticks::values(whole, Format::Duration).into_iter().filter(|tick| *tick <= whole) {
        let place = (tick + before) / wide * 100.0;
        let class = match place {
            0.0..3.0 => " class=\"begin\"",
            95.0.. => " class=\"end\"",
            _ => "",
        };
        let _ = write!(out, "<i{class} style=\"left:{place:.2}%\">{}</i>", show_time(tick));
    }
    out.push_str("</div><b></b></div>\n</div></figure>\n");
}

fn show_time(ns: f64) -> String {
    ticks::label(Format::Duration, ns, "")
}

/// Depth of a flame graph, and the width of its narrowest part, per cent.
const DEPTH: usize = 40;
const NARROWEST: f64 = 0.15;

/// A flame graph, and the same tree as a list that unfolds.
pub(super) fn calls(out: &mut String, chart: &Calls) {
    let unit = format!("{} samples", format::count(chart.samples));
    open(out, &chart.caption, &unit, &chart.help);
    let whole = chart.samples.max(1) as f64;
    let mut parts = String::new();
    let mut depth = 0;
    let mut left = 0.0;
    for node in &chart.nodes {
        flame(&mut parts, node, left, 0, whole, &mut depth);
        left += node.samples as f64 / whole * 100.0;
    }
    let _ = writeln!(
        out,
        "<div class=\"flame\" style=\"height:{:.2}rem\" role=\"img\" aria-label=\"{}\">{parts}</div>",
        (depth + 1) as f64 * 1.25,
        escape(&chart.caption)
    );
    out.push_str("<details class=\"fold\"><summary>As a list</summary><div class=\"tree\">\n");
    for node in &chart.nodes {
        tree(out, node, whole, 0);
    }
    out.push_str("</div></details></figure>\n");
}

fn flame(out: &mut String, node: &Call, left: f64, depth: usize, whole: f64, deepest: &mut usize) {
    let width = node.samples as f64 / whole * 100.0;
    if depth >= DEPTH || width < NARROWEST {
        return;
    }
    *deepest = (*deepest).max(depth);
    let name = escape(&node.name);
    let role = if node.role.is_empty() { String::new() } else { format!(", {}", node.role) };
    let _ = write!(
        out,
        "<i class=\"{}\" style=\"left:{left:.2}%;width:{width:.2}%;top:{:.2}rem\" title=\"{name}{role}: {} ({}), itself {}\">{name}</i>",
        class(node.role),
        depth as f64 * 1.25,
        format::count(node.samples),
        format::share(node.samples as f64 / whole),
        format::count(node.own_samples)
    );
    let mut left = left;
    for call in &node.calls {
        flame(out, call, left, depth + 1, whole, deepest);
        left += call.samples as f64 / whole * 100.0;
    }
}

fn class(role: &str) -> &'static str {
    match role {
        "team" => "team",
        "filter" => "filter",
        "adapter" => "adapter",
        "protocol" => "protocol",
        "switch" => "switch",
        _ => "plain",
    }
}

fn tree(out: &mut String, node: &Call, whole: f64, depth: usize) {
    let words = format!(
        "<b>{}</b> {} <span>{} samples, {} in itself</span>",
        format::share(node.samples as f64 / whole),
        escape(&node.name),
        format::count(node.samples),
        format::count(node.own_samples)
    );
    if node.calls.is_empty() || depth >= DEPTH {
        let _ = writeln!(out, "<p>{words}</p>");
        return;
    }
    let open = if depth < 6 { " open" } else { "" };
    let _ = writeln!(out, "<details{open}><summary>{words}</summary>");
    for call in &node.calls {
        tree(out, call, whole, depth + 1);
    }
    out.push_str("</details>\n");
}

/// Durations in order of size: a long run is far left, what is usual is far right.
pub(super) fn ranks(out: &mut String, chart: &Ranks) {
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
