//! Creates the users' files on the share, restores them, and removes them.
//!
//! Owns what `load prepare` and `load clean` do for one user. It can be repeated at any time and
//! continues where it stopped: a file is complete when its size and its time of last write are those of
//! the file set, and the time is set last. It does not own which files exist (`fileset`).

mod entry;
mod listing;
mod restore;

use smbscope_wire::status::Status;

use crate::fileset::{EntryKind, FileSet};
use entry::{make_empty_file, make_file, make_folder, remove};
use listing::list_tree;
pub use listing::{Entry, list};
pub use restore::restore;
use smbscope_client::error::status_text;
use smbscope_client::{ClientError, Session};

/// Why prepare cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The connection.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server refused something.
    #[error("{path}: {what}: {}{}", status_text(*.status), remedy(*.status))]
    Refused {
        /// The file or folder.
        path: String,
        /// The attempted action.
        what: &'static str,
        /// The server's answer.
        status: Status,
    },
    /// Something else has that name.
    #[error("{path}: {reason}")]
    InTheWay {
        /// The file or folder.
        path: String,
        /// The difference.
        reason: &'static str,
    },
}

impl PrepareError {
    /// Whether another attempt over a new connection may help.
    pub fn may_pass(&self) -> bool {
        match self {
            PrepareError::Client(error) => {
                matches!(error, ClientError::Lost(_) | ClientError::Timeout(_))
            }
            PrepareError::Refused { status, .. } => {
                matches!(*status, Status::SHARING_VIOLATION | Status::DELETE_PENDING)
            }
            PrepareError::InTheWay { .. } => false,
        }
    }
}

/// The remedy for a refusal, where it is known.
fn remedy(status: Status) -> &'static str {
    match status {
        Status::DISK_FULL => {
            "; the share is full: make room there, or ask for a smaller --scale or fewer --users"
        }
        _ => "",
    }
}

/// What was done for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Folders made or removed.
    pub folders: u64,
    /// Files made or removed.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Entries that were correct already.
    pub kept: u64,
    /// Leftovers of runs that were removed.
    pub surplus: u64,
}

impl Done {
    /// Adds another user's.
    pub fn add(&mut self, other: &Done) {
        self.folders += other.folders;
        self.files += other.files;
        self.bytes += other.bytes;
        self.kept += other.kept;
        self.surplus += other.surplus;
    }
}

/// Creates the missing files of a user below `home`, and removes what runs left there. `progress` gets
/// the number of bytes as they are written or found to exist already.
pub async fn prepare(
    session: &mut Session,
    files: &FileSet,
    user: u64,
    home: &str,
    mut progress: impl FnMut(u64),
) -> Result<Done, PrepareError> {
    let mut done = Done::default();
    let found = list_tree(session, home).await?;
    if found.is_none() {
        // The parents of the home are shared: they are created, never removed.
        for end in home.match_indices('\\').map(|(at, _)| at).chain([home.len()]) {
            make_folder(session, home.get(..end).unwrap_or_default()).await?;
        }
    }
    let found = found.unwrap_or_default();
    let restore = files.restore(user);
    // Longest paths first: a folder is empty when its turn comes.
    let mut surplus: Vec<_> =
        found.iter().filter(|(path, entry)| !entry.directory && restore.is_surplus(path)).collect();
    surplus.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, entry) in surplus {
        remove(session, &join(home, path), entry.directory).await?;
        done.surplus += 1;
    }
    let marker = files.marker();
    let mut marked = false;
    for path in found.keys().filter(|path| files.is_marker(path)) {
        // Removed before the files change; the right one is created when they are complete.
        marked |= path.eq_ignore_ascii_case(&marker);
        if !path.eq_ignore_ascii_case(&marker) {
            remove(session, &join(home, path), false).await?;
        }
    }
    for spec in files.user(user) {
        let path = join(home, &spec.path);
        let here = found.get(&spec.path.to_lowercase());
        match spec.kind {
            EntryKind::Folder => match here {
                Some(entry) if entry.directory => done.kept += 1,
                Some(_) => {
                    let reason = "a file lies where a folder must be: remove it";
                    return Err(PrepareError::InTheWay { path, reason });
                }
                None => {
                    make_folder(session, &path).await?;
                    done.folders += 1;
                }
            },
            EntryKind::File => {
                let Some(file) = spec.file else { continue };
                match here {
                    Some(entry) if entry.directory => {
                        let reason = "a folder lies where a file must be: remove it";
                        return Err(PrepareError::InTheWay { path, reason });
                    }
                    // Servers store times more coarsely than 100 ns, some to the second.
                    Some(entry)
                        if entry.bytes == spec.bytes
                            && entry.modified.abs_diff(file.modified()) < 20_000_000 =>
                    {
                        done.kept += 1;
                        progress(spec.bytes);
                    }
                    _ => {
                        make_file(session, &path, &spec, &mut progress).await?;
                        done.files += 1;
                        done.bytes += spec.bytes;
                    }
                }
            }
        }
    }
    if !marked {
        make_empty_file(session, &join(home, &marker)).await?;
    }
    Ok(done)
}

/// Removes exactly what [`prepare`] and runs created below `home`, and the home itself if it is empty
/// then. `progress` is called for every entry.
pub async fn clean(
    session: &mut Session,
    files: &FileSet,
    user: u64,
    home: &str,
    mut progress: impl FnMut(),
) -> Result<Done, PrepareError> {
    let mut done = Done::default();
    let Some(found) = list_tree(session, home).await? else { return Ok(done) };
    let restore = files.restore(user);
    let mut paths: Vec<_> = found.iter().collect();
    paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, entry) in paths {
        progress();
        if !restore.is_ours(path) {
            done.kept += 1;
            continue;
        }
        match remove(session, &join(home, path), entry.directory).await {
            Ok(()) if entry.directory => done.folders += 1,
            Ok(()) => done.files += 1,
            // It contains an entry from another source.
            Err(PrepareError::Refused { status: Status::DIRECTORY_NOT_EMPTY, .. }) => {
                done.kept += 1;
            }
            Err(error) => return Err(error),
        }
    }
    if done.kept == 0 {
        remove(session, home, true).await?;
        done.folders += 1;
    }
    Ok(done)
}

fn join(home: &str, path: &str) -> String {
    match (home, path) {
        ("", path) => path.to_owned(),
        (home, "") => home.to_owned(),
        (home, path) => format!("{home}\\{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined() {
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("a", ""), "a");
        assert_eq!(join("a", "b\\c"), "a\\b\\c");
    }
}
