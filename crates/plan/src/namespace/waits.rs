//! How long clients keep a list of servers after a change.
//!
//! Owns the arithmetic of waiting times, nothing else. A client asks again when its referral expires (the TTL, which
//! Windows since XP SP2 does not renew on use), and a client with open files keeps its list until they are closed.
//! Before that, whom it asks must know the change: namespace servers and domain controllers poll the PDC emulator once
//! an hour, and the directory replicates between sites.
//!
//! "How referral timeouts work in DFS Namespaces" (Storage at Microsoft, 2006); "How DFS Works" (Windows Server
//! 2003); docs/method/namespace.md.

use serde::{Deserialize, Serialize};

/// TTL of a root's referral where the input does not say.
pub const ROOT_TTL_S: u32 = 300;
/// TTL of a link's referral where the input does not say.
pub const LINK_TTL_S: u32 = 1_800;

/// What the waiting times assume of servers and clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumptions {
    /// The interval at which namespace servers and domain controllers read the PDC emulator (`SyncIntervalSec`).
    pub sync_s: u32,
    /// How long the directory takes to replicate to all sites.
    pub replication_s: u32,
    /// The longest time for which a client has files open without a break.
    pub open_s: u32,
    /// Whether there are clients that renew the TTL on use (before Windows XP SP2 and Server 2003 SP1).
    pub has_renewing_clients: bool,
    /// The longest time for which a client that counts is asleep: its TTL does not elapse meanwhile.
    pub asleep_s: u32,
}

impl Default for Assumptions {
    /// An hour, a quarter of an hour, half a day; no old clients; sleeping clients are left to the gate.
    fn default() -> Assumptions {
        Assumptions {
            sync_s: 3_600,
            replication_s: 900,
            open_s: 43_200,
            has_renewing_clients: false,
            asleep_s: 0,
        }
    }
}

/// One reason to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPart {
    pub seconds: u64,
    pub because: String,
}

/// A waiting time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// After this long after the change, no client that meets the assumptions holds the old list.
    pub total_s: u64,
    /// The part of it in which the change may still be unknown to whom a client asks.
    pub known_s: u64,
    /// TTL of the lists that are waited for.
    pub ttl_s: u32,
    pub parts: Vec<WaitPart>,
}

/// The wait until no client holds a list from before a change.
pub fn wait(ttl_s: u32, assumed: &Assumptions) -> Wait {
    let part = |seconds: u32, because: &str| WaitPart {
        seconds: u64::from(seconds),
        because: because.to_owned(),
    };
    let mut parts = vec![
        part(
            assumed.sync_s,
            "namespace servers and domain controllers read the PDC emulator at this interval",
        ),
        part(assumed.replication_s, "the directory replicates to all sites"),
        part(ttl_s, "a client keeps a referral for its TTL"),
        part(assumed.open_s, "a client with open files keeps its list until they are closed"),
    ];
    if assumed.has_renewing_clients {
        let because =
            "clients before Windows XP SP2 renew the TTL on use: a pause of one more TTL ends it";
        parts.push(part(ttl_s, because));
    }
    if assumed.asleep_s > 0 {
        parts.push(part(assumed.asleep_s, "the TTL of a sleeping client does not elapse"));
    }
    parts.retain(|part| part.seconds > 0);
    Wait {
        total_s: parts.iter().map(|part| part.seconds).sum(),
        known_s: u64::from(assumed.sync_s) + u64::from(assumed.replication_s),
        ttl_s,
        parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_the_sum_of_its_parts() {
        let usual = wait(ROOT_TTL_S, &Assumptions::default());
        assert_eq!(usual.total_s, 3_600 + 900 + 300 + 43_200);
        assert_eq!((usual.known_s, usual.parts.len()), (4_500, 4));
        let old = Assumptions { has_renewing_clients: true, open_s: 0, ..Assumptions::default() };
        assert_eq!(wait(1_800, &old).total_s, 3_600 + 900 + 2 * 1_800);
    }
}
