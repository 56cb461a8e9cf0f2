//! Session keys computed from the secrets of accounts and services.
//!
//! Owns: lists of passwords and NT hashes (`accounts`), keytabs (`keytab`), and what they open: the
//! session key of an NTLM logon (`ntlm`) and of a Kerberos logon (`kerberos`, with the encryption
//! types in `enctype` and in `rc4`); and the messages of a client that logs on (`ntlm_client`). Every key is verified before it is used: NTLM by the response
//! of the client, Kerberos by the checksum of the ticket. A secret that does not match gives no key.
//!
//! It does not own which session and connection a logon belongs to (`capture`), nor the keys that
//! are derived from a session key (`crypto`). No secret appears in an error or in `Debug`.

mod accounts;
mod enctype;
mod kerberos;
mod keytab;
mod nt_hash;
mod ntlm;
mod ntlm_client;
mod rc4;

pub use accounts::SecretListError;
pub use kerberos::Ticket;
pub use keytab::{Entry as KeytabEntry, KeytabError, entries as keytab_entries};
pub use nt_hash::NtHash;
pub use ntlm_client::{NtlmAccount, NtlmFresh, ntlm_authenticate, ntlm_negotiate};

use crate::auth::ap::ApReq;
use crate::auth::ntlmssp::Message;
use crate::crypto::Key;
use accounts::Accounts;
use kerberos::ServiceKey;

/// Different keys of services; all of a ticket's type are tried.
const SERVICES_MAX: usize = 10_000;

/// What the secrets say about a logon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlocked<T> {
    /// A secret matches.
    With(T),
    /// There are secrets for the account or the service, but none matches.
    Wrong,
    /// There is no secret for the account, or no key of the ticket's encryption type; or the logon
    /// is of a kind that gives no key, such as an anonymous one.
    Missing,
}

/// The secrets that a user gave.
#[derive(Clone, Default)]
pub struct Secrets {
    accounts: Accounts,
    services: Vec<ServiceKey>,
}

impl std::fmt::Debug for Secrets {
    /// Says the numbers only, so that no log holds a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (accounts, services) = (self.accounts.len(), self.services.len());
        write!(f, "Secrets({accounts} of accounts, {services} of services)")
    }
}

impl Secrets {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.accounts.len() == 0 && self.services.is_empty()
    }

    /// Adds a password file: lines of `NAME:PASSWORD`, where NAME is `user`, `DOMAIN\user`,
    /// `user@domain`, or `*` for every account. The first colon ends the name; everything behind it
    /// is the password.
    pub fn add_passwords(&mut self, text: &[u8]) -> Result<(), SecretListError> {
        self.accounts.add_passwords(text)
    }

    /// Adds a file of NT hashes: lines of `NAME:HASH`, of `HASH` alone for every account, or of
    /// `NAME:RID:LM:NT:::` as pwdump and secretsdump write them.
    pub fn add_nt_hashes(&mut self, text: &[u8]) -> Result<(), SecretListError> {
        self.accounts.add_nt_hashes(text)
    }

    /// Adds the keys of a keytab; the number of those whose encryption type is supported.
    pub fn add_keytab(&mut self, bytes: &[u8]) -> Result<usize, KeytabError> {
        let mut count = 0;
        for key in keytab_entries(bytes)?.iter().filter_map(ServiceKey::new) {
            count += 1;
            // The services of an account have its key each.
            if self.services.contains(&key) {
                continue;
            }
            if self.services.len() == SERVICES_MAX {
                let reason = "the keytabs have more than 10000 different keys";
                return Err(KeytabError { reason, offset_bytes: 0 });
            }
            self.services.push(key);
        }
        Ok(count)
    }

    /// The session key of an NTLM logon: from the nonce of the CHALLENGE and the AUTHENTICATE.
    pub fn ntlm(&self, server_challenge: &[u8; 8], authenticate: &Message<'_>) -> Unlocked<Key> {
        let Some(logon) = ntlm::Logon::new(server_challenge, authenticate) else {
            return Unlocked::Missing;
        };
        let mut outcome = Unlocked::Missing;
        for hash in self.accounts.of(logon.user()) {
            if let Some(key) = logon.session_key(hash) {
                return Unlocked::With(key);
            }
            outcome = Unlocked::Wrong;
        }
        outcome
    }

    /// The keys in an AP-REQ.
    pub fn ticket(&self, request: &ApReq<'_>) -> Unlocked<Ticket> {
        kerberos::open(&self.services, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ntlmssp::tests::authenticate;

    #[test]
    fn debug_output_holds_no_secret() {
        let mut secrets = Secrets::default();
        assert!(secrets.is_empty());
        secrets.add_passwords(b"joe:hunter2\n").unwrap();
        secrets.add_nt_hashes(&b"ab".repeat(16)).unwrap();
        assert!(!secrets.is_empty());
        assert_eq!(format!("{secrets:?}"), "Secrets(2 of accounts, 0 of services)");
    }

    /// What the fuzz target `secrets` calls, over deterministic bytes.
    #[test]
    fn any_bytes_are_survived() {
        let keytab = keytab::tests::sample();
        let logon = authenticate(0xe288_8215, [b"D\0", b"u\0", b"P\0"]);
        let seeds = [
            keytab,
            logon,
            b"DOM\\joe:pass\n*:x\n".to_vec(),
            b"joe:500:NO PASSWORD*********************:31d6cfe0d16ae931b73c59d7e0c089c0:::"
                .to_vec(),
            crate::auth::kerberos::tests::ap_req(),
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for seed in &seeds {
            for round in 0..3_000 {
                let mut bytes = seed.clone();
                for _ in 0..=round % 4 {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let at = (state >> 16) as usize % bytes.len();
                    bytes[at] = state as u8;
                }
                bytes.truncate(bytes.len() - (state >> 40) as usize % (1 + round % bytes.len()));
                survive(&bytes);
            }
        }
    }

    /// As `fuzz/src/bin/secrets.rs`.
    fn survive(bytes: &[u8]) {
        let mut secrets = Secrets::default();
        let _ = secrets.add_passwords(bytes).map_err(|error| error.to_string());
        let _ = secrets.add_nt_hashes(bytes).map_err(|error| error.to_string());
        let _ = secrets.add_keytab(bytes).map_err(|error| error.to_string());
        let _ = secrets.add_nt_hashes(&b"00".repeat(16));
        let _ = secrets.add_keytab(&keytab::tests::sample());
        if let Some(message) = Message::parse(bytes) {
            let _ = secrets.ntlm(&[1; 8], &message);
        }
        if let Some(request) = ApReq::parse(crate::auth::token(bytes))
            && let Unlocked::With(ticket) = secrets.ticket(&request)
        {
            let _ = ticket.session_keys(crate::auth::ap::ap_rep(bytes));
        }
    }
}
