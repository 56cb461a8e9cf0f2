//! What the metadata of a trace says: the layout of packets and events, clock and kernel.
//!
//! [`super::tsdl`] reads it of CTF 1.8, [`super::json`] of CTF 2.

mod packets;

use foldhash::HashMap;

use super::types::{TypeId, Types};
use super::{json, tsdl};
use crate::bytes::Order;

/// First bytes of TSDL.
const TSDL: &[u8] = b"/* CTF 1.8";

/// Whether a file begins like metadata.
pub fn is_metadata(head: &[u8]) -> bool {
    head.starts_with(TSDL) || json::is_json(head) || packets::order_of(head).is_some()
}

/// What packets and events of a stream have before their fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamClass {
    pub packet_context: Option<TypeId>,
    pub event_header: Option<TypeId>,
    pub event_context: Option<TypeId>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventClass {
    pub name: String,
    pub context: Option<TypeId>,
    pub fields: Option<TypeId>,
}

/// The clock of the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    pub name: String,
    pub frequency: i128,
    pub offset: i128,
    pub offset_seconds: i128,
}

impl Clock {
    /// A value in nanoseconds since 1970; `None` if it cannot be one.
    pub fn nanoseconds(&self, value: u64) -> Option<i64> {
        let ticks = self.offset.checked_add(i128::from(value))?;
        let time = ticks.checked_mul(1_000_000_000)?.checked_div(self.frequency)?;
        let time = time.checked_add(self.offset_seconds.checked_mul(1_000_000_000)?)?;
        i64::try_from(time).ok().filter(|&time| time >= 0)
    }
}

/// The metadata.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub types: Types,
    pub order: Order,
    pub packet_header: Option<TypeId>,
    pub clock: Option<Clock>,
    /// Version of the kernel, by the environment.
    pub kernel: Option<(u32, u32)>,
    pub streams: HashMap<u64, StreamClass>,
    /// Events by the numbers of their stream and their own.
    pub events: HashMap<(u64, u64), EventClass>,
    /// Places that could not be read.
    pub damaged: Vec<String>,
}

impl Metadata {
    /// Reads a file of either version, and the version.
    pub fn read(bytes: &[u8]) -> (Metadata, &'static str) {
        let (text, is_cut) = packets::text(bytes);
        let (mut metadata, version) = if json::is_json(text.as_bytes()) {
            (json::parse(&text), "CTF 2")
        } else {
            (tsdl::parse(&text), "CTF 1.8")
        };
        if is_cut {
            metadata.damaged.insert(0, "a packet".to_owned());
        }
        (metadata, version)
    }

    /// Takes the release of the kernel.
    pub fn set_kernel(&mut self, release: &str) {
        self.kernel = version(release);
    }
}

/// The first two numbers of `4.4.3-1-ARCH`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_recognised() {
        assert!(is_metadata(b"/* CTF 1.8 */ trace") && is_metadata(&[0x57, 0x1d, 0xd1, 0x75]));
        assert!(is_metadata(b"\x1e{\n  \"type\": \"preamble\""));
        assert!(!is_metadata(b"/* CTF 2 */") && !is_metadata(b"") && !is_metadata(b"\x1e"));
        assert!(!is_metadata(b"{\"type\": \"preamble\"}"));
        assert_eq!(version("4.4.3-1-ARCH"), Some((4, 4)));
    }
}
