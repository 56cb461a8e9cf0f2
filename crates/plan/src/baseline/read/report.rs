//! Settings of gpreport.xml (`Get-GPOReport -ReportType Xml`).
//!
//! A backup has them in its own files as well; then those are read, and the report only repeats them. Without them, the
//! sections of security and auditing are read here. Its registry section has names of policies instead of places: they
//! become settings if the templates that define them are part of the input.

use std::collections::BTreeSet;

use super::super::setting::{Place, Scope, Value};
use super::format::Format;
use super::registry_data::hive;
use super::security_template;
use super::sink::Sink;
use super::templates::{ByName, Element, ElementKind, Template, Templates};
use crate::input::xml::{self, Node};

/// Parts of a policy that are compared with the elements of its template.
const PARTS_MAX: usize = 200;

/// Reads a report. `files` are the formats of the files next to it.
pub(super) fn read(
    text: &str,
    files: Option<&BTreeSet<Format>>,
    templates: &Templates,
    sink: &mut Sink<'_>,
) {
    let by_name = templates.by_name();
    let document = xml::parse(text);
    let root = &document.root;
    let policies = if root.name == "GPO" { vec![root] } else { root.below("GPO") };
    for gpo in policies {
        let policy = gpo.word_of("Name").map(str::to_owned);
        for (name, scope) in [("Computer", Scope::Computer), ("User", Scope::User)] {
            let Some(part) = gpo.child(name) else { continue };
            for data in part.children.iter().filter(|node| node.name == "ExtensionData") {
                let Some(extension) = data.child("Extension") else { continue };
                let mut report = Report {
                    policy: policy.clone(),
                    scope,
                    files,
                    templates,
                    by_name: &by_name,
                    sink,
                };
                report.extension(extension, data.word_of("Name").unwrap_or_default());
            }
        }
    }
}

struct Report<'a, 'b> {
    policy: Option<String>,
    scope: Scope,
    files: Option<&'a BTreeSet<Format>>,
    templates: &'a Templates,
    by_name: &'a ByName<'a>,
    sink: &'a mut Sink<'b>,
}

impl Report<'_, '_> {
    fn extension(&mut self, extension: &Node, name: &str) {
        let kind = extension.attribute("type").unwrap_or_default();
        let kind = kind.rsplit(':').next().unwrap_or_default().to_owned();
        let (format, file) = match kind.as_str() {
            "SecuritySettings" => (Format::SecurityTemplate, "GptTmpl.inf"),
            "AuditSettings" => (Format::AuditCsv, "audit.csv"),
            "RegistrySettings" => (Format::RegistryPol, "registry.pol"),
            _ => {
                let why =
                    "an extension of the report that is not read: its values are in registry.pol";
                return self.sink.unknown(extension.line, name, why);
            }
        };
        if self.files.is_some_and(|files| files.contains(&format)) {
            let text = format!("{name}: {} entries", extension.children.len());
            let why = format!("repeats {file} of the same backup");
            return self.sink.unknown(extension.line, &text, &why);
        }
        for node in &extension.children {
            let found = match kind.as_str() {
                "SecuritySettings" => security(node),
                "AuditSettings" => auditing(node),
                _ if node.name == "Policy" => {
                    self.policy(node);
                    continue;
                }
                _ => self.registry(node),
            };
            match found {
                Ok((place, value)) => self.setting(node, place, value),
                Err(why) => self.sink.unknown(node.line, &describe(node), why),
            }
        }
    }

    fn setting(&mut self, node: &Node, place: Place, value: Value) {
        self.sink.setting_of(self.policy.clone(), node.line, place, value);
    }

