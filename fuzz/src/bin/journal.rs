//! Any bytes as a journal of the durability test, and as the records of one whose checksums are right.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_load::durability::block::{SECTOR_BYTES, read as read_sector};
use smbscope_load::durability::journal::{Kind, Record, header, read_bytes};
use smbscope_load::durability::judge::{Spot, judge};
use smbscope_load::durability::ledger::Ledger;
use smbscope_load::durability::plan::{Lane, Pattern, Plan, Way};

/// Bytes of which a record is made.
const FIELDS: usize = 44;

fuzz_target!(|bytes: &[u8]| {
    let _ = black_box(read_bytes(bytes, |_, _| ()));
    for sector in bytes.chunks(SECTOR_BYTES) {
        black_box(read_sector(sector));
    }
    let plan = plan();
    let run = plan.run_bytes().expect("the plan is valid");
    let mut journal = header(&plan).expect("the plan is short");
    let records = bytes.chunks_exact(FIELDS).filter_map(record);
    for (number, record) in records.enumerate() {
        journal.extend(record.bytes(number as u64, &run));
    }
    let mut ledger = Ledger::new(&plan, 0);
    // Records may name files that the plan does not have.
    let _ = black_box(read_bytes(&journal, |plan, record| ledger.add(plan, &record)));
    black_box(ledger.restarted());
    let spots: Vec<Spot> = bytes.iter().take(8).map(spot).collect();
    for file in ledger.lanes.iter().flat_map(|lane| lane.files.values()) {
        for writes in file.by_block().values() {
            let outcome = judge(writes, &spots);
            assert!(
                outcome.lost.len() <= writes.len()
                    && outcome.how.is_none() == outcome.lost.is_empty()
            );
        }
    }
});

fn plan() -> Plan {
    let lane =
        |(way, pattern)| Lane { way, pattern, block_bytes: 4096, depth: 2, files: 2, blocks: 256 };
    let lanes = Way::ALL.into_iter().zip(Pattern::ALL.into_iter().cycle()).map(lane).collect();
    Plan { run: "5".repeat(32), target: "//fs/a".into(), folder: "f".into(), start_ns: 0, lanes }
}

fn record(bytes: &[u8]) -> Option<Record> {
    let u32_at =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    Some(Record {
        kind: Kind::parse(bytes[0] % 12)?,
        lane: u16::from(bytes[1] % 8),
        round: 0,
        file: u32_at(4) % 3,
        block: u32_at(8) % 300,
        sequence: u64_at(12),
        generation: u32_at(20),
        sent_ns: u64_at(24) as i64,
        acked_ns: u64_at(32) as i64,
    })
}

fn spot(byte: &u8) -> Spot {
    match byte % 8 {
        0 => Spot::Beyond,
        1 => Spot::Zeros,
        2 => Spot::Damaged,
        number => Spot::Write(u64::from(number)),
    }
}
