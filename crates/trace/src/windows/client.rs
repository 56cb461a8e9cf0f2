//! Requests of the Windows SMB client: the `Smb2Perf` events of Microsoft-Windows-SMBClient (build 26100 and later).
//!
//! One event sums up each request to a server (a "buffer context"): how long it waited for credits, was built and sent, how
//! long the server took to reply, and how long the reply was processed. It becomes a row as the client sees it, without
//! connection, session and status, which the events do not have. Reads and writes name their exchange, whose own summary
//! names the application's request (an "RX context"), whose start names the file. Waits for credits are rows of the table of
//! events.
//!
//! Layouts are those of the list of fields of build 28000. No log of these events was at hand: tests make such logs.

use std::sync::Arc;

use arrow::error::ArrowError;
use foldhash::HashMap;
use smbscope_capture::Options;
use smbscope_tables::Part;
use smbscope_tables::builder::{OperationBuilder, extension_of};
use smbscope_tables::code::{self, Source, Vantage};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::ServerEvent;
use smbscope_wire::smb2::Command;

use super::fields::{Fields, text};
use super::keep_latest;
use super::server::calibration::{Machine, times_unit};
use crate::etl::clock::Clock;
use crate::etl::record::Record;

/// Where events of the client were recorded.
pub const REASON: &str = "written by the client's own events";

const SUSPENDED: u16 = 30_105;
const RESUMED: u16 = 30_106;
const RX_START: u16 = 32_004;
const REQUEST_START: u16 = 32_006;
/// Summaries of exchanges: reads, writes.
const EXCHANGE_READ: u16 = 32_028;
const EXCHANGE_WRITE: u16 = 32_029;
/// Summaries of requests.
const READ: u16 = 32_048;
const WRITE: u16 = 32_049;
const FSCTL: u16 = 32_053;
/// The first version whose reads and writes name their exchange.
const VERSION_WITH_EXCHANGE: u16 = 2;
/// Most items of each kind that are remembered: requests, files, exchanges.
const KEPT_MAX: usize = 1 << 16;
/// Requests by which the unit of time is found.
const PAIRS_MAX: usize = 20_000;
/// Rows after which they should be taken.
const ROWS_MAX: usize = 4_096;

/// Whether the event sums up a request, which becomes a row.
pub fn is_request(id: u16) -> bool {
    (READ..=FSCTL).contains(&id)
}

/// Whether the event belongs to requests.
pub fn is_known(id: u16) -> bool {
    is_request(id)
        || matches!(
            id,
            SUSPENDED | RESUMED | RX_START | REQUEST_START | EXCHANGE_READ | EXCHANGE_WRITE
        )
}

fn command(id: u16) -> Option<Command> {
    Some(match id {
        READ => Command::READ,
        WRITE => Command::WRITE,
        32_050 => Command::CREATE,
        32_051 => Command::CLOSE,
        32_052 => Command::QUERY_DIRECTORY,
        FSCTL => Command::IOCTL,
        _ => return None,
    })
}

/// A summary of a request. Times are in the unit of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    context: u64,
    exchange: Option<u64>,
    bytes: Option<u64>,
    total: u64,
    /// Until it was handed to the transport: buffers, credits, building, sending.
    before: u64,
    server: u64,
    receive: u64,
}

impl Summary {
    /// Reads it; what follows the fields belongs to later versions.
    fn parse(payload: &[u8], id: u16, version: u16) -> Option<Summary> {
        let mut fields = Fields::new(payload);
        let is_io = matches!(id, READ | WRITE);
        let is_new = version >= VERSION_WITH_EXCHANGE;
        let mut summary = Summary { context: fields.u64()?, ..Summary::default() };
        if is_io && is_new {
            summary.exchange = Some(fields.u64()?);
            summary.bytes = Some(fields.u64()?);
        }
        // The number of an instance of the client.
        fields.u8()?;
        summary.total = fields.u64()?;
        // Initialization, registration of RDMA buffers (reads and writes), RDMA descriptors, AssociateMID (waiting for
        // credits), Assembly, BeginSmbSend, its worker, SmbdPrepareSend: a time and hits each.
        for _ in 0..if is_io { 8 } else { 7 } {
            summary.before = summary.before.saturating_add(fields.u64()?);
            fields.u64()?;
        }
        summary.server = fields.u64()?;
        fields.u64()?;
        summary.receive = fields.u64()?;
        fields.u64()?;
        if id == FSCTL && is_new {
            summary.bytes = Some(fields.u64()?);
        }
        Some(summary)
    }
}

