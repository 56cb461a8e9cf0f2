//! Conversations over TCP that are cut, reordered, repeated, lost or begin mid-stream: results that
//! must not change do not, and unknown values are counted (RFC 9293 section 3.4, MS-SMB2 section 3).

#![allow(clippy::unwrap_used, missing_docs)]

mod clock;
mod connections;
mod cut_to_headers;
mod disturbed;
mod in_flight;
mod losses;
mod mirrored;
#[path = "../support/mod.rs"]
mod support;

use support::decode::{Row, decode, single};
use support::packets::{Packet, Sending, pcap};
use support::talk::Talk;

/// Whole frames.
const ALL: usize = usize::MAX;
/// Columns that depend on a packet's position in the file.
const FRAMES: &[&str] = &["request_frame", "response_frame", "pending_frame"];
/// Columns that repeated and late packets rightly change as well: they select the samples of the round trip.
const ROUND_TRIPS: &[&str] = &[
    "request_frame",
    "response_frame",
    "pending_frame",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
    "vantage",
    "recovery_ns",
];

fn sent(talk: &Talk) -> Vec<Packet> {
    Sending::default().aligned(talk)
}

fn rows_of(packets: &[Packet], left_out: &[&str]) -> Vec<Row> {
    decode(&pcap(packets, ALL, false), &single()).rows_without(left_out)
}
