//! Account names and passwords of the users, and how names are written and read.

use std::fmt;

use zeroize::Zeroizing;

/// The account that logs on. `Debug` does not print the password.
#[derive(Clone)]
pub struct Credential {
    /// Account name.
    pub user: String,
    /// Domain or realm; empty for local accounts of the server.
    pub domain: String,
    /// Password; unused if a keytab holds the account's key.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({}\\{})", self.domain, self.user)
    }
}

impl Credential {
    /// A credential for `DOMAIN\user`, `user@domain` or `user`.
    pub fn new(name: &str, password: &str) -> Credential {
        let (domain, user) = match (name.split_once('\\'), name.split_once('@')) {
            (Some((domain, user)), _) => (domain, user),
            (None, Some((user, domain))) => (domain, user),
            (None, None) => ("", name),
        };
        Credential {
            user: user.to_owned(),
            domain: domain.to_owned(),
            password: Zeroizing::new(password.to_owned()),
        }
    }

    /// The name as written in the `user` column: `DOMAIN\user`, or `user` without a domain.
    pub fn name(&self) -> String {
        match self.domain.as_str() {
            "" => self.user.clone(),
            domain => format!("{domain}\\{}", self.user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_and_user_are_split_and_passwords_are_not_printed() {
        let credential = Credential::new("LAB\\alice", "secret");
        assert_eq!((credential.user.as_str(), credential.domain.as_str()), ("alice", "LAB"));
        assert_eq!(credential.name(), "LAB\\alice");
        assert_eq!(Credential::new("bob@lab.test", "x").name(), "lab.test\\bob");
        assert_eq!(Credential::new("carol", "x").name(), "carol");
        assert!(!format!("{credential:?}").contains("secret"));
    }
}
