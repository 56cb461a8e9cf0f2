//! Assigns operations to the tracks of their connection.
//!
//! Slices on one track must nest, but operations in flight at the same time do not. A connection therefore
//! has as many tracks as operations were in flight at once; Perfetto merges tracks of the same name into one
//! with that many rows.

use std::collections::HashMap;

/// Identifies a track; 0 is Perfetto's own.
pub type Uuid = u64;

/// The tracks that were assigned so far.
#[derive(Default)]
pub struct Tracks {
    recordings: HashMap<String, Uuid>,
    connections: HashMap<(Uuid, Option<u64>), Vec<Busy>>,
    last: Uuid,
}

struct Busy {
    uuid: Uuid,
    /// When the operation on it ends.
    end: i64,
}

/// A track, and whether it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    pub uuid: Uuid,
    /// It must be declared first.
    pub new: bool,
}

impl Tracks {
    /// The parent track of a recording's connections.
    pub fn recording(&mut self, name: &str) -> Track {
        if let Some(&uuid) = self.recordings.get(name) {
            return Track { uuid, new: false };
        }
        self.last += 1;
        self.recordings.insert(name.to_owned(), self.last);
        Track { uuid: self.last, new: true }
    }

    /// A track of the connection that is free from `start` to `end`. The one that became free last if there are several,
    /// so that the others stay free for longer operations: operations arrive in the order of their ends, so
    /// longer ones come later.
    pub fn take(
        &mut self,
        recording: Uuid,
        connection: Option<u64>,
        (start, end): (i64, i64),
    ) -> Track {
        let tracks = self.connections.entry((recording, connection)).or_default();
        let free = tracks.iter_mut().filter(|track| track.end <= start);
        if let Some(track) = free.max_by_key(|track| track.end) {
            track.end = end;
            return Track { uuid: track.uuid, new: false };
        }
        self.last += 1;
        tracks.push(Busy { uuid: self.last, end });
        Track { uuid: self.last, new: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_operations_get_different_tracks() {
        let mut tracks = Tracks::default();
        let top = tracks.recording("a");
        assert!(top.new && !tracks.recording("a").new);
        let mut take =
            |connection, from, to| tracks.take(top.uuid, Some(connection), (from, to)).uuid;
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
