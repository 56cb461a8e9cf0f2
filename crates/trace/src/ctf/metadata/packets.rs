//! Text in packets (CTF 1.8.3, section 7.1; CTF 2, section 7.1).

use crate::bytes::Order;

const PACKET: u32 = 0x75d1_1d57;
const HEADER_BYTES: usize = 37;

/// The byte order of packets; none of plain text.
pub fn order_of(head: &[u8]) -> Option<Order> {
    [Order::Little, Order::Big].into_iter().find(|order| order.u32(head, 0) == Some(PACKET))
}

/// The text, and whether a packet could not be read.
pub fn text(bytes: &[u8]) -> (String, bool) {
    if order_of(bytes).is_none() {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    }
    let (mut text, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let Some(packet) = packet(rest) else {
            return (String::from_utf8_lossy(&text).into_owned(), true);
        };
        text.extend_from_slice(packet.0);
        rest = packet.1;
    }
    (String::from_utf8_lossy(&text).into_owned(), false)
}

/// Text of the first packet, and what follows it. It is not compressed or encrypted.
fn packet(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let order = order_of(bytes)?;
    // Magic number, UUID, checksum; lengths in bits; compression, encryption, kind of checksum, version.
    let content_bytes = order.u32(bytes, 24)? as usize / 8;
    let packet_bytes = order.u32(bytes, 28)? as usize / 8;
    if bytes.get(32..34)? != [0, 0] || packet_bytes < HEADER_BYTES {
        return None;
    }
    let text = bytes.get(HEADER_BYTES..content_bytes)?;
    Some((text, bytes.get(packet_bytes..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_taken_out_of_packets() {
        let packet = |part: &str, padding: usize| {
            let content = 8 * (HEADER_BYTES + part.len()) as u32;
            let whole = content + 8 * padding as u32;
            let mut bytes = [&PACKET.to_be_bytes()[..], &[7; 20]].concat();
            bytes.extend_from_slice(&content.to_be_bytes());
            bytes.extend_from_slice(&whole.to_be_bytes());
            bytes.extend_from_slice(&[0, 0, 0, 1, 8]);
            bytes.extend_from_slice(part.as_bytes());
            bytes.resize(bytes.len() + padding, 0);
            bytes
        };
        let bytes = [packet("trace {", 9), packet("};", 0)].concat();
        assert_eq!(text(&bytes), ("trace {};".to_owned(), false));
        assert_eq!(text(&bytes[..60]), ("trace {".to_owned(), true));
        assert_eq!(text(b"/* CTF 1.8 */"), ("/* CTF 1.8 */".to_owned(), false));
        let mut packed = bytes;
        packed[32] = 1;
        assert_eq!(text(&packed), (String::new(), true));
    }
}
