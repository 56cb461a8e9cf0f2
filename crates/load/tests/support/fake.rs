//! A server that exists in a test only: SMB2 over pipes in memory, on tokio's clock, which a test may
//! pause. Every user is a guest, every name is a file of one size, every answer takes the same time; at
//! given times it stalls, or answers in one of the ways in which servers break.
//!
//! It supports the requests of small workloads: opens, reads, writes, queries, closes, alone and in
//! compounds.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smbscope_client::clock::Clock;
use smbscope_client::transport::Transport;
use smbscope_client::{Config, Host, Target};
use smbscope_wire::smb2::create::OplockLevel;
use smbscope_wire::smb2::encode::reply::{
    CloseReply, CreateReply, LogoffReply, NegotiateReply, QueryInfoReply, ReadReply,
    SessionSetupReply, TreeConnectReply, TreeDisconnectReply, WriteReply,
};
use smbscope_wire::smb2::encode::{Body, Frame, Head};
use smbscope_wire::smb2::header::{Flags, Header, members};
use smbscope_wire::smb2::negotiate::{Capabilities, SecurityMode};
use smbscope_wire::smb2::read::ReadRequest;
use smbscope_wire::smb2::session::SessionFlags;
use smbscope_wire::smb2::write::WriteRequest;
use smbscope_wire::smb2::{Command, Dialect, FileId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, sleep, sleep_until};

/// SMB2_FLAGS_SERVER_TO_REDIR (MS-SMB2 section 2.2.1.2).
const FROM_SERVER: u32 = 1;
const SESSION: u64 = 0x51;
const TREE: u64 = 7;
/// Contents of all files; a read has at most 64 KiB.
static CONTENT: [u8; 1 << 16] = [0x5a; 1 << 16];

/// How the server breaks.
#[derive(Clone, Debug)]
pub enum Fault {
    /// No answer, and never again one on this connection.
    Silence,
    /// Half of the answer, then the end of the connection.
    Half,
    /// These bytes instead of the answer, with its NetBIOS header.
    Bytes(Vec<u8>),
    /// The answer with its body cut off after this many bytes, and otherwise correct.
    Short(usize),
}

/// See the module.
pub struct Fake {
    /// Time from a request to its answer.
    pub service: Duration,
    /// Period without answers.
    pub stall: Option<(Instant, Instant)>,
    /// Period in which no client can connect, and connected ones are disconnected.
    pub away: Option<(Instant, Instant)>,
    /// The first such request at or after a time gets this instead of its answer.
    pub faults: Mutex<VecDeque<(Instant, Command, Fault)>>,
    /// Size of every file in bytes.
    pub file_bytes: u64,
    /// Number of connections.
    pub connections: AtomicU64,
}

impl Fake {
    /// A server that works, and answers in `service`.
    pub fn new(service: Duration, file_bytes: u64) -> Fake {
        let (faults, connections) = (Mutex::default(), AtomicU64::new(0));
        Fake { service, stall: None, away: None, faults, file_bytes, connections }
    }

    /// The host that the load client connects to.
    pub fn host(self: &Arc<Fake>) -> Host {
        let target = Target::parse("//fake/share").unwrap();
        let fake = self.clone();
        Host::dialled(target, Config::default(), Clock::start(), true, move || {
            if fake.is_away() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = duplex(1 << 14);
            fake.connections.fetch_add(1, Ordering::Relaxed);
            let fake = fake.clone();
            // An error means that the client has left.
            tokio::spawn(async move { fake.serve(far).await });
            Ok(Box::new(near) as Box<dyn Transport>)
        })
    }

    fn is_away(&self) -> bool {
        self.away.is_some_and(|(begin, end)| (begin..end).contains(&Instant::now()))
    }

    async fn serve(&self, mut stream: DuplexStream) -> io::Result<()> {
        let mut frame = Frame::new();
        loop {
            let length = stream.read_u32().await? as usize;
            let mut message = vec![0; length];
            stream.read_exact(&mut message).await?;
            sleep(self.service).await;
            if self.is_away() {
                return Ok(());
            }
            if let Some((begin, end)) = self.stall
                && (begin..end).contains(&Instant::now())
            {
                sleep_until(end).await;
            }
            frame.clear();
            let mut fault = None;
            for member in members(&message) {
                fault = fault.or_else(|| self.fault(member.header.command));
                if !self.answer(&mut frame, &member.header, member.bytes) {
                    panic!("{:?} is not for this server", member.header.command.name());
                }
            }
            let mut bytes = frame.plain().to_vec();
            match fault {
                None => stream.write_all(&bytes).await?,
                Some(Fault::Bytes(bytes)) => stream.write_all(&bytes).await?,
                Some(Fault::Half) => {
                    bytes.truncate(bytes.len() / 2);
                    return stream.write_all(&bytes).await;
                }
                Some(Fault::Short(body)) => {
                    bytes.truncate(4 + 64 + body);
                    bytes[..4].copy_from_slice(&(64 + body as u32).to_be_bytes());
                    stream.write_all(&bytes).await?;
                }
                Some(Fault::Silence) => std::future::pending().await,
            }
        }
    }

    /// The fault that is due.
    fn fault(&self, command: Command) -> Option<Fault> {
        let due =
            |fault: &mut (Instant, Command, Fault)| fault.0 <= Instant::now() && fault.1 == command;
        self.faults.lock().unwrap().pop_front_if(due).map(|(_, _, fault)| fault)
    }

    /// Appends the answer to one request; false for an unknown request.
    fn answer(&self, frame: &mut Frame, header: &Header, bytes: &[u8]) -> bool {
        let head = Head {
            credit_charge: header.credit_charge,
            credits: header.credits.max(1),
            flags: Flags(FROM_SERVER | header.flags.0 & Flags::RELATED.0),
            message_id: header.message_id,
            tree_or_async_id: TREE << 32,
            session_id: SESSION,
            ..Head::default()
        };
        let file_id = FileId { persistent: 1, volatile: 1 };
        let (oplock, end_of_file) = (OplockLevel::NONE, self.file_bytes);
        let mut put = Put(frame, &head);
        match header.command {
            Command::NEGOTIATE => put.body(&NegotiateReply {
                dialect: Dialect::SMB_3_0_2,
                security_mode: SecurityMode::SIGNING_ENABLED,
                capabilities: Capabilities::LARGE_MTU,
                max_bytes: 1 << 16,
                blob: &[],
                salt: &[],
                signing: None,
            }),
            Command::SESSION_SETUP => {
                put.body(&SessionSetupReply { flags: SessionFlags::IS_GUEST, blob: &[] });
            }
            Command::LOGOFF => put.body(&LogoffReply),
            Command::TREE_CONNECT => put.body(&TreeConnectReply),
            Command::TREE_DISCONNECT => put.body(&TreeDisconnectReply),
            Command::CREATE => put.body(&CreateReply { file_id, oplock, end_of_file }),
            Command::CLOSE => put.body(&CloseReply),
            Command::READ => {
                let length = ReadRequest(bytes).length().unwrap_or(0) as usize;
                put.body(&ReadReply { data: &CONTENT[..length.min(CONTENT.len())] });
            }
            Command::WRITE => {
                put.body(&WriteReply { count: WriteRequest(bytes).length().unwrap_or(0) });
            }
            Command::QUERY_INFO => put.body(&QueryInfoReply { data: &CONTENT[..24] }),
            _ => return false,
        }
        true
    }
}

/// Appends bodies, whose types differ.
struct Put<'a>(&'a mut Frame, &'a Head);

impl Put<'_> {
    fn body(&mut self, body: &impl Body) {
        self.0.member(self.1, body);
    }
}
