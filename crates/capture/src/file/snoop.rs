//! snoop, of Solaris and of many appliances.
//!
//! Owns the layout of RFC 1761: a header of 16 bytes, then records that say how many packets were
//! dropped before.

use super::records::{Container, Frame, Record, be32, interface};
use super::{FileSummary, LinkType};

const HEADER_BYTES: usize = 16;
const RECORD_BYTES: usize = 24;

/// The state between two records.
#[derive(Default)]
pub(super) struct Snoop {
    link: LinkType,
    dropped: Option<u64>,
}

impl Container for Snoop {
    fn header(&mut self, bytes: &[u8], summary: &mut FileSummary) -> Result<Option<usize>, String> {
        let (Some(version), Some(data_link)) = (be32(bytes, 8), be32(bytes, 12)) else {
            return Ok(None);
        };
        if version != 2 {
            return Err(format!("snoop's version {version} is not known"));
        }
        self.link = match data_link {
            0 | 4 => LinkType::ETHERNET,
            2 => LinkType::TOKEN_RING,
            8 => LinkType::FDDI,
            18 => LinkType::SUN_ATM,
            25 => LinkType::SOLARIS_IPNET,
            _ => LinkType::UNKNOWN,
        };
        summary.add_interface(interface(self.link, 1_000_000));
        Ok(Some(HEADER_BYTES))
    }

    fn record(&mut self, bytes: &[u8], _: u64) -> Record {
        let field = |n: usize| be32(bytes, 4 * n);
        let (Some(original), Some(captured), Some(length), Some(drops), Some(s), Some(us)) =
            (field(0), field(1), field(2), field(3), field(4), field(5))
        else {
            return Record::Incomplete;
        };
        let time_ns = i64::from(s) * 1_000_000_000 + i64::from(us) * 1_000;
        // The count includes those before.
        self.dropped = Some(self.dropped.unwrap_or(0).max(u64::from(drops)));
        let link = self.link;
        let frame = Frame { time_ns, offset: RECORD_BYTES, captured, original, link };
        Record::Frame { length: length as usize, frame }
    }

    fn dropped(&self) -> Option<u64> {
        self.dropped
    }
}
