//! The pipeline: a source of rows, through an analysis, to a result.
//!
//! Read this folder first. Commands turn arguments into the pipeline's inputs and hand its results to
//! `smbscope_report`; nothing here knows the command line or prints (`tests/architecture` asserts
//! that), so that another front end can call the same functions.
//!
//! - [`pass`]: one pass over recorded inputs, shared by all analyses that want their rows
//! - [`period`]: which part of the inputs a pass yields
//! - [`diagnose`], [`summarize`], [`compare`]: the analyses behind `explain`, `report` and `compare`
//! - [`processors`]: where the time of CPUs goes, for `report` of a trace
//! - [`why`]: what one operation waited for
//! - [`forecast`]: what changes would bring, by replaying the recorded operations
//! - [`replication`]: what a second server would cost, by several replays in one pass
//! - [`export`]: operations written for other programs
//! - [`record`]: live sources to a run folder, for `record` and `top`
//! - [`measure`]: parts of a load run
//! - [`baseline`]: facts, answers and settings on the wire for the judgement of a baseline
//! - [`cores`]: the plan of cores, from what [`rss_inputs`] takes from recordings
//! - [`namespace`]: referrals of a recording
//! - [`net`]: a test of the network without SMB: its folder, what it takes from a recording, SMB next to it
//! - `serve`: what the live page reads (feature `serve`)
//! - [`durability`]: rounds of a durability test
//! - [`workload`]: what is shown of a workload

#[cfg(feature = "plan")]
pub mod baseline;
pub mod compare;
#[cfg(feature = "plan")]
pub mod cores;
pub mod diagnose;
pub mod durability;
pub mod export;
pub mod forecast;
pub mod measure;
#[cfg(feature = "plan")]
pub mod namespace;
pub mod net;
pub mod pass;
pub mod period;
pub mod processors;
pub mod record;
#[cfg(feature = "plan")]
pub mod replication;
#[cfg(feature = "plan")]
pub mod rss_inputs;
#[cfg(feature = "serve")]
pub mod serve;
pub mod summarize;
pub mod why;
pub mod workload;
