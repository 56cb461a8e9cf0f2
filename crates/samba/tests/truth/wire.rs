//! The slices of a row are the server's time on the wire.

use std::collections::HashMap;
use std::time::Duration;

use arrow::array::RecordBatch;
use smbscope_capture::{Decoder, Input, Options, Part};
use smbscope_load::fileset::Scale;
use smbscope_load::workload::Planner;

use crate::recorder::{Recorded, Recorder, alone, column};
use smbscope_testing::run::{self, operations, prepare, tcpdump, workload};
use smbscope_testing::samba::{Samba, samba};

/// Connection, sequence number of the request's first byte, member of the compound.
fn keys(batch: &RecordBatch) -> Vec<(Option<i64>, Option<i64>, i64)> {
    let (ports, sequences) = (column(batch, "client_port"), column(batch, "tcp_sequence"));
    let members = column(batch, "compound_index");
    let rows = 0..batch.num_rows();
    rows.map(|row| (ports[row], sequences[row], members[row].unwrap_or(0))).collect()
}

/// When each request had arrived, and when its reply left.
fn times(batch: &RecordBatch) -> Vec<Option<(i64, i64)>> {
    let (begins, ends) = (column(batch, "request_end"), column(batch, "response_start"));
    begins.into_iter().zip(ends).map(|(begin, end)| begin.zip(end)).collect()
}

/// A recording joined with a capture taken at the same time.
pub struct Joined {
    pub recorded: Recorded,
    rows: usize,
    joined: usize,
    /// The server's time on the wire minus the sum of the slices, ns, ascending.
    residuals: Vec<i64>,
}

impl Joined {
    /// Records and captures meanwhile; `None` if one of the two is not possible.
    pub fn from_lab(lab: &Samba, work: impl FnOnce()) -> Option<Joined> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.pcap");
        let mut capturing = tcpdump(lab, &file)?;
        let recorder = Recorder::begin(lab)?;
        work();
        let recorded = recorder.end();
        std::thread::sleep(Duration::from_secs(2));
        let pid = nix::unistd::Pid::from_raw(capturing.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        capturing.wait().unwrap();
        let decoder = Decoder::open(vec![Input::Path(file)], Options::default()).unwrap();
        let captured: Vec<Part> = decoder.map(|part| part.unwrap()).collect();
        // By the connection and the TCP sequence number of the request's first byte.
        let mut on_wire = HashMap::new();
        for batch in operations(captured) {
            for (key, times) in keys(&batch).into_iter().zip(times(&batch)) {
                on_wire.insert(key, times);
            }
        }
        let (mut joined, mut rows, mut residuals) = (0, 0, Vec::new());
        for batch in operations(recorded.parts.clone()) {
            rows += batch.num_rows();
            for (key, inside) in keys(&batch).into_iter().zip(times(&batch)) {
                let Some(wire) = on_wire.get(&key) else { continue };
                joined += 1;
                if let (Some(wire), Some(inside)) = (wire, inside) {
                    residuals.push((wire.1 - wire.0) - (inside.1 - inside.0));
                }
            }
        }
        residuals.sort_unstable();
        Some(Joined { recorded, rows, joined, residuals })
    }

    /// The residual below which the given share of all residuals is.
    pub fn at(&self, share: f64) -> i64 {
        self.residuals[((self.residuals.len() - 1) as f64 * share) as usize]
    }

    /// Checks that nearly all rows were matched; prints how much the two differ.
    pub fn check(&self) {
        let [p1, p50, p90, p99] = [0.01, 0.5, 0.9, 0.99].map(|share| self.at(share));
        let (joined, rows) = (self.joined, self.rows);
        eprintln!(
            "{joined} of {rows} joined; wire - slices: p1 {p1} p50 {p50} p90 {p90} p99 {p99} ns"
        );
        assert!(joined as f64 >= 0.999 * rows as f64, "{joined} of {rows}");
        // On a busy machine the capture's own work, which is in between, takes its time;
        // docs/measurements/recorder.md has the values of an idle machine.
        assert!(p50.abs() < 60_000, "median {p50}");
    }
}

/// Joined with a capture taken at the same time: the server's time on the wire is the sum of the
/// slices.
#[test]
fn slices_are_the_time_on_the_wire() {
    let _alone = alone();
    let Some(lab) = samba(|_| {}) else { return };
    let planner = Planner::new(workload(), 7, Scale::new(0.1).unwrap());
    prepare(&lab, &planner);
    let run = || {
        run::run(&lab, &planner, 6, |_| ());
    };
    let Some(joined) = Joined::from_lab(&lab, run) else { return };
    joined.check();
}
