//! What `prepare` leaves in a home to say of which seed and scale its files are.
//!
//! An empty file whose name says it, so that whoever lists the home knows; one for each workload,
//! because a home may have the files of several.

use super::FileSet;

impl FileSet {
    /// Name of the file in a home that says what it was prepared for.
    pub fn marker(&self) -> String {
        format!("{}{}-scale{}", self.marker_prefix(), self.seed, self.scale.factor())
    }

    /// Whether an entry of a home is a marker of this workload, of whichever seed and scale.
    pub fn is_marker(&self, name: &str) -> bool {
        name.to_lowercase().starts_with(&self.marker_prefix())
    }

    /// The options for which a home with these entries was prepared, when they are not this file
    /// set's. One without a marker (of an older version) is taken as it is.
    pub fn prepared_otherwise<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<String> {
        let marker = self.marker();
        if names.clone().any(|name| name.eq_ignore_ascii_case(&marker)) {
            return None;
        }
        let prefix = self.marker_prefix();
        let mut others = names.filter_map(|name| {
            let lower = name.to_lowercase();
            let (seed, scale) = lower.strip_prefix(&prefix)?.split_once("-scale")?;
            let (seed, scale): (u64, f64) = (seed.parse().ok()?, scale.parse().ok()?);
            Some(format!("--seed {seed} --scale {scale}"))
        });
        others.next()
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
    use crate::workload::Workload;

    fn set(seed: u64, scale: f64) -> FileSet {
        let workload = Workload::built_in("bulk-copy").unwrap();
        FileSet::new(&workload, seed, Scale::new(scale).unwrap())
    }

    #[test]
    fn another_scale_or_seed_is_noticed() {
        let made = set(7, 0.25).marker();
        assert_eq!(made, ".smbscope-bulk_copy-seed7-scale0.25");
        let otherwise =
            |files: &FileSet, names: &[&str]| files.prepared_otherwise(names.iter().copied());
        let said = Some("--seed 7 --scale 0.25".to_owned());
        assert_eq!(otherwise(&set(7, 1.0), &["Work", &made]), said);
        assert_eq!(otherwise(&set(8, 0.25), &[&made]), said);
        assert_eq!(otherwise(&set(7, 0.25), &[&made]), None);
        // Nobody knows, or it is another workload's.
        let other = ".smbscope-metadata-seed1-scale1";
        assert_eq!(otherwise(&set(7, 1.0), &["Work", other, ".smbscope-bulk_copy-seedx"]), None);
        assert!(set(1, 1.0).is_marker(&made) && !set(1, 1.0).is_marker(other));
    }
}
