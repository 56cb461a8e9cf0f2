//! A client that does what a test says, one step after the other.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use smbscope_client::clock::Clock;
use smbscope_client::{Ask, Config, Host, Open, Reply, Session, Target};
use smbscope_load::run::users::Credentials;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, Body, OpenWish};
use smbscope_wire::smb2::info_class::InfoType;
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

use smbscope_testing::run::runtime;
use smbscope_testing::samba::{LOGON, Samba};

/// Rights: read and write data, attributes, synchronise, delete.
pub const ALL: AccessMask = AccessMask(0x0013_019f);

pub struct Client {
    runtime: Runtime,
    pub session: Session,
}

impl Client {
    pub fn connect(lab: &Samba, config: Config) -> Client {
        Client::connect_by(&lab.target, lab, config)
    }

    /// Connects in another way than directly to the lab.
    pub fn connect_by(target: &str, lab: &Samba, config: Config) -> Client {
        let runtime = runtime();
        let session = runtime.block_on(async {
            let target = Target::parse(target).unwrap();
            let host = Host::find(target, config, Clock::start(), false).await.unwrap();
            let credential = Credentials::pattern("user{:05}", &lab.password).unwrap().of_user(1);
            let connected = Session::connect(LOGON, Arc::new(host), &credential, 0, None).await;
            connected.map_err(|failed| failed.error).unwrap()
        });
        Client { runtime, session }
    }

    pub fn call<B: Body>(&mut self, body: &B, ask: Ask) -> Reply {
        self.runtime.block_on(self.session.call(body, ask)).unwrap()
    }

    /// The same, which must succeed.
    fn done<B: Body>(&mut self, body: &B, payload_bytes: u32) -> Reply {
        let reply = self.call(body, Ask { payload_bytes, ..Ask::default() });
        assert_eq!(reply.status, Status::SUCCESS, "{:?}", B::COMMAND);
        reply
    }

    pub fn create(&mut self, name: &str, oplock: OplockLevel) -> Open {
        self.done(&create(name, oplock), 0).open.unwrap()
    }

    pub fn open(&mut self, name: &str) -> FileId {
        self.create(name, OplockLevel::NONE).file_id
    }

    pub fn close(&mut self, file_id: FileId) {
        self.done(&encode::Close { file_id, flags: CloseFlags(0) }, 0);
    }

    /// Bytes that were read.
    pub fn read(&mut self, file_id: FileId, offset: u64, length: u32) -> u32 {
        let body = encode::Read { file_id, offset, length, flags: ReadFlags(0) };
        self.done(&body, length).transferred
    }

    pub fn write(&mut self, file_id: FileId, offset: u64, data: &[u8]) {
        self.write_as(file_id, offset, data, WriteFlags(0));
    }

    /// Writes with the given flags; stable when it is answered.
    pub fn write_through(&mut self, file_id: FileId, offset: u64, data: &[u8]) {
        self.write_as(file_id, offset, data, WriteFlags::WRITE_THROUGH);
    }

    fn write_as(&mut self, file_id: FileId, offset: u64, data: &[u8], flags: WriteFlags) {
        let body = encode::Write { file_id, offset, flags, data };
        let written = self.done(&body, data.len() as u32).transferred;
        assert_eq!(written as usize, data.len());
    }

    pub fn flush(&mut self, file_id: FileId) {
        self.done(&encode::Flush { file_id }, 0);
    }

    /// Requests FileNetworkOpenInformation, for which the server inspects the file.
    pub fn query(&mut self, file_id: FileId) {
        let body = encode::QueryInfo {
            file_id,
            info_type: InfoType::FILE,
            info_class: 34,
            additional_information: 0,
            output_bytes: 64,
        };
        self.done(&body, 64);
    }

    /// Does anything else with the session.
    pub fn with<T>(&mut self, work: impl AsyncFnOnce(&mut Session) -> T) -> T {
        self.runtime.block_on(work(&mut self.session))
    }

    pub fn end(self) {
        let Client { runtime, session } = self;
        runtime.block_on(session.close());
    }
}

/// A connection without a client, over a prepared socket.
pub fn connect(port: u16, prepare: impl FnOnce(&TcpSocket)) -> TcpStream {
    runtime().block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        prepare(&socket);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = socket.connect(address).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    })
}

/// Opens or creates a file.
pub fn create(name: &str, oplock: OplockLevel) -> encode::Create<'_> {
    encode::Create {
        name,
        desired_access: ALL,
        file_attributes: FileAttributes(0),
        share_access: ShareAccess(7),
        disposition: CreateDisposition::OPEN_IF,
        options: CreateOptions::NON_DIRECTORY_FILE,
        oplock,
        wish: OpenWish::default(),
    }
}
