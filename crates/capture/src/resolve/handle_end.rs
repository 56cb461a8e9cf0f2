//! When opens end without a Close: with their tree, their session, or its last connection, which
//! the server may notice only when the next session is set up (MS-SMB2 sections 3.3.5.6, 3.3.5.8,
//! 3.3.7.1 and 3.3.5.5.3).
//!
//! The opens of a session or tree that ends are not searched: there are many, and mostly all are
//! closed. Each open determines its end when its row is written.

use super::bounded::Entities;
use super::entities::{HandleState, SessionState, TreeState};

/// When something ended, and the operation that ended it.
pub type Ending = (i64, Option<u64>);

/// The connections of a session that live.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channels {
    live: u32,
    /// End of the last one that ended.
    ended: Option<i64>,
    /// It is unknown whether one of them ended.
    is_unknown: bool,
    /// Another session took its place.
    replaced: Option<i64>,
}

impl Channels {
    /// One more connection joined the session.
    pub fn join(&mut self) {
        self.live += 1;
    }

    /// One less: it ended then, or is no longer followed.
    pub fn leave(&mut self, ended: Option<i64>) {
        self.live = self.live.saturating_sub(1);
        self.ended = self.ended.max(ended);
        self.is_unknown |= ended.is_none();
    }

    /// The client said in another session that it has lost this one.
    pub fn replace(&mut self, time: i64) {
        self.replaced.get_or_insert(time);
    }

    fn ended(self) -> Option<i64> {
        let lost = self.ended.filter(|_| self.live == 0 && !self.is_unknown);
        [lost, self.replaced].into_iter().flatten().min()
    }
}

/// Endpoints an open that was not closed, if what it belongs to has ended.
#[cold]
pub fn end_open(
    open: &mut HandleState,
    sessions: &Entities<SessionState>,
    trees: &Entities<TreeState>,
) {
    let tree = open.tree.and_then(|(place, number)| {
        trees.get(place).filter(|tree| tree.number == number).and_then(|tree| tree.ended)
    });
    let session = sessions.get(open.session).filter(|session| open.is_of(session));
    let logoff = session.and_then(|session| session.ended);
    let lost = session
        .filter(|_| !open.life.is_durable())
        .and_then(|session| session.channels.ended())
        .map(|time| (time, None));
    if let Some((time, operation)) = [tree, logoff, lost].into_iter().flatten().min() {
        open.life.end(time, operation);
    }
}
