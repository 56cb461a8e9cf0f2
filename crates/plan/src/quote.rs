//! Texts as words of sh and as verbatim strings of PowerShell, for all planners.
//!
//! Names come from files that other people made: one must never become a command. Which names a command accepts at all
//! is decided by the planner (`cores::commands::quote`, `namespace::quote`).
//!
//! POSIX, "Shell Command Language", 2.2.2; PowerShell's `about_Quoting_Rules`.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(sh("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(powershell("a'b\u{2019}$c"), "'a''b\u{2019}\u{2019}$c'");
    }
}
