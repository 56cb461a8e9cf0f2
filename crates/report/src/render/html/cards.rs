//! Findings and steps in HTML: cards that unfold, lines with their severity, commands as a checklist.

use std::fmt::Write;

use super::{escape, prose, write_chart};
use crate::document::{ChecklistItem, FindingCard, FindingLine};
use crate::value::{Clock, format};

/// A finding with its evidence and remedies.
pub(super) fn card(out: &mut String, card: &FindingCard, clock: &Clock) {
    let share =
        card.share.map(|share| format!("<span class=\"share\">{}</span>", format::share(share)));
    let _ = write!(
        out,
        "<details class=\"finding\"{}><summary>{}<b>{}</b> <span class=\"cost\">{}</span>{}</summary>\n\
         <div class=\"evidence\"><div>\n<p>{}.</p>\n<dl>",
        if card.is_open { " open" } else { "" },
        share.unwrap_or_default(),
        escape(card.title),
        prose(&card.cost),
        card.share.map(meter).unwrap_or_default(),
        prose(&card.what),
    );
    for (title, lines) in card.rows.iter().filter(|(_, lines)| !lines.is_empty()) {
        let _ = write!(out, "<dt>{title}</dt><dd>");
        for line in lines {
            let _ = write!(out, "<span>{}</span>", prose(line));
        }
        out.push_str("</dd>");
    }
    out.push_str("</dl></div>");
    // A card with a share has a place for charts, even if there are none.
    if card.share.is_some() {
        out.push_str("\n<div>");
        card.evidence.iter().for_each(|chart| write_chart(out, chart, clock));
        out.push_str("</div>");
    }
    out.push_str("</div></details>\n");
}

/// Findings, the most severe first.
pub(super) fn lines(out: &mut String, judged: &[FindingLine]) {
    out.push_str("<ul class=\"judged\">\n");
    for one in judged {
        let severity = one.severity.word();
        let _ = writeln!(
            out,
            "<li class=\"{severity}\"><b>{severity}</b> <span><i>{}</i> {}</span></li>",
            prose(&one.about),
            prose(&one.sentence)
        );
    }
    out.push_str("</ul>\n");
}

/// Commands as a checklist.
pub(super) fn steps(out: &mut String, tasks: &[ChecklistItem]) {
    out.push_str("<ol class=\"tasks\">\n");
    for task in tasks {
        let about = if task.about.is_empty() {
            String::new()
        } else {
            format!("<b>{}</b>: ", prose(&task.about))
        };
        let class = if task.is_noticed { "interrupts noticed" } else { "interrupts" };
        let _ = write!(
            out,
            "<li><label><input type=\"checkbox\"> <span>{about}{}</span></label> <span class=\"{class}\">{}</span><dl>",
            prose(&task.does),
            prose(&task.interrupts)
        );
        code(out, "Run", &task.apply, "");
        for (command, expected) in &task.checks {
            code(out, "Check", std::slice::from_ref(command), expected);
        }
        code(out, "Undo", &task.undo, "");
        out.push_str("</dl></li>\n");
    }
    out.push_str("</ol>\n");
}

fn code(out: &mut String, title: &str, lines: &[String], expected: &str) {
    if lines.is_empty() {
        return;
    }
    let lines: Vec<_> = lines.iter().map(|line| escape(line)).collect();
    let _ = write!(
        out,
        "<dt>{title}</dt><dd><div class=\"copy\"><pre tabindex=\"0\"><code>{}</code></pre></div>",
        lines.join("\n")
    );
    if !expected.is_empty() {
        let _ = write!(out, "<span class=\"expected\">shows: {}</span>", escape(expected));
    }
    out.push_str("</dd>");
}

/// A share as a bar.
fn meter(share: f64) -> String {
    let width = (100.0 * share).clamp(0.0, 100.0);
    format!(
        "<svg class=\"meter\" role=\"img\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\"><title>{}</title>\
         <rect width=\"{width:.1}\" height=\"4\"/></svg>",
        format::share(share)
    )
}
