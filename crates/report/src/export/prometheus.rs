//! Metrics for Prometheus and what speaks its language, as OpenMetrics text.
//!
//! Operations become counters and classic histograms by operation, share and slice. Names and buckets are those of
//! Samba's own endpoint (`smb_prometheus_endpoint`, 4.23 and later) where they mean the same; it has no shares, no
//! slices, and no buckets below 1 ms or above 256 ms. Labels are bounded: the first shares have labels of their own,
//! the others share one. People, machines and paths are never labels.

mod text;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow::error::ArrowError;
use smbscope_analysis::summary::StatusClass;
use smbscope_tables::command_class::CommandClass;
use smbscope_tables::named_columns::{Flags, Numbers, Text};
use smbscope_tables::slice::Kind;

use text::Writer;

/// Shares with labels of their own.
const SHARES_MAX: usize = 50;
/// Operations with labels of their own: the protocol has fewer, files may have anything.
const OPERATIONS_MAX: usize = 100;
/// Pairs of dialect and protection with labels of their own.
const PROTECTIONS_MAX: usize = 40;
/// The label of values beyond the maximum.
const OTHER: &str = "other";
/// Upper bounds of the buckets, µs: those of Samba (1 ms to 256 ms) and others on both sides.
const BOUNDS_US: [u64; 18] = [
    125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000, 30_000_000,
];

/// The columns of operations that are read.
pub fn columns() -> Vec<&'static str> {
    const COLUMNS: [&str; 14] = [
        "protocol",
        "command",
        "share",
        "dialect",
        "signed",
        "encrypted",
        "status",
        "turnaround_ns",
        "elapsed_ns",
        "waits",
        "transferred_bytes",
        "request_wire_bytes",
        "response_wire_bytes",
        "response_end",
    ];
    COLUMNS.into_iter().chain(Kind::parts().map(Kind::column_name)).collect()
}

/// What a live recorder says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// Packets received and lost; `None` without an interface.
    pub packets: Option<(u64, u64)>,
    /// Events of the probe received and lost; `None` without a probe.
    pub events: Option<(u64, u64)>,
    /// Events of CPUs received and lost; `None` if CPUs are not recorded.
    pub processor_events: Option<(u64, u64)>,
}

/// Counters of everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    shares: Labels<SHARES_MAX>,
    operations: Labels<OPERATIONS_MAX>,
    protections: Labels<PROTECTIONS_MAX>,
    requests: BTreeMap<(usize, usize), Requests>,
    slices: BTreeMap<(usize, usize), Histogram>,
    smb1: BTreeMap<usize, u64>,
    by_protection: BTreeMap<usize, u64>,
    breaks: u64,
    waiting: u64,
    unknown: u64,
    /// Sum of the elapsed times, ns: its rate is the mean number of operations in flight.
    elapsed_ns: u64,
    /// The last reply, ns since 1970.
    last_ns: Option<i64>,
}

/// Requests of one operation on one share.
#[derive(Clone, Debug, Default)]
struct Requests {
    duration: Histogram,
    count: u64,
    failed: u64,
    errors: u64,
    received_bytes: u64,
    sent_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
}

/// Durations by bucket.
#[derive(Clone, Debug, Default)]
struct Histogram {
    /// One for each bound, and one for what is longer.
    buckets: [u64; BOUNDS_US.len() + 1],
    sum_ns: u64,
}

impl Histogram {
    fn add(&mut self, ns: i64) {
        let ns = u64::try_from(ns).unwrap_or(0);
        let place = BOUNDS_US.partition_point(|bound| bound.saturating_mul(1_000) < ns);
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += 1;
        }
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }
}

/// The first values of a label, up to a maximum.
#[derive(Clone, Debug, Default)]
struct Labels<const MAX: usize> {
    places: BTreeMap<String, usize>,
    names: Vec<String>,
    /// Rows whose value has no label of its own.
    folded: u64,
}

impl<const MAX: usize> Labels<MAX> {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let name = if self.names.len() < MAX {
            name
        } else {
            self.folded += 1;
            if let Some(place) = self.places.get(OTHER) {
                return *place;
            }
            OTHER
        };
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or(OTHER, String::as_str)
    }
}

