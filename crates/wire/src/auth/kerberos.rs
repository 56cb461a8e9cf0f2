//! Kerberos messages inside an authentication token: the names that are sent in plaintext.
//!
//! RFC 4120 section 5.2-5.9 (messages), RFC 4121 section 4.1 and RFC 1964 section 1.1 (the token's
//! frame), draft-ietf-kitten-iakerb section 3.
//!
//! An AP-REQ, which is what SMB carries, shows the *service* (`cifs/server`) and its realm, because
//! the ticket has them in plaintext. The *client's* name is only in the encrypted parts of ticket
//! and authenticator; without the service's key it is unknown there. The KDC names the client in
//! plaintext next to the ticket that it issues (AS-REP, TGS-REP), and a ticket is recognised later
//! by its encrypted part. The reply may hide the client behind an anonymous name (RFC 6113 section
//! 5.4.2, requested by Heimdal); then the request shows the ticket that was used to make it, and
//! the reply that issued that ticket names the client. A client may also talk to its KDC through
//! the server (IAKERB), and some KRB-ERRORs name the client. An AP-REP shows nothing.

use super::der::{self, Element, Elements, tag};
use super::spnego::{Mechanism, mechanism};
use crate::read::array_at;

/// Which message: the number of its application tag (RFC 4120 section 5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u8);

#[allow(missing_docs)]
impl Kind {
    pub const AS_REQ: Kind = Kind(10);
    pub const AS_REP: Kind = Kind(11);
    pub const TGS_REQ: Kind = Kind(12);
    pub const TGS_REP: Kind = Kind(13);
    pub const AP_REQ: Kind = Kind(14);
    pub const AP_REP: Kind = Kind(15);
    pub const TGT_REQ: Kind = Kind(16);
    pub const TGT_REP: Kind = Kind(17);
    pub const ERROR: Kind = Kind(30);
}

/// The visible part of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kerberos {
    /// Which message.
    pub kind: Kind,
    /// The service asked for, its components joined by `/`: `cifs/server.example`.
    pub service: Option<String>,
    /// The service's realm.
    pub realm: Option<String>,
    /// The client's name where it is visible (see above), joined by `/`.
    pub client: Option<String>,
    /// The client's realm.
    pub client_realm: Option<String>,
    /// The encryption type of the ticket (RFC 3961 number; 18 is AES-256, 23 is RC4).
    pub ticket_encryption: Option<i32>,
    /// The ticket that it carries, issues, or uses for the request.
    pub ticket: Option<TicketId>,
    /// The error code of a KRB-ERROR.
    pub error_code: Option<i32>,
}

/// Identifies a ticket: the start of its encrypted part, which begins with (or, for RC4, is keyed
/// by) a random confounder (RFC 3961 section 5.3, RFC 4757 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TicketId(pub [u8; 32]);

/// Elements of a request's padata that are looked at; there are a few.
const PADATA_MAX: usize = 64;

/// Reads a token: with the frame of RFC 2743 (which names the mechanism) or the bare message.
pub(super) fn parse(token: &[u8]) -> Option<(Option<Mechanism<'_>>, Kerberos)> {
    let (mechanism, element) = unframed(token)?;
    Some((mechanism, message(element)?))
}

/// The message in a token, and the mechanism that the token's frame names.
pub(super) fn unframed(token: &[u8]) -> Option<(Option<Mechanism<'_>>, Element<'_>)> {
    let outer = der::first(token)?;
    if outer.tag != tag::GSS_INITIAL {
        return Some((None, outer));
    }
    let mut inside = outer.children();
    let mechanism = mechanism(inside.next()?)?;
    if !mechanism.is_kerberos() {
        return None;
    }
    let token_id = array_at::<2>(inside.rest(), 0)?;
    let mut after = Elements(inside.rest().get(2..)?);
    if *token_id == [5, 1] {
        // IAKERB's header: the realm that the client wants to reach; the message follows it.
        after.next()?;
    }
    Some((Some(mechanism), after.next()?))
}

