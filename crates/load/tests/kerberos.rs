//! Logons with Kerberos, with password and with keytab, to the real Samba with a private MIT KDC.

// A test may panic.
#![allow(clippy::unwrap_used)]

#[path = "support/kdc.rs"]
mod kdc;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kdc::{Kdc, REALM, free_port};
use smbscope_client::kerberos::kdc::{KdcAddress, REPLY_TIMEOUT};
use smbscope_client::kerberos::keytab::Keytab;
use smbscope_client::kerberos::krb5_conf::Krb5Conf;
use smbscope_client::{Ask, Config, Credential, Encryption, Kerberos, Session, Signing};
use smbscope_lab as lab;
use smbscope_load::prepare;
use smbscope_testing::run::runtime;
use smbscope_testing::samba::{Samba, samba, samba_4_22};
use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::encode;
use smbscope_wire::smb2::negotiate_context::CipherId;
use smbscope_wire::status::Status;

const PASSWORD: &str = "a long secret";

/// A KDC with two users and the file server's key, and keytabs of both.
fn realm() -> Option<Kdc> {
    let kdc = Kdc::start()?;
    let (users, server) = (kdc.path("users.keytab"), kdc.path("server.keytab"));
    kdc.admin(&[
        format!("addprinc -pw \"{PASSWORD}\" user00001"),
        format!("addprinc -pw \"{PASSWORD}\" user00002"),
        // A standalone Samba only accepts tickets without a PAC, because no KDC that it trusts signs one.
        "addprinc -randkey +no_auth_data_required cifs/127.0.0.1".into(),
        format!("ktadd -k {} cifs/127.0.0.1", server.display()),
        format!("ktadd -norandkey -k {} user00001 user00002", users.display()),
    ]);
    Some(kdc)
}

/// A Samba that accepts the realm's tickets.
fn server(kdc: &Kdc, change: impl FnOnce(&mut lab::Options)) -> Option<Samba> {
    samba(|options| {
        let keytab = format!("FILE:{}", kdc.path("server.keytab").display());
        for (name, value) in [
            ("realm", REALM),
            ("kerberos method", "dedicated keytab"),
            ("dedicated keytab file", &keytab),
        ] {
            options.set.push((name.into(), value.into()));
        }
        let conf = format!("KRB5_CONFIG={}", kdc.path("krb5.conf").display());
        options.enter = vec!["env".into(), conf.into()];
        change(options);
    })
}

fn with_password(kdc: &Kdc) -> Kerberos {
    Kerberos { realm: Some(REALM.into()), kdcs: vec![kdc.address()], ..Kerberos::default() }
}

fn with_keytab(kdc: &Kdc) -> Kerberos {
    let keytab = Keytab::read(&kdc.path("users.keytab")).unwrap();
    Kerberos { keytab: Some(Arc::new(keytab)), ..with_password(kdc) }
}

async fn try_to_connect(
    lab: &Samba,
    kerberos: Kerberos,
    credential: &Credential,
    config: Config,
) -> Result<Session, String> {
    let config = Config { kerberos: Some(Arc::new(kerberos)), ..config };
    lab.try_to_connect(config, credential).await.map_err(|failed| failed.error.to_string())
}

async fn connect(lab: &Samba, kerberos: Kerberos, config: Config) -> Session {
    let credential = Credential::new("LAB.TEST\\user00001", PASSWORD);
    try_to_connect(lab, kerberos, &credential, config).await.unwrap()
}

/// Why a logon fails.
fn refused(lab: &Samba, kerberos: Kerberos, name: &str, password: &str) -> String {
    let credential = Credential::new(name, password);
    runtime().block_on(async {
        let connected = try_to_connect(lab, kerberos, &credential, Config::default()).await;
        connected.err().unwrap()
    })
}

/// Lists the share and sends an Echo on every connection; returns how the rows were protected, and
/// their users.
async fn work(session: &mut Session) -> Vec<(Option<bool>, Option<bool>, String)> {
    session.take_rows();
    prepare::list(session, "").await.unwrap().unwrap();
    for channel in 0..session.channels().len() {
        session.have_credits(channel, 1).await.unwrap();
        let id = session.add(channel, false, &encode::Echo, Ask::default());
        session.send(channel).await.unwrap();
        assert_eq!(session.wait(channel, id).await.unwrap().status, Status::SUCCESS);
    }
    let rows = session.take_rows();
    assert!(rows.len() > session.channels().len());
    let protection = |row: &smbscope_client::row::Row| {
        (row.operation.signed(), row.operation.encrypted(), row.link.user.clone())
    };
    rows.iter().map(|row| protection(row)).collect()
}

