//! Byte ranges are locked by another client (MS-SMB2 section 3.3.5.14): requests that the server
//! refuses, locks that wait, and time that the server waits for locks.

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_tables::tables::Wait;
use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};
use super::super::server_time::MEASURED;

pub(crate) const KIND: KindInfo = KindInfo::new("lock-contention", "lock contention")
    .with_actor(Actor::Application)
    .with_remedies(&[
        (
            "application",
            "lock smaller ranges for a shorter time; databases belong on block storage",
        ),
        ("server", "find out which client holds the locks: smbstatus --byterange, Get-SmbOpenFile"),
    ]);

const REFUSED: [u32; 2] = [Status::FILE_LOCK_CONFLICT.0, Status::LOCK_NOT_GRANTED.0];
/// A program that tries again within this time waits for the lock, ns.
const AGAIN_NS: i64 = 1_000_000_000;
/// Most handles that are followed.
const HANDLES_MAX: usize = 16_384;

/// A handle whose requests were refused.
struct Refused {
    first: i64,
    last: i64,
    attempts: u64,
}

/// Requests that met another client's lock.
#[derive(Default)]
pub(crate) struct LockContention {
    attribution: Attribution,
    /// Time in which locks waited until they were granted, ns.
    blocked_ns: i64,
    /// Time in which programs tried again until they got their lock.
    tried: Attribution,
    refused: HashMap<(u32, u64, Act), Refused, foldhash::fast::RandomState>,
}

impl LockContention {
    /// Adds the time that a program spent trying, when it succeeded.
    fn tried(&mut self, op: &Operation) {
        let (Some((recording, handle)), Some(start)) = (op.handle, op.start) else { return };
        let key = (recording, handle, op.act);
        let end = start.saturating_add(op.elapsed_ns);
        if op.status == Some(0) {
            let refused = self.refused.remove(&key);
            let again = refused.filter(|one| one.attempts > 1 && start - one.last < AGAIN_NS);
            if let Some(refused) = again {
                let ns = start.saturating_sub(refused.first).max(0);
                let frame = op.columns.request_frame.get(op.row).unwrap_or(0);
                let row = Wait {
                    client: op.client_name().unwrap_or_default().to_owned(),
                    server: op.server_name().unwrap_or_default().to_owned(),
                    connection: Some(op.connection),
                    kind: "lock".to_owned(),
                    protocol: format!("{} locks refused", refused.attempts),
                    subject: op.path_name().map(str::to_owned),
                    start: refused.first,
                    last_attempt: refused.last,
                    first_frame: frame,
                    last_frame: frame,
                    ..Wait::default()
                };
                self.tried.add_wait(&row, op.recording, start, ns, ns);
            }
        } else if self.refused.len() < HANDLES_MAX || self.refused.contains_key(&key) {
            let one = self.refused.entry(key).or_insert(Refused { first: start, last: end, attempts: 0 });
            if start.saturating_sub(one.last) >= AGAIN_NS {
                *one = Refused { first: start, last: end, attempts: 0 };
            }
            (one.last, one.attempts) = (end, one.attempts + 1);
        }
    }
}

impl Detector for LockContention {
    fn see(&mut self, op: &Operation) {
        let is_refused = op.status.is_some_and(|status| REFUSED.contains(&status));
        let ends_trying = !self.refused.is_empty()
            && op.status == Some(0)
            && matches!(op.act, Act::Lock | Act::Read | Act::Write);
        if is_refused || ends_trying {
            self.tried(op);
        }
        if is_refused {
            self.attribution.add(op, op.busy_ns);
        } else if op.act == Act::Lock && op.columns.waits.is_set(op.row) {
            self.blocked_ns = self.blocked_ns.saturating_add(op.elapsed_ns);
            self.attribution.add(op, op.elapsed_ns);
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let candidate = Candidate::new(
            FindingKind::LockContention,
            "Byte ranges of files are locked by other clients",
            self.attribution,
            Confidence::Measured,
            "the server refused the requests, or answered when the range was free",
        );
        let tried_ns = self.tried.saved_ns;
        let tried = Candidate::new(
            FindingKind::LockContention,
            "Programs try again and again to lock a range of a file that other clients have locked",
            self.tried,
            Confidence::Measured,
            "the server refused the same open's requests until a later attempt succeeded",
        );
        vec![candidate.beyond_busy(self.blocked_ns), tried.of_events().beyond_busy(tried_ns)]
    }
}

/// Time that the server waited, measured inside the server.
pub(crate) fn measured(attribution: Attribution) -> Candidate {
    Candidate::new(
        FindingKind::LockContention,
        "Operations wait at the server for locks or for other clients",
        attribution,
        Confidence::Measured,
        MEASURED,
    )
}
