//! Where readers put what they read, with limits.

use super::super::setting::{Origin, Place, Setting, Value};
use super::ReadError;
use crate::input::unknown::Unknowns;

/// Settings of one baseline; genuine ones have less than a thousand.
pub const SETTINGS_MAX: usize = 200_000;
/// Entries of damage.
const DAMAGE_MAX: usize = 1_000;

/// Everything that the files of one input gave.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) settings: Vec<Setting>,
    pub(super) settings_omitted: u64,
    pub(super) unknown: Unknowns,
    pub(super) damage: Vec<ReadError>,
    /// Files that other files include, and their bytes.
    included: (usize, usize),
}

impl Output {
    pub(super) fn damage(&mut self, file: &str, position: u64, message: impl Into<String>) {
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(ReadError {
                file: file.to_owned(),
                position,
                message: message.into(),
            });
        }
    }
}

/// The output of one file's reader.
pub(super) struct Sink<'a> {
    file: &'a str,
    policy: Option<String>,
    note: Option<String>,
    output: &'a mut Output,
}

impl<'a> Sink<'a> {
    pub(super) fn new(file: &'a str, policy: Option<String>, output: &'a mut Output) -> Self {
        Self { file, policy, note: None, output }
    }

    pub(super) fn setting(&mut self, position: u64, place: Place, value: Value) {
        let policy = self.policy.clone();
        self.setting_from(self.file, policy, position, place, value);
    }

    /// A setting of a policy that the file itself names.
    pub(super) fn setting_of(
        &mut self,
        policy: Option<String>,
        position: u64,
        place: Place,
        value: Value,
    ) {
        let policy = policy.or_else(|| self.policy.clone());
        self.setting_from(self.file, policy, position, place, value);
    }

    /// A setting of a file that this one includes.
    pub(super) fn setting_in(&mut self, file: &str, position: u64, place: Place, value: Value) {
        let policy = self.policy.clone();
        self.setting_from(file, policy, position, place, value);
    }

    fn setting_from(
        &mut self,
        file: &str,
        policy: Option<String>,
        position: u64,
        place: Place,
        value: Value,
    ) {
        if self.output.settings.len() >= SETTINGS_MAX {
            if self.output.settings_omitted == 0 {
                let message = format!("more than {SETTINGS_MAX} settings: the rest is left out");
                self.output.damage(file, position, message);
            }
            self.output.settings_omitted += 1;
            return;
        }
        let origin = Origin { file: file.to_owned(), position, policy };
        self.output.settings.push(Setting { place, value, origin });
    }

    pub(super) fn unknown(&mut self, position: u64, text: &str, why: &str) {
        self.output.unknown.note(self.file, position, text, why);
    }

    pub(super) fn unknown_in(&mut self, file: &str, position: u64, text: &str, why: &str) {
        self.output.unknown.note(file, position, text, why);
    }

    pub(super) fn damage(&mut self, position: u64, message: impl Into<String>) {
        self.output.damage(self.file, position, message);
    }

    /// Counts a file that another one includes; the number and the bytes of all.
    pub(super) fn included(&mut self, bytes: usize) -> (usize, usize) {
        self.output.included.0 += 1;
        self.output.included.1 += bytes;
        self.output.included
    }

    /// What one should know about how the file was read; the first note is kept.
    pub(super) fn note(&mut self, note: &str) {
        self.note.get_or_insert_with(|| note.to_owned());
    }

    pub(super) fn into_note(self) -> Option<String> {
        self.note
    }
}