#[test]
fn a_password_and_a_keytab_log_on_in_every_dialect() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    for kerberos in [with_password(&kdc), with_keytab(&kdc)] {
        for dialect in [
            Dialect::SMB_2_0_2,
            Dialect::SMB_2_1,
            Dialect::SMB_3_0,
            Dialect::SMB_3_0_2,
            Dialect::SMB_3_1_1,
        ] {
            runtime().block_on(async {
                let signing = Signing::Required;
                let config = Config { dialects: vec![dialect], signing, ..Config::default() };
                let mut session = connect(&lab, kerberos.clone(), config).await;
                for row in work(&mut session).await {
                    let user = "LAB.TEST\\user00001".to_owned();
                    assert_eq!(row, (Some(true), Some(false), user), "{dialect:?}");
                }
                session.close().await;
            });
        }
    }
}

#[test]
fn every_cipher_works_with_the_key_of_a_ticket() {
    let Some(kdc) = realm() else { return };
    let desired = |options: &mut lab::Options| options.encryption = lab::Encryption::Desired;
    let Some(lab) = server(&kdc, desired) else { return };
    for cipher in [1, 2, 3, 4].map(CipherId) {
        runtime().block_on(async {
            let config = Config {
                dialects: vec![Dialect::SMB_3_1_1],
                encryption: Encryption::Required,
                ciphers: vec![cipher],
                ..Config::default()
            };
            let mut session = connect(&lab, with_password(&kdc), config).await;
            assert_eq!(session.negotiated().cipher, Some(cipher));
            let rows = work(&mut session).await;
            assert!(rows.iter().all(|(_, encrypted, _)| *encrypted == Some(true)), "{cipher:?}");
            session.close().await;
        });
    }
}

#[test]
fn two_channels_carry_a_session() {
    let Some(kdc) = realm() else { return };
    for encryption in [lab::Encryption::Off, lab::Encryption::Desired] {
        let Some(lab) = server(&kdc, |options| {
            options.multichannel = Some(true);
            options.encryption = encryption;
        }) else {
            return;
        };
        let encrypted = encryption == lab::Encryption::Desired;
        for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_1_1] {
            runtime().block_on(async {
                let dialects = vec![dialect];
                let signing = Signing::Required;
                let config = Config { dialects, signing, channels: 2, ..Config::default() };
                let mut session = connect(&lab, with_keytab(&kdc), config).await;
                assert_eq!(session.channels().len(), 2);
                for (signed, sealed, _) in work(&mut session).await {
                    assert_eq!((signed, sealed), (Some(!encrypted), Some(encrypted)));
                }
                session.close().await;
            });
        }
    }
}

#[test]
fn samba_4_22_takes_tickets_too() {
    let Some(smbd) = samba_4_22() else { return };
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |options| options.samba = Some(smbd.clone())) else { return };
    runtime().block_on(async {
        let mut session = connect(&lab, with_password(&kdc), Config::default()).await;
        assert!(!work(&mut session).await.is_empty());
        session.close().await;
    });
}

#[test]
fn failed_logons_are_explained() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    assert_eq!(
        refused(&lab, with_password(&kdc), "user00001", "wrong"),
        "logon: Kerberos: the KDC does not take the password of user00001@LAB.TEST: it is wrong, or \
         the account has no AES-256 key"
    );
    assert_eq!(
        refused(&lab, with_password(&kdc), "nobody", PASSWORD),
        "logon: Kerberos: the KDC does not know nobody@LAB.TEST"
    );
    assert_eq!(
        refused(&lab, with_keytab(&kdc), "user00009", ""),
        format!(
            "logon: {}: no key for user00009@LAB.TEST; it holds user00001@LAB.TEST, \
             user00002@LAB.TEST",
            kdc.path("users.keytab").display()
        )
    );
    let elsewhere = Kerberos { service: Some("cifs/nowhere".into()), ..with_password(&kdc) };
    let error = refused(&lab, elsewhere, "user00001", PASSWORD);
    assert!(error.contains("cifs/nowhere") && error.contains("--spn"), "{error}");
    kdc.admin(&[format!("addprinc -requires_preauth -pw \"{PASSWORD}\" user00003")]);
    let error = refused(&lab, with_password(&kdc), "user00003", PASSWORD);
    assert!(error.contains("user00003@LAB.TEST needs no pre-authentication"), "{error}");
    // The keys of a keytab become invalid when the password changes.
    kdc.admin(&["cpw -randkey user00002".into()]);
    assert_eq!(
        refused(&lab, with_keytab(&kdc), "user00002", ""),
        "logon: Kerberos: the KDC does not take the key in the keytab of user00002@LAB.TEST: the \
         keytab is old"
    );
}

/// A server that accepts tickets still accepts passwords with NTLM.
#[test]
fn ntlm_works_next_to_tickets() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    runtime().block_on(async {
        lab.connect(Config::default(), "user00001").await.close().await;
    });
    assert!(!kdc.log().contains("cifs/127.0.0.1"));
}

