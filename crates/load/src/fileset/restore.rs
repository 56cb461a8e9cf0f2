//! What a user's home needs before the next run: what must be there again, what may go.

use std::collections::HashSet;

use super::{EntryKind, FileClass, FileSet, FileSpec};

/// The difference that a run makes to a home, and how to undo it.
#[derive(Clone, Debug)]
pub struct Restore {
    /// Files that runs rewrite, move or delete: each must exist with its length.
    pub volatile: Vec<FileSpec>,
    /// Folders, with `\` and the home as "", whose surplus files may be removed.
    pub folders: Vec<String>,
    known: HashSet<String>,
}

impl Restore {
    pub(super) fn of(files: &FileSet, user: u64) -> Restore {
        let mut restore =
            Restore { volatile: Vec::new(), folders: vec![String::new()], known: HashSet::new() };
        for spec in files.user(user) {
            restore.known.insert(spec.path.to_lowercase());
            match (spec.kind, spec.class) {
                (EntryKind::Folder, _) => restore.folders.push(spec.path),
                (EntryKind::File, FileClass::Volatile) => restore.volatile.push(spec),
                _ => {}
            }
        }
        restore
    }

    /// Whether an entry that lies in one of [`Restore::folders`] was left by a run (a new file, a
    /// temporary file, an owner file) and may be removed. `path` is below the home, with `\`;
    /// upper and lower case are the same, as on the server.
    pub fn surplus(&self, path: &str) -> bool {
        !self.known.contains(&path.to_lowercase())
    }
}
