//! Tables and lists of facts in HTML.

use std::fmt::Write;

use super::{charts, escape};
use crate::document::{Cell, Facts, Heading, Table};
use crate::format;

pub(super) fn facts(out: &mut String, facts: &Facts) {
    let _ = writeln!(
        out,
        "<div class=\"scroll\"><table class=\"facts\"><caption>{}</caption><tbody>",
        escape(&facts.caption)
    );
    for fact in &facts.rows {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\" title=\"{}\">{}</th><td>{}</td><td class=\"aside\">{}</td></tr>",
            escape(fact.help),
            escape(&fact.title),
            escape(&fact.value.show()),
            escape(&fact.note)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

pub(super) fn table(out: &mut String, table: &Table) {
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"sortable\"><caption>{} <span class=\"help\">{}</span></caption>",
        escape(&table.caption),
        escape(&table.help)
    );
    // A column without any value says nothing.
    let filled = |place: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(place));
        cells.any(|cell| *cell != Cell::Empty)
    };
    let shown: Vec<(usize, &Heading)> =
        table.headings.iter().enumerate().filter(|(place, _)| filled(*place)).collect();
    head(out, &shown);
    out.push_str("<tbody>\n");
    let rows = table.rows.iter().take(table.in_page);
    let mut written = 0;
    for row in rows {
        written += 1;
        out.push_str("<tr>");
        for (number, (place, heading)) in shown.iter().enumerate() {
            cell(out, row.get(*place).unwrap_or(&Cell::Empty), heading, number == 0);
        }
        out.push_str("</tr>\n");
    }
    if written == 0 {
        out.push_str("<tr><td>none</td></tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    let more = table.total.saturating_sub(written);
    if more > 0 {
        let _ = write!(out, "<p class=\"more\">… and {} more", format::count(more));
        if let Some(sql) = &table.sql {
            let _ = write!(out, ": <code>smbscope query INPUT \"{}\"</code>", escape(sql));
        }
        out.push_str("</p>\n");
    }
}

fn head(out: &mut String, shown: &[(usize, &Heading)]) {
    out.push_str("<thead>");
    if shown.iter().any(|(_, heading)| heading.group.is_some()) {
        out.push_str("<tr class=\"groups\">");
        let mut rest = shown;
        while let Some((_, first)) = rest.first() {
            let length =
                rest.iter().take_while(|(_, heading)| heading.group == first.group).count().max(1);
            let _ = match first.group {
                Some(group) => write!(
                    out,
                    "<th scope=\"colgroup\" colspan=\"{length}\"><span>{}</span></th>",
                    escape(group)
                ),
                None => write!(out, "<td colspan=\"{length}\"></td>"),
            };
            rest = rest.get(length..).unwrap_or(&[]);
        }
        out.push_str("</tr>");
    }
    out.push_str("<tr>");
    for (_, heading) in shown {
        let class = if heading.numeric { " class=\"n\"" } else { "" };
        let _ = write!(
            out,
            "<th scope=\"col\"{class} title=\"{}\">{}</th>",
            escape(heading.help),
            escape(&heading.title)
        );
    }
    out.push_str("</tr></thead>");
}

fn cell(out: &mut String, cell: &Cell, heading: &Heading, first: bool) {
    let class = match (cell, heading.numeric) {
        (Cell::Empty, true) => " class=\"n empty\"",
        (Cell::Empty, false) => " class=\"empty\"",
        (_, true) => " class=\"n\"",
        (Cell::Code(_), _) => " class=\"code\"",
        _ => "",
    };
    let key = match cell.sort_key() {
        Some(key) => format!(" data-v=\"{key}\""),
        None => String::new(),
    };
    let content = match cell {
        Cell::Histogram(counts) => charts::small(counts),
        Cell::Share(share) => format!(
            "{}<svg class=\"bar\" aria-hidden=\"true\"><rect width=\"{:.1}%\" height=\"100%\"/></svg>",
            escape(&cell.show()),
            share.clamp(0.0, 1.0) * 100.0
        ),
        Cell::Code(_) => format!("<code>{}</code>", escape(&cell.show())),
        _ => escape(&cell.show()),
    };
    let _ = match first {
        true => write!(out, "<th scope=\"row\"{class}{key}>{content}</th>"),
        false => write!(out, "<td{class}{key}>{content}</td>"),
    };
}
