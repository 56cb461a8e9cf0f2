//! Least privilege: drops the capabilities that a program that parses untrusted input does not need any more, and the files
//! that it need not touch (landlock(7)), and keeps secrets out of core dumps.

use std::path::Path;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// Permanently drops every capability of this thread and of the threads that it starts, also across execve(2),
/// except the one that reads the probe's counters. Files are written below `out`: if another user owns that
/// folder, the capability to write there is kept.
///
/// Fails if the system forbids it; then nothing has changed.
pub fn drop_all(out: &Path) -> std::io::Result<()> {
    let mut kept = CapabilitySet::BPF;
    if !is_own(out) {
        kept |= CapabilitySet::DAC_OVERRIDE;
    }
    let held = capabilities(None)?.permitted;
    let kept = kept & held;
    set_no_new_privs(true)?;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// The same for a thread that needs none: the one that waits for signals.
pub fn drop_own() -> std::io::Result<()> {
    set_no_new_privs(true)?;
    let empty = CapabilitySet::empty();
    let sets = CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
    Ok(set_capabilities(None, sets)?)
}

/// The terminal of `top`, and the kernel's tracer, whose instance is removed at the end.
const KEPT: [&str; 3] =
    ["/dev/tty", "/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];
/// What the kernel says about itself and its processes, and the time zone.
const READABLE: [&str; 4] = ["/proc", "/sys", "/etc/localtime", "/usr/share/zoneinfo"];

/// From now on this thread, and those that it starts, write below the folders `writable` only, read there and what the kernel
/// says, and neither run a program nor connect to one: what root may do without any capability. Files that are open stay
/// open. Returns false on a kernel without Landlock (before 5.13); older ones than 6.7 do not limit connections.
///
/// # Errors
/// A folder cannot be opened, or the kernel refuses.
pub fn restrict_files(writable: &[&Path]) -> anyhow::Result<bool> {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
        RulesetStatus, path_beneath_rules,
    };
    let (all, read) = (AccessFs::from_all(ABI::V4), AccessFs::from_read(ABI::V4));
    let read = read & !AccessFs::Execute;
    let restricted = Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(KEPT, all & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(writable, all & !AccessFs::Execute))?
        .restrict_self()?;
    Ok(restricted.ruleset != RulesetStatus::NotEnforced)
}

/// From now on the process leaves no core dump, and other programs of the same user cannot read its memory: it holds
/// passwords. Programs that it starts are not affected.
pub fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    // Both are additional walls: the program continues on a system that refuses.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|metadata| metadata.uid() == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_with_secrets_is_not_dumped() {
        use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};
        keep_memory_private();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
    }

    #[test]
    fn a_thread_drops_its_capabilities() {
        let folder = tempfile::tempdir().unwrap();
        let thread = std::thread::spawn(move || {
            drop_all(folder.path()).unwrap();
            let left = capabilities(None).unwrap();
            (left.effective | left.permitted) - CapabilitySet::BPF
        });
        assert_eq!(thread.join().unwrap(), CapabilitySet::empty());
        let thread = std::thread::spawn(|| {
            drop_own().unwrap();
            capabilities(None).unwrap()
        });
        let left = thread.join().unwrap();
        assert_eq!(left.effective | left.permitted, CapabilitySet::empty());
    }

    #[test]
    fn a_thread_gives_up_other_files() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = other.path().join("secret");
        std::fs::write(&secret, "kept").unwrap();
        let restricted = std::thread::spawn(move || {
            if !restrict_files(&[own.path()]).unwrap() {
                return false;
            }
            let denied = |result: std::io::Result<()>| {
                assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
            };
            denied(std::fs::read(&secret).map(drop));
            denied(std::fs::write(&secret, "x"));
            denied(std::fs::remove_file(&secret));
            denied(std::process::Command::new("/bin/true").status().map(drop));
            let file = own.path().join("part.tmp");
            std::fs::write(&file, "rows").unwrap();
            std::fs::rename(&file, own.path().join("part")).unwrap();
            assert!(!std::fs::read_to_string("/proc/self/status").unwrap().is_empty());
            true
        });
        if !restricted.join().unwrap() {
            smbscope_testing::skip!("this kernel has no Landlock");
        }
        assert!(other.path().join("secret").exists());
    }
}
