//! Objects of `Get-DfsnRoot`, `Get-DfsnRootTarget`, `Get-DfsnFolder` and `Get-DfsnFolderTarget` in each notation of
//! PowerShell. Several of them, of several files, make one namespace.
//!
//! Classes `MSFT_DFSNamespace*` as the module DFSN shows them. A state is a word; `ConvertTo-Json` writes its number unless
//! the command selects its text.

use serde_json::Value as Json;

use super::super::form::Form;
use super::{Context, Damage, Damaged, Reading};
use crate::input::lines::Lines;
use crate::input::powershell::{
    self, Object, Table, clixml, is_cut, list_line, plain, printed, walk,
};

mod building;

pub(super) use building::{Objects, Subject};

/// Lines of one object in a list.
const LIST_LINES_MAX: usize = 200;

/// Whether a property, named without case and punctuation, is the path of the object.
pub(super) fn is_path_name(name: &str) -> bool {
    matches!(name, "path" | "namespacepath")
}

/// Adds an object; whether its properties are those of a namespace.
fn add(object: &Object, line: usize, context: &mut Context<'_>) -> Damaged<bool> {
    let place = context.place(line);
    let unknown =
        context.objects.add(Form::Objects, object, place).map_err(|m| Damage::new(line, m))?;
    let Some(unknown) = unknown else { return Ok(false) };
    for text in unknown {
        context.note(line, &text);
    }
    Ok(true)
}

/// Whether an object in lines begins: one of its lines has the path.
pub(super) fn list_starts(lines: &Lines<'_>) -> bool {
    for ahead in 0..LIST_LINES_MAX {
        let Some(line) = lines.ahead(ahead).filter(|line| !line.trim().is_empty()) else { break };
        match list_line(line) {
            Some((name, value)) if is_path_name(&plain(name)) && value.starts_with("\\\\") => {
                return true;
            }
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
    let object = powershell::read_list(lines, "")?;
    add(&object, start, context)?;
    Ok(())
}

/// The table that begins here, if one of its columns is the path; and the lines of its heading.
pub(super) fn table(lines: &Lines<'_>) -> Option<(Table, usize)> {
    let first = lines.peek().unwrap_or_default();
    let has_path = first.split_whitespace().any(|word| is_path_name(&plain(word)));
    has_path.then(|| Table::find(lines)).flatten()
}

pub(super) fn read_table(
    lines: &mut Lines<'_>,
    (table, heading_lines): &(Table, usize),
    context: &mut Context<'_>,
) -> Damaged<()> {
    lines.skip(*heading_lines);
    while let Some(line) = lines.peek().filter(|line| !line.trim().is_empty()) {
        let number = lines.number();
        lines.skip(1);
        let row = table.row(line, number);
        for property in &row.properties {
            let value = property.value.as_str().unwrap_or_default();
            if is_cut(value) {
                let message = format!(
                    "the column {} is cut ({value}): print a list (Format-List) or JSON (ConvertTo-Json)",
                    property.name
                );
                return Err(Damage::new(number, message));
            }
        }
        if !add(&row, number, context)? {
            context.note(number, line);
        }
    }
    Ok(())
}

pub(super) fn read_csv(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    powershell::read_csv(text, &mut |line, row| {
        if !add(&row, line, context)? {
            let values = row.properties.iter().filter_map(|property| property.value.as_str());
            context.note(line, &values.collect::<Vec<_>>().join(","));
        }
        Ok(())
    })
}

pub(super) fn read_json(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    let mut lines = Lines::new(text);
    let mut found = 0;
    while let Some(line) = lines.peek() {
        if line.trim().is_empty() {
            lines.skip(1);
            continue;
        }
        for value in powershell::read_json(&mut lines)? {
            found += members(&value, context)?;
        }
    }
    something(found)
}

pub(super) fn read_clixml(text: &str, context: &mut Context<'_>) -> Damaged<()> {
    something(members(&clixml(text)?, context)?)
}

fn something(found: usize) -> Damaged<()> {
    if found > 0 {
        return Ok(());
    }
    Err(Damage::new(
        1,
        "JSON or CliXML without an object that has Path or NamespacePath (Get-DfsnRoot and its companions)",
    ))
}

/// Adds the objects in a value, and counts them.
fn members(value: &Json, context: &mut Context<'_>) -> Damaged<usize> {
    let mut found = 0;
    walk(value, &mut |_, value| {
        let has_path = |value: &Json| {
            value.as_object()?.keys().find(|name| is_path_name(&plain(name))).map(drop)
        };
        let object = has_path(value).and_then(|()| Object::from_json(value));
        let Some(mut object) = object else { return Ok(false) };
        object.properties.retain_mut(|property| {
            let text = printed(&property.value, &|_| None);
            let is_kept = !property.value.is_null() && text.is_some();
            property.value = Json::String(text.unwrap_or_default());
            is_kept
        });
        found += usize::from(add(&object, 0, context)?);
        Ok(true)
    })?;
    Ok(found)
}

impl Objects {
    /// Adds the namespaces to the reading.
    pub(super) fn finish(self, reading: &mut Reading) {
        reading.namespaces.extend(self.into_namespaces());
    }
}
