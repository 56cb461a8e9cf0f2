//! One request message and its reply, as recorded and as predicted, within bounds.

use smbscope_tables::slice::Kind;

use super::Saving;
use super::blocks::Access;
use super::cache_hits::HitShift;
use super::client::Execution;
use super::data::Part;
use super::durability::DurabilityChange;
use super::role::Role;
use crate::predict::plan::Plan;

/// Points in time, durations and sizes beyond these come from damaged files; sums within them do not overflow, and
/// loops over them are short.
const TIME_MAX_NS: i64 = 4_000_000_000_000_000_000;
pub(super) const DURATION_MAX_NS: i64 = 1_000_000_000_000_000;
pub(super) const MESSAGE_MAX_BYTES: u64 = 32 << 20;

/// A multiple of a time; exactly the time for a factor of 1.
pub(super) fn times(ns: i64, factor: f64) -> i64 {
    if factor == 1.0 { ns } else { duration((ns as f64 * factor) as i64) }
}

pub(super) fn point(ns: i64) -> i64 {
    ns.clamp(-TIME_MAX_NS, TIME_MAX_NS)
}

pub(super) fn duration(ns: i64) -> i64 {
    ns.clamp(0, DURATION_MAX_NS)
}

/// How long one operation took, and how long it takes with the changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OperationTime {
    pub(super) before_ns: i64,
    pub(super) after_ns: i64,
    /// Number of requests that it becomes.
    pub(super) requests: i64,
    /// Whether it has any slice, before or after.
    pub(super) has_slices: bool,
    /// Its parts before and after, in the order of [`Part::ALL`].
    pub(super) parts: [(i64, i64); Part::ALL.len()],
}

impl OperationTime {
    pub(super) fn set(&mut self, part: Part, ns: (i64, i64)) {
        self.parts[part as usize] = ns;
    }

    /// Sets the server's slices; `served` is the factor for the time in which a read is served. Returns the sums before
    /// and after.
    pub(super) fn set_slices(
        &mut self,
        slices: &[i64; Kind::PARTS],
        plan: &Plan,
        served: f64,
    ) -> (i64, i64) {
        self.has_slices = true;
        let mut sums = (0, 0);
        for (place, (&ns, share)) in slices.iter().zip(plan.slices).enumerate() {
            let served = if HitShift::is_served(place) { served } else { 1.0 };
            let ns_then = times(ns, share * served);
            self.parts[Part::FIRST_SLICE + place] = (ns, ns_then);
            sums = (sums.0 + ns, sums.1 + ns_then);
        }
        sums
    }

    /// Adds a longer wait for what the server shares; returns the time saved.
    pub(super) fn wait(&mut self, more_ns: i64) -> i64 {
        let queue = Part::FIRST_SLICE + Kind::Queue as usize;
        let place = if self.has_slices { queue } else { Part::Server as usize };
        let (_, then) = &mut self.parts[place];
        // A wait cannot become negative.
        let more_ns = duration(then.saturating_add(more_ns)) - *then;
        *then += more_ns;
        -more_ns
    }

    /// Adds the change of what stability costs; returns the time saved.
    pub(super) fn make_stable(&mut self, extra: &DurabilityChange) -> i64 {
        self.has_slices |= extra.flush != (0, 0);
        self.parts[Part::Replica as usize].1 = extra.replica_ns;
        // It is a slice of its own where there are slices, and otherwise a part of the server's time.
        let flush = Part::FIRST_SLICE + Kind::Flush as usize;
        let part = match self.parts[flush].0 {
            0 if extra.flush.0 > 0 => Part::Server as usize,
            _ => flush,
        };
        let wait = Part::FIRST_SLICE + Kind::IoWait as usize;
        let more = |(today, then): (i64, i64)| then - today;
        let then = &mut self.parts[part].1;
        *then = (*then + more(extra.flush)).max(0);
        self.parts[wait].1 += more(extra.hand_over);
        -more(extra.flush) - more(extra.hand_over) - extra.replica_ns
    }

    /// Adds `more_ns` to the `local_ns` that it takes without the network: each part of the server in proportion to its
    /// length; the client's share is in the rest.
    pub(super) fn stretch(&mut self, local_ns: i64, more_ns: i64) {
        if more_ns == 0 || local_ns <= 0 {
            return;
        }
        let factor = (1.0 + more_ns as f64 / local_ns as f64).max(0.0);
        self.server().for_each(|part| part.1 = times(part.1, factor));
    }

