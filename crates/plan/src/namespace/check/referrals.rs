//! Referrals of a capture compared with the namespace: what servers answer, who asks how often, and what that costs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use smbscope_findings::KindInfo;

use super::super::form::{LEVELS_MAX, folded, split_unc};
use super::super::model::{State, Target};
use super::super::referral::ReferralRow;
use super::{Evidence, FindingKind, Findings, Severity, Subject, is_same_host};

pub(super) const REFERRALS_DIFFER: KindInfo = KindInfo::new("referrals-differ", "Servers answer targets that the export does not have")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "find the server with the old data: dfsutil root forcesync on each namespace server, or export again")]);
pub(super) const REFERRALS_LACK: KindInfo = KindInfo::new("referrals-lack", "Servers leave out targets that the export has")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "check the state of these targets and the sites: in-site referrals leave out targets of other sites")]);
pub(super) const UNKNOWN_REFERRALS: KindInfo = KindInfo::new(
    "unknown-referrals",
    "Clients get referrals for links that the export does not have",
)
.with_severity(Severity::Medium)
.with_remedies(&[("namespace", "export again, or find the server that still has the link")]);
pub(super) const NEVER_NEW_SERVERS: KindInfo = KindInfo::new(
    "never-new-servers",
    "Clients never get the new servers",
)
.with_severity(Severity::High)
.with_remedies(&[(
    "namespace",
    "see which server answers them, and whether it has read the change: dfsutil root forcesync",
)]);
pub(super) const REFERRAL_STORMS: KindInfo = KindInfo::new("referral-storms", "Clients ask for the same referral again and again")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "check the TTL, and whether the first target answers: a client whose targets all fail asks again")]);
pub(super) const REFERRAL_COST: KindInfo =
    KindInfo::new("referral-cost", "Referrals cost round trips")
        .with_severity(Severity::Low)
        .with_remedies(&[(
            "namespace",
            "a longer TTL after the move, and no interlinks, save them",
        )]);

/// Requests of one client for one path within a minute that are a storm.
const STORM_REQUESTS: usize = 10;
const STORM_NS: i64 = 60_000_000_000;
/// TTL of referrals of SYSVOL and NETLOGON, in seconds.
pub(super) const DOMAIN_TTL_S: u32 = 900;

/// What a client did.
#[derive(Default)]
struct Client<'a> {
    requests: u64,
    elapsed_ns: Vec<i64>,
    /// Answers about links that have a new server, and whether one of them had it.
    asked_new: u64,
    got_new: bool,
    /// Times of requests by path.
    times: BTreeMap<&'a str, Vec<i64>>,
    server: &'a str,
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.namespace();
    let rows = subject.context.referrals;
    if rows.is_empty() {
        return;
    }
    let links: HashMap<String, usize> = namespace
        .links
        .iter()
        .enumerate()
        .map(|(number, link)| (folded(&link.path), number))
        .collect();
    let mut clients: BTreeMap<&str, Client<'_>> = BTreeMap::new();
    // Answers that were compared: the same one again says nothing new.
    let mut compared: BTreeSet<(&str, &str, &[String])> = BTreeSet::new();
    for row in rows {
        let path = if row.dfs_path.is_empty() { &row.path } else { &row.dfs_path };
        let Some((host, name, below)) = split_unc(path) else { continue };
        if !is_ours(subject, host) {
            continue;
        }
        if is_of_domain(name) && !row.targets.is_empty() {
            domain_ttl(findings, row, path);
        }
        if folded(name) != folded(&namespace.name) {
            continue;
        }
        let client = clients.entry(&row.client).or_default();
        client.requests += 1;
        client.server = &row.server;
        client.elapsed_ns.extend(row.elapsed_ns);
        client.times.entry(path.as_str()).or_default().push(row.at_ns);
        let link = longest(&links, below);
        let known = match link {
            Some(link) => namespace.links[link].targets.as_slice(),
            None => namespace.targets.as_slice(),
        };
        new_servers(subject, client, row, known);
        if row.targets.is_empty() || !compared.insert((&row.server, path, &row.targets)) {
            continue;
        }
        if link.is_none() && !below.is_empty() {
            findings.add(FindingKind::UnknownReferrals, || {
                evidence(
                    row,
                    below,
                    None,
                    format!("{} answers {}", row.server, row.targets.join(", ")),
                )
            });
            continue;
        }
        compare(findings, row, below, known);
    }
    for (name, client) in &clients {
        of_client(subject, findings, name, client);
    }
    cost(subject, findings, &clients);
}

/// Whether it is a share of every domain controller, which the DFS service answers by itself.
pub(super) fn is_of_domain(name: &str) -> bool {
    ["sysvol", "netlogon"].iter().any(|share| name.eq_ignore_ascii_case(share))
}

/// What `dfsdiag /TestReferral` checks of SYSVOL and NETLOGON.
fn domain_ttl(findings: &mut Findings, row: &ReferralRow, path: &str) {
    let Some(ttl_s) = row.ttl_s.filter(|ttl_s| *ttl_s != DOMAIN_TTL_S) else { return };
    findings.add(FindingKind::SysvolTtl, || Evidence {
        link: Some(path.to_owned()),
        place: Some(format!("answer of {} to {}", row.server, row.client)),
        detail: format!("TTL {ttl_s} s"),
        ..Evidence::default()
    });
}

