//! One request message and its reply, as it was recorded and as it would be, within bounds.

use smbscope_event::slice::Kind;

use super::client::Execution;
use super::data::Part;
use super::role::Role;

/// Points in time, durations and sizes beyond these are nonsense that a damaged file holds; sums of
/// what is within them do not overflow, and none is walked through for long.
const TIME_MAX_NS: i64 = 4_000_000_000_000_000_000;
pub(super) const DURATION_MAX_NS: i64 = 1_000_000_000_000_000;
pub(super) const MESSAGE_MAX_BYTES: u64 = 32 << 20;

pub(super) fn point(ns: i64) -> i64 {
    ns.clamp(-TIME_MAX_NS, TIME_MAX_NS)
}

pub(super) fn duration(ns: i64) -> i64 {
    ns.clamp(0, DURATION_MAX_NS)
}

/// What one operation took, and would take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timed {
    pub(super) before_ns: i64,
    pub(super) after_ns: i64,
    /// Requests that it would be.
    pub(super) requests: i64,
    /// What it is made of, in the order of [`Part::ALL`].
    pub(super) parts: [(i64, i64); Part::ALL.len()],
}

impl Timed {
    pub(super) fn set(&mut self, part: Part, ns: (i64, i64)) {
        self.parts[part as usize] = ns;
    }

    /// What is in no part is the rest.
    pub(super) fn set_rest(&mut self) {
        let known = |of: fn(&(i64, i64)) -> i64| self.parts.iter().map(of).sum::<i64>();
        let rest = (self.before_ns - known(|part| part.0), self.after_ns - known(|part| part.1));
        self.set(Part::Rest, rest);
    }
}

/// One request message and its reply: an operation, or a whole compound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
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
    /// On the wire, request and reply.
    pub(super) bytes: (u64, u64),
    pub(super) slices: [i64; Kind::PARTS],
    pub(super) server_ns: i64,
    pub(super) transferred: u64,
    pub(super) handle: Option<(u32, u64)>,
    pub(super) offset: Option<u64>,
    /// Whether it asks for stable storage.
    pub(super) is_through: bool,
    /// Operations in it.
    pub(super) members: u64,
    /// Of them those that the client's cache answers.
    pub(super) answered: u64,
    pub(super) lead_answered: bool,
}

impl Call {
    /// Adds what the server did for a later member: the lead's reply waited for it in `send`.
    pub(super) fn add_member(&mut self, slices: &[i64; Kind::PARTS]) {
        const SEND: usize = Kind::Send as usize;
        let kinds = self.slices.iter_mut().zip(slices).enumerate();
        let mut waited = 0;
        for (_, (sum, ns)) in kinds.filter(|(kind, _)| *kind != SEND) {
            *sum += ns;
            waited += ns;
        }
        self.slices[SEND] = (self.slices[SEND] - waited).max(0);
    }
}
