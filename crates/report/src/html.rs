//! The report as one HTML file that needs no network and no script: charts are inline SVG, tables
//! can be sorted where scripts run. All text is escaped; names and paths come from strangers.

mod charts;
mod findings;
mod tables;

use std::fmt::Write;

use crate::document::{Block, Section};
use crate::format::{self, harmless};
use crate::{Meta, Report, sections};

/// The page.
pub fn html(report: &Report, meta: &Meta) -> String {
    let sections = sections::sections(report, meta);
    let inputs = meta.inputs.join(", ");
    let mut out = String::with_capacity(256 * 1024);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>smbscope: {}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
        escape(&inputs),
        include_str!("html/style.css")
    );
    let _ = write!(
        out,
        "<header>\n<p class=\"brand\">smbscope report</p>\n<h1>{}</h1>\n<p>{}</p>\n{}</header>\n",
        escape(&inputs),
        span(report),
        figures(report)
    );
    out.push_str("<nav aria-label=\"Sections\"><ul>");
    if meta.diagnosis.is_some() {
        let _ = write!(out, "<li><a href=\"#{}\">{}</a></li>", findings::ID, findings::TITLE);
    }
    for section in &sections {
        let _ = write!(out, "<li><a href=\"#{}\">{}</a></li>", section.id, escape(section.title));
    }
    out.push_str("</ul></nav>\n<main>\n");
    if let Some(diagnosis) = &meta.diagnosis {
        findings::findings(&mut out, diagnosis, report.load.is_some());
    }
    for section in &sections {
        write_section(&mut out, section);
    }
    let _ = write!(
        out,
        "</main>\n<footer><p>smbscope {} · schema version {} · read from {}</p></footer>\n\
         <script>\n{}</script>\n</body>\n</html>\n",
        escape(&meta.version),
        report.schema_version,
        escape(&inputs),
        include_str!("html/script.js")
    );
    out
}

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(
        out,
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"lead\">{}</p>",
        section.id,
        escape(section.title),
        escape(section.help)
    );
    let mut in_grid = false;
    for block in &section.blocks {
        // Lists of facts stand side by side where there is room.
        let is_facts = matches!(block, Block::Facts(_));
        if is_facts != in_grid {
            out.push_str(if is_facts { "<div class=\"grid\">\n" } else { "</div>\n" });
            in_grid = is_facts;
        }
        match block {
            Block::Table(table) => tables::table(out, table),
            Block::Facts(facts) => tables::facts(out, facts),
            Block::Stacked(bars) => charts::stacked(out, bars),
            Block::Timeline(timeline) => charts::timeline(out, timeline),
            Block::Lines(lines) => charts::lines(out, lines),
            Block::Curve(curve) => charts::curve(out, curve),
            Block::Histograms(histograms) => charts::histograms(out, histograms),
            Block::Waterfall(waterfall) => charts::waterfall(out, waterfall),
            Block::Note(note) => {
                let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
            }
            Block::Warn(note) => {
                let _ = writeln!(out, "<p class=\"warn\">{}</p>", escape(note));
            }
        }
    }
    if in_grid {
        out.push_str("</div>\n");
    }
    out.push_str("</section>\n");
}

fn span(report: &Report) -> String {
    match (report.start_ns, report.end_ns) {
        (Some(start), Some(end)) => {
            format!("{}, for {}", format::time(start), format::duration(end.saturating_sub(start)))
        }
        _ => "No time is known.".to_owned(),
    }
}

/// The numbers that everybody looks for first.
fn figures(report: &Report) -> String {
    let tally = &report.totals.tally;
    let duration = |ns: Option<i64>| ns.map_or_else(|| "–".to_owned(), format::duration);
    let mut shown = Vec::new();
    if let Some(load) = &report.load {
        shown.extend(sections::load_figures(load));
    }
    let figures = [
        ("Operations", format::count(tally.operations)),
        ("Median latency", duration(tally.elapsed.p50_ns)),
        ("95 of 100 within", duration(tally.elapsed.p95_ns)),
        ("99 of 100 within", duration(tally.elapsed.p99_ns)),
        ("Errors", format::count(tally.errors)),
        ("Unanswered", format::count(tally.unanswered)),
    ];
    shown.extend(figures);
    let mut out = String::from("<dl class=\"figures\">");
    for (title, value) in shown {
        let _ = write!(out, "<div><dt>{title}</dt><dd>{}</dd></div>", escape(&value));
    }
    out.push_str("</dl>\n");
    out
}

/// Text made harmless, and then safe in elements and quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let text = harmless(text);
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(
            escape("<a href='x' title=\"y\">&\u{202e}\u{7}"),
            "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;\\u{202e}\\u{7}"
        );
    }
}
