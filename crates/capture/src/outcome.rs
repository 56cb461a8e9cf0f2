//! What a shard hands to the resolver.
//!
//! Rows leave a shard with everything that one connection knows. What spans connections (sessions,
//! trees, opens, numbers) is added by `resolve`, in the order of the packets.

use std::net::SocketAddr;

use smbscope_tables::channels::Network;
pub use smbscope_tables::open::CreateResult as Open;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::{Connection, Coverage, Referral, Wait};
use smbscope_wire::auth::kerberos::TicketId;

/// A piece of [`Output::text`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    length: u32,
}

/// An operation that ended, or for which nothing more will come; its row is in [`Output::rows`].
#[derive(Clone, Copy, Debug)]
pub struct OperationEnd {
    /// The connection, as its shard numbers it.
    pub connection: u32,
    /// Global number of the packet with which it ended.
    pub order: u64,
    /// Time: end of the reply, or of the request if there is no reply. The row of a later compound
    /// member has no times.
    pub time: i64,
    /// Number of its compound on the connection; 0 for none.
    pub chain: u64,
    /// Name in the message: a path (Create and SMB1's path commands).
    pub path: Option<Span>,
    /// What it does to sessions, trees and opens.
    pub effect: Effect,
}

/// What an operation does to the state that spans connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Opened a file: [`Output::opens`].
    Open(u32),
    /// Closed the row's file, with the size from the reply.
    Close(Option<u64>),
    /// Began or continued a session: [`Output::sessions`].
    Session(u32),
    /// Ended the row's session.
    Logoff,
    /// Connected a share: [`Output::trees`].
    Tree(u32),
    /// Disconnected the row's tree.
    TreeDisconnect,
    /// Renamed the row's file.
    Rename(Span),
    /// Was answered with DFS targets: first and count in [`Output::referrals`].
    Referrals(u32, u32),
}

/// What a session setup contains.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// DOMAIN\\user.
    pub user: Option<String>,
    /// The client's own name.
    pub workstation: Option<String>,
    pub mechanism: Option<String>,
    /// The Kerberos ticket presented.
    pub ticket: Option<TicketId>,
    /// Guest or null session.
    pub guest: Option<bool>,
    /// The server demands encryption.
    pub encrypt_data: Option<bool>,
    /// The server refused the logon of this user.
    pub refused: bool,
    /// It adds a channel to an existing session.
    pub binding: bool,
    /// The session that it replaces after a lost connection.
    pub previous: Option<u64>,
    /// The client's ClientGuid on this connection.
    pub client_guid: Option<[u8; 16]>,
    /// How the session's key is known, or why it is not.
    pub decryption: Option<&'static str>,
}

/// A Kerberos ticket that a KDC issued.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Global number of the packet.
    pub order: u64,
    /// Identifies the ticket.
    pub id: TicketId,
    /// The account, as `user@REALM`.
    pub account: Option<String>,
    /// The ticket that was used to request it; it belongs to the same client.
    pub from: Option<TicketId>,
}

/// What a tree connect contains.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The share, as the client requested it.
    pub share: Option<Span>,
    /// Disk, pipe or printer.
    pub share_type: Option<String>,
    pub flags: Option<u64>,
    pub capabilities: Option<u64>,
    /// Handles persist over a failover.
    pub continuous_availability: Option<bool>,
    /// The share demands encryption.
    pub encrypt_data: Option<bool>,
    /// No tree was connected: the server refused, or did not answer. `share` is the share
    /// requested.
    pub refused: bool,
}

/// A connection that began to carry SMB.
#[derive(Clone, Debug)]
pub struct ConnectionStart {
    /// The connection, as its shard numbers it.
    pub connection: u32,
    /// Global number of the packet.
    pub order: u64,
    /// The address and port of the client.
    pub client: SocketAddr,
    /// The address and port of the server.
    pub server: SocketAddr,
    /// Time of the packet.
    pub time: i64,
    /// Time of its first packet; none if it was open before the capture.
    pub opened: Option<i64>,
    /// What carries SMB.
    pub transport: &'static str,
}

