//! Settings to files that apply them, each with its undo. Only texts and bytes are made here: nothing is written or run.
//!
//! [`registry_pol`], [`lgpo`], [`security_template`], [`powershell`] and [`smb_conf`] take the settings and what is known
//! of the state before ([`FormerState`]). What a form cannot express is in [`Written::unwritten`], never left out in
//! silence. Names and values come from inputs that other people made: none of them can become a command.

mod backup;
mod lgpo;
mod powershell;
mod registry_pol;
mod samba;
mod security_template;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::setting::{Origin, Place, Scope, Setting, SmbObject, Value};
use crate::input::text::clean;

pub use backup::BackupFile;
pub use lgpo::encode as encode_lgpo;
pub use registry_pol::encode as encode_registry_pol;
pub use security_template::encode as encode_security_template;

/// A file and the one that undoes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written<T> {
    pub apply: T,
    pub undo: T,
    /// Settings that the form cannot express.
    pub unwritten: Vec<Unwritten>,
    /// Steps of the undo that the form cannot express.
    pub undo_unwritten: Vec<Unwritten>,
    /// What the undo does not bring back, one sentence each. Texts have them as comments as well.
    pub notes: Vec<String>,
}

/// A setting that a form cannot express.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten {
    pub place: Place,
    pub why: String,
}

impl Unwritten {
    fn new(setting: &Setting, why: &str) -> Self {
        Self { place: setting.place.clone(), why: why.to_owned() }
    }
}

/// What is known of the state before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerState {
    /// The last of several for one place counts.
    pub settings: Vec<Setting>,
    /// Whether these are all: a place that is not among them had no value.
    pub is_complete: bool,
}

/// The former value of one place.
enum Former<'a> {
    Value(&'a Value),
    Absent,
    Unknown,
}

impl FormerState {
    fn at(&self, place: &Place) -> Former<'_> {
        let key = place.key();
        match self.settings.iter().rev().find(|setting| setting.place.key() == key) {
            Some(Setting { value: Value::Delete | Value::DeleteValues, .. }) => Former::Absent,
            Some(setting) => Former::Value(&setting.value),
            None if self.is_complete => Former::Absent,
            None => Former::Unknown,
        }
    }
}

/// registry.pol of the computer or the user.
pub fn registry_pol(settings: &[Setting], scope: Scope, former: &FormerState) -> Written<Vec<u8>> {
    written(settings, former, |settings, _| registry_pol::encode(settings, scope))
}

/// LGPO text, for `LGPO.exe /t FILE`.
pub fn lgpo(settings: &[Setting], former: &FormerState) -> Written<String> {
    written(settings, former, |settings, notes| {
        let (text, unwritten) = lgpo::encode(settings);
        (comments(';', notes, "\r\n") + &text, unwritten)
    })
}

/// A security template in UTF-16, for `secedit /configure /db DB /cfg FILE`.
pub fn security_template(settings: &[Setting], former: &FormerState) -> Written<Vec<u8>> {
    written(settings, former, |settings, _| security_template::encode(settings))
}

/// The files of a backup of a group policy, for `Import-GPO`, with a name and the time of the backup
/// (`2026-11-29T16:00:00`). The undo is a policy of its own.
pub fn group_policy_backup(
    settings: &[Setting],
    former: &FormerState,
    name: &str,
    time: &str,
) -> Written<Vec<BackupFile>> {
    let (apply, undo) = (name.to_owned(), format!("{name} (undo)"));
    let mut written =
        written(settings, former, |settings, _| backup::encode(settings, &apply, time));
    // The undo was made under the same name.
    let (back, _) = undo_settings(settings, &written.unwritten, former);
    (written.undo, _) = backup::encode(&back, &undo, time);
    written
}

/// A script of PowerShell. It is ASCII, so that no version reads it in another encoding.
pub fn powershell(settings: &[Setting], former: &FormerState) -> Written<String> {
    written(settings, former, |settings, notes| {
        let notes: Vec<String> = notes.iter().map(|note| powershell::ascii(note)).collect();
        let (text, unwritten) = powershell::encode(settings);
        (comments('#', &notes, "\r\n") + &text, unwritten)
    })
}

/// Whether a command writes a setting: PowerShell with its tools for Windows, smb.conf for Samba.
///
/// # Errors
///
/// Why not.
pub fn is_written(setting: &Setting) -> Result<(), &'static str> {
    match setting.place {
        Place::Samba { .. } => samba::line(setting).map(|_| ()),
        _ => powershell::command(setting).map(|_| ()),
    }
}

