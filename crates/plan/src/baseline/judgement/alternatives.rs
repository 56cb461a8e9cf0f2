//! The cheaper way to the same protection: another algorithm by the dialect, encryption for the shares that need it, Kerberos
//! instead of NTLM. Where the protection is not quite the same, it says what is lost.
//!
//! Sources: [MS-SMB2] 2.2.3.1.7 (AES-GMAC with SMB 3.1.1 only), 3.2.4.2.4 (a logon with NTLM takes another exchange); smb.conf(5).

use serde::{Deserialize, Serialize};

use super::super::catalogue::parameters::has_parameter;
use super::super::catalogue::{self, CostKey, Preset, System};
use super::super::cost::predicted::Estimate;
use super::super::cost::questions::Inquiry;
use super::super::cost::{Answer, Facts, Question};
use super::super::difference::{Change, Difference};
use super::super::protection::View;
use super::super::roles::MachineRole;
use super::super::setting::{Origin, Place, Setting, Value};
use super::super::terms::SettingKey;

/// A cheaper way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The settings that it replaces.
    pub instead_of: Vec<SettingKey>,
    pub what: String,
    /// What it protects, compared with them.
    pub protection: String,
    /// What is lost; none where it protects as much.
    pub price: Option<String>,
    pub needs: String,
    /// The settings that make it.
    pub settings: Vec<Setting>,
    /// What it is predicted by.
    pub question: Option<Question>,
    /// Time of all recorded operations that it saves, ns; none where that is not known.
    pub saved_ns: Option<Estimate>,
    /// For each MiB read or written.
    pub saved_ns_per_mib: Option<Estimate>,
    /// Users that the server then carries, of those that it carries today, per cent.
    pub users_percent: Option<Estimate>,
    /// Why the saving is not known.
    pub unknown: Option<String>,
}

/// An alternative that waits for its prediction.
#[derive(Clone, Debug)]
pub(super) struct PendingAlternative {
    alternative: Alternative,
    /// The questions of what it replaces, and of itself; none where the saving is known.
    compared: Option<(usize, usize)>,
}

impl PendingAlternative {
    /// With the saving. None where it does not save anything.
    pub(super) fn answer(&self, inquiry: &Inquiry, answers: &[Answer]) -> Option<Alternative> {
        let mut one = self.alternative.clone();
        let Some((replaced, own)) = self.compared else { return Some(one) };
        one.question = inquiry.questions.get(own).cloned();
        match (inquiry.predicted(replaced, answers), inquiry.predicted(own, answers)) {
            (Ok(replaced), Ok(own)) => {
                let saved = less(replaced.added_ns, own.added_ns);
                if saved.value <= 0.0 {
                    return None;
                }
                one.saved_ns = Some(saved);
                let per_mib = replaced.ns_per_mib.zip(own.ns_per_mib);
                // A part of the operations has other bytes.
                one.saved_ns_per_mib = per_mib
                    .filter(|_| replaced.question.shares == own.question.shares)
                    .map(|(replaced, own)| less(replaced, own));
                one.users_percent = own.users.map(|users| users.percent);
            }
            (Err(because), _) | (_, Err(because)) => one.unknown = Some(because),
        }
        Some(one)
    }
}

/// A difference; the errors of both are taken as independent.
fn less(one: Estimate, other: Estimate) -> Estimate {
    let error = |one: Estimate| (one.high - one.low) / 2.0;
    Estimate::new(one.value - other.value, error(one).hypot(error(other)))
}

/// The alternatives to what a baseline changes, with their questions.
pub(super) fn alternatives(
    difference: &Difference,
    [_, after]: [View<'_>; 2],
    facts: Option<&Facts>,
    inquiry: &mut Inquiry,
) -> Vec<PendingAlternative> {
    let mut found = Vec::new();
    let system = after.side.system.or(after.below.and_then(|below| below.system));
    let ways = &Ways { difference, system, role: after.side.role };
    // Questions of the baseline itself: alternatives ask more.
    for (number, question) in inquiry.questions.clone().into_iter().enumerate() {
        let [change] = &question.changes[..] else { continue };
        let Some((kind, target)) = change.split_once('=') else { continue };
        match (kind, target) {
            // Without the algorithm only a newer version helps.
            ("signing", "hmac-sha256" | "aes-cmac") if system.is_none_or(System::has_gmac) => {
                found.push(gmac(ways, after, &question, target, number, inquiry));
            }
            ("encryption", "aes-128-ccm" | "aes-256-ccm" | "aes-256-gcm") => {
                found.extend(gcm(ways, &question, target, number, inquiry));
            }
            ("write-through", "on") => found.push(by_request(ways)),
            _ => {}
        }
        if kind == "encryption" && target != "off" && question.shares.is_empty() {
            found.extend(one_share(ways, target, number, facts, inquiry));
        }
    }
    found.extend(facts.and_then(|facts| kerberos(after, facts)));
    found
}

/// What changes, on which version and machine.
struct Ways<'a> {
    difference: &'a Difference,
    system: Option<System>,
    role: MachineRole,
}

