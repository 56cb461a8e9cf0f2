//! One user's session: its connections, logon, tree, leases, and requests in it.
//!
//! MS-SMB2 sections 3.2.4.2 (connecting, negotiating, logging on, binding channels), 3.2.5.2 to
//! 3.2.5.5, 3.2.5.19 (breaks).

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use smbscope_event::tables::Connection;
use smbscope_wire::crypto::{
    Cipher, Decryptor, Encryptor, Key, PreauthIntegrity, Signer, derive_session_keys,
    derive_signing_key,
};
use smbscope_wire::smb2::encode::{
    Body, LeaseBreakAck, Logoff, Negotiate, NegotiateContexts, OplockBreakAck, SessionSetup,
    TreeConnect, TreeDisconnect,
};
use smbscope_wire::smb2::negotiate::{Capabilities, NegotiateResponse, SecurityMode};
use smbscope_wire::smb2::negotiate_context::{
    CipherId, NegotiateContextData, NegotiateContextType, SigningId,
};
use smbscope_wire::smb2::oplock::{LeaseBreakFlags, OplockBreak};
use smbscope_wire::smb2::session::{
    SessionFlags, SessionSecurityMode, SessionSetupFlags, SessionSetupResponse,
};
use smbscope_wire::smb2::tree::{ShareFlags, TreeConnectResponse};
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;
use tokio::net::TcpStream;

use super::auth::{Credential, Logon};
use super::channel::{Ask, Channel, Ends, Protection, Seal, Transport};
use super::config::{Config, Encryption, Signing, Target};
use super::error::ClientError;
use super::lease::Leases;
use super::reply::{Reply, Want};
use crate::clock::{Clock, nanoseconds};
use crate::row::{LinkNames, Row};

/// What all sessions of a run share: where the server is and how to talk to it.
#[derive(Debug)]
pub struct Host {
    /// Where the share is.
    pub target: Target,
    /// The server's addresses: channels are spread over them.
    pub addresses: Vec<SocketAddr>,
    /// How to connect.
    pub config: Config,
    /// The run's clock.
    pub clock: Clock,
    /// Whether rows are made.
    pub record: bool,
    connections: AtomicU64,
}

impl Host {
    /// Looks the server's name up.
    pub async fn find(
        target: Target,
        config: Config,
        clock: Clock,
        record: bool,
    ) -> Result<Host, ClientError> {
        let failed = |error| ClientError::Connect { server: target.address(), error };
        let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
        let addresses: Vec<_> = found.map_err(failed)?.collect();
        if addresses.is_empty() {
            let error = std::io::Error::other("the name has no address");
            return Err(ClientError::Connect { server: target.address(), error });
        }
        Ok(Host { target, addresses, config, clock, record, connections: AtomicU64::new(0) })
    }

    /// A host that is no network place, for tests over pipes.
    pub fn nowhere(target: Target, config: Config, clock: Clock, record: bool) -> Host {
        let connections = AtomicU64::new(0);
        Host { target, addresses: Vec::new(), config, clock, record, connections }
    }

    /// A TCP connection for a session's channel.
    async fn connect(&self, channel: u32) -> Result<(Box<dyn Transport>, Ends), ClientError> {
        let server = || self.target.address();
        // IPv4 and IPv6 of one name are tried in turn for the first channel.
        let mut last = std::io::Error::other("the name has no address");
        for attempt in 0..self.addresses.len() {
            let place = (channel as usize + attempt) % self.addresses.len();
            let Some(&address) = self.addresses.get(place) else { break };
            let begin = tokio::time::Instant::now();
            let connecting = TcpStream::connect(address);
            let stream = match tokio::time::timeout(self.config.connect_timeout, connecting).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    last = error;
                    continue;
                }
                Err(_) => {
                    last = std::io::ErrorKind::TimedOut.into();
                    continue;
                }
            };
            let took = nanoseconds(begin.elapsed()) + nanoseconds(self.config.delay);
            let failed = |error| ClientError::Connect { server: server(), error };
            stream.set_nodelay(true).map_err(failed)?;
            let local = stream.local_addr().map_err(failed)?;
            let names = LinkNames {
                client: local.ip().to_string(),
                server: address.ip().to_string(),
                ..LinkNames::default()
            };
            let ends = Ends {
                connection: self.connections.fetch_add(1, Ordering::Relaxed),
                channel,
                ports: (local.port(), address.port()),
                connect_ns: Some(took),
                names: Arc::new(names),
            };
            let stream: Box<dyn Transport> = match self.config.delay.is_zero() {
                true => Box::new(stream),
                false => Box::new(super::delay::Delayed::new(stream, self.config.delay)),
            };
            return Ok((stream, ends));
        }
        Err(ClientError::Connect { server: server(), error: last })
    }
}

