//! What a driver answers to `ethtool`, by `ioctl(SIOCETHTOOL)`. Only questions: nothing is set.
//!
//! Linux `include/uapi/linux/ethtool.h`; netdevice(7). The call needs no privilege. It is the crate's only unsafe code.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;

use super::super::read::{
    Channels, Coalescing, Driver, Features, Indirection, Piece, Rings, Statistics, TABLE_MAX,
};

const GET_DRIVER: u32 = 0x03;
const GET_COALESCING: u32 = 0x0e;
const GET_RINGS: u32 = 0x10;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_FLAGS: u32 = 0x25;
const GET_PRIVATE_FLAGS: u32 = 0x27;
const GET_RX_RINGS: u32 = 0x2d;
const GET_CHANNELS: u32 = 0x3c;
const GET_RSS: u32 = 0x46;

/// `ETH_SS_STATS`, `ETH_SS_PRIV_FLAGS`: sets of strings.
const STRINGS_STATISTICS: u32 = 1;
const STRINGS_PRIVATE_FLAGS: u32 = 2;
const STRING_BYTES: usize = 32;
/// `ETH_FLAG_NTUPLE`, `ETH_FLAG_RXHASH`.
const FLAG_NTUPLE: u32 = 1 << 27;
const FLAG_RECEIVE_HASH: u32 = 1 << 28;
/// Counters of one adapter.
const COUNTERS_MAX: usize = 65_536;
/// Length of a key, in bytes.
const KEY_MAX: usize = 1024;
/// Every buffer is longer than the answer by this, in bytes.
const SLACK: usize = 64 << 10;

/// The answers of an adapter's driver; `None` if there is no such adapter. A question that the driver does not know
/// has no answer.
pub(super) fn answers(name: &str) -> Option<Vec<Piece>> {
    let ask = Ask { socket: UnixDatagram::unbound().ok()?, name };
    let driver = ask.ask(&words(&[GET_DRIVER]), 196).ok()?;
    let (private_flags, statistics) = (length(&driver, 176)?, length(&driver, 180)?);
    let device = || Some(name.to_owned());
    let text = |offset: usize| {
        string(driver.get(offset..offset + STRING_BYTES)?).filter(|text| !text.is_empty())
    };
    let driver = Driver {
        device: device(),
        driver: text(4).unwrap_or_default(),
        bus: text(100),
        firmware: text(68),
    };
    let mut pieces = vec![Piece::Driver(driver)];
    let known = |number: u32| Some(number);
    if let Some([rx_max, tx_max, _, combined_max, rx, tx, _, combined]) = ask.numbers(GET_CHANNELS)
    {
        let (rx_max, tx_max, combined_max) = (known(rx_max), known(tx_max), known(combined_max));
        let (rx, tx, combined) = (known(rx), known(tx), known(combined));
        pieces.push(Piece::Channels(Channels {
            device: device(),
            rx_max,
            tx_max,
            combined_max,
            rx,
            tx,
            combined,
        }));
    }
    if let Some([rx_max, _, _, tx_max, rx, _, _, tx]) = ask.numbers(GET_RINGS) {
        let (rx_max, tx_max, rx, tx) = (known(rx_max), known(tx_max), known(rx), known(tx));
        pieces.push(Piece::Rings(Rings { device: device(), rx_max, tx_max, rx, tx }));
    }
    if let Some([rx_usecs, rx_frames, _, _, _, _, _, _, _, adaptive]) = ask.numbers(GET_COALESCING)
    {
        let is_adaptive_rx = Some(adaptive != 0);
        let (rx_usecs, rx_frames) = (known(rx_usecs), known(rx_frames));
        pieces.push(Piece::Coalescing(Coalescing {
            device: device(),
            is_adaptive_rx,
            rx_usecs,
            rx_frames,
        }));
    }
    pieces.extend(ask.rss().map(Piece::Indirection));
    if let Some([flags]) = ask.numbers(GET_FLAGS) {
        let values = [("ntuple-filters", FLAG_NTUPLE), ("receive-hashing", FLAG_RECEIVE_HASH)];
        let values = values.map(|(name, flag)| (name.to_owned(), flags & flag != 0));
        pieces.push(Piece::Features(Features {
            device: device(),
            values: values.to_vec(),
            is_private: false,
        }));
    }
    pieces.extend(ask.private_flags(private_flags).map(Piece::Features));
    pieces.extend(ask.statistics(statistics).map(Piece::Statistics));
    Some(pieces)
}

