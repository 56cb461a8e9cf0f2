//! One pass over inputs: decodes captures, reads traces and Parquet files piece by piece.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::filter::{Filter, RowFilter};
use smbscope_tables::operation;
use smbscope_tables::renamed;
use smbscope_tables::tables::Coverage;

use super::conform::{check_texts, conform};
use super::{Input, OpenOptions, Request};
use crate::capture;
use crate::dataset::Dataset;
use crate::dataset::reader::read_file;
use crate::error::{Error, Result};
use crate::{Part, Table, trace};

/// Progress of a pass. Another thread may read it.
#[derive(Debug, Default)]
pub struct Progress {
    total: Option<u64>,
    state: Mutex<Done>,
}

#[derive(Debug, Default)]
struct Done {
    bytes: u64,
    operations: u64,
    decoding: Option<Arc<capture::Progress>>,
}

impl Progress {
    /// Bytes of the inputs that were read.
    pub fn bytes_done(&self) -> u64 {
        let done = self.state();
        done.bytes + done.decoding.as_ref().map_or(0, |decoding| decoding.bytes_done())
    }

    /// Bytes of the inputs; `None` if one of them is a stream.
    pub fn bytes_total(&self) -> Option<u64> {
        self.total
    }

    /// Operations found.
    pub fn operations(&self) -> u64 {
        let done = self.state();
        done.operations + done.decoding.as_ref().map_or(0, |decoding| decoding.operations())
    }

    fn state(&self) -> MutexGuard<'_, Done> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, bytes: u64, operations: u64) {
        let mut done = self.state();
        done.bytes += bytes;
        done.operations += operations;
    }

    fn set_decoding(&self, progress: Option<Arc<capture::Progress>>) {
        let mut done = self.state();
        if let Some(ended) = std::mem::replace(&mut done.decoding, progress) {
            done.bytes += ended.bytes_done();
            done.operations += ended.operations();
        }
    }
}

/// What a filter left of the operations of a pass. Another thread may read it.
#[derive(Debug, Default)]
pub struct Filtered {
    kept: AtomicU64,
    all: AtomicU64,
}

impl Filtered {
    /// Operations that met the filter.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Operations that were tested.
    pub fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }
}

/// The filter of a pass.
struct Sieve {
    filter: RowFilter,
    filtered: Arc<Filtered>,
    /// The requested columns, if the filter needs others, too.
    columns: Option<Vec<usize>>,
}

/// The parts that a pass yields, one after the other. Dropping it ends the pass.
pub struct Parts {
    steps: VecDeque<Step>,
    current: Option<Current>,
    /// Parts as they were read, before the filter.
    read: VecDeque<Part>,
    ready: VecDeque<Part>,
    request: Request,
    options: OpenOptions,
    progress: Arc<Progress>,
    sieve: Option<Sieve>,
}

enum Step {
    Decode(Vec<capture::Input>),
    Alone(capture::Input),
    Trace(Box<Input>, trace::Contents),
    /// A file of a table, with its rows according to the manifest.
    Read(Table, PathBuf, Option<u64>),
    /// A dataset that was not finished has no coverage of its own.
    Unfinished(Box<Coverage>),
}

enum Current {
    Decode(Box<capture::Decoder>),
    Trace {
        reader: Box<trace::Reader>,
        /// Bytes that the progress has.
        read_bytes: u64,
    },
    Read {
        table: Table,
        path: PathBuf,
        size_bytes: u64,
        schema: SchemaRef,
        reader: Box<ParquetRecordBatchReader>,
    },
}

impl Parts {
    pub(super) fn new(
        inputs: &[&Input],
        options: &OpenOptions,
        request: &Request,
        filter: Option<&Filter>,
    ) -> Result<Parts> {
        let mut request = request.clone();
        let sieve = filter.map(|filter| Sieve::new(filter, &mut request)).transpose()?;
        let mut parts = Parts {
            steps: VecDeque::new(),
            current: None,
            read: VecDeque::new(),
            ready: VecDeque::new(),
            request,
            options: options.clone(),
            progress: Arc::default(),
            sieve,
        };
        let mut total = Some(0u64);
        for input in inputs {
            match input {
                Input::Capture { path, size_bytes, .. } => {
                    parts.decode(capture::Input::Path(path.clone()));
                    total = total.map(|total| total + size_bytes);
                }
                Input::Pipe(path) => {
                    parts.decode_alone(capture::Input::Path(path.clone()));
                    total = None;
                }
                Input::Trace { contents, .. } => {
                    let wants = |tables: &[Table]| {
                        tables.iter().any(|table| parts.request.tables.contains(table))
                    };
                    let wanted = trace::Contents {
                        // Without anything else, the row about the trace itself says so.
                        processors: wants(&trace::TABLES)
                            && (contents.processors || !contents.operations),
                        operations: wants(&trace::OPERATION_TABLES) && contents.operations,
                        log: None,
                    };
                    if wanted.processors || wanted.operations {
                        let step = Step::Trace(Box::new((*input).clone()), wanted);
                        parts.steps.push_back(step);
                        let files = input.describe();
                        let sizes = files.iter().filter_map(|file| file.size_bytes);
                        total = total.map(|total| total + sizes.sum::<u64>());
                    }
                }
                Input::Stdin => {
                    parts.decode_alone(capture::Input::Stdin);
                    total = None;
                }
                Input::Dataset(dataset) => {
                    for table in Table::in_reading_order() {
                        for path in dataset.parts(table) {
                            let rows = dataset.rows_of(path);
                            total = total.map(|total| total + parts.read(table, path, rows));
                        }
                    }
                    parts.unfinished(dataset);
                }
                Input::File { path, info } => {
                    total = total.map(|total| total + parts.read(info.table, path, None));
                }
            }
        }
        parts.progress = Arc::new(Progress { total, ..Progress::default() });
        Ok(parts)
    }

