//! One user's session: its connections, logon, tree, leases, and requests in it.
//!
//! MS-SMB2 sections 3.2.4.2 (connecting, negotiating, logging on, binding channels), 3.2.5.2 to
//! 3.2.5.5, 3.2.5.19 (breaks).

mod bind;
mod compounds;
mod ended;
mod parts;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use smbscope_wire::crypto::{PreauthIntegrity, Signer};
use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::encode::{Body, LeaseBreakAck, OplockBreakAck, TreeConnect};
use smbscope_wire::smb2::negotiate::Capabilities;
use smbscope_wire::smb2::oplock::{LeaseBreakFlags, OplockBreak};
use smbscope_wire::smb2::tree::{ShareCapabilities, ShareFlags, ShareType, TreeConnectResponse};
use smbscope_wire::status::Status;

use super::channel::{Ask, Channel, Seal};
use super::config::Encryption;
use super::credential::Credential;
use super::error::ClientError;
use super::host::Host;
use super::lease::Leases;
use super::logon::log_on;
use super::negotiate::{Negotiated, negotiate};
use super::reply::{Reply, Want};
use super::transport::{Endpoints, Transport};
use super::validate;
use crate::row::{LinkNames, Row};
pub use bind::Binder;
pub use ended::{Ended, Failed};
pub use parts::Parts;

/// A logged-on user with a connected share.
pub struct Session {
    host: Arc<Host>,
    client_guid: [u8; 16],
    channels: Vec<Channel>,
    negotiated: Negotiated,
    session_id: u64,
    session_signer: Option<Arc<Signer>>,
    tree_id: u32,
    next_handle: u64,
    authenticated: bool,
    encrypt_data: bool,
    tree: Option<ShareTold>,
    limit: Duration,
    /// Connections that were lost while others continued.
    lost: Vec<parts::Lost>,
    /// Leases that the session holds.
    pub leases: Leases,
}

/// The contents of the reply to the TreeConnect.
#[derive(Clone, Copy, Debug)]
struct ShareTold {
    kind: ShareType,
    flags: ShareFlags,
    capabilities: ShareCapabilities,
    /// When it was requested.
    start: i64,
}

/// A session that was lost, for the session that replaces it.
#[derive(Clone, Copy, Debug)]
pub struct Previous {
    client_guid: [u8; 16],
    session_id: u64,
}

impl Session {
    /// What the session that replaces this one needs: durable opens and leases belong to the client
    /// (ClientGuid), and the server ends the rest of this session (PreviousSessionId, MS-SMB2 section
    /// 3.3.5.5.3).
    pub fn previous(&self) -> Previous {
        Previous { client_guid: self.client_guid, session_id: self.session_id }
    }

    /// Its id on the wire.
    pub fn id(&self) -> u64 {
        self.session_id
    }

    /// Connects, logs on and connects the share; `limit` applies to each of these and to binding
    /// another connection. `handles_from` is the number of the first open.
    pub async fn connect(
        limit: Duration,
        host: Arc<Host>,
        credential: &Credential,
        handles_from: u64,
        previous: Option<Previous>,
    ) -> Result<Session, Failed> {
        let (stream, endpoints) = host.connect(0, None).await?;
        // Boxed, so that a waiting user does not carry the memory that a logon takes.
        let opening = Session::over_transport(
            limit,
            host,
            stream,
            endpoints,
            credential,
            handles_from,
            previous,
        );
        let mut session = Box::pin(opening).await?;
        for channel in 1..session.host.config.channels {
            let binding = Box::pin(session.bind(u32::from(channel), credential));
            if let Err(error) = within(limit, binding).await {
                return Err(session.failed(error));
            }
        }
        Ok(session)
    }

