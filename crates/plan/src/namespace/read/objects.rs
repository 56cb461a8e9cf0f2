//! Objects of `Get-DfsnRoot`, `Get-DfsnRootTarget`, `Get-DfsnFolder` and `Get-DfsnFolderTarget`: lists (`Name : value`),
//! tables, CSV and JSON. Several of them, of several files, make one namespace.
//!
//! Classes `MSFT_DFSNamespace*` as the module DFSN shows them. Names of properties are compared without case and
//! punctuation. A state is a word; `ConvertTo-Json` writes its number unless the command selects its text.

use serde_json::Value as Json;

use super::super::form::Form;
use super::lines::Lines;
use super::{Context, Damage, Damaged, Reading};

mod building;

pub(super) use building::{Objects, Properties, Subject};

/// Depth of arrays and objects around an object in JSON.
const DEPTH_MAX: u32 = 5;
/// Lines of one object in a list.
const LIST_LINES_MAX: usize = 200;

/// A property's name without case and punctuation.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_path_name(name: &str) -> bool {
    matches!(plain(name).as_str(), "path" | "namespacepath")
}

/// Adds an object; whether its properties are those of a namespace.
fn add(properties: Properties, line: usize, context: &mut Context<'_>) -> Damaged<bool> {
    let place = context.place(line);
    let unknown =
        context.objects.add(Form::Objects, &properties, place).map_err(|m| Damage::new(line, m))?;
    let Some(unknown) = unknown else { return Ok(false) };
    for text in unknown {
        context.note(line, &text);
    }
    Ok(true)
}

/// A line `Name : value`.
fn list_pair(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty();
    is_name.then(|| (name, value.trim()))
}

/// Whether an object in lines begins: one of its lines has the path.
pub(super) fn list_starts(lines: &Lines<'_>) -> bool {
    for ahead in 0..LIST_LINES_MAX {
        let Some(line) = lines.ahead(ahead).filter(|line| !line.trim().is_empty()) else { break };
        match list_pair(line) {
            Some((name, value)) if is_path_name(name) && value.starts_with("\\\\") => return true,
            Some(_) => {}
            // A value that is continued in an indented line.
            None if ahead > 0 && line.starts_with(' ') => {}
            None => break,
        }
    }
    false
}

pub(super) fn read_list(lines: &mut Lines<'_>, context: &mut Context<'_>) -> Damaged<()> {
    let start = lines.number();
    let mut properties = Properties::default();
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty()) {
        match list_pair(line) {
            Some((name, _)) if properties.get(&plain(name)).is_some() => break,
            Some((name, value)) => properties.push(name, value.to_owned()),
            None if line.starts_with(' ') => properties.extend_last(line.trim_start()),
            None => break,
        }
        lines.skip(1);
    }
    if lines.number() == start {
        lines.skip(1);
    }
    add(properties, start, context)?;
    Ok(())
}

/// Whether a table begins: names, and a line of dashes below them.
pub(super) fn table_starts(lines: &Lines<'_>) -> bool {
    let names = lines.peek().unwrap_or_default();
    let rule = lines.ahead(1).unwrap_or_default().trim();
    !rule.is_empty()
        && rule.bytes().all(|byte| byte == b'-' || byte == b' ')
        && names.split_whitespace().any(is_path_name)
}

pub(super) fn read_table(lines: &mut Lines<'_>, context: &mut Context<'_>) -> Damaged<()> {
    let heading: Vec<char> = lines.take().unwrap_or_default().chars().collect();
    let rule: Vec<char> = lines.take().unwrap_or_default().chars().collect();
    let starts: Vec<usize> = (0..rule.len())
        .filter(|at| rule[*at] == '-' && (*at == 0 || rule[*at - 1] != '-'))
        .collect();
    let cells = |line: &[char]| -> Vec<String> {
        let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
        let cell = |(start, end): (&usize, usize)| {
            let cell: String =
                line.get(*start..end.min(line.len())).unwrap_or_default().iter().collect();
            cell.trim().to_owned()
        };
        starts.iter().zip(ends).map(cell).collect()
    };
    let names = cells(&heading);
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty()) {
        let number = lines.number();
        lines.skip(1);
        let row: Vec<char> = line.chars().collect();
        let mut properties = Properties::default();
        for (name, value) in names.iter().zip(cells(&row)) {
            if value.ends_with("...") || value.ends_with('…') {
                let message = format!(
                    "the column {name} is cut ({value}): print a list (Format-List) or JSON (ConvertTo-Json)"
                );
                return Err(Damage::new(number, message));
            }
            properties.push(name, value);
        }
        if !add(properties, number, context)? {
            context.note(number, line);
        }
    }
    Ok(())
}

