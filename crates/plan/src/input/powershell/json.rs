//! JSON of `ConvertTo-Json`: an object, an array of objects, or objects below any names.

use serde_json::Value as Json;

use super::super::Damage;
use super::super::lines::Lines;

/// Arrays and objects around a value that is looked at. `serde_json` has its own limit when it parses.
const DEPTH_MAX: usize = 5;

/// Reads the values that begin in the next line, and passes their lines.
pub(crate) fn read_json(lines: &mut Lines<'_>) -> Result<Vec<Json>, Damage> {
    let (first, text) = (lines.number(), lines.rest());
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    let mut read = Vec::new();
    loop {
        match values.next() {
            Some(Ok(value)) => read.push(value),
            Some(Err(error)) => {
                let line = first + error.line().saturating_sub(1);
                return Err(Damage::new(line, format!("damaged JSON: {error}")));
            }
            None => {}
        }
        let rest = text.get(values.byte_offset()..).unwrap_or_default();
        let line_end = rest.split(['\n', '\r']).next().unwrap_or_default();
        if !line_end.trim_start().starts_with(['{', '[']) {
            break;
        }
    }
    lines.skip_bytes(values.byte_offset().max(1));
    Ok(read)
}

/// Takes the names above a value, and the value; says whether it is done with it.
type Take<'a, E> = &'a mut dyn FnMut(&[&str], &Json) -> Result<bool, E>;

/// Walks through arrays and objects. `take` gets each value that is not an array, with the names above it, and says
/// whether it is done with it; if not, it gets the members.
pub(crate) fn walk<E>(value: &Json, take: Take<'_, E>) -> Result<(), E> {
    walk_below(value, &mut Vec::new(), DEPTH_MAX, take)
}

fn walk_below<'a, E>(
    value: &'a Json,
    names: &mut Vec<&'a str>,
    depth: usize,
    take: Take<'_, E>,
) -> Result<(), E> {
    match value {
        _ if depth == 0 => {}
        Json::Array(members) => {
            for member in members {
                walk_below(member, names, depth - 1, take)?;
            }
        }
        Json::Object(members) => {
            if take(names, value)? {
                return Ok(());
            }
            for (name, member) in members {
                names.push(name);
                walk_below(member, names, depth - 1, take)?;
                names.pop();
            }
        }
        _ => {
            take(names, value)?;
        }
    }
    Ok(())
}

/// A value as `Format-List` prints it; none for an object. `word` has the words for numbers of an enumeration.
pub(crate) fn printed(value: &Json, word: &dyn Fn(u64) -> Option<&'static str>) -> Option<String> {
    match value {
        Json::Null => Some(String::new()),
        Json::Bool(is_set) => Some(if *is_set { "True" } else { "False" }.to_owned()),
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => {
            let word = number.as_u64().and_then(word);
            Some(word.map_or_else(|| number.to_string(), str::to_owned))
        }
        Json::Array(members) => {
            let members: Vec<_> = members.iter().filter_map(|one| printed(one, word)).collect();
            Some(members.join(", "))
        }
        Json::Object(_) => None,
    }
}
