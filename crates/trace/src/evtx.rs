//! Event logs of Windows (`.evtx`): the events that its SMB server and client wrote on their own.
//!
//! The crate `evtx` reads the file; [`log_events`] knows the events. Everything else in a log is counted.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek};
use std::path::Path;

use evtx::{EvtxParser, ParserSettings};
use serde_json::Value as Json;
use smbscope_tables::Part;
use smbscope_tables::tables::{Coverage as Coverages, ServerEvent};
use smbscope_wire::read::u16_at;

use crate::event::{Coverage, Event, EventReader};
use crate::windows::log_events::{self, Value};
use crate::windows::{Provider, socket_address};

/// Bytes of the file's header, the place in it where the number of chunks is, and bytes of a chunk.
const HEADER_BYTES: usize = 4_096;
const CHUNKS_AT: usize = 42;
const CHUNK_BYTES: usize = 65_536;
const CHUNK_MAGIC: &[u8] = b"ElfChnk\0";
/// A log is kept in memory while it is read; Windows' own are at most 4 GiB, and usually 8 MiB.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Rows of a part.
const ROWS: usize = 4_096;

/// Reads a log.
pub struct Reader {
    recording: String,
    file_bytes: u64,
    parser: Option<EvtxParser<std::io::Cursor<Vec<u8>>>>,
    coverage: Coverage,
    parts: Vec<Part>,
}

impl Reader {
    /// Opens a log.
    ///
    /// # Errors
    ///
    /// Those of the operating system, a log that is too long, and one whose header is damaged.
    pub fn new(path: &Path, recording: &str) -> io::Result<Reader> {
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(path)?;
        let file_bytes = file.seek(io::SeekFrom::End(0))?;
        file.rewind()?;
        if file_bytes > FILE_BYTES_MAX {
            return Err(io::Error::other(
                "an event log of more than 1 GiB: export the events of SMB with wevtutil epl",
            ));
        }
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Reader::from_bytes(bytes, recording)
    }

    /// Reads a log that is in memory.
    ///
    /// # Errors
    ///
    /// A header that is damaged.
    pub fn from_bytes(bytes: Vec<u8>, recording: &str) -> io::Result<Reader> {
        let file_bytes = bytes.len() as u64;
        let (damaged, first_damaged) = missing_chunks(&bytes);
        let refused = |error| {
            let what = format!("an event log whose header is cut or damaged ({error})");
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let parser = match bytes.len() {
            0..HEADER_BYTES => {
                let what =
                    format!("an event log that is cut within its header ({file_bytes} bytes)");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            _ => EvtxParser::from_buffer(bytes).map_err(refused)?,
        };
        let settings = ParserSettings::default().num_threads(1);
        Ok(Reader {
            recording: recording.to_owned(),
            file_bytes,
            parser: Some(parser.with_configuration(settings)),
            coverage: Coverage {
                format: "Windows event log".to_owned(),
                damaged,
                first_damaged,
                ..Coverage::default()
            },
            parts: Vec::new(),
        })
    }
}

/// How many of the chunks that the header counts are not there, or are cut, and the first of them. A log that is written to
/// has a header that is older than its last chunks, and empty chunks behind them.
fn missing_chunks(bytes: &[u8]) -> (u64, Option<String>) {
    let counted = usize::from(u16_at(bytes, CHUNKS_AT).unwrap_or(0)).max(1);
    let is_there = |chunk: usize| {
        let at = HEADER_BYTES + chunk * CHUNK_BYTES;
        bytes.get(at..at + CHUNK_BYTES).is_some_and(|chunk| chunk.starts_with(CHUNK_MAGIC))
    };
    let held = bytes.len().saturating_sub(HEADER_BYTES);
    let cut = Some(held / CHUNK_BYTES).filter(|_| !held.is_multiple_of(CHUNK_BYTES));
    let cut = cut.filter(|chunk| *chunk >= counted);
    let mut missing = (0..counted).filter(|chunk| !is_there(*chunk)).chain(cut);
    let Some(first) = missing.next() else { return (0, None) };
    (1 + missing.count() as u64, Some(format!("chunk {}", first + 1)))
}

impl EventReader for Reader {
    fn step(&mut self, _: &mut dyn FnMut(Event)) -> io::Result<bool> {
        let Some(mut parser) = self.parser.take() else { return Ok(false) };
        let mut rows: Vec<ServerEvent> = Vec::new();
        let (coverage, parts) = (&mut self.coverage, &mut self.parts);
        let mut by_provider = BTreeMap::<String, u64>::new();
        for record in parser.records_json_value() {
            let Ok(record) = record else {
                coverage.damaged += 1;
                let after = coverage.events;
                coverage
                    .first_damaged
                    .get_or_insert_with(|| format!("the record after {after} records"));
                continue;
            };
            coverage.events += 1;
            let header_ns = i64::try_from(record.timestamp.as_nanosecond()).unwrap_or(0);
            let time_ns = created_ns(&record.data).unwrap_or(header_ns);
            coverage.at(time_ns);
            match row(&record.data, time_ns, &self.recording) {
                Some(row) => {
                    *by_provider.entry(row.provider.clone()).or_default() += 1;
                    rows.push(row);
                }
                None => coverage.events_other += 1,
            }
            if rows.len() >= ROWS {
                parts.push(Part::ServerEvents(std::mem::take(&mut rows)));
            }
        }
        if !rows.is_empty() {
            parts.push(Part::ServerEvents(rows));
        }
        coverage.read_bytes = self.file_bytes;
        let read = by_provider.iter().map(|(provider, count)| format!("{count} of {provider}"));
        let read = if by_provider.is_empty() {
            "none of them of SMBServer or SMBClient".to_owned()
        } else {
            read.collect::<Vec<_>>().join(", ")
        };
        let notes = format!("{} events: {read}.", coverage.events);
        let has = |provider: Provider| by_provider.contains_key(provider.short());
        let reason = match (has(Provider::SmbServer), has(Provider::SmbClient)) {
            (true, _) => crate::windows::server::REASON,
            (false, true) => crate::windows::CLIENT_REASON,
            (false, false) => "an event log without events of SMB",
        };
        parts.push(Part::Coverage(Box::new(Coverages {
            recording: self.recording.clone(),
            format: coverage.format.clone(),
            vantage_reason: reason.to_owned(),
            start: coverage.start_ns,
            end: coverage.end_ns,
            file_bytes: self.file_bytes,
            records_damaged: coverage.damaged,
            cut_off: coverage.first_damaged.as_ref().map(|first| format!("damaged at {first}")),
            notes: Some(notes),
            ..Coverages::default()
        })));
        Ok(false)
    }

    fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }

    fn read_bytes(&self) -> u64 {
        self.coverage.read_bytes
    }

    fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }
}

