//! Names of files like those that people choose: words and a number.
//!
//! A pool's pattern has `{word}` (one of a fixed list) and `{n}` (the file's number, at least three
//! digits). The list never changes: names follow from (seed, user, pool, number).

use std::fmt::Write as _;

use super::random::Stream;

const WORDS: [&str; 64] = [
    "account",
    "address",
    "agenda",
    "annual",
    "archive",
    "balance",
    "benefit",
    "board",
    "branch",
    "brochure",
    "budget",
    "campaign",
    "catalog",
    "checklist",
    "client",
    "contract",
    "customer",
    "delivery",
    "design",
    "draft",
    "estimate",
    "event",
    "export",
    "figures",
    "final",
    "forecast",
    "guide",
    "handbook",
    "holiday",
    "import",
    "inquiry",
    "invoice",
    "journal",
    "launch",
    "letter",
    "logistics",
    "manual",
    "market",
    "meeting",
    "memo",
    "minutes",
    "monthly",
    "notes",
    "offer",
    "office",
    "order",
    "payroll",
    "plan",
    "policy",
    "price",
    "product",
    "project",
    "quarter",
    "receipt",
    "record",
    "report",
    "review",
    "sales",
    "schedule",
    "summary",
    "supplier",
    "survey",
    "training",
    "travel",
];

/// Appends the name of file `number`; `key` chooses the words.
pub(super) fn push_name(out: &mut String, pattern: &str, number: u32, key: u64) {
    let mut words = Stream::new(key);
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some(behind) = rest.strip_prefix("{word}") {
            out.push_str(WORDS[words.below(64) as usize]);
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("{n}") {
            let _ = write!(out, "{number:03}");
            rest = behind;
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
}

/// What is wrong with a pattern for `files` files, as text.
pub(crate) fn name_problem(pattern: &str, files: u64) -> Option<String> {
    let bare = pattern.replace("{word}", "").replace("{n}", "");
    if pattern.is_empty() {
        return Some("an empty name".into());
    }
    if let Some(bad) = bare.chars().find(|&c| c.is_control() || "\\/:*?\"<>|{}".contains(c)) {
        return Some(format!(
            "{bad:?} is not allowed in a file name; the placeholders are {{word}} and {{n}}"
        ));
    }
    // Also as the stem of a name, from which steps may make paths.
    if pattern.starts_with("..") || bare.trim_end_matches(['.', ' ']).is_empty() && bare == pattern
    {
        return Some("a name of dots leads out of the folder: begin it otherwise".into());
    }
    if files > 1 && !pattern.contains("{n}") {
        return Some(format!("{files} files need {{n}} in their name to tell them apart"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(pattern: &str, number: u32, key: u64) -> String {
        let mut out = String::new();
        push_name(&mut out, pattern, number, key);
        out
    }

    #[test]
    fn patterns_are_filled_in() {
        assert_eq!(name("Normal.dotm", 0, 1), "Normal.dotm");
        assert_eq!(name("scan {n}.tif", 7, 1), "scan 007.tif");
        assert_eq!(name("{n}", 12_345, 1), "12345");
        assert_eq!(name("{word} {n}.x", 1, 5), name("{word} {n}.x", 1, 5));
        let names: std::collections::HashSet<_> =
            (0..40).map(|key| name("{word}", 0, key)).collect();
        assert!(names.len() > 20);
    }

    #[test]
    fn words_are_in_order_and_safe() {
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn bad_patterns_are_reported() {
        assert_eq!(name_problem("{word} {n}.docx", 9), None);
        assert_eq!(name_problem("Normal.dotm", 1), None);
        assert!(name_problem("a.docx", 2).unwrap().contains("{n}"));
        assert!(name_problem("a/b", 1).unwrap().contains("'/'"));
        assert!(name_problem("{x}", 1).unwrap().contains("placeholders"));
        assert!(name_problem("", 1).is_some());
        for dots in [".", "..", "...", "..x", "..{n}", ". ."] {
            assert!(name_problem(dots, 1).unwrap().contains("dots"), "{dots}");
        }
        assert_eq!(name_problem(".{word}", 1), None);
    }
}
