//! IOCTL request and response (MS-SMB2 sections 2.2.31 and 2.2.32), with the content of those
//! control codes that belong to SMB2 itself.
//!
//! DFS referrals are decoded in `dfs`; control codes are named in `fsctl`.

use super::FileId;
use super::fsctl::Fsctl;
use super::negotiate::{Capabilities, SecurityMode};
use super::view::{Field, buffer, buffer_part, flags, view};
use super::{Dialect, network_interface::NetworkInterfaces};
use crate::read::{array_at, u16_at, u32_at, u64_at};

flags! {
    /// Flags of a request.
    IoctlFlags(u32) {
        IS_FSCTL = 0x0000_0001,
    }
}

view! {
    /// An ioctl request, from its SMB2 header.
    IoctlRequest {
        /// The requested function.
        ctl_code: Fsctl = 68;
        /// The open file; all ones where the code needs none.
        file_id: FileId = 72;
        /// Where the input stands, from the header.
        input_offset: u32 = 88;
        /// Bytes of the input.
        input_count: u32 = 92;
        /// Longest input that may come back, in bytes.
        max_input_response: u32 = 96;
        /// Where the output stands, from the header; unused in requests.
        output_offset: u32 = 100;
        /// Bytes of the output; unused in requests.
        output_count: u32 = 104;
        /// Longest output that may come back, in bytes.
        max_output_response: u32 = 108;
        /// Whether the code is an FSCTL.
        flags: IoctlFlags = 112;
    }
}

impl<'a> IoctlRequest<'a> {
    /// The input, if captured whole.
    pub fn input(self) -> Option<&'a [u8]> {
        let offset = self.input_offset()? as usize;
        buffer(self.0, offset, self.input_count()? as usize)
    }

    /// The ranges that FSCTL_SRV_COPYCHUNK and its sibling copy.
    pub fn copy_chunks(self) -> Option<CopyChunks<'a>> {
        if !is_copy_chunk(self.ctl_code()?) {
            return None;
        }
        let input = self.input()?;
        Some(CopyChunks {
            source_key: input.first_chunk()?,
            count: u32_at(input, 24)?,
            chunks: input.get(32..)?,
        })
    }

    /// The part of the file that the server copies, shares, releases or looks at itself: offset of
    /// the first range, and bytes of all ranges (MS-SMB2 section 2.2.31.1, MS-FSCC section 2.3).
    pub fn range(self) -> Option<(u64, u64)> {
        let code = self.ctl_code()?;
        if let Some(chunks) = self.copy_chunks() {
            return Some((chunks.target_offset()?, chunks.bytes()));
        }
        let at = match code {
            Fsctl::FILE_LEVEL_TRIM => return trimmed(self.input()?),
            Fsctl::SET_ZERO_DATA => {
                let (start, end) = range_at(self.input()?, 0)?;
                return Some((start, end.checked_sub(start)?));
            }
            Fsctl::QUERY_ALLOCATED_RANGES => 0,
            Fsctl::OFFLOAD_WRITE => 8,
            Fsctl::OFFLOAD_READ => 16,
            Fsctl::DUPLICATE_EXTENTS_TO_FILE => 24,
            Fsctl::DUPLICATE_EXTENTS_TO_FILE_EX => 32,
            _ => return None,
        };
        range_at(self.input()?, at)
    }
}

/// Offset and length, eight bytes each.
fn range_at(bytes: &[u8], at: usize) -> Option<(u64, u64)> {
    Some((u64_at(bytes, at)?, u64_at(bytes, at + 8)?))
}

/// The ranges of FSCTL_FILE_LEVEL_TRIM behind a key and their number (MS-FSCC section 2.3.13).
fn trimmed(input: &[u8]) -> Option<(u64, u64)> {
    let ranges = input.get(8..)?.chunks_exact(16).take(u32_at(input, 4)? as usize);
    let mut ranges = ranges.filter_map(|range| range_at(range, 0));
    let (start, first) = ranges.next()?;
    Some((start, ranges.fold(first, |sum, (_, bytes)| sum.saturating_add(bytes))))
}

