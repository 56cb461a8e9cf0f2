//! The ClientHello in the CRYPTO frames of a client's first packets.
//!
//! Owns the frames that an Initial packet may hold (RFC 9000 section 19), the order of their pieces,
//! and the extension in which the client names its protocol (RFC 8446 section 4.1.2, RFC 7301).

use smbscope_wire::crypto::quic::variable;

/// More bytes than any ClientHello has.
const HELLO_BYTES_MAX: usize = 16 << 10;
/// Pieces of it that wait for each other; some clients cut it into many.
const PIECES_MAX: usize = 256;
const ALPN: u16 = 16;
/// The protocol of SMB over QUIC.
const SMB: &[u8] = b"smb";

/// Which protocol a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alpn {
    /// Not known, or not known yet.
    Unknown,
    Smb,
    Other,
}

/// The pieces so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientHello {
    pieces: Vec<(usize, Vec<u8>)>,
}

impl ClientHello {
    /// Takes the frames of a packet.
    pub(super) fn frames(&mut self, frames: &[u8]) {
        let mut at = 0;
        // Each frame has at least one byte.
        while let Some(kind) = frames.get(at) {
            let next = match kind {
                // Padding and a ping.
                0 | 1 => Some(at + 1),
                2 | 3 => acknowledgement(frames, at + 1, *kind == 3),
                6 => self.crypto(frames, at + 1),
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    fn crypto(&mut self, frames: &[u8], at: usize) -> Option<usize> {
        let (offset, at) = variable(frames, at)?;
        let (length, at) = variable(frames, at)?;
        let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
        let end = at.checked_add(length)?;
        let bytes = frames.get(at..end)?;
        if offset < HELLO_BYTES_MAX && self.pieces.len() < PIECES_MAX {
            self.pieces.push((offset, bytes.to_vec()));
        }
        Some(end)
    }

    /// What the ClientHello offers, once all of it is there.
    pub(super) fn alpn(&mut self) -> Alpn {
        self.pieces.sort_by_key(|(offset, _)| *offset);
        let mut whole: Vec<u8> = Vec::new();
        for (offset, bytes) in &self.pieces {
            match whole.len().checked_sub(*offset) {
                Some(known) => whole.extend(bytes.get(known..).unwrap_or_default()),
                None => break,
            }
        }
        let Some(&[kind, l2, l1, l0]) = whole.first_chunk() else { return Alpn::Unknown };
        let length = usize::try_from(u32::from_be_bytes([0, l2, l1, l0])).unwrap_or(usize::MAX);
        if kind != 1 {
            return Alpn::Other;
        }
        match whole.get(4..).and_then(|body| body.get(..length)) {
            Some(body) => match protocols(body) {
                Some(true) => Alpn::Smb,
                _ => Alpn::Other,
            },
            None => Alpn::Unknown,
        }
    }
}

/// Whether SMB is among the protocols; `None` without a list of them.
fn protocols(body: &[u8]) -> Option<bool> {
    // Version, random number; then session id, cipher suites and compression with their lengths.
    let rest = body.get(34..)?;
    let rest = skip::<1>(rest)?;
    let rest = skip::<2>(rest)?;
    let rest = skip::<1>(rest)?;
    let mut extensions = rest.get(2..)?;
    while let Some((&[k1, k0, l1, l0], after)) = extensions.split_first_chunk::<4>() {
        let value = after.get(..usize::from(u16::from_be_bytes([l1, l0])))?;
        if u16::from_be_bytes([k1, k0]) == ALPN {
            let mut list = value.get(2..)?;
            while let Some((length, after)) = list.split_first() {
                let name = after.get(..usize::from(*length))?;
                if name == SMB {
                    return Some(true);
                }
                list = after.get(name.len()..)?;
            }
            return Some(false);
        }
        extensions = after.get(value.len()..)?;
    }
    None
}

/// What follows a field with a length of `N` bytes.
fn skip<const N: usize>(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<N>()?;
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    rest.get(length..)
}

/// Where the frame behind an acknowledgement begins.
fn acknowledgement(frames: &[u8], at: usize, has_counts: bool) -> Option<usize> {
    const RANGES_MAX: u64 = 256;
    let (_, at) = variable(frames, at)?;
    let (_, at) = variable(frames, at)?;
    let (ranges, at) = variable(frames, at)?;
    if ranges > RANGES_MAX {
        return None;
    }
    let numbers = 1 + 2 * ranges + if has_counts { 3 } else { 0 };
    (0..numbers).try_fold(at, |at, _| variable(frames, at).map(|(_, at)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with another extension in front of the list of protocols.
    fn hello(protocols: &[&[u8]]) -> Vec<u8> {
        let mut list = Vec::new();
        for name in protocols {
            list.push(name.len() as u8);
            list.extend(*name);
        }
        let mut extensions = vec![0, 43, 0, 3, 2, 3, 4, 0, 16];
        extensions.extend((list.len() as u16 + 2).to_be_bytes());
        extensions.extend((list.len() as u16).to_be_bytes());
        extensions.extend(list);
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut whole = vec![1, 0, 0, body.len() as u8];
        whole.extend(body);
        whole
    }

    fn crypto(offset: usize, bytes: &[u8]) -> Vec<u8> {
        let mut frame = vec![6, 0x40 | (offset >> 8) as u8, offset as u8, bytes.len() as u8];
        frame.splice(3..3, [0x40]);
        frame.extend(bytes);
        frame
    }

    #[test]
    fn the_protocol_is_found_in_pieces_of_any_order() {
        for (protocols, expected) in [
            (&[&b"smb"[..]][..], Alpn::Smb),
            (&[b"h3", b"smb"], Alpn::Smb),
            (&[b"h3"], Alpn::Other),
            (&[], Alpn::Other),
        ] {
            let whole = hello(protocols);
            for cut in 1..whole.len() {
                let mut client = ClientHello::default();
                let second = [crypto(cut, &whole[cut..]), vec![0; 9]].concat();
                client.frames(&second);
                assert_eq!(client.alpn(), Alpn::Unknown);
                // A ping, an acknowledgement, the rest with a byte twice.
                let mut first = vec![1, 2, 0, 0, 0, 0];
                first.extend(crypto(0, &whole[..whole.len().min(cut + 1)]));
                client.frames(&first);
                assert_eq!(client.alpn(), expected, "{cut}");
            }
        }
    }

    #[test]
    fn damaged_hellos_do_not_hurt() {
        let whole = crypto(0, &hello(&[b"h3", b"smb"]));
        for at in 0..whole.len() {
            for value in [0, 1, 0x3f, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                let mut client = ClientHello::default();
                client.frames(&changed);
                client.alpn();
                client.frames(&changed[..at]);
                client.alpn();
            }
        }
    }
}
