//! Rows to Arrow record batches.
//!
//! Rows come in small groups while they are still in the cache; every wanted column takes its
//! value from each. Columns that are not wanted cost nothing, columns without any value little.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Int64Type, SchemaRef, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use crate::code;
use crate::operation::{Column, Operation, Values, schema};
use crate::pool::Pool;

/// The texts that rows of one batch refer to by number.
#[derive(Default)]
pub struct Names {
    /// Raised when the pools are emptied: a number is valid in its generation only.
    pub generation: u64,
    /// Of the `recording` column.
    pub recording: Pool,
    /// Of the `client` column.
    pub client: Pool,
    /// Of the `server` column.
    pub server: Pool,
    /// Of the `user` column.
    pub user: Pool,
    /// Of the `share` column.
    pub share: Pool,
    /// Of the `path` column.
    pub path: Pool,
    /// Of the `extension` column.
    pub extension: Pool,
}

impl Names {
    fn pool(&mut self, column: Column) -> Option<&mut Pool> {
        match column {
            Column::recording => Some(&mut self.recording),
            Column::client => Some(&mut self.client),
            Column::server => Some(&mut self.server),
            Column::user => Some(&mut self.user),
            Column::share => Some(&mut self.share),
            Column::path => Some(&mut self.path),
            Column::extension => Some(&mut self.extension),
            _ => None,
        }
    }

    /// Bytes of all texts, to end a batch early when names are long.
    pub fn text_bytes(&self) -> usize {
        self.path.text_bytes() + self.share.text_bytes() + self.user.text_bytes()
    }
}

/// The end of a file's name after its last dot, as the `extension` column has it: at most 16
/// characters, none for a name that only begins with a dot. Lower case is up to the caller.
pub fn extension_of(path: &str) -> Option<&str> {
    let name = path.rsplit(['\\', '/']).next()?;
    // A stream's name and type follow the file's: "a.doc:Zone.Identifier:$DATA".
    let name = name.split(':').next()?;
    let dot = name.rfind('.').filter(|&dot| dot > 0)?;
    let extension = name.get(dot + 1..)?;
    let plain = !extension.is_empty()
        && extension.len() <= 16
        && extension.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '~' || c == '-');
    plain.then_some(extension)
}

/// Builds record batches of the operations table, or of some of its columns.
pub struct OperationBuilder {
    schema: SchemaRef,
    columns: Vec<(Column, Values)>,
    present: Vec<u128>,
    /// The texts that appended rows refer to. Emptied by [`OperationBuilder::finish`].
    pub names: Names,
}

impl OperationBuilder {
    /// A builder of the columns at `projection` (places in the schema), or of all of them.
    pub fn new(projection: Option<&[usize]>) -> Result<OperationBuilder, ArrowError> {
        let full = schema();
        let (schema, columns) = match projection {
            None => (full, Column::ALL.to_vec()),
            Some(places) => (
                Arc::new(full.project(places)?),
                places.iter().filter_map(|&place| Column::ALL.get(place).copied()).collect(),
            ),
        };
        let columns = columns.into_iter().map(|column| (column, column.empty())).collect();
        Ok(OperationBuilder { schema, columns, present: Vec::new(), names: Names::default() })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Rows appended since the last batch.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether no row was appended since the last batch.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// Appends rows, whose names are numbers in [`OperationBuilder::names`].
    pub fn append(&mut self, rows: &[Operation]) {
        self.present.extend(rows.iter().map(|row| row.present));
        for (column, values) in &mut self.columns {
            column.append(rows, values);
        }
    }

    /// The batch of everything appended; the builder and its names start anew.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.present.len();
        let any = self.present.iter().fold(0, |any, present| any | present);
        let all = self.present.iter().fold(u128::MAX, |all, present| all & present);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (place, (column, values)) in self.columns.iter_mut().enumerate() {
            let bit = *column as u32;
            let array = if any >> bit & 1 == 0 {
                clear(values);
                new_null_array(self.schema.field(place).data_type(), rows)
            } else {
                let present = &self.present;
                let nulls = (all >> bit & 1 == 0).then(|| {
                    NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| {
                        present.get(row).is_some_and(|bits| bits >> bit & 1 == 1)
                    }))
                });
                array_of(*column, values, nulls, self.names.pool(*column))?
            };
            arrays.push(array);
        }
        self.present.clear();
        let generation = self.names.generation + 1;
        for column in Column::ALL {
            if let Some(pool) = self.names.pool(*column)
                && !pool.is_empty()
            {
                pool.take();
            }
        }
        self.names.generation = generation;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }
}

