//! The files of the users: which files there are, where, how large, and their contents.
//!
//! Owns the pools of a workload, how `--scale` shrinks them, and the three classes: *static* files
//! are only read; *volatile* files are rewritten, moved or deleted by executions and must be
//! restored before the next run; *new* files are made by executions and may be removed before the
//! next run. All of it is a function of (seed, user number): never of the number of users,
//! threads or machines. It does not own how files get onto a server.

mod content;
mod marker;
pub(crate) mod names;
pub mod random;
mod restore;
mod scale;

use std::collections::BTreeSet;

pub use content::content;
pub use restore::Restore;
pub use scale::{BadScale, Scale};

use random::{Stream, mix};

/// Bytes of a block of [`Sizes::Blocks`], and the block of the published workload.
pub const BLOCK_BYTES: u64 = 65_536;

/// What happens to files in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileClass {
    /// Only read.
    Static,
    /// Rewritten in place, moved or deleted: restored before the next run.
    Volatile,
    /// Created by runs: removed before the next run.
    New,
}

impl FileClass {
    /// Its name in TOML.
    pub fn name(self) -> &'static str {
        match self {
            FileClass::Static => "static",
            FileClass::Volatile => "volatile",
            FileClass::New => "new",
        }
    }
}

/// The sizes of a pool's files: file `n` of a user has the entry `n + an offset of the user`, modulo
/// their number, so that every user has the same sizes in another order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// In blocks of 65,536 bytes, the last of them filled to a random part (at least one byte).
    Blocks(Vec<u32>),
    /// Exact bytes.
    Bytes(Vec<u64>),
}

impl Sizes {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Sizes::Blocks(list) => list.len(),
            Sizes::Bytes(list) => list.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A set of similar files that scenarios pick from.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Its name in the workload.
    pub name: String,
    /// What happens to its files.
    pub class: FileClass,
    /// Folders below the home, with `/`; file `n` is in folder `n` modulo their number.
    pub folders: Vec<String>,
    /// Pattern of the files' names, with `{word}` and `{n}`.
    pub pattern: String,
    /// The sizes.
    pub sizes: Sizes,
    /// How often the list of sizes is repeated: the number of files is `sizes.len() * repeat`.
    /// Not for new files.
    pub repeat: u32,
    /// New files: how many may exist at once; the next one then overwrites the oldest.
    pub keep: u32,
    /// Whether a scenario that is run picks from it.
    pub is_used: bool,
}

impl Pool {
    /// Files that exist before a run.
    pub fn files(&self) -> u32 {
        match self.class {
            FileClass::New => 0,
            _ if !self.is_used => 0,
            _ => (self.sizes.len() as u32).saturating_mul(self.repeat),
        }
    }
}

/// One file of one user: small, without its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Index of its pool.
    pub pool: u16,
    /// Its number in the pool; for a new file, the number of its name.
    pub index: u32,
    /// Its length.
    pub bytes: u64,
    /// The seed of its contents.
    pub key: u64,
}

impl FileRef {
    /// When it was last written and created, as 100 ns since 1601 (FILETIME): a time in 2022 or 2023
    /// that follows from the file.
    pub fn modified(&self) -> u64 {
        const YEARS_2022_2023: u64 = 730 * 86_400;
        (132_854_688_000_000_000 / 10_000_000 + mix(self.key, 3) % YEARS_2022_2023) * 10_000_000
    }
}

/// What an entry of a file set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EntryKind {
    Folder,
    File,
}

/// One entry that must exist before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Its path below the user's home, with `\`.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// What happens to it; `Static` for folders.
    pub class: FileClass,
    /// Its length; 0 for folders.
    pub bytes: u64,
    /// The file for [`content`]; `None` for folders.
    pub file: Option<FileRef>,
}

/// The files of all users of a workload, at a scale.
#[derive(Clone, Debug)]
pub struct FileSet {
    workload: String,
    pools: Vec<Pool>,
    folders: Vec<String>,
    seed: u64,
    scale: Scale,
}

// Purposes of keys; the numbers never change.
const PURPOSE_FILE: u64 = 1;
const PURPOSE_ORDER: u64 = 2;
const PURPOSE_NEW: u64 = 3;
const PURPOSE_NAME: u64 = 4;

impl FileSet {
    /// The files of `pools` and the `folders` without a pool, for the workload of that name. `seed` and
    /// `scale` must be those of the run that uses the set; see also
    /// [`crate::workload::Workload::file_set`].
    pub fn new(
        workload: &str,
        folders: &[String],
        pools: &[Pool],
        seed: u64,
        scale: Scale,
    ) -> FileSet {
        let pools: Vec<Pool> = pools.iter().map(|pool| scale.apply(pool)).collect();
        let mut all = BTreeSet::new();
        for path in folders.iter().chain(pools.iter().flat_map(|pool| &pool.folders)) {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            all.extend(ends.filter(|&end| end > 0).map(|end| path[..end].replace('/', "\\")));
        }
        let (workload, folders) = (workload.to_owned(), all.into_iter().collect());
        FileSet { workload, pools, folders, seed, scale }
    }

