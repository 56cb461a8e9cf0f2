//! Keytab files: long-term keys of principals, as MIT Kerberos, Heimdal, Samba and `ktpass` write them.
//!
//! Owns the format, versions 0x0502 and 0x0501 (MIT krb5's documentation, "Keytab file format"). The
//! numbers of version 0x0501 have the byte order of the machine that wrote the file; the one in which
//! the whole file makes sense is taken. It does not own what a key is used for (`kerberos`, and the
//! crate `smbscope-client`). The file is untrusted: every inconsistency is an error with its offset.

use std::fmt;

/// Entries of one file; a hundred thousand users with four keys each are a large domain.
const ENTRIES_MAX: usize = 1 << 20;

/// Why a keytab cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeytabError {
    /// What is wrong.
    pub reason: &'static str,
    /// Where in the file, in bytes.
    pub offset_bytes: usize,
}

impl fmt::Display for KeytabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid keytab: {} (byte {})", self.reason, self.offset_bytes)
    }
}

impl std::error::Error for KeytabError {}

/// A key of a principal.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The principal: `cifs/server.example@REALM`. Invalid UTF-8 equals no name.
    pub principal: String,
    /// The key's version.
    pub version: u32,
    /// The encryption type (RFC 3961 number).
    pub encryption_type: u16,
    /// The secret.
    pub key: &'a [u8],
}

impl fmt::Debug for Entry<'_> {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Entry({}, version {}, type {})",
            self.principal, self.version, self.encryption_type
        )
    }
}

/// All entries of a file, in its order.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, KeytabError> {
    match bytes.get(..2) {
        Some([5, 2]) => read(Fields { bytes, offset: 2, form: Form::V2 }),
        Some([5, 1]) => {
            let form = |form| read(Fields { bytes, offset: 2, form });
            form(Form::V1Little).or_else(|error| form(Form::V1Big).map_err(|_| error))
        }
        _ => Err(KeytabError {
            reason: "it does not begin with version 0x0502 or 0x0501",
            offset_bytes: 0,
        }),
    }
}

/// The versions, the old one in both byte orders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V2,
    V1Little,
    V1Big,
}

