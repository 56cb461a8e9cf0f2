//! What events of Microsoft-Windows-SMBServer say about connections, sessions, trees and opens in addition to
//! the messages: addresses (500 to 502), users (552), and the GUIDs by which other events name them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foldhash::HashMap;

use super::layout::{Head, Layout};
use super::request::{self, Ids};
use super::{is_request, response};
use crate::etl::record::Record;
use crate::windows::fields::Fields;
use crate::windows::keep_latest;
use crate::windows::provider::Guid;

const CONNECTION_ACCEPTED: u16 = 500;
const CONNECTION_DISCONNECTED: u16 = 501;
const CONNECTION_TERMINATED: u16 = 502;
const SESSION_AUTHENTICATED: u16 = 552;
const RESPONSE_SESSION_SETUP: u16 = 102;
const RESPONSE_TREE_CONNECT: u16 = 104;
const RESPONSE_CREATE: u16 = 108;

/// Names that are kept of each kind.
const NAMES_MAX: usize = 1 << 19;

/// Collects names in the first reading, and has them in the second one.
#[derive(Debug, Default)]
pub struct Names {
    addresses: HashMap<Guid, SocketAddr>,
    /// Tokens of sessions by their GUID.
    tokens: HashMap<Guid, Vec<u8>>,
    sessions: HashMap<u64, Guid>,
    trees: HashMap<(u64, u64), Guid>,
    opens: HashMap<(u64, u64), Guid>,
    /// Names beyond the limit.
    pub limited: u64,
}

impl Names {
    /// Takes an event.
    pub fn event(&mut self, record: &Record<'_>, id: u16) {
        let payload = record.payload;
        match id {
            CONNECTION_ACCEPTED | CONNECTION_DISCONNECTED | CONNECTION_TERMINATED => {
                if let Some((guid, address)) = connection(payload, id) {
                    keep(&mut self.addresses, guid, address, &mut self.limited);
                }
            }
            SESSION_AUTHENTICATED => {
                if let Some((guid, token)) = authenticated(payload) {
                    keep(&mut self.tokens, guid, token, &mut self.limited);
                }
            }
            RESPONSE_CREATE => {
                let response = |layout| response::parse(payload, id, layout);
                let created = Layout::ALL.into_iter().find_map(response);
                if let Some(created) = created
                    && let Some(number) = created.file_id
                    && !created.ids.file.is_nil()
                {
                    let key = (created.head.session_id, number);
                    keep(&mut self.opens, key, created.ids.file, &mut self.limited);
                }
            }
            RESPONSE_TREE_CONNECT => {
                // The tree's GUID ends the event.
                if let Some(head) = Head::parse(&mut Fields::new(payload))
                    && let Some(guid) = payload.last_chunk().map(|guid| Guid(*guid))
                    && !guid.is_nil()
                {
                    let key = (head.session_id, head.tree_id.into());
                    keep(&mut self.trees, key, guid, &mut self.limited);
                }
            }
            RESPONSE_SESSION_SETUP => {
                // The session's GUID ends the event.
                if let Some(head) = Head::parse(&mut Fields::new(payload))
                    && let Some(guid) = payload.last_chunk().map(|guid| Guid(*guid))
                    && !guid.is_nil()
                {
                    keep(&mut self.sessions, head.session_id, guid, &mut self.limited);
                }
            }
            id if is_request(id) => self.request(payload, id),
            _ => {}
        }
    }

    /// GUIDs in a request of those that it works on.
    fn request(&mut self, payload: &[u8], id: u16) {
        let Some(request) = request::parse(payload, id, None) else { return };
        let Ids { session, tree, file, .. } = request.ids;
        let head = request.head;
        let limited = &mut self.limited;
        if !session.is_nil() && head.session_id != 0 {
            keep(&mut self.sessions, head.session_id, session, limited);
        }
        if !tree.is_nil() {
            keep(&mut self.trees, (head.session_id, head.tree_id.into()), tree, limited);
        }
        if !file.is_nil()
            && let Some(number) = request.file_id
        {
            keep(&mut self.opens, (head.session_id, number), file, limited);
        }
    }

    /// The client's end of a connection.
    pub fn address(&self, connection: Guid) -> Option<SocketAddr> {
        self.addresses.get(&connection).copied()
    }