view! {
    /// An ioctl response, from its SMB2 header.
    IoctlResponse {
        /// The function that was requested.
        ctl_code: Fsctl = 68;
        /// The open file.
        file_id: FileId = 72;
        /// Where the input stands, from the header.
        input_offset: u32 = 88;
        /// Bytes of the input.
        input_count: u32 = 92;
        /// Where the output stands, from the header.
        output_offset: u32 = 96;
        /// Bytes of the output.
        output_count: u32 = 100;
    }
}

impl<'a> IoctlResponse<'a> {
    /// The output, if captured whole.
    pub fn output(self) -> Option<&'a [u8]> {
        let offset = self.output_offset()? as usize;
        buffer(self.0, offset, self.output_count()? as usize)
    }

    /// The bytes that the server says it copied (MS-SMB2 section 2.2.32.1, MS-FSCC section 2.3.80).
    pub fn bytes_copied(self) -> Option<u64> {
        match self.ctl_code()? {
            Fsctl::OFFLOAD_WRITE => u64_at(self.output()?, 8),
            _ => self.copy_chunk_result().map(|done| u64::from(done.total_bytes_written)),
        }
    }

    /// Whether a server that reports success has shared or released all of the range requested.
    pub fn does_whole_range(self) -> bool {
        self.ctl_code().is_some_and(|code| {
            matches!(
                code,
                Fsctl::DUPLICATE_EXTENTS_TO_FILE
                    | Fsctl::DUPLICATE_EXTENTS_TO_FILE_EX
                    | Fsctl::FILE_LEVEL_TRIM
                    | Fsctl::SET_ZERO_DATA
            )
        })
    }

    /// The server's interfaces, as far as captured; empty for any other control code.
    pub fn network_interfaces(self) -> NetworkInterfaces<'a> {
        let offset = self.output_offset().unwrap_or(0) as usize;
        let length = match self.ctl_code() {
            Some(Fsctl::QUERY_NETWORK_INTERFACE_INFO) => self.output_count().unwrap_or(0),
            _ => 0,
        };
        NetworkInterfaces::new(buffer_part(self.0, offset, length as usize))
    }

    /// What the server says that it negotiated.
    pub fn validate_negotiate_info(self) -> Option<ValidateNegotiateInfo> {
        if self.ctl_code()? != Fsctl::VALIDATE_NEGOTIATE_INFO {
            return None;
        }
        let output = self.output()?;
        Some(ValidateNegotiateInfo {
            capabilities: Capabilities::read(output, 0)?,
            guid: *array_at(output, 4)?,
            security_mode: SecurityMode::read(output, 20)?,
            dialect: Dialect(u16_at(output, 22)?),
        })
    }

    /// What was copied; with STATUS_INVALID_PARAMETER the server's limits instead.
    pub fn copy_chunk_result(self) -> Option<CopyChunkResult> {
        if !is_copy_chunk(self.ctl_code()?) {
            return None;
        }
        let output = self.output()?;
        Some(CopyChunkResult {
            chunks_written: u32_at(output, 0)?,
            chunk_bytes_written: u32_at(output, 4)?,
            total_bytes_written: u32_at(output, 8)?,
        })
    }
}

/// Whether the code copies ranges inside the server.
fn is_copy_chunk(code: Fsctl) -> bool {
    matches!(code, Fsctl::SRV_COPYCHUNK | Fsctl::SRV_COPYCHUNK_WRITE)
}

/// Whether the input of a control code names a range of the file: see [`IoctlRequest::range`].
pub fn works_on_range(code: Fsctl) -> bool {
    is_copy_chunk(code)
        || matches!(
            code,
            Fsctl::DUPLICATE_EXTENTS_TO_FILE
                | Fsctl::DUPLICATE_EXTENTS_TO_FILE_EX
                | Fsctl::FILE_LEVEL_TRIM
                | Fsctl::SET_ZERO_DATA
                | Fsctl::QUERY_ALLOCATED_RANGES
                | Fsctl::OFFLOAD_READ
                | Fsctl::OFFLOAD_WRITE
        )
}

