//! A tree of calls as a flame graph, and as a list that unfolds.

use std::fmt::{self, Write};

use crate::document::{Drawing, TextOptions};
use crate::render::html::{escape, open};
use crate::value::format::{self, sanitized, shortened};

/// From which share of samples on a call is a line, and the deepest.
const CALL_SHARE: f64 = 0.02;
const CALL_DEPTH: usize = 24;

/// A tree of calls, as a flame graph and as a list that unfolds.
#[derive(Clone, Debug)]
pub(crate) struct CallTree {
    pub(crate) caption: String,
    pub(crate) help: String,
    pub(crate) samples: u64,
    pub(crate) nodes: Vec<Call>,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// What it is in the receive path, in words; empty for the rest.
    pub(crate) role: &'static str,
    pub(crate) samples: u64,
    pub(crate) own_samples: u64,
    pub(crate) calls: Vec<Call>,
}

impl Drawing for CallTree {
    fn svg(&self, out: &mut String) {
        write_svg(out, self);
    }

    fn text(&self, out: &mut String, options: &TextOptions) -> fmt::Result {
        if options.all { write_text(out, self, options.columns()) } else { Ok(()) }
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// Depth of a flame graph, and the width of its narrowest part, per cent.
const DEPTH: usize = 40;
const NARROWEST: f64 = 0.15;

/// A flame graph, and the same tree as a list that unfolds.
fn write_svg(out: &mut String, chart: &CallTree) {
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

/// The tree of calls, indented.
fn write_text(out: &mut String, chart: &CallTree, width: usize) -> fmt::Result {
    writeln!(out, "{} ({} samples)", chart.caption, format::count(chart.samples))?;
    chart.nodes.iter().try_for_each(|node| write_call(out, node, chart.samples, 0, width))
}

fn write_call(out: &mut String, node: &Call, all: u64, depth: usize, width: usize) -> fmt::Result {
    let share = node.samples as f64 / all.max(1) as f64;
    if share < CALL_SHARE || depth > CALL_DEPTH {
        return Ok(());
    }
    let role = if node.role.is_empty() { String::new() } else { format!(" ({})", node.role) };
    let own = node.own_samples as f64 / all.max(1) as f64;
    let own =
        if own >= CALL_SHARE { format!("  itself {}", format::share(own)) } else { String::new() };
    let line = format!(
        "  {:>7}  {}{}{role}{own}",
        format::share(share),
        "  ".repeat(depth),
        sanitized(&node.name)
    );
    writeln!(out, "{}", shortened(&line, width))?;
    node.calls.iter().try_for_each(|call| write_call(out, call, all, depth + 1, width))
}
