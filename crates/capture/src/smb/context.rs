//! What decoding one message may use and change, in one argument.

use super::pairing::Pairing;
use crate::limits::Limits;
use crate::outcome::Output;

/// Passed by `&mut` through every step that handles a message of a connection.
pub struct SmbContext<'a> {
    /// State of the connection that SMB1 and SMB2 share.
    pub pairing: &'a mut Pairing,
    /// Receives rows and their effects.
    pub out: &'a mut Output,
    pub limits: &'a Limits,
}