fn is_ours(subject: &Subject<'_>, host: &str) -> bool {
    let namespace = subject.namespace();
    is_same_host(host, &namespace.host)
        || namespace.targets.iter().any(|target| is_same_host(host, &target.server))
}

/// The link that is the path or the longest one above it.
fn longest(links: &HashMap<String, usize>, below: &str) -> Option<usize> {
    let path = folded(below);
    let mut end = path.len();
    for _ in 0..LEVELS_MAX {
        if let Some(link) = path.get(..end).and_then(|above| links.get(above)) {
            return Some(*link);
        }
        end = path.get(..end)?.rfind('\\')?;
    }
    None
}

fn evidence(row: &ReferralRow, link: &str, target: Option<String>, detail: String) -> Evidence {
    Evidence {
        link: (!link.is_empty()).then(|| link.to_owned()),
        target,
        place: Some(format!("answer of {} to {}", row.server, row.client)),
        detail,
        repair: None,
    }
}

fn is_target(target: &Target, path: &str) -> bool {
    split_unc(path).is_some_and(|(server, share, below)| {
        let share = if below.is_empty() { share.to_owned() } else { format!("{share}\\{below}") };
        is_same_host(&target.server, server)
            && folded(target.share.trim_end_matches('\\')) == folded(&share)
    })
}

fn compare(findings: &mut Findings, row: &ReferralRow, link: &str, known: &[Target]) {
    for path in &row.targets {
        match known.iter().find(|target| is_target(target, path)) {
            Some(target) if target.state == State::Offline => {
                findings.add(FindingKind::ReferralsDiffer, || {
                    evidence(row, link, Some(path.clone()), "offline in the export".to_owned())
                });
            }
            Some(_) => {}
            None => findings.add(FindingKind::ReferralsDiffer, || {
                evidence(row, link, Some(path.clone()), "not in the export".to_owned())
            }),
        }
    }
    for target in known.iter().filter(|target| target.state == State::Online) {
        if !row.targets.iter().any(|path| is_target(target, path)) {
            findings.add(FindingKind::ReferralsLack, || {
                evidence(
                    row,
                    link,
                    Some(super::unc(target)),
                    "online in the export, not in the answer".to_owned(),
                )
            });
        }
    }
}

fn new_servers(
    subject: &Subject<'_>,
    client: &mut Client<'_>,
    row: &ReferralRow,
    known: &[Target],
) {
    let is_new =
        |server: &str| subject.context.new_servers.iter().any(|new| is_same_host(new, server));
    if subject.context.new_servers.is_empty() || !known.iter().any(|target| is_new(&target.server))
    {
        return;
    }
    client.asked_new += 1;
    client.got_new |=
        row.targets.iter().any(|path| split_unc(path).is_some_and(|(server, ..)| is_new(server)));
}

fn of_client(subject: &Subject<'_>, findings: &mut Findings, name: &str, client: &Client<'_>) {
    let place = || Some(format!("client {name}"));
    if client.asked_new > 0 && !client.got_new {
        findings.add(FindingKind::NeverNewServers, || Evidence {
            place: place(),
            detail: format!(
                "{} answers, none with {}; the last came from {}",
                client.asked_new,
                subject.context.new_servers.join(" or "),
                client.server
            ),
            ..Evidence::default()
        });
    }
    for (path, times) in &client.times {
        let mut times = times.clone();
        times.sort_unstable();
        let storm = times
            .windows(STORM_REQUESTS)
            .find(|window| window[STORM_REQUESTS - 1].saturating_sub(window[0]) < STORM_NS);
        if storm.is_some() {
            findings.add(FindingKind::ReferralStorms, || Evidence {
                link: Some((*path).to_owned()),
                place: place(),
                detail: format!(
                    "{} requests, {STORM_REQUESTS} or more of them within a minute",
                    times.len()
                ),
                ..Evidence::default()
            });
        }
    }
}

/// What referrals cost all clients.
fn cost(subject: &Subject<'_>, findings: &mut Findings, clients: &BTreeMap<&str, Client<'_>>) {
    let mut elapsed: Vec<i64> =
        clients.values().flat_map(|client| client.elapsed_ns.iter().copied()).collect();
    elapsed.sort_unstable();
    let requests: u64 = clients.values().map(|client| client.requests).sum();
    if requests == 0 {
        return;
    }
    let most = clients.iter().max_by_key(|(_, client)| client.requests);
    findings.add(FindingKind::ReferralCost, || {
        let ms = |ns: i64| ns as f64 / 1e6;
        let times = match elapsed.get(elapsed.len() / 2) {
            Some(median) => format!(
                ", {:.1} ms in total, median {:.2} ms, longest {:.2} ms (n = {})",
                ms(elapsed.iter().fold(0, |sum, one| sum.saturating_add(*one))),
                ms(*median),
                ms(elapsed.last().copied().unwrap_or_default()),
                elapsed.len()
            ),
            None => String::new(),
        };
        let most = most.map_or(String::new(), |(name, client)| {
            format!("; the most by {name}: {}", client.requests)
        });
        subject.root(format!("{requests} round trips of {} clients{times}{most}", clients.len()))
    });
}
