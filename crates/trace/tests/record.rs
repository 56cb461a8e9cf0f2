//! Recording this machine's CPUs: needs root and a kernel with BTF, otherwise it is skipped.

#![cfg(all(feature = "record", target_os = "linux"))]
// A test may panic.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use smbscope_tables::{Part, Table};
use smbscope_trace::record::{Error, LoadError, Options, Recorder, Tracer};

#[test]
fn this_machine_is_recorded() {
    recorded(Tracer::Ebpf, &[Table::Samples, Table::Stacks, Table::Switches]);
}

/// Where eBPF is not to be had. Its instance is gone afterwards, also one that a killed recorder left.
#[test]
fn this_machine_is_recorded_by_tracefs() {
    let instances = Path::new("/sys/kernel/tracing/instances");
    let left = instances.join("smbscope-4194305");
    let has_left = std::fs::create_dir(&left).is_ok();
    if !recorded(Tracer::Tracefs, &[Table::Samples, Table::Stacks, Table::Switches]) {
        return;
    }
    let own = instances.join(format!("smbscope-{}", std::process::id()));
    assert!(!own.exists());
    assert!(!has_left || !left.exists());
}

/// Records for half a second; false if that is not possible here.
fn recorded(tracer: Tracer, tables: &[Table]) -> bool {
    let options = Options { buffer_bytes: 4 << 20, hz: 99, switches: true, tracer };
    let mut recorder = match Recorder::start("live", options) {
        Ok(recorder) => recorder,
        Err(Error::Load(error @ (LoadError::NoTypes(_) | LoadError::Denied(_)))) => {
            smbscope_testing::skip!("{error}");
            return false;
        }
        Err(Error::Tracefs(error)) => {
            smbscope_testing::skip!("{error}");
            return false;
        }
        Err(error) => panic!("{error}"),
    };
    // Packets over loopback are softirqs.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let begin = Instant::now();
    let mut parts = Vec::new();
    while begin.elapsed() < Duration::from_millis(500) {
        let _ = socket.send_to(&[0; 18], address);
        if recorder.receive().unwrap() {
            parts.extend(recorder.parts().unwrap());
        }
    }
    let counted = recorder.counted();
    parts.extend(recorder.stop().unwrap());
    let rows = |table: Table| -> usize {
        let of_table = parts.iter().filter(|part| part.table() == table);
        of_table.map(|part| part.to_batch().unwrap().num_rows()).sum()
    };
    assert!(rows(Table::Interrupts) > 100, "{counted:?}");
    for &table in tables {
        assert!(rows(table) > 0, "{table:?}");
    }
    let Some(Part::Traces(traces)) = parts.last() else { panic!("no trace") };
    let trace = &traces[0];
    assert_eq!(trace.interrupts, rows(Table::Interrupts) as u64);
    assert!(trace.events_lost.is_some() && trace.notes.is_some(), "{trace:?}");
    let length = trace.ended_at.unwrap() - trace.started_at.unwrap();
    assert!((450_000_000..5_000_000_000).contains(&length), "{length}");
    let cpus = parts.iter().find_map(|part| match part {
        Part::Cpus(cpus) => Some(cpus),
        _ => None,
    });
    let available = std::thread::available_parallelism().unwrap().get();
    let cpus = cpus.unwrap();
    assert!(
        cpus.len() >= available && cpus.iter().all(|cpu| cpu.events_lost.is_some()),
        "{cpus:?}"
    );
    true
}
