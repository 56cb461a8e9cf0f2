//! Signing and encryption, today and then.
//!
//! What they cost the server today is in its slices, or else is taken from the calibration, as what they
//! cost the client always is. It is no time of the line's, and adds to the operation's.

use smbscope_event::protection::Protection;
use smbscope_event::slice::Kind;
use smbscope_event::tables::Connection;

use super::call::{Call, Timed, duration};
use super::data::Part;
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
}

/// Puts another protection in the place of today's; gives what is saved, ns.
pub(super) fn protect(
    plan: &Plan,
    ways: Ways,
    call: &Call,
    timed: &mut Timed,
    counts: &mut Protected,
) -> i64 {
    let (today, then) = ways.turn(plan, call.is_signed, call.is_encrypted);
    if today == then {
        return 0;
    }
    counts.changed += 1;
    let [inbound, outbound] =
        [Kind::CryptoIn, Kind::CryptoOut].map(|kind| Part::FIRST_SLICE + kind as usize);
    let seen = [inbound, outbound].map(|part| timed.parts[part].0);
    let is_seen = seen.iter().any(|ns| *ns > 0);
    let costs = |of: Protection| match &plan.calibration {
        Some(calibration) => calibration.get(of).map(|costs| costs.of(call.bytes)),
        None => (of == Protection::None).then_some(((0.0, 0.0), 0.0)),
    };
    let (before, after) = match (costs(today), costs(then)) {
        (Some(before), Some(after)) => (before, after),
        // The server's own slices say what it saves; what the client does is left as it is.
        (None, Some(after)) if is_seen && then == Protection::None => (((0.0, 0.0), 0.0), after),
        _ => {
            counts.unknown += 1;
            return 0;
        }
    };
    let ns = |ns: f64| duration(ns as i64);
    let then = [ns(after.0.0), ns(after.0.1)];
    let client = ns(before.1) - ns(after.1);
    if is_seen || today == Protection::None {
        // Parts of their own, today and then.
        timed.has_slices = true;
        for (part, then) in [inbound, outbound].into_iter().zip(then) {
            timed.parts[part].1 = then;
        }
        seen.iter().sum::<i64>() - then.iter().sum::<i64>() + client
    } else {
        // Today's is somewhere in the server's time.
        let saved = ns(before.0.0 + before.0.1) - then.iter().sum::<i64>();
        let server = &mut timed.parts[Part::Server as usize];
        server.1 = (server.1 - saved).max(0);
        saved + client
    }
}