    /// Likewise over the given transport, with one connection.
    async fn over_transport(
        limit: Duration,
        host: Arc<Host>,
        stream: Box<dyn Transport>,
        endpoints: Endpoints,
        credential: &Credential,
        handles_from: u64,
        previous: Option<Previous>,
    ) -> Result<Session, Failed> {
        let mut client_guid = [0; 16];
        match previous {
            Some(previous) => client_guid = previous.client_guid,
            None => getrandom::fill(&mut client_guid)
                .map_err(|error| ClientError::Logon(format!("no random bytes: {error}")))?,
        }
        let names = LinkNames { user: credential.name(), ..LinkNames::clone(&endpoints.names) };
        let mut endpoints = endpoints;
        endpoints.names = Arc::new(names);
        let config = &host.config;
        let mut channel = Channel::new(
            stream,
            endpoints.clone(),
            host.clock.clone(),
            config.credits,
            host.record,
        );
        let logged_on = within(limit, async {
            let mut preauth = PreauthIntegrity::new();
            let negotiated =
                negotiate(&mut channel, config, &host.target, client_guid, &mut preauth).await?;
            let previous = previous.map_or(0, |previous| previous.session_id);
            let logon =
                log_on(&mut channel, &host, credential, &negotiated, preauth, previous, None)
                    .await?;
            Ok((negotiated, logon))
        })
        .await;
        let (negotiated, logon) = match logged_on {
            Ok(pair) => pair,
            Err(error) => return Err(Failed::from_channel(error, channel)),
        };
        let mut session = Session {
            host,
            client_guid,
            channels: vec![channel],
            negotiated,
            session_id: logon.session_id,
            session_signer: logon.signer,
            tree_id: 0,
            next_handle: handles_from,
            authenticated: logon.authenticated,
            encrypt_data: logon.encrypt_data,
            tree: None,
            limit,
            lost: Vec::new(),
            leases: Leases::default(),
        };
        match within(limit, session.connect_tree(endpoints.names, logon.unused_seal)).await {
            Ok(()) => Ok(session),
            Err(error) => Err(session.failed(error)),
        }
    }

    /// Binds another connection to the session (multichannel, 3.x).
    async fn bind(&mut self, number: u32, credential: &Credential) -> Result<(), ClientError> {
        let binder = self.binder(credential)?;
        let mut slot = None;
        let bound = binder.bind(number, None, &mut slot).await;
        // Added even if the binding is refused, so that its rows are not lost.
        self.channels.extend(slot);
        bound
    }

    /// What binds more connections to the session, and may do so while the session is used.
    ///
    /// # Errors
    /// Dialect or server have no multichannel.
    pub fn binder(&self, credential: &Credential) -> Result<Binder, ClientError> {
        if self.negotiated.dialect < Dialect::SMB_3_0 {
            return Err(ClientError::NoMultichannel(format!(
                "more channels need dialect 3.0 or later, but {} was negotiated: allow 3.0, or use one channel (--channels 1)",
                self.negotiated.dialect.name().unwrap_or("older")
            )));
        }
        let multichannel = self.negotiated.capabilities.contains(Capabilities::MULTI_CHANNEL);
        if !multichannel {
            return Err(ClientError::NoMultichannel(
                "the server does not offer multichannel: enable it there (Samba: server multi channel support), or use one channel (--channels 1)"
                    .into(),
            ));
        }
        let Some(first) = self.channels.first() else {
            return Err(ClientError::Protocol("the session has no connection".into()));
        };
        Ok(Binder {
            host: self.host.clone(),
            credential: credential.clone(),
            client_guid: self.client_guid,
            server_guid: self.negotiated.server_guid,
            dialect: self.negotiated.dialect,
            session_id: self.session_id,
            signer: self.session_signer.clone(),
            seal: first.protection.seal.clone(),
            sign_all: first.protection.sign_all,
            names: first.names().clone(),
        })
    }

