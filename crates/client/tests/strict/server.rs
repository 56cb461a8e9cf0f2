//! A server on a pipe in memory that logs on by NTLM, signs and encrypts as a server should, except for one lie.

use std::sync::Arc;

use smbscope_client::clock::Clock;
use smbscope_client::transport::Transport;
use smbscope_client::{Config, Host, Target};
use smbscope_wire::auth::ntlmssp::{Kind, Message};
use smbscope_wire::crypto::{
    Cipher, Decryptor, Encryptor, PreauthIntegrity, Signer, derive_session_keys, derive_signing_key,
};
use smbscope_wire::secrets::{Secrets, Unlocked};
use smbscope_wire::smb2::header::{Flags, Header, members};
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};
use smbscope_wire::smb2::session::SessionSetupRequest;
use smbscope_wire::smb2::transform::{ENCRYPTED_MAGIC, TRANSFORM_HEADER_BYTES};
use smbscope_wire::smb2::write::WriteRequest;
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

pub const PASSWORD: &str = "Secret-Pass-77";
const SESSION: u64 = 0x77;
const TREE: u64 = 5;
const CHALLENGE: [u8; 8] = *b"12345678";
const GUID: [u8; 16] = *b"the server's own";
const CAPABILITIES: u32 = 0x7f;

/// What is wrong with the reply to one command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lie {
    /// Neither signed nor encrypted.
    Plain,
    /// Signed with another key.
    WrongSignature,
    /// Plain, and with another command in its header.
    Command(u16),
    /// Protected, and with another session in its header.
    Session(u64),
    /// Encrypted, and with another session in the transform header.
    TransformSession(u64),
    /// Protected, and without the flag that says it is a reply.
    Request,
    /// Protected, and with another message id.
    MessageId(u64),
    /// Protected, and with another size of the header.
    HeaderBytes(u16),
    /// Protected, and with a NextCommand.
    Next(u32),
    /// Protected, and with another count of bytes written.
    Count(u32),
    /// Plain interim replies without end.
    Interims,
    /// A plain break and a plain interim reply, then the right reply.
    PlainBreakFirst,
    /// Plain breaks without end.
    Breaks,
    /// None.
    Silence,
}

/// A server.
#[derive(Clone, Debug)]
pub struct Server {
    pub dialect: Dialect,
    pub security_mode: u16,
    /// The contexts of the Negotiate reply: kind, codes.
    pub contexts: Vec<(u16, Vec<u16>)>,
    pub session_flags: u16,
    /// Credits granted with each reply.
    pub credits: u16,
    /// What is wrong with the last reply of the logon: its signature is missing, or wrong.
    pub last: Option<Lie>,
    /// ServerGuid, capabilities and dialect as validated.
    pub validated: ([u8; 16], u32, u16),
    pub lie: Option<(Command, Lie)>,
    /// Right replies to that command before the first lie.
    pub honest_first: u32,
}

impl Server {
    pub fn honest(dialect: Dialect) -> Server {
        let hash_cipher_signing = vec![(1, vec![1]), (2, vec![2]), (8, vec![1])];
        let is_311 = dialect == Dialect::SMB_3_1_1;
        Server {
            dialect,
            security_mode: 1,
            contexts: if is_311 { hash_cipher_signing } else { Vec::new() },
            session_flags: 0,
            credits: 32,
            last: None,
            validated: (GUID, CAPABILITIES, dialect.0),
            lie: None,
            honest_first: 0,
        }
    }

    pub fn lying(dialect: Dialect, command: Command, lie: Lie) -> Server {
        Server { lie: Some((command, lie)), ..Server::honest(dialect) }
    }

    pub fn host(self, config: Config) -> Arc<Host> {
        let target = Target::parse("//fake/share").unwrap();
        Arc::new(Host::dialled(target, config, Clock::start(), true, move || {
            let (near, far) = duplex(1 << 20);
            let peer = Peer {
                server: self.clone(),
                stream: far,
                preauth: PreauthIntegrity::new(),
                signer: None,
                seal: None,
                seen: 0,
            };
            // An error means that the client has left.
            tokio::spawn(async move { peer.serve().await });
            Ok(Box::new(near) as Box<dyn Transport>)
        }))
    }
}

struct Peer {
    server: Server,
    stream: DuplexStream,
    preauth: PreauthIntegrity,
    signer: Option<Signer>,
    seal: Option<(Encryptor, Decryptor)>,
    /// Requests of the command that is lied about.
    seen: u32,
}

impl Peer {
    async fn serve(mut self) -> std::io::Result<()> {
        loop {
            let length = self.stream.read_u32().await? as usize;
            let mut bytes = vec![0; length];
            self.stream.read_exact(&mut bytes).await?;
            let is_sealed = bytes.starts_with(&ENCRYPTED_MAGIC);
            if is_sealed {
                let (_, decryptor) = self.seal.as_ref().unwrap();
                let plain = decryptor.decrypt_in_place(&mut bytes).unwrap();
                bytes = bytes[plain].to_vec();
            }
            for member in members(&bytes) {
                self.answer(&member.header, member.bytes, is_sealed).await?;
            }
        }
    }

