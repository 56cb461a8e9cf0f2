//! Which kept attributes a form can write back: its own, and those that both modes of the directory have.

use std::collections::BTreeMap;

use super::super::form::{FLAG_BITS, Form, INTERLINK, STATE_DETAIL};
use super::super::read::{SWITCH, SWITCHES};
use super::loss::{Losses, Lost};
use crate::input::text::is_xml_text;

/// What the attributes belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Link,
    Target,
}

/// Keeps the attributes that belong to the form.
pub(super) fn keep_other(
    other: &BTreeMap<String, String>,
    out: &mut BTreeMap<String, String>,
    form: Form,
    level: Level,
    subject: &str,
    losses: &mut Losses,
) {
    for (key, value) in other {
        if key == STATE_DETAIL {
            continue;
        }
        if key == INTERLINK {
            // Servers find it out themselves when a target is added.
            if level == Level::Link && matches!(form, Form::DirectoryV1 | Form::DirectoryV2) {
                out.insert(key.clone(), "yes".to_owned());
            }
            continue;
        }
        let is_kept = match key.strip_prefix(form.prefix()) {
            None => false,
            Some(name) => match form {
                Form::Export2003 | Form::Export2008 => export_key(key, name, value, form, level),
                Form::Msdfs => key == "msdfs:proxy" && level == Level::Root,
                Form::DirectoryV1 | Form::DirectoryV2 => is_attribute(name),
                // PowerShell has no parameter for a property that only was printed.
                Form::Script => false,
                _ => true,
            },
        };
        if is_kept {
            out.insert(key.clone(), value.clone());
        } else if !key.starts_with("view:") && key != SWITCH && key != "msdfs:proxy" {
            losses.add(Lost::OtherAttributes, || format!("{subject} ({key})"));
        }
    }
}

/// Whether a key is the name of an attribute, or of a part of the blob.
fn is_attribute(name: &str) -> bool {
    let name = name.strip_prefix("pKT/").unwrap_or(name);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

fn export_key(key: &str, name: &str, value: &str, form: Form, level: Level) -> bool {
    if key == SWITCH {
        let is_word = SWITCHES.iter().skip(1).any(|(on, _)| *on == value);
        return form == Form::Export2008 && level == Level::Root && is_word;
    }
    if name == "Attributes" {
        let bits = value.parse::<u32>().ok().filter(|bits| bits & FLAG_BITS == 0 && *bits != 0);
        return form == Form::Export2003 && level != Level::Target && bits.is_some();
    }
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_of_2008 = ["SITECOSTING", "ROOTSCALABILITY", "ABDE"].contains(&name);
    is_name && is_xml_text(value) && !(is_of_2008 && form == Form::Export2003)
}
