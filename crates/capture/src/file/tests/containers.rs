//! Containers of plain records, written here byte by byte; and every byte of them changed.

use super::write::{BIG, LITTLE};
use super::*;

const NS: i64 = 1_000_000_000;
/// 2022-06-06 12:34:23 UTC.
const START_S: i64 = 1_654_518_863;

fn u16s(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A header of 128 bytes with what editcap writes into it.
fn padded(mut head: Vec<u8>, length: usize) -> Vec<u8> {
    head.resize(length, 0);
    head
}

fn netmon(version: [u8; 2], frames: &[u8], table: u32) -> Vec<u8> {
    let mut head = if version[1] == 1 { b"RTSS".to_vec() } else { b"GMBU".to_vec() };
    head.extend(version);
    head.extend(u16s(&[1, 2022, 6, 1, 6, 12, 34, 23, 480]));
    head.extend(u32s(&[table, 8]));
    let mut file = padded(head, 128);
    file.extend(frames);
    // The table, which is not read.
    file.extend([0xff; 8]);
    file
}

fn netmon_1() -> Vec<u8> {
    let mut frames = u32s(&[1]);
    frames.extend(u16s(&[60, 3]));
    frames.extend(b"one");
    frames.extend(u32s(&[1_000]));
    frames.extend(u16s(&[3, 3]));
    frames.extend(b"two");
    let table = 128 + frames.len() as u32;
    netmon([1, 1], &frames, table)
}

/// Version 2 with a trailer for each frame of this minor version.
fn netmon_2(minor: u8) -> Vec<u8> {
    let mut frames = Vec::new();
    for (us, data, media) in [(974_u64, &b"one"[..], 1_u16), (1_000_000, b"two", 0xe071)] {
        frames.extend(us.to_le_bytes());
        frames.extend(u32s(&[60, data.len() as u32]));
        frames.extend(data);
        let mut trailer = media.to_le_bytes().to_vec();
        trailer.extend([9; 4]);
        let since_1601 = (START_S as u64 + 11_644_473_600) * 10_000_000 + us * 10;
        trailer.extend(since_1601.to_le_bytes());
        trailer.push(0);
        frames.extend(&trailer[..[0, 2, 6, 15][usize::from(minor)]]);
    }
    let table = 128 + frames.len() as u32;
    netmon([minor, 2], &frames, table)
}

fn snoop() -> Vec<u8> {
    let mut file = b"snoop\0\0\0\0\0\0\x02\0\0\0\x04".to_vec();
    for (drops, data) in [(0_u32, &b"one"[..]), (5, b"two")] {
        for field in [60, 3, 28, drops, START_S as u32, 480_974] {
            file.extend(field.to_be_bytes());
        }
        file.extend(data);
        file.push(0);
    }
    file
}

fn erf_record(kind: u8, extensions: &[u8], lost: u16, wire: u16, data: &[u8]) -> Vec<u8> {
    let mut body = [extensions, data].concat();
    body.resize(body.len().next_multiple_of(8), 0);
    let mut record = ((START_S as u64) << 32 | 1 << 31).to_le_bytes().to_vec();
    record.extend([kind, 4]);
    record.extend((16 + body.len() as u16).to_be_bytes());
    record.extend(lost.to_be_bytes());
    record.extend(wire.to_be_bytes());
    record.extend(body);
    record
}

fn erf() -> Vec<u8> {
    [
        erf_record(27, &[], 0, 0, b"metadata"),
        erf_record(2, &[], 3, 3, b"\0\0one"),
        erf_record(0x8b, &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1], 9, 3, b"\0\0two"),
        erf_record(22, &[], 0, 5, b"three"),
        erf_record(1, &[], 1, 4, b"four"),
        erf_record(21, &[], 0, 4, b"what"),
    ]
    .concat()
}

