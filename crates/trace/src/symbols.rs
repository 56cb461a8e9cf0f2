//! Where names of functions come from that a trace does not have: PDB files and ELF files in folders, and text of
//! `/proc/kallsyms`.
//!
//! A folder is a symbol store (`DIR/name.pdb/GUIDAGE/name.pdb`, as symchk and debuggers write it; in
//! its subfolder `msfz0` for compressed files), or has the files themselves (`DIR/name.pdb`). A file
//! is used only if its GUID and age are those that the image names. ELF files are those of a folder of build ids
//! (`DIR/.build-id/ab/cdef...`), as perf's cache (`~/.debug`) and packages with debug symbols (`/usr/lib/debug`) have it; the
//! former also has the kernel's symbols as text. Nothing is downloaded.

mod container;
mod elf;
pub(crate) mod functions;
pub(crate) mod kallsyms;
mod pdb;

pub use functions::Functions;
pub use kallsyms::{KERNEL, KernelFunctions};
pub use pdb::Identity;

use crate::reader::Error;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Most files that are looked for, and entries of a folder that are compared.
const FILES_MAX: usize = 16_384;
const ENTRIES_MAX: usize = 1 << 20;
/// Bytes that are enough to recognise a text.
const HEAD_BYTES: u64 = 4_096;

