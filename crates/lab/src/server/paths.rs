//! The lab's folder: its default location, whether it is safe to use, and the paths in it.
//!
//! Owns paths and permissions; `conf`, `accounts` and `record` own the contents of the files. The
//! folder belongs to the lab's user alone (0700), or is passable for others (0711) where root runs a
//! lab whose users have another system user's rights: smbd walks down to the share as that user.

use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use nix::unistd::{User, geteuid};

use super::error::{AtPath as _, LabError};

/// Longest path: smbd's sockets (`ncalrpc/np/initshutdown` is the deepest) must fit sockaddr_un (107 bytes).
const DIR_BYTES_MAX: usize = 80;

/// Everything that a lab creates in its folder: `down` removes these and nothing else. The record is
/// removed last, so that the rest of a half-removed lab can still be removed.
pub(super) const MADE: [&str; 14] = [
    "share",
    "private",
    "lock",
    "state",
    "cache",
    "pid",
    "ncalrpc",
    "rpc",
    "log",
    "smb.conf",
    "users.map",
    "password",
    "credentials",
    RECORD,
];
const RECORD: &str = "lab.json";

/// Paths in a lab's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    pub dir: PathBuf,
}

impl Paths {
    /// The folder as an absolute path without symbolic links above it. It need not exist.
    pub fn new(dir: &Path) -> Result<Paths, LabError> {
        let absolute = std::path::absolute(dir).at_path(dir, "is not a valid path")?;
        let name = match absolute.components().next_back() {
            Some(Component::Normal(name)) => name.to_owned(),
            _ => return Err(LabError::folder(dir, "name a folder for the lab alone")),
        };
        let parent = absolute.parent().unwrap_or(Path::new("/"));
        let parent = match parent.canonicalize() {
            Ok(parent) => parent,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = format!("the folder above, {}, does not exist", parent.display());
                return Err(LabError::folder(dir, why));
            }
            Err(error) => return Err(error).at_path(parent, "cannot be reached"),
        };
        let dir = parent.join(name);
        check_name(&dir)?;
        Ok(Paths { dir })
    }

    pub fn conf(&self) -> PathBuf {
        self.dir.join("smb.conf")
    }

    pub fn record(&self) -> PathBuf {
        self.dir.join(RECORD)
    }

    pub fn share(&self) -> PathBuf {
        self.dir.join("share")
    }

    pub fn password(&self) -> PathBuf {
        self.dir.join("password")
    }

    pub fn credentials(&self) -> PathBuf {
        self.dir.join("credentials")
    }

    pub fn users_map(&self) -> PathBuf {
        self.dir.join("users.map")
    }

    /// smbd's logs and core files.
    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    pub fn smbd_log(&self) -> PathBuf {
        self.log().join("log.smbd")
    }

    /// smbd's output before it has a log.
    pub fn smbd_out(&self) -> PathBuf {
        self.log().join("smbd.out")
    }

    /// The output of the forwarder of the lab's link.
    pub fn wan_out(&self) -> PathBuf {
        self.log().join("wan.out")
    }

    pub fn rpc(&self) -> PathBuf {
        self.dir.join("rpc")
    }

    pub fn pid_file(&self, program: &str) -> PathBuf {
        self.dir.join("pid").join(format!("{program}.pid"))
    }

    /// Creates the folder, or takes an empty one of this user. True if it was created.
    pub fn make(&self, pass: bool) -> Result<bool, LabError> {
        let mode = if pass { 0o711 } else { 0o700 };
        let made = match DirBuilder::new().mode(mode).create(&self.dir) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error).at_path(&self.dir, "cannot be made"),
        };
        self.check_ours()?;
        if !made {
            let mut entries = fs::read_dir(&self.dir).at_path(&self.dir, "cannot be read")?;
            if entries.next().is_some() {
                let why = "the folder is not empty: name a new or an empty one with --dir";
                return Err(LabError::folder(&self.dir, why));
            }
        }
        // The umask may have removed bits, and an empty folder has its own permissions.
        self.set_mode(&self.dir, mode)?;
        Ok(made)
    }

    /// Checks that it is a folder, not a symbolic link, and that only this user may change its
    /// contents. /tmp is writable for everyone: without this check, another user could create the
    /// folder and would get the password.
    pub fn check_ours(&self) -> Result<(), LabError> {
        let found = fs::symlink_metadata(&self.dir).at_path(&self.dir, "cannot be looked at")?;
        let why = if found.is_symlink() {
            "is a link to somewhere else"
        } else if !found.is_dir() {
            "is not a folder"
        } else if found.uid() != geteuid().as_raw() {
            "belongs to another user"
        } else if found.mode() & 0o022 != 0 {
            "others may write there"
        } else {
            return Ok(());
        };
        Err(LabError::folder(&self.dir, format!("{why}: name another folder with --dir")))
    }

    /// Creates the folders in it. `ncalrpc` must be 0755 for samba-dcerpcd, and so must `lock`: as the
    /// mapped user, smbd checks there whether the process that holds a lease or an open still exists,
    /// and takes a process that it may not see for dead, so that nothing would ever be broken or
    /// refused.
    pub fn make_folders(&self) -> Result<(), LabError> {
        for name in ["private", "lock", "state", "cache", "pid", "rpc", "log", "share", "ncalrpc"] {
            let path = self.dir.join(name);
            DirBuilder::new().mode(0o700).create(&path).at_path(&path, "cannot be made")?;
        }
        self.set_mode(&self.dir.join("lock"), 0o755)?;
        self.set_mode(&self.dir.join("ncalrpc"), 0o755)
    }

    /// Writes a new file that only this user may read.
    pub fn write(&self, path: &Path, text: &str, executable: bool) -> Result<(), LabError> {
        let mode = if executable { 0o700 } else { 0o600 };
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .at_path(path, "cannot be written")
    }

    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), LabError> {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .at_path(path, "mode cannot be set")
    }
}

