//! Inputs of any kind as one set of tables.
//!
//! An input is recognised by its content: a capture, a CPU trace, a run folder, a Parquet file of smbscope, or a
//! stream (`-`, a pipe), which must be a capture. Several inputs are one set of tables. Nothing is
//! kept in memory: every pass ([`Source::parts`]) decodes or reads again, and columns that are not
//! requested cost nothing.

mod archive;
mod conform;
mod input;
mod packed_trace;
mod parts;
mod recorded_filter;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smbscope_tables::SCHEMA_VERSION;
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::description::RunDescription;
use smbscope_tables::filter::Filter;
use smbscope_tables::manifest::{InputFile, Kind};

use crate::Table;
use crate::capture;
use crate::dataset::{Dataset, DatasetWriter, ManifestSeed, WriteOptions};
use crate::error::{Error, Result};
use crate::trace;

#[cfg(feature = "sql")]
pub(crate) use conform::check_texts;
pub use input::Input;
pub use parts::{Filtered, Parts, Progress};
pub use recorded_filter::RecordedFilter;

/// How inputs are opened.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// How captures are decoded. Each pass replaces its projection and tables.
    pub decode: capture::Options,
    /// Replaces names by tokens in everything that the source returns.
    pub tokenizer: Option<Tokenizer>,
    /// Names functions in traces that have only addresses.
    pub symbols: trace::Symbols,
}

/// What a pass yields.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The tables.
    pub tables: Vec<Table>,
    /// Columns of the operations, as indexes into their schema; `None` for all. The other tables have
    /// all columns.
    pub projection: Option<Vec<usize>>,
}

impl Request {
    /// All columns of all tables.
    pub fn all() -> Request {
        Request { tables: Table::ALL.to_vec(), projection: None }
    }
}

/// Which inputs a pass reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// All inputs.
    All,
    /// Captures, traces and streams only.
    Decoded,
    /// Datasets and Parquet files only.
    Datasets,
}

/// Opened inputs.
pub struct Source {
    inputs: Vec<Input>,
    options: OpenOptions,
    consumed: AtomicBool,
    latest: Mutex<Option<Arc<Progress>>>,
    spool: Option<tempfile::TempDir>,
    /// Where archives are unpacked, removed with the source.
    _archives: Vec<tempfile::TempDir>,
    filter: Option<Filter>,
    filtered: Mutex<Option<Arc<Filtered>>>,
    /// Operations are left out.
    only_processors: bool,
}

impl Source {
    /// Recognises `inputs`: paths, or `-` for standard input.
    pub fn open(inputs: &[String], options: OpenOptions) -> Result<Source> {
        let (mut found, mut archives) = (Vec::new(), Vec::new());
        for input in inputs {
            match Input::recognise_archive(input)? {
                Some((inside, folder)) => {
                    found.extend(inside);
                    archives.push(folder);
                }
                None => found.extend(Input::recognise_all(input)?),
            }
        }
        let mut inputs = found;
        Input::join_logs(&mut inputs);
        if inputs.iter().filter(|input| input.is_stream()).count() > 1 {
            return Err(Error::Streams);
        }
        Ok(Source {
            inputs,
            options,
            consumed: AtomicBool::new(false),
            latest: Mutex::new(None),
            spool: None,
            _archives: archives,
            filter: None,
            filtered: Mutex::new(None),
            only_processors: false,
        })
    }

