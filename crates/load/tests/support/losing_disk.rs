//! A file system that loses what was not synced (`tests/durability/losefs.py`), below the share of a lab.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use smbscope_testing::samba::Samba;
use smbscope_testing::skip;

/// A write that the file system lost: writer, file, block and number.
pub type Lost = (u16, u32, u32, u64);

/// What the file system says when the plug is pulled.
#[derive(Default)]
pub struct Pulled {
    /// Writes that it lost, with their round.
    pub lost: BTreeSet<(u32, Lost)>,
    /// By writer, the version that has the name afterwards.
    pub named: BTreeMap<u16, u32>,
    /// Sizes of the files in the folder of the round, by name.
    pub sizes: BTreeMap<String, u64>,
}

/// The file system below a lab's share.
pub struct LosingDisk {
    process: Child,
    pub share: PathBuf,
    log: PathBuf,
}

/// Mounts the model over the lab's share; `None`, with a message, where that is not possible.
pub fn losing_disk(lab: &Samba, options: &[&str]) -> Option<LosingDisk> {
    if !nix::unistd::geteuid().is_root() {
        skip!("mounting a FUSE file system for Samba needs root");
        return None;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("SMBSCOPE_CACHE").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| home.join(".cache/smbscope"));
    let python = std::env::var_os("SMBSCOPE_PYTHON").map(PathBuf::from);
    let python = python.unwrap_or_else(|| cache.join("venv/bin/python"));
    let has_fuse = Command::new(&python).args(["-c", "import mfusepy"]).output();
    if !has_fuse.is_ok_and(|output| output.status.success()) {
        skip!("no Python with mfusepy: run scripts/setup.sh predictions");
        return None;
    }
    let share = lab.share();
    let files = share.with_file_name("files");
    std::fs::rename(&share, &files).unwrap();
    std::fs::create_dir(&share).unwrap();
    let log = share.with_file_name("lost");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/durability/losefs.py");
    let process = Command::new(python)
        .arg(script)
        .args([&files, &share, &log])
        .args(options)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let disk = LosingDisk { process, share, log };
    let end = Instant::now() + Duration::from_secs(60);
    while !Command::new("mountpoint").arg("-q").arg(&disk.share).status().unwrap().success() {
        assert!(Instant::now() < end, "losefs.py does not mount");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(disk)
}

impl LosingDisk {
    /// Undoes what is not on the disk of the model; says what that was.
    pub fn pull(&mut self) -> Pulled {
        use std::io::{BufRead as _, BufReader, Write as _};
        self.process.stdin.as_mut().unwrap().write_all(b"pull\n").unwrap();
        let mut line = String::new();
        // One line at a time: nothing is left in the buffer.
        BufReader::new(self.process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "pulled\n");
        let mut pulled = Pulled::default();
        for line in std::fs::read_to_string(&self.log).unwrap().lines() {
            let mut words = line.split(' ');
            let kind = words.next().unwrap();
            let mut next = || words.next().unwrap().parse::<u64>().unwrap();
            if kind == "lost" {
                let (round, lane, file) = (next() as u32, next() as u16, next() as u32);
                pulled.lost.insert((round, (lane, file, next() as u32, next())));
            } else if kind == "named" {
                pulled.named.insert(next() as u16, next() as u32);
            }
        }
        pulled
    }
}

impl Drop for LosingDisk {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.share).status();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