/// `$XDG_RUNTIME_DIR/smbscope-lab`, or `/tmp/smbscope-lab-UID` if that variable does not name a folder
/// of this user. Root gets the latter, because other users cannot enter its runtime folder.
pub fn default_dir() -> PathBuf {
    let uid = geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = |dir: &PathBuf| {
        dir.is_absolute()
            && fs::metadata(dir).is_ok_and(|found| found.is_dir() && found.uid() == uid.as_raw())
    };
    match runtime.filter(own) {
        Some(dir) if !uid.is_root() => dir.join("smbscope-lab"),
        _ => PathBuf::from(format!("/tmp/smbscope-lab-{uid}")),
    }
}

/// Checks that a system user may pass all folders above the lab's own.
pub(super) fn check_passable(dir: &Path, user: &User) -> Result<(), LabError> {
    let groups = groups_of(user);
    for folder in dir.ancestors().skip(1) {
        let found = fs::metadata(folder).at_path(folder, "cannot be looked at")?;
        if !may_pass(&found, user.uid.as_raw(), &groups) {
            let why = format!(
                "the system user {}, whose rights the lab's users get, may not pass {} (mode \
                 {:o}): name a folder elsewhere with --dir, or another system user with --owner",
                user.name,
                folder.display(),
                found.mode() & 0o7777
            );
            return Err(LabError::folder(dir, why));
        }
    }
    Ok(())
}

fn may_pass(found: &Metadata, uid: u32, groups: &[u32]) -> bool {
    let shift = if uid == 0 {
        return true;
    } else if found.uid() == uid {
        6
    } else if groups.contains(&found.gid()) {
        3
    } else {
        0
    };
    found.mode() >> shift & 1 == 1
}

