//! A live source whose parts are changed on their way: names are filled in, rows are left out.

use smbscope_store::{Part, Table};
use smbscope_tables::filter::{Filter, RowFilter};

use super::known_names::KnownNames;
use super::source::{LiveSource, Received};

/// What is done to the parts that arrived together.
type Amend = Box<dyn FnMut(Vec<Part>) -> anyhow::Result<Vec<Part>>>;

/// A source with changed parts.
pub struct AmendedSource {
    source: Box<dyn LiveSource>,
    amend: Amend,
}

impl AmendedSource {
    /// Yields only the rows of `source` that meet a filter.
    pub fn filtered(source: Box<dyn LiveSource>, filter: Filter) -> AmendedSource {
        let mut filter = RowFilter::new(filter, &Table::ALL);
        AmendedSource { source, amend: Box::new(move |parts| sift(&mut filter, parts)) }
    }

    /// Fills in the names of sessions and shares that Samba knows.
    pub fn named(source: Box<dyn LiveSource>, names: KnownNames) -> AmendedSource {
        let amend =
            move |parts: Vec<Part>| parts.into_iter().map(|part| names.part(part)).collect();
        AmendedSource { source, amend: Box::new(amend) }
    }
}

/// The rows that stay. The operations that other rows refer to have arrived by now.
fn sift(filter: &mut RowFilter, parts: Vec<Part>) -> anyhow::Result<Vec<Part>> {
    let mut kept = Vec::with_capacity(parts.len());
    let mut coverage = None;
    for part in parts {
        match filter.part(part)? {
            // Coverage is the last part of a recording.
            Some(part @ Part::Coverage(_)) => coverage = Some(part),
            part => kept.extend(part),
        }
    }
    kept.extend(filter.release());
    kept.extend(coverage);
    Ok(kept)
}

impl LiveSource for AmendedSource {
    fn receive(&mut self) -> anyhow::Result<bool> {
        self.source.receive()
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        (self.amend)(self.source.parts()?)
    }

    fn deliver_often(&mut self) {
        self.source.deliver_often();
    }

    fn until(&self) -> i64 {
        self.source.until()
    }

    fn set_dropping(&mut self, drops: bool) {
        self.source.set_dropping(drops);
    }

    fn received(&mut self) -> Received {
        self.source.received()
    }

    fn start_recording(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        (self.amend)(self.source.start_recording(recording)?)
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        (self.amend)(self.source.stop_recording()?)
    }

    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        let AmendedSource { source, mut amend } = *self;
        let (parts, received) = source.close()?;
        Ok((amend(parts)?, received))
    }
}
