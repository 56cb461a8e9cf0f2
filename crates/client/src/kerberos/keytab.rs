//! Keytab files: long-term keys of principals, as MIT Kerberos writes them.
//!
//! Owns the format, version 0x0502 (MIT krb5's documentation, "Keytab file format"), and the choice
//! among a principal's keys. It does not own what a key is used for (`kerberos`). The file is untrusted
//! data: every inconsistency is an error with its offset.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sspi::Secret;

/// Largest file, in bytes: a hundred thousand users with four keys each need less.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Number of principals that an error lists.
const LISTED_MOST: usize = 5;
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
    pub value: Secret<Vec<u8>>,
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
    #[error("{}: not a valid keytab: {reason} (byte {offset})", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
        /// Where in the file, in bytes.
        offset: usize,
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

/// An entry of the file.
struct Entry<'a> {
    principal: String,
    version: u32,
    encryption_type: u16,
    key: &'a [u8],
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
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(failed(std::io::Error::other("it is larger than 64 MiB")));
        }
        let keytab = Keytab::parse(path, &bytes);
        zeroize(bytes);
        keytab
    }

    /// Reads the contents of the file at `path`.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Keytab, KeytabError> {
        let malformed =
            |(reason, offset)| KeytabError::Malformed { path: path.to_owned(), reason, offset };
        let mut keytab = Keytab { path: path.to_owned(), principals: BTreeMap::new() };
        let mut entries = Entries::new(bytes).map_err(malformed)?;
        while let Some(entry) = entries.next().map_err(malformed)? {
            keytab.add(entry);
        }
        Ok(keytab)
    }

    fn add(&mut self, entry: Entry<'_>) {
        let empty = || Keys { version: entry.version, keys: Vec::new() };
        let keys = self.principals.entry(entry.principal).or_insert_with(empty);
        if entry.version > keys.version {
            *keys = Keys { version: entry.version, keys: Vec::new() };
        }
        if entry.version == keys.version {
            let value = Secret::new(entry.key.to_vec());
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
            held.keys.iter().find(|key| {
                key.encryption_type == encryption_type && key.value.as_ref().len() == bytes
            })
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
        match names.get(..LISTED_MOST) {
            _ if count == 0 => "it holds no key at all".to_owned(),
            Some(some) if count > LISTED_MOST => {
                format!("it holds {} and {} more", some.join(", "), count - LISTED_MOST)
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

/// Wipes the bytes of a file of keys.
fn zeroize(bytes: Vec<u8>) {
    drop(Secret::new(bytes));
}

/// What is wrong, and where.
type Wrong = (&'static str, usize);

/// The entries of a file, one after the other.
struct Entries<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8]) -> Result<Entries<'a>, Wrong> {
        match bytes.get(..2) {
            Some([5, 2]) => Ok(Entries { bytes, offset: 2 }),
            // Its numbers have the byte order of the machine that wrote it; the version is obsolete.
            Some([5, 1]) => Err(("its version is 0x0501, only 0x0502 is read", 0)),
            _ => Err(("it does not begin with version 0x0502", 0)),
        }
    }

    /// The next entry; `None` at the end of the file or at a length of zero.
    fn next(&mut self) -> Result<Option<Entry<'a>>, Wrong> {
        loop {
            if self.offset == self.bytes.len() {
                return Ok(None);
            }
            let mut file = Fields { bytes: self.bytes, offset: self.offset };
            let length = file.take::<4>("the length of an entry is cut off")?;
            let length = i32::from_be_bytes(length);
            if length == 0 {
                return Ok(None);
            }
            // A negative length marks a hole where an entry was removed.
            let begin = file.offset;
            let end = usize::try_from(length.unsigned_abs())
                .ok()
                .and_then(|length| begin.checked_add(length))
                .filter(|end| *end <= self.bytes.len())
                .ok_or(("an entry goes beyond the end of the file", self.offset))?;
            self.offset = end;
            if length > 0 {
                let bytes = self.bytes.get(..end).unwrap_or_default();
                return entry(Fields { bytes, offset: begin }).map(Some);
            }
        }
    }
}

fn entry(mut fields: Fields<'_>) -> Result<Entry<'_>, Wrong> {
    let components = u16::from_be_bytes(fields.take("an entry is cut off")?);
    let realm = fields.text()?;
    let mut principal = String::new();
    for number in 0..components {
        if number > 0 {
            principal.push('/');
        }
        principal.push_str(&fields.text()?);
    }
    principal.push('@');
    principal.push_str(&realm);
    fields.take::<4>("an entry is cut off before its name type")?;
    fields.take::<4>("an entry is cut off before its time")?;
    let [short_version] = fields.take("an entry is cut off before its version")?;
    let encryption_type = u16::from_be_bytes(fields.take("an entry is cut off before its key")?);
    let key = fields.counted("a key goes beyond its entry")?;
    // A 32-bit version may follow; zero means that there is none.
    let long_version = fields.take::<4>("").map_or(0, u32::from_be_bytes);
    let version = if long_version == 0 { u32::from(short_version) } else { long_version };
    Ok(Entry { principal, version, encryption_type, key })
}

/// The fields of an entry.
struct Fields<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self, reason: &'static str) -> Result<[u8; N], Wrong> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let (field, _) = rest.split_first_chunk::<N>().ok_or((reason, self.offset))?;
        self.offset += N;
        Ok(*field)
    }

    fn counted(&mut self, reason: &'static str) -> Result<&'a [u8], Wrong> {
        let at = self.offset;
        let length = usize::from(u16::from_be_bytes(self.take(reason)?));
        let end = self.offset + length;
        let field = self.bytes.get(self.offset..end).ok_or((reason, at))?;
        self.offset = end;
        Ok(field)
    }

    /// A part of a name. Invalid UTF-8 equals no name that a caller looks for.
    fn text(&mut self) -> Result<String, Wrong> {
        let bytes = self.counted("a name goes beyond its entry")?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests;
