//! Every dialect, signing algorithm and cipher with the real Samba: the system's, and 4.22 where
//! `scripts/samba-4.22.sh` unpacked it.

// A test may panic.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use smbscope_client::row::Row;
use smbscope_client::{Ask, Config, Credential, Encryption, Session, Signing};
use smbscope_lab as lab;
use smbscope_load::prepare;
use smbscope_tables::code;
use smbscope_testing::run::runtime;
use smbscope_testing::samba::{Samba, connect_to, samba, samba_4_22};
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, OpenWish};
use smbscope_wire::smb2::lease::LeaseState;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};
use smbscope_wire::smb2::read::ReadFlags;
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::smb2::{Command, Dialect, FileId};
use smbscope_wire::status::Status;

const D202: Dialect = Dialect::SMB_2_0_2;
const D210: Dialect = Dialect::SMB_2_1;
const D300: Dialect = Dialect::SMB_3_0;
const D302: Dialect = Dialect::SMB_3_0_2;
const D311: Dialect = Dialect::SMB_3_1_1;

/// Why a user cannot log on.
async fn refused(lab: &Samba, config: Config) -> String {
    let credential = Credential::new("user00001", &lab.password);
    lab.try_to_connect(config, &credential).await.err().unwrap().error.to_string()
}

async fn open(session: &mut Session, name: &str, wish: OpenWish) -> smbscope_client::Open {
    let body = encode::Create {
        name,
        desired_access: AccessMask(0x0012_019f),
        file_attributes: FileAttributes(0),
        share_access: ShareAccess(7),
        disposition: CreateDisposition::OPEN_IF,
        options: CreateOptions(0),
        oplock: OplockLevel::NONE,
        wish,
    };
    let reply = session.call(&body, Ask::default()).await.unwrap();
    assert_eq!(reply.status, Status::SUCCESS, "{name}");
    reply.open.unwrap()
}

async fn close(session: &mut Session, file_id: FileId) {
    let body = encode::Close { file_id, flags: CloseFlags::POSTQUERY_ATTRIB };
    assert_eq!(session.call(&body, Ask::default()).await.unwrap().status, Status::SUCCESS);
}

/// Creates a file, writes it, reads it back, lists the folder; returns the recorded rows.
async fn work(session: &mut Session, name: &str) -> Vec<Box<Row>> {
    let file_id = open(session, name, OpenWish::default()).await.file_id;
    let length = 65_536;
    let data: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
    let ask = || Ask { payload_bytes: length, ..Ask::default() };
    for place in 0..3 {
        let offset = place * u64::from(length);
        let body = encode::Write { file_id, offset, flags: WriteFlags(0), data: &data };
        let reply = session.call(&body, ask()).await.unwrap();
        assert_eq!((reply.status, reply.transferred), (Status::SUCCESS, length));
        let body = encode::Read { file_id, offset, length, flags: ReadFlags(0) };
        let reply = session.call(&body, ask()).await.unwrap();
        assert_eq!((reply.status, reply.transferred), (Status::SUCCESS, length));
    }
    close(session, file_id).await;
    let found = prepare::list(session, "").await.unwrap().unwrap();
    assert!(found.iter().any(|entry| entry.name == name && entry.bytes == 3 * 65_536));
    session.take_rows()
}

/// Dialect, signing, algorithm, encryption, cipher.
type Case = (Dialect, Signing, Option<SigningId>, Encryption, Option<CipherId>);

fn cases(encrypted: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    if encrypted {
        for dialect in [D300, D302] {
            let cipher = Some(CipherId::AES_128_CCM);
            cases.push((dialect, Signing::Auto, None, Encryption::Required, cipher));
        }
        for cipher in [1, 2, 3, 4].map(CipherId) {
            cases.push((D311, Signing::Auto, None, Encryption::Required, Some(cipher)));
        }
        return cases;
    }
    for dialect in [D202, D210, D300, D302, D311] {
        for signing in [Signing::Off, Signing::Required] {
            cases.push((dialect, signing, None, Encryption::Off, None));
        }
    }
    for algorithm in [0, 1, 2].map(SigningId) {
        cases.push((D311, Signing::Required, Some(algorithm), Encryption::Off, None));
    }
    cases
}

