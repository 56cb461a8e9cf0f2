//! The network without SMB: what a test takes from a recording, the folder of a test, and the network
//! next to SMB.

use arrow::array::RecordBatch;
use std::path::Path;

use anyhow::Context as _;
use smbscope_analysis::net::like::{COLUMNS, Like, LikeTally};
use smbscope_analysis::net::{Net, NetTally};
use smbscope_analysis::summary::{Options, Report};
use smbscope_store::Part;
use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_store::source::Source;
use smbscope_tables::manifest::Kind;
use smbscope_tables::tables::{NetInterval, NetRoundTrip, NetTest};

use super::pass::{Monitor, OfOperations, pass};
use super::summarize::summarize;
use crate::exit::{Code, Failure};

/// The rows of a test.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Phases and directions.
    pub tests: Vec<NetTest>,
    /// Streams, interval by interval.
    pub intervals: Vec<NetInterval>,
    /// Round trips.
    pub round_trips: Vec<NetRoundTrip>,
}

/// What a test takes from a recording of SMB.
pub fn like(source: &Source, monitor: &dyn Monitor) -> anyhow::Result<Option<Like>> {
    let mut tally = LikeTally::default();
    pass(source, &mut [&mut tally], monitor)?;
    Ok(tally.finish())
}

impl OfOperations for LikeTally {
    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.operations(batch)?)
    }
}

/// The result of one test alone.
pub fn alone(rows: &Rows) -> Option<Net> {
    let mut tally = NetTally::default();
    tally.tests(&rows.tests);
    tally.round_trips(&rows.round_trips);
    tally.finish_alone()
}

/// A report of the network only.
pub fn report(net: Option<Net>) -> Report {
    let tests = || net.iter().flat_map(|net| &net.tests);
    let (start_ns, end_ns) = (
        tests().map(|test| test.started_at).min(),
        tests().map(|test| test.started_at.saturating_add(test.duration_ns)).max(),
    );
    Report {
        schema_version: smbscope_tables::SCHEMA_VERSION,
        start_ns,
        end_ns,
        net,
        ..Report::default()
    }
}

/// The network next to SMB, from inputs of which some have a test and some SMB.
pub fn with_smb(source: &Source, monitor: &dyn Monitor) -> anyhow::Result<Option<Net>> {
    let (report, _) = summarize(source, Options::default(), None, monitor)?;
    Ok(report.net)
}

/// A run folder that waits for the rows of a test.
pub struct Folder {
    writer: DatasetWriter,
    name: String,
}

impl Folder {
    /// Creates it before the test, so that what cannot be written is known early.
    pub fn create(out: &Path, overwrite: bool) -> anyhow::Result<Folder> {
        let name = out.display().to_string();
        let options = WriteOptions { overwrite, ..WriteOptions::default() };
        let writer = DatasetWriter::create(out, ManifestSeed::now(Kind::Net, Vec::new()), options)
            .with_context(|| cannot(&name))?;
        Ok(Folder { writer, name })
    }

    /// Writes the rows and completes it.
    pub fn write(mut self, rows: Rows) -> anyhow::Result<()> {
        let parts = [
            Part::NetTests(rows.tests),
            Part::NetIntervals(rows.intervals),
            Part::NetRoundTrips(rows.round_trips),
        ];
        for part in parts {
            self.writer.part(part).with_context(|| cannot(&self.name))?;
        }
        self.writer.finish(true).with_context(|| cannot(&self.name))?;
        Ok(())
    }
}

fn cannot(name: &str) -> Failure {
    Failure::new(Code::Output, format!("{name}: the test cannot be written"))
}
