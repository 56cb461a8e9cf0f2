//! The recording of a run has what the run knows.

use smbscope_capture::Part;
use smbscope_load::client::{Config, Encryption, Signing};
use smbscope_load::fileset::Scale;
use smbscope_load::lab;
use smbscope_load::workload::Planner;
use smbscope_probe::loader::LoadOptions;

use crate::recorder::{Recorded, Recorder, alone, slices_add_up};
use crate::run::{self, agree, operations, prepare, same_entities, workload};
use crate::support::{Samba, samba, samba_4_22};

/// Runs users while it is recorded.
fn recorded_run(lab: &Samba, config: Config) -> Option<(Vec<Part>, Recorded)> {
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(lab, &planner);
    let recorder = Recorder::begin(lab)?;
    let (result, parts) = run::run_with(lab, &planner, config, 6, |_| ());
    assert!(result.ended > 5, "{result:?}");
    Some((parts, recorder.end()))
}

fn same_as_the_load(lab: &Samba, config: Config) {
    let Some((parts, recorded)) = recorded_run(lab, config) else { return };
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

/// Before Linux 6.3 functions of the kernel stand for tracepoints that it lacks.
#[test]
fn also_at_functions_of_the_kernel() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let load = LoadOptions { tracepoints: false, ..LoadOptions::default() };
    let Some(recorder) = Recorder::begin_with(&lab, load, None) else { return };
    let (_, parts) = run::run_with(&lab, &planner, Config::default(), 6, |_| ());
    let recorded = recorder.end();
    assert_eq!(recorded.progress.without_slices, 0);
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    assert!(slices_add_up(&recorded.parts) > 100);
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

#[test]
fn also_on_samba_4_22() {
    let _alone = alone();
    let Some(dir) = samba_4_22() else { return };
    let Some(lab) = samba(|options| options.samba = Some(dir)) else { return };
    same_as_the_load(&lab, Config::default());
}

/// Three connections in a session, which smbd hands from process to process.
#[test]
fn also_over_several_channels() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let Some((parts, recorded)) = recorded_run(&lab, Config { channels: 3, ..Config::default() })
    else {
        return;
    };
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    // Of a Negotiate that another process ends, who worked on it when is not known.
    let without = recorded.progress.without_slices;
    assert!(without <= 3 * run::USERS, "{without} rows without slices");
}
