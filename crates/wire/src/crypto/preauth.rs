//! The preauthentication integrity hash of dialect 3.1.1.
//!
//! MS-SMB2 sections 3.2.5.2, 3.2.5.3 (client), 3.3.5.4 and 3.3.5.5 (server): SHA-512 over the value
//! so far and the next message, starting with 64 zeros.
//!
//! A connection's value takes its SMB2 Negotiate request and response (not the SMB1 one before
//! them). Each session's starts as a copy of that and takes every SessionSetup request and response
//! of the session but the last, successful response. The value then is the context of the keys.

use sha2::{Digest, Sha512};

/// The hash so far. A copy of a connection's value starts a session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreauthIntegrity([u8; 64]);

impl PreauthIntegrity {
    /// The value before any message.
    pub fn new() -> PreauthIntegrity {
        PreauthIntegrity([0; 64])
    }

    /// Takes in a message: all of it, from `FE 'SMB'` on, without the framing.
    pub fn update(&mut self, message: &[u8]) {
        let mut hash = Sha512::new();
        hash.update(self.0);
        hash.update(message);
        self.0 = hash.finalize().into();
    }

    /// The value.
    pub fn value(&self) -> &[u8; 64] {
        &self.0
    }
}

impl Default for PreauthIntegrity {
    fn default() -> Self {
        PreauthIntegrity::new()
    }
}

impl From<[u8; 64]> for PreauthIntegrity {
    fn from(value: [u8; 64]) -> Self {
        PreauthIntegrity(value)
    }
}
