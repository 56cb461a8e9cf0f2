//! Remedies that a recording has already are left out, or replaced by what remains to do.
//!
//! The list is the only place that knows when a remedy is of no use; the remedies are in the files of the findings, the
//! facts in [`protocol_state`](super::protocol_state).

use smbscope_findings::Remedy;

use super::candidate::Candidate;
use super::findings::{
    bandwidth_limited, break_not_acknowledged, credit_starvation, failing_lookups,
    head_of_line_blocking, no_compounding, open_close_churn, protection, repeated_lookups,
    share_conflicts, slow_flush, small_reads, window_limited,
};
use super::protocol_state::ProtocolState;
use crate::predict::changes::Change;

/// The side that acts, and what it does.
type Words = (&'static str, &'static str);

/// A remedy, when it is of no use, and what remains to do then.
struct Held {
    remedy: Words,
    holds: fn(&ProtocolState) -> bool,
    instead: Option<Words>,
}

const fn held(remedy: Words, holds: fn(&ProtocolState) -> bool, instead: Option<Words>) -> Held {
    Held { remedy, holds, instead }
}

/// The first that holds counts.
const HELD: &[Held] = &[
    held(
        repeated_lookups::GRANT,
        ProtocolState::has_directory_leases,
        Some(repeated_lookups::LEASES_UNUSED),
    ),
    held(repeated_lookups::SAMBA_LEASES, ProtocolState::has_directory_leases, None),
    held(
        repeated_lookups::LEASES,
        ProtocolState::has_directory_leases,
        Some(repeated_lookups::LEASES_UNUSED),
    ),
    held(
        repeated_lookups::ATTRIBUTE_CACHE,
        |state| state.keeps_for(2e9),
        Some(repeated_lookups::LONGER_CACHE),
    ),
    held(
        failing_lookups::MISSING_CACHE,
        |state| state.keeps_for(4.5e9),
        Some(failing_lookups::LONGER_CACHE),
    ),
    held(
        open_close_churn::SAMBA_LEASES,
        ProtocolState::has_file_leases,
        Some(open_close_churn::LEASES_UNUSED),
    ),
    held(no_compounding::CLIENT, ProtocolState::has_compounds, Some(no_compounding::CALLS)),
    held(small_reads::CLIENT, ProtocolState::is_smb311, Some(small_reads::CLIENT_311)),
    held(small_reads::SAMBA, ProtocolState::has_large_blocks, None),
    held(small_reads::SAMBA, ProtocolState::is_smb2, Some(small_reads::SAMBA_SMB2)),
    held(small_reads::WINDOWS, ProtocolState::has_large_blocks, None),
    held(small_reads::WINDOWS, ProtocolState::is_smb2, Some(small_reads::WINDOWS_SMB2)),
    held(bandwidth_limited::COMPRESS, ProtocolState::is_compressed, None),
    held(protection::QUICK, ProtocolState::has_quick_protection, None),
    held(protection::SAMBA, ProtocolState::has_quick_protection, None),
    held(protection::WINDOWS, ProtocolState::has_quick_protection, None),
    held(
        credit_starvation::SAMBA,
        ProtocolState::has_default_credits,
        Some(credit_starvation::SAMBA_MORE),
    ),
    held(
        credit_starvation::WINDOWS,
        ProtocolState::has_default_credits,
        Some(credit_starvation::WINDOWS_MORE),
    ),
    held(
        credit_starvation::CLIENT,
        ProtocolState::has_channels,
        Some(credit_starvation::CLIENT_CHANNELS),
    ),
    held(
        head_of_line_blocking::CLIENT,
        ProtocolState::has_channels,
        Some(head_of_line_blocking::CLIENT_CHANNELS),
    ),
    held(
        break_not_acknowledged::RAISE,
        ProtocolState::has_many_outstanding,
        Some(break_not_acknowledged::RAISE_MORE),
    ),
    held(
        window_limited::LINUX,
        ProtocolState::has_window_scales,
        Some(window_limited::LINUX_SCALED),
    ),
    held(window_limited::NETWORK, ProtocolState::has_window_scales, None),
    held(slow_flush::WINDOWS, ProtocolState::is_not_continuous, None),
    held(share_conflicts::SAMBA, ProtocolState::is_smb2, None),
];

/// Adapts a candidate's remedies, and the changes that are replayed, to what its connections have.
pub(super) fn adapt(candidate: &mut Candidate, mut state: ProtocolState) {
    state.asked_again_ns = candidate.finding.figure(repeated_lookups::ASKED_AGAIN);
    let remedies = std::mem::take(&mut candidate.finding.remedies);
    let adapted = remedies.into_iter().filter_map(|remedy| {
        let mut list = HELD.iter();
        let held = list.find(|held| Remedy::from(held.remedy) == remedy && (held.holds)(&state));
        match held {
            Some(held) => held.instead.map(Remedy::from),
            None => Some(remedy),
        }
    });
    candidate.finding.remedies = adapted.collect();
    if state.has_directory_leases() {
        candidate.changes.retain(|change| *change != Change::DirLease(()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::FindingKind;
    use super::*;
    use smbscope_findings::Kind as _;

    #[test]
    fn nothing_holds_where_nothing_is_known() {
        let state = ProtocolState::default();
        assert!(HELD.iter().all(|held| !(held.holds)(&state)));
    }

    #[test]
    fn each_kind_keeps_a_remedy() {
        for kind in FindingKind::ALL {
            let left = kind.info().remedies.iter().filter(|remedy| {
                let mut list = HELD.iter();
                !list.any(|held| held.remedy == **remedy && held.instead.is_none())
            });
            assert!(left.count() > 0, "{kind:?}");
        }
    }
}
