//! Least privilege: what a program that reads strangers' bytes needs no more, it gives up.

use std::path::Path;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// Gives up every capability of this thread, and of those it starts, but the right to read counters
/// of the probe; and for good, also across execve(2). Files are written below `out`: where that is
/// another user's, the right to write it stays. The thread that waits for signals is not affected, it
/// looks at nothing.
///
/// Fails where the system forbids it; then nothing has changed.
pub fn give_up(out: &Path) -> std::io::Result<()> {
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

fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|metadata| metadata.uid() == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_up_what_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let thread = std::thread::spawn(move || {
            give_up(folder.path()).unwrap();
            let left = capabilities(None).unwrap();
            (left.effective | left.permitted) - CapabilitySet::BPF
        });
        assert_eq!(thread.join().unwrap(), CapabilitySet::empty());
    }
}
