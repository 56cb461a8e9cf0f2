//! Objects as PowerShell prints them: lists (`Key : value`), tables, and JSON of `ConvertTo-Json`.
//!
//! Owns the three notations; which object it is follows from its properties, and one file for each kind reads them.
//! Properties are compared without case and punctuation, so that `Server Name` of a table is `ServerName` of a list.

use serde_json::Value as Json;

use super::lines::Lines;
use super::{
    CPUS_MAX, Piece, ReadError, adapter, adapter_hardware, adapter_rss, ends, multichannel,
    network_interface, processors, server_process,
};

/// Properties of one object, and columns of a table.
const PROPERTIES_MAX: usize = 1024;
/// Lines of a table's heading.
const HEADING_LINES_MAX: usize = 4;
/// Failures of the Windows script.
const FAILURES_MAX: usize = 100;
/// Depth of arrays and objects around an object that is read.
const DEPTH_MAX: u32 = 4;

/// An object: its properties, with names in lower case and without punctuation.
#[derive(Debug, Default)]
pub(super) struct Object {
    properties: Vec<(String, Property)>,
}

/// A property's value.
#[derive(Debug)]
pub(super) enum Property {
    Text(String),
    Json(Json),
}

impl Object {
    pub(super) fn get(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The first of these properties that has a text.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name)?.text())
    }

    pub(super) fn number(&self, names: &[&str]) -> Option<u32> {
        self.number64(names)?.try_into().ok()
    }

    pub(super) fn number64(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| match self.get(name)? {
            Property::Json(Json::Number(number)) => number.as_u64(),
            other => other.text()?.parse().ok(),
        })
    }

    pub(super) fn flag(&self, names: &[&str]) -> Option<bool> {
        names.iter().find_map(|name| match self.get(name)? {
            Property::Json(Json::Bool(flag)) => Some(*flag),
            other => match other.text()?.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
        })
    }

    /// A speed: a number of bits per second, or `32 Gbps`.
    pub(super) fn bits_per_second(&self, names: &[&str]) -> Option<u64> {
        self.number64(names).or_else(|| speed(&self.text(names)?))
    }

    /// A pair `group:number`.
    pub(super) fn processor(&self, names: &[&str]) -> Option<(u32, u32)> {
        processor(self.text(names)?.split_whitespace().next()?)
    }
}

impl Property {
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => {
                Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
            }
            Self::Json(Json::String(text)) => {
                Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
            }
            Self::Json(Json::Number(number)) => Some(number.to_string()),
            Self::Json(_) => None,
        }
    }

    /// The members of an array of objects.
    pub(super) fn members(&self) -> Vec<Object> {
        match self {
            Self::Json(Json::Array(members)) => {
                members.iter().take(CPUS_MAX * 4).filter_map(object).collect()
            }
            // PowerShell writes an array of one member as that member.
            Self::Json(json) => object(json).into_iter().collect(),
            Self::Text(_) => Vec::new(),
        }
    }
}

/// `0:34`
pub(super) fn processor(text: &str) -> Option<(u32, u32)> {
    let (group, number) = text.split_once(':')?;
    Some((group.parse().ok()?, number.parse().ok()?))
}

fn speed(text: &str) -> Option<u64> {
    let text = text.trim();
    let split =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',')?;
    let (number, unit) = text.split_at_checked(split)?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "bps" => 1,
        "kbps" => 1_000,
        "mbps" => 1_000_000,
        "gbps" => 1_000_000_000,
        "tbps" => 1_000_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once(['.', ',']).unwrap_or((number, ""));
    let mut bits = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let mut digit_value = factor;
    for digit in part.chars().take(12) {
        digit_value /= 10;
        bits = bits.checked_add(u64::from(digit.to_digit(10)?).checked_mul(digit_value)?)?;
    }
    Some(bits)
}

