//! Whether this machine permits recording a Samba, and what to do if it does not.
//!
//! It only inspects; it loads nothing. proc(5), capabilities(7), bpf(2).

use std::fs;

use crate::find::{Choice, FindError, find};
use crate::symbols::Symbols;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What was checked.
    pub what: &'static str,
    /// Its state.
    pub found: String,
    /// The remedy; `None` if there is no problem.
    pub remedy: Option<String>,
    /// Whether it prevents any recording inside Samba.
    pub blocks: bool,
}

/// Where the kernel describes itself.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The helper that the kernel added last of those that the probe calls: since Linux 6.1.
const NEEDED: &str = "bpf_ktime_get_tai_ns";
/// The first PID namespace, which has the kernel's own process ids (PID_NS_INIT_INO).
const FIRST_PROCESSES: &str = "pid:[4026531836]";
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Checks everything.
pub fn facts() -> Vec<Fact> {
    vec![kernel(), rights(), processes(), lockdown(), samba()]
}

/// What prevents recording inside Samba on this machine, if anything.
pub fn obstacle() -> Option<Fact> {
    [rights, processes, kernel, lockdown].into_iter().map(|look| look()).find(|fact| fact.blocks)
}

fn good(what: &'static str, found: impl Into<String>) -> Fact {
    Fact { what, found: found.into(), remedy: None, blocks: false }
}

fn bad(what: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Fact {
    Fact { what, found: found.into(), remedy: Some(remedy.into()), blocks: true }
}

fn kernel() -> Fact {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let types = match fs::read(TYPES) {
        Ok(types) => types,
        Err(error) => {
            let remedy = "Use a kernel with CONFIG_DEBUG_INFO_BTF (Debian, Ubuntu, RHEL and SUSE have it), or record the wire: smbscope record --interface any --no-probe --out run.";
            return bad("probe-kernel", format!("{release}, {TYPES}: {error}"), remedy);
        }
    };
    if !contains(&types, NEEDED.as_bytes()) {
        let remedy = "Use Linux 6.1 or later, or record the wire: smbscope record --interface any --no-probe --out run.";
        return bad("probe-kernel", format!("{release} has no {NEEDED}"), remedy);
    }
    good("probe-kernel", format!("{release}, with BTF"))
}

/// Where the kernel can observe what sockets receive and send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// At tracepoints: since Linux 6.3. Otherwise at functions.
    pub tracepoints: bool,
    /// sendfile(2) has its own function: until Linux 6.4.
    pub sendpage: bool,
}

/// Checks what this kernel has.
pub fn sockets() -> Sockets {
    let types = fs::read(TYPES).unwrap_or_default();
    let tracepoints = ["btf_trace_sock_send_length", "btf_trace_sk_data_ready"];
    Sockets {
        tracepoints: tracepoints.iter().all(|name| contains(&types, name.as_bytes())),
        sendpage: contains(&types, b"\0tcp_sendpage\0"),
    }
}

