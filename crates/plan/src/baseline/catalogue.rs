//! The settings that touch a file server, as data: one row each in `catalogue/settings.csv`.
//!
//! Owns what a setting is called, where it is set, its defaults, and what it does; each row names its document. Several
//! places of one row mean the same ([`place`]), with values that [`value`] makes comparable. It does not know what a
//! baseline contains.
//!
//! Sources are in the column `source`. Defaults of Samba are those of `testparm -sv`; a test compares them where Samba is
//! installed. An empty default is not documented, `-` means that this version does not have the setting.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::setting::Place;

pub mod parameters;
pub mod place;
pub mod reach;
pub mod value;

#[cfg(test)]
mod tests;

use place::{PlaceKey, PlacePattern};

const TEXT: &str = include_str!("catalogue/settings.csv");

/// Whose behaviour a setting changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Server,
    Client,
    Both,
}

/// How values of a setting are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Flag,
    Number,
    Choice,
    List,
    Dialect,
    Audit,
    /// Demands on a UNC path ([`super::hardened`]).
    Hardened,
    Text,
}

/// What a change of a setting costs, by the way in which it can be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostKey {
    /// No effect on the speed of file serving.
    None,
    Signing,
    Encryption,
    /// Signing or encryption of some paths.
    Hardened,
    /// The dialect, which decides algorithms and features.
    Dialect,
    Smb1,
    WriteThrough,
    Flush,
    Leases,
    DirectoryLeases,
    CacheLifetime,
    LargeMtu,
    Credits,
    Threads,
    Copies,
    Multichannel,
    Throttling,
    Compression,
    Auditing,
    Authentication,
    Sessions,
    Storage,
    Locks,
    Listing,
    CaseLookup,
    Notify,
    Offline,
    Tcp,
    Rss,
}

/// A version with its own defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    Windows2012R2,
    Windows2016,
    Windows2019,
    Windows2022,
    Windows2025,
    Windows10,
    Windows11H24,
    Samba417,
    Samba422,
}

impl System {
    /// All, in the order of the columns.
    pub const ALL: [System; 9] = [
        System::Windows2012R2,
        System::Windows2016,
        System::Windows2019,
        System::Windows2022,
        System::Windows2025,
        System::Windows10,
        System::Windows11H24,
        System::Samba417,
        System::Samba422,
    ];

    /// The word for the command line.
    pub fn name(self) -> &'static str {
        match self {
            System::Windows2012R2 => "2012r2",
            System::Windows2016 => "2016",
            System::Windows2019 => "2019",
            System::Windows2022 => "2022",
            System::Windows2025 => "2025",
            System::Windows10 => "windows-10",
            System::Windows11H24 => "windows-11-24h2",
            System::Samba417 => "samba-4.17",
            System::Samba422 => "samba-4.22",
        }
    }

    /// As people read it.
    pub fn title(self) -> &'static str {
        match self {
            System::Windows2012R2 => "Windows Server 2012 R2",
            System::Windows2016 => "Windows Server 2016",
            System::Windows2019 => "Windows Server 2019",
            System::Windows2022 => "Windows Server 2022",
            System::Windows2025 => "Windows Server 2025",
            System::Windows10 => "Windows 10",
            System::Windows11H24 => "Windows 11 24H2",
            System::Samba417 => "Samba 4.17",
            System::Samba422 => "Samba 4.22",
        }
    }

    /// The version of that name, ignoring case.
    ///
    /// # Errors
    ///
    /// A sentence with the names that exist.
    pub fn of_name(name: &str) -> Result<System, String> {
        System::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names = System::ALL.map(System::name).join(", ");
            format!("unknown version `{name}`: expected one of {names}")
        })
    }

    /// Whether it can sign with AES-GMAC: Windows Server 2022 and Windows 11 were the first of Microsoft's, and Samba has
    /// it in its default list.
    pub fn has_gmac(self) -> bool {
        !matches!(
            self,
            System::Windows2012R2 | System::Windows2016 | System::Windows2019 | System::Windows10
        )
    }

    /// Whether it is a version of Samba.
    pub fn is_samba(self) -> bool {
        matches!(self, System::Samba417 | System::Samba422)
    }
}

