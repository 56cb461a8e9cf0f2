//! Variants of the fixtures made by a program (`tests/samba/mutate.py`): loss, reordering, duplication,
//! snap lengths, tags, link types, file formats. That program's `--list` has the expected results.
//! Needs Python 3; without it the tests report that and pass.

// A test may panic.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use smbscope_tables::tables::Coverage;
use support::decode::{Decoded, Row, assert_same, decode_files, folder, single};

/// Fixtures with segments, compounds, asynchronous replies, raw mode, breaks and both protocols.
const FIXTURES: &[&str] = &[
    "smb311.pcapng",
    "smb210.pcap",
    "ipv6.pcapng",
    "mtu-1500.pcap",
    "mtu-1500-nt1.pcap",
    "mtu-1500-encrypted.pcap",
    "nt1.pcap",
    "nt1-raw-mode.pcap",
    "compound-break.pcapng",
    "lease-break.pcapng",
    "lock-blocked.pcapng",
    "port-4450.pcapng",
];

/// Columns that a variant changes by itself: positions in the file and TCP numbers, and the results of
/// acknowledgements that a variant omits, repeats or moves.
const OWN: &[&str] = &[
    "recording",
    "capture_file",
    "operation",
    "request_frame",
    "response_frame",
    "pending_frame",
    "tcp_sequence",
    "vantage",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
];

/// Columns of time; those of durations end in `_ns`.
const TIMES: &[&str] =
    &["request_start", "request_end", "pending_at", "response_start", "response_end"];

struct Variant {
    file: PathBuf,
    original: String,
    name: String,
    expect: String,
}

