//! A small object of ELF with a build id, two functions and their names.

/// The build id in hexadecimal digits.
pub const BUILD_ID: &str = "abcdef0123456789";

/// The bytes of a 64-bit object for x86-64 (System V ABI, chapter 4).
pub fn object() -> Vec<u8> {
    let id = [0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89];
    let note = [&[4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &id].concat();
    let names = b"\0inner\0outer\0".to_vec();
    let symbol = |name: u32, info: u8, section: u16, value: u64| {
        let mut bytes = name.to_le_bytes().to_vec();
        bytes.extend([info, 0]);
        bytes.extend(section.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        bytes.extend(16_u64.to_le_bytes());
        bytes
    };
    let symbols = [symbol(0, 0, 0, 0), symbol(1, 2, 1, 0), symbol(7, 0x12, 1, 16)].concat();
    let titles = b"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0".to_vec();
    // Name, kind, flags, contents, link, info, size of an entry.
    let sections: [(u32, u32, u64, &[u8], u32, u32, u64); 6] = [
        (0, 0, 0, &[], 0, 0, 0),
        (1, 1, 6, &[0x90; 32], 0, 0, 0),
        (7, 7, 2, &note, 0, 0, 0),
        (26, 2, 0, &symbols, 4, 2, 24),
        (34, 3, 0, &names, 0, 0, 0),
        (42, 3, 0, &titles, 0, 0, 0),
    ];
    let mut contents = Vec::new();
    let mut headers = Vec::new();
    for (name, kind, flags, bytes, link, info, entry) in sections {
        let at = 64 + contents.len() as u64;
        headers.extend([name, kind].map(u32::to_le_bytes).concat());
        headers.extend([flags, 0, at, bytes.len() as u64].map(u64::to_le_bytes).concat());
        headers.extend([link, info].map(u32::to_le_bytes).concat());
        headers.extend([1, entry].map(u64::to_le_bytes).concat());
        contents.extend_from_slice(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([1_u16, 62].map(u16::to_le_bytes).concat());
    out.extend(1_u32.to_le_bytes());
    out.extend([0, 0, 64 + contents.len() as u64].map(u64::to_le_bytes).concat());
    out.extend(0_u32.to_le_bytes());
    out.extend([64_u16, 0, 0, 64, 6, 5].map(u16::to_le_bytes).concat());
    out.extend(contents);
    out.extend(headers);
    out
}
