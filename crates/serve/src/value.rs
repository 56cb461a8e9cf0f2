//! Cells of an answer as JSON: text and numbers as they are, null for what is not known.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use serde_json::Value;

use crate::error::{Error, Result};

/// All rows of an answer, column by column, as they are written.
pub struct Rows {
    batches: Vec<Vec<ArrayRef>>,
}

impl Rows {
    /// Converts text, integers and floats to one type each.
    ///
    /// # Errors
    ///
    /// Those of arrow, which the columns of our queries do not cause.
    pub fn new(batches: &[RecordBatch]) -> Result<Rows> {
        let plain = |column: &ArrayRef| {
            let to = match column.data_type() {
                DataType::Float64 | DataType::Boolean => return Ok(column.clone()),
                DataType::UInt64 => DataType::UInt64,
                other if other.is_integer() => DataType::Int64,
                other if other.is_floating() => DataType::Float64,
                _ => DataType::Utf8,
            };
            cast(column, &to).map_err(|error| Error::Write(error.to_string()))
        };
        let batches =
            batches.iter().map(|batch| batch.columns().iter().map(plain).collect::<Result<_>>());
        Ok(Rows { batches: batches.collect::<Result<_>>()? })
    }

    /// Each row as JSON values.
    pub fn iter(&self) -> impl Iterator<Item = Vec<Value>> + '_ {
        self.batches.iter().flat_map(|columns| {
            let rows = columns.first().map_or(0, |column| column.len());
            (0..rows).map(move |row| columns.iter().map(|column| value(column, row)).collect())
        })
    }
}

fn value(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8 => Value::from(column.as_string::<i32>().value(row)),
        DataType::Int64 => Value::from(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => Value::from(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Float64 => Value::from(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::from(column.as_boolean().value(row)),
        _ => Value::Null,
    }
}
