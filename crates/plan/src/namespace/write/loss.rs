//! What a form cannot express, counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Examples of one loss that are kept.
const EXAMPLES_MAX: usize = 20;

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// Links or targets whose names the form cannot hold: they are left out.
    Names,
    /// Links that are there twice, with or without the same case: the later ones are left out.
    DuplicateLinks,
    /// Targets that a link has twice.
    DuplicateTargets,
    /// Links below other links.
    NestedLinks,
    /// Links without a target.
    EmptyLinks,
    /// Offline or other states; what is offline is left out where it would become reachable.
    States,
    Ttls,
    Comments,
    Flags,
    Priorities,
    /// Security descriptors of links.
    Permissions,
    /// Targets of the root.
    NamespaceServers,
    /// Attributes that belong to another form.
    OtherAttributes,
}

impl Lost {
    pub const ALL: [Lost; 13] = [
        Lost::Names,
        Lost::DuplicateLinks,
        Lost::DuplicateTargets,
        Lost::NestedLinks,
        Lost::EmptyLinks,
        Lost::States,
        Lost::Ttls,
        Lost::Comments,
        Lost::Flags,
        Lost::Priorities,
        Lost::Permissions,
        Lost::NamespaceServers,
        Lost::OtherAttributes,
    ];

    /// The name as an option's value.
    pub fn name(self) -> &'static str {
        match self {
            Lost::Names => "names",
            Lost::DuplicateLinks => "duplicate-links",
            Lost::DuplicateTargets => "duplicate-targets",
            Lost::NestedLinks => "nested-links",
            Lost::EmptyLinks => "empty-links",
            Lost::States => "states",
            Lost::Ttls => "ttls",
            Lost::Comments => "comments",
            Lost::Flags => "flags",
            Lost::Priorities => "priorities",
            Lost::Permissions => "permissions",
            Lost::NamespaceServers => "namespace-servers",
            Lost::OtherAttributes => "other-attributes",
        }
    }

    /// The loss of a name.
    pub fn from_name(name: &str) -> Option<Lost> {
        Lost::ALL.into_iter().find(|lost| lost.name() == name)
    }

    /// What a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            Lost::Names => "names that it cannot hold",
            Lost::DuplicateLinks => "links that are there twice",
            Lost::DuplicateTargets => "targets that a link has twice",
            Lost::NestedLinks => "links below other links",
            Lost::EmptyLinks => "links without targets",
            Lost::States => "states",
            Lost::Ttls => "times to live",
            Lost::Comments => "comments",
            Lost::Flags => "flags",
            Lost::Priorities => "priorities of targets",
            Lost::Permissions => "permissions of links",
            Lost::NamespaceServers => "namespace servers",
            Lost::OtherAttributes => "attributes of another form",
        }
    }
}

/// One kind of loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    pub lost: Lost,
    pub count: u64,
    /// The first 20: a path and what it loses.
    pub examples: Vec<String>,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.lost.title(), self.lost.name(), self.count)?;
        if let Some(example) = self.examples.first() {
            write!(formatter, ", for example {example}")?;
        }
        Ok(())
    }
}

/// Losses while they are counted.
#[derive(Debug, Default)]
pub struct Losses(BTreeMap<Lost, Loss>);

impl Losses {
    /// Counts one; the example is made only if it is kept.
    pub fn add(&mut self, lost: Lost, example: impl FnOnce() -> String) {
        let loss =
            self.0.entry(lost).or_insert_with(|| Loss { lost, count: 0, examples: Vec::new() });
        loss.count += 1;
        if loss.examples.len() < EXAMPLES_MAX {
            loss.examples.push(example());
        }
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Loss> {
        self.0.into_values().collect()
    }
}
