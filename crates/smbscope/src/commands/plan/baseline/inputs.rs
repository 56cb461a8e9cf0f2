//! Inputs of a baseline: files, folders, containers, captures and live servers, to settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use smbscope_plan::baseline::catalogue::System;
use smbscope_plan::baseline::effective::{Effective, Input, Layer, effective};
use smbscope_plan::baseline::read::{
    BYTES_MAX, Baseline, ENTRIES_MAX, Format, NamedBytes, PolicyText, Source, read, wire_settings,
};
use smbscope_plan::baseline::roles::MachineRole;
use smbscope_plan::baseline::setting::{Place, Scope, Setting};
use smbscope_plan::baseline::terms::{Terms, place_title};
use smbscope_plan::baseline::write::FormerState;
use smbscope_plan::input::text::clean;
use smbscope_store::source::Input as StoreInput;

use super::{BaselineArgs, bad};
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::options::Verbosity;
use crate::output::Output;
use crate::pipeline::baseline as pipeline;

/// Folders below a given one.
const DEPTH_MAX: usize = 32;

/// All inputs of one side.
#[derive(Default)]
pub(super) struct Read {
    inputs: Vec<(String, Baseline)>,
    /// What was left out, a sentence each.
    left_out: Vec<String>,
}

impl Read {
    /// Reads inputs in the given order.
    pub(super) fn all(
        names: &[String],
        args: &BaselineArgs,
        verbosity: &Verbosity,
    ) -> anyhow::Result<Read> {
        let mut inputs = Vec::new();
        for name in names {
            inputs.push((name.clone(), one(name, args, verbosity)?));
        }
        let read = Read { inputs, left_out: Vec::new() };
        for (_, baseline) in &read.inputs {
            for damage in &baseline.damage {
                verbosity.say(&format!("damaged: {damage}; what was read before it counts"));
            }
            if baseline.settings_omitted > 0 {
                verbosity.say(&format!(
                    "{}: {} more settings are past the limit on their number",
                    baseline.name, baseline.settings_omitted
                ));
            }
        }
        Ok(read)
    }

    /// Keeps the policies for a role, and with these texts in their names.
    pub(super) fn choose(&mut self, role: MachineRole, names: &[String]) -> anyhow::Result<()> {
        let names: Vec<_> = names.iter().map(|name| name.to_lowercase()).collect();
        let is_named = |policy: &str| {
            let policy = policy.to_lowercase();
            names.is_empty() || names.iter().any(|name| policy.contains(name))
        };
        let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
        let mut all = 0;
        for (_, one) in &mut self.inputs {
            all += one.settings.len();
            one.settings.retain(|setting| {
                let policy = setting.origin.policy.as_deref();
                let is_kept = match policy {
                    Some(policy) if names.is_empty() => role.takes(policy),
                    Some(policy) => is_named(policy),
                    None => true,
                };
                if !is_kept {
                    *left_out.entry(policy.unwrap_or_default().to_owned()).or_default() += 1;
                }
                is_kept
            });
        }
        if all > 0 && self.inputs.iter().all(|(_, one)| one.settings.is_empty()) {
            let names: Vec<_> = left_out.into_keys().collect();
            return Err(Failure::usage(format!(
                "no policy of the input is for --role {} or named by --policy; it has: {}",
                role.name(),
                names.join(", ")
            )));
        }
        self.left_out = left_out
            .into_iter()
            .map(|(policy, count)| {
                format!(
                    "Policy {policy}: {count} settings are left out, because it is not for the role {} (--role, --policy)",
                    role.name()
                )
            })
            .collect();
        Ok(())
    }

    /// Whether all of it was set on machines, and not by policies.
    pub(super) fn is_local(&self) -> bool {
        !self.inputs.is_empty() && self.inputs.iter().all(|(_, one)| layer(one) == Layer::Local)
    }

    pub(super) fn effective(&self) -> Effective {
        let inputs = self.inputs.iter().map(|(name, one)| Input {
            name,
            layer: layer(one),
            settings: &one.settings,
        });
        effective(&inputs.collect::<Vec<_>>())
    }

