//! Times to live and sizes.
//!
//! 5,000 links and 5 MB of blob are Microsoft's recommendations for Windows 2000 mode. A client that got its referral just
//! before a change keeps it for the whole TTL: that is why a shorter TTL helps only after the old one.

use std::collections::BTreeMap;

use smbscope_findings::KindInfo;

use super::super::form::Form;
use super::super::model::Kind;
use super::super::waits::{LINK_TTL_S, ROOT_TTL_S};
use super::super::write::namespace_bytes;
use super::{Cutover, Evidence, FindingKind, Findings, Severity, Subject};
use crate::script::quote::powershell;

pub(super) const TTL_TOO_LONG: KindInfo =
    KindInfo::new("ttl-too-long", "Clients keep referrals longer than the cut-over allows")
        .with_severity(Severity::High)
        .with_remedies(&[(
            "namespace",
            "shorten the TTLs now, and wait for the old ones before the old servers go",
        )]);
pub(super) const LONG_TTL: KindInfo =
    KindInfo::new("long-ttl", "Referrals are kept for more than a day")
        .with_severity(Severity::Low)
        .with_remedies(&[(
            "namespace",
            "shorten the TTL before a move: Set-DfsnFolder -TimeToLiveSec 1800",
        )]);
pub(super) const ZERO_TTL: KindInfo = KindInfo::new("zero-ttl", "Referrals are not kept")
    .with_severity(Severity::Medium)
    .with_remedies(&[(
        "namespace",
        "set a TTL: clients ask before every access (300 s for roots, 1800 s for links)",
    )]);
pub(super) const TOO_MANY_LINKS: KindInfo =
    KindInfo::new("too-many-links", "More links than Windows 2000 mode carries")
        .with_severity(Severity::High)
        .with_remedies(&[(
            "namespace",
            "move to Windows Server 2008 mode, which keeps each link in an object of its own",
        )]);
pub(super) const BLOB_TOO_LARGE: KindInfo = KindInfo::new("blob-too-large", "The blob is larger than the directory keeps well")
    .with_severity(Severity::High)
    .with_remedies(&[("namespace", "move to Windows Server 2008 mode, or shorten comments and paths: every change replicates the whole blob")]);

/// Links of a namespace in Windows 2000 mode.
const LINKS_V1: usize = 5_000;
/// Bytes of its blob.
const BLOB_BYTES: u64 = 5_000_000;
/// A TTL above a day.
const DAY_S: u32 = 86_400;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    sizes(subject, findings);
    let namespace = subject.namespace();
    if let Some(ttl_s) = namespace.ttl_s {
        ttl(subject, findings, None, ttl_s);
    }
    let mut by_ttl: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (number, link) in namespace.links.iter().enumerate() {
        if let Some(ttl_s) = link.ttl_s {
            by_ttl.entry(ttl_s).or_default().push(number);
        }
    }
    for (ttl_s, links) in &by_ttl {
        ttl(subject, findings, Some(links), *ttl_s);
    }
}

fn sizes(subject: &Subject<'_>, findings: &mut Findings) {
    let namespace = subject.namespace();
    // An export does not say in which mode its namespace is.
    let severity = match namespace.kind {
        Some(Kind::DomainV1) => Severity::High,
        None if matches!(
            subject.read.form,
            Form::Export2003 | Form::Export2008 | Form::Objects
        ) =>
        {
            Severity::Medium
        }
        _ => return,
    };
    let links = namespace.links.len();
    let (bytes, how) = match subject.read.blob_bytes {
        Some(bytes) => (bytes, "has"),
        None => (namespace_bytes(namespace), "is estimated at"),
    };
    if links > LINKS_V1 {
        findings.add_as(FindingKind::TooManyLinks, severity, || {
            subject.root(format!(
                "{links} links; {LINKS_V1} are recommended; the blob {how} {bytes} bytes"
            ))
        });
    }
    if bytes > BLOB_BYTES {
        findings.add_as(FindingKind::BlobTooLarge, severity, || {
            subject.root(format!("the blob {how} {bytes} bytes; {BLOB_BYTES} are recommended"))
        });
    }
}

/// Judges the TTL of the root, or of all links that have it: one place for all of them.
fn ttl(subject: &Subject<'_>, findings: &mut Findings, links: Option<&[usize]>, ttl_s: u32) {
    let evidence = |detail: String, repair_s: u32| {
        let Some(links) = links else {
            let path = powershell(&subject.path());
            let repair = Some(format!("Set-DfsnRoot -Path {path} -TimeToLiveSec {repair_s}"));
            return Evidence { repair, ..subject.root(detail) };
        };
        let one = links.first().map_or_else(|| subject.root(""), |link| subject.link(*link, ""));
        let (path, which, others) = match links {
            [only] => (subject.link_path(*only), "", String::new()),
            [_, others @ ..] => (
                format!("{}\\*", subject.path()),
                " | Where-Object TimeToLiveSec -eq ",
                format!(", and {} more links", others.len()),
            ),
            [] => return one,
        };
        let which = if which.is_empty() { String::new() } else { format!("{which}{ttl_s}") };
        // Brackets are wildcards of -Path, and a single link is named exactly.
        let repair = match which.as_str() {
            "" => format!("Set-DfsnFolder -Path {} -TimeToLiveSec {repair_s}", powershell(&path)),
            _ => format!(
                "Get-DfsnFolder -Path {}{which} | Set-DfsnFolder -TimeToLiveSec {repair_s}",
                powershell(&path)
            ),
        };
        Evidence { repair: Some(repair), detail: format!("{detail}{others}"), ..one }
    };
    if ttl_s == 0 {
        let usual = if links.is_some() { LINK_TTL_S } else { ROOT_TTL_S };
        findings.add(FindingKind::ZeroTtl, || evidence("the TTL is 0".to_owned(), usual));
    }
    let shown = time(u64::from(ttl_s));
    match subject.context.cutover {
        Some(Cutover { left_s, window_s }) if u64::from(ttl_s) > window_s => {
            // The shortest that is still a cache.
            let repair_s = u32::try_from((window_s / 2).max(60)).unwrap_or(ttl_s).min(ttl_s);
            // If the TTL is shortened now, the last old referral expires after the old TTL.
            let late_s = u64::from(ttl_s).saturating_sub(left_s);
            let severity = if late_s > window_s { Severity::High } else { Severity::Medium };
            findings.add_as(FindingKind::TtlTooLong, severity, || {
                let allowed = time(window_s);
                let detail = if late_s > window_s {
                    let late = time(late_s);
                    format!(
                        "TTL {shown}: even if it is shortened now, the last clients keep the old referral until {late} after the cut-over begins, {allowed} are allowed"
                    )
                } else {
                    format!("TTL {shown}, {allowed} are allowed; shorten it at least {shown} before the cut-over")
                };
                evidence(detail, repair_s)
            });
        }
        Some(_) => {}
        None if ttl_s > DAY_S => {
            findings.add(FindingKind::LongTtl, || evidence(format!("TTL {shown}"), LINK_TTL_S));
        }
        None => {}
    }
}

/// A time with at most two units: `90 s`, `1 h 30 min`, `7 days`.
fn time(seconds: u64) -> String {
    let parts: &[(u64, &str)] = match seconds {
        0..=119 => return format!("{seconds} s"),
        120..=3_599 => &[(seconds / 60, "min"), (seconds % 60, "s")],
        3_600..=86_399 => &[(seconds / 3_600, "h"), (seconds / 60 % 60, "min")],
        _ => &[(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h")],
    };
    let shown = parts.iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}