fn decode(path: &Path) -> Decoded {
    decode_files(vec![path.to_owned()], &single())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sorted(decoded: &Decoded, left_out: &[&str]) -> Vec<Row> {
    let left_out: Vec<_> = OWN.iter().chain(left_out).copied().collect();
    let mut rows = decoded.rows_without(&left_out);
    rows.sort();
    rows
}

fn without_times(decoded: &Decoded) -> Vec<Row> {
    let mut rows = decoded.rows_without(&[OWN, TIMES].concat());
    for row in &mut rows {
        row.retain(|column, _| !column.ends_with("_ns"));
    }
    rows.sort();
    rows
}

/// Rows that are not later members of a compound.
fn leads(decoded: &Decoded) -> Vec<Row> {
    let mut rows = decoded.rows();
    rows.retain(|row| row.get("compound_index").is_none_or(|index| index == "0"));
    rows
}

type Times = BTreeMap<String, i64>;

/// Times by row, in the order of the rows' requests.
fn times(decoded: &Decoded) -> Vec<Times> {
    let of = |row: &Row| -> Times {
        let known = TIMES.iter().filter_map(|&name| Some((name, row.get(name)?)));
        known.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    };
    let mut rows: Vec<_> = leads(decoded).iter().map(of).collect();
    rows.sort_by_key(|row| (row.get("request_start").copied(), row.get("response_end").copied()));
    rows
}

/// The identity of an operation in every variant; the command, which a member of a compound after the
/// cut does not have, comes last.
fn key(row: &Row) -> [Option<String>; 4] {
    ["client_port", "protocol", "message_id", "command"].map(|column| row.get(column).cloned())
}

/// Raw data of nt1-raw-mode imitates an Echo. If the request that announces it is lost, it cannot
/// be distinguished.
fn imitates(row: &Row) -> bool {
    let is = |column: &str, value: &str| row.get(column).is_some_and(|known| known == value);
    is("command", "Echo") && is("message_id", "0") && is("request_wire_bytes", "237")
}

/// Every row is one of the original's, without contradictions.
fn assert_none_invented(original: &Decoded, variant: &Decoded, what: &str, named: bool) {
    let mut known: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for row in original.rows() {
        if row.contains_key("compound") {
            let [port, protocol, number, _] = key(&row);
            known.entry([port, protocol, number, None]).or_default().push(row.clone());
        }
        known.entry(key(&row)).or_default().push(row);
    }
    for row in variant.rows() {
        if imitates(&row) {
            continue;
        }
        let same = known.get(&key(&row)).unwrap_or_else(|| panic!("{what}: invented {row:?}"));
        let agree = |column: &str, other: &Row| match (row.get(column), other.get(column)) {
            (Some(own), Some(known)) => own == known,
            _ => true,
        };
        let mut columns = vec!["status", "offset_bytes", "requested_bytes", "async_id", "file_id"];
        if named {
            columns.extend(["path", "share", "user"]);
        }
        assert!(
            same.iter().any(|other| columns.iter().all(|column| agree(column, other))),
            "{what}: {row:?} is not one of {same:?}"
        );
    }
    // An encrypted interim reply cannot be distinguished from a final one: without its request it
    // is a row. So is a raw-mode reply that requests the rest, if the rest was lost.
    let unmatched = |decoded: &Decoded| decoded.coverage[0].replies_unmatched as usize;
    let more = unmatched(original).max(unmatched(variant));
    let found = variant.rows().iter().filter(|row| !imitates(row)).count();
    let whole = original.operations() + more;
    assert!(found <= whole, "{what}: {found} of {whole}");
}

/// Whether a coverage reports missing data.
fn admits_loss(coverage: &Coverage) -> bool {
    coverage.gaps
        + coverage.frames_cut
        + coverage.connections_mid_stream
        + coverage.connections_one_direction
        + coverage.operations_unanswered
        + coverage.replies_unmatched
        > 0
        || coverage.cut_off.is_some()
}

/// Times cut to `step` nanoseconds, and at most `slack` earlier.
fn assert_times(original: &[Times], variant: &[Times], step: i64, slack: i64, what: &str) {
    assert_eq!(original.len(), variant.len(), "{what}");
    for (own, other) in original.iter().zip(variant) {
        for (column, time) in own {
            let difference = time / step * step - other[column];
            assert!((0..=slack).contains(&difference), "{what}: {own:?} {other:?}");
        }
    }
}

fn check(original: &Decoded, variant: &Variant) {
    let what = variant.file.display().to_string();
    let decoded = decode(&variant.file);
    let coverage = &decoded.coverage[0];
    match variant.expect.as_str() {
        "none" => assert_eq!(decoded.operations(), 0, "{what}"),
        "less" => {
            // Without the beginning of a TCP stream a name can belong to a later file.
            assert_none_invented(original, &decoded, &what, !variant.name.starts_with("loss"));
            assert!(
                decoded.operations() == original.operations() || admits_loss(coverage),
                "{what}: {} of {} operations and no loss counted: {coverage:?}",
                decoded.operations(),
                original.operations()
            );
        }
        "headers" => {
            assert_none_invented(original, &decoded, &what, true);
            assert_eq!(leads(&decoded).len(), leads(original).len(), "{what}");
            // Members of compounds after the cut are counted too.
            assert_eq!(decoded.operations(), original.operations(), "{what}");
            assert_times(&times(original), &times(&decoded), 1_000, 0, &what);
        }
        "same" if variant.name == "connections-interleaved" => {
            let of_connection = ["connection", "client_port", "handle", "compound", "session_id"];
            let twice: Vec<_> = sorted(original, &of_connection)
                .into_iter()
                .flat_map(|row| [row.clone(), row])
                .collect();
            assert_same(&twice, &sorted(&decoded, &of_connection), &what);
        }
        // On an unusual port SMB is recognized by the first ten bytes of a segment: with smaller
        // segments, a message or two pass before that.
        "same" if variant.original.contains("port-4450") && variant.name.ends_with("finely") => {
            assert_none_invented(original, &decoded, &what, true);
            assert!(decoded.operations() + 2 >= original.operations(), "{what}");
        }
        "same" => assert_same(&sorted(original, &[]), &sorted(&decoded, &[]), &what),
        "same_us" | "near" => {
            assert_same(&without_times(original), &without_times(&decoded), &what);
            let (step, slack) = if variant.expect == "near" { (1, 2) } else { (1_000, 0) };
            assert_times(&times(original), &times(&decoded), step, slack, &what);
        }
        other => panic!("{what}: what is '{other}'?"),
    }
}

#[test]
fn variants_of_the_fixtures_decode_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if Command::new("python3").arg("--version").output().is_err() {
        smbscope_testing::skip!("python3 is not installed");
        return;
    }
    let folder = folder();
    let fixtures = root.join("tests/fixtures");
    let made = Command::new("python3")
        .arg(root.join("tests/samba/mutate.py"))
        .args(FIXTURES.iter().map(|name| fixtures.join(name)))
        .arg("--out")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let list = std::fs::read_to_string(folder.path().join("variants.tsv")).unwrap();
    let mut originals: BTreeMap<String, Decoded> = BTreeMap::new();
    let mut checked = 0;
    for line in list.lines().filter(|line| !line.starts_with("file\t")) {
        let cells: Vec<_> = line.split('\t').collect();
        let [file, original, name, expect, ..] = cells[..] else { panic!("{line}") };
        let variant = Variant {
            file: folder.path().join(file),
            original: original.to_owned(),
            name: name.to_owned(),
            expect: expect.to_owned(),
        };
        let whole = originals
            .entry(variant.original.clone())
            .or_insert_with(|| decode(&fixtures.join(Path::new(original).file_name().unwrap())));
        assert!(whole.operations() > 0, "{original}");
        check(whole, &variant);
        checked += 1;
    }
    assert!(checked > 40 * FIXTURES.len(), "only {checked} variants: is zstd missing?");
}
