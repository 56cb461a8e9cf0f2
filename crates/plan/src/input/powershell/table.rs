//! Tables of `Format-Table`: a heading of one or more lines, dashes under it, and rows.

use super::super::lines::Lines;
use super::{Object, PROPERTIES_MAX};

/// Lines of a table's heading.
const HEADING_LINES_MAX: usize = 4;

/// The columns of a table: they begin where their dashes begin.
pub(crate) struct Table {
    names: Vec<String>,
    starts: Vec<usize>,
}

impl Table {
    /// The table that begins at the next line, and how many lines its heading has. The heading is one block.
    pub(crate) fn find(lines: &Lines<'_>) -> Option<(Table, usize)> {
        let heading_lines = (1..=HEADING_LINES_MAX)
            .take_while(|ahead| lines.ahead(ahead - 1).is_some_and(|line| !line.trim().is_empty()))
            .find(|ahead| lines.ahead(*ahead).is_some_and(is_rule))?;
        let starts = column_starts(lines.ahead(heading_lines)?);
        let mut names = vec![String::new(); starts.len()];
        for ahead in 0..heading_lines {
            for (name, part) in names.iter_mut().zip(cells(lines.ahead(ahead)?, &starts)) {
                name.push_str(&part);
            }
        }
        Some((Table { names, starts }, heading_lines + 1))
    }

    pub(crate) fn row(&self, line: &str, number: usize) -> Object {
        let mut row = Object::default();
        for (name, cell) in self.names.iter().zip(cells(line, &self.starts)) {
            row.push(name, cell, number);
        }
        row
    }
}

/// The line under the heading of a table.
pub(crate) fn is_rule(line: &str) -> bool {
    line.contains("--") && line.bytes().all(|byte| matches!(byte, b'-' | b' ' | b'\t'))
}

fn column_starts(rule: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut before = ' ';
    for (position, letter) in rule.chars().enumerate() {
        if letter == '-' && before != '-' && starts.len() < PROPERTIES_MAX {
            starts.push(position);
        }
        before = letter;
    }
    starts
}

/// The cells of a line. Letters are counted, not their bytes.
fn cells(line: &str, starts: &[usize]) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
    let cell = |(start, end): (&usize, usize)| {
        let cell: String =
            letters.get(*start..end.min(letters.len())).unwrap_or_default().iter().collect();
        cell.trim().to_owned()
    };
    starts.iter().zip(ends).map(cell).collect()
}
