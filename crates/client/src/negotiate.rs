//! Negotiates a connection's dialect and everything that depends on it.
//!
//! MS-SMB2 sections 3.2.4.2.2 and 3.2.5.2.

use smbscope_wire::crypto::{PreauthIntegrity, Signer};
use smbscope_wire::smb2::encode::{Body, Negotiate, NegotiateContexts};
use smbscope_wire::smb2::negotiate::{Capabilities, NegotiateResponse, SecurityMode};
use smbscope_wire::smb2::negotiate_context::{CipherId, HashId, NegotiateContextData, SigningId};
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

use super::channel::{Ask, Channel};
use super::config::{Config, Encryption, Signing, Target};
use super::error::ClientError;
use super::reply::{Reply, Want};

/// The contents of the server's Negotiate reply.
#[derive(Clone, Copy, Debug)]
pub struct Negotiated {
    /// The dialect.
    pub dialect: Dialect,
    /// Longest read in bytes.
    pub max_read_bytes: u32,
    /// Longest write in bytes.
    pub max_write_bytes: u32,
    /// Longest query or listing in bytes.
    pub max_transact_bytes: u32,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// ServerGuid.
    pub server_guid: [u8; 16],
    /// Whether it can sign and whether it requires signing.
    pub security_mode: SecurityMode,
    /// The signing algorithm.
    pub signing: SigningId,
    /// The cipher; `None` when there is no encryption.
    pub cipher: Option<CipherId>,
    /// How the server's clock compares with the run's.
    pub server_clock: Option<ServerClock>,
    /// When the server was started, 100 ns since 1601; 0: it does not say.
    pub server_start_time: u64,
}

/// The server's clock, from SystemTime in the Negotiate reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerClock {
    /// How far it is ahead of the midpoint between request and reply, in nanoseconds.
    pub ahead_ns: i64,
    /// Half the time between them, in nanoseconds. A server whose clock ticks coarsely (Windows:
    /// up to 15.6 ms) can be wrong by a tick more.
    pub error_ns: i64,
}

/// Seconds between the epochs of Windows and Unix (MS-DTYP section 2.3.3).
const WINDOWS_EPOCH_S: i64 = 11_644_473_600;

impl ServerClock {
    /// From a time in units of 100 ns since 1601; `None` if the server sends no time.
    fn new(system_time: u64, request_ns: i64, reply_ns: i64) -> Option<ServerClock> {
        let ticks = i64::try_from(system_time).ok().filter(|&ticks| ticks > 0)?;
        let server = (ticks - WINDOWS_EPOCH_S * 10_000_000).checked_mul(100)?;
        let error_ns = (reply_ns - request_ns) / 2;
        Some(ServerClock { ahead_ns: server.checked_sub(request_ns + error_ns)?, error_ns })
    }
}

impl Negotiated {
    /// Whether messages carry more than 64 KiB, and credits are charged by size.
    pub fn has_large_mtu(&self) -> bool {
        self.dialect > Dialect::SMB_2_0_2 && self.capabilities.contains(Capabilities::LARGE_MTU)
    }

    /// Whether the server demands signing.
    pub fn signing_required(&self) -> bool {
        self.security_mode.contains(SecurityMode::SIGNING_REQUIRED)
    }
}

/// What the client offers in its Negotiate in addition to dialects.
pub(super) fn offer(config: &Config) -> (Capabilities, SecurityMode) {
    let mut capabilities = Capabilities::LEASING.0
        | Capabilities::LARGE_MTU.0
        | Capabilities::MULTI_CHANNEL.0
        | Capabilities::PERSISTENT_HANDLES.0
        | Capabilities::DIRECTORY_LEASING.0;
    if config.encryption != Encryption::Off && !config.ciphers.is_empty() {
        capabilities |= Capabilities::ENCRYPTION.0;
    }
    if config.dialects.iter().all(|&dialect| dialect < Dialect::SMB_3_0) {
        capabilities = 0;
    }
    let security_mode = match config.signing {
        Signing::Required => SecurityMode::SIGNING_REQUIRED,
        Signing::Auto | Signing::Off => SecurityMode::SIGNING_ENABLED,
    };
    (Capabilities(capabilities), security_mode)
}