    /// The token that names the user of a SessionSetup.
    pub fn token(&self, payload: &[u8], id: u16) -> Option<&[u8]> {
        // The session's GUID ends the event.
        (id == 2).then_some(())?;
        self.tokens.get(&Guid(*payload.last_chunk()?)).map(Vec::as_slice)
    }

    /// The GUID of a session.
    pub fn session(&self, session_id: u64) -> Option<Guid> {
        self.sessions.get(&session_id).copied()
    }

    /// The GUID of a tree.
    pub fn tree(&self, session_id: u64, tree_id: u64) -> Option<Guid> {
        self.trees.get(&(session_id, tree_id)).copied()
    }

    /// The GUID of an open.
    pub fn open(&self, session_id: Option<u64>, file_id: &[u8; 16]) -> Option<Guid> {
        let [.., a, b, c, d, e, f, g, h] = *file_id;
        let volatile = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        self.opens.get(&(session_id?, volatile)).copied()
    }
}

/// Keeps the latest name of a key, up to the limit.
fn keep<K: Eq + std::hash::Hash, V>(
    names: &mut HashMap<K, V>,
    key: K,
    value: V,
    limited: &mut u64,
) {
    *limited += u64::from(!keep_latest(names, NAMES_MAX, key, value));
}

fn connection(payload: &[u8], id: u16) -> Option<(Guid, SocketAddr)> {
    let mut fields = Fields::new(payload);
    let guid = fields.guid()?;
    match id {
        CONNECTION_DISCONNECTED => fields.bytes(4)?,
        CONNECTION_TERMINATED => fields.bytes(8)?,
        _ => &[],
    };
    let length = usize::try_from(fields.u32()?).ok()?;
    Some((guid, socket_address(fields.bytes(length)?)?))
}

/// SOCKADDR_IN or SOCKADDR_IN6 of Windows: the family in the machine's order, port and address in the
/// network's.
pub fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 23;
    let mut fields = Fields::new(bytes);
    let family = fields.u16()?;
    let port = fields.u16()?.swap_bytes();
    let ip: IpAddr = match family {
        AF_INET => Ipv4Addr::from(*fields.bytes(4)?.first_chunk::<4>()?).into(),
        AF_INET6 => {
            fields.u32()?;
            let ip = Ipv6Addr::from(*fields.bytes(16)?.first_chunk::<16>()?);
            ip.to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port)).filter(|_| !ip.is_unspecified())
}

/// A session's GUID, and a token of NTLM ([MS-NLMP] section 2.2.1.3) with its user, by which the decoder knows
/// the user of a SessionSetup.
fn authenticated(payload: &[u8]) -> Option<(Guid, Vec<u8>)> {
    let mut fields = Fields::new(payload);
    let guid = fields.guid()?;
    fields.guid()?;
    let length = usize::from(fields.u16()?);
    let user = fields.utf16(length, 2)?;
    let length = usize::from(fields.u16()?);
    let domain = fields.utf16(length, 0)?;
    const HEAD_BYTES: usize = 64;
    let mut token = Vec::with_capacity(HEAD_BYTES + domain.len() + user.len());
    token.extend_from_slice(b"NTLMSSP\0");
    token.extend_from_slice(&3_u32.to_le_bytes());
    let mut at = HEAD_BYTES;
    // Two responses, domain, user, workstation, session key.
    for text in [&[][..], &[], domain, user, &[], &[]] {
        token.extend_from_slice(&(text.len() as u16).to_le_bytes());
        token.extend_from_slice(&(text.len() as u16).to_le_bytes());
        token.extend_from_slice(&(at as u32).to_le_bytes());
        at += text.len();
    }
    // NTLMSSP_NEGOTIATE_UNICODE.
    token.extend_from_slice(&1_u32.to_le_bytes());
    token.extend_from_slice(domain);
    token.extend_from_slice(user);
    Some((guid, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_addresses_are_those_of_windows() {
        let v4 = [2, 0, 0xc0, 0x01, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(socket_address(&v4), Some("10.1.2.3:49153".parse().unwrap()));
        let mut v6 = vec![23, 0, 0xc0, 0x01, 0, 0, 0, 0];
        v6.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend([0; 4]);
        assert_eq!(socket_address(&v6), Some("[fd00::1]:49153".parse().unwrap()));
        assert_eq!(socket_address(&v6[..20]), None);
        assert_eq!(socket_address(&[2, 0, 1, 1, 0, 0, 0, 0]), None);
        assert_eq!(socket_address(&[]), None);
    }
}
