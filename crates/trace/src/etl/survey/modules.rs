//! Images of the kernel, drivers and processes, each once, with their PDB files.

use super::super::clock::Clock;
use super::super::kernel::file_name;
use super::super::kernel::images::{RawImage, Reason, Symbols};
use super::super::times::Bounds;
use crate::event::Image;
use foldhash::{HashMap, HashSet};
use std::sync::Arc;

/// Limit of images and of PDB files.
const MODULES_MAX: usize = 1 << 20;

/// What was seen of the images.
#[derive(Debug, Default)]
pub struct Modules {
    images: Vec<Found>,
    /// PDB files by process and base, and by base alone: the events of a library may name one of
    /// its processes only. `None` if two libraries had the same base.
    symbols: HashMap<(u32, u64), Arc<str>>,
    symbols_by_base: HashMap<u64, Option<Arc<str>>>,
    names: HashSet<Arc<str>>,
}

#[derive(Debug)]
struct Found {
    process: u32,
    base: u64,
    reason: Reason,
    ticks: i64,
    size_bytes: u64,
    name: Arc<str>,
}

impl Modules {
    /// Adds an image. Returns how many were left out because of the limit.
    pub fn image(&mut self, image: RawImage, ticks: i64) -> u64 {
        if self.images.len() >= MODULES_MAX {
            return 1;
        }
        let name = self.name(file_name(&image.path));
        self.images.push(Found {
            process: image.process,
            base: image.base,
            reason: image.reason,
            ticks,
            size_bytes: image.size_bytes,
            name,
        });
        0
    }

    /// Adds a PDB file. Returns how many were left out because of the limit.
    pub fn symbols(&mut self, symbols: Symbols) -> u64 {
        if self.symbols.len() >= MODULES_MAX {
            return 1;
        }
        let pdb = self.name(&symbols.pdb);
        let by_base = self.symbols_by_base.entry(symbols.base);
        let known = by_base.or_insert_with(|| Some(Arc::clone(&pdb)));
        if known.as_ref().is_some_and(|known| *known != pdb) {
            *known = None;
        }
        self.symbols.insert((symbols.process, symbols.base), pdb);
        0
    }

    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(name) = self.names.get(text) {
            return Arc::clone(name);
        }
        let name: Arc<str> = text.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// All images; afterwards none are left. An image has a time if it was loaded during the
    /// recording. What the rundown at the end names was usually loaded or there at the start.
    pub fn take(&mut self, clock: &Clock, bounds: &Bounds) -> Vec<Image> {
        let mut found = std::mem::take(&mut self.images);
        found.sort_by_key(|image| (image.process, image.base, image.reason, image.ticks));
        found.dedup_by(|later, earlier| {
            let is_same_place = (later.process, later.base) == (earlier.process, earlier.base);
            is_same_place && later.reason != Reason::Load && later.name == earlier.name
        });
        let mut images: Vec<Image> = found
            .into_iter()
            .map(|image| Image {
                time_ns: (image.reason == Reason::Load && bounds.contain(image.ticks))
                    .then(|| clock.time_ns(image.ticks)),
                base: image.base,
                size_bytes: image.size_bytes,
                name: image.name,
                process: image.process,
                symbols: self.pdb(image.process, image.base),
            })
            .collect();
        images.sort_by_key(|image| image.time_ns);
        images
    }

    fn pdb(&self, process: u32, base: u64) -> Option<Arc<str>> {
        let exact = self.symbols.get(&(process, base));
        exact.or_else(|| self.symbols_by_base.get(&base)?.as_ref()).cloned()
    }
}
