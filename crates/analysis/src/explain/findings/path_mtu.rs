//! Large packets do not pass, small ones do: a link with a smaller MTU whose reports (ICMP, fragmentation needed) are
//! dropped on the way, a black hole of path MTU discovery (RFC 1191, RFC 2923 section 2.1).

use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;

use super::super::account::NOTICED_NS;
use super::super::candidate::Candidate;
use super::super::connections::Connections;
use super::super::data::FindingKind;
use super::super::waiting::{Until, attribution, by_connection};

pub(crate) const KIND: KindInfo = KindInfo::new("path-mtu", "large packets are lost")
    .with_actor(Actor::Network)
    .with_remedies(&[
    (
        "network",
        "find the link with the smaller MTU (VPN, tunnel, PPPoE) and let ICMP \"fragmentation needed\" (type 3 code 4; \
         ICMPv6 type 2) pass, or clamp the MSS there: iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS \
         --clamp-mss-to-pmtu",
    ),
    (
        "measurement",
        "ping -M do -s 1472 SERVER (Linux), ping -f -l 1472 SERVER (Windows): lower the size until it passes",
    ),
    (
        "client",
        "until then a smaller MTU on the interface: netsh interface ipv4 set subinterface NAME mtu=1400, ip link set dev NAME mtu 1400",
    ),
]);

/// The least MTU that IPv4 guarantees, without headers, bytes: segments up to this pass everywhere.
const SMALL_BYTES: u64 = 536;
/// A segment that was sent this often without an acknowledgement does not pass.
const ATTEMPTS_MIN: u64 = 3;

/// Data that were retransmitted, and what routers reported.
pub(crate) fn find(
    resent: &[&(u32, Wait)],
    reports: &[&(u32, Wait)],
    connections: &Connections,
) -> Option<Candidate> {
    let mut waits: Vec<Until> = Vec::new();
    let mut sizes: Vec<u64> = Vec::new();
    for (key, rows) in by_connection(resent) {
        let lost = |row: &&Wait| row.is_unanswered() && row.attempts >= ATTEMPTS_MIN;
        let large = |row: &&Wait| row.size_bytes.is_some_and(|bytes| bytes > SMALL_BYTES);
        // Small segments that get lost, too, are lost for another reason; and small ones must have passed.
        let passes = connections.get(key).is_some_and(|facts| facts.bytes > 0);
        let all_are_large = rows.iter().filter(|row| lost(row)).all(large);
        let stuck = rows.iter().copied().filter(|row| lost(row) && large(row));
        if !passes || !all_are_large {
            continue;
        }
        for row in stuck {
            sizes.extend(row.size_bytes);
            waits.push(Until { row, recording: key.0, until: row.last_attempt });
        }
    }
    waits.sort_by_key(|wait| wait.row.start);
    let waited_ns: i64 = waits.iter().map(Until::ns).sum();
    if waited_ns < NOTICED_NS {
        return None;
    }
    let report = reports.iter().find_map(|(_, row)| Some((row.answered_by.clone()?, row.size_bytes?)));
    let smallest = sizes.iter().min().copied().unwrap_or(0);
    let to_server = waits.iter().filter(|wait| wait.row.sent_by_client == Some(true)).count();
    let direction = match (to_server, waits.len()) {
        (0, _) => "from the server to the client",
        (some, all) if some == all => "from the client to the server",
        _ => "in both directions",
    };
    let connections_hit = by_connection(
        &resent.iter().copied().filter(|(_, row)| row.is_unanswered()).collect::<Vec<_>>(),
    )
    .len();
    let why = match &report {
        Some((router, bytes)) => format!("{router} reports that only packets of up to {bytes} bytes pass"),
        None => "no router reports it".to_owned(),
    };
    let what = format!(
        "Large packets {direction} are lost again and again, small ones pass: the MTU of the path is smaller than that of its ends, and {why}"
    );
    let (confidence, because) = match report {
        Some(_) => (Confidence::Measured, "the router's reports are in the recording"),
        None => (
            Confidence::Likely,
            "every segment that was retransmitted without success is large, and small segments of the same connections were acknowledged",
        ),
    };
    let attempts: u64 = waits.iter().map(|wait| wait.row.attempts).sum();
    let candidate = Candidate::new(FindingKind::PathMtu, what, attribution(&waits), confidence, because);
    Some(
        candidate
            .of_events()
            .broken()
            .beyond_busy(waited_ns)
            .with_figures([
                ("sent", attempts as f64, "", "sent {} times without success"),
                ("segment", smallest as f64, "bytes", "segments of {} and more"),
                ("connections", connections_hit as f64, "", "connections: {}"),
            ]),
    )
}
