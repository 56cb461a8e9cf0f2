//! Lists of keys in the format of Wireshark's table `smb2_seskey_list`.
//!
//! A line is `session_id,session_key,server_to_client_key,client_to_server_key` in hexadecimal.
//! Each value may be in quotation marks, the last three may be empty or left out if unknown, and
//! `#` starts a comment. The session id is in wire byte order. Wireshark 4.0 also decrypts with the
//! direction keys swapped, so that such lists exist: if a key does not verify, try the other one.

use super::Key;
use std::fmt;

const COLUMNS: [&str; 4] =
    ["session id", "session key", "server-to-client key", "client-to-server key"];

/// What somebody knows about one session. At least one key is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The session id as the integer that the SMB2 header has.
    pub session_id: u64,
    /// The full session key, from which the others are derived.
    pub session_key: Option<Key>,
    /// Decrypts what the server sent.
    pub server_to_client: Option<Key>,
    /// Decrypts what the client sent.
    pub client_to_server: Option<Key>,
}

/// What is wrong with a list or a value. It never repeats a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyListError {
    /// The line, counted from 1; `None` for a single value.
    pub line: Option<usize>,
    /// What is wrong in it.
    pub problem: String,
}

impl fmt::Display for KeyListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for KeyListError {}

/// Reads the contents of a file. Several lines may name the same session; the order is kept.
pub fn parse_key_list(text: &str) -> Result<Vec<KeyEntry>, KeyListError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let record = line.split('#').next().unwrap_or("").trim();
        if record.is_empty() {
            continue;
        }
        entries.push(
            entry(record).map_err(|problem| KeyListError { line: Some(index + 1), problem })?,
        );
    }
    Ok(entries)
}

/// Reads one record, as given on a command line.
pub fn parse_key(value: &str) -> Result<KeyEntry, KeyListError> {
    entry(value.trim()).map_err(|problem| KeyListError { line: None, problem })
}

fn entry(record: &str) -> Result<KeyEntry, String> {
    let mut fields = [""; COLUMNS.len()];
    for (index, value) in record.split(',').enumerate() {
        let Some(field) = fields.get_mut(index) else {
            return Err(format!("more than four values; expected {}", COLUMNS.join(",")));
        };
        *field = unquoted(value, column(index))?;
    }
    let [id, session, to_client, to_server] = fields;
    let id = bytes(id, column(0))?;
    let Ok(id) = <[u8; 8]>::try_from(id.as_slice()) else {
        return Err(format!(
            "session id has {} bytes, not 8; write its 16 hexadecimal digits as on the wire",
            id.len()
        ));
    };
    let found = KeyEntry {
        session_id: u64::from_le_bytes(id),
        session_key: key(session, column(1), |length| (1..=Key::BYTES_MAX).contains(&length))?,
        server_to_client: key(to_client, column(2), |length| matches!(length, 16 | 32))?,
        client_to_server: key(to_server, column(3), |length| matches!(length, 16 | 32))?,
    };
    if (&found.session_key, &found.server_to_client, &found.client_to_server)
        == (&None, &None, &None)
    {
        return Err("a session id without any key".to_owned());
    }
    Ok(found)
}

fn column(index: usize) -> &'static str {
    COLUMNS.get(index).unwrap_or(&"value")
}

fn unquoted<'a>(value: &'a str, column: &str) -> Result<&'a str, String> {
    let value = value.trim();
    let Some(open) = value.strip_prefix('"') else {
        return Ok(value);
    };
    open.strip_suffix('"')
        .map(str::trim)
        .ok_or_else(|| format!("{column}: quotation mark is not closed"))
}

fn key(
    value: &str,
    column: &str,
    is_length: impl Fn(usize) -> bool,
) -> Result<Option<Key>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    let bytes = bytes(value, column)?;
    let key = Key::new(&bytes).filter(|_| is_length(bytes.len()));
    match key {
        Some(key) => Ok(Some(key)),
        None => Err(format!("{column} has {} bytes, which no key has", bytes.len())),
    }
}

fn bytes(value: &str, column: &str) -> Result<Vec<u8>, String> {
    if value.starts_with("0x") || value.starts_with("0X") {
        return Err(format!("{column}: write the bytes as on the wire, without 0x"));
    }
    let mut digits = Vec::with_capacity(value.len());
    for character in value.chars() {
        let Some(digit) = character.to_digit(16) else {
            return Err(format!("{column}: not a hexadecimal digit: {character:?}"));
        };
        digits.push(digit as u8);
    }
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(format!("{column}: odd number of hexadecimal digits"));
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn hex(text: &str) -> Vec<u8> {
        bytes(text, "test").unwrap()
    }

    pub fn key(text: &str) -> Key {
        Key::new(&hex(text)).unwrap()
    }

    const SESSION: &str = "28f2847263c83dc00621f742dd3f2e7b";
    const TO_CLIENT: &str = "6c9062802e06b81b06eff6989d166228";
    const TO_SERVER: &str = "81f0762857c4b01cc3e12eff0d184362";

    #[test]
    fn reads_a_file_as_wireshark_writes_it() {
        let text = format!(
            "# This file is automatically generated by Wireshark, DO NOT MODIFY.\r\n\
             3d00009400480000,{SESSION},,\r\n\r\n\
             690000ac1c280000,\"\",\"{TO_CLIENT}\", {TO_SERVER} # both\n"
        );
        let entries = parse_key_list(&text).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].session_id, 0x4800_9400_003d);
        assert_eq!(entries[0].session_key, Some(key(SESSION)));
        assert_eq!(entries[0].client_to_server, None);
        assert_eq!(entries[1].session_key, None);
        assert_eq!(entries[1].server_to_client, Some(key(TO_CLIENT)));
        assert_eq!(entries[1].client_to_server, Some(key(TO_SERVER)));
    }

    #[test]
    fn reads_a_single_value() {
        let entry = parse_key(&format!("3D00009400480000,{SESSION}")).unwrap();
        assert_eq!(entry.session_key, Some(key(SESSION)));
        let long = "ab".repeat(32);
        let entry = parse_key(&format!("3d00009400480000,,,{long}")).unwrap();
        assert_eq!(entry.client_to_server.unwrap().as_bytes(), [0xab; 32]);
    }

    #[test]
    fn errors_have_a_position_and_a_reason_and_show_no_key() {
        let wrong = [
            ("3d00,00", "session id has 2 bytes, not 8"),
            ("3d00009400480000", "without any key"),
            ("3d00009400480000,\"\",,", "without any key"),
            ("3d00009400480000,1g", "session key: not a hexadecimal digit: 'g'"),
            ("3d00009400480000,123", "session key: odd number"),
            ("3d00009400480000,,1234", "server-to-client key has 2 bytes"),
            ("3d00009400480000,\"12", "session key: quotation mark"),
            ("0x480094000003d,12", "without 0x"),
            ("3d00009400480000,12,,,", "more than four values"),
        ];
        for (value, expected) in wrong {
            let text = parse_key(value).unwrap_err().to_string();
            assert!(text.contains(expected), "{value}: {text}");
            let error = parse_key_list(&format!("# keys\n\n{value}\n")).unwrap_err();
            assert_eq!(error.line, Some(3));
            assert!(error.to_string().starts_with("line 3: "));
        }
        let long = format!("3d00009400480000,{}", "ab".repeat(33));
        let text = parse_key(&long).unwrap_err().to_string();
        assert!(text.contains("33 bytes") && !text.contains("abab"), "{text}");
    }
}
