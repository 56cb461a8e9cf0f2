//! The error response, which replaces the response of any command (MS-SMB2 section 2.2.2), and when
//! a response is an error response (section 3.3.4.4).
//!
//! Some servers send the fixed part with 8 bytes instead of 9; nothing here needs the ninth.

use super::view::{buffer_part, codes, view};
use super::{Command, Header};
use crate::read::{slice_at, u16_at, u32_at};
use crate::status::Status;

/// Structure size of an error response.
const ERROR_STRUCTURE_SIZE: u16 = 9;

/// Whether the body of a response is an error response, which the view of its command must not
/// read. Interim responses are error responses too.
pub fn is_error_response(header: &Header, message: &[u8]) -> bool {
    let Some(status) = header.status() else {
        return false;
    };
    if status == Status::SUCCESS {
        return false;
    }
    // The structure size decides, unless the command's own response has the same size.
    match header.command {
        Command::SESSION_SETUP => status != Status::MORE_PROCESSING_REQUIRED,
        Command::CHANGE_NOTIFY => status != Status::NOTIFY_ENUM_DIR,
        Command::QUERY_INFO | Command::QUERY_DIRECTORY => {
            // An answer that did not fit has an offset where an error has no contexts.
            status != Status::BUFFER_OVERFLOW || u16_at(message, 66) == Some(0)
        }
        _ => match u16_at(message, 64) {
            Some(size) => size == ERROR_STRUCTURE_SIZE,
            None => status.is_error() || status == Status::PENDING,
        },
    }
}

codes! {
    /// What an error context is about.
    ErrorId(u32) {
        DEFAULT = 0 => "SMB2_ERROR_ID_DEFAULT",
        SHARE_REDIRECT = 0x7264_5253 => "SMB2_ERROR_ID_SHARE_REDIRECT",
    }
}

view! {
    /// An error response, from its SMB2 header.
    ErrorResponse {
        /// Number of error contexts (3.1.1; 0 where the data stands without contexts).
        context_count: u8 = 66;
        /// Bytes of error data.
        byte_count: u32 = 68;
    }
}

/// One error context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorContext<'a> {
    /// What it is about.
    pub id: ErrorId,
    /// Its bytes.
    pub data: &'a [u8],
}

/// Where a symbolic link leads (MS-SMB2 section 2.2.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symlink<'a> {
    /// Bytes at the end of the path asked for that lie behind the link.
    pub unparsed_path_length: u16,
    /// The target, UTF-16LE.
    pub substitute_name: &'a [u8],
    /// The target for people to read, UTF-16LE.
    pub print_name: &'a [u8],
    /// Bit 0: the target is relative.
    pub flags: u32,
}

impl<'a> ErrorResponse<'a> {
    /// The error data, as far as captured.
    pub fn data(self) -> &'a [u8] {
        buffer_part(self.0, 72, self.byte_count().unwrap_or(0) as usize)
    }

    /// The error contexts; none where the data stands without them.
    pub fn contexts(self) -> ErrorContexts<'a> {
        ErrorContexts { rest: self.data(), left: self.context_count().unwrap_or(0) }
    }

    /// Where the symbolic link leads, in an answer of STATUS_STOPPED_ON_SYMLINK.
    pub fn symlink(self) -> Option<Symlink<'a>> {
        if self.context_count()? == 0 {
            return symlink(self.data());
        }
        self.contexts().find_map(|context| symlink(context.data))
    }

    /// Bytes that the buffer should have had, in an answer of STATUS_BUFFER_TOO_SMALL.
    pub fn required_buffer_length(self) -> Option<u32> {
        let data = match self.context_count()? {
            0 => self.data(),
            _ => self.contexts().next()?.data,
        };
        u32_at(data, 0)
    }
}

/// The error contexts of a response, in their order; ends where the bytes end.
#[derive(Clone, Debug)]
pub struct ErrorContexts<'a> {
    rest: &'a [u8],
    left: u8,
}

impl<'a> Iterator for ErrorContexts<'a> {
    type Item = ErrorContext<'a>;

    fn next(&mut self) -> Option<ErrorContext<'a>> {
        self.left = self.left.checked_sub(1)?;
        let here = std::mem::take(&mut self.rest);
        let length = u32_at(here, 0)? as usize;
        let data = slice_at(here, 8, length)?;
        // Each context starts at a multiple of eight.
        let end = length.checked_next_multiple_of(8)?.checked_add(8)?;
        self.rest = here.get(end..).unwrap_or_default();
        Some(ErrorContext { id: ErrorId(u32_at(here, 4)?), data })
    }
}

