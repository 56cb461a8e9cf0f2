//! Least privilege: drops the capabilities that a program that parses untrusted input does not need any more, and keeps
//! secrets out of core dumps.

use std::path::Path;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// Permanently drops every capability of this thread and of the threads that it starts, also across execve(2),
/// except the one that reads the probe's counters. Files are written below `out`: if another user owns that
/// folder, the capability to write there is kept. The thread that waits for signals is not affected; it parses
/// no input.
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
    }
}
