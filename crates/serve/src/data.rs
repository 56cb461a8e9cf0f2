//! The rows behind the page: an SQL engine over the inputs, what is known of them as a whole, and the latest
//! answers. Where inputs grow, the engine is opened again and the answers are forgotten.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use smbscope_analysis::explain::Diagnosis;
use smbscope_analysis::summary::Report;
use smbscope_report::Clock;
use smbscope_store::source::Source;
use smbscope_store::sql::{Engine, EngineOptions};
use smbscope_tables::slice::Kind;

use crate::error::{Error, Result};
use crate::subject::{INTERRUPTS, OPERATIONS, Part, Subject, parts};

/// Answers that are kept.
const KEPT: usize = 24;
/// What sorting and grouping may hold before they spill, bytes.
const MEMORY_BYTES: usize = 192 << 20;

/// Where the rows come from, and what the program computes over them.
pub trait Inputs: Send + Sync {
    /// Opens the inputs, for a pass or for an engine.
    ///
    /// # Errors
    ///
    /// Those of opening inputs.
    fn open(&self) -> anyhow::Result<Source>;

    /// The report and the diagnosis of a source, which may have a filter.
    ///
    /// # Errors
    ///
    /// Those of reading inputs.
    fn report(&self, source: &Source) -> anyhow::Result<(Report, Option<Diagnosis>)>;

    /// Changes when there are new rows.
    fn version(&self) -> u64 {
        0
    }

    /// Whether rows are still arriving.
    fn is_live(&self) -> bool {
        false
    }
}

/// What the page says about its inputs.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Names of the inputs, or their tokens.
    pub inputs: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// How times of day are shown.
    pub clock: Clock,
}

/// The inputs, opened.
pub struct Data {
    pub about: About,
    inputs: Box<dyn Inputs>,
    loaded: RwLock<Arc<Loaded>>,
    /// One at a time opens the inputs again.
    opening: Mutex<()>,
}

/// An engine over the inputs as they were at one time.
pub struct Loaded {
    engine: Engine,
    /// What [`Inputs::version`] said.
    pub version: u64,
    /// The tables that have rows.
    pub subjects: Vec<&'static Subject>,
    /// The parts of an operation's time.
    pub parts: Vec<Part>,
    /// First and last time of a row, ns since 1970.
    pub extent: Option<(i64, i64)>,
    answers: Mutex<VecDeque<(String, Arc<Vec<RecordBatch>>)>>,
}

impl Data {
    /// Opens the inputs.
    ///
    /// # Errors
    ///
    /// Those of opening and reading inputs.
    pub fn open(inputs: Box<dyn Inputs>, about: About) -> Result<Data> {
        let loaded = RwLock::new(Arc::new(Loaded::open(&*inputs)?));
        Ok(Data { about, inputs, loaded, opening: Mutex::new(()) })
    }

    /// The inputs as they are now.
    ///
    /// # Errors
    ///
    /// Those of opening inputs that have new rows.
    pub fn now(&self) -> Result<Arc<Loaded>> {
        let read = || self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone();
        let loaded = read();
        if loaded.version == self.inputs.version() {
            return Ok(loaded);
        }
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = read();
        if loaded.version == self.inputs.version() {
            return Ok(loaded);
        }
        let loaded = Arc::new(Loaded::open(&*self.inputs)?);
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded.clone();
        Ok(loaded)
    }

    /// Whether rows are still arriving.
    pub fn is_live(&self) -> bool {
        self.inputs.is_live()
    }

    /// The first time of a row, ns since 1970.
    pub fn start_ns(&self) -> Option<i64> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.extent.map(|(first, _)| first)
    }

    /// The report and the diagnosis of the rows that meet a filter, and how many did.
    ///
    /// # Errors
    ///
    /// Those of opening and reading inputs.
    pub fn report(
        &self,
        filter: smbscope_tables::filter::Filter,
    ) -> Result<(Report, Option<Diagnosis>, Option<Kept>)> {
        let mut source = self.inputs.open().map_err(Error::Report)?;
        source.set_filter(filter);
        let (report, diagnosis) = self.inputs.report(&source).map_err(Error::Report)?;
        let kept = source.filtered().map(|filtered| (filtered.kept(), filtered.all()));
        Ok((report, diagnosis, kept))
    }
}

