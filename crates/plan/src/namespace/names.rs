//! Names of servers and domains: short names against FQDNs, servers against domains.
//!
//! Owns when two names mean the same server, and which hosts are domains. Looks nothing up: \[MS-DFSC\] 3.1.5.4.3
//! compares names as text, and so do clients, but an export, a cache and an administrator write the same server in
//! different ways.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::model::{Kind, Namespace};

/// Whether a name is an address, which has no labels.
fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

/// The name in lower case, without white space around it, a dot at its end or backslashes before it.
pub fn normal(name: &str) -> String {
    name.trim().trim_start_matches('\\').trim_end_matches('.').to_lowercase()
}

/// The part before the first dot of a normal name; an address as it is.
pub fn short(normal: &str) -> &str {
    if is_address(normal) {
        return normal;
    }
    normal.split('.').next().unwrap_or(normal)
}

/// Whether a name has a domain.
pub fn is_qualified(name: &str) -> bool {
    normal(name).contains('.')
}

/// Whether two names mean the same server: equal, or one is the other's first label.
///
/// Two FQDNs in different domains are different servers.
pub fn same_server(one: &str, other: &str) -> bool {
    same_normal(&normal(one), &normal(other))
}

fn same_normal(one: &str, other: &str) -> bool {
    if one == other {
        return !one.is_empty();
    }
    let is_short = |name: &str| !name.contains('.');
    (is_short(one) || is_short(other)) && !one.is_empty() && short(one) == short(other)
}

/// The name with a domain: as it is if it has one or is an address.
pub fn qualified(name: &str, suffix: Option<&str>) -> String {
    let name = name.trim().trim_start_matches('\\').trim_end_matches('.');
    match suffix {
        Some(suffix) if !is_qualified(name) && !is_address(name) => {
            format!("{name}.{}", suffix.trim_matches('.'))
        }
        _ => name.to_owned(),
    }
}

/// A set of servers that is asked often.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    /// Normal names by their first label.
    by_label: BTreeMap<String, Vec<(String, usize)>>,
}

impl Servers {
    /// The servers in their order.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Servers {
        let mut by_label: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (place, name) in names.into_iter().enumerate() {
            let name = normal(name);
            by_label.entry(short(&name).to_owned()).or_default().push((name, place));
        }
        Servers { by_label }
    }

    /// The place of the server in the list.
    pub fn place(&self, name: &str) -> Option<usize> {
        let name = normal(name);
        let same = self.by_label.get(short(&name))?;
        same.iter().find(|(known, _)| same_normal(known, &name)).map(|(_, place)| *place)
    }

    /// Whether the server is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.place(name).is_some()
    }
}

/// Hosts that are domains: a path below them is a DFS path, and they never get a suffix.
///
/// A domain has a NetBIOS name and an FQDN, which need not begin alike: `NORDWIND` is `ad.nordwind.example`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    names: BTreeSet<String>,
    /// Labels of the FQDNs without the last one: the NetBIOS name is usually one of them.
    labels: BTreeSet<String>,
}

