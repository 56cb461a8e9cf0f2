//! Logs a user on, or binds another connection to the session, and derives the keys of both.
//!
//! MS-SMB2 sections 3.2.4.2.3, 3.2.4.2.3.1 (binding), 3.2.5.3. The tokens come from `auth`.

use std::sync::Arc;

use smbscope_wire::crypto::{
    Cipher, Decryptor, Encryptor, Key, PreauthIntegrity, Signer, derive_session_keys,
    derive_signing_key,
};
use smbscope_wire::smb2::encode::SessionSetup;
use smbscope_wire::smb2::header::Header;
use smbscope_wire::smb2::negotiate::Capabilities;
use smbscope_wire::smb2::negotiate_context::CipherId;
use smbscope_wire::smb2::session::{
    SessionFlags, SessionSecurityMode, SessionSetupFlags, SessionSetupResponse,
};
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

use super::auth::Logon;
use super::channel::{Ask, Channel, Protection, Seal};
use super::config::{Config, Encryption, Signing};
use super::credential::Credential;
use super::error::ClientError;
use super::host::Host;
use super::negotiate::{Negotiated, exchange};
use super::reply::{Reply, Want};

/// The session to which another channel is bound.
pub(super) struct Binding {
    pub session_id: u64,
    pub signer: Option<Arc<Signer>>,
    pub seal: Option<Seal>,
}

/// The result of a logon.
pub(super) struct LoggedOn {
    pub session_id: u64,
    pub signer: Option<Arc<Signer>>,
    pub authenticated: bool,
    /// Whether the server requires encryption in the session.
    pub encrypt_data: bool,
    /// Ciphers not used yet: the share may require encryption.
    pub unused_seal: Option<Seal>,
}

/// Logs on, or binds the channel to a session; sets up the channel's protection.
pub(super) async fn log_on(
    channel: &mut Channel,
    host: &Host,
    credential: &Credential,
    negotiated: &Negotiated,
    mut preauth: PreauthIntegrity,
    previous_session_id: u64,
    binding: Option<Binding>,
) -> Result<LoggedOn, ClientError> {
    let mut logon = Logon::new(credential, &host.target.host, host.config.kerberos.as_deref())?;
    if let Some(binding) = &binding {
        channel.protection.signer = binding.signer.clone();
        channel.protection.seal = binding.seal.clone();
        channel.protection.is_binding = true;
    }
    let reply = exchange_tokens(
        channel,
        host.config.signing,
        &mut logon,
        &mut preauth,
        previous_session_id,
        binding.as_ref(),
    )
    .await?;
    let session_id = reply.session_id;
    let session_flags = SessionSetupResponse(&reply.message).flags().unwrap_or_default();
    let guest = session_flags.contains(SessionFlags::IS_GUEST)
        || session_flags.contains(SessionFlags::IS_NULL);
    let encrypt_data = session_flags.contains(SessionFlags::ENCRYPT_DATA);
    if guest {
        refuse_guest(&host.config, binding.is_some())?;
        channel.protection = Protection::default();
        return Ok(LoggedOn {
            session_id,
            signer: None,
            authenticated: false,
            encrypt_data,
            unused_seal: None,
        });
    }
    let last = SessionSetupResponse(&reply.message).security_blob().unwrap_or_default();
    logon.finish(last).await?;
    // Session.FullSessionKey (MS-SMB2 section 3.2.5.3.1); algorithms that use 16 bytes truncate it.
    let key = logon.session_key()?;
    let sign_all = host.config.signing == Signing::Required || negotiated.signing_required();
    let must_be_signed = sign_all
        || binding.is_some()
        || host.config.encryption == Encryption::Required
        || negotiated.dialect == Dialect::SMB_3_1_1;
    let signer = verified_signer(negotiated, &key, &preauth, &reply.message, must_be_signed)?;
    let signer = Arc::new(signer);
    channel.protection =
        Protection { signer: Some(signer.clone()), sign_all, ..Protection::default() };
    let mut unused_seal = None;
    if binding.is_none()
        && let Some(cipher) = negotiated.cipher
    {
        let seal = seal(negotiated.dialect, cipher, &key, &preauth).ok_or_else(no_keys)?;
        if encrypt_data || host.config.encryption == Encryption::Required {
            channel.protection.seal = Some(seal);
        } else {
            unused_seal = Some(seal);
        }
    }
    Ok(LoggedOn {
        session_id,
        signer: Some(signer),
        authenticated: true,
        encrypt_data,
        unused_seal,
    })
}