/// What the server said in its Negotiate reply.
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
    /// Whether it demands signing.
    pub signing_required: bool,
    /// The signing algorithm.
    pub signing: SigningId,
    /// The cipher; `None` when there is no encryption.
    pub cipher: Option<CipherId>,
}

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
    /// Leases that the session holds.
    pub leases: Leases,
}

impl Session {
    /// Connects, logs on and connects the share. `handles_from` is the number of the first open.
    pub async fn connect(
        host: Arc<Host>,
        credential: &Credential,
        handles_from: u64,
        previous: Option<&Session>,
    ) -> Result<Session, Failed> {
        let (stream, ends) = host.connect(0).await?;
        let mut session =
            Session::over(host, stream, ends, credential, handles_from, previous).await?;
        for channel in 1..session.host.config.channels {
            if let Err(error) = session.bind(u32::from(channel), credential).await {
                return Err(session.failed(error));
            }
        }
        Ok(session)
    }

    /// The same over a transport that is there already.
    pub async fn over(
        host: Arc<Host>,
        stream: Box<dyn Transport>,
        ends: Ends,
        credential: &Credential,
        handles_from: u64,
        previous: Option<&Session>,
    ) -> Result<Session, Failed> {
        let mut client_guid = [0; 16];
        match previous {
            Some(previous) => client_guid = previous.client_guid,
            None => getrandom::fill(&mut client_guid)
                .map_err(|error| ClientError::Logon(format!("no random bytes: {error}")))?,
        }
        let names = LinkNames { user: credential.name(), ..LinkNames::clone(&ends.names) };
        let mut ends = ends;
        ends.names = Arc::new(names);
        let config = &host.config;
        let mut channel =
            Channel::new(stream, ends.clone(), host.clock, config.credits, host.record);
        let logged_on = async {
            let mut preauth = PreauthIntegrity::new();
            let negotiated =
                negotiate(&mut channel, config, &host.target, client_guid, &mut preauth).await?;
            let previous = previous.map_or(0, |previous| previous.session_id);
            let logon =
                log_on(&mut channel, &host, credential, &negotiated, preauth, previous, None)
                    .await?;
            Ok((negotiated, logon))
        }
        .await;
        let (negotiated, logon) = match logged_on {
            Ok(pair) => pair,
            Err(error) => return Err(Failed::of(error, channel)),
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
            leases: Leases::default(),
        };
        match session.connect_tree(ends.names, logon.authenticated).await {
            Ok(()) => Ok(session),
            Err(error) => Err(session.failed(error)),
        }
    }