impl Metrics {
    /// Adds operations.
    ///
    /// # Errors
    ///
    /// If a column has another type than in the table of operations.
    pub fn operations(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let text = |name| Text::from_batch(batch, name);
        let flags = |name| Flags::from_batch(batch, name);
        let signed = |name| Numbers::<Int64Type>::from_batch(batch, name);
        let unsigned = |name| Numbers::<UInt64Type>::from_batch(batch, name);
        let (command, share, dialect) = (text("command")?, text("share")?, text("dialect")?);
        let (is_signed, encrypted, waits) =
            (flags("signed")?, flags("encrypted")?, flags("waits")?);
        let (protocol, status) = (unsigned("protocol")?, unsigned("status")?);
        let (turnaround, elapsed) = (signed("turnaround_ns")?, signed("elapsed_ns")?);
        let (transferred, end) = (unsigned("transferred_bytes")?, signed("response_end")?);
        let (received, sent) = (unsigned("request_wire_bytes")?, unsigned("response_wire_bytes")?);
        let slices = Kind::parts().map(|kind| signed(kind.column_name()));
        let slices = slices.collect::<Result<Vec<_>, ArrowError>>()?;
        for row in 0..batch.num_rows() {
            self.last_ns = self.last_ns.max(end.get(row));
            let Some(name) = command.get(row) else {
                self.unknown += 1;
                continue;
            };
            if protocol.get(row) == Some(1) {
                *self.smb1.entry(self.operations.place(name)).or_default() += 1;
                continue;
            }
            let operation = self.operations.place(samba_name(name));
            let share = self.shares.place(&share_name(share.get(row)));
            let protection = match (encrypted.get(row), is_signed.get(row)) {
                (true, _) => "encrypted",
                (false, true) => "signed",
                (false, false) => "none",
            };
            let dialect = dialect.get(row).unwrap_or("unknown");
            let protection = self.protections.place(&format!("{dialect}/{protection}"));
            *self.by_protection.entry(protection).or_default() += 1;
            self.breaks += u64::from(name == "OplockBreak");
            let requests = self.requests.entry((operation, share)).or_default();
            requests.count += 1;
            if let Some(status) = status.get(row).and_then(|status| u32::try_from(status).ok()) {
                requests.failed += u64::from(status >> 30 == 3);
                let class = StatusClass::from_status(status);
                requests.errors += u64::from(status != 0 && class == StatusClass::Error);
            }
            requests.received_bytes += received.get(row).unwrap_or(0);
            requests.sent_bytes += sent.get(row).unwrap_or(0);
            let bytes = transferred.get(row).unwrap_or(0);
            match CommandClass::from_command(name) {
                CommandClass::Read => requests.read_bytes += bytes,
                CommandClass::Write => requests.written_bytes += bytes,
                _ => {}
            }
            // Its time is not latency.
            if waits.get(row) {
                self.waiting += 1;
                continue;
            }
            if let Some(ns) = turnaround.get(row) {
                requests.duration.add(ns);
            }
            let ns = elapsed.get(row).and_then(|ns| u64::try_from(ns).ok());
            self.elapsed_ns = self.elapsed_ns.saturating_add(ns.unwrap_or(0));
            for (place, column) in slices.iter().enumerate() {
                if let Some(ns) = column.get(row) {
                    self.slices.entry((place, operation)).or_default().add(ns);
                }
            }
        }
        Ok(())
    }

    /// All metrics as OpenMetrics text.
    pub fn text(&self, recorder: Option<&Recorder>) -> String {
        let mut out = Writer::default();
        self.requests(&mut out);
        self.slices(&mut out);
        self.totals(&mut out);
        if let Some(recorder) = recorder {
            write_recorder(&mut out, recorder);
        }
        out.finish()
    }

    fn requests(&self, out: &mut Writer) {
        let labels = |(operation, share): &(usize, usize)| {
            [("operation", self.operations.name(*operation)), ("share", self.shares.name(*share))]
        };
        out.family(
            "smb_smb2_request_duration_microseconds",
            "histogram",
            "From the last byte of a request to the first byte of its reply.",
        );
        for (key, requests) in &self.requests {
            out.histogram(&labels(key), &requests.duration.buckets, requests.duration.sum_ns);
        }
        type Pick = fn(&Requests) -> u64;
        // Samba's names of counters have no suffix, so that OpenMetrics cannot call them counters.
        let families: [(&str, &str, &str, Pick); 8] = [
            (
                "smbscope_requests",
                "counter",
                "Requests with a reply, or whose connection ended.",
                |it| it.count,
            ),
            (
                "smb_smb2_request_failed",
                "unknown",
                "Requests with an NTSTATUS of severity error (a counter).",
                |it| it.failed,
            ),
            (
                "smbscope_errors",
                "counter",
                "Failed requests, without names that do not exist and without statuses of normal operation.",
                |it| it.errors,
            ),
            (
                "smb_smb2_request_inbytes",
                "unknown",
                "Bytes of requests on the wire (a counter).",
                |it| it.received_bytes,
            ),
            (
                "smb_smb2_request_outbytes",
                "unknown",
                "Bytes of replies on the wire (a counter).",
                |it| it.sent_bytes,
            ),
            ("smbscope_read_bytes", "counter", "Bytes of file data read.", |it| it.read_bytes),
            ("smbscope_written_bytes", "counter", "Bytes of file data written.", |it| {
                it.written_bytes
            }),
            ("smbscope_timed_requests", "counter", "Requests with a duration.", |it| {
                it.duration.buckets.iter().sum()
            }),
        ];
        for (name, kind, help, pick) in families {
            out.family(name, kind, help);
            for (key, requests) in &self.requests {
                out.value(&labels(key), pick(requests));
            }
        }
    }

