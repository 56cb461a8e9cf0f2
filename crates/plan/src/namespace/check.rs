//! What is wrong with a namespace before it is moved, with evidence and repair.
//!
//! Owns the closed list of findings and what is checked on what; each subject has one file below. It changes nothing: that
//! is [`super::rewrite`].
//!
//! Rules: \[MS-DFSNM\] (names, states, the blob), \[MS-DFSC\] (referrals), Microsoft's guidance on DFS namespaces (5,000
//! links and a blob of 5 MB in Windows 2000 mode), `dfsdiag`.

use serde::Serialize;

use super::form::{Form, folded};
use super::model::{Kind, Namespace, Target};
use super::names::Domains;
use super::read::{ReadNamespace, Reading};
use super::referral::ReferralRow;
use super::resolution::Resolution;
use super::write::namespace_bytes;

mod caches;
mod compare;
mod finding;
mod limits;
mod links;
mod names;
mod paths;
mod referrals;
mod targets;
#[cfg(test)]
mod tests;

use finding::Findings;
pub use finding::{Evidence, Finding, FindingKind, Places};
pub use smbscope_findings::Severity;

/// When the servers are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cutover {
    /// Seconds until it begins.
    pub left_s: u64,
    /// Seconds for which the old servers still answer after it.
    pub window_s: u64,
}

/// What the check may use besides the files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    pub resolution: Option<&'a Resolution>,
    pub cutover: Option<Cutover>,
    /// Referrals of a capture.
    pub referrals: &'a [ReferralRow],
    /// Servers that take over.
    pub new_servers: &'a [String],
    /// More names of domains.
    pub domains: &'a [String],
}

/// A test that files cannot answer, with the command that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unchecked {
    pub what: &'static str,
    pub command: String,
}

/// The result for one namespace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedNamespace {
    /// `\\host\name`.
    pub path: String,
    pub form: Form,
    pub links: usize,
    pub targets: usize,
    /// Names of servers of links, as written, without case.
    pub servers: Vec<String>,
    /// Size of the blob in Windows 2000 mode: as printed or read, else estimated.
    pub blob_bytes: u64,
    pub is_blob_estimated: bool,
    /// The most severe first.
    pub findings: Vec<Finding>,
    pub unchecked: Vec<Unchecked>,
}

/// The result for all files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    pub namespaces: Vec<CheckedNamespace>,
    /// What belongs to no namespace that was read.
    pub findings: Vec<Finding>,
}

/// Checks everything that was read.
pub fn check(reading: &Reading, context: &Context<'_>) -> Checked {
    let namespaces =
        reading.namespaces.iter().map(|read| check_one(read, reading, context)).collect();
    let mut general = Findings::default();
    compare::orphans(reading, &mut general);
    Checked { namespaces, findings: general.finish() }
}

/// What is seriously wrong, one sentence each, unless a move to a mode repairs it: the rewritten file has `&amp;`, and Windows
/// Server 2008 mode has no blob.
pub fn serious(checked: &Checked, to: Kind) -> Vec<String> {
    let is_repaired = |kind: FindingKind| match kind {
        FindingKind::Ampersands => true,
        FindingKind::TooManyLinks | FindingKind::BlobTooLarge => to == Kind::DomainV2,
        _ => false,
    };
    let all = checked.namespaces.iter().flat_map(|one| &one.findings).chain(&checked.findings);
    let serious =
        all.filter(|one| one.severity() == Some(Severity::High) && !is_repaired(one.kind));
    let sentence = |one: &Finding| match one.details.evidence.first() {
        Some(first) => {
            let subject = [&first.link, &first.target, &first.place];
            let subject: Vec<_> = subject.into_iter().flatten().map(String::as_str).collect();
            format!("{} (first: {}: {})", one.what, subject.join(", "), first.detail)
        }
        None => one.what.clone(),
    };
    serious.map(sentence).collect()
}

/// What the checks of one namespace share.
struct Subject<'a> {
    read: &'a ReadNamespace,
    reading: &'a Reading,
    context: &'a Context<'a>,
    /// Hosts of the namespaces that were read.
    domains: Domains,
}

