//! Signing and encryption, today and then.
//!
//! What they cost the server today is in its slices, or else is taken from the calibration, as what they
//! cost the client always is. The server's adds to the operation's time, the client's to that between operations:
//! it signs before it sends, and verifies what has come.

use smbscope_tables::protection::Protection;
use smbscope_tables::slice::Kind;
use smbscope_tables::tables::Connection;

use super::data::Part;
use super::request::{Call, Timed, duration};
use super::role::Role;
use crate::predict::plan::Plan;

/// How a connection signs and encrypts, when it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    signing: Protection,
    encryption: Protection,
}

impl Default for Ways {
    fn default() -> Ways {
        Ways { signing: Protection::HmacSha256, encryption: Protection::Aes128Ccm }
    }
}

impl Ways {
    pub(super) fn of(one: &Connection) -> Ways {
        Ways {
            signing: Protection::signing(one.dialect.as_deref(), one.signing_algorithm.as_deref()),
            encryption: Protection::encryption(one.cipher.as_deref()),
        }
    }

    /// Today's and then's. What is encrypted is not signed.
    fn turn(&self, plan: &Plan, is_signed: bool, is_encrypted: bool) -> (Protection, Protection) {
        let none = Protection::None;
        let signing = if is_signed { self.signing } else { none };
        let encryption = if is_encrypted { self.encryption } else { none };
        let pick = |signing, encryption| if encryption == none { signing } else { encryption };
        let then = pick(plan.signing.unwrap_or(signing), plan.encryption.unwrap_or(encryption));
        (pick(signing, encryption), then)
    }
}

/// What was done, and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    /// Operations that are protected in another way then.
    pub changed: u64,
    /// Of them those for which a cost is not known: they stay as they are.
    pub unknown: u64,
    /// What those of executions cost more, ns: the server's processors, the client's. Below zero where they cost less.
    pub more_ns: (i64, i64),
}

impl Protected {
    /// Adds what a request of an execution costs more.
    pub(super) fn add(&mut self, server_ns: i64, client: (i64, i64)) {
        self.more_ns.0 = self.more_ns.0.saturating_add(server_ns);
        self.more_ns.1 = self.more_ns.1.saturating_add(client.0 + client.1);
    }
}

/// What an operation costs by today's protection and by then's, ns: the server for request and reply, the client.
type Costs = ((f64, f64), (f64, f64));

/// Another protection in the place of today's.
pub(super) struct Turn {
    today: Protection,
    /// Where they are known.
    costs: Option<(Costs, Costs)>,
}

impl Turn {
    /// None where it is the same.
    pub(super) fn of(plan: &Plan, ways: Ways, call: &Call) -> Option<Turn> {
        let (today, then) = ways.turn(plan, call.is_signed, call.is_encrypted);
        if today == then || has_rules_of_its_own(call) {
            return None;
        }
        let costs = |of: Protection| match &plan.calibration {
            _ if of == Protection::None => Some(Costs::default()),
            Some(calibration) => calibration.get(of).map(|costs| costs.of(call.bytes)),
            None => None,
        };
        let costs = match (costs(today), costs(then)) {
            (Some(before), Some(after)) => Some((before, after)),
            // The server's own slices say what it saves; what the client does is left as it is.
            (None, Some(after)) if is_seen(call) && then == Protection::None => {
                Some((Costs::default(), after))
            }
            _ => None,
        };
        Some(Turn { today, costs })
    }

    /// What the client takes longer before the request is sent, and after the reply has come, ns: neither is the
    /// operation's own time, which passes on the wire.
    pub(super) fn client(&self) -> (i64, i64) {
        let Some(((_, before), (_, after))) = self.costs else { return (0, 0) };
        (ns(after.0) - ns(before.0), ns(after.1) - ns(before.1))
    }

    /// Makes it the server's; gives what is saved, ns.
    pub(super) fn server(
        &self,
        plan: &Plan,
        call: &Call,
        timed: &mut Timed,
        counts: &mut Protected,
    ) -> i64 {
        counts.changed += 1;
        let Some(((before, _), (after, _))) = self.costs else {
            counts.unknown += 1;
            return 0;
        };
        // Processors that are faster are so for this, too.
        let [share_in, share_out] = SLICES.map(|kind| plan.slices[kind as usize]);
        let then = [ns(after.0 * share_in), ns(after.1 * share_out)];
        if is_seen(call) || self.today == Protection::None {
            // Parts of their own, of which other changes may have left a share.
            timed.has_slices = true;
            let left = CRYPTO.map(|part| timed.parts[part].1);
            for (part, then) in CRYPTO.into_iter().zip(then) {
                timed.parts[part].1 = then;
            }
            left.iter().sum::<i64>() - then.iter().sum::<i64>()
        } else {
            // Today's is somewhere in the server's time.
            let saved = ns(before.0 + before.1) - then.iter().sum::<i64>();
            let server = &mut timed.parts[Part::Server as usize];
            server.1 = (server.1 - saved).max(0);
            saved
        }
    }
}

/// The server's slices.
const SLICES: [Kind; 2] = [Kind::CryptoIn, Kind::CryptoOut];
/// The same as parts.
const CRYPTO: [usize; 2] =
    [Part::FIRST_SLICE + Kind::CryptoIn as usize, Part::FIRST_SLICE + Kind::CryptoOut as usize];

/// Whether how it is protected does not follow the connection's setting: a Negotiate is always plain, a TreeConnect
/// of 3.1.1 and the Ioctl that validates a Negotiate are always signed (MS-SMB2 section 3.2.4.1.1).
fn has_rules_of_its_own(call: &Call) -> bool {
    call.role == Role::Session || (call.role == Role::Other && call.handle.is_none())
}

/// Whether today's was measured.
fn is_seen(call: &Call) -> bool {
    call.has_slices && SLICES.iter().any(|kind| call.slices[*kind as usize] > 0)
}

fn ns(ns: f64) -> i64 {
    duration(ns as i64)
}
