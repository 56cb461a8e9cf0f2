//! Files that end early, lie, or are something else.

use super::write::{self, *};
use super::*;

/// xz of `hello` whose header asks for the largest dictionary (made of the output of `xz -0` with another size and checksum).
const XZ_OF_4_GIB: &[u8] = b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36\x02\0\x21\x01\x28\0\0\0\xe6\xa0\x11\xb3\x01\0\x04hello\0\0\0\0\x86\xa6\x10\x36";

fn small_pcap() -> (Vec<u8>, Vec<usize>) {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, 65_535, 1);
    let mut ends = Vec::new();
    for number in 0..4u32 {
        file.extend(LITTLE.record(number, 0, &noise(number, 20), 20));
        ends.push(file.len());
    }
    (file, ends)
}

fn small_pcapng() -> (Vec<u8>, Vec<usize>) {
    let mut file = BIG.section();
    file.extend(BIG.interface(1, 0, &[(2, b"eth0"), (9, &[9])]));
    let mut ends = Vec::new();
    for number in 0..4 {
        file.extend(BIG.enhanced(0, number, &noise(number as u32, 21), 21));
        ends.push(file.len());
    }
    (file, ends)
}

#[test]
fn a_file_cut_at_any_byte_gives_the_frames_before_the_cut() {
    for (file, ends) in [small_pcap(), small_pcapng()] {
        let whole = read_all(&file).0;
        for cut in 4..=file.len() {
            let (seen, summary) = read_all(&file[..cut]);
            let frames = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(seen, whole[..frames], "cut at {cut}");
            // Between two records a cut cannot be seen.
            match summary.cut_off {
                Some(reason) if seen.len() != 4 => {
                    assert!(reason.contains(&format!("ends at byte {cut}")), "{reason}");
                }
                reason => assert!(reason.is_none() || cut < file.len()),
            }
            let clean = ends.contains(&cut) || cut == 24 && file[0] != 0x0a;
            if clean {
                assert_eq!(read_all(&file[..cut]).1.cut_off, None);
            }
        }
        for cut in 1..4 {
            assert!(matches!(error_of(&file[..cut]), FileError::NotACapture { .. }));
        }
    }
}

#[test]
fn compressed_files_cut_at_any_byte_give_their_complete_part() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, 65_535, 1);
    for number in 0..20u32 {
        file.extend(LITTLE.record(number, 0, &noise(number, 100), 100));
    }
    let whole = read_all(&file).0;
    // In several pieces, so that a cut falls behind complete ones too.
    for pack in [gzip, zstd] {
        let mut packed = Vec::new();
        for piece in file.chunks(500) {
            packed.extend(pack(piece));
        }
        let mut most = 0;
        for cut in 1..packed.len() {
            let input = Box::new(Cursor::new(packed[..cut].to_vec()));
            match Reader::from_read(input, "test", None, SMALL) {
                Ok(reader) => {
                    let (seen, summary) = drain(reader);
                    assert_eq!(seen, whole[..seen.len()]);
                    assert!(summary.cut_off.is_some(), "cut at {cut}");
                    assert!(seen.len() >= most, "a longer file gives no less");
                    most = seen.len();
                }
                Err(error) => assert!(most == 0, "cut at {cut}: {error}"),
            }
        }
        // zstd gives only whole blocks, here a piece each.
        assert!(most >= 16, "{most} of 20 before the last byte");
    }
}

#[test]
fn corrupt_gzip_is_reported_and_ends_the_file() {
    let (file, _) = small_pcap();
    let mut packed = gzip(&file);
    let check_sum = packed.len() - 8;
    packed[check_sum] ^= 1;
    let (seen, summary) = read_all(&packed);
    assert_eq!(seen.len(), 4);
    let reason = summary.cut_off.unwrap();
    assert!(reason.contains("gzip data is corrupt"), "{reason}");
}

#[test]
fn impossible_lengths_end_the_file_at_their_place() {
    let (mut file, ends) = small_pcap();
    file[ends[1] + 8..ends[1] + 12].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    let (seen, summary) = read_all(&file);
    assert_eq!(seen.len(), 2);
    let reason = summary.cut_off.unwrap();
    assert!(reason.contains(&format!("at byte {}", ends[1])), "{reason}");
    assert!(reason.contains("2147483647 captured bytes"), "{reason}");

    for length in [0u32, 8, 13, 61, 64 << 20, u32::MAX] {
        let (mut file, ends) = small_pcapng();
        file[ends[1] + 4..ends[1] + 8].copy_from_slice(&length.to_be_bytes());
        let (seen, summary) = read_all(&file);
        assert_eq!(seen.len(), 2);
        let reason = summary.cut_off.unwrap();
        assert!(reason.contains(&format!("at byte {}", ends[1])), "{reason}");
    }
}

