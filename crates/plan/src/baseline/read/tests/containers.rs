//! Containers: bombs, damage, and names that leave the container.

use std::io::{Cursor, Write as _};

use super::*;

const POLICY: &[u8] = b"[System Access]\nMinimumPasswordAge = 1\n";

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn cabinet(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    let folder = builder.add_folder(cab::CompressionType::MsZip);
    for (name, _) in files {
        folder.add_file(*name);
    }
    let mut writer = builder.build(Cursor::new(Vec::new())).unwrap();
    let mut contents = files.iter();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(contents.next().unwrap().1).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn names_stay_in_their_container() {
    let bytes = zip(&[("../../etc/x.inf", POLICY), ("a\\.\\b.inf", POLICY)]);
    let files: Vec<String> =
        one("in.zip", &bytes).settings.into_iter().map(|one| one.origin.file).collect();
    assert_eq!(files, ["in.zip/etc/x.inf", "in.zip/a/b.inf"]);
}

#[test]
fn depth_of_containers_is_limited() {
    let mut bytes = POLICY.to_vec();
    for level in 1..=4 {
        bytes = zip(&[("x", &bytes)]);
        let read = read(&[NamedBytes { name: "in.zip", bytes: &bytes }]);
        match level {
            1..=3 => assert_eq!(read.unwrap().settings.len(), 1, "{level}"),
            _ => assert!(read.unwrap_err().message.contains("more than 3 containers"), "{level}"),
        }
    }
}

#[test]
fn bombs_end_at_the_limit() {
    // 32 files of 16 MiB in 512 KiB: one is compressed, the others are copies.
    let zeros = vec![b' '; 16 << 20];
    let one_file = zip(&[("zeros", &zeros)]);
    let mut archive = zip::ZipArchive::new(Cursor::new(&one_file)).unwrap();
    let mut writer =
        zip::ZipWriter::new_append(Cursor::new(zip(&[("first.inf", POLICY)]))).unwrap();
    for number in 0..32 {
        writer.raw_copy_file_rename(archive.by_index(0).unwrap(), number.to_string()).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    assert!(bytes.len() < 1 << 20);
    let baseline = one("bomb.zip", &bytes);
    assert_eq!(baseline.settings.len(), 1);
    assert!(
        baseline.damage[0].message.contains("more than 268435456 bytes together"),
        "{:?}",
        baseline.damage
    );
    // A cabinet whose entries all are the whole folder.
    let mut bytes = cabinet(&[("first.inf", POLICY), ("b", &vec![b' '; 40 << 20])]);
    let (name, at) = (b"b\0", bytes.windows(2).rposition(|pair| pair == b"b\0").unwrap());
    assert_eq!(&bytes[at..at + 2], name);
    let entry: Vec<u8> = bytes[at - 16..at + 2].to_vec();
    let table = bytes.len() as u32;
    for _ in 0..30_000 {
        bytes.extend(&entry);
    }
    bytes[16..20].copy_from_slice(&table.to_le_bytes());
    bytes[28..30].copy_from_slice(&30_000_u16.to_le_bytes());
    let error = read(&[NamedBytes { name: "bomb.cab", bytes: &bytes }]).unwrap_err();
    assert!(error.message.contains("bytes together"), "{error}");
}

/// A cabinet with one file in LZX (window of 32 KiB), whose only block is not compressed (MS-PATCH 2.3).
fn lzx_cabinet(name: &str, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32;
    // No translation of calls, a block of type 3, its length; filled up to 32 bits, in words of 16.
    let bits = (3 << 28) | (length << 4);
    let mut data = Vec::new();
    data.extend(((bits >> 16) as u16).to_le_bytes());
    data.extend((bits as u16).to_le_bytes());
    data.extend([1_u32; 3].map(u32::to_le_bytes).concat());
    data.extend(content);
    let files = 36 + 8;
    let start = files + 16 + name.len() as u32 + 1;
    let total = start + 8 + data.len() as u32;
    let mut bytes = b"MSCF\0\0\0\0".to_vec();
    for number in [total, 0, files, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([3, 1]);
    for number in [1_u16, 1, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(start.to_le_bytes());
    bytes.extend([1, 0, 3, 15]);
    bytes.extend(length.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend(name.as_bytes());
    bytes.extend([0; 5]);
    bytes.extend((data.len() as u16).to_le_bytes());
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn cabinets_in_lzx_are_read() {
    let bytes = lzx_cabinet("a.inf", POLICY);
    assert_eq!(one("x.cab", &bytes).settings.len(), 1);
    for length in 4..bytes.len() {
        let _ = read(&[NamedBytes { name: "x.cab", bytes: &bytes[..length] }]);
    }
}

#[test]
fn damaged_containers_keep_what_is_whole() {
    let bytes = cabinet(&[("a.inf", POLICY), ("b.inf", POLICY), ("c", &[7; 100_000])]);
    let whole = one("x.cab", &bytes);
    assert_eq!(whole.settings.len(), 2);
    // Cut within the data: folders are read up to there.
    let baseline = one("x.cab", &bytes[..bytes.len() - 10]);
    assert_eq!(baseline.settings.len(), 2);
    assert!(!baseline.damage.is_empty());
    // Cut within the list of files, and anywhere else: an error or a part, but no panic.
    for length in 4..bytes.len() {
        let _ = read(&[NamedBytes { name: "x.cab", bytes: &bytes[..length] }]);
    }
    let bytes = zip(&[("a.inf", POLICY), ("b.inf", POLICY)]);
    for length in 4..bytes.len() {
        let error = read(&[NamedBytes { name: "x.zip", bytes: &bytes[..length] }]).unwrap_err();
        assert!(error.to_string().contains("not a readable .zip"), "{error}");
    }
    let mut wrong = bytes.clone();
    let at = wrong.windows(5).position(|part| part == b"a.inf").unwrap() + 8;
    wrong[at] ^= 0xff;
    let baseline = one("x.zip", &wrong);
    assert_eq!(baseline.damage.len(), 1, "{:?}", baseline.damage);
    assert!(baseline.damage[0].file.ends_with("a.inf"));
    assert_eq!(baseline.settings.len(), 1);
}
