//! Keytab files: long-term keys of principals, as MIT Kerberos writes them.
//!
//! Owns reading a file and the choice among a principal's keys. It does not own the format
//! (`smbscope_wire::secrets`), nor what a key is used for (`kerberos`).

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use smbscope_wire::secrets::{KeytabEntry, keytab_entries};
use zeroize::Zeroizing;

/// Largest file, in bytes: a hundred thousand users with four keys each need less.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Number of principals that an error lists.
const LISTED_MAX: usize = 5;
/// Encryption types that `sspi` supports, the strongest first: aes256-cts-hmac-sha1-96,
/// aes128-cts-hmac-sha1-96 (RFC 3962 section 7), with the length of their keys in bytes.
const USABLE: [(u16, usize); 2] = [(18, 32), (17, 16)];

/// The keys of a file.
#[derive(Clone)]
pub struct Keytab {
    path: PathBuf,
    /// By `name@REALM`; the keys of the highest version only.
    principals: BTreeMap<String, Keys>,
}

/// A principal's keys of one version.
#[derive(Clone)]
struct Keys {
    version: u32,
    keys: Vec<LongTermKey>,
}

/// A key and what it is for.
#[derive(Clone)]
pub struct LongTermKey {
    /// Encryption type (RFC 3961 section 8).
    pub encryption_type: u16,
    /// The key itself.
    pub value: Zeroizing<Vec<u8>>,
}

/// Why a keytab cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeytabError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// The contents are invalid.
    #[error("{}: {error}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        error: smbscope_wire::secrets::KeytabError,
    },
    /// The keytab does not have the principal.
    #[error("{}: no key for {principal}; {holds}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The principal whose key was looked for.
        principal: String,
        /// The principals that the keytab has.
        holds: String,
    },
}

impl fmt::Debug for Keytab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keytab({}, {} principals)", self.path.display(), self.principals.len())
    }
}

impl fmt::Debug for LongTermKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongTermKey({})", name_of(self.encryption_type))
    }
}

impl Keytab {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Keytab, KeytabError> {
        let failed = |error| KeytabError::Read { path: path.to_owned(), error };
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut bytes = Zeroizing::new(Vec::new());
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(failed(std::io::Error::other("it is larger than 64 MiB")));
        }
        Keytab::parse(path, &bytes)
    }

    /// Reads the contents of the file at `path`.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Keytab, KeytabError> {
        let mut keytab = Keytab { path: path.to_owned(), principals: BTreeMap::new() };
        let entries = keytab_entries(bytes)
            .map_err(|error| KeytabError::Malformed { path: path.to_owned(), error })?;
        entries.into_iter().for_each(|entry| keytab.add(entry));
        Ok(keytab)
    }

    fn add(&mut self, entry: KeytabEntry<'_>) {
        let empty = || Keys { version: entry.version, keys: Vec::new() };
        let keys = self.principals.entry(entry.principal).or_insert_with(empty);
        if entry.version > keys.version {
            *keys = Keys { version: entry.version, keys: Vec::new() };
        }
        if entry.version == keys.version {
            let value = Zeroizing::new(entry.key.to_vec());
            keys.keys.push(LongTermKey { encryption_type: entry.encryption_type, value });
        }
    }

    /// The strongest key of the highest version of `user@REALM`.
    pub fn key(&self, user: &str, realm: &str) -> Result<&LongTermKey, KeytabError> {
        let principal = format!("{user}@{realm}");
        let missing = |holds| KeytabError::Missing {
            path: self.path.clone(),
            principal: principal.clone(),
            holds,
        };
        let Some(held) = self.principals.get(&principal) else {
            return Err(missing(self.holds()));
        };
        let usable = USABLE.iter().find_map(|&(encryption_type, bytes)| {
            held.keys
                .iter()
                .find(|key| key.encryption_type == encryption_type && key.value.len() == bytes)
        });
        usable.ok_or_else(|| {
            let names: Vec<_> = held.keys.iter().map(|key| name_of(key.encryption_type)).collect();
            missing(format!(
                "of its version {} there is {}, and only aes256-cts-hmac-sha1-96 and \
                 aes128-cts-hmac-sha1-96 can be used",
                held.version,
                names.join(", ")
            ))
        })
    }

    fn holds(&self) -> String {
        let count = self.principals.len();
        let names: Vec<&str> = self.principals.keys().map(String::as_str).collect();
        match names.get(..LISTED_MAX) {
            _ if count == 0 => "it holds no key at all".to_owned(),
            Some(some) if count > LISTED_MAX => {
                format!("it holds {} and {} more", some.join(", "), count - LISTED_MAX)
            }
            _ => format!("it holds {}", names.join(", ")),
        }
    }
}

/// The name of an encryption type in MIT's spelling, or its number.
fn name_of(encryption_type: u16) -> String {
    match encryption_type {
        16 => "des3-cbc-sha1".to_owned(),
        17 => "aes128-cts-hmac-sha1-96".to_owned(),
        18 => "aes256-cts-hmac-sha1-96".to_owned(),
        19 => "aes128-cts-hmac-sha256-128".to_owned(),
        20 => "aes256-cts-hmac-sha384-192".to_owned(),
        23 => "arcfour-hmac".to_owned(),
        other => format!("encryption type {other}"),
    }
}

#[cfg(test)]
mod tests;
