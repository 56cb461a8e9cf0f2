//! What an operation looks up: names as hashes, so that no name is kept.

use std::hash::{BuildHasher, Hasher};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::caches::{CacheQuery, PathId};
use super::role::Role;
use crate::rows::columns::Resolved;
use crate::rows::create_intent::CreateIntent as Opening;

crate::rows::columns::columns! {
    share: text,
    path: text,
    detail: text,
    status: u32,
    desired_access: u32,
    create_options: u32,
}

/// The columns about what an operation looks up, with their texts resolved.
pub(super) struct Lookups {
    columns: Columns,
    /// By path: its own hash and its parent's.
    paths: Vec<Option<(u64, u64)>>,
    shares: Vec<Option<u64>>,
    opens: Resolved,
}

/// Fixed, so that every run has the same hashes.
const SEED: u64 = 0x736d_6273_636f_7065;

fn hash(words: &[&[u8]]) -> u64 {
    let mut hasher = foldhash::fast::FixedState::with_seed(SEED).build_hasher();
    for word in words {
        hasher.write(word);
        hasher.write_usize(word.len());
    }
    hasher.finish()
}

impl Lookups {
    pub(super) fn from_batch(batch: &RecordBatch) -> Result<Lookups, ArrowError> {
        let columns = Columns::from_batch(batch)?;
        Ok(Lookups {
            paths: vec![None; columns.path.keys()],
            shares: vec![None; columns.share.keys()],
            opens: Resolved::new(columns.detail.keys()),
            columns,
        })
    }

    /// What the row looks up.
    pub(super) fn ask(
        &mut self,
        row: usize,
        recording: u32,
        client: u32,
        role: Role,
        handle: Option<(u32, u64)>,
        start: i64,
    ) -> CacheQuery {
        let Lookups { columns, paths, shares, opens } = self;
        let place = columns.path.key(row).and_then(|key| {
            let (own, parent) = *match paths.get_mut(key)? {
                Some(known) => known,
                unknown => unknown.insert({
                    // Names are compared without case (MS-FSCC section 2.1.5).
                    let path = columns.path.text(key)?.trim_matches('\\').to_lowercase();
                    let parent = path.rfind('\\').map_or("", |end| &path[..end]);
                    (hash(&[path.as_bytes()]), hash(&[parent.as_bytes()]))
                }),
            };
            let share = match columns.share.key(row) {
                Some(key) => *match shares.get_mut(key)? {
                    Some(known) => known,
                    unknown => unknown.insert(hash(&[columns.share.text(key)?.as_bytes()])),
                },
                None => 0,
            };
            let with = |path: u64| {
                hash(&[&path.to_le_bytes(), &share.to_le_bytes(), &recording.to_le_bytes()])
            };
            Some(PathId { own: with(own), parent: with(parent) })
        });
        let only_opens = columns.detail.key(row).is_some_and(|key| {
            opens.get(key, || u32::from(columns.detail.text(key) == Some("FILE_OPEN"))) == 1
        });
        CacheQuery {
            client,
            role,
            handle,
            place,
            start,
            status: columns.status.get(row).unwrap_or(0),
            only_opens,
            opening: Opening::new(columns.desired_access.get(row), columns.create_options.get(row)),
        }
    }
}
