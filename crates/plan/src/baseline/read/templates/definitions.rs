//! The XML of .admx and .adml.

use std::collections::BTreeMap;

use super::super::super::setting::Value;
use super::super::sink::Output;
use super::{Class, Element, ElementKind, Template, Texts};
use crate::input::xml::Node;

/// Elements of one policy; the largest has about 20.
const ELEMENTS_MAX: usize = 200;

pub(super) fn read(
    root: &Node,
    stem: &str,
    file: &str,
    policies: &mut Vec<Template>,
    output: &mut Output,
) {
    for node in root.below("policy") {
        if !node.is_complete {
            continue;
        }
        match policy(node, stem) {
            Some(policy) => policies.push(policy),
            None => {
                let name = node.attribute("name").unwrap_or_default();
                output.unknown.note(file, node.line, name, "a policy without a name or a key");
            }
        }
    }
}

fn policy(node: &Node, stem: &str) -> Option<Template> {
    let attribute = |name: &str| node.attribute(name).unwrap_or_default().to_owned();
    let reference = |name: &str| {
        node.child(name).and_then(|child| child.attribute("ref")).unwrap_or_default().to_owned()
    };
    let key = node.attribute("key")?.trim_matches('\\').to_owned();
    let class = match node.attribute("class").unwrap_or_default().to_ascii_lowercase().as_str() {
        "machine" => Class::Machine,
        "user" => Class::User,
        _ => Class::Both,
    };
    let elements = node.child("elements").map(|node| &node.children);
    let elements = elements.into_iter().flatten().take(ELEMENTS_MAX).filter_map(element).collect();
    Some(Template {
        stem: stem.to_owned(),
        name: node.attribute("name")?.to_owned(),
        class,
        value_name: node.attribute("valueName").map(str::to_owned),
        enabled: node.child("enabledValue").and_then(value),
        disabled: node.child("disabledValue").and_then(value),
        enabled_list: list(node.child("enabledList"), &key),
        disabled_list: list(node.child("disabledList"), &key),
        elements,
        display_name: attribute("displayName"),
        explain: attribute("explainText"),
        presentation: attribute("presentation"),
        supported_on: reference("supportedOn"),
        category: reference("parentCategory"),
        key,
    })
}

/// `<decimal value="1"/>`, `<longDecimal/>`, `<string>`, `<delete/>`.
fn value(node: &Node) -> Option<Value> {
    let node = node.children.first()?;
    let number = || node.attribute("value").map(str::trim);
    match node.name.to_ascii_lowercase().as_str() {
        "decimal" => number()?.parse().ok().map(Value::Dword),
        "longdecimal" => number()?.parse().ok().map(Value::Qword),
        "string" => Some(Value::Text(node.text.clone())),
        "delete" => Some(Value::Delete),
        _ => None,
    }
}

fn list(node: Option<&Node>, key: &str) -> Vec<(String, String, Value)> {
    let Some(node) = node else { return Vec::new() };
    let default = node.attribute("defaultKey").unwrap_or(key);
    let items = node.children.iter().filter(|item| item.name == "item");
    items
        .filter_map(|item| {
            let key = item.attribute("key").unwrap_or(default).trim_matches('\\').to_owned();
            let name = item.attribute("valueName")?.to_owned();
            Some((key, name, value(item.child("value")?)?))
        })
        .collect()
}

fn element(node: &Node) -> Option<Element> {
    let flag = |name: &str| node.attribute(name).is_some_and(|text| text == "true" || text == "1");
    let number = |name: &str, otherwise: u64| {
        node.attribute(name).and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
    };
    let kind = match node.name.to_ascii_lowercase().as_str() {
        "enum" => {
            let items = node.children.iter().filter(|item| item.name == "item");
            ElementKind::Enum(
                items
                    .filter_map(|item| {
                        let text = item.attribute("displayName").unwrap_or_default().to_owned();
                        Some((text, value(item.child("value")?)?))
                    })
                    .collect(),
            )
        }
        "decimal" | "longdecimal" => ElementKind::Decimal {
            min: number("minValue", 0),
            max: number("maxValue", 9_999),
            is_text: flag("storeAsText"),
        },
        "boolean" => ElementKind::Boolean {
            on: node.child("trueValue").and_then(value).unwrap_or(Value::Dword(1)),
            off: node.child("falseValue").and_then(value).unwrap_or(Value::Dword(0)),
        },
        "text" => ElementKind::Text { is_expandable: flag("expandable") },
        "multitext" => ElementKind::MultiText,
        "list" => ElementKind::List {
            prefix: node.attribute("valuePrefix").map(str::to_owned),
            has_names: flag("explicitValue"),
            is_expandable: flag("expandable"),
        },
        _ => return None,
    };
    Some(Element {
        id: node.attribute("id").unwrap_or_default().to_owned(),
        key: node.attribute("key").map(|key| key.trim_matches('\\').to_owned()),
        value_name: node.attribute("valueName").map(str::to_owned),
        kind,
    })
}

/// `<string id="...">` and the labels of `<presentation id="...">`.
pub(super) fn texts(root: &Node, language: String) -> Texts {
    let mut texts = Texts { language, ..Texts::default() };
    for node in root.below("string").into_iter().filter(|node| node.is_complete) {
        if let Some(id) = node.attribute("id") {
            texts.strings.insert(id.to_lowercase(), node.text.clone());
        }
    }
    for node in root.below("presentation") {
        let Some(id) = node.attribute("id") else { continue };
        let labels: BTreeMap<String, String> = node
            .children
            .iter()
            .filter_map(|element| {
                let label = element.text_of("label").unwrap_or(&element.text);
                Some((element.attribute("refId")?.to_lowercase(), label.trim().to_owned()))
            })
            .collect();
        texts.labels.insert(id.to_lowercase(), labels);
    }
    texts
}
