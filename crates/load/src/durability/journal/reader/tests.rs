//! Journals that are cut, foreign, mixed or edited.

use super::*;
use crate::durability::journal::{Kind, header};
use crate::durability::plan::{Lane, Pattern, Way};

fn plan(run: &str) -> Plan {
    let lane = Lane {
        way: Way::Plain,
        pattern: Pattern::Append,
        block_bytes: 4096,
        depth: 1,
        files: 1,
        blocks: 8,
    };
    Plan {
        run: run.repeat(32),
        target: "//fs/share".into(),
        folder: "smbscope-durability\\aa".into(),
        start_ns: 5,
        lanes: vec![lane],
    }
}

fn record(sequence: u64) -> Record {
    let event = Record::event(Kind::Write, 0, sequence, 1_000 + sequence as i64);
    Record { block: 3, generation: 1, ..event }
}

/// A journal of three records, and the length of its header.
fn journal(run: &str) -> (Vec<u8>, usize) {
    let plan = plan(run);
    let mut bytes = header(&plan).unwrap();
    let header = bytes.len();
    for number in 0..3 {
        bytes.extend(record(number).bytes(number, &plan.run_bytes().unwrap()));
    }
    (bytes, header)
}

fn count(bytes: &[u8]) -> Result<(usize, u64), String> {
    let mut found = Vec::new();
    let journal = read_bytes(bytes, |_, record| found.push(record)).map_err(|e| e.to_string())?;
    assert_eq!(found.len() as u64, journal.records);
    assert!(found.iter().enumerate().all(|(at, found)| *found == record(at as u64)));
    Ok((found.len(), journal.cut_bytes))
}

#[test]
fn a_journal_reads_back() {
    let (bytes, _) = journal("a");
    assert_eq!(count(&bytes), Ok((3, 0)));
    let read = read_bytes(&bytes, |_, _| ()).unwrap();
    assert_eq!(read.plan, plan("a"));
}

#[test]
fn each_cut_keeps_the_records_before_it() {
    let (bytes, header) = journal("a");
    for end in 0..bytes.len() {
        let found = count(&bytes[..end]);
        if end == 0 {
            assert!(found.unwrap_err().contains("not a journal"));
        } else if end < header {
            let error = found.unwrap_err();
            assert!(
                error.contains("inside its header") && error.contains(&end.to_string()),
                "{error}"
            );
        } else {
            let (whole, cut) = ((end - header) / 64, (end - header) % 64);
            assert_eq!(found, Ok((whole, cut as u64)));
        }
    }
}

#[test]
fn every_edited_byte_is_found() {
    let (bytes, header) = journal("a");
    for at in 0..bytes.len() - 64 {
        let mut edited = bytes.clone();
        edited[at] ^= 4;
        let error = count(&edited).unwrap_err();
        let expected = match at {
            0..8 => "not a journal",
            _ if at < header => "header",
            _ => "record",
        };
        assert!(error.contains(expected), "byte {at}: {error}");
    }
    // The last record may be one that was never written completely.
    let mut edited = bytes.clone();
    *edited.last_mut().unwrap() ^= 1;
    assert_eq!(count(&edited), Ok((2, 64)));
}

#[test]
fn records_cannot_be_removed_exchanged_or_taken_from_another_run() {
    let (bytes, header) = journal("a");
    let (other, _) = journal("b");
    let at = |number: usize| header + number * 64..header + (number + 1) * 64;
    let without = [&bytes[..at(1).start], &bytes[at(2)]].concat();
    assert!(count(&without).unwrap_err().contains("number of another record"));
    let mixed = [&bytes[..at(1).start], &other[at(1)], &bytes[at(2)]].concat();
    let error = count(&mixed).unwrap_err();
    assert!(error.contains("record 1") && error.contains("edited"), "{error}");
    assert!(count(b"SQLite format 3\0").unwrap_err().contains("not a journal"));
}

#[test]
fn a_plan_out_of_range_is_refused() {
    let refused = |change: fn(&mut Plan), word: &str| {
        let mut plan = plan("a");
        change(&mut plan);
        let error = read_bytes(&header(&plan).unwrap(), |_, _| ()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(|plan| plan.run = "x".into(), "32 hexadecimal digits");
    refused(|plan| plan.lanes[0].block_bytes = 1000, "multiple of 512");
    refused(|plan| plan.lanes[0].blocks = u32::MAX, "4,194,304");
    refused(|plan| plan.lanes[0].depth = 0, "in flight");
    refused(|plan| plan.folder = "a\\..\\b".into(), "folder");
    refused(|plan| plan.lanes.clear(), "0 writers");
}
