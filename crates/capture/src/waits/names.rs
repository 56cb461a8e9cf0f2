//! Messages of DNS and its relatives: the name asked for and the result, nothing more.
//!
//! RFC 1035 section 4.1 (DNS; LLMNR and mDNS have its layout: RFC 4795, RFC 6762), RFC 1002 section
//! 4.2 (NetBIOS names).

use smbscope_wire::read::slice_at;

/// Labels of a name.
const LABELS_MAX: usize = 32;
/// Bytes of a header.
const HEADER: usize = 12;

/// A query or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub is_response: bool,
    /// Operation code in the header's flags.
    pub opcode: u8,
    code: u8,
    pub answers: u16,
    /// The first name: that of the question, or of the first answer if there is no question.
    pub name: String,
    /// Its type: 1 is an IPv4 address, 28 an IPv6 address, 32 a NetBIOS name.
    pub record: u16,
}

impl Message {
    /// Reads a message up to its first name; `None` if it is cut before, or none.
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        let number =
            |at| slice_at(bytes, at, 2).map(|two| u16::from(two[0]) << 8 | u16::from(two[1]));
        let (flags, questions, answers) = (number(2)?, number(4)?, number(6)?);
        if questions == 0 && answers == 0 {
            return None;
        }
        let mut at = HEADER;
        let mut name = Vec::new();
        for _ in 0..LABELS_MAX {
            let length = usize::from(*bytes.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            // The first name has nothing before it to point to.
            if length > 63 {
                return None;
            }
            if !name.is_empty() {
                name.push(b'.');
            }
            name.extend_from_slice(slice_at(bytes, at, length)?);
            at += length;
        }
        let record = number(at)?;
        Some(Message {
            is_response: flags & 0x8000 != 0,
            opcode: (flags >> 11 & 15) as u8,
            code: (flags & 15) as u8,
            answers,
            name: text(&name),
            record,
        })
    }

    /// Why there is no address, by the response code (RFC 1035 section 4.1.1, RFC 1002 section
    /// 4.2.14); `None` for success.
    pub fn result(&self) -> Option<String> {
        Some(match self.code {
            0 => return None,
            1 => "FORMERR".to_owned(),
            2 => "SERVFAIL".to_owned(),
            3 => "NXDOMAIN".to_owned(),
            4 => "NOTIMP".to_owned(),
            5 => "REFUSED".to_owned(),
            code => format!("response code {code}"),
        })
    }
}

/// A name as text: NetBIOS names decoded (RFC 1001 section 14.1), lower-case for DNS, which does not
/// distinguish; bytes other than printable ASCII as `?`.
fn text(name: &[u8]) -> String {
    let printable = |byte: u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '?',
    };
    let first = name.split(|&byte| byte == b'.').next().unwrap_or_default();
    if first.len() == 32 && first.iter().all(|byte| (b'A'..=b'P').contains(byte)) {
        let bytes: Vec<u8> =
            first.chunks_exact(2).map(|two| (two[0] - b'A') << 4 | (two[1] - b'A')).collect();
        let (name, suffix) = bytes.split_at(15);
        let name: String = name.iter().map(|&byte| printable(byte)).collect();
        return format!("{}<{:02x}>", name.trim_end(), suffix[0]);
    }
    name.iter().map(|&byte| printable(byte).to_ascii_lowercase()).collect()
}
