//! Rows of the other tables of a synthetic recording.

use smbscope_tables::tables::{Connection, Coverage, Handle, Session, Tree};

use crate::synthetic::{START, Synthetic};
use crate::{Part, Table};

/// The other tables of a synthetic recording.
pub fn rest(rows: u64) -> Vec<Part> {
    let recording = || "synthetic.pcap".to_owned();
    let connections = (0..7).map(|connection| Connection {
        recording: recording(),
        connection,
        client: format!("10.0.0.{connection}"),
        client_port: 50_000 + connection,
        server: "10.0.1.1".into(),
        server_port: 445,
        dialect: Some("3.1.1".into()),
        start: START,
        end: START + rows as i64 * 20_000,
        packets_to_server: 10,
        retransmissions_to_client: connection,
        operations: rows / 7,
        ..Connection::default()
    });
    let sessions = (0..7).map(|connection| Session {
        recording: recording(),
        session_id: 0x1_0000_0001 + connection,
        connection,
        client: format!("10.0.0.{connection}"),
        user: Some(format!("EXAMPLE\\user{connection}")),
        channels: 1,
        start: START,
        ..Session::default()
    });
    let trees = (0..7).map(|connection| Tree {
        recording: recording(),
        session_id: 0x1_0000_0001 + connection,
        tree_id: 5,
        connection,
        share: Some("\\\\server\\home".into()),
        share_type: Some("Disk".into()),
        start: START,
        ..Tree::default()
    });
    let handles = (0..rows / 5).map(|handle| Handle {
        recording: recording().into(),
        handle,
        connection: handle % 7,
        client: format!("10.0.0.{}", handle % 7).into(),
        path: Some(format!("home\\file{handle}.docx").into()),
        opened_at: Some(START + handle as i64 * 100_000),
        closed_at: (!handle.is_multiple_of(10)).then_some(START + handle as i64 * 100_000 + 50_000),
        operations: 5,
        ..Handle::default()
    });
    vec![
        Part::Connections(connections.collect()),
        Part::Sessions(sessions.collect()),
        Part::Trees(trees.collect()),
        Part::Handles(handles.collect()),
        Part::Coverage(Box::new(Coverage {
            recording: recording(),
            format: "synthetic".into(),
            resolution_ns: Some(1000),
            start: Some(START),
            operations: rows,
            ..Coverage::default()
        })),
    ]
}

/// A finished run folder with `rows` synthetic operations.
pub fn dataset(dir: &std::path::Path, rows: u64) -> smbscope_tables::manifest::Manifest {
    use crate::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
    let seed = ManifestSeed { created_at: 1, ..ManifestSeed::now(Default::default(), Vec::new()) };
    let options = WriteOptions {
        interval: std::time::Duration::from_secs(3600),
        row_group_rows: 1000,
        ..WriteOptions::default()
    };
    let mut writer = DatasetWriter::create(dir, seed, options).unwrap();
    for batch in crate::synthetic::Synthetic::new(rows, 1000, None) {
        writer.part(Part::Operations(batch)).unwrap();
    }
    for part in rest(rows) {
        writer.part(part).unwrap();
    }
    writer.finish(true).unwrap()
}

/// A capture of the repository's fixtures or the shared captures; prints a message if it is missing.
pub fn capture(name: &str) -> Option<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("SMBSCOPE_SHARED")
        .map_or_else(|| root.join("../shared"), std::path::PathBuf::from);
    let places = [
        root.join("tests/fixtures").join(name),
        shared.join("captures").join(name),
        root.join("../../shared/captures").join(name),
    ];
    let found = places.iter().find(|path| path.is_file());
    if found.is_none() {
        smbscope_testing::skip!("no capture {name}");
    }
    found.map(|path| path.to_string_lossy().into_owned())
}

/// Operations that all have this path.
pub fn with_path(rows: u64, text: &str) -> arrow::array::RecordBatch {
    use arrow::array::{ArrayRef, StringArray};
    let schema = Table::Operations.schema();
    let wanted = schema.index_of("path").unwrap();
    let texts: ArrayRef = std::sync::Arc::new(StringArray::from(vec![text; rows as usize]));
    let batch = Synthetic::new(rows, rows, None).next().unwrap();
    let mut columns = batch.columns().to_vec();
    columns[wanted] = arrow::compute::cast(&texts, schema.field(wanted).data_type()).unwrap();
    arrow::array::RecordBatch::try_new(schema, columns).unwrap()
}
