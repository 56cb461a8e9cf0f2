//! Decryption on one connection (MS-SMB2 sections 3.1.4.2 and 3.1.4.3).
//!
//! Keys come from the user: session keys, keys of the two directions, or the secrets of accounts and
//! services, from which the session key of a logon in the capture is computed (`logon_key`). A session
//! key works only with the dialect and, since 3.1.1, with the hash over the messages up to session
//! setup, so the capture must contain them. Keys of the two directions also work mid-stream, where the
//! cipher is found by trying. The other channels of a session are encrypted with the keys of its
//! first one (section 3.3.5.5.3); reauthentication does not change them (section 3.3.5.5.2).

mod logon_key;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::{HashMap, HashSet};
use smbscope_wire::crypto::{
    Cipher, Decryptor, Key, KeyEntry, PreauthIntegrity, SessionKeys, derive_session_keys,
};
use smbscope_wire::secrets::Unlocked;
use smbscope_wire::smb2::header::Header;
use smbscope_wire::smb2::session::{SessionFlags, SessionSetupResponse};
use smbscope_wire::smb2::{Command, Dialect};
use smbscope_wire::status::Status;

use crate::outcome::{Output, Ticket};
use logon_key::LogonKey;

/// Sessions whose keys are remembered for their other channels.
const SESSIONS_MAX: usize = 65_536;
/// Servers number sessions alike: the keys of that many with the same id are tried.
const SAME_ID_MAX: usize = 8;
/// Session setups of one connection that wait for a reply, or for their next request.
const SETUPS_MAX: usize = 64;
/// Sessions of one connection whose keys are remembered.
const HELD_MAX: usize = 4_096;

/// What the user gave, and what was found with it.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    entries: HashMap<u64, KeyEntry>,
    secrets: Arc<smbscope_wire::secrets::Secrets>,
    /// Hashes that the keys of the sessions in `entries` are derived with.
    hashes: RefCell<HashMap<u64, PreauthIntegrity>>,
    /// What was computed with `secrets`.
    computed: RefCell<Computed>,
}

/// Session keys that were computed, for all connections.
#[derive(Clone, Debug, Default)]
struct Computed {
    /// By session id, the latest logon first.
    sessions: HashMap<u64, VecDeque<Arc<SessionSecret>>>,
    /// Sessions that have been counted as without a logon.
    without_logon: HashSet<u64>,
}

/// From what the keys of a session are derived.
#[derive(Debug)]
struct SessionSecret {
    /// The session key; more than one where the capture does not show which.
    keys: Vec<Key>,
    hash: Option<PreauthIntegrity>,
    /// Whether it counts as unlocked. Without the hash and the dialect only a message shows whether
    /// the session is of a dialect that needs no hash.
    is_counted: AtomicBool,
}

impl Keys {
    /// Keys by session, and the secrets of accounts and services.
    pub fn new(keys: &[KeyEntry], secrets: Arc<smbscope_wire::secrets::Secrets>) -> Keys {
        let entries = keys.iter().map(|key| (key.session_id, key.clone())).collect();
        Keys { entries, secrets, ..Keys::default() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.secrets.is_empty()
    }

    /// A session was set up on a connection, or bound to it.
    fn begun(&self, session_id: u64, hash: PreauthIntegrity) {
        if self.entries.contains_key(&session_id) {
            self.hashes.borrow_mut().entry(session_id).or_insert(hash);
        }
    }

    /// Remembers the key of a session for its other channels.
    fn remember(&self, session_id: u64, secret: Arc<SessionSecret>) {
        let sessions = &mut self.computed.borrow_mut().sessions;
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&session_id) {
            // The session's first connection has it still; other channels count as without a logon.
            return;
        }
        let same = sessions.entry(session_id).or_default();
        same.truncate(SAME_ID_MAX - 1);
        same.push_front(secret);
    }