/// Which value protects more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stricter {
    /// None is known to protect more.
    Unknown,
    /// The larger number.
    More,
    /// This value.
    Value(String),
}

/// A default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset<'a> {
    Unknown,
    /// The version does not have the setting.
    Absent,
    Value(&'a str),
}

/// One setting.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub role: Role,
    pub places: Vec<PlacePattern>,
    pub kind: Kind,
    /// Unit of a number; empty without one.
    pub unit: String,
    defaults: Vec<String>,
    /// Allowed values, in words.
    pub allowed: String,
    pub meaning: String,
    pub performance: String,
    pub security: String,
    pub compatibility: String,
    pub cost: CostKey,
    pub stricter: Stricter,
    /// Why it has no effect; empty if it has one.
    pub no_effect: String,
    pub source: String,
}

impl Row {
    /// The default of a version.
    pub fn default_of(&self, system: System) -> Preset<'_> {
        match self.defaults.get(system as usize).map_or("", String::as_str) {
            "" if self.kind == Kind::Text && system.is_samba() && self.is_of_samba() => {
                Preset::Value("")
            }
            "" => Preset::Unknown,
            "-" => Preset::Absent,
            value => Preset::Value(value),
        }
    }

    /// Whether SMB 2 and 3 can become slow by it.
    pub fn can_slow(&self) -> bool {
        let is_none = ["None", "Little"].iter().any(|word| self.performance.starts_with(word));
        !is_none && self.no_effect.is_empty() && !matches!(self.cost, CostKey::None | CostKey::Smb1)
    }

    /// Whether it is set in smb.conf.
    pub fn is_of_samba(&self) -> bool {
        self.places.iter().any(|place| matches!(place.key, PlaceKey::Samba { .. }))
    }
}

/// All rows, in the order of the file.
pub fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    // That the embedded file can be read is tested; without it nothing is known.
    ROWS.get_or_init(|| parse(TEXT).unwrap_or_default())
}

/// The row of that identifier.
pub fn row(id: &str) -> Option<&'static Row> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let index = INDEX.get_or_init(|| rows().iter().map(|row| (row.id.as_str(), row)).collect());
    index.get(id).copied()
}

/// The row that a place belongs to, and how it is written there.
pub fn find(place: &Place) -> Option<(&'static Row, &'static PlacePattern)> {
    static INDEX: OnceLock<HashMap<PlaceKey, (usize, usize)>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let all = rows().iter().enumerate().flat_map(|(row, one)| {
            one.places.iter().enumerate().map(move |(place, one)| (one.key.clone(), (row, place)))
        });
        all.collect()
    });
    let (row, place) = PlaceKey::from_place(place).into_iter().find_map(|key| index.get(&key))?;
    let row = rows().get(*row)?;
    Some((row, row.places.get(*place)?))
}

/// Reads the file.
///
/// # Errors
///
/// What is wrong, with the line.
fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let mut fields = record.iter().map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let failed = |what: &str, text: &str| format!("line {line}: `{text}` is not {what}");
        let (id, role, places, kind, unit) = (next(), next(), next(), next(), next());
        let defaults = System::ALL.iter().map(|_| next()).collect();
        let (allowed, meaning, performance) = (next(), next(), next());
        let (security, compatibility, cost) = (next(), next(), next());
        let (stricter, no_effect, source) = (next(), next(), next());
        let places: Result<Vec<_>, _> = places.split('|').map(PlacePattern::parse).collect();
        rows.push(Row {
            role: word(&role).ok_or_else(|| failed("a side", &role))?,
            kind: word(&kind).ok_or_else(|| failed("a kind", &kind))?,
            cost: word(&cost).ok_or_else(|| failed("a cost key", &cost))?,
            places: places.map_err(|why| format!("line {line}: {why}"))?,
            stricter: match stricter.as_str() {
                "" => Stricter::Unknown,
                "more" => Stricter::More,
                _ => Stricter::Value(stricter),
            },
            id,
            unit,
            defaults,
            allowed,
            meaning,
            performance,
            security,
            compatibility,
            no_effect,
            source,
        });
    }
    Ok(rows)
}

/// A word of an enumeration.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).ok()
}
