//! The changes that can be predicted: a closed list, with one file for each.
//!
//! A change's file implements [`Definition`]: how it is written and read, what it means for a replay
//! ([`Plan`]) and for a profile, what it needs of a recording, and the sentences about it. The list
//! at the end of this file is the only other place that names it: the parser, `--list`, the checks
//! of requirements and the report go through that list. What [`Plan`] can express already needs no
//! code anywhere else; docs/adding.md has an example.

use std::fmt;
use std::str::FromStr;

use smbscope_tables::profile::{CacheOption, Profile};
use smbscope_tables::slice::Kind;

use super::plan::Plan;
use super::replay::Prediction;

mod bandwidth;
mod block;
mod cache_hit;
mod channels;
mod compound;
mod cpu;
mod depth;
mod dircache;
mod dirlease;
mod distance;
mod encryption;
mod filesystem;
mod loss;
mod max_read;
mod max_write;
mod queue;
mod replication;
mod rtt;
mod shared;
mod signing;
#[cfg(test)]
mod tests;
mod users;
mod window;
mod write_through;

/// What a change is called, how it is written, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The word before `=`.
    pub name: &'static str,
    /// The whole change, with a value.
    pub example: &'static str,
    /// One sentence, without its full stop.
    pub meaning: &'static str,
    /// What a recording must contain.
    pub needs: &'static str,
}

/// The new largest size of reads and of writes; none where it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockSizes {
    pub(super) read: Option<u64>,
    pub(super) write: Option<u64>,
}

/// Everything that is known about one change. A change implements it in a file of its own.
trait Definition {
    /// What is changed to which value; `()` for a change that takes none.
    type Value: Copy;

    const SPEC: Spec;
    const TAKES_VALUE: bool = true;
    /// Whether a profile must know its round trip.
    const NEEDS_RTT: bool = false;
    /// Whether a scenario then needs more or less of the server's CPUs and disks, by an amount that
    /// no prediction knows.
    const CHANGES_DEMAND: bool = false;
    /// What clients then keep of directories.
    const CACHE: Option<CacheOption> = None;

    /// Reads the text after `=`; the error says what is wrong with it.
    fn parse(text: &str) -> Result<Self::Value, String>;

    /// Writes the text after `=` as [`Definition::parse`] reads it.
    fn print(value: Self::Value, to: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// What is changed, with the value, as the end of a sentence.
    fn sentence(value: Self::Value) -> String;

    /// What the prediction takes for granted.
    fn assumption(value: Self::Value) -> &'static str;

    /// Adds the change to the plan of a replay. That the recording has what it needs is checked
    /// after the replay.
    fn plan(value: Self::Value, plan: &mut Plan);

    /// Changes a profile. False where the profile lacks what the change needs: most changes need
    /// the order of the requests.
    fn apply(_: Self::Value, _: &mut Profile) -> bool {
        false
    }

    /// The slices of the server's time that it changes, and the share of their time that is left.
    fn slices(_: Self::Value) -> Option<(&'static [Kind], f64)> {
        None
    }

    /// The new sizes of reads and writes.
    fn block_sizes(_: Self::Value) -> BlockSizes {
        BlockSizes::default()
    }

    /// Whether the recording has what the change needs, by a replay with it.
    fn is_answerable(value: Self::Value, prediction: &Prediction) -> bool {
        let Some((kinds, _)) = Self::slices(value) else { return true };
        let is_recorded = |kind: &Kind| {
            prediction.slices.iter().any(|(slice, n)| *slice == kind.name() && *n > 0)
        };
        kinds.iter().any(is_recorded)
    }

    /// Why the change cannot be predicted together with the others.
    fn conflict(_: Self::Value, _others: &[Change]) -> Option<&'static str> {
        None
    }

    /// Why the change has no effect in the plan that all changes make.
    fn superseded(_: Self::Value, _plan: &Plan) -> Option<&'static str> {
        None
    }

    /// Another effect of such changes, from the plan that all of them make.
    fn note(_: &Plan, _: &Prediction) -> Option<String> {
        None
    }

    /// Where this value leaves what was measured.
    fn warning(_: Self::Value, _: &Prediction) -> Option<String> {
        None
    }

    /// An error that ends with the change's example.
    fn invalid(why: impl fmt::Display) -> String {
        format!("{why}; for example {}", Self::SPEC.example)
    }
}

/// What a change needs and the input lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingInput {
    /// The change's name.
    pub change: &'static str,
    /// What is missing.
    pub what: &'static str,
}

/// A change in the list of all changes.
pub struct Entry {
    pub spec: Spec,
    takes_value: bool,
    parse: fn(&str) -> Result<Change, String>,
    note: fn(&Plan, &Prediction) -> Option<String>,
}

