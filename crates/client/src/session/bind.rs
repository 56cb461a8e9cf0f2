//! Binds more connections to a session (multichannel), also while the session's other connections are in use.
//!
//! MS-SMB2 sections 3.2.4.2.3.1 (the request), 3.2.5.3.3 (the reply), 3.2.4.1.8 (a binding is signed with the
//! session's key, not encrypted). Each channel has a signing key of its own, from its own preauthentication hash.

use std::net::SocketAddr;
use std::sync::Arc;

use smbscope_wire::crypto::{PreauthIntegrity, Signer};
use smbscope_wire::smb2::Dialect;

use crate::channel::{Channel, Protection, Seal};
use crate::credential::Credential;
use crate::error::ClientError;
use crate::host::Host;
use crate::logon::{Binding, log_on};
use crate::negotiate::negotiate;
use crate::row::LinkNames;

/// What a binding needs of the session.
#[derive(Clone)]
pub struct Binder {
    pub(super) host: Arc<Host>,
    pub(super) credential: Credential,
    pub(super) client_guid: [u8; 16],
    pub(super) server_guid: [u8; 16],
    pub(super) dialect: Dialect,
    pub(super) session_id: u64,
    pub(super) signer: Option<Arc<Signer>>,
    pub(super) seal: Option<Seal>,
    pub(super) sign_all: bool,
    pub(super) names: Arc<LinkNames>,
}

impl Binder {
    /// Connects channel `number` to the address `to` (or to the server's name) and binds it. The connection is put
    /// into `slot` as soon as it exists, so that its rows are not lost if the binding fails.
    ///
    /// # Errors
    /// There is no connection, another server answers, or the server refuses.
    pub async fn bind(
        &self,
        number: u32,
        to: Option<SocketAddr>,
        slot: &mut Option<Channel>,
    ) -> Result<(), ClientError> {
        let (stream, mut endpoints) = self.host.connect(number, to).await?;
        let (client, server) = (endpoints.names.client.clone(), endpoints.names.server.clone());
        endpoints.names = Arc::new(LinkNames { client, server, ..LinkNames::clone(&self.names) });
        let Host { config, clock, record, target, .. } = &*self.host;
        let channel =
            slot.insert(Channel::new(stream, endpoints, clock.clone(), config.credits, *record));
        let mut preauth = PreauthIntegrity::new();
        let guid = self.client_guid;
        let negotiated = negotiate(channel, config, target, guid, &mut preauth).await?;
        // A session exists on one server and in one dialect (MS-SMB2 section 3.3.5.5.2).
        if negotiated.server_guid != self.server_guid {
            return Err(ClientError::Protocol(
                "another server answers at this address (its ServerGuid differs)".into(),
            ));
        }
        if negotiated.dialect != self.dialect {
            return Err(ClientError::Protocol(format!(
                "this address negotiates dialect {}, the session has {}",
                negotiated.dialect.name().unwrap_or("?"),
                self.dialect.name().unwrap_or("?")
            )));
        }
        let (session_id, signer, seal) = (self.session_id, self.signer.clone(), self.seal.clone());
        let binding = Binding { session_id, signer, seal };
        let bound =
            log_on(channel, &self.host, &self.credential, &negotiated, preauth, 0, Some(binding));
        let signer = bound.await?.signer;
        let (seal, sign_all) = (self.seal.clone(), self.sign_all);
        channel.protection = Protection { signer, sign_all, seal, is_binding: false };
        Ok(())
    }
}
