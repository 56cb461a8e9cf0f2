//! A server with nothing behind it: answers what the clients of the bench ask, from memory.
//!
//! Logs everybody on as a guest at once. A signed request gets a signed reply, with a key that the
//! client takes likewise ([`signer`]), since a guest has none.

use smbscope_wire::crypto::{Key, Signer};
use smbscope_wire::nbss;
use smbscope_wire::smb2::create::OplockLevel;
use smbscope_wire::smb2::encode::reply::{
    CloseReply, CreateReply, EchoReply, LogoffReply, NegotiateReply, QueryInfoReply,
    SessionSetupReply, TreeConnectReply, TreeDisconnectReply,
};
use smbscope_wire::smb2::encode::{Frame, Head};
use smbscope_wire::smb2::header::{Flags, Header};
use smbscope_wire::smb2::negotiate::{Capabilities, SecurityMode};
use smbscope_wire::smb2::negotiate_context::SigningId;
use smbscope_wire::smb2::session::SessionFlags;
use smbscope_wire::smb2::{Command, Dialect, FileId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Signs on both sides.
pub fn signer() -> Signer {
    Signer::new(SigningId::AES_GMAC, &Key::new(&[7; 16]).unwrap()).unwrap()
}

/// Listens, prints its port, serves until standard input ends.
pub async fn serve() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener: TcpListener = socket.listen(4096).unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(stream));
    }
}

async fn connection(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let signer = signer();
    let mut frame = Frame::new();
    let mut kept = Vec::new();
    let mut bytes = [0; 2048];
    loop {
        let count = stream.read(&mut bytes).await.ok().filter(|&count| count > 0)?;
        kept.extend_from_slice(&bytes[..count]);
        loop {
            let Some(header) = nbss::Header::parse(&kept) else { break };
            let length = nbss::HEADER_BYTES + header.length as usize;
            let Some(message) = kept.get(nbss::HEADER_BYTES..length) else { break };
            let request = Header::parse(message)?;
            answer(&mut frame, &request)?;
            if request.flags.is_signed() {
                frame.each_member(|member| {
                    signer.sign(member);
                });
            }
            stream.write_all(frame.plain()).await.ok()?;
            kept.drain(..length);
        }
    }
}

fn answer(frame: &mut Frame, request: &Header) -> Option<()> {
    let mut head = Head {
        credit_charge: request.credit_charge,
        credits: request.credits.max(1),
        flags: Flags::SERVER_TO_REDIR,
        message_id: request.message_id,
        tree_or_async_id: request.tree_or_async_id,
        session_id: request.session_id,
        ..Head::default()
    };
    frame.clear();
    match request.command {
        Command::NEGOTIATE => frame.member(
            &head,
            &NegotiateReply {
                dialect: Dialect::SMB_3_1_1,
                security_mode: SecurityMode::SIGNING_ENABLED,
                capabilities: Capabilities::LARGE_MTU,
                max_bytes: 1 << 20,
                blob: &[],
                salt: &[3; 32],
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
            frame.member(&head, &CreateReply { file_id, oplock, end_of_file: 0 });
        }
        Command::CLOSE => frame.member(&head, &CloseReply),
        Command::QUERY_INFO => frame.member(&head, &QueryInfoReply { data: &[0; 56] }),
        Command::ECHO => frame.member(&head, &EchoReply),
        Command::TREE_DISCONNECT => frame.member(&head, &TreeDisconnectReply),
        Command::LOGOFF => frame.member(&head, &LogoffReply),
        _ => return None,
    }
    Some(())
}