fn symlink(data: &[u8]) -> Option<Symlink<'_>> {
    const TAG: u32 = 0x4c4d_5953;
    const PATHS: usize = 28;
    if u32_at(data, 4)? != TAG {
        return None;
    }
    let path = |at| {
        let offset = PATHS + usize::from(u16_at(data, at)?);
        slice_at(data, offset, usize::from(u16_at(data, at + 2)?))
    };
    Some(Symlink {
        unparsed_path_length: u16_at(data, 14)?,
        substitute_name: path(16)?,
        print_name: path(20)?,
        flags: u32_at(data, 24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    fn response(command: Command, status: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = message(body);
        put(&mut bytes, 8, &status.to_le_bytes());
        put(&mut bytes, 12, &command.0.to_le_bytes());
        bytes[16] = 1;
        bytes
    }

    fn is_error(command: Command, status: u32, body: &[u8]) -> bool {
        let bytes = response(command, status, body);
        is_error_response(&Header::parse(&bytes).unwrap(), &bytes)
    }

    #[test]
    fn knows_error_responses() {
        let error = [9, 0, 0, 0, 0, 0, 0, 0];
        assert!(is_error(Command::CREATE, 0xc000_0034, &error));
        assert!(is_error(Command::READ, 0x103, &error));
        assert!(is_error(Command::READ, 0xc000_0011, &[]));
        assert!(!is_error(Command::READ, 0, &[]));
        assert!(!is_error(Command::READ, 0x8000_0005, &[17, 0]));
        assert!(!is_error(Command::CREATE, 0x108, &[89, 0]));
        assert!(!is_error(Command::IOCTL, 0xc000_000d, &[49, 0]));
        assert!(!is_error(Command::SESSION_SETUP, 0xc000_0016, &error));
        assert!(is_error(Command::SESSION_SETUP, 0xc000_006d, &error));
        assert!(!is_error(Command::QUERY_INFO, 0x8000_0005, &[9, 0, 72, 0, 4, 0, 0, 0]));
        assert!(is_error(Command::QUERY_INFO, 0xc000_0023, &error));
        assert!(is_error(Command::QUERY_DIRECTORY, 0x8000_0006, &error));
        assert!(!is_error(Command::CHANGE_NOTIFY, 0x10c, &error));
        assert!(is_error(Command::CHANGE_NOTIFY, 0x103, &error));
        let mut request = response(Command::READ, 5, &error);
        request[16] = 0;
        assert!(!is_error_response(&Header::parse(&request).unwrap(), &request));
    }

    fn symlink_data() -> Vec<u8> {
        let mut data = vec![0; 28];
        data[4..8].copy_from_slice(b"SYML");
        data[14] = 6;
        data[16..24].copy_from_slice(&[0, 0, 2, 0, 2, 0, 4, 0]);
        data[24] = 1;
        data.extend_from_slice(b"s\0p\0q\0");
        data
    }

    #[test]
    fn reads_a_symlink_with_and_without_contexts() {
        let expected = Symlink {
            unparsed_path_length: 6,
            substitute_name: b"s\0",
            print_name: b"p\0q\0",
            flags: 1,
        };
        let data = symlink_data();
        let mut plain = message(&[9, 0, 0, 0, data.len() as u8, 0, 0, 0]);
        plain.extend_from_slice(&data);
        assert_eq!(ErrorResponse(&plain).symlink(), Some(expected));

        let mut listed = message(&[9, 0, 1, 0, data.len() as u8 + 8, 0, 0, 0]);
        listed.extend_from_slice(&[data.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
        listed.extend_from_slice(&data);
        assert_eq!(ErrorResponse(&listed).symlink(), Some(expected));
        for bytes in [plain, listed] {
            abuse(&bytes, |bytes| {
                let view = ErrorResponse(bytes);
                view.touch();
                let _ = (view.symlink(), view.required_buffer_length());
                assert!(view.contexts().count() <= 255);
            });
        }
    }

    #[test]
    fn reads_eight_byte_bodies_and_required_lengths() {
        let bytes = message(&[9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ErrorResponse(&bytes).byte_count(), Some(0));
        assert_eq!(ErrorResponse(&bytes).required_buffer_length(), None);
        let bytes = message(&[9, 0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(ErrorResponse(&bytes).required_buffer_length(), Some(256));
    }
}
