//! Bytes to text, and text of other people for the eyes.
//!
//! A byte order mark decides; without one, zero bytes at odd offsets show UTF-16, and what is not UTF-8 is Windows'
//! western code page (1252), which `reg export` and old editors write.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Characters of a text that is shown.
const SHOWN_MAX: usize = 200;
/// Bytes from which UTF-16 without a mark is recognised.
const PROBE_BYTES: usize = 512;

pub(super) struct Decoded {
    pub(super) text: String,
    /// Whether bytes had no character: they are U+FFFD in the text.
    pub(super) is_damaged: bool,
}

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => without_mark(bytes),
    };
    let (text, is_damaged) = encoding.decode_with_bom_removal(bytes);
    Decoded { text: text.into_owned(), is_damaged }
}

fn without_mark(bytes: &[u8]) -> &'static Encoding {
    let probe = bytes.get(..PROBE_BYTES).unwrap_or(bytes);
    if probe.len() >= 4 {
        let zeros = |first: usize| probe.iter().skip(first).step_by(2).filter(|b| **b == 0).count();
        // Each second byte of western text in UTF-16 is zero; few are in text that is not UTF-16.
        if zeros(1) * 4 > probe.len() && zeros(0) * 8 < probe.len() {
            return UTF_16LE;
        }
        if zeros(0) * 4 > probe.len() && zeros(1) * 8 < probe.len() {
            return UTF_16BE;
        }
    }
    if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 }
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
pub(super) fn repair(text: &str) -> String {
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

/// Lines with their numbers (from 1), ended by LF, CR LF or CR.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut rest = Some(text);
    let mut number = 0;
    std::iter::from_fn(move || {
        let text = rest?;
        if text.is_empty() {
            rest = None;
            return None;
        }
        number += 1;
        let end = text.find(['\n', '\r']);
        let (line, next) = match end {
            None => (text, None),
            Some(end) => {
                let (line, ending) = text.split_at(end);
                let length = if ending.starts_with("\r\n") { 2 } else { 1 };
                (line, ending.get(length..))
            }
        };
        rest = next;
        Some((number, line))
    })
}