impl<'a> Subject<'a> {
    fn namespace(&self) -> &'a Namespace {
        &self.read.namespace
    }

    /// The place of a link in the files.
    fn link_place(&self, link: usize) -> String {
        let place = self.read.link_places.get(link).copied().unwrap_or(self.read.place);
        self.reading.place(place)
    }

    fn root_place(&self) -> String {
        self.reading.place(self.read.place)
    }

    /// Evidence about a link.
    fn link(&self, link: usize, detail: impl Into<String>) -> Evidence {
        Evidence {
            link: self.namespace().links.get(link).map(|link| link.path.clone()),
            target: None,
            place: Some(self.link_place(link)),
            detail: detail.into(),
            repair: None,
        }
    }

    /// Evidence about the root.
    fn root(&self, detail: impl Into<String>) -> Evidence {
        Evidence {
            link: None,
            target: None,
            place: Some(self.root_place()),
            detail: detail.into(),
            repair: None,
        }
    }

    /// `\\host\name`.
    fn path(&self) -> String {
        format!("\\\\{}\\{}", self.namespace().host, self.namespace().name)
    }

    /// `\\host\name\link`.
    fn link_path(&self, link: usize) -> String {
        let path = self.namespace().links.get(link).map_or("", |link| link.path.as_str());
        format!("{}\\{path}", self.path())
    }
}

/// `\\server\share`.
fn unc(target: &Target) -> String {
    format!("\\\\{}\\{}", target.server, target.share)
}

/// The first label of a server's name, in lower case; an address as a whole.
fn label(server: &str) -> String {
    if server.parse::<std::net::IpAddr>().is_ok() {
        return server.to_owned();
    }
    folded(server.split('.').next().unwrap_or(server))
}

/// Whether two names are of one server or domain as far as their text says: equal, or one is short and begins the other.
fn is_same_host(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
        || ((!one.contains('.') || !other.contains('.')) && label(one) == label(other))
}

fn check_one(read: &ReadNamespace, reading: &Reading, context: &Context<'_>) -> CheckedNamespace {
    let mut domains = Domains::new(context.domains.iter().map(String::as_str));
    reading.namespaces.iter().for_each(|one| domains.add_namespace(&one.namespace));
    let subject = Subject { read, reading, context, domains };
    let mut findings = Findings::default();
    let servers = names::check(&subject, &mut findings);
    links::check(&subject, &mut findings);
    targets::check(&subject, &mut findings);
    paths::check(&subject, &mut findings);
    limits::check(&subject, &mut findings);
    compare::check(&subject, &mut findings);
    caches::check(&subject, &mut findings);
    referrals::check(&subject, &mut findings);
    let namespace = &read.namespace;
    CheckedNamespace {
        path: subject.path(),
        form: read.form,
        links: namespace.links.len(),
        targets: namespace.links.iter().map(|link| link.targets.len()).sum(),
        servers,
        blob_bytes: read.blob_bytes.unwrap_or_else(|| namespace_bytes(namespace)),
        is_blob_estimated: read.blob_bytes.is_none(),
        findings: findings.finish(),
        unchecked: unchecked(&subject),
    }
}

/// What `dfsdiag` asks servers.
fn unchecked(subject: &Subject<'_>) -> Vec<Unchecked> {
    let path = subject.path();
    let host = &subject.namespace().host;
    if subject.read.form == Form::Msdfs {
        return Vec::new();
    }
    let one = |what, command: String| Unchecked { what, command };
    vec![
        one(
            "services, addresses and sites of the domain controllers",
            format!("dfsdiag /testdcs /domain:{host}"),
        ),
        one(
            "sites of namespace servers and targets",
            format!("dfsdiag /testsites /dfspath:\"{path}\" /recurse /full"),
        ),
        one(
            "settings and registry of the namespace servers",
            format!("dfsdiag /testdfsconfig /dfsroot:\"{path}\""),
        ),
        one(
            "reparse points, shares and permissions",
            format!("dfsdiag /testdfsintegrity /dfsroot:\"{path}\" /recurse /full"),
        ),
        one("answers of the servers", format!("dfsdiag /testreferral /dfspath:\"{path}\" /full")),
    ]
}
