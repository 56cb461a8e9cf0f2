//! What a judgement of a baseline must know of a recording, from its summary.

use std::collections::HashMap;

use smbscope_analysis::summary::{Group, Report, Sizes};
use smbscope_plan::baseline::catalogue::value::dialect;
use smbscope_plan::baseline::cost::{Facts, ShareFacts};
use smbscope_tables::protection::Protection;
use smbscope_tables::tables::Connection;

/// Bytes that one credit pays for ([MS-SMB2] 3.1.5.2).
const CREDIT_BYTES: u64 = 65_536;

/// The facts of a recording.
pub fn baseline_facts(report: &Report) -> Facts {
    let connections = || report.connections.rows.iter().map(|row| &row.connection);
    let read_most_bytes = largest(&report.reads);
    let write_most_bytes = largest(&report.writes);
    let block = read_most_bytes.max(write_most_bytes).unwrap_or(0);
    let name = |one: &Connection| one.dialect.clone();
    let of_most = most(connections(), name);
    let of_dialect = || connections().filter(|one| one.dialect == of_most);
    Facts {
        operations: report.totals.tally.operations,
        signed: report.protection.signed,
        encrypted: report.protection.encrypted,
        dialect: of_most.as_deref().and_then(|name| dialect(&name.to_lowercase())),
        signing_algorithm: most(of_dialect(), |one| {
            let negotiated = one.signing_algorithm.as_deref();
            Some(Protection::signing(one.dialect.as_deref(), negotiated).name().to_owned())
        }),
        cipher: most(of_dialect(), |one| {
            Some(Protection::encryption(Some(one.cipher.as_deref()?)).name().to_owned())
        }),
        shares: report.shares.rows.iter().filter_map(share).collect(),
        ntlm_logons: ntlm(report),
        rtt_ns: rtt_ns(connections()),
        outstanding_most: connections()
            .map(|one| {
                let used = one.outstanding_max.saturating_mul(block.div_ceil(CREDIT_BYTES).max(1));
                if one.credits_max > 0 { used.min(one.credits_max) } else { used }
            })
            .max(),
        read_most_bytes,
        write_most_bytes,
        has_channels: report.sessions.multichannel > 0,
    }
}

/// What connections with the most operations have.
fn most<'a>(
    connections: impl Iterator<Item = &'a Connection>,
    of: impl Fn(&Connection) -> Option<String>,
) -> Option<String> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for one in connections {
        if let Some(word) = of(one) {
            *counts.entry(word).or_default() += one.operations;
        }
    }
    // The word decides where counts are the same, so that the answer is always the same.
    let most =
        counts.into_iter().max_by(|one, other| one.1.cmp(&other.1).then(one.0.cmp(&other.0)));
    most.map(|(word, _)| word)
}

fn share(group: &Group) -> Option<ShareFacts> {
    Some(ShareFacts {
        unc: group.name.clone()?,
        operations: group.tally.operations,
        moved_bytes: group.tally.read_bytes + group.tally.written_bytes,
    })
}

/// The largest size, or an upper bound where not all sizes were counted.
fn largest(sizes: &Sizes) -> Option<u64> {
    let known = sizes.sizes.iter().map(|one| one.size_bytes).max();
    let bounds = sizes.powers.iter().filter(|one| one.operations > 0);
    match sizes.others {
        0 => known,
        _ => bounds.map(|one| one.below_bytes.unwrap_or(u64::MAX)).max().max(known),
    }
}

/// Sessions with NTLM; none where no mechanism is known.
fn ntlm(report: &Report) -> Option<u64> {
    let mechanisms = &report.sessions.mechanisms;
    let of = mechanisms.iter().filter(|one| one.name.to_uppercase().starts_with("NTLM"));
    (!mechanisms.is_empty()).then(|| of.map(|one| one.count).sum())
}

/// The median round trip of connections on which it is known.
fn rtt_ns<'a>(connections: impl Iterator<Item = &'a Connection>) -> Option<i64> {
    let mut known: Vec<i64> = connections
        .filter_map(|one| match (one.client_rtt_ns, one.server_rtt_ns) {
            (None, None) => None,
            (client, server) => Some(client.unwrap_or(0).saturating_add(server.unwrap_or(0))),
        })
        .collect();
    known.sort_unstable();
    known.get(known.len() / 2).copied()
}
