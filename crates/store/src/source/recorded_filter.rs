//! What filters left out of inputs when these were recorded, from their manifests.

use smbscope_tables::manifest::{HIDDEN_FILTER, Manifest};

/// The filters with which inputs were recorded, and what they kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFilter {
    /// The filters in words.
    pub words: String,
    /// Operations that were kept, in the inputs with a filter.
    pub kept: u64,
    /// Operations that were seen for them; `None` if a recording was not completed, and they were not counted.
    pub all: Option<u64>,
}

impl RecordedFilter {
    /// The filters of some manifests among this number of inputs.
    pub(super) fn from_manifests<'a>(
        manifests: impl Iterator<Item = &'a Manifest>,
        inputs: usize,
        hides_names: bool,
    ) -> Option<RecordedFilter> {
        let mut found = RecordedFilter { words: String::new(), kept: 0, all: Some(0) };
        // Inputs by their filter, in the order of the inputs.
        let mut filters: Vec<(&str, usize)> = Vec::new();
        for manifest in manifests {
            let Some(words) = manifest.filter.as_deref() else { continue };
            let words = if hides_names { HIDDEN_FILTER } else { words };
            match filters.iter_mut().find(|(known, _)| *known == words) {
                Some((_, count)) => *count += 1,
                None => filters.push((words, 1)),
            }
            found.kept += manifest.rows("operations");
            let seen = manifest.coverage.iter().map(|coverage| coverage.operations).sum::<u64>();
            let seen = (manifest.complete && !manifest.coverage.is_empty()).then_some(seen);
            found.all = found.all.zip(seen).map(|(all, seen)| all + seen);
        }
        found.words = match filters.as_slice() {
            [] => return None,
            [(words, count)] if *count == inputs => (*words).to_owned(),
            several => {
                let of = |(words, count): &(&str, usize)| {
                    format!("{words} (in {count} of {inputs} inputs)")
                };
                several.iter().map(of).collect::<Vec<_>>().join("; ")
            }
        };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use smbscope_tables::manifest::{Kind, PartFile};
    use smbscope_tables::tables::Coverage;

    use super::*;

    fn manifest(filter: Option<&str>) -> Manifest {
        let mut manifest = Manifest::new(Kind::Record, 1);
        manifest.filter = filter.map(str::to_owned);
        manifest.complete = true;
        manifest.coverage = vec![Coverage { operations: 100, ..Coverage::default() }];
        let part = PartFile { rows: 7, ..PartFile::default() };
        manifest.tables.insert("operations".to_owned(), vec![part]);
        manifest
    }

    fn of(manifests: &[Manifest], inputs: usize) -> Option<RecordedFilter> {
        RecordedFilter::from_manifests(manifests.iter(), inputs, false)
    }

    #[test]
    fn filters_of_recordings_are_in_words_with_what_they_kept() {
        let docs = manifest(Some("share docs"));
        let found = of(std::slice::from_ref(&docs), 1).unwrap();
        assert_eq!((found.words.as_str(), found.kept, found.all), ("share docs", 7, Some(100)));
        let both = of(&[docs.clone(), docs.clone()], 2).unwrap();
        assert_eq!((both.words.as_str(), both.kept, both.all), ("share docs", 14, Some(200)));
        // Of another input nothing was left out.
        let mixed = of(&[docs.clone(), manifest(None)], 2).unwrap();
        assert_eq!(mixed.words, "share docs (in 1 of 2 inputs)");
        assert_eq!((mixed.kept, mixed.all), (7, Some(100)));
        // Nor is anything known that was never counted.
        let killed = Manifest { complete: false, coverage: Vec::new(), ..docs.clone() };
        assert_eq!(of(&[docs.clone(), killed], 2).unwrap().all, None);
        let hidden = RecordedFilter::from_manifests([docs].iter(), 1, true).unwrap();
        assert_eq!(hidden.words, HIDDEN_FILTER);
    }

    #[test]
    fn recordings_without_a_filter_are_whole() {
        assert_eq!(of(&[manifest(None)], 1), None);
        assert_eq!(of(&[], 1), None);
    }
}
