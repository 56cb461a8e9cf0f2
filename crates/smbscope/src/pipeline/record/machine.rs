//! Counters of the machine that is recorded from inside: whether the server or another program uses its CPUs and disks.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use smbscope_counters::{Proc, Processes, Sampler, sampler};
use smbscope_store::Part;
use smbscope_tables::run::Counter;

use super::now;

/// Most samples that wait to be taken.
const WAITING_MAX: usize = 64;

/// Samples `/proc` once a second until it is dropped.
pub struct MachineCounters {
    _sampler: Sampler,
    recording: String,
    rows: Receiver<Vec<Counter>>,
}

impl MachineCounters {
    /// Starts for a recording of the server with these processes (all smbd, if there are none).
    pub fn start(recording: &str, processes: &[u32]) -> std::io::Result<MachineCounters> {
        let name = || "smbd".to_owned();
        let server = match processes {
            [] => vec![Processes::Named(name())],
            pids => pids.iter().map(|pid| Processes::Tree(*pid, name())).collect(),
        };
        let (sender, rows) = sync_channel(WAITING_MAX);
        let sources: Vec<Box<dyn sampler::Source>> = vec![Box::new(Proc::server(server))];
        let sampler =
            Sampler::start(recording, sampler::INTERVAL, Arc::new(now), sources, &sender)?;
        Ok(MachineCounters { _sampler: sampler, recording: recording.to_owned(), rows })
    }

    /// From now on rows belong to this recording.
    pub fn rename(&mut self, recording: &str) {
        recording.clone_into(&mut self.recording);
    }

    /// What was sampled since the last call.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.rows.try_iter().map(|mut rows| {
            rows.iter_mut().for_each(|row| row.recording.clone_from(&self.recording));
            Part::Counters(rows)
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn the_machine_is_sampled_while_it_is_recorded() {
        let mut counters = MachineCounters::start("samba-1", &[std::process::id()]).unwrap();
        let begin = Instant::now();
        let mut rows = Vec::new();
        while !rows.iter().any(|row: &Counter| row.name == "process_count") {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(20));
            for part in counters.parts() {
                let Part::Counters(more) = part else { panic!("not a counter") };
                rows.extend(more);
            }
        }
        assert!(rows.iter().all(|row| row.recording == "samba-1" && row.source == "server"));
        counters.rename("samba-2");
        let mut later = Vec::new();
        while later.is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(40));
            std::thread::sleep(Duration::from_millis(20));
            later.extend(counters.parts());
        }
        let Some(Part::Counters(rows)) = later.first() else { panic!("not counters") };
        assert_eq!(rows[0].recording, "samba-2");
    }
}