/// Sends a request and adds its message and its reply to the preauthentication hash.
pub(super) async fn exchange<B: Body>(
    channel: &mut Channel,
    session_id: u64,
    body: &B,
    ask: Ask,
    preauth: &mut PreauthIntegrity,
) -> Result<Reply, ClientError> {
    channel.have_credits(1).await?;
    let id = channel.add(session_id, 0, false, body, ask);
    // The hash covers the bytes as sent, including the signature.
    channel.send_hashed(Some(preauth)).await?;
    channel.wait(id).await
}

/// Negotiates the dialect and everything that depends on it.
pub(super) async fn negotiate(
    channel: &mut Channel,
    config: &Config,
    target: &Target,
    client_guid: [u8; 16],
    preauth: &mut PreauthIntegrity,
) -> Result<Negotiated, ClientError> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt)
        .map_err(|error| ClientError::Logon(format!("no random bytes: {error}")))?;
    let offers_311 = config.dialects.contains(&Dialect::SMB_3_1_1);
    let (capabilities, security_mode) = offer(config);
    let body = Negotiate {
        dialects: &config.dialects,
        security_mode,
        capabilities,
        client_guid,
        contexts: offers_311.then_some(NegotiateContexts {
            salt: &salt,
            ciphers: ciphers(config),
            signing: &config.signing_algorithms,
            server_name: &target.host,
        }),
    };
    let ask = Ask { want: Want::Message, ..Ask::default() };
    let request_ns = channel.now();
    let reply = exchange(channel, 0, &body, ask, preauth).await?;
    let reply_ns = channel.now();
    if reply.status != Status::SUCCESS {
        return Err(ClientError::Refused { command: Command::NEGOTIATE, status: reply.status });
    }
    preauth.update(&reply.message);
    let mut negotiated = read_negotiated(&reply.message, config)?;
    let time = NegotiateResponse(&reply.message).system_time();
    negotiated.server_clock = time.and_then(|time| ServerClock::new(time, request_ns, reply_ns));
    check_required(&negotiated, config)?;
    let dialect = negotiated.dialect;
    channel.negotiated(dialect, negotiated.has_large_mtu());
    describe(channel, &negotiated, &body);
    Ok(negotiated)
}

/// An error if the negotiated protection is not what the user required.
fn check_required(negotiated: &Negotiated, config: &Config) -> Result<(), ClientError> {
    let name = negotiated.dialect.name().unwrap_or("?");
    if config.encryption == Encryption::Required && negotiated.dialect < Dialect::SMB_3_0 {
        return Err(ClientError::Protocol(format!(
            "encryption needs dialect 3.0 or later, but {name} was negotiated: omit --encryption required, or allow 3.0 in --dialect and on the server"
        )));
    }
    if config.encryption == Encryption::Required && negotiated.cipher.is_none() {
        return Err(ClientError::Protocol(format!(
            "encryption is required, but the server does not offer it in dialect {name}"
        )));
    }
    // The dialect may imply the algorithm.
    if config.signing == Signing::Required
        && !config.signing_algorithms.contains(&negotiated.signing)
    {
        let algorithm = negotiated.signing.name().unwrap_or("an unknown algorithm");
        return Err(ClientError::Protocol(format!(
            "the server signs with {algorithm}, which was not offered: change --signing or --dialect"
        )));
    }
    Ok(())
}

fn read_negotiated(message: &[u8], config: &Config) -> Result<Negotiated, ClientError> {
    let view = NegotiateResponse(message);
    let cut = || ClientError::Protocol("the Negotiate reply is cut off".into());
    let dialect = view.dialect().ok_or_else(cut)?;
    if !config.dialects.contains(&dialect) {
        let number = dialect.0;
        return Err(ClientError::Protocol(format!(
            "the server chose dialect 0x{number:04x}, which was not offered"
        )));
    }
    let capabilities = view.capabilities().ok_or_else(cut)?;
    let (mut cipher, mut signing) = (None, None);
    if dialect == Dialect::SMB_3_1_1 {
        (cipher, signing) = read_contexts(view, config)?;
    } else if dialect >= Dialect::SMB_3_0 && capabilities.contains(Capabilities::ENCRYPTION) {
        cipher = Some(CipherId::AES_128_CCM).filter(|cipher| ciphers(config).contains(cipher));
    }
    let read = || {
        Some(Negotiated {
            dialect,
            max_read_bytes: view.max_read_size()?,
            max_write_bytes: view.max_write_size()?,
            max_transact_bytes: view.max_transact_size()?,
            capabilities,
            server_guid: view.server_guid()?,
            security_mode: view.security_mode()?,
            signing: Signer::algorithm(dialect.0, signing)?,
            cipher,
            server_clock: None,
            server_start_time: view.server_start_time().unwrap_or(0),
        })
    };
    read().ok_or_else(cut)
}