    /// What is remembered of sessions with an id, the latest logon first.
    fn of_other_connections(&self, session_id: u64) -> Vec<Arc<SessionSecret>> {
        let computed = self.computed.borrow();
        computed.sessions.get(&session_id).into_iter().flatten().cloned().collect()
    }

    /// Counts a session whose messages are encrypted, and whose key nothing shows.
    fn count_without_logon(&self, session_id: u64, out: &mut Output) {
        let counted = &mut self.computed.borrow_mut().without_logon;
        // A client that has logged off sends messages of session 0.
        let is_known = self.secrets.is_empty() || session_id == 0;
        if !is_known && counted.len() < SESSIONS_MAX && counted.insert(session_id) {
            out.coverage.sessions_without_logon += 1;
        }
    }
}

/// Decryptors, and the negotiation state they are derived from.
#[derive(Default)]
pub struct Secrets {
    dialect: Option<Dialect>,
    cipher: Option<Cipher>,
    connection_hash: Option<PreauthIntegrity>,
    /// Session setups whose request waits for its reply, by MessageId.
    asked: HashMap<u64, Setup>,
    /// Session setups that continue with another request, by session.
    answered: HashMap<u64, Setup>,
    /// The hashes of the sessions that were set up or bound here.
    hashes: HashMap<u64, PreauthIntegrity>,
    /// The sessions that were set up here, with what was computed for them.
    held: HashMap<u64, Option<Arc<SessionSecret>>>,
    decryptors: HashMap<(u64, bool), Decryptor>,
}

