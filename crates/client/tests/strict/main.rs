//! What the client refuses (MS-SMB2 section 3.2.5): each check of docs/method/client-checks.md with a server, or somebody on
//! the path, that violates it. The same server without its lie is accepted.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod server;

use std::time::Duration;

use server::{Lie, PASSWORD, Server};
use smbscope_client::{Ask, ClientError, Config, Credential, Encryption, Session, Signing};
use smbscope_wire::smb2::encode::Write;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::smb2::{Command, Dialect, FileId};

const D210: Dialect = Dialect::SMB_2_1;
const D302: Dialect = Dialect::SMB_3_0_2;
const D311: Dialect = Dialect::SMB_3_1_1;
const LIMIT: Duration = Duration::from_secs(5);

/// Connects and writes 16 bytes.
async fn write(server: Server, config: Config) -> Result<(), ClientError> {
    let credential = Credential::new("LAB\\alice", PASSWORD);
    let connected = Session::connect(LIMIT, server.host(config), &credential, 0, None).await;
    let mut session = connected.map_err(|failed| failed.error)?;
    let file_id = FileId { persistent: 1, volatile: 1 };
    let body = Write { file_id, offset: 0, flags: WriteFlags(0), data: &[7; 16] };
    let ask = Ask { payload_bytes: 16, ..Ask::default() };
    session.call(&body, ask).await.map(|_| ())
}

/// The error; the same server without its lies is accepted.
async fn refused(server: Server, config: Config) -> String {
    write(Server::honest(server.dialect), config.clone()).await.unwrap();
    let lie = format!("{server:?}");
    write(server, config).await.err().unwrap_or_else(|| panic!("accepted: {lie}")).to_string()
}

fn signed() -> Config {
    Config { signing: Signing::Required, ..Config::default() }
}

fn sealed() -> Config {
    Config { encryption: Encryption::Required, ..Config::default() }
}