/// `BaseProcessor: [Group:Number]` and `Base Processor` are `baseprocessor`.
fn property_name(text: &str) -> String {
    let text = text.split(':').next().unwrap_or_default();
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// The piece that an object is; `None` if it is not one that a plan needs.
fn piece(object: &Object) -> Option<Result<Piece, String>> {
    Some(if let Some(rss) = adapter_rss::read(object) {
        rss.map(Piece::AdapterRss)
    } else if let Some(hardware) = adapter_hardware::read(object) {
        Ok(Piece::AdapterHardware(hardware))
    } else if let Some(connection) = multichannel::read(object) {
        Ok(Piece::MultichannelConnection(connection))
    } else if let Some(interface) = network_interface::read_server(object) {
        Ok(Piece::ServerInterface(interface))
    } else if let Some(interface) = network_interface::read_client(object) {
        Ok(Piece::ClientInterface(interface))
    } else if let Some(property) = adapter::read_property(object) {
        Ok(Piece::AdvancedProperty(property))
    } else if let Some(adapter) = adapter::read(object) {
        Ok(Piece::Adapter(adapter))
    } else if let Some(process) = server_process::read(object) {
        Ok(Piece::ServerProcess(process))
    } else if let Some(processors) = processors::read(object) {
        processors.map(Piece::Processors)
    } else {
        return None;
    })
}

const FIRST_PROPERTIES: [&str; 10] = [
    "name",
    "friendlyname",
    "servername",
    "scopename",
    "interfacealias",
    "ifalias",
    "interfacedescription",
    "caption",
    "interfaceindex",
    "smbinstance",
];

/// `Name : value`; the whole list may be indented, as in a mail.
fn list_line(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start();
    let (name, value) = line
        .split_once(" : ")
        .or_else(|| line.trim_end().strip_suffix(" :").map(|name| (name, "")))?;
    let is_name =
        name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name.trim().len() < 100;
    is_name.then(|| (property_name(name), value.trim()))
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

pub(super) fn list_starts(lines: &Lines<'_>) -> bool {
    let is_list_line = |ahead| lines.ahead(ahead).is_some_and(|line| list_line(line).is_some());
    let first = lines.peek().and_then(list_line);
    first.is_some_and(|(name, _)| FIRST_PROPERTIES.contains(&name.as_str()) || is_list_line(1))
}

/// Reads one object of a list: until an empty line.
pub(super) fn list(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), ReadError> {
    let first = lines.number();
    let indented = lines.peek().map_or(0, indentation);
    let mut read = Object::default();
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty()) {
        let is_deeper = indentation(line) > indented;
        if let Some((name, value)) = list_line(line).filter(|_| !is_deeper) {
            // The first property again: the next object, without an empty line between.
            if read.properties.first().is_some_and(|(first, _)| *first == name) {
                break;
            }
            if read.properties.len() >= PROPERTIES_MAX {
                return Err(ReadError::new(
                    lines.number(),
                    format!("an object of more than {PROPERTIES_MAX} properties"),
                ));
            }
            read.properties.push((name, Property::Text(value.to_owned())));
        } else if is_deeper {
            if let Some((_, Property::Text(text))) = read.properties.last_mut() {
                text.push(' ');
                text.push_str(line.trim());
            }
        } else {
            break;
        }
        lines.skip(1);
    }
    match piece(&read) {
        Some(Ok(piece)) => pieces.push(piece),
        Some(Err(message)) => return Err(ReadError::new(first, message)),
        None => {
            lines.note(first, "an object that is not one of a network adapter or an SMB connection")
        }
    }
    Ok(())
}

/// The line of dashes under the heading of a table, in lines from here.
fn dashes(lines: &Lines<'_>) -> Option<usize> {
    (1..=HEADING_LINES_MAX).find(|ahead| {
        let line = lines.ahead(*ahead).unwrap_or_default();
        line.contains("--") && line.chars().all(|letter| letter == '-' || letter == ' ')
    })
}

pub(super) fn table_starts(lines: &Lines<'_>) -> bool {
    lines.peek().is_some_and(|line| line.starts_with(|letter: char| letter.is_ascii_alphabetic()))
        && dashes(lines).is_some_and(|ahead| {
            // Nothing empty in between: the heading is one block.
            (1..ahead)
                .all(|between| lines.ahead(between).is_some_and(|line| !line.trim().is_empty()))
        })
}

/// Reads a table: columns begin where their dashes begin.
pub(super) fn table(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), ReadError> {
    let heading_lines = dashes(lines).unwrap_or(1);
    let rule = lines.ahead(heading_lines).unwrap_or_default();
    let starts = column_starts(rule);
    let mut names = vec![String::new(); starts.len()];
    for ahead in 0..heading_lines {
        for (name, part) in
            names.iter_mut().zip(cells(lines.ahead(ahead).unwrap_or_default(), &starts))
        {
            name.push_str(&part);
        }
    }
    let names: Vec<String> = names.iter().map(|name| property_name(name)).collect();
    lines.skip(heading_lines + 1);
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty() && !ends(lines)) {
        let cells = cells(line, &starts).into_iter().map(Property::Text);
        let row = Object { properties: names.iter().cloned().zip(cells).collect() };
        match piece(&row) {
            Some(Ok(piece)) => {
                pieces.push(piece);
                lines.skip(1);
            }
            Some(Err(message)) => return Err(ReadError::new(lines.number(), message)),
            None => lines.pass_unknown(),
        }
    }
    Ok(())
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

/// Reads JSON: an object or an array of objects, and below a heading of any name (as the Windows script writes them).
pub(super) fn json(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) -> Result<(), ReadError> {
    let first = lines.number();
    let text = lines.rest();
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            return Err(ReadError::new(
                first + error.line().saturating_sub(1),
                format!("damaged JSON: {error}"),
            ));
        }
        None => return Ok(()),
    };
    let used = text.get(..values.byte_offset()).unwrap_or_default().lines().count();
    lines.skip(used.max(1));
    let before = pieces.len();
    visit(&value, DEPTH_MAX, pieces).map_err(|message| ReadError::new(first, message))?;
    if pieces.len() == before {
        lines.note(
            first,
            "JSON without an object of a network adapter, a processor or an SMB connection",
        );
    }
    Ok(())
}