    /// The pools after scaling.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Everything that `load prepare` makes for a user: folders, parents first, then files.
    pub fn user(&self, user: u64) -> impl Iterator<Item = FileSpec> + '_ {
        let folders = self.folders.iter().map(|path| FileSpec {
            path: path.clone(),
            kind: EntryKind::Folder,
            class: FileClass::Static,
            bytes: 0,
            file: None,
        });
        let files = self.pools.iter().enumerate().flat_map(move |(pool, of)| {
            (0..of.files()).map(move |index| self.spec(user, pool, of, index))
        });
        folders.chain(files)
    }

    /// Bytes of all files that `load prepare` makes for a user.
    pub fn user_bytes(&self, user: u64) -> u64 {
        self.files(user).map(|file| file.bytes).sum()
    }

    /// Files that `load prepare` makes for each user.
    pub fn user_files(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.files())).sum()
    }

    /// Folders below each user's home, parents before children, with `\`.
    pub fn folders(&self) -> &[String] {
        &self.folders
    }

    /// The most bytes that executions add to a user's home: new files up to their number.
    pub fn user_growth_bytes(&self) -> u64 {
        let new = self.pools.iter().filter(|pool| pool.class == FileClass::New);
        new.map(|pool| {
            let largest = match &pool.sizes {
                Sizes::Blocks(list) => {
                    u64::from(list.iter().copied().max().unwrap_or(0)) * BLOCK_BYTES
                }
                Sizes::Bytes(list) => list.iter().copied().max().unwrap_or(0),
            };
            largest.saturating_mul(u64::from(pool.keep))
        })
        .fold(0, u64::saturating_add)
    }

    /// The state that a run needs restored.
    pub fn restore(&self, user: u64) -> Restore {
        Restore::new(self, user)
    }

    /// All files that exist before a run, without their paths.
    pub fn files(&self, user: u64) -> impl Iterator<Item = FileRef> + '_ {
        let pools = self.pools.iter().enumerate();
        pools.flat_map(move |(pool, of)| {
            (0..of.files()).map(move |index| self.file(user, pool, index))
        })
    }

    /// File `index` of a static or volatile pool.
    pub fn file(&self, user: u64, pool: usize, index: u32) -> FileRef {
        let key = self.key(user, PURPOSE_FILE, pool, u64::from(index));
        let entry = self.pools.get(pool).map_or(0, |of| {
            let turn =
                Stream::new(self.key(user, PURPOSE_ORDER, pool, 0)).below(of.sizes.len() as u64);
            (u64::from(index) + turn) % (of.sizes.len() as u64).max(1)
        });
        self.sized(pool, index, key, entry)
    }

    /// The `made`-th new file of a pool that a user creates, counted from 0. It has the name of number
    /// `made` modulo [`Pool::keep`].
    pub fn new_file(&self, user: u64, pool: usize, made: u64) -> FileRef {
        let key = self.key(user, PURPOSE_NEW, pool, made);
        let (sizes, keep) =
            self.pools.get(pool).map_or((0, 1), |of| (of.sizes.len(), of.keep.max(1)));
        let entry = Stream::new(mix(key, 1)).below(sizes as u64);
        self.sized(pool, (made % u64::from(keep)) as u32, key, entry)
    }

    /// Appends the folder of a file, below the home, with `\`; empty for the home itself.
    pub fn push_folder(&self, out: &mut String, file: &FileRef) {
        if let Some(folder) =
            self.pools.get(usize::from(file.pool)).and_then(|of| folder_of(of, file.index))
        {
            out.extend(folder.chars().map(|c| if c == '/' { '\\' } else { c }));
        }
    }

    /// Appends the name of a file.
    pub fn push_name(&self, out: &mut String, user: u64, file: &FileRef) {
        let pool = usize::from(file.pool);
        if let Some(of) = self.pools.get(pool) {
            let key = self.key(user, PURPOSE_NAME, pool, u64::from(file.index));
            names::push_name(out, &of.pattern, file.index, key);
        }
    }

    /// Paths below the home of all files that runs may create.
    pub fn new_paths(&self, user: u64) -> impl Iterator<Item = String> + '_ {
        let new = self.pools.iter().enumerate().filter(|(_, of)| of.class == FileClass::New);
        new.flat_map(move |(pool, of)| {
            (0..u64::from(of.keep.max(1))).map(move |made| {
                let file = self.new_file(user, pool, made);
                let mut path = String::new();
                self.push_folder(&mut path, &file);
                if !path.is_empty() {
                    path.push('\\');
                }
                self.push_name(&mut path, user, &file);
                path
            })
        })
    }

    fn spec(&self, user: u64, pool: usize, of: &Pool, index: u32) -> FileSpec {
        let file = self.file(user, pool, index);
        let mut path = String::new();
        self.push_folder(&mut path, &file);
        if !path.is_empty() {
            path.push('\\');
        }
        self.push_name(&mut path, user, &file);
        FileSpec {
            path,
            kind: EntryKind::File,
            class: of.class,
            bytes: file.bytes,
            file: Some(file),
        }
    }

    fn sized(&self, pool: usize, index: u32, key: u64, entry: u64) -> FileRef {
        let bytes = match self.pools.get(pool).map(|of| &of.sizes) {
            Some(Sizes::Bytes(list)) => list.get(entry as usize).copied().unwrap_or(0),
            Some(Sizes::Blocks(list)) => match list.get(entry as usize).copied().unwrap_or(0) {
                0 => 0,
                blocks => u64::from(blocks - 1) * BLOCK_BYTES + 1 + mix(key, 2) % BLOCK_BYTES,
            },
            None => 0,
        };
        FileRef { pool: pool as u16, index, bytes, key }
    }

    fn key(&self, user: u64, purpose: u64, pool: usize, number: u64) -> u64 {
        mix(mix(mix(mix(self.seed, user), purpose), pool as u64), number)
    }
}

fn folder_of(pool: &Pool, index: u32) -> Option<&str> {
    let count = pool.folders.len().max(1);
    pool.folders.get(index as usize % count).map(String::as_str)
}

#[cfg(test)]
mod tests;
