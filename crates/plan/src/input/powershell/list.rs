//! Lists of `Format-List`: one property a line, an empty line between objects.

use serde_json::Value as Json;

use super::super::Damage;
use super::super::lines::Lines;
use super::{Object, PROPERTIES_MAX};

/// Longest name of a property, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// `Name : value`; the whole list may be indented, as in a mail.
pub(crate) fn list_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let (name, value) = line
        .split_once(" : ")
        .or_else(|| line.trim_end().strip_suffix(" :").map(|name| (name, "")))?;
    let name = name.trim_end();
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.len() < NAME_BYTES_MAX;
    is_name.then(|| (name, value.trim()))
}

/// Reads one object: until an empty line, or until the first property comes again. PowerShell wraps long values at the
/// width of its window: `glue` is put between their parts.
pub(crate) fn read_list(lines: &mut Lines<'_>, glue: &str) -> Result<Object, Damage> {
    let indented = lines.peek().map_or(0, indentation);
    let mut read = Object::default();
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty()) {
        let is_deeper = indentation(line) > indented;
        match list_line(line).filter(|_| !is_deeper) {
            Some((name, value)) => {
                let first = read.properties.first();
                if first.is_some_and(|first| first.name.eq_ignore_ascii_case(name)) {
                    break;
                }
                if read.properties.len() >= PROPERTIES_MAX {
                    let message = format!("an object of more than {PROPERTIES_MAX} properties");
                    return Err(Damage::new(lines.number(), message));
                }
                read.push(name, value, lines.number());
            }
            None if is_deeper => {
                if let Some(Json::String(text)) = read.properties.last_mut().map(|p| &mut p.value) {
                    text.push_str(if text.ends_with(',') { " " } else { glue });
                    text.push_str(line.trim());
                }
            }
            None => break,
        }
        lines.skip(1);
    }
    Ok(read)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