    /// The server's parts.
    fn server(&mut self) -> impl Iterator<Item = &mut (i64, i64)> {
        let few = if self.has_slices { Part::ALL.len() } else { Part::FIRST_SLICE };
        let parts = self.parts.iter_mut().take(few).enumerate();
        let is_server = |place| place == Part::Server as usize || place >= Part::FIRST_SLICE;
        parts.filter_map(move |(place, part)| is_server(place).then_some(part))
    }

    /// Sets how long it is served, and how long it waits before that. The recorded wait is replaced.
    pub(super) fn serve(&mut self, own_ns: i64, waits_ns: i64) {
        let sum_ns = |timed: &mut OperationTime| timed.server().map(|part| part.1).sum::<i64>();
        let queue = Part::FIRST_SLICE + Kind::Queue as usize;
        for place in [Part::Server as usize, queue] {
            let over_ns = (sum_ns(self) - own_ns).max(0);
            let (_, then) = &mut self.parts[place];
            *then -= over_ns.min(*then).max(0);
        }
        let left_ns = sum_ns(self);
        self.stretch(left_ns, (own_ns - left_ns).min(0));
        let place = if self.has_slices { queue } else { Part::Server as usize };
        self.parts[place].1 = duration(self.parts[place].1.saturating_add(waits_ns));
    }

    /// Sets the rest: the time in no other part.
    pub(super) fn set_rest(&mut self) {
        let few = if self.has_slices { Part::ALL.len() } else { Part::FIRST_SLICE };
        let known = self.parts.iter().take(few);
        let known = known.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let rest = (self.before_ns - known.0, self.after_ns - known.1);
        self.set(Part::Rest, rest);
    }
}

/// One request message and its reply: an operation, or a whole compound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) recording: u32,
    pub(super) link: u32,
    pub(super) client: u32,
    pub(super) command: u32,
    pub(super) role: Role,
    pub(super) compound: Option<u64>,
    pub(super) run: Option<u64>,
    pub(super) execution: Option<Execution>,
    pub(super) is_counted: bool,
    pub(super) start: i64,
    pub(super) elapsed_ns: i64,
    /// How much less time it takes, whatever else changes.
    pub(super) spared: Saving,
    /// Bytes of request and reply on the wire.
    pub(super) bytes: (u64, u64),
    /// Transfer time of both, from the first byte to the last, ns.
    pub(super) sending_ns: i64,
    pub(super) slices: [i64; Kind::PARTS],
    /// Whether any slice is known.
    pub(super) has_slices: bool,
    pub(super) server_ns: i64,
    pub(super) transferred: u64,
    pub(super) handle: Option<(u32, u64)>,
    pub(super) offset: Option<u64>,
    /// Whether it requests stable storage.
    pub(super) is_through: bool,
    pub(super) is_signed: bool,
    pub(super) is_encrypted: bool,
    /// The numbers of its share and application, where they are read.
    pub(super) share: u32,
    pub(super) application: u8,
    /// Number of operations in it.
    pub(super) members: u64,
    /// How many of them the client's cache answers.
    pub(super) answered: u64,
    pub(super) lead_answered: bool,
}

impl Request {
    /// The bytes of a file that it moves, sent at `start` and taking `took_ns`.
    pub(super) fn access(&self, start: i64, took_ns: i64) -> Option<Access> {
        let kind = self.role.moves()?;
        let (handle, offset) = self.handle.zip(self.offset)?;
        let (bytes, end) = (self.transferred, start + took_ns);
        (bytes > 0).then_some(Access { kind, handle, offset, bytes, start, end })
    }

    /// Adds the server's time for a later member: the lead's reply waited for it in `send`.
    pub(super) fn add_member(&mut self, slices: &[i64; Kind::PARTS]) {
        const SEND: usize = Kind::Send as usize;
        let kinds = self.slices.iter_mut().zip(slices).enumerate();
        let mut waited = 0;
        for (_, (sum, ns)) in kinds.filter(|(kind, _)| *kind != SEND) {
            *sum += ns;
            waited += ns;
        }
        self.has_slices |= slices.iter().any(|ns| *ns != 0);
        self.slices[SEND] = (self.slices[SEND] - waited).max(0);
    }
}