/// Whether the first line of a text names columns of such objects.
pub(super) fn is_csv_heading(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.starts_with("#TYPE"));
    lines.next().is_some_and(|line| {
        let cells: Vec<&str> = line.split([',', ';', '\t']).collect();
        cells.len() > 1 && cells.iter().any(|cell| is_path_name(cell))
    })
}

pub(super) fn read_csv(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let start = text.trim_start();
    let (skipped, body) = match start.strip_prefix("#TYPE") {
        Some(rest) => (1, rest.split_once('\n').map_or("", |(_, body)| body)),
        None => (0, start),
    };
    let skipped =
        skipped + text.get(..text.len() - start.len()).unwrap_or_default().matches('\n').count();
    let heading = body.lines().next().unwrap_or_default();
    let count = |c: char| heading.matches(c).count();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|byte| count(char::from(*byte)));
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter.unwrap_or(b',')).from_reader(body.as_bytes());
    let damaged = |error: csv::Error| {
        let line = error.position().map_or(1, |position| position.line());
        let line = usize::try_from(line).unwrap_or(usize::MAX).saturating_add(skipped);
        Damage::new(line, format!("damaged CSV: {error}"))
    };
    let names = reader.headers().map_err(damaged)?.clone();
    for record in reader.records() {
        let record = record.map_err(damaged)?;
        let line = record.position().map_or(1, csv::Position::line);
        let line = usize::try_from(line).unwrap_or(usize::MAX).saturating_add(skipped);
        let mut properties = Properties::default();
        for (name, value) in names.iter().zip(&record) {
            properties.push(name, value.to_owned());
        }
        if !add(properties, line, context)? {
            context.note(line, &record.iter().collect::<Vec<_>>().join(","));
        }
    }
    Ok(())
}

pub(super) fn read_json(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let values =
        serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}')).into_iter::<Json>();
    let mut found = 0;
    for value in values {
        let value = value.map_err(|error| {
            Damage::new(error.line(), format!("damaged JSON at column {}: {error}", error.column()))
        })?;
        visit(value, DEPTH_MAX, &mut found, context)?;
    }
    if found == 0 {
        return Err(Damage::new(
            1,
            "JSON without an object that has Path or NamespacePath (Get-DfsnRoot and its companions, ConvertTo-Json)",
        ));
    }
    Ok(())
}

/// Adds the objects in a value; `serde_json` limits the depth when it parses.
fn visit(value: Json, depth: u32, found: &mut usize, context: &mut Context<'_>) -> Damaged<()> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    match value {
        Json::Array(values) => {
            for value in values {
                visit(value, depth, found, context)?;
            }
        }
        Json::Object(object) if object.keys().any(|name| is_path_name(name)) => {
            let mut properties = Properties::default();
            for (name, value) in object {
                if let Some(text) = json_text(value) {
                    properties.push(&name, text);
                }
            }
            if add(properties, 0, context)? {
                *found += 1;
            }
        }
        Json::Object(object) => {
            for value in object.into_iter().map(|(_, value)| value) {
                visit(value, depth, found, context)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn json_text(value: Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(is_set) => Some(is_set.to_string()),
        Json::Array(values) => {
            Some(values.into_iter().filter_map(json_text).collect::<Vec<_>>().join(", "))
        }
        Json::Null | Json::Object(_) => None,
    }
}

impl Objects {
    /// Adds the namespaces to the reading.
    pub(super) fn finish(self, reading: &mut Reading) {
        reading.namespaces.extend(self.into_namespaces());
    }
}
