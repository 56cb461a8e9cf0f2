//! Decryption on one connection (MS-SMB2 sections 3.1.4.2 and 3.1.4.3).
//!
//! Keys come from the user. A session key works only with the dialect and, from 3.1.1 on, with the
//! hash over the messages up to session setup, so the capture must contain them. Keys of the two
//! directions also work mid-stream, where the cipher is found by trying. The other channels of a
//! session are encrypted with the keys of its first one (section 3.3.5.5.3).

use std::cell::RefCell;

use hashbrown::HashMap;
use smbscope_wire::crypto::{
    Cipher, Decryptor, KeyEntry, PreauthIntegrity, SessionKeys, derive_session_keys,
};
use smbscope_wire::smb2::header::Header;
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

/// The user's keys, by session.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    entries: HashMap<u64, KeyEntry>,
    /// Hashes that the keys of these sessions are derived with.
    hashes: RefCell<HashMap<u64, PreauthIntegrity>>,
}

impl Keys {
    /// Keys by session.
    pub fn new(keys: &[KeyEntry]) -> Keys {
        let entries = keys.iter().map(|key| (key.session_id, key.clone())).collect();
        Keys { entries, hashes: RefCell::default() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A session was set up on a connection, or bound to it.
    fn begun(&self, session_id: u64, hash: PreauthIntegrity) {
        if self.entries.contains_key(&session_id) {
            self.hashes.borrow_mut().entry(session_id).or_insert(hash);
        }
    }
}

/// Decryptors, and the negotiation state they are derived from.
#[derive(Default)]
pub struct Secrets {
    dialect: Option<Dialect>,
    cipher: Option<Cipher>,
    connection_hash: Option<PreauthIntegrity>,
    /// Hashes of session setups in progress, by session; 0 until the server has assigned its id.
    hashes: HashMap<u64, PreauthIntegrity>,
    decryptors: HashMap<(u64, bool), Option<Decryptor>>,
}

impl Clone for Secrets {
    /// Without state: connections are cloned to be ended, not to be read on, and keys that are not
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
    pub fn observe(
        &mut self,
        message: &[u8],
        dialect: Option<Dialect>,
        cipher: Option<Cipher>,
        keys: &Keys,
    ) {
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
            Command::SESSION_SETUP => self.session_setup(&header, message, keys),
            _ => {}
        }
    }

    fn session_setup(&mut self, header: &Header, message: &[u8], keys: &Keys) {
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
            if let Some(hash) = self.hashes.get(&id) {
                keys.begun(id, *hash);
            }
        }
    }

    /// Decrypts a message into `out`; None without a key, Some(false) if no key decrypts it.
    pub fn open(
        &mut self,
        keys: &Keys,
        session_id: u64,
        to_server: bool,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let entry = keys.entries.get(&session_id)?;
        if let Some(Some(decryptor)) = self.decryptors.get(&(session_id, to_server)) {
            return Some(decryptor.decrypt(message, out).is_ok());
        }
        let first = keys.hashes.borrow().get(&session_id).copied();
        let hashes = [self.hashes.get(&session_id), first.as_ref()];
        for decryptor in self.candidates(entry, hashes, to_server) {
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

    fn candidates(
        &self,
        entry: &KeyEntry,
        hashes: [Option<&PreauthIntegrity>; 2],
        to_server: bool,
    ) -> Vec<Decryptor> {
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
            let each = dialects.iter().flat_map(|&dialect| hashes.map(|hash| (dialect, hash)));
            for (dialect, hash) in each {
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

#[cfg(test)]
mod tests {
    use smbscope_wire::crypto::{Encryptor, Key};

    use super::*;

    const SESSION: u64 = 7;

    fn message(command: u16, reply: bool, session: u64, body: u8) -> Vec<u8> {
        let mut bytes = b"\xfeSMB\x40\0".to_vec();
        bytes.resize(64, 0);
        bytes[12..14].copy_from_slice(&command.to_le_bytes());
        bytes[16] = u8::from(reply);
        bytes[40..48].copy_from_slice(&session.to_le_bytes());
        bytes.extend([body; 24]);
        bytes
    }

    /// A connection on which the session begins, or which is bound to it.
    fn connection(keys: &Keys, salt: u8, session: u64) -> Secrets {
        let mut secrets = Secrets::default();
        let (dialect, cipher) = (Some(Dialect::SMB_3_1_1), Some(Cipher::AES_128_GCM));
        secrets.observe(&message(0, false, 0, salt), None, None, keys);
        secrets.observe(&message(0, true, 0, salt), dialect, cipher, keys);
        secrets.observe(&message(1, false, session, salt), None, None, keys);
        secrets.observe(&message(1, true, SESSION, salt), None, None, keys);
        secrets
    }

    #[test]
    fn further_channels_have_the_keys_of_the_first() {
        let session_key = Key::new(&[9; 16]);
        let entry = KeyEntry {
            session_id: SESSION,
            session_key,
            server_to_client: None,
            client_to_server: None,
        };
        let keys = Keys::new(std::slice::from_ref(&entry));
        let first = connection(&keys, 1, 0);
        let mut further = connection(&keys, 2, SESSION);
        let hash = first.hashes.get(&SESSION).unwrap();
        let made = derive_session_keys(
            Dialect::SMB_3_1_1.0,
            Cipher::AES_128_GCM,
            entry.session_key.as_ref().unwrap(),
            Some(hash),
        );
        let key = made.unwrap().client_to_server;
        let mut sealed = vec![0; 52];
        sealed.extend(message(13, false, SESSION, 0));
        let encryptor = Encryptor::new(Cipher::AES_128_GCM, &key).unwrap();
        encryptor.encrypt(SESSION, &mut sealed).unwrap();
        let mut out = Vec::new();
        assert_eq!(further.open(&keys, SESSION, true, &sealed, &mut out), Some(true));
        assert_eq!(out, message(13, false, SESSION, 0));
        // Without having seen the first one there is nothing to make them from.
        let keys = Keys::new(&[entry]);
        let mut alone = connection(&keys, 2, SESSION);
        assert_eq!(alone.open(&keys, SESSION, true, &sealed, &mut out), Some(false));
    }
}
