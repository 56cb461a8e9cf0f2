//! Caches of clients compared with the namespace.
//!
//! `AccessStatus` is the status of the last access to a target (\[MS-ERREF\] 2.3.1); 0xC00000BE, the path of the network
//! was not found, is the sign of a server that is gone.

use std::collections::HashMap;

use smbscope_findings::KindInfo;

use super::super::form::{folded, split_unc};
use super::super::model::{CachedReferral, Target};
use super::referrals::{DOMAIN_TTL_S, is_of_domain};
use super::{Evidence, FindingKind, Findings, Severity, Subject, is_same_host};

pub(super) const FIRST_TARGET_FAILS: KindInfo = KindInfo::new("first-target-fails", "Clients try a target first that fails")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "remove or correct this target, or lower its priority: each client waits for the failure again when its referral expires")]);
pub(super) const CACHE_DIFFERS: KindInfo =
    KindInfo::new("cache-differs", "Clients hold targets that the namespace does not have")
        .with_severity(Severity::Medium)
        .with_remedies(&[(
            "namespace",
            "wait until these referrals expire, or flush them: dfsutil cache referral flush",
        )]);
pub(super) const SYSVOL_TTL: KindInfo = KindInfo::new("sysvol-ttl", "Referrals of SYSVOL or NETLOGON are not kept for 900 s")
    .with_severity(Severity::Medium)
    .with_remedies(&[("namespace", "dfsdiag /TestReferral expects 900 s, the default of domain controllers: compare the settings of the domain controllers; with a longer one clients stay on a domain controller that is gone")]);

const BAD_NETWORK_PATH: u32 = 0xc000_00be;

/// Names of statuses that clients show for targets.
fn status_name(status: u32) -> &'static str {
    match status {
        BAD_NETWORK_PATH => "STATUS_BAD_NETWORK_PATH",
        0xc000_00cc => "STATUS_BAD_NETWORK_NAME",
        0xc000_0022 => "STATUS_ACCESS_DENIED",
        0xc000_00b5 => "STATUS_IO_TIMEOUT",
        0xc000_00c4 => "STATUS_UNEXPECTED_NETWORK_ERROR",
        0xc000_020c => "STATUS_CONNECTION_DISCONNECTED",
        0xc000_0236 => "STATUS_CONNECTION_REFUSED",
        0xc000_023c => "STATUS_NETWORK_UNREACHABLE",
        0xc000_023d => "STATUS_HOST_UNREACHABLE",
        0xc000_006d => "STATUS_LOGON_FAILURE",
        _ => "an error",
    }
}

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.namespace();
    if subject.reading.caches.is_empty() {
        return;
    }
    let links: HashMap<String, &[Target]> =
        namespace.links.iter().map(|link| (folded(&link.path), link.targets.as_slice())).collect();
    for cache in &subject.reading.caches {
        for referral in &cache.referrals {
            let entry = format!("\\{}", referral.entry);
            let Some((host, name, below)) = split_unc(&entry) else { continue };
            let is_root_server =
                namespace.targets.iter().any(|target| is_same_host(host, &target.server));
            // A cache shows what is left of the TTL: only more than the whole is a fault.
            let left = referral.expires_s.filter(|left| *left > u64::from(DOMAIN_TTL_S));
            if let Some(left) =
                left.filter(|_| is_of_domain(name) && is_same_host(host, &namespace.host))
            {
                findings.add(FindingKind::SysvolTtl, || Evidence {
                    link: Some(entry.clone()),
                    place: Some(format!("cache of {}", cache.client)),
                    detail: format!("{left} s left"),
                    ..Evidence::default()
                });
            }
            if folded(name) != folded(&namespace.name)
                || !(is_same_host(host, &namespace.host) || is_root_server)
            {
                continue;
            }
            let known = if below.is_empty() {
                Some(namespace.targets.as_slice())
            } else {
                links.get(&folded(below)).copied()
            };
            first_fails(findings, &cache.client, referral, below);
            differs(findings, &cache.client, referral, below, known);
        }
    }
}

fn evidence(client: &str, link: &str, target: String, detail: String) -> Evidence {
    Evidence {
        link: (!link.is_empty()).then(|| link.to_owned()),
        target: Some(target),
        place: Some(format!("cache of {client}")),
        detail,
        repair: None,
    }
}

/// The first target failed, and the client works with a later one or with none.
fn first_fails(findings: &mut Findings, client: &str, referral: &CachedReferral, link: &str) {
    let active = referral.targets.iter().position(|target| target.active);
    for (number, target) in referral.targets.iter().enumerate() {
        if active.is_some_and(|active| number >= active) {
            break;
        }
        let Some(status) = target.access_status.filter(|status| *status != 0) else { continue };
        let severity = if status == BAD_NETWORK_PATH { Severity::High } else { Severity::Medium };
        findings.add_as(FindingKind::FirstTargetFails, severity, || {
            let then = match active.and_then(|active| referral.targets.get(active)) {
                Some(active) => format!("then \\\\{}\\{} answered", active.server, active.share),
                None => "no target answered".to_owned(),
            };
            let path = format!("\\\\{}\\{}", target.server, target.share);
            let detail =
                format!("target {number}: 0x{status:08X} ({}), {then}", status_name(status));
            evidence(client, link, path, detail)
        });
    }
}

fn differs(
    findings: &mut Findings,
    client: &str,
    referral: &CachedReferral,
    link: &str,
    known: Option<&[Target]>,
) {
    for target in &referral.targets {
        let is_known = known.is_some_and(|known| {
            known.iter().any(|one| {
                is_same_host(&one.server, &target.server)
                    && folded(&one.share) == folded(&target.share)
            })
        });
        if !is_known {
            findings.add(FindingKind::CacheDiffers, || {
                let expires = match referral.expires_s {
                    Some(seconds) => format!(", expires in {seconds} s"),
                    None => String::new(),
                };
                let what = if known.is_some() {
                    "not a target of the namespace"
                } else {
                    "the namespace has no such link"
                };
                let path = format!("\\\\{}\\{}", target.server, target.share);
                evidence(client, link, path, format!("{what}{expires}"))
            });
        }
    }
}
