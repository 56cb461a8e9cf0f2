//! The durability test: writes that are acknowledged in every way, and what is left of them after the plug
//! was pulled.
//!
//! Owns the plan of a run ([`plan`]), its blocks ([`block`]), the writers ([`writer`]), the journal of what
//! was acknowledged ([`journal`]), and the comparison of both with what the share has afterwards
//! ([`ledger`], [`judge`], [`verify`], [`result`]). It does not pull the plug, and prints nothing.
//!
//! What a server promises: MS-SMB2 sections 3.3.5.11 (Flush: data and metadata of the open are on stable
//! storage), 2.2.13 (FILE_WRITE_THROUGH) and 2.2.21 (SMB2_WRITEFLAG_WRITE_THROUGH). A write in any other way
//! is acknowledged without a promise.

pub mod block;
mod files;
pub mod journal;
pub mod judge;
pub mod ledger;
pub mod plan;
pub mod result;
pub mod risk;
pub mod server;
pub mod verify;
pub mod writer;
