//! The shape of a log: which events it has and how long they are, without anything that they contain.
//!
//! It is meant to be sent to people who have no such log: it has no names, no addresses and no times.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use super::record::{Next, Origin, Position};
use super::{Error, index};
use crate::windows::{Guid, Provider};

/// Kinds of events that are distinguished.
const EVENTS_MAX: usize = 20_000;
/// Lengths of one kind that are listed.
const LENGTHS_MAX: usize = 12;

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub count: u64,
    /// Lengths of the fields in bytes, as many as are listed.
    pub lengths: BTreeSet<usize>,
    /// Whether there are other lengths.
    pub has_more_lengths: bool,
    /// All bits of their keywords.
    pub keywords: u64,
}

/// The shape of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub build: u32,
    pub cpus: u32,
    pub cpu_mhz: u32,
    pub clock: Option<&'static str>,
    pub ticks_per_second: i64,
    pub events_lost: u32,
    pub buffers: u64,
    pub buffers_compressed: u64,
    pub damaged: u64,
    /// By provider, number and version of the event.
    pub events: BTreeMap<(String, u16, u16), Events>,
    /// Events of kinds beyond the limit.
    pub others: u64,
}

/// Reads a log for its shape.
///
/// # Errors
///
/// [`Error::NotEtl`] if the source does not begin like a log, and those of the operating system.
pub fn shape<R: Read + Seek>(mut source: R) -> Result<Shape, Error> {
    let header = index::log_header(&mut source)?;
    let mut shape = Shape {
        build: header.build,
        cpus: header.cpus,
        cpu_mhz: header.cpu_mhz,
        clock: header.clock_kind.map(|kind| kind.name()),
        ticks_per_second: header.ticks_per_second,
        events_lost: header.events_lost,
        ..Shape::default()
    };
    let mut buffers = index::Buffers::new(header);
    while let Some(buffer) = buffers.next(&mut source)? {
        shape.buffers += 1;
        shape.buffers_compressed += u64::from(buffer.header.is_compressed);
        shape.damaged += u64::from(!buffer.is_whole);
        let mut position = Position::default();
        loop {
            match position.next(&buffers.records, buffer.header.cpu) {
                Next::Record(record) => {
                    let (provider, id) = name(record.origin);
                    shape.count(
                        (provider, id, record.version),
                        record.payload.len(),
                        record.keyword,
                    );
                }
                Next::Damaged => {
                    shape.damaged += 1;
                    break;
                }
                Next::End => break,
            }
        }
    }
    Ok(shape)
}

impl Shape {
    fn count(&mut self, kind: (String, u16, u16), length: usize, keyword: u64) {
        let is_room = self.events.len() < EVENTS_MAX || self.events.contains_key(&kind);
        if !is_room {
            self.others += 1;
            return;
        }
        let events = self.events.entry(kind).or_default();
        events.count += 1;
        events.keywords |= keyword;
        if events.lengths.len() < LENGTHS_MAX {
            events.lengths.insert(length);
        } else {
            events.has_more_lengths |= !events.lengths.contains(&length);
        }
    }
}

/// Provider and number of an event.
fn name(origin: Origin) -> (String, u16) {
    match origin {
        Origin::Kernel { group, opcode } => {
            ("kernel".to_owned(), u16::from(group) << 8 | u16::from(opcode))
        }
        Origin::Classic { guid, opcode } => (format!("classic {}", Guid(guid)), opcode.into()),
        Origin::Manifest { guid, id } => {
            let name = Provider::from_guid(&guid).map(|provider| provider.name().to_owned());
            (name.unwrap_or_else(|| Guid(guid).to_string()), id)
        }
        Origin::Other { kind } => ("no event".to_owned(), kind.into()),
        Origin::Further => ("further".to_owned(), 0),
    }
}
