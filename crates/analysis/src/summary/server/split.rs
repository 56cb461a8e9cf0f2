//! Parts of the server's time that a report shows: the queue, the protocol, the file system, locks,
//! sending. Each is the sum of several kinds of slices.

use smbscope_tables::slice::Kind;

use super::data::ServerSplit;
use crate::summary::bins::Bin;

/// A part of the server's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerPart {
    Queue,
    /// The protocol: parsing, processing, cryptography.
    Processing,
    /// Includes the wait for an I/O thread, which a slow file system makes longer.
    Filesystem,
    Locks,
    Send,
}

/// The part that a kind of slice belongs to; none if it overlaps others.
pub(super) fn server_part(kind: Kind) -> Option<ServerPart> {
    Some(match kind {
        Kind::Queue => ServerPart::Queue,
        Kind::CryptoIn | Kind::Parse | Kind::Processing | Kind::CryptoOut => ServerPart::Processing,
        Kind::Filesystem | Kind::IoWait | Kind::Io | Kind::Flush => ServerPart::Filesystem,
        Kind::LockWait => ServerPart::Locks,
        Kind::Send => ServerPart::Send,
        Kind::Disk | Kind::Offcpu => return None,
    })
}

impl ServerSplit {
    /// Adds a slice.
    pub(super) fn add(&mut self, part: ServerPart, ns: i64) {
        let sum = match part {
            ServerPart::Queue => &mut self.queue_ns,
            ServerPart::Processing => &mut self.processing_ns,
            ServerPart::Filesystem => &mut self.filesystem_ns,
            ServerPart::Locks => &mut self.lock_wait_ns,
            ServerPart::Send => &mut self.send_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    /// Adds all parts of `other`.
    pub(super) fn absorb(&mut self, other: &ServerSplit) {
        for (sum, more) in [
            (&mut self.request_transfer_ns, other.request_transfer_ns),
            (&mut self.queue_ns, other.queue_ns),
            (&mut self.processing_ns, other.processing_ns),
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
