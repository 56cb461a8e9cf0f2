//! The values of one column while a batch is built, and a bit for each that says whether it is known.
//!
//! Rows come in blocks of groups of at most [`GROUP`], so that the bits of a group are one word per
//! column. A column is extended only when a block has a value for it: columns without values cost
//! nothing.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, PrimitiveArray,
    StringArray, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow::error::ArrowError;
use hashbrown::HashMap;

use super::{Column, Operation, code};
use crate::pool::Pool;

/// Rows of a group: the bits of a column for a group are one word.
pub(crate) const GROUP: usize = u64::BITS as usize;

/// Rows that a column takes at once (several groups), because switching columns is slow.
pub const BLOCK: usize = 4 * GROUP;

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
    Name(Uniform<u32>),
    Code(Box<Codes>),
}

impl Values {
    /// Appends placeholders for unknown values up to `len` values.
    pub(crate) fn extend_to(&mut self, len: usize) {
        match self {
            Values::U64(values) => values.resize(len, 0),
            Values::U32(values) => values.resize(len, 0),
            Values::U16(values) => values.resize(len, 0),
            Values::U8(values) => values.resize(len, 0),
            Values::I64(values) => values.resize(len, 0),
            Values::Bool(bits) => bits.extend_to(len),
            Values::Bytes16(values) => values.resize(len, [0; 16]),
            Values::Name(keys) => keys.extend_to(len),
            Values::Code(codes) => codes.values.extend_to(len),
        }
    }

    /// The array of all values, leaving none.
    pub(crate) fn take(
        &mut self,
        nulls: Option<NullBuffer>,
        pool: Option<&mut Pool>,
        zeros: &mut Zeros,
    ) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Values::U64(values) => primitive::<UInt64Type>(values, nulls)?,
            Values::U32(values) => primitive::<UInt32Type>(values, nulls)?,
            Values::U16(values) => primitive::<UInt16Type>(values, nulls)?,
            Values::U8(values) => primitive::<UInt8Type>(values, nulls)?,
            Values::I64(values) => primitive::<Int64Type>(values, nulls)?,
            Values::Bool(bits) => Arc::new(BooleanArray::new(bits.take(), nulls)),
            Values::Bytes16(values) => {
                let bytes = Buffer::from_vec(renewed(values).into_flattened());
                Arc::new(FixedSizeBinaryArray::try_new(16, bytes, nulls)?)
            }
            Values::Name(keys) => match keys.take() {
                Taken::One(key, len) => {
                    let text = pool.and_then(|pool| pool.get(key)).unwrap_or_default();
                    zeros.dictionary(len, nulls, only(text))?
                }
                Taken::Many(keys) => {
                    let texts = pool.map_or_else(|| Pool::default().take(), Pool::take);
                    dictionary(keys, nulls, texts)?
                }
            },
            Values::Code(codes) => codes.take(nulls, zeros)?,
        })
    }
}

/// Keys to a dictionary: one value and its count as long as all known values are equal. That is the
/// usual case, and such an array need not be built value by value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uniform<T> {
    only: Option<T>,
    len: usize,
    /// The keys of all rows, once they differ.
    keys: Vec<i32>,
}

enum Taken<T> {
    One(T, usize),
    Many(Vec<i32>),
}

impl<T: Copy + Default + Eq> Uniform<T> {
    /// Appends the values of a group, of which those in `known` are known.
    #[inline]
    pub(crate) fn extend(
        &mut self,
        group: impl ExactSizeIterator<Item = T> + Clone,
        known: u64,
        mut key: impl FnMut(T) -> i32,
    ) {
        let count = group.len();
        let mask = u64::MAX >> (GROUP - count);
        if self.keys.is_empty() {
            let only = self.only.or_else(|| group.clone().nth(known.trailing_zeros() as usize));
            let Some(only) = only else {
                self.len += count;
                return;
            };
            self.only = Some(only);
            let same = if known == mask {
                !group.clone().fold(false, |differs, value| differs | (value != only))
            } else {
                let differs = |word, (row, value)| word | u64::from(value != only) << row;
                group.clone().enumerate().fold(0, differs) & known == 0
            };
            if same {
                self.len += count;
                return;
            }
            self.keys.resize(self.len, key(only));
        }
        if known == mask {
            self.keys.extend(group.map(key));
        } else {
            let keys = group.enumerate();
            self.keys.extend(keys.map(|(row, value)| match known >> row & 1 {
                1 => key(value),
                _ => 0,
            }));
        }
        self.len += count;
    }

