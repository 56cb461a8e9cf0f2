//! `smbscope net`: the network without SMB, between two machines.
//!
//! Owns the options and the messages while a test runs. The test is `smbscope_load::net`, the result is
//! shown like a report.

pub mod args;
#[cfg(target_os = "linux")]
mod linux;

use crate::options::Verbosity;

use args::Net;

/// Listens, or sends.
pub fn run(args: &Net, verbosity: Verbosity) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    return linux::run(args, verbosity);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (args, verbosity);
        anyhow::bail!("smbscope net needs Linux: it reads the state of TCP from the kernel");
    }
}
