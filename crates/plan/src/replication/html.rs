//! Tables of an HTML page: the report of Test-SRTopology.
//!
//! No genuine report was at hand, so nothing is assumed of its form but that results are in tables (`<table>`, `<tr>`, `<td>`,
//! `<th>`) and texts outside tables, below headings (`<h1>` to `<h6>`): all are read as text. Anything else is skipped. The parser is not one
//! of HTML: it knows tags, comments, `<style>` and `<script>`, and the five entities of XML. Memory and work are bounded.

use serde::Serialize;

/// Most rows, tables, texts and cells of a row, and most characters of a cell or a text.
const ROWS_MAX: usize = 10_000;
const TABLES_MAX: usize = 1_000;
const TEXTS_MAX: usize = 1_000;
const CELLS_MAX: usize = 64;
const TEXT_MAX: usize = 2_000;

/// A table with the heading above it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HtmlTable {
    pub heading: String,
    pub rows: Vec<HtmlRow>,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HtmlRow {
    pub cells: Vec<String>,
}

/// A text outside tables, with the heading above it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HtmlText {
    pub heading: String,
    pub text: String,
}

/// The tables and texts of a page, whether some were left out because there are too many, and whether the page ends in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HtmlTables {
    pub tables: Vec<HtmlTable>,
    pub texts: Vec<HtmlText>,
    pub is_cut: bool,
    /// A tag, a comment, a table or the page itself has no end: a file that was not copied completely.
    pub is_incomplete: bool,
}

/// Reads the tables. Bytes are UTF-8, or UTF-16 with a byte order mark, as PowerShell writes.
pub fn tables(bytes: &[u8]) -> HtmlTables {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        all => String::from_utf8_lossy(all).into_owned(),
    };
    let mut reader = Reader::default();
    reader.read(&text);
    reader.found
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[derive(Default)]
struct Reader {
    found: HtmlTables,
    heading: String,
    /// Text outside tables since the last tag that ends a paragraph.
    text: String,
    /// Whether text belongs to the title, to a heading, or to a cell.
    in_title: bool,
    in_heading: bool,
    cell: Option<String>,
    row: Vec<String>,
    /// Tables that are open; what is in an inner one belongs to the outer one, too.
    depth: usize,
    rows: usize,
    /// Whether the page begins, and ends.
    begins: bool,
    ends: bool,
}

