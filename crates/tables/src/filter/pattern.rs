//! Names with wildcards, compared without regard to case as SMB does (MS-FSA section 2.1.4.4 names the
//! wildcards of directory queries; these are those of a shell).
//!
//! `?` is one character and `*` any number within one component; `**` is any number of components.
//! Slash and backslash are the same.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A file or directory. A pattern without a separator means the last component of the path, one with
/// a separator the whole path below the share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    components: Vec<Vec<char>>,
}

impl PathPattern {
    /// Whether a path matches.
    pub fn matches(&self, path: &str) -> bool {
        let path = components(path);
        match (self.has_separator(), path.last()) {
            (true, _) => matches(&self.components, &path),
            (false, Some(last)) => matches(&self.components, std::slice::from_ref(last)),
            (false, None) => self.components.is_empty(),
        }
    }

    fn has_separator(&self) -> bool {
        self.text.contains(['/', '\\'])
    }
}

/// A share: its name alone, or `\\server\name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareName {
    text: String,
    components: Vec<Vec<char>>,
}

impl ShareName {
    /// Whether a share of the tables (`\\server\name`) is this one.
    pub fn matches(&self, share: &str) -> bool {
        let share = components(share);
        let skipped = share.len().saturating_sub(self.components.len().max(1));
        let named = share.get(skipped..).unwrap_or_default();
        matches(&self.components, named)
    }
}

/// A user: the name alone, or with its domain or realm (`DOMAIN\name`, `name@REALM`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName {
    text: String,
    pattern: Vec<char>,
}

impl UserName {
    /// Whether a user of the tables is this one.
    pub fn matches(&self, user: &str) -> bool {
        let whole = folded(&user.replace('/', "\\"));
        if self.pattern.iter().any(|c| matches!(c, '\\' | '@')) {
            return component_matches(&self.pattern, &whole);
        }
        let after = whole.iter().position(|c| *c == '\\').map_or(0, |place| place + 1);
        let name = whole.get(after..).unwrap_or_default();
        let end = name.iter().position(|c| *c == '@').unwrap_or(name.len());
        component_matches(&self.pattern, name.get(..end).unwrap_or_default())
    }
}

macro_rules! parsed {
    ($name:ident, $text:ident => $field:ident: $value:expr) => {
        impl FromStr for $name {
            type Err = Infallible;

            fn from_str($text: &str) -> Result<$name, Infallible> {
                Ok($name { text: $text.to_owned(), $field: $value })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.text)
            }
        }
    };
}

parsed!(PathPattern, text => components: components(text));
parsed!(ShareName, text => components: components(text));
parsed!(UserName, text => pattern: folded(&text.replace('/', "\\")));

fn components(path: &str) -> Vec<Vec<char>> {
    path.split(['/', '\\']).filter(|one| !one.is_empty()).map(folded).collect()
}

fn folded(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Without recursion: on a mismatch it returns to the last `**` and lets it take one component more.
fn matches(pattern: &[Vec<char>], path: &[Vec<char>]) -> bool {
    greedy(
        pattern,
        path,
        |one| one.as_slice() == ['*', '*'],
        |one, component| component_matches(one, component),
    )
}

fn component_matches(pattern: &[char], text: &[char]) -> bool {
    greedy(pattern, text, |one| *one == '*', |one, c| *one == '?' || one == c)
}

fn greedy<P, T>(
    pattern: &[P],
    text: &[T],
    is_any: impl Fn(&P) -> bool,
    is_one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(item) = text.get(place) {
        match pattern.get(at) {
            Some(one) if is_any(one) => {
                retry = Some((at + 1, place));
                at += 1;
            }
            Some(one) if is_one(one, item) => {
                at += 1;
                place += 1;
            }
            _ => match &mut retry {
                None => return false,
                Some((after, taken)) => {
                    *taken += 1;
                    (at, place) = (*after, *taken);
                }
            },
        }
    }
    pattern.iter().skip(at).all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(pattern: &str, path: &str) -> bool {
        pattern.parse::<PathPattern>().unwrap().matches(path)
    }

    #[test]
    fn paths_match_by_component() {
        assert!(path("*.docx", "a\\b\\Plan.DOCX"), "the name, wherever the file is");
        assert!(path("plan.docx", "a\\plan.docx") && !path("a", "a\\plan.docx"));
        assert!(path("a/*.docx", "a\\plan.docx") && !path("a/*.docx", "a\\b\\plan.docx"));
        assert!(
            path("a\\**\\*.docx", "a\\b\\c\\plan.docx") && path("a/**/*.docx", "\\a\\plan.docx")
        );
        assert!(path("a/**", "a\\b\\c") && path("a/**", "a") && !path("a/**", "ab\\c"));
        assert!(path("**/c/**", "a\\b\\c\\d") && !path("**/c/**", "a\\b"));
        assert!(path("/plan.docx", "plan.docx") && !path("/plan.docx", "a\\plan.docx"));
        assert!(path("pl?n.*", "plan.docx") && !path("pl?n.*", "pln.docx"));
        assert!(path("ÄRGER*", "ärger.txt"));
        assert!(path("*a*b*c*", "xxaxxbxxcxx") && !path("*a*b*c*", "xxaxxcxxbxx"));
        assert!(!path("", "a") && path("*", "a"));
    }

    #[test]
    fn shares_and_users_match_with_and_without_their_server_or_domain() {
        let share = |text: &str, share: &str| text.parse::<ShareName>().unwrap().matches(share);
        assert!(share("Docs", "\\\\server\\docs") && share("//SERVER/docs", "\\\\server\\docs"));
        assert!(
            !share("server", "\\\\server\\docs") && !share("\\\\other\\docs", "\\\\server\\docs")
        );
        assert!(share("home*", "\\\\server\\home12") && share("ipc$", "\\\\server\\IPC$"));
        let user = |text: &str, user: &str| text.parse::<UserName>().unwrap().matches(user);
        assert!(user("alice", "CORP\\Alice") && user("Alice", "alice@CORP.EXAMPLE"));
        assert!(user("corp\\alice", "CORP\\Alice") && !user("other\\alice", "CORP\\Alice"));
        assert!(user("corp/alice", "CORP\\alice"));
        assert!(user("alice@corp.example", "alice@CORP.EXAMPLE") && user("user*", "D\\user12"));
        assert!(!user("corp", "CORP\\alice"));
    }
}
