//! Names of servers and their addresses: from a hosts file, from a zone file, or as the caller resolved them.
//!
//! `hosts(5)`; zone files of RFC 1035 section 5 (A, AAAA and CNAME; `$ORIGIN`, `@`, names without a final dot are below the
//! origin). It asks no server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::form::folded;
use super::read::ReadError;
use crate::input::text::decode;

/// Aliases of aliases that are followed.
const ALIASES_MAX: usize = 8;
/// Names of one file.
const NAMES_MAX: usize = 1_000_000;

/// What is known about names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Addresses of a name in lower case; empty if it was looked for and has none.
    addresses: BTreeMap<String, BTreeSet<IpAddr>>,
    /// What a name is an alias of.
    aliases: BTreeMap<String, String>,
    /// Whether a name that is not here does not exist.
    is_complete: bool,
}

/// What a name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Its addresses, and the name that it is an alias of.
    To(BTreeSet<IpAddr>, Option<String>),
    /// It does not exist.
    Nothing,
    /// The input does not say.
    Unknown,
}

impl Resolution {
    /// Reads a hosts file or a zone file. A name that is not in it counts as one that does not resolve.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Resolution, ReadError> {
        let text = decode(bytes).text;
        let damaged =
            |line: usize, message: String| ReadError { file: file.to_owned(), line, message };
        let mut all = Resolution { is_complete: true, ..Resolution::default() };
        let mut origin = String::new();
        let mut last = String::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let line = line.split([';', '#']).next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(first) = words.first() else { continue };
            if all.addresses.len() + all.aliases.len() > NAMES_MAX {
                return Err(damaged(number, format!("more than {NAMES_MAX} names")));
            }
            if let Ok(address) = first.parse::<IpAddr>()
                && !line.starts_with(char::is_whitespace)
                && !words.iter().any(|word| word.eq_ignore_ascii_case("IN"))
            {
                if words.len() < 2 {
                    return Err(damaged(number, format!("the address {first} has no name")));
                }
                for name in words.iter().skip(1) {
                    all.add(name, address);
                }
                continue;
            }
            if first.eq_ignore_ascii_case("$ORIGIN") {
                origin = words.get(1).map(|name| absolute(name, "")).unwrap_or_default();
                continue;
            }
            if first.starts_with('$') {
                continue;
            }
            all.record(line, &words, &origin, &mut last)
                .map_err(|message| damaged(number, message))?;
        }
        if all.addresses.is_empty() && all.aliases.is_empty() {
            return Err(damaged(
                1,
                "no line ADDRESS NAME of a hosts file and no record A, AAAA or CNAME".to_owned(),
            ));
        }
        Ok(all)
    }

    /// A record of a zone; those of other types are passed.
    fn record(
        &mut self,
        line: &str,
        words: &[&str],
        origin: &str,
        last: &mut String,
    ) -> Result<(), String> {
        let mut rest = words;
        if !line.starts_with(char::is_whitespace) {
            *last = match rest.first() {
                Some(&"@") => origin.to_owned(),
                Some(name) => absolute(name, origin),
                None => return Ok(()),
            };
            rest = rest.get(1..).unwrap_or_default();
        }
        while let Some(word) = rest.first() {
            let is_class = ["IN", "CH", "HS"].iter().any(|class| class.eq_ignore_ascii_case(word));
            if !is_class && !word.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        let (Some(kind), value) = (rest.first(), rest.get(1)) else { return Ok(()) };
        match (kind.to_ascii_uppercase().as_str(), value) {
            ("A" | "AAAA", Some(value)) => {
                let address = value.parse().map_err(|_| format!("{value:?} is not an address"))?;
                self.addresses.entry(last.clone()).or_default().insert(address);
            }
            ("CNAME", Some(value)) => {
                self.aliases.insert(last.clone(), absolute(value, origin));
            }
            ("A" | "AAAA" | "CNAME", None) => {
                return Err(format!("a record {kind} without a value"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds an address of a name.
    pub fn add(&mut self, name: &str, address: IpAddr) {
        self.addresses.entry(absolute(name, "")).or_default().insert(address);
    }

    /// Notes that a name was looked for and does not exist.
    pub fn add_nothing(&mut self, name: &str) {
        self.addresses.entry(absolute(name, "")).or_default();
    }

    /// Notes that a name is an alias.
    pub fn add_alias(&mut self, name: &str, of: &str) {
        self.aliases.insert(absolute(name, ""), absolute(of, ""));
    }

    /// What a name resolves to. A short name is looked for as it is, and below each suffix that the known names have.
    pub fn resolve(&self, name: &str) -> Resolved {
        let name = absolute(name, "");
        if let Ok(address) = name.parse() {
            return Resolved::To(BTreeSet::from([address]), None);
        }
        let mut current = name.clone();
        for _ in 0..ALIASES_MAX {
            if let Some(addresses) = self.addresses.get(&current) {
                if addresses.is_empty() {
                    return Resolved::Nothing;
                }
                let alias = (current != name).then_some(current);
                return Resolved::To(addresses.clone(), alias);
            }
            let Some(next) = self.aliases.get(&current) else { break };
            current.clone_from(next);
        }
        if !name.contains('.') {
            let mut below = self.full_names(&name);
            if let (Some(only), None) = (below.next(), below.next()) {
                return self.resolve(only);
            }
        }
        if self.is_complete { Resolved::Nothing } else { Resolved::Unknown }
    }

    /// Names with more than one label that begin with a short name.
    pub fn full_names<'a>(&'a self, short: &str) -> impl Iterator<Item = &'a str> {
        let start = format!("{}.", folded(short));
        let names = self.addresses.iter().filter(|(_, addresses)| !addresses.is_empty());
        let names = names.map(|(name, _)| name).chain(self.aliases.keys());
        names.filter(move |name| name.starts_with(&start)).map(String::as_str)
    }
}

/// A name in lower case without its final dot; below the origin if it had none.
fn absolute(name: &str, origin: &str) -> String {
    match name.strip_suffix('.') {
        Some(whole) => folded(whole),
        None if origin.is_empty() => folded(name),
        None => folded(&format!("{name}.{origin}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(resolved: Resolved) -> Vec<String> {
        match resolved {
            Resolved::To(addresses, _) => addresses.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_hosts_file_is_read() {
        let text = b"# servers\n10.0.0.1 fs1.contoso.com FS1\n10.0.0.2\tfs2.contoso.com # old\n";
        let names = Resolution::read("hosts", text).unwrap();
        assert_eq!(addresses(names.resolve("fs1")), ["10.0.0.1"]);
        assert_eq!(addresses(names.resolve("FS2.contoso.com.")), ["10.0.0.2"]);
        assert_eq!(addresses(names.resolve("fs2")), ["10.0.0.2"]);
        assert_eq!(names.resolve("fs3"), Resolved::Nothing);
        assert_eq!(Resolution::read("hosts", b"10.0.0.1\n").unwrap_err().line, 1);
        assert!(Resolution::read("hosts", b"\n").is_err());
    }

    #[test]
    fn a_zone_is_read() {
        let zone = b"$ORIGIN contoso.com.\n$TTL 1h\n@ IN SOA dc1 admin 1 2 3 4 5\nfs1 3600 IN A 10.0.0.1\n    IN AAAA fd00::1\nfiles IN CNAME fs1\nloop CNAME loop\n";
        let names = Resolution::read("zone", zone).unwrap();
        assert_eq!(addresses(names.resolve("fs1.contoso.com")), ["10.0.0.1", "fd00::1"]);
        let Resolved::To(_, alias) = names.resolve("files") else { panic!("it is an alias") };
        assert_eq!(alias.as_deref(), Some("fs1.contoso.com"));
        assert_eq!(names.resolve("loop"), Resolved::Nothing);
        let damaged = Resolution::read("zone", b"$ORIGIN a.\nx IN A 1.2.3\n").unwrap_err();
        assert_eq!((damaged.line, damaged.message.as_str()), (2, "\"1.2.3\" is not an address"));
    }

    #[test]
    fn names_that_were_asked_are_known() {
        let mut names = Resolution::default();
        names.add_nothing("gone");
        assert_eq!(names.resolve("gone"), Resolved::Nothing);
        assert_eq!(names.resolve("other"), Resolved::Unknown);
    }
}
