//! Simulated users against a real SMB server.
//!
//! Owns: workloads as data, the users' files, the open-loop schedule, the capacity search, the recorder
//! of a run, the calibration of cryptography, the durability test, and the test of the network without SMB (`net`). It
//! does not own the SMB client (`client`), the private Samba (`lab`), counters (`counters`), the rows (`tables`), their
//! storage (`store`) nor their presentation (`report`).

#[cfg(target_os = "linux")]
pub mod calibrate;
pub mod capacity;
pub mod durability;
pub mod execute;
pub mod fileset;
pub mod migrate;
#[cfg(target_os = "linux")]
pub mod net;
pub mod prepare;
pub mod recorder;
pub mod run;
pub mod self_check;
pub mod stats;
pub mod workload;
