//! Signing and encryption, recorded and changed.
//!
//! The server's recorded cost is in its slices, or otherwise comes from the calibration; the client's always comes
//! from the calibration. The server's cost is part of the operation's time. The client's adds to the time between
//! operations: it signs before it sends, and verifies after it has received.

use smbscope_tables::protection::Protection;
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::Connection;

use super::data::Part;
use super::request::{OperationTime, Request, duration};
use super::role::Role;
use crate::predict::crypto::Side;
use crate::predict::plan::Plan;

/// The algorithms with which a connection signs and encrypts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Algorithms {
    signing: Protection,
    encryption: Protection,
}

impl Default for Algorithms {
    fn default() -> Algorithms {
        Algorithms { signing: Protection::HmacSha256, encryption: Protection::Aes128Ccm }
    }
}

impl Algorithms {
    pub(super) fn from_row(one: &Connection) -> Algorithms {
        Algorithms {
            signing: Protection::signing(one.dialect.as_deref(), one.signing_algorithm.as_deref()),
            encryption: Protection::encryption(one.cipher.as_deref()),
        }
    }

    /// The recorded and the new protection of a message. Encrypted messages are not signed.
    fn change(&self, plan: &Plan, is_signed: bool, is_encrypted: bool) -> (Protection, Protection) {
        let none = Protection::None;
        let signing = if is_signed { self.signing } else { none };
        let encryption = if is_encrypted { self.encryption } else { none };
        let pick = |signing, encryption| if encryption == none { signing } else { encryption };
        let then = pick(plan.signing.unwrap_or(signing), plan.encryption.unwrap_or(encryption));
        (pick(signing, encryption), then)
    }
}

/// How many operations change their protection, and what that costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectionEffect {
    /// Operations that are protected differently.
    pub changed: u64,
    /// How many of those stay unchanged because a cost is not known.
    pub unknown: u64,
    /// Additional time of those in executions of scenarios, ns: of the server's CPUs, of the client's. Negative where
    /// it is saved.
    pub more_ns: (i64, i64),
}

impl ProtectionEffect {
    /// Adds the additional cost of a request of an execution.
    pub(super) fn add(&mut self, server_ns: i64, client: (i64, i64)) {
        self.more_ns.0 = self.more_ns.0.saturating_add(server_ns);
        self.more_ns.1 = self.more_ns.1.saturating_add(client.0 + client.1);
    }
}

/// What a protection costs an operation, ns: the server for request and reply, the client likewise.
type Costs = ((f64, f64), (f64, f64));

/// Another protection instead of the recorded one.
pub(super) struct ProtectionChange {
    today: Protection,
    /// Recorded and new, where they are known.
    costs: Option<(Costs, Costs)>,
}

impl ProtectionChange {
    /// None where the protection stays the same.
    pub(super) fn from_plan(
        plan: &Plan,
        algorithms: Algorithms,
        request: &Request,
    ) -> Option<ProtectionChange> {
        let (today, then) = algorithms.change(plan, request.is_signed, request.is_encrypted);
        if today == then || has_rules_of_its_own(request) {
            return None;
        }
        let costs = |of: Protection| match &plan.calibration {
            _ if of == Protection::None => Some(Costs::default()),
            Some(calibration) => calibration.get(of).map(|costs| costs.of(request.bytes)),
            None => None,
        };
        let costs = match (costs(today), costs(then)) {
            (Some(before), Some(after)) => Some((before, after)),
            // The server's own slices show what it saves; the client's time stays unchanged.
            (None, Some(after)) if is_measured(request) && then == Protection::None => {
                Some((Costs::default(), after))
            }
            _ => None,
        };
        Some(ProtectionChange { today, costs })
    }

    /// How much longer the client takes before it sends the request, and after it has received the reply, ns. Neither
    /// is part of the operation's own time, which is seen on the wire.
    pub(super) fn client(&self) -> (i64, i64) {
        let Some(((_, before), (_, after))) = self.costs else { return (0, 0) };
        (ns(after.0) - ns(before.0), ns(after.1) - ns(before.1))
    }

    /// The server's time for the request as the calibration has it, with today's protection, ns.
    pub(super) fn serves_ns(&self, plan: &Plan, request: &Request) -> Option<i64> {
        let plain = plan.calibration.as_ref()?.plain.as_ref()?;
        let ((before, _), _) = self.costs?;
        let Side { inbound, outbound } = plain;
        let plain_ns = inbound.of(request.bytes.0) + outbound.of(request.bytes.1);
        Some(ns(plain_ns + before.0 + before.1))
    }

    /// Adds the server's cost; returns the time saved, ns.
    pub(super) fn server(
        &self,
        plan: &Plan,
        request: &Request,
        timed: &mut OperationTime,
        counts: &mut ProtectionEffect,
    ) -> i64 {
        counts.changed += 1;
        let Some(((before, _), (after, _))) = self.costs else {
            counts.unknown += 1;
            return 0;
        };
        // Faster CPUs are faster for this, too.
        let [share_in, share_out] = SLICES.map(|kind| plan.slices[kind as usize]);
        let then = [ns(after.0 * share_in), ns(after.1 * share_out)];
        if is_measured(request) || self.today == Protection::None {
            // Parts of their own, which other changes may already have shortened.
            timed.has_slices = true;
            let left = CRYPTO.map(|part| timed.parts[part].1);
            for (part, then) in CRYPTO.into_iter().zip(then) {
                timed.parts[part].1 = then;
            }
            left.iter().sum::<i64>() - then.iter().sum::<i64>()
        } else {
            // The recorded cost is somewhere in the server's time.
            let saved = ns(before.0 + before.1) - then.iter().sum::<i64>();
            let server = &mut timed.parts[Part::Server as usize];
            server.1 = (server.1 - saved).max(0);
            saved
        }
    }
}

/// The server's slices.
const SLICES: [Kind; 2] = [Kind::CryptoIn, Kind::CryptoOut];
/// Their indices among the parts.
const CRYPTO: [usize; 2] =
    [Part::FIRST_SLICE + Kind::CryptoIn as usize, Part::FIRST_SLICE + Kind::CryptoOut as usize];

/// Whether the protection does not follow the connection's setting: a Negotiate is always plain, a TreeConnect of 3.1.1
/// and the Ioctl that validates a Negotiate are always signed (MS-SMB2 section 3.2.4.1.1).
fn has_rules_of_its_own(request: &Request) -> bool {
    request.role == Role::Session || (request.role == Role::Other && request.handle.is_none())
}

/// Whether the recorded cost was measured.
fn is_measured(request: &Request) -> bool {
    request.has_slices && SLICES.iter().any(|kind| request.slices[*kind as usize] > 0)
}

fn ns(ns: f64) -> i64 {
    duration(ns as i64)
}
