//! Administrative templates (ADMX with ADML): what policies are called, what they mean, and where they are set.
//!
//! "Group Policy ADMX Syntax Reference Guide" (PolicyDefinitionFiles.xsd). An .admx has the places, an .adml the texts of
//! one language; they belong together by their file names. The language is the folder's or the file name's beginning.

mod definitions;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::super::setting::{Place, Scope, Value};
use super::policy_files::folder_of;
use super::sink::Output;
use super::{Format, Item};
use crate::input::text::decode;
use crate::input::xml;

/// Languages of one .admx; Windows has about 40.
const LANGUAGES_MAX: usize = 100;
/// The language whose texts replace missing ones.
const FALLBACK: &str = "en-us";

/// Whose policy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Machine,
    User,
    Both,
}

/// A policy of an .admx. Texts are references (`$(string.NAME)`) as the file has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// The file without folder and extension, in lower case.
    pub stem: String,
    pub name: String,
    pub class: Class,
    pub key: String,
    pub value_name: Option<String>,
    pub enabled: Option<Value>,
    pub disabled: Option<Value>,
    /// More values that are set when the policy is enabled, or disabled.
    pub enabled_list: Vec<(String, String, Value)>,
    pub disabled_list: Vec<(String, String, Value)>,
    pub elements: Vec<Element>,
    pub display_name: String,
    pub explain: String,
    pub presentation: String,
    pub supported_on: String,
    pub category: String,
}

/// A part of a policy that has a value of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Element {
    pub id: String,
    /// The key if it is not the policy's.
    pub key: Option<String>,
    pub value_name: Option<String>,
    pub kind: ElementKind,
}

/// What an element accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementKind {
    /// Each item with the reference of its text.
    Enum(Vec<(String, Value)>),
    Decimal {
        min: u64,
        max: u64,
        is_text: bool,
    },
    Boolean {
        on: Value,
        off: Value,
    },
    Text {
        is_expandable: bool,
    },
    MultiText,
    /// Values below the key: any name, or the prefix with numbers.
    List {
        prefix: Option<String>,
        has_names: bool,
        is_expandable: bool,
    },
}

/// The texts of one language for one .admx.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Texts {
    language: String,
    strings: BTreeMap<String, String>,
    /// Labels of elements by presentation and element.
    labels: BTreeMap<String, BTreeMap<String, String>>,
}

/// Policies and their texts in all languages that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Templates {
    pub policies: Vec<Template>,
    /// By the file name of the .admx.
    texts: BTreeMap<String, Vec<Texts>>,
}

/// Policies by their names in all languages.
pub(super) type ByName<'a> = HashMap<&'a str, Vec<&'a Template>>;

/// What a template says about one place, in one language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyText {
    pub policy: String,
    pub explain: String,
    pub category: String,
    pub supported_on: String,
    /// The label of the element that has this value, if it is not the policy's own.
    pub label: Option<String>,
    /// Values that the policy offers, with their texts.
    pub allowed: Vec<(Value, String)>,
    /// The range of a number.
    pub range: Option<(u64, u64)>,
    /// Language of the texts; empty if the files do not name it.
    pub language: String,
}