    /// Connects the share; `spare` holds ciphers for a share that requires encryption.
    async fn connect_tree(
        &mut self,
        names: Arc<LinkNames>,
        spare: Option<Seal>,
    ) -> Result<(), ClientError> {
        let start = self.host.clock.now();
        let share = self.host.target.unc();
        let names = Arc::new(LinkNames { share: share.clone(), ..LinkNames::clone(&names) });
        // An authenticated 3.1.1 tree connect must be signed (MS-SMB2 section 3.2.4.1.1).
        let sign = self.authenticated && self.negotiated.dialect == Dialect::SMB_3_1_1;
        let ask = Ask { sign, want: Want::Message, ..Ask::default() };
        if let Some(channel) = self.channels.first_mut() {
            channel.name(names.clone());
        }
        let reply = self.call(&TreeConnect { path: &share }, ask).await?;
        if reply.status != Status::SUCCESS {
            return Err(ClientError::Share { share, status: reply.status });
        }
        self.tree_id = reply.tree_id;
        let view = TreeConnectResponse(&reply.message);
        let flags = view.share_flags().unwrap_or_default();
        self.tree = Some(ShareTold {
            kind: view.share_type().unwrap_or_default(),
            flags,
            capabilities: view.capabilities().unwrap_or_default(),
            start,
        });
        let Some(channel) = self.channels.first_mut() else { return Ok(()) };
        if flags.contains(ShareFlags::ENCRYPT_DATA) && !channel.seals() {
            if self.host.config.encryption == Encryption::Off {
                return Err(ClientError::Protocol(
                    "the share requires encryption, but encryption is switched off".into(),
                ));
            }
            channel.protection.seal = spare;
        }
        self.validate().await
    }

    /// Validates the negotiation with the server where nothing else protects it.
    async fn validate(&mut self) -> Result<(), ClientError> {
        let offers_3 = self.host.config.dialects.iter().any(|it| *it >= Dialect::SMB_3_0);
        let is_protected = self.negotiated.dialect == Dialect::SMB_3_1_1;
        if self.session_signer.is_none() || is_protected || !offers_3 {
            return Ok(());
        }
        let offered = validate::offered(&self.host.config, &self.client_guid);
        let ask = Ask { sign: true, want: Want::Message, ..Ask::default() };
        // Its request is signed or encrypted, so that an answer without is not accepted.
        let reply = self.call(&validate::request(&offered), ask).await?;
        validate::check(&reply, &self.negotiated)
    }

    /// Appends a request to channel `channel`'s frame (see [`Channel::add`]).
    pub fn add<B: Body>(&mut self, channel: usize, related: bool, body: &B, ask: Ask) -> u64 {
        let (session_id, tree_id) = (self.session_id, self.tree_id);
        let Some(channel) = self.channels.get_mut(channel) else { return 0 };
        channel.add(session_id, tree_id, related, body, ask)
    }

    /// Sends one request on the first connection and waits for its reply; sending and waiting may each take the session's
    /// [`Session::limit`].
    pub async fn call<B: Body>(&mut self, body: &B, ask: Ask) -> Result<Reply, ClientError> {
        let id = self.submit(body, ask).await?;
        self.answer(id).await
    }

    /// Sends one request on the first connection, once there are credits for it; returns its MessageId. Limited in time.
    pub async fn submit<B: Body>(&mut self, body: &B, ask: Ask) -> Result<u64, ClientError> {
        within(self.limit, async {
            let credits = self.channel().charge(ask.payload_bytes);
            self.channel().have_credits(credits).await?;
            let id = self.add(0, false, body, ask);
            self.channel().send().await?;
            Ok(id)
        })
        .await
    }

    /// [`Session::wait`] on the first connection, limited in time.
    pub async fn answer(&mut self, id: u64) -> Result<Reply, ClientError> {
        within(self.limit, self.wait(0, id)).await
    }

    /// The time limit with which the session was connected, for whatever the caller does with it.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Waits for a reply, without a limit of its own; answers breaks that come meanwhile.
    pub async fn wait(&mut self, channel: usize, id: u64) -> Result<Reply, ClientError> {
        loop {
            let reply = self.channels.get_mut(channel).and_then(|channel| channel.take(id));
            if let Some(reply) = reply {
                return Ok(reply);
            }
            self.receive().await?;
            self.answer_breaks().await?;
        }
    }

