//! How far an exchange is, where it is more than one request and one reply.

use super::transactions::Transaction;

/// What is special about an exchange; said by its last command.
#[derive(Clone, Debug, Default)]
pub enum Stage {
    /// One request, one reply.
    #[default]
    Plain,
    /// No reply comes.
    Silent,
    /// The dialects offered, as the dialect column's codes.
    Negotiate(Vec<u64>),
    /// Replies still to come.
    Echo(u16),
    /// Several messages each way.
    Transaction(Transaction),
    /// A lock that may wait for another client's.
    Lock,
    /// The reply is a message without header.
    ReadRaw,
    /// See [`WriteRaw`].
    WriteRaw(WriteRaw),
    /// Bytes returned so far, in several replies.
    ReadMpx(u32),
}

/// Progress of a raw write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteRaw {
    /// Bytes that the message without header brings.
    pub rest: u32,
    /// Whether a final reply follows.
    pub through: bool,
    /// The frame in which the server asked for the rest.
    pub asked: Option<u64>,
}
