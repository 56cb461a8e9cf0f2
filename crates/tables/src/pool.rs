//! The distinct texts of one column in one batch. A pool lives as long as a batch, so that memory
//! does not grow with the number of names in a recording.

use std::hash::BuildHasher;

use arrow::array::{ArrayRef, StringBuilder};
use hashbrown::HashTable;

/// Distinct texts, numbered in the order of their first use.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    hasher: foldhash::fast::RandomState,
    index: HashTable<(u32, u32)>,
    bytes: String,
    ends: Vec<u32>,
}

impl Pool {
    /// The number of `text`, assigned at its first use.
    pub fn intern(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        let short = hash as u32;
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(&(_, number)) =
            self.index.find(hash, |&(h, n)| h == short && get(bytes, ends, n) == Some(text))
        {
            return number;
        }
        let number = self.ends.len() as u32;
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len() as u32);
        let hasher = &self.hasher;
        self.index.insert_unique(hash, (short, number), |&(_, n)| {
            hasher.hash_one(get(&self.bytes, &self.ends, n).unwrap_or_default())
        });
        number
    }

    /// The text of a number.
    pub fn get(&self, number: u32) -> Option<&str> {
        get(&self.bytes, &self.ends, number)
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All texts as an array.
    pub fn array(&self) -> ArrayRef {
        let mut array = StringBuilder::with_capacity(self.ends.len(), self.bytes.len());
        for n in 0..self.ends.len() as u32 {
            array.append_value(get(&self.bytes, &self.ends, n).unwrap_or_default());
        }
        std::sync::Arc::new(array.finish())
    }

    /// All texts as an array, leaving the pool empty.
    pub fn take(&mut self) -> ArrayRef {
        let array = self.array();
        self.clear();
        array
    }

    /// Removes all texts.
    pub fn clear(&mut self) {
        self.index.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

fn get<'a>(bytes: &'a str, ends: &[u32], number: u32) -> Option<&'a str> {
    let number = number as usize;
    let end = *ends.get(number)? as usize;
    let start = if number == 0 { 0 } else { *ends.get(number - 1)? as usize };
    bytes.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;

    #[test]
    fn numbers_distinct_texts_and_starts_anew_after_take() {
        let mut pool = Pool::default();
        assert_eq!((pool.intern("a"), pool.intern(""), pool.intern("a")), (0, 1, 0));
        for n in 0..1000 {
            assert_eq!(pool.intern(&format!("file{n}")), n + 2);
        }
        assert_eq!(pool.intern("file7"), 9);
        assert_eq!(pool.get(9), Some("file7"));
        let array = pool.take();
        assert_eq!(array.as_string::<i32>().value(9), "file7");
        assert!(pool.is_empty());
        assert_eq!(pool.intern("b"), 0);
    }
}
