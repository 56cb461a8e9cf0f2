//! What operations cost both sides in processor time, one way of protecting messages after the other: what
//! signing and encryption cost on this machine is the difference.
//!
//! Processor time and not time, because that is what others on the machine do not change much. What they do
//! change is the speed of the whole machine, from second to second: each way is compared with plain messages
//! of the same round, and the median of the rounds counts, as operations are recorded at its usual speed, not
//! its best. The server is a lab's smbd, of which one process serves one session.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use smbscope_event::protection::Protection;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, Body, OpenWish};
use smbscope_wire::smb2::info_class::InfoType;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;

use crate::client::{
    Ask, ClientError, Config, Credential, Encryption, Host, Session, Signing, Target,
};
use crate::clock::Clock;
use crate::lab::Running;

/// Time for a logon.
const LOGON: Duration = Duration::from_secs(30);
/// Rounds that are made however long they take.
const ROUNDS_LEAST: usize = 3;
/// Rights: read and write data and attributes.
const READ_WRITE: AccessMask = AccessMask(0x0012_019f);
/// Bytes of a message beside the data: header and fixed part (MS-SMB2 sections 2.2.19 to 2.2.22, 2.2.37).
const HEAD_BYTES: u64 = 112;

/// Operations that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Query,
    Read(u32),
    Write(u32),
}

const WORK: [(Work, u32); 5] = [
    (Work::Query, 300),
    (Work::Read(65_536), 48),
    (Work::Read(1 << 20), 6),
    (Work::Write(65_536), 48),
    (Work::Write(1 << 20), 6),
];

/// What one operation costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Bytes of request and reply.
    pub bytes: (u64, u64),
    /// Processor time of server and client, ns.
    pub ns: (f64, f64),
}

/// A way of protecting, and its samples; those of two ways are of the same operations.
pub type Measured = (Protection, Vec<Sample>);

