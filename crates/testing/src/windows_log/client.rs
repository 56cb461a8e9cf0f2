//! Logs of Microsoft-Windows-SMBClient from the requests of a capture, as build 28000 writes them.
//!
//! Fields and their order are those of the list of that build. The parts of a request's time are made: fixed shares of it.

use super::{Log, guid};
use crate::etl::Manifest;

const CLIENT: u128 = 0x988c59c5_0a1c_45b6_a555_0c62276e327d;

/// A request with its response.
#[derive(Clone, Debug)]
pub struct ClientRequest {
    /// Read 8, Write 9, Create 5, Close 6, QueryDirectory 14, Ioctl 11.
    pub command: u16,
    pub start_ns: i64,
    pub end_ns: i64,
    pub bytes: u64,
    pub path: String,
}

/// Shares of the time in percent: the eight parts until it is sent, the server's, that of the reply.
pub const CLIENT_SHARES: ([u64; 8], u64, u64) = ([1, 1, 1, 3, 2, 1, 0, 1], 70, 20);

/// A log of these requests. Every fourth one waits for credits before it is sent.
pub fn client_requests(requests: &[ClientRequest]) -> Vec<u8> {
    let mut log = Log::new(requests.first().map_or(0, |one| one.start_ns), 28_000);
    let mut events: Vec<(i64, u16, u8, Vec<u8>)> = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let Some(place) = [8, 9, 5, 6, 14, 11].iter().position(|one| *one == request.command)
        else {
            continue;
        };
        // Addresses are used again.
        let number = number as u64;
        let address = |kind: u64| 0xffff_8000_0000_0000 | kind << 32 | (number % 64) << 8;
        let (application, exchange, context) = (address(1), address(2), address(3));
        let is_io = place < 2;
        let (start, end) = (request.start_ns, request.end_ns);
        let name: Vec<u16> = format!("\\{}", request.path).encode_utf16().collect();
        let mut fields = application.to_le_bytes().to_vec();
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend(name.iter().flat_map(|unit| unit.to_le_bytes()));
        fields.extend([3, 0]);
        events.push((start, 32_004, 0, fields));
        let mut fields = context.to_le_bytes().to_vec();
        fields.extend([3, 0]);
        fields.extend(request.command.to_le_bytes());
        events.push((start, 32_006, 0, fields));
        if number.is_multiple_of(4) {
            let mut fields = [context, exchange].map(u64::to_le_bytes).concat();
            fields.extend(1_u32.to_le_bytes());
            fields.extend(7_u64.to_le_bytes());
            fields.extend([64_u32, 512, 64].map(u32::to_le_bytes).concat());
            events.push((start, 30_105, 0, fields.clone()));
            events.push((start + (end - start) / 20, 30_106, 0, fields));
        }
        let total = (end - start) as u64 / 100;
        let mut fields = context.to_le_bytes().to_vec();
        let version = if is_io || place == 5 { 2 } else { 0 };
        if is_io {
            fields.extend([exchange, request.bytes].map(u64::to_le_bytes).concat());
        }
        fields.push(1);
        fields.extend(total.to_le_bytes());
        let (before, server, receive) = CLIENT_SHARES;
        // Requests without RDMA buffers have a part less.
        let before = if is_io { &before[..] } else { &before[1..] };
        for share in before.iter().copied().chain([server, receive]) {
            fields.extend((total * share / 100).to_le_bytes());
            fields.extend(1_u64.to_le_bytes());
        }
        if place == 5 {
            fields.extend(request.bytes.to_le_bytes());
        }
        events.push((end, 32_048 + place as u16, version, fields));
        if is_io {
            let mut fields = [exchange, application, request.bytes].map(u64::to_le_bytes).concat();
            fields.push(1);
            fields.extend([0; 8 * 22]);
            events.push((end, 32_028 + place as u16, 2, fields));
        }
    }
    // Stable: what one request writes at one instant keeps its order.
    events.sort_by_key(|(time, ..)| *time);
    for (time_ns, id, version, fields) in events {
        let head = Manifest { guid: guid(CLIENT), thread: 9, id, version, ..Manifest::default() };
        log.event(&head, time_ns, &fields);
    }
    log.finish()
}
