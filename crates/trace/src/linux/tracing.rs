//! The kernel's description of its tracepoints, as `trace-cmd` and `perf` store it.
//!
//! trace-cmd.dat.v6(5) describes it; `tools/perf/util/trace-event-info.c` writes the same into the
//! section `HEADER_TRACING_DATA` of `perf.data`.

use std::io::{self, Read};

use foldhash::HashMap;

use super::action::Action;
use super::format::{self, Field, Format};
use crate::bytes::{Order, read_block, read_number, read_text};

/// First bytes of the description.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Longest text of an event; the kernel's longest have about 100 kB.
const FORMAT_BYTES_MAX: u64 = 1 << 20;
/// Most events.
const EVENTS_MAX: u64 = 65_536;
const NAME_BYTES_MAX: usize = 512;

/// An event with a meaning.
#[derive(Clone, Debug)]
pub struct Known {
    pub format: Format,
    pub action: Action,
}

/// Versions, sizes and byte order, before everything else.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    pub version: String,
    pub order: Order,
    pub page_bytes: u32,
}

/// Events with a meaning by their number, and the header of a page of the ring buffer.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    pub events: HashMap<u16, Known>,
    pub page: Vec<Field>,
}

/// Reads the first bytes; `None` if they are others.
pub fn prefix(source: &mut impl Read) -> io::Result<Option<Prefix>> {
    if read_block(source, MAGIC.len() as u64, 16)?.as_deref() != Some(MAGIC) {
        return Ok(None);
    }
    let Some(version) = read_text(source, 8)? else { return Ok(None) };
    let order = match read_number::<1>(source, Order::Little)? {
        Some(0) => Order::Little,
        Some(1) => Order::Big,
        _ => return Ok(None),
    };
    let _long_bytes = read_number::<1>(source, order)?;
    let page_bytes = read_number::<4>(source, order)?;
    Ok(page_bytes.map(|page_bytes| Prefix { version, order, page_bytes: page_bytes as u32 }))
}

impl Tracing {
    /// Reads everything after the prefix, up to the events; `None` if it is cut or has another form.
    /// What was read before that is kept.
    pub fn read(&mut self, source: &mut impl Read, order: Order) -> io::Result<Option<()>> {
        if self.read_headers(source, order)?.is_none() || self.read_ftrace(source, order)?.is_none()
        {
            return Ok(None);
        }
        self.read_systems(source, order)
    }

    /// `header_page` and `header_event`.
    pub fn read_headers(&mut self, source: &mut impl Read, order: Order) -> io::Result<Option<()>> {
        for name in ["header_page", "header_event"] {
            if read_text(source, NAME_BYTES_MAX)?.as_deref() != Some(name) {
                return Ok(None);
            }
            let Some(text) = text(source, order)? else { return Ok(None) };
            if name == "header_page" {
                self.page = format::fields(&text);
            }
        }
        Ok(Some(()))
    }

    /// Events of ftrace itself, which have no meaning here.
    pub fn read_ftrace(&mut self, source: &mut impl Read, order: Order) -> io::Result<Option<()>> {
        let Some(count) = read_number::<4>(source, order)? else { return Ok(None) };
        for _ in 0..count {
            if text(source, order)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Events by their groups.
    pub fn read_systems(&mut self, source: &mut impl Read, order: Order) -> io::Result<Option<()>> {
        let Some(systems) = read_number::<4>(source, order)? else { return Ok(None) };
        let mut left = EVENTS_MAX;
        for _ in 0..systems {
            if read_text(source, NAME_BYTES_MAX)?.is_none() {
                return Ok(None);
            }
            let Some(count) = read_number::<4>(source, order)? else { return Ok(None) };
            for _ in 0..count {
                let Some(text) = text(source, order)? else { return Ok(None) };
                let Some(still) = left.checked_sub(1) else { return Ok(None) };
                left = still;
                let Some(format) = Format::parse(&text) else { continue };
                if let Some(action) = Action::from_event(&format.name) {
                    self.events.insert(format.id, Known { format, action });
                }
            }
        }
        Ok(Some(()))
    }
}

/// A text behind its length.
fn text(source: &mut impl Read, order: Order) -> io::Result<Option<String>> {
    let Some(length) = read_number::<8>(source, order)? else { return Ok(None) };
    let block = read_block(source, length, FORMAT_BYTES_MAX)?;
    Ok(block.map(|block| String::from_utf8_lossy(&block).into_owned()))
}
