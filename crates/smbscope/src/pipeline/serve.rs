//! What the live page reads: a dataset, because it asks often, and the report of any part of it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use smbscope_analysis::explain::{Diagnosis, Explain};
use smbscope_analysis::summary::{Options, Report};
use smbscope_report::FINDINGS_SHOWN;
use smbscope_serve::Inputs;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_store::source::{Input, OpenOptions, Progress, Request, Source};
use smbscope_tables::manifest::{FILE_NAME, Kind};

use super::pass::Monitor;
use super::summarize::summarize;

/// A folder whose manifest is newer than this is being written.
const LIVE: Duration = Duration::from_secs(60);

/// Inputs as a dataset.
pub struct Served {
    paths: Vec<String>,
    noticed_ns: i64,
    /// Folders that may still be written.
    open: Vec<PathBuf>,
}

impl Served {
    /// Takes datasets as they are. Captures, traces, streams, and inputs of which a part is shown or whose names become
    /// tokens are first written to a temporary dataset, whose folder is returned and must stay as long as the page.
    /// `filter` is the part in words.
    pub fn new(
        source: &Source,
        paths: &[String],
        filter: Option<String>,
        noticed_ns: i64,
        monitor: &dyn Monitor,
    ) -> anyhow::Result<(Served, Option<tempfile::TempDir>)> {
        let is_plain = !source.has_decoded()
            && !source.has_old_files()
            && source.filter().is_none()
            && source.options().tokenizer.is_none();
        if is_plain {
            let folders = source.inputs().iter().filter_map(|input| match input {
                Input::Dataset(dataset) if !dataset.is_complete() => Some(dataset.dir().to_owned()),
                _ => None,
            });
            let open = folders.collect();
            return Ok((Served { paths: paths.to_vec(), noticed_ns, open }, None));
        }
        let made = tempfile::Builder::new()
            .prefix("smbscope-serve-")
            .tempdir()
            .context("a temporary folder for the inputs as a dataset")?;
        import(source, made.path(), filter, monitor)?;
        let paths = vec![made.path().display().to_string()];
        Ok((Served { paths, noticed_ns, open: Vec::new() }, Some(made)))
    }

    /// When the manifest of a folder was written, and its length.
    fn stamp(folder: &Path) -> Option<(SystemTime, u64)> {
        let about = std::fs::metadata(folder.join(FILE_NAME)).ok()?;
        Some((about.modified().ok()?, about.len()))
    }
}

fn import(
    source: &Source,
    folder: &Path,
    filter: Option<String>,
    monitor: &dyn Monitor,
) -> anyhow::Result<()> {
    let runs = source.runs().into_iter().map(|(run, _)| run).collect();
    let filter = filter.or_else(|| source.recorded_filter().map(|filter| filter.words));
    // Names of inputs may be those of people: the page shows those that the caller chose.
    let seed = ManifestSeed { filter, runs, ..ManifestSeed::now(Kind::Import, Vec::new()) };
    let mut writer = DatasetWriter::create(folder, seed, WriteOptions::default())?;
    let parts = source.parts(&Request::all())?;
    let _shown = monitor.begin(parts.progress());
    for part in parts {
        writer.part(part?)?;
        monitor.check()?;
    }
    writer.finish(true)?;
    Ok(())
}

impl Inputs for Served {
    fn open(&self) -> anyhow::Result<Source> {
        Ok(Source::open(&self.paths, OpenOptions::default())?)
    }

    fn report(&self, source: &Source) -> anyhow::Result<(Report, Option<Diagnosis>)> {
        let explain = Explain::with_first_gains(FINDINGS_SHOWN).noticing(self.noticed_ns);
        summarize(source, Options::default(), Some(explain), &Silent)
    }

    fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for folder in &self.open {
            Served::stamp(folder).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn is_live(&self) -> bool {
        let age = |folder: &PathBuf| Served::stamp(folder)?.0.elapsed().ok();
        self.open.iter().filter_map(age).any(|age| age < LIVE)
    }
}

/// Passes behind a page have no progress of their own, and end with the program.
struct Silent;

impl Monitor for Silent {
    fn begin(&self, _: Arc<Progress>) -> Box<dyn std::any::Any> {
        Box::new(())
    }

    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }
}
