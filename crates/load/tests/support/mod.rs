//! A private Samba for a test, gone with it.

use smbscope_load::lab::{Guard, Lab, Options};

/// A running Samba.
pub struct Samba {
    /// `//127.0.0.1:PORT/home`
    pub target: String,
    /// The users' password.
    pub password: String,
    _guard: Guard,
    _folder: tempfile::TempDir,
}

/// Starts one; `None`, and a line that says why, when there is no Samba on this machine.
pub fn samba(change: impl FnOnce(&mut Options)) -> Option<Samba> {
    let folder = tempfile::Builder::new().prefix("smbscope").tempdir().unwrap();
    let mut options = Options { dir: Some(folder.path().join("lab")), ..Options::default() };
    change(&mut options);
    let running = match Lab::up(&options) {
        Ok(running) => running,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };
    let password = running.password().unwrap();
    let target = format!("//127.0.0.1:{}/{}", running.port, running.share);
    Some(Samba { target, password, _guard: running.guard(), _folder: folder })
}
