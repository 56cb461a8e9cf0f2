//! What one would do about a slow file server, as commands with their undo. It reads settings and topology, and writes
//! nothing.
//!
//! [`input`] reads: bytes to text, objects of PowerShell, XML. [`script`] has steps and quoting. Above them are the
//! planners, one module each: a planner reads what a machine, a server or a person wrote about settings, finds what is wrong, and
//! plans steps. Each step has its command, a check and an undo; nothing is executed here. Arithmetic over recordings is
//! in `smbscope-analysis`, and how a plan is shown in `smbscope-report`.
//!
//! | module | question | input |
//! |---|---|---|
//! | [`baseline`] | which settings of a security baseline cost something here? | every form of baselines, policies and Samba's configuration |
//! | [`cores`] | which CPUs should receive packets? | outputs of commands of a machine, or the machine itself |
//! | [`namespace`] | how does a DFS namespace move while users work? | every form of namespaces, caches of clients, captures |
//! | [`replication`] | what must hold before a second server is set up? | figures of a recording, a report of Test-SRTopology |
//!
//! Input is untrusted: no panic, no recursion, and a limit for each size. What was not understood is listed with its
//! file and line. Names from input are quoted wherever a command contains them.
//!
//! ```
//! use smbscope_plan::cores::toeplitz::{Fields, Flow, MICROSOFT_KEY, flow_hash, table_entry};
//!
//! // To which entry of its table does an adapter assign a connection? (Microsoft's verification suite)
//! let flow = Flow {
//!     source: "66.9.149.187".parse()?,
//!     source_port: 2_794,
//!     destination: "161.142.100.80".parse()?,
//!     destination_port: 1_766,
//! };
//! let hash = flow_hash(&MICROSOFT_KEY, &flow, Fields::AddressesAndPorts).unwrap();
//! assert_eq!((hash, table_entry(hash, 128)), (0x51cc_c178, Some(120)));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

pub mod baseline;
pub mod cores;
pub mod input;
pub mod namespace;
pub mod replication;
pub mod script;