fn sniffer() -> Vec<u8> {
    let mut file = b"TRSNIFF data    \x1a".to_vec();
    file.extend(u16s(&[1, 18, 0, 4, 0, 0, 0x54c6]));
    file.extend([4, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    for (ticks, day, data) in [(0x0c_9319_4154_u64, 0, b"one"), (1, 1, b"two")] {
        file.extend(u16s(&[4, 14 + 3, 0]));
        file.extend(&ticks.to_le_bytes()[..5]);
        file.push(day);
        file.extend(u16s(&[3, 0, 60, 0]));
        file.extend(data);
    }
    file.extend(u16s(&[3, 0, 0]));
    file
}

fn netxray(version: &[u8; 8], header: usize) -> Vec<u8> {
    let mut head = b"XCP\0".to_vec();
    head.extend(version);
    let end = 128 + 2 * (header as u32 + 3);
    head.extend(u32s(&[START_S as u32, 2, 0, 128, end, 0, 0, 0, 7, 0]));
    let mut file = padded(head, 128);
    for (us, data) in [(480_981_u64, b"one"), (1_000_007, b"two")] {
        let mut record = us.to_le_bytes().to_vec();
        record.extend(u16s(&[60, 3]));
        file.extend(padded(record, header));
        file.extend(data);
    }
    file.extend(b"behind");
    file
}

/// A file of each container.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("Network Monitor 1", netmon_1()),
        ("Network Monitor 2.0", netmon_2(0)),
        ("Network Monitor 2.1", netmon_2(1)),
        ("Network Monitor 2.2", netmon_2(2)),
        ("Network Monitor 2.3", netmon_2(3)),
        ("snoop", snoop()),
        ("ERF", erf()),
        ("Sniffer", sniffer()),
        ("NetXRay 1", netxray(b"001.100\0", 28)),
        ("NetXRay 2", netxray(b"002.001\0", 40)),
    ]
}

fn frame(time_ns: i64, link: u16, data: &[u8], original: u32) -> ReplyTimes {
    (time_ns, link, data.to_vec(), original)
}

#[test]
fn network_monitor_is_read_up_to_its_table() {
    let start = START_S * NS;
    let (seen, summary) = read_all(&netmon_1());
    let base = start + 480_000_000;
    assert_eq!(seen, [frame(base + 1_000_000, 1, b"one", 60), frame(base + NS, 1, b"two", 3)]);
    assert_eq!((summary.format, summary.cut_off), (Format::NetMon1, None));
    assert_eq!(summary.interfaces[0].ticks_per_second, 1_000);
    for minor in 0..4 {
        let (seen, summary) = read_all(&netmon_2(minor));
        // Since 2.1 each frame has a link type, in 2.3 a time of its own.
        let link = if minor == 0 { 1 } else { 113 };
        let base = if minor == 3 { start } else { start + 480_000_000 };
        let first = frame(base + 974_000, 1, b"one", 60);
        assert_eq!(seen, [first, frame(base + NS, link, b"two", 60)], "2.{minor}");
        assert_eq!((summary.format, summary.cut_off), (Format::NetMon2, None));
    }
    // A recorder that did not end wrote no table.
    let mut file = netmon_2(0);
    file.truncate(file.len() - 8);
    file[24..28].fill(0);
    assert_eq!(read_all(&file).0.len(), 2);
    file[5] = 7;
    let error = error_of(&file).to_string();
    assert!(error.starts_with("test: Network Monitor's version 7.0 is not known"), "{error}");
    assert!(error.contains("editcap -F pcapng"), "{error}");
}

#[test]
fn network_monitors_header_of_a_wireless_frame_is_skipped() {
    let mut frames = vec![0; 8];
    frames.extend(u32s(&[40, 11]));
    // Version, length, and what the adapter reports; then the frame.
    frames.extend(b"\x02\x08\0.....802");
    frames.extend([6, 0]);
    let table = 128 + frames.len() as u32;
    let (seen, _) = read_all(&netmon([1, 2], &frames, table));
    assert_eq!(seen, [frame(START_S * NS + 480_000_000, 105, b"802", 32)]);
}

#[test]
fn snoop_counts_what_was_dropped() {
    let (seen, summary) = read_all(&snoop());
    let time = START_S * NS + 480_974_000;
    assert_eq!(seen, [frame(time, 1, b"one", 60), frame(time, 1, b"two", 60)]);
    assert_eq!((summary.format, summary.dropped()), (Format::Snoop, Some(5)));
    assert_eq!(summary.byte_order, ByteOrder::Big);
}

