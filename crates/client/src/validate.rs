//! Secure dialect negotiation: whether the server answered the Negotiate that the client sent. A client that offers 3.0 or
//! later validates every dialect before 3.1.1, which protects the negotiation with its preauthentication hash.
//!
//! MS-SMB2 sections 2.2.31.4, 2.2.32.6, 3.2.5.5 and 3.2.5.14.12.

use smbscope_wire::smb2::encode::Ioctl;
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::ioctl::IoctlResponse;
use smbscope_wire::smb2::{Command, FileId};
use smbscope_wire::status::Status;

use super::config::Config;
use super::error::ClientError;
use super::negotiate::{Negotiated, offer};
use super::reply::Reply;

/// Length of the answer in bytes.
const ANSWER_BYTES: u32 = 24;

/// The client's offer, repeated.
pub(super) fn offered(config: &Config, client_guid: &[u8; 16]) -> Vec<u8> {
    let (capabilities, security_mode) = offer(config);
    let mut bytes = Vec::with_capacity(24 + 2 * config.dialects.len());
    bytes.extend(capabilities.0.to_le_bytes());
    bytes.extend(client_guid);
    bytes.extend(security_mode.0.to_le_bytes());
    bytes.extend((config.dialects.len() as u16).to_le_bytes());
    bytes.extend(config.dialects.iter().flat_map(|dialect| dialect.0.to_le_bytes()));
    bytes
}

/// The request that contains it.
pub(super) fn request(offered: &[u8]) -> Ioctl<'_> {
    Ioctl {
        file_id: FileId::ANY,
        code: Fsctl::VALIDATE_NEGOTIATE_INFO,
        input: offered,
        output_bytes: ANSWER_BYTES,
    }
}

/// Compares the answer, whose signature was checked, with what was negotiated.
pub(super) fn check(reply: &Reply, negotiated: &Negotiated) -> Result<(), ClientError> {
    match reply.status {
        Status::SUCCESS => {}
        // Servers without secure negotiation report that under the session's signature.
        Status::NOT_SUPPORTED | Status::FILE_CLOSED | Status::INVALID_DEVICE_REQUEST => {
            return Ok(());
        }
        status => return Err(ClientError::Refused { command: Command::IOCTL, status }),
    }
    let info = IoctlResponse(&reply.message).validate_negotiate_info();
    let same = info.is_some_and(|info| {
        info.capabilities == negotiated.capabilities
            && info.guid == negotiated.server_guid
            && info.security_mode == negotiated.security_mode
            && info.dialect == negotiated.dialect
    });
    if same {
        Ok(())
    } else {
        Err(ClientError::Protocol(
            "Negotiate was modified in transit: the server negotiated other values".into(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use smbscope_wire::smb2::Dialect;
    use smbscope_wire::smb2::negotiate::{Capabilities, SecurityMode};
    use smbscope_wire::smb2::negotiate_context::SigningId;

    use super::*;

    fn negotiated() -> Negotiated {
        Negotiated {
            dialect: Dialect::SMB_3_0_2,
            max_read_bytes: 1,
            max_write_bytes: 1,
            max_transact_bytes: 1,
            capabilities: Capabilities(0x47),
            server_guid: [7; 16],
            security_mode: SecurityMode::SIGNING_ENABLED,
            signing: SigningId::AES_CMAC,
            cipher: None,
            server_clock: None,
            server_start_time: 0,
        }
    }

    /// An IOCTL response with the answer of MS-SMB2 section 2.2.32.6.
    fn answer(capabilities: u32, guid: u8, mode: u16, dialect: u16) -> Reply {
        let mut message = vec![0; 112];
        message[..4].copy_from_slice(b"\xfeSMB");
        message[12] = 11;
        message[64] = 49;
        message[68..72].copy_from_slice(&Fsctl::VALIDATE_NEGOTIATE_INFO.0.to_le_bytes());
        message[96..100].copy_from_slice(&112u32.to_le_bytes());
        message[100..104].copy_from_slice(&ANSWER_BYTES.to_le_bytes());
        message.extend(capabilities.to_le_bytes());
        message.extend([guid; 16]);
        message.extend(mode.to_le_bytes());
        message.extend(dialect.to_le_bytes());
        Reply { status: Status::SUCCESS, message, ..Reply::default() }
    }

    #[test]
    fn a_changed_negotiation_is_detected() {
        let negotiated = negotiated();
        assert!(check(&answer(0x47, 7, 1, 0x302), &negotiated).is_ok());
        for wrong in [
            answer(0x07, 7, 1, 0x302),
            answer(0x47, 8, 1, 0x302),
            answer(0x47, 7, 3, 0x302),
            answer(0x47, 7, 1, 0x311),
            Reply { status: Status::SUCCESS, ..Reply::default() },
        ] {
            assert!(matches!(check(&wrong, &negotiated), Err(ClientError::Protocol(_))));
        }
        let refused = |status| check(&Reply { status, ..Reply::default() }, &negotiated);
        assert!(refused(Status::NOT_SUPPORTED).is_ok());
        assert!(refused(Status::ACCESS_DENIED).is_err());
    }

    #[test]
    fn the_offer_is_repeated() {
        let config =
            Config { dialects: vec![Dialect::SMB_2_1, Dialect::SMB_3_0], ..Config::default() };
        let bytes = offered(&config, &[9; 16]);
        let (capabilities, mode) = offer(&config);
        assert_eq!(bytes[..4], capabilities.0.to_le_bytes());
        assert_eq!(bytes[4..20], [9; 16]);
        assert_eq!(bytes[20..22], mode.0.to_le_bytes());
        assert_eq!(bytes[22..], [2, 0, 0x10, 2, 0, 3]);
    }
}
