//! Rows of tables other than the operations: plain structs, converted to and from Arrow.
//!
//! The macro `table!` declares a row with its columns. The table `operations` has a builder of its
//! own, because it has many more rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array,
    StringArray, UInt64Array,
};
use arrow::buffer::Buffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

/// A type of values in a column.
pub trait Cell: Sized {
    /// Its Arrow type.
    const TYPE: DataType;
    /// Whether it can be null.
    const NULLABLE: bool;
    /// A column of such values.
    fn column<'a>(values: impl ExactSizeIterator<Item = &'a Self>) -> ArrayRef
    where
        Self: 'a;
    /// The value at `row` of a column of [`Cell::TYPE`].
    fn at(column: &ArrayRef, row: usize) -> Self;
    /// The value of a column that an older file does not have.
    fn absent() -> Self;
}

macro_rules! cell {
    ($type:ty, $null:literal, $data:expr, |$values:ident| $make:expr, |$column:ident, $row:ident| $read:expr) => {
        impl Cell for $type {
            const TYPE: DataType = $data;
            const NULLABLE: bool = $null;
            fn column<'a>($values: impl ExactSizeIterator<Item = &'a Self>) -> ArrayRef {
                Arc::new($make)
            }
            fn at($column: &ArrayRef, $row: usize) -> Self {
                $read
            }
            fn absent() -> Self {
                Default::default()
            }
        }
    };
}

fn known<T>(column: &ArrayRef, row: usize, read: impl FnOnce() -> T) -> Option<T> {
    column.is_valid(row).then(read)
}

cell!(u64, false, DataType::UInt64, |v| UInt64Array::from_iter_values(v.copied()), |c, r| {
    known(c, r, || c.as_primitive::<UInt64Type>().value(r)).unwrap_or_default()
});
cell!(Option<u64>, true, DataType::UInt64, |v| v.copied().collect::<UInt64Array>(), |c, r| {
    known(c, r, || c.as_primitive::<UInt64Type>().value(r))
});
cell!(i64, false, DataType::Int64, |v| Int64Array::from_iter_values(v.copied()), |c, r| {
    known(c, r, || c.as_primitive::<Int64Type>().value(r)).unwrap_or_default()
});
cell!(Option<i64>, true, DataType::Int64, |v| v.copied().collect::<Int64Array>(), |c, r| {
    known(c, r, || c.as_primitive::<Int64Type>().value(r))
});
cell!(f64, false, DataType::Float64, |v| Float64Array::from_iter_values(v.copied()), |c, r| {
    known(c, r, || c.as_primitive::<Float64Type>().value(r)).unwrap_or_default()
});
cell!(Option<f64>, true, DataType::Float64, |v| v.copied().collect::<Float64Array>(), |c, r| {
    known(c, r, || c.as_primitive::<Float64Type>().value(r))
});
cell!(
    bool,
    false,
    DataType::Boolean,
    |v| v.copied().map(Some).collect::<BooleanArray>(),
    |c, r| known(c, r, || c.as_boolean().value(r)).unwrap_or_default()
);
cell!(Option<bool>, true, DataType::Boolean, |v| v.copied().collect::<BooleanArray>(), |c, r| {
    known(c, r, || c.as_boolean().value(r))
});
cell!(String, false, DataType::Utf8, |v| StringArray::from_iter_values(v), |c, r| {
    known(c, r, || c.as_string::<i32>().value(r).to_owned()).unwrap_or_default()
});
cell!(
    Option<String>,
    true,
    DataType::Utf8,
    |v| v.map(Option::as_deref).collect::<StringArray>(),
    |c, r| known(c, r, || c.as_string::<i32>().value(r).to_owned())
);

