//! Any bytes as UDP datagrams to port 443: the first packets of QUIC, and what follows them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_fuzz::{decode, small_limits};
use smbscope_wire::crypto::quic::{LongHeader, open_client_initial};

fuzz_target!(|bytes: &[u8]| {
    if let Some(header) = LongHeader::parse(bytes) {
        let _ = open_client_initial(bytes, header.destination);
    }
    let mut file =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
    for (number, payload) in bytes.chunks(1_300).enumerate() {
        let length = payload.len() as u16;
        let ends: [u8; 4] =
            if number % 2 == 0 { [0xc3, 0x50, 1, 0xbb] } else { [1, 0xbb, 0xc3, 0x50] };
        let mut packet = vec![0x45, 0];
        packet.extend((28 + length).to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1]);
        packet.extend(ends);
        packet.extend((8 + length).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        for field in [number as u32, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(field.to_le_bytes());
        }
        file.extend(packet);
    }
    decode(&file, small_limits(), 1);
});
