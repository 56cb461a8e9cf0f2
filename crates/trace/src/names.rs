//! Names that many events share, in bounded memory.

use std::sync::Arc;

use foldhash::HashMap;

/// Most different names of a trace.
const NAMES_MAX: usize = 65_536;
/// Longer names are cut.
const NAME_BYTES_MAX: usize = 512;

/// Names by their text.
#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<Box<str>, Arc<str>>,
    discarded: u64,
}

impl Names {
    /// The name; `None` if it is empty, or if there are too many different ones.
    pub fn intern(&mut self, name: &str) -> Option<Arc<str>> {
        let name = cut(name);
        if name.is_empty() {
            return None;
        }
        if let Some(known) = self.known.get(name) {
            return Some(known.clone());
        }
        if self.known.len() >= NAMES_MAX {
            self.discarded += 1;
            return None;
        }
        let shared: Arc<str> = name.into();
        self.known.insert(name.into(), shared.clone());
        Some(shared)
    }

    /// Names left out because there were too many.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shared_cut_and_limited() {
        let mut names = Names::default();
        let first = names.intern("eth0").unwrap();
        assert!(Arc::ptr_eq(&first, &names.intern("eth0").unwrap()));
        assert_eq!(names.intern(""), None);
        let long = "ä".repeat(NAME_BYTES_MAX);
        assert_eq!(names.intern(&long).unwrap().len(), NAME_BYTES_MAX);
        for number in 0..NAMES_MAX {
            names.intern(&number.to_string());
        }
        assert_eq!(names.discarded(), 2);
        assert!(names.intern("eth0").is_some());
    }
}