/// Finds the unit of time, in the first reading of a log, whose events are not in the order of time.
#[derive(Debug, Default)]
pub struct Survey {
    /// Times at which requests began, by their address, which is used again.
    started: HashMap<u64, Vec<i64>>,
    starts: usize,
    /// Address, total and time of requests that ended.
    ended: Vec<(u64, u64, i64)>,
}

impl Survey {
    /// Takes an event.
    pub fn event(&mut self, record: &Record<'_>, id: u16, clock: &Clock) {
        if id == REQUEST_START {
            if let Some(context) = Fields::new(record.payload).u64()
                && self.starts < KEPT_MAX
            {
                self.starts += 1;
                self.started.entry(context).or_default().push(clock.time_ns(record.ticks));
            }
        } else if is_request(id)
            && self.ended.len() < PAIRS_MAX
            && let Some(summary) = Summary::parse(record.payload, id, record.version)
        {
            self.ended.push((summary.context, summary.total, clock.time_ns(record.ticks)));
        }
    }

    /// Nanoseconds of a unit, and how that is known.
    pub fn finish(mut self, machine: Machine) -> Unit {
        self.started.values_mut().for_each(|times| times.sort_unstable());
        let pair = |&(context, total, end): &(u64, u64, i64)| {
            let times = self.started.get(&context)?;
            let since = times.get(times.partition_point(|time| *time <= end).checked_sub(1)?)?;
            Some((total, end.saturating_sub(*since)))
        };
        let pairs: Vec<_> = self.ended.iter().filter_map(pair).collect();
        let (unit_ns, reason, is_checked) = times_unit(machine, &pairs);
        Unit { unit_ns, reason, is_checked }
    }
}

/// What a unit of the client's times is.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    pub unit_ns: f64,
    pub reason: String,
    pub is_checked: bool,
}

/// Makes rows of requests, in the second reading of a log.
pub struct ClientEvents {
    unit: Unit,
    builder: OperationBuilder,
    /// Rows that the builder gets together: it is fastest so.
    ready: Vec<Operation>,
    /// Whether rows of operations are wanted.
    wanted: bool,
    /// Times at which requests began, by their address.
    started: HashMap<u64, i64>,
    /// Files by the address of the application's request.
    files: HashMap<u64, Arc<str>>,
    /// When requests began to wait for credits.
    suspended: HashMap<u64, i64>,
    /// Rows that wait for the summary of their exchange, and how many.
    waiting: HashMap<u64, Vec<Operation>>,
    held: usize,
    events: Vec<ServerEvent>,
    recording: Arc<str>,
    pub rows: u64,
    pub unknown: u64,
    pub limited: u64,
}

impl ClientEvents {
    /// Requests of a log that was surveyed, with the columns that the options want.
    ///
    /// # Errors
    ///
    /// Arrow's.
    pub fn new(recording: &str, unit: Unit, options: &Options) -> Result<ClientEvents, ArrowError> {
        Ok(ClientEvents {
            unit,
            builder: OperationBuilder::new(options.projection.as_deref())?,
            ready: Vec::new(),
            wanted: options.tables.operations,
            started: HashMap::default(),
            files: HashMap::default(),
            suspended: HashMap::default(),
            waiting: HashMap::default(),
            held: 0,
            events: Vec::new(),
            recording: recording.into(),
            rows: 0,
            unknown: 0,
            limited: 0,
        })
    }

    /// How times are known.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Takes an event of the client; events in the order of time.
    pub fn event(&mut self, record: &Record<'_>, id: u16, time_ns: i64) {
        if self.take(record, id, time_ns).is_none() {
            self.unknown += 1;
        }
    }

