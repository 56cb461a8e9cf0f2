//! Processes of the file server: which CPUs and memory they may use, where they ran last, where their memory is.
//!
//! Owns the names of server processes, and how Linux describes one. Clients' addresses, which smbd writes into the names
//! of its processes, are left out. Rules are in [`super::findings`], commands in [`super::commands`].
//!
//! Linux `Documentation/filesystems/proc.rst` (`status`, `stat`, `numa_maps`), `admin-guide/cgroup-v2.rst`; names of
//! threads: `fs/smb/server/connection.c`, `transport_tcp.c` (ksmbd), `fs/nfsd/nfssvc.c`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bundle::Files;
use super::layout::CpuId;
use super::read::{CPUS_MAX, number_list};

/// Processes that are kept.
pub(crate) const PROCESSES_MAX: usize = 1024;
/// Processes whose memory is summed: the kernel walks all pages for it.
const MEMORY_READ_MAX: usize = 64;
/// NUMA nodes of a process's memory.
const NODES_MAX: usize = 1024;
/// Names of servers in user space.
const PROGRAMS: [&str; 5] = ["smbd", "ksmbd.mountd", "samba", "ganesha.nfsd", "nfs-ganesha"];

/// A process or a kernel thread of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    pub id: u32,
    /// Name of the server: `smbd`, `ksmbd`, `nfsd`, `System`.
    pub name: String,
    /// Whether it is a thread of the kernel, which systemd and process affinity do not place.
    pub is_kernel: bool,
    /// CPUs that it may use, if they are known.
    pub allowed: Vec<CpuId>,
    /// Linux: nodes whose memory it may use.
    pub memory_nodes: Vec<u32>,
    /// Linux: where it ran last.
    pub last: Option<CpuId>,
    /// Linux: bytes of its memory by node, as (node, bytes).
    pub memory: Vec<(u32, u64)>,
    /// Linux: its control group.
    pub cgroup: Option<String>,
    /// Linux: CPUs that its control group may use (`AllowedCPUs=`); empty if that is not known.
    pub cpuset: Vec<u32>,
}

/// The processes of a machine's servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processes {
    pub list: Vec<Process>,
    /// Processes beyond the limit of the list.
    pub beyond_limit: u32,
}

impl Process {
    /// The service of systemd that it belongs to.
    pub fn unit(&self) -> Option<&str> {
        self.cgroup.as_deref()?.rsplit('/').find(|part| part.ends_with(".service"))
    }
}

/// The server whose process has this name (`comm`), and whether it is a thread of the kernel.
fn server(comm: &str) -> Option<(&'static str, bool)> {
    // `kworker/u8:1-ksmbd-io` works for ksmbd now, `ksmbd:445` always.
    let is_worker = comm.starts_with("kworker/") && comm.contains("ksmbd");
    if is_worker || comm.starts_with("ksmbd:") || comm.starts_with("ksmbd-") {
        return Some(("ksmbd", true));
    }
    if comm == "nfsd" {
        return Some(("nfsd", true));
    }
    let program = PROGRAMS.iter().find(|program| {
        comm.strip_prefix(**program)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', ':', '-']))
    });
    program.map(|program| (*program, false))
}

/// Reads the server processes below `proc`.
pub(crate) fn read(files: &dyn Files) -> Processes {
    let mut processes = Processes::default();
    let ids = files.list("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    for id in ids {
        let Some(comm) = text(files, &format!("proc/{id}/comm")) else { continue };
        let Some((name, is_kernel)) = server(comm.trim()) else { continue };
        if processes.list.len() >= PROCESSES_MAX {
            processes.beyond_limit = processes.beyond_limit.saturating_add(1);
            continue;
        }
        let with_memory = !is_kernel && processes.list.len() < MEMORY_READ_MAX;
        processes.list.push(process(files, id, name, is_kernel, with_memory));
    }
    processes
}

fn process(files: &dyn Files, id: u32, name: &str, is_kernel: bool, with_memory: bool) -> Process {
    let status = text(files, &format!("proc/{id}/status")).unwrap_or_default();
    let value = |key: &str| {
        status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    };
    let list =
        |key: &str| value(key).and_then(|list| number_list(list, CPUS_MAX)).unwrap_or_default();
    // The name is in parentheses and may have any character; the CPU is the 39th field, the state the third.
    let stat = text(files, &format!("proc/{id}/stat")).unwrap_or_default();
    let last = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(36)?.parse::<u32>().ok());
    let maps = with_memory.then(|| text(files, &format!("proc/{id}/numa_maps"))).flatten();
    let cgroup = text(files, &format!("proc/{id}/cgroup")).and_then(|text| {
        let unified = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(unified.chars().take(4096).collect())
    });
    let cpuset = cgroup.as_deref().and_then(|group: &str| {
        // A path of a container's view may climb: it is not followed.
        let group = Some(group).filter(|group| !group.contains(".."))?;
        let list = text(files, &format!("sys/fs/cgroup{group}/cpuset.cpus.effective"))?;
        number_list(list.trim(), CPUS_MAX)
    });
    Process {
        id,
        name: name.to_owned(),
        is_kernel,
        cpuset: cpuset.unwrap_or_default(),
        allowed: list("Cpus_allowed_list").into_iter().map(|cpu| (0, cpu)).collect(),
        memory_nodes: list("Mems_allowed_list"),
        last: last.map(|cpu| (0, cpu)),
        memory: maps.map(|maps| memory(&maps)).unwrap_or_default(),
        cgroup,
    }
}

/// Sums `N0=12 N1=3 kernelpagesize_kB=4` over all mappings.
fn memory(maps: &str) -> Vec<(u32, u64)> {
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for line in maps.lines() {
        let words = || line.split_whitespace().filter_map(|word| word.split_once('='));
        let page = words().find(|(key, _)| *key == "kernelpagesize_kB");
        let page_bytes = page.and_then(|(_, size)| size.parse::<u64>().ok()).unwrap_or(4) * 1024;
        for (key, pages) in words() {
            let node = key.strip_prefix('N').and_then(|node| node.parse().ok());
            let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) else { continue };
            if nodes.len() < NODES_MAX || nodes.contains_key(&node) {
                let bytes = nodes.entry(node).or_default();
                *bytes = bytes.saturating_add(pages.saturating_mul(page_bytes));
            }
        }
    }
    nodes.into_iter().collect()
}

fn text(files: &dyn Files, path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&files.read(path)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_known_and_addresses_left_out() {
        for (comm, expected) in [
            ("smbd", Some(("smbd", false))),
            ("smbd[10.1.2.3]", Some(("smbd", false))),
            ("smbd-notifyd", Some(("smbd", false))),
            ("smbdisk", None),
            ("ksmbd:445", Some(("ksmbd", true))),
            ("kworker/u8:3-ksmbd-io", Some(("ksmbd", true))),
            ("kworker/u8:3-events", None),
            ("ksmbd.mountd", Some(("ksmbd.mountd", false))),
            ("nfsd", Some(("nfsd", true))),
            ("sh", None),
        ] {
            assert_eq!(server(comm), expected, "{comm}");
        }
    }

    #[test]
    fn memory_is_summed_by_node_with_the_size_of_pages() {
        let maps = "7f00 default file=/x mapped=3 N0=2 N1=1 kernelpagesize_kB=4\n\
                    7f10 bind:0 huge anon=1 N1=1 kernelpagesize_kB=2048\nNx=1 N2=y\n";
        assert_eq!(memory(maps), [(0, 8192), (1, 4096 + (2048 << 10))]);
    }
}
