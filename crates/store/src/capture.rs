//! stub
#![allow(missing_docs)]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow::array::RecordBatch;
use smbscope_event::tables::*;

#[derive(Clone, Debug, Default)]
pub struct Limits;
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tables {
    pub operations: bool,
    pub connections: bool,
    pub sessions: bool,
    pub trees: bool,
    pub handles: bool,
}
impl Default for Tables {
    fn default() -> Self {
        Tables {
            operations: true,
            connections: true,
            sessions: true,
            trees: true,
            handles: true,
        }
    }
}
#[derive(Clone, Debug)]
pub struct Options {
    pub keys: Vec<u8>,
    pub threads: usize,
    pub projection: Option<Vec<usize>>,
    pub tables: Tables,
    pub batch_rows: usize,
    pub limits: Limits,
}
impl Default for Options {
    fn default() -> Self {
        Options {
            keys: vec![],
            threads: 0,
            projection: None,
            tables: Tables::default(),
            batch_rows: 8192,
            limits: Limits,
        }
    }
}
#[derive(Clone, Debug)]
pub enum Input {
    Path(PathBuf),
    Stdin,
}
#[derive(Debug)]
pub enum Part {
    Operations(RecordBatch),
    Connections(Vec<Connection>),
    Sessions(Vec<Session>),
    Trees(Vec<Tree>),
    Handles(Vec<Handle>),
    Coverage(Box<Coverage>),
}
#[derive(Debug, thiserror::Error)]
#[error("capture error")]
pub struct Error;
#[derive(Debug, Default)]
pub struct Progress {
    operations: AtomicU64,
}
impl Progress {
    pub fn bytes_done(&self) -> u64 {
        self.operations()
    }
    pub fn bytes_total(&self) -> Option<u64> {
        Some(self.operations())
    }
    pub fn frames(&self) -> u64 {
        self.operations()
    }
    pub fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }
}
pub struct Decoder {
    rows: crate::synthetic::Synthetic,
    rest: Vec<Part>,
    progress: Arc<Progress>,
    wanted: bool,
}
/// Batches that all stubs made: tests look whether decoding ended early.
pub static BATCHES: AtomicU64 = AtomicU64::new(0);
pub fn is_capture(first: &[u8]) -> bool {
    first.starts_with(b"SYNTHETIC ")
}
impl Decoder {
    pub fn open(inputs: Vec<Input>, options: Options) -> Result<Decoder, Error> {
        let mut rows = 0;
        for input in inputs {
            if let Input::Path(path) = input {
                let text = std::fs::read_to_string(path).map_err(|_| Error)?;
                rows += text[10..].trim().parse::<u64>().map_err(|_| Error)?;
            }
        }
        let mut rest = crate::synthetic_rest::rest(rows);
        rest.retain(|part| match part {
            Part::Connections(_) => options.tables.connections,
            Part::Sessions(_) => options.tables.sessions,
            Part::Trees(_) => options.tables.trees,
            Part::Handles(_) => options.tables.handles,
            _ => true,
        });
        rest.reverse();
        Ok(Decoder {
            rows: crate::synthetic::Synthetic::new(
                rows,
                options.batch_rows as u64,
                options.projection.as_deref(),
            ),
            rest,
            progress: Arc::default(),
            wanted: options.tables.operations,
        })
    }
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}
impl Iterator for Decoder {
    type Item = Result<Part, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        BATCHES.fetch_add(1, Relaxed);
        if self.wanted {
            if let Some(batch) = self.rows.next() {
                self.progress
                    .operations
                    .fetch_add(batch.num_rows() as u64, Relaxed);
                return Some(Ok(Part::Operations(batch)));
            }
        }
        self.rest.pop().map(Ok)
    }
}
