//! A table of the report as text: which columns fit the width, and how far text is shortened.

use std::fmt::{self, Write};

use super::CELL_MIN;
use crate::document::{Cell, Document, Table};
use crate::render::table::{Align, Column, Layout};
use crate::value::format::shortened;

pub fn write_table(
    out: &mut String,
    table: &Table,
    document: &Document,
    width: usize,
) -> fmt::Result {
    writeln!(out, "{}", table.caption)?;
    if table.rows.is_empty() {
        return writeln!(out, "  none");
    }
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .take(table.in_text)
        .map(|row| row.iter().map(|cell| cell.show(&document.clock)).collect())
        .collect();
    // A column without any value says nothing.
    let filled = |place: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(place));
        cells.any(|cell| *cell != Cell::Empty)
    };
    let mut shown: Vec<usize> = (0..table.headings.len()).filter(|&place| filled(place)).collect();
    let length = |place: usize, shown: &[usize]| {
        let heading = heading(table, shown, place);
        let cells = rows.iter().filter_map(|row| row.get(place)).map(String::as_str);
        let lines = cells.chain(heading.lines());
        lines.map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let numeric = |place: usize| table.headings.get(place).is_some_and(|heading| heading.numeric);
    let is_code = |place: usize| {
        let first = table.rows.first().and_then(|row| row.get(place));
        matches!(first, Some(Cell::Code(_) | Cell::Histogram(_)))
    };
    let is_fixed = |place: usize| numeric(place) || is_code(place);
    // Text may be shortened; numbers may not.
    let least = |place: usize, shown: &[usize]| {
        if is_fixed(place) { length(place, shown) } else { length(place, shown).min(CELL_MIN + 8) }
    };
    let needed = |shown: &[usize]| -> usize {
        shown.iter().map(|&place| least(place, shown) + 2).sum::<usize>() + 1
    };
    // What distinguishes the rows is worth more than optional columns, as long as it
    // leaves half of the width: connections differ in the middle, which shortening takes.
    let whole = length(0, &shown);
    let apart = if whole <= width / 2 { whole.saturating_sub(least(0, &shown)) } else { 0 };
    while needed(&shown) + apart > width {
        let rank = |place: &usize| table.headings.get(*place).map_or(0, |heading| heading.rank);
        let Some(highest) = shown.iter().map(rank).max().filter(|&rank| rank > 0) else {
            break;
        };
        let Some(last) = shown.iter().rposition(|place| rank(place) == highest) else {
            break;
        };
        shown.remove(last);
    }
    let mut spare = width.saturating_sub(needed(&shown));
    let mut limits = vec![usize::MAX; table.headings.len()];
    for &place in shown.iter().filter(|&&place| !is_fixed(place)) {
        let least = least(place, &shown);
        let more = length(place, &shown).saturating_sub(least).min(spare);
        spare -= more;
        if let Some(limit) = limits.get_mut(place) {
            *limit = least + more;
        }
    }
    let align = |place: usize| if numeric(place) { Align::Right } else { Align::Left };
    let columns = shown.iter().map(|&place| Column { title: String::new(), align: align(place) });
    let cells: Vec<Vec<String>> = header(table, &shown)
        .into_iter()
        .chain(rows.iter().map(|row| {
            let cell = |place: usize| {
                let limit = limits.get(place).copied().unwrap_or(usize::MAX);
                shortened(row.get(place).map_or("", String::as_str), limit)
            };
            shown.iter().map(|&place| cell(place)).collect()
        }))
        .collect();
    let layout = Layout::natural(columns.collect(), &cells);
    let mut text = String::new();
    cells.iter().for_each(|row| layout.push_row(&mut text, row.iter().map(String::as_str)));
    for line in text.lines() {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    let more = table.total.saturating_sub(rows.len() as u64);
    if more > 0 {
        let more = crate::value::format::count(more);
        match &table.sql {
            Some(sql) => {
                writeln!(out, "  … and {more} more:")?;
                writeln!(out, "    {}", crate::value::format::sanitized(&document.query(sql)))?;
            }
            None => writeln!(out, "  … and {more} more")?,
        }
    }
    Ok(())
}

/// The rows of headings: that of the groups, where there are any, and that of the columns.
fn header(table: &Table, shown: &[usize]) -> Vec<Vec<String>> {
    let headings: Vec<String> = shown.iter().map(|&place| heading(table, shown, place)).collect();
    let count = headings.iter().map(|heading| heading.split('\n').count()).max().unwrap_or(0);
    let line = |number: usize| {
        let lines = headings.iter().map(|heading| heading.split('\n').nth(number));
        lines.map(|line| line.unwrap_or_default().to_owned()).collect()
    };
    (0..count).map(line).collect()
}

/// The heading, with that of its group where it is the group's first column shown.
fn heading(table: &Table, shown: &[usize], place: usize) -> String {
    let Some(heading) = table.headings.get(place) else {
        return String::new();
    };
    let Some(group) = heading.group else {
        let grouped = shown.iter().filter_map(|&place| table.headings.get(place));
        return if grouped.into_iter().any(|heading| heading.group.is_some()) {
            format!("\n{}", heading.title)
        } else {
            heading.title.clone()
        };
    };
    let first = shown
        .iter()
        .find(|&&place| table.headings.get(place).and_then(|heading| heading.group) == Some(group));
    if first == Some(&place) {
        format!("{group}\n{}", heading.title)
    } else {
        format!("\n{}", heading.title)
    }
}
