//! Columns of a batch by name, read row by row. A column that the batch does not have reads as unknown values.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{ArrowPrimitiveType, DataType};
use arrow::error::ArrowError;

/// A text column, dictionary-encoded or not.
pub struct Text(Option<StringArray>);

impl Text {
    /// Finds a column by its name.
    pub fn from_batch(batch: &RecordBatch, name: &str) -> Result<Text, ArrowError> {
        let column = batch.column_by_name(name);
        let column = column.map(|column| cast(column, &DataType::Utf8)).transpose()?;
        Ok(Text(column.and_then(|column| column.as_string_opt().cloned())))
    }

    /// The value of a row, if it is known.
    pub fn get(&self, row: usize) -> Option<&str> {
        let column = self.0.as_ref()?;
        (row < column.len() && column.is_valid(row)).then(|| column.value(row))
    }
}

/// A column of numbers, cast to one type.
pub struct Numbers<T: ArrowPrimitiveType>(Option<arrow::array::PrimitiveArray<T>>);

impl<T: ArrowPrimitiveType> Numbers<T> {
    /// Finds a column by its name.
    pub fn from_batch(batch: &RecordBatch, name: &str) -> Result<Numbers<T>, ArrowError> {
        let column = batch.column_by_name(name);
        let column = column.map(|column| cast(column, &T::DATA_TYPE)).transpose()?;
        Ok(Numbers(column.and_then(|column| column.as_primitive_opt().cloned())))
    }

    /// The value of a row, if it is known.
    pub fn get(&self, row: usize) -> Option<T::Native> {
        let column = self.0.as_ref()?;
        (row < column.len() && column.is_valid(row)).then(|| column.value(row))
    }
}

/// A column of booleans.
pub struct Flags(Option<BooleanArray>);

impl Flags {
    /// Finds a column by its name.
    pub fn from_batch(batch: &RecordBatch, name: &str) -> Result<Flags, ArrowError> {
        let column = batch.column_by_name(name);
        Ok(Flags(column.and_then(|column| column.as_boolean_opt().cloned())))
    }

    /// Whether the value is known and true.
    pub fn get(&self, row: usize) -> bool {
        let value = self.0.as_ref();
        value.is_some_and(|flags| row < flags.len() && flags.is_valid(row) && flags.value(row))
    }
}
