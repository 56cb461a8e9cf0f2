//! What is left of a session that ended or was never established.

use smbscope_tables::code::share_type;
use smbscope_tables::tables::{Connection, Session as SessionRow, Tree};
use smbscope_wire::smb2::encode::{Logoff, TreeDisconnect};
use smbscope_wire::smb2::tree::{ShareCapabilities, ShareFlags};

use super::Session;
use crate::channel::{Ask, Channel};
use crate::error::ClientError;
use crate::row::{LinkNames, Row};

/// What is left of a session that ended: its last rows, and rows of other tables.
#[derive(Debug, Default)]
pub struct Ended {
    /// Rows that were not taken before.
    pub rows: Vec<Box<Row>>,
    /// Its connections.
    pub connections: Vec<Connection>,
    /// The session, if it was established.
    pub session: Option<SessionRow>,
    /// Its tree, if it was connected.
    pub tree: Option<Tree>,
}

/// A session that could not be established, with the rows of the attempt.
#[derive(Debug)]
pub struct Failed {
    /// The reason.
    pub error: ClientError,
    /// What was sent until then.
    pub left: Ended,
}

impl Failed {
    pub(super) fn from_channel(error: ClientError, mut channel: Channel) -> Failed {
        let (rows, table) = channel.end("reset");
        let left = Ended { rows, connections: vec![table], ..Ended::default() };
        Failed { error, left }
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Failed {
        Failed { error, left: Ended::default() }
    }
}

impl Session {
    /// Logs off and ends the connections; includes the rows of that and the connections' own rows.
    pub async fn close(mut self) -> Ended {
        let ask = || Ask::default();
        let patience = self.limit.min(std::time::Duration::from_secs(5));
        let farewell = async {
            self.call(&TreeDisconnect, ask()).await?;
            let tree_id = std::mem::take(&mut self.tree_id);
            let logged_off = self.call(&Logoff, ask()).await;
            self.tree_id = tree_id;
            logged_off
        };
        let done = tokio::time::timeout(patience, farewell).await;
        self.end(if matches!(done, Ok(Ok(_))) { "fin" } else { "reset" })
    }

    /// Ends the connections as they are.
    pub fn end(mut self, reason: &str) -> Ended {
        let mut ended = Ended::default();
        for channel in &mut self.channels {
            let (last, table) = channel.end(reason);
            ended.rows.extend(last);
            ended.connections.push(table);
        }
        ended.connections.extend(self.lost.iter().map(|lost| lost.connection.clone()));
        ended.connections.sort_by_key(|connection| connection.connection);
        ended.session = self.row(&ended.connections);
        ended.tree = self.tree_row(ended.session.as_ref());
        ended
    }

    /// The texts of the session's rows.
    fn names(&self) -> Option<&LinkNames> {
        let names = self.channels.first().map(|channel| &**channel.names());
        names.or_else(|| self.lost.first().map(|lost| &*lost.names))
    }

    /// Operations in the session, and of those in its tree.
    fn counts(&self) -> (u64, u64) {
        let counts = self.channels.iter().map(Channel::counts);
        let all = counts.chain(self.lost.iter().map(|lost| lost.counts));
        all.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1))
    }

    /// The row in the table of sessions.
    fn row(&self, connections: &[Connection]) -> Option<SessionRow> {
        let (link, names) = (connections.first()?, self.names()?);
        let replies = self.channels.iter().filter_map(Channel::last_reply);
        let last = replies.chain(self.lost.iter().filter_map(|lost| lost.last_reply)).max();
        Some(SessionRow {
            session_id: self.session_id,
            connection: link.connection,
            client: names.client.clone(),
            server: names.server.clone(),
            user: (!names.user.is_empty()).then(|| names.user.clone()),
            mechanism: Some(self.host.config.mechanism().to_owned()),
            guest: Some(!self.authenticated),
            encrypt_data: Some(self.encrypt_data),
            channels: connections.len() as u64,
            start: link.start,
            end: last.unwrap_or(link.start),
            operations: self.counts().0,
            ..SessionRow::default()
        })
    }

    fn tree_row(&self, session: Option<&SessionRow>) -> Option<Tree> {
        let (session, tree, names) = (session?, self.tree?, self.names()?);
        Some(Tree {
            session_id: self.session_id,
            tree_id: u64::from(self.tree_id),
            connection: session.connection,
            share: Some(names.share.clone()),
            share_type: Some(share_type(tree.kind)),
            share_flags: Some(u64::from(tree.flags.0)),
            capabilities: Some(u64::from(tree.capabilities.0)),
            continuous_availability: Some(
                tree.capabilities.contains(ShareCapabilities::CONTINUOUS_AVAILABILITY),
            ),
            encrypt_data: Some(tree.flags.contains(ShareFlags::ENCRYPT_DATA)),
            start: tree.start,
            end: session.end,
            operations: self.counts().1,
            ..Tree::default()
        })
    }

    pub(super) fn failed(self, error: ClientError) -> Failed {
        Failed { error, left: self.end("reset") }
    }
}
