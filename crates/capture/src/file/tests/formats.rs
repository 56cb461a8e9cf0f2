//! Every variant of both formats, whole.

use super::write::{self, *};
use super::*;

const NS: i64 = 1_000_000_000;

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for order in [LITTLE, BIG] {
        for (magic, scale, ticks) in
            [(0xa1b2_c3d4, 1_000, 1_000_000), (0xa1b2_3c4d, 1, 1_000_000_000)]
        {
            // The upper half says: a check sum of four bytes is there.
            let mut file = order.pcap(magic, 65_535, 0x2400_0001);
            file.extend(order.record(1_700_000_000, 999_999, b"abc", 1514));
            file.extend(order.record(u32::MAX, 5, b"", 0));
            let (seen, summary) = read_all(&file);
            let first = (1_700_000_000 * NS + 999_999 * scale, 1, b"abc".into(), 1514);
            let second = (i64::from(u32::MAX) * NS + 5 * scale, 1, Vec::new(), 0);
            assert_eq!(seen, [first, second]);
            assert_eq!(summary.format, Format::Pcap);
            assert_eq!(summary.byte_order == ByteOrder::Big, order.big);
            assert_eq!(summary.interfaces[0].ticks_per_second, ticks);
            assert_eq!(summary.interfaces[0].snaplen, 65_535);
            assert_eq!(summary.interfaces[0].frames, 2);
            assert_eq!(summary.interfaces[0].resolution_ns(), scale as f64);
            assert_eq!(summary.link_types(), [LinkType::ETHERNET]);
            assert_eq!((summary.frames_cut, summary.wire_bytes), (1, 1514));
            assert_eq!((summary.dropped(), summary.cut_off), (None, None));
        }
    }
}

#[test]
fn modified_pcap_has_a_longer_record_header() {
    for order in [LITTLE, BIG] {
        let mut file = order.pcap(0xa1b2_cd34, 65_535, 113);
        file.extend(order.modified_record(1, 2, b"first"));
        file.extend(order.modified_record(3, 4, b"second"));
        let (seen, summary) = read_all(&file);
        let first = (NS + 2_000, 113, b"first".into(), 5);
        assert_eq!(seen, [first, (3 * NS + 4_000, 113, b"second".into(), 6)]);
        assert_eq!(summary.format, Format::PcapModified);
    }
}

#[test]
fn records_straddle_chunks_and_exceed_them() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, 0, 1);
    let mut expected = Vec::new();
    for number in 0..600u32 {
        // Among many small ones, each hundredth is far larger than a chunk.
        let length = match number % 100 {
            50 => 100_000,
            rest => rest as usize * 17,
        };
        let data = noise(number, length);
        file.extend(LITTLE.record(number, 0, &data, length as u32));
        expected.push((i64::from(number) * NS, 1, data, length as u32));
    }
    let (seen, summary) = read_all(&file);
    assert_eq!(seen, expected);
    assert_eq!(summary.cut_off, None);
    for packed in [gzip(&file), zstd(&file), write::xz(&file)] {
        let (seen, summary) = read_all(&packed);
        assert_eq!(seen, expected);
        assert_eq!(summary.cut_off, None);
    }
}

