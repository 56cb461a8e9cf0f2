//! Names in commands.
//!
//! Owns the refusal of adapters' names that no quoting makes safe; the quoting itself is `crate::quote`.
//! Names come from bundles that other people made: one must never become a command.
//!
//! POSIX, "Shell Command Language", 2.2.2; PowerShell's `about_Quoting_Rules` and `about_Wildcards`; Linux's
//! `dev_valid_name` (`net/core/dev.c`).

pub(super) use crate::quote::{powershell, sh};

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
