//! Golden results of pages and of JSON in few lines: what a page consists of, and JSON with short lists on one line.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Longer values get a line for each of their parts.
const LINE_MAX: usize = 240;

/// Elements whose text is shown.
const TITLES: [&str; 7] = ["h1", "h2", "h3", "caption", "summary", "figcaption", "dt"];

/// The content of a page: sections, titles, the header and first row of each table, and how many elements of each
/// other kind follow. The texts of all rows are in the golden results of text.
pub fn outline(page: &str) -> String {
    let body = page.split_once("<main>").unwrap().1.split_once("</main>").unwrap().0;
    let mut outline = Outline::default();
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        let name = tag.split([' ', '/']).next().unwrap();
        match tag.strip_prefix('/') {
            Some(name) => outline.end(name),
            None => outline.begin(name, tag),
        }
        outline.text(text);
    }
    outline.flush();
    outline.lines
}

#[derive(Default)]
struct Outline {
    lines: String,
    /// The title or row that is open, and its text.
    open: Option<(String, String)>,
    rows: usize,
    elements: BTreeMap<String, usize>,
}

impl Outline {
    fn begin(&mut self, name: &str, tag: &str) {
        if let Some((_, text)) = &mut self.open {
            if matches!(name, "th" | "td") && !text.is_empty() {
                text.push_str(" | ");
            }
        } else if TITLES.contains(&name) || name == "tr" {
            self.open = Some((name.to_owned(), String::new()));
        } else if name == "section" {
            self.flush();
            let id = tag.split_once("id=\"").and_then(|(_, rest)| rest.split_once('"'));
            writeln!(self.lines, "\nsection {}", id.map_or("", |(id, _)| id)).unwrap();
        } else if !matches!(name, "div" | "table" | "thead" | "tbody" | "dl") {
            *self.elements.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, open)) = &mut self.open {
            open.push_str(&text.replace('\n', " "));
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "thead" | "table" => self.flush(),
            _ => {}
        }
        let Some((_, text)) = self.open.take_if(|(open, _)| open == name) else { return };
        if name != "tr" {
            self.flush();
            writeln!(self.lines, "  {name}: {}", text.trim()).unwrap();
            return;
        }
        // The header, or the first row.
        if self.rows == 0 {
            writeln!(self.lines, "    {}", text.trim()).unwrap();
        }
        self.rows += 1;
    }

    /// Writes how many rows and elements there were since the last line.
    fn flush(&mut self) {
        if self.rows > 1 {
            writeln!(self.lines, "    and {} more", self.rows - 1).unwrap();
        }
        self.rows = 0;
        let elements = std::mem::take(&mut self.elements).into_iter();
        let counts: Vec<_> = elements.map(|(name, count)| format!("{count} {name}")).collect();
        if !counts.is_empty() {
            writeln!(self.lines, "    ({})", counts.join(", ")).unwrap();
        }
    }
}

/// JSON with sorted keys, and with lists and objects on one line where they fit.
pub fn compact(value: &Value) -> String {
    compact_at(value, 0)
}

fn compact_at(value: &Value, depth: usize) -> String {
    let (begin, end, mut parts): (_, _, Vec<_>) = match value {
        Value::Array(list) => {
            ('[', ']', list.iter().map(|value| compact_at(value, depth + 1)).collect())
        }
        Value::Object(map) => {
            let part = |(key, value)| format!("\"{key}\": {}", compact_at(value, depth + 1));
            ('{', '}', map.iter().map(part).collect())
        }
        value => return value.to_string(),
    };
    if value.is_object() {
        // The order depends on a feature of serde_json that other crates of a build may set.
        parts.sort();
    }
    let line = format!("{begin}{}{end}", parts.join(", "));
    if line.len() <= LINE_MAX && !line.contains('\n') {
        return line;
    }
    let indent = "  ".repeat(depth);
    let lines: String = parts.iter().map(|part| format!("\n{indent}  {part},")).collect();
    format!("{begin}{lines}\n{indent}{end}")
}