    /// `<RegistrySetting>`: a value that no template describes.
    fn registry(&self, node: &Node) -> Result<(Place, Value), &'static str> {
        if node.name != "RegistrySetting" {
            return Err("describes the section");
        }
        let key = node.word_of("KeyPath").ok_or("a value without a key")?.trim_matches('\\');
        let value = node.child("Value").ok_or("a key without a value")?;
        let name = value.word_of("Name").unwrap_or_default().to_owned();
        let place = Place::Registry { scope: self.scope, key: key.to_owned(), name };
        let number = value.word_of("Number").and_then(|text| text.parse().ok());
        let text = value.text_of("String");
        let value =
            number.map(Value::Dword).or_else(|| text.map(|text| Value::Text(text.to_owned())));
        Ok((place, value.ok_or("a type that is not known")?))
    }

    /// `<Policy>`: a name and a state.
    fn policy(&mut self, node: &Node) {
        let name = node.word_of("Name").unwrap_or_default();
        let is_enabled = node.word_of("State").unwrap_or_default().eq_ignore_ascii_case("enabled");
        let same = self.by_name.get(name.trim()).into_iter().flatten();
        let mut found = same.copied().filter(|template| template.class.has(self.scope));
        let (Some(template), None) = (found.next(), found.next()) else {
            let text = format!("{name}: {}", node.word_of("State").unwrap_or_default());
            let why = "a policy without its place: give registry.pol of the backup, or the one template (ADMX and ADML) that defines it";
            return self.sink.unknown(node.line, &text, why);
        };
        for (place, value) in self.values(template, node, is_enabled) {
            self.setting(node, place, value);
        }
    }

    /// The values that a policy sets.
    fn values(
        &mut self,
        template: &Template,
        node: &Node,
        is_enabled: bool,
    ) -> Vec<(Place, Value)> {
        let mut values = Vec::new();
        let scope = self.scope;
        let place = |key: &str, name: &str| Place::Registry {
            scope,
            key: key.to_owned(),
            name: name.to_owned(),
        };
        if let Some(name) = &template.value_name {
            let (set, otherwise) = if is_enabled {
                (&template.enabled, Value::Dword(1))
            } else {
                (&template.disabled, Value::Delete)
            };
            values.push((place(&template.key, name), set.clone().unwrap_or(otherwise)));
        }
        let list = if is_enabled { &template.enabled_list } else { &template.disabled_list };
        values.extend(list.iter().map(|(key, name, value)| (place(key, name), value.clone())));
        for element in &template.elements {
            let key = element.key.as_ref().unwrap_or(&template.key);
            let name = element.value_name.as_deref().unwrap_or_default();
            if !is_enabled {
                let is_list = matches!(element.kind, ElementKind::List { .. });
                values.push((
                    place(key, name),
                    if is_list { Value::DeleteValues } else { Value::Delete },
                ));
                continue;
            }
            let shown = node.children.iter().take(PARTS_MAX).find(|child| {
                child
                    .text_of("Name")
                    .is_some_and(|label| self.templates.has_label(template, element, label))
            });
            let Some(shown) = shown.or_else(|| only_part(node, template)) else {
                let why =
                    "an element of a policy whose value the report does not show under its label";
                self.sink.unknown(node.line, &format!("{}: {}", template.name, element.id), why);
                continue;
            };
            match self.element(template, element, shown) {
                Some(Shown::Value(value)) => values.push((place(key, name), value)),
                Some(Shown::List(list)) => {
                    values.extend(list.into_iter().map(|(name, value)| (place(key, &name), value)));
                }
                None => self.sink.unknown(
                    shown.line,
                    &describe(shown),
                    "a value that the template does not offer",
                ),
            }
        }
        values
    }

    fn element(&self, template: &Template, element: &Element, node: &Node) -> Option<Shown> {
        let value = node.child("Value");
        let text = || value.map(|value| value.word_of("Name").unwrap_or(&value.text).to_owned());
        Some(match &element.kind {
            ElementKind::Enum(items) => {
                let text = text()?;
                let found =
                    items.iter().find(|(item, _)| self.templates.has_text(template, item, &text));
                Shown::Value(found?.1.clone())
            }
            ElementKind::Boolean { on, off } => {
                let is_on = node.word_of("State")?.eq_ignore_ascii_case("enabled");
                Shown::Value(if is_on { on.clone() } else { off.clone() })
            }
            ElementKind::Decimal { is_text, .. } => {
                let text = text()?;
                let text = text.trim();
                Shown::Value(if *is_text {
                    Value::Text(text.to_owned())
                } else {
                    Value::Dword(text.parse().ok()?)
                })
            }
            ElementKind::Text { is_expandable } => {
                let text = text()?;
                Shown::Value(if *is_expandable {
                    Value::ExpandText(text)
                } else {
                    Value::Text(text)
                })
            }
            ElementKind::MultiText => {
                let lines = value?.children.iter().map(|line| line.text.trim().to_owned());
                Shown::Value(Value::MultiText(lines.filter(|line| !line.is_empty()).collect()))
            }
            ElementKind::List { prefix, is_expandable, .. } => {
                let entries =
                    value?.children.iter().filter(|entry| entry.name == "Element").enumerate();
                let of_type = |text: String| {
                    if *is_expandable { Value::ExpandText(text) } else { Value::Text(text) }
                };
                let entries = entries.map(|(position, entry)| {
                    let data = entry.text_of("Data").unwrap_or_default().to_owned();
                    let name =
                        entry.text_of("Name").filter(|name| !name.is_empty()).map(str::to_owned);
                    let numbered = || {
                        prefix.as_ref().map_or_else(
                            || data.clone(),
                            |prefix| format!("{prefix}{}", position + 1),
                        )
                    };
                    (name.unwrap_or_else(numbered), of_type(data))
                });
                Shown::List(entries.collect())
            }
        })
    }
}

