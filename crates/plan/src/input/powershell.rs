//! Objects as PowerShell prints them: lists (`Name : value`), tables, CSV (`Export-Csv`), JSON (`ConvertTo-Json`) and
//! CliXML (`Export-Clixml`).
//!
//! Owns the notations; which object it is follows from its properties, and a planner says. Properties are found without
//! case and punctuation, so that `Server Name` of a table is `ServerName` of a list.

mod clixml;
mod csv;
mod json;
mod list;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value as Json;

pub(crate) use self::clixml::{clixml, is_clixml};
pub(crate) use self::csv::{is_csv_heading, read_csv};
pub(crate) use self::json::{printed, read_json, walk};
pub(crate) use self::list::{list_line, read_list};
pub(crate) use self::table::{Table, is_rule};

/// Properties of one object, and columns of a table.
const PROPERTIES_MAX: usize = 1024;

/// An object with its properties in the order of the input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) properties: Vec<Property>,
}

/// A property of an object. Values that are printed as text are strings.
#[derive(Clone, Debug)]
pub(crate) struct Property {
    /// As written.
    pub(crate) name: String,
    /// Its name as [`plain_name`] has it.
    pub(crate) plain: String,
    pub(crate) value: Json,
    /// Number of its line, the first is 1; 0 in JSON and CliXML.
    pub(crate) line: usize,
}

impl Object {
    pub(crate) fn push(&mut self, name: &str, value: impl Into<Json>, line: usize) {
        let plain = plain_name(name);
        self.properties.push(Property { name: name.to_owned(), plain, value: value.into(), line });
    }

    /// The object of a JSON object.
    pub(crate) fn from_json(value: &Json) -> Option<Object> {
        let mut object = Object::default();
        for (name, value) in value.as_object()?.iter().take(PROPERTIES_MAX) {
            object.push(name, value.clone(), 0);
        }
        Some(object)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.properties.iter().find(|property| property.plain == name).map(|one| &one.value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A string as it is written.
    pub(crate) fn string(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The first of these properties that has a text.
    pub(crate) fn text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| text(self.get(name)?))
    }

    pub(crate) fn number(&self, names: &[&str]) -> Option<u32> {
        self.number64(names)?.try_into().ok()
    }

    pub(crate) fn number64(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| {
            let value = self.get(name)?;
            value.as_u64().or_else(|| text(value)?.parse().ok())
        })
    }

    pub(crate) fn flag(&self, names: &[&str]) -> Option<bool> {
        names.iter().find_map(|name| {
            let value = self.get(name)?;
            value.as_bool().or_else(|| match text(value)?.to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            })
        })
    }

    /// The objects in a property. PowerShell writes an array of one member as that member.
    pub(crate) fn members(&self, name: &str, most: usize) -> Vec<Object> {
        match self.get(name) {
            Some(Json::Array(members)) => {
                members.iter().take(most).filter_map(Object::from_json).collect()
            }
            Some(json) => Object::from_json(json).into_iter().collect(),
            None => Vec::new(),
        }
    }
}

/// A string or number as text, if there is any.
pub(crate) fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A text without case and punctuation.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// `BaseProcessor: [Group:Number]` and `Base Processor` are `baseprocessor`.
fn plain_name(name: &str) -> String {
    plain(name.split(':').next().unwrap_or_default())
}

/// Whether PowerShell cut a value at the width of a table.
pub(crate) fn is_cut(value: &str) -> bool {
    value.ends_with("...") || value.ends_with('…')
}
