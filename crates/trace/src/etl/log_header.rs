//! The first record of a log: TRACE_LOGFILE_HEADER (`evntrace.h`), in the layouts of 32- and 64-bit
//! systems, which differ by two pointers.

use super::buffer::{BufferHeader, HEADER_BYTES, TYPE_LOG_HEADER};
use super::clock::{self, Clock, ClockKind};
use super::record::{Origin, Record};
use smbscope_wire::compression::Algorithm;
use smbscope_wire::read::{u16_at, u32_at, u64_at};

/// The buffers are compressed (EVENT_TRACE_COMPRESSED_MODE of LogFileMode).
const MODE_COMPRESSED: u32 = 0x0400_0000;

/// What the first buffer says about the log.
#[derive(Clone, Copy, Debug)]
pub struct LogHeader {
    /// Size of the buffers when they were recorded.
    pub buffer_bytes: usize,
    /// Build of Windows.
    pub build: u32,
    pub cpus: u32,
    pub cpu_mhz: u32,
    /// Frequency of the performance counter.
    pub ticks_per_second: i64,
    /// When the machine was started, ns since 1970; none if it is not said.
    pub boot_ns: Option<i64>,
    pub events_lost: u32,
    pub buffers_lost: u32,
    /// `None` if the number is not known.
    pub clock_kind: Option<ClockKind>,
    pub clock: Clock,
    /// When the log began and ended, if that is known.
    pub ticks: Option<(i64, i64)>,
    /// What cannot be.
    pub damaged: Option<&'static str>,
    /// `None` if the buffers are not compressed, or with an unknown algorithm.
    pub algorithm: Option<Algorithm>,
}

impl LogHeader {
    /// Reads it from the first buffer of a file, of which `bytes` are the beginning.
    pub fn of_first_buffer(bytes: &[u8]) -> Option<LogHeader> {
        let buffer = BufferHeader::parse(bytes)?;
        if buffer.kind != TYPE_LOG_HEADER || !buffer.is_plausible() || buffer.is_compressed {
            return None;
        }
        let record = Record::parse(bytes.get(HEADER_BYTES..)?, buffer.cpu)?;
        if record.origin != (Origin::Kernel { group: 0, opcode: 0 }) {
            return None;
        }
        LogHeader::parse(&record, buffer.state)
    }

    fn parse(record: &Record<'_>, state: u32) -> Option<LogHeader> {
        let fields = record.payload;
        // From here on the fields move by the two pointers before the time zone.
        let after = if record.pointer_bytes == 8 { 248 } else { 240 };
        let signed = |at| u64_at(fields, at).map(|value| value as i64);
        let version = u16_at(fields, 4)?;
        let cpus = u32_at(fields, 12)?;
        let mode = u32_at(fields, 32)?;
        let cpu_mhz = u32_at(fields, 52)?;
        let number = u32_at(fields, after + 24)?;
        // The major version of Windows is 5 to 10, and there is at least one CPU.
        if !(4..=20).contains(&(version & 0xff)) || !(1..=65_536).contains(&cpus) {
            return None;
        }
        let clock_kind = ClockKind::from_number(number);
        let rate = match clock_kind {
            Some(ClockKind::Cycles) => i64::from(cpu_mhz) * 1_000_000,
            _ => signed(after + 8)?,
        };
        let kind = clock_kind.unwrap_or(ClockKind::PerformanceCounter);
        let (start, end) = (signed(after + 16)?, signed(16)?);
        let is_started = clock::is_date(start);
        let damaged = match (is_started, kind == ClockKind::SystemTime || clock::is_rate(rate)) {
            (true, true) => None,
            (false, _) => Some("the start time in the header of the log"),
            (_, false) => Some("the frequency of the clock in the header of the log"),
        };
        // Without a date the log begins in 1970.
        let since_1970 = if is_started { start } else { clock::EPOCH_FILETIME };
        let clock = Clock::new(kind, record.ticks, since_1970, rate);
        // A log that was not closed has no end.
        let length = end.checked_sub(start).filter(|length| is_started && *length >= 0);
        let ticks = length.map(|length| match kind {
            ClockKind::SystemTime => (start, end),
            _ => {
                let length = clock.ticks(length.saturating_mul(100));
                (record.ticks, record.ticks.saturating_add(length))
            }
        });
        Some(LogHeader {
            buffer_bytes: usize::try_from(u32_at(fields, 0)?).ok()?,
            build: u32_at(fields, 8)?,
            ticks_per_second: signed(after + 8)?,
            cpus,
            cpu_mhz,
            boot_ns: signed(after).and_then(clock::filetime_ns),
            events_lost: u32_at(fields, 48)?,
            buffers_lost: u32_at(fields, after + 28)?,
            clock_kind,
            clock,
            ticks,
            damaged,
            algorithm: (mode & MODE_COMPRESSED != 0)
                .then(|| super::buffer::algorithm(state))
                .flatten(),
        })
    }

    /// A header with this clock only.
    #[cfg(test)]
    pub fn for_tests(clock: Clock) -> LogHeader {
        LogHeader {
            buffer_bytes: 65_536,
            boot_ns: None,
            build: 0,
            cpus: 1,
            cpu_mhz: 0,
            ticks_per_second: 10_000_000,
            events_lost: 0,
            buffers_lost: 0,
            clock_kind: Some(ClockKind::PerformanceCounter),
            clock,
            ticks: None,
            damaged: None,
            algorithm: None,
        }
    }
}
