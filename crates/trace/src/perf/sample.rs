//! The body of a sample, and what follows the body of other records.
//!
//! `perf_event_open(2)`: `PERF_RECORD_SAMPLE`, `struct sample_id`.

use crate::bytes::Order;
use crate::event::Mode;

/// Contents of a sample, in the order of the body.
const IDENTIFIER: u64 = 1 << 16;
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const ID: u64 = 1 << 6;
const STREAM_ID: u64 = 1 << 9;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;

/// Contents of `READ`.
const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// Addresses from here on are marks between parts of a chain (`PERF_CONTEXT_MAX`).
const CONTEXT_MIN: u64 = -4095_i64 as u64;

/// Which contents the records of an event have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub contents: u64,
    pub read_format: u64,
    /// Other records end with time, thread and CPU.
    pub has_trailer: bool,
}

/// A sample; what it does not have is `None` or empty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample<'a> {
    pub address: Option<u64>,
    pub process: Option<u32>,
    pub thread: Option<u32>,
    pub time: Option<u64>,
    pub cpu: Option<u32>,
    pub period: Option<u64>,
    /// Addresses of the chain of calls as bytes.
    pub chain: &'a [u8],
    /// The record of a tracepoint.
    pub raw: &'a [u8],
}

/// What follows the body of other records than samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    pub time: Option<u64>,
    pub cpu: Option<u32>,
}

/// Words of eight bytes, one after the other.
struct Words<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<u64> {
        self.order.number(self.take(8)?)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Two numbers of four bytes.
    fn halves(&mut self) -> Option<(u32, u32)> {
        let bytes = self.take(8)?;
        Some((self.order.u32(bytes, 0)?, self.order.u32(bytes, 4)?))
    }
}

impl Layout {
    fn has(self, content: u64) -> bool {
        self.contents & content != 0
    }

    /// Whether `perf` reads at the end how many samples were lost (`PERF_FORMAT_LOST`), which the records of the kernel
    /// have counted, too.
    pub fn counts_losses(self) -> bool {
        self.read_format & READ_LOST != 0
    }

    fn count(self, contents: u64) -> usize {
        (self.contents & contents).count_ones() as usize
    }

    /// The number of a record's event.
    pub fn id(self, is_sample: bool, body: &[u8], order: Order) -> Option<u64> {
        if is_sample {
            let words = match self.has(IDENTIFIER) {
                true => 0,
                false if self.has(ID) => self.count(IP | TID | TIME | ADDR),
                false => return None,
            };
            return order.u64(body, 8 * words);
        }
        let words = match self.has(IDENTIFIER) {
            true => 1,
            false if self.has(ID) => 1 + self.count(STREAM_ID | CPU),
            false => return None,
        };
        order.u64(body, body.len().checked_sub(8 * words).filter(|_| self.has_trailer)?)
    }

    /// Reads a sample; `None` if it is cut.
    pub fn sample(self, body: &[u8], order: Order) -> Option<Sample<'_>> {
        let mut words = Words { bytes: body, order };
        let mut sample = Sample::default();
        if self.has(IDENTIFIER) {
            words.next()?;
        }
        if self.has(IP) {
            sample.address = Some(words.next()?);
        }
        if self.has(TID) {
            (sample.process, sample.thread) = words.halves().unzip();
            sample.thread?;
        }
        if self.has(TIME) {
            sample.time = Some(words.next()?);
        }
        words.take(8 * self.count(ADDR | ID | STREAM_ID))?;
        if self.has(CPU) {
            sample.cpu = Some(words.halves()?.0);
        }
        if self.has(PERIOD) {
            sample.period = Some(words.next()?);
        }
        if self.has(READ) {
            self.skip_read(&mut words)?;
        }
        if self.has(CALLCHAIN) {
            let count = usize::try_from(words.next()?).ok()?;
            sample.chain = words.take(count.checked_mul(8)?)?;
        }
        if self.has(RAW) {
            let length = order.number(words.take(4)?)?;
            sample.raw = words.take(length as usize)?;
        }
        Some(sample)
    }

    fn skip_read(self, words: &mut Words<'_>) -> Option<()> {
        let has = |bit: u64| u64::from(self.read_format & bit != 0);
        let times = has(READ_ENABLED) + has(READ_RUNNING);
        let each = 1 + has(READ_ID) + has(READ_LOST);
        let count = match self.read_format & READ_GROUP {
            0 => times + each,
            _ => times.checked_add(words.next()?.checked_mul(each)?)?,
        };
        words.take(usize::try_from(count).ok()?.checked_mul(8)?)?;
        Some(())
    }

    /// Reads what follows the body.
    pub fn trailer(self, body: &[u8], order: Order) -> Trailer {
        let words = self.count(TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER);
        let start = body.len().checked_sub(8 * words).filter(|_| self.has_trailer);
        let Some(bytes) = start.and_then(|start| body.get(start..)) else {
            return Trailer::default();
        };
        let at = |contents| 8 * self.count(contents);
        Trailer {
            time: order.u64(bytes, at(TID)).filter(|_| self.has(TIME)),
            cpu: order.u32(bytes, at(TID | TIME | ID | STREAM_ID)).filter(|_| self.has(CPU)),
        }
    }
}

