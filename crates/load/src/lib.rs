//! Simulated users against a real SMB server, and what their runs show.
//!
//! A run is a pure function of workload, seed, users and start: it can be repeated, and planned without a server. Its
//! rows are those of a capture, so that everything that reads a capture reads a run.
//!
//! Owns: workloads as data, the files of the users, the open-loop schedule, the search for the highest number of users, the
//! recorder of a run, the calibration of cryptography, migrations over several channels, the durability test, and the test
//! of the network without SMB. Does not own: the SMB client (`client`), the private Samba (`lab`), counters (`counters`),
//! the rows (`tables`), their storage (`store`) nor their presentation (`report`).
//!
//! # How the parts fit
//!
//! 1. [`workload`] reads scenarios from TOML. [`fileset`] says which files each user has, and what is in them.
//! 2. [`prepare`] writes these files to the share, or restores those that the run before deleted.
//! 3. [`workload::Planner`] makes the executions of a user: scenario, files, paths, sizes, and when each is due.
//! 4. [`execute`] does one execution in a session: requests, compounds, transfers; what is left after a lost connection.
//! 5. [`run`] has a task for each user, which waits until the next execution is due, and counts in [`stats`]. An execution
//!    that could not begin in time is late, and never left out.
//! 6. [`capacity`] decides whether the server was overloaded, and with how many users the next step runs. [`self_check`]
//!    notices that this machine was the limit.
//! 7. [`recorder`] makes rows of all that while the run lasts.
//!
//! | module | contents |
//! |---|---|
//! | [`migrate`] | a few large files over one or several channels, instead of users |
//! | [`durability`] | writers, a journal of what was acknowledged, and its comparison with the share after a power loss |
//! | [`net`] | throughput and round trips of TCP without SMB, on both sides |
//! | [`calibrate`] | CPU time of signing and encryption on this machine |
//!
//! A module uses modules of lower floors only; `architecture/floors.rs` in the tests of `smbscope` lists them.
//!
//! # An execution, planned
//!
//! ```
//! use std::sync::Arc;
//!
//! use smbscope_load::fileset::Scale;
//! use smbscope_load::workload::{ClientCache, Planner, Workload, counts};
//!
//! let toml = r#"
//! description = "A small file read"
//!
//! [files.small]
//! class = "static"
//! folders = ["Small"]
//! name = "note {n}.txt"
//! bytes = ["4 KiB"]
//! repeat = 8
//!
//! [scenarios.Look]
//! description = "a file looked at"
//! runs_per_hour = 60
//! files = { file = "small" }
//! steps = [
//!   { action = "open", create = "{file}", handle = "file", access = "read" },
//!   { action = "read", read = "file", file = "file" },
//!   { action = "close", close = "file" },
//! ]
//! "#;
//! let workload = Workload::parse("look.toml", "look", toml).map_err(|error| error.to_string())?;
//! let planner = Planner::new(Arc::new(workload), 7, Scale::FULL);
//! assert_eq!(planner.files().user_bytes(1), 8 * 4096);
//!
//! let first = planner.user(1, "user00001").next_plan();
//! assert_eq!(first.scenario().name, "Look");
//! assert_eq!(first.files()[0].bytes, 4096);
//! assert_eq!(counts(&first, ClientCache::Published).total(), 3.0);
//! // The same user of another run does the same at the same time.
//! assert_eq!(planner.user(1, "user00001").next_plan().due(), first.due());
//! # Ok::<(), String>(())
//! ```

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