/// Exchanges SESSION_SETUP requests and replies until the server accepts; returns its last reply.
async fn exchange_tokens(
    channel: &mut Channel,
    signing: Signing,
    logon: &mut Logon,
    preauth: &mut PreauthIntegrity,
    previous_session_id: u64,
    binding: Option<&Binding>,
) -> Result<Reply, ClientError> {
    let flags = match binding {
        Some(_) => SessionSetupFlags::BINDING,
        None => SessionSetupFlags::default(),
    };
    let security_mode = match signing {
        Signing::Required => SessionSecurityMode::SIGNING_REQUIRED,
        Signing::Auto | Signing::Off => SessionSecurityMode::SIGNING_ENABLED,
    };
    let mut session_id = binding.map_or(0, |binding| binding.session_id);
    let mut token = logon.step(&[]).await?;
    loop {
        let body = SessionSetup {
            flags,
            security_mode,
            capabilities: Capabilities::default(),
            previous_session_id,
            blob: &token,
        };
        let ask = Ask { want: Want::Message, sign: binding.is_some(), ..Ask::default() };
        let reply = exchange(channel, session_id, &body, ask, preauth).await?;
        session_id = reply.session_id;
        match reply.status {
            Status::SUCCESS => return Ok(reply),
            Status::MORE_PROCESSING_REQUIRED => {
                preauth.update(&reply.message);
                let view = SessionSetupResponse(&reply.message);
                token = logon.step(view.security_blob().unwrap_or_default()).await?;
            }
            status => {
                return Err(match binding {
                    Some(Binding { seal, .. }) => {
                        ClientError::BindRefused { status, encrypted: seal.is_some() }
                    }
                    None => ClientError::Refused { command: Command::SESSION_SETUP, status },
                });
            }
        }
    }
}

/// An error if the session of a guest, which has no keys, is not what the user required (MS-SMB2 section 3.2.5.3.1).
fn refuse_guest(config: &Config, is_binding: bool) -> Result<(), ClientError> {
    let required = match (config.signing, config.encryption) {
        _ if is_binding => "a bound channel",
        (_, Encryption::Required) => "--encryption",
        (Signing::Required, _) => "--signing",
        _ => return Ok(()),
    };
    Err(ClientError::Logon(format!(
        "the server made the user a guest, whose session can be neither signed nor encrypted, but {required} requires it: check the account and the server's guest settings (Samba: map to guest)"
    )))
}

/// The session's signer, once it has verified the server's last reply, which is signed with the key that it establishes.
/// Before 3.1.1 a session that signs nothing need not sign it, so that a missing signature does not prove a forgery.
fn verified_signer(
    negotiated: &Negotiated,
    key: &Key,
    preauth: &PreauthIntegrity,
    last_reply: &[u8],
    must_be_signed: bool,
) -> Result<Signer, ClientError> {
    let dialect = negotiated.dialect;
    let signing_key = derive_signing_key(dialect.0, key, Some(preauth)).ok_or_else(no_keys)?;
    let signer = Signer::new(negotiated.signing, &signing_key).ok_or_else(no_keys)?;
    let claims = Header::parse(last_reply).is_some_and(|header| header.flags.is_signed());
    if (must_be_signed || claims) && !signer.verify(last_reply) {
        return Err(ClientError::Unverified("the last SessionSetup reply"));
    }
    Ok(signer)
}

fn no_keys() -> ClientError {
    ClientError::Protocol("no keys can be derived for the negotiated dialect".into())
}

/// Ciphers of both directions of a session.
fn seal(dialect: Dialect, cipher: CipherId, key: &Key, preauth: &PreauthIntegrity) -> Option<Seal> {
    let cipher = Cipher(cipher.0);
    let keys = derive_session_keys(dialect.0, cipher, key, Some(preauth))?;
    let encryptor = Encryptor::new(cipher, &keys.client_to_server)?;
    let decryptor = Decryptor::new(cipher, &keys.server_to_client)?;
    Some((Arc::new(encryptor), Arc::new(decryptor)))
}
