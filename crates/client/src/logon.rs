//! Logging a user on, or binding a further connection to the session, and the keys of both.
//!
//! MS-SMB2 sections 3.2.4.2.3, 3.2.4.2.3.1 (binding), 3.2.5.3. The tokens are `auth`'s.

use std::sync::Arc;

use smbscope_wire::crypto::{
    Cipher, Decryptor, Encryptor, Key, PreauthIntegrity, Signer, derive_session_keys,
    derive_signing_key,
};
use smbscope_wire::smb2::encode::SessionSetup;
use smbscope_wire::smb2::negotiate::Capabilities;
use smbscope_wire::smb2::negotiate_context::CipherId;
use smbscope_wire::smb2::session::{
    SessionFlags, SessionSecurityMode, SessionSetupFlags, SessionSetupResponse,
};
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

use super::auth::{Credential, Logon};
use super::channel::{Ask, Channel, Protection, Seal};
use super::config::{Encryption, Signing};
use super::error::ClientError;
use super::host::Host;
use super::negotiate::{Negotiated, exchange};
use super::reply::Want;

/// A session that a channel is bound to.
pub(super) struct Binding {
    pub session_id: u64,
    pub signer: Option<Arc<Signer>>,
    pub seal: Option<Seal>,
}

/// What a logon gives.
pub(super) struct LoggedOn {
    pub session_id: u64,
    pub signer: Option<Arc<Signer>>,
    pub authenticated: bool,
    /// Whether the server demands encryption in the session.
    pub encrypt_data: bool,
    /// Ciphers that are not used yet: the share may demand them.
    pub spare: Option<Seal>,
}

/// Logs on, or binds the channel to a session; its protection is set up then.
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
    let dialect = negotiated.dialect;
    let mut session_id = 0;
    let mut flags = SessionSetupFlags::default();
    if let Some(binding) = &binding {
        session_id = binding.session_id;
        flags = SessionSetupFlags::BINDING;
        channel.protection.signer = binding.signer.clone();
        channel.protection.seal = binding.seal.clone();
        channel.protection.is_binding = true;
    }
    let security_mode = match host.config.signing {
        Signing::Required => SessionSecurityMode::SIGNING_REQUIRED,
        Signing::Auto | Signing::Off => SessionSecurityMode::SIGNING_ENABLED,
    };
    let mut token = logon.step(&[]).await?;
    let reply = loop {
        let body = SessionSetup {
            flags,
            security_mode,
            capabilities: Capabilities::default(),
            previous_session_id,
            blob: &token,
        };
        let ask = Ask { want: Want::Message, sign: binding.is_some(), ..Ask::default() };
        let reply = exchange(channel, session_id, &body, ask, &mut preauth).await?;
        session_id = reply.session_id;
        let view = SessionSetupResponse(&reply.message);
        match reply.status {
            Status::SUCCESS => break reply,
            Status::MORE_PROCESSING_REQUIRED => {
                preauth.update(&reply.message);
                token = logon.step(view.security_blob().unwrap_or_default()).await?;
            }
            Status::ACCESS_DENIED
                if binding.as_ref().is_some_and(|binding| binding.seal.is_some()) =>
            {
                return Err(ClientError::Protocol(
                    "the server lets no further connection into a session that must be encrypted (Samba, where encryption is required): leave out --channels, or let encryption be desired there"
                        .into(),
                ));
            }
            status => {
                return Err(ClientError::Refused { command: Command::SESSION_SETUP, status });
            }
        }
    };
    let session_flags = SessionSetupResponse(&reply.message).flags().unwrap_or_default();
    let guest = session_flags.contains(SessionFlags::IS_GUEST)
        || session_flags.contains(SessionFlags::IS_NULL);
    let encrypt_data = session_flags.contains(SessionFlags::ENCRYPT_DATA);
    if guest {
        channel.protection = Protection::default();
        return Ok(LoggedOn {
            session_id,
            signer: None,
            authenticated: false,
            encrypt_data,
            spare: None,
        });
    }
    let last = SessionSetupResponse(&reply.message).security_blob().unwrap_or_default();
    logon.finish(last).await?;
    // Session.FullSessionKey (MS-SMB2 section 3.2.5.3.1): what takes only 16 bytes of it cuts it.
    let key = logon.session_key()?;
    let broken = || ClientError::Protocol("no keys for this dialect".into());
    let signing_key = derive_signing_key(dialect.0, &key, Some(&preauth)).ok_or_else(broken)?;
    let signer = Arc::new(Signer::new(negotiated.signing, &signing_key).ok_or_else(broken)?);
    // The last reply is signed with the key that it establishes; without signing from 3.1.1 on
    // only, since nobody could tell a forged one there.
    if dialect == Dialect::SMB_3_1_1 && !signer.verify(&reply.message) {
        return Err(ClientError::Unverified("the last SessionSetup reply"));
    }
    let sign_all = host.config.signing == Signing::Required || negotiated.signing_required();
    channel.protection =
        Protection { signer: Some(signer.clone()), sign_all, ..Protection::default() };
    let mut spare = None;
    if binding.is_none()
        && let Some(cipher) = negotiated.cipher
    {
        let seal = seal(dialect, cipher, &key, &preauth).ok_or_else(broken)?;
        if encrypt_data || host.config.encryption == Encryption::Required {
            channel.protection.seal = Some(seal);
        } else {
            spare = Some(seal);
        }
    }
    Ok(LoggedOn { session_id, signer: Some(signer), authenticated: true, encrypt_data, spare })
}

/// Ciphers of both directions of a session.
fn seal(dialect: Dialect, cipher: CipherId, key: &Key, preauth: &PreauthIntegrity) -> Option<Seal> {
    let cipher = Cipher(cipher.0);
    let keys = derive_session_keys(dialect.0, cipher, key, Some(preauth))?;
    let encryptor = Encryptor::new(cipher, &keys.client_to_server)?;
    let decryptor = Decryptor::new(cipher, &keys.server_to_client)?;
    Some((Arc::new(encryptor), Arc::new(decryptor)))
}
