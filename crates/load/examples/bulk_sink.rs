//! An SMB server with nothing behind it, for `bench/bulk.py`: it takes what is written, and answers reads from memory, so
//! that a measurement shows the client and the network instead of a server's work.
//!
//! Every user is a guest, every name is a file. One thread serves each connection. Prints its port, ends with its standard
//! input. With a file as its argument it speaks SMB 3.1.1, logs on each user with the password in the file's first line (NTLM, also
//! on more connections of the session), verifies what is signed and signs its replies with AES-GMAC.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smbscope_wire::auth::ntlmssp::{Flags as NtlmFlags, Message};
use smbscope_wire::crypto::{PreauthIntegrity, Signer, derive_signing_key};
use smbscope_wire::nbss;
use smbscope_wire::secrets::{Secrets, Unlocked};
use smbscope_wire::smb2::create::OplockLevel;
use smbscope_wire::smb2::encode::reply::{
    CloseReply, CreateReply, FlushReply, IoctlError, LogoffReply, NegotiateReply, ReadReply,
    SessionSetupReply, SetInfoReply, TreeConnectReply, TreeDisconnectReply, WriteReply,
};
use smbscope_wire::smb2::encode::{Frame, Head};
use smbscope_wire::smb2::header::{Flags, Header};
use smbscope_wire::smb2::negotiate::{Capabilities, SecurityMode};
use smbscope_wire::smb2::negotiate_context::SigningId;
use smbscope_wire::smb2::read::ReadRequest;
use smbscope_wire::smb2::session::{SessionFlags, SessionSetupRequest};
use smbscope_wire::smb2::write::WriteRequest;
use smbscope_wire::smb2::{Command, Dialect, FileId};
use smbscope_wire::status::Status;

/// Longest read and write.
const IO_BYTES: usize = 8 << 20;
/// A read's reply before its data: NetBIOS, the SMB2 header, and the body (MS-SMB2 section 2.2.20).
const READ_HEAD_BYTES: usize = 4 + 64 + 16;
/// Most of a request that is parsed: its headers.
const PARSED_BYTES: usize = 4096;

/// The challenge of each logon.
const CHALLENGE: [u8; 8] = *b"smbscope";

/// Bytes of the only file.
static SIZE: AtomicU64 = AtomicU64::new(0);

fn main() -> io::Result<()> {
    let secrets = std::env::args_os().nth(1).map(|file| -> io::Result<Arc<Secrets>> {
        let text = std::fs::read_to_string(file)?;
        let mut secrets = Secrets::default();
        let line = format!("*:{}", text.lines().next().unwrap_or_default());
        secrets.add_passwords(line.as_bytes()).map_err(io::Error::other)?;
        Ok(Arc::new(secrets))
    });
    let secrets = secrets.transpose()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("port {}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let _ = io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let stream = stream?;
        // A client that leaves ends its thread.
        let secrets = secrets.clone();
        std::thread::spawn(move || serve(stream, secrets));
    }
    Ok(())
}

/// One connection of a session that is signed.
struct Protection {
    secrets: Arc<Secrets>,
    preauth: PreauthIntegrity,
    signer: Option<Arc<Signer>>,
}

