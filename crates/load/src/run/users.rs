//! Which users a run has, which of them belong to this machine, and how they log on.

use std::fmt;

use smbscope_client::Credential;

/// One machine's part of the users: number `index` (from 1) of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Counted from 1.
    pub index: u64,
    /// Number of machines.
    pub count: u64,
}

/// Why a shard is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid shard `{0}`: expected I/N with 1 <= I <= N, for example 3/8")]
pub struct ShardError(String);

impl Shard {
    /// All users.
    pub const ALL: Shard = Shard { index: 1, count: 1 };

    /// Reads `3/8`.
    pub fn parse(text: &str) -> Result<Shard, ShardError> {
        let error = || ShardError(text.to_owned());
        let (index, count) = text.split_once('/').ok_or_else(error)?;
        let index = index.trim().parse().map_err(|_| error())?;
        let count = count.trim().parse().map_err(|_| error())?;
        if index == 0 || index > count {
            return Err(error());
        }
        Ok(Shard { index, count })
    }

    /// Numbers of this machine's users among `users` (numbered from 1). Users are dealt out one by one,
    /// so that any number is spread evenly.
    pub fn users(self, users: u64) -> impl Iterator<Item = u64> {
        (self.index..=users).step_by(usize::try_from(self.count).unwrap_or(usize::MAX))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// How users log on.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// All with a name that contains their number, and one password (and domain, if the name has none).
    Pattern(NamePattern, Credential),
    /// Each with a line of a list; the list repeats if there are more users.
    List(Vec<Credential>),
}

/// Why credentials are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The pattern is invalid.
    #[error("invalid name pattern `{0}`: put {{}} or {{:05}} where the user's number goes")]
    Pattern(String),
    /// A line of the list is invalid.
    #[error("line {0}: write NAME:PASSWORD")]
    Line(usize),
    /// The list is empty.
    #[error("the list is empty: write one NAME:PASSWORD per line")]
    Empty,
}

/// A name with a placeholder for a number: `user{}`, `user{:05}`; without one, the same name for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    before: String,
    after: String,
    /// Digits; `None` when the name has no number.
    digits: Option<usize>,
}

impl NamePattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<NamePattern, CredentialsError> {
        let error = || CredentialsError::Pattern(text.to_owned());
        let Some((before, rest)) = text.split_once('{') else {
            let plain = NamePattern { before: text.into(), after: String::new(), digits: None };
            return if text.is_empty() || text.contains('}') { Err(error()) } else { Ok(plain) };
        };
        let (form, after) = rest.split_once('}').ok_or_else(error)?;
        let digits = match form {
            "" => 1,
            form => {
                let width = form.strip_prefix(":0").ok_or_else(error)?;
                width.parse().ok().filter(|width| (1..=18).contains(width)).ok_or_else(error)?
            }
        };
        if after.contains(['{', '}']) {
            return Err(error());
        }
        Ok(NamePattern { before: before.into(), after: after.into(), digits: Some(digits) })
    }

    /// The name of user `number`.
    pub fn name(&self, number: u64) -> String {
        match self.digits {
            Some(digits) => format!("{}{number:0digits$}{}", self.before, self.after),
            None => self.before.clone(),
        }
    }
}

impl Credentials {
    /// Users by a pattern with one password for all.
    pub fn pattern(pattern: &str, password: &str) -> Result<Credentials, CredentialsError> {
        let pattern = NamePattern::parse(pattern)?;
        Ok(Credentials::Pattern(pattern, Credential::new("", password)))
    }

    /// Users from a list: `NAME:PASSWORD` lines; empty lines and lines that begin with # are skipped.
    pub fn list(text: &str) -> Result<Credentials, CredentialsError> {
        let mut list = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, password) =
                line.split_once(':').ok_or(CredentialsError::Line(number + 1))?;
            if name.trim().is_empty() {
                return Err(CredentialsError::Line(number + 1));
            }
            list.push(Credential::new(name.trim(), password));
        }
        if list.is_empty() { Err(CredentialsError::Empty) } else { Ok(Credentials::List(list)) }
    }

    /// Adds a domain or realm to the names that have none.
    pub fn in_domain(mut self, domain: &str) -> Credentials {
        let settle = |credential: &mut Credential| {
            if credential.domain.is_empty() {
                domain.clone_into(&mut credential.domain);
            }
        };
        match &mut self {
            Credentials::Pattern(_, credential) => settle(credential),
            Credentials::List(list) => list.iter_mut().for_each(settle),
        }
        self
    }

    /// The credential of user `number` (from 1).
    pub fn of_user(&self, number: u64) -> Credential {
        match self {
            Credentials::Pattern(pattern, common) => {
                let name = Credential::new(&pattern.name(number), "");
                let domain = match name.domain.as_str() {
                    "" => common.domain.clone(),
                    _ => name.domain,
                };
                Credential { domain, password: common.password.clone(), user: name.user }
            }
            Credentials::List(list) => {
                let place = number.saturating_sub(1) as usize % list.len().max(1);
                list.get(place).cloned().unwrap_or_else(|| Credential::new("", ""))
            }
        }
    }
}