/// When the event was created, ns since 1970. Windows' own time of the record, in its header, is that of another event
/// in logs that were exported.
fn created_ns(record: &Json) -> Option<i64> {
    let time = record.pointer("/Event/System/TimeCreated/#attributes/SystemTime")?.as_str()?;
    let (date, clock) = time.trim_end_matches([' ', 'Z', 'U', 'T', 'C']).split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(|number| number.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(|number| number.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_date =
        (1601..=2262).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_clock =
        (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    let is_fraction = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !(is_date && is_clock && is_fraction) {
        return None;
    }
    let fraction_ns = format!("{fraction:0<9}").parse::<i64>().ok()?;
    let seconds = smbscope_tables::date::days(year, month, day) * 86_400
        + hour * 3_600
        + minute * 60
        + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// The row of a record.
fn row(record: &Json, time_ns: i64, recording: &str) -> Option<ServerEvent> {
    let event = record.get("Event")?;
    let system = event.get("System")?;
    let name = system.pointer("/Provider/#attributes/Name")?.as_str()?;
    let provider = Provider::ALL.into_iter().find(|provider| provider.name() == name)?;
    let id = system.get("EventID")?;
    let id = id.as_u64().or_else(|| id.get("#text")?.as_u64())?;
    let id = u16::try_from(id).ok()?;
    let data = [event.get("EventData"), event.pointer("/UserData/EventData")];
    let get = |field: &str| data.into_iter().flatten().find_map(|data| value(data.get(field)?));
    log_events::of_values(provider, id, time_ns, recording, &get)
}

/// Numbers can be numbers or text, decimal or hexadecimal; addresses are the bytes of a SOCKADDR in hexadecimal.
fn value(json: &Json) -> Option<Value> {
    if let Some(number) = json.as_u64() {
        return Some(Value::Number(number));
    }
    let text = json.as_str()?;
    if let Some(digits) = text.strip_prefix("0x")
        && let Ok(number) = u64::from_str_radix(digits, 16)
    {
        return Some(Value::Number(number));
    }
    if let Some(end) = bytes(text).and_then(|bytes| socket_address(&bytes)) {
        return Some(Value::Address(end));
    }
    Some(text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Number))
}

/// Bytes of hexadecimal digits, as many as a SOCKADDR can have.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !(32..=256).contains(&digits.len()) || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().as_chunks::<2>().0.iter();
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_row() {
        let record = serde_json::json!({ "Event": {
            "System": {
                "Provider": { "#attributes": { "Name": "Microsoft-Windows-SMBServer" } },
                "EventID": 1020,
            },
            "UserData": { "EventData": {
                "Command": 5,
                "UserName": "LAB\\alice",
                "ClientName": "",
                "ClientAddress": "0200BD010A0000070000000000000000",
                "ShareName": "\\\\*\\home",
                "FileName": "a.docx",
                "DurationInMilliseconds": "31000",
                "ThresholdInMilliseconds": 15000,
            } },
        } });
        let row = row(&record, 7, "log").unwrap();
        assert_eq!(
            (row.kind.as_str(), row.command.as_deref()),
            ("slow_file_system", Some("Create"))
        );
        assert_eq!(
            (row.client.as_deref(), row.duration_ns),
            (Some("10.0.0.7"), Some(31_000_000_000))
        );
        let other = serde_json::json!({ "Event": { "System": { "EventID": 1 } } });
        assert_eq!(super::row(&other, 7, "log"), None);
        assert_eq!(value(&serde_json::json!("0xc000006d")), Some(Value::Number(0xc000_006d)));
    }

    #[test]
    fn the_time_is_that_of_the_event_and_not_of_the_record() {
        let of = |time: &str| {
            created_ns(&serde_json::json!({ "Event": { "System": {
                "TimeCreated": { "#attributes": { "SystemTime": time } },
            } } }))
        };
        let expected = Some(1_595_802_374_522_570_000);
        assert_eq!(of("2020-07-26T22:26:14.522570Z"), expected);
        assert_eq!(of("2020-07-26 22:26:14.522570 UTC"), expected);
        assert_eq!(of("2020-07-26T22:26:14Z"), Some(1_595_802_374_000_000_000));
        assert_eq!(of("1601-01-01T00:00:00Z"), None);
        for time in
            ["", "2020-07-26", "2020-13-26T22:26:14Z", "2020-07-26T22:26:14.Z5", "x-1-1T1:1:1"]
        {
            assert_eq!(of(time), None, "{time}");
        }
    }

    #[test]
    fn an_event_that_reports_no_trouble_is_a_row_that_counts() {
        let record = |provider: &str, id: u16| {
            serde_json::json!({ "Event": {
            "System": { "Provider": { "#attributes": { "Name": provider } }, "EventID": id },
            "UserData": { "EventData": { "Name": "MSEDGEWIN10" } },
        } })
        };
        let row = |provider, id| super::row(&record(provider, id), 7, "log");
        let endpoint = row("Microsoft-Windows-SMBServer", 1_010).unwrap();
        assert_eq!((endpoint.kind.as_str(), endpoint.event), ("other", 1_010));
        // Other parts of Windows count only where an event is known.
        assert_eq!(row("Microsoft-Windows-Kernel-Processor-Power", 38), None);
        assert_eq!(row("Microsoft-Windows-Sysmon", 10), None);
    }

    #[test]
    fn a_limited_processor_is_in_the_log_of_the_system() {
        let record = serde_json::json!({ "Event": {
            "System": {
                "Provider": { "#attributes": { "Name": "Microsoft-Windows-Kernel-Processor-Power" } },
                "EventID": 37,
            },
            "EventData": { "Group": 0, "Number": 3, "CapDurationInSeconds": 71, "PpcChanges": 1 },
        } });
        let row = row(&record, 7, "log").unwrap();
        assert_eq!((row.kind.as_str(), row.event), ("processor_limited", 37));
        assert_eq!(row.duration_ns, Some(71_000_000_000));
    }

    #[test]
    fn chunks_that_are_missing_are_counted() {
        let mut log = vec![0; HEADER_BYTES];
        log[..8].copy_from_slice(b"ElfFile\0");
        log[CHUNKS_AT] = 3;
        for _ in 0..3 {
            log.extend_from_slice(CHUNK_MAGIC);
            log.resize(log.len() + CHUNK_BYTES - CHUNK_MAGIC.len(), 0);
        }
        assert_eq!(missing_chunks(&log), (0, None));
        let second = HEADER_BYTES + CHUNK_BYTES;
        let cut = &log[..second + 1_000];
        assert_eq!(missing_chunks(cut), (2, Some("chunk 2".to_owned())));
        log[second..second + 8].fill(0);
        assert_eq!(missing_chunks(&log), (1, Some("chunk 2".to_owned())));
        // The header of a log that is written to is older than its chunks.
        log[CHUNKS_AT] = 1;
        assert_eq!(missing_chunks(&log), (0, None));
        let cut = &log[..log.len() - 1];
        assert_eq!(missing_chunks(cut), (1, Some("chunk 3".to_owned())));
        // A log without any chunk is not an empty one.
        log[CHUNKS_AT] = 0;
        assert_eq!(missing_chunks(&log[..HEADER_BYTES]), (1, Some("chunk 1".to_owned())));
    }

    #[test]
    fn what_is_no_event_log_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"ElfFile\0 and nothing else").unwrap();
        let refused = Reader::new(file.path(), "x").err().map(|error| error.to_string());
        let expected = "an event log that is cut within its header (25 bytes)";
        assert_eq!(refused.as_deref(), Some(expected));
    }
}
