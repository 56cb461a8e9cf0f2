//! The load client, with all that recording an operation takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use smbscope_client::channel::Protection;
use smbscope_client::{Ask, Config, Credential, Encryption, Host, Session, Signing, Target};
use smbscope_client::clock::Clock;
use smbscope_load::recorder::Recorder;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{Close, Create, Echo, OpenWish, QueryInfo};
use smbscope_wire::smb2::info_class::InfoType;
use smbscope_wire::status::Status;

use crate::measure::{Figures, Gate, closed_loop};
use crate::responder;
use crate::{Case, Operation};

/// The file that everybody opens.
pub const FILE: &str = "bench.bin";
/// Time for a logon.
pub const LOGON: Duration = Duration::from_secs(60);
/// Rows are handed over after this many operations, as at the end of a scenario.
const OPERATIONS: usize = 16;

/// How sessions of a case connect.
pub fn config(case: &Case) -> Config {
    let signing = if case.signed && case.samba { Signing::Required } else { Signing::Off };
    Config { signing, encryption: Encryption::Off, ..Config::default() }
}

/// Everything that the sessions of a case share.
pub async fn host(case: &Case, record: bool) -> Arc<Host> {
    let target = Target::parse(&case.target).unwrap();
    Arc::new(Host::find(target, config(case), Clock::start(), record).await.unwrap())
}

/// A user of the lab.
pub fn credential(case: &Case, number: usize) -> Credential {
    Credential::new(&format!("user{:05}", number % 100 + 1), &case.password)
}

/// Measures one case.
pub async fn run(case: Arc<Case>) -> Figures {
    let host = host(&case, true).await;
    let (sender, parts) = sync_channel(4);
    let recorder = Arc::new(Recorder::new("bench", 2, sender));
    std::thread::spawn(move || parts.iter().for_each(drop));
    let flushed = recorder.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            flushed.flush();
        }
    });
    let gate = Gate::new(case.logons());
    let opened = gate.clone();
    closed_loop(case.sessions, case.rounds(), case.round(), opened, move |number, counter| {
        let (case, host) = (case.clone(), host.clone());
        let user = User { case, host, number, recorder: recorder.clone(), gate: gate.clone() };
        tokio::spawn(user.live(counter));
    })
    .await
}

struct User {
    case: Arc<Case>,
    host: Arc<Host>,
    number: usize,
    recorder: Arc<Recorder>,
    gate: Arc<Gate>,
}

impl User {
    async fn live(self, counter: Arc<AtomicU64>) {
        let mut session = self.connect().await;
        self.gate.pass().await;
        if self.case.operation == Operation::Idle {
            let _ = session.receive().await;
            return;
        }
        let path: Arc<str> = FILE.into();
        let file_id = open(&mut session, &path).await;
        loop {
            for _ in 0..OPERATIONS {
                match self.case.operation {
                    Operation::Pair => {
                        let file_id = open(&mut session, &path).await;
                        counter.fetch_add(1, Ordering::Relaxed);
                        close(&mut session, file_id, &path).await;
                    }
                    Operation::QueryInfo => query(&mut session, file_id, &path).await,
                    Operation::Echo | Operation::Idle => {
                        session.call(&Echo, Ask::default()).await.unwrap();
                    }
                }
                counter.fetch_add(1, Ordering::Relaxed);
            }
            self.recorder.rows(self.number as u64, session.take_rows());
        }
    }

    async fn connect(&self) -> Session {
        let _turn = self.gate.logon().await;
        let credential = credential(&self.case, self.number);
        let connected = Session::connect(LOGON, self.host.clone(), &credential, 0, None).await;
        let mut session = connected.map_err(|failed| failed.error).unwrap();
        if self.case.signed && !self.case.samba {
            let signer = Some(Arc::new(responder::signer()));
            session.channel().protection =
                Protection { signer, sign_all: true, ..Protection::default() };
        }
        self.recorder.rows(self.number as u64, session.take_rows());
        session
    }
}

/// Opens the file.
pub async fn open(session: &mut Session, path: &Arc<str>) -> FileId {
    let body = Create {
        name: path,
        desired_access: AccessMask(0x0012_0089),
        file_attributes: FileAttributes(0),
        share_access: ShareAccess(7),
        disposition: CreateDisposition::OPEN,
        options: CreateOptions(0),
        oplock: OplockLevel::NONE,
        wish: OpenWish::default(),
    };
    let reply = session.call(&body, ask(path)).await.unwrap();
    reply.open.unwrap_or_else(|| panic!("{path}: {:?}", reply.status)).file_id
}

/// Closes it.
pub async fn close(session: &mut Session, file_id: FileId, path: &Arc<str>) {
    let body = Close { file_id, flags: CloseFlags(0) };
    let reply = session.call(&body, ask(path)).await.unwrap();
    assert_eq!(reply.status, Status::SUCCESS);
}

/// FileNetworkOpenInformation of an open file.
pub async fn query(session: &mut Session, file_id: FileId, path: &Arc<str>) {
    let body = QueryInfo {
        file_id,
        info_type: InfoType::FILE,
        info_class: 34,
        additional_information: 0,
        output_bytes: 56,
    };
    let reply = session.call(&body, ask(path)).await.unwrap();
    assert_eq!((reply.status, reply.transferred), (Status::SUCCESS, 56));
}

fn ask(path: &Arc<str>) -> Ask {
    Ask { path: Some(path.clone()), handle: Some(1), ..Ask::default() }
}
