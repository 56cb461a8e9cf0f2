//! Optional parts of the recording, off and on.

use smbscope_client::Config;
use smbscope_load::fileset::Scale;
use smbscope_load::workload::Planner;
use smbscope_samba::loader::LoadOptions;
use smbscope_tables::slice::Kind;

use crate::recorder::{Recorder, alone, column, text};
use smbscope_testing::run::{self, agree, operations, prepare, same_entities, workload};
use smbscope_testing::samba::samba;

/// System calls alone: the same operations, and the slices of each sum up to its turnaround; those of a
/// compound are on the lead.
#[test]
fn without_sambas_functions_rows_are_the_same() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let load = LoadOptions { functions: false, ..LoadOptions::default() };
    let Some(recorder) = Recorder::begin_with(&lab, load, None) else { return };
    let (_, parts) = run::run_with(&lab, &planner, Config::default(), 6, |_| ());
    let recorded = recorder.end();
    same_entities(&parts, &recorded.parts);
    agree(&operations(parts), &operations(recorded.parts.clone()));
    let (mut rows, mut members, mut filesystem) = (0, 0, 0);
    for batch in operations(recorded.parts) {
        let in_compound = column(&batch, "compound_index");
        let turnarounds = column(&batch, "turnaround_ns");
        let commands = text(&batch, "command");
        filesystem += column(&batch, "filesystem_ns").into_iter().flatten().sum::<i64>();
        let slices: Vec<_> = Kind::ALL[..Kind::PARTS]
            .iter()
            .map(|kind| column(&batch, &format!("{}_ns", kind.name())))
            .collect();
        for row in 0..batch.num_rows() {
            rows += 1;
            if in_compound[row].is_some_and(|index| index > 0) {
                members += 1;
                continue;
            }
            let values: Vec<i64> = slices.iter().filter_map(|slice| slice[row]).collect();
            assert!(!values.is_empty(), "{} has no slices", commands[row]);
            if let Some(turnaround) = turnarounds[row] {
                let sum: i64 = values.iter().sum();
                assert!(
                    (turnaround - sum).abs() <= 1_000,
                    "{}: {turnaround}, slices {sum}",
                    commands[row]
                );
            }
        }
    }
    assert!(filesystem > 0);
    assert_eq!(recorded.progress.without_slices, members);
    assert!(rows > 100, "{rows}");
}

/// Disk and time off the CPU lie within the slices; cold files are read from the disk.
#[test]
fn disk_and_time_off_the_processor_lie_within() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let load = LoadOptions { off_cpu: true, disk: true, ..LoadOptions::default() };
    let Some(recorder) = Recorder::begin_with(&lab, load, None) else { return };
    assert!(std::process::Command::new("sync").status().unwrap().success());
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    run::run(&lab, &planner, 6, |_| ());
    let recorded = recorder.end();
    let mut sums = [0_i64; 2];
    for batch in operations(recorded.parts) {
        let within = [column(&batch, "disk_ns"), column(&batch, "offcpu_ns")];
        let commands = text(&batch, "command");
        let slices: Vec<_> = Kind::ALL[..Kind::PARTS]
            .iter()
            .map(|kind| column(&batch, &format!("{}_ns", kind.name())))
            .collect();
        for row in 0..batch.num_rows() {
            let sum: i64 = slices.iter().filter_map(|slice| slice[row]).sum();
            for (values, total) in within.iter().zip(&mut sums) {
                let value = values[row].unwrap();
                assert!(
                    value <= sum + 1_000,
                    "{}: {value} of {sum} ns: {:?}",
                    commands[row],
                    within.each_ref().map(|values| values[row])
                );
                *total += value;
            }
        }
    }
    eprintln!("disk {} us, off the CPU {} us", sums[0] / 1_000, sums[1] / 1_000);
    assert!(sums[1] > 0);
    assert!(sums[0] > 0, "nothing was read from a disk");
}
