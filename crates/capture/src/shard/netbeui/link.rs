//! Two stations: their numbered frames in order (IEEE 802.2 section 7.5), and their sessions.
//!
//! The receiver refuses what comes behind a lost frame, and the sender retransmits from there. So a
//! frame that comes early waits, until those before it come, or until the receiver acknowledges them:
//! then only the recorder missed them.

use std::collections::VecDeque;

use super::session::{Part, Session};
use crate::frame::Address;
use crate::netbeui::{Command, Control, Frame, SessionFrame};
use crate::shard::Env;
use crate::tcp::EndReason;

/// Sessions of two stations; each end has one byte for its number.
pub const SESSIONS_MAX: usize = 254;
/// Numbers of frames go from 0 to 127.
const NUMBER_MAX: u8 = 0x7f;
/// Frames that wait for one before them; a sender has fewer in flight.
const EARLY_MAX: usize = 32;
/// Frames with old numbers in a row after which the numbers must have begun again.
const OLD_MAX: u32 = 16;
/// The same frame within this time was recorded twice, ns.
const TWICE_NS: i64 = 1_000_000;

/// A numbered frame.
#[derive(Clone, Copy, Debug)]
struct Numbered<'a> {
    number: u8,
    session: SessionFrame<'a>,
    time: i64,
    frame: u64,
}

/// A numbered frame that waits for those before it, with its data apart.
#[derive(Clone, Debug)]
struct Waiting {
    numbered: Numbered<'static>,
    data: Vec<u8>,
}

/// What one station sends to the other.
#[derive(Clone, Debug, Default)]
struct Direction {
    /// The number of the next frame, once known.
    next: Option<u8>,
    early: VecDeque<Waiting>,
    /// Frames with old numbers in a row.
    old: u32,
    /// Number and time of the last frame.
    last: Option<(u8, i64)>,
    /// Number and time of a frame, and the place of its session, until it is acknowledged: one
    /// sample at a time.
    sample: Option<(u8, i64, usize)>,
}

/// Two stations.
#[derive(Clone)]
pub struct Link {
    /// The lower address first.
    pub stations: [Address; 2],
    pub last: i64,
    pub sessions: Vec<Session>,
    /// Bytes of frames and parts that wait.
    pub held_bytes: usize,
    directions: [Direction; 2],
}

/// How far a number is ahead of another: negative if it is before it.
fn ahead(number: u8, of: u8) -> i8 {
    // Seven bits in the upper part of eight.
    ((number.wrapping_sub(of) << 1) as i8) >> 1
}

impl Link {
    /// Two stations without a session.
    pub fn new(stations: [Address; 2]) -> Link {
        let directions = [Direction::default(), Direction::default()];
        Link { stations, last: 0, sessions: Vec::new(), held_bytes: 0, directions }
    }

    /// Takes a frame of end `from`.
    pub fn frame(
        &mut self,
        frame: &Frame<'_>,
        from: usize,
        time: i64,
        number_in_file: u64,
        env: &mut Env<'_>,
    ) {
        self.last = time;
        match frame.control {
            Control::Information { number, expects } => {
                self.acknowledge(1 - from, expects, None, env);
                match frame.session {
                    Some(session) => {
                        let frame = number_in_file;
                        self.take(&Numbered { number, session, time, frame }, from, env);
                    }
                    // Of something else: only its number counts.
                    None => self.directions[from].next = Some(number.wrapping_add(1) & NUMBER_MAX),
                }
            }
            Control::Supervisory { expects } => {
                self.acknowledge(1 - from, expects, Some(time), env);
            }
            Control::Connect | Control::Disconnect => {
                self.sessions.iter_mut().for_each(|session| session.disconnect(from));
                self.end(EndReason::Reused, env);
                let next = (frame.control == Control::Connect).then_some(0);
                self.directions = [(); 2].map(|()| Direction { next, ..Direction::default() });
            }
            Control::Other => {}
        }
        self.count_held();
    }

