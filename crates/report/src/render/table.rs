//! Aligned columns for people, for the report and for the commands that print tables.
//!
//! Owns widths, alignment, shortening and wrapping of cells in plain text. Which tables there are and what is
//! in them is decided elsewhere.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A column is not made narrower than this.
const CELL_MIN: usize = 8;
/// Spaces between columns.
const GAP: usize = 2;

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    pub title: String,
    pub align: Align,
}

impl Column {
    /// A column of text.
    pub fn left(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Left }
    }

    /// A column of numbers.
    pub fn right(title: impl Into<String>) -> Column {
        Column { title: title.into(), align: Align::Right }
    }

    /// A column of names followed by columns of numbers.
    pub fn numbers_of(names: &str, titles: &[&str]) -> Vec<Column> {
        let numbers = titles.iter().map(|title| Column::right(*title));
        std::iter::once(Column::left(names)).chain(numbers).collect()
    }
}

/// Least width of the last column if only that one wraps.
const LAST_MIN: usize = 20;

/// A whole table as text. With a `width`, text wraps to fit it: in the last column, or in all columns of
/// text if that would leave little room for the last one. `style` is printed before and after the header.
pub fn lines(
    columns: &[Column],
    rows: &[Vec<String>],
    style: (&str, &str),
    width: Option<usize>,
) -> String {
    let mut layout = Layout::natural(columns.to_vec(), rows);
    if let Some(width) = width {
        layout.wrap_to(width);
    }
    let mut out = String::new();
    layout.push_header(&mut out, style);
    for row in rows {
        let cells = row.iter().zip(columns).zip(&layout.widths);
        let wrapped: Vec<Vec<&str>> = cells
            .map(|((cell, column), &width)| match column.align {
                Align::Left => wrap(cell, width.max(1)),
                Align::Right => vec![cell.as_str()],
            })
            .collect();
        for line in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0) {
            let pieces = wrapped.iter().map(|pieces| pieces.get(line).copied().unwrap_or(""));
            layout.push_row(&mut out, pieces);
        }
    }
    out
}

/// Columns with their widths, for rows that are written as they come.
#[derive(Clone, Debug)]
pub struct Layout {
    columns: Vec<Column>,
    widths: Vec<usize>,
}

impl Layout {
    /// Columns wide enough for their titles and all cells of these rows.
    pub fn natural(columns: Vec<Column>, rows: &[Vec<String>]) -> Layout {
        let mut widths: Vec<_> = columns.iter().map(|column| column.title.width()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        Layout { columns, widths }
    }

    /// Limits the width of each column.
    pub fn limit_columns(&mut self, most: usize) {
        self.widths.iter_mut().for_each(|width| *width = (*width).min(most));
    }

    /// Narrows columns of text for lines of `line` columns.
    fn wrap_to(&mut self, line: usize) {
        let last = self.widths.len().saturating_sub(1);
        let before: usize = self.widths.iter().take(last).map(|width| width + GAP).sum();
        let room = line.saturating_sub(before);
        let is_text = |place: usize, columns: &[Column]| {
            columns.get(place).is_some_and(|column| matches!(column.align, Align::Left))
        };
        let natural = self.widths.get(last).copied().unwrap_or(0);
        if natural <= room || (room >= LAST_MIN && is_text(last, &self.columns)) {
            if let Some(width) = self.widths.get_mut(last) {
                *width = (*width).min(room.max(LAST_MIN));
            }
            return;
        }
        loop {
            let total: usize =
                self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1);
            let texts = self.widths.iter_mut().zip(&self.columns);
            let texts = texts.filter(|(_, column)| matches!(column.align, Align::Left));
            match texts.map(|(width, _)| width).max() {
                Some(widest) if total > line && *widest > LAST_MIN / 2 => *widest -= 1,
                _ => return,
            }
        }
    }