fn serve(mut stream: TcpStream, secrets: Option<Arc<Secrets>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut frame = Frame::new();
    let mut reply = Vec::new();
    let data = vec![0x5a; IO_BYTES];
    let mut scratch = vec![0; 512 << 10];
    // What is verified has to be there as a whole.
    let most = if secrets.is_some() { IO_BYTES + PARSED_BYTES } else { PARSED_BYTES };
    let mut head = vec![0; most];
    let mut protection = secrets.map(|secrets| Protection {
        secrets,
        preauth: PreauthIntegrity::default(),
        signer: None,
    });
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let Some(outer) = nbss::Header::parse(&length) else { return Ok(()) };
        let length = outer.length as usize;
        let parsed = length.min(most);
        stream.read_exact(&mut head[..parsed])?;
        let mut rest = length - parsed;
        while rest > 0 {
            let part = rest.min(scratch.len());
            rest -= stream.read(&mut scratch[..part])?;
        }
        let message = &mut head[..parsed];
        let Some(request) = Header::parse(message) else { return Ok(()) };
        let signer = protection.as_ref().and_then(|protection| protection.signer.clone());
        let signer = signer.filter(|_| request.flags.is_signed());
        if signer.as_ref().is_some_and(|signer| !signer.verify_in_place(message)) {
            return Ok(());
        }
        if request.command == Command::READ {
            let wanted = ReadRequest(message).length().unwrap_or(0) as usize;
            read_reply(
                &mut stream,
                &request,
                &data[..wanted.min(IO_BYTES)],
                &mut reply,
                signer.as_deref(),
            )?;
            continue;
        }
        let is_logon = matches!(request.command, Command::NEGOTIATE | Command::SESSION_SETUP);
        match &mut protection {
            Some(protection) if is_logon => protection.log_on(&mut frame, &request, message),
            _ => {
                answer(&mut frame, &request, message);
                if let Some(signer) = signer {
                    frame.each_member(|member| {
                        signer.sign(member);
                    });
                }
            }
        }
        stream.write_all(frame.plain())?;
    }
}

impl Protection {
    /// Answers a NEGOTIATE or a SESSION_SETUP, whose hash becomes part of the key (MS-SMB2 section 3.3.5.5).
    fn log_on(&mut self, frame: &mut Frame, request: &Header, message: &[u8]) {
        frame.clear();
        self.preauth.update(message);
        let mut head = reply_head(request);
        if request.command == Command::NEGOTIATE {
            frame.member(
                &head,
                &NegotiateReply {
                    dialect: Dialect::SMB_3_1_1,
                    security_mode: SecurityMode::SIGNING_ENABLED,
                    capabilities: Capabilities(
                        Capabilities::LARGE_MTU.0 | Capabilities::MULTI_CHANNEL.0,
                    ),
                    max_bytes: IO_BYTES as u32,
                    blob: &[],
                    salt: &[3; 32],
                    signing: Some(SigningId::AES_GMAC),
                },
            );
            return self.preauth.update(frame.message());
        }
        head.session_id = 1;
        let token = SessionSetupRequest(message).security_blob().unwrap_or_default();
        let key = Message::parse(token).map(|token| self.secrets.ntlm(&CHALLENGE, &token));
        let Some(Unlocked::With(key)) = key else {
            head.status = Status::MORE_PROCESSING_REQUIRED.0;
            let blob = challenge();
            frame.member(&head, &SessionSetupReply { flags: SessionFlags(0), blob: &blob });
            return self.preauth.update(frame.message());
        };
        let key = derive_signing_key(Dialect::SMB_3_1_1.0, &key, Some(&self.preauth));
        self.signer = key.and_then(|key| Signer::new(SigningId::AES_GMAC, &key)).map(Arc::new);
        frame.member(&head, &SessionSetupReply { flags: SessionFlags(0), blob: &[] });
        if let Some(signer) = &self.signer {
            frame.each_member(|member| {
                signer.sign(member);
            });
        }
    }
}

/// A CHALLENGE_MESSAGE (MS-NLMP section 2.2.1.2).
fn challenge() -> Vec<u8> {
    let flags = [
        NtlmFlags::UNICODE,
        NtlmFlags::REQUEST_TARGET,
        NtlmFlags::SIGN,
        NtlmFlags::SEAL,
        NtlmFlags::NTLM,
        NtlmFlags::ALWAYS_SIGN,
        NtlmFlags::TARGET_TYPE_SERVER,
        NtlmFlags::EXTENDED_SESSION_SECURITY,
        NtlmFlags::TARGET_INFO,
        NtlmFlags::VERSION,
        NtlmFlags::KEY_128,
        NtlmFlags::KEY_EXCHANGE,
        NtlmFlags::KEY_56,
    ];
    let flags = flags.iter().fold(0, |all, flag| all | flag.0);
    let name: Vec<u8> = "SINK".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut information = Vec::new();
    // MsvAvNbDomainName, MsvAvNbComputerName, and the end.
    for (id, value) in [(2_u16, &name[..]), (1, &name), (0, &[])] {
        information.extend(id.to_le_bytes());
        information.extend((value.len() as u16).to_le_bytes());
        information.extend(value);
    }
    const HEAD_BYTES: usize = 56;
    let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
    let field = |message: &mut Vec<u8>, length: usize, at: usize| {
        for _ in 0..2 {
            message.extend((length as u16).to_le_bytes());
        }
        message.extend((at as u32).to_le_bytes());
    };
    field(&mut message, name.len(), HEAD_BYTES);
    message.extend(flags.to_le_bytes());
    message.extend(CHALLENGE);
    message.extend([0; 8]);
    field(&mut message, information.len(), HEAD_BYTES + name.len());
    message.extend([10, 0, 0, 0, 0, 0, 0, 15]);
    message.extend(name);
    message.extend(information);
    message
}