    /// Binds a further connection to the session (multichannel, 3.x).
    async fn bind(&mut self, number: u32, credential: &Credential) -> Result<(), ClientError> {
        let multichannel = self.negotiated.capabilities.contains(Capabilities::MULTI_CHANNEL);
        if self.negotiated.dialect < Dialect::SMB_3_0 || !multichannel {
            return Err(ClientError::Protocol(
                "the server offers no multichannel: leave out --channels, or enable it there"
                    .into(),
            ));
        }
        let host = self.host.clone();
        let (stream, mut ends) = host.connect(number).await?;
        let Some(first) = self.channels.first() else {
            return Err(ClientError::Protocol("the session has no connection".into()));
        };
        let names =
            LinkNames { client: ends.names.client.clone(), ..LinkNames::clone(first.names()) };
        ends.names = Arc::new(names);
        let seal = first.protection.seal.clone();
        let sign_all = first.protection.sign_all;
        let mut channel = Channel::new(stream, ends, host.clock, host.config.credits, host.record);
        let mut preauth = PreauthIntegrity::new();
        let negotiated =
            negotiate(&mut channel, &host.config, &host.target, self.client_guid, &mut preauth)
                .await?;
        let binding = Binding { session_id: self.session_id, signer: self.session_signer.clone() };
        let logon =
            log_on(&mut channel, &host, credential, &negotiated, preauth, 0, Some(binding)).await?;
        channel.protection = Protection { signer: logon.signer, sign_all, seal };
        self.channels.push(channel);
        Ok(())
    }

    async fn connect_tree(
        &mut self,
        names: Arc<LinkNames>,
        authenticated: bool,
    ) -> Result<(), ClientError> {
        let share = self.host.target.unc();
        let names = Arc::new(LinkNames { share: share.clone(), ..LinkNames::clone(&names) });
        // An authenticated 3.1.1 tree connect must be signed (MS-SMB2 section 3.2.4.1.1).
        let sign = authenticated && self.negotiated.dialect == Dialect::SMB_3_1_1;
        let ask = Ask { sign, want: Want::Message, ..Ask::default() };
        if let Some(channel) = self.channels.first_mut() {
            channel.name(names.clone());
        }
        let reply = self.call(&TreeConnect { path: &share }, ask).await?;
        if reply.status != Status::SUCCESS {
            return Err(ClientError::Refused {
                command: Command::TREE_CONNECT,
                status: reply.status,
            });
        }
        self.tree_id = reply.tree_id;
        let flags = TreeConnectResponse(&reply.message).share_flags().unwrap_or_default();
        let first = self.channels.first_mut();
        if let Some(channel) = first
            && flags.contains(ShareFlags::ENCRYPT_DATA)
            && !channel.seals()
        {
            if self.host.config.encryption == Encryption::Off {
                return Err(ClientError::Protocol(
                    "the share demands encryption, which is switched off".into(),
                ));
            }
            channel.protection.seal = channel.take_spare_seal();
        }
        Ok(())
    }

    /// Appends a request to channel `channel`'s frame (see [`Channel::add`]).
    pub fn add<B: Body>(&mut self, channel: usize, related: bool, body: &B, ask: Ask) -> u64 {
        let (session_id, tree_id) = (self.session_id, self.tree_id);
        let Some(channel) = self.channels.get_mut(channel) else { return 0 };
        channel.add(session_id, tree_id, related, body, ask)
    }

    /// Sends one request on the first connection and waits for its reply.
    pub async fn call<B: Body>(&mut self, body: &B, ask: Ask) -> Result<Reply, ClientError> {
        let credits = self.channel().charge(ask.payload_bytes);
        self.channel().have_credits(credits).await?;
        let id = self.add(0, false, body, ask);
        self.channel().send().await?;
        self.wait(0, id).await
    }

    /// Waits for a reply; answers breaks that come meanwhile.
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

    /// Reads once from whichever connection has something. May be dropped at any time.
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

    /// Acknowledges the breaks that came (MS-SMB2 section 3.2.5.19).
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

    /// Sends what was added to a channel's frame.
    pub async fn send(&mut self, channel: usize) -> Result<(), ClientError> {
        match self.channels.get_mut(channel) {
            Some(channel) => channel.send().await,
            None => Err(ClientError::Protocol("no such channel".into())),
        }
    }

    /// Waits until a channel has that many credits.
    pub async fn have_credits(&mut self, channel: usize, credits: u32) -> Result<(), ClientError> {
        match self.channels.get_mut(channel) {
            Some(channel) => channel.have_credits(credits).await,
            None => Err(ClientError::Protocol("no such channel".into())),
        }
    }

    /// Whether a channel has that many credits now.
    pub fn has_credits(&self, channel: usize, credits: u32) -> bool {
        self.channels.get(channel).is_some_and(|channel| channel.credits() >= credits)
    }