    /// Reads once from whichever connection has data. The future may be dropped at any time.
    pub async fn receive(&mut self) -> Result<(), ClientError> {
        if let [only] = self.channels.as_mut_slice() {
            return only.receive().await;
        }
        poll_fn(|context| {
            for channel in &mut self.channels {
                if let Poll::Ready(done) = channel.poll_receive(context) {
                    return Poll::Ready(done);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Acknowledges the breaks that arrived (MS-SMB2 section 3.2.5.19).
    pub async fn answer_breaks(&mut self) -> Result<(), ClientError> {
        for place in 0..self.channels.len() {
            while let Some(broken) = self.channels.get_mut(place).and_then(Channel::take_break) {
                let ask = Ask { want: Want::Nothing, ..Ask::default() };
                match broken {
                    OplockBreak::LeaseNotification {
                        new_epoch,
                        flags,
                        lease_key,
                        new_state,
                        ..
                    } => {
                        self.leases.broken(&lease_key, new_state, new_epoch);
                        if !flags.contains(LeaseBreakFlags::ACK_REQUIRED) {
                            continue;
                        }
                        self.channel().have_credits(1).await?;
                        self.add(
                            0,
                            false,
                            &LeaseBreakAck { key: lease_key, state: new_state },
                            ask,
                        );
                    }
                    OplockBreak::Oplock { level, file_id } => {
                        self.channel().have_credits(1).await?;
                        self.add(0, false, &OplockBreakAck { file_id, level }, ask);
                    }
                    OplockBreak::LeaseAcknowledgement { .. } => continue,
                }
                self.channel().send().await?;
            }
        }
        Ok(())
    }

    /// Sends a channel's frame.
    pub async fn send(&mut self, channel: usize) -> Result<(), ClientError> {
        match self.channels.get_mut(channel) {
            Some(channel) => channel.send().await,
            None => Err(ClientError::Protocol("no such channel".into())),
        }
    }

    /// Waits until a channel has the given number of credits.
    pub async fn have_credits(&mut self, channel: usize, credits: u32) -> Result<(), ClientError> {
        match self.channels.get_mut(channel) {
            Some(channel) => channel.have_credits(credits).await,
            None => Err(ClientError::Protocol("no such channel".into())),
        }
    }

    /// Whether a channel has the given number of credits now.
    pub fn has_credits(&self, channel: usize, credits: u32) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.credits() >= credits)
    }

    /// Cancels a request that waits on the first connection; false if it was answered already.
    pub async fn cancel(&mut self, id: u64) -> Result<bool, ClientError> {
        let (session_id, tree_id) = (self.session_id, self.tree_id);
        self.channel().cancel(session_id, tree_id, id).await
    }

    /// The first connection.
    pub fn channel(&mut self) -> &mut Channel {
        // A session is created with one connection and never loses it.
        &mut self.channels[0]
    }

    /// All connections.
    pub fn channels(&mut self) -> &mut [Channel] {
        &mut self.channels
    }

    /// What was negotiated.
    pub fn negotiated(&self) -> &Negotiated {
        &self.negotiated
    }

    /// What the share can do; nothing before it is connected.
    pub fn share_capabilities(&self) -> ShareCapabilities {
        self.tree.map(|tree| tree.capabilities).unwrap_or_default()
    }

    /// What all sessions of the run share.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The client's own identifier, from which lease keys are derived.
    pub fn client_guid(&self) -> &[u8; 16] {
        &self.client_guid
    }

    /// Whether version 2 leases (3.x), and with them directory leases, are available.
    pub fn directory_leases(&self) -> bool {
        self.negotiated.dialect >= Dialect::SMB_3_0
            && self.negotiated.capabilities.contains(Capabilities::DIRECTORY_LEASING)
    }

    /// Whether leases are available (2.1 and later).
    pub fn has_leases(&self) -> bool {
        self.host.config.leases
            && self.negotiated.dialect >= Dialect::SMB_2_1
            && self.negotiated.capabilities.contains(Capabilities::LEASING)
    }

    /// The number of the next open.
    pub fn next_handle(&mut self) -> u64 {
        let number = self.next_handle;
        self.next_handle += 1;
        number
    }

    /// Rows that ended since the last time.
    pub fn take_rows(&mut self) -> Vec<Box<Row>> {
        match self.channels.as_mut_slice() {
            [only] => only.take_rows(),
            channels => channels.iter_mut().flat_map(Channel::take_rows).collect(),
        }
    }
}

/// The result of a future, or an error after the given time.
pub async fn within<T, E: From<ClientError>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(ClientError::Timeout(limit).into()),
    }
}
