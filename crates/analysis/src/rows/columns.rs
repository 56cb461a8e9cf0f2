//! One batch of operations, column by column: which columns the summary reads, and access to
//! them whether or not text is dictionary-encoded, and whether or not a column is present.

use arrow::array::{
    Array, ArrowPrimitiveType, AsArray, BooleanArray, FixedSizeBinaryArray, RecordBatch,
    StringArray,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{ArrowNativeType, DataType, Int32Type};
use arrow::error::ArrowError;
use smbscope_tables::column::text_type;
use smbscope_tables::command_class::CommandClass;
use smbscope_tables::slice::Kind;

macro_rules! columns {
    ($($name:ident: $kind:ident,)*) => {
        /// The columns of the operations table that are read here; others need not be decoded.
        pub const COLUMNS: &[&str] = &[$(stringify!($name),)*];

        /// The columns of one batch.
        #[derive(Default)]
        pub(crate) struct Columns {
            $(pub(crate) $name: $crate::rows::columns::columns!(@type $kind),)*
        }

        impl Columns {
            pub(crate) fn from_batch(
                batch: &arrow::array::RecordBatch,
            ) -> Result<Columns, arrow::error::ArrowError> {
                // Field by field: an error in a struct expression would drop each field before it
                // on its own, which was a fortieth of the crate's code.
                let mut columns = Columns::default();
                $(columns.$name = $crate::rows::columns::columns!(@read $kind, batch, $name);)*
                Ok(columns)
            }
        }
    };
    (@type text) => { $crate::rows::columns::Text };
    (@type bool) => { $crate::rows::columns::Flags };
    (@type bytes16) => { $crate::rows::columns::Keys };
    (@type $number:ident) => { $crate::rows::columns::Numbers<$number> };
    (@read text, $batch:ident, $name:ident) => {
        $crate::rows::columns::Text::from_batch($batch, stringify!($name))?
    };
    (@read bool, $batch:ident, $name:ident) => {
        $crate::rows::columns::Flags::from_batch($batch, stringify!($name))?
    };
    (@read bytes16, $batch:ident, $name:ident) => {
        $crate::rows::columns::Keys::from_batch($batch, stringify!($name))
    };
    (@read $number:ident, $batch:ident, $name:ident) => {
        $crate::rows::columns::numbers::<$crate::rows::columns::columns!(@arrow $number)>(
            $batch,
            stringify!($name),
        )?
    };
    (@arrow u8) => { arrow::datatypes::UInt8Type };
    (@arrow u16) => { arrow::datatypes::UInt16Type };
    (@arrow u32) => { arrow::datatypes::UInt32Type };
    (@arrow u64) => { arrow::datatypes::UInt64Type };
    (@arrow i64) => { arrow::datatypes::Int64Type };
}
pub(crate) use columns;

columns! {
    recording: text,
    operation: u64,
    scenario_run: u64,
    compound: u64,
    compound_index: u16,
    compound_size: u16,
    related: bool,
    connection: u64,
    client: text,
    client_port: u16,
    server: text,
    user: text,
    share: text,
    dialect: text,
    protocol: u8,
    command: text,
    detail: text,
    message_id: u64,
    status: u32,
    status_name: text,
    path: text,
    extension: text,
    create_options: u32,
    oplock_granted: text,
    lease_requested: text,
    lease_granted: text,
    requested_bytes: u64,
    transferred_bytes: u64,
    request_wire_bytes: u64,
    response_wire_bytes: u64,
    credit_charge: u16,
    credits_requested: u16,
    credits_granted: u16,
    outstanding: u32,
    request_start: i64,
    request_end: i64,
    response_end: i64,
    elapsed_ns: i64,
    request_transfer_ns: i64,
    turnaround_ns: i64,
    response_transfer_ns: i64,
    server_ns: i64,
    client_gap_ns: i64,
    busy_ns: i64,
    waits: bool,
    queue_ns: i64,
    crypto_in_ns: i64,
    parse_ns: i64,
    processing_ns: i64,
    filesystem_ns: i64,
    io_wait_ns: i64,
    io_ns: i64,
    flush_ns: i64,
    lock_wait_ns: i64,
    crypto_out_ns: i64,
    send_ns: i64,
    disk_ns: i64,
    offcpu_ns: i64,
    filesystem_slow_ns: i64,
    security_ns: i64,
    transport_ns: i64,
    transport_slow_ns: i64,
    transport_direct_ns: i64,
    signed: bool,
    encrypted: bool,
    compressed: bool,
    capture_file: text,
    request_frame: u64,
    response_frame: u64,
}

impl Columns {
    /// The slices of the server's time, in the order of [`Kind::ALL`].
    pub(crate) fn slices(&self) -> [&Numbers<i64>; Kind::ALL.len()] {
        // A match, so that a new kind cannot be forgotten or get the wrong column.
        std::array::from_fn(|place| match Kind::ALL[place] {
            Kind::Queue => &self.queue_ns,
            Kind::CryptoIn => &self.crypto_in_ns,
            Kind::Parse => &self.parse_ns,
            Kind::Processing => &self.processing_ns,
            Kind::Filesystem => &self.filesystem_ns,
            Kind::IoWait => &self.io_wait_ns,
            Kind::Io => &self.io_ns,
            Kind::Flush => &self.flush_ns,
            Kind::LockWait => &self.lock_wait_ns,
            Kind::CryptoOut => &self.crypto_out_ns,
            Kind::Send => &self.send_ns,
            Kind::FilesystemSlow => &self.filesystem_slow_ns,
            Kind::Security => &self.security_ns,
            Kind::Transport => &self.transport_ns,
            Kind::TransportSlow => &self.transport_slow_ns,
            Kind::TransportDirect => &self.transport_direct_ns,
            Kind::Disk => &self.disk_ns,
            Kind::Offcpu => &self.offcpu_ns,
        })
    }

    /// Whether any operation of the batch has a slice.
    pub(crate) fn has_slices(&self) -> bool {
        self.slices().iter().any(|column| !column.is_empty())
    }
}

/// A column of numbers; one that is absent or null throughout is empty.
#[derive(Default)]
pub(crate) struct Numbers<T: ArrowNativeType> {
    values: ScalarBuffer<T>,
    nulls: Option<NullBuffer>,
}

impl<T: ArrowNativeType> Numbers<T> {
    /// Whether it is null throughout.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> Option<T> {
        match &self.nulls {
            Some(nulls) if row < nulls.len() && nulls.is_null(row) => None,
            _ => self.values.get(row).copied(),
        }
    }
}

