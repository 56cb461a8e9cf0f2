//! Finds the smbd processes, their ports, and the libraries that they run.
//!
//! Owns the information from /proc. A process is smbd if it runs a program of that name or has mapped
//! Samba's server library, whatever the distribution names it. proc(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Prefix of the name of the library with the requests' functions: `libsmbd-base-samba4.so.0`,
/// `libsmbd-base-private-samba.so.0`.
pub const SERVER: &str = "libsmbd-base";
/// Prefix of the name of the library that signs and encrypts.
pub const CRYPTO: &str = "libcli-smb-common";

/// Which processes are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// These and their descendants.
    pub processes: Vec<u32>,
    /// Processes that listen on one of these ports, and their descendants.
    pub ports: Vec<u16>,
    /// Processes in this control group (a path below /sys/fs/cgroup, or from its root).
    pub cgroup: Option<String>,
}

impl Choice {
    /// Whether every smbd is chosen.
    pub fn is_any(&self) -> bool {
        self.processes.is_empty() && self.ports.is_empty() && self.cgroup.is_none()
    }
}

/// A mapped library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// The path to open it, also from another mount namespace or after it was replaced.
    pub path: PathBuf,
    /// Its name as mapped.
    pub name: String,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// smbd's processes.
    pub processes: BTreeSet<u32>,
    /// The processes that listen, and whose parents do not: services.
    pub services: BTreeSet<u32>,
    /// TCP ports on which they listen; the usual ones if they do not listen yet.
    pub ports: BTreeSet<u16>,
    /// Server libraries, each file once.
    pub servers: Vec<Library>,
    /// Libraries that sign and encrypt.
    pub cryptos: Vec<Library>,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// /proc cannot be read.
    #[error("cannot read {path}: {error}")]
    Proc {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Processes that may be smbd cannot be inspected.
    #[error("{count} smbd processes are running, but this user may not inspect them: run as root")]
    Hidden {
        /// How many.
        count: usize,
    },
    /// No process matches.
    #[error("no running smbd {which}: start Samba, or name its process with --pid")]
    Nothing {
        /// What was searched.
        which: String,
    },
}

/// Finds smbd's processes.
pub fn find(choice: &Choice) -> Result<Found, FindError> {
    let all = all_processes()?;
    let smbd: BTreeSet<u32> = all.keys().copied().filter(|&process| is_smbd(process)).collect();
    let listening: BTreeMap<u32, BTreeSet<u16>> =
        smbd.iter().map(|&process| (process, listens_on(process))).collect();
    let chosen = |process: u32| -> bool {
        let line = || lineage(process, &all);
        let by_process = choice.processes.is_empty()
            || line().any(|ancestor| choice.processes.contains(&ancestor));
        let by_port = choice.ports.is_empty()
            || line().any(|ancestor| {
                let ports = listening.get(&ancestor).into_iter().flatten();
                ports.into_iter().any(|port| choice.ports.contains(port))
            });
        by_process && by_port && choice.cgroup.as_ref().is_none_or(|group| is_in(process, group))
    };
    let mut found = Found::default();
    found.processes.extend(smbd.iter().copied().filter(|&process| chosen(process)));
    let listens = |process: &u32| listening.get(process).is_some_and(|ports| !ports.is_empty());
    let services = found.processes.iter().filter(|process| {
        listens(process) && !lineage(**process, &all).skip(1).any(|ancestor| listens(&ancestor))
    });
    found.services = services.copied().collect();
    let count = all.keys().filter(|&&process| is_hidden(process)).count();
    if found.processes.is_empty() && count > 0 {
        return Err(FindError::Hidden { count });
    }
    if found.processes.is_empty() {
        return Err(FindError::Nothing { which: choice.to_string() });
    }
    for &process in &found.processes {
        // A connection's own process does not listen: its ancestors do.
        for ancestor in lineage(process, &all) {
            found.ports.extend(listening.get(&ancestor).into_iter().flatten());
        }
    }
    if found.ports.is_empty() {
        // It was just started, or is about to end.
        found.ports.extend(smbscope_capture::live::PORTS);
    }
    let mut unique = BTreeSet::new();
    for &process in &found.processes {
        for (library, file) in libraries(process) {
            if !unique.insert((library.name.starts_with(SERVER), file)) {
                continue;
            }
            if library.name.starts_with(SERVER) {
                found.servers.push(library);
            } else {
                found.cryptos.push(library);
            }
        }
    }
    Ok(found)
}

