//! Names of servers: short or full, whether they resolve, whether two names are one server.

use std::collections::HashMap;

use smbscope_findings::KindInfo;

use super::super::form::folded;
use super::super::resolution::Resolved;
use super::{Evidence, FindingKind, Findings, Severity, Subject, label};

pub(super) const MIXED_NAMES: KindInfo = KindInfo::new("mixed-names", "Servers are named by their short name and by their FQDN")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "write all targets with FQDN: plan namespace rewrite --fqdn; clients take the two names for two servers, with two logons and two caches")]);
pub(super) const SHORT_NAMES: KindInfo = KindInfo::new("short-names", "Targets have short names")
    .with_severity(Severity::Low)
    .with_remedies(&[("namespace", "write FQDN (plan namespace rewrite --fqdn), and let namespace servers answer them: Set-DfsnServerConfiguration -UseFqdn $true; clients of other domains and without the suffix do not find short names")]);
pub(super) const ADDRESSES: KindInfo =
    KindInfo::new("addresses", "Targets are addresses instead of names")
        .with_severity(Severity::Medium)
        .with_remedies(&[(
            "namespace",
            "write the server's FQDN: Kerberos needs a name, and a logon by NTLM may be refused",
        )]);
pub(super) const UNRESOLVED_NAMES: KindInfo = KindInfo::new("unresolved-names", "Names of servers do not resolve")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "correct the name, or add it to DNS; clients wait for the failure before they try the next target")]);
pub(super) const DIFFERENT_ADDRESSES: KindInfo = KindInfo::new(
    "different-addresses",
    "A short name and its FQDN resolve to different addresses",
)
.with_severity(Severity::High)
.with_remedies(&[("namespace", "find out which server is meant before names are rewritten")]);
pub(super) const ALIASES: KindInfo = KindInfo::new("aliases", "Targets name an alias")
    .with_severity(Severity::Low)
    .with_remedies(&[("namespace", "register the alias with netdom computername /add or name the server itself: Kerberos needs a service principal name for the alias")]);

/// A server's name and where it is used.
struct Use {
    /// As first written.
    server: String,
    targets: u64,
    /// The first link that has it; none for the root.
    link: Option<usize>,
}

/// Checks the names, and gives all names of servers of links.
pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) -> Vec<String> {
    let namespace = subject.namespace();
    let mut uses: HashMap<String, Use> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let mut add = |server: &str, link: Option<usize>| {
        let key = folded(server);
        match uses.get_mut(&key) {
            Some(known) => known.targets += 1,
            None => {
                names.push(key.clone());
                uses.insert(key, Use { server: server.to_owned(), targets: 1, link });
            }
        }
        names.len()
    };
    let mut of_links = 0;
    for (number, link) in namespace.links.iter().enumerate() {
        for target in &link.targets {
            of_links = add(&target.server, Some(number));
        }
    }
    for target in &namespace.targets {
        add(&target.server, None);
    }
    let mut by_label: HashMap<String, Vec<&str>> = HashMap::new();
    for name in &names {
        by_label.entry(label(name)).or_default().push(name);
    }
    let evidence = |one: &Use, detail: String| Evidence {
        target: Some(one.server.clone()),
        ..match one.link {
            Some(link) => subject.link(link, detail),
            None => subject.root(detail),
        }
    };
    for name in &names {
        let Some(one) = uses.get(name) else { continue };
        if name.parse::<std::net::IpAddr>().is_ok() {
            findings.add(FindingKind::Addresses, || {
                evidence(one, format!("{} in {} targets", one.server, one.targets))
            });
        } else if subject.domains.contains(name) {
            // A domain is found by its domain controllers. Its NetBIOS name need not be in DNS.
            domain(subject, findings, name, one, &evidence);
            continue;
        } else if !name.contains('.') {
            let full = by_label.get(&label(name)).and_then(|all| {
                all.iter().find(|other| other.contains('.')).and_then(|other| uses.get(*other))
            });
            match full {
                Some(full) => findings.add(FindingKind::MixedNames, || {
                    evidence(
                        one,
                        format!(
                            "{} in {} targets, {} in {}",
                            one.server, one.targets, full.server, full.targets
                        ),
                    )
                }),
                None => findings.add(FindingKind::ShortNames, || {
                    evidence(one, format!("{} in {} targets", one.server, one.targets))
                }),
            }
        }
        resolve(subject, findings, name, one, &evidence);
    }
    names.truncate(of_links);
    names.sort();
    names
}

/// A domain's FQDN that does not resolve. A list of servers need not have it, so that this is not certain.
fn domain(
    subject: &Subject<'_>,
    findings: &mut Findings,
    name: &str,
    one: &Use,
    evidence: &impl Fn(&Use, String) -> Evidence,
) {
    let Some(resolution) = subject.context.resolution.filter(|_| name.contains('.')) else {
        return;
    };
    if resolution.resolve(name) == Resolved::Nothing {
        findings.add_as(FindingKind::UnresolvedNames, Severity::Medium, || {
            evidence(one, format!("the domain {}, in {} targets", one.server, one.targets))
        });
    }
}

fn resolve(
    subject: &Subject<'_>,
    findings: &mut Findings,
    name: &str,
    one: &Use,
    evidence: &impl Fn(&Use, String) -> Evidence,
) {
    let Some(resolution) = subject.context.resolution else { return };
    match resolution.resolve(name) {
        Resolved::Unknown => {}
        Resolved::Nothing => findings.add(FindingKind::UnresolvedNames, || {
            evidence(one, format!("{} in {} targets", one.server, one.targets))
        }),
        Resolved::To(addresses, alias) => {
            if let Some(alias) = alias {
                findings.add(FindingKind::Aliases, || {
                    evidence(one, format!("{} is an alias of {alias}", one.server))
                });
            }
            if name.contains('.') {
                return;
            }
            for full in resolution.full_names(name) {
                let Resolved::To(others, _) = resolution.resolve(full) else { continue };
                if others.is_disjoint(&addresses) {
                    findings.add(FindingKind::DifferentAddresses, || {
                        let list = |all: &std::collections::BTreeSet<std::net::IpAddr>| {
                            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                        };
                        evidence(
                            one,
                            format!(
                                "{} is {}, {full} is {}",
                                one.server,
                                list(&addresses),
                                list(&others)
                            ),
                        )
                    });
                }
            }
        }
    }
}
