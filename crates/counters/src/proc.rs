//! Counters of this machine from `/proc` (proc(5), kernel Documentation/admin-guide/iostats.rst).
//!
//! Owns which files are read and how much of them; `machine` parses their text, `process` the
//! processes. A file that the kernel does not have is left out: the sample fails only if none can be
//! read.

pub mod machine;
pub mod process;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::rate::Reading;
use super::sampler::Source;
use super::sys::Sys;
pub use process::Processes;
use process::{Others, Tracker};

/// Longest text of a `/proc` file: the files that are read here are shorter; of a longer one only the
/// beginning is read.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// This machine, as the server's or the client's.
pub struct Proc {
    source: &'static str,
    root: PathBuf,
    disks: PathBuf,
    machine: bool,
    sys: Option<Sys>,
    trackers: Vec<Tracker>,
    /// All other processes of a server's machine.
    others: Option<Others>,
}

impl Proc {
    /// The machine that the server runs on, and its processes.
    pub fn server(processes: Vec<Processes>) -> Proc {
        let disks = Path::new("/sys/block");
        let all = Proc::in_folders("server", Path::new("/proc"), disks, true, processes);
        all.with_sys(Path::new("/sys"))
    }

    /// The machine that the load generator runs on, and the generator itself. Without `machine` only
    /// the generator, for a server on the same machine.
    pub fn client(machine: bool) -> Proc {
        let pid = std::process::id();
        let own = vec![Processes::Tree(pid, format!("pid {pid}"))];
        let disks = Path::new("/sys/block");
        let all = Proc::in_folders("client", Path::new("/proc"), disks, machine, own);
        all.with_sys(Path::new("/sys"))
    }

    /// Likewise with other folders.
    pub fn in_folders(
        source: &'static str,
        root: &Path,
        disks: &Path,
        machine: bool,
        processes: Vec<Processes>,
    ) -> Proc {
        let page_bytes = text(&root.join("self/smaps")).map_or(4_096, |t| page_bytes(&t));
        let trackers = processes.into_iter().map(|which| Tracker::new(which, page_bytes)).collect();
        let (root, disks) = (root.to_owned(), disks.to_owned());
        let others = (source == "server").then(Others::default);
        Proc { source, root, disks, machine, sys: None, trackers, others }
    }

    /// Reads idle states, frequencies and RDMA below a folder like `/sys`, too.
    pub fn with_sys(self, root: &Path) -> Proc {
        Proc { sys: self.machine.then(|| Sys::find(root)), ..self }
    }

    fn machine(&self, out: &mut Vec<Reading>) {
        let mut with = |path: &str, read: &dyn Fn(&str, &mut Vec<Reading>)| {
            if let Some(text) = text(&self.root.join(path)) {
                read(&text, out);
            }
        };
        with("stat", &machine::stat);
        with("schedstat", &machine::schedstat);
        with("loadavg", &machine::loadavg);
        with("meminfo", &machine::meminfo);
        with("net/dev", &machine::net_dev);
        with("net/snmp", &machine::net_snmp);
        with("sys/fs/file-nr", &machine::file_nr);
        for resource in ["cpu", "io", "memory"] {
            with(&format!("pressure/{resource}"), &|t, out| machine::pressure(resource, t, out));
        }
        // Partitions would count their disk's requests a second time.
        let known = self.disks.is_dir();
        let is_disk = |name: &str| !known || self.disks.join(name.replace('/', "!")).exists();
        with("diskstats", &|t, out| machine::diskstats(t, is_disk, out));
    }
}

impl Source for Proc {
    fn source(&self) -> &'static str {
        self.source
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn read(&mut self) -> Result<Vec<Reading>, String> {
        let mut out = Vec::new();
        if self.machine {
            self.machine(&mut out);
        }
        if let Some(sys) = &self.sys {
            sys.read(&mut out);
        }
        if !self.trackers.is_empty() {
            let processes = process::list(&self.root);
            for tracker in &mut self.trackers {
                tracker.read(&self.root, &processes, &mut out);
            }
            if let Some(others) = &mut self.others {
                others.read(&processes, &self.trackers, &mut out);
            }
        }
        if out.is_empty() {
            return Err(format!(
                "nothing could be read in {}: counters of a machine need Linux; use --metrics URL \
                 for other servers",
                self.root.display()
            ));
        }
        Ok(out)
    }
}

/// A file's text, up to the first invalid UTF-8.
pub(crate) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The kernel's page size, from a line of `smaps`.
fn page_bytes(smaps: &str) -> u64 {
    let line = smaps.lines().find_map(|line| line.strip_prefix("KernelPageSize:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.filter(|kb| (1..=1 << 20).contains(kb)).map_or(4_096, |kb| kb * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_like_proc() {
        let folder = tempfile::tempdir().unwrap();
        let (root, disks) = (folder.path().join("proc"), folder.path().join("block"));
        for (path, text) in [
            ("stat", "cpu  100 0 50 800 50 0 0 0 0 0\nprocs_running 3\n"),
            ("diskstats", "8 0 sda 1 0 8 1 1 0 8 1 0 1 2\n8 1 sda1 1 0 8 1 1 0 8 1 0 1 2\n"),
            ("sys/fs/file-nr", "1537\t0\t2466170\n"),
            ("77/schedstat", "1000000 5000000 7\n"),
            ("self/smaps", "0-1 r-xp\nSize: 8 kB\nKernelPageSize:       16 kB\n"),
            ("77/stat", "77 (smbd) S 1 77 77 0 -1 0 0 0 0 0 300 100 0 0 20 0 1 0 9 0 10 0\n"),
            ("self/stat", "77 (smbd) S 1 77 77 0 -1 0 0 0 0 0 300 100 0 0 20 0 1 0 9 0 10 0\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(disks.join("sda")).unwrap();
        let smbd = vec![Processes::Named("smbd".to_owned())];
        let mut source = Proc::in_folders("server", &root, &disks, true, smbd);
        source.read().unwrap();
        fs::write(root.join("77/schedstat"), "2000000 45000000 9\n").unwrap();
        let readings = source.read().unwrap();
        let value = |name: &str| readings.iter().find(|reading| reading.name == name);
        assert_eq!(value("open_files").unwrap().value, 1_537.0);
        assert_eq!(value("run_queue").unwrap().value, 3.0);
        assert_eq!(value("process_count").unwrap().value, 1.0);
        assert_eq!(value("process_memory_bytes").unwrap().value, 163_840.0);
        // 40 ms.
        assert_eq!(value("process_waiting_percent").unwrap().value, 4.0);
        let disks: Vec<_> = readings.iter().filter(|r| r.name == "disk_busy_percent").collect();
        assert_eq!(disks.len(), 1);
        assert_eq!(disks[0].instance.as_deref(), Some("sda"));
        let mut nothing = Proc::in_folders("server", &root.join("no"), &root, true, Vec::new());
        assert!(nothing.read().unwrap_err().contains("--metrics URL"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_generator_finds_itself() {
        let readings = Proc::client(false).read().unwrap();
        let count = readings.iter().find(|reading| reading.name == "process_count").unwrap();
        assert!(count.value >= 1.0);
        assert!(readings.iter().all(|reading| reading.name.starts_with("process_")));
    }
}
