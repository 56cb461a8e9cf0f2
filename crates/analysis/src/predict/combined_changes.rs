//! Changes that are predicted together: which exclude each other, which has no effect because of another, and
//! what a prediction of several leaves out.

use super::changes::Change;
use super::plan::Plan;

/// Why these changes cannot be predicted together.
pub fn conflict(changes: &[Change]) -> Option<&'static str> {
    changes.iter().find_map(|change| change.conflict(changes))
}

/// Warnings about the combination, a sentence each. With `has_load`, the prediction says how many users the
/// server carries or how long they wait, and what is left out of that is added.
pub fn warnings(changes: &[Change], has_load: bool) -> Vec<String> {
    let mut warnings: Vec<_> = overridden(changes)
        .iter()
        .map(|change| format!("--change {change} has no effect: a later change replaces it."))
        .collect();
    let plan = plan(changes);
    let superseded = changes.iter().find_map(|change| change.superseded(&plan));
    warnings.extend(superseded.map(str::to_owned));
    let mut names: Vec<_> =
        changes.iter().filter(|one| one.changes_demand()).map(Change::name).collect();
    names.dedup();
    if has_load && !names.is_empty() {
        warnings.push(format!(
            "The number of users that the server carries and their waits assume that a scenario needs as much of \
             its CPUs and disks as in the recording; what --change {} adds or saves there is not included.",
            names.join(", ")
        ));
    }
    warnings
}

fn plan(changes: &[Change]) -> Plan {
    let mut plan = Plan::default();
    changes.iter().for_each(|change| change.plan(&mut plan));
    plan
}

/// Changes without which the plan would be the same, although each alone changes something.
fn overridden(changes: &[Change]) -> Vec<Change> {
    let (whole, mut left, mut overridden) = (plan(changes), changes.to_vec(), Vec::new());
    let mut place = 0;
    while place < left.len() {
        let mut others = left.clone();
        let one = others.remove(place);
        if plan(&others) == whole && plan(&[one]) != Plan::default() {
            overridden.push(one);
            left = others;
        } else {
            place += 1;
        }
    }
    overridden
}

#[cfg(test)]
mod tests {
    use smbscope_tables::protection::Protection;

    use super::*;

    #[test]
    fn a_change_that_a_later_one_replaces_is_reported() {
        let said = |changes: &[Change]| warnings(changes, false).join(" ");
        let text = said(&[Change::Distance(100.0), Change::Rtt(0.002), Change::Rtt(0.02)]);
        assert!(text.contains("distance=100km has no effect"), "{text}");
        assert!(text.contains("rtt=2000us has no effect") && !text.contains("20000us"), "{text}");
        let twice = said(&[Change::Loss(0.01), Change::Loss(0.01)]);
        assert_eq!(twice.matches("no effect").count(), 1, "{twice}");
        // Each has an effect, or is today's value.
        let changes = [
            Change::Rtt(0.02),
            Change::Distance(100.0),
            Change::Distance(100.0),
            Change::Filesystem(2.0),
            Change::Filesystem(0.5),
            Change::Channels(1),
            Change::Block(4096),
            Change::ReadBlock(8192),
        ];
        assert_eq!(said(&changes), "");
        let both =
            [Change::Signing(Protection::AesCmac), Change::Encryption(Protection::Aes128Gcm)];
        assert!(said(&both).contains("are not signed"));
        assert_eq!(said(&[both[0], Change::Encryption(Protection::None)]), "");
    }

    #[test]
    fn waits_are_reported_to_be_those_of_the_recorded_demand() {
        let changes = [Change::Users(100.0), Change::Filesystem(2.0), Change::Rtt(0.01)];
        let said = warnings(&changes, true).join(" ");
        assert!(said.contains("--change filesystem adds"), "{said}");
        assert!(warnings(&[Change::Users(100.0), Change::Rtt(0.01)], true).is_empty());
        assert!(warnings(&[Change::Users(100.0), Change::Cpu(2.0)], true).is_empty());
        assert!(warnings(&changes, false).is_empty());
    }

    #[test]
    fn depth_and_blocks_exclude_each_other() {
        assert!(conflict(&[Change::Depth(8), Change::WriteBlock(4096)]).is_some());
        assert!(conflict(&[Change::Depth(8), Change::Rtt(0.02)]).is_none());
        assert!(conflict(&[Change::Block(4096), Change::ReadBlock(8192)]).is_none());
    }
}