/// How many operations a filter kept, and of how many.
pub type Kept = (u64, u64);

impl Loaded {
    fn open(inputs: &dyn Inputs) -> Result<Loaded> {
        // Before opening: rows that arrive meanwhile are then read again.
        let version = inputs.version();
        let source = inputs.open().map_err(Error::Report)?;
        let options = EngineOptions { memory_bytes: MEMORY_BYTES, ..EngineOptions::default() };
        let mut loaded = Loaded {
            engine: Engine::with_options(source, options)?,
            version,
            subjects: Vec::new(),
            parts: Vec::new(),
            extent: None,
            answers: Mutex::default(),
        };
        loaded.look()?;
        Ok(loaded)
    }

    /// Finds out what there is.
    fn look(&mut self) -> Result<()> {
        for subject in Subject::ALL {
            let (table, time) = (subject.table, subject.time);
            let sql = format!("SELECT count(*), min({time}), max({time}) FROM {table}");
            let [count, first, last] = self.numbers(&sql)?;
            if count == Some(0) {
                continue;
            }
            self.subjects.push(subject);
            if let (Some(first), Some(last)) = (first, last) {
                let (from, to) = self.extent.unwrap_or((first, last));
                self.extent = Some((from.min(first), to.max(last)));
            }
        }
        if self.subjects.is_empty() {
            self.subjects.push(&OPERATIONS);
        }
        let counts: Vec<_> = Kind::ALL.iter().map(|kind| count_of(*kind)).collect();
        let sql = format!("SELECT {} FROM operations", counts.join(", "));
        let answer = self.query(&sql)?;
        let has = |place: usize| cell(&answer, place).is_some_and(|count| count > 0);
        let kinds = Kind::ALL.iter().enumerate().filter(|(place, _)| has(*place));
        self.parts = parts(&kinds.map(|(_, kind)| *kind).collect::<Vec<_>>());
        Ok(())
    }

    fn numbers<const N: usize>(&self, sql: &str) -> Result<[Option<i64>; N]> {
        let answer = self.query(sql)?;
        Ok(std::array::from_fn(|place| cell(&answer, place)))
    }

    /// Whether there are rows of CPUs.
    pub fn has_interrupts(&self) -> bool {
        self.subjects.iter().any(|subject| subject.table == INTERRUPTS.table)
    }

    /// The rows that answer a query. The latest answers are kept.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn query(&self, sql: &str) -> Result<Arc<Vec<RecordBatch>>> {
        let kept = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut answers = kept();
            if let Some(place) = answers.iter().position(|(of, _)| of == sql)
                && let Some(found) = answers.remove(place)
            {
                let rows = found.1.clone();
                answers.push_back(found);
                return Ok(rows);
            }
        }
        let rows = self.engine.query(sql)?.collect::<smbscope_store::Result<Vec<_>>>()?;
        let rows = Arc::new(rows);
        let mut answers = kept();
        if answers.len() >= KEPT {
            answers.pop_front();
        }
        answers.push_back((sql.to_owned(), rows.clone()));
        Ok(rows)
    }
}

fn count_of(kind: Kind) -> String {
    format!("count({})", kind.column_name())
}

/// The integer of a column in the first row.
fn cell(rows: &[RecordBatch], place: usize) -> Option<i64> {
    let column = rows.iter().find(|batch| batch.num_rows() > 0)?.columns().get(place)?;
    let column = column.as_primitive_opt::<Int64Type>()?;
    column.is_valid(0).then(|| column.value(0))
}
