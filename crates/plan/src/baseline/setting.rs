//! One setting as an input has it: where it is set, to which value, and where that was read.
//!
//! Owns the vocabulary between the readers, the catalogue of known settings and the writers. It does not know what a
//! setting means.

use serde::{Deserialize, Serialize};

/// Whose settings these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Computer,
    User,
}

/// What a PowerShell cmdlet describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmbObject {
    /// `Get-SmbServerConfiguration`.
    Server,
    /// `Get-SmbClientConfiguration`.
    Client,
    /// `Get-SmbShare`, with the share's name.
    Share(String),
}

/// Where a setting is set. Names keep the spelling of the input; comparisons ignore the case (see [`Place::key`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A value of the registry. `key` is below the hive (`SYSTEM\CurrentControlSet\...`), without a backslash at
    /// either end; `name` is empty for the key's default value.
    Registry { scope: Scope, key: String, name: String },
    /// A line of a security template's section that is not the registry (`System Access`, `Privilege Rights` ...).
    Template { section: String, name: String },
    /// A subcategory of advanced auditing, by the GUID in braces if the input has one, else by its name.
    Audit { subcategory: String },
    /// A property that a cmdlet prints.
    Smb { object: SmbObject, property: String },
    /// A parameter of smb.conf, under its canonical name; `[global]` has no `share`.
    Samba { share: Option<String>, parameter: String },
    /// What a live server showed on the wire (`SigningRequired`, `Dialect`, `Cipher`, `ShareEncryption` ...); the
    /// server itself has no `share`.
    Wire { share: Option<String>, property: String },
    /// A client-side extension that a group policy names, by its GUID.
    Extension { scope: Scope, guid: String },
}

impl Place {
    /// The place in lower case, by which the same setting of two inputs is found.
    pub fn key(&self) -> Self {
        let lower = |text: &str| text.to_lowercase();
        match self {
            Self::Registry { scope, key, name } => {
                Self::Registry { scope: *scope, key: lower(key), name: lower(name) }
            }
            Self::Template { section, name } => {
                Self::Template { section: lower(section), name: lower(name) }
            }
            Self::Audit { subcategory } => Self::Audit { subcategory: lower(subcategory) },
            Self::Smb { object, property } => Self::Smb {
                object: match object {
                    SmbObject::Share(share) => SmbObject::Share(lower(share)),
                    other => other.clone(),
                },
                property: lower(property),
            },
            Self::Samba { share, parameter } => {
                Self::Samba { share: share.as_deref().map(lower), parameter: lower(parameter) }
            }
            Self::Wire { share, property } => {
                Self::Wire { share: share.as_deref().map(lower), property: lower(property) }
            }
            Self::Extension { scope, guid } => Self::Extension { scope: *scope, guid: lower(guid) },
        }
    }
}

/// To what a setting is set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// `REG_DWORD`.
    Dword(u32),
    /// `REG_QWORD`.
    Qword(u64),
    /// `REG_SZ`, and every text that has no type.
    Text(String),
    /// `REG_EXPAND_SZ`.
    ExpandText(String),
    /// `REG_MULTI_SZ`.
    MultiText(Vec<String>),
    /// `REG_BINARY`.
    Binary(Vec<u8>),
    /// Another type of the registry, or data that its type does not allow: the type and the bytes as they are.
    Other { kind: u32, bytes: Vec<u8> },
    /// The value is removed (`**del.NAME`, `DELETE`).
    Delete,
    /// All values of the key are removed before others are set (`**delvals.`, `DELETEALLVALUES`).
    DeleteValues,
    /// The keys with these names are removed (`**DeleteKeys`), or the values (`**DeleteValues`).
    DeleteNamed(Vec<String>),
    /// The key is made, without a value (`CREATEKEY`).
    CreateKey,
    /// Named without a value.
    None,
}

/// Where a setting was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the input, and of the file in it (`current.zip/{GUID}/.../registry.pol`).
    pub file: String,
    /// Line (from 1) of a text, offset in bytes of anything else.
    pub position: u64,
    /// Name of the policy that the input gives, if it gives one.
    pub policy: Option<String>,
}

/// One setting of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub place: Place,
    pub value: Value,
    pub origin: Origin,
}