/// The server has no key of the service: it refuses, and that does not count as a logon.
#[test]
fn a_session_ends_with_its_ticket_and_the_next_one_has_a_new_one() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    kdc.admin(&["modprinc -maxlife \"5 seconds\" user00001".into()]);
    let kerberos = with_keytab(&kdc);
    runtime().block_on(async {
        let mut session = connect(&lab, kerberos.clone(), Config::default()).await;
        work(&mut session).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        // MS-SMB2 section 3.3.5.2.9; `ends_session` says what runs do then.
        let refused = prepare::list(&mut session, "").await.unwrap_err().to_string();
        assert!(refused.contains("STATUS_NETWORK_SESSION_EXPIRED"), "{refused}");
        session.end("reset");
        let mut session = connect(&lab, kerberos, Config::default()).await;
        work(&mut session).await;
    });
}

#[test]
fn a_ticket_of_another_service_is_refused_by_the_server() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    kdc.admin(&["addprinc -randkey cifs/other".into()]);
    let other = Kerberos { service: Some("cifs/other".into()), ..with_password(&kdc) };
    let error = refused(&lab, other, "user00001", PASSWORD);
    assert!(error.contains("SessionSetup: STATUS_"), "{error}");
}

/// `sspi` uses one encryption type for all keys of a logon.
#[test]
fn a_user_without_aes_256_key_is_reported() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    let keytab = kdc.path("aes128.keytab");
    kdc.admin(&[
        format!("cpw -e aes128-cts-hmac-sha1-96:normal -pw \"{PASSWORD}\" user00001"),
        format!("ktadd -norandkey -k {} user00001", keytab.display()),
    ]);
    let error = refused(&lab, with_password(&kdc), "user00001", PASSWORD);
    assert!(error.contains("AES-256"), "{error}");
    let keytab = Some(Arc::new(Keytab::read(&keytab).unwrap()));
    let error = refused(&lab, Kerberos { keytab, ..with_password(&kdc) }, "user00001", "");
    assert!(error.contains("AES-256"), "{error}");
}

#[test]
fn the_newest_key_of_a_keytab_is_used() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    // New keys, in addition to the old ones.
    kdc.admin(&[format!("ktadd -k {} user00001", kdc.path("users.keytab").display())]);
    runtime().block_on(async {
        let mut session = connect(&lab, with_keytab(&kdc), Config::default()).await;
        assert!(!work(&mut session).await.is_empty());
        session.close().await;
    });
}

#[test]
fn an_unresponsive_kdc_is_named_and_the_next_one_is_used() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    let closed = KdcAddress { host: "127.0.0.1".into(), port: free_port() };
    let kdcs = |kdcs: Vec<KdcAddress>| Kerberos { kdcs, ..with_password(&kdc) };
    let error = refused(&lab, kdcs(vec![closed.clone()]), "user00001", PASSWORD);
    assert!(error.starts_with(&format!("Kerberos: KDC {closed}: Connection refused")), "{error}");
    // It accepts the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mute = KdcAddress { host: "127.0.0.1".into(), port };
    let begin = Instant::now();
    let error = refused(&lab, kdcs(vec![mute.clone()]), "user00001", PASSWORD);
    assert_eq!(error, format!("Kerberos: KDC {mute}: no answer within {REPLY_TIMEOUT:?}"));
    assert!(begin.elapsed() < REPLY_TIMEOUT + Duration::from_secs(10));
    runtime().block_on(async {
        let next = kdcs(vec![closed, kdc.address()]);
        connect(&lab, next, Config::default()).await.close().await;
    });
}

/// The task waits for the KDC; its thread does other work meanwhile.
#[test]
fn waiting_for_a_kdc_blocks_no_thread() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mute = KdcAddress { host: "127.0.0.1".into(), port };
    let kerberos = Kerberos { kdcs: vec![mute], ..with_password(&kdc) };
    let credential = Credential::new("user00001", PASSWORD);
    runtime().block_on(async {
        let logon = try_to_connect(&lab, kerberos, &credential, Config::default());
        let other = connect(&lab, with_password(&kdc), Config::default());
        tokio::select! {
            _ = logon => panic!("the silent KDC was faster"),
            session = other => { session.close().await; }
        }
    });
}

#[test]
fn krb5_conf_says_realm_and_kdc() {
    let Some(kdc) = realm() else { return };
    let Some(lab) = server(&kdc, |_| {}) else { return };
    let conf = Krb5Conf::of_files(vec![kdc.path("krb5.conf")]);
    let kerberos = Kerberos { conf, ..Kerberos::default() };
    runtime().block_on(async {
        let credential = Credential::new("user00001", PASSWORD);
        let session = try_to_connect(&lab, kerberos, &credential, Config::default()).await;
        session.unwrap().close().await;
    });
    // The requests of a logon to the KDC: for the required pre-authentication, for a ticket with it,
    // for a ticket for the service.
    let log = kdc.log();
    assert!(log.contains("user00001@LAB.TEST for cifs/127.0.0.1@LAB.TEST"));
    let count = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("): AS_REQ ("), count("): TGS_REQ (")), (2, 1), "{log}");
}