/// Whether this kernel can attach to functions with links: since Linux 6.6.
pub fn links_functions() -> bool {
    contains(&fs::read(TYPES).unwrap_or_default(), b"\0bpf_uprobe_multi_link\0")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    let Some(first) = word.first() else { return true };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(word) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

fn rights() -> Fact {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if !is_whole(&map) {
        let remedy = "Run it as root of the machine: what a container without root, or `unshare --user`, calls root has no rights in the kernel.";
        return bad("probe-rights", "in a user namespace", remedy);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0);
    let has = |capability: u32| held >> capability & 1 == 1;
    if has(CAP_SYS_ADMIN) {
        return good("probe-rights", "CAP_SYS_ADMIN");
    }
    let enough = "CAP_BPF and CAP_PERFMON";
    let links = links_functions();
    if has(CAP_BPF) && has(CAP_PERFMON) {
        if links {
            return good("probe-rights", enough);
        }
        // perf_uprobe_event_init, since Linux 6.16 and in the stable kernels of that time.
        let remedy = "Kernels before 6.6 that were patched since the middle of 2025 allow function probes only with CAP_SYS_ADMIN; without it only system calls are recorded. Add it, or run it as root.";
        let found = format!("{enough}, not CAP_SYS_ADMIN");
        return Fact { blocks: false, ..bad("probe-rights", found, remedy) };
    }
    let more = if links { "" } else { ",cap_sys_admin" };
    let remedy = format!(
        "Run the same command as root (with sudo), or give it the capabilities: setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search{more}+ep smbscope. In a container: --privileged and --pid=host."
    );
    bad("probe-rights", "neither root nor CAP_BPF and CAP_PERFMON", remedy)
}

/// Whether a user namespace's map of users is the machine's own: user_namespaces(7).
fn is_whole(map: &str) -> bool {
    map.trim().is_empty() || map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The kernel reports processes by its own ids, /proc by those of the reader's namespace.
fn processes() -> Fact {
    let own = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if own.as_os_str().is_empty() || own.as_os_str() == FIRST_PROCESSES {
        return good("probe-processes", "the machine's own");
    }
    let remedy = "Run it where all processes of the machine are seen: outside of the container, or in one with --pid=host.";
    bad("probe-processes", "in a PID namespace, where processes have other numbers", remedy)
}

fn lockdown() -> Fact {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if text.contains("[confidentiality]") {
        let remedy = "Start the kernel with lockdown=integrity or without lockdown: in confidentiality mode no program may read what another one's memory holds.";
        return bad("probe-lockdown", "confidentiality", remedy);
    }
    good(
        "lockdown",
        if text.contains("[integrity]") { "integrity, which allows it" } else { "none" },
    )
}

fn samba() -> Fact {
    let found = match find(&Choice::default()) {
        Ok(found) => found,
        Err(error) => {
            let remedy = match error {
                FindError::Hidden { .. } => "Run it as root.",
                _ => "Start it, or look into another PID namespace: --pid=host of the container.",
            };
            return Fact { blocks: false, ..bad("samba", error.to_string(), remedy) };
        }
    };
    let processes = found.processes.len();
    // Then only the system calls are recorded.
    let partly = |found: String| Fact {
        blocks: false,
        ..bad(
            "probe-samba",
            found,
            "Only its system calls are recorded: encrypted sessions cannot be read, and waits and cryptography are not distinguished. Samba 4.13 or later with shared libraries allows full recording.",
        )
    };
    let Some(library) = found.servers.first() else {
        return partly(format!("{processes} processes without libsmbd-base"));
    };
    let names = ["smbd_smb2_request_dispatch", "smbd_smb2_request_done_ex"];
    match Symbols::read(&library.path).and_then(|symbols| symbols.find(&names)) {
        Ok(functions) if functions.iter().all(Option::is_some) => {
            good("probe-samba", format!("{processes} processes of smbd, {}", library.name))
        }
        Ok(_) => partly(format!("{} has no smbd_smb2_request_dispatch", library.name)),
        Err(error) => bad("probe-samba", error.to_string(), "Run it as root."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found() {
        assert!(contains(b"aab\0btf_trace_x", b"btf_trace_x"));
        assert!(!contains(b"aab\0btf_trace_y", b"btf_trace_x"));
        assert!(!contains(b"", b"x"));
    }

    #[test]
    fn obstacles_have_a_remedy() {
        let facts = facts();
        assert!(facts.iter().all(|fact| !fact.blocks || fact.remedy.is_some()), "{facts:?}");
        assert_eq!(facts.len(), 5);
    }

    #[test]
    fn a_user_namespace_is_recognized() {
        assert!(is_whole("         0          0 4294967295\n"));
        assert!(!is_whole("         0       1000          1\n"));
        assert!(!is_whole("0 1000 1\n1 100000 65536\n"));
    }
}
