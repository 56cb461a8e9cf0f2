//! The forms in which a namespace travels, and the small codes that several of them share: states, priorities, flags,
//! paths.
//!
//! Sources: \[MS-DFSNM\] 2.2.2.8 (priority classes), 2.2.2.13 (states), 2.3.3.1.1.2 (type bits of the blob, which are also
//! the number `Attributes` of exports of 2003), 2.3.4.2 (`msDFS-Propertiesv2`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::{Flags, Kind, PriorityClass, State};

/// How a namespace was or will be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `dfsutil /export` of Windows Server 2003: states and flags are numbers.
    Export2003,
    /// `dfsutil root export` of Windows Server 2008 and later: states are words.
    Export2008,
    /// `dfsutil /view`, which is only read.
    View,
    /// LDIF of the object of class fTDfs with its blob.
    DirectoryV1,
    /// LDIF of the objects of classes msDFS-*.
    DirectoryV2,
    /// Objects of `Get-DfsnRoot` and its companions: text, CSV or JSON; written as JSON.
    Objects,
    /// Commands of PowerShell (`New-DfsnFolder` and so on).
    Script,
    /// Symbolic links of a share of Samba.
    Msdfs,
}

impl Form {
    pub const ALL: [Form; 8] = [
        Form::Export2003,
        Form::Export2008,
        Form::View,
        Form::DirectoryV1,
        Form::DirectoryV2,
        Form::Objects,
        Form::Script,
        Form::Msdfs,
    ];

    /// The forms that can be written.
    pub const WRITTEN: [Form; 7] = [
        Form::Export2003,
        Form::Export2008,
        Form::DirectoryV1,
        Form::DirectoryV2,
        Form::Objects,
        Form::Script,
        Form::Msdfs,
    ];

    /// The name as an option's value.
    pub fn name(self) -> &'static str {
        match self {
            Form::Export2003 => "export-2003",
            Form::Export2008 => "export-2008",
            Form::View => "view",
            Form::DirectoryV1 => "ldif-v1",
            Form::DirectoryV2 => "ldif-v2",
            Form::Objects => "json",
            Form::Script => "powershell",
            Form::Msdfs => "msdfs",
        }
    }

    /// The form of a name.
    pub fn from_name(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// What a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            Form::Export2003 => "an export of dfsutil 2003",
            Form::Export2008 => "an export of dfsutil 2008",
            Form::View => "an output of dfsutil /view",
            Form::DirectoryV1 => "LDIF of Windows 2000 mode",
            Form::DirectoryV2 => "LDIF of Windows Server 2008 mode",
            Form::Objects => "objects of PowerShell",
            Form::Script => "commands of PowerShell",
            Form::Msdfs => "links of Samba",
        }
    }

    /// The kind that a namespace has because it is in this form.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Form::DirectoryV1 => Some(Kind::DomainV1),
            Form::DirectoryV2 => Some(Kind::DomainV2),
            Form::Msdfs => Some(Kind::Samba),
            _ => None,
        }
    }

    /// How keys of `other` begin that belong to this form. Keys without a prefix belong to several.
    pub fn prefix(self) -> &'static str {
        match self {
            Form::Export2003 | Form::Export2008 => "export:",
            Form::View => "view:",
            Form::DirectoryV1 => "v1:",
            Form::DirectoryV2 => "v2:",
            Form::Objects => "objects:",
            Form::Script => "script:",
            Form::Msdfs => "msdfs:",
        }
    }
}

/// The key of `other` with a state that [`State`] does not distinguish: a number, or another word.
pub const STATE_DETAIL: &str = "state";

/// A root's, link's or target's number of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stateful {
    /// Roots and links: 1 is okay, 3 offline, 4 online.
    Volume,
    /// Targets: 1 is offline, 2 online, 4 active.
    Target,
}

impl Stateful {
    /// The state of a number, and the number if the state does not say it.
    pub(super) fn state(self, code: u32) -> (State, Option<String>) {
        match (self, code) {
            (Stateful::Volume, 1) | (Stateful::Target, 2) => (State::Online, None),
            (Stateful::Volume, 3) | (Stateful::Target, 1) => (State::Offline, None),
            (Stateful::Volume, 4) | (Stateful::Target, 4 | 6) => {
                (State::Online, Some(code.to_string()))
            }
            _ => (State::Other(code), None),
        }
    }

    /// The state of a word or number.
    pub(super) fn state_of_text(self, text: &str) -> (State, Option<String>) {
        let text = text.trim();
        let code = match (self, text.to_ascii_uppercase().as_str()) {
            (Stateful::Volume, "OK" | "OKAY") => 1,
            (Stateful::Volume, "INCONSISTENT") | (Stateful::Target, "ONLINE") => 2,
            (Stateful::Volume, "OFFLINE") => 3,
            (Stateful::Volume, "ONLINE") | (Stateful::Target, "ACTIVE") => 4,
            (Stateful::Target, "OFFLINE") => 1,
            (_, other) => match other.parse() {
                // A number is kept as its digits, which are the same when they are read again.
                Ok(code)
                    if other.bytes().all(|b| b.is_ascii_digit())
                        && (other.len() == 1 || !other.starts_with('0')) =>
                {
                    code
                }
                _ => return (State::Other(0), Some(text.to_owned())),
            },
        };
        self.state(code)
    }

