//! Which file of a program an address belongs to, by `PERF_RECORD_MMAP`, `FORK`, `COMM` and `EXIT`.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;

/// Most processes, most mappings of one (`vm.max_map_count`), and of all of them.
const PROCESSES_MAX: usize = 65_536;
const SPACE_MAX: usize = 65_536;
const MAPPINGS_MAX: usize = 1 << 20;

/// Mappings by their beginning: their length, and the file.
type Space = BTreeMap<u64, (u64, Arc<str>)>;

/// Mappings of all processes. A child shares those of its parent until one of them changes.
#[derive(Debug, Default)]
pub struct Mappings {
    spaces: HashMap<u32, Arc<Space>>,
    /// Mappings, those that are shared counted once for each process.
    count: usize,
    /// Mappings and processes left out because there were too many.
    pub limited: u64,
}

impl Mappings {
    /// A process maps a file.
    pub fn add(&mut self, process: u32, base: u64, size_bytes: u64, file: Arc<str>) {
        let is_full = self.spaces.len() >= PROCESSES_MAX && !self.spaces.contains_key(&process);
        if is_full || self.count >= MAPPINGS_MAX {
            self.limited += 1;
            return;
        }
        let space = self.spaces.entry(process).or_default();
        if space.len() >= SPACE_MAX {
            self.limited += 1;
            return;
        }
        let space = Arc::make_mut(space);
        if space.insert(base, (size_bytes, file)).is_none() {
            self.count += 1;
        }
    }

    /// A process begins as a copy of another one.
    pub fn fork(&mut self, process: u32, parent: u32) {
        if process == parent {
            // A thread.
            return;
        }
        self.end(process);
        let Some(space) = self.spaces.get(&parent).cloned() else { return };
        if self.spaces.len() >= PROCESSES_MAX || self.count + space.len() > MAPPINGS_MAX {
            self.limited += 1;
            return;
        }
        self.count += space.len();
        self.spaces.insert(process, space);
    }

    /// A process ends, or begins another program.
    pub fn end(&mut self, process: u32) {
        if let Some(space) = self.spaces.remove(&process) {
            self.count -= space.len();
        }
    }

    /// The file that an address belongs to.
    pub fn find(&self, process: u32, address: u64) -> Option<Arc<str>> {
        let space = self.spaces.get(&process)?;
        let (base, (size_bytes, file)) = space.range(..=address).next_back()?;
        (address - base < *size_bytes).then(|| file.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_files_of_its_parent_until_it_begins_another_program() {
        let mut mappings = Mappings::default();
        mappings.add(1, 0x1000, 0x100, "libc.so".into());
        mappings.fork(2, 1);
        mappings.fork(2, 2);
        mappings.add(2, 0x2000, 0x100, "smbd".into());
        let find = |mappings: &Mappings, process, address| {
            mappings.find(process, address).map(|file| file.to_string())
        };
        assert_eq!(find(&mappings, 2, 0x10ff).as_deref(), Some("libc.so"));
        assert_eq!(find(&mappings, 2, 0x2000).as_deref(), Some("smbd"));
        assert_eq!((find(&mappings, 1, 0x2000), find(&mappings, 2, 0x1100)), (None, None));
        assert_eq!(mappings.count, 3);
        mappings.end(2);
        mappings.end(3);
        assert_eq!((find(&mappings, 2, 0x1000), mappings.count), (None, 1));
    }

    #[test]
    fn mappings_are_limited() {
        let mut mappings = Mappings::default();
        for process in 0..=PROCESSES_MAX as u32 {
            mappings.add(process, 0, 1, "a".into());
        }
        mappings.fork(u32::MAX, 0);
        assert_eq!((mappings.limited, mappings.count), (2, PROCESSES_MAX));
    }
}