/// The answer of FSCTL_VALIDATE_NEGOTIATE_INFO (MS-SMB2 section 2.2.32.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ValidateNegotiateInfo {
    pub capabilities: Capabilities,
    pub guid: [u8; 16],
    pub security_mode: SecurityMode,
    pub dialect: Dialect,
}

/// The ranges of a copy inside the server (MS-SMB2 section 2.2.31.1).
#[derive(Clone, Copy, Debug)]
pub struct CopyChunks<'a> {
    /// The resume key of the source file.
    pub source_key: &'a [u8; 24],
    /// Number of ranges.
    pub count: u32,
    chunks: &'a [u8],
}

impl CopyChunks<'_> {
    /// Where the first range begins in the target file.
    pub fn target_offset(self) -> Option<u64> {
        u64_at(self.chunks, 8)
    }

    /// Bytes of all ranges together.
    pub fn bytes(self) -> u64 {
        self.chunks
            .chunks_exact(24)
            .take(self.count as usize)
            .filter_map(|chunk| u32_at(chunk, 16))
            .map(u64::from)
            .sum()
    }
}

/// What a copy inside the server did (MS-SMB2 section 2.2.32.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyChunkResult {
    /// Ranges copied whole; or the most that a request may have.
    pub chunks_written: u32,
    /// Bytes of the range that failed; or the longest that a range may be.
    pub chunk_bytes_written: u32,
    /// Bytes copied; or the most that a request may copy.
    pub total_bytes_written: u32,
}