/// Cipher and signing algorithm from the contexts of 3.1.1. Each context may be there once, with one choice from the client's
/// offer (MS-SMB2 section 3.2.5.2).
fn read_contexts(
    view: NegotiateResponse<'_>,
    config: &Config,
) -> Result<(Option<CipherId>, Option<SigningId>), ClientError> {
    let wrong = |what: &str| ClientError::Protocol(format!("the Negotiate reply {what}"));
    let (mut hash, mut cipher, mut signing) = (None, None, None);
    for context in view.contexts() {
        let (place, mut codes, what) = match context.decode() {
            NegotiateContextData::PreauthIntegrity { hashes, .. } => {
                (&mut hash, hashes, "preauthentication hash")
            }
            NegotiateContextData::Encryption(codes) => (&mut cipher, codes, "cipher"),
            NegotiateContextData::Signing(codes) => (&mut signing, codes, "signing algorithm"),
            _ => continue,
        };
        let code = codes.next();
        if place.is_some() || code.is_none() || codes.next().is_some() {
            return Err(wrong(&format!("does not choose one {what}")));
        }
        *place = code;
    }
    if hash != Some(HashId::SHA_512.0) {
        return Err(wrong("does not choose SHA-512 to protect the negotiation"));
    }
    // 0: the server has none of the ciphers.
    let cipher = cipher.filter(|&code| code != 0).map(CipherId);
    let signing = signing.map(SigningId);
    if let Some(cipher) = cipher.filter(|cipher| !ciphers(config).contains(cipher)) {
        return Err(wrong(&format!("chooses cipher {}, which was not offered", cipher.0)));
    }
    if let Some(signing) = signing.filter(|signing| !config.signing_algorithms.contains(signing)) {
        let number = signing.0;
        return Err(wrong(&format!("chooses signing algorithm {number}, which was not offered")));
    }
    Ok((cipher, signing))
}

/// The ciphers that the client offers.
fn ciphers(config: &Config) -> &[CipherId] {
    if config.encryption == Encryption::Off { &[] } else { &config.ciphers }
}

/// Fills the connection's row from the negotiation.
fn describe(channel: &mut Channel, negotiated: &Negotiated, offered: &Negotiate<'_>) {
    let table = &mut channel.table;
    table.dialect = negotiated.dialect.name().map(str::to_owned);
    table.max_transact_bytes = Some(u64::from(negotiated.max_transact_bytes));
    table.max_read_bytes = Some(u64::from(negotiated.max_read_bytes));
    table.max_write_bytes = Some(u64::from(negotiated.max_write_bytes));
    table.signing_required = Some(negotiated.signing_required());
    table.signing_algorithm = negotiated.signing.name().map(str::to_owned);
    table.cipher = negotiated.cipher.and_then(CipherId::name).map(str::to_owned);
    table.server_capabilities = Some(u64::from(negotiated.capabilities.0));
    table.client_capabilities = Some(u64::from(offered.capabilities.0));
    let guid: String = offered.client_guid.iter().map(|byte| format!("{byte:02x}")).collect();
    table.client_guid = Some(guid);
    table.client_signing_required =
        Some(offered.security_mode.contains(SecurityMode::SIGNING_REQUIRED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_clock_is_compared_with_the_middle_of_the_exchange() {
        // 2026-11-22 00:00:00 UTC, and the same in 100 ns since 1601.
        let (unix_s, request_ns) = (1_795_305_600, 1_795_305_600_000_000_000 - 2_000_000);
        let ticks = (unix_s + WINDOWS_EPOCH_S) as u64 * 10_000_000;
        let clock = ServerClock::new(ticks, request_ns, request_ns + 2_000_000).unwrap();
        assert_eq!(clock, ServerClock { ahead_ns: 1_000_000, error_ns: 1_000_000 });
        assert_eq!(ServerClock::new(0, request_ns, request_ns), None);
        assert_eq!(ServerClock::new(u64::MAX, request_ns, request_ns), None);
        assert_eq!(ServerClock::new(i64::MAX as u64, request_ns, request_ns), None);
    }
}
