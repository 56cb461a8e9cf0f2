//! Which module of the kernel an address belongs to, and which function.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::event::Device;
use crate::names::Names;
use crate::symbols::{Found, Functions, KERNEL, KernelFunctions, Symbols};

/// Most modules.
const MODULES_MAX: usize = 16_384;

/// Modules by their base address.
#[derive(Debug, Default)]
pub struct Modules {
    by_base: BTreeMap<u64, Module>,
    discarded: u64,
    symbols: Symbols,
    /// Functions of the kernel by their addresses, not by modules.
    kernel: Option<Arc<KernelFunctions>>,
    /// The device that the driver of a module serves; `None` if it serves several.
    devices: HashMap<String, Option<Arc<str>>>,
    names: Names,
    used: Used,
    /// Addresses that were found last, by their lowest bits: few routines have most events.
    recent: Vec<(u64, Place)>,
}

/// Places of [`Modules::recent`].
const RECENT: usize = 1_024;

#[derive(Debug)]
struct Module {
    size_bytes: u64,
    name: Arc<str>,
    symbols: Option<Arc<str>>,
    device: Option<Arc<str>>,
    /// Read when the first address is in it; `None` if there are none.
    functions: Option<Option<Arc<Functions>>>,
}

/// Where an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub module: Option<Arc<str>>,
    /// Offset in the module.
    pub offset: Option<u64>,
    pub function: Option<Arc<str>>,
    /// The device that the module serves.
    pub device: Option<Arc<str>>,
}

/// Files with symbols that were read, and those that could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub files: u64,
    pub damaged: u64,
    pub first_damaged: Option<Arc<str>>,
}

impl Modules {
    /// Where names of functions come from. Addresses of a kernel's symbols say nothing about a trace
    /// of Windows.
    pub fn use_symbols(&mut self, symbols: Symbols, is_windows: bool) {
        self.kernel = symbols.kernel().filter(|_| !is_windows).cloned();
        self.used.files = u64::from(self.kernel.is_some());
        self.recent.clear();
        self.symbols = symbols;
    }

    /// Adds a module by the path of its file. What was at the same address before was unloaded.
    pub fn add(&mut self, base: u64, size_bytes: u64, path: &str, symbols: Option<Arc<str>>) {
        if self.by_base.len() >= MODULES_MAX && !self.by_base.contains_key(&base) {
            self.discarded += 1;
            return;
        }
        self.recent.clear();
        // A trace of perf says where the kernel begins, which differs from boot to boot.
        if path == KERNEL && self.kernel.take_if(|kernel| !kernel.has_start(base)).is_some() {
            let what = "symbols of the kernel: their addresses are those of another boot";
            self.used.files -= 1;
            self.used.damaged += 1;
            self.used.first_damaged.get_or_insert(what.into());
        }
        // perf's cache has them, too.
        if path == KERNEL
            && self.kernel.is_none()
            && let Some(build_id) = symbols.as_deref()
            && let Some(kernel) = self.symbols.kernel_of(build_id)
            && kernel.has_start(base)
        {
            self.kernel = Some(Arc::new(kernel));
            self.used.files += 1;
        }
        let name: Arc<str> = path.rsplit(['\\', '/']).next().unwrap_or(path).into();
        let device = self.devices.get(driver(&name).as_str()).cloned().flatten();
        self.by_base.insert(base, Module { size_bytes, name, symbols, device, functions: None });
    }

    /// Remembers the device of a driver. Its modules are added later.
    pub fn add_device(&mut self, device: &Device) {
        let (Some(service), Some(name)) = (&device.driver, &device.name) else { return };
        let devices = &mut self.devices;
        devices
            .entry(driver(service))
            .and_modify(|known| *known = None)
            .or_insert_with(|| Some(name.clone()));
    }

    /// Module and function of an instruction.
    pub fn find(&mut self, address: u64) -> Place {
        // Routines begin at multiples of 16.
        let slot = ((address ^ address >> 16) >> 2) as usize % RECENT;
        if let Some((known, place)) = self.recent.get(slot)
            && *known == address
        {
            return place.clone();
        }
        let place = self.look_up(address);
        if self.recent.is_empty() {
            // Address 0 is in no module.
            self.recent.resize(RECENT, (0, Place::default()));
        }
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (address, place.clone());
        }
        place
    }

    fn look_up(&mut self, address: u64) -> Place {
        let mut place = Place::default();
        let module = self.by_base.range_mut(..=address).next_back();
        if let Some((base, module)) = module.filter(|(base, it)| address - **base < it.size_bytes) {
            let offset = address - base;
            place.module = Some(module.name.clone());
            place.device.clone_from(&module.device);
            place.offset = Some(offset);
            let (symbols, used) = (&self.symbols, &mut self.used);
            let functions = module.functions.get_or_insert_with(|| {
                match symbols.file(module.symbols.as_deref()?) {
                    Found::No => None,
                    Found::Yes(functions) => {
                        used.files += 1;
                        Some(functions)
                    }
                    Found::Damaged(what) => {
                        used.damaged += 1;
                        used.first_damaged.get_or_insert(what);
                        None
                    }
                }
            });
            let name = functions.as_ref().and_then(|functions| functions.find(offset));
            place.function = name.and_then(|name| self.names.intern(name));
        }
        if place.function.is_none() {
            let found = self.kernel.as_ref().and_then(|kernel| kernel.find(address));
            if let Some((name, module)) = found {
                place.function = self.names.intern(name);
                place.module = self.names.intern(module);
            }
        }
        place
    }

    /// Module and function of a caller, by the address to which its call returns: that can be the
    /// first one of the next function.
    pub fn find_caller(&mut self, return_address: u64) -> Place {
        self.find(return_address.saturating_sub(1))
    }

    /// Modules left out because there were too many.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Names of functions left out because there were too many.
    pub fn names_discarded(&self) -> u64 {
        self.names.discarded()
    }

    pub fn used(&self) -> &Used {
        &self.used
    }
}

/// Name of a driver by its service or its file; as a rule they differ in the extension only.
fn driver(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".sys").map_or(name.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_module_that_contains_it() {
        let mut modules = Modules::default();
        modules.add(0x1000, 0x100, r"\SystemRoot\system32\drivers\ndis.sys", None);
        modules.add(0x2000, 0x100, "tcpip.sys", None);
        let place = modules.find(0x10ff);
        assert_eq!((place.module.as_deref(), place.offset), (Some("ndis.sys"), Some(0xff)));
        assert_eq!(place.function, None);
        assert_eq!(modules.find(0x1100), Place::default());
        assert_eq!(modules.find(0xfff), Place::default());
        assert_eq!(modules.find_caller(0x1100).offset, Some(0xff));
        for base in 0..MODULES_MAX as u64 {
            modules.add(0x10_0000 + base * 0x10, 0x10, "x.sys", None);
        }
        assert_eq!(modules.discarded(), 2);
    }
}