#[tokio::test(start_paused = true)]
async fn an_honest_server_is_accepted() {
    for dialect in [Dialect::SMB_2_0_2, D210, Dialect::SMB_3_0, D302, D311] {
        write(Server::honest(dialect), Config::default()).await.unwrap();
        write(Server::honest(dialect), signed()).await.unwrap();
        if dialect >= Dialect::SMB_3_0 {
            write(Server::honest(dialect), sealed()).await.unwrap();
        }
        // A guest is refused only if the user requires protection.
        let guest = Server { session_flags: 1, ..Server::honest(dialect) };
        write(guest, Config::default()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn guests_and_null_sessions_are_not_protected() {
    for (session_flags, config) in [(1, signed()), (2, signed()), (1, sealed()), (2, sealed())] {
        for dialect in [D302, D311] {
            let server = Server { session_flags, ..Server::honest(dialect) };
            let error = refused(server, config.clone()).await;
            assert!(error.contains("guest"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn replies_have_the_protection_of_their_requests() {
    for command in [Command::TREE_CONNECT, Command::WRITE] {
        for (config, lie) in
            [(signed(), Lie::Plain), (signed(), Lie::WrongSignature), (sealed(), Lie::Plain)]
        {
            let error = refused(Server::lying(D311, command, lie), config).await;
            assert!(error.contains("failed verification"), "{error}");
        }
    }
    // The TreeConnect of 3.1.1 is signed in every session.
    let server = Server::lying(D311, Command::TREE_CONNECT, Lie::Plain);
    let error = refused(server, Config::default()).await;
    assert!(error.contains("failed verification"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_answers_its_request() {
    for config in [signed(), sealed(), Config::default()] {
        for (lie, expected) in [
            (Lie::Command(1), "says that it answers a SessionSetup"),
            (Lie::Command(18), "says that it answers a OplockBreak"),
            (Lie::Session(0x78), "another session"),
            (Lie::Request, "not a reply"),
            (Lie::HeaderBytes(63), "not a reply"),
            (Lie::MessageId(1000), "message 1000, which waits for no reply"),
            (Lie::Next(8), "no member begins"),
            (Lie::Next(4096), "no member begins"),
            (Lie::Count(17), "17 bytes of 16"),
        ] {
            let server = Server::lying(D302, Command::WRITE, lie);
            let error = refused(server, config.clone()).await;
            assert!(error.contains(expected), "{lie:?}: {error}");
        }
        let error =
            refused(Server::lying(D311, Command::TREE_CONNECT, Lie::Command(1)), config.clone());
        assert!(error.await.contains("says that it answers a SessionSetup"));
    }
    let server = Server::lying(D311, Command::WRITE, Lie::TransformSession(0x78));
    assert!(refused(server, sealed()).await.contains("another session"));
}

#[tokio::test(start_paused = true)]
async fn the_last_reply_of_a_logon_is_signed() {
    for last in [Lie::Plain, Lie::WrongSignature] {
        for (dialect, config) in
            [(D210, signed()), (D302, signed()), (D302, sealed()), (D311, Config::default())]
        {
            let server = Server { last: Some(last), ..Server::honest(dialect) };
            let error = refused(server, config).await;
            assert!(error.contains("the last SessionSetup reply"), "{error}");
        }
    }
    // Before 3.1.1 a session that signs nothing need not sign it; a wrong signature is wrong anyway.
    let unsigned = Server { last: Some(Lie::Plain), ..Server::honest(D302) };
    write(unsigned, Config::default()).await.unwrap();
    let wrong = Server { last: Some(Lie::WrongSignature), ..Server::honest(D302) };
    assert!(refused(wrong, Config::default()).await.contains("the last SessionSetup reply"));
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_is_detected() {
    for dialect in [Dialect::SMB_2_0_2, D210, Dialect::SMB_3_0, D302] {
        let honest = Server::honest(dialect);
        let (guid, capabilities, number) = honest.validated;
        for validated in [
            (guid, capabilities, D311.0),
            (guid, capabilities & !0x40, number),
            ([0; 16], capabilities, number),
        ] {
            let server = Server { validated, ..honest.clone() };
            let error = refused(server, Config::default()).await;
            assert!(error.contains("modified in transit"), "{error}");
        }
        let server = Server::lying(dialect, Command::IOCTL, Lie::Plain);
        let error = refused(server, Config::default()).await;
        assert!(error.contains("failed verification"), "{error}");
    }
    // A client that offers nothing later cannot be downgraded.
    let server = Server::lying(D210, Command::IOCTL, Lie::Silence);
    let config = Config { dialects: vec![Dialect::SMB_2_0_2, D210], ..Config::default() };
    write(server, config).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_server_chooses_from_the_offer() {
    let contexts = |contexts| Server { contexts, ..Server::honest(D311) };
    let only = |cipher, algorithm| Config {
        ciphers: vec![cipher],
        signing_algorithms: vec![algorithm],
        ..Config::default()
    };
    let config = only(CipherId::AES_128_GCM, SigningId::AES_CMAC);
    let hash = (1, vec![1]);
    for (wrong, expected) in [
        (vec![hash.clone(), (2, vec![1])], "cipher 1, which was not offered"),
        (vec![hash.clone(), (2, vec![9])], "cipher 9, which was not offered"),
        (vec![hash.clone(), (2, vec![2, 1])], "one cipher"),
        (vec![hash.clone(), (2, vec![])], "one cipher"),
        (vec![hash.clone(), (2, vec![2]), (2, vec![2])], "one cipher"),
        (vec![hash.clone(), (8, vec![2])], "signing algorithm 2, which was not offered"),
        (vec![hash.clone(), (8, vec![1, 2])], "one signing algorithm"),
        (vec![(2, vec![2])], "SHA-512"),
        (vec![(1, vec![2])], "SHA-512"),
        (vec![hash.clone(), hash.clone()], "one preauthentication hash"),
    ] {
        let error = refused(contexts(wrong), config.clone()).await;
        assert!(error.contains(expected), "{error}");
    }
    let error = refused(contexts(vec![hash.clone(), (2, vec![0])]), sealed()).await;
    assert!(error.contains("does not offer it"), "{error}");
    // Without a choice the dialect signs with AES-CMAC, and 3.0 encrypts with AES-128-CCM.
    let gmac = Config { signing_algorithms: vec![SigningId::AES_GMAC], ..signed() };
    let error = write(contexts(vec![hash]), gmac).await.unwrap_err().to_string();
    assert!(error.contains("signs with AES-CMAC"), "{error}");
    let gcm = Config { ciphers: vec![CipherId::AES_256_GCM], ..sealed() };
    let error = write(Server::honest(D302), gcm).await.unwrap_err().to_string();
    assert!(error.contains("does not offer it"), "{error}");
    let old = Config { dialects: vec![D302, D311], ..Config::default() };
    let error = write(Server::honest(D210), old).await.unwrap_err().to_string();
    assert!(error.contains("0x0210, which was not offered"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_on_without_end() {
    for (lie, expected) in [
        (Lie::Silence, "no reply within 5s"),
        (Lie::Interims, "interim replies"),
        (Lie::Breaks, "breaks in a row"),
    ] {
        for command in [Command::TREE_CONNECT, Command::WRITE] {
            let error = refused(Server::lying(D311, command, lie), signed()).await;
            assert!(error.contains(expected), "{lie:?}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_encrypted_is_discarded_in_an_encrypted_session() {
    let server = Server::lying(D311, Command::WRITE, Lie::PlainBreakFirst);
    let credential = Credential::new("LAB\\alice", PASSWORD);
    let host = server.host(sealed());
    let mut session = Session::connect(LIMIT, host, &credential, 0, None).await.unwrap();
    let file_id = FileId { persistent: 1, volatile: 1 };
    let body = Write { file_id, offset: 0, flags: WriteFlags(0), data: &[7; 16] };
    let ask = Ask { payload_bytes: 16, ..Ask::default() };
    session.call(&body, ask).await.unwrap();
    assert_eq!(session.channel().table.breaks, 0);
    let rows = session.take_rows();
    assert!(rows.iter().all(|row| row.operation.pending_at().is_none()));
}

#[tokio::test(start_paused = true)]
async fn credits_have_a_limit() {
    let server = Server { credits: u16::MAX, ..Server::honest(D302) };
    let credential = Credential::new("LAB\\alice", PASSWORD);
    let host = server.host(signed());
    let connected = Session::connect(LIMIT, host, &credential, 0, None).await;
    let mut session = connected.map_err(|failed| failed.error).unwrap();
    assert_eq!(session.channel().credits(), 65_535);
}