impl Ways<'_> {
    /// Whether the version has a setting, and the side that it is about is the machine's.
    fn has(&self, row: &catalogue::Row) -> bool {
        let systems: Vec<_> = match self.system {
            Some(system) => vec![system],
            // An unknown version of Windows: all.
            None => System::ALL.into_iter().filter(|one| !one.is_samba()).collect(),
        };
        let is_samba = self.system.is_none() && row.is_of_samba();
        let is_there = |system: &System| row.default_of(*system) != Preset::Absent;
        self.role.has(row.role) && (is_samba || systems.iter().all(is_there))
    }
}

fn keys(Ways { difference, .. }: &Ways<'_>, is_of: impl Fn(&Change) -> bool) -> Vec<SettingKey> {
    let of = difference.changes.iter().filter(|change| is_of(change));
    of.map(|change| change.key.clone()).collect()
}

/// A setting of the catalogue, in the form (Windows or Samba) that the baseline has most of.
fn setting(ways: &Ways<'_>, id: &str, value: &str, share: Option<&str>) -> Option<Setting> {
    let row = catalogue::row(id).filter(|row| ways.has(row))?;
    let difference = ways.difference;
    let is_samba = |change: &&Change| {
        let place = change.to.as_ref().and_then(|to| to.place.as_ref());
        matches!(place, Some(Place::Samba { .. }))
    };
    let samba = difference.changes.iter().filter(is_samba).count();
    let wants_samba = ways.system.map_or(2 * samba > difference.changes.len(), System::is_samba);
    let exists = |place: &Place| match place {
        Place::Smb { object, property } => has_parameter(object, property, ways.system),
        Place::Samba { .. } => ways.system.is_none_or(System::is_samba),
        Place::Registry { .. } => ways.system.is_none_or(|system| !system.is_samba()),
        _ => true,
    };
    let places = row.places.iter().filter_map(|pattern| {
        let place = pattern.place(share).filter(exists)?;
        let value = pattern.write(row, value)?;
        Some((matches!(place, Place::Samba { .. }) == wants_samba, place, value))
    });
    // Places of the other kind are better than none.
    let (_, place, value) = places
        .max_by_key(|(is_wanted, place, _)| (*is_wanted, matches!(place, Place::Smb { .. })))?;
    Some(Setting { place, value, origin: Origin::default() })
}

fn new(instead_of: Vec<SettingKey>, what: impl Into<String>) -> Alternative {
    Alternative {
        instead_of,
        what: what.into(),
        protection: String::new(),
        price: None,
        needs: String::new(),
        settings: Vec::new(),
        question: None,
        saved_ns: None,
        saved_ns_per_mib: None,
        users_percent: None,
        unknown: None,
    }
}

fn gmac(
    ways: &Ways<'_>,
    after: View<'_>,
    question: &Question,
    target: &str,
    replaced: usize,
    inquiry: &mut Inquiry,
) -> PendingAlternative {
    let own = inquiry.ask(&["signing=aes-gmac"], question.shares.clone());
    let instead_of = keys(ways, |change| {
        matches!(change.cost, CostKey::Signing | CostKey::Dialect | CostKey::Hardened)
    });
    // The newest dialect is negotiated unless something forbids it.
    let most = |id: &str| match after.value(id) {
        Some(value) if value != "785" => setting(ways, id, "785", None),
        _ => None,
    };
    let settings = [
        most("server-dialect-most"),
        most("client-dialect-most"),
        setting(ways, "server-signing-algorithms", "aes-128-gmac,aes-128-cmac,hmac-sha256", None)
            .filter(|one| {
                let changes = &ways.difference.changes;
                changes.iter().any(|change| change.key.id == "server-signing-algorithms")
                    && matches!(one.place, Place::Samba { .. })
            }),
    ];
    let alternative = Alternative {
        protection: format!("The same: each message is signed. {target} and AES-GMAC protect it alike."),
        needs: "SMB 3.1.1 and AES-GMAC on both sides: Windows Server 2022, Windows 11, or a Samba with \
                `server smb3 signing algorithms` (4.17 has it)."
            .to_owned(),
        settings: settings.into_iter().flatten().collect(),
        ..new(instead_of, "Sign with AES-GMAC: let both sides negotiate SMB 3.1.1")
    };
    PendingAlternative { alternative, compared: Some((replaced, own)) }
}