/// The visible part of the message in `element`; `None` when it is not a Kerberos message.
fn message(element: Element<'_>) -> Option<Kerberos> {
    let (kind, body) = split(element)?;
    let mut seen = Kerberos {
        kind,
        service: None,
        realm: None,
        client: None,
        client_realm: None,
        ticket_encryption: None,
        ticket: None,
        error_code: None,
    };
    let Some(body) = body else {
        return Some(seen);
    };
    match kind {
        Kind::AP_REQ => seen.ticket(body.field(3)),
        Kind::AS_REQ | Kind::TGS_REQ => {
            seen.ticket = body.field(3).and_then(ticket_of_request);
            if let Some(request) = body.field(4) {
                seen.client = request.field(1).and_then(principal);
                seen.realm = request.field(2).and_then(text);
                seen.service = request.field(3).and_then(principal);
                // An AS-REQ's realm is that of its client too (RFC 4120 section 5.4.1).
                seen.client_realm = seen.client.as_ref().and(seen.realm.clone());
            }
        }
        Kind::AS_REP | Kind::TGS_REP => {
            seen.client_realm = body.field(3).and_then(text);
            seen.client = body.field(4).and_then(principal);
            seen.ticket(body.field(5));
        }
        Kind::TGT_REP => seen.ticket(body.field(2)),
        Kind::TGT_REQ => {
            seen.service = body.field(2).and_then(principal);
            seen.realm = body.field(3).and_then(text);
        }
        Kind::ERROR => {
            seen.error_code = body.field(6).and_then(|code| code.integer());
            seen.client_realm = body.field(7).and_then(text);
            seen.client = body.field(8).and_then(principal);
            seen.realm = body.field(9).and_then(text);
            seen.service = body.field(10).and_then(principal);
        }
        _ => {}
    }
    Some(seen)
}

impl Kerberos {
    /// Reads a bare message, as it travels to and from a KDC (over TCP behind four bytes of length,
    /// RFC 4120 section 7.2.2). For a message that was cut, the part that is there.
    pub fn parse(bytes: &[u8]) -> Option<Kerberos> {
        message(der::first(bytes)?)
    }

    /// Whether the client is named by the name that hides it (RFC 8062 section 3).
    pub fn is_anonymous(&self) -> bool {
        self.client.as_deref() == Some("WELLKNOWN/ANONYMOUS")
    }

    /// The client as people write it: `user@REALM`.
    pub fn account(&self) -> Option<String> {
        Some(at_realm(self.client.as_deref()?, self.client_realm.as_deref()))
    }

    /// The service as people write it: `cifs/server@REALM`.
    pub fn service_at_realm(&self) -> Option<String> {
        Some(at_realm(self.service.as_deref()?, self.realm.as_deref()))
    }

    /// Takes over what a Ticket shows (RFC 4120 section 5.3).
    fn ticket(&mut self, ticket: Option<Element<'_>>) {
        let Some(ticket) = ticket.filter(|ticket| ticket.tag == 0x61) else {
            return;
        };
        let Some(body) = ticket.child(tag::SEQUENCE) else {
            return;
        };
        self.realm = body.field(1).and_then(text);
        self.service = body.field(2).and_then(principal);
        let encrypted = body.field(3);
        self.ticket_encryption = encrypted.and_then(|part| part.field(0)?.integer());
        self.ticket = encrypted.and_then(ticket_id);
    }
}

/// From a ticket's EncryptedData (RFC 4120 section 5.2.9).
fn ticket_id(encrypted: Element<'_>) -> Option<TicketId> {
    encrypted.field(2)?.content.first_chunk().map(|start| TicketId(*start))
}