impl Domains {
    /// The domains of these names.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Domains {
        let mut domains = Domains::default();
        names.into_iter().for_each(|name| domains.add(name));
        domains
    }

    /// Adds a name of a domain: NetBIOS or FQDN.
    pub fn add(&mut self, name: &str) {
        let name = normal(name);
        if name.is_empty() || is_address(&name) {
            return;
        }
        if let Some((labels, _)) = name.rsplit_once('.') {
            self.labels.extend(labels.split('.').map(str::to_owned));
        }
        self.names.insert(name);
    }

    /// Adds the domains of a namespace: its host, unless that is a server (of a stand-alone namespace, or a root target), and
    /// targets whose name is the domain of other targets.
    pub fn add_namespace(&mut self, namespace: &Namespace) {
        let is_server = matches!(namespace.kind, Some(Kind::Standalone | Kind::Samba))
            || namespace.targets.iter().any(|target| same_server(&target.server, &namespace.host));
        if !is_server {
            self.add(&namespace.host);
        }
        let of_links = namespace.links.iter().flat_map(|link| &link.targets);
        let names = namespace.targets.iter().chain(of_links).map(|target| target.server.as_str());
        let names: BTreeSet<&str> = names.filter(|name| !is_address(name)).collect();
        let names: BTreeSet<String> = names.into_iter().map(normal).collect();
        let parents: BTreeSet<&str> =
            names.iter().filter_map(|name| Some(name.split_once('.')?.1)).collect();
        let domains =
            names.iter().filter(|name| name.contains('.') && parents.contains(name.as_str()));
        domains.for_each(|name| self.add(name));
    }

    /// Whether a host is one of the domains, by its FQDN, its NetBIOS name, or a short name that is a label of the FQDN.
    pub fn contains(&self, host: &str) -> bool {
        let host = normal(host);
        self.names.contains(&host) || (!host.contains('.') && self.labels.contains(&host))
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Target;
    use super::*;

    #[test]
    fn a_domain_is_known_by_its_fqdn_and_its_labels() {
        let domains = Domains::new(["ad.nordwind.example", "ACME"]);
        for host in ["NORDWIND", "ad", "AD.nordwind.example.", "acme"] {
            assert!(domains.contains(host), "{host}");
        }
        for host in ["example", "nordwind.example", "fs1", "fs1.ad.nordwind.example", ""] {
            assert!(!domains.contains(host), "{host}");
        }
        // The host of a stand-alone namespace is a server.
        let mut domains = Domains::default();
        let alone = Namespace {
            host: "fs1.a.com".to_owned(),
            kind: Some(Kind::Standalone),
            ..Namespace::default()
        };
        domains.add_namespace(&alone);
        assert!(!domains.contains("fs1.a.com"));
        domains.add_namespace(&Namespace { kind: None, ..alone });
        assert!(domains.contains("fs1.a.com"));
        // A target that other targets are below is a domain.
        let target = |server: &str| Target { server: server.to_owned(), ..Target::default() };
        let below = Namespace {
            host: "NORDWIND".to_owned(),
            targets: ["nwdfs2.ad.nordwind.example", "ad.nordwind.example", "NWDFS1"]
                .map(target)
                .to_vec(),
            ..Namespace::default()
        };
        let mut domains = Domains::default();
        domains.add_namespace(&below);
        assert!(domains.contains("ad.nordwind.example") && !domains.contains("NWDFS1"));
    }

    #[test]
    fn a_short_name_is_its_fqdn_and_no_other() {
        assert!(same_server("FILE1", "file1.child.corp.contoso.com."));
        assert!(same_server("\\\\FILE1", "file1"));
        assert!(!same_server("file1.a.com", "file1.b.com"));
        assert!(!same_server("file1", "file11.a.com"));
        assert!(!same_server("", ""));
        // Addresses have no first label.
        assert!(!same_server("10.0.0.1", "10.0.0.2") && same_server("10.0.0.1", "10.0.0.1"));
        assert!(!same_server("10", "10.0.0.1"));
    }

    #[test]
    fn names_get_the_domain_once() {
        assert_eq!(qualified("FILE1", Some("a.com")), "FILE1.a.com");
        assert_eq!(qualified("file1.b.com", Some("a.com")), "file1.b.com");
        assert_eq!(qualified("10.0.0.1", Some("a.com")), "10.0.0.1");
        assert_eq!(qualified("FILE1", None), "FILE1");
    }

    #[test]
    fn a_set_finds_either_form() {
        let set = Servers::new(["FILE1", "file2.a.com"]);
        assert_eq!(set.place("file1.a.com"), Some(0));
        assert_eq!(set.place("FILE2"), Some(1));
        assert_eq!(set.place("file2.b.com"), None);
        assert!(!set.contains(""));
    }
}
