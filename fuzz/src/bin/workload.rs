//! Any bytes as a workload in TOML, and the first plans of a user of it.
#![no_main]

use std::hint::black_box;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use smbscope_load::fileset::Scale;
use smbscope_load::workload::{Migration, Planner, Workload};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = Migration::parse("fuzz", "fuzz", &text).map(|one| one.map(|it| it.streams(1).len()));
    let Ok(workload) = Workload::parse("fuzz", "fuzz", &text) else { return };
    assert!(workload.runs_per_hour() > 0.0, "users do something");
    let planner = Planner::new(Arc::new(workload), 1, Scale::default());
    let mut user = planner.user(1, "home");
    for _ in 0..4 {
        let plan = user.next_plan();
        black_box((plan.scenario().name.len(), plan.files().len()));
    }
});
