//! Texts as words of sh, of PowerShell and of the command prompt, for all planners.
//!
//! Names come from files that other people made: one must never become a command. Which names a command accepts at all
//! is in [`super::names`].
//!
//! POSIX, "Shell Command Language", 2.2.2; PowerShell's `about_Quoting_Rules`; `cmd /?` on special characters.

/// A text as one word of sh.
pub(crate) fn sh(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text as a verbatim string of PowerShell, which takes typographic quotes for quotes.
pub(crate) fn powershell(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        quoted.push(c);
        if is_powershell_quote(c) {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    quoted
}

/// The characters that end a verbatim string of PowerShell.
pub(crate) fn is_powershell_quote(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}')
}

/// A checked text as one word: bare where every shell takes it as it is; in double quotes where these protect it in
/// PowerShell and at the command prompt; else as a verbatim string of PowerShell.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '\\' | ':');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let is_double = |c: char| matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}');
    let is_expanded = |c: char| matches!(c, '$' | '`' | '%' | '!') || is_double(c);
    if text.chars().any(is_expanded) { powershell(text) } else { format!("\"{text}\"") }
}

/// A value in a distinguished name (RFC 4514, 2.4).
pub(crate) fn distinguished(value: &str) -> String {
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
    use super::super::names::check_path;
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(sh("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(powershell("a'b\u{2019}$c"), "'a''b\u{2019}\u{2019}$c'");
    }

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
            if check_path("share", &text).is_ok() {
                proptest::prop_assert_eq!(unquoted(&word(&text)), Some(text.clone()));
                // At the command prompt only double quotes protect & and ^.
                let is_risky = text.contains(['&', '^']);
                proptest::prop_assert!(!is_risky || word(&text).starts_with('"'));
            }
        }

        #[test]
        fn a_verbatim_string_of_powershell_is_one_string(text in "\\PC{0,40}") {
            proptest::prop_assert_eq!(unquoted(&powershell(&text)), Some(text));
        }
    }

    /// The shell itself reads each word as the text that was quoted.
    #[cfg(unix)]
    #[test]
    fn hostile_names_survive_the_shell() {
        let names = [
            "",
            "'",
            "''",
            "a'b",
            "$(touch x)",
            "`x`",
            "a\nb",
            "-n",
            "\\",
            "*",
            "~",
            "#",
            "a;b&c|d",
            "ü €",
        ];
        let words: Vec<String> = names.iter().map(|name| sh(name)).collect();
        let script = format!("printf '%s\\001' {}", words.join(" "));
        let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split('\u{1}').collect::<Vec<_>>(), [&names[..], &[""]].concat());
    }

    #[test]
    fn distinguished_names_are_escaped() {
        assert_eq!(distinguished("a,b=c "), "a\\,b\\=c\\ ");
        assert_eq!(distinguished("#1"), "\\#1");
    }
}
