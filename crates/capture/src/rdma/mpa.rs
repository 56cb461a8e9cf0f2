//! MPA: how iWARP frames its messages on TCP.
//!
//! Owns the startup frames and the place of markers, paddings and check sums. The CRC is not
//! checked. RFC 5044 sections 4 and 7.1; RFC 6581 for the second revision.

use smbscope_wire::read::array_at;

/// How startup frames begin.
const KEY_BYTES: usize = 16;
const REQUEST_KEY: &[u8; KEY_BYTES] = b"MPA ID Req Frame";
const REPLY_KEY: &[u8; KEY_BYTES] = b"MPA ID Rep Frame";
/// A startup frame without private data.
pub(super) const STARTUP_BYTES: usize = 20;
/// Private data is not longer (section 7.1.1).
const PRIVATE_BYTES_MAX: u16 = 512;
/// Distance of markers, and their length (section 4.3).
const MARKER_INTERVAL: u64 = 512;
const MARKER_BYTES: u64 = 4;
/// Bytes of the length in front of a frame, and of the CRC behind it.
pub(super) const LENGTH_BYTES: usize = 2;
const CRC_BYTES: u32 = 4;

/// A startup frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Startup {
    /// The client sends it.
    pub(super) is_request: bool,
    /// Its sender wants markers in what it receives.
    pub(super) wants_markers: bool,
    /// Bytes of the whole frame.
    pub(super) bytes: usize,
}

impl Startup {
    /// Reads the first [`STARTUP_BYTES`] of a frame.
    pub(super) fn parse(bytes: &[u8]) -> Option<Startup> {
        let is_request = match array_at::<KEY_BYTES>(bytes, 0)? {
            REQUEST_KEY => true,
            REPLY_KEY => false,
            _ => return None,
        };
        let [flags, _, l1, l0] = *array_at(bytes, KEY_BYTES)?;
        let private = u16::from_be_bytes([l1, l0]);
        (private <= PRIVATE_BYTES_MAX).then_some(Startup {
            is_request,
            wants_markers: flags & 0x80 != 0,
            bytes: STARTUP_BYTES + usize::from(private),
        })
    }
}

/// Whether bytes may be the begin of a startup frame, of which perhaps only a part has come.
pub(super) fn may_be_startup(bytes: &[u8]) -> bool {
    let key = bytes.get(..KEY_BYTES).unwrap_or(bytes);
    !key.is_empty() && [REQUEST_KEY, REPLY_KEY].iter().any(|known| known.starts_with(key))
}

/// Whether a stream in operation has a marker `position` bytes after its begin, and how many bytes
/// follow until that changes.
pub(super) fn marker(position: u64) -> (bool, u32) {
    let within = position % MARKER_INTERVAL;
    if within < MARKER_BYTES {
        (true, (MARKER_BYTES - within) as u32)
    } else {
        (false, (MARKER_INTERVAL - within) as u32)
    }
}

/// Bytes of padding and CRC behind a frame with that many bytes of content.
pub(super) fn trailer(content_bytes: u32) -> u32 {
    (4 - (content_bytes + LENGTH_BYTES as u32) % 4) % 4 + CRC_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_startup_frames() {
        let frame = b"MPA ID Req Frame\xc0\x02\0\x0c private ...";
        let expected = Startup { is_request: true, wants_markers: true, bytes: 32 };
        assert_eq!(Startup::parse(frame), Some(expected));
        assert_eq!(Startup::parse(&frame[..19]), None);
        assert_eq!(Startup::parse(b"MPA ID Rep Frame\0\x01\x02\x01"), None, "too long");
    }

    #[test]
    fn frames_end_at_multiples_of_four() {
        // The CRC of 4 bytes follows 0 to 3 bytes of padding.
        assert_eq!([36, 37, 38, 39].map(trailer), [6, 5, 4, 7]);
        assert_eq!([0, 3, 4, 511, 512].map(marker).map(|(_, left)| left), [4, 1, 508, 1, 4]);
    }
}