/// A fragment of smb.conf, for an `include` at the end of it. The undo replaces the fragment.
pub fn smb_conf(settings: &[Setting], former: &FormerState) -> Written<String> {
    written(settings, former, |settings, notes| {
        let (text, unwritten) = samba::encode(settings);
        (comments('#', notes, "\n") + &text, unwritten)
    })
}

fn comments(sign: char, notes: &[String], end: &str) -> String {
    notes.iter().map(|note| format!("{sign} {note}{end}")).collect()
}

fn written<T>(
    settings: &[Setting],
    former: &FormerState,
    encode: impl Fn(&[Setting], &[String]) -> (T, Vec<Unwritten>),
) -> Written<T> {
    let (apply, unwritten) = encode(settings, &[]);
    let (back, notes) = undo_settings(settings, &unwritten, former);
    let (undo, undo_unwritten) = encode(&back, &notes);
    Written { apply, undo, unwritten, undo_unwritten, notes }
}

/// The undo of the settings that were written: what is not applied is not undone.
fn undo_settings(
    settings: &[Setting],
    unwritten: &[Unwritten],
    former: &FormerState,
) -> (Vec<Setting>, Vec<String>) {
    let skipped: BTreeSet<&Place> = unwritten.iter().map(|one| &one.place).collect();
    let applied: Vec<&Setting> =
        settings.iter().filter(|setting| !skipped.contains(&setting.place)).collect();
    undo(&applied, former)
}

/// The settings that bring the former state back, in the opposite order, and what they cannot bring back.
fn undo(settings: &[&Setting], former: &FormerState) -> (Vec<Setting>, Vec<String>) {
    let mut back = Vec::new();
    let mut notes = Vec::new();
    let mut seen = BTreeSet::new();
    for setting in settings.iter().rev() {
        if !seen.insert(setting.place.key()) {
            continue;
        }
        let mut put = |place: Place, value: Value| {
            back.push(Setting { place, value, origin: Origin::default() });
        };
        let shown = describe(&setting.place);
        match &setting.value {
            Value::DeleteValues => {
                let lost = former_values_of_key(&setting.place, former);
                if lost.is_empty() && !former.is_complete {
                    notes.push(format!(
                        "{shown}: which values were removed is not known: they do not come back"
                    ));
                }
                lost.into_iter().for_each(|old| put(old.place.clone(), old.value.clone()));
            }
            Value::DeleteNamed(names) => {
                let names = clean(&names.join(", "));
                notes.push(format!("{shown}: what was removed ({names}) does not come back"));
            }
            Value::CreateKey => notes.push(format!("{shown}: the key stays, empty")),
            _ => match former.at(&setting.place) {
                Former::Value(value) => put(setting.place.clone(), value.clone()),
                Former::Absent => put(setting.place.clone(), Value::Delete),
                Former::Unknown => {
                    notes.push(format!("{shown}: the former value is not known: it is removed, so that the default applies"));
                    put(setting.place.clone(), Value::Delete);
                }
            },
        }
    }
    (back, notes)
}

/// The former values of a key whose values were all removed.
fn former_values_of_key<'a>(place: &Place, former: &'a FormerState) -> Vec<&'a Setting> {
    let Place::Registry { scope, key, .. } = place.key() else { return Vec::new() };
    let is_of_key = |setting: &&Setting| {
        matches!(setting.place.key(), Place::Registry { scope: other, key: of, .. } if other == scope && of == key)
            && !matches!(setting.value, Value::Delete | Value::DeleteValues | Value::DeleteNamed(_))
    };
    former.settings.iter().filter(is_of_key).collect()
}

/// A place in one line, for notes.
fn describe(place: &Place) -> String {
    clean(&match place {
        Place::Registry { key, name, .. } => format!("{key}\\{name}"),
        Place::Template { section, name } => format!("[{section}] {name}"),
        Place::Audit { subcategory } => format!("auditing {subcategory}"),
        Place::Smb { object: SmbObject::Share(share), property } => {
            format!("{property} of share {share}")
        }
        Place::Smb { property, .. } => property.clone(),
        Place::Samba { share: Some(share), parameter } => format!("[{share}] {parameter}"),
        Place::Samba { share: None, parameter } => parameter.clone(),
        Place::Wire { property, .. } => property.clone(),
        Place::Extension { guid, .. } => guid.clone(),
    })
}
