//! CliXML of `Export-Clixml`, as JSON of `ConvertTo-Json` has it.
//!
//! \[MS-PSRP\] 2.2.5: elements of primitive values, `Obj` with `Props` and `MS`, lists, dictionaries. Words of enumerations
//! (`ToString`) are taken instead of their numbers.

use serde_json::{Map, Value as Json};

use super::super::Damage;
use super::super::xml::{self, Node};

/// Whether a text begins with the root of CliXML, in its first bytes.
pub(crate) fn is_clixml(text: &str) -> bool {
    text.trim_start().starts_with('<') && xml::root_name(text).as_deref() == Some("Objs")
}

/// The objects of a text, as an array.
pub(crate) fn clixml(text: &str) -> Result<Json, Damage> {
    let document = xml::parse(text);
    match document.damage {
        Some((line, message)) => {
            Err(Damage::new(usize::try_from(line).unwrap_or(usize::MAX), message))
        }
        None => Ok(Json::Array(document.root.children.iter().map(value).collect())),
    }
}

fn value(node: &Node) -> Json {
    match node.name.as_str() {
        "Obj" => object(node),
        "B" => Json::Bool(node.text.trim() == "true"),
        "By" | "SB" | "I16" | "U16" | "I32" | "U32" | "I64" | "U64" => {
            node.text.trim().parse::<serde_json::Number>().map_or(Json::Null, Json::Number)
        }
        "Nil" | "Ref" => Json::Null,
        _ => Json::String(unescape(&node.text)),
    }
}

fn object(node: &Node) -> Json {
    let list = ["LST", "IE", "STK", "QUE"].into_iter().find_map(|name| node.child(name));
    if let Some(list) = list {
        return Json::Array(list.children.iter().map(value).collect());
    }
    let mut members = Map::new();
    let named = |node: &Node, name: &str| {
        node.children.iter().find(|child| child.attribute("N") == Some(name)).map(value)
    };
    for entry in node.child("DCT").into_iter().flat_map(|entries| &entries.children) {
        if let (Some(Json::String(key)), Some(value)) = (named(entry, "Key"), named(entry, "Value"))
        {
            members.insert(key, value);
        }
    }
    for property in ["Props", "MS"].into_iter().filter_map(|name| node.child(name)) {
        for child in &property.children {
            if let Some(name) = child.attribute("N") {
                members.insert(unescape(name), value(child));
            }
        }
    }
    match node.child("ToString") {
        Some(text) if members.is_empty() => Json::String(unescape(&text.text)),
        _ => Json::Object(members),
    }
}

/// `_x000A_` is a line end, `_x005F_` an underscore.
fn unescape(text: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("_x") {
        let unit = after.get(..4).filter(|_| after.as_bytes().get(4) == Some(&b'_'));
        let unit = unit.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        units.extend(before.encode_utf16());
        rest = match unit {
            Some(unit) => {
                units.push(unit);
                after.get(5..).unwrap_or_default()
            }
            None => {
                units.extend("_x".encode_utf16());
                after
            }
        };
    }
    units.extend(rest.encode_utf16());
    String::from_utf16_lossy(&units)
}