/// New descendants of the processes that were found.
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub(crate) fn born_since(found: &Found) -> Result<Vec<u32>, FindError> {
    let all = all_processes()?;
    let is_known = |process: &u32| found.processes.contains(process);
    let born = all.keys().copied().filter(|process| !is_known(process));
    Ok(born.filter(|&process| lineage(process, &all).any(|it| is_known(&it))).collect())
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut words = Vec::new();
        if !self.processes.is_empty() {
            words.push(format!("at or below process {}", list(&self.processes)));
        }
        if !self.ports.is_empty() {
            words.push(format!("on port {}", list(&self.ports)));
        }
        if let Some(group) = &self.cgroup {
            words.push(format!("in control group {group}"));
        }
        if words.is_empty() {
            words.push("on this machine".to_owned());
        }
        f.write_str(&words.join(" and "))
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Processes with their parents.
fn all_processes() -> Result<BTreeMap<u32, u32>, FindError> {
    let path = PathBuf::from("/proc");
    let entries = fs::read_dir(&path).map_err(|error| FindError::Proc { path, error })?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter_map(|process| Some((process, parent(process)?))).collect())
}

fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The preceding name may contain any character but ends with the last parenthesis.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The process, its parent and so on.
fn lineage(process: u32, all: &BTreeMap<u32, u32>) -> impl Iterator<Item = u32> {
    let next = |process: &u32| all.get(process).copied().filter(|parent| parent != process);
    std::iter::successors(Some(process), next).take(64)
}

fn is_smbd(process: u32) -> bool {
    let exe = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    let name = exe.file_name().unwrap_or_default().to_string_lossy();
    // "smbd (deleted)" after an upgrade.
    name == "smbd"
        || name.starts_with("smbd ")
        || libraries(process).iter().any(|(library, _)| library.name.starts_with(SERVER)) && {
            let comm = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            comm.starts_with("smbd")
        }
}

/// Whether it seems to be smbd, but its program cannot be inspected.
fn is_hidden(process: u32) -> bool {
    let exe = fs::read_link(format!("/proc/{process}/exe"));
    exe.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        && fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.trim_end() == "smbd")
}

fn is_in(process: u32, group: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    is_among(&text, group)
}

/// Whether a process with these groups (cgroups(7), /proc/PID/cgroup) is in a group or below it.
fn is_among(groups: &str, group: &str) -> bool {
    let wanted = group.strip_prefix("/sys/fs/cgroup").unwrap_or(group).trim_matches('/');
    let below = |own: &str, wanted: &str| {
        let rest = own.strip_prefix(wanted);
        wanted.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(own)) = (fields.next(), fields.next()) else { return false };
        // In cgroups v1 each hierarchy has its own folder, named after its controllers.
        let hierarchy = controllers.strip_prefix("name=").unwrap_or(controllers).split(',');
        let own = own.trim_matches('/');
        below(own, wanted)
            || hierarchy.chain([controllers, "unified"]).any(|hierarchy| {
                let wanted = wanted.strip_prefix(hierarchy).and_then(|rest| rest.strip_prefix('/'));
                !hierarchy.is_empty() && wanted.is_some_and(|wanted| below(own, wanted))
            })
    })
}

/// Ports of the listening sockets that the process holds.
fn listens_on(process: u32) -> BTreeSet<u16> {
    let mut sockets = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let number = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        sockets.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    let mut ports = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
        ports.extend(text.lines().skip(1).filter_map(|line| listening_port(line, &sockets)));
    }
    ports
}

