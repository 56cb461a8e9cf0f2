//! Which of a connection's tracks an operation stands on.
//!
//! Slices of one track must nest, and operations in flight at the same time do not. So a connection
//! has as many tracks as operations were in flight at once; Perfetto shows tracks of one name as
//! one, with as many rows.

use std::collections::HashMap;

/// Identity of a track: 0 is Perfetto's own.
pub type Uuid = u64;

/// The tracks so far.
#[derive(Default)]
pub struct Lanes {
    recordings: HashMap<String, Uuid>,
    connections: HashMap<(Uuid, Option<u64>), Vec<Lane>>,
    last: Uuid,
}

struct Lane {
    uuid: Uuid,
    /// Up to when it is taken.
    end: i64,
}

/// A track, and whether it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The track.
    pub uuid: Uuid,
    /// Nobody was told of it.
    pub new: bool,
}

impl Lanes {
    /// The track that those of a recording's connections stand below.
    pub fn recording(&mut self, name: &str) -> Place {
        if let Some(&uuid) = self.recordings.get(name) {
            return Place { uuid, new: false };
        }
        self.last += 1;
        self.recordings.insert(name.to_owned(), self.last);
        Place { uuid: self.last, new: true }
    }

    /// A track of the connection that is free from `start` to `end`: of those the one that was
    /// taken last, so that the others stay free for longer operations, which come later because
    /// operations come in the order of their ends.
    pub fn take(
        &mut self,
        recording: Uuid,
        connection: Option<u64>,
        (start, end): (i64, i64),
    ) -> Place {
        let lanes = self.connections.entry((recording, connection)).or_default();
        let free = lanes.iter_mut().filter(|lane| lane.end <= start);
        if let Some(lane) = free.max_by_key(|lane| lane.end) {
            lane.end = end;
            return Place { uuid: lane.uuid, new: false };
        }
        self.last += 1;
        lanes.push(Lane { uuid: self.last, end });
        Place { uuid: self.last, new: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_in_flight_together_stand_on_tracks_of_their_own() {
        let mut lanes = Lanes::default();
        let top = lanes.recording("a");
        assert!(top.new && !lanes.recording("a").new);
        let mut take =
            |connection, from, to| lanes.take(top.uuid, Some(connection), (from, to)).uuid;
        let first = take(1, 0, 10);
        assert_eq!(take(1, 10, 20), first);
        let second = take(1, 5, 25);
        assert_ne!(second, first);
        assert_eq!(take(1, 25, 30), second);
        assert_eq!(take(1, 22, 31), first);
        let other = take(2, 0, 10);
        assert!(other != first && other != second);
    }
}
