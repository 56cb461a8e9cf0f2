//! registry.pol (MS-GPREG 2.2.1): what `read` reads, written back.

use super::super::read::encode_registry;
use super::super::setting::{Place, Scope, Setting, Value};
use super::Unwritten;

const HEADER: [u8; 8] = *b"PReg\x01\0\0\0";
/// Characters of a key or a name.
const NAME_UNITS_MAX: usize = 16_383;

/// The file for the computer's or the user's part, and what it cannot hold.
pub fn encode(settings: &[Setting], scope: Scope) -> (Vec<u8>, Vec<Unwritten>) {
    let mut bytes = HEADER.to_vec();
    let mut unwritten = Vec::new();
    for setting in settings {
        match record(setting, scope) {
            Ok(record) => bytes.extend(record),
            Err(why) => unwritten.push(Unwritten::new(setting, why)),
        }
    }
    (bytes, unwritten)
}

fn record(setting: &Setting, scope: Scope) -> Result<Vec<u8>, &'static str> {
    let Place::Registry { scope: of, key, name } = &setting.place else {
        return Err("registry.pol has values of the registry only");
    };
    if *of != scope {
        return Err("belongs to the other half of the policy: it has a registry.pol of its own");
    }
    let is_word = |text: &str| {
        !text.contains('\0')
            && !text.starts_with(';')
            && text.encode_utf16().count() <= NAME_UNITS_MAX
    };
    if !is_word(key) || !is_word(name) || key.starts_with('\\') || key.ends_with('\\') {
        return Err("a key or a name that registry.pol cannot hold");
    }
    let space = || Value::Text(" ".to_owned());
    let instruction = name.to_ascii_lowercase();
    let (name, value) = match &setting.value {
        Value::Delete => (format!("**del.{name}"), space()),
        Value::DeleteValues => ("**delvals.".to_owned(), space()),
        Value::CreateKey => (String::new(), Value::Other { kind: 0, bytes: Vec::new() }),
        Value::DeleteNamed(names) => {
            if instruction != "**deletekeys" && instruction != "**deletevalues" {
                return Err("a list of what to remove, without `**DeleteKeys` or `**DeleteValues`");
            }
            if names.iter().any(|name| name.is_empty() || name.contains([';', '\0'])) {
                return Err("a name with `;` in a list of names");
            }
            (name.clone(), Value::Text(names.join(";")))
        }
        Value::None => return Err("no value is given"),
        _ if name.starts_with("**")
            && !instruction.starts_with("**soft.")
            && instruction != "**securekey" =>
        {
            return Err("a name that would be an instruction");
        }
        value => (name.clone(), value.clone()),
    };
    let (kind, data) = encode_registry(&value).ok_or("a text that the registry cannot hold")?;
    let size = u32::try_from(data.len()).map_err(|_| "a value of more than 4 GiB")?;
    let mut record = Vec::new();
    let unit = |record: &mut Vec<u8>, letter: u8| record.extend([letter, 0]);
    let text = |record: &mut Vec<u8>, text: &str| {
        record.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    };
    unit(&mut record, b'[');
    text(&mut record, key);
    unit(&mut record, b';');
    text(&mut record, &name);
    unit(&mut record, b';');
    record.extend(kind.to_le_bytes());
    unit(&mut record, b';');
    record.extend(size.to_le_bytes());
    unit(&mut record, b';');
    record.extend(data);
    unit(&mut record, b']');
    Ok(record)
}