    fn extend_to(&mut self, len: usize) {
        if !self.keys.is_empty() {
            self.keys.resize(len, 0);
        }
        self.len = len;
    }

    fn take(&mut self) -> Taken<T> {
        let len = std::mem::take(&mut self.len);
        let only = self.only.take().unwrap_or_default();
        if self.keys.is_empty() {
            Taken::One(only, len)
        } else {
            Taken::Many(renewed(&mut self.keys))
        }
    }
}

/// Keys of arrays with one text, which all columns share.
#[derive(Clone, Debug)]
pub(crate) struct Zeros(DictionaryArray<Int32Type>);

impl Zeros {
    pub(crate) fn new() -> Result<Zeros, ArrowError> {
        Zeros::from_len(0)
    }

    fn from_len(len: usize) -> Result<Zeros, ArrowError> {
        Ok(Zeros(DictionaryArray::try_new(Int32Array::from_value(0, len), only(""))?))
    }

    /// An array that repeats a text, except for `nulls`.
    fn dictionary(
        &mut self,
        len: usize,
        nulls: Option<NullBuffer>,
        text: ArrayRef,
    ) -> Result<ArrayRef, ArrowError> {
        if self.0.len() < len {
            *self = Zeros::from_len(len)?;
        }
        let zeros = self.0.slice(0, len);
        Ok(match nulls {
            None => Arc::new(zeros.with_values(text)),
            Some(_) => {
                let keys = Int32Array::try_new(zeros.keys().values().clone(), nulls)?;
                Arc::new(DictionaryArray::try_new(keys, text)?)
            }
        })
    }
}

/// Codes as keys of a dictionary that several batches share, because distinct codes are few.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    values: Uniform<u64>,
    dictionary: Dictionary,
    /// The text of a code that filled a whole batch.
    one: Option<(u64, ArrayRef)>,
}

#[derive(Clone, Debug)]
struct Dictionary {
    column: Column,
    pool: Pool,
    known: HashMap<u64, i32, foldhash::fast::RandomState>,
    /// Cache of the last codes, indexed by a few of their bits.
    recent: [(u64, i32); RECENT],
    texts: Option<ArrayRef>,
}

/// A power of two.
const RECENT: usize = 64;

/// Maximum number of codes in a dictionary; beyond it the next batch starts an empty one.
const CODES: usize = 4_096;

impl Codes {
    pub(crate) fn new(column: Column) -> Codes {
        Codes { values: Uniform::default(), dictionary: Dictionary::new(column), one: None }
    }

    /// Appends the codes of a group, of which those in `known` are known.
    #[inline]
    pub(crate) fn extend(&mut self, codes: impl ExactSizeIterator<Item = u64> + Clone, known: u64) {
        self.values.extend(codes, known, |code| self.dictionary.key(code));
    }

    fn take(
        &mut self,
        nulls: Option<NullBuffer>,
        zeros: &mut Zeros,
    ) -> Result<ArrayRef, ArrowError> {
        match self.values.take() {
            Taken::One(code, len) => {
                let text = match &self.one {
                    Some((known, text)) if *known == code => text.clone(),
                    _ => {
                        let text = only(&code::text(self.dictionary.column, code));
                        self.one.insert((code, text)).1.clone()
                    }
                };
                zeros.dictionary(len, nulls, text)
            }
            Taken::Many(keys) => dictionary(keys, nulls, self.dictionary.texts()),
        }
    }
}

impl Dictionary {
    fn new(column: Column) -> Dictionary {
        Dictionary {
            column,
            pool: Pool::default(),
            known: HashMap::default(),
            // No code has this value.
            recent: [(u64::MAX, 0); RECENT],
            texts: None,
        }
    }

    #[inline]
    fn key(&mut self, code: u64) -> i32 {
        // Statuses and codes with a protocol or kind above them differ in many places.
        let place = (code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % RECENT;
        match self.recent[place] {
            (recent, key) if recent == code => key,
            _ => {
                let key = self.look_up(code);
                self.recent[place] = (code, key);
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
            *self = Dictionary::new(self.column);
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

    /// Appends a block of rows; of each group of them, which have a value.
    #[inline]
    pub(crate) fn append<R: AsRef<Operation>>(&mut self, rows: &[R], known: &[u64]) {
        for (group, &known) in rows.chunks(GROUP).zip(known) {
            self.known.push(known, group.len());
        }
        self.column.append(rows, known, &mut self.values);
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

/// An array of one text.
fn only(text: &str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values([text]))
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