    /// Ends all sessions. Returns how many carried SMB.
    pub fn end(&mut self, reason: EndReason, env: &mut Env<'_>) -> u64 {
        for from in [0, 1] {
            self.skip_holes(from, env);
        }
        self.sessions.drain(..).map(|mut session| u64::from(session.end(reason, env))).sum()
    }

    /// Gives up what waits.
    pub fn release_memory(&mut self, env: &mut Env<'_>) {
        for from in [0, 1] {
            self.skip_holes(from, env);
            self.sessions.iter_mut().for_each(|session| session.lose(from, env));
        }
        self.count_held();
    }

    fn count_held(&mut self) {
        let early = self.directions.iter().flat_map(|direction| &direction.early);
        let early: usize = early.map(|waiting| waiting.data.len() + size_of::<Waiting>()).sum();
        self.held_bytes = early + self.sessions.iter().map(Session::held_bytes).sum::<usize>();
    }

    /// The other end expects that number of `sender` next. With a time it does nothing else, which
    /// shows the round trip.
    fn acknowledge(&mut self, sender: usize, expects: u8, bare: Option<i64>, env: &mut Env<'_>) {
        let direction = &mut self.directions[sender];
        if let Some((number, sent, session)) = direction.sample
            && ahead(expects, number) > 0
        {
            direction.sample = None;
            if let (Some(time), Some(session)) = (bare, self.sessions.get_mut(session)) {
                session.add_round_trip(sender, time.saturating_sub(sent));
            }
        }
        while let direction = &self.directions[sender]
            && !direction.early.is_empty()
            && direction.next.is_some_and(|next| ahead(expects, next) > 0)
        {
            self.skip_hole(sender, env);
        }
    }

    /// Takes a numbered frame of end `from`.
    fn take(&mut self, frame: &Numbered<'_>, from: usize, env: &mut Env<'_>) {
        let direction = &mut self.directions[from];
        let next = *direction.next.get_or_insert(frame.number);
        match ahead(frame.number, next) {
            0 => {
                self.accept(frame, from, env);
                self.release(from, env);
            }
            1.. => self.keep(frame, from, env),
            _ => {
                let is_copy = direction.last.is_some_and(|(number, time)| {
                    number == frame.number && frame.time.abs_diff(time) < TWICE_NS as u64
                });
                direction.old += 1;
                direction.sample = None;
                if is_copy {
                    env.out.coverage.frames_repeated += 1;
                } else if direction.old > OLD_MAX {
                    self.lose(from, env);
                    self.accept(frame, from, env);
                } else if let Some(session) = self.session(frame, from, None, env)
                    && let Some(session) = self.sessions.get_mut(session)
                {
                    session.measured[from].retransmissions += 1;
                }
            }
        }
    }

    /// Keeps a frame until those before it come.
    fn keep(&mut self, frame: &Numbered<'_>, from: usize, env: &mut Env<'_>) {
        let early = &mut self.directions[from].early;
        let place = early
            .iter()
            .rposition(|other| ahead(other.numbered.number, frame.number) <= 0)
            .map_or(0, |place| place + 1);
        let before = place.checked_sub(1).and_then(|place| early.get(place));
        if before.is_some_and(|other| other.numbered.number == frame.number) {
            return;
        }
        let session = SessionFrame { data: &[], ..frame.session };
        let Numbered { number, time, frame: in_file, .. } = *frame;
        let numbered = Numbered { number, session, time, frame: in_file };
        early.insert(place, Waiting { numbered, data: frame.session.data.to_vec() });
        if early.len() > EARLY_MAX {
            self.skip_hole(from, env);
        }
    }

    /// What comes before the first frame that waits is lost.
    fn skip_hole(&mut self, from: usize, env: &mut Env<'_>) {
        let Some(first) = self.directions[from].early.front() else { return };
        self.directions[from].next = Some(first.numbered.number);
        self.lose(from, env);
        self.release(from, env);
    }

    fn skip_holes(&mut self, from: usize, env: &mut Env<'_>) {
        while !self.directions[from].early.is_empty() {
            self.skip_hole(from, env);
        }
    }

