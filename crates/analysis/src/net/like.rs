//! What a test of the network takes from a recording of SMB: the number of streams, the lengths of
//! writes, and a pace if SMB was not always busy.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_tables::command_class::CommandClass;

use crate::rows::columns::columns;

columns! {
    recording: text,
    connection: u64,
    command: text,
    transferred_bytes: u64,
    request_start: i64,
    response_end: i64,
    busy_ns: i64,
}

/// Connections and lengths that are counted.
const CONNECTIONS_MAX: usize = 65_536;
const SIZES_MAX: usize = 65_536;
/// A connection with a smaller part of the bytes is not counted as a stream.
const STREAM_SHARE: f64 = 0.01;
/// With a request in flight for a smaller part of the time, the client set the pace.
const BUSY_SHARE: f64 = 0.5;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Like {
    /// Connections that carried data.
    pub streams: u64,
    /// Length that carried the median byte of what clients wrote; null without such.
    pub write_bytes: Option<u64>,
    /// Likewise of what they read.
    pub read_bytes: Option<u64>,
    /// Bits per second of the busier direction, if SMB was not always busy.
    pub pace_bits_per_second: Option<u64>,
    /// Part of the time with a request in flight.
    pub busy_share: f64,
    /// File data read and written.
    pub bytes: u64,
    /// Reads and writes.
    pub operations: u64,
    /// Operations past the limits.
    pub left_out: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    bytes: u64,
    busy_ns: i64,
    first: Option<i64>,
    last: Option<i64>,
}

/// Reads the operations.
#[derive(Clone, Debug, Default)]
pub struct LikeTally {
    links: HashMap<(String, u64), Link>,
    /// Bytes by the length of the operations that carried them: read, written.
    sizes: [HashMap<u64, u64>; 2],
    operations: u64,
    left_out: u64,
}

impl LikeTally {
    /// Adds operations.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns::from_batch(batch)?;
        for row in 0..batch.num_rows() {
            let direction = match columns.command.get(row).map(CommandClass::from_command) {
                Some(CommandClass::Read) => 0,
                Some(CommandClass::Write) => 1,
                _ => continue,
            };
            let bytes = columns.transferred_bytes.get(row).unwrap_or(0);
            self.operations += 1;
            let recording = columns.recording.get(row).unwrap_or_default().to_owned();
            let key = (recording, columns.connection.get(row).unwrap_or(0));
            if self.links.len() >= CONNECTIONS_MAX && !self.links.contains_key(&key) {
                self.left_out += 1;
                continue;
            }
            let link = self.links.entry(key).or_default();
            link.bytes = link.bytes.saturating_add(bytes);
            link.busy_ns = link.busy_ns.saturating_add(columns.busy_ns.get(row).unwrap_or(0));
            if let Some(start) = columns.request_start.get(row) {
                link.first = Some(link.first.map_or(start, |first| first.min(start)));
            }
            if let Some(end) = columns.response_end.get(row) {
                link.last = Some(link.last.map_or(end, |last| last.max(end)));
            }
            let Some(sizes) = self.sizes.get_mut(direction) else { continue };
            if sizes.len() >= SIZES_MAX && !sizes.contains_key(&bytes) {
                self.left_out += 1;
                continue;
            }
            let sum = sizes.entry(bytes).or_default();
            *sum = sum.saturating_add(bytes);
        }
        Ok(())
    }

    /// The result; `None` without file data.
    pub fn finish(self) -> Option<Like> {
        let bytes = self.links.values().fold(0u64, |sum, link| sum.saturating_add(link.bytes));
        (bytes > 0).then_some(())?;
        let least = (bytes as f64 * STREAM_SHARE) as u64;
        let carrying: Vec<&Link> = self.links.values().filter(|link| link.bytes > least).collect();
        let span = |link: &Link| Some(link.last?.saturating_sub(link.first?).max(0));
        let spans: i64 = carrying.iter().filter_map(|link| span(link)).sum();
        let busy: i64 = carrying.iter().map(|link| link.busy_ns).sum();
        let busy_share = if spans > 0 { (busy as f64 / spans as f64).min(1.0) } else { 1.0 };
        let first = carrying.iter().filter_map(|link| link.first).min();
        let last = carrying.iter().filter_map(|link| link.last).max();
        let whole = last.zip(first).map_or(0, |(last, first)| last.saturating_sub(first));
        let [read, written] = &self.sizes;
        let sum =
            |sizes: &HashMap<u64, u64>| sizes.values().fold(0u64, |a, b| a.saturating_add(*b));
        let busier = sum(read).max(sum(written));
        let pace = (busy_share < BUSY_SHARE && whole > 0)
            .then(|| (busier as f64 * 8.0 / (whole as f64 / 1e9)) as u64);
        Some(Like {
            streams: carrying.len().max(1) as u64,
            write_bytes: median(written),
            read_bytes: median(read),
            pace_bits_per_second: pace.filter(|pace| *pace > 0),
            busy_share,
            bytes,
            operations: self.operations,
            left_out: self.left_out,
        })
    }
}

