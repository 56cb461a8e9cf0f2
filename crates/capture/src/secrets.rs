//! Decryption on one connection (MS-SMB2 sections 3.1.4.2 and 3.1.4.3).
//!
//! Keys come from the user. A session key needs the dialect and, from 3.1.1 on, the hash over
//! the messages up to session setup, so the capture must hold them; keys of the two directions
//! also work in mid-stream, where the cipher is found by trying.

use hashbrown::HashMap;
use smbscope_wire::crypto::{
    Cipher, Decryptor, KeyEntry, PreauthIntegrity, SessionKeys, derive_session_keys,
};
use smbscope_wire::smb2::header::Header;
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

/// Decryptors and what leads to them.
#[derive(Default)]
pub struct Secrets {
    dialect: Option<Dialect>,
    cipher: Option<Cipher>,
    connection_hash: Option<PreauthIntegrity>,
    /// Hashes of session setups under way, by session; 0 until the server has named it.
    hashes: HashMap<u64, PreauthIntegrity>,
    decryptors: HashMap<(u64, bool), Option<Decryptor>>,
}

impl Clone for Secrets {
    /// Without anything: connections are copied to be ended, not to read on, and keys that are not
    /// copied need not be wiped.
    fn clone(&self) -> Secrets {
        Secrets::default()
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Follows negotiation and session setup; `message` is whole, from its SMB2 header.
    pub fn observe(&mut self, message: &[u8], dialect: Option<Dialect>, cipher: Option<Cipher>) {
        let Some(header) = Header::parse(message) else { return };
        match header.command {
            Command::NEGOTIATE => {
                if header.is_response() {
                    self.dialect = dialect;
                    self.cipher = cipher;
                } else {
                    self.connection_hash = None;
                }
                self.connection_hash.get_or_insert_with(PreauthIntegrity::new).update(message);
            }
            Command::SESSION_SETUP => self.session_setup(&header, message),
            _ => {}
        }
    }

    fn session_setup(&mut self, header: &Header, message: &[u8]) {
        let Some(connection) = &self.connection_hash else { return };
        if self.hashes.len() > 64 {
            self.hashes.clear();
        }
        let id = header.session_id;
        if !header.is_response() {
            let mut hash = self.hashes.get(&id).copied().unwrap_or(*connection);
            hash.update(message);
            self.hashes.insert(id, hash);
        } else if header.status() == Some(Status::MORE_PROCESSING_REQUIRED) {
            let hash = self.hashes.remove(&id).or_else(|| self.hashes.remove(&0));
            let mut hash = hash.unwrap_or(*connection);
            hash.update(message);
            self.hashes.insert(id, hash);
        } else if header.status() == Some(Status::SUCCESS) {
            // The final reply is not part of the hash.
            if let Some(hash) = self.hashes.remove(&0).filter(|_| !self.hashes.contains_key(&id)) {
                self.hashes.insert(id, hash);
            }
        }
    }

    /// Opens an encrypted message into `out`; None without a key, Some(false) when no key opens it.
    pub fn open(
        &mut self,
        keys: &HashMap<u64, KeyEntry>,
        session_id: u64,
        to_server: bool,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let entry = keys.get(&session_id)?;
        if let Some(Some(decryptor)) = self.decryptors.get(&(session_id, to_server)) {
            return Some(decryptor.decrypt(message, out).is_ok());
        }
        for decryptor in self.candidates(entry, session_id, to_server) {
            if decryptor.decrypt(message, out).is_ok() {
                if self.decryptors.len() > 4096 {
                    self.decryptors.clear();
                }
                self.decryptors.insert((session_id, to_server), Some(decryptor));
                return Some(true);
            }
        }
        Some(false)
    }

    fn candidates(&self, entry: &KeyEntry, session_id: u64, to_server: bool) -> Vec<Decryptor> {
        let ciphers: Vec<Cipher> = match (self.cipher, self.dialect) {
            (Some(cipher), _) => vec![cipher],
            (None, Some(Dialect::SMB_3_0 | Dialect::SMB_3_0_2)) => vec![Cipher::AES_128_CCM],
            // Most likely first.
            (None, _) => vec![
                Cipher::AES_128_GCM,
                Cipher::AES_128_CCM,
                Cipher::AES_256_GCM,
                Cipher::AES_256_CCM,
            ],
        };
        let direct = if to_server { &entry.client_to_server } else { &entry.server_to_client };
        let mut found = Vec::new();
        for cipher in ciphers {
            if let Some(decryptor) = direct.as_ref().and_then(|key| Decryptor::new(cipher, key)) {
                found.push(decryptor);
            }
            let dialects = match self.dialect {
                Some(dialect) => vec![dialect],
                None => vec![Dialect::SMB_3_0, Dialect::SMB_3_1_1],
            };
            for dialect in dialects {
                let hash = self.hashes.get(&session_id);
                let keys = entry
                    .session_key
                    .as_ref()
                    .and_then(|key| derive_session_keys(dialect.0, cipher, key, hash));
                let Some(SessionKeys { client_to_server, server_to_client, .. }) = keys else {
                    continue;
                };
                let key = if to_server { client_to_server } else { server_to_client };
                found.extend(Decryptor::new(cipher, &key));
            }
        }
        found
    }
}
