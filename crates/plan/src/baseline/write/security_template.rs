//! Security templates (MS-GPSB 2.2): UTF-16 with a mark, as Windows writes them.

use super::super::setting::{Place, Scope, Setting, Value};
use super::Unwritten;

/// Sections whose lines are fields with commas.
const OF_FIELDS: [&str; 4] =
    ["service general setting", "file security", "registry keys", "ds security"];
/// Sections that the writer makes itself.
const OWN: [&str; 5] = ["registry values", "unicode", "version", "profile description", ""];

/// The file, and what it cannot express.
pub fn encode(settings: &[Setting]) -> (Vec<u8>, Vec<Unwritten>) {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    let mut unwritten = Vec::new();
    for setting in settings {
        let (section, line) = match line(setting) {
            Ok(found) => found,
            Err(why) => {
                unwritten.push(Unwritten::new(setting, why));
                continue;
            }
        };
        match sections.iter_mut().find(|(name, _)| *name == section) {
            Some((_, lines)) => lines.push(line),
            None => sections.push((section, vec![line])),
        }
    }
    let mut text = "[Unicode]\r\nUnicode=yes\r\n".to_owned();
    for (section, lines) in sections {
        text.push_str(&format!("[{section}]\r\n"));
        for line in lines {
            text.push_str(&line);
            text.push_str("\r\n");
        }
    }
    text.push_str("[Version]\r\nsignature=\"$CHICAGO$\"\r\nRevision=1\r\n");
    let bytes = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes);
    (bytes.collect(), unwritten)
}

fn is_one_line(text: &str) -> bool {
    !text.contains(['\r', '\n', '\0'])
}

/// The section and the line of a setting.
fn line(setting: &Setting) -> Result<(String, String), &'static str> {
    match &setting.place {
        Place::Registry { scope: Scope::User, .. } => {
            Err("a security template has no settings of the user")
        }
        Place::Registry { key, name, .. } => {
            Ok(("Registry Values".to_owned(), registry_line(key, name, &setting.value)?))
        }
        Place::Template { section, name } => {
            Ok((section.clone(), template_line(section, name, &setting.value)?))
        }
        _ => Err("not a setting of a security template"),
    }
}

fn registry_line(key: &str, name: &str, value: &Value) -> Result<String, &'static str> {
    let is_path = |text: &str| !text.is_empty() && !text.contains('"') && is_one_line(text);
    let is_key = is_path(key) && !key.starts_with('\\') && !key.ends_with('\\');
    if !is_key || !is_path(name) || name.contains('\\') || name.trim_end() != name {
        return Err("a key or a name that a security template cannot hold");
    }
    let (kind, data) = match value {
        Value::Text(text) if is_one_line(text) => (1, quoted(text)),
        Value::ExpandText(text) if is_one_line(text) => (2, quoted(text)),
        Value::Binary(bytes) => (3, bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(",")),
        Value::Dword(number) => (4, number.to_string()),
        Value::MultiText(texts) => {
            if texts.iter().any(|text| text.is_empty() || !is_one_line(text)) {
                return Err("a list with an empty text or a text of several lines");
            }
            let field =
                |text: &String| if text.contains([',', '"']) { quoted(text) } else { text.clone() };
            (7, texts.iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Delete | Value::DeleteValues | Value::DeleteNamed(_) => {
            return Err(
                "a security template cannot remove a value: remove it with LGPO text or registry.pol",
            );
        }
        _ => return Err("a security template has no form for this value"),
    };
    let path = format!("MACHINE\\{key}\\{name}");
    let path = if path.contains('=') { format!("\"{path}\"") } else { path };
    Ok(format!("{path}={kind},{data}"))
}

pub(super) fn template_line(
    section: &str,
    name: &str,
    value: &Value,
) -> Result<String, &'static str> {
    let lower = section.to_ascii_lowercase();
    let is_section =
        section.trim() == section && !section.contains(['[', ']']) && is_one_line(section);
    if !is_section || OWN.contains(&lower.as_str()) {
        return Err("not a section for settings");
    }
    let value = match value {
        Value::Text(text) if is_one_line(text) => text.clone(),
        Value::Dword(number) => number.to_string(),
        Value::None => String::new(),
        Value::Delete => {
            return Err(
                "a security template cannot remove a setting: set its former value by hand",
            );
        }
        _ => return Err("a security template has no form for this value"),
    };
    if OF_FIELDS.contains(&lower.as_str()) {
        if name.contains('"') || !is_one_line(name) || value.trim() != value {
            return Err("a name that a security template cannot hold");
        }
        return Ok(format!("\"{name}\",{value}"));
    }
    let is_name = !name.is_empty()
        && name.trim() == name
        && is_one_line(name)
        && !name.contains('=')
        && !name.starts_with([';', '[', '"']);
    if !is_name {
        return Err("a name that a security template cannot hold");
    }
    let is_number = value.parse::<i64>().is_ok();
    // Windows quotes names of accounts.
    let is_named = lower == "system access" && !is_number && !value.is_empty();
    let is_plain = value.trim() == value && !value.starts_with('"') && !is_named;
    Ok(format!("{name} = {}", if is_plain { value } else { quoted(&value) }))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