    /// Progress of the pass.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// What the filter leaves of the operations; `None` if there is no filter, or if the pass has no
    /// operations.
    pub(super) fn filtered(&self) -> Option<Arc<Filtered>> {
        let sieve = self.sieve.as_ref();
        let has_operations = self.request.tables.contains(&Table::Operations);
        sieve.filter(|_| has_operations).map(|sieve| sieve.filtered.clone())
    }

    /// Successive captures are decoded together: a connection can continue in the next one.
    fn decode(&mut self, input: capture::Input) {
        match self.steps.back_mut() {
            Some(Step::Decode(inputs)) => inputs.push(input),
            _ => self.steps.push_back(Step::Decode(vec![input])),
        }
    }

    /// A pipe must not be opened before its turn.
    fn decode_alone(&mut self, input: capture::Input) {
        self.steps.push_back(Step::Alone(input));
    }

    fn unfinished(&mut self, dataset: &Dataset) {
        if !self.request.tables.contains(&Table::Coverage) {
            return;
        }
        let name = dataset.dir().file_name().unwrap_or(dataset.dir().as_os_str());
        let recording = name.to_string_lossy().into_owned();
        self.steps.extend(dataset.unfinished().map(|how| {
            let cut_off = Some(how);
            Step::Unfinished(Box::new(Coverage { recording, cut_off, ..Coverage::default() }))
        }));
    }

    fn read(&mut self, table: Table, path: &Path, rows: Option<u64>) -> u64 {
        if !self.request.tables.contains(&table) {
            return 0;
        }
        self.steps.push_back(Step::Read(table, path.to_owned(), rows));
        size(path)
    }

    /// How packets are decoded, for the tables and columns of the request.
    fn decode_options(&self) -> capture::Options {
        let wanted = |table| self.request.tables.contains(&table);
        let mut options = self.options.decode.clone();
        options.projection.clone_from(&self.request.projection);
        options.tables = capture::Tables {
            operations: wanted(Table::Operations),
            connections: wanted(Table::Connections),
            sessions: wanted(Table::Sessions),
            trees: wanted(Table::Trees),
            handles: wanted(Table::Handles),
            referrals: wanted(Table::Referrals),
            channels: wanted(Table::Channels),
            interfaces: wanted(Table::Interfaces),
            waits: wanted(Table::Waits),
        };
        options
    }

    fn begin(&self, step: Step) -> Result<Current> {
        match step {
            Step::Alone(input) => self.begin(Step::Decode(vec![input])),
            Step::Decode(inputs) => {
                let decoder = capture::Decoder::open(inputs, self.decode_options())?;
                self.progress.set_decoding(Some(decoder.progress()));
                Ok(Current::Decode(Box::new(decoder)))
            }
            Step::Trace(input, wanted) => {
                let OpenOptions { decode, symbols, .. } = &self.options;
                let Input::Trace { path, format, companion, .. } = &*input else {
                    return Err(Error::Internal("a trace that is something else"));
                };
                let (format, file) = (*format, input.file().unwrap_or(path));
                let companion = companion.as_ref().and_then(|input| input.file());
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                let rows = decode.batch_rows;
                let wanted = trace::Wanted {
                    processors: wanted.processors,
                    operations: wanted.operations.then(|| self.decode_options()),
                    companion: companion.map(Path::to_owned),
                };
                let reader = trace::Reader::open_as(file, &name, format, symbols, rows, wanted)?;
                Ok(Current::Trace { reader: Box::new(reader), read_bytes: 0 })
            }
            Step::Unfinished(_) => Err(Error::Internal("coverage is not read from a file")),
            Step::Read(table, path, rows) => {
                let full = table.schema();
                let schema = match (&self.request.projection, table) {
                    (Some(places), Table::Operations) => Arc::new(full.project(places)?),
                    _ => full,
                };
                let fields = schema.fields().iter();
                let columns: Vec<_> = fields
                    .flat_map(|field| [Some(field.name().as_str()), renamed(table, field.name())])
                    .flatten()
                    .collect();
                let batch_rows = self.options.decode.batch_rows;
                let reader = read_file(&path, (table, rows), Some(&columns), batch_rows)?;
                Ok(Current::Read {
                    table,
                    size_bytes: size(&path),
                    path,
                    schema,
                    reader: Box::new(reader),
                })
            }
        }
    }

