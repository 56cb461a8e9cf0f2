//! The form of rows in Parquet files: points in time are timestamps (ns, UTC), which other tools show as such.
//! Within smbscope they are integers.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampNanosecondType,
};
use arrow::error::ArrowError;
use smbscope_tables::column::{UNIT_KEY, Unit};

/// The time zone of all points in time.
const ZONE: &str = "UTC";

/// The type of a point in time in files.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(ZONE.into()))
}

/// Whether a column holds points in time.
fn is_time(field: &Field) -> bool {
    field.data_type() == &DataType::Int64
        && field.metadata().get(UNIT_KEY).is_some_and(|unit| unit == Unit::Time.name())
}

/// A table's schema as files have it.
pub(crate) fn stored_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        if is_time(field) {
            Arc::new(field.as_ref().clone().with_data_type(timestamp()))
        } else {
            field.clone()
        }
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Rows as files have them. No value is copied.
pub(crate) fn stored(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| -> ArrayRef {
        match (column.data_type(), field.data_type()) {
            (DataType::Int64, DataType::Timestamp(..)) => {
                let times = column.as_primitive::<Int64Type>();
                let times = times.reinterpret_cast::<TimestampNanosecondType>();
                Arc::new(times.with_timezone(ZONE))
            }
            _ => column.clone(),
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect(), &options)
}
