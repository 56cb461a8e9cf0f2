//! IOCTL request and response (MS-SMB2 sections 2.2.31 and 2.2.32), with the content of those
//! control codes that belong to SMB2 itself.
//!
//! DFS referrals are decoded in `dfs`; control codes are named in `fsctl`.

use super::FileId;
use super::fsctl::Fsctl;
use super::negotiate::{Capabilities, SecurityMode};
use super::view::{Field, buffer, buffer_part, flags, view};
use super::{Dialect, network_interface::NetworkInterfaces};
use crate::read::{array_at, u16_at, u32_at};

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

    /// The bytes that FSCTL_SRV_COPYCHUNK or its sibling copied (MS-SMB2 section 2.2.32.1).
    pub fn bytes_copied(self) -> Option<u32> {
        if !is_copy_chunk(self.ctl_code()?) {
            return None;
        }
        u32_at(self.output()?, 8)
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
    is_copy_chunk(code)
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
