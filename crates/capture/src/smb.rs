//! SMB messages of one connection to operations: pairing, logons, decryption.

pub mod context;
pub mod logon;
pub mod pairing;
pub mod pending;
pub mod secrets;
pub mod smb1;
pub mod smb2;
mod unanswered;
