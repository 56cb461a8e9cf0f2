//! Functions by their addresses.

/// Most functions of one file.
const FUNCTIONS_MAX: usize = 4 << 20;
/// Most bytes of their names.
const NAMES_BYTES_MAX: usize = 256 << 20;

/// Functions in the order of their addresses: offsets in a module, or addresses in memory.
#[derive(Debug, Default)]
pub struct Functions {
    /// Each address, and where its name begins and ends in `names`. Code ends where the name is
    /// empty.
    starts: Vec<(u64, u32, u32)>,
    names: String,
}

/// What is at an address; of several, the first kind is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Global,
    Local,
    /// Not a function: what is before it ends here.
    End,
}

/// Collects functions.
#[derive(Debug, Default)]
pub struct Collector {
    starts: Vec<(u64, Rank, u32, u32)>,
    names: String,
    /// Functions left out because there were too many.
    pub discarded: u64,
}

impl Collector {
    /// Adds a function, or the end of code.
    pub fn add(&mut self, address: u64, rank: Rank, name: &str) {
        let name = if rank == Rank::End { "" } else { name };
        if self.starts.len() >= FUNCTIONS_MAX || self.names.len() + name.len() > NAMES_BYTES_MAX {
            self.discarded += 1;
            return;
        }
        let begin = self.names.len() as u32;
        self.names.push_str(name);
        self.starts.push((address, rank, begin, self.names.len() as u32));
    }

    /// The table. If an address has several names, it keeps the name of a global symbol with the fewest
    /// leading underscores, as `perf` does.
    pub fn finish(self) -> Functions {
        let Collector { mut starts, names, .. } = self;
        let name = |begin: u32, end: u32| names.get(begin as usize..end as usize).unwrap_or("");
        starts.sort_by(|a, b| {
            let key = |&(address, rank, begin, end): &(u64, Rank, u32, u32)| {
                let name = name(begin, end);
                let plain = name.trim_start_matches('_');
                (address, rank, name.len() - plain.len(), name)
            };
            key(a).cmp(&key(b))
        });
        starts.dedup_by_key(|(address, ..)| *address);
        let starts = starts.into_iter().map(|(address, _, begin, end)| (address, begin, end));
        Functions { starts: starts.collect(), names }
    }
}

impl Functions {
    /// The function that contains an address.
    pub fn find(&self, address: u64) -> Option<&str> {
        let after = self.starts.partition_point(|(start, ..)| *start <= address);
        let (_, begin, end) = self.starts.get(after.checked_sub(1)?)?;
        self.names.get(*begin as usize..*end as usize).filter(|name| !name.is_empty())
    }

    /// Whether a function, or the end of code, is at exactly this address.
    pub fn has_start(&self, address: u64) -> bool {
        self.starts.binary_search_by_key(&address, |(start, ..)| *start).is_ok()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it_up_to_the_end_of_code() {
        let mut all = Collector::default();
        all.add(0x300, Rank::End, "ignored");
        all.add(0x200, Rank::Local, "second");
        all.add(0x100, Rank::Local, "alias");
        all.add(0x100, Rank::Global, "__first");
        all.add(0x100, Rank::Global, "first");
        all.add(0x100, Rank::End, "");
        let all = all.finish();
        assert_eq!(all.find(0xff), None);
        assert_eq!(all.find(0x100), Some("first"));
        assert_eq!(all.find(0x1ff), Some("first"));
        assert_eq!(all.find(0x2ff), Some("second"));
        assert_eq!(all.find(0x300), None);
        assert!(Collector::default().finish().is_empty());
    }
}