    fn take(&mut self, record: &Record<'_>, id: u16, time_ns: i64) -> Option<()> {
        let mut fields = Fields::new(record.payload);
        match id {
            RX_START => {
                let context = fields.u64()?;
                let length = usize::from(fields.u16()?);
                let name = text(fields.utf16(length, 2)?);
                let name = name.trim_start_matches('\\');
                keep(&mut self.files, context, name.into(), &mut self.limited);
            }
            REQUEST_START => keep(&mut self.started, fields.u64()?, time_ns, &mut self.limited),
            SUSPENDED => keep(&mut self.suspended, fields.u64()?, time_ns, &mut self.limited),
            RESUMED => {
                let Some(since) = self.suspended.remove(&fields.u64()?) else { return Some(()) };
                self.waited(since, time_ns);
            }
            EXCHANGE_READ | EXCHANGE_WRITE => {
                let exchange = fields.u64()?;
                let application =
                    if record.version >= VERSION_WITH_EXCHANGE { fields.u64() } else { None };
                let file = application.and_then(|context| self.files.get(&context)).cloned();
                let rows = self.waiting.remove(&exchange).unwrap_or_default();
                self.held -= rows.len();
                rows.into_iter().for_each(|row| self.push(row, file.as_deref()));
            }
            _ => {
                let summary = Summary::parse(record.payload, id, record.version)?;
                let operation = self.operation(&summary, command(id)?, time_ns);
                match summary.exchange {
                    None => self.push(operation, None),
                    Some(exchange) => {
                        if self.held >= KEPT_MAX {
                            self.give_all();
                        }
                        self.held += 1;
                        self.waiting.entry(exchange).or_default().push(operation);
                    }
                }
            }
        }
        Some(())
    }

    fn operation(&mut self, summary: &Summary, command: Command, time_ns: i64) -> Operation {
        let ns = |units: u64| (units as f64 * self.unit.unit_ns).round() as i64;
        let start = self.started.remove(&summary.context);
        let start = start.unwrap_or_else(|| time_ns.saturating_sub(ns(summary.total)));
        let mut row = Operation::default();
        row.set_source(Source::Events as u64);
        row.set_vantage(Vantage::Client as u64);
        row.set_protocol(2);
        row.set_command(code::command(2, command.0));
        // What is not in the parts (callbacks, scheduling) lies before the request or after the reply: the sum is the total.
        let end = start.saturating_add(ns(summary.total));
        let sent = start.saturating_add(ns(summary.before)).min(end);
        let replied = sent.saturating_add(ns(summary.server)).min(end);
        row.set_request_start(start);
        row.set_request_end(sent);
        row.set_response_start(replied);
        row.set_response_end(end);
        row.derive_durations();
        if let Some(bytes) = summary.bytes {
            row.set_transferred_bytes(bytes);
        }
        row
    }

    /// A request waited for credits.
    fn waited(&mut self, since: i64, time_ns: i64) {
        self.events.push(ServerEvent {
            recording: self.recording.to_string(),
            time: time_ns,
            provider: "SMBClient".to_owned(),
            event: RESUMED.into(),
            kind: "credits_exhausted".to_owned(),
            duration_ns: Some(time_ns.saturating_sub(since)),
            ..ServerEvent::default()
        });
    }

    /// Gives all rows that wait to the builder, without their file.
    fn give_all(&mut self) {
        let mut rows: Vec<_> = std::mem::take(&mut self.waiting).into_values().flatten().collect();
        self.held = 0;
        rows.sort_by_key(Operation::response_end);
        rows.into_iter().for_each(|row| self.push(row, None));
    }

    fn push(&mut self, mut operation: Operation, file: Option<&str>) {
        self.rows += 1;
        if !self.wanted {
            return;
        }
        operation.set_operation(self.rows);
        let names = &mut self.builder.names;
        operation.set_recording(names.recording.intern(&self.recording));
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            operation.set_path(names.path.intern(file));
            if let Some(extension) = extension_of(file) {
                operation.set_extension(names.extension.intern(&extension.to_lowercase()));
            }
        }
        self.ready.push(operation);
    }

    /// Whether [`ClientEvents::parts`] should be called now.
    pub fn wants_out(&self) -> bool {
        self.ready.len() >= ROWS_MAX || self.events.len() >= ROWS_MAX
    }

    /// Rows since the last call.
    ///
    /// # Errors
    ///
    /// Arrow's.
    pub fn parts(&mut self) -> Result<Vec<Part>, ArrowError> {
        let mut parts = Vec::new();
        if !self.ready.is_empty() {
            self.builder.append(&self.ready);
            self.ready.clear();
            parts.push(Part::Operations(self.builder.finish()?));
        }
        if !self.events.is_empty() {
            parts.push(Part::ServerEvents(std::mem::take(&mut self.events)));
        }
        Ok(parts)
    }

    /// The last rows.
    ///
    /// # Errors
    ///
    /// Arrow's.
    pub fn end(&mut self) -> Result<Vec<Part>, ArrowError> {
        self.give_all();
        self.parts()
    }
}

/// Keeps the latest value of a key, up to the limit.
fn keep<V>(values: &mut HashMap<u64, V>, key: u64, value: V, limited: &mut u64) {
    *limited += u64::from(!keep_latest(values, KEPT_MAX, key, value));
}