impl Reader {
    fn read(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            self.text(&rest[..at]);
            rest = &rest[at..];
            if let Some(comment) = rest.strip_prefix("<!--") {
                let end = comment.find("-->");
                self.found.is_incomplete |= end.is_none();
                rest = end.map_or("", |end| &comment[end + 3..]);
                continue;
            }
            let Some(end) = rest.find('>') else {
                self.found.is_incomplete = true;
                break;
            };
            let tag = rest[1..end].trim();
            rest = &rest[end + 1..];
            let (is_end, tag) = match tag.strip_prefix('/') {
                Some(name) => (true, name),
                None => (false, tag),
            };
            let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or("");
            let name = if name.len() <= 8 { name.to_ascii_lowercase() } else { String::new() };
            if !is_end && matches!(name.as_str(), "style" | "script") {
                let close = format!("</{name}");
                let end = find_any_case(rest, &close);
                self.found.is_incomplete |= end.is_none();
                rest = end.map_or("", |at| &rest[at..]);
                continue;
            }
            self.tag(&name, is_end);
        }
        if !rest.starts_with('<') {
            self.text(rest);
        }
        self.found.is_incomplete |= self.depth > 0 || self.begins && !self.ends;
        self.end_row();
        self.end_text();
    }

    fn text(&mut self, text: &str) {
        let into = match (&mut self.cell, self.in_heading) {
            (Some(cell), _) => cell,
            (None, true) => &mut self.heading,
            (None, false) if self.depth == 0 && !self.in_title => &mut self.text,
            (None, false) => return,
        };
        let room = TEXT_MAX.saturating_sub(into.len());
        let mut end = text.len().min(room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        into.push_str(&text[..end]);
    }

    fn tag(&mut self, name: &str, is_end: bool) {
        // Others, such as `<b>`, are within a paragraph.
        if matches!(
            name,
            "table"
                | "html"
                | "body"
                | "p"
                | "div"
                | "li"
                | "br"
                | "hr"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
        ) && !self.in_heading
        {
            self.end_text();
        }
        match (name, is_end) {
            ("title", _) => self.in_title = !is_end,
            ("table", false) => {
                self.end_row();
                self.depth += 1;
                if self.found.tables.len() >= TABLES_MAX {
                    self.found.is_cut = true;
                } else if self.depth == 1 {
                    let heading = plain(&self.heading);
                    self.found.tables.push(HtmlTable { heading, rows: Vec::new() });
                }
            }
            ("table", true) => {
                self.end_row();
                self.depth = self.depth.saturating_sub(1);
            }
            ("html", false) => self.begins = true,
            ("html", true) => self.ends = true,
            ("tr", _) => self.end_row(),
            ("td" | "th", false) => {
                self.end_cell();
                self.cell = (self.depth > 0).then(String::new);
            }
            ("td" | "th", true) => self.end_cell(),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) if self.cell.is_none() => {
                self.heading.clear();
                self.in_heading = true;
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", true) => self.in_heading = false,
            // Words on both sides of it are two.
            _ => self.text(" "),
        }
    }

    fn end_text(&mut self) {
        let text = plain(&std::mem::take(&mut self.text));
        if text.is_empty() {
            return;
        }
        if self.found.texts.len() >= TEXTS_MAX {
            self.found.is_cut = true;
            return;
        }
        self.found.texts.push(HtmlText { heading: plain(&self.heading), text });
    }

    fn end_cell(&mut self) {
        if let Some(cell) = self.cell.take()
            && self.row.len() < CELLS_MAX
        {
            self.row.push(plain(&cell));
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        let row = std::mem::take(&mut self.row);
        if row.iter().all(String::is_empty) {
            return;
        }
        if self.rows >= ROWS_MAX {
            self.found.is_cut = true;
            return;
        }
        if let Some(table) = self.found.tables.last_mut() {
            self.rows += 1;
            table.rows.push(HtmlRow { cells: row });
        }
    }
}

/// Where `wanted`, which is ASCII, begins in the text, in any case.
fn find_any_case(text: &str, wanted: &str) -> Option<usize> {
    let windows = text.as_bytes().windows(wanted.len());
    windows.into_iter().position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Text without entities, and with single spaces.
fn plain(text: &str) -> String {
    let text = text
        .replace("&nbsp;", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&apos;", "'")
        .replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl HtmlTables {
    /// Rows that report a failure or a warning, by their words.
    pub fn troubles(&self) -> Vec<(&str, &[String])> {
        let is_trouble = |row: &&HtmlRow| {
            row.cells.iter().any(|cell| {
                let cell = cell.to_ascii_lowercase();
                ["fail", "warning", "error", "not met", "does not"]
                    .iter()
                    .any(|word| cell.contains(word))
            })
        };
        let tables = self.tables.iter();
        tables
            .flat_map(|table| {
                let rows = table.rows.iter().filter(is_trouble);
                rows.map(|row| (table.heading.as_str(), row.cells.as_slice()))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "<html><head><style>td { color: <red> }</style></head><body><h1>Report</h1><h2>Requirements\
        <br>Tests</h2><!-- <table> --><TABLE class='x'><tr><th>Test</th><th>Result</th></tr>\
        <tr><td>Round trip &lt; 5&nbsp;ms<td>Passed<tr><td><b>Log</b> volume</td><td>Failed: too small &amp; slow</td></tr>\
        </TABLE><p>text</p><h2>More</h2><table><tr><td>one</td></tr></table></body></html>";

    #[test]
    fn tables_are_read_with_their_headings() {
        let found = tables(PAGE.as_bytes());
        assert_eq!(found.tables.len(), 2);
        let table = &found.tables[0];
        assert_eq!(table.heading, "Requirements Tests");
        assert_eq!(table.rows[1].cells, ["Round trip < 5 ms", "Passed"]);
        assert_eq!(table.rows[2].cells, ["Log volume", "Failed: too small & slow"]);
        assert_eq!((found.tables[1].heading.as_str(), found.tables[1].rows.len()), ("More", 1));
        let texts: Vec<_> =
            found.texts.iter().map(|one| (one.heading.as_str(), one.text.as_str())).collect();
        assert_eq!(texts, [("Requirements Tests", "text")]);
        let troubles = found.troubles();
        assert_eq!((troubles.len(), troubles[0].0), (1, "Requirements Tests"));
        // As PowerShell writes it.
        let wide: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(PAGE.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        assert_eq!(tables(&wide), found);
    }

    /// Wherever a page is cut, that is known.
    #[test]
    fn a_page_that_was_cut_is_known() {
        assert!(!tables(PAGE.as_bytes()).is_incomplete);
        assert!(!tables(b"<table><tr><td>x</table>").is_incomplete);
        for end in "<html>".len()..PAGE.len() {
            let found = tables(&PAGE.as_bytes()[..end]);
            assert!(found.is_incomplete, "{}", &PAGE[..end]);
        }
    }

    #[test]
    fn a_page_of_any_size_takes_bounded_memory() {
        let page = format!("<table>{}", "<tr><td>x".repeat(2 * ROWS_MAX));
        let found = tables(page.as_bytes());
        assert!(found.is_cut && found.tables[0].rows.len() == ROWS_MAX);
        let page = format!("<table><tr><td>{}", "ä".repeat(TEXT_MAX));
        assert!(tables(page.as_bytes()).tables[0].rows[0].cells[0].len() <= TEXT_MAX);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            tables(&bytes);
        }

        #[test]
        fn any_tags_are_read(words in proptest::collection::vec("<table>|</table>|<tr>|<td>|<h2>|</h2>|<!--|<style>|>|<|x&lt;|é", 0..60)) {
            tables(words.concat().as_bytes());
        }
    }
}
