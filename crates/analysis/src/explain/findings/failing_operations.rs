//! Operations fail in a way that users notice: the server has no room or no resources left, refuses a logon, or its
//! storage reports errors (MS-ERREF section 2.3). Statuses with which ordinary work continues (a missing name, the end of
//! a listing, an access that is probed) are not counted.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};
use smbscope_wire::status::Status;

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation, TextId};
use crate::rows::status_class::StatusClass;

pub(crate) const KIND: KindInfo = KindInfo::new("failing-operations", "operations fail")
    .with_actor(Actor::Server)
    .with_remedies(&[LOG]);

/// A status that users notice.
struct Kind {
    status: Status,
    /// What it means, as the rest of "the server ...".
    words: &'static str,
    actor: Actor,
    /// Fewest of them: single ones of some kinds occur in ordinary work.
    least: u64,
    remedy: (&'static str, &'static str),
}

const RESOURCES: (&str, &str) = (
    "Samba",
    "max open files (default 16384 for each process), ulimit -n, and the kernel's limits; Windows: Get-SmbOpenFile shows who holds \
     the handles",
);
const LOG: (&str, &str) = (
    "server",
    "read its log of that time: Samba log.smbd, Windows Microsoft-Windows-SMBServer/Operational and System",
);
const SPACE: (&str, &str) = ("server", "free space or raise the quota of the user or folder");
const STORAGE: (&str, &str) =
    ("server", "look for errors of disks, controllers and file systems: dmesg, smartctl, Event Viewer: System");
const ACCOUNT: (&str, &str) = (
    "client",
    "check the account: password, lock-out, clock (5 min for Kerberos), and the saved credentials (cmdkey /list)",
);
const CONTROLLER: (&str, &str) = (
    "server",
    "its domain controllers do not answer: nltest /sc_query:DOMAIN, wbinfo --ping-dc, and a capture of its ports 88 and 389",
);
const RIGHTS: (&str, &str) =
    ("server", "compare the permissions of the share and of the files with what the program requests");
const SHARE: (&str, &str) = ("client", "the share or its path does not exist: check the mapping, the DFS target, the name");
const SESSION: (&str, &str) = (
    "server",
    "find out why it forgets sessions: a restart, a failover without persistent handles, an expired ticket, an administrator",
);

/// What is counted, by status.
const KINDS: [Kind; 26] = [
    Kind::of(Status::INSUFFICIENT_RESOURCES, "has no resources left", 3, RESOURCES),
    Kind::of(Status::INSUFF_SERVER_RESOURCES, "has no resources left", 3, RESOURCES),
    Kind::of(Status::TOO_MANY_OPENED_FILES, "has too many open files", 3, RESOURCES),
    Kind::of(Status::REQUEST_NOT_ACCEPTED, "accepts no more requests or users", 3, RESOURCES),
    Kind::of(Status::NO_MEMORY, "has no memory left", 1, RESOURCES),
    Kind::of(Status::DISK_FULL, "has no space left", 1, SPACE),
    Kind::of(Status::QUOTA_EXCEEDED, "reports that the quota is exhausted", 1, SPACE),
    Kind::of(Status::IO_DEVICE_ERROR, "reports errors of its storage", 1, STORAGE),
    Kind::of(Status::FILE_CORRUPT_ERROR, "reports damaged files", 1, STORAGE),
    Kind::of(Status::IO_TIMEOUT, "reports timeouts of what is behind it", 3, STORAGE),
    Kind { actor: Actor::Client, ..Kind::of(Status::LOGON_FAILURE, "refuses logons", 5, ACCOUNT) },
    Kind {
        actor: Actor::Client,
        ..Kind::of(Status::ACCOUNT_LOCKED_OUT, "refuses logons: the account is locked", 1, ACCOUNT)
    },
    Kind::of_logon(Status(0xc000_0071), "refuses logons: the password has expired"),
    Kind::of_logon(Status(0xc000_0224), "refuses logons: the password must be changed"),
    Kind::of_logon(Status(0xc000_0072), "refuses logons: the account is disabled"),
    Kind::of_logon(Status(0xc000_0193), "refuses logons: the account has expired"),
    Kind::of_logon(Status(0xc000_006e), "refuses logons: the account is restricted"),
    Kind::of_logon(Status(0xc000_006f), "refuses logons at this time of day"),
    Kind::of_logon(Status(0xc000_015b), "refuses logons of this type to this account"),
    Kind::of_logon(Status(0xc000_0133), "refuses logons: clocks differ"),
    Kind::of(Status(0xc000_005e), "finds no domain controller for logons", 3, CONTROLLER),
    Kind {
        actor: Actor::Client,
        ..Kind::of(Status::BAD_NETWORK_NAME, "does not know the share", 5, SHARE)
    },
    Kind::of(Status::ACCESS_DENIED, "denies access", 10, RIGHTS),
    Kind::of(Status::USER_SESSION_DELETED, "has forgotten the session", 3, SESSION),
    Kind::of(Status::NETWORK_NAME_DELETED, "has removed the share", 3, SESSION),
    Kind::of(Status::NETWORK_SESSION_EXPIRED, "lets sessions expire", 20, SESSION),
];

