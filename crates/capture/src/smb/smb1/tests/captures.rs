//! Real captures from the shared folder, decoded from the file to rows; counts and pairs as
//! tshark 4.0.17 and the folder's README have them. Skips when the folder is absent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, UInt64Type};
use smbscope_tables::tables::Coverage;

use crate::{Decoder, Input, Options, Part};

fn decode(name: &str) -> Option<(Vec<RecordBatch>, Box<Coverage>)> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let shared = std::env::var_os("SMBSCOPE_SHARED").map(PathBuf::from);
    let Some(path) = [shared, Some(workspace.join("shared"))]
        .into_iter()
        .flatten()
        .map(|folder| folder.join("captures").join(name))
        .find(|path| path.exists())
    else {
        smbscope_testing::skip!("{name} is not in SMBSCOPE_SHARED or ../shared");
        return None;
    };
    let options = Options { threads: 1, ..Options::default() };
    let (mut batches, mut counted) = (Vec::new(), None);
    for part in Decoder::open(vec![Input::Path(path)], options).unwrap() {
        match part.unwrap() {
            Part::Operations(batch) => batches.push(batch),
            Part::Coverage(coverage) => counted = Some(coverage),
            _ => {}
        }
    }
    Some((batches, counted.unwrap()))
}

fn texts(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(column).unwrap().as_dictionary::<Int32Type>();
    let texts = column.downcast_dict::<arrow::array::StringArray>().unwrap();
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

fn counts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let mut counts = BTreeMap::<String, u32>::new();
    for text in batches.iter().flat_map(|batch| texts(batch, column)) {
        *counts.entry(text.unwrap_or_default()).or_default() += 1;
    }
    counts.into_iter().map(|(name, count)| format!("{name} {count}")).collect()
}

#[test]
fn an_attack_with_secondaries_and_numbers_used_twice() {
    let Some((batches, coverage)) = decode("smb1-4k-writeandx.pcap") else { return };
    let expected = [
        "Close 7",
        "Echo 13",
        "LogoffAndX 1",
        "Negotiate 1",
        "NtCreateAndX 9",
        // 28 requests; two answers to secondaries of requests that the attack made up.
        "NtTransact 30",
        "ReadAndX 13",
        "SessionSetupAndX 2",
        "Transaction 48",
        "TreeConnectAndX 9",
        "TreeDisconnect 7",
        "WriteAndX 103",
    ];
    assert_eq!(counts(&batches, "command"), expected);
    assert_eq!((coverage.replies_unmatched, coverage.resynchronised), (0, 0));
    let (mut transferred, mut answered) = (0, 0);
    for batch in &batches {
        let commands = texts(batch, "command");
        let column = batch.column_by_name("transferred_bytes").unwrap();
        let bytes = column.as_primitive::<UInt64Type>();
        let frames = batch.column_by_name("response_frame").unwrap();
        for (row, command) in commands.iter().enumerate() {
            if command.as_deref() == Some("WriteAndX") {
                transferred += bytes.value(row);
                answered += u32::from(frames.is_valid(row));
            }
        }
    }
    let sizes = 44 * 5 + 52 + 72 * 2 + 104 * 2 + 192 * 2 + 512 + 712 + 1024 + 4096 * 88;
    assert_eq!((transferred, answered), (sizes, 103));
}

#[test]
fn statuses_and_pairs() {
    let expected: [(&str, &[&str]); 4] = [
        (
            "smb1-trans2-ntcreate.pcap",
            &[
                // The ReadAndX after the NtCreateAndX that failed, a NotifyChange at the end.
                " 2",
                "STATUS_MORE_PROCESSING_REQUIRED 1",
                "STATUS_NO_SUCH_FILE 7",
                "STATUS_OBJECT_NAME_NOT_FOUND 4",
                "STATUS_SUCCESS 41",
            ],
        ),
        ("smb1-smbclient.pcap", &["STATUS_SUCCESS 10"]),
        (
            "smb1-osx.pcap",
            &["ERRbaduid 3", "STATUS_MORE_PROCESSING_REQUIRED 3", "STATUS_SUCCESS 3"],
        ),
        (
            "smb1-port139-out-of-order.pcap",
            &["STATUS_OBJECT_NAME_NOT_FOUND 3", "STATUS_SUCCESS 75"],
        ),
    ];
    for (name, expected) in expected {
        let Some((batches, coverage)) = decode(name) else { return };
        assert_eq!(counts(&batches, "status_name"), expected, "{name}");
        assert_eq!((coverage.replies_unmatched, coverage.messages_malformed), (0, 0), "{name}");
    }
}

#[test]
fn damaged_messages_are_decoded_as_far_as_possible() {
    for name in ["smb1-fuzzed.pcap", "smb1-fragment-exhaustion.pcap", "smb1-trans-secondary.pcap"] {
        let Some((batches, coverage)) = decode(name) else { return };
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows as u64, coverage.operations, "{name}");
        assert!(rows > 0, "{name}");
    }
}
