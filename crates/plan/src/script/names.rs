//! Which names can be in a command at all, whatever quotes are around them.
//!
//! Names come from bundles and exports that other people made: one must never become a command.
//!
//! PowerShell's `about_Wildcards`; `cmd /?` on special characters; Linux's `dev_valid_name` (`net/core/dev.c`); the
//! characters that shares and files cannot have are those of \[MS-FSCC\] 2.1.5 and 2.1.6.

/// The most bytes of a name of a network interface on Linux (`IFNAMSIZ` minus the final zero).
const INTERFACE_BYTES_MAX: usize = 15;

/// The most characters of an adapter's alias on Windows (`NDIS_IF_MAX_STRING_SIZE`).
const ALIAS_CHARACTERS_MAX: usize = 256;

/// The most characters of a server's name (DNS, RFC 1035) and of a share with folders (`MAX_PATH`).
const SERVER_CHARACTERS_MAX: usize = 253;
const PATH_CHARACTERS_MAX: usize = 260;

/// Whether Linux accepts the name, and commands take it for neither an option nor a path.
pub(crate) fn is_interface_name(name: &str) -> bool {
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
pub(crate) fn is_alias(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= ALIAS_CHARACTERS_MAX
        && !name.chars().any(|c| {
            matches!(c, '*' | '?' | '[' | ']' | '`' | '\u{2028}' | '\u{2029}' | '\u{feff}')
                || c.is_control()
        })
}

/// Checks the name of a server: letters, digits, dots, hyphens, underscores, and colons of addresses.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn check_server(name: &str) -> Result<(), String> {
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
pub(crate) fn check_path(what: &str, name: &str) -> Result<(), String> {
    match reason(name, PATH_CHARACTERS_MAX) {
        None if name.ends_with('\\') => {
            Err(format!("{what} `{name}`: remove the backslash at its end"))
        }
        None => Ok(()),
        Some(why) => Err(format!("{what} `{name}`: {why}")),
    }
}

/// Whether quotes protect a name in PowerShell only, not at the command prompt.
pub(crate) fn is_powershell_only(name: &str) -> bool {
    name.contains(['$', '`', '%', '!']) && name.contains(['&', '^'])
}

/// Checks a name as [`check_path`] does, and accepts those that quotes protect in PowerShell only.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn check_verbatim(what: &str, name: &str) -> Result<(), String> {
    let plain: String =
        name.chars().map(|c| if matches!(c, '&' | '^') { '+' } else { c }).collect();
    check_path(what, &plain).map_err(|_| check_path(what, name).err().unwrap_or_default())
}

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
    if is_powershell_only(text) {
        return Some(
            "it has both & or ^ and one of $ ` % !, which no quotes protect in PowerShell and at the command prompt alike",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_quotes_protect_are_refused() {
        for name in ["", "-x", "/x", "a\"b", "a*", "a\nb", "R&D$", "a|b"] {
            assert!(check_path("share", name).is_err(), "{name}");
        }
        for name in ["R&D$", "F&E's $Daten"] {
            assert!(is_powershell_only(name) && check_verbatim("share", name).is_ok());
        }
        let error = check_verbatim("share", "a&\nb$").unwrap_err();
        assert!(error.contains("`a&\nb$`"), "{error}");
        assert!(check_path("share", "R&D").is_ok() && check_path("share", "Data$").is_ok());
        assert!(check_server("fs1;calc").is_err() && check_server("fs1 x").is_err());
        assert!(check_server("fs1.contoso.com").is_ok() && check_server("fe80::1").is_ok());
        assert!(check_path("folder", "C:\\").unwrap_err().contains("backslash at its end"));
    }
}