fn gcm(
    ways: &Ways<'_>,
    question: &Question,
    target: &str,
    replaced: usize,
    inquiry: &mut Inquiry,
) -> Vec<PendingAlternative> {
    let instead_of = keys(ways, |change| {
        matches!(change.cost, CostKey::Encryption | CostKey::Dialect | CostKey::Hardened)
    });
    let shorter = "128 bits instead of 256: some rules demand 256".to_owned();
    let ciphers: &[(&str, bool)] = match target {
        "aes-128-ccm" => &[("aes-128-gcm", false)],
        "aes-256-ccm" => &[("aes-256-gcm", false), ("aes-128-gcm", true)],
        _ => &[("aes-128-gcm", true)],
    };
    let mut found = Vec::new();
    for &(cipher, is_shorter) in ciphers {
        let own = inquiry.ask(&[&format!("encryption={cipher}")], question.shares.clone());
        let alternative = Alternative {
            protection: if is_shorter {
                "Data is kept and protected, with a shorter key.".to_owned()
            } else {
                "The same: GCM keeps and protects the data as CCM does.".to_owned()
            },
            price: is_shorter.then(|| shorter.clone()),
            needs: "SMB 3.1.1 on both sides.".to_owned(),
            settings: setting(ways, "server-ciphers", cipher, None).into_iter().collect(),
            ..new(instead_of.clone(), format!("Encrypt with {cipher}"))
        };
        found.push(PendingAlternative { alternative, compared: Some((replaced, own)) });
    }
    found
}

/// Encryption for all shares but the one with the most operations.
fn one_share(
    ways: &Ways<'_>,
    cipher: &str,
    replaced: usize,
    facts: Option<&Facts>,
    inquiry: &mut Inquiry,
) -> Option<PendingAlternative> {
    let facts = facts?;
    let busiest = facts.shares.iter().max_by_key(|share| (share.moved_bytes, share.operations))?;
    let others: Vec<_> = facts
        .shares
        .iter()
        .filter(|share| share.unc != busiest.unc)
        .map(|one| one.unc.clone())
        .collect();
    if others.is_empty() {
        return None;
    }
    let name = |unc: &str| unc.rsplit('\\').next().unwrap_or(unc).to_owned();
    let mut settings: Vec<_> = setting(ways, "server-encryption", "0", None).into_iter().collect();
    settings.extend(
        others.iter().filter_map(|unc| setting(ways, "share-encryption", "1", Some(&name(unc)))),
    );
    let own = inquiry.ask(&[&format!("encryption={cipher}")], others.clone());
    let of = keys(ways, |change| change.key.id == "server-encryption");
    let alternative = Alternative {
        protection: format!("The same for {}.", others.join(", ")),
        price: Some(format!(
            "Data of {} can be read on the network: leave it out only if nothing in it is confidential",
            busiest.unc
        )),
        needs: "A decision for each share.".to_owned(),
        settings,
        ..new(of, "Encrypt the shares that need it instead of the whole server")
    };
    Some(PendingAlternative { alternative, compared: Some((replaced, own)) })
}

/// Write-through by request.
fn by_request(ways: &Ways<'_>) -> PendingAlternative {
    let of = keys(ways, |change| change.cost == CostKey::WriteThrough);
    let alternative = Alternative {
        protection: "Programs that request it (Flush, write-through) have stable data as before."
            .to_owned(),
        price: Some("Other acknowledged writes can be lost when the machine fails".to_owned()),
        needs: "smbscope durability //SERVER/SHARE shows what survives.".to_owned(),
        settings: setting(ways, "sync-always", "0", None).into_iter().collect(),
        unknown: Some("It is what the recording shows: all of the predicted cost.".to_owned()),
        ..new(of, "Make stable what clients request, and nothing else")
    };
    PendingAlternative { alternative, compared: None }
}

/// Kerberos instead of NTLM: an exchange less for each logon.
fn kerberos(after: View<'_>, facts: &Facts) -> Option<PendingAlternative> {
    let (logons, rtt_ns) = (facts.ntlm_logons.filter(|&one| one > 0)?, facts.rtt_ns?);
    let is_blocked = after.value("ntlm-incoming") == Some("2");
    if is_blocked {
        return None;
    }
    let saved = logons as f64 * rtt_ns.max(0) as f64;
    let alternative = Alternative {
        protection: "Better: Kerberos also proves who the server is.".to_owned(),
        needs:
            "Clients that use the server's name, not its address or an alias without a principal."
                .to_owned(),
        // At least the round trip; the request to a domain controller is not in a recording of the server.
        saved_ns: Some(Estimate { value: saved, low: saved, high: saved }),
        settings: vec![Setting {
            place: Place::Registry {
                scope: super::super::setting::Scope::Computer,
                key: r"SYSTEM\CurrentControlSet\Control\Lsa\MSV1_0".to_owned(),
                name: "AuditReceivingNTLMTraffic".to_owned(),
            },
            value: Value::Dword(2),
            origin: Origin::default(),
        }],
        ..new(
            Vec::new(),
            format!(
                "Kerberos instead of NTLM: {logons} recorded logons took an exchange more (the setting shows which clients)"
            ),
        )
    };
    Some(PendingAlternative { alternative, compared: None })
}
