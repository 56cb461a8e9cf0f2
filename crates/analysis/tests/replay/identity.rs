//! Changes to what a recording has already change nothing: all changes, on several recordings.

use smbscope_analysis::predict::changes::{Change, REGISTRY};
use smbscope_analysis::predict::plan::Plan;
use smbscope_analysis::predict::replay::{Prediction, Replay};
use smbscope_tables::code;
use smbscope_tables::operation::Operation;

use crate::{CLOSE, CREATE, FLUSH, MS, READ, RTT_NS, WRITE, batch, connection};

/// Bytes of a block.
const BLOCK: u64 = 64 << 10;
/// Blocks of a file.
const BLOCKS: u64 = 40;
/// Time that the server needs for a block, ns.
const SERVICE_NS: i64 = 100_000;
/// The client's time between two requests, ns.
const GAP_NS: i64 = 10_000;
/// How far a prediction may be from the recording.
const WITHIN: f64 = 0.02;

/// One way to copy files.
#[derive(Clone, Copy, Debug)]
struct Copying {
    command: u16,
    /// Blocks in flight.
    depth: usize,
    /// Whether writes are stable before their reply.
    write_through: bool,
    /// Whether Create, the first block, and Close are one compound.
    compound: bool,
}

impl Copying {
    /// The change to what it has already.
    fn same(&self, name: &str) -> String {
        match name {
            "rtt" => format!("rtt={RTT_NS}ns"),
            "distance" => "distance=0km".into(),
            "bandwidth" => "bandwidth=100gbit".into(),
            "window" => "window=1GiB".into(),
            "loss" => "loss=0%".into(),
            "block" | "max-read" | "max-write" => format!("{name}=64KiB"),
            "filesystem" | "cpu" => format!("{name}=1x"),
            "queue" => "queue=100%".into(),
            // The wait of other numbers of users is added from counters: there is none here.
            "users" => "users=1".into(),
            // No folder is opened twice.
            "dircache" => "dircache=collapse".into(),
            "dirlease" => name.into(),
            "depth" => format!("depth={}", self.depth),
            "compound" => format!("compound={}", if self.compound { "on" } else { "off" }),
            "channels" => "channels=1".into(),
            "write-through" => {
                format!("write-through={}", if self.write_through { "on" } else { "off" })
            }
            // The second server has the data before the client asks for it to be stable.
            "replication" => "replication=async,rtt=1us".into(),
            // Every tenth read comes from storage.
            "cache-hit" => "cache-hit=90%".into(),
            "signing" | "encryption" => format!("{name}=off"),
            _ => panic!("{name}: which value is that of the recording?"),
        }
    }

    /// The operations of two files, one after the other.
    fn operations(&self) -> Vec<Operation> {
        let mut rows = Vec::new();
        let mut at = 1_000_000_000;
        for file in 1..=2 {
            at = self.file(file, at, &mut rows) + GAP_NS;
        }
        for (number, row) in rows.iter_mut().enumerate() {
            row.set_operation(number as u64);
        }
        rows.sort_by_key(Operation::response_end);
        rows
    }

    fn file(&self, handle: u64, begin: i64, rows: &mut Vec<Operation>) -> i64 {
        let one = |command, at, service| request(command, handle, at, at + RTT_NS + service);
        rows.push(one(CREATE, begin, SERVICE_NS));
        let begin = end_of(rows) + GAP_NS;
        let mut ends: Vec<i64> = Vec::new();
        for block in 0..BLOCKS {
            // Sent when the one `depth` places before was answered, and served after the one before.
            let place = block as usize;
            let free = place.checked_sub(self.depth).map_or(begin, |place| ends[place] + GAP_NS);
            let service = if block % 10 == 9 { 6 * SERVICE_NS } else { SERVICE_NS };
            let served = (free + RTT_NS).max(ends.last().copied().unwrap_or(0)) + service;
            ends.push(served);
            let mut row = request(self.command, handle, free, served);
            row.set_offset_bytes(block * BLOCK);
            row.set_requested_bytes(BLOCK);
            row.set_transferred_bytes(BLOCK);
            row.set_outstanding(place.min(self.depth - 1) as u32);
            row.set_write_through(self.write_through && self.command == WRITE);
            row.set_filesystem_ns(service - SERVICE_NS / 2);
            row.set_queue_ns(served - service - free - RTT_NS);
            match self.command {
                READ => row.set_response_wire_bytes(BLOCK + 84),
                _ => row.set_request_wire_bytes(BLOCK + 116),
            }
            rows.push(row);
        }
        if self.command == WRITE {
            rows.push(one(FLUSH, end_of(rows) + GAP_NS, SERVICE_NS));
        }
        rows.push(one(CLOSE, end_of(rows) + GAP_NS, SERVICE_NS));
        if self.compound {
            compound(rows, handle);
        }
        end_of(rows)
    }

