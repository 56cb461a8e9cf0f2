//! The tables as DataFusion sees them.

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::StreamExt as _;

use super::failure;
use crate::dataset::reader::is_as_written;
use crate::error::{Error, Result};
use crate::source::{Inputs, Request, Source, check_texts};
use crate::{Part, Table};

/// One table of a source: Parquet files through DataFusion's reader, everything else (captures, traces,
/// and files whose names become tokens) as a stream of decoded parts.
#[derive(Debug)]
pub(super) struct SourceTable {
    table: Table,
    schema: SchemaRef,
    source: Arc<Source>,
    files: Option<ListingTable>,
    streamed: Option<Inputs>,
}

impl SourceTable {
    pub(super) fn new(table: Table, source: Arc<Source>) -> Result<SourceTable> {
        let streams = source.options().tokenizer.is_some()
            || source.filter().is_some()
            || source.has_old_files();
        let (files, streamed) = if streams {
            // DataFusion would see names before they become tokens, rows that the source leaves out, and
            // columns of old files under other names.
            (None, Some(Inputs::All))
        } else {
            let paths = source.files(table);
            if paths.iter().all(|path| is_as_written(path, table)) {
                (listing(table, &paths)?, source.has_decoded().then_some(Inputs::Decoded))
            } else {
                // The reader of datasets says what is wrong with a file, or casts its columns.
                (None, Some(Inputs::All))
            }
        };
        // A table without files (empty dataset) still exists.
        let streamed = match files {
            None => Some(streamed.unwrap_or(Inputs::Decoded)),
            Some(_) => streamed,
        };
        Ok(SourceTable { table, schema: schema(table), source, files, streamed })
    }

    fn stream(
        &self,
        inputs: Inputs,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(places) => Arc::new(self.schema.project(places)?),
            None => self.schema.clone(),
        };
        let stream = PartStream {
            table: self.table,
            schema: schema.clone(),
            source: self.source.clone(),
            inputs,
            projection: projection.cloned(),
        };
        let streams: Vec<Arc<dyn PartitionStream>> = vec![Arc::new(stream)];
        let plan = StreamingTableExec::try_new(schema, streams, None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let mut plans = Vec::new();
        if let Some(files) = &self.files {
            let plan = files.scan(state, projection, filters, limit).await?;
            plans.push(CheckedScan::of_files(plan, state)?);
        }
        if let Some(inputs) = self.streamed {
            plans.push(self.stream(inputs, projection, limit)?);
        }
        match plans.len() {
            1 => Ok(plans.remove(0)),
            _ => UnionExec::try_new(plans),
        }
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        // Files skip row groups by them; every row is tested again above.
        let answer = match self.files {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(vec![answer; filters.len()])
    }
}

/// A scan of files whose texts are checked as those of every reader ([`check_texts`]).
#[derive(Debug)]
struct CheckedScan {
    plan: Arc<dyn ExecutionPlan>,
}

impl CheckedScan {
    /// The scan in as many partitions as the session wants.
    fn of_files(
        plan: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let partitions = state.config().target_partitions();
        let plan = plan.repartitioned(partitions, state.config_options())?.unwrap_or(plan);
        Ok(Arc::new(CheckedScan { plan }))
    }
}

impl DisplayAs for CheckedScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckedScan")
    }
}

impl ExecutionPlan for CheckedScan {
    fn name(&self) -> &'static str {
        "CheckedScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    /// It has no own one.
    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DataFusionResult<TreeNodeRecursion>,
    ) -> DataFusionResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let plan = children.into_iter().next().unwrap_or_else(|| self.plan.clone());
        Ok(Arc::new(CheckedScan { plan }))
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> DataFusionResult<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> DataFusionResult<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DataFusionResult<SendableRecordBatchStream> {
        let rows = self.plan.execute(partition, context)?.map(|batch| {
            let batch = batch?;
            check_texts(&batch).map_err(DataFusionError::Execution)?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.plan.schema(), rows)))
    }
}

/// Parts of one table, decoded in a separate thread while the query reads them.
#[derive(Debug)]
struct PartStream {
    table: Table,
    schema: SchemaRef,
    source: Arc<Source>,
    inputs: Inputs,
    projection: Option<Vec<usize>>,
}

impl PartitionStream for PartStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        // A short queue: decoding must not run far ahead of a query that ends early.
        let mut stream = RecordBatchReceiverStreamBuilder::new(self.schema.clone(), 2);
        let sender = stream.tx();
        let (table, inputs) = (self.table, self.inputs);
        let (source, projection) = (self.source.clone(), self.projection.clone());
        let schema = self.schema.clone();
        stream.spawn_blocking(move || {
            let operations = table == Table::Operations;
            let request = Request {
                tables: vec![table],
                projection: projection.clone().filter(|_| operations),
            };
            let parts = source.parts_of(inputs, &request);
            for part in parts.map_err(failure::outside)? {
                let part: Part = part.map_err(failure::outside)?;
                if part.table() != table {
                    continue;
                }
                let mut batch = part.to_batch()?;
                if let Some(places) = projection.as_ref().filter(|_| !operations) {
                    batch = project(&batch, places).map_err(failure::outside)?;
                }
                let batch = batch.with_schema(schema.clone())?;
                if sender.blocking_send(Ok(batch)).is_err() {
                    // The query ended: dropping the parts ends decoding.
                    return Ok(());
                }
            }
            Ok(())
        });
        stream.build()
    }
}

/// A batch's columns at `projection`, keeping the number of rows when there are none.
fn project(batch: &RecordBatch, projection: &[usize]) -> Result<RecordBatch> {
    let schema = Arc::new(batch.schema().project(projection)?);
    let columns =
        projection.iter().filter_map(|&place| batch.columns().get(place).cloned()).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// A table's columns, as SQL sees them: all nullable, because files of older versions do not have all of them.
fn schema(table: Table) -> SchemaRef {
    let schema = table.schema();
    let fields = schema.fields().iter();
    let fields: Vec<_> = fields.map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// DataFusion's table over Parquet files; `None` without files.
fn listing(table: Table, paths: &[std::path::PathBuf]) -> Result<Option<ListingTable>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let urls = paths.iter().map(|path| {
        let absolute = std::path::absolute(path).map_err(Error::io(path))?;
        // Not parsed: a name may contain characters of a glob pattern.
        let url = url::Url::from_file_path(&absolute).map_err(|()| Error::NotRecognised {
            path: absolute,
            what: "the path cannot be converted to a URL".into(),
        })?;
        ListingTableUrl::try_new(url, None).map_err(failure::planning)
    });
    let urls = urls.collect::<Result<Vec<_>>>()?;
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(schema(table));
    let listing = ListingTable::try_new(config).map_err(failure::planning)?;
    Ok(Some(listing))
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        failure::outside(error)
    }
}
