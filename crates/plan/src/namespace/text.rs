//! Bytes of a file as text, and places in it.
//!
//! Owns the encodings in which Windows' tools write: UTF-16 with and without a byte order mark, UTF-8, and the code page
//! of Western Windows for bytes that are neither. It knows no format.

/// The text of a file.
pub(super) fn decode(bytes: &[u8]) -> String {
    let utf16 = |bytes: &[u8], of: fn([u8; 2]) -> u16| -> String {
        let units = bytes.chunks_exact(2).filter_map(|pair| pair.first_chunk().copied().map(of));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => single(rest),
        // Every format begins with a character of ASCII.
        [1..=0x7f, 0, 1..=0x7f, 0, ..] => utf16(bytes, u16::from_le_bytes),
        [0, 1..=0x7f, 0, 1..=0x7f, ..] => utf16(bytes, u16::from_be_bytes),
        _ => single(bytes),
    }
}

/// UTF-8, or the encoding that an XML declaration names, or windows-1252.
fn single(bytes: &[u8]) -> String {
    let head = bytes.get(..200).unwrap_or(bytes);
    let declared = head
        .starts_with(b"<?xml")
        .then(|| {
            let head = String::from_utf8_lossy(head).into_owned();
            let (_, rest) = head.split_once("encoding=")?;
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let label = rest.get(1..)?.split(quote).next()?;
            encoding_rs::Encoding::for_label(label.as_bytes())
        })
        .flatten()
        .filter(|encoding| encoding.is_single_byte() && encoding.is_ascii_compatible());
    if let Some(encoding) = declared {
        return encoding.decode_without_bom_handling(bytes).0.into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
    }
}

/// Counts lines up to growing offsets.
pub(super) struct LineCounter<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, line: 1 }
    }

    /// Number of the line of an offset, the first is 1. An offset before the last one is in the last one's line.
    pub(super) fn line(&mut self, offset: usize) -> usize {
        if let Some(passed) = self.bytes.get(self.at..offset.min(self.bytes.len())) {
            self.line += passed.iter().filter(|byte| **byte == b'\n').count();
            self.at += passed.len();
        }
        self.line
    }
}

/// Writes each `&` that is not the begin of a reference as `&amp;`; `None` if the text has no such `&`. `dfsutil` writes names as
/// they are.
pub(super) fn repair_ampersands(text: &str) -> Option<String> {
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

/// A text in an attribute or element of XML.
pub(super) fn escape_xml(out: &mut String, text: &str) {
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
pub(super) fn is_xml_text(text: &str) -> bool {
    !text.chars().any(|c| {
        matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_is_read() {
        let text = "<Root Name=\"\\\\d\\Büro\"/>";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(text.as_bytes()), text);
        assert_eq!(decode(&[&[0xef, 0xbb, 0xbf], text.as_bytes()].concat()), text);
        assert_eq!(decode(&[&[0xff, 0xfe], &le[..]].concat()), text);
        assert_eq!(decode(&[&[0xfe, 0xff], &be[..]].concat()), text);
        assert_eq!(decode(&le), text);
        assert_eq!(decode(&be), text);
        assert_eq!(decode(b"B\xfcro \x80"), "Büro \u{20ac}");
        let declared = b"<?xml version=\"1.0\" encoding=\"windows-1250\"?>\xb9";
        assert!(decode(declared).ends_with('ą'));
    }

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

    #[test]
    fn lines_are_counted() {
        let mut lines = LineCounter::new("a\nb\nc");
        assert_eq!((lines.line(0), lines.line(2), lines.line(1), lines.line(99)), (1, 2, 2, 3));
    }
}