    fn slices(&self, out: &mut Writer) {
        out.family(
            "smbscope_slice_duration_microseconds",
            "histogram",
            "What the server spent the time of an operation on, measured inside it.",
        );
        let kinds: Vec<_> = Kind::parts().collect();
        for ((slice, operation), histogram) in &self.slices {
            let slice = kinds.get(*slice).map_or(OTHER, |kind| kind.name());
            let labels = [("operation", self.operations.name(*operation)), ("slice", slice)];
            out.histogram(&labels, &histogram.buckets, histogram.sum_ns);
        }
    }

    fn totals(&self, out: &mut Writer) {
        out.family("smb_smb1_request", "counter", "Requests of SMB1.");
        for (operation, count) in &self.smb1 {
            out.value(&[("operation", self.operations.name(*operation))], *count);
        }
        out.family("smbscope_protected_requests", "counter", "Requests by dialect and protection.");
        for (place, count) in &self.by_protection {
            let name = self.protections.name(*place);
            let (dialect, protection) = name.rsplit_once('/').unwrap_or((name, OTHER));
            out.value(&[("dialect", dialect), ("protection", protection)], *count);
        }
        out.family(
            "smbscope_in_flight_seconds",
            "counter",
            "Sum of the times of requests: its rate is the mean number in flight.",
        );
        out.seconds(&[], self.elapsed_ns);
        let counters = [
            (
                "smbscope_breaks",
                "Breaks of oplocks and leases, and their acknowledgements.",
                self.breaks,
            ),
            (
                "smbscope_waiting_requests",
                "Requests that wait by design (notifications, blocked locks): not in the durations.",
                self.waiting,
            ),
            (
                "smbscope_unknown_requests",
                "Requests without a command: encrypted and not decrypted.",
                self.unknown,
            ),
        ];
        for (name, help, value) in counters {
            out.family(name, "counter", help);
            out.value(&[], value);
        }
        out.family(
            "smbscope_folded_rows",
            "counter",
            "Rows whose label is `other`, because there are too many values.",
        );
        let folded = [
            ("share", self.shares.folded),
            ("operation", self.operations.folded),
            ("dialect", self.protections.folded),
        ];
        for (label, value) in folded {
            out.value(&[("label", label)], value);
        }
        if let Some(last_ns) = self.last_ns {
            out.family(
                "smbscope_last_reply_timestamp_seconds",
                "gauge",
                "When the last reply ended.",
            );
            out.seconds(&[], u64::try_from(last_ns).unwrap_or(0));
        }
    }
}

fn write_recorder(out: &mut Writer, recorder: &Recorder) {
    let sources = [
        ("packets", recorder.packets),
        ("events", recorder.events),
        ("processor_events", recorder.processor_events),
    ];
    out.family("smbscope_recorder_received", "counter", "What the recorder received.");
    for (source, counts) in sources {
        counts.iter().for_each(|(received, _)| out.value(&[("source", source)], *received));
    }
    out.family(
        "smbscope_recorder_dropped",
        "counter",
        "What the recorder lost: operations are missing.",
    );
    for (source, counts) in sources {
        counts.iter().for_each(|(_, dropped)| out.value(&[("source", source)], *dropped));
    }
}

/// A share by its name, without the server, whose names differ by client.
fn share_name(share: Option<&str>) -> String {
    let name = share.unwrap_or("none");
    name.rsplit('\\').next().unwrap_or(name).to_lowercase()
}

/// Samba's name of an SMB2 command.
fn samba_name(command: &str) -> &str {
    match command {
        "Negotiate" => "negprot",
        "SessionSetup" => "sesssetup",
        "Logoff" => "logoff",
        "TreeConnect" => "tcon",
        "TreeDisconnect" => "tdis",
        "Create" => "create",
        "Close" => "close",
        "Flush" => "flush",
        "Read" => "read",
        "Write" => "write",
        "Lock" => "lock",
        "Ioctl" => "ioctl",
        "Cancel" => "cancel",
        "Echo" => "keepalive",
        "QueryDirectory" => "find",
        "ChangeNotify" => "notify",
        "QueryInfo" => "getinfo",
        "SetInfo" => "setinfo",
        "OplockBreak" => "break",
        other => other,
    }
}

#[cfg(test)]
mod tests;
