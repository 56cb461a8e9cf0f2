//! A machine from its files: live, from a folder, or from a tar that [`collect`] wrote on another machine.
//!
//! Owns [`Files`], the one way to them, and what a bundle is: exactly the files that [`read`] reads, because [`collect`]
//! records what it reads. What they mean on Linux is in `linux`; a folder or a tar without `/sys` is one of pasted outputs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::assemble;
use super::read::read as read_text;
use super::topology::Machine;
use crate::input::unknown::Unknowns;

#[cfg(target_os = "linux")]
mod ethtool;
mod files;
pub(super) mod linux;
pub mod tar;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod windows_tests;

pub use files::Folder;
#[cfg(target_os = "linux")]
pub use files::Live;
pub use tar::Tar;

/// The PowerShell that writes a bundle on Windows: one file of JSON, which [`read_bytes`] reads. It only reads settings.
pub const WINDOWS_SCRIPT: &str = include_str!("collect_windows.ps1");

/// Longest file that is read.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;
/// Members of a folder.
pub(crate) const MEMBERS_MAX: usize = 65_536;
/// Pasted outputs in one bundle, and how deep their folders are.
const OUTPUTS_MAX: usize = 4096;
const DEPTH_MAX: u32 = 4;

/// Files of a machine. Paths have no leading slash: `sys/class/net/eth0/speed`.
///
/// Two folders are not the system's own: `ethtool/ADAPTER.json` has the answers of the driver, `smbscope/irqbalance` the
/// command line of irqbalance, one word in a line, empty if it does not run, `smbscope/processes.json` the processes of
/// the file server, and `smbscope/samba-multichannel` one setting of Samba.
pub trait Files {
    /// The file, if there is one and it can be read.
    fn read(&self, path: &str) -> Option<Vec<u8>>;
    /// Names in a folder, sorted; empty if there is none.
    fn list(&self, path: &str) -> Vec<String>;
    /// Where a symbolic link points to.
    fn link(&self, path: &str) -> Option<String>;
}

/// What the files of a machine contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    pub machine: Machine,
    pub unknown: Unknowns,
}

/// Why a machine could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleError {
    /// The file; empty if it is the bundle itself.
    pub path: String,
    pub message: String,
}

impl BundleError {
    fn new(path: &str, message: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), message: message.to_string() }
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(out, "{}", self.message)
        } else {
            write!(out, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for BundleError {}

/// Reads a machine: Linux if there is `sys/devices/system/cpu`, otherwise outputs that were pasted into files.
pub fn read(files: &dyn Files) -> Result<Bundle, BundleError> {
    if !files.list("sys/devices/system/cpu").is_empty() {
        return linux::read(files);
    }
    let mut bundle = Bundle::default();
    let mut pieces = Vec::new();
    let mut paths = Vec::new();
    outputs(files, "", DEPTH_MAX, &mut paths);
    let mut first_error = None;
    for path in &paths {
        let Some(bytes) = files.read(path) else { continue };
        match read_text(&bytes) {
            Ok(reading) => {
                pieces.extend(reading.pieces);
                bundle.unknown.extend_from(path, reading.unknown);
            }
            // A folder may have files that no plan needs, such as a whole /proc.
            Err(error) => {
                bundle.unknown.note(path, error.line as u64, "", &error.message);
                first_error.get_or_insert_with(|| BundleError::new(path, error));
            }
        }
    }
    if pieces.is_empty() {
        let nothing = "neither sys/devices/system/cpu nor a known output is in it";
        return Err(first_error.unwrap_or_else(|| BundleError::new("", nothing)));
    }
    bundle.machine = assemble::assemble(&pieces);
    Ok(bundle)
}

/// Reads a machine from the bytes of a file: a tar of [`collect`], the JSON of the Windows script, or pasted text.
pub fn read_bytes(bytes: &[u8]) -> Result<Bundle, BundleError> {
    if tar::is_tar(bytes) {
        return read(&Tar::new(bytes).map_err(|error| BundleError::new("", error))?);
    }
    let reading = read_text(bytes).map_err(|error| BundleError::new("", error))?;
    Ok(Bundle { machine: assemble::assemble(&reading.pieces), unknown: reading.unknown })
}

/// Writes a tar of all files that [`read`] reads of a machine; [`read_bytes`] gives the same machine on another one.
pub fn collect(files: &dyn Files) -> Result<Vec<u8>, BundleError> {
    let recording = Recording { files, read: RefCell::default() };
    read(&recording)?;
    let mut writer = tar::Writer::default();
    for (path, contents) in recording.read.into_inner() {
        writer.add(&path, contents.as_deref()).map_err(|error| BundleError::new(&path, error))?;
    }
    Ok(writer.finish())
}

/// Paths of all files in a folder; it is at most [`DEPTH_MAX`] deep.
fn outputs(files: &dyn Files, folder: &str, depth: u32, paths: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for name in files.list(folder) {
        if paths.len() >= OUTPUTS_MAX {
            return;
        }
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if files.list(&path).is_empty() {
            paths.push(path);
        } else {
            outputs(files, &path, depth, paths);
        }
    }
}

/// Files that remember what was read of them: contents, or none for a folder.
struct Recording<'a> {
    files: &'a dyn Files,
    read: RefCell<BTreeMap<String, Option<Vec<u8>>>>,
}

impl Files for Recording<'_> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let contents = self.files.read(path)?;
        self.read.borrow_mut().insert(path.to_owned(), Some(contents.clone()));
        Some(contents)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let names = self.files.list(path);
        let mut read = self.read.borrow_mut();
        for name in &names {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            read.entry(path).or_insert(None);
        }
        names
    }

    fn link(&self, path: &str) -> Option<String> {
        let target = self.files.link(path)?;
        self.read.borrow_mut().insert(files::link_path(path), Some(target.clone().into_bytes()));
        Some(target)
    }
}