fn clear(values: &mut Values) {
    match values {
        Values::U64(v) => v.clear(),
        Values::U32(v) => v.clear(),
        Values::U16(v) => v.clear(),
        Values::U8(v) => v.clear(),
        Values::I64(v) => v.clear(),
        Values::Bool(v) => v.clear(),
        Values::Bytes16(v) => v.clear(),
        Values::Name(v) => v.clear(),
        Values::Code(v) => v.clear(),
    }
}

fn array_of(
    column: Column,
    values: &mut Values,
    nulls: Option<NullBuffer>,
    pool: Option<&mut Pool>,
) -> Result<ArrayRef, ArrowError> {
    Ok(match values {
        Values::U64(v) => primitive::<UInt64Type>(v, nulls)?,
        Values::U32(v) => primitive::<UInt32Type>(v, nulls)?,
        Values::U16(v) => primitive::<UInt16Type>(v, nulls)?,
        Values::U8(v) => primitive::<UInt8Type>(v, nulls)?,
        Values::I64(v) => primitive::<Int64Type>(v, nulls)?,
        Values::Bool(v) => {
            let array = BooleanArray::new(BooleanBuffer::from(v.as_slice()), nulls);
            v.clear();
            Arc::new(array)
        }
        Values::Bytes16(v) => {
            let bytes = Buffer::from(v.as_flattened());
            v.clear();
            Arc::new(FixedSizeBinaryArray::try_new(16, bytes, nulls)?)
        }
        Values::Name(v) => {
            let texts = match pool {
                Some(pool) => pool.take(),
                None => Arc::new(StringArray::new_null(0)),
            };
            let keys = v.iter().map(|&number| number as i32).collect::<Vec<_>>();
            v.clear();
            dictionary(keys, nulls, texts)?
        }
        Values::Code(v) => {
            let mut pool = Pool::default();
            let mut known: hashbrown::HashMap<u64, i32, foldhash::fast::RandomState> =
                Default::default();
            let (mut last_code, mut last_key) = (None, 0);
            let mut keys = Vec::with_capacity(v.len());
            for (row, &code) in v.iter().enumerate() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    keys.push(0);
                    continue;
                }
                if last_code != Some(code) {
                    last_code = Some(code);
                    last_key = *known
                        .entry(code)
                        .or_insert_with(|| pool.intern(&code::text(column, code)) as i32);
                }
                keys.push(last_key);
            }
            v.clear();
            dictionary(keys, nulls, pool.take())?
        }
    })
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let capacity = values.len();
    let values = std::mem::replace(values, Vec::with_capacity(capacity));
    Ok(Arc::new(PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?))
}

fn dictionary(
    keys: Vec<i32>,
    nulls: Option<NullBuffer>,
    texts: ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let keys = Int32Array::try_new(ScalarBuffer::from(keys), nulls)?;
    Ok(Arc::new(DictionaryArray::try_new(keys, texts)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int32Type;

    #[test]
    fn builds_what_was_set_and_nulls_for_the_rest() {
        let mut builder = OperationBuilder::new(None).unwrap();
        let mut row = Operation::default();
        row.set_operation(7);
        row.set_command(code::command(2, 8));
        row.set_path(builder.names.path.intern("a\\b.txt"));
        row.set_file_id([3; 16]);
        row.set_signed(true);
        builder.append(&[row, Operation::default()]);
        let batch = builder.finish().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, Column::ALL.len()));
        let numbers = batch["operation"].as_primitive::<UInt64Type>();
        assert_eq!((numbers.value(0), numbers.is_null(1)), (7, true));
        let paths = batch["path"].as_dictionary::<Int32Type>();
        let texts = paths.values().as_string::<i32>();
        assert_eq!(texts.value(paths.keys().value(0) as usize), "a\\b.txt");
        assert!(paths.is_null(1) && batch["offset"].is_null(0));
        assert_eq!(batch["file_id"].as_fixed_size_binary().value(0), [3; 16]);
        assert_eq!((builder.len(), builder.names.generation), (0, 1));
    }

    #[test]
    fn a_projection_builds_only_its_columns() {
        let mut builder =
            OperationBuilder::new(Some(&[Column::status as usize, Column::operation as usize]))
                .unwrap();
        builder.append(&[Operation::default()]);
        let batch = builder.finish().unwrap();
        let schema = batch.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["status", "operation"]);
    }

    #[test]
    fn extensions_are_the_plain_ends_of_names() {
        assert_eq!(extension_of("a\\b.c\\d.TXT"), Some("TXT"));
        assert_eq!(extension_of("a.d\\b"), None);
        assert_eq!(extension_of(".profile"), None);
        assert_eq!(extension_of("x.doc:Zone.Identifier:$DATA"), Some("doc"));
        assert_eq!(extension_of("x.what is this"), None);
    }
}