/// Addresses of a chain, the innermost first, and the mode that the last mark before them names (`enum
/// perf_callchain_context`).
pub fn addresses(chain: &[u8], order: Order) -> impl Iterator<Item = (u64, Option<Mode>)> {
    let words = chain.chunks_exact(8).filter_map(move |bytes| order.number(bytes));
    let mut mode = None;
    words.filter_map(move |address| {
        if address < CONTEXT_MIN {
            return Some((address, mode));
        }
        mode = match (address as i64).wrapping_neg() {
            32 => Some(Mode::Hypervisor),
            128 => Some(Mode::Kernel),
            512 => Some(Mode::User),
            2176 => Some(Mode::GuestKernel),
            2560 => Some(Mode::GuestUser),
            _ => mode,
        };
        None
    })
}

/// The mode in which a sample was taken, by its record (`PERF_RECORD_MISC_CPUMODE_MASK`).
pub fn mode(misc: u16) -> Option<Mode> {
    match misc & 7 {
        1 => Some(Mode::Kernel),
        2 => Some(Mode::User),
        3 => Some(Mode::Hypervisor),
        4 => Some(Mode::GuestKernel),
        5 => Some(Mode::GuestUser),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn contents_are_read_in_their_order() {
        let contents = IDENTIFIER | IP | TID | TIME | ID | CPU | PERIOD | READ | CALLCHAIN | RAW;
        let layout = Layout { contents, read_format: READ_GROUP | READ_ID, has_trailer: true };
        let mark = -512_i64 as u64;
        let mut bytes =
            body(&[77, 0xff10, 8 << 32 | 5, 1_000, 77, 3, 250, 1, 9, 9, 2, mark, 0xff10]);
        bytes.extend_from_slice(&[4, 0, 0, 0, 1, 2, 3, 4]);
        let sample = layout.sample(&bytes, Order::Little).unwrap();
        assert_eq!((sample.process, sample.thread), (Some(5), Some(8)));
        assert_eq!((sample.time, sample.cpu, sample.period), (Some(1_000), Some(3), Some(250)));
        let chain: Vec<_> = addresses(sample.chain, Order::Little).collect();
        assert_eq!((chain, sample.raw), (vec![(0xff10, Some(Mode::User))], &[1, 2, 3, 4][..]));
        assert_eq!(layout.id(true, &bytes, Order::Little), Some(77));
        for length in 0..bytes.len() {
            assert_eq!(layout.sample(&bytes[..length], Order::Little), None);
        }
        let many = body(&[77, 0, 0, 0, 0, 0, 0, u64::MAX]);
        assert_eq!(layout.sample(&many, Order::Little), None);
    }

    #[test]
    fn what_follows_other_records_is_at_their_end() {
        let layout = Layout { contents: TID | TIME | ID | CPU, read_format: 0, has_trailer: true };
        let bytes = body(&[1, 2, 5, 1_000, 77, 3]);
        let expected = Trailer { time: Some(1_000), cpu: Some(3) };
        assert_eq!(layout.trailer(&bytes, Order::Little), expected);
        assert_eq!(layout.id(false, &bytes, Order::Little), Some(77));
        assert_eq!(layout.trailer(&bytes[..8], Order::Little), Trailer::default());
        let without = Layout { has_trailer: false, ..layout };
        assert_eq!(without.trailer(&bytes, Order::Little), Trailer::default());
        assert_eq!(without.id(false, &bytes, Order::Little), None);
    }
}
