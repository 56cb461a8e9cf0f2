//! Entries of LDIF (RFC 2849): folded lines, comments, base64.
//!
//! It knows no attribute. Records of changes other than `add` are not read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Damage, Damaged};

/// An entry.
pub(super) struct Entry<'a> {
    pub(super) dn: String,
    pub(super) line: usize,
    pub(super) attributes: Vec<Attribute<'a>>,
}

/// One value of an attribute.
pub(super) struct Attribute<'a> {
    pub(super) name: &'a str,
    pub(super) value: Vec<u8>,
    pub(super) line: usize,
}

impl Entry<'_> {
    /// Values of an attribute.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Attribute<'s>> {
        self.attributes.iter().filter(move |attribute| attribute.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn has_class(&self, class: &str) -> bool {
        self.all("objectClass")
            .any(|attribute| attribute.value.eq_ignore_ascii_case(class.as_bytes()))
    }
}

/// A value as text: as it is, or as `base64:...` if it is not plain text.
pub(super) fn as_text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if !text.chars().any(char::is_control) && !text.starts_with(BASE64) => {
            text.to_owned()
        }
        _ => format!("{BASE64}{}", STANDARD.encode(value)),
    }
}

/// How the text of a value begins that is not plain.
pub(crate) const BASE64: &str = "base64:";

/// Calls `look` with each entry.
pub(super) fn entries<'a>(
    text: &'a str,
    mut look: impl FnMut(Entry<'a>) -> Damaged<()>,
) -> Damaged<()> {
    let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line)).peekable();
    let mut entry: Option<Entry<'a>> = None;
    let mut folded = String::new();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() {
            if let Some(entry) = entry.take() {
                look(entry)?;
            }
            continue;
        }
        folded.clear();
        while let Some((_, next)) = lines.peek().filter(|(_, next)| next.starts_with(' ')) {
            if folded.is_empty() {
                folded.push_str(line);
            }
            folded.push_str(next.get(1..).unwrap_or_default());
            lines.next();
        }
        let whole = if folded.is_empty() { line } else { folded.as_str() };
        if line.starts_with('#') || line.trim() == "-" {
            continue;
        }
        if line.starts_with(' ') {
            return Err(Damage::new(number, "a folded line that continues nothing"));
        }
        let Some(colon) = line.find(':').or_else(|| whole.find(':')) else {
            // A name alone in its line is continued in the next, which no program writes.
            return Err(Damage::new(number, format!("{whole:?} is not NAME: VALUE of LDIF")));
        };
        let Some(name) = line.get(..colon) else {
            return Err(Damage::new(number, "an attribute's name is folded"));
        };
        let is_name =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ';' | '=' | '*');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Damage::new(number, format!("{name:?} is not the name of an attribute")));
        }
        let rest = whole.get(colon + 1..).unwrap_or_default();
        let value = match rest.as_bytes().first() {
            Some(b':') => {
                let encoded = rest.get(1..).unwrap_or_default().trim();
                STANDARD.decode(encoded).map_err(|error| {
                    Damage::new(number, format!("damaged base64 in the value of {name}: {error}"))
                })?
            }
            Some(b'<') => {
                let message = format!(
                    "the value of {name} is in another file ({rest}): export it into this one"
                );
                return Err(Damage::new(number, message));
            }
            _ => rest.strip_prefix(' ').unwrap_or(rest).as_bytes().to_vec(),
        };
        if name.eq_ignore_ascii_case("dn") {
            if let Some(entry) = entry.take() {
                look(entry)?;
            }
            let dn = String::from_utf8_lossy(&value).into_owned();
            entry = Some(Entry { dn, line: number, attributes: Vec::new() });
        } else if let Some(entry) = &mut entry {
            // Options such as `;range=0-*` do not change what the attribute is.
            let name = name.split(';').next().unwrap_or(name);
            if name.eq_ignore_ascii_case("changetype") {
                if !value.eq_ignore_ascii_case(b"add") {
                    let message = format!(
                        "a change of kind {:?}; only entries and additions are read",
                        as_text(&value)
                    );
                    return Err(Damage::new(number, message));
                }
                continue;
            }
            entry.attributes.push(Attribute { name, value, line: number });
        }
    }
    match entry {
        Some(entry) => look(entry),
        None => Ok(()),
    }
}

/// The parts of a distinguished name, as written.
pub(super) fn dn_parts(dn: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, c) in dn.char_indices() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            ',' if !is_escaped => {
                parts.push(dn.get(start..at).unwrap_or_default().trim_matches(' '));
                start = at + 1;
            }
            _ => is_escaped = false,
        }
    }
    parts.push(dn.get(start..).unwrap_or_default().trim_matches(' '));
    parts
}

/// The value of a part (`CN=value`), without escapes (RFC 4514).
pub(super) fn part_value(part: &str) -> String {
    let value = part.split_once('=').map_or(part, |(_, value)| value);
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if let (Some(high), Some(low)) = (digit(0), digit(1)) {
            bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            rest = tail.get(2..).unwrap_or_default();
        } else if let [escaped, tail @ ..] = tail {
            bytes.push(*escaped);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A value in a distinguished name.
pub(crate) fn escape_dn(value: &str) -> String {
    let mut out = String::new();
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' => {
                out.push('\\');
                out.push(c);
            }
            '#' if at == 0 => out.push_str("\\#"),
            // A space that is only escaped is lost where parts are trimmed.
            ' ' if at == 0 || at == last => out.push_str("\\20"),
            c if c.is_ascii_control() => out.push_str(&format!("\\{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}