fn read(mut file: Fields<'_>) -> Result<Vec<Entry<'_>>, KeytabError> {
    let mut entries = Vec::new();
    while file.offset < file.bytes.len() {
        let at = file.offset;
        let length = i32::from_be_bytes(file.take("the length of an entry is cut off")?);
        if length == 0 {
            break;
        }
        // A negative length marks a hole where an entry was removed.
        let end = usize::try_from(length.unsigned_abs())
            .ok()
            .and_then(|length| file.offset.checked_add(length))
            .filter(|end| *end <= file.bytes.len())
            .ok_or(KeytabError {
                reason: "an entry goes beyond the end of the file",
                offset_bytes: at,
            })?;
        if length > 0 {
            if entries.len() == ENTRIES_MAX {
                return Err(KeytabError {
                    reason: "more than a million entries",
                    offset_bytes: at,
                });
            }
            let bytes = file.bytes.get(..end).unwrap_or_default();
            entries.push(entry(Fields { bytes, ..file })?);
        }
        file.offset = end;
    }
    Ok(entries)
}

fn entry(mut fields: Fields<'_>) -> Result<Entry<'_>, KeytabError> {
    let is_old = fields.form != Form::V2;
    let count = u16::from_be_bytes(fields.take("an entry is cut off")?);
    // The old version counts the realm as a component.
    let count = count.saturating_sub(u16::from(is_old));
    let realm = fields.text()?;
    let mut principal = String::new();
    for number in 0..count {
        if number > 0 {
            principal.push('/');
        }
        principal.push_str(&fields.text()?);
    }
    principal.push('@');
    principal.push_str(&realm);
    if !is_old {
        fields.take::<4>("an entry is cut off before its name type")?;
    }
    fields.take::<4>("an entry is cut off before its time")?;
    let [short_version] = fields.take("an entry is cut off before its version")?;
    let encryption_type = u16::from_be_bytes(fields.take("an entry is cut off before its key")?);
    let key = fields.counted("a key goes beyond its entry")?;
    // A 32-bit version may follow; zero means that there is none.
    let long_version = fields.take::<4>("").map_or(0, u32::from_be_bytes);
    let version = if long_version == 0 { u32::from(short_version) } else { long_version };
    Ok(Entry { principal, version, encryption_type, key })
}

/// The fields of a file or of an entry.
#[derive(Clone, Copy)]
struct Fields<'a> {
    bytes: &'a [u8],
    offset: usize,
    form: Form,
}

impl<'a> Fields<'a> {
    /// The bytes of a number, the most significant first.
    fn take<const N: usize>(&mut self, reason: &'static str) -> Result<[u8; N], KeytabError> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let wrong = KeytabError { reason, offset_bytes: self.offset };
        let mut field = *rest.first_chunk::<N>().ok_or(wrong)?;
        if self.form == Form::V1Little {
            field.reverse();
        }
        self.offset += N;
        Ok(field)
    }

    fn counted(&mut self, reason: &'static str) -> Result<&'a [u8], KeytabError> {
        let at = self.offset;
        let length = usize::from(u16::from_be_bytes(self.take(reason)?));
        let end = self.offset + length;
        let wrong = KeytabError { reason, offset_bytes: at };
        let field = self.bytes.get(self.offset..end).ok_or(wrong)?;
        self.offset = end;
        Ok(field)
    }

    fn text(&mut self) -> Result<String, KeytabError> {
        let bytes = self.counted("a name goes beyond its entry")?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A keytab with one key of `cifs/srv@EXAMPLE.ORG`, in either version and byte order.
    fn keytab(form: Form) -> Vec<u8> {
        let number = |value: u64, bytes: usize| {
            let mut out = value.to_be_bytes()[8 - bytes..].to_vec();
            if form == Form::V1Little {
                out.reverse();
            }
            out
        };
        let text = |text: &[u8]| [number(text.len() as u64, 2), text.to_vec()].concat();
        let is_old = form != Form::V2;
        let body = [
            number(2 + u64::from(is_old), 2),
            text(b"EXAMPLE.ORG"),
            text(b"cifs"),
            text(b"srv"),
            if is_old { Vec::new() } else { number(1, 4) },
            number(1_600_000_000, 4),
            vec![3],
            number(18, 2),
            text(&[0xab; 32]),
            number(259, 4),
        ]
        .concat();
        let hole = [number(0xffff_fffc, 4), vec![0; 4]].concat();
        let version = vec![5, if is_old { 1 } else { 2 }];
        [version, hole, number(body.len() as u64, 4), body].concat()
    }

    pub fn sample() -> Vec<u8> {
        keytab(Form::V2)
    }

    #[test]
    fn reads_both_versions_and_both_byte_orders() {
        for form in [Form::V2, Form::V1Little, Form::V1Big] {
            let bytes = keytab(form);
            let entries = entries(&bytes).unwrap();
            assert_eq!(
                format!("{entries:?}"),
                "[Entry(cifs/srv@EXAMPLE.ORG, version 259, type 18)]"
            );
            assert_eq!(entries[0].key, [0xab; 32]);
        }
    }

    #[test]
    fn errors_have_a_reason_and_an_offset() {
        for (bytes, reason) in [
            (&b""[..], "0x0502 or 0x0501 (byte 0)"),
            (b"\x04\x02", "does not begin with version"),
            (b"\x05\x02\0\0", "the length of an entry is cut off (byte 2)"),
            (b"\x05\x02\0\0\0\x09\0", "goes beyond the end of the file (byte 2)"),
            (b"\x05\x02\0\0\0\x04\0\x01\0\x09", "a name goes beyond its entry (byte 8)"),
        ] {
            let error = entries(bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn every_truncation_is_survived() {
        for form in [Form::V2, Form::V1Little, Form::V1Big] {
            let bytes = keytab(form);
            for length in 0..bytes.len() {
                let _ = entries(&bytes[..length]);
            }
        }
    }
}
