//! The slowest operations, each with a Wireshark display filter that shows its messages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::data::Slow;
use crate::rows::columns::Columns;

/// The slowest operations so far.
pub(crate) struct Slowest<T> {
    /// The fastest of them first; among equals the latest.
    heap: BinaryHeap<Reverse<(i64, Reverse<u64>)>>,
    rows: Vec<((i64, Reverse<u64>), T)>,
    limit: usize,
    threshold: i64,
    seen: u64,
}

impl<T> Slowest<T> {
    pub(crate) fn new(limit: usize) -> Slowest<T> {
        Slowest { heap: BinaryHeap::new(), rows: Vec::new(), limit, threshold: i64::MIN, seen: 0 }
    }

    /// Offers an operation; `row` is called only if it is among the slowest so far.
    #[inline]
    pub(crate) fn offer(&mut self, elapsed_ns: i64, row: impl FnOnce() -> T) {
        self.seen += 1;
        if elapsed_ns > self.threshold || self.rows.len() < self.limit {
            self.insert(elapsed_ns, row());
        }
    }

    #[cold]
    fn insert(&mut self, elapsed_ns: i64, row: T) {
        let key = (elapsed_ns, Reverse(self.seen));
        self.heap.push(Reverse(key));
        self.rows.push((key, row));
        if self.heap.len() > self.limit
            && let Some(Reverse(least)) = self.heap.pop()
        {
            self.rows.retain(|(key, _)| *key != least);
        }
        if self.heap.len() == self.limit {
            self.threshold = self.heap.peek().map_or(i64::MAX, |Reverse(key)| key.0);
        }
    }

    /// Those kept so far, in no order.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.iter_mut().map(|(_, row)| row)
    }

    pub(crate) fn finish(mut self) -> Vec<T> {
        self.rows.sort_by_key(|(key, _)| Reverse(*key));
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// A row as data. Its command gets its name when all are known.
pub(crate) fn slow(columns: &Columns, row: usize, elapsed_ns: i64) -> Slow {
    let text = |column: &crate::rows::columns::Text| column.get(row).map(str::to_owned);
    let (protocol, client_port) = (columns.protocol.get(row), columns.client_port.get(row));
    let (message_id, frames) = (
        columns.message_id.get(row),
        [columns.request_frame.get(row), columns.response_frame.get(row)],
    );
    Slow {
        recording: text(&columns.recording),
        operation: columns.operation.get(row),
        command: String::new(),
        detail: text(&columns.detail),
        status: text(&columns.status_name).or_else(|| {
            let status = columns.status.get(row)?;
            Some(format!("0x{status:08x}"))
        }),
        client: text(&columns.client),
        client_port,
        server: text(&columns.server),
        user: text(&columns.user),
        share: text(&columns.share),
        path: text(&columns.path),
        requested_bytes: columns.requested_bytes.get(row),
        transferred_bytes: columns.transferred_bytes.get(row),
        outstanding: columns.outstanding.get(row),
        request_start_ns: columns.request_start.get(row),
        elapsed_ns,
        request_transfer_ns: columns.request_transfer_ns.get(row),
        turnaround_ns: columns.turnaround_ns.get(row),
        server_ns: columns.server_ns.get(row),
        response_transfer_ns: columns.response_transfer_ns.get(row),
        request_frame: frames[0],
        response_frame: frames[1],
        capture_file: text(&columns.capture_file),
        filter: filter(protocol, client_port, message_id, frames),
    }
}

/// By MessageId where it is unique and can be read, else by the frames.
pub fn filter(
    protocol: Option<u8>,
    client_port: Option<u16>,
    message_id: Option<u64>,
    frames: [Option<u64>; 2],
) -> Option<String> {
    if let (Some(2), Some(port), Some(message)) = (protocol, client_port, message_id) {
        return Some(format!("tcp.port == {port} && smb2.msg_id == {message}"));
    }
    let mut words: Vec<_> =
        frames.into_iter().flatten().map(|frame| format!("frame.number == {frame}")).collect();
    words.dedup();
    (!words.is_empty()).then(|| words.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_slowest_and_the_first_among_equals() {
        let mut slowest = Slowest::new(3);
        for (n, elapsed_ns) in [5, 9, 5, 7, 5, 9].into_iter().enumerate() {
            slowest.offer(elapsed_ns, || Slow {
                operation: Some(n as u64),
                elapsed_ns,
                ..Slow::default()
            });
        }
        let found: Vec<_> = slowest.finish().iter().map(|row| row.operation).collect();
        assert_eq!(found, [Some(1), Some(5), Some(3)]);
    }

    #[test]
    fn filters_name_the_message_or_its_frames() {
        let frames = [Some(7), Some(9)];
        assert_eq!(
            filter(Some(2), Some(50_123), Some(17), frames).as_deref(),
            Some("tcp.port == 50123 && smb2.msg_id == 17")
        );
        assert_eq!(
            filter(Some(1), Some(50_123), Some(17), frames).as_deref(),
            Some("frame.number == 7 || frame.number == 9")
        );
        assert_eq!(
            filter(Some(2), Some(1), None, [Some(7), Some(7)]).as_deref(),
            Some("frame.number == 7")
        );
        assert_eq!(filter(None, None, None, [None, None]), None);
    }
}
