//! Asks a server what it negotiates, without logging on.
//!
//! One connection, one Negotiate (MS-SMB2 section 3.2.4.2.2), then the connection is closed: no account is used, and nothing
//! is opened.

use std::time::Duration;

use smbscope_wire::crypto::PreauthIntegrity;

use crate::channel::Channel;
use crate::error::ClientError;
use crate::host::Host;
use crate::negotiate::{Negotiated, negotiate};
use crate::session::within;

/// What a server answers to a client with the host's configuration. `limit` is the time for the answer.
///
/// # Errors
///
/// If the server cannot be reached, does not answer in time, or has no dialect in common.
pub async fn ask(limit: Duration, host: &Host) -> Result<Negotiated, ClientError> {
    let mut client_guid = [0; 16];
    getrandom::fill(&mut client_guid)
        .map_err(|error| ClientError::Logon(format!("no random bytes: {error}")))?;
    let work = async {
        let (stream, endpoints) = host.connect(0, None).await?;
        let config = &host.config;
        let mut channel =
            Channel::new(stream, endpoints, host.clock.clone(), config.credits, false);
        let mut preauth = PreauthIntegrity::new();
        negotiate(&mut channel, config, &host.target, client_guid, &mut preauth).await
    };
    within(limit, work).await
}