impl Kind {
    const fn of(
        status: Status,
        words: &'static str,
        least: u64,
        remedy: (&'static str, &'static str),
    ) -> Kind {
        Kind { status, words, actor: Actor::Server, least, remedy }
    }

    /// What keeps an account from logging on, whatever the server does: single refusals are mistakes of people.
    const fn of_logon(status: Status, words: &'static str) -> Kind {
        Kind { status, words, actor: Actor::Client, least: 3, remedy: ACCOUNT }
    }
}

/// Programs probe accesses, accounts and shares: these count only if they are this share of the operations of their kind.
const PROBED: [Status; 3] =
    [Status::ACCESS_DENIED, Status::LOGON_FAILURE, Status::BAD_NETWORK_NAME];
const PROBED_SHARE: f64 = 0.3;
/// Statuses of which nothing more is known count if they are this share.
const REFUSED_SHARE: f64 = 0.5;
/// A program that opens a path this soon after it was denied asks for fewer rights, ns.
const PROBE_NS: i64 = 1_000_000_000;
/// Connections to shares.
const TREES: [&str; 2] = ["TreeConnect", "TreeConnectAndX"];
/// Most statuses that are counted.
const STATUSES_MAX: usize = 256;
/// Most handles that are followed.
const HANDLES_MAX: usize = 1 << 20;

/// Failures of one status.
#[derive(Default)]
struct Failures {
    attribution: Attribution,
    n: u64,
    acts: [u64; Act::ALL.len()],
    commands: BTreeSet<String>,
    /// Handles that clients held at the first failure: all, and of directories.
    held: (u64, u64),
}

/// Operations that failed.
#[derive(Default)]
pub(crate) struct FailingOperations {
    /// By status.
    failures: HashMap<u32, Failures>,
    /// When the open of a path was denied last, by connection.
    denied: HashMap<((u32, u64), TextId), i64, foldhash::fast::RandomState>,
    /// Denied opens after which the same path was opened at once with fewer rights.
    probes: u64,
    acts: [u64; Act::ALL.len()],
    open: HashMap<(u32, u64), bool, foldhash::fast::RandomState>,
    directories: u64,
}

impl FailingOperations {
    /// Programs ask for more rights first, and for fewer when those are denied.
    fn note_denied(&mut self, op: &Operation, status: u32) {
        let (Act::Open, Some(path), Some(start)) = (op.act, op.path, op.start) else { return };
        let key = ((op.recording, op.connection), path);
        if status == Status::ACCESS_DENIED.0 {
            if self.denied.len() < HANDLES_MAX {
                self.denied.insert(key, start);
            }
        } else if status == 0
            && let Some(at) = self.denied.remove(&key)
        {
            self.probes += u64::from(start.saturating_sub(at) < PROBE_NS);
        }
    }
}

/// These are explained by other findings, or programs ask with them: does the name exist, is it a folder, is this
/// supported, where is it (a collision, a folder, not a folder, not supported, a path of DFS).
const ASKED: [Status; 8] = [
    Status::SHARING_VIOLATION,
    Status::FILE_LOCK_CONFLICT,
    Status::LOCK_NOT_GRANTED,
    Status(0xc000_0035),
    Status(0xc000_00ba),
    Status(0xc000_0103),
    Status(0xc000_00bb),
    Status(0xc000_0257),
];

/// Whether a status says no to work.
fn is_refusal(status: u32) -> bool {
    StatusClass::from_status(status) == StatusClass::Error
        && !ASKED.iter().any(|asked| asked.0 == status)
}

