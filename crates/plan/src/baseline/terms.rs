//! A baseline in the catalogue's terms: each setting that is known once, whatever place it was set in.
//!
//! Owns which place counts where several mean the same: what was seen on the wire, then a policy's own key
//! (`SOFTWARE\Policies`), then the place that was set last. Places that disagree are listed. What the catalogue does
//! not know passes through.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::catalogue::value::canonical;
use super::catalogue::{self, Kind, Row, System};
use super::effective::{Claim, Effective, EffectiveValue};
use super::hardened::{self, Demands};
use super::setting::{Place, SmbObject};

/// A setting, of all shares or of one share or path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SettingKey {
    pub id: String,
    /// A share's name, or the pattern of a hardened path; lower case.
    pub of: Option<String>,
}

/// A known setting with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    pub key: SettingKey,
    /// In the catalogue's spelling.
    pub value: String,
    pub place: Place,
    pub claim: Claim,
    /// Whether a live server showed it.
    pub is_seen: bool,
    /// What inputs said before of the same place.
    pub replaced: Vec<Claim>,
    /// Other places of the same meaning that say something else.
    pub others: Vec<Other>,
}

/// A place of the same meaning with another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    pub place: Place,
    pub value: String,
    pub claim: Claim,
}

/// A baseline in the catalogue's terms.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub known: BTreeMap<SettingKey, Term>,
    /// Known settings that were removed.
    pub removed: Vec<SettingKey>,
    /// Settings that the catalogue does not have, by place.
    pub unknown: BTreeMap<Place, EffectiveValue>,
    /// Settings that were read, before precedence.
    pub settings: u64,
}

impl Terms {
    /// From what is effective.
    pub fn from_effective(effective: Effective) -> Terms {
        let mut terms = Terms { settings: effective.settings, ..Terms::default() };
        for (place, value) in effective.values {
            // Which extension applies a policy is not a setting.
            if matches!(place, Place::Extension { .. }) {
                continue;
            }
            match catalogue::find(&place).and_then(|(row, pattern)| {
                let text = canonical(row, pattern, &value.claim.value)?;
                Some((row, text))
            }) {
                Some((row, text)) => terms.add(row, text, value),
                None => {
                    terms.unknown.insert(place, value);
                }
            }
        }
        for value in effective.removed {
            if let Some((row, _)) = catalogue::find(&value.place) {
                let key = SettingKey { id: row.id.clone(), of: of(row, &value.place) };
                if !terms.known.contains_key(&key) {
                    terms.removed.push(key);
                }
            }
        }
        terms
    }

    /// The value of a setting of all shares.
    pub fn value(&self, id: &str) -> Option<&str> {
        let key = SettingKey { id: id.to_owned(), of: None };
        self.known.get(&key).map(|term| term.value.as_str())
    }

    /// Terms of one setting: of all, and of shares or paths.
    pub fn all(&self, id: &str) -> impl Iterator<Item = &Term> {
        let first = SettingKey { id: id.to_owned(), of: None };
        let of_id = self.known.range(first..).take_while({
            let id = id.to_owned();
            move |(key, _)| key.id == id
        });
        of_id.map(|(_, term)| term)
    }

    fn add(&mut self, row: &Row, value: String, from: EffectiveValue) {
        let key = SettingKey { id: row.id.clone(), of: of(row, &from.place) };
        let term = Term {
            is_seen: matches!(from.place, Place::Wire { .. }),
            key: key.clone(),
            value,
            place: from.place,
            claim: from.claim,
            replaced: from.replaced,
            others: Vec::new(),
        };
        let Some(known) = self.known.remove(&key) else {
            self.known.insert(key, term);
            return;
        };
        let (mut term, mut other) =
            if weight(&term) >= weight(&known) { (term, known) } else { (known, term) };
        term.others.append(&mut other.others);
        if other.value != term.value {
            term.others.push(Other { place: other.place, value: other.value, claim: other.claim });
        }
        term.others.retain(|other| other.value != term.value);
        self.known.insert(key, term);
    }
}

/// Which of two places of one meaning counts.
fn weight(term: &Term) -> u8 {
    match &term.place {
        Place::Wire { .. } => 3,
        Place::Registry { key, .. } if is_policy(key) => 2,
        // What a cmdlet prints is what the machine uses, unless a policy sets it later.
        Place::Registry { .. } => 1,
        _ => 0,
    }
}

fn is_policy(key: &str) -> bool {
    key.to_lowercase().starts_with(r"software\policies\")
}

/// The share or path that a place is about.
fn of(row: &Row, place: &Place) -> Option<String> {
    match place {
        Place::Registry { name, .. } if row.kind == Kind::Hardened => Some(name.to_lowercase()),
        Place::Smb { object: SmbObject::Share(share), .. } => Some(share.to_lowercase()),
        Place::Samba { share, .. } | Place::Wire { share, .. } => {
            share.as_deref().map(str::to_lowercase)
        }
        _ => None,
    }
}

/// A place as people read it.
pub fn place_title(place: &Place) -> String {
    match place {
        Place::Registry { key, name, .. } => format!("{key}\\{name}"),
        Place::Template { section, name } => format!("[{section}] {name}"),
        Place::Audit { subcategory } => format!("audit {subcategory}"),
        Place::Smb { object, property } => match object {
            SmbObject::Server => format!("SmbServerConfiguration.{property}"),
            SmbObject::Client => format!("SmbClientConfiguration.{property}"),
            SmbObject::Share(share) => format!("SmbShare({share}).{property}"),
        },
        Place::Samba { share: Some(share), parameter } => format!("[{share}] {parameter}"),
        Place::Samba { share: None, parameter } => parameter.clone(),
        Place::Wire { property, .. } => format!("on the wire: {property}"),
        Place::Extension { guid, .. } => format!("extension {guid}"),
    }
}

/// The shares of domain controllers with policies and logon scripts.
const OF_DOMAINS: [&str; 2] = ["sysvol", "netlogon"];

/// What a version demands of a path where no policy says anything: Windows 10, Windows Server 2016 and later demand mutual
/// authentication and integrity of the shares SYSVOL and NETLOGON of every server.
pub fn default_demands(key: &SettingKey, system: Option<System>) -> Option<Demands> {
    let is_known = system? != System::Windows2012R2 && !system?.is_samba();
    let pattern = key.of.as_deref().filter(|_| is_known && key.id == "hardened-path")?;
    let parts = hardened::parts(pattern);
    let [_, share] = &parts[..] else { return None };
    OF_DOMAINS.contains(&share.as_str()).then_some(Demands {
        mutual_authentication: true,
        integrity: true,
        privacy: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_clients_demand_protection_of_the_shares_of_domains() {
        let default = |of: &str, system| {
            let key = SettingKey { id: "hardened-path".to_owned(), of: Some(of.to_owned()) };
            default_demands(&key, system).map(|one| one.to_string())
        };
        let both = "RequireMutualAuthentication=1,RequireIntegrity=1,RequirePrivacy=0";
        assert_eq!(default(r"\\*\netlogon", Some(System::Windows2022)).as_deref(), Some(both));
        assert_eq!(default(r"\\*\sysvol", Some(System::Windows2012R2)), None);
        assert_eq!(default(r"\\*\sysvol", None), None);
        assert_eq!(default(r"\\fs1\daten", Some(System::Windows2022)), None);
    }
}
