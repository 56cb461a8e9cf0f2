//! SQL over a source, with DataFusion.
//!
//! Captures are decoded while the query runs, only the columns that it uses. Datasets are read by
//! DataFusion's Parquet reader, which skips row groups by their statistics, if they are as this version writes them, else
//! by the reader of all other commands; texts have the same limits in both. Memory is bounded: data
//! that does not fit is spilled to the temporary folder. SQL cannot change anything.

mod failure;
mod percentile;
mod provider;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use tokio::runtime::Runtime;

use crate::Table;
use crate::error::{Error, Result};
use crate::source::{Progress, Source};

/// Limits of the engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Bytes that sorting, grouping and joining may hold before they spill.
    pub memory_bytes: usize,
    /// Threads and partitions of a query; 0 for the number of CPUs.
    pub threads: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { memory_bytes: 96 << 20, threads: 0 }
    }
}

/// Answers SQL over one source.
pub struct Engine {
    context: SessionContext,
    source: Arc<Source>,
    runtime: Arc<Threads>,
}

/// The rows that answer a query, batch by batch. Dropping it ends the query.
pub struct Answer {
    schema: SchemaRef,
    rows: Option<SendableRecordBatchStream>,
    runtime: Arc<Threads>,
}

/// A runtime whose drop does not wait for a decoder that is still running.
struct Threads(Option<Runtime>);

impl Engine {
    /// An engine with default limits. A stream is first written to a temporary dataset, because a
    /// query may read its input several times.
    pub fn new(source: Source) -> Result<Engine> {
        Engine::with_options(source, EngineOptions::default())
    }

    /// An engine with the given limits.
    pub fn with_options(mut source: Source, options: EngineOptions) -> Result<Engine> {
        source.spool()?;
        let source = Arc::new(source);
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("query")
            .build()
            .map_err(Error::io(std::path::Path::new("query threads")))?;
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(options.memory_bytes)))
            .with_metadata_cache_limit(16 << 20)
            .build_arc()
            .map_err(failure::planning)?;
        let context = SessionContext::new_with_config_rt(config(threads), environment);
        context.register_udaf(percentile::percentile());
        for table in Table::ALL {
            let provider = provider::SourceTable::new(table, source.clone())?;
            context.register_table(table.name(), Arc::new(provider)).map_err(failure::planning)?;
        }
        Ok(Engine { context, source, runtime: Arc::new(Threads(Some(runtime))) })
    }

    /// Decoding progress of the latest query; `None` if queries read only datasets.
    pub fn progress(&self) -> Option<Arc<Progress>> {
        self.source.progress()
    }

    /// Starts one SELECT, EXPLAIN, SHOW or DESCRIBE.
    pub fn query(&self, sql: &str) -> Result<Answer> {
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let begin = async {
            let frame = self.context.sql_with_options(sql, options).await?;
            let task = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await?;
            execute_stream(plan, task)
        };
        let rows = self.runtime.get()?.block_on(begin);
        let rows = rows.map_err(failure::planning)?;
        Ok(Answer { schema: rows.schema(), rows: Some(rows), runtime: self.runtime.clone() })
    }
}

impl Answer {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Answer {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let runtime = match self.runtime.get() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Err(error)),
        };
        let rows = self.rows.as_mut()?;
        let next = runtime.block_on(rows.next());
        if !matches!(next, Some(Ok(_))) {
            self.rows = None;
        }
        next.map(|batch| batch.map_err(failure::running))
    }
}

impl Threads {
    fn get(&self) -> Result<&Runtime> {
        self.0.as_ref().ok_or(Error::Internal("no query threads"))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn config(threads: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_information_schema(true)
        .with_default_catalog_and_schema("smbscope", "main")
        .with_target_partitions(threads)
        .with_batch_size(8192);
    let options = config.options_mut();
    // The same types whether rows come from a capture or from a file.
    options.execution.parquet.schema_force_view_types = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    config
}

#[cfg(test)]
mod tests;
