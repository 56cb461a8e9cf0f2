//! Measures operations with each way of protecting messages: the difference is what signing and
//! encryption cost on this machine.
//!
//! An operation's time, from its first byte to the reply's last, is the server's part; the client's
//! part, which signs before and verifies afterwards, is before and after it. CPU time would be
//! too much: some of it is spent while the other side still sends, so it adds no waiting time.
//!
//! Other programs change the machine's speed from second to second: the ways take turns operation by
//! operation, and each is compared with plain messages in the same turn. That also leaves the caches in
//! the state that different users leave, one after the other. The server is a lab's smbd; each round
//! has new sessions, because the cost of AES-CCM depends on how a process's buffers lie in memory (1.4
//! or 2.3 ms per MiB were measured), and on the length of a message.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use smbscope_tables::protection::Protection;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, Body, OpenWish};
use smbscope_wire::smb2::info_class::InfoType;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;

use smbscope_client::clock::{Clock, nanoseconds};
use smbscope_client::{
    Ask, ClientError, Config, Credential, Encryption, Host, Session, Signing, Target,
};
use smbscope_lab::Running;

/// Time for a logon.
const LOGON: Duration = Duration::from_secs(30);
/// Rounds that are always made, however long they take.
const ROUNDS_MIN: usize = 3;
/// Rights: read and write data and attributes.
const READ_WRITE: AccessMask = AccessMask(0x0012_019f);
/// Bytes of a message other than the data: header and fixed part (MS-SMB2 sections 2.2.19 to 2.2.22, 2.2.37).
const HEAD_BYTES: u64 = 112;

/// Operations that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Query,
    Read(u32),
    Write(u32),
}

/// Between half a MiB and one, the cost per byte changes (glibc returns the memory of longer buffers
/// each time).
const WORK: [(Work, u32); 9] = [
    (Work::Query, 300),
    (Work::Read(65_536), 48),
    (Work::Read(262_144), 12),
    (Work::Read(524_288), 6),
    (Work::Read(1 << 20), 6),
    (Work::Write(65_536), 48),
    (Work::Write(262_144), 12),
    (Work::Write(524_288), 6),
    (Work::Write(1 << 20), 6),
];

/// What one operation costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Bytes of request and reply.
    pub bytes: (u64, u64),
    /// Time (ns) of the operation (the server's part), and before and after it (the client's part).
    pub ns: (f64, f64),
}

/// A way of protecting, and its samples; the samples of all ways are of the same operations.
pub type Measured = (Protection, Vec<Sample>);

/// What was measured.
#[derive(Debug)]
pub struct Calibrated {
    /// Plain messages first.
    pub measured: Vec<Measured>,
    /// Ways that failed, and why.
    pub refused: Vec<CalibrateError>,
}

/// Time (ns) of the operation (the server's part), and before and after it (the client's part).
type Two = (f64, f64);

/// Time of one operation, and how much more it took than the plain one of the same turn.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    all: Two,
    more: Two,
}

/// Turns that are kept of each work in each way: a random sample where there are more.
const TURNS_MAX: usize = 4096;

/// Turns of one work in one way.
#[derive(Clone, Debug, Default)]
struct Turns {
    kept: Vec<Took>,
    count: u64,
}

impl Turns {
    /// Every turn is kept with the same probability (reservoir sampling, algorithm R).
    fn add(&mut self, took: Took, random: &mut ChaCha8Rng) {
        self.count += 1;
        if self.kept.len() < TURNS_MAX {
            self.kept.push(took);
        } else if let Some(place) = self.kept.get_mut((random.next_u64() % self.count) as usize) {
            *place = took;
        }
    }

    fn usual(&self, pick: fn(&Took) -> Two) -> Two {
        usual(self.kept.iter().map(pick))
    }
}