/// JSON is at most [`DEPTH_MAX`] deep where it is searched; `serde_json` has its own limit when it parses.
fn visit(value: &Json, depth: u32, pieces: &mut Vec<Piece>) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    let below: Box<dyn Iterator<Item = &Json>> = match value {
        Json::Array(values) => Box::new(values.iter()),
        Json::Object(properties) => {
            if let Some(piece) = object(value).and_then(|object| piece(&object)) {
                pieces.push(piece?);
                return Ok(());
            }
            // The Windows script writes what it could not read.
            if let Some(Json::Array(failures)) = properties.get("Failures") {
                let messages = failures.iter().take(FAILURES_MAX).filter_map(Json::as_str);
                pieces.extend(
                    messages.map(|message| Piece::Failure(message.chars().take(500).collect())),
                );
            }
            Box::new(properties.values())
        }
        _ => return Ok(()),
    };
    for value in below {
        visit(value, depth, pieces)?;
    }
    Ok(())
}

fn object(value: &Json) -> Option<Object> {
    let properties = value.as_object()?.iter().take(PROPERTIES_MAX);
    Some(Object {
        properties: properties
            .map(|(name, value)| (property_name(name), Property::Json(value.clone())))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_in_each_unit() {
        assert_eq!(speed("32 Gbps"), Some(32_000_000_000));
        assert_eq!(speed("3  Gbps"), Some(3_000_000_000));
        assert_eq!(speed("0  bps"), Some(0));
        assert_eq!(speed("2.5 Gbps"), Some(2_500_000_000));
        assert_eq!(speed("fast"), None);
        assert_eq!(speed("99999999999999999999 Gbps"), None);
    }
}