fn groups_of(user: &User) -> Vec<u32> {
    let named = std::ffi::CString::new(user.name.as_str()).ok();
    let list = named.and_then(|name| nix::unistd::getgrouplist(&name, user.gid).ok());
    list.unwrap_or_else(|| vec![user.gid]).into_iter().map(|gid| gid.as_raw()).collect()
}

/// Checks that smb.conf, its `%` variables, a shell line and a socket's address can all contain the path.
fn check_name(dir: &Path) -> Result<(), LabError> {
    let Some(text) = dir.to_str() else {
        return Err(LabError::folder(dir, "the name is not UTF-8: name another with --dir"));
    };
    if let Some(bad) = text.chars().find(|c| c.is_control() || "%\"'\\`$;".contains(*c)) {
        let why = format!("smb.conf cannot hold {bad:?} in a path: name another with --dir");
        return Err(LabError::folder(dir, why));
    }
    if text.len() > DIR_BYTES_MAX {
        let why = format!(
            "the path has {} bytes, and with more than {DIR_BYTES_MAX} smbd's unix sockets in it \
             cannot be reached: name a folder less deep with --dir",
            text.len()
        );
        return Err(LabError::folder(dir, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn paths(path: &Path) -> Paths {
        Paths::new(path).unwrap()
    }

    fn why<T: std::fmt::Debug>(result: Result<T, LabError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_new_folder_is_for_its_user_alone() {
        let above = tempfile::tempdir().unwrap();
        let lab = paths(&above.path().join("lab"));
        assert!(lab.make(false).unwrap());
        assert_eq!(fs::metadata(&lab.dir).unwrap().mode() & 0o777, 0o700);
        assert!(!lab.make(true).unwrap(), "an empty one is taken");
        assert_eq!(fs::metadata(&lab.dir).unwrap().mode() & 0o777, 0o711);
        lab.write(&lab.password(), "x", false).unwrap();
        assert_eq!(fs::metadata(lab.password()).unwrap().mode() & 0o777, 0o600);
        assert!(why(lab.make(false)).contains("not empty"));
        assert!(lab.write(&lab.password(), "y", false).is_err(), "files are never replaced");
    }

    #[test]
    fn folders_that_others_control_are_refused() {
        let above = tempfile::tempdir().unwrap();
        let target = above.path().join("target");
        fs::create_dir(&target).unwrap();
        let link = above.path().join("link");
        symlink(&target, &link).unwrap();
        assert!(why(paths(&link).make(false)).contains("link"));
        fs::set_permissions(&target, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(why(paths(&target).make(false)).contains("others may write"));
        let file = above.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(why(paths(&file).make(false)).contains("not a folder"));
    }

    #[test]
    fn paths_that_samba_cannot_hold_are_refused() {
        let above = tempfile::tempdir().unwrap();
        let deep = above.path().join("x".repeat(90));
        assert!(why(Paths::new(&deep)).contains("unix sockets"));
        for name in ["a%Ub", "a\nb", "a'b", "a$b"] {
            assert!(why(Paths::new(&above.path().join(name))).contains("smb.conf"));
        }
        assert!(why(Paths::new(&above.path().join("no/lab"))).contains("does not exist"));
        assert!(Paths::new(Path::new("/")).is_err());
        let relative = paths(Path::new("lab"));
        assert!(relative.dir.is_absolute());
    }

    #[test]
    fn who_may_pass_is_read_from_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            fs::metadata(folder.path()).unwrap()
        };
        let (own, group) = (mode(0o700).uid(), mode(0o700).gid());
        let other = 54_321;
        assert!(!may_pass(&mode(0o700), other, &[]));
        assert!(may_pass(&mode(0o701), other, &[]));
        assert!(may_pass(&mode(0o710), other, &[group]));
        assert!(!may_pass(&mode(0o701), other, &[group]), "the group's bits go first");
        assert!(may_pass(&mode(0o700), own, &[]));
        assert!(may_pass(&mode(0o000), 0, &[]));
    }
}