/// A session setup in progress.
#[derive(Default)]
struct Setup {
    /// `None` if the capture lacks a part of the messages that it covers.
    hash: Option<PreauthIntegrity>,
    logon: LogonKey,
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
    /// Follows negotiation and session setup; `message` begins with its SMB2 header. If it sets up a
    /// session: how the session's key is known.
    pub fn observe(
        &mut self,
        message: &[u8],
        is_cut: bool,
        negotiated: (Option<Dialect>, Option<Cipher>),
        keys: &Keys,
        out: &mut Output,
    ) -> Option<&'static str> {
        let header = Header::parse(message)?;
        match header.command {
            Command::NEGOTIATE => {
                if header.is_response() {
                    (self.dialect, self.cipher) = negotiated;
                } else {
                    self.connection_hash = Some(PreauthIntegrity::new());
                }
                add(&mut self.connection_hash, message, is_cut);
            }
            Command::SESSION_SETUP if header.is_response() => {
                return self.setup_reply(&header, message, is_cut, keys, out);
            }
            Command::SESSION_SETUP => self.setup_request(&header, message, is_cut, keys, out),
            _ => {}
        }
        None
    }

    fn setup_request(
        &mut self,
        header: &Header,
        message: &[u8],
        is_cut: bool,
        keys: &Keys,
        out: &mut Output,
    ) {
        let new = || Setup { hash: self.connection_hash, logon: LogonKey::default() };
        let mut setup = self.answered.remove(&header.session_id).unwrap_or_else(new);
        add(&mut setup.hash, message, is_cut);
        if !keys.secrets.is_empty()
            && let Some((id, client)) = setup.logon.request(message, &keys.secrets)
        {
            let order = out.order;
            out.details.tickets.push(Ticket { order, id, account: Some(client), from: None });
        }
        if self.asked.len() >= SETUPS_MAX {
            self.asked.clear();
        }
        self.asked.insert(header.message_id, setup);
    }

    fn setup_reply(
        &mut self,
        header: &Header,
        message: &[u8],
        is_cut: bool,
        keys: &Keys,
        out: &mut Output,
    ) -> Option<&'static str> {
        let status = header.status();
        if status == Some(Status::PENDING) {
            return None;
        }
        let mut setup = self.asked.remove(&header.message_id)?;
        let id = header.session_id;
        match status {
            Some(Status::MORE_PROCESSING_REQUIRED) => {
                add(&mut setup.hash, message, is_cut);
                setup.logon.reply(message);
                if self.answered.len() >= SETUPS_MAX {
                    self.answered.clear();
                }
                self.answered.insert(id, setup);
                None
            }
            // The final reply is not part of the hash.
            Some(Status::SUCCESS) => self.set_up(id, setup, message, keys, out),
            _ => None,
        }
    }

    /// A session was set up, bound to this connection, or authenticated again.
    fn set_up(
        &mut self,
        id: u64,
        setup: Setup,
        reply: &[u8],
        keys: &Keys,
        out: &mut Output,
    ) -> Option<&'static str> {
        if self.hashes.len() >= HELD_MAX {
            self.hashes.clear();
        }
        if let Some(hash) = setup.hash {
            self.hashes.entry(id).or_insert(hash);
            keys.begun(id, hash);
        }
        let unprotected = SessionFlags::IS_GUEST.0 | SessionFlags::IS_NULL.0;
        let flags = SessionSetupResponse(reply).flags();
        let is_guest = flags.is_some_and(|flags| flags.0 & unprotected != 0);
        if keys.secrets.is_empty()
            || self.held.contains_key(&id)
            || setup.logon.is_binding()
            || is_guest
        {
            return keys.entries.contains_key(&id).then_some("key");
        }
        // Not captured in full: counted if its messages are encrypted.
        let (outcome, how) = setup.logon.finish(reply)?;
        let mut how = Some(how);
        let secret = match outcome {
            Unlocked::With(session_keys) => {
                let needs_hash = self.dialect.is_none_or(|dialect| dialect == Dialect::SMB_3_1_1);
                let is_counted = setup.hash.is_some() || !needs_hash;
                out.coverage.sessions_unlocked += u64::from(is_counted);
                how = how.filter(|_| is_counted);
                let is_counted = AtomicBool::new(is_counted);
                let secret = SessionSecret { keys: session_keys, hash: setup.hash, is_counted };
                let secret = Arc::new(secret);
                keys.remember(id, secret.clone());
                Some(secret)
            }
            Unlocked::Wrong => {
                out.coverage.sessions_wrong_secret += 1;
                None
            }
            Unlocked::Missing => {
                out.coverage.sessions_without_secret += 1;
                None
            }
        };
        if self.held.len() >= HELD_MAX {
            self.held.clear();
        }
        self.held.insert(id, secret);
        how
    }

    /// Decrypts a message into `text`; None without a key, Some(false) if no key decrypts it.
    pub fn open(
        &mut self,
        keys: &Keys,
        session_id: u64,
        to_server: bool,
        message: &[u8],
        text: &mut Vec<u8>,
        out: &mut Output,
    ) -> Option<bool> {
        if let Some(decryptor) = self.decryptors.get(&(session_id, to_server)) {
            return Some(decryptor.decrypt(message, text).is_ok());
        }
        let entry = keys.entries.get(&session_id);
        let secrets: Vec<_> = match self.held.get(&session_id) {
            Some(held) => held.clone().into_iter().collect(),
            None => keys.of_other_connections(session_id),
        };
        if entry.is_none() && secrets.is_empty() {
            if !self.held.contains_key(&session_id) {
                keys.count_without_logon(session_id, out);
            }
            return None;
        }
        let first = keys.hashes.borrow().get(&session_id).copied();
        let hashes = [self.hashes.get(&session_id), first.as_ref()];
        let given = entry.and_then(|entry| entry.session_key.as_ref());
        let given = given.into_iter().flat_map(|key| hashes.map(|hash| (key, hash)));
        let computed = secrets
            .iter()
            .flat_map(|secret| secret.keys.iter().map(|key| (key, secret.hash.as_ref())));
        let session_keys: Vec<_> = given.chain(computed).collect();
        let direct = entry.and_then(|entry| {
            if to_server {
                entry.client_to_server.as_ref()
            } else {
                entry.server_to_client.as_ref()
            }
        });
        let candidates = self.candidates(direct, &session_keys, to_server);
        let fits = |decryptor: &Decryptor| decryptor.decrypt(message, text).is_ok();
        let uncounted =
            || secrets.iter().filter(|secret| !secret.is_counted.load(Ordering::Relaxed));
        let Some(decryptor) = candidates.into_iter().find(fits) else {
            if entry.is_none() && uncounted().count() == secrets.len() {
                keys.count_without_logon(session_id, out);
                return None;
            }
            return Some(false);
        };
        if let Some(secret) = uncounted().next() {
            out.coverage.sessions_unlocked += 1;
            secret.is_counted.store(true, Ordering::Relaxed);
        }
        if self.decryptors.len() > HELD_MAX {
            self.decryptors.clear();
        }
        self.decryptors.insert((session_id, to_server), decryptor);
        Some(true)
    }

    fn candidates(
        &self,
        direct: Option<&Key>,
        session_keys: &[(&Key, Option<&PreauthIntegrity>)],
        to_server: bool,
    ) -> Vec<Decryptor> {
        let ciphers: &[Cipher] = match (&self.cipher, self.dialect) {
            (Some(cipher), _) => std::slice::from_ref(cipher),
            (None, Some(Dialect::SMB_3_0 | Dialect::SMB_3_0_2)) => &[Cipher::AES_128_CCM],
            // Most likely first.
            (None, _) => &[
                Cipher::AES_128_GCM,
                Cipher::AES_128_CCM,
                Cipher::AES_256_GCM,
                Cipher::AES_256_CCM,
            ],
        };
        let dialects: &[Dialect] = match &self.dialect {
            Some(dialect) => std::slice::from_ref(dialect),
            None => &[Dialect::SMB_3_0, Dialect::SMB_3_1_1],
        };
        let mut found = Vec::new();
        for &cipher in ciphers {
            found.extend(direct.and_then(|key| Decryptor::new(cipher, key)));
            for dialect in dialects {
                for (key, hash) in session_keys {
                    let keys = derive_session_keys(dialect.0, cipher, key, *hash);
                    let Some(SessionKeys { client_to_server, server_to_client, .. }) = keys else {
                        continue;
                    };
                    let key = if to_server { client_to_server } else { server_to_client };
                    found.extend(Decryptor::new(cipher, &key));
                }
            }
        }
        found
    }
}

