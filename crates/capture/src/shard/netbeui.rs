//! NetBEUI's frames to the connections of NetBIOS sessions: the table of one shard, bounded.
//!
//! Owns which two stations a frame is between, and the limits. Does not own layouts (`netbeui`), the
//! order of frames (`link`), nor the parts of messages (`session`).

mod link;
mod session;

use hashbrown::HashMap;

use super::Env;
use crate::frame::{Address, LlcFrame};
use crate::netbeui::Frame;
use crate::tcp::EndReason;
use link::{Link, SESSIONS_MAX};

/// Pairs of stations; beyond, the one that was idle longest ends.
const LINKS_MAX: usize = 1_024;
/// Bytes that all links hold: of frames behind a lost one, and of messages in parts.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The sessions of one shard.
#[derive(Clone, Default)]
pub struct NetBeui {
    places: HashMap<[Address; 2], usize, foldhash::fast::RandomState>,
    links: Vec<Link>,
    held_bytes: usize,
}

impl NetBeui {
    /// Takes a frame between two stations.
    pub fn frame(&mut self, llc: &LlcFrame<'_>, time: i64, number: u64, env: &mut Env<'_>) {
        env.out.coverage.frames_netbeui += 1;
        let Some(frame) = Frame::parse(llc.bytes, llc.length) else {
            env.out.coverage.frames_malformed += 1;
            return;
        };
        let from = usize::from(llc.source > llc.destination);
        let mut stations = [llc.source, llc.destination];
        stations.sort_unstable();
        let place = self.link(stations, env);
        let Some(link) = self.links.get_mut(place) else { return };
        let before = link.held_bytes;
        link.frame(&frame, from, time, number, env);
        self.held_bytes = (self.held_bytes + link.held_bytes).saturating_sub(before);
        if self.held_bytes > HELD_BYTES_MAX {
            self.held_bytes = self.held_bytes.saturating_sub(link.held_bytes);
            link.release_memory(env);
        }
    }

    /// The sessions that carry SMB, with the number of the packet with which it began.
    pub fn places(&self) -> impl Iterator<Item = (u64, u32)> {
        self.links.iter().zip(0_u32..).flat_map(|(link, place)| {
            let sessions = link.sessions.iter().zip(0_u32..);
            sessions.filter_map(move |(session, at)| {
                Some((session.began()?, place * SESSIONS_MAX as u32 + at))
            })
        })
    }

    /// Ends a session, with the capture.
    pub fn end(&mut self, place: u32, env: &mut Env<'_>) {
        let place = place as usize;
        if let Some(link) = self.links.get_mut(place / SESSIONS_MAX)
            && let Some(session) = link.sessions.get_mut(place % SESSIONS_MAX)
        {
            session.end(EndReason::Capture, env);
        }
    }

    /// The place of two stations' link.
    fn link(&mut self, stations: [Address; 2], env: &mut Env<'_>) -> usize {
        if let Some(&place) = self.places.get(&stations) {
            return place;
        }
        let place = if self.links.len() < LINKS_MAX {
            self.links.push(Link::new(stations));
            self.links.len() - 1
        } else {
            let idle = self.links.iter_mut().zip(0..).min_by_key(|(link, _)| link.last);
            let Some((link, place)) = idle else { return 0 };
            env.out.coverage.connections_evicted += link.end(EndReason::Idle, env);
            self.held_bytes = self.held_bytes.saturating_sub(link.held_bytes);
            self.places.remove(&link.stations);
            *link = Link::new(stations);
            place
        };
        self.places.insert(stations, place);
        place
    }
}