    async fn answer(
        &mut self,
        request: &Header,
        bytes: &[u8],
        is_sealed: bool,
    ) -> std::io::Result<()> {
        let lie = self.server.lie.filter(|(command, _)| *command == request.command);
        self.seen += u32::from(lie.is_some());
        let lie = lie.filter(|_| self.seen > self.server.honest_first);
        let lie = lie.map(|(_, lie)| lie);
        let mut status = Status::SUCCESS;
        let mut last = None;
        let body = match request.command {
            Command::NEGOTIATE => {
                self.preauth.update(bytes);
                self.negotiate()
            }
            Command::SESSION_SETUP => {
                self.preauth.update(bytes);
                let blob = SessionSetupRequest(bytes).security_blob().unwrap_or_default();
                let message = Message::parse(blob).unwrap();
                if message.kind() == Some(Kind::NEGOTIATE) {
                    status = Status::MORE_PROCESSING_REQUIRED;
                    let token = challenge();
                    [&[9, 0, 0, 0, 72, 0, token.len() as u8, 0][..], &token].concat()
                } else {
                    self.derive_keys(&message);
                    last = Some(self.server.last.unwrap_or(Lie::Next(0)));
                    vec![9, 0, self.server.session_flags as u8, 0, 72, 0, 0, 0]
                }
            }
            Command::TREE_CONNECT => {
                [&[16, 0, 1, 0][..], &[0; 8], &0x001f_01ff_u32.to_le_bytes()].concat()
            }
            Command::IOCTL => self.validated(),
            Command::WRITE => {
                let count = match lie {
                    Some(Lie::Count(count)) => count,
                    _ => WriteRequest(bytes).length().unwrap_or_default(),
                };
                [&[17, 0, 0, 0][..], &count.to_le_bytes(), &[0; 9]].concat()
            }
            Command::CREATE => {
                let mut body = vec![89, 0, 0, 0, 1, 0, 0, 0];
                body.resize(88, 0);
                // A file id, which is not zero.
                body[64..80].fill(7);
                body
            }
            Command::CLOSE => [&[60, 0][..], &[0; 58]].concat(),
            _ => vec![4, 0, 0, 0],
        };
        let mut reply = header(request, status);
        put(&mut reply, 14, &self.server.credits.to_le_bytes());
        reply.extend(body);
        match lie {
            Some(Lie::Command(command)) => put(&mut reply, 12, &command.to_le_bytes()),
            Some(Lie::Session(id)) => put(&mut reply, 40, &id.to_le_bytes()),
            Some(Lie::Request) => put(&mut reply, 16, &[0]),
            Some(Lie::MessageId(id)) => put(&mut reply, 24, &id.to_le_bytes()),
            Some(Lie::HeaderBytes(bytes)) => put(&mut reply, 4, &bytes.to_le_bytes()),
            Some(Lie::Next(bytes)) => put(&mut reply, 20, &bytes.to_le_bytes()),
            Some(Lie::Silence) => return Ok(()),
            Some(Lie::Interims) => loop {
                self.send(&interim(request)).await?;
            },
            Some(Lie::Breaks) => loop {
                self.send(&oplock_break()).await?;
            },
            Some(Lie::PlainBreakFirst) => {
                self.send(&oplock_break()).await?;
                self.send(&interim(request)).await?;
            }
            _ => {}
        }
        match request.command {
            Command::NEGOTIATE => self.preauth.update(&reply),
            Command::SESSION_SETUP if last.is_none() => self.preauth.update(&reply),
            _ => {}
        }
        let is_plain =
            matches!(lie, Some(Lie::Plain | Lie::Command(_))) || last == Some(Lie::Plain);
        let is_signed = request.flags.is_signed() || last.is_some();
        if is_sealed && !is_plain {
            let session = match lie {
                Some(Lie::TransformSession(id)) => id,
                _ => SESSION,
            };
            let (encryptor, _) = self.seal.as_ref().unwrap();
            let mut sealed = vec![0; TRANSFORM_HEADER_BYTES];
            sealed.extend(reply);
            encryptor.encrypt(session, &mut sealed).unwrap();
            reply = sealed;
        } else if let (Some(signer), true, false) = (&self.signer, is_signed, is_plain) {
            signer.sign(&mut reply);
            let wrong = [lie, last].contains(&Some(Lie::WrongSignature));
            reply[50] ^= u8::from(wrong);
        }
        self.send(&reply).await
    }

    async fn send(&mut self, message: &[u8]) -> std::io::Result<()> {
        self.stream.write_u32(message.len() as u32).await?;
        self.stream.write_all(message).await
    }