#[test]
fn pcapng_with_sections_interfaces_and_resolutions() {
    let mut file = Vec::new();
    let mut expected = Vec::new();
    for order in [LITTLE, BIG] {
        file.extend(order.section());
        // An unknown block, a name resolution block, secrets.
        file.extend(order.block(0x0bad, &[1, 2, 3, 4]));
        file.extend(order.block(4, &[0; 4]));
        file.extend(order.block(10, &[0; 8]));
        file.extend(order.interface(1, 0, &[(2, b"eth0")]));
        file.extend(order.interface(276, 96, &[(9, &[9])]));
        file.extend(order.interface(101, 0, &[(9, &[0x8a]), (14, &order.u64(1_000))]));
        file.extend(order.interface(101, 0, &[(9, &[12]), (14, &order.u64(-5_i64 as u64))]));
        file.extend(order.enhanced(0, 1_500_000, b"micro", 60));
        expected.push((NS + NS / 2, 1, b"micro".to_vec(), 60));
        file.extend(order.enhanced(1, 1_700_000_000_123_456_789, b"nano", 4));
        expected.push((1_700_000_000_123_456_789, 276, b"nano".to_vec(), 4));
        // 1/1024 s: 1536 ticks are 1.5 s, after an offset of 1000 s.
        file.extend(order.enhanced(2, 1_536, b"binary", 6));
        expected.push((1_001 * NS + NS / 2, 101, b"binary".to_vec(), 6));
        // Picoseconds, and five seconds back.
        file.extend(order.enhanced(3, 7_000_000_001_999, b"pico", 4));
        expected.push((2 * NS + 1, 101, b"pico".to_vec(), 4));
        file.extend(order.old_packet(1, 8, b"old"));
        expected.push((8, 276, b"old".to_vec(), 3));
        file.extend(order.simple(b"simple", 6));
        expected.push((8, 1, b"simple".to_vec(), 6));
        let count = |value| order.u64(value);
        file.extend(order.statistics(0, &[(4, &count(100)), (5, &count(2)), (7, &count(3))]));
        file.extend(order.statistics(0, &[(4, &count(200)), (5, &count(4))]));
        file.extend(order.statistics(9, &[(5, &count(1 << 60))]));
    }
    let (seen, summary) = read_all(&file);
    assert_eq!(seen, expected);
    assert_eq!(summary.format, Format::PcapNg);
    assert_eq!((summary.sections, summary.interfaces_total), (2, 8));
    assert_eq!(summary.blocks_skipped, 6);
    assert_eq!(summary.frames_without_time, 2);
    let eth0 = &summary.interfaces[4];
    assert_eq!(eth0.name.as_deref(), Some("eth0"));
    assert_eq!((eth0.frames, eth0.received), (2, Some(200)));
    assert_eq!((eth0.dropped_interface, eth0.dropped_os), (Some(4), Some(3)));
    assert_eq!(summary.dropped(), Some(14));
    assert_eq!(summary.interfaces[2].resolution_ns(), 976_562.5);
    let links = [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL2];
    assert_eq!(summary.link_types(), links);
    assert_eq!(summary.cut_off, None);
}

#[test]
fn a_simple_packet_is_cut_at_the_snap_length() {
    let mut file = LITTLE.section();
    file.extend(LITTLE.interface(1, 5, &[]));
    file.extend(LITTLE.simple(b"hello\0\0\0", 1514));
    let (seen, summary) = read_all(&file);
    assert_eq!(seen, [(0, 1, b"hello".to_vec(), 1514)]);
    assert_eq!(summary.frames_cut, 1);
}

#[test]
fn times_at_the_limits_saturate() {
    let mut file = LITTLE.section();
    file.extend(LITTLE.interface(1, 0, &[]));
    file.extend(LITTLE.interface(1, 0, &[(9, &[0xbf])]));
    file.extend(LITTLE.interface(1, 0, &[(9, &[0]), (14, &LITTLE.u64(i64::MIN as u64))]));
    file.extend(LITTLE.enhanced(0, u64::MAX, b"", 0));
    // 2^-63: half of all ticks is a second.
    file.extend(LITTLE.enhanced(1, 1 << 63, b"", 0));
    file.extend(LITTLE.enhanced(2, 3, b"", 0));
    let (seen, _) = read_all(&file);
    let times: Vec<_> = seen.iter().map(|seen| seen.0).collect();
    assert_eq!(times, [i64::MAX, NS, i64::MIN + 3 * NS]);
}

#[test]
fn several_members_and_frames_of_compression_read_as_one() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, 0, 1);
    let half = file.len() + 7;
    for number in 0..10 {
        file.extend(LITTLE.record(number, 0, b"abcdef", 6));
    }
    for pack in [gzip, zstd] {
        let mut packed = pack(&file[..half]);
        packed.extend(pack(&file[half..]));
        let (seen, summary) = read_all(&packed);
        assert_eq!((seen.len(), summary.cut_off), (10, None));
        assert!(summary.compression.is_some());
    }
    // A skippable frame in front.
    let mut packed = vec![0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
    packed.extend(zstd(&file));
    assert_eq!(read_all(&packed).0.len(), 10);
}

#[test]
fn a_reader_may_live_in_its_own_thread() {
    fn send<T: Send>() {}
    send::<Reader>();
    send::<Chunk>();
    assert_eq!(size_of::<FrameRef>(), 32);
}

#[test]
fn progress_counts_stored_bytes() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, 0, 1);
    file.extend(LITTLE.record(0, 0, &[0; 50_000], 50_000));
    for bytes in [file.clone(), gzip(&file), zstd(&file), write::xz(&file)] {
        let total = bytes.len() as u64;
        let input = Box::new(Cursor::new(bytes));
        let mut reader = Reader::from_read(input, "test", Some(total), SMALL).unwrap();
        let chunk = reader.next_chunk(None).unwrap().unwrap();
        assert_eq!(reader.total_bytes(), Some(total));
        assert!(chunk.consumed <= total);
        assert!(reader.next_chunk(Some(chunk)).unwrap().is_none());
    }
}
