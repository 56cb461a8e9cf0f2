//! SMB Direct in captures: over RoCE v2 and over iWARP (MS-SMBD, MS-SMB2 section 2.2.19). The same
//! conversation gives the same rows as over TCP, and real captures what other programs see in them.

#![allow(clippy::unwrap_used, missing_docs)]

mod captures;
mod damage;
mod fixtures;
mod iwarp;
mod moved;
mod roce;
#[path = "../support/mod.rs"]
mod support;
mod write;

use support::decode::{Row, decode, single};
use support::packets::{Sending, pcap};
use support::talk::Talk;

/// Columns that follow from TCP or RDMA: packets, their headers, ports, and round trips.
const TRANSPORT: &[&str] = &[
    "request_frame",
    "response_frame",
    "pending_frame",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
    "vantage",
    "recovery_ns",
    "tcp_sequence",
    "request_wire_bytes",
    "response_wire_bytes",
    "server_port",
];

fn rows_of_tcp(talk: &Talk, left_out: &[&str]) -> Vec<Row> {
    let packets = Sending::default().aligned(talk);
    decode(&pcap(&packets, usize::MAX, false), &single()).rows_without(left_out)
}

/// Without the NetBIOS headers, which only TCP has; compounds are answered in one message or
/// several, so only single replies are compared.
fn wire_bytes(rows: &[Row]) -> Vec<Option<u64>> {
    rows.iter()
        .map(|row| row.get("request_wire_bytes").map(|bytes| bytes.parse().unwrap()))
        .collect()
}