impl Detector for FailingOperations {
    fn see(&mut self, op: &Operation) {
        if op.status == Some(0) && !self.denied.is_empty() {
            self.note_denied(op, 0);
        }
        self.acts[op.act as usize] += 1;
        match (op.act, op.status, op.handle) {
            (Act::Open, Some(0), Some(handle)) if self.open.len() < HANDLES_MAX => {
                let is_directory = op.intent.is_of_directory();
                if self.open.insert(handle, is_directory).is_none() {
                    self.directories += u64::from(is_directory);
                }
            }
            (Act::Close, Some(0), Some(handle)) => {
                let was_directory = self.open.remove(&handle);
                self.directories -= u64::from(was_directory == Some(true)).min(self.directories);
            }
            _ => {}
        }
        let Some(status) = op.status.filter(|status| *status != 0) else { return };
        // A denied logon may be that of a channel; queries probe their rights.
        let is_tree = op.columns.command.get(op.row).is_some_and(|name| TREES.contains(&name));
        let is_work = matches!(op.act, Act::Open | Act::Read | Act::Write | Act::Change) || is_tree;
        let is_known = KINDS.iter().any(|kind| kind.status.0 == status);
        let is_probe = status == Status::ACCESS_DENIED.0 && !is_work;
        let is_failure = is_known || is_work && is_refusal(status);
        if is_probe || !is_failure {
            return;
        }
        self.note_denied(op, status);
        if self.failures.len() >= STATUSES_MAX && !self.failures.contains_key(&status) {
            return;
        }
        let held = (self.open.len() as u64, self.directories);
        let failures = self.failures.entry(status).or_insert_with(|| Failures {
            attribution: Attribution::with_few_names(),
            held,
            ..Failures::default()
        });
        failures.n += 1;
        failures.acts[op.act as usize] += 1;
        failures.attribution.add(op, op.busy_ns);
        if failures.commands.len() < 4 {
            failures.commands.extend(op.columns.command.get(op.row).map(str::to_owned));
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let FailingOperations { failures, acts, probes, .. } = self;
        let mut failures: Vec<_> = failures.into_iter().collect();
        let place = |status: u32| KINDS.iter().position(|kind| kind.status.0 == status).unwrap_or(KINDS.len());
        failures.sort_unstable_by_key(|(status, _)| (place(*status), *status));
        let enough = failures.into_iter().filter_map(|(status, mut failures)| {
            let other = Kind::of(Status(status), "refuses requests", 10, LOG);
            let kind = KINDS.get(place(status)).unwrap_or(&other);
            if kind.status == Status::ACCESS_DENIED {
                failures.n -= probes.min(failures.n);
                let opens = &mut failures.acts[Act::Open as usize];
                *opens -= probes.min(*opens);
            }
            let most = (acts.iter().zip(failures.acts)).max_by_key(|(_, failed)| *failed);
            let share = most.map_or(0.0, |(all, failed)| failed as f64 / (*all).max(1) as f64);
            let least_share = match place(status) == KINDS.len() {
                true => REFUSED_SHARE,
                false if PROBED.contains(&kind.status) => PROBED_SHARE,
                false => 0.0,
            };
            let is_probe = share < least_share;
            (failures.n >= kind.least && !is_probe).then(|| candidate(kind, failures, share))
        });
        enough.collect()
    }
}

fn candidate(kind: &Kind, failures: Failures, share: f64) -> Candidate {
    let name = kind.status.name().unwrap_or("an error");
    let commands: Vec<_> = failures.commands.into_iter().collect();
    let (held, directories) = failures.held;
    // Resources that run out are held by somebody.
    let is_held = kind.remedy == RESOURCES && held >= 100;
    let holders = match (is_held, directories * 2 > held) {
        (false, _) => String::new(),
        (true, true) => format!(
            ": clients hold {held} handles when it begins, {directories} of them of directories that are never closed"
        ),
        (true, false) => format!(": clients hold {held} handles when it begins"),
    };
    let what = format!(
        "The server {}: {} operations fail with {name} ({}){holders}",
        kind.words,
        failures.n,
        commands.join(", ")
    );
    let mut remedies = vec![kind.remedy];
    if is_held && directories * 2 > held {
        remedies.push((
            "client",
            "directories are held open for their leases: a version that closes them, or no directory leases (Linux mount option \
             nohandlecache or max_cached_dirs=0; Windows Set-SmbClientConfiguration -DirectoryCacheLifetime 0)",
        ));
    }
    let candidate = Candidate::new(
        FindingKind::FailingOperations,
        what,
        failures.attribution,
        Confidence::Measured,
        "the server says so in its replies",
    );
    let figures = [
        Some(("failures", failures.n as f64, "", "failures: {}")),
        Some(("share_of_the_command", share, "share", "{} of the operations of that kind")),
        is_held.then_some(("handles_held", held as f64, "", "handles held then: {}")),
    ];
    candidate
        .of_events()
        .broken()
        .with_owner(kind.actor, Vec::new())
        .with_remedies(&remedies)
        .with_figures(figures.into_iter().flatten())
}
