//! A live source whose parts are changed on their way: names are filled in, rows are left out.

use smbscope_store::{Part, Table};
use smbscope_tables::filter::{Filter, RowFilter};

use super::known_names::KnownNames;
use super::machine::MachineCounters;
use super::source::{Filtered, LiveSource, Received};

/// What is done to the parts that arrived together.
enum Amend {
    /// Rows are left out.
    Sift(Box<RowFilter>),
    /// The names of sessions and shares that Samba knows are filled in.
    Name(KnownNames),
    /// The machine's counters are added.
    Count(MachineCounters),
}

impl Amend {
    fn parts(&mut self, parts: Vec<Part>) -> anyhow::Result<Vec<Part>> {
        match self {
            Amend::Sift(filter) => sift(filter, parts),
            Amend::Name(names) => parts.into_iter().map(|part| names.part(part)).collect(),
            // Coverage stays the last part.
            Amend::Count(counters) => Ok(counters.parts().chain(parts).collect()),
        }
    }

    fn received(&self, received: Received) -> Received {
        let Amend::Sift(filter) = self else { return received };
        let (kept, all) = filter.counts();
        Received { filtered: Some(Filtered { kept, all }), ..received }
    }
}

/// A source with changed parts.
pub struct AmendedSource {
    source: Box<dyn LiveSource>,
    amend: Amend,
}

impl AmendedSource {
    /// Yields only the rows of `source` that meet a filter, and counts them.
    pub fn filtered(source: Box<dyn LiveSource>, filter: Filter) -> AmendedSource {
        let filter = Box::new(RowFilter::new(filter, &Table::ALL));
        AmendedSource { source, amend: Amend::Sift(filter) }
    }

    /// Fills in the names of sessions and shares that Samba knows.
    pub fn named(source: Box<dyn LiveSource>, names: KnownNames) -> AmendedSource {
        AmendedSource { source, amend: Amend::Name(names) }
    }

    /// Adds the counters of this machine.
    pub fn counted(source: Box<dyn LiveSource>, counters: MachineCounters) -> AmendedSource {
        AmendedSource { source, amend: Amend::Count(counters) }
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
        self.amend.parts(self.source.parts()?)
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
        self.amend.received(self.source.received())
    }

    fn start_recording(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        let before = self.amend.parts(self.source.start_recording(recording)?)?;
        if let Amend::Count(counters) = &mut self.amend {
            counters.rename(recording);
        }
        Ok(before)
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        self.amend.parts(self.source.stop_recording()?)
    }

    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        let AmendedSource { source, mut amend } = *self;
        let (parts, received) = source.close()?;
        let parts = amend.parts(parts)?;
        Ok((parts, amend.received(received)))
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::builder::OperationBuilder;
    use smbscope_tables::operation::Operation;

    use super::*;

    /// A source with ten operations on each of two shares.
    struct Twenty;

    impl LiveSource for Twenty {
        fn receive(&mut self) -> anyhow::Result<bool> {
            Ok(true)
        }

        fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
            let mut builder = OperationBuilder::new(None)?;
            for number in 0..20 {
                let mut row = Operation::default();
                row.set_recording(builder.names.recording.intern("live"));
                let share = if number % 2 == 0 { r"\\s\docs" } else { r"\\s\home" };
                row.set_share(builder.names.share.intern(share));
                builder.append(&[row]);
            }
            Ok(vec![Part::Operations(builder.finish()?)])
        }

        fn until(&self) -> i64 {
            0
        }

        fn set_dropping(&mut self, _: bool) {}

        fn received(&mut self) -> Received {
            Received { operations: 20, ..Received::default() }
        }

        fn start_recording(&mut self, _: &str) -> anyhow::Result<Vec<Part>> {
            Ok(Vec::new())
        }

        fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
            Ok(Vec::new())
        }

        fn close(mut self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
            Ok((self.parts()?, self.received()))
        }
    }

    #[test]
    fn a_filter_counts_what_it_kept_until_the_end() {
        let filter = Filter { shares: vec!["docs".parse().unwrap()], ..Filter::default() };
        let mut source = AmendedSource::filtered(Box::new(Twenty), filter);
        let kept = source.parts().unwrap();
        assert!(matches!(&kept[..], [Part::Operations(batch)] if batch.num_rows() == 10));
        assert_eq!(source.received().filtered, Some(Filtered { kept: 10, all: 20 }));
        let (_, received) = Box::new(source).close().unwrap();
        assert_eq!(received.filtered, Some(Filtered { kept: 20, all: 40 }));
        assert_eq!(received.operations, 20);
    }

    #[test]
    fn names_are_no_filter() {
        let mut source = AmendedSource::named(Box::new(Twenty), KnownNames::default());
        assert_eq!(source.received().filtered, None);
        assert!(source.parts().is_ok());
    }
}