/// Makes [`Change`] and [`REGISTRY`] of the list of changes.
macro_rules! registry {
    ($($module:ident::$variant:ident($value:ty)),* $(,)?) => {
        /// A change, with its value.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Change {
            $($variant($value)),*
        }

        /// All changes, in the order in which they are listed.
        pub const REGISTRY: &[Entry] = &[$(Entry {
            spec: $module::$variant::SPEC,
            takes_value: $module::$variant::TAKES_VALUE,
            parse: |text| $module::$variant::parse(text).map(Change::$variant),
            note: $module::$variant::note,
        }),*];

        impl Change {
            /// What it is called and what it means.
            pub fn spec(&self) -> &'static Spec {
                match self { $(Change::$variant(_) => &$module::$variant::SPEC),* }
            }

            /// What is changed, with its value, as the end of a sentence.
            pub fn sentence(&self) -> String {
                match *self { $(Change::$variant(value) => $module::$variant::sentence(value)),* }
            }

            /// What the prediction takes for granted, in a sentence.
            pub fn assumption(&self) -> &'static str {
                match *self { $(Change::$variant(value) => $module::$variant::assumption(value)),* }
            }

            /// Adds it to a plan for recorded operations.
            pub fn plan(&self, plan: &mut Plan) {
                match *self { $(Change::$variant(value) => $module::$variant::plan(value, plan)),* }
            }

            /// What clients then keep of directories.
            pub fn cache_option(&self) -> Option<CacheOption> {
                match self { $(Change::$variant(_) => $module::$variant::CACHE),* }
            }

            /// Where its value leaves what was measured.
            pub fn warning(&self, prediction: &Prediction) -> Option<String> {
                match *self {
                    $(Change::$variant(value) => $module::$variant::warning(value, prediction)),*
                }
            }

            pub(super) fn block_sizes(&self) -> BlockSizes {
                match *self { $(Change::$variant(value) => $module::$variant::block_sizes(value)),* }
            }

            pub(super) fn changes_demand(&self) -> bool {
                match self { $(Change::$variant(_) => $module::$variant::CHANGES_DEMAND),* }
            }

            pub(super) fn is_answerable(&self, prediction: &Prediction) -> bool {
                match *self {
                    $(Change::$variant(value) => $module::$variant::is_answerable(value, prediction)),*
                }
            }

            pub(super) fn conflict(&self, others: &[Change]) -> Option<&'static str> {
                match *self {
                    $(Change::$variant(value) => $module::$variant::conflict(value, others)),*
                }
            }

            pub(super) fn superseded(&self, plan: &Plan) -> Option<&'static str> {
                match *self {
                    $(Change::$variant(value) => $module::$variant::superseded(value, plan)),*
                }
            }

            fn needs_rtt(&self) -> bool {
                match self { $(Change::$variant(_) => $module::$variant::NEEDS_RTT),* }
            }

            fn takes_value(&self) -> bool {
                match self { $(Change::$variant(_) => $module::$variant::TAKES_VALUE),* }
            }

            fn apply_value(&self, profile: &mut Profile) -> bool {
                match *self {
                    $(Change::$variant(value) => $module::$variant::apply(value, profile)),*
                }
            }

            fn print_value(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self { $(Change::$variant(value) => $module::$variant::print(value, to)),* }
            }
        }
    };
}

impl Change {
    /// The word before `=`.
    pub fn name(&self) -> &'static str {
        self.spec().name
    }

    /// The error for an input that lacks what the change needs.
    pub fn missing(&self) -> MissingInput {
        MissingInput { change: self.name(), what: self.spec().needs }
    }

    /// Changes a profile.
    pub fn apply(&self, profile: &mut Profile) -> Result<(), MissingInput> {
        if self.apply_value(profile) { Ok(()) } else { Err(self.missing()) }
    }

    /// The profile with all changes, one after the other.
    pub fn apply_all(changes: &[Change], today: &Profile) -> Result<Profile, MissingInput> {
        let mut changed = today.clone();
        for change in changes {
            // An unknown round trip is part of the constants, and would be counted twice.
            if change.needs_rtt() && today.rtt_s <= 0.0 {
                return Err(change.missing());
            }
            change.apply(&mut changed)?;
        }
        Ok(changed)
    }

    /// The assumptions of the changes, each once.
    pub fn assumptions(changes: &[Change]) -> Vec<&'static str> {
        unique(changes.iter().map(Change::assumption))
    }
}

/// Other effects of the changes of a plan, one sentence each.
pub fn notes(plan: &Plan, prediction: &Prediction) -> Vec<String> {
    unique(REGISTRY.iter().filter_map(|entry| (entry.note)(plan, prediction)))
}

/// Each once: some changes share sentences.
fn unique<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for one in all {
        if !unique.contains(&one) {
            unique.push(one);
        }
    }
    unique
}

/// As it is written on the command line: `max-read=1MiB`.
impl fmt::Display for Change {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())?;
        if !self.takes_value() {
            return Ok(());
        }
        to.write_str("=")?;
        self.print_value(to)
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        let Some(entry) = REGISTRY.iter().find(|entry| entry.spec.name == name) else {
            let names: Vec<_> = REGISTRY.iter().map(|entry| entry.spec.name).collect();
            return Err(format!("unknown change `{name}`; known changes: {}", names.join(", ")));
        };
        let example = entry.spec.example;
        match (entry.takes_value, value) {
            (true, None) => Err(format!("`{name}` needs a value; for example {example}")),
            (false, Some(_)) => Err(format!("`{name}` takes no value; write {example}")),
            _ => (entry.parse)(value.unwrap_or_default()),
        }
    }
}

// One line for each change: its file, its name in the code, and the type of its value.
registry! {
    rtt::Rtt(f64),
    distance::Distance(f64),
    bandwidth::Bandwidth(f64),
    window::Window(f64),
    loss::Loss(f64),
    block::Block(u64),
    max_read::ReadBlock(u64),
    max_write::WriteBlock(u64),
    filesystem::Filesystem(f64),
    cpu::Cpu(f64),
    queue::Queue(f64),
    users::Users(f64),
    dircache::DirCache(()),
    dirlease::DirLease(()),
    depth::Depth(usize),
    compound::Compound(bool),
    channels::Channels(usize),
    write_through::WriteThrough(bool),
    replication::Replication(super::plan::Replication),
    cache_hit::CacheHit(f64),
    signing::Signing(smbscope_tables::protection::Protection),
    encryption::Encryption(smbscope_tables::protection::Protection),
}