    /// From now on, passes yield only rows that meet the filter. It sees names before they become
    /// tokens.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = Some(filter).filter(|filter| !filter.is_empty());
    }

    /// The filter, if there is one.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// How many operations the latest pass over operations tested and kept; `None` without a filter.
    pub fn filtered(&self) -> Option<Arc<Filtered>> {
        self.filtered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The inputs.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Names, sizes and formats, for a manifest.
    pub fn describe(&self) -> Vec<InputFile> {
        self.inputs.iter().flat_map(Input::describe).collect()
    }

    /// The load runs in the inputs as their manifests describe them, and whether each folder is
    /// complete. Names are tokens if the source has a tokenizer.
    pub fn runs(&self) -> Vec<(RunDescription, bool)> {
        let mut runs = Vec::new();
        for input in &self.inputs {
            let Input::Dataset(dataset) = input else { continue };
            let described = dataset.manifest().into_iter().flat_map(|manifest| &manifest.runs);
            runs.extend(described.map(|run| {
                let mut run = run.clone();
                if let Some(tokenizer) = &self.options.tokenizer {
                    run.anonymize(tokenizer);
                }
                (run, dataset.is_complete())
            }));
        }
        runs
    }

    /// What filters left out when the inputs were recorded; `None` if they were recorded whole. Filters that may contain
    /// names are hidden if the source has a tokenizer.
    pub fn recorded_filter(&self) -> Option<RecordedFilter> {
        let manifests = self.inputs.iter().filter_map(|input| match input {
            Input::Dataset(dataset) => dataset.manifest(),
            _ => None,
        });
        RecordedFilter::from_manifests(
            manifests,
            self.inputs.len(),
            self.options.tokenizer.is_some(),
        )
    }

    /// The options with which it was opened.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Whether it can be read only once, because one of the inputs is a stream.
    pub fn is_stream(&self) -> bool {
        self.inputs.iter().any(Input::is_stream)
    }

    /// One pass over all inputs: rows of each input in the order of time, its coverage last. For
    /// a load run, steps, scenarios and counters come before operations, so that a reader knows the
    /// scenario of an operation.
    pub fn parts(&self, request: &Request) -> Result<Parts> {
        self.parts_of(Inputs::All, request)
    }

    /// One pass over some inputs.
    pub fn parts_of(&self, inputs: Inputs, request: &Request) -> Result<Parts> {
        let wanted = |input: &&Input| match inputs {
            Inputs::All => true,
            Inputs::Decoded => input.is_decoded(),
            Inputs::Datasets => !input.is_decoded(),
        };
        let inputs: Vec<_> = self.inputs.iter().filter(wanted).collect();
        let streams = inputs.iter().any(|input| input.is_stream());
        if streams && self.consumed.swap(true, Ordering::Relaxed) {
            return Err(Error::Internal("a stream was read twice"));
        }
        let parts = Parts::new(&inputs, &self.options, request, self.filter.as_ref())?;
        if let Some(filtered) = parts.filtered() {
            *self.filtered.lock().unwrap_or_else(PoisonError::into_inner) = Some(filtered);
        }
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(parts.progress());
        Ok(parts)
    }

    /// Progress of the latest pass.
    pub fn progress(&self) -> Option<Arc<Progress>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The Parquet files of a table.
    pub fn files(&self, table: Table) -> Vec<PathBuf> {
        let files = self.inputs.iter().flat_map(|input| match input {
            Input::Dataset(dataset) => dataset.parts(table).to_vec(),
            Input::File { path, info } if info.table == table => vec![path.clone()],
            _ => Vec::new(),
        });
        files.collect()
    }

    /// Whether any file has columns of an older version, with other names or types.
    pub fn has_old_files(&self) -> bool {
        self.inputs.iter().any(|input| match input {
            Input::Dataset(dataset) => dataset.is_old(),
            Input::File { info, .. } => info.version < SCHEMA_VERSION,
            _ => false,
        })
    }

    /// Whether any input has to be decoded.
    pub fn has_decoded(&self) -> bool {
        self.inputs.iter().any(Input::is_decoded)
    }

    /// Whether operations may come from events of an operating system.
    pub fn has_event_logs(&self) -> bool {
        self.inputs.iter().any(|input| match input {
            Input::Trace { contents, .. } => contents.operations,
            Input::Dataset(dataset) => dataset.manifest().is_some_and(|manifest| {
                manifest.inputs.iter().any(|input| input.format == trace::Format::Etl.name())
            }),
            _ => false,
        })
    }

    /// From now on the source is a CPU trace, whatever else its inputs have.
    pub fn only_processors(&mut self) {
        self.only_processors = true;
    }

    /// Whether all inputs are CPU traces, or datasets of such traces: there are no
    /// operations. A recording that was killed has neither coverage nor a row of `traces`.
    pub fn is_trace(&self) -> bool {
        if self.only_processors {
            return true;
        }
        let has = |dataset: &Dataset, table: Table| {
            dataset.manifest().is_some_and(|manifest| manifest.rows(table.name()) > 0)
        };
        !self.inputs.is_empty()
            && self.inputs.iter().all(|input| match input {
                Input::Trace { contents, .. } => !contents.operations,
                Input::Dataset(dataset) => {
                    let of_trace = [Table::Traces, Table::Interrupts, Table::Samples];
                    // An interface that was recorded, too, may have had no traffic of SMB.
                    of_trace.iter().any(|table| has(dataset, *table))
                        && !has(dataset, Table::Operations)
                }
                _ => false,
            })
    }

    /// Whether any input is a dataset with rows of this table.
    pub fn has_rows(&self, table: Table) -> bool {
        self.inputs.iter().any(|input| match input {
            Input::Dataset(dataset) => {
                dataset.manifest().is_some_and(|manifest| manifest.rows(table.name()) > 0)
            }
            _ => false,
        })
    }

    /// Whether any input is a CPU trace, or has one.
    pub fn has_traces(&self) -> bool {
        self.inputs.iter().any(|input| match input {
            Input::Trace { contents, .. } => contents.processors || !contents.operations,
            Input::Dataset(dataset) => {
                dataset.manifest().is_some_and(|manifest| manifest.rows(Table::Traces.name()) > 0)
            }
            _ => false,
        })
    }

    /// Makes several passes possible: a stream is imported into a temporary folder, which is
    /// deleted with the source.
    pub fn spool(&mut self) -> Result<()> {
        let Some(place) = self.inputs.iter().position(Input::is_stream) else {
            return Ok(());
        };
        if self.consumed.swap(true, Ordering::Relaxed) {
            return Err(Error::Internal("a stream was read twice"));
        }
        let temporary = std::env::temp_dir();
        let dir = tempfile::Builder::new()
            .prefix("smbscope-")
            .tempdir_in(&temporary)
            .map_err(Error::io(&temporary))?;
        let stream: Vec<_> = self.inputs.iter().skip(place).take(1).collect();
        // Names are not replaced here: the source replaces them when the folder is read.
        let options = OpenOptions { tokenizer: None, ..self.options.clone() };
        let parts = Parts::new(&stream, &options, &Request::all(), None)?;
        import(parts, dir.path(), &stream)?;
        if let Some(input) = self.inputs.get_mut(place) {
            *input = Input::Dataset(Dataset::open(dir.path())?);
        }
        self.spool = Some(dir);
        self.consumed.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

fn import(parts: Parts, dir: &Path, inputs: &[&Input]) -> Result<()> {
    let inputs = inputs.iter().flat_map(|input| input.describe()).collect();
    let seed = ManifestSeed::now(Kind::Import, inputs);
    let mut writer = DatasetWriter::create(dir, seed, WriteOptions::default())?;
    for part in parts {
        writer.part(part?)?;
    }
    writer.finish(true).map(drop)
}

#[cfg(test)]
mod tests;