/// A column of numbers by its name.
pub(crate) fn numbers<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
) -> Result<Numbers<T::Native>, ArrowError> {
    let column = match batch.column_by_name(name) {
        Some(column) if column.logical_null_count() < column.len() => column,
        _ => return Ok(Numbers::default()),
    };
    let array = match column.as_primitive_opt::<T>() {
        Some(array) => array.clone(),
        None => cast(column, &T::DATA_TYPE)?.as_primitive::<T>().clone(),
    };
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    Ok(Numbers { nulls: nulls.cloned(), values: array.values().clone() })
}

/// A column of booleans.
#[derive(Default)]
pub(crate) struct Flags(Option<BooleanArray>);

impl Flags {
    /// The column of that name.
    pub(crate) fn from_batch(batch: &RecordBatch, name: &str) -> Result<Flags, ArrowError> {
        let column = match batch.column_by_name(name) {
            Some(column) if column.logical_null_count() < column.len() => column,
            _ => return Ok(Flags(None)),
        };
        Ok(Flags(Some(match column.as_boolean_opt() {
            Some(array) => array.clone(),
            None => cast(column, &DataType::Boolean)?.as_boolean().clone(),
        })))
    }

    /// Whether the value is known and true.
    #[inline(always)]
    pub(crate) fn is_set(&self, row: usize) -> bool {
        match &self.0 {
            Some(array) => row < array.len() && array.is_valid(row) && array.value(row),
            None => false,
        }
    }
}

/// A column of sixteen bytes each: file ids and lease keys.
#[derive(Default)]
pub(crate) struct Keys(Option<FixedSizeBinaryArray>);

impl Keys {
    /// The column of that name; empty if it has another type.
    pub(crate) fn from_batch(batch: &RecordBatch, name: &str) -> Keys {
        let column = batch.column_by_name(name);
        let column = column.filter(|column| column.logical_null_count() < column.len());
        Keys(column.and_then(|column| column.as_fixed_size_binary_opt()).cloned())
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> Option<[u8; 16]> {
        let keys = self.0.as_ref()?;
        (row < keys.len() && keys.is_valid(row)).then(|| keys.value(row).try_into().ok())?
    }
}

/// A column of text as numbers of a dictionary.
pub(crate) struct Text {
    keys: Numbers<i32>,
    texts: StringArray,
}

impl Default for Text {
    fn default() -> Text {
        Text { keys: Numbers::default(), texts: StringArray::new_null(0) }
    }
}

impl Text {
    /// The column of that name.
    pub(crate) fn from_batch(batch: &RecordBatch, name: &str) -> Result<Text, ArrowError> {
        let column = match batch.column_by_name(name) {
            Some(column) if column.logical_null_count() < column.len() => column,
            _ => return Ok(Text::default()),
        };
        let encoded = if column.data_type() == &text_type() {
            column.clone()
        } else {
            cast(column, &text_type())?
        };
        let dictionary = encoded.as_dictionary::<Int32Type>();
        let keys = dictionary.keys();
        Ok(Text {
            keys: Numbers {
                values: keys.values().clone(),
                nulls: keys.nulls().filter(|nulls| nulls.null_count() > 0).cloned(),
            },
            texts: dictionary.values().as_string::<i32>().clone(),
        })
    }

    /// The text's number in the batch's dictionary.
    #[inline(always)]
    pub(crate) fn key(&self, row: usize) -> Option<usize> {
        self.keys.get(row).map(|key| key as usize)
    }

    /// The text of a number.
    pub(crate) fn text(&self, key: usize) -> Option<&str> {
        (key < self.texts.len() && self.texts.is_valid(key)).then(|| self.texts.value(key))
    }

    /// The row's text.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        self.text(self.key(row)?)
    }

    /// The class of each command of the dictionary, for the column `command`.
    pub(crate) fn command_classes(&self) -> Vec<CommandClass> {
        let classes = (0..self.keys()).map(|key| self.text(key).map(CommandClass::from_command));
        classes.map(|class| class.unwrap_or(CommandClass::Other)).collect()
    }

    /// The number of entries of the dictionary.
    pub(crate) fn keys(&self) -> usize {
        self.texts.len()
    }
}

/// What the keys of one batch's dictionary mean elsewhere, computed on first use.
pub(crate) struct Resolved(Vec<u32>);

impl Resolved {
    const UNKNOWN: u32 = u32::MAX;

    pub(crate) fn new(keys: usize) -> Resolved {
        Resolved(vec![Self::UNKNOWN; keys])
    }

    #[inline(always)]
    pub(crate) fn get(&mut self, key: usize, resolve: impl FnOnce() -> u32) -> u32 {
        match self.0.get_mut(key) {
            Some(slot) => {
                if *slot == Self::UNKNOWN {
                    *slot = resolve();
                }
                *slot
            }
            None => resolve(),
        }
    }
}
