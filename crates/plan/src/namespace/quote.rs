//! Names in commands for PowerShell and for the command prompt.
//!
//! Owns which names can be in a command at all, and how they are quoted so that nothing in them runs. Names come from
//! exports that other people made.
//!
//! PowerShell's `about_Quoting_Rules` and `about_Wildcards`; `cmd /?` on special characters; the characters that
//! shares and files cannot have are those of \[MS-FSCC\] 2.1.5 and 2.1.6.

pub(super) use crate::quote::powershell as verbatim;

/// The most characters of a server's name (DNS, RFC 1035) and of a share with folders (`MAX_PATH`).
const SERVER_CHARACTERS_MAX: usize = 253;
const PATH_CHARACTERS_MAX: usize = 260;

/// Why a name cannot be in a command.
fn reason(text: &str, most: usize) -> Option<&'static str> {
    if text.is_empty() {
        return Some("it is empty");
    }
    if text.chars().count() > most {
        return Some("it is too long");
    }
    if text.starts_with(['-', '/']) {
        return Some("a command would take it for an option");
    }
    let is_refused = |c: char| {
        c.is_control()
            || matches!(c, '"' | '*' | '?' | '<' | '>' | '|' | '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    if text.chars().any(is_refused) {
        return Some("it has a character that no share or folder can have");
    }
    if text.contains(['$', '`', '%', '!']) && text.contains(['&', '^']) {
        return Some(
            "it has both & or ^ and one of $ ` % !, which no quotes protect in PowerShell and at the command prompt alike",
        );
    }
    None
}

/// Checks the name of a server: letters, digits, dots, hyphens, underscores, and colons of addresses.
///
/// # Errors
///
/// What is wrong with it.
pub fn server(name: &str) -> Result<(), String> {
    let is_known = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    match reason(name, SERVER_CHARACTERS_MAX) {
        None if name.chars().all(is_known) => Ok(()),
        None => Err(format!("server `{name}`: a server's name has letters, digits, . - and _")),
        Some(why) => Err(format!("server `{name}`: {why}")),
    }
}

/// Checks the name of a namespace, of a share with folders, or of a local folder.
///
/// # Errors
///
/// What is wrong with it.
pub fn path(what: &str, name: &str) -> Result<(), String> {
    match reason(name, PATH_CHARACTERS_MAX) {
        None if name.ends_with('\\') => {
            Err(format!("{what} `{name}`: remove the backslash at its end"))
        }
        None => Ok(()),
        Some(why) => Err(format!("{what} `{name}`: {why}")),
    }
}

/// A checked text as one word: bare where every shell takes it as it is; in double quotes where these protect it in
/// PowerShell and at the command prompt; else as a verbatim string of PowerShell.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '\\' | ':');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let is_double = |c: char| matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}');
    let is_expanded = |c: char| matches!(c, '$' | '`' | '%' | '!') || is_double(c);
    match text.chars().any(is_expanded) {
        false => format!("\"{text}\""),
        true => verbatim(text),
    }
}

/// A value in a distinguished name (RFC 4514, 2.4).
pub fn distinguished(value: &str) -> String {
    let mut escaped = String::new();
    let last = value.chars().count().saturating_sub(1);
    for (place, c) in value.chars().enumerate() {
        let is_edge = (place == 0 && matches!(c, ' ' | '#')) || (place == last && c == ' ');
        if is_edge || matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_bare_and_others_are_quoted() {
        assert_eq!(word(r"\\contoso.com\Public"), r"\\contoso.com\Public");
        assert_eq!(word(r"\\contoso.com\R&D files"), "\"\\\\contoso.com\\R&D files\"");
        assert_eq!(word(r"\\a\Data$"), r"'\\a\Data$'");
        assert_eq!(word("it's $x\u{2019}"), "'it''s $x\u{2019}\u{2019}'");
    }

    /// What is between the quotes of a word, if the quotes end where the word ends.
    fn unquoted(word: &str) -> Option<String> {
        let quote = word.chars().next()?;
        if !matches!(quote, '\'' | '"') {
            return Some(word.to_owned());
        }
        let inner = word.strip_prefix(quote)?.strip_suffix(quote)?;
        let mut text = String::new();
        let mut chars = inner.chars();
        while let Some(c) = chars.next() {
            let ends = match quote {
                '"' => matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '$' | '`' | '%'),
                _ => matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}'),
            };
            if ends && (quote == '"' || chars.next() != Some(c)) {
                return None;
            }
            text.push(c);
        }
        Some(text)
    }

    proptest::proptest! {
        #[test]
        fn a_word_is_one_word_with_its_text(text in "\\PC{1,40}") {
            if path("share", &text).is_ok() {
                proptest::prop_assert_eq!(unquoted(&word(&text)), Some(text.clone()));
                // At the command prompt only double quotes protect & and ^.
                let is_risky = text.contains(['&', '^']);
                proptest::prop_assert!(!is_risky || word(&text).starts_with('"'));
            }
        }
    }

    #[test]
    fn names_that_no_quotes_protect_are_refused() {
        for name in ["", "-x", "/x", "a\"b", "a*", "a\nb", "R&D$", "a|b"] {
            assert!(path("share", name).is_err(), "{name}");
        }
        assert!(path("share", "R&D").is_ok() && path("share", "Data$").is_ok());
        assert!(server("fs1;calc").is_err() && server("fs1 x").is_err());
        assert!(server("fs1.contoso.com").is_ok() && server("fe80::1").is_ok());
        assert!(path("folder", "C:\\").unwrap_err().contains("backslash at its end"));
    }

    #[test]
    fn distinguished_names_are_escaped() {
        assert_eq!(distinguished("a,b=c "), "a\\,b\\=c\\ ");
        assert_eq!(distinguished("#1"), "\\#1");
    }
}