fn reply_head(request: &Header) -> Head {
    Head {
        credit_charge: request.credit_charge,
        credits: request.credits.max(1),
        flags: Flags::SERVER_TO_REDIR,
        message_id: request.message_id,
        tree_or_async_id: request.tree_or_async_id,
        session_id: request.session_id,
        ..Head::default()
    }
}

/// Head and data are sent without being copied together, unless they are signed.
fn read_reply(
    stream: &mut TcpStream,
    request: &Header,
    data: &[u8],
    whole: &mut Vec<u8>,
    signer: Option<&Signer>,
) -> io::Result<()> {
    let mut frame = Frame::new();
    frame.member(&reply_head(request), &ReadReply { data: &[] });
    let mut bytes = frame.plain().to_vec();
    bytes.resize(READ_HEAD_BYTES, 0);
    let length = (READ_HEAD_BYTES - 4 + data.len()) as u32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes[4 + 64 + 4..4 + 64 + 8].copy_from_slice(&(data.len() as u32).to_le_bytes());
    let Some(signer) = signer else {
        stream.write_all(&bytes)?;
        return stream.write_all(data);
    };
    whole.clear();
    whole.extend_from_slice(&bytes);
    whole.extend_from_slice(data);
    signer.sign(&mut whole[4..]);
    stream.write_all(whole)
}

fn answer(frame: &mut Frame, request: &Header, message: &[u8]) {
    let mut head = reply_head(request);
    frame.clear();
    match request.command {
        Command::NEGOTIATE => frame.member(
            &head,
            &NegotiateReply {
                dialect: Dialect::SMB_3_0_2,
                security_mode: SecurityMode::SIGNING_ENABLED,
                capabilities: Capabilities::LARGE_MTU,
                max_bytes: IO_BYTES as u32,
                blob: &[],
                salt: &[],
                signing: None,
            },
        ),
        Command::SESSION_SETUP => {
            head.session_id = 1;
            frame.member(&head, &SessionSetupReply { flags: SessionFlags::IS_GUEST, blob: &[] });
        }
        Command::TREE_CONNECT => {
            head.tree_or_async_id = 1 << 32;
            frame.member(&head, &TreeConnectReply);
        }
        Command::CREATE => {
            let file_id = FileId { persistent: 1, volatile: 2 };
            let oplock = OplockLevel::NONE;
            let end_of_file = SIZE.load(Ordering::Relaxed);
            frame.member(&head, &CreateReply { file_id, oplock, end_of_file });
        }
        Command::WRITE => {
            let write = WriteRequest(message);
            let count = write.length().unwrap_or(0);
            let end = write.offset().unwrap_or(0) + u64::from(count);
            SIZE.fetch_max(end, Ordering::Relaxed);
            frame.member(&head, &WriteReply { count });
        }
        Command::CLOSE => frame.member(&head, &CloseReply),
        Command::FLUSH => frame.member(&head, &FlushReply),
        Command::TREE_DISCONNECT => frame.member(&head, &TreeDisconnectReply),
        Command::LOGOFF => frame.member(&head, &LogoffReply),
        Command::SET_INFO => frame.member(&head, &SetInfoReply),
        // No list of interfaces, and nothing else that the client could ask.
        _ => {
            head.status = Status::NOT_SUPPORTED.0;
            frame.member(&head, &IoctlError);
        }
    }
}
