//! Commands as groups: the counters of each, by name and protocol.

use hashbrown::HashMap;
use smbscope_tables::command_class::CommandClass;

use super::data::Command;
use super::tally::{CommandTally, Facts, Parts, Whole};
use crate::stats::latency::Grain;

/// Most commands with counters of their own; fewer than 100 have a name.
const COMMANDS_MAX: usize = 160;

struct Entry {
    name: String,
    protocol: Option<u8>,
    class: CommandClass,
    label: String,
    tally: CommandTally,
}

/// The commands so far. Commands of SMB1 and SMB2 with the same name are separate entries.
pub(crate) struct Commands {
    entries: Vec<Entry>,
    index: HashMap<(String, Option<u8>), u32, foldhash::fast::RandomState>,
    grain: Grain,
}

impl Commands {
    pub(crate) fn new(grain: Grain) -> Commands {
        Commands { entries: Vec::new(), index: HashMap::default(), grain }
    }

    /// The number of a command.
    pub(crate) fn resolve(&mut self, name: &str, protocol: Option<u8>) -> u32 {
        let key = (name.to_owned(), protocol);
        if let Some(&number) = self.index.get(&key) {
            return number;
        }
        if self.entries.len() >= COMMANDS_MAX && name != "(others)" {
            return self.resolve("(others)", None);
        }
        let number = self.entries.len() as u32;
        self.entries.push(Entry {
            class: CommandClass::from_command(name),
            label: name.to_owned(),
            name: name.to_owned(),
            protocol,
            tally: CommandTally::new(self.grain),
        });
        self.index.insert(key, number);
        number
    }

    #[inline]
    pub(crate) fn class(&self, number: u32) -> CommandClass {
        let entry = self.entries.get(number as usize);
        entry.map_or(CommandClass::Other, |entry| entry.class)
    }

    #[inline]
    pub(crate) fn add(&mut self, number: u32, facts: &Facts, parts: &Parts) {
        if let Some(entry) = self.entries.get_mut(number as usize) {
            entry.tally.add(facts, parts);
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &CommandTally> {
        self.entries.iter().map(|entry| &entry.tally)
    }

    /// Marks SMB1's commands where SMB2's were seen as well.
    pub(crate) fn disambiguate(&mut self) {
        if self.entries.iter().any(|entry| entry.protocol == Some(2)) {
            for entry in &mut self.entries {
                if entry.protocol == Some(1) {
                    entry.label = format!("{} (SMB1)", entry.name);
                }
            }
        }
    }

    /// How a command is shown.
    pub(crate) fn name(&self, number: u32) -> String {
        let entry = self.entries.get(number as usize);
        entry.map_or_else(String::new, |entry| entry.label.clone())
    }

    /// The commands, those with the most busy time first.
    pub(crate) fn finish(&self, whole: &Whole) -> Vec<Command> {
        let mut rows: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| entry.tally.tally.operations > 0)
            .map(|entry| {
                let [turnaround, request_transfer, response_transfer] = entry.tally.parts();
                Command {
                    command: entry.label.clone(),
                    protocol: entry.protocol,
                    tally: entry.tally.tally.finish(whole, true),
                    busy_split: entry.tally.split.clone(),
                    turnaround,
                    request_transfer,
                    response_transfer,
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            let order = |row: &Command| (row.tally.busy_ns, row.tally.operations);
            order(b).cmp(&order(a)).then_with(|| a.command.cmp(&b.command))
        });
        rows
    }
}
