//! Simulated users against a real SMB server.
//!
//! Owns: workloads as data, the files that users have, the SMB client on `wire`'s messages, the
//! open-loop schedule, the capacity search, counters of server and client, a private Samba to try
//! things on, and a line with distance. It does not own the rows (`tables`), where they are kept
//! (`store`) nor how they are shown (`report`).

#[cfg(target_os = "linux")]
pub mod calibrate;
pub mod capacity;
pub mod client;
pub mod clock;
pub mod counters;
pub mod fileset;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod perform;
pub mod prepare;
pub mod recorder;
pub mod row;
pub mod run;
pub mod stats;
pub mod units;
pub mod wan;
pub mod watch;
pub mod workload;
