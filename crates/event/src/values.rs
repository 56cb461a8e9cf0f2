//! The values of one column while a batch is being built, and which of them are known.
//!
//! Rows come in groups of at most [`GROUP`], so that what is known of a group is one word for
//! each column. A column lags behind until a group has a value for it: columns without any value
//! cost nothing.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, PrimitiveArray,
    StringArray, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use hashbrown::HashMap;

use crate::code;
use crate::operation::Column;
use crate::pool::Pool;

/// Rows that are looked at together: a word's bits.
pub(crate) const GROUP: usize = u64::BITS as usize;

/// A list of bits that grows by up to a word at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
    set: usize,
}

impl Bits {
    /// Appends the lowest `count` bits of a word whose others are 0.
    #[inline]
    pub(crate) fn push(&mut self, word: u64, count: usize) {
        let shift = self.len % GROUP;
        match self.words.last_mut() {
            Some(last) if shift > 0 => {
                *last |= word << shift;
                if shift + count > GROUP {
                    self.words.push(word >> (GROUP - shift));
                }
            }
            _ => self.words.push(word),
        }
        self.len += count;
        self.set += word.count_ones() as usize;
    }

    /// Appends zeros up to `len` bits.
    fn extend_to(&mut self, len: usize) {
        self.words.resize(len.div_ceil(GROUP), 0);
        self.len = len;
    }

    fn take(&mut self) -> BooleanBuffer {
        let words: Vec<u64> = self.words.iter().map(|word| word.to_le()).collect();
        let len = self.len;
        self.clear();
        BooleanBuffer::new(Buffer::from_vec(words), 0, len)
    }

    fn clear(&mut self) {
        self.words.clear();
        (self.len, self.set) = (0, 0);
    }
}

/// The bits of 64 rows by column: bit `r` of word `c` is bit `c` of row `r` (Warren, Hacker's
/// Delight, section 7-3).
pub(crate) fn transpose(bits: &mut [u64; 64]) {
    let mut width = 32;
    let mut mask = 0xffff_ffff_u64;
    while width > 0 {
        let mut row = 0;
        while row < 64 {
            let swap = (bits[row] >> width ^ bits[row + width]) & mask;
            bits[row] ^= swap << width;
            bits[row + width] ^= swap;
            row = (row + width + 1) & !width;
        }
        width >>= 1;
        mask ^= mask << width;
    }
}

/// The values of one column, known or not.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    U64(Vec<u64>),
    U32(Vec<u32>),
    U16(Vec<u16>),
    U8(Vec<u8>),
    I64(Vec<i64>),
    Bool(Bits),
    Bytes16(Vec<[u8; 16]>),
    /// Numbers in the column's pool.
    Name(Vec<i32>),
    Code(Box<Codes>),
}

impl Values {
    /// Appends what stands for unknown up to `len` values.
    pub(crate) fn extend_to(&mut self, len: usize) {
        match self {
            Values::U64(values) => values.resize(len, 0),
            Values::U32(values) => values.resize(len, 0),
            Values::U16(values) => values.resize(len, 0),
            Values::U8(values) => values.resize(len, 0),
            Values::I64(values) => values.resize(len, 0),
            Values::Bool(bits) => bits.extend_to(len),
            Values::Bytes16(values) => values.resize(len, [0; 16]),
            Values::Name(keys) => keys.resize(len, 0),
            Values::Code(codes) => codes.keys.resize(len, 0),
        }
    }

    /// The array of all values, leaving none.
    pub(crate) fn take(
        &mut self,
        nulls: Option<NullBuffer>,
        pool: Option<&mut Pool>,
    ) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Values::U64(values) => primitive::<UInt64Type>(values, nulls)?,
            Values::U32(values) => primitive::<UInt32Type>(values, nulls)?,
            Values::U16(values) => primitive::<UInt16Type>(values, nulls)?,
            Values::U8(values) => primitive::<UInt8Type>(values, nulls)?,
            Values::I64(values) => primitive::<Int64Type>(values, nulls)?,
            Values::Bool(bits) => Arc::new(BooleanArray::new(bits.take(), nulls)),
            Values::Bytes16(values) => {
                let bytes = Buffer::from(values.as_flattened());
                values.clear();
                Arc::new(FixedSizeBinaryArray::try_new(16, bytes, nulls)?)
            }
            Values::Name(keys) => {
                let texts = match pool {
                    Some(pool) => pool.take(),
                    None => Arc::new(StringArray::new_null(0)),
                };
                dictionary(renewed(keys), nulls, texts)?
            }
            Values::Code(codes) => {
                let texts = codes.texts();
                dictionary(renewed(&mut codes.keys), nulls, texts)?
            }
        })
    }
}