/// Why a file with symbols could not be read.
#[derive(Debug)]
pub enum Unreadable {
    /// An error of the operating system.
    Io(std::io::Error),
    /// What is wrong with it.
    Damaged(&'static str),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unreadable::Io(error) => error.fmt(f),
            Unreadable::Damaged(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Unreadable {}

impl From<std::io::Error> for Unreadable {
    fn from(error: std::io::Error) -> Unreadable {
        Unreadable::Io(error)
    }
}

/// The functions of a PDB file; `None` if it has another identity than `wanted`.
///
/// # Errors
///
/// Those of the operating system, and what is wrong with the file.
pub fn pdb_functions(
    source: impl Read + Seek,
    wanted: &Identity,
) -> Result<Option<Functions>, Unreadable> {
    pdb::functions(source, wanted)
}

/// The functions of an ELF file; `None` if it has another build id than `wanted`.
///
/// # Errors
///
/// Those of the operating system, and what is wrong with the file.
pub fn elf_functions(
    source: impl Read + Seek,
    wanted: &str,
) -> Result<Option<Functions>, Unreadable> {
    elf::functions(source, wanted)
}

/// Folders and files with symbols. A clone shares what was read.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    folders: Vec<PathBuf>,
    kernel: Option<Arc<KernelFunctions>>,
    /// PDB and ELF files by their key.
    files: Mutex<HashMap<Box<str>, Found>>,
}

/// What was found of a file.
#[derive(Clone, Debug)]
pub enum Found {
    /// No folder has it.
    No,
    /// Its functions.
    Yes(Arc<Functions>),
    /// It is there, but cannot be read: which one, and why.
    Damaged(Arc<str>),
}

impl Symbols {
    /// Remembers folders, and reads texts of `/proc/kallsyms`.
    ///
    /// # Errors
    ///
    /// Those of the operating system; a file that is not such a text, or hides all addresses.
    pub fn open(paths: &[PathBuf]) -> Result<Symbols, Error> {
        let mut shared = Shared::default();
        for path in paths {
            let io = |error| Error::Io(path.clone(), error);
            if std::fs::metadata(path).map_err(io)?.is_dir() {
                shared.folders.push(path.clone());
            } else if shared.kernel.is_some() {
                return Err(Error::Symbols(
                    path.clone(),
                    "only one file with symbols of a kernel can be given",
                ));
            } else {
                shared.kernel = Some(Arc::new(kernel(path)?));
            }
        }
        Ok(Symbols { shared: Arc::new(shared) })
    }

    /// The functions of the kernel of Linux by their addresses.
    pub fn kernel(&self) -> Option<&Arc<KernelFunctions>> {
        self.shared.kernel.as_ref()
    }

    /// The kernel's functions in a folder of build ids, as perf keeps them.
    pub fn kernel_of(&self, build_id: &str) -> Option<KernelFunctions> {
        let places = self.shared.folders.iter().filter_map(|folder| by_build_id(folder, build_id));
        let file = places.filter_map(|place| File::open(place.join("kallsyms")).ok()).next()?;
        let functions = KernelFunctions::read(BufReader::new(file)).ok()?;
        (!functions.is_empty()).then_some(functions)
    }

    /// The PDB file with the key `NAME/GUIDAGE`, or the ELF file with that build id.
    pub fn file(&self, key: &str) -> Found {
        if self.shared.folders.is_empty() {
            return Found::No;
        }
        let mut files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = files.get(key) {
            return found.clone();
        }
        if files.len() >= FILES_MAX {
            return Found::No;
        }
        let found = self.look_for(key).unwrap_or(Found::No);
        files.insert(key.into(), found.clone());
        found
    }

    fn look_for(&self, key: &str) -> Option<Found> {
        let Some((name, identity)) = key.split_once('/') else { return self.look_for_elf(key) };
        let wanted = Identity::parse(identity)?;
        // Names are bytes of the trace: they must not lead out of the folder.
        let mut parts = Path::new(name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return None;
        }
        let mut damaged = None;
        for folder in &self.shared.folders {
            let Some(place) = entry(folder, name) else { continue };
            let stored = entry(&place, identity);
            let compressed = stored.as_ref().and_then(|stored| entry(stored, "msfz0"));
            let stored = [stored, compressed].into_iter().flatten();
            let stored = stored.filter_map(|stored| entry(&stored, name));
            let found = first_of(stored.chain([place]), &mut damaged, |file| {
                pdb::functions(BufReader::new(file), &wanted)
            });
            if found.is_some() {
                return found;
            }
        }
        damaged
    }

    fn look_for_elf(&self, build_id: &str) -> Option<Found> {
        let mut damaged = None;
        for folder in &self.shared.folders {
            let Some(place) = by_build_id(folder, build_id) else { continue };
            let mut debug = place.clone().into_os_string();
            debug.push(".debug");
            let paths = [place.join("elf"), debug.into(), place];
            let found = first_of(paths, &mut damaged, |file| elf::functions(file, build_id));
            if found.is_some() {
                return found;
            }
        }
        damaged
    }
}

/// The functions of the first of these files that is the wanted one. The first that cannot be read is remembered.
fn first_of(
    paths: impl IntoIterator<Item = PathBuf>,
    damaged: &mut Option<Found>,
    functions: impl Fn(File) -> Result<Option<Functions>, Unreadable>,
) -> Option<Found> {
    for path in paths.into_iter().filter(|path| path.is_file()) {
        match File::open(&path).map_err(Unreadable::Io).and_then(&functions) {
            Ok(Some(functions)) => return Some(Found::Yes(Arc::new(functions))),
            Ok(None) => {}
            Err(error) => {
                let what = format!("{}: {error}", path.display());
                damaged.get_or_insert(Found::Damaged(what.into()));
            }
        }
    }
    None
}

/// Where a folder has what belongs to a build id.
fn by_build_id(folder: &Path, build_id: &str) -> Option<PathBuf> {
    // Bytes of the trace: they must not lead out of the folder.
    let is_id = build_id.len() > 2 && build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (first, rest) = build_id.split_at_checked(2).filter(|_| is_id)?;
    Some(folder.join(".build-id").join(first).join(rest))
}

/// The entry of a folder with that name, in capitals or not: Windows does not distinguish them.
fn entry(folder: &Path, name: &str) -> Option<PathBuf> {
    let exact = folder.join(name);
    if exact.exists() {
        return Some(exact);
    }
    let entries = std::fs::read_dir(folder).ok()?.take(ENTRIES_MAX).flatten();
    let mut same = entries.filter(|entry| entry.file_name().eq_ignore_ascii_case(name));
    same.next().map(|entry| entry.path())
}

fn kernel(path: &Path) -> Result<KernelFunctions, Error> {
    let io = |error| Error::Io(path.to_owned(), error);
    let mut head = Vec::new();
    File::open(path).map_err(io)?.take(HEAD_BYTES).read_to_end(&mut head).map_err(io)?;
    if !kallsyms::is_kallsyms(&String::from_utf8_lossy(&head)) {
        let what = "neither a folder with PDB or ELF files nor text of /proc/kallsyms";
        return Err(Error::Symbols(path.to_owned(), what));
    }
    let file = File::open(path).map_err(io)?;
    let functions = KernelFunctions::read(BufReader::new(file)).map_err(io)?;
    if functions.is_empty() {
        let what = "all addresses are 0: only root sees them in /proc/kallsyms";
        return Err(Error::Symbols(path.to_owned(), what));
    }
    Ok(functions)
}
