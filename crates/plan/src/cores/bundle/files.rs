//! Files of a folder, and those of the machine that this program runs on.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::{FILE_BYTES_MAX, Files, MEMBERS_MAX};

/// A folder, for example an unpacked bundle.
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// `None` for a path that leaves the folder.
    fn path(&self, path: &str) -> Option<PathBuf> {
        let is_inside =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        is_inside.then(|| self.root.join(path))
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.path(path)?;
        // A pipe or a device could block.
        if !std::fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let file = std::fs::File::open(path).ok()?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(FILE_BYTES_MAX).ok()?;
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let Some(entries) = self.path(path).and_then(|path| std::fs::read_dir(path).ok()) else {
            return Vec::new();
        };
        let names = entries
            .take(MEMBERS_MAX)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn link(&self, path: &str) -> Option<String> {
        if let Some(target) = self.read(&link_path(path)) {
            return String::from_utf8(target).ok();
        }
        std::fs::read_link(self.path(path)?).ok()?.into_os_string().into_string().ok()
    }
}

/// Where a bundle has the target of a link. It is a file, because a bundle has files below links too.
pub(super) fn link_path(path: &str) -> String {
    format!("link/{path}")
}

/// The files of this machine, with the answers of its drivers.
#[cfg(target_os = "linux")]
pub struct Live {
    root: Folder,
}

#[cfg(target_os = "linux")]
impl Live {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { root: Folder::new("/") }
    }

    /// The command line of irqbalance, one word in a line; empty if it does not run.
    fn irqbalance(&self) -> Vec<u8> {
        let processes = self
            .root
            .list("proc")
            .into_iter()
            .filter(|name| name.bytes().all(|digit| digit.is_ascii_digit()));
        for process in processes {
            if self
                .root
                .read(&format!("proc/{process}/comm"))
                .is_some_and(|name| name.trim_ascii() == b"irqbalance")
            {
                let words = self.root.read(&format!("proc/{process}/cmdline")).unwrap_or_default();
                return words
                    .into_iter()
                    .map(|byte| if byte == 0 { b'\n' } else { byte })
                    .collect();
            }
        }
        Vec::new()
    }
}

#[cfg(target_os = "linux")]
impl Files for Live {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        if path == super::linux::IRQBALANCE {
            return Some(self.irqbalance());
        }
        if path == super::linux::SAMBA_MULTICHANNEL {
            let text = self.root.read("etc/samba/smb.conf").unwrap_or_default();
            let said = super::linux::samba_multichannel(&String::from_utf8_lossy(&text));
            return Some(said.as_bytes().to_vec());
        }
        if path == super::linux::PROCESSES {
            return serde_json::to_vec(&super::super::processes::read(&self.root)).ok();
        }
        match path.strip_prefix("ethtool/") {
            Some(name) => {
                serde_json::to_vec(&super::ethtool::answers(name.strip_suffix(".json")?)?).ok()
            }
            None => self.root.read(path),
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.root.list(path)
    }

    fn link(&self, path: &str) -> Option<String> {
        self.root.link(path)
    }
}
