//! Requests that are served: from work and waits to slices.

use smbscope_wire::smb2::Command;

use crate::operation::{RequestKey, ServerSide};
use crate::ring_event::{Io, Within};
use crate::slices::{Kind, Slices};

/// One request that is served: a message, of which one member is processed at a time.
#[derive(Clone)]
pub struct ServedRequest {
    pub socket: u64,
    pub key: RequestKey,
    /// Commands and MessageIds of its members.
    pub members: Vec<(Command, u64)>,
    pub member: Option<Member>,
    /// The values that all members share.
    pub server_side: ServerSide,
}

/// The member that is being served.
#[derive(Clone)]
pub struct Member {
    pub slices: Slices,
    /// Start of its current work.
    pub since: u64,
    /// Start of its current wait; 0 if it does not wait.
    waits_since: u64,
    /// The work that another thread does for it, and its buffer.
    pub handed_over: Option<(Io, u64)>,
    /// The main thread has not waited since the hand-over: its work runs in parallel.
    pub is_beside: bool,
    /// Time of reads, writes and flushes on other threads, and when the last one ended.
    pub io: u64,
    pub io_ended: u64,
    /// Time of a flush that follows a write on other threads.
    pub then_flush: u64,
    /// Likewise on the main thread, included in the system calls.
    pub own_io: u64,
    pub own_flush: u64,
    /// How the time of all this was spent.
    pub within: Within,
}

impl ServedRequest {
    /// The kind of an invisible wait of the member.
    pub fn waits(&self) -> Kind {
        match self.members.get(usize::from(self.key.index)) {
            // A wait for a lock, or for a break.
            Some((
                Command::CREATE | Command::LOCK | Command::CHANGE_NOTIFY | Command::SET_INFO,
                _,
            )) => Kind::LockWait,
            Some((Command::READ | Command::WRITE | Command::FLUSH, _)) => Kind::IoWait,
            // A wait for the answer of another process (logons).
            _ => Kind::Processing,
        }
    }
}

impl Member {
    /// Its slices so far, with the work since then.
    pub fn new(slices: Slices, since: u64) -> Member {
        Member {
            slices,
            since,
            waits_since: 0,
            handed_over: None,
            is_beside: false,
            io: 0,
            io_ended: 0,
            then_flush: 0,
            own_io: 0,
            own_flush: 0,
            within: Within::default(),
        }
    }

    /// Work until `now`, of which `crypto` in cryptography and `busy` in system calls.
    pub fn work(&mut self, now: u64, crypto: u64, busy: u64) {
        if self.waits_since != 0 {
            return;
        }
        let all = now.saturating_sub(self.since);
        let crypto = crypto.min(all);
        let busy = busy.min(all - crypto);
        let own_io = std::mem::take(&mut self.own_io).min(busy);
        let own_flush = std::mem::take(&mut self.own_flush).min(busy - own_io);
        let files = busy - own_io - own_flush;
        let parts = [
            (Kind::CryptoIn, crypto),
            (Kind::Processing, all - crypto - busy),
            (Kind::Filesystem, files),
            (Kind::Io, own_io),
            (Kind::Flush, own_flush),
        ];
        let mut start = self.since;
        for (kind, took) in parts {
            if took > 0 {
                self.slices.add(kind, start, took);
                start += took;
            }
        }
        self.since = now;
    }

    /// Work until `now`, followed by a wait.
    pub fn pause(&mut self, now: u64, crypto: u64, busy: u64) {
        self.work(now, crypto, busy);
        self.waits_since = now;
    }

    /// The wait ends; time that was not with another thread counts as `unseen`.
    pub fn wake(&mut self, now: u64, unseen: Kind) {
        let since = std::mem::take(&mut self.waits_since);
        if since == 0 {
            return;
        }
        let waited = now.saturating_sub(since);
        if waited == 0 && self.handed_over.is_none() {
            return;
        }
        match self.handed_over.take() {
            // No thread's system call was observed (io_uring, two flushes at once): its duration is unknown.
            Some(_) if self.io_ended == 0 => self.slices.add(Kind::IoWait, since, waited),
            Some((what, _)) => {
                self.io_ended = 0;
                let io = std::mem::take(&mut self.io).min(waited);
                let flush = std::mem::take(&mut self.then_flush).min(waited - io);
                // The waits for a thread and for the main thread, together.
                let unseen = waited - io - flush;
                self.slices.add(Kind::IoWait, since, unseen);
                let kind = if what == Io::Flush { Kind::Flush } else { Kind::Io };
                self.slices.add(kind, since + unseen, io);
                if flush > 0 {
                    self.slices.add(Kind::Flush, since + unseen + io, flush);
                }
            }
            None => self.slices.add(unseen, since, waited),
        }
        self.since = now.max(since);
    }
}
