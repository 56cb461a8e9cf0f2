//! Places of a row of the catalogue: how they are written in its file, which [`Place`]s they mean, and how a value is
//! written there.
//!
//! `reg:KEY\NAME` (`*` for any name), `ps:server.PROPERTY`, `ps:client.`, `ps:share.`, `conf:PARAMETER`,
//! `conf:[share]PARAMETER` (only for shares), `wire:PROPERTY`, `audit:SUBCATEGORY`, `template:SECTION\NAME`. `!` before the
//! last name inverts a flag; `{word=value,...}` at the end translates words.

use super::super::setting::{Place, Scope, SmbObject, Value};
use super::{Kind, Row};

/// A place of a row, in lower case, by which it is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PlaceKey {
    Registry {
        key: String,
        name: String,
    },
    Server(String),
    Client(String),
    Share(String),
    /// `of_share`: the row is about this parameter of shares only.
    Samba {
        parameter: String,
        of_share: bool,
    },
    Wire(String),
    Audit(String),
    Template {
        section: String,
        name: String,
    },
}

impl PlaceKey {
    /// The keys that may find a place, the closest first.
    pub fn from_place(place: &Place) -> Vec<PlaceKey> {
        match place.key() {
            Place::Registry { scope: Scope::Computer, key, name } => vec![
                PlaceKey::Registry { key: key.clone(), name },
                PlaceKey::Registry { key, name: "*".to_owned() },
            ],
            Place::Smb { object: SmbObject::Server, property } => vec![PlaceKey::Server(property)],
            Place::Smb { object: SmbObject::Client, property } => vec![PlaceKey::Client(property)],
            Place::Smb { object: SmbObject::Share(_), property } => vec![PlaceKey::Share(property)],
            Place::Samba { share, parameter } => {
                let key = |of_share| PlaceKey::Samba { parameter: parameter.clone(), of_share };
                match share {
                    Some(_) => vec![key(true), key(false)],
                    None => vec![key(false)],
                }
            }
            Place::Wire { property, .. } => vec![PlaceKey::Wire(property)],
            Place::Audit { subcategory } => vec![PlaceKey::Audit(subcategory)],
            Place::Template { section, name } => vec![PlaceKey::Template { section, name }],
            Place::Registry { scope: Scope::User, .. } | Place::Extension { .. } => Vec::new(),
        }
    }
}

/// A place as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacePattern {
    pub key: PlaceKey,
    /// With the spelling of the file: key and name of the registry, or the property.
    spelling: (String, String),
    /// Whether its value is the opposite of the row's.
    pub is_inverted: bool,
    /// Words and the row's values for them.
    pub words: Vec<(String, String)>,
}