struct Ask<'a> {
    socket: UnixDatagram,
    name: &'a str,
}

impl Ask<'_> {
    /// Asks one question: a structure that begins with the command. `length` is that of the answer, in bytes.
    #[allow(unsafe_code)]
    fn ask(&self, question: &[u8], length: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0u8; length.saturating_add(SLACK)];
        if let Some(start) = buffer.get_mut(..question.len()) {
            start.copy_from_slice(question);
        }
        // SAFETY: all zeros are a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if self.name.is_empty() || self.name.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
        // SAFETY: name and buffer live until the call returns. The kernel writes the structure of the command, whose
        // counts the callers took from the driver just before; the buffer is longer by SLACK, which is 2048 strings or 8192
        // counters that a driver would have to add in between.
        let result = unsafe {
            libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        buffer.truncate(length);
        Ok(buffer)
    }

    /// The numbers that follow the command in a structure of numbers.
    fn numbers<const N: usize>(&self, command: u32) -> Option<[u32; N]> {
        let answer = self.ask(&words(&[command]), 4 + N * 4).ok()?;
        let numbers: Vec<u32> = answer.chunks_exact(4).skip(1).filter_map(word).collect();
        numbers.try_into().ok()
    }

    /// `struct ethtool_rxfh`: sizes of table and key at 8 and 12, the function at 16, table and key from 24.
    fn rss(&self) -> Option<Indirection> {
        let sizes = self.ask(&words(&[GET_RSS]), 24).ok()?;
        let table = length(&sizes, 8).filter(|entries| *entries <= TABLE_MAX)?;
        let key = length(&sizes, 12).filter(|bytes| *bytes <= KEY_MAX)?;
        let question =
            words(&[GET_RSS, 0, u32::try_from(table).ok()?, u32::try_from(key).ok()?, 0, 0]);
        let answer = self.ask(&question, 24 + table * 4 + key).ok()?;
        let function = match answer.get(16)? {
            1 => Some("toeplitz"),
            2 => Some("xor"),
            4 => Some("crc32"),
            _ => None,
        };
        let (entries, key) = answer.get(24..)?.split_at_checked(table * 4)?;
        // `struct ethtool_rxnfc`: the number of rings is at 8.
        let rings = self.ask(&words(&[GET_RX_RINGS]), 16).ok();
        let key = if key.iter().all(|byte| *byte == 0) { Vec::new() } else { key.to_vec() };
        Some(Indirection {
            device: Some(self.name.to_owned()),
            rings: rings.and_then(|rings| word(rings.get(8..12)?)),
            table: entries.chunks_exact(4).filter_map(word).collect(),
            key,
            function: function.map(str::to_owned),
        })
    }

    fn private_flags(&self, count: usize) -> Option<Features> {
        let names = self.strings(STRINGS_PRIVATE_FLAGS, count.min(32))?;
        let [flags] = self.numbers(GET_PRIVATE_FLAGS)?;
        let values = (0..32).zip(names).map(|(bit, name)| (name, flags >> bit & 1 == 1)).collect();
        Some(Features { device: Some(self.name.to_owned()), values, is_private: true })
    }

    fn statistics(&self, count: usize) -> Option<Statistics> {
        let names = self.strings(STRINGS_STATISTICS, count)?;
        let question = words(&[GET_STATISTICS, u32::try_from(count).ok()?]);
        let answer = self.ask(&question, 8 + count * 8).ok()?;
        let values = answer
            .get(8..)?
            .chunks_exact(8)
            .filter_map(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?)));
        Some(Statistics {
            device: Some(self.name.to_owned()),
            counters: names.into_iter().zip(values).collect(),
        })
    }

    /// `struct ethtool_gstrings`: set, count, strings of 32 bytes.
    fn strings(&self, set: u32, count: usize) -> Option<Vec<String>> {
        if count == 0 || count > COUNTERS_MAX {
            return None;
        }
        let question = words(&[GET_STRINGS, set, u32::try_from(count).ok()?]);
        let answer = self.ask(&question, 12 + count * STRING_BYTES).ok()?;
        Some(
            answer
                .get(12..)?
                .chunks_exact(STRING_BYTES)
                .map(|text| string(text).unwrap_or_default())
                .collect(),
        )
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.first_chunk()?))
}

fn length(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(word(bytes.get(offset..)?)?).ok()
}

fn string(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).trim().to_owned())
}
