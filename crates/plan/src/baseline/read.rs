//! Files of a baseline to settings: [`read`] is the entry.
//!
//! Owns the order of reading: containers are unpacked, names of policies and texts of templates are collected, then the
//! settings are read in the order of the files. Each format has a file of its own; which one it is follows from the
//! content (`format`), never from the name. A name only says which half of a group policy a registry.pol is.
//!
//! Files are given as bytes with names, so that a folder, a .zip and a .cab are read alike, and nothing here touches the
//! file system.

mod audit;
mod container;
mod desired_state;
mod finding_list;
mod format;
mod lgpo;
mod policy_files;
mod policy_rules;
mod powershell;
mod preferences;
mod registry_data;
mod registry_export;
mod registry_pol;
mod report;
mod samba;
mod security_template;
mod sink;
mod templates;
mod wire;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::setting::{Scope, Setting};

pub use container::{BYTES_MAX, ENTRIES_MAX};
pub use format::Format;
pub use policy_files::{Link, Policy};
pub use registry_data::{decode_registry, encode_registry};
pub use samba::parameters as samba_parameters;
pub use sink::SETTINGS_MAX;
pub use templates::{Class, Element, ElementKind, PolicyText, Template, Templates};
pub use wire::{ServerOnWire, ShareOnWire, settings as wire_settings};

use crate::input::text;
use crate::input::unknown::Unknowns;
use sink::{Output, Sink};

/// One file of the input: its name (a path in the input, with either slash) and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct NamedBytes<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
}

/// What was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// Name of the only policy in it, otherwise of the first input.
    pub name: String,
    /// Files in the order in which they were read; those in containers one by one.
    pub sources: Vec<Source>,
    /// Group policies that the input describes.
    pub policies: Vec<Policy>,
    /// Settings in the order of the input: of two for the same place in one policy, the later one is effective.
    pub settings: Vec<Setting>,
    /// What is not a setting.
    pub unknown: Unknowns,
    /// Settings that were left out, because there are more than [`SETTINGS_MAX`].
    pub settings_omitted: u64,
    /// Where files are damaged. What was read before is among the settings.
    pub damage: Vec<ReadError>,
    /// Names and explanations of policies (ADMX and ADML).
    pub templates: Templates,
}

/// One file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub file: String,
    pub format: Format,
    pub settings: usize,
    pub unknown: usize,
    /// What one should know about how it was read.
    pub note: Option<String>,
}

/// A damaged file, or an input without anything to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadError {
    pub file: String,
    /// Line (from 1) of a text, offset in bytes of anything else; 0 for the whole file.
    pub position: u64,
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            0 => write!(to, "{}: {}", self.file, self.message),
            position => write!(to, "{}: at {position}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for ReadError {}

/// Bytes of a file of no known form that are looked at.
const SHOWN_BYTES: usize = 4_096;

/// A file after unpacking.
struct Item<'a> {
    name: String,
    bytes: Cow<'a, [u8]>,
    format: Format,
}