/// Continues a hash with a message; a part of a message ends it.
fn add(hash: &mut Option<PreauthIntegrity>, message: &[u8], is_cut: bool) {
    match hash {
        Some(hash) if !is_cut => hash.update(message),
        _ => *hash = None,
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
        let mut out = Output::default();
        for (command, reply, session) in
            [(0, false, 0), (0, true, 0), (1, false, session), (1, true, SESSION)]
        {
            let negotiated = if command == 0 { (dialect, cipher) } else { (None, None) };
            let message = message(command, reply, session, salt);
            secrets.observe(&message, false, negotiated, keys, &mut out);
        }
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
        let keys = Keys::new(std::slice::from_ref(&entry), Arc::default());
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
        let (mut text, mut out) = (Vec::new(), Output::default());
        assert_eq!(further.open(&keys, SESSION, true, &sealed, &mut text, &mut out), Some(true));
        assert_eq!(text, message(13, false, SESSION, 0));
        // A computed key is remembered with the hash of the first one.
        let computed = Keys::new(&[], Arc::default());
        let session_key = entry.session_key.clone().unwrap();
        let secret = SessionSecret {
            keys: vec![Key::new(&[1; 16]).unwrap(), session_key],
            hash: Some(*hash),
            is_counted: AtomicBool::new(true),
        };
        computed.remember(SESSION, Arc::new(secret));
        let mut bound = connection(&computed, 2, SESSION);
        assert_eq!(bound.open(&computed, SESSION, true, &sealed, &mut text, &mut out), Some(true));
        // Without having seen the first one there is nothing to make them from.
        let keys = Keys::new(&[entry], Arc::default());
        let mut alone = connection(&keys, 2, SESSION);
        assert_eq!(alone.open(&keys, SESSION, true, &sealed, &mut text, &mut out), Some(false));
    }
}