    /// Cancels a request that waits on the first connection; false when it was answered already.
    pub async fn cancel(&mut self, id: u64) -> Result<bool, ClientError> {
        let (session_id, tree_id) = (self.session_id, self.tree_id);
        self.channel().cancel(session_id, tree_id, id).await
    }

    /// The first connection.
    pub fn channel(&mut self) -> &mut Channel {
        // A session is made with one connection and never loses it.
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

    /// What all sessions share.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The client's own identifier, which lease keys follow from.
    pub fn client_guid(&self) -> &[u8; 16] {
        &self.client_guid
    }

    /// Whether version 2 leases (3.x), and with them leases on directories, are there.
    pub fn directory_leases(&self) -> bool {
        self.negotiated.dialect >= Dialect::SMB_3_0
            && self.negotiated.capabilities.contains(Capabilities::DIRECTORY_LEASING)
    }

    /// Whether leases are there (2.1 and later).
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

    /// Logs off and ends the connections. The rows of all that, and the connections' own.
    pub async fn close(mut self) -> (Vec<Box<Row>>, Vec<Connection>) {
        let ask = || Ask::default();
        let farewell = async {
            self.call(&TreeDisconnect, ask()).await?;
            self.tree_id = 0;
            self.call(&Logoff, ask()).await
        };
        let patience = std::time::Duration::from_secs(5);
        let done = tokio::time::timeout(patience, farewell).await;
        self.end(if matches!(done, Ok(Ok(_))) { "fin" } else { "reset" })
    }

    /// Ends the connections as they are.
    pub fn end(mut self, reason: &str) -> (Vec<Box<Row>>, Vec<Connection>) {
        let mut rows = Vec::new();
        let mut connections = Vec::new();
        for channel in &mut self.channels {
            let (last, table) = channel.end(reason);
            rows.extend(last);
            connections.push(table);
        }
        (rows, connections)
    }

    fn failed(self, error: ClientError) -> Failed {
        let (rows, connections) = self.end("reset");
        Failed { error, rows, connections }
    }
}

/// A session that did not come about, with the rows of what was tried.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: ClientError,
    /// What was sent until then.
    pub rows: Vec<Box<Row>>,
    /// The connections.
    pub connections: Vec<Connection>,
}

