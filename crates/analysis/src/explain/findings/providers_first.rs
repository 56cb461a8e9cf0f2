//! The client tries other ways before SMB: names by broadcast and multicast, WebDAV, NetBIOS, each with its own
//! timeouts. Windows asks its network providers in their order (MUP; HKLM\SYSTEM\CurrentControlSet\Control\
//! NetworkProvider\Order), and each may wait for what does not answer.

use std::collections::BTreeSet;

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::connections::list_names;
use super::super::data::FindingKind;
use super::super::waiting::{Until, attribution};

pub(crate) const KIND: KindInfo = KindInfo::new("providers-first", "other providers before SMB")
    .with_actor(Actor::Client)
    .with_remedies(&[
    (
        "client",
        "Windows: stop the WebClient service where WebDAV is not used, and put LanmanWorkstation first in \
         HKLM\\SYSTEM\\CurrentControlSet\\Control\\NetworkProvider\\Order, value ProviderOrder",
    ),
    (
        "network",
        "let firewalls refuse connections (reset) instead of dropping them: a refusal takes a round trip, a dropped SYN 21 s",
    ),
    (
        "client",
        "use the server's full DNS name in mappings, so that names are not looked up by broadcast",
    ),
]);

/// What clients waited for before they began SMB.
#[derive(Default)]
pub(crate) struct Providers {
    attribution: Attribution,
    tried: BTreeSet<String>,
    servers: BTreeSet<String>,
    longest_ns: i64,
    times: u64,
    unanswered: u64,
}

impl Providers {
    /// Adds what a client waited for before the connection `connect`.
    pub(crate) fn add(&mut self, waits: &[Until], connect: &Wait) {
        let begun = waits.iter().map(|wait| wait.row.start).min().unwrap_or(connect.start);
        self.times += 1;
        self.longest_ns = self.longest_ns.max(connect.start.saturating_sub(begun));
        self.servers.insert(connect.server.clone());
        for row in waits.iter().map(|wait| wait.row).filter(|row| row.is_unanswered()) {
            self.unanswered += row.attempts;
            self.tried.insert(match (row.kind.as_str(), row.port) {
                ("name_lookup", _) => format!("names by {}", row.protocol),
                ("ticket", _) => format!("Kerberos at {}", row.server),
                ("directory", _) => format!("LDAP at {}", row.server),
                (_, 80 | 443) => format!("WebDAV (port {})", row.port),
                (_, port) => format!("port {port} of {}", row.server),
            });
        }
        self.attribution.merge(attribution(waits));
    }
}

pub(crate) fn finish(providers: Providers) -> Option<Candidate> {
    if providers.times == 0 {
        return None;
    }
    let tried = match providers.tried.len() {
        0 => "other services".to_owned(),
        _ => list_names(&providers.tried),
    };
    let servers = list_names(&providers.servers);
    let saved_ns = providers.attribution.saved_ns;
    let candidate = Candidate::new(
        FindingKind::ProvidersFirst,
        format!(
            "The client tries {tried} before it connects to {servers} by SMB: each of these waits for an answer that does not come"
        ),
        providers.attribution,
        Confidence::Likely,
        "these packets precede the first SYN to the file server, concern the same name or machine, and have no answer",
    );
    Some(
        candidate
            .of_events()
            .beyond_busy(saved_ns)
            .with_owner(Actor::Client, Vec::new())
            .with_figures([
                ("longest_before_smb", providers.longest_ns as f64, "ns", "up to {} before the first SYN to the file server"),
                ("unanswered", providers.unanswered as f64, "", "packets without an answer: {}"),
                ("times", providers.times as f64, "", "before {} connections"),
            ]),
    )
}
