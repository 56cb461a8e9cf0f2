//! An SMB server with nothing behind it, for `bench/bulk.py`: it takes what is written, and answers reads from memory, so
//! that a measurement shows the client and the network instead of a server's work.
//!
//! Every user is a guest, every name is a file. One thread serves each connection. Prints its port, ends with its standard
//! input.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use smbscope_wire::nbss;
use smbscope_wire::smb2::create::OplockLevel;
use smbscope_wire::smb2::encode::reply::{
    CloseReply, CreateReply, FlushReply, IoctlError, LogoffReply, NegotiateReply, ReadReply,
    SessionSetupReply, SetInfoReply, TreeConnectReply, TreeDisconnectReply, WriteReply,
};
use smbscope_wire::smb2::encode::{Frame, Head};
use smbscope_wire::smb2::header::{Flags, Header};
use smbscope_wire::smb2::negotiate::{Capabilities, SecurityMode};
use smbscope_wire::smb2::read::ReadRequest;
use smbscope_wire::smb2::session::SessionFlags;
use smbscope_wire::smb2::write::WriteRequest;
use smbscope_wire::smb2::{Command, Dialect, FileId};
use smbscope_wire::status::Status;

/// Longest read and write.
const IO_BYTES: usize = 8 << 20;
/// A read's reply before its data: NetBIOS, the SMB2 header, and the body (MS-SMB2 section 2.2.20).
const READ_HEAD_BYTES: usize = 4 + 64 + 16;
/// Most of a request that is parsed: its headers.
const PARSED_BYTES: usize = 4096;

fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("port {}", listener.local_addr()?.port());
    std::thread::spawn(|| {
        let _ = io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let stream = stream?;
        // A client that leaves ends its thread.
        std::thread::spawn(move || serve(stream));
    }
    Ok(())
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut frame = Frame::new();
    let mut size = 0;
    let data = vec![0x5a; IO_BYTES];
    let mut scratch = vec![0; 512 << 10];
    let mut head = vec![0; PARSED_BYTES];
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let Some(outer) = nbss::Header::parse(&length) else { return Ok(()) };
        let length = outer.length as usize;
        let parsed = length.min(PARSED_BYTES);
        stream.read_exact(&mut head[..parsed])?;
        let mut rest = length - parsed;
        while rest > 0 {
            let part = rest.min(scratch.len());
            rest -= stream.read(&mut scratch[..part])?;
        }
        let message = &head[..parsed];
        let Some(request) = Header::parse(message) else { return Ok(()) };
        if request.command == Command::READ {
            let wanted = ReadRequest(message).length().unwrap_or(0) as usize;
            read_reply(&mut stream, &request, &data[..wanted.min(IO_BYTES)])?;
            continue;
        }
        answer(&mut frame, &request, message, &mut size);
        stream.write_all(frame.plain())?;
    }
}

fn of(request: &Header) -> Head {
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

/// Head and data are sent without being copied together.
fn read_reply(stream: &mut TcpStream, request: &Header, data: &[u8]) -> io::Result<()> {
    let mut frame = Frame::new();
    frame.member(&of(request), &ReadReply { data: &[] });
    let mut bytes = frame.plain().to_vec();
    bytes.resize(READ_HEAD_BYTES, 0);
    let length = (READ_HEAD_BYTES - 4 + data.len()) as u32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes[4 + 64 + 4..4 + 64 + 8].copy_from_slice(&(data.len() as u32).to_le_bytes());
    stream.write_all(&bytes)?;
    stream.write_all(data)
}

fn answer(frame: &mut Frame, request: &Header, message: &[u8], size: &mut u64) {
    let mut head = of(request);
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
            frame.member(&head, &CreateReply { file_id, oplock, end_of_file: *size });
        }
        Command::WRITE => {
            let write = WriteRequest(message);
            let count = write.length().unwrap_or(0);
            *size = (*size).max(write.offset().unwrap_or(0) + u64::from(count));
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
