//! The server's time by group of slices: queue, processing, security, file system, locks, sending.

use smbscope_tables::slice::Group;

use super::data::ServerSplit;
use crate::rows::bins::Bin;

impl ServerSplit {
    /// Adds a slice of that group.
    pub(super) fn add(&mut self, group: Group, ns: i64) {
        let sum = match group {
            Group::Queue => &mut self.queue_ns,
            Group::Processing => &mut self.processing_ns,
            Group::Security => &mut self.security_ns,
            Group::Filesystem => &mut self.filesystem_ns,
            Group::Locks => &mut self.lock_wait_ns,
            Group::Send => &mut self.send_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    /// Adds another one.
    pub(super) fn absorb(&mut self, other: &ServerSplit) {
        for (sum, more) in [
            (&mut self.request_transfer_ns, other.request_transfer_ns),
            (&mut self.queue_ns, other.queue_ns),
            (&mut self.processing_ns, other.processing_ns),
            (&mut self.security_ns, other.security_ns),
            (&mut self.filesystem_ns, other.filesystem_ns),
            (&mut self.lock_wait_ns, other.lock_wait_ns),
            (&mut self.send_ns, other.send_ns),
            (&mut self.residual_ns, other.residual_ns),
            (&mut self.response_transfer_ns, other.response_transfer_ns),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Sums of one bin.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) operations: u64,
    pub(super) split: ServerSplit,
}

impl Bin for Moment {
    fn empty() -> Moment {
        Moment::default()
    }

    fn absorb(&mut self, other: &Moment) {
        self.operations += other.operations;
        self.split.absorb(&other.split);
    }
}
