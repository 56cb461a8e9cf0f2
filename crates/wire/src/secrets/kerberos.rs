//! The session key of a Kerberos logon from the service's key.
//!
//! RFC 4120 sections 3.2 and 7.5.1 (key usages): the ticket is encrypted with the service's key (usage
//! 2) and holds a key, with which the client's authenticator (usage 11) and the service's answer
//! (usage 12) are encrypted; both may hold a subkey. RFC 4121 section 2 says which one protects what
//! follows: the service's subkey, else the client's, else the ticket's key. Implementations differ for
//! RC4 (RFC 1964), so all are given. MS-SMB2 section 3.2.5.3: that key is the session key.

use super::Unlocked;
use super::enctype::{EncryptionType, Plaintext, decrypt};
use super::keytab::Entry;
use crate::auth::ap::{
    ApReq, Encrypted, EncryptionKey, ap_rep_subkey, authenticator_subkey, ticket_part,
};
use crate::crypto::Key;

/// Key usages (RFC 4120 section 7.5.1).
const TICKET: u32 = 2;
const AUTHENTICATOR: u32 = 11;
const AP_REP: u32 = 12;

/// A key of a service.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceKey {
    kind: EncryptionType,
    key: Key,
}

impl ServiceKey {
    /// `None` for an encryption type that is not supported.
    pub fn new(entry: &Entry<'_>) -> Option<ServiceKey> {
        let kind = EncryptionType(i32::from(entry.encryption_type));
        (kind.key_bytes()? == entry.key.len())
            .then(|| Key::new(entry.key))?
            .map(|key| ServiceKey { kind, key })
    }
}

/// What a logon's request shows once its ticket is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The client: `user@REALM`.
    pub client: Option<String>,
    kind: EncryptionType,
    key: Key,
    client_subkey: Option<Key>,
}

impl Ticket {
    /// The session keys that are possible with the service's answer (an AP-REP, if it was captured),
    /// the most likely first. Which one it is shows the first message that is encrypted.
    pub fn session_keys(&self, answer: Option<Encrypted<'_>>) -> Vec<Key> {
        let mut keys = Vec::new();
        if let Some(plain) = answer.and_then(|answer| self.decrypt(AP_REP, answer)) {
            keys.extend(ap_rep_subkey(&plain).flatten().and_then(secret));
        }
        keys.extend(self.client_subkey.clone());
        keys.push(self.key.clone());
        keys
    }

    fn decrypt(&self, usage: u32, part: Encrypted<'_>) -> Option<Plaintext> {
        let is_ours = part.encryption_type == self.kind.0;
        is_ours.then(|| decrypt(self.kind, self.key.as_bytes(), usage, part.ciphertext))?
    }
}

/// Opens a ticket. The keys of all principals are tried, because the services of one account share
/// its key under many names.
pub fn open(services: &[ServiceKey], request: &ApReq<'_>) -> Unlocked<Ticket> {
    let sealed = request.ticket;
    let mut outcome = Unlocked::Missing;
    for service in services.iter().filter(|one| one.kind.0 == sealed.encryption_type) {
        let key = service.key.as_bytes();
        if let Some(plain) = decrypt(service.kind, key, TICKET, sealed.ciphertext) {
            return ticket(&plain, request).map_or(Unlocked::Missing, Unlocked::With);
        }
        outcome = Unlocked::Wrong;
    }
    outcome
}

fn ticket(plain: &[u8], request: &ApReq<'_>) -> Option<Ticket> {
    let part = ticket_part(plain)?;
    let kind = EncryptionType(part.key.encryption_type);
    kind.key_bytes()?;
    let mut ticket =
        Ticket { client: part.client, kind, key: secret(part.key)?, client_subkey: None };
    let authenticator = ticket.decrypt(AUTHENTICATOR, request.authenticator)?;
    ticket.client_subkey = authenticator_subkey(&authenticator)?.and_then(secret);
    Some(ticket)
}

fn secret(key: EncryptionKey<'_>) -> Option<Key> {
    Key::new(key.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::kerberos::tests::der;

    fn encryption_key(kind: u8, value: &[u8]) -> Vec<u8> {
        der(0x30, &[&der(0xa0, &[&[2, 1, kind]]), &der(0xa1, &[&der(4, &[value])])])
    }

    /// Encrypts as RFC 4757 does, with a confounder of zeros.
    fn seal_rc4(key: &[u8], usage: u32, plain: &[u8]) -> Vec<u8> {
        use super::super::{ntlm::hmac_md5, rc4::rc4};
        let usage_key = hmac_md5(key, &[&usage.to_le_bytes()]).unwrap();
        let mut text = [&[0; 8], plain].concat();
        let tag = hmac_md5(usage_key.as_slice(), &[&text]).unwrap();
        rc4(hmac_md5(usage_key.as_slice(), &[tag.as_slice()]).unwrap().as_slice(), &mut text);
        [tag.as_slice(), &text].concat()
    }

    #[test]
    fn an_rc4_logon_gives_the_subkeys_in_their_order() {
        let (service, session) = ([1; 16], [2; 16]);
        let sealed = |key: &[u8], usage, plain: &[u8]| {
            let (kind, text) = (der(0xa0, &[&[2, 1, 23]]), seal_rc4(key, usage, plain));
            der(0x30, &[&kind, &der(0xa2, &[&der(4, &[&text])])])
        };
        let name = der(0x30, &[&der(0xa1, &[&der(0x30, &[&der(0x1b, &[b"joe"])])])]);
        let ticket = der(
            0x63,
            &[&der(
                0x30,
                &[
                    &der(0xa1, &[&encryption_key(23, &session)]),
                    &der(0xa2, &[&der(0x1b, &[b"LAB"])]),
                    &der(0xa3, &[&name]),
                ],
            )],
        );
        let authenticator =
            der(0x62, &[&der(0x30, &[&der(0xa6, &[&encryption_key(23, &[3; 16])])])]);
        let answer = der(0x7b, &[&der(0x30, &[&der(0xa2, &[&encryption_key(23, &[4; 16])])])]);
        let ticket = der(0x61, &[&der(0x30, &[&der(0xa3, &[&sealed(&service, TICKET, &ticket)])])]);
        let body = der(
            0x30,
            &[
                &der(0xa3, &[&ticket]),
                &der(0xa4, &[&sealed(&session, AUTHENTICATOR, &authenticator)]),
            ],
        );
        let request = der(0x6e, &[&body]);
        let reply = der(0x6f, &[&der(0x30, &[&der(0xa2, &[&sealed(&session, AP_REP, &answer)])])]);

        let request = ApReq::parse(&request).unwrap();
        let services = |key: u8, kind| {
            let (key, kind) = (Key::new(&[key; 16]).unwrap(), EncryptionType(kind));
            [ServiceKey { kind, key }]
        };
        assert_eq!(open(&services(1, 17), &request), Unlocked::Missing);
        assert_eq!(open(&services(9, 23), &request), Unlocked::Wrong);
        let Unlocked::With(ticket) = open(&services(1, 23), &request) else { panic!("not opened") };
        assert_eq!(ticket.client.as_deref(), Some("joe@LAB"));
        let keys = |answer| -> Vec<u8> {
            ticket.session_keys(answer).iter().map(|key| key.as_bytes()[0]).collect()
        };
        assert_eq!(keys(crate::auth::ap::ap_rep(&reply)), [4, 3, 2]);
        assert_eq!(keys(None), [3, 2]);
    }
}
