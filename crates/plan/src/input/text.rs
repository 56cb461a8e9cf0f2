//! Bytes of a file as text, and text of other people for the eyes.
//!
//! Owns the encodings in which Windows' tools write. A byte order mark decides; without one, zero bytes show UTF-16,
//! and what is not UTF-8 has the code page that an XML declaration names, or the code page of Western Windows (1252),
//! which `reg export` and old editors write. It knows no format.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Characters of a text that is shown.
const SHOWN_MAX: usize = 200;
/// Bytes in which UTF-16 without a mark is recognised.
const PROBE_BYTES: usize = 512;

/// The text of a file.
pub struct Decoded {
    /// Without a byte order mark.
    pub text: String,
    /// Whether bytes had no character: they are U+FFFD in the text.
    pub is_damaged: bool,
}

/// Decodes the bytes of a file.
pub fn decode(bytes: &[u8]) -> Decoded {
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => utf16_without_mark(bytes)
            .or_else(|| std::str::from_utf8(bytes).is_ok().then_some(UTF_8))
            .or_else(|| declared(bytes))
            .unwrap_or(WINDOWS_1252),
    };
    let (text, is_damaged) = encoding.decode_with_bom_removal(bytes);
    Decoded { text: text.into_owned(), is_damaged }
}

/// A text for display: at most 200 characters, without control characters and those that change the direction of text.
pub fn clean(text: &str) -> String {
    let is_hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let mut shown = String::new();
    let mut letters = text.trim().chars().filter(|c| !is_hidden(*c));
    shown.extend(
        letters
            .by_ref()
            .take(SHOWN_MAX)
            .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }),
    );
    if letters.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// Undoes UTF-8 that was decoded as a code page of single bytes (`d'attÃ©nuation`): Latin-1 or code page 1252.
pub(crate) fn repair(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let byte = |letter: char| {
        u8::try_from(u32::from(letter)).ok().or_else(|| {
            let mut buffer = [0; 4];
            let (bytes, _, is_lossy) = WINDOWS_1252.encode(letter.encode_utf8(&mut buffer));
            bytes.first().copied().filter(|_| !is_lossy)
        })
    };
    let bytes: Option<Vec<u8>> = text.chars().map(byte).collect();
    let repaired = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    repaired.unwrap_or_else(|| text.to_owned())
}

/// Writes each `&` that is not the begin of a reference as `&amp;`; `None` if the text has no such `&`. `dfsutil` writes names as
/// they are.
pub(crate) fn repair_ampersands(text: &str) -> Option<String> {
    let mut repaired = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices('&') {
        let rest = text.get(at + 1..).unwrap_or_default();
        if is_reference(rest) {
            continue;
        }
        repaired.push_str(text.get(copied..=at).unwrap_or_default());
        repaired.push_str("amp;");
        copied = at + 1;
    }
    (copied > 0).then(|| {
        repaired.push_str(text.get(copied..).unwrap_or_default());
        repaired
    })
}

/// A text in an attribute or element of XML.
pub(crate) fn escape_xml(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            _ => out.push(c),
        }
    }
}

/// Whether XML can hold the text at all.
pub(crate) fn is_xml_text(text: &str) -> bool {
    !text.chars().any(|c| {
        matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
    })
}

fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    // Every format begins with characters of ASCII, whatever the script of its names.
    match bytes {
        [1..=0x7f, 0, 1..=0x7f, 0, ..] => return Some(UTF_16LE),
        [0, 1..=0x7f, 0, 1..=0x7f, ..] => return Some(UTF_16BE),
        _ => {}
    }
    let probe = bytes.get(..PROBE_BYTES).unwrap_or(bytes);
    let zeros = |first: usize| probe.iter().skip(first).step_by(2).filter(|b| **b == 0).count();
    // Each second byte of western text in UTF-16 is zero; few are in text that is not UTF-16.
    let is_utf16 = |zero, other| zeros(zero) * 4 > probe.len() && zeros(other) * 8 < probe.len();
    match probe.len() {
        ..4 => None,
        _ if is_utf16(1, 0) => Some(UTF_16LE),
        _ if is_utf16(0, 1) => Some(UTF_16BE),
        _ => None,
    }
}

/// The code page that an XML declaration names.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..200).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head.starts_with(b"<?xml").then_some(head)?);
    let (_, rest) = head.split_once("encoding=")?;
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let label = rest.get(1..)?.split(quote).next()?;
    Encoding::for_label(label.as_bytes())
        .filter(|encoding| encoding.is_single_byte() && encoding.is_ascii_compatible())
}

/// Whether the text after `&` is a reference of XML.
fn is_reference(rest: &str) -> bool {
    let Some(end) = rest.bytes().take(10).position(|byte| byte == b';') else { return false };
    let name = rest.get(..end).unwrap_or_default();
    let is_code_point = |digits: &str, radix: u32| {
        u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).is_some_and(|c| c != '\0')
            && digits.chars().all(|c| c.is_digit(radix))
    };
    match name.strip_prefix('#') {
        Some(number) => number
            .strip_prefix(['x', 'X'])
            .map_or_else(|| is_code_point(number, 10), |hex| is_code_point(hex, 16)),
        None => matches!(name, "amp" | "lt" | "gt" | "quot" | "apos"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_ampersands_are_repaired() {
        assert_eq!(repair_ampersands("R&D"), Some("R&amp;D".to_owned()));
        assert_eq!(repair_ampersands("R&amp;D &#38; &#x26; &lt;"), None);
        assert_eq!(
            repair_ampersands("a & b &amp c&"),
            Some("a &amp; b &amp;amp c&amp;".to_owned())
        );
        assert_eq!(
            repair_ampersands("&#0; &#xfffffff; &nbsp;"),
            Some("&amp;#0; &amp;#xfffffff; &amp;nbsp;".to_owned())
        );
    }
}