/// Codes as numbers in a dictionary that lasts for several batches: there are few.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    column: Column,
    keys: Vec<i32>,
    pool: Pool,
    known: HashMap<u64, i32, foldhash::fast::RandomState>,
    /// Of the last codes, by a few of their bits.
    recent: [Option<(u64, i32)>; 64],
    texts: Option<ArrayRef>,
}

/// Codes of a dictionary; beyond that it begins anew with the next batch.
const CODES: usize = 4_096;

impl Codes {
    pub(crate) fn new(column: Column) -> Codes {
        Codes {
            column,
            keys: Vec::new(),
            pool: Pool::default(),
            known: HashMap::default(),
            recent: [None; 64],
            texts: None,
        }
    }

    /// Appends the codes of a group, of which those in `known` are known.
    #[inline]
    pub(crate) fn extend(&mut self, codes: impl Iterator<Item = u64>, known: u64) {
        for (row, code) in codes.enumerate() {
            let key = if known >> row & 1 == 1 { self.key(code) } else { 0 };
            self.keys.push(key);
        }
    }

    #[inline]
    fn key(&mut self, code: u64) -> i32 {
        // The low bits of statuses and of codes with a protocol or kind above them differ most.
        let place = (code ^ code >> 6 ^ code >> 16) as usize % 64;
        match self.recent[place] {
            Some((recent, key)) if recent == code => key,
            _ => {
                let key = self.look_up(code);
                self.recent[place] = Some((code, key));
                key
            }
        }
    }

    #[cold]
    fn look_up(&mut self, code: u64) -> i32 {
        if let Some(&key) = self.known.get(&code) {
            return key;
        }
        let key = self.pool.intern(&code::text(self.column, code)) as i32;
        self.known.insert(code, key);
        self.texts = None;
        key
    }

    fn texts(&mut self) -> ArrayRef {
        let texts = self.texts.get_or_insert_with(|| self.pool.array()).clone();
        if self.known.len() > CODES {
            *self = Codes { keys: std::mem::take(&mut self.keys), ..Codes::new(self.column) };
        }
        texts
    }
}

/// Which values are known; null when all are.
pub(crate) fn nulls(known: &mut Bits) -> Option<NullBuffer> {
    if known.set == known.len {
        known.clear();
        return None;
    }
    Some(NullBuffer::new(known.take()))
}

/// Known values of a column so far.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) column: Column,
    pub(crate) values: Values,
    pub(crate) known: Bits,
    /// Nothing but nulls, kept for the next batch without a value.
    absent: Option<ArrayRef>,
}

impl Build {
    pub(crate) fn new(column: Column) -> Build {
        Build { column, values: column.empty(), known: Bits::default(), absent: None }
    }

    /// Brings it up to `len` rows.
    #[inline]
    pub(crate) fn catch_up(&mut self, len: usize) {
        if self.known.len < len {
            self.known.extend_to(len);
            self.values.extend_to(len);
        }
    }

    /// Whether no row has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.set == 0
    }

    /// Nulls.
    pub(crate) fn absent(&mut self, data_type: &DataType, rows: usize) -> ArrayRef {
        match &self.absent {
            Some(absent) if absent.len() >= rows => absent.slice(0, rows),
            _ => self.absent.insert(new_null_array(data_type, rows)).clone(),
        }
    }
}

fn renewed<T>(values: &mut Vec<T>) -> Vec<T> {
    let capacity = values.len();
    std::mem::replace(values, Vec::with_capacity(capacity))
}

fn primitive<T: ArrowPrimitiveType>(
    values: &mut Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(PrimitiveArray::<T>::try_new(ScalarBuffer::from(renewed(values)), nulls)?))
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

    #[test]
    fn bits_of_rows_become_bits_of_columns() {
        let rows: [u64; 64] =
            std::array::from_fn(|row| (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut columns = rows;
        transpose(&mut columns);
        for (row, bits) in rows.iter().enumerate() {
            for (column, word) in columns.iter().enumerate() {
                assert_eq!(word >> row & 1, bits >> column & 1, "row {row}, column {column}");
            }
        }
    }

    #[test]
    fn bits_grow_by_groups_of_any_size() {
        let mut bits = Bits::default();
        bits.push(0b101, 3);
        bits.push(u64::MAX, 64);
        bits.extend_to(70);
        bits.push(0b10, 2);
        assert_eq!((bits.len, bits.set), (72, 67));
        let set: Vec<_> = bits.take().iter().collect();
        let expected: Vec<_> = (0..72).map(|bit| !matches!(bit, 1 | 67 | 68 | 69 | 70)).collect();
        assert_eq!(set, expected);
    }
}