/// Reads all files of one baseline.
///
/// # Errors
///
/// If nothing in the input could be read: no file has a known form, or the files are damaged before their first setting.
/// Damage behind a setting is in [`Baseline::damage`].
pub fn read(files: &[NamedBytes<'_>]) -> Result<Baseline, ReadError> {
    let mut output = Output::default();
    let items = container::unpack(files, &mut output);
    let policies = policy_files::collect(&items, &mut output);
    let templates = templates::collect(&items, &mut output);
    let includes = samba::Includes::find(&items);
    let mut sources = Vec::new();
    for (position, item) in items.iter().enumerate() {
        let before = (output.settings.len(), output.unknown.count());
        let policy = policies.of_file(&item.name).map(str::to_owned);
        let mut sink = Sink::new(&item.name, policy, &mut output);
        read_item(position, &items, &policies, &templates, &includes, &mut sink);
        let note = sink.into_note();
        sources.push(Source {
            file: item.name.clone(),
            format: item.format,
            settings: output.settings.len() - before.0,
            unknown: (output.unknown.count() - before.1) as usize,
            note,
        });
    }
    let baseline = Baseline {
        name: policies.only_name().unwrap_or_else(|| input_name(files)),
        sources,
        policies: policies.take(),
        settings: output.settings,
        unknown: output.unknown,
        settings_omitted: output.settings_omitted,
        damage: output.damage,
        templates,
    };
    // "Nothing changes" must not be said of a file that was not understood.
    let is_foreign = baseline.sources.iter().all(|source| {
        matches!(source.format, Format::Json | Format::Mof | Format::Ansible | Format::Wazuh)
    });
    if is_foreign && baseline.settings.is_empty() && baseline.damage.is_empty() {
        return Err(ReadError {
            file: input_name(files),
            position: 0,
            message: format!(
                "it has no settings of Get-Smb*, DSC, Ansible or Wazuh that are read: expected {}",
                format::EXPECTED
            ),
        });
    }
    let is_readable = baseline.sources.iter().any(|source| source.format != Format::Unrecognised);
    let has_content = !baseline.settings.is_empty()
        || !baseline.templates.is_empty()
        || !baseline.policies.is_empty();
    if has_content || (is_readable && baseline.damage.is_empty()) {
        return Ok(baseline);
    }
    Err(baseline.damage.into_iter().next().unwrap_or_else(|| ReadError {
        file: input_name(files),
        position: 0,
        message: format!("not a known form of settings: expected {}", format::EXPECTED),
    }))
}

fn input_name(files: &[NamedBytes<'_>]) -> String {
    let first = files.first().map_or("", |file| file.name);
    let first = first.split(['/', '\\']).find(|part| !part.is_empty() && *part != ".");
    text::clean(first.unwrap_or("the input"))
}

fn read_item(
    position: usize,
    items: &[Item<'_>],
    policies: &policy_files::Policies,
    templates: &Templates,
    includes: &samba::Includes,
    sink: &mut Sink<'_>,
) {
    let Some(item) = items.get(position) else { return };
    let is_bytes = matches!(item.format, Format::RegistryPol | Format::Zip | Format::Cabinet);
    let text = if is_bytes { String::new() } else { decoded(item, sink) };
    match item.format {
        Format::RegistryPol => {
            let scope = scope_of(&item.name).unwrap_or_else(|| {
                sink.note(
                    "read as settings of the computer: its path names neither Machine nor User",
                );
                Scope::Computer
            });
            registry_pol::read(&item.bytes, scope, sink);
        }
        Format::SecurityTemplate => security_template::read(&text, sink),
        Format::PolicyRules => policy_rules::read(&text, sink),
        Format::LgpoText => lgpo::read(&text, sink),
        Format::AuditCsv => audit::read(&text, sink),
        Format::FindingList => finding_list::read(&text, sink),
        Format::RegistryExport => registry_export::read(&text, sink),
        Format::Preferences => preferences::read(&text, sink),
        Format::PowerShell => powershell::read(&text, sink),
        Format::Json => powershell::read_json(&text, sink),
        Format::Mof => desired_state::mof(&text, sink),
        Format::Ansible => desired_state::ansible(&text, sink),
        Format::Wazuh => desired_state::wazuh(&text, sink),
        Format::Intune => desired_state::intune(&text, sink),
        Format::SmbConf | Format::Unrecognised if includes.has(position) => {
            sink.note("read where another file includes it");
        }
        Format::SmbConf => samba::read(position, items, includes, sink),
        Format::GroupPolicyReport => {
            report::read(&text, policies.files_next_to(&item.name), templates, sink);
        }
        Format::GroupPolicyBackup | Format::BackupInfo => {
            policy_files::list_rest(&text, item.format, sink);
        }
        Format::TemplateDefinitions | Format::TemplateTexts => {}
        Format::Comments => sink.unknown(0, "", "comments on policies"),
        Format::VersionFile => sink.unknown(0, &text, "the version of a group policy"),
        Format::Zip | Format::Cabinet => {}
        Format::Unrecognised => {
            let first = text.lines().map(str::trim).find(|line| !line.is_empty());
            sink.unknown(0, first.unwrap_or_default(), "the file has no known form of settings");
        }
    }
}

fn decoded(item: &Item<'_>, sink: &mut Sink<'_>) -> String {
    // Only the beginning of a file in an unknown format is shown.
    let shown =
        if item.format == Format::Unrecognised { item.bytes.get(..SHOWN_BYTES) } else { None };
    let decoded = text::decode(shown.unwrap_or(&item.bytes));
    if decoded.is_damaged {
        sink.note("bytes that are not characters were replaced");
    }
    decoded.text
}

/// Whose settings a registry.pol has: the last of `Machine` and `User` in its path.
fn scope_of(name: &str) -> Option<Scope> {
    name.split(|letter: char| !letter.is_alphanumeric()).rev().find_map(|word| {
        match word.to_ascii_lowercase().as_str() {
            "machine" | "computer" => Some(Scope::Computer),
            "user" => Some(Scope::User),
            _ => None,
        }
    })
}
