//! Registry.xml of group policy preferences (MS-GPPREF 2.2.1.8): values that are set once, and may be changed later.

use super::super::setting::{Place, Value};
use super::lgpo::hex;
use super::registry_data::hive;
use super::sink::Sink;
use crate::input::xml::{self, Node};

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let document = xml::parse(text);
    sink.note("preferences: set at each refresh or once, but not held like policies");
    for node in document.root.below("Registry") {
        let Some(properties) = node.child("Properties") else {
            sink.unknown(
                node.line,
                node.attribute("name").unwrap_or_default(),
                "a preference without its value",
            );
            continue;
        };
        let is_disabled = node.attribute("disabled") == Some("1");
        match setting(properties) {
            Ok((place, value)) if !is_disabled => sink.setting(node.line, place, value),
            Ok(_) => sink.unknown(
                node.line,
                node.attribute("name").unwrap_or_default(),
                "a preference that is switched off",
            ),
            Err(why) => sink.unknown(node.line, node.attribute("name").unwrap_or_default(), why),
        }
    }
    if let Some((line, message)) = document.damage {
        sink.damage(line, message);
    }
}

fn setting(node: &Node) -> Result<(Place, Value), &'static str> {
    let attribute = |name: &str| node.attribute(name).unwrap_or_default();
    let path = format!("{}\\{}", attribute("hive"), attribute("key"));
    let (scope, key) = hive(&path).ok_or("a hive that is neither the computer's nor the user's")?;
    let name = if attribute("default") == "1" { "" } else { attribute("name") };
    let place = Place::Registry { scope, key, name: name.to_owned() };
    if attribute("action").eq_ignore_ascii_case("D") {
        return Ok((place, Value::Delete));
    }
    let text = attribute("value");
    let unfit = "the value is not one of its type";
    let value = match attribute("type") {
        "REG_DWORD" => Value::Dword(u32::from_str_radix(text.trim(), 16).map_err(|_| unfit)?),
        "REG_QWORD" => Value::Qword(u64::from_str_radix(text.trim(), 16).map_err(|_| unfit)?),
        "REG_SZ" => Value::Text(text.to_owned()),
        "REG_EXPAND_SZ" => Value::ExpandText(text.to_owned()),
        "REG_MULTI_SZ" => {
            let texts = node.below("Value").into_iter().map(|value| value.text.clone());
            Value::MultiText(texts.filter(|text| !text.is_empty()).collect())
        }
        "REG_BINARY" => {
            let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(unfit) };
            Value::Binary(pairs.iter().map(|pair| hex(pair)).collect::<Option<_>>().ok_or(unfit)?)
        }
        _ => return Err("a type that is not known"),
    };
    Ok((place, value))
}