enum Shown {
    Value(Value),
    List(Vec<(String, Value)>),
}

/// The only part of a policy with one element: its label may be empty.
fn only_part<'a>(node: &'a Node, template: &Template) -> Option<&'a Node> {
    let kinds = ["DropDownList", "CheckBox", "Numeric", "EditText", "MultiText", "ListBox"];
    let mut parts = node.children.iter().filter(|child| kinds.contains(&child.name.as_str()));
    let only = parts.next().filter(|_| template.elements.len() == 1)?;
    parts.next().is_none().then_some(only)
}

fn describe(node: &Node) -> String {
    let fields: Vec<String> = node
        .children
        .iter()
        .take(4)
        .map(|child| format!("{}={}", child.name, child.text.trim()))
        .collect();
    format!("{}: {}", node.name, fields.join(", "))
}

/// An element of the security section.
fn security(node: &Node) -> Result<(Place, Value), &'static str> {
    let name = node.word_of("Name");
    let template = |section: &str, name: &str, value: String| {
        (Place::Template { section: section.to_owned(), name: name.to_owned() }, Value::Text(value))
    };
    let number = node.word_of("SettingNumber");
    let flag = node.word_of("SettingBoolean").map(|text| if text == "true" { "1" } else { "0" });
    // Texts are in the quotes of the template.
    let string = node.text_of("SettingString").map(security_template::single);
    let text = string.clone().or_else(|| number.or(flag).map(str::to_owned));
    let unnamed = "an element without a name";
    let unfit = "a setting without a value that is known";
    match node.name.as_str() {
        "UserRightsAssignment" => {
            let members =
                node.children.iter().filter(|child| child.name == "Member").filter_map(|member| {
                    let sid = member.word_of("SID").map(|sid| format!("*{sid}"));
                    sid.or_else(|| member.word_of("Name").map(str::to_owned))
                });
            let members: Vec<String> = members.collect();
            Ok(template("Privilege Rights", name.ok_or(unnamed)?, members.join(",")))
        }
        "Account" => {
            let name = name.ok_or(unnamed)?;
            let is_kerberos =
                node.word_of("Type").is_some_and(|kind| kind.eq_ignore_ascii_case("Kerberos"));
            let section = if is_kerberos { "Kerberos Policy" } else { "System Access" };
            Ok(template(section, name, text.ok_or(unfit)?))
        }
        "Audit" => {
            let is_on = |name: &str| u32::from(node.word_of(name) == Some("true"));
            let value = is_on("SuccessAttempts") | is_on("FailureAttempts") << 1;
            Ok(template("Event Audit", name.ok_or(unnamed)?, value.to_string()))
        }
        "SystemServices" => {
            let start =
                match node.word_of("StartupMode").unwrap_or_default().to_ascii_lowercase().as_str()
                {
                    "automatic" => "2",
                    "manual" => "3",
                    "disabled" => "4",
                    _ => return Err(unfit),
                };
            Ok(template("Service General Setting", name.ok_or(unnamed)?, start.to_owned()))
        }
        "SecurityOptions" => {
            if let Some(name) = node.word_of("SystemAccessPolicyName") {
                return Ok(template("System Access", name, text.ok_or(unfit)?));
            }
            let path = node.word_of("KeyName").ok_or(unnamed)?;
            let (scope, path) =
                hive(path).ok_or("a hive that is neither the computer's nor the user's")?;
            let (key, name) = path.rsplit_once('\\').ok_or("a path without the name of a value")?;
            let place = Place::Registry { scope, key: key.to_owned(), name: name.to_owned() };
            let several = node.child("SettingStrings").map(|node| {
                let texts = node.children.iter().map(|text| text.text.clone());
                Value::MultiText(texts.filter(|text| !text.is_empty()).collect())
            });
            let one = string.map(Value::Text);
            let number = number.and_then(|text| text.parse().ok()).map(Value::Dword);
            Ok((place, several.or(one).or(number).ok_or(unfit)?))
        }
        "Blocked" => Err("describes the section"),
        _ => Err("an element of the report that is not read"),
    }
}

/// `<AuditSetting>`.
fn auditing(node: &Node) -> Result<(Place, Value), &'static str> {
    let subcategory = node.word_of("SubcategoryGuid").or_else(|| node.word_of("SubcategoryName"));
    let subcategory = subcategory.ok_or("describes the section")?.to_owned();
    let value = node.word_of("SettingValue").and_then(|text| text.parse().ok());
    Ok((Place::Audit { subcategory }, Value::Dword(value.ok_or("a setting without a number")?)))
}
