//! Every scenario of `homefolder` with a real Samba: the operations on the wire match the published
//! table and the client's rows.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use smbscope_client::row::Row;
use smbscope_client::{Config, Scene};
use smbscope_load::execute::Performer;
use smbscope_load::fileset::Scale;
use smbscope_load::prepare;
use smbscope_load::workload::{ClientCache, Planner, Workload, counts};
use smbscope_testing::run::runtime;
use smbscope_testing::samba::samba;

/// Operations by command, and how many of them are members of a compound other than its first.
fn sent(rows: &[Box<Row>]) -> BTreeMap<u16, (u64, u64)> {
    let mut sent = BTreeMap::new();
    for row in rows {
        let row = &row.operation;
        let count: &mut (u64, u64) = sent.entry(row.command().unwrap() as u16).or_default();
        count.0 += 1;
        count.1 += u64::from(row.compound_index().is_some_and(|index| index > 0));
    }
    sent
}

#[test]
fn every_scenario_matches_the_table() {
    let Some(lab) = samba(|_| {}) else { return };
    let wrong = runtime().block_on(async {
        let mut session = lab.connect(Config::default(), "user00001").await;
        let workload = Arc::new(Workload::built_in("homefolder").unwrap());
        let planner = Planner::new(workload.clone(), 1, Scale::FULL);
        let mut written = 0;
        prepare::prepare(&mut session, planner.files(), 1, "user00001", |bytes| written += bytes)
            .await
            .unwrap();
        assert_eq!(written, planner.files().user_bytes(1));
        let mut wrong = Vec::new();
        let mut plans = planner.user(1, "user00001");
        let mut performer = Performer::new(ClientCache::Published);
        session.take_rows();
        for round in 0..2 {
            for (number, scenario) in workload.scenarios.iter().enumerate() {
                let plan = plans.next_of(number).unwrap();
                // Samba reports changes some time later; a user's next scenario starts seconds later.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                session.channel().scene =
                    Scene { scenario_run: Some(number as u64), scheduled_at: Some(0) };
                let outcome = performer.perform(&mut session, &plan).await.unwrap();
                let found = sent(&session.take_rows());
                let expected = counts(&plan, ClientCache::Published);
                let name = &scenario.name;
                if let Some(trouble) = outcome.failed {
                    wrong.push(format!("{name} (round {round}): {trouble:?}"));
                    continue;
                }
                for (command, operations, members) in expected.iter() {
                    let (count, later) = found.get(&command.0).copied().unwrap_or_default();
                    if (count as f64, later as f64) != (operations, members) {
                        wrong.push(format!(
                            "{name}: {:?} {count} ({later}), expected {operations} ({members})",
                            command.name()
                        ));
                    }
                }
                let total: u64 = found.values().map(|count| count.0).sum();
                if total as f64 != expected.total() || total != outcome.operations {
                    wrong.push(format!(
                        "{name}: {total} operations, expected {}, counted {}",
                        expected.total(),
                        outcome.operations
                    ));
                }
                if session.channel().waiting() > 0 {
                    wrong.push(format!("{name}: something is left waiting"));
                }
            }
        }
        session.close().await;
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
