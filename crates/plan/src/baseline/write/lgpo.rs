//! LGPO text: blocks of four lines, as `LGPO.exe /parse` prints them.

use super::super::setting::{Place, Scope, Setting, Value};
use super::Unwritten;

/// The text, and what it cannot express.
pub fn encode(settings: &[Setting]) -> (String, Vec<Unwritten>) {
    let mut text = String::new();
    let mut unwritten = Vec::new();
    for setting in settings {
        match block(setting) {
            Ok(block) => text.push_str(&block),
            Err(why) => unwritten.push(Unwritten::new(setting, why)),
        }
    }
    (text, unwritten)
}

fn block(setting: &Setting) -> Result<String, &'static str> {
    let Place::Registry { scope, key, name } = &setting.place else {
        return Err("LGPO text has values of the registry only");
    };
    let action = action(&setting.value)?;
    let is_of_key = matches!(setting.value, Value::DeleteValues | Value::CreateKey);
    let name = if is_of_key { "*" } else { name };
    if key.starts_with('\\')
        || key.ends_with('\\')
        || [key, name].into_iter().any(|text| !is_line(text))
    {
        return Err(
            "a key or a name that LGPO text cannot hold (it is empty, a comment, or has space around it)",
        );
    }
    if name.starts_with("**") {
        return Err("LGPO text has no form for this instruction");
    }
    let scope = match scope {
        Scope::Computer => "Computer",
        Scope::User => "User",
    };
    Ok(format!("{scope}\r\n{key}\r\n{name}\r\n{action}\r\n\r\n"))
}

fn is_line(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.starts_with([';', '#']) && is_one_line(text)
}

fn is_one_line(text: &str) -> bool {
    !text.contains(['\r', '\n', '\0'])
}

fn action(value: &Value) -> Result<String, &'static str> {
    const LINES: &str = "LGPO text cannot hold a text of several lines";
    Ok(match value {
        Value::Dword(number) => format!("DWORD:{number}"),
        Value::Qword(number) => format!("QWORD:{number}"),
        Value::Text(text) if is_one_line(text) => format!("SZ:{text}"),
        Value::ExpandText(text) if is_one_line(text) => format!("EXSZ:{text}"),
        Value::MultiText(texts) => {
            let is_fit = |text: &String| !text.is_empty() && is_one_line(text);
            let joined = texts.join("\\0");
            // Two texts may make a separator where they meet (`a\` and `0b`).
            let again: Vec<&str> = joined.split("\\0").filter(|text| !text.is_empty()).collect();
            if !texts.iter().all(is_fit) || again != *texts {
                return Err("a list with an empty text, several lines or `\\0` in a text");
            }
            format!("MULTISZ:{joined}")
        }
        Value::Binary(bytes) => {
            format!("BINARY:{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Value::Delete => "DELETE".to_owned(),
        Value::DeleteValues => "DELETEALLVALUES".to_owned(),
        Value::CreateKey => "CREATEKEY".to_owned(),
        Value::Text(_) | Value::ExpandText(_) => return Err(LINES),
        Value::Other { .. } => return Err("LGPO text has no form for this type"),
        Value::DeleteNamed(_) => return Err("LGPO text cannot remove keys or lists of values"),
        Value::None => return Err("no value is given"),
    })
}
