//! The marker that `prepare` leaves in a home: seed and scale of its files, and a fingerprint of them.
//!
//! An empty file with this information in its name, so that a listing of the home shows it; one for
//! each workload, because a home may have the files of several.

use sha2::{Digest, Sha256};

use super::FileSet;

impl FileSet {
    /// Name of the file in a home that records what the home was prepared for.
    pub fn marker(&self) -> String {
        let scale = self.scale.factor();
        format!("{}{}-scale{scale}-files{}", self.marker_prefix(), self.seed, self.fingerprint())
    }

    /// Hash of the first user's names and sizes: they follow from the workload as well as from seed and
    /// scale.
    fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for file in self.user(1) {
            hash.update(file.path.as_bytes());
            hash.update([0]);
            hash.update(file.bytes.to_le_bytes());
        }
        hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The fingerprint if all scenarios are run: files for all scenarios include the files for some of them.
    fn fingerprint_of_all(&self) -> String {
        let mut all = self.clone();
        all.pools.iter_mut().for_each(|pool| pool.is_used = true);
        all.fingerprint()
    }

    /// Whether an entry of a home is a marker of this workload, for any seed and scale.
    pub fn is_marker(&self, name: &str) -> bool {
        name.to_lowercase().starts_with(&self.marker_prefix())
    }

    /// What a home with these entries was prepared for, if the files are not this file set's. A home
    /// without a marker (of an older version) is accepted.
    pub fn prepared_otherwise<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<String> {
        let prefix = self.marker_prefix();
        let fitting = [self.fingerprint(), self.fingerprint_of_all()];
        let mut others = names.filter_map(|name| {
            let lower = name.to_lowercase();
            let (seed, rest) = lower.strip_prefix(&prefix)?.split_once("-scale")?;
            let (scale, files) = match rest.split_once("-files") {
                Some((scale, files)) => (scale, Some(files)),
                None => (rest, None),
            };
            let (seed, scale): (u64, f64) = (seed.parse().ok()?, scale.parse().ok()?);
            Some(if (seed, scale) != (self.seed, self.scale.factor()) {
                Some(format!("--seed {seed} --scale {scale}"))
            } else {
                files.is_some_and(|files| !fitting.iter().any(|fits| fits == files)).then(|| {
                    "another --size, or before the workload's files were changed".to_owned()
                })
            })
        });
        let first = others.next()?;
        // The marker of the run itself is preferred.
        if others.any(|other| other.is_none()) { None } else { first }
    }

    pub(super) fn marker_prefix(&self) -> String {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let workload: String = self.workload.to_lowercase().chars().map(plain).collect();
        format!(".smbscope-{workload}-seed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileset::Scale;
    use crate::workload::{Overrides, Workload};

    fn set(seed: u64, scale: f64) -> FileSet {
        let workload = Workload::built_in("bulk-copy").unwrap();
        workload.file_set(seed, Scale::new(scale).unwrap())
    }

    fn otherwise(files: &FileSet, names: &[&str]) -> Option<String> {
        files.prepared_otherwise(names.iter().copied())
    }

    #[test]
    fn another_scale_or_seed_is_noticed() {
        let made = set(7, 0.25).marker();
        assert!(made.starts_with(".smbscope-bulk_copy-seed7-scale0.25-files"), "{made}");
        let said = Some("--seed 7 --scale 0.25".to_owned());
        assert_eq!(otherwise(&set(7, 1.0), &["Work", &made]), said);
        assert_eq!(otherwise(&set(8, 0.25), &[&made]), said);
        assert_eq!(otherwise(&set(7, 0.25), &[&made]), None);
        assert_eq!(otherwise(&set(7, 0.25), &[&set(7, 1.0).marker(), &made]), None);
        // Unknown, or another workload's.
        let other = ".smbscope-metadata-seed1-scale1";
        assert_eq!(otherwise(&set(7, 1.0), &["Work", other, ".smbscope-bulk_copy-seedx"]), None);
        assert!(set(1, 1.0).is_marker(&made) && !set(1, 1.0).is_marker(other));
    }

    /// A run of one scenario was refused in every home that was prepared for all scenarios.
    #[test]
    fn files_for_all_scenarios_include_those_for_one() {
        for (workload, scenario) in [("bulk-copy", "Upload"), ("homefolder", "WordFileClose")] {
            let all = Workload::built_in(workload).unwrap();
            let one = all.clone().only(&[scenario]).unwrap();
            let [all, one] = [all, one].map(|it| it.file_set(7, Scale::FULL));
            assert_ne!(all.marker(), one.marker());
            assert_eq!(otherwise(&one, &[&all.marker()]), None);
            assert!(otherwise(&all, &[&one.marker()]).is_some());
        }
    }

    #[test]
    fn other_files_of_the_workload_are_noticed() {
        let made = set(7, 0.25);
        let marker = made.marker();
        let size = Overrides { size_bytes: Some(1_000_000), ..Overrides::default() };
        let other = Workload::built_in("bulk-copy").unwrap().with_overrides(&size).unwrap();
        let other = other.file_set(7, Scale::new(0.25).unwrap());
        assert!(otherwise(&other, &[&marker]).unwrap().contains("--size"));
        assert_eq!(otherwise(&other, &[&marker, &other.marker()]), None);
        // An older version did not record it.
        let older = marker.split("-files").next().unwrap();
        assert_eq!(otherwise(&made, &[older]), None);
    }
}
