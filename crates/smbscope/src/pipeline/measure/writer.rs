//! Writes the rows of a load run to its folder, on a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use anyhow::Context as _;
use smbscope_load::recorder::Recorder;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_tables::Part;
use smbscope_tables::description::RunDescription;
use smbscope_tables::manifest::Kind;
use smbscope_tables::run::LOAD_FORMAT;
use smbscope_tables::tables::Coverage;

use super::progress::RunSoFar;
use crate::exit::{Code, Failure};

/// The thread that writes parts to a run folder, or discards them.
pub struct Writer {
    thread: JoinHandle<anyhow::Result<Option<DatasetWriter>>>,
    out: Option<PathBuf>,
    /// Whether writing failed.
    pub failed: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the thread. All parts go through `so_far`; without a folder, they are discarded then.
    pub fn begin(
        out: Option<PathBuf>,
        overwrite: bool,
        description: &RunDescription,
        parts: Receiver<Part>,
        so_far: RunSoFar,
    ) -> anyhow::Result<Writer> {
        let mut writer = match &out {
            None => None,
            Some(out) => {
                let mut seed = ManifestSeed::now(Kind::Load, Vec::new());
                seed.runs.push(description.clone());
                let options = WriteOptions { overwrite, ..WriteOptions::default() };
                let writer =
                    DatasetWriter::create(out, seed, options).with_context(|| cannot(out))?;
                Some(writer)
            }
        };
        let folder = out.clone();
        let failed = Arc::new(AtomicBool::new(false));
        let fails = failed.clone();
        let thread = std::thread::Builder::new().name("parts".into()).spawn(move || {
            let mut failed = None;
            for part in parts {
                so_far.part(&part);
                // After an error the parts still make the numbers that are shown.
                if let (Some(writer), Some(out), None) =
                    (writer.as_mut(), folder.as_deref(), &failed)
                    && let Err(error) = writer.part(part)
                {
                    fails.store(true, Ordering::Relaxed);
                    failed = Some(anyhow::Error::from(error).context(write_failed(out)));
                }
            }
            failed.map_or(Ok(writer), Err)
        })?;
        Ok(Writer { thread, out, failed })
    }

    /// Waits for the last part and completes the folder.
    pub fn end(self, description: RunDescription, is_complete: bool) -> anyhow::Result<()> {
        let writer = match self.thread.join() {
            Ok(writer) => writer?,
            Err(_) => return Err(anyhow::anyhow!("the thread that writes the run stopped")),
        };
        if let (Some(mut writer), Some(out)) = (writer, self.out) {
            writer.describe(description).with_context(|| cannot(&out))?;
            writer.finish(is_complete).with_context(|| cannot(&out))?;
        }
        Ok(())
    }
}

fn cannot(out: &Path) -> Failure {
    Failure::new(Code::Output, format!("{}: the run cannot be written", out.display()))
}

fn write_failed(out: &Path) -> Failure {
    let message = format!(
        "{}: the run was ended because writing it failed; the results so far are shown",
        out.display()
    );
    Failure::new(Code::Output, message)
}

/// The one coverage record of the run.
pub fn coverage(description: &RunDescription, recorder: &Recorder) -> Coverage {
    Coverage {
        recording: description.recording.clone(),
        format: LOAD_FORMAT.to_owned(),
        vantage: Some("client".to_owned()),
        vantage_reason: "the load generator is the client".to_owned(),
        resolution_ns: Some(1),
        start: Some(description.start_ns),
        end: description.end_ns,
        operations: recorder.operations(),
        connections: recorder.ended_connections(),
        ..Coverage::default()
    }
}