fn every_case(lab: &Samba, encrypted: bool) {
    for (dialect, signing, algorithm, encryption, cipher) in cases(encrypted) {
        let mut config =
            Config { dialects: vec![dialect], signing, encryption, ..Config::default() };
        config.signing_algorithms = algorithm.map_or(config.signing_algorithms, |one| vec![one]);
        config.ciphers = cipher.map_or(config.ciphers, |one| vec![one]);
        let case = format!("{dialect:?} {signing:?} {algorithm:?} {encryption:?} {cipher:?}");
        runtime().block_on(async {
            let mut session = lab.connect(config, "user00001").await;
            let negotiated = *session.negotiated();
            assert_eq!(negotiated.dialect, dialect, "{case}");
            if let Some(algorithm) = algorithm {
                assert_eq!(negotiated.signing, algorithm, "{case}");
            }
            if let Some(cipher) = cipher {
                assert_eq!(negotiated.cipher, Some(cipher), "{case}");
            }
            let connecting = session.take_rows();
            let validated = connecting.iter().filter(|row| {
                let row = &row.operation;
                row.command() == Some(code::command(2, Command::IOCTL.0)) && row.status() == Some(0)
            });
            // 3.0 and 3.0.2 validate the negotiation, in a signed or encrypted message.
            let asks = [D300, D302].contains(&dialect);
            assert_eq!(validated.count(), usize::from(asks), "{case}");
            let rows = work(&mut session, "file.bin").await;
            assert!(rows.len() > 8);
            for row in &rows {
                let row = &row.operation;
                assert_eq!(row.signed(), Some(signing == Signing::Required), "{case}");
                assert_eq!(row.encrypted(), Some(encrypted), "{case}");
                assert!(row.elapsed_ns().is_some_and(|elapsed| elapsed > 0), "{case}");
            }
            session.close().await;
        });
    }
}

#[test]
fn every_dialect_and_signature() {
    let Some(lab) = samba(|_| {}) else { return };
    every_case(&lab, false);
}

#[test]
fn every_cipher() {
    let Some(lab) = samba(|options| options.encryption = lab::Encryption::Desired) else { return };
    every_case(&lab, true);
}

#[test]
fn samba_4_22_too() {
    let Some(smbd) = samba_4_22() else { return };
    let Some(lab) = samba(|options| options.samba = Some(smbd.clone())) else { return };
    every_case(&lab, false);
    drop(lab);
    let encrypted = samba(|options| {
        options.samba = Some(smbd.clone());
        options.encryption = lab::Encryption::Desired;
    });
    every_case(&encrypted.unwrap(), true);
}

#[test]
fn a_wrong_password_and_a_wrong_share_say_so() {
    let Some(lab) = samba(|_| {}) else { return };
    runtime().block_on(async {
        let credential = Credential::new("user00001", "wrong");
        let failed = lab.try_to_connect(Config::default(), &credential).await.err().unwrap();
        assert_eq!(failed.error.to_string(), "SessionSetup: STATUS_LOGON_FAILURE");
        assert!(!failed.left.rows.is_empty() && failed.left.connections.len() == 1);
        let credential = Credential::new("user00001", &lab.password);
        let server = lab.target.strip_suffix("home").unwrap();
        for (target, wanted) in [
            (format!("{server}nowhere"), r"\\127.0.0.1\nowhere: there is no such share"),
            ("//127.0.0.1:1/home".to_owned(), "cannot connect"),
        ] {
            let failed = connect_to(&target, Config::default(), &credential).await.err().unwrap();
            assert!(failed.error.to_string().contains(wanted), "{}", failed.error);
        }
    });
}

#[test]
fn features_beyond_an_old_dialect_are_refused() {
    let Some(lab) = samba(|_| {}) else { return };
    let old = Config { dialects: vec![Dialect::SMB_2_1], ..Config::default() };
    let encrypted = Config { encryption: Encryption::Required, ..old.clone() };
    let several = Config { channels: 2, ..old };
    runtime().block_on(async {
        for (config, what) in [(encrypted, "encryption needs"), (several, "more channels need")] {
            let error = refused(&lab, config).await;
            let wanted = format!("{what} dialect 3.0 or later, but 2.1 was negotiated");
            assert!(error.contains(&wanted), "{error}");
        }
    });
}

/// Forwards connections to a server; the second one ends after the given number of bytes from its client.
fn passes_on(server: String, most: usize) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let client = client.unwrap();
            let there = TcpStream::connect(&server).unwrap();
            let pass = |mut from: TcpStream, mut to: TcpStream, most: usize| {
                std::thread::spawn(move || {
                    let (mut bytes, mut passed) = (vec![0; 65_536], 0);
                    while let Ok(n @ 1..) = from.read(&mut bytes) {
                        passed += n;
                        if passed > most || to.write_all(&bytes[..n]).is_err() {
                            break;
                        }
                    }
                    let _ = from.shutdown(Shutdown::Both);
                    let _ = to.shutdown(Shutdown::Both);
                })
            };
            let limit = if number == 0 { usize::MAX } else { most };
            pass(client.try_clone().unwrap(), there.try_clone().unwrap(), limit);
            pass(there, client, usize::MAX);
        }
    });
    address
}

