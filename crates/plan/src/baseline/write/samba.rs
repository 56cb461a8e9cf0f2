//! A fragment of smb.conf: sections with their parameters.
//!
//! Parameters that run programs, load code or read more files are not written: their values come from inputs of
//! other people.

use super::super::read::samba_parameters;
use super::super::setting::{Place, Setting, Value};
use super::Unwritten;

/// Parts of names of parameters whose values are commands, modules or files with parameters.
const DANGEROUS: [&str; 16] = [
    "script",
    "command",
    "exec",
    "hook",
    "action",
    "program",
    "include",
    "config file",
    "copy",
    "module",
    "plugin",
    "helper",
    "winbind",
    "panic",
    "loadparm",
    "preload",
];

/// The fragment, and what it cannot express.
pub(super) fn encode(settings: &[Setting]) -> (String, Vec<Unwritten>) {
    let mut sections: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    let mut unwritten = Vec::new();
    for setting in settings {
        let (share, line) = match line(setting) {
            Ok(found) => found,
            Err(why) => {
                unwritten.push(Unwritten::new(setting, why));
                continue;
            }
        };
        match sections.iter_mut().find(|(name, _)| *name == share) {
            Some((_, lines)) => lines.push(line),
            None => sections.push((share, vec![line])),
        }
    }
    // Global parameters first, so that they do not fall into a share.
    sections.sort_by_key(|(share, _)| share.is_some());
    let mut text = String::new();
    for (share, lines) in sections {
        text.push_str(&format!("[{}]\n", share.unwrap_or("global")));
        for line in lines {
            text.push_str(&format!("\t{line}\n"));
        }
    }
    (text, unwritten)
}

pub(super) fn line(setting: &Setting) -> Result<(Option<&str>, String), &'static str> {
    let Place::Samba { share, parameter } = &setting.place else {
        return Err("not a parameter of smb.conf");
    };
    let share = share.as_deref();
    let is_section = |name: &str| {
        !name.trim().is_empty()
            && name.trim() == name
            && !name.chars().any(|c| c.is_control() || matches!(c, '[' | ']'))
            && !["global", "globals"].contains(&name.to_lowercase().as_str())
    };
    if share.is_some_and(|share| !is_section(share)) {
        return Err("not the name of a share");
    }
    // `module:option`.
    let parts = parameter.split_once(':');
    let is_module = parts
        .is_some_and(|(module, option)| !module.trim().is_empty() && !option.trim().is_empty());
    let is_word =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '_' | '-' | '.' | '*');
    if parameter.is_empty() || !parameter.chars().all(is_word) || parameter.trim() != parameter {
        return Err("not the name of a parameter");
    }
    let lower = parameter.to_lowercase();
    if DANGEROUS.iter().any(|part| lower.contains(part)) {
        return Err("a parameter that runs programs, loads code or reads files is not written");
    }
    let known = samba_parameters::parameters().iter().find(|known| known.name == lower);
    match known {
        None if !is_module => return Err("Samba 4.17 and 4.22 do not know this parameter"),
        Some(known) if share.is_some() && !known.is_of_share => {
            return Err("a global parameter has no effect in a share");
        }
        _ => {}
    }
    let value = match &setting.value {
        Value::Text(text) => text.clone(),
        Value::Dword(number) => number.to_string(),
        Value::Qword(number) => number.to_string(),
        Value::Delete => {
            let default = known.and_then(|known| known.default_4_22.or(known.default_4_17));
            let default = default.filter(|default| *default != "*");
            let default = default.map_or_else(String::new, |default| format!(" ({default})"));
            return Ok((
                share,
                format!("# no `{parameter}` here: Samba's default applies{default}"),
            ));
        }
        _ => return Err("smb.conf has no form for this value"),
    };
    if value.chars().any(char::is_control) || value.ends_with('\\') || value.trim() != value {
        return Err("a text that a line of smb.conf cannot hold");
    }
    if lower == "vfs objects" && value.contains('/') {
        return Err("a parameter that runs programs, loads code or reads files is not written");
    }
    Ok((share, format!("{parameter} = {value}")))
}