#[test]
fn erf_has_types_and_extension_headers() {
    let (seen, summary) = read_all(&erf());
    let time = START_S * NS + NS / 2;
    let expected = [
        frame(time, 1, b"one", 3),
        frame(time, 1, b"two", 3),
        frame(time, 228, b"three", 5),
        frame(time, 50, b"four", 4),
        frame(time, u16::MAX, b"what", 4),
    ];
    assert_eq!(seen, expected);
    assert_eq!((summary.format, summary.dropped()), (Format::Erf, Some(4)));
    assert_eq!(summary.blocks_skipped, 1);
}

#[test]
fn sniffer_counts_ticks_from_midnight() {
    let (seen, summary) = read_all(&sniffer());
    let midnight = 19_149 * 86_400 * NS;
    let expected = midnight + (0x0c_9319_4154_i64 * 838_096) / 1_000;
    let next = midnight + 86_400 * NS + 838;
    assert_eq!(seen, [frame(expected, 1, b"one", 60), frame(next, 1, b"two", 60)]);
    assert_eq!((summary.format, summary.cut_off), (Format::Sniffer, None));
    let mut other = sniffer();
    other[41] = 12;
    assert!(read_all(&other).1.cut_off.unwrap().contains("unknown kind 12"));
}

#[test]
fn netxray_ends_where_its_header_says() {
    for (_, file) in files().into_iter().filter(|(name, _)| name.starts_with("NetXRay")) {
        let (seen, summary) = read_all(&file);
        let base = START_S * NS;
        let first = frame(base + 480_974_000, 1, b"one", 60);
        assert_eq!(seen, [first, frame(base + NS, 1, b"two", 60)]);
        assert_eq!((summary.format, summary.cut_off), (Format::NetXRay, None));
        let mut wrapped = file.clone();
        wrapped[24] = 0xff;
        assert!(error_of(&wrapped).to_string().contains("wrapped around"));
        let mut unit = file;
        unit[40] = 9;
        assert!(error_of(&unit).to_string().contains("time unit 9"));
    }
}

#[test]
fn vendors_pcap_headers_are_recognised_by_their_records() {
    for order in [LITTLE, BIG] {
        for (magic, more, format) in [
            (0xa1b2_c3d4, 0, Format::Pcap),
            (0xa1b2_c3d4, 4, Format::PcapNokia),
            (0xa1b2_c3d4, 8, Format::PcapRedHat),
            (0xa1b2_cd34, 8, Format::PcapModified),
            (0xa1b2_cd34, 12, Format::PcapSuse),
        ] {
            let mut file = order.pcap(magic, 65_535, 1);
            let mut expected = Vec::new();
            for number in 0..40_u32 {
                let data = write::noise(number, 20 + number as usize);
                let mut record = order.record(START_S as u32 + number, 7, &data, 100);
                record.splice(16..16, vec![0; more]);
                file.extend(record);
                expected.push(frame((START_S + i64::from(number)) * NS + 7_000, 1, &data, 100));
            }
            let (seen, summary) = read_all(&file);
            assert_eq!(seen, expected, "{format:?}");
            assert_eq!((summary.format, summary.cut_off), (format, None));
            // A damaged file is read up to the damage.
            let at = 24 + 3 * (16 + more) + 20 + 21 + 22;
            file[at..at + 16].fill(0xff);
            let (seen, summary) = read_all(&file);
            assert_eq!((seen.len(), summary.format), (3, format));
        }
    }
}

#[test]
fn every_cut_gives_the_frames_before_it() {
    for (name, file) in files() {
        let whole = read_all(&file).0;
        for cut in 40..file.len() {
            let input = Box::new(Cursor::new(file[..cut].to_vec()));
            let Ok(reader) = Reader::from_read(input, "test", None, SMALL) else {
                panic!("{name} at {cut}");
            };
            let (seen, _) = drain(reader);
            assert_eq!(seen, whole[..seen.len()], "{name} at {cut}");
        }
    }
}

/// Each byte of each file changed: the calls that the fuzz target `containers` makes.
#[test]
fn every_changed_byte_is_survived() {
    for (_, file) in files() {
        for at in 0..file.len() {
            for value in [0, 1, 0x0f, 0x7f, 0x80, 0xff] {
                let mut changed = file.clone();
                changed[at] = value;
                let input = Box::new(Cursor::new(changed));
                if let Ok(reader) = Reader::from_read(input, "test", None, SMALL) {
                    drain(reader);
                }
            }
        }
    }
}
