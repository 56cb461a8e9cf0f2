//! A text that many rows have, and its number in the batch's pool.

use std::ops::Deref;
use std::sync::Arc;

use smbscope_tables::builder::Names;
use smbscope_tables::pool::Pool;

/// A text and its number in the batch's pool, looked up once per batch.
#[derive(Clone, Debug, Default)]
pub struct Interned<T = Arc<str>> {
    text: T,
    is_known: bool,
    /// One more than the pool's generation in which `number` is valid; 0 for none.
    generation: u64,
    number: u32,
    /// Number of a path's extension, valid as long as `number`.
    pub extension: Option<u32>,
}

impl Interned {
    /// Keeps a text.
    pub fn new(text: &str) -> Interned {
        Interned { text: text.into(), is_known: true, ..Interned::default() }
    }

    /// The text, shared.
    pub fn shared(&self) -> Option<Arc<str>> {
        self.is_known.then(|| self.text.clone())
    }
}

impl Interned<String> {
    /// Bytes that it holds.
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Keeps another text in the same memory.
    pub fn set(&mut self, text: &str) {
        self.clear();
        self.text.push_str(text);
        self.is_known = true;
    }

    /// Forgets the text, but keeps its memory.
    pub fn clear(&mut self) {
        self.text.clear();
        // But not that of a long one.
        self.text.shrink_to(256);
        self.is_known = false;
        self.generation = 0;
    }
}

impl<T: Deref<Target = str>> Interned<T> {
    /// Whether there is a text.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// The text, empty when there is none.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One more than the generation of its number.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Its number in the pool.
    #[inline]
    pub fn in_pool(&mut self, names: &mut Names, pool: impl Fn(&mut Names) -> &mut Pool) -> u32 {
        let generation = names.generation + 1;
        if self.generation != generation {
            self.number = pool(names).intern(&self.text);
            self.generation = generation;
        }
        self.number
    }
}
