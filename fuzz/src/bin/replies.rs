//! A server whose replies have any bytes: the client logs on, connects a share and reads, or ends with an error.
//!
//! The input is a list of replies: how much of the header is kept, a status, and a body. The server ends with the input, so
//! that no time passes.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use smbscope_client::clock::Clock;
use smbscope_client::transport::Transport;
use smbscope_client::{Ask, ClientError, Config, Credential, Host, Session, Target, Want};
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{Create, OpenWish, Write};
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::smb2::{Dialect, FileId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

const SESSION: u64 = 0x77;

fuzz_target!(|bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let _ = talk(bytes.to_vec()).await;
    });
});

async fn talk(script: Vec<u8>) -> Result<(), ClientError> {
    let config = Config { dialects: vec![Dialect::SMB_2_0_2], ..Config::default() };
    let target = Target::parse("//fake/share").expect("a target");
    let host = Host::dialled(target, config, Clock::start(), true, move || {
        let (near, far) = duplex(1 << 16);
        tokio::spawn(serve(far, script.clone()));
        Ok(Box::new(near) as Box<dyn Transport>)
    });
    let credential = Credential::new("LAB\\alice", "secret");
    let limit = Duration::from_secs(5);
    let connected = Session::connect(limit, Arc::new(host), &credential, 0, None).await;
    let mut session = connected.map_err(|failed| failed.error)?;
    let create = Create {
        name: "a",
        desired_access: AccessMask(0x0012_0089),
        file_attributes: FileAttributes(0),
        share_access: ShareAccess(7),
        disposition: CreateDisposition::OPEN,
        options: CreateOptions::NON_DIRECTORY_FILE,
        oplock: OplockLevel::NONE,
        wish: OpenWish::default(),
    };
    let opened = session.call(&create, Ask { want: Want::Message, ..Ask::default() }).await?;
    let file_id = opened.opened()?.map_or(FileId::ANY, |open| open.file_id);
    for _ in 0..8 {
        let body = Write { file_id, offset: 0, flags: WriteFlags(0), data: &[7; 16] };
        let written = session.call(&body, Ask { payload_bytes: 16, ..Ask::default() }).await?;
        assert!(written.transferred <= 16, "no more is written than was sent");
    }
    session.close().await;
    Ok(())
}

/// Answers each request with the next reply of the script.
async fn serve(mut stream: DuplexStream, script: Vec<u8>) -> std::io::Result<()> {
    let mut rest: &[u8] = &script;
    loop {
        let length = stream.read_u32().await? as usize;
        let mut request = vec![0; length];
        stream.read_exact(&mut request).await?;
        let Some((&[how, status, length], after)) = rest.split_first_chunk() else { return Ok(()) };
        let (body, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        let mut reply = Vec::new();
        if how & 1 == 0 {
            reply.extend(request.get(..64).unwrap_or_default());
            reply.resize(64, 0);
            let code: u32 = [0, 0xc000_0016, 0x103, 0x8000_0006][usize::from(status % 4)];
            reply[8..12].copy_from_slice(&code.to_le_bytes());
            reply[14..16].copy_from_slice(&8_u16.to_le_bytes());
            reply[16] = 1 | how >> 1 & 2;
            if reply[12] != 0 {
                reply[40..48].copy_from_slice(&SESSION.to_le_bytes());
            }
        }
        reply.extend(body);
        if how & 2 != 0 {
            // Several messages in one frame, or a frame of another length.
            reply.extend(body);
        }
        let length = reply.len() as u32 + u32::from(how >> 6);
        stream.write_u32(length).await?;
        stream.write_all(&reply).await?;
    }
}
