//! What is behind a named pipe answers late: a service of the server (spooler, registry, a program of the site), not its
//! file system (MS-RPCE section 2.1.1.2: calls of RPC by FSCTL_PIPE_TRANSCEIVE).

use std::collections::BTreeSet;

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::account::EVENT_NS;
use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};

pub(crate) const KIND: KindInfo = KindInfo::new("slow-calls", "services behind pipes are slow")
    .with_actor(Actor::Server)
    .with_remedies(&[
        (
            "server",
            "see what the service waits for: the spooler for a printer that is off (use TCP/IP ports without SNMP status), others for \
             a domain controller or a name server; Samba: rpcd logs, log level = 3",
        ),
        ("measurement", "record at the server, all ports: what it asks while the call waits is the cause"),
    ]);

/// A call that takes this long delays its caller, ns.
const SLOW_NS: i64 = 1_000_000_000;
/// Fewest of them.
const CALLS_MIN: u64 = 3;

/// Calls that were answered late.
#[derive(Default)]
pub(crate) struct SlowCalls {
    calls: Attribution,
    pipes: BTreeSet<String>,
}

impl Detector for SlowCalls {
    fn see(&mut self, op: &Operation) {
        // Reads of a pipe may wait for an event; a call is one request with its answer.
        if !op.is_pipe || !op.is_timed || op.act != Act::Other || op.explained.is_some() {
            return;
        }
        let Some((server_ns, _)) = op.split() else { return };
        if (SLOW_NS..EVENT_NS).contains(&server_ns) {
            self.calls.add(op, op.of_busy(server_ns));
            if let Some(path) = op.path_name().filter(|_| self.pipes.len() < 3) {
                self.pipes.insert(path.to_owned());
            }
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        if self.calls.operations < CALLS_MIN {
            return Vec::new();
        }
        let pipes: Vec<_> = self.pipes.into_iter().collect();
        let what = match pipes.len() {
            0 => "Services of the server answer calls late".to_owned(),
            _ => format!("Services of the server answer calls late: {}", pipes.join(", ")),
        };
        let because = "the calls go through a named pipe, so that a service answers them, not the file system; the network takes a small \
                       part of the time";
        let kind = FindingKind::SlowCalls;
        let candidate = Candidate::new(kind, what, self.calls, Confidence::Likely, because);
        vec![candidate.of_events()]
    }
}
