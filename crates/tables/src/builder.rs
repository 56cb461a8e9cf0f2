//! Builds Arrow record batches from rows.
//!
//! Rows are appended in small groups while they are in the cache, and every requested column takes
//! its values. Columns that are not requested cost nothing, columns without values little.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

pub use crate::operation::values::BLOCK;
use crate::operation::values::{Build, GROUP, Zeros, nulls, transpose};
use crate::operation::{Column, Operation, schema};
use crate::pool::Pool;

/// The texts that rows of one batch refer to by number.
#[derive(Clone, Default)]
pub struct Names {
    /// Incremented when the pools are emptied: a number is valid only in its generation.
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
    /// Of the `capture_file` column.
    pub capture_file: Pool,
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
            Column::capture_file => Some(&mut self.capture_file),
            _ => None,
        }
    }

    /// Bytes of all texts, to end a batch early when names are long.
    pub fn text_bytes(&self) -> usize {
        self.path.text_bytes() + self.share.text_bytes() + self.user.text_bytes()
    }
}

/// The file extension after the last dot, at most 16 characters; `None` for a name whose only dot is
/// its first character. The caller converts it to lower case.
pub fn extension_of(path: &str) -> Option<&str> {
    // Hot: called for every open. Looks at each byte from the end once.
    let bytes = path.as_bytes();
    let (mut end, mut dot) = (bytes.len(), None);
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate().rev() {
        match byte {
            b'\\' | b'/' => {
                start = at + 1;
                break;
            }
            // A stream's name and type follow the file's: "a.doc:Zone.Identifier:$DATA".
            b':' => (end, dot) = (at, None),
            b'.' if dot.is_none() => dot = Some(at),
            _ => {}
        }
    }
    let dot = dot.filter(|&dot| dot > start)?;
    let extension = path.get(dot + 1..end)?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '~' | '-');
    (matches!(extension.len(), 1..=16) && extension.chars().all(plain)).then_some(extension)
}

/// Builds record batches of the operations table, or of some of its columns.
#[derive(Clone)]
pub struct OperationBuilder {
    schema: SchemaRef,
    columns: Vec<Build>,
    /// Indexes into `columns` in the order of the values in a row, because a group of rows is a little
    /// larger than the first-level cache.
    order: Vec<usize>,
    zeros: Zeros,
    len: usize,
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
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|&place| columns.get(place).map(|column| column.offset()));
        let columns = columns.into_iter().map(Build::new).collect();
        let zeros = Zeros::new()?;
        Ok(OperationBuilder { schema, columns, order, zeros, len: 0, names: Names::default() })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Rows appended since the last batch.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row was appended since the last batch.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends rows whose names are numbers in [`OperationBuilder::names`]. Fastest with [`BLOCK`]
    /// rows at a time, while they are in the cache.
    pub fn append<R: AsRef<Operation>>(&mut self, rows: &[R]) {
        for block in rows.chunks(BLOCK) {
            let mut known = [[[0; GROUP]; 2]; BLOCK / GROUP];
            for (group, [low, high]) in block.chunks(GROUP).zip(&mut known) {
                for ((row, low), high) in group.iter().zip(&mut *low).zip(&mut *high) {
                    let present = u128::from_le_bytes(row.as_ref().present);
                    (*low, *high) = (present as u64, (present >> 64) as u64);
                }
                transpose(low);
                transpose(high);
            }
            for &place in &self.order {
                let Some(build) = self.columns.get_mut(place) else { continue };
                let place = build.column as usize;
                let known = known.each_ref().map(|words| words[place / GROUP][place % GROUP]);
                if known != [0; BLOCK / GROUP] {
                    build.catch_up(self.len);
                    build.append(block, &known);
                }
            }
            self.len += block.len();
        }
    }

    /// Returns the batch of all appended rows and empties the builder and its names.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.len);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (build, field) in self.columns.iter_mut().zip(self.schema.fields()) {
            arrays.push(if build.is_empty() {
                build.absent(field.data_type(), rows)
            } else {
                build.catch_up(rows);
                let pool = self.names.pool(build.column);
                build.values.take(nulls(&mut build.known), pool, &mut self.zeros)?
            });
        }
        for column in Column::ALL {
            if let Some(pool) = self.names.pool(*column) {
                pool.clear();
            }
        }
        self.names.generation += 1;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::code;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Int32Type, UInt64Type};

    #[test]
    fn builds_set_columns_and_nulls_for_the_rest() {
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
        assert!(paths.is_null(1) && batch["offset_bytes"].is_null(0));
        assert_eq!(batch["file_id"].as_fixed_size_binary().value(0), [3; 16]);
        assert_eq!((builder.len(), builder.names.generation), (0, 1));
    }

    #[test]
    fn texts_are_right_whether_a_batch_has_one_or_many() {
        // What each of 150 rows has, by its place; none for no value.
        let patterns: [fn(usize) -> Option<u32>; 8] = [
            |_| Some(0),
            |_| Some(0xc000_0034),
            |row| (row % 3 > 0).then_some(0xc000_0022),
            |row| (row > 70).then_some(0xc000_0034),
            |row| (row < 65).then_some(0xc000_0034),
            |row| Some(if row < 149 { 0 } else { 0x8000_0005 }),
            |row| (row % 7 != 2).then_some([0, 0xc000_0034, 0x103][row / 40 % 3]),
            |row| (row == 100).then_some(0),
        ];
        let mut builder = OperationBuilder::new(None).unwrap();
        for pattern in patterns {
            let rows: Vec<Operation> = (0..150)
                .map(|row| {
                    let mut operation = Operation::default();
                    if let Some(status) = pattern(row) {
                        operation.set_status_name(code::status_name(status));
                        operation.set_share(builder.names.share.intern(&status.to_string()));
                    }
                    operation
                })
                .collect();
            builder.append(&rows);
            let batch = builder.finish().unwrap();
            for (column, text) in [
                (
                    "status_name",
                    (|status| {
                        code::text(Column::status_name, code::status_name(status)).into_owned()
                    }) as fn(u32) -> String,
                ),
                ("share", |status| status.to_string()),
            ] {
                let array = batch[column].as_dictionary::<Int32Type>();
                let texts = array.downcast_dict::<arrow::array::StringArray>().unwrap();
                for (row, found) in texts.into_iter().enumerate() {
                    assert_eq!(found, pattern(row).map(text).as_deref(), "{column} of row {row}");
                }
            }
        }
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