/// The ticket of the AP-REQ in a TGS-REQ's PA-TGS-REQ (RFC 4120 section 7.5.2).
fn ticket_of_request(padata: Element<'_>) -> Option<TicketId> {
    let is_ap_req = |item: &Element<'_>| item.field(1).and_then(|kind| kind.integer()) == Some(1);
    let item = padata.children().take(PADATA_MAX).find(is_ap_req)?;
    let (kind, ap_req) = split(der::first(item.field(2)?.content)?)?;
    let ticket = ap_req.filter(|_| kind == Kind::AP_REQ)?.field(3)?;
    ticket_id(ticket.child(tag::SEQUENCE)?.field(3)?)
}

fn at_realm(name: &str, realm: Option<&str>) -> String {
    match realm {
        Some(realm) => format!("{name}@{realm}"),
        None => name.to_owned(),
    }
}

/// Kind and body. The messages of user-to-user authentication (MS-KILE section 2.2.6) have no
/// application tag and are recognised by their type field.
pub(super) fn split(element: Element<'_>) -> Option<(Kind, Option<Element<'_>>)> {
    if element.tag == tag::SEQUENCE {
        return match element.field(1)?.integer()? {
            16 => Some((Kind::TGT_REQ, Some(element))),
            17 => Some((Kind::TGT_REP, Some(element))),
            _ => None,
        };
    }
    let number = element.tag & 0x1f;
    let is_message = element.tag & 0xe0 == 0x60 && matches!(number, 10..=15 | 30);
    is_message.then(|| (Kind(number), element.child(tag::SEQUENCE)))
}

/// A PrincipalName: name type and a sequence of strings; all of it or nothing.
pub(super) fn principal(name: Element<'_>) -> Option<String> {
    let components = name.field(1).filter(|list| list.whole)?;
    let mut joined = String::new();
    for (index, component) in components.children().enumerate() {
        if index != 0 {
            joined.push('/');
        }
        joined.push_str(&text(component)?);
    }
    (!joined.is_empty()).then_some(joined)
}

