//! Fuzz input to a capture of TCP segments. A record is a byte of flags, a byte that moves the
//! sequence number away from where the stream is, two bytes of length and the payload.

/// Packets of one capture: raw IPv4 in pcap with microseconds.
pub struct Writer {
    pub bytes: Vec<u8>,
    packets: u32,
}

/// One segment.
pub struct Segment<'a> {
    /// 0 for the client.
    pub from: u8,
    pub port: u16,
    pub flags: u8,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub payload: &'a [u8],
    /// Captured bytes of the payload.
    pub captured: usize,
    pub time_us: u32,
}

impl Writer {
    pub fn new() -> Writer {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0x0004_0000, 101] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        Writer { bytes, packets: 0 }
    }

    /// A datagram to a port, of which at most that many bytes of the payload were captured.
    pub fn datagram(&mut self, from: u8, port: u16, payload: &[u8], captured: usize, time_us: u32) {
        let total = 28 + payload.len();
        let captured = captured.min(payload.len());
        for word in [1_000, time_us, 28 + captured as u32, total as u32] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        let length = (total as u16).to_be_bytes();
        self.bytes.extend_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0]);
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let addresses = if from == 0 { [client, server] } else { [server, client] };
        self.bytes.extend_from_slice(&addresses.concat());
        self.bytes.extend_from_slice(&[0xc0, from]);
        self.bytes.extend_from_slice(&port.to_be_bytes());
        self.bytes.extend_from_slice(&((total - 20) as u16).to_be_bytes());
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&payload[..captured]);
    }

    pub fn packet(&mut self, segment: &Segment<'_>) {
        self.packets += 1;
        let total = 40 + segment.payload.len();
        let captured = segment.captured.min(segment.payload.len());
        for word in [1_000, segment.time_us, 40 + captured as u32, total as u32] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        let length = (total as u16).to_be_bytes();
        self.bytes.extend_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0]);
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let ports = [49_152_u16.to_be_bytes(), segment.port.to_be_bytes()];
        if segment.from == 0 {
            self.bytes.extend_from_slice(&[client, server].concat());
            self.bytes.extend_from_slice(&[ports[0], ports[1]].concat());
        } else {
            self.bytes.extend_from_slice(&[server, client].concat());
            self.bytes.extend_from_slice(&[ports[1], ports[0]].concat());
        }
        self.bytes.extend_from_slice(&segment.sequence.to_be_bytes());
        self.bytes.extend_from_slice(&segment.acknowledgement.to_be_bytes());
        self.bytes.extend_from_slice(&[0x50, segment.flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.bytes.extend_from_slice(&segment.payload[..captured]);
    }
}

impl Default for Writer {
    fn default() -> Self {
        Writer::new()
    }
}

/// One record of the input.
pub struct Record<'a> {
    pub what: u8,
    pub shift: u8,
    pub payload: &'a [u8],
}

/// The records of the input, up to where it ends.
pub fn records(mut input: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (&[what, shift, low, high], rest) = input.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len()).min(60_000);
        let (payload, rest) = rest.split_at(length);
        input = rest;
        Some(Record { what, shift, payload })
    })
}

/// The records as a capture. Bits of `what`: 0 the direction, 1-2 the port, 3 SYN, 4 FIN, 5 RST,
/// 6 cut by the snap length, 7 time passes.
pub fn capture(input: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    let mut next = [0xffff_f000_u32, 7];
    let mut time_us = 0;
    for record in records(input) {
        let from = record.what & 1;
        let own = usize::from(from);
        let port = [445, 139, 8445, 80][usize::from(record.what >> 1 & 3)];
        // Mostly small steps either way, now and then a long one.
        let shift = match record.shift {
            0..=0x7f => i32::from(record.shift),
            0x80..=0xef => i32::from(record.shift) - 0xf0,
            0xf0..=0xf7 => (i32::from(record.shift) - 0xef) * 1500,
            _ => i32::MAX / 16 * (i32::from(record.shift) - 0xfb),
        };
        let sequence = next[own].wrapping_add_signed(shift);
        let flag = |bit: u8, flag: u8| if record.what >> bit & 1 == 1 { flag } else { 0 };
        let flags = flag(3, 2) | flag(4, 1) | flag(5, 4) | if shift % 3 == 2 { 0 } else { 0x10 };
        let captured = if flag(6, 1) == 1 { record.payload.len() / 2 } else { usize::MAX };
        if flag(7, 1) == 1 {
            time_us += 700;
        }
        writer.packet(&Segment {
            from,
            port,
            flags,
            sequence,
            acknowledgement: next[1 - own],
            payload: record.payload,
            captured,
            time_us,
        });
        let syn = u32::from(flag(3, 1));
        next[own] = sequence.wrapping_add(record.payload.len() as u32).wrapping_add(syn);
    }
    writer.bytes
}
