//! The small pieces of text that several outputs share.

/// The text after a word at the beginning, compared without case.
pub(super) fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let head = line.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| line.get(word.len()..).unwrap_or_default())
}

/// `NAME="value"` pairs of a line, and what follows the last one.
pub(super) fn quoted_pairs(mut rest: &str) -> (Vec<(&str, &str)>, &str) {
    let mut pairs = Vec::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let Some((value, after)) = after.split_once('"') else { break };
        let name = name.rsplit([' ', '\t', ']']).next().unwrap_or(name);
        pairs.push((name, value));
        rest = after;
    }
    (pairs, rest)
}
