//! The loop over one batch: which groups an operation belongs to and what it adds to them. Text is
//! resolved once per batch and dictionary entry.

use arrow::array::RecordBatch;
use arrow::datatypes::{Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use hashbrown::HashMap;
use smbscope_tables::command_class::CommandClass;
use smbscope_tables::operation;
use smbscope_tables::slice::Kind as SliceKind;

use super::data::{Key, PARTS, Part};
use super::groups::{Groups, NONE};
use super::{AHEAD, Facts, Live};
use crate::rows::columns::{Flags, Numbers, Resolved, Text, numbers};
use crate::rows::status_class::StatusClass;
use crate::stats::latency::Sample;

/// The columns of a batch that are read.
struct Columns {
    command: Text,
    /// By key of `command`.
    classes: Vec<CommandClass>,
    protocol: Numbers<u8>,
    encrypted: Flags,
    share: Text,
    client: Text,
    path: Text,
    user: Text,
    pid: Numbers<u32>,
    compound: Numbers<u64>,
    status: Numbers<u32>,
    transferred_bytes: Numbers<u64>,
    response_end: Numbers<i64>,
    waits: Flags,
    request_transfer_ns: Numbers<i64>,
    turnaround_ns: Numbers<i64>,
    response_transfer_ns: Numbers<i64>,
    server_ns: Numbers<i64>,
    slices: Vec<(Part, Numbers<i64>)>,
}

impl Columns {
    fn from_batch(batch: &RecordBatch) -> Result<Columns, ArrowError> {
        let text = |name| Text::from_batch(batch, name);
        let flags = |name| Flags::from_batch(batch, name);
        let ns = |name| numbers::<Int64Type>(batch, name);
        let specs = operation::specs();
        let mut slices = Vec::new();
        for &kind in SliceKind::ALL.iter().take(SliceKind::PARTS) {
            let Some(spec) = specs.get(kind.column() as usize) else { continue };
            let column = ns(spec.name)?;
            if !column.is_empty() {
                slices.push((Part::Slice(kind), column));
            }
        }
        let command = text("command")?;
        Ok(Columns {
            classes: command.command_classes(),
            command,
            protocol: numbers::<UInt8Type>(batch, "protocol")?,
            encrypted: flags("encrypted")?,
            share: text("share")?,
            client: text("client")?,
            path: text("path")?,
            user: text("user")?,
            pid: numbers::<UInt32Type>(batch, "pid")?,
            compound: numbers::<UInt64Type>(batch, "compound")?,
            status: numbers::<UInt32Type>(batch, "status")?,
            transferred_bytes: numbers::<UInt64Type>(batch, "transferred_bytes")?,
            response_end: ns("response_end")?,
            waits: flags("waits")?,
            request_transfer_ns: ns("request_transfer_ns")?,
            turnaround_ns: ns("turnaround_ns")?,
            response_transfer_ns: ns("response_transfer_ns")?,
            server_ns: ns("server_ns")?,
            slices,
        })
    }
}

/// Adds a batch.
pub(super) fn add(live: &mut Live, batch: &RecordBatch) -> Result<(), ArrowError> {
    let columns = Columns::from_batch(batch)?;
    live.has_slices |= !columns.slices.is_empty();
    let mut found = Found::new(&columns);
    let mut last = Some(live.complete + 1);
    for row in 0..batch.num_rows() {
        if let Some(at) = columns.response_end.get(row) {
            last = live.slot(at);
        }
        let Some(slot) = last else { continue };
        let furthest = live.complete + AHEAD;
        live.late += u64::from(slot <= live.complete || slot > furthest);
        let place = live.place(slot.min(furthest));
        let facts = facts(&columns, row);
        for (&key, groups) in Key::ALL.iter().zip(&mut live.keys) {
            let group = found.group(&columns, row, key, groups);
            groups.add(group, place, &facts);
        }
        live.total.add(NONE, place, &facts);
    }
    Ok(())
}

/// What the batch's dictionaries mean.
struct Found {
    commands: Resolved,
    commands_smb1: Resolved,
    shares: Resolved,
    clients: Resolved,
    users: Resolved,
    files: HashMap<(Option<usize>, usize), u32, foldhash::fast::RandomState>,
    processes: HashMap<u32, u32, foldhash::fast::RandomState>,
}

impl Found {
    fn new(columns: &Columns) -> Found {
        let of = |text: &Text| Resolved::new(text.keys());
        Found {
            commands: of(&columns.command),
            commands_smb1: of(&columns.command),
            shares: of(&columns.share),
            clients: of(&columns.client),
            users: of(&columns.user),
            files: HashMap::default(),
            processes: HashMap::default(),
        }
    }

    fn group(&mut self, columns: &Columns, row: usize, key: Key, groups: &mut Groups) -> u32 {
        match key {
            Key::Command => self.command(columns, row, groups),
            Key::Share => named(&mut self.shares, &columns.share, row, groups),
            Key::Client => named(&mut self.clients, &columns.client, row, groups),
            Key::User => named(&mut self.users, &columns.user, row, groups),
            Key::File => {
                let Some(path) = columns.path.key(row) else { return NONE };
                let share = columns.share.key(row);
                *self.files.entry((share, path)).or_insert_with(|| {
                    let share = share.and_then(|share| columns.share.text(share)).unwrap_or("?");
                    let path = columns.path.text(path).unwrap_or_default();
                    groups.resolve(&format!("{share}\\{path}"))
                })
            }
            Key::Process => {
                let Some(pid) = columns.pid.get(row) else { return NONE };
                let resolve = || groups.resolve(&pid.to_string());
                *self.processes.entry(pid).or_insert_with(resolve)
            }
        }
    }

    fn command(&mut self, columns: &Columns, row: usize, groups: &mut Groups) -> u32 {
        let Some(key) = columns.command.key(row) else {
            return if columns.encrypted.is_set(row) {
                groups.resolve("(encrypted)")
            } else {
                NONE
            };
        };
        let name = columns.command.text(key).unwrap_or_default();
        match columns.protocol.get(row) {
            Some(1) => self.commands_smb1.get(key, || groups.resolve(&format!("{name} (SMB1)"))),
            _ => self.commands.get(key, || groups.resolve(name)),
        }
    }
}

fn named(found: &mut Resolved, text: &Text, row: usize, groups: &mut Groups) -> u32 {
    match text.key(row) {
        Some(key) => found.get(key, || text.text(key).map_or(NONE, |name| groups.resolve(name))),
        None => NONE,
    }
}

/// What a row adds to its groups.
fn facts(columns: &Columns, row: usize) -> Facts {
    let status = match columns.status.get(row) {
        None | Some(0) => StatusClass::Usual,
        Some(status) => StatusClass::from_status(status),
    };
    let transferred = columns.transferred_bytes.get(row).unwrap_or(0);
    let class = columns.command.key(row).and_then(|key| columns.classes.get(key));
    let command = class.copied().unwrap_or(CommandClass::Other);
    let waits = columns.waits.is_set(row);
    let mut facts = Facts {
        error: status == StatusClass::Error,
        not_found: status == StatusClass::NotFound,
        waits,
        read_bytes: if command == CommandClass::Read { transferred } else { 0 },
        written_bytes: if command == CommandClass::Write { transferred } else { 0 },
        turnaround: None,
        parts_ns: [0; PARTS],
    };
    if !waits {
        let turnaround = columns.turnaround_ns.get(row);
        facts.turnaround = turnaround.map(Sample::new);
        spend(&mut facts, columns, row, turnaround);
    }
    facts
}

/// Adds its times to the parts.
fn spend(facts: &mut Facts, columns: &Columns, row: usize, turnaround: Option<i64>) {
    facts.spend(Part::RequestTransfer, columns.request_transfer_ns.get(row).unwrap_or(0));
    facts.spend(Part::ResponseTransfer, columns.response_transfer_ns.get(row).unwrap_or(0));
    let mut sliced = None;
    for (part, column) in &columns.slices {
        if let Some(ns) = column.get(row) {
            facts.spend(*part, ns);
            *sliced.get_or_insert(0) += ns;
        }
    }
    match (sliced, turnaround) {
        // The lead of a compound has the turnaround of the whole chain, and its own slices.
        (Some(sliced), Some(turnaround)) if columns.compound.get(row).is_none() => {
            facts.spend(Part::Unexplained, turnaround.saturating_sub(sliced));
        }
        (None, Some(turnaround)) => match columns.server_ns.get(row) {
            Some(server) => {
                facts.spend(Part::Server, server);
                facts.spend(Part::Network, turnaround.saturating_sub(server));
            }
            None => facts.spend(Part::Turnaround, turnaround),
        },
        _ => {}
    }
}
