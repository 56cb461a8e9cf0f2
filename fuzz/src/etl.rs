//! Event trace logs (`.etl`) for the target `etl` and its seeds.

/// A first buffer of a log with 4 processors. `choice`: its two low bits choose the compression,
/// bit 2 the size of pointers, the two bits after it the clock.
pub fn log_header(choice: u8) -> Vec<u8> {
    let compression = [0_u8, 2, 3, 4][usize::from(choice & 3)];
    let is_32_bit = choice & 4 != 0;
    let after = if is_32_bit { 240 } else { 248 };
    let mut out = vec![0; 1_024];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &1_024_u32.to_le_bytes());
    put(4, &456_u32.to_le_bytes());
    put(44, &[compression]);
    put(54, &[4]);
    // SYSTEM_TRACE_HEADER and TRACE_LOGFILE_HEADER.
    put(72, &[2, 0, if is_32_bit { 1 } else { 2 }, 0xc0]);
    put(76, &[0x80, 1]);
    put(104, &1_024_u32.to_le_bytes());
    put(108, &[10, 0, 1, 5]);
    put(116, &[4]);
    put(136, &(if compression == 0 { 1_u32 } else { 0x0400_0001 }).to_le_bytes());
    put(156, &2_600_u32.to_le_bytes());
    put(104 + after + 8, &10_000_000_i64.to_le_bytes());
    put(104 + after + 16, &132_539_328_000_000_000_i64.to_le_bytes());
    put(104 + after + 24, &[1 + (choice >> 3 & 3)]);
    out
}

/// A buffer with one event of each layout that the reader knows, not compressed.
pub fn buffer() -> Vec<u8> {
    let mut records = Vec::new();
    for (group, opcode) in [
        (15, 66),
        (15, 67),
        (15, 50),
        (15, 73),
        (15, 46),
        (24, 32),
        (24, 37),
        (24, 36),
        (24, 35),
        (20, 3),
        (3, 10),
        (3, 3),
        (5, 1),
        (5, 36),
        (11, 10),
        (11, 13),
        (11, 21),
        (11, 22),
        (11, 24),
        (11, 27),
        (11, 35),
    ] {
        let mut record = vec![3, 0, 17, 0xc0, 96, 0, opcode, group, 100, 0, 0, 0, 0, 0, 0, 0];
        record.extend((0..80).map(|at| if at % 4 == 0 { 1 + at / 16 } else { 0 }));
        records.extend(record);
    }
    // KernelTraceControl's DbgID_RSDS.
    let control = b"\xd7\x75\xe6\xb3\x54\x25\x18\x4f\x83\x0b\x27\x62\x73\x25\x60\xde";
    let mut symbols = vec![0; 96];
    symbols[..5].copy_from_slice(&[96, 0, 20, 0xc0, 36]);
    symbols[24..40].copy_from_slice(control);
    symbols[80..86].copy_from_slice(b"a.pdb\0");
    records.extend(symbols);
    let filled = (72 + records.len()) as u32;
    let mut out = vec![0; 72];
    out[0..4].copy_from_slice(&filled.to_le_bytes());
    out[4..8].copy_from_slice(&filled.to_le_bytes());
    out[52] = 0x20;
    out.extend(records);
    out
}

/// A buffer with events of providers of packets and SMB, made of any bytes: two for the length of the fields, one for
/// the provider, two for the number (of those that are read, if the first one is odd), one each for version and keyword,
/// and the fields.
pub fn event_buffer(mut bytes: &[u8]) -> Vec<u8> {
    use smbscope_trace::windows::Provider;
    const NUMBERS: [u16; 32] = [
        1, 2, 4, 8, 11, 12, 14, 15, 16, 18, 21, 102, 104, 108, 111, 120, 122, 500, 552, 1_001,
        1_003, 160, 40_000, 2_000, 32_004, 32_006, 30_105, 30_106, 32_028, 32_048, 32_050, 32_053,
    ];
    let mut records = Vec::new();
    let mut ticks = 1_000_000_i64;
    while let Some((head, rest)) = bytes.split_first_chunk::<7>() {
        let [low, high, provider, number, further, version, keyword] = *head;
        let length = usize::from(u16::from_le_bytes([low, high & 3])).min(rest.len());
        let (fields, rest) = rest.split_at(length);
        bytes = rest;
        ticks += i64::from(further);
        let id = match number & 1 {
            1 => NUMBERS[usize::from(number >> 1) % NUMBERS.len()],
            _ => u16::from_le_bytes([number, further]),
        };
        let mut record = vec![0; 80];
        record[0..2].copy_from_slice(&((80 + fields.len()) as u16).to_le_bytes());
        record[2..4].copy_from_slice(&[19, 0xc0]);
        record[8] = keyword >> 4;
        record[16..24].copy_from_slice(&ticks.to_le_bytes());
        record[24..40].copy_from_slice(&Provider::ALL[usize::from(provider & 3)].guid().0);
        record[40..42].copy_from_slice(&id.to_le_bytes());
        record[42] = version;
        let keyword = u64::from(keyword & 3) << 30
            | u64::from(keyword & 4) << 14
            | u64::from(keyword & 8) << 6;
        record[48..56].copy_from_slice(&keyword.to_le_bytes());
        record.extend_from_slice(fields);
        record.resize(record.len().next_multiple_of(8), 0);
        records.extend(record);
    }
    let filled = (72 + records.len()) as u32;
    let mut out = vec![0; 72];
    out[0..4].copy_from_slice(&filled.to_le_bytes());
    out[4..8].copy_from_slice(&filled.to_le_bytes());
    out[48..52].copy_from_slice(&filled.to_le_bytes());
    out[52] = 0x20;
    out.extend(records);
    out
}
