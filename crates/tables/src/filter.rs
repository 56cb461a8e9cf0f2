//! Which operations are asked about: by time, client, server, share, user, path, command and duration.
//!
//! Owns the conditions ([`Filter`]), their words, and how they apply to the rows of all tables
//! ([`RowFilter`]). Where a condition comes from (a command line, a clock time of some zone) is the
//! caller's. Several values of one condition are alternatives; conditions of different kinds must all
//! hold. A value that a row does not know meets no condition.

mod command;
mod endpoint;
mod pattern;
mod rows;
mod traces;

pub use command::{CommandChoice, UnknownCommand};
pub use endpoint::{Endpoint, EndpointError};
pub use pattern::{PathPattern, ShareName, UserName};
pub use rows::RowFilter;

use crate::readable::{self, zoned};

/// Which operations are asked about. The default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The operation's request began at this time or later, ns since 1970.
    pub from: Option<i64>,
    /// The operation's request began before this time, ns since 1970.
    pub to: Option<i64>,
    /// The client is one of these.
    pub clients: Vec<Endpoint>,
    /// The server is one of these.
    pub servers: Vec<Endpoint>,
    /// The share is one of these.
    pub shares: Vec<ShareName>,
    /// The user is one of these.
    pub users: Vec<UserName>,
    /// The path matches one of these.
    pub paths: Vec<PathPattern>,
    /// The command is one of these.
    pub commands: Vec<CommandChoice>,
    /// The operation took this long or longer, ns.
    pub slower_ns: Option<i64>,
}

impl Filter {
    /// Whether every operation meets it.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// Whether the time is in the period.
    pub fn has_time(&self, time: i64) -> bool {
        self.from.is_none_or(|from| time >= from) && self.to.is_none_or(|to| time < to)
    }

    /// Whether some of the time from `start` to `end` is in the period.
    pub fn overlaps(&self, start: i64, end: i64) -> bool {
        self.from.is_none_or(|from| end >= from) && self.to.is_none_or(|to| start < to)
    }

    /// Whether all of the time from `start` to `end` is in the period.
    pub fn includes(&self, start: i64, end: i64) -> bool {
        self.from.is_none_or(|from| start >= from) && self.to.is_none_or(|to| end <= to)
    }

    /// The filter for people, for example `share docs; command Read or Write; from
    /// 2026-11-26T14:05:00Z`. With `hides_names`, values that can name a person, a machine or a path
    /// are only counted. Times are those of a zone `ahead_s` seconds ahead of UTC.
    pub fn words(&self, hides_names: bool, ahead_s: i32) -> String {
        let mut words = Vec::new();
        let mut push = |what: &str, values: Vec<String>, is_name: bool| match values.len() {
            0 => {}
            1 if is_name && hides_names => words.push(format!("one {what}")),
            n if is_name && hides_names => words.push(format!("{n} {what}s")),
            _ => words.push(format!("{what} {}", values.join(" or "))),
        };
        push("client", texts(&self.clients), true);
        push("server", texts(&self.servers), true);
        push("share", texts(&self.shares), true);
        push("user", texts(&self.users), true);
        push("path", texts(&self.paths), true);
        push("command", texts(&self.commands), false);
        let slower = self.slower_ns.map(readable::duration);
        push("taking at least", slower.into_iter().collect(), false);
        let period = [("from", self.from), ("to", self.to)];
        let period = period
            .iter()
            .filter_map(|(word, time)| Some(format!("{word} {}", zoned((*time)?, ahead_s))));
        let period: Vec<_> = period.collect();
        if !period.is_empty() {
            words.push(period.join(" "));
        }
        words.join("; ")
    }
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(T::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_each_condition_and_hide_names_if_requested() {
        let filter = Filter {
            from: Some(1_709_210_096_000_000_000),
            to: Some(1_709_210_096_500_000_000),
            shares: vec!["docs".parse().unwrap(), "home".parse().unwrap()],
            users: vec!["alice".parse().unwrap()],
            commands: vec!["create".parse().unwrap()],
            slower_ns: Some(100_000_000),
            ..Filter::default()
        };
        let period = "from 2024-02-29T12:34:56Z to 2024-02-29T12:34:56.5Z";
        assert_eq!(
            filter.words(false, 0),
            format!(
                "share docs or home; user alice; command Create; taking at least 100 ms; {period}"
            )
        );
        assert_eq!(
            filter.words(true, 0),
            format!("2 shares; one user; command Create; taking at least 100 ms; {period}")
        );
        assert!(Filter::default().is_empty() && !filter.is_empty());
        assert_eq!(Filter::default().words(false, 0), "");
        let later = Filter { from: filter.from, ..Filter::default() }.words(false, -19_800);
        assert_eq!(later, "from 2024-02-29T07:04:56-05:30");
    }

    #[test]
    fn a_period_includes_its_start_and_excludes_its_end() {
        let filter = Filter { from: Some(10), to: Some(20), ..Filter::default() };
        assert!(filter.has_time(10) && filter.has_time(19));
        assert!(!filter.has_time(9) && !filter.has_time(20));
        assert!(filter.overlaps(5, 10) && filter.overlaps(19, 30) && filter.overlaps(0, 100));
        assert!(!filter.overlaps(0, 9) && !filter.overlaps(20, 30));
        assert!(filter.includes(10, 20) && !filter.includes(9, 20) && !filter.includes(10, 21));
        assert!(Filter::default().includes(0, 30));
    }
}
