//! Tables and lists of facts in HTML. A table has all its rows; the page's script shows ten of them, the
//! columns that fit, and a search box. Ranks of columns decide which are printed.

use std::fmt::Write;

use super::{escape, histograms, prose};
use crate::document::{Cell, Document, Facts, Heading, Table};
use crate::value::{Clock, format};

/// Characters of a text cell; of longer ones the middle is left out.
const CELL_MAX: usize = 52;
/// Columns of a printed table.
const PRINTED: usize = 9;

pub(super) fn facts(out: &mut String, facts: &Facts, clock: &Clock) {
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
            prose(&fact.value.show(clock)),
            prose(&fact.note)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

pub(super) fn table(out: &mut String, table: &Table, document: &Document) {
    // A column without any value says nothing.
    let filled = |place: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(place));
        cells.any(|cell| *cell != Cell::Empty)
    };
    let shown: Vec<(usize, &Heading)> =
        table.headings.iter().enumerate().filter(|(place, _)| filled(*place)).collect();
    let filter =
        table.filter.and_then(|filter| shown.iter().position(|(place, _)| *place == filter));
    let filter = filter.map_or_else(String::new, |place| format!(" data-filter=\"{place}\""));
    let _ = write!(
        out,
        "<div class=\"table\"><div class=\"scroll\" tabindex=\"0\"><table class=\"sortable{}\"{filter}><caption>{} <span class=\"help\">{}</span></caption>",
        unprinted(&shown),
        escape(&table.caption),
        escape(&table.help)
    );
    head(out, &shown);
    out.push_str("<tbody>\n");
    let rows = table.rows.iter().take(table.in_page);
    let mut written = 0;
    for row in rows {
        written += 1;
        out.push_str("<tr>");
        for (number, (place, heading)) in shown.iter().enumerate() {
            let value = row.get(*place).unwrap_or(&Cell::Empty);
            cell(out, value, heading, number == 0, &document.clock);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    let more = table.total.saturating_sub(written);
    if more > 0 {
        let _ = write!(out, "<p class=\"more\">{} more are not in this page", format::count(more));
        if let Some(sql) = &table.sql {
            let _ = write!(out, ": <code>{}</code>", escape(&document.query(sql)));
        }
        out.push_str("</p>\n");
    }
    out.push_str("</div>\n");
}

/// Classes of the columns that a printed page has no room for: those of the highest ranks.
fn unprinted(shown: &[(usize, &Heading)]) -> String {
    let mut ranked: Vec<(u8, usize)> =
        shown.iter().enumerate().map(|(number, (_, heading))| (heading.rank, number)).collect();
    ranked.sort_unstable();
    let left_out = ranked.iter().skip(PRINTED).filter(|(rank, _)| *rank > 0);
    left_out.map(|(_, number)| format!(" p{}", number + 1)).collect()
}

fn head(out: &mut String, shown: &[(usize, &Heading)]) {
    out.push_str("<thead><tr>");
    for (_, heading) in shown {
        let class = if heading.numeric { " class=\"n\"" } else { "" };
        let group = heading
            .group
            .map_or_else(String::new, |group| format!("<small>{}</small> ", escape(group)));
        let _ = write!(
            out,
            "<th scope=\"col\"{class} data-rank=\"{}\" title=\"{}\">{group}{}</th>",
            heading.rank,
            escape(heading.help),
            escape(&heading.title)
        );
    }
    out.push_str("</tr></thead>");
}

fn cell(out: &mut String, cell: &Cell, heading: &Heading, first: bool, clock: &Clock) {
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
    let shown = cell.show(clock);
    let content = match cell {
        Cell::Histogram(counts) => histograms::small(counts),
        Cell::Share(share) => format!(
            "{}<svg class=\"bar\" aria-hidden=\"true\"><rect width=\"{:.1}%\" height=\"100%\"/></svg>",
            escape(&shown),
            share.clamp(0.0, 1.0) * 100.0
        ),
        Cell::Code(_) => format!("<code title=\"{0}\">{0}</code>", escape(&shown)),
        Cell::Text(_) if shown.chars().count() > CELL_MAX => format!(
            "<span title=\"{}\">{}</span>",
            escape(&shown),
            escape(&format::shortened(&shown, CELL_MAX))
        ),
        _ => prose(&shown),
    };
    let _ = if first {
        write!(out, "<th scope=\"row\"{class}{key}>{content}</th>")
    } else {
        write!(out, "<td{class}{key}>{content}</td>")
    };
}