impl PlacePattern {
    /// Reads a place.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<PlacePattern, String> {
        let wrong = || format!("`{text}` is not a place");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (rest, words) = match rest.split_once('{').filter(|_| kind != "audit") {
            None => (rest, Vec::new()),
            Some((rest, words)) => (rest, translations(words).ok_or_else(wrong)?),
        };
        let is_inverted = rest.contains('!');
        let rest = rest.replacen('!', "", 1);
        let lower = |text: &str| text.to_lowercase();
        let pair = |text: &str| text.rsplit_once('\\').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let alone = |text: &str| (String::new(), text.to_owned());
        let (key, spelling) = match kind {
            "reg" => {
                let (key, name) = pair(&rest).ok_or_else(wrong)?;
                (PlaceKey::Registry { key: lower(&key), name: lower(&name) }, (key, name))
            }
            "template" => {
                let (section, name) = pair(&rest).ok_or_else(wrong)?;
                let key = PlaceKey::Template { section: lower(&section), name: lower(&name) };
                (key, (section, name))
            }
            "ps" => {
                let (object, property) = rest.split_once('.').ok_or_else(wrong)?;
                let key = match object {
                    "server" => PlaceKey::Server(lower(property)),
                    "client" => PlaceKey::Client(lower(property)),
                    "share" => PlaceKey::Share(lower(property)),
                    _ => return Err(wrong()),
                };
                (key, alone(property))
            }
            "conf" => {
                let of_share = rest.strip_prefix("[share]");
                let parameter = of_share.unwrap_or(&rest);
                let key =
                    PlaceKey::Samba { parameter: lower(parameter), of_share: of_share.is_some() };
                (key, alone(parameter))
            }
            "wire" => (PlaceKey::Wire(lower(&rest)), alone(&rest)),
            "audit" => (PlaceKey::Audit(lower(&rest)), alone(&rest)),
            _ => return Err(wrong()),
        };
        Ok(PlacePattern { key, spelling, is_inverted, words })
    }

    /// The place, of this share where it is one of shares; none where a share is needed, or any name would do.
    pub fn place(&self, share: Option<&str>) -> Option<Place> {
        let (first, last) = self.spelling.clone();
        let smb = |object, property| Some(Place::Smb { object, property });
        match &self.key {
            PlaceKey::Registry { name, .. } if name == "*" => None,
            PlaceKey::Registry { .. } => {
                Some(Place::Registry { scope: Scope::Computer, key: first, name: last })
            }
            PlaceKey::Server(_) => smb(SmbObject::Server, last),
            PlaceKey::Client(_) => smb(SmbObject::Client, last),
            PlaceKey::Share(_) => smb(SmbObject::Share(share?.to_owned()), last),
            PlaceKey::Samba { of_share: true, .. } => {
                Some(Place::Samba { share: Some(share?.to_owned()), parameter: last })
            }
            PlaceKey::Samba { .. } => {
                Some(Place::Samba { share: share.map(str::to_owned), parameter: last })
            }
            PlaceKey::Wire(_) => {
                Some(Place::Wire { share: share.map(str::to_owned), property: last })
            }
            PlaceKey::Audit(_) => Some(Place::Audit { subcategory: last }),
            PlaceKey::Template { .. } => Some(Place::Template { section: first, name: last }),
        }
    }

    /// How a value of the row is written here; none where it cannot be.
    pub fn write(&self, row: &Row, canonical: &str) -> Option<Value> {
        let inverted = |text: &str| if text == "0" { "1".to_owned() } else { "0".to_owned() };
        let text = match (self.is_inverted, row.kind) {
            (true, Kind::Flag) => inverted(canonical),
            _ => canonical.to_owned(),
        };
        let word = self.words.iter().find(|(_, value)| *value == text).map(|(word, _)| word);
        match (&self.key, word) {
            (_, Some(word)) => Some(Value::Text(word.clone())),
            (PlaceKey::Registry { .. } | PlaceKey::Template { .. }, None) => match text.parse() {
                Ok(number) => Some(Value::Dword(number)),
                Err(_) => Some(Value::Text(text)),
            },
            (PlaceKey::Server(_) | PlaceKey::Client(_) | PlaceKey::Share(_), None) => {
                Some(Value::Text(match (row.kind, text.as_str()) {
                    (Kind::Flag, "0") => "False".to_owned(),
                    (Kind::Flag, _) => "True".to_owned(),
                    (Kind::Dialect, number) => dialect_word(number)?.replace('_', ""),
                    (Kind::List, list) => list.to_uppercase().replace('-', "_").replace(',', ", "),
                    _ => text,
                }))
            }
            (PlaceKey::Samba { .. }, None) => Some(Value::Text(match (row.kind, text.as_str()) {
                (Kind::Flag, "0") => "no".to_owned(),
                (Kind::Flag, _) => "yes".to_owned(),
                (Kind::Dialect, number) => dialect_word(number)?.to_owned(),
                (Kind::List, list) => list.to_uppercase().replace(',', ", "),
                _ => text,
            })),
            (PlaceKey::Audit(_), None) => Some(Value::Text(text)),
            (PlaceKey::Wire(_), None) => None,
        }
    }
}

/// The name of a dialect in smb.conf; PowerShell's has no `_`.
fn dialect_word(number: &str) -> Option<&'static str> {
    match number {
        "514" => Some("SMB2_02"),
        "528" => Some("SMB2_10"),
        "768" => Some("SMB3_00"),
        "770" => Some("SMB3_02"),
        "785" => Some("SMB3_11"),
        _ => None,
    }
}

/// `word=value,word=value}`.
fn translations(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.strip_suffix('}')?.split(',').map(|pair| {
        let (word, value) = pair.split_once('=')?;
        Some((word.to_owned(), value.to_owned()))
    });
    pairs.collect()
}