/// The port in a line of /proc/net/tcp, if it is listening and is one of these sockets.
fn listening_port(line: &str, sockets: &BTreeSet<u64>) -> Option<u16> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let socket: u64 = fields.nth(5)?.parse().ok()?;
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    (state == "0A" && sockets.contains(&socket)).then_some(port)
}

/// Samba's libraries that the process has mapped to execute, each with its device and inode.
fn libraries(process: u32) -> Vec<(Library, String)> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    text.lines().filter_map(|line| library(process, line)).collect()
}

fn library(process: u32, line: &str) -> Option<(Library, String)> {
    let mut fields = line.splitn(6, ' ');
    let range = fields.next()?;
    let executable = fields.next()?.contains('x');
    let device = fields.nth(1)?;
    let inode = fields.next()?;
    let path = fields.next()?.trim_start();
    let name = Path::new(path).file_name()?.to_str()?.to_owned();
    if !executable || !(name.starts_with(SERVER) || name.starts_with(CRYPTO)) {
        return None;
    }
    let beside = PathBuf::from(format!("/proc/{process}/root{path}"));
    // A replaced file still exists for the processes that mapped it.
    let path = if beside.exists() && !path.ends_with("(deleted)") {
        beside
    } else {
        PathBuf::from(format!("/proc/{process}/map_files/{range}"))
    };
    Some((Library { path, name }, format!("{device} {inode}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_as_the_kernel_does_or_by_its_folder() {
        let unified = "0::/system.slice/smbd.service\n";
        let divided = "2:cpu,cpuacct:/samba/a\n1:name=systemd:/smbd.service\n0::/\n";
        for (groups, group) in [
            (unified, "system.slice/smbd.service"),
            (unified, "/sys/fs/cgroup/system.slice"),
            (unified, "/sys/fs/cgroup/unified/system.slice/smbd.service/"),
            (unified, "/"),
            (divided, "samba"),
            (divided, "/sys/fs/cgroup/cpu,cpuacct/samba/a"),
            (divided, "/sys/fs/cgroup/cpuacct/samba"),
            (divided, "/sys/fs/cgroup/systemd/smbd.service"),
        ] {
            assert!(is_among(groups, group), "{group}");
        }
        for group in ["system", "smbd.service", "cpu/system.slice", "system.slice/smbd"] {
            assert!(!is_among(unified, group), "{group}");
        }
        assert!(!is_among(divided, "/sys/fs/cgroup/memory/samba"));
    }

    #[test]
    fn a_line_of_maps() {
        let line = "7f0000001000-7f0000002000 r-xp 00001000 fe:00 1234                       /usr/lib/samba/libsmbd-base-samba4.so.0";
        let (library, file) = library(1, line).unwrap();
        assert_eq!(
            (library.name.as_str(), file.as_str()),
            ("libsmbd-base-samba4.so.0", "fe:00 1234")
        );
        assert!(super::library(1, &line.replace("r-xp", "r--p")).is_none());
        let deleted = format!("{line} (deleted)");
        let (library, _) = super::library(1, &deleted).unwrap();
        assert_eq!(library.path, Path::new("/proc/1/map_files/7f0000001000-7f0000002000"));
    }

    #[test]
    fn a_line_of_the_socket_table() {
        let line = "   0: 00000000:01BD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0";
        assert_eq!(listening_port(line, &BTreeSet::from([4711])), Some(445));
        assert_eq!(listening_port(line, &BTreeSet::from([1])), None);
        assert_eq!(listening_port(&line.replace(" 0A ", " 01 "), &BTreeSet::from([4711])), None);
    }

    #[test]
    fn missing_processes_are_reported() {
        let choice = Choice { ports: vec![9], ..Choice::default() };
        let error = find(&choice).unwrap_err().to_string();
        assert!(error.starts_with("no running smbd on port 9"), "{error}");
    }
}
