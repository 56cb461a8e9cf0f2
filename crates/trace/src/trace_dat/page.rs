//! A page of the kernel's ring buffer: records with their times.
//!
//! `kernel/trace/ring_buffer.c`, include/linux/ring_buffer.h and `events/header_page` of tracefs.

use crate::bytes::Order;
use crate::linux::format::Field;

/// Kinds of records, by their `type_len`; smaller ones are lengths.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time in a record's header, and those that an absolute time does not have.
const TIME_BITS: u32 = 27;
const TIME_MASK: u32 = (1 << TIME_BITS) - 1;
const UPPER_TIME: u64 = 0x1f << 59;
/// Flags of `commit`, the length of the records.
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_COUNT: u64 = 1 << 30;
const LENGTH_MASK: u64 = (1 << 27) - 1;

/// Where the parts of a page's header are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub order: Order,
    commit_at: usize,
    commit_bytes: usize,
    data_at: usize,
}

impl Layout {
    /// By the fields of `events/header_page`; of a 64-bit kernel without them.
    pub fn new(order: Order, fields: &[Field]) -> Layout {
        let field = |name| fields.iter().find(|field: &&Field| field.name == name);
        let commit = field("commit").filter(|field| matches!(field.size, 4 | 8));
        Layout {
            order,
            commit_at: commit.map_or(8, |field| field.offset),
            commit_bytes: commit.map_or(8, |field| field.size),
            data_at: field("data").map_or(16, |field| field.offset),
        }
    }
}

/// What a page has.
#[derive(Debug)]
pub struct Page<'a> {
    layout: Layout,
    records: &'a [u8],
    at: usize,
    time: u64,
    /// Events that were lost before it; `Some(0)` if their number is not known.
    pub lost: Option<u64>,
    /// A record could not be read.
    pub is_damaged: bool,
}

impl<'a> Page<'a> {
    /// Reads the header; `None` if the page is shorter than it says.
    pub fn new(bytes: &'a [u8], layout: Layout) -> Option<Page<'a>> {
        let time = layout.order.u64(bytes, 0)?;
        let commit_end = layout.commit_at.checked_add(layout.commit_bytes)?;
        let commit = layout.order.number(bytes.get(layout.commit_at..commit_end)?)?;
        let length = (commit & LENGTH_MASK) as usize;
        let end = layout.data_at.checked_add(length)?;
        let records = bytes.get(layout.data_at..end)?;
        let lost = (commit & MISSED_EVENTS != 0).then(|| {
            // The number follows the records.
            let stored = bytes.get(end..end.saturating_add(layout.commit_bytes));
            let stored = stored.filter(|_| commit & MISSED_COUNT != 0);
            stored.and_then(|bytes| layout.order.number(bytes)).unwrap_or(0)
        });
        Some(Page { layout, records, at: 0, time, lost, is_damaged: false })
    }

    fn word(&mut self) -> Option<u32> {
        let word = self.layout.order.u32(self.records, self.at)?;
        self.at += 4;
        Some(word)
    }

    /// Time and bytes of the next record.
    fn read(&mut self) -> Option<Option<(u64, &'a [u8])>> {
        let header = self.word()?;
        let (kind, delta) = match self.layout.order {
            Order::Little => (header & 0x1f, header >> 5),
            Order::Big => (header >> TIME_BITS, header & TIME_MASK),
        };
        let delta = u64::from(delta);
        match kind {
            TIME_EXTEND => {
                let upper = u64::from(self.word()?) << TIME_BITS;
                self.time = self.time.wrapping_add(upper | delta);
                Some(None)
            }
            TIME_STAMP => {
                let upper = u64::from(self.word()?) << TIME_BITS;
                let time = (self.time & UPPER_TIME) | (upper | delta) & !UPPER_TIME;
                // The upper bits changed meanwhile.
                let is_next = time < self.time;
                self.time = if is_next { time.wrapping_add(1 << 59) } else { time };
                Some(None)
            }
            PADDING => {
                // Without a time it fills the rest of the page.
                let length = self.word().filter(|_| delta != 0);
                self.time = self.time.wrapping_add(delta);
                let length = length.map_or(usize::MAX, |length| length as usize);
                self.at = self.at.saturating_add(length).min(self.records.len());
                Some(None)
            }
            _ => {
                self.time = self.time.wrapping_add(delta);
                let length = match kind {
                    0 => (self.word()? as usize).checked_sub(4)?.checked_next_multiple_of(4)?,
                    words => 4 * words as usize,
                };
                let end = self.at.checked_add(length)?;
                let record = self.records.get(self.at..end)?;
                self.at = end;
                Some(Some((self.time, record)))
            }
        }
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        while self.at < self.records.len() {
            match self.read() {
                Some(Some(record)) => return Some(record),
                Some(None) => {}
                None => {
                    self.is_damaged = true;
                    self.at = self.records.len();
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u32, delta: u32) -> [u8; 4] {
        (kind | delta << 5).to_le_bytes()
    }

    fn page(records: &[u8], flags: u64) -> Vec<u8> {
        let commit = records.len() as u64 | flags;
        [&1_000_u64.to_le_bytes()[..], &commit.to_le_bytes(), records, &7_u64.to_le_bytes()]
            .concat()
    }

    fn layout() -> Layout {
        Layout::new(Order::Little, &[])
    }

    #[test]
    fn records_of_each_kind_have_their_time() {
        let records = [
            &header(1, 5)[..],
            b"abcd",
            &header(TIME_EXTEND, 1),
            &1_u32.to_le_bytes(),
            &header(PADDING, 2),
            &4_u32.to_le_bytes(),
            b"skip",
            &header(0, 3),
            &9_u32.to_le_bytes(),
            b"efghi\0\0\0",
            &header(TIME_STAMP, 9),
            &2_u32.to_le_bytes(),
            &header(1, 0),
            b"jklm",
            &header(PADDING, 0),
            b"rest of page",
        ]
        .concat();
        let bytes = page(&records, 0);
        let mut page = Page::new(&bytes, layout()).unwrap();
        let second = 1_005 + 1 + (1 << 27) + 2 + 3;
        let third = (2 << 27) + 9;
        let expected: [(u64, &[u8]); 3] =
            [(1_005, b"abcd"), (second, b"efghi\0\0\0"), (third, b"jklm")];
        assert_eq!(page.by_ref().collect::<Vec<_>>(), expected);
        assert_eq!((page.lost, page.is_damaged), (None, false));
    }

    #[test]
    fn lost_events_are_counted_where_the_number_is_known() {
        let bytes = page(&[], MISSED_EVENTS | MISSED_COUNT);
        assert_eq!(Page::new(&bytes, layout()).unwrap().lost, Some(7));
        let bytes = page(&[], MISSED_EVENTS);
        assert_eq!(Page::new(&bytes, layout()).unwrap().lost, Some(0));
    }

    #[test]
    fn damaged_pages_end_early() {
        for records in [&header(20, 0)[..], &header(0, 0), &header(TIME_EXTEND, 0), b"ab"] {
            let bytes = page(records, 0);
            let mut page = Page::new(&bytes, layout()).unwrap();
            assert_eq!((page.next(), page.is_damaged), (None, true));
        }
        let short = [header(0, 0), [3, 0, 0, 0]].concat();
        let bytes = page(&short, 0);
        assert_eq!(Page::new(&bytes, layout()).unwrap().next(), None);
        assert!(Page::new(&bytes[..20], layout()).is_none());
        assert!(Page::new(&[], layout()).is_none());
    }
}