    /// Frames were lost, of whatever session.
    fn lose(&mut self, from: usize, env: &mut Env<'_>) {
        for session in &mut self.sessions {
            session.measured[from].gaps += 1;
            session.lose(from, env);
        }
    }

    /// Accepts the frames that waited and are next.
    fn release(&mut self, from: usize, env: &mut Env<'_>) {
        while let direction = &mut self.directions[from]
            && let (Some(first), Some(next)) = (direction.early.front(), direction.next)
            && ahead(first.numbered.number, next) <= 0
            && let Some(Waiting { numbered, data }) = direction.early.pop_front()
        {
            if numbered.number == next {
                let session = SessionFrame { data: &data, ..numbered.session };
                self.accept(&Numbered { session, ..numbered }, from, env);
            }
        }
    }

    /// Takes a frame that is next.
    fn accept(&mut self, frame: &Numbered<'_>, from: usize, env: &mut Env<'_>) {
        let direction = &mut self.directions[from];
        direction.next = Some(frame.number.wrapping_add(1) & NUMBER_MAX);
        direction.old = 0;
        direction.last = Some((frame.number, frame.time));
        let is_last = match frame.session.command {
            Command::DATA_ONLY_LAST => true,
            Command::DATA_FIRST_MIDDLE => false,
            Command::SESSION_INITIALIZE => {
                self.session(frame, from, Some(from), env);
                return;
            }
            Command::SESSION_CONFIRM => {
                self.session(frame, from, None, env);
                return;
            }
            Command::SESSION_END => return self.end_session(frame, from, env),
            _ => return,
        };
        let place = self.session(frame, from, None, env);
        let Some((place, session)) = place.and_then(|at| Some((at, self.sessions.get_mut(at)?)))
        else {
            return;
        };
        let direction = &mut self.directions[from];
        direction.sample.get_or_insert((frame.number, frame.time, place));
        session.last = frame.time;
        session.measured[from].packets += 1;
        let part = Part::from_frame(&frame.session, frame.time, frame.frame);
        session.data(&part, is_last, self.stations, from, env);
    }

    /// The place of a frame's session; a new one if its client asks for it, or if none is known.
    fn session(
        &mut self,
        frame: &Numbered<'_>,
        from: usize,
        client: Option<usize>,
        env: &mut Env<'_>,
    ) -> Option<usize> {
        let numbers = numbers_of(&frame.session, from);
        let known = self.sessions.iter().position(|session| session.numbers == numbers);
        if known.is_some() && client.is_none() {
            return known;
        }
        let session = Session::new(numbers, client, frame.time);
        let place = match known {
            Some(place) => place,
            None if self.sessions.len() < SESSIONS_MAX => {
                self.sessions.push(session);
                return Some(self.sessions.len() - 1);
            }
            None => {
                let idle = self.sessions.iter().zip(0..).min_by_key(|(session, _)| session.last);
                idle?.1
            }
        };
        let old = self.sessions.get_mut(place)?;
        let is_evicted = old.end(EndReason::Reused, env) && known.is_none();
        env.out.coverage.connections_evicted += u64::from(is_evicted);
        *old = session;
        Some(place)
    }

    fn end_session(&mut self, frame: &Numbered<'_>, from: usize, env: &mut Env<'_>) {
        let numbers = numbers_of(&frame.session, from);
        if let Some(session) = self.sessions.iter_mut().find(|one| one.numbers == numbers) {
            session.last = frame.time;
            session.disconnect(from);
            session.end(EndReason::Reused, env);
            *session = Session::new(numbers, None, frame.time);
        }
    }
}

/// The numbers that the ends give a frame's session.
fn numbers_of(session: &SessionFrame<'_>, from: usize) -> [u8; 2] {
    match from {
        0 => [session.source, session.destination],
        _ => [session.destination, session.source],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_round() {
        assert_eq!([ahead(5, 5), ahead(0, 127), ahead(127, 0), ahead(3, 1)], [0, 1, -1, 2]);
        assert_eq!([ahead(63, 0), ahead(64, 0)], [63, -64]);
    }
}