    /// What a template among the inputs says about a place.
    pub(super) fn text(&self, place: &Place, language: &str) -> Option<PolicyText> {
        self.inputs.iter().find_map(|(_, one)| one.templates.text(place, language))
    }

    pub(super) fn terms(&self) -> Terms {
        Terms::from_effective(self.effective())
    }

    /// What undo files know of the state before.
    pub(super) fn former(&self) -> FormerState {
        let settings = self.inputs.iter().flat_map(|(_, one)| one.settings.clone()).collect();
        FormerState { settings, is_complete: false }
    }

    /// What is not a setting, a sentence each.
    pub(super) fn unread(&self) -> Vec<String> {
        let mut sentences = self.left_out.clone();
        for (name, one) in &self.inputs {
            if one.settings.is_empty() && !one.templates.is_empty() {
                sentences.push(format!(
                    "{name}: templates (ADMX) define which settings there are, and set none of them: give the policy too"
                ));
            }
            sentences.extend(one.damage.iter().map(|damage| format!("Damaged: {damage}")));
            sentences.extend(one.unknown.list.iter().map(ToString::to_string));
            if one.unknown.omitted > 0 {
                sentences.push(format!("{}: {} more of these", one.name, one.unknown.omitted));
            }
        }
        sentences
    }

    /// The version that the names and forms tell, for defaults. It is printed, because it is a guess.
    pub(super) fn system(&self, verbosity: &Verbosity) -> Option<System> {
        let is_samba = self.inputs.iter().any(|(_, one)| {
            one.settings.iter().any(|setting| matches!(setting.place, Place::Samba { .. }))
        });
        let found = if is_samba {
            Some(System::Samba422)
        } else {
            self.inputs
                .iter()
                .rev()
                .find_map(|(name, one)| named(name).or_else(|| named(&one.name)))
        };
        if let Some(system) = found {
            verbosity.say(&format!(
                "where it sets nothing, the defaults of {} apply; another version: --system",
                system.title()
            ));
        }
        found
    }
}

/// The version in a name, as baselines are called.
fn named(name: &str) -> Option<System> {
    let name = name.to_ascii_lowercase().replace([' ', '_', '-'], "");
    [
        ("2012r2", System::Windows2012R2),
        ("2016", System::Windows2016),
        ("2019", System::Windows2019),
        ("2022", System::Windows2022),
        ("2025", System::Windows2025),
        ("windows11", System::Windows11H24),
        ("win11", System::Windows11H24),
        ("windows10", System::Windows10),
        ("win10", System::Windows10),
    ]
    .into_iter()
    .find(|(part, _)| name.contains(part))
    .map(|(_, system)| system)
}

/// Settings of a machine itself, or of a policy.
fn layer(baseline: &Baseline) -> Layer {
    let is_local = |source: &Source| {
        matches!(
            source.format,
            Format::RegistryExport | Format::PowerShell | Format::Json | Format::SmbConf
        )
    };
    let mut with_settings = baseline.sources.iter().filter(|source| source.settings > 0).peekable();
    // What a server shows on the wire has no file.
    if with_settings.peek().is_none() || with_settings.all(is_local) {
        Layer::Local
    } else {
        Layer::Policy
    }
}

fn one(name: &str, args: &BaselineArgs, verbosity: &Verbosity) -> anyhow::Result<Baseline> {
    if name.starts_with("//") || name.starts_with("\\\\") {
        return Ok(seen(name, wire_settings(&pipeline::asked(name)?)));
    }
    let path = Path::new(name);
    if matches!(
        StoreInput::recognise(name),
        Ok(StoreInput::Capture { .. } | StoreInput::Dataset(_))
    ) {
        let source = args.reading.open(&[name.to_owned()], None)?;
        let servers = pipeline::on_wire(&source, name, verbosity)?;
        if servers.is_empty() {
            return Err(bad(
                name,
                "the recording has no Negotiate of a server, so it shows no setting",
            ));
        }
        return Ok(seen(name, servers.iter().flat_map(wire_settings).collect()));
    }
    let files = files(path)?;
    let named: Vec<_> = files.iter().map(|(name, bytes)| NamedBytes { name, bytes }).collect();
    read(&named).map_err(|error| Failure::new(Code::NotRecognised, error.to_string()).into())
}

