//! Names as words of sh and PowerShell.
//!
//! POSIX, "Shell Command Language", 2.2.2; PowerShell's `about_Quoting_Rules`. Names come from files that other people
//! made: one must never become a command.

/// A text as one word of sh.
pub fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text as a verbatim string of PowerShell, which takes typographic quotes for quotes.
pub fn powershell(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        quoted.push(c);
        if matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped() {
        assert_eq!(shell("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(powershell("a'b\u{2019}$c"), "'a''b\u{2019}\u{2019}$c'");
    }
}