/// The length at which half of the bytes are in shorter operations.
fn median(sizes: &HashMap<u64, u64>) -> Option<u64> {
    let mut sorted: Vec<(u64, u64)> = sizes.iter().map(|(size, bytes)| (*size, *bytes)).collect();
    sorted.sort_unstable();
    let half = sorted.iter().map(|(_, bytes)| u128::from(*bytes)).sum::<u128>().div_ceil(2);
    let mut sum = 0;
    let found = sorted.into_iter().find(|(_, bytes)| {
        sum += u128::from(*bytes);
        sum >= half
    });
    found.map(|(size, _)| size).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::code;
    use smbscope_tables::operation::Operation;

    const READ: u16 = 8;
    const WRITE: u16 = 9;

    fn tally(rows: &[(u64, u16, u64, i64, i64)]) -> Option<Like> {
        let mut builder = OperationBuilder::new(None).unwrap();
        for (connection, command, bytes, start, end) in rows {
            let mut row = Operation::default();
            row.set_recording(builder.names.recording.intern("demo"));
            row.set_protocol(2);
            row.set_command(code::command(2, *command));
            row.set_connection(*connection);
            row.set_transferred_bytes(*bytes);
            row.set_request_start(*start);
            row.set_response_end(*end);
            row.set_busy_ns(end - start);
            builder.append(&[row]);
        }
        let mut tally = LikeTally::default();
        tally.operations(&builder.finish().unwrap()).unwrap();
        tally.finish()
    }

    #[test]
    fn connections_with_data_are_streams_and_the_median_byte_has_the_length() {
        let like = tally(&[
            (1, WRITE, 1000, 0, 500),
            (1, WRITE, 1000, 500, 1000),
            (2, READ, 500, 0, 1000),
            (2, READ, 10, 0, 0),
            // Too few bytes for a stream.
            (3, READ, 1, 0, 10),
        ])
        .unwrap();
        assert_eq!((like.streams, like.write_bytes, like.read_bytes), (2, Some(1000), Some(500)));
        assert_eq!((like.pace_bits_per_second, like.busy_share), (None, 1.0));
        assert_eq!((like.bytes, like.operations), (2511, 5));
    }

    #[test]
    fn a_client_that_waits_between_requests_set_the_pace() {
        let like =
            tally(&[(1, WRITE, 125, 0, 100_000_000), (1, WRITE, 125, 900_000_000, 1_000_000_000)])
                .unwrap();
        assert_eq!((like.pace_bits_per_second, like.busy_share), (Some(2000), 0.2));
    }

    #[test]
    fn without_data_there_is_nothing_to_take() {
        assert_eq!(tally(&[(1, READ, 0, 0, 1)]), None);
    }
}
