//! What a user's home needs before the next run: files to restore, and files to remove.

use std::collections::{BTreeSet, HashSet};

use super::{EntryKind, FileClass, FileSet, FileSpec};

/// The changes that a run makes to a home, and how to undo them.
#[derive(Clone, Debug)]
pub struct Restore {
    /// Files that runs rewrite, move or delete: each must exist with its length.
    pub volatile: Vec<FileSpec>,
    /// Folders below the home, with `\`, where files are created and removed; empty for the home itself.
    pub folders: BTreeSet<String>,
    known: HashSet<String>,
    /// Files that runs may have created.
    made: HashSet<String>,
    /// Prefix of the home's markers of this workload.
    marker: String,
}

impl Restore {
    pub(super) fn new(files: &FileSet, user: u64) -> Restore {
        let mut restore = Restore {
            volatile: Vec::new(),
            folders: BTreeSet::new(),
            known: HashSet::new(),
            made: HashSet::new(),
            marker: files.marker_prefix(),
        };
        for pool in files.pools().iter().filter(|pool| pool.class != FileClass::Static) {
            restore.folders.extend(pool.folders.iter().map(|folder| folder.replace('/', "\\")));
        }
        for spec in files.user(user) {
            restore.known.insert(spec.path.to_lowercase());
            if (spec.kind, spec.class) == (EntryKind::File, FileClass::Volatile) {
                restore.volatile.push(spec);
            }
        }
        restore.made.extend(files.new_paths(user).map(|path| path.to_lowercase()));
        restore
    }

    /// Whether an entry belongs to the file set, or a run may have left it (a new file, a temporary
    /// file, an owner file). `path` is below the home, with `\`; case does not matter, as on the
    /// server.
    pub fn is_ours(&self, path: &str) -> bool {
        let lower = path.to_lowercase();
        self.known.contains(&lower) || lower.starts_with(&self.marker) || self.is_surplus(path)
    }

    /// Whether an entry was left by a run and may be removed before the next. Entries from other
    /// sources are not.
    pub fn is_surplus(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let name = path.rsplit('\\').next().unwrap_or_default();
        !self.known.contains(&path) && (self.made.contains(&path) || name.starts_with('~'))
    }
}