pub(super) fn collect(items: &[Item<'_>], output: &mut Output) -> Templates {
    let mut templates = Templates::default();
    for item in items {
        if !matches!(item.format, Format::TemplateDefinitions | Format::TemplateTexts) {
            continue;
        }
        let document = xml::parse(&decode(&item.bytes).text);
        if let Some((line, message)) = document.damage {
            output.damage(&item.name, line, message);
        }
        let (stem, language) = stem_and_language(&item.name);
        if item.format == Format::TemplateDefinitions {
            definitions::read(&document.root, &stem, &item.name, &mut templates.policies, output);
        } else {
            let texts = templates.texts.entry(stem).or_default();
            if texts.len() < LANGUAGES_MAX {
                texts.push(definitions::texts(&document.root, language));
            } else {
                output.damage(
                    &item.name,
                    0,
                    format!("more than {LANGUAGES_MAX} languages of one .admx"),
                );
            }
        }
    }
    templates
}

/// `fr-FR/Lanman.adml` and `fr-FR_Lanman.adml` are `lanman` in French.
fn stem_and_language(name: &str) -> (String, String) {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_lowercase();
    let folder = folder_of(name).rsplit('/').next().unwrap_or_default();
    if let Some((language, stem)) = stem.split_once('_').filter(|(word, _)| is_language(word)) {
        return (stem.to_owned(), language.to_owned());
    }
    let language = if is_language(folder) { folder.to_lowercase() } else { String::new() };
    (stem, language)
}

/// `de-DE`, `zh-Hant-TW`.
fn is_language(word: &str) -> bool {
    let mut parts = word.split('-');
    let first = parts.next().unwrap_or_default();
    let is_letters = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (2..=3).contains(&first.len())
        && word.contains('-')
        && is_letters(first)
        && parts.all(|part| (2..=4).contains(&part.len()) && is_letters(part))
}

impl Templates {
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.texts.is_empty()
    }

    /// Languages of the texts, sorted.
    pub fn languages(&self) -> Vec<&str> {
        let mut languages: Vec<&str> =
            self.texts.values().flatten().map(|texts| texts.language.as_str()).collect();
        languages.sort_unstable();
        languages.dedup();
        languages
    }

    /// The policy that sets a place, and the element of it whose value that is.
    pub fn find(&self, place: &Place) -> Option<(&Template, Option<&Element>)> {
        let Place::Registry { scope, key, name } = place else { return None };
        let mut of_list = None;
        for policy in self.policies.iter().filter(|policy| policy.class.has(*scope)) {
            let is_key = |other: &str| other.eq_ignore_ascii_case(key);
            let is_name = |other: &Option<String>| {
                other.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(name))
            };
            for element in &policy.elements {
                if !is_key(element.key.as_ref().unwrap_or(&policy.key)) {
                    continue;
                }
                if is_name(&element.value_name) {
                    return Some((policy, Some(element)));
                }
                if matches!(element.kind, ElementKind::List { .. }) {
                    of_list = Some((policy, Some(element)));
                }
            }
            if is_key(&policy.key) && is_name(&policy.value_name) {
                return Some((policy, None));
            }
            let mut listed = policy.enabled_list.iter().chain(&policy.disabled_list);
            if listed.any(|(other, value, _)| is_key(other) && value.eq_ignore_ascii_case(name)) {
                return Some((policy, None));
            }
        }
        of_list
    }

    /// What the template of a place says, in a language (`de-DE`), otherwise in English, otherwise in any.
    pub fn text(&self, place: &Place, language: &str) -> Option<PolicyText> {
        let (policy, element) = self.find(place)?;
        let texts = self.texts_of(&policy.stem, language);
        let string = |reference: &str| self.string(&policy.stem, language, reference);
        let mut allowed = Vec::new();
        let mut range = None;
        match element.map(|element| &element.kind) {
            Some(ElementKind::Enum(items)) => {
                allowed.extend(items.iter().map(|(text, value)| (value.clone(), string(text))));
            }
            Some(ElementKind::Decimal { min, max, .. }) => range = Some((*min, *max)),
            Some(ElementKind::Boolean { on, off }) => {
                allowed.extend([(on.clone(), "on".to_owned()), (off.clone(), "off".to_owned())]);
            }
            Some(_) => {}
            None => {
                let of = |value: &Option<Value>, text: &str| {
                    value.clone().map(|value| (value, text.to_owned()))
                };
                allowed.extend(of(&policy.enabled, "enabled"));
                allowed.extend(of(&policy.disabled, "disabled"));
            }
        }
        let label = element.and_then(|element| self.label(policy, element, language));
        Some(PolicyText {
            policy: string(&policy.display_name),
            explain: string(&policy.explain),
            category: policy.category.clone(),
            supported_on: policy.supported_on.clone(),
            label,
            allowed,
            range,
            language: texts.first().map_or_else(String::new, |texts| texts.language.clone()),
        })
    }

    /// Policies by their names in all languages.
    pub(super) fn by_name(&self) -> ByName<'_> {
        let mut names = ByName::new();
        for policy in &self.policies {
            let id = reference(&policy.display_name);
            for text in self.all(&policy.stem).iter().filter_map(|texts| texts.strings.get(&id)) {
                let same = names.entry(text.trim()).or_default();
                // Languages may have the same name.
                if !same.last().is_some_and(|last| std::ptr::eq(*last, policy)) {
                    same.push(policy);
                }
            }
        }
        names
    }

    /// The texts of an .admx in all languages.
    fn all(&self, stem: &str) -> &[Texts] {
        self.texts.get(stem).map_or(&[], Vec::as_slice)
    }

    /// The label of an element.
    fn label(&self, policy: &Template, element: &Element, language: &str) -> Option<String> {
        let presentation = reference(&policy.presentation);
        self.texts_of(&policy.stem, language)
            .into_iter()
            .find_map(|texts| texts.labels.get(&presentation)?.get(&element.id.to_lowercase()))
            .cloned()
    }

    /// Whether an element has that label in any language.
    pub(super) fn has_label(&self, policy: &Template, element: &Element, label: &str) -> bool {
        let presentation = reference(&policy.presentation);
        self.all(&policy.stem).iter().any(|texts| {
            let labels = texts.labels.get(&presentation);
            labels
                .and_then(|labels| labels.get(&element.id.to_lowercase()))
                .is_some_and(|text| text.trim() == label.trim())
        })
    }

    /// Whether a reference has that text in any language.
    pub(super) fn has_text(&self, policy: &Template, text: &str, found: &str) -> bool {
        let id = reference(text);
        self.all(&policy.stem)
            .iter()
            .any(|texts| texts.strings.get(&id).is_some_and(|text| text.trim() == found.trim()))
    }

    /// Texts of an .admx: the language first, then English, then the others.
    fn texts_of(&self, stem: &str, language: &str) -> Vec<&Texts> {
        let mut texts: Vec<&Texts> = self.all(stem).iter().collect();
        texts.sort_by_key(|texts| {
            (
                !texts.language.eq_ignore_ascii_case(language),
                !texts.language.eq_ignore_ascii_case(FALLBACK),
            )
        });
        texts
    }

    fn string(&self, stem: &str, language: &str, text: &str) -> String {
        let id = reference(text);
        let found =
            self.texts_of(stem, language).into_iter().find_map(|texts| texts.strings.get(&id));
        found.map_or_else(|| text.to_owned(), |text| text.trim().to_owned())
    }
}

impl Class {
    pub(super) fn has(self, scope: Scope) -> bool {
        match self {
            Self::Both => true,
            Self::Machine => scope == Scope::Computer,
            Self::User => scope == Scope::User,
        }
    }
}

/// The identifier in `$(string.ID)`; another text as it is. In lower case.
fn reference(text: &str) -> String {
    let inner = text.trim().strip_prefix("$(").and_then(|text| text.strip_suffix(')'));
    inner.and_then(|text| text.split_once('.')).map_or(text.trim(), |(_, id)| id).to_lowercase()
}