/// What was measured.
#[derive(Debug)]
pub struct Calibrated {
    /// Plain messages first.
    pub measured: Vec<Measured>,
    /// Ways that did not come about, and why.
    pub refused: Vec<CalibrateError>,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A session failed.
    #[error("{0}: {1}")]
    Client(&'static str, ClientError),
    /// An operation failed.
    #[error("{0}: the server answers {1:?}")]
    Status(&'static str, Status),
    /// The kernel does not tell.
    #[error("{}: {error}; processor time cannot be measured here", .path.display())]
    Schedstat {
        /// Where it should stand.
        path: PathBuf,
        /// Why it does not.
        error: std::io::Error,
    },
    /// There is no server process.
    #[error("the lab has no smbd that runs")]
    NoServer,
}

fn config(protection: Protection) -> Config {
    let mut config = Config { leases: false, ..Config::default() };
    let signing = |config: &mut Config, id| {
        (config.signing, config.signing_algorithms) = (Signing::Required, vec![id]);
    };
    let cipher = |config: &mut Config, id| {
        (config.encryption, config.ciphers) = (Encryption::Required, vec![id]);
    };
    config.encryption = Encryption::Off;
    match protection {
        Protection::None => config.signing = Signing::Off,
        Protection::HmacSha256 => signing(&mut config, SigningId::HMAC_SHA256),
        Protection::AesCmac => signing(&mut config, SigningId::AES_CMAC),
        Protection::AesGmac => signing(&mut config, SigningId::AES_GMAC),
        Protection::Aes128Ccm => cipher(&mut config, CipherId::AES_128_CCM),
        Protection::Aes128Gcm => cipher(&mut config, CipherId::AES_128_GCM),
        Protection::Aes256Ccm => cipher(&mut config, CipherId::AES_256_CCM),
        Protection::Aes256Gcm => cipher(&mut config, CipherId::AES_256_GCM),
    }
    config
}

/// Measures all ways on a lab for about so long, on this thread alone; `told` hears the share that is
/// done, and ends it by saying no. A way that the server refuses is left out.
pub async fn measure(
    lab: &Running,
    credential: &Credential,
    lasts: Duration,
    mut told: impl FnMut(f64) -> bool,
) -> Result<Calibrated, CalibrateError> {
    let smbd = lab.smbd_pid().ok_or(CalibrateError::NoServer)?;
    let mut users = Vec::new();
    let mut refused = Vec::new();
    for protection in Protection::ALL {
        match User::connect(lab, credential, protection).await {
            Ok(user) => users.push(user),
            // Every server can do without, and it is what all others are compared with.
            Err(error) if protection == Protection::None => return Err(error),
            Err(error) => refused.push(error),
        }
    }
    // By round, way and work: what one operation costs server and client.
    let mut rounds: Vec<Vec<[(f64, f64); WORK.len()]>> = Vec::new();
    let begin = Instant::now();
    while rounds.len() < ROUNDS_LEAST || begin.elapsed() < lasts {
        let mut round = Vec::new();
        for user in &mut users {
            let mut costs = [(0.0, 0.0); WORK.len()];
            for ((work, times), cost) in WORK.into_iter().zip(&mut costs) {
                let before = (server_ns(smbd)?, thread_ns()?);
                user.work(work, times).await?;
                let after = (server_ns(smbd)?, thread_ns()?);
                let server = spent(&before.0, &after.0) as f64 / f64::from(times);
                let client = after.1.saturating_sub(before.1) as f64 / f64::from(times);
                *cost = (server, client);
            }
            round.push(costs);
        }
        rounds.push(round);
        let by_time = begin.elapsed().as_secs_f64() / lasts.as_secs_f64().max(1e-3);
        let by_rounds = rounds.len() as f64 / ROUNDS_LEAST as f64;
        if !told(by_time.min(by_rounds).min(1.0)) {
            break;
        }
    }
    let mut measured = Vec::new();
    for (way, user) in users.into_iter().enumerate() {
        let samples = WORK.iter().enumerate().map(|(place, (work, _))| {
            let plain = |round: &Vec<[_; WORK.len()]>| Some(round.first()?[place]);
            let more = |round: &Vec<[(f64, f64); WORK.len()]>| {
                let (own, plain) = (round.get(way)?[place], plain(round)?);
                Some((own.0 - plain.0, own.1 - plain.1))
            };
            let usual = median(rounds.iter().filter_map(plain));
            let more = median(rounds.iter().filter_map(more));
            let ns = ((usual.0 + more.0).max(0.0), (usual.1 + more.1).max(0.0));
            Sample { bytes: work.bytes(), ns }
        });
        measured.push((user.protection, samples.collect()));
        user.session.close().await;
    }
    Ok(Calibrated { measured, refused })
}

/// The median of each side.
fn median(costs: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (server, client): (Vec<_>, Vec<_>) = costs.unzip();
    let [server, client] = [server, client].map(|mut side| {
        side.sort_by(f64::total_cmp);
        side.get(side.len() / 2).copied().unwrap_or(0.0)
    });
    (server, client)
}

impl Work {
    fn bytes(self) -> (u64, u64) {
        match self {
            Work::Query => (HEAD_BYTES, HEAD_BYTES),
            Work::Read(bytes) => (HEAD_BYTES, HEAD_BYTES + u64::from(bytes)),
            Work::Write(bytes) => (HEAD_BYTES + u64::from(bytes), HEAD_BYTES),
        }
    }
}

/// A session that protects its messages in one way, with an open file.
struct User {
    protection: Protection,
    session: Session,
    file_id: FileId,
    data: Vec<u8>,
}

impl User {
    async fn connect(
        lab: &Running,
        credential: &Credential,
        protection: Protection,
    ) -> Result<User, CalibrateError> {
        let failed = |error| CalibrateError::Client(protection.name(), error);
        let share = format!("//{}:{}/{}", lab.address, lab.port, lab.share);
        let target = Target::parse(&share)
            .map_err(|error| failed(ClientError::Protocol(error.to_string())))?;
        let host = Host::find(target, config(protection), Clock::start(), false).await;
        let host = Arc::new(host.map_err(failed)?);
        let session = Session::connect(LOGON, host, credential, 0, None).await;
        let mut user = User {
            protection,
            session: session.map_err(|lost| failed(lost.error))?,
            file_id: FileId::default(),
            data: vec![7; 1 << 20],
        };
        let name = format!("calibrate-{}", protection.name());
        let create = encode::Create {
            name: &name,
            desired_access: READ_WRITE,
            file_attributes: FileAttributes(0),
            share_access: ShareAccess(7),
            disposition: CreateDisposition::OPEN_IF,
            options: CreateOptions::NON_DIRECTORY_FILE,
            oplock: OplockLevel::NONE,
            wish: OpenWish::default(),
        };
        let reply = user.session.call(&create, Ask::default()).await.map_err(failed)?;
        let Some(open) = reply.open else {
            return Err(CalibrateError::Status(protection.name(), reply.status));
        };
        user.file_id = open.file_id;
        user.work(Work::Write(1 << 20), 1).await?;
        Ok(user)
    }

    async fn call<B: Body>(&mut self, body: &B, bytes: u32) -> Result<(), CalibrateError> {
        let ask = Ask { payload_bytes: bytes, ..Ask::default() };
        let reply = self.session.call(body, ask).await;
        let reply = reply.map_err(|error| CalibrateError::Client(self.protection.name(), error))?;
        match reply.status {
            Status::SUCCESS => Ok(()),
            status => Err(CalibrateError::Status(self.protection.name(), status)),
        }
    }

    async fn work(&mut self, work: Work, times: u32) -> Result<(), CalibrateError> {
        let file_id = self.file_id;
        for _ in 0..times {
            match work {
                Work::Query => {
                    let body = encode::QueryInfo {
                        file_id,
                        info_type: InfoType::FILE,
                        // FileInternalInformation: the server needs not look at the file.
                        info_class: 6,
                        additional_information: 0,
                        output_bytes: 8,
                    };
                    self.call(&body, 8).await?;
                }
                Work::Read(length) => {
                    let body = encode::Read { file_id, offset: 0, length, flags: ReadFlags(0) };
                    self.call(&body, length).await?;
                }
                Work::Write(length) => {
                    let data = std::mem::take(&mut self.data);
                    let sent = data.get(..length as usize).unwrap_or(&data);
                    let body =
                        encode::Write { file_id, offset: 0, flags: WriteFlags(0), data: sent };
                    let done = self.call(&body, length).await;
                    self.data = data;
                    done?;
                }
            }
        }
        Ok(())
    }
}

/// Processor time of each thread of a process and its children, ns.
fn server_ns(pid: i32) -> Result<HashMap<PathBuf, u64>, CalibrateError> {
    let proc = PathBuf::from("/proc");
    let children = proc.join(format!("{pid}/task/{pid}/children"));
    let children = fs::read_to_string(&children)
        .map_err(|error| CalibrateError::Schedstat { path: children.clone(), error })?;
    let mut threads = HashMap::new();
    for process in children.split_whitespace() {
        // One that has just ended is no trouble.
        let Ok(tasks) = fs::read_dir(proc.join(process).join("task")) else { continue };
        for task in tasks.flatten() {
            let path = task.path();
            if let Ok(ns) = ran_ns(&path) {
                threads.insert(path, ns);
            }
        }
    }
    Ok(threads)
}

/// What threads have run in between; one that has ended no longer counts.
fn spent(before: &HashMap<PathBuf, u64>, after: &HashMap<PathBuf, u64>) -> u64 {
    let of = |(thread, ns): (&PathBuf, &u64)| {
        ns.saturating_sub(before.get(thread).copied().unwrap_or(0))
    };
    after.iter().map(of).sum()
}

fn thread_ns() -> Result<u64, CalibrateError> {
    ran_ns(Path::new("/proc/thread-self"))
}

/// Time that a thread has run: the first number of schedstat (the kernel's sched-stats.rst).
fn ran_ns(thread: &Path) -> Result<u64, CalibrateError> {
    let path = thread.join("schedstat");
    let read = fs::read_to_string(&path).and_then(|text| {
        let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
        first.ok_or_else(|| std::io::Error::other("is not as expected"))
    });
    read.map_err(|error| CalibrateError::Schedstat { path, error })
}