impl Failed {
    fn of(error: ClientError, mut channel: Channel) -> Failed {
        let (rows, table) = channel.end("reset");
        Failed { error, rows, connections: vec![table] }
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Failed {
        Failed { error, rows: Vec::new(), connections: Vec::new() }
    }
}

/// A session that a channel is bound to.
struct Binding {
    session_id: u64,
    signer: Option<Arc<Signer>>,
}

/// What a logon gives.
struct LoggedOn {
    session_id: u64,
    signer: Option<Arc<Signer>>,
    authenticated: bool,
}

async fn exchange<B: Body>(
    channel: &mut Channel,
    session_id: u64,
    body: &B,
    ask: Ask,
    preauth: &mut PreauthIntegrity,
) -> Result<Reply, ClientError> {
    channel.have_credits(1).await?;
    let id = channel.add(session_id, 0, false, body, ask);
    // What is hashed is what goes out, its signature included.
    channel.send_hashed(Some(preauth)).await?;
    channel.wait(id).await
}

/// Negotiates the dialect and all that goes with it.
async fn negotiate(
    channel: &mut Channel,
    config: &Config,
    target: &Target,
    client_guid: [u8; 16],
    preauth: &mut PreauthIntegrity,
) -> Result<Negotiated, ClientError> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt)
        .map_err(|error| ClientError::Logon(format!("no random bytes: {error}")))?;
    let ciphers =
        if config.encryption == Encryption::Off { &[][..] } else { config.ciphers.as_slice() };
    let offers_311 = config.dialects.contains(&Dialect::SMB_3_1_1);
    let offers_3 = config.dialects.iter().any(|&dialect| dialect >= Dialect::SMB_3_0);
    let mut capabilities = Capabilities::LEASING.0
        | Capabilities::LARGE_MTU.0
        | Capabilities::MULTI_CHANNEL.0
        | Capabilities::PERSISTENT_HANDLES.0
        | Capabilities::DIRECTORY_LEASING.0;
    if !ciphers.is_empty() {
        capabilities |= Capabilities::ENCRYPTION.0;
    }
    let security_mode = match config.signing {
        Signing::Required => SecurityMode::SIGNING_REQUIRED,
        Signing::Auto | Signing::Off => SecurityMode::SIGNING_ENABLED,
    };
    let body = Negotiate {
        dialects: &config.dialects,
        security_mode,
        capabilities: Capabilities(if offers_3 { capabilities } else { 0 }),
        client_guid,
        contexts: offers_311.then_some(NegotiateContexts {
            salt: &salt,
            ciphers,
            signing: &config.signing_algorithms,
            server_name: &target.host,
        }),
    };
    let ask = Ask { want: Want::Message, ..Ask::default() };
    let reply = exchange(channel, 0, &body, ask, preauth).await?;
    if reply.status != Status::SUCCESS {
        return Err(ClientError::Refused { command: Command::NEGOTIATE, status: reply.status });
    }
    preauth.update(&reply.message);
    let negotiated = read_negotiated(&reply.message, config)
        .ok_or_else(|| ClientError::Protocol("the Negotiate reply is cut off".into()))?;
    let dialect = negotiated.dialect;
    if !config.dialects.contains(&dialect) {
        let number = dialect.0;
        return Err(ClientError::Protocol(format!(
            "the server chose dialect 0x{number:04x}, which was not offered"
        )));
    }
    if config.encryption == Encryption::Required && negotiated.cipher.is_none() {
        let name = dialect.name().unwrap_or("?");
        return Err(ClientError::Protocol(format!(
            "encryption is demanded, but the server has none in dialect {name}"
        )));
    }
    let large_mtu =
        dialect > Dialect::SMB_2_0_2 && negotiated.capabilities.contains(Capabilities::LARGE_MTU);
    channel.negotiated(dialect, large_mtu);
    describe(channel, &negotiated, &body);
    Ok(negotiated)
}

fn read_negotiated(message: &[u8], config: &Config) -> Option<Negotiated> {
    let view = NegotiateResponse(message);
    let dialect = view.dialect()?;
    let capabilities = view.capabilities()?;
    let mut cipher = match dialect {
        Dialect::SMB_3_0 | Dialect::SMB_3_0_2
            if capabilities.contains(Capabilities::ENCRYPTION)
                && config.encryption != Encryption::Off =>
        {
            Some(CipherId::AES_128_CCM)
        }
        _ => None,
    };
    let mut signing = None;
    for context in view.contexts() {
        match (context.kind, context.decode()) {
            (
                NegotiateContextType::ENCRYPTION_CAPABILITIES,
                NegotiateContextData::Encryption(mut ciphers),
            ) => cipher = ciphers.next().filter(|&id| id != 0).map(CipherId),
            (
                NegotiateContextType::SIGNING_CAPABILITIES,
                NegotiateContextData::Signing(mut algorithms),
            ) => signing = algorithms.next().map(SigningId),
            _ => {}
        }
    }
    Some(Negotiated {
        dialect,
        max_read_bytes: view.max_read_size()?,
        max_write_bytes: view.max_write_size()?,
        max_transact_bytes: view.max_transact_size()?,
        capabilities,
        signing_required: view.security_mode()?.contains(SecurityMode::SIGNING_REQUIRED),
        signing: Signer::algorithm(dialect.0, signing)?,
        cipher,
    })
}

