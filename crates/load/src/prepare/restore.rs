//! What a run does before a user's first scenario: undoes what another run did to the user's files.
//!
//! Only folders in which files come and go are listed, and only what differs is made or removed,
//! so that thousands of users can afford it. Files that are only read, and what a broken run left
//! elsewhere, are [`super::prepare`]'s.

use std::collections::{HashMap, HashSet};

use super::entry::{make_file, remove};
use super::{Done, PrepareError, join, list};
use crate::fileset::FileSet;
use smbscope_client::Session;

/// Brings the files that runs delete, rewrite or make back to where `prepare` had them.
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
        // Where there is no folder nothing was prepared: making files is not a run's business.
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
            // Scenarios know the length alone: what was rewritten need not be written again.
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