#[test]
fn contradictions_in_pcapng_end_the_file_at_their_place() {
    let cases: [(Vec<u8>, &str); 8] = [
        (BIG.enhanced(1, 0, b"", 0), "interface 1, never described"),
        (BIG.block(6, &[0; 12]), "too short"),
        (BIG.block(6, &[0; 16]), "exceeds its block"),
        (BIG.block(6, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9]), "exceeds"),
        (BIG.block(1, &[0; 2]), "too short"),
        (BIG.interface(1, 0, &[(9, &[20])]), "resolution of 0x14"),
        (BIG.interface(1, 0, &[(9, &[0xc0])]), "resolution of 0xc0"),
        (BIG.block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 9, 0, 0]), "version 9"),
    ];
    for (block, expected) in cases {
        let (mut file, _) = small_pcapng();
        let at = file.len();
        file.extend(block);
        file.extend(BIG.enhanced(0, 0, b"", 0));
        let (seen, summary) = read_all(&file);
        assert_eq!(seen.len(), 4, "{expected}");
        let reason = summary.cut_off.unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert!(reason.contains(&format!("at byte {at}")), "{reason}");
    }
}

#[test]
fn a_failing_device_is_an_error_after_the_read_packets() {
    for (file, _) in [small_pcap(), small_pcapng()] {
        let length = file.len() as u64;
        let input = Box::new(Failing(Cursor::new(file)));
        // The head alone is 128 bytes, less than the file.
        let mut reader = Reader::from_read(input, "disk", None, SMALL).unwrap();
        assert_eq!(reader.next_chunk(None).unwrap().unwrap().frames.len(), 4);
        let error = reader.next_chunk(None).unwrap_err();
        let expected = format!("disk: cannot read at byte {length}: the disk is gone");
        assert_eq!(error.to_string(), expected);
        assert!(reader.next_chunk(None).unwrap().is_none());
    }
    let (file, _) = small_pcap();
    let mut packed = gzip(&file);
    packed.truncate(packed.len() - 4);
    let input = Box::new(Failing(Cursor::new(packed)));
    let mut reader = Reader::from_read(input, "disk", None, SMALL).unwrap();
    let results: Vec<_> = (0..2).map(|_| reader.next_chunk(None)).collect();
    assert!(results.iter().any(|r| matches!(r, Err(FileError::Read { .. }))));
}

#[test]
fn a_file_that_is_not_a_capture_is_reported() {
    let mut etl = vec![0; 0x48];
    etl.extend([2, 0, 2, 0xc0]);
    for (bytes, expected) in [
        (&b"hello world"[..], "first bytes 68 65 6c 6c 6f 20 77 6f 72 6c 64 `hello.world`"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0xxxx", "not a capture"),
        (b"TR\0d\0\0\0\0", "HP-UX nettl trace, which is not supported; convert"),
        (b"\xaa\xaa\xaa\xaa\0\0\0\0", "editcap -F pcapng"),
        (b"\x05VNF", "Visual Networks"),
        (b"XCP\x00003.000", "NetXRay or Windows Sniffer capture of an unknown version"),
        (b"btsnoop\0\0\0\0\x01", "which holds no network packets"),
        (
            b"TRSNIFF data    \x1a\x01\0\x12\0\0\0\x04\0\0\0\0\0\xc6\x54\x04\x01\x02\x01",
            "a compressed Sniffer",
        ),
        (b"J\0J\0\0\xea\x07\x0b\x14\x12\x06\x2f\x7c\x84\x09\0", "a TamoSoft CommView capture"),
        (b"J\0\0\0\xea\x07\x0b\x14\x12\x06\x2f\x7c\x84\x09\0\0", "a TamoSoft CommView capture"),
        (b"+---------+---------------+----------+\r\n18:06:47", "a K12 text file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"BZh9", "unpack it first"),
        // A dictionary of 4 GiB is not allocated.
        (XZ_OF_4_GIB, "needed memory too big"),
        (&write::xz(b"hello world")[..30], "the xz data is cut off"),
        (&etl, "(.etl) that is cut in its header"),
        (&gzip(b"hello world"), "not a capture inside its gzip data"),
        (&zstd(b"iptrace 2.0"), "AIX iptrace"),
        (&gzip(b""), "the gzip data does not contain a capture: it is empty"),
        (
            &gzip(b"hello")[..9],
            "the gzip data does not contain a capture: the gzip data is cut off",
        ),
        (b"", "is empty"),
    ] {
        let message = error_of(bytes).to_string();
        assert!(message.starts_with("test: "), "{message}");
        assert!(message.contains(expected), "{message} lacks {expected}");
    }
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| Reader::open(path, SMALL).err().unwrap();
    let missing = open(&folder.path().join("missing.pcap"));
    assert!(matches!(missing, FileError::NotFound { .. }));
    assert!(missing.to_string().ends_with("missing.pcap: no such file"));
    assert!(matches!(open(folder.path()), FileError::IsFolder { .. }));
    let path = folder.path().join("named.txt");
    std::fs::write(&path, small_pcap().0).unwrap();
    let reader = Reader::open(&path, SMALL).unwrap();
    assert_eq!(reader.total_bytes(), Some(small_pcap().0.len() as u64));
    assert_eq!(drain(reader).0.len(), 4);
}

proptest::proptest! {
    #[test]
    fn any_flipped_byte_is_survived(at in 0usize..400, value: u8, ng: bool) {
        let (mut file, _) = if ng { small_pcapng() } else { small_pcap() };
        let at = at % file.len();
        file[at] = value;
        if let Ok(reader) = Reader::from_read(Box::new(Cursor::new(file)), "test", None, SMALL) {
            drain(reader);
        }
    }
}
