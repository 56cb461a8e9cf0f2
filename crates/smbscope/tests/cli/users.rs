//! Users on a private Samba, for tests that need their traffic.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use super::{answer, smbscope};

/// Options of the recorder: a buffer for all traffic of several seconds, so that nothing is dropped on
/// a machine that is busy with other tests.
pub const PATIENT: [&str; 4] = ["--buffer", "256MiB", "--memory", "1GiB"];

/// Ends the lab even if the test fails.
pub struct Down(pub String);

impl Drop for Down {
    fn drop(&mut self) {
        let _ = smbscope(["lab", "down", "--dir", &self.0]).ok();
    }
}

/// A lab, and a folder next to it for the test's files.
pub struct Users {
    pub lab: String,
    pub port: String,
    /// Dropped before the folder.
    _down: Down,
    pub folder: tempfile::TempDir,
}

impl Users {
    /// Starts it; `None` without a Samba.
    pub fn up() -> Option<Users> {
        Users::up_with(&[])
    }

    /// Likewise, with options of `lab up`.
    pub fn up_with(options: &[&str]) -> Option<Users> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let lab = folder.path().join("lab").to_str().unwrap().to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = port.to_string();
        let up = ["lab", "up", "--users", "4", "--dir", &lab, "--port", &port];
        let up = smbscope([&up, options].concat()).output().unwrap();
        if !up.status.success() {
            smbscope_testing::skip!("{}", String::from_utf8_lossy(&up.stderr));
            return None;
        }
        Some(Users { _down: Down(lab.clone()), lab, port, folder })
    }

    /// The path of a file in the lab's folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The options of all `load` commands: the lab, its users and the size of their files.
    pub fn options(&self) -> [&str; 6] {
        ["--lab", &self.lab, "--users", "3", "--scale", "0.1"]
    }

    pub fn prepare(&self) {
        answer([&["load", "prepare"], self.options().as_slice()].concat());
    }

    /// Arguments of a `load` that keeps all users busy for this time.
    pub fn busy<'a>(&'a self, duration: &'a str, out: &'a str) -> Vec<&'a str> {
        let times = ["--closed", "--warm-up", "0s", "--duration", duration, "--cool-down", "0s"];
        [&["load"], self.options().as_slice(), &times, &["--out", out]].concat()
    }
}

/// The rows of a query's result as CSV lines.
pub fn rows(inputs: &[&str], sql: &str) -> Vec<String> {
    let arguments = [&["query"], inputs, &[sql, "--format", "csv"]].concat();
    answer(arguments).lines().skip(1).map(str::to_owned).collect()
}
