//! Names in commands.
//!
//! Owns the quoting of adapters' names for sh and PowerShell, and the refusal of names that no quoting makes safe.
//! Names come from bundles that other people made: one must never become a command.
//!
//! POSIX, "Shell Command Language", 2.2.2; PowerShell's `about_Quoting_Rules` and `about_Wildcards`; Linux's
//! `dev_valid_name` (`net/core/dev.c`).

/// The most bytes of a name of a network interface on Linux (`IFNAMSIZ` minus the final zero).
const INTERFACE_BYTES_MAX: usize = 15;

/// The most characters of an adapter's alias on Windows (`NDIS_IF_MAX_STRING_SIZE`).
const ALIAS_CHARACTERS_MAX: usize = 256;

/// Whether Linux accepts the name, and commands take it for neither an option nor a path.
pub(super) fn is_interface_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= INTERFACE_BYTES_MAX
        && name != "."
        && name != ".."
        && !name.starts_with('-')
        && !name
            .chars()
            .any(|c| c == '/' || c == ':' || c == '\\' || c.is_whitespace() || c.is_control())
}

/// Whether an adapter's alias names exactly one adapter: `-Name` takes wildcards.
pub(super) fn is_alias(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= ALIAS_CHARACTERS_MAX
        && !name.chars().any(|c| {
            matches!(c, '*' | '?' | '[' | ']' | '`' | '\u{2028}' | '\u{2029}' | '\u{feff}')
                || c.is_control()
        })
}

/// A text as one word of sh.
pub(super) fn sh(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text as a verbatim string of PowerShell, which takes typographic quotes for quotes.
pub(super) fn powershell(text: &str) -> String {
    let mut quoted = String::from("'");
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
pub(super) fn is_powershell_quote(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}')
}