fn seen(name: &str, settings: Vec<Setting>) -> Baseline {
    Baseline { name: name.to_owned(), settings, ..Baseline::default() }
}

/// A file, or all files of a folder, in the order of their names.
fn files(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut left = BYTES_MAX;
    // Names begin with the input's own: what is above it says nothing about the baseline.
    let above = path.parent().unwrap_or(path).to_owned();
    let mut waiting = vec![(path.to_owned(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        let name = path.display().to_string();
        let metadata = std::fs::metadata(&path)
            .map_err(|error| Failure::new(Code::Input, format!("{name}: {error}")))?;
        if metadata.is_dir() {
            if depth >= DEPTH_MAX {
                return Err(bad(&name, format!("more than {DEPTH_MAX} folders within each other")));
            }
            let entries =
                std::fs::read_dir(&path).with_context(|| format!("cannot read {name}"))?;
            let mut entries: Vec<PathBuf> = entries
                .take(ENTRIES_MAX + 1)
                .map(|entry| Ok(entry?.path()))
                .collect::<std::io::Result<_>>()
                .with_context(|| format!("cannot read {name}"))?;
            // The last one is taken first.
            entries.sort_by(|one, other| other.cmp(one));
            waiting.extend(entries.into_iter().map(|path| (path, depth + 1)));
        } else if metadata.is_file() {
            let file = std::fs::File::open(&path).with_context(|| format!("cannot read {name}"))?;
            let mut bytes = Vec::new();
            file.take(left + 1)
                .read_to_end(&mut bytes)
                .with_context(|| format!("cannot read {name}"))?;
            let length = bytes.len() as u64;
            if length > left {
                return Err(bad(
                    &name,
                    format!("more than {} MiB in total: not a baseline", BYTES_MAX >> 20),
                ));
            }
            left -= length;
            let shown = path.strip_prefix(&above).unwrap_or(&path);
            files.push((shown.display().to_string(), bytes));
        }
        if files.len() + waiting.len() > ENTRIES_MAX {
            return Err(bad(
                &path.display().to_string(),
                format!("more than {ENTRIES_MAX} files: give the folder of the baseline"),
            ));
        }
    }
    if files.is_empty() {
        Err(bad(&path.display().to_string(), "the folder has no files"))
    } else {
        Ok(files)
    }
}

/// Lists what was read.
pub(super) fn list(read: &Read, args: &BaselineArgs) -> anyhow::Result<()> {
    let mut output = Output::open(args.answer.out.as_ref())?;
    if args.answer.format == Some(TextFormat::Json) {
        let inputs = read.inputs.iter().map(|(name, one)| json!({ "input": name, "read": one }));
        let value = json!({ "inputs": inputs.collect::<Vec<_>>() });
        output.text(&smbscope_report::json_text(&value))?;
        return output.finish();
    }
    let mut text = String::new();
    for (name, one) in &read.inputs {
        let _ = writeln!(
            text,
            "{}: {} settings, {} lines that are not settings",
            clean(name),
            one.settings.len(),
            one.unknown.count()
        );
        for setting in &one.settings {
            let value = serde_json::to_string(&setting.value).unwrap_or_default();
            let scope = match &setting.place {
                Place::Registry { scope: Scope::User, .. } => "user ",
                _ => "",
            };
            let _ = writeln!(
                text,
                "  {scope}{} = {}",
                clean(&place_title(&setting.place)),
                clean(&value)
            );
            let from = match &setting.origin.policy {
                Some(policy) => format!("{policy}, {}", setting.origin.file),
                None => setting.origin.file.clone(),
            };
            let _ = writeln!(text, "      {}, {}", clean(&from), setting.origin.position);
            if let Some(shown) = one.templates.text(&setting.place, &args.language) {
                let _ = writeln!(text, "      {}", clean(&shown.policy));
            }
        }
    }
    for sentence in read.unread() {
        let _ = writeln!(text, "not a setting: {}", clean(&sentence));
    }
    output.text(&text)?;
    output.finish()
}
