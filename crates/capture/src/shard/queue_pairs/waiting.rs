//! Packets of RoCE, as they come and as they wait: for one that is missing, or until the other
//! direction is known. Owns no limit: `pair` has them.

use crate::rdma::infiniband::{Operation, Packet};

/// A packet, and when it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub packet: Packet<'a>,
    pub time: i64,
    pub frame: u64,
    pub order: u64,
}

/// A packet that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub operation: Operation,
    pub psn: u32,
    pub bytes: Vec<u8>,
    pub payload_bytes: u32,
    pub time: i64,
    pub frame: u64,
    /// Global number of the packet.
    pub order: u64,
    /// Which end sent it.
    pub from: usize,
}

impl Waiting {
    /// Copies what will be needed of a packet.
    pub fn from_arrival(arrival: &Arrival<'_>, from: usize) -> Waiting {
        let Arrival { packet, time, frame, order } = *arrival;
        // Only Sends have bytes that are decoded.
        let is_send = matches!(packet.operation, Operation::Send { .. });
        Waiting {
            operation: packet.operation,
            psn: packet.psn,
            bytes: if is_send { packet.payload.to_vec() } else { Vec::new() },
            payload_bytes: packet.payload_bytes,
            time,
            frame,
            order,
            from,
        }
    }

    /// The packet again.
    pub fn arrival(&self) -> Arrival<'_> {
        let packet = Packet {
            operation: self.operation,
            queue_pair: 0,
            psn: self.psn,
            payload: &self.bytes,
            payload_bytes: self.payload_bytes,
        };
        Arrival { packet, time: self.time, frame: self.frame, order: self.order }
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Waiting>() + self.bytes.len()
    }
}
