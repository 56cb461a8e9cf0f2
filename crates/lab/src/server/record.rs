//! `lab.json`: the description of a lab, in its own folder, so that a later program can find and end it.
//!
//! Written before anything is started and again when the lab runs. It contains no secret.

use std::fs;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::accounts;
use super::error::{AtPath as _, LabError};
use super::options::WORKGROUP;
use super::paths::Paths;
use super::process::{self, Process};

const FORMAT: u32 = 1;
/// Largest record: one has about a kilobyte.
const BYTES_MAX: u64 = 1 << 20;

/// The description of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this format.
    pub(super) format: u32,
    /// The lab's folder.
    pub dir: PathBuf,
    /// Whether the lab created the folder (and `down` removes it).
    pub made_dir: bool,
    /// Samba's version, as in "4.17.12-Debian".
    pub samba: String,
    /// The smbd that was started.
    pub smbd: PathBuf,
    /// Where it listens.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
    /// Name of the share.
    pub share: String,
    /// Users are `user00001` to this number.
    pub users: u32,
    /// System user whose rights they get.
    pub owner: String,
    /// Settings other than Samba's defaults, as text.
    pub settings: Vec<String>,
    /// The simulated link in front of it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineRecord>,
    /// Whether named pipes are served (lists of shares).
    pub pipes: bool,
    /// The boot in which it was started (/proc/sys/kernel/random/boot_id).
    pub boot_id: String,
    /// The started processes, without their children. Empty until the lab runs.
    pub processes: Vec<Process>,
}

/// The link of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRecord {
    /// Its properties, as text (`rtt=20ms,rate=45mbit`).
    pub options: String,
    /// Prefix of the namespaces' names.
    pub name: String,
}

impl LineRecord {
    /// The namespace of clients.
    pub fn client(&self) -> String {
        format!("{}-client", self.name)
    }
}

impl Record {
    /// A record of a lab that is about to start.
    pub(super) fn new(paths: &Paths, made_dir: bool) -> Record {
        Record {
            format: FORMAT,
            dir: paths.dir.clone(),
            made_dir,
            samba: String::new(),
            smbd: PathBuf::new(),
            address: IpAddr::from([127, 0, 0, 1]),
            port: 0,
            share: String::new(),
            users: 0,
            owner: String::new(),
            settings: Vec::new(),
            line: None,
            pipes: false,
            boot_id: process::boot_id(),
            processes: Vec::new(),
        }
    }

    /// The record in a folder, or why there is none. A caller that acts on it (and does not only show
    /// it) first checks that the folder belongs to this user.
    pub(super) fn read(paths: &Paths) -> Result<Record, LabError> {
        let path = paths.record();
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(LabError::NotALab { dir: paths.dir.clone() });
            }
            Err(error) => return Err(error).at_path(&path, "cannot be read"),
        };
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).at_path(&path, "cannot be read")?;
        let broken = |why: String| LabError::folder(&paths.dir, format!("lab.json {why}"));
        let record: Record = serde_json::from_str(&text)
            .map_err(|error| broken(format!("is broken ({error}): remove the folder by hand")))?;
        if record.format > FORMAT {
            return Err(broken("is of a newer smbscope: end the lab with that one".to_owned()));
        }
        // The path of a folder that was moved is the current one.
        Ok(Record { dir: paths.dir.clone(), ..record })
    }

    /// Writes it atomically.
    pub(super) fn write(&self, paths: &Paths) -> Result<(), LabError> {
        let path = paths.record();
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        let part = path.with_extension("json.part");
        let _ = fs::remove_file(&part);
        paths.write(&part, &(text + "\n"), false)?;
        fs::rename(&part, &path).at_path(&path, "cannot be written")
    }

    /// The running processes of the lab.
    pub(super) fn running(&self, paths: &Paths) -> Vec<Process> {
        let same_boot = self.boot_id == process::boot_id();
        let started = if same_boot { self.processes.as_slice() } else { &[] };
        process::of_lab(&paths.conf(), started)
    }

    /// The share's location, as in `//127.0.0.1:4450/home`.
    pub fn location(&self) -> String {
        match self.address {
            IpAddr::V4(address) => format!("//{address}:{}/{}", self.port, self.share),
            IpAddr::V6(address) => format!("//[{address}]:{}/{}", self.port, self.share),
        }
    }

    /// The name of a user; they count from 1.
    pub fn user(&self, number: u32) -> String {
        accounts::user_name(number)
    }

    /// The users' domain.
    pub fn domain(&self) -> &'static str {
        WORKGROUP
    }

    /// smbd's own process, once it runs.
    pub fn smbd_pid(&self) -> Option<i32> {
        self.processes.iter().find(|process| process.name == "smbd").map(|process| process.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_record_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(folder.path()).unwrap();
        assert!(matches!(Record::read(&paths), Err(LabError::NotALab { .. })));
        let mut record = Record::new(&paths, true);
        record.write(&paths).unwrap();
        record.port = 4450;
        record.processes = vec![Process { name: "smbd".into(), pid: 7, start_ticks: 9 }];
        record.write(&paths).unwrap();
        let read = Record::read(&paths).unwrap();
        assert_eq!(read, record);
        assert_eq!((read.smbd_pid(), read.location().as_str()), (Some(7), "//127.0.0.1:4450/"));
    }

    #[test]
    fn a_broken_or_newer_record_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(folder.path()).unwrap();
        fs::write(paths.record(), "{").unwrap();
        assert!(Record::read(&paths).unwrap_err().to_string().contains("by hand"));
        let newer = Record { format: FORMAT + 1, ..Record::new(&paths, true) };
        newer.write(&paths).unwrap();
        assert!(Record::read(&paths).unwrap_err().to_string().contains("newer"));
    }

    #[test]
    fn a_record_of_another_boot_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(folder.path()).unwrap();
        let me = Process::find("test", std::process::id().cast_signed()).unwrap();
        let record =
            Record { boot_id: "another".into(), processes: vec![me], ..Record::new(&paths, true) };
        assert_eq!(record.running(&paths), []);
    }
}