    fn negotiate(&self) -> Vec<u8> {
        let Server { dialect, security_mode, contexts, .. } = &self.server;
        let mut body = vec![65, 0];
        body.extend(security_mode.to_le_bytes());
        body.extend(dialect.0.to_le_bytes());
        body.extend((contexts.len() as u16).to_le_bytes());
        body.extend(GUID);
        body.extend(CAPABILITIES.to_le_bytes());
        (0..3).for_each(|_| body.extend((1_u32 << 20).to_le_bytes()));
        body.extend([0; 16]);
        body.extend([128, 0, 0, 0]);
        body.extend(if contexts.is_empty() { [0; 4] } else { 128_u32.to_le_bytes() });
        for (kind, codes) in contexts {
            body.resize(body.len().next_multiple_of(8), 0);
            let salt = if *kind == 1 { 2 } else { 0 };
            body.extend(kind.to_le_bytes());
            body.extend((2 + salt + 2 * codes.len() as u16).to_le_bytes());
            body.extend([0; 4]);
            body.extend((codes.len() as u16).to_le_bytes());
            body.extend(&[0; 2][..usize::from(salt)]);
            body.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
        }
        body
    }

    fn validated(&self) -> Vec<u8> {
        let (guid, capabilities, dialect) = self.server.validated;
        let mut body = vec![49, 0, 0, 0];
        body.extend(0x0014_0204_u32.to_le_bytes());
        body.extend([0xff; 16]);
        for number in [112_u32, 0, 112, 24, 0, 0] {
            body.extend(number.to_le_bytes());
        }
        body.extend(capabilities.to_le_bytes());
        body.extend(guid);
        body.extend(self.server.security_mode.to_le_bytes());
        body.extend(dialect.to_le_bytes());
        body
    }

    fn derive_keys(&mut self, authenticate: &Message<'_>) {
        let mut secrets = Secrets::default();
        secrets.add_passwords(format!("*:{PASSWORD}").as_bytes()).unwrap();
        let Unlocked::With(key) = secrets.ntlm(&CHALLENGE, authenticate) else {
            panic!("the client proves another password");
        };
        let (dialect, preauth) = (self.server.dialect, Some(&self.preauth));
        let chosen = |kind| {
            let context = self.server.contexts.iter().find(|(found, _)| *found == kind);
            context.and_then(|(_, codes)| codes.first().copied())
        };
        let algorithm = Signer::algorithm(dialect.0, chosen(8).map(SigningId)).unwrap();
        let signing_key = derive_signing_key(dialect.0, &key, preauth).unwrap();
        self.signer = Signer::new(algorithm, &signing_key);
        let cipher = Cipher(chosen(2).unwrap_or(CipherId::AES_128_CCM.0));
        self.seal = derive_session_keys(dialect.0, cipher, &key, preauth).map(|keys| {
            let encryptor = Encryptor::new(cipher, &keys.server_to_client).unwrap();
            (encryptor, Decryptor::new(cipher, &keys.client_to_server).unwrap())
        });
    }
}

fn put(message: &mut [u8], at: usize, bytes: &[u8]) {
    message[at..at + bytes.len()].copy_from_slice(bytes);
}

fn header(request: &Header, status: Status) -> Vec<u8> {
    let mut header = vec![0; 64];
    put(&mut header, 0, b"\xfeSMB\x40\0\x01\0");
    put(&mut header, 8, &status.0.to_le_bytes());
    put(&mut header, 12, &request.command.0.to_le_bytes());
    put(&mut header, 14, &32_u16.to_le_bytes());
    put(&mut header, 16, &Flags::SERVER_TO_REDIR.0.to_le_bytes());
    put(&mut header, 24, &request.message_id.to_le_bytes());
    put(&mut header, 32, &(TREE << 32).to_le_bytes());
    let session = if request.command == Command::NEGOTIATE { 0 } else { SESSION };
    put(&mut header, 40, &session.to_le_bytes());
    header
}

fn interim(request: &Header) -> Vec<u8> {
    let mut reply = header(request, Status::PENDING);
    put(&mut reply, 16, &[3]);
    reply.extend([9, 0, 0, 0, 0, 0, 0, 0, 0]);
    reply
}

fn oplock_break() -> Vec<u8> {
    let mut message = vec![0; 64 + 24];
    put(&mut message, 0, b"\xfeSMB\x40\0");
    put(&mut message, 12, &[18, 0]);
    put(&mut message, 16, &[1]);
    put(&mut message, 24, &[0xff; 8]);
    put(&mut message, 64, &[24, 0, 1]);
    message
}

/// MS-NLMP section 2.2.1.2, with key exchange, without attributes.
fn challenge() -> Vec<u8> {
    let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
    message.extend([0, 0, 0, 0, 56, 0, 0, 0]);
    message.extend(0xe28a_8215_u32.to_le_bytes());
    message.extend(CHALLENGE);
    message.extend([0; 8]);
    message.extend([4, 0, 4, 0, 56, 0, 0, 0]);
    message.extend([10, 0, 0x7c, 0x4f, 0, 0, 0, 15]);
    message.extend([0; 4]);
    message
}
