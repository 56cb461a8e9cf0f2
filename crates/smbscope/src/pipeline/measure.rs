//! Load runs: from a plan to recorded rows and the numbers of each step.
//!
//! The engine that runs users is `smbscope_load`'s; what is shown of a run is the caller's
//! ([`run::Observer`]).

pub mod counters;
pub mod describe;
pub mod matrix;
pub mod migrate;
pub mod preflight;
pub mod progress;
pub mod run;
pub mod writer;

use std::time::Duration;

use crate::exit::{Code, Failure};
use crate::interrupt;

/// The runtime whose threads run the users, and their number; 0 asks for one per CPU.
pub fn runtime(threads: usize) -> anyhow::Result<(tokio::runtime::Runtime, usize)> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    Ok((runtime, threads))
}

/// Does `work` before a run unless the user interrupts it. Otherwise a server that does not answer would block until
/// the timeout.
pub async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let asked = async {
        while !interrupt::asked() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = asked => Err(Failure::new(Code::Interrupted, "interrupted").into()),
    }
}