/// Whether the input or output of a control code says something that is used.
pub(super) fn wants_content(code: Fsctl) -> bool {
    works_on_range(code)
        || matches!(
            code,
            Fsctl::DFS_GET_REFERRALS
                | Fsctl::DFS_GET_REFERRALS_EX
                | Fsctl::VALIDATE_NEGOTIATE_INFO
                | Fsctl::QUERY_NETWORK_INTERFACE_INFO
        )
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{abuse, message, put};
    use super::*;

    fn request(code: Fsctl, input: &[u8]) -> Vec<u8> {
        let mut bytes = message(&[57, 0, 0, 0]);
        put(&mut bytes, 68, &code.0.to_le_bytes());
        put(&mut bytes, 72, &[0xff; 16]);
        put(&mut bytes, 88, &120u32.to_le_bytes());
        put(&mut bytes, 92, &(input.len() as u32).to_le_bytes());
        put(&mut bytes, 108, &4096u32.to_le_bytes());
        put(&mut bytes, 112, &1u32.to_le_bytes());
        put(&mut bytes, 116, &[0; 4]);
        put(&mut bytes, 120, input);
        bytes
    }

    fn response(code: Fsctl, output: &[u8]) -> Vec<u8> {
        let mut bytes = message(&[49, 0, 0, 0]);
        put(&mut bytes, 68, &code.0.to_le_bytes());
        put(&mut bytes, 72, &[0xff; 16]);
        put(&mut bytes, 88, &112u32.to_le_bytes());
        put(&mut bytes, 96, &112u32.to_le_bytes());
        put(&mut bytes, 100, &(output.len() as u32).to_le_bytes());
        put(&mut bytes, 104, &[0; 8]);
        put(&mut bytes, 112, output);
        bytes
    }

    #[test]
    fn reads_a_copy() {
        let mut input = vec![7; 24];
        input.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
        for length in [1000u32, 500] {
            input.extend_from_slice(&[0; 16]);
            input.extend_from_slice(&length.to_le_bytes());
            input.extend_from_slice(&[0; 4]);
        }
        let bytes = request(Fsctl::SRV_COPYCHUNK, &input);
        let view = IoctlRequest(&bytes);
        assert_eq!(view.ctl_code(), Some(Fsctl::SRV_COPYCHUNK));
        assert_eq!(view.flags(), Some(IoctlFlags::IS_FSCTL));
        assert_eq!(view.max_output_response(), Some(4096));
        let chunks = view.copy_chunks().unwrap();
        assert_eq!((chunks.count, chunks.bytes()), (2, 1500));
        assert_eq!(chunks.source_key, &[7; 24]);
        abuse(&bytes, |bytes| {
            let view = IoctlRequest(bytes);
            view.touch();
            let _ = view.copy_chunks().map(CopyChunks::bytes);
        });

        let bytes = response(Fsctl::SRV_COPYCHUNK, &[2, 0, 0, 0, 0, 0, 0, 0, 0xdc, 5, 0, 0]);
        let result = IoctlResponse(&bytes).copy_chunk_result().unwrap();
        assert_eq!(result.total_bytes_written, 1500);
        abuse(&bytes, |bytes| {
            IoctlResponse(bytes).touch();
            let _ = IoctlResponse(bytes).copy_chunk_result();
        });
    }

    #[test]
    fn reads_the_ranges_that_a_server_works_on() {
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let trim = [vec![0, 0, 0, 0, 2, 0, 0, 0], words(&[4096, 100, 65536, 20])].concat();
        let copy = [vec![7; 24], words(&[2, 1, 500, 10, 2, 510, 5])].concat();
        let cases = [
            (Fsctl::DUPLICATE_EXTENTS_TO_FILE, words(&[1, 2, 3, 4096, 65536]), (4096, 65536)),
            (Fsctl::DUPLICATE_EXTENTS_TO_FILE_EX, words(&[48, 1, 2, 3, 8, 9, 0]), (8, 9)),
            (Fsctl::FILE_LEVEL_TRIM, trim, (4096, 120)),
            (Fsctl::SET_ZERO_DATA, words(&[10, 30]), (10, 20)),
            (Fsctl::QUERY_ALLOCATED_RANGES, words(&[10, 30]), (10, 30)),
            (Fsctl::OFFLOAD_READ, words(&[0, 0, 5, 6]), (5, 6)),
            (Fsctl::OFFLOAD_WRITE, words(&[0, 5, 6, 0]), (5, 6)),
            (Fsctl::SRV_COPYCHUNK, copy, (500, 15)),
        ];
        for (code, input, range) in cases {
            let bytes = request(code, &input);
            assert_eq!(IoctlRequest(&bytes).range(), Some(range), "{:?}", code.name());
            assert_eq!(IoctlRequest(&bytes[..130]).range(), None, "cut");
            abuse(&bytes, |bytes| {
                let _ = IoctlRequest(bytes).range();
            });
        }
        let backwards = request(Fsctl::SET_ZERO_DATA, &words(&[30, 10]));
        assert_eq!(IoctlRequest(&backwards).range(), None);
        assert_eq!(IoctlRequest(&request(Fsctl::PIPE_PEEK, &[0; 64])).range(), None);
        let written = response(Fsctl::OFFLOAD_WRITE, &words(&[16, 12_000]));
        assert_eq!(IoctlResponse(&written).bytes_copied(), Some(12_000));
    }

    #[test]
    fn reads_the_negotiated_values() {
        let mut output = vec![0; 24];
        output[0] = 0x2f;
        output[4..20].fill(3);
        output[20] = 3;
        output[22..24].copy_from_slice(&0x0302u16.to_le_bytes());
        let bytes = response(Fsctl::VALIDATE_NEGOTIATE_INFO, &output);
        assert_eq!(
            IoctlResponse(&bytes).validate_negotiate_info(),
            Some(ValidateNegotiateInfo {
                capabilities: Capabilities(0x2f),
                guid: [3; 16],
                security_mode: SecurityMode(3),
                dialect: Dialect::SMB_3_0_2
            })
        );
        abuse(&bytes, |bytes| {
            let _ = IoctlResponse(bytes).validate_negotiate_info();
        });
        let other = response(Fsctl::PIPE_TRANSCEIVE, &output);
        assert_eq!(IoctlResponse(&other).validate_negotiate_info(), None);
        assert_eq!(IoctlResponse(&other).network_interfaces().count(), 0);
    }
}
