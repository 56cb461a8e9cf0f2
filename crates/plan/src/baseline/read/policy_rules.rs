//! Policy Analyzer's .PolicyRules.
//!
//! `<ComputerConfig>` and `<UserConfig>` are records of registry.pol, `<SecurityTemplate>` lines of a template,
//! `<AuditSubcategory>` lines of audit.csv, `<CSE-Machine>` and `<CSE-User>` extensions. Microsoft's tool writes text of
//! other languages decoded twice. `SourceFile` is the path on the computer of the one who made the file: it is not kept.

use super::super::setting::{Place, Scope, Value};
use super::audit;
use super::lgpo::hex;
use super::registry_data::instruction;
use super::security_template::{self, number};
use super::sink::Sink;
use crate::input::text::repair;
use crate::input::xml::{self, Node};

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let document = xml::parse(text);
    for node in &document.root.children {
        if !node.is_complete {
            continue;
        }
        let policy = node.word_of("PolicyName").map(repair);
        match setting(node) {
            Ok((place, value)) => sink.setting_of(policy, node.line, place, value),
            Err(why) => sink.unknown(node.line, &describe(node), why),
        }
    }
    if let Some((line, message)) = document.damage {
        sink.damage(line, message);
    }
}

/// The element without the path in `SourceFile`.
fn describe(node: &Node) -> String {
    let fields =
        node.children.iter().filter(|child| !child.name.eq_ignore_ascii_case("SourceFile"));
    let fields: Vec<String> = fields
        .take(8)
        .map(|child| format!("{}={}", child.name, repair(child.text.trim())))
        .collect();
    format!("{}: {}", node.name, fields.join(", "))
}

fn setting(node: &Node) -> Result<(Place, Value), &'static str> {
    let extension = |scope| {
        let guid = node.word_of("GUID").ok_or("an extension without a GUID")?.to_owned();
        let name = node.word_of("Name").map_or(Value::None, |name| Value::Text(repair(name)));
        Ok((Place::Extension { scope, guid }, name))
    };
    match node.name.as_str() {
        "ComputerConfig" => registry(node, Scope::Computer),
        "UserConfig" => registry(node, Scope::User),
        "SecurityTemplate" => {
            let section =
                node.attribute("Section").ok_or("a line of a template without its section")?;
            let line = node.text_of("LineItem").ok_or("a line of a template without its text")?;
            security_template::setting(section, &repair(line))
        }
        "AuditSubcategory" => {
            let subcategory = node.word_of("GUID").or_else(|| node.word_of("Name"));
            let subcategory = subcategory.ok_or("a setting of auditing without a subcategory")?;
            let value = audit::value(node.word_of("Setting").unwrap_or_default(), "");
            let place = Place::Audit { subcategory: repair(subcategory) };
            Ok((place, value.ok_or("a setting of auditing without a value")?))
        }
        "CSE-Machine" => extension(Scope::Computer),
        "CSE-User" => extension(Scope::User),
        _ => Err("an element that is not known"),
    }
}

fn registry(node: &Node, scope: Scope) -> Result<(Place, Value), &'static str> {
    let key = repair(node.text_of("Key").ok_or("a value without a key")?.trim());
    let name = repair(node.text_of("Value").unwrap_or_default());
    let kind = node.word_of("RegType").unwrap_or_default().to_ascii_uppercase();
    let data = node.text_of("RegData").unwrap_or_default();
    let unfit = "the value is not one of its type";
    let value = match kind.as_str() {
        "REG_DWORD" => Value::Dword(number(data).ok_or(unfit)?),
        "REG_QWORD" => Value::Qword(data.trim().parse().map_err(|_| unfit)?),
        "REG_SZ" => Value::Text(repair(data)),
        "REG_EXPAND_SZ" => Value::ExpandText(repair(data)),
        "REG_MULTI_SZ" => {
            let texts = data.split("\\0").flat_map(str::lines).filter(|text| !text.is_empty());
            Value::MultiText(texts.map(repair).collect())
        }
        "REG_BINARY" => {
            let digits: String = data.chars().filter(char::is_ascii_hexdigit).collect();
            let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return Err(unfit) };
            Value::Binary(pairs.iter().map(|pair| hex(pair)).collect::<Option<_>>().ok_or(unfit)?)
        }
        "REG_NONE" => Value::Other { kind: 0, bytes: data.trim().as_bytes().to_vec() },
        _ => return Err("a type that is not known"),
    };
    instruction(scope, &key, &name, value).ok_or("an instruction that is not known")
}