/// What TCP did on a connection in one interval of the table `channels`.
#[derive(Clone, Copy, Debug)]
pub struct NetworkSample {
    /// The connection, as its shard numbers it.
    pub connection: u32,
    /// Global number of the packet with which it was complete.
    pub order: u64,
    /// Beginning of the interval.
    pub time: i64,
    /// What was measured.
    pub state: Network,
}

/// A wait that ended, or for whose end nothing more will come.
#[derive(Clone, Debug)]
pub struct WaitEnd {
    /// The SMB connection, as its shard numbers it, if it is a wait on one.
    pub connection: Option<u32>,
    /// Its row without names and numbers.
    pub row: Wait,
}

/// Which connection a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoints {
    /// The address and port of the client.
    pub client: SocketAddr,
    /// The address and port of the server.
    pub server: SocketAddr,
}

/// Variable-length details of operations, in addition to their rows.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The text of all spans.
    pub text: String,
    /// See [`Effect::Open`].
    pub opens: Vec<Open>,
    /// See [`Effect::Session`].
    pub sessions: Vec<Session>,
    /// See [`Effect::Tree`].
    pub trees: Vec<Tree>,
    /// See [`Effect::Referrals`].
    pub referrals: Vec<Referral>,
    /// Tickets that KDCs issued.
    pub tickets: Vec<Ticket>,
}

/// Everything that one shard made of one chunk.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Connections that began, in order.
    pub started: Vec<ConnectionStart>,
    /// Operations that ended, in order.
    pub done: Vec<OperationEnd>,
    /// Their rows, without names and numbers: large, so that they are copied once.
    pub rows: Vec<Operation>,
    /// Details of the rows.
    pub details: Details,
    /// Connections that ended (numbered by the shard), with their row except for number and names.
    pub ended: Vec<(u32, u64, Box<Connection>)>,
    /// What TCP did in intervals that are over, in order.
    pub network: Vec<NetworkSample>,
    /// Waits that ended.
    pub waits: Vec<WaitEnd>,
    /// Counters since the last chunk.
    pub coverage: Box<Coverage>,
    /// Global number of the packet at hand.
    pub order: u64,
}

impl Output {
    /// Empties it for another chunk.
    pub fn reset(&mut self) {
        self.started.clear();
        self.done.clear();
        self.rows.clear();
        self.details.text.clear();
        self.details.opens.clear();
        self.details.sessions.clear();
        self.details.trees.clear();
        self.details.referrals.clear();
        self.details.tickets.clear();
        self.ended.clear();
        self.network.clear();
        self.waits.clear();
        *self.coverage = Coverage::default();
    }

    /// Keeps what an open says.
    pub fn open(&mut self, open: Open) -> Effect {
        self.details.opens.push(open);
        Effect::Open(self.details.opens.len() as u32 - 1)
    }

    /// Keeps what a session setup says.
    pub fn session(&mut self, session: Session) -> Effect {
        self.details.sessions.push(session);
        Effect::Session(self.details.sessions.len() as u32 - 1)
    }

    /// Keeps what a tree connect says.
    pub fn tree(&mut self, tree: Tree) -> Effect {
        self.details.trees.push(tree);
        Effect::Tree(self.details.trees.len() as u32 - 1)
    }

    /// Keeps the targets that answer a DFS referral request for `path`.
    pub fn referrals(&mut self, mut targets: Vec<Referral>, path: Option<String>) -> Effect {
        for target in &mut targets {
            target.path.clone_from(&path);
        }
        let (first, count) = (self.details.referrals.len() as u32, targets.len() as u32);
        self.details.referrals.extend(targets);
        Effect::Referrals(first, count)
    }

    /// Keeps a text.
    pub fn push_text(&mut self, text: &str) -> Span {
        let start = self.details.text.len() as u32;
        self.details.text.push_str(text);
        Span { start, length: text.len() as u32 }
    }
}

impl Details {
    /// A text that was kept.
    pub fn text(&self, span: Span) -> &str {
        self.text.get(span.start as usize..(span.start + span.length) as usize).unwrap_or_default()
    }
}
