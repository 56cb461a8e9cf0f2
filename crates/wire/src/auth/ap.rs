//! The encrypted parts of a Kerberos logon, and what is inside them once they are decrypted.
//!
//! RFC 4120 sections 5.2.9 (EncryptedData, EncryptionKey), 5.3 (EncTicketPart), 5.5.1 (AP-REQ,
//! Authenticator) and 5.5.2 (AP-REP, EncAPRepPart). It reads ASN.1 only: `secrets` decrypts. The
//! plaintext of the RC4 type may have padding after its element, which is not looked at.

use super::der::{self, Element, tag};
use super::kerberos::{Kind, principal, split, text, unframed};

/// Something encrypted (RFC 4120 section 5.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encrypted<'a> {
    /// The encryption type (RFC 3961 number).
    pub encryption_type: i32,
    /// The whole ciphertext.
    pub ciphertext: &'a [u8],
}

/// A key inside a decrypted part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EncryptionKey<'a> {
    /// The encryption type that it is for.
    pub encryption_type: i32,
    /// The secret.
    pub value: &'a [u8],
}

/// The client's message: a ticket, and the proof that the client has its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApReq<'a> {
    /// Encrypted with the service's key.
    pub ticket: Encrypted<'a>,
    /// Encrypted with the ticket's key.
    pub authenticator: Encrypted<'a>,
}

/// What a decrypted ticket says.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketPart<'a> {
    /// The key that client and service share.
    pub key: EncryptionKey<'a>,
    /// The client as people write it: `user@REALM`.
    pub client: Option<String>,
}

impl std::fmt::Debug for EncryptionKey<'_> {
    /// Says the type only, so that no log holds a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncryptionKey(type {})", self.encryption_type)
    }
}

impl<'a> ApReq<'a> {
    /// Reads a token; `None` when it is not an AP-REQ or was not captured whole.
    pub fn parse(token: &'a [u8]) -> Option<ApReq<'a>> {
        let body = body(token, Kind::AP_REQ)?;
        let ticket = body.field(3).filter(|ticket| ticket.tag == 0x61)?;
        Some(ApReq {
            ticket: encrypted(ticket.child(tag::SEQUENCE)?.field(3)?)?,
            authenticator: encrypted(body.field(4)?)?,
        })
    }
}

/// The encrypted part of an AP-REP; `None` when the token is something else or was cut.
pub fn ap_rep(token: &[u8]) -> Option<Encrypted<'_>> {
    encrypted(body(token, Kind::AP_REP)?.field(2)?)
}

/// Reads a decrypted EncTicketPart.
pub fn ticket_part(plaintext: &[u8]) -> Option<TicketPart<'_>> {
    let body = application(plaintext, 3)?;
    let name = body.field(3).and_then(principal);
    let realm = body.field(2).and_then(text);
    let client = name.zip(realm).map(|(name, realm)| format!("{name}@{realm}"));
    Some(TicketPart { key: key(body.field(1)?)?, client })
}

/// The subkey in a decrypted Authenticator, if the client made one; `None` when it is not one.
pub fn authenticator_subkey(plaintext: &[u8]) -> Option<Option<EncryptionKey<'_>>> {
    Some(application(plaintext, 2)?.field(6).and_then(key))
}

/// The subkey in a decrypted EncAPRepPart, if the service made one; `None` when it is not one.
pub fn ap_rep_subkey(plaintext: &[u8]) -> Option<Option<EncryptionKey<'_>>> {
    Some(application(plaintext, 27)?.field(2).and_then(key))
}

fn body(token: &[u8], kind: Kind) -> Option<Element<'_>> {
    let (_, element) = unframed(token)?;
    let (found, body) = split(element)?;
    body.filter(|_| found == kind)
}

fn application(plaintext: &[u8], number: u8) -> Option<Element<'_>> {
    let element = der::first(plaintext)?;
    (element.tag == 0x60 | number && element.whole).then(|| element.child(tag::SEQUENCE))?
}

fn encrypted(data: Element<'_>) -> Option<Encrypted<'_>> {
    let ciphertext = data.field(2)?;
    Some(Encrypted {
        encryption_type: data.field(0)?.integer()?,
        ciphertext: ciphertext.leaf().filter(|_| ciphertext.tag == tag::OCTET_STRING)?,
    })
}

fn key(element: Element<'_>) -> Option<EncryptionKey<'_>> {
    let value = element.field(1)?;
    Some(EncryptionKey {
        encryption_type: element.field(0)?.integer()?,
        value: value.leaf().filter(|_| value.tag == tag::OCTET_STRING)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::kerberos::tests::{ap_req, der};
    use super::*;

    #[test]
    fn reads_the_encrypted_parts_of_whole_messages_only() {
        let body = der(
            0x30,
            &[
                &der(0xa0, &[&[2, 1, 5]]),
                &der(0xa1, &[&[2, 1, 15]]),
                &der(
                    0xa2,
                    &[&der(0x30, &[&der(0xa0, &[&[2, 1, 17]]), &der(0xa2, &[&der(4, &[b"abc"])])])],
                ),
            ],
        );
        let reply = der(0x6f, &[&body]);
        let part = ap_rep(&reply).unwrap();
        assert_eq!((part.encryption_type, part.ciphertext), (17, &b"abc"[..]));
        assert_eq!(ap_rep(&reply[..reply.len() - 1]), None);
        assert_eq!(ApReq::parse(&reply), None);
        // The authenticator of this request has no ciphertext.
        assert_eq!(ApReq::parse(&ap_req()), None);
    }

    #[test]
    fn a_key_prints_its_type_only() {
        let bytes =
            der(0x30, &[&der(0xa0, &[&[2, 1, 18]]), &der(0xa1, &[&der(4, &[&[0xab; 32]])])]);
        let key = key(der::first(&bytes).unwrap()).unwrap();
        assert_eq!(key.value, [0xab; 32]);
        assert_eq!(format!("{key:?}"), "EncryptionKey(type 18)");
    }
}