    fn predict(&self, rows: &[Operation], changes: &[Change]) -> Prediction {
        let replay = |plan: &Plan, baseline| {
            let mut replay = Replay::new(plan.clone(), baseline);
            replay.connections(&[connection()]);
            replay.operations(&batch(rows)).unwrap();
            replay.finish()
        };
        let baseline = replay(&Plan::default(), Default::default()).baseline;
        let mut plan = Plan::default();
        changes.iter().for_each(|change| change.plan(&mut plan));
        replay(&plan, baseline)
    }
}

fn end_of(rows: &[Operation]) -> i64 {
    rows.iter().filter_map(Operation::response_end).max().unwrap()
}

/// The last two operations, Flush or the last block and Close, as one compound.
fn compound(rows: &mut [Operation], handle: u64) {
    let first = rows.len() - 2;
    let lead = rows[first];
    for (index, row) in rows[first..].iter_mut().enumerate() {
        row.set_compound(handle);
        row.set_compound_index(index as u16);
        row.set_compound_size(2);
    }
    // A member has the times of its message's lead.
    let close = &mut rows[first + 1];
    let mut member = Operation::default();
    for (set, value) in [
        (Operation::set_connection as fn(&mut Operation, u64), close.connection()),
        (Operation::set_session_id, close.session_id()),
        (Operation::set_handle, close.handle()),
        (Operation::set_compound, close.compound()),
    ] {
        value.into_iter().for_each(|value| set(&mut member, value));
    }
    member.set_protocol(2);
    member.set_command(code::command(2, CLOSE));
    member.set_compound_index(1);
    member.set_compound_size(2);
    member.set_related(true);
    *close = member;
    rows[first] = lead_of(lead, handle);
}

fn lead_of(mut lead: Operation, handle: u64) -> Operation {
    lead.set_compound(handle);
    lead.set_compound_index(0);
    lead.set_compound_size(2);
    lead
}

/// An operation on an open, from its request to its reply.
fn request(command: u16, handle: u64, start: i64, end: i64) -> Operation {
    let mut row = Operation::default();
    row.set_connection(1);
    row.set_session_id(7);
    row.set_protocol(2);
    row.set_command(code::command(2, command));
    row.set_handle(handle);
    row.set_signed(false);
    row.set_encrypted(false);
    row.set_request_wire_bytes(120);
    row.set_response_wire_bytes(120);
    row.set_request_start(start);
    row.set_request_end(start);
    row.set_response_start(end);
    row.set_response_end(end);
    row.derive_durations();
    row.set_server_ns(end - start - RTT_NS);
    row.set_filesystem_ns(SERVICE_NS / 2);
    row.set_processing_ns(SERVICE_NS / 4);
    row
}

#[test]
fn changes_to_what_is_recorded_change_nothing() {
    let plain = Copying { command: READ, depth: 1, write_through: false, compound: false };
    let ways = [
        plain,
        Copying { depth: 8, ..plain },
        Copying { compound: true, ..plain },
        Copying { command: WRITE, ..plain },
        Copying { command: WRITE, depth: 8, ..plain },
        Copying { command: WRITE, write_through: true, ..plain },
    ];
    let mut wrong = Vec::new();
    for way in ways {
        let rows = way.operations();
        for entry in REGISTRY {
            let change: Change = way.same(entry.spec.name).parse().unwrap();
            let prediction = way.predict(&rows, &[change]);
            let (before, after) = prediction.waiting_ns;
            let lasted = (end_of(&rows) - 1_000_000_000) as f64;
            assert!(before > MS && prediction.timed > 80, "{way:?} {change}");
            if ((after - before) as f64).abs() > WITHIN * lasted.max(before as f64) {
                wrong.push(format!("{way:?} {change}: {before} -> {after}"));
            }
            for row in &prediction.commands {
                let (was, then) = (row.before.mean_ns(), row.after.mean_ns());
                let (Some(was), Some(then)) = (was, then) else { continue };
                if (then / was - 1.0).abs() > WITHIN {
                    wrong.push(format!("{way:?} {change}: a {}: {was} -> {then}", row.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
