//! The wire and the probe in one row.

use smbscope_capture::Part;
use smbscope_client::{Config, Encryption};
use smbscope_lab as lab;
use smbscope_load::fileset::Scale;
use smbscope_load::workload::Planner;

use crate::recorder::{Recorder, alone, column};
use smbscope_testing::run::{self, operations, prepare, same_entities, workload};
use smbscope_testing::samba::{Samba, samba};

/// Wire and probe recorded together: one row has both.
fn joined_run(lab: &Samba, config: Config) {
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(lab, &planner);
    let Some(recorder) = Recorder::begin_joined(lab) else { return };
    let (_, parts) = run::run_with(lab, &planner, config, 6, |_| ());
    let recorded = recorder.end();
    same_entities(&parts, &recorded.parts);
    let heard = recorded.progress.wire.unwrap();
    assert_eq!(heard.dropped, 0);
    assert!(heard.packets > 1_000, "{heard:?}");
    let (mut rows, mut on_wire, mut residuals) = (0, 0, Vec::new());
    for batch in operations(recorded.parts.clone()) {
        let (starts, members) = (column(&batch, "request_start"), column(&batch, "compound_index"));
        let (outside, inside) = (column(&batch, "turnaround_ns"), column(&batch, "server_ns"));
        for row in 0..batch.num_rows() {
            rows += 1;
            on_wire += usize::from(starts[row].is_some() || members[row].is_some());
            if let (Some(outside), Some(inside)) = (outside[row], inside[row]) {
                residuals.push(outside - inside);
            }
        }
    }
    residuals.sort_unstable();
    let coverages: Vec<_> = (recorded.parts.iter())
        .filter_map(|part| match part {
            Part::Coverage(coverage) => Some(coverage),
            _ => None,
        })
        .collect();
    let [inside, wire] = coverages[..] else { panic!("{} coverages", coverages.len()) };
    let at = |share: f64| residuals[((residuals.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{rows} rows, not joined {} and {}; {} residuals: p1 {} p50 {} p99 {} ns",
        inside.operations_unjoined,
        wire.operations_unjoined,
        residuals.len(),
        at(0.01),
        at(0.5),
        at(0.99)
    );
    assert_eq!(on_wire, rows);
    assert!(inside.operations_unjoined as f64 <= 0.001 * rows as f64);
    assert!(wire.operations_unjoined as f64 <= 0.001 * rows as f64);
    assert!(residuals.len() > 300);
    assert!(at(0.5).abs() < 30_000, "median {}", at(0.5));
    assert_eq!(wire.capture_file.as_deref(), Some("lo"));
    // TCP's values come from the wire, the numbers are those of the rows.
    for part in &recorded.parts {
        let Part::Connections(connections) = part else { continue };
        for connection in connections {
            assert!(connection.handshake_seen, "{connection:?}");
            assert!(connection.server_rtt_ns.is_some() || connection.client_rtt_ns.is_some());
            assert!(connection.operations > 0 && connection.packets_to_client > 0);
        }
    }
}

#[test]
fn wire_and_probe_are_one_row() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    joined_run(&lab, Config::default());
}

#[test]
fn also_of_encrypted_sessions_over_several_channels() {
    let _alone = alone();
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Desired) else {
        return;
    };
    let config = Config { encryption: Encryption::Required, channels: 3, ..Config::default() };
    joined_run(&lab, config);
}
