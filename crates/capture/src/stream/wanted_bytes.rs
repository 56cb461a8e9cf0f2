//! How many bytes from the beginning of a message are needed to extract all columns.
//!
//! MS-SMB2 section 2.2 and MS-CIFS section 2.2: bulk data follows fixed fields, so that a 64 KiB
//! read needs only 80 bytes. A compound is kept up to its last header.

use smbscope_wire::read::u8_at;
use smbscope_wire::smb1;
use smbscope_wire::smb2::{self, header};

/// Bytes wanted of a message of `length` bytes whose beginning is `message`; called again when that
/// many have arrived. More than `length` means all of it. `member` is where the last member of a compound begins that an
/// earlier call found: those before it are not looked at again, or a compound would cost the square of its members.
pub fn of_message(message: &[u8], length: usize, decrypts: bool, member: &mut usize) -> usize {
    match u8_at(message, 0) {
        Some(0xfe) => smb2_need(message, length, member),
        Some(0xff) => smb1_need(message, length),
        Some(0xfd) if !decrypts => 52,
        Some(0xfc | 0xfd) => usize::MAX,
        _ => 4,
    }
}

fn smb2_need(message: &[u8], length: usize, last: &mut usize) -> usize {
    if message.len() < smb2::HEADER_BYTES {
        return smb2::HEADER_BYTES;
    }
    let first = *last;
    let mut need = first.saturating_add(smb2::HEADER_BYTES);
    for member in header::members(message.get(first..).unwrap_or_default()) {
        let offset = first + member.offset;
        *last = offset;
        let own = smb2::need(member.header.command, !member.header.is_response());
        let own = if own <= member.bytes.len() { smb2::need_more(member.bytes) } else { own };
        need = offset.saturating_add(own);
        // A NextCommand that points into its own header is invalid, as for `members`.
        let length = member.header.next_command as usize;
        if length >= smb2::HEADER_BYTES {
            let next = offset.saturating_add(length);
            need = next.saturating_add(smb2::HEADER_BYTES);
        }
    }
    need.min(length)
}

fn smb1_need(message: &[u8], length: usize) -> usize {
    let is_reply = u8_at(message, 9).is_some_and(|flags| flags & 0x80 != 0);
    smb1::need(message, !is_reply, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echo requests in one message.
    fn compound(members: usize) -> Vec<u8> {
        let mut message = Vec::new();
        for place in 0..members {
            let mut member = [0; 72];
            member[..4].copy_from_slice(b"\xfeSMB");
            member[12] = 13;
            if place + 1 < members {
                member[20] = 72;
            }
            message.extend(member);
        }
        message
    }

    #[test]
    fn a_compound_is_not_walked_again_from_its_beginning() {
        let message = compound(50);
        let (mut member, mut arrived, mut steps) = (0, 4, 0);
        loop {
            let part = &message[..arrived];
            let want = of_message(part, message.len(), false, &mut member);
            assert_eq!(want, of_message(part, message.len(), false, &mut 0), "{arrived} bytes");
            // The next call begins at the last member whose header is there.
            assert_eq!(member, arrived.saturating_sub(smb2::HEADER_BYTES) / 72 * 72);
            if want <= arrived {
                break;
            }
            (arrived, steps) = (want, steps + 1);
        }
        assert!((50..=101).contains(&steps), "{steps}");
        assert_eq!(member, 49 * 72);
    }
}
