//! Where a slice's time is spent, in the words of the question: in the queue, in Samba, in the file
//! system, waiting for others, on the wire.

use smbscope_tables::slice::Kind;

use super::data::ServerSplit;
use crate::summary::bins::Bin;

/// Where time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Queue,
    /// The protocol: parsing, processing, cryptography.
    Processing,
    /// With the wait for an I/O thread, which is as long as the file system is slow.
    Filesystem,
    Locks,
    Send,
}

/// Of a slice that is a part of the turnaround.
pub(super) fn place(kind: Kind) -> Option<Place> {
    Some(match kind {
        Kind::Queue => Place::Queue,
        Kind::CryptoIn | Kind::Parse | Kind::Processing | Kind::CryptoOut => Place::Processing,
        Kind::Filesystem | Kind::IoWait | Kind::Io | Kind::Flush => Place::Filesystem,
        Kind::LockWait => Place::Locks,
        Kind::Send => Place::Send,
        Kind::Disk | Kind::Offcpu => return None,
    })
}

impl ServerSplit {
    /// Adds a slice.
    pub(super) fn add(&mut self, place: Place, ns: i64) {
        let sum = match place {
            Place::Queue => &mut self.queue_ns,
            Place::Processing => &mut self.processing_ns,
            Place::Filesystem => &mut self.filesystem_ns,
            Place::Locks => &mut self.lock_wait_ns,
            Place::Send => &mut self.send_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    /// Adds another one.
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
