//! Changes that are asked for together: which cannot be, which has no effect beside another, and what a
//! prediction of several leaves out.

use smbscope_tables::protection::Protection;

use super::changes::Change;
use super::plan::Plan;

/// Why these changes cannot be predicted together.
pub fn apart(changes: &[Change]) -> Option<&'static str> {
    let is_depth = |change: &Change| matches!(change, Change::Depth(_));
    (changes.iter().any(is_depth) && changes.iter().any(is_block)).then_some(
        "--change depth and another size of blocks (block, max-read, max-write) cannot be predicted together: when \
         a new block would be sent beside others no recorded one tells; ask for each alone",
    )
}

/// What must be known of these changes together, a sentence each; and, where it is told how many users the server then
/// carries or how long so many wait, what is not in that.
pub fn warnings(changes: &[Change], has_load: bool) -> Vec<String> {
    let mut warnings: Vec<_> = replaced(changes)
        .iter()
        .map(|change| format!("--change {change} has no effect: a later change takes its place."))
        .collect();
    let plan = plan(changes);
    let is_set = |way: Option<Protection>| way.is_some_and(|way| way != Protection::None);
    if is_set(plan.signing) && is_set(plan.encryption) {
        warnings.push(
            "--change signing has no effect beside --change encryption: what is encrypted is not signed."
                .to_owned(),
        );
    }
    let mut others: Vec<_> =
        changes.iter().filter(|one| is_demand(one)).map(Change::name).collect();
    others.dedup();
    if has_load && !others.is_empty() {
        warnings.push(format!(
            "What a scenario needs of the server is taken to stay as it is: how much less or more its processors and \
             disks are busy by --change {} is not in how many users it carries and how long they wait.",
            others.join(", ")
        ));
    }
    warnings
}

fn plan(changes: &[Change]) -> Plan {
    let mut plan = Plan::default();
    changes.iter().for_each(|change| change.plan(&mut plan));
    plan
}

/// Changes without which all would be the same, although each alone changes something.
fn replaced(changes: &[Change]) -> Vec<Change> {
    let (whole, mut left, mut replaced) = (plan(changes), changes.to_vec(), Vec::new());
    let mut place = 0;
    while place < left.len() {
        let mut others = left.clone();
        let one = others.remove(place);
        if plan(&others) == whole && plan(&[one]) != Plan::default() {
            replaced.push(one);
            left = others;
        } else {
            place += 1;
        }
    }
    replaced
}

fn is_block(change: &Change) -> bool {
    matches!(change, Change::Block(_) | Change::ReadBlock(_) | Change::WriteBlock(_))
}

/// Whether the server has more or less to do for a scenario, how much is not known.
fn is_demand(change: &Change) -> bool {
    let is_other = matches!(
        change,
        Change::Filesystem(_)
            | Change::Cache(_)
            | Change::Compound(_)
            | Change::WriteThrough(_)
            | Change::CacheHit(_)
    );
    is_other || is_block(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_change_takes_the_place_of_is_told() {
        let said = |changes: &[Change]| warnings(changes, false).join(" ");
        let told = said(&[Change::Distance(100.0), Change::Rtt(0.002), Change::Rtt(0.02)]);
        assert!(told.contains("distance=100km has no effect"), "{told}");
        assert!(told.contains("rtt=2000us has no effect") && !told.contains("20000us"), "{told}");
        let twice = said(&[Change::Loss(0.01), Change::Loss(0.01)]);
        assert_eq!(twice.matches("no effect").count(), 1, "{twice}");
        // Each does something, or is what is today.
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
        assert!(said(&both).contains("is not signed"));
        assert_eq!(said(&[both[0], Change::Encryption(Protection::None)]), "");
    }

    #[test]
    fn what_users_wait_is_told_to_be_that_of_todays_demand() {
        let changes = [Change::Users(100.0), Change::Filesystem(2.0), Change::Rtt(0.01)];
        let said = warnings(&changes, true).join(" ");
        assert!(said.contains("by --change filesystem is"), "{said}");
        assert!(warnings(&[Change::Users(100.0), Change::Rtt(0.01)], true).is_empty());
        assert!(warnings(&[Change::Users(100.0), Change::Cpu(2.0)], true).is_empty());
        assert!(warnings(&changes, false).is_empty());
    }

    #[test]
    fn depth_and_blocks_are_not_predicted_together() {
        assert!(apart(&[Change::Depth(8), Change::WriteBlock(4096)]).is_some());
        assert!(apart(&[Change::Depth(8), Change::Rtt(0.02)]).is_none());
        assert!(apart(&[Change::Block(4096), Change::ReadBlock(8192)]).is_none());
    }
}