    /// The number of a state; none if it is a word that is not a state.
    pub(super) fn code(self, state: State, other: &BTreeMap<String, String>) -> Option<u32> {
        let detail = other.get(STATE_DETAIL);
        match (state, detail.and_then(|detail| detail.parse::<u32>().ok())) {
            (State::Online, Some(code)) if self.state(code).0 == State::Online => Some(code),
            (State::Online, _) => Some(if self == Stateful::Volume { 1 } else { 2 }),
            (State::Offline, _) => Some(if self == Stateful::Volume { 3 } else { 1 }),
            (State::Other(0), _) if detail.is_some() => None,
            (State::Other(code), _) => Some(code),
        }
    }

    /// The word of a state as exports of 2008 have it.
    pub(super) fn word(self, state: State, other: &BTreeMap<String, String>) -> String {
        let Some(code) = self.code(state, other) else {
            return other.get(STATE_DETAIL).cloned().unwrap_or_default();
        };
        match (self, code) {
            (Stateful::Volume, 1) => "OK".to_owned(),
            (Stateful::Volume, 2) => "INCONSISTENT".to_owned(),
            (Stateful::Volume, 3) | (Stateful::Target, 1) => "OFFLINE".to_owned(),
            (Stateful::Volume, 4) | (Stateful::Target, 2) => "ONLINE".to_owned(),
            (Stateful::Target, 4) => "ACTIVE".to_owned(),
            _ => code.to_string(),
        }
    }
}

/// The key of `other` of a link that leads to another namespace, in the directory.
pub(super) const INTERLINK: &str = "interlink";

/// The bits of the blob's type and of the number `Attributes`.
pub(super) const INTERLINK_BIT: u32 = 0x10;
const INSITE: u32 = 0x20;
const SITE_COSTING: u32 = 0x40;
const ROOT_SCALABILITY: u32 = 0x200;
const TARGET_FAILBACK: u32 = 0x8000;
pub(super) const FLAG_BITS: u32 = INSITE | SITE_COSTING | ROOT_SCALABILITY | TARGET_FAILBACK;

/// Flags of a number; access-based enumeration has no bit.
pub(super) fn flags_of_bits(bits: u32) -> Flags {
    Flags {
        site_costing: Some(bits & SITE_COSTING != 0),
        insite_referrals: Some(bits & INSITE != 0),
        root_scalability: Some(bits & ROOT_SCALABILITY != 0),
        access_based_enumeration: None,
        target_failback: Some(bits & TARGET_FAILBACK != 0),
    }
}

/// The number of flags.
pub(super) fn bits_of_flags(flags: &Flags) -> u32 {
    let bit = |is_set: Option<bool>, bit: u32| if is_set == Some(true) { bit } else { 0 };
    bit(flags.site_costing, SITE_COSTING)
        | bit(flags.insite_referrals, INSITE)
        | bit(flags.root_scalability, ROOT_SCALABILITY)
        | bit(flags.target_failback, TARGET_FAILBACK)
}

/// Names of a priority class: of the directory, of PowerShell, and its number in the blob.
const PRIORITY_CLASSES: [(PriorityClass, &str, &str, u8); 5] = [
    (PriorityClass::GlobalHigh, "globalHigh", "global-high", 1),
    (PriorityClass::SiteCostHigh, "siteCostHigh", "sitecost-high", 2),
    (PriorityClass::SiteCostNormal, "siteCostNormal", "sitecost-normal", 0),
    (PriorityClass::SiteCostLow, "siteCostLow", "sitecost-low", 3),
    (PriorityClass::GlobalLow, "globalLow", "global-low", 4),
];

/// The class of a name as the directory or PowerShell writes it; case and punctuation do not matter.
pub(super) fn priority_class(text: &str) -> Option<PriorityClass> {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    PRIORITY_CLASSES
        .iter()
        .find(|(_, name, _, _)| name.eq_ignore_ascii_case(&plain))
        .map(|(class, ..)| *class)
}

pub(super) fn priority_class_of_number(number: u8) -> Option<PriorityClass> {
    PRIORITY_CLASSES.iter().find(|row| row.3 == number).map(|row| row.0)
}

fn priority_row(class: PriorityClass) -> &'static (PriorityClass, &'static str, &'static str, u8) {
    PRIORITY_CLASSES.iter().find(|row| row.0 == class).unwrap_or(&PRIORITY_CLASSES[2])
}

/// The name in the directory's list of targets.
pub fn priority_name(class: PriorityClass) -> &'static str {
    priority_row(class).1
}

/// The name in PowerShell.
pub fn priority_name_powershell(class: PriorityClass) -> &'static str {
    priority_row(class).2
}

pub(super) fn priority_number(class: PriorityClass) -> u8 {
    priority_row(class).3
}

/// The parts of a UNC path: server or domain, share or namespace, the rest without backslashes around it. One leading
/// backslash is enough, as referrals and blobs have it.
pub(super) fn split_unc(path: &str) -> Option<(&str, &str, &str)> {
    let path = path.strip_prefix('\\')?;
    let path = path.strip_prefix('\\').unwrap_or(path);
    let (host, rest) = path.split_once('\\')?;
    let (name, below) = rest.split_once('\\').unwrap_or((rest, ""));
    (!host.is_empty() && !name.is_empty()).then(|| (host, name, below.trim_matches('\\')))
}

/// The server and the share with its folders of a target's UNC path; spaces and a backslash at the end are kept.
pub(super) fn split_target(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('\\')?;
    let path = path.strip_prefix('\\').unwrap_or(path);
    let (server, share) = path.split_once('\\')?;
    (!server.is_empty() && !share.is_empty()).then_some((server, share))
}

/// Parts of a path that are looked at one by one; deeper links are not below another one.
pub(super) const LEVELS_MAX: usize = 64;

/// A name as Windows compares it: without case.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.to_lowercase() }
}