/// Text that many rows share.
macro_rules! shared_text {
    ($type:ty) => {
        impl Cell for $type {
            const TYPE: DataType = DataType::Utf8;
            const NULLABLE: bool = false;
            fn column<'a>(values: impl ExactSizeIterator<Item = &'a Self>) -> ArrayRef {
                Arc::new(StringArray::from_iter_values(values))
            }
            fn at(column: &ArrayRef, row: usize) -> Self {
                Option::<$type>::at(column, row).unwrap_or_default()
            }
            fn absent() -> Self {
                Self::default()
            }
        }

        impl Cell for Option<$type> {
            const TYPE: DataType = DataType::Utf8;
            const NULLABLE: bool = true;
            fn column<'a>(values: impl ExactSizeIterator<Item = &'a Self>) -> ArrayRef {
                Arc::new(StringArray::from_iter(values.map(Option::as_deref)))
            }
            fn at(column: &ArrayRef, row: usize) -> Self {
                known(column, row, || column.as_string::<i32>().value(row).to_owned().into())
            }
            fn absent() -> Self {
                None
            }
        }
    };
}

shared_text!(Arc<str>);
shared_text!(Cow<'static, str>);

impl Cell for [u8; 16] {
    const TYPE: DataType = DataType::FixedSizeBinary(16);
    const NULLABLE: bool = false;
    fn column<'a>(values: impl ExactSizeIterator<Item = &'a Self>) -> ArrayRef {
        let bytes: Vec<[u8; 16]> = values.copied().collect();
        Arc::new(FixedSizeBinaryArray::new(16, Buffer::from(bytes.as_flattened()), None))
    }
    fn at(column: &ArrayRef, row: usize) -> Self {
        let bytes = known(column, row, || column.as_fixed_size_binary().value(row));
        bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
    }
    fn absent() -> Self {
        Self::default()
    }
}

/// The values of one column of a batch, by name; absent columns, and types that cannot be cast,
/// read as [`Cell::absent`].
pub fn read_column<T: Cell>(batch: &arrow::array::RecordBatch, name: &str) -> Vec<T> {
    let rows = batch.num_rows();
    match batch.column_by_name(name).and_then(|column| cast(column, &T::TYPE).ok()) {
        Some(column) => (0..rows).map(|row| T::at(&column, row)).collect(),
        None => (0..rows).map(|_| T::absent()).collect(),
    }
}

/// A column's name: that of the field, or another one if the field's is a word of SQL.
macro_rules! column_name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $column:literal) => {
        $column
    };
}

/// Declares a table's row with its columns, schema and conversions.
macro_rules! table {
    ($(#[$meta:meta])* $table:ident, $title:literal {
        $($name:ident $(as $column:literal)?: $type:ty, $unit:ident, $sensitivity:ident, $doc:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $table {
            $(#[doc = $doc] pub $name: $type,)*
        }

        impl $table {
            /// The table's name in SQL and in file names.
            pub const TABLE: &'static str = $title;

            /// Type, unit, sensitivity and meaning of every column.
            pub fn specs() -> Vec<$crate::column::ColumnSpec> {
                vec![$($crate::column::ColumnSpec {
                    name: $crate::row::column_name!($name $($column)?),
                    data_type: <$type as $crate::row::Cell>::TYPE,
                    nullable: <$type as $crate::row::Cell>::NULLABLE,
                    unit: $crate::column::Unit::$unit,
                    sensitivity: $crate::column::Sensitivity::$sensitivity,
                    doc: $doc,
                },)*]
            }

            /// The Arrow schema.
            pub fn schema() -> arrow::datatypes::SchemaRef {
                let fields: Vec<_> = Self::specs().iter().map(|spec| spec.field()).collect();
                std::sync::Arc::new(arrow::datatypes::Schema::new(fields))
            }

            /// Rows to a batch.
            pub fn to_batch(
                rows: &[Self],
            ) -> Result<arrow::array::RecordBatch, arrow::error::ArrowError> {
                let columns = vec![$(<$type as $crate::row::Cell>::column(
                    rows.iter().map(|row| &row.$name)
                ),)*];
                arrow::array::RecordBatch::try_new(Self::schema(), columns)
            }

            /// A batch to rows; missing columns read as absent.
            pub fn from_batch(batch: &arrow::array::RecordBatch) -> Vec<Self> {
                let mut rows = vec![Self::default(); batch.num_rows()];
                $(
                    let values = $crate::row::read_column::<$type>(
                        batch,
                        $crate::row::column_name!($name $($column)?),
                    );
                    for (row, value) in rows.iter_mut().zip(values) {
                        row.$name = value;
                    }
                )*
                rows
            }
        }
    };
}

pub(crate) use {column_name, table};