/// What the connection's row says of the negotiation.
fn describe(channel: &mut Channel, negotiated: &Negotiated, asked: &Negotiate<'_>) {
    let table = &mut channel.table;
    table.dialect = negotiated.dialect.name().map(str::to_owned);
    table.max_transact_bytes = Some(u64::from(negotiated.max_transact_bytes));
    table.max_read_bytes = Some(u64::from(negotiated.max_read_bytes));
    table.max_write_bytes = Some(u64::from(negotiated.max_write_bytes));
    table.signing_required = Some(negotiated.signing_required);
    table.signing_algorithm = negotiated.signing.name().map(str::to_owned);
    table.cipher = negotiated.cipher.and_then(CipherId::name).map(str::to_owned);
    table.server_capabilities = Some(u64::from(negotiated.capabilities.0));
    table.client_capabilities = Some(u64::from(asked.capabilities.0));
    let guid: String = asked.client_guid.iter().map(|byte| format!("{byte:02x}")).collect();
    table.client_guid = Some(guid);
}

/// Logs on, or binds the channel to a session; its protection is set up then.
async fn log_on(
    channel: &mut Channel,
    host: &Host,
    credential: &Credential,
    negotiated: &Negotiated,
    mut preauth: PreauthIntegrity,
    previous_session_id: u64,
    binding: Option<Binding>,
) -> Result<LoggedOn, ClientError> {
    let mut logon = Logon::new(credential, &host.target.host)?;
    let dialect = negotiated.dialect;
    let mut session_id = 0;
    let mut flags = SessionSetupFlags::default();
    if let Some(binding) = &binding {
        session_id = binding.session_id;
        flags = SessionSetupFlags::BINDING;
        channel.protection.signer = binding.signer.clone();
    }
    let security_mode = match host.config.signing {
        Signing::Required => SessionSecurityMode::SIGNING_REQUIRED,
        Signing::Auto | Signing::Off => SessionSecurityMode::SIGNING_ENABLED,
    };
    let mut token = logon.step(&[])?;
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
                token = logon.step(view.security_blob().unwrap_or_default())?;
            }
            status => {
                return Err(ClientError::Refused { command: Command::SESSION_SETUP, status });
            }
        }
    };
    let session_flags = SessionSetupResponse(&reply.message).flags().unwrap_or_default();
    let guest = session_flags.contains(SessionFlags::IS_GUEST)
        || session_flags.contains(SessionFlags::IS_NULL);
    if guest {
        channel.protection = Protection::default();
        return Ok(LoggedOn { session_id, signer: None, authenticated: false });
    }
    let key = logon.session_key()?;
    let broken = || ClientError::Protocol("no keys for this dialect".into());
    let signing_key = derive_signing_key(dialect.0, &key, Some(&preauth)).ok_or_else(broken)?;
    let signer = Arc::new(Signer::new(negotiated.signing, &signing_key).ok_or_else(broken)?);
    // The last reply is signed with the key that it establishes; without signing from 3.1.1 on
    // only, since nobody could tell a forged one there.
    if dialect == Dialect::SMB_3_1_1 && !signer.verify(&reply.message) {
        return Err(ClientError::Unverified("the last SessionSetup reply"));
    }
    let sign_all = host.config.signing == Signing::Required || negotiated.signing_required;
    channel.protection = Protection { signer: Some(signer.clone()), sign_all, seal: None };
    if binding.is_none()
        && let Some(cipher) = negotiated.cipher
    {
        let seal = seal(dialect, cipher, &key, &preauth).ok_or_else(broken)?;
        let demanded = session_flags.contains(SessionFlags::ENCRYPT_DATA);
        if demanded || host.config.encryption == Encryption::Required {
            channel.protection.seal = Some(seal);
        } else {
            channel.keep_spare_seal(seal);
        }
    }
    Ok(LoggedOn { session_id, signer: Some(signer), authenticated: true })
}

/// Ciphers of both directions of a session.
fn seal(dialect: Dialect, cipher: CipherId, key: &Key, preauth: &PreauthIntegrity) -> Option<Seal> {
    let cipher = Cipher(cipher.0);
    let keys = derive_session_keys(dialect.0, cipher, key, Some(preauth))?;
    let encryptor = Encryptor::new(cipher, &keys.client_to_server)?;
    let decryptor = Decryptor::new(cipher, &keys.server_to_client)?;
    Some((Arc::new(encryptor), Arc::new(decryptor)))
}