/// The folder of user `number` below the target's folder.
pub fn home(folder: &str, number: u64) -> String {
    match folder {
        "" => format!("user{number:05}"),
        folder => format!("{folder}\\user{number:05}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_the_users_out() {
        assert_eq!(Shard::parse("3/8"), Ok(Shard { index: 3, count: 8 }));
        for text in ["", "3", "0/8", "9/8", "a/b", "1/0"] {
            assert!(Shard::parse(text).is_err(), "{text}");
        }
        for users in [0, 1, 7, 8, 100] {
            let mut all: Vec<u64> =
                (1..=8).flat_map(|index| Shard { index, count: 8 }.users(users)).collect();
            all.sort_unstable();
            assert_eq!(all, (1..=users).collect::<Vec<_>>());
        }
        assert_eq!(Shard::ALL.users(3).collect::<Vec<_>>(), [1, 2, 3]);
    }

    /// Eight machines equal one: the same users, files, scenarios and times.
    #[test]
    fn eight_shards_equal_one_run() {
        use crate::fileset::Scale;
        use crate::workload::{Planner, Workload};
        let workload = std::sync::Arc::new(Workload::built_in("homefolder").unwrap());
        let planned = |shard: Shard| {
            let planner = Planner::new(workload.clone(), 5, Scale::FULL);
            let mut done = std::collections::BTreeMap::new();
            for user in shard.users(40) {
                let mut plans = planner.user(user, &home("", user));
                let executions: Vec<_> = (0..30)
                    .map(|_| {
                        let plan = plans.next_plan();
                        (plan.scenario().name.clone(), plan.due(), plan.files().to_vec())
                    })
                    .collect();
                let files: Vec<_> = planner.files().user(user).collect();
                done.insert(user, (executions, files));
            }
            done
        };
        let mut shared = std::collections::BTreeMap::new();
        for index in 1..=8 {
            shared.extend(planned(Shard { index, count: 8 }));
        }
        assert_eq!(shared, planned(Shard::ALL));
    }

    #[test]
    fn names_follow_from_numbers() {
        let name = |pattern: &str| NamePattern::parse(pattern).map(|pattern| pattern.name(7));
        assert_eq!(name("user{:05}").unwrap(), "user00007");
        assert_eq!(name("u{}@lab").unwrap(), "u7@lab");
        assert_eq!(name("alice").unwrap(), "alice");
        for pattern in ["", "a{", "a}", "a{:5}", "a{:0x}", "a{}{}"] {
            assert!(name(pattern).is_err(), "{pattern}");
        }
        let credentials = Credentials::pattern("LAB\\user{:05}", "secret").unwrap();
        assert_eq!(credentials.of_user(12).name(), "LAB\\user00012");
        assert!(!format!("{credentials:?}").contains("secret"));
        assert_eq!(credentials.in_domain("X").of_user(1).name(), "LAB\\user00001");
        let credentials = Credentials::pattern("user{}", "secret").unwrap().in_domain("LAB.TEST");
        assert_eq!(credentials.of_user(3).name(), "LAB.TEST\\user3");
        let credentials = Credentials::list("a:x\nb@B.TEST:y").unwrap().in_domain("A.TEST");
        assert_eq!(
            (credentials.of_user(1).name(), credentials.of_user(2).name()),
            ("A.TEST\\a".into(), "B.TEST\\b".into())
        );
    }

    #[test]
    fn lists_are_read() {
        let credentials = Credentials::list("# users\nalice:a:b\n\nLAB\\bob:x\r\n").unwrap();
        assert_eq!(credentials.of_user(1).name(), "alice");
        assert_eq!(credentials.of_user(2).name(), "LAB\\bob");
        assert_eq!(credentials.of_user(3).name(), "alice");
        assert_eq!(Credentials::list("alice").unwrap_err(), CredentialsError::Line(1));
        assert_eq!(Credentials::list("\n").unwrap_err(), CredentialsError::Empty);
        assert_eq!(home("a\\b", 3), "a\\b\\user00003");
    }
}