/// By work.
type Way = [Turns; WORK.len()];

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A session failed.
    #[error("{0}: {1}")]
    Client(&'static str, ClientError),
    /// An operation failed.
    #[error("{0}: the server answers {1:?}")]
    Status(&'static str, Status),
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

/// Measures all ways on a lab for about the given time, on this thread alone. `progress` gets the share
/// that is done and stops the measurement by returning false. A way that the server refuses is left
/// out.
pub async fn measure(
    lab: &Running,
    credential: &Credential,
    lasts: Duration,
    mut progress: impl FnMut(f64) -> bool,
) -> Result<Calibrated, CalibrateError> {
    let mut ways = Protection::ALL.to_vec();
    let mut refused = Vec::new();
    let (mut rounds, mut took) = (0, Vec::<Way>::new());
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let begin = Instant::now();
    while rounds < ROUNDS_MIN || begin.elapsed() < lasts {
        let mut users = Vec::new();
        for protection in ways {
            match User::connect(lab, credential, protection).await {
                Ok(user) => users.push(user),
                // Every server supports plain messages, and all other ways are compared with them. A
                // way that worked in the first round must work in later rounds.
                Err(error) if protection == Protection::None || rounds > 0 => {
                    return Err(error);
                }
                Err(error) => refused.push(error),
            }
        }
        took.resize_with(users.len(), Way::default);
        round(&mut users, &mut took, &mut random).await?;
        rounds += 1;
        ways = users.iter().map(|user| user.protection).collect();
        for user in users {
            user.session.close().await;
        }
        let by_time = begin.elapsed().as_secs_f64() / lasts.as_secs_f64().max(1e-3);
        let by_rounds = rounds as f64 / ROUNDS_MIN as f64;
        if !progress(by_time.min(by_rounds).min(1.0)) {
            break;
        }
    }
    let Some(plain) = took.first() else { return Ok(Calibrated { measured: Vec::new(), refused }) };
    let measured = ways.into_iter().zip(&took).map(|(protection, own)| {
        let samples = WORK.iter().zip(plain.iter().zip(own)).map(|((work, _), (plain, own))| {
            let (all, more) = (plain.usual(|took| took.all), own.usual(|took| took.more));
            Sample {
                bytes: work.bytes(),
                ns: ((all.0 + more.0).max(0.0), (all.1 + more.1).max(0.0)),
            }
        });
        (protection, samples.collect())
    });
    Ok(Calibrated { measured: measured.collect(), refused })
}

/// Does everything once, each operation by all users in turn; adds the times, by user. The order is
/// random, because a server's process is still busy after it has answered, and the next request shares
/// the CPUs with it.
async fn round(
    users: &mut [User],
    took: &mut [Way],
    random: &mut ChaCha8Rng,
) -> Result<(), CalibrateError> {
    let mut order: Vec<usize> = (0..users.len()).collect();
    let mut turn = vec![Two::default(); users.len()];
    for (place, (work, times)) in WORK.into_iter().enumerate() {
        for _ in 0..times {
            shuffle(&mut order, random);
            for &way in &order {
                turn[way] = users[way].work(work).await?;
            }
            let Some(&plain) = turn.first() else { continue };
            for (way, &all) in took.iter_mut().zip(&turn) {
                let more = (all.0 - plain.0, all.1 - plain.1);
                way[place].add(Took { all, more }, random);
            }
        }
    }
    Ok(())
}

fn shuffle(order: &mut [usize], random: &mut ChaCha8Rng) {
    for last in (1..order.len()).rev() {
        order.swap(last, random.next_u32() as usize % (last + 1));
    }
}

/// The mean of the middle half of all turns of all rounds, so that a quarter may be disturbed by other
/// programs. Where turns are of two kinds (processes whose buffers lie well in memory, and others),
/// both count.
fn usual(costs: impl Iterator<Item = Two>) -> Two {
    let (operation, beside): (Vec<_>, Vec<_>) = costs.unzip();
    let middle = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        let middle = of.get(of.len() / 4..of.len() - of.len() / 4).unwrap_or_default();
        middle.iter().sum::<f64>() / middle.len().max(1) as f64
    };
    (middle(operation), middle(beside))
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
        let host = Host::find(target, config(protection), Clock::start(), true).await;
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
        user.work(Work::Write(1 << 20)).await?;
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

    /// Does the operation once; returns its times.
    async fn work(&mut self, work: Work) -> Result<Two, CalibrateError> {
        let file_id = self.file_id;
        self.session.take_rows();
        let before = Instant::now();
        match work {
            Work::Query => {
                let body = encode::QueryInfo {
                    file_id,
                    info_type: InfoType::FILE,
                    // FileInternalInformation: the server need not look at the file.
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
                let body = encode::Write { file_id, offset: 0, flags: WriteFlags(0), data: sent };
                let done = self.call(&body, length).await;
                self.data = data;
                done?;
            }
        }
        let whole = nanoseconds(before.elapsed());
        let rows = self.session.take_rows();
        let times = rows.last().map(|row| &row.operation);
        let times = times.and_then(|row| row.request_start().zip(row.response_end()));
        let took = times.map_or(whole, |(start, end)| end - start);
        Ok((took as f64, (whole - took) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_typical_value_covers_both_kinds_and_no_outlier() {
        let of = |costs: &[f64]| usual(costs.iter().map(|&one| (one, -one)));
        assert_eq!(of(&[]), (0.0, 0.0));
        assert_eq!(of(&[3.0]), (3.0, -3.0));
        // Half of the processes are fast.
        assert_eq!(of(&[2.0, 1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 1.0]), (1.5, -1.5));
        assert_eq!(of(&[5.0, 5.0, 900.0, 5.0]), (5.0, -5.0));
    }

    #[test]
    fn turns_of_all_rounds_are_kept_alike() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let mut turns = Turns::default();
        for turn in 0..10 * TURNS_MAX {
            turns.add(Took { all: (turn as f64, 0.0), more: (0.0, 1.0) }, &mut random);
        }
        assert_eq!(turns.kept.len(), TURNS_MAX);
        let half = 5.0 * TURNS_MAX as f64;
        assert!((turns.usual(|took| took.all).0 / half - 1.0).abs() < 0.05);
        assert_eq!(turns.usual(|took| took.more), (0.0, 1.0));
    }

    #[test]
    fn every_way_has_its_turn() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut order: Vec<usize> = (0..8).collect();
        let mut first = [0; 8];
        for _ in 0..800 {
            shuffle(&mut order, &mut random);
            first[order[0]] += 1;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..8));
        }
        assert!(first.iter().all(|count| (60..140).contains(count)), "{first:?}");
    }
}
