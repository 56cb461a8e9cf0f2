//! How much longer operations take because of a second server: by command, share and application.
//!
//! Percentiles, not means: a write that need not be stable waits for nothing, so a mean belongs to no operation.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::data::Part;
use super::request::{OperationTime, Request};
use super::role::Role;
use super::tally::Names;
use crate::predict::plan::Direction;
use crate::rows::application::Application;
use crate::rows::columns::{Resolved, Text};
use crate::rows::has_pipes;
use crate::stats::latency::{Distribution, Grain, Latency, Sample};

/// The columns that are read in addition.
pub(super) const COLUMNS: &[&str] = &["share", "extension"];
/// Most shares and commands, each; the last one is all others together.
const GROUPS_MAX: usize = 256;

/// Writes and Flushes of one command, share or application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaTimes {
    /// Command, share or application.
    pub name: String,
    /// Writes and Flushes.
    pub operations: u64,
    /// How many of them wait for the second server.
    pub waiting: u64,
    /// How long they wait for it, those that do not wait included.
    pub added: Distribution,
    /// Their time today.
    pub before: Distribution,
    /// Their time with the second server.
    pub after: Distribution,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replicas {
    /// By command.
    pub commands: Vec<ReplicaTimes>,
    /// By share.
    pub shares: Vec<ReplicaTimes>,
    /// By application.
    pub applications: Vec<ReplicaTimes>,
}

struct Group {
    waiting: u64,
    times: [Latency; 3],
}

impl Group {
    fn new() -> Group {
        Group { waiting: 0, times: [(); 3].map(|()| Latency::new(Grain::Coarse)) }
    }

    fn add(&mut self, added_ns: i64, time: &OperationTime) {
        self.waiting += u64::from(added_ns > 0);
        let ns = [added_ns, time.before_ns, time.after_ns];
        self.times.iter_mut().zip(ns).for_each(|(times, ns)| times.record(&Sample::new(ns)));
    }

    fn finish(&self, name: &str) -> ReplicaTimes {
        let [added, before, after] = &self.times;
        ReplicaTimes {
            name: name.to_owned(),
            operations: added.n(),
            waiting: self.waiting,
            added: added.distribution(false),
            before: before.distribution(false),
            after: after.distribution(false),
        }
    }
}

/// What is collected while operations stream by.
#[derive(Default)]
pub(super) struct ReplicaCollector {
    share_names: Names,
    shares: Vec<Group>,
    commands: Vec<Option<Group>>,
    applications: [Option<Box<Group>>; Application::ALL.len()],
}

/// The additional columns of a batch.
pub(super) struct ReplicaColumns {
    share: Text,
    extension: Text,
    shares: Resolved,
    applications: Resolved,
}

impl ReplicaColumns {
    pub(super) fn from_batch(batch: &RecordBatch) -> Result<ReplicaColumns, ArrowError> {
        let (share, extension) =
            (Text::from_batch(batch, "share")?, Text::from_batch(batch, "extension")?);
        let (shares, applications) = (Resolved::new(share.keys()), Resolved::new(extension.keys()));
        Ok(ReplicaColumns { share, extension, shares, applications })
    }

    /// Whether a row's share has pipes.
    pub(super) fn is_pipe(&self, row: usize) -> bool {
        self.share.key(row).and_then(|key| self.share.text(key)).is_some_and(has_pipes)
    }

    /// The numbers of a row's share and application.
    pub(super) fn keys(&mut self, row: usize, collector: &mut ReplicaCollector) -> (u32, u8) {
        let ReplicaColumns { share, extension, shares, applications } = self;
        let share = match share.key(row) {
            Some(key) => shares.get(key, || collector.share(share.text(key).unwrap_or_default())),
            None => collector.share(""),
        };
        let application = extension.key(row).map_or(Application::Other as u32, |key| {
            applications.get(key, || {
                Application::from_extension(extension.text(key).unwrap_or_default()) as u32
            })
        });
        (share, application as u8)
    }
}

impl ReplicaCollector {
    fn share(&mut self, name: &str) -> u32 {
        let name = match self.share_names.0.len() {
            ..GROUPS_MAX => name,
            _ if self.share_names.0.iter().any(|known| known == name) => name,
            _ => "(others)",
        };
        self.share_names.number(name)
    }

    /// Adds a write or a Flush with the time that it takes.
    pub(super) fn add(&mut self, request: &Request, time: &OperationTime) {
        if !matches!(request.role, Role::Flush | Role::Move(Direction::Write)) {
            return;
        }
        let added_ns = time.parts[Part::Replica as usize].1;
        let share = request.share as usize;
        if self.share_names.0.get(share).is_some_and(|name| has_pipes(name)) {
            return;
        }
        if self.shares.len() <= share {
            self.shares.resize_with(share + 1, Group::new);
        }
        self.shares[share].add(added_ns, time);
        let command = (request.command as usize).min(GROUPS_MAX - 1);
        if self.commands.len() <= command {
            self.commands.resize_with(command + 1, || None);
        }
        self.commands[command].get_or_insert_with(Group::new).add(added_ns, time);
        if let Some(group) = self.applications.get_mut(usize::from(request.application)) {
            group.get_or_insert_with(|| Box::new(Group::new())).add(added_ns, time);
        }
    }

    /// The result, the longest wait first.
    pub(super) fn finish(&self, command_names: &[String]) -> Replicas {
        let sorted = |mut rows: Vec<ReplicaTimes>| {
            rows.sort_by(|a, b| {
                b.added.sum_ns.cmp(&a.added.sum_ns).then_with(|| a.name.cmp(&b.name))
            });
            rows
        };
        let commands = self.commands.iter().zip(command_names);
        let commands =
            commands.filter_map(|(group, name)| group.as_ref().map(|group| group.finish(name)));
        let shares = self.shares.iter().zip(&self.share_names.0);
        let shares = shares
            .filter(|(group, _)| group.times[0].n() > 0)
            .map(|(group, name)| group.finish(if name.is_empty() { "(unknown)" } else { name }));
        let applications = Application::ALL.iter().zip(&self.applications);
        let applications = applications
            .filter_map(|(kind, group)| group.as_ref().map(|group| group.finish(kind.name())));
        Replicas {
            commands: sorted(commands.collect()),
            shares: sorted(shares.collect()),
            applications: sorted(applications.collect()),
        }
    }
}
