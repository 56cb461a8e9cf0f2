//! Whether the rows of a Parquet file are rows of its table: files come from anybody.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions, StringArray,
    new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{FieldRef, Int32Type, Schema, SchemaRef};
use smbscope_tables::renamed;

use crate::Table;
use crate::error::Result;

/// The batch with exactly the columns of `schema`: columns that an older file does not have are null,
/// even if newer files always have a value.
pub(super) fn conform(
    table: Table,
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<std::result::Result<RecordBatch, String>> {
    let found = |name: &str| {
        let old = || batch.column_by_name(renamed(table, name)?);
        batch.column_by_name(name).or_else(old)
    };
    let column = |field: &FieldRef| -> Result<(FieldRef, ArrayRef)> {
        Ok(match found(field.name()) {
            None => (
                Arc::new(field.as_ref().clone().with_nullable(true)),
                new_null_array(field.data_type(), batch.num_rows()),
            ),
            Some(column) if column.data_type() == field.data_type() => {
                (field.clone(), column.clone())
            }
            Some(column) => (field.clone(), cast(column, field.data_type())?),
        })
    };
    for field in schema.fields() {
        // A value that the column's type does not have would be lost without a word.
        if let Some(before) = found(field.name()).filter(|it| it.data_type() != field.data_type()) {
            let lost = cast(before, field.data_type())
                .map_or(before.len(), |after| after.logical_null_count())
                .saturating_sub(before.logical_null_count());
            if lost > 0 {
                let (name, kind) = (field.name(), before.data_type());
                return Ok(Err(format!("column {name}: {lost} values of type {kind} do not fit")));
            }
        }
    }
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(Ok(RecordBatch::try_new_with_options(schema, columns, &options)?))
}

/// Bytes of one text, and of all texts of a batch if each row had its own: rows of the small tables do.
const TEXT_BYTES_MAX: usize = 128 << 10;
const BATCH_TEXT_BYTES_MAX: usize = 256 << 20;

/// What is wrong with the texts of a batch: a few kilobytes of a dictionary can expand to any number of bytes in rows.
pub(crate) fn check_texts(batch: &RecordBatch) -> std::result::Result<(), String> {
    let mut total = 0_usize;
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let length = |texts: &StringArray, place: usize| {
            if place < texts.len() { texts.value_length(place) as usize } else { 0 }
        };
        let longest = if let Some(texts) = column.as_string_opt::<i32>() {
            (0..texts.len()).map(|place| length(texts, place)).inspect(|own| total += own).max()
        } else if let Some(dictionary) = column.as_dictionary_opt::<Int32Type>()
            && let Some(texts) = dictionary.values().as_string_opt::<i32>()
        {
            let keys = dictionary.keys().iter().flatten();
            keys.map(|key| length(texts, key as usize)).inspect(|own| total += own).max()
        } else {
            continue;
        };
        if longest > Some(TEXT_BYTES_MAX) || total > BATCH_TEXT_BYTES_MAX {
            let (name, longest) = (field.name(), longest.unwrap_or(0));
            return Err(format!(
                "column {name}: a text of {longest} bytes, {total} bytes in {} rows: smbscope writes none of that length",
                batch.num_rows()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_tables::tables::Coverage;

    #[test]
    fn a_column_that_an_older_file_lacks_reads_as_absent() {
        let row = Coverage { operations: 5, operations_unjoined: 3, ..Coverage::default() };
        let batch = Coverage::to_batch(&[row]).unwrap();
        let schema = batch.schema();
        let later = schema.index_of("operations_unjoined").unwrap();
        let older: Vec<_> = (0..schema.fields().len()).filter(|place| *place != later).collect();
        let older = batch.project(&older).unwrap();
        let read = conform(Table::Coverage, &older, &schema).unwrap().unwrap();
        assert_eq!(read.num_columns(), schema.fields().len());
        let rows = Coverage::from_batch(&read);
        assert_eq!((rows[0].operations, rows[0].operations_unjoined), (5, 0));
    }
}
