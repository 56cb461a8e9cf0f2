//! Hardened UNC paths: what a client demands of the paths that match a pattern, whatever the server requires.
//!
//! Owns the patterns and their demands. RequireIntegrity makes the client sign, RequirePrivacy makes it encrypt.
//! Sources: NetworkProvider.adml (`\\SERVER\SHARE`, `*` for any server, a share may be left out), KB 3000483. Where several
//! patterns match, the demands of all are taken together: the documents read for this do not say which one wins, and
//! a cost should not be hidden.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is demanded of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demands {
    pub mutual_authentication: bool,
    /// Signing, or encryption.
    pub integrity: bool,
    /// Encryption.
    pub privacy: bool,
}

impl Demands {
    /// `RequireMutualAuthentication=1, RequireIntegrity=1`; words that are not known count as not demanded.
    pub fn parse(text: &str) -> Demands {
        let mut demands = Demands::default();
        for part in text.split([',', ';']) {
            let Some((name, value)) = part.split_once('=') else { continue };
            let is_set = value.trim() == "1";
            match name.trim().to_lowercase().as_str() {
                "requiremutualauthentication" => demands.mutual_authentication = is_set,
                "requireintegrity" => demands.integrity = is_set,
                "requireprivacy" => demands.privacy = is_set,
                _ => {}
            }
        }
        demands
    }

    /// What two demands together demand.
    pub fn and(self, other: Demands) -> Demands {
        Demands {
            mutual_authentication: self.mutual_authentication || other.mutual_authentication,
            integrity: self.integrity || other.integrity,
            privacy: self.privacy || other.privacy,
        }
    }
}

/// As the policy writes it.
impl fmt::Display for Demands {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("RequireMutualAuthentication", self.mutual_authentication),
            ("RequireIntegrity", self.integrity),
            ("RequirePrivacy", self.privacy),
        ];
        let parts = parts.map(|(name, is_set)| format!("{name}={}", u8::from(is_set)));
        to.write_str(&parts.join(","))
    }
}

/// Whether a UNC path (`\\server\share`) matches a pattern. A server's short name matches its full one.
pub fn matches(pattern: &str, unc: &str) -> bool {
    let (pattern, path) = (parts(pattern), parts(unc));
    let Some(server) = pattern.first() else { return false };
    let Some(own) = path.first() else { return false };
    let of_server = server == "*" || server == own || own.split('.').next() == Some(server);
    let Some(share) = pattern.get(1) else { return of_server };
    of_server && (share == "*" || path.get(1) == Some(share))
}

/// The parts of a UNC path or pattern, in lower case.
pub(super) fn parts(unc: &str) -> Vec<String> {
    let parts = unc.split(['\\', '/']).map(|part| part.trim().to_lowercase());
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_template_says() {
        for (pattern, unc, expected) in [
            (r"\\*\SYSVOL", r"\\dc1.example.org\sysvol", true),
            (r"\\*\SYSVOL", r"\\dc1\home", false),
            (r"\\FS1", r"\\fs1.example.org\home", true),
            (r"\\FS1\*", r"\\fs2\home", false),
            (r"\\fs1.example.org\home", r"\\FS1.example.org\Home", true),
            (r"\\fs1.example.org\home", r"\\fs1\home", false),
            (r"\\*\*", r"\\fs1\home", true),
            ("", r"\\fs1\home", false),
            (r"\\*", "", false),
        ] {
            assert_eq!(matches(pattern, unc), expected, "{pattern} {unc}");
        }
    }

    #[test]
    fn demands_are_read_and_written() {
        let text = "RequireMutualAuthentication=1, RequireIntegrity=1";
        let demands = Demands::parse(text);
        assert!(demands.mutual_authentication && demands.integrity && !demands.privacy);
        assert_eq!(Demands::parse(&demands.to_string()), demands);
        assert_eq!(Demands::parse("RequirePrivacy=0,nonsense,x=1"), Demands::default());
        assert!(Demands::parse("requireprivacy = 1").privacy);
    }
}
