//! Reads, writes and flushes that another thread does for a request.

use super::{Assembler, KEPT_MAX};
use crate::ring_event::{Head, Io, Within, Work};

/// Most flushes of a process that are in flight.
const FLUSHES_MAX: usize = 1024;

impl Assembler {
    pub(super) fn hand_over(&mut self, head: Head, work: Work, place: u64, what: Io) {
        let key = (head.process, work.request);
        let Some(member) = self.served.get_mut(&key).and_then(|served| served.member.as_mut())
        else {
            return;
        };
        member.pause(head.time, work.crypto, work.busy);
        member.within += work.within;
        member.handed_over = Some((what, place));
        member.is_beside = true;
        if what == Io::Flush {
            let flushes = self.flushes.entry(head.process).or_default();
            if flushes.len() < FLUSHES_MAX {
                flushes.push(work.request);
            } else {
                self.losses.given_up += 1;
            }
            return;
        }
        if self.async_io.len() >= KEPT_MAX {
            self.losses.given_up += self.async_io.len() as u64;
            self.async_io.clear();
        }
        self.async_io.insert((head.process, what, place), work.request);
    }

    pub(super) fn io(
        &mut self,
        head: Head,
        request: u64,
        place: u64,
        what: Io,
        began: u64,
        within: Within,
    ) {
        let took = head.time.saturating_sub(began);
        if request != 0 {
            let served = self.served.get_mut(&(head.process, request));
            if let Some(member) = served.and_then(|served| served.member.as_mut()) {
                match what {
                    Io::Flush => member.own_flush += took,
                    Io::Read | Io::Write => member.own_io += took,
                }
            }
            return;
        }
        let request = match what {
            // The owner is known only if there is exactly one candidate.
            Io::Flush => match self.flushes.get_mut(&head.process) {
                Some(flushes) if flushes.len() == 1 => flushes.remove(0),
                Some(flushes) if flushes.len() > 1 => {
                    self.losses.ambiguous_flushes += 1;
                    return;
                }
                _ => return self.flush_of_write(head, took, within),
            },
            Io::Read | Io::Write => match self.async_io.remove(&(head.process, what, place)) {
                Some(request) => request,
                None => return,
            },
        };
        let served = self.served.get_mut(&(head.process, request));
        if let Some(member) = served.and_then(|served| served.member.as_mut()) {
            member.io += took;
            member.within += within;
            member.io_ended = head.time;
        }
    }

    /// A flush that no request handed over: Samba flushes written-through data after its write has
    /// ended, outside of any request (pwrite_fsync_send in smbd). The owner is known only if there is
    /// exactly one such write.
    fn flush_of_write(&mut self, head: Head, took: u64, within: Within) {
        let members = self.served.iter_mut().filter(|((process, _), _)| *process == head.process);
        let mut written = members.filter_map(|(_, served)| {
            served.member.as_mut().filter(|member| {
                matches!(member.handed_over, Some((Io::Write, _))) && member.io_ended != 0
            })
        });
        let Some(member) = written.next() else { return };
        if written.next().is_some() {
            self.losses.ambiguous_flushes += 1;
            return;
        }
        member.then_flush += took;
        member.within += within;
        member.io_ended = head.time;
    }
}
