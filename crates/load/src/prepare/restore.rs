//! What a run does before a user's first scenario: it undoes the changes of earlier runs to the user's files.
//!
//! Only folders in which files are created and removed are listed, and only differences are created or
//! removed, so that it works for thousands of users. Files that are only read, and leftovers of a
//! broken run elsewhere, are handled by [`super::prepare`].

use std::collections::{HashMap, HashSet};

use super::entry::{make_file, remove};
use super::{Done, PrepareError, join, list};
use crate::fileset::FileSet;
use smbscope_client::Session;

/// Restores the files that runs delete, rewrite or create to the state that `prepare` left.
pub async fn restore(
    session: &mut Session,
    files: &FileSet,
    user: u64,
    home: &str,
) -> Result<Done, PrepareError> {
    let mut done = Done::default();
    let wanted = files.restore(user);
    let (mut found, mut listed) = (HashMap::new(), HashSet::new());
    for folder in &wanted.folders {
        // A missing folder was never prepared: a run does not create files.
        let Some(entries) = list(session, &join(home, folder)).await? else { continue };
        for entry in entries {
            found.insert(join(folder, &entry.name).to_lowercase(), entry);
        }
        listed.insert(folder.as_str());
    }
    let surplus = found.iter().filter(|(path, entry)| !entry.directory && wanted.is_surplus(path));
    for (path, _) in surplus {
        remove(session, &join(home, path), false).await?;
        done.surplus += 1;
    }
    for spec in &wanted.volatile {
        let folder = spec.path.rsplit_once('\\').map_or("", |(folder, _)| folder);
        let path = join(home, &spec.path);
        match found.get(&spec.path.to_lowercase()) {
            Some(entry) if entry.directory => {
                let reason = "a folder lies where a file must be: remove it";
                return Err(PrepareError::InTheWay { path, reason });
            }
            // Scenarios know only the length: rewritten files need not be written again.
            Some(entry) if entry.bytes == spec.bytes => done.kept += 1,
            None if !listed.contains(folder) => {}
            _ => {
                make_file(session, &path, spec, &mut |_| ()).await?;
                done.files += 1;
                done.bytes += spec.bytes;
            }
        }
    }
    Ok(done)
}
