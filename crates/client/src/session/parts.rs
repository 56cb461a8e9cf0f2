//! A session taken apart: its connections for tasks of their own, and what they have in common.

use std::sync::Arc;

use smbscope_tables::tables::Connection;

use super::{Ended, Session};
use crate::channel::Channel;
use crate::negotiate::Negotiated;
use crate::row::{LinkNames, Row};

/// A session without its connections.
pub struct Parts(Session);

/// What is left of a connection that was lost while others continued.
pub(super) struct Lost {
    pub connection: Connection,
    pub names: Arc<LinkNames>,
    /// Operations in the session, and of those in its tree.
    pub counts: (u64, u64),
    pub last_reply: Option<i64>,
}

impl Session {
    /// Takes the session apart.
    pub fn into_parts(mut self) -> (Parts, Vec<Channel>) {
        let channels = std::mem::take(&mut self.channels);
        (Parts(self), channels)
    }
}

impl Parts {
    /// The session's number, and that of its tree.
    pub fn ids(&self) -> (u64, u32) {
        (self.0.session_id, self.0.tree_id)
    }

    /// What was negotiated.
    pub fn negotiated(&self) -> &Negotiated {
        &self.0.negotiated
    }

    /// The number of the next open.
    pub fn next_handle(&mut self) -> u64 {
        self.0.next_handle()
    }

    /// Ends a connection that was lost; returns the rows of its requests, those without a reply included.
    pub fn lost(&mut self, mut channel: Channel) -> Vec<Box<Row>> {
        let (rows, connection) = channel.end("reset");
        let (names, counts) = (channel.names().clone(), channel.counts());
        let last_reply = channel.last_reply();
        self.0.lost.push(Lost { connection, names, counts, last_reply });
        rows
    }

    /// Puts the connections that are left back, logs off and ends them.
    pub async fn close(mut self, channels: Vec<Channel>) -> Ended {
        self.0.channels = channels;
        if self.0.channels.is_empty() { self.0.end("reset") } else { self.0.close().await }
    }
}