    /// Characters of a line.
    pub fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
    }

    /// Narrows the widest columns until a line fits.
    pub fn fit(&mut self, line: usize) {
        fit(&mut self.widths, line);
    }

    /// Appends the titles, between the two parts of `style`.
    pub fn push_header(&self, out: &mut String, style: (&str, &str)) {
        out.push_str(style.0);
        self.push_row(out, self.columns.iter().map(|column| column.title.as_str()));
        if !style.1.is_empty() {
            // The style ends before the line does.
            out.pop();
            out.push_str(style.1);
            out.push('\n');
        }
    }

    /// Appends one row. Cells that are too wide are cut and end in `…`.
    pub fn push_row<'a>(&self, out: &mut String, cells: impl IntoIterator<Item = &'a str>) {
        let begin = out.len();
        let columns = self.columns.iter().zip(&self.widths);
        for (index, ((column, &width), cell)) in columns.zip(cells).enumerate() {
            if index > 0 {
                out.extend(std::iter::repeat_n(' ', GAP));
            }
            let used = cell.width();
            let blank = std::iter::repeat_n(' ', width.saturating_sub(used));
            match column.align {
                _ if used > width => push_cut(out, cell, width),
                Align::Left => {
                    out.push_str(cell);
                    out.extend(blank);
                }
                Align::Right => {
                    out.extend(blank);
                    out.push_str(cell);
                }
            }
        }
        let end = out.trim_end_matches(' ').len().max(begin);
        out.truncate(end);
        out.push('\n');
    }
}

fn fit(widths: &mut [usize], line: usize) {
    loop {
        let total: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let Some(widest) = widths.iter_mut().max() else { return };
        if total <= line || *widest <= CELL_MIN {
            return;
        }
        *widest -= 1;
    }
}

fn push_cut(out: &mut String, cell: &str, width: usize) {
    let mut used = 0;
    for c in cell.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        out.push(c);
    }
    out.push('…');
}

/// Pieces of at most `width` columns, cut at spaces where there are any.
fn wrap(text: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.width() > width {
        let mut used = 0;
        let mut hard = rest.len();
        for (index, c) in rest.char_indices() {
            used += c.width().unwrap_or(0);
            if used > width {
                hard = index;
                break;
            }
        }
        let head = rest.get(..hard).unwrap_or(rest);
        let cut = head.rfind(' ').filter(|&index| index > 0).unwrap_or(hard);
        if cut == 0 {
            break;
        }
        let (piece, tail) = rest.split_at(cut);
        pieces.push(piece);
        rest = tail.trim_start_matches(' ');
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned_and_lines_have_no_trailing_blanks() {
        let columns = [Column::left("name"), Column::right("n")];
        let rows = [vec!["a".into(), "1".into()], vec!["long one".into(), "".into()]];
        let text = lines(&columns, &rows, ("", ""), None);
        assert_eq!(text, "name      n\na         1\nlong one\n");
    }

    #[test]
    fn the_last_column_wraps_to_the_width() {
        let columns = [Column::left("n"), Column::left("text")];
        let rows = [vec!["1".into(), "words that need more than one line".into()]];
        let text = lines(&columns, &rows, ("", ""), Some(25));
        assert_eq!(text, "n  text\n1  words that need more\n   than one line\n");
    }

    #[test]
    fn all_columns_of_text_wrap_where_the_last_has_no_room() {
        let columns = [Column::left("what"), Column::right("n"), Column::left("needs")];
        let what = "a sentence about what this is good for, which is long".to_owned();
        let rows =
            [vec![what.clone(), "17".into(), "a few words that were one on each line".into()]];
        let text = lines(&columns, &rows, ("", ""), Some(60));
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(text.lines().count() <= 4, "{text}");
        assert!(text.contains("17"));
        let natural = lines(&columns, &rows, ("", ""), None);
        assert!(natural.contains(&what));
    }

    #[test]
    fn wide_columns_are_narrowed_to_the_terminal() {
        let mut widths = [30, 10, 4];
        fit(&mut widths, 30);
        assert_eq!(widths.iter().sum::<usize>() + 4, 30);
        assert_eq!(widths[2], 4);
        let mut out = String::new();
        push_cut(&mut out, "日本語テキスト", 5);
        assert_eq!(out, "日本…");
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
