//! A workload as what its page shows: files, and each scenario with its counts and steps.

use smbscope_load::fileset::{FileClass, Pool, Scale, Sizes};
use smbscope_load::workload::{ClientCache, Counts, Expectation, Pacing, Scenario, Step, Workload};
use smbscope_report::pages::workload as page;

/// Everything that is shown of a workload, with all its files.
pub fn outline(workload: &Workload) -> page::Workload {
    let files = workload.file_set(0, Scale::FULL);
    let expectation = Expectation::new(&files);
    page::Workload {
        name: workload.name.clone(),
        description: workload.description.clone(),
        runs_per_hour: workload.runs_per_hour(),
        interval_s: workload.mean_interval().as_secs_f64(),
        jitter: match workload.pacing {
            Pacing::Slotted { jitter } => Some(jitter),
            Pacing::Exponential => None,
        },
        files: page::Files {
            count: files.user_files(),
            bytes: files.user_bytes(0),
            growth_bytes: files.user_growth_bytes(),
            pools: files.pools().iter().map(pool).collect(),
        },
        scenarios: workload.scenarios.iter().map(|one| scenario(one, &expectation)).collect(),
    }
}

fn pool(pool: &Pool) -> page::Pool {
    let is_new = pool.class == FileClass::New;
    let files = pool.sizes.len().max(1);
    page::Pool {
        name: pool.name.clone(),
        class: pool.class.name(),
        is_new,
        count: if is_new { pool.keep } else { pool.files() },
        folders: pool.folders.clone(),
        mean_size: match &pool.sizes {
            Sizes::Blocks(list) => {
                let sum: u64 = list.iter().map(|&blocks| u64::from(blocks)).sum();
                page::MeanSize::Blocks(sum as f64 / files as f64)
            }
            Sizes::Bytes(list) => {
                let sum: u64 = list.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes));
                page::MeanSize::Bytes(sum / files as u64)
            }
        },
    }
}

fn scenario(scenario: &Scenario, expectation: &Expectation<'_>) -> page::Scenario {
    let all = expectation.counts(scenario, ClientCache::Published);
    let name = |command: smbscope_wire::smb2::Command| command.name().unwrap_or("?").to_owned();
    let saved = |cache: ClientCache| {
        let left: Counts = expectation.counts(scenario, cache);
        let saved = (all.total() - left.total(), all.packets() - left.packets());
        (saved.0 > 0.0).then(|| (cache.name().to_owned(), saved.0, saved.1))
    };
    page::Scenario {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        runs_per_hour: scenario.runs_per_hour,
        commands: all.iter().map(|(command, all, members)| (name(command), all, members)).collect(),
        operations: all.total(),
        packets: all.packets(),
        savings: [ClientCache::Collapse, ClientCache::DirLease]
            .into_iter()
            .filter_map(saved)
            .collect(),
        steps: scenario.steps.iter().map(|one| step(scenario, one)).collect(),
    }
}

fn step(scenario: &Scenario, step: &Step) -> page::Step {
    let names = step.wait.iter().filter_map(|wait| scenario.notifications.get(usize::from(wait.0)));
    page::Step {
        action: step.action.clone(),
        wait: names.cloned().collect(),
        requests: step.requests.iter().map(|request| scenario.notation(request)).collect(),
    }
}
