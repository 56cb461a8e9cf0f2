//! A plan of cores in HTML: findings with their severity, commands as a checklist, pairs of bars.

use std::fmt::Write;

use smbscope_plan::cores::findings::Severity;

use super::charts::open;
use super::escape;
use crate::document::{Judgement, Pairs, Task};

/// Findings, the most severe first.
pub(super) fn judgements(out: &mut String, judged: &[Judgement]) {
    out.push_str("<ul class=\"judged\">\n");
    for one in judged {
        let severity = match one.severity {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        };
        let _ = writeln!(
            out,
            "<li class=\"{severity}\"><b>{severity}</b> <span><i>{}</i> {}</span></li>",
            escape(&one.about),
            escape(&one.sentence)
        );
    }
    out.push_str("</ul>\n");
}

/// Commands as a checklist.
pub(super) fn tasks(out: &mut String, tasks: &[Task]) {
    out.push_str("<ol class=\"tasks\">\n");
    for task in tasks {
        let about = match task.about.is_empty() {
            true => String::new(),
            false => format!("<b>{}</b>: ", escape(&task.about)),
        };
        let class = if task.is_noticed { "interrupts noticed" } else { "interrupts" };
        let _ = write!(
            out,
            "<li><label><input type=\"checkbox\"> <span>{about}{}</span></label> <span class=\"{class}\">{}</span><dl>",
            escape(&task.does),
            escape(&task.interrupts)
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

/// A pair of bars for each row: before above, after below.
pub(super) fn pairs(out: &mut String, chart: &Pairs) {
    open(out, &chart.caption, "", &chart.help);
    out.push_str(
        "<ul class=\"legend\"><li><i class=\"k3\"></i>today</li><li><i class=\"k1\"></i>planned</li></ul>\n<div class=\"bars pairs\">\n",
    );
    let most = chart.rows.iter().map(|row| row.1.max(row.2)).fold(1.0, f64::max);
    for (name, now, planned) in &chart.rows {
        let percent = |value: f64| format!("{:.0} %", value * 100.0);
        let words = format!("{} → {}", percent(*now), percent(*planned));
        let _ = writeln!(
            out,
            "<div class=\"row\"><span>{}</span><svg role=\"img\"><title>{}</title>\
             <rect class=\"k3\" width=\"{:.1}%\" height=\"45%\"/><rect class=\"k1\" y=\"50%\" width=\"{:.1}%\" height=\"45%\"/></svg><b>{}</b></div>",
            escape(name),
            escape(&format!("{name}: {words}")),
            now / most * 100.0,
            planned / most * 100.0,
            escape(&words)
        );
    }
    out.push_str("</div></figure>\n");
}
