//! Converts captures to rows that can be compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::array::{Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use smbscope_capture::{Decoder, Error, Input, Options, Part};
use smbscope_tables::tables::{
    Channel, Connection, Coverage, Handle, Interface, Session, Tree, Wait,
};

use super::packets::{Sending, pcap};
use super::talk::Talk;

/// Everything that captures decode to.
#[derive(Default)]
pub struct Decoded {
    pub batches: Vec<RecordBatch>,
    pub connections: Vec<Connection>,
    pub sessions: Vec<Session>,
    pub trees: Vec<Tree>,
    pub handles: Vec<Handle>,
    pub channels: Vec<Channel>,
    pub interfaces: Vec<Interface>,
    pub waits: Vec<Wait>,
    pub coverage: Vec<Coverage>,
}

/// One row: its columns that are not null, as text.
pub type Row = BTreeMap<String, String>;

impl Decoded {
    pub fn operations(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows without some columns.
    pub fn rows_without(&self, left_out: &[&str]) -> Vec<Row> {
        let options = FormatOptions::default();
        let mut out = Vec::new();
        for batch in &self.batches {
            let schema = batch.schema();
            let columns: Vec<_> = schema
                .fields()
                .iter()
                .zip(batch.columns())
                .filter(|(field, array)| {
                    !left_out.contains(&field.name().as_str()) && array.null_count() < array.len()
                })
                .map(|(field, array)| {
                    (field.name(), array, ArrayFormatter::try_new(array, &options).unwrap())
                })
                .collect();
            for row in 0..batch.num_rows() {
                let known = columns.iter().filter(|(_, array, _)| array.is_valid(row));
                out.push(
                    known
                        .map(|(name, _, values)| ((*name).clone(), values.value(row).to_string()))
                        .collect(),
                );
            }
        }
        out
    }

    pub fn rows(&self) -> Vec<Row> {
        self.rows_without(&[])
    }

    /// The row of a request or reply by its message id (and of a Cancel apart).
    pub fn by_id(&self) -> BTreeMap<String, Row> {
        let key = |row: &Row| {
            let cancel = if row["command"] == "Cancel" { "cancel of " } else { "" };
            format!("{}{cancel}{}", row["connection"], row["message_id"])
        };
        self.rows().into_iter().map(|row| (key(&row), row)).collect()
    }

    /// A column of all rows as numbers.
    pub fn numbers(&self, column: &str) -> Vec<Option<i64>> {
        let rows = self.rows();
        rows.iter().map(|row| row.get(column).map(|value| value.parse().unwrap())).collect()
    }
}

/// A folder in memory, if there is one.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Decodes a capture that is in memory.
pub fn decode(capture: &[u8], options: &Options) -> Decoded {
    decode_all(&[capture], options)
}

/// Decodes several captures as one table.
pub fn decode_all(captures: &[&[u8]], options: &Options) -> Decoded {
    let folder = folder();
    let mut paths = Vec::new();
    for (index, capture) in captures.iter().enumerate() {
        let path = folder.path().join(format!("{index}.pcap"));
        std::fs::write(&path, capture).unwrap();
        paths.push(path);
    }
    decode_files(paths, options).unwrap()
}

/// Decodes files; an error in the file is returned, any other error fails the test.
pub fn decode_files(paths: Vec<PathBuf>, options: &Options) -> Result<Decoded, Error> {
    let inputs = paths.into_iter().map(Input::Path).collect();
    let mut out = Decoded::default();
    for part in Decoder::open(inputs, options.clone())? {
        match part {
            Ok(Part::Operations(batch)) => out.batches.push(batch),
            Ok(Part::Connections(rows)) => out.connections.extend(rows),
            Ok(Part::Sessions(rows)) => out.sessions.extend(rows),
            Ok(Part::Trees(rows)) => out.trees.extend(rows),
            Ok(Part::Handles(rows)) => out.handles.extend(rows),
            Ok(Part::Channels(rows)) => out.channels.extend(rows),
            Ok(Part::Interfaces(rows)) => out.interfaces.extend(rows),
            Ok(Part::Waits(rows)) => out.waits.extend(rows),
            Ok(Part::Coverage(coverage)) => out.coverage.push(*coverage),
            // Rows of other sources, and referrals.
            Ok(_) => {}
            Err(Error::File(error)) => return Err(Error::File(error)),
            Err(error) => panic!("{error}"),
        }
    }
    Ok(out)
}

/// Decodes a conversation in which every message begins a segment.
pub fn decoded(talk: &Talk) -> Decoded {
    decode(&pcap(&Sending::default().aligned(talk), usize::MAX, false), &single())
}

/// With one thread.
pub fn single() -> Options {
    Options { threads: 1, ..Options::default() }
}

/// Two lists of rows are equal; otherwise prints the first difference.
#[track_caller]
pub fn assert_same(left: &[Row], right: &[Row], what: &str) {
    for (index, (left, right)) in left.iter().zip(right).enumerate() {
        if left != right {
            let differ: Vec<_> = left
                .keys()
                .chain(right.keys())
                .filter(|key| left.get(*key) != right.get(*key))
                .map(|key| format!("{key}: {:?} and {:?}", left.get(key), right.get(key)))
                .collect();
            panic!("{what}: row {index} ({:?}) differs: {differ:#?}", left.get("message_id"));
        }
    }
    assert_eq!(left.len(), right.len(), "{what}: number of rows");
}