#[test]
fn a_channel_that_cannot_be_bound_leaves_its_rows() {
    let Some(lab) = samba(|options| options.multichannel = Some(true)) else { return };
    // Enough for a Negotiate, but not for all of the logon.
    let server = lab.target.split('/').nth(2).unwrap();
    let at = lab.target.replace(server, &passes_on(server.to_owned(), 320).to_string());
    runtime().block_on(async {
        let config = Config { channels: 2, ..Config::default() };
        let credential = Credential::new("user00001", &lab.password);
        let connected = connect_to(&at, config, &credential).await;
        let Err(failed) = connected else { panic!("it was bound") };
        let left = failed.left;
        assert_eq!(left.connections.len(), 2, "{}", failed.error);
        let rows = left.rows.iter().filter(|row| row.operation.channel() == Some(1));
        let commands: Vec<_> = rows.map(|row| row.operation.command()).collect();
        let expected = [Command::NEGOTIATE, Command::SESSION_SETUP];
        assert_eq!(commands, expected.map(|one| Some(code::command(2, one.0))));
    });
}

#[test]
fn encryption_over_several_channels_is_refused() {
    let Some(lab) = samba(|options| {
        options.multichannel = Some(true);
        options.encryption = lab::Encryption::Required;
    }) else {
        return;
    };
    runtime().block_on(async {
        let config = Config { channels: 2, ..Config::default() };
        let error = refused(&lab, config).await;
        assert!(error.contains("--channels 1"), "{error}");
    });
}

#[test]
fn several_channels_carry_one_session() {
    let Some(lab) = samba(|options| options.multichannel = Some(true)) else { return };
    for (dialect, encryption) in
        [(D300, Encryption::Auto), (D311, Encryption::Auto), (D311, Encryption::Required)]
    {
        let lab = match encryption {
            Encryption::Required => {
                let encrypted = samba(|options| {
                    options.multichannel = Some(true);
                    options.encryption = lab::Encryption::Desired;
                });
                &encrypted.unwrap()
            }
            _ => &lab,
        };
        runtime().block_on(async {
            let config =
                Config { dialects: vec![dialect], encryption, channels: 3, ..Config::default() };
            let mut session = lab.connect(config, "user00001").await;
            assert_eq!(session.channels().len(), 3);
            let file_id = open(&mut session, "wide.bin", OpenWish::default()).await.file_id;
            let data = vec![7; 65_536];
            let mut sent = Vec::new();
            for place in 0..6 {
                let channel = place % 3;
                session.have_credits(channel, 1).await.unwrap();
                let offset = place as u64 * 65_536;
                let body = encode::Write { file_id, offset, flags: WriteFlags(0), data: &data };
                let ask = Ask { payload_bytes: 65_536, ..Ask::default() };
                sent.push((channel, session.add(channel, false, &body, ask)));
                session.send(channel).await.unwrap();
            }
            for (channel, id) in sent {
                assert_eq!(session.wait(channel, id).await.unwrap().status, Status::SUCCESS);
            }
            close(&mut session, file_id).await;
            let rows = session.take_rows();
            let used: std::collections::BTreeSet<_> =
                rows.iter().filter_map(|row| row.operation.channel()).collect();
            assert_eq!(used.len(), 3);
            session.close().await;
        });
    }
}

/// A lease is granted, another client's open breaks it, and the client acknowledges the break.
#[test]
fn leases_are_granted_and_broken() {
    let Some(lab) = samba(|_| {}) else { return };
    for dialect in [D210, D300, D311] {
        runtime().block_on(async {
            let config = || Config { dialects: vec![dialect], ..Config::default() };
            let mut one = lab.connect(config(), "user00001").await;
            let mut two = lab.connect(config(), "user00002").await;
            let v2 = dialect >= D300;
            let lease = one.leases.wish(one.client_guid(), "leased", LeaseState(7), v2);
            let wish = OpenWish { lease: Some(lease), ..OpenWish::default() };
            let opened = open(&mut one, "leased", wish).await;
            let granted = opened.lease.unwrap();
            assert_eq!((granted.state, granted.key), (LeaseState(7), lease.key));
            one.leases.granted(&"leased".into(), &granted, false);
            // The other client's open waits until the break is acknowledged.
            let lease = two.leases.wish(two.client_guid(), "leased", LeaseState(7), v2);
            let wish = OpenWish { lease: Some(lease), ..OpenWish::default() };
            let other = async {
                let opened = open(&mut two, "leased", wish).await;
                close(&mut two, opened.file_id).await;
            };
            let answering = async {
                while one.leases.breaks == 0 {
                    one.receive().await.unwrap();
                    one.answer_breaks().await.unwrap();
                }
                // The acknowledgement gets an answer.
                while one.channel().waiting() > 0 {
                    one.receive().await.unwrap();
                }
            };
            let both = async { tokio::join!(other, answering) };
            tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
            let left = one.leases.held_on("leased").map_or(LeaseState::NONE, |held| held.state);
            assert!(!left.contains(LeaseState::WRITE), "{left:?}");
            close(&mut one, opened.file_id).await;
            one.close().await;
            two.close().await;
        });
    }
}