/// A KerberosString: ASCII by the RFC, UTF-8 by Windows.
pub(super) fn text(element: Element<'_>) -> Option<String> {
    let bytes = element.leaf()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An element with a short or two-byte length.
    pub fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut out = vec![tag];
        if content.len() < 0x80 {
            out.push(content.len() as u8);
        } else {
            out.push(0x82);
            out.extend((content.len() as u16).to_be_bytes());
        }
        out.extend(content);
        out
    }

    fn name(components: &[&str]) -> Vec<u8> {
        let strings: Vec<_> =
            components.iter().map(|component| der(0x1b, &[component.as_bytes()])).collect();
        let strings: Vec<_> = strings.iter().map(Vec::as_slice).collect();
        der(0x30, &[&der(0xa0, &[&[2, 1, 1]]), &der(0xa1, &[&der(0x30, &strings)])])
    }

    fn ticket() -> Vec<u8> {
        let encrypted =
            der(0x30, &[&der(0xa0, &[&[2, 1, 18]]), &der(0xa2, &[&der(4, &[&[0xee; 200]])])]);
        let body = der(
            0x30,
            &[
                &der(0xa0, &[&[2, 1, 5]]),
                &der(0xa1, &[&der(0x1b, &[b"EXAMPLE.ORG"])]),
                &der(0xa2, &[&name(&["cifs", "srv.example.org"])]),
                &der(0xa3, &[&encrypted]),
            ],
        );
        der(0x61, &[&body])
    }

    /// The token of an AP-REQ in its GSS frame.
    pub fn ap_req() -> Vec<u8> {
        let body = der(
            0x30,
            &[
                &der(0xa0, &[&[2, 1, 5]]),
                &der(0xa1, &[&[2, 1, 14]]),
                &der(0xa2, &[&[3, 5, 0, 0x20, 0, 0, 0]]),
                &der(0xa3, &[&ticket()]),
                &der(0xa4, &[&der(0x30, &[&der(0xa0, &[&[2, 1, 18]])])]),
            ],
        );
        let oid = der(6, &[Mechanism::KERBEROS.0]);
        der(0x60, &[&oid, &[1, 0], &der(0x6e, &[&body])])
    }

    #[test]
    fn an_ap_req_shows_the_service_only() {
        let token = ap_req();
        let (mechanism, seen) = parse(&token).unwrap();
        assert_eq!(mechanism, Some(Mechanism::KERBEROS));
        assert_eq!(seen.kind, Kind::AP_REQ);
        assert_eq!(seen.service.as_deref(), Some("cifs/srv.example.org"));
        assert_eq!(seen.realm.as_deref(), Some("EXAMPLE.ORG"));
        assert_eq!(seen.ticket_encryption, Some(18));
        assert_eq!((seen.client, seen.client_realm), (None, None));
    }

    #[test]
    fn a_cut_ap_req_keeps_its_whole_names() {
        let token = ap_req();
        let (_, seen) = parse(&token[..token.len() - 60]).unwrap();
        assert_eq!(seen.service.as_deref(), Some("cifs/srv.example.org"));
        let cut = token.windows(4).position(|at| at == b"srv.").unwrap();
        let (_, seen) = parse(&token[..cut + 6]).unwrap();
        assert_eq!(seen.service, None);
        assert_eq!(seen.realm.as_deref(), Some("EXAMPLE.ORG"));
    }

    #[test]
    fn an_as_req_through_the_server_shows_the_client() {
        let request = der(
            0x30,
            &[
                &der(0xa0, &[&[3, 5, 0, 0x40, 0, 0, 0]]),
                &der(0xa1, &[&name(&["alice"])]),
                &der(0xa2, &[&der(0x1b, &[b"EXAMPLE.ORG"])]),
                &der(0xa3, &[&name(&["krbtgt", "EXAMPLE.ORG"])]),
            ],
        );
        let body = der(0x30, &[&der(0xa1, &[&[2, 1, 5]]), &der(0xa4, &[&request])]);
        let header = der(0x30, &[&der(0xa1, &[&der(0x0c, &[b"EXAMPLE.ORG"])])]);
        let oid = der(6, &[Mechanism::IAKERB.0]);
        let token = der(0x60, &[&oid, &[5, 1], &header, &der(0x6a, &[&body])]);
        let (mechanism, seen) = parse(&token).unwrap();
        assert_eq!(mechanism, Some(Mechanism::IAKERB));
        assert_eq!(seen.kind, Kind::AS_REQ);
        assert_eq!(seen.client.as_deref(), Some("alice"));
        assert_eq!(seen.client_realm.as_deref(), Some("EXAMPLE.ORG"));
        assert_eq!(seen.service.as_deref(), Some("krbtgt/EXAMPLE.ORG"));
    }

    #[test]
    fn an_error_and_a_user_to_user_request() {
        let body = der(
            0x30,
            &[
                &der(0xa6, &[&[2, 1, 41]]),
                &der(0xa9, &[&der(0x1b, &[b"R"])]),
                &der(0xaa, &[&name(&["cifs", "s"])]),
            ],
        );
        let error = der(0x7e, &[&body]);
        let (mechanism, seen) = parse(&error).unwrap();
        assert_eq!((mechanism, seen.error_code), (None, Some(41)));
        assert_eq!(seen.service.as_deref(), Some("cifs/s"));

        let request = der(
            0x30,
            &[
                &der(0xa0, &[&[2, 1, 5]]),
                &der(0xa1, &[&[2, 1, 16]]),
                &der(0xa2, &[&name(&["host", "pc"])]),
            ],
        );
        let oid = der(6, &[Mechanism::KERBEROS_USER_TO_USER.0]);
        let token = der(0x60, &[&oid, &[4, 0], &request]);
        let (_, seen) = parse(&token).unwrap();
        assert_eq!(seen.kind, Kind::TGT_REQ);
        assert_eq!(seen.service.as_deref(), Some("host/pc"));
    }
}
