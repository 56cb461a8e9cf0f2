//! A live source whose rows are only those that meet a filter.

use smbscope_store::{Part, Table};
use smbscope_tables::filter::{Filter, RowFilter};

use super::source::{LiveSource, Received};

/// A filtered source.
pub struct FilteredSource {
    source: Box<dyn LiveSource>,
    filter: RowFilter,
}

impl FilteredSource {
    /// Filters the rows of `source`.
    pub fn new(source: Box<dyn LiveSource>, filter: Filter) -> FilteredSource {
        FilteredSource { source, filter: RowFilter::new(filter, &Table::ALL) }
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

impl LiveSource for FilteredSource {
    fn receive(&mut self) -> anyhow::Result<bool> {
        self.source.receive()
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        sift(&mut self.filter, self.source.parts()?)
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
        let parts = self.source.start_recording(recording)?;
        sift(&mut self.filter, parts)
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        let parts = self.source.stop_recording()?;
        sift(&mut self.filter, parts)
    }

    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        let FilteredSource { source, mut filter } = *self;
        let (parts, received) = source.close()?;
        Ok((sift(&mut filter, parts)?, received))
    }
}
