//! Which module of the kernel an address belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Most modules.
const MODULES_MAX: usize = 16_384;

/// Modules by their base address.
#[derive(Debug, Default)]
pub struct Modules {
    by_base: BTreeMap<u64, (u64, Arc<str>)>,
    discarded: u64,
}

impl Modules {
    /// Adds a module by the path of its file. What was at the same address before was unloaded.
    pub fn add(&mut self, base: u64, size_bytes: u64, path: &str) {
        if self.by_base.len() >= MODULES_MAX && !self.by_base.contains_key(&base) {
            self.discarded += 1;
            return;
        }
        let name = path.rsplit(['\\', '/']).next().unwrap_or(path);
        self.by_base.insert(base, (size_bytes, name.into()));
    }

    /// The module and the offset in it.
    pub fn find(&self, address: u64) -> Option<(Arc<str>, u64)> {
        let (base, (size, name)) = self.by_base.range(..=address).next_back()?;
        let offset = address - base;
        (offset < *size).then(|| (name.clone(), offset))
    }

    /// Modules left out because there were too many.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_module_that_contains_it() {
        let mut modules = Modules::default();
        modules.add(0x1000, 0x100, r"\SystemRoot\system32\drivers\ndis.sys");
        modules.add(0x2000, 0x100, "tcpip.sys");
        let (name, offset) = modules.find(0x10ff).unwrap();
        assert_eq!((&*name, offset), ("ndis.sys", 0xff));
        assert_eq!(modules.find(0x1100), None);
        assert_eq!(modules.find(0xfff), None);
        for base in 0..MODULES_MAX as u64 {
            modules.add(0x10_0000 + base * 0x10, 0x10, "x.sys");
        }
        assert_eq!(modules.discarded(), 2);
    }
}
