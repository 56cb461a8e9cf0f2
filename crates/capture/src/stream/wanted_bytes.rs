//! How many bytes from the beginning of a message are needed to extract all columns.
//!
//! MS-SMB2 section 2.2 and MS-CIFS section 2.2: bulk data follows fixed fields, so that a 64 KiB
//! read needs only 80 bytes. A compound is kept up to its last header.

use smbscope_wire::read::u8_at;
use smbscope_wire::smb1;
use smbscope_wire::smb2::{self, header};

/// Bytes wanted of a message of `length` bytes whose beginning is `message`; called again when that
/// many have arrived. More than `length` means all of it.
pub fn of_message(message: &[u8], length: usize, decrypts: bool) -> usize {
    match u8_at(message, 0) {
        Some(0xfe) => smb2_need(message, length),
        Some(0xff) => smb1_need(message, length),
        Some(0xfd) if !decrypts => 52,
        Some(0xfc | 0xfd) => usize::MAX,
        _ => 4,
    }
}

fn smb2_need(message: &[u8], length: usize) -> usize {
    if message.len() < smb2::HEADER_BYTES {
        return smb2::HEADER_BYTES;
    }
    let mut need = smb2::HEADER_BYTES;
    for member in header::members(message) {
        let own = smb2::need(member.header.command, !member.header.is_response());
        let own = if own <= member.bytes.len() { smb2::need_more(member.bytes) } else { own };
        need = member.offset.saturating_add(own);
        // A NextCommand that points into its own header is invalid, as for `members`.
        let length = member.header.next_command as usize;
        if length >= smb2::HEADER_BYTES {
            let next = member.offset.saturating_add(length);
            need = next.saturating_add(smb2::HEADER_BYTES);
        }
    }
    need.min(length)
}

fn smb1_need(message: &[u8], length: usize) -> usize {
    let is_reply = u8_at(message, 9).is_some_and(|flags| flags & 0x80 != 0);
    smb1::need(message, !is_reply, length)
}