    /// Reads the next part; false at the end of the current step.
    fn step(&mut self) -> Result<bool> {
        match &mut self.current {
            None => Ok(false),
            Some(Current::Decode(decoder)) => match decoder.next() {
                None => {
                    self.progress.set_decoding(None);
                    Ok(false)
                }
                Some(part) => {
                    let part = part?;
                    let coverage = matches!(part, Part::Coverage(_));
                    if !coverage || self.request.tables.contains(&Table::Coverage) {
                        self.read.push_back(part);
                    }
                    Ok(true)
                }
            },
            Some(Current::Trace { reader, read_bytes }) => {
                let part = reader.next_part()?;
                let before = std::mem::replace(read_bytes, reader.read_bytes());
                self.progress.add(*read_bytes - before, 0);
                let more = part.is_some();
                if let Some(Part::Operations(batch)) = &part {
                    self.progress.add(0, batch.num_rows() as u64);
                }
                self.read.extend(part.filter(|part| self.request.tables.contains(&part.table())));
                Ok(more)
            }
            Some(Current::Read { table, path, size_bytes, schema, reader }) => {
                match reader.next() {
                    None => {
                        self.progress.add(*size_bytes, 0);
                        Ok(false)
                    }
                    Some(batch) => {
                        let batch = batch.map_err(|error| error.into());
                        let batch = batch.map_err(Error::parquet(path))?;
                        let damaged = |what| Error::NotRecognised { path: path.clone(), what };
                        check_texts(&batch).map_err(damaged)?;
                        let batch = conform(*table, &batch, schema)?.map_err(damaged)?;
                        if *table == Table::Operations {
                            self.progress.add(0, batch.num_rows() as u64);
                        }
                        self.read.extend(Part::from_batch(*table, batch));
                        Ok(true)
                    }
                }
            }
        }
    }

    /// Moves what was read through the filter.
    fn sift(&mut self) -> Result<()> {
        let Some(sieve) = &mut self.sieve else {
            self.ready.append(&mut self.read);
            return Ok(());
        };
        while let Some(part) = self.read.pop_front() {
            // Coverage is the last part of its input.
            if matches!(part, Part::Coverage(_)) || sieve.filter.is_full() {
                self.ready.extend(sieve.filter.release());
            }
            self.ready.extend(sieve.part(part)?);
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<Part>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(tokens(part, self.options.tokenizer.as_ref())?));
            }
            if self.step()? {
                self.sift()?;
                continue;
            }
            self.current = None;
            match self.steps.pop_front() {
                None => {
                    let rest = self.sieve.as_mut().map(|sieve| sieve.filter.release());
                    self.ready.extend(rest.unwrap_or_default());
                    if self.ready.is_empty() {
                        return Ok(None);
                    }
                }
                Some(Step::Unfinished(coverage)) => {
                    self.read.push_back(Part::Coverage(coverage));
                    self.sift()?;
                }
                Some(step) => self.current = Some(self.begin(step)?),
            }
        }
    }
}

impl Sieve {
    /// A filter for a pass. The request gets the columns that the filter needs.
    fn new(filter: &Filter, request: &mut Request) -> Result<Sieve> {
        let mut columns = None;
        if let Some(places) = &mut request.projection {
            let schema = operation::schema();
            let wanted = places.clone();
            for name in RowFilter::columns(filter, &request.tables) {
                let place = schema.index_of(name)?;
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            columns = Some(wanted).filter(|wanted| wanted.len() < places.len());
        }
        let filter = RowFilter::new(filter.clone(), &request.tables);
        Ok(Sieve { filter, filtered: Arc::default(), columns })
    }

    fn part(&mut self, part: Part) -> Result<Option<Part>> {
        let Some(part) = self.filter.part(part)? else { return Ok(None) };
        let Part::Operations(batch) = part else { return Ok(Some(part)) };
        let (kept, all) = self.filter.counts();
        self.filtered.kept.store(kept, Ordering::Relaxed);
        self.filtered.all.store(all, Ordering::Relaxed);
        Ok(Some(Part::Operations(match &self.columns {
            None => batch,
            Some(columns) => requested(&batch, columns)?,
        })))
    }
}

/// The columns at these places of the operations' schema.
fn requested(batch: &RecordBatch, columns: &[usize]) -> Result<RecordBatch> {
    let (of_batch, of_table) = (batch.schema(), operation::schema());
    let names = columns.iter().filter_map(|&place| of_table.fields().get(place));
    let places: std::result::Result<Vec<_>, _> =
        names.map(|field| of_batch.index_of(field.name())).collect();
    Ok(batch.project(&places?)?)
}

impl Iterator for Parts {
    type Item = Result<Part>;

    fn next(&mut self) -> Option<Result<Part>> {
        let next = self.advance();
        if next.is_err() {
            // The pass ends with an error.
            self.steps.clear();
            self.ready.clear();
            self.current = None;
        }
        next.transpose()
    }
}

fn tokens(part: Part, tokenizer: Option<&Tokenizer>) -> Result<Part> {
    match tokenizer {
        Some(tokenizer) => Ok(part.anonymize(tokenizer)?),
        None => Ok(part),
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
