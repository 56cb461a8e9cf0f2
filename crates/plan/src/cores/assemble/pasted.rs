//! Files below `/sys` and `/proc` that somebody pasted, read as those of a bundle are.

use std::collections::{BTreeMap, BTreeSet};

use super::super::bundle::{Files, linux};
use super::super::read::Piece;
use super::super::topology::Machine;

/// Files by their paths.
#[derive(Debug, Default)]
pub(super) struct Pasted(BTreeMap<String, String>);

impl Pasted {
    pub(super) fn new(pieces: &[Piece]) -> Self {
        let files = pieces.iter().filter_map(|piece| match piece {
            Piece::SystemFiles(files) => Some(files),
            _ => None,
        });
        Self(files.flatten().cloned().collect())
    }

    /// Adds what the files say about the machine and the adapters that other outputs name.
    pub(super) fn add(&self, machine: &mut Machine) {
        if !self.0.is_empty() {
            machine.cards.iter_mut().for_each(|card| linux::add_settings(self, card));
            linux::add_cpu_settings(self, machine);
        }
    }

    /// The CPUs that an interrupt may go to; none if no file says it.
    pub(super) fn affinity(&self, irq: u32) -> Vec<u32> {
        linux::affinity(self, irq)
    }
}

impl Files for Pasted {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.0.get(path).map(|content| content.as_bytes().to_vec())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let folder = format!("{path}/");
        let below = self.0.range(folder.clone()..).map(|(path, _)| path.strip_prefix(&folder));
        let names = below.map_while(|rest| rest?.split('/').next().map(str::to_owned));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn link(&self, _path: &str) -> Option<String> {
        None
    }
}
