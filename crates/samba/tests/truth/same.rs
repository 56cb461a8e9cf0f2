//! The recording of a run has the run's operations.

use smbscope_capture::Part;
use smbscope_client::{Config, Encryption, Signing};
use smbscope_lab as lab;
use smbscope_load::fileset::Scale;
use smbscope_load::workload::Planner;
use smbscope_samba::loader::LoadOptions;

use crate::recorder::{Recorded, Recorder, alone, slices_add_up};
use smbscope_testing::run::{self, agree, operations, prepare, same_entities, workload};
use smbscope_testing::samba::{Samba, samba, samba_4_22};

/// Runs users while they are recorded.
fn recorded_run(lab: &Samba, config: Config, load: LoadOptions) -> Option<(Vec<Part>, Recorded)> {
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(lab, &planner);
    let recorder = Recorder::begin_with(lab, load, None)?;
    let (result, parts) = run::run_with(lab, &planner, config, 6, |_| ());
    assert!(result.ended > 5, "{result:?}");
    Some((parts, recorder.end()))
}

fn same_as_the_load(lab: &Samba, config: Config) {
    same_when_loaded(lab, config, LoadOptions::default());
}

fn same_when_loaded(lab: &Samba, config: Config, load: LoadOptions) {
    let Some((parts, recorded)) = recorded_run(lab, config, load) else { return };
    assert_eq!(recorded.progress.without_slices, 0);
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    let rows = slices_add_up(&recorded.parts);
    assert!(rows > 100, "{rows} rows");
}

#[test]
fn a_recording_has_the_runs_operations() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    same_as_the_load(&lab, Config::default());
}

/// Before Linux 6.3 functions of the kernel replace tracepoints that it lacks.
#[test]
fn also_at_functions_of_the_kernel() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let load = LoadOptions { tracepoints: false, ..LoadOptions::default() };
    same_when_loaded(&lab, Config::default(), load);
}

#[test]
fn also_signed() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    same_as_the_load(&lab, Config { signing: Signing::Required, ..Config::default() });
}

#[test]
fn also_encrypted() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Desired) else {
        return;
    };
    same_as_the_load(&lab, Config { encryption: Encryption::Required, ..Config::default() });
}

/// Before Linux 6.6 perf events look at Samba's functions; an encrypted session needs all of them.
#[test]
fn also_by_perf_events() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Desired) else {
        return;
    };
    let config = Config { encryption: Encryption::Required, ..Config::default() };
    same_when_loaded(&lab, config, LoadOptions { links: false, ..LoadOptions::default() });
}

#[test]
fn also_on_samba_4_22() {
    let _alone = alone();
    let Some(dir) = samba_4_22() else { return };
    let Some(lab) = samba(|options| options.samba = Some(dir)) else { return };
    same_as_the_load(&lab, Config::default());
}

/// Three connections in a session, which smbd passes from process to process.
#[test]
fn also_over_several_channels() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let config = Config { channels: 3, ..Config::default() };
    let Some((parts, recorded)) = recorded_run(&lab, config, LoadOptions::default()) else {
        return;
    };
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    // If another process ends a Negotiate, when it was processed is unknown.
    let without = recorded.progress.without_slices;
    assert!(without <= 3 * run::USERS, "{without} rows without slices");
}
